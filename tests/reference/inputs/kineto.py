"""Facts of PyTorch's recordings: Kineto traces, sets of them with one for each rank, and execution traces."""
import collections
import gzip
import json
import pathlib
import re
import tempfile

import h5py
import harness
import numpy as np

SIZED = (
    "AllReduce",
    "Broadcast",
    "Reduce",
    "ReduceScatter",
    "AllGather",
    "SendRecv",
)  # kernels whose bytes are compared
SUMMED = ("AllReduce", "Broadcast", "Reduce", "ReduceScatter")  # of which a run tells the bytes that facts tell
SIZES = {
    "float": 4,
    "c10::half": 2,
    "half": 2,
    "c10::bfloat16": 2,
    "bfloat16": 2,
    "double": 8,
    "long int": 8,
    "int": 4,
    "long": 8,
}  # others: 1
KERNEL = re.compile(
    r"nccl(?:Dev)?Kernel_([^\W_]+)", re.IGNORECASE
)  # the name that facts give a kernel of communication
GPU_KINDS = ("compute", "collective", "send", "receive")
MOST_POINTS = 0.02  # by which a share of the time of a GPU may differ
MOST_MEAN, MOST_WORST = 0.01, 0.03  # by which steps may


def loaded(path):
    """Returns the JSON of a file, packed or not."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        return json.load(file)


def events_of(content):
    return content["traceEvents"] if isinstance(content, dict) else content


def describes(facts, path):
    """Says whether facts are about this file, of several with one name."""
    content = loaded(path)
    if "schema" in facts:
        return isinstance(content, dict) and len(content.get("nodes", ())) == facts["nodes"]
    info = content.get("distributedInfo", {}) if isinstance(content, dict) else {}
    if (len(events_of(content)), info.get("rank"), info.get("world_size")) != (
        facts["events"],
        facts["rank"],
        facts["world"],
    ):
        return False
    found, told = collections.Counter(), collections.Counter()
    for event in events_of(content):
        if str(event.get("cat")).lower() == "kernel" and (match := KERNEL.match(event["name"])):
            found[match[1]] += 1
    for each in facts["collectives"]:
        told[each["kernel"]] += each["count"]
    return found == told


def folder_of(root, facts_of_set, taken):
    """Returns the folder that has all files of a set, with the contents that the facts tell where several folders have such files."""
    names = [each["file"] for each in facts_of_set]
    folders = [
        each
        for each in [root] + sorted(path for path in root.rglob("*") if path.is_dir())
        if all((each / name).is_file() and each / name not in taken for name in names)
    ]
    if len(folders) > 1:
        folders = [
            each for each in folders if all(describes(facts, each / facts["file"]) for facts in facts_of_set)
        ] or folders
    return folders[0] if folders else None


def sets_of(facts):
    """Yields (facts of files, facts of the set): files that stand before the line of a set belong to it; others are alone."""
    waiting = []
    for each in facts:
        if "file" in each:
            waiting.append(each)
            continue
        alone, members = waiting[: -each["ranks"]], waiting[-each["ranks"] :]
        yield from (([one], None) for one in alone)
        yield members, each
        waiting = []
    yield from (([one], None) for one in waiting)


def shown(path, *options):
    """Returns what `show trace` prints of a file, or its message."""
    outcome = harness.orrery("show", "trace", path, "--json", *options)
    return json.loads(outcome.out) if outcome.code == 0 else outcome.err.strip()


def differences(pairs):
    return "; ".join(f"{what}: {found}, expected {expected}" for what, found, expected in pairs if found != expected)


def shards_of_gathers(path):
    """Returns {bytes that facts tell of an all-gather: those that a member brings}. Facts tell all bytes of kernels that say what comes in and
    goes out, and what comes in of others. Nothing if equal bytes are of different shards."""
    shards = {}
    for event in events_of(loaded(path)):
        args = event.get("args") or {}
        if "AllGather" not in str(event.get("name")) or not {"In msg nelems", "Out msg nelems", "dtype"} <= set(args):
            continue
        brought, all_of_it = (
            int(args[key]) * SIZES.get(str(args["dtype"]).lower(), 1) for key in ("In msg nelems", "Out msg nelems")
        )
        if shards.setdefault(max(brought, all_of_it), brought) != brought:
            return None
    return shards


def check_file(path, facts):
    """Compares one recording: GPU operations, streams, sums of durations, collectives and bytes."""
    figures = shown(path, "--step", "all")
    if isinstance(figures, str):
        return figures
    kinds, durations, collectives = (figures.get(key, {}) for key in ("kinds", "durations_ps", "collectives"))
    messages = kinds.get("send", 0) + kinds.get("receive", 0)
    communication = sum(durations.get(kind, 0) for kind in GPU_KINDS[1:])
    pairs = [
        ("GPU operations", sum(kinds.get(kind, 0) for kind in GPU_KINDS) + kinds.get("instant", 0), facts["gpu_ops"]),
        (
            "in streams",
            sum(figures.get("nodes_of_streams", [])) + kinds.get("receive", 0),
            sum(facts["gpu_ops_by_stream"].values()),
        ),
    ]
    if not kinds.get("receive"):  # these wait for their stream, but are in none
        pairs.append(
            ("by stream", sorted(figures.get("nodes_of_streams", [])), sorted(facts["gpu_ops_by_stream"].values()))
        )
    as_kernels = sum("do not tell what they do" in text for text in figures.get("warnings", []))
    if not as_kernels:
        pairs += [
            ("us of computation", round(durations.get("compute", 0) / 1e6, 3), facts["compute_sum"]),
            ("us of communication", round(communication / 1e6, 3), facts["nccl_sum"]),
            ("collectives", sum(each["count"] for each in collectives.values()) + messages, facts["collectives_gpu"]),
        ]
    known = [each for each in facts["collectives"] if each["bytes"] is not None]
    # Where facts know no size, the operators may still have told one.
    assumed = any("1 is assumed" in text for text in figures.get("warnings", []))
    is_compared = assumed or not facts["collectives_without_size"]
    shards = shards_of_gathers(path)
    if all(each["kernel"] in SIZED for each in known) and not as_kernels and is_compared and shards is not None:
        total = sum(each["bytes"] for part in ("collectives", "messages") for each in figures.get(part, {}).values())
        expected = sum(
            shards.get(each["bytes"], each["bytes"]) * each["count"]
            if each["kernel"] == "AllGather"
            else each["bytes"] * each["count"]
            for each in known
        )
        pairs.append(("bytes", total - facts["collectives_without_size"], expected))
    return differences(pairs)


def system(num_npus, files, folder):
    """Writes a configuration for the replay of recorded durations, and returns its name."""
    path = pathlib.Path(folder) / "replay.yaml"
    path.write_text(
        json.dumps(
            {
                "system": {
                    "network": {
                        "dimensions": [
                            {"shape": "Switch", "size": num_npus, "bandwidth": "100 GB/s", "latency": "1 us"}
                        ]
                    },
                    "compute": {"roofline": False},
                    "communication": {"durations": "recorded"},
                },
                "workload": {"traces": [{"npus": npu, "file": str(file)} for npu, file in enumerate(files)]},
            }
        )
    )
    return path


def check_refusal(path, facts):
    """A recording of one rank of several must be refused by a system that has not as many, with its rank and world."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = harness.orrery("check", system(facts["world"] + 1, [path] * (facts["world"] + 1), folder))
    said = f"rank {facts['rank']} of {facts['world']}"
    return (
        ""
        if outcome.code == 3 and said in outcome.err
        else f"refused without '{said}' (exit code {outcome.code}): {outcome.err[:200]}"
    )


def union(start, finish):
    """Returns the length of the union of intervals that are sorted by their starts."""
    finish = np.maximum.accumulate(finish)
    return int(np.sum(np.maximum(finish - np.maximum(start, np.concatenate([[0], finish[:-1]])), 0)))


def shares(rows, facts):
    """Returns the shares of the time of a GPU: (found, expected) of computation, communication, the exposed part of it, and nothing."""
    gpu = rows[np.isin(rows["kind"], list(GPU_KINDS))]
    span = gpu["finish"].max() - gpu["start"].min()
    computes, all_work = (
        union(part["start"].astype(np.int64), part["finish"].astype(np.int64))
        for part in (gpu[gpu["kind"] == "compute"], gpu)
    )
    talks = gpu[gpu["kind"] != "compute"]
    talk = union(talks["start"], talks["finish"])
    found = np.array([computes, talk, all_work - computes, span - all_work]) / span
    return (
        found,
        np.array([facts[key] for key in ("compute_busy", "nccl_busy", "nccl_exposed", "gpu_idle")]) / facts["gpu_span"],
    )


def timeline_of(results):
    """Returns the rows of a timeline with texts, sorted by their starts."""
    table = results["timeline"]
    kinds = [str(kind) for kind in table["kind"].attrs["values"]]
    names = [name.decode() for name in table["names"][:]]
    rows = np.rec.fromarrays(
        [
            table["npu"][:],
            table["start"][:],
            table["finish"][:],
            np.array(kinds)[table["kind"][:]],
            np.array(names, dtype=object)[table["name"][:]],
        ],
        names="npu,start,finish,kind,name",
    )
    return rows[np.argsort(rows["start"], kind="stable")]


def collectives_of(results, npu):
    """Returns (bytes, count) of the collectives in which an NPU takes part."""
    table = results["groups"]
    offsets = table["offsets"][:]
    members = {
        int(group): set(map(int, table["members"][first:last]))
        for group, first, last in zip(table["group"][:], offsets[:-1], offsets[1:])
    }
    mine = [
        size
        for group, size in zip(results["collectives/group"][:], results["collectives/bytes"][:])
        if not members.get(int(group)) or npu in members[int(group)]
    ]
    return sorted((int(size), int(count)) for size, count in zip(*np.unique(mine, return_counts=True)))


def check_set(files, all_facts, facts):
    """Replays a set and compares each rank's step, its GPU's time, and the collectives."""
    errors, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "r.h5"
        outcome = harness.orrery(
            "run", system(len(files), files, folder), f"--output={output}", "--timeline", "--quiet"
        )
        if outcome.code:
            return outcome.err.strip()
        with h5py.File(output) as results:
            rows = timeline_of(results)
            found = collectives_of(results, 0)
    for rank, of_rank in enumerate(all_facts):
        mine = rows[rows["npu"] == rank]
        offset = next((row.finish for row in mine if row.name.startswith("later than")), 0)
        end = next((row.finish for row in mine if row.name.endswith(" ends")), mine["finish"].max())
        if of_rank["steps"]:
            errors.append(abs((end - offset) / 1e6 / of_rank["steps"][-1][1] - 1))
        if len(of_rank["steps"]) > 1:
            continue
        got, expected = shares(mine, of_rank)
        if np.abs(got - expected).max() > MOST_POINTS:
            wrong.append(f"rank {rank}: shares of time {np.round(got, 3)}, expected {np.round(expected, 3)}")
    if errors and (np.mean(errors) > MOST_MEAN or max(errors) > MOST_WORST):
        wrong.append(f"steps differ by {100 * np.mean(errors):.2f} %, at worst {100 * max(errors):.2f} %")
    facts_of_first = all_facts[0]["collectives"]
    if any(each["bytes"] is None for each in facts_of_first):  # then their number alone is known
        found, expected = sum(count for _, count in found), sum(each["count"] for each in facts_of_first)
    else:
        expected = sorted((each["bytes"], each["count"]) for each in facts_of_first)
    is_plain = all(each["kernel"] in SUMMED for each in all_facts[0]["collectives"]) and len(all_facts[0]["steps"]) < 2
    if is_plain and found != expected:
        wrong.append(f"collectives ((bytes, count), or number) {found}, expected {expected}")
    return "; ".join(wrong)


def check_execution_trace(path, facts):
    """Compares an execution trace: nodes, and collectives with the bytes of their inputs."""
    figures = shown(path)
    if isinstance(figures, str):
        return figures
    named = sum(each["count"] for each in facts["collectives"])
    size = sum(max(each["bytes_in"], each["bytes_out"]) * each["count"] for each in facts["collectives"])
    found = figures.get("collectives", {}).values()
    pairs = [("nodes", figures["nodes"], facts["nodes"]), ("collectives", sum(each["count"] for each in found), named)]
    if all(each["op"].split(":")[1] in ("all_reduce", "broadcast", "reduce") for each in facts["collectives"]):
        pairs.append(("bytes", sum(each["bytes"] for each in found), size))
    return differences(pairs)


def check_each(path, facts):
    """Yields (what, difference) for a recording or an execution trace."""
    if "schema" in facts:
        yield facts["file"], check_execution_trace(path, facts)
        return
    yield facts["file"], check_file(path, facts)
    if facts["world"] and facts["world"] > 1:
        yield f"{facts['file']} alone", check_refusal(path, facts)


def check(folder, facts):
    """Yields (what, difference) for each file and set."""
    taken = set()
    for of_files, of_set in sets_of(facts):
        place = folder_of(folder, of_files, taken)
        if place is None:
            yield from (
                (each["file"], "there is no such file, or none beside the others of its set") for each in of_files
            )
            continue
        paths = [place / each["file"] for each in of_files]
        taken.update(paths)
        for path, each in zip(paths, of_files):
            yield from check_each(path, each)
        if of_set:
            yield f"set of {of_set['ranks']} ranks", check_set(paths, of_files, of_set)
