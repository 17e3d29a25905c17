"""Draws queues of the packet network over time."""
from . import style
from ..packages import load
from ..units import scale_of

np = load("numpy")

COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.SKY)


def deepest(queues, most):
    """Returns the numbers of the links whose queues were the deepest, these first; of equal ones the lower number."""
    depths = queues.groupby("link", sort=True)["deepest_queue"].max().sort_values(ascending=False, kind="stable")
    return [int(link) for link in depths.index[:most]]


def over_time(rows, interval, column):
    """Returns the values of one link in all intervals up to its last one; 0 where the table has no row."""
    bins = (rows["start"].to_numpy() // interval).astype(int)
    values = np.zeros(int(bins.max()) + 2)
    values[bins] = rows[column].to_numpy()
    return values


def draw_link(axes, rows, name, interval, end, colour):
    """Draws the queue of one link: the mean as a line, the most as an area, and below them when pauses stopped the link."""
    mean, most = over_time(rows, interval, "mean_queue"), over_time(rows, interval, "deepest_queue")
    stopped, marks = over_time(rows, interval, "stopped") / interval, over_time(rows, interval, "marks").sum()
    unit, size = scale_of(max(most.max(), 1), "byte")
    time_unit, time_size = scale_of(max(end, 1), "ps")
    edges = np.arange(len(mean)) * interval / time_size
    axes.fill_between(edges, most / size, step="post", color=colour, alpha=0.25, linewidth=0)
    axes.step(edges, mean / size, where="post", color=colour, linewidth=1.2)
    if stopped.any():
        axes.fill_between(edges, -0.08 * most.max() / size * (stopped > 0), step="post", color=style.GREY, linewidth=0)
    axes.set_xlim(0, end / time_size)
    axes.set_ylabel(unit)
    axes.set_xlabel(f"time ({time_unit})")
    told = [f"mean (line) and most (area), {most.max() / size:.3g} {unit} at its deepest"]
    told += [f"{int(marks):,} marks"] if marks else []
    told += (
        [f"stopped for {100 * stopped.sum() * interval / max(end, 1):.3g} % of the time (grey)"]
        if stopped.any()
        else []
    )
    axes.set_title(f"{name}: {', '.join(told)}", fontweight="normal")
