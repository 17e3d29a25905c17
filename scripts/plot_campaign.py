#!/usr/bin/env python3
"""Draws what `orrery campaign` or `orrery cluster` has found: shares of the wall time, costs by cause, the timeline and what --optimise tried; or
the use of the cluster, the queue and waits by class.

usage: plot_campaign.py FILE.h5 [--output FILE.png] [--dpi N]
"""
import argparse
import pathlib
import sys

try:
    import h5py
    import matplotlib
    import numpy
except ImportError as error:
    sys.exit(f"plot_campaign.py: {error}. Install python3-h5py and python3-matplotlib, and run the script with /usr/bin/python3.")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

STATES = ["useful", "lost", "stall", "detect", "wait", "select", "restart", "slow", "pause"]
COLOURS = dict(zip(STATES, ["#4c9f70", "#c0392b", "#7f8c8d", "#f39c12", "#8e44ad", "#2980b9", "#16a085", "#d35400", "#2c3e50"]))
WEEK = 7 * 86400


def columns(file, path):
    """Returns the columns of a table; texts as Python has them."""
    found = {name: column[()] for name, column in file[path].items()}
    return {name: [text.decode() for text in values] if values.dtype.kind in "OS" else values for name, values in found.items()}


def draw_shares(axes, rows):
    """Draws the mean share of the wall time of each state as one bar."""
    time, left = rows["time"].sum(), 0.0
    for state in STATES:
        share = rows[state].sum() / time
        axes.barh(0, share, left=left, color=COLOURS[state], label=f"{state} {100 * share:.2f} %")
        left += share
    axes.set(yticks=[], xlim=(0, 1), title="share of the wall time")
    axes.legend(ncol=5, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.25))


def draw_causes(axes, lost, npu_hours):
    """Draws the NPU-hours that each process cost, by state."""
    cost = sum(lost[state] for state in STATES[1:])
    order = numpy.argsort(cost)[-12:]
    left = numpy.zeros(len(order))
    for state in STATES[1:]:
        width = lost[state][order] * npu_hours
        axes.barh([lost["process"][i] for i in order], width, left=left, color=COLOURS[state])
        left += width
    axes.set(xlabel="hours of the job", title="cost by cause")
    axes.tick_params(axis="y", labelsize=7)


def draw_timeline(axes, periods):
    """Draws what replication 0 did, a line for each week."""
    for begin, end, state in zip(periods["begin"] * 1e-9, periods["end"] * 1e-9, periods["state"]):
        while begin < end:
            week = int(begin // WEEK)
            until = min(end, (week + 1) * WEEK)
            axes.barh(week, (until - begin) / 86400, left=(begin - week * WEEK) / 86400, color=COLOURS[state], height=0.8)
            begin = until
    axes.invert_yaxis()
    axes.set(xlabel="day", ylabel="week", title="replication 0", xlim=(0, 7))


def draw_optimum(axes, tried, closed_forms, what):
    """Draws the objective over what was varied, with its interval, the closed form and Young's interval."""
    rows = [i for i, varied in enumerate(tried["varied"]) if varied == what]
    x = tried[what][rows]
    name = "ettr" if what == "interval" else "goodput"
    axes.errorbar(x, tried[name][rows], yerr=tried[f"{name}_half_width"][rows], fmt="o-", markersize=3, label=f"simulated {name}")
    if what == "interval":
        axes.plot(x, tried["closed_form"][rows], "--", label="closed form, crashes alone")
        if "young" in closed_forms:
            axes.axvline(closed_forms["young"], color="grey", linewidth=0.8, label="Young")
        axes.set_xscale("log")
    axes.set(xlabel="interval in s" if what == "interval" else "standbys", title=f"best {what}")
    axes.legend(fontsize=7)


def draw_campaign(file):
    rows, lost = columns(file, "/campaign/replications"), columns(file, "/campaign/lost")
    forms = columns(file, "/campaign/closed_forms")
    tried = columns(file, "/campaign/optimum") if "/campaign/optimum" in file else {"varied": []}
    searches = sorted(set(tried["varied"]))
    figure, axes = plt.subplots(3 + len(searches), 1, figsize=(9, 9 + 3 * len(searches)), height_ratios=[0.6, 2, 2] + [2] * len(searches))
    draw_shares(axes[0], rows)
    draw_causes(axes[1], lost, 1 / 3600)
    draw_timeline(axes[2], columns(file, "/campaign/timeline"))
    for what, panel in zip(searches, axes[3:]):
        draw_optimum(panel, tried, dict(zip(forms["name"], forms["value"])), what)
    return figure


def draw_cluster(file):
    usage, jobs = columns(file, "/cluster/usage"), columns(file, "/cluster/jobs")
    figure, axes = plt.subplots(4, 1, figsize=(9, 12))
    days = usage["time"] * 1e-9 / 86400
    total = usage["busy"] + usage["free"]
    axes[0].step(days, usage["busy"] / total, where="post", linewidth=0.6)
    axes[0].set(ylabel="share of NPUs", title="NPUs of jobs", ylim=(0, 1))
    axes[1].step(days, usage["queue"], where="post", linewidth=0.6, color="#c0392b")
    axes[1].set(xlabel="day", ylabel="jobs", title="queue")
    ran = jobs["start"] >= 0
    for name in sorted(set(jobs["class"])):
        chosen = ran & numpy.array([other == name for other in jobs["class"]])
        waits = numpy.sort((jobs["start"] - jobs["arrival"])[chosen] * 1e-9)
        axes[2].step(numpy.maximum(waits, 1), numpy.arange(1, len(waits) + 1) / max(len(waits), 1), label=name)
        slow = ((jobs["end"] - jobs["start"])[chosen]) / jobs["length"][chosen]
        axes[3].plot(jobs["npus"][chosen], slow, ".", markersize=2, label=name)
    axes[2].set(xscale="log", xlabel="wait in s (at least 1)", ylabel="share of jobs", title="waits by class")
    axes[3].set(xscale="log", xlabel="NPUs", ylabel="time over that alone", title="slow-down")
    axes[2].legend(fontsize=7)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, help="file of the picture (default: beside the results)")
    parser.add_argument("--dpi", type=int, default=120)
    arguments = parser.parse_args()
    try:
        file = h5py.File(arguments.file, "r")
    except OSError as error:
        sys.exit(f"plot_campaign.py: {arguments.file}: {error}")
    with file:
        draw = {"orrery-campaign": draw_campaign, "orrery-cluster": draw_cluster}.get(file.attrs.get("format"))
        if draw is None:
            sys.exit(f"plot_campaign.py: {arguments.file}: no results of orrery campaign or orrery cluster")
        figure = draw(file)
    figure.tight_layout()
    output = arguments.output or arguments.file.with_suffix(".png")
    figure.savefig(output, dpi=arguments.dpi)
    print(output)


if __name__ == "__main__":
    main()
