#!/usr/bin/env python3
"""Runs tests by ctest and notes which were the slowest.

usage: run_tests.py [--limit SECONDS] FILE.xml CTEST_ARGUMENT ...

ctest writes its results to FILE.xml, and the ten slowest tests stand in FILE.txt afterwards. Exits with ctest's exit code, or with 1 if a
test took more than SECONDS.

The limit holds for a test that has a processor of its own. If more tests run at a time than there are processors (--parallel), or if other
programs use these, all tests take longer, and the limit grows by the same factor: the tests at a time over the processors, or the processor
time that there was over the processor time that the tests got.
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
    return sorted(
        ((float(case.get("time")), case.get("name")) for case in xml.parse(path).iter("testcase")), reverse=True
    )


def lacking(seconds, used, cores, at_a_time):
    """Returns how many times longer a test takes than with a processor of its own, if so many ran at a time and all of them used so many
    seconds of processor time."""
    return max(1.0, at_a_time / cores, seconds * cores / max(used, 1e-3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, metavar="SECONDS")
    parser.add_argument("file", type=pathlib.Path, metavar="FILE.xml")
    parser.add_argument("--parallel", type=int, default=1, metavar="TESTS")
    options, arguments = parser.parse_known_args()
    begin = time.monotonic()
    code = subprocess.run(
        ["ctest", *arguments, "--parallel", str(options.parallel), "--output-junit", str(options.file.resolve())]
    ).returncode
    seconds = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    factor = lacking(seconds, used.ru_utime + used.ru_stime, len(os.sched_getaffinity(0)), options.parallel)
    tests = slowest(options.file)
    options.file.with_suffix(".txt").write_text("".join(f"{time:7.1f} s  {name}\n" for time, name in tests[:SHOWN]))
    if options.limit is not None:
        for time_of_test, name in tests:
            if time_of_test > options.limit * factor:
                print(
                    f"{name} takes {time_of_test:.0f} s, and a test of this set has {options.limit:.0f} s ({options.limit * factor:.0f} s beside "
                    "what else ran). Mark what is long in it with harness.long, or register it as LONG."
                )
                code = code or 1
    sys.exit(code)


if __name__ == "__main__":
    main()
