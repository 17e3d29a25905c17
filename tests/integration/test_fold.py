#!/usr/bin/python3
"""Folding: with --fold the results are those of the run without it, for every NPU, group and node, on any number of ranks.

Random workloads as they are, where hardly anything is alike; random workloads copied over replicas, with ids, names, tags and groups of
their own, perhaps with a collective of all replicas, perhaps with one NPU that differs; generated workloads; the STAGE traces.
"""
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402

SCALE = harness.SOURCE / "configs/scale"
SEEDS = range(7001, 7006 if harness.SANITIZED else 7041)
SHARED_REPLICAS = 1 if harness.SANITIZED else 12  # of the seeds: neither skewed nor one of the exceptions of test_replicas
MESSAGES = (chakra.SEND, chakra.RECV)


def copied(workload, replicas, rng, joined):
    """The workload once for each replica, along one more dimension. `joined`: replicas end with a collective, "across" of the
    corresponding NPUs of the replicas for each NPU, or of the "world"."""
    system, n = workload.system, workload.num_npus
    dimensions = len(system.counts)
    system.topology.append(rng.choice(["Ring", "FullyConnected", "Switch"]))
    system.counts.append(replicas)
    system.bandwidth.append(50.0)
    system.latency.append(500.0)
    for key, value in system.system.items():
        if key.endswith("-implementation"):
            value.append(value[0] if value[0].startswith("one") else "ring")
    groups = {f"{name}@{r}": [member + r * n for member in members] for name, members in (system.groups or {}).items() for r in range(replicas)}
    if joined == "across":
        groups |= {f"across {npu}": [npu + r * n for r in range(replicas)] for npu in range(n)}
    system.groups = groups or None
    return [one_copy(nodes, n, r, dimensions, npu, joined) for r in range(replicas) for npu, nodes in enumerate(workload.traces)]


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
            attributes |= {"comm_src": node.attributes["comm_src"] + r * n, "comm_dst": node.attributes["comm_dst"] + r * n,
                           "comm_tag": node.attributes["comm_tag"] * 3 + r}
        shift = 1000 * r
        copies.append(chakra.Node(node.id + shift, node.type, f"{node.name}@{r}", [d + shift for d in node.data_deps],
                                  [d + shift for d in node.ctrl_deps], node.duration, **attributes))
    if joined:
        copies.append(chakra.Node(1 + max(node.id for node in copies), chakra.COLL, "across", [node.id for node in copies],
                                  comm_type=chakra.ALL_REDUCE, comm_size=4096, **({"pg_name": f"across {npu}"} if joined == "across" else {})))
    return copies


def classes(path):
    import h5py
    with h5py.File(path) as results:
        return int(results.attrs["num_classes"]), len(results["npus/finish_time"])


class Fold(harness.Folder):
    def check(self, arguments, ranks=(0,), timeout=60):
        """Runs unfolded and folded; returns the number of classes."""
        plain = self.run_once(arguments, "plain.h5", timeout=timeout)
        found = set()
        for r in ranks:
            folded = self.run_once([*arguments, "--fold"], f"folded{r}.h5", ranks=r, timeout=timeout)
            self.assertEqual(harness.difference(plain, folded), "", f"{r} ranks")
            found.add(classes(folded)[0])
        self.assertEqual(len(found), 1)
        return found.pop()

    def test_random_workloads(self):
        for seed in SEEDS:
            workload = random_workload.Workload(seed, max_npus=32, operations=(5, 80))
            arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder) + ["--timeline"]
            with self.subTest(f"seed {seed}"):
                self.check(arguments, ranks=(0, 2, 3) if seed % 8 == 0 else (0,))
            for path in self.folder.iterdir():
                path.unlink()

    def test_replicas(self):
        """Without an NPU that differs there are no more classes than the workload has NPUs, unless replicas share a memory or a ring of
        messages goes all around."""
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
            arguments = [harness.write_workload(self.folder, traces)] + workload.system.write(self.folder) + ["--timeline", "--iterations=2", "--record-iterations=2"]
            with self.subTest(f"seed {seed}: {replicas} replicas of {workload.num_npus} NPUs"):
                count = self.check(arguments, ranks=(0, 1, 2, 3) if seed % 8 == 0 else (0,))
                # As one line the world lists the replicas one after the other, and halving-doubling does not turn by a replica.
                in_line = any(str(names).startswith("['one") for key, names in workload.system.system.items() if key.startswith("all-reduce-"))
                if not skewed and not workload.shared_memory() and not (joined == "world" and in_line):
                    self.assertLessEqual(count, workload.num_npus)
                    shared += 1
            for path in self.folder.iterdir():
                path.unlink()
        self.assertEqual(shared, SHARED_REPLICAS)

    def test_ring_of_messages(self):
        """Every NPU sends to the next one: a class that sends to itself."""
        n = 6
        traces = [[chakra.Node(0, chakra.COMP, "compute", duration=5),
                   chakra.Node(1, chakra.SEND, "to", [0], comm_src=i, comm_dst=(i + 1) % n, comm_tag=i, comm_size=4096),
                   chakra.Node(2, chakra.RECV, "from", comm_src=(i - 1) % n, comm_dst=i, comm_tag=(i - 1) % n, comm_size=4096),
                   chakra.Node(3, chakra.COMP, "after", [2], duration=3)] for i in range(n)]
        for rendezvous in ("false", "true"):
            system = harness.System(counts=(n,), flags=[f"--rendezvous-protocol={rendezvous}"])
            arguments = [harness.write_workload(self.folder, traces)] + system.write(self.folder) + ["--timeline"]
            self.assertEqual(self.check(arguments, ranks=(0, 2)), 1)

    def test_overlapping_groups(self):
        """NPU i is first in a group with i + 1 and second in one with i - 1: one class with two seats in one communicator. Groups are rings
        in the order listed (astra-sim rules); else [5, 0] would lie the other way round."""
        n = 6
        groups = {f"g{i}": [i, (i + 1) % n] for i in range(n)}
        traces = [[chakra.Node(0, chakra.COMP, "compute", duration=5),
                   chakra.Node(1, chakra.COLL, "first", [0], comm_type=chakra.ALL_REDUCE, comm_size=4096, pg_name=f"g{i}"),
                   chakra.Node(2, chakra.COLL, "second", [0], comm_type=chakra.ALL_REDUCE, comm_size=4096, pg_name=f"g{(i - 1) % n}")] for i in range(n)]
        self.write("config.yaml", "system:\n  rules: astra-sim\n  network:\n    dimensions:\n      - {shape: Switch, size: 6, bandwidth: 50 GB/s, latency: 500 ns}\n"
                   "  communication: {streams: 2}\nworkload: {traces: workload, groups: groups.json}\n")
        harness.write_workload(self.folder, traces)
        import json
        (self.folder / "groups.json").write_text(json.dumps(groups))
        self.assertEqual(self.check([self.folder / "config.yaml", "--timeline"], ranks=(0, 2)), 1)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def test_generated(self):
        base = [SCALE / "gpt3-175b-1024.yaml", "--set", "workload.parallel.dp=4", "--set", "system.network.dimensions.2.size=1"]
        cases = {"1f1b": [], "gpipe": ["workload.parallel.schedule=gpipe"], "interleaved": ["workload.parallel.interleaving=3"],
                 "zero": ["workload.parallel.zero=3", "workload.parallel.micro-batches=2"], "tied": ["workload.model.tied-embeddings=true"],
                 "placed": ["workload.parallel.placement=[dp, tp, pp, cp, ep]"], "cp": ["workload.parallel.dp=2", "workload.parallel.cp=2"],
                 "ring": ["system.network.dimensions.0.shape=Ring", "system.network.dimensions.1.shape=Ring"],
                 "offload": ["workload.parallel.zero=3", "workload.parallel.micro-batches=2", "workload.parallel.offload=[parameters, optimizer]",
                             "system.remote-memory={kind: per-npu, bandwidth: 20 GB/s, latency: 1 us}"],
                 "mesh": ["system.network.dimensions.1.shape=Mesh"]}
        for name, settings in cases.items():
            with self.subTest(name):
                arguments = base + [part for setting in ("workload.parallel.micro-batches=8", *settings) for part in ("--set", setting)]
                found = self.check(arguments, ranks=(0, 2))
                self.assertEqual(found % 8, 0, found)
                self.assertLess(found, 256)

    def test_scale(self):
        """1,024 NPUs in eight classes, on fewer and on more ranks."""
        self.assertEqual(self.check([SCALE / "gpt3-175b-1024.yaml"] + ["--set=workload.parallel.micro-batches=2"] * harness.SANITIZED,
                                    ranks=(0,) if harness.SANITIZED else (0, 2, 9), timeout=300), 8)

    def test_noise(self):
        outcome = harness.orrery("run", SCALE / "gpt3-175b-1024.yaml", "--fold", "--noise=0.1", "--set", "workload.parallel.dp=1", "--set",
                                 "system.network.dimensions.1.size=8", "--set", "system.network.dimensions.2.size=1", f"--output={self.folder / 'r.h5'}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("nothing to fold: 64 NPUs in as many classes", outcome.out)
        self.assertIn("64 NPUs with compute times of their own (noise)", outcome.out)

    def test_says_why(self):
        outcome = harness.orrery("run", SCALE / "gpt3-175b-1024.yaml", "--fold", f"--output={self.folder / 'r.h5'}")
        self.assertRegex(outcome.out, r"(?m)^folded: 1024 NPUs in 8 classes: 8 structures$")

    def test_replay(self):
        traces = [[chakra.Node(0, chakra.COMP, "compute", duration=5 + i % 2),
                   chakra.Node(1, chakra.COLL, "sum", [0], duration=9, comm_type=chakra.ALL_REDUCE, comm_size=4096,
                               **({"pg_name": "odd"} if i % 2 else {}))] for i in range(6)]
        system = harness.System(counts=(6,), system={"replay-only": 1}, groups={"odd": [1, 3, 5]})
        arguments = [harness.write_workload(self.folder, traces)] + system.write(self.folder) + ["--timeline"]
        self.assertEqual(self.check(arguments, ranks=(0, 3)), 2)

    def test_stage(self):
        harness.skip_without(harness.SHARED / "traces", "the traces")
        for name in ("gpt_64_tp8sp2dp4_sp", "moe_64_dp4tp2pp2ep4", "llama-s_64_dp4tp4pp4"):
            with self.subTest(name):
                folder, system = harness.unpacked(f"stage-{name}") / name, harness.SHARED / "traces/system"
                arguments = [f"--workload-configuration={folder / 'workload'}", f"--comm-group-configuration={folder / 'workload.json'}",
                             f"--system-configuration={system / 'system.json'}", f"--network-configuration={system / 'net_64.yml'}",
                             f"--remote-memory-configuration={system / 'mem.json'}"]
                found = self.check(arguments, ranks=(0, 2), timeout=300)
                print(f"stage-{name}: {found} classes of 64")


class Study(harness.Folder):
    def test_scale(self):
        """The study prints a row for each configuration, unfolded and folded, and its finish times agree."""
        if harness.SANITIZED:
            self.skipTest("sanitizers slow it, and the study calls what other tests call")
        plot = self.folder / "scale.png"
        done = subprocess.run(["/usr/bin/python3", str(harness.SOURCE / "scripts/studies/scale"), "1024", "--repeat=1", f"--plot={plot}", f"--orrery={harness.BINARY}"],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
        self.assertEqual([row[:4] for row in rows], [[name, "1,024", folded, classes] for name, counts in
                                                     {"all-reduce-1024": ("1,024", "1"), "gpt3-175b-1024": ("1,024", "8"), "ring-1024-skewed": ("1,024", "1,024"),
                                                      "transformer-step-1024": ("1,024", "1")}.items() for folded, classes in zip(("no", "yes"), counts)])
        self.assertGreater(plot.stat().st_size, 10000)


class Refusals(harness.Folder):
    def test_partition(self):
        for more in ("--partition=round-robin", "--set=run.partition=metis"):
            outcome = harness.orrery("run", SCALE / "gpt3-175b-1024.yaml", "--fold", more, f"--output={self.folder / 'r.h5'}")
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertRegex(outcome.err, r"partition.*folded run.*expected block")

    def test_faults_are_told_once(self):
        """As without --fold, whatever the number of ranks."""
        traces = [[chakra.Node(0, chakra.SEND, "to", comm_src=i, comm_dst=i ^ 1, comm_tag=1, comm_size=64)] for i in range(4)]
        arguments = [harness.write_workload(self.folder, traces)] + harness.System(counts=(4,)).write(self.folder)
        for ranks in (0, 2):
            outcome = harness.orrery("run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", ranks=ranks)
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertEqual(outcome.err.count("a send without a receive"), 2, outcome.err)  # of one class, and its peer

    def test_stuck(self):
        """The report names who stands for the class, and all NPUs that do not finish."""
        traces = [[chakra.Node(0, chakra.RECV, "from", comm_src=i ^ 1, comm_dst=i, comm_tag=1, comm_size=64),
                   chakra.Node(1, chakra.SEND, "to", [0], comm_src=i, comm_dst=i ^ 1, comm_tag=1, comm_size=64)] for i in range(4)]
        arguments = [harness.write_workload(self.folder, traces)] + harness.System(counts=(4,)).write(self.folder)
        for ranks in (0, 2):
            outcome = harness.orrery("run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", ranks=ranks)
            self.assertEqual(outcome.code, 4, outcome.err)
            self.assertIn("4 of 4 NPUs do not finish", outcome.err)
            self.assertIn("NPU 0, node 0 'from' waits since 0 ps for a message from NPU 1 with tag 1", outcome.err)

    def test_stuck_collective(self):
        """Even NPUs wait for the message that odd ones send after the collective of the pair; what is said of NPUs 0 and 1 is said unfolded too."""
        traces = []
        for i in range(6):
            message = dict(comm_src=i | 1, comm_dst=i & ~1, comm_tag=1, comm_size=64)
            first = [chakra.Node(0, chakra.RECV, "from", **message)] if i % 2 == 0 else []
            traces.append(first + [chakra.Node(1, chakra.COLL, "sum", [0] if first else [], comm_type=chakra.ALL_REDUCE, comm_size=64, pg_name=f"g{i // 2}")]
                          + ([] if first else [chakra.Node(2, chakra.SEND, "to", [1], **message)]))
        system = harness.System(counts=(6,), groups={f"g{k}": [2 * k, 2 * k + 1] for k in range(3)})
        arguments = [harness.write_workload(self.folder, traces)] + system.write(self.folder)
        plain = harness.orrery("run", *arguments, f"--output={self.folder / 'r.h5'}")
        self.assertIn("'sum' waits since 0 ps for all-reduce number 1 of group 'g0' (64 bytes): 1 of 2 members are there, missing NPU 0", plain.err)
        of_class = [line for line in plain.err.splitlines() if "NPU 0, node" in line or "NPU 1, node" in line or "6 of 6 NPUs" in line]
        self.assertEqual(len(of_class), 3)
        for ranks in (0, 2):
            outcome = harness.orrery("run", *arguments, "--fold", f"--output={self.folder / 'r.h5'}", ranks=ranks)
            self.assertEqual(outcome.code, 4, outcome.err)
            for line in of_class:
                self.assertIn(line, outcome.err)


if __name__ == "__main__":
    harness.main()
