"""LIBRA (ISPASS 2024): the best division of a bandwidth among the dimensions of a network, its time and the prices of networks."""
import pathlib
import sys
import tempfile

import harness
from explore_cases.outcome import Outcome, has, unmade

sys.path.insert(0, str(harness.SOURCE / "scripts/studies"))
import libra as study  # noqa: E402

ABOVE = 0.005  # by how much the best time that is found may be above the optimum
PRICES = 1e-3


def problem_of(config):
    workload = pathlib.PurePath(config["workload"]).stem
    dimensions = [(shape, int(size)) for shape, size in (part.split() for part in config["network"].split(", "))]
    return (
        study.Problem(
            workload, dimensions, config["communicator_forward_inputgrad_weightgrad"], config["total_bandwidth"]
        ),
        dimensions,
    )


def case_of(case, quick):
    problem, dimensions = problem_of(case["config"])
    expected, equal = case["expected"], [problem.total / len(dimensions)] * len(dimensions)
    with tempfile.TemporaryDirectory(prefix="orrery-explore-") as name:
        folder = pathlib.Path(name)
        prices = [
            study.price(harness.BINARY, folder, dimensions, bandwidths) / expected[key] - 1
            for bandwidths, key in ((equal, "network_cost_equal"), (expected["optimal_bw"], "network_cost_at_optimum"))
        ]
        times = [
            problem.seconds(harness.BINARY, folder, bandwidths) * 1e9 / expected[key] - 1
            for bandwidths, key in ((equal, "equal_bw_time_ns"), (expected["optimal_bw"], "time_ns"))
        ]
        best, seconds, count = problem.best(harness.BINARY, folder, rounds=2 if quick else 6)
    above = seconds * 1e9 / expected["time_ns"] - 1
    held = max(map(abs, prices)) < PRICES and max(map(abs, times)) < ABOVE and abs(above) < ABOVE * (4 if quick else 1)
    return Outcome(
        case["id"],
        held,
        f"the best of {count} divisions takes {100 * above:+.3f} % ({', '.join(f'{gbps:.1f}' for gbps in best)} GB/s; the optimum has "
        f"{', '.join(map(str, expected['optimal_bw']))}); times of equal bandwidths and of the optimum differ by {100 * times[0]:+.3f} and "
        f"{100 * times[1]:+.3f} %, prices by {100 * prices[0]:+.4f} and {100 * prices[1]:+.4f} %",
    )


def is_own(case):
    return has(case, "expected", "optimal_bw") or has(case, "config", "communicator_forward_inputgrad_weightgrad")


def check(cases, quick):
    for case in sorted(cases, key=lambda case: len(case["config"].get("network", "")))[:1] if quick else cases:
        try:
            yield case_of(case, quick)
        except (ValueError, KeyError, TypeError) as error:
            yield unmade(case, error)
