"""Runs Orrery, a simulator of distributed machine-learning training, and reads its results as pandas tables.

    import orrery
    run = orrery.run("configs/llama3-8b-64.yaml", **{"workload.parallel.tp": 8})
    print(run)
    run.npus, run.groups, run.collectives, run.dimensions, run.links, run.metrics, run.kernel
    orrery.sweep("configs/llama3-8b-64.yaml", {"workload.parallel.micro-batches": [8, 16, 32]})
    orrery.best("llama3-8b", on="dgx-h100-superpod", npus=64, batch=128)

    run = orrery.open("results.h5")
    run.timeline.read(npus=range(4))
    orrery.compare(["base.h5", "faster.h5"])
    orrery.read_study("explore.h5").trials

docs/python.md explains every function and table. orrery.plots draws pictures; it needs matplotlib.
"""
from .errors import InputError, MissingPackage, ProgramError, ProgramWarning, ResultsError, StuckError
from .results import Results
from .runs import Runs, compare, open_many
from .simulations import best, check, run, sweep
from .study import Study, read_study
from .timed import TimedResults
from .units import in_units, readable

__all__ = [
    "InputError",
    "MissingPackage",
    "ProgramError",
    "ProgramWarning",
    "Results",
    "ResultsError",
    "Runs",
    "StuckError",
    "Study",
    "TimedResults",
    "best",
    "check",
    "compare",
    "in_units",
    "open",
    "open_many",
    "read_study",
    "readable",
    "run",
    "sweep",
]


def open(path, times="s"):  # noqa: A001, the name that h5py, netCDF4 and pandas users expect
    """Returns the TimedResults of one run; `path` is the file that orrery run --output wrote.

    times: the unit of all times, "s" by default; "ps" keeps the whole picoseconds of the file, and "timedelta" makes pandas Timedeltas.
    Raises ResultsError if there is no such file, if it is no results file, or if it has another version of the format, and ValueError for
    another unit. Reads no table yet: cost and memory are those of the tables that are used.
    """
    return TimedResults(path, times)
