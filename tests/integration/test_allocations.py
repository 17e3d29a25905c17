#!/usr/bin/python3
"""In the steady state events allocate no memory: three times the iterations, as many calls of malloc.

    test_allocations.py COUNTER.so

Pipelined and data-parallel work with skewed arrivals: messages, collectives within a rank and across ranks.
"""
import os
import re
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

COUNTER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
CONFIG = [harness.SOURCE / "configs/llama3-8b-64.yaml", "--noise=0.05", "--set=workload.model.layers=8", "--set=workload.parallel.micro-batches=8"]


class Allocations(harness.Folder):
    def count(self, iterations, ranks):
        os.environ["LD_PRELOAD"] = COUNTER
        try:
            outcome = harness.orrery("run", *CONFIG, f"--iterations={iterations}", f"--output={self.folder / 'r.h5'}", "--force",
                                     ranks=ranks)
        finally:
            del os.environ["LD_PRELOAD"]
        self.assertEqual(outcome.code, 0, outcome.err)
        events = int(re.search(r"(\d+) events in", outcome.out + outcome.err)[1])
        return events, [int(n) for n in re.findall(r"allocations: (\d+)", outcome.err)]

    def test_one_rank(self):
        """Only buffers that meet a new peak still grow: less than one for a thousand events."""
        (few, before), (many, after) = self.count(20, 0), self.count(60, 0)
        self.assertGreater(many, 2 * few)
        self.assertLess(after[0] - before[0], 0.001 * (many - few))

    def test_two_ranks(self):
        """MPI may allocate for a message now and then, and what is under way at one time varies: less than one for a hundred events."""
        (few, before), (many, after) = self.count(20, 2), self.count(60, 2)
        self.assertLess(max(after) - max(before), 0.01 * (many - few) / 2)


if __name__ == "__main__":
    if COUNTER is None:
        sys.exit("usage: test_allocations.py COUNTER.so")
    harness.main()
