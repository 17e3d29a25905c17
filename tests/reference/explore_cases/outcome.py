"""What came of a case."""
import collections
import re

# held: whether the case agrees; None if it could not be checked. text: figures, or the reason.
Outcome = collections.namedtuple("Outcome", "id held text")


def has(case, part, *keys):
    """Says whether a part of a case, such as "config", has all these keys."""
    given = case.get(part)
    return isinstance(given, dict) and all(key in given for key in keys)


def rules_of(case):
    """The rules that a case expects to hold, as one text."""
    return "; ".join(case["expected"].get("rules", [])) if isinstance(case.get("expected"), dict) else ""


def unmade(case, error):
    """The outcome of a case that could not be made. A key that it lacks is named."""
    text = (
        f"the case lacks {error}"
        if isinstance(error, KeyError)
        else f"the case could not be made: {re.sub(r'/tmp/[^ ]*/', '', repr(error))}"
    )
    return Outcome(case["id"], None, text)


def judged(case, found, expected, tolerance, what):
    """The outcome of a figure that may differ by a share."""
    error = found / expected - 1
    return Outcome(
        case["id"],
        abs(error) <= max(tolerance, 1e-12),
        f"{what} {found:.10g}, expected {expected:.10g} ({100 * error:+.2f} %)",
    )
