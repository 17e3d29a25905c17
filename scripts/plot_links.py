#!/usr/bin/env python3
"""Draw what each link of the congestion-aware network did, as a heat map for each dimension of the topology.

usage: plot_links.py RESULTS.h5 [--quantity busy|queueing|bytes|peak] [--output FILE.png] [--dpi N]

Ring and Mesh: a map for each of the two directions, a row for each line of the dimension, a column for each place in it, the NPU that
the link leads from. FullyConnected: from each place to each other one, the largest of all lines. Shapes with switches: a map for each kind of
link, between NPUs and switches a row for each switch and a column for each of its NPUs, between switches from each (row) to each other one of
its line (column). Links that carried nothing are 0.
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


def maps_of_switches(place, npus, lines, links, values, switches):
    """[(title, matrix, row, column)] of a dimension with switches: `switches` has the kind of each ("" of other dimensions) and which of its kind."""
    kind, number = switches
    kinds = np.array([np.where(ends < 0, kind[-1 - np.minimum(ends, -1)], "NPU") for ends in links])
    maps = []
    for pair in dict.fromkeys(zip(*kinds)):
        chosen = (kinds[0] == pair[0]) & (kinds[1] == pair[1])
        sides = [number[-1 - np.minimum(ends[chosen], -1)] for ends in links]
        shape, labels = [int((kind == name).sum()) for name in pair], list(pair)
        if "NPU" in pair:
            row, column = (1, 0) if pair[0] == "NPU" else (0, 1)
            of_each = npus // shape[row]
            sides = [sides[row], place(links[column][chosen]) % of_each]
            shape, labels = [shape[row], of_each], [pair[row], f"NPU of the {pair[row]}"]
        else:
            shape[1] //= lines
            sides[1] = sides[1] % shape[1]
            labels[1] = f"{pair[1]} of its line"
        matrix = np.zeros(shape)
        np.maximum.at(matrix, tuple(sides), values[chosen])
        maps.append((" to ".join(pair), matrix, *labels))
    return maps


def maps_of(shape, size, stride, npus, links, values, switches):
    """[(title, matrix, row, column)] of one dimension; `links` has (from, to) of each value."""
    def place(npu):
        return npu // stride % size

    def line(npu):
        return npu // (stride * size) * stride + npu % stride
    if shape == "FullyConnected":
        matrix = np.zeros((size, size))
        np.maximum.at(matrix, (place(links[0]), place(links[1])), values)
        return [("from (row) to (column)", matrix, "place in the line", "place in the line")]
    if shape not in ("Ring", "Mesh"):
        return maps_of_switches(place, npus, npus // size, links, values, switches)
    is_up = (place(links[0]) + 1) % size == place(links[1])
    maps = []
    for title, chosen in (("up", is_up), ("down", ~is_up)):
        matrix = np.zeros((npus // size, size))
        matrix[line(links[0][chosen]), place(links[0][chosen])] = values[chosen]
        maps.append((title, matrix, "line", "place in the line"))
    return maps[:1] if size == 2 else maps


def draw(results, quantity, output, dpi):
    links, sizes = results["network/links"], results["network/size"][:].astype(int)
    shapes = re.findall(r"shape: (\w+)", text(results["config/resolved"][()]))
    values = values_of(links, quantity, float(results.attrs["simulated_time"]))
    dimension, ends = links["dimension"][:], (links["from"][:], links["to"][:])
    used = [d for d, size in enumerate(sizes) if size > 1]
    npus, top = int(np.prod(sizes)), max(values.max(initial=0), 1e-12)
    names = [text(name).rsplit(" ", 1) for name in results["network/switches/name"][:]] or [("", 0)]
    kind, number = np.array([name[0] for name in names]), np.array([int(name[1]) for name in names])
    of_switch = results["network/switches/dimension"][:]
    maps = []
    for d in used:
        chosen = dimension == d
        stride = int(np.prod(sizes[:d]))
        maps.append(maps_of(shapes[d], int(sizes[d]), stride, npus, (ends[0][chosen], ends[1][chosen]), values[chosen],
                            (np.where(of_switch == d, kind, ""), number)))
    rows, columns = max(map(len, maps), default=1), max(len(used), 1)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns + 1.5, 3.75 * rows), squeeze=False, constrained_layout=True)
    image = None
    for column, d in enumerate(used):
        for row in range(rows):
            axis = axes[row][column]
            if row >= len(maps[column]):
                axis.set_axis_off()
                continue
            title, matrix, of_row, of_column = maps[column][row]
            image = axis.imshow(matrix, aspect="auto", interpolation="nearest", cmap="viridis", vmin=0, vmax=top)
            axis.set_title(f"dimension {d} ({shapes[d]}), {title}", loc="left", fontsize=10)
            axis.set_xlabel(of_column)
            axis.set_ylabel(of_row)
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
