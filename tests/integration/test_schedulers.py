#!/usr/bin/python3
"""Schedulers of chunks and of collectives: results do not depend on ranks or folding, orders are as documented, the studies hold.

The system of most tests: 48 NPUs in three dimensions, with replicas over two of them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

# Replicas over two dimensions and uneven NPUs, so that collectives of several dimensions have members that come at different times.
CONFIG = """system:
  network:
    dimensions:
      - {shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}
      - {shape: FullyConnected, size: 3, bandwidth: 40 GB/s, latency: 500 ns}
      - {shape: Switch, size: 4, bandwidth: 25 GB/s, latency: 1 us}
  collectives: {chunks: 12, active-chunks: %d, dimension-order: %s, chunk-order: %s, overlap-latency: %s}
  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 2 TB/s}%s}
workload:
  model: {layers: 4, hidden: 1024, heads: 16, sequence: 512}
  parallel: {tp: 4, dp: 12, zero: 1}
"""
CASES = [
    (1, "themis", "smallest-chunk-first", "true"),
    (2, "round-robin", "fifo", "false"),
    (1, "themis", "fewest-phases-first", "false"),
]


class Schedulers(harness.Folder):
    def config(self, *values):
        path = self.folder / "config.yaml"
        path.write_text(CONFIG % values)
        return str(path)

    def test_results_are_the_same_on_any_number_of_ranks(self):
        """Three schedulers of chunks, with noise so that members come at different times, give the same results on 1 to 8 ranks."""
        for case in CASES[:1] if harness.FEWER_CASES else CASES:
            with self.subTest(case):
                path = self.config(*case, ", noise: 0.05")
                first = self.run_once([path], "first.h5")
                self.assertGreater(len(set(harness.finish_times(first))), 5)
                for ranks in (2, 3) if harness.FEWER_CASES else (2, 3, 4, 8):
                    other = self.run_once([path], "other.h5", ranks=ranks)
                    self.assertEqual(harness.difference(first, other), "", f"{ranks} ranks")

    def test_results_are_the_same_folded(self):
        """Without noise the NPUs are folded into one class, and the results are the same."""
        for case in CASES:
            with self.subTest(case):
                path = self.config(*case, "")
                outcome = harness.orrery(
                    "run", path, "--fold=true", "--verbose", f"--output={self.folder / 'folded.h5'}", "--force"
                )
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assertIn("NPUs in 1 class", outcome.out)
                self.assertEqual(harness.difference(self.run_once([path], "first.h5"), self.folder / "folded.h5"), "")

    def test_each_order_takes_its_own_time(self):
        """Four orders of chunks give four times, and the configuration kept in the results gives each again."""
        import h5py

        times = set()
        for case in CASES + [(1, "ascending", "fifo", "false")]:
            first = self.run_once([self.config(*case, "")], "first.h5")
            times.add(max(harness.finish_times(first)))
            with h5py.File(first) as results:
                (self.folder / "again.yaml").write_text(results["config/resolved"][()].decode())
            again = self.run_once([str(self.folder / "again.yaml")], "again.h5")
            self.assertEqual(harness.finish_times(first), harness.finish_times(again))
        self.assertEqual(len(times), len(CASES) + 1)

    def test_wrong_orders_are_refused(self):
        """Misspelt orders are refused with a message that names the right ones; an algorithm that a scheduler would need and that has
        no rule is refused."""
        path = self.config(1, "themes", "shortest", "maybe", "")
        outcome = harness.orrery("check", path)
        self.assertEqual(outcome.code, 3)
        for word in (
            "collectives.dimension-order",
            "'themes'",
            "Did you mean 'themis'?",
            "collectives.chunk-order",
            "smallest-chunk-first",
            "collectives.overlap-latency",
        ):
            self.assertIn(word, outcome.err)
        trees = "--set=system.collectives.all-reduce=[doubleBinaryTree, doubleBinaryTree, doubleBinaryTree]"
        outcome = harness.orrery(
            "show",
            "collective",
            self.config(1, "themis", "fifo", "false", ""),
            "--kind=all-reduce",
            "--bytes=1MiB",
            trees,
        )
        self.assertEqual(outcome.code, 3)
        self.assertIn("doubleBinaryTree does not carry out reduce-scatter (part of all-reduce)", outcome.err)

    def test_ready_collectives_start_in_the_order_chosen(self):
        """While collective 1 is under way, collectives 20, 30 and 10 become ready, in this order; their priorities are 1, 9 and 5. Each
        of four orders starts them as documented, on 1 and 2 ranks and folded."""

        def collective(id, after, **more):
            return chakra.Node(
                id, chakra.COLL, f"collective {id}", after, comm_type=chakra.ALL_REDUCE, comm_size=10**6, **more
            )

        nodes = [collective(1, [])]
        for k, (id, priority) in enumerate([(20, 1), (30, 9), (10, 5)]):
            nodes.append(chakra.Node(2 + k, chakra.COMP, data_deps=[1 + k] if k else [], duration=1))
            nodes.append(collective(id, [2 + k], comm_priority=priority))
        traces = harness.write_workload(self.folder, [nodes] * 4).split("=")[1]
        config = self.folder / "config.yaml"
        for order, expected in (
            ("lowest-id", [1, 10, 20, 30]),
            ("fifo", [1, 20, 30, 10]),
            ("lifo", [1, 10, 30, 20]),
            ("priority", [1, 30, 10, 20]),
        ):
            with self.subTest(order):
                config.write_text(
                    "system:\n  network: {dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}]}\n"
                    f"  communication: {{order: {order}}}\nworkload: {{traces: {traces}}}\n"
                )
                first = self.run_once([config, "--timeline"], "first.h5")
                import h5py

                with h5py.File(first) as results:
                    rows = results["timeline"]
                    mine = sorted(
                        (int(start), int(node))
                        for npu, node, start in zip(rows["npu"], rows["node"], rows["start"])
                        if npu == 0
                    )
                self.assertEqual([node for _, node in mine if node not in (2, 3, 4)], expected)
                for more in (["--partition=round-robin"], ["--fold=true"]):
                    other = self.run_once([config, "--timeline", *more], "other.h5", ranks=2)
                    self.assertEqual(harness.difference(first, other), "", more)

    @harness.long
    def test_the_studies_agree_with_what_was_published(self):
        """The studies of Themis and of the wafer fail if their figures are not those published. They draw their plots."""
        for name, options in (("themis", ["--sizes=100"] if harness.FEWER_CASES else []), ("wafer", [])):
            plot = self.folder / f"{name}.png"
            done = harness.run_script(
                f"scripts/studies/{name}", f"--plot={plot}", f"--orrery={harness.BINARY}", *options
            )
            self.assertEqual(done.code, 0, done.out + done.err)
            self.assertGreater(plot.stat().st_size, 10000)


if __name__ == "__main__":
    harness.main()
