#!/usr/bin/env python3
"""Draws what more MPI ranks would gain: the speedup that `orrery show scaling --json` predicts, and what limits it.

usage: plot_scaling.py SCALING.json [SCALING.json ...] [--output FILE.png] [--dpi N]
"""
import argparse
import json
import os
import sys
from pathlib import Path

# The package stands beside this script in a clone, and in lib/python3/dist-packages of an installation.
HERE = Path(__file__).resolve().parent
PLACES = [HERE / "python", *(folder / "lib/python3/dist-packages" for folder in HERE.parents)]
sys.path[:0] = [str(place) for place in PLACES if (place / "orrery").is_dir()][:1]
try:
    from orrery.plots import scaling, style
except ImportError as error:
    sys.exit(f"plot_scaling.py: {error}")


def read(path):
    """Returns what a file of `orrery show scaling --json` holds; ends the program with a message if it is none."""
    try:
        with open(path) as file:
            table = json.load(file)
        if not table["rows"] or any(not {"ranks", "speedup", "limit"} <= set(row) for row in table["rows"]):
            raise ValueError("no rows")
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(
            f"plot_scaling.py: {path}: found no prediction ({error}); expected what orrery show scaling --json prints"
        )
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", metavar="SCALING.json", nargs="+", help="what orrery show scaling --json printed")
    parser.add_argument(
        "--output", metavar="FILE", help="the picture: .png, .svg or .pdf (default: beside the first table, .png)"
    )
    parser.add_argument("--dpi", type=int, default=style.DPI, help=f"dots per inch (default: {style.DPI})")
    arguments = parser.parse_args()
    output = arguments.output or os.path.splitext(arguments.tables[0])[0] + ".png"
    tables = [(os.path.splitext(os.path.basename(path))[0], read(path)) for path in arguments.tables]
    try:
        style.save(scaling.predictions(tables), output, arguments.dpi)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_scaling.py: {output}: the picture cannot be written: {error}")
    print(f"wrote {output}")


if __name__ == "__main__":
    main()
