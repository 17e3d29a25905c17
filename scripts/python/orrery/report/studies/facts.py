"""What a report says of one study, as plain numbers, texts and lists. The page and the terminal print the same."""
import re

from . import sensitivity
from .quantities import is_less_better, plain, title, unit_of
from ...packages import load
from ...study import si

np = load("numpy")

MOST_ROWS = 1000  # of a front that a report lists
MOST_BARS = 10  # trials of a front whose times are broken down
LONG = 10  # characters of a number that is written as it is
CAUSES = ("compute", "exposed_communication", "bubble", "idle")  # of the breakdown


def of(study):
    """Returns the facts of a study: {"name", "path", "objectives", "funnel", "parameters", "metrics", "top", "front", ...}. SI units."""
    trials = study.trials
    statuses = trials["status"].value_counts()
    return {
        "name": study.name,
        "path": study.path,
        "version": study.attributes.get("orrery_version", ""),
        "command_line": study.command_line,
        "trials": len(trials),
        "simulated": int(trials[[name for name in study.metrics if name != "lower_bound"]].notna().any(axis=1).sum()),
        "statuses": {str(name): int(count) for name, count in statuses.items() if count},
        "strategy": study.strategy,
        "objectives": [{"metric": metric, "direction": direction} for metric, direction in study.objectives],
        "funnel": [
            {"reason": row.reason, "count": int(row.count_)}
            for row in study.funnel.rename(columns={"count": "count_"}).itertuples()
        ],
        "parameters": [parameter(study, name) for name in study.parameters],
        "metrics": metrics(study),
        "errors": study.errors.to_dict("records"),
        "extremes": extremes(study),
        "top": rows(study, study.top[:MOST_ROWS]),
        "front": rows(study, study.front[:MOST_ROWS]),
        "front_size": len(study.front),
        "main_effects": main_effects(study),
        "tornado": tornado(study),
        "breakdown": breakdown(study),
        "bounds": bounds(study),
    }


def extremes(study):
    """Returns [{"metric", "title", "trial"}]: which trial of the front is best in which objective; one of a study with one objective."""
    return [{"metric": metric, "title": title(metric), "trial": number} for metric, number in study.extremes.items()]


def sample(numbers, always, most):
    """Returns at most so many of the numbers in their order: those of `always`, and others that are evenly spread."""
    if len(numbers) <= most:
        return list(numbers)
    others, room = [number for number in numbers if number not in always], max(most - len(set(always)), 0)
    chosen = set(always) | {others[at * len(others) // room] for at in range(room)}
    return [number for number in numbers if number in chosen]


def parameter(study, name):
    """Returns what the study says of a parameter, and its values among the trials."""
    declared = {**(study.settings.get("parameters") or {}), **(study.settings.get("derived") or {})}.get(name)
    declared = declared if isinstance(declared, dict) else {}
    values = sorted(study.texts[name].unique(), key=lambda text: (np.isnan(si(text)[0]), si(text)[0], text))
    return {
        "name": name,
        "key": str(declared.get("key") or declared.get("file") or ""),
        "derived": name in study.derived,
        "varied": name in study.varied,
        "values": values,
    }


def metrics(study):
    """Returns name, title, unit and description of each metric that a trial has."""
    attributes = study.trials.attrs
    return [
        {
            "name": name,
            "title": title(name),
            "unit": unit_of(name, attributes["units"].get(name, "")),
            "description": attributes["descriptions"].get(name, ""),
        }
        for name in study.metrics
        if study.trials[name].notna().any()
    ]


def rows(study, numbers):
    """Returns {"trial", "parameters", "metrics", "caveat", "command"} of each of these trials."""
    found, trials = [], study.trials
    for number in numbers:
        if number not in trials.index:
            continue
        row = trials.loc[number]
        found.append(
            {
                "trial": int(number),
                "parameters": {name: short(study, number, name) for name in study.parameters},
                "metrics": {name: plain(row[name]) for name in study.metrics},
                "caveat": str(row.get("caveat", "") or ""),
                "command": study.command(number),
            }
        )
    return found


def short(study, number, name):
    """Returns a parameter of a trial as a text: as the configuration has it, but numbers with many digits are rounded to four."""
    text = study.texts.loc[number, name]
    found = (
        re.fullmatch(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(\s*[A-Za-z/%]*)", text) if len(text) > LONG else None
    )
    return f"{float(found[1]):.4g}{found[2]}" if found else text


def main_effects(study):
    """Returns [{"parameter", "effect"}], the largest first: those of the file, else those of the trials that are there.

    A bounded search has none, because it simulates good trials only.
    """
    effects = study.main_effects
    if effects is None:
        effects = {} if study.strategy == "bounded" else sensitivity.main_effects(study)
    return [
        {"parameter": name, "effect": plain(effect)}
        for name, effect in sorted(effects.items(), key=lambda one: -one[1])
        if np.isfinite(effect)
    ]


def tornado(study):
    """Returns {"metric", "trial", "best", "rows": [{"parameter", "points": [{"value", "metric"}]}]}, the widest row first; None without trials.

    The rows are those of the file, whose missing trials explore has simulated, else the trials that are there.
    """
    metric = study.objectives[0][0]
    if not study.top or metric not in study.trials:
        return None
    best, found = float(study.trials.loc[study.top[0], metric]), {}
    if study.tornado is not None:
        for row in study.tornado.to_dict("records"):
            name = str(row["parameter"])
            points = {
                str(row.get(f"{end}_value", end)): float(row[end]) for end in ("low", "high") if np.isfinite(row[end])
            }
            found[name] = list((points | {study.texts.loc[study.top[0]].get(name, ""): best}).items())
    else:
        found = sensitivity.around_best(study)
    widest = sorted(
        ((name, points) for name, points in found.items() if len(points) > 1),
        key=lambda one: -(max(value for _, value in one[1]) - min(value for _, value in one[1])),
    )
    return {
        "metric": metric,
        "trial": study.top[0],
        "best": best,
        "rows": [
            {
                "parameter": name,
                "points": [{"value": value, "metric": number} for value, number in in_order(study, name, points)],
            }
            for name, points in widest
        ],
    }


def in_order(study, name, points):
    """Returns points in the order of the parameter's values: numbers first, the smallest one first."""
    order = parameter(study, name)["values"] if name in study.parameters else []
    return sorted(points, key=lambda one: order.index(one[0]) if one[0] in order else -1)


def breakdown(study):
    """Returns [{"trial", "step_time", "parts": [{"cause", "share"}]}] of the best trials: where the time of their NPUs goes.

    The metric `bubble` holds the wait for the pipeline, part of exposed communication, and all idle time. So it takes the place of idle
    time here, and communication is what is left of it. Shares add up to 1.
    """
    found = []
    for number in study.top if len(study.objectives) == 1 else sample(study.front, study.extremes.values(), MOST_BARS):
        row = study.trials.loc[number]
        part = {name: float(row[name]) for name in CAUSES if name in row and np.isfinite(row[name])}
        if "compute" not in part or "exposed_communication" not in part:
            continue
        idle = part.get("idle", 0.0)
        if "bubble" in part:
            part["exposed_communication"] = max(part["exposed_communication"] - max(part["bubble"] - idle, 0), 0)
            part.pop("idle", None)
        part["other"] = max(1 - sum(part.values()), 0)
        names = {"exposed_communication": "exposed communication"}
        found.append(
            {
                "trial": int(number),
                "step_time": plain(row.get("step_time", float("nan"))),
                "parts": [
                    {"cause": names.get(cause, cause), "share": share} for cause, share in part.items() if share > 5e-4
                ],
            }
        )
    return found


def bounds(study):
    """Returns how near the bounds of the step time are to the simulated times, and how many trials they ruled out; None without bounds."""
    trials = study.trials
    if "lower_bound" not in trials or "step_time" not in trials:
        return None
    bound, time = trials["lower_bound"].to_numpy(dtype=float), trials["step_time"].to_numpy(dtype=float)
    known = (bound > 0) & np.isfinite(time)
    if not known.any():
        return None
    ratio, ruled_out = bound[known] / time[known], (trials["status"] == "ruled-out").to_numpy()
    return {
        "count": int(known.sum()),
        "median": float(np.median(ratio)),
        "tenth": float(np.quantile(ratio, 0.1)),
        "most": float(ratio.max()),
        "ruled_out": int(ruled_out.sum()),
        "least_ruled_out": plain(bound[ruled_out & (bound > 0)].min(initial=np.inf)),
    }


def better(study, metric, value, other):
    """Says whether a value of a metric is better than another one."""
    return value < other if is_less_better(metric, study.objectives) else value > other
