"""Finds for which part of each span of time NPUs did what. Pictures and reports draw these shares: 61 % busy looks like 61 %."""
from .packages import load

np = load("numpy")

MOST_ROWS = 1_000_000  # of the timeline that are read to see what all NPUs do
MOST_BANDS = 16
MOST_OF_A_BAND = 64     # NPUs that are read for a band
# An NPU is in the first of these states that any of the kinds of nodes puts it into, as in /npus of the results.
STATES = [("compute", ["compute"]), ("CPU", ["cpu"]), ("exposed communication", ["collective", "send", "receive"]),
          ("exposed remote memory", ["mem-load", "mem-store"]), ("CPU alone", ["host"])]


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
    each = min(max(int(MOST_ROWS / max(len(run.timeline) / count, 1) / (len(edges) - 1)), 1), MOST_OF_A_BAND)
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
