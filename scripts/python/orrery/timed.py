"""Results whose times are seconds or pandas Timedeltas. The file has whole picoseconds, and so has `Results.picoseconds`."""
import functools

from . import units
from .packages import load
from .results import TABLES, Results
from .rows import LocalMemory, NpuRows, Timeline

np, pd = load("numpy"), load("pandas")


class TimedResults(Results):
    """The results of one run with all times in one unit: ps, ns, us, ms or s, or "timedelta" for pandas Timedeltas.

    A Timedelta is a whole number of nanoseconds; other units keep the picoseconds. attrs["units"] of each table names the unit.
    """

    def __init__(self, path, times="s"):
        """Opens the file. Raises ResultsError if it cannot be read, and ValueError for another unit."""
        if times not in units.TIMES and times != units.TIMEDELTA:
            raise ValueError(
                f"found the unit {times!r} of times; expected one of {', '.join(units.TIMES)} or {units.TIMEDELTA}"
            )
        super().__init__(path)
        self.times = times

    @functools.cached_property
    def picoseconds(self):
        return Results.of_source(self._source)

    @property
    def simulated_time(self):
        """The latest finish time of an NPU, in the unit `times`."""
        return units.time_in(self.picoseconds.simulated_time, self.times)

    @functools.cached_property
    def metrics(self):
        """One row per figure of a step, with the columns value, units and description; times are in the unit `times`."""
        table = self.picoseconds.metrics.copy()
        for name in table.index[table["units"] == "ps"]:
            table.at[name, "value"] = units.time_in(table.at[name, "value"], self.times)
            table.at[name, "units"] = self.times
        return table

    def table(self, group):
        return units.with_times(super().table(group), self.times)


def _timed(name):
    """Returns the property of a table: that of the picoseconds with its times converted, once."""

    @functools.wraps(getattr(Results, name).func)
    def table(self):
        return units.with_times(getattr(self.picoseconds, name), self.times)

    return functools.cached_property(table)


def _timed_rows(kind):
    """Returns a class like `kind`, whose rows are read in parts, with times converted as they are read."""

    class TimedRows(kind):
        __doc__ = kind.__doc__

        def __init__(self, times, *arguments):
            self.times = times
            super().__init__(*arguments)

        @property
        def units(self):
            return {name: self.times if unit == "ps" else unit for name, unit in super().units.items()}

        def _limit(self, time):
            return units.picoseconds(time, self.times)

        def _table(self, first, last, mask, columns):
            table = super()._table(first, last, mask, columns)
            for name in columns:
                if super().units[name] == "ps":
                    table[name] = units.column_in(table[name], "ps", self.times)
            return table

    TimedRows.__name__ = TimedRows.__qualname__ = kind.__name__
    return TimedRows


_rows = {"timeline": _timed_rows(Timeline), "local_memory": _timed_rows(LocalMemory)}


def _timed_property(name):
    @functools.wraps(getattr(Results, name).func)
    def rows(self):
        plain = getattr(self.picoseconds, name)
        if not isinstance(plain, NpuRows):
            return None
        return _rows[name](self.times, *([self._source, self._group_names] if name == "timeline" else [self._source]))

    return functools.cached_property(rows)


for _name in (*TABLES, "breakdown", "critical_path"):
    _property = _timed_property(_name) if _name in _rows else _timed(_name)
    _property.__set_name__(TimedResults, _name)
    setattr(TimedResults, _name, _property)
