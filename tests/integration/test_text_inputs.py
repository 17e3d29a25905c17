#!/usr/bin/python3
"""Text workloads of ASTRA-sim 1.0 and SimAI, its system and network files, and schedules in GOAL: what a run makes of them, on any number of
ranks, and how faulty ones are refused."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import test_fuzz  # noqa: E402

SYSTEM = """system:
  network:
    dimensions: [{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 0 ns}, {shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 0 ns}]
  collectives: {endpoint-delay: 0 ns}
workload: {traces: %s}
"""
SIMAI = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0
3
gather\t-1\t1000\tALLGATHER\t2000\t1\tNONE\t0\t1\tALLGATHER\t4000\t100
expert\t-1\t1000\tALLTOALL_EP\t2000\t1000\tALLTOALL_EP\t2000\t1\tALLREDUCE_DP_EP\t8000\t100
norm\t-1\t0\tBROADCAST\t2000\t1\tNONE\t0\t1\tNONE\t0\t100
"""
CUSTOMIZED = """HYBRID_CUSTOMIZED
3
one -1 1000 ALLGATHER 1000 1000 REDUCESCATTER 1000 1000 ALLREDUCE 1000 5 HYBRID_DATA_MODEL
two -1 1000 ALLGATHER 1000 1000 REDUCESCATTER 1000 1000 ALLREDUCE 1000 5 HYBRID_MODEL_DATA
three -1 1000 NONE 0 1000 REDUCESCATTER 1000 1000 ALLREDUCE 1000 5 MODEL
"""
GOAL = """num_ranks 8
rank 0 {
l1: calc 1000 cpu 0
l2: calc 2000 cpu 1
l3: send 1000b to 1 tag 7
l3 requires l1
l4: calc 500 cpu 0
l4 irequires l3
}
rank 1 {
l1: recv 1000b from 0 tag 7
}
""" + "".join(
    f"rank {rank} {{\n}}\n" for rank in range(2, 8)
)


class TextInputs(harness.Folder):
    def config(self, text, name="input.txt"):
        (self.folder / name).write_text(text)
        path = self.folder / "config.yaml"
        path.write_text(SYSTEM % (self.folder / name))
        return path

    def step(self, text, *arguments):
        """Runs a file and returns when the last of 8 NPUs ends, in ps."""
        self.run_once([self.config(text), *arguments])
        return max(harness.finish_times(self.folder / "results.h5"))

    def refusal(self, text):
        outcome = harness.orrery("check", self.config(text))
        self.assertEqual(outcome.code, 3, outcome.err)
        return outcome.err

    def test_one_answer(self):
        """A SimAI workload with TP 2, EP 2 and DP 4, a customized one and a schedule, on 8 NPUs: one answer on 1, 2, 3, 4 and 8 ranks, folded
        and not."""
        for text in (SIMAI, CUSTOMIZED, GOAL):
            with self.subTest(text.split()[0]):
                config = self.config(text)
                self.check_one_answer([config], 8, ranks=(1, 2, 3, 4, 8))
                plain = self.step(text)
                self.assertEqual(self.step(text, "--fold"), plain)

    def test_loops(self):
        """One layer of 1, 2 and 4 us and an update of 8 ns, with an all-reduce of 8 MB in each pass, which takes far longer: each loop carries
        out its own passes."""
        row = "layer -1 1000 ALLREDUCE 8000000 2000 ALLREDUCE 8000000 4000 ALLREDUCE 8000000 8"
        compute = {
            "DATA": 5,
            "MODEL": 7,
            "HYBRID_TRANSFORMER model_parallel_NPU_group: 2": 7,
            "MICRO": 0,
            "DISTRIBUTED_INFERENCE": 1,
            "HYBRID_DLRM": 5,
        }
        communications = {
            "DATA": 1,
            "MODEL": 1,
            "HYBRID_TRANSFORMER model_parallel_NPU_group: 2": 3,
            "MICRO": 1,
            "DISTRIBUTED_INFERENCE": 1,
            "HYBRID_DLRM": 1,
        }
        for loop, us in compute.items():
            with self.subTest(loop):
                (self.folder / "input.txt").write_text(f"{loop}\n1\n{row}\n")
                outcome = harness.orrery("show", "trace", self.folder / "input.txt", "--json")
                self.assertEqual(outcome.code, 0, outcome.err)
                found = json.loads(outcome.out)
                count = communications[loop]
                self.assertEqual(found["collectives"]["all-reduce"], {"count": count, "bytes": 8_000_000 * count})
                self.assertEqual(found["recorded_duration_ps"], us * 10**6 + count * 8000)

    def test_compute_is_in_ns_and_updates_delay(self):
        """MODEL with one layer of 1, 2 and 4 us, and no communication: 7 us. With an all-reduce of 8 bytes in the forward pass and an update of
        50 ns: at least 50 ns more."""
        self.assertEqual(self.step("MODEL\n1\na -1 1000 NONE 0 2000 NONE 0 4000 NONE 0 50\n"), 7 * 10**6)
        self.assertGreaterEqual(self.step("MODEL\n1\na -1 1000 ALLREDUCE 8 2000 NONE 0 4000 NONE 0 50\n"), 7_050_000)

    def test_checkpoints_repeat_the_forward_pass(self):
        """Three layers of 1 us in each pass, without communication: 9 us. Layer 2 repeats the forward pass from checkpoint 0: 11 us."""
        rows = "".join(f"{name} -1 1000 NONE 0 1000 NONE 0 1000 NONE 0 0\n" for name in "abc")
        loop = (
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: %s checkpoint_initiates: %s\n3\n"
        )
        self.assertEqual(self.step(loop % ("0", "0") + rows), 9 * 10**6)
        self.assertEqual(self.step(loop % ("1 0", "1 2") + rows), 11 * 10**6)
        self.assertIn("no layer before it is a checkpoint", self.refusal(loop % ("0", "1 2") + rows))

    def test_files_of_comet(self):
        """Layers with operations and with matrix products. Without a roofline the times of the file count; with one, the operations: 2000 FLOPs
        at 1 TFLOPS are 2 ns. An input gradient travels while the weight gradient is computed, and an all-gather of 1000 bytes brings 1000
        from each of two members."""
        loop = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 0 checkpoint_initiates: 0\n1\n"
        operations = loop + "a -1 2000 0 1000 NONE 0 2000 0 2000 %s 2000 0 900000 NONE 0 0\n"
        self.assertEqual(self.step(operations % "NONE 0"), 903 * 10**6)
        roofline = [
            "--set=system.compute.roofline=true",
            "--set=system.compute.peak=1 TFLOPS",
            "--set=system.compute.local-memory.bandwidth=1 TB/s",
        ]
        self.assertEqual(self.step(operations % "NONE 0", *roofline), 6000)
        self.assertEqual(self.step(operations % "ALLGATHER 1000"), 903 * 10**6)  # 1 us beside 900 us
        self.assertEqual(self.step(operations.replace("900000", "100") % "ALLGATHER 1000"), 4 * 10**6)
        products = loop + "a -1 1000 0 10 10 10 NONE 0 2000 0 10 10 10 NONE 0 4000 0 10 10 10 NONE 0 0\n"
        self.assertEqual(self.step(products), 7 * 10**6)
        self.assertEqual(self.step(products, *roofline), 6000)

    def test_another_number_of_layers_is_a_warning(self):
        """The second line says 839 layers and one is there, as in a file of AICB: it runs, and a warning says so."""
        outcome = harness.orrery("check", self.config("MODEL\n839\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"))
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("the second line says 839 layers, but the file has 1", outcome.err)

    def test_refused_workloads(self):
        """Each of these workloads has one fault; the message says the line and what is wrong."""
        row = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1"
        for text, parts in (
            (f"HYBRID_NOTHING\n1\n{row}\n", (":1:", "HYBRID_NOTHING", "HYBRID_DATA_MODEL")),
            (f"MODEL\nx\n{row}\n", (":2:", "the number of layers is 'x'")),
            (f"MODEL\n1\n{row} 7\n", (":3:", "13 columns", "12 columns")),
            ("MODEL\n1\n", ("has no layer",)),
            (f"MODEL\n1\n{row.replace('NONE', 'ALLREDUCEALLTOALL', 1)}\n", (":3:", "ALLREDUCEALLTOALL")),
            (f"MODEL\n1\n{row.replace(' 1 ', ' -1 ', 1)}\n", (":3:", "column 3", "'-1'")),
            (SIMAI.replace("all_gpus: 8", "all_gpus: 16"), (":1:", "16 GPUs", "8 NPUs")),
            (SIMAI.replace("ep: 2", "ep: 3"), (":1:", "share experts")),
            (SIMAI.replace("NPU_group: 2", "NPU_group: x"), (":1:", "model_parallel_NPU_group is 'x'")),
        ):
            said = self.refusal(text)
            for part in parts:
                self.assertIn(part, said)

    def test_files_of_astra_sim_1(self):
        """A network, a system and a workload of ASTRA-sim 1.0 on 4 NPUs give what the same files of ASTRA-sim 2 give."""
        workload = "MICRO\n1\nlayer -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 1048576 5\n"
        self.config(workload)
        first = {
            "network.json": '{"topology-name": "Hierarchical", "topologies-per-dim": ["Ring", "Ring"], "units-count": [2, 2], "link-latency": [500, 1], '
            '"link-bandwidth": [25, 12.5], "links-count": [2, 2]}',
            "system.txt": "scheduling-policy: LIFO \nendpoint-delay: 10\npreferred-dataset-splits: 4\nall-reduce-implementation: ring_direct\n"
            "all-gather-implementation: ring_ring\nreduce-scatter-implementation: ring_ring\nall-to-all-implementation: ring_ring\n"
            "collective-optimization: localBWAware\n",
        }
        second = {
            "network.json": "{topology: [Ring, Ring], npus_count: [2, 2], bandwidth: [25, 12.5], latency: [500, 1]}",
            "system.txt": '{"endpoint-delay": 10, "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring", "direct"], '
            '"all-gather-implementation": ["ring", "ring"], "reduce-scatter-implementation": ["ring", "ring"], '
            '"all-to-all-implementation": ["ring", "ring"], "collective-optimization": "localBWAware"}',
        }
        (self.folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
        times = []
        for files in (first, second):
            for name, text in files.items():
                (self.folder / name).write_text(text)
            self.run_once(
                [
                    f"--workload-configuration={self.folder / 'input.txt'}",
                    f"--network-configuration={self.folder / 'network.json'}",
                    f"--system-configuration={self.folder / 'system.txt'}",
                    f"--remote-memory-configuration={self.folder / 'memory.json'}",
                ]
            )
            times.append(harness.finish_times(self.folder / "results.h5"))
        self.assertEqual(*times)

    def test_spoilt_files_end_in_order(self):
        """60 workloads and schedules with spoilt bytes or words: `check` accepts, refuses or finds each stuck, and does not blame itself."""
        for number in range(60):
            draw = random.Random(number)
            text = draw.choice((SIMAI, CUSTOMIZED, GOAL))
            with self.subTest(number):
                config = self.config(text)
                path = self.folder / "input.txt"
                path.write_bytes(
                    test_fuzz.spoil_text(draw, text) if number % 2 else test_fuzz.spoil_bytes(draw, text.encode())
                )
                outcome = harness.orrery("check", config)
                self.assertIn(outcome.code, test_fuzz.CHECKED, outcome.err)
                self.assertNotIn("fault of Orrery", outcome.err)


if __name__ == "__main__":
    harness.main()
