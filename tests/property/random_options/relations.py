"""What must hold for a case: how its runs end, and what follows from one run for another.

A relation is a function of a `Trial` and a random generator. It returns what is wrong, or an empty text, and raises NotApplicable where it
says nothing about the case. It may run the program as often as it likes."""
import collections
import copy
import math
import re
import shutil
import time

import chakra
import drawing
import harness
from case_worker import TookTooLong, Worker, WorkerFailed

MOST_RANKS = 4
FAULT = re.compile(r"fault of Orrery|please report|Sanitizer|runtime error:|Assertion|terminate called")


class NotApplicable(Exception):
    pass


class Runner:
    """Runs commands in workers (case_worker.py), which start again after a crash."""

    def __init__(self, program, patience, most_ranks=MOST_RANKS):
        self.program, self.patience, self.most_ranks = program, patience, most_ranks
        self.workers, self.count, self.seconds = {}, 0, collections.Counter()

    def run(self, arguments, ranks, folder):
        """Returns (exit code, standard error, digests or None). The code is a text if the program died or did not end."""
        self.count += 1
        ranks = min(ranks, self.most_ranks)
        size = self.most_ranks if ranks > 1 else 1
        begin = time.monotonic()
        if size not in self.workers:
            self.workers[size] = Worker(
                [self.program] if size == 1 else [harness.SOURCE / "scripts/mpirun.sh", size, self.program], size
            )
        worker = self.workers[size]
        try:
            outcome, digests = worker.run([str(argument) for argument in arguments], ranks, folder, self.patience)
        except WorkerFailed as error:
            self.drop(size)
            return "crash", without_hdf5(str(error)), None
        except TookTooLong as error:
            self.drop(size)
            return "hang", str(error), None
        self.seconds[ranks] += time.monotonic() - begin
        if not worker.is_alive():
            self.drop(size)
        return outcome.code, outcome.err, digests

    def drop(self, size):
        self.workers.pop(size).close()

    def end(self):
        """Ends the workers. Returns what is wrong with their ends, such as a leak that a sanitizer reports."""
        wrong = [worker.end(self.patience) for worker in self.workers.values()]
        self.workers = {}
        return [text for text in wrong if text]


def without_hdf5(text):
    """Returns a text without the lines that HDF5 prints about files that are not there."""
    return "\n".join(
        line for line in text.splitlines() if not re.match(r"HDF5-DIAG|  #\d{3}: |    (major|minor): ", line)
    )


def bad_end(code, err):
    """Returns why no command may end so; empty if it may. A refusal says what is wrong with the input."""
    if code in ("crash", "hang"):
        return f"{code}: {err[-1500:]}"
    if found := FAULT.search(err):
        return f"exit code {code}, '{found[0]}': {err[-1500:]}"
    if code in (2, 3, 4) and "error:" not in err:
        return f"exit code {code} without a message: {err[-500:]}"
    return "" if code in (0, 2, 3, 4, 75) else f"exit code {code}: {err[-1500:]}"


class Trial:
    """A case in a folder, and the results of its first run."""

    def __init__(self, runner, case, folder):
        self.runner, self.case, self.folder, self.commands = runner, case, folder, []
        self.arguments = case.write(folder)
        self.code, self.err, self.digests = self.run("base.h5")
        self.wrong = bad_end(self.code, self.err)
        self.rows = self.read("base.h5") if self.code == 0 else {}

    @property
    def npus(self):
        return len(self.rows["npus/finish_time"])

    def command(self, *arguments, ranks=0):
        """Runs a command. Raises AssertionError if it ends as none may."""
        self.commands.append(
            (f"scripts/mpirun.sh {ranks} " if ranks else "")
            + "orrery "
            + " ".join(f"'{a}'" if " " in str(a) else str(a) for a in arguments)
        )
        return self.runner.run(arguments, ranks, self.folder)

    def run(self, output, *more, ranks=0, arguments=None):
        return self.command(
            "run",
            *(self.arguments if arguments is None else arguments),
            f"--output={output}",
            "--force",
            "--quiet",
            *more,
            ranks=ranks,
        )

    def other(self, output, *more, ranks=0, arguments=None, may_refuse=False):
        """Makes another run, which must succeed. Returns its digests."""
        code, err, digests = self.run(output, *more, ranks=ranks, arguments=arguments)
        if wrong := bad_end(code, err):
            raise AssertionError(wrong)
        if code in (2, 3) and may_refuse:
            raise NotApplicable
        if code != 0:
            raise AssertionError(f"exit code {code}: {err[-1500:]}")
        return digests

    def read(self, output):
        """Returns the rows of the tables of NPUs and networks, and the simulated time."""
        import h5py

        with h5py.File(self.folder / output) as results:
            rows = {f"npus/{name}": results["npus"][name][:].tolist() for name in harness.QUANTITIES}
            rows["time"] = int(results.attrs["simulated_time"])
            if "network/utilisation" in results:
                rows["utilisation"] = results["network/utilisation"][:].tolist()
            if "network/links/busy_time" in results:
                rows["links"] = list(
                    zip(*(results[f"network/links/{name}"][:].tolist() for name in ("dimension", "bytes", "busy_time")))
                )
            rows["resolved"] = results["config/resolved"][()].decode()
        return rows

    def differing(self, digests, prefix="", without=()):
        """Returns the datasets that differ from those of the first run, as a text."""
        names = sorted(
            name for name in digests.keys() | self.digests.keys() if digests.get(name) != self.digests.get(name)
        )
        names = [
            name
            for name in names
            if name.lstrip("/").startswith(prefix) and not any(name.lstrip("/").startswith(other) for other in without)
        ]
        return f"these datasets differ: {' '.join(names[:12])}" if names else ""

    def differing_rows(self, output):
        rows = self.read(output)
        for name in (f"npus/{name}" for name in harness.QUANTITIES):
            for npu, pair in enumerate(zip(self.rows[name], rows[name])):
                if pair[0] != pair[1]:
                    return f"{name} of NPU {npu}: {pair[0]} in the first run, {pair[1]} in the other"
        return ""

    def written(self, case, name):
        """Writes another case beside the first one. Returns the arguments of its run."""
        return case.write(self.folder, name)


def never_stuck(config):
    """Returns whether a workload is generated, its network loses no packet for good, and nothing waits in one stream for what waits behind
    it: sends for receives with rendezvous, or collectives, which members that arrive apart begin in other orders if the last one is
    first. The message of such a run names more streams."""
    if config is None or "traces" in config.get("workload", {}) or "graph" in config["system"]["network"]:
        return False
    communication = config["system"].get("communication", {})
    in_turn = communication.get("rendezvous") or communication.get("order") == "lifo"
    if in_turn and communication.get("streams", 1) == 1:
        return False
    lossy = {
        "buffer",
        "reserve",
        "headroom",
        "resume-offset",
        "share-shift",
        "flow-control",
        "credits",
        "queue",
        "acknowledgement",
        "pause-frame",
        "header",
    }
    return not lossy & set(config["system"]["network"].get("packets", {}))


def first_run(trial, random):
    """The run ends with results, or with a refusal that says why; never with a fault of its own. The parts of an NPU's time add up."""
    if trial.wrong:
        return trial.wrong
    if trial.code == 4 and never_stuck(trial.case.config):
        return f"a generated workload is stuck: {trial.err[:1500]}"
    if trial.code != 0:
        return ""
    parts = [
        trial.rows[f"npus/{name}"]
        for name in ("compute_time", "cpu_time", "exposed_communication_time", "exposed_memory_time", "idle_time")
    ]
    for npu, (finish, *times) in enumerate(zip(trial.rows["npus/finish_time"], *parts)):
        if sum(times) != finish or min(times) < 0:
            return f"NPU {npu} finishes at {finish}, and the parts of its time are {times}"
    return ""


def partition_of(trial, random, ranks):
    """Returns a random option for the NPUs of each rank; none for some."""
    if not 1 <= ranks <= trial.npus or random.random() < 0.2:
        return []
    kind = random.choice(["block", "round-robin", "dimension", "metis", "map", "map"])
    if kind == "map":
        hosts = [*range(ranks), *(random.randrange(ranks) for _ in range(trial.npus - ranks))]
        random.shuffle(hosts)
        (trial.folder / "map").write_text("".join(f"{host}\n" for host in hosts))
        return ["--partition=map"]
    return [f"--partition={kind}:0" if kind == "dimension" else f"--partition={kind}"]


def cells_of(random):
    return random.choice([[], ["--cell-size=1"], ["--cell-size=2"], ["--cell-size=3"], ["--cell-size=7"]])


def ranks(trial, random):
    """One answer on any number of ranks, with any partition and any size of cells."""
    number = min(random.choice([1, 2, 2, 2, 3, 3, 4]), trial.runner.most_ranks)
    more = partition_of(trial, random, number) + cells_of(random)
    return trial.differing(trial.other("ranks.h5", *more, ranks=number))


def refused_on_ranks(trial, random):
    """What is refused is refused with one code and one message on any number of ranks."""
    number = min(random.choice([2, 3, 4]), trial.runner.most_ranks)
    code, err, _ = trial.run("ranks.h5", ranks=number)
    if wrong := bad_end(code, err):
        return wrong
    if code != trial.code:
        return f"exit code {trial.code} without MPI, {code} on {number} ranks: {trial.err[-600:]}\n{err[-600:]}"
    return ""


def folded(trial, random):
    """The run with NPUs that are alike simulated once has the results of the run without."""
    number = min(random.choice([0, 0, 2, 3]), trial.runner.most_ranks)
    return trial.differing(trial.other("folded.h5", "--fold", *cells_of(random), ranks=number, may_refuse=True))


def resumed(trial, random):
    """A run that is stopped, or writes checkpoints, goes on to the results of a run that is not."""
    for path in trial.folder.glob("run.chk*"):
        path.unlink()
    stop = [f"--max-walltime={random.choice([0.005, 0.02, 0.03, 0.05])}"] if random.random() < 0.5 else []
    fold = ["--fold"] if random.random() < 0.2 else []
    first, second = (
        min(random.choice(numbers), trial.runner.most_ranks) for numbers in ([0, 0, 0, 2, 3], [0, 0, 2, 3, 4])
    )
    code, err, digests = trial.run(
        "stopped.h5",
        "--checkpoint=run.chk",
        "--checkpoint-interval=0.0001",
        *stop,
        *fold,
        *cells_of(random),
        ranks=first,
    )
    if wrong := bad_end(code, err):
        return wrong
    if code in (2, 3):
        raise NotApplicable
    if code == 0 and (wrong := trial.differing(digests)):
        return f"with checkpoints, {wrong}"
    if not list(trial.folder.glob("run.chk*")):
        raise NotApplicable
    partition = [] if fold or second == 0 else partition_of(trial, random, second)
    return trial.differing(
        trial.other("resumed.h5", "--restart=run.chk", *fold, *partition, *cells_of(random), ranks=second)
    )


def resolved(trial, random):
    """The configuration in the results repeats the run."""
    (trial.folder / "resolved.yaml").write_text(trial.rows["resolved"])
    run = []
    if trial.case.config is not None:
        for name, value in trial.case.config.get("run", {}).items():
            run.append(f"--set=run.{name}={drawing.text_of(value)}")
    return trial.differing(trial.other("resolved.h5", *run, arguments=["resolved.yaml"]), without=("config",))


def recorded(trial, random):
    """What a run records does not change what it simulates."""
    more = ["--timeline", f"--record-iterations={random.choice([1, 2, 100])}"]
    config = trial.case.config or {}
    if "replay-only" in config.get("workload", {}):
        raise NotApplicable
    packets = config.get("system", {}).get("network", {}).get("model") == "packet"
    more += ["--record-flows", "--queue-bins=10"] if packets else ["--record-load"]
    trial.other("recorded.h5", *more)
    return trial.differing_rows("recorded.h5")


def checked(trial, random):
    """`orrery check` accepts what runs."""
    code, err, _ = trial.command("check", *trial.arguments)
    return bad_end(code, err) or (
        "" if code == 0 else f"orrery check ends with {code} for what orrery run accepts: {err[-800:]}"
    )


def shown(trial, random):
    """Whatever else is asked about a case or its results ends in order."""
    kinds = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"]
    size = random.choice(["1 B", "7 B", "1 MB", "1 GB"])
    code, err, _ = trial.command(
        *random.choice(
            [
                ["show", "topology", *trial.arguments],
                ["show", "network", *trial.arguments],
                ["show", "tables", *trial.arguments],
                ["show", "collective", *trial.arguments, f"--kind={random.choice(kinds)}", f"--bytes={size}"],
                [
                    "show",
                    "collective",
                    *trial.arguments,
                    f"--kind={random.choice(kinds)}",
                    f"--bytes={size}",
                    f"--npus=0-{random.randrange(trial.npus)}",
                ],
                ["generate", *trial.arguments, "--dry-run"],
                [
                    "partition",
                    *trial.arguments,
                    f"--ranks={random.choice([1, 2, 3, 5])}",
                    "--output=m",
                    "--force",
                    f"--strategy={random.choice(['block', 'round-robin', 'metis', 'dimension:0'])}",
                ],
                ["show", "kernel", "base.h5"],
                ["show", "scaling", "base.h5"],
                ["show", "flows", "base.h5"],
                ["show", "queues", "base.h5"],
                ["show", "collisions", "base.h5"],
                ["show", "timeline", "base.h5", "--chrome=timeline.json", "--force"],
            ]
        )
    )
    return bad_end(code, err)


def own_config(trial):
    if trial.case.config is None:
        raise NotApplicable
    return trial.case.config


def generated(trial, random):
    """The traces that `orrery generate` writes run like the step that `orrery run` generates."""
    config = own_config(trial)
    if "workload" not in config or "model" not in config["workload"] or "stack" in config:
        raise NotApplicable
    if config["system"].get("compute", {}).get("model") in ("products", "table", "systolic"):
        raise NotApplicable  # they estimate the operations of a generated workload one by one
    code, err, _ = trial.command("generate", "config.yaml", "--output=w", "--force")
    if wrong := bad_end(code, err):
        return wrong
    if code != 0:
        return f"orrery generate ends with {code}: {err[-800:]}"

    def from_traces(other):
        workload = other["workload"]
        if precision := workload.get("parallel", {}).get("precision"):
            workload["precision"] = precision
        for name in ("model", "parallel", "dependencies"):  # the last one says how traces are read
            workload.pop(name, None)
        workload["traces"] = "w"
        if (trial.folder / "w.json").exists():
            workload["groups"] = "w.json"

    trial.other("generated.h5", arguments=trial.written(trial.case.with_config(from_traces), "traces.yaml"))
    return trial.differing_rows("generated.h5")


def alone(trial, random):
    """A workload that is the only job of its system has the results of the workload without jobs."""
    config = own_config(trial)
    if "workload" not in config or "stack" in config:
        raise NotApplicable

    def as_job(other):
        other["jobs"] = [{"npus": trial.npus, "workload": other.pop("workload")}]

    more = ["--jobs-alone"] if random.random() < 0.3 else []
    trial.other(
        "alone.h5", *more, arguments=trial.written(trial.case.with_config(as_job), "jobs.yaml"), may_refuse=bool(more)
    )
    return trial.differing_rows("alone.h5")


def apart(trial, random):
    """Jobs that share nothing do not slow each other down."""
    config = own_config(trial)
    if "jobs" not in config or config["system"]["network"].get("model", "congestion-unaware") != "congestion-unaware":
        raise NotApplicable
    if config["system"].get("remote-memory", {}).get("kind", "none") not in ("none", "per-npu") or config.get(
        "perturbation", {}
    ).get("repetitions"):
        raise NotApplicable
    trial.other("apart.h5", "--jobs-alone", may_refuse=True)
    import h5py

    with h5py.File(trial.folder / "apart.h5") as results:
        together, alone = results["jobs/run_time"][:].tolist(), results["jobs/alone_time"][:].tolist()
    return "" if together == alone else f"the jobs take {together} ps together and {alone} ps alone"


def no_faster_than_alone(trial, random):
    """No message of the packet network arrives sooner than in an empty network."""
    config = own_config(trial)
    if config["system"]["network"].get("model") != "packet" or "replay-only" in config.get("workload", {}):
        raise NotApplicable
    trial.other("flows.h5", "--record-flows")
    import h5py

    with h5py.File(trial.folder / "flows.h5") as results:
        if "network/flows/alone" not in results:
            raise NotApplicable
        flows = {name: results[f"network/flows/{name}"][:].tolist() for name in ("start", "received", "alone")}
    for number, (start, received, least) in enumerate(zip(*flows.values())):
        if 0 <= received < start + least - 1000:
            return f"message {number} takes {received - start} ps, and {least} ps in an empty network"
    return ""


def fast_forward(trial, random):
    """The packet network has the same results if it simulates each period of a transfer."""
    config = own_config(trial)
    if config["system"]["network"].get("model") != "packet":
        raise NotApplicable

    def change(other):
        packets = other["system"]["network"].setdefault("packets", {})
        packets["fast-forward"] = not packets.get("fast-forward", True)

    trial.other("each.h5", arguments=trial.written(trial.case.with_config(change), "each.yaml"))
    return trial.differing_rows("each.h5")


def size_of(entry):
    return math.prod(map(int, str(entry["size"]).split("x")))


def keeps_its_order(config):
    """Returns whether no event of a case can pass another one when the network becomes faster: the NPUs of one job are alike and carry out
    collectives of all of them, one after the other."""
    system, workload = config["system"], config.get("workload", {})
    network, collectives = system["network"], system.get("collectives", {})
    dimensions = [entry for entry in network["dimensions"] if str(entry["size"]) != "1"]
    if "model" not in workload or workload["model"].get("kind") != "layers" or "late" in workload["model"]:
        return False
    if workload["parallel"].get("zero", 0) > 1 or "graph" in network or {"perturbation", "stack"} & set(config):
        return False
    if {"library", "custom", "compute-share"} & set(collectives) or "gpu" in system:
        return False
    if (
        any("Torus" in entry["shape"] for entry in dimensions)
        or collectives.get("chunks", 1) > 1
        or collectives.get("dimension-order", "ascending") != "ascending"
    ):
        return False
    if (
        {"streams", "order"} & (set(system.get("communication", {})) | set(workload))
        or collectives.get("queues", 1) > 1
        or collectives.get("active-chunks", 1) > 1
    ):
        return False
    if network.get("model", "congestion-unaware") == "congestion-unaware":
        return True
    return (
        len(dimensions) == 1
        and dimensions[0]["shape"] in ("Ring", "Switch", "FullyConnected")
        and (network["model"] != "packet" or network.get("packets") == {"window": "none"})
        and all(collectives.get(kind, ["ring"]) == ["ring"] for kind in ("all-reduce", "all-gather", "reduce-scatter"))
        and (dimensions[0]["shape"] == "Ring" or "all-reduce" in collectives)
    )


def monotone(trial, random):
    """More bandwidth, less latency and less oversubscription do not make a run longer where no order can change."""
    config = own_config(trial)
    if not keeps_its_order(config):
        raise NotApplicable
    kind = random.choice(["bandwidth", "latency", "oversubscription", "links", "endpoint-delay"])
    chosen = random.randrange(len(config["system"]["network"]["dimensions"]))

    def faster(other):
        entry = other["system"]["network"]["dimensions"][chosen]
        if kind == "bandwidth":
            number, unit = entry["bandwidth"].split()
            entry["bandwidth"] = f"{float(number) * random.choice([1.1, 1.5, 2, 10]):.10g} {unit}"
        elif kind == "latency":
            number, unit = entry["latency"].split()
            entry["latency"] = f"{float(number) * random.choice([0, 0.5, 0.9]):.10g} {unit}"
        elif kind == "links":
            entry["links"] = entry.get("links", 1) + random.choice([1, 2])
        elif kind == "endpoint-delay":
            other["system"].setdefault("collectives", {})["endpoint-delay"] = "0 ns"
        elif entry.pop("oversubscription", 1) == 1:
            raise NotApplicable

    trial.other("faster.h5", arguments=trial.written(trial.case.with_config(faster), "faster.yaml"), may_refuse=True)
    before, after = trial.rows["time"], trial.read("faster.h5")["time"]
    packet = config["system"]["network"].get("model") == "packet"
    # Each message may be rounded up by one unit of time.
    if after > before * (1.01 if packet else 1) + (10**6 if config["system"].get("rules") == "astra-sim" else 2000):
        return f"{before} ps before, {after} ps with {'more' if kind in ('bandwidth', 'links') else 'less'} {kind} in dimension {chosen}"
    return ""


def capacity(trial, random):
    """No link carries more than its bandwidth."""
    config = own_config(trial)
    model = config["system"]["network"].get("model", "congestion-unaware")
    if model == "congestion-unaware" and not keeps_its_order(config):
        raise NotApplicable
    worst = max(trial.rows.get("utilisation", [0]), default=0)
    if worst > 1.0001:  # formulas of ASTRA-sim do not know how many messages cross a link
        said = config["system"].get("rules") == "astra-sim" and "do not respect its bandwidth" in trial.err
        return "" if said else f"the largest utilisation is {worst:.4f}"
    dimensions = config["system"]["network"]["dimensions"]
    fixed = (
        "graph" not in config["system"]["network"]
        and "perturbation" not in config
        and not any("Torus" in entry["shape"] for entry in dimensions)
    )
    for dimension, size, busy in trial.rows.get("links", []):
        # Acknowledgements go on when the last NPU has finished.
        after = 256 / quantity(dimensions[dimension]["bandwidth"]) * 1e12 if model == "packet" and fixed else 0
        if busy > trial.rows["time"] + after:
            return f"a link of dimension {dimension} is busy for {busy} ps of {trial.rows['time']} ps"
        if not fixed:
            continue
        # Links side by side count as one, or are as fast as all of them. The links above an oversubscribed switch count as one too.
        links = dimensions[dimension].get("links", 1)
        if "oversubscription" in dimensions[dimension]:
            links = max(links, size_of(dimensions[dimension]) * links / dimensions[dimension]["oversubscription"])
        least = size / quantity(dimensions[dimension]["bandwidth"]) / links * 1e12
        if least > (trial.rows["time"] + after) * 1.0001 + 1000:
            return f"a link of dimension {dimension} carries {size} bytes in {trial.rows['time']} ps, which takes it {least:.0f} ps"
    return ""


HOPS = {
    "Ring": lambda n: n // 2,
    "Mesh": lambda n: n - 1,
    "FullyConnected": lambda n: 1,
    "Switch": lambda n: 2,
    "FatTree": lambda n: 6,
    "Dragonfly": lambda n: 5,
}
UNITS = {
    "ps": 1,
    "ns": 1e3,
    "us": 1e6,
    "µs": 1e6,
    "ms": 1e9,
    "s": 1e12,
    "GB/s": 1e9,
    "TB/s": 1e12,
    "Gb/s": 1e9 / 8,
    "MB/s": 1e6,
}


def quantity(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def one_flow(trial, random):
    """A message alone takes its size over the bandwidth, and the latencies of its hops."""
    config = own_config(trial)
    network = copy.deepcopy(config["system"]["network"])
    dimensions, model = network["dimensions"], network.get("model", "congestion-unaware")
    if "graph" in network or any("Torus" in entry["shape"] for entry in dimensions):
        raise NotApplicable
    packets = network.get("packets", {})
    if model == "packet" and not set(packets) <= {
        "preset",
        "time-unit",
        "control",
        "marks",
        "transport",
        "routing",
        "fast-forward",
        "seed",
    }:
        raise NotApplicable
    sizes = [size_of(entry) for entry in dimensions]
    source, target = random.sample(range(math.prod(sizes)), 2)
    size = random.choice([10**6, 4 * 10**6])
    least, most, stride = 0, 0, 1
    for entry, count in zip(dimensions, sizes):
        if source // stride % count != target // stride % count:
            hops, latency = HOPS[entry["shape"]](count), quantity(entry["latency"])
            alone = size / quantity(entry["bandwidth"]) / entry.get("links", 1) * 1e12
            least = max(least, alone)
            # The congestion-unaware network divides an oversubscribed switch as if all NPUs sent; in the other one it is a link of its own.
            over = entry.get("oversubscription", 1)
            factor = {"congestion-unaware": over, "congestion-aware": hops + over / count, "packet": 1.5}[model]
            most += hops * latency + alone * factor
            if model == "packet":
                most += 40 * hops * (latency + 10**6)
        stride *= count
    if (
        config["system"].get("rules") == "astra-sim"
        and model == "congestion-unaware"
        and sum(source // math.prod(sizes[:d]) % n != target // math.prod(sizes[:d]) % n for d, n in enumerate(sizes))
        > 1
    ):
        raise NotApplicable  # ASTRA-sim charges the first of the dimensions only
    traces = [[chakra.Node(0, chakra.COMP, "alone", duration=0, is_cpu_op=True)] for _ in range(math.prod(sizes))]
    for npu, type in ((source, chakra.SEND), (target, chakra.RECV)):
        traces[npu] = [chakra.Node(0, type, "message", comm_src=source, comm_dst=target, comm_tag=1, comm_size=size)]
    system = {"rules": config["system"]["rules"]} if "rules" in config["system"] else {}
    flow = drawing.Case(
        {"config.yaml": {"system": {**system, "network": network}, "workload": {"traces": "workload"}}}, traces
    )
    folder = trial.folder / "flow"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    inner = Trial(trial.runner, flow, folder)
    trial.commands += [f"cd flow; {command}" for command in inner.commands]
    if inner.wrong or inner.code != 0:
        return inner.wrong or f"exit code {inner.code}: {inner.err[-800:]}"
    if "slows flows whose round trips" in inner.err:
        raise NotApplicable  # its congestion control is not made for such slow links
    slack = 1e6
    if not least - slack <= inner.rows["time"] <= most + slack:
        return f"{size} bytes from NPU {source} to {target} take {inner.rows['time'] / 1e6:.3f} us; expected {least / 1e6:.3f} to {most / 1e6:.3f} us"
    return ""


ALWAYS = (first_run, capacity, monotone)
OF_RESULTS = (
    ranks,
    folded,
    resumed,
    resolved,
    recorded,
    checked,
    shown,
    generated,
    alone,
    apart,
    fast_forward,
    no_faster_than_alone,
    one_flow,
)


def failure(relation, trial, random):
    """Returns what is wrong with a case by one relation, or an empty text; None if the relation says nothing about it."""
    try:
        return relation(trial, random)
    except NotApplicable:
        return None
    except AssertionError as error:
        return str(error)
