"""Fits one number of a configuration so that the predicted step takes what was measured."""
import math

from orrery.calibrate.program import Unusable, range_of, seconds_of, step_seconds

LEAST, MOST = 0.01, 1.0  # of a number that is more than 0 and 1 at the most
MOST_BELOW = 0.99  # of a share that is below 1
CLOSE = 1e-4  # relative distance of the step from the measured one
MOST_RUNS = 40


def domain(key, allowed):
    """Returns the least and the most value that are tried for a key whose range is this text."""
    if "below 1" in allowed:
        return 0.0, MOST_BELOW
    if allowed.endswith(" to 1") or "1 or less" in allowed:
        return LEAST, MOST
    raise Unusable(
        f"--key: found '{key}', whose values are {allowed}; expected a share, such as system.compute.efficiency."
    )


def fit(seconds, measured, least, most):
    """Returns x from least to most for which seconds(x), which only falls or only rises with x, is the measured time; None if there is none."""
    ends = seconds(least), seconds(most)
    if not min(ends) * (1 - CLOSE) <= measured <= max(ends) * (1 + CLOSE):
        return None
    falls = ends[0] > ends[1]
    low, high = least, most
    for _ in range(MOST_RUNS):
        middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
        found = seconds(middle)
        if abs(found / measured - 1) < CLOSE:
            return middle
        low, high = (middle, high) if (found > measured) == falls else (low, middle)
    return middle


def calibrate(program, files, measured, key):
    """Prints the number that fits, and how sure it is."""
    if len(files) != 1:
        raise Unusable(f"orrery calibrate step: found {len(files)} files; expected one CONFIG.yaml.")
    config, target = files[0], seconds_of(measured, "--measured")
    least, most = domain(key, range_of(program, key))
    known = {}

    def seconds(x):
        if x not in known:
            known[x] = step_seconds(program, config, f"{key}={x:.9f}")
        return known[x]

    fitted = fit(seconds, target, least, most)
    if fitted is None:
        raise Unusable(
            f"{config}: found steps of {seconds(most):.4g} to {seconds(least):.4g} s with {key} from {most:g} to {least:g}; expected the "
            f"measured {target:.4g} s between them. Something else than this number decides: check the workload and the network."
        )
    # How the step answers to the number: near 1, it decides and the fit is sure; near 0, it says little.
    above, below = min(fitted * 1.01, most), min(fitted * 1.01, most) / 1.02
    answer = -math.log(seconds(above) / seconds(below)) / math.log(1.02) if below > 0 else 0.0
    print(f"{key}: {fitted:.4f}")
    print(f"  step: {seconds(fitted):.4f} s, measured {target:.4f} s, after {len(known)} runs")
    if abs(answer) > 1e-3:
        spread = 0.05 / abs(answer)
        print(
            f"  if the measured time is uncertain by 5 %, the number is so by {100 * spread:.0f} %: {max(fitted / (1 + spread), least):.3f} to "
            f"{min(fitted * (1 + spread), most):.3f}"
        )
    sure = (
        "sure"
        if abs(answer) > 0.7
        else "fairly sure"
        if abs(answer) > 0.3
        else "not sure: other things than this number take most of the step"
    )
    print(f"  1 % more of it makes the step {abs(answer):.2f} % {'shorter' if answer >= 0 else 'longer'}: {sure}")
