#!/usr/bin/env python3
"""Divides a bandwidth among the dimensions of a network, as LIBRA does (Won et al., ISPASS 2024, arXiv 2109.11762), with `orrery explore`.

usage: libra.py [WORKLOAD ...] [--total GBPS] [--rounds N] [--keep FOLDER] [--orrery PROGRAM]

LIBRA asks how fast each dimension should be if an NPU has so many GB/s in all. Its model has no overlap: the time of a step is that of all
computing plus that of each collective, and a collective takes as long as the dimension that has most to do. Here a chain of nodes with the
same computing and collectives is simulated, each collective in 256 chunks, which come close to that. Studies of ever narrower grids of
bandwidths search the fastest: each round explores around the best one of the round before. Prints the best division, its time, what equal
bandwidths take, and the prices of both networks with the preset libra-2024.
"""
import argparse
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import h5py

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIB = 2**20
PASSES = ("forward", "input gradient", "weight gradient")
# Two transformer layers: ns of a product of attention, of its core, of a product of the MLP, of the norm (each in each pass); bytes of an
# all-reduce of activations, of the all-gather, of the gradients. github.com/astra-sim/libra, revision 0044db0, inputs/workload.
TRANSFORMERS = {
    "GPT_3": (9375000, 781250, 37500000, 12207, 768 * MIB, 48 * MIB, 432 * MIB),
    "MSFT_1T": (2343750, 97656, 9375000, 12207, 768 * MIB, 6 * MIB, 216 * MIB),
    "Turing_NLG": (4498545, 270589, 17994181, 1057, 69730304, 69730304, 869449728),
}
# ns of all layers in each pass, and the bytes of all gradients.
DATA_PARALLEL = {"ResNet_50": ((380038, 377463, 337813), 51005824)}
CHUNKS = 256
# Links of an NPU's bandwidth: with a ring a half goes each way, in a fully connected group an equal part to each other NPU. In the simulation a
# ring's collective goes one way, so its link has all of the bandwidth there.
LINKS = {"Ring": lambda size: 2, "FullyConnected": lambda size: size - 1, "Switch": lambda size: 1}
SIMULATED_LINKS = {**LINKS, "Ring": lambda size: 1}
ALGORITHMS = {"Ring": "ring", "FullyConnected": "direct", "Switch": "halvingDoubling"}
# The study's networks. Of each workload the NPUs that are model-parallel, by dimension, and those that share data; -1: none.
NETWORKS = {
    3: [("Ring", 16), ("FullyConnected", 8), ("Switch", 32)],
    4: [("Ring", 4), ("FullyConnected", 8), ("Ring", 4), ("Switch", 32)],
}
COMMUNICATORS = {
    ("GPT_3", 4): ([4, 4, -1, -1], [-1, 2, 4, 32]),
    ("MSFT_1T", 3): ([16, 8, -1], [-1, -1, 32]),
    ("Turing_NLG", 4): ([-1] * 4, [4, 8, 4, 32]),
    ("ResNet_50", 3): ([-1] * 3, [16, 8, 32]),
    ("ResNet_50", 4): ([-1] * 4, [4, 8, 4, 32]),
}


def work_of(workload):
    """[(pass, ns, collective or None, bytes)] of a step, in order. Raises KeyError if the workload is not known."""
    if workload in DATA_PARALLEL:
        times, gradients = DATA_PARALLEL[workload]
        return [(0, times[0], None, 0), (1, times[1], None, 0), (2, times[2], "ALL_REDUCE", gradients)]
    product, core, mlp, norm, activations, gather, gradients = TRANSFORMERS[workload]
    attention, rest = 3 * product + 2 * core + product, mlp + norm
    forward = [(0, attention, "ALL_REDUCE", activations), (0, mlp + mlp, "ALL_REDUCE", activations), (0, norm, None, 0)]
    backward = [
        (1, norm + mlp, None, 0),
        (1, mlp, "ALL_REDUCE", activations),
        (1, product, "ALL_GATHER", gather),
        (1, attention - product, "ALL_REDUCE", activations),
        (2, attention + mlp + rest, None, 0),
    ]
    return 2 * forward + 2 * backward + [(2, 0, "ALL_REDUCE", gradients)]


class Problem:
    """What is to be divided: a workload on dimensions [(shape, size)], with [NPUs by dimension] for each pass, and GB/s in all."""

    def __init__(self, workload, dimensions, communicators, total):
        self.work, self.dimensions, self.communicators, self.total = work_of(workload), dimensions, communicators, total
        # A dimension of which one communicator takes a part and another the rest is two in the simulation, with one bandwidth.
        self.parts = []  # (dimension, size, passes that use it)
        for d in range(len(dimensions)):
            sizes = sorted(
                {row[d] for row in communicators if row[d] > 1},
                key=lambda n: [row[d] for row in communicators].index(n),
            )
            for size in sizes or [dimensions[d][1]]:
                self.parts.append((d, size, [p for p, row in enumerate(communicators) if row[d] == size]))

    def trace(self):
        """The trace that every NPU executes, a chain of nodes."""
        nodes = []

        def add(**more):
            nodes.append({"Id": len(nodes) + 1, "data_deps": [len(nodes)] if nodes else [], **more})

        for which, ns, kind, size in self.work:
            if ns:
                add(Name=PASSES[which], NodeType=4, duration_ps=1000 * ns)
            involved = [which in passes for _, _, passes in self.parts]
            if kind and any(involved):
                add(
                    Name=f"{PASSES[which]} {kind}",
                    NodeType=7,
                    comm_type={"ALL_REDUCE": 0, "ALL_GATHER": 2}[kind],
                    comm_size=size,
                    involved_dim=involved,
                )
        return nodes

    def link(self, part):
        """Into how many links the bandwidth of a part is divided."""
        d, size, _ = self.parts[part]
        return SIMULATED_LINKS[self.dimensions[d][0]](size)

    def base(self, bandwidths):
        """CONFIG.yaml with these GB/s of each dimension."""
        rows = [
            f"      - {{shape: {self.dimensions[d][0]}, size: {size}, bandwidth: {bandwidths[d] / self.link(i)} GB/s, latency: 0 ns}}\n"
            for i, (d, size, _) in enumerate(self.parts)
        ]
        algorithms = ", ".join(ALGORITHMS[self.dimensions[d][0]] for d, _, _ in self.parts)
        kinds = "".join(f"    {kind}: [{algorithms}]\n" for kind in ("all-reduce", "all-gather", "reduce-scatter"))
        return (
            "system:\n  network:\n    dimensions:\n"
            + "".join(rows)
            + f"  collectives:\n{kinds}    chunks: {CHUNKS}\n    endpoint-delay: 0 ns\n    directions: one\n"
            "workload: {traces: {all: libra.json}}\n"
        )

    def write(self, folder, bandwidths):
        (folder / "libra.json").write_text(json.dumps({"workload_graph": self.trace()}))
        (folder / "base.yaml").write_text(self.base(bandwidths))

    def study(self, grid, total_mb):
        """A study of the divisions whose dimensions from the second on have the MB/s of a grid. The first one takes what is left."""
        ways = list(itertools.product(*grid))
        firsts = sorted({total_mb - sum(way) for way in ways} - {0})
        values = [[first for first in firsts if first > 0]] + grid
        parameters, terms, constraints, first_of = {}, [], [], {}
        for i, (d, _, _) in enumerate(self.parts):
            links = self.link(i)
            if d in first_of:  # the same bandwidth as the other part of the dimension
                other, of_other = first_of[d]
                constraints.append(f"part{i} * {links} == part{other} * {of_other}")
            else:
                first_of[d] = (i, links)
                terms.append(f"part{i} * {links}")
            parameters[f"part{i}"] = {
                "key": f"system.network.dimensions.{i}.bandwidth",
                "values": [f"{mb // links} MB/s" for mb in values[d]],
            }
        order = sorted(parameters, key=lambda name: self.parts[int(name[4:])][0] == 0)  # what is left comes last
        constraints.append(" + ".join(terms) + f" == {total_mb} MB/s")
        return {
            "study": {
                "base": "base.yaml",
                "parameters": {name: parameters[name] for name in order},
                "constraints": constraints,
                "objectives": [{"minimise": "step_time"}],
                "keep": 1,
            }
        }

    def steps_of_mb(self):
        """Of which MB/s the bandwidth of each dimension must be a multiple, so that all links have whole ones."""
        of = [
            math.lcm(*(self.link(i) for i, part in enumerate(self.parts) if part[0] == d))
            for d in range(len(self.dimensions))
        ]
        return [math.lcm(of[0], step) for step in of[1:]], of[0]

    def best(self, program, folder, rounds=6):
        """Searches the division. Returns (GB/s of each dimension, seconds, number of simulated divisions)."""
        steps, first_step = self.steps_of_mb()
        total_mb = int(self.total * 1000) // first_step * first_step
        equal = [self.total / len(self.dimensions)] * len(self.dimensions)
        self.write(folder, equal)
        grid = [sorted({max(step, round(total_mb * 2.0**-k / step) * step) for k in range(1, 9)}) for step in steps]
        found, simulated = None, 0
        for number in range(rounds):
            # Numbers with a unit are numbers in expressions only without quotes.
            (folder / "study.yaml").write_text(re.sub(r'"(\d+ MB/s)"', r"\1", json.dumps(self.study(grid, total_mb))))
            bandwidths, seconds, count = self.explored(program, folder)
            simulated += count
            if found is None or seconds < found[1]:
                found = (bandwidths, seconds)
            ratio = 2.0 ** (0.5 / 1.9**number)  # the next grid spans a little more than the gaps of this one
            grid = [
                sorted({max(step, round(found[0][d + 1] * 1000 * ratio**k / step) * step) for k in (-2, -1, 0, 1, 2)})
                for d, step in enumerate(steps)
            ]
        return (*found, simulated)

    def explored(self, program, folder):
        output = folder / "explore.h5"
        run(program, "explore", folder / "study.yaml", f"--output={output}", "--force")
        with h5py.File(output) as file:
            row = list(file["/trials/number"]).index(file["/best"][0])
            values = {}
            for i, (d, _, _) in enumerate(self.parts):
                value = file[f"/parameters/part{i}"][row]
                text = value.decode() if isinstance(value, bytes) else str(value)
                values[d] = float(text.split()[0]) * (1 if "MB/s" in text else 1e-6) * self.link(i) / 1000
            return (
                [values[d] for d in range(len(self.dimensions))],
                float(file["/trials/step_time"][row]),
                len(file["/trials/number"]),
            )

    def seconds(self, program, folder, bandwidths):
        """The step time with these GB/s of each dimension."""
        self.write(folder, bandwidths)
        run(
            program,
            "run",
            folder / "base.yaml",
            "--verbose",
            "--fold",
            "--progress=none",
            "--record-iterations=0",
            f"--output={folder / 'run.h5'}",
            "--force",
        )
        with h5py.File(folder / "run.h5") as file:
            return int(file["/metrics/step_time"][()]) * 1e-12


def price(program, folder, dimensions, bandwidths):
    """The price in USD of the whole network with these GB/s of each dimension."""
    rows = ", ".join(
        f"{{shape: {shape}, size: {size}, bandwidth: {gbps / LINKS[shape](size)} GB/s, latency: 1 ns}}"
        for (shape, size), gbps in zip(dimensions, bandwidths)
    )
    npus = math.prod(size for _, size in dimensions)
    (folder / "price.yaml").write_text(
        f"system: {{network: {{dimensions: [{rows}]}}, compute: {{model: roofline, peak: 1 TFLOPS, local-memory: {{bandwidth: 1 TB/s}}}}}}\ncost: libra-2024\n"
        f"workload: {{model: {{kind: layers, layers: [{{name: a, parameters: 1000, flops: 1000000, activations: 1}}]}}, parallel: {{dp: {npus}}}}}\n"
    )
    run(
        program,
        "run",
        folder / "price.yaml",
        "--verbose",
        "--fold",
        "--progress=none",
        "--record-iterations=0",
        f"--output={folder / 'price.h5'}",
        "--force",
    )
    with h5py.File(folder / "price.h5") as file:
        return float(file["/metrics/capex"][()])


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise ValueError((done.stderr or done.stdout).strip()[:400])


def main():
    parser = argparse.ArgumentParser(
        description="Divides a bandwidth among the dimensions of a network, as LIBRA does."
    )
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help="GPT_3, MSFT_1T, Turing_NLG, ResNet_50 (default: all)"
    )
    parser.add_argument("--total", type=float, default=1000, help="GB/s of an NPU in all dimensions (default: 1000)")
    parser.add_argument(
        "--rounds", type=int, default=6, help="studies, each around the best division of the one before"
    )
    parser.add_argument("--keep", type=pathlib.Path, help="leave the last study of each workload in this folder")
    parser.add_argument("--orrery", default=str(ROOT / "build/release/bin/orrery"), help="the program")
    options = parser.parse_args()
    print(
        "| workload | dimensions | best GB/s | time | equal bandwidths | gain | price, best | price, equal | simulated |\n|---|---|---|---|---|---|---|---|---|"
    )
    for (workload, size), (model, data) in COMMUNICATORS.items():
        if options.workloads and workload not in options.workloads:
            continue
        dimensions = NETWORKS[size]
        problem = Problem(workload, dimensions, [model, model, data], options.total)
        with tempfile.TemporaryDirectory(prefix="libra-") as name:
            folder = pathlib.Path(name)
            if options.keep:
                folder = options.keep / f"{workload}-{size}d"
                folder.mkdir(parents=True, exist_ok=True)
            best, seconds, count = problem.best(options.orrery, folder, options.rounds)
            equal = [options.total / size] * size
            prices = [price(options.orrery, folder, dimensions, bandwidths) for bandwidths in (best, equal)]
            of_equal = problem.seconds(options.orrery, folder, equal)
        print(
            f"| {workload} | {', '.join(f'{shape} {n}' for shape, n in dimensions)} | {', '.join(f'{gbps:.1f}' for gbps in best)} | {1e3 * seconds:.3f} ms "
            f"| {1e3 * of_equal:.3f} ms | {of_equal / seconds:.3f} | {prices[0] / 1e6:.2f} M$ | {prices[1] / 1e6:.2f} M$ | {count} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
