#!/usr/bin/env bash
# build.sh [PRESET]: configures and builds; PRESET is release (default), debug or asan. The program is build/PRESET/bin/orrery.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
cmake --preset "$preset"
cmake --build --preset "$preset"
