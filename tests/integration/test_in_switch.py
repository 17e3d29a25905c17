#!/usr/bin/python3
"""Switches that reduce and copy, and binomial trees.

The system of most tests: 64 NPUs in three dimensions, two of which are switches with in-switch operations."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

# 64 NPUs: tensor parallelism and part of the data parallelism in switches, some of whose links are slow.
SYSTEM = """system:
  network:
    dimensions:
      - {shape: Switch, size: 4, bandwidth: 450 GB/s, latency: 468 ns, in-switch-operations: 6}
      - {shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}
      - {shape: Switch, size: 4, bandwidth: 400 Gb/s, latency: 1 us, in-switch-operations: 2}
  collectives:
    all-reduce: [inSwitch, ring, inSwitch]
    all-gather: [inSwitch, ring, inSwitch]
    reduce-scatter: [inSwitch, ring, inSwitch]
    broadcast: [inSwitch, binomialTree, binomialTree]
    reduce: [binomialTree, ring, inSwitch]
    chunks: 4
    active-chunks: 2
  communication: {streams: 2, rendezvous: %s}
  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
"""
MODEL = """workload:
  model: {layers: 8, hidden: 2048, heads: 32, sequence: 1024}
  parallel: {tp: 4, sp: true, dp: 4, pp: 4, micro-batches: 4}
"""
SLOW = """perturbation:
  slow-npus: [{npus: "3,17,40-43", compute: 0.8}]
  links: [{dimension: 0, npus: "2,20-23", bandwidth: 0.5}, {dimension: 2, npus: "9,25,63", bandwidth: 0.1, latency: 3}]
"""


class InSwitch(harness.Folder):
    def config(self, text, name="config.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def kinds(self, rendezvous):
        """Writes the traces of 64 NPUs that come at different times to collectives of every kind. Returns the configuration."""
        for npu in range(64):
            nodes = [Node(0, chakra.COMP, duration=1 + npu * 37 % 64)]
            for kind in (
                chakra.ALL_REDUCE,
                chakra.BROADCAST,
                chakra.REDUCE,
                chakra.ALL_GATHER,
                chakra.REDUCE_SCATTER,
                chakra.BARRIER,
            ):
                nodes += [
                    Node(2 * kind + 1, chakra.COLL, data_deps=[nodes[-1].id], comm_type=kind, comm_size=1 << 20),
                    Node(2 * kind + 2, chakra.COMP, data_deps=[2 * kind + 1], duration=1 + npu * 11 % 7),
                ]
            chakra.write(self.folder / f"w.{npu}.et", nodes)
        return self.config(SYSTEM % rendezvous + "workload: {traces: w}\n", "kinds.yaml")

    def test_results_are_the_same_on_any_number_of_ranks(self):
        """A generated step with slow links, and collectives of every kind, give the same results on 1 to 8 ranks, eager and with
        rendezvous."""
        ranks = (1, 2, 3) if harness.FEWER_CASES else (1, 2, 3, 4, 8)
        for rendezvous in ("false", "true"):
            with self.subTest(rendezvous=rendezvous):
                self.check_one_answer([self.config(SYSTEM % rendezvous + MODEL + SLOW)], 64, ranks=ranks)
                self.check_one_answer([self.kinds(rendezvous)], 64, ranks=ranks)

    def test_the_resolved_configuration_gives_the_same_results(self):
        """The resolved configuration names the operations and algorithms, and gives the same finish times."""
        import h5py

        first = self.run_once([self.kinds("false")])
        with h5py.File(first) as results:
            resolved = results["config/resolved"][()].decode()
        self.assertIn("in-switch-operations: 6", resolved)
        self.assertIn("broadcast: [inSwitch, binomialTree, binomialTree]", resolved)
        again = self.run_once([self.config(resolved, "again.yaml")], "again.h5")
        self.assertEqual(harness.finish_times(first), harness.finish_times(again))

    def test_results_are_the_same_folded(self):
        """Folded and not, the results are the same. A step on equal NPUs has at most four classes: NPUs in a switch are alike, those in
        a tree are not."""
        import h5py

        for text, most in ((SYSTEM % "false" + MODEL, 4), (SYSTEM % "false" + MODEL + SLOW, 64)):
            config = self.config(text)
            plain, folded = self.run_once([config], "plain.h5"), self.run_once([config, "--fold"], "folded.h5", ranks=2)
            self.assertEqual(harness.difference(plain, folded), "")
            with h5py.File(folded) as results:
                self.assertLessEqual(int(results.attrs["num_classes"]), most)
        self.assertEqual(
            harness.difference(
                self.run_once([self.kinds("true")], "plain.h5"),
                self.run_once([self.kinds("true"), "--fold"], "folded.h5"),
            ),
            "",
        )

    def test_an_all_reduce_by_hand(self):
        """An all-reduce of 1 MiB by 4 NPUs takes 10 ns, two hops of 100 ns, 1 MiB at 10 GB/s, and 10 ns."""
        config = self.config(
            "system:\n  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 10 GB/s, latency: 100 ns, in-switch-operations: 1}]}\n"
            "  collectives: {all-reduce: [inSwitch]}\nworkload: {traces: w}\n"
        )
        for npu in range(4):
            chakra.write(
                self.folder / f"w.{npu}.et", [Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)]
            )
        self.assertEqual(harness.finish_times(self.run_once([config])), [220_000 + 104_857_600] * 4)

    def test_in_switch_where_no_switch_offers_it_is_refused(self):
        """In-switch collectives on a ring, without operations, or with fewer operations than collectives at a time are refused with a
        message that says what is possible."""
        text = (
            "system:\n  network: {dimensions: [{shape: %s, size: 4, bandwidth: 10 GB/s, latency: 100 ns%s}]}\n  collectives: {all-reduce: [%s]%s}\n"
            "  communication: {streams: 2}\nworkload: {traces: w}\n"
        )
        for npu in range(4):
            chakra.write(
                self.folder / f"w.{npu}.et",
                [Node(1, chakra.COLL, "sum", comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)],
            )
        offers = ", in-switch-operations: %d"
        cases = {
            text
            % ("Ring", "", "inSwitch", ""): [
                "w.0.et",
                "NPU 0",
                "node 1",
                "'sum'",
                "dimension 0: inSwitch does not carry out all-reduce of 4 NPUs",
                "is a Ring",
                "possible: ring, direct",
            ],
            text % ("Ring", offers % 2, "ring", ""): ["dimension 0 (Ring)", "offers 2 in-switch operations"],
            text % ("Switch", "", "inSwitch", ""): ["in-switch-operations is 0"],
            text
            % ("Switch", offers % 1, "inSwitch", ""): [
                "of the 1 operation that its switch offers to 4 NPUs with 2 collectives each",
                "share of 0",
            ],
            text
            % ("Switch", offers % 2, "inSwitch", ", all-to-all: [inSwitch], queues: 2"): ["share of 1, and 2 queues"],
            text
            % ("Switch", offers % 2, "inSwitch", ", broadcast: [inSwitch, ring]"): [
                "system.collectives.broadcast",
                "a list of 1 algorithm",
            ],
        }
        for config, words in cases.items():
            with self.subTest(config):
                outcome = harness.orrery("run", self.config(config), f"--output={self.folder / 'r.h5'}")
                self.assertEqual(outcome.code, 3, outcome.err)
                for word in words:
                    self.assertIn(word, outcome.err)

    def test_both_networks_agree_where_collectives_start_together(self):
        """The only traffic of 6 NPUs is in-switch collectives that start together. With cut-through both networks give the same times."""
        config = self.config(
            "system:\n  network: {dimensions: [{shape: Switch, size: 6, bandwidth: 7 GB/s, latency: 333 ns, in-switch-operations: 1}]}\n"
            "  collectives: {all-reduce: [inSwitch], all-gather: [inSwitch], reduce-scatter: [inSwitch], broadcast: [inSwitch]}\n"
            "workload: {traces: w}\n"
        )
        kinds = (chakra.ALL_REDUCE, chakra.ALL_GATHER, chakra.REDUCE_SCATTER, chakra.BROADCAST, chakra.SCATTER)
        nodes = [
            Node(id, chakra.COLL, data_deps=[id - 1] if id else [], comm_type=kind, comm_size=1_234_567)
            for id, kind in enumerate(kinds)
        ]
        for npu in range(6):
            chakra.write(self.folder / f"w.{npu}.et", nodes)
        for rendezvous in ("false", "true"):
            arguments = [config, f"--set=system.communication.rendezvous={rendezvous}"]
            alone = harness.finish_times(self.run_once(arguments))
            through = [
                "--network=congestion-aware",
                "--set=system.network.switching=cut-through",
                "--set=system.network.packet-size=4 KiB",
            ]
            self.assertEqual(harness.finish_times(self.check_one_answer(arguments + through, 6, ranks=(2,))), alone)

    @harness.long
    def test_the_study_finds_the_published_speedups(self):
        """The in-switch study of 8 and 64 NPUs finds that 1 GiB is faster by twice 7/8 and twice 63/64, but for a little latency, and
        draws its plot."""
        plot = self.folder / "plot.png"
        done = harness.run_script(
            "scripts/studies/in_switch",
            "--sizes=1024,1048576,1073741824",
            f"--plot={plot}",
            f"--orrery={harness.BINARY}",
        )
        self.assertEqual(done.code, 0, done.out + done.err)
        rows = [line for line in done.out.splitlines() if line.startswith("| 1 ")]
        self.assertEqual([row.split(" | ")[0] for row in rows], ["| 1 KiB", "| 1 MiB", "| 1 GiB"] * 2)
        # 1 GiB: twice 7/8 and twice 63/64 of what the switch takes, and a little latency.
        self.assertEqual([row.split(" | ")[-1] for row in (rows[2], rows[5])], ["1.75 |", "1.98 |"])
        self.assertGreater(plot.stat().st_size, 10000)


if __name__ == "__main__":
    harness.main()
