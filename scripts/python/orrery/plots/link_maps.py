"""Draws what each link of the congestion-aware network did: for each dimension how its links are spread, and where they are."""
from . import style
from ..links import QUANTITIES, UNUSED, joined, maps_of
from ..packages import load
from ..units import scale_of

np = load("numpy")
colours = load("matplotlib.colors")

MOST_TICKS = 12
NOT_THERE = "#D9D9D9"
UNIFORM = 0.05  # values that are closer than this share of the largest count as equal
LOG_RANGE = 50  # values that span more than this factor get a logarithmic scale
PALETTE = colours.LinearSegmentedColormap.from_list("orrery", ["#FCE9B5", "#F6B26B", "#D55E00", "#8C1D40", "#2D0A2E"])


class Scale:
    """The colours of the values of one dimension: from 0 on, or logarithmic where they span a large range."""

    def __init__(self, values, unit):
        self.low, self.high = float(values.min()), float(values.max())
        self.is_uniform = self.high - self.low <= UNIFORM * max(self.high, 1e-300)
        positive = values[values > 0]
        self.is_log = self.high > LOG_RANGE * max(float(positive.min()) if len(positive) else self.high, 1e-300)
        if self.is_log:
            self.low = float(positive.min())
        self.unit, self.size = (unit, 1) if unit in ("%", "messages") else scale_of(max(self.high, 1), unit)
        low, high = (
            (self.low if self.is_log else 0, max(self.high, 1e-300))
            if not self.is_uniform
            else (0, 2 * max(self.high, 1e-300))
        )  # one colour from the middle
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
    if scale.high <= 0:
        edges = np.array([-0.1, 0.1])
        axes.set_xlim(-1, 1)
        axes.set_xticks([0])
    elif scale.is_uniform:
        edges = np.array([0.96, 1.04]) * scale.high
        axes.set_xlim(0, 1.3 * edges[1])
    else:
        bins = min(24, max(6, len(np.unique(values))))
        edges = (
            np.geomspace(scale.low, scale.high, bins + 1)
            if scale.is_log
            else np.linspace(scale.low, scale.high, bins + 1)
        )
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    middle = np.sqrt(edges[1:] * edges[:-1]) if scale.is_log else (edges[1:] + edges[:-1]) / 2
    axes.bar(
        edges[:-1] / scale.size,
        counts,
        width=np.diff(edges) / scale.size,
        align="edge",
        color=PALETTE(scale.norm(middle)),
        edgecolor="white",
        linewidth=0.4,
    )
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
    axes.imshow(
        scale.of(matrix), aspect="auto", interpolation="nearest", extent=(-0.5, columns - 0.5, rows - 0.5, -0.5)
    )
    for spine in axes.spines.values():
        spine.set(visible=True, color=NOT_THERE)
    for axis, name in ((axes.yaxis, one.row), (axes.xaxis, one.column)):
        style.whole_numbers(axis)
        axis.set_label_text(name)
    if one.ticks is not None and len(one.ticks) <= MOST_TICKS:
        axes.set_xticks(range(len(one.ticks)), one.ticks, fontsize=7.5)
    joined_sides = [f"{join} {side}" for join, side in zip(joins, ("rows", "columns")) if join > 1]
    axes.set_title(
        one.title + (f" (largest of {' and '.join(joined_sides)})" if joined_sides else ""), fontweight="normal"
    )
    if not (one.matrix >= 0).any():
        axes.text(0.5, 0.5, "carried nothing", transform=axes.transAxes, ha="center", va="center", color=style.GREY)


def said_of(values, scale):
    """Says in words how the values of a dimension are spread."""
    if scale.is_uniform:
        return f"{len(values):,} links carried data, all {'about ' if scale.high else ''}{scale.text(scale.high)}"
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
