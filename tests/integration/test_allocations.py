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
CONFIG = """system:
  network:
    dimensions:
      - {shape: FullyConnected, size: 4, bandwidth: 150 GB/s, latency: 500 ns}
      - {shape: Ring, size: 2, bandwidth: 100 GB/s, latency: 1 us}
      - {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}
  collectives:
    all-reduce: [direct, ring, halvingDoubling]
    chunks: 4
  compute:
    roofline: true
    peak: 989 TFLOPS
    local-memory: {bandwidth: 3350 GB/s}
workload:
  model: {kind: transformer, layers: 8, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 1024}
  parallel: {tp: 4, dp: 2, pp: 2, micro-batches: 8}
"""


class Allocations(harness.Folder):
    def count(self, iterations, ranks):
        config = self.folder / "config.yaml"
        config.write_text(CONFIG)
        os.environ["LD_PRELOAD"] = COUNTER
        try:
            outcome = harness.orrery("run", config, "--noise=0.05", f"--iterations={iterations}", f"--output={self.folder / 'r.h5'}", "--force",
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
