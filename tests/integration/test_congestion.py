#!/usr/bin/python3
"""The congestion-aware network: times by hand, results on any number of ranks, agreement with the congestion-unaware network where
nothing is in the way, and what is refused.

In times by hand 1,000 B take 100 ns on a link, a hop takes 100 ns, and an NPU takes 10 ns at each end of a collective's message."""
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import graphs  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
from chakra import Node  # noqa: E402

NS = 1000  # ps
# 1000 B take 100 ns, a hop 100 ns, the endpoint delay is 10 ns.
LINK = "bandwidth: 10 GB/s, latency: 100 ns"
AWARE = ["--network=congestion-aware"]
SEEDS = range(7001, 7001 + harness.cases(1, 2, 4))

# 64 NPUs: pipelines, groups of every dimension, rendezvous, skew, slow and failed links.
SKEWED = """system:
  network: {model: congestion-aware, dimensions: [DIMENSIONS]}
  collectives: {chunks: 4, active-chunks: 2LISTS}
  communication: {streams: 2, rendezvous: RENDEZVOUS}
  compute: {roofline: true, noise: 0.05, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
  remote-memory: {kind: pool, bandwidth: 100 GB/s, latency: 1 us}
workload:
  model: {layers: 4, hidden: 1024, heads: 16, sequence: 512}
  parallel: {tp: 4, sp: true, dp: 4, pp: 4, micro-batches: 2}
  iterations: 2
perturbation:
  links: [LINKS]
"""
SLOW = """{dimension: 1, npus: "0-7", bandwidth: 0.5, latency: 2.0}, {dimension: 2, npus: "9,25,63", bandwidth: 0.1, latency: 0.25}"""
# Dimensions, and their links.
SHAPES = {
    "ring": (
        """{shape: FullyConnected, size: 4, bandwidth: 150 GB/s, latency: 500 ns}, {shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us},
             {shape: Switch, size: 4, bandwidth: 400 Gb/s, latency: 1 us, in-switch-operations: 8}""",
        f"""{{dimension: 0, npus: "0,1", failed: true}}, {{dimension: 1, npus: "16,28", failed: true}}, {SLOW}""",
    ),
    "mesh": (
        """{shape: Mesh, size: 4, bandwidth: 150 GB/s, latency: 500 ns, links: 2}, {shape: Mesh, size: 4, bandwidth: 100 GB/s, latency: 1 us},
             {shape: Switch, size: 4, bandwidth: 400 Gb/s, latency: 1 us, oversubscription: 2.5}""",
        SLOW,
    ),
    "tree": (
        """{shape: FatTree, ports: 4, size: 8, bandwidth: 150 GB/s, latency: 500 ns, oversubscription: 2},
             {shape: Dragonfly, npus-per-router: 1, size: 4, bandwidth: 100 GB/s, latency: 1 us}, {shape: FatTree, ports: 2, size: 2, bandwidth: 400 Gb/s, latency: 1 us}""",
        SLOW,
    ),
}
CUT = ["--set=system.network.switching=cut-through", "--set=system.network.packet-size=16 KiB"]


def send(id, source, to, size):
    return Node(id, chakra.SEND, comm_src=source, comm_dst=to, comm_tag=0, comm_size=size)


def receive(id, source, to, size):
    return Node(id, chakra.RECV, comm_src=source, comm_dst=to, comm_tag=0, comm_size=size)


def collective(kind, size, **attributes):
    return [Node(1, chakra.COLL, comm_type=kind, comm_size=size, **attributes)]


IDLE = [Node(1, chakra.COMP, duration=1)]


class Congestion(harness.Folder):
    def config(self, dimensions, more="", workload="traces: w"):
        path = self.folder / "config.yaml"
        path.write_text(
            f"system:\n  network:\n    switching: store-and-forward\n    dimensions: [{dimensions}]\n{more}workload: {{{workload}}}\n"
        )
        return path

    def traced(self, dimensions, nodes, groups=None, more=""):
        """Writes the traces of NPUs with these nodes, a list for each, in place of older traces, and returns the configuration."""
        for old in self.folder.glob("w.*.et"):
            old.unlink()
        for npu, of_npu in enumerate(nodes):
            chakra.write(self.folder / f"w.{npu}.et", of_npu)
        workload = "traces: w"
        if groups:
            (self.folder / "groups.json").write_text(json.dumps(groups))
            workload += ", groups: groups.json"
        return [self.config(dimensions, more, workload)]

    def results(self, arguments, num_npus):
        """Runs on 1 and 2 ranks and scattered over 3. Returns the finish times in ns and the rows of the links by their ends, {(from,
        to): row}."""
        import h5py

        path = self.check_one_answer(arguments + AWARE, num_npus, ranks=(2,))
        with h5py.File(path) as file:
            columns = {name: data[:] for name, data in file["network/links"].items()}
        rows = [{name: int(data[i]) for name, data in columns.items()} for i in range(len(columns["link"]))]
        return [time / NS for time in harness.finish_times(path)], {(row["from"], row["to"]): row for row in rows}

    def test_incast_queues_at_the_link_down(self):
        """NPUs 1 to 3 send 1 us each to NPU 0, over a switch. They reach it together, 1,100 ns after their start, and come down to NPU
        0 one after the other."""
        nodes = [[receive(i, i, 0, 10_000) for i in (1, 2, 3)]] + [[send(1, i, 0, 10_000)] for i in (1, 2, 3)]
        times, links = self.results(self.traced(f"{{shape: Switch, size: 4, {LINK}}}", nodes), 4)
        self.assertEqual(times, [4200, 2200, 3200, 4200])
        down = links[-1, 0]
        self.assertEqual((down["messages"], down["bytes"], down["peak_queue"]), (3, 30_000, 2))
        self.assertEqual((down["busy_time"], down["queueing_time"]), (3000 * NS, (1000 + 2000) * NS))
        self.assertEqual(set(links), {(1, -1), (2, -1), (3, -1), (-1, 0)})

    def test_all_to_all_queues_at_the_link_up(self):
        """Four NPUs send 1,000 B to each other directly. Message k of an NPU leaves it at 10 + 100 k, is at the switch 200 ns later,
        finds the way down free because the others that come at that time go elsewhere, and arrives 200 ns after that: the last of
        three at 610, and 10 more."""
        nodes = [collective(chakra.ALL_TO_ALL, 4000)] * 4
        arguments = self.traced(f"{{shape: Switch, size: 4, {LINK}}}", nodes)
        times, links = self.results(arguments, 4)
        self.assertEqual(times, [620] * 4)
        self.assertEqual([links[npu, -1]["queueing_time"] for npu in range(4)], [(100 + 200) * NS] * 4)
        self.assertEqual([links[-1, npu]["queueing_time"] for npu in range(4)], [0] * 4)
        self.assertEqual(harness.finish_times(self.run_once(arguments)), [520 * NS] * 4)  # three share the link

    def test_two_tenants_share_links(self):
        """On a row of a 4 x 4 torus NPUs 0 and 2 gather 1 us from each other, and NPUs 1 and 3 gather 1.5 us.

        Both go upwards, so that each link carries the first hop of one and the second of the other. From 10 on the links from 1 and 3 are
        taken for 1,500 ns; the others' messages come there at 1,110, wait until 1,510 and arrive at 2,610. Those from 1 and 3 come to the
        links from 0 and 2 at 1,610, find them free, and arrive at 3,210. 10 ns more each."""
        group = lambda name, size: collective(chakra.ALL_GATHER, size, pg_name=name)  # noqa: E731
        nodes = [group("a", 10_000), group("b", 15_000), group("a", 10_000), group("b", 15_000)] + [IDLE] * 12
        torus = f"{{shape: Ring, size: 4, {LINK}}}, {{shape: Ring, size: 4, {LINK}}}"
        times, links = self.results(self.traced(torus, nodes, {"a": [0, 2], "b": [1, 3]}), 16)
        self.assertEqual(times[:4], [2620, 3220, 2620, 3220])
        self.assertEqual(
            {ends: row["queueing_time"] // NS for ends, row in links.items()},
            {(0, 1): 0, (1, 2): 400, (2, 3): 0, (3, 0): 400},
        )

    def test_a_ring_placed_badly_queues_behind_itself(self):
        """A ring 0, 2, 1, 6 on a 4 x 4 torus gathers 1 us from each: NPU 0's way to 2, and 1's way to 6, share the link from 1 to 2.

        Arrivals, at NPU 2, 1, 6, 0:
        step 1, all leave at 10: 2210 (by 1), 1110, 2210 (by 2), 3310 (by 7 and 4);
        step 2: NPU 1 sends at 1120, when the link to 2 has been taken at 1110 for 1000 ns: from 2110 on, at 2 at 3210, at 6 at 4310;
        NPU 2 sends at 2220, at 1 at 3320; NPU 6 at 2220, at 0 at 5520; NPU 0 at 3320, at 1 at 4420, at 2 at 5520;
        step 3: NPU 1 sends at 3330, at 6 at 5530; NPU 6 at 4320, at 0 at 7620; NPU 0 at 5530, at 2 at 7730; NPU 2 at 5530, at 1 at 6630.
        """
        nodes = [
            collective(chakra.ALL_GATHER, 10_000, pg_name="ring") if npu in (0, 1, 2, 6) else IDLE for npu in range(16)
        ]
        torus = f"{{shape: Ring, size: 4, {LINK}}}, {{shape: Ring, size: 4, {LINK}}}"
        times, links = self.results(self.traced(torus, nodes, {"ring": [0, 2, 1, 6]}), 16)
        self.assertEqual([times[npu] for npu in (0, 2, 1, 6)], [7630, 7740, 6640, 5540])
        self.assertEqual({ends for ends, row in links.items() if row["queueing_time"] > 0}, {(1, 2)})
        self.assertEqual((links[1, 2]["queueing_time"], links[1, 2]["messages"]), (990 * NS, 6))

    def test_a_ring_on_a_mesh_goes_all_the_way_back(self):
        """NPUs 0 to 3 of a row gather 1 us from each: what 3 sends goes back by 2 and 1 in 3,300 ns, over links that nobody else uses.

        step 1, all leave at 10: at 1, 2 and 3 at 1110, at 0 at 3310;
        step 2: 1, 2 and 3 send at 1120, 0 at 3320: at 2 and 3 at 2220, at 1 and 0 at 4420;
        step 3: 2 and 3 send at 2230, 0 and 1 at 4430: at 3 at 3330, at 0, 1 and 2 at 5530.
        On the congestion-unaware network, which stores nothing on the way, the way back takes 1300: the longest three edges in a row are that
        one and two others, 3500."""
        arguments = self.traced(
            f"{{shape: Mesh, size: 4, {LINK}}}",
            [collective(chakra.ALL_GATHER, 10_000)] * 4,
            more="  collectives: {directions: one}\n",
        )
        times, links = self.results(arguments, 4)
        self.assertEqual(times, [5540, 5540, 5540, 3340])
        self.assertEqual(
            {ends: row["messages"] for ends, row in links.items()},
            {(0, 1): 3, (1, 2): 3, (2, 3): 3, (3, 2): 3, (2, 1): 3, (1, 0): 3},
        )
        self.assertEqual(
            harness.finish_times(self.run_once(arguments)), [time * NS for time in (3540, 3540, 3540, 3340)]
        )

    def test_an_all_reduce_in_the_switch_waits_for_the_last_member(self):
        """An all-reduce of 1 us in the switch, to which NPU 3 comes a us late.

        Its data are at the switch at 1010 + 1100, the sums with the others at 3210. NPU 0 has to take a message of NPU 4 first, which is at the
        switch at 2100, so that its sums wait for 990. With cut-through first bytes go on at once: sums go down from 1110 on until 2110, to
        NPU 0 from 2100 on. 10 ns more each."""
        late = Node(1, chakra.COMP, duration=1)
        sums = {"comm_type": chakra.ALL_REDUCE, "comm_size": 10_000, "pg_name": "four"}
        nodes = [[Node(1, chakra.COLL, **sums)] for _ in range(3)] + [
            [late, Node(2, chakra.COLL, data_deps=[1], **sums)]
        ]
        nodes[0].append(receive(2, 4, 0, 10_000))
        nodes.append([late, Node(2, chakra.SEND, data_deps=[1], comm_src=4, comm_dst=0, comm_tag=0, comm_size=10_000)])
        more = "  collectives: {all-reduce: [inSwitch], chunks: 1}\n  communication: {streams: 2}\n"
        arguments = self.traced(
            f"{{shape: Switch, size: 5, {LINK}, in-switch-operations: 4}}", nodes, {"four": [0, 1, 2, 3]}, more=more
        )
        times, links = self.results(arguments, 5)
        self.assertEqual(times, [4210, 3220, 3220, 3220, 3200])
        self.assertEqual(links[-1, 0]["queueing_time"], 990 * NS)
        self.assertEqual(
            {ends: row["bytes"] for ends, row in links.items()},
            {(npu, -1): 10_000 for npu in range(5)} | {(-1, npu): 10_000 for npu in range(1, 4)} | {(-1, 0): 20_000},
        )
        times, _ = self.results(arguments + ["--set=system.network.switching=cut-through"], 5)
        self.assertEqual(times, [3210, 2220, 2220, 2220, 2200])

    def test_a_binomial_broadcast_waits_for_nobody(self):
        """A broadcast of 1 us in a switch of 4, to which NPU 3 comes late.

        NPU 0 sends to 2 at 10, which has it at 2210; then, 10 ns after that, both send on, to 1 and 3, which have it at 4420. A sender completes
        10 ns after the receiver has the data, a receiver as well."""
        late = Node(1, chakra.COMP, duration=1)
        wide = {"comm_type": chakra.BROADCAST, "comm_size": 10_000}
        nodes = [[Node(1, chakra.COLL, **wide)] for _ in range(3)] + [
            [late, Node(2, chakra.COLL, data_deps=[1], **wide)]
        ]
        more = "  collectives: {broadcast: [binomialTree], chunks: 1}\n"
        times, links = self.results(self.traced(f"{{shape: Switch, size: 4, {LINK}}}", nodes, more=more), 4)
        self.assertEqual(times, [4430] * 4)
        self.assertEqual(
            {ends: row["messages"] for ends, row in links.items()},
            {(0, -1): 2, (2, -1): 1, (-1, 2): 1, (-1, 1): 1, (-1, 3): 1},
        )

    def test_slow_and_failed_links(self):
        """A message of 1 us from NPU 0 to 1 on a ring of 4 takes 1,100 ns; at half the bandwidth of NPU 1, 2,100; with the link failed
        it goes the other way round, in 3 hops and 3,300."""
        nodes = [[send(1, 0, 1, 10_000)], [receive(1, 0, 1, 10_000)], IDLE, IDLE]
        for link, time in (("npus: 1, bandwidth: 0.5", 2100), ('npus: "0,1", failed: true', 3300)):
            arguments = self.traced(f"{{shape: Ring, size: 4, {LINK}}}", nodes)
            with open(arguments[0], "a") as file:
                file.write(f"perturbation: {{links: [{{dimension: 0, {link}}}]}}\n")
            self.assertEqual(self.results(arguments, 4)[0][:2], [time, time])

    def test_both_networks_agree_where_nothing_is_in_the_way(self):
        """Collectives whose members start together and have links of their own take what they take on the congestion-unaware network."""
        for kind in (chakra.ALL_REDUCE, chakra.ALL_GATHER, chakra.REDUCE_SCATTER):
            nodes = [
                [
                    Node(1, chakra.COMP, duration=1),
                    Node(2, chakra.COLL, data_deps=[1], comm_type=kind, comm_size=1 << 20),
                ]
                for npu in range(12)
            ]
            arguments = self.traced(
                f"{{shape: Ring, size: 4, {LINK}}}, {{shape: FullyConnected, size: 3, {LINK}}}",
                nodes,
                more="  collectives: {chunks: 3}\n",
            )
            alone = self.run_once(arguments, "unaware.h5")
            aware = self.run_once(arguments + AWARE, "aware.h5")
            self.assertEqual(harness.finish_times(alone), harness.finish_times(aware))

    def test_two_links_side_by_side_halve_the_time(self):
        """1,000 B over two links of 10 B/ns side by side take 50 ns on both networks."""
        nodes = [[send(1, 0, 2, 1_000)], IDLE, [receive(1, 0, 2, 1_000)], IDLE]
        arguments = self.traced(f"{{shape: Ring, size: 4, {LINK}, links: 2}}", nodes)
        times, links = self.results(arguments, 4)
        self.assertEqual(times[2], 300)
        self.assertEqual(links[0, 1]["busy_time"], 50 * NS)
        unaware = self.run_once(arguments)
        self.assertEqual(harness.finish_times(unaware)[2], 250 * NS)
        import h5py

        with h5py.File(unaware) as file:  # two of 16 links were busy for 50 of the 1000 ns that the others take
            self.assertAlmostEqual(file["network/utilisation"][0], 2 * 50 / (16 * 1000))

    def test_an_oversubscribed_switch_passes_half(self):
        """Each of 4 NPUs sends 1 us to the next one through a switch that passes 20 B/ns, half of what its links have together.

        Whole: all are in the switch at 1100; message i is through it at 1600 + 500 i, 50 ns later at the link down, which it leaves 1050 ns
        later. In packets of 100 ns each NPU has one in the switch every 100 ns from 200 on, and each takes 50: the 40 of them follow each
        other; the last of NPU i begins at 200 + 50 (36 + i), and is 50 + 100 + 50 later at its destination.
        In the congestion-unaware network everyone has half of its bandwidth: 2000 and two hops."""
        nodes = [[send(1, i, (i + 1) % 4, 10_000), receive(2, (i - 1) % 4, i, 10_000)] for i in range(4)]
        arguments = self.traced(f"{{shape: Switch, size: 4, {LINK}, oversubscription: 2}}", nodes)
        times, links = self.results(arguments, 4)
        self.assertEqual(times, [4200, 3200, 3700, 4200])
        core = links[-1, -2]
        self.assertEqual(
            (core["messages"], core["busy_time"], core["queueing_time"]), (4, 2000 * NS, (500 + 1000 + 1500) * NS)
        )
        self.assertEqual(set(links), {(npu, -1) for npu in range(4)} | {(-1, -2)} | {(-2, npu) for npu in range(4)})
        packets = ["--set=system.network.switching=cut-through", "--set=system.network.packet-size=1000 B"]
        times, links = self.results(arguments + packets, 4)
        self.assertEqual(times, [2350, 2250, 2300, 2350])
        self.assertEqual(links[-1, -2]["busy_time"], 2000 * NS)
        self.assertEqual(harness.finish_times(self.run_once(arguments)), [2200 * NS] * 4)

    def times_of(self, dimension, ways, *more):
        """Runs messages (from, to, bytes) on one dimension, which is given with its size. Returns the finish times in ns and the rows
        of the links by the names of their ends."""
        import h5py

        nodes = [[] for _ in range(dimension[1])]
        for k, (source, to, size) in enumerate(ways):
            nodes[source].append(send(2 * k + 1, source, to, size))
            nodes[to].append(receive(2 * k + 2, source, to, size))
        arguments = self.traced(dimension[0], [of_npu or IDLE for of_npu in nodes]) + list(more)
        times, links = self.results(arguments, dimension[1])
        with h5py.File(self.folder / "alone.h5") as file:
            names = [name.decode() for name in file["network/switches/name"][:]]
        name = lambda end: f"NPU {end}" if end >= 0 else names[-1 - end]  # noqa: E731
        return times, {f"{name(a)} to {name(b)}": row for (a, b), row in links.items()}

    def test_a_lone_message_through_an_oversubscribed_switch(self):
        """1 us over a switch of 4, whose two hops are 200 ns.

        The way through the switch takes packets when they are there whole; the way down begins with their first byte, and ends with their
        last if the way through is slower than a link (oversubscribed by 8: 2 us)."""
        for factor, stored, whole, packets in ((2, 2700, 2200, 1300), (8, 4200, 3200, 2300)):
            switch = f"{{shape: Switch, size: 4, {LINK}, oversubscription: {factor}}}", 4
            cut = ["--set=system.network.switching=cut-through"]
            for more, expected in (
                ([], stored),
                (cut, whole),
                (cut + ["--set=system.network.packet-size=1000 B"], packets),
            ):
                times, links = self.times_of(switch, [(0, 3, 10_000)], *more)
                self.assertEqual(
                    (times[3], links["switch input 0 to switch output 0"]["busy_time"]), (expected, factor * 250 * NS)
                )

    def test_routes_of_a_fat_tree(self):
        """Four pods of two edge switches with two NPUs. 10,000 B take 1,100 ns over a link: 2 links at one switch, 4 in one pod, 6
        between pods. Messages to NPUs that are both first at their switches share a link up."""
        tree = f"{{shape: FatTree, ports: 4, size: 16, {LINK}}}", 16
        times, links = self.times_of(tree, [(0, 1, 10_000), (4, 6, 10_000), (8, 15, 10_000)])
        self.assertEqual((times[1], times[6], times[15], len(links)), (2 * 1100, 4 * 1100, 6 * 1100, 12))
        # NPUs 4 and 6 are both the first ones at their switches: what 0 and 1 send there takes one link up, the second of them 1000 later.
        times, links = self.times_of(tree, [(0, 4, 10_000), (1, 6, 10_000)])
        self.assertEqual((times[4], times[6]), (6600, 7600))
        self.assertEqual({name for name, row in links.items() if row["queueing_time"]}, {"edge 0 to aggregation 0"})
        # NPU 7 is the second one: its messages take the other.
        times, links = self.times_of(tree, [(0, 4, 10_000), (1, 7, 10_000)])
        self.assertEqual((times[4], times[7]), (6600, 6600))
        self.assertIn("aggregation 1 to core 3", links)

    def test_an_oversubscribed_fat_tree(self):
        """All NPUs send 1 us to the next pod, in packets of 100 ns: six hops and 1,000 ns.

        Oversubscribed by 2, the two NPUs of a switch have one link up, whose 20 packets begin from 100 on: the last of the first NPU's at 1900,
        of the second's at 2000; five hops and 100 later they are there."""
        ways = [(i, (i + 4) % 16, 10_000) for i in range(16)]
        packets = ["--set=system.network.switching=cut-through", "--set=system.network.packet-size=1000 B"]
        for factor, expected in ((1, [1600, 1600]), (2, [2500, 2600])):
            times, _ = self.times_of(
                (f"{{shape: FatTree, ports: 4, size: 16, {LINK}, oversubscription: {factor}}}", 16), ways, *packets
            )
            self.assertEqual(times, [expected[-1]] * 16 if factor == 1 else expected * 8)

    def test_routes_of_a_dragonfly(self):
        """Three groups of two routers with an NPU each; router 0 leads to the next group, router 1 to the one after it. 10,000 B take
        1,100 ns over a link, and messages queue at the link between groups."""
        fly = f"{{shape: Dragonfly, npus-per-router: 1, size: 6, {LINK}}}", 6
        for source, to, hops in ((0, 1, 3), (2, 5, 3), (0, 4, 4), (0, 5, 5)):
            times, links = self.times_of(fly, [(source, to, 10_000)])
            self.assertEqual((times[to], len(links)), (hops * 1100, hops))
        # What 0 sends holds the link to the next group from 2100 to 4100; what 1 sends comes there at 2200, and has three hops after it.
        times, links = self.times_of(fly, [(0, 3, 20_000), (1, 2, 10_000)])
        self.assertEqual((times[3], times[2]), (6300, 4100 + 3 * 1100))
        self.assertEqual(
            {name: row["queueing_time"] for name, row in links.items() if row["queueing_time"]},
            {"router 0 to router 3": 1900 * NS},
        )
        two = f"{{shape: Dragonfly, npus-per-router: 2, size: 16, {LINK}}}", 16
        self.assertEqual(self.times_of(two, [(0, 1, 10_000)])[0][1], 2200)

    def test_packets_of_two_messages_take_turns(self):
        """NPU 1 sends 1 us and NPU 2 200 ns to NPU 0 over a switch with cut-through; first bytes are there 100 ns later.

        Whole: 1 comes first, from 100 to 1100, then 2 until 1300; the last byte takes 100 more. In packets of 100 ns the two take turns: 2 is
        through at 500, and 1, which has waited for two packets, at 1300."""
        nodes = [[receive(1, 1, 0, 10_000), receive(2, 2, 0, 2_000)], [send(1, 1, 0, 10_000)], [send(1, 2, 0, 2_000)]]
        arguments = self.traced(f"{{shape: Switch, size: 3, {LINK}}}", nodes) + [
            "--set=system.network.switching=cut-through"
        ]
        times, links = self.results(arguments, 3)
        self.assertEqual(times, [1400, 1200, 1400])
        self.assertEqual(links[-1, 0]["queueing_time"], 1000 * NS)
        times, links = self.results(arguments + ["--set=system.network.packet-size=1000 B"], 3)
        self.assertEqual(times, [1400, 1400, 600])
        self.assertEqual((links[-1, 0]["messages"], links[-1, 0]["bytes"], links[1, -1]["messages"]), (12, 12_000, 10))

    def test_cut_through_agrees_with_the_other_network_where_nothing_is_in_the_way(self):
        """A message over several hops and dimensions, of a size that packets and bandwidths do not divide, and halving-doubling on a
        switch take with cut-through what they take on the congestion-unaware network, to the tick, and more without."""
        size = 1_234_567
        torus = "{shape: Ring, size: 8, bandwidth: 33 GB/s, latency: 107 ns}, {shape: Switch, size: 2, bandwidth: 7 GB/s, latency: 333 ns}"
        nodes = [IDLE] * 16
        nodes[0], nodes[12] = [send(1, 0, 12, size)], [receive(1, 0, 12, size)]
        ways = self.traced(torus, nodes)
        switch = f"{{shape: Switch, size: 8, {LINK}}}"
        for arguments in (lambda: ways, lambda: self.traced(switch, [collective(chakra.ALL_REDUCE, 1 << 20)] * 8)):
            arguments = arguments()
            unaware = harness.finish_times(self.run_once(arguments))
            for packet in ("0 B", "4 KiB", "999 B"):
                aware = self.run_once(
                    arguments
                    + AWARE
                    + ["--set=system.network.switching=cut-through", f"--set=system.network.packet-size={packet}"]
                )
                self.assertEqual(harness.finish_times(aware), unaware, packet)
            stored = self.run_once(arguments + AWARE)
            self.assertGreater(max(harness.finish_times(stored)), max(unaware))

    def test_cut_through_goes_no_faster_than_the_slowest_link(self):
        """A message of 1 us from 0 to 2 on a ring, one of whose links has half the bandwidth: with cut-through it takes 2,000 ns and
        two hops, whichever link is slow."""
        nodes = [[send(1, 0, 2, 10_000)], IDLE, [receive(1, 0, 2, 10_000)], IDLE, IDLE]
        for npu, slow in ((0, (0, 1)), (2, (1, 2))):
            arguments = self.traced(f"{{shape: Ring, size: 5, {LINK}}}", nodes) + [
                "--set=system.network.switching=cut-through"
            ]
            with open(arguments[0], "a") as file:
                file.write(f"perturbation: {{links: [{{dimension: 0, npus: {npu}, bandwidth: 0.5}}]}}\n")
            times, links = self.results(arguments, 5)
            self.assertEqual(times[2], 2200)
            self.assertEqual(links[slow]["busy_time"], 2000 * NS)

    def on_graph(self, graph, sizes, nodes):
        """Returns the arguments of a run of these nodes on Switches of these sizes that lie on a graph."""
        config = self.folder / "graph.yaml"
        dimensions = [{"shape": "Switch", "size": size} for size in sizes]
        config.write_text(
            json.dumps(
                {"system": {"network": {"switching": "store-and-forward", "graph": graph, "dimensions": dimensions}}}
            )
        )
        harness.write_workload(self.folder, nodes)
        return [config, f"--set=workload.traces={self.folder / 'workload'}"]

    def test_messages_share_a_link_of_a_graph(self):
        """NPUs 0 and 1 of one switch send 1 us each to NPUs 2 and 3 of another one. One link joins the switches: it passes the message
        of NPU 0 from 1,100 to 2,100 ns and that of NPU 1 after it. With cut-through the first byte is at that link at 100 ns.
        """
        graph = {
            "hosts": 4,
            "switches": 2,
            "links": [[a, b, "10 GB/s", "100 ns"] for a, b in ((0, 4), (1, 4), (2, 5), (3, 5), (4, 5))],
        }
        nodes = [[send(1, i, i + 2, 10_000)] for i in (0, 1)] + [[receive(1, i, i + 2, 10_000)] for i in (0, 1)]
        arguments = self.on_graph(graph, [4], nodes)
        times, links = self.results(arguments, 4)
        self.assertEqual(times, [3300, 4300] * 2)
        self.assertEqual(set(links), {(0, -1), (1, -1), (-1, -2), (-2, 2), (-2, 3)})
        between = links[-1, -2]
        self.assertEqual((between["messages"], between["bytes"], between["peak_queue"]), (2, 20_000, 1))
        self.assertEqual((between["busy_time"], between["queueing_time"]), (2000 * NS, 1000 * NS))
        times, links = self.results([*arguments, CUT[0]], 4)
        self.assertEqual(times, [1300, 2300] * 2)

    def test_a_spine_of_a_graph_fails(self):
        """NPUs 0 and 1 send 1 us each over two leaves and two spines: both take the spine that is left. A slower link in front of the
        others decides with cut-through."""
        nodes = [[send(1, i, i + 2, 10_000)] for i in (0, 1)] + [[receive(1, i, i + 2, 10_000)] for i in (0, 1)]
        graph = {
            "hosts": 4,
            "switches": 4,
            "links": [[h, 4 + h // 2, "10 GB/s", "100 ns"] for h in range(4)]
            + [[leaf, spine, "10 GB/s", "100 ns"] for leaf in (4, 5) for spine in (6, 7)],
        }
        for failed, left in ((6, -4), (7, -3)):
            times, links = self.results(self.on_graph({**graph, "failures": [[4, failed, "0 s"]]}, [4], nodes), 4)
            self.assertEqual(times, [4400, 5400] * 2)
            self.assertEqual({ends for ends in links if ends[0] < 0 and ends[1] < 0}, {(-1, left), (left, -2)})
        slow = {**graph, "links": [[0, 4, "5 GB/s", "100 ns"], *graph["links"][1:]]}
        times, links = self.results([*self.on_graph(slow, [4], nodes[:1] + [IDLE] + nodes[2:3] + [IDLE]), CUT[0]], 4)
        self.assertEqual(times[2], 2400)
        self.assertEqual({row["busy_time"] for row in links.values()}, {2000 * NS})

    def test_steps_on_a_graph_are_the_same_on_any_number_of_ranks(self):
        """A short training step of 16 NPUs on two leaves and two spines."""
        step = [
            harness.SOURCE / "configs/graph-16.yaml",
            "--set=workload.model.layers=2",
            "--set=workload.parallel.micro-batches=2",
        ]
        for switching, ranks in (([], (2,)), (CUT, harness.cases((), (4,), (2, 4, 8)))):
            self.check_one_answer([*step, *AWARE, *switching, "--noise=0.05", "--timeline"], 16, ranks=ranks)

    def test_results_are_the_same_on_any_number_of_ranks(self):
        """Generated steps of 64 NPUs with skew, slow and failed links, on three kinds of networks, with every mode of switching, give
        the same results on 3 ranks, and each kind of network on 2, 4 and 8."""
        path = self.folder / "skewed.yaml"
        trees = (
            ", all-reduce: [binomialTree, binomialTree, inSwitch], reduce-scatter: [ring, direct, inSwitch],"
            " all-gather: [ring, direct, inSwitch], broadcast: [binomialTree, ring, inSwitch]"
        )
        widest = (("ring", trees, CUT), ("mesh", "", []), ("tree", "", CUT))  # the others run on 3 ranks
        for shapes, rendezvous, lists, more in (
            ("ring", "false", "", []),
            ("ring", "true", "", []),
            ("ring", "false", "", CUT),
            ("ring", "true", trees, []),
            ("ring", "false", trees, CUT),
            ("mesh", "false", "", []),
            ("mesh", "true", "", CUT),
            ("tree", "true", "", CUT),
        ):
            with self.subTest(shapes=shapes, rendezvous=rendezvous, lists=lists, more=more):
                text = SKEWED.replace("RENDEZVOUS", rendezvous).replace("LISTS", lists)
                for word, value in zip(("DIMENSIONS", "LINKS"), SHAPES[shapes]):
                    text = text.replace(word, value)
                path.write_text(text)
                self.check_one_answer(
                    [path, "--timeline", *more],
                    64,
                    ranks=harness.cases((2,), (2, 4, 8) if (shapes, lists, more) in widest else (), (2, 4, 8)),
                )

    def test_random_workloads_are_the_same_on_any_number_of_ranks(self):
        """Random workloads of up to 32 NPUs give the same results on 1 and 2 ranks and scattered over 3."""
        for seed in SEEDS:
            workload = random_workload.Workload(seed, max_npus=32, operations=(20, 80))
            arguments = (
                [harness.write_workload(self.folder, workload.traces)]
                + workload.system.write(self.folder)
                + ["--timeline"]
            )
            with self.subTest(f"seed {seed}"):
                self.check_one_answer(arguments + AWARE, workload.num_npus, ranks=(2,))
            self.clear_folder()

    def test_no_collective_beats_its_links(self):
        """Under physical rules an algorithm takes at least what the busiest link needs for its bytes in the network that simulates every link,
        and messages of a step that meet on links take what they take there: an all-reduce of 1 GB by direct on a Ring of 16 with 50 GB/s 90 ms,
        where a link carries 36 of the messages of each step. Under ASTRA-sim's rules each has all of the bandwidth: 2.5 ms.
        """
        import h5py

        layers = "model: {kind: layers, layers: [{name: g, parameters: 500000000}]}"
        ring = self.config(
            "{shape: Ring, size: 16, bandwidth: 50 GB/s, latency: 500 ns}",
            "  collectives: {all-reduce: [direct]}\n",
            f"{layers}, parallel: {{dp: 16}}",
        )
        self.assertEqual(self.step_in_us(ring), 90_008)
        self.assertEqual(self.step_in_us(ring, "--set=system.rules=astra-sim"), 2_508)
        study = self.folder / "study.yaml"
        study.write_text(
            "study:\n  base: config.yaml\n  parameters:\n    alg: {key: system.collectives.all-reduce, values: [[ring], [direct], [halvingDoubling], "
            "[doubleBinaryTree]]}\n  objectives: [{minimise: step_time}]\n"
        )
        outcome = harness.orrery("explore", study, f"--output={self.folder / 's.h5'}", "--force")
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(self.folder / "s.h5") as results:
            self.assertEqual(int(results["best"][0]), 0, "the ring")
        for dimensions, algorithms in (
            (
                (("Ring", 8),),
                ("direct", "direct2", "direct5", "halvingDoubling", "ring", "doubleBinaryTree", "binomialTree"),
            ),
            ((("Mesh", 8),), ("direct", "direct3", "halvingDoubling", "ring", "doubleBinaryTree", "binomialTree")),
            ((("Ring", 5), ("Mesh", 3)), ("oneDirect", "oneDirect2", "oneRing")),
            ((("FullyConnected", 5), ("FullyConnected", 8)), ("oneDirect", "oneRing")),
            ((("Ring", 4), ("Switch", 4)), ("oneDirect", "oneHalvingDoubling", "oneRing")),
        ):
            listed = ", ".join(
                f"{{shape: {shape}, size: {size}, bandwidth: 50 GB/s, latency: 500 ns}}" for shape, size in dimensions
            )
            count = math.prod(size for _, size in dimensions)
            config = self.config(listed, workload=f"{layers}, parallel: {{dp: {count}}}")
            for algorithm in algorithms:
                chosen = f"--set=system.collectives.all-reduce=[{algorithm}]"
                with self.subTest(dimensions=dimensions, algorithm=algorithm), h5py.File(
                    self.run_once([config, chosen, *AWARE])
                ) as results:
                    busiest = max(results["network/links/busy_time"])
                    alone = max(harness.finish_times(self.run_once([config, chosen], "alone.h5")))
                    self.assertGreaterEqual(alone, int(busiest))

    def step_in_us(self, config, *more):
        return max(harness.finish_times(self.run_once([config, *more]))) // 10**6

    def test_no_endpoint_delay(self):
        """Without an endpoint delay what a member has taken in goes on at once. Direct all-to-alls of late members end, with a window or
        without, on any number of ranks."""
        layers = "model: {kind: layers, layers: [{name: g, parameters: 100000, flops: 1000000000, activations: 1000}]}"
        compute = "  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}\n"
        for algorithm in ("direct", "direct1", "oneDirect"):
            more = compute + f"  collectives: {{all-reduce: [{algorithm}], endpoint-delay: 0 ns}}\n"
            config = self.config(
                "{shape: Ring, size: 5, bandwidth: 100 GB/s, latency: 500 ns}", more, f"{layers}, parallel: {{dp: 5}}"
            )
            with self.subTest(algorithm):
                self.check_one_answer(
                    [
                        config,
                        *AWARE,
                        "--set=system.rules=astra-sim",
                        "--set=perturbation.slow-npus=[{npus: 2, compute: 0.8}]",
                    ],
                    5,
                    ranks=(2,),
                )

    def test_pieces_in_astra_sims_order(self):
        """Messages that are cut into packets keep their histories under ASTRA-sim's rules. On two NPUs an all-reduce of 200 kB moves two
        halves of 100 kB in each direction: 10 + 2 (4,000 + 3,000 + 10) ns at 25 GB/s and 3 us. Steps on random systems have one answer.
        """
        rules = ["--set=system.rules=astra-sim", "--set=system.network.switching=cut-through"]
        layers = "model: {kind: layers, layers: [{name: g, parameters: 100000}]}"
        two = self.config(
            "{shape: FullyConnected, size: 2, bandwidth: 25 GB/s, latency: 3 us}",
            workload=f"{layers}, parallel: {{dp: 2}}",
        )
        for packet in ("4 KiB", "64 KiB", "0 B"):
            path = self.check_one_answer(
                [two, *AWARE, *rules, f"--set=system.network.packet-size={packet}"], 2, ranks=(2,)
            )
            self.assertEqual(max(harness.finish_times(path)), 14_030 * NS)
        step = "model: {layers: 2, hidden: 256, heads: 8, sequence: 128}, parallel: {tp: 4, sp: true, dp: 2, pp: 2, micro-batches: 2}"
        compute = "  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}\n"
        for dimensions in (
            f"{{shape: Ring, size: 4, {LINK}}}, {{shape: Switch, size: 4, {LINK}}}",
            f"{{shape: FatTree, ports: 4, size: 16, {LINK}}}",
        ):
            config = self.config(dimensions, compute, step)
            self.check_one_answer([config, *AWARE, *rules, "--set=system.network.packet-size=4 KiB"], 16, ranks=(2,))

    def test_what_it_cannot_do_is_refused(self):
        """Folding, more links than can be simulated, a size that a fat tree cannot have, an unknown model, and packets without cut-
        through are refused with one message. `show collective` of a fat tree is refused in the other network alone."""

        def refused(arguments, *texts):
            outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'no.h5'}")
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            for text in texts:
                self.assertIn(text, outcome.err)

        arguments = self.traced(f"{{shape: Ring, size: 4, {LINK}}}", [IDLE] * 4)
        refused(arguments + AWARE + ["--fold"], "--fold", "congestion-aware", "congestion-unaware")
        huge = self.config(f"{{shape: FullyConnected, size: 16384, {LINK}}}", workload="traces: {all: w.0.et}")
        refused([huge] + AWARE, "dimension 0 (FullyConnected)", "links", "134217728")
        tree = self.config(
            "{shape: FatTree, ports: 4, size: 16, bandwidth: 10 GB/s, latency: 100 ns}",
            workload="traces: {all: w.0.et}",
        )
        outcome = harness.orrery(
            "show",
            "collective",
            tree,
            "--kind=all-reduce",
            "--bytes=1MB",
            "--set=system.network.model=congestion-aware",
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        outcome = harness.orrery(
            "show", "collective", tree, "--kind=all-reduce", "--bytes=1MB", "--network=congestion-unaware"
        )
        self.assertEqual((outcome.code, len(harness.errors(outcome))), (3, 1), outcome.err)
        self.assertIn("dimension 0 (FatTree)", outcome.err)
        outcome = harness.orrery("show", "topology", tree, *AWARE, "--json")
        self.assertEqual((outcome.code, json.loads(outcome.out)["dimensions"][0]["farthest_hops"]), (0, 6), outcome.err)
        refused([huge, "--set=system.network.model=ns3"], "system.network.model", "congestion-aware")
        refused(arguments + ["--set=system.network.packet-size=4 KiB"], "system.network.packet-size", "cut-through")
        refused(
            arguments + ["--set=system.network.packet-size=4096"],
            "system.network.packet-size",
            "Write the unit: '4096 B'",
        )


if __name__ == "__main__":
    harness.main()
