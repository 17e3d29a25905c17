"""What came of a case."""
import collections

# held: whether the case agrees; None if it could not be checked. text: figures, or the reason.
Outcome = collections.namedtuple("Outcome", "id held text")


def judged(case, found, expected, tolerance, what):
    """The outcome of a figure that may differ by a share."""
    error = found / expected - 1
    return Outcome(case["id"], abs(error) <= max(tolerance, 1e-12), f"{what} {found:.10g}, expected {expected:.10g} ({100 * error:+.2f} %)")
