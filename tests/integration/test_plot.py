#!/usr/bin/python3
"""The plot scripts draw what the program writes, and say in one line what they cannot read or draw.

System: small runs, with and without a timeline, in both networks. Expectation: a PNG of the asked size, or a message that names the
file or the argument. tests/python/test_plots.py looks at what is drawn.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402


class Plot(harness.Folder):
    """scripts/plot_results.py on a random workload."""

    def plot(self, *arguments):
        return harness.run_script("scripts/plot_results.py", *arguments)

    def results(self, *more):
        workload = random_workload.Workload(3)
        arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
        return self.run_once(arguments + list(more))

    def test_draws_a_picture(self):
        """Results with and without a timeline give a picture."""
        for more in ((), ("--timeline",)):
            picture = self.folder / f"picture{len(more)}.png"
            outcome = self.plot(self.results(*more), "--output", picture)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(picture.stat().st_size, 10_000)

    @harness.long
    def test_tensors_add_a_panel(self):
        """4 NPUs on a ring: the picture of a run with tensors is higher by a panel than that without, whether the memory has a size or
        not."""
        heights = []
        for size, tensors in ((None, []), (None, ["x", "1000"]), ("80 GiB", ["x", "1000"])):
            nodes = [
                chakra.Node(1, chakra.COMP, duration=5, outputs=tensors),
                chakra.Node(2, chakra.COMP, data_deps=[1], duration=5, inputs=tensors),
            ]
            chakra.write(self.folder / "w.et", nodes)
            config = self.folder / "config.yaml"
            memory = f", compute: {{local-memory: {{size: {size}}}}}" if size else ""
            config.write_text(
                f"system: {{network: {{dimensions: [{{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}}]}}{memory}}}\nworkload: {{traces: {{all: w.et}}}}\n"
            )
            outcome = self.plot(self.run_once([config, "--timeline"]), "--output", self.folder / "memory.png")
            self.assertEqual(outcome.code, 0, outcome.err)
            heights.append(int.from_bytes((self.folder / "memory.png").read_bytes()[20:24], "big"))
        self.assertGreater(heights[1], heights[0])
        self.assertEqual(heights[1], heights[2])

    @harness.long
    def test_draws_a_part_of_the_time_for_some_npus(self):
        """The script draws NPUs 0 and 1 from 0 us to 5 us, writes the picture and says where it is."""
        picture = self.folder / "part.png"
        outcome = self.plot(self.results("--timeline"), "--npus", "0-1", "--time", "0 us,5 us", "--output", picture)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn(f"wrote {picture}", outcome.out)

    def test_says_which_argument_is_wrong(self):
        """A time has no unit or the wrong order, NPUs are no list, or the run kept no timeline: the script ends with an error that names it."""
        results = self.results()
        for option, value, word in (
            ("--time", "1,2 ms", "1,2 ms"),
            ("--time", "2 ms,1 ms", "the earlier one first"),
            ("--npus", "first", "first"),
            ("--npus", "0", "--timeline"),
        ):
            outcome = self.plot(results, option, value)
            self.assertNotEqual(outcome.code, 0)
            self.assertIn(word, outcome.err)
            self.assertNotIn("Traceback", outcome.err)

    def test_says_where_it_cannot_write(self):
        """The picture would be in a missing folder or of an unknown format: the script ends with one line that names the file."""
        for name in ("no-folder/picture.png", "picture.abc"):
            outcome = self.plot(self.results(), "--output", self.folder / name)
            self.assertNotEqual(outcome.code, 0)
            self.assertEqual(len(outcome.err.strip().splitlines()), 1, outcome.err)
            self.assertIn(name, outcome.err)

    def test_an_npu_that_is_not_there_is_refused(self):
        """--npus with an NPU that the run has not ends with an error that names it."""
        outcome = self.plot(self.results("--timeline"), "--npus", "0,100000")
        self.assertNotEqual(outcome.code, 0)
        self.assertIn("100000", outcome.err)

    def test_files_that_cannot_be_read_are_refused(self):
        """A text and a missing file end with an error that names the file, not with a traceback."""
        text = self.folder / "no.h5"
        text.write_text("no results")
        for path in (text, self.folder / "missing.h5"):
            outcome = self.plot(path)
            self.assertNotEqual(outcome.code, 0)
            self.assertIn(path.name, outcome.err)
            self.assertNotIn("Traceback", outcome.err)


class Links(harness.Folder):
    """scripts/plot_links.py on an all-to-all of 36 NPUs in four dimensions."""

    def plot(self, *arguments):
        return harness.run_script("scripts/plot_links.py", *arguments)

    def results(self, *more):
        system = harness.System(("Ring", "FullyConnected", "Switch", "Ring"), (3, 3, 2, 2))
        nodes = [chakra.Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=1 << 20)]
        return self.run_once(
            [harness.write_workload(self.folder, [nodes] * 36)] + system.write(self.folder) + list(more)
        )

    @harness.long
    def test_draws_every_quantity(self):
        """Each quantity of the links of rings, switches and fully connected dimensions gives a picture."""
        results = self.results("--network=congestion-aware")
        for quantity in ("busy", "queueing", "bytes", "peak"):
            picture = self.folder / f"{quantity}.png"
            outcome = self.plot(results, "--quantity", quantity, "--output", picture)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(picture.stat().st_size, 10_000)

    @harness.long
    def test_draws_switches_of_other_kinds(self):
        """Links of an oversubscribed switch, a mesh, a fat tree and a dragonfly give a picture."""
        link = "bandwidth: 10 GB/s, latency: 100 ns"
        dimensions = (
            f"{{shape: Switch, size: 2, {link}, oversubscription: 2}}, {{shape: Mesh, size: 3, {link}}}, {{shape: FatTree, ports: 4, size: 8, {link}}}, "
            f"{{shape: Dragonfly, npus-per-router: 1, size: 4, {link}}}"
        )
        chakra.write(
            self.folder / "all.et", [chakra.Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=1 << 20)]
        )
        config = self.folder / "config.yaml"
        config.write_text(
            f"system: {{network: {{model: congestion-aware, dimensions: [{dimensions}]}}}}\nworkload: {{traces: {{all: all.et}}}}\n"
        )
        outcome = self.plot(self.run_once([config]), "--output", self.folder / "kinds.png")
        self.assertEqual(outcome.code, 0, outcome.err)
        width, height = (
            int.from_bytes((self.folder / "kinds.png").read_bytes()[at : at + 4], "big") for at in (16, 20)
        )
        self.assertEqual(width, 1650)
        self.assertLess(height, 2 * width)

    def test_draws_graphs(self):
        """Links of a graph give a picture, in both networks with links: leaves, spines and switches in servers, of which some links carry
        nothing; and a ring of hosts without switches."""
        ring = self.folder / "ring.yaml"
        links = ", ".join(f"[{h}, {(h + 1) % 4}, 10 GB/s, 1 us]" for h in range(4))
        ring.write_text(
            f"system: {{network: {{graph: {{hosts: 4, links: [{links}]}}, dimensions: [{{shape: Ring, size: 4}}]}}}}\n"
        )
        nodes = [[chakra.Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)]] * 4
        harness.write_workload(self.folder, nodes)
        for number, arguments in enumerate(
            (
                [harness.SOURCE / "configs/graph-16.yaml", "--network=congestion-aware"],
                [harness.SOURCE / "configs/graph-16.yaml"],
                [ring, "--network=congestion-aware", f"--set=workload.traces={self.folder / 'workload'}"],
            )
        ):
            picture = self.folder / f"graph{number}.png"
            outcome = self.plot(self.run_once(arguments), "--output", picture)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertGreater(picture.stat().st_size, 10_000)

    def test_tiers_of_a_graph(self):
        """Hosts 0 to 3 with a switch for each pair, two leaves and a spine, and a switch that nothing is joined to."""
        sys.path.insert(0, str(harness.SOURCE / "scripts/python"))
        from orrery.plots import graph_map

        links = [(0, 4), (1, 4), (2, 5), (3, 5), (0, 6), (1, 6), (2, 7), (3, 7), (6, 8), (7, 8)]
        x, tiers = graph_map.places_of(4, links, 10)
        self.assertEqual(tiers.tolist(), [0, 0, 0, 0, -1, -1, 1, 1, 2, 3])
        self.assertEqual(x.tolist(), [0.125, 0.375, 0.625, 0.875, 0.25, 0.75, 0.25, 0.75, 0.5, 0.5])
        crossed = [(0, 4), (1, 4), (2, 5), (3, 5), (0, 7), (1, 7), (2, 6), (3, 6), (6, 8), (7, 8)]
        self.assertEqual(graph_map.places_of(4, crossed, 9)[0][6:8].tolist(), [0.75, 0.25])
        self.assertEqual(graph_map.places_of(2, [(0, 2), (1, 2)], 3)[1].tolist(), [0, 0, 1])

    def test_results_without_links_are_refused(self):
        """Results of the congestion-unaware network end with an error that names the other network."""
        outcome = self.plot(self.results())
        self.assertNotEqual(outcome.code, 0)
        self.assertIn("congestion-aware", outcome.err)
        self.assertNotIn("Traceback", outcome.err)


if __name__ == "__main__":
    harness.main()
