"""What a report says of one run, as plain numbers, texts and lists. The page and the terminal print the same."""
import os
import re
from math import isnan

from . import header
from ..packages import load
from ..summary import figures

np = load("numpy")

MOST_ROWS = 1000  # of collectives and of groups that a report lists; those that took the most time come first
FLOW_FIGURES = [
    f"{quantity}_{point}" for quantity in ("time", "slowdown") for point in ("mean", "p50", "p95", "p99", "max")
]
TOP = 10  # segments of the critical path that are named


def of(run):
    """Returns the facts of a run: {"name", "path", "figures", "causes", ...}. Times are picoseconds of a step, the mean over NPUs."""
    step = step_time(run)
    return {
        "name": os.path.splitext(os.path.basename(run.path))[0],
        "path": run.path,
        "status": run.status,
        "num_npus": run.num_npus,
        "simulated_time": run.simulated_time,
        "step_time": step,
        "created": run.attributes.get("created", ""),
        "version": run.attributes.get("orrery_version", ""),
        "command_line": run.attributes.get("command_line", ""),
        "metrics": {name: plain(value) for name, value in run.metrics["value"].items()},
        "header": [list(line) for line in header.of(run)],
        "memory": header.memory(run),
        "figures": figures(run),
        "hints": run.hints,
        "causes": causes(run, step),
        "critical_path": critical_path(run),
        "dimensions": dimensions(run),
        "stages": stages(run),
        "blocks": blocks(run),
        "jobs": jobs(run),
        "flows": flows(run),
        "queues": queues(run),
        "collectives": collectives(run),
        "groups": groups(run),
        "settings": {
            key: str(list(value)) if isinstance(value, tuple) else str(value) for key, value in run.settings.items()
        },
    }


def plain(value):
    """Returns a number of numpy as a number of Python, and None for what is not a number."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def step_time(run):
    """Returns the time of one step in picoseconds; of a run that did not complete, all of its time."""
    return int(run.metrics["value"].get("step_time", run.simulated_time))


def causes(run, step):
    """Returns a list with the name, meaning, mean time in a step (ps) and share of each cause that took time."""
    table, found = run.breakdown, []
    for cause in table.columns:
        share = float(table[cause].mean()) / max(run.simulated_time, 1)
        if share > 0:
            found.append(
                {
                    "cause": cause,
                    "meaning": table.attrs["descriptions"].get(cause, ""),
                    "time": share * step,
                    "share": share,
                }
            )
    return found


def critical_path(run):
    """Returns the longest segments of the critical path and the share of each cause in it; None if the run has none."""
    path = run.critical_path
    if path is None or not len(path):
        return None
    length = path.groupby("cause", observed=True)["duration"].sum().sort_values(ascending=False)
    longest = path.nlargest(TOP, "duration").sort_values("start")
    return {
        "segments": len(path),
        "causes": [{"cause": str(cause), "time": int(time)} for cause, time in length.items() if time],
        "longest": [
            {
                "start": int(row.start),
                "duration": int(row.duration),
                "npu": int(row.npu),
                "cause": str(row.cause),
                "name": "" if isinstance(row.name_, float) else str(row.name_),
            }
            for row in longest.rename(columns={"name": "name_"}).itertuples()
        ],
    }


def dimensions(run):
    """Returns what each dimension of the topology is and how busy it was: a share, None on the links of a graph."""
    return [
        {
            "dimension": int(number),
            "shape": str(row.get("shape", "")),
            "size": int(row["size"]),
            "bandwidth": str(row.get("bandwidth", "")),
            "latency": str(row.get("latency", "")),
            "bytes": int(row["bytes"]),
            "utilisation": None if isnan(row["utilisation"]) else float(row["utilisation"]),
        }
        for number, row in run.dimensions.iterrows()
    ]


def stages(run):
    """Returns how busy each stage of a hierarchical memory pool was; [] without one."""
    if run.memory_stages is None:
        return []
    return [
        {
            "name": str(row["name"]),
            "servers": int(row["servers"]),
            "bytes": int(row["bytes"]),
            "utilisation": float(row["utilisation"]),
        }
        for _, row in run.memory_stages.iterrows()
    ]


STALLS = {
    "launch": "launch, load of the plan, and wait for an SM",
    "issue": "fixed costs of operations",
    "memory": "loads from the own memory",
    "poll": "polls of flags that are there",
    "words": "words, semaphores and packets that are not there yet",
    "link": "stores that wait for the first link",
    "load": "loads from other GPUs",
    "acks": "acknowledgements of stores",
    "barrier": "other blocks at a barrier",
    "proxy": "the proxy on the host",
}


def blocks(run):
    """Returns for what thread blocks of GPUs spent their time, longest first: [] if none carried out collectives."""
    if run.gpu_stalls is None:
        return []
    times = run.gpu_stalls.sum()
    whole = max(int(times.sum()), 1)
    return [
        {"reason": str(reason), "meaning": STALLS.get(str(reason), ""), "time": int(time), "share": int(time) / whole}
        for reason, time in times.sort_values(ascending=False, kind="stable").items()
        if time > 0
    ]


def jobs(run):
    """Returns a row for each job: [] of a run without jobs. "alone" and "slowdown" are None without --jobs-alone."""
    if run.jobs is None:
        return []
    columns = {
        "name": "name",
        "npus": "npus",
        "start": "start_time",
        "finish": "finish_time",
        "run": "run_time",
        "compute": "compute_time",
        "exposed": "exposed_communication_time",
        "idle": "idle_time",
        "alone": "alone_time",
        "slowdown": "slowdown",
    }
    return [
        {
            key: str(row[column]) if key == "name" else plain(row[column]) if column in row else None
            for key, column in columns.items()
        }
        for row in run.jobs.to_dict("records")
    ]


def flows(run):
    """Returns how long messages of the packet network took, a row for each class: [] if the run did not record them."""
    if run.flow_classes is None:
        return []

    def named(row):
        return {"all": "all", "group": str(row["name"])}.get(
            str(row["kind"]), f"{row['least_bytes']:,} to {row['most_bytes']:,} B"
        )

    return [
        {"class": named(row), "flows": int(row["flows"]), **{name: float(row[name]) for name in FLOW_FIGURES}}
        for row in run.flow_classes.to_dict("records")
    ]


def queues(run):
    """Returns the links with the deepest queues: [] if the run did not record them."""
    if run.queues is None or not len(run.queues):
        return []
    found = run.queues.groupby("link").agg(
        name=("name", "first"), deepest=("deepest_queue", "max"), marks=("marks", "sum"), stopped=("stopped", "sum")
    )
    pauses = dict(zip(run.pauses["link"], run.pauses["pauses"]))
    found = found.sort_values("deepest", ascending=False, kind="stable").head(MOST_ROWS)
    return [
        {
            "link": str(row.name),
            "deepest": int(row.deepest),
            "marks": int(row.marks),
            "pauses": int(pauses.get(link, 0)),
            "stopped": int(row.stopped),
        }
        for link, row in zip(found.index, found.itertuples(index=False))
    ]


def family(name):
    """Returns what groups of one kind have in common: "tp_dp0_pp1@job-0" is of the family "tp_dp*_pp*@job-0"."""
    group, at, job = name.partition("@")
    return re.sub(r"\d+", "*", group) + at + job


def collectives(run):
    """Returns {"total", "rows"}: a row for each kind, size and family of groups of the recorded collectives, in nccl-tests' columns."""
    table = run.collectives
    if not len(table):
        return totals(run)
    names = {name: family(str(name)) for name in set(run.groups["name"])}
    table = table.assign(family=table["group_name"].astype(object).map(names))
    algorithms = table["algorithm"].astype(object) if "algorithm" in table else None
    table = table.assign(algorithm=algorithms if algorithms is not None else None)
    found = table.groupby(["family", "kind", "bytes", "members"], observed=True).agg(
        algorithm=("algorithm", "first"),
        number=("duration", "size"),
        time=("duration", "mean"),
        least=("duration", "min"),
        most=("duration", "max"),
        total=("duration", "sum"),
        spread=("arrival_spread", "mean"),
        algorithm_bandwidth=("algorithm_bandwidth", "mean"),
        bus_bandwidth=("bus_bandwidth", "mean"),
    )
    found = found.reset_index().sort_values("total", ascending=False)
    rows = [
        {
            name: str(value)
            if name in ("family", "kind")
            else None
            if value is None
            else str(value)
            if name == "algorithm"
            else plain(value)
            for name, value in row.items()
        }
        for row in found.head(MOST_ROWS).to_dict("records")
    ]
    return {"total": len(found), "rows": rows}


def totals(run):
    """Returns the same for a run that recorded no collectives: a row for each kind and number of members, as far as is known."""
    table = run.collective_totals
    rows = (
        []
        if table is None
        else [
            {
                "family": "all",
                "kind": str(row["kind"]),
                "algorithm": None,
                "bytes": None,
                "members": int(row["members"]),
                "number": int(row["count"]),
                "time": row["time"] / max(row["count"], 1),
                "least": None,
                "most": None,
                "total": int(row["time"]),
                "spread": None,
                "algorithm_bandwidth": None,
                "bus_bandwidth": plain(row["bus_bandwidth"]),
            }
            for row in table.to_dict("records")
        ]
    )
    return {"total": len(rows), "rows": sorted(rows, key=lambda row: -row["total"])}


def groups(run):
    """Returns {"total", "rows"}: the members of each group, and how many recorded collectives it had and how long they took."""
    table = run.groups
    of_group = run.collectives.groupby("group", observed=True).agg(
        number=("duration", "size"), total=("duration", "sum"), bytes=("bytes", "sum")
    )
    table = (
        table.join(of_group)
        .fillna({"number": 0, "total": 0, "bytes": 0})
        .sort_values("total", ascending=False, kind="stable")
    )
    rows = [
        {
            "name": str(row["name"]),
            "size": int(row["size"]),
            "npus": str(row["npus"]),
            "number": int(row["number"]),
            "total": int(row["total"]),
            "bytes": int(row["bytes"]),
        }
        for row in table.head(MOST_ROWS).to_dict("records")
    ]
    return {"total": len(table), "rows": rows}
