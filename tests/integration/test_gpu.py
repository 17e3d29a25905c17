#!/usr/bin/python3
"""Collectives that the thread blocks of GPUs carry out: plans of MSCCL++ with a key system.gpu, each simulated alone.

The system: switches of 2 or 4 GPUs with links of 450 GB/s and 150 ns, GPUs with the parameters of h100."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import mscclpp  # noqa: E402
from chakra import Node  # noqa: E402

CONFIG = """system:
  network: {{{network}dimensions: [{{shape: Switch, size: {size}, bandwidth: 450 GB/s, latency: 150 ns}}]}}
  {gpu}
  collectives: {{custom: {{{custom}}}}}
workload: {{traces: "w.{{npu}}.et"}}
"""
GPU = "gpu: {profile: h100}"


def gather_plan(ranks, **more):
    """Returns a plan of MSCCL++ for an all-gather with one operation of each kind for all other ranks, and nops between them."""
    ids = list(range(ranks - 1))

    def operations(rank):
        own = {"index": rank, "size": 1}
        yield {"name": "nop"}
        yield {
            "name": "put",
            "channel_type": "memory",
            "channel_ids": ids,
            "src_buff": [{"type": "o", **own}] * len(ids),
            "dst_buff": [{"buffer_id": k, **own} for k in ids],
        }
        yield {"name": "nop"}
        for name in ("signal", "wait"):
            yield {"name": name, "channel_type": "memory", "channel_ids": ids}
        yield {"name": "nop"}

    return mscclpp.gather_plan(ranks, operations, **more)


class Gpus(harness.Folder):
    def config(self, size=2, gpu=GPU, custom="all-gather: gather.json", network=""):
        path = self.folder / "config.yaml"
        path.write_text(CONFIG.format(size=size, gpu=gpu, custom=custom, network=network))
        return path

    def traces(self, npus, *sizes, delay=lambda npu: 0):
        """Writes traces in which each NPU computes for a time and then takes part in all-gathers of shares of these sizes."""
        for npu in range(npus):
            nodes = [Node(0, chakra.COMP, duration=1 + delay(npu))]
            for size in sizes:
                nodes.append(
                    Node(
                        len(nodes), chakra.COLL, data_deps=[len(nodes) - 1], comm_type=chakra.ALL_GATHER, comm_size=size
                    )
                )
            chakra.write(self.folder / f"w.{npu}.et", nodes)

    def refused(self, config, *parts):
        outcome = harness.orrery("run", config, f"--output={self.folder / 'none.h5'}")
        self.assertEqual(outcome.code, 3, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)
        self.assertFalse((self.folder / "none.h5").exists())

    def test_time_of_a_plan(self):
        """Two GPUs exchange 4 KiB. Launch 1050 and load of the plan 1250; nop 20; put: op 220, a load of data 280; its bytes with headers hold
        a link for 11.094 ns, and are there out 280, way 300 and in 150 later; the acknowledgement of 256 bytes takes 0.569 ns, way 300 and
        out 280; fence 300; a word of 36 bytes: out 280, 0.080, way 300, in 150; a poll 240; nop 20; end 100."""
        (self.folder / "gather.json").write_text(gather_plan(2))
        self.traces(2, 4096)
        path = self.run_once([self.config()])
        expected = (
            1050
            + 1250
            + 20
            + 220
            + 280
            + (280 + 11.094 + 300 + 150)
            + (0.569 + 300 + 280)
            + 300
            + (280 + 0.080 + 300 + 150)
            + 240
            + 20
            + 100
        )
        finish = harness.finish_times(path)
        self.assertEqual(len(set(finish)), 1)
        self.assertAlmostEqual(finish[0] / 1000, 1000 + expected, delta=0.1)

    def test_sizes_and_groups_without_a_plan(self):
        """Sizes out of the range of the plan take the algorithms, as without GPUs."""
        self.traces(2, 4096)
        (self.folder / "gather.json").write_text(gather_plan(2, min_message_size=16384))
        with_plan = harness.finish_times(self.run_once([self.config()]))
        config = self.folder / "config.yaml"
        config.write_text(config.read_text().replace(GPU, "").replace("all-gather: gather.json", ""))
        config.write_text(config.read_text().replace("custom: {}", ""))
        self.assertEqual(with_plan, harness.finish_times(self.run_once([config])))

    def test_two_plans_by_size(self):
        """A plan for up to 64 KiB and one for more: each size has its own, and plans whose sizes overlap are refused."""
        (self.folder / "small.json").write_text(gather_plan(2, max_message_size=65536))
        (self.folder / "large.json").write_text(gather_plan(2, min_message_size=65552))
        self.traces(2, 4096, 1 << 20)
        config = self.config(custom="all-gather: [small.json, large.json]")
        self.run_once([config])
        (self.folder / "large.json").write_text(gather_plan(2, min_message_size=65536))
        self.refused(config, "small.json", "large.json", "65536 bytes")

    def test_parameters_change_times(self):
        """A longer launch makes the collective longer by as much."""
        (self.folder / "gather.json").write_text(gather_plan(2))
        self.traces(2, 4096)
        usual = harness.finish_times(self.run_once([self.config()]))[0]
        longer = harness.finish_times(self.run_once([self.config(gpu="gpu: {profile: h100, launch: 2.05 us}")]))[0]
        self.assertEqual(longer - usual, 1_000_000)

    def test_one_answer(self):
        """Four GPUs that come at different times: one answer on 1, 2, 3 and 4 ranks."""
        (self.folder / "gather.json").write_text(gather_plan(4))
        self.traces(4, 1 << 20, 999_984, delay=lambda npu: npu * 3 % 4)
        self.check_one_answer([self.config(size=4)], 4)

    def test_refusals(self):
        """GPUs in the congestion-aware network, beside a library, with a key that is not there, and a plan of another collective."""
        (self.folder / "gather.json").write_text(gather_plan(2))
        self.traces(2, 4096)
        self.refused(
            self.config(network="model: congestion-aware, switching: store-and-forward, "),
            "system.gpu.profile",
            "cut-through",
        )
        self.refused(self.config(gpu="gpu: {profile: h101}"), "h101", "h100")
        self.refused(self.config(gpu="gpu: {launch: 1 us}"), "system.gpu.launch", "profile")
        self.refused(self.config(custom="all-reduce: gather.json"), "gather.json", "all-gather")


if __name__ == "__main__":
    sys.exit(harness.main())
