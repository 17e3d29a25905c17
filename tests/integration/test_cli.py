#!/usr/bin/python3
"""The command line: help, exit codes, what is left behind when a run cannot write or is killed."""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

COMMANDS = ("run", "check", "generate", "partition", "show")


def two_nodes(npus=4):
    return [[Node(1, chakra.COMP, "forward", duration=5), Node(2, chakra.COLL, "gradients", [1], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20)] for _ in range(npus)]


class Help(harness.Folder):
    def test_alone_prints_help_and_fails(self):
        outcome = harness.orrery()
        self.assertEqual(outcome.code, 2)
        for command in COMMANDS:
            self.assertIn(command, outcome.err)

    def test_help(self):
        outcome = harness.orrery("--help")
        self.assertEqual(outcome.code, 0)
        for command in COMMANDS:
            self.assertIn(command, outcome.out)

    def test_help_of_each_command_has_an_example(self):
        for command in COMMANDS:
            with self.subTest(command):
                outcome = harness.orrery(command, "--help")
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assertIn(f"orrery {command}", outcome.out)
                self.assertRegex(outcome.out, "(?i)example")

    def test_version_names_the_libraries(self):
        outcome = harness.orrery("--version")
        self.assertEqual(outcome.code, 0)
        for word in (r"\b0\.1\.0\b", "MPI", "HDF5", "(?i)protobuf"):
            self.assertRegex(outcome.out, word)

    def test_help_needs_no_mpi(self):
        """MPI_Init takes half a second: ten times help takes less than that."""
        if harness.SANITIZED:
            self.skipTest("sanitizers slow the start of the program")
        begin = time.monotonic()
        for _ in range(10):
            harness.orrery("--help")
        self.assertLess(time.monotonic() - begin, 2.5)


class Usage(harness.Folder):
    def usage_error(self, *arguments):
        outcome = harness.orrery(*arguments)
        self.assertEqual(outcome.code, 2, outcome.err)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        return outcome.err

    def test_unknown_command(self):
        self.assertRegex(self.usage_error("rum"), r"\brun\b")

    def test_unknown_option(self):
        self.assertIn("--output", self.usage_error("run", "x.yaml", "--outptu=results.h5"))

    def test_no_configuration(self):
        self.usage_error("run")

    def test_both_forms_at_once(self):
        files = [harness.write_workload(self.folder, two_nodes())] + harness.System().write(self.folder)
        self.usage_error("run", "x.yaml", *files)

    def test_value_that_is_no_number(self):
        self.usage_error("run", "x.yaml", "--progress-interval=often")

    def test_value_of_an_option_out_of_range(self):
        files = harness.System().write(self.folder)
        self.assertIn("option --npus: found 9; expected 1 to 4", self.usage_error("show", "collective", *files, "--kind=all-reduce", "--bytes=8 B", "--npus=9"))

    def test_missing_configuration_is_bad_input(self):
        outcome = harness.orrery("run", self.folder / "missing.yaml")
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("missing.yaml", outcome.err)


class Output(harness.Folder):
    def setUp(self):
        super().setUp()
        self.files = [harness.write_workload(self.folder, two_nodes())] + harness.System().write(self.folder)

    def run_to(self, output, *more, ranks=0):
        return harness.orrery("run", *self.files, f"--output={output}", *more, ranks=ranks)

    def test_success_prints_a_summary(self):
        for ranks in (0, 2):
            outcome = self.run_to(self.folder / f"results{ranks}.h5", ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.err)
            for word in ("slowest", "median", "fastest", "events", "rank", f"results{ranks}.h5"):
                self.assertRegex(outcome.out + outcome.err, f"(?i){word}")

    def test_quiet_prints_nothing(self):
        outcome = self.run_to(self.folder / "results.h5", "--quiet")
        self.assertEqual((outcome.code, outcome.out, outcome.err), (0, "", ""))

    def test_quiet_prints_warnings(self):
        (self.folder / "system.json").write_text('{"chunks-of-nothing": 3, ' + (self.folder / "system.json").read_text().lstrip().removeprefix("{"))
        outcome = self.run_to(self.folder / "results.h5", "--quiet")
        self.assertEqual((outcome.code, outcome.out), (0, ""), outcome.err)
        self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
        self.assertRegex(outcome.err, "warning.*chunks-of-nothing")

    def test_a_summary_that_nobody_gets_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(harness.launch(["run", *self.files, f"--output={self.folder / 'results.h5'}"]), stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr, "standard output: No space left")

    def test_an_existing_file_needs_force(self):
        output = self.folder / "results.h5"
        output.write_text("older")
        for ranks in (0, 2):
            outcome = self.run_to(output, ranks=ranks)
            self.assertEqual(outcome.code, 5, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            self.assertIn("--force", outcome.err)
            self.assertEqual(output.read_text(), "older")
        self.assertEqual(self.run_to(output, "--force").code, 0)
        self.assertEqual(len(harness.finish_times(output)), 4)

    def test_only_a_regular_file_is_replaced(self):
        import socket
        made = {name: self.folder / name.replace(" ", "_") for name in ("FIFO", "device", "socket", "folder", "link to a FIFO")}
        os.mkfifo(made["FIFO"])
        made["folder"].mkdir()
        made["link to a FIFO"].symlink_to("FIFO")
        made["device"] = pathlib.Path("/dev/null")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(made["socket"]))
        for name, path in made.items():
            with self.subTest(name):
                before = path.lstat().st_mode
                outcome = self.run_to(path, "--force")
                self.assertEqual(outcome.code, 5, outcome.err)
                self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
                self.assertIn(f"it is a {name.removeprefix('link to a ')}", outcome.err)
                self.assertEqual(path.lstat().st_mode, before)

    def test_a_symbolic_link_stays_and_its_target_is_written(self):
        there = self.folder / "there"
        there.mkdir()
        link, target = self.folder / "results.h5", there / "target.h5"
        link.symlink_to("middle")
        (self.folder / "middle").symlink_to("there/target.h5")
        self.assertEqual(self.run_to(link).code, 0)  # there is no target yet
        self.assertEqual(len(harness.finish_times(target)), 4)
        self.assertEqual(self.run_to(link).code, 5)
        target.write_text("older")
        self.assertEqual(self.run_to(link, "--force").code, 0)
        self.assertTrue(link.is_symlink())
        self.assertFalse(target.is_symlink())
        self.assertEqual(len(harness.finish_times(target)), 4)
        self.assertEqual([path.name for path in there.iterdir()], ["target.h5"])
        link.unlink()
        link.symlink_to("results.h5")
        outcome = self.run_to(link)
        self.assertEqual(outcome.code, 5, outcome.err)
        self.assertIn("symbolic links", outcome.err)

    def test_a_limit_on_the_size_of_files(self):
        import resource
        output = self.folder / "results.h5"
        before = sorted(self.folder.iterdir())
        done = subprocess.run(harness.launch(["run", *self.files, f"--output={output}", "--timeline"]), capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        self.assert_not_written(done, output, "File too large")
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_a_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", disk], capture_output=True).returncode != 0:
            self.skipTest("a small file system cannot be mounted")
        try:
            output = disk / "results.h5"
            done = subprocess.run(harness.launch(["run", *self.files, f"--output={output}"]), capture_output=True, text=True, timeout=60)
            self.assert_not_written(done, output, "No space left on device")
            done = subprocess.run(harness.launch(["generate", f"--output={disk}/workload"]), capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertRegex(done.stderr, r"workload\.\d+\.et.*: No space left on device")
            self.assertEqual(list(disk.iterdir()), [])
        finally:
            subprocess.run(["umount", disk], check=True)

    def assert_not_written(self, done, output, reason):
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertRegex(done.stderr, rf"error: {output}: cannot be written \(.*\): {reason}\. Free space")
        self.assertFalse(output.exists())

    def test_what_a_killed_run_left_is_removed(self):
        import socket
        output = self.folder / "results.h5"
        ended = subprocess.Popen(["true"])
        ended.wait()
        host = socket.gethostname()
        stale = self.folder / f"results.h5.partial.{host}.{ended.pid}"
        kept = [self.folder / name for name in (f"results.h5.partial.{host}.{os.getpid()}", f"results.h5.partial.elsewhere.{ended.pid}",
                                                f"other.h5.partial.{host}.{ended.pid}", f"results.h5.partial.{host}.x")]
        for path in [stale, *kept]:
            path.write_text("part")
        self.assertEqual(self.run_to(output).code, 0)
        self.assertFalse(stale.exists())
        for path in kept:
            self.assertTrue(path.exists(), path)

    def test_a_partial_file_that_is_locked_is_kept(self):
        import fcntl
        import socket
        ended = subprocess.Popen(["true"])
        ended.wait()
        partial = self.folder / f"results.h5.partial.{socket.gethostname()}.{ended.pid}"
        with open(partial, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertEqual(self.run_to(self.folder / "results.h5").code, 0)
            self.assertTrue(partial.exists())

    def test_a_missing_folder(self):
        for ranks in (0, 2):
            outcome = self.run_to(self.folder / "missing" / "results.h5", ranks=ranks)
            self.assertEqual(outcome.code, 5, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            self.assertIn("missing", outcome.err)

    def test_results_describe_themselves(self):
        import h5py
        output = self.folder / "results.h5"
        self.assertEqual(self.run_to(output, "--timeline").code, 0)
        with h5py.File(output) as results:
            self.assertEqual(results.attrs["format"], "orrery-results")
            for name in ("format_version", "created", "orrery_version", "revision", "command_line", "mpi_library", "hdf5_version", "num_ranks", "hosts", "status",
                         "simulated_time", "wall_time"):
                self.assertIn(name, results.attrs)
            self.assertEqual(results.attrs["simulated_time"], max(results["npus/finish_time"]))
            self.assertEqual(len(results["timeline/offsets"]), 5)
            self.assertEqual(results["timeline/offsets"][-1], 8)
            self.assertIn("topology", results["config/inputs/network.yml"].asstr()[()])
            without = []

            def visit(name, item):
                if isinstance(item, h5py.Dataset) and not {"units", "description"} <= set(item.attrs):
                    without.append(name)
            results.visititems(visit)
            self.assertEqual(without, [])

    def test_the_resolved_configuration_can_be_run_again(self):
        import h5py
        output = self.folder / "results.h5"
        self.assertEqual(self.run_to(output).code, 0)
        with h5py.File(output) as results:
            (self.folder / "again.yaml").write_text(results["config/resolved"].asstr()[()])
        again = self.folder / "again.h5"
        outcome = harness.orrery("run", self.folder / "again.yaml", f"--output={again}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(harness.finish_times(again), harness.finish_times(output))


class Generate(harness.Folder):
    SMALL = ("generate", "--tp=2", "--pp=1", "--dp=1", "--layers=1", "--micro-batches=1")

    def test_existing_files_need_force(self):
        prefix = f"--output={self.folder}/workload"
        (self.folder / "workload.1.et").write_text("older")
        outcome = harness.orrery(*self.SMALL, prefix)
        self.assertEqual(outcome.code, 5, outcome.err)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        self.assertRegex(outcome.err, r"workload\.1\.et.*exists.*--force")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["workload.1.et"], "nothing was written")
        self.assertEqual((self.folder / "workload.1.et").read_text(), "older")
        self.assertEqual(harness.orrery(*self.SMALL, prefix, "--force").code, 0)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["workload.0.et", "workload.1.et", "workload.json"])
        self.assertEqual(harness.orrery("show", "trace", self.folder / "workload.1.et").code, 0)
        self.assertEqual(harness.orrery(*self.SMALL, prefix).code, 5)

    def test_existing_files_are_kept_until_all_are_complete(self):
        import resource
        prefix = f"--output={self.folder}/workload"
        self.assertEqual(harness.orrery(*self.SMALL, prefix).code, 0)
        before = {path: path.read_bytes() for path in self.folder.iterdir()}
        larger = harness.launch([*self.SMALL[:-2], "--layers=64", "--micro-batches=8", prefix, "--force"])
        done = subprocess.run(larger, capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000)))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual({path: path.read_bytes() for path in self.folder.iterdir()}, before)


class Stuck(harness.Folder):
    """Two groups of the same two NPUs, which each NPU enters in another order: no trace is wrong by itself, nobody can go on."""

    def test_says_who_waits_for_what(self):
        def collective(id, group, after):
            return Node(id, chakra.COLL, f"in_{group}", after, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20, pg_name=group)
        traces = [[collective(1, "left", []), collective(2, "right", [1])], [collective(1, "right", []), collective(2, "left", [1])]] + two_nodes(2)
        for npu in (2, 3):
            traces[npu] = [Node(1, chakra.COMP, "alone", duration=1)]
        files = [harness.write_workload(self.folder, traces)] + harness.System(groups={"left": [0, 1], "right": [0, 1]}).write(self.folder)
        output = self.folder / "results.h5"
        for ranks in (0, 2, 4):
            outcome = harness.orrery("run", *files, f"--output={output}", "--progress=none", ranks=ranks, timeout=30)
            self.assertEqual(outcome.code, 4, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            # Each line has the file, the NPU, the node and what it waits for; what to do comes last, and no empty line.
            lines = harness.messages(outcome)
            self.assertEqual(len(lines), 4, outcome.err)
            self.assertRegex(lines[0], "stuck: 2 of 4 NPUs do not finish$")
            for npu, group in ((0, "left"), (1, "right")):
                self.assertRegex(lines[1 + npu], rf"workload\.{npu}\.et: NPU {npu}, node 1 'in_{group}' waits since 0 ps for all-reduce number 1 of "
                                                 rf"group '{group}' \(1048576 bytes\): 1 of 2 members are there, missing NPU {1 - npu}$")
            self.assertRegex(lines[3], "Correct.*--dependencies")
            self.assertNotIn("\n\n", outcome.err.split("-----")[0])


class Killed(harness.Folder):
    """Killed at any moment, a run leaves no results.h5 and an older one as it was."""

    def long_traces(self):
        """Some seconds of work in all: 4 NPUs that compute and reduce in turn."""
        trace = []
        for i in range(0, 60000, 2):
            trace.append(Node(i + 1, chakra.COMP, "compute", [i] if i else [], duration=1 + i % 7))
            trace.append(Node(i + 2, chakra.COLL, "reduce", [i + 1], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20))
        return [trace] * 4

    def test_leaves_no_results(self):
        files = [harness.write_workload(self.folder, self.long_traces())] + harness.System().write(self.folder)
        killed = 0
        for ranks, older, delay in ((0, False, 0.05), (0, True, 0.1), (0, True, 0.15), (2, False, 0.7), (2, True, 0.9)):
            output = self.folder / "results.h5"
            output.unlink(missing_ok=True)
            if older:
                output.write_text("older")
            command = harness.launch(["run", *files, f"--output={output}", "--timeline", "--quiet", "--force"], ranks)
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(delay)
            done = process.poll() is not None
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            if done:
                continue
            killed += 1
            time.sleep(0.3 if ranks else 0)  # mpirun's children notice its end
            if output.exists() and (not older or output.read_bytes() != b"older"):
                self.assertEqual(len(harness.finish_times(output)), 4, "it was killed after the file was complete, and the file is whole")
            if older:
                self.assertTrue(output.exists())
        self.assertGreater(killed, 0, "no run was killed in time: the workload is too short")


if __name__ == "__main__":
    harness.main()
