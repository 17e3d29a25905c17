#!/usr/bin/python3
"""Thread blocks as events of the run (system.gpu with the congestion-aware network): requests cross the links of the network and meet
what else is on them, members of a collective come at different times, and compute nodes have the SMs that thread blocks leave.

The system: a switch of 2 or 4 GPUs with links of 450 GB/s and 150 ns, GPUs with the parameters of h100, plans of scripts/make_plan.py."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import h5py  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

CONFIG = """system:
  network: {{{network}, dimensions: [{{shape: Switch, size: {size}, bandwidth: 450 GB/s, latency: 150 ns}}]}}
  gpu: {{profile: h100{gpu}}}
  communication: {{streams: 2}}
  collectives: {{custom: {{{custom}}}}}
workload: {{traces: "w.{{npu}}.et"}}
"""
LINKS = "model: congestion-aware, switching: cut-through"
ALONE = "model: congestion-unaware"
KINDS = {
    "all-gather": chakra.ALL_GATHER,
    "all-reduce": chakra.ALL_REDUCE,
    "reduce-scatter": chakra.REDUCE_SCATTER,
    "all-to-all": chakra.ALL_TO_ALL,
}


def kind_of(plan):
    """Returns the kind of collective that a plan of scripts/make_plan.py is for."""
    return next((kind for kind in KINDS if plan.startswith(kind)), "all-reduce")


class Plans(harness.Folder):
    """A folder for plans, and for configurations and traces that use them."""

    def plan(self, name, gpus=4, blocks=2):
        subprocess.run(
            [
                sys.executable,
                harness.SOURCE / "scripts/make_plan.py",
                name,
                f"--gpus={gpus}",
                f"--blocks={blocks}",
                f"--output={self.folder / name}.json",
            ],
            check=True,
        )

    def config(self, plan, size=4, gpu="", network=LINKS):
        path = self.folder / "config.yaml"
        path.write_text(CONFIG.format(size=size, gpu=gpu, custom=f"{kind_of(plan)}: {plan}.json", network=network))
        return path

    def traces(self, npus, plan, size, delay=lambda npu: 0, beside=lambda npu: []):
        """Writes traces in which each NPU computes for 1 us and a delay and then takes part in a collective, with nodes beside that."""
        for npu in range(npus):
            nodes = [
                Node(0, chakra.COMP, duration=1 + delay(npu)),
                Node(1, chakra.COLL, data_deps=[0], comm_type=KINDS[kind_of(plan)], comm_size=size),
            ]
            chakra.write(self.folder / f"w.{npu}.et", nodes + beside(npu))


class GpuNetwork(Plans):
    def finish(self, config, *more):
        return harness.finish_times(self.run_once([config, *more]))

    def test_as_alone(self):
        """All members come together and nothing else is on the links: the last one ends as if the plan was simulated alone, but for the
        order of requests that come to a link at one time."""
        for name, size in (
            ("all-gather-put", 65536),
            ("all-gather-get", 65536),
            ("one-shot", 8192),
            ("two-shot", 1 << 18),
            ("ring", 1 << 16),
            ("two-shot-packets", 1 << 16),
            ("all-to-all-put", 1 << 18),
            ("reduce-scatter-get", 1 << 18),
        ):
            with self.subTest(plan=name):
                self.plan(name)
                self.traces(4, name, size)
                alone = self.finish(self.config(name, network=ALONE))
                over_links = self.finish(self.config(name))
                self.assertAlmostEqual((max(over_links) - 1e6) / (max(alone) - 1e6), 1, delta=0.005)

    def test_what_carries_out_a_collective(self):
        """orrery show collective names the plan where one is for the size and the members, simulated alone or over links, else the algorithm."""
        self.plan("two-shot")
        for more in ({}, {"network": ALONE}):
            config = self.config("two-shot", **more)
            for members, expected in ((4, "two-shot.json"), (2, None)):
                shown = harness.orrery(
                    "show", "collective", config, "--kind=all-reduce", "--bytes=64 KiB", f"--npus={members}", "--json"
                )
                self.assertEqual(shown.code, 0, shown.err)
                algorithm = json.loads(shown.out)["phases"][0]["algorithm"]
                self.assertEqual(algorithm == "two-shot.json", expected is not None, algorithm)

    def test_unused_plans_are_told(self):
        """A plan that no collective of the workload takes is a warning, on any number of ranks; one that a collective takes is none."""
        self.plan("two-shot")
        for network in (LINKS, ALONE):
            config = self.config("two-shot", network=network)
            for kind, is_told in (("two-shot", False), ("all-gather-put", True)):
                self.traces(4, kind, 65536)
                for ranks in (0, 2):
                    told = harness.orrery("check", config, ranks=ranks)
                    self.assertEqual(
                        "two-shot.json (all-reduce among 4 GPUs) carries out no collective" in told.out + told.err,
                        is_told,
                        told.out + told.err,
                    )

    def test_exactly_as_alone(self):
        """Two GPUs with one block each: no two requests come to a link at one time, and the last GPU ends at the very time."""
        for name in ("all-gather-put", "all-gather-get", "one-shot"):
            with self.subTest(plan=name):
                self.plan(name, gpus=2, blocks=1)
                self.traces(2, name, 4096)
                self.assertEqual(
                    max(self.finish(self.config(name, size=2, network=ALONE))),
                    max(self.finish(self.config(name, size=2))),
                )

    def test_members_come_at_different_times(self):
        """GPU 1 comes 20 us later. GPU 0 has stored its data by then and waits for a word; it ends as long after GPU 1 as it would if both
        had come together, less what GPU 1 does not have to wait for. Memory of GPU 1 takes data before GPU 1 has a kernel.
        """
        name = "all-gather-put"
        self.plan(name, gpus=2, blocks=1)
        self.traces(2, name, 4096)
        together = self.finish(self.config(name, size=2))
        self.traces(2, name, 4096, delay=lambda npu: 20 * npu)
        late = self.finish(self.config(name, size=2))
        self.assertAlmostEqual(late[0], together[0] + 20_000_000, delta=20_000)  # acknowledgements meet no data now
        self.assertLess(late[1], together[1] + 20_000_000)

    def test_other_traffic(self):
        """A message of 1 MB (2.22 us) from GPU 0 to GPU 1 holds the link of GPU 0 when its stores come: the collective takes longer, and so
        does one beside another collective of the same group."""
        name = "all-gather-put"
        self.plan(name, gpus=2, blocks=1)
        config = self.config(name, size=2)
        self.traces(2, name, 65536)
        free = self.finish(config)
        self.traces(
            2,
            name,
            65536,
            beside=lambda npu: [
                Node(2, chakra.COMP, duration=3),
                Node(
                    3,
                    chakra.RECV if npu else chakra.SEND,
                    data_deps=[2],
                    comm_src=0,
                    comm_dst=1,
                    comm_tag=1,
                    comm_size=1_000_000,
                ),
            ],
        )
        busy = self.finish(config)
        self.assertGreater(max(busy), max(free) + 500_000)

    def test_one_answer(self):
        """GPUs that come at different times, with a message between two of them: one answer on 1, 2, 3 and 4 ranks, by loads and stores;
        by packets on 1 and 3 ranks."""
        for name, size, ranks in (("two-shot", 1 << 18, (1, 2, 3, 4)), ("ring-packets", 1 << 14, (3,))):
            with self.subTest(plan=name):
                self.plan(name)
                beside = (
                    lambda npu: [
                        Node(
                            2,
                            chakra.RECV if npu == 2 else chakra.SEND,
                            data_deps=[0],
                            comm_src=1,
                            comm_dst=2,
                            comm_tag=1,  # noqa: E731
                            comm_size=300_000,
                        )
                    ]
                    if npu in (1, 2)
                    else []
                )
                self.traces(4, name, size, delay=lambda npu: npu * 3 % 4, beside=beside)
                path = self.check_one_answer([self.config(name)], 4, ranks=ranks, scattered=len(ranks) > 1)
                with h5py.File(path) as file:
                    self.assertEqual(len(file["gpu/kernels/npu"]), 4)

    def test_sums_in_the_switch(self):
        """The plan of MSCCL++ that lets the switch add up and multiply: as alone, and on 3 ranks alike."""
        plan = harness.shared("reference/gpu/plan_allreduce_nvls_zero_copy.json")
        (self.folder / "all-reduce.json").write_text(plan.read_text())
        self.traces(8, "all-reduce", 1 << 18)
        alone = self.finish(self.config("all-reduce", size=8, network=ALONE))
        path = self.check_one_answer([self.config("all-reduce", size=8)], 8, ranks=(3,), scattered=False)
        self.assertAlmostEqual((max(harness.finish_times(path)) - 1e6) / (max(alone) - 1e6), 1, delta=0.005)

    def test_compute_nodes_share_sms(self):
        """Of 4 SMs the two blocks hold 2 while the collective runs: what a compute node does beside it takes twice as long. The node of
        100 us is longer by half of the time of the blocks, from the launch and the load of the plan (2.3 us) to their end.
        """
        name = "all-gather-put"
        self.plan(name, gpus=2)
        self.traces(2, name, 1 << 21, beside=lambda npu: [Node(2, chakra.COMP, data_deps=[0], duration=100)])
        alone = self.finish(self.config(name, size=2, gpu=", sms: 4, compute-share: false"))
        self.assertEqual(alone, [101_000_000] * 2)
        path = self.run_once([self.config(name, size=2, gpu=", sms: 4")])
        with h5py.File(path) as file:
            for npu, finish in enumerate(harness.finish_times(path)):
                start, end = file["gpu/kernels/start"][npu], file["gpu/kernels/end"][npu]
                blocks = end - 100_000 - start - 2_300_000
                self.assertGreater(blocks, 10_000_000)
                self.assertLessEqual(finish - 101_000_000, (blocks + 1) // 2 + 1)
                self.assertGreater(finish - 101_000_000, 0.4 * blocks)

    def test_compute_nodes_share_memory(self):
        """Of 4 SMs the two blocks hold 2, and may move 2 x 37.2 GB/s of the 1,000 GB/s of memory. Under the roofline a node of 100 us that
        memory limits takes 1000 / 925.6 times as long beside them, and one that the peak limits twice as long."""
        name = "all-gather-put"
        self.plan(name, gpus=2)
        roofline = [
            "--set=system.compute.roofline=true",
            "--set=system.compute.peak=1 TFLOPS",
            "--set=system.compute.local-memory.bandwidth=1000 GB/s",
        ]
        for ops, size, factor in ((1, 100_000_000, 1000 / (1000 - 2 * 37.2)), (100_000_000, 1, 2)):
            with self.subTest(ops=ops):
                for npu in range(2):
                    chakra.write(
                        self.folder / f"w.{npu}.et",
                        [
                            Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=1 << 21),
                            Node(2, chakra.COMP, num_ops=ops, tensor_size=size),
                        ],
                    )
                path = self.run_once([self.config(name, size=2, gpu=", sms: 4"), *roofline])
                with h5py.File(path) as file:
                    for npu, finish in enumerate(harness.finish_times(path)):
                        blocks = file["gpu/kernels/end"][npu] - 100_000 - 2_300_000 - file["gpu/kernels/start"][npu]
                        self.assertGreater(blocks, 10_000_000)
                        # While the blocks are on, the node does 1 / factor of what it does alone. The blocks do not end at one time.
                        self.assertLessEqual(finish - 100_000_000, blocks * (1 - 1 / factor) + 3)
                        self.assertGreater(finish - 100_000_000, 0.8 * blocks * (1 - 1 / factor))

    def test_several_collectives_at_once(self):
        """Two collectives are on at one time: their kernels begin together, share the links, and the last one ends later than one alone, but
        sooner than one after the other. One answer on 1, 2 and 3 ranks, also with the ports of the GPUs."""
        name = "all-gather-put"
        self.plan(name, blocks=16)
        gathers = lambda numbers: [
            Node(k, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=1 << 18) for k in numbers
        ]  # noqa: E731
        for ports in ("", ", noc: ports, memory-rate: 600 GB/s, io-rate: 400 GB/s"):
            with self.subTest(ports=ports):
                config = self.config(name, gpu=ports)
                for npu in range(4):
                    chakra.write(self.folder / f"w.{npu}.et", gathers((1,)))
                with h5py.File(self.run_once([config])) as file:
                    alone = int(max(file["gpu/kernels/end"]))
                for npu in range(4):
                    chakra.write(self.folder / f"w.{npu}.et", gathers((1, 2)))
                with h5py.File(self.check_one_answer([config], 4, ranks=(2, 3), scattered=False)) as file:
                    start, end = file["gpu/kernels/start"][:], file["gpu/kernels/end"][:]
                    self.assertEqual(len(start), 8)
                    self.assertEqual(set(start.tolist()), {0})
                    self.assertGreater(int(max(end)), alone)
                    self.assertLess(int(max(end)), 2 * alone)

    def test_ports(self):
        """With `noc: ports` and much bandwidth nothing changes but by little; memory of 50 GB/s makes an all-gather by stores take as long
        as memory takes for what is read, and for what comes from three others."""
        name = "all-gather-put"
        self.plan(name)
        self.traces(4, name, 1 << 20)
        free = max(self.finish(self.config(name)))
        wide = max(self.finish(self.config(name, gpu=", noc: ports, memory-rate: 100000 GB/s, io-rate: 100000 GB/s")))
        self.assertGreaterEqual(wide, free)
        self.assertLess(wide, 1.03 * free)
        slow = max(self.finish(self.config(name, gpu=", noc: ports, memory-rate: 50 GB/s")))
        in_memory = (
            8 * (1 << 20) / 50e9 * 1e12
        )  # each GPU reads its share four times, writes it once, and three others come
        self.assertGreater(slow, in_memory)
        self.assertLess(slow, 1.2 * in_memory)
        alone = max(self.finish(self.config(name, gpu=", noc: ports, memory-rate: 50 GB/s", network=ALONE)))
        self.assertAlmostEqual((slow - 1e6) / (alone - 1e6), 1, delta=0.02)
        narrow = max(self.finish(self.config(name, gpu=", noc: ports, io-rate: 100 GB/s")))
        self.assertGreater(narrow, 3 * (1 << 20) * 156 / 128 / 100e9 * 1e12)

    def test_tables(self):
        """An all-gather of shares of 64 KiB by stores, of 4 GPUs with 2 blocks: what the tables of GPUs say."""
        name = "all-gather-put"
        self.plan(name)
        self.traces(4, name, 65536)
        with h5py.File(self.run_once([self.config(name)])) as file:
            gpu = file["gpu"]
            self.assertEqual(gpu["kernels/npu"][:].tolist(), [0, 1, 2, 3])
            self.assertEqual(gpu["kernels/blocks"][:].tolist(), [2] * 4)
            self.assertEqual(gpu["kernels/start"][:].tolist(), [1_000_000] * 4)
            end = gpu["kernels/end"][:].tolist()
            stalls = sum(gpu["stalls"][name][:] for name in gpu["stalls"] if name != "kernel")
            for row in range(4):  # blocks may end before the kernel does, by at most what the other block takes longer
                self.assertLessEqual(stalls[row], 2 * (end[row] - 1_000_000 - 100_000))
                self.assertGreater(stalls[row], 1.9 * (end[row] - 1_000_000 - 100_000))
            self.assertEqual(gpu["requests/data"][:].tolist(), [512] * 12)  # lines of 128 bytes
            self.assertEqual(gpu["requests/words"][:].tolist(), [2] * 12)
            self.assertEqual(gpu["requests/requests"][:].tolist(), [0] * 12)
            self.assertEqual(gpu["requests/bytes"][:].tolist(), [512 * (128 + 28) + 512 * 8 + 2 * 36] * 12)
            self.assertEqual(gpu["requests/peer"][:3].tolist(), [1, 2, 3])

    def test_stuck(self):
        """GPU 1 first waits for a message that GPU 0 sends after the collective: the run ends with what the thread block of GPU 0 waits
        for."""
        name = "all-gather-put"
        self.plan(name, gpus=2, blocks=1)
        message = {"comm_src": 0, "comm_dst": 1, "comm_tag": 1, "comm_size": 64}
        gather = {"comm_type": chakra.ALL_GATHER, "comm_size": 4096}
        chakra.write(
            self.folder / "w.0.et", [Node(0, chakra.COLL, **gather), Node(1, chakra.SEND, data_deps=[0], **message)]
        )
        chakra.write(
            self.folder / "w.1.et", [Node(0, chakra.RECV, **message), Node(1, chakra.COLL, data_deps=[0], **gather)]
        )
        outcome = harness.orrery("run", self.config(name, size=2), f"--output={self.folder / 'none.h5'}")
        self.assertEqual(outcome.code, 4, outcome.err)
        self.assertIn("thread block 0", outcome.err)
        self.assertIn("missing NPU 1", outcome.err)

    def test_refusals(self):
        """GPUs over links that store messages whole, in a network without links, alone among links, and in one of packets."""
        name = "all-gather-put"
        self.plan(name, gpus=2, blocks=1)
        self.traces(2, name, 4096)
        for network, gpu, words in (
            ("model: congestion-aware, switching: store-and-forward", "", "cut-through"),
            (ALONE, ", evaluate: in-network", "congestion-aware"),
            (LINKS, ", evaluate: alone", "in-network"),
            ("model: packet", "", "congestion-aware"),
        ):
            outcome = harness.orrery(
                "run", self.config(name, size=2, gpu=gpu, network=network), f"--output={self.folder / 'none.h5'}"
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn("system.gpu", outcome.err)
            self.assertIn(words, outcome.err)


if __name__ == "__main__":
    sys.exit(harness.main())
