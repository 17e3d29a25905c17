"""What an NPU did at each moment: forward and backward passes, and for everything else the cause, as in /breakdown of the results.

Exposed time counts for the communication whose end comes next. A receive is a bubble until its sender has sent, and a collective waits for
stragglers until its last member has joined.
"""
import re

from .packages import load

np, pd = load("numpy"), load("pandas")

# Causes of exposed communication.
COMMUNICATION = [
    "tensor",
    "sequence",
    "context",
    "expert",
    "data",
    "pipeline",
    "bubble",
    "stragglers",
    "other",
]
# In the order in which a band stacks them. The passes are parts of compute, and so is "other compute" of an NPU that has passes.
STATES = [
    "forward",
    "backward",
    "other compute",
    "compute",
    "cpu",
    *COMMUNICATION,
    "memory",
    "CPU alone",
]
PASSES = ("forward", "backward")
FAMILIES = {"tp": "tensor", "cp": "context", "ep": "expert", "dp": "data", "edp": "data", "embedding": "data"}
COLUMNS = ["kind", "start", "finish", "name", "group", "group_name", "peer", "tag", "operation"]


def family(group, operation):
    """Returns the cause of exposed collectives of a group with this name, as docs/results.md has it."""
    found = FAMILIES.get(re.split("[_@]", group, maxsplit=1)[0], "other")
    return "sequence" if found == "tensor" and operation in ("all-gather", "reduce-scatter") else found


def passes_of(names):
    """Returns for each of the texts "forward", "backward" or "compute": the pass that a compute node with this name is part of."""
    return np.array(
        [next((one for one in PASSES if name == one or name.startswith(f"{one}.")), "compute") for name in names],
        dtype=object,
    )


class StateReader:
    """Reads what NPUs of one run did. Keeps the sends of NPUs, so that receives find theirs."""

    def __init__(self, run):
        self._run, self._timeline = run, run.timeline
        self._columns = [name for name in COLUMNS if name in self._timeline.columns]
        self._sends, self._arrivals = {}, None

    def intervals(self, npu, time=None):
        """Returns {state: (starts, finishes)} of an NPU, picoseconds; no two intervals overlap. time: rows that overlap with this span only."""
        table = self._timeline.read(npus=int(npu), columns=self._columns, limit=None)
        cause, since = self._causes(int(npu), table)
        kind = table["kind"].astype(object).to_numpy()
        start, finish = table["start"].to_numpy(np.int64), table["finish"].to_numpy(np.int64)
        if time is not None:
            inside = (start < time[1]) & (finish > time[0])
            kind, start, finish, cause, since = (one[inside] for one in (kind, start, finish, cause, since))
        busy = np.isin(kind, ["compute"])
        found = {}
        names = cause[busy]
        has_passes = bool(np.isin(names, PASSES).any())
        for state in (*PASSES, "compute"):
            chosen = names == state
            if chosen.any():
                found["other compute" if has_passes and state == "compute" else state] = (
                    start[busy][chosen],
                    finish[busy][chosen],
                )
        layers = [
            (np.isin(kind, ["cpu"]), "cpu"),
            (np.isin(kind, ["collective", "send", "receive"]), None),
            (np.isin(kind, ["mem-load", "mem-store"]), "memory"),
            (np.isin(kind, ["host"]), "CPU alone"),
        ]
        covered = merged(start[busy], finish[busy])
        for chosen, state in layers:
            pieces = first_to_end(start[chosen], finish[chosen], since[chosen]) if state is None else None
            if state is None:
                own = {}
                for begin, end, which, waiting in pieces:
                    causes = cause[chosen][which]
                    causes = np.where(
                        waiting, np.where(kind[chosen][which] == "collective", "stragglers", "bubble"), causes
                    )
                    for one in np.unique(causes.astype(str)):
                        own.setdefault(one, []).append((begin[causes == one], end[causes == one]))
                own = {one: tuple(np.concatenate(part) for part in zip(*lists)) for one, lists in own.items()}
            else:
                own = {state: merged(start[chosen], finish[chosen])}
            for one, (begin, end) in own.items():
                begin, end = without(begin, end, *covered)
                if len(begin):
                    earlier = found.get(one, (np.zeros(0, np.int64),) * 2)
                    found[one] = np.concatenate([earlier[0], begin]), np.concatenate([earlier[1], end])
            covered = merged(np.concatenate([covered[0], start[chosen]]), np.concatenate([covered[1], finish[chosen]]))
        return {state: found[state] for state in STATES if state in found}

    def _causes(self, npu, table):
        """Returns (state of each node as far as it alone says it, time from which its data are under way)."""
        kind = table["kind"].astype(object).to_numpy()
        names = table["name"].astype("category")
        cause = (
            passes_of([str(name) for name in names.cat.categories])[names.cat.codes]
            if len(table)
            else np.zeros(0, object)
        )
        since = table["start"].to_numpy(np.int64).copy()
        cause[np.isin(kind, ["send", "receive"])] = "pipeline"
        collective = kind == "collective"
        if collective.any():
            groups, operations = table["group_name"].astype(object).to_numpy(), (
                table["operation"].astype(object).to_numpy() if "operation" in table else kind
            )
            known = {
                (group, operation): family(str(group), str(operation))
                for group, operation in set(zip(groups[collective], operations[collective]))
            }
            cause[collective] = [known[key] for key in zip(groups[collective], operations[collective])]
            since[collective] = self._last_arrivals(table[collective], since[collective])
        if "peer" in table:
            receives = np.flatnonzero(kind == "receive")
            since[receives] = self._sent(npu, table.iloc[receives], since[receives])
        return cause, since

    def _last_arrivals(self, table, starts):
        """Returns when the last member of each collective had joined; its start where no record of it is left."""
        if self._arrivals is None:
            rows = self._run.table("collectives")
            keys = _key(rows["group"], rows["ordinal"]) if len(rows) else np.zeros(0, np.int64)
            order = np.argsort(keys, kind="stable")
            self._arrivals = keys[order], rows["last_arrival"].to_numpy(np.int64)[order] if len(rows) else keys
        keys, times = self._arrivals
        if not len(keys) or "group" not in table:
            return starts
        wanted = _key(table["group"], table.groupby("group", sort=False).cumcount())
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, np.maximum(times[at], starts), starts)

    def _sent(self, npu, table, starts):
        """Returns when each message of the receives was sent; the start of the receive if it was sent before, or nobody knows."""
        order = table.groupby(["peer", "tag"], sort=False).cumcount()
        times = []
        for peer, tag, place, start in zip(table["peer"], table["tag"], order, starts):
            sent = self._sends_of(int(peer)).get((npu, int(tag)), ())
            times.append(max(sent[place], start) if place < len(sent) else start)
        return np.array(times, dtype=np.int64)

    def _sends_of(self, npu):
        if npu not in self._sends:
            found = {}
            if 0 <= npu < self._timeline.num_npus:
                table = self._timeline.read(npus=npu, columns=["kind", "start", "peer", "tag"], limit=None)
                for start, peer, tag in table.loc[table["kind"] == "send", ["start", "peer", "tag"]].itertuples(
                    index=False
                ):
                    found.setdefault((int(peer), int(tag)), []).append(int(start))
            self._sends[npu] = found
        return self._sends[npu]


def _key(group, ordinal):
    """Returns one number for a group and an ordinal in it."""
    return group.to_numpy(np.int64) << 40 | ordinal.to_numpy(np.int64)


def merged(start, finish):
    """Returns (starts, finishes) of the union of intervals, ascending."""
    wide = finish > start
    order = np.argsort(start[wide], kind="stable")
    start, finish = start[wide][order], np.maximum.accumulate(finish[wide][order])
    if not len(start):
        return start, finish
    first = np.concatenate([[True], start[1:] > finish[:-1]])
    return start[first], finish[np.concatenate([first[1:], [True]])]


def without(start, finish, begin, end):
    """Returns the parts of disjoint intervals that are in none of the intervals begin to end, which are merged."""
    edges = np.concatenate([begin, end])
    cuts = np.unique(np.concatenate([start, finish, edges]))
    if len(cuts) < 2:
        return start[:0], finish[:0]
    middle = (cuts[:-1] + cuts[1:]) / 2
    keep = _in(middle, start, finish) & ~_in(middle, begin, end)
    return cuts[:-1][keep], cuts[1:][keep]


def _in(points, start, finish):
    """Says which points are in one of the disjoint intervals."""
    order = np.argsort(start, kind="stable")
    start, finish = start[order], finish[order]
    at = np.searchsorted(start, points, side="right") - 1
    return (at >= 0) & (points < finish[np.maximum(at, 0)]) if len(start) else np.zeros(len(points), bool)


def first_to_end(start, finish, since):
    """Yields (begins, ends, which interval, whether before `since` of it) of pieces, each of which counts for the interval that ends next."""
    wide = np.flatnonzero(finish > start)
    order = wide[np.argsort(finish[wide], kind="stable")]
    first, last, from_then = start[order], finish[order], since[order]
    cuts = np.unique(np.concatenate([first, last, np.clip(from_then, first, last)]))
    if len(cuts) < 2:
        return
    begin, end = cuts[:-1], cuts[1:]
    inside = _in((begin + end) / 2, *merged(first, last))
    begin, end = begin[inside], end[inside]
    at = np.searchsorted(last, end)  # the first that ends at the end of the piece or later
    open_ = np.arange(len(begin))
    while len(open_):
        open_ = open_[at[open_] < len(last)]
        late = first[at[open_]] > begin[open_]
        at[open_[late]] += 1
        open_ = open_[late]
    known = at < len(last)
    begin, end, at = begin[known], end[known], at[known]
    yield begin, end, order[at], end <= from_then[at]
