#!/usr/bin/python3
"""Prints which part of the lines of each parser its fuzz target reaches with its seeds and its corpus.

usage: coverage.py BUILD [--missing] TARGET...     BUILD: folder of the preset `fuzz`"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import make_seeds
from targets import TARGETS

LEAST = 90  # percent


def tool(name):
    return f"{name}-19"


def lines_reached(build, target, folder):
    """Returns for each source the executions of its lines: {path: {line: count}}."""
    raw, profile, program = folder / "raw", folder / "profile", build / "bin" / f"fuzz_{target}"
    inputs = [
        str(path)
        for folder in ("seeds", "seeds/shared", "corpus", "corpus-shared")
        if (path := build / folder / target).is_dir()
    ]
    ended = subprocess.run(
        [program, "-runs=0", "-timeout=60", "-rss_limit_mb=0", "-close_fd_mask=1", *inputs],
        capture_output=True,
        text=True,
        env={**os.environ, "LLVM_PROFILE_FILE": str(raw), "TMPDIR": str(folder)},
        errors="replace",
    )
    if ended.returncode != 0:
        sys.exit(f"{target}: {ended.stderr[-2000:]}")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", raw, "-o", profile], check=True)
    sources = sorted({str(path) for path, _, _ in make_seeds.parser_sources(target)})
    report = subprocess.run(
        [tool("llvm-cov"), "export", "-format=lcov", f"-instr-profile={profile}", program, *sources],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    result, lines = {}, {}
    for line in report.splitlines():
        if line.startswith("SF:"):
            lines = result.setdefault(pathlib.Path(line[3:]), {})
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            lines[int(number)] = int(count)
    return result


def part_of(source, first, last):
    """Returns the numbers of the lines from the one that holds the first text to the one that holds the last text."""
    text = source.read_text().splitlines()
    begin = next(i for i, line in enumerate(text) if first in line) if first else 0
    end = next(i for i, line in enumerate(text) if i > begin and last in line) if last else len(text)
    return range(begin + 1, end + 1)


def in_words(numbers):
    """Returns ascending numbers as "3, 7-9"."""
    ranges = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in ranges)


def main():
    build = pathlib.Path(sys.argv[1])
    shows_missing = "--missing" in sys.argv
    failed = False
    for target in [name for name in sys.argv[2:] if name != "--missing"]:
        with tempfile.TemporaryDirectory(prefix="orrery-fuzz-") as folder:
            reached = lines_reached(build, target, pathlib.Path(folder))
        total = hit = 0
        details = []
        for source, first, last in make_seeds.parser_sources(target):
            part = part_of(source, first, last)
            lines = {line: count for line, count in reached.get(source, {}).items() if line in part}
            missing = [line for line, count in sorted(lines.items()) if count == 0]
            total, hit = total + len(lines), hit + len(lines) - len(missing)
            name = source.relative_to(make_seeds.SOURCE)
            details.append(
                f"    {name}: {len(lines) - len(missing)} of {len(lines)} lines"
                + (f", not {in_words(missing)}" if missing else "")
            )
        share = 100 * hit / total if total else 0
        failed = failed or share < LEAST
        print(
            f"{target:16} {share:5.1f} % of {total} lines{'' if share >= LEAST else f': below {LEAST} %'}", flush=True
        )
        if shows_missing:
            print("\n".join(details), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
