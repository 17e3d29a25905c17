#!/usr/bin/python3
"""In the steady state events allocate no memory: three times the iterations make as many calls of malloc.

Neither does reading a line of a GOAL schedule.

usage: test_allocations.py COUNTER.so

COUNTER.so is preloaded into the program, counts its calls of malloc and prints their number. The system: a training step of 64 NPUs,
pipelined and data-parallel with noise, so that there are messages, and collectives within a rank and across ranks."""
import os
import re
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

COUNTER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
CONFIG = [
    harness.SOURCE / "configs/llama3-8b-64.yaml",
    "--noise=0.05",
    "--set=workload.model.layers=8",
    "--set=workload.parallel.micro-batches=8",
]


class Allocations(harness.Folder):
    def count(self, iterations, ranks, config=CONFIG):
        """Returns the events of a run and the calls of malloc of each rank."""
        os.environ["LD_PRELOAD"] = COUNTER
        try:
            outcome = harness.orrery(
                "run",
                *config,
                "--verbose",
                f"--iterations={iterations}",
                f"--output={self.folder / 'r.h5'}",
                "--force",
                ranks=ranks,
            )
        finally:
            del os.environ["LD_PRELOAD"]
        self.assertEqual(outcome.code, 0, outcome.err)
        events = int(re.search(r"(\d+) events in", outcome.out + outcome.err)[1])
        return events, [int(n) for n in re.findall(r"allocations: (\d+)", outcome.err)]

    def test_one_rank_allocates_nothing_for_events(self):
        """On one rank 60 iterations make hardly more allocations than 20: less than one for a thousand more events. Only buffers that
        meet a new peak still grow."""
        (few, before), (many, after) = self.count(20, 0), self.count(60, 0)
        self.assertGreater(many, 2 * few)
        self.assertLess(after[0] - before[0], 0.001 * (many - few))

    def test_two_ranks_allocate_hardly_anything_for_events(self):
        """On two ranks there is less than one more allocation for a hundred more events of a rank. MPI may allocate for a message now
        and then, and what is under way at one time varies."""
        (few, before), (many, after) = self.count(20, 2), self.count(60, 2)
        self.assertLess(max(after) - max(before), 0.01 * (many - few) / 2)

    def test_lines_of_a_schedule_allocate_nothing(self):
        """A GOAL schedule of 4 ranks that pass on 2,000 messages each, in a chain, makes hardly more allocations than one of 500: less
        than one for a hundred more lines. Vectors grow, and there are more blocks of names."""

        def count(rounds):
            lines = ["num_ranks 4"]
            for rank in range(4):
                lines.append(f"rank {rank} {{")
                for i in range(rounds):
                    lines += [
                        f"s{i}: send 8b to {(rank + 1) % 4} tag {i}",
                        f"r{i}: recv 8b from {(rank - 1) % 4} tag {i}",
                    ]
                    lines += [f"s{i} requires r{i - 1}"] if i else []
                lines.append("}")
            (self.folder / "chain.goal").write_text("\n".join(lines) + "\n")
            (self.folder / "chain.yaml").write_text(
                "system: {network: {dimensions: [{shape: Ring, size: 4, bandwidth: 50 GB/s, latency: 500 ns}]}}\n"
                "workload: {traces: {all: chain.goal}}\n"
            )
            return len(lines), self.count(1, 0, [self.folder / "chain.yaml"])[1][0]

        (few, before), (many, after) = count(500), count(2000)
        self.assertLess(after - before, 0.01 * (many - few))


if __name__ == "__main__":
    if COUNTER is None:
        sys.exit("usage: test_allocations.py COUNTER.so")
    harness.main()
