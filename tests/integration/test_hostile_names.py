#!/usr/bin/python3
"""Names that would control a terminal, are no UTF-8, or come in great numbers.

The system: 2 NPUs with one node each. `check` under mpirun is here as well, because its output is looked at too."""
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e"


class HostileNames(harness.Folder):
    def inputs(self, nodes, groups=None):
        """Writes traces of these nodes for both NPUs and returns the flags."""
        return [harness.write_workload(self.folder, [nodes, nodes])] + harness.System(counts=(2,), groups=groups).write(
            self.folder
        )

    def assert_harmless(self, outcome):
        for text in (outcome.out, outcome.err):
            self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")

    def test_names_do_not_control_the_terminal(self):
        """The name of a node and of a group, in a run, in `show trace`, in `show results` and in a refusal."""
        name = "sum" + HOSTILE
        nodes = [Node(1, chakra.COLL, name, comm_type=chakra.ALL_REDUCE, comm_size=1 << 20, pg_name="tp" + HOSTILE)]
        output = self.folder / "results.h5"
        inputs = self.inputs(nodes, {"tp" + HOSTILE: [0, 1]})
        outcome = harness.orrery("run", *inputs, "--timeline", "--verbose", f"--output={output}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("sum?", outcome.out, "the critical path names the node")
        self.assert_harmless(outcome)
        for command in (
            ["show", "trace", self.folder / "workload.0.et"],
            ["show", "trace", self.folder / "workload.0.et", "--nodes"],
            ["show", "results", output],
            ["compare", output, output],
        ):
            with self.subTest(command=command[:2]):
                outcome = harness.orrery(*command)
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assert_harmless(outcome)
        (self.folder / "comm_group.json").write_text(json.dumps({"other" + HOSTILE: [0, 1]}))
        outcome = harness.orrery("check", *inputs)
        self.assertEqual(outcome.code, 3)
        self.assert_harmless(outcome)

    def test_many_faulty_members_take_linear_time(self):
        """A communicator file with 200,000 members out of range, each on its own line, is refused in seconds, not in minutes."""
        inputs = self.inputs([Node(1, chakra.COMP, "c", duration=1)], {"g": [0]})
        (self.folder / "comm_group.json").write_text('{"g": [' + ",\n".join(["9"] * 200_000) + "]}")
        start = time.monotonic()
        outcome = harness.orrery("check", *inputs)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(outcome.code, 3)
        self.assertRegex(outcome.err, r"comm_group\.json:1: key 'g': member 9 is out of range")

    def test_many_unknown_groups_take_linear_time(self):
        """Traces of 20,000 nodes that each name an unknown group, with 20,000 known ones, are refused in seconds."""
        nodes = [
            Node(i, chakra.COLL, "c", comm_type=chakra.ALL_REDUCE, comm_size=8, pg_name=f"u{i}")
            for i in range(1, 20_001)
        ]
        inputs = self.inputs(nodes, {f"g{i:05}": [0, 1] for i in range(20_000)})
        start = time.monotonic()
        outcome = harness.orrery("check", *inputs)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(outcome.code, 3)
        self.assertIn(
            "process group 'u1' is not known; expected one of 'g00000', 'g00001', 'g00002', 'g00003', 'g00004', ... (20000 in all)",
            outcome.err,
        )

    def test_check_under_mpirun_prints_once(self):
        """`check` on 3 ranks prints what it prints on one, for good and for bad input."""
        inputs = self.inputs([Node(1, chakra.COMP, "c", duration=1)])
        for code, text in ((0, "nothing wrong was found"), (3, "orrery: error:")):
            if code:
                (self.folder / "workload.1.et").unlink()
            outcome = harness.orrery("check", *inputs, ranks=3)
            self.assertEqual(outcome.code, code, outcome.err)
            self.assertEqual((outcome.out + outcome.err).count(text), 1, outcome.out + outcome.err)

    def test_a_long_option_is_an_error(self):
        """Options of 100,000 characters, alone and as values, end with a message and no crash."""
        for argument in (
            "--" + "x" * 100_000,
            "--output=" + "x" * 100_000,
            "-" + "x" * 100_000,
            "--set=" + "x" * 100_000,
        ):
            with self.subTest(argument=argument[:10]):
                done = subprocess.run(
                    harness.launch(["run", "config.yaml", argument]),
                    capture_output=True,
                    text=True,
                    timeout=harness.PATIENCE,
                )
                self.assertIn(done.returncode, (2, 3, 5), done.stderr[:300])


if __name__ == "__main__":
    harness.main()
