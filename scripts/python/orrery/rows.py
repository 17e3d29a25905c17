"""Tables that may be too large for memory: they are read for a range of NPUs or of time, or piece by piece."""
from . import tables
from .errors import ResultsError
from .packages import load
from .units import picoseconds

np, pd = load("numpy"), load("pandas")

BLOCK = 1_000_000  # rows that are looked at together
LIMIT = 10_000_000  # rows that one table may have unless the caller asks for more


class NpuRows:
    """A table whose rows belong to one NPU after the other, and of one NPU are ordered by time.

    Subclasses say in `begin` and `end` which columns bound the time of a row, and make columns in `_column`.
    """

    begin, end = "", ""

    def __init__(self, source, group, columns):
        """columns: {name: (units, description)} of all columns, in their order."""
        self._source, self._group, self._columns = source, group, columns
        self._offsets = source.read(f"{group}/offsets").astype(np.int64)

    def __len__(self):
        return int(self._offsets[-1])

    @property
    def columns(self):
        """The names of the columns."""
        return list(self._columns)

    @property
    def units(self):
        """{column: unit}."""
        return {name: units for name, (units, _) in self._columns.items()}

    @property
    def num_npus(self):
        return len(self._offsets) - 1

    @property
    def attributes(self):
        """{"recorded": rows of the file, "total": rows that it would have if all iterations were recorded}, where the file says so."""
        found = {key: self._source.attribute(self._group, key) for key in ("recorded", "total")}
        return {key: value for key, value in found.items() if value is not None}

    def rows_of(self, npu):
        """Returns how many rows an NPU has."""
        return int(self._offsets[npu + 1] - self._offsets[npu])

    def read(self, npus=None, time=None, columns=None, limit=LIMIT):
        """Returns rows as one pandas table.

        npus: an NPU, a list of NPUs or a range, such as range(8); by default all.
        time: (begin, end), rows that overlap with this span of simulated time; picoseconds, or texts such as "1.5 ms".
        columns: the names of the columns to read; by default all. Fewer columns take less time and memory.
        limit: the most rows that may be returned; None: any number. A row of all columns takes about 80 bytes.
        Raises ResultsError if there are more rows than `limit`, or no such NPU; ValueError for an unknown column.
        """
        pieces, count = [], 0
        if time is None:  # then it is known beforehand
            self._check_limit(sum(last - first for first, last in self._blocks(npus, BLOCK)), limit)
        for piece in self.chunks(npus=npus, time=time, columns=columns):
            count += len(piece)
            self._check_limit(count, limit)
            pieces.append(piece)
        if len(pieces) == 1:
            return pieces[0]
        result = pd.concat(pieces, ignore_index=True) if pieces else self._table(0, 0, None, self._chosen(columns))
        return self._described(result)

    @staticmethod
    def _limit(time):
        """Returns a limit of a span of time in picoseconds."""
        return picoseconds(time)

    def _check_limit(self, count, limit):
        if limit is not None and count > limit:
            raise ResultsError(
                f"{self._source.path}: {self._group} has more than {limit:,} rows there ({len(self):,} in all). Give npus= or "
                "time= to read a part, use chunks() to read piece by piece, or limit=None to read all rows."
            )

    def chunks(self, rows=BLOCK, npus=None, time=None, columns=None):
        """Yields the rows as pandas tables of at most `rows` rows, in the order of the file. The parameters are those of `read`.

        Memory does not depend on how many rows there are in all. Pieces without a row in the span of time are left out.
        """
        chosen = self._chosen(columns)
        span = None if time is None else tuple(self._limit(limit) for limit in time)
        for first, last in self._blocks(npus, rows):
            mask = None
            if span is not None:
                mask = (self._column(self.begin, first, last) < span[1]) & (
                    self._column(self.end, first, last) > span[0]
                )
                if not mask.any():
                    continue
            yield self._described(self._table(first, last, mask, chosen))

    def head(self, rows=5):
        """Returns the first rows as a pandas table."""
        return self._described(self._table(0, min(rows, len(self)), None, self.columns))

    def _chosen(self, columns):
        chosen = self.columns if columns is None else [columns] if isinstance(columns, str) else list(columns)
        unknown = [name for name in chosen if name not in self._columns]
        if unknown:
            raise ValueError(f"found the column {unknown[0]!r}; {self._group} has {', '.join(self.columns)}")
        return chosen

    def _table(self, first, last, mask, columns):
        values = {name: self._column(name, first, last) for name in columns}
        if mask is not None:
            values = {name: value[mask] for name, value in values.items()}
        return pd.DataFrame(values)

    def _described(self, table):
        return tables.described(
            table,
            self._source.attribute(self._group, "description") or "",
            self.units,
            {name: description for name, (_, description) in self._columns.items()},
        )

    def _column(self, name, first, last):
        """The rows first to last - 1 of a column."""
        return self._source.read(f"{self._group}/{name}", first, last)

    def _npu(self, first, last):
        """The NPU of each of the rows first to last - 1."""
        return np.searchsorted(self._offsets, np.arange(first, last), side="right").astype(np.uint32) - np.uint32(1)

    def _blocks(self, npus, rows):
        """Yields (first, last) of blocks of rows, as few as possible."""
        offsets = self._offsets
        if npus is None:
            spans = [(0, len(self))]
        else:
            wanted = np.unique(
                np.atleast_1d(np.asarray([npus] if isinstance(npus, (int, np.integer)) else list(npus), dtype=np.int64))
            )
            if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < self.num_npus:
                wrong = wanted[0] if wanted[0] < 0 else wanted[-1]
                raise ResultsError(
                    f"{self._source.path}: found NPU {wrong}; the run has NPUs 0 to {self.num_npus - 1}."
                )
            starts = np.flatnonzero(np.diff(wanted, prepend=-2) != 1)
            spans = [
                (int(offsets[wanted[a]]), int(offsets[wanted[b - 1] + 1]))
                for a, b in zip(starts, [*starts[1:], len(wanted)])
            ]
        for first, last in spans:
            for begin in range(first, last, rows):
                yield begin, min(begin + rows, last)

    def __repr__(self):
        return (
            f"<{self._group} of {self._source.path}: {len(self):,} rows of {self.num_npus:,} NPUs, columns {', '.join(self.columns)}; "
            "read(npus=..., time=...) returns a pandas table>"
        )

    def _repr_html_(self):
        return (
            f"<p>{len(self):,} rows of {self.num_npus:,} NPUs. <code>read(npus=..., time=...)</code> returns some of them as a pandas "
            f"table. The first ones:</p>{self.head()._repr_html_()}"
        )


# Chakra's numbers of collectives, which /timeline/operation has, and Orrery's own for experts.
OPERATIONS = {
    0: "all-reduce",
    1: "reduce",
    2: "all-gather",
    3: "gather",
    4: "scatter",
    5: "broadcast",
    6: "all-to-all",
    7: "reduce-scatter",
    9: "barrier",
    32: "expert-dispatch",
    33: "expert-combine",
}


def operations_of(words):
    """Returns the texts of /timeline/operation. Files of version 0.1.0 list their texts in another order than that of their numbers."""
    if len(words) > max(OPERATIONS):
        return words
    return [OPERATIONS.get(number, f"number {number}") for number in range(max(OPERATIONS) + 1)]


class Timeline(NpuRows):
    """One row per node of an execution trace that ran; see docs/results.md, /timeline."""

    begin, end = "start", "finish"

    def __init__(self, source, group_names):
        label = {name: source.label(f"timeline/{name}") for name in source.columns("timeline")}
        own = {
            name: (label[name].get("units", ""), label[name].get("description", ""))
            for name in ("npu", "node", "start", "finish", "kind", "name", "group", "bytes", "peer", "tag", "operation")
            if name in label
        }
        own["kind"] = ("1", "what the node does")
        if "operation" in own:  # files of older versions have none
            own["operation"] = ("1", "what a collective, or an access of a group, does")
        own["name"] = ("1", "name of the node in the execution trace")
        columns = {}
        for name, described in own.items():
            columns[name] = described
            if name == "finish":
                columns["duration"] = ("ps", "finish - start")
            if name == "group":
                columns["group_name"] = ("1", "name of the process group, of a collective or an access of a group")
        super().__init__(source, "timeline", columns)
        self._words = {
            "kind": tables.Vocabulary(source.values("timeline/kind")),
            "group_name": tables.Vocabulary(group_names),
        }
        if "operation" in own:
            self._words["operation"] = tables.Vocabulary(operations_of(source.values("timeline/operation")))

    def _column(self, name, first, last):
        if name == "duration":
            return super()._column("finish", first, last) - super()._column("start", first, last)
        if name == "name" and name not in self._words:
            self._words[name] = tables.Vocabulary(self._source.read("timeline/names"))
        codes = super()._column("group" if name == "group_name" else name, first, last)
        return self._words[name].of(codes) if name in self._words else codes


class LocalMemory(NpuRows):
    """One row per span of time in which the tensors in the local memory of an NPU take the same room; see docs/results.md."""

    begin, end = "time", "until"

    def __init__(self, source):
        super().__init__(
            source,
            "local_memory",
            {
                "npu": ("1", "number of the NPU"),
                "time": ("ps", "from which on the usage is this"),
                "until": ("ps", "the next change; in the last row of an NPU the same as time"),
                "usage": ("byte", source.label("local_memory/usage").get("description", "")),
            },
        )

    def _column(self, name, first, last):
        if name == "npu":
            return self._npu(first, last)
        if name == "until":
            own = super()._column("time", first, min(last + 1, len(self)))
            until = np.append(own[1:], own[-1:])[: last - first]
            ends = self._offsets[1:]  # the last row of an NPU, if it has any
            ends = ends[(ends > first) & (ends <= last) & (ends > self._offsets[:-1])] - 1 - first
            until[ends] = own[ends]
            return until
        return super()._column(name, first, last)
