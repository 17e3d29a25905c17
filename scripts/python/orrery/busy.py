"""Finds for which part of each span of time NPUs did what. Pictures and reports draw these shares: 61 % busy looks like 61 %."""
from .packages import load
from .places import Places
from .states import STATES, StateReader, merged

np = load("numpy")

MOST_ROWS = 500_000  # of the timeline that are read to see what all NPUs do
MOST_BANDS = 16
MOST_OF_A_BAND = 16  # NPUs that are read for a band


def coverage(start, finish, edges):
    """Returns the share of each bin of time in which at least one of the intervals is open.

    start, finish: of the intervals, in any order. edges: of the bins, ascending. Takes O(n log n) for n intervals.
    """
    begin, end = merged(start.astype(np.int64), finish.astype(np.int64))
    if not len(begin):
        return np.zeros(len(edges) - 1)
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
    finish = [
        run.timeline.read(npus=int(npu), columns=["finish"], limit=None)["finish"].max()
        for npu in npus
        if run.timeline.rows_of(npu)
    ]
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
    """Returns [(label, NPUs that are read)]: all NPUs, divided into at most 16 bands of neighbours, or of NPUs of one stage of the pipeline."""
    count, places = run.num_npus, Places(run.settings, run.num_npus)
    if 1 < places.stages <= MOST_BANDS:
        each, sets = MOST_BANDS // places.stages, [[] for _ in range(places.stages)]
        for npu in range(count):
            sets[places.stage(npu)].append(npu)
        parts = [
            (f"stage {stage}", np.array(part))
            for stage, npus in enumerate(sets)
            for part in np.array_split(npus, min(each, len(npus)))
        ]
    else:
        parts = [("", part) for part in np.array_split(np.arange(count), min(count, MOST_BANDS))]
    most = min(max(int(MOST_ROWS / max(len(run.timeline) / count, 1) / len(parts)), 1), MOST_OF_A_BAND)
    bands = []
    for name, npus in parts:
        chosen = npus[np.unique(np.linspace(0, len(npus) - 1, min(len(npus), most)).round().astype(int))]
        neighbours = npus[-1] - npus[0] == len(npus) - 1
        label = (
            f"{npus[0]}"
            if len(npus) == 1
            else f"{npus[0]}–{npus[-1]}"
            if neighbours
            else f"{npus[0]}, {npus[1]}, … {npus[-1]}"
        )
        bands.append((f"{name}: {label}" if name else label, chosen))
    return bands


def states_over_time(run, npus, edges, reader=None):
    """Returns {state: share of each bin}, the mean over some NPUs. The states are those of states.STATES.

    reader: a StateReader of the run, which remembers what it has read; give it if there are several calls.
    """
    reader = reader or StateReader(run)
    shares = {name: np.zeros(len(edges) - 1) for name in STATES}
    for npu in npus:
        for name, (start, finish) in reader.intervals(npu, (edges[0], edges[-1])).items():
            shares[name] += coverage(start, finish, edges)
    return {name: value / len(npus) for name, value in shares.items()}
