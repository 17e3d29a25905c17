#!/usr/bin/python3
"""Each field of traces and of graphs that Orrery reads changes a result, or its new value is refused or named in a warning."""
import copy
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

SERVER = {"npus": 4, "inside": "switch", "bandwidth": "400 GB/s", "latency": "150 ns"}
RATES = {"bandwidth": "400 Gb/s", "latency": "500 ns"}
# A graph and its dimensions, of 16 NPUs.
GRAPHS = {
    "leaf-spine": (
        {
            "leaves": 4,
            "hosts-per-leaf": 4,
            "spines": 2,
            **RATES,
            "links": {"uplink": {"bandwidth": "200 Gb/s", "latency": "1 us"}},
        },
        [4, 4],
    ),
    "servers": (
        {"generate": "leaf-spine", "leaves": 2, "hosts-per-leaf": 8, "spines": 2, "server": SERVER, **RATES},
        [4, 2, 2],
    ),
    "clos": ({"ports": 4, **RATES}, [2, 8]),
    "rails": ({"servers": 4, "servers-per-group": 2, "server": SERVER, "spines": 2, **RATES}, [4, 2, 2]),
    "dragonfly+": (
        {"groups": 4, "leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2, "global-links": 3, **RATES},
        [2, 8],
    ),
    "torus": ({"sizes": [4, 2, 2], **RATES}, [4, 2, 2]),
    "rows": (
        {
            "generate": None,
            "hosts": 4,
            "switches": 2,
            "placement": [0, 2, 1, 3],
            "routes": "shortest",
            "links": [
                [0, 4, "40 Gb/s", "1 us"],
                [1, 4, "100 Gb/s", "2 us"],
                [2, 5, "100 Gb/s", "3 us"],
                [3, 5, ["100 Gb/s", "80 Gb/s"], ["4 us", "1 us"]],
                [4, 5, "10 Gb/s", "1 us"],
                [4, 5, "30 Gb/s", "1 us"],
            ],
            "failures": [[4, 5, "20 us"]],
        },
        [4],
    ),
}
# Nodes of traces, each attribute of which has a meaning, and the values that are tried in place of these.
TRACE_NODES = {
    "compute": (chakra.COMP, {"num_ops": 10_000_000, "tensor_size": 1_000, "stream": 1}),
    "bytes": (chakra.COMP, {"num_ops": 1_000, "tensor_size": 1_000_000}),
    "collective": (chakra.COLL, {"comm_size": 4096, "comm_type": chakra.ALL_REDUCE, "pg_name": "pair"}),
    "dimension": (chakra.COLL, {"comm_size": 4096, "comm_type": chakra.ALL_REDUCE, "involved_dim": [True, False]}),
    "load": (chakra.MEM_LOAD, {"tensor_size": 100_000}),
    "send": (chakra.SEND, {"comm_src": 0, "comm_dst": 1, "comm_tag": 3, "comm_size": 4096}),
    "host": (chakra.COMP, {"duration_ps": 5_000_000, "is_cpu_op": True}),
}
CHANGES = {
    ("compute", "num_ops"): 5_000_000,
    ("compute", "stream"): 7,
    ("bytes", "tensor_size"): 500_000,
    ("collective", "comm_size"): 8192,
    ("collective", "comm_type"): chakra.ALL_GATHER,
    ("collective", "pg_name"): "alone",
    ("collective", "involved_dim"): [True, False],
    ("dimension", "involved_dim"): [True, True],
    ("collective", "stream"): 1,
    ("load", "tensor_size"): 50_000,
    ("send", "comm_src"): 1,
    ("send", "comm_dst"): 2,
    ("send", "comm_tag"): 4,
    ("send", "comm_size"): 2048,
    ("host", "duration_ps"): 6_000_000,
    ("host", "is_cpu_op"): False,
}


def leaves_of(value, path=()):
    """Calls for each number and text in nested lists and mappings: yields its path and itself."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves_of(inner, (*path, key))
    elif value is not None:
        yield path, value


def other(value):
    """Returns another value of the same kind: twice a quantity, one more or less of a count, and for words what is said here."""
    words = {"switch": "pairs", "shortest": "widest", "leaf-spine": "clos", "rails": "torus"}
    if value in words:
        return words[value]
    if isinstance(value, int):
        return value - 1 if value > 0 else value + 1
    found = re.fullmatch(r"([0-9.]+)( .+)", value)
    return f"{float(found[1]) * 2:g}{found[2]}"


def replaced(value, path, new):
    result = copy.deepcopy(value)
    here = result
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = new
    return result


class Fields(harness.Folder):
    def has_effect(self, before, arguments, field):
        """Runs with one field changed. Says whether a result is another one than in `before`, the value is refused, or a warning names the field."""
        outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'after.h5'}", "--force")
        self.assertIn(outcome.code, (0, 3, 4), outcome.err)
        if any("warning:" in line and field in line for line in harness.messages(outcome)):
            return True
        return outcome.code != 0 or harness.difference(before, self.folder / "after.h5") != ""

    def write_graph(self, name, graph, sizes):
        graph = {"generate": name, **graph}
        if graph["generate"] is None:
            del graph["generate"]
        path = self.folder / "config.yaml"
        path.write_text(
            json.dumps(
                {
                    "system": {
                        "network": {"graph": graph, "dimensions": [{"shape": "Switch", "size": size} for size in sizes]}
                    }
                }
            )
        )
        return path

    def test_graphs(self):
        """NPUs send to each other one. In the congestion-aware network each number and word of a graph matters, or its new value is refused."""
        for name, (graph, sizes) in GRAPHS.items():
            npus = 4 if name == "rows" else 16
            nodes = [
                [
                    Node(1 + to, chakra.SEND, comm_src=npu, comm_dst=to, comm_tag=0, comm_size=10_000 * (1 + npu + to))
                    for to in range(npus)
                    if to != npu
                ]
                + [
                    Node(
                        100 + by, chakra.RECV, comm_src=by, comm_dst=npu, comm_tag=0, comm_size=10_000 * (1 + npu + by)
                    )
                    for by in range(npus)
                    if by != npu
                ]
                for npu in range(npus)
            ]
            harness.write_workload(self.folder, nodes)
            arguments = [
                "--network=packet" if "failures" in graph else "--network=congestion-aware",
                f"--set=workload.traces={self.folder / 'workload'}",
                "--set=system.communication.streams=32",
            ]
            before = self.run_once([self.write_graph(name, graph, sizes), *arguments], "before.h5")
            idle = [
                ".".join(map(str, path))
                for path, value in leaves_of(graph)
                if not self.has_effect(
                    before,
                    [self.write_graph(name, replaced(graph, path, other(value)), sizes), *arguments],
                    str(path[-1]),
                )
            ]
            self.assertEqual(idle, [], f"fields of the graph {name} without an effect")
            self.clear_folder()

    def write_traces(self, changed):
        """Writes the traces of four NPUs: TRACE_NODES with this node in place of its own, and work of theirs that competes with these."""
        nodes = {**TRACE_NODES, **changed}
        traces = []
        for npu in range(4):
            own = [
                Node(number, kind, **attributes)
                for number, (kind, attributes) in enumerate(nodes.values(), 10)
                if npu == 0 or npu < 2 and kind == chakra.COLL
            ]
            own += [Node(1, chakra.COMP, num_ops=20_000_000, tensor_size=100_000, stream=1)]
            own += [
                Node(2 + k, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=65536, comm_priority=3)
                for k in range(2)
            ]
            own += [Node(30, chakra.RECV, comm_src=0, comm_dst=1, comm_tag=3, comm_size=4096)] if npu == 1 else []
            traces.append(own)
        harness.write_workload(self.folder, traces)

    def test_traces(self):
        """Each attribute of a node to which docs/traces.md gives a meaning changes a time of some node, or its new value is refused."""
        (self.folder / "groups.json").write_text(json.dumps({"pair": [0, 1], "alone": [0]}))
        config = self.folder / "config.yaml"
        rate = {"bandwidth": "50 GB/s", "latency": "500 ns"}
        config.write_text(
            json.dumps(
                {
                    "system": {
                        "network": {
                            "dimensions": [{"shape": "Ring", "size": 2, **rate}, {"shape": "Switch", "size": 2, **rate}]
                        },
                        "compute": {
                            "model": "roofline",
                            "peak": "10 TFLOPS",
                            "local-memory": {"bandwidth": "1000 GB/s"},
                        },
                        "remote-memory": {"kind": "per-npu", "bandwidth": "10 GB/s", "latency": "1 us"},
                    },
                    "workload": {
                        "traces": str(self.folder / "workload"),
                        "groups": str(self.folder / "groups.json"),
                        "streams": "trace",
                    },
                }
            )
        )
        self.write_traces({})
        before = self.run_once([config, "--timeline"], "before.h5")
        idle = []
        for (name, attribute), value in CHANGES.items():
            kind, attributes = TRACE_NODES[name]
            self.write_traces({name: (kind, {**attributes, attribute: value})})
            if not self.has_effect(before, [config, "--timeline"], attribute):
                idle.append(f"{name}.{attribute}")
        self.assertEqual(idle, [])


if __name__ == "__main__":
    harness.main()
