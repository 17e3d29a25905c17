#!/usr/bin/python3
"""How often the program calls MPI: never for help, and on one rank not in the event loop.

usage: test_mpi_calls.py COUNTER.so

COUNTER.so is preloaded into the program, counts its calls of MPI and prints their number. The system: a training step of 64 NPUs with
noise."""
import os
import re
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

COUNTER = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
CONFIG = [
    harness.SOURCE / "configs/llama3-8b-64.yaml",
    "--noise=0.05",
    "--set=workload.model.layers=4",
    "--set=workload.parallel.micro-batches=4",
]


def mpi_functions(path, kind):
    """Returns the MPI functions that a program or library uses (--undefined-only) or has (--defined-only)."""
    symbols = subprocess.run(["nm", "--dynamic", kind, path], capture_output=True, text=True, check=True).stdout.split()
    return {symbol for symbol in symbols if symbol.startswith("MPI_")}


class MpiCalls(harness.Folder):
    def counted(self, *arguments, ranks=0):
        """Runs the program with the counter to success and returns its outcome."""
        os.environ["LD_PRELOAD"] = COUNTER
        try:
            outcome = harness.orrery(*arguments, ranks=ranks)
        finally:
            del os.environ["LD_PRELOAD"]
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome

    def count(self, iterations, ranks, what="calls"):
        """Returns the events of a run and the MPI calls of all ranks, or only those that send."""
        outcome = self.counted(
            "run",
            *CONFIG,
            "--verbose",
            f"--iterations={iterations}",
            f"--output={self.folder / 'r.h5'}",
            "--force",
            ranks=ranks,
        )
        counts = [int(n) for n in re.findall(rf"MPI {what}: (\d+)", outcome.err)]
        return int(re.search(r"(\d+) events in", outcome.out + outcome.err)[1]), sum(counts)

    def test_every_function_is_counted(self):
        """Every MPI function that the program uses is in tests/support/count_mpi_calls.cpp."""
        used = mpi_functions(harness.BINARY, "--undefined-only") - {
            "MPI_Comm_f2c"
        }  # converts a handle, and does not communicate
        self.assertGreater(len(used), 10)
        self.assertEqual(used - mpi_functions(COUNTER, "--defined-only"), set(), "of tests/support/count_mpi_calls.cpp")

    def test_one_rank_makes_no_calls_in_the_event_loop(self):
        """On one rank, with and without mpirun, ten times the iterations make as many MPI calls."""
        for ranks in (0, 1):  # without mpirun, and with
            with self.subTest(ranks=ranks):
                (few, before), (many, after) = self.count(2, ranks), self.count(20, ranks)
                self.assertGreater(many, 5 * few)
                self.assertEqual(after, before)
                self.assertGreater(before, 10 * ranks, "the program's own calls are seen")

    def test_help_makes_no_calls(self):
        """`--help` of the program and of its commands calls no MPI function, as MPI_Init takes half a second."""
        for command in ([], ["run"], ["check"], ["show"]):
            outcome = self.counted(*command, "--help")
            self.assertIn("MPI calls: 0\n", outcome.err, command)

    def test_calls_of_two_ranks_are_seen(self):
        """On two ranks ten times the iterations send more messages, so that the counter does see the calls of an event loop. The number of
        all calls depends on how long ranks wait for each other."""
        (_, before), (_, after) = self.count(2, 2, "sends"), self.count(20, 2, "sends")
        self.assertGreater(after, before)


if __name__ == "__main__":
    if COUNTER is None:
        sys.exit("usage: test_mpi_calls.py COUNTER.so")
    harness.main()
