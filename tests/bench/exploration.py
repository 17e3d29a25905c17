#!/usr/bin/env python3
"""Times explorations and prints a Markdown table; docs/exploration.md, *Speed*, has the figures.

usage: exploration.py [--orrery BIN] [--sample N] [--seed N] [--ranks N,N,...] [70b] [405b] [trials]

70b     the study of Llama 3 70B on 1,024 H100, on each number of ranks
405b    the study of Llama 3 405B on 16,384 H100, on the largest number of ranks
trials  N random configurations of the study of 70B: all in one process, and each by `orrery run`

Seconds are those of the CPU, of all ranks together, and those of a clock, which mean something on an idle machine only."""
import argparse
import os
import pathlib
import random
import re
import resource
import subprocess
import tempfile
import time

import h5py

SOURCE = pathlib.Path(__file__).resolve().parents[2]
STUDIES = SOURCE / "configs/studies"
KEYS = {"tp": "tp", "cp": "cp", "pp": "pp", "dp": "dp", "micro_batch": "micro-batch", "micro_batches": "micro-batches", "interleaving": "interleaving",
        "recompute": "recompute", "zero": "zero", "sp": "sp"}


def measure(command):
    """Returns the seconds of CPU and of the clock that a command takes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def launch(orrery, ranks):
    return [SOURCE / "scripts/mpirun.sh", ranks, orrery] if ranks > 1 else [orrery]


def explore(orrery, study, ranks, folder):
    output = folder / f"{study.stem}-{ranks}.h5"
    cpu, wall = measure(launch(orrery, ranks) + ["explore", study, f"--output={output}", "--force"])
    with h5py.File(output) as file:
        status = list(file["trials/status"].asstr()[:])
        best = [(int(number), float(file["trials/step_time"][list(file["trials/number"]).index(number)])) for number in file["best"]]
    counts = ", ".join(f"{status.count(name)} {name}" for name in sorted(set(status)))
    print(f"| {study.stem} | {ranks} | {cpu:.1f} | {wall:.1f} | {counts} |", flush=True)
    return best


def sample_of(orrery, study, count, seed):
    """Returns random configurations of a study, as values of workload.parallel."""
    lines = subprocess.run([orrery, "explore", study, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    header = lines[0].split()
    rows = [dict(zip(header, line.split())) for line in lines[1:] if re.match(r" *\d+ ", line) and len(line.split()) == len(header)]
    return [{key: row[name] for name, key in KEYS.items()} for row in random.Random(seed).sample(rows, count)]


def trials(orrery, count, seed, folder):
    """Compares configurations in one process with a process for each."""
    study = STUDIES / "llama3-70b-1024.yaml"
    plans = sample_of(orrery, study, count, seed)
    base = SOURCE / "configs/llama3-70b-1024.yaml"
    mappings = [f"{{{', '.join(f'{key}: {value}' for key, value in plan.items())}}}" for plan in plans]
    many = folder / "sample.yaml"
    many.write_text(f"study:\n  base: {base}\n  parameters:\n    plan:\n      key: workload.parallel\n      values:\n"
                    + "".join(f"        - {mapping}\n" for mapping in mappings) + "  objectives: [{minimise: step_time}]\n")
    together, _ = measure([orrery, "explore", many, f"--output={folder / 'sample.h5'}", "--force"])
    alone = [measure([orrery, "run", base, f"--set=workload.parallel={mapping}", "--fold", "--quiet", "--memory=report", "--force",
                      f"--output={folder / 'results.h5'}"])[0] for mapping in mappings]
    print(f"{count} random configurations: {together / count:.4f} s of CPU each in one process, {sum(alone) / count:.4f} s each by `orrery run`: "
          f"{together / sum(alone):.2f} of it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=os.environ.get("ORRERY_BINARY", str(SOURCE / "build/release/bin/orrery")))
    parser.add_argument("--sample", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("what", nargs="*", choices=["70b", "405b", "trials", []], default=[])
    options = parser.parse_args()
    what, ranks = options.what or ["70b", "405b", "trials"], [int(text) for text in options.ranks.split(",")]
    with tempfile.TemporaryDirectory(prefix="orrery-exploration-") as name:
        folder = pathlib.Path(name)
        if "70b" in what or "405b" in what:
            print("| study | ranks | CPU s | clock s | trials |\n|---|---|---|---|---|", flush=True)
        if "70b" in what:
            best = [explore(options.orrery, STUDIES / "llama3-70b-1024.yaml", count, folder) for count in ranks]
            if any(other != best[0] for other in best):
                raise SystemExit("the best trials depend on the number of ranks")
            print("\n" + "\n".join(f"trial {number}: {seconds:.6f} s" for number, seconds in best[0]) + "\n", flush=True)
        if "405b" in what:
            for number, seconds in explore(options.orrery, STUDIES / "llama3-405b-16384.yaml", max(ranks), folder):
                print(f"trial {number}: {seconds:.6f} s")
        if "trials" in what:
            trials(options.orrery, options.sample, options.seed, folder)


if __name__ == "__main__":
    main()
