"""Where the time of each NPU went, by cause; the critical path; and what the run hints at. Older files have less of it."""
from . import tables
from .packages import load

np, pd = load("numpy"), load("pandas")

# What a file without /breakdown knows: columns of /npus, which leave out the time after an NPU's own end.
PARTS = [
    ("compute_time", "compute"),
    ("cpu_time", "cpu"),
    ("exposed_communication_time", "exposed communication"),
    ("exposed_memory_time", "memory"),
    ("idle_time", "idle"),
]
MEANINGS = {
    "compute": "the compute resource was busy",
    "cpu": "the CPU was busy and the compute resource was not",
    "tensor": "waited for communication of tensor parallelism",
    "sequence": "waited for communication of sequence parallelism",
    "context": "waited for communication of context parallelism",
    "expert": "waited for communication of expert parallelism",
    "data": "waited for communication of data parallelism",
    "pipeline": "waited for messages between pipeline stages",
    "bubble": "waited for another pipeline stage",
    "stragglers": "waited for members of a collective that came later",
    "memory": "waited for remote memory",
    "other": "waited for other communication",
    "idle": "nothing was in progress",
    "exposed communication": "waited for communication while nothing was computed",
}


def of(source, npus, simulated_time):
    """Returns a table with a row for each NPU and a column for each cause, in picoseconds. Each row adds up to `simulated_time`.

    source: an open results file. npus: its table /npus.
    """
    if source.has("breakdown"):
        table = tables.of_group(source, "breakdown")
        known = [cause for cause in MEANINGS if cause in table.columns]
        table = table[known + [cause for cause in table.columns if cause not in MEANINGS]]
    else:
        table = pd.DataFrame({cause: npus[column] for column, cause in PARTS})
        table["idle"] += (
            simulated_time - npus["finish_time"]
        )  # an NPU is idle too when it has finished and others have not
    return tables.described(table, "where the time of each NPU went", dict.fromkeys(table.columns, "ps"), MEANINGS)


def critical_path(source):
    """Returns a table of the segments of the critical path in the order of time, with the names of cause and node; None without one."""
    if not source.has("critical_path/start"):
        return None
    table = tables.of_group(source, "critical_path")
    names = source.read("timeline/names")
    codes = table["name"].to_numpy().astype(np.int64)
    table["name"] = tables.Vocabulary(names).of(np.where(codes < len(names), codes, -1))
    tables.add(table, "duration", table["finish"] - table["start"], "ps", "finish - start", after="finish")
    return table


def hints(source):
    """Returns the sentences that the run has for its user; [] if there are none."""
    return list(source.read("metrics/hints")) if source.has("metrics/hints") else []
