"""Imports the packages that Orrery's Python needs, and says how to install one that is missing."""
import importlib

from .errors import MissingPackage

DEBIAN = {
    "h5py": "python3-h5py",
    "matplotlib": "python3-matplotlib",
    "numpy": "python3-numpy",
    "google": "python3-protobuf",
    "pandas": "python3-pandas",
    "yaml": "python3-yaml",
}
PYPI = {"google": "protobuf", "yaml": "PyYAML"}


def load(name):
    """Returns the imported module `name`, such as "pandas" or "matplotlib.pyplot".

    Raises MissingPackage, an ImportError, if the package is not installed for the Python that runs.
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in DEBIAN:
            raise
        package = error.name.partition(".")[0]
    raise MissingPackage(
        f"Orrery's Python needs the package {package}, which this Python does not have. On Debian run: apt-get install "
        f"{DEBIAN[package]} (and use /usr/bin/python3); elsewhere: pip install {PYPI.get(package, package)}",
        name=package,
    )
