#!/usr/bin/env bash
# mpirun.sh RANKS PROGRAM [ARGUMENT ...]: mpirun with what root and more ranks than cores need, and nothing else.
set -eu
ranks=$1
shift
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if [ "$ranks" -gt "$(nproc)" ]; then
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
fi
# Open MPI and its plug-ins leak on purpose: programs under the address sanitizer are checked for leaks without mpirun.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}"
exec mpirun -np "$ranks" "$@"
