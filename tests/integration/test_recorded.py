#!/usr/bin/python3
"""Recorded communication: with communication.durations: recorded, a collective or a message takes the shortest of the durations that its
members recorded, from the moment when the last of them is ready. Where a member recorded none, the network decides."""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
from chakra import Node  # noqa: E402

US = 10**6  # ps
RECORDED = "--communication-durations=recorded"
COMMUNICATION = (chakra.COLL, chakra.SEND, chakra.RECV)
SEEDS = range(9101, 9101 + harness.cases(3, 6, 12))


def timeline(path):
    """Returns {NPU: {node: (start, finish)}} in ps."""
    import h5py

    nodes = collections.defaultdict(dict)
    with h5py.File(path) as results:
        rows = results["timeline"]
        for npu, node, start, finish in zip(rows["npu"], rows["node"], rows["start"], rows["finish"]):
            nodes[int(npu)][int(node)] = (int(start), int(finish))
    return nodes


class Recorded(harness.Folder):
    def config(self, traces):
        files = harness.write_workload(self.folder, traces).replace("--workload-configuration=", "traces: ")
        path = self.folder / "config.yaml"
        path.write_text(
            "system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n"
            f"  collectives: {{endpoint-delay: 0 ns}}\nworkload: {{{files}}}\n"
        )
        return path

    def times(self, nodes):
        """Runs two NPUs and returns their timelines, in us."""
        path = self.check_one_answer([self.config(nodes), RECORDED, "--timeline"], 2, ranks=(2,))
        return [
            {node: (start / US, finish / US) for node, (start, finish) in of_npu.items()}
            for _, of_npu in sorted(timeline(path).items())
        ]

    def test_the_last_member_and_the_shortest_record_decide(self):
        """NPU 0 is ready at 3 us and recorded 10 us, NPU 1 at 9 us and 4 us: both are through at 13 us. Then NPU 0 records 2 us."""
        nodes = [
            [
                Node(1, chakra.COMP, duration=ready),
                Node(2, chakra.COLL, data_deps=[1], duration=first, comm_type=chakra.ALL_GATHER, comm_size=5000),
                Node(3, chakra.COLL, data_deps=[2], duration=second, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
            ]
            for ready, first, second in ((3, 10, 2), (9, 4, 7))
        ]
        zero, one = self.times(nodes)
        self.assertEqual([zero[2], zero[3]], [(3, 13), (13, 15)])
        self.assertEqual([one[2], one[3]], [(9, 13), (13, 15)])

    def test_without_a_record_the_network_decides(self):
        """An all-gather of 5,000 bytes takes 6 us on the network, although NPU 0 recorded 40 us, because NPU 1 recorded nothing."""
        nodes = [
            [Node(1, chakra.COLL, duration=recorded, comm_type=chakra.ALL_GATHER, comm_size=5000)]
            for recorded in (40, 0)
        ]
        self.assertEqual(self.times(nodes), [{1: (0, 6)}] * 2)

    def test_messages(self):
        """The sender is ready at 2 us and recorded 8 us, the receiver at 7 us and 3 us: both end at 10 us. In the next message the
        receiver is ready first. The third, of 1,000 bytes, has no record at the sender: 2 us on the network, after a clear to send of
        at most half the shortest record, 1.5 us, that takes no longer than its latency, 1 us, and its bytes."""
        message = {"comm_size": 1000}
        sender = [
            Node(1, chakra.COMP, duration=2),
            Node(2, chakra.SEND, data_deps=[1], duration=8, comm_dst=1, comm_tag=1, **message),
            Node(3, chakra.COMP, data_deps=[2], duration=5),
            Node(4, chakra.SEND, data_deps=[3], duration=4, comm_dst=1, comm_tag=2, **message),
            Node(5, chakra.SEND, data_deps=[4], comm_dst=1, comm_tag=3, **message),
        ]
        receiver = [
            Node(1, chakra.COMP, duration=7),
            Node(2, chakra.RECV, data_deps=[1], duration=3, comm_src=0, comm_tag=1, **message),
            Node(3, chakra.COMP, data_deps=[2], duration=1),
            Node(4, chakra.RECV, data_deps=[3], duration=9, comm_src=0, comm_tag=2, **message),
            Node(5, chakra.RECV, data_deps=[4], duration=9, comm_src=0, comm_tag=3, **message),
        ]
        zero, one = self.times([sender, receiver])
        self.assertEqual([zero[2], zero[4]], [(2, 10), (15, 19)])
        self.assertEqual([one[2], one[4]], [(7, 10), (11, 19)])
        self.assertEqual(zero[5][1], one[5][1])
        self.assertGreaterEqual(one[5][1], 19 + 1 + 2)
        self.assertLessEqual(one[5][1], 19 + 1.5 + 2)

    def test_random_workloads(self):
        """Random workloads in which each node of communication has a recorded duration with a probability of nine in ten: what all members
        recorded takes the shortest of these durations from the last start, and results are the same on 1, 2, 3 and 4 ranks and folded.
        """
        num_checked = 0
        for seed in SEEDS:
            workload = random_workload.Workload(seed, max_npus=16, operations=(20, 60))
            if not workload.rendezvous:  # a sender waits for its receiver, so the workload must be one that allows this
                workload = next(
                    w
                    for w in (
                        random_workload.Workload(1000 * seed + i, max_npus=16, operations=(20, 60)) for i in range(1000)
                    )
                    if w.rendezvous
                )
            for nodes in workload.traces:
                for node in nodes:
                    if node.type in COMMUNICATION and workload.random.random() < 0.9:
                        node.duration = workload.random.randint(1, 400)
            arguments = (
                [harness.write_workload(self.folder, workload.traces)]
                + workload.system.write(self.folder)
                + [RECORDED, "--timeline"]
            )
            with self.subTest(seed=seed):
                path = self.check_one_answer(arguments, workload.num_npus, ranks=(2, 3, 4))
                num_checked += self.check_durations(workload.traces, timeline(path))
                if not workload.shared_memory():
                    folded = self.run_once(arguments + ["--fold"], "folded.h5")
                    self.assertEqual(harness.finish_times(folded), harness.finish_times(path))
            self.clear_folder()
        self.assertGreater(num_checked, 2 * len(SEEDS))

    def check_durations(self, traces, times):
        """Checks the messages, which tags tell apart, and returns how many of them both sides recorded."""
        sides = collections.defaultdict(list)
        for npu, nodes in enumerate(traces):
            for node in nodes:
                if node.type in (chakra.SEND, chakra.RECV):
                    ends = (
                        (npu, node.attributes["comm_dst"])
                        if node.type == chakra.SEND
                        else (node.attributes["comm_src"], npu)
                    )
                    sides[ends, node.attributes.get("comm_tag", 0)].append((node, times[npu][node.id]))
        num_checked = 0
        for pair in sides.values():
            if len(pair) != 2 or not all(node.duration for node, _ in pair):
                continue
            finish = max(start for _, (start, _) in pair) + min(node.duration for node, _ in pair) * US
            self.assertEqual([end for _, (_, end) in pair], [finish] * 2)
            num_checked += 1
        return num_checked

    def test_what_recorded_durations_exclude(self):
        """The congestion-aware network, a replay and a generated workload have no use for recorded durations of communication."""
        nodes = [[Node(1, chakra.COLL, duration=4, comm_type=chakra.ALL_GATHER, comm_size=5000)]] * 2
        for more in ("--network=congestion-aware", "--set=workload.replay-only=true"):
            with self.subTest(more):
                outcome = harness.orrery("check", self.config(nodes), RECORDED, more)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn("--communication-durations", outcome.err)
                self.assertIn("found recorded", outcome.err)


if __name__ == "__main__":
    harness.main()
