"""Draws what the tensors in the local memory of NPUs take over time."""
import collections

from . import style, timeline
from ..packages import load
from ..tables import ranges
from ..units import scale_of

np = load("numpy")
Line = collections.namedtuple("Line", "times usage means npus")

BINS, ALIKE = (
    200,
    0.02,
)  # lines whose means over this many parts of the time differ by less than this share are drawn as one
MOST_STEPS = 20_000  # of a line that stay a drawing; longer lines become an image


def mean_usage(times, usage, edges):
    """Returns the mean usage over each bin of time, of a usage that is usage[i] from times[i] to times[i + 1] and 0 before and after."""
    total = np.concatenate([[0], np.cumsum(usage[:-1] * np.diff(times).astype(float))])
    return np.diff(np.interp(edges, times, total)) / np.diff(edges)


def draw_usage(axes, run, npus, time=None):
    """Draws a line for each NPU. NPUs whose lines nobody could tell apart share one."""
    begin, end = timeline.span_of(run, npus, time)
    size = style.time_axis(axes, begin, end)
    lines = []
    for npu in npus:
        table = run.local_memory.read(npus=int(npu), time=(begin, end), columns=["time", "until", "usage"], limit=None)
        if len(table):
            times = np.append(table["time"].to_numpy(), table["until"].iloc[-1]).clip(begin, end)
            usage = np.append(table["usage"].to_numpy(), table["usage"].iloc[-1])
            means = mean_usage(times, usage, np.linspace(begin, end, BINS + 1))
            alike = next((line for line in lines if np.abs(line.means - means).max() <= ALIKE * line.means.max()), None)
            if alike:
                alike.npus.append(npu)
            else:
                lines.append(Line(times, usage, means, [npu]))
    limit = run.room
    largest = max([limit or 0, *(int(line.usage.max()) for line in lines)])
    unit, bytes_each = scale_of(max(largest, 1), "byte")
    for row, line in enumerate(lines):
        axes.plot(
            line.times / size,
            line.usage / bytes_each,
            drawstyle="steps-post",
            color=style.SERIES[row % len(style.SERIES)],
            label=f"NPU{'s' if len(line.npus) > 1 else ''} {ranges(line.npus)}",
            rasterized=len(line.times) > MOST_STEPS,
        )
    if limit:
        axes.axhline(
            limit / bytes_each,
            color=style.BLACK,
            linestyle="--",
            linewidth=1,
            label=f"size of the memory: {limit / bytes_each:.4g} {unit}",
        )
    axes.set_ylim(0, max(1.05 * largest / bytes_each, 1e-9))
    axes.set_ylabel(f"tensors ({unit})")
    axes.grid(axis="y")
    axes.set_title("What the tensors in the local memory take")
    style.legend(axes)
