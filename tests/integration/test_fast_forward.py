#!/usr/bin/python3
"""Long transfers of the packet network that are skipped have the results of all packets: random flows, collectives, training steps and
checkpoints.

usage: test_fast_forward.py [--seed S] [--count N]"""
import argparse
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import chakra  # noqa: E402
import checkpoints  # noqa: E402
import graphs  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402
from test_packet_network import PACKETS, SHAPES, STEP  # noqa: E402

SEED, COUNT = 1, harness.cases(10, 40, 400)
ALL_PACKETS = "--set=system.network.packets.fast-forward=false"


def random_flows(seed):
    """Returns random flows, of which most are long, over one to three leaves whose links may have different rates."""
    draw = random.Random(seed)
    num_leaves, hosts_per_leaf = draw.choice([1, 1, 2, 3]), draw.choice([2, 3, 4])
    num_spines = draw.choice([1, 2]) if num_leaves > 1 else 0
    hosts = num_leaves * hosts_per_leaf
    rates = draw.choice(
        [["100 Gb/s"], ["100 Gb/s", "400 Gb/s"], ["100 Gb/s", "25 Gb/s"], ["400 Gb/s", "97 Gb/s", "33 Gb/s"]]
    )
    delay = draw.choice(["1 us", "500 ns", "100 ns"])
    links = [[host, hosts + host // hosts_per_leaf, draw.choice(rates), delay] for host in range(hosts)]
    links += [
        [hosts + leaf, hosts + num_leaves + spine, draw.choice(rates), delay]
        for leaf in range(num_leaves)
        for spine in range(num_spines)
    ]
    packets = {
        "preset": draw.choice(["astra-sim-ns3", "simai-ns3", "hpcc-2019"]),
        "payload": draw.choice(["1000 B", "1500 B", "4096 B"]),
        "control": draw.choice(["none", "none", "dcqcn"]),
        "completion": draw.choice(["last-byte", "acknowledged"]),
        "window": draw.choice(["path", "largest", "none", "64 KiB"]),
    }
    if packets["control"] == "dcqcn":
        packets["marks"] = [[rate, "20 kB", "200 kB", 0.5] for rate in rates]
    if packets["window"] == "none" and draw.random() < 0.5:
        packets |= {"buffer": "300 kB", "retransmission-timeout": "100 us"}
    elif draw.random() < 0.3:
        packets |= {"retransmission-timeout": "100 us", "flow-control": draw.choice(["none", "pauses"])}
    flows = []
    for _ in range(draw.randint(1, 8)):
        source, destination = draw.sample(range(hosts), 2)
        size = draw.choice(
            [draw.randint(1, 20_000), draw.randint(100_000, 3_000_000), draw.randint(1_000_000, 8_000_000)]
        )
        flow = {"from": source, "to": destination, "size": f"{size} B"}
        if draw.random() < 0.6:
            flow["start"] = f"{draw.randint(0, 300)} us"
        before = [number for number, other in enumerate(flows) if other["to"] == source]
        if before and draw.random() < 0.5:
            flow["after"] = draw.sample(before, draw.randint(1, min(2, len(before))))
        flows.append(flow)
    return {
        "system": {
            "network": {
                "graph": {"hosts": hosts, "switches": num_leaves + num_spines, "links": links},
                "packets": packets,
            }
        },
        "workload": {"flows": flows},
    }


class Flows(harness.Folder):
    def test_a_lone_transfer(self):
        """100,000 packets of a flow that is alone have fewer than 1,000 events, and the time that they take one after the other."""
        flows = [{"from": 0, "to": 1, "size": "100 MB"}]
        results = self.simulate_flows(
            {
                "system": {
                    "network": {
                        "graph": {
                            "hosts": 2,
                            "switches": 1,
                            "links": [[0, 2, "100 Gb/s", "1 us"], [1, 2, "100 Gb/s", "1 us"]],
                        }
                    }
                },
                "workload": {"flows": flows},
            }
        )
        self.assertEqual(results["flows"][0]["received_ps"], 100_001 * 82_880 + 2_000_000)
        self.assertEqual([port["packets"] for port in results["ports"]], [100_000] * 4)
        self.assertLess(results["events"], 1000)

    def test_random_flows(self):
        """Random flows have the results of all packets, on one rank and on several. Most of them have fewer events."""
        num_skipped = 0
        for seed in range(SEED, SEED + COUNT):
            with self.subTest(seed=seed):
                scenario = random_flows(seed)
                everything = self.simulate_flows(scenario, ALL_PACKETS)
                skipped = self.simulate_flows(scenario)
                others = [self.simulate_flows(scenario, ranks=2 + seed % 2)] if seed % 5 == 0 else []
                num_skipped += skipped.pop("events", 0) < everything.pop("events", 0)
                self.assertEqual(skipped, everything)
                for other in others:
                    other.pop("events", 0)
                    self.assertEqual(other, everything)
        self.assertGreater(num_skipped, COUNT / 2)


class Workloads(checkpoints.KilledRuns):
    others = (0, 2, 3)

    def num_events(self, path):
        with h5py.File(path) as results:
            return int(results["kernel/events"][:].sum())

    def check_skipped(self, arguments, factor, ranks=0):
        """Checks that a run has the results of all packets, with so many times fewer events."""
        everything = self.run_once([*arguments, ALL_PACKETS], "all.h5", ranks=ranks)
        skipped = self.run_once(arguments, "skipped.h5", ranks=ranks)
        self.assertEqual(harness.difference(everything, skipped, without=["/config"]), "")
        self.assertLess(self.num_events(skipped) * factor, self.num_events(everything))

    def large_step(self, name, iterations=2):
        """Returns the arguments of a training step on a shape whose messages have some 100 kB, with noise."""
        path = self.folder / "step.yaml"
        path.write_text(
            STEP.replace("DIMENSIONS", SHAPES[name])
            .replace("RENDEZVOUS", "false")
            .replace("hidden: 512", "hidden: 2048")
        )
        return [path, *PACKETS, "--noise=0.05", f"--iterations={iterations}"]

    def test_collectives(self):
        """All-reduces of 32 MiB over a Switch, a Ring, and two dimensions whose links have different rates."""
        for name, factor in (("switch", 1.5), ("ring", 1.5), ("mixed", 1.5)):
            with self.subTest(name):
                system = self.folder / "system.yaml"
                system.write_text(f"system:\n  network: {{dimensions: [{SHAPES[name]}]}}\n")
                harness.write_workload(
                    self.folder,
                    [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=32 << 20)] for _ in range(8)],
                )
                self.check_skipped([system, *PACKETS, f"--set=workload.traces={self.folder / 'workload'}"], factor)
                self.clear_folder()

    def test_steps(self):
        """Training steps with noise, whose computing goes on while messages are under way, over each shape: on one rank, and on two for a
        Ring. A part of the network rests while others do not."""
        for name in SHAPES:
            with self.subTest(name):
                self.check_skipped(self.large_step(name), 1, ranks=2 if name == "ring" else 0)
                self.clear_folder()

    def test_a_graph(self):
        """The same on two leaves, whose spines several flows share."""
        (self.folder / "leaves.yaml").write_text(json.dumps(graphs.leaves([6, 4])))
        path, *more = self.large_step("switch")
        path.write_text(
            path.read_text().replace(
                f"{{dimensions: [{SHAPES['switch']}]}}", "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
            )
        )
        self.check_skipped([path, *more], 1)

    @harness.long
    def test_checkpoints(self):
        """A run is killed while parts of the network rest, and goes on to the results of one that is not."""
        path, *more = self.large_step("switch", iterations=5)
        path.write_text(path.read_text().replace("hidden: 2048", "hidden: 4096"))
        self.check([path, *more], 8)


def main():
    global SEED, COUNT
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    arguments, sys.argv[1:] = parser.parse_known_args()
    SEED, COUNT = arguments.seed, arguments.count
    harness.main()


if __name__ == "__main__":
    main()
