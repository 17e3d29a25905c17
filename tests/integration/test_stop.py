#!/usr/bin/python3
"""Runs that end before their end, and runs that repeat their traces: stop requests, a killed rank, iterations, compute noise."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

FOR_EVER = "--iterations=100000000"


def step(npu, npus=8):
    """Compute, then hand on around the ring, then agree."""
    return [Node(1, chakra.COMP, "forward", duration=10 + npu),
            Node(2, chakra.SEND, "hand on", [1], comm_dst=(npu + 1) % npus, comm_tag=1, comm_size=4096),
            Node(3, chakra.RECV, "take over", [], comm_src=(npu - 1) % npus, comm_tag=1, comm_size=4096),
            Node(4, chakra.COMP, "backward", [1, 3], duration=20),
            Node(5, chakra.COLL, "gradients", [4], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)]


def heeds_sigterm(pid):
    """Whether the process is the program, and catches the signal. What starts it has processes that are gone the next moment."""
    process = pathlib.Path(f"/proc/{pid}")
    try:
        is_program = process.joinpath("exe").resolve() == pathlib.Path(harness.BINARY).resolve()
        caught = re.search(r"SigCgt:\s*(\w+)", process.joinpath("status").read_text())[1]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return is_program and bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


class Stop(harness.Folder):
    def setUp(self):
        super().setUp()
        system = harness.System(counts=(8,))
        self.inputs = [harness.write_workload(self.folder, [step(npu) for npu in range(8)])] + system.write(self.folder)
        self.output = self.folder / "results.h5"

    def run_orrery(self, *more, ranks=0, timeout=60):
        return harness.orrery("run", *self.inputs, f"--output={self.output}", *more, ranks=ranks, timeout=timeout)

    def assert_interrupted(self, code, err, expected=75):
        import h5py
        self.assertEqual(code, expected, err)
        self.assertEqual(err.count("orrery: error:"), 1, err)
        self.assertIn("stopped by", err)
        with h5py.File(self.output) as results:
            self.assertEqual(results.attrs["status"], "interrupted")
            npus = results["npus"]
            self.assertGreater(int(npus["nodes_completed"][:].min()), 5)
            parts = sum(npus[part][:] for part in harness.PARTS)
            self.assertEqual(parts.tolist(), npus["finish_time"][:].tolist())
            # No NPU is done: all of them stop at the time that the ranks agreed on.
            self.assertEqual(len(set(npus["finish_time"][:].tolist())), 1)

    def test_wall_time_limit(self):
        for ranks in (0, 3):
            with self.subTest(ranks=ranks):
                begin = time.monotonic()
                outcome = self.run_orrery(FOR_EVER, "--max-walltime=2", "--force", ranks=ranks)
                self.assert_interrupted(outcome.code, outcome.err)
                self.assertIn("wall-time limit", outcome.err)
                self.assertLess(time.monotonic() - begin, 15)

    def test_the_same_command_replaces_what_was_interrupted(self):
        import h5py
        limited = (FOR_EVER, "--max-walltime=2")
        for _ in range(2):
            outcome = self.run_orrery(*limited)
            self.assert_interrupted(outcome.code, outcome.err)
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

    def test_signals(self):
        # mpirun passes SIGUSR1 on to the ranks, and SIGTERM in place of SIGINT; after these two its own exit code is 1 whatever theirs is.
        for name, ranks, code in (("SIGTERM", 0, 75), ("SIGINT", 0, 75), ("SIGUSR1", 0, 75), ("SIGTERM", 2, 1), ("SIGINT", 2, 1), ("SIGUSR1", 3, 75)):
            with self.subTest(signal=name, ranks=ranks):
                arguments = ["run", *self.inputs, f"--output={self.output}", FOR_EVER, "--force"]
                process = subprocess.Popen(harness.launch(arguments, ranks), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE, text=True, start_new_session=True)
                try:
                    self.wait_until_running(process, ranks)
                    process.send_signal(getattr(signal, name))
                    _, err = process.communicate(timeout=30)
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                self.assert_interrupted(process.returncode, err, code)
                self.assertIn("SIGTERM" if ranks and name == "SIGINT" else name, err)

    def wait_until_running(self, process, ranks, seconds=30):
        """Until every rank of a job heeds SIGTERM, and a second more."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pids = [process.pid] if ranks == 0 else subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
            if len(pids) == max(ranks, 1) and all(heeds_sigterm(pid) for pid in pids):
                time.sleep(1)
                return
            time.sleep(0.05)
        self.fail("the ranks do not start")

    def start(self, *more, ranks=0, launcher=()):
        arguments = ["run", *self.inputs, f"--output={self.output}", *more]
        command = harness.launch(arguments, ranks)
        if launcher:  # in front of each rank's program
            command[-len(arguments) - 1:-len(arguments) - 1] = map(str, launcher)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def test_a_second_interrupt_kills(self):
        # It comes while a long timeline is written. The next run removes what was left.
        process = self.start(FOR_EVER, "--timeline", f"--record-iterations={2**32 - 1}")
        self.wait_until_running(process, 0)
        time.sleep(1)  # there is much to write
        process.send_signal(signal.SIGINT)
        until = time.monotonic() + 20
        while not list(self.folder.glob("results.h5.partial.*")) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertFalse(self.output.exists())
        self.assertEqual(len(list(self.folder.glob("results.h5.partial.*"))), 1)
        self.assertEqual(self.run_orrery().code, 0)
        self.assertEqual(list(self.folder.glob("results.h5.partial.*")), [])

    def test_a_killed_rank_ends_the_job(self):
        arguments = ["run", *self.inputs, f"--output={self.output}", FOR_EVER]
        process = subprocess.Popen(harness.launch(arguments, 2), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            self.wait_until_running(process, 2)
            children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout.split()
            os.kill(int(children[-1]), signal.SIGKILL)
            begin = time.monotonic()
            process.communicate(timeout=30)
            self.assertLess(time.monotonic() - begin, 10)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        self.assertNotEqual(process.returncode, 0)
        self.assertFalse(self.output.exists())

    @unittest.skipIf(harness.SANITIZED, "the address sanitizer needs more address space than any limit")
    def test_a_rank_out_of_memory_ends_the_job(self):
        # NPUs that do not talk to each other, so that nothing but memory ends the growth of their timelines.
        folder = self.folder / "alone"
        folder.mkdir()
        trace = [Node(1, chakra.COMP, "c", duration=1)] + [Node(i, chakra.COMP, "c", [i - 1], duration=1) for i in range(2, 100)]
        self.inputs = [harness.write_workload(folder, [trace] * 3)] + harness.System(counts=(3,)).write(folder)
        wrapper = self.folder / "limited"
        wrapper.write_text("#!/bin/bash\n[ $OMPI_COMM_WORLD_RANK != 1 ] || ulimit -v 700000\nexec \"$@\"\n")
        wrapper.chmod(0o755)
        self.assert_out_of_memory(self.start(FOR_EVER, "--timeline", f"--record-iterations={2**32 - 1}", "--progress=none", ranks=3, launcher=[wrapper]))
        # Traces of 400000 nodes do not fit into 300 MB.
        wrapper.write_text(wrapper.read_text().replace("700000", "300000"))
        prefix = folder / "deep"
        made = harness.orrery("generate", "--tp=1", "--pp=1", "--dp=3", "--layers=400", "--micro-batches=256", f"--output={prefix}")
        self.assertEqual(made.code, 0, made.err)
        self.inputs = [f"--workload-configuration={prefix}", f"--comm-group-configuration={prefix}.json", *harness.files_in(folder)]
        self.assert_out_of_memory(self.start(ranks=3, launcher=[wrapper]))

    def assert_out_of_memory(self, process):
        _, err = process.communicate(timeout=40)
        self.assertEqual(process.returncode, 1, err)
        self.assertEqual(err.count("orrery: error:"), 1, err)
        self.assertRegex(err, r"orrery: error: rank 1 of 3 on \S+ ran out of memory")
        self.assertFalse(self.output.exists())

    def large_traces(self, count):
        """The inputs of NPUs whose traces take a tenth of a second each to read: one file by many names."""
        folder = self.folder / "large"
        made = harness.orrery("generate", "--tp=1", "--pp=1", "--dp=1", "--layers=400", "--micro-batches=256", f"--output={folder / 'workload'}")
        self.assertEqual(made.code, 0, made.err)
        for npu in range(1, count):
            os.link(folder / "workload.0.et", folder / f"workload.{npu}.et")
        return [f"--workload-configuration={folder / 'workload'}", *harness.System(counts=(count,)).write(folder)]

    def test_a_signal_while_traces_are_read(self):
        self.inputs = self.large_traces(400)
        self.output.write_text("no results")
        for name, ranks in (("SIGTERM", 0), ("SIGUSR1", 2)):
            with self.subTest(name, ranks=ranks):
                process = self.start("--force", ranks=ranks)
                self.wait_until_running(process, ranks)
                process.send_signal(getattr(signal, name))
                begin = time.monotonic()
                _, err = process.communicate(timeout=60)
                self.assertLess(time.monotonic() - begin, 20, "reading all of them takes longer")
                self.assertEqual(process.returncode, 75, err)
                self.assertEqual(err.count("orrery: error:"), 1, err)
                self.assertIn(f"stopped by {name} before the simulation began", err)
                self.assertEqual(self.output.read_text(), "no results")

    def test_progress_counts_all_iterations(self):
        for ranks in (0, 2):
            outcome = self.run_orrery("--iterations=1000000", "--max-walltime=3", "--progress=plain", "--progress-interval=0.3", "--force", ranks=ranks)
            shares = [float(share) for share in re.findall(r"([\d.]+) % of nodes", outcome.err)]
            self.assertGreater(len(shares), 2, outcome.err)
            self.assertEqual(shares, sorted(shares))
            self.assertGreater(shares[-1], 0)
            self.assertLess(shares[-1], 100)

    def test_records_do_not_grow_with_iterations(self):
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
        import h5py
        import numpy
        more = ("--iterations=7", "--record-iterations=3", "--timeline", "--noise=0.2")
        path = self.check_one_answer([*self.inputs, *more], 8, ranks=(2, 3))
        with h5py.File(path) as results:
            self.assertEqual(results["collectives/ordinal"][:].tolist(), [0, 1, 2])
            self.assertEqual(dict(results["collectives"].attrs.items())["total"], 7)
            self.assertEqual(len(results["timeline/node"]), 3 * 40)
            self.assertEqual(results["collectives/finish"].chunks, (3,))
            self.assertEqual(results["collectives/finish"].compression, "gzip")
            self.assertEqual(int(results["timeline/finish"][:].max()), int(results["collectives/finish"][:].max()))
            self.assertLess(int(results["timeline/finish"][:].max()), int(numpy.max(results["npus/finish_time"][:])))

    def test_iterations_repeat_the_trace(self):
        """A chain of one compute node takes N times as long; nodes are counted each time."""
        import h5py
        folder = self.folder / "chain"
        folder.mkdir()
        system = harness.System(counts=(2,))
        inputs = [harness.write_workload(folder, [[Node(1, chakra.COMP, "c", duration=7)], [Node(1, chakra.COMP, "c", duration=9)]])]
        outcome = harness.orrery("run", *inputs, *system.write(folder), f"--output={self.output}", "--iterations=5")
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(self.output) as results:
            self.assertEqual(results["npus/finish_time"][:].tolist(), [35_000_000, 45_000_000])
            self.assertEqual(results["npus/nodes_completed"][:].tolist(), [5, 5])

    def test_nodes_that_wait_for_hundreds(self):
        """Whatever the number of its dependencies, a node begins when the last of them is done; in each iteration again."""
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

    def test_noise_on_a_training_step(self):
        """Members of one rank that arrive at different times, in collectives of other ranks too: what hosts promise must hold."""
        prefix = self.folder / "llm/workload"
        made = harness.orrery("generate", "--layers=8", "--micro-batches=4", f"--output={prefix}")
        self.assertEqual(made.code, 0, made.err)
        arguments = ["run", harness.SOURCE / "configs/llm-64.yaml", f"--set=workload.traces={prefix}", f"--set=workload.groups={prefix}.json",
                     "--iterations=10", "--noise=0.05", "--quiet", "--force", f"--output={self.output}"]
        seen = []
        for ranks in (0, 2, 3):
            outcome = harness.orrery(*arguments, ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.err)
            seen.append(harness.finish_times(self.output))
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
