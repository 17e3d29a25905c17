"""Chakra execution traces and the configurations of ASTRA-sim beside them. There are no facts: this module counts the nodes, the collectives
and their bytes of each trace on its own, and a set that has a configuration must be accepted, or refused for what ASTRA-sim does not have."""
import collections
import json
import pathlib
import re
import tempfile

import chakra
import harness
from inputs import astra_configs

KINDS = [
    "all-reduce",
    "reduce",
    "all-gather",
    "gather",
    "scatter",
    "broadcast",
    "all-to-all",
    "reduce-scatter",
    "reduce-scatter",
    "barrier",
]


def plain(value):
    return getattr(value, "value", value)


def counted(path):
    """Returns (nodes, host work, {kind: [collectives, bytes]}) of a trace."""
    nodes = chakra.read(path)
    cpu, collectives = 0, collections.defaultdict(lambda: [0, 0])
    for node in nodes:
        attributes = node.attributes
        if node.type in (chakra.COMP, chakra.COLL) and plain(attributes.get("is_cpu_op", 0)):
            cpu += 1
        elif node.type == chakra.COLL and (
            plain(attributes.get("comm_size", 0)) or plain(attributes["comm_type"]) == chakra.BARRIER
        ):
            each = collectives[KINDS[plain(attributes["comm_type"])]]
            each[0] += 1
            each[1] += plain(attributes.get("comm_size", 0))
    return len(nodes), cpu, dict(collectives)


def check_trace(path):
    outcome = harness.orrery("show", "trace", path, "--json")
    if outcome.code != 0:
        return f"refused: {outcome.err.strip()}"
    figures = json.loads(outcome.out)
    found = (
        figures["nodes"],
        sum(figures["kinds"].get(kind, 0) for kind in ("cpu", "host")),
        {kind: [each["count"], each["bytes"]] for kind, each in figures.get("collectives", {}).items()},
    )
    expected = counted(path)
    return "" if found == expected else f"found {found}, expected {expected}"


def sets_of(folder):
    """Returns {prefix: NPUs} of the traces of a folder."""
    sets = collections.defaultdict(set)
    for path in folder.glob("*.et"):
        name = re.fullmatch(r"(.*)\.(\d+)\.et", path.name)
        if name:
            sets[folder / name[1]].add(int(name[2]))
    return sets


def check_set(prefix, npus):
    """Checks a set with its configuration; returns nothing if it has none of as many NPUs."""
    found = astra_configs.files_of(prefix.parent)
    if len(found["system"]) != 1 or len(found["network"]) != 1 or npus != set(range(len(npus))):
        return None
    network = astra_configs.network_of(found["network"][0])
    reason = astra_configs.reason_to_refuse(found["system"][0], network, [found["system"][0].parent])
    if not reason and astra_configs.num_npus(network) != len(npus):
        return None
    flags = [
        f"--workload-configuration={prefix}",
        f"--system-configuration={found['system'][0]}",
        f"--network-configuration={found['network'][0]}",
    ]
    flags += [f"--comm-group-configuration={path}" for path in found["groups"][:1]]
    with tempfile.TemporaryDirectory(prefix="orrery-inputs-") as made:
        none = pathlib.Path(made) / "remote_memory.json"
        none.write_text("{}")
        flags.append(f"--remote-memory-configuration={(found['memory'] or [none])[0]}")
        return astra_configs.judged(harness.orrery("check", *flags), reason)


def check(folder, facts):
    del facts
    for path in sorted(folder.rglob("*.et")):
        yield path.relative_to(folder), check_trace(path)
    for each in sorted(path for path in folder.rglob("*") if path.is_dir()):
        for prefix, npus in sets_of(each).items():
            difference = check_set(prefix, npus)
            if difference is not None:
                yield f"{prefix.relative_to(folder)} ({len(npus)} NPUs)", difference
