#!/usr/bin/python3
"""A disk that is full, or fails, while checkpoints are written: the run goes on, an older checkpoint stays, and the results are right.

usage: test_checkpoint_faults.py DISTURBER.so

DISTURBER.so (tests/support/disturb_files.cpp) is preloaded into the program and fails some of the calls that create, write, sync, close
and rename the partial file of the checkpoint. The system: a training step of 64 NPUs, some iterations."""
import errno
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import checkpoints  # noqa: E402
import harness  # noqa: E402

DISTURBER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
SMALL = [harness.SOURCE / "configs/llama3-8b-64.yaml", "--set=workload.model.layers=4", "--noise=0.05"]
FAILED = "no checkpoint could be written"
WRITTEN = "checkpoint at simulated"
OF_TRIAL = 4  # the trial before a run takes at most so many operations


class Faults(checkpoints.KilledRuns):
    often = "--checkpoint-interval=0.001"  # these runs are short

    def run_with(self, *arguments, **failures):
        """Runs a simulation with the disturber. Returns its outcome, and the number of calls."""
        report = self.folder / "calls"
        values = {name: str(value) for name, value in failures.items()}
        environment = dict(
            os.environ, LD_PRELOAD=DISTURBER, DISTURB_REPORT=str(report), DISTURB_PATH="run.chk.partial.", **values
        )
        command = harness.launch(
            [
                "run",
                *SMALL,
                f"--checkpoint={self.file}",
                self.often,
                f"--output={self.folder}/run.h5",
                "--force",
                "--progress=none",
                *arguments,
            ]
        )
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE, env=environment
        )
        return done, int(report.read_text())

    def check_left(self, whole, *arguments):
        """Checks that what is left is whole: a run goes on from it to the results of one that was never stopped."""
        left = sorted(path.name for path in self.folder.glob("run.chk*"))
        self.assertTrue(set(left) <= {"run.chk", "run.chk.previous"}, left)
        if not left:
            return
        after = self.run_once([*SMALL, *arguments, f"--restart={self.file}"], "after.h5")
        self.assertEqual(harness.difference(whole, after), "")

    def test_each_call(self):
        """One call fails, then three, then all from there on, each call in turn: the run ends as if nothing had failed, with a warning for
        each checkpoint that could not be written."""
        whole = self.run_once([*SMALL, "--iterations=2"], "whole.h5")
        done, calls = self.run_with("--iterations=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        per_checkpoint = calls // max(done.stderr.count(WRITTEN), 1)
        self.assertGreater(per_checkpoint, 10, "creates, writes, syncs, closes and renames")
        step = 5 if harness.FEWER_CASES else 1
        last = min(calls, 2 * per_checkpoint)
        failed = 0
        for count, stride, code in (
            (1, step, errno.ENOSPC),
            (3, 2 * step, errno.EIO),
            (1 << 30, 5 * step, errno.ENOSPC),
        ):
            for first in range(1, last + 1, stride):
                with self.subTest(first=first, count=count, error=errno.errorcode[code]):
                    for path in self.folder.glob("run.chk*"):
                        path.unlink()
                    done, _ = self.run_with(
                        "--iterations=2", DISTURB_FIRST=first, DISTURB_COUNT=count, DISTURB_HOW=code
                    )
                    if (
                        first <= OF_TRIAL and done.returncode == 5
                    ):  # the run tries first whether the file can be written
                        self.assertRegex(done.stderr, rf"{self.file}: cannot be written \(.*\): {os.strerror(code)}")
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(harness.difference(whole, self.folder / "run.h5"), "")
                    failed += FAILED in done.stderr
                    self.check_left(whole, "--iterations=2")
        self.assertGreater(failed, last // step // 3, "most calls write something that would be lost")

    @harness.long
    def test_a_stop_without_a_checkpoint(self):
        """A run that is stopped and cannot write its last checkpoint ends with exit code 75 all the same. It names a checkpoint only if there
        is one, and that one is whole."""
        long = "--iterations=100000"
        self.often = "--checkpoint-interval=3600"
        done, calls = self.run_with(long, "--max-walltime=1")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn(f"--restart={self.file}", done.stderr)
        self.file.unlink()
        for first in range(4, calls + 1, 3):
            with self.subTest(first=first):
                done, _ = self.run_with(
                    long, "--max-walltime=1", DISTURB_FIRST=first, DISTURB_COUNT=1 << 30, DISTURB_HOW=errno.ENOSPC
                )
                self.assertEqual(done.returncode, 75, done.stderr)
                self.assertEqual(f"--restart={self.file}" in done.stderr, self.file.exists(), done.stderr)
                self.assertEqual(FAILED in done.stderr, not self.file.exists(), done.stderr)
                for path in self.folder.glob("run.chk*"):
                    path.unlink()


if __name__ == "__main__":
    harness.main()
