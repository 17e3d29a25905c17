#!/usr/bin/python3
"""`orrery flows`: times by hand, the same answer on any number of ranks, what happens without buffers, and refusals.

In times by hand a host has a link of 100 Gb/s and 1 us to a switch, a packet has 1,000 B and a header of 36 B, and an acknowledgement has 48 B.
So a packet takes 82,880 ps on a link, and an acknowledgement 3,840 ps."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

PACKET, ACKNOWLEDGEMENT, DELAY = 82_880, 3_840, 1_000_000
INCAST = harness.SOURCE / "configs/flows/incast8.yaml"
LEAF_SPINE = harness.SOURCE / "configs/flows/leaf-spine.yaml"


def star(hosts, flows, **packets):
    """Returns hosts on one switch, and flows."""
    graph = {"hosts": hosts, "switches": 1, "links": [[host, hosts, "100 Gb/s", "1 us"] for host in range(hosts)]}
    return {"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}}


class Flows(harness.Folder):
    def test_one_flow(self):
        """10 packets: the last one leaves after 10, passes the switch, and its acknowledgement comes back. A flow that follows begins then."""
        flows = [
            {"from": 0, "to": 1, "size": "10 kB"},
            {"from": 1, "to": 0, "size": "0 B", "start": "1 us", "after": [0]},
        ]
        first, second = self.simulate_flows(star(2, flows))["flows"]
        there = 11 * PACKET + 2 * DELAY
        self.assertEqual(
            first,
            {
                "start_ps": 0,
                "received_ps": there,
                "acknowledged_ps": there + 2 * (ACKNOWLEDGEMENT + DELAY),
                "alone_ps": there,
            },
        )
        header = 36 * 80
        self.assertEqual((second["start_ps"], second["received_ps"]), (there + DELAY, there + 3 * DELAY + 2 * header))

    def test_acknowledged(self):
        """With completion: acknowledged a flow follows when the sender before it has the last acknowledgement."""
        flows = [{"from": 0, "to": 1, "size": "10 kB"}, {"from": 1, "to": 0, "size": "1 kB", "after": [0]}]
        for ranks in (0, 2):
            first, second = self.simulate_flows(star(2, flows, completion="acknowledged"), ranks=ranks)["flows"]
            self.assertEqual(second["start_ps"], first["acknowledged_ps"])

    def test_window(self):
        """A window of one packet: each packet waits for the acknowledgement of the one before it."""
        flows = [{"from": 0, "to": 1, "size": "5 kB", "window": "1 kB"}]
        round_trip = 2 * PACKET + 2 * ACKNOWLEDGEMENT + 4 * DELAY
        self.assertEqual(self.simulate_flows(star(2, flows))["flows"][0]["acknowledged_ps"], 5 * round_trip)

    def test_alone_without_switches(self):
        """Whatever controls its rate, a flow that is alone takes about its size over the bandwidth, also where no switch tells of its ports or
        marks packets: between two hosts, and through a third one. 10 MB take 0.2 ms at 400 Gb/s."""
        marks = [["400 Gb/s", "400 kB", "1600 kB", 0.2]]
        for links, forwarding in (
            ([[0, 1, "400 Gb/s", "1 us"]], False),
            ([[0, 2, "400 Gb/s", "1 us"], [2, 1, "400 Gb/s", "1 us"]], True),
        ):
            graph = {
                "hosts": 1 + len(links) + (0 if forwarding else 0),
                "switches": 0,
                "links": links,
                "forwarding": forwarding,
            }
            for packets in (
                {"preset": "hpcc-2019"},
                {"control": "hpcc"},
                {"control": "none"},
                {"control": "dcqcn", "marks": marks},
                {"control": "dctcp", "marks": marks},
                {"control": "timely"},
                {"control": "swift"},
                {"preset": "simai-ns3"},
                {"preset": "uec"},
            ):
                with self.subTest(packets=packets, forwarding=forwarding):
                    scenario = {
                        "system": {"network": {"graph": graph, "packets": packets}},
                        "workload": {"flows": [{"from": 0, "to": 1, "size": "10 MB"}]},
                    }
                    flow = self.simulate_flows(scenario)["flows"][0]
                    self.assertLess(flow["received_ps"], 1.25 * flow["alone_ps"])

    def test_incast_is_lossless(self):
        """Eight hosts fill the buffer of a switch, which pauses them; no packet is dropped, and the link to the receiver is never idle."""
        results = self.simulate_flows(INCAST)
        self.assertGreater(sum(port["pauses"] for port in results["ports"]), 0)
        self.assertEqual(sum(port["drops"] for port in results["ports"]), 0)
        last = max(flow["received_ps"] for flow in results["flows"])
        self.assertEqual(last, 8 * 1000 * PACKET + PACKET + 2 * DELAY)

    def test_loss(self):
        """Without pauses a small buffer drops packets; the senders go back, and all bytes come unless the last packet of a flow is lost."""
        results = self.simulate_flows(
            INCAST,
            "--set=system.network.packets.pauses=false",
            "--set=system.network.packets.buffer=400 kB",
            "--set=system.network.packets.window=64 kB",
            code=4,
        )
        self.assertGreater(sum(port["drops"] for port in results["ports"]), 0)
        self.assertTrue(any(flow["received_ps"] > 0 for flow in results["flows"]))

    def test_one_answer(self):
        """Two tiers of switches, random marks and DCQCN, pauses, a link that fails: the same on 1 to 4 ranks."""
        options = [
            "--set=system.network.packets.marks=[[100 Gb/s, 20 kB, 80 kB, 0.5]]",
            "--set=system.network.graph.failures=[[8, 10, 60 us]]",
        ]
        for case in (
            options[:1],
            options + ["--set=system.network.packets.window=none"],
            ["--set=system.network.packets.preset=hpcc-2019"],
            ["--set=system.network.packets.completion=acknowledged"],
        ):
            first = self.simulate_flows(LEAF_SPINE, *case)
            first.pop("events")  # how many are skipped depends on the ranks
            for ranks in (1, 2, 3, 4):
                other = self.simulate_flows(LEAF_SPINE, *case, ranks=ranks)
                other.pop("events")
                self.assertEqual(other, first, f"{case} on {ranks} ranks")

    def test_refusals(self):
        """Two or three hosts on a switch, and one fault at a time: the message names the key or the flow."""
        flow = {"from": 0, "to": 1, "size": "1 kB"}
        self.refuse_flows(star(2, [flow | {"to": 0}]), "found the host that sends", "workload.flows.0.to")
        self.refuse_flows(star(2, [flow | {"to": 2}]), "workload.flows.0.to")
        self.refuse_flows(
            star(3, [flow, flow | {"after": [0]}]),
            "flows.yaml",
            "workload.flows.1",
            "from node 0 waits for flow 0, which ends at node 1",
        )
        self.refuse_flows(star(2, [flow | {"sise": 1}]), "sise")
        placed = star(2, [flow])
        placed["system"]["network"]["graph"]["placement"] = [1, 0]
        self.refuse_flows(placed, "found a placement of NPUs, but flows are between hosts")
        self.refuse_flows(star(2, [flow], control="bbr"), "bbr", "dcqcn")
        self.refuse_flows(star(2, [flow], control="dcqcn", marks=[]), "packets.control", "found dcqcn without marks")
        marks = [["100 Gb/s", "400 kB", "1600 kB", 0.2]]
        for key in ("alpha-interval", "decrease-interval", "increase-interval"):
            self.refuse_flows(
                star(2, [flow], control="dcqcn", marks=marks, **{key: "0 s"}), f"packets.{key}", "more than 0 s"
            )
        self.refuse_flows(
            star(2, [flow], control="hpcc", window="none"), "packets.window", "found none with control: hpcc"
        )
        no_way = star(2, [flow])
        no_way["system"]["network"]["graph"]["failures"] = [[0, 2, "0 s"]]
        self.refuse_flows(no_way, "flows.yaml", "workload.flows.0", "no working links lead from node 0 to node 1")
        no_way["system"]["network"]["graph"]["failures"] = [[0, 1, "0 s"]]
        self.refuse_flows(no_way, "nodes 0 and 1, which no link joins")
        source = self.folder / "flows.yaml"
        source.write_text(json.dumps(star(2, [flow])))
        two_ranks = harness.orrery("flows", source, "--scheduling-order", ranks=2)
        self.assertEqual(two_ranks.code, 2, two_ranks.err)


if __name__ == "__main__":
    harness.main()
