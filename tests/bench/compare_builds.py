#!/usr/bin/env python3
"""Compares the simulation results of two builds of the program, bit by bit.

usage: compare_builds.py --old BIN --new BIN [--cache DIR] [--ranks 0,2,3] [--every N] [--only TEXT] [--seeds N] [--with ARG]

The old build runs every case once, without mpirun; --cache keeps these results for the next call. The new build runs every case on
each number of ranks (0: without mpirun), and folded. The cases are the reference cases with both network models, random workloads, the
configurations in configs/ and, where the folder shared/ is beside the repository, the archives of real traces.

Two runs agree if they end with the same exit code and every dataset of the old build outside /kernel and /config has the same values;
what only the new build writes is left to the tests. --with gives both builds an argument, such as --with=--streams=counted where the new
build has another default. It needs a cache of its own. Prints one line for each case that differs and then `N passed, M failed`; exits
with 1 if any failed."""
import argparse
import collections
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import h5py
import numpy

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
os.environ.setdefault("ORRERY_SCRATCH", str(SOURCE / "build/scratch"))

import harness  # noqa: E402
import random_workload  # noqa: E402
import reference_case  # noqa: E402

# `prepare(folder)` writes the inputs and returns the arguments of `orrery run`.
Case = collections.namedtuple("Case", "name prepare most_ranks can_fold")

NETWORKS = ("unaware", "aware")
SCALE = ("gpt3-175b-1024", "gpt3-175b-4096", "transformer-step-1024", "ring-1024-skewed", "all-reduce-1024")


def fixed(*arguments):
    return lambda folder: [str(argument) for argument in arguments]


def reference_cases():
    for case in reference_case.all_cases():
        for network in NETWORKS:
            yield Case(
                f"reference/{case.name}/{network}",
                fixed(*case.arguments(), f"--network=congestion-{network}"),
                case.num_npus,
                network == "unaware",
            )


def random_cases(seeds):
    for seed in seeds:
        for network in NETWORKS:

            def prepare(folder, seed=seed, network=network):
                workload = random_workload.Workload(seed, max_npus=32, operations=(20, 80))
                return workload.system.write(folder) + [
                    harness.write_workload(folder, workload.traces),
                    f"--network=congestion-{network}",
                    "--timeline",
                ]

            yield Case(
                f"random/{seed}/{network}",
                prepare,
                random_workload.Workload(seed, max_npus=32, operations=(20, 80)).num_npus,
                network == "unaware",
            )


def configurations():
    root = SOURCE / "configs"
    noise = ["--noise", "0.05", "--iterations", "2"]
    for network in NETWORKS:
        yield Case(
            f"configs/ring-8/{network}",
            lambda folder, network=network: ring_of_eight(folder, f"--network=congestion-{network}", "--timeline"),
            8,
            network == "unaware",
        )
        yield Case(
            f"configs/all-pairs-8/{network}",
            fixed(root / "all-pairs-8.yaml", f"--network=congestion-{network}", "--timeline"),
            8,
            network == "unaware",
        )
    yield Case("configs/llama3-8b-64", fixed(root / "llama3-8b-64.yaml", "--timeline"), 64, True)
    yield Case("configs/llama3-8b-64/noise", fixed(root / "llama3-8b-64.yaml", *noise), 64, False)
    yield Case("configs/llama3-8b-64/aware", fixed(root / "llama3-8b-64.yaml", "--network=congestion-aware"), 64, False)
    yield Case("configs/moe-1t-256", fixed(root / "moe-1t-256.yaml"), 256, False)
    for name in SCALE:
        yield Case(f"configs/scale/{name}", fixed(root / f"scale/{name}.yaml"), 1024, True)
    for system in sorted((root / "systems").glob("*.yaml")):
        yield Case(f"configs/systems/{system.stem}", lambda folder, system=system: on_system(folder, system), 64, False)


def on_system(folder, system):
    """Returns the arguments of a small transformer with one replica on each NPU of a system."""
    npus = math.prod(int(size) for size in re.findall(r"shape: \w+, size: (\d+)", system.read_text()))
    path = pathlib.Path(folder) / "config.yaml"
    path.write_text(
        f"system: {system}\nworkload:\n  model: {SOURCE / 'configs/models/llama3-8b.yaml'}\n  parallel: {{dp: {npus}}}\n"
        if npus
        else f"system: {system}\nworkload:\n  model: {SOURCE / 'configs/models/llama3-8b.yaml'}\n"
    )
    return [str(path), "--memory=report"]


def ring_of_eight(folder, *more):
    """Returns the arguments of configs/ring-8.yaml with the traces that its comment names."""
    prefix = pathlib.Path(folder) / "workload"
    subprocess.run(
        [harness.BINARY, "generate", "--tp", "8", "--pp", "1", "--dp", "1", "--layers", "4", "--output", str(prefix)],
        check=True,
        capture_output=True,
    )
    return [
        SOURCE / "configs/ring-8.yaml",
        f"--set=workload.traces={prefix}",
        f"--set=workload.groups={prefix}.json",
        *more,
    ]


def traces():
    if not (harness.SHARED / "traces").exists():
        return
    for name in harness.STAGE_TRACES:
        yield Case(f"traces/stage-{name}", lambda folder, name=name: harness.stage_arguments(name), 64, True)

    def dlrm(folder):
        return [
            f"--workload-configuration={harness.unpacked('dlrm-8gpu') / 'dlrm'}",
            *harness.System(["FullyConnected"], [8], 300.0, 700.0).write(folder),
            "--timeline",
        ]

    for network in NETWORKS:
        yield Case(
            f"traces/dlrm/{network}",
            lambda folder, network=network: dlrm(folder) + [f"--network=congestion-{network}"],
            8,
            network == "unaware",
        )

    def resnet(folder):
        inputs = harness.unpacked("resnet50-dp-64")
        memory = pathlib.Path(folder) / "remote_memory.json"
        memory.write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
        return [
            f"--workload-configuration={inputs / 'resnet50_DataParallel'}",
            f"--network-configuration={inputs / 'network.yml'}",
            f"--system-configuration={inputs / 'system.json'}",
            f"--remote-memory-configuration={memory}",
        ]

    yield Case("traces/resnet50", resnet, 64, True)

    def pytorch(folder):
        return [
            f"--workload-configuration={harness.unpacked('chakra-pytorch-single') / 'resnet_schema1.0.1'}",
            *harness.System(["Ring"], [1]).write(folder),
        ]

    yield Case("traces/pytorch", pytorch, 1, True)
    for torus in ("T2D-analytical", "T3D-analytical"):

        def tori(folder, torus=torus):
            case = harness.unpacked("torus-multitenant") / "examples" / torus
            inputs = case / "inputs"
            files = [
                f"--network-configuration={inputs / 'network.yml'}",
                f"--system-configuration={inputs / 'sys.json'}",
                f"--remote-memory-configuration={inputs / 'RemoteMemory.json'}",
            ]
            return [
                f"--workload-configuration={case / 'trace/trace'}",
                *files,
                *(f"--comm-group-configuration={path}" for path in inputs.glob("comm_group*.json")),
            ]

        yield Case(f"traces/{torus}", tori, 4, True)


def digest(path):
    """Returns {dataset: digest of its values}, without /kernel, /config and /metrics/dimension.

    /metrics/dimension only counts 0, 1, 2, ..., and older builds do not write it.
    """
    digests = {}

    def visit(name, node):
        if isinstance(node, h5py.Dataset) and not name.startswith(("kernel", "config", "metrics/dimension")):
            values = node[()]
            if isinstance(values, numpy.ndarray) and values.dtype == object:
                data = repr(values.tolist()).encode()
            else:
                data = (
                    numpy.ascontiguousarray(values).tobytes()
                    + str(numpy.shape(values)).encode()
                    + numpy.asarray(values).dtype.str.encode()
                )
            digests[name] = hashlib.sha256(data).hexdigest()[:16]

    with h5py.File(path) as results:
        results.visititems(visit)
    return digests


def outcome(binary, arguments, ranks, output):
    """Runs once. Returns the exit code, which is -1 if it takes too long, and the digests."""
    output.unlink(missing_ok=True)
    launch = [str(SOURCE / "scripts/mpirun.sh"), str(ranks)] if ranks else []
    try:
        done = subprocess.run(
            [*launch, binary, "run", *arguments, f"--output={output}", "--quiet", "--force"],
            capture_output=True,
            text=True,
            timeout=600,
        )
    except subprocess.TimeoutExpired:
        return -1, {}
    return done.returncode, digest(output) if output.exists() else {}


def variants(case, ranks):
    """Yields (ranks, further arguments) of the runs of a case."""
    for r in ranks:
        if r == 0 or r <= case.most_ranks:
            yield r, []
    if case.can_fold:
        yield 0, ["--fold"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, help="the program to compare with")
    parser.add_argument("--new", default=harness.BINARY, help="the program that is compared")
    parser.add_argument("--cache", type=pathlib.Path, help="keep the results of the old program in this folder")
    parser.add_argument("--ranks", default="0,2,3", help="numbers of ranks of the new program")
    parser.add_argument("--every", type=int, default=1, help="take one case of N")
    parser.add_argument("--only", default="", help="take the cases whose names contain this")
    parser.add_argument("--seeds", type=int, default=60, help="random workloads")
    parser.add_argument(
        "--with",
        action="append",
        default=[],
        dest="more",
        metavar="ARG",
        help="an argument for both programs; repeatable",
    )
    args = parser.parse_args()
    ranks = [int(r) for r in args.ranks.split(",")]
    cases = [
        case
        for source in (configurations(), traces(), reference_cases(), random_cases(range(1, args.seeds + 1)))
        for case in source
        if args.only in case.name
    ][:: args.every]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="orrery-compare-") as scratch:
        scratch = pathlib.Path(scratch)
        cache = args.cache or scratch / "cache"
        for number, case in enumerate(cases):
            folder = scratch / str(number)
            folder.mkdir()
            arguments = [*case.prepare(folder), *args.more]
            kept = cache / (case.name.replace("/", "__") + ".json")
            if kept.exists():
                code, old = json.loads(kept.read_text())
            else:
                code, old = outcome(args.old, arguments, 0, scratch / "old.h5")
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps([code, old]))
            for r, more in variants(case, ranks):
                got, new = outcome(args.new, [*arguments, *more], r, scratch / "new.h5")
                differing = sorted(name for name in old if old[name] != new.get(name))
                if got == code and not differing:
                    passed += 1
                    continue
                failed += 1
                print(
                    f"FAIL {case.name} on {r} ranks {' '.join(more)}: exit code {got}, expected {code}; {' '.join(differing[:8])}",
                    flush=True,
                )
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
