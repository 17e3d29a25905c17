#!/usr/bin/python3
"""Runs that end early, and runs that repeat their traces: stop requests, killed ranks, iterations and compute noise.

The system of most tests: 8 NPUs on a ring, each of which computes, sends to the next NPU, receives from the one before, computes
again and joins an all-reduce."""
import os
import pathlib
import re
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402


def step(npu, npus=8):
    """Returns the trace of an NPU: compute, hand on around the ring, compute, and an all-reduce of all NPUs."""
    return [
        Node(1, chakra.COMP, "forward", duration=10 + npu),
        Node(2, chakra.SEND, "hand on", [1], comm_dst=(npu + 1) % npus, comm_tag=1, comm_size=4096),
        Node(3, chakra.RECV, "take over", [], comm_src=(npu - 1) % npus, comm_tag=1, comm_size=4096),
        Node(4, chakra.COMP, "backward", [1, 3], duration=20),
        Node(5, chakra.COLL, "gradients", [4], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
    ]


def catches_sigterm(pid):
    """Returns whether the process is the program and catches SIGTERM. What starts it has processes that are gone the next moment."""
    process = pathlib.Path(f"/proc/{pid}")
    try:
        is_program = process.joinpath("exe").resolve() == pathlib.Path(harness.BINARY).resolve()
        caught = re.search(r"SigCgt:\s*(\w+)", process.joinpath("status").read_text())[1]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return is_program and bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def resident_bytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Stop(harness.Folder):
    def setUp(self):
        super().setUp()
        system = harness.System(counts=(8,))
        self.inputs = [harness.write_workload(self.folder, [step(npu) for npu in range(8)])] + system.write(self.folder)
        self.output = self.folder / "results.h5"

    def run_orrery(self, *more, ranks=0):
        return harness.orrery("run", *self.inputs, f"--output={self.output}", *more, ranks=ranks)

    def start(self, *more, ranks=0, wrapper=()):
        """Starts a run in the background. `wrapper` is a command in front of the program on each rank."""
        command = harness.launch(["run", *self.inputs, f"--output={self.output}", *harness.PROGRESS, *more], ranks)
        at = command.index(harness.BINARY)
        return harness.Background(self, command[:at] + list(wrapper) + command[at:])

    def partial_files(self):
        return list(self.folder.glob("results.h5.partial.*"))

    def assert_interrupted(self, outcome, least_nodes, code=75):
        import h5py

        self.assertEqual(outcome.code, code, outcome.err)
        self.assertEqual(outcome.err.count("orrery: error:"), 1, outcome.err)
        self.assertIn("stopped by", outcome.err)
        with h5py.File(self.output) as results:
            self.assertEqual(results.attrs["status"], "interrupted")
            npus = results["npus"]
            self.assertGreaterEqual(int(npus["nodes_completed"][:].min()), least_nodes)
            total = sum(npus[component][:] for component in harness.TIME_COMPONENTS)
            self.assertEqual(total.tolist(), npus["finish_time"][:].tolist())
            # No NPU is done: each comes to the time that the ranks agreed on, or further.
            number, unit = re.search(r"at simulated ([\d.]+) (\w+)", outcome.err).groups()
            stop = float(number) * {"ns": 1e3, "µs": 1e6, "ms": 1e9, "s": 1e12}[unit]
            self.assertGreaterEqual(int(npus["finish_time"][:].min()), stop * (1 - 1e-5))  # the message has 6 digits

    def test_a_run_stops_at_the_wall_time_limit(self):
        """An endless run with --max-walltime=2, on 1 and 3 ranks, ends with exit code 75 and whole results of status "interrupted"."""
        for ranks in (0, 3):
            with self.subTest(ranks=ranks):
                outcome = self.run_orrery(harness.FOR_EVER, "--max-walltime=2", "--force", ranks=ranks)
                self.assert_interrupted(outcome, least_nodes=0)
                self.assertIn("wall-time limit", outcome.err)

    def test_the_same_command_replaces_what_was_interrupted(self):
        """Interrupted results are replaced without --force by the next run that reaches its end, and by no run that fails. Complete
        results are not replaced."""
        import h5py

        for _ in range(2):
            outcome = self.run_orrery(harness.FOR_EVER, "--max-walltime=2")
            self.assert_interrupted(outcome, least_nodes=0)
            self.assertIn("replaces this file", outcome.err)
        before = self.output.read_bytes()
        trace = self.folder / "workload.3.et"
        whole = trace.read_bytes()
        trace.write_bytes(whole[:-5])
        self.assertEqual(self.run_orrery().code, 3)
        self.assertEqual(self.output.read_bytes(), before, "it is kept until the next run has ended")
        trace.write_bytes(whole)
        self.assertEqual(self.run_orrery(ranks=2).code, 0)
        with h5py.File(self.output) as results:
            self.assertEqual(results.attrs["status"], "complete")
        self.assertEqual(self.run_orrery().code, 5, "complete results are not replaced")

    def test_a_signal_stops_a_simulating_run(self):
        """SIGTERM, SIGINT or SIGUSR1 to a simulating run on 1 to 3 ranks stops it with whole results of status "interrupted" and a message
        that names the signal. mpirun passes SIGUSR1 on to the ranks, and SIGTERM in place of SIGINT; after these two mpirun's own exit
        code is 1 whatever the program's is, else it is 75."""
        for name, ranks, code in (
            ("SIGTERM", 0, 75),
            ("SIGINT", 0, 75),
            ("SIGUSR1", 0, 75),
            ("SIGTERM", 2, 1),
            ("SIGINT", 2, 1),
            ("SIGUSR1", 3, 75),
        ):
            with self.subTest(signal=name, ranks=ranks):
                run = self.start(harness.FOR_EVER, "--force", ranks=ranks)
                run.wait_until_simulating()
                run.signal(name)
                outcome = run.end()
                self.assert_interrupted(outcome, least_nodes=5, code=code)
                self.assertIn("SIGTERM" if ranks and name == "SIGINT" else name, outcome.err)

    @harness.long
    def test_a_second_interrupt_kills_a_writing_run(self):
        """A run that was interrupted and writes a long timeline is killed by a second SIGINT. It leaves no results, only a partial
        file, which the next run removes."""
        run = self.start(harness.FOR_EVER, "--timeline", f"--record-iterations={2**32 - 1}")
        run.wait_until_simulating()
        run.wait_until(
            lambda: resident_bytes(run.process.pid) > 300 << 20, "holding a timeline that takes seconds to write"
        )
        run.signal("SIGINT")
        run.wait_until(self.partial_files, "writing")
        run.signal("SIGINT")
        self.assertEqual(run.end().code, -signal.SIGINT)
        self.assertFalse(self.output.exists())
        self.assertEqual(len(self.partial_files()), 1)
        self.assertEqual(self.run_orrery().code, 0)
        self.assertEqual(self.partial_files(), [])

    def test_a_killed_rank_ends_the_job(self):
        """One of two simulating ranks is killed. The job ends with an error and without results."""
        run = self.start(harness.FOR_EVER, ranks=2)
        run.wait_until_simulating()
        os.kill(run.ranks()[-1], signal.SIGKILL)
        self.assertNotEqual(run.end().code, 0)
        self.assertFalse(self.output.exists())

    @harness.long
    @unittest.skipIf(harness.SANITIZED, "the address sanitizer needs more address space than any limit")
    def test_a_rank_out_of_memory_ends_the_job(self):
        """One of three ranks has a limit on its memory. Whether it meets the limit in the simulation or while it reads traces, the job
        ends with exit code 1, one message that names the rank, and no results."""
        folder = self.folder / "alone"
        folder.mkdir()
        # NPUs that do not talk to each other, so that nothing but memory ends the growth of their timelines.
        trace = [Node(1, chakra.COMP, "c", duration=1)] + [
            Node(i, chakra.COMP, "c", [i - 1], duration=1) for i in range(2, 100)
        ]
        self.inputs = [harness.write_workload(folder, [trace] * 3)] + harness.System(counts=(3,)).write(folder)
        wrapper = self.folder / "limited"
        wrapper.write_text('#!/bin/bash\n[ $OMPI_COMM_WORLD_RANK != 1 ] || ulimit -v 700000\nexec "$@"\n')
        wrapper.chmod(0o755)
        self.assert_out_of_memory(
            self.start(harness.FOR_EVER, "--timeline", f"--record-iterations={2**32 - 1}", ranks=3, wrapper=[wrapper])
        )
        # Traces of 400,000 nodes do not fit into 300 MB.
        wrapper.write_text(wrapper.read_text().replace("700000", "300000"))
        prefix = folder / "deep"
        made = harness.orrery(
            "generate", "--tp=1", "--pp=1", "--dp=3", "--layers=400", "--micro-batches=256", f"--output={prefix}"
        )
        self.assertEqual(made.code, 0, made.err)
        self.inputs = [
            f"--workload-configuration={prefix}",
            f"--comm-group-configuration={prefix}.json",
            *harness.files_in(folder),
        ]
        self.assert_out_of_memory(self.start(ranks=3, wrapper=[wrapper]))

    def assert_out_of_memory(self, run):
        outcome = run.end()
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertEqual(outcome.err.count("orrery: error:"), 1, outcome.err)
        self.assertRegex(outcome.err, r"orrery: error: rank 1 of 3 on \S+ ran out of memory")
        self.assertFalse(self.output.exists())

    def large_traces(self, count):
        """Returns the inputs of NPUs whose traces take a tenth of a second each to read: one file by many names. The last trace of each
        half is no trace, so that a run that reads all traces of a rank fails."""
        folder = self.folder / "large"
        made = harness.orrery(
            "generate",
            "--tp=1",
            "--pp=1",
            "--dp=1",
            "--layers=400",
            "--micro-batches=256",
            f"--output={folder / 'workload'}",
        )
        self.assertEqual(made.code, 0, made.err)
        for npu in range(1, count):
            os.link(folder / "workload.0.et", folder / f"workload.{npu}.et")
        for npu in (count // 2 - 1, count - 1):
            (folder / f"workload.{npu}.et").unlink()
            (folder / f"workload.{npu}.et").write_text("no trace")
        return [f"--workload-configuration={folder / 'workload'}", *harness.System(counts=(count,)).write(folder)]

    @harness.long
    def test_a_signal_stops_a_run_that_reads_traces(self):
        """A signal to a run that reads 400 large traces, on 1 and 2 ranks, ends it with exit code 75 before it has read all of them. An
        older file is kept."""
        self.inputs = self.large_traces(400)
        self.output.write_text("no results")
        for name, ranks in (("SIGTERM", 0), ("SIGUSR1", 2)):
            with self.subTest(name, ranks=ranks):
                run = self.start("--force", ranks=ranks)

                def reading():
                    pids = run.ranks() if ranks else [run.process.pid]
                    return len(pids) == max(ranks, 1) and all(map(catches_sigterm, pids))

                run.wait_until(reading, "catching signals")
                run.signal(name)
                outcome = run.end()
                self.assertEqual(outcome.code, 75, outcome.err)
                self.assertEqual(outcome.err.count("orrery: error:"), 1, outcome.err)
                self.assertIn(f"stopped by {name} before the simulation began", outcome.err)
                self.assertEqual(self.output.read_text(), "no results")

    @harness.long
    def test_the_wall_time_limit_holds_while_traces_are_read(self):
        """A run with --max-walltime=1 that would read traces for much longer, on 1 and 2 ranks, ends with exit code 75 before it has read
        all of them. An older file is kept."""
        self.inputs = self.large_traces(400)
        self.output.write_text("no results")
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                outcome = self.run_orrery("--force", "--max-walltime=1", ranks=ranks)
                self.assertEqual(outcome.code, 75, outcome.err)
                self.assertEqual(outcome.err.count("orrery: error:"), 1, outcome.err)
                self.assertIn("stopped by the wall-time limit before the simulation began", outcome.err)
                self.assertEqual(self.output.read_text(), "no results")

    def test_progress_counts_all_iterations(self):
        """The progress lines of a run with a million iterations give ascending shares of the nodes of all iterations, below 100 %."""
        for ranks in (0, 2):
            run = self.start("--iterations=1000000", "--force", ranks=ranks)
            run.wait_until(lambda: run.text().count(" of nodes, ") > 4, "printing progress")
            run.signal("SIGTERM")
            shares = [float(share) for share in re.findall(r"([\d.]+) % of nodes", run.end().err)]
            self.assertEqual(shares, sorted(shares))
            self.assertLess(shares[-1], 100)

    def test_records_do_not_grow_with_iterations(self):
        """10 and 60,000 iterations give the same records of collectives and nodes, those of the first iteration, and the same peak
        memory."""
        import h5py

        peak, collectives = {}, {}
        for iterations in (10, 60000):
            self.assertEqual(self.run_orrery(f"--iterations={iterations}", "--timeline", "--force").code, 0)
            with h5py.File(self.output) as results:
                peak[iterations] = int(results["kernel/peak_memory"][0])
                collectives[iterations] = {name: column[:].tolist() for name, column in results["collectives"].items()}
                self.assertEqual(results["collectives"].attrs["recorded"], 1)
                self.assertEqual(results["collectives"].attrs["total"], iterations)
                self.assertEqual(results["timeline"].attrs["recorded"], 40)
                self.assertEqual(results["timeline"].attrs["total"], 40 * iterations)
        self.assertEqual(collectives[10], collectives[60000], "those of the first iteration")
        self.assertLess(abs(peak[60000] - peak[10]), 2 << 20, peak)

    def test_recorded_iterations_are_the_same_on_any_number_of_ranks(self):
        """Three of seven noisy iterations are recorded. The records are the same on 1, 2 and 3 ranks and end where the third iteration
        ends."""
        import h5py
        import numpy

        more = ("--iterations=7", "--record-iterations=3", "--timeline", "--noise=0.2")
        path = self.check_one_answer([*self.inputs, *more], 8, ranks=(2, 3))
        with h5py.File(path) as results:
            self.assertEqual(results["collectives/ordinal"][:].tolist(), [0, 1, 2])
            self.assertEqual(dict(results["collectives"].attrs.items())["total"], 7)
            self.assertEqual(len(results["timeline/node"]), 3 * 40)
            self.assertEqual(results["collectives/finish"].shape, (3,))
            self.assertEqual(int(results["timeline/finish"][:].max()), int(results["collectives/finish"][:].max()))
            self.assertLess(int(results["timeline/finish"][:].max()), int(numpy.max(results["npus/finish_time"][:])))

    def test_iterations_repeat_the_trace(self):
        """Two NPUs have one compute node each, of 7 and 9 us. Five iterations take five times as long, and nodes are counted each time."""
        import h5py

        folder = self.folder / "chain"
        folder.mkdir()
        system = harness.System(counts=(2,))
        inputs = [
            harness.write_workload(
                folder, [[Node(1, chakra.COMP, "c", duration=7)], [Node(1, chakra.COMP, "c", duration=9)]]
            )
        ]
        outcome = harness.orrery("run", *inputs, *system.write(folder), f"--output={self.output}", "--iterations=5")
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(self.output) as results:
            self.assertEqual(results["npus/finish_time"][:].tolist(), [35_000_000, 45_000_000])
            self.assertEqual(results["npus/nodes_completed"][:].tolist(), [5, 5])

    def test_a_node_starts_after_its_last_dependency(self):
        """Nodes with 254, 255, 256 and 600 dependencies on compute nodes of 1 us each start when the last of them is done, in each of two
        iterations."""
        import h5py

        counts = (254, 255, 256, 600)
        trace = [Node(i, chakra.COMP, "c", duration=1) for i in range(600)]
        trace += [Node(1000 + n, chakra.COMP, "wide", list(range(600 - n, 600)), duration=10) for n in counts]
        folder = self.folder / "wide"
        folder.mkdir()
        inputs = [harness.write_workload(folder, [trace, trace])] + harness.System(counts=(2,)).write(folder)
        outcome = harness.orrery("run", *inputs, f"--output={self.output}", "--iterations=2", "--timeline")
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(self.output) as results:
            self.assertEqual(results["npus/finish_time"][:].tolist(), [2 * 640_000_000] * 2)
            self.assertEqual(results["npus/nodes_completed"][:].tolist(), [2 * 604] * 2)
            starts = dict(zip(results["timeline/node"][:].tolist(), results["timeline/start"][:].tolist()))
        self.assertEqual([starts[1000 + n] for n in counts], [600_000_000 + 10_000_000 * i for i in range(4)])

    def test_noise_is_the_same_on_any_number_of_ranks(self):
        """With noise the finish times are the same on 1, 2, 3 and 4 ranks. They differ from those without noise and from those of
        another seed."""
        seen = {}
        for ranks in (0, 2, 3, 4):
            self.assertEqual(self.run_orrery("--iterations=50", "--noise=0.1", "--force", ranks=ranks).code, 0)
            seen[ranks] = harness.finish_times(self.output)
        self.assertEqual(len({tuple(times) for times in seen.values()}), 1, seen)
        exact = self.run_orrery("--iterations=50", "--force")
        self.assertEqual(exact.code, 0)
        self.assertNotEqual(harness.finish_times(self.output), seen[0])
        self.assertEqual(self.run_orrery("--iterations=50", "--noise=0.1", "--noise-seed=2", "--force").code, 0)
        self.assertNotEqual(harness.finish_times(self.output), seen[0])

    def test_noise_on_a_training_step_is_the_same_on_any_number_of_ranks(self):
        """A generated step of 64 NPUs with noise gives the same finish times on 1, 2 and 3 ranks. Its collectives have members that
        arrive at different times at hosts on other ranks."""
        prefix = self.folder / "llm/workload"
        made = harness.orrery("generate", "--layers=8", "--micro-batches=4", f"--output={prefix}")
        self.assertEqual(made.code, 0, made.err)
        arguments = [
            "run",
            harness.SOURCE / "configs/llm-64.yaml",
            f"--set=workload.traces={prefix}",
            f"--set=workload.groups={prefix}.json",
            "--iterations=10",
            "--noise=0.05",
            "--quiet",
            "--force",
            f"--output={self.output}",
        ]
        seen = []
        for ranks in (0, 2, 3):
            outcome = harness.orrery(*arguments, ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.err)
            seen.append(harness.finish_times(self.output))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])


if __name__ == "__main__":
    harness.main()
