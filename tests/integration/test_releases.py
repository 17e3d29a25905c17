#!/usr/bin/python3
"""What released versions wrote is read: tests/data/v*/ has results and a checkpoint of each (tests/data/make_release.py)."""
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

DATA = sorted((harness.SOURCE / "tests/data").glob("v*"))
STEP_TIME = {"v0.2.0": 480_524_449}  # ps of the step of run.yaml, as the version wrote it


class Releases(harness.Folder):
    def unpacked(self, data):
        """Returns a copy of the results of a release."""
        path = self.folder / f"{data.name}.h5"
        path.write_bytes(gzip.decompress((data / "results.h5.gz").read_bytes()))
        return path

    def test_each_release_has_data(self):
        """Each version of the changelog from 0.2.0 on has a folder with results, a configuration and a checkpoint, and a step time here."""
        versions = re.findall(r"^## (\d+\.\d+\.\d+)", (harness.SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)
        self.assertEqual({data.name for data in DATA}, {f"v{version}" for version in versions if version != "0.1.0"})
        self.assertEqual(set(STEP_TIME), {data.name for data in DATA})
        for data in DATA:
            self.assertEqual({path.name for path in data.iterdir()}, {"results.h5.gz", "run.yaml", "run.chk"})

    def test_results_are_shown_and_compared(self):
        """`show results` prints the step time of a release, and `compare` with a run of this version finds a step of the same time."""
        for data in DATA:
            old = self.unpacked(data)
            shown = harness.orrery("show", "results", old, "--format", "json", fresh=True)
            self.assertEqual(shown.code, 0, shown.err)
            self.assertEqual(json.loads(shown.out)["step_time"], STEP_TIME[data.name])
            new = self.run_once([data / "run.yaml", "--iterations=2"], f"{data.name}-now.h5")
            compared = harness.orrery("compare", old, new, "--format", "json", fresh=True)
            self.assertEqual(compared.code, 0, compared.err)
            figures = {figure["name"]: figure["values"] for figure in json.loads(compared.out)["figures"]}
            self.assertEqual(figures["step time"], [STEP_TIME[data.name]] * 2)

    def test_python_reads_the_results(self):
        """The Python package gives the version, the status and the step time that the release wrote, in picoseconds."""
        for data in DATA:
            code = (
                "import sys, orrery\n"
                "run = orrery.open(sys.argv[1], times='ps')\n"
                "print(run.attributes['orrery_version'], run.attributes['status'], int(run.metrics['value']['step_time']), len(run.npus))\n"
            )
            done = subprocess.run(
                ["/usr/bin/python3", "-c", code, str(self.unpacked(data))],
                capture_output=True,
                text=True,
                env={"PYTHONPATH": str(harness.SOURCE / "scripts/python"), "PATH": "/usr/bin:/bin"},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.split(), [data.name[1:], "complete", str(STEP_TIME[data.name]), "2"])

    def test_a_checkpoint_goes_on_or_is_refused_by_name(self):
        """A run from the checkpoint of a release goes on, or ends with exit code 3 and a message that names both versions. A checkpoint of
        which a byte is changed is refused as damaged."""
        for data in DATA:
            shutil.copy(data / "run.chk", self.folder / "run.chk")
            outcome = harness.orrery(
                "run",
                data / "run.yaml",
                f"--restart={self.folder / 'run.chk'}",
                f"--output={self.folder / 'on.h5'}",
                "--record-iterations=0",
                "--max-walltime=1",
                "--quiet",
                "--force",
                fresh=True,
            )
            self.assertIn(outcome.code, (0, 3, 75), outcome.err)
            if outcome.code == 3:
                self.assertIn(f"the checkpoint was written by orrery {data.name[1:]}", outcome.err)
                self.assertIn("and this is orrery", outcome.err)
            damaged = bytearray((data / "run.chk").read_bytes())
            damaged[len(damaged) // 2] ^= 0x40
            (self.folder / "damaged.chk").write_bytes(damaged)
            outcome = harness.orrery(
                "run",
                data / "run.yaml",
                f"--restart={self.folder / 'damaged.chk'}",
                f"--output={self.folder / 'no.h5'}",
                "--quiet",
                fresh=True,
            )
            self.assertEqual(outcome.code, 3, outcome.err)


if __name__ == "__main__":
    harness.main()
