#!/usr/bin/python3
"""orrery show trace: what it prints of one trace and of several, and the graph in the forms of other tools."""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

NAMESPACE = "{http://graphml.graphdrawing.org/xmlns}"
ODD = 'a "quoted" <name> & \\ more'


class ShowTrace(harness.Folder):
    def setUp(self):
        super().setUp()
        nodes = [
            Node(1, chakra.COMP, ODD, num_ops=10, tensor_size=7, duration=3),
            Node(2, chakra.COLL, "sum", [1], comm_type=chakra.ALL_REDUCE, comm_size=1024),
            Node(5, chakra.SEND, "out", [1, 2], comm_dst=1, comm_size=12),
        ]
        self.first, self.second = self.folder / "t.0.et", self.folder / "t.1.et"
        chakra.write(self.first, nodes)
        chakra.write(self.second, [Node(1, chakra.RECV, "in", comm_src=0, comm_size=12)])

    def shown(self, *arguments):
        outcome = harness.orrery("show", "trace", *map(str, arguments))
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome.out

    def test_a_table_of_several_files(self):
        """Two files: a line for each and one for all, and the same sums as JSON."""
        lines = self.shown(self.first, self.second).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn(str(self.second), lines[2])
        figures = json.loads(self.shown(self.first, self.second, "--json"))
        self.assertEqual([file["nodes"] for file in figures["files"]], [3, 1])
        self.assertEqual(figures["total"]["kinds"], {"collective": 1, "compute": 1, "receive": 1, "send": 1})
        self.assertEqual(figures["total"]["collectives"], {"all-reduce": {"bytes": 1024, "count": 1}})

    def test_nodes_as_json(self):
        """A line of JSON for the version and for each node, with ids, dependencies and attributes as protocol buffers write them."""
        lines = [json.loads(line) for line in self.shown(self.first, "--nodes").splitlines()]
        self.assertEqual([line.get("id") for line in lines], [None, "1", "2", "5"])
        self.assertEqual([lines[1]["name"], lines[1]["durationMicros"], lines[3]["dataDeps"]], [ODD, "3", ["1", "2"]])
        self.assertIn({"name": "comm_size", "int64Val": "1024"}, lines[2]["attr"])

    def test_graphml(self):
        """The document is XML with three nodes and three edges; names that need escaping come back as they were."""
        graph = xml.fromstring(self.shown(self.first, "--graphml")).find(f"{NAMESPACE}graph")
        nodes = {
            node.get("id"): {data.get("key"): data.text for data in node} for node in graph.iter(f"{NAMESPACE}node")
        }
        self.assertEqual(
            {node: data["kind"] for node, data in nodes.items()}, {"1": "compute", "2": "collective", "5": "send"}
        )
        self.assertEqual(nodes["1"]["name"], ODD)
        self.assertEqual(
            sorted((edge.get("source"), edge.get("target")) for edge in graph.iter(f"{NAMESPACE}edge")),
            [("1", "2"), ("1", "5"), ("2", "5")],
        )

    def test_dot(self):
        """Each node has a label in which quotation marks are escaped, and each dependency an arrow."""
        text = self.shown(self.first, "--dot")
        self.assertEqual(re.findall(r'"(\d+)" -> "(\d+)";', text), [("1", "2"), ("1", "5"), ("2", "5")])
        self.assertEqual(len(re.findall(r'"\d+" \[label="(?:[^"\\]|\\.)*", fillcolor="#[0-9a-f]{6}"\];', text)), 3)

    def test_a_lone_trace_is_checked(self):
        """orrery check takes a trace: it counts its nodes, or tells what is wrong with it. A run names what it is instead of a configuration."""
        outcome = harness.orrery("check", self.first)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("a trace of 1 NPU (chakra), 3 nodes: nothing wrong was found in the file alone", outcome.out)
        outcome = harness.orrery("check", self.first, "--step=3")
        self.assertEqual(outcome.code, 2)
        self.assertIn("the file is a trace, and options of a configuration are given", outcome.err)
        chakra.write(
            self.second, [Node(1, chakra.COMP, "a", [2], num_ops=1), Node(2, chakra.COMP, "b", [1], num_ops=1)]
        )
        outcome = harness.orrery("check", self.second)
        self.assertEqual(outcome.code, 3)
        self.assertIn("cycle", outcome.err)
        outcome = harness.orrery("run", self.first)
        self.assertEqual(outcome.code, 3)
        self.assertIn(
            "the file is a trace (chakra): it belongs to workload.traces of a configuration; expected a configuration",
            outcome.err,
        )

    def test_forms_exclude_each_other(self):
        """Two forms at once, and a graph of two files, are errors of usage."""
        for arguments in ((self.first, "--dot", "--graphml"), (self.first, self.second, "--dot")):
            with self.subTest(arguments):
                self.assertEqual(harness.orrery("show", "trace", *map(str, arguments)).code, 2)


if __name__ == "__main__":
    harness.main()
