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
        path.write_text(json.dumps({
            "system": {"network": {"dimensions": [{"shape": "Switch", "size": num_npus, "bandwidth": bandwidth, "latency": "5 us"}]},
                       "compute": {"roofline": False}},
            "workload": {"traces": str(self.folder / "step.{npu}.json")} | workload}))
        return path

    def run_job(self, *options, **job):
        """Runs a job and returns (finish times in us, compute times, times in communication)."""
        output = self.folder / "r.h5"
        outcome = harness.orrery("run", self.configuration(**job), f"--output={output}", "--force", "--quiet", *options)
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(output) as results:
            return tuple([round(int(value) / 1e6, 2) for value in results[f"npus/{name}"]] for name in
                         ("finish_time", "compute_time", "exposed_communication_time"))

    def record(self, late=(0, 1000), begin=(0, 0), **group):
        for rank, (of_rank, start) in enumerate(zip(late, begin)):
            kineto.write(self.folder / f"step.{rank}.json", kineto.step(start, of_rank, **group), rank, len(late))

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

    def test_clocks_that_differ_are_told(self):
        """Rank 1's clock is an hour ahead: both begin together, with a warning."""
        self.record(begin=(0, 3_600_000_000), late=(0, 0))
        outcome = harness.orrery("check", self.configuration(2))
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("their clocks differ, and all ranks begin together", outcome.err + outcome.out)
        self.assertEqual(self.run_job("--communication-durations=recorded", num_npus=2)[0], [10100.0, 10100.0])

    def test_the_network_answers_what_if(self):
        """Without recorded durations, twice the bandwidth takes half of the all-reduce of 64 MiB: 5 ms become 2.5 ms."""
        self.record()
        slow, fast = (self.run_job(num_npus=2, bandwidth=bandwidth)[0][0] for bandwidth in ("13.5 GB/s", "27 GB/s"))
        self.assertAlmostEqual(slow - fast, 2**26 / 13.5e3 / 2, delta=1)

    def test_a_step_is_chosen(self):
        """Steps 7 and 8, of which the second computes as long: each takes 10.1 ms, both together twice as long; step 9 is not there."""
        for rank in range(2):
            kineto.write(self.folder / f"step.{rank}.json", kineto.step(0, 0) + kineto.step(10100, 0, number=8), rank, 2)
        recorded = "--communication-durations=recorded"
        for options in ([], ["--step=7"], ["--step=8"]):
            self.assertAlmostEqual(self.run_job(recorded, *options, num_npus=2)[0][0], 10100, delta=1)
        self.assertAlmostEqual(self.run_job(recorded, "--step=all", num_npus=2)[0][0], 20200, delta=1)
        outcome = harness.orrery("run", self.configuration(2), "--step=9")
        self.assertEqual(outcome.code, 3)
        self.assertIn("it holds no ProfilerStep#9; expected one of the steps 7, 8", outcome.err)

    def test_missing_ranks_are_refused_or_copied(self):
        """Recordings of ranks 0 and 1 of 4, whose all-reduce is among the two: refused, but with --replicate=2 NPUs 2 and 3 are copies with
        a group of their own."""
        for rank in range(2):
            kineto.write(self.folder / f"step.{rank}.json", kineto.step(0, 500 * rank, ranks=[0, 1], group="tp"), rank, 4)
        outcome = harness.orrery("run", self.configuration(2))
        self.assertEqual(outcome.code, 3)
        self.assertIn("this is the Kineto trace of rank 0 of 4, but the system has 2 NPUs", outcome.err)
        self.assertIn("workload.replicate makes ranks without a trace from those that have one", outcome.err)
        outcome = harness.orrery("run", self.configuration(4))
        self.assertIn("there are traces for 2 NPUs, but the system has 4", outcome.err)
        finish, _, exposed = self.run_job("--communication-durations=recorded", "--replicate=2", num_npus=4)
        self.assertEqual(finish[:2], finish[2:])
        self.assertEqual(exposed[:2], exposed[2:])
        with h5py.File(self.folder / "r.h5") as results:
            self.assertEqual(results["groups/members"][:].tolist(), [0, 1, 2, 3])

    def test_ranks_of_the_job_do_not_matter(self):
        """The replay of ranks that begin apart gives the same on 1 and 2 MPI ranks."""
        self.record(begin=(0, 700))
        path = self.configuration(2)
        outputs = []
        for ranks in (1, 2):
            outputs.append(self.folder / f"{ranks}.h5")
            outcome = harness.orrery("run", path, "--communication-durations=recorded", f"--output={outputs[-1]}", ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(outputs[0]) as one, h5py.File(outputs[1]) as two:
            for name in one["npus"]:
                self.assertEqual(one[f"npus/{name}"][:].tolist(), two[f"npus/{name}"][:].tolist(), name)


if __name__ == "__main__":
    harness.main()
