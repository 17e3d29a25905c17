"""Says in a terminal what the page shows: as text, JSON or CSV."""
import csv
import io
import json

from . import comparison, facts
from ..results import Results
from ..summary import share
from ..units import readable

BAR = 30  # characters of a full bar
MOST_ROWS = 8  # of collectives that the text lists; JSON and CSV have all
WIDTH = 44  # characters of a value of the configuration


def of(paths, form):
    """Returns what is to be printed of one file, or the comparison of several. form: "text", "json" or "csv"."""
    runs = []
    for path in paths:
        with Results(path) as run:
            runs.append(facts.of(run))
    if len(runs) == 1:
        return {"text": shown, "json": as_json, "csv": rows_of_run}[form](runs[0])
    return {"text": compared, "json": as_json, "csv": rows_of_comparison}[form](comparison.of(runs))


def as_json(value):
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def csv_cell(cell):
    """Returns a cell of CSV. Spreadsheets take a text that begins with =, +, - or @ for a formula, unless an apostrophe is before it."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
        return cell
    except ValueError:
        return "'" + cell


def as_csv(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([csv_cell(cell) for cell in row] for row in rows)
    return out.getvalue()


def bar(part):
    """Returns a bar whose length says which part of 1 it is."""
    return ("█" * round(BAR * part)).ljust(BAR, "·")


def table(rows, right=()):
    """Returns lines of a table. right: the columns that are aligned on the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def shown(run):
    """Returns what a run says, as text."""
    causes = {cause["cause"] for cause in run["causes"]} | {"CPU", "exposed communication", "exposed remote memory"}
    figures = [(name, value) for name, value in run["figures"] if name not in causes]
    lines = [
        run["path"],
        *table([[name, value] for name, value in figures]),
        "",
        "where the time of a step goes (mean over all NPUs)",
    ]
    lines += table(
        [
            [cause["cause"], readable(cause["time"], "ps"), share(cause["share"]), bar(cause["share"])]
            for cause in run["causes"]
        ]
        or [["no time passed"]],
        right=(1, 2),
    )
    if run["critical_path"]:
        lines += ["", f"longest segments of the critical path (of {run['critical_path']['segments']:,})"]
        lines += table(
            [
                [
                    readable(one["duration"], "ps"),
                    one["cause"],
                    f"NPU {one['npu']}",
                    f"at {readable(one['start'], 'ps')}",
                    one["name"],
                ]
                for one in run["critical_path"]["longest"]
            ],
            right=(0,),
        )
    lines += ["", "how busy the network was (mean over all links)", *table(use_rows(run), right=(4, 5))]
    if run["jobs"]:
        lines += [
            "",
            "jobs (times of NPUs are means over those of the job)",
            *table([JOB_HEAD] + [job_row(one) for one in run["jobs"]], right=range(1, 10)),
        ]
    if run["blocks"]:
        lines += ["", "for what thread blocks of GPUs spent their time (all of them together)"]
        lines += table(
            [
                [one["reason"], readable(one["time"], "ps"), share(one["share"]), bar(one["share"])]
                for one in run["blocks"]
            ],
            right=(1, 2),
        )
    rows = run["collectives"]["rows"]
    if rows:
        lines += [
            "",
            "collectives that took the most time",
            *table([COLLECTIVE_HEAD] + [collective_row(row) for row in rows[:MOST_ROWS]], right=range(2, 9)),
        ]
        if len(rows) > MOST_ROWS:
            lines.append(f"  and {run['collectives']['total'] - MOST_ROWS:,} kinds more (--format csv lists them)")
    lines += ["", *run["hints"]] if run["hints"] else []
    return "\n".join(lines) + "\n"


def use_rows(run):
    """Returns a row for each dimension and for each stage of the remote memory."""
    rows = [
        [
            f"dimension {one['dimension']}",
            f"{one['shape']} of {one['size']}".strip(),
            one["bandwidth"],
            one["latency"],
            readable(one["bytes"], "byte"),
            "" if one["utilisation"] is None else share(one["utilisation"]),
        ]
        for one in run["dimensions"]
    ]
    return rows + [
        [
            f"memory {one['name']}",
            f"{one['servers']:,} servers",
            "",
            "",
            readable(one["bytes"], "byte"),
            share(one["utilisation"]),
        ]
        for one in run["stages"]
    ]


JOB_HEAD = ["job", "NPUs", "start", "finish", "run time", "compute", "exposed", "idle", "alone", "slowdown"]
JOB_TIMES = ("start", "finish", "run", "compute", "exposed", "idle", "alone")


def job_row(job):
    """Returns the texts of a row of jobs."""
    times = ["-" if job[key] is None else readable(job[key], "ps") for key in JOB_TIMES]
    return [job["name"], f"{job['npus']:,}", *times, "-" if job["slowdown"] is None else f"{job['slowdown']:.4f}"]


COLLECTIVE_HEAD = [
    "operation",
    "groups",
    "size (B)",
    "members",
    "number",
    "time (us)",
    "algbw (GB/s)",
    "busbw (GB/s)",
    "total (ms)",
]


def collective_row(row):
    """Returns the texts of a row of collectives, in the units of nccl-tests."""
    rate = {
        name: "-" if row[name] is None else f"{row[name] / 1e9:.2f}"
        for name in ("algorithm_bandwidth", "bus_bandwidth")
    }
    return [
        row["kind"],
        row["family"],
        "-" if row["bytes"] is None else str(row["bytes"]),
        str(row["members"]),
        str(row["number"]),
        f"{row['time'] / 1e6:.2f}",
        rate["algorithm_bandwidth"],
        rate["bus_bandwidth"],
        f"{row['total'] / 1e9:.2f}",
    ]


def collective_name(row):
    """Names a row of collectives in one text."""
    size = "" if row["bytes"] is None else f" of {row['bytes']} B"
    return f"{row['kind']}{size} in {row['family']} ({row['members']} members)"


def rows_of_run(run):
    """Returns a run as CSV: what, name, value, unit."""
    rows = [
        ["what", "name", "value", "unit"],
        ["figure", "npus", run["num_npus"], "1"],
        ["figure", "status", run["status"], ""],
        ["figure", "simulated_time", run["simulated_time"], "ps"],
    ]
    rows += [["figure", name, value, "ps" if name.endswith("_time") else "1"] for name, value in run["metrics"].items()]
    rows += [["cause", one["cause"], round(one["time"]), "ps"] for one in run["causes"]]
    rows += [
        ["utilisation", f"dimension {one['dimension']}", one["utilisation"], "1"]
        for one in run["dimensions"]
        if one["utilisation"] is not None
    ]
    rows += [["utilisation", f"memory {one['name']}", one["utilisation"], "1"] for one in run["stages"]]
    rows += [
        ["job", f"{one['name']}: {key}", one[key], "ps"]
        for one in run["jobs"]
        for key in JOB_TIMES
        if one[key] is not None
    ]
    rows += [["slowdown", one["name"], one["slowdown"], "1"] for one in run["jobs"] if one["slowdown"] is not None]
    rows += [["thread blocks", one["reason"], one["time"], "ps"] for one in run["blocks"]]
    rows += [["mean time", collective_name(one), round(one["time"]), "ps"] for one in run["collectives"]["rows"]]
    rows += [["setting", key, value, ""] for key, value in run["settings"].items()]
    return as_csv(rows)


def compared(found):
    """Returns the comparison of several runs, as text."""
    names, lines = found["runs"], [*found["said"], "", "what differs in the configuration"]
    cells = [["", *names]] + [[one["key"], *(short(value) for value in one["values"])] for one in found["keys"]]
    lines += table(cells) if found["keys"] else ["  nothing"]
    lines += [
        "",
        "figures of a step",
        *table([["", *names]] + [figure_row(one) for one in found["figures"]], right=range(1, len(names) + 1)),
    ]
    lines += ["", f"where the time goes (mean over all NPUs; in brackets: against {names[0]})"]
    lines += table([["", *names]] + [cause_row(one) for one in found["causes"]], right=range(1, len(names) + 1))
    return "\n".join(lines) + "\n"


def short(value):
    """Returns a value of the configuration, cut if it is long; "-" if the configuration does not have the key."""
    text = "-" if value is None else str(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def figure_text(value, unit):
    if value is None:
        return "-"
    return share(value) if unit == "share" else readable(value, unit)


def figure_row(one):
    return [one["name"], *(figure_text(value, one["unit"]) for value in one["values"])]


def cause_row(one):
    first, *others = one["times"]
    return [
        one["cause"],
        readable(first, "ps"),
        *(f"{readable(time, 'ps')} ({comparison.signed(time - first)})" for time in others),
    ]


def rows_of_comparison(found):
    """Returns the comparison as CSV: what, name, unit, and a column for each run."""
    rows = [["what", "name", "unit", *found["runs"]]]
    rows += [
        ["setting", one["key"], "", *("" if value is None else value for value in one["values"])]
        for one in found["keys"]
    ]
    rows += [
        [
            "figure",
            one["name"],
            "1" if one["unit"] == "share" else one["unit"],
            *("" if value is None else value for value in one["values"]),
        ]
        for one in found["figures"]
    ]
    rows += [["cause", one["cause"], "ps", *(round(time) for time in one["times"])] for one in found["causes"]]
    return as_csv(rows)
