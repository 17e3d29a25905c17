#!/usr/bin/python3
"""Flow control by credits: times by hand, no drops, the same answer on any number of ranks, and what happens if packets wait in a circle.

As in test_flows.py a host has a link of 100 Gb/s and 1 us, a packet takes 82,880 ps on it, and an acknowledgement 3,840 ps."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import h5py  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402
from test_flows import DELAY, INCAST, LEAF_SPINE, PACKET, star  # noqa: E402
from test_packet_network import SHAPES, STEP  # noqa: E402

CREDITS = ["--set=system.network.packets.flow-control=credits"]
NONE = ["--set=system.network.packets.flow-control=none", "--set=system.network.packets.buffer=1 GB"]


def credits(size, channels=1):
    return [
        *CREDITS,
        f"--set=system.network.packets.credits={size}",
        f"--set=system.network.packets.virtual-channels={channels}",
    ]


def circle(hosts, distance):
    """Hosts in a ring, which pass packets on, and a flow from each to the one so far behind it."""
    graph = {
        "hosts": hosts,
        "forwarding": True,
        "links": [[host, (host + 1) % hosts, "100 Gb/s", "1 us"] for host in range(hosts)],
    }
    flows = [{"from": host, "to": (host + distance) % hosts, "size": "20 kB"} for host in range(hosts)]
    return {"system": {"network": {"graph": graph, "packets": {"window": "none"}}}, "workload": {"flows": flows}}


class Credits(harness.Folder):
    def test_unlimited(self):
        """With more credit than there are bytes all is as in a network that never stops a port and drops nothing."""
        for scenario in (INCAST, LEAF_SPINE):
            expected = self.simulate_flows(scenario, *NONE)
            for channels in (1, 2, 5):
                found = self.simulate_flows(scenario, *credits("1 TB", channels))
                self.assertEqual((found["flows"], found["ports"]), (expected["flows"], expected["ports"]))

    def test_older_key(self):
        """`pauses` goes on to work. Without pauses the incast loses packets, and some flows never end."""
        for new, old, code in (("pauses", "true", 0), ("none", "false", 4)):
            expected = self.simulate_flows(INCAST, f"--set=system.network.packets.flow-control={new}", code=code)
            self.assertEqual(
                self.simulate_flows(INCAST, f"--set=system.network.packets.pauses={old}", code=code), expected
            )

    def test_one_packet(self):
        """Credit for one packet: it is back two delays after the packet has left, because the switch passes the packet on at once."""
        flows = [{"from": 0, "to": 1, "size": "5 kB"}]
        results = self.simulate_flows(star(2, flows, window="none"), *credits("1036 B"))
        period = PACKET + 2 * DELAY
        self.assertEqual(results["flows"][0]["received_ps"], 4 * period + 2 * (PACKET + DELAY))
        self.assertEqual([port["credit_wait_ps"] for port in results["ports"]], [4 * 2 * DELAY, 0, 0, 0])

    def test_default_keeps_links_busy(self):
        """The credit that a link has by default never makes a flow wait that is alone, and an incast loses no packet and no time."""
        flows = [{"from": 0, "to": 1, "size": "1 MB"}]
        results = self.simulate_flows(star(2, flows, window="none"), *CREDITS)
        self.assertEqual(results["flows"][0]["received_ps"], 1001 * PACKET + 2 * DELAY)
        results = self.simulate_flows(INCAST, *CREDITS)
        self.assertEqual(sum(port["drops"] + port["pauses"] for port in results["ports"]), 0)
        self.assertGreater(sum(port["credit_wait_ps"] for port in results["ports"]), 0)
        self.assertEqual(max(flow["received_ps"] for flow in results["flows"]), 8 * 1000 * PACKET + PACKET + 2 * DELAY)

    def test_sent_again(self):
        """A time-out that is shorter than the round trip lets a host send both packets of a message again. They wait for credit as all others
        do: no link has sent more than its credit."""
        flows = [{"from": 0, "to": 1, "size": "2 kB"}]
        results = self.simulate_flows(
            star(2, flows, loss="selective", **{"retransmission-timeout": "3 us"}), *credits("1536 B")
        )
        self.assertGreater(results["ports"][0]["packets"], 2)
        self.assertGreater(results["flows"][0]["acknowledged_ps"], 0)

    def test_channels(self):
        """Two flows share a link to a switch, and one of them goes on to a host that others flood. On one channel the other waits behind it; on
        several, those that have another channel do not."""
        links = [
            [0, 4, "100 Gb/s", "1 us"],
            [4, 5, "100 Gb/s", "1 us"],
            [1, 5, "100 Gb/s", "1 us"],
            [2, 5, "100 Gb/s", "1 us"],
            [3, 5, "100 Gb/s", "1 us"],
        ]
        flood = [{"from": 0, "to": 3, "size": "1 MB"}] + [
            {"from": host, "to": 3, "size": "1 MB"} for host in (1, 2) for _ in range(3)
        ]
        victims = [
            {"from": 0, "to": 2, "size": "5 kB", "start": "20 us", "port": 10_000 + number} for number in range(8)
        ]
        scenario = {
            "system": {
                "network": {"graph": {"hosts": 4, "switches": 2, "links": links}, "packets": {"window": "none"}}
            },
            "workload": {"flows": flood + victims},
        }
        ends = {}
        for channels in (1, 8):
            results = self.simulate_flows(scenario, *credits("30 kB", channels), "--links")
            ends[channels] = sorted(flow["received_ps"] - flow["start_ps"] for flow in results["flows"][-8:])
        self.assertLess(2 * ends[8][4], ends[1][0])

    def test_circle(self):
        """Each host of a ring has sent a packet and waits for the credit that the next one holds: the run names them and ends with exit code 4."""
        source = self.folder / "flows.yaml"
        source.write_text(json.dumps(circle(6, 2)))
        for ranks in (0, 2, 3):
            outcome = harness.orrery("flows", source, *credits("1036 B"), ranks=ranks)
            self.assertEqual(outcome.code, 4, outcome.err)
            self.assertIn(
                "wait for credits of each other's links in a circle: node 0 -> node 1 -> node 2 -> node 3 -> node 4 -> node 5 -> node 0",
                outcome.err,
            )
        self.simulate_flows(circle(6, 1), *credits("1036 B"))

    def test_rings(self):
        """A Ring in which messages pass NPUs gets stuck on one channel, and not on two, on any number of ranks."""
        nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=80_000)] for _ in range(8)]
        harness.write_workload(self.folder, nodes)
        for name, algorithms, dimensions in (
            ("ring", "direct", SHAPES["ring"]),
            (
                "torus",
                "direct, direct",
                "{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}, "
                "{shape: Ring, size: 2, bandwidth: 50 GB/s, latency: 1 us}",
            ),
        ):
            config = self.folder / f"{name}.yaml"
            config.write_text(
                f"system:\n  network: {{dimensions: [{dimensions}]}}\n  collectives: {{all-to-all: [{algorithms}]}}\n"
                f"workload: {{traces: {self.folder / 'workload'}}}\n"
            )
            run = [config, "--network=packet", "--set=system.network.packets.window=none"]
            if name == "ring":
                outcome = harness.orrery(
                    "run", *run, *credits("1036 B"), f"--output={self.folder / 'stuck.h5'}", ranks=2
                )
                self.assertEqual(outcome.code, 4, outcome.err)
                self.assertRegex(outcome.err, r"in a circle: NPU \d -> NPU \d -> ")
            self.check_one_answer([*run, *credits("1036 B", 2)], 8, ranks=(2, 3, 4))
        with h5py.File(self.run_once([*run, *credits("1036 B", 2)])) as results:
            self.assertGreater(int(results["network/packets/credit_wait"][:].sum()), 0)

    def test_one_answer(self):
        """Two tiers of switches with random marks and a link that fails, and a training step on each shape: the same on any number of ranks."""
        marks = ["--set=system.network.packets.marks=[[100 Gb/s, 10 kB, 20 kB, 0.5]]"]
        failure = ["--set=system.network.graph.failures=[[8, 10, 60 us]]"]
        for case in (
            credits("30 kB") + marks,
            credits("10 kB", 3) + failure,
            CREDITS + ["--set=system.network.packets.preset=hpcc-2019"],
            credits("5 kB", 2) + ["--set=system.network.packets.completion=acknowledged"],
        ):
            first = self.simulate_flows(LEAF_SPINE, *case)
            for ranks in harness.cases((3,), (2, 3, 4), (2, 3, 4)):
                self.assertEqual(self.simulate_flows(LEAF_SPINE, *case, ranks=ranks), first, f"{case} on {ranks} ranks")
        for dimensions in SHAPES.values():
            config = self.folder / "step.yaml"
            config.write_text(STEP.replace("DIMENSIONS", dimensions).replace("RENDEZVOUS", "false"))
            self.check_one_answer(
                [config, "--network=packet", *credits("4 kB", 2)], 8, ranks=harness.cases((2,), (2, 3), (2, 3))
            )
            self.clear_folder()

    def test_refusals(self):
        """Credit below a packet, and two words for one thing."""
        source = self.folder / "flows.yaml"
        source.write_text(json.dumps(star(2, [{"from": 0, "to": 1, "size": "1 kB"}])))
        config = self.folder / "system.yaml"
        config.write_text(
            f"system:\n  network: {{model: packet, dimensions: [{SHAPES['switch']}]}}\nworkload: {{traces: {self.folder / 'workload'}}}\n"
        )
        harness.write_workload(
            self.folder, [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=8000)] for _ in range(8)]
        )
        for command in (["flows", source], ["run", config, f"--output={self.folder / 'refused.h5'}"]):
            for more, text in (
                (credits("1035 B"), "at least 1036 B, the largest packet"),
                (credits("1 MB", 17), "virtual-channels"),
                (
                    [*CREDITS, "--set=system.network.packets.pauses=true"],
                    "system.network.packets.flow-control is given too",
                ),
                (
                    [*NONE, "--set=system.network.packets.pauses=false"],
                    "system.network.packets.flow-control is given too",
                ),
                (["--set=system.network.packets.flow-control=tokens"], "tokens"),
            ):
                outcome = harness.orrery(*command, *more)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn(text, outcome.err)


if __name__ == "__main__":
    harness.main()
