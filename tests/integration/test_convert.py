#!/usr/bin/python3
"""`orrery convert`: the traces that it writes give the results of the traces that it read, to the picosecond, for every kind of node and
for the traces of shared/; it replaces and loses nothing; what it cannot do ends with one message."""
import gzip
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import kineto  # noqa: E402
from chakra import Node, Typed  # noqa: E402
from harness import System  # noqa: E402

SYSTEM = """system:
  network:
    dimensions: [{shape: Ring, size: 2, bandwidth: 50 GB/s, latency: 500 ns}, {shape: Switch, size: 2, bandwidth: 25 GB/s, latency: 1 us}]
  remote-memory: {kind: per-npu, bandwidth: 20 GB/s, latency: 1 us}
  communication: {order: %s}
workload: {traces: %s, groups: %s, streams: %s}
"""


def every_kind(npu):
    """Returns nodes of every kind, with all that a trace may say of them. NPUs 0 and 1 send, 2 and 3 receive."""
    peer = (npu + 2) % 4
    half = "low" if npu < 2 else "high"
    tensors = {"inputs": ["w", 16, "x", "32.0"], "outputs": ["x", 32]}
    message = {"comm_dst": peer} if npu < 2 else {"comm_src": peer}
    return [
        Node(5, chakra.METADATA, "begin"),
        Node(6, chakra.COMP, "launch", [5], duration=3, is_cpu_op=True),
        Node(
            7, chakra.COMP, "kernel", [6], duration=2, stream=7, duration_ps=Typed("uint64", 1_234_567 + npu), **tensors
        ),
        Node(8, chakra.COMP, "other kernel", [], [6], duration=9, stream=20, num_ops=10**9, tensor_size=1 << 20),
        Node(
            9,
            chakra.COLL,
            "sum",
            [7],
            duration=40,
            comm_type=chakra.ALL_REDUCE,
            comm_size=1 << 20,
            pg_name=half,
            comm_priority=3,
            stream=20,
        ),
        Node(
            10,
            chakra.COLL,
            "gather",
            [7],
            comm_type=chakra.ALL_GATHER,
            comm_size=1 << 16,
            involved_dim=[False, True],
            comm_priority=-2,
        ),
        Node(11, chakra.COLL, "exchange", [9], comm_type=chakra.ALL_TO_ALL, comm_size=4096, involved_dim=[True, False]),
        Node(12, chakra.COLL, "nothing", [11], comm_type=chakra.ALL_REDUCE, comm_size=0),
        Node(13, chakra.COLL, "barrier", [12, 10], comm_type=chakra.BARRIER),
        Node(
            15,
            chakra.SEND if npu < 2 else chakra.RECV,
            'a "name"\n',
            [13],
            comm_size=12345,
            comm_tag=3_000_000_000,
            **message,
        ),
        Node(16, chakra.MEM_LOAD, "load", [13, 15], tensor_size=70_000),
        Node(17, chakra.MEM_STORE, "store", [16, 8], tensor_size=80_000),
        Node(18, chakra.COLL, "host launcher", [17], duration=1, is_cpu_op=True),
    ]


class GroupInit(Node):
    """A node that defines process groups, as PyTorch writes it."""

    def __init__(self, id, groups):
        super().__init__(id, chakra.METADATA, "## process_group:init ##")
        self.groups = groups

    def encoded(self):
        return super().encoded() + chakra.chunk(8, chakra.chunk(1, json.dumps(self.groups).encode()))


def quantities(path):
    """Returns all that a run says of the NPUs, the nodes and the collectives."""
    import h5py

    found = {}
    with h5py.File(path) as results:
        for group in {"npus", "collectives", "network", "memory", "timeline"} & set(results):
            results[group].visititems(
                lambda name, item, group=group: found.update({f"{group}/{name}": item[()].tolist()})
                if hasattr(item, "dtype")
                else None
            )
    return found


class Convert(harness.Folder):
    def convert(self, *arguments, code=0):
        outcome = harness.orrery("convert", *arguments)
        self.assertEqual(outcome.code, code, outcome.err)
        return outcome

    def refused(self, words, *arguments, code=3):
        outcome = self.convert(*arguments, code=code)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)

    def write_every_kind(self):
        """Writes four traces and their groups. Returns the options of convert that name them."""
        for npu in range(4):
            chakra.write(self.folder / f"w.{npu}.et", every_kind(npu))
        (self.folder / "groups.json").write_text('{"low": [0, 1], "high": [2, 3]}')
        return [self.folder / f"w.{npu}.et" for npu in range(4)] + [f"--groups={self.folder / 'groups.json'}"]

    def run_traces(self, name, traces, groups, order="lowest-id", streams="named"):
        path = self.folder / f"{name}.yaml"
        path.write_text(SYSTEM % (order, traces, groups, streams))
        return quantities(self.run_once([path, "--timeline"], f"{name}.h5"))

    def test_groups_that_only_traces_name(self):
        """Of four NPUs, two name the group "low" and two "high", and no file lists them: the written file lists those that name each."""
        for npu in range(4):
            node = Node(
                1, chakra.COLL, "sum", comm_type=chakra.ALL_REDUCE, comm_size=4096, pg_name="low" if npu < 2 else "high"
            )
            chakra.write(self.folder / f"named.{npu}.et", [node])
        self.convert(self.folder / "named.{npu}.et", "--output", self.folder / "new")
        self.assertEqual(json.loads((self.folder / "new.json").read_text()), {"low": [0, 1], "high": [2, 3]})

    def test_every_kind_of_node_is_kept(self):
        """Four NPUs with nodes of every kind, odd durations, streams, priorities, dimensions, tensors and a large tag: with each order of
        communication and each use of streams, the converted traces give the same results, node by node."""
        self.convert(*self.write_every_kind(), f"--output={self.folder / 'new'}")
        for order, streams in (
            ("lowest-id", "named"),
            ("lowest-id", "trace"),
            ("priority", "counted"),
            ("fifo", "counted"),
            ("lowest-id", "dimension"),
        ):
            with self.subTest(order=order, streams=streams):
                before = self.run_traces("before", "w", "groups.json", order, streams)
                after = self.run_traces("after", "new", "new.json", order, streams)
                self.assertEqual(before, after)
                self.clear_results()
        shown = [
            json.loads(harness.orrery("show", "trace", self.folder / name, "--json").out)
            for name in ("w.1.et", "new.1.et")
        ]
        for key in ("nodes", "kinds", "collectives", "tensors", "dependencies", "recorded_duration_ps"):
            self.assertEqual(shown[0][key], shown[1][key], key)

    def clear_results(self):
        for path in self.folder.glob("*.h5"):
            path.unlink()

    def test_converting_twice_changes_nothing(self):
        """What was converted is converted again: the files are the same, byte for byte."""
        self.convert(*self.write_every_kind(), f"--output={self.folder / 'once'}")
        self.convert(
            self.folder / "once.{npu}.et", f"--groups={self.folder / 'once.json'}", f"--output={self.folder / 'twice'}"
        )
        for npu in range(4):
            self.assertEqual(
                (self.folder / f"once.{npu}.et").read_bytes(), (self.folder / f"twice.{npu}.et").read_bytes()
            )
        self.assertEqual((self.folder / "once.json").read_text(), (self.folder / "twice.json").read_text())

    def test_groups_with_one_name_and_other_members_are_told_apart(self):
        """Each of two pairs of NPUs defines a group '1' in its traces, as PyTorch does. The communicator file has two names, and the results
        are the same."""
        for npu in range(4):
            ranks = [0, 1] if npu < 2 else [2, 3]
            nodes = [
                GroupInit(1, [{"pg_name": "1", "ranks": ranks}]),
                Node(2, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=4096 * (1 + npu // 2), pg_name="1"),
            ]
            chakra.write(self.folder / f"p.{npu}.et", nodes)
        (self.folder / "none.json").write_text("{}")
        self.convert(self.folder / "p.{npu}.et", f"--output={self.folder / 'new'}")
        self.assertEqual(json.loads((self.folder / "new.json").read_text()), {"1": [0, 1], "1.2": [2, 3]})
        self.assertEqual(self.times("before", "p", "none.json"), self.times("after", "new", "new.json"))

    def times(self, name, traces, groups):
        return {key: value for key, value in self.run_traces(name, traces, groups).items() if key.startswith("npus/")}

    def test_nothing_is_replaced_and_nothing_is_lost(self):
        """A file that exists is kept, and nothing is written beside it (exit code 5). With --force it is replaced. A run that fails leaves
        the older files as they were."""
        inputs = self.write_every_kind()
        output = f"--output={self.folder / 'new'}"
        (self.folder / "new.2.et").write_text("mine")
        self.refused(["new.2.et", "exists"], *inputs, output, code=5)
        self.assertEqual(sorted(path.name for path in self.folder.glob("new*")), ["new.2.et"])
        self.assertEqual((self.folder / "new.2.et").read_text(), "mine")
        (self.folder / "w.3.et").write_bytes(b"spoilt")
        self.refused(["w.3.et"], *inputs, output, "--force")
        self.assertEqual(sorted(path.name for path in self.folder.glob("new*")), ["new.2.et"])
        self.assertEqual((self.folder / "new.2.et").read_text(), "mine")
        self.write_every_kind()
        self.convert(*inputs, output, "--force")
        self.assertEqual(len(list(self.folder.glob("new*"))), 5)

    def test_traces_may_replace_themselves(self):
        """Traces are converted onto their own names with --force: what is written is what was read."""
        inputs = self.write_every_kind()
        before = self.run_traces("before", "w", "groups.json")
        self.convert(*inputs, f"--output={self.folder / 'w'}", "--force")
        self.assertEqual(before, self.run_traces("after", "w", "w.json"))

    def test_one_file_for_all(self):
        """One trace that does not say whose it is, with --npus: every NPU gets it, and no group is written."""
        chakra.write(self.folder / "all.et", [Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=4096)])
        self.convert(self.folder / "all.et", "--npus=4", f"--output={self.folder / 'four'}")
        self.assertEqual(len(list(self.folder.glob("four.*.et"))), 4)
        self.assertEqual(json.loads((self.folder / "four.json").read_text()), {})

    def test_loops_of_text_workloads(self):
        """Two layers in a text workload of each loop on switches of 4 and 2 NPUs: the converted traces, which know nothing of the dimensions,
        give the same results."""
        rows = "".join(
            f"{name} -1 1000 ALLGATHER 1000 1000 REDUCESCATTER 2000 1000 ALLREDUCE 4000 5%s\n"
            for name in ("one", "two")
        )
        loops = {
            loop: ""
            for loop in (
                "DATA",
                "MODEL",
                "HYBRID_DATA_MODEL",
                "HYBRID_MODEL_DATA",
                "HYBRID_DLRM",
                "HYBRID_DLRM_ENHANCED",
                "MICRO",
                "DISTRIBUTED_INFERENCE",
                "HYBRID_TRANSFORMER model_parallel_NPU_group: 4",
                "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1",
            )
        }
        for loop, column in (
            loops | {"HYBRID_CUSTOMIZED": " HYBRID_DATA_MODEL", "HYBRID_CUSTOMIZED ": " HYBRID_MODEL_DATA"}
        ).items():
            with self.subTest(loop + column):
                (self.folder / "loop.txt").write_text(f"{loop}\n2\n" + rows.replace("%s", column))
                self.convert(self.folder / "loop.txt", "--npus=8", f"--output={self.folder / 'new'}", "--force")
                found = []
                for name, traces in (("before", "{all: loop.txt}"), ("after", "new, groups: new.json")):
                    (self.folder / f"{name}.yaml").write_text(
                        """system:
  network:
    dimensions: [{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 0 ns}, {shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 0 ns}]
workload: {traces: %s}
"""
                        % traces
                    )
                    found.append(quantities(self.run_once([self.folder / f"{name}.yaml"], f"{name}.h5")))
                    (self.folder / f"{name}.h5").unlink()
                self.assertEqual(*found)

    def test_step_and_replicas(self):
        """Recordings of ranks 0 and 1 of 4, with steps 7 (all-reduce of 64 MiB) and 8 (of 4 MiB): --step and --replicate give what a run of the
        recordings with the same options gives. Without --replicate ranks are missing; without --npus it is not clear how many there are.
        """
        for rank in range(2):
            events = kineto.step(0, 1000 * rank, ranks=[0, 1]) + kineto.step(
                20000, 1000 * rank, number=8, ranks=[0, 1], elements=2**20
            )
            kineto.write(self.folder / f"{rank}.json", events, rank, 4)
        inputs, output = [self.folder / f"{rank}.json" for rank in range(2)], f"--output={self.folder / 'new'}"
        self.refused(["no input holds the trace of this NPU of 4"], *inputs, "--npus=4", output)
        self.refused(["--replicate", "--npus"], *inputs, "--replicate=2", output, code=2)
        self.refused(["rank", "workload.replicate is 3"], inputs[0], "--npus=4", "--replicate=3", output)
        (self.folder / "none.json").write_text("{}")
        sizes = set()
        for step in ("7", "8"):
            with self.subTest(step=step):
                for given in (inputs, [self.folder / "{npu}.json"]):
                    self.convert(*given, f"--step={step}", "--npus=4", "--replicate=2", output, "--force")
                before = self.run_traces(
                    "before", f'"{self.folder}/{{npu}}.json", step: {step}, replicate: 2', "none.json"
                )
                after = self.run_traces("after", "new", "new.json")
                self.assertEqual(before["npus/finish_time"], after["npus/finish_time"])
                sizes.add(
                    json.loads(harness.orrery("show", "trace", self.folder / "new.3.et", "--json").out)["collectives"][
                        "all-reduce"
                    ]["bytes"]
                )
                self.clear_results()
        self.assertEqual(sizes, {2**26, 2**22})

    def test_nodes_of_a_topology(self):
        """A topology of two GPUs with a NIC: --nodes gives the size of the last dimension, and with one node there is no such dimension. Traces
        have no --nodes."""
        (self.folder / "topo.xml").write_text(
            """<system version="1"><cpu numaid="0">
<pci busid="0000:0f:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="0" sm="80" rank="0">
<nvlink target="0000:10:00.0" count="12" tclass="0x030200"/></gpu></pci>
<pci busid="0000:10:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="1" sm="80" rank="1">
<nvlink target="0000:0f:00.0" count="12" tclass="0x030200"/></gpu></pci>
<nic><net name="mlx5_0" dev="0" speed="200000"/></nic></cpu></system>
"""
        )
        with gzip.open(self.folder / "topo.xml.gz", "wb") as packed:
            packed.write((self.folder / "topo.xml").read_bytes())
        self.convert(self.folder / "topo.xml.gz", f"--output={self.folder / 'packed.yaml'}")
        made = self.folder / "system.yaml"
        for more, sizes in (((), [2, 2]), (("--nodes=16",), [2, 16]), (("--nodes=1",), [2])):
            with self.subTest(more):
                self.convert(self.folder / "topo.xml", *more, f"--output={made}", "--force")
                found = json.loads(harness.orrery("show", "topology", made, "--json").out)
                self.assertEqual([dimension["size"] for dimension in found["dimensions"]], sizes)
                self.assertEqual("number of nodes" in made.read_text(), not more)
                if not more:
                    self.assertEqual(made.read_text(), (self.folder / "packed.yaml").read_text())
        self.refused(["--nodes"], *self.write_every_kind(), "--nodes=2", f"--output={self.folder / 'new'}", code=2)

    def test_faults_end_with_one_message(self):
        """No input, no output, a pattern among several names, a missing file, too few traces, text that is no trace."""
        trace = self.write_every_kind()[0]
        output = f"--output={self.folder / 'new'}"
        self.refused(["no file"], output, code=2)
        self.refused(["--output is missing"], trace, code=2)
        self.refused(["{npu}"], trace, self.folder / "w.{npu}.et", output, code=2)
        self.refused(["none.et"], self.folder / "none.et", output)
        self.refused(["NPU", "of 6"], *self.write_every_kind(), "--npus=6", output)
        (self.folder / "text").write_text("hello\n")
        self.refused(["text", "not a trace"], self.folder / "text", output)
        self.assertEqual(list(self.folder.glob("new*")), [])


class Shared(harness.Folder):
    def hold(self, prefix, files):
        """Converts the traces PREFIX.<npu>.et, runs them before and after on the system that these flags name, and compares the results."""
        groups = [one.partition("=")[2] for one in files if one.startswith("--comm-group-configuration=")]
        outcome = harness.orrery(
            "convert",
            f"{prefix}.{{npu}}.et",
            *[f"--groups={path}" for path in groups],
            f"--output={self.folder / 'new'}",
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        before = quantities(self.run_once([f"--workload-configuration={prefix}", *files], "before.h5"))
        kept = [one for one in files if not one.startswith("--comm-group-configuration=")]
        if json.loads((self.folder / "new.json").read_text()):
            kept.append(f"--comm-group-configuration={self.folder / 'new.json'}")
        self.assertEqual(
            before, quantities(self.run_once([f"--workload-configuration={self.folder / 'new'}", *kept], "after.h5"))
        )
        for path in self.folder.glob("new*"):
            path.unlink()

    def test_traces_of_stage(self):
        """Traces of 64 NPUs that STAGE wrote: the same results before and after."""
        for name in harness.STAGE_TRACES[: 1 if harness.FEWER_CASES else None]:
            with self.subTest(name):
                traces, *files = harness.stage_arguments(name)
                self.hold(traces.partition("=")[2], files)

    def test_recorded_steps(self):
        """DLRM on 8 GPUs, ResNet-50 on 64 NPUs, and two traces of PyTorch, one of them packed: the same results before and after."""
        self.hold(
            harness.unpacked("dlrm-8gpu") / "dlrm", System(["FullyConnected"], [8], 300.0, 700.0).write(self.folder)
        )
        folder = harness.unpacked("resnet50-dp-64")
        self.hold(
            folder / "resnet50_DataParallel",
            [
                f"--network-configuration={folder / 'network.yml'}",
                f"--system-configuration={folder / 'system.json'}",
                f"--remote-memory-configuration={self.folder / 'remote_memory.json'}",
            ],
        )
        folder = harness.unpacked("chakra-pytorch-single")
        shutil.copy(folder / "pytorch_schema1.1.0.0.et.gz", self.folder / "packed.0.et")
        for prefix in (folder / "resnet_schema1.0.1", self.folder / "packed"):
            self.hold(prefix, System(["Ring"], [1]).write(self.folder))

    def test_small_traces_of_others(self):
        """One trace set for each kind of node, collective and layout, and process groups on tori: the same results before and after."""
        memory = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 64}
        folder = harness.unpacked("chakra-all-types")
        for name in harness.EACH_NODE_TYPE:
            with self.subTest(name):
                self.hold(folder / name, System(memory=memory).write(self.folder))
        for name in ("legacy_v001", "legacy_v003"):
            with self.subTest(name):
                self.hold(harness.unpacked("chakra-legacy-schemas") / name, System(memory=memory).write(self.folder))
        folder = harness.unpacked("astra-sim-examples")
        with self.subTest("H100"):
            self.hold(
                folder / "H100-HGX-Validated/AllReduce_1MB", System(["Switch"], [8], 400.0, 936.25).write(self.folder)
            )
        for kind in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter"):
            with self.subTest(kind):
                self.hold(
                    folder / f"microbenchmarks/{kind}/16npus_1MB/{kind}", System(["Ring"], [16]).write(self.folder)
                )
        for folder in sorted((harness.unpacked("torus-multitenant") / "examples").glob("T?D-analytical")):
            inputs = folder / "inputs"
            files = [
                f"--network-configuration={inputs / 'network.yml'}",
                f"--system-configuration={inputs / 'sys.json'}",
                f"--remote-memory-configuration={inputs / 'RemoteMemory.json'}",
            ]
            files += [f"--comm-group-configuration={path}" for path in inputs.glob("comm_group*.json")]
            with self.subTest(folder.name):
                self.hold(folder / "trace/trace", files)


if __name__ == "__main__":
    harness.main()
