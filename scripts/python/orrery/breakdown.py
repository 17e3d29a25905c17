"""Where the time of each NPU went, by cause; the critical path; and what the run hints at. Older files have less of it."""
from . import tables
from .packages import load

np, pd = load("numpy"), load("pandas")

# What a file without /breakdown knows: columns of /npus, which leave out the time after an NPU's own end.
PARTS = [("compute_time", "compute"), ("cpu_time", "cpu"), ("exposed_communication_time", "exposed communication"),
         ("exposed_memory_time", "memory"), ("idle_time", "idle")]
MEANINGS = {"compute": "the compute resource was busy", "cpu": "the CPU was busy and the compute resource was not",
            "exposed communication": "waited for communication while nothing was computed", "memory": "waited for remote memory",
            "idle": "nothing was in progress"}


def of(source, npus, simulated_time):
    """Returns a table with a row for each NPU and a column for each cause, in picoseconds. Each row adds up to `simulated_time`.

    source: an open results file. npus: its table /npus.
    """
    if source.has("breakdown/compute"):
        table = tables.of_group(source, "breakdown")
        return table.loc[:, (table != 0).any()]
    table = pd.DataFrame({cause: npus[column] for column, cause in PARTS})
    table["idle"] += simulated_time - npus["finish_time"]  # an NPU is idle too when it has finished and others have not
    return tables.described(table, "where the time of each NPU went", dict.fromkeys(table.columns, "ps"), MEANINGS)


def critical_path(source):
    """Returns a table of the segments of the critical path in the order of time, with the names of cause and node; None without one."""
    if not source.has("critical_path/start"):
        return None
    table = tables.of_group(source, "critical_path")
    table["name"] = tables.Vocabulary(source.read("timeline/names")).of(table["name"])
    tables.add(table, "duration", table["finish"] - table["start"], "ps", "finish - start", after="finish")
    return table


def hints(source):
    """Returns the sentences that the run has for its user; [] if there are none."""
    return list(source.read("metrics/hints")) if source.has("metrics/hints") else []
