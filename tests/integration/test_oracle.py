#!/usr/bin/python3
"""Random workloads on the program and on an independent oracle: no NPU's finish time differs.

The oracle is shared/reference/model.py, a slow and plain simulator of the same rules. A difference is printed with the seed and
the command that repeats it alone.
"""
import argparse
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import random_workload  # noqa: E402


def load_oracle(path):
    """The oracle as a module, with what is asked of it beyond what it does by itself. It handles the NPUs of one moment in the
    order in which something happened to them; requests of one moment to a shared memory are to be served in the order of NPUs.
    It lets a collective in some of the dimensions wait for the whole world; only the NPUs that differ in these dimensions alone are to
    wait for each other. Then the others' arrivals do not matter to them."""
    source = path.read_text()

    def replace(old, new):
        nonlocal source
        assert source.count(old) == 1, f"the oracle changed: {old}"
        source = source.replace(old, new)

    replace("for i in touched:", "for i in sorted(touched):")
    replace("""            key = name, u["issued"][name]
""", """            part = None if name in groups else part_of(net, i, a.get("involved_dim"))
            if part:
                name, members = (str(a["involved_dim"]), part[0]), part
            key = name, u["issued"][name]
""")
    replace("""                times = collectives.finish(KIND[a["comm_type"]], a["comm_size"], members, [w[m][0] for m in members], a.get("involved_dim"))
""", """                arrivals, world = [w[m][0] for m in members], range(net.size) if part else members
                times = collectives.finish(KIND[a["comm_type"]], a["comm_size"], list(world), [w[m][0] if m in w else min(arrivals) for m in world], a.get("involved_dim"))
                times = [t for m, t in zip(world, times) if m in w]
""")
    module = type(sys)("oracle")
    module.part_of = part_of
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def part_of(network, npu, involved):
    """The NPUs that differ from `npu` in the involved dimensions alone; None if that is the whole world."""
    members, stride = [npu], 1
    for (_, count, _, _), takes_part in zip(network.dims, involved or [True] * len(network.dims)):
        if takes_part:
            members = [m + (c - m // stride % count) * stride for m in members for c in range(count)]
        stride *= count
    return sorted(members) if len(members) < network.size else None


def expected(oracle, folder, workload):
    """Finish times in ps as the oracle has them."""
    system = workload.system
    network = oracle.Network(system.topology, system.counts, system.bandwidth, system.latency)
    times = oracle.simulate(folder / "workload", network, system.system, system.memory, workload.groups, workload.queues, workload.rendezvous)
    assert None not in times, f"seed {workload.seed}: the generator wrote a workload that is stuck"
    return [t * 1000 for t in times]


def compare(oracle, seed, ranks, keep):
    """What differs for one seed; empty if nothing."""
    folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="orrery-oracle-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        workload = random_workload.Workload(seed)
        files = [harness.write_workload(folder, workload.traces)] + workload.system.write(folder)
        output = folder / "results.h5"
        try:
            outcome = harness.orrery("run", *files, f"--output={output}", "--force", "--quiet", ranks=ranks)
        except harness.TookTooLong as error:
            return str(error)
        if outcome.code != 0:
            return f"exit code {outcome.code}: {outcome.err[-1500:]}"
        got, want = harness.finish_times(output), expected(oracle, folder, workload)
        if got != want:
            differing = [npu for npu, pair in enumerate(zip(got, want)) if pair[0] != pair[1]]
            npu = differing[0]
            return f"{len(differing)} of {len(want)} NPUs differ, first NPU {npu}: {got[npu]} ps, expected {want[npu]} ps"
        return ""
    finally:
        if not keep:
            shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=0, help="0: without mpirun")
    parser.add_argument("--keep", help="folder in which the input files stay")
    args = parser.parse_args()
    path = harness.SHARED / "reference/model.py"
    harness.skip_without(path, "the reference model's rules as a program")
    oracle = load_oracle(path)
    failed, begin = 0, time.monotonic()
    for seed in range(args.seed, args.seed + args.count):
        difference = compare(oracle, seed, args.ranks, args.keep)
        if difference:
            failed += 1
            print(f"seed {seed}: {difference}")
            print(f"  repeat: tests/integration/test_oracle.py --seed {seed} --count 1 --ranks {args.ranks} --keep FOLDER", flush=True)
            if failed == 10:
                print("and perhaps more")
                break
    print(f"{args.count} workloads on {args.ranks or 'no'} ranks, {failed} differ, {time.monotonic() - begin:.1f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
