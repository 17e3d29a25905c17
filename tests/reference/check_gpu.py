#!/usr/bin/env python3
"""Holds the model of GPUs to published times, to closed forms, and to facts about files of plans.

    check_gpu.py [FILE] [--kernels PROGRAM] [--select TEXT]

FILE has a list "cases" (by default shared/reference/gpu/golden.json). A case has a kind, a quantity, a set-up, a text that says what it is, and
what is expected, with a tolerance. These decide what is computed; the id only names the case. Each case is held, or missed, or it cannot be
checked: then what it lacks is printed. Missed cases make the exit code 1, except the KNOWN ones. PROGRAM is tests/reference/gpu_kernel.cpp,
built; by default the one beside the program in the build folder. Returns 77 if there is no such file.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "support"), str(here)]

import harness  # noqa: E402
import infragraph_blueprints  # noqa: E402

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
KNOWN = {}  # misses that are known, with their reasons
PLANS = harness.SHARED / "inputs/mscclpp", harness.SHARED / "reference/gpu"


class NotChecked(Exception):
    """Why a case cannot be checked."""


class Kernels:
    """Asks the program, which answers one line for each line."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise NotChecked(answer["error"])
        return answer

    def us(self, kernel, profile, size, **more):
        return self.ask(kernel=kernel, profile=profile, bytes=size, **more)["us"]


class Given(dict):
    """A case or its set-up, which names what it lacks."""

    def __init__(self, what, values):
        super().__init__(values)
        self.what = what

    def __missing__(self, key):
        raise NotChecked(f"{self.what} lacks '{key}'")


UNITS = {"B": 1, "KiB": KiB, "MiB": MiB, "GiB": GiB, "KB": 1000, "MB": 10**6, "GB": 10**9}


def sizes_in(text):
    """The sizes that a text has, in bytes and in its order."""
    return [
        round(float(number.replace(",", "")) * UNITS[unit])
        for number, unit in re.findall(r"([\d.,]+) ?([KMG]i?B|B)\b(?!/s)", text)
    ]


def text_of_case(case):
    """The words of a case that say what it is."""
    setup = case["setup"]
    parts = [setup.get("kernel", ""), setup.get("plan", ""), setup.get("program", ""), case.get("what", "")]
    return " ".join(map(str, parts)).lower().replace("_", "-")


def shape(setup):
    """The parts of a set-up that say how a kernel is launched."""
    return {name: setup[name] for name in ("gpus", "blocks", "threads") if name in setup}


def size_in(case):
    """The bytes of a case: of its set-up, else of its text, else the number at the end of its id."""
    if "bytes" in case["setup"]:
        return case["setup"]["bytes"]
    if sizes := sizes_in(case.get("what", "")):
        return sizes[0]
    if at_end := re.search(r"-(\d+)([KMG]?)$", case.get("id", "")):
        return int(at_end[1]) * {"": 1, "K": KiB, "M": MiB, "G": GiB}[at_end[2]]
    return case["setup"]["bytes"]


KERNELS = (  # words of a case, and the kernel that they are about; the first that fits counts
    (r"multicast|oneshot-mc|one-shot-mc", "multicast"),
    (r"in-switch|nvls|\bswitch\b", "in-switch"),
    (r"all-?gather by copy engines|allgather-dma|all-?gather.*copy engine", "all-gather-engines"),
    (r"one-?shot.*ll16|one-shot-blocks", "one-shot-blocks"),
    (r"one-?shot", "one-shot"),
    (r"two-?shot", "two-shot"),
    (r"one-?stage|\b1-?stage", "one-stage"),
    (r"two-?stage|\b2-?stage", "two-stage"),
    (r"reduce-scatter and all-?gather by stores|all-pairs", "all-pairs-put"),
    (r"copy engine|host proxy|port channel|\bport\b", "copy-engine"),
    (r"packets|\bpkt\b", "packets"),
    (r"\bscale\b", "scale"),
    (r"\bget\b", "get"),
    (r"\bput\b", "put"),
)


def kernel_of(case):
    for text in (
        text_of_case(case),
        case.get("id", "").lower(),
    ):  # of a case whose text is "the same, large" the id says it
        for words, kernel in KERNELS:
            if re.search(words, text):
                return kernel
    raise NotChecked(
        "neither its text nor its set-up names a kernel that is known: "
        + ", ".join(dict.fromkeys(name for _, name in KERNELS))
    )


def kernel_time(ask, case):
    """The time of one kernel, or of a node of a graph with it."""
    kernel = kernel_of(case)
    setup = case["setup"]
    return ask.us(kernel, setup["profile"], size_in(case), **({} if kernel == "scale" else shape(setup)))


def slope(ask, case):
    """The time of a larger size less that of a smaller one, as the text of the case has them."""
    sizes = case["setup"].get("sizes") or sizes_in(case.get("what", ""))
    if len(sizes) < 2:
        raise NotChecked("its text lacks the two sizes whose times differ, such as '8 MiB less 2 MiB'")
    small, large = min(sizes), max(sizes)
    setup = case["setup"]
    times = [
        ask.us(kernel_of(case), setup["profile"], size, **shape(setup) | {"gpus": setup["gpus"]})
        for size in (small, large)
    ]
    return times[1] - times[0]


def one_way_rate(ask, case):
    """The rate of blocks that store to a peer, without the launch."""
    size = 64 * MiB
    setup = case["setup"]
    answer = ask.ask(
        kernel="copy",
        profile=setup["profile"],
        bytes=size,
        **shape(setup) | {"blocks": setup["blocks"], "threads": setup["threads"]},
    )
    return size / (answer["us"] - answer["fixed_us"] - answer["l2_us"]) / 1e3


def engine_rate(ask, case):
    """The rate of copies that follow each other in a copy engine."""
    profile, size = case["setup"]["profile"], size_in(case)
    few, many = (ask.us("engine-copies", profile, size, blocks=count) for count in (4, 8))
    return size / ((many - few) / 4) / 1e3


def rate(ask, case):
    """A rate: of a copy engine, or of blocks."""
    if "blocks" not in case["setup"] or re.search(r"copy engine|\bce\b", text_of_case(case)):
        return engine_rate(ask, case)
    return one_way_rate(ask, case)


def remote_load(ask, case):
    """The time that one more dependent load takes."""
    one, two = (ask.us("get", case["setup"]["profile"], size, blocks=1, threads=8, bursts=0) for size in (128, 256))
    return two - one


def load_store_or_engine(ask, case):
    """The time of a copy engine over that of stores, at each size that the quantity has."""
    sizes = sizes_in(case["quantity"])
    if not sizes:
        raise NotChecked("its quantity lacks the sizes, such as 't(port)/t(put) at 1 MiB; at 128 MiB'")
    profile = case["setup"]["profile"]
    ratios = [ask.us("copy-engine", profile, size) / ask.us("put", profile, size) for size in sizes]
    return ratios if isinstance(case["expected"], list) else ratios[0]


def crossover(ask, profile, link, latency_us):
    """The least power of two from 64 KiB on at which stores and a signal are faster than packets."""
    for size in (64 * KiB << k for k in range(11)):
        at = {"link": link, "latency": latency_us * 500, "gpus": 2, "blocks": 32}
        if ask.us("put", profile, size, **at) <= ask.us("packets", profile, size, **at):
            return size
    raise NotChecked("packets are faster up to 64 MiB")


def crossovers(ask, case):
    """A ratio such as "crossover(L=5us)/crossover(L=0.5us) at 256 GiB/s": what a side does not say comes after "at"."""
    quantity = case["quantity"]
    sides = re.findall(r"crossover\(([^)]*)\)", quantity)
    after = quantity[quantity.rindex(")") + 1 :]
    if len(sides) != 2:
        raise NotChecked("its quantity is no ratio of two crossovers")

    def value(side, pattern, what):
        found = re.search(pattern, side) or re.search(pattern, after)
        if not found:
            raise NotChecked(f"its quantity lacks {what}")
        return found

    def of(side):
        link, latency = value(side, r"([\d.]+) ?([GT])iB/s", "the rate of links"), value(
            side, r"L ?= ?([\d.]+) ?us", "the latency L"
        )
        return crossover(
            ask,
            case["setup"].get("profile", "h100"),
            float(link[1]) * (GiB if link[2] == "G" else GiB * 1024) / 1e9,
            float(latency[1]),
        )

    return of(sides[0]) / of(sides[1])


def get_against_put(ask, case):
    setup = case["setup"]
    more = {
        "gpus": setup["gpus"],
        "blocks": setup.get("workgroups") or setup["blocks"],
        "threads": setup.get("threads", 256),
        "bursts": 16,
    }
    size = size_in(case)
    return ask.us("reduce-scatter-get", setup["profile"], size, **more) / ask.us(
        "reduce-scatter-put", setup["profile"], size, **more
    )


def unrolling(ask, case):
    """The largest of the ratios t(u=a)/t(u=b), as far as they are from 1, such as more unrolling than outstanding lines allow (u=limit, 8, at
    a large size) and that of small sizes."""
    setup = case["setup"]
    more = {
        "gpus": setup["gpus"],
        "blocks": setup.get("workgroups") or setup["blocks"],
        "threads": setup.get("threads", 256),
    }
    ratios = []
    for part in case["quantity"].split(";"):
        unrolls = [8 if word == "limit" else int(word) for word in re.findall(r"t\(u=(\w+)\)", part)]
        if len(unrolls) != 2:
            raise NotChecked("its quantity lacks ratios such as 't(u=16)/t(u=8)'")
        size = (sizes_in(part) or [4 * MiB])[0]
        first, second = (ask.us("all-to-all-get", setup["profile"], size, unroll=unroll, **more) for unroll in unrolls)
        ratios.append(first / second)
    return max(ratios, key=lambda ratio: abs(ratio - 1))


def events(ask, case):
    """How events grow with the size, line by line and in bursts."""
    sizes = sizes_in(case["quantity"])
    if len(sizes) != 2:
        raise NotChecked("its quantity lacks two sizes, such as 'events(256 MiB)/events(64 MiB)'")
    setup = case["setup"]

    def count(size, bursts):
        return ask.ask(
            kernel="all-gather-put",
            profile=setup["profile"],
            bytes=size,
            gpus=setup.get("gpus", 2),
            blocks=setup.get("blocks", 4),
            threads=setup.get("threads", 256),
            bursts=bursts,
        )["events"]

    growths = [count(sizes[0], bursts) / count(sizes[1], bursts) for bursts in (0, 64)]
    return growths if isinstance(case["expected"], list) else growths[0]


def switch_bytes(ask, case):
    """The bytes that each GPU sends to the switch, without headers."""
    setup = case["setup"]
    lines = ask.ask(kernel="in-switch", profile=setup.get("profile", "h100"), bytes=size_in(case), gpus=setup["gpus"])[
        "lines"
    ]
    parts, stores = lines[6], lines[7]
    return (parts + stores) * setup["line"] // setup["gpus"]


def bytes_over_time(ask, case):
    """Bytes over time of a kernel."""
    return size_in(case) / kernel_time(ask, case) / 1e3


def servers(ask, case):
    """When the last request of a stream or of closed loops is complete, in FIFO servers."""
    setup = case["setup"]
    if "window" in setup:
        what = "loops" if "streams" in setup else "loop"
    else:
        what = "bursts" if "burst" in setup else "run"
    needed = ("count", "service", "latency") + (("window",) if "window" in setup else ("first", "spacing"))
    return ask.ask(
        servers=what,
        **{key: setup[key] for key in needed},
        **{key: value for key, value in setup.items() if key not in needed},
    )["ps"]


def plan_file(setup):
    names = [setup.get("file", ""), "plan_" + pathlib.Path(setup.get("program", "")).stem + ".json"]
    for folder in PLANS:
        for name in names:
            if name and (folder / name).is_file():
                return folder / name
    raise NotChecked("its plan is not in shared")


def format_counts(ask, case):
    answer = ask.ask(plan=str(plan_file(case["setup"])))
    found = {name: count for name, count in answer["counts"].items()}
    for key in case["expected"]:
        if key == "threadblocks":
            found[key] = answer["threadblocks"]
        elif key == "threadblocks_per_gpu":
            found[key] = answer["threadblocks"][0]
        elif key in ("input_chunks", "scratch_chunks"):
            found[key] = answer[key][0]
    return {key: found.get(key) for key in case["expected"]}


def chunk_offset(ask, case):
    return ask.ask(offset=case["setup"])["bytes"]


def bus_bandwidth(ask, case):
    """The bus bandwidth in Gbit/s of a ring all-reduce, from its published time."""
    setup = case["setup"]
    return 2 * (setup["gpus"] - 1) / setup["gpus"] * setup["bytes"] * 8 / setup["completion_us"] / 1e3


def steps_of_flow(ask, case):
    return case["setup"]["steps"] * case["setup"]["flow_ns"] / 1e3


def round_trips_and_store(ask, case):
    return 2 * case["setup"]["l2"] + case["setup"]["store"]


def graph_of(case):
    """What `orrery show graph` says of the case's machine or fabric."""
    name = case["setup"]["blueprint"]
    if infragraph_blueprints.blueprint(name) is None:
        raise NotChecked("no description of this machine or fabric is written here")
    with tempfile.TemporaryDirectory() as folder:
        file = infragraph_blueprints.write(name, pathlib.Path(folder) / "graph.yaml")
        done = harness.orrery("show", "graph", file, "--json")
    if done.code != 0:
        raise NotChecked(done.err.strip())
    return json.loads(done.out)


def graph_counts(ask, case):
    graph = graph_of(case)
    found = {"nodes": graph["nodes"], "edges": graph["edges"]} | graph["components"]
    return {key: found.get(key, 0) for key in case["expected"]}


def network_counts(ask, case):
    return {key: graph_of(case)["network"].get(key) for key in case["expected"]}


def dimensions(ask, case):
    return [[one["shape"].lower(), one["size"]] for one in graph_of(case).get("dimensions", [])]


CHECKS = (  # kinds, words of the quantity, and what computes it
    ("closed-form", r"last completion", servers),
    ("closed-form", r"bytes", switch_bytes),
    ("published.*", r"bus bandwidth", bus_bandwidth),
    ("published.*", r"^completion", steps_of_flow),
    ("published.*", r"^sum", round_trips_and_store),
    (".*", r"crossover", crossovers),
    (".*", r"t\(get\)/t\(put\)", get_against_put),
    (".*", r"t\(u=", unrolling),
    (".*", r"events\(", events),
    (".*", r"t\(port\)/t\(put\)", load_store_or_engine),
    ("measured", r"^difference", slope),
    ("measured", r"^S/t", bytes_over_time),
    ("measured", r"^rate", rate),
    ("measured", r"round trip", remote_load),
    ("measured", r"^time", kernel_time),
    ("format", r"operations", format_counts),
    ("format", r"^offset", chunk_offset),
    ("format", r"^nodes, edges", graph_counts),
    ("format", r"^nodes, links", network_counts),
    ("format", r"shapes", dimensions),
)


def value_of(ask, case):
    for kind, words, compute in CHECKS:
        if re.fullmatch(kind, case["kind"]) and re.search(words, case["quantity"]):
            return compute(ask, case)
    raise NotChecked(f"no check for the quantity '{case['quantity']}' of kind '{case['kind']}'")


def agrees(found, expected, tolerance):
    """Whether a value is within a tolerance; of lists each one."""
    if tolerance.get("range"):
        if isinstance(expected[0], list):
            return all(low <= value <= high for value, (low, high) in zip(found, expected, strict=True))
        return expected[0] <= found <= expected[1]
    if isinstance(expected, list) and any(isinstance(value, list) for value in expected):
        return found == expected
    if isinstance(expected, list):
        return len(found) == len(expected) and all(agrees(a, b, tolerance) for a, b in zip(found, expected))
    if isinstance(expected, dict):
        return found == expected
    return abs(found - expected) <= tolerance.get("abs", 0) + tolerance.get("rel", 0) * abs(expected)


def text_of(found, expected):
    if isinstance(expected, dict) or isinstance(found, (list, dict)) or isinstance(expected, list):
        return f"{found}, expected {expected}"
    error = f" ({100 * (found / expected - 1):+.1f} %)" if expected else ""
    return f"{found:.6g}, expected {expected:.6g}{error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=harness.SHARED / "reference/gpu/golden.json")
    parser.add_argument("--kernels", default=str(pathlib.Path(harness.BINARY).parent / "gpu_kernel"))
    parser.add_argument("--select", default="", help="only cases whose id has this text")
    arguments = parser.parse_args()
    if not arguments.file.is_file():
        print(f"there is no {arguments.file}: skipped")
        return harness.SKIPPED
    ask = Kernels(arguments.kernels)
    missed = held = unchecked = 0
    for number, given in enumerate(json.loads(arguments.file.read_text())["cases"]):
        case = Given("the case", {"id": f"case {number}"} | given)
        if arguments.select not in case["id"]:
            continue
        try:
            case["setup"] = Given("its set-up", case["setup"])
            case["expected"]  # noqa: B018: raises what it lacks
            found = value_of(ask, case)
        except NotChecked as reason:
            print(f"none   {case['id']}: {reason}")
            unchecked += 1
            continue
        except (
            LookupError,
            ValueError,
            TypeError,
            AttributeError,
        ) as error:  # a case that this script cannot read is one it does not hold
            print(f"MISSED {case['id']}: it cannot be read ({type(error).__name__}: {error})")
            missed += 1
            continue
        holds = agrees(found, case["expected"], case.get("tolerance", {}))
        known = f" (known: {KNOWN[case['id']]})" if not holds and case["id"] in KNOWN else ""
        print("held  " if holds else "MISSED", f"{case['id']}: {text_of(found, case['expected'])}{known}")
        held += holds
        missed += not holds and not known
    print(f"{held} held, {missed} missed, {unchecked} not checked")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
