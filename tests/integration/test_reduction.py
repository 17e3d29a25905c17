#!/usr/bin/python3
"""Switches of the packet network that reduce: lists of reductions against a plain program of the rules, one answer on any number of
ranks, collectives of runs with the algorithm inSwitch, checkpoints and refusals.

In times by hand a link has 400 Gb/s and 500 ns, and a packet of 4,096 B with a header of 64 B takes 83,200 ps."""
import importlib.util
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))

import h5py  # noqa: E402

import chakra  # noqa: E402
import checkpoints  # noqa: E402
import harness  # noqa: E402
import reduction_cases  # noqa: E402
from chakra import Node  # noqa: E402

PACKET, DELAY, SUM = 83_200, 500_000, 100_000
LIST = harness.SOURCE / "configs/flows/reduction.yaml"
SPECIFICATION = harness.SHARED / "reference/transport/specsim.py"
PACKETS = [
    "--network=packet",
    "--set=system.network.packets.payload=4096 B",
    "--set=system.network.packets.header=64 B",
]
NPUS = 8
SYSTEM = f"""system:
  network:
    dimensions: [{{shape: Switch, size: {NPUS}, bandwidth: 50 GB/s, latency: 500 ns, in-switch-operations: 2}}]
  collectives: {{all-reduce: [inSwitch], chunks: CHUNKS, active-chunks: 2, endpoint-delay: 10 ns}}
  communication: {{rendezvous: RENDEZVOUS}}
"""
LIST_OF_ONE = [{"size": "10 kB"}]


def scenario(reductions=None, switches=1, workload=None, **packets):
    """Returns four hosts on each leaf below a spine, or on one switch, and reductions."""
    hosts = 4 * max(1, switches - 1)
    links = [[h, hosts + h // 4, "400 Gb/s", "500 ns"] for h in range(hosts)]
    links += [[leaf, hosts + switches - 1, "400 Gb/s", "500 ns"] for leaf in range(hosts, hosts + switches - 1)]
    graph = {"hosts": hosts, "switches": switches, "links": links}
    return {
        "system": {"network": {"graph": graph, "packets": {"payload": "4096 B", "header": "64 B", **packets}}},
        "workload": workload or {"reductions": reductions},
    }


def draw_tree(draw, hosts, levels):
    """Returns switches in levels, each level with fewer of them, as branches and the number of switches."""
    branches, below, number = [], list(range(hosts)), hosts
    for level in range(levels):
        count = 1 if level == levels - 1 else max(1, len(below) // draw.choice([2, 3]))
        here = list(range(number, number + count))
        branches += [[node, here[i * count // len(below)]] for i, node in enumerate(below)]
        below, number = here, number + count
    return branches, number - hosts


def draw_case(draw):
    """Returns inputs as those of the golden cases: one or two trees over one set of switches, and operations."""
    hosts = draw.choice([3, 4, 6, 9, 12])
    branches, switches = draw_tree(draw, hosts, draw.choice([1, 2, 3]))
    links = [[a, b, draw.choice([100, 200, 400]) * 10**9, draw.randrange(1000, 900_000)] for a, b in branches]
    trees = [branches]
    if draw.random() < 0.5:  # another root above the leaves of the tree
        tops = {b for a, b in branches if a < hosts}
        links += [[leaf, hosts + switches, 10**11, draw.randrange(1000, 900_000)] for leaf in sorted(tops)]
        trees.append(
            [pair for pair in branches if pair[0] < hosts] + [[leaf, hosts + switches] for leaf in sorted(tops)]
        )
        switches += 1
    operations, start = [], 0
    for number in range(draw.choice([1, 2, 4])):
        late = {str(h): draw.randrange(10**6) for h in range(hosts) if draw.random() < 0.2}
        operations.append(
            {
                "id": number,
                "tree": draw.randrange(len(trees)),
                "bytes": draw.randrange(1, 200_000),
                "start": start,
                "hosts": list(range(hosts)),
                "late": late,
            }
        )
        start += draw.choice([10**6, 10**7])
    return {
        "nodes": [hosts, switches],
        "links": links,
        "trees": trees,
        "operations": operations,
        "reduction": {
            "payload": draw.choice([1000, 4096]),
            "header": draw.choice([36, 64]),
            "slots": draw.choice([1, 2, 7, 64]),
            "delay_ps": draw.choice([0, 1, 100_000]),
        },
    }


class Lists(harness.Folder):
    def test_against_the_specification(self):
        """Random trees, links, operations and slots: the plain program of the specification has the same times in the order of scheduling."""
        if not SPECIFICATION.is_file():
            self.skipTest(f"{SPECIFICATION} is not there")
        spec = importlib.util.spec_from_file_location("specsim", SPECIFICATION)
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        for seed in range(12 if harness.FEWER_CASES else 60):
            with self.subTest(seed=seed):
                inputs = draw_case(random.Random(seed))
                expected = [time for _, time in program.run_reduce(inputs)["operations"]]
                results = self.simulate_flows(reduction_cases.scenario(inputs), "--scheduling-order")
                self.assertEqual(reduction_cases.ends(results), expected)

    def test_one_answer(self):
        """A list with flows, pauses and several operations gives the same JSON on any number of ranks, and so does the example."""
        mixed = scenario(
            [{"size": "400 kB"}, {"size": "300 kB", "kind": "broadcast", "root": 6}] * 2, 4, buffer="400 kB"
        )
        mixed["workload"]["flows"] = [{"from": h, "to": (h * 5 + 1) % 12, "size": "200 kB"} for h in range(12)]
        for case in (mixed, LIST):
            alone = self.simulate_flows(case)
            self.assertGreater(sum(switch["packets"] for switch in alone["switches"]), 0)
            for ranks in (1, 2, 3, 4, 8):
                with self.subTest(ranks=ranks):
                    other = self.simulate_flows(case, ranks=ranks)
                    for part in ("reductions", "switches", "flows", "ports"):
                        self.assertEqual(other[part], alone[part])
        self.assertEqual(sum(port["drops"] for port in alone["ports"]), 0)

    def test_operations_in_order(self):
        """A switch with one operation at a time carries out the one with the lower number first, although both trees are free."""
        branches = [[h, 4] for h in range(4)]
        work = {"trees": [branches, branches], "reductions": [{"size": "1 MB", "tree": t} for t in (0, 1)]}
        ends = {}
        for operations in (1, 2):
            rules = {"most-trees": 2, "operations": operations}
            ends[operations] = [
                one["end_ps"] for one in self.simulate_flows(scenario(workload=work, reduction=rules))["reductions"]
            ]
        self.assertLess(ends[1][0], ends[2][0] + 1)
        self.assertLess(ends[1][0], ends[1][1])

    def test_record_of_queues(self):
        """Reductions wait in the queues that are recorded, and in the links with the most packets."""
        results = self.simulate_flows(scenario([{"size": "1 MB"}], 3), "--queue-bins=20", "--links")
        self.assertGreater(len(results["queues"]["links"] if "links" in results["queues"] else results["queues"]), 0)

    def test_refusals(self):
        """What cannot work is refused before the run, with the key."""
        two_trees = {
            "trees": [[[h, 4] for h in range(4)]] * 2,
            "reductions": [{"size": "1 kB", "tree": t} for t in (0, 1)],
        }
        for case, *parts in (
            (scenario(LIST_OF_ONE, preset="uec", payload="4086 B"), "packets.transport", "uec"),
            (scenario(LIST_OF_ONE, preset="tcp-linux", payload=None, header=None), "packets.transport", "tcp"),
            (scenario(LIST_OF_ONE, discipline="drop-tail", loss="selective"), "packets.discipline", "drop-tail"),
            (scenario(LIST_OF_ONE, **{"flow-control": "none"}), "packets.flow-control", "none"),
            (scenario(LIST_OF_ONE, **{"flow-control": "credits"}), "packets.flow-control", "credits"),
            (scenario(LIST_OF_ONE, reduction={"trees": 2}), "reduction.trees", "at most 1 tree"),
            (scenario(workload=two_trees), "most-trees", "2 trees"),
            (scenario([{"size": "1 kB", "hosts": [0, 0]}]), "workload.reductions.0.hosts", "twice"),
            (scenario([{"size": "1 kB", "kind": "broadcast"}]), "root"),
            (scenario([{"size": "1 kB", "hosts": [0, 1], "late": [[3, "1 us"]]}]), "late", "host 3"),
            (scenario([{"size": "1 kB", "late": [[1, "1 us"], [1, "2 us"]]}]), "reductions.0.late", "host 1 twice"),
            (scenario([{"size": "1 kB", "tree": 1}]), "tree"),
            (scenario(workload={"trees": [[[0, 4]]], "flows": [{"from": 0, "to": 1, "size": "1 B"}]}), "trees"),
            (
                scenario(workload={"flows": [{"from": 0, "to": 1, "size": "1 B"}]}, reduction={"slots": 4}),
                "packets.reduction",
                "no effect",
            ),
        ):
            with self.subTest(parts):
                self.refuse_flows(case, *parts)


class Runs(harness.Folder):
    def run_of(self, *kinds, size=1 << 20, chunks=1, rendezvous="false", late=0, members=NPUS, more=()):
        """Returns the arguments of a run of collectives of these kinds, one after the other."""
        nodes = []
        for npu in range(members):
            mine = [Node(0, chakra.COMP, duration=1 + late * npu)]
            for kind in kinds:
                mine.append(Node(len(mine), chakra.COLL, comm_type=kind, comm_size=size, data_deps=[len(mine) - 1]))
            nodes.append(mine)
        harness.write_workload(self.folder, nodes)
        path = self.folder / "system.yaml"
        path.write_text(SYSTEM.replace("CHUNKS", str(chunks)).replace("RENDEZVOUS", rendezvous))
        return [path, *PACKETS, f"--set=workload.traces={self.folder / 'workload'}", *more]

    def test_all_reduce(self):
        """An all-reduce takes k T + T + 2 d + delay in the network, two endpoint delays, and 1 ps to the NPU. All kinds take as long."""
        for kind in (chakra.ALL_REDUCE, chakra.REDUCE, chakra.BROADCAST):
            with self.subTest(kind):
                path = self.run_once(self.run_of(kind))
                network = 257 * PACKET + 2 * DELAY + SUM
                self.assertEqual(harness.finish_times(path), [1_000_000 + network + 1 + 20_000] * NPUS)
        with h5py.File(path) as file:
            table = file["/network/reductions"]
            self.assertEqual(list(table["device"]), [-1])
            self.assertEqual(list(table["packets"]), [256])
            self.assertEqual(list(table["operations"]), [1])

    def test_chunks_share_the_switch(self):
        """Four chunks, two of which begin at a time, take as long as one if the switch carries out one after the other: k T and four ends."""
        path = self.run_once(self.run_of(chakra.ALL_REDUCE, chunks=4))
        network = 257 * PACKET + 2 * DELAY + SUM
        finish = max(harness.finish_times(path))
        self.assertGreater(finish, network)
        self.assertLess(finish, 4 * network)

    def test_one_answer(self):
        """Collectives of all kinds, with late NPUs, chunks and rendezvous, on 1 to 8 ranks."""
        for rendezvous in ("false", "true"):
            arguments = self.run_of(
                chakra.ALL_REDUCE,
                chakra.BROADCAST,
                chakra.REDUCE,
                size=300_000,
                chunks=3,
                rendezvous=rendezvous,
                late=3,
                more=["--set=system.communication.streams=2", "--set=system.network.packets.reduction.operations=2"],
            )
            with self.subTest(rendezvous):
                self.check_one_answer(arguments, NPUS, ranks=(1, 2, 3, 4, 8))

    def test_refusals(self):
        """Kinds and networks in which switches cannot reduce are refused with exit code 3."""
        for kind, more, part in (
            (chakra.ALL_GATHER, ["--set=system.collectives.all-gather=[inSwitch]"], "all-reduce, reduce and broadcast"),
            (chakra.ALL_REDUCE, ["--set=system.network.packets.preset=uec"], "packets.transport"),
            (chakra.ALL_REDUCE, ["--set=system.network.packets.flow-control=none"], "packets.flow-control"),
            (chakra.ALL_REDUCE, ["--set=system.network.packets.reduction.trees=2"], "reduction.trees"),
        ):
            with self.subTest(part):
                for command in ("run", "check"):
                    output = [f"--output={self.folder / 'refused.h5'}"] if command == "run" else []
                    outcome = harness.orrery(command, *self.run_of(kind, more=more), *output)
                    self.assertEqual(outcome.code, 3, outcome.err)
                    self.assertIn(part, outcome.err)

    def test_communicators_of_one_switch(self):
        """Two process groups reduce in one switch: more trees than it may take part in are refused, and with enough all goes well."""
        nodes = [
            [Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=100_000, pg_name=("evens", "odds")[npu % 2])]
            for npu in range(NPUS)
        ]
        (self.folder / "groups.json").write_text(json.dumps({"evens": [0, 2, 4, 6], "odds": [1, 3, 5, 7]}))
        arguments = self.run_of(chakra.ALL_REDUCE, more=[f"--set=workload.groups={self.folder / 'groups.json'}"])
        harness.write_workload(self.folder, nodes)
        outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'refused.h5'}")
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("most-trees", outcome.err)
        rules = "--set=system.network.packets.reduction."
        self.check_one_answer([*arguments, f"{rules}most-trees=2", f"{rules}operations=2"], NPUS)


class Checkpoints(checkpoints.KilledRuns):
    others = (0, 2, 3)

    def test_reductions(self):
        """A run goes on while contributions are in slots, sums wait for their operation, and results are under way."""
        arguments = Runs.run_of(
            self,
            *[chakra.ALL_REDUCE, chakra.BROADCAST] * 3,
            size=4_000_000,
            chunks=4,
            late=2,
            more=["--set=system.network.packets.reduction.slots=16", "--noise=0.05", "--iterations=2"],
        )
        self.check(arguments, NPUS)


if __name__ == "__main__":
    harness.main()
