#!/usr/bin/env python3
"""Draw what each link of the congestion-aware network did, as a heat map for each dimension of the topology.

usage: plot_links.py RESULTS.h5 [--quantity busy|queueing|bytes|peak] [--output FILE.png] [--dpi N]

Ring, Mesh and Switch: a map for each of the two directions, a row for each line of the dimension, a column for each place in it, the NPU that
the link belongs to. FullyConnected: from each place to each other one, the largest of all lines. Links that carried nothing are 0.
"""
import argparse
import os
import re
import sys

try:
    import h5py
    import numpy as np
except ImportError as error:
    sys.exit(f"plot_links.py needs {error.name}: apt-get install python3-h5py python3-numpy (or run it with /usr/bin/python3)")
try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(f"plot_links.py needs {error.name}: apt-get install python3-matplotlib (or run it with /usr/bin/python3)")

QUANTITIES = {"busy": "busy, share of the simulated time", "queueing": "mean wait of a message (us)", "bytes": "bytes (GB)", "peak": "most messages that waited at a time"}


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def values_of(links, quantity, simulated):
    if quantity == "busy":
        return links["busy_time"][:] / max(simulated, 1)
    if quantity == "queueing":
        return links["queueing_time"][:] / np.maximum(links["messages"][:], 1) / 1e6
    if quantity == "bytes":
        return links["bytes"][:] / 1e9
    return links["peak_queue"][:].astype(float)


def maps_of(shape, size, stride, npus, links, values):
    """[(title, matrix)] of one dimension; `links` has (from, to) of each value."""
    def place(npu):
        return npu // stride % size

    def line(npu):
        return npu // (stride * size) * stride + npu % stride
    if shape == "FullyConnected":
        matrix = np.zeros((size, size))
        np.maximum.at(matrix, (place(links[0]), place(links[1])), values)
        return [("from (row) to (column)", matrix)]
    if shape == "Switch":
        titles, is_first, owner = ("to the switch", "from the switch"), links[1] < 0, np.maximum(links[0], links[1])
    else:
        titles, is_first, owner = ("up", "down"), (place(links[0]) + 1) % size == place(links[1]), links[0]
    maps = []
    for title, chosen in zip(titles, (is_first, ~is_first)):
        matrix = np.zeros((npus // size, size))
        matrix[line(owner[chosen]), place(owner[chosen])] = values[chosen]
        maps.append((title, matrix))
    return maps[:1] if shape in ("Ring", "Mesh") and size == 2 else maps


def draw(results, quantity, output, dpi):
    links, sizes = results["network/links"], results["network/size"][:].astype(int)
    shapes = re.findall(r"shape: (\w+)", text(results["config/resolved"][()]))
    values = values_of(links, quantity, float(results.attrs["simulated_time"]))
    dimension, ends = links["dimension"][:], (links["from"][:], links["to"][:])
    used = [d for d, size in enumerate(sizes) if size > 1]
    npus, top = int(np.prod(sizes)), max(values.max(initial=0), 1e-12)
    figure, axes = plt.subplots(2, max(len(used), 1), figsize=(4.2 * max(len(used), 1) + 1.5, 7.5), squeeze=False, constrained_layout=True)
    image = None
    for column, d in enumerate(used):
        chosen = dimension == d
        stride = int(np.prod(sizes[:d]))
        maps = maps_of(shapes[d], int(sizes[d]), stride, npus, (ends[0][chosen], ends[1][chosen]), values[chosen])
        for row in range(2):
            axis = axes[row][column]
            if row >= len(maps):
                axis.set_axis_off()
                continue
            title, matrix = maps[row]
            image = axis.imshow(matrix, aspect="auto", interpolation="nearest", cmap="viridis", vmin=0, vmax=top)
            axis.set_title(f"dimension {d} ({shapes[d]}), {title}", loc="left", fontsize=10)
            axis.set_xlabel("place in the line")
            axis.set_ylabel("place in the line" if shapes[d] == "FullyConnected" else "line")
            for side in (axis.xaxis, axis.yaxis):
                side.get_major_locator().set_params(integer=True)
    if image is not None:
        figure.colorbar(image, ax=axes, label=QUANTITIES[quantity], shrink=0.8)
    figure.savefig(output, dpi=dpi)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS.h5")
    parser.add_argument("--quantity", choices=QUANTITIES, default="busy")
    parser.add_argument("--output", help="picture (default: beside the results, .links.png)")
    parser.add_argument("--dpi", type=int, default=150)
    args = parser.parse_args()
    try:
        results = h5py.File(args.results, "r")
    except OSError as error:
        sys.exit(f"plot_links.py: {args.results}: {error}")
    with results:
        if text(results.attrs.get("format", "")) != "orrery-results":
            sys.exit(f"plot_links.py: {args.results} was not written by Orrery (its attribute 'format' is not 'orrery-results')")
        if "network/links" not in results:
            sys.exit(f"plot_links.py: {args.results} has no links: the run had the congestion-unaware network (use --network=congestion-aware)")
        output = args.output or os.path.splitext(args.results)[0] + ".links.png"
        draw(results, args.quantity, output, args.dpi)
    print(output)


if __name__ == "__main__":
    main()
