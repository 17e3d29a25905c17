#!/usr/bin/env bash
# fuzz.sh [--seconds N | --runs N | --hours H | --coverage] [TARGET ...]: builds the fuzz targets of tests/fuzz with clang and
# sanitizers, and runs all of them, or those that are named, one after the other. It takes Debian's clang-19 and libclang-rt-19-dev,
# and llvm-19 for --coverage.
#   --seconds N   each target for so many seconds (default: 60)
#   --runs N      each target for so many inputs
#   --hours H     the targets take turns of five minutes, for so many hours in all; a target that finds a fault goes on
#   --coverage    prints which part of the lines of each parser the seeds and the corpus reach; --missing names the others
#   --keep        writes the fewest inputs that reach what the corpus reaches to tests/fuzz/seeds/TARGET.zip
# Seeds are files and texts of this repository, and of the folder shared/ beside it. What a target has found to reach new code is
# kept in build/fuzz/corpus, or where shared/ is there in build/fuzz/corpus-shared, and used the next time. build/fuzz/log.csv has a
# line for each turn: target, executions, CPU seconds, exit status. ORRERY_FUZZ_NO_BUILD=1 takes the targets as they are.
# Exit code 1: something was found; the end says what to do.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "fuzz: $1; usage: fuzz.sh [--seconds N | --runs N | --hours H | --coverage [--missing] | --keep] [TARGET ...]" >&2
  exit 2
}
mode=--seconds amount=60 missing=
case "${1:-}" in
  --seconds | --runs | --hours)
    mode=$1 amount=${2:-}
    [[ "$amount" =~ ^[0-9]+$ ]] && [ "$amount" -gt 0 ] || usage "'$amount' is no number for $mode"
    shift 2
    ;;
  --coverage | --keep)
    mode=$1
    shift
    if [ "${1:-}" = --missing ]; then missing=$1 && shift; fi
    ;;
  -*) usage "'$1' is no option" ;;
esac
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  mapfile -t targets < <(grep -l LLVMFuzzerTestOneInput tests/fuzz/*.cpp | grep -v /replay.cpp | xargs -n 1 basename --suffix=.cpp)
fi
for target in "${targets[@]}"; do
  [ -f "tests/fuzz/$target.cpp" ] || usage "no target '$target' in tests/fuzz"
done
if ! command -v clang++-19 > /dev/null || ! compgen -G "$(clang++-19 -print-resource-dir)/lib/linux/libclang_rt.fuzzer-*.a" > /dev/null; then
  echo "fuzz: as root, run: apt-get install --no-install-recommends clang-19 libclang-rt-19-dev llvm-19" >&2
  exit 2
fi

build=$PWD/build/fuzz
if [ -z "${ORRERY_FUZZ_NO_BUILD:-}" ]; then
  cmake --preset fuzz > /dev/null
  cmake --build --preset fuzz --target "${targets[@]/#/fuzz_}" orrery --parallel "${JOBS:-$(nproc)}" > /dev/null
fi
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" orrery-fuzz-XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
python3 tests/fuzz/make_seeds.py "$build/seeds" "${targets[@]}"
mkdir -p "$build/crashes" "$build/logs" "$build/corpus"
# Libraries that MPI loads keep what they have allocated; these leaks are none of ours (tests/fuzz/leaks.txt).
export LSAN_OPTIONS=suppressions=$PWD/tests/fuzz/leaks.txt:print_suppressions=0:${LSAN_OPTIONS:-}
ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-19 llvm-symbolizer-14 llvm-symbolizer | head -1 || true)}
export ASAN_SYMBOLIZER_PATH
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
export LLVM_PROFILE_FILE=/dev/null
export OMPI_MCA_pml=ob1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [[ " ${targets[*]} " = *" results "* ]]; then
  export ORRERY_FUZZ_RESULTS=$build/seeds/results.h5
  "${ORRERY_BINARY:-$build/bin/orrery}" run tests/fuzz/seeds/small.yaml --timeline --output "$ORRERY_FUZZ_RESULTS" --force \
    --progress none > /dev/null
  cp "$ORRERY_FUZZ_RESULTS" "$build/seeds/results/"
fi

# arguments TARGET: libFuzzer's arguments, one a line.
arguments() {
  printf '%s\n' -timeout=60 -rss_limit_mb=2560 -max_len=65536 -print_final_stats=1 -close_fd_mask=1 "-artifact_prefix=$build/crashes/$1-"
  [ "$1" != results ] || echo -len_control=0  # short inputs change one thing at most
  [ ! -s "$build/seeds/$1.dict" ] || echo "-dict=$build/seeds/$1.dict"
}

found=()
# turn TARGET OPTION: runs a target once and keeps what it was.
turn() {
  local target=$1 log=$build/logs/$1.log status=0 options executions edges seconds corpora
  corpora=("$build/corpus/$target" "$build/seeds/$target")
  [ -z "$(ls "$build/seeds/shared/$target")" ] || corpora=("$build/corpus-shared/$target" "${corpora[@]}" "$build/seeds/shared/$target")
  mkdir -p "${corpora[@]}"
  mapfile -t options < <(arguments "$target")
  TIMEFORMAT='%U %S'
  { time "$build/bin/fuzz_$target" "${options[@]}" "$2" "${corpora[@]}" > "$log" 2>&1 || status=$?; } \
    2> "$TMPDIR/times"
  seconds=$(awk '{ printf "%.0f", $1 + $2 }' "$TMPDIR/times")
  executions=$(awk '/^stat::number_of_executed_units/ { print $2 }' "$log")
  [ -n "$executions" ] || executions=$(grep -oE '^#[0-9]+' "$log" | tail -1 | tr -d '#')
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
  echo "$target,${executions:-0},$seconds,$status" >> "$build/log.csv"
  printf '%-16s %10s executions, %6s s, %s edges%s\n' "$target" "${executions:-?}" "$seconds" "${edges#cov: }" \
    "$([ "$status" -eq 0 ] || echo ': FOUND, see below')"
  if [ "$status" -ne 0 ]; then
    cp "$log" "$build/crashes/$target-$(date +%H%M%S).log"
    found+=("$target")
  fi
}

case "$mode" in
  --coverage)
    exec python3 tests/fuzz/coverage.py "$build" ${missing:+"$missing"} "${targets[@]}"
    ;;
  --keep)
    for target in "${targets[@]}"; do
      mkdir -p "$TMPDIR/$target" "$build/corpus/$target"
      "$build/bin/fuzz_$target" -set_cover_merge=1 -use_counters=0 -timeout=120 -rss_limit_mb=4096 -max_len=65536 \
        -close_fd_mask=1 "$TMPDIR/$target" "$build/corpus/$target" "$build/seeds/$target" > "$build/logs/$target-merge.log" 2>&1
      python3 tests/fuzz/make_seeds.py --keep "$target" "$TMPDIR/$target"
      printf '%-16s %6d inputs, %8d bytes\n' "$target" "$(find "$TMPDIR/$target" -type f | wc -l)" \
        "$(stat --format=%s "tests/fuzz/seeds/$target.zip")"
    done
    exit 0
    ;;
  --hours)
    end=$((SECONDS + amount * 3600))
    while [ "$SECONDS" -lt "$end" ]; do
      for target in "${targets[@]}"; do
        left=$((end - SECONDS))
        [ "$left" -le 0 ] || turn "$target" "-max_total_time=$((left < 300 ? left : 300))"
      done
    done
    ;;
  --seconds) for target in "${targets[@]}"; do turn "$target" "-max_total_time=$amount"; done ;;
  --runs) for target in "${targets[@]}"; do turn "$target" "-runs=$amount"; done ;;
esac

[ ${#found[@]} -eq 0 ] && exit 0
for target in $(printf '%s\n' "${found[@]}" | sort -u); do
  log=$(find "$build/crashes" -name "$target-*.log" | sort | tail -1)
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
  echo
  echo "== $target: $(grep -m 1 -E '^SUMMARY|^fuzz: |runtime error' "$log" || echo "see $log")"
  echo "repeat:   build/fuzz/bin/fuzz_$target $input"
  echo "shorten:  build/fuzz/bin/fuzz_$target -minimize_crash=1 -max_total_time=60 $input"
  echo "log:      $log"
done
echo
echo "Put the shortened input into a unit test of the reader, which has to fail, mend the reader, and run the command of 'repeat' again."
exit 1
