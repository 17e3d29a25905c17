"""Draws where the time of each NPU went."""
from . import style
from ..packages import load
from ..units import scale_of

np = load("numpy")

MOST_BARS = 1024  # more NPUs than this are averaged over neighbours


def draw_parts(axes, run):
    """Draws a bar for each NPU, stacked of the causes of its time up to the end of the run. The legend has the shares of all NPUs."""
    npus = run.npus
    bars = len(npus) if len(npus) <= MOST_BARS else MOST_BARS // 2
    unit, size = scale_of(max(run.simulated_time, 1), "ps")
    whole = max(len(npus) * float(run.simulated_time), 1.0)
    bottom = np.zeros(bars)
    for label, column in run.breakdown.items():
        values = column.to_numpy().astype(float)
        edges, height = style.binned(values, bars)
        share = values.sum() / whole
        # Few bars get a hairline between them. Many are drawn as one area, which looks the same for 600 and for 65,536 NPUs.
        hairline = {"linewidth": 0.6, "edgecolor": "white"} if bars <= 128 else {"linewidth": 0}
        axes.bar(
            edges[:-1] - 0.5,
            height / size,
            width=np.diff(edges),
            bottom=bottom,
            align="edge",
            color=style.CAUSES[label],
            label=f"{100 * share:5.1f} %  {label}" if share else None,
            rasterized=bars > 128,
            **hairline,
        )
        bottom += height / size
    axes.set_xlim(-0.5, len(npus) - 0.5)
    axes.set_ylim(0, max(bottom.max(initial=0) * 1.02, 1e-9))
    style.whole_numbers(axes.xaxis)
    axes.set_xlabel(
        "NPU" if bars == len(npus) else f"NPU (each column is the mean of about {round(len(npus) / bars)} neighbours)"
    )
    axes.set_ylabel(f"time ({unit})")
    axes.set_title("Where each NPU's time went")
    style.legend(axes, title="mean over all NPUs")
