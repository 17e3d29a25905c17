#!/usr/bin/env bash
# test.sh: sets up, builds and runs every test; then the same with the address and undefined-behaviour sanitizers, where the tests
# take fewer cases. Where the folder shared/ is beside the repository, the tests that use it run a second time as in a clone that
# stands alone. The time of each stage and ctest's summaries come at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/test-logs
jobs=$(($(nproc) * 2))  # of two tests one often waits for mpirun to start
# On one machine MPI needs no network: looking for one takes half of the time in which mpirun starts a program.
export OMPI_MCA_pml=ob1
failed=0
times=()
summaries=()

# stage NAME COMMAND...: runs a command and keeps its time; its failure is the script's.
stage() {
  local name=$1 begin=$SECONDS status
  shift
  echo "== $name"
  "$@" 2>&1 | tee "build/test-logs/$name.log"
  status=${PIPESTATUS[0]}
  times+=("$(printf '%5d s  %s%s' $((SECONDS - begin)) "$name" "$([ "$status" -eq 0 ] || echo ' (failed)')")")
  [ "$status" -eq 0 ] || failed=1
  return "$status"
}

# tests PRESET: runs every test of a preset; tests say how many cores they take (PROCESSORS).
tests() {
  stage "test-$1" ctest --preset "$1" --parallel "$jobs"
  summaries+=("$(grep -E 'tests passed, .* tests failed' "build/test-logs/test-$1.log")")
}

if stage setup scripts/setup.sh && stage build-release scripts/build.sh release -DORRERY_WERROR=ON; then
  tests release
  if stage build-asan scripts/build.sh asan; then
    tests asan
  fi
fi

echo
printf '%s\n' "${times[@]}"
printf '%5d s  all\n' "$SECONDS"
if [ ${#summaries[@]} -eq 2 ]; then
  echo "with sanitizers: ${summaries[1]}"
fi
if [ ${#summaries[@]} -ge 1 ]; then
  echo "${summaries[0]}"
fi
exit "$failed"
