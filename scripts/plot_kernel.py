#!/usr/bin/env python3
"""Draw how a run of Orrery went: the busy and the blocked time of each MPI rank, with the messages that it sent per hundred events.

usage: plot_kernel.py RESULTS.h5 [--output FILE.png] [--dpi N]
"""
import argparse
import os
import sys

try:
    import h5py
    import numpy as np
except ImportError as error:
    sys.exit(f"plot_kernel.py needs {error.name}: apt-get install python3-h5py python3-numpy (or run it with /usr/bin/python3)")
try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(f"plot_kernel.py needs {error.name}: apt-get install python3-matplotlib (or run it with /usr/bin/python3)")

# The palette of Okabe and Ito, told apart with any colour vision.
BLUE, VERMILION, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#56B4E9"
LEGEND = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "frameon": False, "alignment": "left"}


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def stacked(axes, parts):
    """Bars of one rank each; `parts` is a list of values, label and colour from the bottom up."""
    ranks = len(parts[0][0])
    bottom = np.zeros(ranks)
    for values, label, colour in parts:
        axes.bar(np.arange(ranks), values, width=0.8 if ranks <= 128 else 1, bottom=bottom, color=colour, linewidth=0.6 if ranks <= 128 else 0,
                 edgecolor="white" if ranks <= 128 else colour, label=label)
        bottom += values
    axes.set_xlim(-0.5, ranks - 0.5)
    axes.set_ylim(0, max(bottom.max(initial=0) * 1.02, 1e-9))
    axes.xaxis.get_major_locator().set_params(integer=True)


def draw_times(axes, kernel):
    busy, blocked = kernel["busy_time"][:], kernel["blocked_time"][:]
    whole = max((busy + blocked).sum(), 1e-12)
    unit, size = ("s", 1) if (busy + blocked).max(initial=0) >= 1 else ("ms", 1e3)
    stacked(axes, [(busy * size, f"busy  {100 * busy.sum() / whole:.1f} %", BLUE), (blocked * size, f"blocked  {100 * blocked.sum() / whole:.1f} %", VERMILION)])
    axes.set_ylabel(f"wall-clock time ({unit})")
    axes.set_title("Busy and blocked", loc="left")
    axes.legend(title="mean over all ranks", **LEGEND)


def draw_messages(axes, kernel):
    events = np.maximum(kernel["events"][:], 1) / 100
    data, null = kernel["data_messages"][:], kernel["null_messages"][:]
    stacked(axes, [(data / events, f"data  {data.sum():,}", GREEN), (null / events, f"null  {null.sum():,}", SKY)])
    axes.set_ylabel("messages per\nhundred events")
    axes.set_xlabel("rank")
    axes.set_title("Messages sent", loc="left")
    axes.legend(title="of all ranks", **LEGEND)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS.h5")
    parser.add_argument("--output", help="picture (default: beside the results, .kernel.png)")
    parser.add_argument("--dpi", type=int, default=150)
    args = parser.parse_args()
    try:
        results = h5py.File(args.results, "r")
    except OSError as error:
        sys.exit(f"plot_kernel.py: {args.results}: {error}")
    with results:
        if text(results.attrs.get("format", "")) != "orrery-results":
            sys.exit(f"plot_kernel.py: {args.results} was not written by Orrery (its attribute 'format' is not 'orrery-results')")
        kernel = results["kernel"]
        events, ranks = kernel["events"][:], len(kernel["events"])
        plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.titleweight": "bold", "axes.titlesize": 11})
        figure, axes = plt.subplots(2, 1, figsize=(11, 6.2), height_ratios=[3.2, 1.8], squeeze=False, constrained_layout=True)
        balance = events.sum() / max(ranks * events.max(initial=0), 1)
        figure.suptitle(f"{ranks:,} rank{'s' if ranks > 1 else ''}, {events.sum():,} events, {results.attrs['wall_time']:.3g} s ({text(results.attrs['status'])}); "
                        f"balance of events {balance:.2f}", x=0.01, ha="left")
        draw_times(axes[0, 0], kernel)
        draw_messages(axes[1, 0], kernel)
    output = args.output or os.path.splitext(args.results)[0] + ".kernel.png"
    try:
        figure.savefig(output, dpi=args.dpi)
    except OSError as error:
        sys.exit(f"plot_kernel.py: {output}: {error}")
    print(f"wrote {output}")


if __name__ == "__main__":
    main()
