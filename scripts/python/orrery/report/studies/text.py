"""Says in a terminal what the page of a study shows: as text, JSON or CSV."""
from . import comparison, facts
from .quantities import title, written
from .sections import changed_from, has_front, wanted
from ..text import as_csv, as_json, bar, table
from ...study import Study

MOST_ROWS = 20  # trials that the text lists
MOST_ERRORS = 8  # kinds of errors that the text lists
WIDTH = 40  # characters of a value
# Metrics of a table of trials after the objectives, the most important one first: the last ones are left out where there is no room.
SHOWN = ("step_time", "peak_memory", "usd_per_step", "mfu", "tokens_per_s", "capex", "lower_bound")
LINE = 100  # characters of a line of a table of trials, where columns can be left out


def of(paths, form):
    """Returns what is to be printed of one study, or the comparison of several. form: "text", "json" or "csv"."""
    studies = [Study(path) for path in paths]
    try:
        if len(studies) == 1:
            return {"text": shown_study, "json": lambda study: as_json(facts.of(study)), "csv": rows_of_study}[form](
                studies[0]
            )
        return {"text": compared, "json": as_json, "csv": rows_of_comparison}[form](comparison.of(studies))
    finally:
        for study in studies:
            study.close()


def short(value):
    text = "–" if value is None else str(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def shown_study(study):
    """Returns what a study found, as text."""
    found = facts.of(study)
    lines = [
        f"{found['path']}: {wanted(found)}",
        f"  {found['trials']:,} configurations, {found['simulated']:,} simulated",
    ]
    if found["funnel"]:
        lines += [
            "",
            "how many configurations fell to what",
            *table([[f"{one['count']:,}", short(one["reason"])] for one in found["funnel"]], right=(0,)),
        ]
    lines += error_lines(found["errors"])
    lines += best_lines(found)
    if found["main_effects"]:
        lines += ["", "main effect of each parameter (share of the variance of the objective)"]
        lines += table(
            [
                [one["parameter"], f"{100 * one['effect']:.1f} %", bar(min(max(one["effect"], 0), 1))]
                for one in found["main_effects"]
            ],
            right=(1,),
        )
    if found["tornado"] and found["tornado"]["rows"]:
        unit = next(one["unit"] for one in found["metrics"] if one["name"] == found["tornado"]["metric"])
        lines += ["", f"one parameter changed from {changed_from(found)}"]
        lines += table(
            [
                [
                    row["parameter"],
                    ", ".join(f"{short(point['value'])}: {written(point['metric'], unit)}" for point in row["points"]),
                ]
                for row in found["tornado"]["rows"]
            ]
        )
    if has_front(found):
        commands = {row["trial"]: row["command"] for row in found["top"]}
        for one in found["extremes"]:
            lines += (
                ["", f"run the trial with the best {one['title']} again", f"  {commands[one['trial']]}"]
                if one["trial"] in commands
                else []
            )
    elif found["top"]:
        lines += ["", "run the best again", f"  {found['top'][0]['command']}"]
    return "\n".join(lines) + "\n"


def best_lines(found):
    """Returns the lines of the best trials: of one objective the first ones, of several a sample of the front that has the ends of it."""
    if not found["top"]:
        return ["", "no trial is done"]
    if not has_front(found):
        rows, total, name = found["top"][:MOST_ROWS], len(found["top"]), "the best, the first one first"
    else:
        shown = facts.sample(
            [row["trial"] for row in found["top"]], [one["trial"] for one in found["extremes"]], MOST_ROWS
        )
        rows, total, name = (
            [row for row in found["top"] if row["trial"] in shown],
            found["front_size"],
            f"the Pareto front, the best {title(found['objectives'][0]['metric'])} first",
        )
    return [
        "",
        name,
        *trial_lines(found, rows),
        *([f"  and {total - len(rows):,} more (--format json has them)"] if total > len(rows) else []),
    ]


def error_lines(errors):
    """Returns the lines that say which errors trials have, with one example of each."""
    if not errors:
        return []
    rows = [
        [f"{one['count']:,}", one["status"], f"trial {one['trial']}: {' '.join(one['error'].split()) or 'no text'}"]
        for one in errors
    ]
    more = sum(one["count"] for one in errors[MOST_ERRORS:])
    return [
        "",
        "what is wrong with trials that could not be simulated (one example of each error)",
        *table(rows[:MOST_ERRORS], right=(0,)),
        *([f"  and {more:,} trials with other errors (--format json has them)"] if more else []),
    ]


def fitted(lines, columns, most=LINE):
    """Returns the lines of a table without as many of these columns, the last ones first, as make it wider than `most` characters, and how many."""
    widths, left_out = [max(map(len, column)) + 2 for column in zip(*lines)], set()  # with the blanks before each
    for column in reversed(columns):
        if sum(width for at, width in enumerate(widths) if at not in left_out) <= most:
            break
        left_out.add(column)
    return [[cell for at, cell in enumerate(line) if at not in left_out] for line in lines], len(left_out)


def trial_lines(found, rows):
    """Returns the lines of a table of trials: the parameters that differ, and the metrics."""
    parameters = [one["name"] for one in found["parameters"] if one["varied"] or one["derived"]]
    metrics = [one for one in found["metrics"] if any(row["metrics"][one["name"]] is not None for row in rows)]
    objectives = {one["metric"] for one in found["objectives"]}
    order = [*(one["metric"] for one in found["objectives"]), *SHOWN]
    metrics = sorted((one for one in metrics if one["name"] in order), key=lambda one: order.index(one["name"]))
    caveats = sorted({row["caveat"] for row in rows if row["caveat"]})
    lines = [["trial", *parameters, *(one["title"] for one in metrics)]]
    lines += [
        [
            f"{row['trial']}{'*' if row['caveat'] else ''}",
            *(short(row["parameters"][one]) for one in parameters),
            *(written(row["metrics"][one["name"]], one["unit"]) for one in metrics),
        ]
        for row in rows
    ]
    first = 1 + len(parameters) + sum(one["name"] in objectives for one in metrics)
    lines, left_out = fitted(lines, range(first, len(lines[0])))
    ends = (
        "; ".join(f"best {one['title']}: trial {one['trial']}" for one in found["extremes"]) if has_front(found) else ""
    )
    return [
        *table(lines, right=range(len(lines[0]))),
        *([f"  {ends}"] if ends else []),
        *([f"  ({left_out} more columns: --format csv has them)"] if left_out else []),
        *(f"  * {caveat}" for caveat in caveats),
    ]


def rows_of_study(study):
    """Returns all trials as CSV: parameters as the configuration has them, units in the header, nothing for what is not known."""
    trials, units = study.trials, study.trials.attrs["units"]
    heads = {name: f"{name} [{units[name]}]" for name in study.metrics}
    listed = (
        trials[["status"]]
        .join(study.texts)
        .join(trials[study.metrics + [name for name in ("caveat", "error") if name in trials]])
    )
    return listed.rename(columns=heads).rename_axis("number").to_csv(lineterminator="\n")


def compared(found):
    """Returns the comparison of several studies, as text."""
    names, unit = found["studies"], found["unit"]
    numbers = range(1, len(names) + 1)
    lines = [*found["said"], "", "what differs in the studies and their bases"]
    lines += (
        table([["", *names]] + [[one["key"], *map(short, one["values"])] for one in found["settings"]])
        if found["settings"]
        else ["  nothing"]
    )
    for one in found["extremes"]:
        best = [["trial", *("–" if number is None else f"{number:,}" for number in one["trials"])]]
        best += [[each["parameter"], *map(short, each["values"])] for each in one["parameters"]]
        best += [[each["title"], *with_ratios(each["values"], each["ratios"], each["unit"])] for each in one["best"]]
        which = (
            f"the trial of each with the best {one['title']}"
            if len(found["extremes"]) > 1
            else "the best trial of each"
        )
        lines += ["", f"{which} (in brackets: the ratio to {names[0]})", *table([["", *names]] + best, right=numbers)]
    if found["values"]:
        lines += [
            "",
            f"best {title(found['objective'])} for each value of a parameter",
            *table(
                [["", *names]]
                + [
                    [f"{one['parameter']} {short(one['value'])}", *with_ratios(one["best"], one["ratios"], unit)]
                    for one in found["values"]
                ],
                right=numbers,
            ),
        ]
    for name, one in zip(names[1:], found["matched"]):
        lines += ["", f"trials with the same parameters in {names[0]} and {name}", *match_lines(one)]
    counts = [[short(one["reason"]), *(f"{count:,}" for count in one["counts"])] for one in found["funnel"]]
    lines += ["", "how many configurations fell to what", *table([["", *names]] + counts, right=numbers)]
    return "\n".join(lines) + "\n"


def with_ratios(values, ratios, unit):
    """Returns the texts of values, those after the first one with their ratio."""
    return [
        written(value, unit) + (f" ({ratio:.3f})" if at and ratio is not None else "")
        for at, (value, ratio) in enumerate(zip(values, ratios))
    ]


def match_lines(one):
    rows = [["trials in both", f"{one['trials']:,}"], ["done in both", f"{one['done']:,}"]]
    if one["ratio"]:
        told = {name: "–" if value is None else f"{value:.4f}" for name, value in one["ratio"].items()}
        rows += [
            [
                "ratio of the objective",
                f"mean {told['mean']} (geometric), {told['least']} to {told['most']}, median {told['median']}",
            ],
            ["better, equal, worse", f"{one['better']:,}, {one['equal']:,}, {one['worse']:,}"],
        ]
    if one["rank_correlation"] is not None:
        rows.append(["rank correlation", f"{one['rank_correlation']:.3f} (Spearman)"])
    rows += [
        [f"{state['first']} → {state['second']}", f"{state['trials']:,}"]
        for state in one["statuses"]
        if state["first"] != state["second"]
    ]
    return table(rows)


def rows_of_comparison(found):
    """Returns the comparison as CSV: what, name, unit, a column for each study, and a ratio for each but the first."""
    names, rows = found["studies"], []
    blank = [""] * (len(names) - 1)

    def cells(values):
        return ["" if value is None else value for value in values]

    rows.append(["what", "name", "unit", *names, *(f"{name} / {names[0]}" for name in names[1:])])
    rows += [
        ["setting", f"{one['text']}: {one['key']}", "", *cells(one["values"]), *blank] for one in found["settings"]
    ]
    for at, extreme in enumerate(found["extremes"]):
        best = f"best {extreme['metric']}" if at else "best"
        rows += [[f"{best} trial", "number", "", *cells(extreme["trials"]), *blank]]
        rows += [
            [f"{best} parameter", one["parameter"], "", *cells(one["values"]), *blank] for one in extreme["parameters"]
        ]
        rows += [
            [
                best,
                one["metric"],
                "1" if one["unit"] == "share" else one["unit"],
                *cells(one["values"]),
                *cells(one["ratios"][1:]),
            ]
            for one in extreme["best"]
        ]
    unit = "1" if found["unit"] == "share" else found["unit"]
    rows += [
        ["best for", f"{one['parameter']}={one['value']}", unit, *cells(one["best"]), *cells(one["ratios"][1:])]
        for one in found["values"]
    ]
    for key in ("trials", "done", "better", "equal", "worse", "rank_correlation"):
        rows.append(["matched", key.replace("_", " "), "1", "", *cells(one[key] for one in found["matched"]), *blank])
    for key in ("mean", "least", "median", "most"):
        rows.append(
            [
                "matched",
                f"ratio, {key}",
                "1",
                "",
                *blank,
                *cells((one["ratio"] or {}).get(key) for one in found["matched"]),
            ]
        )
    rows += [["funnel", one["reason"], "1", *one["counts"], *blank] for one in found["funnel"]]
    return as_csv(rows)
