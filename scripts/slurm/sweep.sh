#!/usr/bin/env bash
#SBATCH --job-name=orrery-sweep
#SBATCH --output=%x-%A-%a.out
#SBATCH --open-mode=append
#SBATCH --cpus-per-task=1
#SBATCH --signal=B:USR1@30
# A sweep as a Slurm job array, one run for each line of a list:
#
#   sbatch --account=A --partition=P --ntasks=4 --time=0:30:00 --array=1-12 scripts/slurm/sweep.sh LIST FOLDER [ARGUMENT ...]
#
# A line of LIST holds arguments of `orrery run`, quoted as in a shell where they hold blanks (nothing is expanded); empty lines and
# those that begin with # do not count. ARGUMENTs, usually the configuration, stand before those of the line in every run:
#
#   --set 'system.network.dimensions.1.bandwidth=100 GB/s'          # with CONFIG.yaml as ARGUMENT
#   configs/ring-8.yaml --set system.collectives.chunks=8           # without
#
# Run N of the list writes FOLDER/N.h5, with leading zeros; FOLDER is made if it is not there, and nothing in it is replaced. Without
# --array, `scripts/slurm/sweep.sh LIST` outside a job says how many runs there are.
# ORRERY, ORRERY_LAUNCHER, ORRERY_MPI and ORRERY_LAUNCH_OPTIONS are those of batch.sh; more in docs/cluster.md.
set -euo pipefail

if [ $# -lt 1 ] || [ ! -r "$1" ]; then
  echo "sweep.sh: ${1:+$1 cannot be read; }expected: sbatch --array=1-N ... sweep.sh LIST FOLDER [ARGUMENT ...]" >&2
  exit 2
fi
mapfile -t lines < <(grep -vE '^[[:space:]]*(#|$)' "$1")
if [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
  echo "$1: ${#lines[@]} runs: sbatch --array=1-${#lines[@]} --ntasks=RANKS [--account=A --partition=P --time=T] $0 $1 FOLDER [ARGUMENT ...]"
  [ -z "${SLURM_JOB_ID:-}" ] || exit 2
  exit 0
fi
if [ $# -lt 2 ]; then
  echo "sweep.sh: in which folder? sbatch --array=1-${#lines[@]} ... sweep.sh LIST FOLDER [ARGUMENT ...]" >&2
  exit 2
fi
folder=$2
shift 2
if [ "$SLURM_ARRAY_TASK_ID" -lt 1 ] || [ "$SLURM_ARRAY_TASK_ID" -gt ${#lines[@]} ]; then
  echo "sweep.sh: there is no run $SLURM_ARRAY_TASK_ID: the list has runs 1 to ${#lines[@]}" >&2
  exit 2
fi
line=${lines[SLURM_ARRAY_TASK_ID - 1]}
mapfile -d '' -t arguments < <(xargs printf '%s\0' <<< "$line")

# Slurm runs a copy of this script, whose folder holds nothing else; the job knows where the script was.
job=$(scontrol show job --oneliner "$SLURM_JOB_ID")
scripts=${job#* Command=}
batch=${scripts%%sweep.sh*}batch.sh
if [ ! -x "$batch" ]; then
  echo "sweep.sh: $batch is no program: keep sweep.sh beside batch.sh, which starts each run" >&2
  exit 2
fi

mkdir -p "$folder"
runs=${#lines[@]}
printf -v name '%0*d' "${#runs}" "$SLURM_ARRAY_TASK_ID"
echo "run $SLURM_ARRAY_TASK_ID: $line"
exec "$batch" "$@" "${arguments[@]}" --output="$folder/$name${SLURM_RESTART_COUNT:+.$SLURM_RESTART_COUNT}.h5"
