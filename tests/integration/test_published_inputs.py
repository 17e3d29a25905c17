#!/usr/bin/python3
"""Inputs of kinds that public bug reports and files of 2025 and 2026 have: recordings of training whose host runs ahead, batched messages,
collectives of other libraries than NCCL, recordings that know no world; files of AICB, NCCL, HPCC, InfraGraph, MSCCL++, nccl-tests and
LLMServingSim. Each kind has the numbers of a published input, and those of another one."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import chakra  # noqa: E402
import harness  # noqa: E402
import kineto  # noqa: E402
from chakra import Node  # noqa: E402
from kineto import event  # noqa: E402

GB = 1e3  # bytes in a us


class Inputs(harness.Folder):
    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def call(self, *command, code=0):
        """Returns what a command printed to both outputs."""
        outcome = harness.orrery(*command)
        self.assertEqual(outcome.code, code, outcome.err + outcome.out)
        return outcome.out + outcome.err

    def step_us(self, config, *options):
        """Runs a configuration, and returns the end of the last NPU in us and what was printed."""
        output = self.folder / "r.h5"
        printed = self.call("run", config, f"--output={output}", "--force", "--verbose", *options)
        return max(harness.finish_times(output)) / 1e6, printed

    def system(self, npus, bandwidth, **workload):
        return self.write(
            "job.yaml",
            {
                "system": {
                    "network": {
                        "dimensions": [{"shape": "Switch", "size": npus, "bandwidth": bandwidth, "latency": "1 us"}]
                    },
                    "compute": {"roofline": False},
                },
                "workload": {"traces": str(self.folder / "rank.{npu}.json")} | workload,
            },
        )

    def record(self, rank, events, world=2, **info):
        content = {
            "schemaVersion": 1,
            "distributedInfo": {"rank": rank, "world_size": world} | info,
            "traceEvents": events,
        }
        self.write(f"rank.{rank}.json", content)


def launch(correlation, ts, name="cudaLaunchKernel"):
    return event("cuda_runtime", name, ts, 5, correlation=correlation)


class HostRunsAhead(Inputs):
    """The host launches steps faster than the GPU works them off. In us: kernels of a step on stream 7, then an all-reduce on stream 24, and
    the optimiser after it."""

    def record_steps(self, kernels, reduce, optimiser, host, steps, last_waits=False):
        """Records equal steps of two ranks. The host takes `host` for each; with `last_waits` it waits for the GPU at the end of the last."""
        for rank in range(2):
            events, gpu, number = [], 0, 0
            for step in range(steps):
                begin = step * host
                gpu = max(gpu, begin + 100)
                for place, kernel in enumerate((*kernels, reduce, optimiser)):
                    number += 1
                    at = begin + 50 + 40 * place
                    if kernel is reduce:
                        events += [
                            event("cuda_runtime", "cudaStreamWaitEvent", at - 5, 1, correlation=1000 + number),
                            launch(number, at),
                            kineto.all_reduce(gpu, reduce, number, ranks=[0, 1]),
                        ]
                    else:
                        if kernel is optimiser:
                            events.append(
                                event("cuda_runtime", "cudaStreamWaitEvent", at - 5, 1, correlation=1000 + number)
                            )
                        events += [
                            launch(number, at),
                            event("kernel", f"k{kernel}", gpu, kernel, stream=7, correlation=number),
                        ]
                    gpu += kernel
                length = host
                if last_waits and step == steps - 1:
                    events.append(
                        event(
                            "cuda_runtime", "cudaDeviceSynchronize", begin + host, gpu - begin - host, correlation=5000
                        )
                    )
                    length = gpu + 10 - begin
                events.append(event("user_annotation", f"ProfilerStep#{7 + step}", begin, length))
            self.record(rank, events)

    def check_steps(self, steps, recorded, simulated, margin=0.5):
        for step in range(7, 7 + steps):
            for durations, expected in (("recorded", recorded), ("network", simulated)):
                found, _ = self.step_us(
                    self.system(2, "100 GB/s"), f"--step={step}", f"--communication-durations={durations}"
                )
                self.assertAlmostEqual(found, expected, delta=margin, msg=f"step {step}, {durations}")

    def test_every_step_takes_what_the_gpu_takes(self):
        """Kernels of 4 and 4 ms, an all-reduce of 64 MiB that took 2 ms, 10 us: 10.01 ms each, although the third one begins 18 ms before the
        GPU does. At 100 GB/s the all-reduce takes 0.67 ms."""
        self.record_steps((4000, 4000), 2000, 10, 1000, 3)
        self.check_steps(3, 10010, 8010 + 2**26 / 100 / GB + 4)

    def test_a_wait_at_the_end_of_the_last_step_changes_nothing(self):
        """Four steps of 1 + 2 + 3 ms and 0.5 ms for the all-reduce. The profiler waits for the GPU in the last one: 6.52 ms each."""
        self.record_steps((1000, 2000, 3000), 500, 20, 1500, 4, last_waits=True)
        self.check_steps(4, 6520, 6020 + 2**26 / 100 / GB + 4, margin=15)

    def test_a_host_that_is_not_ahead_decides(self):
        """The host takes 9 ms for what the GPU does in 6.52 ms: each step takes 9 ms, also if the GPU is late by a little."""
        self.record_steps((1000, 2000, 3000), 500, 20, 9000, 3)
        self.check_steps(3, 9000, 9000, margin=80)

    def test_the_published_recording(self):
        """Three steps of 10.01 ms: each takes that by its recorded durations, and 8.69 ms at 100 GB/s."""
        folder = harness.shared("inputs/reports/host-runs-ahead")
        for step in (7, 8, 9):
            self.assertAlmostEqual(self.step_us(folder / "case.yaml", f"--step={step}")[0], 8685, delta=1)
            self.assertAlmostEqual(
                self.step_us(folder / "case.yaml", f"--step={step}", "--communication-durations=recorded")[0],
                10010,
                delta=1,
            )


class BatchedMessages(Inputs):
    """batch_isend_irecv: records of sends and receives end before the launch of the one kernel that carries them out."""

    def called(self, kind, ts, rank, peer, elements, ranks, group="0"):
        ends = {"Src Rank": ranks.index(rank), "Dst Rank": ranks.index(peer)}
        if kind == "recv":
            ends = {"Src Rank": ranks.index(peer), "Dst Rank": ranks.index(rank)}
        arrow = "->" if kind == "send" else "<-"
        return [
            event(
                "cpu_op",
                "record_param_comms",
                ts,
                5,
                **{
                    "Collective name": kind,
                    "dtype": "Float",
                    "In msg nelems": elements,
                    "Out msg nelems": elements,
                    "Group size": len(ranks),
                    "Process Group Name": group,
                    "Process Group Ranks": str(ranks),
                },
                **ends,
            ),
            event("user_annotation", f"nccl:{kind} {ranks.index(rank)}{arrow}{ranks.index(peer)}", ts + 1, 3),
        ]

    def messages(self):
        """Returns (sender, receiver, bytes) of all sends in the timeline."""
        with h5py.File(self.folder / "r.h5") as results:
            table = results["timeline"]
            kinds = [str(kind) for kind in table["kind"].attrs["values"]]
            rows = zip(table["npu"][:], table["peer"][:], table["bytes"][:], table["kind"][:])
            return sorted((int(npu), int(peer), int(size)) for npu, peer, size, kind in rows if kinds[kind] == "send")

    def test_an_exchange(self):
        """Rank 1 computes 1 ms longer, then both exchange 64 MiB, and compute 2 ms: 2.05 + 0.67 + 2 ms at 100 GB/s, 6.71 ms for the exchange
        at 10 GB/s."""
        for rank, forward in enumerate((1000, 2000)):
            self.record(
                rank,
                [
                    event("user_annotation", "ProfilerStep#3", 0, 7130),
                    launch(1, 50),
                    event("kernel", "forward", 60, forward, stream=7, correlation=1),
                    *self.called("send", 100, rank, 1 - rank, 2**24, [0, 1]),
                    *self.called("recv", 110, rank, 1 - rank, 2**24, [0, 1]),
                    event("cuda_runtime", "cudaStreamWaitEvent", 120, 1, correlation=9),
                    launch(2, 130, "cudaLaunchKernelExC"),
                    event(
                        "kernel", "ncclDevKernel_SendRecv(x)", 60 + forward, 5000 - forward, stream=24, correlation=2
                    ),
                    event("cuda_runtime", "cudaStreamWaitEvent", 140, 1, correlation=3),
                    launch(4, 150),
                    event("kernel", "backward", 5060, 2000, stream=7, correlation=4),
                    event("cuda_runtime", "cudaDeviceSynchronize", 160, 6950, correlation=5),
                ],
            )
        for rate in (100, 10):
            found, printed = self.step_us(self.system(2, f"{rate} GB/s"))
            self.assertAlmostEqual(found, 2050 + 2**26 / rate / GB + 2000, delta=80)
            self.assertNotIn("do not tell what they do", printed)
        self.assertAlmostEqual(
            self.step_us(self.system(2, "10 GB/s"), "--communication-durations=recorded")[0], 7120, delta=20
        )

    def test_a_pipeline(self):
        """Ranks 1, 3, 5 of 6 are stages, and each sends 4 MB on and takes 2 MB back from the next one, in two batches: the middle one has two
        messages in each kernel. Other ranks compute."""
        stages = [1, 3, 5]
        for rank in range(6):
            events = [
                event("user_annotation", "ProfilerStep#3", 0, 3000),
                launch(1, 10),
                event("kernel", "gemm", 20, 100, stream=7, correlation=1),
            ]
            for batch, elements in enumerate((1_000_000, 500_000)):
                at, calls = 200 + 100 * batch, []
                if rank in stages:
                    place = stages.index(rank)
                    to, source = (place + 1, place - 1) if batch == 0 else (place - 1, place + 1)
                    calls += [("send", to)] * (0 <= to < 3) + [("recv", source)] * (0 <= source < 3)
                for k, (kind, peer) in enumerate(calls):
                    events += self.called(kind, at + 10 * k, rank, stages[peer], elements, stages, "pp")
                if calls:
                    events += [
                        launch(10 + batch, at + 50),
                        event("kernel", "ncclDevKernel_SendRecv(x)", at + 60, 40, stream=20, correlation=10 + batch),
                    ]
            self.record(rank, events, world=6)
        _, printed = self.step_us(self.system(6, "100 GB/s"), "--timeline")
        self.assertNotIn("do not tell what they do", printed)
        self.assertEqual(self.messages(), [(1, 3, 4_000_000), (3, 1, 2_000_000), (3, 5, 4_000_000), (5, 3, 2_000_000)])

    def test_a_batch_of_collectives(self):
        """Two all-gathers of 1 MB and 3 MB are called before the one launch: 4 MB of each rank."""
        for rank in range(2):

            def gather(ts, elements):
                return event(
                    "cpu_op",
                    "record_param_comms",
                    ts,
                    5,
                    **{
                        "Collective name": "_allgather_base",
                        "dtype": "Float",
                        "In msg nelems": elements,
                        "Out msg nelems": 2 * elements,
                        "Group size": 2,
                        "Process Group Name": "0",
                        "Process Group Ranks": "[0, 1]",
                    },
                )

            self.record(
                rank,
                [
                    event("user_annotation", "ProfilerStep#3", 0, 1000),
                    gather(100, 250_000),
                    gather(110, 750_000),
                    launch(1, 130),
                    event("kernel", "ncclDevKernel_AllGather_RING_LL(x)", 140, 40, stream=20, correlation=1),
                ],
            )
        self.step_us(self.system(2, "100 GB/s"))
        with h5py.File(self.folder / "r.h5") as results:
            self.assertEqual(results["collectives/bytes"][:].tolist(), [4_000_000])

    def test_the_published_recording(self):
        """An exchange of 64 MiB after a forward pass of 2 ms: the step takes 4.8 ms at 100 GB/s and 10.8 ms at 10 GB/s."""
        folder = harness.shared("inputs/reports/batched-p2p")
        self.assertAlmostEqual(self.step_us(folder / "p2p.yaml")[0], 4800, delta=50)
        self.assertAlmostEqual(
            self.step_us(folder / "p2p.yaml", "--set=system.network.dimensions.0.bandwidth=10 GB/s")[0], 10800, delta=50
        )


class OtherLibraries(Inputs):
    """Collectives that kernels of other libraries than NCCL carry out."""

    def collective(self, ts, operator, kernel, dims, types, correlation, **more):
        around = (
            [event("cpu_op", operator, ts, 20, **{"Input Dims": dims, "Input type": types}, **more)] if operator else []
        )
        return [
            *around,
            launch(correlation, ts + 2),
            event("kernel", kernel, ts + 10, 50, stream=7, correlation=correlation),
        ]

    def record_all(self, events, world=2, **info):
        for rank in range(world):
            self.record(rank, [event("user_annotation", "ProfilerStep#3", 0, 2000), *events], world, **info)

    def test_operators_tell_bytes(self):
        """All-reduces of 8 MiB of symmetric memory and of vLLM, whose operator has a number before the tensor: each takes 8.39 ms or more at
        1 GB/s, in place of the 50 us of its kernel."""
        self.record_all(
            [
                *self.collective(
                    100,
                    "symm_mem::multimem_all_reduce_",
                    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)",
                    [[4194304], [], []],
                    ["c10::BFloat16", "", ""],
                    1,
                ),
                *self.collective(
                    400,
                    "_C_custom_ar::all_reduce",
                    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(int)",
                    [[], [4194304], [4194304], [], []],
                    ["Int", "c10::BFloat16", "c10::BFloat16", "Int", "Int"],
                    2,
                ),
            ]
        )
        found, printed = self.step_us(self.system(2, "1 GB/s"))
        self.assertGreater(found, 2 * 8389)
        self.assertLess(found, 2 * 8389 + 600)
        with h5py.File(self.folder / "r.h5") as results:
            self.assertEqual(results["collectives/bytes"][:].tolist(), [8388608, 8388608])
        self.assertNotIn("as if they computed", printed)

    def test_the_group_is_told(self):
        """Of four ranks, a gather names group "tp" of ranks 0, 1 or 2, 3, and a kernel for two GPUs has the only listed group of two."""
        for rank in range(4):
            pair = [rank // 2 * 2, rank // 2 * 2 + 1]
            groups = [{"pg_name": "tp", "ranks": pair}, {"pg_name": "world", "ranks": [0, 1, 2, 3]}]
            self.record(
                rank,
                [
                    event("user_annotation", "ProfilerStep#3", 0, 2000),
                    *self.collective(
                        100,
                        "symm_mem::multimem_all_gather_out",
                        "void multimem_all_gather_kernel<8>(char*)",
                        [[1024], [], [2048]],
                        ["float", "", "float"],
                        1,
                        **{"Concrete Inputs": ["", "tp", ""]},
                    ),
                    *self.collective(
                        400,
                        "sgl_kernel::all_reduce",
                        "void sglang::cross_device_reduce_2stage<half, 2>(int)",
                        [[1024]],
                        ["c10::Half"],
                        2,
                    ),
                ],
                4,
                pg_config=groups,
            )
        _, printed = self.step_us(self.system(4, "1 GB/s"))
        self.assertNotIn("as if they computed", printed)
        with h5py.File(self.folder / "r.h5") as results:
            self.assertEqual(sorted(results["collectives/bytes"][:].tolist()), [2048, 2048, 4096, 4096])
            self.assertEqual(
                set(results["collectives/size"][:].tolist()) if "size" in results["collectives"] else {2}, {2}
            )

    def test_what_is_not_told_is_warned_of(self):
        """A kernel without an operator, in a CUDA graph, and one of DeepEP: a warning. A kernel that a compiler made of many operators, a sum
        and a gather of values: none."""
        self.record_all(self.collective(100, None, "void two_shot_all_reduce_kernel<float>(int)", [], [], 1))
        self.assertIn(
            "kernels such as 'void two_shot_all_reduce_kernel<float>(int)' communicate",
            self.call("check", self.system(2, "1 GB/s")),
        )
        self.record_all(self.collective(100, None, "void deep_ep::intranode::dispatch<8, 768>(int)", [], [], 1))
        self.assertIn("as if they computed", self.call("check", self.system(2, "1 GB/s")))
        for name in (
            "triton_poi_fused_add_all_reduce_wait_tensor_0",
            "void at::native::reduce_kernel<512, 1>(int)",
            "void vectorized_gather(int)",
        ):
            self.record_all(self.collective(100, None, name, [], [], 1))
            self.assertNotIn("warning", self.call("check", self.system(2, "1 GB/s")))

    def test_the_published_recording(self):
        """Four all-reduces of 8.39 MB on two NPUs take 33.6 ms or more at 1 GB/s."""
        folder = harness.shared("inputs/reports/symmetric-memory")
        self.assertGreater(self.step_us(folder / "case.yaml")[0], 4 * 8389)


class RankWithoutWorld(Inputs):
    """Recordings to which "distributedInfo": {"rank": 0} was added by hand."""

    def test_the_system_says_how_many(self):
        """Recordings of one rank and of two without a world size, of 1 ms: both run with a warning. Rank 3 of two NPUs is refused."""
        for world in (1, 2):
            for rank in range(world):
                content = {
                    "schemaVersion": 1,
                    "distributedInfo": {"rank": rank},
                    "traceEvents": [
                        event("user_annotation", "ProfilerStep#3", 0, 1000),
                        launch(1, 10),
                        event("kernel", "gemm", 20, 500, stream=7, correlation=1),
                    ],
                }
                self.write(f"rank.{rank}.json", content)
            shown = json.loads(self.call("show", "trace", self.folder / "rank.0.json", "--json"))
            self.assertEqual(shown["kinds"]["compute"], 1)
            found, printed = self.step_us(self.system(world, "1 GB/s"))
            self.assertAlmostEqual(found, 1000, delta=1)
            self.assertIn("distributedInfo does not say how many ranks there are", printed)
        self.write("rank.0.json", content | {"distributedInfo": {"rank": 3}})
        self.assertIn("rank 3, but the system has 2 NPUs", self.call("check", self.system(2, "1 GB/s"), code=3))

    def test_the_published_recording(self):
        """A recording of rank 0 of an unknown world, for one NPU: shown, and a step of 1.19 ms."""
        folder = harness.shared("inputs/reports/rank-without-world")
        self.assertAlmostEqual(self.step_us(folder / "case.yaml")[0], 1190, delta=1)
        self.call("show", "trace", folder / "trace.0.json")


class TextWorkloads(Inputs):
    def workload(self, pp_comm, size="1048576"):
        self.write(
            "w.txt",
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 2 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 "
            f"checkpoint_initiates: 0 pp_comm: {pp_comm}\n1\na\t-1\t1\tALLGATHER\t{size}\t1\tNONE\t0\t1\tREDUCESCATTER\t{size}\t100\n",
        )
        return self.write(
            "job.yaml",
            {
                "system": {
                    "network": {
                        "dimensions": [{"shape": "Switch", "size": 4, "bandwidth": "450 GB/s", "latency": "500 ns"}]
                    }
                },
                "workload": {"traces": {"all": str(self.folder / "w.txt")}},
            },
        )

    def test_whole_numbers_may_be_written_as_fractions(self):
        """AICB divides: 4194304.0 is 4194304, and 2796202.67 of a pp_comm, which decides nothing, is taken. A size of 0.5 is none."""
        expected, printed = self.step_us(self.workload("4194304"))
        for pp_comm, size, told in (
            ("4194304.0", "1048576", "pp_comm, 4194304 bytes"),
            ("4.194304e6", "1048576.0", "pp_comm, 4194304 bytes"),
            ("2796202.6666666665", "1048576", "pp_comm, 2796202 bytes"),
        ):
            found, printed = self.step_us(self.workload(pp_comm, size))
            self.assertEqual(found, expected)
            self.assertIn(told, printed)
        for pp_comm, size, told in (
            ("-1.0", "1", "pp_comm is '-1.0'"),
            ("4x", "1", "pp_comm is '4x'"),
            ("1", "0.5", "is '0.5'"),
        ):
            self.assertIn(told, self.call("check", self.workload(pp_comm, size), code=3))

    def test_the_published_file(self):
        """A workload of eight NPUs with pp_comm 4194304.0 takes 53.501 us, as with 4194304."""
        found, printed = self.step_us(harness.shared("inputs/reports/pp-comm-with-fraction/case.yaml"))
        self.assertAlmostEqual(found, 53.501, places=3)
        self.assertIn("pp_comm, 4194304 bytes", printed)


class Graphs(Inputs):
    """Graphs of HPCC, InfraGraph and NCCL."""

    def box(self, near):
        """Returns a device of 4 or 8 XPUs at a switch, and NICs at PCIe switches: near[n] are the XPUs beside NIC n."""
        xpus = sum(near, [])
        edges = [{"scheme": "many2many", "link": "nvlink", "ep1": {"component": "xpu"}, "ep2": {"component": "nvsw"}}]
        for n, beside in enumerate(near):
            edges += [
                {
                    "scheme": "many2many",
                    "link": "pcie",
                    "ep1": {"component": f"xpu[{x}]"},
                    "ep2": {"component": f"pciesw[{n}]"},
                }
                for x in beside
            ]
            edges += [
                {
                    "scheme": "many2many",
                    "link": "pcie",
                    "ep1": {"component": f"nic[{n}]"},
                    "ep2": {"component": f"pciesw[{n}]"},
                },
                {
                    "scheme": "many2many",
                    "link": "pcie",
                    "ep1": {"component": f"pciesw[{n}]"},
                    "ep2": {"component": "cpu"},
                },
            ]
        return {
            "name": "box",
            "links": [{"name": "nvlink"}, {"name": "pcie"}],
            "edges": edges,
            "components": [
                {"name": "cpu", "count": 1, "choice": "cpu", "cpu": {}},
                {"name": "xpu", "count": len(xpus), "choice": "xpu", "xpu": {}},
                {"name": "nvsw", "count": 1, "choice": "switch", "switch": {}},
                {"name": "pciesw", "count": len(near), "choice": "switch", "switch": {}},
                {"name": "nic", "count": len(near), "choice": "nic", "nic": {}},
            ],
        }

    def boxes(self, near, gbps):
        """Two such boxes whose NICs are at one switch; without gbps, the link says no rate."""
        nics = len(near)
        leaf = {
            "name": "leaf",
            "links": [{"name": "ic"}],
            "components": [
                {"name": "asic", "count": 1, "choice": "cpu", "cpu": {}},
                {"name": "port", "count": 2 * nics, "choice": "port", "port": {}},
            ],
            "edges": [
                {"scheme": "many2many", "link": "ic", "ep1": {"component": "asic"}, "ep2": {"component": "port"}}
            ],
        }
        rate = (
            {"physical": {"bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": gbps}}} if gbps else {}
        )
        edges = [
            {
                "scheme": "one2one",
                "link": "eth",
                "ep1": {"instance": f"host[{h}]", "component": f"nic[0:{nics}]"},
                "ep2": {"instance": "tor[0]", "component": f"port[{h * nics}:{(h + 1) * nics}]"},
            }
            for h in range(2)
        ]
        return self.write(
            "boxes.json",
            {
                "name": "boxes",
                "devices": [self.box(near), leaf],
                "links": [{"name": "eth"} | rate],
                "edges": edges,
                "instances": [
                    {"name": "host", "device": "box", "count": 2},
                    {"name": "tor", "device": "leaf", "count": 1},
                ],
            },
        )

    def links_to_tor(self, path, *more):
        """Returns the dimensions, and the rates of the links of NPUs 0, 1, ... to the switch of the fabric, in GB/s."""
        shown = json.loads(
            self.call(
                "show", "graph", path, "--json", "--links", "--latency=500ns", "--link=nvlink=100GB/s,150ns", *more
            )
        )
        rates = {}
        for link in shown["links"]:
            if "tor.0" in (link["from"], link["to"]):
                rates.setdefault(link["from"] if link["to"] == "tor.0" else link["to"], []).append(
                    round(link["bytes_per_ns"], 6)
                )
        return [(one["shape"], one["size"]) for one in shown["dimensions"]], [rates[name] for name in sorted(rates)]

    def test_fewer_nics_than_accelerators(self):
        """Two NICs of 200 Gb/s for 4 XPUs: each has half of one. Three NICs for 8 XPUs, of which 4, 2 and 2 are near one: a quarter or a half,
        also of a rate that the command gives."""
        dimensions, rates = self.links_to_tor(self.boxes([[0, 1], [2, 3]], 200))
        self.assertEqual((dimensions, rates), ([("Switch", 4), ("Switch", 2)], [[12.5]] * 8))
        for gbps, more in ((400, []), (None, ["--link=eth=50GB/s,500ns"])):
            dimensions, rates = self.links_to_tor(self.boxes([[0, 1, 2, 3], [4, 5], [6, 7]], gbps), *more)
            self.assertEqual((dimensions, rates), ([("Switch", 8), ("Switch", 2)], ([[12.5]] * 4 + [[25.0]] * 4) * 2))

    def test_the_published_boxes(self):
        """Two boxes of 4 XPUs and 2 NICs of 200 Gb/s: a Switch of 4 and one of 2, and half of a NIC for each XPU."""
        dimensions, rates = self.links_to_tor(harness.shared("inputs/reports/infragraph-fewer-nics/two-boxes.json"))
        self.assertEqual((dimensions, rates), ([("Switch", 4), ("Switch", 2)], [[12.5]] * 8))

    def test_lines_after_the_links(self):
        """HPCC reads as many links as the first line says. What follows, links or text, is left out with a warning; too few are a fault."""
        links = "".join(f"{h} 4 100Gbps 0.001ms 0\n" for h in range(4))
        for after, told in (
            ("0 5 25Gbps 0.001ms 0\n\nLine 1: nodes, switches, links\n", "lines 7 to 9 come after the 4 links"),
            ("First line: total node #, switch node #, link #\n", "lines 7 to 7 come after the 4 links"),
        ):
            path = self.write("topology.txt", f"5 1 4\n4\n{links}{after}")
            printed = self.call("show", "graph", path, "--json")
            self.assertIn(told, printed)
            self.assertEqual(printed.count("warning"), 1)
            self.assertEqual(json.loads(printed[: printed.rindex("}") + 1])["network"]["npus"], 4)
            traces = harness.write_workload(
                self.folder, [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=4096)] for _ in range(4)]
            )
            job = self.write(
                "job.yaml",
                {
                    "system": {"network": {"graph": str(path), "dimensions": [{"shape": "Switch", "size": 4}]}},
                    "workload": {"traces": traces.split("=")[1]},
                },
            )
            self.assertIn(told, self.step_us(job)[1])
        self.assertNotIn("warning", self.call("show", "graph", self.write("topology.txt", f"5 1 4\n4\n{links}\n")))
        self.assertIn(
            "found 4 links", self.call("show", "graph", self.write("topology.txt", f"5 1 5\n4\n{links}"), code=3)
        )

    def test_the_published_topology(self):
        """A topology of four hosts with five lines after its links: a warning names these lines."""
        self.assertIn(
            "lines 7 to 11",
            self.call("show", "graph", harness.shared("inputs/reports/hpcc-topology-surplus/topology.txt")),
        )


NIC = '<pci busid="{bus}" class="0x020000" link_speed="{speed} GT/s PCIe" link_width="{width}"><nic>{nets}</nic></pci>'


class Servers(Inputs):
    """Topologies of NCCL with chip-to-chip links and with GPUs that are newer than Orrery."""

    def gpu(self, sm, inner, speed="2.5", width=16, rank=0):
        return (
            f'<pci busid="000{rank}:01:00.0" class="0x030200" link_speed="{speed} GT/s PCIe" link_width="{width}">'
            f'<gpu dev="{rank}" sm="{sm}" rank="{rank}">{inner}</gpu></pci>'
        )

    def nic(self, number, speed, width, *mbps):
        nets = "".join(
            f'<net name="p{number}{k}" dev="{2 * number + k}" speed="{rate}"/>' for k, rate in enumerate(mbps)
        )
        return NIC.format(bus=f"001{number}:01:00.0", speed=speed, width=width, nets=nets)

    def server(self, *parts):
        return self.write("topology.xml", f'<system version="1"><cpu numaid="0">{"".join(parts)}</cpu></system>')

    def converted(self, path):
        """Returns the bandwidths of the dimensions in GB/s, and what was printed."""
        printed = self.call("convert", path, "--nodes=2", f"--output={self.folder / 'system.yaml'}", "--force")
        text = (self.folder / "system.yaml").read_text()
        return [
            float(line.split("bandwidth: ")[1].split(" GB/s")[0]) for line in text.splitlines() if "bandwidth: " in line
        ], printed

    def bus_bandwidth(self, path):
        """Returns GB/s of an all-reduce between two such servers, of which each has one GPU."""
        job = self.write(
            "job.yaml",
            {
                "system": {
                    "network": {
                        "graph": {
                            "generate": "rails",
                            "servers": 2,
                            "server": {"topology": str(path)},
                            "spines": 1,
                            "latency": "500 ns",
                            "links": {"uplink": {"bandwidth": "800 Gb/s"}},
                        },
                        "dimensions": [{"shape": "Switch", "size": 1}, {"shape": "Switch", "size": 2}],
                    }
                },
                "workload": {
                    "model": {"kind": "layers", "layers": [{"name": "g", "parameters": 2**25}]},
                    "parallel": {"dp": 2},
                },
            },
        )
        _, printed = self.step_us(job)
        words = printed.split("all-reduce of 2 NPUs ")[1].split()
        return float(words[0]) * {"GB/s": 1, "MB/s": 1e-3}[words[1].rstrip(",")]

    def test_chip_to_chip_links(self):
        """GB10: 345 GB/s to the CPU, so the PCIe of the NICs, 32 GT/s with 4 lanes, is the limit: 15.75 GB/s each. With 16 lanes at 16 GT/s it
        is 25 GB/s of the one port. Without the link it is the 4 GB/s of the GPU's own PCIe, and a C2C that is slower than PCIe has no effect.
        """
        c2c = '<c2c bw="43125" count="8"/>'
        two = self.server(self.nic(0, "32.0", 4, 200000), self.nic(1, "32.0", 4, 200000), self.gpu(121, c2c))
        self.assertAlmostEqual(self.converted(two)[0][0], 31.5077, places=3)
        self.assertGreater(self.bus_bandwidth(two), 15)
        self.assertLess(self.bus_bandwidth(two), 31.6)
        one = self.server(self.nic(0, "16.0", 16, 200000), self.gpu(90, '<c2c bw="45000" count="10"/>', width=1))
        self.assertEqual(self.converted(one)[0], [25])
        self.assertAlmostEqual(self.bus_bandwidth(one), 25, delta=0.5)
        bare = self.server(self.nic(0, "16.0", 16, 200000), self.gpu(90, ""))
        self.assertEqual(self.converted(bare)[0], [4])
        self.assertAlmostEqual(self.bus_bandwidth(bare), 4, delta=0.1)
        slow = self.server(self.nic(0, "16.0", 16, 200000), self.gpu(90, '<c2c bw="10" count="1"/>', "32.0"))
        self.assertEqual(self.converted(slow)[0], [25])

    def test_two_ports_share_a_card(self):
        """Two ports of 400 Gb/s on one card with PCIe 5.0 x16: 63 GB/s and not 100."""
        ports = self.server(self.nic(0, "32.0", 16, 400000, 400000), self.gpu(100, '<c2c bw="45000" count="10"/>'))
        self.assertAlmostEqual(self.converted(ports)[0][0], 63.0154, places=3)

    def test_newer_gpus(self):
        """36 NVLinks of sm 107, whose rate is not known, have that of sm 103: 1.8 TB/s, with a warning. Those of sm 103 have none; those of sm 89
        and of a newer gfx have what came before."""
        for sm, expected, is_known in (
            (107, 1800, False),
            (103, 1800, True),
            (120, 1800, False),
            (92, 900, False),
            (89, 900, False),
        ):
            links = '<nvlink target="f:f" count="36" tclass="0x068000"/>'
            path = self.server(
                self.nic(0, "64.0", 16, 800000), *(self.gpu(sm, links, "64.0", 16, rank) for rank in range(2))
            )
            rates, printed = self.converted(path)
            self.assertEqual(rates[0], expected, sm)
            self.assertEqual("the rate of a link of sm" in printed, not is_known, printed)
        xgmi = self.server(
            self.nic(0, "64.0", 16, 400000),
            *(
                self.gpu(0, f'<xgmi target="000{1 - rank}:01:00.0" count="2"/>', "64.0", 16, rank).replace(
                    'sm="0"', 'gcn="gfx1250"'
                )
                for rank in range(2)
            ),
        )
        rates, printed = self.converted(xgmi)
        self.assertAlmostEqual(rates[0], 2 * 76.8)
        self.assertIn("gfx1250", printed)

    def test_the_published_topologies(self):
        """A GB10 has 31.5 GB/s between nodes, and 15 to 31.5 GB/s as a server of a graph; a VR200 has NVLinks of 1.8 TB/s."""
        folder = harness.shared("inputs/reports")
        self.assertAlmostEqual(self.converted(folder / "nccl-topology-c2c/topology.xml")[0][0], 31.5077, places=3)
        bandwidth = self.bus_bandwidth(folder / "nccl-topology-c2c/topology.xml")
        self.assertTrue(15 < bandwidth < 31.6, bandwidth)
        rates, printed = self.converted(folder / "nccl-topology-newer-gpu/topology.xml")
        self.assertEqual(rates[0], 1800)
        self.assertIn("sm 107", printed)


def plan(gpus, switch):
    """An all-gather in which each GPU packs its chunk, stores the packets to all by the switch, and all unpack. The first block of a GPU sends
    and unpacks chunk 0, others unpack one chunk each; with `switch` "twice" another block unpacks what its own GPU sent.
    """

    def gpu(me):
        def local(kind, index):
            return [{"type": kind, "index": index, "size": 1}]

        def unpack(chunk):
            return {"name": "upkt", "src_buff": local("s", chunk), "dst_buff": local("o", chunk)}

        send = [
            {"name": "cpkt", "src_buff": local("o", me), "dst_buff": local("s", me)},
            {
                "name": "gstorepkt",
                "src_buff": local("s", me),
                "dst_buff": [{"switch_channel_id": 0, "index": me, "size": 1}],
                "channel_type": "switch",
            },
        ]
        first = [*send, unpack(0)] if switch == "one" else send
        rest = range(1, gpus) if switch == "one" else range(gpus)
        blocks = [
            {
                "id": 0,
                "ops": first,
                "channels": [{"channel_type": "switch", "channel_ids": [0]}],
                "remote_buffer_refs": [],
            }
        ]
        blocks += [
            {"id": k + 1, "ops": [unpack(chunk)], "channels": [], "remote_buffer_refs": []}
            for k, chunk in enumerate(rest)
        ]
        return {
            "id": me,
            "input_chunks": 1,
            "output_chunks": gpus,
            "scratch_chunks": gpus,
            "threadblocks": blocks,
            "channels": [
                {
                    "channel_type": "switch",
                    "buffer_type": "s",
                    "rank_groups": [{"size": gpus, "ranks": list(range(gpus))}],
                }
            ],
            "remote_buffers": [],
            "semaphores": [],
        }

    return {
        "name": "switch_packets",
        "collective": "allgather",
        "protocol": "LL",
        "inplace": True,
        "reuse_resources": False,
        "gpus": [gpu(me) for me in range(gpus)],
        "num_threads_per_block": 256,
        "use_double_scratch_buffer": True,
        "buffer_alignment": 16,
        "min_message_size": 1024,
        "max_message_size": 1048576,
    }


class Plans(Inputs):
    def test_packets_by_the_switch(self):
        """Plans for 2 and 4 GPUs are complete and free of races, and run on GPUs and as messages. Without the store they wait for ever."""
        for gpus, switch in ((2, "one"), (4, "apart")):
            path = self.write("plan.json", plan(gpus, switch))
            self.call("show", "plan", path)
            nodes = [[Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=65536)] for _ in range(gpus)]
            traces = harness.write_workload(self.folder, nodes).split("=")[1]
            for more in ({"gpu": {"profile": "h100"}}, {}):
                job = self.write(
                    "job.yaml",
                    {
                        "system": {
                            "network": {
                                "dimensions": [
                                    {
                                        "shape": "Switch",
                                        "size": gpus,
                                        "bandwidth": "400 GB/s",
                                        "latency": "500 ns",
                                        "in-switch-operations": 4,
                                    }
                                ]
                            },
                            "collectives": {"custom": {"all-gather": [str(path)]}},
                        }
                        | more,
                        "workload": {"traces": traces},
                    },
                )
                self.assertGreater(self.step_us(job)[0], 65536 * (gpus - 1) / 400 / GB)
        without = plan(2, "one")
        for gpu in without["gpus"]:
            del gpu["threadblocks"][0]["ops"][1]
        self.assertIn("waits for ever for packets", self.call("show", "plan", self.write("plan.json", without), code=3))

    def test_the_published_plan(self):
        """A plan for two GPUs that store packets by the switch is shown without a fault."""
        self.call("show", "plan", harness.shared("inputs/reports/mscclpp-switch-packets/plan.json"))


def nccl_tests(ranks, hosts, rows, tag=""):
    """What all_reduce_perf prints, with a tag before each line."""
    lines = ["# nccl-tests version 2.17.6", "#", "# Using devices"]
    lines += [
        f"#  Rank {r:2} Group  0 Pid  70{r:02} on    node{r * hosts // ranks} device {r % 8:2} [0018:00:00] NVIDIA H100 80GB HBM3"
        for r in range(ranks)
    ]
    lines += [
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    ]
    lines += [
        f"    {size}       {size // 4}     float     sum      -1    {us}   32.00   60.00      0    {us}   32.00   60.00      0"
        for size, us in rows
    ]
    return "".join(tag.format(n=n) + line + "\n" for n, line in enumerate([*lines, "# Avg bus bandwidth    : 85.0"]))


class Measurements(Inputs):
    ROWS = ((16777216, 524.3), (134217728, 2649.0), (1073741824, 20132.7))

    def test_tags_before_lines(self):
        """The tags of mpirun, srun, pdsh, of a time and of none: the calibration and a run say the same."""
        printed, times = set(), set()
        for tag in ("", "[1,0]<stdout>:", "[1,0]<node0>:", " 0: ", "0:", "node0: ", "[node0:0] ", "worker-0 | "):
            path = self.write("measured.txt", nccl_tests(16, 2, self.ROWS, tag))
            printed.add(self.call("calibrate", "collectives", path, "--library", "nccl-h100"))
            job = self.write(
                "job.yaml",
                {
                    "system": {
                        "network": {
                            "dimensions": [
                                {"shape": "Switch", "size": 8, "bandwidth": "400 GB/s", "latency": "500 ns"},
                                {"shape": "Switch", "size": 2, "bandwidth": "50 GB/s", "latency": "1 us"},
                            ]
                        },
                        "collectives": {"library": {"name": "nccl-h100", "all-reduce": str(path)}},
                    }
                },
            )
            times.add(self.call("show", "collective", job, "--kind=all-reduce", "--bytes=128 MiB"))
        self.assertEqual((len(printed), len(times)), (1, 1))
        self.assertIn("all-reduce among 16 ranks on 2 nodes, 3 sizes", printed.pop())
        self.assertIn("2.649 ms", times.pop())

    def test_the_published_outputs(self):
        """An all-reduce of 16 ranks on two nodes, with the tags of mpirun and of srun: three sizes are found."""
        folder = harness.shared("inputs/reports/nccl-tests-tagged")
        for name in ("tagged.txt", "labelled.txt"):
            self.assertIn(
                "all-reduce among 16 ranks on 2 nodes, 3 sizes",
                self.call("calibrate", "collectives", folder / name, "--library", "nccl-h100"),
            )


class NestedMemories(Inputs):
    """LLMServingSim's ASTRA-sim nests memories of several kinds in one file."""

    def finish(self, memory):
        system = harness.System(counts=(2,), memory=memory)
        flags = system.write(self.folder)
        workload = harness.write_workload(self.folder, [[Node(1, chakra.MEM_LOAD, tensor_size=1_000_000)]] * 2)
        outcome = harness.orrery("run", workload, *flags, f"--output={self.folder / 'r.h5'}", "--force")
        self.assertEqual(outcome.code, 0, outcome.err)
        return harness.finish_times(self.folder / "r.h5"), outcome.err

    def test_the_remote_memory_is_taken(self):
        """Two NPUs that load 1 MB: a nested remote memory gives the times of a plain one, and other memories are named in a warning."""
        own = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 512}
        expected, _ = self.finish(own)
        found, printed = self.finish({"remote_mem": own})
        self.assertEqual(found, expected)
        self.assertNotIn("without effect", printed)
        found, printed = self.finish(
            {"local_mem": {"memory-type": "LOCAL", "local-mem-bw": 1}, "remote_mem": own, "cxl_mem": {"num": 2}}
        )
        self.assertEqual(found, expected)
        self.assertIn(
            "only remote_mem is read; without effect are the other memories and keys beside it: local_mem, cxl_mem",
            printed,
        )

    def test_faults_name_the_nested_key(self):
        """Two NPUs and a nested memory without a latency: the message has the whole path of the missing key."""
        system = harness.System(
            counts=(2,), memory={"remote_mem": {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-bw": 512}}
        )
        workload = harness.write_workload(self.folder, [[Node(1, chakra.MEM_LOAD, tensor_size=1000)]] * 2)
        outcome = harness.orrery("check", workload, *system.write(self.folder))
        self.assertEqual(outcome.code, 3)
        self.assertIn("remote_mem.remote-mem-latency", outcome.err)

    def test_the_published_memory(self):
        """A run of two NPUs with the nested memory of LLMServingSim ends in order."""
        folder = harness.shared("inputs/reports/llmservingsim-memory")
        outcome = harness.orrery(
            "run",
            f"--workload-configuration={folder / 'mem'}",
            f"--system-configuration={folder / 'system.json'}",
            f"--network-configuration={folder / 'network.yml'}",
            f"--remote-memory-configuration={folder / 'memory.json'}",
            f"--output={self.folder / 'r.h5'}",
        )
        self.assertEqual(outcome.code, 0, outcome.err)


class OtherFiles(Inputs):
    """Files of other kinds are named, wherever they are given."""

    XML = '<system version="1"><cpu numaid="0"><pci busid="0"/></cpu></system>\n'
    KINDS = (
        ("model.toml", '# torchtitan\n[model]\nname = "llama3"\n[training]\nsteps = 10\n', "TOML"),
        ("run.ini", "[section-1]\nkey = 3\n", "TOML or INI"),
        ("topology.xml", XML, "a topology of NCCL or RCCL: 'orrery convert FILE"),
        (
            "topology4.txt",
            "5 1 0 4\n4\n0 4 100Gbps 1us 0\n",
            "first line has 4 numbers: that of HPCC and ASTRA-sim has 3",
        ),
        ("topology7.txt", "5 1 0 4 1 2 3\n4\n0 4 100Gbps 1us 0\n", "first line has 7 numbers"),
        ("a.topo", "Nodes 8\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\n", "a topology of htsim"),
        ("a.cm", "Nodes 8\nConnections 2\n0->1 id 1 start 0 size 1000\n", "a matrix of connections of htsim"),
    )

    def test_kinds_are_named(self):
        """Each file is refused by three commands, with its name and what it is; also as the graph of a configuration."""
        for name, text, told in self.KINDS:
            path = self.write(name, text)
            for command in (("show", "graph", path), ("show", "trace", path), ("check", path)):
                printed = self.call(*command, code=3)
                self.assertIn(told, printed, command)
                self.assertIn(name, printed)
        graph = self.write(
            "job.yaml",
            {
                "system": {
                    "network": {
                        "graph": str(self.folder / "topology4.txt"),
                        "dimensions": [{"shape": "Switch", "size": 4}],
                    }
                }
            },
        )
        self.assertIn("first line has 4 numbers", self.call("check", graph, code=3))

    def test_binary_goal(self):
        """A file that begins as txt2bin writes them is named as binary GOAL, with what to give in its place."""
        path = self.folder / "schedule.bin"
        path.write_bytes(b"\x7f\x10\x00\x00\x02\x00\x00\x00" + bytes(64))
        self.assertIn(
            "a GOAL schedule in the binary form of txt2bin: give the text", self.call("show", "trace", path, code=3)
        )

    def test_json_is_not_toml(self):
        """Lists of JSON, on one line or on several, are not called TOML."""
        for text in ("[1, 2]\n", '[\n"a"\n]\n', "[]\n"):
            self.assertNotIn("TOML", self.call("show", "trace", self.write("list.json", text), code=3))

    def test_the_published_files(self):
        """A configuration of torchtitan, a topology of NCCL and one of ns-3 with four numbers are named."""
        folder = harness.shared("inputs/reports/file-kinds-not-named")
        self.assertIn("TOML", self.call("show", "trace", folder / "model.toml", code=3))
        self.assertIn("orrery convert", self.call("show", "graph", folder / "topology.xml", code=3))
        self.assertIn("4 numbers", self.call("show", "graph", folder / "topology4.txt", code=3))


if __name__ == "__main__":
    harness.main()
