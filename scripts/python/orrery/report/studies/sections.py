"""The parts of a study's page as HTML that needs no JavaScript: tables, and bars made of boxes. web/study adds the charts."""
import html
import math

from .quantities import compact, title, written

COLOURS = {
    "compute": "#0072b2",
    "exposed communication": "#d55e00",
    "bubble": "#93b7cc",
    "idle": "#b9c0c8",
    "other": "#8a8a8a",
}
MOST_ERRORS = 50  # kinds of errors that the page lists
STUDIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
WIDE = 1000  # counts of a funnel that span more than this factor get bars on a logarithmic scale


def tag(name, *children, **attributes):
    """Returns an element as HTML. Children are HTML; `esc` makes HTML of a text. An underscore at the end of an attribute's name is left out."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{words}>{''.join(children)}</{name}>"


def esc(text):
    return html.escape(str(text))


def table(heads, rows, right=(), name=None):
    """Returns a table. heads, rows: HTML of the cells; right: columns that are aligned on the right."""

    def line(kind, cells):
        return tag("tr", *(tag(kind, cell, class_="number" if at in right else None) for at, cell in enumerate(cells)))

    return tag(
        "div",
        tag(
            "table",
            tag("thead", line("th", heads)),
            tag("tbody", *(line("td", cells) for cells in rows)),
            data_table=name,
        ),
        class_="scroll",
    )


def section(name, heading, *parts):
    return tag("section", tag("h2", esc(heading)), *parts, id=name)


def soft(text):
    return tag("p", esc(text), class_="soft")


def each(studies, make):
    """Returns what `make` returns of each study, below the study's name if there are several; "" if it returns nothing of any."""
    made = [(study, make(study)) for study in studies]
    if not any(part for _, part in made):
        return ""
    if len(made) == 1:
        return made[0][1]
    parts = [
        tag("div", tag("h3", swatch(STUDIES[at % len(STUDIES)]), esc(study["name"])), part or soft("Not known."))
        for at, (study, part) in enumerate(made)
    ]
    return tag("div", *parts, class_="two")


def swatch(colour):
    return tag("span", class_="swatch", style=f"background: {colour}")


def bar(name, share, text, kind=None, **attributes):
    """Returns the three cells of a row with a bar. share: the part of the width that it takes; kind: its class."""
    track = tag("div", tag("div", style=f"width: {100 * share:.2f}%", class_=kind), class_="track")
    return tag("div", esc(name), class_="name", **attributes) + track + tag("div", esc(text), class_="number")


def unit(study, metric):
    return next((one["unit"] for one in study["metrics"] if one["name"] == metric), "1")


# ---- the head ----


def wanted(study):
    """Says what the study looks for, in words."""
    return " and ".join(f"{one['direction']} {title(one['metric'])}" for one in study["objectives"])


def has_front(study):
    """Says whether a study has several objectives, so that its best trials are a front."""
    return len(study["objectives"]) > 1


def changed_from(study):
    """Names the trial of which one parameter is changed at a time."""
    return (
        f"trial {study['tornado']['trial']}, which has the best {title(study['tornado']['metric'])}"
        if has_front(study)
        else "the best"
    )


def heading(study):
    """Returns the title of the page of one study."""
    metric = study["objectives"][0]["metric"]
    if not study["top"]:
        return f"{study['name']}: no configuration is left"
    if has_front(study):
        return f"{study['name']}: {study['front_size']:,} trials on the Pareto front of {' and '.join(title(one['metric']) for one in study['objectives'])}"
    return (
        f"{study['name']}: best {title(metric)} {written(study['top'][0]['metrics'].get(metric), unit(study, metric))}"
    )


def tiles(study):
    """Returns the figures of the best trial and how many there were."""
    shown = ("step_time", "tokens_per_s", "mfu", "peak_memory", "usd_per_step", "capex", "tokens_per_usd")
    cells = [("configurations", f"{study['trials']:,}"), ("simulated", f"{study['simulated']:,}")]
    if has_front(study):
        metrics = {row["trial"]: row["metrics"] for row in study["top"]}
        cells += [("Pareto front", f"{study['front_size']:,} trials")]
        cells += [
            (
                f"best {one['title']}, trial {one['trial']:,}",
                compact(metrics[one["trial"]].get(one["metric"]), unit(study, one["metric"])),
            )
            for one in study["extremes"]
            if one["trial"] in metrics
        ]
    elif study["top"]:
        best = study["top"][0]
        cells += [("best trial", f"{best['trial']:,}")]
        cells += [
            (title(one["name"]), compact(best["metrics"][one["name"]], one["unit"]))
            for one in study["metrics"]
            if one["name"] in shown and best["metrics"].get(one["name"]) is not None
        ]
    return tag(
        "div",
        *(tag("div", tag("span", esc(name)), tag("b", esc(value)), class_="tile") for name, value in cells),
        class_="tiles",
    )


def best_words(study):
    """Says which values the best trial has; with several objectives, the best one in each."""
    if not study["top"]:
        return ""
    rows, varied = {row["trial"]: row["parameters"] for row in study["top"]}, [
        one["name"] for one in study["parameters"] if one["varied"]
    ]
    named = (
        [(f"Best {one['title']}: ", one["trial"]) for one in study["extremes"]]
        if has_front(study)
        else [("Best: ", study["top"][0]["trial"])]
    )
    return "".join(
        tag("p", tag("b", esc(name)), *(tag("code", esc(f"{one} {rows[trial][one]}"), class_="pill") for one in varied))
        for name, trial in named
        if trial in rows
    )


def funnel(study):
    """Returns the counts of the funnel as bars."""
    rows = study["funnel"]
    if not rows:
        return ""
    most, least = max(one["count"] for one in rows), min((one["count"] for one in rows if one["count"]), default=1)
    log = most > WIDE * least

    def share(count):
        if not count:
            return 0
        return (
            (math.log(count) - math.log(least) + 0.5) / (math.log(most) - math.log(least) + 0.5)
            if log
            else count / max(most, 1)
        )

    def kind(reason):
        if reason in ("combinations", "draws", "legal"):
            return "whole"
        return "good" if reason == "done" else "lost"

    bars = [bar(one["reason"], share(one["count"]), f"{one['count']:,}", kind(one["reason"])) for one in rows]
    return tag("div", *bars, class_="use funnel") + (soft("The bars have a logarithmic scale.") if log else "")


def errors(study):
    """Returns the errors of trials that could not be simulated, with one example of each."""
    rows = study["errors"]
    if not rows:
        return ""
    lines = [
        [f"{one['count']:,}", esc(one["status"]), f"{one['trial']:,}", tag("code", esc(one["error"] or "no text"))]
        for one in rows[:MOST_ERRORS]
    ]
    more = sum(one["count"] for one in rows[MOST_ERRORS:])
    return table(["trials", "status", "for example", "its error"], lines, right=(0, 2), name="errors") + (
        soft(f"{more:,} more trials have other errors.") if more else ""
    )


def overview(studies):
    made = each(studies, lambda study: tiles(study) + best_words(study))
    wrong = each(studies, errors)
    heads = (
        tag("h3", "What is wrong with trials that could not be simulated")
        + soft("Errors that differ in numbers alone are one.")
        if wrong
        else ""
    )
    return section("overview", "What was found", made) + section(
        "funnel",
        "Funnel",
        soft("How many combinations there are, and how many fell to what."),
        each(studies, funnel),
        heads,
        wrong,
    )


# ---- trials ----


def trial_table(study, rows, name):
    """Returns a table of trials with the command that runs each again."""
    parameters = [one["name"] for one in study["parameters"] if one["varied"] or one["derived"]]
    metrics = [one for one in study["metrics"] if any(row["metrics"].get(one["name"]) is not None for row in rows)]
    caveats = any(row["caveat"] for row in rows)
    heads = [
        "trial",
        *map(esc, parameters),
        *(esc(one["title"]) for one in metrics),
        *(["caveat"] if caveats else []),
        "run it again",
    ]
    lines = [
        [
            f"{row['trial']}",
            *(esc(row["parameters"][one]) for one in parameters),
            *(esc(written(row["metrics"].get(one["name"]), one["unit"])) for one in metrics),
            *([esc(row["caveat"])] if caveats else []),
            tag("code", esc(row["command"])),
        ]
        for row in rows
    ]
    return table(heads, lines, right=range(len(parameters) + len(metrics) + 1), name=name)


def trials(studies):
    """Returns the section of trials: the best ones and the front. With JavaScript a table of all trials takes its place."""
    best = each(
        studies,
        lambda study: ""
        if has_front(study)
        else trial_table(study, study["top"], "top")
        if study["top"]
        else soft("No trial is done."),
    )
    fronts = each(
        studies,
        lambda study: (trial_table(study, study["front"], "front") if study["front"] else soft("No trial is done."))
        if has_front(study)
        else "",
    )
    front = tag("h3", "Pareto front") + soft("No other trial is better in every objective.") + fronts if fronts else ""
    return section("trials", "Trials", tag("div", best, front, id="trial-table"))


# ---- what matters ----


def sensitivity(studies):
    made = each(
        studies,
        lambda study: tag("div", tornado(study), main_effects(study), class_="two" if len(studies) == 1 else None),
    )
    return section("sensitivity", "What matters", made)


def tornado(study):
    """Returns the best trial with one parameter changed at a time: bars from the least to the largest value of the objective."""
    found = study["tornado"]
    if not found or not found["rows"]:
        return tag(
            "div",
            tag("h3", "One parameter changed from the best"),
            soft("No trial differs from the best one in one parameter alone."),
        )
    name = changed_from(study)
    values = [point["metric"] for row in found["rows"] for point in row["points"]]
    low, high = min(values), max(values)
    one, cells = unit(study, found["metric"]), []

    def place(metric):
        return 100 * (metric - low) / max(high - low, 1e-300)

    for row in found["rows"]:
        ends = [place(function(point["metric"] for point in row["points"])) for function in (min, max)]
        told = [f"{point['value']}: {written(point['metric'], one)}" for point in row["points"]]
        dots = [
            tag(
                "i",
                style=f"left: {place(point['metric']):.2f}%",
                title=f"{row['parameter']} {text}",
                class_="best" if point["metric"] == found["best"] else None,
            )
            for point, text in zip(row["points"], told)
        ]
        span = tag("div", style=f"left: {ends[0]:.2f}%; width: {max(ends[1] - ends[0], 0.4):.2f}%")
        cells += [
            tag("div", esc(row["parameter"]), class_="name", data_changed=row["parameter"]),
            tag("div", span, *dots, class_="track span"),
            tag("div", esc(", ".join(told)), class_="told"),
        ]
    scale = tag("div", class_="name") + tag(
        "div", tag("span", written(low, one)), tag("span", written(high, one)), class_="ends"
    )
    return tag(
        "div",
        tag("h3", esc(f"One parameter changed from {name}")),
        soft(
            f"A bar spans the {title(found['metric'])} of trials that differ from this one in this parameter alone. The orange mark is the trial itself."
        ),
        tag("div", *cells, scale, class_="tornado"),
    )


def main_effects(study):
    """Returns the main effect of each parameter as bars."""
    if not study["main_effects"]:
        why = (
            "a bounded search simulates good trials only, which are no fair sample"
            if study["strategy"] == "bounded"
            else "too few trials are done"
        )
        return tag("div", tag("h3", "Main effects"), soft(f"Not known: {why}."))
    bars = [
        bar(one["parameter"], one["effect"], f"{100 * one['effect']:.1f} %", data_effect=one["parameter"])
        for one in study["main_effects"]
    ]
    return tag(
        "div",
        tag("h3", "Main effects"),
        soft(
            "Share of the variance of the objective, over all trials that are done, that the mean for each value of "
            "a parameter explains."
        ),
        tag("div", *bars, class_="use"),
    )


def breakdown(studies):
    """Returns where the time of the best trials goes, as stacked bars whose lengths are the step times."""
    made = each(studies, stacked)
    if not made:
        return ""
    causes = [
        cause
        for cause in COLOURS
        if any(part["cause"] == cause for study in studies for one in study["breakdown"] for part in one["parts"])
    ]
    names = {"bubble": "waiting for the pipeline, and idle"}
    legend = tag(
        "div", *(tag("span", swatch(COLOURS[cause]), esc(names.get(cause, cause))) for cause in causes), class_="legend"
    )
    return section(
        "breakdown",
        "Where the time of the best goes",
        soft(
            "Mean over the NPUs. The length of a bar is the time of a step."
            + (" Of a Pareto front up to ten trials are shown." if any(map(has_front, studies)) else "")
        ),
        made,
        legend,
    )


def stacked(study):
    rows = study["breakdown"]
    longest = max((row["step_time"] or 0 for row in rows), default=0)
    bars = []
    for row in rows:
        parts = [
            tag(
                "div",
                f"{100 * part['share']:.0f} %" if part["share"] > 0.07 else "",
                title=f"{part['cause']}: {100 * part['share']:.1f} %",
                style=f"flex: {part['share']:.5f} 1 0; background: {COLOURS[part['cause']]}",
                class_=part["cause"].split()[0],
            )
            for part in row["parts"]
        ]
        width = 100 * row["step_time"] / longest if row["step_time"] and longest else 100
        bars.append(
            tag("div", f"trial {row['trial']}", class_="name")
            + tag("div", tag("div", *parts, class_="stack", style=f"width: {width:.2f}%"))
            + tag("div", written(row["step_time"], "s"), class_="number")
        )
    return tag("div", *bars, class_="use stacks") if bars else ""


def bounds_words(study):
    found = study["bounds"]
    if not found:
        return ""
    least = (
        f"; the least bound among them is {written(found['least_ruled_out'], 's')}" if found["least_ruled_out"] else ""
    )
    ruled = (
        f" Bounds ruled out {found['ruled_out']:,} trials, which were not simulated{least}."
        if found["ruled_out"]
        else ""
    )
    return soft(
        f"Of {found['count']:,} simulated trials the bound is {100 * found['median']:.1f} % of the time on the median, below "
        f"{100 * found['tenth']:.1f} % for a tenth, and {100 * found['most']:.2f} % at most.{ruled}"
    )


def inputs(study, texts):
    """Returns the command and the texts that the study was made from."""
    parts = [tag("pre", esc(study["command_line"]), class_="line")] if study["command_line"] else []
    parts += [
        tag("details", tag("summary", esc(name)), tag("pre", esc(text), class_="line")) for name, text in texts.items()
    ]
    return "".join(parts)
