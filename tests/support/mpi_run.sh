#!/usr/bin/env bash
# mpi_run.sh RANKS PROGRAM [ARGUMENT ...]: mpirun with what root and more ranks than cores need.
set -eu
ranks=$1
shift
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if [ "$ranks" -gt "$(nproc)" ]; then
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
fi
exec mpirun -np "$ranks" "$@"
