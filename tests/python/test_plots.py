#!/usr/bin/python3
"""orrery.plots: what is drawn is what the results say, and every label can be read.

System: the small runs of examples.py. Expectation: shares of time that are drawn add up to those of /npus; each link has one cell of
a map; and in every picture, drawn as it is written into a file, no text reaches over the edge or over another text.
"""
import pathlib
import shutil
import tempfile
import unittest

import examples
import harness
import h5py
import numpy as np
import orrery
import orrery.plots
from matplotlib.backends.backend_agg import FigureCanvasAgg
from orrery.plots import link_maps, memory, step, style, timeline

LINE = "bandwidth: 10 GB/s, latency: 100 ns"
SHAPES = {  # of the second dimension; the first is a Switch of 2
    "ring": "{shape: Ring, size: 5, LINK}",
    "pair": "{shape: Ring, size: 2, LINK}",
    "mesh": "{shape: Mesh, size: 4, LINK}",
    "all": "{shape: FullyConnected, size: 5, LINK}",
    "switch": "{shape: Switch, size: 3, LINK, oversubscription: 3}",
    "fat-tree": "{shape: FatTree, ports: 4, size: 8, LINK}",
    "dragonfly": "{shape: Dragonfly, npus-per-router: 1, size: 4, LINK}",
}


class Pictures(unittest.TestCase):
    longMessage = True

    @classmethod
    def setUpClass(cls):
        if not hasattr(Pictures, "runs"):  # once for all classes
            Pictures.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
            unittest.addModuleCleanup(shutil.rmtree, Pictures.folder)
            Pictures.runs = {
                name: orrery.open(path, times="ps") for name, path in examples.all_of(Pictures.folder).items()
            }
            for run in Pictures.runs.values():
                unittest.addModuleCleanup(run.close)


class Readable(Pictures):
    def texts(self, figure):
        """[(text, its box in pixels)] of all texts that are drawn."""
        canvas = FigureCanvasAgg(figure)
        with style.look():
            canvas.draw()
        not_drawn = set()  # labels of ticks outside the axes
        for axes in figure.findobj(style.matplotlib.axes.Axes):
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                slack = 1e-9 * (high - low)
                for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                    if not low - slack <= tick.get_loc() <= high + slack or not tick.label1.get_visible():
                        not_drawn |= {tick.label1, tick.label2}
        texts = [
            text
            for text in figure.findobj(style.matplotlib.text.Text)
            if text.get_visible() and text.get_text().strip()
        ]
        return [
            (text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in texts if text not in not_drawn
        ]

    def check(self, name, figure):
        """No text reaches over the edge, and no two texts lie over each other."""
        texts = self.texts(figure)
        width, height = figure.canvas.get_width_height()
        self.assertGreater(len(texts), 5, name)
        for text, box in texts:
            self.assertTrue(
                box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1,
                f"{name}: {text!r} is clipped: {box}",
            )
        for row, (text, box) in enumerate(texts):
            for other, other_box in texts[row + 1 :]:
                wide = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
                high = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
                self.assertFalse(wide > 2 and high > 2, f"{name}: {text!r} and {other!r} lie over each other")

    def test_overviews(self):
        """The overview of every example run has only texts that can be read."""
        for name, run in self.runs.items():
            self.check(name, orrery.plots.overview(run))

    def test_a_part_of_the_time(self):
        """The overview of three NPUs in a part of the time has only texts that can be read."""
        run = self.runs["transformer"]
        self.check(
            "zoom", orrery.plots.overview(run, npus=[0, 3, 7], time=(run.simulated_time // 4, run.simulated_time // 2))
        )

    def test_kernel(self):
        """The picture of the kernel of every example run has only texts that can be read."""
        for name, run in self.runs.items():
            self.check(name, orrery.plots.kernel(run))

    def test_links(self):
        """The picture of each quantity of the links has only texts that can be read."""
        for quantity in orrery.plots.QUANTITIES:
            self.check(quantity, orrery.plots.links(self.runs["with_links"], quantity))

    def test_jupyter_gets_an_image(self):
        """Jupyter asks a picture for a PNG and gets one."""
        self.assertEqual(orrery.plots.kernel(self.runs["with_pool"])._repr_png_()[:8], b"\x89PNG\r\n\x1a\n")

    def test_what_cannot_be_drawn_is_said(self):
        """A run has no links or no timeline, or an NPU or a quantity does not exist. The error says what is missing."""
        with self.assertRaisesRegex(orrery.ResultsError, "congestion-aware"):
            orrery.plots.links(self.runs["transformer"])
        with self.assertRaisesRegex(orrery.ResultsError, "--timeline"):
            orrery.plots.overview(self.runs["with_pool"], npus=[0])
        with self.assertRaisesRegex(orrery.ResultsError, "NPUs 0 to 7"):
            orrery.plots.overview(self.runs["transformer"], npus=[8])
        with self.assertRaisesRegex(ValueError, "colour"):
            orrery.plots.links(self.runs["with_links"], "colour")


class Shares(Pictures):
    def test_coverage(self):
        """Overlapping intervals count once; a bin that is covered by half has 0.5."""
        edges = np.linspace(0, 40, 5)
        share = timeline.coverage(np.array([5, 8, 30, 12]), np.array([10, 15, 30, 13]), edges)
        np.testing.assert_allclose(share, [0.5, 0.5, 0, 0])
        np.testing.assert_allclose(timeline.coverage(np.array([-5]), np.array([100]), edges), 1)
        np.testing.assert_allclose(timeline.coverage(np.array([], dtype=int), np.array([], dtype=int), edges), 0)

    def test_states_add_up_to_the_times_of_the_npus(self):
        """The areas of the colours of a band are the causes in /breakdown: passes are parts of compute, and CPU alone one of cpu."""
        parts = {"compute": ("forward", "backward", "other compute", "compute"), "cpu": ("cpu", "CPU alone")}
        for name in ("transformer", "with_links"):
            run = self.runs[name]
            edges = np.linspace(0, run.simulated_time, timeline.COARSE_BINS + 1)
            for npus in ([0], [3, 6], range(8)):
                found = {
                    state: shares.sum() * np.diff(edges)[0]
                    for state, shares in timeline.states_over_time(run, npus, edges).items()
                }
                self.assertGreater(min(found["forward"], found["backward"], found["bubble"] if 0 in npus else 1), 0)
                for cause in run.breakdown.columns.drop("idle"):
                    time = sum(found.get(state, 0) for state in parts.get(cause, (cause,)))
                    self.assertAlmostEqual(
                        time / run.simulated_time,
                        run.breakdown.loc[list(npus), cause].mean() / run.simulated_time,
                        9,
                        f"{name}: {cause}",
                    )

    def test_shares_of_the_step_are_those_of_the_metrics(self):
        """The legend of the first panel has the shares that /metrics has."""
        run = self.runs["transformer"]
        with style.look():
            axes = style.picture(3, "")[2].subplots()
            step.draw_parts(axes, run)
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        with h5py.File(run.path) as file:
            shares = dict(zip(file["metrics/breakdown_names"].asstr(), file["metrics/breakdown"]))
        for label, share in shares.items():
            self.assertEqual(f"{100 * share:5.1f} %  {label}" in labels, share > 0, label)

    def test_bands_have_every_npu_once(self):
        """The bands of a timeline together have every NPU of the run once, in order."""
        for name, run in self.runs.items():
            if run.timeline is not None:
                self.assertEqual(
                    [npu for _, npus in timeline.bands_of(run) for npu in npus], list(range(run.num_npus)), name
                )

    def test_mean_usage(self):
        """4 bytes for a quarter of a bin, then 8 bytes; nothing after the end."""
        np.testing.assert_allclose(
            memory.mean_usage(np.array([0, 10, 60]), np.array([4, 8, 0]), np.array([0.0, 40.0, 80.0])), [7, 4]
        )


class Maps(unittest.TestCase):
    longMessage = True

    def maps(self, folder, shape):
        """The maps of both dimensions, with the table of links and the values: the number of each link, from 1."""
        config = (
            f"system: {{network: {{model: congestion-aware, dimensions: [{{shape: Switch, size: 2, {LINE}}}, {SHAPES[shape].replace('LINK', LINE)}]}}, "
            "compute: {roofline: true, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}}\n"
            "workload: {model: {kind: transformer, layers: 1, hidden: 64, heads: 2, sequence: 64, vocabulary: 64}, parallel: {dp: NPUS}}\n"
        )
        size = 2 * int(SHAPES[shape].partition("size: ")[2].partition(",")[0])
        run = orrery.open(
            examples.run(
                folder,
                shape,
                config.replace("NPUS", str(size)),
                "--set",
                "system.collectives.all-reduce=[direct, direct]"
                if shape in ("all", "switch")
                else "system.collectives.all-reduce=[direct, ring]",
            )
        )
        self.addCleanup(run.close)
        table, dimensions, found, stride = run.links, run.dimensions, [], 1
        for number, dimension in dimensions.iterrows():
            chosen = table["dimension"] == number
            values = np.arange(1.0, chosen.sum() + 1)
            found.append(
                (
                    link_maps.maps_of(
                        dimension["shape"], int(dimension["size"]), stride, run.num_npus, table[chosen], values
                    ),
                    values,
                )
            )
            stride *= int(dimension["size"])
        return found

    def test_every_link_has_one_cell(self):
        """For every shape: each value is in the maps exactly once, and all else is empty."""
        with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
            for shape in SHAPES:
                for maps, values in self.maps(pathlib.Path(folder), shape):
                    cells = np.concatenate([one.matrix.ravel() for one in maps])
                    self.assertEqual(sorted(cells[cells > 0]), list(values), shape)

    def test_where_there_is_no_link(self):
        """A mesh has no link past its ends, one with 4 NPUs 3 links each way; a ring has all."""
        with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
            (_, _), (mesh, _) = self.maps(pathlib.Path(folder), "mesh")
            self.assertEqual([np.isnan(one.matrix).sum(axis=1).tolist() for one in mesh], [[1, 1], [1, 1]])
            (_, _), (ring, _) = self.maps(pathlib.Path(folder), "ring")
            self.assertFalse(any(np.isnan(one.matrix).any() for one in ring))

    def test_large_maps_show_the_largest_of_neighbours(self):
        """A map of 2000 rows is joined to 500. Each row shows the largest of four, and empty cells stay empty."""
        matrix = np.full((2000, 3), np.nan)
        matrix[1001, 2], matrix[1002, 2], matrix[5, 0] = 7, 3, 1
        small, joins = link_maps.joined(matrix)
        self.assertEqual(joins, [4, 1])
        self.assertEqual(small.shape, (500, 3))
        self.assertEqual((small[250, 2], small[1, 0]), (7, 1))
        self.assertEqual(np.isfinite(small).sum(), 2)

    def test_scales(self):
        """Values over more than a factor of 50 get a logarithmic scale; values that are nearly equal one colour."""
        self.assertTrue(link_maps.Scale(np.array([1.0, 80.0]), "%").is_log)
        self.assertFalse(link_maps.Scale(np.array([1.0, 20.0]), "%").is_log)
        self.assertTrue(link_maps.Scale(np.array([10.0, 10.2]), "%").is_uniform)

    def test_a_link_that_never_waited_is_not_one_that_carried_nothing(self):
        """No link is transparent, a link without data white; a link with the value 0 has the first colour of the scale."""
        image = link_maps.Scale(np.array([0.0, 1.0, 100.0]), "messages").of(
            np.array([[np.nan, link_maps.UNUSED, 0.0, 100.0]])
        )
        self.assertEqual(image[0, 0, 3], 0)
        self.assertEqual(image[0, 1].tolist(), [1, 1, 1, 1])
        np.testing.assert_allclose(image[0, 2], link_maps.PALETTE(0.0))
        np.testing.assert_allclose(image[0, 3], link_maps.PALETTE(1.0))


if __name__ == "__main__":
    harness.main()
