"""Says in a terminal what the page of a study shows: as text, JSON or CSV."""
from . import comparison, facts
from .quantities import written
from .sections import wanted
from ..text import as_csv, as_json, bar, table
from ...study import Study

MOST_ROWS = 20  # trials that the text lists
WIDTH = 40      # characters of a value


def of(paths, form):
    """Returns what is to be printed of one study, or the comparison of several. form: "text", "json" or "csv"."""
    studies = [Study(path) for path in paths]
    try:
        if len(studies) == 1:
            return {"text": shown_study, "json": lambda study: as_json(facts.of(study)), "csv": rows_of_study}[form](studies[0])
        return {"text": compared, "json": as_json, "csv": rows_of_comparison}[form](comparison.of(studies))
    finally:
        for study in studies:
            study.close()


def short(value):
    text = "–" if value is None else str(value)
    return text if len(text) <= WIDTH else text[:WIDTH - 1] + "…"


def shown_study(study):
    """Returns what a study found, as text."""
    found = facts.of(study)
    lines = [f"{found['path']}: {wanted(found)}", f"  {found['trials']:,} configurations, {found['simulated']:,} simulated"]
    if found["funnel"]:
        lines += ["", "how many configurations fell to what", *table([[f"{one['count']:,}", short(one["reason"])] for one in found["funnel"]], right=(0,))]
    several = len(found["objectives"]) > 1
    lists = [("the best, the first one first", found["top"], len(found["top"]))] + ([("the Pareto front", found["front"], found["front_size"])] if several else [])
    for name, rows, total in lists:
        if rows:
            lines += ["", name, *trial_lines(found, rows[:MOST_ROWS])]
            lines += [f"  and {total - MOST_ROWS:,} more (--format json has them)"] if total > MOST_ROWS else []
    if not found["top"]:
        lines += ["", "no trial is done"]
    if found["main_effects"]:
        lines += ["", "main effect of each parameter (share of the variance of the objective)"]
        lines += table([[one["parameter"], f"{100 * one['effect']:.1f} %", bar(min(max(one["effect"], 0), 1))] for one in found["main_effects"]], right=(1,))
    if found["tornado"] and found["tornado"]["rows"]:
        unit = next(one["unit"] for one in found["metrics"] if one["name"] == found["tornado"]["metric"])
        lines += ["", "one parameter changed from the best"]
        lines += table([[row["parameter"], ", ".join(f"{short(point['value'])}: {written(point['metric'], unit)}" for point in row["points"])]
                        for row in found["tornado"]["rows"]])
    if found["top"]:
        lines += ["", "run the best again", f"  {found['top'][0]['command']}"]
    return "\n".join(lines) + "\n"


def trial_lines(found, rows):
    """Returns the lines of a table of trials: the parameters that differ, and the metrics."""
    parameters = [one["name"] for one in found["parameters"] if one["varied"] or one["derived"]]
    metrics = [one for one in found["metrics"] if any(row["metrics"][one["name"]] is not None for row in rows)]
    objectives = {one["metric"] for one in found["objectives"]}
    metrics = [one for one in metrics if one["name"] in objectives | {"step_time", "tokens_per_s", "mfu", "peak_memory", "usd_per_step", "capex", "lower_bound"}]
    caveats = any(row["caveat"] for row in rows)
    lines = [["trial", *parameters, *(one["title"] for one in metrics), *(["caveat"] if caveats else [])]]
    lines += [[str(row["trial"]), *(short(row["parameters"][one]) for one in parameters), *(written(row["metrics"][one["name"]], one["unit"]) for one in metrics),
               *([short(row["caveat"])] if caveats else [])] for row in rows]
    return table(lines, right=range(1 + len(parameters) + len(metrics)))


def rows_of_study(study):
    """Returns all trials as CSV, in the columns of `orrery explore --csv`: units in the header, nothing for what is not known."""
    trials, units = study.trials, study.trials.attrs["units"]
    heads = {name: f"{name} [{units[name]}]" for name in study.metrics}
    listed = trials[["status"]].join(study.texts).join(trials[study.metrics + [name for name in ("caveat", "error") if name in trials]])
    return listed.rename(columns=heads).rename_axis("number").to_csv(lineterminator="\n")


def compared(found):
    """Returns the comparison of several studies, as text."""
    names, unit = found["studies"], found["unit"]
    numbers = range(1, len(names) + 1)
    lines = [*found["said"], "", "what differs in the studies and their bases"]
    lines += table([["", *names]] + [[one["key"], *map(short, one["values"])] for one in found["settings"]]) if found["settings"] else ["  nothing"]
    best = [[one["parameter"], *map(short, one["values"])] for one in found["parameters"]]
    best += [[one["title"], *with_ratios(one["values"], one["ratios"], one["unit"])] for one in found["best"]]
    lines += ["", f"the best trial of each (in brackets: the ratio to {names[0]})", *table([["", *names]] + best, right=numbers)]
    if found["values"]:
        lines += ["", f"best {found['objective']} for each value of a parameter", *table([["", *names]] + [
            [f"{one['parameter']} {short(one['value'])}", *with_ratios(one["best"], one["ratios"], unit)] for one in found["values"]], right=numbers)]
    for name, one in zip(names[1:], found["matched"]):
        lines += ["", f"trials with the same parameters in {names[0]} and {name}", *match_lines(one)]
    counts = [[short(one["reason"]), *(f"{count:,}" for count in one["counts"])] for one in found["funnel"]]
    lines += ["", "how many configurations fell to what", *table([["", *names]] + counts, right=numbers)]
    return "\n".join(lines) + "\n"


def with_ratios(values, ratios, unit):
    """Returns the texts of values, those after the first one with their ratio."""
    return [written(value, unit) + (f" ({ratio:.3f})" if at and ratio is not None else "") for at, (value, ratio) in enumerate(zip(values, ratios))]


def match_lines(one):
    rows = [["trials in both", f"{one['trials']:,}"], ["done in both", f"{one['done']:,}"]]
    if one["ratio"]:
        told = {name: "–" if value is None else f"{value:.4f}" for name, value in one["ratio"].items()}
        rows += [["ratio of the objective", f"mean {told['mean']} (geometric), {told['least']} to {told['most']}, median {told['median']}"],
                 ["better, equal, worse", f"{one['better']:,}, {one['equal']:,}, {one['worse']:,}"]]
    if one["rank_correlation"] is not None:
        rows.append(["rank correlation", f"{one['rank_correlation']:.3f} (Spearman)"])
    rows += [[f"{state['first']} → {state['second']}", f"{state['trials']:,}"] for state in one["statuses"] if state["first"] != state["second"]]
    return table(rows)


def rows_of_comparison(found):
    """Returns the comparison as CSV: what, name, unit, a column for each study, and a ratio for each but the first."""
    names, rows = found["studies"], []
    blank = [""] * (len(names) - 1)

    def cells(values):
        return ["" if value is None else value for value in values]
    rows.append(["what", "name", "unit", *names, *(f"{name} / {names[0]}" for name in names[1:])])
    rows += [["setting", f"{one['text']}: {one['key']}", "", *cells(one["values"]), *blank] for one in found["settings"]]
    rows += [["best parameter", one["parameter"], "", *cells(one["values"]), *blank] for one in found["parameters"]]
    rows += [["best", one["metric"], "1" if one["unit"] == "share" else one["unit"], *cells(one["values"]), *cells(one["ratios"][1:])] for one in found["best"]]
    unit = "1" if found["unit"] == "share" else found["unit"]
    rows += [["best for", f"{one['parameter']}={one['value']}", unit, *cells(one["best"]), *cells(one["ratios"][1:])] for one in found["values"]]
    for key in ("trials", "done", "better", "equal", "worse", "rank_correlation"):
        rows.append(["matched", key.replace("_", " "), "1", "", *cells(one[key] for one in found["matched"]), *blank])
    for key in ("mean", "least", "median", "most"):
        rows.append(["matched", f"ratio, {key}", "1", "", *blank, *cells((one["ratio"] or {}).get(key) for one in found["matched"])])
    rows += [["funnel", one["reason"], "1", *one["counts"], *blank] for one in found["funnel"]]
    return as_csv(rows)
