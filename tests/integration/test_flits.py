#!/usr/bin/python3
"""Dimensions that are simulated flit by flit: times by hand, messages that go on over links, one answer on any number of ranks,
checkpoints, the results, latency over load, agreement with the reference program, and what is refused.

By hand a cycle takes 125 ps, and a packet of five flits over d links between routers 2 + 3 (d + 1) + 2 d + 2 + 4 = 11 + 5 d cycles. An NPU
acts on it in the next cycle."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))

import chakra  # noqa: E402
import checkpoints  # noqa: E402
import flit_cases  # noqa: E402
import h5py  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

CYCLE = 125  # ps
PACKET = 80  # bytes: five flits of 16 B
MESH = "{shape: Mesh2D, size: 4x4, bandwidth: 128 GB/s, flits: {FLITS}}"
SWITCH = "{shape: Switch, size: 3, bandwidth: 50 GB/s, latency: 500 ns}"
# 12 groups of four NPUs, so that 1, 2, 3 and 4 ranks have whole groups.
STEP = """system:
  network: {dimensions: [{shape: SHAPE, size: SIZE, bandwidth: 128 GB/s, flits: {FLITS}},
                         {shape: Ring, size: 4, bandwidth: 50 GB/s, latency: 500 ns},
                         {shape: Switch, size: 3, bandwidth: 25 GB/s, latency: 1 us}]}
  compute: {roofline: true, noise: 0.05, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
  communication: {rendezvous: RENDEZVOUS}
workload:
  model: {layers: 4, hidden: 64, heads: 8, sequence: 32}
  parallel: {tp: 4, sp: true, dp: 3, pp: 4, micro-batches: 2}
  iterations: 2
"""
STEPS = (
    ("Mesh2D", "2x2", "buffer: 3", "false"),
    ("Torus2D", "2x2", "virtual-channels: 2, seed: 3", "true"),
    ("Crossbar", "4", "preset: garnet", "false"),
    ("Mesh2D", "2x2", "routing: adaptive-xy-yx, flow-control: virtual-cut-through", "false"),
)


def message(id, source, to, size, kind=chakra.SEND, after=()):
    return Node(id, kind, data_deps=after, comm_src=source, comm_dst=to, comm_tag=0, comm_size=size)


def step(shape, size, flits, rendezvous):
    text = STEP.replace("SHAPE", shape).replace("SIZE", size).replace("FLITS", flits)
    return text.replace("RENDEZVOUS", rendezvous)


class Flits(harness.Folder):
    def config(self, dimensions, more=""):
        path = self.folder / "config.yaml"
        path.write_text(f"system:\n  network: {{dimensions: [{dimensions}]{more}}}\nworkload: {{traces: workload}}\n")
        return path

    def message_time(self, dimensions, num_npus, source, to, size):
        """Returns the time of one message in ps."""
        traces = [[Node(0, chakra.COMP, duration=0)] for _ in range(num_npus)]
        traces[source] = [message(0, source, to, size)]
        traces[to] = [message(0, source, to, size, chakra.RECV)]
        harness.write_workload(self.folder, traces)
        return harness.finish_times(self.run_once([self.config(dimensions)]))[to]

    def test_a_message_alone(self):
        """Zero load, further packets of the message, and a last packet that is shorter."""
        mesh = MESH.replace("FLITS", "")
        for to, hops in ((1, 1), (5, 2), (15, 6)):
            self.assertEqual(self.message_time(mesh, 16, 0, to, PACKET), (12 + 5 * hops) * CYCLE)
        self.assertEqual(self.message_time(mesh, 16, 0, 15, 8 * PACKET), (12 + 30 + 35) * CYCLE, "a flit each cycle")
        self.assertEqual(self.message_time(mesh, 16, 0, 15, 1), (12 + 30 - 4) * CYCLE, "one flit")
        self.assertEqual(self.message_time(mesh, 16, 0, 15, 17), (12 + 30 - 3) * CYCLE, "two flits")
        garnet = MESH.replace("FLITS", "preset: garnet, link: 3")
        self.assertEqual(self.message_time(garnet, 16, 0, 1, 16), (2 + 2 * 2 + 4 + 2 + 1) * CYCLE)
        torus = MESH.replace("Mesh2D", "Torus2D").replace("FLITS", "")
        self.assertEqual(self.message_time(torus, 16, 0, 15, PACKET), (2 + 9 + 2 * 3 + 2 + 4 + 1) * CYCLE)
        crossbar = MESH.replace("Mesh2D, size: 4x4", "Crossbar, size: 5").replace("FLITS", "")
        self.assertEqual(self.message_time(crossbar, 5, 0, 4, PACKET), 12 * CYCLE)

    def test_bridges(self):
        """A message enters the next dimension whole: after the flits two links of 500 ns, at 50 GB/s; and flits after links."""
        size = 10_000  # 625 flits, 125 packets
        flits_first = ", ".join((MESH.replace("FLITS", ""), SWITCH))
        flits_last = ", ".join((SWITCH, MESH.replace("FLITS", "")))
        in_mesh, on_links = (7 + 15 + 625 - 1 + 1) * CYCLE, 2 * 500_000 + size * 20
        self.assertEqual(self.message_time(flits_first, 48, 0, 6, size), in_mesh)
        self.assertEqual(self.message_time(flits_first, 48, 0, 16, size), on_links)
        self.assertEqual(self.message_time(flits_first, 48, 0, 16 + 6, size), in_mesh + on_links)
        self.assertEqual(self.message_time(flits_last, 48, 0, 1 + 3 * 6, size), on_links + in_mesh)

    def test_results(self):
        """A link with a buffer of one flit passes a flit every six cycles, the second one eight cycles after the first."""
        dimensions = MESH.replace("4x4", "2x1").replace("FLITS", "packet: 3, virtual-channels: 1, buffer: 1")
        self.assertEqual(self.message_time(dimensions, 2, 0, 1, 48), 25 * CYCLE)
        with h5py.File(self.folder / "results.h5") as results:
            table = results["network/flits"]
            rows = list(zip(*(table[name][:].tolist() for name in ("kind", "from", "to", "flits", "starved_cycles"))))
            self.assertEqual(rows, [(0, 0, 1, 3, 6), (1, 1, 1, 3, 0), (2, 0, 0, 3, rows[2][4])])
            self.assertEqual(table["occupancy"][0], 20)
            self.assertEqual(table["peak_occupancy"][0], 1)
            self.assertEqual(table["peak_waiting"][2], 3)
            self.assertEqual(table["cycle"][0], CYCLE)

    def test_one_answer(self):
        """A step on 12 groups of four NPUs, of each shape and kind of rules, gives the results of one rank on 2, 3 and 4 ranks."""
        for shape in STEPS[: harness.cases(2, 4, 4)]:
            with self.subTest(shape):
                path = self.folder / "step.yaml"
                path.write_text(step(*shape))
                self.check_one_answer([path, "--timeline"], 48, ranks=(2, 3, 4), scattered=False)
                self.clear_folder()

    def test_written_configuration(self):
        """The resolved configuration gives the same results."""
        path = self.folder / "step.yaml"
        path.write_text(step(*STEPS[3]))
        first = self.run_once([path])
        with h5py.File(first) as results:
            text = results["config/resolved"][()].decode()
        self.assertIn("shape: Mesh2D, size: 2x2", text)
        again = self.folder / "again.yaml"
        again.write_text(text)
        other = self.run_once([again], "again.h5")
        self.assertEqual(harness.finish_times(first), harness.finish_times(other))

    def test_traffic(self):
        """Latency is that of zero load, then grows, until the network is saturated."""
        path = self.config(MESH.replace("FLITS", ""))
        outcome = harness.orrery("show", "traffic", path, "--rates=0.01,0.3,1", "--cycles=5000", "--json")
        self.assertEqual(outcome.code, 0, outcome.err)
        low, middle, full = json.loads(outcome.out)["rates"]
        self.assertAlmostEqual(low["latency"], 11 + 5 * (low["routers"] - 1), delta=0.6)
        self.assertGreater(middle["latency"], low["latency"] + 1)
        self.assertEqual([rate["saturated"] for rate in (low, middle, full)], [False, False, True])
        text = harness.orrery("show", "traffic", path, "--pattern=transpose", "--rates=0.1", "--cycles=2000").out
        self.assertIn("transpose on 4 by 4 NPUs", text)
        for options, found in (
            (["--pattern=none"], "uniform, transpose"),
            (["--rates=1.5"], "1.5"),
            (["--dimension=7"], "7"),
            (["--cycles=4294967296"], "a whole number from 1 to 4294967295"),
        ):
            outcome = harness.orrery("show", "traffic", path, *options)
            self.assertEqual(outcome.code, 2, outcome.err)
            self.assertIn(found, outcome.err)
        crossbar = self.folder / "crossbar.yaml"
        crossbar.write_text(
            "system: {network: {dimensions: [{shape: Crossbar, size: 4, bandwidth: 128 GB/s, flits: {}}]}}\n"
        )
        outcome = harness.orrery("show", "traffic", crossbar, "--pattern=transpose")
        self.assertEqual(outcome.code, 2, outcome.err)
        self.assertIn("uniform, tornado, complement", outcome.err)

    def test_traffic_without_packets(self):
        """Where no packet begins there is no latency: a dash in the table, an empty field as CSV, no key as JSON."""
        path = self.config(MESH.replace("FLITS", ""))
        options = ("--rates=0.000001", "--cycles=1", "--warm-up=0")
        row = harness.orrery("show", "traffic", path, *options).out.splitlines()[-1]
        self.assertEqual(row.split()[1:], ["0.0000", "0", "-", "-", "-"])
        row = harness.orrery("show", "traffic", path, *options, "--csv").out.splitlines()[-1]
        self.assertEqual(row.split(",", 1)[1], "0,false,0,,,")
        (rate,) = json.loads(harness.orrery("show", "traffic", path, *options, "--json").out)["rates"]
        self.assertNotIn("latency", rate)

    def test_reference_program(self):
        """Rings of random order, size and rules take exactly the cycles of the plain program of the specification."""
        sys.path.insert(0, str(harness.shared("reference/transport/specsim.py").parent))
        import specsim

        draw = random.Random(20)
        for number in range(harness.cases(6, 30, 100)):
            topology = draw.choice(["mesh", "mesh", "torus", "crossbar"])
            k = {"mesh": draw.choice([2, 3, 4]), "torus": 3, "crossbar": draw.choice([2, 5, 9])}[topology]
            order = list(range(k if topology == "crossbar" else k * k))
            draw.shuffle(order)
            packet = draw.choice([1, 2, 3, 5, 9])
            control = draw.choice(["wormhole", "virtual-cut-through"])
            inputs = {
                "topology": topology,
                "k": k,
                "virtual_channels": draw.choice([2, 4, 6] if topology == "torus" else [1, 2, 3, 8]),
                "buffer_flits": max(draw.choice([1, 2, 4, 16]), packet if control != "wormhole" else 1),
                "packet_flits": packet,
                "flow_control": control,
                "route": draw.choice([0, 1]),
                "order": order,
                "packets_per_step": draw.choice([1, 2, 5]),
                "steps": draw.choice([2, 3, 8]),
            }
            with self.subTest(number=number, inputs=inputs):
                self.assertEqual(flit_cases.ring_cycles(inputs, 0), specsim.flit_ring(inputs)["cycles"])

    def test_golden_cases(self):
        """Quick cases of the golden data: latency and throughput of BookSim, and a ring to the cycle."""
        folder = harness.shared("reference/transport")
        for name in (
            "flit-ring-mesh4-snake-p5-n4",
            "flit-crossbar16-uniform-p5-v4b8-r0.4",
            "flit-torus4-uniform-p5-r0.3",
            "flit-mesh8-transpose-p5-adaptive-v4b8-saturated",
        ):
            case = json.loads((folder / f"{name}.json").read_text())
            check = flit_cases.check_ring if case["kind"] == "flit-ring" else flit_cases.check_traffic
            self.assertTrue(check(case, [1]), name)


class Refusals(harness.Folder):
    def refuse(self, text, *parts, ranks=0, more=()):
        path = self.folder / "config.yaml"
        path.write_text(text)
        outcome = harness.orrery("run", path, f"--output={self.folder}/x.h5", *more, ranks=ranks)
        self.assertEqual(outcome.code, 3, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)
        return outcome.err

    def test_rules(self):
        """Each rule that contradicts another one, or the rest of the system, is refused with its key, value and what to do."""
        for old, new, *parts in (
            ("Mesh2D, size: 2x2", "Ring, size: 4", "flits", "on a Ring", "Mesh2D, Torus2D or Crossbar"),
            ("Mesh2D, size: 2x2", "Switch, size: 4", "flits", "on a Switch", "Mesh2D, Torus2D or Crossbar"),
            ("128 GB/s,", "128 GB/s, latency: 1 ns,", "latency", "beside `flits`", "flits.link"),
            ("128 GB/s,", "128 GB/s, links: 2,", "links", "side by side beside `flits`"),
            ("Mesh2D", "Torus2D", "virtual-channels", "3, an odd number", "even"),
            ("buffer: 3", "routing: adaptive-xy-yx, virtual-channels: 3", "virtual-channels", "odd"),
            ("buffer: 3", "flow-control: virtual-cut-through, buffer: 4", "buffer", "4 flits", "5 or more"),
            ("128 GB/s", "150 GB/s", "bandwidth", "106.66", "whole number of ps"),
            ("network: {", "network: {model: packet, ", "system.network.model", "found packet", "congestion-aware"),
            ("network: {", "network: {model: congestion-unaware, ", "system.network.model", "congestion-unaware"),
            ("network: {", "network: {packet-size: 4 KiB, ", "packet-size", "whole messages"),
            ("system:\n", "system:\n  rules: astra-sim\n", "ASTRA-sim", "rules: physical"),
            ("workload:", "perturbation: {links: [{dimension: 1, npus: 0, bandwidth: 0.5}]}\nworkload:", "dimension 1"),
            ("buffer: 3", "buffer: 0", "buffer", "1"),
            ("buffer: 3", "buffers: 3", "buffers", "buffer"),
        ):
            flits = "virtual-channels: 3" if new == "Torus2D" else "buffer: 3"
            text = step("Mesh2D", "2x2", flits, "false")
            with self.subTest(new):
                self.assertIn(old, text)
                self.refuse(text.replace(old, new, 1), *parts)
        text = step("Torus2D", "2x2", "routing: adaptive-xy-yx", "false")
        self.refuse(text, "flits.routing", "adaptive-xy-yx on a Torus2D", "dor, or shape: Mesh2D")

    def test_entries_of_the_file(self):
        """A fault of flits names the entry of the file, which a Torus2D before it does not shift, and stands once."""
        path = self.folder / "config.yaml"
        torus = "{shape: Torus2D, size: 2x2, bandwidth: 100 GB/s, latency: 1 ns}"
        for system, mesh, key in (
            ("rules: astra-sim", MESH, "system.network.dimensions.1.flits'"),
            ("rules: physical", MESH.replace("GB/s,", "GB/s, oversubscription: 2,"), "dimensions.1.oversubscription'"),
            ("rules: physical", MESH.replace("GB/s,", "GB/s, links: 2,"), "dimensions.1.links'"),
        ):
            with self.subTest(key):
                dimensions = f"[{torus}, {mesh.replace('FLITS', '')}]"
                path.write_text(f"system:\n  {system}\n  network: {{dimensions: {dimensions}}}\n")
                outcome = harness.orrery("show", "traffic", path)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertEqual(outcome.err.count(key), 1, outcome.err)
                self.assertEqual(outcome.err.count("expected"), 1, outcome.err)

    def test_groups_over_ranks(self):
        """A group that lies on two ranks is refused once, with what would do."""
        text = step("Mesh2D", "2x2", "", "false").replace("size: 3", "size: 1").replace("dp: 3", "dp: 1")
        parts = ("one group of dimension 0 with `flits`", "on ranks", "all 4 NPUs of a group")
        message = self.refuse(text, *parts, ranks=3, more=["--partition=round-robin"])
        self.assertEqual(message.count(parts[0]), 1, message)

    def test_nothing_to_show(self):
        """Traffic over a system of links alone is refused: it needs a dimension with flits."""
        path = self.folder / "config.yaml"
        path.write_text(f"system:\n  network: {{dimensions: [{SWITCH}]}}\n")
        outcome = harness.orrery("show", "traffic", path)
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("no dimension with `flits`", outcome.err)


class Checkpoints(checkpoints.KilledRuns):
    def test_restart(self):
        """A run that is killed while flits are under way goes on, on other numbers of ranks, to the same results."""
        path = self.folder / "step.yaml"
        path.write_text(step(*STEPS[0]).replace("iterations: 2", "iterations: 6"))
        arguments = [path, "--timeline"]
        whole = self.run_once(arguments, "whole.h5")
        for _ in range(20):
            if self.kill(arguments, 2):
                break
        else:
            self.fail("runs end before they are killed")
        for ranks in (0, 3, 4):
            after = self.run_once([*arguments, f"--restart={self.file}"], "after.h5", ranks=ranks)
            self.assertEqual(harness.difference(whole, after), "", ranks)


if __name__ == "__main__":
    harness.main()
