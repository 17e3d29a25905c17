#!/usr/bin/python3
"""workload.streams: trace. Nodes that name a stream take turns with those of that stream, and with no others."""
import collections
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
from chakra import Node  # noqa: E402

US = 10**6  # ps
OF_TRACE = "--streams=trace"
SEEDS = range(8101, 8102 if harness.SANITIZED else 8107)
IN_STREAMS = (chakra.COMP, chakra.COLL, chakra.SEND, chakra.MEM_LOAD, chakra.MEM_STORE)


def timeline(path):
    """{NPU: {node: (start, finish)}} in ps."""
    import h5py
    nodes = collections.defaultdict(dict)
    with h5py.File(path) as results:
        rows = results["timeline"]
        for npu, node, start, finish in zip(rows["npu"], rows["node"], rows["start"], rows["finish"]):
            nodes[int(npu)][int(node)] = (int(start), int(finish))
    return nodes


class Streams(harness.Folder):
    def config(self, traces, more=""):
        path = self.folder / "config.yaml"
        path.write_text("system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n"
                        f"  collectives: {{endpoint-delay: 0 ns{more}}}\nworkload: {{traces: {traces}}}\n")
        return path

    def test_by_hand(self):
        """Stream 7 computes for 3 us and 1 us, stream 20 for 2 us; an all-gather of 5 us in one hop of 1 us waits for stream 7, so that it
        begins at 4. Nodes without a stream take the place of their own resource, 4 us and 1 us one after the other."""
        nodes = [Node(1, chakra.COMP, duration=3, stream=7), Node(2, chakra.COMP, duration=2, stream=20), Node(3, chakra.COMP, duration=1, stream=7),
                 Node(4, chakra.COMP, duration=4), Node(5, chakra.COMP, duration=1),
                 Node(6, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000, stream=7)]
        config = self.config(harness.write_workload(self.folder, [nodes] * 2).split("=")[1])
        trace = timeline(self.check_one_answer([config, OF_TRACE, "--timeline"], 2, ranks=(2,)))
        expected = {1: (0, 3), 2: (0, 2), 3: (3, 4), 4: (0, 4), 5: (4, 5), 6: (4, 10)}
        self.assertEqual(trace[0], {node: (start * US, end * US) for node, (start, end) in expected.items()})
        counted = timeline(self.run_once([config, "--timeline"]))
        self.assertEqual([counted[0][node][0] // US for node in range(1, 7)], [0, 3, 5, 6, 10, 0])

    def test_random_workloads(self):
        """In a stream one node runs at a time, and begins when it is ready or when another one of the stream is over; one answer."""
        for seed in SEEDS:
            workload = random_workload.Workload(seed, max_npus=24, operations=(20, 80))
            draw = random.Random(seed)
            for nodes in workload.traces:
                for node in nodes:
                    if node.type in IN_STREAMS and draw.random() < 0.8:
                        node.attributes["stream"] = draw.choice((-1, 7, 20, 1 << 40))
            arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
            arguments += ["--timeline", OF_TRACE]
            for network in ("congestion-unaware", "congestion-aware"):
                with self.subTest(seed=seed, network=network):
                    path = self.check_one_answer(arguments + [f"--network={network}"], workload.num_npus, ranks=(2, 3))
                    self.check_turns(workload.traces, timeline(path))
            for path in self.folder.iterdir():
                path.unlink()

    def check_turns(self, traces, times):
        for npu, nodes in enumerate(traces):
            nodes = [node for node in nodes if node.type in IN_STREAMS and not node.attributes.get("is_cpu_op")]
            streams = collections.defaultdict(list)
            for node in nodes:
                start, finish = times[npu][node.id]
                if "stream" in node.attributes and finish > start:
                    streams[node.attributes["stream"]].append((start, finish))
            for turns in streams.values():
                turns.sort()
                for (_, finish), (start, _) in zip(turns, turns[1:]):
                    self.assertLessEqual(finish, start)
            for node in nodes:
                start, _ = times[npu][node.id]
                ready = max((times[npu][other][1] for other in node.data_deps + node.ctrl_deps), default=0)
                if "stream" in node.attributes and start > ready:
                    self.assertIn(start, [finish for _, finish in streams[node.attributes["stream"]]], node.id)

    def test_refusals(self):
        nodes = [Node(1, chakra.COLL, "sum", comm_type=chakra.ALL_GATHER, comm_size=5000, stream="main")]
        traces = harness.write_workload(self.folder, [nodes] * 2).split("=")[1]
        self.assertEqual(harness.orrery("check", self.config(traces)).code, 0)
        cases = {(self.config(traces), OF_TRACE): ["workload.0.et", "node 1 'sum'", "stream is no whole number"],
                 (self.config(traces), "--set=workload.streams=traces"): ["workload.streams", "'traces'", "counted or trace"],
                 (self.config(traces), OF_TRACE, "--set=system.communication.order=fifo"): ["system.communication.order", "workload.streams"],
                 (self.config(traces), OF_TRACE, "--set=system.collectives.all-gather=[inSwitch]"): ["workload.streams", "inSwitch"]}
        for arguments, words in cases.items():
            with self.subTest(arguments):
                outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'no.h5'}")
                self.assertEqual(outcome.code, 3, outcome.err)
                for word in words:
                    self.assertIn(word, outcome.err)

    def test_nodes_without_streams(self):
        nodes = [Node(1, chakra.COMP, duration=3), Node(2, chakra.COMP, duration=3)]
        config = self.config(harness.write_workload(self.folder, [nodes] * 2).split("=")[1])
        outcome = harness.orrery("run", config, OF_TRACE, f"--output={self.folder / 'r.h5'}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("nodes name no stream", outcome.err)
        self.assertEqual(harness.finish_times(self.folder / "r.h5"), [6 * US] * 2)


if __name__ == "__main__":
    harness.main()
