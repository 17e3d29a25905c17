"""Finds and runs the program `orrery`, and turns its messages into exceptions, warnings and progress."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import warnings

from .errors import InputError, ProgramError, ProgramWarning, StuckError

HERE = pathlib.Path(__file__).resolve().parent
# Where the program may be, seen from the package: in a wheel that carries it, below a prefix (lib/python3/dist-packages), in a checkout.
PLACES = (
    HERE / "program_files/bin/orrery",
    HERE.parents[3] / "bin/orrery" if len(HERE.parents) > 3 else HERE / "none",
    HERE.parents[2] / "build/release/bin/orrery",
)
NAMES = ("ORRERY_PROGRAM", "ORRERY_BINARY")  # environment variables that name the program
ERRORS = {2: InputError, 3: InputError, 4: StuckError}
LAST_LINES = 20  # of what a program without a message of its own said, such as mpirun


def find(program=None):
    """Returns the path of the program: `program`, or that of the environment variable ORRERY_PROGRAM, or of the wheel, installation or
    checkout that the package is part of, or the one in PATH. Raises ProgramError if there is none."""
    chosen = program or next((os.environ[name] for name in NAMES if os.environ.get(name)), None)
    if chosen:
        found = shutil.which(os.fspath(chosen))
        if found:
            return found
        raise ProgramError(f"{os.fspath(chosen)}: found no program there that can be run; expected the program orrery.")
    for place in PLACES:
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("orrery")
    if found and pathlib.Path(found).resolve() != pathlib.Path(sys.argv[0]).resolve():
        return found
    raise ProgramError(
        "found no program orrery in PATH, nor beside the Python package. Build it (scripts/build.sh), install a wheel that carries "
        "it, or name it in the environment variable ORRERY_PROGRAM."
    )


def launch(ranks):
    """Returns (words, environment) that start a program on `ranks` MPI ranks. One rank needs no mpirun.

    Raises ProgramError if there is no mpirun, and ValueError for a number below 1.
    """
    environment = dict(os.environ)
    if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
        raise ValueError(f"found {ranks!r} ranks; expected a whole number of at least 1")
    if ranks == 1:
        return [], environment
    if shutil.which("mpirun") is None:
        raise ProgramError(
            f"found no mpirun in PATH, which {ranks} ranks need. On Debian run: apt-get install openmpi-bin"
        )
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if ranks > len(os.sched_getaffinity(0)):
        environment.update(
            OMPI_MCA_rmaps_base_oversubscribe="1",
            OMPI_MCA_hwloc_base_binding_policy="none",
            OMPI_MCA_mpi_yield_when_idle="1",
        )
    return ["mpirun", "-np", str(ranks)], environment


class Shown:
    """Shows the latest line of progress: in a notebook or on a terminal in one place, and elsewhere not at all."""

    def __init__(self, wanted=None):
        """wanted: True or False, or None to show progress in notebooks and on terminals only."""
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        self._handle, self._length = None, 0
        self._in_notebook = shell is not None and getattr(shell, "kernel", None) is not None
        self.wanted = (self._in_notebook or sys.stderr.isatty()) if wanted is None else bool(wanted)

    def update(self, line):
        """Shows a line in the place of the one before."""
        if not self.wanted:
            return
        if self._in_notebook:
            from IPython.display import display

            shown = {"text/plain": line}
            if self._handle is None:
                self._handle = display(shown, raw=True, display_id=True)
            else:
                self._handle.update(shown, raw=True)
        elif sys.stderr.isatty():
            print("\r" + line.ljust(self._length), end="", file=sys.stderr, flush=True)
            self._length = len(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self):
        """Removes the line."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)
        elif self._length:
            print("\r" + " " * self._length + "\r", end="", file=sys.stderr, flush=True)


class Messages:
    """What a program writes to standard error, sorted into errors, warnings and progress."""

    def __init__(self, shown):
        self.errors, self.warnings, self.others = [], [], collections.deque(maxlen=LAST_LINES)
        self._shown, self._last, self.has_progress = shown, None, False

    def take(self, line):
        """Sorts in one line. Lines that are indented belong to the message before them."""
        found = re.match(r"orrery: (error|warning): (.*)", line)
        if found:
            self._last = self.errors if found[1] == "error" else self.warnings
            self._last.append([found[2]])
        elif line.startswith((" ", "\t")) and self._last:
            self._last[-1].append(line)
        elif line.startswith("orrery: "):
            self.has_progress = True
            self._shown.update(line.removeprefix("orrery: "))
        elif line.strip():
            self._last = None
            self.others.append(line)

    def faults(self):
        """Returns one text for each fault: each message of an error, or each of the lines that belong to a message with several faults."""
        found = []
        for first, *more in self.errors:
            several = more and "several faults" in first
            found += [line.strip() for line in more] if several else ["\n".join([first, *more])]
        return found


def tick(what, shown, messages, ended):
    """Shows once a second for how long a program runs, until it ends or tells of its progress itself. Studies do not."""
    seconds = 0
    while shown.wanted and not messages.has_progress and not ended.wait(1):
        seconds += 1
        if not messages.has_progress:
            shown.update(f"{what}: {seconds} s")


def failure(code, messages):
    """Returns the exception for an exit code other than 0, with what the program said."""
    faults = messages.faults()
    said = "\n".join(faults or messages.others) or f"orrery ended with exit code {code} and said nothing"
    return ERRORS.get(code, ProgramError)(said, code, faults)


def call(*arguments, ranks=1, program=None, progress=None, accepted=(0,)):
    """Runs the program to its end and returns what it printed. Its warnings become Python warnings.

    arguments: its command line. ranks: number of MPI ranks. accepted: exit codes that are no failure.
    Raises InputError, StuckError or ProgramError with what it said. It is ended if the caller is interrupted.
    """
    words, environment = launch(ranks)
    shown = Shown(progress)
    messages = Messages(shown)
    process = subprocess.Popen(
        [*words, find(program), *map(os.fspath, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    printed, ended = [], threading.Event()
    ticker = threading.Thread(target=tick, args=(f"orrery {arguments[0]}", shown, messages, ended), daemon=True)
    ticker.start()
    reader = threading.Thread(target=lambda: printed.append(process.stdout.read()), daemon=True)
    reader.start()
    try:
        for line in process.stderr:
            messages.take(line.rstrip("\n"))
        process.wait()
    except BaseException:  # of the user too: nobody waits for the simulation any more
        process.terminate()
        process.wait()
        raise
    finally:
        ended.set()
        ticker.join()
        shown.end()
        reader.join()
        process.stdout.close()
        process.stderr.close()
    for lines in messages.warnings:
        warnings.warn("\n".join(lines), ProgramWarning, stacklevel=3)
    if process.returncode == 127 and any("shared libraries" in line for line in messages.others):
        messages.others.append(
            "The program needs Open MPI 4 of this machine. On Debian run: apt-get install openmpi-bin"
        )
    if process.returncode not in accepted:
        raise failure(process.returncode, messages)
    return printed[0]


def main():
    """Becomes the program that a wheel carries: the command `orrery` of an environment. Its reports are made by this Python."""
    program = PLACES[0]
    os.environ.setdefault("ORRERY_PYTHON", sys.executable)
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except OSError as error:
        return f"orrery: error: {program}: {error.strerror}; expected the program that the wheel carries. Install the wheel again."
