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
    """The oracle as a module. It handles the NPUs of one moment in the order in which something happened to them; requests of
    one moment to a shared memory are to be served in the order of NPUs, so that is what is asked of it."""
    source = path.read_text()
    assert source.count("for i in touched:") == 1, "the oracle changed: see load_oracle"
    source = source.replace("for i in touched:", "for i in sorted(touched):")
    module = type(sys)("oracle")
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


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
