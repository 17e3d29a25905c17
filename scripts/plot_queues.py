#!/usr/bin/env python3
"""Draws the deepest queues of the packet network over time, when their links were stopped by pauses, and how many packets were marked.

usage: plot_queues.py RESULTS.h5 [--links N] [--output FILE.png] [--dpi N]

The run needs --queue-bins.
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
    sys.exit(f"plot_queues.py: {error}")


def main():
    parser = command.parser(__doc__, ".queues.png")
    parser.add_argument("--links", type=int, default=6, help="how many links are drawn (default: 6)")
    arguments = parser.parse_args()
    command.draw(arguments, lambda run: plots.queues(run, arguments.links))


if __name__ == "__main__":
    main()
