"""Makes pandas tables of the groups of a results file.

Every table keeps in its `attrs` what the file says of each column: attrs["units"], attrs["descriptions"] and, for the table as a
whole, attrs["description"].
"""
from .packages import load

np, pd = load("numpy"), load("pandas")


def described(table, description, units, descriptions):
    """Returns `table` with its attributes; columns that it does not have are left out."""
    table.attrs = {
        "description": description,
        "units": {name: units[name] for name in table.columns if name in units},
        "descriptions": {name: descriptions[name] for name in table.columns if name in descriptions},
    }
    return table


def add(table, name, values, units, description, after=None):
    """Adds a column that follows from others, with its unit; behind the column `after`, else at the end."""
    table.insert(len(table.columns) if after is None else table.columns.get_loc(after) + 1, name, values)
    table.attrs["units"][name] = units
    table.attrs["descriptions"][name] = description


def of_group(source, group, index=None):
    """Returns a table of all columns of a group whose first dimension is the same as that of its first column.

    index: the name of the index, which counts rows from 0; by default the name of their dimension scale in the file.
    """
    names = source.columns(group)
    scale = source.scale(f"{group}/{names[0]}")
    names = [name for name in names if source.scale(f"{group}/{name}") == scale]
    columns, units, descriptions = {}, {}, {}
    for name in names:
        path = f"{group}/{name}"
        label, words = source.label(path), source.values(path)
        values = source.read(path)
        columns[name] = values if words is None else Vocabulary(words).of(values)
        units[name] = label.get("units", "")
        descriptions[name] = label.get("description" if words is None else "long_name", "")
    table = pd.DataFrame(columns, index=pd.RangeIndex(source.rows(f"{group}/{names[0]}"), name=index or scale))
    return described(table, source.attribute(group, "description") or "", units, descriptions)


class Vocabulary:
    """Names that columns of indices stand for."""

    def __init__(self, names):
        self._names = np.append(np.asarray(names, dtype=object), np.nan)
        self._kind = pd.CategoricalDtype(names) if len(set(names)) == len(names) else None

    def of(self, codes):
        """Returns the name of each code, and nothing (NaN) for codes below 0.

        The result is a pandas Categorical, which costs a few bytes a row, unless two of the names are equal.
        """
        codes = np.asarray(codes, dtype=np.int64)
        if self._kind is not None:
            return pd.Categorical.from_codes(codes, dtype=self._kind)
        return self._names[np.where(codes < 0, len(self._names) - 1, codes)]


def ranges(numbers, most=8):
    """Returns whole numbers as a short text: [0, 1, 2, 3] is "0-3", [0, 4, 8, 12] is "0, 4, 8, 12".

    Runs of three or more successive numbers are joined. Of more than `most` pieces only the first ones are listed.
    """
    numbers = np.asarray(numbers, dtype=np.int64)
    pieces = []
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
        pieces += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(number) for number in run]
        if len(pieces) > most:
            return ", ".join(pieces[:most]) + f", ... ({len(numbers):,})"
    return ", ".join(pieces)
