"""Draws what each link of the congestion-aware network did: for each dimension how its links are spread, and where they are."""
import collections

from . import style
from ..packages import load
from ..units import scale_of

np = load("numpy")
colours = load("matplotlib.colors")

# A quantity: what it is, its unit ("%" of the simulated time), and its values of the table of links.
Quantity = collections.namedtuple("Quantity", "title unit values")
QUANTITIES = {
    "busy": Quantity("share of the time in which links were busy", "%", lambda links: 100 * links["utilisation"]),
    "queueing": Quantity("mean time that messages waited for links", "ps", lambda links: links["mean_wait"]),
    "bytes": Quantity("data that links carried", "byte", lambda links: links["bytes"]),
    "peak": Quantity("most messages that waited for a link at one time", "messages", lambda links: links["peak_queue"])}
# A map: its title, a matrix (NaN: no link there, UNUSED: a link that carried nothing), names of rows and columns, what stands below
# columns, and what NaN means to a reader.
Map = collections.namedtuple("Map", "title matrix row column ticks absent", defaults=[None, "no link"])
MOST_TICKS = 12
UNUSED = -1.0
NOT_THERE = "#D9D9D9"
MOST_CELLS = 512  # of a side of a map: more are joined, and the largest of those that are joined is shown
UNIFORM = 0.05    # values that are closer than this share of the largest count as equal
LOG_RANGE = 50    # values that span more than this factor get a logarithmic scale
PALETTE = colours.LinearSegmentedColormap.from_list("orrery", ["#FCE9B5", "#F6B26B", "#D55E00", "#8C1D40", "#2D0A2E"])


def position(npu, size, stride):
    return npu // stride % size


def group(npu, size, stride):
    """Which group of NPUs an NPU belongs to, of those that a dimension connects."""
    return npu // (stride * size) * stride + npu % stride


def maps_of_ring(shape, size, stride, num_npus, links, values):
    """A map for each direction: a row for each group of the dimension, a column for each NPU in it that a link leaves from."""
    source, target = links["from"].to_numpy(), links["to"].to_numpy()
    is_up = (position(source, size, stride) + 1) % size == position(target, size, stride)
    maps = []
    for title, chosen, gap in (("to the next NPU", is_up, size - 1), ("to the previous NPU", ~is_up, 0)):
        matrix = np.full((num_npus // size, size), UNUSED)
        if shape == "Mesh":
            matrix[:, gap] = np.nan  # a mesh has ends
        matrix[group(source[chosen], size, stride), position(source[chosen], size, stride)] = values[chosen]
        maps.append(Map(title, matrix, "group of NPUs", "position of the NPU in its group"))
    return maps[:1] if size == 2 else maps


def maps_of_all_to_all(size, stride, num_npus, links, values):
    """One map: a row for each group of the dimension, a column for each link of a group, by the positions that it leads from and to."""
    source, target = links["from"].to_numpy(), links["to"].to_numpy()
    start, end = position(source, size, stride), position(target, size, stride)
    matrix = np.full((num_npus // size, size * (size - 1)), UNUSED)
    matrix[group(source, size, stride), start * (size - 1) + end - (end > start)] = values
    ticks = [f"{a}→{b}" for a in range(size) for b in range(size) if a != b]
    return [Map("links of each group", matrix, "group of NPUs", "link, from position → to position", ticks)]


def spelt(kind):
    """The name of a kind of switch, as a reader knows it, for one of them and for several."""
    name = f"{kind} switch" if kind in ("edge", "aggregation", "core") else kind
    return name, name + ("es" if name.endswith("switch") else "s")


def maps_of_switches(links, values):
    """A map for each kind of link: a row for each switch, a column for each of its links of this kind, by the other end."""
    ends = {end: [name.rpartition(" ") for name in links[f"{end}_name"]] for end in ("from", "to")}
    kinds = {end: np.array([kind for kind, _, _ in found], dtype=object) for end, found in ends.items()}
    numbers = {end: np.array([int(number) for _, _, number in found]) for end, found in ends.items()}
    maps = []
    for pair in dict.fromkeys(zip(kinds["from"], kinds["to"])):
        chosen = (kinds["from"] == pair[0]) & (kinds["to"] == pair[1])
        of_row, of_column = ("to", "from") if pair[0] == "NPU" else ("from", "to")
        row, other = numbers[of_row][chosen], numbers[of_column][chosen]
        order = np.lexsort((other, row))
        column = np.empty(len(row), dtype=int)
        column[order] = np.arange(len(row)) - np.searchsorted(row[order], row[order])
        matrix = np.full((row.max() + 1, column.max() + 1), np.nan)
        matrix[row, column] = values[chosen]
        name, end = (pair[1], pair[0]) if of_row == "to" else pair
        maps.append(Map(f"{pair[0]} to {pair[1]}", matrix, spelt(name)[0], "its NPUs" if end == "NPU" else f"its links {of_column} {spelt(end)[1]}",
                        absent="no link that carried data"))
    return maps


def maps_of(shape, size, stride, num_npus, links, values):
    """Returns the maps of one dimension.

    shape, size: of the dimension. stride: the product of the sizes of the dimensions before it. links: the rows of Results.links of
    this dimension, and `values` of each.
    """
    if shape in ("Ring", "Mesh"):
        return maps_of_ring(shape, size, stride, num_npus, links, values)
    if shape == "FullyConnected":
        return maps_of_all_to_all(size, stride, num_npus, links, values)
    return maps_of_switches(links, values)


def joined(matrix):
    """Returns (matrix, rows, columns that became one): a large matrix with neighbours joined, the largest of them."""
    joins = [-(-side // MOST_CELLS) for side in matrix.shape]
    if joins == [1, 1]:
        return matrix, joins
    padded = np.pad(matrix, [(0, -side % join) for side, join in zip(matrix.shape, joins)], constant_values=np.nan)
    blocks = padded.reshape(padded.shape[0] // joins[0], joins[0], padded.shape[1] // joins[1], joins[1])
    return np.fmax.reduce(np.fmax.reduce(blocks, axis=3), axis=1), joins


class Scale:
    """The colours of the values of one dimension: logarithmic where they span a large range."""

    def __init__(self, values, unit):
        self.low, self.high = float(values.min()), float(values.max())
        self.is_uniform = self.high - self.low <= UNIFORM * max(self.high, 1e-300)
        positive = values[values > 0]
        self.is_log = self.high > LOG_RANGE * max(float(positive.min()) if len(positive) else self.high, 1e-300)
        if self.is_log:
            self.low = float(positive.min())
        self.unit, self.size = (unit, 1) if unit in ("%", "messages") else scale_of(max(self.high, 1), unit)
        low, high = (self.low, self.high) if not self.is_uniform else (0, 2 * max(self.high, 1e-300))  # one colour from the middle
        self.norm = colours.LogNorm(low, high) if self.is_log else colours.Normalize(low, high)

    def text(self, value):
        return f"{value / self.size:.3g} {self.unit}"

    def of(self, matrix):
        """RGBA: links that carried nothing are white, where there is no link it is transparent."""
        image = PALETTE(self.norm(np.clip(np.nan_to_num(matrix), self.low, self.high)))
        image[matrix == UNUSED] = (1, 1, 1, 1)
        image[np.isnan(matrix)] = (0, 0, 0, 0)
        return image


def draw_spread(axes, values, scale):
    """Draws how many links have which value; the colours of the bars are those of the maps."""
    if scale.is_uniform:
        edges = np.array([0.96, 1.04]) * max(scale.high, 1e-300)
        axes.set_xlim(0, 1.3 * edges[1])
    else:
        bins = min(24, max(6, len(np.unique(values))))
        edges = np.geomspace(scale.low, scale.high, bins + 1) if scale.is_log else np.linspace(scale.low, scale.high, bins + 1)
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    middle = np.sqrt(edges[1:] * edges[:-1]) if scale.is_log else (edges[1:] + edges[:-1]) / 2
    axes.bar(edges[:-1] / scale.size, counts, width=np.diff(edges) / scale.size, align="edge", color=PALETTE(scale.norm(middle)),
             edgecolor="white", linewidth=0.4)
    if scale.is_log:
        axes.set_xscale("log")
        style.logarithmic(axes.xaxis)
    style.whole_numbers(axes.yaxis)
    axes.set_ylabel("links")
    axes.set_xlabel(scale.unit if scale.unit != "%" else "% of the time")
    axes.set_title("links by value", fontweight="normal")


def draw_map(axes, one, scale):
    """Draws one map of links. What is hatched has no link, or one of which the results know nothing."""
    matrix, joins = joined(one.matrix)
    axes.patch.set(facecolor=style.PALE, edgecolor=NOT_THERE, hatch="////", linewidth=0)
    rows, columns = one.matrix.shape
    axes.imshow(scale.of(matrix), aspect="auto", interpolation="nearest", extent=(-0.5, columns - 0.5, rows - 0.5, -0.5))
    for spine in axes.spines.values():
        spine.set(visible=True, color=NOT_THERE)
    for axis, name in ((axes.yaxis, one.row), (axes.xaxis, one.column)):
        style.whole_numbers(axis)
        axis.set_label_text(name)
    if one.ticks is not None and len(one.ticks) <= MOST_TICKS:
        axes.set_xticks(range(len(one.ticks)), one.ticks, fontsize=7.5)
    joined_sides = [f"{join} {side}" for join, side in zip(joins, ("rows", "columns")) if join > 1]
    axes.set_title(one.title + (f" (largest of {' and '.join(joined_sides)})" if joined_sides else ""), fontweight="normal")
    if not (one.matrix >= 0).any():
        axes.text(0.5, 0.5, "carried nothing", transform=axes.transAxes, ha="center", va="center", color=style.GREY)


def said_of(values, scale):
    """Says in words how the values of a dimension are spread."""
    if scale.is_uniform:
        return f"{len(values):,} links carried data, all about {scale.text(scale.high)}"
    least, median = (f"{value / scale.size:.3g}" for value in (values.min(), np.median(values)))
    return f"{len(values):,} links carried data: least {least}, median {median}, most {scale.text(scale.high)}"


def draw_dimension(body, title, maps, values, unit):
    """Draws one dimension into a subfigure: how its links are spread on the left, maps of them on the right."""
    scale = Scale(values, unit)
    columns = min(3, len(maps))
    rows = -(-len(maps) // columns)
    body.suptitle(f"{title}: {said_of(values, scale)}", x=0.012, ha="left", fontsize=10.5, fontweight="bold")
    grid = body.add_gridspec(rows, 1 + columns, width_ratios=[0.8] + [1.0] * columns)
    draw_spread(body.add_subplot(grid[:, 0]), values, scale)
    for number, one in enumerate(maps):
        draw_map(body.add_subplot(grid[number // columns, 1 + number % columns]), one, scale)


def rows_of(maps):
    return -(-len(maps) // 3)


def legend_of(maps):
    """Returns boxes for a legend that says what the cells without a colour of the scale mean; none if there are no such cells."""
    handles = []
    if any((one.matrix == UNUSED).any() for one in maps):
        handles.append(style.patch("white", "link that carried nothing", edgecolor=style.GREY, linewidth=0.6))
    for absent in dict.fromkeys(one.absent for one in maps if np.isnan(one.matrix).any()):
        handles.append(style.patch(style.PALE, absent, edgecolor=NOT_THERE, hatch="////", linewidth=0))
    return handles
