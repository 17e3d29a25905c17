"""Writes the page of studies: one file that needs no network, and that says all of its tables without JavaScript, too."""
import re

from . import comparison, facts, sections, series
from .comparison import names_of
from .quantities import title, written
from .. import page
from ...study import Study

PARTS = {
    "/*STYLE*/": ["web/report.css", "web/study/study.css"],
    "/*SCRIPT*/": [
        "vendor/d3/d3.min.js",
        "web/base.js",
        "web/state.js",
        "web/export.js",
        "web/study/trials.js",
        "web/study/plot.js",
        "web/study/parallel.js",
        "web/study/heat.js",
        "web/study/curve.js",
        "web/study/table.js",
        "web/study/study.js",
    ],
}
# Sections that JavaScript fills. Without it they say nothing.
CHARTS = "".join(
    f'<section id="{name}" class="chart"><h2>{text}</h2></section>'
    for name, text in (
        ("curve", "Over the parameter"),
        ("scatter", "Trade-offs"),
        ("parallel", "All trials"),
        ("heat", "Best over two parameters"),
    )
)
MOST_FRONT = 200  # rows of a front that the page lists without JavaScript


def text(paths):
    """Returns the page of these files as HTML."""
    studies = [Study(path) for path in paths]
    try:
        for study, name in zip(studies, names_of(studies)):
            study.name = name
        found = [facts.of(study) for study in studies]
        shown = {
            "studies": [
                {name: one[name] for name in ("name", "path", "version", "objectives", "parameters", "extremes")}
                | {"commands": command_parts(study), "title": sections.heading(one)}
                for one, study in zip(found, studies)
            ],
            "trials": series.of(studies),
        }
        main = main_of(studies, found)
    finally:
        for study in studies:
            study.close()
    licence = (page.HERE / "vendor/d3/LICENSE").read_text(encoding="utf-8")
    return page.filled(
        PARTS,
        title=" · ".join(one["name"] for one in found[:4]),
        about="The charts are drawn with D3.",
        licence=licence,
        shown=shown,
        static={"MAIN": main, **head_of(found, main)},
    )


def head_of(found, main):
    """Returns {mark: HTML} of what stands above and below the sections."""
    several = len(found) > 1
    heading = f"{len(found)} studies" if several else sections.heading(found[0])
    counts = [
        f"{one['name'] + ': ' if several else ''}{sections.wanted(one)}, {one['trials']:,} configurations, {one['simulated']:,} simulated"
        for one in found
    ]
    made = [f"{one['path']}, which Orrery {one['version']} wrote" for one in found]
    links = [
        sections.tag("a", text, href=f"#{name}")
        for name, text in re.findall(r'<section id="([^"]+)"><h2>([^<]+)</h2>', main)
    ]
    return {
        "HEADING": sections.esc(heading),
        "SUBTITLE": "<br>".join(map(sections.esc, counts)),
        "SECTIONS": "".join(links),
        "MADE": sections.esc(f"Made from {' and '.join(made)}."),
        "NOSCRIPT": "JavaScript is switched off: the charts and the table of all trials are left out.",
    }


def command_parts(study):
    """Returns the command that runs a trial again as the texts around the number of the trial."""
    mark = 123456789012345
    return study.command(mark).split(str(mark))


def main_of(studies, found):
    """Returns the sections of the page."""
    for one in found:
        one["front"] = one["front"][:MOST_FRONT]
    texts = sections.each(found, lambda one: sections.inputs(one, studies[found.index(one)].inputs))
    compared = comparison_section(comparison.of(studies)) if len(studies) > 1 else ""
    bounds = sections.each(found, sections.bounds_words)
    return "".join(
        (
            sections.overview(found),
            compared,
            sections.trials(found),
            CHARTS,
            sections.sensitivity(found),
            sections.breakdown(found),
            sections.section("bounds", "Bound against time", bounds, sections.tag("div", id="bound-plot"))
            if bounds
            else "",
            sections.section("study", "The study", texts),
        )
    )


def comparison_section(found):
    """Returns what the studies do not have in common, as tables."""
    tag, esc, table, names = (
        sections.tag,
        sections.esc,
        sections.table,
        [sections.esc(name) for name in found["studies"]],
    )
    right = range(1, len(names) + 1)

    def cells(one, values, unit):
        return [
            esc(written(value, unit))
            + (tag("small", f" × {ratio:.3f}", class_="soft") if at and ratio is not None else "")
            for at, (value, ratio) in enumerate(zip(one[values], one["ratios"]))
        ]

    parts = [sections.tag("p", esc(text)) for text in found["said"]]
    columns = []
    for at, extreme in enumerate(found["extremes"]):
        best = [["trial", *("–" if number is None else f"{number:,}" for number in extreme["trials"])]]
        best += [
            [esc(one["parameter"]), *(esc("–" if value is None else value) for value in one["values"])]
            for one in extreme["parameters"]
        ]
        best += [[esc(one["title"]), *cells(one, "values", one["unit"])] for one in extreme["best"]]
        which = (
            f"The trial of each with the best {extreme['title']}"
            if len(found["extremes"]) > 1
            else "The best trial of each"
        )
        columns.append(
            tag(
                "div",
                tag("h3", esc(which)),
                table(["", *names], best, right, f"compared-best-{at}" if at else "compared-best"),
            )
        )
    by_value = [
        [esc(f"{one['parameter']} {one['value']}"), *cells(one, "best", found["unit"])] for one in found["values"]
    ]
    differing = [
        [tag("code", esc(one["key"])), *(esc("–" if value is None else value) for value in one["values"])]
        for one in found["settings"]
    ]
    heading = esc(f"The best {title(found['objective'])} for each value")
    columns.append(tag("div", tag("h3", heading), table(["", *names], by_value, right, "compared-values")))
    parts.append(tag("div", *columns, class_="two"))
    parts.append(tag("h3", "What differs in the studies and their bases"))
    parts.append(table(["key", *names], differing, name="compared-keys") if differing else tag("p", "Nothing."))
    return sections.section("comparison", "Comparison", *parts)


def write(paths, output):
    """Writes the page of these files into the file `output`, as `orrery.report.page.write` does."""
    return page.write_text(text(paths), output)
