#!/usr/bin/python3
"""Chakra traces and files of ASTRA-sim as users have them: groups that nobody lists, JSON, and files that say too little or too much."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

GROUPS = {"left": [0, 1, 2, 3], "right": [4, 5, 6, 7]}
MIB = 1 << 20


def traces_with_groups():
    """Returns traces of 8 NPUs: an all-reduce in each half, then one of all."""
    return [
        [
            Node(1, chakra.COMP, "work", duration=3 + npu),
            Node(
                2,
                chakra.COLL,
                "half",
                [1],
                comm_type=chakra.ALL_REDUCE,
                comm_size=MIB,
                pg_name="left" if npu < 4 else "right",
            ),
            Node(3, chakra.COLL, "all", [2], comm_type=chakra.ALL_REDUCE, comm_size=MIB),
        ]
        for npu in range(8)
    ]


class WildTraces(harness.Folder):
    def test_groups_that_nobody_lists_have_the_npus_that_name_them(self):
        """The members of both groups are the NPUs that name them: the results on 1 to 8 ranks, cut by the traffic and folded are those of
        a file that lists them, and a warning names both groups."""
        system = harness.System(["Ring"], [8], groups=GROUPS)
        workload = harness.write_workload(self.folder, traces_with_groups())
        listed = self.run_once([workload] + system.write(self.folder), "listed.h5")
        system.groups = None
        (self.folder / "comm_group.json").unlink()
        arguments = [workload] + [flag for flag in system.write(self.folder) if "comm-group" not in flag]
        warned = harness.orrery("check", *arguments)
        self.assertEqual(warned.code, 0, warned.err)
        self.assertRegex(
            warned.err,
            r"process group 'left' is named, but nothing lists its members: .* 4 NPUs that name it \(0, 1, 2, 3\)",
        )
        for ranks, more in [
            (0, []),
            (2, []),
            (3, []),
            (8, []),
            (3, ["--partition=metis"]),
            (2, ["--partition=round-robin"]),
            (0, ["--fold"]),
        ]:
            with self.subTest(ranks=ranks, more=more):
                found = self.run_once(arguments + more, "named.h5", ranks=ranks)
                self.assertEqual(list(harness.finish_times(found)), list(harness.finish_times(listed)))

    def test_json_gives_what_the_trace_gives(self):
        """The same trace in Chakra's JSON and as protocol buffers: `show trace` prints the same kinds, collectives and times."""
        nodes = [
            Node(1, chakra.COMP, "a", duration=4, num_ops=12),
            Node(2, chakra.COLL, "b", [1], comm_type=chakra.ALL_GATHER, comm_size=MIB),
        ]
        chakra.write(self.folder / "t.0.et", nodes)
        text = '{"version": "0.0.4"}\n'
        for node in nodes:
            attributes = [
                {"name": name, "int64Val": str(getattr(value, "value", value))}
                for name, value in node.attributes.items()
            ]
            text += json.dumps(
                {
                    "id": str(node.id),
                    "name": node.name,
                    "type": {chakra.COMP: "COMP_NODE", chakra.COLL: "COMM_COLL_NODE"}[node.type],
                    "dataDeps": [str(each) for each in node.data_deps],
                    "durationMicros": str(node.duration),
                    "attr": attributes,
                },
                indent=1,
            )
        (self.folder / "t.0.json").write_text(text)
        shown = [
            json.loads(harness.orrery("show", "trace", self.folder / name, "--json").out)
            for name in ("t.0.et", "t.0.json")
        ]
        self.assertEqual([each.pop("format") for each in shown], ["chakra", "chakra-json"])
        for each in shown:
            del each["file"]
        self.assertEqual(*shown)

    def test_spoilt_json_ends_in_order(self):
        """A graph in JSON with a few bytes changed: it is read or refused with the name of the file, and nothing else happens."""
        graph = json.dumps(
            {
                "workload_graph": [
                    {
                        "Id": at,
                        "Name": f"n{at}",
                        "NodeType": 4 + 3 * (at % 3 == 0),
                        "data_deps": [at - 1],
                        "runtime": at,
                        "is_cpu_op": at % 2 == 0,
                    }
                    for at in range(1, 20)
                ]
            }
        ).encode()
        draw = random.Random(15)
        path = self.folder / "t.json"
        for number in range(20 if harness.FEWER_CASES else 100):
            data = bytearray(graph)
            for _ in range(draw.choice((1, 1, 2, 5))):
                at = draw.randrange(len(data))
                data[at : at + draw.choice((0, 1, 1, 30))] = draw.choice(
                    (b"", b"9", b"-", b'"', b"}", b"]", b"\x00", b"[[", bytes([draw.randrange(256)]))
                )
            path.write_bytes(data)
            outcome = harness.orrery("show", "trace", path)
            self.assertIn(outcome.code, (0, 3), f"{number}: {outcome.err}")
            self.assertNotIn("fault of Orrery", outcome.err)
            if outcome.code == 3:
                self.assertIn(str(path), outcome.err)

    def test_messages_quote_little_of_a_file(self):
        """A value of 100,000 characters in each file of a configuration in turn: no line of the messages is longer than 1000 characters."""
        system = harness.System(["Ring"], [8])
        workload = harness.write_workload(self.folder, traces_with_groups())
        long = "x" * 100_000
        for name, text in [
            ("system.json", f'{{"scheduling-policy": "{long}"}}'),
            ("system.json", f'{{"{long}": 1}}'),
            ("system.json", f'{{"a": {long}}}'),
            ("network.yml", f"topology: [{long}]"),
            ("network.yml", f"{long}: 1"),
            ("network.yml", f"topology: [Ring]\nnpus_count: [{long}]"),
            ("remote_memory.json", f'{{"memory-type": "{long}"}}'),
            ("remote_memory.json", long),
        ]:
            with self.subTest(f"{name}: {text[:30]}"):
                arguments = [workload] + system.write(self.folder)
                (self.folder / name).write_text(text)
                outcome = harness.orrery("check", *arguments)
                self.assertEqual(outcome.code, 3, outcome.err[:2000])
                self.assertLess(max(map(len, outcome.err.splitlines())), 1000, outcome.err[:2000])


if __name__ == "__main__":
    harness.main()
