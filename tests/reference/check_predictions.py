#!/usr/bin/env python3
"""Holds the predictions of measured steps and collectives to their errors.

    check_predictions.py [--select TEXT] [FILE.csv]

FILE.csv is a table of measured steps and collectives (by default that of shared/). Training steps must be predicted with a mean error of
5 %, nine of ten within 12 %, and no group of five or more above 8 %; collectives with 15 % as they are, and 8 % with three measured points
of each series. Where rows differ in one thing only, nine of ten changes above the noise must have the right sign, and the rate must change
by what was measured within 5 points on the mean. Returns 77 if there is no such file. With --select only the steps whose group or id has this
text are predicted.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "support")]

import harness  # noqa: E402

STUDIES = harness.SOURCE / "scripts/studies"


def errors_of(study, rows, *more):
    with tempfile.TemporaryDirectory(prefix="orrery-predictions-") as folder:
        out = pathlib.Path(folder) / "errors.json"
        subprocess.run(
            [
                sys.executable,
                str(STUDIES / study),
                f"--rows={rows}",
                f"--json={out}",
                f"--orrery={harness.BINARY}",
                *more,
            ],
            check=True,
        )
        return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--select", default="", metavar="TEXT", help="of the steps only those whose group or id has this text"
    )
    parser.add_argument(
        "rows",
        nargs="?",
        type=pathlib.Path,
        default=harness.SHARED / "reference/measured/configured.csv",
        metavar="FILE.csv",
    )
    options = parser.parse_args()
    rows = options.rows
    if not rows.is_file():
        print(f"{rows} is not there: skipped")
        return harness.SKIPPED
    validation = errors_of("validation", rows, f"--select={options.select}")
    steps = validation["groups"]
    found = [("mean error of steps", steps["all"]["mean"], 0.05), ("nine of ten steps", steps["all"]["p90"], 0.12)]
    found += [(f"mean error of {name}", group["mean"], 0.08) for name, group in steps.items() if group["rows"] >= 5]
    found += [(f"change by {name}", trend["mean"], 0.05) for name, trend in validation["trends"].items()]
    found += [
        (f"wrong signs of {name}", 1 - trend["signs"] / trend["clear"], 0.1)
        for name, trend in validation["trends"].items()
        if trend["clear"] >= 10
    ]
    found += [
        ("collectives", errors_of("collectives", rows)["mean"], 0.15),
        ("corrected collectives", errors_of("collectives", rows, "--calibrate")["mean"], 0.08),
    ]
    wrong = [
        f"{what}: {100 * error:.1f} %, more than {100 * most:.0f} %" for what, error, most in found if error > most
    ]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
