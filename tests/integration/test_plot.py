#!/usr/bin/python3
"""scripts/plot_results.py draws what the program writes, with and without a timeline, and says what it cannot read."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402

SCRIPT = harness.SOURCE / "scripts/plot_results.py"


class Plot(harness.Folder):
    def plot(self, *arguments):
        return subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, timeout=120)

    def results(self, *more):
        workload = random_workload.Workload(3)
        arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
        return self.run_once(arguments + list(more))

    def test_draws_a_picture(self):
        for more in ((), ("--timeline",)):
            picture = self.folder / f"picture{len(more)}.png"
            outcome = self.plot(self.results(*more), "--output", picture)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(picture.stat().st_size, 10_000)

    def test_draws_the_local_memory(self):
        """A panel more than without tensors; with the size and without."""
        heights = []
        for size, tensors in ((None, []), (None, ["x", "1000"]), ("80 GiB", ["x", "1000"])):
            nodes = [chakra.Node(1, chakra.COMP, duration=5, outputs=tensors), chakra.Node(2, chakra.COMP, data_deps=[1], duration=5, inputs=tensors)]
            chakra.write(self.folder / "w.et", nodes)
            config = self.folder / "config.yaml"
            memory = f", compute: {{local-memory: {{size: {size}}}}}" if size else ""
            config.write_text(f"system: {{network: {{dimensions: [{{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}}]}}{memory}}}\nworkload: {{traces: {{all: w.et}}}}\n")
            outcome = self.plot(self.run_once([config, "--timeline"]), "--output", self.folder / "memory.png")
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            heights.append(int.from_bytes((self.folder / "memory.png").read_bytes()[20:24], "big"))
        self.assertGreater(heights[1], heights[0])
        self.assertEqual(heights[1], heights[2])

    def test_says_which_npu_is_not_there(self):
        outcome = self.plot(self.results("--timeline"), "--npus", "0,100000")
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("100000", outcome.stderr)

    def test_says_what_it_cannot_read(self):
        text = self.folder / "no.h5"
        text.write_text("no results")
        for path in (text, self.folder / "missing.h5"):
            outcome = self.plot(path)
            self.assertNotEqual(outcome.returncode, 0)
            self.assertIn(path.name, outcome.stderr)
            self.assertNotIn("Traceback", outcome.stderr)


class Links(harness.Folder):
    """scripts/plot_links.py, of every shape and quantity."""

    def plot(self, *arguments):
        script = harness.SOURCE / "scripts/plot_links.py"
        return subprocess.run([sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True, timeout=120)

    def results(self, *more):
        system = harness.System(("Ring", "FullyConnected", "Switch", "Ring"), (3, 3, 2, 2))
        nodes = [chakra.Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=1 << 20)]
        return self.run_once([harness.write_workload(self.folder, [nodes] * 36)] + system.write(self.folder) + list(more))

    def test_draws_every_shape(self):
        results = self.results("--network=congestion-aware")
        for quantity in ("busy", "queueing", "bytes", "peak"):
            picture = self.folder / f"{quantity}.png"
            outcome = self.plot(results, "--quantity", quantity, "--output", picture)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertGreater(picture.stat().st_size, 10_000)

    def test_draws_switches_of_other_kinds(self):
        link = "bandwidth: 10 GB/s, latency: 100 ns"
        dimensions = (f"{{shape: Switch, size: 2, {link}, oversubscription: 2}}, {{shape: Mesh, size: 3, {link}}}, {{shape: FatTree, ports: 4, size: 8, {link}}}, "
                      f"{{shape: Dragonfly, npus-per-router: 1, size: 4, {link}}}")
        chakra.write(self.folder / "all.et", [chakra.Node(1, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=1 << 20)])
        config = self.folder / "config.yaml"
        config.write_text(f"system: {{network: {{model: congestion-aware, dimensions: [{dimensions}]}}}}\nworkload: {{traces: {{all: all.et}}}}\n")
        outcome = self.plot(self.run_once([config]), "--output", self.folder / "kinds.png")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertGreater((self.folder / "kinds.png").stat().st_size, 10_000)

    def test_says_that_there_are_no_links(self):
        outcome = self.plot(self.results())
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("congestion-aware", outcome.stderr)
        self.assertNotIn("Traceback", outcome.stderr)


if __name__ == "__main__":
    harness.main()
