#!/usr/bin/env bash
# build.sh [PRESET [OPTION ...]]: configures and builds; PRESET is release (default), debug or asan, and options go to CMake. The
# program is build/PRESET/bin/orrery.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
cmake --preset "$preset" "${@:2}"
cmake --build --preset "$preset"
