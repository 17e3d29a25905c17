#!/usr/bin/python3
"""What is said of the messages, links and queues of the packet network, and of a network before a run: `orrery flows`, `orrery show flows`,
`collisions`, `queues` and `network`. Values by hand, values that must agree with each other, one answer on any number of ranks, refusals."""
import csv
import io
import itertools
import json
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

INCAST = harness.SOURCE / "configs/flows/incast8.yaml"
LEAF_SPINE = harness.SOURCE / "configs/flows/leaf-spine.yaml"
PERCENTILES = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99_9": 999}
MARKS = "--set=system.network.packets.marks=[[100 Gb/s, 20 kB, 80 kB, 0.5]]"


def spread(values):
    """Mean, percentiles by nearest rank, and largest value."""
    ordered = sorted(values)
    found = {"mean": sum(ordered) / len(ordered), "max": ordered[-1]}
    return found | {
        name: ordered[max(-(-len(ordered) * thousandths // 1000), 1) - 1] for name, thousandths in PERCENTILES.items()
    }


def maximum_flow(arcs, sources, sinks):
    """The most that arcs {(from, to): capacity} carry from some nodes to others: paths with room, one after the other."""
    room, total = dict(arcs), 0
    nodes = {end for arc in arcs for end in arc}
    while True:
        before, reached = {source: None for source in sources}, list(sources)
        for node in reached:
            for other in nodes:
                if other not in before and room.get((node, other), 0) > 0:
                    before[other] = node
                    reached.append(other)
        end = next((sink for sink in sinks if sink in before), None)
        if end is None:
            return total
        path = []
        while before[end] is not None:
            path.append((before[end], end))
            end = before[end]
        least = min(room[arc] for arc in path)
        for a, b in path:
            room[a, b] -= least
            room[b, a] = room.get((b, a), 0) + least
        total += least


def arcs(graph, capacities):
    """Returns the directed links of a graph with hosts as two nodes, ("in", h) and ("out", h)."""
    hosts = range(graph["hosts"])
    both = {}
    for (a, b), rate in capacities.items():
        for x, y in ((a, b), (b, a)):
            both[("out", x) if x in hosts else x, ("in", y) if y in hosts else y] = rate
    return both | ({(("in", h), ("out", h)): 10**6 for h in hosts} if graph["forwarding"] else {})


class NetworkTables(harness.Folder):
    def shown(self, *arguments):
        outcome = harness.orrery("show", *arguments)
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome.out

    def run_of_graph(self, name, *options, ranks=0):
        """A training step on two leaves and two spines, whose links are slower than those of NPUs."""
        graph = {
            "hosts": 8,
            "switches": 4,
            "links": [[h, 8 + h // 4, "100 GB/s", "500 ns"] for h in range(8)]
            + [[8 + leaf, 10 + spine, "50 GB/s", "1 us"] for leaf in range(2) for spine in range(2)],
        }
        config = self.folder / "step.yaml"
        config.write_text(
            json.dumps(
                {
                    "system": {
                        "network": {"graph": graph, "model": "packet", "dimensions": [{"shape": "Switch", "size": 8}]},
                        "compute": {"roofline": True, "peak": "989 TFLOPS", "local-memory": {"bandwidth": "3350 GB/s"}},
                    },
                    "workload": {
                        "model": {"layers": 2, "hidden": 512, "heads": 8, "sequence": 128},
                        "parallel": {"tp": 2, "sp": True, "dp": 2, "pp": 2, "micro-batches": 2},
                    },
                }
            )
        )
        return self.run_once([str(config), *options], name, ranks=ranks)

    # ---- How long flows take ----

    def test_alone(self):
        """A flow that is alone takes what it takes in an empty network, whatever its size and the rates of its links."""
        for rates in (["100 Gb/s"] * 3, ["100 Gb/s", "30 Gb/s", "400 Gb/s"], ["25 Gb/s", "100 Gb/s", "10 Gb/s"]):
            links = [[0, 2, rates[0], "1 us"], [2, 3, rates[1], "300 ns"], [3, 1, rates[2], "2 us"]]
            for size in (0, 1, 999, 1000, 1001, 10_000, 123_456):
                scenario = {
                    "system": {
                        "network": {"graph": {"hosts": 2, "switches": 2, "links": links}, "packets": {"window": "none"}}
                    },
                    "workload": {"flows": [{"from": 0, "to": 1, "size": f"{size} B", "start": "5 us"}]},
                }
                results = self.simulate_flows(scenario)
                flow = results["flows"][0]
                self.assertEqual(flow["received_ps"] - flow["start_ps"], flow["alone_ps"], (rates, size))
                self.assertEqual(results["classes"][0]["slowdown"]["max"], 1)

    def test_classes(self):
        """Twenty-five flows of several sizes with two labels: every class is what its flows give, and each flow is in one range of sizes."""
        random.seed(4)
        sizes = [random.choice((1000, 5000, 20_000, 70_000, 300_000)) for _ in range(15)] + random.sample(
            range(1, 400_000), 10
        )
        flows = [
            {
                "from": i % 5,
                "to": 5 + i % 3,
                "size": f"{size} B",
                "start": f"{i} us",
                "label": ("storage", "training, all")[i % 2],
            }
            for i, size in enumerate(sizes)
        ]
        graph = {"hosts": 8, "switches": 1, "links": [[host, 8, "100 Gb/s", "1 us"] for host in range(8)]}
        results = self.simulate_flows({"system": {"network": {"graph": graph}}, "workload": {"flows": flows}})
        times = [flow["received_ps"] - flow["start_ps"] for flow in results["flows"]]
        slowdowns = [time / flow["alone_ps"] for time, flow in zip(times, results["flows"])]
        classes = results["classes"]
        in_ranges = []
        for one in classes:
            its = {
                "all": range(25),
                "label": [i for i in range(25) if flows[i]["label"] == one["name"]],
                "size": [i for i in range(25) if one["least_bytes"] <= sizes[i] <= one["most_bytes"]],
            }[one["class"]]
            self.assertEqual(one["flows"], len(its))
            for values, told in ((times, one["time_ps"]), (slowdowns, one["slowdown"])):
                for name, value in spread([values[i] for i in its]).items():
                    self.assertAlmostEqual(told[name] / value, 1, 12, (one["name"], name))
            in_ranges += its if one["class"] == "size" else []
        self.assertEqual(sorted(in_ranges), list(range(25)))
        self.assertEqual([one["class"] for one in classes].count("label"), 2)
        self.assertGreater([one["class"] for one in classes].count("size"), 4)

    def test_run(self):
        """A training step: the same records on 1, 2 and 3 ranks, the same times as without records, and classes that its messages give."""
        plain = self.run_of_graph("plain.h5")
        path = self.run_of_graph("one.h5", "--record-flows", "--queue-bins=64")
        self.assertEqual(harness.finish_times(path), harness.finish_times(plain))
        for ranks in (2, 3):
            other = self.run_of_graph(f"on-{ranks}.h5", "--record-flows", "--queue-bins=64", ranks=ranks)
            self.assertEqual(harness.difference(path, other), "")
        with h5py.File(plain) as file:
            self.assertFalse({"flows", "flow_links", "flow_classes", "queues", "pauses"} & set(file["network"]))
        with h5py.File(path) as file:
            flows = {
                name: file[f"/network/flows/{name}"][:]
                for name in ("source", "destination", "group", "bytes", "start", "received", "alone")
            }
            names = [name.decode() or "world" for name in file["/groups/names"][:]]
            groups = [
                set(file["/groups/members"][a:b])
                for a, b in zip(file["/groups/offsets"][:], file["/groups/offsets"][1:])
            ]
            links = {int(link): row for row, link in enumerate(file["/network/links/link"][:])}
            uses = {name: file[f"/network/flow_links/{name}"][:] for name in ("flow", "link", "packets", "waited")}
            queueing = file["/network/links/queueing_time"][:]
            packets = file["/network/links/messages"][:]
        for source, destination, group in zip(flows["source"], flows["destination"], flows["group"]):
            self.assertTrue(group == -1 or {source, destination} <= groups[group])
        self.assertTrue((flows["received"] - flows["start"] >= flows["alone"]).all())
        for flow, size in enumerate(flows["bytes"]):
            passed = uses["packets"][uses["flow"] == flow]
            self.assertTrue((passed == max(-(-int(size) // 1000), 1)).all() and len(passed) in (2, 4))
        for link, row in links.items():
            mine = uses["link"] == link
            self.assertLessEqual(uses["waited"][mine].sum(), queueing[row])
            self.assertLessEqual(uses["packets"][mine].sum(), packets[row])
        told = json.loads(self.shown("flows", path, "--json", "--slowest=3"))
        times = (flows["received"] - flows["start"]).tolist()
        for one in told["classes"]:
            if one["class"] == "label":
                number = names.index(one["name"]) if one["name"] in names else -1
                its = [time for time, group in zip(times, flows["group"]) if group == number]
                self.assertEqual((one["flows"], one["time_ps"]["p90"]), (len(its), spread(its)["p90"]))
        slowdowns = sorted((time / alone for time, alone in zip(times, flows["alone"].tolist())), reverse=True)
        self.assertEqual([one["slowdown"] for one in told["slowest"]], slowdowns[:3])
        rows = list(csv.DictReader(io.StringIO(self.shown("flows", path, "--csv"))))
        self.assertEqual(
            [float(row["time_p99_ps"]) for row in rows], [one["time_ps"]["p99"] for one in told["classes"]]
        )
        with h5py.File(path) as file:
            self.assertEqual(
                file["/network/flow_classes/slowdown_p95"][:].tolist(),
                [one["slowdown"]["p95"] for one in told["classes"]],
            )
        self.assertIn("slowdown", self.shown("flows", path))

    # ---- Links and queues ----

    def test_meetings(self):
        """Two flows to one host meet at its link, and a third one later does not."""
        graph = {"hosts": 3, "switches": 1, "links": [[host, 3, "100 Gb/s", "1 us"] for host in range(3)]}
        flows = [
            {"from": 0, "to": 2, "size": "100 kB"},
            {"from": 1, "to": 2, "size": "100 kB"},
            {"from": 0, "to": 2, "size": "1 kB", "start": "1 ms"},
        ]
        results = self.simulate_flows(
            {"system": {"network": {"graph": graph, "packets": {"window": "none"}}}, "workload": {"flows": flows}},
            "--links",
        )
        (meeting,) = results["meetings"]
        self.assertEqual((meeting["name"], meeting["at_once"], meeting["in_all"]), ("node 3 to node 2", 2, 3))
        self.assertEqual([flow["number"] for flow in meeting["flows"]], [0, 1])
        self.assertEqual(meeting["when_ps"], 82_880 + 1_000_000)
        # Packet k of either flow comes when 2 k - 1 or 2 k packets are to be sent before it, of which k have left.
        self.assertEqual(meeting["waited_ps"], sum(82_880 * (k + (k + 1)) for k in range(100)))

    def test_queues(self):
        """An incast with pauses and marks: intervals add up to what ports count, for any number of them, and to what packets waited."""
        port_sums = None
        for bins in (2, 50, 4000):
            results = self.simulate_flows(INCAST, MARKS, "--links", f"--queue-bins={bins}")
            queues = results["queues"]
            ports = {row: port for row, port in enumerate(results["ports"])}
            self.assertLessEqual(len({queue["start_ps"] for queue in queues["queues"]}), bins)
            for row, port in ports.items():
                its = [queue for queue in queues["queues"] if queue["link"] == row]
                self.assertEqual(sum(queue["marks"] for queue in its), port["marks"])
                pauses = [pause for pause in queues["pauses"] if pause["link"] == row]
                self.assertEqual(sum(pause["pauses"] for pause in pauses), port["pauses"])
                self.assertEqual(sum(queue["stopped_ps"] for queue in its), sum(pause["total_ps"] for pause in pauses))
                if port["node"] == 9 and port["peer"] == 8:
                    self.assertEqual(max(queue["deepest_bytes"] for queue in its), port["deepest_queue_bytes"])
                    waited = (
                        next(meeting["waited_ps"] for meeting in results["meetings"] if meeting["link"] == row)
                        if bins
                        else 0
                    )
                    area = sum(queue["mean_bytes"] for queue in its) * queues["interval_ps"]
                    everything = area / (
                        1036
                        * sum(
                            queue["waited_ps"]
                            for queue in next(m for m in results["meetings"] if m["link"] == row)["flows"]
                        )
                    )
                    self.assertAlmostEqual(everything, 1, 9)
                    self.assertGreater(waited, 0)
            self.assertGreater(sum(pause["pauses"] for pause in queues["pauses"]), 0)
            self.assertTrue(
                all(pause["first_ps"] + pause["longest_ps"] <= pause["last_ps"] for pause in queues["pauses"])
            )
            port_sums = port_sums or results["ports"]
            self.assertEqual(results["ports"], port_sums)

    def test_one_answer(self):
        """Flows over two tiers with marks and a link that fails: the same tables on 1, 2 and 3 ranks."""
        options = [MARKS, "--set=system.network.graph.failures=[[8, 10, 60 us]]", "--links", "--queue-bins=100"]
        first = self.simulate_flows(LEAF_SPINE, *options)
        self.assertTrue(first["meetings"] and first["queues"]["queues"])
        for ranks in (1, 2, 3):
            self.assertEqual(self.simulate_flows(LEAF_SPINE, *options, ranks=ranks), first)

    def test_checkpoint(self):
        """A run that goes on from a checkpoint has the records of one that was not stopped."""
        run = [str(harness.SOURCE / "configs/graph-16.yaml"), "--record-flows", "--queue-bins=64"]
        whole = self.run_once(run, "whole.h5")
        saved = self.folder / "run.chk"
        stopped = self.run_once([*run, f"--checkpoint={saved}", "--checkpoint-interval=0.001"], "saved.h5")
        self.assertEqual(harness.difference(whole, stopped), "")
        again = self.run_once([*run, f"--restart={saved}"], "again.h5", ranks=2)
        self.assertEqual(harness.difference(whole, again), "")
        refused = harness.orrery("run", *run[:-1], f"--restart={saved}", f"--output={self.folder / 'refused.h5'}")
        self.assertEqual(refused.code, 3, refused.err)

    def test_shown_of_run(self):
        """Collisions and queues of a run, as text, JSON and CSV, agree with what its file says."""
        path = self.run_of_graph("run.h5", "--record-flows", "--queue-bins=64")
        links = json.loads(self.shown("collisions", path, "--json", "--links=1000"))["links"]
        with h5py.File(path) as file:
            its = {name: file[f"/network/flow_links/{name}"][:] for name in ("flow", "link", "first", "last", "waited")}
            rows = len(file["/network/queues/link"])
            stopped = file["/network/queues/stopped"][:].sum()
        self.assertTrue(links)
        for link in links:
            mine = its["link"] == link["link"]
            there = [(its["first"][mine] <= time) & (time < its["last"][mine]) for time in its["first"][mine]]
            self.assertEqual(link["at_once"], max(int(one.sum()) for one in there))
            self.assertEqual((link["in_all"], link["waited_ps"]), (int(mine.sum()), int(its["waited"][mine].sum())))
            self.assertEqual(len(link["flows"]), link["at_once"])
        self.assertEqual([link["at_once"] for link in links], sorted((link["at_once"] for link in links), reverse=True))
        table = list(csv.DictReader(io.StringIO(self.shown("queues", path, "--csv"))))
        told = json.loads(self.shown("queues", path, "--json"))
        self.assertEqual((len(table), len(told["queues"])), (rows, rows))
        self.assertEqual(sum(int(row["stopped_ps"]) for row in table), int(stopped))
        self.assertIn("switch", self.shown("collisions", path))
        self.assertIn("deepest queues", self.shown("queues", path))

    def test_report_and_picture(self):
        """The report has the classes and the deepest queues, and plot_queues.py draws them; without records it says what is missing."""
        path = self.run_of_graph("run.h5", "--record-flows", "--queue-bins=64")
        told = json.loads(self.shown("flows", path, "--json"))["classes"]
        facts = json.loads(self.shown("results", path, "--format=json"))
        self.assertEqual(
            [(one["flows"], one["time_p99"]) for one in facts["flows"]],
            [(one["flows"], one["time_ps"]["p99"]) for one in told],
        )
        queues = json.loads(self.shown("queues", path, "--json"))["queues"]
        self.assertEqual(facts["queues"][0]["deepest"], max(one["deepest_bytes"] for one in queues))
        picture = self.folder / "queues.png"
        drawn = harness.run_script("scripts/plot_queues.py", path, "--output", picture)
        self.assertEqual(drawn.code, 0, drawn.err)
        self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))
        plain = self.run_of_graph("plain.h5")
        refused = harness.run_script("scripts/plot_queues.py", plain, "--output", picture)
        self.assertNotEqual(refused.code, 0)
        self.assertIn("--queue-bins", refused.err)
        self.assertEqual(json.loads(self.shown("results", plain, "--format=json"))["flows"], [])

    def test_refusals(self):
        """Results without records, networks without packets, and two forms at a time."""
        path = self.run_of_graph("run.h5")
        for what, option in (("flows", "--record-flows"), ("collisions", "--record-flows"), ("queues", "--queue-bins")):
            outcome = harness.orrery("show", what, path)
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn(option, outcome.err)
            both = harness.orrery("show", what, path, "--csv", "--json")
            self.assertEqual(both.code, 2, both.err)
            self.assertEqual(harness.orrery("show", what).code, 2)
        for option, said in (
            ("--record-flows", "--record-flows: found true without the packet network"),
            ("--queue-bins=5", "--queue-bins: found 5 without the packet network"),
        ):
            outcome = harness.orrery(
                "run",
                harness.SOURCE / "configs/graph-16.yaml",
                "--network=congestion-unaware",
                option,
                f"--output={self.folder / 'refused.h5'}",
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn(said, outcome.err)

    # ---- Before a run ----

    def network(self, dimensions, *options):
        path = self.folder / "network.yaml"
        path.write_text(f"system: {{network: {{{dimensions}}}}}\n")
        return json.loads(self.shown("network", path, "--json", *options))

    def test_shapes(self):
        """Shapes of links of 100 GB/s: bisection, hops and paths by hand."""
        link = "bandwidth: 100 GB/s, latency: 1 us"
        for dimensions, bisection, hops, mean, shortest, disjoint in (
            (f"{{shape: Ring, size: 8, {link}}}", 200, 4, 16 / 7, (1, 1, 2), (2, 2, 2)),
            (f"{{shape: Mesh, size: 8, {link}}}", 100, 7, 3, (1, 1, 1), (1, 1, 1)),
            (f"{{shape: FullyConnected, size: 8, {link}}}", 1600, 1, 1, (1, 1, 1), (7, 7, 7)),
            (f"{{shape: Switch, size: 8, {link}}}", 400, 2, 2, (1, 1, 1), (1, 1, 1)),
            (
                f"{{shape: Ring, size: 4, {link}}}, {{shape: Ring, size: 4, {link}}}",
                800,
                4,
                32 / 15,
                (1, 2, 24),
                (4, 4, 4),
            ),
        ):
            found = self.network(f"model: congestion-aware, dimensions: [{dimensions}]")
            self.assertEqual(
                (found["bisection"]["exact"], found["bisection"]["bytes_per_ns"]), (True, bisection), dimensions
            )
            self.assertEqual(found["hops"]["max"], hops)
            self.assertAlmostEqual(found["hops"]["mean"], mean, 12)
            for name, expected in (("shortest", shortest), ("disjoint", disjoint)):
                self.assertEqual(
                    tuple(found["paths"][name][key] for key in ("min", "median", "max")), expected, dimensions
                )

    def test_fat_tree(self):
        """A fat tree of 4-port switches: no tier is oversubscribed, or the edge is by two; between pods there are four shortest paths."""
        for oversubscription, up in ((1, 16), (2, 8)):
            found = self.network(
                "model: congestion-aware, dimensions: [{shape: FatTree, ports: 4, size: 16, bandwidth: 50 GB/s, latency: 1 us, "
                f"oversubscription: {oversubscription}}}]"
            )
            hosts, edge, aggregation, core = found["tiers"]
            self.assertEqual(
                (hosts["links_up"], edge["number"], edge["links_up"], edge["oversubscription"]),
                (16, 8, up, oversubscription),
            )
            self.assertEqual((aggregation["links_down"], core["links_down"]), (up, up))
            self.assertEqual(aggregation["oversubscription"], 1)
            bounds = found["bisection"]
            self.assertEqual(bounds.get("bytes_per_ns_at_most", bounds.get("bytes_per_ns")), 400 / oversubscription)
            self.assertEqual(found["paths"]["shortest"]["max"], 4 / oversubscription)
            self.assertEqual(found["hops"]["max"], 6)

    def test_graphs_against_all_halves(self):
        """Random graphs of 6 NPUs: the figure is the least flow between any two halves, and paths without common links are as many as
        flows of one can be. Hosts pass nothing on unless they forward."""
        random.seed(11)
        for case in range(12):
            switches = random.randint(2, 4)
            links = {
                tuple(sorted((h, 6 + random.randrange(switches))))
                for h in range(6)
                for _ in range(random.randint(1, 2))
            }
            links |= {tuple(sorted(random.sample(range(6, 6 + switches), 2))) for _ in range(switches + 1)} | {
                (6 + s, 7 + s) for s in range(switches - 1)
            }
            rates = {ends: random.choice((10, 25, 40)) for ends in sorted(links)}
            graph = {
                "hosts": 6,
                "switches": switches,
                "forwarding": case % 3 == 0,
                "links": [[a, b, f"{rate} GB/s", "1 us"] for (a, b), rate in rates.items()],
            }
            found = self.network(f"model: packet, graph: {json.dumps(graph)}, dimensions: [{{shape: Switch, size: 6}}]")
            self.check_bisection(found["bisection"], graph, rates)
            self.assertTrue(found["bisection"]["exact"])
            counts = sorted(
                maximum_flow(arcs(graph, dict.fromkeys(rates, 1)), [("out", a)], [("in", b)])
                for a, b in itertools.permutations(range(6), 2)
            )
            self.assertEqual(
                [found["paths"]["disjoint"][name] for name in ("min", "median", "max")],
                [counts[0], counts[14], counts[29]],
                graph,
            )

    def test_rails(self):
        """Servers of two NPUs, and a rail for each NPU of a server: most NPUs have no path to most others. With four servers all halves are
        looked at; with nine the lower bound is missing."""
        ends = [(h, 8 + h // 2) for h in range(8)] + [(h, 12 + h % 2) for h in range(8)]
        for seed in range(4):
            rates = {pair: random.Random(seed).choice((10, 25, 40)) + pair[0] for pair in ends}
            graph = {
                "hosts": 8,
                "switches": 6,
                "forwarding": False,
                "links": [[a, b, f"{rate} GB/s", "1 us"] for (a, b), rate in rates.items()],
            }
            found = self.network(
                f"model: packet, graph: {json.dumps(graph)}, dimensions: [{{shape: Switch, size: 2}}, {{shape: Switch, size: 4}}]"
            )
            self.assertGreater(found["hops"]["pairs_without_path"], 0)
            self.assertTrue(found["bisection"]["exact"])
            self.check_bisection(found["bisection"], graph, rates)
        links = [[h, node, "10 GB/s", "1 us"] for h in range(18) for node in (18 + h // 2, 27 + h % 2)]
        graph = {"hosts": 18, "switches": 11, "forwarding": False, "links": links}
        found = self.network(
            f"model: packet, graph: {json.dumps(graph)}, dimensions: [{{shape: Switch, size: 2}}, {{shape: Switch, size: 9}}]"
        )
        self.assertFalse(found["bisection"]["exact"])
        self.assertNotIn("bytes_per_ns_at_least", found["bisection"])

    def check_bisection(self, bounds, graph, rates):
        """Checks that bounds enclose the least flow between any two halves."""
        hosts = range(graph["hosts"])
        least = min(
            maximum_flow(arcs(graph, rates), [("out", h) for h in half], [("in", h) for h in hosts if h not in half])
            for half in itertools.combinations(hosts, len(hosts) // 2)
        )
        low, high = (
            (bounds["bytes_per_ns"],) * 2
            if bounds["exact"]
            else (bounds.get("bytes_per_ns_at_least", 0), bounds["bytes_per_ns_at_most"])
        )
        self.assertLessEqual(low, least * (1 + 1e-9), graph)
        self.assertGreaterEqual(high, least * (1 - 1e-9), graph)

    def test_choice(self):
        """Fewer pairs than there are: as many as asked for, the same for one seed."""
        dimensions = "model: congestion-aware, dimensions: [{shape: Dragonfly, npus-per-router: 2, size: 72, bandwidth: 50 GB/s, latency: 1 us}]"
        first = self.network(dimensions, "--pairs=100", "--seed=3")
        self.assertEqual(first["paths"]["pairs"], 100)
        self.assertEqual(self.network(dimensions, "--pairs=100", "--seed=3"), first)
        self.assertEqual(self.network(dimensions, "--pairs=100000")["paths"]["pairs"], 72 * 71)
        self.assertTrue(math.isclose(first["hops"]["mean"], self.network(dimensions)["hops"]["mean"]))


if __name__ == "__main__":
    harness.main()
