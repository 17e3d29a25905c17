#!/usr/bin/python3
"""Every operation on files fails once: the run ends in order with one message, or its results are those of an undisturbed run.

usage: test_file_faults.py DISTURBER.so [--all]

DISTURBER.so (tests/support/disturb_files.cpp) is preloaded into the program. It disturbs the N-th operation on a file of the test's
folder: the reading of the configuration, of communicators and traces, the partition, the checks of the output, and the writing and reading
back of results. Without --all, N takes a sample. The system: 4 NPUs with traces of their own, two communicators and a timeline."""
import errno
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

ALL = "--all" in sys.argv
ARGUMENTS = [word for word in sys.argv if word != "--all"]
DISTURBER = ARGUMENTS.pop() if ARGUMENTS[-1].endswith(".so") else None
BAD_INPUT, OUTPUT, KILLED = 3, 5, -9

CONFIG = """\
system:
  network:
    dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}]
workload:
  traces: w.{npu}.et
  groups: groups.json
run:
  partition: map
"""


class FileFaults(harness.Folder):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config.yaml"
        self.config.write_text(CONFIG)
        (self.folder / "groups.json").write_text('{"a": [0, 1], "b": [2, 3]}')
        (self.folder / "map").write_text("0\n" * 4)
        for npu in range(4):
            chakra.write(
                self.folder / f"w.{npu}.et",
                [
                    Node(1, chakra.COMP, "work", duration=5 + npu),
                    Node(
                        2,
                        chakra.COLL,
                        "sum",
                        [1],
                        comm_type=chakra.ALL_REDUCE,
                        comm_size=1 << 20,
                        pg_name="ab"[npu // 2],
                    ),
                ],
            )
        (self.folder / "out").mkdir()
        self.output = self.folder / "out/results.h5"
        self.good = self.folder / "good.h5"

    def run_disturbed(self, ranks=0, **disturbance):
        """Runs the program and returns its Outcome and the number of operations."""
        report = self.folder.with_suffix(".calls")  # beside the folder, so that it does not count
        command = harness.launch(
            ["run", self.config, "--timeline", "--quiet", "--force", "--progress=none", f"--output={self.output}"],
            ranks,
        )
        at = command.index(harness.BINARY)
        settings = [f"{name}={value}" for name, value in disturbance.items()]
        command[at:at] = [
            "env",
            f"LD_PRELOAD={DISTURBER}",
            f"DISTURB_PATH={self.folder}/",
            f"DISTURB_REPORT={report}",
            *settings,
        ]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE
        )
        try:
            calls = int(report.read_text())
            report.unlink()
        except FileNotFoundError:  # it was killed
            calls = 0
        return harness.Outcome(done.returncode, done.stdout, done.stderr), calls

    def undisturbed(self, ranks=0, **chosen):
        """Makes the good file and returns the number of operations."""
        outcome, calls = self.run_disturbed(ranks, **chosen)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.output.rename(self.good)
        self.assertGreater(calls, 20)
        return calls

    def partial_files(self):
        return [path.name for path in self.output.parent.iterdir() if path != self.output]

    def check(self, outcome, reason=""):
        """Checks that results are as those of an undisturbed run after success, and else the older file and one message that gives the
        system's reason. Returns the exit code."""
        self.assertEqual(self.partial_files(), [])
        if outcome.code == 0:
            self.assertNotEqual(self.output.read_bytes(), b"older", "a run that succeeds writes its results")
            self.assertEqual(harness.difference(self.good, self.output), "")
        else:
            self.assertIn(outcome.code, (BAD_INPUT, OUTPUT), outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            self.assertIn(reason, outcome.err)
            self.assertEqual(self.output.read_bytes(), b"older")
        return outcome.code

    def disturb_each(self, how, stride, ranks=0, **chosen):
        """Disturbs every `stride`-th operation, one in each run. Returns the exit codes."""
        calls = self.undisturbed(ranks, **chosen)
        stride *= 3 if harness.GATE else 1
        codes = []
        for first in range(1 + (0 if ALL else stride // 2), calls + 1, 1 if ALL else stride):
            with self.subTest(first=first, how=how, ranks=ranks):
                self.output.write_bytes(b"older")
                outcome, _ = self.run_disturbed(ranks, DISTURB_FIRST=first, DISTURB_HOW=how, **chosen)
                codes.append(self.check(outcome, os.strerror(how) if isinstance(how, int) else ""))
        print(
            f"{len(codes)} of {calls} operations disturbed by {how} on {ranks or 1} ranks: exit codes {sorted(set(codes))}",
            flush=True,
        )
        return codes

    def test_errors(self):
        """One operation fails, because the disk is full, broken or interrupted by a signal."""
        for code, stride in ((errno.EIO, 12), (errno.ENOSPC, 25), (errno.EINTR, 25)):
            codes = self.disturb_each(code, stride)
            if code == errno.EIO:
                self.assertIn(BAD_INPUT, codes)
                self.assertIn(OUTPUT, codes)

    def test_errors_that_stay(self):
        """All operations fail from one on."""
        codes = self.disturb_each(errno.EIO, 25, DISTURB_COUNT=1 << 30)
        self.assertNotIn(0, codes[:-2])

    @harness.long
    def test_short_operations(self):
        """One read or write moves one byte, or all of them do. This changes nothing."""
        codes = self.disturb_each("short", 25)
        self.assertEqual(set(codes), {0})
        outcome, calls = self.run_disturbed(DISTURB_FIRST=1, DISTURB_COUNT=1 << 30, DISTURB_HOW="short")
        self.assertEqual(self.check(outcome), 0, outcome.err)
        self.assertGreater(calls, 1000)

    @harness.long
    def test_slow_operations(self):
        """One operation takes 50 ms longer."""
        self.assertEqual(set(self.disturb_each("slow", 50)), {0})

    @harness.long
    def test_kills(self):
        """The process is killed at an operation. The older file, or the whole new one, is there. A partial file goes with the next run."""
        calls = self.undisturbed()
        for first in range(1, calls + 1, 1 if ALL else 25):
            with self.subTest(first=first):
                self.output.write_bytes(b"older")
                outcome, _ = self.run_disturbed(DISTURB_FIRST=first, DISTURB_HOW="kill")
                self.assertEqual(outcome.code, KILLED)
                if self.output.read_bytes() != b"older":
                    self.assertEqual(harness.difference(self.good, self.output), "")
        self.assertEqual(self.run_disturbed()[0].code, 0)
        self.assertEqual(self.partial_files(), [])

    @harness.long
    def test_ranks(self):
        """One of two ranks meets the fault: rank 0, which writes, or rank 1, which only reads."""
        (self.folder / "map").write_text("0\n1\n" * 2)
        for rank in (0, 1):
            codes = self.disturb_each(errno.EIO, 60 if rank == 0 else 12, ranks=2, DISTURB_RANK=rank)
            self.assertIn(BAD_INPUT, codes)


if __name__ == "__main__":
    if DISTURBER is None:
        sys.exit("usage: test_file_faults.py DISTURBER.so [--all]")
    harness.main(ARGUMENTS)
