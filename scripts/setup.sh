#!/usr/bin/env bash
# setup.sh [--program]: installs what building, testing and plotting need: Debian 12 packages, and nothing from anywhere else.
# With --program it leaves out what only the tests and benchmarks need.
# As root or with sudo it installs what is missing; else it says what is missing and how to install it.
set -euo pipefail

packages=(
  g++ cmake ninja-build git ccache
  libopenmpi-dev openmpi-bin
  libhdf5-dev hdf5-tools
  libprotobuf-dev protobuf-compiler zlib1g-dev libmetis-dev
  libcxxopts-dev libyaml-cpp-dev nlohmann-json3-dev libsimdjson-dev libtinyxml2-dev libspdlog-dev libfmt-dev libboost-dev
  python3 python3-h5py python3-numpy python3-pandas python3-yaml python3-matplotlib python3-protobuf
  xz-utils
)
for_tests=(libgtest-dev libbenchmark-dev procps dpkg-dev file black)
# What only some tests need; without these packages these tests are skipped: a Slurm that the tests of scripts/slurm start for
# themselves, programs that read results.h5, what executes notebooks, and a browser for the pages of orrery report.
slurm=(slurm-wlm slurm-wlm-basic-plugins munge)
optional=(python3-netcdf4 python3-xarray python3-h5netcdf python3-nbconvert python3-ipykernel
  chromium chromium-driver python3-selenium)
case "${1:-}" in
  "") packages+=("${for_tests[@]}") ;;
  --program) slurm=() optional=() ;;
  *)
    echo "setup: unknown argument '$1': expected --program or nothing" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this is no Debian system. Install what corresponds to: ${packages[*]}" >&2
  exit 0
fi

not_installed() {
  local package status
  for package in "$@"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2> /dev/null || true)
    [ "$status" = installed ] || echo "$package"
  done
}
mapfile -t missing < <(not_installed "${packages[@]}")
# A machine of a cluster keeps its own Slurm, and nobody is asked for a password for these packages.
absent=()
if [ "$(id -u)" -eq 0 ] || sudo --non-interactive true 2> /dev/null; then
  command -v srun > /dev/null || optional+=("${slurm[@]}")
  mapfile -t absent < <(not_installed "${optional[@]}")
fi
if [ ${#missing[@]} -eq 0 ] && [ ${#absent[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

install=(env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends)
if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo > /dev/null && { sudo --non-interactive true 2> /dev/null || [ -t 0 ]; }; then
  as_root=(sudo)
else
  echo "setup: missing packages: ${missing[*]}" >&2
  echo "setup: as root, run: apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
needed=("${missing[@]}" "${absent[@]}")
echo "setup: installing ${needed[*]}"
if [ ${#missing[@]} -gt 0 ]; then
  "${as_root[@]}" apt-get update
  "${as_root[@]}" "${install[@]}" "${missing[@]}"
fi
if [ ${#absent[@]} -gt 0 ]; then
  { [ ${#missing[@]} -gt 0 ] || "${as_root[@]}" apt-get update; } && "${as_root[@]}" "${install[@]}" "${absent[@]}" ||
    echo "setup: without ${absent[*]}: the tests that need them will be skipped" >&2
fi
