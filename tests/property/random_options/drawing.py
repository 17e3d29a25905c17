"""Random cases: configurations of all keys, and workloads that fit them."""
import copy
import json
import math
import pathlib
import random
import re

import chakra
import harness
import random_workload

ALGORITHMS = ["ring", "direct", "direct2", "halvingDoubling", "doubleBinaryTree", "binomialTree", "inSwitch"]
WHOLE = ["oneRing", "oneDirect", "oneHalvingDoubling"]
KINDS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"]
BANDWIDTHS = ["1 GB/s", "25 GB/s", "33.3 GB/s", "50 GB/s", "50 GB/s", "100 Gb/s", "400 Gb/s", "450 GB/s"]
LATENCIES = ["0 ns", "1 ns", "250 ns", "500 ns", "500 ns", "737.5 ns", "1 us", "20 us"]
POSSIBLE = {
    "all-reduce": ALGORITHMS,
    "broadcast": ALGORITHMS,
    "reduce": ALGORITHMS,
    "all-to-all": ["ring", "direct", "direct2"],
    "all-gather": ["ring", "direct", "direct2", "halvingDoubling"],
    "reduce-scatter": ["ring", "direct", "direct2", "halvingDoubling"],
}
KERNELS = """operator,pass,m,k,n,bytes,microseconds
product,,64,64,64,,6
product,,1024,4096,4096,,62
product,,4096,16384,4096,,825
attention,,65536,128,2048,,95
attention,backward,65536,128,2048,,260
elementwise,,,,,1000000,5
elementwise,,,,,100000000,48
elementwise,backward,,,,1000000,5
elementwise,backward,,,,100000000,48
"""


def text_of(value):
    """Returns a value as YAML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {text_of(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z][\w./ -]*|\d[\d.]* [A-Za-z/]+", value):
        return json.dumps(value)
    return str(value)


def yaml(document, indent=0, depth=2):
    """Returns a mapping as YAML, a line for each key of the outer levels."""
    lines = []
    for name, value in document.items():
        if isinstance(value, dict) and value and depth > 0:
            lines += [" " * indent + f"{name}:", yaml(value, indent + 2, depth - 1).rstrip("\n")]
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value) and depth > 0:
            lines += [" " * indent + f"{name}:"] + [" " * indent + "  - " + text_of(item) for item in value]
        else:
            lines.append(" " * indent + f"{name}: {text_of(value)}")
    return "\n".join(lines) + "\n"


class Case:
    """What one run needs. `documents`: nested values by the names of their files; `traces`: the nodes of each NPU, or None."""

    def __init__(self, documents, traces=None, files=None, flags=()):
        self.documents, self.traces, self.files, self.flags = documents, traces, files or {}, list(flags)

    @property
    def config(self):
        """The document config.yaml, or None for a case in ASTRA-sim's files."""
        return self.documents.get("config.yaml")

    def with_config(self, change):
        """Returns a copy whose configuration `change` has changed."""
        other = Case(copy.deepcopy(self.documents), self.traces, self.files, self.flags)
        change(other.config)
        return other

    def write(self, folder, name="config.yaml"):
        """Writes the files, the configuration under another name perhaps. Returns the arguments of a run in that folder."""
        for file, text in self.files.items():
            (folder / file).write_text(text)
        for file, document in self.documents.items():
            target = folder / (name if file == "config.yaml" else file)
            target.write_text(json.dumps(document, indent=1) if file.endswith(".json") else yaml(document))
        if self.traces is not None:
            for npu, nodes in enumerate(self.traces):
                chakra.write(folder / f"workload.{npu}.et", nodes)
        return [name, *self.flags] if self.config is not None else list(self.flags)


class Drawing:
    """Draws one case from a seed."""

    def __init__(self, keys, seed):
        self.keys, self.seed, self.r = keys, seed, random.Random(seed)

    def chance(self, share):
        return self.r.random() < share

    def case(self):
        if self.chance(0.12):
            case = self.astra_sim()
        elif self.chance(0.15):
            case = self.calm()
        else:
            self.model = self.r.choice(["congestion-unaware"] * 3 + ["congestion-aware"] * 2 + ["packet"] * 3)
            self.few = self.model != "congestion-unaware"
            self.files, self.traces, self.timed, self.offload, self.of_all = (
                {},
                None,
                None,
                None,
                False,
            )  # timed: layers say times and not FLOPs; None: no layers yet
            case = self.own()
        for document in case.documents.values():
            self.keys.note(document)
        for flag in case.flags:
            self.keys.used.add(flag.lstrip("-").partition("=")[0])
        return case

    # ---- ASTRA-sim's files ----

    def astra_sim(self):
        workload = random_workload.Workload(
            self.seed, max_npus=16, operations=(5, 40), all_algorithms=self.chance(0.5), one_dimension=self.chance(0.3)
        )
        system = workload.system
        if workload.memory["memory-type"] == "MEMORY_POOL" and self.chance(0.4):
            switches = self.r.choice([1, 2])
            workload.memory |= {
                "memory-type": "HIERARCHICAL_POOL",
                "num-memory-groups": switches * self.r.choice([1, 2, 5]),
                "num-out-node-switches": switches,
                "out-node-link-bw": self.r.choice([1, 10, 50]),
                "in-node-fabric-bw": 20,
                "chunk-size": self.r.choice([64, 4096]),
                "num-npus-per-node": self.divisor(workload.num_npus),
                "out-node-link-latency": self.r.choice([0, 100]),
                "in-node-fabric-latency": self.r.choice([0, 20]),
            }
        system.system |= self.keys.draw(
            self.r, "system.json", 0.15, without=("model-shared-bus", "boost-mode", "roofline-enabled")
        )
        network = {
            "topology": system.topology,
            "npus_count": system.counts,
            "bandwidth": system.bandwidth,
            "latency": system.latency,
        }
        documents = {"network.yml": network, "system.json": system.system, "remote_memory.json": system.memory}
        flags = [
            "--workload-configuration=workload",
            "--network-configuration=network.yml",
            "--system-configuration=system.json",
            "--remote-memory-configuration=remote_memory.json",
            *system.flags,
        ]
        if system.groups is not None:
            documents["comm_group.json"] = system.groups
            flags.append("--comm-group-configuration=comm_group.json")
        for flag, values in (("injection-scale", [1, 2.5]), ("comm-scale", [1, 3]), ("compute-scale", [1, 3])):
            if self.chance(0.2):
                flags.append(f"--{flag}={self.r.choice(values)}")
        if self.chance(0.3):
            flags.append("--network=congestion-aware")
        return Case(documents, workload.traces, flags=flags)

    def calm(self):
        """Returns a case in which no event can pass another one (relations.keeps_its_order), of few keys."""
        r = self.r
        self.model = r.choice(["congestion-unaware", "congestion-unaware", "congestion-aware", "packet"])
        self.few, self.timed = self.model != "congestion-unaware", True
        network, collectives = {"model": self.model}, {}
        if self.few:
            shape = r.choice(["Ring", "Switch", "FullyConnected"])
            network["dimensions"] = [
                {
                    "shape": shape,
                    "size": r.choice([2, 3, 4, 8]),
                    "bandwidth": r.choice(BANDWIDTHS),
                    "latency": r.choice(LATENCIES),
                }
            ]
            self.sizes = [network["dimensions"][0]["size"]]
            collectives = {kind: ["ring"] for kind in ("all-reduce", "all-gather", "reduce-scatter")}
            if self.model == "packet":
                network["packets"] = {"window": "none"}  # the default depends on the latency
        else:
            network["dimensions"] = self.dimensions()
            collectives = {
                kind: [r.choice(names) for _ in self.sizes]
                for kind, names in (
                    ("all-reduce", ["ring", "direct"]),
                    ("all-gather", ["ring", "direct"]),
                    ("reduce-scatter", ["ring", "direct"]),
                )
                if self.chance(0.4)
            }
            if self.chance(0.3):
                collectives["endpoint-delay"] = r.choice(["0 ns", "20 ns", "1 us"])
        model, parallel = self.layers(math.prod(self.sizes))
        model.pop("late", None)
        if parallel.get("zero", 0) > 1:
            del parallel["zero"]
        system = {"network": network} | ({"collectives": collectives} if collectives else {})
        if self.model != "packet" and self.chance(0.3):
            system["rules"] = "astra-sim"
        if self.chance(0.3):
            system["compute"] = {"local-memory": {"bandwidth": r.choice(["100 GB/s", "3350 GB/s"])}}
        return Case({"config.yaml": {"system": system, "workload": {"model": model, "parallel": parallel}}})

    def divisor(self, number):
        return self.r.choice([n for n in range(1, number + 1) if number % n == 0])

    # ---- Orrery's own configuration ----

    def own(self):
        system = {}
        if self.chance(0.2):
            system["rules"] = (
                "physical" if self.model == "packet" else self.r.choice(["physical", "astra-sim", "astra-sim"])
            )
        self.rules = system.get("rules")
        system["network"] = self.network()
        self.npus = math.prod(self.sizes)
        config = {"system": system}
        if self.chance(0.1) and self.npus >= 4:
            self.jobs(config)
        else:
            config["workload"] = self.workload(self.npus, system)
        if collectives := self.collectives():
            system["collectives"] = collectives
        self.compute(system, config)
        unlikely = () if self.chance(0.03) else ("durations",)
        if communication := self.keys.draw(self.r, "system.communication", 0.15, without=unlikely):
            system["communication"] = system.get("communication", {}) | communication
        if self.needs_memory or self.chance(0.1):
            system["remote-memory"] = self.remote_memory()
        if self.chance(0.3):
            config["perturbation"] = self.perturbation()
        if self.chance(0.05):
            config["cost"] = self.cost()
        run = {"memory": "report"} if self.chance(0.7) else {}
        others = ("record-load",) if self.model == "packet" else ("record-flows", "queue-bins")
        run |= self.keys.draw(self.r, "run", 0.15, without=others if self.chance(0.95) else ())
        if self.chance(0.6):
            run["timeline"] = True
        if run:
            config["run"] = run
        return Case({"config.yaml": config}, self.traces, self.files)

    def network(self):
        network = {} if self.model == "congestion-unaware" and self.chance(0.5) else {"model": self.model}
        if self.model == "congestion-aware" and self.chance(0.3):
            network["switching"] = "cut-through"
            if self.chance(0.5):
                network["packet-size"] = self.r.choice(["0 B", "1000 B", "4 KiB", "64 KiB"])
        self.graphed = self.chance(0.15)
        if self.graphed:
            network["graph"], network["dimensions"] = self.graph()
        else:
            network["dimensions"] = self.dimensions()
        if self.model == "packet":
            packets = self.packets()
            if packets:
                network["packets"] = packets
        return network

    def dimensions(self):
        while True:
            entries = [self.dimension() for _ in range(self.r.choice([1, 1, 1, 2, 2, 3]))]
            self.sizes = [size for _, size in entries]
            if 2 <= math.prod(self.sizes) <= (16 if self.few else 32):
                return [entry for entry, _ in entries]

    def dimension(self):
        r = self.r
        shapes = [
            "Ring",
            "Ring",
            "Mesh",
            "FullyConnected",
            "FullyConnected",
            "Switch",
            "Switch",
            "Switch",
            "Torus2D",
            "Torus3D",
        ]
        shape = r.choice(shapes + (["FatTree", "Dragonfly"] if self.few or self.chance(0.05) else []))
        size = r.choice([1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 8, 8]) if self.chance(0.97) else 16
        entry = {"shape": shape, "size": size}
        if shape == "FatTree":
            ports = r.choice([2, 4, 4])
            entry |= {"ports": ports, "size": r.choice([1, 2] if ports == 2 else [4, 8, 16])}
            if self.chance(0.3) and ports == 4:
                entry["oversubscription"] = r.choice([1, 2])
        elif shape == "Dragonfly":
            entry["npus-per-router"] = r.choice([1, 2])
            routers, links = 2 * entry["npus-per-router"], entry["npus-per-router"]
            if self.chance(0.4):
                routers = entry["routers"] = r.choice([2, 3, 4])
            if self.chance(0.4):
                links = entry["global-links"] = r.choice([1, 2])
            group = routers * entry["npus-per-router"]
            entry["size"] = group * r.randint(1, min(routers * links + 1, max(1, 16 // group)))
            if self.model == "congestion-aware" and self.chance(0.5):
                entry["routing"] = r.choice(["adaptive", "minimal"])
        elif shape == "Torus2D":
            entry["size"] = r.choice(["2x2", "2x4", "4x4", "3x2", "1x4"])
        elif shape == "Torus3D":
            entry["size"] = r.choice(["2x2x2", "2x2x4", "3x2x1"])
        elif shape == "Switch":
            if self.model != "packet" and self.chance(0.15):
                entry["oversubscription"] = r.choice([1, 1.5, 2, 4])
            elif self.model != "packet" and self.chance(0.1):
                entry["in-switch-operations"] = r.choice([1, 2, 4])
        if self.chance(0.1):
            entry["links"] = r.choice([1, 2, 3])
        entry |= {
            "bandwidth": r.choice(BANDWIDTHS if self.chance(0.97) else ["1 MB/s", "1.5 TB/s", "100 TB/s"]),
            "latency": r.choice(LATENCIES if self.chance(0.97) else ["1 ps", "3 ms", "1 s"]),
        }
        return entry, math.prod(map(int, str(entry["size"]).split("x")))

    def graph(self):
        r = self.r
        kind = r.choice(["links", "leaf-spine", "leaf-spine", "clos", "rails", "torus", "dragonfly+"])
        speed = {"bandwidth": r.choice(["100 Gb/s", "400 Gb/s"]), "latency": r.choice(["500 ns", "1 us"])}
        if kind == "links":
            hosts = r.choice([2, 3, 4, 8])
            graph = {
                "hosts": hosts,
                "switches": 1,
                "links": [[host, hosts, r.choice(["100 Gb/s", "400 Gb/s"]), "1 us"] for host in range(hosts)],
            }
            self.sizes = [hosts]
        elif kind == "leaf-spine":
            graph = {
                "generate": kind,
                "leaves": r.choice([1, 2, 4]),
                "hosts-per-leaf": r.choice([2, 4]),
                "spines": r.choice([1, 2]),
                **speed,
            }
            self.sizes = [graph["hosts-per-leaf"], graph["leaves"]]
            if self.chance(0.2):
                graph["links-per-pair"] = 2
            if self.chance(0.3):
                graph["links"] = {"uplink": {"bandwidth": r.choice(["50 Gb/s", "800 Gb/s"])}}
        elif kind == "clos":
            graph = {"generate": kind, "ports": 4, **speed}
            self.sizes = [2, 2, 4]
        elif kind == "rails":
            servers, spines = r.choice([2, 4]), r.choice([0, 1])
            graph = {
                "generate": kind,
                "servers": servers,
                "spines": spines,
                "server": {"npus": 4, "inside": r.choice(["switch", "all-pairs", "ring"])},
                **speed,
            }
            self.sizes = [4, servers]
        elif kind == "torus":
            sizes = r.choice([[4], [2, 4], [3, 3], [2, 2, 2]])
            graph = {"generate": kind, "sizes": sizes, **speed}
            self.sizes = sizes
        else:
            graph = {
                "generate": kind,
                "groups": 3,
                "leaves-per-group": 1,
                "spines-per-group": 2,
                "hosts-per-leaf": 2,
                "global-links": 1,
                **speed,
            }
            self.sizes = [2, 3]
        if self.chance(0.5):
            self.sizes = [math.prod(self.sizes)]
        if kind != "links" and self.chance(0.15):
            graph["routes"] = r.choice(["widest", "shortest"])
        if self.chance(0.1):
            graph["forwarding"] = True
        if self.chance(0.1):
            hosts = list(range(math.prod(self.sizes)))
            r.shuffle(hosts)
            graph["placement"] = hosts
        shape = "Switch" if self.chance(0.95) else r.choice(["Ring", "FullyConnected"])
        return graph, [{"shape": shape, "size": size} for size in self.sizes]

    def packets(self):
        r = self.r
        packets = {"preset": r.choice(["astra-sim-ns3", "simai-ns3", "hpcc-2019", "uec"])} if self.chance(0.6) else {}
        for name, value in self.keys.draw(r, "system.network.packets", 0.04).items():
            packets.setdefault(name, value)
        # A payload of few bytes makes millions of packets.
        packets |= {
            name: r.choice(values)
            for name, values in (
                ("payload", ["256 B", "1000 B", "4096 B"]),
                ("header", ["1 B", "48 B", "1000 B"]),
                ("acknowledgement", ["1 B", "60 B"]),
                ("pause-frame", ["1 B", "43 B"]),
            )
            if name in packets
        }
        if self.chance(0.08):
            packets["flow-control"] = "credits"
        if self.chance(0.2):
            packets["control"] = r.choice(["none", "dcqcn", "dctcp", "hpcc", "timely", "swift", "nscc", "rccc"])
        uec = packets.get("transport") == "uec" or packets.get("preset") == "uec" and packets.get("transport") != "roce"
        if "control" in packets and self.chance(0.97):
            uec = packets["control"] in ("nscc", "rccc")
            if packets.get("preset") == "uec" or uec:
                packets["transport"] = "uec" if uec else "roce"
            else:
                packets.pop("transport", None)
        if packets.get("routing", "flow-hash") != "flow-hash" and not uec and self.chance(0.95):
            packets["loss"] = "selective"
        if uec and self.chance(0.95):
            packets.pop("retransmission-timeout", None)
        if self.chance(0.1):
            packets["marks"] = [[rate, "5 kB", "50 kB", 0.5] for rate in ("100 Gb/s", "400 Gb/s")]
        if not uec and self.chance(0.97):
            for name in ("spraying", "trimming", "queue"):
                packets.pop(name, None)
        if uec:
            packets |= {
                name: r.choice(values)
                for name, values in (
                    ("spraying", ["none", "oblivious", "bitmap", "reps", "mixed"]),
                    ("trimming", [True, False]),
                    ("queue", ["200 kB", "20 kB"]),
                )
                if self.chance(0.25)
            }
            if self.chance(0.95):
                packets.pop("flow-control", None)
        if packets.get("flow-control") == "credits":
            packets |= {
                name: r.choice(values)
                for name, values in (("credits", ["10 kB", "64 KiB"]), ("virtual-channels", [1, 2]))
                if self.chance(0.5)
            }
        elif self.chance(0.97):
            for name in ("credits", "virtual-channels"):
                packets.pop(name, None)
        return packets

    def collectives(self):
        r, collectives = self.r, {}
        for kind in KINDS:
            if self.chance(0.12):
                possible = ALGORITHMS if self.chance(0.03) else POSSIBLE[kind]
                if self.chance(0.15):
                    collectives[kind] = [r.choice(WHOLE[:2] if kind == "all-to-all" else WHOLE)]
                else:
                    collectives[kind] = [
                        r.choice([name for name in possible if name != "halvingDoubling" or size & (size - 1) == 0])
                        for size in self.sizes
                    ]
        others = () if self.rules != "astra-sim" or self.chance(0.05) else ("compute-share",)
        collectives |= self.keys.draw(r, "system.collectives", 0.1, without=(*KINDS, *others))
        if isinstance(collectives.get("chunks"), int):
            collectives["chunks"] = min(collectives["chunks"], 8)
        if self.model == "congestion-unaware" and self.rules != "astra-sim" and self.chance(0.1):
            library = {
                "name": r.choice(["nccl-h100", "nccl-a100", "nccl-b200", "rccl-mi300x"]),
                **self.keys.draw(r, "system.collectives.library", 0.2, without=("name",)),
            }
            library["node-dimensions"] = r.randint(1, len(self.sizes))
            collectives["library"] = library
        return collectives

    def compute(self, system, config):
        r = self.r
        recorded = self.traces is not None and not self.roofline
        compute = {}
        models = (
            ["recorded"]
            if recorded or self.timed
            else ["roofline"] * 3 + ["products", "systolic", "table"]
            if self.generated
            else ["roofline"]
        )
        model = r.choice(models)
        if model == "roofline" and self.chance(0.5):
            compute["roofline"] = True
        elif model != "recorded" or self.chance(0.2):
            compute["model"] = model
        if model != "recorded" or self.chance(0.2):
            compute["peak"] = r.choice(
                [
                    "1 TFLOPS",
                    "100 TFLOPS",
                    "989 TFLOPS",
                    {"bf16": "100 TFLOPS", "fp8": "200 TFLOPS", "fp32": "50 TFLOPS"},
                ]
            )
            compute["local-memory"] = {"bandwidth": r.choice(["100 GB/s", "3350 GB/s"])}
            for name, values in (("latency", ["0 ns", "80 ns"]), ("size", ["1 MB", "80 GiB"])):
                if self.chance(0.1):
                    compute["local-memory"][name] = r.choice(values)
        mine = [
            key
            for key in self.keys.of("system.compute")
            if key.path.count(".") == 2 and key.name not in ("roofline", "model", "peak", "processor")
        ]
        for key in mine:
            if (
                key.name in ("attention", "elementwise", "fp8", "kernel")
                and model != "products"
                or key.name == "efficiency"
                and model not in ("roofline", "products")
            ):
                if self.chance(0.99):
                    continue
            if self.chance(0.06 if model != "products" else 0.15):
                compute[key.name] = r.choice(key.values())
        if model == "products":
            compute["processor"] = r.choice(["h100", "a100", "b200", "tpu-v5p"])
        elif self.chance(0.03):
            compute["processor"] = "a100"
        if model == "table":
            compute["table"] = "kernels.csv"
            self.files["kernels.csv"] = KERNELS
        if model == "systolic":
            array = {"rows": r.choice([4, 128]), "columns": r.choice([4, 128]), "cycle": r.choice(["1 ns", "1.06 ns"])}
            if self.chance(0.3):
                array["dataflow"] = r.choice(["weight-stationary", "output-stationary", "input-stationary"])
            if self.chance(0.3):
                array |= {
                    "input-buffer": "8 MiB",
                    "filter-buffer": "64 KiB",
                    "output-buffer": "4 MiB",
                    "bandwidth": "400 GB/s",
                }
                if self.chance(0.3):
                    array["value"] = "1 B"
            compute["array"] = array
        if model == "roofline" and self.chance(0.12):
            compute["cache"] = {"size": r.choice(["50 MiB", "64 KiB"]), "bandwidth": "12 TB/s"}
            if self.chance(0.3):
                compute["cache"]["latency"] = "5 ns"
        if model == "roofline" and self.chance(0.12):
            compute["expanded-memory"] = {"share": r.choice([0, 0.25, 0.9]), "bandwidth": "64 GB/s"}
            if self.chance(0.3):
                compute["expanded-memory"]["latency"] = "1 us"
        if compute:
            system["compute"] = compute
        if (
            self.npus == 8
            and self.of_all
            and "library" not in system.get("collectives", {})
            and system.get("rules") != "astra-sim"
            and self.chance(0.5)
        ):
            custom = harness.SOURCE / "configs/collectives/all-pairs-all-reduce-8.xml"
            self.files["all-reduce-8.xml"] = custom.read_text()
            system.setdefault("collectives", {})["custom"] = {"all-reduce": "all-reduce-8.xml"}
            if self.chance(0.7) and (
                self.model == "congestion-unaware"
                or system["network"].get("switching") == "cut-through"
                or self.chance(0.05)
            ):
                system["gpu"] = {
                    "profile": r.choice(["h100", "a100", "h20", "b200", "mi300x", "generic-3.0"]),
                    **self.keys.draw(r, "system.gpu", 0.12, without=("profile",)),
                }
        if (
            self.generated
            and model != "recorded"
            and "jobs" not in config
            and self.chance(0.1 if self.model == "congestion-unaware" else 0.01)
        ):
            system["compute"] = {"peak": compute["peak"], "local-memory": compute["local-memory"]}
            self.files.pop("kernels.csv", None)
            stacks = sorted(path.stem for path in (harness.SOURCE / "configs/stacks").glob("*.yaml"))
            config["stack"] = r.choice(stacks)

    def remote_memory(self):
        r = self.r
        kind = (
            "hierarchical-pool"
            if self.offload == "path"
            else r.choice(["per-npu", "per-npu", "per-node", "pool", "hierarchical-pool"])
        )
        memory = {"kind": kind, "bandwidth": r.choice(["10 GB/s", "33.3 GB/s"])}
        if self.chance(0.6):
            memory["latency"] = r.choice(["0 ns", "250 ns", "1 us"])
        if kind in ("per-node", "hierarchical-pool"):
            memory["npus-per-node"] = self.divisor(self.npus)
        if kind == "hierarchical-pool":
            switches = r.choice([1, 2])
            memory |= {
                "groups": switches * r.choice([1, 2]),
                "switches": switches,
                "link-bandwidth": "20 GB/s",
                "fabric-bandwidth": "50 GB/s",
                "chunk-size": r.choice(["4 KiB", "1 MiB"]),
            }
            if self.chance(0.5):
                memory |= {"link-latency": "200 ns", "fabric-latency": "5 ns"}
        return memory

    def npus_text(self, npus):
        first = self.r.randrange(npus)
        last = self.r.randrange(first, npus)
        return str(first) if first == last else f"{first}-{last}"

    def perturbation(self):
        r, perturbation = self.r, {}
        if self.chance(0.4):
            perturbation["noise"] = r.choice([0, 0.05, 0.3])
        if self.chance(0.2):
            perturbation["noise-seed"] = r.choice([0, 1, 7])
        if self.chance(0.4):
            perturbation["distributions"] = [self.distribution() for _ in range(r.choice([1, 1, 2]))]
        if self.chance(0.3):
            perturbation["slow-npus"] = [{"npus": self.npus_text(self.npus), "compute": r.choice([0.5, 0.8, 2])}]
        if self.chance(0.1):
            perturbation["compute-speed"] = [r.choice([1, 0.9, 1.1]) for _ in range(self.npus)]
        if self.chance(0.3) and not self.graphed:
            d = r.randrange(len(self.sizes))
            link = {"dimension": d, "npus": self.npus_text(self.npus)}
            for name, values in (("bandwidth", [0.3, 0.5, 2]), ("latency", [0.5, 2, 10])):
                if self.chance(0.6):
                    link[name] = r.choice(values)
            if len(link) == 2:
                link["latency"] = 3
            if self.chance(0.1):
                link = {"dimension": d, "npus": "0-1", "failed": True}
            perturbation["links"] = [link]
        if self.chance(0.1):
            perturbation["repetitions"] = r.choice([1, 2, 3])
        return perturbation

    def distribution(self):
        r = self.r
        per = r.choice(
            ["machine", "npu", "step", "node"]
            + (["collective", "message"] if self.model == "congestion-unaware" else [])
        )
        kind = r.choice(["uniform", "normal", "lognormal", "tail", "exponential", "values"])
        entry = {"per": per, "kind": kind}
        if per == "machine" and self.chance(0.5):
            entry["machine-size"] = r.choice([1, 2, 4])
        slow = per in ("collective", "message")
        if kind == "uniform":
            entry |= {"least": 1 if slow else 0.9, "most": r.choice([1.2, 3])}
        elif kind == "normal":
            entry |= {"deviation": 0.05} | ({"mean": 1.02} if self.chance(0.5) else {})
        elif kind == "lognormal":
            entry |= {"deviation": 0.05} | ({"median": 1.02} if self.chance(0.5) else {})
        elif kind == "tail":
            entry |= {"factor": 1.5} | ({"probability": 0.2} if self.chance(0.7) else {})
        elif kind == "exponential":
            entry |= (
                {"excess": 0.1}
                | ({"probability": 0.2} if self.chance(0.5) else {})
                | ({"most": 2} if self.chance(0.3) else {})
            )
        else:
            entry["values"] = [1, 1.1, 1.3]
        return entry

    def cost(self):
        cost = {"source": "none", "date": "2026-01"}
        for key in self.keys.of("cost"):
            if self.chance(0.3):
                place = cost
                for part in key.path.split(".")[1:-1]:
                    place = place.setdefault(part, {})
                place[key.name] = self.r.choice(key.values())
        if self.chance(0.5):
            cost["network"] = [
                {"name": f"tier{d}", **self.keys.draw(self.r, "cost.network", 0.3, without=("name",))}
                for d in range(len(self.sizes))
            ]
            if self.chance(0.5):
                cost["tiers"] = [f"tier{d}" for d in range(len(self.sizes))]
        return cost

    # ---- workloads ----

    def jobs(self, config):
        r = self.r
        count = r.choice([2, 2, 3]) if self.npus >= 6 else 2
        sizes, left = [], self.npus
        for i in range(count):
            sizes.append(r.randint(1, left - (count - 1 - i)))
            left -= sizes[-1]
        jobs = []
        needs = False
        for i, size in enumerate(sizes):
            job = {"npus": size}
            if self.chance(0.3):
                job["name"] = f"mine{i}"
            if self.chance(0.7):
                job["allocation"] = r.choice(
                    ["contiguous", "scattered", "random"] if i == 0 else ["scattered", "random"]
                )
            elif any("allocation" in other for other in jobs):
                job["allocation"] = "random"
            if "allocation" in job:
                if job["allocation"] == "random" and self.chance(0.5):
                    job["seed"] = r.choice([0, 1, 7])
            if self.chance(0.4):
                job["start"] = r.choice(["0 ns", "1 us", "5 ms"])
            job["workload"] = self.workload(size, {}, traces=False)
            needs = needs or self.needs_memory
            jobs.append(job)
        self.needs_memory, self.generated = needs, True
        config["jobs"] = jobs

    def workload(self, npus, system, traces=True):
        self.needs_memory, self.generated, self.roofline = False, True, False
        if traces and self.chance(0.2):
            workload = self.trace_workload(system)
        else:
            kind = self.r.choice(["layers"] if self.timed else ["transformer"] * 5 + ["layers"] * 2 + ["dlrm"])
            if kind != "layers":
                self.timed = False
            model, parallel = {"transformer": self.transformer, "layers": self.layers, "dlrm": self.dlrm}[kind](npus)
            workload = {"model": model, "parallel": parallel}
        if self.chance(0.3):
            workload["iterations"] = self.r.choice([1, 2, 3, 5])
        for name, share in (
            ("dependencies", 0.02 if self.generated else 0.1),
            ("streams", 0.1),
            ("replay-only", 0.02 if self.generated else 0.1),
        ):
            if self.chance(share):
                [key] = [key for key in self.keys.all if key.path == f"workload.{name}"]
                workload[name] = self.r.choice(key.values())
        if workload.get("streams") == "trace" and self.generated and self.chance(0.95):
            workload["streams"] = "counted"
        return workload

    def trace_workload(self, system):
        dimensions = system["network"]["dimensions"]
        sizes = self.sizes

        class OnThese(random_workload.Workload):
            def draw_memory(self):
                return {"memory-type": "NO_MEMORY_EXPANSION"}

            def draw_system(self):
                algorithms = {
                    kind + "-implementation": ["ring"] * len(sizes) for kind in random_workload.KINDS.values()
                }
                return harness.System(
                    ["Ring"] * len(sizes), sizes, system={**algorithms, "roofline-enabled": int(self.roofline)}
                )

        drawn = OnThese(self.seed, operations=(5, 40))
        self.traces, self.generated, self.roofline = drawn.traces, False, drawn.roofline
        if any("x" in str(dimension["size"]) for dimension in dimensions):  # a torus counts as several dimensions
            for node in sum(self.traces, []):
                node.attributes.pop("involved_dim", None)
        if drawn.rendezvous:
            system["communication"] = {"rendezvous": True}
        workload = (
            {"traces": "workload"}
            if self.chance(0.8)
            else {"traces": [{"npus": f"0-{self.npus - 1}", "file": "workload.{npu}.et"}]}
        )
        if drawn.groups:
            self.files["groups.json"] = json.dumps(drawn.groups)
            workload["groups"] = "groups.json"
        return workload

    def axes(self, npus, names):
        """Returns degrees of parallelism whose product is the number of NPUs."""
        if npus == 8 and self.chance(0.4):
            self.of_all = True
            return {self.r.choice(["dp", "dp", "tp"]): 8}
        degrees, left = {}, npus
        for prime in (2, 2, 2, 2, 2, 3, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31):
            if left % prime == 0:
                name = self.r.choice(names)
                degrees[name] = degrees.get(name, 1) * prime
                left //= prime
        if left > 1:
            degrees["dp"] = degrees.get("dp", 1) * left
        return degrees

    def transformer(self, npus):
        r = self.r
        experts = self.chance(0.25)
        degrees = self.axes(npus, ["tp", "cp", "dp", "dp", "pp"] + (["ep", "ep"] if experts else []))
        if degrees.get("tp", 1) not in (1, 2, 4, 8):
            degrees["dp"] = degrees.get("dp", 1) * degrees.pop("tp")
        pp, tp, cp, ep = (degrees.get(name, 1) for name in ("pp", "tp", "cp", "ep"))
        heads = 8
        model = {
            "layers": pp * r.choice([1, 1, 2]),
            "hidden": r.choice([64, 64, 128]),
            "heads": heads,
            "sequence": cp * tp * r.choice([8, 16]),
        }
        if self.chance(0.05):
            model["kind"] = "transformer"
        draws = self.keys.draw(
            r,
            "workload.model, kind: transformer",
            0.08,
            without=(
                "layers",
                "hidden",
                "heads",
                "sequence",
                "experts",
                "top-k",
                "shared-experts",
                "dense-layers",
                "expert-interval",
                "router-bias",
                "key-value",
                "query",
                "value",
            ),
        )
        draws = {name: value for name, value in draws.items() if name != "rotary" or isinstance(value, bool)}
        draws.pop("dense-ffn", None)
        if "kv-heads" in draws:
            draws["kv-heads"] = r.choice([0, 1, 2, 4, 8])
        for name in ("head-size", "ffn", "vocabulary"):
            if name in draws:
                draws[name] = r.choice([0, 64, 256])
        model |= draws
        if self.chance(0.3) or "further-tokens" in model:
            model["vocabulary"] = r.choice([128, 512])
        if "further-tokens" in model:
            model["further-tokens"] = r.choice([0, 1, 2])
        if self.chance(0.07):
            model["latent"] = {
                "key-value": 32,
                "query": r.choice([0, 48]),
                "rotary": r.choice([8, 16]),
                "value": r.choice([0, 16]),
            }
            model.pop("kv-heads", None)
        parallel = dict(degrees)
        if experts:
            model |= {"experts": ep * r.choice([1, 2, 4]), "top-k": 1}
            if model["experts"] > 1 and self.chance(0.6):
                model["top-k"] = 2
            for name, values in (
                ("shared-experts", [1]),
                ("dense-layers", [1] if model["layers"] > 1 else [0]),
                ("expert-interval", [1, 2]),
                ("router-bias", [True]),
                ("dense-ffn", [128]),
            ):
                if self.chance(0.15):
                    model[name] = r.choice(values)
            for name, values in (
                ("expert-capacity", [1, 1.25]),
                ("expert-tp", [0, 1]),
                ("expert-imbalance", [0, 0.3]),
                ("expert-seed", [1, 7]),
                ("expert-overlap", [True]),
            ):
                if self.chance(0.15):
                    parallel[name] = r.choice(values)
        self.pipeline(parallel, model, pp)
        if self.chance(0.25) and tp > 1:
            parallel["sp"] = True
        if self.chance(0.45):
            parallel["zero"] = r.choice([0, 1, 2, 3])
            for name, share in (
                ("replicas", 0.1),
                ("prefetch", 0.2),
                ("bucket-buffers", 0.2),
                ("gather-before-forward", 0.2),
                ("calls-of-layer", 0.15),
                ("call-time", 0.15),
                ("call-time-per-member", 0.15),
                ("exposed-share", 0.1),
            ):
                if self.chance(share):
                    [key] = [key for key in self.keys.all if key.path == f"workload.parallel.{name}"]
                    parallel[name] = r.choice(key.values())
            if isinstance(parallel.get("replicas"), int):
                parallel["replicas"] = self.divisor(parallel.get("dp", 1))
            if isinstance(parallel.get("calls-of-layer"), int):
                parallel["calls-of-layer"] = min(parallel["calls-of-layer"], 4)
        for name, values, share in (
            ("placement", None, 0.08),
            ("recompute", ["none", "selective", "full"], 0.15),
            ("bucket", ["0 B", "10 kB", "auto"], 0.15),
            ("norm-sums", [True], 0.1),
            ("overlap", [False], 0.2),
            ("precision", ["bf16", "fp8", "fp32"], 0.15),
            ("gradients", ["bf16", "fp32"], 0.1),
            ("detail", ["operator"], 0.25),
            ("tp-overlap", [0, 0.5, 0.8], 0.1),
            ("cp-exchange", ["ring"], 0.15),
            ("between-steps", ["1 us", "20 ms"], 0.05),
            ("micro-batch", [2, 3], 0.15),
        ):
            if self.chance(share):
                parallel[name] = r.choice(values) if values else r.sample(["tp", "cp", "ep", "dp", "pp"], 5)
        if parallel.get("recompute") == "full" and self.chance(0.3):
            parallel["recompute-layers"] = r.choice([0, 1])
        if self.chance(0.06) and parallel.get("schedule", "1f1b") == "1f1b" and not parallel.get("zero"):
            parallel["phase"] = r.choice(["prefill", "decode", "request"])
            for name in (
                "recompute",
                "recompute-layers",
                "overlap",
                "interleaving",
                "delayed-weight-gradients",
                "bucket",
                "norm-sums",
                "gradients",
            ):
                parallel.pop(name, None)
            if parallel["phase"] == "request":
                parallel["output-tokens"] = r.choice([1, 4, 16])
                if self.chance(0.5):
                    parallel["decode-samples"] = r.choice([0, 2])
        if self.chance(0.12) and "phase" not in parallel:
            parallel["offload"] = r.sample(["parameters", "gradients", "optimizer"], r.randint(1, 3))
            self.needs_memory = True
            if self.chance(0.2):
                parallel["offload-collectives"] = self.offload = "path"
        return model, parallel

    def pipeline(self, parallel, model, pp):
        r = self.r
        if self.chance(0.6) or pp > 1:
            parallel["micro-batches"] = pp * r.choice([1, 2]) if self.chance(0.8) else r.choice([1, 3, 4])
        elif self.chance(0.2):
            replicas = parallel.get("dp", 1) * parallel.get("ep", 1)
            parallel["global-batch"] = 6 * replicas * r.choice([1, 2])
        if pp == 1:
            return
        if self.chance(0.4):
            parallel["schedule"] = r.choice(["1f1b", "gpipe", "zb-h1", "zb-v"] + (["dualpipe"] if pp % 2 == 0 else []))
            if parallel["schedule"] in ("zb-v", "dualpipe"):
                model["layers"] = 2 * pp
                parallel["micro-batches"] = 2 * pp
        elif self.chance(0.3):
            parallel["interleaving"] = 2
            model["layers"] = 2 * pp
            parallel["micro-batches"] = pp * r.choice([1, 2])
        elif self.chance(0.2):
            parallel["stage-layers"] = [model["layers"] // pp] * pp
        if self.chance(0.15):
            parallel["delayed-weight-gradients"] = True
        if self.chance(0.15):
            parallel["scattered-messages"] = True

    def layers(self, npus):
        r = self.r
        entries = []
        self.timed = self.timed or self.timed is None and self.chance(0.6)
        for i in range(r.choice([1, 1, 2, 3])):
            entry = {"name": f"layer{i}"} if self.chance(0.5) else {}
            entry["parameters"] = r.choice([0, 1, 4, 1000, 100003])
            if not self.timed:
                entry |= {"flops": r.choice([1, 10**6, 10**9]), "activations": r.choice([1, 4096])}
            else:
                entry |= {
                    name: r.choice(["1 us", "10 us", "333 ps"])
                    for name in ("forward", "backward", "update")
                    if self.chance(0.5)
                }
            if self.chance(0.2):
                entry["repeat"] = r.choice([1, 3])
            entries.append(entry)
        model = {"kind": "layers", "layers": entries}
        if self.timed and self.chance(0.2):
            model["late"] = {"first": "1 us", "step": r.choice(["0 ns", "1 us"]), "stride": r.choice([1, 7])}
        parallel = {"dp": npus}
        self.of_all = True
        if self.chance(0.3):
            parallel["overlap"] = False
        if self.chance(0.3):
            parallel["micro-batches"] = r.choice([1, 2, 4])
        if self.chance(0.2):
            parallel["bucket"] = r.choice(["10 kB", "1 MB"])
        if self.chance(0.2):
            parallel["zero"] = r.choice([1, 2, 3])
        return model, parallel

    def dlrm(self, npus):
        r = self.r
        width = 32
        tables = []
        for _ in range(r.choice([1, 2, 4, 5])):
            table = {"rows": r.choice([100, 4096])}
            for name, values in (("pooling", [0, 3]), ("sharding", ["even", "table", "row", "column"])):
                if self.chance(0.3):
                    table[name] = r.choice(values)
            tables.append(table if len(table) > 1 else table["rows"])
        model = {"kind": "dlrm", "bottom": [64, width], "tables": tables, "top": [64, 1]}
        if self.chance(0.4):
            model |= {"cross-layers": r.choice([1, 2])} | ({"cross-rank": 16} if self.chance(0.5) else {})
            for table in tables:
                if isinstance(table, dict) and self.chance(0.3):
                    table["width"] = 64
        for name, values in (("dense-features", [26]), ("pooling", [1, 5])):
            if self.chance(0.3):
                model[name] = r.choice(values)
        if self.chance(0.2):
            model["poolings"] = [r.choice([1, 2]) for _ in tables]
        parallel = {"dp": npus}
        self.of_all = True
        for name, values in (
            ("table-sharding", ["even", "table", "row", "column"]),
            ("table-balance", ["bytes", "lookups"]),
            ("table-columns", [8, 32]),
            ("micro-batch", [2, 8]),
            ("micro-batches", [2]),
            ("overlap", [False]),
        ):
            if self.chance(0.3):
                parallel[name] = r.choice(values)
        return model, parallel
