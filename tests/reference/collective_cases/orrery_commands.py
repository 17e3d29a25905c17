"""Kind orrery: whole runs that a case describes in words. RUNS has those that no program can read, by id; of other cases the command in the
inputs is run."""
import json
import pathlib
import re
import shlex

import harness

from .support import Missed, expect, expect_known, is_near, show_collective

H100 = [{"shape": "Switch", "size": 8, "bandwidth": "450 GB/s", "latency": "468 ns"},
        {"shape": "Switch", "size": 4, "bandwidth": "400 Gb/s", "latency": "1 us"}]
AUDIT = harness.SHARED / "reference/audit"


def run_seconds(file, folder, *arguments):
    """Returns the step time of a run of a configuration."""
    ran = harness.orrery("run", file, "--output", folder / "run.h5", "--force", "--progress=none", *arguments)
    if ran.code != 0:
        raise Missed(f"exit code {ran.code}: {ran.err.strip()[:300]}")
    value, unit = re.search(r"^step time ([\d.]+) (\w+)", ran.out, re.MULTILINE).groups()
    return float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}[unit]


def chunks(case, folder):
    """Returns the times of small collectives with several numbers of chunks, without a library and with one."""
    times = []
    for library in ({}, {"library": {"name": "nccl-h100"}}):
        of_one = []
        for count in (1, 4, 16):
            system = {"system": {"network": {"dimensions": H100[:1]}, "collectives": {"chunks": count, **library}}}
            of_one.append(show_collective(folder, system, "all-reduce", 8)["last_done_ps"])
        expect(len(set(of_one)) == 1, f"{of_one} ps with 1, 4 and 16 chunks; expected one time")
        times += of_one
    return [time * 1e-12 for time in times]


def networks(case, folder):
    """Returns the ratios to the congestion-unaware network."""
    system = {"system": {"network": {"dimensions": H100}, "collectives": {"library": {"name": "nccl-h100"}}}}
    times = []
    for network in ("congestion-unaware", "congestion-aware", "packet"):
        system["system"]["network"]["model"] = network
        if network == "congestion-aware":
            system["system"]["network"]["switching"] = "cut-through"
        else:
            system["system"]["network"].pop("switching", None)
        times.append(show_collective(folder, system, "all-reduce", 64 << 20)["last_done_ps"] * 1e-12)
    for time in times:
        expect(is_near(time, times[0] * case["expected"]["ratio_to_unaware"], case["tolerance"]), f"{times} s; expected equal times")
    return times


def nvlink_sweep(case, folder):
    file = AUDIT / "stack-ignores-network/step.yaml"
    times = [run_seconds(file, folder, "--fold", "--memory=report", f"--set=system.network.dimensions.0.bandwidth={rate} GB/s")
             for rate in (45, 200, 450, 900)]
    low, high = case["expected"].get("at_450_within", (0, float("inf")))
    expect(low <= times[2] <= high, f"{times} s; expected {low} to {high} s at 450 GB/s")
    return times


def two_tiers(case, folder):
    file = AUDIT / "nic-counted-twice/two_tiers.yaml"
    return [run_seconds(file, folder, "--set=system.network.dimensions.0.port=nic", "--set=system.network.dimensions.1.port=nic")]


def bisection(case, folder):
    ring = {"shape": "Ring", "size": 8, "bandwidth": "100 GB/s", "latency": "1 us"}
    system = {"system": {"network": {"dimensions": [ring] * 3}, "collectives": {"all-to-all": ["direct"] * 3}}}
    return [show_collective(folder, system, "all-to-all", 64 << 20)["last_done_ps"] * 1e-12]


def deepseek(case, folder):
    return [run_seconds(AUDIT / "deepseek-v3-h800/step.yaml", folder, "--fold", "--set=workload.parallel.gather-before-forward=false")]


def command(case, folder):
    """Runs the command that stands in the inputs, in the folder that they name."""
    inputs = case["inputs"]
    words = shlex.split(inputs.get("command", ""))
    if len(words) < 3 or words[0] != "orrery":
        raise Missed("no command that can be run, and no case that is known here")
    expect_known(case["expected"], "seconds", "at_least_seconds", "at_most_seconds")
    at = harness.SHARED / inputs["file"] if "file" in inputs else pathlib.Path.cwd()
    at = at if at.is_dir() else at.parent
    if words[1] == "run":
        file = at / words[2]
        return [run_seconds(file, folder, *words[3:])]
    ran = harness.orrery(*words[1:], *([] if "--json" in words else ["--json"]), cwd=at)
    if ran.code != 0:
        raise Missed(f"exit code {ran.code}: {ran.err.strip()[:300]}")
    return [json.loads(ran.out)["last_done_ps"] * 1e-12]


RUNS = {"chunks-do-not-count": chunks, "aware-as-unaware-when-empty": networks, "step-nvlink-sweep": nvlink_sweep,
        "one-nic-two-tiers": two_tiers, "direct-respects-bisection": bisection,
        "deepseek-v3-step": deepseek}


def check_orrery(case, folder):
    times, expected = RUNS.get(case["id"], command)(case, folder), case["expected"]
    text = ", ".join(f"{time:.6g}" for time in times) + " s"
    least = expected.get("at_least_seconds", 0)
    for time, low in zip(times, least if isinstance(least, list) else [least] * len(times)):
        expect(time >= low * (1 - 1e-9), f"{text}; expected at least {least}")
    if "at_most_seconds" in expected:
        expect(all(time <= expected["at_most_seconds"] for time in times), f"{text}; expected at most {expected['at_most_seconds']}")
    if "seconds" in expected:
        expect(is_near(times[-1], expected["seconds"], case["tolerance"]), f"{text}; expected {expected['seconds']}")
    if expected.get("order") == "decreasing":
        expect(all(b < a for a, b in zip(times, times[1:])), f"{text}; expected decreasing times")
    if expected.get("order") == "increasing":
        expect(all(b > a for a, b in zip(times, times[1:])), f"{text}; expected increasing times")
    return text


KINDS = {"orrery": check_orrery}
