"""The look that all pictures share: colours with a meaning, fonts, sizes, axes with units, legends that are not clipped."""
import contextlib
import io

from ..packages import load
from ..units import scale_of

matplotlib = load("matplotlib")
load("matplotlib.figure"), load("matplotlib.ticker")
np = load("numpy")

# The palette of Okabe and Ito, which readers tell apart with any colour vision. A colour that stands for what an NPU does has this
# meaning in all pictures.
BLUE, ORANGE, VERMILION, PURPLE, GREEN, SKY, BLACK, GREY = (
    "#0072B2",
    "#E69F00",
    "#D55E00",
    "#CC79A7",
    "#009E73",
    "#56B4E9",
    "#222222",
    "#7A7A7A",
)
LIGHT, PALE = "#E4E4E4", "#F3F3F3"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, "#999999")  # lines that have no meaning of their own
STATES = {
    "compute": BLUE,
    "CPU": ORANGE,
    "CPU alone": "#F0D264",
    "exposed communication": VERMILION,
    "exposed remote memory": PURPLE,
    "idle": LIGHT,
}
# Causes of Run.breakdown, as in report/web/base.js: collectives in strong colours, what waits for other NPUs pale.
CAUSES = STATES | {
    "forward": BLUE,
    "backward": "#00395A",
    "other compute": "#7F9DB0",
    "cpu": ORANGE,
    "tensor": VERMILION,
    "sequence": "#F0915A",
    "context": "#A63A50",
    "expert": "#8C1D40",
    "data": GREEN,
    "pipeline": SKY,
    "bubble": "#93B7CC",
    "stragglers": "#8C6BB1",
    "other": "#8A8A8A",
    "memory": PURPLE,
}

WIDTH = 11.0  # inches
HEADER = 0.64  # inches of the title and the line below it
DPI = 150
RULES = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.labelcolor": BLACK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "grid.color": LIGHT,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.3,
}


class Picture(matplotlib.figure.Figure):
    """A matplotlib figure that Jupyter shows as it is."""

    def _repr_png_(self):
        image = io.BytesIO()
        with look():
            self.savefig(image, format="png", dpi=100)
        return image.getvalue()


@contextlib.contextmanager
def look():
    """A context in which figures and axes get the shared look."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RULES)
        yield


def picture(height, title, subtitle="", width=WIDTH):
    """Returns (figure, head, body): a figure, its subfigure with the title and a grey line below it, and that for axes, `height` inches high."""
    figure = Picture(figsize=(width, height + HEADER), layout="constrained")
    head, body = figure.subfigures(2, 1, height_ratios=[HEADER, height])
    left = 0.12 / width
    head.text(left, 0.86, title, fontsize=13.5, fontweight="bold", color=BLACK, ha="left", va="top")
    head.text(left, 0.30, subtitle, fontsize=9.5, color=GREY, ha="left", va="center")
    return figure, head, body


def save(figure, path, dpi=DPI):
    """Writes a figure into a file. Raises OSError if that is not possible, ValueError for a kind of file that matplotlib does not know."""
    with look():
        figure.savefig(path, dpi=dpi)


def legend(axes, title=None, handles=None, **more):
    """Puts the legend to the right of the axes, where it covers nothing."""
    chosen = {
        "loc": "upper left",
        "bbox_to_anchor": (1.01, 1.0),
        "borderaxespad": 0,
        "alignment": "left",
        "title": title,
        **more,
    }
    return axes.legend(**chosen) if handles is None else axes.legend(handles=handles, **chosen)


def patch(colour, label, **more):
    """Returns a filled box for a legend."""
    return load("matplotlib.patches").Patch(**{"facecolor": colour, "edgecolor": colour, "label": label, **more})


def whole_numbers(axis):
    """Puts ticks at whole numbers only, with commas in thousands."""
    axis.set_major_locator(
        matplotlib.ticker.MaxNLocator(integer=True, nbins=8, steps=[1, 2, 4, 5, 8, 10], min_n_ticks=1)
    )
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))


def logarithmic(axis, digits=(1,)):
    """Gives a logarithmic axis ticks at these digits times powers of ten, written as people write numbers: 10,000 instead of 10^4."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=digits))
    axis.set_major_formatter(
        matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    )
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def time_scale(largest):
    """Returns (unit, picoseconds in it) for times up to `largest` picoseconds."""
    return scale_of(max(largest, 1), "ps")


def time_axis(axes, begin, end):
    """Labels the x axis as simulated time from `begin` to `end` (ps) and returns how many picoseconds its unit has."""
    unit, size = time_scale(end)
    axes.set_xlim(begin / size, max(end, begin + 1) / size)
    axes.set_xlabel(f"simulated time ({unit})")
    return size


def binned(values, bins):
    """Returns (edges, means): the means of `values` over `bins` bins of neighbours and where the bins begin and end."""
    edges = np.linspace(0, len(values), bins + 1).astype(int)
    return edges, np.add.reduceat(values, edges[:-1]) / np.diff(edges)
