"""What the pictures of the studies share: the look of orrery.plots, and strips that say what limits a time."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What can be the slowest part of a memory system: how people call it, and its colour by its name in orrery.plots.style.
LIMITS = {
    "network": ("network of the NPUs", "VERMILION"),
    "groups": ("memory groups", "PURPLE"),
    "links": ("links from switches to nodes", "SKY"),
    "fabrics": ("fabric to each NPU", "GREEN"),
    "fabric": ("fabric to each NPU", "GREEN"),
    "computing": ("computing", "BLUE"),
}


def style_for(path):
    """Returns the module orrery.plots.style if a picture is asked for (path is not None), else None.

    Call it before the study runs: if a Python package is missing, it ends the program with a message that says how to install it.
    """
    if path is None:
        return None
    sys.path.insert(0, str(ROOT / "scripts/python"))
    try:
        from orrery.plots import style
    except ImportError as error:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {error}")
    return style


def strips(style, axes, rows, title):
    """Draws one row of coloured boxes for each of `rows`, {label: [what is the slowest at each value of a sweep]}."""
    for place, slowest in enumerate(rows.values()):
        axes.bar(
            range(len(slowest)),
            0.8,
            width=0.92,
            bottom=place - 0.4,
            color=[getattr(style, LIMITS[name][1]) for name in slowest],
        )
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.set_title(title, fontweight="normal")
    for spine in axes.spines.values():
        spine.set_visible(False)


def sweeps(style, titles, measured, lines, ylabel, strip_title):
    """Returns a figure with one column for each sweep: times on top, below them strips of what is the slowest.

    titles: the title and the line below it. measured: {name of the sweep: (values, {line: times}, {strip: what is the slowest})}.
    lines: {line: (label, colour, marker)}.
    """
    with style.look():
        heights = [3.0, 0.6 + 0.2 * max(len(rows) for _, _, rows in measured.values()), 0.55]
        figure, _, body = style.picture(sum(heights), *titles)
        charts, foot = body.subfigures(2, 1, height_ratios=[sum(heights[:2]), heights[2]])
        panels = charts.subplots(
            2, len(measured), sharex="col", sharey="row", gridspec_kw={"height_ratios": heights[:2]}
        )
        for (title, (values, times, rows)), top, bottom in zip(measured.items(), panels[0], panels[1]):
            for name, (label, colour, marker) in lines.items():
                top.semilogy(range(len(values)), times[name], color=colour, marker=marker, markersize=4, label=label)
            top.grid(axis="y")
            strips(style, bottom, rows, strip_title)
            bottom.set_xticks(
                range(len(values)),
                [f"{value:.3g}" if value < 1000 else f"{value:,.0f}" for value in values],
                rotation=60 if len(values) > 8 else 0,
                fontsize=7.5,
            )
            bottom.set_xlabel(title)
        panels[0, 0].set_ylabel(ylabel)
        style.logarithmic(panels[0, 0].yaxis, (1, 2, 5))
        used = {name for _, _, rows in measured.values() for slowest in rows.values() for name in slowest}
        boxes = [
            style.patch(getattr(style, colour), label)
            for label, colour in dict.fromkeys(LIMITS[name] for name in LIMITS if name in used)
        ]
        foot.legend(handles=[*panels[0, 0].get_legend_handles_labels()[0], *boxes], loc="center", ncol=4)
        return figure
