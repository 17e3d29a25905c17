#!/usr/bin/env bash
# build_profiled.sh: builds build/profiled/bin/orrery, which is optimised for what simulations do often. It needs g++, and
# Python with h5py, and takes three times as long as scripts/build.sh: it builds a program that counts what it does, runs
# some simulations, and builds the program again by these counts. Then it checks that both programs gave the same results
# for all NPUs. If it fails, it leaves no program.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/profiled
orrery=$build/bin/orrery
results=$(mktemp -d)
is_done=
trap 'rm -rf "$results"; [ "$is_done" ] || rm -f "$orrery"' EXIT

for python in python3 /usr/bin/python3 ''; do
  if [ -z "$python" ]; then
    echo "build_profiled.sh: no python3 with h5py, which compares results; scripts/setup.sh installs it" >&2
    exit 1
  fi
  if "$python" -c 'import h5py' 2> /dev/null; then break; fi
done

# run NAME RANKS ARGUMENT ...: simulates on so many ranks.
run() {
  scripts/mpirun.sh "$2" "$orrery" run "${@:3}" --record-iterations 0 --force --output "$results/$1.h5"
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
cmake --build --preset profiled
simulate 1
"$python" - "$results" <<'END'
import pathlib
import sys

import h5py

folder = pathlib.Path(sys.argv[1])
for path in sorted(folder.glob("*.h5")):
    with h5py.File(path) as one, h5py.File(folder / "counted" / path.name) as other:
        for name in one["npus"]:
            if (one["npus"][name][:] != other["npus"][name][:]).any():
                sys.exit(f"build_profiled.sh: {path.stem}: /npus/{name} differs between the two programs. Please report this as a bug.")
END
is_done=yes
echo "The program is $orrery."
