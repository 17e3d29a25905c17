"""Fits one number of a configuration so that the predicted step takes what was measured."""
import math

from orrery.calibrate.program import Unusable, seconds_of, step_seconds

LEAST, MOST = 0.01, 1.0  # of the number
CLOSE = 1e-4  # relative distance of the step from the measured one
MOST_RUNS = 40


def fit(seconds, measured):
    """Returns x from LEAST to MOST for which seconds(x), which falls with x, is the measured time; None if there is none."""
    low, high = math.log(LEAST), math.log(MOST)
    if not seconds(math.exp(high)) * (1 - CLOSE) <= measured <= seconds(math.exp(low)) * (1 + CLOSE):
        return None
    for _ in range(MOST_RUNS):
        middle = (low + high) / 2
        found = seconds(math.exp(middle))
        if abs(found / measured - 1) < CLOSE:
            return math.exp(middle)
        low, high = (middle, high) if found > measured else (low, middle)
    return math.exp((low + high) / 2)


def calibrate(program, files, measured, key):
    """Prints the number that fits, and how sure it is."""
    if len(files) != 1:
        raise Unusable(f"orrery calibrate step: found {len(files)} files; expected one CONFIG.yaml.")
    config, target = files[0], seconds_of(measured, "--measured")
    known = {}

    def seconds(x):
        if x not in known:
            known[x] = step_seconds(program, config, f"{key}={x:.9f}")
        return known[x]

    fitted = fit(seconds, target)
    if fitted is None:
        raise Unusable(f"{config}: found steps of {seconds(MOST):.4g} to {seconds(LEAST):.4g} s with {key} from {MOST:g} to {LEAST:g}; expected the "
                       f"measured {target:.4g} s between them. Something else than this number decides: check the workload and the network.")
    # How the step answers to 1 % of the number: near 1, compute decides and the fit is sure; near 0, it says little.
    answer = -math.log(seconds(min(fitted * 1.01, MOST)) / seconds(min(fitted * 1.01, MOST) / 1.02)) / math.log(1.02)
    print(f"{key}: {fitted:.4f}")
    print(f"  step: {seconds(fitted):.4f} s, measured {target:.4f} s, after {len(known)} runs")
    if answer > 1e-3:
        spread = 0.05 / answer
        print(f"  if the measured time is uncertain by 5 %, the number is so by {100 * spread:.0f} %: {fitted / (1 + spread):.3f} to "
              f"{min(fitted * (1 + spread), MOST):.3f}")
    sure = "sure" if answer > 0.7 else "fairly sure" if answer > 0.3 else "not sure: other things than this number take most of the step"
    print(f"  1 % more of it makes the step {answer:.2f} % shorter: {sure}")
