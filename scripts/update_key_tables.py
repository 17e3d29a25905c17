#!/usr/bin/env python3
"""Writes the lists of keys, flags and metrics into the documents and the Python package, from the descriptors in the program.

In a document a list stands between the lines `<!-- keys: NAME -->` and `<!-- end of keys -->`, for which this script puts what
`orrery show keys --markdown` and `orrery show metrics --markdown` print under the same name. The table of metrics of the Python package
is made from `orrery show metrics --json`. With --check it changes nothing and leaves with 1 if a document is
not up to date. It leaves with 1 as well if a list of the program is in no document or in two.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = re.compile(r"<!-- keys: (.*?) -->\n.*?<!-- end of keys -->\n", re.DOTALL)


METRICS = ROOT / "scripts/python/orrery/metric_table.py"
HEAD_OF_METRICS = '''"""Metrics of studies, in the order of tables. Made by scripts/update_key_tables.py from `orrery show metrics --json`."""
import typing


class Metric(typing.NamedTuple):
    """What tables and reports have to know of a metric."""

    name: str
    title: str
    more_is_better: bool
    is_share: bool
    place: int  # among the metrics that are shown first, from 1; 0: after them


METRICS = [
'''


def lists_of_program(program):
    """Returns the lists that the program prints, by their names, each with the lines that mark it."""
    printed = "".join(
        subprocess.run([program, "show", what, "--markdown"], check=True, capture_output=True, text=True).stdout
        for what in ("keys", "metrics")
    )
    return {match.group(1): match.group(0) for match in LIST.finditer(printed)}


def metrics_of_package(program):
    """Returns the text of the Python module that has the metrics."""
    found = json.loads(
        subprocess.run([program, "show", "metrics", "--json"], check=True, capture_output=True, text=True).stdout
    )
    last = len(found) + 1
    found.sort(key=lambda metric: metric["place"] or last)
    rows = "".join(
        f'    Metric({json.dumps(one["name"])}, {json.dumps(one["title"])}, {one["better"] == "more"}, {one["is_share"]}, {one["place"]}),\n'
        for one in found
    )
    return HEAD_OF_METRICS + rows + "]\nBY_NAME = {metric.name: metric for metric in METRICS}\n"


def updated(text, lists, used):
    """Returns a document with its lists replaced, and adds their names to `used`. Raises KeyError for a name that the program does not have."""

    def replace(match):
        used.append(match.group(1))
        return lists[match.group(1)]

    return LIST.sub(replace, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; leave with 1 if a document is not up to date"
    )
    parser.add_argument(
        "--orrery", default=os.environ.get("ORRERY_BINARY", ROOT / "build/release/bin/orrery"), help="the program"
    )
    parser.add_argument("documents", nargs="*", type=pathlib.Path, default=sorted((ROOT / "docs").glob("*.md")))
    arguments = parser.parse_args()
    lists = lists_of_program(arguments.orrery)
    used, faults = [], []
    for document in arguments.documents:
        text = document.read_text()
        try:
            new = updated(text, lists, used)
        except KeyError as unknown:
            faults.append(f"{document}: the program has no list named {unknown}")
            continue
        if new != text and arguments.check:
            faults.append(f"{document}: a list of keys is not up to date; run scripts/update_key_tables.py")
        elif new != text:
            document.write_text(new)
    if arguments.documents == sorted((ROOT / "docs").glob("*.md")):
        new = metrics_of_package(arguments.orrery)
        if not METRICS.exists() or new != METRICS.read_text():
            if arguments.check:
                faults.append(f"{METRICS}: the metrics are not up to date; run scripts/update_key_tables.py")
            else:
                METRICS.write_text(new)
    for name in lists:
        if used.count(name) != 1:
            faults.append(f"the list '{name}' is in {used.count(name)} places of the documents; expected 1")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
