#!/usr/bin/python3
"""Holds what the program says of collectives to a folder of cases.

    check_collectives.py [FOLDER] [--select TEXT] [--orrery PROGRAM]

FOLDER (by default reference/collectives of shared/) has lists of cases in *.json, in the form that its README describes: `id`, `kind`,
`inputs`, `expected`, `tolerance`, `source`. A module of tests/reference/collective_cases knows the kinds of its table KINDS: it turns the
inputs of a case into a configuration, runs the program, and compares. Prints a line for each case, and last "N passed, M failed". Returns 1
if any case failed, and 77 if there is no FOLDER. With --select only cases whose id, kind or file has this text are run.
"""
import argparse
import importlib
import json
import pathlib
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "support")]

import harness  # noqa: E402


def kinds():
    """Returns the function of each kind: check(case, folder) returns what the program said; it raises Missed if that is not expected."""
    known = {}
    for path in sorted((here / "collective_cases").glob("*.py")):
        if path.stem not in ("__init__", "support"):
            known.update(importlib.import_module(f"collective_cases.{path.stem}").KINDS)
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", nargs="?", type=pathlib.Path, default=harness.SHARED / "reference/collectives", metavar="FOLDER"
    )
    parser.add_argument("--select", default="", metavar="TEXT", help="only cases whose id, kind or file has this text")
    parser.add_argument(
        "--orrery", default=harness.BINARY, metavar="PROGRAM", help="the program (default: that of this build)"
    )
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"{options.folder} is not there: skipped")
        return harness.SKIPPED
    harness.BINARY = options.orrery
    known = kinds()
    passed = failed = 0
    for file in sorted(options.folder.glob("*.json")):
        for case in json.loads(file.read_text()):
            if not any(options.select in text for text in (case["id"], case["kind"], file.name)):
                continue
            with tempfile.TemporaryDirectory(prefix="orrery-collectives-") as folder:
                try:
                    if case["kind"] not in known:
                        raise ValueError(f"unknown kind {case['kind']}; expected one of {', '.join(known)}")
                    good, said = True, known[case["kind"]](case, pathlib.Path(folder))
                except Exception as fault:  # whatever a case does, the others are run
                    good, said = False, f"{fault}" if isinstance(fault, (ValueError, AssertionError)) else repr(fault)
            passed, failed = passed + good, failed + (not good)
            print("passed" if good else "FAILED", f"{file.name} {case['id']}: {said}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
