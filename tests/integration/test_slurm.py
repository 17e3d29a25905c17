#!/usr/bin/python3
"""scripts/slurm on a real Slurm that the test starts: two emulated nodes of two CPUs each on this machine.

The system of most tests: one step of 8 NPUs on a ring, on two nodes with one rank each, started by srun and by mpirun."""
import csv
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import slurm_cluster  # noqa: E402

SCRIPTS = harness.SOURCE / "scripts/slurm"
BATCH, SWEEP, SCALING = SCRIPTS / "batch.sh", SCRIPTS / "sweep.sh", SCRIPTS / "scaling.py"
BINARY = str(pathlib.Path(harness.BINARY).resolve())
LIMIT = 1200  # seconds for everything, against hangs: then the cluster is stopped and the test fails
TWO_NODES = ("--nodes=2", "--ntasks=2", "--ntasks-per-node=1")
LAUNCHERS = ("srun", "mpirun")
ENDLESS = (harness.FOR_EVER, *harness.PROGRESS)
EIGHT = "--tp 8 --pp 1 --dp 1 --layers 2 --micro-batches 2"  # of orrery generate, for configs/ring-8.yaml

# Stands in for the program: says that it is there, and which of its ranks are told to stop.
PROBE = """#!/bin/bash
rank=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}
trap 'touch "$PROBE_FOLDER/told-$rank"; exit 75' USR1
touch "$PROBE_FOLDER/there-$rank"
for i in {1..6000}; do sleep 0.1; done
exit 1
"""

slurm = None


class Slurm(harness.Folder):
    @classmethod
    def setUpClass(cls):
        """Starts the cluster, or skips the tests where no Slurm can be started."""
        global slurm
        try:
            slurm_cluster.check_available()
        except (slurm_cluster.Unavailable, subprocess.TimeoutExpired) as why:
            raise unittest.SkipTest(f"no Slurm can be started here: {why}") from None
        slurm = slurm_cluster.Cluster().__enter__()
        cls.addClassCleanup(slurm.stop)
        slurm.environment["ORRERY"] = BINARY

    def setUp(self):
        super().setUp()
        self.addCleanup(slurm.cancel_all)
        generated = harness.orrery("generate", *EIGHT.split(), f"--output={self.folder}/workload")
        self.assertEqual(generated.code, 0, generated.err)
        self.run_arguments = [
            f"{harness.SOURCE}/configs/ring-8.yaml",
            "--set",
            f"workload.traces={self.folder}/workload",
            "--set",
            f"workload.groups={self.folder}/workload.json",
        ]

    def submit(self, *arguments, script=BATCH, options=TWO_NODES, **environment):
        """Submits a script with arguments and environment variables. Returns the number of the job."""
        return slurm.sbatch(
            script, *arguments, options=[f"--output={self.folder}/%x-%j.out", *options], env=environment
        )

    def log(self, job):
        """Returns what a job has printed."""
        return "".join(path.read_text(errors="replace") for path in self.folder.glob(f"*-{job}.out"))

    def check_end(self, job, state, code):
        """Waits for the end of a job and checks its state and exit code."""
        self.assertEqual(slurm.wait(job), (state, code), self.log(job))

    def wait_until_simulating(self, job):
        """Waits until a job with the options PROGRESS has printed its progress."""
        slurm.until(lambda: self.log(job).count(" of nodes, ") > 1, f"job {job} simulates")

    def status(self, path):
        """Returns the status and the number of ranks of results."""
        import h5py

        with h5py.File(path) as results:
            return results.attrs["status"], int(results.attrs["num_ranks"])

    # ---- one run ----

    def test_batch_gives_the_answer_of_a_run_without_slurm(self):
        """batch.sh runs on both nodes with either launcher, and the results are those of a run without Slurm."""
        alone = self.run_once(self.run_arguments, "alone.h5")
        jobs = {
            launcher: self.submit(
                *self.run_arguments, f"--output={self.folder}/{launcher}.h5", "--quiet", ORRERY_LAUNCHER=launcher
            )
            for launcher in LAUNCHERS
        }
        for launcher, job in jobs.items():
            self.check_end(job, "COMPLETED", 0)
            self.assertEqual(self.status(self.folder / f"{launcher}.h5"), ("complete", 2), launcher)
            self.assertEqual(harness.difference(alone, self.folder / f"{launcher}.h5"), "", launcher)
            (described,) = slurm.job(job)
            self.assertEqual((described["NodeList"], described["NumTasks"]), ("n[1-2]", "2"), launcher)

    @harness.long
    def test_results_of_a_requeued_job_have_a_name_of_their_own(self):
        """A job that has ended is requeued. Its second run writes orrery-JOB.1.h5 beside orrery-JOB.h5."""
        job = self.submit(
            *self.run_arguments,
            "--quiet",
            options=["--ntasks=1", f"--chdir={self.folder}", "--account=physics", "--partition=all"],
        )
        self.check_end(job, "COMPLETED", 0)
        self.assertEqual(self.status(self.folder / f"orrery-{job}.h5"), ("complete", 1))
        (described,) = slurm.job(job)
        self.assertEqual(described["Account"], "physics")
        slurm.until(
            lambda: "IDLE" in slurm.command("scontrol", "show", "node", described["NodeList"]),
            "the node is done with the first time",
        )
        slurm.command("scontrol", "requeue", job)
        # Not at once: slurmd refuses a job whose credential it revoked in the same second.
        slurm.command("scontrol", "update", f"JobId={job}", "StartTime=now+2")
        self.check_end(job, "COMPLETED", 0)
        self.assertEqual(self.status(self.folder / f"orrery-{job}.1.h5"), ("complete", 1))

    @harness.long
    def test_srun_and_mpirun_work_in_an_allocation(self):
        """Within salloc, `srun --mpi=pmix` and `mpirun` start the program on both nodes, and the results are those of a run without
        Slurm."""
        alone = self.run_once(self.run_arguments, "alone.h5")
        launches = {"srun": ["srun", "--mpi=pmix"], "mpirun": ["mpirun"]}
        for launcher, launch in launches.items():
            path = self.folder / f"{launcher}.h5"
            done = slurm.run(
                "salloc", *TWO_NODES, *launch, BINARY, "run", *self.run_arguments, f"--output={path}", "--quiet"
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.status(path), ("complete", 2), launcher)
            self.assertEqual(harness.difference(alone, path), "", launcher)

    # ---- what goes wrong ----

    @harness.long
    def test_a_launcher_without_mpi_is_refused(self):
        """`srun --mpi=none` starts two programs that do not know of each other. They refuse with exit code 2 and name the right option."""
        done = slurm.run(
            "srun", "--mpi=none", *TWO_NODES, BINARY, "run", *self.run_arguments, f"--output={self.folder}/wrong.h5"
        )
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("srun --mpi=pmix", done.stderr)
        self.assertFalse((self.folder / "wrong.h5").exists())

    @harness.long
    def test_exit_codes_reach_slurm(self):
        """Bad input, an existing results file, an unknown launcher and a missing program end the job with the exit codes 3, 5, 2 and 2,
        and a message."""
        kept = self.run_once(self.run_arguments, "kept.h5")
        before = kept.read_bytes()
        jobs = []
        for launcher in LAUNCHERS:
            jobs += [
                (self.submit("missing.yaml", ORRERY_LAUNCHER=launcher), 3, "missing.yaml"),
                (self.submit(*self.run_arguments, f"--output={kept}", ORRERY_LAUNCHER=launcher), 5, "kept.h5"),
            ]
        jobs.append((self.submit(*self.run_arguments, ORRERY_LAUNCHER="launch"), 2, "srun or mpirun"))
        jobs.append((self.submit(*self.run_arguments, ORRERY="none"), 2, "none is no program"))
        for job, code, word in jobs:
            self.check_end(job, "FAILED", code)
            self.assertIn(word, self.log(job))
        self.assertEqual(kept.read_bytes(), before)

    @harness.long
    def test_a_killed_rank_ends_the_job(self):
        """One of two simulating ranks is killed. Slurm sees the job fail, with no results and an exit code that stands for nothing
        else."""
        for launcher in LAUNCHERS:
            job = self.submit(
                *self.run_arguments, *ENDLESS, f"--output={self.folder}/{launcher}.h5", ORRERY_LAUNCHER=launcher
            )
            self.wait_until_simulating(job)
            ranks = [pid for pid in slurm_cluster.children_of_this() if is_program(pid)]
            self.assertEqual(len(ranks), 2)
            os.kill(max(ranks), signal.SIGKILL)
            state, code = slurm.wait(job)
            self.assertEqual(state, "FAILED", self.log(job))
            self.assertNotIn(code, (0, 75))
            self.assertFalse((self.folder / f"{launcher}.h5").exists())

    # ---- signals ----

    @harness.long
    def test_a_signal_reaches_every_rank(self):
        """A signal to the batch script, as before the time limit, reaches both ranks with either launcher."""
        (self.folder / "probe").write_text(PROBE)
        (self.folder / "probe").chmod(0o755)
        jobs = {}
        for launcher in LAUNCHERS:
            (self.folder / launcher).mkdir()
            jobs[launcher] = self.submit(
                "none",
                ORRERY=f"{self.folder}/probe",
                PROBE_FOLDER=f"{self.folder}/{launcher}",
                ORRERY_LAUNCHER=launcher,
            )
        for launcher, job in jobs.items():
            slurm.until(lambda: len(list((self.folder / launcher).glob("there-*"))) == 2, f"ranks under {launcher}")
            slurm.command("scancel", "--signal=USR1", "--batch", job)
        for launcher, job in jobs.items():
            self.check_end(job, "FAILED", 75)
            self.assertEqual(
                sorted(path.name for path in (self.folder / launcher).glob("told-*")),
                ["told-0", "told-1"],
                self.log(job),
            )

    @harness.long
    def test_a_job_stops_before_its_time_limit(self):
        """The time limit of simulating jobs is drawn near. Slurm warns at its next look at the limits of jobs, every 30 s; the runs
        then stop with exit code 75 and interrupted results."""
        jobs = {}
        for launcher in LAUNCHERS:
            jobs[launcher] = self.submit(
                *self.run_arguments,
                *ENDLESS,
                f"--output={self.folder}/{launcher}.h5",
                options=[*TWO_NODES, "--time=10"],
                ORRERY_LAUNCHER=launcher,
            )
        for job in jobs.values():
            self.wait_until_simulating(job)
            minutes, seconds = map(int, slurm.job(job)[0]["RunTime"].split(":")[-2:])
            slurm.command("scontrol", "update", f"JobId={job}", f"TimeLimit={minutes + (1 if seconds < 20 else 2)}")
        for launcher, job in jobs.items():
            self.check_end(job, "FAILED", 75)
            self.assertEqual(self.status(self.folder / f"{launcher}.h5"), ("interrupted", 2), self.log(job))
            harness.check_identity(self, self.folder / f"{launcher}.h5")

    @harness.long
    def test_a_job_with_a_checkpoint_goes_on_by_itself(self):
        """A simulating job with a checkpoint is warned as before its time limit. It requeues itself, goes on from the checkpoint, and ends
        with the results of a run that was not stopped."""
        arguments = [*self.run_arguments, "--noise=0.1", "--iterations=3000"]
        job = self.submit(
            *arguments,
            *harness.PROGRESS,
            f"--output={self.folder}/results.h5",
            f"--checkpoint={self.folder}/run.chk",
            options=[*TWO_NODES, "--requeue"],
        )
        alone = self.run_once(arguments, "alone.h5")
        self.wait_until_simulating(job)
        slurm.command("scancel", "--signal=USR1", "--batch", job)
        slurm.until(lambda: slurm.job(job)[0]["JobState"] == "PENDING", "the job is in the queue again")
        slurm.command("scontrol", "update", f"JobId={job}", "StartTime=now+2")
        self.check_end(job, "COMPLETED", 0)
        self.assertIn("goes on from there", self.log(job))
        self.assertEqual(self.status(self.folder / "results.h5"), ("complete", 2))
        self.assertEqual(harness.difference(alone, self.folder / "results.h5"), "")

    # ---- many runs ----

    @harness.long
    def test_a_sweep_runs_every_line_of_the_list(self):
        """sweep.sh as an array of 5 jobs over a list of 4 settings: each setting gives the results of a run without Slurm, and the job
        without a setting fails."""
        chunks = [1, 2, 4, 8]
        listed = self.folder / "list"
        latency = "system.network.dimensions.0.latency=1 us"
        listed.write_text(
            "# chunks\n" + "".join(f"--set system.collectives.chunks={n} --set '{latency}'\n\n" for n in chunks)
        )
        counted = slurm.run(SWEEP, listed)
        self.assertIn("--array=1-4", counted.stdout)
        folder = self.folder / "sweep"
        job = self.submit(
            listed, folder, *self.run_arguments, "--quiet", script=SWEEP, options=["--ntasks=1", "--array=1-5"]
        )
        ends = slurm.wait(job)
        self.assertEqual(ends, [("COMPLETED", 0)] * 4 + [("FAILED", 2)], slurm.logs())
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["1.h5", "2.h5", "3.h5", "4.h5"])
        for number, n in enumerate(chunks, 1):
            alone = self.run_once(
                [*self.run_arguments, "--set", f"system.collectives.chunks={n}", "--set", latency], f"{n}.h5"
            )
            self.assertEqual(harness.difference(alone, folder / f"{number}.h5"), "", f"{n} chunks")

    def scaling(self, *arguments, cwd=None):
        return slurm.run("/usr/bin/python3", SCALING, *arguments, cwd=cwd or self.folder)

    @harness.long
    def test_a_scaling_study_gathers_all_runs(self):
        """scaling.py submits strong and weak scaling on 1 and 2 ranks, gathers a table and a picture, refuses to write over a study,
        and names a run without results."""
        study = self.folder / "study"
        common = ["--account=physics", "--partition=all", "--nodes=2"]
        strong = self.scaling(
            "submit",
            "strong",
            study,
            "--ranks=1,2",
            *common,
            "--sbatch=--comment=scaling",
            "--",
            *self.run_arguments,
            "--quiet",
        )
        self.assertEqual(strong.returncode, 0, strong.stderr)
        weak = self.scaling(
            "submit",
            "weak",
            study,
            "--ranks=1,2",
            *common,
            "--launcher=mpirun",
            "--one-at-a-time",
            "--wait",
            "--generate=--tp {8*ranks} --pp 1 --dp 1 --layers 2 --micro-batches 2",
            "--",
            f"{harness.SOURCE}/configs/ring-8.yaml",
            "--set",
            "system.network.dimensions.0.size={8*ranks}",
            "--quiet",
        )
        self.assertEqual(weak.returncode, 0, weak.stdout + weak.stderr)
        with open(study / "scaling.csv") as text:
            rows = list(csv.DictReader(text))
        self.assertEqual(
            [(row["kind"], row["ranks"], row["npus"], row["runs"]) for row in rows],
            [("strong", "1", "8", "1"), ("strong", "2", "8", "1"), ("weak", "1", "8", "1"), ("weak", "2", "16", "1")],
        )
        self.assertEqual([row["efficiency"] for row in rows if row["ranks"] == "1"], ["1.0", "1.0"])
        self.assertTrue(all(float(row["speedup"]) > 0 for row in rows))
        self.assertEqual((study / "scaling.md").read_text().count("\n"), 6)
        self.assertEqual((study / "scaling.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        again = self.scaling("submit", "strong", study, "--ranks=2", "--", *self.run_arguments)
        self.assertEqual(again.returncode, 5, again.stderr)
        (study / "weak-2-1.h5").unlink()
        partial = self.scaling("gather", study)
        self.assertEqual(partial.returncode, 1, partial.stderr)
        self.assertIn("weak-2-1 is left out: no results", partial.stdout)


def is_program(pid):
    """Returns whether a process is the program."""
    try:
        return pathlib.Path(f"/proc/{pid}/exe").resolve() == pathlib.Path(BINARY)
    except OSError:
        return False


def main():
    def too_long(*_):
        raise harness.TookTooLong(f"not done after {LIMIT} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.alarm(LIMIT)
    harness.main()


if __name__ == "__main__":
    main()
