#!/usr/bin/env python3
"""Draws what `orrery campaign` or `orrery cluster` has found, each picture in a file of its own: shares of the wall time, costs by cause, the
timeline and what --optimise tried; or the use of the cluster, jobs on leaves, waits and times by class, and slow-downs.

usage: plot_campaign.py FILE.h5 [--output PREFIX] [--dpi N]
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))

try:
    from orrery.errors import ResultsError
    from orrery.plots import style, weeks
    from orrery.source import CAMPAIGN, CLUSTER, Source, format_of
except ImportError as error:
    sys.exit(
        f"plot_campaign.py: {error}. Install python3-h5py and python3-matplotlib, and run the script with /usr/bin/python3."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument(
        "--output", type=pathlib.Path, help="PREFIX of the pictures PREFIX-NAME.png (default: beside the results)"
    )
    parser.add_argument("--dpi", type=int, default=120)
    arguments = parser.parse_args()
    draw = {CAMPAIGN: weeks.campaign, CLUSTER: weeks.cluster}.get(format_of(arguments.file))
    if draw is None:
        sys.exit(f"plot_campaign.py: {arguments.file}: no results of orrery campaign or orrery cluster")
    try:
        source = Source(arguments.file, format_of(arguments.file))
    except ResultsError as error:
        sys.exit(f"plot_campaign.py: {error}")
    prefix = arguments.output or arguments.file.with_suffix("")
    for name, _, figure in draw(source):
        path = f"{prefix}-{name}.png"
        with style.look():
            figure.savefig(path, dpi=arguments.dpi)
        print(path)


if __name__ == "__main__":
    main()
