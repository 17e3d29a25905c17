"""Draws what NPUs did when: all of them as shares of time, a few of them node by node."""
from . import style
from ..packages import load

np = load("numpy")

BINS = 1400            # of time in the picture of single NPUs, about one for each pixel
COARSE_BINS = 350      # of time in the picture of all NPUs, whose bands would look ragged with more
MOST_ROWS = 1_000_000  # of the timeline that are read for the picture of all NPUs
MOST_BANDS = 16
MOST_BOXES = 300     # of a lane: more nodes are drawn as shares of time
LANES = {"compute": ["compute"], "CPU": ["cpu"], "collectives": ["collective"], "sends": ["send"], "receives": ["receive"],
         "remote memory": ["mem-load", "mem-store"]}
COLOURS = {"compute": style.BLUE, "CPU": style.ORANGE, "collectives": style.VERMILION, "sends": style.GREEN, "receives": style.SKY,
           "remote memory": style.PURPLE}
# An NPU is in the first of these states that any of the kinds of nodes puts it into, as in /npus of the results.
STATES = [("compute", ["compute"]), ("CPU", ["cpu"]), ("exposed communication", ["collective", "send", "receive"]),
          ("exposed remote memory", ["mem-load", "mem-store"])]


def coverage(start, finish, edges):
    """Returns the share of each bin of time in which at least one of the intervals is open.

    start, finish: of the intervals, in any order. edges: of the bins, ascending. Takes O(n log n) for n intervals.
    """
    wide = finish > start
    order = np.argsort(start[wide], kind="stable")
    start, finish = start[wide][order].astype(np.int64), np.maximum.accumulate(finish[wide][order].astype(np.int64))
    if not len(start):
        return np.zeros(len(edges) - 1)
    first = np.concatenate([[True], start[1:] > finish[:-1]])
    begin, end = start[first], finish[np.concatenate([first[1:], [True]])]
    length = np.cumsum(end - begin)
    times = np.stack([begin, end], 1).ravel()
    covered = np.stack([length - (end - begin), length], 1).ravel()
    return np.clip(np.diff(np.interp(edges, times, covered)) / np.diff(edges), 0, 1)


def span_of(run, npus, time=None):
    """Returns (begin, end) in picoseconds of the part of the run to draw: `time`, or all that the timeline has of some NPUs."""
    if time is not None:
        return time
    recorded, total = (run.timeline.attributes[key] for key in ("recorded", "total"))
    if recorded == total:
        return 0, max(run.simulated_time, 1)
    finish = [run.timeline.read(npus=int(npu), columns=["finish"], limit=None)["finish"].max() for npu in npus if run.timeline.rows_of(npu)]
    return 0, max([1, *map(int, finish)])


def rows_by_npu(run, npus, time):
    """Yields (npu, table with kind, start and finish) for each NPU."""
    for npu in npus:
        yield npu, run.timeline.read(npus=int(npu), time=time, columns=["kind", "start", "finish"], limit=None)


def of_kinds(table, kinds):
    """Returns (start, finish) of the nodes of some kinds."""
    chosen = table["kind"].isin(kinds).to_numpy()
    return table["start"].to_numpy()[chosen], table["finish"].to_numpy()[chosen]


def bands_of(run):
    """Returns [(label, NPUs that are read)]: all NPUs, divided into at most 16 bands of neighbours."""
    count = run.num_npus
    edges = np.linspace(0, count, min(count, MOST_BANDS) + 1).astype(int)
    each = max(int(MOST_ROWS / max(len(run.timeline) / count, 1) / (len(edges) - 1)), 1)
    bands = []
    for first, last in zip(edges, edges[1:]):
        chosen = np.unique(np.linspace(first, last - 1, min(last - first, each)).round().astype(int))
        bands.append((f"{first}" if last - first == 1 else f"{first}–{last - 1}", chosen))
    return bands


def states_over_time(run, npus, edges):
    """Returns {state: share of each bin}, the mean over some NPUs."""
    shares = {name: np.zeros(len(edges) - 1) for name, _ in STATES}
    for _, table in rows_by_npu(run, npus, (edges[0], edges[-1])):
        kinds, before = [], np.zeros(len(edges) - 1)
        for name, more in STATES:
            kinds = kinds + more
            covered = coverage(*of_kinds(table, kinds), edges)
            shares[name] += covered - before
            before = covered
    return {name: value / len(npus) for name, value in shares.items()}


def draw_states(axes, run, time=None):
    """Draws a band for each NPU, or for some neighbours, in which the height of a colour is the share of time in that state."""
    bands, used = bands_of(run), set()
    begin, end = span_of(run, [npus[0] for _, npus in bands], time)
    size = style.time_axis(axes, begin, end)
    edges = np.linspace(begin, end, COARSE_BINS + 1)
    for row, (_, npus) in enumerate(bands):
        shares = states_over_time(run, npus, edges)
        bottom = np.full(COARSE_BINS, row + 0.93)
        for name, share in shares.items():
            if share.max(initial=0) > 0:
                used.add(name)
                top = bottom - 0.86 * share
                axes.fill_between(edges / size, np.append(bottom, bottom[-1]), np.append(top, top[-1]), step="post", color=style.STATES[name],
                                  linewidth=0, rasterized=True)
                bottom = top
    axes.set_ylim(len(bands), 0)
    axes.set_yticks(np.arange(len(bands)) + 0.5, [label for label, _ in bands])
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("NPU" if len(bands) == run.num_npus else "NPUs")
    sampled = sum(len(npus) for _, npus in bands)
    some = "" if sampled == run.num_npus else f" of {sampled:,} of the {run.num_npus:,} NPUs"
    axes.set_title(f"What the NPUs did when (height: share of the time{some})")
    style.legend(axes, handles=[style.patch(style.STATES[name], name) for name, _ in STATES if name in used]
                 + [style.patch("white", "idle", edgecolor=style.GREY, linewidth=0.6)])


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
        axes.annotate(f"NPU {npu}", (0, top + len(lanes) / 2), xycoords=("axes fraction", "data"), xytext=(-78, 0), textcoords="offset points",
                      ha="right", va="center", fontweight="bold", fontsize=9, annotation_clip=False)
        top += len(lanes) + 0.7
        axes.axhline(top - 0.35, color=style.LIGHT, linewidth=0.8)
    axes.set_ylim(max(top - 0.35, 1), -0.35)
    axes.set_yticks(ticks, labels, fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_title("Some NPUs, node by node" + (" (pale: for a part of the time)" if shaded else ""))


def _draw_lane(axes, start, finish, edges, size, top, colour):
    """Draws boxes or, where there are too many, shares of time; tells whether it drew shares."""
    if len(start) <= MOST_BOXES:
        axes.broken_barh(list(zip(start / size, (finish - start) / size)), (top + 0.08, 0.84), facecolors=colour, edgecolors="white", linewidth=0.3)
        return False
    share = coverage(start, finish, edges)
    rgba = np.zeros((1, len(share), 4))
    rgba[..., :3] = style.matplotlib.colors.to_rgb(colour)
    rgba[..., 3] = share
    axes.imshow(rgba, extent=(edges[0] / size, edges[-1] / size, top + 0.92, top + 0.08), aspect="auto", interpolation="nearest", zorder=2)
    return True
