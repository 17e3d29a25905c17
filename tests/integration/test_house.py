#!/usr/bin/env python3
"""The rules of docs/architecture.md on files and includes, checked on the sources.

Modules use only modules before them, and only those that their CMakeLists.txt names; each foreign library is included in its own
module only; files keep to their length; no file names a folder of one machine or leaves work for later.
"""
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HEADER_LINES, SOURCE_LINES = 300, 500

# Foreign headers: the beginning of their names, and where they may be included (modules, or single files). Files other than
# configurations are JSON too: process groups beside traces, and what `show` prints.
FOREIGN = [
    (r"mpi\.h", ["parallel"]),
    (r"google/protobuf/", ["trace"]),
    (r"zlib\.h", ["trace", "src/sim/text_output.cpp"]),
    (r"(hdf5|H5)", ["results"]),
    (r"yaml-cpp/", ["config"]),
    (r"cxxopts", ["config"]),
    (r"nlohmann/", ["config", "trace", "workload", "src/sim/show.cpp", "src/sim/chrome_trace.cpp"]),
    (r"metis\.h", ["src/sim/partitioning.cpp"]),
    (r"spdlog/", ["sim", "src/main.cpp"]),
]
CODE = {".cpp", ".hpp", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def order():
    """The modules, lowest first."""
    text = (SOURCE / "src/CMakeLists.txt").read_text()
    return re.search(r"set\(ORRERY_ORDER ([^)]*)\)", text)[1].split()


def uses(module):
    """The modules that a module's CMakeLists.txt lets it use."""
    text = (SOURCE / "src" / module / "CMakeLists.txt").read_text()
    call = re.search(r"orrery_module\(([^)]*)\)", text)[1].split()
    if call[0] != module:
        raise AssertionError(f"src/{module}/CMakeLists.txt makes module {call[0]}")
    if "USES" not in call:
        return []
    names = call[call.index("USES") + 1:]
    return names[:names.index("LINKS")] if "LINKS" in names else names


def code_files():
    for top in ("src", "include/orrery"):
        for path in sorted((SOURCE / top).rglob("*")):
            if path.suffix in CODE:
                yield path


def module_of(path):
    """The module of a file of src/ or include/orrery/; "main" for src/main.cpp."""
    parts = path.relative_to(SOURCE).parts
    name = parts[1] if parts[0] == "src" else parts[2]
    return "main" if name == "main.cpp" else name


def includes(path):
    return [(quote == '"', name) for quote, name in INCLUDE.findall(path.read_text())]


def tracked_files():
    """What git tracks, or in a copy without git whatever is there; without data and other simulators' cases."""
    listed = subprocess.run(["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z"], cwd=SOURCE, capture_output=True)
    if listed.returncode == 0:
        paths = [SOURCE / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [p for p in SOURCE.rglob("*") if p.is_file() and "build" not in p.relative_to(SOURCE).parts]
    text_files = {".cpp", ".hpp", ".in", ".py", ".sh", ".md", ".txt", ".cmake", ".yaml", ".yml", ".json", ".sbatch", ""}
    return [p for p in paths if p.exists() and p.suffix in text_files and "cases" not in p.parts]


class House(unittest.TestCase):
    longMessage = True

    def name(self, path):
        return str(path.relative_to(SOURCE))

    def test_every_module_is_in_the_order(self):
        modules = order()
        for top in ("src", "include/orrery"):
            for folder in (SOURCE / top).iterdir():
                if folder.is_dir():
                    self.assertIn(folder.name, modules, f"{top}/{folder.name} is no module")

    def test_modules_use_earlier_ones(self):
        modules = order()
        for at, module in enumerate(modules):
            self.assertEqual([m for m in uses(module) if m not in modules[:at]], [], f"{module} uses what does not stand before it")

    def test_includes_keep_to_the_modules_used(self):
        allowed = {module: {module, *uses(module)} for module in order()}
        allowed["main"] = {"base", "config", "parallel", "sim"}
        faults = []
        for path in code_files():
            for quoted, name in includes(path):
                if name.startswith("orrery/") and name.split("/")[1] not in allowed[module_of(path)]:
                    faults.append(f"{self.name(path)}: {name}")
                elif name.startswith("orrery/") and not (SOURCE / "include" / name).exists():
                    faults.append(f"{self.name(path)}: {name} does not exist")
                elif quoted and not name.startswith("orrery/") and ("/" in name or not (path.parent / name).exists()):
                    faults.append(f"{self.name(path)}: {name} is not beside it")
                elif quoted and not name.startswith("orrery/") and path.is_relative_to(SOURCE / "include"):
                    faults.append(f"{self.name(path)}: {name} in a header that others include")
        self.assertEqual(faults, [])

    def test_foreign_headers_stay_in_their_modules(self):
        faults = []
        for path in code_files():
            for quoted, name in includes(path):
                if quoted:
                    continue
                for pattern, places in FOREIGN:
                    if re.match(pattern, name) and module_of(path) not in places and self.name(path) not in places:
                        faults.append(f"{self.name(path)}: {name}, which is for {', '.join(places)}")
        self.assertEqual(faults, [])

    def test_contracts_have_no_foreign_headers(self):
        """A module's own headers in include/ show the standard library and Orrery only."""
        faults = [f"{self.name(path)}: {name}" for path in code_files() if path.is_relative_to(SOURCE / "include")
                  for quoted, name in includes(path) if not quoted and ("/" in name or name.endswith((".h", ".hpp")))]
        self.assertEqual(faults, [])

    def test_headers_are_guarded(self):
        for path in code_files():
            if path.suffix == ".hpp":
                self.assertTrue(path.read_text().startswith("#pragma once\n"), self.name(path))

    def test_lengths(self):
        faults = []
        for path in code_files():
            length = len(path.read_text().splitlines())
            if length > (HEADER_LINES if path.suffix == ".hpp" else SOURCE_LINES):
                faults.append(f"{self.name(path)}: {length} lines")
        self.assertEqual(faults, [])

    def test_no_folder_of_one_machine(self):
        pattern = re.compile(r"(?<![\w.}$])/(home|root|Users|work|scratch)/\w")
        faults = []
        for path in tracked_files():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if pattern.search(line) and path != pathlib.Path(__file__).resolve():
                    faults.append(f"{self.name(path)}:{number}: {line.strip()[:100]}")
        self.assertEqual(faults, [])

    def test_nothing_is_left_for_later(self):
        words = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
        faults = []
        for path in tracked_files():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if words.search(line):
                    faults.append(f"{self.name(path)}:{number}: {line.strip()[:100]}")
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
