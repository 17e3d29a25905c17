"""Kind orrery: runs of the program that a case describes, by a command, a file of the audit, or words such as "64 MiB all-reduce on 32 NPUs in the
packet network". What the words do not say is that of nodes of eight H100 that NICs of 400 Gbit/s join."""
import copy
import json
import pathlib
import re
import shlex

import harness

from .support import Missed, expect, expect_known, is_near, show_collective

NODE, LATENCIES, NIC = 8, ("468 ns", "1 us"), "400 Gb/s"
LINKS = {"nccl-a100": "300 GB/s", "nccl-h100": "450 GB/s", "nccl-b200": "900 GB/s", "rccl-mi300x": "448 GB/s"}
NETWORKS = ("congestion-unaware", "congestion-aware", "packet")
KINDS_OF_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "barrier")
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "both": 2}
UNITS = {
    "B": 1,
    **{prefix + "B": 1000**power for power, prefix in enumerate(("k", "M", "G"), 1)},
    **{prefix + "iB": 1024**power for power, prefix in enumerate(("K", "M", "G"), 1)},
}
SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}
AUDIT = harness.SHARED / "reference/audit"
# Cases may call questions of the audit by number.
QUESTIONS = {
    "c01": "stack-ignores-network",
    "c04": "deepseek-v3-h800",
    "c06": "nic-counted-twice",
    "c07": "aware-stores-messages",
}


def found(pattern, text, default=None):
    """Returns the last group of the pattern in the text, or the default."""
    match = re.search(pattern, text)
    return match.group(match.lastindex) if match else default


def numbers(text):
    return [number.strip() for number in text.split(",")]


def step_seconds(words, at, folder, settings):
    """Returns the step time of a command that runs a configuration."""
    results = folder / "run.h5"
    words = [str(at / word) if (at / word).is_file() else word for word in words]
    if "{out}" not in words and "--output" not in words:
        words += ["--output", "{out}"]
    words = [word.replace("{out}", str(results)) for word in words]
    ran = harness.orrery(*words, "--force", "--progress=none", *(f"--set={setting}" for setting in settings))
    if ran.code != 0:
        raise Missed(f"exit code {ran.code}: {ran.err.strip()[:300]}")
    value, unit = re.search(r"^step time ([\d.]+) (\w+)", ran.out, re.MULTILINE).groups()
    return float(value) * SECONDS[unit]


def question(text):
    """Returns the folder of the audit that the text names; None if it names none."""
    name = found(r"audit/([\w-]+)", text) or QUESTIONS.get(found(r"\b(c\d\d)\b", text, ""))
    return AUDIT / name if name and (AUDIT / name).is_dir() else None


def run_of(text, at):
    """Returns the words of the command that runs a question: as its own checks run it, for the file that the text names."""
    for check in json.loads((at / "case.json").read_text())["checks"]:
        words = check["orrery"]
        if words[0] == "run" and found(r"([\w-]+\.yaml)", text, words[1]) == words[1]:
            return list(words)
    raise Missed(f"no check of {at} runs what is described")


def steps(inputs, folder):
    """Returns the step times of a question of the audit: for each of the rates that stand behind `at`, of the links in a node, and with what
    stands between backquotes, in all dimensions if it is a key of these."""
    text = " ".join(str(value) for value in inputs.values())
    at = question(text)
    if at is None:
        raise Missed("no question of the audit, and no command, of which this could be a run")
    words, settings = run_of(text, at), []
    for key, value in re.findall(r"`([\w.-]+): ([^`]+)`", text):
        dimensions = found(r"` on (\w+) dimensions", text)
        settings += (
            [f"system.network.dimensions.{d}.{key}={value}" for d in range(NUMBERS[dimensions])]
            if dimensions
            else [f"{key}={value}"]
        )
    rates = re.search(r"\bat ([\d., ]+) (GB/s|Gb/s)", text)
    if not rates:
        return {"": [step_seconds(words, at, folder, settings)]}, []
    swept = "system.network.dimensions.0.bandwidth"
    words = [
        word
        for i, word in enumerate(words)
        if not word.startswith(swept) and not (word == "--set" and words[i + 1].startswith(swept))
    ]
    values = numbers(rates.group(1))
    return {
        "": [step_seconds(words, at, folder, [*settings, f"{swept}={value} {rates.group(2)}"]) for value in values]
    }, values


def described_network(text, library):
    """Returns the dimensions that a text describes."""
    row = re.search(r"(\w+) (Ring|Mesh|Switch|FullyConnected) dimensions? of (\d+)", text)
    if row:
        bandwidth = found(r"links of ([\d.]+ G[Bb]/s)", text, NIC)
        count = NUMBERS.get(row.group(1)) or int(row.group(1))
        return [
            {"shape": row.group(2), "size": int(row.group(3)), "bandwidth": bandwidth, "latency": "1 us"}
            for _ in range(count)
        ]
    npus = int(found(r"--npus (\d+)|(\d+) (?:NPUs|GPUs|members)", text, NODE))
    sizes = [min(npus, NODE), max(npus // NODE, 1)]
    rates = [LINKS.get(library, LINKS["nccl-h100"]), NIC]
    return [
        {"shape": "Switch", "size": size, "bandwidth": rate, "latency": latency}
        for size, rate, latency in zip(sizes, rates, LATENCIES)
        if size > 1
    ]


def with_key(configuration, path, value):
    """Returns a copy of a configuration in which the key has the value."""
    changed = copy.deepcopy(configuration)
    *heads, last = path.split(".")
    at = changed
    for head in heads:
        at = at[int(head)] if isinstance(at, list) else at.setdefault(head, {})
    at[last] = json.loads(value) if re.fullmatch(r"[\d.]+|true|false", value) else value
    return changed


def collectives(inputs, folder):
    """Returns the times of a collective that is described: those of each library in a list of its own, in each network and with each value
    of the key that varies."""
    text = inputs["command"]
    kind = found(rf"--kind[ =]({'|'.join(KINDS_OF_COLLECTIVES)})", text) or found(
        rf"\b({'|'.join(KINDS_OF_COLLECTIVES)})\b", text
    )
    size = re.search(r"\b([\d.]+) ([KMGk]?i?B)\b(?!/)", text)
    if kind is None or size is None:
        raise Missed("the command names no kind of collectives or no size")
    num_bytes = int(float(size.group(1)) * UNITS[size.group(2)])
    libraries = re.findall(r"none|(?:nccl|rccl)-\w+", inputs.get("library", "")) or [
        found(r"library ((?:nccl|rccl)-\w+)", text, "none")
    ]
    networks = [name for name in NETWORKS if re.search(rf"(?<![\w-]){name}(?![\w-])", text)] or [NETWORKS[0]]
    varied = re.search(r"--set ([\w.-]+)=(\w+), \2 = ([\d., ]+)", text)
    algorithm = found(rf"{kind}: (\w+)", text)
    times = {}
    for library in libraries:
        dimensions = described_network(text, library)
        made = {"system": {"network": {"dimensions": dimensions}, "collectives": {}}}
        if library != "none":
            made["system"]["collectives"]["library"] = {"name": library}
        if algorithm:
            made["system"]["collectives"][kind] = [algorithm] * len(dimensions)
        for network in networks:
            made["system"]["network"]["model"] = network
            variants = (
                [with_key(made, varied.group(1), value) for value in numbers(varied.group(3))] if varied else [made]
            )
            npus = 1
            for dimension in dimensions:
                npus *= dimension["size"]
            brought = num_bytes // npus if kind == "all-gather" else num_bytes
            times.setdefault(library, []).extend(
                show_collective(folder, variant, kind, brought)["last_done_ps"] * 1e-12 for variant in variants
            )
    return times, networks if len(networks) > 1 else []


def command(inputs, folder):
    """Runs the command that stands in the inputs, in the folder that they name; None if it is none that can be run as it stands."""
    try:
        words = shlex.split(inputs.get("command", ""))
    except ValueError:
        return None
    at = harness.SHARED / inputs["file"] if "file" in inputs else pathlib.Path.cwd()
    at = at if at.is_dir() else at.parent
    is_plain = len(words) > 2 and words[0] == "orrery" and not re.search(r"`|, ", inputs["command"])
    if not is_plain:
        return None
    if words[1] == "run":
        return {"": [step_seconds(words[1:], at, folder, [])]}, []
    ran = harness.orrery(*words[1:], *([] if "--json" in words else ["--json"]), cwd=at)
    if ran.code != 0:
        raise Missed(f"exit code {ran.code}: {ran.err.strip()[:300]}")
    return {"": [json.loads(ran.out)["last_done_ps"] * 1e-12]}, []


def answers(inputs, folder):
    """Returns lists of seconds by what they are of, and what the items of a list are of."""
    as_it_stands = command(inputs, folder)
    if as_it_stands is not None:
        return as_it_stands
    if "show collective" in inputs.get("command", ""):
        return collectives(inputs, folder)
    return steps(inputs, folder)


def check_orrery(case, folder):
    series, of = answers(case["inputs"], folder)
    expected, tolerance = case["expected"], case["tolerance"]
    within = {key: re.fullmatch(r"at_([\d.]+)_within", key) for key in expected}
    expect_known(
        {key: value for key, value in expected.items() if not within[key]},
        "seconds",
        "at_least_seconds",
        "at_most_seconds",
        "order",
        "ratio_to_unaware",
    )
    text = "; ".join(f"{name} {', '.join(f'{time:.6g}' for time in times)} s".strip() for name, times in series.items())
    for times in series.values():
        least, most = expected.get("at_least_seconds", 0), expected.get("at_most_seconds", float("inf"))
        for limit, holds in ((least, lambda a, b: a >= b * (1 - 1e-9)), (most, lambda a, b: a <= b * (1 + 1e-9))):
            limits = limit if isinstance(limit, list) else [limit] * len(times)
            expect(len(limits) == len(times) and all(map(holds, times, limits)), f"{text}; expected {least} to {most}")
        if "seconds" in expected:
            wanted = (
                expected["seconds"] if isinstance(expected["seconds"], list) else [expected["seconds"]] * len(times)
            )
            expect(
                len(wanted) == len(times) and all(is_near(a, b, tolerance) for a, b in zip(times, wanted)),
                f"{text}; expected {wanted}",
            )
        pairs = list(zip(times, times[1:]))
        orders = {
            "decreasing": all(b < a for a, b in pairs),
            "increasing": all(b > a for a, b in pairs),
            "equal": all(is_near(time, times[0], max(tolerance, 1e-9)) for time in times),
        }
        if "order" in expected:
            expect(
                len(times) > 1 and orders[expected["order"]], f"{text}; expected an order that is {expected['order']}"
            )
        if "ratio_to_unaware" in expected:
            wanted = times[0] * expected["ratio_to_unaware"]
            expect(
                len(times) > 1 and all(is_near(time, wanted, tolerance) for time in times[1:]),
                f"{text}; expected {wanted:.6g} s",
            )
        for key, match in within.items():
            if match:
                expect(match.group(1) in of, f"no run at {match.group(1)}, but at {of}")
                low, high = expected[key]
                expect(
                    low <= times[of.index(match.group(1))] <= high,
                    f"{text}; expected {low} to {high} s at {match.group(1)}",
                )
    return text


KINDS = {"orrery": check_orrery}
