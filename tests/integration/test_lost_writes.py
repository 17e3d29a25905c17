#!/usr/bin/python3
"""A disk that is full, or fails, for a moment: whichever call fails, the run says so and leaves the older file, or the file is whole.

usage: test_lost_writes.py DISTURBER.so

DISTURBER.so (tests/support/disturb_files.cpp) is preloaded into the program and fails some of its writes. Each run writes results.h5 with a
timeline in place of an older file. The system: a training step of 4 NPUs."""
import errno
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

DISTURBER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
CONFIG = """\
workload:
  model: {layers: 2, hidden: 512, heads: 8, sequence: 256}
  parallel: {tp: 2, dp: 2, micro-batches: 2}
system:
  network:
    dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}]
  compute: {roofline: true, peak: 900 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
"""


class LostWrites(harness.Folder):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config.yaml"
        self.config.write_text(CONFIG)
        (self.folder / "out").mkdir()
        self.output = self.folder / "out/results.h5"

    def run_with(self, command, **failures):
        """Runs a command with the disturber and returns its outcome and the number of writes."""
        report = self.folder / "calls"
        environment = dict(
            os.environ,
            LD_PRELOAD=DISTURBER,
            DISTURB_PATH=".partial.",
            DISTURB_WRITES="1",
            DISTURB_REPORT=str(report),
            **{name: str(value) for name, value in failures.items()},
        )
        done = subprocess.run(
            harness.launch(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            env=environment,
        )
        return done, int(report.read_text())

    def fail_each(self, command, good, step, count, code):
        """Fails `count` calls from each `step`-th one on. Returns how many runs said so."""
        done, calls = self.run_with(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(good())
        refused = 0
        for first in range(1, calls + 1, step):
            with self.subTest(first=first, count=count, error=errno.errorcode[code]):
                self.output.write_text("older")
                done, _ = self.run_with(command, DISTURB_FIRST=first, DISTURB_COUNT=count, DISTURB_HOW=code)
                self.assertEqual([path.name for path in self.output.parent.iterdir()], [self.output.name])
                if done.returncode == 0:
                    self.assertTrue(good(), "the file is whole after success")
                else:
                    self.assertEqual(done.returncode, 5, done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                    self.assertRegex(
                        done.stderr, rf"error: {self.output}: cannot be written \(.*\): {os.strerror(code)}"
                    )
                    self.assertEqual(self.output.read_text(), "older")
                    refused += 1
        return refused, calls

    def test_results(self):
        """`run`: one call fails, then three, then every one from there on, each call in turn."""
        command = ["run", self.config, "--timeline", "--quiet", "--force", "--progress=none", f"--output={self.output}"]
        done, _ = self.run_with(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        good = self.folder / "good.h5"
        self.output.rename(good)
        step = 8 if harness.FEWER_CASES else 1
        for count, stride, code in (
            (1, step, errno.ENOSPC),
            (3, 5 * step, errno.EIO),
            (1 << 30, 9 * step, errno.ENOSPC),
        ):
            refused, calls = self.fail_each(
                command, lambda: harness.difference(good, self.output) == "", stride, count, code
            )
            self.assertGreater(refused, calls // stride // 2, "most calls write something that would be lost")

    def test_timeline(self):
        """`show timeline --chrome`: one call fails, each call in turn."""
        results = self.folder / "results.h5"
        self.assertEqual(harness.orrery("run", self.config, "--timeline", "--quiet", f"--output={results}").code, 0)
        self.output = self.folder / "out/timeline.json"
        command = ["show", "timeline", results, "--chrome", self.output, "--force"]
        done, _ = self.run_with(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.output.read_text()
        refused, _ = self.fail_each(command, lambda: self.output.read_text() == text, 1, 1, errno.ENOSPC)
        self.assertGreater(refused, 1)


if __name__ == "__main__":
    harness.main()
