#!/usr/bin/python3
"""On one rank the event loop makes no call of MPI: ten times the iterations, as many calls.

    test_mpi_calls.py COUNTER.so
"""
import os
import re
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

COUNTER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
CONFIG = [harness.SOURCE / "configs/llama3-8b-64.yaml", "--noise=0.05", "--set=workload.model.layers=4", "--set=workload.parallel.micro-batches=4"]


def mpi_functions(path, kind):
    symbols = subprocess.run(["nm", "--dynamic", kind, path], capture_output=True, text=True, check=True).stdout.split()
    return {symbol for symbol in symbols if symbol.startswith("MPI_")}


class MpiCalls(harness.Folder):
    def count(self, iterations, ranks):
        """Events, and calls of all ranks."""
        os.environ["LD_PRELOAD"] = COUNTER
        try:
            outcome = harness.orrery("run", *CONFIG, f"--iterations={iterations}", f"--output={self.folder / 'r.h5'}", "--force", ranks=ranks)
        finally:
            del os.environ["LD_PRELOAD"]
        self.assertEqual(outcome.code, 0, outcome.err)
        counts = [int(n) for n in re.findall(r"MPI calls: (\d+)", outcome.err)]
        return int(re.search(r"(\d+) events in", outcome.out + outcome.err)[1]), sum(counts)

    def test_every_function_is_counted(self):
        used = mpi_functions(harness.BINARY, "--undefined-only")
        self.assertGreater(len(used), 10)
        self.assertEqual(used - mpi_functions(COUNTER, "--defined-only"), set(), "of tests/support/count_mpi_calls.cpp")

    def test_one_rank(self):
        for ranks in (0, 1):  # without mpirun, and with
            with self.subTest(ranks=ranks):
                (few, before), (many, after) = self.count(2, ranks), self.count(20, ranks)
                self.assertGreater(many, 5 * few)
                self.assertEqual(after, before)
                self.assertGreater(before, 10 * ranks, "the program's own calls are seen")

    def test_two_ranks(self):
        """The counter sees the calls of an event loop."""
        (_, before), (_, after) = self.count(2, 2), self.count(20, 2)
        self.assertGreater(after, before + 100)


if __name__ == "__main__":
    if COUNTER is None:
        sys.exit("usage: test_mpi_calls.py COUNTER.so")
    harness.main()
