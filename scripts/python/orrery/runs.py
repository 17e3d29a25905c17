"""Several results files side by side."""
import glob
import os
import pathlib
import re

from . import configuration, tables
from .errors import ResultsError
from .packages import load
from .timed import TimedResults

pd = load("pandas")


class Runs:
    """The results of several runs. runs["name"] is one of them, `table` has one row for each."""

    def __init__(self, paths, times="s"):
        """paths: {name: path}. times: as in orrery.open. Files are opened when they are used. Use orrery.open_many, which makes the names."""
        self.paths, self.times = dict(paths), times
        self._open, self._table, self._settings = {}, None, None

    def __len__(self):
        return len(self.paths)

    def __iter__(self):
        """Yields the names of the runs."""
        return iter(self.paths)

    def __getitem__(self, name):
        """Returns the Results of the run `name`. Raises KeyError if there is no such run."""
        if name not in self.paths:
            raise KeyError(f"found the run {name!r}; there are {', '.join(map(repr, self.paths))}")
        if name not in self._open:
            self._open[name] = TimedResults(self.paths[name], self.times)
        return self._open[name]

    def close(self):
        """Closes all files that are open."""
        for run in self._open.values():
            run.close()
        self._open.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        """Reads the settings and metrics of every run, one file at a time."""
        rows, settings, units = {}, {}, {}
        for name, path in self.paths.items():
            with TimedResults(path, self.times) as run:
                settings[name] = run.settings
                rows[name] = {
                    "num_npus": run.num_npus,
                    "status": run.status,
                    "simulated_time": run.simulated_time,
                    **run.metrics["value"],
                }
                units.update(run.metrics["units"])
        self._settings = settings
        units.update({"num_npus": "1", "status": "1", "simulated_time": self.times})
        table = pd.DataFrame(list(rows.values()), index=pd.Index(rows, name="run"))
        differences = self.differences
        for at, key in enumerate(differences.columns):
            table.insert(at, key, differences[key])
        self._table = tables.described(
            table,
            "one row per run: the keys of the configuration that are not the same in all, then the figures of a step",
            units,
            {},
        )

    @property
    def table(self):
        """One row per run: first the keys of the resolved configuration that are not the same in all runs, then status and metrics."""
        if self._table is None:
            self._read()
        return self._table

    @property
    def differences(self):
        """One row per run, one column for each key of the resolved configuration that is not the same in all runs."""
        if self._settings is None:
            self._read()
        found = configuration.differing(list(self._settings.values()))
        return pd.DataFrame(found, index=pd.Index(self._settings, name="run"), dtype=object)

    def concat(self, name):
        """Returns one table of all runs with the run as the first level of the index: concat("npus"), concat("collectives").

        name: a table of Results that is not read in parts. Runs without this table are left out.
        """
        found = {}
        for key, path in self.paths.items():
            with TimedResults(path, self.times) as run:
                table = getattr(run, name)
            if table is None:
                continue
            if not isinstance(table, pd.DataFrame):
                raise ValueError(f"found the table {name!r}, which is read in parts; use runs[...].{name}.read(...)")
            found[key] = table
        if not found:
            raise ResultsError(f"found the table {name!r} in none of the {len(self)} runs")
        result = pd.concat(found, names=["run"])
        result.attrs = next(iter(found.values())).attrs
        return result

    def __repr__(self):
        return f"<orrery.Runs: {', '.join(self.paths)}>"

    def __str__(self):
        return self.table.T.to_string()

    def _repr_html_(self):
        return self.table.T._repr_html_()


def open_many(paths, times="s"):
    """Returns Runs, the results of several runs.

    paths: a list of files, a pattern such as "sweep/*.h5", a folder, or {name: file}. Runs are named by their files: by the shortest
    end of the path that tells them apart. times: unit of all times, as in orrery.open.
    Raises ResultsError if there is no such file; what is wrong with a file is said when it is first read.
    """
    if isinstance(paths, dict):
        return Runs(paths, times)
    if isinstance(paths, (str, os.PathLike)):
        pattern = os.fspath(paths)
        found = sorted(
            glob.glob(os.path.join(glob.escape(pattern), "*.h5") if os.path.isdir(pattern) else pattern), key=_in_order
        )
        if not found:
            raise ResultsError(
                f"{pattern}: found no results file there. Give a list of files, a folder with .h5 files, or a pattern such as 'sweep/*.h5'."
            )
    else:
        found = [os.fspath(path) for path in paths]
        if len(set(map(os.path.abspath, found))) < len(found):
            raise ResultsError("found the same file twice among the results; give each file once, or {name: file}")
    return Runs(zip(_names(found), found), times)


def _in_order(path):
    """The key by which at-25 stands before at-100."""
    return [
        (not piece.isdigit(), int(piece) if piece.isdigit() else piece) for piece in re.split(r"(\d+)", path) if piece
    ]


def _names(paths):
    """The shortest ends of the paths that differ, without .h5."""
    parts = [pathlib.Path(os.path.abspath(path)).with_suffix("").parts for path in paths]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return list(paths)


def compare(paths, times="s"):
    """Returns one pandas table with one row per run: what differs in the configuration, then status and metrics.

    paths, times: as in open_many. The table is that of open_many(paths, times).table.
    """
    return open_many(paths, times).table
