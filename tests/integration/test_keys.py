#!/usr/bin/python3
"""A key without effect is a fault: in each of many small configurations each key that is accepted without a warning changes a result.

The exceptions have reasons (EXCEPTIONS). By hand: test_keys.py --list [BASE [KEY]] prints the keys without effect that are no exceptions; BASE and
KEY are regular expressions."""
import copy
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import key_bases  # noqa: E402
import yaml  # noqa: E402
from chakra import Node  # noqa: E402

# Values that change more than those that are made of the example and of the value at hand.
VALUES = {
    "provenance": [{"basis": "own steps", "deviation": 0.03}],
    "system.compute.local-memory.size": ["1 MB"],
    "system.network.packets.pauses": [False],
    "system.network.packets.marks": [[["100 Gb/s", "4 kB", "20 kB", 0.5], ["40 Gb/s", "4 kB", "20 kB", 0.5]]],
    "system.network.packets.discipline": ["drop-tail", "shared-buffer"],
    "system.network.packets.window": ["4 kB", "largest", "none"],
    "system.network.packets.least-rate": ["1 Gb/s", "20 Gb/s", "60 Gb/s"],
    "system.network.packets.buffer": ["30 kB", "90 kB", "400 kB"],
    "system.network.dimensions.oversubscription": [2, 8],
    "perturbation.distributions": [[{"per": "npu", "kind": "uniform", "least": 0.9, "most": 1.2}]],
    "perturbation.links": [
        [{"dimension": 0, "npus": 0, "bandwidth": 0.5}],
        [{"dimension": 1, "npus": "0-3", "bandwidth": 0.5}],
    ],
    "workload.parallel.replicas": [2],
    "system.network.circuits": [
        {
            "switching-time": "10 us",
            "configurations": [{"name": "next", "stride": 1}, {"name": "third", "stride": 3}],
            "groups": {"dp": "third", "tp": "third", "all": "third"},
        }
    ],
    "workload.parallel.expert-overlap": ["true"],
}
# Keys that change nothing in some bases, and why: (bases, keys, reason). Regular expressions that match the whole name and the end of the path.
ONE_CHAIN = "the nodes of an NPU are one chain, or never wait for each other"
NOT_SO_FAR = "queues, rates and losses of these few messages do not get so far"
PACKETS = "(packets.*|.*, packet)"
EXCEPTIONS = [
    ("packets.*", "workload.dependencies", "no node of these traces waits for another one"),
    ("experts.*|dualpipe", "parallel.expert-tp", "is the size of tp by default"),
    ("traces, (adaptive )?flits", "collectives.directions", "groups have two members of a ring"),
    (
        "traces, (adaptive )?flits",
        "network.model|dimensions.0.size",
        "the value that is tried is the default, or another spelling of two rows of two NPUs",
    ),
    ("request|prefill|decode", "parallel.gradients", "the value that is tried is the default"),
    (
        "layers.*|dlrm|step, ddp",
        "collectives.(active-chunks|queues|overlap-latency)",
        "there is one collective of one chunk at a time",
    ),
    ("memory .*|traces.*", "local-memory.size", "no tensors of these traces lie in local memory"),
    ("step, astra-sim's rules", "collectives.endpoint-delay", "communicators of some NPUs have 10 ns, as in ASTRA-sim"),
    (
        "step.*|request|prefill|decode|cost.*|products.*|systolic.*|slow NPUs.*|noise|normal|lognormal|exponential|uniform|tail|values|stack tpu.*|gpipe|"
        "interleaving|zb-.*|recompute|latent attention",
        "collectives.directions",
        "groups have two members of a ring",
    ),
    (
        ".*stack.*|graph|dlrm|traces, switches",
        "collectives.directions",
        "the value that is tried is the default without Rings",
    ),
    (
        "(?!.*(congestion-aware|links|fast)).*",
        "network.switching",
        "the value that is tried is the default without the congestion-aware network",
    ),
    (
        "(step|traces), switches.*|packets, reduction|cost of a graph",
        "dimensions.[01].shape",
        "a Crossbar, which is tried, is a Switch if it is not simulated flit by flit",
    ),
    (
        "stack h100-megatron",
        "library.nics-per-node",
        "a NIC for each NPU is the default, and the links of NPUs carry no more than their bandwidth over more NICs",
    ),
    ("library", "collectives.(directions|chunks)", "the value that is tried is the default"),
    (
        ".*stack.*|library",
        "network.ports|dimensions.[01].port",
        "both Switches have the port nic by default, at the rate that is tried",
    ),
    (
        "request|prefill|decode|dlrm",
        "collectives.(chunks|least-chunk|active-chunks|queues|overlap-latency)",
        "collectives are smaller than two of the least chunks",
    ),
    ("systolic, outputs", "array.filter-buffer", "the filters fit already"),
    (
        ".*",
        "(system|perturbation|workload.model).base",
        "what a file says itself stands above its base, and rare draws miss the few NPUs",
    ),
    (".*", "fast-forward", "results are the same by design"),
    (".*", "cost.source", "is a text for readers"),
    (
        ".*",
        r"layers.\d.name|workload.model.late",
        "names stand in the timeline, and other strides have the same remainder",
    ),
    (
        ".*",
        "collectives.(all-reduce|all-gather|reduce-scatter|all-to-all|broadcast|reduce)",
        "the workload has no collective of this kind",
    ),
    (
        ".*",
        "collectives.(optimization|dimension-order|chunk-order)",
        "collectives have one dimension or few chunks, in which nothing changes places",
    ),
    (
        "(gpu|packets|packets .*|packets, .*|recordings|gpu, .*)",
        "system.collectives.*",
        "no collective takes an algorithm, or only one of one chunk",
    ),
    ("jobs", "system.collectives.queues", "there is one collective at a time"),
    (
        ".*",
        "collectives.compute-share|communication.rendezvous",
        "no collective runs beside computation, and no receiver comes late",
    ),
    (".*", "(compute|communication).streams|communication.order|workload.streams", ONE_CHAIN),
    (".*", "workload.model.heads", "heads divide what they compute together"),
    (PACKETS, "packets.discipline", "the value that is tried is the default of the transport, or refused"),
    (
        "packets, tcp.*",
        "packets.tcp.(syn-timeout|connections|slow-start-after-idle|granularity)",
        "no SYN is lost, each pair of hosts has one message, none is idle, and the least time-out is longer",
    ),
    (
        ".*",
        "model.(rotary|causal|fused-attention)|compute.efficiency|local-memory.latency|cache.bandwidth",
        "the blocks are bound by something else",
    ),
    (
        ".*",
        "parallel.placement|parallel.scattered-messages",
        "the axes that change places have one NPU, and stages send no messages",
    ),
    ("layers.*", r"layers.\d.activations", "the last layer hands nothing on"),
    (".*", "in-switch-operations", "there is one collective at a time in the switch"),
    (".*", "reduction.most-trees", "it only refuses runs"),
    (
        "packets, reduction",
        "packets.(acknowledgement|completion|routing)",
        "reductions have neither flows nor acknowledgements",
    ),
    (
        PACKETS,
        "packets.(resume-offset|marks|seed|window|window-follows-rate|loss|retransmission-timeout|least-rate)",
        NOT_SO_FAR,
    ),
    (
        PACKETS,
        "packets.(pause-frame|buffer|share-shift|reserve|headroom|flow-control|pauses|control|transport)",
        NOT_SO_FAR,
    ),
    (
        "packets, (dcqcn|timely|dctcp|hpcc|simai-ns3)",
        "packets.(additive-increase|fast-increase|fast-recovery-steps|clamps-target|gain|.*-interval)",
        NOT_SO_FAR,
    ),
    (
        "(packets|gpu|layers|recordings|traces, recorded|packets.*|gpu.*)",
        "system.rules|compute.(model|peak|local-memory.*)",
        "nodes have recorded durations",
    ),
    (
        "(layers|layers with work)",
        "system.rules|parallel.(schedule|detail)",
        "there is one stage, and times are whole nanoseconds",
    ),
    (
        "(.*stack.*|library)",
        "dimensions.[01].(latency|shape)|library.(fabric|fabric-figures.*|collnet|node-dimensions|launch|shares.*)",
        "hops are no longer than those of the measured machines, collectives take longer than a launch, and other resources and algorithms bind",
    ),
    (
        ".*stack.*",
        "compute.(model|elementwise|attention|kernel)|parallel.(tp-overlap|gather-before-forward|exposed-share)",
        "the stack says the same",
    ),
    ("gpu.*", "gpu.*|packet-size", "the plan does not use it"),
    ("(prefill|decode|request)", "model.tied-embeddings", "the first and the last stage keep a table each"),
    ("jobs", "jobs.0.(allocation|seed)", "the network is a ring of equal links"),
    ("cost.*", "cost.network.*|cost.pair-share", "the tier has no switches or no dimension"),
    ("traces, congestion-aware", "network.switching", "each message has one hop"),
    (".*", "perturbation.links", "the links are slow enough in any case"),
]
# Keys of no run: they say where it begins and ends and what it prints, or choose among equal ways to the same results.
# Sections of other commands are checked by `run` and not used.
OF_RUN = "(run|campaign|cluster)[.].*"
GATE_BASES = ("step", "step, congestion-aware", "packets, dcqcn", "library", "experts")


def exception(base, path):
    """Returns why a key may change nothing in a base; None if it may not."""
    return next(
        (
            reason
            for bases, keys, reason in EXCEPTIONS
            if re.fullmatch(bases, base) and re.search(rf"(^|[.])({keys})$", path)
        ),
        None,
    )


def keys():
    """Returns what `orrery show keys --json` says of Orrery's own keys."""
    return [
        key
        for key in json.loads(harness.orrery("show", "keys", "--json").out)
        if key["section"] != "-" and not key["becomes"]
    ]


def scaled(text, factor):
    """Returns a quantity such as "50 GB/s" times a factor; None if the text is none."""
    found = re.fullmatch(r"([0-9.]+)( ?[A-Za-z/]+)?", str(text))
    if not found:
        return None
    number = float(found[1]) * factor
    number = int(number) if number == int(number) else number
    return f"{number}{found[2]}" if found[2] else number


def other_values(key, value, dimensions):
    """Returns values of a key that differ from `value`, which is None if the key is not given."""
    path, default = key["path"], key["default"]
    now = default if value is None else value
    if path in VALUES:
        return [each for each in VALUES[path] if each != value]
    if key["type"] == "true or false":
        return [not (now is True or now == "true")]
    words = [word["word"] for word in key["words"] if not re.search("[<^]", word["word"])]
    if key["type"] == "list of algorithms":
        return [[word] * dimensions for word in words] + [
            ["one" + word] for word in ("Ring", "Direct", "HalvingDoubling")
        ]
    if key["type"].startswith("list"):
        words = [[word] for word in words]
    result = list(words)
    if key["example"]:
        result.append(yaml.safe_load(key["example"]))
    if not words or value is not None and value not in words:
        whole = key["type"] == "whole number"
        for factor in (2, 0.5, 3):
            changed = scaled(now, factor) or scaled(key["example"], factor)
            if changed and not (whole and isinstance(changed, str)):
                result.append(int(changed) if whole else changed)
        if whole and str(now).isdigit():
            result.append(int(now) + 1)
    kept = []
    for each in result:
        if each != value and str(each) != str(now) and each not in kept:
            kept.append(each)
    return kept


def places(config, path):
    """Returns the paths in a configuration where a key can stand, with a number for each list on the way: tuples of names and numbers."""
    found = [()]
    names = path.split(".")
    for number, name in enumerate(names):
        inner = []
        for place in found:
            here = value_at(config, place)
            if isinstance(here, list):
                inner += [(*place, index, name) for index, each in enumerate(here) if isinstance(each, dict)]
            elif here is None or isinstance(here, dict):
                inner.append((*place, name))
        found = inner
    return [place for place in found if lists_agree(config, place, names)]


LISTS = {
    "system.network.dimensions",
    "workload.model.tables",
    "jobs",
    "perturbation.distributions",
    "perturbation.slow-npus",
    "perturbation.links",
    "cost.network",
    "workload.traces",
}


def lists_agree(config, place, names):
    """Returns whether all lists on the way to a place are there."""
    for length in range(1, len(names)):
        section = ".".join(names[:length])
        if section in LISTS and len([part for part in place if isinstance(part, int)]) == 0:
            return False
    return True


def value_at(config, place):
    for part in place:
        if isinstance(config, dict):
            config = config.get(part)
        elif isinstance(config, list) and isinstance(part, int):
            config = config[part]
        else:
            return None
    return config


def with_value(config, place, value):
    """Returns a copy of a configuration with another value."""
    config = copy.deepcopy(config)
    here = config
    for part in place[:-1]:
        if isinstance(here, dict) and here.get(part) is None:
            here[part] = {}
        here = here[part]
    here[place[-1]] = value
    return config


class Keys(harness.Folder):
    def setUp(self):
        super().setUp()
        if not key_bases.PLAN:
            plan = self.folder / "plan.json"
            subprocess.run(
                [
                    sys.executable,
                    harness.SOURCE / "scripts/make_plan.py",
                    "two-shot",
                    "--gpus=2",
                    "--blocks=2",
                    f"--output={plan}",
                ],
                check=True,
            )
            key_bases.PLAN.update(json.loads(plan.read_text()))

    def test_each_key_changes_a_result_or_is_named(self):
        """In each base each key that is accepted without a warning changes a result, or an exception says why not."""
        faults = []
        gate = GATE_BASES[:3] if harness.SANITIZED else GATE_BASES  # sanitizers take three times as long
        for name in gate if harness.GATE else key_bases.BASES:
            faults += [
                f"{name}: {path} is accepted and changes nothing with {values}" for path, values in self.idle_keys(name)
            ]
        self.assertFalse(faults, "\n".join(faults))

    def run_config(self, config, full):
        """Simulates a configuration; `full` with results. Returns the Outcome and what tells results apart."""
        path = self.base_folder / "config.yaml"
        path.write_text(json.dumps(config))
        if not full:
            return harness.workers.figures(["run", str(path), "--quiet"], self.folder)
        output = self.folder / "results.h5"
        outcome = harness.orrery("run", path, f"--output={output}", "--force", "--quiet")
        digests = harness.workers.digests(output) if outcome.code == 0 else None
        return outcome, digests and {name: digest for name, digest in digests.items() if not name.startswith("/config")}

    def idle_keys(self, name, pattern=""):
        """Yields the keys of a base that are accepted without a warning, change no result and are no exceptions, with the values that were tried."""
        self.base_folder = self.folder / re.sub("[^a-z0-9]", "_", name)
        self.base_folder.mkdir()
        base = key_bases.BASES[name](self.base_folder)
        outcome, figures = self.run_config(base, False)
        self.assertEqual(outcome.code, 0, f"{name}: {outcome.err}")
        outcome, digests = self.run_config(base, True)
        warned = set(outcome.err.splitlines())
        for key in keys():
            if not re.search(pattern, key["path"]) or re.fullmatch(OF_RUN, key["path"]):
                continue
            for place in places(base, key["path"]):
                path = ".".join(map(str, place))
                if exception(name, path):
                    continue
                idle = self.idle_values(base, place, key, figures, digests, warned)
                if idle:
                    yield path, idle

    def idle_values(self, base, place, key, figures, digests, warned):
        """Returns the values with which a key changes nothing; empty if one changes something, or none is accepted without a warning."""
        paths = {".".join(map(str, place)), key["path"]}

        def named(outcome):
            lines = [
                line for line in outcome.err.splitlines() if line not in warned or "no effect" in line
            ]  # the base may have the key, too
            return any(path in line for line in lines for path in paths)

        accepted = []
        for value in other_values(key, value_at(base, place), len(base["system"]["network"]["dimensions"])):
            config = with_value(base, place, value)
            outcome, changed = self.run_config(config, False)
            if outcome.code not in (0, 3, 4, 2):
                raise AssertionError((place, value, outcome))
            if outcome.code == 3 or outcome.code == 2:
                continue
            if changed != figures:
                return []
            if not named(outcome):
                accepted.append((value, config))
        idle = []
        for value, config in accepted[:2]:
            outcome, changed = self.run_config(config, True)
            if changed != digests:
                return []
            if not named(outcome):
                idle.append(value)
        return idle


# ---- ASTRA-sim's files ----

# Other values of keys of ASTRA-sim's files, by file. The base has 4 x 2 NPUs and collectives, computation and remote memory in its traces.
ASTRA_SIM_MEMORIES = {
    "per NPU": {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 1000, "remote-mem-bw": 10},
    "per node": {
        "memory-type": "PER_NODE_MEMORY_EXPANSION",
        "remote-mem-latency": 1000,
        "remote-mem-bw": 10,
        "num-npus-per-node": 4,
        "num-nodes": 2,
    },
    "pool": {"memory-type": "MEMORY_POOL", "remote-mem-latency": 1000, "remote-mem-bw": 10},
    "hierarchical": {
        "memory-type": "HIERARCHICAL_POOL",
        "remote-mem-latency": 1000,
        "remote-mem-bw": 10,
        "num-npus-per-node": 4,
        "num-memory-groups": 2,
        "num-out-node-switches": 2,
        "out-node-link-bw": 50,
        "out-node-link-latency": 200,
        "in-node-fabric-bw": 256,
        "in-node-fabric-latency": 5,
        "chunk-size": 4096,
    },
}
ASTRA_SIM_VALUES = {
    "network.yml": {"topology": [["Switch", "Switch"]], "bandwidth": [[25, 50]], "latency": [[500, 900]]},
    "system.json": {
        "all-reduce-implementation": [["direct", "ring"]],
        "all-gather-implementation": [["direct", "ring"]],
        "reduce-scatter-implementation": [["direct", "ring"]],
        "all-to-all-implementation": [["direct", "ring"]],
        "collective-optimization": ["baseline"],
        "preferred-dataset-splits": [2],
        "active-chunks-per-dimension": [4],
        "endpoint-delay": [1000],
        "roofline-enabled": [0],
        "peak-perf": [9],
        "local-mem-bw": [10],
        "replay-only": [1],
        "scheduling-policy": ["FIFO"],
        "trace-enabled": [1],
        "boost-mode": [1],
        "track-local-mem": [1],
        "local-mem-trace-filename": ["x"],
        "local-reduction-delay": [5],
        "L": [1],
        "o": [1],
        "g": [1],
        "G": [1],
        "intra-dimension-scheduling": ["FIFO"],
        "inter-dimension-scheduling": ["baseline"],
        "model-shared-bus": [1],
    },
    "remote_memory.json": {
        "memory-type": ["MEMORY_POOL", "PER_NPU_MEMORY_EXPANSION"],
        "remote-mem-latency": [5000],
        "remote-mem-bw": [3],
        "num-npus-per-node": [2],
        "num-nodes": [4],
        "num-memory-groups": [4],
        "num-out-node-switches": [4],
        "out-node-link-bw": [5],
        "out-node-link-latency": [2000],
        "in-node-fabric-bw": [5],
        "in-node-fabric-latency": [2000],
        "chunk-size": [1024],
    },
    "flags": {
        "num-queues-per-dim": [2],
        "injection-scale": [3],
        "rendezvous-protocol": [""],
        "comm-scale": [2],
        "compute-scale": [2],
        "logging-folder": ["x"],
        "logging-configuration": ["x"],
    },
}
AS_IN_ASTRA_SIM = "ASTRA-sim 2 reads it and does nothing with it either"
ASTRA_SIM_EXCEPTIONS = {
    "scheduling-policy": AS_IN_ASTRA_SIM,
    "trace-enabled": AS_IN_ASTRA_SIM,
    "boost-mode": AS_IN_ASTRA_SIM,
    "track-local-mem": "results have the peaks anyway",
    "local-mem-trace-filename": "results have the peaks anyway",
    "num-nodes": "is checked against the number of NPUs",
}


class AstraSimKeys(harness.Folder):
    """Keys of another memory-type are left out: ASTRA-sim's files have them all."""

    def figures(self, memory, changes):
        """Runs ASTRA-sim's files with a value of a key changed, and returns the outcome and the figures."""
        base = {"scheduling-policy": "LIFO", "roofline-enabled": 1, "peak-perf": 1, "local-mem-bw": 100}
        system = harness.System(
            ("Ring", "Ring"),
            (4, 2),
            bandwidth=[50, 20],
            system={**base, **changes.get("system.json", {})},
            memory={**memory, **changes.get("remote_memory.json", {})},
        )
        for key, value in changes.get("network.yml", {}).items():
            setattr(system, key, value)
        flags = [f"--{key}={value}" if value else f"--{key}" for key, value in changes.get("flags", {}).items()]
        key_bases.collectives(self.folder)
        traces = f"--workload-configuration={self.folder / 'kinds'}"
        return harness.workers.figures(
            ["run", *map(str, system.write(self.folder)), traces, *flags, "--quiet"], self.folder
        )

    def test_each_key_changes_a_result_or_is_named(self):
        """With each remote memory: a result changes, the key is refused, or a warning names it. Each has an effect with one of them."""
        own = {key["path"]: key for key in json.loads(harness.orrery("show", "keys", "--json").out) if key["becomes"]}
        effective = set()
        for name, memory in ASTRA_SIM_MEMORIES.items():
            outcome, figures = self.figures(memory, {})
            self.assertEqual(outcome.code, 0, outcome.err)
            for file, values in ASTRA_SIM_VALUES.items():
                for key, others in values.items():
                    for other in others:
                        done, changed = self.figures(memory, {file: {key: other}})
                        self.assertIn(done.code, (0, 2, 3, 4), done.err)
                        named = key in done.err and key not in outcome.err
                        if done.code or changed != figures or named:
                            effective.add(key)
                        elif (
                            key not in ASTRA_SIM_EXCEPTIONS
                            and memory["memory-type"] != other
                            and not (file == "remote_memory.json" and key not in memory)
                        ):
                            self.fail(
                                f"{file} with the memory {name}: {key} is accepted with {other} and changes nothing"
                            )
        self.assertEqual(set().union(*ASTRA_SIM_VALUES.values()) - effective - set(ASTRA_SIM_EXCEPTIONS), set())
        given_elsewhere = {
            key for key in own if key.endswith("-custom") or key.endswith("-configuration") or "custom" in key
        } | {"npus_count"}
        self.assertEqual(
            set(own) - set().union(*ASTRA_SIM_VALUES.values()) - given_elsewhere,
            set(),
            "keys that have no other value here",
        )


# ---- fields of traces ----

# Attributes of nodes of Chakra traces: (kind of node, attribute, its value, another value).
FIELDS = [
    ("COMP", "num_ops", 10_000_000, 20_000_000),
    ("COMP", "tensor_size", 1_000_000, 2_000_000),
    ("COMP", "is_cpu_op", False, True),
    ("MEM_LOAD", "tensor_size", 1_000_000, 2_000_000),
    ("MEM_STORE", "tensor_size", 1_000_000, 2_000_000),
    ("COLL", "comm_size", 65536, 131072),
    ("COLL", "comm_type", chakra.ALL_REDUCE, chakra.ALL_GATHER),
    ("COLL", "pg_name", "all", "few"),
    ("COLL of dimensions", "involved_dim", [True, True], [True, False]),
    ("COLL of dimensions", "comm_type", chakra.ALL_REDUCE, chakra.ALL_TO_ALL),
    ("COLL of dimensions", "comm_size", 65536, 131072),
    ("COLL", "comm_priority", 0, 5),
    ("SEND", "comm_size", 65536, 131072),
    ("SEND", "comm_tag", 1, 2),
    ("SEND", "comm_dst", 1, 2),
    ("RECV", "comm_src", 0, 3),
    ("RECV", "comm_tag", 1, 2),
]


class Fields(harness.Folder):
    """Fields that are read have an effect."""

    def figures(self, changed=None, value=None):
        """Writes traces of 4 NPUs with all kinds of nodes, of which one has another value in a field, and simulates them."""
        now = {(kind, name): first for kind, name, first, _ in FIELDS}
        if changed:
            now[changed] = value

        def node(number, kind, *after, **more):
            own = {name: now[(kind, name)] for of, name, _, _ in FIELDS if of == kind}
            return Node(number, getattr(chakra, kind.split()[0]), data_deps=list(after), **{**own, **more})

        for npu in range(4):
            nodes = [
                node(1, "COMP"),
                node(2, "COMP", is_cpu_op=True, num_ops=1, duration=10),
                node(3, "MEM_LOAD", 1),
                node(4, "MEM_STORE", 3),
                node(5, "COLL", 1),
                Node(
                    6,
                    chakra.COLL,
                    data_deps=[1],
                    comm_type=chakra.ALL_GATHER,
                    comm_size=1 << 20,
                    pg_name="all",
                    comm_priority=1,
                ),
                node(7, "COMP", 5),
                node(9, "COLL of dimensions", 7),
            ]
            if npu == 0:
                nodes.append(node(8, "SEND", 7, comm_src=0))
            if npu == 1:
                nodes.append(node(8, "RECV", 7, comm_dst=1, comm_size=65536))
            chakra.write(self.folder / f"f.{npu}.et", nodes)
        (self.folder / "groups.json").write_text('{"all": [0, 1, 2, 3], "few": [0, 1]}')
        config = {
            "system": {
                "network": {"dimensions": [key_bases.dimension("Ring", 2), key_bases.dimension("Ring", 2)]},
                "compute": key_bases.ROOFLINE,
                "communication": {"order": "priority"},
                "remote-memory": {"kind": "per-npu", "bandwidth": "10 GB/s", "latency": "1 us"},
            },
            "workload": {"traces": "f", "groups": "groups.json"},
        }
        (self.folder / "c.yaml").write_text(json.dumps(config))
        return harness.workers.figures(["run", str(self.folder / "c.yaml"), "--quiet"], self.folder)

    def test_each_attribute_of_a_node_counts(self):
        """Another value of each attribute changes a result or ends the run with a message."""
        outcome, figures = self.figures()
        self.assertEqual(outcome.code, 0, outcome.err)
        for kind, name, _, other in FIELDS:
            with self.subTest(kind=kind, name=name):
                done, changed = self.figures((kind, name), other)
                self.assertIn(done.code, (0, 3, 4), done.err)
                self.assertTrue(done.code or changed != figures, f"{name} of a node {kind} is read and changes nothing")


def print_idle(base="", key=""):
    test = Keys()
    test.setUp()
    for name in key_bases.BASES:
        if re.search(base, name):
            for place, values in test.idle_keys(name, key):
                print(f"{name}: {place}: {values}", flush=True)
    test.doCleanups()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        print_idle(*sys.argv[2:])
    else:
        harness.main()
