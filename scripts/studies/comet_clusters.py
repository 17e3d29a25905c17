#!/usr/bin/env python3
"""COMET's comparison of clusters on a transformer of 10^12 parameters (docs/case-studies.md): Markdown tables and pictures.

usage: comet_clusters.py [--plots FOLDER] [--orrery PROGRAM]

COMET (arXiv 2211.16648) sweeps model and data parallelism, memory beside the local one, compute and network of clusters of 1,024 NPUs, and
says that clusters differ up to 7.7 times and that more memory gains up to 1.4 times. Its tables of clusters are in no source that we have, so
the sweeps here are ranges around its published input (configs/comet-transformer-1t.yaml), and the clusters those of configs/systems with 1,024
NPUs. Every point is the best of all plans (tensor parallelism, micro-batch) that fit, found by `orrery explore`. Exit code 1 if a published
claim lies outside of the range that is found.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import h5py
import study_plots

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ROOT / "configs/comet-transformer-1t.yaml"
STUDIES = {name: ROOT / f"configs/studies/comet-{name}.yaml" for name in ("parallelism", "memory")}
BANDWIDTHS = (25, 50, 100, 200, 400, 800)  # GB/s of the memory beside the local one
CAPACITIES = (40, 80, 160)  # GB of the local memory
COMPUTE, NETWORK = (0.25, 0.5, 1, 2, 4, 8), (0.25, 0.5, 1, 2, 4)
CLAIMS = {"clusters": 7.7, "memory": 1.4}
# 1,024 NPUs of public machines: the sizes of dimensions of configs/systems; V100 with the figures of COMET's input and 32 GB (NVIDIA's data sheet).
CLUSTERS = {
    "V100, 16 a server": {"system.compute.local-memory.size": "32 GB"},
    "A100, 8 a server": ("dgx-a100-superpod", [("Switch", 8, "300 GB/s"), ("Switch", 128, "200 Gb/s")]),
    "H100, 8 a server": ("dgx-h100-superpod", [("Switch", 8, "450 GB/s"), ("Switch", 128, "400 Gb/s")]),
    "GB200, 64 a rack": ("gb200-nvl72", [("Switch", 64, "900 GB/s"), ("Switch", 16, "400 Gb/s")]),
    "TPU v4, torus": ("tpu-v4-torus", [("Ring", 16, "50 GB/s"), ("Ring", 8, "50 GB/s"), ("Ring", 8, "50 GB/s")]),
    "TPU v5p, torus": ("tpu-v5p-torus", [("Ring", 16, "100 GB/s"), ("Ring", 8, "100 GB/s"), ("Ring", 8, "100 GB/s")]),
}
EXTREMES = ("V100, 16 a server", "GB200, 64 a rack")  # the slowest and the fastest


class Explorer:
    """Runs studies in a folder, two at a time."""

    def __init__(self, program, folder):
        self.program, self.folder, self.count = program, folder, 0

    def best(self, study, settings, text=None):
        """{metric or parameter: value} of the best trial, or None if none fits. text: a study in place of the file."""
        self.count += 1
        output = self.folder / f"{self.count}.h5"
        if text is not None:
            study = self.folder / f"{self.count}.yaml"
            study.write_text(json.dumps(text))
        rows = self.rows(study, output, settings)
        return rows[0] if rows else None

    def rows(self, study, output, settings):
        """The listed trials, the best one first."""
        done = subprocess.run(
            [
                self.program,
                "explore",
                str(study),
                f"--output={output}",
                "--force",
                *(f"--set={key}={value}" for key, value in settings.items()),
            ],
            capture_output=True,
            text=True,
            timeout=3600,
        )
        if done.returncode == 3 and "is left" in done.stderr:
            return []
        if done.returncode:
            raise ValueError((done.stderr or done.stdout).strip()[:600])
        with h5py.File(output) as file:
            numbers = list(file["/trials/number"])
            return [
                {
                    "step_time": float(file["/trials/step_time"][row]),
                    "peak_memory": int(file["/trials/peak_memory"][row]),
                    "exposed_communication": float(file["/trials/exposed_communication"][row]),
                    **{name: number(values[row]) for name, values in file["/parameters"].items()},
                }
                for row in (numbers.index(n) for n in file["/best"])
            ]

    def all_best(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda job: self.best(*job), jobs))


def number(value):
    try:
        return float(value)
    except ValueError:
        return value.decode() if isinstance(value, bytes) else str(value)


def plans(base, more=None):
    """The study of memory, without a share, on another base, and with further parameters."""
    parameters = {
        "samples": {"values": [1024]},
        "tp": {"key": "workload.parallel.tp", "values": [8, 16, 32, 64, 128]},
        "micro_batch": {"key": "workload.parallel.micro-batch", "values": [4, 8, 16, 32, 64, 128]},
        **(more or {}),
    }
    return {
        "study": {
            "base": str(base),
            "parameters": parameters,
            "constraints": ["divides(dp * micro_batch, samples)"],
            "derived": {
                "dp": {"key": "workload.parallel.dp", "value": "npus / tp"},
                "micro_batches": {"key": "workload.parallel.micro-batches", "value": "samples / (dp * micro_batch)"},
            },
            "objectives": [{"minimise": "step_time"}],
            "keep": 1,
            "strategy": {"kind": "bounded"},
        }
    }


def beside(bandwidth):
    """The parameters of memory beside the local one, GB/s."""
    return {
        "share": {"key": "system.compute.expanded-memory.share", "values": [0, 0.2, 0.4, 0.6, 0.8, 0.9]},
        "bandwidth": {"key": "system.compute.expanded-memory.bandwidth", "values": [f"{bandwidth} GB/s"]},
    }


def cluster(explorer, name, free):
    """(base, settings) of a cluster; free: with memory for every plan."""
    described, base, settings = CLUSTERS[name], BASE, {}
    if isinstance(described, tuple):
        preset, dimensions = described
        rows = ", ".join(
            f"{{shape: {shape}, size: {size}, bandwidth: {bandwidth}, latency: {'500 ns' if i == 0 else '1 us'}}}"
            for i, (shape, size, bandwidth) in enumerate(dimensions)
        )
        base = explorer.folder / f"cluster-{preset}.yaml"
        workload = BASE.read_text()[BASE.read_text().index("workload:") :]
        base.write_text(
            f"system:\n  base: {preset}\n  network: {{dimensions: [{rows}]}}\n  collectives: {{chunks: 16}}\n{workload}"
        )
    else:
        settings = dict(described)
    return base, {**settings, "system.compute.local-memory.size": "100 TB"} if free else settings


def parallelism(explorer):
    rows = explorer.rows(STUDIES["parallelism"], explorer.folder / "parallelism.h5", {})
    best = {
        tp: min((row for row in rows if row["tp"] == tp), key=lambda row: row["step_time"])
        for tp in sorted({row["tp"] for row in rows})
    }
    least = {tp: min(row["peak_memory"] for row in rows if row["tp"] == tp) for tp in best}
    print(
        "| model x data parallel | best micro-batch | step | exposed communication | memory, best | memory, least |\n|---|---|---|---|---|---|"
    )
    for tp, row in best.items():
        print(
            f"| {tp:.0f} x {1024 // tp:.0f} | {row['micro_batch']:.0f} | {row['step_time']:.1f} s | {100 * row['exposed_communication']:.0f} % "
            f"| {row['peak_memory'] / 1e9:,.0f} GB | {least[tp] / 1e9:,.0f} GB |"
        )
    print()
    return best, least


def memory(explorer):
    """{(capacity, bandwidth or 0): the best trial or None}; a bandwidth of 0 is no further memory."""
    keys = [(capacity, bandwidth) for capacity in CAPACITIES for bandwidth in (0, *BANDWIDTHS)]
    jobs = []
    for capacity, bandwidth in keys:
        settings = {"system.compute.local-memory.size": f"{capacity} GB"}
        jobs.append((None, settings, plans(BASE, beside(bandwidth) if bandwidth else None)))
    found = dict(zip(keys, explorer.all_best(jobs)))
    print(
        "| local memory | without more | "
        + " | ".join(f"more at {bandwidth} GB/s" for bandwidth in BANDWIDTHS)
        + " |\n"
        + "|---" * (len(BANDWIDTHS) + 2)
        + "|"
    )
    for capacity in CAPACITIES:
        cells = [plan_text(found[capacity, bandwidth]) for bandwidth in (0, *BANDWIDTHS)]
        print(f"| {capacity} GB | {' | '.join(cells)} |")
    print()
    return found


def plan_text(row):
    if row is None:
        return "none fits"
    share = f", {100 * row['share']:.0f} % beside" if row.get("share") else ""
    return f"{row['step_time']:.1f} s (tp {row['tp']:.0f}{share})"


def machine(explorer):
    """{(compute factor, network factor): best step time} of the base cluster, with memory for every plan."""
    keys = [(compute, network) for compute in COMPUTE for network in NETWORK]
    jobs = [
        (
            None,
            {
                "system.compute.local-memory.size": "100 TB",
                "system.compute.peak": f"{125 * compute} TFLOPS",
                "system.compute.local-memory.bandwidth": f"{900 * compute} GB/s",
                "system.network.dimensions.0.bandwidth": f"{150 * network} GiB/s",
                "system.network.dimensions.1.bandwidth": f"{12.5 * network} GiB/s",
            },
            plans(BASE),
        )
        for compute, network in keys
    ]
    found = {key: row["step_time"] for key, row in zip(keys, explorer.all_best(jobs))}
    print(
        "| compute \\ network | "
        + " | ".join(f"{network:g} x" for network in NETWORK)
        + " |\n"
        + "|---" * (len(NETWORK) + 1)
        + "|"
    )
    for compute in COMPUTE:
        print(f"| {compute:g} x | {' | '.join(f'{found[compute, network]:.1f} s' for network in NETWORK)} |")
    print()
    return found


def clusters(explorer):
    """{cluster: (best within its memory or None, best with memory for every plan)}."""
    found = {}
    for name in CLUSTERS:
        jobs = [
            (None, settings, plans(base))
            for base, settings in (cluster(explorer, name, free) for free in (False, True))
        ]
        found[name] = explorer.all_best(jobs)
    fastest = min(row["step_time"] for _, row in found.values())
    print(
        "| cluster of 1,024 | best plan that fits | with memory for every plan | times the fastest |\n|---|---|---|---|"
    )
    for name, (fits, free) in found.items():
        print(f"| {name} | {plan_text(fits)} | {plan_text(free)} | {free['step_time'] / fastest:.2f} |")
    print()
    return found


def draw(style, folder, shapes, more, machines, found):
    best, least = shapes
    with style.look():
        figure, _, body = style.picture(
            3.6,
            "A transformer of 10^12 parameters on 1,024 NPUs",
            "COMET's cluster of 16 x 64; the best micro-batch of each division",
        )
        left, right = body.subplots(1, 2)
        names = [f"{tp:.0f} x {1024 // tp:.0f}" for tp in best]
        exposed = [row["step_time"] * row["exposed_communication"] for row in best.values()]
        left.bar(
            names,
            [row["step_time"] - part for row, part in zip(best.values(), exposed)],
            color=style.BLUE,
            label="computing, idle",
        )
        left.bar(
            names,
            exposed,
            bottom=[row["step_time"] - part for row, part in zip(best.values(), exposed)],
            color=style.VERMILION,
            label="exposed communication",
        )
        left.set_ylabel("step time (s)"), left.set_xlabel("model x data parallelism"), left.legend()
        right.semilogy(
            names,
            [row["peak_memory"] / 1e9 for row in best.values()],
            marker="o",
            color=style.PURPLE,
            label="best step",
        )
        right.semilogy(
            names, [value / 1e9 for value in least.values()], marker="o", color=style.GREEN, label="least memory"
        )
        right.axhline(80, color=style.GREY, linestyle=":"), style.logarithmic(right.yaxis, (1, 2, 5)), right.set_ylabel(
            "memory of an NPU (GB)"
        ), right.set_xlabel("model x data parallelism"), right.legend()
        style.save(figure, folder / "comet-parallelism.png")
        figure, _, body = style.picture(
            3.4,
            "What memory beside the local one gives",
            "step of the best plan; lines end where no plan fits; points on the left: without it",
        )
        panel = body.subplots()
        for capacity, colour in zip(CAPACITIES, style.SERIES):
            points = [
                (i, found_row["step_time"])
                for i, bandwidth in enumerate((0, *BANDWIDTHS))
                if (found_row := more[capacity, bandwidth])
            ]
            panel.plot(*zip(*points), marker="o", color=colour, label=f"{capacity} GB local")
        panel.set_xticks(range(len(BANDWIDTHS) + 1), ["none", *map(str, BANDWIDTHS)]), panel.set_xlabel(
            "bandwidth of the memory beside (GB/s)"
        )
        panel.set_ylabel("step time (s)"), style.legend(panel)
        style.save(figure, folder / "comet-memory.png")
        figure, _, body = style.picture(
            3.4,
            "Compute against network, and clusters",
            "left: step time over that of the base cluster; right: the best plan with memory for every plan, and within the local memory",
        )
        left, right = body.subplots(1, 2)
        grid = [[machines[compute, network] / machines[1, 1] for network in NETWORK] for compute in COMPUTE]
        left.imshow(grid, cmap="viridis_r", aspect="auto")
        for y, row in enumerate(grid):
            for x, value in enumerate(row):
                left.text(
                    x,
                    y,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    color="white" if value > 1.5 else "black",
                    fontsize=8,
                )
        left.set_xticks(range(len(NETWORK)), [f"{n:g} x" for n in NETWORK]), left.set_yticks(
            range(len(COMPUTE)), [f"{c:g} x" for c in COMPUTE]
        )
        left.set_xlabel("network"), left.set_ylabel("compute and memory bandwidth")
        names = list(found)
        right.barh(
            names, [free["step_time"] for _, free in found.values()], color=style.SKY, label="memory for every plan"
        )
        right.plot(
            [fits["step_time"] if fits else float("nan") for fits, _ in found.values()],
            names,
            "o",
            color=style.VERMILION,
            label="within its memory",
        )
        right.set_xlabel("step time (s)"), right.legend()
        style.save(figure, folder / "comet-clusters.png")


def main():
    parser = argparse.ArgumentParser(description="COMET's comparison of clusters on a transformer of 10^12 parameters.")
    parser.add_argument("--plots", type=pathlib.Path, help="draw the pictures into this folder")
    parser.add_argument("--orrery", default=str(ROOT / "build/release/bin/orrery"), help="the program")
    options = parser.parse_args()
    style = study_plots.style_for(options.plots)
    with tempfile.TemporaryDirectory(prefix="comet-") as name:
        explorer = Explorer(options.orrery, pathlib.Path(name))
        shapes, more, machines, found = parallelism(explorer), memory(explorer), machine(explorer), clusters(explorer)
    gains = [
        more[capacity, 0]["step_time"] / row["step_time"]
        for (capacity, bandwidth), row in more.items()
        if row and bandwidth and more[capacity, 0]
    ]
    times = sorted(free["step_time"] for _, free in found.values())
    pairs = [slow / fast for i, fast in enumerate(times) for slow in times[i + 1 :]]
    failed = False
    for claim, what, low, high in (
        ("clusters", "two of the clusters differ in their steps by a factor of", min(pairs), max(pairs)),
        ("memory", "memory beside the local one makes steps so many times as fast", min(gains), max(gains)),
    ):
        inside = low <= CLAIMS[claim] <= high
        failed = failed or not inside
        print(f"{'inside ' if inside else 'OUTSIDE'} {what}: {low:.2f} to {high:.2f}; COMET says up to {CLAIMS[claim]}")
    if options.plots:
        draw(style, options.plots, shapes, more, machines, found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
