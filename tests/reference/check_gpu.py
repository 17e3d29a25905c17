#!/usr/bin/env python3
"""Holds the model of GPUs to published times, to closed forms, and to facts about files of plans.

    check_gpu.py [FILE] [--kernels PROGRAM] [--select TEXT]

FILE has a list "cases" (by default shared/reference/gpu/golden.json). A case has an id, which says of what it is, a set-up, a quantity, and
what is expected, with a tolerance. Each case is held, or missed, or it cannot be checked (the reason is printed). Missed cases make the exit
code 1, except the KNOWN ones. PROGRAM is tests/reference/gpu_kernel.cpp, built; by default the one beside the program in the build folder.
Returns 77 if there is no such file.
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


def shape(setup, *names):
    """The parts of a set-up that say how a kernel is launched."""
    return {name: setup[name] for name in names or ("gpus", "blocks", "threads") if name in setup}


def size_in(case):
    """The bytes of a case: of its set-up, else the number at the end of its id."""
    if "bytes" in case["setup"]:
        return case["setup"]["bytes"]
    return int(re.search(r"-(\d+)$", case["id"]).group(1))


def of_kernel(kernel):
    def time(ask, case):
        setup = case["setup"]
        return ask.us(kernel, setup.get("profile", "h100"), size_in(case), **shape(setup))

    return time


def slope(kernel):
    """The time of a larger size less that of a smaller one, as the text of the case has them."""

    def difference(ask, case):
        units = {"KiB": KiB, "MiB": MiB, "GiB": GiB}
        sizes = [int(number) * units[unit] for number, unit in re.findall(r"(\d+) (KiB|MiB|GiB)", case["what"])]
        small, large = min(sizes), max(sizes)
        times = [ask.us(kernel, case["setup"]["profile"], size, **shape(case["setup"])) for size in (small, large)]
        return times[1] - times[0]

    return difference


def one_way_rate(ask, case):
    """The rate of blocks that store to a peer, without the launch."""
    size = 64 * MiB
    answer = ask.ask(kernel="copy", profile=case["setup"]["profile"], bytes=size, **shape(case["setup"]))
    return size / (answer["us"] - answer["fixed_us"] - answer["l2_us"]) / 1e3


def engine_rate(ask, case):
    """The rate of copies that follow each other in a copy engine."""
    profile, size = case["setup"]["profile"], case["setup"]["bytes"]
    few, many = (ask.us("engine-copies", profile, size, blocks=count) for count in (4, 8))
    return size / ((many - few) / 4) / 1e3


def remote_load(ask, case):
    """The time that one more dependent load takes."""
    one, two = (ask.us("get", case["setup"]["profile"], size, blocks=1, threads=8, bursts=0) for size in (128, 256))
    return two - one


def load_store_or_engine(ask, case):
    return [ask.us("copy-engine", "h100", size) / ask.us("put", "h100", size) for size in (MiB, 128 * MiB)]


def crossover(ask, link, latency_us):
    """The least power of two from 64 KiB on at which stores and a signal are faster than packets."""
    for size in (64 * KiB << k for k in range(11)):
        at = {"link": link, "latency": latency_us * 500, "gpus": 2, "blocks": 32}
        if ask.us("put", "h100", size, **at) <= ask.us("packets", "h100", size, **at):
            return size
    raise NotChecked("packets are faster up to 64 MiB")


def crossovers(ask, case):
    gib = 1.073741824
    if "1 TiB" in case["quantity"]:
        return crossover(ask, 1024 * gib, 0.5) / crossover(ask, 256 * gib, 0.5)
    return crossover(ask, 256 * gib, 5) / crossover(ask, 256 * gib, 0.5)


def get_against_put(ask, case):
    setup = case["setup"]
    more = {"gpus": setup["gpus"], "blocks": setup["workgroups"], "threads": 256, "bursts": 16}
    return ask.us("reduce-scatter-get", setup["profile"], setup["bytes"], **more) / ask.us(
        "reduce-scatter-put", setup["profile"], setup["bytes"], **more)


def unrolling(ask, case):
    """The larger of two ratios, as far as they are from 1: more unrolling than outstanding lines allow, and that of small sizes."""
    setup = case["setup"]
    more = {"gpus": setup["gpus"], "blocks": setup["workgroups"], "threads": 256}
    times = {(size, unroll): ask.us("all-to-all-get", setup["profile"], size, unroll=unroll, **more) for size, unroll in
             ((KiB, 1), (KiB, 16), (4 * MiB, 8), (4 * MiB, 16))}
    ratios = times[4 * MiB, 16] / times[4 * MiB, 8], times[KiB, 16] / times[KiB, 1]
    return max(ratios, key=lambda ratio: abs(ratio - 1))


def events(ask, case):
    """How events grow with the size, line by line and in bursts."""

    def count(size, bursts):
        return ask.ask(kernel="all-gather-put", profile=case["setup"]["profile"], bytes=size, gpus=2, blocks=4, threads=256,
                       bursts=bursts)["events"]

    return [count(256 * MiB, bursts) / count(64 * MiB, bursts) for bursts in (0, 64)]


def switch_bytes(ask, case):
    """The bytes that each GPU sends to the switch, without headers."""
    setup = case["setup"]
    lines = ask.ask(kernel="in-switch", profile="h100", bytes=setup["bytes"], gpus=setup["gpus"])["lines"]
    parts, stores = lines[6], lines[7]
    return (parts + stores) * setup["line"] // setup["gpus"]


def switch_rate(ask, case):
    """Bytes over time of an all-reduce in the switch."""
    size = case["setup"].get("bytes") or int(re.search(r"(\d+)M", case["id"]).group(1)) * MiB
    return size / ask.us("in-switch", case["setup"].get("profile", "h100"), size) / 1e3


def servers(what):
    def last(ask, case):
        return ask.ask(servers=what, **case["setup"])["ps"]

    return last


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


def published_sums(ask, case):
    """Sums over figures of a paper, which hold it to itself."""
    setup = case["setup"]
    if "completion_us" in setup:
        return 2 * (setup["gpus"] - 1) / setup["gpus"] * setup["bytes"] * 8 / setup["completion_us"] / 1e3
    if "flow_ns" in setup:
        return setup["steps"] * setup["flow_ns"] / 1e3
    return 2 * setup["l2"] + setup["store"]


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


CHECKS = (  # the beginning of ids, and what computes the quantity
    ("fmt-chunk", chunk_offset), ("fmt-", format_counts), ("ig-", graph_counts), ("net-", network_counts), ("dim-", dimensions),
    ("cf-tandem", servers("run")), ("cf-window", servers("loop")), ("cf-symmetric", servers("loops")), ("cf-burst", servers("bursts")),
    ("cf-nvls", switch_bytes), ("a3-table1|gb200-sol", published_sums), ("a3-fig4", crossovers), ("a3-fig10", get_against_put),
    ("a3-fig12", unrolling), ("a3-fig14", events), ("h100-tut-put", of_kernel("put")), ("h100-tut-get", of_kernel("get")),
    ("h100-tut-pkt", of_kernel("packets")), ("h100-tut-port", of_kernel("copy-engine")), ("h100-lsu-dma", load_store_or_engine),
    ("h100-remote-load", remote_load), ("graph-node", lambda ask, case: ask.us("scale", "h100", size_in(case))),
    ("a100-k4-slope", slope("all-pairs-put")), ("a100-.*slope", slope("two-stage")), (".*onestage-slope", slope("one-stage")),
    (".*twostage-slope", slope("two-stage")), ("a100-oneshot", of_kernel("one-shot-blocks")), (".*-(oneshot-mc|multicast)", of_kernel("multicast")),
    (".*oneshot", of_kernel("one-shot")), (".*twoshot", of_kernel("two-shot")), (".*onestage|.*1stage", of_kernel("one-stage")),
    (".*twostage|.*2stage", of_kernel("two-stage")), (".*nvls-bw", switch_rate), (".*nvls|.*switch", of_kernel("in-switch")),
    (".*allgather-dma", of_kernel("all-gather-engines")), (r"h20-\d*sm", one_way_rate), ("h20-ce", engine_rate))


def value_of(ask, case):
    for beginning, compute in CHECKS:
        if re.match(beginning, case["id"]) and compute is not None:
            return compute(ask, case)
    raise NotChecked("no check for this id")


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
    for case in json.loads(arguments.file.read_text())["cases"]:
        if arguments.select not in case["id"]:
            continue
        try:
            found = value_of(ask, case)
        except NotChecked as reason:
            print(f"none   {case['id']}: {reason}")
            unchecked += 1
            continue
        except (LookupError, ValueError, TypeError, AttributeError) as error:  # a case that this script cannot read is one it does not hold
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
