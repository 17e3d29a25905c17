#!/usr/bin/env bash
# test.sh [--all]: sets up, builds and runs the tests of the gate; then builds with the address and undefined-behaviour sanitizers and runs
# the gate of that build. --all runs every test of both builds, which takes more than an hour. ctest's summaries, the time of each stage and
# the ten slowest tests come at the end. A test of the gate that takes more than a minute makes the script fail.
set -uo pipefail
cd "$(dirname "$0")/.."
case "$*" in
  "") gate=1 chosen=(-L '^gate$') target=gate_tests ;;
  --all) gate='' chosen=(-LE '^part$') target=all ;;  # what has the label `part` is a part of another test
  *)
    echo "usage: scripts/test.sh [--all]" >&2
    exit 2
    ;;
esac
mkdir -p build/test-logs
rm -f build/test-logs/*
jobs=$(($(nproc) * 2))  # of two tests one often waits, for mpirun or for a disk
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

# tests PRESET: runs the tests of a preset; tests say how many cores they take (PROCESSORS).
tests() {
  stage "test-$1" tests/support/run_tests.py ${gate:+--limit=60} "build/test-logs/$1.xml" --preset "$1" --parallel "$jobs" "${chosen[@]}"
  summaries+=("$1: $(grep -E 'tests passed, .* tests failed' "build/test-logs/test-$1.log")")
}

if stage setup scripts/setup.sh && stage build-release scripts/build.sh release -DORRERY_WERROR=ON; then
  tests release
  if stage configure-asan cmake --preset asan && stage build-asan cmake --build --preset asan --target "$target"; then
    tests asan
  fi
fi

echo
for slowest in build/test-logs/*.txt; do
  echo "the slowest tests of the build $(basename "$slowest" .txt):"
  cat "$slowest"
done
printf '%s\n' "${times[@]}"
printf '%5d s  all\n' "$SECONDS"
printf '%s\n' "${summaries[@]}"
grep -hE 'tests passed, .* tests failed' build/test-logs/test-release.log
exit "$failed"
