#!/usr/bin/python3
"""The limit of wall time, signals and the watchdog hold in every phase: while inputs are read and while results are written, also if a
disk does not answer or a rank is suspended there. What gets on, however slowly, is not cut off.

usage: test_phases.py DISTURBER.so

DISTURBER.so (tests/support/disturb_files.cpp) is preloaded into the program; an operation on a file never ends, takes longer, or suspends
the process. The system: 4 NPUs with traces of their own. run.watchdog is 20 s, so that a run that was asked to stop has 2 s without any
heartbeat."""
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

DISTURBER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
BY_WATCHDOG, OUTPUT, INTERRUPTED = 1, 5, 75
PATIENCE = ("--set=run.watchdog=20 s",)
WRITES = {"DISTURB_PATH": ".partial.", "DISTURB_WRITES": 1}
TRACE = {"DISTURB_PATH": "w.3.et"}  # of rank 1, where there are two


def state(pid):
    """Returns the letter of a process's state, or nothing if the process has ended: mpirun starts some that end soon."""
    try:
        return re.search(r"State:\s*(\w)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Phases(harness.Folder):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config.yaml"
        self.config.write_text(
            "system:\n  network:\n    dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}]\n"
            "workload:\n  traces: w.{npu}.et\n"
        )
        for npu in range(4):
            chakra.write(
                self.folder / f"w.{npu}.et",
                [
                    Node(1, chakra.COMP, "work", duration=5 + npu),
                    Node(2, chakra.COLL, "sum", [1], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
                ],
            )
        (self.folder / "out").mkdir()
        self.output = self.folder / "out/results.h5"
        self.output.write_bytes(b"older")
        self.begun = self.folder / "begun"

    def start(self, how, where, first, *more, ranks=0, rank=0, count=1):
        command = harness.launch(
            [
                "run",
                self.config,
                "--timeline",
                "--quiet",
                "--force",
                "--progress=none",
                f"--output={self.output}",
                *more,
            ],
            ranks,
        )
        at = command.index(harness.BINARY)
        self.begun.unlink(missing_ok=True)
        settings = {
            "DISTURB_BEGUN": self.begun,
            "DISTURB_HOW": how,
            "DISTURB_FIRST": first,
            "DISTURB_COUNT": count,
            "DISTURB_RANK": rank,
            **where,
        }
        command[at:at] = ["env", f"LD_PRELOAD={DISTURBER}", *(f"{name}={value}" for name, value in settings.items())]
        return harness.Background(self, command)

    def partial_files(self):
        return [path for path in self.output.parent.iterdir() if path != self.output]

    def assert_ended(self, job, code, message, suspended=False):
        """Checks the end of a job that cannot end in order: one message, and nothing else in the folder of the results than before. mpirun
        wakes a rank that is suspended, and kills it a second later. The rank may say something in this time."""
        outcome = job.end()
        self.assertEqual(outcome.code, code, outcome.err)
        errors = [line for line in outcome.err.splitlines() if "orrery: error:" in line]
        self.assertTrue(1 <= len(errors) <= (2 if suspended else 1), outcome.err)
        self.assertRegex(errors[0], message)
        self.assertEqual(self.output.read_bytes(), b"older")
        self.assertEqual(self.partial_files(), [])

    def wait_until_suspended(self, job, ranks):
        job.wait_until(lambda: any(state(pid) == "T" for pid in job.ranks()), "suspended")

    @harness.long
    def test_the_limit_while_traces_are_read(self):
        """A trace cannot be read, or the rank that reads it is suspended. --max-walltime ends the run with 75."""
        for how, ranks, rank in (("hang", 0, 0), ("hang", 2, 1), ("stop", 2, 1)):
            with self.subTest(how=how, ranks=ranks):
                job = self.start(how, TRACE, 3, "--max-walltime=2", *PATIENCE, ranks=ranks, rank=rank)
                self.assert_ended(job, INTERRUPTED, "stopped by the wall-time limit", how == "stop")

    def test_a_signal_while_traces_are_read(self):
        """SIGUSR1 ends a run of two ranks of which one is suspended while it reads."""
        job = self.start("stop", TRACE, 3, *PATIENCE, ranks=2, rank=1)
        self.wait_until_suspended(job, 2)
        job.signal("SIGUSR1")
        self.assert_ended(
            job,
            INTERRUPTED,
            r"stopped by SIGUSR1, but rank 0 .* for 2 s before or after the simulation\. No results are written",
            True,
        )

    @harness.long
    def test_the_watchdog_while_traces_are_read(self):
        """Without a limit, the watchdog ends a run of two ranks of which one is suspended while it reads."""
        job = self.start("stop", TRACE, 3, "--set=run.watchdog=2 s", ranks=2, rank=1)
        self.assert_ended(
            job,
            BY_WATCHDOG,
            r"rank 0 .* has waited \d+ s for other ranks before or after the simulation \(run.watchdog\)",
            True,
        )

    @harness.long
    def test_a_stop_while_results_are_written(self):
        """The disk does not answer, in the middle of the writing or when the file is synced. A signal or the limit ends the run with 75 and
        without a partial file. So it does if rank 0, which writes, is suspended."""
        for how, first, ranks, name in (
            ("hang", 60, 0, "SIGTERM"),
            ("stop", 60, 2, "SIGUSR1"),
            ("hang", 60, 3, "SIGUSR1"),
        ):
            with self.subTest(how=how, first=first, ranks=ranks):
                job = self.start(how, WRITES, first, *PATIENCE, ranks=ranks)
                job.wait_until(self.begun.exists, "writing")
                if how == "stop":
                    self.wait_until_suspended(job, ranks)
                job.signal(name)
                self.assert_ended(
                    job,
                    INTERRUPTED,
                    f"stopped by {name}, but rank [01] .* for 2 s while results were written. No results are written",
                    how == "stop",
                )

    @harness.long
    def test_the_limit_while_results_are_written(self):
        """The disk does not answer while results are written, and --max-walltime ends the run with 75."""
        job = self.start("hang", WRITES, 60, "--max-walltime=6", *PATIENCE)
        self.assert_ended(job, INTERRUPTED, "stopped by the wall-time limit, but rank 0 .* while results were written")

    @harness.long
    def test_the_watchdog_while_results_are_written(self):
        """Without a limit, the watchdog ends a run that cannot write, with 5. So it does if rank 0 is suspended."""
        for how, ranks in (("hang", 0), ("stop", 2)):
            with self.subTest(how=how, ranks=ranks):
                job = self.start(how, WRITES, 60, "--set=run.watchdog=2 s", ranks=ranks)
                self.assert_ended(
                    job,
                    OUTPUT,
                    "no results can be written: rank [01] .* has seen nothing get on for 2 s",
                    how == "stop",
                )

    def test_the_end_names_the_checkpoint(self):
        """A run that writes checkpoints is stopped, and the disk does not answer while its results are written. The message names the
        checkpoint from which the run goes on."""
        checkpoint = self.folder / "run.chk"
        job = self.start(
            "hang",
            {**WRITES, "DISTURB_PATH": "results.h5.partial."},
            20,
            *PATIENCE,
            "--iterations=100000000",
            f"--checkpoint={checkpoint}",
            "--checkpoint-interval=0.1",
        )
        job.wait_until(checkpoint.exists, "a checkpoint")
        job.signal("SIGUSR1")
        self.assert_ended(
            job,
            INTERRUPTED,
            f"while results were written. No results are written, and none replaced. --restart={checkpoint} goes on",
        )

    @harness.long
    def test_slow_writing_is_not_cut_off(self):
        """A signal comes while results are written, and the disk is slow: longer in all than a run without heartbeats may last. The
        results are whole."""
        good = self.folder / "good.h5"
        self.assertEqual(harness.orrery("run", self.config, "--timeline", "--quiet", f"--output={good}").code, 0)
        for ranks, name in ((0, "SIGTERM"), (2, "SIGUSR1")):
            with self.subTest(ranks=ranks):
                job = self.start("slow", WRITES, 20, *PATIENCE, ranks=ranks, count=100)
                job.wait_until(self.begun.exists, "writing")
                job.signal(name)
                self.assertEqual(job.end().code, 0, job.text())
                self.assertEqual(harness.difference(good, self.output), "")

    @harness.long
    def test_suspended_as_a_whole(self):
        """A job whose processes are all suspended, as a batch system does it, goes on when it is woken."""
        job = self.start("slow", WRITES, 20, "--set=run.watchdog=3 s", ranks=2, count=60)
        job.wait_until(self.begun.exists, "writing")
        ranks = job.ranks()
        for pid in ranks:
            os.kill(pid, signal.SIGSTOP)
        job.wait_until(lambda: all(state(pid) == "T" for pid in ranks), "suspended")
        time.sleep(6)
        for pid in ranks:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(job.end().code, 0, job.text())

    def test_check_prints_once(self):
        """`check` on three ranks prints what it prints on one."""
        alone, three = (harness.orrery("check", self.config, ranks=ranks) for ranks in (0, 3))
        self.assertEqual((alone.code, three.code), (0, 0), three.err)
        self.assertGreater(len(alone.out), 20)
        self.assertEqual(re.sub(r"[\d.]+ m?s\b", "", three.out), re.sub(r"[\d.]+ m?s\b", "", alone.out))


if __name__ == "__main__":
    if DISTURBER is None:
        sys.exit("usage: test_phases.py DISTURBER.so")
    harness.main()
