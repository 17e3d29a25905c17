"""Prints the figures of serving runs, side by side."""
import csv
import io
import json

from .facts import PS, QUANTILES, TIMES, Run
from ...units import readable

RATES = (
    "requests_per_s",
    "output_tokens_per_s",
    "output_tokens_per_s_per_npu",
    "slo_attainment",
    "goodput",
    "goodput_per_npu",
    "kv_use_mean",
    "prefix_hit_share",
    "preemptions",
    "transferred_bytes",
    "npus",
    "requests",
)


def of(paths, form):
    """Returns the figures of these files as a text. form: "text", "json" or "csv"."""
    runs = [Run(path) for path in paths]
    names = [f"{name}_{which}" for name in TIMES for which in QUANTILES] + [
        name for name in RATES if name in runs[0].metrics
    ]
    if form == "json":
        return (
            json.dumps({run.path: {name: plain(run.metrics.get(name)) for name in names} for run in runs}, indent=2)
            + "\n"
        )
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["figure", *(run.path for run in runs)])
        writer.writerows([name, *(run.metrics.get(name) for run in runs)] for name in names)
        return out.getvalue()
    rows = [["", *(run.name for run in runs)]]
    rows += [[name.replace("_", " "), *(written(name, run.metrics.get(name)) for run in runs)] for name in names]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        + "\n"
        for row in rows
    )


def plain(value):
    """Returns a number for JSON, which has no NaN."""
    return None if value is None or value != value else value


def written(name, value):
    """Returns a figure with its unit as people write it."""
    if value is None or value != value:
        return "-"
    if name.rpartition("_")[0] in TIMES:
        return readable(value * PS, "s")
    if name in ("slo_attainment", "kv_use_mean", "prefix_hit_share"):
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.5g}"
