#!/usr/bin/python3
"""Custom collectives: algorithms from MSCCL XML files and Chakra traces, in both formats of configurations.

The system of most tests: 16 NPUs, switches of 4 in a ring of 4, that come at different times to collectives of all, of rows and of
columns."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import mscclpp  # noqa: E402
import spell_out  # noqa: E402
from chakra import Node  # noqa: E402

RANKS = harness.cases((1, 2, 3), (2, 3, 8), (1, 2, 3, 4, 8))
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
COLUMNS = {
    f"column{c}": [c + 4 * r for r in (2, 0, 3, 1)] for c in range(4)
}  # in another order than that of their numbers


class Folder(harness.Folder):
    """A test with a folder, algorithms written by tests/support/spell_out.py, and configurations of 16 NPUs."""

    def write(self, what, ranks):
        """Writes the MSCCL XML of an algorithm for this many members and returns its path."""
        return spell_out.ALGORITHMS[what](ranks).write(self.folder / f"{what}-{ranks}.xml")

    def config(self, collectives, rules="physical", model="congestion-unaware", name="config.yaml"):
        path = self.folder / name
        path.write_text(SYSTEM.format(rules=rules, model=model, collectives=collectives))
        return path

    def refused(self, arguments, *parts, code=3):
        """Checks that a run ends with this exit code, a message with these parts, and no results."""
        outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'none.h5'}")
        self.assertEqual(outcome.code, code, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)
        self.assertFalse((self.folder / "none.h5").exists())


def gather_plan(ranks, **more):
    """Returns a plan of MSCCL++ for an all-gather with one operation of each kind for each other rank."""

    def operations(rank):
        own = {"index": rank, "size": 1}
        for k in range(ranks - 1):
            yield {
                "name": "put",
                "channel_type": "memory",
                "src_buff": [{"type": "o", **own}],
                "dst_buff": [{"buffer_id": k, **own}],
            }
        for name in ("signal", "wait"):
            for k in range(ranks - 1):
                yield {"name": name, "channel_type": "memory", "channel_ids": [k]}

    return mscclpp.gather_plan(ranks, operations, **more)


def switch_plan(ranks):
    """Returns a plan of MSCCL++ for an all-reduce: each rank adds up its chunk of all in the switch, in a pipeline, and stores it at all."""
    gpus = []
    for rank in range(ranks):
        buffer = [{"switch_channel_id": 0, "index": rank, "size": 1}]
        meet = [
            {"name": name, "channel_type": "memory", "channel_ids": list(range(ranks - 1))}
            for name in ("signal", "wait")
        ]
        pipeline = {
            "name": "pipeline",
            "iter_context": {"unit_size": 16384, "num_chunks": 1},
            "ops": [{"name": "glres", "src_buff": buffer, "dst_buff": buffer}],
        }
        channels = [
            {"channel_type": "memory", "connected_to": [peer for peer in range(ranks) if peer != rank]},
            {
                "channel_type": "switch",
                "buffer_type": "i",
                "rank_groups": [{"size": ranks, "ranks": list(range(ranks))}],
            },
        ]
        used = [
            {"channel_type": "memory", "channel_ids": list(range(ranks - 1))},
            {"channel_type": "switch", "channel_ids": [0]},
        ]
        gpus.append(
            {
                "id": rank,
                "input_chunks": ranks,
                "output_chunks": ranks,
                "scratch_chunks": 0,
                "channels": channels,
                "remote_buffers": [],
                "threadblocks": [
                    {"id": 0, "channels": used, "remote_buffer_refs": [], "ops": [*meet, pipeline, *meet]}
                ],
            }
        )
    return json.dumps({"name": "sum", "collective": "allreduce", "protocol": "Simple", "inplace": True, "gpus": gpus})


class Plans(Folder):
    def test_one_answer(self):
        """16 NPUs that come at different times to all-gathers of rows of 4, which a plan of MSCCL++ spells out: one answer on 1, 2, 3 and 4
        ranks, in both network models."""
        (self.folder / "gather.json").write_text(gather_plan(4))
        (self.folder / "groups.json").write_text(json.dumps(ROWS))
        for npu in range(16):
            nodes = [Node(0, chakra.COMP, duration=1 + npu * 7 % 16)]
            for size in (1 << 20, 999_999):
                nodes.append(
                    Node(
                        len(nodes),
                        chakra.COLL,
                        data_deps=[len(nodes) - 1],
                        comm_type=chakra.ALL_GATHER,
                        comm_size=size,
                        pg_name=f"row{npu // 4}",
                    )
                )
            chakra.write(self.folder / f"w.{npu}.et", nodes)
        for model in MODELS:
            with self.subTest(model=model):
                config = self.config("custom: {all-gather: gather.json}", model=model)
                self.check_one_answer([config], 16, ranks=(1, 2, 3, 4))

    def test_one_answer_through_the_switch(self):
        """8 NPUs that come at different times to all-reduces through their switch, in a pipeline: one answer on 1, 2, 3 and 4 ranks. Without
        operations of the switch, and in the congestion-aware network, the plan is refused."""
        (self.folder / "sum.json").write_text(switch_plan(8))
        for npu in range(8):
            nodes = [Node(0, chakra.COMP, duration=1 + npu * 5 % 8)]
            for size in (1 << 20, 999_999):
                nodes.append(
                    Node(
                        len(nodes), chakra.COLL, data_deps=[len(nodes) - 1], comm_type=chakra.ALL_REDUCE, comm_size=size
                    )
                )
            chakra.write(self.folder / f"s.{npu}.et", nodes)
        config = self.folder / "switch.yaml"
        text = """system:
  network: {dimensions: [{shape: Switch, size: 8, bandwidth: 100 GB/s, latency: 500 ns, in-switch-operations: 8}]}
  collectives: {custom: {all-reduce: sum.json}}
workload: {traces: "s.{npu}.et"}
"""
        config.write_text(text)
        self.check_one_answer([config], 8)
        config.write_text(text.replace(", in-switch-operations: 8", ""))
        self.refused([config], "sum.json", "its switch only forwards")
        config.write_text(text.replace("network: {", "network: {model: congestion-aware, "))
        self.refused([config], "sum.json", "congestion-unaware")

    def test_sizes_outside_the_range(self):
        """An all-gather of 4 members with 1 MB each, which a plan spells out for up to 4 MB, or up to 1 byte less, or from 1 byte more on: the
        first runs, the others are refused with the range."""
        for npu in range(16):
            chakra.write(
                self.folder / f"w.{npu}.et",
                [Node(0, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=10**6, pg_name=f"row{npu // 4}")],
            )
        (self.folder / "groups.json").write_text(json.dumps(ROWS))
        config = self.config("custom: {all-gather: gather.json}")
        (self.folder / "gather.json").write_text(gather_plan(4, min_message_size=0, max_message_size=4 * 10**6))
        self.run_once([config])
        for low, high in ((0, 4 * 10**6 - 1), (4 * 10**6 + 1, 2**64 - 1)):
            (self.folder / "gather.json").write_text(gather_plan(4, min_message_size=low, max_message_size=high))
            self.refused([config], "gather.json", "4000000 bytes", f"{low} to {high} bytes")
        (self.folder / "gather.json").write_text(gather_plan(4, min_message_size=9, max_message_size=8))
        self.refused([config], "gather.json", "max_message_size is 8")


class Custom(Folder):
    def workload(
        self, kinds=(chakra.ALL_REDUCE, chakra.ALL_GATHER, chakra.REDUCE_SCATTER, chakra.ALL_TO_ALL, chakra.BROADCAST)
    ):
        """Writes the traces of 16 NPUs that come at different times to collectives of all, of rows and of columns, of each kind and two
        sizes."""
        (self.folder / "groups.json").write_text(json.dumps({**ROWS, **COLUMNS}))
        for npu in range(16):
            nodes = [Node(0, chakra.COMP, duration=1 + npu * 7 % 16)]
            for size in (1 << 20, 999_999):
                for kind in kinds:
                    for group in (None, f"row{npu // 4}", f"column{npu % 4}"):
                        more = {"pg_name": group} if group else {}
                        nodes.append(
                            Node(
                                len(nodes),
                                chakra.COLL,
                                data_deps=[len(nodes) - 1],
                                comm_type=kind,
                                comm_size=size,
                                **more,
                            )
                        )
                        nodes.append(
                            Node(len(nodes), chakra.COMP, data_deps=[len(nodes) - 1], duration=1 + npu * 11 % 5)
                        )
            chakra.write(self.folder / f"w.{npu}.et", nodes)

    def all_kinds(self):
        """Returns the key `custom` with files for every kind of collective, for 16 and for 4 members; the all-reduce of 4 comes from
        traces."""
        self.write("halving-doubling", 4)
        spell_out.traces(self.folder / "halving-doubling-4.xml", self.folder / "part")
        kinds = {
            "all-gather": "ring-all-gather",
            "reduce-scatter": "ring-reduce-scatter",
            "all-to-all": "all-to-all",
            "broadcast": "binomial-broadcast",
        }
        self.write("all-pairs-all-reduce", 16)
        text = "custom:\n      all-reduce: [all-pairs-all-reduce-16.xml, part]\n"
        for kind, what in kinds.items():
            files = [self.write(what, ranks).name for ranks in (4, 16)]
            text += f"      {kind}: [{', '.join(files)}]\n"
        return text

    def test_results_are_the_same_on_any_number_of_ranks(self):
        """Custom collectives of every kind, with both networks, both rules, and one or three chunks, give the same results on 1 to 8
        ranks."""
        self.workload()
        text = self.all_kinds()
        for model in MODELS:
            for rules in ("physical", "astra-sim"):
                for more in ("", "    chunks: 3\n    active-chunks: 2\n"):
                    with self.subTest(model=model, rules=rules, more=more):
                        self.check_one_answer(
                            [self.config(text + more, rules, model), "--timeline"],
                            16,
                            ranks=RANKS if rules == "physical" and more else (2, 3),
                        )

    def test_results_are_the_same_folded(self):
        """Custom collectives of every kind give the same results folded and not."""
        self.workload()
        config = self.config(self.all_kinds())
        self.assertEqual(
            harness.difference(
                self.run_once([config], "plain.h5"), self.run_once([config, "--fold"], "folded.h5", ranks=2)
            ),
            "",
        )

    def test_the_resolved_configuration_gives_the_same_results(self):
        """The results keep the files of custom collectives, and the resolved configuration gives the same finish times."""
        import h5py

        self.workload()
        first = self.run_once([self.config(self.all_kinds())])
        with h5py.File(first) as results:
            resolved = results["config/resolved"][()].decode()
            kept = results["config/inputs/all-reduce-16.xml"][()].decode()
        self.assertIn('    custom:\n      all-reduce: ["', resolved)
        self.assertEqual(kept, (self.folder / "all-pairs-all-reduce-16.xml").read_text())
        (self.folder / "again.yaml").write_text(resolved)
        again = self.run_once([self.folder / "again.yaml"], "again.h5")
        self.assertEqual(harness.finish_times(first), harness.finish_times(again))

    def test_a_ring_from_a_file_takes_as_long_as_the_ring(self):
        """An all-reduce of 8 NPUs by the built-in ring, by a ring in XML, by traces, and by traces with fixed bytes takes the same
        time."""
        self.write("ring-all-reduce", 8)
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "chunks")
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "bytes", 1 << 20)
        for npu in range(8):
            chakra.write(
                self.folder / f"w.{npu}.et", [Node(0, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)]
            )
        times = set()
        for collectives in (
            "all-reduce: [ring], directions: one",
            "custom: {all-reduce: ring-all-reduce-8.xml}",
            "custom: {all-reduce: chunks}",
            "custom: {all-reduce: bytes}",
        ):
            path = self.folder / "ring.yaml"
            path.write_text(
                "system:\n  network:\n    dimensions: [{shape: Ring, size: 8, bandwidth: 50 GB/s, latency: 500 ns}]\n"
                f"  collectives: {{{collectives}}}\n  compute: {{local-memory: {{bandwidth: 1000 GB/s}}}}\nworkload: {{traces: w}}\n"
            )
            times.add(tuple(harness.finish_times(self.run_once([path]))))
        self.assertEqual(len(times), 1, times)

    def test_both_networks_agree_without_congestion(self):
        """8 NPUs start together, and messages queue at the links of their sender and receiver only. With cut-through both networks give
        the same times."""
        kinds = {
            "all-reduce": (chakra.ALL_REDUCE, ("all-pairs-all-reduce", "ring-all-reduce", "halving-doubling")),
            "all-to-all": (chakra.ALL_TO_ALL, ("all-to-all",)),
        }
        for shape in ("Switch", "FullyConnected"):
            for kind, (number, algorithms) in kinds.items():
                for npu in range(8):
                    chakra.write(
                        self.folder / f"w.{npu}.et", [Node(0, chakra.COLL, comm_type=number, comm_size=8_000_000)]
                    )
                for what in algorithms:
                    path = self.folder / "both.yaml"
                    path.write_text(
                        f"system:\n  network:\n    dimensions: [{{shape: {shape}, size: 8, bandwidth: 50 GB/s, latency: 500 ns}}]\n"
                        f"  collectives: {{custom: {{{kind}: {self.write(what, 8).name}}}}}\n"
                        "  compute: {local-memory: {bandwidth: 1000 GB/s}}\nworkload: {traces: w}\n"
                    )
                    times = [
                        harness.finish_times(self.run_once([path, *flags], ranks=2))
                        for flags in ((), ("--network=congestion-aware", "--set=system.network.switching=cut-through"))
                    ]
                    with self.subTest(shape=shape, what=what):
                        self.assertEqual(*times)

    def test_the_example_takes_what_the_documents_say(self):
        """configs/all-pairs-8.yaml: its file is what spell_out.py writes, and its times are those in docs/collectives.md."""
        file = harness.SOURCE / "configs/collectives/all-pairs-all-reduce-8.xml"
        self.assertEqual(file.read_text(), self.write("all-pairs-all-reduce", 8).read_text())
        table = (harness.SOURCE / "docs/collectives.md").read_text()
        for size in ("1 KiB", "256 KiB", "4 MiB", "64 MiB"):
            for column, flags in enumerate(
                (
                    (),
                    ("--set=system.collectives.custom={}",),
                    ("--set=system.collectives.custom={}", "--set=system.collectives.all-reduce=[ring]"),
                )
            ):
                outcome = harness.orrery(
                    "show",
                    "collective",
                    harness.SOURCE / "configs/all-pairs-8.yaml",
                    "--kind",
                    "all-reduce",
                    "--bytes",
                    size,
                    "--json",
                    *flags,
                )
                self.assertEqual(outcome.code, 0, outcome.err)
                row = next(
                    line for line in table.splitlines() if line.startswith(f"| {size} |") and line.count("|") == 5
                )
                self.assertEqual(
                    row.split("|")[2 + column].strip(), f"{json.loads(outcome.out)['last_done_ps'] / 1e6:.2f} us"
                )

    def astra_sim(self, **system):
        system = harness.System(("Ring",), (4,), system={"preferred-dataset-splits": 1, **system})
        traces = [[Node(0, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)] for _ in range(4)]
        return [harness.write_workload(self.folder, traces)] + system.write(self.folder)

    def test_astra_sims_keys_by_hand(self):
        """A ring of 4 from traces at 50 * 2^30 B/s and 500 ns: six steps send a quarter MiB each, in 5,382 ns, and the first three
        reduce it in 1 ns each."""
        self.write("ring-all-reduce", 4)
        spell_out.traces(self.folder / "ring-all-reduce-4.xml", self.folder / "part")
        arguments = self.astra_sim(**{"all-reduce-implementation-custom": [str(self.folder / "part")]})
        first = self.check_one_answer(arguments, 4, ranks=(2, 3))
        step = int(500 + (1 << 18) * 1e9 / (50 * (1 << 30)))
        self.assertEqual(harness.finish_times(first), [(6 * step + 3) * 1000] * 4)

    def test_wrong_files_are_refused(self):
        """Files for other members, of another kind, missing, cut, wrong or too large are refused with a message that names the file and
        the fault."""
        self.workload((chakra.ALL_REDUCE,))
        self.write("all-pairs-all-reduce", 4)
        self.write("ring-all-gather", 4)
        good = (self.folder / "all-pairs-all-reduce-4.xml").read_text()
        self.refused(
            [self.config("custom: {all-reduce: all-pairs-all-reduce-4.xml}")],
            "all NPUs",
            "custom all-reduce",
            "no file spells it out for 16 members",
            "communicators of 4 (",
        )
        self.refused(
            [self.config("custom: {all-reduce: ring-all-gather-4.xml}")],
            "system.collectives.custom.all-reduce",
            "config.yaml:",
            "whose coll is that of all-gather",
        )
        self.refused(
            [self.config("custom: {all-reduce: [all-pairs-all-reduce-4.xml, all-pairs-all-reduce-4.xml]}")],
            "are both for 4 members",
        )
        self.refused([self.config("custom: {all-reduce: nothing}")], "there is no", "nothing.0.et", "PREFIX")
        self.refused([self.config("custom: {all-reduce: []}")], "custom.all-reduce", "an empty list")
        self.refused([self.config("custom: {barrier: all-pairs-all-reduce-4.xml}")], "custom.barrier", "unknown")
        (self.folder / "wrong.xml").write_text(good.replace('type="rrc"', 'type="r"', 1))
        self.refused(
            [self.config("custom: {all-reduce: wrong.xml}")],
            "wrong.xml",
            "rank 0 does not get its result of the all-reduce",
        )
        (self.folder / "wrong.xml").write_text(good.replace('send="1"', 'send="2"', 1))
        self.refused(
            [self.config("custom: {all-reduce: wrong.xml}")], "wrong.xml:", "two thread blocks of gpu 0 send to gpu 2"
        )
        (self.folder / "cut.xml").write_text(good[: len(good) // 2])
        self.refused([self.config("custom: {all-reduce: cut.xml}")], "cut.xml:", "no XML")
        (self.folder / "empty.xml").write_text("")
        self.refused([self.config("custom: {all-reduce: empty.xml}")], "empty.xml: this is no XML")
        spell_out.traces(self.write("ring-all-reduce", 16), self.folder / "huge", 1 << 62)
        self.refused(
            [self.config("custom: {all-reduce: [all-pairs-all-reduce-4.xml, huge]}")],
            "more than 106 days",
            f"Correct comm_size in {self.folder / 'huge'},",
        )

    def test_wrong_astra_sim_keys_are_refused(self):
        """ASTRA-sim's keys for custom collectives with files for other members, missing files or unequal sizes are refused with a
        message that names them."""
        self.write("ring-all-reduce", 8)
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "part")
        spell_out.traces(self.folder / "ring-all-reduce-8.xml", self.folder / "bytes", 1 << 20)
        custom = "all-reduce-implementation-custom"
        self.refused(self.astra_sim(**{custom: [str(self.folder / "part")]}), "no file spells it out for 4 members")
        self.refused(self.astra_sim(**{custom: [str(self.folder / "none")]}), custom, "there is no")
        self.refused(
            self.astra_sim(**{"one-node-custom-implementation": "nodes.yaml"}),
            "one-node-custom-implementation",
            "not given by this key",
        )
        self.write("ring-all-reduce", 4)
        spell_out.traces(self.folder / "ring-all-reduce-4.xml", self.folder / "bytes", 1 << 20)
        self.refused(
            self.astra_sim(**{custom: [str(self.folder / "bytes")]}),
            "bytes.4.et",
            "node 1",
            "position 3 has no send for this receive",
        )
        for position in range(4, 8):
            os.unlink(self.folder / f"bytes.{position}.et")
        self.refused(
            self.astra_sim(**{custom: [str(self.folder / "bytes")], "preferred-dataset-splits": 2}),
            "have fixed sizes, which 2 chunks",
        )


class Nodes(Folder):
    """Single nodes with custom collectives of their own. The system of most tests: two all-reduces of 4 NPUs, nodes 1 and 7, one after
    the other."""

    def part(self, what, name):
        spell_out.traces(self.write(what, 4), self.folder / name)
        return str(self.folder / name)

    def two(self, **system):
        traces = [
            [
                Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
                Node(7, chakra.COLL, data_deps=[1], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
            ]
            for _ in range(4)
        ]
        system = harness.System(("Switch",), (4,), system={"preferred-dataset-splits": 1, **system})
        return [harness.write_workload(self.folder, traces)] + system.write(self.folder)

    def two_with(self, nodes, **system):
        (self.folder / "nodes.yaml").write_text(nodes)
        return self.two(**{"per-node-custom-implementation": str(self.folder / "nodes.yaml"), **system})

    def own_two(self, custom, model="congestion-unaware"):
        self.two()
        path = self.folder / "own.yaml"
        path.write_text(
            f"system:\n  network:\n    model: {model}\n    dimensions: [{{shape: Switch, size: 4, bandwidth: 50 GB/s, latency: 500 ns}}]\n"
            f"  collectives: {{all-reduce: [ring], custom: {custom}}}\nworkload: {{traces: workload}}\n"
        )
        return [path]

    def finish(self, arguments):
        times = set(harness.finish_times(self.run_once(arguments)))
        self.assertEqual(len(times), 1)
        return times.pop()

    def test_each_node_takes_as_long_as_its_file(self):
        """Of two all-reduces, one with a file of its own takes what all take that use this file, and the other what all take that use
        none; with both networks and both formats of configurations."""
        pairs, halving = self.part("all-pairs-all-reduce", "pairs"), self.part("halving-doubling", "halving")
        for_all = "all-reduce-implementation-custom"
        none, all_pairs, all_halving = (
            self.finish(self.two(**more)) for more in ({}, {for_all: [pairs]}, {for_all: [halving]})
        )
        self.assertEqual(len({none, all_pairs, all_halving}), 3)
        for nodes in (f"1: {pairs}", f"7: {pairs}"):
            self.assertEqual(2 * self.finish(self.two_with(nodes)), none + all_pairs, nodes)
        self.assertEqual(self.finish(self.two_with(f"7: {pairs}\n1: {pairs}\n")), all_pairs)
        self.assertEqual(2 * self.finish(self.two_with(f"7: {pairs}\n1: {halving}\n")), all_pairs + all_halving)
        self.assertEqual(
            2 * self.finish(self.two_with(f"7: {pairs}", **{for_all: [halving]})),
            all_pairs + all_halving,
            "comes first",
        )
        self.assertEqual(
            2 * self.finish(self.two_with(f"7: {pairs}", **{"all-reduce-implementation": ["oneRing"]})),
            none + all_pairs,
        )
        for model in MODELS:
            none, all_pairs = (self.finish(self.own_two(custom, model)) for custom in ("{}", "{all-reduce: pairs}"))
            self.assertNotEqual(none, all_pairs)
            self.assertEqual(2 * self.finish(self.own_two("{nodes: {7: pairs}}", model)), none + all_pairs, model)
            self.assertEqual(self.finish(self.own_two("{nodes: {1: pairs, 7: pairs}}", model)), all_pairs, model)

    def steps(self):
        """Writes the traces of 16 NPUs, each in an all-reduce of all (node 2), of its row (node 4 of rows 0 and 1, node 5 of the
        others) and of its column (node 6). Returns the key `custom` with files for the nodes 2, 4 and 6."""
        (self.folder / "groups.json").write_text(json.dumps({**ROWS, **COLUMNS}))
        for npu in range(16):
            row = {4: {"pg_name": f"row{npu // 4}"}, 5: {}} if npu < 8 else {4: {}, 5: {"pg_name": f"row{npu // 4}"}}
            groups = {2: {"comm_size": 1 << 20}, 6: {"pg_name": f"column{npu % 4}"}, **row}
            nodes = []
            for i in range(1, 7):
                deps = [i - 1] if i > 1 else []
                if groups.get(i):
                    nodes.append(
                        Node(
                            i,
                            chakra.COLL,
                            data_deps=deps,
                            comm_type=chakra.ALL_REDUCE,
                            **{"comm_size": 999_999, **groups[i]},
                        )
                    )
                else:
                    nodes.append(Node(i, chakra.COMP, data_deps=deps, duration=1 + npu * 7 * i % 16))
            chakra.write(self.folder / f"w.{npu}.et", nodes)
        for ranks in (4, 16):
            spell_out.traces(self.write("all-pairs-all-reduce", ranks), self.folder / f"part-{ranks}")
        return "custom: {nodes: {2: part-16, 4: part-4, 6: part-4}}\n"

    def test_results_are_the_same_on_any_number_of_ranks(self):
        """Nodes with custom collectives give the same results on 1 to 8 ranks, with both networks."""
        custom = self.steps()
        for model in MODELS:
            with self.subTest(model=model):
                self.check_one_answer([self.config(custom, model=model), "--timeline"], 16, ranks=RANKS)

    def test_results_are_the_same_folded(self):
        """Nodes with custom collectives give the same results folded and not."""
        config = self.config(self.steps())
        self.assertEqual(
            harness.difference(
                self.run_once([config], "plain.h5"), self.run_once([config, "--fold"], "folded.h5", ranks=2)
            ),
            "",
        )

    def test_the_resolved_configuration_gives_the_same_results(self):
        """The results keep the file that names the nodes, and the resolved configuration gives the same finish times."""
        import h5py

        pairs, halving = self.part("all-pairs-all-reduce", "pairs"), self.part("halving-doubling", "halving")
        first = self.run_once(self.two_with(f"7: {pairs}\n1: {halving}\n"))
        with h5py.File(first) as results:
            resolved = results["config/resolved"][()].decode()
            self.assertEqual(results["config/inputs/per-node-custom.yml"][()].decode(), f"7: {pairs}\n1: {halving}\n")
        self.assertIn(f'      nodes:\n        1: "{halving}"\n        7: "{pairs}"\n', resolved)
        (self.folder / "again.yaml").write_text(resolved)
        self.assertEqual(
            harness.finish_times(first), harness.finish_times(self.run_once([self.folder / "again.yaml"], "again.h5"))
        )

    def test_an_id_that_no_trace_has_is_a_warning(self):
        """Ids of nodes that no trace has give one warning, on 1 and 2 ranks."""
        pairs = self.part("all-pairs-all-reduce", "pairs")
        for ranks in (0, 2):
            outcome = harness.orrery(
                "run",
                *self.own_two(f"{{nodes: {{7: {pairs}, 8: {pairs}, 99: {pairs}}}}}"),
                "--force",
                f"--output={self.folder / 'out.h5'}",
                ranks=ranks,
            )
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(outcome.err.count("no trace has a collective with id 8, 99"), 1, outcome.err)

    def test_wrong_nodes_are_refused(self):
        """Wrong ids, files and mappings of nodes are refused with a message that names the file and the line."""
        pairs = self.part("all-pairs-all-reduce", "pairs")
        xml = self.folder / "all-pairs-all-reduce-4.xml"
        self.refused(self.two_with(f"7: {xml}"), "nodes.yaml:1", "found an MSCCL XML", "PREFIX of Chakra traces")
        self.refused(self.two_with(f"7: {pairs}\nseven: {pairs}"), "nodes.yaml:2", "'seven'", "a whole number")
        self.refused(self.two_with(f"7: {pairs}\n-1: {pairs}"), "nodes.yaml:2", "'-1'")
        self.refused(self.two_with("7: none"), "nodes.yaml:1", "there is no")
        self.refused(self.two_with("- 7"), "nodes.yaml", "a mapping")
        self.refused(self.two_with(""), "nodes.yaml", "the file is empty")
        self.refused(self.two(**{"per-node-custom-implementation": "none.yaml"}), "none.yaml")
        self.refused(self.own_two("{nodes: 7}"), "system.collectives.custom.nodes", "own.yaml:")
        self.refused(
            self.own_two(f"{{nodes: {{7: {xml}}}}}"), "system.collectives.custom.nodes.7", "found an MSCCL XML"
        )
        spell_out.traces(self.write("all-pairs-all-reduce", 16), self.folder / "part-16")
        self.refused(
            self.own_two("{nodes: {7: part-16}}"),
            "node 7",
            "no file spells it out for 4 members",
            "communicators of 16 (",
        )
        generated = harness.SOURCE / "configs/llama3-8b-64.yaml"
        self.refused(
            [generated, f"--set=system.collectives.custom={{nodes: {{7: {pairs}}}}}"],
            "system.collectives.custom.nodes",
            "the workload is generated",
        )

    def test_members_must_agree_on_the_node(self):
        """Node 7 of NPU 3 has another id. NPU 3 is in no collective of the file and in one too many of the others; the run is refused."""
        arguments = self.own_two(f"{{nodes: {{7: {self.part('all-pairs-all-reduce', 'pairs')}}}}}")
        chakra.write(
            self.folder / "workload.3.et",
            [
                Node(i, chakra.COLL, data_deps=deps, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)
                for i, deps in ((1, []), (8, [1]))
            ],
        )
        self.refused(arguments, "all NPUs by pairs", "NPU 3", "node 7")


if __name__ == "__main__":
    harness.main()
