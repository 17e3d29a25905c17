#!/usr/bin/python3
"""Graphs that are generated (system.network.graph.generate), servers of NCCL, and blueprints of InfraGraph: what they expand to, that they run
a collective on all three networks, and that they are drawn."""
import json
import pathlib
import sys
from random import Random

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("support", "reference")]

import h5py  # noqa: E402

import chakra  # noqa: E402
import harness  # noqa: E402
import infragraph_blueprints  # noqa: E402
from chakra import Node  # noqa: E402
from graphs import leaves  # noqa: E402

NETWORKS = ("congestion-unaware", "congestion-aware", "packet")
RATES = {"bandwidth": "400 Gb/s", "latency": "500 ns"}
SERVER = {"npus": 4, "inside": "switch", "bandwidth": "400 GB/s", "latency": "150 ns"}
# A graph, its NPUs, switches and links, and its dimensions.
GRAPHS = {
    "leaf-spine": (
        {"leaves": 4, "hosts-per-leaf": 4, "spines": 2, **RATES, "links": {"uplink": {"bandwidth": "800 Gb/s"}}},
        16,
        6,
        16 + 8,
        [("Switch", 4), ("Switch", 4)],
    ),
    "servers at leaves": (
        {"generate": "leaf-spine", "leaves": 2, "hosts-per-leaf": 8, "spines": 2, "server": SERVER, **RATES},
        16,
        8,
        32 + 4,
        [("Switch", 4), ("Switch", 2), ("Switch", 2)],
    ),
    "clos": ({"ports": 4, **RATES}, 16, 20, 48, [("Switch", 2), ("Switch", 8)]),
    "rails": (
        {"servers": 4, "servers-per-group": 2, "server": SERVER, "spines": 2, **RATES},
        16,
        14,
        32 + 16,
        [("Switch", 4), ("Switch", 2), ("Switch", 2)],
    ),
    "rails without spines": (
        {"generate": "rails", "servers": 4, "server": SERVER, **RATES},
        16,
        8,
        32,
        [("Switch", 4), ("Switch", 4)],
    ),
    "dragonfly+": (
        {"groups": 4, "leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2, "global-links": 3, **RATES},
        16,
        16,
        16 + 16 + 12,
        [("Switch", 2), ("Switch", 8)],
    ),
    "torus": ({"sizes": [4, 2, 2], **RATES}, 16, 0, 16 + 8 + 8, [("Ring", 4), ("Ring", 2), ("Ring", 2)]),
    "twisted torus": (
        {"generate": "torus", "sizes": [4, 4], "twist": 2, **RATES},
        16,
        0,
        32,
        [("Ring", 4), ("Switch", 4)],
    ),
}
SMALL = ["--set=system.network.packets.payload=4096 B"]


class Graphs(harness.Folder):
    has_drawn = False

    def write(self, graph, name="graph.yaml"):
        (self.folder / name).write_text(json.dumps(graph))
        return self.folder / name

    def show(self, path, *more, code=0):
        outcome = harness.orrery("show", "graph", path, "--json", *more)
        self.assertEqual(outcome.code, code, outcome.err)
        return json.loads(outcome.out) if code == 0 else outcome.err

    def on(self, graph, dimensions):
        path = self.folder / "system.yaml"
        listed = [{"shape": shape, "size": size} for shape, size in dimensions]
        path.write_text(json.dumps({"system": {"network": {"graph": graph, "dimensions": listed}}}))
        return str(path)

    def traces(self, npus, size=20_000):
        harness.write_workload(
            self.folder, [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=size)] for _ in range(npus)]
        )
        return [f"--set=workload.traces={self.folder / 'workload'}"]

    def run_all(self, graph, dimensions, npus):
        """Runs a collective on the three networks, the last two on 1 and 2 ranks. Returns the results."""
        config, traces = self.on(graph, dimensions), self.traces(npus)
        results = []
        for network in NETWORKS:
            arguments = [config, f"--network={network}", *SMALL, *traces]
            results.append(self.run_once(arguments, f"{network}.h5"))
            if network != "congestion-unaware":
                self.assertEqual(harness.difference(results[-1], self.run_once(arguments, "two.h5", ranks=2)), "")
            self.assertGreater(min(harness.finish_times(results[-1])), 0)
        return results

    def draw(self, results):
        """Draws the links; the gate is content with one picture."""
        if harness.GATE and Graphs.has_drawn:
            return
        Graphs.has_drawn = True
        outcome = harness.run_script("scripts/plot_links.py", results, "--output", self.folder / "graph.png")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertGreater((self.folder / "graph.png").stat().st_size, 1000)

    def test_generators(self):
        """Counts and dimensions by hand; a collective runs on the three networks; the expanded graph gives the same times; all are drawn."""
        for name, (graph, npus, switches, links, dimensions) in GRAPHS.items():
            with self.subTest(name=name):
                graph = {"generate": name, **graph}
                shown = self.show(self.write(graph), f"--output={self.folder / 'rows.json'}", "--force")
                self.assertEqual(
                    [shown["network"][key] for key in ("npus", "switches", "links")], [npus, switches, links]
                )
                self.assertEqual([(one["shape"], one["size"]) for one in shown["dimensions"]], dimensions)
                results = self.run_all(graph, dimensions, npus)
                self.draw(results[1])
                rows = json.loads((self.folder / "rows.json").read_text())
                again = self.run_once(
                    [self.on(rows, dimensions), "--network=packet", *SMALL, *self.traces(npus)], "again.h5"
                )
                self.assertEqual(harness.finish_times(again), harness.finish_times(results[2]))

    def test_bisection(self):
        """What closed forms say: half of the hosts of a full fat tree; both links of each spine; of a torus of 4 x 4 the 2 x 4 links that a
        half cuts, which a twist does not make fewer. For many hosts it is between the bounds."""

        def bounds(*command):
            outcome = harness.orrery("show", "network", *command, "--json")
            self.assertEqual(outcome.code, 0, outcome.err)
            return json.loads(outcome.out)["bisection"]

        def bisection(name):
            graph, *_, dimensions = GRAPHS[name]
            found = bounds(self.on({"generate": name, **graph}, dimensions))
            self.assertTrue(found["exact"])
            return found["bytes_per_ns"]

        large = self.folder / "large.yaml"
        large.write_text("{generate: clos, ports: 6, bandwidth: 50 GB/s, latency: 1 us}")
        found = bounds(large)
        self.assertLessEqual(found["bytes_per_ns_at_least"], 27 * 50)
        self.assertGreaterEqual(found["bytes_per_ns_at_most"], 27 * 50)

        self.assertEqual(bisection("clos"), 8 * 50)
        self.assertEqual(bisection("leaf-spine"), 2 * 2 * 100)
        self.assertGreaterEqual(bisection("twisted torus"), 8 * 50)

    def test_show_network_of_graphs_alone(self):
        """`orrery show network` takes each kind of graph without a configuration, and says what it says with one."""
        alone, whole = (
            json.loads(harness.orrery("show", "network", file, "--json").out)
            for file in (
                harness.SOURCE / "configs/graphs/servers-4-and-6.yaml",
                harness.SOURCE / "configs/servers-4-and-6.yaml",
            )
        )
        self.assertEqual(alone, whole)
        (self.folder / "topology.txt").write_text("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n")
        for file, npus in (
            (self.folder / "topology.txt", 2),
            (harness.SOURCE / "configs/flows/leaf-spine.yaml", 8),
            (harness.SOURCE / "configs/infragraph/dgx-h100.yaml", 16),
        ):
            outcome = harness.orrery("show", "network", file, "--json")
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(json.loads(outcome.out)["npus"], npus)
        outcome = harness.orrery("show", "network", harness.SOURCE / "configs/flows/none.yaml")
        self.assertEqual(outcome.code, 3, outcome.err)

    def test_unlike_servers(self):
        """Servers of 4 and 6 NPUs (configs/servers-4-and-6.yaml) have one Switch of 10. Inside a server its own links serve. The same for rails."""
        shown = self.show(harness.SOURCE / "configs/servers-4-and-6.yaml")
        self.assertEqual([shown["network"][key] for key in ("npus", "switches", "links")], [10, 2, 6 + 6 + 10])
        self.assertEqual(shown["dimensions"], [{"shape": "Switch", "size": 10}])
        for network in NETWORKS:
            self.run_once(
                [str(harness.SOURCE / "configs/servers-4-and-6.yaml"), f"--network={network}"], f"{network}.h5"
            )
        self.draw(self.folder / "packet.h5")
        self.run_all({"file": str(harness.SOURCE / "configs/graphs/servers-4-and-6.yaml")}, [("Switch", 10)], 10)
        rails = {
            "generate": "rails",
            "servers": [4, 6],
            "server": {key: SERVER[key] for key in SERVER if key != "npus"},
            **RATES,
        }
        self.run_all(rails, [("Switch", 10)], 10)

    def test_failed_switch(self):
        """A row [node, time] stops all links of a node. One of two spines leaves the other one; a leaf cuts its hosts off, who are named."""
        graph = {"generate": "leaf-spine", "leaves": 2, "hosts-per-leaf": 2, "spines": 2, **RATES}
        for node, code in ((6, 0), (5, 3)):
            failing = {**graph, "failures": [[node, "0 s"]]}
            shown = self.show(self.write(failing))
            if code == 0:
                self.assertNotIn("unreachable", shown)
                self.run_all(failing, [("Switch", 4)], 4)
                continue
            self.assertEqual(shown["unreachable"], {"pairs": 10, "from_npu_0": [2, 3]})
            outcome = harness.orrery(
                "run", self.on(failing, [("Switch", 4)]), *self.traces(4), f"--output={self.folder / 'refused.h5'}"
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn("no working links lead from NPU 1 to NPU 2", outcome.err)
        later = self.on({**graph, "failures": [[6, "2 us"]]}, [("Switch", 4)])
        arguments = [later, "--network=packet", *SMALL, *self.traces(4, 200_000)]
        self.assertEqual(
            harness.difference(self.run_once(arguments, "one.h5"), self.run_once(arguments, "two.h5", ranks=2)), ""
        )

    def test_refusals(self):
        """What does not fit together is refused with the key."""
        leaves = {"generate": "leaf-spine", "leaves": 2, "hosts-per-leaf": 4, "spines": 1}
        for graph, *texts in (
            ({"generate": "leafspine"}, "graph.generate", "leaf-spine"),
            ({**leaves, **RATES, "spines": 0}, "graph.spines", "found 0 with several leaves"),
            ({**leaves, **RATES, "servers": [4, 5]}, "graph.servers", "found 2 servers with 9 ports"),
            ({**leaves, **RATES, "hosts": 8}, "graph.hosts"),
            ({**leaves, **RATES, "servers": [{"npus": 4, "inside": "tree"}, 4]}, "inside", "all-pairs"),
            (leaves, "links without bandwidth: 'host', 'uplink'; links without latency: 'host', 'uplink'"),
            (
                {**leaves, **RATES, "links": {"uplnk": {"latency": "1 us"}}},
                "there is no link 'uplnk'",
                "'host', 'uplink'",
            ),
            ({"generate": "clos", "ports": 5, **RATES}, "graph.ports", "an even number"),
            ({"generate": "clos", "pods": 2, **RATES}, "graph.edges-per-pod"),
            ({"generate": "clos", "ports": 4096, **RATES}, "16777216 at the most"),
            ({"generate": "rails", **RATES}, "graph.servers"),
            (
                {
                    "generate": "dragonfly+",
                    "groups": 3,
                    "leaves-per-group": 1,
                    "spines-per-group": 1,
                    "hosts-per-leaf": 1,
                    "global-links": 3,
                    **RATES,
                },
                "graph.global-links",
            ),
            ({"generate": "torus", "sizes": [4, 1], **RATES}, "graph.sizes"),
            ({"generate": "torus", "sizes": [4, 4], "servers": [2, 2], **RATES}, "graph.servers", "hosts-per-switch"),
        ):
            error = self.show(self.write(graph), code=3)
            for text in texts:
                self.assertIn(text, error)

    def test_nccl_servers(self):
        """Two servers of NCCL at rails or leaves. A node of eight GPUs with seven xGMI links each has 28 of them; each of its eight NICs of
        400 Gb/s is at a rail."""
        folder = harness.shared("inputs/nccl-topo")
        cases = (
            ("rccl/topo_8p_940.xml", 28, 8, {"FullyConnected"}),
            ("infragraph/dgx_a100_nccl_topo.xml", 48, 12, {"Switch"}),
            ("simccl/topo_8A100_4CX6.xml", 48, 5, {"Switch"}),
            ("rccl/topo_8p6l.xml", 24, 1, {"Switch"}),
        )
        for file, gpu_links, nics, shapes in cases:
            with self.subTest(file=file):
                graph = {
                    "generate": "rails",
                    "servers": 2,
                    "server": {"topology": str(folder / file)},
                    "latency": "500 ns",
                    "spines": 1,
                    "bandwidth": "50 GB/s",
                }
                shown = self.show(self.write(graph))
                kinds = shown["network"]["links_of_kind"]
                self.assertEqual(kinds.get("xgmi", 0) + kinds.get("nvlink", 0), 2 * gpu_links)
                self.assertEqual((kinds["host"], kinds["uplink"], shown["network"]["npus"]), (2 * nics, nics, 16))
                self.assertIn(shown["dimensions"][0]["shape"], shapes)
                dimensions = [(one["shape"], one["size"]) for one in shown["dimensions"]]
                self.draw(self.run_all(graph, dimensions, 16)[1])
        without = {
            "generate": "rails",
            "servers": 2,
            "server": {"topology": str(folder / cases[0][0])},
            "latency": "500 ns",
        }
        self.assertIn("links without bandwidth: 'cpu'", self.show(self.write(without), code=3))
        rates = {
            (one["link"], one["bytes_per_ns"])
            for one in self.show(self.write({**without, "links": {"cpu": {"bandwidth": "40 GB/s"}}}), "--links")[
                "links"
            ]
        }
        self.assertEqual(
            {name: round(rate, 3) for name, rate in rates}, {"xgmi": 64, "pcie": 63.015, "cpu": 40, "host": 50}
        )
        azure = {**without, "server": {"topology": str(folder / "azure/ndv4-topo.xml")}, "bandwidth": "25 GB/s"}
        self.assertIn("does not list the links of GPUs", self.show(self.write(azure), code=3))
        azure["server"] |= {"inside": "switch", "bandwidth": "300 GB/s"}
        self.assertEqual(self.show(self.write(azure))["network"]["links_of_kind"]["inside"], 16)
        self.assertIn(
            "ncv4-graph.xml",
            self.show(self.write({**without, "server": {"topology": str(folder / "azure/ncv4-graph.xml")}}), code=3),
        )

    def test_spoilt_files(self):
        """Graphs and topologies in which a piece is missing, doubled or replaced are read or refused with one message that names the file."""
        random = Random(11)
        topology = (harness.SOURCE / "tests/fuzz/seeds/nccl_topology/two-gpus.xml").read_text()
        rails = {"generate": "rails", "servers": 2, "server": {"topology": "node.xml"}, **RATES}
        unlike = {
            "generate": "clos",
            "ports": 4,
            "servers": [4, {"npus": 2, "inside": "ring"}],
            "failures": [[20, "1 us"]],
            **RATES,
        }
        for _ in range(harness.cases(10, 60, 600)):
            texts = {"node.xml": topology, "graph.yaml": json.dumps(rails), "unlike.yaml": json.dumps(unlike)}
            name = random.choice(list(texts))
            at = random.randrange(len(texts[name]))
            end = min(at + random.choice((1, 2, 8, 40, 300)), len(texts[name]))
            put = random.choice(
                (
                    "",
                    "0",
                    "-1",
                    "[",
                    "]",
                    "}",
                    ":",
                    ">",
                    "</pci>",
                    "99999999999",
                    "null",
                    texts[name][at:end] * 2,
                    "1e9",
                    "'",
                )
            )
            texts[name] = texts[name][:at] + put + texts[name][end:]
            for other, text in texts.items():
                (self.folder / other).write_text(text)
            outcome = harness.orrery("show", "graph", self.folder / ("graph.yaml" if name == "node.xml" else name))
            self.assertIn(outcome.code, (0, 3), outcome.err)
            if outcome.code == 3:
                self.assertIn(name, outcome.err)

    def ways(self):
        """Three hosts at a switch. The link of host 0 has 10 GB/s and 100 ns up to the switch, 2.5 GB/s and 300 ns down from it; the
        others have 10 GB/s and 100 ns both ways."""
        links = [
            [0, 3, ["10 GB/s", "2.5 GB/s"], ["100 ns", "300 ns"]],
            [1, 3, "10 GB/s", "100 ns"],
            [2, 3, "10 GB/s", "100 ns"],
        ]
        return {"hosts": 3, "switches": 1, "links": links}

    def send(self, source, destination):
        """Returns the argument of a workload in which one of three NPUs sends 10,000 B to another one."""
        about = {"comm_src": source, "comm_dst": destination, "comm_tag": 0, "comm_size": 10_000}
        nodes = {source: [Node(1, chakra.SEND, **about)], destination: [Node(1, chakra.RECV, **about)]}
        harness.write_workload(self.folder, [nodes.get(npu, []) for npu in range(3)])
        return f"--set=workload.traces={self.folder / 'workload'}"

    def test_directions_of_links(self):
        """A message up the fast way of a link and one down its slow way take what the direction takes, by hand, on 1, 2 and 3 ranks. A
        dimension of the congestion-unaware network has the slowest rate and the longest delay of its routes, whatever the direction. In
        the packet network the ten packets of 1,036 B follow each other at the pace of the slowest link, and their acknowledgements of
        48 B come back over the other directions; NPUs hear of either after 1 ps."""
        bare = ["--network=packet", "--set=system.network.packets.window=none"]
        stored = ["--network=congestion-aware", "--set=system.network.switching=store-and-forward"]
        cut = [*stored, "--set=system.network.switching=cut-through"]
        fast, slow = 103_600, 414_400  # ps for a packet
        packets = {0: 11 * fast + 200_000 + 1, 1: fast + 10 * slow + 400_000 + 1}
        acknowledged = {0: packets[0] + 4_800 + 100_000 + 19_200 + 300_000, 1: packets[1] + 2 * (4_800 + 100_000)}
        for source, in_parts, whole in ((0, 2_200_000, 1_200_000), (1, 5_400_000, 4_400_000)):
            destination = 1 - source
            for network, expected in (
                (["--network=congestion-unaware"], 4_400_000),
                (stored, in_parts),
                (cut, whole),
                (bare, packets[source]),
            ):
                for graph, placed in ((self.ways(), False), ({**self.ways(), "placement": [1, 0, 2]}, True)):
                    ends = (destination, source) if placed else (source, destination)
                    arguments = [self.on(graph, [("Switch", 3)]), *network, self.send(*ends)]
                    one = self.run_once(arguments, "one.h5")
                    times = harness.finish_times(one)
                    self.assertEqual(times[ends[1]], expected, (network, ends, placed))
                    if network is bare:
                        self.assertEqual(times[ends[0]], acknowledged[source])
                    for ranks in () if placed else (2, 3):
                        self.assertEqual(harness.difference(one, self.run_once(arguments, "more.h5", ranks=ranks)), "")

    def test_directions_one_answer(self):
        """Flows between two leaves, whose links to hosts and to spines differ in rate and delay by direction: the same on 1, 2 and 3 ranks
        with pauses, credits and UEC. A flow that is alone takes what it takes alone, with credits too."""
        graph = leaves([2, 2])
        for row in graph["links"]:
            row[2:] = (
                [["100 Gb/s", "40 Gb/s"], ["1 us", "300 ns"]]
                if row[0] % 2 == 0
                else [["50 Gb/s", "100 Gb/s"], ["200 ns", "1 us"]]
            )
        flows = [{"from": host, "to": to, "size": "200 kB"} for host in range(4) for to in range(4) if to != host]
        for packets in (
            {"buffer": "300 kB", "window": "none"},
            {"flow-control": "credits", "completion": "acknowledged"},
            {"preset": "uec"},
            {"preset": "uec", "control": "rccc", "completion": "acknowledged"},
        ):
            with self.subTest(packets):
                case = {"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}}
                first = self.simulate_flows(case)
                for ranks in (2, 3):
                    self.assertEqual(self.simulate_flows(case, ranks=ranks), first, ranks)
        for packets in ({"window": "none"}, {"flow-control": "credits", "window": "none"}):
            case["system"]["network"]["packets"] = packets
            case["workload"]["flows"] = [{"from": 3, "to": 0, "size": "200 kB"}]
            (flow,) = self.simulate_flows(case)["flows"]
            # 200 packets: up at 50 Gb/s, from leaf 5 to a spine at 50 Gb/s, from there to leaf 4 at 40 Gb/s, and down at 40 Gb/s.
            self.assertEqual(flow["received_ps"], 2 * 165_760 + 201 * 207_200 + 2 * 200_000 + 2 * 300_000)

    def test_directions_are_told(self):
        """Expanded graphs, lists of links, tiers and the bisection say both rates."""
        graph = self.ways()
        path = self.write(graph)
        first, second, _ = self.show(path, "--links")["links"]
        self.assertEqual(
            {
                key: first[key]
                for key in ("from", "to", "bytes_per_ns", "bytes_per_ns_back", "latency_ns", "latency_ns_back")
            },
            {
                "from": "host.0",
                "to": "switch.3",
                "bytes_per_ns": 10,
                "bytes_per_ns_back": 2.5,
                "latency_ns": 100,
                "latency_ns_back": 300,
            },
        )
        self.assertNotIn("bytes_per_ns_back", second)
        self.assertNotIn("latency_ns_back", second)
        self.assertIn("links.0.bandwidth_back: 20 Gb/s", harness.orrery("show", "graph", path, "--links").out)
        rows = [
            [0, 3, ["80 Gb/s", "20 Gb/s"], ["100 ns", "300 ns"]],
            [1, 3, "80 Gb/s", "100 ns"],
            [2, 3, "80 Gb/s", "100 ns"],
        ]
        for name in ("rows.json", "rows.yaml"):
            self.show(path, f"--output={self.folder / name}")
            again = self.show(self.folder / name, "--links", f"--output={self.folder / f'again-{name}'}.json")
            self.assertEqual(again["links"][0], first)
            self.assertEqual(json.loads((self.folder / f"again-{name}.json").read_text())["links"], rows)
        links = [[h, 4 + h // 2, "100 GB/s", "1 us"] for h in range(4)]
        for way, least in ((["50 GB/s", "120 GB/s"], 50), (["120 GB/s", "50 GB/s"], 50), ("120 GB/s", 120)):
            config = self.on({"hosts": 4, "switches": 2, "links": [*links, [4, 5, way, "1 us"]]}, [("Switch", 4)])
            found = json.loads(harness.orrery("show", "network", config, "--json").out)
            self.assertEqual(found["bisection"]["bytes_per_ns"], least)
        config = self.on(graph, [("Switch", 3)])
        hosts, switch = json.loads(harness.orrery("show", "network", config, "--json").out)["tiers"]
        self.assertEqual((hosts["bytes_per_ns_up"], switch["bytes_per_ns_down"]), (30, 22.5))

    def test_infragraph(self):
        """Machines and fabrics of InfraGraph run a collective on the three networks, and are drawn."""
        for name, dimensions in (
            ("dgx1", [("Switch", 8)]),
            ("mi300x", [("FullyConnected", 8)]),
            ("ClosFabric()", [("Switch", 2), ("Switch", 4)]),
            ("two dgx_h100, one switch", [("Switch", 8), ("Switch", 2)]),
            ("ClosFatTreeFabric(Switch(8), Server(), 2)", [("Switch", 2), ("Switch", 2), ("Switch", 8)]),
            ("ClosFatTreeFabric(Switch(4), Server(), 3)", None),
            ("dgx_a100", [("Switch", 8)]),
            ("dgx_gb200", [("Switch", 4)]),
            ("ironwood", [("Ring", 4)] * 3),
        ):
            with self.subTest(name=name):
                path = infragraph_blueprints.write(name, self.folder / "infra.json")
                shown = self.show(path)
                npus = shown["network"]["npus"]
                found = [(one["shape"], one["size"]) for one in shown.get("dimensions", [])]
                graph = {"file": str(path), "defaults": {"bandwidth": "100 GB/s", "latency": "500 ns"}}
                self.draw(self.run_all(graph, dimensions or found, npus)[1])
                # Its rows are the same graph.
                self.show(
                    path, "--bandwidth=100GB/s", "--latency=500ns", f"--output={self.folder / 'rows.json'}", "--force"
                )
                rows = self.show(self.folder / "rows.json")
                self.assertEqual(
                    [rows["network"][key] for key in ("npus", "switches", "links")],
                    [shown["network"][key] for key in ("npus", "switches", "links")],
                )

    def test_older_infragraph(self):
        """A description of an older schema whose devices are in files of their own runs and is drawn. The results keep its links, and need
        none of the files. A file that is missing, and a device whose XPUs are not joined, are refused."""
        pod = harness.SOURCE / "configs/infragraph/older-pod.yaml"
        whole, *parts = infragraph_blueprints.split_devices(pod, self.folder)
        graph = {
            "file": whole.name,
            "devices": [path.name for path in parts],
            "defaults": {"bandwidth": "100 GB/s", "latency": "500 ns"},
        }
        dimensions = [("Switch", 2), ("Switch", 2)]
        results = self.run_all(graph, dimensions, 4)
        self.draw(results[1])
        alone = self.run_all({"file": str(pod), "defaults": graph["defaults"]}, dimensions, 4)
        self.assertEqual(
            [harness.finish_times(path) for path in alone], [harness.finish_times(path) for path in results]
        )
        with h5py.File(results[2]) as file:
            (self.folder / "again.yaml").write_text(file["config/resolved"].asstr()[()])
        for path in (whole, *parts):
            path.rename(path.with_suffix(".gone"))
        again = self.run_once([self.folder / "again.yaml"], "again.h5")
        self.assertEqual(harness.finish_times(again), harness.finish_times(results[2]))
        for path in (whole, *parts):
            path.with_suffix(".gone").rename(path)
        for refused, *texts in (
            ({**graph, "devices": ["none.yaml"]}, "none.yaml"),
            ({**graph, "devices": [parts[0].name]}, "'switch'"),
            ({**graph, "devices": []}, "graph.devices"),
        ):
            outcome = harness.orrery(
                "run", self.on(refused, dimensions), *self.traces(4), f"--output={self.folder / 'refused.h5'}"
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            for text in texts:
                self.assertIn(text, outcome.err)
        text = json.loads(whole.read_text())
        text["infrastructure"]["instances"].append({"name": "core", "device": "router"})
        config = self.on({**graph, "file": self.write(text, "more.json").name}, dimensions)
        outcome = harness.orrery("run", config, *self.traces(4), f"--output={self.folder / 'more.h5'}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn(
            "warning: more.json: instance 'core' is of device 'router'", outcome.err.replace(f"{self.folder}/", "")
        )
        device = {"devices": [{"name": "box", "components": [{"name": "xpu", "type": "xpu", "count": 4}]}]}
        outcome = harness.orrery(
            "run",
            self.on({"file": str(self.write(device, "box.yaml"))}, [("Switch", 4)]),
            *self.traces(4),
            f"--output={self.folder / 'refused.h5'}",
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("joins none of its 4 XPUs", outcome.err)


if __name__ == "__main__":
    sys.exit(harness.main())
