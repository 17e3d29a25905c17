"""Fits several numbers of a stack together: maximum a posteriori, with normal deviations of their logarithms.

The prediction of a row is taken as linear in the logarithms of the numbers near those with which it was simulated. With priors of the
numbers, what the rows say is then a system of linear equations, and what is left uncertain follows from it.
"""
import math
import re

import numpy as np

STEP = 0.05  # change of the logarithm of a number by which its effect is measured
NOISE = 0.04  # deviation of the logarithm of a step: two versions of one software differ as much
UNKNOWN = 0.06  # of what no number of a stack explains of a report: clocks, stragglers, settings that are not given
NORMAL_80, NORMAL_95 = 1.2816, 1.96

# Numbers that can be fitted: their deviation before a fit (of the logarithm, between stacks of one hardware), the least and the most value.
NUMBERS = {
    "system.compute.efficiency": (0.072, 0.2, 1.0),
    "system.compute.attention-factor": (0.09, 0.2, 2.0),
    "system.compute.attention": (0.18, 0.05, 1.0),
    "system.compute.elementwise": (0.21, 0.1, 1.0),
    "system.compute.fp8": (0.03, 0.5, 1.0),
    "system.compute.nvfp4": (0.072, 0.4, 1.0),
    "system.compute.kernel": (0.3, 5e-7, 1e-4),
    "system.collectives.compute-share": (0.36, 0.01, 0.6),
    "workload.parallel.exposed-share": (0.36, 0.02, 0.98),
    "workload.parallel.between-steps": (0.6, 1e-6, 10.0),
    "workload.parallel.call-time-per-member": (0.42, 1e-7, 1e-3),
    "workload.parallel.layer-time": (0.42, 1e-6, 0.1),
}
DURATIONS = ("kernel", "between-steps", "layer-time", "call-time-per-member")
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}


def number_of(text):
    """A number, or the seconds of a duration; None of any other text."""
    found = re.fullmatch(r"\s*([\d.]+(?:e[+-]?\d+)?)\s*(s|ms|us|ns|ps)?\s*", str(text))
    return float(found[1]) * SECONDS[found[2] or "s"] if found else None


def text_of(key, value):
    """A value as --set takes it."""
    if key.endswith(DURATIONS):
        return f"{value * 1e9:.6g} ns"
    return f"{value:.6g}"


def limited(key, value):
    _, least, most = NUMBERS[key]
    return min(max(value, least), most)


def nudged(key, value):
    """(another value near this one, the change of the logarithm)."""
    _, _, most = NUMBERS[key]
    other = value * math.exp(STEP)
    if other > most:
        other = value * math.exp(-STEP)
    return other, math.log(other / value)


class Fit:
    """Numbers after a fit: `mean` and `covariance` of the logarithms of their changes."""

    def __init__(self, mean, covariance):
        self.mean, self.covariance = mean, covariance

    def shift(self, effects):
        """By how much the logarithm of a prediction with these effects changes."""
        return float(effects @ self.mean)

    def spread(self, effects):
        """Its standard deviation, from the numbers alone."""
        return math.sqrt(max(float(effects @ self.covariance @ effects), 0.0))


def fit(effects, misses, deviations, start=None, noise=NOISE):
    """The numbers with which rows of these effects ([rows, numbers]) and misses (logarithm of measured over predicted) fit best, if their
    logarithms deviate so from `start` (0) before the fit."""
    effects, misses, deviations = np.asarray(effects, float), np.asarray(misses, float), np.asarray(deviations, float)
    start = np.zeros(len(deviations)) if start is None else np.asarray(start, float)
    precision = np.diag(1 / deviations**2) + effects.T @ effects / noise**2
    covariance = np.linalg.inv(precision)
    return Fit(covariance @ (start / deviations**2 + effects.T @ misses / noise**2), covariance)


def leave_one_out(effects, misses, deviations, noise=NOISE):
    """Of each row, the miss that is left when the others alone are fitted, and the deviation that is expected of it."""
    effects, misses = np.asarray(effects, float), np.asarray(misses, float)
    left = []
    for i in range(len(misses)):
        others = np.arange(len(misses)) != i
        found = fit(effects[others], misses[others], deviations, noise=noise)
        left.append((misses[i] - found.shift(effects[i]), math.hypot(found.spread(effects[i]), noise)))
    return left
