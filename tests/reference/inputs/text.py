"""Text workloads of ASTRA-sim 1.0, SimAI and AICB: what `orrery show trace` finds in them, and how ASTRA-sim 1.0's system files are taken."""
import collections
import json
import pathlib
import tempfile

import harness

PASSES = ("forward", "input_grad", "weight_grad")
KINDS = {
    "ALLREDUCE": "all-reduce",
    "ALLGATHER": "all-gather",
    "REDUCESCATTER": "reduce-scatter",
    "ALLTOALL": "all-to-all",
    "BROADCAST": "broadcast",
}
TRANSFORMERS = ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")


def communicates(loop, layer_loop, index, which):
    """Says whether the loop carries out the communication of a pass of a layer."""
    if loop in TRANSFORMERS:
        return True
    if loop in ("DATA", "MICRO"):
        return which == 2
    if loop == "DISTRIBUTED_INFERENCE":
        return which == 0
    if loop.startswith("HYBRID_DLRM"):
        return which == 2 or index == 0
    if which == 1 and index == 0:
        return False
    return {"MODEL": which < 2, "DATA": which == 2}.get(layer_loop, True)


def computes(loop, index, which):
    """Says whether the loop carries out the compute of a pass of a layer."""
    if loop == "MICRO":
        return False
    if loop == "DISTRIBUTED_INFERENCE":
        return which == 0
    return not (which == 1 and index == 0 and (loop == "DATA" or loop.startswith("HYBRID_DLRM")))


def repeated(header):
    """Returns the layers whose forward pass is repeated before the gradients of the layers of checkpoint_initiates."""
    lists = {"checkpoints:": [], "checkpoint_initiates:": []}
    for key in lists:
        if key in header:
            at = header.index(key)
            lists[key] = [int(word) for word in header[at + 2 : at + 2 + int(header[at + 1])]]
    layers = []
    for layer in lists["checkpoint_initiates:"]:
        layers += range(max(one for one in lists["checkpoints:"] if one < layer), layer)
    return layers


def expectation(path):
    """Returns (facts of the file, what one training step holds): ns of compute and update, and counts and bytes by kind."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    header, rows = lines[0], lines[2:]
    steps = [(index, which) for index in range(len(rows)) for which in range(3)] + [
        (index, 0) for index in repeated(header)
    ]
    compute = {name: sum(int(row[2 + 3 * which]) for row in rows) for which, name in enumerate(PASSES)}
    compute["update"] = sum(int(row[11]) for row in rows)
    facts = {"loop": header[0], "layers_said": int(lines[1][0]), "rows": len(rows), "compute_ns": compute}
    ns, counts, sizes = 0, collections.Counter(), collections.Counter()
    for index, which in steps:
        row = rows[index]
        kind, size = row[3 + 3 * which], int(row[4 + 3 * which])
        ns += int(row[2 + 3 * which]) * computes(header[0], index, which)
        if kind == "NONE" or size == 0 or not communicates(header[0], row[-1], index, which):
            continue
        kind = KINDS[kind.split("_")[0]]
        counts[kind] += 1
        sizes[kind] += size
        ns += int(row[11])
    return facts, {"ns": ns, "collectives": {kind: {"bytes": sizes[kind], "count": counts[kind]} for kind in counts}}


def check_workload(path, facts):
    known, expected = expectation(path)
    if any(facts[name] != value for name, value in known.items()):
        return "facts.txt does not describe this file"
    outcome = harness.orrery("show", "trace", path, "--json")
    if outcome.code:
        return "; ".join(harness.errors(outcome))
    found = json.loads(outcome.out)
    if found["format"] != "text-workload":
        return f"read as {found['format']}"
    found = {"ns": found["recorded_duration_ps"] // 1000, "collectives": found["collectives"] or {}}
    return "" if found == expected else f"found {found}, expected {expected}"


def refusal(arguments):
    """Returns what a command says on standard error; empty if it succeeds."""
    outcome = harness.orrery(*arguments)
    return "" if outcome.code == 0 else outcome.err


def check_systems(folder):
    """Runs each system file with each network file that has as many dimensions, and a small workload: one of them must do. ASTRA-sim 1.0 let
    doubleBinaryTree stand for the reduce-scatter of localBWAware; Orrery refuses that with the reason."""
    networks = sorted((folder / "network").glob("*.json"))
    systems = sorted((folder / "system").glob("*.txt"))
    took = {path: "no file of the other kind has as many dimensions" for path in networks + systems}
    with tempfile.TemporaryDirectory() as name:
        workload = pathlib.Path(name) / "micro.txt"
        workload.write_text("MICRO\n1\nlayer -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 1048576 1\n")
        memory = pathlib.Path(name) / "memory.json"
        memory.write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')
        for network in networks:
            for system in systems:
                said = refusal(
                    [
                        "run",
                        f"--workload-configuration={workload}",
                        f"--network-configuration={network}",
                        f"--system-configuration={system}",
                        f"--remote-memory-configuration={memory}",
                        f"--output={name}/results.h5",
                        "--force",
                    ]
                )
                said = "" if "doubleBinaryTree does not carry out reduce-scatter" in said else said
                for path in (network, system):
                    took[path] = (
                        "" if not said or took[path] == "" else took[path] if "one for each dimension" in said else said
                    )
    return [(str(path.relative_to(folder.parent)), difference) for path, difference in took.items()]


def check(folder, facts):
    by_name = collections.defaultdict(list)
    for one in facts:
        by_name[one["file"]].append(one)
    for path in sorted(folder.glob("*/*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".csv":
            said = refusal(["show", "trace", path])
            yield name, "" if "AICB's list of communication" in said else f"not refused with the reason: {said}"
        elif path.name in by_name:
            differences = [check_workload(path, one) for one in by_name[path.name]]
            yield name, "" if "" in differences else differences[0]
    for sub in sorted(folder.iterdir()):
        if (sub / "system").is_dir() and (sub / "network").is_dir():
            yield from check_systems(sub)
