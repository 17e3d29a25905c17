#!/usr/bin/python3
"""Measures how a run divides over ranks, and prints a Markdown table of its events, critical path and messages.

usage: run_ranks.py [--orrery BIN] [--ranks 1,2,4,8] [--repeat N] [--iterations N] [--noise SHARE] [--partition P] [CONFIG.yaml]

The default workload is configs/llama3-8b-64.yaml; every compute time is perturbed. Counts need no cores: they tell what a cluster could
reach. Speeds need them: with --repeat, runs on 1 rank and on the others take turns, and the median of the ratios of their simulation
phases is printed. Exits with 1 if the results of the NPUs depend on the number of ranks."""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def simulate(arguments, ranks, output):
    """Runs once. Returns the finish times, /kernel as a dictionary of arrays, and the seconds of the simulation phase."""
    command = [
        arguments.orrery,
        "run",
        arguments.config,
        "--output",
        output,
        "--force",
        "--quiet",
        f"--iterations={arguments.iterations}",
        f"--noise={arguments.noise}",
    ]
    if ranks > 1:
        command.append(f"--partition={arguments.partition}")
        command = [SOURCE / "scripts/mpirun.sh", str(ranks)] + command
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, timeout=1200)
    with h5py.File(output) as file:
        kernel = {
            name: values[...]
            for name, values in file["kernel"].items()
            if isinstance(values, h5py.Dataset) and values.shape == (ranks,)
        }
        seconds = max(kernel["busy_time"] + kernel["blocked_time"])
        return file["npus/finish_time"][...], kernel, seconds


def table(arguments, folder):
    """Prints the table, one row for each number of ranks."""
    print(
        "| ranks | events | of the largest rank | critical path | data messages | null messages | null per data | null per 100 events | messages per rank |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    first = None
    for ranks in arguments.ranks:
        finish, kernel, _ = simulate(arguments, ranks, folder / "results.h5")
        first = finish if first is None else first
        if not numpy.array_equal(finish, first):
            sys.exit(f"the NPUs' finish times on {ranks} ranks differ from those on {arguments.ranks[0]}")
        events, data, null = (int(kernel[name].sum()) for name in ("events", "data_messages", "null_messages"))
        print(
            f"| {ranks} | {events:,} | {int(kernel['events'].max()):,} | {int(kernel['critical_path'].max()):,} | {data:,} | {null:,} | "
            f"{null / max(data, 1):.2f} | {100 * null / events:.2f} | {(data + null) / ranks:,.0f} |",
            flush=True,
        )


def speeds(arguments, folder):
    """Prints the speed on each number of ranks against one rank."""
    for ranks in arguments.ranks:
        if ranks == 1:
            continue
        ratios = []
        for _ in range(arguments.repeat):
            alone, together = (simulate(arguments, n, folder / "results.h5")[2] for n in (1, ranks))
            ratios.append(alone / together)
        print(
            f"{ranks} ranks: {statistics.median(ratios):.2f} times the speed of one (median of {arguments.repeat} pairs, "
            f"{min(ratios):.2f} to {max(ratios):.2f}; {alone:.1f} s on one rank)",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", default=SOURCE / "configs/llama3-8b-64.yaml", type=pathlib.Path)
    parser.add_argument("--orrery", default=SOURCE / "build/release/bin/orrery", type=pathlib.Path)
    parser.add_argument("--ranks", default=[1, 2, 4, 8], type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--repeat", default=0, type=int)
    parser.add_argument("--iterations", default=1, type=int)
    parser.add_argument("--partition", default="block")
    parser.add_argument("--noise", default=0.05, type=float)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        table(arguments, folder)
        if arguments.repeat:
            speeds(arguments, folder)


if __name__ == "__main__":
    main()
