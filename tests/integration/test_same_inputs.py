#!/usr/bin/python3
"""Ranks that see different inputs are refused before the simulation, with the name of what differs, and nothing is written.

Each rank runs in a folder of its own, which stands for a machine of its own. The system: 4 NPUs in two pairs, with Chakra traces, or with
one GOAL file for all."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

CONFIG = """\
system:
  network:
    dimensions: [{{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}}]
workload:
  traces: {traces}
"""
GROUPS = '{"a": [0, 1], "b": [2, 3]}'
GOAL = "num_ranks 4\n" + "".join(f"rank {npu} {{\nl1: calc 100\n}}\n" for npu in range(4))


class SameInputs(harness.Folder):
    def setUp(self):
        super().setUp()
        first = self.folder / "0"
        first.mkdir()
        (first / "config.yaml").write_text(CONFIG.format(traces="w.{npu}.et") + "  groups: groups.json\n")
        (first / "goal.yaml").write_text(CONFIG.format(traces="all.goal"))
        (first / "groups.json").write_text(GROUPS)
        (first / "all.goal").write_text(GOAL)
        for npu in range(4):
            self.write_trace(first, npu, 5)
        for rank in (1, 2):
            shutil.copytree(first, self.folder / str(rank))
        self.output = self.folder / "results.h5"

    def write_trace(self, folder, npu, duration):
        chakra.write(
            folder / f"w.{npu}.et",
            [
                Node(1, chakra.COMP, "work", duration=duration),
                Node(
                    2, chakra.COLL, "sum", [1], comm_type=chakra.ALL_REDUCE, comm_size=1 << 20, pg_name="ab"[npu // 2]
                ),
            ],
        )

    def run_in_folders(self, *arguments, ranks=3, option_of_rank_1=""):
        """Runs the program on ranks that each have a folder of their own, and returns the Outcome."""
        script = f'cd "$0/$OMPI_COMM_WORLD_RANK" && [ "$OMPI_COMM_WORLD_RANK" != 1 ] || set -- "$@" {option_of_rank_1}; exec "$@"'
        command = [
            harness.SOURCE / "scripts/mpirun.sh",
            str(ranks),
            "sh",
            "-c",
            script,
            self.folder,
            harness.BINARY,
            "run",
            *arguments,
            f"--output={self.output}",
            "--quiet",
            "--progress=none",
            "--force",
        ]
        done = subprocess.run(
            list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE
        )
        return harness.Outcome(done.returncode, done.stdout, done.stderr)

    def assert_refused(self, expected, *arguments, **more):
        outcome = self.run_in_folders(*arguments, **more)
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        self.assertRegex(outcome.err, expected)
        self.assertFalse(self.output.exists())

    def test_equal_inputs_are_good(self):
        """Folders of equal contents give the results of one rank, folded or not."""
        one = self.folder / "one.h5"
        self.assertEqual(
            harness.orrery("run", "config.yaml", f"--output={one}", "--quiet", cwd=self.folder / "0").code, 0
        )
        for more in ([], ["--fold"]):
            self.assertEqual(self.run_in_folders("config.yaml", *more).code, 0)
            self.assertEqual(harness.difference(one, self.output), "")
        self.assertEqual(self.run_in_folders("goal.yaml").code, 0)

    def test_another_configuration(self):
        """Rank 2 reads another bandwidth: the message names the rank and the file."""
        path = self.folder / "2/config.yaml"
        path.write_text(path.read_text().replace("100 GB", "50 GB"))
        self.assert_refused(
            r"rank 2 on \S+ has read another configuration than rank 0 on \S+: configuration.yaml is not the same",
            "config.yaml",
        )

    def test_other_groups(self):
        """Rank 1 reads another communicator file."""
        (self.folder / "1/groups.json").write_text('{"a": [0, 1], "b": [3, 2]}')
        self.assert_refused(r"rank 1 on .*: groups.json is not the same", "config.yaml")

    def test_other_options(self):
        """Rank 1 has a key more in its configuration, by which it would not enter the same collective calls of MPI."""
        path = self.folder / "1/config.yaml"
        path.write_text(path.read_text() + "run: {fold: true}\n")
        self.assert_refused(r"rank 1 on .*: configuration.yaml is not the same", "config.yaml")

    def test_other_flags(self):
        """Rank 1 has an option more on its command line, which a script adds where a file is."""
        for option in ("--timeline", "--fold", "--checkpoint=run.chk", "--restart=run.chk", "--partition=round-robin"):
            self.assert_refused(
                r"rank 1 on .*: the set of options below `run` is not the same", "config.yaml", option_of_rank_1=option
            )

    def test_another_trace_in_a_folded_run(self):
        """NPU 1 is slower than the others, so that it is a class of its own. Rank 0 reads its trace to find the classes, and rank 1 reads
        another one to simulate it."""
        for rank in range(3):
            self.write_trace(self.folder / str(rank), 1, 7 if rank == 1 else 6)
        self.assert_refused(r"w\.1\.et: rank 1 has read it with other contents than rank 0", "config.yaml", "--fold")

    def test_another_file_of_all_traces(self):
        """Every rank reads a file with the traces of all NPUs, and rank 1 reads another one."""
        (self.folder / "1/all.goal").write_text(GOAL.replace("calc 100", "calc 200"))
        self.assert_refused(r"all\.goal: rank 1 has read it with other contents than rank 0", "goal.yaml")


if __name__ == "__main__":
    harness.main()
