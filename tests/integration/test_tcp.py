#!/usr/bin/python3
"""`transport: tcp`: an incast with losses on any number of ranks, steps that go on from checkpoints, results, keys and refusals."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402

INCAST = harness.SOURCE / "configs/flows/tcp-incast.yaml"
RING = harness.SOURCE / "configs/ring-8.yaml"
PACKETS = "--set=system.network.packets."


def star(hosts, flows, queue="150 kB", **packets):
    """Returns hosts on one switch at 10 Gb/s, whose queues towards hosts have a size, and flows."""
    links = [[host, hosts, "10 Gb/s", "2 us", ["none", queue]] for host in range(hosts)]
    graph = {"hosts": hosts, "switches": 1, "links": links}
    return {
        "system": {"network": {"graph": graph, "packets": {"preset": "tcp-linux", **packets}}},
        "workload": {"flows": flows},
    }


class Tcp(harness.Folder):
    def flows(self, scenario, *options, ranks=0, code=0):
        source, result = self.folder / "flows.yaml", self.folder / "flows.json"
        source.write_text(json.dumps(scenario))
        outcome = harness.orrery("flows", source, f"--json={result}", "--force", *options, ranks=ranks)
        self.assertEqual(outcome.code, code, outcome.err)
        return json.loads(result.read_text())

    def test_ranks(self):
        """An incast of 12 hosts that loses packets, with several messages on each connection, has one answer on any number of ranks."""
        flows = [{"from": host, "to": 12, "size": "200 kB"} for host in range(12)]
        flows += [{"from": host, "to": 12, "size": "3 kB", "start": "1 us"} for host in range(12)]
        flows += [{"from": 12, "to": host, "size": "10 kB", "after": [host]} for host in range(12)]
        scenario = star(13, flows, queue="30 kB", tcp={"min-rto": "5 ms", "connections": 2})
        first = self.flows(scenario)
        self.assertGreater(sum(port["drops"] for port in first["ports"]), 0)
        self.assertEqual(len(first["connections"]), 36)
        self.assertGreater(sum(connection["repeated"] for connection in first["connections"]), 0)
        for ranks in (2, 3, 4, 8):
            other = self.flows(scenario, ranks=ranks)
            for part in ("flows", "ports", "connections"):
                self.assertEqual(other[part], first[part], f"{ranks} ranks")

    def test_connections(self):
        """Two messages of a connection come one after the other; with a connection for each they share the link."""
        flows = [{"from": 0, "to": 1, "size": "1 MB"}, {"from": 0, "to": 1, "size": "10 kB", "start": "100 us"}]
        together = self.flows(star(2, flows))
        self.assertEqual(len(together["connections"]), 1)
        self.assertGreater(together["flows"][1]["received_ps"], together["flows"][0]["received_ps"])
        apart = self.flows(star(2, flows, tcp={"connections": "per-message"}))
        self.assertEqual([connection["connection"] for connection in apart["connections"]], [0, 1])
        named = self.flows(star(2, [{**flow, "connection": 7 - i} for i, flow in enumerate(flows)]))
        self.assertEqual([connection["connection"] for connection in named["connections"]], [6, 7])
        self.assertEqual(
            sorted(connection["offered_bytes"] for connection in named["connections"]), [10_000, 1_000_000]
        )

    def test_many_messages_in_a_segment(self):
        """Small messages share segments, also where these cross ranks and come out of order, and all of them come."""
        flows = [{"from": i % 3, "to": 3, "size": f"{1 + i % 40} B", "start": "50 us"} for i in range(400)]
        flows += [{"from": i, "to": 3, "size": "300 kB"} for i in range(3)]
        scenario = star(4, flows, queue="20 kB", tcp={"min-rto": "5 ms"})
        first = self.flows(scenario)
        self.assertTrue(all(flow["received_ps"] > 0 for flow in first["flows"]))
        self.assertEqual(self.flows(scenario, ranks=2)["flows"], first["flows"])

    def test_roce(self):
        """RoCE with selective loss runs on drop-tail and RED; TCP runs on shared buffers, whose pauses keep it from losing packets."""
        flows = [{"from": host, "to": 8, "size": "500 kB"} for host in range(8)]
        rules = {"preset": "astra-sim-ns3", "loss": "selective", "discipline": "drop-tail", "window": "none"}
        dropped = self.flows(star(9, flows, queue="60 kB", **rules))
        self.assertGreater(sum(port["drops"] for port in dropped["ports"]), 0)
        self.assertTrue(all(flow["received_ps"] > 0 for flow in dropped["flows"]))
        scenario = star(9, flows, discipline="shared-buffer")
        for link in scenario["system"]["network"]["graph"]["links"]:
            del link[4]
        paused = self.flows(scenario)
        self.assertEqual(sum(port["drops"] for port in paused["ports"]), 0)
        self.assertEqual(sum(connection["timeouts"] for connection in paused["connections"]), 0)

    def test_red(self):
        """RED drops what cannot be marked. Between its thresholds draws decide, which the seed changes."""
        flows = [{"from": host, "to": 4, "size": "1 MB"} for host in range(4)]
        rules = {"discipline": "red", "marks": [["any", "30 kB", "30 kB", 1]]}
        self.assertGreater(sum(port["drops"] for port in self.flows(star(5, flows, **rules))["ports"]), 0)
        rules = {"preset": "tcp-datacenter", "marks": [["10 Gb/s", "10 kB", "60 kB", 0.1]]}
        runs = [self.flows(star(5, flows, **rules, **more)) for more in ({}, {"seed": 1}, {"ewma": 0.1})]
        self.assertGreater(sum(port["marks"] for port in runs[0]["ports"]), 0)
        self.assertNotEqual(runs[0]["flows"], runs[1]["flows"])
        self.assertNotEqual(runs[0]["flows"], runs[2]["flows"])

    def test_unfinished_flows(self):
        """Flows whose SYNs a full queue drops do not end, and the message names the connection of each of them."""
        flows = [{"from": host, "to": 40, "size": "1 MB"} for host in range(40)]
        flows += [{"from": 41, "to": 40, "size": "1 kB", "start": start} for start in ("0 s", "31 us", "30 us")]
        rules = {"initial-window": 100, "syn-timeout": "1 us", "min-rto": "5 ms", "connections": "per-message"}
        scenario = star(42, flows, queue="3028 B", tcp=rules)
        for connections, named in ((rules["connections"], (2, 1)), (3, (2, 1)), (3, (7, 9))):
            rules["connections"] = connections
            if named == (7, 9):
                flows[41]["connection"], flows[42]["connection"] = named
            with self.subTest(connections=connections, named=named):
                source = self.folder / "flows.yaml"
                source.write_text(json.dumps(scenario))
                outcome = harness.orrery("flows", source)
                self.assertEqual(outcome.code, 4, outcome.err)
                for flow, connection in zip((41, 42), named):
                    self.assertIn(f"#{flow} (41 to 40, connection {connection} with 0 of 1000 B", outcome.err)

    def test_run(self):
        """A run has one row of /network/tcp for each connection, on any number of ranks."""
        rows = {}
        for ranks in (0, 2):
            result = self.folder / f"{ranks}.h5"
            options = (f"{PACKETS}preset=tcp-linux", "--network=packet", f"--output={result}")
            outcome = harness.orrery("run", self.small_run(), *options, ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.err)
            with h5py.File(result) as file:
                rows[ranks] = {name: file[f"/network/tcp/{name}"][:].tolist() for name in file["/network/tcp"]}
        self.assertEqual(rows[0], rows[2])
        self.assertEqual(rows[0]["from"], [0, 0, 1, 1, 2, 2, 3, 3])  # a ring in both directions
        self.assertTrue(all(segments > 0 for segments in rows[0]["segments"]))

    def small_run(self):
        path = self.folder / "run.yaml"
        workload = {
            "model": {"kind": "layers", "layers": [{"name": "gradients", "parameters": 100_000}]},
            "parallel": {"dp": 4},
        }
        network = {"dimensions": [{"shape": "Switch", "size": 4, "bandwidth": "10 Gb/s", "latency": "1 us"}]}
        path.write_text(json.dumps({"system": {"network": network}, "workload": workload}))
        return path

    def test_refusals(self):
        """What TCP and its queues cannot do ends with exit code 3 and names the key."""
        for key, options in {
            "control": ["transport=tcp", "control=dcqcn"],
            "routing": ["routing=packet-hash", "loss=selective"],
            "queue": ["queue=2 kB"],
            "tcp.receive-buffer": ["tcp.receive-buffer=2 kB"],
            "discipline": ["discipline=trimming"],
            "flow-control": ["flow-control=credits"],
            "completion": ["completion=acknowledged"],
            "marks": ["control=dctcp", "discipline=red"],
            "loss": ["loss=selective"],
            "tcp.mss": ["tcp.mss=70 kB", "queue=1 MB", "tcp.receive-buffer=1 MB"],
        }.items():
            with self.subTest(key):
                outcome = harness.orrery("flows", INCAST, *(PACKETS + option for option in options))
                self.assertEqual(outcome.code, 3, outcome.out + outcome.err)
                self.assertIn(key.split(".")[-1], outcome.err)
        outcome = harness.orrery("flows", harness.SOURCE / "configs/flows/incast8.yaml", f"{PACKETS}control=cubic")
        self.assertEqual(outcome.code, 3)

    def test_idle_keys(self):
        """Lists of flows name the keys that have no effect, and rates of switches at which no packet is marked, as runs do."""
        flows = [{"from": 0, "to": 1, "size": "10 kB"}]
        marks = [["25 Gb/s", "66 kB", "66 kB", 1]]
        for rules, *parts in (
            ({"payload": "2000 B", "header": "60 B"}, "packets.header, system.network.packets.payload have no effect"),
            ({"window": "none"}, "packets.window has no effect"),
            ({"marks": marks}, "packets.marks has no effect"),
            ({"preset": "tcp-datacenter", "marks": marks}, "mark no packets at ports of 10 Gb/s", "dctcp"),
            ({"tcp": {"min-rto": "5 ms"}},),
        ):
            with self.subTest(rules):
                source = self.folder / "flows.yaml"
                source.write_text(json.dumps(star(2, flows, **rules)))
                outcome = harness.orrery("flows", source)
                self.assertEqual(outcome.code, 0, outcome.err)
                for part in parts:
                    self.assertIn(part, outcome.err)
                if not parts:
                    self.assertNotIn("warning", outcome.err)

    def test_no_way(self):
        """A sender whose link fails would time out for ever, so that its first time-out ends the run with an error."""
        scenario = star(3, [{"from": 0, "to": 1, "size": "1 MB"}])
        scenario["system"]["network"]["graph"]["failures"] = [[0, 3, "100 us"]]
        source = self.folder / "flows.yaml"
        source.write_text(json.dumps(scenario))
        outcome = harness.orrery("flows", source)
        self.assertEqual(outcome.code, 3, outcome.out + outcome.err)
        self.assertIn("failed links have left no way between them", outcome.err)


if __name__ == "__main__":
    harness.main()
