#!/usr/bin/python3
"""cmake --install puts the Python package below the prefix, and it works there.

System: the build folder, installed into an empty prefix, component `python`. Expectation: lib/python3/dist-packages has the files of
scripts/python and no others, a program elsewhere imports them, and a plot script that is installed beside them finds them.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import examples
import harness

PACKAGE = harness.SOURCE / "scripts/python"


class Install(harness.Folder):
    def setUp(self):
        super().setUp()
        build = pathlib.Path(harness.BINARY).resolve().parents[1]
        self.prefix = self.folder / "prefix"
        done = subprocess.run(["cmake", "--install", str(build), "--prefix", str(self.prefix), "--component", "python"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.installed = self.prefix / "lib/python3/dist-packages"

    def run_python(self, *arguments, **environment):
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run([sys.executable, *map(str, arguments)], cwd=self.folder, env={**kept, **environment}, capture_output=True, text=True)

    def test_the_files_are_those_of_the_clone(self):
        def files(folder):
            return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir() or path.suffix == ".py"
                          if "__pycache__" not in path.parts)
        self.assertEqual(files(self.installed), files(PACKAGE))
        self.assertEqual([path for path in self.prefix.rglob("*") if path.is_file() and path.suffix != ".py"], [])

    def test_a_program_elsewhere_imports_it(self):
        results = examples.transformer(self.folder)
        done = self.run_python("-c", f"import orrery; print(orrery.__file__); print(orrery.open({str(results)!r}))", PYTHONPATH=str(self.installed))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(str(self.installed)), done.stdout)
        self.assertIn("step time", done.stdout)

    def test_an_installed_plot_script_finds_it(self):
        """The script stands in a folder below the prefix, as an installation has it, and PYTHONPATH is not set."""
        scripts = self.prefix / "share/orrery/scripts"
        scripts.mkdir(parents=True)
        shutil.copy(harness.SOURCE / "scripts/plot_kernel.py", scripts)
        results = examples.transformer(self.folder)
        done = self.run_python(scripts / "plot_kernel.py", results, "--output", self.folder / "picture.png")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "picture.png").read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    harness.main()
