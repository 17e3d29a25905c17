#!/usr/bin/python3
"""Runs over packets, over the links with thread blocks of GPUs, and repeated runs go on from their checkpoints to the same bits.

As test_checkpoint.py: each case is simulated once, then killed at a random moment while it writes checkpoints, and goes on on other
numbers of ranks."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import checkpoints  # noqa: E402
import graphs  # noqa: E402
import harness  # noqa: E402
import test_gpu_network  # noqa: E402
import test_packet_network  # noqa: E402
from chakra import Node  # noqa: E402

NOISE = "--noise=0.05"
# Ranks wait for each other at each link, so that more of them than cores take long.
FEW_RANKS = (0, 2, 3) if checkpoints.KILLS == 1 else (0, 2, 3, 8)
# Buffers so small that switches drop what the windows let through, and senders go back.
LOSSY = [
    "--set=system.network.packets.pauses=false",
    "--set=system.network.packets.buffer=60 kB",
    "--set=system.network.packets.window=none",
]


# Switches mark packets early, for the controls that honour marks.
MARKS = "--set=system.network.packets.marks=[[400 Gb/s, 5 kB, 50 kB, 0.5], [800 Gb/s, 5 kB, 50 kB, 0.5]]"


class Packets(checkpoints.KilledRuns):
    others = FEW_RANKS

    def step(self, network, rendezvous, iterations, more=(), model="packet"):
        """Returns the arguments of a training step of 8 NPUs over a network."""
        path = self.folder / "step.yaml"
        path.write_text(
            test_packet_network.STEP.replace("{dimensions: [DIMENSIONS]}", network).replace("RENDEZVOUS", rendezvous)
        )
        return [path, f"--network={model}", NOISE, "--timeline", f"--iterations={iterations}", *more]

    def test_shapes(self):
        """A step over each shape, with and without rendezvous: packets, acknowledgements and pauses are under way."""
        shapes = list(test_packet_network.SHAPES.items())
        for number, (name, dimensions) in enumerate(shapes[-2:] if checkpoints.KILLS == 1 else shapes):
            with self.subTest(name):
                self.check(self.step(f"{{dimensions: [{dimensions}]}}", "true" if number % 2 else "false", 3), 8)
                self.clear_folder()

    @harness.long
    def test_controls(self):
        """Each congestion control on a graph of two leaves with slow links to the spines: rates, timers, marks and telemetry."""
        graph = self.folder / "leaves.yaml"
        controls = (
            ("dcqcn", "hpcc", "swift") if checkpoints.KILLS == 1 else ("dcqcn", "hpcc", "dctcp", "timely", "swift")
        )
        for control in controls:
            with self.subTest(control):
                graph.write_text(json.dumps(graphs.leaves([6, 4])))
                network = "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
                self.check(
                    self.step(network, "false", 3, [MARKS, f"--set=system.network.packets.control={control}"]), 8
                )

    def test_graph_of_links(self):
        """The congestion-aware network on a graph: messages wait at links between leaves and spines."""
        (self.folder / "leaves.yaml").write_text(json.dumps(graphs.leaves([6, 4])))
        network = "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
        self.check(self.step(network, "true", 8, model="congestion-aware"), 8)

    @harness.long
    def test_credits(self):
        """Links with little credit, on two channels: packets wait for it, and credits are under way."""
        credits = [
            "--set=system.network.packets.flow-control=credits",
            "--set=system.network.packets.credits=5 kB",
            "--set=system.network.packets.virtual-channels=2",
        ]
        self.check(self.step(f"{{dimensions: [{test_packet_network.SHAPES['dragonfly']}]}}", "false", 3, credits), 8)

    def test_failures_of_links(self):
        """A spine fails during a run of the congestion-aware network: messages that wait leave their queues."""
        graph = {**graphs.leaves([6, 4]), "failures": [[10, 12, "3 ms"]]}
        (self.folder / "leaves.yaml").write_text(json.dumps(graph))
        self.check(
            self.step(
                "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}", "true", 8, model="congestion-aware"
            ),
            8,
        )

    def test_losses(self):
        """Switches that drop packets: receivers complain, and senders go back."""
        self.check(self.step(f"{{dimensions: [{test_packet_network.SHAPES['switch']}]}}", "false", 3, LOSSY), 8)

    @harness.long
    def test_uec(self):
        """Ultra Ethernet on two leaves with slow links to the spines: windows, credit, packets that were trimmed or dropped, entropies."""
        cases = [["--set=system.network.packets.queue=30 kB"], ["--set=system.network.packets.control=rccc"]]
        if checkpoints.KILLS > 1:
            cases += [
                ["--set=system.network.packets.trimming=false", "--set=system.network.packets.queue=30 kB"],
                ["--set=system.network.packets.completion=acknowledged", "--set=system.network.packets.spraying=reps"],
            ]
        for case in cases:
            with self.subTest(case):
                (self.folder / "leaves.yaml").write_text(json.dumps(graphs.leaves([6, 4])))
                network = "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
                self.check(self.step(network, "false", 3, ["--set=system.network.packets.preset=uec", *case]), 8)
                self.clear_folder()

    @harness.long
    def test_tcp(self):
        """TCP on short queues, by drops and by marks: connections, lost segments, delayed acknowledgements and their timers."""
        short = "--set=system.network.packets.queue=20 kB"
        cases = {
            "newreno": ["preset=tcp-linux", "control=newreno", "tcp.min-rto=1 ms", "tcp.connections=2"],
            "cubic": ["preset=tcp-linux", "tcp.min-rto=1 ms", "tcp.receive-buffer={least: 20 kB, most: 1 MB}"],
            "dctcp": ["preset=tcp-datacenter", "marks=[[any, 5 kB, 15 kB, 0.5]]", "ewma=0.5"],
        }
        for name, settings in cases.items():
            with self.subTest(name):
                more = [short, *(f"--set=system.network.packets.{setting}" for setting in settings)]
                self.check(self.step(f"{{dimensions: [{test_packet_network.SHAPES['switch']}]}}", "false", 3, more), 8)

    def test_selective_losses(self):
        """Adaptive routes and spraying with small buffers: receivers keep what comes out of order, and senders wait for time-outs."""
        (self.folder / "leaves.yaml").write_text(json.dumps(graphs.leaves([6, 4])))
        network = "{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}"
        for routing in (
            ("adaptive", "flow-hash")
            if checkpoints.KILLS == 1
            else ("adaptive", "flow-hash", "packet-hash", "round-robin")
        ):
            with self.subTest(routing):
                settings = [
                    f"--set=system.network.packets.routing={routing}",
                    "--set=system.network.packets.loss=selective",
                ]
                self.check(self.step(network, "false", 3, [*LOSSY, *settings]), 8)

    def test_failures(self):
        """A spine fails during the run: routes change."""
        graph = {**graphs.leaves([6, 4]), "failures": [[10, 12, "3 ms"]]}
        (self.folder / "leaves.yaml").write_text(json.dumps(graph))
        self.check(self.step("{graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}", "false", 3), 8)


class ThreadBlocks(checkpoints.KilledRuns, test_gpu_network.Plans):
    often = "--checkpoint-interval=0.001"  # these runs are short
    others = FEW_RANKS

    @harness.long
    def test_plans(self):
        """Collectives by stores, loads, packets and sums in order, beside compute nodes with which they share SMs, a message and each other:
        blocks wait for memory, words, links, acknowledgements and the ports of the GPU."""
        cases = [
            ("two-shot", 1 << 18, ""),
            ("ring-packets", 1 << 14, ""),
            ("all-gather-get", 1 << 17, ", noc: ports, memory-rate: 600 GB/s, io-rate: 400 GB/s"),
            ("all-to-all-put", 1 << 18, ", sms: 4"),
        ]
        for name, size, gpu in cases:
            with self.subTest(plan=name):
                self.plan(name)
                for npu in range(4):
                    kind = test_gpu_network.KINDS[test_gpu_network.kind_of(name)]
                    message = (
                        [
                            Node(
                                3,
                                chakra.RECV if npu == 2 else chakra.SEND,
                                data_deps=[0],
                                comm_src=1,
                                comm_dst=2,
                                comm_tag=1,
                                comm_size=300_000,
                            )
                        ]
                        if npu in (1, 2)
                        else []
                    )
                    chakra.write(
                        self.folder / f"w.{npu}.et",
                        [
                            Node(0, chakra.COMP, duration=1 + npu * 3 % 4),
                            Node(1, chakra.COLL, data_deps=[0], comm_type=kind, comm_size=size),
                            Node(2, chakra.COLL, data_deps=[0], comm_type=kind, comm_size=size // 2),
                            *message,
                            Node(4, chakra.COMP, data_deps=[0], duration=30),
                        ],
                    )
                self.check(
                    [self.config(name, gpu=gpu), NOISE, "--timeline", "--iterations=20", "--record-iterations=8"], 4
                )
                self.clear_folder()

    def test_sums_in_the_switch(self):
        """A switch that adds up and multiplies has parts of sums."""
        plan = harness.shared("reference/gpu/plan_allreduce_nvls_zero_copy.json")
        (self.folder / "all-reduce.json").write_text(plan.read_text())
        self.traces(8, "all-reduce", 1 << 18)
        self.check([self.config("all-reduce", size=8), NOISE, "--iterations=6"], 8)


class Repetitions(checkpoints.KilledRuns):
    @harness.long
    def test_repetitions(self):
        """Runs with other draws, of which the first one has the results: killed in any of them."""
        small = [
            harness.SOURCE / "configs/llama3-8b-64.yaml",
            "--set=workload.model.layers=4",
            "--set=perturbation.repetitions=4",
        ]
        self.check([*small, NOISE, "--timeline", "--iterations=2"], 64, kills=2 * checkpoints.KILLS)
        draws = "--set=perturbation.distributions=[{per: npu, kind: normal, deviation: 0.05}]"
        self.check([*small, draws, "--fold", "--iterations=4"], 64)


if __name__ == "__main__":
    harness.main()
