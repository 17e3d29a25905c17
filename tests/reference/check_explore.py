#!/usr/bin/env python3
"""Holds the program to published searches, plans and prices.

    check_explore.py [DIR] [--select TEXT] [--quick]

DIR has JSON files with a list "cases" (by default shared/reference/explore). A case has a config and what is expected, with a tolerance. The
keys of these say what it is; its id only names it. Each case is held, or missed, or it cannot be checked: then the reason is printed, such as
a key that it lacks. Missed cases make the exit code 1, except the KNOWN ones, which are missed with a reason. --quick takes few cases of each study, in a minute.
Returns 77 if there is no such folder. The modules of explore_cases have one study each.
"""
import argparse
import json
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "support"), str(here)]

import harness  # noqa: E402
from explore_cases import calculon, comet, libra, llama, prices, sc21, vtrain  # noqa: E402
from explore_cases.outcome import Outcome  # noqa: E402

STUDIES = (
    libra,
    prices,
    vtrain,
    calculon,
    llama,
    sc21,
    comet,
)  # each has is_own(case), and check(cases, quick) -> outcomes
KNOWN = {
    "vtrain-multi-39.1B-512": "six plans with tensor parallelism of 2 were measured 18 to 60 % slower than they are simulated; plans with 8 agree within 5 %",
    "sc21-table1-search": "vTrain measured plans that are 10 % (3.6B) and 6 % (39.1B) faster than the published ones, as the simulation says",
    "sc21-claim-tp": "of the largest model a plan with tp 16 is among the best three",
}


def what_is_expected(case):
    expected = case["expected"]
    return (
        ", ".join(map(str, expected)) or "nothing"
        if isinstance(expected, dict)
        else f"a list of {len(expected)}"
        if isinstance(expected, list)
        else expected
    )


def study_of(case):
    return next((study for study in STUDIES if study.is_own(case)), None)


def outcomes_of(cases, quick):
    """The outcome of each case."""
    for study in STUDIES:
        own = [case for case in cases if study_of(case) is study]
        if own:
            yield from study.check(own, quick)
    for case in cases:
        if study_of(case) is None:
            yield Outcome(
                case["id"],
                None,
                f"nothing computes {what_is_expected(case)} from {', '.join(map(str, case['config'])) or 'nothing'}",
            )


def cases_of(file):
    """The cases of a file. Each has what the file says of all of them as "file"."""
    data = json.loads(file.read_text())
    of_all = {key: value for key, value in data.items() if key != "cases"}
    usual = {"config": {}, "expected": {}, "tolerance": None}
    return [
        {"id": f"{file.stem} {number}", **usual, **case, "file": of_all} for number, case in enumerate(data["cases"])
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=harness.SHARED / "reference/explore")
    parser.add_argument("--select", default="", help="only cases whose id has this text")
    parser.add_argument("--quick", action="store_true", help="few cases of each study")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("*.json"))
    if not files:
        print(f"{arguments.folder} has no JSON files: skipped")
        return harness.SKIPPED
    cases = [case for file in files for case in cases_of(file) if arguments.select in case["id"]]
    outcomes = list(outcomes_of(cases, arguments.quick))
    for outcome in outcomes:
        known = f" (known: {KNOWN[outcome.id]})" if outcome.held is False and outcome.id in KNOWN else ""
        print({True: "held  ", False: "MISSED", None: "none  "}[outcome.held], f"{outcome.id}: {outcome.text}{known}")
    count = [outcome.held for outcome in outcomes].count
    print(
        f"{count(True)} held, {count(False)} missed, {count(None)} not checked, of {len(cases)} cases"
        + (" (a part of them)" if arguments.quick else "")
    )
    return 1 if any(outcome.held is False and outcome.id not in KNOWN for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
