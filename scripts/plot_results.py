#!/usr/bin/env python3
"""Draws the results of a run: where each NPU's time went and, if the run kept a timeline, what the NPUs did when and what the
tensors in their local memory took.

usage: plot_results.py RESULTS.h5 [--npus 0,4-7] [--time BEGIN,END] [--output FILE.png] [--dpi N]
"""
import sys
from pathlib import Path

# The package stands beside this script in a clone, and in lib/python3/dist-packages of an installation.
HERE = Path(__file__).resolve().parent
PLACES = [HERE / "python", *(folder / "lib/python3/dist-packages" for folder in HERE.parents)]
sys.path[:0] = [str(place) for place in PLACES if (place / "orrery").is_dir()][:1]
try:
    from orrery import plots
    from orrery.plots import command
except ImportError as error:
    sys.exit(f"plot_results.py: {error}")


def main():
    parser = command.parser(__doc__, ".png")
    parser.add_argument(
        "--npus", type=command.numbers, help="NPUs that are drawn node by node, as 0,4-7 (default: four, evenly spread)"
    )
    parser.add_argument(
        "--time",
        type=command.span,
        metavar="BEGIN,END",
        help="the part of the run to look at, as '10 ms,20 ms' (default: all)",
    )
    arguments = parser.parse_args()
    command.draw(arguments, lambda run: plots.overview(run, npus=arguments.npus, time=arguments.time))


if __name__ == "__main__":
    main()
