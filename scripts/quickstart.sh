#!/usr/bin/env bash
# From a clone to a picture: sets up, builds, simulates one training step on 2 MPI ranks, prints the summary, plots.
# With the real traces beside the repository (../shared/traces) the step is that of a Llama on 64 NPUs, written by the STAGE
# trace generator; else Orrery writes the traces itself: 64 NPUs, 4 tensor x 4 pipeline x 4 data parallel.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
scripts/build.sh release
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

echo
echo "results: $folder/results.h5   (h5dump, h5py, xarray; docs/results.md)"
echo "picture: $folder/results.png"
