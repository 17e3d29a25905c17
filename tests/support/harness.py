"""What the tests of the whole program share: running it, its input files, its results.

The environment names the program (ORRERY_BINARY), the folder shared/ beside the repository (ORRERY_SHARED) and a folder for
unpacked archives (ORRERY_SCRATCH); each has a default for running a test by hand from a checkout that was built.
"""
import collections
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
import unittest

import chakra

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ORRERY_BINARY", str(SOURCE / "build/release/bin/orrery"))
SHARED = pathlib.Path(os.environ.get("ORRERY_SHARED", SOURCE.parent / "shared"))
SCRATCH = pathlib.Path(os.environ.get("ORRERY_SCRATCH", SOURCE / "build/scratch"))
SANITIZED = bool(os.environ.get("ORRERY_SANITIZED"))  # fewer cases: everything is slower
WIDELY = bool(os.environ.get("ORRERY_TEST_WIDELY"))  # every comparison of ranks takes 2 to 16 of them, and every strategy: an hour
SKIPPED = 77                                           # exit code by which ctest knows a skipped test

Outcome = collections.namedtuple("Outcome", "code out err")


class TookTooLong(AssertionError):
    pass


def launch(arguments, ranks=0):
    """The command line; ranks = 0: without mpirun."""
    prefix = [str(SOURCE / "scripts/mpirun.sh"), str(ranks)] if ranks else []
    return prefix + [BINARY] + [str(argument) for argument in arguments]


def orrery(*arguments, ranks=0, timeout=60, cwd=None):
    """Runs the program to its end. Takes longer than `timeout` seconds: the whole job is killed and the test fails."""
    process = subprocess.Popen(launch(arguments, ranks), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True, cwd=cwd)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise TookTooLong(f"not done after {timeout} s: {' '.join(process.args)}\n{out}{err}") from None
    return Outcome(process.returncode, out, err)


def messages(outcome):
    """The lines of standard error that the program itself wrote, without mpirun's own report of a failed job."""
    lines, inside = [], False
    for line in outcome.err.splitlines():
        if line.startswith("-----") and len(line.strip("-")) == 0:
            inside = not inside
        elif not inside and line.strip() and not line.startswith("mpirun"):
            lines.append(line)
    return lines


def errors(outcome):
    """The messages of errors: one for each fault, whatever the number of lines."""
    return [line for line in messages(outcome) if "error:" in line.lower()]


# ---- systems in ASTRA-sim's files ----

class System:
    """network.yml, system.json, remote_memory.json and perhaps comm_group.json. Everything has a default: 4 NPUs on a ring."""

    def __init__(self, topology=("Ring",), counts=(4,), bandwidth=50.0, latency=500.0, system=None, memory=None, groups=None, flags=()):
        dimensions = len(topology)
        self.topology, self.counts = list(topology), list(counts)
        self.bandwidth = list(bandwidth) if isinstance(bandwidth, (list, tuple)) else [bandwidth] * dimensions
        self.latency = list(latency) if isinstance(latency, (list, tuple)) else [latency] * dimensions
        self.system = {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
                       "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0, "roofline-enabled": 0, "peak-perf": 900}
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
        return (f"topology: {listed(self.topology)}\nnpus_count: {listed(self.counts)}\n"
                f"bandwidth: {listed(self.bandwidth)}\nlatency: {listed(self.latency)}\n")

    def write(self, folder):
        """Writes the files and returns the flags that name them."""
        folder = pathlib.Path(folder)
        (folder / "network.yml").write_text(self.network_text())
        (folder / "system.json").write_text(json.dumps(self.system, indent=1))
        (folder / "remote_memory.json").write_text(json.dumps(self.memory))
        if self.groups is not None:
            (folder / "comm_group.json").write_text(json.dumps(self.groups))
        return files_in(folder) + self.flags


def files_in(folder):
    """The flags for the configuration files in a folder."""
    folder = pathlib.Path(folder)
    flags = [f"--system-configuration={folder / 'system.json'}", f"--network-configuration={folder / 'network.yml'}",
             f"--remote-memory-configuration={folder / 'remote_memory.json'}"]
    if (folder / "comm_group.json").exists():
        flags.append(f"--comm-group-configuration={folder / 'comm_group.json'}")
    return flags


def write_workload(folder, traces, version="0.0.4"):
    """traces[i] is the list of nodes of NPU i; returns the flag."""
    for npu, nodes in enumerate(traces):
        chakra.write(pathlib.Path(folder) / f"workload.{npu}.et", nodes, version)
    return f"--workload-configuration={pathlib.Path(folder) / 'workload'}"


# ---- results ----

def finish_times(path):
    """Picoseconds, one for each NPU."""
    import h5py
    with h5py.File(path) as results:
        return [int(time) for time in results["npus/finish_time"][:]]


PARTS = ("compute_time", "cpu_time", "exposed_communication_time", "exposed_memory_time", "idle_time")


def check_identity(test, path):
    """For each NPU the parts add up to the finish time, and no part is negative."""
    import h5py
    with h5py.File(path) as results:
        parts = [results["npus/" + name][:] for name in PARTS]
        for npu, finish in enumerate(results["npus/finish_time"][:]):
            mine = [int(part[npu]) for part in parts]
            test.assertEqual(sum(mine), int(finish), f"{path}: the times of NPU {npu} add up: {dict(zip(PARTS, mine))}")
            test.assertGreaterEqual(min(mine), 0, f"{path}: NPU {npu}: {dict(zip(PARTS, mine))}")


def difference(one, other):
    """What h5diff finds between two files outside /kernel and the attributes of /; empty if nothing. Files with dimension scales
    hold lists of references, which h5diff cannot compare."""
    files = ["--exclude-path", "/kernel", "--exclude-attribute", "/", str(one), str(other)]
    found = subprocess.run(["h5diff", *files], capture_output=True, text=True)
    if found.returncode != 0:
        return found.stdout + found.stderr or f"h5diff: exit code {found.returncode}"
    seen = subprocess.run(["h5diff", "-c", *files], capture_output=True, text=True)
    lines = [line for line in seen.stdout.splitlines() if line.strip() and "DIMENSION_LIST" not in line and "REFERENCE_LIST" not in line]
    return "\n".join(line for line in lines if "ot comparable" in line and not line.startswith("Some objects") and "empty dataset" not in line)


def scattered_partition(path, num_npus, ranks):
    """A rank map in which neighbours are mostly on different ranks, and every rank has an NPU if there are enough."""
    path.write_text("".join(f"{(npu * 7 + npu // 3) % ranks if npu >= ranks else npu}\n" for npu in range(num_npus)))
    return path


# ---- archives of real traces ----

def unpacked(archive):
    """The folder in which shared/traces/<archive>.tar.xz is unpacked, once for all tests of a build."""
    target = SCRATCH / "traces" / archive
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f"{archive}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            partial = pathlib.Path(tempfile.mkdtemp(dir=target.parent))
            with tarfile.open(SHARED / "traces" / f"{archive}.tar.xz") as tar:
                tar.extractall(partial)
            partial.rename(target)
    return target


def skip_without(path, what):
    """Ends the test program as skipped, with a word, if shared/ is not beside the repository."""
    if not path.exists():
        print(f"skipped: {what} are not here ({path})")
        sys.exit(SKIPPED)


class Folder(unittest.TestCase):
    """A test with a folder of its own, removed at its end."""

    maxDiff = 2000
    longMessage = True

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_once(self, arguments, name="results.h5", ranks=0, timeout=60):
        """Runs to success, checks the identity of times, returns the path of the results."""
        path = self.folder / name
        outcome = orrery("run", *arguments, f"--output={path}", "--quiet", "--force", ranks=ranks, timeout=timeout)
        self.assertEqual(outcome.code, 0, f"on {ranks or 'no'} ranks: {outcome.err[-2000:]}")
        check_identity(self, path)
        return path

    def check_one_answer(self, arguments, num_npus, ranks=(1, 2, 3, 4), scattered=True, timeout=60):
        """The results on one rank without mpirun; those on other numbers of ranks and a scattered partition are the same."""
        first = self.run_once(arguments, "alone.h5", timeout=timeout)
        variants = [(r, []) for r in ranks]
        if scattered:
            r = min(3, num_npus)
            variants.append((r, [f"--partition={scattered_partition(self.folder / 'scattered', num_npus, r)}"]))
        if WIDELY:
            variants += [(r, [f"--partition={strategy}"]) for r in (2, 3, 4, 8, 16) if r <= num_npus
                         for strategy in ("block", "round-robin", "dimension:0", "metis")]
        for r, more in variants:
            other = self.run_once(list(arguments) + more, f"on{r}{'s' if more else ''}.h5", ranks=r, timeout=timeout)
            self.assertEqual(difference(first, other), "", f"{r} ranks {more}")
            other.unlink()
        return first


def main():
    unittest.main(verbosity=2, buffer=False)
