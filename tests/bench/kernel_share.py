#!/usr/bin/python3
"""Measures the share of a run's instructions on one rank that the kernel takes, by valgrind's callgrind.

usage: kernel_share.py [--orrery BIN] [ARGUMENT ...]

ARGUMENTs are those of `orrery run`; the default is configs/llama3-8b-64.yaml with 5 % noise. It counts the functions' own cost in
orrery::pdes, the event set included. Code of the kernel that the compiler put into other functions counts as theirs, and the reverse."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"^\s*([\d,]+) \(\s*[\d.]+%\)\s+\S+?:(.*)$")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=SOURCE / "build/release/bin/orrery", type=pathlib.Path)
    arguments, run = parser.parse_known_args()
    run = run or [str(SOURCE / "configs/llama3-8b-64.yaml"), "--noise=0.05"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            subprocess.run(
                [
                    "valgrind",
                    "--tool=callgrind",
                    f"--callgrind-out-file={folder / 'out'}",
                    arguments.orrery,
                    "run",
                    *run,
                    f"--output={folder / 'results.h5'}",
                    "--quiet",
                ],
                check=True,
                capture_output=True,
            )
        except FileNotFoundError:
            sys.exit("kernel_share.py: valgrind is not installed; on Debian: apt-get install valgrind")
        text = subprocess.run(
            ["callgrind_annotate", "--threshold=100", "--auto=no", folder / "out"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    kernel = total = 0
    for line in text.splitlines():
        found = LINE.match(line)
        if found is None:
            continue
        cost = int(found[1].replace(",", ""))
        total += cost
        if re.search(r"(^|[ <(*&])orrery::pdes::[\w:~()' ]+\(", found[2].split("'2")[0]):
            kernel += cost
    print(f"{kernel:,} of {total:,} instructions are the kernel's: {100 * kernel / total:.1f} %")


if __name__ == "__main__":
    main()
