#!/usr/bin/python3
"""The packet network under workloads of NPUs: times by hand, one answer on any number of ranks, agreement with the congestion-unaware network
as headers and packets get small, and what is refused."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402
from graphs import leaves, star  # noqa: E402

PACKETS = ["--network=packet"]
# Almost nothing but the payload.
BARE = [
    "--set=system.network.packets.header=1 B",
    "--set=system.network.packets.acknowledgement=1 B",
    "--set=system.network.packets.payload=1000 B",
    "--set=system.network.packets.window=none",
]
SHAPES = {
    "switch": "{shape: Switch, size: 8, bandwidth: 100 GB/s, latency: 1 us}",
    "ring": "{shape: Ring, size: 8, bandwidth: 100 GB/s, latency: 1 us}",
    "all": "{shape: FullyConnected, size: 8, bandwidth: 100 GB/s, latency: 1 us}",
    "mixed": "{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}, {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}",
    "tree": "{shape: FatTree, ports: 4, size: 8, bandwidth: 50 GB/s, latency: 500 ns}",
    "dragonfly": "{shape: Dragonfly, npus-per-router: 1, size: 8, routers: 2, global-links: 2, bandwidth: 50 GB/s, latency: 500 ns}",
}
STEP = """system:
  network: {dimensions: [DIMENSIONS]}
  collectives: {chunks: 2, active-chunks: 2}
  communication: {rendezvous: RENDEZVOUS}
  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
workload:
  model: {layers: 2, hidden: 512, heads: 8, sequence: 128}
  parallel: {tp: 2, sp: true, dp: 2, pp: 2, micro-batches: 2}
"""


class PacketNetwork(harness.Folder):
    def configuration(self, dimensions, more=""):
        path = self.folder / "system.yaml"
        path.write_text(f"system:\n  network: {{dimensions: [{dimensions}]}}\n{more}")
        return str(path)

    def traces(self, nodes):
        harness.write_workload(self.folder, nodes)
        return [f"--set=workload.traces={self.folder / 'workload'}"]

    def test_send(self):
        """10,000 B over a Switch with 100 GB/s and 1 us: 11 packets of 1,036 B one after the other, then an acknowledgement, and 1 ps to each NPU."""
        nodes = [
            [Node(1, chakra.SEND, comm_src=0, comm_dst=1, comm_tag=0, comm_size=10_000)],
            [Node(1, chakra.RECV, comm_src=0, comm_dst=1, comm_tag=0, comm_size=10_000)],
        ]
        config = self.configuration("{shape: Switch, size: 2, bandwidth: 100 GB/s, latency: 1 us}")
        path = self.run_once([config, *PACKETS, *self.traces(nodes)])
        there = 11 * 10_360 + 2_000_000
        self.assertEqual(harness.finish_times(path), [there + 2 * (480 + 1_000_000) + 1, there + 1])

    def test_one_answer(self):
        """A training step with all parallelisms on 8 NPUs of each shape: the same results on 1, 2 and 4 ranks and scattered over 3."""
        for number, (name, dimensions) in enumerate(SHAPES.items()):
            with self.subTest(name):
                config = self.folder / "step.yaml"
                config.write_text(
                    STEP.replace("DIMENSIONS", dimensions).replace("RENDEZVOUS", "true" if number % 2 else "false")
                )
                self.check_one_answer([str(config), *PACKETS], 8, ranks=(2, 4))
                self.clear_folder()

    def test_small_packets_come_near_the_delay_model(self):
        """A message of 4 MB that nothing disturbs takes what its bytes and hops take, and no more than its packets take beside that."""
        size = 4_000_000
        nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=size)] for _ in range(8)]
        for name in ("ring", "all", "switch"):
            with self.subTest(name):
                config = self.configuration(SHAPES[name])
                traces = self.traces(nodes)
                alone = max(harness.finish_times(self.run_once([config, *traces], "alone.h5")))
                error = (
                    max(harness.finish_times(self.run_once([config, *PACKETS, *BARE, *traces], "packets.h5"))) / alone
                    - 1
                )
                self.assertLess(abs(error), 0.01)
                larger = [*BARE, "--set=system.network.packets.payload=100 kB"]
                coarse = (
                    max(harness.finish_times(self.run_once([config, *PACKETS, *larger, *traces], "coarse.h5"))) / alone
                    - 1
                )
                self.assertLessEqual(abs(error), abs(coarse) + 0.002)

    def test_hpcc_without_switches(self):
        """An all-reduce of 10 MB on four NPUs that links of 50 GB/s join directly takes with HPCC about what it takes without a control."""
        for shape in ("FullyConnected", "Ring", "Mesh", "Switch"):
            ends = []
            for control in ("hpcc", "none"):
                config = self.folder / "control.yaml"
                config.write_text(
                    f"system:\n  network:\n    model: packet\n    dimensions: [{{shape: {shape}, size: 4, bandwidth: 50 GB/s, latency: 500 ns}}]\n"
                    f"    packets: {{preset: hpcc-2019, control: {control}}}\nworkload:\n"
                    "  model: {kind: layers, layers: [{name: g, parameters: 5000000}]}\n  parallel: {dp: 4}\n"
                )
                ends.append(max(harness.finish_times(self.run_once([config]))))
            self.assertLess(ends[0], 1.2 * ends[1], shape)

    def test_packets_that_take_less_than_half_a_tick(self):
        """A packet that takes less than half a unit of time leaves at once, with those behind it. Eight NPUs with 100 GB/s exchange 8 bytes
        in ns: each message crosses two links in 500 ns each, three of eight bits round to nothing. What-if systems of 100 TB/s and more, a
        training step in ns, links without latency, and each transport, control and flow control end, with one answer.
        """
        layers = (
            "workload:\n  model: {kind: layers, layers: [{name: g, parameters: PARAMETERS}]}\n  parallel: {dp: 8}\n"
        )
        step = (
            "  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}\n"
            "workload:\n  model: {layers: 2, hidden: 64, heads: 8, sequence: 8, vocabulary: 128}\n  parallel: {tp: 4, dp: 2, micro-batches: 2}\n"
        )
        direct = "  collectives: {all-reduce: [direct]}\n"
        cases = [
            ("100 GB/s", "500 ns", "{preset: simai-ns3, time-unit: ns}", direct + layers.replace("PARAMETERS", "4")),
            ("100 TB/s", "500 ns", "{}", direct + layers.replace("PARAMETERS", "40000")),
            ("100000 TB/s", "500 ns", "{window: none}", layers.replace("PARAMETERS", "400000")),
            ("100 TB/s", "0 ns", "{}", layers.replace("PARAMETERS", "40000")),
            ("100000 TB/s", "0 ns", "{flow-control: credits}", layers.replace("PARAMETERS", "4000")),
            ("100000 TB/s", "0 ns", "{preset: uec}", layers.replace("PARAMETERS", "4000")),
        ]
        for preset in ("astra-sim-ns3", "hpcc-2019", "uec", "simai-ns3"):
            cases.append(("900 GB/s", "500 ns", f"{{preset: {preset}, time-unit: ns}}", step))
        for shape, its_cases in (("Switch", cases), ("Ring", cases[::3])):
            for bandwidth, latency, packets, rest in its_cases:
                with self.subTest(shape=shape, bandwidth=bandwidth, packets=packets):
                    config = self.folder / "fast.yaml"
                    config.write_text(
                        f"system:\n  network:\n    model: packet\n    dimensions: [{{shape: {shape}, size: 8, bandwidth: {bandwidth}, "
                        f"latency: {latency}}}]\n    packets: {packets}\n{rest}"
                    )
                    self.check_one_answer([str(config)], 8, ranks=())

    def on_graph(self, graph, sizes, name="graph.yaml"):
        """Writes a configuration of Switches of these sizes on a graph."""
        path = self.folder / name
        dimensions = [{"shape": "Switch", "size": size} for size in sizes]
        path.write_text(json.dumps({"system": {"network": {"graph": graph, "dimensions": dimensions}}}))
        return str(path)

    def test_graph_of_a_shape(self):
        """A graph with the links of a Switch gives the times of the Switch, in all networks."""
        traces = self.traces([[Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=100_000)] for _ in range(8)])
        shape, graph = self.configuration(SHAPES["switch"]), self.on_graph(star(8), [8])
        for network in (
            ["--network=packet"],
            ["--network=congestion-unaware"],
            ["--network=congestion-aware"],
            ["--network=congestion-aware", "--set=system.network.switching=cut-through"],
        ):
            expected = harness.finish_times(self.run_once([shape, *network, *traces], "shape.h5"))
            self.assertEqual(harness.finish_times(self.run_once([graph, *network, *traces], "given.h5")), expected)

    def test_graph_one_answer(self):
        """A training step on two leaves and two spines: the same results on 1, 2 and 4 ranks and scattered over 3; two more hosts are idle."""
        graph = self.folder / "leaves.yaml"
        graph.write_text(json.dumps(leaves([6, 4])))
        config = self.folder / "step.yaml"
        config.write_text(
            STEP.replace(
                "{dimensions: [DIMENSIONS]}", "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
            ).replace("RENDEZVOUS", "false")
        )
        self.check_one_answer([str(config), *PACKETS], 8, ranks=(2, 4))

    def test_uneven_nodes(self):
        """Ten NPUs on nodes of 4 and 6. A message over 50 GB/s and two spines takes what its links take; a failed spine leaves the other."""
        send = [
            [Node(1, chakra.SEND, comm_src=0, comm_dst=9, comm_tag=0, comm_size=1000)],
            *[[] for _ in range(8)],
            [Node(1, chakra.RECV, comm_src=0, comm_dst=9, comm_tag=0, comm_size=1000)],
        ]
        traces = self.traces(send)
        graph = leaves([4, 6])
        there = 2 * (10_360 + 20_720) + 2 * 1_500_000 + 1
        for failures in ([], [[10, 12, "0 ns"]], [[11, 13, "0 ns"]]):
            path = self.run_once([self.on_graph({**graph, "failures": failures}, [10]), *PACKETS, *traces])
            self.assertEqual(harness.finish_times(path)[9], there)

    def test_link_that_fails(self):
        """1 MB goes over one of two spines whose link fails after 5 us: what is under way is lost, the rest goes over the other spine, and the
        sender goes back. The link that carries nothing changes nothing. The same on 1 and 2 ranks."""
        send = [
            [Node(1, chakra.SEND, comm_src=0, comm_dst=9, comm_tag=0, comm_size=1_000_000)],
            *[[] for _ in range(8)],
            [Node(1, chakra.RECV, comm_src=0, comm_dst=9, comm_tag=0, comm_size=1_000_000)],
        ]
        traces = self.traces(send)
        ends = []
        for failures in ([], [[10, 12, "5 us"]], [[10, 13, "5 us"]]):
            arguments = [self.on_graph({**leaves([4, 6]), "failures": failures}, [10]), *PACKETS, *traces]
            one = self.run_once(arguments, "one.h5")
            self.assertEqual(harness.difference(one, self.run_once(arguments, "two.h5", ranks=2)), "")
            ends.append(harness.finish_times(one)[9])
        without, *failed = ends
        self.assertEqual(min(failed), without)
        self.assertGreater(max(failed), without)

    def test_placement(self):
        """A placement is a graph whose hosts have other numbers: NPUs that exchange data are near each other or not."""
        traces = self.traces(
            [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1_000_000)] for _ in range(8)]
        )
        order = [0, 4, 1, 5, 2, 6, 3, 7]
        near = leaves([4, 4])
        far = {**near, "links": [[order.index(a) if a < 8 else a, b, *rest] for a, b, *rest in near["links"]]}
        ends = {}
        for name, graph in (("near", near), ("placed", {**near, "placement": order}), ("far", far)):
            ends[name] = harness.finish_times(
                self.run_once([self.on_graph(graph, [8]), *PACKETS, *traces], f"{name}.h5")
            )
        self.assertEqual(ends["placed"], ends["far"])
        self.assertGreater(max(ends["far"]), max(ends["near"]))

    def test_rings_and_pairs(self):
        """NPUs that are joined by links of their own take Rings and FullyConnected dimensions: the times are those of the shapes. With
        forwarding, packets between others pass them."""
        near = [[h, (h + 1) % 8, "100 GB/s", "1 us"] for h in range(8)]
        pairs = [[a, b, "100 GB/s", "1 us"] for a in range(8) for b in range(a)]
        traces = self.traces([[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=100_000)] for _ in range(8)])
        for shape, name, links in (("Ring", "ring", near), ("FullyConnected", "all", pairs)):
            for network in ("--network=packet", "--network=congestion-aware"):
                expected = harness.finish_times(
                    self.run_once([self.configuration(SHAPES[name]), network, *traces], "shape.h5")
                )
                graph = self.on_graph({"hosts": 8, "links": links}, [8])
                found = self.run_once(
                    [graph, f"--set=system.network.dimensions.0.shape={shape}", network, *traces], "given.h5"
                )
                self.assertEqual(harness.finish_times(found), expected)
        far = self.traces(
            [
                [Node(1, chakra.SEND, comm_src=0, comm_dst=3, comm_tag=0, comm_size=1000)],
                [],
                [],
                [Node(1, chakra.RECV, comm_src=0, comm_dst=3, comm_tag=0, comm_size=1000)],
                *[[] for _ in range(4)],
            ]
        )
        ring = ["--set=system.network.dimensions.0.shape=Ring", *PACKETS, *far]
        outcome = harness.orrery(
            "run", self.on_graph({"hosts": 8, "links": near}, [8]), *ring, f"--output={self.folder / 'refused.h5'}"
        )
        self.assertIn("NPU 0 sends a message to NPU 3, and no working links lead there", outcome.err)
        path = self.run_once([self.on_graph({"hosts": 8, "links": near, "forwarding": True}, [8]), *ring])
        self.assertEqual(harness.finish_times(path)[3], 3 * (10_360 + 1_000_000) + 1)

    def test_infragraph(self):
        """A description of InfraGraph is a graph: of its two servers, each NPU reaches those of its own by four switches, and links that
        lack a latency take that of `defaults`."""
        graph = {
            "file": str(harness.SOURCE / "configs/infragraph/dgx-h100.yaml"),
            "defaults": {"latency": "500 ns", "links": {"nvlink": {"bandwidth": "112.5 GB/s", "latency": "150 ns"}}},
        }
        config = self.on_graph(graph, [8, 2])
        shown = json.loads(harness.orrery("show", "topology", config, "--json").out)["dimensions"]
        self.assertEqual([(d["bytes_per_ns"], d["latency_ns"]) for d in shown], [(450, 150), (50, 500)])
        traces = self.traces(
            [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=100_000)] for _ in range(16)]
        )
        for network in ("--network=packet", "--network=congestion-aware"):
            self.check_one_answer([config, network, *traces], 16, ranks=(2,))
        del graph["defaults"]["latency"]
        outcome = harness.orrery(
            "run", self.on_graph(graph, [8, 2]), *PACKETS, *traces, f"--output={self.folder / 'refused.h5'}"
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("rail", outcome.err)

    def test_routes(self):
        """Two NPUs with two ways of two links each: the widest is of 100 GB/s, and `shortest` takes both."""
        graph = {
            "hosts": 2,
            "switches": 2,
            "links": [[h, 2 + s, ("100 GB/s", "10 GB/s")[s], "1 us"] for h in range(2) for s in range(2)],
        }
        nodes = [
            [Node(i, chakra.SEND, comm_src=0, comm_dst=1, comm_tag=i, comm_size=1000) for i in range(1, 21)],
            [Node(i, chakra.RECV, comm_src=0, comm_dst=1, comm_tag=i, comm_size=1000) for i in range(1, 21)],
        ]
        traces = self.traces(nodes)
        carried = {}
        for routes in ("widest", "shortest"):
            path = self.run_once([self.on_graph({**graph, "routes": routes}, [2]), *PACKETS, *traces], f"{routes}.h5")
            with h5py.File(path) as file:
                links = file["/network/links"]
                carried[routes] = {
                    int(to): int(n) for start, to, n in zip(links["from"], links["to"], links["messages"]) if start == 0
                }
        self.assertEqual(carried["widest"], {-1: 20})
        self.assertEqual(set(carried["shortest"]), {-1, -2})
        self.assertEqual(sum(carried["shortest"].values()), 20)

    def test_ns3_topology(self):
        """A topology of ns-3 is the graph that it spells, with its hosts first; what is wrong in it is refused with the line."""
        text = "5 1 4\n1\n0 1 800Gbps 0.001ms 0\n2 1 800Gbps 1us 0\n3 1 800Gbps 1us 0\n4 1 800Gbps 1000ns 0\n"
        (self.folder / "ns3.txt").write_text(text)
        (self.folder / "simai.txt").write_text(text.replace("5 1 4\n", "5 4 1 0 4 H100\n"))
        traces = self.traces([[Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=100_000)] for _ in range(4)])
        expected = harness.finish_times(self.run_once([self.on_graph(star(4), [4]), *PACKETS, *traces]))
        for name in ("ns3.txt", "simai.txt"):
            self.assertEqual(
                harness.finish_times(self.run_once([self.on_graph(name, [4]), *PACKETS, *traces], "ns3.h5")), expected
            )
        (self.folder / "torus.txt").write_text(
            "8 0 8\n\n" + "".join(f"{h} {(h + 1) % 8} 800Gbps 1us 0\n" for h in range(8))
        )
        eight = self.traces([[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=100_000)] for _ in range(8)])
        ring = self.on_graph("torus.txt", [8])
        self.assertEqual(
            harness.finish_times(
                self.run_once([ring, "--set=system.network.dimensions.0.shape=Ring", *PACKETS, *eight], "ring.h5")
            ),
            harness.finish_times(self.run_once([self.configuration(SHAPES["ring"]), *PACKETS, *eight])),
        )
        traces = self.traces([[Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=100_000)] for _ in range(4)])
        for old, new, said in (
            ("5 1 4", "5 1 5", "ns3.txt:6: found 4 links"),
            ("\n1\n", "\n1 2\n", "ns3.txt:2: found 2 numbers of switches"),
            ("1us 0\n3", "1us 0.01\n3", "ns3.txt:4: found an error rate of 0.01"),
            ("0 1 8", "0 7 8", "ns3.txt:3"),
            ("1000ns", "1000xs", "ns3.txt:6"),
            ("1000ns", "1e10s", "ns3.txt:6: found a delay of 1e10s"),
            ("4 1 800Gbps", "4 1 0.01bps", "ns3.txt:6: found a rate of 0.01"),
            ("4 1 800Gbps", "4 1 1e300Gbps", "ns3.txt:6: found a rate of 1e300"),
            ("4 1 800Gbps", "4 4 800Gbps", "ns3.txt:6: found a link from a node to itself"),
        ):
            self.assertEqual(text.count(old), 1, old)
            (self.folder / "ns3.txt").write_text(text.replace(old, new))
            outcome = harness.orrery(
                "run", self.on_graph("ns3.txt", [4]), *PACKETS, *traces, f"--output={self.folder / 'refused.h5'}"
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn(said, outcome.err)

    def test_ns3_topologies_of_users(self):
        """The topologies of ASTRA-sim's users are read, and an all-reduce over all of their hosts ends."""
        for name, sizes in (
            ("keysight/nc-topology-file.txt", [8, 4]),
            ("llama_experiment_inter_dc/topology.txt", [4, 4]),
            ("qwen_experiment_in_dc/topology.txt", [4, 32]),
        ):
            npus = sizes[0] * sizes[1]
            traces = self.traces(
                [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=10_000)] for _ in range(npus)]
            )
            for network in ("--network=packet", "--network=congestion-aware"):
                path = self.run_once(
                    [self.on_graph(str(harness.shared(f"inputs/ns3-htsim/{name}")), sizes), network, *traces]
                )
                self.assertEqual(len(harness.finish_times(path)), npus)

    def test_graph_refusals(self):
        """What a graph cannot have is refused with the place."""
        nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1000)] for _ in range(4)]
        traces = self.traces(nodes)
        apart = {"hosts": 4, "switches": 2, "links": [[h, 4 + h // 2, "1 GB/s", "1 us"] for h in range(4)]}
        rails = {
            "hosts": 4,
            "switches": 4,
            "links": [[h, 4 + h // 2, "1 GB/s", "1 us"] for h in range(4)]
            + [[h, 6 + h % 2, "1 GB/s", "1 us"] for h in range(4)],
        }
        bandwidth = {"shape": "Switch", "size": 4, "bandwidth": "1 GB/s"}
        (self.folder / "own.yaml").write_text(json.dumps(star(4)))
        (self.folder / "file.yaml").write_text(json.dumps({"hosts": 4, "file": "file.yaml"}))
        for graph, more, text in (
            (star(3), [], "dimensions of 4 NPUs on a graph of 3 hosts"),
            (
                star(4),
                [f"--set=system.network.dimensions=[{json.dumps(bandwidth)}]"],
                "a property of links beside system.network.graph",
            ),
            (
                star(4),
                ["--set=system.network.dimensions.0.shape=Ring"],
                "NPU 0 has the same port towards NPU 1 and NPU 3",
            ),
            (star(4), ["--set=system.network.dimensions.0.shape=Mesh"], "found a Mesh on a graph"),
            ({**star(4), "placement": [1, 1, 2, 3]}, [], "found host 1 again"),
            (
                {**star(4), "failures": [[0, 4, "1 us"], [0, 1, "1 us"]]},
                [],
                "graph.failures.1': found nodes 0 and 1, which no link joins",
            ),
            ({**star(4), "spines": 3}, [], "spines"),
            (
                {**star(4), "links": [[0, 4, ["1 GB/s", "2 GB/s", "3 GB/s"], "1 us"]]},
                [],
                "two: [from the first node to the second, back]",
            ),
            ({**star(4), "links": [[0, 4, "1 GB/s", ["1 us"]]]}, [], "two: [from the first node to the second, back]"),
            ({**star(4), "links": [[0, 4, ["1 GB/s", "1 m"], "1 us"]]}, [], "graph.links.0"),
            ({**star(4), "hosts": 0, "failures": [[0, 0, "1 us"]]}, [], "graph.hosts"),
            ({"switches": 1, "links": [], "placement": [0]}, [], "graph.hosts"),
            ({"file": "own.yaml", "defaults": {"latency": "1 us"}}, [], "defaults"),
            ({"file": "file.yaml"}, [], "found a file in the file of a graph"),
            ({**star(4), "placement": [3, 2]}, [], "dimensions of 4 NPUs and a placement of 2"),
            (
                {**star(4), "failures": [[0, 4, "1 us"]]},
                ["--set=system.network.model=congestion-unaware"],
                "found failures after the start",
            ),
            (
                {**star(4), "failures": [[0, 4, "1 us"]]},
                [
                    "--set=system.network.model=congestion-aware",
                    "--set=system.network.switching=cut-through",
                    "--set=system.network.packet-size=1 kB",
                ],
                "found failures after the start",
            ),
            (apart, [], "no working links lead from NPU 1 to NPU 2"),
        ):
            outcome = harness.orrery(
                "run",
                self.on_graph(graph, [4]),
                "--set=system.network.model=packet",
                *more,
                *traces,
                f"--output={self.folder / 'refused.h5'}",
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn(text, outcome.err)
        direct = [
            "--set=system.collectives.all-reduce=[ring, ring]",
            "--set=system.network.dimensions="
            + json.dumps([{"shape": "Switch", "size": 2}, {"shape": "Switch", "size": 2}]),
        ]
        self.run_once([self.on_graph(rails, [2, 2]), *PACKETS, *direct, *traces])  # neighbours are on a switch together
        crossing = self.traces(
            [
                [Node(1, chakra.SEND, comm_src=0, comm_dst=3, comm_tag=0, comm_size=8)],
                [],
                [],
                [Node(1, chakra.RECV, comm_src=0, comm_dst=3, comm_tag=0, comm_size=8)],
            ]
        )
        for network in ("--network=packet", "--network=congestion-aware"):
            outcome = harness.orrery(
                "run", self.on_graph(rails, [2, 2]), network, *crossing, f"--output={self.folder / 'refused.h5'}"
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn("NPU 0 sends a message to NPU 3, and no working links lead there", outcome.err)

    def test_refusals(self):
        """What the packet network does not have is refused with the place."""
        nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1000)] for _ in range(4)]
        for dimensions, more, text in (
            (
                "{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 1 us, oversubscription: 2}",
                [],
                "oversubscribed switch",
            ),
            (
                "{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}",
                ["--set=system.network.switching=cut-through"],
                "cut-through",
            ),
            (
                "{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}",
                ["--set=system.network.packets.payload=0 B"],
                "payload",
            ),
            ("{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}", ["--fold"], "fold"),
        ):
            outcome = harness.orrery(
                "run",
                self.configuration(dimensions),
                *PACKETS,
                *more,
                *self.traces(nodes),
                f"--output={self.folder / 'refused.h5'}",
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn(text, outcome.err)

    def test_a_buffer_without_room_for_a_packet(self):
        """Reserves and headroom that leave no room in the buffer of a switch would drop every packet: refused with the least buffer, with which the
        run ends. So it is on the links of a graph and of flows."""
        nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=10_000)] for _ in range(4)]
        switch = self.configuration("{shape: Switch, size: 4, bandwidth: 100 GB/s, latency: 1 us}")
        rules = [f"--set=system.network.packets.{rule}" for rule in ("reserve=1 kB", "headroom=500 B", "share-shift=0")]
        for config, least in ((switch, 4 * 1500 + 1036), (self.on_graph(star(4), [4]), 4 * 1500 + 1036)):
            arguments = [config, *PACKETS, *rules, *self.traces(nodes)]
            for command in (["run", f"--output={self.folder / 'refused.h5'}"], ["check"]):
                outcome = harness.orrery(*command, *arguments, f"--set=system.network.packets.buffer={least - 1} B")
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn(f"system.network.packets.buffer': found {least - 1} B", outcome.err)
                self.assertIn(f"at least {least} B", outcome.err)
            self.run_once([*arguments, f"--set=system.network.packets.buffer={least} B"], "enough.h5")

    def test_flows_whose_last_packets_are_lost(self):
        """Without pauses and without a time-out, what is lost at the end of a message is never sent again. The run says that it is stuck, also where
        timers of DCQCN go on after the loss."""
        nodes = [[Node(1, chakra.SEND, comm_src=npu, comm_dst=7, comm_tag=npu, comm_size=400_000)] for npu in range(7)]
        nodes.append(
            [Node(1 + npu, chakra.RECV, comm_src=npu, comm_dst=7, comm_tag=npu, comm_size=400_000) for npu in range(7)]
        )
        rules = (
            "pauses=false",
            "buffer=60 kB",
            "headroom=1 kB",
            "window=none",
            "control=dcqcn",
            "increase-interval=3 us",
            "alpha-interval=3 us",
        )
        marks = '--set=system.network.packets.marks=[["100 GB/s", "4 kB", "20 kB", 0.5]]'
        arguments = [
            self.configuration("{shape: Switch, size: 8, bandwidth: 100 GB/s, latency: 1 us}"),
            *PACKETS,
            marks,
            *(f"--set=system.network.packets.{rule}" for rule in rules),
            *self.traces(nodes),
        ]
        outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'stuck.h5'}")
        self.assertEqual(outcome.code, 4, outcome.err)
        self.assertIn("stuck", outcome.err)


if __name__ == "__main__":
    harness.main()
