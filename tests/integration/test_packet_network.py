#!/usr/bin/python3
"""The packet network under workloads of NPUs: times by hand, one answer on any number of ranks, agreement with the congestion-unaware network
as headers and packets get small, and what is refused."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

PACKETS = ["--network=packet"]
# Almost nothing but the payload.
BARE = ["--set=system.network.packets.header=1 B", "--set=system.network.packets.acknowledgement=1 B",
        "--set=system.network.packets.payload=1000 B", "--set=system.network.packets.window=none"]
SHAPES = {
    "switch": "{shape: Switch, size: 8, bandwidth: 100 GB/s, latency: 1 us}",
    "ring": "{shape: Ring, size: 8, bandwidth: 100 GB/s, latency: 1 us}",
    "all": "{shape: FullyConnected, size: 8, bandwidth: 100 GB/s, latency: 1 us}",
    "mixed": "{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}, {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}",
    "tree": "{shape: FatTree, ports: 4, size: 8, bandwidth: 50 GB/s, latency: 500 ns}",
    "dragonfly": "{shape: Dragonfly, npus-per-router: 1, size: 8, routers: 2, global-links: 2, bandwidth: 50 GB/s, latency: 500 ns}",
}
STEP = """system:
  network: {dimensions: [DIMENSIONS]}
  collectives: {chunks: 2, active-chunks: 2}
  communication: {rendezvous: RENDEZVOUS}
  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
workload:
  model: {layers: 2, hidden: 512, heads: 8, sequence: 128}
  parallel: {tp: 2, sp: true, dp: 2, pp: 2, micro-batches: 2}
"""


class PacketNetwork(harness.Folder):
    def configuration(self, dimensions, more=""):
        path = self.folder / "system.yaml"
        path.write_text(f"system:\n  network: {{dimensions: [{dimensions}]}}\n{more}")
        return str(path)

    def traces(self, nodes):
        harness.write_workload(self.folder, nodes)
        return [f"--set=workload.traces={self.folder / 'workload'}"]

    def test_send(self):
        """10,000 B over a Switch with 100 GB/s and 1 us: 11 packets of 1,036 B one after the other, then an acknowledgement, and 1 ps to each NPU."""
        nodes = [[Node(1, chakra.SEND, comm_src=0, comm_dst=1, comm_tag=0, comm_size=10_000)],
                 [Node(1, chakra.RECV, comm_src=0, comm_dst=1, comm_tag=0, comm_size=10_000)]]
        config = self.configuration("{shape: Switch, size: 2, bandwidth: 100 GB/s, latency: 1 us}")
        path = self.run_once([config, *PACKETS, *self.traces(nodes)])
        there = 11 * 10_360 + 2_000_000
        self.assertEqual(harness.finish_times(path), [there + 2 * (480 + 1_000_000) + 1, there + 1])

    def test_one_answer(self):
        """A training step with all parallelisms on 8 NPUs of each shape: the same results on 1, 2 and 4 ranks and scattered over 3."""
        for number, (name, dimensions) in enumerate(SHAPES.items()):
            with self.subTest(name):
                config = self.folder / "step.yaml"
                config.write_text(STEP.replace("DIMENSIONS", dimensions).replace("RENDEZVOUS", "true" if number % 2 else "false"))
                self.check_one_answer([str(config), *PACKETS], 8, ranks=(2, 4))
                self.clear_folder()

    def test_small_packets_come_near_the_delay_model(self):
        """A message of 4 MB that nothing disturbs takes what its bytes and hops take, and no more than its packets take beside that."""
        size = 4_000_000
        nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=size)] for _ in range(8)]
        for name in ("ring", "all", "switch"):
            with self.subTest(name):
                config = self.configuration(SHAPES[name])
                traces = self.traces(nodes)
                alone = max(harness.finish_times(self.run_once([config, *traces], "alone.h5")))
                error = max(harness.finish_times(self.run_once([config, *PACKETS, *BARE, *traces], "packets.h5"))) / alone - 1
                self.assertLess(abs(error), 0.01)
                larger = [*BARE, "--set=system.network.packets.payload=100 kB"]
                coarse = max(harness.finish_times(self.run_once([config, *PACKETS, *larger, *traces], "coarse.h5"))) / alone - 1
                self.assertLessEqual(abs(error), abs(coarse) + 0.002)

    def test_refusals(self):
        """What the packet network does not have is refused with the place."""
        nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1000)] for _ in range(4)]
        for dimensions, more, text in (
                ("{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 1 us, oversubscription: 2}", [], "oversubscribed switch"),
                ("{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 1 us, in-switch-operations: 2}", [], "in-switch-operations"),
                ("{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}", ["--set=system.network.switching=cut-through"], "cut-through"),
                ("{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}", ["--set=system.network.packets.payload=0 B"], "payload"),
                ("{shape: Ring, size: 4, bandwidth: 1 GB/s, latency: 1 us}", ["--fold"], "fold")):
            outcome = harness.orrery("run", self.configuration(dimensions), *PACKETS, *more, *self.traces(nodes),
                                     f"--output={self.folder / 'refused.h5'}")
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn(text, outcome.err)


if __name__ == "__main__":
    harness.main()
