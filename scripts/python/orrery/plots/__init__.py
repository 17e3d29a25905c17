"""Draws pictures of results. Every function takes Results and returns a matplotlib figure, which Jupyter shows and `save` writes.

    import orrery, orrery.plots
    run = orrery.open("results.h5")
    orrery.plots.save(orrery.plots.overview(run), "results.png")

All pictures share one look (orrery.plots.style): a colour has the same meaning in all of them.
"""
import os

from . import graph_map, link_maps, memory, queues as queue_lines, ranks, step, style, sweeps, timeline, use
from ..errors import ResultsError
from ..packages import load
from ..places import spread
from ..summary import share
from ..units import picoseconds, readable
from .style import save

np = load("numpy")

__all__ = ["kernel", "links", "overview", "queues", "save", "style", "sweep"]

QUANTITIES = tuple(link_maps.QUANTITIES)
MOST_NPUS = 4  # that are drawn node by node unless the caller chooses


def title_of(run):
    """Returns the title and the line below it of pictures of a run: how long it took on how many NPUs, and on which network."""
    metrics = run.metrics["value"]
    name = os.path.basename(run.path)
    time = (
        f"one step takes {readable(metrics['step_time'], 'ps')}"
        if "step_time" in metrics
        else f"{run.status} after {readable(run.simulated_time, 'ps')}"
    )
    network = " × ".join(
        f"{row['shape']} {row['size']}" if "shape" in row else str(row["size"]) for _, row in run.dimensions.iterrows()
    )
    parts = [f"network: {network}, {run.settings.get('system.network.model', '')}"]
    parts += [
        f"{text} {share(metrics[key])}"
        for key, text in (("model_flops_utilisation", "MFU"), ("pipeline_bubble", "pipeline bubble"))
        if key in metrics
    ]
    if run.status != "complete" and run.timeline is not None:
        parts.append("the timeline has only the nodes that had ended")
    return f"{name}: {time} on {run.num_npus:,} NPU{'s' if run.num_npus > 1 else ''}", "   ·   ".join(parts)


def overview(run, npus=None, time=None):
    """Draws where each NPU's time went and, if the run kept a timeline, what the NPUs did when and what their memory held.

    npus: the NPUs that are drawn node by node; by default four, evenly spread. time: (begin, end) of the timeline, in the unit of the
    run's times or as texts such as "1.5 ms"; by default the whole run.
    Raises ResultsError if there is no such NPU, or no timeline to take NPUs or time from.
    """
    unit, run = run.times, run.picoseconds
    if run.timeline is None and (npus is not None or time is not None):
        raise ResultsError(
            f"{run.path}: found no timeline, so no NPU can be drawn node by node. Run it again with --timeline."
        )
    chosen = spread(run.num_npus, MOST_NPUS) if npus is None else list(npus)
    span = None if time is None else tuple(picoseconds(limit, unit) for limit in time)
    wrong = [npu for npu in chosen if not 0 <= npu < run.num_npus]
    if wrong:
        raise ResultsError(f"{run.path}: found NPU {wrong[0]}; the run has NPUs 0 to {run.num_npus - 1}.")
    panels = [(2.5, lambda axes: step.draw_parts(axes, run))]
    if use.rows_of(run):
        panels.append((0.8 + 0.24 * len(use.rows_of(run)), lambda axes: use.draw_use(axes, run)))
    if run.timeline is not None:
        bands = len(timeline.bands_of(run))
        panels.append((0.9 + 0.19 * max(bands, 3), lambda axes: timeline.draw_states(axes, run, span)))
        panels.append((0.9 + 0.55 * len(chosen), lambda axes: timeline.draw_nodes(axes, run, chosen, span)))
        if run.local_memory is not None:
            panels.append((2.2, lambda axes: memory.draw_usage(axes, run, chosen, span)))
    return _stacked(title_of(run), panels)


def kernel(run):
    """Draws how the simulator itself went: busy and blocked time of each rank, and messages per hundred events."""
    run = run.picoseconds
    events = run.kernel["events"]
    balance = events.sum() / max(len(events) * events.max(), 1)
    title = (
        f"{os.path.basename(run.path)}: simulated in {readable(run.attributes['wall_time'], 's')} on {len(events):,} MPI "
        f"rank{'s' if len(events) > 1 else ''}"
    )
    below = f"{events.sum():,} events   ·   balance {balance:.2f}: the mean number of events of a rank over the largest   ·   {run.status}"
    return _stacked(
        (title, below),
        [
            (3.2, lambda axes: ranks.draw_times(axes, run.kernel)),
            (2.2, lambda axes: ranks.draw_messages(axes, run.kernel)),
        ],
    )


def links(run, quantity="busy"):
    """Draws what each link did, a row of panels for each dimension: how many links have which value, and where these are. Links of a graph
    (system.network.graph) are drawn as the graph, in tiers.

    quantity: "busy" (share of the time), "queueing" (mean wait of a message), "bytes" or "peak" (most messages that waited).
    Raises ResultsError if the run had the congestion-unaware network.
    """
    run = run.picoseconds
    if run.links is None:
        raise ResultsError(
            f"{run.path}: found no links, because the run had the congestion-unaware network. Run it again with "
            "--network=congestion-aware."
        )
    if quantity not in link_maps.QUANTITIES:
        raise ValueError(f"found the quantity {quantity!r}; expected one of {', '.join(link_maps.QUANTITIES)}")
    chosen = link_maps.QUANTITIES[quantity]
    graph = run.configuration["system"]["network"].get("graph")
    if graph is not None and len(run.links):
        return _graph(run, graph, chosen)
    dimensions, values, rows = run.dimensions, chosen.values(run.links).to_numpy().astype(float), []
    for number, dimension in dimensions.iterrows():
        mine = (run.links["dimension"] == number).to_numpy()
        if mine.any():
            stride = int(dimensions["size"][:number].prod())
            maps = link_maps.maps_of(
                dimension["shape"], int(dimension["size"]), stride, run.num_npus, run.links[mine], values[mine]
            )
            rows.append((f"Dimension {number}, {dimension['shape']} of {dimension['size']}", maps, values[mine]))
    below = title_of(run)[1]
    with style.look():
        heights = [0.55 + 2.0 * link_maps.rows_of(maps) for _, maps, _ in rows] or [1.0]
        handles = link_maps.legend_of([one for _, maps, _ in rows for one in maps])
        figure, _, body = style.picture(
            sum(heights) + (0.35 if handles else 0), f"{os.path.basename(run.path)}: {chosen.title}", below
        )
        if not rows:
            body.text(0.5, 0.5, "no link carried data", ha="center", color=style.GREY)
            return figure
        if handles:
            body, foot = body.subfigures(2, 1, height_ratios=[sum(heights), 0.35])
            foot.legend(handles=handles, loc="center", ncol=len(handles))
        for part, (name, maps, mine) in zip(np.atleast_1d(body.subfigures(len(rows), 1, height_ratios=heights)), rows):
            link_maps.draw_dimension(part, name, maps, mine, chosen.unit)
        return figure


def _graph(run, graph, quantity):
    """The picture of `links` for a network that is a graph."""
    with style.look():
        handles = graph_map.legend_of(graph, run.links)
        figure, _, body = style.picture(
            4.6 + (0.35 if handles else 0), f"{os.path.basename(run.path)}: {quantity.title}", title_of(run)[1]
        )
        if handles:
            body, foot = body.subfigures(2, 1, height_ratios=[4.6, 0.35])
            foot.legend(handles=handles, loc="center")
        graph_map.draw_graph(body, graph, run.links, quantity.values(run.links).to_numpy().astype(float), quantity.unit)
        return figure


def queues(run, most_links=6):
    """Draws the deepest queues of the packet network over time, one below the other, and when pauses stopped their links.

    Raises ResultsError if the run did not record queues.
    """
    run = run.picoseconds
    if run.queues is None:
        raise ResultsError(f"{run.path}: found no queues. Run it again with --network=packet --queue-bins=500.")
    table, interval = run.queues, run.queues.attrs["interval"]
    title = f"{os.path.basename(run.path)}: the deepest queues, in intervals of {readable(interval, 'ps')}"
    panels = []
    for number, link in enumerate(queue_lines.deepest(table, most_links)):
        rows, colour = table[table["link"] == link], queue_lines.COLOURS[number % len(queue_lines.COLOURS)]
        panels.append(
            (
                1.5,
                lambda axes, rows=rows, colour=colour: queue_lines.draw_link(
                    axes, rows, rows["name"].iloc[0], interval, run.simulated_time, colour
                ),
            )
        )
    if not panels:
        raise ResultsError(f"{run.path}: found no queue in which anything waited, so there is nothing to draw.")
    return _stacked((title, title_of(run)[1]), panels)


def sweep(table, metric="step_time", over=None):
    """Draws a metric of a table that orrery.sweep made over one of its keys, with one line for each combination of the others.

    over: a key that the sweep varies; by default the one with the most values. Trials that are not done are left out.
    Raises ValueError if the table has no such key or no such metric.
    """
    keys = sweeps.keys_of(table)
    over = over or max(keys, key=lambda key: table[key].nunique())
    for name, known in (
        (over, keys),
        (metric, [one for one in table.columns if one not in keys and table[one].dtype.kind in "iuf"]),
    ):
        if name not in known:
            raise ValueError(f"found {name!r}; the table has {', '.join(known)}")
    others = [key for key in keys if key != over]
    title = f"{sweeps.name_of(metric)} over {over.rpartition('.')[2]}"
    with style.look():
        figure, _, body = style.picture(3.6, title, f"{len(table)} combinations of {' and '.join([over, *others])}")
        axes = body.subplots()
        if sweeps.draw(axes, table, metric, over):
            style.legend(axes)
        return figure


def _stacked(titles, panels):
    """A figure with one panel above the other; `panels` are heights in inches and functions that draw into axes."""
    with style.look():
        heights = [height for height, _ in panels]
        figure, _, body = style.picture(sum(heights), *titles)
        axes = body.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
        for one, (_, draw) in zip(axes[:, 0], panels):
            draw(one)
        return figure
