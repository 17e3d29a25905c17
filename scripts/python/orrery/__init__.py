"""Reads the results of Orrery, a simulator of distributed machine-learning training, as pandas tables.

    import orrery
    run = orrery.open("results.h5")
    print(run)
    run.npus, run.groups, run.collectives, run.dimensions, run.links, run.metrics, run.kernel
    run.timeline.read(npus=range(4))
    orrery.compare(["base.h5", "faster.h5"])
    orrery.read_study("explore.h5").trials

docs/python.md explains every table. orrery.plots draws pictures; it needs matplotlib.
"""
from .errors import MissingPackage, ResultsError
from .results import Results
from .runs import Runs, compare, open_many
from .study import Study, read_study
from .units import in_units, readable

__all__ = ["MissingPackage", "Results", "ResultsError", "Runs", "Study", "compare", "in_units", "open", "open_many", "read_study", "readable"]


def open(path):  # noqa: A001, the name that h5py, netCDF4 and pandas users expect
    """Returns the Results of one run; `path` is the file that orrery run --output wrote.

    Raises ResultsError if there is no such file, if it is no results file, or if it has another version of the format. Reads no table
    yet: cost and memory are those of the tables that are used.
    """
    return Results(path)
