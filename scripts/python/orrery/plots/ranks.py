"""Draws how a run of the simulator itself went: busy and blocked ranks, and the messages that they sent."""
from . import style
from ..packages import load
from ..units import scale_of

np = load("numpy")


def draw_times(axes, kernel):
    """Draws the busy and the blocked wall-clock time of each rank."""
    busy, blocked = kernel["busy_time"].to_numpy(), kernel["blocked_time"].to_numpy()
    unit, size = scale_of(max((busy + blocked).max(initial=0), 1e-6), "s")
    whole = max((busy + blocked).sum(), 1e-12)
    _stacked(
        axes,
        [
            (busy / size, f"{100 * busy.sum() / whole:.1f} %  busy: it handled events", style.BLUE),
            (
                blocked / size,
                f"{100 * blocked.sum() / whole:.1f} %  blocked: it waited for other ranks",
                style.VERMILION,
            ),
        ],
    )
    axes.set_ylabel(f"wall-clock time ({unit})")
    axes.set_title("Busy and blocked time of each rank")
    style.legend(axes, title="mean over all ranks")


def draw_messages(axes, kernel):
    """Draws the messages that each rank sent, per hundred events that it handled."""
    events = np.maximum(kernel["events"].to_numpy(), 1) / 100
    data, null = kernel["data_messages"].to_numpy(), kernel["null_messages"].to_numpy()
    _stacked(
        axes,
        [
            (data / events, f"{data.sum():,}  data messages", style.GREEN),
            (null / events, f"{null.sum():,}  null messages", style.SKY),
        ],
    )
    axes.set_ylabel("messages per\nhundred events")
    axes.set_xlabel("MPI rank")
    axes.set_title("Messages that each rank sent")
    style.legend(axes, title="sent by all ranks")


def _stacked(axes, parts):
    """Bars, one for each rank; `parts` are values, label and colour, from the bottom up."""
    ranks = len(parts[0][0])
    bottom = np.zeros(ranks)
    for values, label, colour in parts:
        axes.bar(
            np.arange(ranks),
            values,
            width=0.8 if ranks <= 128 else 1.0,
            bottom=bottom,
            color=colour,
            label=label,
            linewidth=0.6 if ranks <= 128 else 0,
            edgecolor="white" if ranks <= 128 else colour,
        )
        bottom += values
    axes.set_xlim(-0.5, ranks - 0.5)
    axes.set_ylim(0, bottom.max(initial=0) * 1.02 or 1)
    style.whole_numbers(axes.xaxis)
