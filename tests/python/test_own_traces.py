#!/usr/bin/python3
"""orrery.traces: what a script writes is what the program reads, and mistakes are told where they are made."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

sys.path.insert(0, str(harness.SOURCE / "scripts/python"))
from orrery import traces  # noqa: E402

US = 10**6  # ps


def attributes_of(node):
    return {name: getattr(value, "value", value) for name, value in node.attributes.items()}


class OwnTraces(harness.Folder):
    def test_each_kind_of_node_is_written(self):
        """Two NPUs with one node of each kind: a reader that is not the package's finds types, dependencies, durations and attributes."""
        workload = traces.Workload(num_npus=2)
        pair = workload.group("pair", [1, 0])
        npu, other = workload.npus
        made = [npu.compute("c", flops=2e12, bytes=3e9, seconds=1.5e-6, stream=7, inputs={"x": 16}, outputs={"y": 5})]
        made.append(npu.host("h", seconds=3e-6, after=made))
        made.append(npu.collective("s", "reduce-scatter", size=1 << 20, group=pair, priority=-4, after=made))
        made.append(npu.collective("b", "barrier"))
        made += [npu.send("m", to=1, size=10, tag=9), npu.load("l", size=11), npu.store("w", size=12)]
        other.receive("m", source=0, size=10, tag=9)
        workload.write(self.folder / "deep/w")
        nodes = chakra.read(self.folder / "deep/w.0.et")
        types = [chakra.COMP, chakra.COMP, chakra.COLL, chakra.COLL, chakra.SEND, chakra.MEM_LOAD, chakra.MEM_STORE]
        self.assertEqual([node.type for node in nodes], types)
        self.assertEqual([node.data_deps for node in nodes[:4]], [[], [0], [0, 1], []])
        self.assertEqual([node.duration for node in nodes[:2]], [1, 3])
        first = attributes_of(nodes[0])
        self.assertEqual(
            [first[key] for key in ("num_ops", "tensor_size", "duration_ps", "stream", "inputs", "outputs")],
            [2 * 10**12, 3 * 10**9, 1500000, 7, ["x", "16"], ["y", "5"]],
        )
        self.assertTrue(attributes_of(nodes[1])["is_cpu_op"])
        scatter = attributes_of(nodes[2])
        self.assertEqual(
            [scatter[key] for key in ("comm_type", "comm_size", "pg_name")], [chakra.REDUCE_SCATTER, 1 << 20, "pair"]
        )
        received = attributes_of(chakra.read(self.folder / "deep/w.1.et")[0])
        self.assertEqual([received[key] for key in ("comm_src", "comm_dst", "comm_tag", "comm_size")], [0, 1, 9, 10])

    def test_the_program_executes_them(self):
        """Two NPUs compute for 3 us and 5 us, and then one sends 1,000 bytes over 1 GB/s with a latency of 1 us: the receive ends at 7 us."""
        workload = traces.Workload(num_npus=2)
        first, second = workload.npus
        first.send("m", to=1, size=1000, after=[first.host("h", seconds=5e-6)])
        second.receive("m", source=0, size=1000, after=[second.host("h", seconds=3e-6)])
        workload.write(self.folder / "w")
        config = self.folder / "config.yaml"
        config.write_text(
            "system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n"
            f"workload: {{traces: '{self.folder / 'w'}', groups: '{self.folder / 'w.json'}'}}\n"
        )
        path = self.check_one_answer([config], 2, ranks=(2,))
        self.assertEqual(harness.finish_times(path), [7 * US, 7 * US])

    def test_mistakes_are_refused(self):
        """Each mistake raises TraceError with a message that names what was found."""
        workload = traces.Workload(num_npus=4)
        group = workload.group("g", [0, 1])
        npu, other = workload.npus[0], workload.npus[2]
        foreign = other.compute("c", flops=1)
        cases = {
            "found the kind 'all-sum'": lambda: npu.collective("x", "all-sum", size=1),
            "NPU 2 is no member of group 'g'": lambda: other.collective("x", "all-reduce", size=1, group=group),
            "size of collective 'x' is 0": lambda: npu.collective("x", "all-reduce"),
            "size of message 'x' is 1.5": lambda: npu.send("x", to=1, size=1.5),
            "target of message 'x' is 4": lambda: npu.send("x", to=4, size=1),
            "NPU 0 is its own peer": lambda: npu.send("x", to=0, size=1),
            "no earlier node of this NPU": lambda: npu.compute("x", after=[foreign]),
            "unknown befor": lambda: npu.compute("x", befor=[]),
            "found -1 seconds": lambda: npu.host("x", seconds=-1),
            "each once": lambda: workload.group("h", [1, 1]),
            "no other group has": lambda: workload.group("g", [2]),
            "num_npus is 0": lambda: traces.Workload(num_npus=0),
        }
        for words, act in cases.items():
            with self.subTest(words), self.assertRaises(traces.TraceError) as caught:
                act()
            self.assertIn(words, str(caught.exception))

    def test_files_that_are_there_stay(self):
        """With one of the files there nothing is written, and force replaces it."""
        workload = traces.Workload(num_npus=1)
        (self.folder / "w.0.et").write_text("mine")
        with self.assertRaises(FileExistsError):
            workload.write(self.folder / "w")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["w.0.et"])
        workload.write(self.folder / "w", force=True)
        self.assertEqual(chakra.read(self.folder / "w.0.et"), [])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["w.0.et", "w.json"])


if __name__ == "__main__":
    harness.main()
