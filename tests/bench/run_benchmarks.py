#!/usr/bin/env python3
"""Times whole runs of the program and prints a Markdown table; docs/measurements.md has the figures and what they mean.

usage: run_benchmarks.py [--orrery BIN] [--bench-trace BIN] [--repeat N] [NAME ...]

NAME selects the benchmarks whose names contain it. Each is run once to compare its finish times with those that ASTRA-sim 2 gives, then
N times for the figures. Exits with 1 if a finish time differs."""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import chakra  # noqa: E402

MIB = 1 << 20

# `prepare(folder)` writes the inputs and returns the arguments of `orrery run`; `expected` is the first and the last finish time
# in ns, or every NPU's; `peer` is what ASTRA-sim 2 took, as CPU seconds and MiB.
Benchmark = collections.namedtuple("Benchmark", "name prepare expected peer ranks")
Figures = collections.namedtuple("Figures", "wall user cpu mib")

SYSTEM = """system:
  rules: astra-sim
  network:
    dimensions:
{dimensions}
  collectives:
    all-reduce: [{algorithms}]
    optimization: localBWAware
    chunks: 4
    active-chunks: 1
    endpoint-delay: 10 ns
  compute:
    local-memory: {{bandwidth: 1600 GB/s}}
workload:
  traces: {traces}
"""


# ---- inputs ----


def three_dimensions(npus):
    return [("Ring", 2, "ring"), ("FullyConnected", 8, "direct"), ("Switch", npus // 16, "halvingDoubling")]


def one_switch(npus):
    return [("Switch", npus, "halvingDoubling")]


def one_ring(npus):
    return [("Ring", npus, "ring")]


def write_configuration(folder, dimensions, traces):
    """Writes a configuration and returns the arguments. ASTRA-sim's "50 GB/s" is 50 * 2^30 bytes/s."""
    lines = [
        f"      - {{shape: {shape}, size: {size}, bandwidth: 50 GiB/s, latency: 500 ns}}"
        for shape, size, _ in dimensions
    ]
    path = folder / "run.yaml"
    path.write_text(
        SYSTEM.format(dimensions="\n".join(lines), algorithms=", ".join(a for _, _, a in dimensions), traces=traces)
    )
    return [str(path)]


def all_reduce(node, size, **more):
    return chakra.Node(node, chakra.COLL, "all_reduce", comm_type=chakra.ALL_REDUCE, comm_size=size, **more)


def one_all_reduce(dimensions):
    def prepare(folder):
        chakra.write(folder / "all.et", [all_reduce(0, 64 * MIB)])
        return write_configuration(folder, dimensions, "{all: all.et}")

    return prepare


def late_all_reduce(dimensions, npus):
    """Returns a preparation of an all-reduce that NPU i joins after 1 + (7919 i mod N) us."""

    def prepare(folder):
        for npu in range(npus):
            late = chakra.Node(0, chakra.COMP, "late", duration=1 + 7919 * npu % npus)
            chakra.write(folder / f"late.{npu}.et", [late, all_reduce(1, 64 * MIB, data_deps=[0])])
        return write_configuration(folder, dimensions, "late")

    return prepare


def data_parallel_step(dimensions, layers=32):
    """Returns a preparation of a chain of forward and backward nodes; each backward node's 32 MiB all-reduce delays the optimizer only."""

    def prepare(folder):
        nodes = []

        def add(type, deps, **more):
            nodes.append(chakra.Node(len(nodes), type, data_deps=deps, **more))
            return nodes[-1].id

        chain, gradients = [], []
        for _ in range(layers):
            chain = [add(chakra.COMP, chain, duration=100)]
        for _ in range(layers):
            chain = [add(chakra.COMP, chain, duration=200)]
            gradients.append(add(chakra.COLL, chain, comm_type=chakra.ALL_REDUCE, comm_size=32 * MIB))
        add(chakra.COMP, chain + gradients, duration=100)
        chakra.write(folder / "step.et", nodes)
        return write_configuration(folder, dimensions, "{all: step.et}")

    return prepare


POOL = """  remote-memory: {kind: hierarchical-pool, groups: 256, bandwidth: 500 GB/s, latency: 1 us, switches: 16, npus-per-node: 16,
                  link-bandwidth: 8 GB/s, link-latency: 500 ns, fabric-bandwidth: 512 GB/s, fabric-latency: 100 ns, chunk-size: 1 MiB}
"""


def pool(npus, layers=32, noise=0):
    """Returns a preparation of layers of 16 MiB, each of which is loaded from one hierarchical pool and then computed with for 100 us."""

    def prepare(folder):
        nodes = []
        for i in range(layers):
            nodes.append(
                chakra.Node(2 * i, chakra.MEM_LOAD, "load", data_deps=[2 * i - 1] if i else [], tensor_size=16 * MIB)
            )
            nodes.append(chakra.Node(2 * i + 1, chakra.COMP, "compute", data_deps=[2 * i], duration=100))
        chakra.write(folder / "layers.et", nodes)
        arguments = write_configuration(folder, one_switch(npus), "{all: layers.et}")
        path = pathlib.Path(arguments[0])
        path.write_text(path.read_text().replace("workload:", POOL + "workload:"))
        return arguments + ([f"--noise={noise}"] if noise else [])

    return prepare


def stage(shared, name):
    def prepare(folder):
        with tarfile.open(shared / "traces" / f"stage-{name}.tar.xz") as archive:
            archive.extractall(folder)
        system = shared / "traces/system"
        return [
            f"--workload-configuration={folder / name / 'workload'}",
            f"--comm-group-configuration={folder / name / 'workload.json'}",
            f"--system-configuration={system / 'system.json'}",
            f"--network-configuration={system / 'net_64.yml'}",
            f"--remote-memory-configuration={system / 'mem.json'}",
        ]

    return prepare


def benchmarks(shared):
    found = []

    def add(name, prepare, expected=None, peer=None, ranks=(1,)):
        found.extend(Benchmark(name, prepare, expected, peer, r) for r in ranks)

    for npus, peer in ((1024, (0.52, 71)), (4096, (4.6, 477)), (16384, (54.9, 5808))):
        add(f"all-reduce 3-D {npus}", one_all_reduce(three_dimensions(npus)), (1317064, 1317064), peer)
    for npus, peer, finish in ((1024, (1.2, 358), 2641092), (4096, (24.9, 5466), 2659160), (16384, None, None)):
        add(f"all-reduce switch {npus}", one_all_reduce(one_switch(npus)), finish and (finish, finish), peer)
    for npus, peer, finish in ((1024, (12.2, 356), 6792760), (4096, None, None), (16384, None, None)):
        add(f"all-reduce ring {npus}", one_all_reduce(one_ring(npus)), finish and (finish, finish), peer)
    add("late ring 1024", late_all_reduce(one_ring(1024), 1024), (7738490, 7816760), (18.8, 358))
    add("late ring 16384", late_all_reduce(one_ring(16384), 16384))  # as many structures as NPUs
    for npus, peer in ((256, (3.7, 77)), (1024, (24.2, 278)), (16384, None)):
        add(
            f"data-parallel step {npus}",
            data_parallel_step(three_dimensions(npus)),
            (24639584, 24639584),
            peer,
            ranks=(1, 2) if npus == 16384 else (1,),
        )
    # A round of 16 KiB for each NPU takes 2097.152 ns from the groups (the slowest stage), 2048 over the links, 32 over the fabrics.
    load = int(1600 + 2097.152 + 2048 + 32 + 1023 * 2097.152)
    add("pool 16384", pool(16384), (32 * (load + 100_000),) * 2, ranks=(1, 2))
    add("pool, skewed 16384", pool(16384, noise=0.05), ranks=(1, 2))
    for name in ("gpt_64_tp8sp2dp4_sp", "moe_64_dp4tp2pp2ep4", "llama-s_64_dp4tp4pp4"):
        if not (shared / "traces" / f"stage-{name}.tar.xz").exists():
            print(f"skipped: stage-{name} is not in {shared / 'traces'}", file=sys.stderr)
            continue
        known = json.loads(next((shared / "traces/expected").glob(f"*{name}*.json")).read_text())
        peer = (15.4, 454) if name.startswith("llama") else None
        add(f"stage-{name}", stage(shared, name), finish_times(known), peer, ranks=(1, 2))
    return found


def finish_times(known):
    """Returns the finish time of every NPU in a file of expected results."""
    for key in ("finish", "finish_ns", "unaware"):
        if key in known:
            known = known[key]
            break
    if isinstance(known, dict):
        known = [known[npu] for npu in sorted(known, key=int)]
    return [int(value) for value in known]


# ---- runs ----


def command(options, arguments, ranks, folder, *more):
    launcher = [str(SOURCE / "scripts/mpirun.sh"), str(ranks)] if ranks > 1 else []
    return launcher + [options.orrery, "run", *arguments, f"--output={folder / 'results.h5'}", "--force", *more]


def check(options, benchmark, arguments, folder):
    """Compares the finish times. Returns the program's own figures, and what differs."""
    done = subprocess.run(
        command(options, arguments, benchmark.ranks, folder, "--print-npus", "--progress=none", "--verbose"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        return None, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    times = {int(npu): int(ns) for npu, ns in re.findall(r"sys\[(\d+)\] finished, (\d+) cycles", done.stdout)}
    numbers = re.search(r"(\d+) events in ([\d.]+) s .*?, (\d+) data and (\d+) null messages", done.stdout)
    fault = ""
    if not times:
        fault = "no NPU printed"
    elif isinstance(benchmark.expected, tuple):
        if (min(times.values()), max(times.values())) != benchmark.expected:
            fault = f"finish {min(times.values())} .. {max(times.values())} ns, expected {benchmark.expected}"
    elif benchmark.expected is not None:
        wrong = [npu for npu, ns in enumerate(benchmark.expected) if times.get(npu) != ns]
        if wrong:
            fault = (
                f"{len(wrong)} of {len(benchmark.expected)} NPUs differ, first {wrong[0]}: "
                f"{times.get(wrong[0])} ns, expected {benchmark.expected[wrong[0]]}"
            )
    return (max(times.values(), default=0), numbers), fault


def once(line):
    """Runs a command. Returns wall and CPU seconds of it and its children, and the largest process' peak memory."""
    begin = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(line)}")
    return Figures(wall, usage.ru_utime, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure(options, benchmark):
    with tempfile.TemporaryDirectory(prefix="orrery-bench-") as name:
        folder = pathlib.Path(name)
        arguments = benchmark.prepare(folder)
        seen, fault = check(options, benchmark, arguments, folder)
        if fault:
            print(f"{benchmark.name} on {benchmark.ranks}: {fault}", file=sys.stderr)
        if seen is None:
            return False
        line = command(options, arguments, benchmark.ranks, folder, "--quiet")
        runs = [once(line) for _ in range(options.repeat)]
    row(benchmark, seen, runs, fault)
    return not fault


def row(benchmark, seen, runs, fault):
    def both(values):
        return f"{min(values):.3f} / {statistics.median(values):.3f}"

    finish, numbers = seen
    mib = max(r.mib for r in runs)
    cpu = min(r.cpu for r in runs)
    agreement = "wrong" if fault else "equal" if benchmark.expected else "-"
    peer = "- | -"
    if benchmark.peer:
        seconds, memory = benchmark.peer
        peer = f"{seconds:.3g} s, {memory:,} MiB | {seconds / max(cpu, 0.001):.0f}, {memory / mib:.1f}"
    events, loop, data, nulls = (
        (int(numbers[1]), float(numbers[2]), int(numbers[3]), int(numbers[4])) if numbers else (0, 0, 0, 0)
    )
    print(
        f"| {benchmark.name} | {benchmark.ranks} | {finish:,} | {agreement} | {both([r.wall for r in runs])} | "
        f"{both([r.user for r in runs])} | {cpu:.3f} | {mib:.0f} | {events:,} | {loop:.3f} | {data:,} + {nulls:,} | {peer} |",
        flush=True,
    )


def reading_speed(options):
    """Prints how many nodes of made files one core reads in a second, by the benchmark of the reader."""
    if not pathlib.Path(options.bench_trace).exists():
        print("skipped: reading speed (bench_trace is not built)", file=sys.stderr)
        return
    done = subprocess.run(
        [options.bench_trace, "--benchmark_format=json", f"--benchmark_repetitions={options.repeat}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    by_name = collections.defaultdict(list)
    for run in json.loads(done.stdout)["benchmarks"]:
        if run.get("run_type") != "aggregate":
            by_name[run["run_name"]].append(run)
    print(
        "\n| made file / nodes | M nodes/s, most | median | bytes of file per node | bytes kept per node |\n|---|---|---|---|---|"
    )
    for name, found in by_name.items():
        speeds = [run["items_per_second"] / 1e6 for run in found]
        print(
            f"| {name} | {max(speeds):.2f} | {statistics.median(speeds):.2f} | {found[0]['file_bytes_per_node']:.0f} | {found[0]['kept_bytes_per_node']:.0f} |"
        )


def main():
    parser = argparse.ArgumentParser(description="Times whole runs of the program.")
    parser.add_argument("names", nargs="*", help="benchmarks whose names contain one of these (default: all)")
    parser.add_argument("--orrery", default=str(SOURCE / "build/release/bin/orrery"))
    parser.add_argument("--bench-trace", default=str(SOURCE / "build/release/bin/bench_trace"))
    parser.add_argument("--shared", type=pathlib.Path, default=SOURCE.parent / "shared", help="where traces/ is")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    print(
        "| work | ranks | last finish, ns | | wall s, least / median | user s, least / median | user and system s, least | MiB "
        "| events | of this in events s | data and null messages | ASTRA-sim 2 | its CPU and memory / ours |\n"
        + "|---" * 13
        + "|"
    )
    good = True
    for benchmark in benchmarks(options.shared):
        if not options.names or any(name in benchmark.name for name in options.names):
            good = measure(options, benchmark) and good
    if not options.names or "reading" in options.names:
        reading_speed(options)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
