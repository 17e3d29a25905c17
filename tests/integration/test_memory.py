#!/usr/bin/python3
"""Hierarchical pools in whole runs: times by hand (docs/memory.md), alike on any number of ranks."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

NS = 1000  # ps
# 8 NPUs in 2 nodes. A piece is 4 x 8000 / 8 = 4000 B. Of all NPUs together it takes 800 ns from the groups (4 x 10 GB/s), 1600 ns
# over the 2 links of a node (5 GB/s each) and 1000 ns over the fabric; of one alone 100, 400 and 1000 ns.
POOL = {"kind": "hierarchical-pool", "npus-per-node": 4, "groups": 4, "bandwidth": "10 GB/s", "latency": "100 ns", "switches": 2,
        "link-bandwidth": "5 GB/s", "link-latency": "50 ns", "fabric-bandwidth": "4 GB/s", "fabric-latency": "25 ns", "chunk-size": "8000 B"}
LATENCY = 100 + 50 + 25


def load(id, size, *after, type=chakra.MEM_LOAD, **attributes):
    return Node(id, type, data_deps=after, tensor_size=size, **attributes)


def wait(id, microseconds):
    return Node(id, chakra.COMP, duration=microseconds)


class Memory(harness.Folder):
    def config(self, nodes, memory=POOL):
        """The configuration of 8 NPUs with these nodes: a list for each; missing ones have nothing to do."""
        for npu in range(8):
            chakra.write(self.folder / f"w.{npu}.et", nodes.get(npu, []))
        path = self.folder / "config.yaml"
        keys = ", ".join(f"{key}: {value}" for key, value in memory.items())
        path.write_text("system:\n  network:\n    dimensions: [{shape: Ring, size: 8, bandwidth: 50 GB/s, latency: 500 ns}]\n"
                        f"  remote-memory: {{{keys}}}\nworkload: {{traces: w}}\n")
        return path

    def finish(self, nodes, memory=POOL):
        return [time / NS for time in harness.finish_times(self.check_one_answer([self.config(nodes, memory)], 8, ranks=(2, 3)))]

    def test_all_together(self):
        """10 chunks: the first through all stages, the others behind the links."""
        for type in (chakra.MEM_LOAD, chakra.MEM_STORE):
            times = self.finish({npu: [load(1, 40_000, type=type)] for npu in range(8)})
            self.assertEqual(times, [800 + 1600 + 1000 + 9 * 1600 + LATENCY] * 8)

    def test_one_after_the_other(self):
        """NPU 1 waits for the groups until 1000 ns, then its pieces for the links of the node, which NPU 0 holds until 4200 ns; NPU 4 of
        the other node waits for the groups only, until 2000 ns."""
        times = self.finish({0: [load(1, 40_000)], 1: [wait(1, 1), load(2, 40_000, 1)], 4: [wait(1, 2), load(2, 4_000, 1)]})
        self.assertEqual(times[0], 100 + 400 + 10 * 1000 + LATENCY)
        self.assertEqual(times[1], 4200 + 400 + 50 + 10 * 1000 + 25)
        self.assertEqual(times[4], 2000 + 100 + 400 + 1000 + LATENCY)

    def test_two_sizes_together(self):
        """NPU 0 has one piece, NPU 4 of the other node three: the first round takes 200 ns from the groups, the others 100."""
        times = self.finish({0: [load(1, 4_000)], 4: [load(1, 12_000)]})
        self.assertEqual(times[0], 200 + 400 + 1000 + LATENCY)
        self.assertEqual(times[4], 200 + 400 + 3 * 1000 + LATENCY)

    def test_refused(self):
        for key, value, words in (("switches", 3, "divisor of the 4 memory groups"), ("npus-per-node", 3, "divisor of the 8 NPUs"),
                                  ("chunk-size", "1 B", "a byte for each of the 8 NPUs from 4 groups"), ("groups", 0, "1 or more")):
            outcome = harness.orrery("check", self.config({}, {**POOL, key: value}))
            self.assertEqual(outcome.code, 3)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            self.assertIn(key, outcome.err)
            self.assertIn(words, outcome.err)


if __name__ == "__main__":
    harness.main()
