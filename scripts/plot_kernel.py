#!/usr/bin/env python3
"""Draws how a run of the simulator itself went: the busy and the blocked time of each MPI rank, and the messages that it sent.

usage: plot_kernel.py RESULTS.h5 [--output FILE.png] [--dpi N]
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
    sys.exit(f"plot_kernel.py: {error}")


def main():
    command.draw(command.parser(__doc__, ".kernel.png").parse_args(), plots.kernel)


if __name__ == "__main__":
    main()
