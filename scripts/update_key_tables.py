#!/usr/bin/env python3
"""Writes the lists of keys and flags into the documents, from the descriptors in the program.

In a document a list stands between the lines `<!-- keys: NAME -->` and `<!-- end of keys -->`, for which this script puts what
`orrery show keys --markdown` prints under the same name. With --check it changes nothing and leaves with 1 if a document is
not up to date. It leaves with 1 as well if a list of the program is in no document or in two.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = re.compile(r"<!-- keys: (.*?) -->\n.*?<!-- end of keys -->\n", re.DOTALL)


def lists_of_program(program):
    """Returns the lists that the program prints, by their names, each with the lines that mark it."""
    printed = subprocess.run([program, "show", "keys", "--markdown"], check=True, capture_output=True, text=True).stdout
    return {match.group(1): match.group(0) for match in LIST.finditer(printed)}


def updated(text, lists, used):
    """Returns a document with its lists replaced, and adds their names to `used`. Raises KeyError for a name that the program does not have."""
    def replace(match):
        used.append(match.group(1))
        return lists[match.group(1)]
    return LIST.sub(replace, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; leave with 1 if a document is not up to date")
    parser.add_argument("--orrery", default=os.environ.get("ORRERY_BINARY", ROOT / "build/release/bin/orrery"), help="the program")
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
    for name in lists:
        if used.count(name) != 1:
            faults.append(f"the list '{name}' is in {used.count(name)} places of the documents; expected 1")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
