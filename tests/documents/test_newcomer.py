#!/usr/bin/python3
"""A newcomer goes from a clone to tables in Python in 25 steps, each of which does what it should.

System: a fresh clone of the last commit with the program that was built, in PATH. The steps run in their order in one folder, as a
newcomer types them.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import harness

RING = "configs/ring-8.yaml"
LLAMA = "configs/llama3-8b-64.yaml"
# [(command, exit code, a part of what it prints)]
STEPS = [
    ("ls README.md docs/user-guide.md configs", 0, "llama3-8b-64.yaml"),
    ("orrery --version", 0, "HDF5"),
    ("orrery --help", 0, "run"),
    ("orrery show keys system.network", 0, "dimensions"),
    (f"orrery check {LLAMA}", 0, ""),
    (f"orrery show topology {LLAMA}", 0, "64"),
    (f"orrery run {LLAMA} --timeline --output llama.h5", 0, "step time"),
    (f"orrery run {LLAMA} --output llama.h5", 5, "--force"),
    (f"orrery run {LLAMA} --set 'system.network.dimensions.0.bandwidth=300 GB/s' --quiet --output faster.h5", 0, ""),
    (f"orrery run {LLAMA} --set system.network.dimensions.0.bandwith=1 --output no.h5", 3, "bandwidth"),
    ("orrery run nothing.yaml --output no.h5", 3, "nothing.yaml"),
    ("orrery rum", 2, "run"),
    (f"orrery check {RING}", 3, "workload"),
    ("orrery generate --tp 8 --pp 1 --dp 1 --layers 4 --output build/quickstart/ring-8/workload", 0, ""),
    (f"orrery check {RING}", 0, ""),
    ("orrery show trace build/quickstart/ring-8/workload.0.et", 0, "nodes"),
    (f"orrery show collective {RING} --kind all-reduce --bytes '64 MiB'", 0, "time"),
    (
        f"orrery run {RING} --output alone.h5 && scripts/mpirun.sh 2 orrery run {RING} --verbose --output two.h5",
        0,
        "on 2 ranks",
    ),
    ("h5diff --exclude-path /kernel --exclude-attribute / alone.h5 two.h5", 0, ""),
    ("orrery show timeline llama.h5 --chrome timeline.json.gz --npus 0-3 && gzip --test timeline.json.gz", 0, ""),
    ("orrery report llama.h5 faster.h5 --output report.html && test -s report.html", 0, ""),
    ("scripts/plot_results.py llama.h5 && test -s llama.png", 0, ""),
    ("python3 -c \"import h5py; print(h5py.File('llama.h5')['npus/finish_time'].shape)\"", 0, "(64,)"),
    ("PYTHONPATH=scripts/python python3 -c \"import orrery; print(orrery.open('llama.h5'))\"", 0, "step time"),
    (
        "PYTHONPATH=scripts/python python3 -c \"import orrery; print(len(orrery.compare(['llama.h5', 'faster.h5'])))\"",
        0,
        "2",
    ),
]


class Newcomer(harness.Folder):
    def setUp(self):
        super().setUp()
        if not (harness.SOURCE / ".git").exists() or not shutil.which("git"):
            self.skipTest("this is no clone: there is no .git, or no git")

    def clone(self):
        """Returns (clone, environment) of the last commit with the program in PATH."""
        clone = self.folder / "orrery"
        subprocess.run(
            ["git", "clone", "--quiet", str(harness.SOURCE), str(clone)],
            check=True,
            capture_output=True,
            timeout=harness.PATIENCE,
        )
        programs = clone / "build/release/bin"
        programs.mkdir(parents=True)
        (programs / "orrery").symlink_to(harness.BINARY)
        environment = {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), **harness.MPI}
        if pathlib.Path(sys.executable).parent != pathlib.Path("/usr/bin"):
            environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
        return clone, environment

    @harness.long
    def test_the_examples_of_the_readme_leave_the_clone_clean(self):
        """Each command of README.md and of the tutorial that is run at all can be typed twice. git sees no file that it does not ignore."""
        clone, environment = self.clone()
        for document in ("README.md", "docs/tutorial.md"):
            text = (clone / document).read_text()
            for name, content in re.findall(r"^<!-- file: (\S+) -->\n```yaml\n(.*?)^```$", text, re.M | re.S):
                (clone / name).parent.mkdir(parents=True, exist_ok=True)
                (clone / name).write_text(content)
            blocks = [
                code
                for mark, code in re.findall(r"(^<!-- not run.*-->\n)?^```sh\n(.*?)^```$", text, re.M | re.S)
                if not mark
            ]
            self.assertGreater(len(blocks), 2)
            for _ in range(2 if document == "README.md" else 1):
                done = subprocess.run(
                    ["bash", "-euc", "\n".join(blocks)],
                    cwd=clone,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    timeout=harness.PATIENCE,
                )
                self.assertEqual(done.returncode, 0, done.stdout)
        status = subprocess.run(
            ["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(status, "")

    def test_steps(self):
        """Each step ends with its exit code and prints what it should."""
        clone, environment = self.clone()
        self.assertEqual(len(STEPS), 25)
        for number, (command, code, part) in enumerate(STEPS, 1):
            done = subprocess.run(
                ["bash", "-euc", command],
                cwd=clone,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=harness.PATIENCE,
            )
            self.assertEqual(done.returncode, code, f"step {number}: {command}\n{done.stdout}")
            self.assertIn(part, done.stdout, f"step {number}: {command}")
        self.assertFalse((clone / "no.h5").exists())


if __name__ == "__main__":
    harness.main()
