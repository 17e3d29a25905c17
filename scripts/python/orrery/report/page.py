"""Writes the page: everything that it needs is in the one file, so that it can be sent by mail and opened without a network."""
import html
import json
import os
import pathlib
import re
import tempfile

from . import comparison, facts, series
from .. import operators
from ..results import Results

HERE = pathlib.Path(__file__).resolve().parent
# What stands in the page, and the marks in web/report.html in whose place it comes.
PARTS = {
    "/*STYLE*/": ["vendor/uplot/uPlot.min.css", "web/report.css"],
    "/*SCRIPT*/": [
        "vendor/uplot/uPlot.iife.min.js",
        "web/base.js",
        "web/state.js",
        "web/export.js",
        "web/timeline.js",
        "web/nodes.js",
        "web/links.js",
        "web/report.js",
    ],
}
STATIC = (
    "HEADING",
    "SUBTITLE",
    "SECTIONS",
    "MAIN",
    "MADE",
)  # marks of what JavaScript makes, unless it is there already
MOST_RUNS_IN_FULL = 8  # of more runs the page has the comparison and the figures, but no timeline


def data(paths):
    """Returns what the page shows of these files: {"runs": [{"facts", "series"}], "comparison"}."""
    found = []
    for path in paths:
        with Results(path) as run:
            slices = series.MOST_SLICES // len(paths) if len(paths) <= MOST_RUNS_IN_FULL else 0
            found.append(
                {
                    "facts": facts.of(run),
                    "series": series.of(run, slices),
                    "operators": operators.of(run) if slices else None,
                    "given": run.inputs.get("configuration.yaml", ""),
                    "resolved": run.resolved,
                }
            )
    runs = [one["facts"] for one in found]
    return {
        "runs": found,
        "names": comparison.names_of(runs),
        "comparison": comparison.of(runs) if len(runs) > 1 else None,
    }


def text(paths):
    """Returns the page of these files as HTML."""
    shown = data(paths)
    return filled(
        PARTS,
        title=" · ".join(shown["names"][:4]),
        about="The charts over time are drawn by uPlot.",
        licence=(HERE / "vendor/uplot/LICENSE").read_text(encoding="utf-8"),
        shown=shown,
    )


def filled(parts, title, about, licence, shown, static=None):
    """Returns web/report.html with all that belongs into it.

    parts: as PARTS. title, about, licence: texts. shown: the data, as JSON has it. static: {mark: HTML} of what is there without JavaScript,
    for the marks HEADING, SUBTITLE, SECTIONS, MAIN, MADE and NOSCRIPT.
    """
    # "</" would end the script that holds the data, whatever stands around it.
    embedded = (
        json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        .replace("</", "<\\/")
        .replace("<!--", "<\\u0021--")
    )
    marks = {f"<!--{mark}-->": "" for mark in STATIC} | {
        "<!--NOSCRIPT-->": "This page draws its figures with JavaScript, which is switched off."
    }
    marks |= {f"<!--{mark}-->": text for mark, text in (static or {}).items()}
    marks |= {
        "<!--TITLE-->": html.escape(title),
        "<!--ABOUT-->": html.escape(about),
        "<!--LICENCE-->": html.escape(licence.strip()),
        "/*DATA*/": embedded,
    }
    marks |= {
        mark: "\n".join((HERE / name).read_text(encoding="utf-8") for name in names) for mark, names in parts.items()
    }
    page = (HERE / "web/report.html").read_text(encoding="utf-8")
    # In one pass, so that a mark within a text stays what it is.
    return re.sub("|".join(map(re.escape, marks)), lambda found: marks[found[0]], page)


def write(paths, output):
    """Writes the page of these files into the file `output`. A file that is there stays as it is until the new one is whole.

    Returns its size in bytes. Raises ResultsError for a file that cannot be read, and OSError if the page cannot be written.
    """
    return write_text(text(paths), output)


def write_text(page, output):
    """Writes a page into a file, as `write` does."""
    written = page.encode("utf-8", "replace")
    output = os.path.realpath(output)
    handle, name = tempfile.mkstemp(prefix=".report-", suffix=".html", dir=os.path.dirname(output))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(written)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, output)
    except BaseException:
        os.unlink(name)
        raise
    return len(written)
