"""Draws what more MPI ranks would gain, as `orrery show scaling` predicts it."""
from . import style

LIMITS = {
    "events": style.BLUE,
    "imbalance": style.ORANGE,
    "dependencies": style.PURPLE,
    "messages": style.GREEN,
    "latency": style.VERMILION,
}
MARKERS = ("o", "s", "^", "D", "v", "P")


def predictions(tables):
    """Draws the speedup over the number of ranks. tables: (name, what --json prints) of one or more runs; the colour of a point says
    what limits it."""
    with style.look():
        figure, _, body = style.picture(
            4.0,
            "Predicted speedup over one rank",
            "the colour of a point says what takes most of the time that is lost",
        )
        axes = body.subplots()
        most = max(row["ranks"] for _, table in tables for row in table["rows"])
        axes.plot([1, most], [1, most], color=style.GREY, linewidth=0.8, linestyle="--")
        handles = [axes.plot([], [], color=style.GREY, linewidth=0.8, linestyle="--", label="all ranks always busy")[0]]
        for (name, table), marker in zip(tables, MARKERS * len(tables)):
            ranks, speedups = ([row[key] for row in table["rows"]] for key in ("ranks", "speedup"))
            axes.plot(ranks, speedups, color=style.LIGHT, zorder=1)
            axes.scatter(
                ranks, speedups, c=[LIMITS[row["limit"]] for row in table["rows"]], marker=marker, s=36, zorder=2
            )
            handles.append(axes.plot([], [], color=style.BLACK, marker=marker, linestyle="", label=name)[0])
        shown = {row["limit"] for _, table in tables for row in table["rows"]}
        handles += [style.patch(colour, limit) for limit, colour in LIMITS.items() if limit in shown]
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(True)
        axes.set_xlabel("MPI ranks")
        axes.set_ylabel("speedup")
        style.legend(axes, handles=handles)
        return figure
