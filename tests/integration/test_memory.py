#!/usr/bin/python3
"""Remote memory in whole runs: times by hand (docs/memory.md), which are the same on any number of ranks.

The system of most tests: 8 NPUs in 2 nodes with a hierarchical pool, whose stages take what the comment below says."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

NS = 1000  # ps
# 8 NPUs in 2 nodes. A piece is 4 x 8000 / 8 = 4000 B. Of all NPUs together it takes 800 ns from the groups (4 x 10 GB/s), 1600 ns
# over the 2 links of a node (5 GB/s each) and 1000 ns over the fabric; of one alone 100, 400 and 1000 ns.
POOL = {
    "kind": "hierarchical-pool",
    "npus-per-node": 4,
    "groups": 4,
    "bandwidth": "10 GB/s",
    "latency": "100 ns",
    "switches": 2,
    "link-bandwidth": "5 GB/s",
    "link-latency": "50 ns",
    "fabric-bandwidth": "4 GB/s",
    "fabric-latency": "25 ns",
    "chunk-size": "8000 B",
}
LATENCY = 100 + 50 + 25


def load(id, size, *after, type=chakra.MEM_LOAD, **attributes):
    return Node(id, type, data_deps=after, tensor_size=size, **attributes)


def wait(id, microseconds):
    return Node(id, chakra.COMP, duration=microseconds)


class Memory(harness.Folder):
    def config(self, nodes, memory=POOL):
        """Writes the traces of 8 NPUs with these nodes, {NPU: nodes}; others have nothing to do. Returns the configuration."""
        for npu in range(8):
            chakra.write(self.folder / f"w.{npu}.et", nodes.get(npu, []))
        path = self.folder / "config.yaml"
        keys = ", ".join(f"{key}: {value}" for key, value in memory.items())
        path.write_text(
            "system:\n  network:\n    dimensions: [{shape: Ring, size: 8, bandwidth: 50 GB/s, latency: 500 ns}]\n"
            f"  remote-memory: {{{keys}}}\nworkload: {{traces: w}}\n"
        )
        return path

    def finish(self, nodes, memory=POOL):
        """Returns the finish times in ns, which must be the same on 1, 2 and 3 ranks."""
        return [
            time / NS
            for time in harness.finish_times(self.check_one_answer([self.config(nodes, memory)], 8, ranks=(2, 3)))
        ]

    def test_loads_of_all_npus_together(self):
        """All 8 NPUs load or store 10 chunks at once: the first goes through all stages, the others follow behind the links, the
        slowest stage."""
        for type in (chakra.MEM_LOAD, chakra.MEM_STORE):
            times = self.finish({npu: [load(1, 40_000, type=type)] for npu in range(8)})
            self.assertEqual(times, [800 + 1600 + 1000 + 9 * 1600 + LATENCY] * 8)

    def test_loads_one_after_the_other(self):
        """NPU 1 waits for the groups until 1,000 ns, then for the links of its node, which NPU 0 holds until 4,200 ns; NPU 4 of the
        other node waits for the groups only, until 2,000 ns."""
        times = self.finish(
            {0: [load(1, 40_000)], 1: [wait(1, 1), load(2, 40_000, 1)], 4: [wait(1, 2), load(2, 4_000, 1)]}
        )
        self.assertEqual(times[0], 100 + 400 + 10 * 1000 + LATENCY)
        self.assertEqual(times[1], 4200 + 400 + 50 + 10 * 1000 + 25)
        self.assertEqual(times[4], 2000 + 100 + 400 + 1000 + LATENCY)

    def test_loads_of_two_sizes_together(self):
        """NPU 0 has one piece, NPU 4 of the other node three: the first round takes 200 ns from the groups, the others 100."""
        times = self.finish({0: [load(1, 4_000)], 4: [load(1, 12_000)]})
        self.assertEqual(times[0], 200 + 400 + 1000 + LATENCY)
        self.assertEqual(times[4], 200 + 400 + 3 * 1000 + LATENCY)

    def grouped(self, nodes, members=range(8), memory=POOL):
        """Returns a configuration like `config` in which these members are group "g"."""
        path = self.config(nodes, memory)
        (self.folder / "groups.json").write_text(json.dumps({"g": list(members)}))
        path.write_text(path.read_text().replace("{traces: w}", "{traces: w, groups: groups.json}"))
        return path

    def together(self, type, collective, arrivals):
        """Returns the finish times in ns of 8 NPUs that access 40,000 B as a group over fabrics of 40 GB/s, NPU i from its arrival in
        us on."""
        nodes = {
            npu: [wait(1, us), load(2, 40_000, 1, type=type, comm_type=collective, pg_name="g")]
            for npu, us in enumerate(arrivals)
        }
        path = self.grouped(nodes, memory={**POOL, "fabric-bandwidth": "40 GB/s"})
        return [time / NS for time in harness.finish_times(self.check_one_answer([path], 8, ranks=(2, 3)))]

    def test_collectives_on_the_path_begin_with_the_last_member(self):
        """A round of 4,000 B is read once (100 ns), and goes to each node once (400 ns) and to each NPU (100 ns); what is reduced and
        comes back passes links and fabrics twice."""
        late = [3, 1, 1, 2, 1, 1, 1, 2]
        gathered = 3000 + 100 + 10 * 400 + 100 + LATENCY
        self.assertEqual(self.together(chakra.MEM_LOAD, chakra.ALL_GATHER, late), [gathered] * 8)
        self.assertEqual(self.together(chakra.MEM_STORE, chakra.REDUCE_SCATTER, late), [gathered] * 8)
        self.assertEqual(
            self.together(chakra.MEM_STORE, chakra.ALL_REDUCE, late),
            [3000 + 100 + 10 * 800 + 200 + LATENCY + 50 + 25] * 8,
        )

    def test_a_sum_completes_for_all_members_together(self):
        """NPU 0 loads for itself while its node, and NPU 7 of the other node, gather and reduce. What is gathered may come to NPU 7
        earlier than to NPU 0; a sum waits for the data of NPU 0."""

        def finish(type, collective):
            nodes = {
                0: [load(1, 40_000), wait(2, 1), load(3, 4_000, 2, type=type, comm_type=collective, pg_name="g")],
                7: [wait(1, 1), load(2, 4_000, 1, type=type, comm_type=collective, pg_name="g")],
            }
            path = self.grouped(nodes, members=(0, 7))
            path.write_text(
                path.read_text().replace("  remote-memory", "  communication: {streams: 2}\n  remote-memory")
            )
            times = harness.finish_times(self.check_one_answer([path], 8, ranks=(2, 3)))
            return times[0] / NS, times[7] / NS

        alone = 100 + 400 + 10 * 1000 + LATENCY
        self.assertEqual(finish(chakra.MEM_LOAD, chakra.ALL_GATHER), (alone + 1000, 1000 + 100 + 400 + 1000 + LATENCY))
        self.assertEqual(finish(chakra.MEM_STORE, chakra.REDUCE_SCATTER), (alone + 1000, alone + 1000))

    def test_an_own_memory_serves_one_access_at_a_time(self):
        """Two accesses of an NPU at a time: its own memory serves them one after the other, under the rules of ASTRA-sim side by side."""
        path = self.config(
            {npu: [load(1, 4_000), load(2, 8_000), load(3, 4_000, 1)] for npu in range(8)},
            {"kind": "per-npu", "bandwidth": "4 GB/s", "latency": "100 ns"},
        )
        path.write_text(path.read_text().replace("  remote-memory", "  communication: {streams: 2}\n  remote-memory"))
        for rules, expected in (("physical", 1100 + 2100 + 1100), ("astra-sim", 2200)):
            with self.subTest(rules):
                times = harness.finish_times(
                    self.check_one_answer([path, "--set", f"system.rules={rules}"], 8, ranks=(2, 3))
                )
                self.assertEqual([time / NS for time in times], [expected] * 8)

    def test_the_results_have_a_row_for_each_stage(self):
        """4 NPUs load 4,000 B each for themselves, all 8 sum 4,000 B and get the sum: bytes, busy times and utilisations of groups,
        links and fabrics are as computed by hand."""
        import h5py

        nodes = {npu: [load(1, 4_000, type=chakra.MEM_STORE, comm_type=chakra.ALL_REDUCE)] for npu in range(8)}
        for npu in range(4):
            nodes[npu].append(load(2, 4_000, 1))
        path = self.check_one_answer([self.config(nodes)], 8, ranks=(2, 3))
        with h5py.File(path) as results:
            memory, finish = results["memory"], max(results["npus/finish_time"][:])
            self.assertEqual(list(memory["name"].asstr()[:]), ["groups", "links", "fabrics"])
            self.assertEqual(list(memory["servers"][:]), [1, 2, 8])
            self.assertEqual(list(memory["bytes"][:]), [20_000, 2 * 8_000 + 16_000, 8 * 8_000 + 16_000])
            self.assertEqual(list(memory["busy_time"][:]), [500 * NS, 3200 * NS, 20_000 * NS])
            for used, busy, servers in zip(memory["utilisation"][:], memory["busy_time"][:], memory["servers"][:]):
                self.assertAlmostEqual(used, busy / (servers * finish))

    def test_a_group_of_one_loads_for_itself(self):
        """An all-reduce of a group of one NPU takes what the store of this NPU takes."""
        nodes = {0: [load(1, 40_000, type=chakra.MEM_STORE, comm_type=chakra.ALL_REDUCE, pg_name="g")]}
        times = harness.finish_times(self.run_once([self.grouped(nodes, members=[0])]))
        self.assertEqual(times[0] / NS, 100 + 400 + 10 * 1000 + LATENCY)

    def test_a_missing_member_is_named(self):
        """NPU 1 waits for a message that NPU 0 would send after the access of both. On 1, 2 and 3 ranks the report names the access and
        the missing member."""
        gather = {"comm_type": chakra.ALL_GATHER, "pg_name": "g"}
        nodes = {
            0: [load(1, 100, **gather), Node(2, chakra.SEND, data_deps=[1], comm_dst=1, comm_size=8)],
            1: [Node(1, chakra.RECV, comm_src=0, comm_size=8), load(2, 100, 1, **gather)],
        }
        path = self.grouped(nodes, members=(0, 1))
        for ranks in (0, 2, 3):
            outcome = harness.orrery(
                "run", path, f"--output={self.folder / 'r.h5'}", "--partition=round-robin", ranks=ranks
            )
            self.assertEqual(outcome.code, 4, outcome.err)
            self.assertIn(
                "waits from the start for load with all-gather number 1 of group 'g' (100 bytes): 1 of 2 members are there, missing NPU 1",
                outcome.err,
            )

    def refused(self, nodes, *words, memory=POOL, members=(0, 1), command="check"):
        """Checks that a job with these nodes ends with exit code 3 on 1 and 2 ranks, and a message with these words."""
        for ranks in (0, 2):
            more = ["--partition=round-robin"] + ([f"--output={self.folder / 'r.h5'}"] if command == "run" else [])
            outcome = harness.orrery(command, self.grouped(nodes, members, memory), *more, ranks=ranks)
            self.assertEqual(outcome.code, 3, outcome.err)
            for word in words:
                self.assertIn(word, outcome.err)

    def test_members_that_disagree_are_refused(self):
        """Members of an access that differ in size, kind, number or order are refused with a message that names both."""

        def both(first, other):
            return {0: [load(1, 100, **first)], 1: [load(1, **{"size": 100, **other})]}

        gather = {"comm_type": chakra.ALL_GATHER, "pg_name": "g"}
        scatter = {"type": chakra.MEM_STORE, "comm_type": chakra.REDUCE_SCATTER, "pg_name": "g"}
        self.refused(
            both(gather, scatter),
            "the members of group 'g' disagree",
            "(load with all-gather of 100 bytes)",
            "(store with reduce-scatter of 100 bytes)",
        )
        self.refused(
            both(gather, {**gather, "size": 99}),
            "the members of group 'g' disagree",
            "(load with all-gather of 99 bytes)",
        )
        self.refused(
            {0: [load(1, 100, **gather)]},
            "disagree",
            "NPU 0 has node 1 'n1' (load with all-gather of 100 bytes), which NPU 1 has not, nor any other",
        )

        def in_order(*sizes):
            return [load(1, sizes[0], **gather), load(2, sizes[1], 1, **gather)]

        self.refused({0: in_order(100, 200), 1: in_order(200, 100)}, "disagree on the order")
        # Without dependencies between them what happens counts.
        free = {
            0: [load(1, 100, **gather), load(2, 200, **gather)],
            1: [load(1, 200, **gather), load(2, 100, **gather)],
        }
        self.refused(
            free,
            "disagree on their access number 1",
            "load with all-gather of 100 bytes",
            "load with all-gather of 200 bytes",
            command="run",
        )

    def test_accesses_that_no_memory_carries_out_are_refused(self):
        """Collectives that switches do not carry out, of unknown types, or without switches or a memory are refused."""

        def nodes(**attributes):
            return {npu: [load(1, 100, pg_name="g", **attributes)] for npu in (0, 1)}

        self.refused(
            nodes(comm_type=chakra.ALL_REDUCE),
            "node 1 'n1'",
            "switches carry out no load with all-reduce",
            "a load with all-gather (2)",
        )
        self.refused(
            nodes(comm_type=chakra.ALL_GATHER, type=chakra.MEM_STORE), "switches carry out no store with all-gather"
        )
        self.refused(nodes(comm_type=77), "collective type 77 is not known")
        self.refused(nodes(comm_type=chakra.ALL_GATHER, involved_dim=[False, False]), "no dimension takes part")
        self.refused(
            nodes(comm_type=chakra.ALL_GATHER),
            "the node is a load with all-gather, but the remote memory has no switches",
            memory={"kind": "pool", "bandwidth": "1 GB/s"},
        )
        self.refused(
            nodes(comm_type=chakra.ALL_GATHER),
            "the node accesses remote memory, but the system has none",
            memory={"kind": "none"},
        )

    def test_wrong_sizes_of_the_pool_are_refused(self):
        """Numbers of switches, nodes, groups and chunk sizes that do not fit each other are refused with one message that names the
        key."""
        for key, value, words in (
            ("switches", 3, "divisor of the 4 memory groups"),
            ("npus-per-node", 3, "divisor of the 8 NPUs"),
            ("chunk-size", "1 B", "a byte for each of the 8 NPUs from 4 groups"),
            ("groups", 0, "1 or more"),
        ):
            outcome = harness.orrery("check", self.config({}, {**POOL, key: value}))
            self.assertEqual(outcome.code, 3)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            self.assertIn(key, outcome.err)
            self.assertIn(words, outcome.err)


class Study(harness.Folder):
    @harness.long
    def test_the_pool_study_agrees_with_its_bounds(self):
        """The pool study fails if a step takes other than what its stages say. It draws its plot."""
        plot = self.folder / "pool.png"
        done = harness.run_script("scripts/studies/pool", f"--plot={plot}", f"--orrery={harness.BINARY}")
        self.assertEqual(done.code, 0, done.err)
        self.assertGreater(plot.stat().st_size, 0)

    @harness.long
    def test_the_memory_study_finds_the_published_speedups(self):
        """The memory study fails unless HierMem's baseline is ZeRO-Infinity's equal and HierMem opt four to five times better. It
        attributes the speedup and draws its plot."""
        plot = self.folder / "memory.png"
        done = harness.run_script("scripts/studies/memory", f"--plot={plot}", f"--orrery={harness.BINARY}")
        self.assertEqual(done.code, 0, done.out + done.err)
        self.assertIn("bandwidth has 37 % and in-switch collectives have 63 %", done.out)
        self.assertGreater(plot.stat().st_size, 0)


if __name__ == "__main__":
    harness.main()
