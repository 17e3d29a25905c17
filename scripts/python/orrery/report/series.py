"""The series of a report: many numbers over NPUs, time or links, which the page draws. Each has a bounded size, whatever the run."""
from . import encode
from .. import busy, links
from ..packages import load
from ..places import spread

np = load("numpy")

MOST_COLUMNS = 512  # of NPUs: more are averaged over neighbours
MOST_SLICES = (
    100_000  # of the timeline: of a larger one some NPUs are kept node by node, and all of them as shares of time
)
MOST_NPUS = 256  # NPUs that are kept node by node
BINS = 1500  # of time
MOST_LINES = 4  # NPUs whose memory is drawn over time
ALIKE = 0.02  # lines that differ by less than this share of the largest value are drawn as one
MOST_CELLS = 96  # of a side of a map of links
MOST_MAPS = 12
HISTOGRAM = 24
UNIFORM = 0.05  # values of links that are closer than this share of the largest count as equal
LOG_RANGE = 50  # values that span more than this factor get a logarithmic scale


def of(run, most_slices=MOST_SLICES):
    """Returns {"npus", "memory", "timeline", "links"} of a run; None where it has no such thing. most_slices: of the timeline, kept one by one."""
    return {"npus": npus(run), "memory": memory(run), "timeline": timeline(run, most_slices), "links": link_maps(run)}


def binned(values, bins, reduce=np.add):
    """Returns the sums (or what `reduce` makes) of `values` over `bins` bins of neighbours."""
    edges = np.linspace(0, len(values), bins + 1).astype(int)
    return reduce.reduceat(np.asarray(values, dtype=float), edges[:-1]), np.diff(edges)


def npus(run):
    """Returns for each NPU, or for some neighbours, the share of each cause and the peak of the memory."""
    table, count = run.breakdown, run.num_npus
    columns = count if count <= MOST_COLUMNS else MOST_COLUMNS // 2
    causes = {}
    for cause in table.columns:
        total, each = binned(table[cause].to_numpy(), columns)
        if total.any():
            causes[cause] = encode.array(total / each / max(run.simulated_time, 1), "float32")
    peak, _ = binned(run.npus["peak_local_memory"].to_numpy(), columns, np.maximum)
    return {
        "columns": columns,
        "count": count,
        "causes": causes,
        "peak_memory": encode.array(peak, "float64") if peak.any() else None,
    }


def memory(run):
    """Returns the largest usage in each bin of time of a few NPUs, and the size of the memory; None if it is not known over time."""
    if run.local_memory is None or not len(run.local_memory):
        return None
    peaks = run.npus["peak_local_memory"]
    chosen = sorted({int(peaks.idxmax()), *spread(run.num_npus, MOST_LINES)})
    begin, end = busy.span_of(run, chosen)
    edges, lines = np.linspace(begin, end, BINS + 1), []
    for npu in chosen:
        table = run.local_memory.read(npus=npu, columns=["time", "usage"], limit=None)
        if len(table):
            usage = largest(table["time"].to_numpy(), table["usage"].to_numpy(), edges)
            alike = next((line for line in lines if np.abs(line["usage"] - usage).max() <= ALIKE * usage.max()), None)
            if alike:
                alike["npus"].append(npu)
            else:
                lines.append({"npus": [npu], "usage": usage})
    return {
        "end": int(end),
        "size": run.room,
        "lines": [{**line, "usage": encode.array(line["usage"], "float64")} for line in lines],
    }


def largest(times, usage, edges):
    """Returns the largest usage in each bin, of a usage that is usage[i] from times[i] to times[i + 1] and 0 before and after."""
    last = np.searchsorted(times, edges, side="right") - 1  # the row that holds at each edge; -1: none yet
    found = np.where(last[:-1] >= 0, usage[np.maximum(last[:-1], 0)], 0).astype(float)
    place = np.searchsorted(edges, times, side="right") - 1
    inside = (place >= 0) & (place < len(found))
    np.maximum.at(found, place[inside], usage[inside])
    return found


def timeline(run, most_slices):
    """Returns what NPUs did when: bands of all NPUs as shares of time, and some NPUs node by node; None without a timeline."""
    if run.timeline is None or not len(run.timeline):
        return None
    bands = busy.bands_of(run)
    begin, end = busy.span_of(run, [npus_of_band[0] for _, npus_of_band in bands])
    edges = np.linspace(begin, end, BINS + 1)
    reader, places = busy.StateReader(run), busy.Places(run.settings, run.num_npus)
    shares = [busy.states_over_time(run, chosen, edges, reader) for _, chosen in bands]
    return {
        "end": int(end),
        "bins": BINS,
        "total": len(run.timeline),
        "attributes": run.timeline.attributes,
        "bands": [
            {"npus": label, "states": {name: encode.shares(value) for name, value in share.items() if value.any()}}
            for (label, _), share in zip(bands, shares)
        ],
        "read": sum(len(chosen) for _, chosen in bands),
        "nodes": nodes(run, most_slices, places),
        "path": path(run, most_slices),
    }


def nodes(run, most_slices, places):
    """Returns the nodes of as many NPUs, evenly spread, as the limits allow."""
    count = run.num_npus
    most = max(1, min(count, MOST_NPUS, int(most_slices / max(len(run.timeline) / count, 1))))
    chosen = spread(count, most)
    columns = ["npu", "start", "finish", "kind", "name", "group_name"] + [
        name for name in ("bytes", "peer", "operation") if name in run.timeline.columns
    ]
    table = run.timeline.read(npus=chosen, columns=columns, limit=None)
    table = table[table["kind"] != "instant"].head(most_slices)
    found = {
        "npus": chosen,
        "places": [places.label(npu) for npu in chosen],
        "count": len(table),
        "npu": encode.array(table["npu"], "uint32"),
        "start": encode.array(table["start"], "float64"),
        "finish": encode.array(table["finish"], "float64"),
    }
    for name in ("kind", "name", "group_name", "operation"):
        if name not in columns:
            continue
        words, codes = worded(table[name])
        found[name] = {"words": words, "codes": encode.array(codes, "int32")}
    for name in ("bytes", "peer"):
        if name in columns:
            found[name] = encode.array(table[name], "float64")
    return found


def worded(column):
    """Returns the distinct texts of a column and the index of each row into them; -1 for nothing."""
    column = column.astype("category").cat.remove_unused_categories()
    return [str(word) for word in column.cat.categories], column.cat.codes.to_numpy()


def path(run, most_slices):
    """Returns the segments of the critical path, at most as many as the timeline has slices; None without one."""
    table = run.critical_path
    if table is None or not len(table):
        return None
    table = table.head(most_slices)
    words, codes = worded(table["cause"])
    names, name_codes = worded(table["name"])
    return {
        "start": encode.array(table["start"], "float64"),
        "finish": encode.array(table["finish"], "float64"),
        "npu": encode.array(table["npu"], "uint32"),
        "cause": {"words": words, "codes": encode.array(codes, "int32")},
        "name": {"words": names, "codes": encode.array(name_codes, "int32")},
    }


def link_maps(run):
    """Returns the maps and the spread of every quantity for each dimension; None without the congestion-aware network."""
    if run.links is None:
        return None
    return {
        "quantities": [{"name": name, "title": one.title, "unit": one.unit} for name, one in links.QUANTITIES.items()],
        "dimensions": [one for number in range(len(run.dimensions)) for one in _dimension(run, number)],
    }


def _dimension(run, number):
    mine, found = run.links[run.links["dimension"] == number], {}
    if not len(mine):
        return
    one, sizes = run.dimensions.loc[number], run.dimensions["size"]
    for name, quantity in links.QUANTITIES.items():
        values = quantity.values(mine).to_numpy().astype(float)
        maps = links.maps_of(one["shape"], int(one["size"]), int(sizes[:number].prod()), run.num_npus, mine, values)
        found[name] = {"spread": _histogram(values), "maps": [_map(part) for part in maps[:MOST_MAPS]]}
    yield {
        "dimension": number,
        "shape": str(one["shape"]),
        "size": int(one["size"]),
        "links": len(mine),
        "quantities": found,
    }


def _map(one):
    matrix, joins = links.joined(one.matrix, MOST_CELLS)
    return {
        "title": one.title,
        "row": one.row,
        "column": one.column,
        "absent": one.absent,
        "rows": matrix.shape[0],
        "columns": matrix.shape[1],
        "joins": joins,
        "ticks": one.ticks if one.ticks and len(one.ticks) <= 12 else None,
        "cells": encode.array(matrix, "float32"),
    }


def _histogram(values):
    """Returns how many links have which value: bounds, counts, and whether the scale is logarithmic."""
    low, high, positive = float(values.min()), float(values.max()), values[values > 0]
    is_log = bool(len(positive)) and high > LOG_RANGE * float(positive.min())
    is_uniform = high - low <= UNIFORM * max(high, 1e-300)
    if is_uniform:
        edges = np.array([low, high])
        counts = np.array([len(values)])
    else:
        floor = float(positive.min()) if is_log else low
        edges = np.geomspace(floor, high, HISTOGRAM + 1) if is_log else np.linspace(low, high, HISTOGRAM + 1)
        counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return {
        "log": is_log and not is_uniform,
        "uniform": is_uniform,
        "edges": [float(edge) for edge in edges],
        "counts": [int(count) for count in counts],
        "least": low,
        "median": float(np.median(values)),
        "most": high,
    }
