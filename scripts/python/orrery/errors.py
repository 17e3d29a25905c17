"""The errors that the package raises for what a user can mend."""


class ResultsError(Exception):
    """Raised when a file is not what was asked for. The message names the file, what was found and what to do."""


class MissingPackage(ImportError):
    """Raised when a Python package is not installed. The message says how to install it."""


class TraceError(ValueError):
    """Raised when a node or a group of a trace cannot be what it is given as. The message says what was found and expected."""
