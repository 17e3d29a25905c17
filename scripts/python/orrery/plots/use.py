"""Draws how busy the dimensions of the network and the stages of the remote memory were."""
import collections

from . import style
from ..packages import load
from ..units import readable

np = load("numpy")

Row = collections.namedtuple("Row", "label details share colour")


def rows_of(run):
    """Returns a Row for each dimension of more than one NPU and for each stage of a hierarchical pool."""
    rows = []
    for number, one in run.dimensions.iterrows():
        if one["size"] > 1 and not np.isnan(one["utilisation"]):  # which it is on the links of a graph
            told = [
                f"{one['shape']} of {one['size']}" if "shape" in one else f"{one['size']} NPUs",
                *([one["bandwidth"]] if "bandwidth" in one else []),
            ]
            rows.append(Row(f"dimension {number}", ", ".join(told), one["utilisation"], style.VERMILION))
    if run.memory_stages is not None:
        for _, one in run.memory_stages.iterrows():
            rows.append(
                Row(
                    f"memory {one['name']}",
                    f"{readable(one['bytes'], 'byte')} passed",
                    one["utilisation"],
                    style.PURPLE,
                )
            )
    return rows


def draw_use(axes, run):
    """Draws a bar for each dimension and stage. A full bar means that every link or server was busy all the time."""
    rows = rows_of(run)
    places = np.arange(len(rows))
    axes.barh(places, np.full(len(rows), 100), height=0.62, color=style.PALE)
    axes.barh(places, [100 * row.share for row in rows], height=0.62, color=[row.colour for row in rows])
    for place, row in zip(places, rows):
        axes.annotate(
            f"{100 * row.share:.1f} %   {row.details}",
            (100, place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    axes.set_yticks(places, [row.label for row in rows])
    axes.set_xlim(0, 100)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    has_memory = run.memory_stages is not None
    axes.set_xlabel("% of the time, mean over all links" + (" or servers" if has_memory else ""))
    axes.set_title("How busy the network" + (" and the remote memory were" if has_memory else " was"))
