#!/usr/bin/python3
"""The transport of Ultra Ethernet: times by hand, trimming and spraying, one answer on any number of ranks, and what is refused.

In times by hand a host has a link of 100 Gb/s and 1 us to a switch. A full packet has 4,150 B and takes 332,000 ps on a link, and an
acknowledgement has 64 B and takes 5,120 ps."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import chakra  # noqa: E402
import harness  # noqa: E402
import test_flows  # noqa: E402
import test_packet_network  # noqa: E402
from chakra import Node  # noqa: E402
from graphs import leaves  # noqa: E402

FULL, ACKNOWLEDGEMENT, DELAY = 332_000, 5_120, 1_000_000
UEC = "--set=system.network.packets.preset=uec"
SPRAYINGS = ("none", "oblivious", "bitmap", "reps", "mixed")


def incast(hosts, **packets):
    """Returns flows of 200 kB from all hosts but the last one to that one, over one switch."""
    flows = [{"from": host, "to": hosts - 1, "size": "200 kB"} for host in range(hosts - 1)]
    return test_flows.star(hosts, flows, preset="uec", **packets)


def crossing(**packets):
    """Returns two leaves of eight hosts and eight spines, and a flow of 400 kB from each host to one of the other leaf."""
    links = [[host, 16 + host // 8, "100 Gb/s", "1 us"] for host in range(16)]
    links += [[leaf, spine, "100 Gb/s", "1 us"] for leaf in (16, 17) for spine in range(18, 26)]
    flows = [{"from": host, "to": (host + 8) % 16, "size": "400 kB"} for host in range(16)]
    return {
        "system": {
            "network": {
                "graph": {"hosts": 16, "switches": 10, "links": links, "routes": "shortest"},
                "packets": {"preset": "uec", **packets},
            }
        },
        "workload": {"flows": flows},
    }


def total(results, name):
    return sum(port[name] for port in results["ports"])


class Uec(harness.Folder):
    def test_one_flow(self):
        """5 packets: the last one, of 1,000 B and a header, follows four full ones over the switch, and its acknowledgement comes back."""
        size = 4 * 4086 + 1000
        last = 1064 * 80
        (flow,) = self.simulate_flows(test_flows.star(2, [{"from": 0, "to": 1, "size": f"{size} B"}], preset="uec"))[
            "flows"
        ]
        there = 5 * FULL + last + 2 * DELAY
        self.assertEqual((flow["received_ps"], flow["acknowledged_ps"]), (there, there + 2 * (ACKNOWLEDGEMENT + DELAY)))

    def test_empty_flow(self):
        """A message without bytes is a header, which follows another flow once that is acknowledged."""
        flows = [{"from": 0, "to": 1, "size": "0 B"}, {"from": 1, "to": 0, "size": "0 B", "after": [0]}]
        first, second = self.simulate_flows(test_flows.star(2, flows, preset="uec", completion="acknowledged"))["flows"]
        trip = 4 * (ACKNOWLEDGEMENT + DELAY)
        self.assertEqual(
            (first["acknowledged_ps"], second["start_ps"], second["acknowledged_ps"]), (trip, trip, 2 * trip)
        )

    def test_trimming(self):
        """8 to 1: what does not fit is trimmed and sent again, nothing is lost, and the bottleneck is busy most of the time. Without trimming, a
        queue of 20 packets drops them, and the flows end nevertheless."""
        for more in ({}, {"control": "rccc"}):
            results = self.simulate_flows(incast(9, **more))
            self.assertGreater(total(results, "trims"), 0)
            self.assertEqual(total(results, "drops"), 0)
            longest = max(flow["received_ps"] for flow in results["flows"])
            self.assertLess(longest, 1.2 * 8 * 49 * FULL)
        results = self.simulate_flows(incast(9, trimming=False, queue="83 kB"))
        self.assertEqual(total(results, "trims"), 0)
        self.assertGreater(total(results, "drops"), 0)
        self.assertTrue(all(flow["acknowledged_ps"] > 0 for flow in results["flows"]))

    def test_spraying(self):
        """A permutation over eight spines: with one path for each flow paths collide, with all of them hardly."""
        ends = {
            spraying: max(flow["received_ps"] for flow in self.simulate_flows(crossing(spraying=spraying))["flows"])
            for spraying in SPRAYINGS
        }
        for spraying in SPRAYINGS[1:]:
            self.assertLess(1.3 * ends[spraying], ends["none"], spraying)

    def test_marks(self):
        """Two hosts send 10 packets each over one port. The bytes that decide about a mark include the packet itself: with a threshold of
        one packet all are marked but the first and the last one, and with two packets one less."""
        flows = [{"from": host, "to": 2, "size": f"{10 * 4086} B"} for host in range(2)]
        marks = [["100 Gb/s", "4150 B", "4150 B", 1]]
        results = self.simulate_flows(test_flows.star(3, flows, preset="uec", marks=marks))
        self.assertEqual(total(results, "marks"), 18)
        marks = [["100 Gb/s", "8300 B", "8300 B", 1]]
        results = self.simulate_flows(test_flows.star(3, flows, preset="uec", marks=marks))
        self.assertEqual(total(results, "marks"), 17)

    def test_seed(self):
        """Entropies, marks and trims are drawn by the seed."""
        one, same, other = (
            self.simulate_flows(crossing(spraying="oblivious", seed=seed))["flows"] for seed in (1, 1, 2)
        )
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)

    def test_flows_one_answer(self):
        """1 to 4 ranks give the same times and ports with each control and spraying, and where packets are dropped."""
        cases = [
            incast(9),
            incast(9, control="rccc"),
            incast(9, trimming=False, queue="83 kB"),
            crossing(completion="acknowledged"),
        ]
        cases += [crossing(spraying=spraying) for spraying in SPRAYINGS[:-1]]
        for case in cases:
            with self.subTest(case["system"]["network"]["packets"]):
                first = self.simulate_flows(case)
                for ranks in (2, 3, 4):
                    other = self.simulate_flows(case, ranks=ranks)
                    self.assertEqual((other["flows"], other["ports"]), (first["flows"], first["ports"]))

    def test_link_that_fails(self):
        """A leaf loses a spine: what is under way is lost, and sent again over the others after a time-out."""
        case = crossing()
        case["system"]["network"]["graph"]["failures"] = [[16, 18, "10 us"]]
        results = self.simulate_flows(case)
        self.assertTrue(all(flow["acknowledged_ps"] > 0 for flow in results["flows"]))
        self.assertGreater(total(results, "drops"), 0)

    def test_slow_port(self):
        """Hosts of 400 and 10 Gb/s: the queue of the slow port holds a packet at the least, and the flow ends."""
        graph = {
            "hosts": 3,
            "switches": 1,
            "links": [[0, 3, "400 Gb/s", "500 ns"], [1, 3, "400 Gb/s", "500 ns"], [2, 3, "10 Gb/s", "500 ns"]],
        }
        scenario = {
            "system": {"network": {"graph": graph, "packets": {"preset": "uec"}}},
            "workload": {"flows": [{"from": 0, "to": 2, "size": "100 kB"}]},
        }
        self.assertLess(self.simulate_flows(scenario)["flows"][0]["received_ps"], 200_000_000)

    def test_slow_direction(self):
        """The link of the receiver is slow towards it alone. Credit comes at this rate, so times and trims are those of a link that is slow in
        both directions, but for acknowledgements. Away from the receiver the slow direction carries control packets only.
        """
        found = []
        for way in ("25 Gb/s", ["100 Gb/s", "25 Gb/s"], ["25 Gb/s", "100 Gb/s"], "100 Gb/s"):
            graph = {"hosts": 2, "switches": 1, "links": [[0, 2, "100 Gb/s", "1 us"], [1, 2, way, "1 us"]]}
            results = self.simulate_flows(
                {
                    "system": {"network": {"graph": graph, "packets": {"preset": "uec", "control": "rccc"}}},
                    "workload": {"flows": [{"from": 0, "to": 1, "size": "4 MB"}]},
                }
            )
            found.append((results["flows"][0]["received_ps"], total(results, "trims")))
        (both, trims), (to_it, trims_to_it), (from_it, trims_from_it), (none, _) = found
        self.assertEqual((trims_to_it, trims_from_it), (trims, 0))
        self.assertLess(abs(to_it / both - 1), 1e-4)
        self.assertLess(abs(from_it / none - 1), 1e-2)

    def test_ports_of_unlike_rates(self):
        """A host has links of 8 and of 400 Gb/s. A flow over the fast one goes at nearly its rate. The window of the slow one holds one packet,
        so that it waits for the acknowledgement of each, 1 us, after the 4.15 us of a packet. A step over two dimensions of unlike rates, in
        which a round trip is short for the slow one, ends with one answer."""
        graph = {"hosts": 3, "links": [[0, 1, "8 Gb/s", "500 ns"], [0, 2, "400 Gb/s", "500 ns"]]}
        flows = [{"from": 0, "to": 1, "size": "400 kB"}, {"from": 0, "to": 2, "size": "20 MB"}]
        results = self.simulate_flows(
            {"system": {"network": {"graph": graph, "packets": {"preset": "uec"}}}, "workload": {"flows": flows}}
        )
        for flow, bits, rate, most in zip(results["flows"], (3.2e6, 160e6), (8e9, 400e9), (1.3, 1.05)):
            self.assertLess(flow["received_ps"], most * bits / rate * 1e12)
        config = self.folder / "step.yaml"
        config.write_text(
            "system:\n  network:\n    dimensions: [{shape: Ring, size: 3, bandwidth: 1 GB/s, latency: 500 ns}, "
            "{shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 500 ns}]\n"
            "workload:\n  model: {kind: layers, layers: [{name: g, parameters: 1000000}]}\n  parallel: {dp: 6}\n"
        )
        self.check_one_answer([str(config), "--network=packet", UEC], 6, ranks=(2, 3))

    def test_too_slow_a_way_back(self):
        """A link brings fewer acknowledgements back than it brings packets there. It is refused by its nodes and the least rate."""
        graph = {"hosts": 2, "links": [[0, 1, ["80 Gb/s", "8 Mb/s"], "1 us"]]}
        scenario = {
            "system": {"network": {"graph": graph, "packets": {"preset": "uec", "buffer": "2 MiB"}}},
            "workload": {"flows": [{"from": 0, "to": 1, "size": "1 MB"}]},
        }
        self.refuse_flows(scenario, "between the nodes 0 and 1", "expected at least 1233734939 b/s")

    def test_refusals(self):
        """Controls belong to a transport."""
        cases = [
            (incast(3, control="dcqcn"), "found dcqcn with transport uec", "nscc, rccc"),
            (
                test_flows.star(2, [{"from": 0, "to": 1, "size": "1 B"}], control="nscc"),
                "found nscc with transport roce",
                "dctcp",
            ),
            (incast(3, spraying="even"), "spraying", "oblivious"),
            (incast(3, queue="0 B"), "packets.queue"),
            (incast(3, queue="4 kB"), "found 4000 B", "at least 4150 B"),
            (incast(3, routing="adaptive"), "packets.routing", "found adaptive"),
            (incast(3, **{"flow-control": "credits"}), "packets.flow-control"),
            (incast(3, loss="selective"), "packets.loss", "no effect"),
            (
                test_flows.star(2, [{"from": 0, "to": 1, "size": "1 B"}], trimming=False),
                "packets.trimming",
                "transport: uec",
            ),
            (
                test_flows.star(2, [{"from": 0, "to": 1, "size": "1 B"}], credits="1 MB"),
                "packets.credits",
                "flow-control: credits",
            ),
        ]
        for case, *parts in cases:
            self.refuse_flows(case, *parts)

    def test_step_one_answer(self):
        """A training step on two leaves and two spines: the same results on 1, 2 and 4 ranks and scattered over 3."""
        (self.folder / "leaves.yaml").write_text(json.dumps(leaves([6, 4])))
        config = self.folder / "step.yaml"
        config.write_text(
            test_packet_network.STEP.replace(
                "{dimensions: [DIMENSIONS]}", "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
            ).replace("RENDEZVOUS", "false")
        )
        self.check_one_answer([str(config), "--network=packet", UEC], 8, ranks=(2, 4))

    def test_trims_in_results(self):
        """/network/packets has the trims of an incast, and messages have records."""
        nodes = [
            [Node(1, chakra.SEND, comm_src=npu, comm_dst=7, comm_tag=npu, comm_size=1_000_000)] for npu in range(7)
        ]
        nodes.append(
            [
                Node(1 + npu, chakra.RECV, comm_src=npu, comm_dst=7, comm_tag=npu, comm_size=1_000_000)
                for npu in range(7)
            ]
        )
        config = self.folder / "system.yaml"
        config.write_text(f"system:\n  network: {{dimensions: [{test_packet_network.SHAPES['switch']}]}}\n")
        harness.write_workload(self.folder, nodes)
        path = self.run_once(
            [
                str(config),
                "--network=packet",
                UEC,
                "--record-flows",
                "--queue-bins=100",
                f"--set=workload.traces={self.folder / 'workload'}",
            ]
        )
        with h5py.File(path) as results:
            self.assertGreater(results["/network/packets/trims"][:].sum(), 0)
            self.assertEqual(len(results["/network/flows/bytes"]), 7)


if __name__ == "__main__":
    harness.main()
