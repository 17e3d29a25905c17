"""Writes the page of campaigns and of clusters over time: summaries as tables, and pictures. It needs no network and no JavaScript."""
import base64
import io
import os

from . import page
from .studies import sections
from ..plots import style, weeks
from ..source import CAMPAIGN, CLUSTER, Source, format_of

PARTS = {"/*STYLE*/": ["web/report.css", "web/study/study.css"], "/*SCRIPT*/": []}
DRAWN = {CAMPAIGN: ("campaign", weeks.campaign), CLUSTER: ("cluster", weeks.cluster)}


def written(value):
    return f"{value:,.6g}"


def summary(source, group):
    """Returns the table of the means of all metrics."""
    columns = weeks.table(source, f"{group}/summary")
    rows = [
        [sections.esc(str(name)), written(mean), written(half), sections.esc(str(unit)), sections.esc(str(text))]
        for name, mean, half, unit, text in zip(
            columns["metric"], columns["mean"], columns["half_width"], columns["unit"], columns["description"]
        )
    ]
    return sections.table(["metric", "mean", "± (95 %)", "unit", "what it is"], rows, (1, 2), f"{group}-summary")


def picture(name, heading, figure, prefix):
    image = io.BytesIO()
    with style.look():
        figure.savefig(image, format="png", dpi=style.DPI)
    data = base64.b64encode(image.getvalue()).decode("ascii")
    return sections.section(
        f"{prefix}{name}",
        heading,
        f'<img alt="{sections.esc(heading)}" style="max-width: 100%; background: white" src="data:image/png;base64,{data}">',
    )


def text(paths):
    """Returns the page of these files as HTML."""
    main, links, made = [], [], []
    for number, path in enumerate(paths):
        source = Source(path, format_of(path))
        try:
            group, draw = DRAWN[format_of(path)]
            prefix = f"f{number}-" if len(paths) > 1 else ""
            name = os.path.basename(path)
            heading = f"Summary of {name}"
            main.append(sections.section(f"{prefix}summary", heading, summary(source, group)))
            links.append(sections.tag("a", sections.esc(heading), href=f"#{prefix}summary"))
            for part in draw(source):
                main.append(picture(*part, prefix))
                links.append(sections.tag("a", sections.esc(part[1]), href=f"#{prefix}{part[0]}"))
            made.append(f"{path}, which Orrery {source.attributes.get('orrery_version', '')} wrote")
        finally:
            source.close()
    names = " · ".join(os.path.basename(path) for path in paths[:4])
    static = {
        "HEADING": sections.esc(names),
        "MAIN": "".join(main),
        "SECTIONS": "".join(links),
        "MADE": sections.esc(f"Made from {' and '.join(made)}."),
        "NOSCRIPT": "",
    }
    return page.filled(
        PARTS, title=names, about="The pictures are drawn with matplotlib.", licence="", shown={}, static=static
    )


def write(paths, output):
    """Writes the page of these files into the file `output`, as `orrery.report.page.write` does."""
    return page.write_text(text(paths), output)
