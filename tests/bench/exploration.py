#!/usr/bin/python3
"""Times explorations and prints a Markdown table; docs/exploration.md, *Speed*, has the figures.

usage: exploration.py [--orrery BIN] [--sample N] [--seed N] [--ranks N,N,...] [70b] [405b] [trials]

70b     the study of Llama 3 70B on 1,024 H100, on each number of ranks
405b    the study of Llama 3 405B on 16,384 H100, on the largest number of ranks
trials  N random configurations of the study of 70B: all in one process, and each by `orrery run`

Seconds are those of the CPU, of all ranks together and of the rank that needs most, and those of a clock, which mean something on an idle
machine only. What the busiest rank needs is what an idle machine would take. The best trials have to be the same on all numbers of ranks."""
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
KEYS = {
    "tp": "tp",
    "cp": "cp",
    "pp": "pp",
    "dp": "dp",
    "micro_batch": "micro-batch",
    "micro_batches": "micro-batches",
    "interleaving": "interleaving",
    "recompute": "recompute",
    "zero": "zero",
    "sp": "sp",
}


def run(command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def measure(command):
    """Returns the seconds of CPU that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure_ranks(command, ranks):
    """Returns the seconds of CPU that each rank of a command takes, and those of the clock that all take."""
    timed = ["bash", "-c", 'TIMEFORMAT="rank %U %S"; time "$@"', "timed", *command]
    start = time.monotonic()
    done = run(([SOURCE / "scripts/mpirun.sh", ranks] if ranks > 1 else []) + timed)
    seconds = [
        float(user) + float(system)
        for user, system in re.findall(r"^rank ([\d.]+) ([\d.]+)$", done.stderr, re.MULTILINE)
    ]
    if len(seconds) != ranks:
        raise SystemExit(f"found the times of {len(seconds)} of {ranks} ranks in {done.stderr!r}")
    return seconds, time.monotonic() - start


def explore(orrery, study, ranks, folder):
    output = folder / f"{study.stem}-{ranks}.h5"
    seconds, clock = measure_ranks(
        [orrery, "explore", study, f"--output={output}", "--force", "--no-sensitivity"], ranks
    )
    with h5py.File(output) as file:
        status, numbers, times = (
            list(file["trials/status"].asstr()[:]),
            list(file["trials/number"][:]),
            file["trials/step_time"][:],
        )
        best = [(int(number), float(times[numbers.index(number)])) for number in file["best"]]
        extra = len(file["kernel/extra"])
    counts = ", ".join(f"{status.count(name)} {name}" for name in sorted(set(status)))
    print(
        f"| {study.stem} | {ranks} | {sum(seconds):.1f} | {max(seconds):.1f} | {clock:.1f} | {counts} | {extra} |",
        flush=True,
    )
    return best


def sample_of(orrery, study, count, seed):
    """Returns random configurations of a study, as values of workload.parallel."""
    lines = subprocess.run(
        [orrery, "explore", study, "--list"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    header = lines[0].split()
    rows = [
        dict(zip(header, line.split()))
        for line in lines[1:]
        if re.match(r" *\d+ ", line) and len(line.split()) == len(header)
    ]
    return [{key: row[name] for name, key in KEYS.items()} for row in random.Random(seed).sample(rows, count)]


def trials(orrery, count, seed, folder):
    """Compares configurations in one process with a process for each."""
    study = STUDIES / "llama3-70b-1024.yaml"
    plans = sample_of(orrery, study, count, seed)
    base = SOURCE / "configs/llama3-70b-1024.yaml"
    mappings = [f"{{{', '.join(f'{key}: {value}' for key, value in plan.items())}}}" for plan in plans]
    many = folder / "sample.yaml"
    many.write_text(
        f"study:\n  base: {base}\n  parameters:\n    plan:\n      key: workload.parallel\n      values:\n"
        + "".join(f"        - {mapping}\n" for mapping in mappings)
        + "  objectives: [{minimise: step_time}]\n  sensitivity: false\n"
    )
    together = measure([orrery, "explore", many, f"--output={folder / 'sample.h5'}", "--force"])
    print(f"{count} random configurations: {together / count:.4f} s of CPU each in one process", flush=True)
    for options in ([], ["--record-iterations=0"]):
        alone = sum(
            measure(
                [
                    orrery,
                    "run",
                    base,
                    f"--set=workload.parallel={mapping}",
                    "--fold",
                    "--quiet",
                    "--memory=report",
                    "--force",
                    f"--output={folder / 'results.h5'}",
                    *options,
                ]
            )
            for mapping in mappings
        )
        print(
            f"{alone / count:.4f} s each by `orrery run{''.join(' ' + one for one in options)}`: {together / alone:.2f} of it",
            flush=True,
        )


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
            print(
                "| study | ranks | CPU s | busiest rank | clock s | trials | simulated besides |\n|---|---|---|---|---|---|---|",
                flush=True,
            )
        if "70b" in what:
            best = [explore(options.orrery, STUDIES / "llama3-70b-1024.yaml", count, folder) for count in ranks]
            if any(other != best[0] for other in best):
                raise SystemExit("the best trials depend on the number of ranks")
            print(
                "\n" + "\n".join(f"trial {number}: {seconds:.6f} s" for number, seconds in best[0]) + "\n", flush=True
            )
        if "405b" in what:
            for number, seconds in explore(options.orrery, STUDIES / "llama3-405b-16384.yaml", max(ranks), folder):
                print(f"trial {number}: {seconds:.6f} s")
        if "trials" in what:
            trials(options.orrery, options.sample, options.seed, folder)


if __name__ == "__main__":
    main()
