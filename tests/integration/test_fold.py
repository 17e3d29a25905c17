#!/usr/bin/python3
"""With --fold the results are those of the run without it, for every NPU, group and node, on any number of ranks.

The systems: random workloads as they are, in which hardly any NPUs are alike; random workloads copied over replicas, with ids, names,
tags and groups of their own, perhaps joined by a collective, perhaps with one NPU that differs; generated workloads; STAGE's traces."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import kineto  # noqa: E402
import random_workload  # noqa: E402

SCALE = harness.SOURCE / "configs/scale"
SEEDS = range(7001, 7001 + harness.cases(5, 16, 40))
SPLIT_SEEDS = range(8001, 8001 + harness.cases(4, 16, 60))
SHARED_REPLICAS = harness.cases(1, 6, 12)  # of the seeds: neither skewed nor one of the exceptions of test_replicas
MESSAGES = (chakra.SEND, chakra.RECV)


def copied(workload, replicas, rng, joined):
    """Adds a dimension to the system of a workload and returns the traces of that many replicas along it. `joined` says with which
    all-reduce the replicas end: "" for none, "across" for one of the corresponding NPUs of all replicas, "world" for one of all NPUs.
    """
    system, n = workload.system, workload.num_npus
    dimensions = len(system.counts)
    system.topology.append(rng.choice(["Ring", "FullyConnected", "Switch"]))
    system.counts.append(replicas)
    system.bandwidth.append(50.0)
    system.latency.append(500.0)
    for key, value in system.system.items():
        if key.endswith("-implementation"):
            value.append(value[0] if value[0].startswith("one") else "ring")
    groups = {
        f"{name}@{r}": [member + r * n for member in members]
        for name, members in (system.groups or {}).items()
        for r in range(replicas)
    }
    if joined == "across":
        groups |= {f"across {npu}": [npu + r * n for r in range(replicas)] for npu in range(n)}
    system.groups = groups or None
    return [
        one_copy(nodes, n, r, dimensions, npu, joined)
        for r in range(replicas)
        for npu, nodes in enumerate(workload.traces)
    ]


def one_copy(nodes, n, r, dimensions, npu, joined):
    copies = []
    for node in nodes:
        attributes = dict(node.attributes)
        if node.type == chakra.COLL:
            if attributes.get("pg_name"):
                attributes["pg_name"] += f"@{r}"
            else:
                attributes.pop("pg_name", None)
                attributes["involved_dim"] = list(attributes.get("involved_dim", [True] * dimensions)) + [False]
        if node.type in MESSAGES:
            attributes |= {
                "comm_src": node.attributes["comm_src"] + r * n,
                "comm_dst": node.attributes["comm_dst"] + r * n,
                "comm_tag": node.attributes["comm_tag"] * 3 + r,
            }
        shift = 1000 * r
        copies.append(
            chakra.Node(
                node.id + shift,
                node.type,
                f"{node.name}@{r}",
                [d + shift for d in node.data_deps],
                [d + shift for d in node.ctrl_deps],
                node.duration,
                **attributes,
            )
        )
    if joined:
        copies.append(
            chakra.Node(
                1 + max(node.id for node in copies),
                chakra.COLL,
                "across",
                [node.id for node in copies],
                comm_type=chakra.ALL_REDUCE,
                comm_size=4096,
                **({"pg_name": f"across {npu}"} if joined == "across" else {}),
            )
        )
    return copies


def classes(path):
    """Returns the number of classes of a folded run, and the number of NPUs."""
    import h5py

    with h5py.File(path) as results:
        return int(results.attrs["num_classes"]), len(results["npus/finish_time"])


class Fold(harness.Folder):
    def check(self, arguments, ranks=(0,)):
        """Checks that folded runs on these numbers of ranks give the results of the run that is not folded. Returns the number of classes."""
        plain = self.run_once(arguments, "plain.h5")
        found = set()
        for r in ranks:
            folded = self.run_once([*arguments, "--fold"], f"folded{r}.h5", ranks=r)
            self.assertEqual(harness.difference(plain, folded), "", f"{r} ranks")
            found.add(classes(folded)[0])
        self.assertEqual(len(found), 1)
        return found.pop()

    def test_random_workloads(self):
        """Random workloads of up to 32 NPUs give the same results folded and not."""
        for seed in SEEDS:
            workload = random_workload.Workload(seed, max_npus=32, operations=(5, 80))
            arguments = (
                [harness.write_workload(self.folder, workload.traces)]
                + workload.system.write(self.folder)
                + ["--timeline"]
            )
            with self.subTest(f"seed {seed}"):
                self.check(arguments, ranks=(0, 2, 3) if seed % 8 == 0 else (0,))
            self.clear_folder()

    def test_replicas_are_folded(self):
        """Replicas of random workloads give the same results folded and not. Without an NPU that differs there are no more classes than
        one replica has NPUs, unless NPUs share memories or the world is one line of an algorithm that does not treat replicas
        alike."""
        shared = 0
        for seed in SEEDS:
            rng = random.Random(seed)
            workload = random_workload.Workload(seed + 1000, max_npus=8, operations=(5, 60))
            replicas, joined, skewed = rng.choice([2, 3, 4]), rng.choice(["", "across", "world"]), rng.random() < 0.3
            traces = copied(workload, replicas, rng, joined)
            if skewed:
                victim = rng.choice(traces)
                victim[:0] = [chakra.Node(990 + 1000 * replicas, chakra.COMP, "late", duration=7, is_cpu_op=True)]
                for node in victim[1:]:
                    node.ctrl_deps.append(victim[0].id)
            if workload.memory["memory-type"] == "PER_NODE_MEMORY_EXPANSION":
                workload.memory["num-nodes"] *= replicas
            arguments = (
                [harness.write_workload(self.folder, traces)]
                + workload.system.write(self.folder)
                + ["--timeline", "--iterations=2", "--record-iterations=2"]
            )
            with self.subTest(f"seed {seed}: {replicas} replicas of {workload.num_npus} NPUs"):
                count = self.check(arguments, ranks=(0, 1, 2, 3) if seed % 8 == 0 else (0,))
                # As one line the world lists the replicas one after the other, and halving-doubling does not turn by a replica.
                in_line = any(
                    str(names).startswith("['one")
                    for key, names in workload.system.system.items()
                    if key.startswith("all-reduce-")
                )
                if not skewed and not workload.shared_memory() and not (joined == "world" and in_line):
                    self.assertLessEqual(count, workload.num_npus)
                    shared += 1
            self.clear_folder()
        self.assertEqual(shared, SHARED_REPLICAS)

    def test_numbers_of_peers_tell_a_ring_of_messages_apart(self):
        """Each of 6 NPUs sends to the next one. Under astra-sim rules numbers of peers decide between events of one time. So the first and
        the last NPU differ from the others, then their neighbours do, and each is in a class of its own."""
        n = 6
        traces = [
            [
                chakra.Node(0, chakra.COMP, "compute", duration=5),
                chakra.Node(1, chakra.SEND, "to", [0], comm_src=i, comm_dst=(i + 1) % n, comm_tag=i, comm_size=4096),
                chakra.Node(
                    2, chakra.RECV, "from", comm_src=(i - 1) % n, comm_dst=i, comm_tag=(i - 1) % n, comm_size=4096
                ),
                chakra.Node(3, chakra.COMP, "after", [2], duration=3),
            ]
            for i in range(n)
        ]
        for rendezvous in ("false", "true"):
            system = harness.System(counts=(n,), flags=[f"--rendezvous-protocol={rendezvous}"])
            arguments = [harness.write_workload(self.folder, traces)] + system.write(self.folder) + ["--timeline"]
            self.assertEqual(self.check(arguments, ranks=(0, 2)), 6)

    def test_pipelines_under_rules_of_astra_sim(self):
        """Under astra-sim rules, which event comes first goes back to the first events of NPUs that messages connect. Copies of a pipeline
        whose stages have equal positions fold, and give the results of the run without, on any number of ranks."""
        pipelines = "\n".join(
            [
                "system:",
                "  rules: astra-sim",
                "  network:",
                "    dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us},",
                "                 {shape: Switch, size: 6, bandwidth: 50 GB/s, latency: 2 us}]",
                "  compute: {model: roofline, peak: 100 TFLOPS, local-memory: {bandwidth: 2 TB/s}}",
                "workload:",
                "  model: {layers: 6, hidden: 512, heads: 8, sequence: 128}",
                "  parallel: {tp: 2, pp: 3, dp: 4, micro-batches: 4}",
            ]
        )
        config = self.folder / "pipelines.yaml"
        config.write_text(pipelines + "\n")
        self.assertEqual(self.check([str(config)], ranks=(0, 2, 3)), 3)

    def test_short_links_of_an_outer_dimension(self):
        """Ranks keep NPUs that links of less than 20 ns join together. Where these links join NPUs whose numbers lie apart, 0 and 4 of 8 or
        0, 6 and 12 of 18, a run that folds them gives the same results on any number of ranks, as others do."""
        for counts, latency, flags in (
            ((4, 2), [100.0, 1.0], []),
            ((2, 3, 3), [500.0, 30.0, 5.0], ["--partition=dimension:1"]),
            ((2, 3, 3), [500.0, 30.0, 5.0], ["--partition=metis"]),
        ):
            topology = ("Switch", "Ring", "FullyConnected")[: len(counts)]
            system = harness.System(topology, counts, latency=latency, flags=flags)
            nodes = [
                chakra.Node(0, chakra.COMP, "compute", duration=5),
                chakra.Node(1, chakra.COLL, "sum", [0], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
            ]
            traces = [nodes] * system.num_npus
            with self.subTest(f"{counts} {flags}"):
                arguments = [harness.write_workload(self.folder, traces)] + system.write(self.folder)
                self.check(arguments, ranks=(0, 2, 3, 4))
            self.clear_folder()

    def test_nodes_that_share_memories_are_folded(self):
        """8 NPUs in 4 nodes access the memory of their node at one time, first the lower one of each node. They are 2 classes. With one more
        access on NPU 5 its node is on its own: 4 classes. In one memory of all NPUs each is a class."""
        memory = {
            "memory-type": "PER_NODE_MEMORY_EXPANSION",
            "remote-mem-latency": 250,
            "remote-mem-bw": 64,
            "num-nodes": 4,
            "num-npus-per-node": 2,
        }
        traces = [
            [
                chakra.Node(0, chakra.MEM_LOAD, "load", tensor_size=100000),
                chakra.Node(1, chakra.COMP, "after", [0], duration=3),
            ]
            for _ in range(8)
        ]
        for kind, more, expected in (("node", False, 2), ("node", True, 4), ("pool", False, 8)):
            if more:
                traces[5].append(chakra.Node(2, chakra.MEM_STORE, "store", [1], tensor_size=500))
            own = memory if kind == "node" else {**memory, "memory-type": "MEMORY_POOL"}
            with self.subTest(kind, more=more):
                arguments = (
                    [harness.write_workload(self.folder, traces)]
                    + harness.System(counts=(8,), memory=own).write(self.folder)
                    + ["--timeline"]
                )
                self.assertEqual(self.check(arguments, ranks=(0, 2, 3)), expected)

    def test_overlapping_groups_are_one_class(self):
        """NPU i is first in a group with NPU i + 1 and second in one with NPU i - 1. All 6 NPUs are in one class, which has two members
        in one communicator. Groups are rings in the order listed (astra-sim rules); else [5, 0] would lie the other way round.
        """
        n = 6
        groups = {f"g{i}": [i, (i + 1) % n] for i in range(n)}
        traces = [
            [
                chakra.Node(0, chakra.COMP, "compute", duration=5),
                chakra.Node(1, chakra.COLL, "first", [0], comm_type=chakra.ALL_REDUCE, comm_size=4096, pg_name=f"g{i}"),
                chakra.Node(
                    2,
                    chakra.COLL,
                    "second",
                    [0],
                    comm_type=chakra.ALL_REDUCE,
                    comm_size=4096,
                    pg_name=f"g{(i - 1) % n}",
                ),
            ]
            for i in range(n)
        ]
        self.write(
            "config.yaml",
            "system:\n  rules: astra-sim\n  network:\n    dimensions:\n      - {shape: Switch, size: 6, bandwidth: 50 GB/s, latency: 500 ns}\n"
            "  communication: {streams: 2}\nworkload: {traces: workload, groups: groups.json}\n",
        )
        harness.write_workload(self.folder, traces)
        (self.folder / "groups.json").write_text(json.dumps(groups))
        self.assertEqual(self.check([self.folder / "config.yaml", "--timeline"], ranks=(0, 2)), 1)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def test_generated_workloads_are_folded(self):
        """A step of 512 NPUs or fewer, in ten variants of schedule, placement, sharding and network, gives the same results folded and
        not, in fewer classes than NPUs."""
        base = [
            SCALE / "gpt3-175b-1024.yaml",
            "--set",
            "workload.parallel.dp=4",
            "--set",
            "system.network.dimensions.2.size=1",
        ]
        cases = {
            "1f1b": [],
            "gpipe": ["workload.parallel.schedule=gpipe"],
            "interleaved": ["workload.parallel.interleaving=3"],
            "zero": ["workload.parallel.zero=3", "workload.parallel.micro-batches=2"],
            "tied": ["workload.model.tied-embeddings=true"],
            "placed": ["workload.parallel.placement=[dp, tp, pp, cp, ep]"],
            "cp": ["workload.parallel.dp=2", "workload.parallel.cp=2"],
            "ring": ["system.network.dimensions.0.shape=Ring", "system.network.dimensions.1.shape=Ring"],
            "offload": [
                "workload.parallel.zero=3",
                "workload.parallel.micro-batches=2",
                "workload.parallel.offload=[parameters, optimizer]",
                "system.remote-memory={kind: per-npu, bandwidth: 20 GB/s, latency: 1 us}",
            ],
            "mesh": ["system.network.dimensions.1.shape=Mesh"],
        }
        for name, settings in cases.items():
            with self.subTest(name):
                arguments = base + [
                    part for setting in ("workload.parallel.micro-batches=8", *settings) for part in ("--set", setting)
                ]
                found = self.check(arguments, ranks=(0, 2))
                self.assertEqual(found % 8, 0, found)
                self.assertLess(found, 256)

    def test_1024_npus_are_eight_classes(self):
        """GPT-3 on 1,024 NPUs has eight classes, on 1, 2 and 9 ranks."""
        self.assertEqual(
            self.check(
                [SCALE / "gpt3-175b-1024.yaml"] + ["--set=workload.parallel.micro-batches=2"] * harness.FEWER_CASES,
                ranks=(0,) if harness.FEWER_CASES else (0, 2, 9),
            ),
            8,
        )

    SLOW = ("workload.parallel.micro-batches=8", "perturbation.slow-npus=[{npus: '9,77,300', compute: 0.8}]")

    def test_slow_npus_separate_their_replicas(self):
        """3 slow NPUs of 1,024 leave the 13 replicas folded that have none, on 1, 2 and 3 ranks: the collectives of a library end together
        for all members, whoever comes last."""
        settings = [f"--set={setting}" for setting in (*self.SLOW, "system.collectives.library={name: nccl-h100}")]
        found = self.check(
            [SCALE / "gpt3-175b-1024.yaml", *settings], ranks=(0, 2) if harness.FEWER_CASES else (0, 2, 3)
        )
        self.assertLessEqual(found, 4 * 64)

    SMALL = (
        "workload.parallel.micro-batches=8",
        "workload.parallel.dp=2",
        "system.network.dimensions.2.size=1",
        "system.network.dimensions.1.size=16",
    )

    def test_classes_split_when_members_do_not_complete_together(self):
        """2 slow NPUs of 128 delay the members of their collectives by different times. Classes split when the first collective does so and
        not before, on 1, 2, 3, 4 and 8 ranks. Nodes of the timeline before and after it have the names, peers and last arrivals of their
        own NPUs."""
        settings = [
            f"--set={setting}" for setting in (*self.SMALL, "perturbation.slow-npus=[{npus: '9,77', compute: 0.8}]")
        ]
        arguments = [SCALE / "gpt3-175b-1024.yaml", *settings]
        found = self.check([*arguments, "--timeline"], ranks=(0, 2) if harness.FEWER_CASES else (0, 2, 3, 4, 8))
        self.assertGreater(found, 64)
        outcome = harness.orrery("run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", "--verbose")
        self.assertRegex(
            outcome.out, rf"(?m)^folded: 128 NPUs in \d+ classes to [\d.]+ \w+, then in .*{found} classes: 8 structures"
        )

    def test_random_workloads_split(self):
        """Replicas of random workloads, of which one NPU comes late to what they do together, give the same results folded and not, on 1,
        2, 3, 4 and 8 ranks. Some of them split their classes at a time later than 0."""
        splits = 0
        for seed in SPLIT_SEEDS:
            rng = random.Random(seed)
            workload = random_workload.Workload(seed, max_npus=8, operations=(10, 60))
            if workload.shared_memory():
                continue
            for kind in ("all-reduce", "all-gather", "reduce-scatter"):  # rings make members wait for different times
                names = workload.system.system[f"{kind}-implementation"]
                names[:] = ["ring" if not name.startswith("one") else name for name in names]
            traces = copied(workload, rng.choice([2, 3, 4]), rng, rng.choice(["across", "world"]))
            late = rng.choice(traces)
            late[-1].data_deps.append(3999)
            late.insert(
                0,
                chakra.Node(
                    3999,
                    chakra.COMP,
                    "late",
                    [node.id for node in late[:-1]],
                    duration=rng.choice([1, 1000]),
                    is_cpu_op=True,
                ),
            )
            arguments = (
                [harness.write_workload(self.folder, traces)]
                + workload.system.write(self.folder)
                + ["--timeline", "--iterations=2", "--record-iterations=2"]
            )
            with self.subTest(f"seed {seed}"):
                self.check(arguments, ranks=(0, 1, 2, 3, 4, 8) if seed % 4 == 0 else (0, rng.choice([2, 3, 4])))
                outcome = harness.orrery(
                    "run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", "--force", "--verbose"
                )
                splits += "classes to " in outcome.out
            self.clear_folder()
        self.assertGreater(splits, 0)

    def test_partitions_deal_classes(self):
        """Folded runs of 128 NPUs with two slow ones give the same results with every partition on 3 ranks: classes go to ranks that host
        some of their members. A rank map that names one rank leaves all events there."""
        import h5py

        settings = [
            f"--set={setting}" for setting in (*self.SMALL, "perturbation.slow-npus=[{npus: '9,77', compute: 0.8}]")
        ]
        arguments = [SCALE / "gpt3-175b-1024.yaml", *settings]
        plain = self.run_once(arguments, "plain.h5")
        scattered = harness.scattered_partition(self.folder / "scattered", 128, 3)
        for partition in ("round-robin", "dimension:0", "metis", scattered):
            with self.subTest(str(partition)):
                folded = self.run_once([*arguments, "--fold", f"--partition={partition}"], "folded.h5", ranks=3)
                self.assertEqual(harness.difference(plain, folded), "")
        (self.folder / "last").write_text("2\n" * 128)
        folded = self.run_once([*arguments[:-1], "--fold", f"--partition={self.folder / 'last'}"], "folded.h5", ranks=3)
        with h5py.File(folded) as results:
            self.assertEqual([int(count) > 0 for count in results["kernel/events"][:]], [False, False, True])

    def test_noise_leaves_nothing_to_fold(self):
        """64 NPUs with noise have compute times of their own. The run says that there is nothing to fold, and why."""
        outcome = harness.orrery(
            "run",
            SCALE / "gpt3-175b-1024.yaml",
            "--fold",
            "--noise=0.1",
            "--set",
            "workload.parallel.dp=1",
            "--set",
            "system.network.dimensions.1.size=8",
            "--set",
            "system.network.dimensions.2.size=1",
            f"--output={self.folder / 'r.h5'}",
            "--verbose",
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("nothing to fold: 64 NPUs in as many classes", outcome.out)
        self.assertIn("64 NPUs with compute times of their own (noise)", outcome.out)

    def test_the_summary_counts_classes_and_structures(self):
        """The summary of a folded run of 1,024 NPUs says into how many classes it was folded, and what they differ in."""
        outcome = harness.orrery(
            "run", SCALE / "gpt3-175b-1024.yaml", "--fold", f"--output={self.folder / 'r.h5'}", "--verbose"
        )
        self.assertRegex(outcome.out, r"(?m)^folded: 1024 NPUs in 8 classes: 8 structures$")

    def test_a_replay_is_folded(self):
        """6 NPUs replay recorded durations that differ between odd and even ones. They are folded into two classes, also on 8 ranks, of which
        two have no NPU."""
        traces = [
            [
                chakra.Node(0, chakra.COMP, "compute", duration=5 + i % 2),
                chakra.Node(
                    1,
                    chakra.COLL,
                    "sum",
                    [0],
                    duration=9,
                    comm_type=chakra.ALL_REDUCE,
                    comm_size=4096,
                    **({"pg_name": "odd"} if i % 2 else {}),
                ),
            ]
            for i in range(6)
        ]
        system = harness.System(counts=(6,), system={"replay-only": 1}, groups={"odd": [1, 3, 5]})
        arguments = [harness.write_workload(self.folder, traces)] + system.write(self.folder) + ["--timeline"]
        self.assertEqual(self.check(arguments, ranks=(0, 3, 8)), 2)

    def test_recordings_that_begin_later_are_folded(self):
        """3 of 4 recordings begin 2 ms after the first one. They are one class. On 4 ranks, rank 2 simulates NPU 1 for it, which rank 1 has
        read: it begins 2 ms later there too."""
        for rank, start in enumerate((0, 2000, 2000, 2000)):
            kineto.write(self.folder / f"step.{rank}.json", kineto.step(start, 0, wait=2000 - start, size=4), rank, 4)
        dimension = {"shape": "Switch", "size": 4, "bandwidth": "13.5 GB/s", "latency": "5 us"}
        (self.folder / "job.yaml").write_text(
            json.dumps(
                {
                    "system": {"network": {"dimensions": [dimension]}, "compute": {"roofline": False}},
                    "workload": {"traces": str(self.folder / "step.{npu}.json")},
                }
            )
        )
        arguments = [self.folder / "job.yaml", "--communication-durations=recorded", "--timeline"]
        self.assertEqual(self.check(arguments, ranks=(0, 2, 4)), 2)

    def test_stage_traces(self):
        """STAGE's traces of three models on 64 NPUs give the same results folded and not. Needs shared/."""
        for name in harness.STAGE_TRACES:
            with self.subTest(name):
                found = self.check(harness.stage_arguments(name), ranks=(0, 2))
                print(f"stage-{name}: {found} classes of 64")


class Study(harness.Folder):
    def test_the_scale_study_prints_equal_times(self):
        """The study prints a row for each configuration, unfolded and folded, and fails if their finish times differ."""
        if harness.FEWER_CASES:
            self.skipTest("the study calls what other tests call")
        plot = self.folder / "scale.png"
        done = harness.run_script(
            "scripts/studies/scale", "1024", "--repeat=1", f"--plot={plot}", f"--orrery={harness.BINARY}"
        )
        self.assertEqual(done.code, 0, done.err)
        rows = [line.strip("| ").split(" | ") for line in done.out.splitlines()[2:]]
        self.assertEqual(
            [row[:4] for row in rows],
            [
                [name, "1,024", folded, classes]
                for name, counts in {
                    "all-reduce-1024": ("1,024", "1"),
                    "gpt3-175b-1024": ("1,024", "8"),
                    "ring-1024-skewed": ("1,024", "1,024"),
                    "transformer-step-1024": ("1,024", "1"),
                }.items()
                for folded, classes in zip(("no", "yes"), counts)
            ],
        )
        self.assertGreater(plot.stat().st_size, 10000)


class Refusals(harness.Folder):
    def test_a_rank_map_of_other_ranks_is_refused(self):
        """A folded run with a rank map that names rank 1 ends on one rank with exit code 3, at the line."""
        (self.folder / "map").write_text("0\n" * 100 + "1\n" * 924)
        outcome = harness.orrery(
            "run",
            SCALE / "gpt3-175b-1024.yaml",
            "--fold",
            f"--partition={self.folder / 'map'}",
            f"--output={self.folder / 'r.h5'}",
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertRegex(outcome.err, r"map:101.*rank 1 does not exist")

    def test_faults_are_told_once(self):
        """Sends without receives on all 4 NPUs are reported for one class and its peer, on 1 and 2 ranks."""
        traces = [
            [chakra.Node(0, chakra.SEND, "to", comm_src=i, comm_dst=i ^ 1, comm_tag=1, comm_size=64)] for i in range(4)
        ]
        arguments = [harness.write_workload(self.folder, traces)] + harness.System(counts=(4,)).write(self.folder)
        for ranks in (0, 2):
            outcome = harness.orrery("run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", ranks=ranks)
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertEqual(
                outcome.err.count("a send without a receive"), 2, outcome.err
            )  # of one class, and its peer

    def test_a_stuck_run_names_a_member_of_each_class(self):
        """4 NPUs wait for each other in pairs. The report names the NPU that stands for the class, and counts all NPUs that do not
        finish."""
        traces = [
            [
                chakra.Node(0, chakra.RECV, "from", comm_src=i ^ 1, comm_dst=i, comm_tag=1, comm_size=64),
                chakra.Node(1, chakra.SEND, "to", [0], comm_src=i, comm_dst=i ^ 1, comm_tag=1, comm_size=64),
            ]
            for i in range(4)
        ]
        arguments = [harness.write_workload(self.folder, traces)] + harness.System(counts=(4,)).write(self.folder)
        for ranks in (0, 2):
            outcome = harness.orrery("run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", ranks=ranks)
            self.assertEqual(outcome.code, 4, outcome.err)
            self.assertIn("4 of 4 NPUs do not finish", outcome.err)
            self.assertIn("NPU 0, node 0 'from' waits from the start for a message from NPU 1 with tag 1", outcome.err)

    def test_a_stuck_collective_names_its_members(self):
        """Even NPUs wait for the message that odd ones send after the collective of the pair. The folded run says of NPUs 0 and 1 what
        the run without folding says."""
        traces = []
        for i in range(6):
            message = dict(comm_src=i | 1, comm_dst=i & ~1, comm_tag=1, comm_size=64)
            first = [chakra.Node(0, chakra.RECV, "from", **message)] if i % 2 == 0 else []
            traces.append(
                first
                + [
                    chakra.Node(
                        1,
                        chakra.COLL,
                        "sum",
                        [0] if first else [],
                        comm_type=chakra.ALL_REDUCE,
                        comm_size=64,
                        pg_name=f"g{i // 2}",
                    )
                ]
                + ([] if first else [chakra.Node(2, chakra.SEND, "to", [1], **message)])
            )
        system = harness.System(counts=(6,), groups={f"g{k}": [2 * k, 2 * k + 1] for k in range(3)})
        arguments = [harness.write_workload(self.folder, traces)] + system.write(self.folder)
        plain = harness.orrery("run", *arguments, f"--output={self.folder / 'r.h5'}")
        self.assertIn(
            "'sum' waits from the start for all-reduce number 1 of group 'g0' (64 bytes): 1 of 2 members are there, missing NPU 0",
            plain.err,
        )
        of_class = [
            line
            for line in plain.err.splitlines()
            if "NPU 0, node" in line or "NPU 1, node" in line or "6 of 6 NPUs" in line
        ]
        self.assertEqual(len(of_class), 3)
        for ranks in (0, 2):
            outcome = harness.orrery("run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", ranks=ranks)
            self.assertEqual(outcome.code, 4, outcome.err)
            for line in of_class:
                self.assertIn(line, outcome.err)


if __name__ == "__main__":
    harness.main()
