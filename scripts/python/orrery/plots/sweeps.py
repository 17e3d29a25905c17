"""Draws a metric of a sweep over one of the keys that it varies."""
import itertools

from . import style
from ..packages import load
from ..units import readable, scale_of, PRINTED

np = load("numpy")

NAMES = {"mfu": "MFU", "hfu": "HFU", "tokens_per_s": "tokens per second", "samples_per_s": "samples per second"}
MARKERS = ("o", "s", "^", "D", "v", "P")


def keys_of(table):
    """Returns the swept keys of a table that orrery.sweep made, with more than one value: they stand before the status."""
    first = list(table.columns[: table.columns.get_loc("status")])
    return [key for key in first if table[key].nunique() > 1] or first[:1]


def name_of(metric):
    """Returns the name of a metric as people write it."""
    return NAMES.get(metric, metric.replace("_", " "))


def words_of(key, value, unit):
    """Returns what a legend says of one value of a key: "tp 8", "bandwidth 450 GB/s"."""
    text = (
        value
        if isinstance(value, str)
        else str(value)
        if not unit or unit == "1" or isinstance(value, (bool, np.bool_))
        else readable(float(value), unit)
    )
    return f"{key.rpartition('.')[2]} {text}"


def draw(axes, table, metric, over):
    """Draws one line for each combination of the other keys. Returns whether there is more than one."""
    units = table.attrs.get("units", {})
    others = [key for key in keys_of(table) if key != over]
    done = table[table["status"].astype(str) == "done"]
    (x_name, x_size), (y_name, y_size) = (_scale(done[name], units.get(name, "")) for name in (over, metric))
    groups = (
        done.groupby(others if len(others) > 1 else others[0], sort=False, observed=True) if others else [((), done)]
    )
    for (values, rows), colour, marker in zip(groups, itertools.cycle(style.SERIES), itertools.cycle(MARKERS)):
        values = values if isinstance(values, tuple) else (values,)
        label = ", ".join(words_of(key, value, units.get(key, "")) for key, value in zip(others, values))
        numbers = rows[over].dtype.kind in "iuf"
        rows = rows.sort_values(over, kind="stable") if numbers else rows
        x = rows[over] / x_size if numbers else rows[over].astype(str)
        axes.plot(x, rows[metric] / y_size, color=colour, marker=marker, markersize=5, label=label or None)
    numbers = done[over].to_numpy()
    if numbers.dtype.kind in "iuf" and len(numbers) and numbers.min() > 0 and numbers.max() >= 8 * numbers.min():
        ticks = sorted(set(numbers / x_size))
        axes.set_xscale("log", base=2)
        if len(ticks) <= 12:
            axes.set_xticks(ticks)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
        axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.grid(True)
    axes.set_xlabel(over.rpartition(".")[2] + (f" ({x_name})" if x_name else ""))
    axes.set_ylabel(name_of(metric) + (f" ({y_name})" if y_name else ""))
    return len(done.groupby(others, observed=True)) > 1 if others else False


def _scale(values, unit):
    """Returns (name, size) of the unit of an axis."""
    if unit in PRINTED and values.dtype.kind in "iuf" and len(values):
        return scale_of(float(values.max()), unit)
    return ("" if unit in ("", "1") else unit), 1
