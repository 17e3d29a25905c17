#!/usr/bin/python3
"""The benchmark of the kernel alone: it ends, counts what PHOLD must count, and refuses arguments that mean nothing.

usage: test_phold.py BENCH_PHOLD

The system of most tests: 64 logical processes with 256 pending events, a lookahead of 100 ps and a mean increment of 1,000 ps more."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

BENCH = sys.argv.pop() if len(sys.argv) > 1 and pathlib.Path(sys.argv[-1]).name.startswith("bench_") else None
SMALL = ("--pending=256", "--lps=64", "--lookahead=100", "--mean=1000", "--end=100000")
LINE = re.compile(
    r"ranks (\d+)  events/lookahead/rank ([\d.]+)  events (\d+)  .* data messages (\d+)  null (\d+) .*  reductions (\d+)"
)
REFUSED = {
    "--pending=0": "--pending",
    "--pending=many": "many",
    "--lps=1": "--lps",
    "--lps=400000000": "--lps",
    "--remote=1.5": "--remote",
    "--remote=-0.1": "--remote",
    "--remote=nan": "nan",
    "--lookahead=0": "--lookahead",
    "--lookahead=-5": "--lookahead",
    "--mean=-1": "--mean",
    "--mean=inf": "inf",
    "--end=-1": "--end",
    "--end=1000000000000000000": "--end",
    "--bogus=1": "bogus",
    "surplus": "surplus",
}


class Phold(harness.unittest.TestCase):
    def run_bench(self, *arguments, ranks=0):
        prefix = [str(harness.SOURCE / "scripts/mpirun.sh"), str(ranks)] if ranks else []
        return subprocess.run([*prefix, BENCH, *arguments], capture_output=True, text=True, timeout=harness.PATIENCE)

    def figures(self, *arguments, ranks=0):
        """Runs the benchmark and returns what it prints: ranks, events for each lookahead and rank, events, data messages, null
        messages, reductions."""
        done = self.run_bench(*arguments, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, LINE)
        found = LINE.search(done.stdout)
        return [int(found[1]), float(found[2]), *map(int, found.groups()[2:])]

    def test_one_rank_counts_the_events_of_the_model(self):
        """On one rank there are no messages, and as many events as 256 chains make that advance by 1,100 ps on average."""
        ranks, density, events, data, null, reductions = self.figures(*SMALL)
        self.assertEqual((ranks, data, null, reductions), (1, 0, 0, 0))
        self.assertAlmostEqual(density, 256 / 1100 * 100, delta=0.1)
        # Each of 256 chains makes an event in 1,100 ps on average, and one more when it is past the end.
        self.assertAlmostEqual(events, 256 * (100_000 / 1100 + 1), delta=0.05 * 256 * 100_000 / 1100)

    def test_ranks_exchange_events(self):
        """On 2 and 3 ranks there are as many events, and messages between ranks."""
        for count in (2, 3):
            ranks, _, events, data, _, reductions = self.figures(*SMALL, ranks=count)
            self.assertEqual(ranks, count)
            self.assertAlmostEqual(events, 256 * (100_000 / 1100 + 1), delta=0.05 * 256 * 100_000 / 1100)
            self.assertGreater(data, 0)
            self.assertGreater(reductions, 0)

    def test_without_remote_events_there_are_no_messages(self):
        """With --remote=0 two ranks make events and exchange none."""
        _, _, events, data, _, _ = self.figures(*SMALL, "--remote=0", ranks=2)
        self.assertGreater(events, 20_000)
        self.assertEqual(data, 0)

    def test_arguments_without_meaning_are_refused(self):
        """An argument out of range or that is no number ends with exit code 2 and one message that names it; --help lists the options."""
        for argument, word in REFUSED.items():
            with self.subTest(argument):
                done = self.run_bench(*SMALL, argument)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual(done.stdout, "")
        done = self.run_bench("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("pending", "lps", "remote", "lookahead", "mean", "end"):
            self.assertIn(f"--{option}", done.stdout)


if __name__ == "__main__":
    if BENCH is None:
        sys.exit("usage: test_phold.py bench_phold")
    harness.main()
