#!/usr/bin/env bash
# build_profiled.sh: builds build/profiled/bin/orrery, which is optimised for what simulations do often. It needs g++ and
# takes three times as long as scripts/build.sh: it builds a program that counts what it does, runs some simulations, and
# builds the program again by these counts. Then it checks that both programs gave the same results.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/profiled
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# run NAME RANKS ARGUMENT ...: simulates on so many ranks.
run() {
  scripts/mpirun.sh "$2" "$build/bin/orrery" run "${@:3}" --record-iterations 0 --force --output "$results/$1.h5"
}
simulate() {
  run noise "$1" configs/scale/gpt3-175b-1024.yaml --noise 0.02
  run plain "$1" configs/scale/gpt3-175b-1024.yaml
  run llama "$1" configs/llama3-8b-64.yaml --noise 0.05 --iterations 5
  run links "$1" configs/scale/gpt3-175b-1024.yaml --set workload.model.layers=8 --network congestion-aware
  run all-reduce "$1" configs/scale/all-reduce-4096.yaml --network congestion-aware --set system.rules=physical
}

cmake --preset profiled -DORRERY_PROFILE=generate
find "$build" -name '*.gcda' -delete # counts of an earlier program
cmake --build --preset profiled --target orrery
simulate 1
simulate 2
mkdir "$results/counted"
mv "$results"/*.h5 "$results/counted"

cmake --preset profiled -DORRERY_PROFILE=use
cmake --build --preset profiled --target orrery
simulate 1
python3 - "$results" <<'END'
import pathlib
import sys

import h5py

folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.glob("*.h5")):
    with h5py.File(path) as one, h5py.File(folder / "counted" / path.name) as other:
        for name in one["npus"]:
            if (one["npus"][name][:] != other["npus"][name][:]).any():
                sys.exit(f"{path.stem}: /npus/{name} differs between the two programs. Do not use the program, and report this as a bug.")
END
echo "The program is $build/bin/orrery."
