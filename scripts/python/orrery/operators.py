"""The operators of a step: nodes of one name, whatever their layer and micro-batch, and what they cost."""
import re

from . import busy
from .packages import load
from .places import spread
from .states import merged

np, pd = load("numpy"), load("pandas")

MOST_ROWS = 400_000  # of the timeline that are read
MOST_OPERATORS = 400
MOST_NPUS = 64


def operator_of(name):
    """Returns the name without the numbers of layers and micro-batches: "forward.layer.mlp" of "forward.micro_batch_3.layer_7.mlp"."""
    pieces = [re.sub(r"_\d+$", "", piece) for piece in name.split(".")]
    return ".".join(piece for piece in pieces if piece != "micro_batch") or name


def npus_of(run):
    """Returns the NPUs that are read: as many as fit, evenly spread over those with nodes."""
    each = max(len(run.timeline) / run.num_npus, 1)
    return spread(run.num_npus, int(min(max(MOST_ROWS / each, 1), MOST_NPUS)))


def exposed(table):
    """Returns for each row how much of its time no compute node of the NPU ran, in picoseconds."""
    start, finish = busy.of_kinds(table, ["compute"])
    begin, end = merged(start.astype(np.int64), finish.astype(np.int64))
    covered = np.concatenate([[0], np.cumsum(end - begin)])

    def busy_until(times):
        at = np.searchsorted(begin, times, side="right")
        inside = (
            np.minimum(times, end[np.maximum(at - 1, 0)]) - begin[np.maximum(at - 1, 0)]
            if len(begin)
            else np.zeros(len(times), np.int64)
        )
        return np.where(at > 0, covered[np.maximum(at - 1, 0)] + inside, 0)

    first, last = table["start"].to_numpy(np.int64), table["finish"].to_numpy(np.int64)
    return (last - first) - (busy_until(last) - busy_until(first))


def efficiencies(run):
    """Returns {(family of groups, kind, bytes): share of the capacity of the bounding resource} of collectives of a library; {} without one."""
    table = run.collectives
    if not len(table) or "bound_share" not in table:
        return {}
    names = {name: re.sub(r"\d+", "*", str(name)) for name in table["group_name"].unique()}
    means = (
        table.assign(family=table["group_name"].astype(object).map(names))
        .groupby(["family", "kind", "bytes"], observed=True)["bound_share"]
        .mean()
    )
    return {
        (str(one), str(kind), int(size)): float(value)
        for (one, kind, size), value in means.items()
        if np.isfinite(value)
    }


def of(run):
    """Returns {"npus", "rows"}: a row for each operator with its time of an NPU, its share, its count, its efficiency and how much was exposed.

    Times are picoseconds of one NPU, the mean over those that were read; the share is that of the whole time. None without a timeline.
    """
    if run.timeline is None or not len(run.timeline):
        return None
    chosen, pieces, known = npus_of(run), [], {}
    columns = [
        name
        for name in ("kind", "start", "finish", "name", "group_name", "bytes", "operation")
        if name in run.timeline.columns
    ]
    shares = efficiencies(run)
    for npu in chosen:
        table = run.timeline.read(npus=npu, columns=columns, limit=None)
        table = table[table["kind"] != "instant"]
        if not len(table):
            continue
        names = table["name"].astype("category")
        for name in names.cat.categories:
            if name not in known:
                known[name] = operator_of(str(name))
        table = table.assign(
            operator=np.array([known[name] for name in names.cat.categories], dtype=object)[names.cat.codes],
            time=table["finish"] - table["start"],
            exposed=exposed(table),
        )
        if "operation" in table and shares:
            collective = (table["kind"] == "collective").to_numpy()
            keys = zip(
                table["group_name"].astype(str).str.replace(r"\d+", "*", regex=True),
                table["operation"].astype(str),
                table["bytes"],
            )
            table["efficiency"] = [shares.get(key, np.nan) if one else np.nan for key, one in zip(keys, collective)]
        else:
            table["efficiency"] = np.nan
        table["weight"] = table["efficiency"] * table["time"]
        table["weighed"] = table["time"].where(table["efficiency"].notna(), 0)
        table["count"] = 1
        sums = [name for name in ("count", "time", "exposed", "bytes", "weight", "weighed") if name in table]
        pieces.append(table.groupby(["operator", "kind"], observed=True)[sums].sum())
    if not pieces:
        return None
    whole = pd.concat(pieces).groupby(level=[0, 1], observed=True).sum().reset_index()
    whole = whole.sort_values("time", ascending=False, kind="stable")
    end, rows = max(run.simulated_time, 1), []
    for row in whole.head(MOST_OPERATORS).to_dict("records"):
        rows.append(
            {
                "operator": str(row["operator"]),
                "kind": str(row["kind"]),
                "count": row["count"] / len(chosen),
                "time": float(row["time"]) / len(chosen),
                "share": float(row["time"]) / len(chosen) / end,
                "exposed": float(row["exposed"]) / len(chosen) if row["kind"] != "compute" else None,
                "bytes": float(row.get("bytes", 0)) / len(chosen),
                "efficiency": row["weight"] / row["weighed"] if row["weighed"] else None,
            }
        )
    return {"npus": len(chosen), "total": len(whole), "rows": rows}
