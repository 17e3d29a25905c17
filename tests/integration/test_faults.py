#!/usr/bin/python3
"""A rank that fails in the middle of a simulation ends the whole job within seconds, with one message and the documented exit code.

    test_faults.py failing_rank
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

PROGRAM = sys.argv.pop() if len(sys.argv) > 1 and pathlib.Path(sys.argv[-1]).name == "failing_rank" else None
RANKS = 3
SECONDS = 20  # of a machine that does other things as well; mpirun takes one or two of them to start and to end

# What is thrown: the exit code and the message.
THROWN = {
    "error": (1, r"rank 1 of 3 on \S+: a rank that fails on purpose \(failing_rank.cpp:\d+\)\. This is a fault of Orrery"),
    "input": (3, r"trace\.et: NPU 1: a bad node"),
    "exception": (1, r"rank 1 of 3 on \S+: a library that fails on purpose\. This is a fault of Orrery"),
    "memory": (1, r"rank 1 of 3 on \S+ ran out of memory"),
    "unknown": (1, r"rank 1 of 3 on \S+: an exception of unknown kind"),
}


class Faults(harness.unittest.TestCase):
    def start(self, failing, manner, watchdog):
        command = [str(harness.SOURCE / "scripts/mpirun.sh"), str(RANKS), PROGRAM, str(failing), manner, str(watchdog)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def errors(self, text):
        plain = re.sub(r"\x1b\[[\d;]*m", "", text)  # without colours
        return [line for line in plain.splitlines() if "[error]" in line]

    def test_a_rank_that_throws_ends_the_job(self):
        for manner, (code, message) in THROWN.items():
            with self.subTest(manner):
                begin = time.monotonic()
                process = self.start(1, manner, 60)
                out, err = process.communicate(timeout=60)
                self.assertLess(time.monotonic() - begin, SECONDS)
                self.assertEqual(process.returncode, code, out + err)
                self.assertEqual(len(self.errors(out + err)), 1, out + err)
                self.assertRegex(self.errors(out + err)[0], message)

    def test_rank_0_that_throws_ends_the_job(self):
        process = self.start(0, "error", 60)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, out + err)
        self.assertRegex(self.errors(out + err)[0], "rank 0 of 3")

    def check_watchdog(self, process, begin):
        """Ranks that wait in vain say where they stand; the first of them ends the job."""
        out, err = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, SECONDS)
        self.assertEqual(process.returncode, 1, out + err)
        reports = self.errors(out + err)
        self.assertTrue(1 <= len(reports) <= RANKS, out + err)
        for report in reports:  # a suspended process that is woken to be ended has seen no progress either
            self.assertRegex(report, r"rank [012] of 3 on \S+: no progress for 2 s: client events handled to \d+ ps, next at (never|\d+ ps); .*"
                                     r"the LP of rank [012] has made \d+ events")
        self.assertTrue(any(re.search("rank [02] of 3", report) for report in reports), out + err)
        self.assertIn("  channel with rank 1: promised to us ", out + err)

    def test_a_silent_rank_is_reported(self):
        begin = time.monotonic()
        self.check_watchdog(self.start(1, "silent", 2), begin)

    def test_a_suspended_rank_is_reported(self):
        """The others wait for the one whose process has been stopped."""
        process = self.start(-1, "", 2)
        children, until = [], time.monotonic() + 30
        while len(children) != RANKS and time.monotonic() < until:
            time.sleep(3)  # more than they take to begin the simulation
            children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
        self.assertEqual(len(children), RANKS)
        rank_1 = next(pid for pid in children if b"OMPI_COMM_WORLD_RANK=1\0" in pathlib.Path(f"/proc/{pid}/environ").read_bytes())
        os.kill(int(rank_1), signal.SIGSTOP)
        self.check_watchdog(process, time.monotonic())


if __name__ == "__main__":
    if PROGRAM is None:
        sys.exit("usage: test_faults.py failing_rank")
    harness.main()
