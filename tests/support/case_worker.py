"""The harness's side of tests/support/case_runner.cpp, a program that runs the commands of one test script in one start of MPI.

`case_runner FOLDER` reads jobs from FOLDER/jobs.R and writes answers to FOLDER/answers.R on each rank R, one line of JSON for each. Both
are named pipes, so that a rank without a job waits in read() and takes no time of a core. The end of jobs.R ends the rank.

    {"id": 7, "command": ["orrery", "run", "c.yaml", "--output=o.h5"], "ranks": 3, "cwd": "/folder"}
        Ranks 0 to 2 get this line and run the command on a communicator of their own; with "ranks": 0 rank 0 runs it without MPI.
        Each answers {"id": 7, "code": 0, "out": "...", "err": "..."}, and rank 0 adds "digests": {"/npus/finish_time": "..."} if the
        command wrote results: one digest for each dataset outside /kernel.
        "ends": true in an answer says that the command failed on this rank alone. MPI then ends the program on all ranks.
    "figures": true in a job of `orrery run`
        It writes no results, which would take most of its time. Rank 0 adds "figures", a digest of the records of NPUs and links.
    {"id": 8, "digest": "o.h5"}
        Rank 0 answers {"id": 8, "digests": {...}}.
    anything else
        The answer is {"id": 9, "error": "..."}, with null for an id that cannot be read.
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

LONGEST_END = 30  # seconds in which MPI ends a program that was told to end, before it is killed

Outcome = collections.namedtuple("Outcome", "code out err")


class TookTooLong(AssertionError):
    pass


class WorkerFailed(AssertionError):
    """The worker died or answered something else than the protocol says. Its script cannot go on."""


class RefusedJob(AssertionError):
    """The worker could not read a job."""


def is_alive(pid):
    """Returns whether a process has not ended, be it as a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid):
    """Returns the process ids of the children of a process."""
    return [
        int(pid) for pid in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    ]


def kill_job(process, patience):
    """Kills a process that leads its session and its children at once, and waits until none of them can write any more."""
    ranks = children(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    for rank in ranks:  # mpirun starts them in process groups of their own
        with contextlib.suppress(ProcessLookupError):
            os.kill(rank, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + patience
    while any(is_alive(rank) for rank in ranks):
        if time.monotonic() > deadline:
            raise TookTooLong(f"ranks live {patience} s after they were killed")
        time.sleep(0.005)


class Worker:
    """One start of case_runner, on a number of ranks."""

    def __init__(self, command, ranks):
        """`command` starts the program without its argument, the folder."""
        self.ranks, self.last_id, self.job = ranks, 0, None  # the last job that was sent
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-worker-"))
        self.jobs, self.answers = [], []
        for rank in range(ranks):
            for name, files in (("jobs", self.jobs), ("answers", self.answers)):
                os.mkfifo(self.folder / f"{name}.{rank}")
                # Open for both directions: the call does not wait for the worker, and a worker that dies leaves no broken pipe.
                files.append(os.open(self.folder / f"{name}.{rank}", os.O_RDWR))
        self.received = [b""] * ranks
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [*map(str, command), str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.ended = os.pidfd_open(self.process.pid)
        self.other_files = [self.ended]

    def log(self):
        """Returns what the worker itself has printed."""
        return (self.folder / "log").read_text(errors="replace")

    def run(self, arguments, ranks, cwd, patience):
        """Runs a command on so many ranks. Returns its Outcome, which is that of mpirun, and the digests of the results that it wrote, or
        None. Raises TookTooLong after `patience` seconds, WorkerFailed and RefusedJob."""
        outcome, answer = self.run_job({"command": ["orrery", *arguments], "ranks": ranks, "cwd": str(cwd)}, patience)
        return outcome, answer.get("digests")

    def figures(self, arguments, cwd, patience):
        """Runs `orrery run` without a file of results. Returns its Outcome and the digest of its figures, or None if it failed."""
        outcome, answer = self.run_job(
            {"command": ["orrery", *arguments], "ranks": 0, "cwd": str(cwd), "figures": True}, patience
        )
        return outcome, answer.get("figures")

    def run_job(self, job, patience):
        """Returns the Outcome of a job and the answer of rank 0."""
        answers = self.ask(job, max(job["ranks"], 1), patience)
        if any(answer.get("ends") for answer in answers):
            self.wait_for_end()
        try:
            code = next((answer["code"] for answer in answers if answer.get("ends") or answer["code"] != 0), 0)
            outcome = Outcome(
                code, "".join(answer["out"] for answer in answers), "".join(answer["err"] for answer in answers)
            )
        except KeyError as missing:
            raise self.failed(f"has answered without {missing}: {answers}") from None
        return outcome, answers[0]

    def digests(self, path, patience):
        """Returns the digest of each dataset outside /kernel in a file of results."""
        [answer] = self.ask({"digest": str(pathlib.Path(path).resolve())}, 1, patience)
        return answer["digests"]

    def ask(self, job, ranks, patience):
        """Sends a job to the first ranks and returns the answer of each, or only the one that says that the worker ends."""
        self.last_id += 1
        self.job = {"id": self.last_id, **job}
        line = (json.dumps(self.job) + "\n").encode()
        for rank in range(ranks):
            self.send(rank, line)
        deadline = time.monotonic() + patience
        answers = {}
        while len(answers) < ranks:
            waiting = [rank for rank in range(ranks) if rank not in answers]
            for rank, answer in self.next_answers(waiting, deadline, patience):
                if answer.get("id") != self.last_id and "error" not in answer:
                    raise self.failed(f"has answered another job: {answer}")
                if answer.get("ends"):
                    return [answer]
                answers[rank] = answer
        if "error" in answers[0]:
            raise RefusedJob(f"the worker refuses {self.job}: {answers[0]['error']}")
        return [answers[rank] for rank in range(ranks)]

    def send(self, rank, line):
        """Writes a line, which a worker that is alive reads."""
        while line:
            if not select.select([], [self.jobs[rank]], [], 0.1)[1]:
                if self.process.poll() is not None:
                    raise self.failed(f"ended with {self.process.returncode}")
                continue
            line = line[os.write(self.jobs[rank], line[: select.PIPE_BUF]) :]

    def next_answers(self, ranks, deadline, patience):
        """Waits for answers of these ranks and yields (rank, answer)."""
        files = [self.answers[rank] for rank in ranks]
        ready, _, _ = select.select([*files, self.ended], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            self.kill()
            raise TookTooLong(f"not done after {patience} s: {self.job}\n{self.log()}")
        if ready == [self.ended]:
            self.process.wait()
            raise self.failed(f"ended with {self.process.returncode}")
        for rank in ranks:
            if self.answers[rank] not in ready:
                continue
            self.received[rank] += os.read(self.answers[rank], 1 << 20)
            line, newline, rest = self.received[rank].partition(b"\n")
            if newline:
                self.received[rank] = rest
                yield rank, self.parsed(line)

    def parsed(self, line):
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self.failed(f"has answered {line!r}")
        return answer

    def failed(self, what):
        """Kills the worker and returns the error that tells its job and its output."""
        self.kill()
        return WorkerFailed(
            f"the worker of this script {what}; its last job was {self.job}, and it printed\n{self.log()}"
        )

    def is_alive(self):
        return self.process.poll() is None

    def wait_for_end(self):
        """Waits for the end of a worker that has said that it ends, and kills it if it does not."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LONGEST_END)
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            kill_job(self.process, LONGEST_END)

    def end(self, patience):
        """Ends the worker, which has no job. Returns what is wrong with its end; empty if it ended with exit code 0."""
        for file in self.jobs:
            os.close(file)
        self.jobs = []
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            code = f"nothing in {patience} s"
        wrong = (
            f"the worker of this script ended with {code} after its jobs, and printed\n{self.log()}"
            if code != 0
            else ""
        )
        self.close()
        return wrong

    def close(self):
        """Kills the worker if it is alive, and removes its folder."""
        self.kill()
        for file in self.jobs + self.answers + self.other_files:
            os.close(file)
        self.jobs, self.answers, self.other_files = [], [], []
        shutil.rmtree(self.folder, ignore_errors=True)


COMMANDS = {"run", "check", "explore", "best", "flows", "generate", "convert", "synthesize", "partition", "show"}
ELSEWHERE = {"--help", "-h", "--version"}  # they end the process from within the reading of the command line
OF_PYTHON = {"provenance", "results"}  # `orrery show` becomes Python for these
ENDS = ("--max-walltime", "--set=run.watchdog")  # a run that they cannot end in order ends its process
ONCE = (
    "--checkpoint",
    "--restart",
    "--progress",
)  # a second run with one of these has other inputs, or prints other times
WRITES = (
    "--json",
    "--csv",
    "--chrome",
    "--plot",
)  # options that name a file, which a second run only replaces with --force
SIZES = (1, 4, 8)  # ranks of the workers; the one of a single rank is started without mpirun


class Workers:
    """The workers of a script. Each is started when a job needs it first. A run in a worker and one in a process of its own have the same
    Outcome and write the same results: for the first job on one rank and the first on several ranks, this is tried."""

    def __init__(self, program, mpirun, run_fresh, patience):
        """`program`: case_runner, or None if there is none. `run_fresh(arguments, ranks, timeout, cwd)` runs a command in a process of its
        own."""
        self.program, self.mpirun, self.run_fresh, self.patience = program, mpirun, run_fresh, patience
        self.environment = dict(os.environ)
        self.workers = {}  # by the number of ranks
        self.known = (
            {}
        )  # digests of files, by their paths: (what tells that the file is the one that was written, digests)
        self.answered, self.compared, self.differences, self.error = 0, {}, [], None
        self.lock = threading.RLock()  # a worker has one job at a time

    def can_run(self, arguments, ranks):
        """Returns whether a command can run in a worker."""
        if self.program is None or not arguments or arguments[0] not in COMMANDS or ranks > SIZES[-1]:
            return False
        if ELSEWHERE & set(arguments) or any(word.startswith(ENDS) for word in arguments):
            return False
        if arguments[0] == "show" and (len(arguments) == 1 or arguments[1] in OF_PYTHON):
            return False
        return self.environment == dict(os.environ)

    def worker(self, ranks):
        """Returns a worker that has so many ranks, and starts one if there is none."""
        for size in (4, 8, 1):
            if size >= ranks and size in self.workers:
                if self.workers[size].is_alive():
                    return self.workers[size]
                self.workers.pop(size).close()
        size = 1 if ranks == 0 else next(size for size in SIZES[1:] if size >= ranks)
        command = [self.program] if size == 1 else [*self.mpirun, size, self.program]
        self.workers[size] = Worker(command, size)
        return self.workers[size]

    def run(self, arguments, ranks, timeout, cwd):
        """Runs a command in a worker and returns its Outcome."""
        with self.lock:
            if self.error:
                raise WorkerFailed(f"no job runs after this error: {self.error}")
            try:
                outcome, digests = self.worker(ranks).run(arguments, ranks, cwd, timeout)
            except WorkerFailed as error:
                self.error = error
                raise
            if digests is not None:
                self.remember(results_of(arguments, cwd), digests)
            if outcome.code == 0:
                self.answered += can_repeat(arguments)
                self.compare(arguments, ranks, timeout, cwd, outcome, digests)
            return outcome

    def figures(self, arguments, cwd):
        """Runs `orrery run` without a file of results and returns its Outcome and the digest of its figures, which is None if it failed."""
        with self.lock:
            try:
                return self.worker(0).figures(arguments, cwd, self.patience)
            except WorkerFailed as error:
                self.error = error
                raise

    def compare(self, arguments, ranks, timeout, cwd, outcome, digests):
        """Repeats a job in a process of its own if none of its kind has been repeated yet, and notes what differs."""
        kind = "several ranks" if ranks > 1 else "one rank"
        if kind in self.compared or not can_repeat(arguments):
            return
        self.compared[kind] = arguments
        again = ["--force"] if results_of(arguments, cwd) and "--force" not in arguments else []
        fresh = self.run_fresh(arguments + again, ranks, timeout, cwd)
        found = None if digests is None else self.worker(0).digests(results_of(arguments, cwd), timeout)
        for name, mine, other in (
            ("code", outcome.code, fresh.code),
            ("out", steady(outcome.out), steady(fresh.out)),
            ("err", steady(outcome.err), steady(fresh.err)),
            ("digests", digests, found),
        ):
            if mine != other:
                self.differences.append(
                    f"{name} of {' '.join(arguments)} on {ranks} ranks: {mine!r} in the worker, {other!r} in a process of its own"
                )

    def remember(self, path, digests):
        self.known[path] = (identity(path), digests)

    def digests(self, path):
        """Returns the digests of a file of results, or None if no worker knows or can tell them."""
        path = pathlib.Path(path).resolve()
        then, digests = self.known.get(path, (None, None))
        if then is not None and then == identity(path):
            return digests
        with self.lock:
            live = [worker for worker in self.workers.values() if worker.is_alive()]
            if not live or self.error:
                return None
            self.remember(path, live[0].digests(path, self.patience))
            return self.known[path][1]

    def different_datasets(self, one, other):
        """Returns the names of the datasets that differ between two files of results; None if that cannot be told."""
        mine, others = self.digests(one), self.digests(other)
        if mine is None or others is None:
            return None
        return sorted(name for name in mine.keys() | others.keys() if mine.get(name) != others.get(name))

    def faults(self):
        """Returns what is wrong with the answers: they are not those of processes of their own, or none was compared with one."""
        return self.differences or (
            ["no job of the worker has been repeated in a process of its own"]
            if self.answered and not self.compared
            else []
        )

    def end(self):
        """Ends all workers. Returns what is wrong with their ends."""
        wrong = []
        for worker in self.workers.values():
            if self.error or not worker.is_alive():
                worker.close()
            else:
                wrong.append(worker.end(self.patience))
        self.workers = {}
        return [text for text in wrong if text]


def can_repeat(arguments):
    """Returns whether a command does the same when it runs a second time."""
    if any(word.startswith(ONCE) for word in arguments):
        return False
    is_printed = arguments[0] == "show" and not any(word.startswith(("--chrome", "--plot")) for word in arguments)
    return is_printed or "--force" in arguments or not any(word.startswith(WRITES) for word in arguments)


def results_of(arguments, cwd):
    """Returns the path of the results that a command writes by its option --output; None if it has none."""
    for word, following in zip(arguments, [*arguments[1:], ""]):
        if word == "--output" or word.startswith("--output="):
            return (pathlib.Path(cwd) / (following if word == "--output" else word.partition("=")[2])).resolve()
    return None


def identity(path):
    """Returns what changes if another file is written in place of this one."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def steady(text):
    """Returns what a program prints without the lines that tell how long it took."""
    return "".join(
        line for line in text.splitlines(keepends=True) if " events in " not in line and " trials in " not in line
    )
