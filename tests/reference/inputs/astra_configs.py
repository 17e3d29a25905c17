"""Configurations of ASTRA-sim. There are no facts: each pair of a system and a network beside each other must give the network's dimensions,
or be refused for what ASTRA-sim itself does not read: a value that is no number, or a topology or an algorithm of a fork."""
import collections
import json
import math
import re

import harness
import yaml

SHAPES = ("Ring", "FullyConnected", "Switch")
ALGORITHM = re.compile(
    r"(ring|oneRing|direct\d*|oneDirect\d*|halvingDoubling|oneHalvingDoubling|doubleBinaryTree)", re.IGNORECASE
)


def loaded(path):
    """Returns what a file of JSON or YAML holds. Of a key that stands twice the last value counts."""
    try:
        return json.loads(path.read_text()) if path.suffix == ".json" else yaml.safe_load(path.read_text())
    except (ValueError, yaml.YAMLError):
        return None


def kind_of(content):
    if not isinstance(content, dict):
        return None
    if "npus_count" in content:
        return "network"
    if "memory-type" in content:
        return "memory"
    if "preferred-dataset-splits" in content or any("-implementation" in key for key in content):
        return "system"
    return (
        "groups"
        if content
        and all(isinstance(value, list) and all(isinstance(npu, int) for npu in value) for value in content.values())
        else None
    )


def files_of(folder):
    """Returns {kind: files} of a folder, without those below it."""
    found = collections.defaultdict(list)
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".yml", ".yaml"):
            found[kind_of(loaded(path))].append(path)
    return found


def network_of(path):
    return loaded(path)


def num_npus(network):
    return math.prod(network["npus_count"])


def reason_to_refuse(system, network, folders):
    """Returns a word that the refusal of a pair must have; none if it must be accepted."""
    shapes = network["topology"]
    for entry in network["bandwidth"] + network["latency"]:
        if not isinstance(entry, (int, float)):
            return str(entry)
    for shape in shapes:
        if shape not in SHAPES:
            return str(shape)
    for key, value in loaded(system).items():
        if key.endswith("-implementation-custom"):
            if not all(any(folder.glob(f"{name}*")) for name in value for folder in folders):
                return "no such file"
        elif key.endswith("-implementation") and isinstance(value, list):
            for name in value:
                if not ALGORITHM.fullmatch(name):
                    return name
    return None


def judged(outcome, reason):
    """Returns how an outcome differs from a refusal for a reason, or from acceptance."""
    if reason is None:
        return "" if outcome.code == 0 else f"exit code {outcome.code}: {outcome.err.strip()[:600]}"
    if outcome.code != 3 or reason not in outcome.err:
        return f"exit code {outcome.code} instead of a refusal that names {reason}: {outcome.err.strip()[:600]}"
    return ""


def check_pair(system, network_file):
    network = network_of(network_file)
    reason = reason_to_refuse(system, network, [system.parent])
    outcome = harness.orrery(
        "show", "topology", "--json", f"--network-configuration={network_file}", f"--system-configuration={system}"
    )
    difference = judged(outcome, reason)
    if difference or reason:
        return difference
    told = json.loads(outcome.out)
    found = [
        (each["shape"], each["size"], round(each["bytes_per_ns"] * 1e9 / 2**30, 6), each["latency_ns"])
        for each in told["dimensions"]
    ]
    expected = list(zip(network["topology"], network["npus_count"], network["bandwidth"], network["latency"]))
    if told["npus"] != num_npus(network) or [tuple(each) for each in found] != expected:
        return f"found {told['npus']} NPUs, {found}; expected {expected}"
    return ""


def pairs_of(folder):
    """Pairs a network with the system of the same name, or with the only one beside it."""
    found = files_of(folder)
    for network in found["network"]:
        alike = [system for system in found["system"] if system.stem == network.stem]
        if alike or len(found["system"]) == 1:
            yield (alike or found["system"])[0], network


def check(folder, facts):
    del facts
    for each in [folder] + sorted(path for path in folder.rglob("*") if path.is_dir()):
        for system, network in pairs_of(each):
            yield f"{network.relative_to(folder)} with {system.name}", check_pair(system, network)
