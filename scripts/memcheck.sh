#!/usr/bin/env bash
# memcheck.sh [TEST ...]: runs unit tests, property tests and small runs of the program under valgrind's memcheck, which finds values that
# nothing has set. The sanitizers do not look for them. TEST is a test program such as unit_pdes, or "runs"; without arguments, all of
# them, which takes a quarter of an hour. It needs Debian's package valgrind and the programs in build/release.
# Exit code 1: memcheck has found something, or a test has failed; the output says what. 2: something that it needs is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/build/release/bin
if ! command -v valgrind > /dev/null; then
  echo "memcheck: as root, run: apt-get install --no-install-recommends valgrind" >&2
  exit 2
fi
# Leaks are left to the address sanitizer: Open MPI keeps what it has allocated.
check=(valgrind --quiet --error-exitcode=9 --leak-check=no --num-callers=15 --suppressions=/usr/share/openmpi/openmpi-valgrind.supp
  --suppressions=tests/support/memcheck.supp)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ -x "$bin/orrery" ] || { echo "memcheck: found no $bin/orrery; run: scripts/build.sh" >&2; exit 2; }
failed=()

# step NAME COMMAND [ARGUMENT ...]: runs a command and shows its output only if it fails.
step() {
  local name=$1 begin=$SECONDS
  shift
  if "$@" > "$folder/log" 2>&1; then
    printf '%-40s %4d s\n' "$name" $((SECONDS - begin))
  else
    printf '%-40s %4d s: FAILED\n' "$name" $((SECONDS - begin))
    cat "$folder/log"
    failed+=("$name")
  fi
}

# run NAME ARGUMENT ...: runs a step on one and two ranks, which saves its state, and goes on from there.
run() {
  local name=$1 ranks saved=$folder/$1.chk
  shift
  for ranks in 1 2; do
    step "$name, ranks: $ranks" scripts/mpirun.sh "$ranks" "${check[@]}" "$bin/orrery" run "$@" --timeline --quiet --force \
      --output="$folder/$name.h5" --checkpoint="$saved" --checkpoint-interval=0.1
    step "$name, ranks: $ranks, restarted" scripts/mpirun.sh "$ranks" "${check[@]}" "$bin/orrery" run "$@" \
      --timeline --quiet --force --output="$folder/$name.h5" --restart="$saved"
    rm -f "$saved"*
  done
  step "$name, shown" "${check[@]}" "$bin/orrery" show results "$folder/$name.h5"
}

runs() {
  local small=tests/fuzz/seeds/small.yaml
  run unaware "$small" --noise=0.05 --iterations=20
  run aware "$small" --noise=0.05 --iterations=20 --network=congestion-aware
  run packets "$small" --noise=0.05 --network=packet --set=system.network.packets.window=none
  run folded "$small" --fold --set='perturbation.slow-npus=[{npus: 3, compute: 0.8}]' --iterations=20
  run graph configs/servers-4-and-6.yaml --set=workload.model.layers=1
  run uec configs/servers-4-and-6.yaml --set=workload.model.layers=1 --set=system.network.packets.preset=uec
}

tests=("$@")
[ ${#tests[@]} -gt 0 ] || mapfile -t tests < <(cd "$bin" && ls -d unit_* property_*; echo runs)
for test in "${tests[@]}"; do
  if [ "$test" = runs ]; then runs; else step "$test" "${check[@]}" "$bin/$test"; fi
done
[ ${#failed[@]} -eq 0 ] || { printf 'memcheck: failed: %s\n' "${failed[*]}" >&2; exit 1; }
