#!/usr/bin/python3
"""Runs Orrery on reference cases and checks every NPU's finish time by the class of the case (README.md).

Any folder of cases in that form can be given. Prints one line for each case and at the end `N passed, M failed`; exits with 1 if a
case failed.
"""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import reference_case  # noqa: E402

RANDOM = harness.SHARED / "reference/astra-sim/random"
TURNS = harness.SHARED / "reference/astra-sim/turns"
CLOSE = 0.10  # the largest relative error of a case of class "close"


def check(case, network, ranks, folder):
    """Runs one case and returns (whether it passed, what was found)."""
    output = folder / f"{case.name}.h5"
    try:
        outcome = harness.orrery(
            "run",
            *case.arguments(),
            f"--network=congestion-{network}",
            f"--output={output}",
            "--quiet",
            ranks=ranks,
            timeout=60,
        )
    except harness.TookTooLong:
        return False, "not done in 60 s"
    if case.kind == "defect":
        return check_defect(case, outcome, output)
    if outcome.code != 0:
        return False, f"exit code {outcome.code}: {' '.join(harness.errors(outcome))[:300]}"
    got, want = harness.finish_times(output), case.finish_ns(network)
    if want is None and (network == "aware" or case.finish_ns("aware")) and len(got) == case.num_npus:
        return True, "complete; there are no times to compare with"
    if want is None:
        return False, "a case of this class must have finish times in expected.json"
    if len(got) != len(want):
        return False, f"{len(got)} NPUs, expected {len(want)}"
    if got == [time_ns * 1000 for time_ns in want]:
        return True, "exact"
    npu = max(range(len(want)), key=lambda i: abs(got[i] - want[i] * 1000))
    error = abs(got[npu] - want[npu] * 1000) / max(want[npu] * 1000, 1)
    found = f"NPU {npu} finishes at {got[npu]} ps, expected {want[npu] * 1000} ps ({100 * error:.2f} % off)"
    return case.kind == "close" and error <= CLOSE, found


def check_defect(case, outcome, output):
    """Accepts a complete result, or a refusal with one message and without a results file."""
    if outcome.code in (3, 4):
        found = harness.errors(outcome)
        return len(found) == 1 and not output.exists(), f"refused: {' '.join(found)[:300] or 'without a message'}"
    if outcome.code != 0:
        return False, f"exit code {outcome.code}: {outcome.err[-300:]}"
    return len(harness.finish_times(output)) == case.num_npus, "complete"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--cases", type=pathlib.Path, default=reference_case.FOLDER, help="folder of cases; default: %(default)s"
    )
    parser.add_argument(
        "--random", action="store_true", help="run the random cases in shared/ beside the repository, if they are there"
    )
    parser.add_argument("--turns", action="store_true", help="run the cases of turns and ties there")
    parser.add_argument(
        "--network",
        choices=["unaware", "aware"],
        default="unaware",
        help="whether the network model is aware of congestion",
    )
    parser.add_argument("--ranks", type=int, default=0, help="MPI ranks; 0: without mpirun")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run every N-th case only")
    parser.add_argument("--jobs", type=int, default=2, help="cases that run at a time if each has a process of its own")
    parser.add_argument("names", nargs="*", metavar="CASE", help="run these cases only")
    args = parser.parse_args()
    if args.random or args.turns:
        args.cases = RANDOM if args.random else TURNS
        if not args.cases.is_dir():
            print(f"{args.cases} is not there: skipped")
            sys.exit(harness.SKIPPED)
    try:
        cases = reference_case.all_cases(args.cases, args.names)[:: 1 if harness.WIDELY else args.every]
    except KeyError as unknown:
        sys.exit(f"check_cases.py: {args.cases} has no case {unknown}")
    if not cases:
        sys.exit(f"check_cases.py: {args.cases} has no cases")
    passed = 0
    with tempfile.TemporaryDirectory(prefix="orrery-cases-") as folder, concurrent.futures.ThreadPoolExecutor(
        args.jobs
    ) as pool:
        outcomes = pool.map(lambda case: check(case, args.network, args.ranks, pathlib.Path(folder)), cases)
        for case, (holds, found) in zip(cases, outcomes):
            passed += holds
            print(f"{'ok  ' if holds else 'FAIL'} {case.kind:6} {case.name}: {found}", flush=True)
    print(f"{passed} passed, {len(cases) - passed} failed")
    sys.exit(0 if passed == len(cases) else 1)


if __name__ == "__main__":
    main()
