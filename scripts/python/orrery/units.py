"""Converts and prints quantities with units.

The file has whole picoseconds, bytes and bytes per second. Tables have seconds, or another unit of time that the reader asked for.
"""
import re

from .packages import load

np, pd = load("numpy"), load("pandas")

TIMES = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
SIZES = {
    "byte": 1,
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
RATES = {
    "byte/s": 8,
    "B/s": 8,
    "kB/s": 8 * 10**3,
    "MB/s": 8 * 10**6,
    "GB/s": 8 * 10**9,
    "TB/s": 8 * 10**12,
    "Gb/s": 10**9,
    "Tb/s": 10**12,
}  # in bits a second
TIMEDELTA = "timedelta"  # in place of a unit of time: pandas Timedeltas, whole nanoseconds
TIMES_OF_ATTRIBUTES, NO_TIMES = ("interval", "statistics"), (
    "confidence",
)  # attributes of tables that are times, and parts that are none
QUANTITIES = {"time": TIMES, "size": SIZES, "rate": RATES}


def quantity_of(unit):
    """Returns "time", "size" or "rate", the quantity that `unit` measures, or None if it is none of them."""
    return next((name for name, units in QUANTITIES.items() if unit in units), None)


def in_units(table, *units):
    """Returns a copy of `table` in other units: in_units(run.npus, "ms", "GiB") converts all times and all sizes.

    table: a pandas table of this package; table.attrs["units"] has the unit of each column.
    units: at most one unit of time (ps, ns, us, ms, s), one of size (byte, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB) and one of rate
    (byte/s, kB/s, MB/s, GB/s, TB/s, Gb/s, Tb/s).
    The columns keep their names and attrs["units"] of the copy says the new units. Raises ValueError for any other unit.
    """
    wanted = {}
    for unit in units:
        quantity = quantity_of(unit)
        if quantity is None:
            known = ", ".join(name for some in QUANTITIES.values() for name in some)
            raise ValueError(f"found the unit {unit!r}; expected one of {known}")
        if quantity in wanted:
            raise ValueError(f"found two units of {quantity}, {wanted[quantity]!r} and {unit!r}; expected one")
        wanted[quantity] = unit
    result = table.copy()
    of_columns = dict(table.attrs.get("units", {}))
    for column, unit in of_columns.items():
        quantity = quantity_of(unit)
        if column in result.columns and quantity in wanted:
            result[column] = column_in(result[column], unit, wanted[quantity])
            of_columns[column] = wanted[quantity]
    result.attrs = {**table.attrs, "units": of_columns}
    return result


def column_in(column, unit, wanted):
    """Returns a column of a quantity, which is in `unit`, in the unit `wanted` of the same quantity, or as Timedeltas.

    A column that has the unit already is returned as it is, so that whole numbers stay whole.
    """
    if unit == wanted:
        return column
    if wanted == TIMEDELTA:
        return pd.to_timedelta((column * (TIMES[unit] / TIMES["ns"])).round(), unit="ns")
    known = QUANTITIES[quantity_of(wanted)]
    # A division rounds once: 756919 ps are the float nearest to 7.56919e-07 s.
    ratio = known[unit] / known[wanted]
    return column * ratio if ratio >= 1 else column / (known[wanted] / known[unit])


def with_times(table, unit):
    """Returns a copy of a table of this package with all times in `unit`, which is one of TIMES or TIMEDELTA; None of None."""
    if table is None:
        return None
    result, of_columns = table.copy(), dict(table.attrs.get("units", {}))
    for column, known in of_columns.items():
        if known in TIMES and known == "ps" and column in result.columns:
            result[column] = column_in(result[column], known, unit)
            of_columns[column] = unit
    result.attrs = {**table.attrs, "units": of_columns}
    for name, value in table.attrs.items():  # such as the length of an interval, and statistics
        if name in TIMES_OF_ATTRIBUTES:
            result.attrs[name] = (
                {key: one if key in NO_TIMES else time_in(one, unit) for key, one in value.items()}
                if isinstance(value, dict)
                else time_in(value, unit)
            )
    return result


def time_in(time, unit):
    """Returns one time, which is in picoseconds, in `unit`."""
    if unit == TIMEDELTA:
        return pd.Timedelta(round(time / TIMES["ns"]), unit="ns")
    return time if unit == "ps" else time / TIMES[unit]


def picoseconds(time, unit="ps"):
    """Returns `time` in picoseconds: a number is in `unit`, a text has a unit, as in "1.5 ms", and a Timedelta says it itself.

    Raises ValueError for any other text.
    """
    if isinstance(time, (pd.Timedelta, np.timedelta64)):
        return int(pd.Timedelta(time).value) * TIMES["ns"]
    if not isinstance(time, str):
        return time if unit == "ps" else round(time * TIMES.get(unit, TIMES["s"]))
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][-+]?\d+)?)\s*(\w+)\s*", time)
    if not found or found[2] not in TIMES:
        raise ValueError(f"found the time {time!r}; expected a number and a unit of {', '.join(TIMES)}, as in '1.5 ms'")
    return round(float(found[1]) * TIMES[found[2]])


PRINTED = {
    "ps": [("s", 1e12), ("ms", 1e9), ("µs", 1e6), ("ns", 1e3), ("ps", 1)],
    "s": [("s", 1), ("ms", 1e-3), ("µs", 1e-6)],
    "USD": [("M USD", 1e6), ("USD", 1)],
    "W": [("GW", 1e9), ("MW", 1e6), ("kW", 1e3), ("W", 1)],
    "FLOPS": [("PFLOPS", 1e15), ("TFLOPS", 1e12), ("GFLOPS", 1e9), ("FLOPS", 1)],
    "J": [("GJ", 1e9), ("MJ", 1e6), ("kJ", 1e3), ("J", 1)],
    "byte": [("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1)],
    "byte/s": [("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("byte/s", 1)],
}


def scale_of(largest, unit):
    """Returns (name, size) of the unit in which to print numbers up to `largest`, which are in `unit` (ps, s, byte, byte/s, USD, W or J).

    The largest number is then at least 1, if any unit makes it so.
    """
    scales = PRINTED[unit]
    return next(((name, size) for name, size in scales if largest >= size), scales[-1])


def readable(value, unit):
    """Returns a number with its unit as people write it, with four significant digits: readable(181356743000, "ps") is "181.4 ms"."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "-"
    if unit in PRINTED:
        name, size = scale_of(abs(value), unit)
        return f"{_digits(value / size)} {name}"
    if unit == "1":
        return _digits(value)
    return f"{_digits(value)} {unit}"


def _digits(value):
    """Four significant digits, or all digits before the point."""
    if isinstance(value, (int, np.integer)) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
