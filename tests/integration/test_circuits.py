#!/usr/bin/python3
"""Optical switches that join NPUs anew (docs/network.md, Circuits). Times are closed forms: a ring all-reduce among n NPUs takes
2 (n - 1) (latency + bytes / n / bandwidth) if its ring follows circuits."""
import json
import pathlib
import sys

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

NETWORKS = ("congestion-unaware", "congestion-aware")
SWITCHING = 10_000_000  # ps


def configuration(folder, npus, configurations, groups, network, **changes):
    circuits = {"switching-time": "10 us", "configurations": configurations, "groups": groups}
    dimension = {"shape": "Ring", "size": npus, "bandwidth": "10 GB/s", "latency": "500 ns"}
    system = {
        "network": {"model": network, "dimensions": [dimension], "circuits": circuits},
        "collectives": {"all-reduce": ["oneRing"], "chunks": 1, "endpoint-delay": "0 ns"},
    }
    return {
        "system": system,
        "workload": {"traces": str(folder / "phases"), "groups": str(folder / "groups.json")},
    } | changes


class Circuits(harness.Folder):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config.yaml"

    def write(self, npus, phases, groups):
        """Writes traces of all-reduces one after the other, each of the group that it names."""
        nodes = [
            chakra.Node(
                i,
                chakra.COLL,
                f"phase_{i}",
                [i - 1] if i else [],
                comm_type=chakra.ALL_REDUCE,
                comm_size=8_000_000,
                pg_name=group,
            )
            for i, group in enumerate(phases)
        ]
        for npu in range(npus):
            mine = [node for node in nodes if npu in groups[node.attributes["pg_name"]]]
            chakra.write(self.folder / f"phases.{npu}.et", mine)
        (self.folder / "groups.json").write_text(json.dumps(groups))

    def finish(self, npus, configurations, of_groups, network, *more):
        self.config.write_text(json.dumps(configuration(self.folder, npus, configurations, of_groups, network)))
        with h5py.File(self.run_once([self.config, *more])) as file:
            return [int(time) for time in file["npus/finish_time"][()]]

    def test_two_rings(self):
        """Two phases on two rings take both times and one change. A third one back on the first ring takes another change; a phase on the
        ring that is there takes none. Both networks agree."""
        groups = {
            "a": list(range(8)),
            "b": [3 * i % 8 for i in range(8)],
            "c": list(range(8)),
        }  # in the order of their rings
        rings = [{"name": "next", "stride": 1}, {"name": "third", "stride": 3}]
        of_groups = {"a": "next", "b": "third", "c": "next"}
        phase = 14 * (500_000 + 100_000_000)
        for phases, changes in ((["a", "b"], 1), (["a", "b", "c"], 2), (["a", "c"], 0), (["b", "b"], 1), (["a"], 0)):
            for network in NETWORKS:
                with self.subTest(phases=phases, network=network):
                    self.write(8, phases, groups)
                    found = self.finish(8, rings, of_groups, network)
                    self.assertEqual(found, [len(phases) * phase + changes * SWITCHING] * 8)

    def test_circuits_that_stay(self):
        """Only NPUs whose ports lead elsewhere are dark. In the second configuration NPUs 4 to 7 stand in another order, so that NPU 1 keeps its
        circuits: a pair of NPUs 1 and 2 changes without a wait, and one of NPUs 5 and 6 waits."""
        orders = [{"name": "first", "stride": 1}, {"name": "second", "order": [0, 1, 2, 3, 5, 4, 6, 7]}]
        groups = {"a": list(range(8)), "b": [1, 2], "c": [5, 6]}
        for phases, changes in ((["a", "b"], 0), (["a", "c"], 1)):
            for network in NETWORKS:
                self.write(8, phases, groups)
                with_time = self.finish(8, orders, {"b": "second", "c": "second"}, network)
                without = self.finish(
                    8,
                    orders,
                    {"b": "second", "c": "second"},
                    network,
                    "--set=system.network.circuits.switching-time=0ns",
                )
                member = groups[phases[1]][0]
                self.assertEqual(with_time[member] - without[member], changes * SWITCHING, (phases, network))

    def test_messages_take_their_circuits(self):
        """A message between NPUs that the stride makes neighbours crosses one link; on the ring without circuits it crosses three."""
        self.write(8, ["pair"], {"pair": [0, 3]})
        for network in NETWORKS:
            near = (
                self.finish(
                    8, [{"name": "next", "stride": 1}, {"name": "third", "stride": 3}], {"pair": "third"}, network
                )[0]
                - SWITCHING
            )
            far = self.finish(8, [{"name": "next", "stride": 1}], {}, network)[0]
            self.assertEqual(near, 2 * (500_000 + 400_000_000))
            self.assertGreater(far, near)

    def test_sends_take_the_first_configuration(self):
        """Where the first configuration makes NPUs 0 and 3 neighbours, a message from NPU 0 by way of 3 and 6 to 1 takes as long as one from NPU 0
        by way of 1 and 2 to 3 without circuits, with rendezvous too, and on any number of ranks."""

        def finish(hops, network, rendezvous, *circuits):
            nodes = [[] for _ in range(8)]
            for k, (a, b) in enumerate(zip(hops, hops[1:])):
                message = {"comm_src": a, "comm_dst": b, "comm_tag": k, "comm_size": 50}
                nodes[a].append(chakra.Node(2, chakra.SEND, data_deps=[1] if k else [], **message))
                nodes[b].append(chakra.Node(1, chakra.RECV, **message))
            harness.write_workload(self.folder, nodes)
            made = configuration(self.folder, 8, [{"name": "third", "stride": 3}], {}, network)
            made["workload"] = {"traces": str(self.folder / "workload")}
            if not circuits:
                del made["system"]["network"]["circuits"]
            self.config.write_text(json.dumps(made))
            arguments = [self.config, f"--set=system.communication.rendezvous={rendezvous}"]
            with h5py.File(self.check_one_answer(arguments, 8) if circuits else self.run_once(arguments)) as file:
                return int(max(file["npus/finish_time"][()]))

        for network in NETWORKS:
            for rendezvous in ("false", "true"):
                with self.subTest(network=network, rendezvous=rendezvous):
                    self.assertEqual(
                        finish([0, 3, 6, 1], network, rendezvous, "circuits"), finish([0, 1, 2, 3], network, rendezvous)
                    )

    def test_bytes_count_where_they_pass(self):
        """In a grid of 2 x 4 NPU 1 stands at position 2, which differs from that of NPU 0 in dimension 1: bytes of a message count there."""
        message = {"comm_src": 0, "comm_dst": 1, "comm_tag": 0, "comm_size": 50_000}
        harness.write_workload(
            self.folder, [[chakra.Node(1, chakra.SEND, **message)], [chakra.Node(1, chakra.RECV, **message)]] + [[]] * 6
        )
        for network in NETWORKS:
            made = configuration(self.folder, 2, [{"name": "grid", "order": [0, 2, 1, 3, 4, 5, 6, 7]}], {}, network)
            made["workload"] = {"traces": str(self.folder / "workload")}
            dimensions = made["system"]["network"]["dimensions"]
            dimensions.append({**dimensions[0], "size": 4})
            made["system"]["collectives"] = {}
            self.config.write_text(json.dumps(made))
            with h5py.File(self.run_once([self.config])) as file:
                self.assertEqual(file["network/bytes"][()].tolist(), [0, 50_000])

    def test_a_switch_of_another_group(self):
        """Two switches of two NPUs each, and two that join them: ports that change from one of the first two switches to the other are dark. If
        NPUs change places at their switch, they are not."""
        switch = {"shape": "Switch", "size": 2, "bandwidth": "10 GB/s", "latency": "500 ns"}
        for order, changes in (([2, 3, 0, 1], 1), ([1, 0, 2, 3], 0)):
            for network in NETWORKS:
                self.write(4, ["a", "b"], {"a": [0, 1], "b": [0, 1]})
                made = configuration(
                    self.folder,
                    4,
                    [{"name": "first", "stride": 1}, {"name": "second", "order": order}],
                    {"b": "second"},
                    network,
                )
                made["system"]["network"]["dimensions"] = (
                    [switch, {**switch, "port": "second"}] if changes else [{**switch, "size": 4}]
                )
                made["system"]["collectives"] = {"endpoint-delay": "0 ns"}
                self.config.write_text(json.dumps(made))
                times = []
                for time in ("10us", "0ns"):
                    with h5py.File(
                        self.run_once([self.config, f"--set=system.network.circuits.switching-time={time}"])
                    ) as file:
                        times.append(int(file["npus/finish_time"][0]))
                self.assertEqual(times[0] - times[1], changes * SWITCHING, (order, network))

    def test_channels_of_a_library(self):
        """Eight NPUs that circuits join to one switch reduce in it, on 16 channels of 132 multiprocessors: their share with `compute-share: library` is
        16 / 132, although their numbers are those of two nodes."""
        groups = {"a": list(range(0, 16, 2))}
        (self.folder / "groups.json").write_text(json.dumps(groups))
        for npu in range(16):
            nodes = (
                [chakra.Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=64_000_000, pg_name="a")]
                if npu in groups["a"]
                else []
            )
            chakra.write(
                self.folder / f"phases.{npu}.et", [*nodes, chakra.Node(2, chakra.COMP, num_ops=10**12, tensor_size=1)]
            )
        for network in NETWORKS:
            found = []
            for share in ("library", 16 / 132):
                made = configuration(
                    self.folder, 8, [{"name": "apart", "order": [*range(0, 16, 2), *range(1, 16, 2)]}], {}, network
                )
                made["system"]["network"]["dimensions"] = [
                    {"shape": "Switch", "size": 8, "bandwidth": "450 GB/s", "latency": "468 ns"},
                    {"shape": "Switch", "size": 2, "bandwidth": "50 GB/s", "latency": "1 us"},
                ]
                made["system"]["collectives"] = {"library": {"name": "nccl-h100"}, "compute-share": share}
                made["system"]["compute"] = {
                    "processor": "h100",
                    "peak": "989 TFLOPS",
                    "roofline": True,
                    "local-memory": {"bandwidth": "3350 GB/s"},
                }
                self.config.write_text(json.dumps(made))
                with h5py.File(self.run_once([self.config])) as file:
                    found.append(file["npus/finish_time"][()].tolist())
            self.assertEqual(found[0], found[1])
            self.assertGreater(found[0][0], found[0][1])  # NPU 1 computes beside no collective

    def listed(self, phases, groups, of_groups, **circuits):
        """Returns the finish times of four fully connected NPUs with these circuits, with links."""
        self.write(4, phases, groups)
        made = configuration(self.folder, 4, [], of_groups, "congestion-aware")
        made["system"]["network"]["dimensions"][0]["shape"] = "FullyConnected"
        made["system"]["network"]["circuits"] = {"switching-time": "10 us", "groups": of_groups} | circuits
        self.config.write_text(json.dumps(made))
        with h5py.File(self.run_once([self.config])) as file:
            return [int(time) for time in file["npus/finish_time"][()]]

    def test_rates_of_configurations(self):
        """A ring of twice the bandwidth and of a longer latency takes its own time. One whose rate alone changes is switched too."""
        groups = {"a": list(range(8)), "b": [3 * i % 8 for i in range(8)], "c": list(range(8))}
        fast = {"bandwidth": "20 GB/s", "latency": "1 us"}
        rings = [
            {"name": "next", "stride": 1},
            {"name": "third", "stride": 3} | fast,
            {"name": "fast", "stride": 1} | fast,
        ]
        slow_phase, fast_phase = 14 * (500_000 + 100_000_000), 14 * (1_000_000 + 50_000_000)
        self.write(8, ["a", "b", "c"], groups)
        found = self.finish(8, rings, {"a": "next", "b": "third", "c": "fast"}, "congestion-aware")
        self.assertEqual(found, [slow_phase + 2 * (SWITCHING + fast_phase)] * 8)
        self.write(8, ["a", "c"], groups)
        found = self.finish(8, rings, {"a": "next", "c": "fast"}, "congestion-aware")
        self.assertEqual(found, [slow_phase + SWITCHING + fast_phase] * 8)
        self.check_one_answer([self.config], 8)

    def test_listed_circuits(self):
        """Circuits between ports, and a schedule with the same ones, carry a ring and pairs at their own rates. A message between NPUs without a
        circuit takes two."""
        ring = {"name": "ring", "circuits": [[1, 2], [3, 4], [5, 6], [7, 0]]}
        pairs = {"name": "pairs", "circuits": [[0, 4, "100 GB/s", "300 ns"], [3, 7, "100 GB/s", "300 ns"]]}
        groups = {"a": [0, 1, 2, 3], "b": [0, 2], "c": [1, 3], "far": [0, 2]}
        of_groups = {"a": "ring", "b": "pairs", "c": "pairs"}
        given = {"ports-per-npu": 2, "configurations": [ring, pairs]}
        ring_phase, pair_phase = 6 * (500_000 + 200_000_000), 2 * (300_000 + 40_000_000)
        found = self.listed(["a", "b", "c"], groups, of_groups, **given)
        self.assertEqual(found, [ring_phase + SWITCHING + pair_phase] * 4)
        found = self.listed(["far"], {"far": [0, 2]}, {"far": "ring"}, **given)
        self.assertEqual(found[0], 2 * (2 * 500_000 + 400_000_000))  # cut through
        rows = {"ring": lambda i, j: 10 * ((i - j) % 4 in (1, 3)), "pairs": lambda i, j: 100 * ((i - j) % 4 == 2)}
        schedule = self.folder / "schedule.txt"
        schedule.write_text(
            "".join(
                f"BW {name}\n" + "".join(" ".join(str(rate(i, j)) for j in range(4)) + "\n" for i in range(4)) + "END\n"
                for name, rate in rows.items()
            )
        )
        slower = 2 * (500_000 + 40_000_000)  # the latency of the dimension
        found = self.listed(["a", "b", "c"], groups, of_groups, file=str(schedule))
        self.assertEqual(found, [ring_phase + SWITCHING + slower] * 4)
        self.check_one_answer([self.config], 4)

    def test_drain(self):
        """An NPU whose message is still on a circuit that changes switches it when the message has left. A circuit that stays is not drained."""
        rings = [{"name": "next", "stride": 1}, {"name": "third", "stride": 3}]
        phase = 14 * (500_000 + 100_000_000)
        message = {"comm_src": 0, "comm_dst": 1, "comm_tag": 0, "comm_size": 80_000_000}
        for npu in range(8):
            nodes = [
                chakra.Node(1, chakra.COMP, duration=1),
                chakra.Node(
                    2, chakra.COLL, data_deps=[1], comm_type=chakra.ALL_REDUCE, comm_size=8_000_000, pg_name="b"
                ),
            ]
            if npu < 2:
                nodes.append(chakra.Node(0, chakra.SEND if npu == 0 else chakra.RECV, **message))
            chakra.write(self.folder / f"phases.{npu}.et", nodes)
        for ring, order in (("third", [3 * i % 8 for i in range(8)]), ("next", list(range(8)))):
            (self.folder / "groups.json").write_text(json.dumps({"b": order}))
            slow = self.finish(8, rings, {"b": ring}, "congestion-aware")
            fast = self.finish(
                8, rings, {"b": ring}, "congestion-aware", "--set=system.network.circuits.switching-time=0ns"
            )
            drained = 8_000_000_000 + (SWITCHING if ring == "third" else 0)
            self.assertEqual(slow[0] - fast[0], drained - 8_000_000_000)
            self.assertLessEqual(slow[0], drained + phase)
            if ring == "third":
                self.assertGreaterEqual(slow[0], drained + phase - 2 * 100_500_000)
        self.check_one_answer([self.config], 8)

    def test_refusals_of_listed_circuits(self):
        """Ports with two circuits, NPUs that no circuits join, schedules of wrong form, and rates without links are refused."""
        groups = {"a": [0, 1, 2, 3]}
        self.write(4, ["a"], groups)
        schedule = self.folder / "schedule.txt"
        ring = {"name": "ring", "circuits": [[1, 2], [3, 4], [5, 6], [7, 0]]}
        for text, circuits, message in (
            ("", {"configurations": [{"name": "x", "circuits": [[0, 3], [3, 1]]}]}, "port 3 has two circuits"),
            (
                "",
                {"configurations": [{"name": "pairs", "circuits": [[0, 2], [1, 3]]}]},
                "NPU 0 cannot reach NPU 1 in configuration pairs, but group a needs it",
            ),
            ("BW x\n0 1 1 1\nEND\n", {"file": str(schedule)}, "schedule.txt:3: END after 1 rows"),
            ("BW x\n0 1 1\nEND\n", {"file": str(schedule)}, "schedule.txt:2: number 3 of the row is missing"),
            ("0 1 1 1\n", {"file": str(schedule)}, "schedule.txt:1"),
            ("", {"ports-per-npu": 2, "configurations": [ring | {"order": [0, 1]}]}, "it places 2 NPUs"),
        ):
            with self.subTest(message):
                schedule.write_text(text)
                made = configuration(self.folder, 4, [], {}, "congestion-aware")
                made["system"]["network"]["dimensions"][0]["shape"] = "FullyConnected"
                made["system"]["network"]["circuits"] = circuits
                self.config.write_text(json.dumps(made))
                done = harness.orrery("run", self.config, f"--output={self.folder / 'x.h5'}", "--force")
                self.assertEqual(done.code, 3, done.err)
                self.assertIn(message, done.err)
        made = configuration(self.folder, 4, [], {}, "congestion-unaware")
        made["system"]["network"]["dimensions"][0]["shape"] = "FullyConnected"
        made["system"]["network"]["circuits"] = {"ports-per-npu": 2, "configurations": [ring]}
        self.config.write_text(json.dumps(made))
        done = harness.orrery("run", self.config, f"--output={self.folder / 'x.h5'}", "--force")
        self.assertEqual(done.code, 3, done.err)
        self.assertIn("rates of circuits without links", done.err)

    def test_one_configuration_is_the_network(self):
        """With one configuration whose order is that of the NPUs, a step is that without circuits. So it is on any number of ranks."""
        config = self.folder / "step.yaml"
        text = (harness.SOURCE / "examples/cluster/circuits.yaml").read_text()
        config.write_text(text)
        one = "--set=system.network.circuits={configurations: [{name: a, stride: 1}]}"
        none = json.dumps(
            {"network": {"dimensions": [{"shape": "Ring", "size": 16, "bandwidth": "50 GB/s", "latency": "500 ns"}]}}
        )
        without = self.folder / "without.yaml"
        without.write_text(f"system:\n  network: {json.loads(none)['network']}\n" + text[text.index("  compute:") :])
        for network in NETWORKS:
            alike = [
                h5py.File(self.run_once(arguments, name), "r")
                for arguments, name in (
                    ([config, one, f"--network={network}"], "one.h5"),
                    ([without, f"--network={network}"], "none.h5"),
                )
            ]
            self.assertEqual(alike[0]["npus/finish_time"][()].tolist(), alike[1]["npus/finish_time"][()].tolist())
            for file in alike:
                file.close()
        for network in NETWORKS:
            self.check_one_answer([config, f"--network={network}"], 16)

    def test_refusals(self):
        """Circuits that are no permutation of the NPUs, and what knows no circuits, are refused with exit code 3 and a message that says why."""
        self.write(8, ["a"], {"a": list(range(8))})
        for circuits, text in (
            ({"configurations": [{"name": "x", "stride": 2}]}, "a stride of 2 does not pass all 8 NPUs"),
            (
                {"configurations": [{"name": "x", "order": [0, 1, 2, 3, 4, 5, 6, 6]}]},
                "the ports of NPU 6 have two circuits",
            ),
            ({"configurations": [{"name": "x", "order": [0, 1]}]}, "it places 2 NPUs"),
            ({"configurations": [{"name": "x", "order": [0, 1, 2, 3, 4, 5, 6, 8]}]}, "found NPU 8"),
            ({"configurations": [{"name": "x"}]}, "neither or both of stride and order"),
            (
                {"configurations": [{"name": "x", "stride": 1}, {"name": "x", "stride": 3}]},
                "configuration 0 is called 'x' too",
            ),
            ({"configurations": [{"name": "x", "stride": 1}], "groups": {"a": "y"}}, "no configuration is called 'y'"),
            ({"configurations": [{"name": "x", "stride": 1, "speed": 3}]}, "speed"),
            ({"switching-time": "1 us"}, "configurations"),
        ):
            with self.subTest(text):
                changed = configuration(self.folder, 8, [], {}, NETWORKS[0])
                changed["system"]["network"]["circuits"] = circuits
                self.config.write_text(json.dumps(changed))
                done = harness.orrery("run", self.config, f"--output={self.folder / 'x.h5'}", "--force")
                self.assertEqual(done.code, 3, done.err)
                self.assertIn(text, done.err)
        self.config.write_text(json.dumps(configuration(self.folder, 8, [{"name": "x", "stride": 3}], {}, NETWORKS[0])))
        for more, text in (
            ("--network=packet", "the packet network"),
            ("--fold", "join NPUs that are not alike"),
            ("--set=system.rules=astra-sim", "ASTRA-sim's rules"),
        ):
            done = harness.orrery("run", self.config, more, f"--output={self.folder / 'x.h5'}", "--force")
            self.assertEqual(done.code, 3, done.err)
            self.assertIn(text, done.err)


if __name__ == "__main__":
    harness.main()
