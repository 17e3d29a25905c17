#!/usr/bin/python3
"""A rank that fails in the middle of a simulation ends the whole job with one message and the documented exit code.

usage: test_faults.py FAILING_RANK

The system: FAILING_RANK simulates for ever with one logical process on each of 3 ranks, which hand an event around. One of the ranks
fails after a while, in the manner that the test asks for.
"""
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

PROGRAM = sys.argv.pop() if len(sys.argv) > 1 and pathlib.Path(sys.argv[-1]).name == "failing_rank" else None
RANKS = 3
NEVER = 0  # seconds after which the watchdog gives up

# What is thrown: the exit code and the message.
THROWN = {
    "error": (
        1,
        r"rank 1 of 3 on \S+: a rank that fails on purpose \(failing_rank.cpp:\d+\)\. This is a fault of Orrery",
    ),
    "input": (3, r"trace\.et: NPU 1: a bad node"),
    "exception": (1, r"rank 1 of 3 on \S+: a library that fails on purpose\. This is a fault of Orrery"),
    "memory": (1, r"rank 1 of 3 on \S+ ran out of memory"),
    "unknown": (1, r"rank 1 of 3 on \S+: an exception of unknown kind"),
}


class Faults(harness.unittest.TestCase):
    def start(self, failing, manner, watchdog):
        """Starts the job. Rank `failing` fails in a manner of THROWN, or -1 for none; ranks wait `watchdog` seconds for each other."""
        return harness.Background(
            self, [harness.SOURCE / "scripts/mpirun.sh", RANKS, PROGRAM, failing, manner, watchdog]
        )

    def errors(self, text):
        """Returns the lines with error messages, without colours."""
        plain = re.sub(r"\x1b\[[\d;]*m", "", text)
        return [line for line in plain.splitlines() if "[error]" in line]

    def test_a_rank_that_throws_ends_the_job(self):
        """Rank 1 throws an exception of each kind. The job ends with the exit code of that kind and one message that names the rank."""
        for manner, (code, message) in THROWN.items():
            with self.subTest(manner):
                outcome = self.start(1, manner, NEVER).end()
                self.assertEqual(outcome.code, code, outcome.err)
                self.assertEqual(len(self.errors(outcome.err)), 1, outcome.err)
                self.assertRegex(self.errors(outcome.err)[0], message)

    def test_rank_0_that_throws_ends_the_job(self):
        """Rank 0, which prints for all, throws. The job ends with exit code 1 and a message that names rank 0."""
        outcome = self.start(0, "error", NEVER).end()
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertRegex(self.errors(outcome.err)[0], "rank 0 of 3")

    def check_watchdog(self, job):
        """Checks that ranks that waited in vain for 5 s told how far they are, and that the first of them ended the job."""
        outcome = job.end()
        self.assertEqual(outcome.code, 1, outcome.err)
        reports = self.errors(outcome.err)
        self.assertTrue(1 <= len(reports) <= RANKS, outcome.err)
        for report in reports:  # a suspended process that is woken to be ended has seen no progress either
            self.assertRegex(
                report,
                r"rank [012] of 3 on \S+: no progress for 5 s: client events handled to \d+ ps, next at (never|\d+ ps); .*"
                r"the LP of rank [012] has made \d+ events",
            )
        self.assertTrue(any(re.search("rank [02] of 3", report) for report in reports), outcome.err)
        self.assertIn("  channel with rank 1: promised to us ", outcome.err)

    def test_a_silent_rank_is_reported(self):
        """Rank 1 computes for ever within one event. The watchdog of the others ends the job with a report."""
        self.check_watchdog(self.start(1, "silent", 5))

    def test_a_suspended_rank_is_reported(self):
        """The process of rank 1 is stopped while it simulates. The watchdog of the others ends the job with a report."""
        job = self.start(-1, "", 5)
        job.wait_until(lambda: job.text().count("simulating") == RANKS, "simulating")
        rank_1 = next(
            pid
            for pid in job.ranks()
            if b"OMPI_COMM_WORLD_RANK=1\0" in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        )
        os.kill(rank_1, signal.SIGSTOP)
        self.check_watchdog(job)


if __name__ == "__main__":
    if PROGRAM is None:
        sys.exit("usage: test_faults.py FAILING_RANK")
    harness.main()
