"""What print and Jupyter show of a run: a few lines that say how long a step takes, where the time goes and which tables there are."""
import html
import textwrap
from math import isnan

from .units import readable

SHARES = [
    ("compute_share", "compute"),
    ("cpu_share", "CPU"),
    ("exposed_communication_share", "exposed communication"),
    ("exposed_memory_share", "exposed remote memory"),
    ("idle_share", "idle"),
]
TRAINING = [("tokens_per_second", "tokens per second"), ("samples_per_second", "samples per second")]
UTILISATION = [
    ("model_flops_utilisation", "MFU"),
    ("hardware_flops_utilisation", "HFU"),
    ("pipeline_bubble", "pipeline bubble"),
]


WIDTH = 100  # characters of a line


def share(value):
    """Returns a share of 1 as a text: share(0.2622) is "26.2 %"."""
    return f"{100 * value:.1f} %"


def figures(run):
    """Returns [(name, text)] of what the summary says of a run, most important first."""
    run = run.picoseconds
    found = dict(run.metrics["value"])
    lines = [("NPUs", f"{run.num_npus:,}"), ("status", run.status)]
    if "step_time" not in found:
        return lines + [("simulated time", readable(run.simulated_time, "ps"))]
    lines.append(("step time", readable(found["step_time"], "ps")))
    if "step_time_low" in found:
        lines.append(
            (
                "80 % interval",
                f"{readable(1e12 * found['step_time_low'], 'ps')} to {readable(1e12 * found['step_time_high'], 'ps')}",
            )
        )
    lines += [(name, share(found[key])) for key, name in SHARES if found.get(key)]
    lines += [
        (name, f"{found[key]:,.4g}" if found[key] < 1000 else f"{found[key]:,.0f}")
        for key, name in TRAINING
        if key in found
    ]
    lines += [(name, share(found[key])) for key, name in UTILISATION if key in found]
    peak = int(run.npus["peak_local_memory"].max())
    if peak:
        lines.append(("peak local memory", f"{readable(peak, 'byte')} (NPU {run.npus['peak_local_memory'].idxmax()})"))
    return lines


def dimension_lines(run):
    """Returns one text for each dimension of the topology."""
    lines = []
    for number, row in run.dimensions.iterrows():
        parts = [f"{row['shape']} of {row['size']}" if "shape" in row else f"{row['size']} NPUs"]
        parts += [str(row[key]) for key in ("bandwidth", "latency") if key in row]
        busy = "" if isnan(row["utilisation"]) else f", {share(row['utilisation'])} busy"
        lines.append(f"dimension {number}: {', '.join(parts)}; {readable(row['bytes'], 'byte')} sent{busy}")
    return lines


def as_text(run):
    """Returns the summary of a run as lines of text."""
    lines = figures(run)
    width = max(len(name) for name, _ in lines)
    text = [
        run.shown_name,
        *(f"  {name:<{width}}  {value}" for name, value in lines),
        *(f"  {line}" for line in dimension_lines(run)),
        *textwrap.wrap(
            "tables: " + ", ".join(f"{name} ({rows:,})" for name, rows in run.sizes.items()),
            width=WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        ),
    ]
    return "\n".join(text)


def as_html(run):
    """Returns the summary of a run as HTML, for Jupyter."""
    cell = '<td style="text-align: left">'
    rows = "".join(
        f"<tr>{cell}{html.escape(name)}</td>{cell}{html.escape(value)}</td></tr>" for name, value in figures(run)
    )
    network = "".join(f"<li>{html.escape(line)}</li>" for line in dimension_lines(run))
    tables = ", ".join(f"<code>{name}</code> ({count:,})" for name, count in run.sizes.items())
    return f"<p><b>{html.escape(run.shown_name)}</b></p><table>{rows}</table><ul>{network}</ul><p>Tables (rows): {tables}</p>"
