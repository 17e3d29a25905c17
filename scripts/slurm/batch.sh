#!/usr/bin/env bash
#SBATCH --job-name=orrery
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --cpus-per-task=1
#SBATCH --signal=B:USR1@30
# One run of Orrery as a Slurm job. What stands after the script is what `orrery run` gets:
#
#   sbatch --account=A --partition=P --nodes=2 --ntasks=16 --time=1:00:00 scripts/slurm/batch.sh configs/llm-64.yaml --output=results.h5
#
# Without --output the results are orrery-JOB.h5, and orrery-JOB.N.h5 the N-th time that Slurm requeues the job. The job's exit code
# is the run's; 75 means that the run was stopped on request, 30 s before the time limit at the latest. With --checkpoint=FILE the
# job then goes back into the queue by itself, and goes on from FILE (submit it with --requeue). More in docs/cluster.md.
#
# ORRERY                 the program (default: orrery in PATH, else build/release/bin/orrery below the folder of submission)
# ORRERY_LAUNCHER        srun (default) or mpirun
# ORRERY_MPI             for srun --mpi= (default: pmix)
# ORRERY_LAUNCH_OPTIONS  more options of the launcher, as "--cpu-bind=cores" or "--bind-to core"
set -euo pipefail

if [ -z "${SLURM_JOB_ID:-}" ]; then
  echo "batch.sh: this is a job: sbatch --ntasks=RANKS [--account=A --partition=P --nodes=N --time=T] $0 CONFIG.yaml [OPTIONS]" >&2
  exit 2
fi
if [ $# -eq 0 ]; then
  echo "batch.sh: what shall run? sbatch ... batch.sh CONFIG.yaml [options of orrery run]" >&2
  exit 2
fi

orrery=${ORRERY:-$(command -v orrery || echo "$SLURM_SUBMIT_DIR/build/release/bin/orrery")}
if [ ! -x "$orrery" ]; then
  echo "batch.sh: $orrery is no program: set ORRERY, or submit from the folder of the repository" >&2
  exit 2
fi
read -ra options <<< "${ORRERY_LAUNCH_OPTIONS:-}"
case "${ORRERY_LAUNCHER:-srun}" in
  srun) launch=(srun --mpi="${ORRERY_MPI:-pmix}" --wait=10 "${options[@]}") ;;
  mpirun) launch=(mpirun "${options[@]}") ;;
  *)
    echo "batch.sh: ORRERY_LAUNCHER=$ORRERY_LAUNCHER: expected srun or mpirun" >&2
    exit 2
    ;;
esac

checkpoint=
for ((i = 1; i <= $#; ++i)); do
  case ${!i} in
    --checkpoint=*) checkpoint=${!i#--checkpoint=} ;;
    --checkpoint) after=$((i + 1)) && checkpoint=${!after:-} ;;
  esac
done

# A run that goes on writes the results that it began to write.
number=${SLURM_RESTART_COUNT:+.$SLURM_RESTART_COUNT}
[ -z "$checkpoint" ] || number=
output=()
case " $* " in
  *" --output"[=\ ]*) ;;
  *) output=(--output="${SLURM_JOB_NAME:-orrery}-$SLURM_JOB_ID$number.h5") ;;
esac

# The launcher takes the place of this shell: so Slurm's signal reaches it, and it passes it on to every rank.
[ -n "$checkpoint" ] || exec "${launch[@]}" "$orrery" run "$@" "${output[@]}"

restart=()
if [ -n "${SLURM_RESTART_COUNT:-}" ] && { [ -e "$checkpoint" ] || [ -e "$checkpoint.previous" ]; }; then
  restart=(--restart="$checkpoint")
fi
begun=$(mktemp)
is_warned=
"${launch[@]}" "$orrery" run "$@" "${restart[@]}" "${output[@]}" &
run=$!
trap 'is_warned=yes; kill -USR1 "$run" || true' USR1
trap 'kill -TERM "$run" || true' TERM
code=0
while true; do  # a signal ends `wait` before the run has ended
  wait "$run" && code=0 || code=$?
  kill -0 "$run" 2> /dev/null || break
done
if [ "$code" = 75 ] && [ -n "$is_warned" ] && [ "$checkpoint" -nt "$begun" ]; then
  rm -f "$begun"
  scontrol requeue "$SLURM_JOB_ID"
  sleep 60  # Slurm ends this job, and it waits in the queue again
fi
rm -f "$begun"
exit "$code"
