#!/usr/bin/python3
"""The rules of docs/architecture.md on files and includes, checked on the sources of the repository."""
import ast
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))

import cpp_structure  # noqa: E402
import harness  # noqa: E402

HEADER_LINES, SOURCE_LINES = 300, 500
FUNCTION_LINES, PUBLIC_FUNCTIONS, DATA_MEMBERS = 60, 20, 15
DOCUMENT_COLUMNS = 120
# Classes that may be larger, as "file: class", each with the reason.
LARGE_CLASSES = {
    "include/orrery/collective/options.hpp: Options",  # one member for each mapping of system.collectives, and what the network has of circuits
    "include/orrery/compute/options.hpp: Options",  # one member for each subject of system.compute
    "include/orrery/config/configuration.hpp: Configuration",  # one member for each mapping of CONFIG.yaml, and what was read of it
    "include/orrery/config/configuration.hpp: RunOptions",  # one member for each key of `run`
    "include/orrery/serving/description.hpp: Description",  # one member for each mapping of `serving`
    "include/orrery/serving/metrics.hpp: Metrics",  # one member for each metric of a serving run
    "include/orrery/serving/record.hpp: InstanceRecord",  # one member for each column of /instances
    "include/orrery/serving/request_source.hpp: RequestSource",  # one member for each key of serving.requests
    "include/orrery/workload/parallel.hpp: Parallel",  # one member for each subject of workload.parallel
    "src/serving/operators.cpp: Operators",  # one member for each measured table, and one for the table that a model takes of it
    "src/serving/router.hpp: Router",  # what is sent, reported and still to arrive
    "src/serving/scheduler.hpp: Scheduler",  # the state of vLLM's scheduler, which the rules of a step change together
    "src/serving/serving_model.hpp: ServingModel",  # instances, router and ports of a rank, behind the contract of the kernel
}
# Sources that include the headers of each other, each pair with the reason.
MUTUAL_SOURCES = {
    ("collective: algorithm", "collective: registry"),  # an algorithm is made by its name, and the registry makes algorithms
    ("run: simulation", "run: split_classes"),  # a folded run splits classes, for which it simulates again up to a time
}
# Words of this project's own making that the field's words have replaced (docs/glossary.md), where they begin a word or part of a name.
REPLACED_WORDS = {
    r"Reach(?![a-z])|Horizon": "lookahead bounds",
    r"Outlook|outlook": "earliest output time, earliest input time",
    r"[Pp]arking(?![a-z])|hopeful": "deferred events, wake list",
    r"[Ll]ikeness|[Pp]ortraits?(?![a-z])|[Tt]ogetherness|[Ss]eats?(?![a-z])|[Ss]eating|(?<![a-z])soil": "signature, equivalence class, representative, refinement",
    r"[Mm]ember_?[Hh]ands|[Ll]ink_?[Hh]ands": "collective transport",
    r"Surroundings|(?<=class )Setting(?![a-z])|(?<=struct )Setting(?![a-z])": "run context",
    r"(?<=class )Meaning(?![a-z])|(?<=struct )Meaning(?![a-z])": "parsed node",
    r"Conversation|converse(?![a-z])": "communication graph, channel key",
    r"[Pp]rocedure": "custom collective",
}

# Foreign headers: the beginning of their names, and where they may be included (modules, or single files). Files other than
# configurations are JSON too: process groups beside traces, and what `show` prints.
FOREIGN = [
    (r"mpi\.h", ["parallel"]),
    (r"google/protobuf/", ["trace"]),
    (r"zlib\.h", ["trace", "checkpoint", "src/serving/request_lines.hpp", "src/results/seal.cpp", "src/base/text_output.cpp"]),
    (r"(hdf5|H5)", ["results"]),
    (r"yaml-cpp/", ["config", "src/graphfile/infragraph_values.cpp"]),
    (r"tinyxml2", ["collective", "graphfile", "src/show/print_graph.cpp"]),
    (r"simdjson", ["trace"]),
    (r"boost/", ["src/base/event_history.cpp", "src/explore/sequences.cpp", "src/model/cells.cpp", "src/network/max_flow.cpp", "src/network/packet/network_parts.cpp"]),
    (r"cxxopts", ["cli"]),
    (r"nlohmann/", ["graphfile", "collective", "gpu", "config", "trace", "workload", "serving", "synthesis", "src/study/trial_journal.cpp", "show", "src/cli/show_metrics.cpp"]),
    (r"metis\.h", ["src/partition/metis.cpp"]),
    (r"spdlog/", ["study", "show", "cli"]),
]
CODE = {".cpp", ".hpp", ".in"}
# Where names come from; any one header suffices.
NAMES = {
    "std::(vector)": ["vector"], "std::(string|to_string|getline)": ["string"], "std::(string_view)": ["string_view", "string"],
    "std::(optional|nullopt)": ["optional"], "std::(unique_ptr|make_unique|shared_ptr|make_shared|weak_ptr)": ["memory"],
    "std::(function)": ["functional"], "std::(map|multimap)": ["map"], "std::(set|multiset)": ["set"], "std::(unordered_map|unordered_multimap)": ["unordered_map"],
    "std::(unordered_set)": ["unordered_set"], "std::(deque)": ["deque"], "std::(array)": ["array"], "std::(span|as_bytes)": ["span"], "std::(variant|visit|get_if|holds_alternative)": ["variant"],
    "std::(u?int(8|16|32|64)_t)": ["cstdint"], "std::(numeric_limits)": ["limits"], "std::(filesystem)": ["filesystem"], "std::(chrono)": ["chrono"],
    "std::(memcpy|memcmp|memset|strerror|strlen)": ["cstring"], "std::(sort|stable_sort|any_of|all_of|none_of|max_element|min_element|find_if|lower_bound|upper_bound|unique|clamp|reverse|rotate)": ["algorithm"],
    "std::ranges::(sort|any_of|all_of|none_of|find|find_if|lower_bound|max_element|equal|count|replace)": ["algorithm"],
    "std::(accumulate|iota|partial_sum|gcd|lcm|reduce)": ["numeric"], "std::(has_single_bit|countr_zero|countl_zero|popcount|bit_ceil|bit_floor|bit_width|bit_cast)": ["bit"],
    "std::(ifstream|ofstream|fstream)": ["fstream"], "std::(istringstream|ostringstream|stringstream)": ["sstream"], "std::(from_chars|to_chars)": ["charconv"],
    "std::(sqrt|pow|floor|ceil|round|log|exp|isfinite|isnan|isinf|llround|nearbyint|trunc|ldexp|frexp)": ["cmath"], "std::(getenv|exit|_Exit|strtoull|atoi|atof)": ["cstdlib"],
    "std::(exception_ptr|current_exception|rethrow_exception|uncaught_exceptions)": ["exception"], "std::(runtime_error|invalid_argument|logic_error|out_of_range)": ["stdexcept"],
    "std::(signal|sig_atomic_t)": ["csignal"], "std::(source_location)": ["source_location"], "std::(bad_alloc)": ["new"], "std::(atomic)": ["atomic"], "std::(tuple|tie)": ["tuple", "map", "set"],
    "fmt::(format|print)": ["fmt/format.h", "fmt/core.h"], "spdlog::(info|warn|error|debug)": ["spdlog/spdlog.h"],
}
CPP_TEST = re.compile(r"(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def order():
    """Returns the modules, lowest first."""
    text = (SOURCE / "src/CMakeLists.txt").read_text()
    return re.search(r"set\(ORRERY_ORDER ([^)]*)\)", text)[1].split()


def uses(module):
    """Returns the modules that a module's CMakeLists.txt lets it use."""
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


def test_sources():
    """Returns the C++ files of tests/unit and tests/property."""
    return [path for top in ("tests/unit", "tests/property") for path in sorted((SOURCE / top).rglob("*.[ch]pp"))]


def module_of(path):
    """Returns the module of a file of src/ or include/orrery/; "main" for src/main.cpp."""
    parts = path.relative_to(SOURCE).parts
    name = parts[1] if parts[0] == "src" else parts[2]
    return "main" if name == "main.cpp" else name


def includes(path):
    return [(quote == '"', name) for quote, name in INCLUDE.findall(path.read_text())]


def beside(path, name):
    """Returns the path of a header that a quoted include names: from the folder of the file, or else of its module."""
    module = SOURCE / "src" / module_of(path)
    return module / name if (module / name).exists() and not (path.parent / name).exists() else path.parent / name


def tracked_paths():
    """Returns the files that git tracks, or without git those that are there."""
    listed = subprocess.run(["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z"], cwd=SOURCE, capture_output=True)
    if listed.returncode == 0:
        return [SOURCE / name for name in listed.stdout.decode().split("\0") if name]
    return [p for p in SOURCE.rglob("*") if p.is_file() and "build" not in p.relative_to(SOURCE).parts]


def tracked_files():
    """Returns the text files among tracked_paths, data and reference cases apart."""
    text_files = {".cpp", ".hpp", ".in", ".py", ".sh", ".md", ".txt", ".cmake", ".yaml", ".yml", ".json", ".sbatch", ""}
    return [p for p in tracked_paths() if p.exists() and p.suffix in text_files and "cases" not in p.parts]


def plain(text):
    """Returns C++ without comments and the texts of literals."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', "", text, flags=re.DOTALL)


class Included:
    """What a file has by its own includes and those of the project's headers among them."""

    def __init__(self):
        self.known = {}

    def of(self, path):
        if path not in self.known:
            self.known[path] = found = {path}
            for quoted, name in includes(path):
                header = (SOURCE / "include" / name) if name.startswith("orrery/") else beside(path, name)
                found |= self.of(header) if quoted and header.exists() else {name}
        return self.known[path]


class House(unittest.TestCase):
    longMessage = True
    maxDiff = None

    def name(self, path):
        return str(path.relative_to(SOURCE))

    def test_every_module_is_in_the_order(self):
        """Each folder of src/ and include/orrery/ is a module of ORRERY_ORDER in src/CMakeLists.txt."""
        modules = order()
        for top in ("src", "include/orrery"):
            for folder in (SOURCE / top).iterdir():
                if folder.is_dir():
                    self.assertIn(folder.name, modules, f"{top}/{folder.name} is no module")

    def test_modules_use_earlier_modules_only(self):
        """The modules that a module's CMakeLists.txt names come before it in the order."""
        modules = order()
        for at, module in enumerate(modules):
            self.assertEqual([m for m in uses(module) if m not in modules[:at]], [], f"{module} uses a module that does not come before it")

    def test_includes_keep_to_the_modules_used(self):
        """A file includes headers of its own module and of those that its CMakeLists.txt names, and private headers of its own module only."""
        allowed = {module: {module, *uses(module)} for module in order()}
        allowed["main"] = {"base", "config", "parallel", "cli"}
        faults = []
        for path in code_files():
            for quoted, name in includes(path):
                if name.startswith("orrery/") and name.split("/")[1] not in allowed[module_of(path)]:
                    faults.append(f"{self.name(path)}: {name}")
                elif name.startswith("orrery/") and not (SOURCE / "include" / name).exists():
                    faults.append(f"{self.name(path)}: {name} does not exist")
                elif quoted and not name.startswith("orrery/") and (".." in name or not beside(path, name).exists()):
                    faults.append(f"{self.name(path)}: {name} is not in its module")
                elif quoted and not name.startswith("orrery/") and path.is_relative_to(SOURCE / "include"):
                    faults.append(f"{self.name(path)}: {name} in a header that others include")
        self.assertEqual(faults, [])

    def test_modules_name_what_they_include(self):
        """USES in a module's CMakeLists.txt names the modules whose headers the module includes, no more and no fewer."""
        included = {module: set() for module in order()}
        for path in code_files():
            if module_of(path) != "main":
                included[module_of(path)] |= {name.split("/")[1] for _, name in includes(path) if name.startswith("orrery/")}
        faults = {}
        for module in order():
            found = [other for other in order() if other in included[module] - {module}]
            if found != uses(module):
                faults[module] = f"USES {' '.join(found)}"
        self.assertEqual(faults, {})

    def test_public_headers_are_used(self):
        """A header in include/ is included by another module, by a program that uses the library (examples/, docs/library.md), or by such
        a header; all others are in src/."""
        public = {str(path.relative_to(SOURCE / "include")): path for path in code_files() if path.is_relative_to(SOURCE / "include")}
        used = {"orrery/run/simulate.hpp"}  # what a user of the library begins with
        for path in code_files():
            used |= {name for _, name in includes(path) if name in public and public[name] != path and module_of(public[name]) != module_of(path)}
        for path in [SOURCE / "docs/library.md", *(SOURCE / "examples").rglob("*.cpp")]:
            used |= {name for name in re.findall(r"orrery/[a-z_/]+\.hpp", path.read_text()) if name in public}
        left = list(used)
        while left:
            for _, name in includes(public[left.pop()]):
                if name in public and name not in used:
                    used.add(name)
                    left.append(name)
        self.assertEqual(sorted(set(public) - used), [], "headers that belong into src/")

    def test_foreign_headers_stay_in_their_modules(self):
        """The header of each foreign library is included in the modules or files that FOREIGN lists for it."""
        faults = []
        for path in code_files():
            for quoted, name in includes(path):
                if quoted:
                    continue
                for pattern, places in FOREIGN:
                    if re.match(pattern, name) and module_of(path) not in places and self.name(path) not in places:
                        faults.append(f"{self.name(path)}: {name}, which is for {', '.join(places)}")
        self.assertEqual(faults, [])

    def test_public_headers_include_no_foreign_headers(self):
        """The headers in include/ include the standard library and Orrery only."""
        faults = [f"{self.name(path)}: {name}" for path in code_files() if path.is_relative_to(SOURCE / "include")
                  for quoted, name in includes(path) if not quoted and ("/" in name or name.endswith((".h", ".hpp")))]
        self.assertEqual(faults, [])

    def test_headers_are_guarded(self):
        """Every header begins with #pragma once."""
        for path in code_files():
            if path.suffix == ".hpp":
                self.assertTrue(path.read_text().startswith("#pragma once\n"), self.name(path))

    def test_files_include_what_they_use(self):
        """Every file has, by its own includes, the headers of the names of the standard library that it uses and those of the project's
        types. A build with ORRERY_UNITY compiles sources together and hides what one of them lacks."""
        included, texts = Included(), {path: plain(path.read_text()) for path in code_files() if path.suffix in (".hpp", ".cpp")}
        declared = {}
        for path, text in texts.items():
            if path.suffix == ".hpp":
                for name in re.findall(r"^(?:class|struct|enum class) (\w+)[^;\n]*\{", text, re.MULTILINE):
                    declared.setdefault(name, set()).add(path)
        nested = {name for text in texts.values() for name in re.findall(r"^(?: +(?:class|struct|enum class)| *using) (\w+)", text, re.MULTILINE)}
        types = {name: next(iter(paths)) for name, paths in declared.items() if len(paths) == 1 and name not in nested}
        mention = re.compile(rf"(?:\b(?:{'|'.join(order())})::|(?<![\w:]))([A-Z]\w+)")
        faults = []
        for path, text in texts.items():
            for pattern, headers in NAMES.items():
                used = re.search(r"(?<![\w:])" + pattern + r"\b", text)
                if used and not included.of(path) & set(headers):
                    faults.append(f"{self.name(path)}: {used[0]} without <{headers[0]}>")
            forward = set(re.findall(r"^ *(?:class|struct|enum class) (\w+)[^{\n]*;", text, re.MULTILINE))
            own = set(re.findall(r"\b(?:class|struct|enum class|using) (\w+)", text))
            visible = set(order()) if module_of(path) == "main" else {module_of(path), *uses(module_of(path))}
            for name in set(mention.findall(text)) & types.keys() - forward - own:
                home = module_of(types[name])
                is_opaque = home != module_of(path) and not types[name].is_relative_to(SOURCE / "include")  # declared, not defined, for others
                if home in visible and not is_opaque and types[name] not in included.of(path):
                    faults.append(f"{self.name(path)}: {name} without {self.name(types[name])}")
        self.assertEqual(faults, [])

    def test_files_keep_to_their_length(self):
        """Headers have at most 300 lines, sources 500."""
        faults = []
        for path in code_files():
            length = len(path.read_text().splitlines())
            if length > (HEADER_LINES if path.suffix == ".hpp" else SOURCE_LINES):
                faults.append(f"{self.name(path)}: {length} lines")
        self.assertEqual(faults, [])

    def test_functions_and_classes_keep_to_their_size(self):
        """Functions have at most 60 lines, classes at most 20 public functions and 15 data members, except those of LARGE_CLASSES."""
        faults, large = [], set()
        for path in code_files():
            text = path.read_text()
            for function in cpp_structure.functions(text):
                if function.length > FUNCTION_LINES:
                    faults.append(f"{self.name(path)}:{function.line}: {function.name} has {function.length} lines")
            for found in cpp_structure.classes(text):
                if found.public_functions > PUBLIC_FUNCTIONS or found.data_members > DATA_MEMBERS:
                    large.add(f"{self.name(path)}: {found.name}")
        self.assertEqual(faults, [])
        self.assertEqual(sorted(large), sorted(LARGE_CLASSES))

    def test_changes_that_contributing_shows_apply(self):
        """Each change in CONTRIBUTING.md fits the files of today."""
        text = (harness.SOURCE / "CONTRIBUTING.md").read_text()
        changes = re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(changes), 4)
        for change in changes:
            done = subprocess.run(["git", "apply", "--check"], input=change, capture_output=True, text=True, cwd=harness.SOURCE)
            self.assertEqual(done.returncode, 0, done.stderr + change[:200])

    def test_no_files_include_each_other_in_a_circle(self):
        """No file includes, directly or through others, one that includes it."""
        uses_files = {}
        for path in code_files():
            for quoted, name in includes(path):
                header = (SOURCE / "include" / name) if name.startswith("orrery/") else beside(path, name)
                if quoted and header.exists():
                    uses_files.setdefault(self.name(path), set()).add(self.name(header))
        circles, done, path_here = [], set(), []

        def visit(file):
            if file in path_here:
                circles.append(" -> ".join([*path_here[path_here.index(file):], file]))
            elif file not in done:
                path_here.append(file)
                for other in sorted(uses_files.get(file, ())):
                    visit(other)
                path_here.pop()
                done.add(file)

        for file in sorted(uses_files):
            visit(file)
        self.assertEqual(circles, [])

    def test_no_two_sources_use_each_other(self):
        """No source includes the header of another one that includes its own, except the pairs of MUTUAL_SOURCES."""
        used = {}
        for path in code_files():
            for quoted, name in includes(path) if path.suffix == ".cpp" else []:
                header = (SOURCE / "include" / name) if name.startswith("orrery/") else beside(path, name)
                if quoted and header.exists():
                    used.setdefault(f"{module_of(path)}: {path.stem}", set()).add(f"{module_of(header)}: {header.stem}")
        pairs = {(one, other) for one, others in used.items() for other in others if one < other and one in used.get(other, ())}
        self.assertEqual(pairs, set(MUTUAL_SOURCES))

    def test_document_lines_keep_to_their_length(self):
        """No line of a document has more than 120 characters, apart from the '+' of lines of code in a diff."""
        faults = [f"{self.name(path)}:{number}: {len(line)} characters" for path in tracked_files() if path.suffix == ".md"
                  for number, line in enumerate(path.read_text().splitlines(), 1) if len(line.removeprefix("+")) > DOCUMENT_COLUMNS]
        self.assertEqual(faults, [])

    def test_the_words_of_the_field_are_used(self):
        """No code, test or document has a word of REPLACED_WORDS."""
        faults = []
        for path in tracked_files():
            if path == pathlib.Path(__file__).resolve():
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                for words, instead in REPLACED_WORDS.items():
                    found = re.search(rf"(?<![A-Za-z])(?:{words})", line)
                    if found:
                        faults.append(f"{self.name(path)}:{number}: '{found[0]}' instead of {instead}")
        self.assertEqual(faults, [])

    def test_the_top_folder_holds_nothing_else(self):
        """The top folder has the files and folders of the project, and what a program has left there is not tracked."""
        files = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "pyproject.toml", "README.md"}
        folders = {"configs", "docs", "examples", "include", "partitions", "scripts", "src", "tests"}
        top = {path.relative_to(SOURCE).parts[0] for path in tracked_paths()}
        self.assertEqual({name for name in top if not name.startswith(".")}, files | folders)

    def test_no_file_names_a_folder_of_one_machine(self):
        """No tracked file has the path of a home or working folder."""
        pattern = re.compile(r"(?<![\w.}$])/(home|root|Users|work|scratch)/\w")
        faults = []
        for path in tracked_files():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if pattern.search(line) and path != pathlib.Path(__file__).resolve():
                    faults.append(f"{self.name(path)}:{number}: {line.strip()[:100]}")
        self.assertEqual(faults, [])

    def test_nothing_is_left_for_later(self):
        """No tracked file has a word that marks work for later."""
        words = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
        faults = []
        for path in tracked_files():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if words.search(line):
                    faults.append(f"{self.name(path)}:{number}: {line.strip()[:100]}")
        self.assertEqual(faults, [])

    def test_every_test_says_what_it_expects(self):
        """A comment stands directly above each GoogleTest or in its first line, and each test method of tests/integration/ and
        tests/python/ has a docstring."""
        faults = []
        for path in test_sources():
            lines = path.read_text().splitlines()
            for at, line in enumerate(lines):
                if CPP_TEST.match(line) and not lines[at - 1].startswith("//") and not lines[at + 1].strip().startswith("//"):
                    faults.append(f"{self.name(path)}:{at + 1}: {line}")
        for path in sorted(path for top in ("integration", "python") for path in (SOURCE / "tests" / top).glob("test_*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node):
                    faults.append(f"{self.name(path)}:{node.lineno}: {node.name}")
        self.assertEqual(faults, [], "tests that do not say in prose which system they test and what they expect")

    def test_a_test_that_cannot_run_is_skipped(self):
        """No GoogleTest returns early where a file or a variable of the environment is missing: it calls GTEST_SKIP, so that it does not
        count as passed."""
        pattern = re.compile(r"\bif \([^;{}]*(?:exists|is_directory|is_regular_file|getenv)\([^;{}]*\)\s*\{?\s*return;")
        faults = []
        for path in test_sources():
            text = path.read_text()
            for found in pattern.finditer(text):
                faults.append(f"{self.name(path)}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}")
        self.assertEqual(faults, [])

    def test_tests_share_no_temporary_file(self):
        """A GoogleTest has the folder that TemporaryFolder makes for it, and names none that other processes may have too."""
        faults = [f"{self.name(path)}: {name}" for path in test_sources() for name in ("temp_directory_path", '"/tmp')
                  if name in path.read_text()]
        self.assertEqual(faults, [])


if __name__ == "__main__":
    harness.main()
