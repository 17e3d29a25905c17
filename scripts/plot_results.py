#!/usr/bin/env python3
"""Draw a results.h5 of Orrery: where each NPU's time went and, if the run kept a timeline, what a few NPUs did when and what
the tensors in their local memory took.

usage: plot_results.py RESULTS.h5 [--output FILE.png] [--npus 0,1,16] [--dpi N]
"""
import argparse
import os
import re
import sys

try:
    import h5py
    import numpy as np
except ImportError as error:
    sys.exit(f"plot_results.py needs {error.name}: apt-get install python3-h5py python3-numpy (or run it with /usr/bin/python3)")
try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch
except ImportError as error:
    sys.exit(f"plot_results.py needs {error.name}: apt-get install python3-matplotlib (or run it with /usr/bin/python3)")

# The palette of Okabe and Ito, told apart with any colour vision; idle is light, as nothing happens there.
BLUE, ORANGE, VERMILION, PURPLE, GREEN, SKY, LIGHT = "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#009E73", "#56B4E9", "#E4E4E4"
BREAKDOWN = [("compute_time", "compute", BLUE), ("cpu_time", "CPU", ORANGE), ("exposed_communication_time", "exposed communication", VERMILION),
             ("exposed_memory_time", "exposed remote memory", PURPLE), ("idle_time", "idle", LIGHT)]
KINDS = {"compute": BLUE, "cpu": ORANGE, "collective": VERMILION, "send": GREEN, "receive": SKY, "mem-load": PURPLE, "mem-store": PURPLE}
LANES = {"compute": 0, "cpu": 1, "collective": 2, "send": 2, "receive": 3, "mem-load": 2, "mem-store": 2}
MAX_BARS = 512           # more NPUs than this are averaged in equal bins
MAX_RECTANGLES = 20_000  # of one lane of a timeline
LINES = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "black", "#999999"]  # of NPUs that are drawn together
BYTES = [("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)]
PICOSECONDS = [("s", 1e12), ("ms", 1e9), ("µs", 1e6), ("ns", 1e3), ("ps", 1)]


def unit_of(longest, units=PICOSECONDS):
    """The unit in which `longest` picoseconds are 1 or more, and how many picoseconds it has. Likewise of bytes."""
    return next(((name, size) for name, size in units if longest >= size), units[-1])


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def binned(values, bars):
    """Means over `bars` bins of neighbours."""
    edges = np.linspace(0, len(values), bars + 1).astype(int)
    return np.add.reduceat(values, edges[:-1]) / np.diff(edges)


def draw_breakdown(axes, results):
    npus = len(results["npus/finish_time"])
    bars = min(npus, MAX_BARS)
    finish = results["npus/finish_time"][:]
    unit, size = unit_of(finish.max(initial=0))
    edges = np.linspace(0, npus, bars + 1).astype(int) - 0.5
    bottom = np.zeros(bars)
    for name, label, colour in BREAKDOWN:
        values = results["npus/" + name][:].astype(float)
        share = values.sum() / max(finish.sum(), 1)
        height = binned(values, bars) / size
        # A staircase without gaps reads alike with 8 and with 65,536 NPUs; few bars get a hairline between them.
        axes.bar(edges[:-1], height, width=np.diff(edges), bottom=bottom, align="edge", color=colour, linewidth=0.6 if bars <= 128 else 0,
                 edgecolor="white", label=f"{label}  {100 * share:.1f} %", rasterized=bars > 128)
        bottom += height
    axes.set_xlim(-0.5, npus - 0.5)
    axes.set_ylim(0, max(bottom.max(initial=0) * 1.02, 1e-9))
    axes.set_xlabel("NPU" if bars == npus else f"NPU (each column is the mean of about {round(npus / bars)} neighbours)")
    axes.set_ylabel(f"time ({unit})")
    axes.set_title("Where the time went", loc="left")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, title="mean over all NPUs", alignment="left")


def chosen_npus(asked, num_npus):
    if asked:
        npus = [int(part) for part in asked.split(",")]
        bad = [npu for npu in npus if not 0 <= npu < num_npus]
        if bad:
            sys.exit(f"plot_results.py: there is no NPU {bad[0]}: the run has NPUs 0 to {num_npus - 1}")
        return npus
    return sorted({round(i) for i in np.linspace(0, num_npus - 1, min(num_npus, 8))})


def merged(start, finish, limit, resolution):
    """Intervals by start; neighbours closer than `resolution` become one if there are more than `limit`."""
    if len(start) <= limit:
        return start, finish
    finish = np.maximum.accumulate(finish)
    new = np.concatenate([[True], start[1:] > finish[:-1] + resolution])
    first = np.flatnonzero(new)
    last = np.concatenate([first[1:] - 1, [len(start) - 1]])
    return start[first], finish[last]


def draw_timeline(axes, results, npus):
    timeline = results["timeline"]
    names = [text(name) for name in timeline["kind"].attrs["values"]]
    offsets = timeline["offsets"]
    end = results["npus/finish_time"][:].max(initial=0)
    unit, size = unit_of(end)
    lane_height, gap = 1.0, 1.0
    ticks, seen, top = [], set(), 0.0
    for npu in npus:
        rows = slice(int(offsets[npu]), int(offsets[npu + 1]))
        kind, start, finish = timeline["kind"][rows], timeline["start"][rows], timeline["finish"][rows]
        used = sorted({LANES[names[k]] for k in np.unique(kind) if names[k] in LANES})
        place = {lane: i for i, lane in enumerate(used)}
        for k in np.unique(kind):
            name = names[k]
            if name not in KINDS:
                continue
            seen.add(name)
            mine = np.flatnonzero(kind == k)
            s, f = merged(start[mine], finish[mine], MAX_RECTANGLES, end // 4000)
            y = top + place[LANES[name]] * lane_height
            s, f = s / size, f / size
            low, high = np.full(len(s), y + 0.08), np.full(len(s), y + lane_height - 0.08)
            corners = np.stack([np.stack([s, low], 1), np.stack([f, low], 1), np.stack([f, high], 1), np.stack([s, high], 1)], 1)
            # Wide ones get a hairline between them; of narrow ones it would leave nothing, they get one of their own colour.
            wide = np.median(f - s) > end / size / 200
            axes.add_collection(PolyCollection(corners, facecolors=KINDS[name], edgecolors="white" if wide else KINDS[name], linewidths=0.3, rasterized=True))
        height = max(len(used), 1) * lane_height
        ticks.append((top + height / 2, str(npu)))
        top += height + gap
        axes.axhline(top - gap / 2, color="#DDDDDD", linewidth=0.6)
    axes.set_xlim(0, max(end / size, 1e-9))
    axes.set_ylim(top - gap / 2, -gap / 2)
    axes.set_yticks([y for y, _ in ticks])
    axes.set_yticklabels([label for _, label in ticks])
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("NPU")
    axes.set_xlabel(f"simulated time ({unit})")
    axes.set_title("What they did when", loc="left")
    order = [name for name in KINDS if name in seen]
    axes.legend(handles=[Patch(color=KINDS[name], label=name) for name in order], loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def draw_memory(axes, results, npus):
    """Usage over time, as steps; NPUs with the same are one line."""
    memory = results["local_memory"]
    offsets = memory["offsets"]
    unit, size = unit_of(results["npus/finish_time"][:].max(initial=0))
    resolved = text(results["config/resolved"][()])
    room = re.search(r"local-memory:\n(?: {6}.*\n)*? {6}size: (\d+) B", resolved)
    elsewhere = re.search(r"expanded-memory: {share: ([^,]+),", resolved)
    rooms = [int(room[1]) / (1 - (float(elsewhere[1]) if elsewhere else 0))] if room else []
    lines = {}
    for npu in npus:
        rows = slice(int(offsets[npu]), int(offsets[npu + 1]))
        lines.setdefault((tuple(memory["time"][rows]), tuple(memory["usage"][rows])), []).append(npu)
    bytes_unit, bytes_size = unit_of(max([*rooms, *(max(usage, default=0) for _, usage in lines)], default=0), BYTES)
    for i, ((time, usage), same) in enumerate(lines.items()):
        axes.step(np.array(time) / size, np.array(usage) / bytes_size, where="post", color=LINES[i % len(LINES)], linewidth=1,
                  label=f"NPU {', '.join(map(str, same))}", rasterized=len(time) > MAX_RECTANGLES)
    for limit in rooms:
        axes.axhline(limit / bytes_size, color="black", linewidth=1, linestyle="--", label=f"size, {limit / bytes_size:.4g} {bytes_unit}")
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"tensors ({bytes_unit})")
    axes.set_xlabel(f"simulated time ({unit})")
    axes.set_title("What was in their local memory", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS.h5")
    parser.add_argument("--output", help="picture (default: beside the results, .png)")
    parser.add_argument("--npus", help="NPUs of the timeline, as 0,1,16 (default: up to 8, evenly spread)")
    parser.add_argument("--dpi", type=int, default=150)
    args = parser.parse_args()
    try:
        results = h5py.File(args.results, "r")
    except OSError as error:
        sys.exit(f"plot_results.py: {args.results}: {error}")
    with results:
        if text(results.attrs.get("format", "")) != "orrery-results":
            sys.exit(f"plot_results.py: {args.results} was not written by Orrery (its attribute 'format' is not 'orrery-results')")
        num_npus = len(results["npus/finish_time"])
        npus = chosen_npus(args.npus, num_npus) if "timeline" in results else []
        plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.titleweight": "bold", "axes.titlesize": 11})
        has_memory = npus and "local_memory" in results
        heights = [3.2] + ([0.8 + 0.55 * len(npus)] if npus else []) + ([2.4] if has_memory else [])
        figure, axes = plt.subplots(len(heights), 1, figsize=(11, sum(heights) + 1.2), height_ratios=heights, squeeze=False, constrained_layout=True)
        finish = int(results.attrs["simulated_time"])
        unit, size = unit_of(finish)
        figure.suptitle(f"{num_npus:,} NPUs, {finish / size:.4g} {unit} simulated ({text(results.attrs['status'])})", x=0.01, ha="left")
        draw_breakdown(axes[0, 0], results)
        if npus:
            draw_timeline(axes[1, 0], results, npus)
        if has_memory:
            draw_memory(axes[2, 0], results, npus)
            axes[2, 0].set_xlim(axes[1, 0].get_xlim())
    output = args.output or os.path.splitext(args.results)[0] + ".png"
    try:
        figure.savefig(output, dpi=args.dpi)
    except OSError as error:
        sys.exit(f"plot_results.py: {output}: {error}")
    print(f"wrote {output}")


if __name__ == "__main__":
    main()
