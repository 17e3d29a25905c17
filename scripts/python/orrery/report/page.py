"""Writes the page: everything that it needs is in the one file, so that it can be sent by mail and opened without a network."""
import html
import json
import os
import pathlib
import tempfile

from . import comparison, facts, series
from ..results import Results

HERE = pathlib.Path(__file__).resolve().parent
# What stands in the page, and the marks in web/report.html in whose place it comes.
PARTS = {"/*STYLE*/": ["vendor/uplot/uPlot.min.css", "web/report.css"],
         "/*SCRIPT*/": ["vendor/uplot/uPlot.iife.min.js", "web/base.js", "web/timeline.js", "web/links.js", "web/report.js"]}
MOST_RUNS_IN_FULL = 8  # of more runs the page has the comparison and the figures, but no timeline


def data(paths):
    """Returns what the page shows of these files: {"runs": [{"facts", "series"}], "comparison"}."""
    found = []
    for path in paths:
        with Results(path) as run:
            slices = series.MOST_SLICES // len(paths) if len(paths) <= MOST_RUNS_IN_FULL else 0
            found.append({"facts": facts.of(run), "series": series.of(run, slices)})
    runs = [one["facts"] for one in found]
    return {"runs": found, "names": comparison.names_of(runs), "comparison": comparison.of(runs) if len(runs) > 1 else None}


def text(paths):
    """Returns the page of these files as HTML."""
    shown = data(paths)
    page = (HERE / "web/report.html").read_text(encoding="utf-8")
    title = " · ".join(shown["names"][:4])
    # "</" would end the script that holds the data, whatever stands around it.
    embedded = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("</", "<\\/").replace("<!--", "<\\u0021--")
    licence = (HERE / "vendor/uplot/LICENSE").read_text(encoding="utf-8")
    page = page.replace("<!--TITLE-->", html.escape(title)).replace("<!--LICENCE-->", html.escape(licence.strip()))
    for mark, names in PARTS.items():
        page = page.replace(mark, "\n".join((HERE / name).read_text(encoding="utf-8") for name in names))
    return page.replace("/*DATA*/", embedded)


def write(paths, output):
    """Writes the page of these files into the file `output`. A file that is there stays as it is until the new one is whole.

    Raises ResultsError for a file that cannot be read, and OSError if the page cannot be written.
    """
    written = text(paths).encode("utf-8", "replace")
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
