#!/usr/bin/python3
"""Orrery agrees with an independent simulator of the same rules on every NPU's finish time: with tests/reference/oracle.py, and in the
congestion-aware network and where NPUs share a memory with tests/reference/event_oracle.py.

usage: test_oracle.py [--seed N] [--cases N] [--ranks R] [--network aware] [--keep FOLDER]

The systems: random networks of up to 24 NPUs with random workloads, one for each seed. In the congestion-aware network they have one
dimension. Seeds that no oracle covers are skipped, and counted by the reason. A difference is printed with the seed and the command that
repeats it alone.
"""
import argparse
import collections
import pathlib
import shutil
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "reference")]

import event_oracle  # noqa: E402
import harness  # noqa: E402
import oracle  # noqa: E402
import random_workload  # noqa: E402

MOST_DIFFERENCES = 10  # to print


def expected(folder, workload, network):
    """Returns the finish times in ps as the oracle has them. Raises NotImplementedError where it has no rule."""
    system = workload.system
    dimensions = oracle.Network(system.topology, system.counts, system.bandwidth, system.latency)
    arguments = (
        folder / "workload",
        dimensions,
        system.system,
        system.memory,
        workload.groups,
        workload.queues,
        workload.rendezvous,
    )
    if network == "aware":
        times = event_oracle.EventSimulation(*arguments, aware=True).run()
        if None in times:
            raise NotImplementedError("members that wait for each other in ASTRA-sim")
    else:
        times = expected_without_links(arguments, workload)
    assert None not in times, f"seed {workload.seed}: the generator wrote a workload that is stuck"
    return [t * 1000 for t in times]


def expected_without_links(arguments, workload):
    """Returns the finish times in ns in the congestion-unaware network. Where NPUs share a memory, the order of events of one time matters,
    which event_oracle.py knows."""
    if not workload.shared_memory():
        return oracle.simulate(*arguments)
    times = event_oracle.EventSimulation(*arguments).run()
    if None in times:
        raise NotImplementedError("a shared memory, and members that wait for each other in ASTRA-sim")
    return times


def compare(seed, ranks, network, folder):
    """Returns what differs for one seed; empty if nothing does. Raises NotImplementedError if no oracle has a rule for it."""
    return compare_workload(
        random_workload.Workload(seed, all_algorithms=True, one_dimension=network == "aware"), ranks, network, folder
    )


def compare_workload(workload, ranks, network, folder):
    """Does the same for a workload."""
    files = [harness.write_workload(folder, workload.traces)] + workload.system.write(folder)
    want = expected(folder, workload, network)
    output = folder / "results.h5"
    outcome = harness.orrery(
        "run", *files, f"--network=congestion-{network}", f"--output={output}", "--force", "--quiet", ranks=ranks
    )
    if outcome.code != 0:
        return f"exit code {outcome.code}: {outcome.err[-1500:]}"
    got = harness.finish_times(output)
    differing = [npu for npu, pair in enumerate(zip(got, want)) if pair[0] != pair[1]]
    if not differing:
        return ""
    npu = differing[0]
    return f"{len(differing)} of {len(want)} NPUs differ, first NPU {npu}: {got[npu]} ps, expected {want[npu]} ps"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--cases", "--count", dest="count", type=int, default=100, help="how many seeds")
    parser.add_argument(
        "--ranks", type=int, default=0, help="MPI ranks; 0: without mpirun; -1: without it, on 2 and on 3 in turn"
    )
    parser.add_argument(
        "--network",
        choices=["unaware", "aware"],
        default="unaware",
        help="whether the network model is aware of congestion",
    )
    parser.add_argument("--keep", type=pathlib.Path, help="folder in which the input files stay")
    parser.add_argument(
        "--most-differences", type=int, default=MOST_DIFFERENCES, help="stop after so many; default: %(default)s"
    )
    args = parser.parse_args()
    failed, skipped = 0, collections.Counter()
    for seed in range(args.seed, args.seed + args.count):
        folder = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="orrery-oracle-"))
        folder.mkdir(parents=True, exist_ok=True)
        ranks = args.ranks if args.ranks >= 0 else (0, 2, 3)[seed // 3 % 3]
        try:
            difference = compare(seed, ranks, args.network, folder)
        except NotImplementedError as missing:
            difference = ""
            skipped[str(missing)] += 1
        if not args.keep:
            shutil.rmtree(folder)
        if difference:
            failed += 1
            print(f"seed {seed}: {difference}")
            print(
                f"  repeat: tests/integration/test_oracle.py --seed {seed} --cases 1 --ranks {ranks} --network {args.network} --keep FOLDER",
                flush=True,
            )
        if failed == args.most_differences:
            sys.exit(f"{failed} workloads differ; no others are tried")
    print(f"{args.count - failed - skipped.total()} passed, {failed} failed, {skipped.total()} skipped")
    for reason, count in skipped.most_common():
        print(f"  skipped {count}: {reason}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
