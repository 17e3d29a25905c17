#!/usr/bin/python3
"""What cannot be simulated is refused before the run, with one message that says where and what, and nothing written.

Each case spoils a good job of 4 NPUs at one place, mostly at NPU 2 alone, and runs it without mpirun and on 3 ranks, where one rank
alone sees the fault. The names of the cases say what is wrong."""
import gzip
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node, Typed  # noqa: E402

MIB = 1 << 20
FAULTY = 2


def good_traces():
    """Returns the traces of 4 NPUs: compute, an all-reduce of all, a message to the next NPU and one from the one before, a reduce-
    scatter and an all-gather in pairs, an update; what computes lists its tensors."""
    traces = []
    for npu in range(4):
        pair = "1" if npu < 2 else "2"
        after, before = (npu + 1) % 4, (npu - 1) % 4
        traces.append(
            [
                Node(
                    10,
                    chakra.COMP,
                    "forward",
                    duration=5,
                    inputs=["x", 4096, "weights", "1048576.0"],
                    outputs=["y", 8192],
                ),
                Node(
                    20,
                    chakra.COLL,
                    "gradients",
                    [10],
                    comm_type=chakra.ALL_REDUCE,
                    comm_size=MIB,
                    inputs=["y", "8192.0"],
                    outputs=[],
                ),
                Node(30, chakra.SEND, "to_next", [20], comm_src=npu, comm_dst=after, comm_tag=7, comm_size=1000),
                Node(40, chakra.RECV, "from_previous", [20], comm_src=before, comm_dst=npu, comm_tag=7, comm_size=1000),
                Node(
                    50, chakra.COLL, "in_pair", [30, 40], comm_type=chakra.REDUCE_SCATTER, comm_size=MIB, pg_name=pair
                ),
                Node(55, chakra.COLL, "gather", [50], comm_type=chakra.ALL_GATHER, comm_size=MIB, pg_name=pair),
                Node(60, chakra.COMP, "update", [55], duration=3, inputs=["weights", MIB], outputs=["weights", MIB]),
            ]
        )
    return traces


def good_system():
    return harness.System(groups={"1": [0, 1], "2": [2, 3]})


class Job:
    """A good job on disk, to be spoiled."""

    def __init__(self, folder):
        self.folder = folder
        self.traces, self.system = good_traces(), good_system()
        self.after = []  # what is done to the files once they are written
        self.arguments = None  # instead of ASTRA-sim's files

    def node(self, name, npu=FAULTY):
        return next(node for node in self.traces[npu] if node.name == name)

    def file(self, npu=FAULTY):
        return self.folder / f"workload.{npu}.et"

    def write(self):
        arguments = [harness.write_workload(self.folder, self.traces)] + self.system.write(self.folder)
        for change in self.after:
            change()
        return self.arguments or arguments


CASES = {}


def case(expected, codes=(3,), place=None):
    """Registers a way to spoil a job. The message has to match each of the regular expressions `expected`. `place` is the name of the
    node at NPU 2 that the message has to give, with the trace's file and the NPU."""

    def register(spoil):
        patterns = [expected] if isinstance(expected, str) else list(expected)
        if place:
            number = next(node.id for node in good_traces()[FAULTY] if node.name == place)
            patterns += [rf"workload\.{FAULTY}\.et", rf"NPU {FAULTY}\b", rf"node {number}\b", rf"'{place}'"]
        CASES[spoil.__name__] = (spoil, patterns, codes)
        return spoil

    return register


def rewritten(job, change):
    """Changes the bytes of the trace of NPU 2."""

    def now():
        job.file().write_bytes(change(job.file().read_bytes()))

    job.after.append(now)


@case([r"topology, dimension 0", r"more than 16777216 NPUs"])
def more_npus_than_any_machine_simulates(job):
    job.system.counts = [2_000_000_000]


# ---- files that are no traces ----


@case([r"workload\.2\.et", r"NPU 2\b", r"byte \d+", r"(?i)truncated|ends|cut"])
def truncated_message(job):
    rewritten(job, lambda data: data[: len(data) * 2 // 3])


@case([r"workload\.2\.et", r"NPU 2\b", r"byte \d+"])
def truncated_length(job):
    rewritten(job, lambda data: data + b"\xff")


@case([r"workload\.2\.et", r"NPU 2\b", r"byte \d+"])
def length_beyond_the_end(job):
    rewritten(job, lambda data: data + b"\xff\xff\xff\xff\x07abc")


@case([r"workload\.2\.et", r"NPU 2\b", r"byte \d+"])
def garbage(job):
    rewritten(job, lambda data: bytes((i * 131 + 89) % 256 for i in range(len(data))))


@case([r"workload\.2\.et", r"NPU 2\b", r"byte \d+"])
def garbage_in_one_message(job):
    def spoil(data):
        at = data.index(b"in_pair") - 4
        return data[:at] + b"\xff" * 12 + data[at + 12 :]

    rewritten(job, spoil)


@case([r"workload\.2\.et", r"NPU 2\b", r"Chakra execution trace"])
def zeros(job):
    rewritten(job, lambda data: bytes(len(data)))


@case([r"workload\.2\.et", r"NPU 2\b", r"is text and begins with 'this is not", r"formats chakra"])
def text_file(job):
    job.after.append(lambda: job.file().write_text("this is not an execution trace\n" * 20))


@case([r"workload\.2\.et", r"NPU 2\b", r"(?i)gzip|truncated|unpack|inflate|ends"])
def truncated_gzip(job):
    rewritten(job, lambda data: gzip.compress(data)[:-30])


@case([r"workload\.2\.et", r"(?i)no such file|cannot be (read|opened)|missing|not there|does not exist"])
def missing_file(job):
    job.after.append(lambda: job.file().unlink())


@case([r"workload\.2\.et", r"not a regular file"])
def device_in_place_of_a_file(job):
    job.after.append(lambda: (job.file().unlink(), job.file().symlink_to("/dev/zero")))


@case([r"workload\.2\.et"])
def folder_in_place_of_a_file(job):
    job.after.append(lambda: (job.file().unlink(), job.file().mkdir()))


# ---- nodes ----


@case(r"(?i)duplicate|twice|second|already|same id", place="gradients")
def duplicate_id(job):
    job.traces[FAULTY].insert(4, Node(20, chakra.COMP, "gradients", [10], duration=1))


@case([r"workload\.2\.et", r"NPU 2\b", r"(?i)cycle", r"\b20\b", r"\b50\b"])
def cycle(job):
    job.node("gradients").data_deps.append(50)


@case([r"workload\.2\.et", r"NPU 2\b", r"(?i)cycle|itself", r"\b20\b"])
def cycle_of_one(job):
    job.node("gradients").ctrl_deps.append(20)
    job.node("gradients").data_deps.append(20)


@case(r"\b99\b", place="update")
def unknown_node_type(job):
    job.node("update").type = 99


@case(r"\b42\b", place="gradients")
def unknown_collective_type(job):
    job.node("gradients").attributes["comm_type"] = 42


@case(r"comm_type", place="gradients")
def missing_collective_type(job):
    del job.node("gradients").attributes["comm_type"]


@case(r"comm_size", place="gradients")
def missing_size(job):
    del job.node("gradients").attributes["comm_size"]


@case(r"comm_size", place="gradients")
def size_of_a_wrong_type(job):
    job.node("gradients").attributes["comm_size"] = "a lot"


@case(r"comm_size|negative", place="gradients")
def negative_size(job):
    job.node("gradients").attributes["comm_size"] = Typed("int64", -5)


@case("inputs is no list of texts", place="gradients")
def inputs_that_are_no_list(job):
    job.node("gradients").attributes["inputs"] = "y 8192"


@case("outputs ends with tensor 'more' without its bytes", place="update")
def outputs_without_the_last_size(job):
    job.node("update").attributes["outputs"].append("more")


@case("tensor 'y' in inputs has 8191 bytes, but 8192 where it was listed before", place="gradients")
def tensor_of_two_sizes_in_a_memory_with_a_size(job):
    job.node("gradients").attributes["inputs"] = ["y", 8191]
    job.system.flags = [*job.system.flags, "--local-memory-size=1 GiB"]


@case("the size of tensor 'y' in inputs is not a whole number", place="gradients")
def tensor_of_a_fraction(job):
    job.node("gradients").attributes["inputs"] = ["y", "8192.5"]


@case(r"comm_dst", place="to_next")
def missing_destination(job):
    del job.node("to_next").attributes["comm_dst"]


@case(r"comm_src", place="from_previous")
def missing_source(job):
    del job.node("from_previous").attributes["comm_src"]


@case(r"\b4\b", place="to_next")
def destination_out_of_range(job):
    job.node("to_next").attributes["comm_dst"] = 4


@case(r"\b4000000000\b", place="from_previous")
def source_out_of_range(job):
    job.node("from_previous").attributes["comm_src"] = Typed("uint32", 4000000000)


@case(r"'?nowhere'?", place="in_pair")
def unknown_group(job):
    job.node("in_pair").attributes["pg_name"] = "nowhere"


@case([r"NPU 2 is not in the node's process group '1' of 2 members: 0, 1"], place="in_pair")
def not_in_its_group(job):
    job.node("in_pair").attributes["pg_name"] = "1"


@case(r"involved_dim", place="gradients")
def no_dimension_takes_part(job):
    job.node("gradients").attributes["involved_dim"] = [False, False]


@case(r"involved_dim names dimension 2, but the system has 1 dimension", place="gradients")
def dimension_out_of_range(job):
    for npu in range(4):
        job.node("gradients", npu).attributes["involved_dim"] = [True, False, True]


# ---- NPUs that do not fit each other ----


@case([r"workload\.1\.et", r"NPU 1\b", r"node 30\b", r"'to_next'", r"(?i)receive"])
def send_without_receive(job):
    job.traces[FAULTY].remove(job.node("from_previous"))
    job.node("in_pair").data_deps.remove(40)


@case([r"workload\.3\.et", r"NPU 3\b", r"node 40\b", r"'from_previous'", r"(?i)send"])
def receive_without_send(job):
    job.traces[FAULTY].remove(job.node("to_next"))
    job.node("in_pair").data_deps.remove(30)


@case([r"NPU [12]\b", r"(?i)tag|receive|send"])
def tags_that_differ(job):
    job.node("from_previous").attributes["comm_tag"] = 8


@case([r"NPU 2\b", r"\b1000\b", r"\b999\b"], codes=(3, 4))
def message_sizes_that_differ(job):
    job.node("from_previous").attributes["comm_size"] = 999


@case(
    [r"the members of all NPUs disagree", r"all-reduce", r"all-gather", r"NPU 0 has node 20 'gradients'"],
    place="gradients",
)
def kinds_that_differ(job):
    job.node("gradients").attributes["comm_type"] = chakra.ALL_GATHER


@case([rf"\b{MIB} bytes", rf"\b{MIB // 2} bytes"], place="gradients")
def sizes_that_differ(job):
    job.node("gradients").attributes["comm_size"] = MIB // 2


@case(
    [
        r"workload\.3\.et: NPU 3, node 50 'in_pair'",
        r"group '2' disagree on the order",
        r"NPU 2 has node 55 'gather' \(all-gather of \d+ bytes\) before node 50 'in_pair' \(reduce-scatter",
        r"NPU 3 has node 50 'in_pair' .* before node 55 'gather'",
    ]
)
def orders_that_differ(job):
    first, second, end = job.node("in_pair"), job.node("gather"), job.node("update")
    first.data_deps, second.data_deps, end.data_deps = [55], [30, 40], [50]


@case(
    [
        r"workload\.3\.et: NPU 3, node 5 'first'",
        r"group '2' disagree on the order",
        r"NPU 3 has node 5 'first' .* before node 9 'last'",
    ]
)
def orders_that_differ_where_others_are_free(job):
    """Two collectives that nothing else orders, and a third one that is free on both members."""
    for npu, order in ((2, (9, 5)), (3, (5, 9))):
        nodes = {
            5: Node(5, chakra.COLL, "first", comm_type=chakra.BROADCAST, comm_size=8, pg_name="2"),
            9: Node(9, chakra.COLL, "last", comm_type=chakra.BROADCAST, comm_size=16, pg_name="2"),
        }
        nodes[order[1]].data_deps = [order[0]]
        free = Node(2, chakra.COLL, "free", comm_type=chakra.BROADCAST, comm_size=32, pg_name="2")
        job.traces[npu] += [nodes[5], nodes[9], free]


@case(
    [
        r"group '2' disagree on their collective number 1",
        r"workload\.2\.et: NPU 2, node 3 'small'",
        r"NPU 3, node 3 'large' of .*workload\.3\.et",
    ]
)
def orders_that_time_decides(job):
    """No dependency fixes the order: the run finds it."""
    for npu, names in ((2, ("small", "large")), (3, ("large", "small"))):
        for id, name in zip((3, 4), names):
            job.traces[npu].append(
                Node(
                    id,
                    chakra.COLL,
                    name,
                    comm_type=chakra.BROADCAST,
                    comm_size=8 if name == "small" else 16,
                    pg_name="2",
                )
            )


@case([r"workload\.3\.et: NPU 3, node 55 'gather'", r"NPU 3 has node 55 'gather' .*, which NPU 2 has not"])
def one_collective_too_few(job):
    job.traces[FAULTY].remove(job.node("gather"))
    job.node("update").data_deps = [50]


# ---- beyond the range of time and bytes: 2^63 ps, 2^63 bytes ----


def on_all(job, name, **attributes):
    for npu in range(4):
        job.node(name, npu).attributes.update(attributes)


@case(r"starts at 8e\+06 s.*106 days", place="update")
def simulated_time_too_long(job):
    job.node("forward").duration = job.node("update").duration = 8 * 10**12


@case([r"NPU 0\b", r"node 55\b", r"'gather'", r"106 days"])
def collective_at_the_end_of_time(job):
    for npu in range(4):
        job.node("forward", npu).duration = 9 * 10**12
    on_all(job, "gather", comm_size=3 * 10**16)


@case([r"workload\.0\.et", r"NPU 0\b", r"node 20\b", r"'gradients'", r"takes.*106 days"])
def collective_too_long(job):
    job.system.bandwidth = [1.0]
    on_all(job, "gradients", comm_size=2**53 + 1)


@case([r"workload\.0\.et", r"NPU 0\b", r"node 20\b", r"'gradients'", r"moves more than 2\^63 - 1 bytes"])
def bytes_of_a_collective(job):
    job.system.bandwidth = [1e6]
    on_all(job, "gradients", comm_size=2 * 10**18)


@case([r"dimension 0\b", r"more than 2\^63 - 1 bytes in all"])
def bytes_in_all(job):
    job.system.bandwidth = [1e6]
    for name in ("gradients", "in_pair", "gather"):
        on_all(job, name, comm_size=10**18)


@case(r"message.*106 days", place="to_next")
def message_too_long(job):
    job.node("to_next").attributes["comm_size"] = job.node("from_previous", 3).attributes["comm_size"] = 2**62


@case([r"NPU 2\b", r"'fetch'", r"106 days"])
def remote_memory_busy_too_long(job):
    job.system.memory = {"memory-type": "MEMORY_POOL", "remote-mem-latency": 100, "remote-mem-bw": 1}
    for npu in range(4):
        job.traces[npu].append(Node(70, chakra.MEM_LOAD, "fetch", tensor_size=4 * 10**15))
        job.node("forward", npu).data_deps = [70]


@case(r"comm_size is 9223372036854775808.*at most 9223372036854775807", place="gradients")
def size_beyond_the_results(job):
    job.node("gradients").attributes["comm_size"] = Typed("uint64", 2**63)


@case([r"NPU 2\b", r"(?i)remote"])
def remote_memory_that_is_not_there(job):
    job.traces[FAULTY].append(Node(70, chakra.MEM_LOAD, "fetch", [60], tensor_size=1000))


@case([r"workload\.2\.et", r"NPU 2\b", r"node 70\b", r"'fetch'", r"tensor_size"])
def remote_access_without_a_size(job):
    job.system.memory = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 64}
    job.traces[FAULTY].append(Node(70, chakra.MEM_LOAD, "fetch", [60]))


# ---- configuration ----


@case([r"workload\.[4-7]\.et"])
def more_npus_than_traces(job):
    job.system.counts = [8]


@case([r"network\.yml", r"(?i)Torus"])
def unknown_topology(job):
    job.system.topology = ["Torus"]


@case([r"network\.yml", r"bandwidth"])
def lists_of_different_lengths(job):
    job.system.bandwidth = [50.0, 50.0]


@case([r"network\.yml", r"npus_count"])
def no_npus(job):
    job.system.counts = [0]


@case([r"network\.yml", r"latency"])
def negative_latency(job):
    job.system.latency = [-1.0]


@case([r"network\.yml", r"bandwidth"])
def no_bandwidth(job):
    job.system.bandwidth = [0.0]


@case([r"network\.yml", r"latency"])
def key_of_the_network_missing(job):
    def spoil():
        path = job.folder / "network.yml"
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "latency" not in line))

    job.after.append(spoil)


@case([r"network\.yml:\d+:", r"(?i)YAML"])
def network_that_is_no_yaml(job):
    job.after.append(
        lambda: (job.folder / "network.yml").write_text(
            "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0\nlatency: ]\n"
        )
    )


@case([r"network\.yml"])
def network_missing(job):
    job.after.append(lambda: (job.folder / "network.yml").unlink())


@case([r"system\.json"])
def system_that_is_no_json(job):
    job.after.append(lambda: (job.folder / "system.json").write_text('{"endpoint-delay": 10,,}'))


@case([r"preferred-dataset-splits|chunks"])
def no_chunks(job):
    job.system.system["preferred-dataset-splits"] = 0


@case([r"all-reduce-implementation", r"(?i)spiral"])
def unknown_algorithm(job):
    job.system.system["all-reduce-implementation"] = ["spiral"]


@case([r"(?i)halving", r"\b3\b"])
def algorithm_that_cannot(job):
    job.traces, job.system.counts = job.traces[:3], [3]
    job.system.groups = {"1": [0, 1], "2": [2]}
    job.traces = [[Node(10, chakra.COLL, "gradients", comm_type=chakra.ALL_REDUCE, comm_size=MIB)] for _ in range(3)]
    job.system.system["all-reduce-implementation"] = ["halvingDoubling"]


@case([r"remote_memory\.json", r"memory-type", r"(?i)FOG"])
def unknown_memory(job):
    job.system.memory = {"memory-type": "FOG"}


@case([r"comm_group\.json", r"\b4\b"])
def group_member_out_of_range(job):
    job.system.groups["1"] = [0, 1, 4]


@case([r"comm_group\.json", r"(?i)twice|duplicate|more than once"])
def group_member_twice(job):
    job.system.groups["1"] = [0, 1, 0]


@case([r"comm_group\.json"])
def groups_that_are_no_json(job):
    job.after.append(lambda: (job.folder / "comm_group.json").write_text("[0, 1"))


def own_configuration(job, text):
    def spoil():
        (job.folder / "job.yaml").write_text(text)

    job.after.append(spoil)
    job.arguments = [job.folder / "job.yaml"]


OWN = """system:
  network:
    dimensions:
      - {shape: Ring, size: 4, bandwidth: 50 GB/s, latency: 500 ns}
workload:
  traces: workload
  groups: comm_group.json
"""


@case([r"job\.yaml", r"\b4\b", r"bandwith", r"bandwidth"])
def unknown_key(job):
    own_configuration(job, OWN.replace("bandwidth", "bandwith"))


@case([r"job\.yaml", r"latency", r"(?i)unit|ns"])
def bare_number(job):
    own_configuration(job, OWN.replace("500 ns", "500"))


@case([r"job\.yaml", r"(?i)twice|duplicate|already|again"])
def duplicate_key(job):
    own_configuration(job, OWN + "workload:\n  traces: other\n")


@case(
    [
        r"topology, dimension 0 \(FatTree\)",
        r"congestion-unaware network does not have this shape",
        r"Ring, Mesh, FullyConnected or Switch",
        r"congestion-aware",
    ]
)
def fat_tree_without_links(job):
    own_configuration(job, OWN.replace("shape: Ring, ", "shape: FatTree, ports: 4, "))


@case(
    [
        r"job\.yaml:5: key 'system\.network\.dimensions\.0'",
        r"topology, dimension 0 \(Dragonfly\)",
        r"its size is 4",
        r"a multiple of 8 up to 72: 1 to 9 groups of 4 routers with 2 NPUs each",
    ]
)
def dragonfly_that_does_not_fit(job):
    own_configuration(
        job,
        OWN.replace("shape: Ring, ", "shape: Dragonfly, npus-per-router: 2, ").replace(
            "network:\n", "network:\n    model: congestion-aware\n"
        ),
    )


@case([r"job\.yaml", r"dimensions\.0\.size", r"found '4x1x1'", r"the sizes of 2 rings such as 4x8"])
def torus_of_other_dimensions(job):
    own_configuration(job, OWN.replace("shape: Ring, size: 4", "shape: Torus2D, size: 4x1x1"))


@case(
    [
        r"job\.yaml:4: key 'system\.network\.dimensions\.0'",
        r"topology, dimension 0 \(Torus2D\)",
        r"its oversubscription is 2",
        r"only a Switch or FatTree",
    ]
)
def oversubscribed_torus(job):
    own_configuration(job, OWN.replace("shape: Ring, size: 4", "shape: Torus2D, size: 4, oversubscription: 2"))


@case(
    [
        r"job\.yaml",
        r"perturbation\.links\.0\.npus",
        r"a failed link cuts the Mesh of NPU 0 in two",
        r"Ring or FullyConnected",
    ]
)
def mesh_cut_in_two(job):
    own_configuration(
        job, OWN.replace("Ring", "Mesh") + 'perturbation: {links: [{dimension: 0, npus: "1,2", failed: true}]}\n'
    )


class Refusals(harness.Folder):
    """One test for each case; they are made at the end of this file."""

    def refuse(self, name, ranks):
        """Runs one case without and with older results. Checks the exit code, that there is one message that matches, and that no file
        is written or changed."""
        spoil, patterns, codes = CASES[name]
        job = Job(self.folder)
        spoil(job)
        arguments = job.write()
        for older in (False, True):
            output = self.folder / "results.h5"
            if older:
                output.write_text("older results")
            before = sorted(path.name for path in self.folder.iterdir())
            outcome = harness.orrery(
                "run", *arguments, f"--output={output}", *(["--force"] if older else []), "--progress=none", ranks=ranks
            )
            self.assertIn(outcome.code, codes, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, f"one message of an error: {outcome.err}")
            text = "\n".join(harness.messages(outcome))
            for pattern in patterns:
                self.assertRegex(text, pattern)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before, "nothing is left behind")
            if older:
                self.assertEqual(output.read_text(), "older results")
            elif ranks:
                break  # the older file is a matter of rank 0 alone


class Good(harness.Folder):
    """The job that the cases spoil runs."""

    def test_the_job_runs(self):
        """The job completes without mpirun and on 3 ranks."""
        for ranks in (0, 3):
            self.run_once(Job(self.folder).write(), ranks=ranks)

    def test_the_job_runs_from_orrerys_own_configuration(self):
        """The job completes with its system in Orrery's own configuration file."""
        job = Job(self.folder)
        own_configuration(job, OWN)
        self.run_once(job.write())


class Check(harness.Folder):
    """`orrery check` finds what `run` refuses, and all of it."""

    def faults(self, job, code=3):
        """Returns the messages of `orrery check`."""
        outcome = harness.orrery("check", *job.write())
        self.assertEqual(outcome.code, code, outcome.err)
        return harness.errors(outcome)

    def assert_faults(self, found, patterns):
        """Checks that there is one fault for each pattern, in this order, and no other."""
        self.assertEqual(len(found), len(patterns), "\n".join(found))
        for text, pattern in zip(found, patterns):
            self.assertRegex(text, pattern)

    def test_finds_every_fault_of_the_traces(self):
        """Four faults in the traces of two NPUs give four messages, in the order of NPUs and nodes."""
        job = Job(self.folder)
        for name in ("missing_size", "destination_out_of_range", "unknown_node_type"):
            CASES[name][0](job)
        del job.node("gradients", 0).attributes["comm_size"]
        patterns = [
            r"workload\.0\.et: NPU 0, node 20 'gradients' .*comm_size",
            r"NPU 2, node 20 'gradients' .*comm_size",
            r"NPU 2, node 30 'to_next'",
            r"NPU 2, node 60 'update' .*type 99",
        ]
        self.assert_faults(self.faults(job), patterns)

    def test_finds_every_kind_of_fault_at_once(self):
        """Faults of nodes, messages, groups and memory on all NPUs are told at once. What could not be read of NPU 2 is not held
        against the others."""
        job = Job(self.folder)
        CASES["unknown_collective_type"][0](job)
        job.node("to_next", 3).attributes["comm_tag"] = Typed("int64", 1 << 40)
        job.node("in_pair", 1).attributes["comm_type"] = chakra.ALL_TO_ALL
        job.traces[0].append(Node(70, chakra.MEM_LOAD, "fetch", [60], tensor_size=1000))
        patterns = [
            r"NPU 0, node 40 'from_previous': a receive without a send",
            r"NPU 0, node 70 'fetch': .*remote memory",
            r"NPU 1, node 50 'in_pair': the members of group '1' disagree",
            r"NPU 2, node 20 'gradients'.*type 42",
            r"NPU 3, node 30 'to_next': a send without a receive: NPU 3 sends 1 message ",
            r"NPU 3, node 30 'to_next': comm_tag is 1099511627776; expected",
        ]
        self.assert_faults(self.faults(job), patterns)

    def test_finds_every_fault_of_the_configuration(self):
        """Misspelt keys, a number without a unit, a wrong type and a duplicate key in one file give a message each."""
        job = Job(self.folder)
        own_configuration(
            job,
            OWN.replace("bandwidth", "bandwith").replace("500 ns", "500").replace("groups", "grups")
            + "run: {force: 1}\nrun: {}\n",
        )
        self.assert_faults(
            self.faults(job),
            [
                "bandwidth': the key is missing",
                "bandwith': unknown key",
                "latency",
                "grups",
                "force",
                "stands here again",
            ],
        )

    def test_finds_every_fault_of_the_network(self):
        """Five wrong values in network.yml give five messages."""
        job = Job(self.folder)
        job.system.topology, job.system.bandwidth, job.system.latency = ["Rong"], [0.0, -1.0], ["fast"]
        faults = self.faults(job)
        self.assertEqual(len(faults), 5, faults)
        for key in (
            r"topology\[0\].*Rong",
            r"bandwidth\[0\]",
            r"bandwidth\[1\]",
            r"bandwidth': found a list of 2; expected a list of 1,",
            r"latency\[0\]",
        ):
            self.assertRegex("\n".join(faults), key)

    def test_a_faulty_configuration_does_not_hide_the_traces(self):
        """Faults in network.yml and system.json are told together with those of the traces."""
        job = Job(self.folder)
        CASES["missing_size"][0](job)
        CASES["tags_that_differ"][0](job)
        del job.node("gradients", 2).attributes["comm_type"]
        job.node("to_next", 3).attributes["comm_size"] = 7
        job.system.latency = [-1.0]
        job.system.system["all-reduce-implementation"] = ["spiral"]
        patterns = [
            r"network\.yml.*latency",
            r"system\.json.*spiral",
            r"NPU 0, node 40 .*sends 7 bytes in 1 message",
            r"NPU 2, node 20",
        ]
        self.assert_faults(self.faults(job), patterns)

    def test_numbers_out_of_range_are_refused_with_their_range(self):
        """Three settings out of range give a message each, with the setting and the range."""
        job = Job(self.folder)
        own_configuration(job, OWN)
        outcome = harness.orrery(
            "check",
            *job.write(),
            "--set",
            "system.compute.noise=2",
            "--set",
            "system.collectives.chunks=0",
            "--set",
            "workload.iterations=4294967296",
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assert_faults(
            harness.errors(outcome),
            [
                r"--set system\.collectives\.chunks=0: .*1 or more",
                r"--set system\.compute\.noise=2: .*below 1",
                r"--set workload\.iterations=4294967296: .*1 to 4294967295",
            ],
        )

    def test_many_absent_traces_are_told_at_once(self):
        """A network of four million NPUs for a job of 4 and the last NPU: the run gives up after 1,000 traces that cannot be read, on 1
        and 3 ranks."""
        job = Job(self.folder)
        job.system.counts = [4_000_000]
        arguments = job.write()
        (self.folder / "workload.3999999.et").touch()
        for ranks in (0, 3):
            outcome = harness.orrery(
                "run", *arguments, f"--output={self.folder / 'results.h5'}", "--progress=none", ranks=ranks
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertRegex(outcome.err, r"workload\.4\.et: NPU 4: there is no such file")
            self.assertIn("1000 traces cannot be read; no others are tried", outcome.err)

    def test_finds_every_fault_of_the_groups(self):
        """Members that are listed twice, out of range or negative, and an empty group give a message each."""
        job = Job(self.folder)
        job.system.groups = {"1": [0, 9, 0, 1], "2": [], "3": [-1, 2]}
        self.assert_faults(self.faults(job), ["member 0 is listed twice", "member 9", "is empty", "member -1"])

    def test_shows_twenty_faults_of_a_file(self):
        """57 faults in one trace give 20 messages and a count of the others. Of nodes that cannot be, the 21st ends the file."""
        job = Job(self.folder)
        job.traces[1] += [Node(100 + i, 77, "odd") for i in range(57)]
        faults = self.faults(job)
        self.assertEqual(len(faults), 1)
        self.assertIn("like 20 nodes before it", faults[0])
        job = Job(self.folder)
        job.traces[1] += [Node(100 + i, chakra.SEND, "odd", comm_dst=50, comm_size=1, comm_tag=i) for i in range(57)]
        faults = self.faults(job)
        self.assertEqual(len(faults), 21)
        self.assertRegex(faults[-1], r"workload\.1\.et: and 37 more faults in this file")

    def test_a_run_tells_all_faults_alike_on_any_number_of_ranks(self):
        """Two faults on each NPU give the same messages on 1, 2 and 3 ranks."""
        job = Job(self.folder)
        for npu in range(4):
            job.node("update", npu).type = 99
            job.node("to_next", npu).attributes["comm_dst"] = 50 + npu
        arguments = job.write()
        texts = set()
        for ranks in (0, 2, 3):
            outcome = harness.orrery(
                "run", *arguments, f"--output={self.folder / 'results.h5'}", "--progress=none", ranks=ranks
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            texts.add("\n".join(harness.messages(outcome)))
        self.assertEqual(len(texts), 1, texts)
        text = texts.pop()
        for npu in range(4):
            self.assertRegex(
                text,
                rf"workload\.{npu}\.et: NPU {npu}, node 30 'to_next' .*comm_dst is {50 + npu}, but the system has 4 NPUs",
            )
            self.assertRegex(text, rf"workload\.{npu}\.et: NPU {npu}, node 60 'update' .*type 99")

    def test_refuses_files_that_are_not_regular(self):
        """A FIFO, a device or a folder in place of a configuration file or a rank map is refused, and the message says what it is."""
        job = Job(self.folder)
        arguments = job.write()
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for flag in ("system", "network", "remote-memory", "comm-group"):
            for path in (pipe, "/dev/zero", self.folder):
                changed = [argument for argument in arguments if f"--{flag}-conf" not in str(argument)] + [
                    f"--{flag}-configuration={path}"
                ]
                outcome = harness.orrery("check", *changed)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertRegex(outcome.err, rf"{path}: this is (not a regular file|a directory)")
        outcome = harness.orrery("run", *arguments, "--partition=/dev/zero", f"--output={self.folder / 'results.h5'}")
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("/dev/zero: this is not a regular file", outcome.err)

    def test_a_dependency_on_minus_one_is_shown_as_such(self):
        """A dependency on node -1, which some tools write, is accepted and shown as -1."""
        job = Job(self.folder)
        job.node("update").data_deps.append(-1)
        outcome = harness.orrery("check", *job.write())
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("node 60 'update' on -1", outcome.err)

    def test_finds_nothing_wrong_with_a_good_job(self):
        """`check` accepts the good job and writes nothing."""
        outcome = harness.orrery("check", *Job(self.folder).write())
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(list(self.folder.glob("*.h5")), [])


for case_name in CASES:
    for number in (0, 3):

        def run_case(self, name=case_name, ranks=number):
            self.refuse(name, ranks)

        setattr(Refusals, f"test_{case_name}" + (f"_on_{number}_ranks" if number else ""), run_case)


if __name__ == "__main__":
    harness.main()
