#!/usr/bin/python3
"""Runs the reference cases and holds each to its class (README.md).

usage: check_cases.py [--network aware] [--ranks R] [--every N] [--jobs J] [--verbose] [CASE ...]
"""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import reference_case  # noqa: E402

CLOSE = 0.10


def judge(case, network, ranks, folder):
    """(holds, what was found) for one case."""
    output = folder / f"{case.name}.h5"
    try:
        outcome = harness.orrery("run", *case.arguments(), f"--network=congestion-{network}", f"--output={output}", "--quiet", ranks=ranks, timeout=60)
    except harness.TookTooLong:
        return False, "not done in time"
    if case.kind == "defect":
        return judge_defect(case, outcome, output)
    if outcome.code != 0:
        return False, f"exit code {outcome.code}: {' '.join(harness.errors(outcome))[:300]}"
    got, want = harness.finish_times(output), case.finish_ns(network)
    if want is None and network == "aware" and len(got) == case.num_npus:
        return True, "a result, and no other to compare it with"
    if want is None:
        return False, "a case of this class has to have finish times"
    if len(got) != len(want):
        return False, f"{len(got)} NPUs, expected {len(want)}"
    if got == [time_ns * 1000 for time_ns in want]:
        return True, "exact"
    npu = max(range(len(want)), key=lambda i: abs(got[i] - want[i] * 1000))
    off = abs(got[npu] - want[npu] * 1000) / max(want[npu] * 1000, 1)
    found = f"NPU {npu} finishes at {got[npu]} ps, expected {want[npu] * 1000} ps ({100 * off:.2f} % off)"
    return case.kind == "close" and off <= CLOSE, found


def judge_defect(case, outcome, output):
    if outcome.code in (3, 4):
        found = harness.errors(outcome)
        return len(found) == 1 and not output.exists(), f"refused: {' '.join(found)[:300] or 'without a message'}"
    if outcome.code != 0:
        return False, f"exit code {outcome.code}: {outcome.err[-300:]}"
    return len(harness.finish_times(output)) == case.num_npus, "a result"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=["unaware", "aware"], default="unaware", help="of congestion")
    parser.add_argument("--ranks", type=int, default=0, help="0: without mpirun")
    parser.add_argument("--every", type=int, default=1, help="take one case of N")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    parser.add_argument("names", nargs="*", metavar="CASE")
    args = parser.parse_args()
    cases = [case for case in reference_case.all_cases() if not args.names or case.name in args.names][::args.every]
    if not cases:
        sys.exit("no such case")
    begin, tally = time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix="orrery-cases-") as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        verdicts = pool.map(lambda case: judge(case, args.network, args.ranks, pathlib.Path(folder)), cases)
        for case, (holds, found) in zip(cases, verdicts):
            good, total = tally.get(case.kind, (0, 0))
            tally[case.kind] = good + holds, total + 1
            if args.verbose or args.names or not holds:
                print(f"{'ok  ' if holds else 'FAIL'} {case.kind:6} {case.name}: {found}", flush=True)
    for kind, (good, total) in sorted(tally.items()):
        print(f"{kind}: {good} of {total}")
    print(f"congestion-{args.network}, on {args.ranks or 'no'} ranks, {time.monotonic() - begin:.1f} s")
    sys.exit(0 if all(good == total for good, total in tally.values()) else 1)


if __name__ == "__main__":
    main()
