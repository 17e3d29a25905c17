"""A Slurm on this machine for tests: one controller and two emulated nodes of two CPUs, in a temporary folder, with a munge of its own.

    with slurm_cluster.Cluster() as slurm:
        job = slurm.sbatch("job.sh", "argument", options=["--ntasks=2"])
        state, code = slurm.wait(job)

Nothing of the machine's own Slurm, if there is one, is read or touched. Whatever is started is stopped at the end, after failures too:
the daemons are children that die with the test, and orphans of jobs become the test's own children and are killed. If the test itself is
killed, a guard process sees its end and does the same.
"""
import atexit
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

NODES = 2
PATIENCE = 300  # seconds: a limit against hangs, far above what anything takes on a loaded machine
DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "srun", "scontrol", "scancel", "sinfo", "munge")
OVER = {
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
    "PREEMPTED",
}
SET_CHILD_SUBREAPER, SET_PDEATHSIG = 36, 1  # of prctl
libc = ctypes.CDLL(None, use_errno=True)

CONFIGURATION = """\
ClusterName=orrery
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
MessageTimeout=20
SlurmctldTimeout=120
SlurmdTimeout=300
InactiveLimit=0
MinJobAge=600
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Unavailable(Exception):
    """Raised where no Slurm can be started; says why."""


class Failed(AssertionError):
    pass


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin")


def check_available():
    """Raises Unavailable with the reason if no Slurm can be started here."""
    if os.geteuid() != 0:
        raise Unavailable("only root can start Slurm's daemons")
    missing = [name for name in DAEMONS + COMMANDS if program(name) is None]
    if missing:
        raise Unavailable(f"{', '.join(missing)} not found (Debian: slurm-wlm, munge)")
    plugins = subprocess.run(
        ["srun", "--mpi=list"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "SLURM_CONF": "/dev/null"},
    )
    if "pmix" not in plugins.stdout + plugins.stderr and not any(
        pathlib.Path("/usr/lib").glob("**/slurm*/mpi_pmix*.so")
    ):
        raise Unavailable("Slurm's plug-in for PMIx not found (Debian: slurm-wlm-basic-plugins)")
    try:
        address = socket.gethostbyname(host())
    except OSError as error:
        raise Unavailable(f"the host name {host()} has no address ({error})") from None
    if not address.startswith("127."):
        raise Unavailable(f"the host name {host()} is {address}, not this machine's loopback")


def host():
    return socket.gethostname().split(".")[0]


def free_ports(count):
    """Returns the first of `count` ports in a row that nobody listens on, below the range from which the system takes ports by itself."""
    first = 17000 + os.getpid() % 1000 * 8
    for start in range(first, first + 4000, 8):
        held = []
        try:
            for port in range(start, start + count):
                held.append(socket.socket())
                held[-1].bind(("127.0.0.1", port))
            return start
        except OSError:
            continue
        finally:
            for one in held:
                one.close()
    raise Unavailable("no free ports")


def children(of):
    """Returns the process ids of all descendants of a process, from /proc."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, new = set(), {of}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found


def children_of_this():
    """Returns the process ids of all descendants of this process."""
    return children(os.getpid())


def reap():
    """Takes the exit codes of orphans that became this process's children and that no Popen waits for."""
    for pid in children_of_this():
        try:
            if (pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                os.waitpid(pid, os.WNOHANG)
        except OSError:
            continue


def guard(folder):
    """Waits for the end of standard input, which is that of the test; then kills what still runs with this cluster's environment."""
    sys.stdin.read()
    mark = f"SLURM_CONF={folder}/slurm.conf".encode()
    for _ in range(50):
        left = [
            pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid != os.getpid() and has(pid, mark)
        ]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not left:
            break
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)


def has(pid, mark):
    """Returns whether a process was started with this line in its environment."""
    try:
        return mark in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


class Cluster:
    """A running cluster, as a context manager. Commands of Slurm that it runs find this cluster and no other."""

    def __init__(self):
        check_available()
        self.daemons = []
        self.folder = None

    # ---- start and stop ----

    def __enter__(self):
        libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.before = children_of_this()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-slurm-", dir="/tmp"))
        self.guard = subprocess.Popen(
            [sys.executable, __file__, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.before.add(self.guard.pid)
        atexit.register(self.stop)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        folder = self.folder
        folder.chmod(0o755)
        for name in ["state"] + [f"{kind}-n{n}" for n in range(1, NODES + 1) for kind in ("spool", "tmp")]:
            (folder / name).mkdir(mode=0o755)
        port = free_ports(NODES + 1)
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=host(), folder=folder, nodes=NODES, controller=port, first=port + 1, last=port + NODES
            )
        )
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "SRUN", "PMI", "OMPI_", "PRTE"))
        }
        # As root; more ranks than cores; nodes that are the same machine: no pinning, and talk over TCP as between machines.
        self.environment.update(
            SLURM_CONF=str(folder / "slurm.conf"),
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_btl="tcp,self",
            OMPI_MCA_mpi_yield_when_idle="1",
            OMPI_MCA_hwloc_base_binding_policy="none",
        )
        self.daemon(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log",
            f"--seed-file={folder}/munge.seed",
            "--num-threads=2",
        )
        self.until(lambda: (folder / "munge.socket").exists(), "munged")
        self.daemon("slurmctld", "-D", "-c")
        for n in range(1, NODES + 1):
            self.daemon("slurmd", "-D", "-N", f"n{n}")
        self.until(
            lambda: self.command("sinfo", "--noheader", "--Node", "--format=%T", check=False).split()
            == ["idle"] * NODES,
            "idle nodes",
        )

    def daemon(self, name, *arguments):
        log = open(self.folder / f"{name}-{len(self.daemons)}.out", "wb")
        parent = os.getpid()

        def dies_with_parent():
            libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        with log:
            self.daemons.append(
                subprocess.Popen(
                    [program(name), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self.environment,
                    cwd=self.folder,
                    start_new_session=True,
                    preexec_fn=dies_with_parent,
                )
            )

    def stop(self):
        """Cancels jobs, ends the daemons, kills what is left, removes the folder."""
        if self.folder is None:
            return
        try:
            if len(self.daemons) > 1:
                subprocess.run(
                    ["scancel", "--signal=KILL", "--full", "--user=root"],
                    env=self.environment,
                    capture_output=True,
                    timeout=5,
                )
        except (subprocess.TimeoutExpired, OSError):
            pass
        for daemon in reversed(self.daemons):
            if daemon.poll() is None:
                daemon.send_signal(signal.SIGTERM if daemon is not self.daemons[0] else signal.SIGINT)
        deadline = time.monotonic() + 5
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait(5)
        deadline = time.monotonic() + 5
        while (left := children_of_this() - self.before) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            reap()
            time.sleep(0.02)
        libc.prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        self.guard.stdin.close()
        try:
            self.guard.wait(10)
        except subprocess.TimeoutExpired:
            self.guard.kill()
            self.guard.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder, self.daemons = None, []
        atexit.unregister(self.stop)

    # ---- use ----

    def until(self, condition, what):
        """Waits until a condition holds. Raises Failed if a daemon ends before, or after PATIENCE."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            dead = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise Failed(
                    f"{what}: {' and '.join(dead) + ' ended' if dead else f'not after {PATIENCE} s'}\n{self.logs()}"
                )
            time.sleep(0.1)

    def logs(self, lines=12):
        """Returns the last lines of all logs."""
        texts = []
        for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")):
            text = path.read_text(errors="replace").splitlines()[-lines:]
            texts += [f"---- {path.name}"] + text if text else []
        return "\n".join(texts)

    def command(self, *arguments, check=True, timeout=PATIENCE, env=None):
        """Runs one of Slurm's commands and returns what it prints. Raises Failed if it fails, unless `check` is false."""
        done = self.run(*arguments, timeout=timeout, env=env)
        if check and done.returncode != 0:
            raise Failed(
                f"{' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}"
            )
        return done.stdout

    def run(self, *arguments, timeout=PATIENCE, env=None, cwd=None):
        """Runs a command that ends by itself, as srun or a script that submits. Kills its whole process group and raises Failed if it
        does not."""
        process = subprocess.Popen(
            [str(argument) for argument in arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**self.environment, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failed(f"not done after {timeout} s: {' '.join(process.args)}\n{out}{err}\n{self.logs()}") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def sbatch(self, script, *arguments, options=(), env=None):
        """Submits a script and returns the number of the job."""
        return self.command("sbatch", "--parsable", *options, script, *arguments, env=env).split(";")[0].strip()

    def job(self, number):
        """Returns what Slurm knows of a job: a list of one dictionary, or of one for each task of an array."""
        text = self.command("scontrol", "--oneliner", "show", "job", number)
        return [
            dict(re.findall(r"(?:^|\s)([A-Z]\w*(?:/\w+)?)=(\S*)", line)) for line in text.splitlines() if line.strip()
        ]

    def cancel_all(self):
        """Ends what runs or waits, and waits until it is gone."""
        if self.command("squeue", "--noheader", "--format=%A").strip():
            self.command("scancel", "--user=root", "--signal=KILL", "--full", check=False)
            self.command("scancel", "--user=root", check=False)
            self.until(lambda: not self.command("squeue", "--noheader", "--format=%A").strip(), "no more jobs")

    def wait(self, number):
        """Waits for the end of a job. Returns (state, exit code), or a list of them for an array."""
        deadline = time.monotonic() + PATIENCE
        while True:
            jobs = self.job(number)
            if all(job["JobState"] in OVER for job in jobs):
                reap()
                ends = [
                    (job["JobState"], int(job["ExitCode"].split(":")[0]))
                    for job in sorted(jobs, key=lambda job: int(job.get("ArrayTaskId", 0)))
                ]
                return ends if "ArrayTaskId" in jobs[0] else ends[0]
            if time.monotonic() > deadline:
                raise Failed(f"job {number} is {[job['JobState'] for job in jobs]} after {PATIENCE} s\n{self.logs()}")
            time.sleep(0.1)


if __name__ == "__main__":
    guard(sys.argv[1])
