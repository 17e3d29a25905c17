"""Names and numbers of metrics as people read them."""
import math

from ...metric_table import BY_NAME
from ...units import readable


def title(metric):
    """Returns the name of a metric in words."""
    known = BY_NAME.get(metric)
    return known.title if known and known.title != metric else metric.replace("_", " ")


def unit_of(metric, units):
    """Returns the unit in which to write a metric: that of its column, "share" for shares of 1, and "1" where the title says the unit."""
    if units.startswith("1/"):
        return "1"
    known = BY_NAME.get(metric)
    return "share" if known and known.is_share and units in ("1", "") else units or "1"


def written(value, unit):
    """Returns a number with its unit as people write it; "–" for none."""
    if value is None or math.isnan(value):
        return "–"
    if unit == "share":
        return f"{100 * value:.1f} %"
    return readable(float(value), unit)


def compact(value, unit):
    """Returns what `written` does, but a number without a unit that is a million or more with a prefix: 123.5 M."""
    if unit != "1" or value is None or math.isnan(value) or abs(value) < 1e6:
        return written(value, unit)
    name, size = next((one for one in (("P", 1e15), ("T", 1e12), ("G", 1e9)) if abs(value) >= one[1]), ("M", 1e6))
    return f"{value / size:.4g} {name}"


def is_less_better(metric, objectives):
    """Says whether the smaller value of a metric is the better one: as the objectives say, else as is usual."""
    known = BY_NAME.get(metric)
    return dict(objectives).get(metric, "maximise" if known and known.more_is_better else "minimise") == "minimise"


def plain(value):
    """Returns a number for JSON: None for NaN and infinity, which JSON does not have."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
