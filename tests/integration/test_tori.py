#!/usr/bin/python3
"""Rings, rows and tori: collectives use both directions and all axes (docs/collectives.md, Rings and tori); and ports that dimensions share
(docs/network.md, Shared ports). Times are closed forms. They hold in all networks, on any number of ranks."""
import json
import math
import pathlib
import sys

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

UNAWARE, AWARE, PACKETS = "congestion-unaware", "congestion-aware", "packet"
MIB = 2**20
COMPUTE = "compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}"


def ring(size, bandwidth=50, latency=0, shape="Ring", more=""):
    return f"{{shape: {shape}, size: {size}, bandwidth: {bandwidth} GB/s, latency: {latency} ns{more}}}"


def tier(size, port="nic", bandwidth=50, latency=1000):
    return ring(size, bandwidth, latency, "Switch", f", port: {port}" if port else "")


class OneCollective(harness.Folder):
    def seconds(self, dimensions, kind, size, network=UNAWARE, collectives="endpoint-delay: 0 ns", ports=""):
        """Returns the time of a collective of all NPUs."""
        config = self.folder / "config.yaml"
        config.write_text(
            f"system:\n  network: {{dimensions: [{', '.join(dimensions)}]{ports}}}\n  collectives: {{{collectives}}}\n"
        )
        outcome = harness.orrery(
            "show", "collective", config, f"--network={network}", f"--kind={kind}", f"--bytes={size} B", "--json"
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        return json.loads(outcome.out)["last_done_ps"] * 1e-12

    def assert_near(self, found, expected, tolerance=1e-3):
        self.assertLess(abs(found / expected - 1), tolerance, f"{found}, expected {expected}")


class Tori(OneCollective):
    def test_all_axes(self):
        """System: tori of equal and unequal axes. An all-reduce takes 2 (n-1)/n S / (2 a b), its halves half of it, and two hops for
        each half of an axis. In the network of links this is the same."""
        for axes in ((8,), (3,), (4, 4), (8, 3), (4, 4, 4), (16, 4)):
            n, size = math.prod(axes), 48 * MIB
            dimensions = [ring(m, latency=700) for m in axes]
            hops = sum(m // 2 for m in axes) * 700e-9
            half = (n - 1) / n * size / (2 * len(axes) * 50e9) + hops
            for network in (UNAWARE, AWARE):
                with self.subTest(axes=axes, network=network):
                    self.assert_near(self.seconds(dimensions, "all-reduce", size, network), 2 * half)
                    self.assert_near(self.seconds(dimensions, "reduce-scatter", size, network), half)
                    self.assert_near(self.seconds(dimensions, "all-gather", size // n, network), half)

    def test_all_to_all_meets_the_bisection(self):
        """The longest axis m decides: S m / (8 b), twice without a link that closes the ring. direct is not faster."""
        for axes, shape, factor in (
            ((8,), "Ring", 1),
            ((4, 8), "Ring", 1),
            ((16, 4), "Ring", 1),
            ((8,), "Mesh", 2),
            ((6,), "Mesh", 2),
        ):
            size = 24 * MIB
            bound = factor * size * max(axes) / 8 / 50e9
            dimensions = [ring(m, shape=shape) for m in axes]
            with self.subTest(axes=axes, shape=shape):
                for network in (UNAWARE, AWARE):
                    self.assert_near(self.seconds(dimensions, "all-to-all", size, network), bound)
                direct = f"all-to-all: [{', '.join(['direct'] * len(axes))}], endpoint-delay: 0 ns"
                self.assertGreaterEqual(
                    self.seconds(dimensions, "all-to-all", size, collectives=direct), bound * (1 - 1e-9)
                )

    def test_rows_have_half(self):
        """A Mesh, and members that do not go round the ring: each reduce-scatter takes (n-1)/n S / b."""
        size = 40 * MIB
        for n in (2, 5, 8):
            self.assert_near(self.seconds([ring(n, shape="Mesh")], "all-reduce", size), 2 * (n - 1) / n * size / 50e9)
        both = self.seconds(
            [ring(5, shape="Mesh"), ring(5, shape="Mesh")],
            "all-reduce",
            size,
            collectives="endpoint-delay: 0 ns, dimension-order: all-axes",
        )
        self.assert_near(both, 2 * 24 / 25 * size / 2 / 50e9)

    def test_one_direction(self):
        """With `directions: one` and `dimension-order: ascending` collectives are those of one direction, one axis after the other. With
        all axes they take 1/a of that."""
        size = 16 * MIB
        one = self.seconds([ring(8)], "all-reduce", size, collectives="endpoint-delay: 0 ns, directions: one")
        self.assert_near(one, 2 * 7 / 8 * size / 50e9)
        after = self.seconds(
            [ring(4), ring(4)],
            "all-reduce",
            size,
            collectives="endpoint-delay: 0 ns, directions: one, dimension-order: ascending",
        )
        self.assert_near(after, (2 * 3 / 4 + 2 * 3 / 16) * size / 50e9)
        together = self.seconds(
            [ring(4), ring(4)], "all-reduce", size, collectives="endpoint-delay: 0 ns, directions: one"
        )
        self.assert_near(together, 2 * 15 / 16 * size / 2 / 50e9)

    def test_axes_of_unlike_bandwidth(self):
        """Axes of 50 and 150 GB/s share the bytes one to three. An axis of 2 that is as fast as one of 16 cannot take half of them."""
        size = 32 * MIB
        self.assert_near(
            self.seconds([ring(8), ring(8, bandwidth=150)], "all-reduce", size), 2 * 63 / 64 * size / (2 * 200e9)
        )
        # In the row of 2 half of the buffer passes at most: the other axis has 1 - 1/32 - 1/2 of it at the least.
        fast = self.seconds([ring(2, bandwidth=5000), ring(16)], "reduce-scatter", size)
        self.assert_near(fast, (1 / 2 - 1 / 32) * size / 100e9)

    def test_slow_and_failed_links(self):
        """A slow link slows the whole ring. Without one of its links a ring takes as long as a row."""
        size = 16 * MIB
        config = self.folder / "config.yaml"
        for links, expected in (
            ("{dimension: 0, npus: 3, bandwidth: 0.5}", 2 * 7 / 8 * size / 50e9),
            ('{dimension: 0, npus: "3,4", failed: true}', 2 * 2 * 7 / 8 * size / 2 / 50e9),
        ):
            config.write_text(
                f"system:\n  network: {{dimensions: [{ring(8)}]}}\n  collectives: {{endpoint-delay: 0 ns}}\n"
                f"perturbation: {{links: [{links}]}}\n"
            )
            outcome = harness.orrery("show", "collective", config, "--kind=all-reduce", f"--bytes={size} B", "--json")
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assert_near(json.loads(outcome.out)["last_done_ps"] * 1e-12, expected, 0.15)

    def test_astra_sim_rules_stay(self):
        """ASTRA-sim's rules know one direction and one dimension after the other."""
        dimensions, size = f"{ring(4, latency=500)}, {ring(4, latency=500)}", 16 * MIB
        config = self.folder / "config.yaml"
        found = {}
        for more in ("", "collectives: {directions: one, dimension-order: ascending}"):
            config.write_text(f"system:\n  rules: astra-sim\n  network: {{dimensions: [{dimensions}]}}\n  {more}\n")
            outcome = harness.orrery("show", "collective", config, "--kind=all-reduce", f"--bytes={size} B", "--json")
            self.assertEqual(outcome.code, 0, outcome.err)
            found[more] = json.loads(outcome.out)["last_done_ps"]
        self.assertEqual(len(set(found.values())), 1)

    def test_one_answer(self):
        """A step whose groups are parts of a torus gives the same on any number of ranks, in the networks of messages and of links."""
        config = self.folder / "config.yaml"
        config.write_text(
            f"""system:
  network: {{dimensions: [{ring(4, latency=500)}, {ring(2, latency=500)}, {ring(2, latency=500)}]}}
  collectives: {{chunks: 2}}
  {COMPUTE}
workload:
  model: {{layers: 2, hidden: 256, heads: 8, sequence: 128}}
  parallel: {{tp: 4, dp: 4, zero: 1}}
"""
        )
        for network in (UNAWARE, AWARE):
            self.check_one_answer([config, f"--network={network}"], 16)


class SharedPorts(OneCollective):
    def test_bytes_add(self):
        """System: leaf and spine tiers behind one card. An all-to-all sends its bytes in both tiers, one after the other; with a port
        that is as fast as both tiers together, side by side."""
        size, chunks = 64 * MIB, "chunks: 16, endpoint-delay: 0 ns, dimension-order: round-robin"
        both = (3 / 4 + 7 / 8) * size / 50e9
        latencies = 16 * 2 * 2e-6
        shared = [tier(4), tier(8)]
        found = self.seconds(shared, "all-to-all", size, collectives=chunks)
        self.assert_near(found, both + latencies)
        apart = self.seconds([tier(4, port="leaf"), tier(8, port="spine")], "all-to-all", size, collectives=chunks)
        self.assertLess(apart, both * 0.7)
        fast = self.seconds(shared, "all-to-all", size, collectives=chunks, ports=", ports: {nic: 100 GB/s}")
        self.assertEqual(fast, apart)
        slow = self.seconds(shared, "all-to-all", size, collectives=chunks, ports=", ports: {nic: 25 GB/s}")
        self.assert_near(slow, 2 * both + latencies)

    def test_links_agree(self):
        """The network of links takes what the network of messages takes, and that of packets as much within 10 %. Nothing is faster
        than the card."""
        for sizes, kind in (((4, 4), "all-reduce"), ((4, 4), "all-to-all"), ((2, 8), "all-to-all")):
            dimensions, size = [tier(n) for n in sizes], 16 * MIB
            n = math.prod(sizes)
            sent = 2 * (n - 1) / n if kind == "all-reduce" else sum((m - 1) / m for m in sizes)
            with self.subTest(sizes=sizes, kind=kind):
                expected = self.seconds(dimensions, kind, size)
                self.assertGreaterEqual(expected, sent * size / 50e9)
                self.assert_near(self.seconds(dimensions, kind, size, AWARE), expected, 0.02)
                self.assert_near(self.seconds(dimensions, kind, size, PACKETS), expected, 0.1)

    def test_a_message_keeps_its_latency(self):
        """A message of 1,000 B between two NPUs at one switch takes as long behind a port as without one, but for a tick of each of the two
        links of the port."""
        chakra.write(self.folder / "0.et", [Node(1, chakra.SEND, comm_src=0, comm_dst=1, comm_tag=0, comm_size=1000)])
        chakra.write(self.folder / "1.et", [Node(1, chakra.RECV, comm_src=0, comm_dst=1, comm_tag=0, comm_size=1000)])
        chakra.write(self.folder / "2.et", [Node(1, chakra.COMP)])
        config = self.folder / "config.yaml"
        times = []
        for ports in ("nic", "nic"), ("leaf", "spine"):
            tiers = ", ".join(tier(2, port) for port in ports)
            config.write_text(
                f"system: {{network: {{model: congestion-aware, dimensions: [{tiers}]}}}}\n"
                "workload: {traces: [{npus: 0, file: 0.et}, {npus: 1, file: 1.et}, {npus: 2-3, file: 2.et}]}\n"
            )
            with h5py.File(self.run_once([config], "port.h5")) as file:
                times.append(int(max(file["npus/finish_time"])))
        self.assertEqual(times[1], 2020000)
        self.assertLessEqual(abs(times[0] - times[1]), 2)

    def test_tiers_of_one_bandwidth_share_by_default(self):
        """Two Switches in a row whose links have one bandwidth are tiers behind one card, unless they name different ports. Switches whose
        links differ, as NVLink and a network card, are apart."""
        size, chunks = 64 * MIB, "chunks: 16, endpoint-delay: 0 ns, dimension-order: round-robin"
        named = self.seconds([tier(4), tier(8)], "all-to-all", size, collectives=chunks)
        plain = self.seconds([tier(4, port=""), tier(8, port="")], "all-to-all", size, collectives=chunks)
        self.assertEqual(plain, named)
        unlike = [tier(4, port="", bandwidth=450), tier(8, port="")]
        self.assertEqual(
            self.seconds(unlike, "all-to-all", size, collectives=chunks),
            self.seconds([tier(4, "links", bandwidth=450), tier(8, "nic")], "all-to-all", size, collectives=chunks),
        )

    def step_time(self, results):
        with h5py.File(results) as file:
            return int(file["metrics/step_time"][()])

    def test_collectives_of_several_groups_take_turns(self):
        """Collectives in the tiers of a port, of different groups of an NPU: a step takes no less than its bytes need at the card."""
        config = self.folder / "config.yaml"
        config.write_text(
            f"""system:
  network: {{dimensions: [{tier(4)}, {tier(4)}]}}
  {COMPUTE}
workload:
  model: {{kind: layers, layers: [{{repeat: 4, parameters: 33554432, flops: 1000, activations: 4194304}}]}}
  parallel: {{tp: 4, dp: 4, micro-batches: 1}}
"""
        )
        results = self.check_one_answer([config], 16)
        with h5py.File(results) as file:
            sent = sum(int(each) for each in file["network/bytes"]) / 16
        self.assertGreaterEqual(self.step_time(results) * 1e-12, sent / 50e9)

    def test_one_answer_over_links(self):
        """A step over two tiers behind one card gives the same on any number of ranks, over links and with packets."""
        config = self.folder / "config.yaml"
        config.write_text(
            f"""system:
  network: {{dimensions: [{tier(2)}, {tier(4)}]}}
  {COMPUTE}
workload:
  model: {{layers: 1, hidden: 128, heads: 4, sequence: 64}}
  parallel: {{tp: 2, dp: 4}}
"""
        )
        for network in (AWARE, PACKETS):
            self.check_one_answer([config, f"--network={network}"], 8)

    def test_refusals(self):
        """Ports of no dimension, rates without units, ASTRA-sim's rules, shapes with several links where links are simulated."""
        config = self.folder / "config.yaml"
        pair = f"{tier(2)}, {tier(2)}"
        work = "workload: {model: {layers: 1, hidden: 64, heads: 4, sequence: 16}, parallel: {tp: 4}}\n"
        rings = f"{ring(4, more=', port: nic')}, {tier(2)}"
        for dimensions, more, texts in (
            (pair, "--set=system.network.ports.card=1 GB/s", ("system.network.ports.card", "no dimension", "port")),
            (pair, "--set=system.network.ports.nic=400", ("system.network.ports.nic", "without a unit")),
            (pair, "--set=system.network.ports=[1]", ("system.network.ports", "a mapping of names of ports")),
            (pair, "--set=system.rules=astra-sim", ("system.network.dimensions.0.port", "ASTRA-sim")),
            (rings, "--network=congestion-aware", ("system.network.dimensions.0.port", "Ring", "Switch")),
        ):
            with self.subTest(more):
                config.write_text(f"system: {{network: {{dimensions: [{dimensions}]}}}}\n{work}")
                outcome = harness.orrery("run", config, more, f"--output={self.folder / 'x.h5'}", "--force")
                self.assertNotEqual(outcome.code, 0)
                for text in texts:
                    self.assertIn(text, outcome.err)


if __name__ == "__main__":
    harness.main()
