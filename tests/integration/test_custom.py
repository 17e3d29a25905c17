#!/usr/bin/python3
"""Collectives from files: MSCCL XML and Chakra traces, in both formats of configurations, on any number of ranks; what is refused."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import spell_out  # noqa: E402
from chakra import Node  # noqa: E402

RANKS = (1, 2, 3) if harness.SANITIZED else (1, 2, 3, 4, 8)
MODELS = ("congestion-unaware", "congestion-aware")
SYSTEM = """system:
  rules: {rules}
  network:
    model: {model}
    dimensions:
      - {{shape: Switch, size: 4, bandwidth: 100 GB/s, latency: 500 ns}}
      - {{shape: Ring, size: 4, bandwidth: 25 GB/s, latency: 1 us}}
  collectives:
    {collectives}
  communication: {{streams: 2}}
  compute: {{local-memory: {{bandwidth: 1000 GB/s}}}}
workload: {{traces: w, groups: groups.json}}
"""
ROWS = {f"row{r}": list(range(4 * r, 4 * r + 4)) for r in range(4)}
COLUMNS = {f"column{c}": [c + 4 * r for r in (2, 0, 3, 1)] for c in range(4)}  # in another order than that of their numbers


class Custom(harness.Folder):
    def write(self, what, ranks):
        return spell_out.ALGORITHMS[what](ranks).write(self.folder / f"{what}-{ranks}.xml")

    def workload(self, kinds=(chakra.ALL_REDUCE, chakra.ALL_GATHER, chakra.REDUCE_SCATTER, chakra.ALL_TO_ALL, chakra.BROADCAST)):
        """16 NPUs that come at different times to collectives of all, of rows and of columns."""
        (self.folder / "groups.json").write_text(json.dumps({**ROWS, **COLUMNS}))
        for npu in range(16):
            nodes = [Node(0, chakra.COMP, duration=1 + npu * 7 % 16)]
            for size in (1 << 20, 999_999):
                for kind in kinds:
                    for group in (None, f"row{npu // 4}", f"column{npu % 4}"):
                        more = {"pg_name": group} if group else {}
                        nodes.append(Node(len(nodes), chakra.COLL, data_deps=[len(nodes) - 1], comm_type=kind, comm_size=size, **more))
                        nodes.append(Node(len(nodes), chakra.COMP, data_deps=[len(nodes) - 1], duration=1 + npu * 11 % 5))
            chakra.write(self.folder / f"w.{npu}.et", nodes)

    def config(self, collectives, rules="physical", model="congestion-unaware", name="config.yaml"):
        path = self.folder / name
        path.write_text(SYSTEM.format(rules=rules, model=model, collectives=collectives))
        return path

    def all_kinds(self):
        """Every kind from files for 16 and for 4 members; the all-reduce of 4 from traces."""
        self.write("halving-doubling", 4)
        spell_out.traces(self.folder / "halving-doubling-4.xml", self.folder / "part")
        kinds = {"all-gather": "ring-all-gather", "reduce-scatter": "ring-reduce-scatter", "all-to-all": "all-to-all",
                 "broadcast": "binomial-broadcast"}
        self.write("all-pairs-all-reduce", 16)
        text = "custom:\n      all-reduce: [all-pairs-all-reduce-16.xml, part]\n"
        for kind, what in kinds.items():
            files = [self.write(what, ranks).name for ranks in (4, 16)]
            text += f"      {kind}: [{', '.join(files)}]\n"
        return text

    def test_any_number_of_ranks(self):
        self.workload()
        text = self.all_kinds()
        for model in MODELS:
            for rules in ("physical", "astra-sim"):
                for more in ("", "    chunks: 3\n    active-chunks: 2\n"):
                    with self.subTest(model=model, rules=rules, more=more):
                        self.check_one_answer([self.config(text + more, rules, model), "--timeline"], 16,
                                              ranks=RANKS if rules == "physical" and more else (2, 3))

    def test_folding(self):
        self.workload()
        config = self.config(self.all_kinds())
        self.assertEqual(harness.difference(self.run_once([config], "plain.h5"), self.run_once([config, "--fold"], "folded.h5", ranks=2)), "")

    def test_repeats_from_what_was_resolved(self):
        import h5py
        self.workload()
        first = self.run_once([self.config(self.all_kinds())])
        with h5py.File(first) as results:
            resolved = results["config/resolved"][()].decode()
            kept = results["config/inputs/all-reduce-16.xml"][()].decode()
        self.assertIn("    custom:\n      all-reduce: [\"", resolved)
        self.assertEqual(kept, (self.folder / "all-pairs-all-reduce-16.xml").read_text())
        (self.folder / "again.yaml").write_text(resolved)
        again = self.run_once([self.folder / "again.yaml"], "again.h5")
        self.assertEqual(harness.finish_times(first), harness.finish_times(again))

    def test_what_it_spells_out(self):
        """A ring in a file is a ring, whether XML, traces, or traces in bytes of the one size that there is."""
        self.write("ring-all-reduce", 8)
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "chunks")
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "bytes", 1 << 20)
        for npu in range(8):
            chakra.write(self.folder / f"w.{npu}.et", [Node(0, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)])
        times = set()
        for collectives in ("all-reduce: [ring]", "custom: {all-reduce: ring-all-reduce-8.xml}", "custom: {all-reduce: chunks}",
                            "custom: {all-reduce: bytes}"):
            path = self.folder / "ring.yaml"
            path.write_text("system:\n  network:\n    dimensions: [{shape: Ring, size: 8, bandwidth: 50 GB/s, latency: 500 ns}]\n"
                            f"  collectives: {{{collectives}}}\n  compute: {{local-memory: {{bandwidth: 1000 GB/s}}}}\nworkload: {{traces: w}}\n")
            times.add(tuple(harness.finish_times(self.run_once([path]))))
        self.assertEqual(len(times), 1, times)

    def test_both_networks(self):
        """NPUs that start together, messages that queue at the links of their sender and receiver: with cut-through both networks agree, but
        that in one nobody is through before his messages have left."""
        kinds = {"all-reduce": (chakra.ALL_REDUCE, ("all-pairs-all-reduce", "ring-all-reduce", "halving-doubling")),
                 "all-to-all": (chakra.ALL_TO_ALL, ("all-to-all",))}
        for shape in ("Switch", "FullyConnected"):
            for kind, (number, algorithms) in kinds.items():
                for npu in range(8):
                    chakra.write(self.folder / f"w.{npu}.et", [Node(0, chakra.COLL, comm_type=number, comm_size=8_000_000)])
                for what in algorithms:
                    path = self.folder / "both.yaml"
                    path.write_text(f"system:\n  network:\n    dimensions: [{{shape: {shape}, size: 8, bandwidth: 50 GB/s, latency: 500 ns}}]\n"
                                    f"  collectives: {{custom: {{{kind}: {self.write(what, 8).name}}}}}\n"
                                    "  compute: {local-memory: {bandwidth: 1000 GB/s}}\nworkload: {traces: w}\n")
                    times = [harness.finish_times(self.run_once([path, *flags], ranks=2)) for flags in (
                        (), ("--network=congestion-aware", "--set=system.network.switching=cut-through"))]
                    with self.subTest(shape=shape, what=what):
                        self.assertEqual(*times)

    def test_example(self):
        """configs/all-pairs-8.yaml: its file is as the script writes it, and takes what docs/collectives.md says."""
        file = harness.SOURCE / "configs/collectives/all-pairs-all-reduce-8.xml"
        self.assertEqual(file.read_text(), self.write("all-pairs-all-reduce", 8).read_text())
        table = (harness.SOURCE / "docs/collectives.md").read_text()
        for size in ("1 KiB", "256 KiB", "4 MiB", "64 MiB"):
            for column, flags in enumerate(((), ("--set=system.collectives.custom={}",),
                                            ("--set=system.collectives.custom={}", "--set=system.collectives.all-reduce=[ring]"))):
                outcome = harness.orrery("show", "collective", harness.SOURCE / "configs/all-pairs-8.yaml", "--kind", "all-reduce", "--bytes", size,
                                         "--json", *flags)
                self.assertEqual(outcome.code, 0, outcome.err)
                row = next(line for line in table.splitlines() if line.startswith(f"| {size} |") and line.count("|") == 5)
                self.assertEqual(row.split("|")[2 + column].strip(), f"{json.loads(outcome.out)['last_done_ps'] / 1e6:.2f} us")

    def astra_sim(self, **system):
        system = harness.System(("Ring",), (4,), system={"preferred-dataset-splits": 1, **system})
        traces = [[Node(0, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)] for _ in range(4)]
        return [harness.write_workload(self.folder, traces)] + system.write(self.folder)

    def test_astra_sim_keys(self):
        """By hand: 50 * 2^30 B/s, 500 ns; every step of a ring of 4 in traces sends a quarter MiB, 5,382 ns, and the first three add up in
        1 ns each."""
        self.write("ring-all-reduce", 4)
        spell_out.traces(self.folder / "ring-all-reduce-4.xml", self.folder / "part")
        arguments = self.astra_sim(**{"all-reduce-implementation-custom": [str(self.folder / "part")]})
        first = self.check_one_answer(arguments, 4, ranks=(2, 3))
        step = int(500 + (1 << 18) * 1e9 / (50 * (1 << 30)))
        self.assertEqual(harness.finish_times(first), [(6 * step + 3) * 1000] * 4)

    def refused(self, arguments, *parts, code=3):
        outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'none.h5'}")
        self.assertEqual(outcome.code, code, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)
        self.assertFalse((self.folder / "none.h5").exists())

    def test_refusals(self):
        self.workload((chakra.ALL_REDUCE,))
        self.write("all-pairs-all-reduce", 4)
        self.write("ring-all-gather", 4)
        good = (self.folder / "all-pairs-all-reduce-4.xml").read_text()
        self.refused([self.config("custom: {all-reduce: all-pairs-all-reduce-4.xml}")], "all NPUs", "custom all-reduce",
                     "no file spells it out for 16 members", "communicators of 4 (")
        self.refused([self.config("custom: {all-reduce: ring-all-gather-4.xml}")], "system.collectives.custom.all-reduce", "config.yaml:",
                     "whose coll is that of all-gather")
        self.refused([self.config("custom: {all-reduce: [all-pairs-all-reduce-4.xml, all-pairs-all-reduce-4.xml]}")], "are both for 4 members")
        self.refused([self.config("custom: {all-reduce: nothing}")], "there is no", "nothing.0.et", "PREFIX")
        self.refused([self.config("custom: {all-reduce: []}")], "custom.all-reduce", "an empty list")
        self.refused([self.config("custom: {barrier: all-pairs-all-reduce-4.xml}")], "custom.barrier", "unknown")
        (self.folder / "wrong.xml").write_text(good.replace('type="rrc"', 'type="r"', 1))
        self.refused([self.config("custom: {all-reduce: wrong.xml}")], "wrong.xml", "rank 0 does not get its result of the all-reduce")
        (self.folder / "wrong.xml").write_text(good.replace('send="1"', 'send="2"', 1))
        self.refused([self.config("custom: {all-reduce: wrong.xml}")], "wrong.xml:", "two thread blocks of gpu 0 send to gpu 2")
        (self.folder / "cut.xml").write_text(good[:len(good) // 2])
        self.refused([self.config("custom: {all-reduce: cut.xml}")], "cut.xml:", "no XML")
        (self.folder / "empty.xml").write_text("")
        self.refused([self.config("custom: {all-reduce: empty.xml}")], "empty.xml: this is no XML")
        spell_out.traces(self.write("ring-all-reduce", 16), self.folder / "huge", 1 << 62)
        self.refused([self.config("custom: {all-reduce: [all-pairs-all-reduce-4.xml, huge]}")], "more than 106 days", f"Correct comm_size in {self.folder / 'huge'},")

    def test_refusals_of_astra_sim_keys(self):
        self.write("ring-all-reduce", 8)
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "part")
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "bytes", 1 << 20)
        custom = "all-reduce-implementation-custom"
        self.refused(self.astra_sim(**{custom: [str(self.folder / "part")]}), "no file spells it out for 4 members")
        self.refused(self.astra_sim(**{custom: [str(self.folder / "none")]}), custom, "there is no")
        self.refused(self.astra_sim(**{"per-node-custom-implementation": "nodes.yaml"}), "per-node-custom-implementation",
                     "not given by this key")
        self.write("ring-all-reduce", 4)
        spell_out.traces(self.folder / "ring-all-reduce-4.xml", self.folder / "bytes", 1 << 20)
        self.refused(self.astra_sim(**{custom: [str(self.folder / "bytes")]}), "bytes.4.et", "node 1", "position 3 has no send for this receive")
        for position in range(4, 8):
            os.unlink(self.folder / f"bytes.{position}.et")
        self.refused(self.astra_sim(**{custom: [str(self.folder / "bytes")], "preferred-dataset-splits": 2}), "have fixed sizes, which 2 chunks")


if __name__ == "__main__":
    harness.main()
