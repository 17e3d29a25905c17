#!/usr/bin/python3
"""Whatever the number of ranks and the partition, the results outside /kernel are the same.

The systems: reference cases, random workloads that are larger and more skewed than those of test_oracle.py, remote memories of every
kind, and generated steps; most with timelines."""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
import reference_case  # noqa: E402
import tensors  # noqa: E402

SKEWED = [
    harness.SOURCE / "configs/llama3-8b-64.yaml",
    "--noise=0.05",
    "--set=workload.model.layers=8",
    "--set=workload.parallel.micro-batches=4",
]
STRATEGIES = ("block", "round-robin", "dimension:0", "metis")
SEEDS = range(9001, 9001 + harness.cases(2, 5, 10))


def variants(number):
    """Returns a part of the pairs of ranks and strategies; workloads of successive numbers take the parts in turn."""
    ranks, parts = ((2,), 2) if harness.FEWER_CASES else ((2, 3, 4, 8), harness.cases(2, 5, 2))
    return ([(1, "block")] + list(itertools.product(ranks, STRATEGIES)))[number % parts :: parts]


def chosen():
    """Returns the first exact reference case of each letter, or two of each."""
    cases = {}
    for case in reference_case.all_cases():
        if case.kind == "exact":
            cases.setdefault(case.name[0], []).append(case)
    return [case for letter in sorted(cases) for case in cases[letter][: harness.cases(1, 1, 2)]]


MEMORIES = ("PER_NPU_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL", "HIERARCHICAL_POOL")


class MemoryWorkload(random_workload.Workload):
    """A random workload with a remote memory of one kind, and accesses of many NPUs in one moment."""

    def __init__(self, seed, kind):
        self.kind = kind
        super().__init__(seed, operations=(40, 120))

    def draw_memory(self):
        memory = {
            "memory-type": self.kind,
            "remote-mem-latency": self.random.choice([0, 250]),
            "remote-mem-bw": self.random.choice([1, 16, 33]),
        }
        if self.kind == "HIERARCHICAL_POOL":
            switches = self.random.choice([1, 2, 3])
            memory.update(
                {
                    "num-memory-groups": switches * self.random.choice([1, 2, 5]),
                    "num-out-node-switches": switches,
                    "out-node-link-bw": self.random.choice([1, 10, 50]),
                    "out-node-link-latency": self.random.choice([0, 100]),
                    "in-node-fabric-bw": self.random.choice([1, 10, 50]),
                    "in-node-fabric-latency": 20,
                    "chunk-size": self.random.choice([64, 4096, 100000]),
                }
            )
        return memory

    def draw_system(self):
        system = super().draw_system()
        if self.kind == "HIERARCHICAL_POOL":
            system.memory["num-npus-per-node"] = self.random.choice(
                [n for n in range(1, system.num_npus + 1) if system.num_npus % n == 0]
            )
        return system

    def draw_operation(self, number):
        if self.kind == "HIERARCHICAL_POOL" and self.random.random() < 0.2:
            return self.group_access()
        super().draw_operation(number)

    def group_access(self):
        """Adds an access of a whole group, whose data the switches on the path gather or reduce."""
        name = self.random.choice(["", *self.groups])
        type, collective = self.random.choice(
            [
                (chakra.MEM_LOAD, chakra.ALL_GATHER),
                (chakra.MEM_STORE, chakra.REDUCE_SCATTER),
                (chakra.MEM_STORE, chakra.ALL_REDUCE),
            ]
        )
        members = self.groups[name] if name else range(self.num_npus)
        if set(members) <= set(self.tied):
            size = self.random.randint(1, 10**6)
            for npu in members:
                self.add(npu, type, "together", chained=True, comm_type=collective, pg_name=name, tensor_size=size)

    def shared_memory(self):
        return self.kind != "PER_NPU_MEMORY_EXPANSION"


class OneAnswer(harness.Folder):
    def test_reference_cases(self):
        """A reference case of each letter gives the same results without mpirun, on 2 ranks and scattered over 3."""
        for case in chosen():
            with self.subTest(case.name):
                self.check_one_answer(case.arguments() + ["--timeline"], case.num_npus, ranks=(2, 3))

    def test_random_workloads(self):
        """Random workloads of up to 64 NPUs give the same results without mpirun, on 2 ranks, some on 1 and 4, and scattered over 3."""
        for seed in SEEDS:
            workload = random_workload.Workload(seed, max_npus=64, operations=(40, 200))
            arguments = (
                [harness.write_workload(self.folder, workload.traces)]
                + workload.system.write(self.folder)
                + ["--timeline"]
            )
            with self.subTest(f"seed {seed}"):
                self.check_one_answer(arguments, workload.num_npus, ranks=(1, 2, 3, 4) if seed % 5 == 0 else (2, 3))
            self.clear_folder()

    def test_skewed_step(self):
        """A step of 64 NPUs, of which no two compute for the same time, gives the same results on 2 to 16 ranks, under two strategies on
        each number of ranks."""
        first = self.run_once(SKEWED, "alone.h5")
        for number, ranks in enumerate((2,) if harness.FEWER_CASES else (2, 3, 4, 8, 16)):
            for strategy in STRATEGIES if harness.WIDELY else STRATEGIES[number % 2 :: 2]:
                with self.subTest(strategy, ranks=ranks):
                    other = self.run_once(
                        [*SKEWED, f"--partition={strategy}"], f"{strategy[:3]}{ranks}.h5", ranks=ranks
                    )
                    self.assertEqual(harness.difference(first, other), "")

    def test_gathers_that_yield_in_a_pipeline(self):
        """Gathers of ZeRO 3 yield to the collectives of tensor parallelism, in a pipeline with a slow NPU; and a smaller step without one.
        Writing checkpoints, which lets no NPU be ahead, changes nothing either."""
        for parallel, slow in (
            (
                "pp: 2, tp: 4, dp: 2, micro-batches: 4, zero: 3",
                "perturbation: {slow-npus: [{npus: '2', compute: 0.5}]}\n",
            ),
            ("pp: 2, tp: 2, dp: 4, micro-batches: 3, zero: 3", ""),
        ):
            config = self.folder / "step.yaml"
            config.write_text(
                "system:\n"
                "  network: {dimensions: [{shape: Torus2D, size: 4x4, bandwidth: 50 GB/s, latency: 250 ns}]}\n"
                "  compute: {model: products, processor: h100, peak: 1 TFLOPS, local-memory: {bandwidth: 100 GB/s}}\n"
                f"{slow}workload:\n"
                "  model: {layers: 4, hidden: 64, heads: 8, sequence: 64}\n"
                f"  parallel: {{{parallel}}}\n"
            )
            with self.subTest(parallel):
                first = self.check_one_answer([config], 16, ranks=(2, 3, 4))
                often = [f"--checkpoint={self.folder / 'run.chk'}", "--checkpoint-interval=0.0001"]
                second = self.run_once([config, *often], "saved.h5")
                self.assertEqual(harness.difference(first, second), "")

    def test_remote_memories(self):
        """Random workloads with each kind of remote memory give the same results on 1 to 8 ranks under several strategies; with a
        hierarchical pool also on the congestion-aware network."""
        number = itertools.count()
        for kind in MEMORIES:
            seeds = (seed for seed in range(1, 1000) if MemoryWorkload(seed, kind).num_npus >= 8)
            for seed in itertools.islice(seeds, harness.cases(1, 2, 4 if kind == "HIERARCHICAL_POOL" else 2)):
                workload = MemoryWorkload(seed, kind)
                arguments = (
                    [harness.write_workload(self.folder, workload.traces)]
                    + workload.system.write(self.folder)
                    + ["--timeline"]
                )
                first = self.run_once(arguments, "alone.h5")
                for ranks, strategy in variants(next(number)):
                    with self.subTest(kind, seed=seed, ranks=ranks, partition=strategy):
                        other = self.run_once([*arguments, f"--partition={strategy}"], "other.h5", ranks=ranks)
                        self.assertEqual(harness.difference(first, other), "")
                        other.unlink()
                if kind == "HIERARCHICAL_POOL":
                    with self.subTest(kind, seed=seed, network="congestion-aware"):
                        self.check_one_answer([*arguments, "--network=congestion-aware"], workload.num_npus, ranks=(2,))
                self.clear_folder()

    def test_local_memory(self):
        """Random workloads with tensors have the same usage of the local memory on 1 to 8 ranks under several strategies."""
        seeds = (seed for seed in range(1, 1000) if random_workload.Workload(seed).num_npus >= 8)
        for number, seed in enumerate(itertools.islice(seeds, 1 if harness.FEWER_CASES else 2)):
            workload = random_workload.Workload(seed, operations=(40, 120))
            for npu, nodes in enumerate(workload.traces):
                tensors.list_tensors(nodes, random.Random(seed), f"{npu % 3}.")
            arguments = (
                [harness.write_workload(self.folder, workload.traces)]
                + workload.system.write(self.folder)
                + ["--timeline", "--iterations=2"]
            )
            first = self.run_once(arguments, "alone.h5")
            for ranks, strategy in variants(number):
                with self.subTest(seed=seed, ranks=ranks, partition=strategy):
                    self.assertEqual(
                        harness.difference(
                            first, self.run_once([*arguments, f"--partition={strategy}"], "other.h5", ranks=ranks)
                        ),
                        "",
                    )
            self.clear_folder()

    def test_offloaded_steps(self):
        """Generated steps whose parameters, gradients and optimizer state are in remote memory, over a skewed pipeline, give the same
        results on 2 to 8 ranks and scattered over 3."""
        pool = "npus-per-node: 4, bandwidth: 10 GB/s, latency: 200 ns"
        switches = (
            pool + ", groups: 4, switches: 2, link-bandwidth: 20 GB/s, fabric-bandwidth: 50 GB/s, chunk-size: 64 KiB"
        )
        for kind, keys, collectives, zero in (
            ("per-npu", "bandwidth: 5 GB/s, latency: 1 us", "network", 3),
            ("per-node", pool, "network", 2),
            ("hierarchical-pool", switches, "network", 1),
            ("hierarchical-pool", switches, "path", 3),
        ):
            config = self.folder / "config.yaml"
            config.write_text(
                "system:\n  network: {dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}, "
                "{shape: Switch, size: 4, bandwidth: 50 GB/s, latency: 1 us}]}\n"
                "  compute: {roofline: true, peak: 10 TFLOPS, local-memory: {bandwidth: 1 TB/s}, noise: 0.1}\n"
                f"  communication: {{streams: 4}}\n  remote-memory: {{kind: {kind}, {keys}}}\n"
                "workload:\n  model: {layers: 4, hidden: 256, heads: 4, sequence: 128, vocabulary: 512, experts: 4, top-k: 2, tied-embeddings: true}\n"
                f"  parallel: {{tp: 2, ep: 2, dp: 2, pp: 2, sp: true, micro-batches: 4, zero: {zero}, "
                f"offload: [parameters, gradients, optimizer], offload-collectives: {collectives}}}\n"
            )
            with self.subTest(kind, collectives=collectives):
                self.check_one_answer([config, "--timeline"], 16, ranks=(2,) if harness.FEWER_CASES else (2, 3, 4, 8))


class Comparison(harness.Folder):
    """The comparison that these tests use sees a difference where there is one."""

    def test_a_longer_latency_is_a_difference(self):
        """A random workload on a network with 1 ns more of latency gives results that differ."""
        workload = random_workload.Workload(1)
        arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
        one = self.run_once(arguments, "one.h5")
        workload.system.latency = [latency + 1 for latency in workload.system.latency]
        other = self.run_once([arguments[0]] + workload.system.write(self.folder), "other.h5")
        self.assertNotEqual(harness.difference(one, other), "")


if __name__ == "__main__":
    harness.main()
