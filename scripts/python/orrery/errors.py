"""The errors that the package raises for what a user can mend."""


class ResultsError(Exception):
    """Raised when a file is not what was asked for. The message names the file, what was found and what to do."""


class MissingPackage(ImportError):
    """Raised when a Python package is not installed. The message says how to install it."""


class TraceError(ValueError):
    """Raised when a node or a group of a trace cannot be what it is given as. The message says what was found and expected."""


class ProgramError(Exception):
    """Raised when the program `orrery` cannot be started or ends with an error. The message is the program's own.

    `code` is the exit code of the program, which docs/user-guide.md explains, or None if it could not be started. `faults` has one text
    for each fault of the input.
    """

    def __init__(self, message, code=None, faults=()):
        super().__init__(message)
        self.code, self.faults = code, list(faults) or [message]


class InputError(ProgramError, ValueError):
    """Raised for a configuration or an option that the program refuses (exit codes 2 and 3)."""


class StuckError(ProgramError):
    """Raised when the simulated system is stuck: NPUs wait for what never comes (exit code 4)."""


class ProgramWarning(UserWarning):
    """The category of warnings that the program prints."""
