#!/usr/bin/python3
"""The Debian package holds what `cmake --install` installs and names what it needs, and the recipes in scripts/packaging fit the repository.

usage: test_packaging.py BUILD

BUILD is the folder in which the program was built. With ORRERY_TEST_DEB_INSTALL set, as root and with debootstrap and the network, the
package is installed on a clean Debian 12 too, which takes some minutes.
"""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

BUILD = sys.argv.pop() if len(sys.argv) > 1 and pathlib.Path(sys.argv[-1]).is_dir() else None
RECIPES = harness.SOURCE / "scripts/packaging"
EASYCONFIG = RECIPES / "orrery-0.2.0-foss-2023a.eb"
CMAKE = (harness.SOURCE / "CMakeLists.txt").read_text()
VERSION = re.search(r"project\(orrery VERSION ([\d.]+)", CMAKE)[1]
NEEDED = ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file")
# The libraries of CMakeLists.txt as Spack and EasyBuild call them, where that is no change of case.
OTHER_NAMES = {
    "zlib": {"zlib", "zlib-api"},
    "nlohmann_json": {"nlohmann_json", "nlohmann-json"},
    "mpi": {"mpi", "foss"},
}


def printed(*command, **more):
    """Runs another program to success and returns what it prints."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=harness.PATIENCE, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_linked_as_archive(library):
    """Returns whether the program holds a library itself (ORRERY_ARCHIVES), so that no machine needs it."""
    archives = (pathlib.Path(BUILD) / "archives.txt").read_text().split()
    return any(pathlib.Path(archive).name.startswith(library) for archive in archives)


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@harness.long
@unittest.skipUnless(all(map(shutil.which, NEEDED)), f"it needs {', '.join(NEEDED)}")
class Package(unittest.TestCase):
    """The package that cpack makes of the build."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-deb-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        printed("cpack", "-G", "DEB", "-B", cls.folder / "made", cwd=BUILD)
        [cls.package] = (cls.folder / "made").glob("*.deb")

    def field(self, name):
        return printed("dpkg-deb", "--field", self.package, name).strip()

    def test_it_holds_what_is_installed(self):
        """The files below /usr of the package are those that `cmake --install` puts below a prefix, without the library's headers and
        archives, and there are no others."""
        for component in ("Unspecified", "python"):
            printed("cmake", "--install", BUILD, "--component", component, "--prefix", self.folder / "prefix/usr")
        printed("dpkg-deb", "--extract", self.package, self.folder / "content")
        self.assertEqual(files_below(self.folder / "content"), files_below(self.folder / "prefix"))
        self.assertIn(VERSION, printed(self.folder / "content/usr/bin/orrery", "--version"))

    def test_it_names_what_it_needs(self):
        """Name, version and architecture are right, each shared library is a dependency, and mpirun and Python's packages are recommended."""
        architecture = printed("dpkg", "--print-architecture").strip()
        self.assertEqual(self.package.name, f"orrery_{VERSION}_{architecture}.deb")
        self.assertEqual(
            [self.field(name) for name in ("Package", "Version", "Architecture")], ["orrery", VERSION, architecture]
        )
        for library in (
            "libc6",
            "libfmt",
            "libhdf5",
            "libmetis",
            "libopenmpi",
            "libprotobuf",
            "libsimdjson",
            "libspdlog",
            "libtinyxml2",
            "libyaml-cpp",
            "zlib1g",
        ):
            check = self.assertNotRegex if is_linked_as_archive(library) else self.assertRegex
            check(self.field("Depends"), rf"(^|, ){library}")
        recommended = set(self.field("Recommends").split(", "))
        setup = (harness.SOURCE / "scripts/setup.sh").read_text()
        self.assertEqual(recommended, {"openmpi-bin", *re.search(r"^  (python3 .*)$", setup, re.M)[1].split()})
        self.assertRegex(self.field("Maintainer"), r"^.+ <\S+@\S+>$")

    @unittest.skipUnless(
        os.environ.get("ORRERY_TEST_DEB_INSTALL"), "it needs the network; set ORRERY_TEST_DEB_INSTALL to run it"
    )
    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("debootstrap"), "it needs root and debootstrap")
    def test_it_installs_on_a_clean_debian(self):
        """scripts/packaging/check_deb.sh installs the package in a chroot, runs it there and removes it."""
        done = subprocess.run([RECIPES / "check_deb.sh", self.package], capture_output=True, text=True, timeout=1700)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])


@harness.long
@unittest.skipUnless(
    all(map(shutil.which, ("cmake", "ldd", "readelf", "strip"))), "it needs cmake, ldd, readelf and strip"
)
class Portable(unittest.TestCase):
    """The archive and the wheel that make_portable.py makes of the build, installed and run where only MPI and the system are to be found."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-portable-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        printed(sys.executable, RECIPES / "make_portable.py", BUILD, "--output", cls.folder / "made")
        [cls.archive], [cls.wheel] = (cls.folder / "made").glob("*.tar.gz"), (cls.folder / "made").glob("*.whl")
        cls.clean = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(cls.folder),
            "LANG": "C.UTF-8",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            **harness.MPI,
        }

    def run_clean(self, *command):
        """Runs a command with nothing of this repository in its environment, outside of it; returns what it prints."""
        return printed(*command, env=self.clean, cwd=self.folder)

    def check_libraries(self, program):
        """MPI and the C library are those of the machine. All others are below the folder of the program."""
        carried, own = program.parents[1] / "lib/orrery", []
        for name, path in re.findall(r"^\s*(\S+) => (\S+)", self.run_clean("ldd", program), re.M):
            if pathlib.Path(path).parent.resolve() == carried.resolve():
                own.append(name.split(".")[0])
            else:
                self.assertRegex(
                    name,
                    r"^lib(c|m|gcc_s|stdc\+\+|resolv|mpi|open-\w+|hwloc|event\w*|udev|dl|rt|pthread|util)(?![A-Za-z])",
                )
        for library in (
            "libhdf5",
            "libmetis",
            "libyaml-cpp",
            "libprotobuf",
            "libsimdjson",
            "libfmt",
            "libspdlog",
            "libtinyxml2",
            "libz",
        ):
            self.assertNotEqual(any(name.startswith(library) for name in own), is_linked_as_archive(library), library)
        self.assertFalse({"libmpi", "libc", "libstdc++"} & set(own))

    def check_runs(self, program, python):
        """One rank and two give the same times for a preset, and the report is made by the given Python."""
        config = self.folder / "step.yaml"
        config.write_text(
            "system: {base: dgx-h100-superpod, network: {dimensions: [{shape: Switch, size: 8, bandwidth: 450 GB/s, latency: 468 ns}]}}\n"
            "workload: {model: {base: llama3-8b, layers: 2}, parallel: {tp: 8, micro-batches: 2}}\n"
        )
        times = []
        for name, launch in (("one", []), ("two", ["mpirun", "-np", "2"])):
            results = self.folder / f"{program.parent.parent.name}-{name}.h5"
            self.run_clean(*launch, program, "run", config, "--quiet", "--output", results)
            times.append(harness.finish_times(results))
        self.assertEqual(list(times[0]), list(times[1]))
        page = results.with_suffix(".html")
        printed(program, "report", results, "--output", page, env={**self.clean, **python}, cwd=self.folder)
        self.assertIn("</html>", page.read_text())

    def test_the_archive_runs_anywhere(self):
        """It is unpacked, moved, and run. Its name has the version and the machine."""
        self.assertEqual(self.archive.name, f"orrery-{VERSION}-linux-{os.uname().machine}.tar.gz")
        shutil.unpack_archive(self.archive, self.folder / "first")
        (self.folder / "first" / f"orrery-{VERSION}").rename(self.folder / "elsewhere")
        program = self.folder / "elsewhere/bin/orrery"
        self.assertIn(VERSION, self.run_clean(program, "--version"))
        self.check_libraries(program)
        self.check_runs(program, {"ORRERY_PYTHON": "/usr/bin/python3"})
        if shutil.which("dpkg-query"):
            self.assertTrue(
                any("hdf5" in name for name in files_below(self.folder / "elsewhere/share/doc/orrery/libraries"))
            )

    def test_the_wheel_brings_the_program(self):
        """pip installs it without a network. Its command, its Python and its report run."""
        environment = self.folder / "environment"
        printed("/usr/bin/python3", "-m", "venv", "--system-site-packages", environment)
        self.run_clean(environment / "bin/pip", "install", "--no-index", "--quiet", self.wheel)
        [program] = environment.glob("lib/python3*/site-packages/orrery/program_files/bin/orrery")
        self.check_libraries(program)
        self.assertIn(VERSION, self.run_clean(environment / "bin/orrery", "--version"))
        self.check_runs(environment / "bin/orrery", {})
        code = (
            "import orrery; run = orrery.run({'system': {'base': 'dgx-h100-superpod'}, 'workload': {'model': {'base': 'llama3-8b', 'layers': 2}, "
            "'parallel': {'tp': 8, 'dp': 128}}}, fold=True, ranks=2, progress=False); print(run.num_npus, orrery.program.find())"
        )
        self.assertEqual(
            self.run_clean(environment / "bin/python", "-W", "ignore", "-c", code).split(), ["1024", str(program)]
        )
        self.run_clean(environment / "bin/pip", "uninstall", "--yes", "orrery")
        self.assertFalse((environment / "bin/orrery").exists() or program.exists())

    def test_what_cannot_be_packed(self):
        """A folder without a build. The script says what it expects, and writes nothing."""
        done = subprocess.run(
            [sys.executable, RECIPES / "make_portable.py", self.folder, "--output", self.folder / "none"],
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected a folder such as build/release", done.stderr)
        self.assertEqual(list((self.folder / "none").iterdir()), [])


@harness.long
class Pip(unittest.TestCase):
    """`pip install .` of the checkout, with Debian's Python and no network."""

    def test_it_installs_offline_and_runs(self):
        """The package lands in an environment without an index, also as an editable one, and runs a simulation; pip leaves nothing in the checkout."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-pip-"))
        self.addCleanup(shutil.rmtree, folder)
        printed("/usr/bin/python3", "-m", "venv", "--system-site-packages", folder)
        before = files_below(RECIPES)
        code = (
            "import orrery; run = orrery.run({'system': {'network': {'dimensions': [{'shape': 'Ring', 'size': 4, 'bandwidth': '50 GB/s', 'latency': '1 us'}]}, "
            "'compute': {'model': 'roofline', 'peak': '100 TFLOPS', 'local-memory': {'bandwidth': '1000 GB/s'}}}, 'workload': {'model': {'layers': 2, "
            "'hidden': 64, 'heads': 4, 'sequence': 64, 'vocabulary': 64}, 'parallel': {'tp': 4}}}); print(orrery.__file__, run.num_npus)"
        )
        for options, place in (([], folder), (["--editable"], harness.SOURCE)):
            printed(
                folder / "bin/pip",
                "install",
                "--no-index",
                "--quiet",
                *options,
                harness.SOURCE,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
            found = printed(
                folder / "bin/python",
                "-c",
                code,
                cwd=folder,
                env={**os.environ, "ORRERY_PROGRAM": harness.BINARY, "PYTHONDONTWRITEBYTECODE": "1"},
            )
            self.assertTrue(found.startswith(str(place)), found)
            self.assertTrue(found.endswith(" 4\n"), found)
        self.assertEqual(
            {name for name in files_below(RECIPES) if "__pycache__" not in name},
            {name for name in before if "__pycache__" not in name},
        )


class Recipes(unittest.TestCase):
    """The recipes of scripts/packaging, read as their tools read them, but without these tools."""

    def libraries(self):
        """Returns the names of the libraries that CMakeLists.txt looks for, in lower case."""
        return {name.lower() for name in re.findall(r"find_package\((\w[\w-]*)", CMAKE)} | {"metis"}

    def check_libraries(self, named):
        for library in self.libraries():
            self.assertTrue(OTHER_NAMES.get(library, {library}) & {name.lower() for name in named}, library)

    def test_spack(self):
        """The Spack package is Python, has the version of the project and depends on each library."""
        tree = ast.parse((RECIPES / "spack/packages/orrery/package.py").read_text())
        calls = [
            (node.func.id, node.args[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ]
        self.assertIn(("version", VERSION), calls)
        self.check_libraries([re.split("[@+]", text)[0] for name, text in calls if name == "depends_on"])

    def test_easybuild(self):
        """The easyconfig is Python, has the version of the project in its name and text, and depends on each library."""
        self.assertEqual([path.name for path in RECIPES.glob("*.eb")], [EASYCONFIG.name])
        self.assertIn(f"-{VERSION}-", EASYCONFIG.name)
        values = {"SOURCE_TAR_GZ": "%(name)s-%(version)s.tar.gz", "SYSTEM": {"name": "system", "version": "system"}}
        exec(compile(EASYCONFIG.read_text(), EASYCONFIG.name, "exec"), values)
        self.assertEqual((values["name"], values["version"]), ("orrery", VERSION))
        toolchain = f"{values['toolchain']['name']}-{values['toolchain']['version']}"
        self.assertEqual(EASYCONFIG.stem, f"orrery-{VERSION}-{toolchain}")
        self.check_libraries([entry[0] for entry in values["builddependencies"] + values["dependencies"]] + ["foss"])

    @unittest.skipUnless(shutil.which("tclsh"), "there is no tclsh")
    def test_module_file(self):
        """Tcl executes the module file. It puts folders of the installation in front of the paths of the user."""
        script = (
            "foreach name {conflict module-whatis} { proc $name args {} }\n"
            'proc prepend-path {name folder} { puts "$name $folder" }\n'
            f"source {RECIPES / 'modulefile'}\nModulesHelp\n"
        )
        paths = dict(line.split(" ", 1) for line in printed("tclsh", input=script).splitlines())
        prefix = f"/opt/orrery/{VERSION}"
        self.assertEqual(paths["PATH"], f"{prefix}/bin")
        self.assertEqual(paths["MANPATH"], f"{prefix}/share/man")
        self.assertEqual(paths["PYTHONPATH"], f"{prefix}/lib/python3/dist-packages")

    def test_containers(self):
        """Docker's and Apptainer's recipes copy the same files of the repository, all of which exist and suffice for CMake."""
        docker = (RECIPES / "Dockerfile").read_text()
        copied = set()
        for words in re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.M):
            copied |= set(words.split())
        apptainer = re.search(r"%files\n(.*?)\n\n", (RECIPES / "orrery.def").read_text(), re.DOTALL)[1]
        self.assertEqual(copied - {"scripts/setup.sh"}, {line.split()[0] for line in apptainer.splitlines()})
        for name in copied:
            self.assertTrue((harness.SOURCE / name).exists(), name)
        used = set(re.findall(r"^install\((?:DIRECTORY|FILES|PROGRAMS) ([^)]*?) DESTINATION", CMAKE, re.M | re.S))
        for name in " ".join(used).split():
            self.assertIn(name.split("/")[0], copied)

    @unittest.skipUnless(
        shutil.which("docker") and os.environ.get("ORRERY_TEST_DOCKER"), "set ORRERY_TEST_DOCKER to build the image"
    )
    def test_docker_builds(self):
        """Docker builds the image, and the program in it tells its version."""
        printed("docker", "build", "--file", RECIPES / "Dockerfile", "--tag", "orrery-test", harness.SOURCE)
        self.assertIn(VERSION, printed("docker", "run", "--rm", "orrery-test", "--version"))

    def test_check_script(self):
        """check_deb.sh is well-formed, and without a package it ends with exit code 2 and says what to give."""
        printed("bash", "-n", RECIPES / "check_deb.sh")
        done = subprocess.run([RECIPES / "check_deb.sh"], capture_output=True, text=True, timeout=harness.PATIENCE)
        self.assertEqual((done.returncode, done.stderr.count("give the .deb")), (2, 1))


if __name__ == "__main__":
    if BUILD is None:
        sys.exit("usage: test_packaging.py BUILD")
    harness.main()
