#!/usr/bin/python3
"""Traces that other tools wrote run on 1 to 4 ranks with the same results, or are refused by name. Needs shared/traces."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from harness import EACH_NODE_TYPE, System, unpacked  # noqa: E402

RANKS = harness.cases((2,), (2, 4), (1, 2, 3, 4))


class Traces(harness.Folder):
    def one_answer(self, prefix, system, ranks=RANKS):
        """Runs the traces PREFIX.<npu>.et on a System, or on the files that a list of flags names. Checks that the results are the same on
        each number of ranks and returns the finish times in ps."""
        if isinstance(system, System):
            files, num_npus = system.write(self.folder), system.num_npus
        else:
            files, num_npus = system, len(list(prefix.parent.glob(prefix.name + ".*.et")))
        first = self.check_one_answer(
            [f"--workload-configuration={prefix}"] + files, num_npus, ranks, scattered=num_npus > 1
        )
        times = harness.finish_times(first)
        self.assertEqual(len(times), num_npus)
        return times

    def test_dlrm_on_8_gpus(self):
        """A recorded step of DLRM on 8 GPUs takes some time on each NPU; none finishes at once."""
        times = self.one_answer(unpacked("dlrm-8gpu") / "dlrm", System(["FullyConnected"], [8], 300.0, 700.0))
        self.assertGreater(min(times), 10**9)

    def test_resnet50_on_64_npus(self):
        """A data-parallel step of ResNet-50: all 64 NPUs finish together."""
        folder = unpacked("resnet50-dp-64")
        memory = self.folder / "remote_memory.json"
        memory.write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
        files = [
            f"--network-configuration={folder / 'network.yml'}",
            f"--system-configuration={folder / 'system.json'}",
            f"--remote-memory-configuration={memory}",
        ]
        times = self.one_answer(folder / "resnet50_DataParallel", files)
        self.assertEqual(len(set(times)), 1, "data parallel: all NPUs finish together")

    def test_one_collective_of_each_kind(self):
        """One collective of 1 MiB of each kind on rings of 4, 8 and 16 NPUs: all NPUs finish together, and the all-gather of 16 takes
        the 323,560 ns that ASTRA-sim gives."""
        folder = unpacked("astra-sim-examples") / "microbenchmarks"
        for kind in ("all_gather", "all_reduce", "all_to_all", "reduce_scatter"):
            for npus in (4, 8, 16):
                with self.subTest(f"{kind} on {npus}"):
                    times = self.one_answer(
                        folder / kind / f"{npus}npus_1MB" / kind,
                        System(["Ring"], [npus]),
                        ranks=RANKS if npus == 16 else (2,),
                    )
                    self.assertEqual(len(set(times)), 1)
                    if (kind, npus) == ("all_gather", 16):
                        self.assertEqual(times[0], 323_560_000)

    def test_an_all_reduce_on_an_h100_server(self):
        """An all-reduce of 1 MiB on 8 NPUs at one switch gives the same results on any number of ranks."""
        self.one_answer(
            unpacked("astra-sim-examples") / "H100-HGX-Validated" / "AllReduce_1MB",
            System(["Switch"], [8], 400.0, 936.25),
        )

    def test_every_node_type_of_chakra(self):
        """Small traces with one node or two of each type that Chakra knows give the same results on any number of ranks."""
        folder = unpacked("chakra-all-types")
        memory = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 64}
        for name in EACH_NODE_TYPE:
            with self.subTest(name):
                self.one_answer(folder / name, System(memory=memory))

    def test_messages_without_a_peer_are_refused(self):
        """A send without a destination and a receive without a source are refused on 1 and 2 ranks, with one message that names file,
        NPU, node and attribute, and without results."""
        folder = unpacked("chakra-all-types")
        files = System().write(self.folder)
        for name, node, key in (("one_comm_send_node", 56, "comm_dst"), ("one_comm_recv_node", 60, "comm_src")):
            for ranks in (0, 2):
                with self.subTest(name, ranks=ranks):
                    outcome = harness.orrery(
                        "run",
                        f"--workload-configuration={folder / name}",
                        *files,
                        f"--output={self.folder / 'results.h5'}",
                        ranks=ranks,
                    )
                    self.assertEqual(outcome.code, 3, outcome.err)
                    self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
                    self.assertRegex(outcome.err, rf"{name}\.0\.et: NPU 0, node {node} .*({key}|comm_size)")
                    self.assertFalse((self.folder / "results.h5").exists())

    def test_older_layouts_of_chakra(self):
        """Traces of schemas 0.0.1 and 0.0.3 run and take some time."""
        folder = unpacked("chakra-legacy-schemas")
        for name in ("legacy_v001", "legacy_v003"):
            with self.subTest(name):
                times = self.one_answer(
                    folder / name,
                    System(
                        memory={
                            "memory-type": "PER_NPU_MEMORY_EXPANSION",
                            "remote-mem-latency": 100,
                            "remote-mem-bw": 64,
                        }
                    ),
                )
                self.assertGreater(min(times), 0)

    def test_traces_of_pytorch(self):
        """Two traces of one NPU each that PyTorch wrote, one of them compressed, run for a microsecond at least. Both have dependencies
        that need care."""
        folder = unpacked("chakra-pytorch-single")
        shutil.copy(folder / "pytorch_schema1.1.0.0.et.gz", self.folder / "packed.0.et")
        for prefix in (folder / "resnet_schema1.0.1", self.folder / "packed"):
            with self.subTest(prefix.name):
                files = System(["Ring"], [1]).write(self.folder)
                path = self.run_once([f"--workload-configuration={prefix}"] + files)
                self.assertGreater(harness.finish_times(path)[0], 10**6)

    def test_process_groups_on_tori(self):
        """Tenants with process groups on 1-D to 3-D tori give the same results on any number of ranks. The group "0" is not the world."""
        for folder in sorted((unpacked("torus-multitenant") / "examples").glob("T?D-analytical")):
            inputs = folder / "inputs"
            files = [
                f"--network-configuration={inputs / 'network.yml'}",
                f"--system-configuration={inputs / 'sys.json'}",
                f"--remote-memory-configuration={inputs / 'RemoteMemory.json'}",
            ]
            files += [f"--comm-group-configuration={path}" for path in inputs.glob("comm_group*.json")]
            with self.subTest(folder.name):
                self.one_answer(folder / "trace/trace", files)

    def check_stage(self, name):
        """Checks that every NPU finishes when ASTRA-sim says, to the nanosecond, on each number of ranks."""
        times = harness.finish_times(self.check_one_answer(harness.stage_arguments(name), 64, RANKS))
        expected = json.loads(harness.shared(f"traces/expected/{name}.expected.json").read_text())["finish_ns"]
        self.assertEqual(times, [time * 1000 for time in expected])

    def test_tensors_are_counted_as_listed(self):
        """`show trace` counts the tensors of STAGE's traces that a plain reading of the files finds."""
        for name, npus in zip(harness.STAGE_TRACES, ((0, 63), (0, 32), (0, 16))):
            folder = unpacked(f"stage-{name}") / name
            for npu in npus:
                with self.subTest(name, npu=npu):
                    path = folder / f"workload.{npu}.et"
                    sizes, made, listings = {}, set(), 0
                    for node in chakra.read(path):
                        needs, makes = (
                            dict(zip(texts[::2], texts[1::2]))
                            for texts in (node.attributes["inputs"], node.attributes["outputs"])
                        )
                        sizes |= {name: int(float(size)) for name, size in (needs | makes).items()}
                        made |= makes.keys() - needs.keys()
                        listings += len(needs | makes)
                    outcome = harness.orrery("show", "trace", str(path), "--json")
                    self.assertEqual(outcome.code, 0, outcome.err)
                    others = sizes.keys() - made
                    self.assertEqual(
                        json.loads(outcome.out)["tensors"],
                        {
                            "count": len(sizes),
                            "bytes": sum(sizes.values()),
                            "listings": listings,
                            "without_maker": len(others),
                            "bytes_without_maker": sum(sizes[name] for name in others),
                        },
                    )

    def test_stage_gpt_finishes_as_in_astra_sim(self):
        """GPT on 64 NPUs: every NPU finishes when ASTRA-sim says, to the nanosecond."""
        self.check_stage("gpt_64_tp8sp2dp4_sp")

    def test_stage_moe_finishes_as_in_astra_sim(self):
        """A mixture of experts on 64 NPUs: every NPU finishes when ASTRA-sim says, to the nanosecond."""
        self.check_stage("moe_64_dp4tp2pp2ep4")

    def test_stage_llama_finishes_as_in_astra_sim(self):
        """Llama on 64 NPUs: every NPU finishes when ASTRA-sim says, to the nanosecond."""
        self.check_stage("llama-s_64_dp4tp4pp4")


if __name__ == "__main__":
    harness.main()
