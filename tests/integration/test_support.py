#!/usr/bin/python3
"""The tools that the tests themselves use: exit codes of test scripts, traces that are written and read, and reference cases."""
import pathlib
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import reference_case  # noqa: E402
from chakra import Node, Typed  # noqa: E402


class ExitCodes(harness.Folder):
    """Scripts of two tests each, of which some pass, fail or are skipped."""

    def exit_code(self, first, second, set_up="pass"):
        """Returns the exit code of a script whose two tests and whose setUpClass have these bodies."""
        script = self.folder / "test.py"
        script.write_text(textwrap.dedent(f"""
            import sys
            sys.path.insert(0, {str(harness.SOURCE / "tests/support")!r})
            import harness
            class Tests(harness.Folder):
                @classmethod
                def setUpClass(cls): {set_up}
                def test_first(self): {first}
                def test_second(self): {second}
            harness.main()
            """))
        return subprocess.run([sys.executable, script], capture_output=True, timeout=harness.PATIENCE).returncode

    def test_a_script_is_skipped_only_if_all_its_tests_are(self):
        """Tests that pass beside one that is skipped end with 0; if all are skipped, one by one or together, the script ends with 77."""
        skip = "harness.shared('no such file')"
        self.assertEqual(self.exit_code("pass", "pass"), 0)
        self.assertEqual(self.exit_code("pass", skip), 0)
        self.assertEqual(self.exit_code(skip, skip), harness.SKIPPED)
        self.assertEqual(self.exit_code("pass", "pass", set_up=skip), harness.SKIPPED)

    def test_a_failure_beside_skipped_tests_is_a_failure(self):
        """A test that fails or raises ends the script with 1, whatever the other one does."""
        skip, fail = "harness.shared('no such file')", "self.fail()"
        self.assertEqual(self.exit_code(fail, "pass"), 1)
        self.assertEqual(self.exit_code(skip, fail), 1)
        self.assertEqual(self.exit_code("pass", "raise OSError"), 1)


class Waiting(harness.Folder):
    """Commands that run while the test goes on."""

    def test_a_command_that_ends_too_soon_is_a_failure(self):
        """The command ends before the condition that the test waits for: the test fails and shows what the command printed."""
        command = harness.Background(self, ["sh", "-c", "echo too soon; exit 3"])
        with self.assertRaisesRegex(AssertionError, "(?s)ended with 3 before never.*too soon"):
            command.wait_until(lambda: False, "never")

    def test_a_command_still_running_is_killed(self):
        """A command that sleeps is killed with its children when the test ends."""
        command = harness.Background(self, ["sh", "-c", "echo begun; sleep 1000; true"])
        command.wait_until(lambda: "begun" in command.text(), "begun")
        command.kill()
        self.assertEqual(command.end().code, -9)


class Traces(harness.Folder):
    def test_what_is_written_is_read(self):
        """A trace with attributes of every type that is read, plain and compressed, has the same nodes when it is read."""
        nodes = [Node(7, chakra.COMP, "compute", duration=5, is_cpu_op=True, num_ops=1 << 40),
                 Node(3, chakra.COLL, "sum", [7], [1], comm_type=chakra.ALL_REDUCE, involved_dim=[True, False], pg_name="tp", inputs=["x", "16"]),
                 Node(1, chakra.SEND, "to", comm_dst=2, comm_tag=Typed("uint32", 9))]
        for compressed in (False, True):
            path = self.folder / "trace.et"
            chakra.write(path, nodes, compressed=compressed)
            found = chakra.read(path)
            for written, read in zip(nodes, found, strict=True):
                for name in ("id", "type", "name", "data_deps", "ctrl_deps", "duration"):
                    self.assertEqual(getattr(read, name), getattr(written, name))
                plain = {name: getattr(value, "value", value) for name, value in read.attributes.items()}
                self.assertEqual(plain, {name: getattr(value, "value", value) for name, value in written.attributes.items()})


class ReferenceCases(harness.Folder):
    CASE = '{"class": "exact", "flags": [], "npus": 4, "expected": {"unaware": {"status": "ok", "finish_ns": [%d, %d, %d, %d]}}}'

    def write_case(self, name, finish_ns):
        """Writes a case of 4 NPUs that compute for 5 us each, which are to finish at this time."""
        folder = self.folder / name
        folder.mkdir()
        harness.write_workload(folder, [[Node(1, chakra.COMP, duration=5)]] * 4)
        harness.System().write(folder)
        (folder / "expected.json").write_text(self.CASE % ((finish_ns,) * 4))

    def check(self, *arguments):
        return harness.run_script("tests/reference/check_cases.py", f"--cases={self.folder}", *arguments)

    def test_any_folder_of_cases_is_checked(self):
        """Two cases, one of which expects a wrong time: a line for each, `1 passed, 1 failed`, exit code 1; the right one alone passes."""
        self.write_case("right", 5000)
        self.write_case("wrong", 5001)
        self.assertEqual([case.name for case in reference_case.all_cases(self.folder)], ["right", "wrong"])
        both = self.check()
        lines = both.out.splitlines()
        self.assertEqual((both.code, len(lines), lines[-1]), (1, 3, "1 passed, 1 failed"), both.out)
        self.assertEqual(lines[0], "ok   exact  right: exact")
        self.assertRegex(lines[1], "^FAIL exact  wrong: NPU 0 finishes at 5000000 ps, expected 5001000 ps")
        right = self.check("--ranks=2", "right")
        self.assertEqual((right.code, right.out.splitlines()[-1]), (0, "1 passed, 0 failed"), right.out)

    def test_an_unknown_case_is_an_error(self):
        """A name that no case has ends with exit code 1 and a message that gives the name."""
        self.write_case("right", 5000)
        unknown = self.check("left")
        self.assertEqual(unknown.code, 1)
        self.assertIn("'left'", unknown.err)


if __name__ == "__main__":
    harness.main()
