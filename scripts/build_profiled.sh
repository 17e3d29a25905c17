#!/usr/bin/env bash
# build_profiled.sh: builds build/profiled/bin/orrery, which is optimised for what simulations do often. It needs g++ and
# h5diff, and takes three times as long as scripts/build.sh: it builds a program that counts what it does, runs some
# simulations, and builds the program again by these counts. Then it checks that both programs gave the same results for
# all NPUs. If it fails, it leaves no program.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/profiled
orrery=$build/bin/orrery
results=$(mktemp -d)
is_done=
trap 'rm -rf "$results"; [ "$is_done" ] || rm -f "$orrery"' EXIT

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
  run packets "$1" configs/rails-32.yaml --network packet
}

h5diff --version # before the builds, because it may be missing
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
for counted in "$results"/counted/*.h5; do
  h5diff "$counted" "$results/${counted##*/}" /npus || {
    echo "build_profiled.sh: the two programs differ in ${counted##*/}, as told above. Please report this as a bug." >&2
    exit 1
  }
done
is_done=yes
echo "The program is $orrery."
