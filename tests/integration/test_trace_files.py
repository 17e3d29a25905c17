#!/usr/bin/python3
"""Traces that are not those of the system's NPUs, by their number: one message that names the traces and the key, on one rank and on
several. ASTRA-sim's flags ignore traces that are too many, with a warning."""
import gzip
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402


def sum_of(group):
    return [Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=4096, pg_name=group)]


class TraceFiles(harness.Folder):
    def setUp(self):
        super().setUp()
        # 8 traces, with groups of 4 that a smaller system does not have.
        for npu in range(8):
            chakra.write(self.folder / f"w.{npu}.et", sum_of("low" if npu < 4 else "high"))
        (self.folder / "groups.json").write_text('{"low": [0, 1, 2, 3], "high": [4, 5, 6, 7]}')

    def config(self, num_npus, traces="w"):
        path = self.folder / "config.yaml"
        path.write_text(
            f"system: {{network: {{dimensions: [{{shape: Ring, size: {num_npus}, bandwidth: 50 GB/s, latency: 500 ns}}]}}}}\n"
            f"workload: {{traces: {traces}, groups: groups.json}}\n"
        )
        return path

    def only_message(self, num_npus, words, traces="w"):
        """Checks that run (on 1 and 3 ranks, folded too) and check refuse the traces with one message that has these words."""
        config = self.config(num_npus, traces)
        run = ["run", config, f"--output={self.folder / 'r.h5'}", "--force"]
        for command, ranks in (
            (run, 0),
            (run, 3),
            (run + ["--partition=metis"], 3),
            (run + ["--fold"], 0),
            (["check", config], 0),
        ):
            with self.subTest(command=command, ranks=ranks):
                outcome = harness.orrery(*command, ranks=ranks)
                self.assertEqual(outcome.code, 3, outcome.err)
                lines = harness.messages(outcome)
                self.assertEqual(len(lines), 1, outcome.err)
                for word in words:
                    self.assertIn(word, lines[0])

    def test_fewer_traces_than_npus(self):
        """A system of 16 NPUs with 8 traces is refused in one line that has both numbers and the keys."""
        self.only_message(
            16,
            (
                "w.8.et",
                "there are traces for 8 NPUs, but the system has 16",
                "workload.traces",
                "system.network.dimensions",
            ),
        )

    def test_no_trace(self):
        """A prefix without any trace is refused in one line that has the first name and the key."""
        self.only_message(
            16, ("none.0.et", "nor that of any other NPU", "traces for 16 NPUs", "workload.traces"), traces="none"
        )

    def test_a_trace_in_between_is_named(self):
        """Of 8 traces the one of NPU 5 is missing: the message names it alone."""
        (self.folder / "w.5.et").unlink()
        self.only_message(8, ("w.5.et", "there is no such file"))

    def test_more_traces_than_npus(self):
        """A system of 4 NPUs with 8 traces of a prefix is refused in one line that has both numbers and the way out. A list that says
        which traces count runs."""
        self.only_message(
            4,
            (
                "w.7.et",
                "there are traces for 4 NPUs more than the 4 of the system",
                "system.network.dimensions",
                "npus: 0-3, file:",
            ),
        )
        (self.folder / "groups.json").write_text('{"low": [0, 1, 2, 3]}')
        outcome = harness.orrery(
            "run", self.config(4, "[{npus: 0-3, file: 'w.{npu}.et'}]"), f"--output={self.folder / 'r.h5'}"
        )
        self.assertEqual((outcome.code, outcome.err), (0, ""))

    def refuse_in_little_memory(self, contents, *words):
        """Checks that `show trace` and a run refuse a trace with these words, and take no more memory than for a small file."""
        (self.folder / "w.0.et").write_bytes(contents)
        for command in (
            ["show", "trace", self.folder / "w.0.et"],
            ["run", self.config(8), f"--output={self.folder / 'r.h5'}"],
        ):
            with open(self.folder / "said", "w+") as said:
                process = subprocess.Popen(harness.launch(command), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                said.seek(0)
                text = said.read()
            self.assertEqual(process.returncode, 3, text)
            for word in ("w.0.et", *words):
                self.assertIn(word, text)
            if not harness.SANITIZED:
                self.assertLess(usage.ru_maxrss, 200 << 10, "KiB")

    def test_zeros_take_no_memory(self):
        """A power failure or a copy that was not finished leaves zero bytes: alone, packed, or behind a trace. Each would be a node. So would
        other small messages, with one id or of no type. A trace with many nodes that cannot be is refused at the first few.
        """
        trace = (self.folder / "w.0.et").read_bytes()
        self.refuse_in_little_memory(bytes(10_000_000), "the file holds zero bytes only")
        self.refuse_in_little_memory(gzip.compress(bytes(30_000_000), 1), "the file holds zero bytes only")
        self.refuse_in_little_memory(trace + bytes(10_000_000), "has the id 0 and the type 0", "zero bytes")
        self.refuse_in_little_memory(trace + b"\x02\x08\x07" * 3_000_000, "has the id 7", "used twice")
        self.refuse_in_little_memory(
            trace + b"".join(b"\x04\x08" + bytes([i]) + b"\x18\x63" for i in range(64)) * 50_000, "the type 99"
        )

    def test_astra_sims_flags_ignore_more_traces(self):
        """A system of 4 NPUs in ASTRA-sim's files with 8 traces runs, with one warning that has the number of traces."""
        files = harness.System(groups={"low": [0, 1, 2, 3]}).write(self.folder)
        for ranks in (0, 3):
            outcome = harness.orrery(
                "run",
                f"--workload-configuration={self.folder / 'w'}",
                *files,
                f"--output={self.folder / 'r.h5'}",
                "--force",
                ranks=ranks,
            )
            self.assertEqual(outcome.code, 0, outcome.err)
            warnings = [line for line in harness.messages(outcome) if "warning" in line]
            self.assertEqual(len(warnings), 1, outcome.err)
            self.assertIn("there are traces for 4 NPUs more than the 4 of the system: ignored", warnings[0])


if __name__ == "__main__":
    harness.main()
