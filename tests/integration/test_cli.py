#!/usr/bin/python3
"""The command line: help, exit codes, and what is left behind when a run cannot write or is killed.

The system of most tests: 4 NPUs on a ring, each of which computes for 5 us and joins an all-reduce of 1 MiB."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

COMMANDS = ("run", "check", "generate", "convert", "synthesize", "partition", "show")


def two_nodes(npus=4):
    return [
        [
            Node(1, chakra.COMP, "forward", duration=5),
            Node(2, chakra.COLL, "gradients", [1], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20),
        ]
        for _ in range(npus)
    ]


class Help(harness.Folder):
    def test_without_arguments_prints_help_and_fails(self):
        """`orrery` without arguments exits with 2 and lists the commands on standard error."""
        outcome = harness.orrery()
        self.assertEqual(outcome.code, 2)
        for command in COMMANDS:
            self.assertIn(command, outcome.err)

    def test_help_lists_the_commands(self):
        """`orrery --help` exits with 0 and lists the commands on standard output."""
        outcome = harness.orrery("--help")
        self.assertEqual(outcome.code, 0)
        for command in COMMANDS:
            self.assertIn(command, outcome.out)

    def test_help_of_each_command_has_an_example(self):
        """`orrery COMMAND --help` exits with 0 and shows an example of the command, for each command."""
        for command in COMMANDS:
            with self.subTest(command):
                outcome = harness.orrery(command, "--help")
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assertIn(f"orrery {command}", outcome.out)
                self.assertRegex(outcome.out, "(?i)example")

    def test_flags_without_effect_are_in_one_help(self):
        """ASTRA-sim's flags that have no effect are in the help of `run` alone; `check` takes them too, with the same warning."""
        flags = ("--comm-scale", "--compute-scale", "--logging-folder", "--logging-configuration")
        for command in ("run", "check", "partition", "show topology", "show collective"):
            text = harness.orrery(*command.split(), "--help").out
            for flag in flags:
                self.assertEqual(flag in text, command == "run", f"{command} {flag}")
        files = [harness.write_workload(self.folder, two_nodes())] + harness.System().write(self.folder)
        outcome = harness.orrery("check", *files, "--comm-scale=2")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("comm-scale", outcome.err + outcome.out)

    def test_version_names_the_libraries(self):
        """`orrery --version` names the versions of Orrery, MPI, HDF5 and protobuf."""
        outcome = harness.orrery("--version")
        self.assertEqual(outcome.code, 0)
        version = re.search(r"project\(orrery VERSION ([\d.]+)", (harness.SOURCE / "CMakeLists.txt").read_text())[1]
        for word in (rf"\b{re.escape(version)}\b", "MPI", "HDF5", "(?i)protobuf"):
            self.assertRegex(outcome.out, word)


class Usage(harness.Folder):
    """Wrong arguments end with exit code 2 and one message."""

    def usage_error(self, *arguments):
        """Returns the message of a command that must be refused as a usage error."""
        outcome = harness.orrery(*arguments)
        self.assertEqual(outcome.code, 2, outcome.err)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        return outcome.err

    def test_an_unknown_command_is_refused(self):
        """A misspelt command is refused, and the message names the command that was meant."""
        self.assertRegex(self.usage_error("rum"), r"\brun\b")

    def test_an_unknown_option_is_refused(self):
        """A misspelt option is refused, and the message names the option that was meant."""
        self.assertIn("--output", self.usage_error("run", "x.yaml", "--outptu=results.h5"))

    def test_run_without_a_configuration_is_refused(self):
        """`orrery run` without a configuration is a usage error."""
        self.usage_error("run")

    def test_both_forms_of_configuration_at_once_are_refused(self):
        """A configuration file together with ASTRA-sim's files is a usage error."""
        files = [harness.write_workload(self.folder, two_nodes())] + harness.System().write(self.folder)
        self.usage_error("run", "x.yaml", *files)

    def test_a_value_that_is_no_number_is_refused(self):
        """An option that takes a number refuses a word."""
        self.usage_error("run", "x.yaml", "--progress-interval=often")

    def test_a_value_out_of_range_is_refused(self):
        """`show collective` for 9 of 4 NPUs is refused, and the message gives the range."""
        files = harness.System().write(self.folder)
        self.assertIn(
            "option --npus: found 9; expected 1 to 4",
            self.usage_error("show", "collective", *files, "--kind=all-reduce", "--bytes=8 B", "--npus=9"),
        )

    def test_a_missing_configuration_is_bad_input(self):
        """A configuration that is not there ends with exit code 3 and a message that names it."""
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
        """A run on 1 and 2 ranks prints a summary with finish times, events, ranks and the results file."""
        for ranks in (0, 2):
            outcome = self.run_to(self.folder / f"results{ranks}.h5", "--verbose", ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.err)
            for word in ("last: npu", "first: npu", "compute", "events", "rank", f"results{ranks}.h5"):
                self.assertRegex(outcome.out + outcome.err, f"(?i){word}")

    def test_quiet_prints_nothing(self):
        """A run with --quiet prints nothing at all."""
        outcome = self.run_to(self.folder / "results.h5", "--quiet")
        self.assertEqual((outcome.code, outcome.out, outcome.err), (0, "", ""))

    def test_quiet_prints_warnings(self):
        """A run with --quiet and an unknown key in system.json prints one warning that names the key."""
        (self.folder / "system.json").write_text(
            '{"chunks-of-nothing": 3, ' + (self.folder / "system.json").read_text().lstrip().removeprefix("{")
        )
        outcome = self.run_to(self.folder / "results.h5", "--quiet")
        self.assertEqual((outcome.code, outcome.out), (0, ""), outcome.err)
        self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
        self.assertRegex(outcome.err, "warning.*chunks-of-nothing")

    def test_a_summary_that_cannot_be_written_is_an_error(self):
        """A run whose standard output is full ends with exit code 5 and says so."""
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                harness.launch(["run", *self.files, f"--output={self.folder / 'results.h5'}"]),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=harness.PATIENCE,
            )
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr, "standard output: No space left")

    def test_an_existing_results_file_needs_force(self):
        """A run on 1 and 2 ranks does not replace an existing file: exit code 5 and one message. With --force it does."""
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
        """With --force too, a run does not write over a FIFO, a device, a socket, a folder or a link to a FIFO. The message says what
        it is."""
        import socket

        made = {
            name: self.folder / name.replace(" ", "_")
            for name in ("FIFO", "device", "socket", "folder", "link to a FIFO")
        }
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
        """The output is a link to a link to a file. The target is written or replaced, and the links stay. A link to itself is refused."""
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

    def test_results_beyond_the_limit_on_file_sizes_are_refused(self):
        """Results larger than the process may write end the run with exit code 5, one message, and nothing left behind."""
        import resource

        output = self.folder / "results.h5"
        before = sorted(self.folder.iterdir())
        done = subprocess.run(
            harness.launch(["run", *self.files, f"--output={output}", "--timeline"]),
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)),
        )
        self.assert_not_written(done, output, "File too large")
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_a_full_disk_is_an_error(self):
        """`run` and `generate` on a file system of 32 KiB end with exit code 5, one message, and nothing left behind."""
        disk = self.folder / "disk"
        disk.mkdir()
        if (
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", disk], capture_output=True).returncode
            != 0
        ):
            self.skipTest("a small file system cannot be mounted")
        try:
            output = disk / "results.h5"
            done = subprocess.run(
                harness.launch(["run", *self.files, f"--output={output}"]),
                capture_output=True,
                text=True,
                timeout=harness.PATIENCE,
            )
            self.assert_not_written(done, output, "No space left on device")
            done = subprocess.run(
                harness.launch(["generate", f"--output={disk}/workload"]),
                capture_output=True,
                text=True,
                timeout=harness.PATIENCE,
            )
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
        """A run removes the partial file that a process of this host that has ended left for the same output. It keeps those of other
        outputs, other hosts and living processes."""
        output = self.folder / "results.h5"
        ended = subprocess.Popen(["true"])
        ended.wait()
        host = socket.gethostname()
        stale = self.folder / f"results.h5.partial.{host}.{ended.pid}"
        kept = [
            self.folder / name
            for name in (
                f"results.h5.partial.{host}.{os.getpid()}",
                f"results.h5.partial.elsewhere.{ended.pid}",
                f"other.h5.partial.{host}.{ended.pid}",
                f"results.h5.partial.{host}.x",
            )
        ]
        for path in [stale, *kept]:
            path.write_text("part")
        self.assertEqual(self.run_to(output).code, 0)
        self.assertFalse(stale.exists())
        for path in kept:
            self.assertTrue(path.exists(), path)

    def test_a_partial_file_that_is_locked_is_kept(self):
        """A run keeps a partial file that another process has locked."""
        import fcntl

        ended = subprocess.Popen(["true"])
        ended.wait()
        partial = self.folder / f"results.h5.partial.{socket.gethostname()}.{ended.pid}"
        with open(partial, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertEqual(self.run_to(self.folder / "results.h5").code, 0)
            self.assertTrue(partial.exists())

    def test_missing_folders_of_the_output_are_made(self):
        """`run` on 1 and 2 ranks, `generate`, `partition` and `show timeline` write into folders that were not there."""
        for ranks in (0, 2):
            output = self.folder / f"runs/{ranks}/results.h5"
            outcome = self.run_to(output, "--timeline", ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(len(harness.finish_times(output)), 4)
        for file, arguments in (
            (self.folder / "timelines/a/t.json", ["show", "timeline", self.folder / "runs/0/results.h5", "--chrome"]),
            (self.folder / "maps/a/map.2", ["partition", *self.files, "--ranks=2", "--output"]),
            (self.folder / "traces/a/w", ["generate", "--tp=2", "--pp=1", "--dp=1", "--layers=2", "--output"]),
        ):
            outcome = harness.orrery(*arguments, file)
            self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(
            {path.name for path in self.folder.rglob("a/*")}, {"t.json", "map.2", "w.json", "w.0.et", "w.1.et"}
        )

    def test_an_output_that_cannot_be_made_is_refused(self):
        """On 1 and 2 ranks, a run whose output would be below a file ends with exit code 5 and one message, which says why."""
        (self.folder / "file").write_text("")
        for ranks in (0, 2):
            outcome = self.run_to(self.folder / "file/results.h5", ranks=ranks)
            self.assertEqual(outcome.code, 5, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            self.assertIn(f"creating the folder '{self.folder}/file'): Not a directory", outcome.err)

    def test_an_output_without_permission_says_so(self):
        """In a folder that one may not enter, or not write to, and in a new folder within it: exit code 5, and the message names the
        permission. Root, who may do everything, tries it as another user."""
        config, user = harness.SOURCE / "configs/llama3-8b-64.yaml", {"user": 65534} if os.geteuid() == 0 else {}
        closed = self.folder / "closed"
        closed.mkdir()
        self.folder.chmod(0o755)
        self.addCleanup(closed.chmod, 0o755)
        for mode in (0o000, 0o555):
            closed.chmod(mode)
            for name in ("results.h5", "new/results.h5"):
                try:
                    done = subprocess.run(
                        [harness.BINARY, "run", config, f"--output={closed / name}"],
                        capture_output=True,
                        text=True,
                        timeout=harness.PATIENCE,
                        **user,
                    )
                except PermissionError:
                    self.skipTest("another user cannot run the program where it is")
                if str(config) in done.stderr:
                    self.skipTest("another user cannot read the repository")
                self.assertEqual(done.returncode, 5, done.stderr)
                self.assertEqual(done.stderr.count("orrery: error:"), 1, done.stderr)
                self.assertIn("Permission denied", done.stderr)

    def test_results_describe_themselves(self):
        """results.h5 names the program, the command, the libraries, the hosts and the inputs; every dataset has units and a
        description."""
        import h5py

        output = self.folder / "results.h5"
        self.assertEqual(self.run_to(output, "--timeline").code, 0)
        with h5py.File(output) as results:
            self.assertEqual(results.attrs["format"], "orrery-results")
            for name in (
                "format_version",
                "created",
                "orrery_version",
                "revision",
                "command_line",
                "mpi_library",
                "hdf5_version",
                "num_ranks",
                "status",
                "whole",
                "simulated_time",
                "preparation_time",
                "wall_time",
            ):
                self.assertIn(name, results.attrs)
            self.assertEqual(list(results["kernel/host"].asstr()), [socket.gethostname()])
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
        """A run of the configuration that is kept in results.h5 gives the same finish times."""
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
    """`orrery generate` for two NPUs."""

    SMALL = ("generate", "--tp=2", "--pp=1", "--dp=1", "--layers=1", "--micro-batches=1")

    def test_existing_files_need_force(self):
        """`generate` with one of its files there writes nothing: exit code 5 and one message. With --force it replaces the file."""
        prefix = f"--output={self.folder}/workload"
        (self.folder / "workload.1.et").write_text("older")
        outcome = harness.orrery(*self.SMALL, prefix)
        self.assertEqual(outcome.code, 5, outcome.err)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        self.assertRegex(outcome.err, r"workload\.1\.et.*exists.*--force")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["workload.1.et"], "nothing was written")
        self.assertEqual((self.folder / "workload.1.et").read_text(), "older")
        self.assertEqual(harness.orrery(*self.SMALL, prefix, "--force").code, 0)
        self.assertEqual(
            sorted(path.name for path in self.folder.iterdir()), ["workload.0.et", "workload.1.et", "workload.json"]
        )
        self.assertEqual(harness.orrery("show", "trace", self.folder / "workload.1.et").code, 0)
        self.assertEqual(harness.orrery(*self.SMALL, prefix).code, 5)

    def test_existing_files_are_kept_until_all_are_complete(self):
        """`generate --force` that fails halfway leaves the older files as they were."""
        import resource

        prefix = f"--output={self.folder}/workload"
        self.assertEqual(harness.orrery(*self.SMALL, prefix).code, 0)
        before = {path: path.read_bytes() for path in self.folder.iterdir()}
        larger = harness.launch([*self.SMALL[:-2], "--layers=64", "--micro-batches=8", prefix, "--force"])
        done = subprocess.run(
            larger,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000)),
        )
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual({path: path.read_bytes() for path in self.folder.iterdir()}, before)


class Stuck(harness.Folder):
    """Two groups of the same two NPUs, which each NPU enters in another order: no trace is wrong by itself, and nobody can go on."""

    def test_a_stuck_run_says_who_waits_for_what(self):
        """On 1, 2 and 4 ranks the run ends with exit code 4. The message has a line for each of the two NPUs, with file, node,
        collective and missing member, and says last what to do."""

        def collective(id, group, after):
            return Node(
                id, chakra.COLL, f"in_{group}", after, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20, pg_name=group
            )

        traces = [
            [collective(1, "left", []), collective(2, "right", [1])],
            [collective(1, "right", []), collective(2, "left", [1])],
        ] + two_nodes(2)
        for npu in (2, 3):
            traces[npu] = [Node(1, chakra.COMP, "alone", duration=1)]
        files = [harness.write_workload(self.folder, traces)] + harness.System(
            groups={"left": [0, 1], "right": [0, 1]}
        ).write(self.folder)
        output = self.folder / "results.h5"
        for ranks in (0, 2, 4):
            outcome = harness.orrery("run", *files, f"--output={output}", "--progress=none", ranks=ranks)
            self.assertEqual(outcome.code, 4, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            # Each line has the file, the NPU, the node and what it waits for; what to do comes last, and no empty line.
            lines = harness.messages(outcome)
            self.assertEqual(len(lines), 4, outcome.err)
            self.assertRegex(lines[0], "stuck: 2 of 4 NPUs do not finish$")
            for npu, group in ((0, "left"), (1, "right")):
                self.assertRegex(
                    lines[1 + npu],
                    rf"workload\.{npu}\.et: NPU {npu}, node 1 'in_{group}' waits from the start for all-reduce number 1 of "
                    rf"group '{group}' \(1048576 bytes\): 1 of 2 members are there, missing NPU {1 - npu}$",
                )
            self.assertRegex(lines[3], "Correct.*--dependencies")
            self.assertNotIn("\n\n", outcome.err.split("-----")[0])


class Killed(harness.Folder):
    def processes(self, word):
        """Returns the processes that have a word in their command lines."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.fsencode(str(word)) in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except (FileNotFoundError, ProcessLookupError):
                pass
        return found

    def wait_for_end(self, pids, output):
        """Waits until ranks have ended, which outlive mpirun for a moment. Fails, and kills them, if they do not."""
        deadline = time.monotonic() + harness.PATIENCE
        while left := set(pids) & set(self.processes(output)):
            if time.monotonic() > deadline:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                self.fail(f"ranks {sorted(left)} live on without mpirun")
            time.sleep(0.01)

    def test_ranks_end_with_mpirun_at_any_moment(self):
        """mpirun is killed at moments from before its ranks start to after MPI_Init. No rank lives on."""
        files = [harness.write_workload(self.folder, two_nodes())] + harness.System().write(self.folder)
        for moment in range(0, 200, 40 if harness.FEWER_CASES else 20):
            output = self.folder / f"{moment}.h5"
            run = harness.Background(self, harness.launch(["run", *files, f"--output={output}", harness.FOR_EVER], 2))
            time.sleep(moment / 1000)
            run.kill()
            self.wait_for_end(self.processes(output), output)

    def test_a_killed_run_leaves_no_results(self):
        """An endless run on 1 or 2 ranks is killed as soon as it has started, or while it simulates. It leaves no results.h5, and an
        older one as it was."""
        files = [harness.write_workload(self.folder, two_nodes())] + harness.System().write(self.folder)
        output = self.folder / "results.h5"
        for ranks, older, simulating in ((0, False, False), (0, True, True), (2, False, True), (2, True, False)):
            with self.subTest(ranks=ranks, older=older, simulating=simulating):
                output.unlink(missing_ok=True)
                if older:
                    output.write_text("older")
                command = harness.launch(
                    ["run", *files, f"--output={output}", "--force", harness.FOR_EVER, *harness.PROGRESS], ranks
                )
                run = harness.Background(self, command)
                if simulating:
                    run.wait_until_simulating()
                else:
                    run.wait_until(lambda: len(self.processes(output)) > (ranks > 0), "started")
                ranks_of_it = run.ranks()
                run.kill()
                self.wait_for_end(ranks_of_it, output)
                self.assertEqual(output.exists(), older)
                if older:
                    self.assertEqual(output.read_text(), "older")


if __name__ == "__main__":
    harness.main()
