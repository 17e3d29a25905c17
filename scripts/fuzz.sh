#!/usr/bin/env bash
# fuzz.sh [SECONDS [TARGET ...]]: builds the fuzz targets of tests/fuzz with clang and sanitizers, and runs all of them, or those
# that are named, for so many seconds each (default 60), one after the other. It takes Debian's clang-19 and libclang-rt-19-dev.
# Seeds are files and texts of this repository, and of the folder shared/ beside it. What a target has found to reach new code is
# kept in build/fuzz/corpus and used the next time. Exit code 1: something was found; the end says what to do.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
case "$seconds" in
  '' | *[!0-9]*)
    echo "fuzz: '$seconds' is no number of seconds; usage: fuzz.sh [SECONDS [TARGET ...]]" >&2
    exit 2
    ;;
esac
targets=("${@:2}")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi
for target in "${targets[@]}"; do
  [ -f "tests/fuzz/$target.cpp" ] || { echo "fuzz: no target '$target' in tests/fuzz" >&2 && exit 2; }
done
if ! command -v clang++-19 > /dev/null || [ -z "$(clang++-19 -print-file-name=libclang_rt.fuzzer.a)" ]; then
  echo "fuzz: as root, run: apt-get install --no-install-recommends clang-19 libclang-rt-19-dev" >&2
  exit 2
fi

cmake --preset fuzz > /dev/null
cmake --build --preset fuzz --target fuzz_targets orrery --parallel "${JOBS:-$(nproc)}" > /dev/null

build=$PWD/build/fuzz
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" orrery-fuzz-XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
python3 tests/fuzz/make_seeds.py "$build/seeds"
export ORRERY_FUZZ_RESULTS=$build/seeds/results.h5
# A leak of a library that MPI loads is none of ours, and the same leak of each of a million executions would be found by libFuzzer.
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}
ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-19 llvm-symbolizer-14 llvm-symbolizer | head -1 || true)}
export ASAN_SYMBOLIZER_PATH
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
"$build/bin/orrery" run tests/fuzz/seeds/small.yaml --timeline --output "$ORRERY_FUZZ_RESULTS" --force --progress none > /dev/null
cp "$ORRERY_FUZZ_RESULTS" "$build/seeds/results/"

mkdir -p "$build/crashes" "$build/logs"
found=()
for target in "${targets[@]}"; do
  mkdir -p "$build/corpus/$target"
  log=$build/logs/$target.log
  arguments=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2560 -max_len=131072 -print_final_stats=1 -close_fd_mask=1
    -artifact_prefix="$build/crashes/$target-")
  [ "$target" != results ] || arguments+=(-len_control=0)  # short inputs change one thing at most
  [ ! -s "$build/seeds/$target.dict" ] || arguments+=(-dict="$build/seeds/$target.dict")
  status=0
  "$build/bin/fuzz_$target" "${arguments[@]}" "$build/corpus/$target" "$build/seeds/$target" > "$log" 2>&1 || status=$?
  executions=$(awk '/^stat::number_of_executed_units/ { print $2 }' "$log")
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
  printf '%-16s %10s executions, %s edges%s\n' "$target" "${executions:-?}" "${edges#cov: }" \
    "$([ "$status" -eq 0 ] || echo ': FOUND, see below')"
  [ "$status" -eq 0 ] || found+=("$target")
done

[ ${#found[@]} -eq 0 ] && exit 0
for target in "${found[@]}"; do
  log=$build/logs/$target.log
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
  echo
  echo "== $target: $(grep -m 1 -E '^SUMMARY|^fuzz: |runtime error' "$log" || echo "see $log")"
  echo "repeat:   ORRERY_FUZZ_RESULTS=$ORRERY_FUZZ_RESULTS build/fuzz/bin/fuzz_$target $input"
  echo "shorten:  build/fuzz/bin/fuzz_$target -minimize_crash=1 -max_total_time=60 $input"
  echo "log:      $log"
done
echo
echo "Put the shortened input into a unit test of the reader, which has to fail, mend the reader, and run the command of 'repeat' again."
exit 1
