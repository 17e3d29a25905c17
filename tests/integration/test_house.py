#!/usr/bin/python3
"""The rules of docs/architecture.md on files and includes, checked on the sources of the repository."""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))

import cpp_structure  # noqa: E402
import harness  # noqa: E402

HEADER_LINES, SOURCE_LINES = 300, 500
FUNCTION_LINES, PUBLIC_FUNCTIONS, DATA_MEMBERS, ALL_FUNCTIONS = 60, 20, 15, 40
DOCUMENT_COLUMNS = 120
SUBJECT_COLUMNS = 72
FIRST_SHORT_SUBJECT = "56eac4db"
# Classes that may be larger, as "file: class", each with the reason.
LARGE_CLASSES = {
    "include/orrery/collective/options.hpp: Options",  # one member for each mapping of system.collectives, and what the network has of circuits
    "include/orrery/compute/options.hpp: Options",  # one member for each subject of system.compute
    "include/orrery/config/configuration.hpp: Configuration",  # one member for each mapping of CONFIG.yaml, and what was read of it
    "include/orrery/config/configuration.hpp: RunOptions",  # one member for each key of `run`
    "include/orrery/network/model.hpp: MessageNetwork",  # the contract of a simulated network with NPUs, kernel and checkpoints
    "include/orrery/serving/description.hpp: Description",  # one member for each mapping of `serving`
    "include/orrery/serving/metrics.hpp: Metrics",  # one member for each metric of a serving run
    "include/orrery/serving/record.hpp: InstanceRecord",  # one member for each column of /instances
    "include/orrery/serving/request_source.hpp: RequestSource",  # one member for each key of serving.requests
    "include/orrery/serving/step_options.hpp: StepOptions",  # one member for each mapping of serving.step, and what the system says
    "include/orrery/workload/parallel.hpp: Parallel",  # one member for each subject of workload.parallel
    "src/network/graph_links.hpp: GraphLinks",  # the contract of links, with and without configurations of circuits
    "src/network/shape_links.hpp: ShapeLinks",  # the contract of links, with and without configurations of circuits
    "src/serving/operators.cpp: Operators",  # one member for each measured table, and one for the table that a model takes of it
    "src/serving/router.hpp: Router",  # what is sent, reported and still to arrive
    "src/serving/scheduler.hpp: Scheduler",  # the state of vLLM's scheduler, which the rules of a step change together
    "src/serving/serving_model.hpp: ServingModel",  # instances, router and ports of a rank, behind the contract of the kernel
}
# Classes with more member functions, private ones included, each with the reason.
CLASSES_OF_MANY_FUNCTIONS = {
    "include/orrery/pdes/kernel.hpp: Kernel",  # the contract of schedulers, and what one rank does for each phase of a step
    "src/serving/serving_model.hpp: ServingModel",  # the contract of the kernel, and what instances, router, ports and NPUs tell each other
}
# Classes with friends, each with the reason. The packet network has none.
CLASSES_WITH_FRIENDS = {
    "include/orrery/base/countdowns.hpp: CountdownPlan",  # the counts that belong to a plan
    "include/orrery/collective/collective.hpp: Engine",  # what an engine knows of groups, for those who plan collectives
    "include/orrery/collective/custom_collective.hpp: CustomCollective",  # its builder
    "include/orrery/explore/expression.hpp: Expression",  # who parses, evaluates and inspects its nodes
    "include/orrery/explore/space.hpp: Space",  # the walk over its points
    "include/orrery/model/rank_model.hpp: RankModel",  # its checkpoint, and what a stuck run tells
    "include/orrery/npu/npus.hpp: Npus",  # checkpoints, lookahead of cells and the order of ASTRA-sim
    "include/orrery/trace/store.hpp: Store",  # traces that move to another store
    "src/npu/execution.hpp: Execution",  # checkpoints, and the order of ASTRA-sim
}
# Sources that include the headers of each other, each pair with the reason.
MUTUAL_SOURCES = {
    (
        "collective: algorithm",
        "collective: registry",
    ),  # an algorithm is made by its name, and the registry makes algorithms
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
    r"Plant(?![a-z])": "hardware",
    r"Dealing(?![a-z])": "assignment",
    r"[Ff]ineness": "granularity",
    r"SignsOfLife|[Ss]igns of life": "heartbeat",
    r"StopWish|stop wish": "stop request",
    r"[Hh]eed(?:s|ed|ing)?(?![a-z])": "honour",
    r"[Hh]eirs?(?![a-z])|[Pp]redecessor_?[Ss]tate|Predecessor(?![a-z])|[Ii]nheritance": "resumed from",
    r"[Oo]bjections?(?![a-z])": "validation error",
    r"[Ff]oresee|[Ff]oresight": "prefetch, lookahead",
    r"[Ll]inger": "wait",
    r"in store(?![a-z])": "pending",
    r"[Pp]uts? off(?![a-z])": "deferred",
    r"held up(?![a-z])": "blocked",
    r"goes ahead(?![a-z])": "running ahead",
    r"in doubt(?![a-z])": "undecided",
    r"least maximum flow": "bisection bandwidth (minimum cut)",
    r"streams of dimensions": "per-dimension streams",
    r"is over last": "finishes last",
}

# Files that catch everything, and so decide what becomes of an error.
CATCHES_ALL = {
    "src/study/campaign_times.cpp",
    "src/cli/job.cpp",
    "src/study/task_pool.cpp",  # of threads, jobs and trials: the error is passed on
    "src/main.cpp",  # the end: a message and an exit code
    "src/parallel/communicator.cpp",
    "src/parallel/lead.cpp",  # other ranks are told, and the error is thrown again
}
# State of a process or a thread that can change, each with the reason.
PROCESS_STATE = {
    "src/base/event_place.cpp: count",  # of blocks of histories, which tests look at
    "include/orrery/base/job_context.hpp: current_",  # the job that this thread works for
    "src/config/yaml_source.cpp: known",  # a cache of texts that were read, which changes no result
}

# What only those need to know who decide the order of simultaneous events (docs/architecture.md): that events have histories, that they are
# handled one by one, that ends of nodes are put in order, how places of events are made and compared, and how the messages of a collective
# are sent in order. Other files call npu::EventOrder, or pass an EventPlace on.
WORDS_OF_ORDER = re.compile(
    r"\bone_by_one\b|\b[Hh]istor(?:y|ies)_?\b|_histor(?:y|ies)\b|[A-Za-z]Histor(?:y|ies)\b|_stored_instants?\b|\binstants_|\bInstantNodes?\b|in_store\b"
    r"|\b[Mm]ember_?[Ee]nds\b|\b(?:Join|End)Order\b|\borders_ends\b|EventPlace::first_of|\.(?:beside|cause)\(\)"
)
KNOWS_ORDER = [
    "include/orrery/base/event_place.hpp",
    "src/base/event_place.cpp",  # places, which are histories
    "src/npu/astra_order.cpp",
    "src/npu/histories.hpp",
    "src/npu/histories.cpp",  # the order of an NPU's events
    "src/network/link_order.cpp",  # of messages at a link
    "src/memory/ordered_turns.cpp",  # of requests to a memory
    "include/orrery/collective/end_order.hpp",
    "src/collective/end_order.cpp",
    "src/communicator/ordered_ends.cpp",  # of ends of a collective
    "include/orrery/npu/options.hpp",
    "include/orrery/npu/run_context.hpp",
    "src/config/configuration.cpp",  # which order a run has
    "src/fold/own_signatures.cpp",  # which NPUs differ by their order
    "src/npu/queue_turns.cpp",  # whether members that send in order wait for each other
]
# Files on histories of something else.
OTHER_HISTORIES = {
    "src/network/packet/recorder.hpp",
    "src/network/packet/recorder.cpp",  # of queues
    "src/npu/gpu_kernel.hpp",
    "src/npu/gpu_kernel.cpp",
    "src/npu/gpu_system.hpp",
    "include/orrery/npu/npus.hpp",
    "src/npu/npus.cpp",
    "include/orrery/model/saved_rank.hpp",
    "src/model/saved_rank.cpp",
    "src/run/checkpoints.cpp",  # of kernels of GPUs
    "src/serving/request_formats.cpp",  # of conversations
}

# Foreign headers: the beginning of their names, and where they may be included (modules, or single files). Files other than
# configurations are JSON too: process groups beside traces, and what `show` prints.
FOREIGN = [
    (r"mpi\.h", ["parallel"]),
    (r"google/protobuf/", ["trace"]),
    (
        r"zlib\.h",
        ["trace", "checkpoint", "src/serving/request_lines.hpp", "src/results/seal.cpp", "src/base/text_output.cpp"],
    ),
    (r"(hdf5|H5)", ["results"]),
    (r"yaml-cpp/", ["config", "src/graphfile/infragraph_values.cpp"]),
    (r"tinyxml2", ["collective", "graphfile", "src/show/print_graph.cpp"]),
    (r"simdjson", ["trace"]),
    (
        r"boost/",
        [
            "src/base/event_place.cpp",
            "src/explore/sequences.cpp",
            "src/model/cells.cpp",
            "src/network/max_flow.cpp",
            "src/network/packet/network_parts.cpp",
            "src/npu/connected.cpp",
        ],
    ),
    (r"cxxopts", ["cli"]),
    (
        r"nlohmann/",
        [
            "graphfile",
            "collective",
            "gpu",
            "config",
            "trace",
            "workload",
            "serving",
            "synthesis",
            "src/study/trial_journal.cpp",
            "show",
            "src/cli/show_metrics.cpp",
        ],
    ),
    (r"metis\.h", ["src/partition/metis.cpp"]),
    (r"spdlog/", ["study", "show", "cli"]),
]
CODE = {".cpp", ".hpp", ".in"}
# Where names come from; any one header suffices.
NAMES = {
    "std::(vector)": ["vector"],
    "std::(string|to_string|getline)": ["string"],
    "std::(string_view)": ["string_view", "string"],
    "std::(optional|nullopt)": ["optional"],
    "std::(unique_ptr|make_unique|shared_ptr|make_shared|weak_ptr)": ["memory"],
    "std::(function)": ["functional"],
    "std::(map|multimap)": ["map"],
    "std::(set|multiset)": ["set"],
    "std::(unordered_map|unordered_multimap)": ["unordered_map"],
    "std::(unordered_set)": ["unordered_set"],
    "std::(deque)": ["deque"],
    "std::(array)": ["array"],
    "std::(span|as_bytes)": ["span"],
    "std::(variant|visit|get_if|holds_alternative)": ["variant"],
    "std::(u?int(8|16|32|64)_t)": ["cstdint"],
    "std::(numeric_limits)": ["limits"],
    "std::(filesystem)": ["filesystem"],
    "std::(chrono)": ["chrono"],
    "std::(memcpy|memcmp|memset|strerror|strlen)": ["cstring"],
    "std::(sort|stable_sort|any_of|all_of|none_of|max_element|min_element|find_if|lower_bound|upper_bound|unique|clamp|reverse|rotate)": [
        "algorithm"
    ],
    "std::ranges::(sort|any_of|all_of|none_of|find|find_if|lower_bound|max_element|equal|count|replace)": ["algorithm"],
    "std::(accumulate|iota|partial_sum|gcd|lcm|reduce)": ["numeric"],
    "std::(has_single_bit|countr_zero|countl_zero|popcount|bit_ceil|bit_floor|bit_width|bit_cast)": ["bit"],
    "std::(ifstream|ofstream|fstream)": ["fstream"],
    "std::(istringstream|ostringstream|stringstream)": ["sstream"],
    "std::(from_chars|to_chars)": ["charconv"],
    "std::(sqrt|pow|floor|ceil|round|log|exp|isfinite|isnan|isinf|llround|nearbyint|trunc|ldexp|frexp)": ["cmath"],
    "std::(getenv|exit|_Exit|strtoull|atoi|atof)": ["cstdlib"],
    "std::(exception_ptr|current_exception|rethrow_exception|uncaught_exceptions)": ["exception"],
    "std::(runtime_error|invalid_argument|logic_error|out_of_range)": ["stdexcept"],
    "std::(signal|sig_atomic_t)": ["csignal"],
    "std::(source_location)": ["source_location"],
    "std::(bad_alloc)": ["new"],
    "std::(atomic)": ["atomic"],
    "std::(tuple|tie)": ["tuple", "map", "set"],
    "fmt::(format|print)": ["fmt/format.h", "fmt/core.h"],
    "spdlog::(info|warn|error|debug)": ["spdlog/spdlog.h"],
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
    names = call[call.index("USES") + 1 :]
    return names[: names.index("LINKS")] if "LINKS" in names else names


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
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={SOURCE}", "ls-files", "-z"], cwd=SOURCE, capture_output=True
    )
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
            self.assertEqual(
                [m for m in uses(module) if m not in modules[:at]],
                [],
                f"{module} uses a module that does not come before it",
            )

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
                included[module_of(path)] |= {
                    name.split("/")[1] for _, name in includes(path) if name.startswith("orrery/")
                }
        faults = {}
        for module in order():
            found = [other for other in order() if other in included[module] - {module}]
            if found != uses(module):
                faults[module] = f"USES {' '.join(found)}"
        self.assertEqual(faults, {})

    def test_public_headers_are_used(self):
        """A header in include/ is included by another module, by a program that uses the library (examples/, docs/library.md), or by such
        a header; all others are in src/."""
        public = {
            str(path.relative_to(SOURCE / "include")): path
            for path in code_files()
            if path.is_relative_to(SOURCE / "include")
        }
        used = {"orrery/run/simulate.hpp"}  # what a user of the library begins with
        for path in code_files():
            used |= {
                name
                for _, name in includes(path)
                if name in public and public[name] != path and module_of(public[name]) != module_of(path)
            }
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
        faults = [
            f"{self.name(path)}: {name}"
            for path in code_files()
            if path.is_relative_to(SOURCE / "include")
            for quoted, name in includes(path)
            if not quoted and ("/" in name or name.endswith((".h", ".hpp")))
        ]
        self.assertEqual(faults, [])

    def test_headers_are_guarded(self):
        """Every header begins with #pragma once."""
        for path in code_files():
            if path.suffix == ".hpp":
                self.assertTrue(path.read_text().startswith("#pragma once\n"), self.name(path))

    def test_files_include_what_they_use(self):
        """Every file has, by its own includes, the headers of the names of the standard library that it uses and those of the project's
        types. A build with ORRERY_UNITY compiles sources together and hides what one of them lacks."""
        included, texts = Included(), {
            path: plain(path.read_text()) for path in code_files() if path.suffix in (".hpp", ".cpp")
        }
        declared = {}
        for path, text in texts.items():
            if path.suffix == ".hpp":
                for name in re.findall(r"^(?:class|struct|enum class) (\w+)[^;\n]*\{", text, re.MULTILINE):
                    declared.setdefault(name, set()).add(path)
        nested = {
            name
            for text in texts.values()
            for name in re.findall(r"^(?: +(?:class|struct|enum class)| *using) (\w+)", text, re.MULTILINE)
        }
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
                is_opaque = home != module_of(path) and not types[name].is_relative_to(
                    SOURCE / "include"
                )  # declared, not defined, for others
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

    def test_classes_have_few_functions_and_no_friends(self):
        """Classes have at most 40 member functions, private ones included, and no friends except operators, but for those of
        CLASSES_OF_MANY_FUNCTIONS and CLASSES_WITH_FRIENDS. The packet network has no exceptions."""
        many, with_friends = set(), set()
        for path in code_files():
            for found in cpp_structure.classes(path.read_text()) if path.suffix in (".hpp", ".cpp") else []:
                name = f"{self.name(path)}: {found.name}"
                if found.functions > ALL_FUNCTIONS:
                    many.add(name)
                if found.friends > 0:
                    with_friends.add(name)
        self.assertEqual(sorted(many), sorted(CLASSES_OF_MANY_FUNCTIONS))
        self.assertEqual(sorted(with_friends), sorted(CLASSES_WITH_FRIENDS))
        self.assertFalse([name for name in many | with_friends if "/network/packet" in name])

    def test_changes_that_contributing_shows_apply(self):
        """The changes in CONTRIBUTING.md apply, one after the other, to a copy of the files of today, and leave the lines that they add."""
        text = (harness.SOURCE / "CONTRIBUTING.md").read_text()
        changes = re.findall(r"^```diff\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(changes), 4)
        with tempfile.TemporaryDirectory() as folder:
            for top in ("src", "include", "docs"):
                shutil.copytree(SOURCE / top, pathlib.Path(folder) / top)
            for change in changes:
                done = subprocess.run(
                    ["git", "apply", "-"],
                    input=change,
                    capture_output=True,
                    text=True,
                    cwd=folder,
                    env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(pathlib.Path(folder).parent)},
                )
                self.assertEqual(done.returncode, 0, done.stderr + change[:200])
                for name in re.findall(r"^\+\+\+ b/(.*)$", change, re.MULTILINE):
                    added = {
                        line[1:] for line in change.splitlines() if line.startswith("+") and not line.startswith("+++")
                    }
                    self.assertTrue(added & set((pathlib.Path(folder) / name).read_text().splitlines()), name)

    def test_few_files_know_the_order_of_simultaneous_events(self):
        """Only the files of KNOWS_ORDER, at most 15, know more of ASTRA-sim's order of simultaneous events than its boundary."""
        found = {self.name(path) for path in code_files() if WORDS_OF_ORDER.search(path.read_text())}
        self.assertEqual(sorted(found - OTHER_HISTORIES), sorted(KNOWS_ORDER))
        self.assertLessEqual(len(KNOWS_ORDER), 15)

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
                circles.append(" -> ".join([*path_here[path_here.index(file) :], file]))
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
        pairs = {
            (one, other)
            for one, others in used.items()
            for other in others
            if one < other and one in used.get(other, ())
        }
        self.assertEqual(pairs, set(MUTUAL_SOURCES))

    def test_document_lines_keep_to_their_length(self):
        """No line of a document has more than 120 characters, apart from the '+' of lines of code in a diff."""
        faults = [
            f"{self.name(path)}:{number}: {len(line)} characters"
            for path in tracked_files()
            if path.suffix == ".md"
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if len(line.removeprefix("+")) > DOCUMENT_COLUMNS
        ]
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

    def test_trailing_comments_begin_with_a_noun(self):
        """A comment behind a declaration begins with a noun, a quantity or a unit, so that it can be read without the declaration."""
        beginning = re.compile(r"///< (?:of|what|by|that|in)\b", re.IGNORECASE)
        faults = [
            f"{self.name(path)}:{number}: {line.strip()}"
            for path in code_files()
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if beginning.search(line)
        ]
        self.assertEqual(faults, [])

    def test_no_state_belongs_to_the_process(self):
        """No variable of static or thread storage can change, except those of PROCESS_STATE."""
        variable = re.compile(
            r"^\s*(?:static|thread_local|inline|constinit)\s[^();]*(?:=[^;]*|\{[^;]*\})?;", re.MULTILINE
        )
        found = set()
        for path in code_files():
            for declaration in variable.findall(plain(path.read_text())):
                if not re.search(r"\b(?:constexpr|const|using|static_assert|namespace)\b", declaration.split("=")[0]):
                    found.add(
                        f"{self.name(path)}: {re.split(r'[ =;{]+', declaration.split('=')[0].strip(' ;'))[-1] or declaration.strip()}"
                    )
        self.assertEqual(sorted(found), sorted(PROCESS_STATE))

    def test_changelog_is_for_users(self):
        """Each dated version of the changelog from 0.2.0 on has at most 60 lines of at most 100 characters, in known groups, and the newest of
        them is the version of CMakeLists.txt, CITATION.cff and README.md."""
        text = (SOURCE / "CHANGELOG.md").read_text()
        parts = re.split(r"^## (?=Unreleased|\d)", text, flags=re.MULTILINE)[1:]
        self.assertTrue(parts[0].startswith("Unreleased\n"), "the changelog begins with an Unreleased section")
        versions = [re.match(r"(\d+\.\d+\.\d+)(?: \((\d{4}-\d\d-\d\d)\))?\n", part) for part in parts[1:]]
        self.assertEqual(
            versions[0][1], re.search(r"project\(orrery VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        )
        self.assertIn(f"\nversion: {versions[0][1]}\n", (SOURCE / "CITATION.cff").read_text())
        self.assertIn(f"orrery_{versions[0][1]}_amd64.deb", (SOURCE / "README.md").read_text())
        groups = {"Networks", "Collectives", "Traces", "Studies", "Command line", "Fixes"}
        for part, version in zip(parts[1:], versions):
            if version[1] == "0.1.0":
                continue
            lines = ["## " + part.splitlines()[0], *part.strip().splitlines()[1:]]
            self.assertTrue(version[2], f"{version[1]} has no date")
            self.assertLessEqual(len(lines), 60, version[1])
            self.assertEqual([line for line in lines if len(line) > 100], [], version[1])
            self.assertLessEqual(set(re.findall(r"^### (.*)$", part, re.MULTILINE)), groups, version[1])

    def test_subjects_of_commits_are_short(self):
        """The subject of each commit after FIRST_SHORT_SUBJECT has at most 72 characters."""
        done = subprocess.run(
            [
                "git",
                "-c",
                f"safe.directory={SOURCE}",
                "log",
                "--no-merges",
                "--format=%h %s",
                f"{FIRST_SHORT_SUBJECT}..HEAD",
            ],
            cwd=SOURCE,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            self.skipTest("there is no git, or no history that goes back so far")
        self.assertEqual(
            [line for line in done.stdout.splitlines() if len(line.split(" ", 1)[1]) > SUBJECT_COLUMNS], []
        )

    def test_errors_end_in_few_places(self):
        """Only the files of CATCHES_ALL catch errors of any kind."""
        found = {self.name(path) for path in code_files() if "catch (...)" in plain(path.read_text())}
        self.assertEqual(sorted(found), sorted(CATCHES_ALL))

    def test_documents_lead_to_what_exists(self):
        """Each link of a document leads to a file and, with an anchor, to a heading of it. docs/README.md links every page of docs/."""
        faults = []
        texts = {
            path: re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
            for path in tracked_files()
            if path.suffix == ".md"
        }
        headings = {
            path: {
                re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")
                for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            }
            for path, text in texts.items()
        }
        for path, text in texts.items():
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"https?:|mailto:", target):
                    continue
                file, _, anchor = target.partition("#")
                place = (path.parent / file).resolve() if file else path
                if not place.exists():
                    faults.append(f"{self.name(path)}: {target} does not exist")
                elif anchor and place in headings and anchor not in headings[place]:
                    faults.append(f"{self.name(path)}: {target}: no such heading")
        pages = {path.name for path in (SOURCE / "docs").glob("*.md")} - {"README.md"}
        self.assertEqual(
            pages - set(re.findall(r"\]\(([\w-]+\.md)\)", texts[SOURCE / "docs/README.md"])),
            set(),
            "pages that docs/README.md lacks",
        )
        self.assertEqual(faults, [])

    def test_architecture_names_what_exists(self):
        """docs/architecture.md has every module in its order, every registry, and the modules that include each foreign library. Every path
        that it names exists."""
        text = (SOURCE / "docs/architecture.md").read_text()
        modules = re.search(r"^\| module \| .*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
        self.assertEqual(
            re.findall(r"^\| `(\w+)` \|", modules, re.MULTILINE), [module for module in order()], "the table of modules"
        )
        registries = {self.name(path) for path in (SOURCE / "src").rglob("*registry.cpp")}
        self.assertEqual(
            sorted(name for name in registries if f"`{name}`" not in text), [], "registries that the document lacks"
        )
        for name in re.findall(r"`((?:src|include|tests|scripts)/[\w/.*-]+)`", text):
            self.assertTrue(list(SOURCE.glob(name.rstrip("/"))), f"docs/architecture.md: {name} does not exist")
        libraries = re.search(r"^\| library \| headers .*?\n\n", text, re.MULTILINE | re.DOTALL)[0]
        for library, pattern, row in re.findall(r"^\| ([\w.+ -]+) \| `([^`]+)` \| (.*) \|$", libraries, re.MULTILINE):
            users = sorted(
                {
                    module_of(path)
                    for path in code_files()
                    for quoted, name in includes(path)
                    if not quoted and name.startswith(pattern)
                }
            )
            self.assertEqual(
                re.findall(r"`(\w+)`", row), users, f"docs/architecture.md: the modules that include {library}"
            )

    def test_the_top_folder_holds_nothing_else(self):
        """The top folder has the files and folders of the project, and what a program has left there is not tracked."""
        files = {
            "CHANGELOG.md",
            "CITATION.cff",
            "CMakeLists.txt",
            "CMakePresets.json",
            "CONTRIBUTING.md",
            "LICENSE",
            "pyproject.toml",
            "README.md",
        }
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
                if (
                    CPP_TEST.match(line)
                    and not lines[at - 1].startswith("//")
                    and not lines[at + 1].strip().startswith("//")
                ):
                    faults.append(f"{self.name(path)}:{at + 1}: {line}")
        for path in sorted(
            path for top in ("integration", "python") for path in (SOURCE / "tests" / top).glob("test_*.py")
        ):
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
        faults = [
            f"{self.name(path)}: {name}"
            for path in test_sources()
            for name in ("temp_directory_path", '"/tmp')
            if name in path.read_text()
        ]
        self.assertEqual(faults, [])


if __name__ == "__main__":
    harness.main()
