#!/usr/bin/python3
"""Configurations of ns-3 as HPCC, ASTRA-sim and SimAI have them, in CONFIG.yaml and on ASTRA-sim's command line, and tables of routes."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402
from graphs import star  # noqa: E402

CONFIG = """ENABLE_QCN 1
PACKET_PAYLOAD_SIZE 2000

TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
ENABLE_TRACE 1
CC_MODE 1
RATE_AI 40Mb/s
HAS_WIN 1
GLOBAL_T 0
VAR_WIN 1
KMAX_MAP 2 800000000000 80 400000000000 40
KMIN_MAP 2 800000000000 20 400000000000 10
PMAX_MAP 2 800000000000 0.5 400000000000 0.5
BUFFER_SIZE 16
LINK_DOWN 0 0 0
"""
TOPOLOGY = "5 1 4\n4\n" + "".join(f"{host} 4 800Gbps 1us 0\n" for host in range(4))
THE_SAME = {
    "preset": "astra-sim-ns3",
    "payload": "2000 B",
    "control": "dcqcn",
    "additive-increase": "40 Mb/s",
    "buffer": "16 MiB",
    "marks": [["400 Gb/s", "10 kB", "40 kB", 0.5], ["800 Gb/s", "20 kB", "80 kB", 0.5]],
}
SYSTEM = {
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 2,
    "endpoint-delay": 0,
    "local-mem-bw": 1600,
    "roofline-enabled": 1,
    "peak-perf": 300,
    "all-reduce-implementation": ["ring", "ring"],
    "all-gather-implementation": ["ring", "ring"],
    "reduce-scatter-implementation": ["ring", "ring"],
    "all-to-all-implementation": ["direct", "direct"],
}


class Configurations(harness.Folder):
    def setUp(self):
        super().setUp()
        self.write("config.txt", CONFIG)
        self.write("topology.txt", TOPOLOGY)

    def write(self, name, text):
        (self.folder / name).write_text(text if isinstance(text, str) else json.dumps(text))
        return self.folder / name

    def workload(self):
        harness.write_workload(
            self.folder, [[Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=400_000)] for _ in range(4)]
        )
        return self.folder / "workload"

    def own(self, graph, packets):
        network = {
            "model": "packet",
            "graph": graph,
            "packets": packets,
            "dimensions": [{"shape": "Switch", "size": 4}],
        }
        return [
            str(self.write("own.yaml", {"system": {"network": network}})),
            f"--set=workload.traces={self.workload()}",
        ]

    def test_own_format(self):
        """The file and its topology give the times of the keys that say the same. A key beside it replaces what it says."""
        by_keys = harness.finish_times(self.run_once(self.own(star(4), THE_SAME), "keys.h5"))
        by_file = harness.finish_times(self.run_once(self.own("config.txt", {"file": "config.txt"}), "file.h5"))
        self.assertEqual(by_file, by_keys)
        changed = harness.finish_times(
            self.run_once(self.own("config.txt", {"file": "config.txt", "payload": "1000 B"}), "changed.h5")
        )
        self.assertEqual(
            changed,
            harness.finish_times(self.run_once(self.own(star(4), {**THE_SAME, "payload": "1000 B"}), "keys.h5")),
        )

    def test_notice(self):
        """One warning names what has no meaning here."""
        outcome = harness.orrery(
            "run", *self.own("config.txt", {"file": "config.txt"}), f"--output={self.folder}/out.h5", "--force"
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("config.txt: ignored, without meaning here: FLOW_FILE, ENABLE_TRACE", outcome.err)

    def test_without_marks(self):
        """With ENABLE_QCN 0 no rate changes: DCQCN is as no control, and a warning says so."""
        times = []
        for mode in (1, 12):
            self.write(
                "config.txt", CONFIG.replace("ENABLE_QCN 1", "ENABLE_QCN 0").replace("CC_MODE 1\n", f"CC_MODE {mode}\n")
            )
            outcome = harness.orrery(
                "run", *self.own("config.txt", {"file": "config.txt"}), f"--output={self.folder}/{mode}.h5"
            )
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual("CC_MODE of dcqcn without ENABLE_QCN" in outcome.err, mode == 1, outcome.err)
            times.append(harness.finish_times(self.folder / f"{mode}.h5"))
        self.assertEqual(*times)

    def test_notice_of_flows(self):
        """`orrery flows` gives the same warning, and runs."""
        network = {"graph": "config.txt", "packets": {"file": "config.txt"}}
        flows = self.write(
            "flows.yaml",
            {"system": {"network": network}, "workload": {"flows": [{"from": 0, "to": 1, "size": "10 kB"}]}},
        )
        outcome = harness.orrery("flows", flows)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(outcome.err.count("config.txt: ignored, without meaning here: FLOW_FILE, ENABLE_TRACE"), 1)

    def command_line(self, **more):
        flags = {
            "workload": self.workload(),
            "system": self.write("system.json", SYSTEM),
            "network": self.folder / "config.txt",
            "remote-memory": self.write("memory.json", "{}"),
            "logical-topology": self.write("logical.json", {"logical-dims": ["2", "2"]}),
        } | more
        return [f"--{name}-configuration={value}" for name, value in flags.items() if value]

    def test_command_line(self):
        """ASTRA-sim's command line for ns-3 runs: 2 x 2 NPUs on the topology, in ns, and a message is there with the last acknowledgement."""
        path = self.run_once(self.command_line())
        shown = harness.orrery(
            "show", "topology", *[flag for flag in self.command_line() if "--workload" not in flag], "--json"
        )
        self.assertEqual([d["size"] for d in json.loads(shown.out)["dimensions"]], [2, 2], shown.err)
        self.assertTrue(all(time > 0 for time in harness.finish_times(path)))
        self.check_one_answer(self.command_line(), 4, ranks=(2,))

    def test_refusals(self):
        """What is wrong is named with its file and line."""
        for old, new, said in (
            ("CC_MODE 1\n", "CC_MODE 10\n", "config.txt:7: key 'CC_MODE': found 10"),
            ("VAR_WIN 1\n", "ACK_HIGH_PRIO 1\n", "config.txt:11: key 'ACK_HIGH_PRIO': found 1"),
            ("topology.txt", "none.txt", "none.txt"),
            ("LINK_DOWN 0 0 0", "LINK_DOWN 5 0 1", "no link between nodes 0 and 1"),
            ("TOPOLOGY_FILE", "TOPOLOGY_FILES", "found no TOPOLOGY_FILE"),
        ):
            self.write("config.txt", CONFIG.replace(old, new))
            outcome = harness.orrery(
                "run", *self.own("config.txt", {"file": "config.txt"}), f"--output={self.folder}/refused.h5"
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn(said, outcome.err)
        outcome = harness.orrery(
            "run", *self.own(star(4), {"file": "topology.txt"}), f"--output={self.folder}/refused.h5"
        )
        self.assertIn("is no configuration of ns-3", outcome.err)
        self.write("config.txt", CONFIG)
        outcome = harness.orrery(
            "run", *self.command_line(**{"logical-topology": ""}), f"--output={self.folder}/refused.h5"
        )
        self.assertIn("--logical-topology-configuration", outcome.err)
        network = self.write("network.yml", "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n")
        outcome = harness.orrery("run", *self.command_line(network=network), f"--output={self.folder}/refused.h5")
        self.assertIn("it belongs to ASTRA-sim's ns-3 network", outcome.err)


class Tables(harness.Folder):
    # Two hosts with a fast and a slow switch between them.
    GRAPH = {
        "hosts": 2,
        "switches": 2,
        "links": [[h, 2 + s, ("100 Gb/s", "10 Gb/s")[s], "1 us"] for s in range(2) for h in range(2)],
    }
    ROWS = [[0, 1, 3], [3, 1, 1], [1, 0, 2], [2, 0, 0], [2, 1, 1]]

    def scenario(self, routes, **more):
        flows = [{"from": 0, "to": 1, "size": "1 kB"}]
        return {
            "system": {"network": {"graph": {**self.GRAPH, "routes": routes, **more}, "packets": {}}},
            "workload": {"flows": flows},
        }

    def test_routes(self):
        """The slow switch, and back over the fast one, which the table says; the same from a file."""
        (self.folder / "routes.txt").write_text(
            "# node destination next\n" + "".join(f"{a} {b} {c}\n" for a, b, c in self.ROWS)
        )
        for routes in ({"table": self.ROWS}, {"file": "routes.txt"}):
            flow = self.simulate_flows(self.scenario(routes))["flows"][0]
            self.assertEqual(flow["received_ps"], 2 * (828_800 + 1_000_000))
            self.assertEqual(flow["acknowledged_ps"] - flow["received_ps"], 2 * (3_840 + 1_000_000))

    def test_run(self):
        """A run takes them, also with a placement, in the packet network and in the congestion-aware one."""
        harness.write_workload(
            self.folder,
            [
                [Node(1, chakra.SEND, comm_src=0, comm_dst=1, comm_tag=0, comm_size=1000)],
                [Node(1, chakra.RECV, comm_src=0, comm_dst=1, comm_tag=0, comm_size=1000)],
            ],
        )
        times = {}
        for model in ("packet", "congestion-aware"):
            for placement in ([0, 1], [1, 0]):
                network = {
                    "model": model,
                    "graph": {**self.GRAPH, "routes": {"table": self.ROWS}, "placement": placement},
                    "dimensions": [{"shape": "Switch", "size": 2}],
                }
                config = self.folder / "run.yaml"
                config.write_text(json.dumps({"system": {"network": network}}))
                path = self.run_once([str(config), f"--set=workload.traces={self.folder / 'workload'}"], "run.h5")
                times[model, placement[0]] = harness.finish_times(path)[1]
        self.assertEqual(times["packet", 0], 2 * (828_800 + 1_000_000) + 1)
        self.assertEqual(times["packet", 1], 2 * (82_880 + 1_000_000) + 1)
        self.assertGreater(times["congestion-aware", 0], times["congestion-aware", 1])

    def test_refusals(self):
        """A pair without a row, a circle, and rows that name what is not there."""
        for rows, said in (
            (self.ROWS[1:], "found no route from node 0 to host 1"),
            (self.ROWS[:1] + self.ROWS[2:], "found no route from node 3 to host 1"),
            ([*self.ROWS, [3, 1, 0]], "that lead from node 0 back to it"),
            ([[0, 1, 1]], "found next node 1, which no link joins to node 0"),
            ([[0, 2, 2]], "found destination 2, which is no host"),
            ([[0, 1]], "rows [node, destination, next node]"),
            ([[0, 9, 2]], "9"),
        ):
            self.refuse_flows(self.scenario({"table": rows}), said)


if __name__ == "__main__":
    harness.main()
