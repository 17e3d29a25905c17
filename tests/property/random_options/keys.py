"""The keys of the program, as `orrery show keys --json` lists them, and random values of them."""
import re

# Keys whose values are files, or that a case sets by itself. Each has its reason.
NOT_DRAWN = {
    "system.base": "the presets are systems of thousands of NPUs",
    "workload.model.base": "the presets are models of billions of parameters",
    "system.network.packets.file": "a file of ns-3, which integration_ns3_config reads",
    "system.network.packets.pauses": "the older name of flow-control",
    "system.compute.noise": "the earlier name of perturbation.noise",
    "system.compute.noise-seed": "the earlier name of perturbation.noise-seed",
    "workload.execution-traces": "a profiler's recordings, which integration_kineto reads",
    "workload.step": "a profiler's recordings, which integration_kineto reads",
    "workload.replicate": "a profiler's recordings, which integration_kineto reads",
    "perturbation.base": "a file of the keys that are drawn here",
    "perturbation.links.switches": "links between switches, which integration_switch_links reads",
    "provenance": "it changes the interval alone; test_calibration tries it",
    "workload.precision": "the relation `generated` sets it with the traces that need it",
    "cost.base": "a file of the keys that are drawn here",
    "cost.source": "a text without effect, which each case with costs has",
    "cost.date": "a text without effect, which each case with costs has",
    "run.output": "each run has an output of its own",
    "run.force": "each run replaces its output",
    "run.checkpoint": "an option of the relation `resumed`",
    "run.checkpoint-interval": "an option of the relation `resumed`",
    "run.restart": "an option of the relation `resumed`",
    "run.max-walltime": "an option of the relation `resumed`",
    "run.partition": "an option of the relation `ranks`",
    "run.cell-size": "an option of the relation `ranks`",
    "run.fold": "an option of the relation `folded`",
    "run.jobs-alone": "an option of the relation `alone`",
    "run.progress": "the clock decides what it prints",
    "run.progress-interval": "the clock decides what it prints",
    "run.quiet": "each run is quiet",
    "cost.network.switch-radix": "it stands in place of switch-ports; unit_cost tries it",
    "run.verbose": "it says how much is printed",
    "run.sensitivity": "it says how much is printed, after the run",
    "run.color": "it says how the summary is printed",
    "system.npus": "other sizes of presets, which integration_own_model reads",
    "run.watchdog": "the clock decides what it does",
    "intra-dimension-scheduling": "of any type, and without effect",
    "inter-dimension-scheduling": "of any type, and without effect",
    "local-mem-trace-filename": "a text without effect",
    "model-shared-bus": "refused",
    "logging-folder": "without effect",
    "logging-configuration": "without effect",
    "logical-topology-configuration": "files of ns-3, which integration_ns3_config reads",
    "per-node-custom-implementation": "files of collectives, which integration_custom reads",
}
NOT_DRAWN |= {
    f"system.network.dimensions.flits{key}": "networks of flits, which integration_flits reads"
    for key in (
        "",
        *(".buffer", ".flit", ".flow-control", ".link", ".packet", ".preset", ".route", ".routing", ".seed"),
        ".virtual-channels",
    )
}
NOT_DRAWN |= {
    f"system.network.packets.reduction.{key}": "reductions in switches, which integration_reduction reads"
    for key in ("delay", "most-trees", "operations", "slots", "trees")
}
NOT_DRAWN |= {
    f"system.network.packets.tcp.{key}": "connections of TCP, which integration_tcp reads"
    for key in (
        *("connections", "delayed-ack.segments", "delayed-ack.timeout", "granularity", "header", "initial-window"),
        *("min-rto", "mss", "receive-buffer", "slow-start-after-idle", "syn-timeout"),
    )
}
NOT_DRAWN |= {
    f"system.collectives.custom.{kind}": "files of collectives, which integration_custom reads"
    for kind in ("all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "gather", "scatter", "nodes")
}
NOT_DRAWN |= {
    f"system.collectives.library.{kind}": "measurements, which integration_tables reads"
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
}
NOT_DRAWN |= {
    f"{kind}-implementation-custom": "files of collectives, which integration_custom reads"
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
}

NOT_DRAWN |= {
    f"system.collectives.experts.{name}": "integration_expert_exchange tries it"
    for name in ("kernels", "servers", "sm-share", "top-k")
}
NOT_DRAWN |= {
    f"workload.parallel.{name}": "integration_expert_exchange tries it"
    for name in ("expert-exchange", "dispatch-precision", "cache-precision")
}
NOT_DRAWN |= {
    f"system.collectives.library.shares.{name}": "unit_collective and integration_libraries try some of the shares"
    for name in ("all-to-all", "nic-all-to-all", "nic-ring", "nic-tree", "nvls", "nvls-tree", "ring", "tree")
}
NOT_DRAWN |= {
    f"system.collectives.library.fabric-figures.{name}": "unit_collective and integration_libraries try them"
    for name in ("nic", "ramp", "ramp-size", "step")
}
NOT_DRAWN |= {
    f"workload.parallel.{name}": "integration_calibration and integration_keys try it"
    for name in ("fused-gradients", "fused-loss", "layer-time", "owners-broadcast")
}
NOT_DRAWN |= {
    "system.network.ports": "integration_tori tries it",
    "system.network.circuits": "integration_circuits tries it",
    "system.network.dimensions.port": "integration_tori tries it",
    "system.compute.local-memory.reserved": "integration_keys tries it",
    "workload.parallel.combine-precision": "integration_keys tries it",
    "workload.model.recompute-modules": "integration_expert_exchange tries it",
    "workload.parallel.recompute-modules": "integration_expert_exchange tries it",
}

# Sections of commands and runs that have tests of their own.
OTHER_SECTIONS = ("campaign", "cluster", "serving")

TIMES = ["0 ns", "1 ns", "10 ns", "333 ps", "500 ns", "1 us", "20 us", "300 us"]
SIZES = ["0 B", "1 B", "100 B", "1000 B", "4 KiB", "64 KiB", "1 MB", "80 GiB"]
BANDWIDTHS = ["1 GB/s", "33.3 GB/s", "100 Gb/s", "400 Gb/s", "450 GB/s", "3 TB/s"]
RATES = ["1 TFLOPS", "10 TFLOPS", "989 TFLOPS"]
NUMBERS = [0, 1e-3, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1, 1.1, 2, 3.5]
COUNTS = [0, 1, 1, 2, 2, 3, 4, 5, 8, 16, 64]


class Key:
    def __init__(self, entry):
        self.path, self.section, self.type, self.range = entry["path"], entry["section"], entry["type"], entry["range"]
        self.example, self.words = entry["example"], [word["word"] for word in entry["words"]]
        self.name = self.path.rpartition(".")[2]

    def holds(self, value):
        """Returns whether a number is in the key's range."""
        text = self.range
        if found := re.match(r"([-\d.e]+) to ([-\d.e]+)", text):
            return float(found[1]) <= value <= float(found[2])
        least = re.match(r"([-\d.e]+)(?: B| B/s)? or more", text)
        if least and value < float(least[1]):
            return False
        if text.startswith("more than 0") and value <= 0:
            return False
        return not ("below 1" in text and value >= 1 or "1 or less" in text and value > 1)

    def values(self):
        """Returns the values from which one is drawn; empty if they are no scalars."""
        if self.type == "word":
            return [word for word in self.words if "<" not in word]
        if self.type == "true or false":
            return [False, True]
        if self.type == "whole number":
            return [value for value in COUNTS if self.holds(value)]
        if self.type == "number":
            return [value for value in NUMBERS if self.holds(value)]
        texts = {"time": TIMES, "size": SIZES, "bandwidth": BANDWIDTHS, "compute rate": RATES}.get(self.type, [])
        texts = [text for text in texts if not (text.startswith("0 ") and re.match("1|more", self.range))]
        return texts + [self.example] * 2 if texts and self.example else texts


class Keys:
    """All keys. `used` has the paths of those that have been drawn."""

    def __init__(self, listed):
        self.all = [Key(entry) for entry in listed]
        self.used = set()

    def of(self, section):
        """Returns the keys of a section of which values can be drawn."""
        return [key for key in self.all if key.section == section and key.values() and key.path not in NOT_DRAWN]

    def draw(self, random, section, share, without=()):
        """Returns a mapping with each key of a section by a probability."""
        return {
            key.name: random.choice(key.values())
            for key in self.of(section)
            if key.name not in without and random.random() < share
        }

    def note(self, document, prefix=""):
        """Notes which keys a document has."""
        if isinstance(document, dict):
            for name, value in document.items():
                path = f"{prefix}.{name}" if prefix else str(name)
                self.used.add(path)
                self.note(value, path)
        elif isinstance(document, list):
            for value in document:
                if isinstance(value, dict):
                    self.note(value, prefix)

    def never_drawn(self):
        """Returns the keys that have not been drawn and have no reason for that."""
        return sorted(
            {key.path for key in self.all if key.path.split(".")[0] not in OTHER_SECTIONS} - self.used - set(NOT_DRAWN)
        )
