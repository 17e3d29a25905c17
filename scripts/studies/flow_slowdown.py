#!/usr/bin/env python3
"""How congestion controls treat short and long flows (docs/case-studies.md, Flows of a data centre): a Markdown table and a picture.

usage: flow_slowdown.py [--sizes web-search|hadoop] [--load SHARE] [--milliseconds MS] [--seed N] [--ranks N] [--plot FILE.png]

The simulations of HPCC's paper (Li et al., SIGCOMM 2019): 320 hosts with links of 100 Gb/s on a fat tree of 56 switches with links of
400 Gb/s, all of 1 us. Flows begin at each host in a Poisson process and go to any other host. The parameters of the controls are those that
the authors published (github.com/alibaba-edu/High-Precision-Congestion-Control, simulation/run.py, and the definitions of
hpcc-group.github.io/results.html).
"""
import argparse
import bisect
import itertools
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import study_plots

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS, PODS, LEAVES, ABOVE, CORES = (
    320,
    5,
    4,
    4,
    4,
)  # LEAVES and ABOVE of each pod, CORES for each of the switches above
HOSTS_OF_LEAF = HOSTS // (PODS * LEAVES)
HOST_RATE, SWITCH_RATE, DELAY = 100e9, 400e9, 1e-6  # bit/s, s
PAYLOAD, HEADER = 1000, 48  # bytes; the header without what HPCC adds
# Bytes, and the per cent of flows that are not larger; sizes between two rows are uniform.
SIZES = {
    "web-search": (
        (0, 0),
        (10e3, 15),
        (20e3, 20),
        (30e3, 30),
        (50e3, 40),
        (80e3, 53),
        (200e3, 60),
        (1e6, 70),
        (2e6, 80),
        (5e6, 90),
        (10e6, 97),
        (30e6, 100),
    ),
    "hadoop": (
        (0, 0),
        (100, 1),
        (200, 2),
        (300, 5),
        (350, 15),
        (400, 20),
        (500, 30),
        (600, 40),
        (700, 50),
        (1e3, 60),
        (2e3, 67),
        (7e3, 70),
        (30e3, 72),
        (50e3, 82),
        (80e3, 87),
        (120e3, 90),
        (300e3, 95),
        (1e6, 97.5),
        (2e6, 99),
        (10e6, 100),
    ),
}
MARKS = {
    "KMIN_MAP": "2 100000000000 400 400000000000 1600",
    "KMAX_MAP": "2 100000000000 1600 400000000000 6400",
    "PMAX_MAP": "2 100000000000 0.2 400000000000 0.2",
}
ALL = {
    "PACKET_PAYLOAD_SIZE": PAYLOAD,
    "BUFFER_SIZE": 32,
    "ENABLE_QCN": 1,
    "USE_DYNAMIC_PFC_THRESHOLD": 1,
    "ALPHA_RESUME_INTERVAL": 1,
    "RATE_DECREASE_INTERVAL": 4,
    "RP_TIMER": 300,
    "EWMA_GAIN": 0.00390625,
    "FAST_RECOVERY_TIMES": 1,
    "CLAMP_TARGET_RATE": 0,
    "MIN_RATE": "1000Mb/s",
    "HAS_WIN": 1,
    "GLOBAL_T": 1,
    "VAR_WIN": 1,
    "RATE_BOUND": 1,
    "ACK_HIGH_PRIO": 0,
    **MARKS,
}
# What the config.txt of each control says besides.
CONTROLS = {
    "HPCC": {
        "CC_MODE": 3,
        "RATE_AI": "50Mb/s",
        "U_TARGET": 0.95,
        "MI_THRESH": 0,
        "INT_MULTI": 4,
        "FAST_REACT": 1,
        "MULTI_RATE": 0,
        "SAMPLE_FEEDBACK": 0,
    },
    "DCQCN with a window": {"CC_MODE": 1, "RATE_AI": "20Mb/s", "RATE_HAI": "200Mb/s"},
    "TIMELY with a window": {"CC_MODE": 7, "RATE_AI": "100Mb/s", "RATE_HAI": "500Mb/s"},
    "DCTCP": {
        "CC_MODE": 8,
        "DCTCP_RATE_AI": "615Mb/s",
        "EWMA_GAIN": 0.0625,
        "KMIN_MAP": "2 100000000000 300 400000000000 1200",
        "KMAX_MAP": "2 100000000000 300 400000000000 1200",
        "PMAX_MAP": "2 100000000000 1 400000000000 1",
    },
}
PARTS = 10  # of the flows, by size
PERCENTILES = {50: "median", 95: "95th percentile", 99: "99th percentile"}


def graph():
    """The fat tree: hosts, then leaves, then the switches above them, then those that join the pods."""
    leaves, above = HOSTS, HOSTS + PODS * LEAVES
    cores = above + PODS * ABOVE
    fast, slow = f"{SWITCH_RATE / 1e9:g} Gb/s", f"{HOST_RATE / 1e9:g} Gb/s"
    links = [[host, leaves + host // HOSTS_OF_LEAF, slow] for host in range(HOSTS)]
    for pod in range(PODS):
        links += [
            [leaves + LEAVES * pod + leaf, above + ABOVE * pod + up, fast]
            for leaf in range(LEAVES)
            for up in range(ABOVE)
        ]
    links += [
        [above + ABOVE * pod + up, cores + CORES * up + core, fast]
        for pod in range(PODS)
        for up in range(ABOVE)
        for core in range(CORES)
    ]
    return {
        "hosts": HOSTS,
        "switches": PODS * (LEAVES + ABOVE) + ABOVE * CORES,
        "links": [[*link, f"{DELAY * 1e6:g} us"] for link in links],
    }


def size_at(table, percent):
    at = max(1, bisect.bisect_left(table, percent, key=lambda row: row[1]))
    (low, below), (high, above) = table[at - 1], table[at]
    return max(1, int(low + (high - low) * (percent - below) / (above - below)))


def make_flows(table, load, seconds, seed):
    """Returns the flows that begin in so many seconds, in the order of their starts. `load`: bytes of messages over those that links of hosts carry."""
    draw = random.Random(seed)
    mean = sum((a[0] + b[0]) / 2 * (b[1] - a[1]) / 100 for a, b in itertools.pairwise(table))
    gap = mean * 8 / (HOST_RATE * load)
    flows = []
    for host in range(HOSTS):
        start = draw.expovariate(1 / gap)
        while start < seconds:
            other = draw.randrange(HOSTS - 1)
            flows.append((start, host, other + (other >= host), size_at(table, draw.uniform(0, 100))))
            start += draw.expovariate(1 / gap)
    return sorted(flows)


def time_alone(source, target, size):
    """Returns the seconds of a flow without others, as the authors define it: a round trip, and all bytes at the rate of the hosts."""
    leaves = source // HOSTS_OF_LEAF, target // HOSTS_OF_LEAF
    switch_links = 0 if leaves[0] == leaves[1] else 2 if leaves[0] // LEAVES == leaves[1] // LEAVES else 4
    round_trip = 2 * (2 + switch_links) * DELAY + 8 * PAYLOAD * (2 / HOST_RATE + switch_links / SWITCH_RATE)
    return round_trip + 8 * (size + math.ceil(size / PAYLOAD) * HEADER) / HOST_RATE


def slowdowns(program, ranks, control, flows):
    """Returns (size, slowdown) of each flow, in the order of sizes."""
    with tempfile.TemporaryDirectory() as folder:
        configuration, source, result = (
            pathlib.Path(folder, name) for name in ("config.txt", "flows.yaml", "flows.json")
        )
        configuration.write_text("".join(f"{key} {value}\n" for key, value in {**ALL, **CONTROLS[control]}.items()))
        listed = [
            {"from": a, "to": b, "size": f"{size} B", "start": f"{round(start * 1e12)} ps"}
            for start, a, b, size in flows
        ]
        source.write_text(
            json.dumps(
                {
                    "system": {"network": {"graph": graph(), "packets": {"preset": "hpcc-2019", "file": "config.txt"}}},
                    "workload": {"flows": listed},
                }
            )
        )
        command = [program, "flows", str(source), f"--json={result}"]
        done = subprocess.run(
            [str(ROOT / "scripts/mpirun.sh"), str(ranks), *command] if ranks > 1 else command,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            sys.exit(f"flow_slowdown.py: {done.stderr.strip()}")
        times = json.loads(result.read_text())["flows"]
    found = []
    for (_, a, b, size), time in zip(flows, times):
        taken = (time["acknowledged_ps"] - time["start_ps"]) / 1e12
        found.append((size, max(1.0, taken / time_alone(a, b, size))))
    return sorted(found)


def parts(found):
    """Returns for each part of the flows by size the largest size, and a function that gives percentiles."""
    for part in range(PARTS):
        rows = found[part * len(found) // PARTS : (part + 1) * len(found) // PARTS]
        values = sorted(value for _, value in rows)
        yield rows[-1][0], lambda percent, values=values: values[min(len(values) - 1, int(len(values) * percent / 100))]


def size_text(size):
    for unit, name in ((1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"


def print_table(results):
    print("| flows up to | " + " | ".join(results) + " |")
    print("|---" * (len(results) + 1) + "|")
    for rows in zip(*(parts(found) for found in results.values())):
        print(
            f"| {size_text(rows[0][0])} | "
            + " | ".join(" / ".join(f"{at(percent):.2f}" for percent in PERCENTILES) for _, at in rows)
            + " |"
        )


def draw(style, results, arguments):
    colours = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE)
    with style.look():
        figure, _, body = style.picture(
            3.6,
            "Which flows wait",
            f"{HOSTS} hosts on a fat tree, sizes of {arguments.sizes}, {100 * arguments.load:g} % load: slowdown by size",
        )
        charts, foot = body.subfigures(2, 1, height_ratios=[10, 1])
        panels = charts.subplots(1, len(PERCENTILES), sharey=True)
        for axes, (percent, title) in zip(panels, PERCENTILES.items()):
            for (name, found), colour in zip(results.items(), colours):
                rows = list(parts(found))
                axes.semilogy(
                    range(PARTS), [at(percent) for _, at in rows], color=colour, marker="o", markersize=3, label=name
                )
            axes.set_xticks(range(0, PARTS, 3), [size_text(rows[part][0]) for part in range(0, PARTS, 3)])
            axes.set_title(title, fontweight="normal")
            axes.set_xlabel("flows up to")
            axes.grid(axis="y")
        style.logarithmic(panels[0].yaxis, (1, 2, 5))
        panels[0].set_ylabel("slowdown")
        foot.legend(*panels[0].get_legend_handles_labels(), loc="center", ncol=len(results))
        style.save(figure, arguments.plot)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", choices=SIZES, default="web-search")
    parser.add_argument("--load", type=float, default=0.5, metavar="SHARE")
    parser.add_argument("--milliseconds", type=float, default=10, metavar="MS", help="how long flows begin")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--ranks", type=int, default=1, metavar="N")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the table into this file")
    parser.add_argument("--orrery", default=str(ROOT / "build/release/bin/orrery"), metavar="PROGRAM")
    arguments = parser.parse_args()
    style = study_plots.style_for(arguments.plot)
    flows = make_flows(SIZES[arguments.sizes], arguments.load, arguments.milliseconds / 1e3, arguments.seed)
    results = {control: slowdowns(arguments.orrery, arguments.ranks, control, flows) for control in CONTROLS}
    print(f"{len(flows):,} flows, {sum(flow[3] for flow in flows) / 1e9:.1f} GB\n")
    print_table(results)
    if style:
        draw(style, results, arguments)


if __name__ == "__main__":
    main()
