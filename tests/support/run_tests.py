#!/usr/bin/env python3
"""Runs tests by ctest and notes which were the slowest.

usage: run_tests.py [--limit SECONDS] FILE.xml CTEST_ARGUMENT ...

ctest writes its results to FILE.xml, and the ten slowest tests stand in FILE.txt afterwards. Exits with ctest's exit code, or with 1 if a
test took more than SECONDS.

The limit holds for a machine that does nothing else. If other programs use its processors, all tests take longer, and the limit grows by
the same factor: the processor time that there was, over the processor time that the tests got.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

SHOWN = 10


def slowest(path):
    """Returns [(seconds, name)] of a file of ctest, the slowest test first."""
    return sorted(((float(case.get("time")), case.get("name")) for case in xml.parse(path).iter("testcase")), reverse=True)


def lacking(seconds, used, cores):
    """Returns how many times longer tests take than on a machine that does nothing else, if they used so many seconds of processor time."""
    return max(1.0, seconds * cores / max(used, 1e-3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, metavar="SECONDS")
    parser.add_argument("file", type=pathlib.Path, metavar="FILE.xml")
    options, arguments = parser.parse_known_args()
    begin = time.monotonic()
    code = subprocess.run(["ctest", *arguments, "--output-junit", str(options.file.resolve())]).returncode
    seconds = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    factor = lacking(seconds, used.ru_utime + used.ru_stime, len(os.sched_getaffinity(0)))
    tests = slowest(options.file)
    options.file.with_suffix(".txt").write_text("".join(f"{time:7.1f} s  {name}\n" for time, name in tests[:SHOWN]))
    if options.limit is not None:
        for time_of_test, name in tests:
            if time_of_test > options.limit * factor:
                print(f"{name} takes {time_of_test:.0f} s, and a test of this set has {options.limit:.0f} s ({options.limit * factor:.0f} s on this "
                      "machine, which others use too). Mark what is long in it with harness.long, or register it as LONG.")
                code = code or 1
    sys.exit(code)


if __name__ == "__main__":
    main()
