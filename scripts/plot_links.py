#!/usr/bin/env python3
"""Draws what each link of the congestion-aware or packet network did: for each dimension how many links have which value, and where they are.

usage: plot_links.py RESULTS.h5 [--quantity busy|queueing|bytes|peak] [--output FILE.png] [--dpi N]

Ring and Mesh have a map for each direction: a row for each group of NPUs that the dimension connects, a column for each position in it.
FullyConnected has one map from each position to each other one. Shapes with switches have a map for each kind of link, with a row for
each switch. A graph (system.network.graph) is drawn as it is, in tiers, with two lines for each link.
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
    sys.exit(f"plot_links.py: {error}")


def main():
    parser = command.parser(__doc__, ".links.png")
    parser.add_argument(
        "--quantity",
        choices=plots.QUANTITIES,
        default="busy",
        help="what is drawn (default: busy, the share of the time)",
    )
    arguments = parser.parse_args()
    command.draw(arguments, lambda run: plots.links(run, arguments.quantity))


if __name__ == "__main__":
    main()
