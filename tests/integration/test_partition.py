#!/usr/bin/python3
"""Partitions: no strategy changes the results, METIS finds clusters, and the figures that `orrery partition` prints are right."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
import reference_case  # noqa: E402
from chakra import Node  # noqa: E402

STRATEGIES = ("round-robin", "dimension:0", "metis")
RANKS = harness.cases((2,), (2, 3), (1, 2, 3, 4))
CUT = re.compile(r"cut: (\d+) of (\d+) bytes \([\d.]+ %\), (\d+) of (\d+) communicators, (\d+) of (\d+) messages")


class Strategies(harness.Folder):
    """The results on one rank are those on any number of ranks under any strategy."""

    def check(self, arguments):
        """Checks that runs under every strategy on every number of ranks give the results of the run without mpirun."""
        first = self.run_once(arguments, "alone.h5")
        for strategy in STRATEGIES:
            for r in RANKS:
                other = self.run_once(list(arguments) + [f"--partition={strategy}"], "other.h5", ranks=r)
                self.assertEqual(harness.difference(first, other), "", f"{strategy} on {r} ranks")

    def test_a_reference_case(self):
        """A transformer step of 16 NPUs gives the same results under every strategy on 1 to 4 ranks."""
        case = next(case for case in reference_case.all_cases() if case.name == "J_R4_S4_transformer4")
        self.check(case.arguments() + ["--timeline"])

    def test_a_random_workload(self):
        """A random workload of up to 32 NPUs gives the same results under every strategy on 1 to 4 ranks."""
        workload = random_workload.Workload(9105, max_npus=32, operations=(60, 120))
        self.check(
            [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder) + ["--timeline"]
        )

    def test_stage_traces(self):
        """STAGE's traces of GPT on 64 NPUs give the same results under every strategy on 1 to 4 ranks. Needs shared/."""
        self.check(harness.stage_arguments("gpt_64_tp8sp2dp4_sp"))


class Command(harness.Folder):
    def setUp(self):
        super().setUp()
        self.map = self.folder / "map"

    def partition(self, files, strategy, ranks, *more):
        """Runs `orrery partition`. Returns the rank map and the printed cut: cut bytes, bytes, cut communicators, communicators, cut
        messages, messages; None if no cut was printed."""
        outcome = harness.orrery(
            "partition", *files, f"--ranks={ranks}", f"--strategy={strategy}", f"--output={self.map}", "--force", *more
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        self.out = outcome.out
        found = CUT.search(outcome.out)
        return [int(line) for line in self.map.read_text().split()], [
            int(text) for text in found.groups()
        ] if found else None

    def balance(self):
        return float(re.search(r"balance: ([\d.]+)", self.out)[1])

    def clusters(self, clusters=4, size=4, of=lambda npu: npu % 4):
        """Writes a workload of clusters whose members reduce much; NPU i belongs to cluster of(i). All NPUs are joined by small
        messages in a ring. Returns the arguments."""
        npus = clusters * size
        traces = []
        for npu in range(npus):
            after, before = (npu + 1) % npus, (npu - 1) % npus
            traces.append(
                [
                    Node(1, chakra.COMP, "forward", duration=10),
                    Node(
                        2,
                        chakra.COLL,
                        "reduce",
                        [1],
                        comm_type=chakra.ALL_REDUCE,
                        comm_size=1 << 24,
                        pg_name=str(of(npu)),
                    ),
                    Node(3, chakra.SEND, "send", [2], comm_src=npu, comm_dst=after, comm_tag=0, comm_size=1000),
                    Node(4, chakra.RECV, "receive", [2], comm_src=before, comm_dst=npu, comm_tag=0, comm_size=1000),
                ]
            )
        groups = {str(c): [npu for npu in range(npus) if of(npu) == c] for c in range(clusters)}
        return [harness.write_workload(self.folder, traces)] + harness.System(
            ["Ring", "Ring"], [clusters, size], groups=groups
        ).write(self.folder)

    def test_metis_finds_clusters(self):
        """METIS puts each of four clusters of four NPUs on a rank of its own, cuts the small messages only, and gives the same map
        again."""
        files = self.clusters()
        ranks, cut = self.partition(files, "metis", 4)
        self.assertEqual(len({tuple(sorted(i for i in range(16) if ranks[i] == r)) for r in range(4)}), 4)
        for npu in range(16):
            self.assertEqual(ranks[npu], ranks[npu % 4], ranks)
        self.assertEqual(cut, [16_000, 16 * (1 << 24) + 16_000, 0, 4, 16, 16])
        self.assertEqual(self.balance(), 1)
        again, _ = self.partition(files, "metis", 4)
        self.assertEqual(again, ranks)

    def test_the_figures_of_other_strategies(self):
        """For round-robin, block and dimension partitions of four clusters, the printed maps, cuts, balances and the lookahead are as
        computed by hand. An empty message takes one hop of 500 ns; across the end of a line, one in each dimension."""
        files = self.clusters()
        ranks, cut = self.partition(files, "round-robin", 4)
        self.assertEqual(ranks, [npu % 4 for npu in range(16)])
        self.assertEqual(cut, [16_000, 16 * (1 << 24) + 16_000, 0, 4, 16, 16])
        # An empty message takes one hop of 500 ns; across the end of a line, one in each dimension.
        self.assertIn("lookahead: 500 ns", self.out)
        for strategy in ("block", "dimension:0"):
            ranks, cut = self.partition(files, strategy, 4)
            self.assertEqual(ranks, [npu // 4 for npu in range(16)])
            self.assertEqual(cut, [16 * (1 << 24) + 4_000, 16 * (1 << 24) + 16_000, 4, 4, 4, 16])
        ranks, cut = self.partition(files, "dimension:1", 4)
        self.assertEqual((ranks, cut[0], self.balance()), ([0] * 16, 0, 4))
        self.assertIn("nothing crosses the cut", self.out)

    def test_metis_cuts_no_more_than_round_robin(self):
        """For clusters of 3, 4 and 8 neighbours, which round robin takes apart, METIS cuts no communicator and no more bytes."""
        for size in (3, 4, 8):
            files = self.clusters(4, size, of=lambda npu: npu // size)
            for ranks in (2, 4):
                _, ours = self.partition(files, "metis", ranks)
                _, theirs = self.partition(files, "round-robin", ranks)
                self.assertEqual(ours[1::2], theirs[1::2])
                self.assertLessEqual(ours[0], theirs[0], f"{size} NPUs on {ranks} ranks")
                self.assertEqual((ours[2], theirs[2]), (0, 4))

    def test_a_map_can_be_measured_and_run(self):
        """A map that METIS wrote can be measured and run, with the results of one rank. A map for another number of NPUs is refused."""
        files = self.clusters()
        pairs = harness.SOURCE / "partitions/pairs_8.part.4"
        outcome = harness.orrery("partition", *files, "--ranks=4", f"--strategy={pairs}", f"--output={self.map}")
        self.assertEqual(outcome.code, 3, "a map of 8 NPUs for 16")
        self.partition(files, "metis", 2)
        map = self.folder / "mine"
        self.map.rename(map)
        ranks, cut = self.partition(files, map, 2)
        self.assertEqual(ranks, [int(line) for line in map.read_text().split()])
        self.assertIsNotNone(cut)
        alone = self.run_once(files, "alone.h5")
        other = self.run_once(files + [f"--partition={map}"], "other.h5", ranks=2)
        self.assertEqual(harness.difference(alone, other), "")

    def test_the_example_maps_can_be_run(self):
        """Each map in partitions/ gives the results of one rank, and blocks_8.part.2 is what the strategy block makes."""
        folder = harness.SOURCE / "partitions"
        eight = self.clusters(2, 4, of=lambda npu: npu % 2)
        llama = [
            harness.SOURCE / "configs/llama3-8b-64.yaml",
            "--set=workload.model.layers=4",
            "--set=workload.parallel.micro-batches=4",
            "--noise=0.05",
        ]
        for arguments, names in (
            (eight, ("blocks_8.part.2", "pairs_8.part.4", "stripes_8.part.2")),
            (llama, ("llama3-8b-64.part.2",)),
        ):
            alone = self.run_once(arguments, "alone.h5")
            for name in names:
                with self.subTest(name):
                    other = self.run_once(
                        [*arguments, f"--partition={folder / name}"], "other.h5", ranks=int(name.rsplit(".", 1)[1])
                    )
                    self.assertEqual(harness.difference(alone, other), "")
        ranks, _ = self.partition(eight, "block", 2)
        self.assertEqual(
            ranks,
            [
                int(line)
                for line in (folder / "blocks_8.part.2").read_text().split("\n")
                if line and line[0] not in "#%"
            ],
        )

    def test_a_partition_without_a_workload(self):
        """Without a workload, round-robin gives a map and no cut; METIS is refused because it needs traces."""
        files = [flag for flag in harness.System(["Ring"], [6]).write(self.folder) if "memory" not in flag]
        ranks, cut = self.partition(files, "round-robin", 4)
        self.assertEqual((ranks, cut, self.balance()), ([0, 1, 2, 3, 0, 1], None, 4 / 3 // 0.001 / 1000))
        outcome = harness.orrery(
            "partition", *files, "--ranks=2", "--strategy=metis", f"--output={self.map}", "--force"
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("traces", outcome.err)

    def test_a_misspelt_strategy_is_refused(self):
        """A misspelt strategy is refused by `partition` and `run` with one message that names the strategy that was meant."""
        files = self.clusters()
        for strategy, meant in (
            ("metsi", "'metis'"),
            ("round-robbin", "'round-robin'"),
            ("blok", "'block'"),
            ("dimension", "'dimension:0'"),
        ):
            for arguments in (
                ["partition", *files, "--ranks=2", f"--output={self.map}", f"--strategy={strategy}"],
                ["run", *files, f"--output={self.folder / 'results.h5'}", f"--partition={strategy}"],
            ):
                outcome = harness.orrery(*arguments)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
                self.assertIn(f"Did you mean {meant}?", outcome.err)
                self.assertIn(
                    "option --strategy: " if arguments[0] == "partition" else "option --partition: ", outcome.err
                )
        outcome = harness.orrery(
            "run", *files, f"--output={self.folder / 'results.h5'}", "--partition=dimension:2", ranks=2
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertRegex(outcome.err, "option --partition: .* 0 to 1")


if __name__ == "__main__":
    harness.main()
