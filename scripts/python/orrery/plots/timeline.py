"""Draws what NPUs did when: all of them as shares of time, a few of them node by node."""
from . import style
from ..busy import STATES, StateReader, bands_of, coverage, of_kinds, rows_by_npu, span_of, states_over_time
from ..packages import load

np = load("numpy")

BINS = 1400  # of time in the picture of single NPUs, about one for each pixel
COARSE_BINS = 350  # of time in the picture of all NPUs, whose bands would look ragged with more
MOST_BOXES = 300  # of a lane: more nodes are drawn as shares of time
LANES = {
    "compute": ["compute"],
    "CPU": ["cpu", "host"],
    "collectives": ["collective"],
    "sends": ["send"],
    "receives": ["receive"],
    "remote memory": ["mem-load", "mem-store"],
}
COLOURS = {
    "compute": style.BLUE,
    "CPU": style.ORANGE,
    "collectives": style.VERMILION,
    "sends": style.GREEN,
    "receives": style.SKY,
    "remote memory": style.PURPLE,
}


def draw_states(axes, run, time=None):
    """Draws a band for each NPU, or for some neighbours, in which the height of a colour is the share of time in that state."""
    bands, used, reader = bands_of(run), set(), StateReader(run)
    begin, end = span_of(run, [npus[0] for _, npus in bands], time)
    size = style.time_axis(axes, begin, end)
    edges = np.linspace(begin, end, COARSE_BINS + 1)
    for row, (_, npus) in enumerate(bands):
        shares = states_over_time(run, npus, edges, reader)
        bottom = np.full(COARSE_BINS, row + 0.93)
        for name, share in shares.items():
            if share.max(initial=0) > 0:
                used.add(name)
                top = bottom - 0.86 * share
                axes.fill_between(
                    edges / size,
                    np.append(bottom, bottom[-1]),
                    np.append(top, top[-1]),
                    step="post",
                    color=style.CAUSES[name],
                    linewidth=0,
                    rasterized=True,
                )
                bottom = top
    axes.set_ylim(len(bands), 0)
    axes.set_yticks(np.arange(len(bands)) + 0.5, [label for label, _ in bands])
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("NPU" if len(bands) == run.num_npus else "NPUs")
    sampled = sum(len(npus) for _, npus in bands)
    some = "" if sampled == run.num_npus else f" of {sampled:,} of the {run.num_npus:,} NPUs"
    axes.set_title(f"What the NPUs did when (height: share of the time{some})")
    style.legend(
        axes,
        handles=[style.patch(style.CAUSES[name], name) for name in STATES if name in used]
        + [style.patch("white", "idle", edgecolor=style.GREY, linewidth=0.6)],
    )


def draw_nodes(axes, run, npus, time=None):
    """Draws the nodes of a few NPUs, a lane for each kind. Where nodes are too many to be told apart, a paler colour means fewer of them."""
    begin, end = span_of(run, npus, time)
    size = style.time_axis(axes, begin, end)
    edges = np.linspace(begin, end, BINS + 1)
    tables = dict(rows_by_npu(run, npus, (begin, end)))
    lanes = [lane for lane, kinds in LANES.items() if any(table["kind"].isin(kinds).any() for table in tables.values())]
    ticks, labels, top, shaded = [], [], 0.0, False
    for npu, table in tables.items():
        for row, lane in enumerate(lanes):
            start, finish = of_kinds(table, LANES[lane])
            shaded |= _draw_lane(axes, start, finish, edges, size, top + row, COLOURS[lane])
            ticks.append(top + row + 0.5)
            labels.append(lane)
        axes.annotate(
            f"NPU {npu}",
            (0, top + len(lanes) / 2),
            xycoords=("axes fraction", "data"),
            xytext=(-78, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontweight="bold",
            fontsize=9,
            annotation_clip=False,
        )
        top += len(lanes) + 0.7
        axes.axhline(top - 0.35, color=style.LIGHT, linewidth=0.8)
    axes.set_ylim(max(top - 0.35, 1), -0.35)
    axes.set_yticks(ticks, labels, fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_title("Some NPUs, node by node" + (" (pale: for a part of the time)" if shaded else ""))


def _draw_lane(axes, start, finish, edges, size, top, colour):
    """Draws boxes or, where there are too many, shares of time; tells whether it drew shares."""
    if len(start) <= MOST_BOXES:
        axes.broken_barh(
            list(zip(start / size, (finish - start) / size)),
            (top + 0.08, 0.84),
            facecolors=colour,
            edgecolors="white",
            linewidth=0.3,
        )
        return False
    share = coverage(start, finish, edges)
    rgba = np.zeros((1, len(share), 4))
    rgba[..., :3] = style.matplotlib.colors.to_rgb(colour)
    rgba[..., 3] = share
    axes.imshow(
        rgba,
        extent=(edges[0] / size, edges[-1] / size, top + 0.92, top + 0.08),
        aspect="auto",
        interpolation="nearest",
        zorder=2,
    )
    return True
