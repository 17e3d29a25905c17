#!/usr/bin/python3
"""A rank that is killed, suspended or late at any of its MPI calls: the job ends with the documented code, nothing is lost and no process
is left; a rank that is only late changes nothing. And a run leaves no request, message or communicator open in MPI.

usage: test_rank_faults.py DISTURBER.so CHECKER.so [--all | --every N]

DISTURBER.so (tests/support/disturb_mpi.cpp) is preloaded into the program and disturbs one rank at its N-th MPI call. CHECKER.so
(tests/support/check_mpi.cpp) counts what is open. Without --all, N takes a sample. The system: 6 NPUs that hand a message around and join
an all-reduce, with a timeline."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

WORDS = list(sys.argv)
EVERY = int(WORDS.pop(WORDS.index("--every") + 1)) if "--every" in WORDS else 1 if "--all" in WORDS else None
WORDS = [word for word in WORDS if word not in ("--all", "--every")]
CHECKER, DISTURBER = (WORDS.pop(), WORDS.pop()) if len(WORDS) > 2 else (None, None)
INTERRUPTED, KILLED = 75, 128 + signal.SIGKILL
CALLS_OF_START = 2  # before these calls of a rank, the others wait in the start of MPI
CONFIG = """\
system:
  network:
    dimensions: [{{shape: Ring, size: {npus}, bandwidth: 50 GB/s, latency: 500 ns}}]
workload:
  traces: workload.{{npu}}.et
"""
OUTER_LIMIT = 60  # seconds after which a batch system would kill the job


class RankFaults(harness.Folder):
    def setUp(self):
        super().setUp()
        npus = 6
        traces = [
            [
                Node(1, chakra.COMP, "work", duration=10 + npu),
                Node(2, chakra.SEND, "on", [1], comm_dst=(npu + 1) % npus, comm_tag=1, comm_size=4096),
                Node(3, chakra.RECV, "back", [], comm_src=(npu - 1) % npus, comm_tag=1, comm_size=4096),
                Node(4, chakra.COLL, "sum", [2, 3], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
            ]
            for npu in range(npus)
        ]
        harness.write_workload(self.folder, traces)
        config = self.folder / "config.yaml"
        config.write_text(CONFIG.format(npus=npus))
        self.arguments = [config, "--timeline", "--force"]
        (self.folder / "out").mkdir()
        self.output = self.folder / "out/results.h5"
        self.good = self.folder / "good.h5"

    def start(self, ranks, library, settings, more=()):
        command = harness.launch(["run", *self.arguments, f"--output={self.output}", *more], ranks)
        at = command.index(harness.BINARY)
        command[at:at] = ["env", f"LD_PRELOAD={library}", *(f"{name}={value}" for name, value in settings.items())]
        return harness.Background(self, command)

    def processes(self):
        """Returns the processes of the job that are left."""
        return subprocess.run(
            ["pgrep", "-f", f"orrery run.*{self.folder}"], capture_output=True, text=True
        ).stdout.split()

    def undisturbed(self, ranks):
        """Makes the good file and returns the number of MPI calls of each rank."""
        report = self.folder / "calls"
        outcome = self.start(ranks, DISTURBER, {"DISTURB_REPORT": report}).end()
        self.assertEqual(outcome.code, 0, outcome.err)
        self.output.rename(self.good)
        return [int((self.folder / f"calls.{rank}").read_text()) for rank in range(ranks)]

    def end(self, job, limit):
        """Waits for the end of a job as a batch system with a limit does. Returns its Outcome; the code is None if it had to be killed."""
        try:
            job.process.wait(limit)
        except subprocess.TimeoutExpired:
            for pid in self.processes():
                os.kill(int(pid), signal.SIGKILL)
            job.kill()
            return harness.Outcome(None, "", job.text())
        return harness.Outcome(job.process.returncode, "", job.text())

    def disturb(self, ranks, rank, call, how, more=()):
        """Disturbs one call. Checks that nothing is lost and no process left, and returns the Outcome and whether results are there."""
        self.output.write_bytes(b"older")
        job = self.start(ranks, DISTURBER, {"DISTURB_RANK": rank, "DISTURB_CALL": call, "DISTURB_HOW": how}, more)
        outcome = self.end(job, OUTER_LIMIT if how == "stop" else harness.PATIENCE)
        deadline = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.processes(), [])
        is_new = self.output.read_bytes() != b"older"
        if is_new:
            self.assertEqual(harness.difference(self.good, self.output), "")
        return outcome, is_new

    def disturb_each(self, ranks, how, stride, check, more=()):
        """Disturbs every `stride`-th call of each rank."""
        codes = []
        for rank, calls in enumerate(self.undisturbed(ranks)):
            self.assertGreater(calls, 50)
            step = EVERY or stride
            for call in range(1 + (0 if EVERY else (rank * 7 + 10) % stride), min(calls, 1000) + 1, step):
                with self.subTest(ranks=ranks, rank=rank, call=call, how=how):
                    outcome, is_new = self.disturb(ranks, rank, call, how, more)
                    codes.append(outcome.code)
                    check(outcome, is_new, rank, call)
        tally = {code: codes.count(code) for code in sorted(set(codes), key=str)}
        print(f"{len(codes)} calls of {ranks} ranks disturbed by {how}: exit codes {tally}", flush=True)
        return codes

    def partial_files(self):
        return [path for path in self.output.parent.iterdir() if path != self.output]

    def check_killed(self, outcome, is_new, rank, call):
        self.assertIn(outcome.code, (KILLED, 0 if is_new else KILLED), outcome.err)
        if rank > 0:
            for path in self.partial_files():  # rank 0 was ended by mpirun
                path.unlink()

    def test_killed(self):
        """A rank is killed before an MPI call. mpirun ends the job with 137. A partial file goes with the next run."""
        for ranks in (2,) if harness.GATE else (2, 3):
            codes = self.disturb_each(ranks, "kill", 400 if harness.GATE else 60, self.check_killed)
            self.assertIn(KILLED, codes)
            self.assertEqual(self.start(ranks, DISTURBER, {}).end().code, 0)
            self.assertEqual(self.partial_files(), [])

    def check_undisturbed(self, outcome, is_new, rank, call):
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertTrue(is_new)
        self.assertEqual(self.partial_files(), [])

    @harness.long
    def test_late(self):
        """A rank sleeps, or is suspended for half a second, before an MPI call. This changes nothing."""
        for ranks, how in ((2, "late"), (3, "pause")):
            self.disturb_each(ranks, how, 80, self.check_undisturbed)

    def check_stopped(self, outcome, is_new, rank, call):
        if call <= CALLS_OF_START:
            self.assertIn(outcome.code, (None, INTERRUPTED), outcome.err)
        elif outcome.code is None:
            self.assertTrue(is_new, f"only the end of MPI may last for ever: {outcome.err}")
        else:
            self.assertIn(outcome.code, (0, INTERRUPTED), outcome.err)
            if (
                outcome.code == INTERRUPTED
            ):  # mpirun wakes the rank and kills it a second later; it may say something in this time
                self.assertTrue(1 <= outcome.err.count("orrery: error:") <= 2, outcome.err)
        if rank > 0:
            self.assertEqual(self.partial_files(), [])
        for path in self.partial_files():  # of rank 0, which began it after it was woken
            path.unlink()

    @harness.long
    def test_suspended_for_ever(self):
        """A rank is suspended for ever before an MPI call, in any phase. --max-walltime ends the job with code 75."""
        for ranks in (2, 3):
            codes = self.disturb_each(
                ranks, "stop", 120, self.check_stopped, ("--max-walltime=1", "--set=run.watchdog=10 s")
            )
            self.assertIn(INTERRUPTED, codes)

    def test_nothing_is_left_open(self):
        """Whole runs, interrupted ones and those with several simulations receive each message, complete each request and free each
        communicator."""
        for ranks, code, more in (
            (2, 0, harness.PROGRESS),
            (3, 0, ("--network=congestion-aware",)),
            (3, 0, ("--repetitions=3", "--noise=0.1")),
            (2, INTERRUPTED, (harness.FOR_EVER, "--max-walltime=1", *harness.PROGRESS)),
        ):
            with self.subTest(ranks=ranks, more=more):
                outcome = self.start(ranks, CHECKER, {}, more).end()
                self.assertEqual(outcome.code, code, outcome.err)
                found = re.search(
                    r"MPI: (\d+) sent, (\d+) received, (\d+) requests, (\d+) completed, (-?\d+) communicators open",
                    outcome.err,
                )
                sent, received, requests, completed, communicators = map(int, found.groups())
                self.assertGreater(requests, 10)
                self.assertEqual((sent, requests, communicators), (received, completed, 0), found[0])


if __name__ == "__main__":
    if DISTURBER is None:
        sys.exit("usage: test_rank_faults.py DISTURBER.so CHECKER.so [--all | --every N]")
    harness.main(WORDS)
