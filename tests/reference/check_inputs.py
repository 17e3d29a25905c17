#!/usr/bin/env python3
"""Holds every file of a folder of real inputs to its facts.

    check_inputs.py [DIR [FOLDER...]]

DIR (by default the folder inputs of shared/) has one folder for each source of inputs (kineto, chakra-et, text, ...),
each with `facts.txt`: one JSON object a line, which says what an importer must find in the file that it names. A module
of tests/reference/inputs, named like the folder (with _ for -), knows how to ask the program for these facts. Prints
one line for each input that differs from its facts, and a table of all folders. Returns 1 if any input differs, or if
no such folder is there, and 77 if there is no DIR.
"""

import importlib
import json
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "support")]

import harness  # noqa: E402


def read_facts(folder):
    """Returns the facts of a folder: the objects of facts.txt, without comments; none if there is no such file."""
    path = folder / "facts.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{")]


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else harness.SHARED / "inputs"
    if not root.is_dir():
        print(f"{root} is not there: skipped")
        return harness.SKIPPED
    known = sorted(path.stem for path in (here / "inputs").glob("*.py") if path.stem != "__init__")
    wanted = [name.replace("-", "_") for name in arguments[1:]] or known
    there = [name for name in wanted if (root / name.replace("_", "-")).is_dir()]
    if not there:
        print(
            f"{root}: found no folder of inputs; expected one of {', '.join(name.replace('_', '-') for name in wanted)}"
        )
        return 1
    num_bad = 0
    for path in sorted(root.glob("*/facts.txt")):
        if path.parent.name.replace("-", "_") not in known:
            print(f"{path.parent.name:<14} has facts, but nothing here knows how to ask for them")
            num_bad += 1
    for name in wanted:
        folder = root / name.replace("_", "-")
        if not folder.is_dir():
            print(f"{folder.name:<14} not there")
            continue
        # Each result is (what was looked at, what differs); the second is empty if all agrees.
        results = list(importlib.import_module(f"inputs.{name}").check(folder, read_facts(folder)))
        bad = [(what, difference) for what, difference in results if difference]
        for what, difference in bad:
            print(f"  {folder.name}/{what}: {difference}")
        print(f"{folder.name:<14} {len(results) - len(bad)} of {len(results)} agree")
        num_bad += len(bad) + (not results)
    return 1 if num_bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
