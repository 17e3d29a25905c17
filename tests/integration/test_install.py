#!/usr/bin/python3
"""`cmake --install` installs what a user needs, and what is installed works without the repository.

usage: test_install.py BUILD

BUILD is the folder in which the program was built. It is installed once into a temporary prefix.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

BUILD = sys.argv.pop() if len(sys.argv) > 1 and pathlib.Path(sys.argv[-1]).is_dir() else None
SMALL_STEP = ["--set=workload.model.layers=4", "--set=workload.parallel.micro-batches=4"]
PACKAGES = "lib/python3/dist-packages"
# What is installed below the prefix, and where it is in the repository.
FOLDERS = {
    "share/orrery/configs": "configs",
    "share/orrery/partitions": "partitions",
    "share/orrery/scripts/slurm": "scripts/slurm",
    "share/doc/orrery/docs": "docs",
    "share/orrery/examples": "examples",
    PACKAGES + "/orrery": "scripts/python/orrery",
}
FILES = {
    **{
        f"share/orrery/scripts/{name}": f"scripts/{name}"
        for name in (
            "mpirun.sh",
            "plot_kernel.py",
            "plot_links.py",
            "plot_queues.py",
            "plot_results.py",
            "plot_scaling.py",
        )
    },
    **{f"share/doc/orrery/{name}": name for name in ("README.md", "CHANGELOG.md", "LICENSE")},
}
# What the program makes itself, and how it is asked for it.
ZSH = "vendor-completions" if pathlib.Path("/etc/debian_version").exists() else "site-functions"
MADE = {
    "share/bash-completion/completions/orrery": ["completion", "bash"],
    "share/fish/vendor_completions.d/orrery.fish": ["completion", "fish"],
    f"share/zsh/{ZSH}/_orrery": ["completion", "zsh"],
    "share/man/man1/orrery.1": ["man"],
    "share/orrery/configs/schema.json": ["keys", "--schema"],
}


def commands():
    """Returns the names of the manual pages of all commands: what the program completes after `orrery show man`."""
    completion = harness.orrery("show", "completion", "bash").out
    return re.search(r"'show man'\) .* arguments='([^']*)'", completion)[1].split()


class Install(harness.Folder):
    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(tempfile.mkdtemp(prefix="orrery-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    def run_installed(self, *command):
        """Runs a command with the installed program in the path, outside the repository, and returns what it prints."""
        environment = {**os.environ, "PATH": f"{self.prefix / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.folder,
            timeout=harness.PATIENCE,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_what_a_user_needs_is_there_and_nothing_else(self):
        """The prefix holds the program, copies of the examples, scripts, documents and the licence, a manual page of each command, completions
        and the schema of CONFIG.yaml as the program prints them, the headers and static libraries of the modules, and the package for CMake: no tests.
        """
        made = {**MADE, **{f"share/man/man1/orrery-{name}.1": ["man", name] for name in commands()}}
        expected = {"bin/orrery": None, **FILES, **dict.fromkeys(made)}
        for installed, source in FOLDERS.items():
            files = (
                path
                for path in (harness.SOURCE / source).rglob("*")
                if path.is_file() and "__pycache__" not in path.parts
            )
            expected |= {
                f"{installed}/{path.relative_to(harness.SOURCE / source)}": path.relative_to(harness.SOURCE)
                for path in files
            }
        libraries, package = self.libraries(), "cmake/orrery/orrery-"
        modules = (
            (harness.SOURCE / "src/CMakeLists.txt").read_text().split("set(ORRERY_ORDER ")[1].split(")")[0].split()
        )
        modules = modules[: modules.index("run") + 1]
        expected |= {
            f"include/{path.relative_to(harness.SOURCE / 'include')}": path.relative_to(harness.SOURCE)
            for module in modules
            for path in (harness.SOURCE / "include/orrery" / module).rglob("*.hpp")
        }
        expected |= {f"{libraries}/liborrery_{module}.a": None for module in modules}
        expected |= {
            f"{libraries}/{package}config.cmake": "src/orrery-config.cmake",
            f"{libraries}/{package}config-version.cmake": None,
            f"{libraries}/{package}targets.cmake": None,
            f"{libraries}/{package}targets-release.cmake": None,
        }
        found = {
            str(path.relative_to(self.prefix))
            for path in self.prefix.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        self.assertEqual(found, set(expected))
        for installed, arguments in made.items():
            self.assertEqual((self.prefix / installed).read_text(), harness.orrery("show", *arguments).out, installed)
        for installed, source in expected.items():
            if source:
                self.assertEqual(
                    (self.prefix / installed).read_bytes(), (harness.SOURCE / source).read_bytes(), installed
                )
                self.assertEqual(
                    os.access(self.prefix / installed, os.X_OK), os.access(harness.SOURCE / source, os.X_OK), installed
                )

    def libraries(self):
        """Returns the folder of libraries below the prefix: lib, or lib/x86_64-linux-gnu."""
        return str(next(self.prefix.rglob("liborrery_run.a")).parent.relative_to(self.prefix))

    def configure_example(self, *options):
        """Configures examples/embed against the prefix, in the folder build."""
        return subprocess.run(
            [
                "cmake",
                "-S",
                self.prefix / "share/orrery/examples/embed",
                "-B",
                self.folder / "build",
                f"-DCMAKE_PREFIX_PATH={self.prefix}",
                *options,
            ],
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
        )

    def test_the_library_runs_simulations_in_another_program(self):
        """examples/embed is built against the prefix. On two ranks it prints, for each of four bandwidths, the step time that the program
        gives; a configuration that is not there ends it with a message."""
        done = self.configure_example("-DCMAKE_BUILD_TYPE=Release")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        subprocess.run(
            ["cmake", "--build", self.folder / "build"], check=True, stdout=subprocess.DEVNULL, timeout=harness.PATIENCE
        )
        share, sweep = self.prefix / "share/orrery", self.folder / "build/sweep"
        config = share / "configs/llama3-8b-64.yaml"
        lines = self.run_installed(share / "scripts/mpirun.sh", 2, sweep, config).splitlines()
        self.assertEqual(lines[0].split(), ["bandwidth", "step", "time", "MFU"])
        for line in lines[1:]:
            bandwidth, _, time, _, _, _ = line.split()
            setting = f"--set=system.network.dimensions.0.bandwidth={bandwidth} GB/s"
            step = max(harness.finish_times(self.run_once([config, setting], f"{bandwidth}.h5")))
            self.assertAlmostEqual(float(time), step * 1e-9, delta=0.0006, msg=line)
        self.assertEqual([line.split()[0] for line in lines[1:]], ["75", "150", "300", "600"])
        failed = subprocess.run(
            [sweep, self.folder / "none.yaml"], capture_output=True, text=True, timeout=harness.PATIENCE
        )
        self.assertEqual(failed.returncode, 1)
        self.assertIn("none.yaml", failed.stderr)

    def test_a_library_that_is_missing_is_named(self):
        """Without MPI or HDF5 find_package(orrery) says which of them is missing and what Debian calls it."""
        for package, debian in (("MPI", "libopenmpi-dev"), ("HDF5", "libhdf5-dev")):
            done = self.configure_example(f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(
                f"orrery needs {package}, which is missing (on Debian: {debian})", " ".join(done.stderr.split())
            )
            shutil.rmtree(self.folder / "build")

    def test_presets_are_found_in_the_prefix(self):
        """A configuration in any folder that names a system and a model gets those of the prefix: its program knows no repository."""
        config = self.folder / "config.yaml"
        config.write_text(
            "system: {base: dgx-h100-superpod}\nworkload: {model: llama3-8b, parallel: {tp: 8, dp: 128}}\n"
        )
        self.run_installed("orrery", "show", "topology", config)
        preset = self.prefix / "share/orrery/configs/models/llama3-8b.yaml"
        text = preset.read_text()
        self.addCleanup(preset.write_text, text)
        self.assertIn("1024 NPUs", self.run_installed("orrery", "generate", config, "--dry-run"))
        preset.unlink()
        refused = subprocess.run(
            [self.prefix / "bin/orrery", "generate", config, "--dry-run"],
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
        )
        self.assertEqual(refused.returncode, 3)
        self.assertIn(str(preset.with_suffix("")), refused.stderr)

    def test_the_installed_program_and_scripts_run(self):
        """The installed program runs an installed configuration on two ranks by the installed mpirun.sh, and plot_results.py draws the results."""
        share = self.prefix / "share/orrery"
        self.assertIn("orrery", self.run_installed("orrery", "--version"))
        results, picture = self.folder / "results.h5", self.folder / "results.png"
        self.run_installed(
            share / "scripts/mpirun.sh",
            2,
            "orrery",
            "run",
            share / "configs/llama3-8b-64.yaml",
            *SMALL_STEP,
            f"--output={results}",
        )
        self.assertEqual(len(harness.finish_times(results)), 64)
        self.run_installed(sys.executable, share / "scripts/plot_results.py", results, "--output", picture)
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        reader = f"import sys; sys.path.insert(0, {str(self.prefix / PACKAGES)!r}); import orrery; print(orrery.__file__, orrery.open({str(results)!r}))"
        printed = self.run_installed(sys.executable, "-c", reader)
        self.assertIn(str(self.prefix / PACKAGES), printed)
        self.assertIn("step time", printed)
        self.assertIn("step time", self.run_installed("orrery", "show", "results", results))
        page = self.folder / "report.html"
        self.run_installed("orrery", "report", results, "--output", page)
        self.assertIn("</html>", page.read_text())


if __name__ == "__main__":
    if BUILD is None:
        sys.exit("usage: test_install.py BUILD")
    harness.main()
