#!/usr/bin/python3
"""Partitions: no strategy changes the results, METIS finds clusters, the figures that `orrery partition` prints are right."""
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
RANKS = (2,) if harness.SANITIZED else (1, 2, 3, 4)
CUT = re.compile(r"cut: (\d+) of (\d+) bytes \([\d.]+ %\), (\d+) of (\d+) communicators, (\d+) of (\d+) messages")


class Strategies(harness.Folder):
    """The results on one rank in blocks are those on any number of ranks under any strategy."""

    def check(self, arguments, strategies=STRATEGIES, ranks=RANKS, timeout=60):
        first = self.run_once(arguments, "alone.h5", timeout=timeout)
        for strategy in strategies:
            for r in ranks:
                other = self.run_once(list(arguments) + [f"--partition={strategy}"], "other.h5", ranks=r, timeout=timeout)
                self.assertEqual(harness.difference(first, other), "", f"{strategy} on {r} ranks")

    def test_reference_case(self):
        case = next(case for case in reference_case.all_cases() if case.name == "J_R4_S4_transformer4")
        self.check(case.arguments() + ["--timeline"])

    def test_random_workload(self):
        workload = random_workload.Workload(9105, max_npus=32, operations=(60, 120))
        self.check([harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder) + ["--timeline"])

    def test_large_model(self):
        archive = "stage-gpt_64_tp8sp2dp4_sp"
        if not (harness.SHARED / "traces" / f"{archive}.tar.xz").exists():
            self.skipTest("shared/traces is not beside the repository")
        folder, system = harness.unpacked(archive) / archive.removeprefix("stage-"), harness.SHARED / "traces/system"
        self.check([f"--workload-configuration={folder / 'workload'}", f"--comm-group-configuration={folder / 'workload.json'}",
                    f"--system-configuration={system / 'system.json'}", f"--network-configuration={system / 'net_64.yml'}",
                    f"--remote-memory-configuration={system / 'mem.json'}"], timeout=240)


class Command(harness.Folder):
    def setUp(self):
        super().setUp()
        self.map = self.folder / "map"

    def partition(self, files, strategy, ranks, *more):
        """The rank map, and cut bytes, bytes, cut communicators, communicators, cut messages, messages (none: not printed)."""
        outcome = harness.orrery("partition", *files, f"--ranks={ranks}", f"--strategy={strategy}", f"--output={self.map}", "--force", *more)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.out = outcome.out
        found = CUT.search(outcome.out)
        return [int(line) for line in self.map.read_text().split()], [int(text) for text in found.groups()] if found else None

    def balance(self):
        return float(re.search(r"balance: ([\d.]+)", self.out)[1])

    def clusters(self, clusters=4, size=4, of=lambda npu: npu % 4):
        """NPU i belongs to cluster of(i), whose members reduce much; all NPUs are joined by small messages."""
        npus = clusters * size
        traces = []
        for npu in range(npus):
            after, before = (npu + 1) % npus, (npu - 1) % npus
            traces.append([Node(1, chakra.COMP, "forward", duration=10), Node(2, chakra.COLL, "reduce", [1], comm_type=chakra.ALL_REDUCE, comm_size=1 << 24, pg_name=str(of(npu))),
                           Node(3, chakra.SEND, "send", [2], comm_src=npu, comm_dst=after, comm_tag=0, comm_size=1000),
                           Node(4, chakra.RECV, "receive", [2], comm_src=before, comm_dst=npu, comm_tag=0, comm_size=1000)])
        groups = {str(c): [npu for npu in range(npus) if of(npu) == c] for c in range(clusters)}
        return [harness.write_workload(self.folder, traces)] + harness.System(["Ring", "Ring"], [clusters, size], groups=groups).write(self.folder)

    def test_metis_finds_clusters(self):
        files = self.clusters()
        ranks, cut = self.partition(files, "metis", 4)
        self.assertEqual(len({tuple(sorted(i for i in range(16) if ranks[i] == r)) for r in range(4)}), 4)
        for npu in range(16):
            self.assertEqual(ranks[npu], ranks[npu % 4], ranks)
        self.assertEqual(cut, [16_000, 16 * (1 << 24) + 16_000, 0, 4, 16, 16])
        self.assertEqual(self.balance(), 1)
        again, _ = self.partition(files, "metis", 4)
        self.assertEqual(again, ranks)

    def test_figures_of_other_strategies(self):
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
        """Clusters of neighbours, which round robin takes apart."""
        for size in (3, 4, 8):
            files = self.clusters(4, size, of=lambda npu: npu // size)
            for ranks in (2, 4):
                _, ours = self.partition(files, "metis", ranks)
                _, theirs = self.partition(files, "round-robin", ranks)
                self.assertEqual(ours[1::2], theirs[1::2])
                self.assertLessEqual(ours[0], theirs[0], f"{size} NPUs on {ranks} ranks")
                self.assertEqual((ours[2], theirs[2]), (0, 4))

    def test_a_file_is_measured_and_a_map_can_be_run(self):
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

    def test_the_examples(self):
        folder = harness.SOURCE / "partitions"
        eight = self.clusters(2, 4, of=lambda npu: npu % 2)
        llama = [harness.SOURCE / "configs/llama3-8b-64.yaml", "--set=workload.model.layers=4", "--set=workload.parallel.micro-batches=4", "--noise=0.05"]
        for arguments, names in ((eight, ("blocks_8.part.2", "pairs_8.part.4", "stripes_8.part.2")), (llama, ("llama3-8b-64.part.2",))):
            alone = self.run_once(arguments, "alone.h5")
            for name in names:
                with self.subTest(name):
                    other = self.run_once([*arguments, f"--partition={folder / name}"], "other.h5", ranks=int(name.rsplit(".", 1)[1]))
                    self.assertEqual(harness.difference(alone, other), "")
        ranks, _ = self.partition(eight, "block", 2)
        self.assertEqual(ranks, [int(line) for line in (folder / "blocks_8.part.2").read_text().split("\n") if line and line[0] not in "#%"])

    def test_without_a_workload(self):
        files = [flag for flag in harness.System(["Ring"], [6]).write(self.folder) if "memory" not in flag]
        ranks, cut = self.partition(files, "round-robin", 4)
        self.assertEqual((ranks, cut, self.balance()), ([0, 1, 2, 3, 0, 1], None, 4 / 3 // 0.001 / 1000))
        outcome = harness.orrery("partition", *files, "--ranks=2", "--strategy=metis", f"--output={self.map}", "--force")
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("traces", outcome.err)

    def test_misspelt_strategies(self):
        files = self.clusters()
        for strategy, meant in (("metsi", "'metis'"), ("round-robbin", "'round-robin'"), ("blok", "'block'"), ("dimension", "'dimension:0'")):
            for arguments in (["partition", *files, "--ranks=2", f"--output={self.map}", f"--strategy={strategy}"],
                              ["run", *files, f"--output={self.folder / 'results.h5'}", f"--partition={strategy}"]):
                outcome = harness.orrery(*arguments)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
                self.assertIn(f"Did you mean {meant}?", outcome.err)
                self.assertIn("option --strategy: " if arguments[0] == "partition" else "option --partition: ", outcome.err)
        outcome = harness.orrery("run", *files, f"--output={self.folder / 'results.h5'}", "--partition=dimension:2", ranks=2)
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertRegex(outcome.err, "option --partition: .* 0 to 1")


if __name__ == "__main__":
    harness.main()
