#!/usr/bin/python3
"""Recordings of PyTorch's profiler: the replay gives the recorded step of each rank, also where ranks begin at different times; one step is
chosen; ranks without a recording are refused or copied.

System: 2 or 4 NPUs behind a switch, with small recordings that are written here: a kernel of 3 ms, an all-reduce of 5 ms that waits for the
last rank, a synchronisation, 1 ms of host work."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402
import kineto  # noqa: E402


class Recordings(harness.Folder):
    def configuration(self, num_npus, bandwidth="13.5 GB/s", **workload):
        """Writes a configuration and returns its name."""
        path = self.folder / "job.yaml"
        path.write_text(
            json.dumps(
                {
                    "system": {
                        "network": {
                            "dimensions": [
                                {"shape": "Switch", "size": num_npus, "bandwidth": bandwidth, "latency": "5 us"}
                            ]
                        },
                        "compute": {"roofline": False},
                    },
                    "workload": {"traces": str(self.folder / "step.{npu}.json")} | workload,
                }
            )
        )
        return path

    def run_job(self, *options, **job):
        """Runs a job and returns (finish times in us, compute times, times in communication)."""
        output = self.folder / "r.h5"
        outcome = harness.orrery("run", self.configuration(**job), f"--output={output}", "--force", "--quiet", *options)
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(output) as results:
            return tuple(
                [round(int(value) / 1e6, 2) for value in results[f"npus/{name}"]]
                for name in ("finish_time", "compute_time", "exposed_communication_time")
            )

    def record(self, late=(0, 1000), begin=(0, 0), ahead=(0, 0)):
        """Records ranks that begin at these times and launch so much later, with clocks that are ahead by these times, in us."""
        for rank, (of_rank, start, clock) in enumerate(zip(late, begin, ahead)):
            events = kineto.step(start + clock, of_rank, wait=max(begin) - start)
            kineto.write(self.folder / f"step.{rank}.json", events, rank, len(late))

    def test_the_replay_gives_the_recorded_step(self):
        """Two ranks, of which one launches 1 ms late: 10.1 ms, and each GPU computes 3 ms; what remains of the all-reduce is exposed."""
        self.record()
        finish, compute, exposed = self.run_job("--communication-durations=recorded", num_npus=2)
        self.assertEqual((finish, compute, exposed), ([10100.0, 10100.0], [3000.0, 3000.0], [6000.0, 5000.0]))

    def test_ranks_begin_when_they_did(self):
        """Rank 1 begins 2 ms after rank 0, which waits for it: it ends 2 ms later by the clock of rank 0."""
        self.record(begin=(0, 2000), late=(0, 0))
        finish, _, exposed = self.run_job("--communication-durations=recorded", num_npus=2)
        self.assertEqual(finish, [12100.0, 12100.0])
        self.assertEqual(exposed, [8000.0, 6000.0])

    def test_clocks_that_differ_are_set(self):
        """Rank 1's clock is 2 ms or an hour ahead, which the end of the all-reduce shows: the replay is that of equal clocks, with a
        warning; by 50 us, which is less than a hundredth of the step, without one."""
        for ahead, told in ((50, None), (2000, "2 ms"), (-2000, "2 ms"), (3_600_000_000, "3600 s")):
            self.record(begin=(9000, 9700), late=(0, 0), ahead=(0, ahead))
            outcome = harness.orrery("check", self.configuration(2))
            self.assertEqual(outcome.code, 0, outcome.err)
            expected = f"the clocks of the recordings differ by up to {told}: they are set by the ends"
            (self.assertIn if told else self.assertNotIn)(expected if told else "clocks", outcome.err + outcome.out)
            finish, _, exposed = self.run_job("--communication-durations=recorded", num_npus=2)
            self.assertEqual((finish, exposed), ([10800.0, 10800.0], [6700.0, 6000.0]), ahead)

    def test_messages_set_clocks(self):
        """Rank 3 is tied to the others by a message alone, and its clock is 0.4 ms ahead."""
        finish = []
        for ahead in (0, 400):
            self.record_message([1, 3], 2, ahead)
            finish.append(self.run_job("--communication-durations=recorded", num_npus=4)[0])
        self.assertEqual(finish[0], finish[1])

    def test_ranks_that_share_nothing_begin_together(self):
        """Two ranks have all-reduces of their own, and begin an hour apart: both begin together, with a warning."""
        for rank in range(2):
            events = kineto.step(rank * 3_600_000_000, 0, ranks=[rank], group=f"own {rank}", size=1)
            kineto.write(self.folder / f"step.{rank}.json", events, rank, 2)
        outcome = harness.orrery("check", self.configuration(2))
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn(
            "share no collectives that could set their clocks: all ranks begin together", outcome.err + outcome.out
        )
        self.assertEqual(self.run_job("--communication-durations=recorded", num_npus=2)[0], [10100.0, 10100.0])

    def test_lost_launches_change_nothing(self):
        """Two ranks whose launches are lost: all, those of the all-reduce, whose bytes the operator tells, or those of the kernel
        before it. The step is the recorded one, and the all-reduce has its bytes and waits for the kernel."""
        lost = {"none": (), "all-reduce": (3,), "kernel": (1,), "both": (1, 3)}
        for name, correlations in lost.items():
            for rank, late in enumerate((0, 1000)):
                events = kineto.step(100, late)
                for event in events:
                    if event["name"].startswith("nccl"):
                        event["args"] = {key: event["args"][key] for key in ("stream", "correlation")}
                events.append(
                    kineto.event(
                        "cpu_op",
                        "record_param_comms",
                        100 + late + 125,
                        20,
                        **{
                            "Concrete Inputs": ["", "1", "0", "0", "", "[]", "[]", "2"],
                            "Input type": ["float"],
                            "Input Dims": [[2**24]],
                        },
                    )
                )
                events = [
                    event
                    for event in events
                    if event["cat"] != "cuda_runtime" or event["args"]["correlation"] - 100 not in correlations
                ]
                kineto.write(self.folder / f"step.{rank}.json", events, rank, 2)
            finish, compute, exposed = self.run_job("--communication-durations=recorded", num_npus=2)
            self.assertEqual((finish, compute, exposed), ([10100.0, 10100.0], [3000.0, 3000.0], [6000.0, 5000.0]), name)
            with h5py.File(self.folder / "r.h5") as results:
                self.assertEqual(set(results["collectives/bytes"][:].tolist()), {2**26}, name)

    def test_a_cuda_graph_keeps_its_order(self):
        """One launch starts two kernels on stream 7 and one on stream 9 that began when the first had ended, as did the second when the
        one of stream 9 had: 1 + 2 + 1 ms one after the other."""
        for rank in range(2):
            kernels = [
                kineto.event("kernel", f"k{stream}", ts, dur, stream=stream, correlation=1)
                for stream, ts, dur in ((7, 200, 1000), (9, 1210, 2000), (7, 3220, 1000))
            ]
            kineto.write(
                self.folder / f"step.{rank}.json",
                [
                    kineto.event("user_annotation", "ProfilerStep#1", 0, 5000),
                    kineto.event("cuda_runtime", "cudaGraphLaunch", 100, 10, correlation=1),
                    *kernels,
                    kineto.event("cuda_runtime", "cudaDeviceSynchronize", 120, 4110, correlation=2),
                ],
                rank,
                2,
            )
        finish, compute, _ = self.run_job(num_npus=2)
        self.assertEqual((finish, compute), ([4880.0, 4880.0], [4000.0, 4000.0]))

    def test_the_network_answers_what_if(self):
        """Without recorded durations, twice the bandwidth takes half of the all-reduce of 64 MiB: 5 ms become 2.5 ms."""
        self.record()
        slow, fast = (self.run_job(num_npus=2, bandwidth=bandwidth)[0][0] for bandwidth in ("13.5 GB/s", "27 GB/s"))
        self.assertAlmostEqual(slow - fast, 2**26 / 13.5e3 / 2, delta=1)

    def test_a_step_is_chosen(self):
        """Steps 7 and 8, of which the second computes as long: each takes 10.1 ms, both together twice as long; step 9 is not there."""
        for rank in range(2):
            kineto.write(
                self.folder / f"step.{rank}.json", kineto.step(0, 0) + kineto.step(10100, 0, number=8), rank, 2
            )
        recorded = "--communication-durations=recorded"
        for options in ([], ["--step=7"], ["--step=8"]):
            self.assertAlmostEqual(self.run_job(recorded, *options, num_npus=2)[0][0], 10100, delta=1)
        self.assertAlmostEqual(self.run_job(recorded, "--step=all", num_npus=2)[0][0], 20200, delta=1)
        outcome = harness.orrery("run", self.configuration(2), "--step=9")
        self.assertEqual(outcome.code, 3)
        self.assertIn("it holds no ProfilerStep#9; expected one of the steps 7, 8", outcome.err)

    def test_a_step_that_was_cut_is_not_taken(self):
        """Of step 8 nothing is there after 2 ms: step 7 is taken, with a warning. If that is so for one rank alone, the ranks would execute
        different steps, which is refused."""
        for cut in ((0, 1), (1,)):
            for rank in range(2):
                events = kineto.step(0, 0) + kineto.step(10100, 0, number=8)
                if rank in cut:
                    events = [
                        event
                        for event in events
                        if event["ts"] + event["dur"] < 12100 or event["cat"] == "user_annotation"
                    ]
                kineto.write(self.folder / f"step.{rank}.json", events, rank, 2)
            outcome = harness.orrery("check", self.configuration(2))
            if len(cut) == 2:
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assertIn(
                    "the recording ends within its last step: ProfilerStep#7 is taken", outcome.err + outcome.out
                )
                self.assertEqual(self.run_job("--communication-durations=recorded", num_npus=2)[0], [10100.0, 10100.0])
            else:
                self.assertEqual(outcome.code, 3)
                self.assertIn(
                    "the recording's last step is ProfilerStep#7, but that of NPU 0 is ProfilerStep#8", outcome.err
                )
                self.assertEqual(harness.orrery("check", self.configuration(2), "--step=7").code, 0)

    def test_missing_ranks_are_refused_or_copied(self):
        """Recordings of ranks 0 and 1 of 4, whose all-reduce is among the two: refused, but with --replicate=2 NPUs 2 and 3 are copies with
        a group of their own."""
        for rank in range(2):
            kineto.write(
                self.folder / f"step.{rank}.json", kineto.step(0, 500 * rank, ranks=[0, 1], group="tp"), rank, 4
            )
        outcome = harness.orrery("run", self.configuration(2))
        self.assertEqual(outcome.code, 3)
        self.assertIn("this is the Kineto trace of rank 0 of 4, but the system has 2 NPUs", outcome.err)
        self.assertIn("workload.replicate makes ranks without a trace from those that have one", outcome.err)
        outcome = harness.orrery("run", self.configuration(4))
        self.assertIn("there are traces for 2 NPUs, but the system has 4", outcome.err)
        self.assertIn("--replicate 2 (workload.replicate) makes the other ranks from those that are there", outcome.err)
        outcome = harness.orrery("check", self.configuration(4), "--replicate=1")
        self.assertIn(
            "workload.replicate makes all ranks from the first 1: the recordings of 1 other rank are not used",
            outcome.err,
        )
        finish, _, exposed = self.run_job("--communication-durations=recorded", "--replicate=2", num_npus=4)
        self.assertEqual(finish[:2], finish[2:])
        self.assertEqual(exposed[:2], exposed[2:])
        with h5py.File(self.folder / "r.h5") as results:
            self.assertEqual(results["groups/members"][:].tolist(), [0, 1, 2, 3])

    def record_message(self, members, size, ahead=0):
        """Writes recordings of ranks 0 to 3: rank 1 sends 1.35 MB to rank 3 by old kernels, whose operators alone name the peer.
        The clock of rank 3 is `ahead` us ahead."""
        group = {"Process Group Name": "pp", "Process Group Ranks": str(members)} if members else {}
        names = {members[0] if members else 1: "nccl:send 0->1", members[1] if members else 3: "nccl:recv 1<-0"}
        for rank in range(4):
            events = [
                kineto.event("user_annotation", "ProfilerStep#7", 0, 1000),
                kineto.event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1),
            ]
            if rank in names:
                tensors = {"Input Dims": [[1350000]], "Input type": ["signed char"], "Group size": size} | group
                events += [
                    kineto.event("user_annotation", names[rank], 5, 20, **tensors),
                    kineto.event(
                        "kernel", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 20, 200, stream=7, correlation=1
                    ),
                ]
            else:
                events.append(kineto.event("kernel", "gemm", 20, 1, stream=7, correlation=1))
            for event in events:
                event["ts"] += ahead if rank == 3 else 0
            kineto.write(self.folder / f"step.{rank}.json", events, rank, 4)

    def test_operators_name_the_peer(self):
        """The group is ranks 1 and 3, so "nccl:send 0->1" is from rank 1 to rank 3: the timeline names them as
        each other's peer."""
        self.record_message([1, 3], 2)
        outcome = harness.orrery("run", self.configuration(4), f"--output={self.folder / 'r.h5'}", "--timeline")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertNotIn("do not tell what they do", outcome.err)
        with h5py.File(self.folder / "r.h5") as results:
            timeline = results["timeline"]
            messages = [
                (int(n), int(p))
                for n, p, b in zip(timeline["npu"][:], timeline["peer"][:], timeline["bytes"][:])
                if b == 1350000
            ]
        self.assertEqual(sorted(messages), [(1, 3), (3, 1)])

    def test_a_peer_in_an_unknown_group_is_none(self):
        """The operators name a peer in a group of two whose members nobody lists: the kernels remain kernels, with a warning."""
        self.record_message(None, 2)
        outcome = harness.orrery("check", self.configuration(4))
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("communication kernels do not tell what they do", outcome.err + outcome.out)

    def record_without_sizes(self, rank):
        """Writes the recording of a rank of 4 whose all-reduce has a record function id, but neither size nor group."""
        events = [
            kineto.event("user_annotation", "ProfilerStep#7", 0, 1000),
            kineto.event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1),
            kineto.event("user_annotation", "nccl:all_reduce", 8, 10, **{"Record function id": 93}),
            kineto.event("cpu_op", "record_param_comms", 7, 12, **{"Record function id": 92}),
            kineto.event("kernel", "ncclKernel_AllReduce_RING_LL_Sum_half(x)", 20, 200, stream=7, correlation=1),
        ]
        kineto.write(self.folder / f"step.{rank}.json", events, rank, 4)

    def execution_trace(self, rank, is_new):
        """Writes the execution trace beside it: 67,108,864 bytes of half precision in the groups of ranks 0 and 2, and 1 and 3."""
        tensor, group = [131, 132, 0, 33554432, 2, "cuda:0"], json.dumps(
            [{"pg_name": str(i), "ranks": [i, i + 2], "group_size": 2} for i in range(2)]
        )
        inputs = {
            "## process_group:init ##": (2, [group]),
            "nccl:all_reduce": (93, [tensor]),
            "record_param_comms": (92, [[tensor], 337, [str(rank % 2), "dp"], 0, "allreduce", [], [], 2]),
        }
        nodes = [{"name": "[pytorch|profiler|execution_trace|thread]", "id": 2, "rf_id": 0}]
        for at, (name, (function, values)) in enumerate(inputs.items()):
            form = (
                {"inputs": {"values": values}, "attrs": [{"name": "rf_id", "type": "uint64", "value": function}]}
                if is_new
                else {"inputs": values, "rf_id": function}
            )
            nodes.append({"name": name, "id": 3 + at} | form)
        path = self.folder / f"step.{rank}.et.json"
        path.write_text(json.dumps({"schema": "1.1.0-chakra.0.0.4" if is_new else "1.0.1", "pid": 1, "nodes": nodes}))

    def test_an_execution_trace_beside_the_recording_completes_it(self):
        """Four ranks, whose all-reduce lacks size and group. Alone it has 1 byte and is of all ranks; with execution traces of both schemas
        it has their bytes and is of the pairs 0, 2 and 1, 3."""
        for rank in range(4):
            self.record_without_sizes(rank)
        self.assertIn("do not tell their bytes: 1 is assumed", harness.orrery("check", self.configuration(4)).err)
        for is_new in (False, True):
            for rank in range(4):
                self.execution_trace(rank, is_new)
            outcome = harness.orrery("run", self.configuration(4), f"--output={self.folder / 'r.h5'}", "--force")
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertNotIn("1 is assumed", outcome.err)
            with h5py.File(self.folder / "r.h5") as results:
                self.assertEqual(set(results["collectives/bytes"][:].tolist()), {67108864})
                self.assertEqual(sorted(results["groups/members"][:].tolist()), [0, 1, 2, 3])

    def test_execution_traces_are_named(self):
        """The execution traces lie elsewhere, and a key or a flag names them; a rank without one is an error that names the file."""
        for rank in range(4):
            self.record_without_sizes(rank)
            self.execution_trace(rank, True)
            (self.folder / f"step.{rank}.et.json").rename(self.folder / f"et_{rank}.json")
        names = str(self.folder / "et_{npu}.json")
        for outcome in (
            harness.orrery(
                "run", self.configuration(4), "--execution-traces", names, f"--output={self.folder / 'r.h5'}"
            ),
            harness.orrery(
                "run",
                self.configuration(4, **{"execution-traces": names}),
                f"--output={self.folder / 'r.h5'}",
                "--force",
            ),
        ):
            self.assertEqual(outcome.code, 0, outcome.err)
            with h5py.File(self.folder / "r.h5") as results:
                self.assertEqual(set(results["collectives/bytes"][:].tolist()), {67108864})
        (self.folder / "et_2.json").unlink()
        outcome = harness.orrery("check", self.configuration(4), "--execution-traces", names)
        self.assertEqual(outcome.code, 3)
        self.assertIn("et_2.json", outcome.err)

    def test_a_file_beside_the_recording_must_be_an_execution_trace(self):
        """step.0.et.json is a recording: it is refused by its name."""
        for rank in range(4):
            self.record_without_sizes(rank)
        (self.folder / "step.0.et.json").write_bytes((self.folder / "step.0.json").read_bytes())
        outcome = harness.orrery("check", self.configuration(4))
        self.assertEqual(outcome.code, 3)
        self.assertIn("step.0.et.json", outcome.err)
        self.assertIn(
            "this is a file of the format kineto; expected the PyTorch execution trace of the recording", outcome.err
        )

    def test_ranks_of_the_job_do_not_matter(self):
        """The replay of ranks that begin apart gives the same on 1 and 2 MPI ranks."""
        self.record(begin=(0, 700))
        path = self.configuration(2)
        outputs = []
        for ranks in (1, 2):
            outputs.append(self.folder / f"{ranks}.h5")
            outcome = harness.orrery(
                "run", path, "--communication-durations=recorded", f"--output={outputs[-1]}", ranks=ranks
            )
            self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(outputs[0]) as one, h5py.File(outputs[1]) as two:
            for name in one["npus"]:
                self.assertEqual(one[f"npus/{name}"][:].tolist(), two[f"npus/{name}"][:].tolist(), name)


if __name__ == "__main__":
    harness.main()
