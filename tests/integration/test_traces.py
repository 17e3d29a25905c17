#!/usr/bin/python3
"""Traces that other tools wrote (shared/traces) run on 1 to 4 ranks with one answer, or are refused by name."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from harness import System, unpacked  # noqa: E402

RANKS = (2,) if harness.SANITIZED else (1, 2, 3, 4)


class Traces(harness.Folder):
    def one_answer(self, prefix, system, ranks=RANKS):
        """Runs PREFIX.<npu>.et on a System, or on the files of a folder."""
        if isinstance(system, System):
            files, num_npus = system.write(self.folder), system.num_npus
        else:
            files, num_npus = system, len(list(prefix.parent.glob(prefix.name + ".*.et")))
        first = self.check_one_answer([f"--workload-configuration={prefix}"] + files, num_npus, ranks, scattered=num_npus > 1)
        times = harness.finish_times(first)
        self.assertEqual(len(times), num_npus)
        return times

    def test_dlrm(self):
        """A real step on 8 GPUs. Each NPU is busy on the GPU for some time and none finishes at once."""
        times = self.one_answer(unpacked("dlrm-8gpu") / "dlrm", System(["FullyConnected"], [8], 300.0, 700.0))
        self.assertGreater(min(times), 10 ** 9)

    def test_resnet50(self):
        folder = unpacked("resnet50-dp-64")
        memory = self.folder / "remote_memory.json"
        memory.write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
        files = [f"--network-configuration={folder / 'network.yml'}", f"--system-configuration={folder / 'system.json'}", f"--remote-memory-configuration={memory}"]
        times = self.one_answer(folder / "resnet50_DataParallel", files)
        self.assertEqual(len(set(times)), 1, "data parallel: all NPUs finish together")

    def test_microbenchmarks(self):
        """One collective of 1 MiB each. ASTRA-sim gives 323,560 ns for the all-gather of 16 NPUs on this ring."""
        folder = unpacked("astra-sim-examples") / "microbenchmarks"
        for kind in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter"):
            for npus in (4, 8, 16):
                with self.subTest(f"{kind} on {npus}"):
                    times = self.one_answer(folder / kind / f"{npus}npus_1MB" / kind, System(["Ring"], [npus]), ranks=RANKS if npus == 16 else (2,))
                    self.assertEqual(len(set(times)), 1)
                    if (kind, npus) == ("all_gather", 16):
                        self.assertEqual(times[0], 323_560_000)

    def test_hgx(self):
        self.one_answer(unpacked("astra-sim-examples") / "H100-HGX-Validated" / "AllReduce_1MB", System(["Switch"], [8], 400.0, 936.25))

    def test_every_node_type(self):
        folder = unpacked("chakra-all-types")
        memory = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 64}
        for name in ("ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "BARRIER", "BROADCAST", "REDUCE_SCATTER", "one_comp_node", "one_metadata_node_all_types",
                     "one_remote_mem_load_node", "one_remote_mem_store_node", "two_comp_nodes_dependent", "two_comp_nodes_independent"):
            with self.subTest(name):
                self.one_answer(folder / name, System(memory=memory))

    def test_messages_without_a_peer_are_refused(self):
        folder = unpacked("chakra-all-types")
        files = System().write(self.folder)
        for name, node, key in (("one_comm_send_node", 56, "comm_dst"), ("one_comm_recv_node", 60, "comm_src")):
            for ranks in (0, 2):
                with self.subTest(name, ranks=ranks):
                    outcome = harness.orrery("run", f"--workload-configuration={folder / name}", *files, f"--output={self.folder / 'results.h5'}", ranks=ranks)
                    self.assertEqual(outcome.code, 3, outcome.err)
                    self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
                    self.assertRegex(outcome.err, rf"{name}\.0\.et: NPU 0, node {node} .*({key}|comm_size)")
                    self.assertFalse((self.folder / "results.h5").exists())

    def test_older_layouts(self):
        folder = unpacked("chakra-legacy-schemas")
        for name in ("legacy_v001", "legacy_v003"):
            with self.subTest(name):
                times = self.one_answer(folder / name, System(memory={"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 64}))
                self.assertGreater(min(times), 0)

    def test_pytorch(self):
        """One NPU each, one of them gzip, both with dependencies that need care."""
        folder = unpacked("chakra-pytorch-single")
        shutil.copy(folder / "pytorch_schema1.1.0.0.et.gz", self.folder / "packed.0.et")
        for prefix in (folder / "resnet_schema1.0.1", self.folder / "packed"):
            with self.subTest(prefix.name):
                files = System(["Ring"], [1]).write(self.folder)
                path = self.run_once([f"--workload-configuration={prefix}"] + files)
                self.assertGreater(harness.finish_times(path)[0], 10 ** 6)

    def test_tori(self):
        """Process groups on tori; the group "0" is not the world."""
        for folder in sorted((unpacked("torus-multitenant") / "examples").glob("T?D-analytical")):
            inputs = folder / "inputs"
            files = [f"--network-configuration={inputs / 'network.yml'}", f"--system-configuration={inputs / 'sys.json'}",
                     f"--remote-memory-configuration={inputs / 'RemoteMemory.json'}"]
            files += [f"--comm-group-configuration={path}" for path in inputs.glob("comm_group*.json")]
            with self.subTest(folder.name):
                self.one_answer(folder / "trace/trace", files)

    def stage(self, archive, ranks=RANKS):
        """Every NPU finishes when ASTRA-sim says, to the nanosecond."""
        name = archive.removeprefix("stage-")
        folder = unpacked(archive) / name
        system = harness.SHARED / "traces/system"
        files = [f"--network-configuration={system / 'net_64.yml'}", f"--system-configuration={system / 'system.json'}",
                 f"--remote-memory-configuration={system / 'mem.json'}", f"--comm-group-configuration={folder / 'workload.json'}"]
        times = self.one_answer(folder / "workload", files, ranks)
        expected = json.loads((harness.SHARED / f"traces/expected/{name}.expected.json").read_text())["finish_ns"]
        self.assertEqual(times, [time * 1000 for time in expected])

    def test_tensors_of_stage(self):
        """`orrery show trace` counts the tensors that a plain reading of the file finds."""
        for archive, npus in (("stage-gpt_64_tp8sp2dp4_sp", (0, 63)), ("stage-moe_64_dp4tp2pp2ep4", (0, 32)), ("stage-llama-s_64_dp4tp4pp4", (0, 16))):
            for npu in npus:
                with self.subTest(archive, npu=npu):
                    path = unpacked(archive) / archive.removeprefix("stage-") / f"workload.{npu}.et"
                    sizes, made, listings = {}, set(), 0
                    for node in chakra.read(path):
                        needs, makes = (dict(zip(texts[::2], texts[1::2])) for texts in (node.attributes["inputs"], node.attributes["outputs"]))
                        sizes |= {name: int(float(size)) for name, size in (needs | makes).items()}
                        made |= makes.keys() - needs.keys()
                        listings += len(needs | makes)
                    outcome = harness.orrery("show", "trace", str(path), "--json")
                    self.assertEqual(outcome.code, 0, outcome.err)
                    others = sizes.keys() - made
                    self.assertEqual(json.loads(outcome.out)["tensors"],
                                     {"count": len(sizes), "bytes": sum(sizes.values()), "listings": listings, "without_maker": len(others),
                                      "bytes_without_maker": sum(sizes[name] for name in others)})

    def test_stage_gpt(self):
        self.stage("stage-gpt_64_tp8sp2dp4_sp")

    def test_stage_moe(self):
        self.stage("stage-moe_64_dp4tp2pp2ep4")

    def test_stage_llama(self):
        self.stage("stage-llama-s_64_dp4tp4pp4")


if __name__ == "__main__":
    harness.skip_without(harness.SHARED / "traces/dlrm-8gpu.tar.xz", "the traces that other tools wrote")
    harness.main()
