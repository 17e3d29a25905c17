#!/usr/bin/python3
"""Links between the switches of a dimension: adaptive routes of a Dragonfly, slow and failed links that are named by their switches, and
one answer on any number of ranks."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

LINK = "bandwidth: 50 GB/s, latency: 500 ns"
FLY = f"{{shape: Dragonfly, npus-per-router: 2, size: 72, {LINK}}}"
TREE = f"{{shape: FatTree, ports: 4, size: 16, {LINK}}}"
AWARE, PACKET = "congestion-aware", "packet"


class SwitchLinks(harness.Folder):
    def config(self, dimensions, npus, model=AWARE, more=""):
        path = self.folder / "switches.yaml"
        path.write_text(
            f"system:\n  network: {{model: {model}, dimensions: [{dimensions}]}}\n  collectives: {{chunks: 4}}\n"
            "  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}\n"
            f"workload: {{model: llama3-8b, parallel: {{dp: {npus}}}}}\n{more}"
        )
        return path

    def time(self, config, kind, *more):
        """Returns how long a collective of 16 MiB takes, in ps."""
        size = [] if any(text.startswith("--bytes") for text in more) else ["--bytes=16 MiB"]
        shown = harness.orrery("show", "collective", config, f"--kind={kind}", "--json", *size, *more)
        self.assertEqual(shown.code, 0, shown.err)
        return json.loads(shown.out)["last_done_ps"]

    def checked(self, config, code):
        """Returns what `orrery check` says on standard error, in one line."""
        checked = harness.orrery("check", config)
        self.assertEqual(checked.code, code, checked.err)
        return " ".join(checked.err.split())

    def faults(self, *entries):
        return "perturbation:\n  links: [" + ", ".join("{" + entry + "}" for entry in entries) + "]\n"

    def test_adaptive_routes_carry_a_ring(self):
        """Two messages of a ring share a link of minimal routes on two Dragonflies, and the ring takes more than 1.5 times as long as on a
        Switch. Adaptive routes, the default, keep it within 15 %."""
        for shape, npus in (
            ("Dragonfly, npus-per-router: 2", 72),
            ("Dragonfly, npus-per-router: 1, routers: 4, global-links: 1", 20),
        ):
            more = ["--set=system.collectives.all-reduce=[ring]", "--set=system.collectives.chunks=1", "--bytes=64 MiB"]
            of_switch = self.time(self.config(f"{{shape: Switch, size: {npus}, {LINK}}}", npus), "all-reduce", *more)
            config = self.config(f"{{shape: {shape}, size: {npus}, {LINK}}}", npus)
            minimal = self.time(config, "all-reduce", *more, "--set=system.network.dimensions.0.routing=minimal")
            self.assertGreater(minimal, 1.5 * of_switch)
            self.assertLess(self.time(config, "all-reduce", *more), 1.15 * of_switch)

    def test_adaptive_routes_do_not_slow_an_all_to_all(self):
        """An all-to-all on a Dragonfly of 72, where all links between groups are busy. Expectation: at most 5 % more than on minimal routes."""
        config = self.config(FLY, 72)
        minimal = self.time(config, "all-to-all", "--set=system.network.dimensions.0.routing=minimal")
        self.assertLess(self.time(config, "all-to-all"), 1.05 * minimal)

    def test_a_failed_link_costs_bandwidth(self):
        """A failed link lengthens an all-to-all, and so does a failed switch without NPUs, in both networks that simulate links."""
        cases = (
            (TREE, 16, "edge 0, aggregation 1", "aggregation 1"),
            (TREE, 16, "aggregation 0, core 1", "core 1"),
            (FLY, 72, "router 0, router 1", None),
        )
        for dimension, npus, link, switch in cases:
            for model in (AWARE, PACKET):
                if model == PACKET and npus == 72:
                    continue  # takes seconds
                whole = self.time(self.config(dimension, npus, model), "all-to-all")
                of_link = self.faults(f"dimension: 0, switches: [{link}], failed: true")
                without = self.time(self.config(dimension, npus, model, of_link), "all-to-all")
                self.assertGreater(without, whole)
                if switch:
                    of_switch = self.faults(f"dimension: 0, switches: [{switch}], failed: true")
                    self.assertGreater(self.time(self.config(dimension, npus, model, of_switch), "all-to-all"), whole)

    def test_a_slow_link_counts(self):
        """A link of a FatTree and a router of a Dragonfly with half and a tenth of their bandwidth. Expectation: an all-to-all takes longer
        the slower they are."""
        for dimension, npus, link in ((TREE, 16, "[edge 0, aggregation 1]"), (FLY, 72, "router 3")):
            whole = self.time(self.config(dimension, npus), "all-to-all")
            times = [
                self.time(
                    self.config(dimension, npus, AWARE, self.faults(f"dimension: 0, switches: {link}, bandwidth: {x}")),
                    "all-to-all",
                )
                for x in (0.5, 0.1)
            ]
            self.assertLess(whole, times[0])
            self.assertLess(times[0], times[1])

    def test_a_slow_switch_slows_its_npus_in_all_networks(self):
        """All ports of a named Switch have half of the bandwidth: an all-reduce takes twice as long."""
        switch = f"{{shape: Switch, size: 8, {LINK}}}"
        slow = self.faults("dimension: 0, switches: switch 0, bandwidth: 0.5")
        for model in ("congestion-unaware", AWARE, PACKET):
            whole = self.time(self.config(switch, 8, model), "all-reduce")
            half = self.time(self.config(switch, 8, model, slow), "all-reduce")
            self.assertAlmostEqual(half / whole, 2, delta=0.15)
        # The second of two groups is slow: collectives of the first one are not.
        both = f"{switch}, {{shape: Switch, size: 2, {LINK}}}"
        slow = self.faults("dimension: 0, switches: switch 1, bandwidth: 0.1")
        first = [self.time(self.config(both, 16, AWARE, more), "all-reduce", "--npus=8") for more in ("", slow)]
        self.assertEqual(*first)

    def test_one_of_several_links_fails_at_a_time(self):
        """With two links side by side a failure halves the bandwidth, and a second one takes the way."""
        tree = TREE.replace("ports: 4", "ports: 4, links: 2")
        fault = "dimension: 0, switches: [edge 0, aggregation 1], failed: true"
        times = [
            self.time(self.config(tree, 16, AWARE, self.faults(*faults)), "all-to-all")
            for faults in ([fault], [fault] * 2)
        ]
        half = self.faults("dimension: 0, switches: [edge 0, aggregation 1], bandwidth: 0.5")
        self.assertEqual(times[0], self.time(self.config(tree, 16, AWARE, half), "all-to-all"))
        self.assertNotEqual(*times)

    def test_one_answer_on_any_number_of_ranks(self):
        """A step on a Dragonfly of 24, with and without a failed link. Expectation: the results on one rank are those on several."""
        fly = f"{{shape: Dragonfly, npus-per-router: 2, size: 24, routers: 4, global-links: 2, {LINK}}}"
        for more in ("", self.faults("dimension: 0, switches: [router 0, router 1], failed: true")):
            self.check_one_answer([self.config(fly, 24, AWARE, more)], 24)

    def test_refusals(self):
        """What cannot be is refused at its key, with what can be."""
        cases = (
            (
                TREE,
                16,
                "dimension: 0, switches: leaf 3, failed: true",
                ("links.0.switches", "found the switch 'leaf 3'", "'edge 0' to 'edge 7'"),
            ),
            (
                TREE,
                16,
                "dimension: 0, switches: edge 0, failed: true",
                ("the only switch of NPU 0", "Make the switch slow"),
            ),
            (
                TREE,
                16,
                "dimension: 0, switches: [edge 0, core 0], failed: true",
                ("no link joins edge 0 and core 0",),
            ),
            (
                TREE,
                16,
                "dimension: 0, switches: [edge 0, edge 1, edge 2], failed: true",
                ("or a list of two",),
            ),
            (TREE, 16, "dimension: 0, switches: core 0, npus: 3, bandwidth: 0.5", ("found NPUs beside switches",)),
            (
                f"{{shape: Ring, size: 8, {LINK}}}",
                8,
                "dimension: 0, switches: switch 0, bandwidth: 0.5",
                ("a dimension with switches",),
            ),
            (TREE, 16, "dimension: 0, bandwidth: 0.5", ("npus",)),
        )
        for dimension, npus, fault, texts in cases:
            refused = self.checked(self.config(dimension, npus, AWARE, self.faults(fault)), 3)
            for text in texts:
                self.assertIn(text, refused, fault)
        tree = f"{{shape: FatTree, ports: 4, size: 4, oversubscription: 2, {LINK}}}"
        alone = self.faults("dimension: 0, switches: [edge 0, aggregation 0], failed: true")
        self.assertIn(
            "no working link leads from position 0 of the group to position 2",
            self.checked(self.config(tree, 4, AWARE, alone), 3),
        )
        packets = self.config(FLY.replace("Dragonfly", "Dragonfly, routing: adaptive"), 72, PACKET)
        self.assertIn("routing': found adaptive", self.checked(packets, 3))
        self.assertIn("routing is minimal here", self.checked(self.config(FLY, 72, PACKET), 0))


if __name__ == "__main__":
    harness.main()
