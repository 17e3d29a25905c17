#!/usr/bin/env bash
# quickstart.sh: from a clone to a picture. It installs packages, builds the program, simulates one training step on 2 MPI ranks,
# prints the summary and draws the results.
# With real traces beside the repository (../shared/traces) the step is that of a Llama on 64 NPUs, written by the STAGE trace
# generator. Else Orrery writes the traces itself: 64 NPUs, 4 tensor x 4 pipeline x 4 data parallel.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --program
# The program alone: tests and benchmarks would take longer than it does. scripts/build.sh adds them later.
if [ ! -f build/release/CMakeCache.txt ]; then
  cmake --preset release -DORRERY_TESTS=OFF -DORRERY_BENCH=OFF
fi
cmake --build --preset release --target orrery
orrery=build/release/bin/orrery
folder=build/quickstart
mkdir -p "$folder"

shared=${ORRERY_SHARED:-../shared}
archive=$shared/traces/stage-llama-s_64_dp4tp4pp4.tar.xz
if [ -f "$archive" ]; then
  name=llama-s_64_dp4tp4pp4
  if [ ! -d "$folder/$name" ]; then
    rm -rf "$folder/unpacking" && mkdir "$folder/unpacking"
    tar --extract --file "$archive" --directory "$folder/unpacking"
    mv "$folder/unpacking/$name" "$folder/$name"
  fi
  workload=(
    --workload-configuration="$folder/$name/workload"
    --comm-group-configuration="$folder/$name/workload.json"
    --system-configuration="$shared/traces/system/system.json"
    --network-configuration="$shared/traces/system/net_64.yml"
    --remote-memory-configuration="$shared/traces/system/mem.json"
  )
else
  mkdir -p "$folder/llm-64"
  "$orrery" generate --tp 4 --pp 4 --dp 4 --force --output "$folder/llm-64/workload"
  workload=(configs/llm-64.yaml)
fi

scripts/mpirun.sh 2 "$orrery" run "${workload[@]}" --timeline --force --output="$folder/results.h5"
/usr/bin/python3 scripts/plot_results.py "$folder/results.h5" --output "$folder/results.png"

cat << END

The results are in $folder/results.h5, a picture of them in $folder/results.png.

What to do next:
END
printf '  %-71s  # %s\n' \
  "PATH=\$PWD/build/release/bin:\$PATH" "so that your shell finds orrery" \
  "orrery report $folder/results.h5" "a page for a browser: where the time goes, timeline, network" \
  "orrery show timeline $folder/results.h5 --chrome=timeline.json" "open the file in https://ui.perfetto.dev" \
  "orrery run configs/llama3-8b-64.yaml --output=llama.h5" "a step of Llama 3 8B on 64 GPUs, without traces" \
  "less docs/user-guide.md" "more examples, and how to describe your own system"
