"""Draws a graph of hosts, switches and links, in tiers, with the colours of what its links did."""
from . import style
from .link_maps import PALETTE, draw_spread, said_of, Scale
from ..packages import load

np = load("numpy")
collections = load("matplotlib.collections")

MOST_NAMES = 32  # of a tier: more are not named
UNUSED_COLOUR = "#DADADA"


def neighbours_of(num_nodes, links):
    """Returns the nodes to which each node has links; `links` are pairs."""
    found = [[] for _ in range(num_nodes)]
    for a, b in links:
        found[a].append(b)
        found[b].append(a)
    return found


def tiers_of(num_hosts, neighbours):
    """Returns the tier of each node: 0 for hosts, then 1 for switches that hosts have links to, and so on. A switch that joins hosts only, as
    inside a server, is in tier -1, below its hosts, if other switches join hosts too. What no host reaches is in the highest tier.
    """
    tiers = np.full(len(neighbours), -2)
    tiers[:num_hosts] = 0
    front, tier = list(range(num_hosts)), 0
    while front:
        tier += 1
        front = sorted({other for node in front for other in neighbours[node] if tiers[other] == -2})
        tiers[front] = tier
    tiers[tiers == -2] = max(tiers.max(), 0) + 1
    inside = [
        node
        for node in range(num_hosts, len(neighbours))
        if neighbours[node] and all(other < num_hosts for other in neighbours[node])
    ]
    if (tiers > 1).any() or len(inside) < (tiers == 1).sum():
        tiers[inside] = -1
    return tiers


def places_of(num_hosts, links, num_nodes):
    """Returns (x, y) of each node: tiers above each other; in a tier, nodes are spread evenly in the order of the mean place of those nearer to
    the hosts to which they are joined."""
    neighbours = neighbours_of(num_nodes, links)
    tiers = tiers_of(num_hosts, neighbours)
    x = np.zeros(num_nodes)
    x[:num_hosts] = (np.arange(num_hosts) + 0.5) / num_hosts
    for tier in sorted(set(tiers) - {0}, key=abs):
        nodes = np.flatnonzero(tiers == tier)
        means = [
            np.mean([x[other] for other in neighbours[node] if abs(tiers[other]) < abs(tier)] or [0.5])
            for node in nodes
        ]
        x[nodes[np.argsort(means, kind="stable")]] = (np.arange(len(nodes)) + 0.5) / len(nodes)
    return x, tiers


def line_of(start, end, gap):
    """Returns the points of a line from one place to another: straight between tiers, the left one of two leads up; inside a tier an arc, above
    the tier to the right and below it to the left."""
    (x, y), (x_end, y_end) = start, end
    if y != y_end:
        shift = -gap if y < y_end else gap
        return [(x + shift, y), (x_end + shift, y_end)]
    at = np.linspace(0, 1, 17)
    bend = (0.1 + 0.25 * abs(x_end - x)) * np.sin(np.pi * at)
    return list(zip(x + (x_end - x) * at, y + (bend if x < x_end else -bend)))


def draw(axes, graph, rows, values, scale):
    """Draws the graph: each link as two lines, one for each direction.

    graph: system.network.graph of the configuration. rows: those of Results.links, and `values` of each.
    """
    num_hosts = graph["hosts"]
    num_nodes = num_hosts + graph.get("switches", 0)
    pairs = [(a, b) for a, b, *_ in graph["links"]]
    x, y = places_of(num_hosts, pairs, num_nodes)
    node = [
        np.where(ends >= 0, ends, num_hosts - 1 - ends) for ends in (rows["from"].to_numpy(), rows["to"].to_numpy())
    ]
    value_of = {}
    for a, b, value in zip(*node, values):
        value_of[a, b] = max(value, value_of.get((a, b), value))  # of links side by side the largest
    gap = min(0.12 / max(np.bincount(y - y.min()).max(), 1), 0.004)
    lines, colours, order = [], [], []
    for a, b in dict.fromkeys([pair for a, b in pairs for pair in ((a, b), (b, a))]):
        lines.append(line_of((x[a], y[a]), (x[b], y[b]), gap))
        value = value_of.get((a, b))
        colours.append(UNUSED_COLOUR if value is None else PALETTE(scale.norm(np.clip(value, scale.low, scale.high))))
        order.append(-1 if value is None else value)
    above = np.argsort(order, kind="stable")  # those with the largest values lie above the others
    width = np.clip(60 / max(len(lines), 1) ** 0.5, 0.4, 2.2)
    axes.add_collection(
        collections.LineCollection([lines[i] for i in above], colors=[colours[i] for i in above], linewidths=width)
    )
    for chosen, marker in ((slice(0, num_hosts), "s"), (slice(num_hosts, num_nodes), "o")):
        axes.plot(
            x[chosen],
            y[chosen],
            marker,
            color=style.BLACK if marker == "s" else style.GREY,
            markersize=np.clip(160 / num_nodes, 2, 6),
        )
    for tier in sorted(set(y)):
        nodes = np.flatnonzero(y == tier)
        if len(nodes) <= MOST_NAMES:
            for one in nodes:
                axes.annotate(
                    str(one if one < num_hosts else one - num_hosts),
                    (x[one], y[one]),
                    xytext=(0, 6 if tier > 0 else -6),
                    textcoords="offset points",
                    ha="center",
                    va="bottom" if tier > 0 else "top",
                    fontsize=7,
                    color=style.BLACK,
                )
    axes.set_yticks(
        sorted(set(y)),
        [
            "hosts" if tier == 0 else "switches in servers" if tier < 0 else f"switches, tier {tier}"
            for tier in sorted(set(y))
        ],
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(y.min() - 0.4, y.max() + 0.4)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def draw_graph(body, graph, rows, values, unit):
    """Draws the whole subfigure: how the links are spread on the left, the graph on the right."""
    scale = Scale(values, unit)
    body.suptitle(
        f"{graph['hosts']:,} hosts and {graph.get('switches', 0):,} switches: {said_of(values, scale)}",
        x=0.012,
        ha="left",
        fontsize=10.5,
        fontweight="bold",
    )
    grid = body.add_gridspec(1, 2, width_ratios=[0.8, 3.2])
    draw_spread(body.add_subplot(grid[0]), values, scale)
    axes = body.add_subplot(grid[1])
    axes.set_title(
        "of two lines the left one leads up; arcs lead to the right above a tier, and to the left below it",
        fontweight="normal",
    )
    draw(axes, graph, rows, values, scale)


def legend_of(graph, rows):
    """Returns a box for a legend if a link of the graph carried nothing."""
    has_unused = len(rows) < 2 * len(graph["links"])
    return [style.patch(UNUSED_COLOUR, "link that carried nothing")] if has_unused else []
