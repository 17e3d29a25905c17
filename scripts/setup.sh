#!/usr/bin/env bash
# Installs what building, testing and plotting need: Debian 12 packages, and nothing from anywhere else.
# As root or with sudo it installs what is missing; else it says what is missing and how to install it.
set -euo pipefail

packages=(
  g++ cmake ninja-build git ccache
  libopenmpi-dev openmpi-bin
  libhdf5-dev hdf5-tools
  libprotobuf-dev protobuf-compiler zlib1g-dev
  libcxxopts-dev libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev libfmt-dev
  libgtest-dev libbenchmark-dev
  python3 python3-h5py python3-numpy python3-matplotlib
  xz-utils
)

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this is no Debian system. Install what corresponds to: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2> /dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

install=(env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}")
if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo > /dev/null && { sudo --non-interactive true 2> /dev/null || [ -t 0 ]; }; then
  as_root=(sudo)
else
  echo "setup: missing packages: ${missing[*]}" >&2
  echo "setup: as root, run: apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update
"${as_root[@]}" "${install[@]}"
