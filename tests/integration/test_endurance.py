#!/usr/bin/python3
"""Many short runs: random systems and workloads on 2 to 16 ranks, and the same small run again and again. No run hangs, and each gives
the results of one rank.

usage: test_endurance.py [--seed N] [--count N] [--starts N]

--count N takes so many random runs, --starts N starts and ends the program so many times. Without these options it takes a few of both.
A machine with few cores is oversubscribed by 16 ranks, which is what the test is for."""
import argparse
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
from random_workload import Workload  # noqa: E402

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--seed", type=int, default=1)
OPTIONS.add_argument("--count", type=int, default=harness.cases(2, 10, 300))
OPTIONS.add_argument("--starts", type=int, default=harness.cases(3, 10, 1000))
OPTIONS, REST = OPTIONS.parse_known_args()

SMALL = """\
workload:
  model: {layers: 1, hidden: 64, heads: 2, sequence: 16}
  parallel: {tp: 2, dp: 2, micro-batches: 1}
system:
  network:
    dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}]
  compute: {roofline: true, peak: 900 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
"""


def report(what, number, total, since):
    """Prints how far a long test is."""
    if total > 20 and number % (total // 20) == 0:
        print(f"{number} of {total} {what} in {time.monotonic() - since:.0f} s", flush=True)


class Endurance(harness.Folder):
    def test_random_runs(self):
        """Random systems and workloads on a random number of ranks, in blocks or scattered, in two network models."""
        since = time.monotonic()
        for number in range(OPTIONS.count):
            seed = OPTIONS.seed + number
            draw = random.Random(seed)
            ranks, scattered = draw.randint(2, 16), draw.random() < 0.5
            network = draw.choice(
                ["congestion-unaware", "congestion-unaware", "congestion-unaware", "congestion-aware"]
            )
            with self.subTest(seed=seed, ranks=ranks, scattered=scattered, network=network):
                workload = Workload(seed, max_npus=32, operations=(5, 40))
                ranks = min(ranks, workload.num_npus)
                if (
                    network == "congestion-aware"
                ):  # many ranks or short latencies take minutes there: ranks wait at almost every event
                    ranks = min(ranks, 2 + seed % 3)
                    workload.system.latency = [max(latency, 500.0) for latency in workload.system.latency]
                arguments = [
                    harness.write_workload(self.folder, workload.traces),
                    *workload.system.write(self.folder),
                    f"--network={network}",
                ]
                alone = self.run_once(arguments, "alone.h5")
                if scattered:
                    arguments.append(
                        f"--partition={harness.scattered_partition(self.folder / 'scattered', workload.num_npus, ranks)}"
                    )
                several = self.run_once(arguments, "several.h5", ranks=ranks)
                self.assertEqual(harness.difference(alone, several), "")
                self.clear_folder()
            report("random runs", number + 1, OPTIONS.count, since)

    def test_starts_and_ends(self):
        """A small run on two ranks starts and ends, again and again."""
        config = self.folder / "config.yaml"
        config.write_text(SMALL)
        alone = self.run_once([config], "alone.h5")
        since = time.monotonic()
        for number in range(OPTIONS.starts):
            with self.subTest(number=number):
                several = self.run_once([config], "several.h5", ranks=2)
            report("starts", number + 1, OPTIONS.starts, since)
        self.assertEqual(harness.difference(alone, several), "")


if __name__ == "__main__":
    harness.main([sys.argv[0], *REST])
