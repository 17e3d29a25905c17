#!/usr/bin/python3
"""Routes by packet, selective retransmission and time-outs of the packet network: times by hand, collisions that end, losses that are made
good, the same answer on any number of ranks, and refusals.

In times by hand a link has 100 Gb/s and 1 us, a packet has 1,000 B and a header of 36 B, and an acknowledgement has 48 B. So a packet takes
82,880 ps on a link, and an acknowledgement 3,840 ps."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import graphs  # noqa: E402
import harness  # noqa: E402
import test_packet_network  # noqa: E402
from test_flows import star  # noqa: E402

PACKET, ACKNOWLEDGEMENT, DELAY = 82_880, 3_840, 1_000_000
LINK = ["100 Gb/s", "1 us"]
SPREAD = ("packet-hash", "round-robin", "adaptive")  # packets of a flow overtake each other
LOSSY = {"pauses": False, "buffer": "400 kB", "window": "64 kB"}


def two_links(flows, failures=(), **packets):
    """Returns two hosts, each with a switch of its own, two links between the switches by two more switches, and flows."""
    links = [[0, 2, *LINK], [1, 3, *LINK], [2, 4, *LINK], [2, 5, *LINK], [3, 4, *LINK], [3, 5, *LINK]]
    graph = {"hosts": 2, "switches": 4, "links": links, "failures": list(failures)}
    return {"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}}


def permutation(ports, size, **packets):
    """Returns a fat tree of three tiers of switches with so many ports, in which each host sends to another pod and no two to the same host."""
    half = ports // 2
    hosts, edges, cores = ports * half * half, ports * half, half * half
    edge, middle, core = hosts, hosts + edges, hosts + 2 * edges
    links = [[host, edge + host // half, *LINK] for host in range(hosts)]
    for pod in range(ports):
        links += [[edge + pod * half + e, middle + pod * half + m, *LINK] for e in range(half) for m in range(half)]
        links += [[middle + pod * half + m, core + m * half + c, *LINK] for m in range(half) for c in range(half)]
    graph = {"hosts": hosts, "switches": 2 * edges + cores, "links": links}
    flows = [{"from": host, "to": (host + hosts // 2 + 1) % hosts, "size": size} for host in range(hosts)]
    return {"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}}


def groups(flows, **packets):
    """Returns five switches with a link between each two and eight hosts each, and flows: a Dragonfly with one switch in a group."""
    links = [[host, 40 + host // 8, *LINK] for host in range(40)] + [
        [40 + a, 40 + b, *LINK] for a in range(5) for b in range(a)
    ]
    graph = {"hosts": 40, "switches": 5, "links": links}
    return {"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}}


def last(results):
    return max(flow["received_ps"] for flow in results["flows"])


class Routing(harness.Folder):
    def test_permutation(self):
        """Hashes of 16 flows collide on the links of a fat tree with room for all of them. Packets that choose for themselves do not."""
        ends = {
            routing: last(self.simulate_flows(permutation(4, "1 MB", routing=routing, loss="selective")))
            for routing in ("flow-hash", *SPREAD)
        }
        alone = 1001 * PACKET + 5 * PACKET + 6 * DELAY
        self.assertGreater(ends["flow-hash"], 1.9 * alone, ends)
        for routing in SPREAD:
            self.assertLess(ends[routing], 1.4 * alone, ends)

    def test_detours(self):
        """Each of eight hosts of a switch sends to one of the next switch. One link is between the two. With Valiant routing most messages
        take another switch between, each on one path, so that no packet overtakes another and go-back-n finds no gap.
        """
        flows = [{"from": host, "to": 8 + host, "size": "200 kB"} for host in range(8)]
        minimal, detours = (self.simulate_flows(groups(flows, routing=routing)) for routing in ("flow-hash", "valiant"))
        self.assertGreater(last(minimal), 8 * 200 * PACKET)
        self.assertLess(last(detours), 0.7 * last(minimal))
        carried = [port["packets"] for port in detours["ports"] if port["node"] == 40 and port["peer"] > 40]
        self.assertGreater(sum(packets >= 200 for packets in carried), 2, carried)
        self.assertEqual(sum(packets // 200 for packets in carried), 8, "no packet is sent twice")
        for ranks in (2, 3, 4):
            self.assertEqual(self.simulate_flows(groups(flows, routing="valiant"), ranks=ranks), detours)

    def test_turns(self):
        """Two links in turn: 10 packets, five over each, with the hash all over one of them."""
        flows = [{"from": 0, "to": 1, "size": "10 kB"}]
        for routing, expected in (("round-robin", [5, 5]), ("flow-hash", [0, 10])):
            results = self.simulate_flows(two_links(flows, routing=routing, loss="selective"))
            self.assertEqual(results["flows"][0]["received_ps"], 10 * PACKET + 3 * PACKET + 4 * DELAY)
            carried = [port["packets"] for port in results["ports"] if port["node"] == 2 and port["peer"] in (4, 5)]
            self.assertEqual(sorted(carried), expected, routing)

    def test_one_answer(self):
        """Each routing with and without losses, and a link that fails: the same on 1 to 4 ranks."""
        for routing in ("flow-hash", *SPREAD):
            for more in ({}, LOSSY, {"control": "swift"}):
                scenario = permutation(4, "100 kB", routing=routing, loss="selective", **more)
                scenario["system"]["network"]["graph"]["failures"] = [[24, 32, "8 us"]]
                first = self.simulate_flows(scenario)
                self.assertTrue(all(flow["acknowledged_ps"] > 0 for flow in first["flows"]), (routing, more))
                for ranks in (1, 2, 3, 4) if routing == "adaptive" else (3,):
                    self.assertEqual(
                        self.simulate_flows(scenario, ranks=ranks), first, f"{routing} {more} on {ranks} ranks"
                    )

    def test_run(self):
        """A training step on two leaves and two spines with adaptive routes and small buffers: the same results on 1 to 4 ranks."""
        (self.folder / "leaves.yaml").write_text(json.dumps(graphs.leaves([6, 4])))
        config = self.folder / "step.yaml"
        config.write_text(
            test_packet_network.STEP.replace(
                "{dimensions: [DIMENSIONS]}", "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
            ).replace("RENDEZVOUS", "false")
        )
        settings = [
            "--set=system.network.packets.routing=adaptive",
            "--set=system.network.packets.loss=selective",
            "--set=system.network.packets.pauses=false",
            "--set=system.network.packets.buffer=60 kB",
        ]
        self.check_one_answer([str(config), "--network=packet", *settings], 8)


class Loss(harness.Folder):
    def test_time_out(self):
        """The only packet is lost on a link that fails. It is sent again after 16 round trips of 2 x 4 us and 4 payloads of 80 ns, or after the
        time that is given, and takes the other link. Without a time-out it never comes."""
        flows = [{"from": 0, "to": 1, "size": "1 kB"}]
        way = 4 * (PACKET + DELAY)
        for packets, waits in (
            ({"loss": "selective"}, 16 * 8_320_000),
            ({"loss": "selective", "retransmission-timeout": "50 us"}, 50_000_000),
            ({"retransmission-timeout": "path"}, 16 * 8_320_000),
            ({}, None),
            ({"loss": "selective", "retransmission-timeout": "none"}, None),
        ):
            path = [
                port["peer"]
                for port in self.simulate_flows(two_links(flows, **packets))["ports"]
                if port["node"] == 2 and port["peer"] > 3 and port["packets"] > 0
            ]
            for link in (4, 5):
                is_lost = path == [link]
                code, expected = (0, way) if not is_lost else (4, -1) if waits is None else (0, waits + way)
                results = self.simulate_flows(two_links(flows, [[2, link, "2 us"]], **packets), code=code)
                self.assertEqual(results["flows"][0]["received_ps"], expected, packets)

    def test_cut_off(self):
        """Both links fail while a message is under way. A sender with a time-out ends the run, which names the hosts; without one the run
        ends because the message does not."""
        flows = [{"from": 0, "to": 1, "size": "1 MB"}]
        failures = [[2, 4, "20 us"], [2, 5, "20 us"]]
        for packets in (
            {"loss": "selective"},
            {"retransmission-timeout": "path"},
            {"preset": "uec"},
            {"preset": "uec", "trimming": False},
        ):
            for ranks in (0, 2):
                self.refuse_flows(
                    two_links(flows, failures, **packets),
                    "host 0 sends a message to host 1, and failed links have left no way",
                    ranks=ranks,
                )
        self.assertEqual(self.simulate_flows(two_links(flows, failures), code=4)["flows"][0]["received_ps"], -1)

    def test_table_again(self):
        """Two hosts with a fast and a slow link, and a table of routes that takes the slow one. A run, its resolved configuration and
        its expanded graph have the same time, also with a placement."""
        rows = [[0, 1, 3], [1, 0, 3], [2, 0, 0], [2, 1, 1], [3, 1, 1], [3, 0, 0]]
        links = [[0, 2, *LINK], [1, 2, *LINK], [0, 3, "10 Gb/s", "1 us"], [1, 3, "10 Gb/s", "1 us"]]
        graph = {"hosts": 2, "switches": 2, "links": links, "routes": {"table": rows}, "placement": [1, 0]}
        config = {
            "system": {"network": {"model": "packet", "graph": graph, "dimensions": [{"shape": "Switch", "size": 2}]}},
            "workload": {
                "model": {"kind": "layers", "layers": [{"name": "gradients", "parameters": 100_000}]},
                "parallel": {"dp": 2},
            },
        }

        def finish(name, settings=()):
            return harness.finish_times(self.run_once([str(self.folder / name), *settings], f"{name}.h5"))

        (self.folder / "run.yaml").write_text(json.dumps(config))
        expected = finish("run.yaml")
        with h5py.File(self.folder / "run.yaml.h5") as results:
            (self.folder / "again.yaml").write_text(results["config/resolved"].asstr()[()])
        self.assertEqual(finish("again.yaml"), expected)
        for name in ("graph.yaml", "graph.json"):
            outcome = harness.orrery("show", "graph", self.folder / "run.yaml", f"--output={self.folder / name}")
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(finish("run.yaml", [f"--set=system.network.graph={self.folder / name}"]), expected)
        (self.folder / "run.yaml").write_text(json.dumps(config).replace(json.dumps({"table": rows}), '"widest"'))
        self.assertLess(max(finish("run.yaml")), max(expected))

    def test_lost_acknowledgement(self):
        """All acknowledgements are lost on a link that fails before they come. The receiver repeats the last one when the packets come again."""
        flows = [{"from": 0, "to": 1, "size": "3 kB"}, {"from": 1, "to": 0, "size": "1 kB", "after": [0]}]
        for packets in ({"loss": "selective"}, {"retransmission-timeout": "path"}):
            for completion in ("last-byte", "acknowledged"):
                for ranks in (0, 2):
                    for link in (4, 5):
                        scenario = two_links(flows, [[link, 2, "6.5 us"]], completion=completion, **packets)
                        first, second = self.simulate_flows(scenario, ranks=ranks)["flows"]
                        self.assertGreater(first["acknowledged_ps"], first["received_ps"])
                        begins = "received_ps" if completion == "last-byte" else "acknowledged_ps"
                        self.assertGreaterEqual(second["start_ps"], first[begins] if completion == "last-byte" else 0)
                        self.assertGreater(second["acknowledged_ps"], second["start_ps"])

    def test_only_what_is_missing(self):
        """Eight senders meet in a small buffer without pauses. All bytes come, and fewer packets are sent than with go-back-n."""
        flows = [{"from": host, "to": 8, "size": "500 kB"} for host in range(8)]
        sent = {}
        for loss in ("selective", "go-back-n"):
            results = self.simulate_flows(star(9, flows, loss=loss, **{"retransmission-timeout": "path"}, **LOSSY))
            self.assertTrue(all(flow["acknowledged_ps"] > 0 for flow in results["flows"]), loss)
            self.assertGreater(sum(port["drops"] for port in results["ports"]), 0, loss)
            sent[loss] = sum(port["packets"] for port in results["ports"] if port["node"] in range(8))
        self.assertLess(sent["selective"], sent["go-back-n"])

    def test_no_loss_changes_nothing(self):
        """Without losses selective retransmission and time-outs change no time."""
        expected = self.simulate_flows(permutation(4, "300 kB"))
        kept = ("flows", "ports", "classes")
        for packets in ({"loss": "selective"}, {"retransmission-timeout": "1 ms"}):
            found = self.simulate_flows(permutation(4, "300 kB", **packets))
            self.assertEqual({key: found[key] for key in kept}, {key: expected[key] for key in kept})

    def test_refusals(self):
        """Routes by packet need a receiver that takes packets in any order, and a control that does not compare the links of one path."""
        flows = [{"from": 0, "to": 1, "size": "1 kB"}]
        self.refuse_flows(
            star(2, flows, routing="adaptive"),
            "system.network.packets.routing",
            "found adaptive with loss: go-back-n",
            "loss: selective",
        )
        self.refuse_flows(
            star(2, flows, routing="packet-hash", loss="selective", control="hpcc"),
            "found packet-hash with control: hpcc",
        )
        self.refuse_flows(
            star(2, flows, **{"retransmission-timeout": "soon"}), "retransmission-timeout", "expected none or path"
        )
        config = self.folder / "shape.yaml"
        config.write_text(
            "system: {network: {model: packet, dimensions: [{shape: Switch, size: 4, bandwidth: 100 GB/s, latency: 1 us}], "
            "packets: {routing: round-robin, loss: selective}}}\nworkload: {model: {layers: 1, hidden: 64, heads: 1, sequence: 8}}\n"
        )
        outcome = harness.orrery("check", config)
        self.assertEqual(outcome.code, 3, outcome.out)
        self.assertIn("found round-robin on the links of shapes", outcome.err)


class Swift(harness.Folder):
    def test_alone(self):
        """A flow that is alone has delays below the target, so that it keeps the window of its path or more: Swift changes no time."""
        flows = [{"from": 0, "to": 1, "size": "1 MB"}]
        expected, found = (
            self.simulate_flows(star(2, flows, control=control))["flows"] for control in ("none", "swift")
        )
        self.assertEqual(found, expected)

    def test_queue(self):
        """64 senders of 1 MB into one port. A message that comes later waits for all of their windows without a control; with Swift it waits
        no longer than the targets say, although the port stays busy."""
        flows = [{"from": host, "to": 64, "size": "1 MB"} for host in range(64)]
        flows.append({"from": 0, "to": 64, "size": "1 kB", "start": "1500 us", "port": 7})
        waits, ends = {}, {}
        for control in ("none", "swift"):
            results = self.simulate_flows(star(65, flows, control=control))
            waits[control] = results["flows"][-1]["received_ps"] - results["flows"][-1]["start_ps"]
            ends[control] = last(results)
        self.assertGreater(waits["none"], 200_000_000)
        self.assertLess(waits["swift"], 50_000_000)
        self.assertLess(ends["swift"], 1.01 * ends["none"])


if __name__ == "__main__":
    harness.main()
