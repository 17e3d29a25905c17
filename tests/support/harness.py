"""Runs the program for tests, writes its input files and reads its results.

The environment names the program (ORRERY_BINARY), the folder shared/ beside the repository (ORRERY_SHARED) and a folder for
unpacked archives (ORRERY_SCRATCH). Each has a default, so that a test can be run by hand from a checkout that was built. With
ORRERY_FEWER_CASES set, tests that draw or sweep cases take fewer of them. ORRERY_SANITIZED says that the program was built with
sanitizers; it implies fewer cases. With ORRERY_TEST_WIDELY set, they take many cases, which lasts for hours. ORRERY_GATE leaves out the tests
that are marked `long`, and takes fewer cases of the others.

Most runs of the program take place in a worker, which starts MPI once for a whole script (case_worker.py). ORRERY_CASE_RUNNER names its
program; without it, or with ORRERY_FRESH set, each run is a process of its own.
"""
import atexit
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import chakra
from case_worker import Outcome, TookTooLong, Workers, children, kill_job

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ORRERY_BINARY", str(SOURCE / "build/release/bin/orrery"))
SHARED = pathlib.Path(os.environ.get("ORRERY_SHARED", SOURCE.parent / "shared"))
SCRATCH = pathlib.Path(os.environ.get("ORRERY_SCRATCH", SOURCE / "build/scratch"))
SANITIZED = bool(os.environ.get("ORRERY_SANITIZED"))
GATE = bool(os.environ.get("ORRERY_GATE"))
FEWER_CASES = SANITIZED or GATE or bool(os.environ.get("ORRERY_FEWER_CASES"))
WIDELY = bool(
    os.environ.get("ORRERY_TEST_WIDELY")
)  # more cases, and every comparison of ranks takes 2 to 16 of them and every strategy: hours
CELL_SIZES = (8, 4, 0, 3)  # NPUs, by the number of ranks; 0 is the default
SKIPPED = 77  # exit code by which ctest knows a skipped test

# A limit against hangs, in seconds. It is far above what a run takes on a loaded machine; no test depends on its value.
PATIENCE = 300

# Several tests run at a time on few cores: ranks are not bound to cores, and they yield when they wait. Looking for a network would take half
# of the time in which mpirun starts a program.
MPI = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_pml": "ob1",
}
for name, value in MPI.items():
    os.environ.setdefault(name, value)


def cases(few, usual, many):
    """Returns the first value where tests take fewer cases, the last where they test widely, and else the second."""
    return few if FEWER_CASES else many if WIDELY else usual


def long(test):
    """Marks a test, or all tests of a class, as too long for the gate."""
    test.is_long = True
    return test


def launch(arguments, ranks=0):
    """Returns the command line of the program on `ranks` MPI ranks; 0 stands for a run without mpirun."""
    prefix = [str(SOURCE / "scripts/mpirun.sh"), str(ranks)] if ranks else []
    return prefix + [BINARY] + [str(argument) for argument in arguments]


def orrery(*arguments, ranks=0, timeout=PATIENCE, cwd=None, fresh=False):
    """Runs the program to its end and returns its Outcome. After `timeout` seconds it kills the whole job and raises TookTooLong.

    It runs in the worker of the script where that gives the same Outcome. `fresh` makes it a process of its own, for tests of signals, limits,
    faults of MPI or of files, and whatever else changes a whole process.
    """
    arguments = [str(argument) for argument in arguments]
    if not fresh and workers.can_run(arguments, ranks):
        return workers.run(arguments, ranks, timeout, cwd or os.getcwd())
    return run_fresh(arguments, ranks, timeout, cwd)


def run_fresh(arguments, ranks=0, timeout=PATIENCE, cwd=None):
    """Does the same in a process of its own."""
    process = subprocess.Popen(
        launch(arguments, ranks),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        cwd=cwd,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise TookTooLong(f"not done after {timeout} s: {' '.join(process.args)}\n{out}{err}") from None
    return Outcome(process.returncode, out, err)


def case_runner():
    """Returns the program of the worker; None if there is none, or none is wanted."""
    program = os.environ.get("ORRERY_CASE_RUNNER")
    if not program or os.environ.get("ORRERY_FRESH"):
        return None
    assert os.access(program, os.X_OK), f"ORRERY_CASE_RUNNER={program}: there is no such program"
    return program


workers = Workers(case_runner(), [str(SOURCE / "scripts/mpirun.sh")], run_fresh, PATIENCE)


@atexit.register
def end_workers():
    """Ends the workers. A script with a worker whose answers are not those of a process of its own, or that ends badly, fails."""
    wrong = workers.faults() + workers.end()
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(1)  # the only way to change the exit code by now


def run_script(script, *arguments, **more):
    """Runs a Python script of the repository to its end and returns its Outcome."""
    done = subprocess.run(
        [sys.executable, str(SOURCE / script), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **more,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def messages(outcome):
    """Returns the lines of standard error that the program itself wrote, without mpirun's own report of a failed job."""
    lines, inside = [], False
    for line in outcome.err.splitlines():
        if line.startswith("-----") and len(line.strip("-")) == 0:
            inside = not inside
        elif not inside and line.strip() and not line.startswith("mpirun"):
            lines.append(line)
    return lines


def errors(outcome):
    """Returns the error messages: the first line of each."""
    return [line for line in messages(outcome) if "error:" in line.lower()]


# ---- systems in ASTRA-sim's files ----


class System:
    """A system in ASTRA-sim's files: network.yml, system.json, remote_memory.json and perhaps comm_group.json.

    Every value has a default; all defaults together are 4 NPUs on a ring. Bandwidths are in GB/s, latencies in ns.
    """

    def __init__(
        self,
        topology=("Ring",),
        counts=(4,),
        bandwidth=50.0,
        latency=500.0,
        system=None,
        memory=None,
        groups=None,
        flags=(),
    ):
        dimensions = len(topology)
        self.topology, self.counts = list(topology), list(counts)
        self.bandwidth = list(bandwidth) if isinstance(bandwidth, (list, tuple)) else [bandwidth] * dimensions
        self.latency = list(latency) if isinstance(latency, (list, tuple)) else [latency] * dimensions
        self.system = {
            "scheduling-policy": "LIFO",
            "endpoint-delay": 10,
            "active-chunks-per-dimension": 1,
            "preferred-dataset-splits": 4,
            "collective-optimization": "localBWAware",
            "local-mem-bw": 1600,
            "boost-mode": 0,
            "roofline-enabled": 0,
            "peak-perf": 900,
        }
        for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
            self.system[kind + "-implementation"] = ["ring"] * dimensions
        self.system.update(system or {})
        self.memory = memory or {"memory-type": "NO_MEMORY_EXPANSION"}
        self.groups, self.flags = groups, list(flags)

    @property
    def num_npus(self):
        product = 1
        for count in self.counts:
            product *= count
        return product

    def network_text(self):
        def listed(values):
            return "[ " + ", ".join(map(str, values)) + " ]"

        return (
            f"topology: {listed(self.topology)}\nnpus_count: {listed(self.counts)}\n"
            f"bandwidth: {listed(self.bandwidth)}\nlatency: {listed(self.latency)}\n"
        )

    def write(self, folder):
        """Writes the files into a folder and returns the flags that name them."""
        folder = pathlib.Path(folder)
        (folder / "network.yml").write_text(self.network_text())
        (folder / "system.json").write_text(json.dumps(self.system, indent=1))
        (folder / "remote_memory.json").write_text(json.dumps(self.memory))
        if self.groups is not None:
            (folder / "comm_group.json").write_text(json.dumps(self.groups))
        return files_in(folder) + self.flags


def files_in(folder):
    """Returns the flags for the configuration files in a folder."""
    folder = pathlib.Path(folder)
    flags = [
        f"--system-configuration={folder / 'system.json'}",
        f"--network-configuration={folder / 'network.yml'}",
        f"--remote-memory-configuration={folder / 'remote_memory.json'}",
    ]
    if (folder / "comm_group.json").exists():
        flags.append(f"--comm-group-configuration={folder / 'comm_group.json'}")
    return flags


def write_workload(folder, traces, version="0.0.4"):
    """Writes the nodes traces[i] as the trace of NPU i, in place of older traces, and returns the flag that names the traces."""
    for old in pathlib.Path(folder).glob("workload.*.et"):
        old.unlink()
    for npu, nodes in enumerate(traces):
        chakra.write(pathlib.Path(folder) / f"workload.{npu}.et", nodes, version)
    return f"--workload-configuration={pathlib.Path(folder) / 'workload'}"


# ---- results ----


def finish_times(path):
    """Returns the finish time of every NPU in ps."""
    import h5py

    with h5py.File(path) as results:
        return [int(time) for time in results["npus/finish_time"][:]]


# Datasets of /npus: times, nodes and bytes of each NPU.
QUANTITIES = (
    "finish_time",
    "compute_time",
    "cpu_time",
    "communication_time",
    "exposed_communication_time",
    "memory_time",
    "exposed_memory_time",
    "idle_time",
    "nodes_completed",
    "bytes_sent",
)
TIME_COMPONENTS = ("compute_time", "cpu_time", "exposed_communication_time", "exposed_memory_time", "idle_time")


def check_identity(test, path):
    """Checks that the time components of each NPU add up to its finish time, and that none is negative."""
    import h5py

    with h5py.File(path) as results:
        components = [results["npus/" + name][:] for name in TIME_COMPONENTS]
        for npu, finish in enumerate(results["npus/finish_time"][:]):
            mine = [int(component[npu]) for component in components]
            test.assertEqual(
                sum(mine), int(finish), f"{path}: the times of NPU {npu} add up: {dict(zip(TIME_COMPONENTS, mine))}"
            )
            test.assertGreaterEqual(min(mine), 0, f"{path}: NPU {npu}: {dict(zip(TIME_COMPONENTS, mine))}")


def difference(one, other, without=()):
    """Returns what differs between two results files outside /kernel, the attributes of / and what is to be left out; empty if they are
    equal. With a worker, digests of the datasets are compared, and h5diff explains a difference."""
    found = workers.different_datasets(one, other)
    if found is None:
        return h5diff(one, other, without)
    found = [
        name for name in found if not any(name == path or name.startswith(path.rstrip("/") + "/") for path in without)
    ]
    return f"{h5diff(one, other, without)}\ndigests differ: {' '.join(found)}" if found else ""


def h5diff(one, other, without=()):
    """Returns what h5diff finds.

    Files with dimension scales hold lists of references, which h5diff cannot compare; its words about them are left out.
    """
    excluded = [word for path in ("/kernel", *without) for word in ("--exclude-path", path)]
    files = [*excluded, "--exclude-attribute", "/", str(one), str(other)]
    found = subprocess.run(["h5diff", *files], capture_output=True, text=True)
    if found.returncode != 0:
        return found.stdout + found.stderr or f"h5diff: exit code {found.returncode}"
    seen = subprocess.run(["h5diff", "-c", *files], capture_output=True, text=True)
    lines = [
        line
        for line in seen.stdout.splitlines()
        if line.strip() and "DIMENSION_LIST" not in line and "REFERENCE_LIST" not in line
    ]
    return "\n".join(
        line
        for line in lines
        if "ot comparable" in line and not line.startswith("Some objects") and "empty dataset" not in line
    )


def scattered_partition(path, num_npus, ranks):
    """Writes a rank map in which neighbours are mostly on different ranks, and every rank has an NPU if there are enough."""
    path.write_text("".join(f"{(npu * 7 + npu // 3) % ranks if npu >= ranks else npu}\n" for npu in range(num_npus)))
    return path


# ---- the folder shared/ beside the repository ----


def shared(path):
    """Returns a path in shared/. Skips the test with a reason if it is not there, as in a clone that stands alone."""
    found = SHARED / path
    if not found.exists():
        raise unittest.SkipTest(f"{found} is not there")
    return found


# Trace sets of the archive chakra-all-types that run as they are, one for each kind of node and of collective.
EACH_NODE_TYPE = (
    "ALL_GATHER",
    "ALL_REDUCE",
    "ALL_TO_ALL",
    "BARRIER",
    "BROADCAST",
    "REDUCE_SCATTER",
    "one_comp_node",
    "one_metadata_node_all_types",
    "one_remote_mem_load_node",
    "one_remote_mem_store_node",
    "two_comp_nodes_dependent",
    "two_comp_nodes_independent",
)


def unpacked(archive):
    """Returns the folder in which shared/traces/<archive>.tar.xz is unpacked, once for all tests of a build. Skips the test without it."""
    packed = shared(f"traces/{archive}.tar.xz")
    target = SCRATCH / "traces" / archive
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f"{archive}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = pathlib.Path(tempfile.mkdtemp(dir=target.parent))
            with tarfile.open(packed) as tar:
                tar.extractall(partial)
            partial.rename(target)
    return target


STAGE_TRACES = ("gpt_64_tp8sp2dp4_sp", "moe_64_dp4tp2pp2ep4", "llama-s_64_dp4tp4pp4")


def stage_arguments(name):
    """Returns the arguments that run the traces of 64 NPUs that the STAGE generator wrote. Skips the test without shared/."""
    traces, system = unpacked(f"stage-{name}") / name, shared("traces/system")
    return [
        f"--workload-configuration={traces / 'workload'}",
        f"--comm-group-configuration={traces / 'workload.json'}",
        f"--system-configuration={system / 'system.json'}",
        f"--network-configuration={system / 'net_64.yml'}",
        f"--remote-memory-configuration={system / 'mem.json'}",
    ]


# ---- runs that a test acts on ----

PROGRESS = ("--progress=plain", "--progress-interval=0.1")
FOR_EVER = "--iterations=100000000"


class Background:
    """A command that runs while the test goes on. Tests wait for what it does, such as a line or a file, and not for time to pass.

    The whole job is killed at the end of the test if it still runs.
    """

    def __init__(self, test, command):
        self.file = tempfile.NamedTemporaryFile(prefix="orrery-", suffix=".err")
        test.addCleanup(self.file.close)
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=self.file,
            stderr=self.file,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # a shell's background job ignores it
        test.addCleanup(self.kill)

    def text(self):
        """Returns what it has printed so far."""
        return pathlib.Path(self.file.name).read_text(errors="replace")

    def wait_until(self, condition, what, step=0.01):
        """Looks every `step` seconds whether a condition holds, until it does. Fails if the command ends before."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"the command ended with {self.process.returncode} before {what}: {self.text()}")
            if time.monotonic() > deadline:
                raise TookTooLong(f"not {what} after {PATIENCE} s: {self.text()}")
            time.sleep(step)

    def wait_until_simulating(self):
        """Waits until a run of the program with the options PROGRESS has simulated something."""
        self.wait_until(lambda: self.text().count(" of nodes, ") > 1, "simulating")

    def ranks(self):
        """Returns the process ids of the ranks that mpirun has started."""
        return children(self.process.pid)

    def signal(self, name):
        self.process.send_signal(getattr(signal, name))

    def kill(self):
        """Kills the whole job at once, and waits until no rank can write any more."""
        if self.process.poll() is None:
            kill_job(self.process, PATIENCE)

    def end(self):
        """Waits for the end. Returns the Outcome, which has all that was printed as `err`."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise TookTooLong(f"not done after {PATIENCE} s: {self.text()}") from None
        return Outcome(self.process.returncode, "", self.text())


# ---- tests ----


class Folder(unittest.TestCase):
    """A test with a folder of its own, which is removed at its end."""

    maxDiff = 2000
    longMessage = True

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def clear_folder(self):
        """Removes the files of one case, so that a test of many cases does not keep them all."""
        for path in self.folder.iterdir():
            path.unlink()

    def run_once(self, arguments, name="results.h5", ranks=0, timeout=PATIENCE):
        """Runs to success, checks the identity of times and returns the path of the results."""
        path = self.folder / name
        outcome = orrery("run", *arguments, f"--output={path}", "--quiet", "--force", ranks=ranks, timeout=timeout)
        self.assertEqual(outcome.code, 0, f"on {ranks or 'no'} ranks: {outcome.err[-2000:]}")
        check_identity(self, path)
        return path

    def simulate_flows(self, scenario, *options, ranks=0, code=0):
        """Runs `orrery flows` on a file or a dictionary until it ends with this code, and returns its JSON. 4: some flow never ends."""
        source, result = self.folder / "flows.yaml", self.folder / "flows.json"
        if isinstance(scenario, dict):
            source.write_text(json.dumps(scenario))
            scenario = source
        outcome = orrery("flows", scenario, f"--json={result}", "--force", *options, ranks=ranks)
        self.assertEqual(outcome.code, code, outcome.err)
        return json.loads(result.read_text())

    def refuse_flows(self, scenario, *parts, ranks=0):
        """Runs `orrery flows` on a dictionary, which must be refused with exit code 3 and a message that has these parts."""
        source = self.folder / "flows.yaml"
        source.write_text(json.dumps(scenario))
        outcome = orrery("flows", source, ranks=ranks)
        self.assertEqual(outcome.code, 3, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)

    def check_one_answer(
        self, arguments, num_npus, ranks=(2, 3) if FEWER_CASES else (1, 2, 3, 4), scattered=True, timeout=PATIENCE
    ):
        """Checks that runs on these numbers of ranks, with smaller cells, give the results of a run without mpirun. The run on 3 ranks
        has a scattered partition. Returns the path of the results without mpirun."""
        first = self.run_once(arguments, "alone.h5", timeout=timeout)
        scattered_ranks = min(3, num_npus)
        variants = [(r, []) for r in ranks if WIDELY or not scattered or r != scattered_ranks]
        if scattered:
            map = scattered_partition(self.folder / "scattered", num_npus, scattered_ranks)
            variants.append((scattered_ranks, [f"--partition={map}"]))
        if WIDELY:
            variants += [
                (r, [f"--partition={strategy}"])
                for r in (2, 3, 4, 8, 16)
                if r <= num_npus
                for strategy in ("block", "round-robin", "dimension:0", "metis")
            ]
        for r, more in variants:
            cells = f"--cell-size={CELL_SIZES[r % len(CELL_SIZES)]}"
            other = self.run_once(
                [*arguments, cells, *more], f"on{r}{'s' if more else ''}.h5", ranks=r, timeout=timeout
            )
            self.assertEqual(difference(first, other), "", f"{r} ranks {more}")
            other.unlink()
        return first


class Result(unittest.TextTestResult):
    """Counts the tests that passed, so that `main` can tell whether anything was tested, and says how long those took that took seconds."""

    passed = 0

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += not isinstance(test, WorkerAnswers)

    def stopTest(self, test):
        super().stopTest(test)
        if time.monotonic() - self.begin > 1:
            self.stream.writeln(f"    {time.monotonic() - self.begin:.1f} s: {test.id().removeprefix('__main__.')}")
        if workers.error:
            self.stop()


class Runner(unittest.TextTestRunner):
    resultclass = Result


def uses_shared(code, scopes):
    """Returns whether a function's code, or a function that it names in one of the scopes, uses the folder shared/."""
    names = set(code.co_names)
    if names & {"shared", "unpacked", "stage_arguments"}:
        return True
    named = (vars(scope).get(name) for name in names for scope in scopes)
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_names")]
    return any(
        uses_shared(other, scopes)
        for other in inner + [each.__code__ for each in named if hasattr(each, "__code__") and each.__code__ != code]
    )


class WorkerAnswers(unittest.TestCase):
    """The last test of each script that has used a worker."""

    def test_a_worker_answers_as_a_process_of_its_own(self):
        """The first jobs of the worker gave the exit code, the output and the results of a process of its own."""
        if not workers.answered:
            self.skipTest("no job has succeeded in a worker")
        self.assertEqual(workers.faults(), [])


class Loader(unittest.TestLoader):
    """Leaves out what is too long for the gate in the gate, and with ORRERY_ONLY_SHARED set all tests that do not use the folder shared/."""

    def getTestCaseNames(self, case):
        names = super().getTestCaseNames(case)
        if GATE:
            names = [
                name
                for name in names
                if not getattr(case, "is_long", False) and not hasattr(getattr(case, name), "is_long")
            ]
        if os.environ.get("ORRERY_ONLY_SHARED"):
            scopes = (case, sys.modules[case.__module__])
            names = [name for name in names if uses_shared(getattr(case, name).__code__, scopes)]
        return names

    def loadTestsFromModule(self, module, *arguments, **more):
        tests = super().loadTestsFromModule(module, *arguments, **more)
        return (
            self.suiteClass([tests, WorkerAnswers("test_a_worker_answers_as_a_process_of_its_own")])
            if workers.program
            else tests
        )


def main(arguments=None):
    """Runs the tests of the calling script; in the gate, and with ORRERY_ONLY_SHARED set, a part of them. Exits with 1 if a test failed, with
    77 if every test was skipped, else with 0."""
    program = unittest.main(argv=arguments, testRunner=Runner(verbosity=2), testLoader=Loader(), exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if program.result.passed else SKIPPED)
