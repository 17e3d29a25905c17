"""What several studies do not have in common: their texts, their best trials, each value of a parameter, and trials that both have."""
from . import facts
from .quantities import is_less_better, plain, title, unit_of, written
from ... import configuration
from ...packages import load

np, pd = load("numpy"), load("pandas")

# What to compare where steps do different work, in place of what a step takes.
PER_WORK = {"step_time": "tokens_per_s", "usd_per_step": "tokens_per_usd", "energy_per_step": "tokens_per_j"}
MOST_VALUES = 64  # of a parameter whose values are compared one by one


def of(studies):
    """Returns {"studies", "settings", "extremes", "values", "matched", "fronts", "work", "funnel", "said"}. The first study is what the others
    are compared with.

    Ratios are those of another study's value to the first one's. Where the studies have different objectives, the first one's count. Where
    their steps do different work, the work of a second takes the place of the time of a step, and so for its price and energy.
    """
    works = [work_of(study) for study in studies]
    differ = len({one for one in works if one}) > 1
    objectives = [metric for metric, _ in studies[0].objectives]
    metric = (
        PER_WORK.get(objectives[0], objectives[0])
        if differ and works[0] and has_metric(studies, PER_WORK.get(objectives[0]))
        else objectives[0]
    )
    found = [extreme(studies, one) for one in objectives]
    unit = next((one["unit"] for one in found[0]["best"] if one["metric"] == metric), "1")
    best = next((one["values"] for one in found[0]["best"] if one["metric"] == metric), [None] * len(studies))
    matches = [matched(studies[0], other, metric) for other in studies[1:]]
    fronts = [crossed(studies[0], other, differ) for other in studies[1:]]
    said = [work_words(studies, works)] if differ else []
    for which, (match, front) in enumerate(zip(matches, fronts), 1):
        said += [sentence(studies, metric, unit, best, which, match), *front_words(studies, which, front, found)]
    return {
        "studies": names_of(studies),
        "objective": metric,
        "unit": unit,
        "settings": settings(studies),
        "extremes": found,
        "values": values(studies, metric),
        "matched": matches,
        "fronts": fronts,
        "work": [one and {"count": one[0], "of": one[1]} for one in works],
        "funnel": funnel(studies),
        "said": said,
    }


def work_of(study):
    """Returns (number, "tokens" or "samples") of what a step of the best trial trains on, rounded to a whole number; None where nothing says it."""
    for name, noun in (("tokens_per_s", "tokens"), ("samples_per_s", "samples")):
        if study.top and name in study.trials and "step_time" in study.trials:
            count = study.trials.loc[study.top[0], name] * study.trials.loc[study.top[0], "step_time"]
            if np.isfinite(count) and count > 0:
                return int(round(count)), noun
    return None


def work_words(studies, works):
    """Says that steps do different work."""
    told = ", ".join(f"{one[0]:,} {one[1]} in {name}" for name, one in zip(names_of(studies), works) if one)
    return f"The steps do different work: {told}. Compare tokens/s or samples/s, not the time of a step."


def has_metric(studies, metric):
    """Says whether the best trial of each study has a metric."""
    return metric is not None and all(
        study.top and metric in study.trials and np.isfinite(study.trials.loc[study.top[0], metric])
        for study in studies
    )


def extreme(studies, metric):
    """Returns {"metric", "title", "trials", "parameters", "best"} of the trial of each study that is best in a metric, and is not dominated."""
    numbers = [best_in(study, metric) for study in studies]
    return {
        "metric": metric,
        "title": title(metric),
        "trials": numbers,
        "parameters": best_parameters(studies, numbers),
        "best": best_metrics(studies, numbers),
    }


def best_in(study, metric):
    """Returns the number of the best trial of a study, or of that of its front which is best in a metric; None without one."""
    return (
        study.extremes.get(metric, study.top[0] if study.top else None)
        if len(study.objectives) > 1
        else study.top[0]
        if study.top
        else None
    )


def crossed(study, other, differ=False):
    """Returns {"first", "first_beaten", "second", "second_beaten"}: how many trials each front has, and how many of them a trial of the other
    one dominates; None if the studies do not have the same objectives, or only one, or if what their steps do differs and a step cannot be
    compared by its work."""
    if study.objectives != other.objectives or len(study.objectives) < 2:
        return None
    objectives = [
        (PER_WORK[metric], "maximise")
        if differ and metric in PER_WORK and direction == "minimise"
        else (metric, direction)
        for metric, direction in study.objectives
    ]
    if not all(has_metric([study, other], metric) for metric, _ in objectives):
        return None
    first, second = (
        [
            [row[metric] * (1 if direction == "minimise" else -1) for metric, direction in objectives]
            for _, row in one.trials.loc[one.front].iterrows()
        ]
        for one in (study, other)
    )
    first, second = np.array(first, dtype=float), np.array(second, dtype=float)

    def beaten(rows, others):
        return (
            sum(bool(((others <= row).all(axis=1) & (others < row).any(axis=1)).any()) for row in rows)
            if len(others)
            else 0
        )

    return {
        "first": len(first),
        "first_beaten": beaten(first, second),
        "second": len(second),
        "second_beaten": beaten(second, first),
    }


def front_words(studies, which, front, found):
    """Says what studies of several objectives reach in the others, and which front is ahead."""
    if front is None:
        return []
    names, said = names_of(studies), []
    for one in found[1:]:
        values, unit = next(
            ((each["values"], each["unit"]) for each in one["best"] if each["metric"] == one["metric"]), (None, "1")
        )
        if values and values[0] is not None and values[which] is not None:
            said.append(
                f"The best {one['title']} is {written(values[which], unit)} in {names[which]} and {written(values[0], unit)} in {names[0]}."
            )
    return [
        *said,
        f"Of the {front['second']:,} trials on the Pareto front of {names[which]}, {front['second_beaten']:,} are dominated by trials of "
        f"{names[0]}; of the {front['first']:,} on that of {names[0]}, {front['first_beaten']:,} by trials of {names[which]}.",
    ]


def names_of(studies):
    """Returns the names of the studies; where two are the same, the paths instead."""
    names = [study.name for study in studies]
    return names if len(set(names)) == len(names) else [study.path for study in studies]


def settings(studies):
    """Returns [{"text", "key", "values"}] of the keys that differ in the texts that the studies were made from, and in --set of their commands."""
    overrides = [dict(one.partition("=")[::2] for one in study.overrides) for study in studies]
    found = [
        {"text": "--set", "key": key, "values": values} for key, values in configuration.differing(overrides).items()
    ]
    for name in dict.fromkeys(name for study in studies for name in study.inputs):
        trees = [configuration.parsed(study.inputs.get(name, "{}")) for study in studies]
        flat = [
            configuration.flattened(tree if isinstance(tree, dict) else {"text": study.inputs.get(name, "")})
            for tree, study in zip(trees, studies)
        ]
        found += [
            {
                "text": name,
                "key": key,
                "values": [
                    None if value is None else str(list(value)) if isinstance(value, tuple) else str(value)
                    for value in each
                ],
            }
            for key, each in configuration.differing(flat).items()
        ]
    return found


def ratios(values):
    """Returns the ratio of each value to the first one; None where one of them is not known or the first one is 0."""
    return [value / values[0] if value is not None and values[0] else None for value in values]


def best_metrics(studies, numbers):
    """Returns [{"metric", "title", "unit", "values", "ratios"}] of the trial of each study with this number."""
    found = []
    for name in dict.fromkeys(name for study in studies for name in study.metrics):
        values = [
            None if number is None or name not in study.metrics else plain(study.trials.loc[number, name])
            for study, number in zip(studies, numbers)
        ]
        units = next(study.trials.attrs["units"].get(name, "") for study in studies if name in study.metrics)
        if any(value is not None for value in values):
            found.append(
                {
                    "metric": name,
                    "title": title(name),
                    "unit": unit_of(name, units),
                    "values": values,
                    "ratios": ratios(values),
                }
            )
    return found


def best_parameters(studies, numbers):
    """Returns [{"parameter", "values"}] of the trial of each study with this number, without parameters that have one value."""
    names = dict.fromkeys(name for study in studies for name in study.parameters)
    found = [
        {
            "parameter": name,
            "values": [
                None if number is None or name not in study.parameters else study.texts.loc[number, name]
                for study, number in zip(studies, numbers)
            ],
        }
        for name in names
    ]
    varied = {name for study in studies for name in study.varied + study.derived}
    return [one for one in found if one["parameter"] in varied or len(set(one["values"])) > 1]


def values(studies, metric):
    """Returns [{"parameter", "value", "best", "ratios"}]: the best objective that each study reaches with a value of a parameter."""
    found = []
    less = is_less_better(metric, studies[0].objectives)
    for name in studies[0].varied:
        if not all(name in study.parameters for study in studies):
            continue
        reached = []
        for study in studies:
            table = study.done
            grouped = (
                table[metric].groupby(study.texts.loc[table.index, name].to_numpy())
                if metric in table
                else pd.Series(dtype=float).groupby([])
            )
            reached.append((grouped.min() if less else grouped.max()).to_dict())
        order = facts.parameter(studies[0], name)["values"]
        order += [value for one in reached[1:] for value in one if value not in order]
        for value in list(dict.fromkeys(order))[:MOST_VALUES]:
            best = [plain(one.get(value, float("nan"))) for one in reached]
            if any(number is not None for number in best):
                found.append({"parameter": name, "value": value, "best": best, "ratios": ratios(best)})
    return found


def matched(study, other, metric):
    """Returns what becomes of the trials that have the same values of all parameters that both studies have.

    {"parameters", "trials" (in both), "done" (in both), "ratio": {"mean" (geometric), "least", "median", "most"}, "better", "equal", "worse",
    "rank_correlation" (Spearman's), "statuses": [{"first", "second", "trials"}]}. Of several trials with the same values in one study the best counts.
    """
    shared = [name for name in study.parameters if name in other.parameters]
    if not shared:
        return {
            "parameters": [],
            "trials": 0,
            "done": 0,
            "ratio": None,
            "better": 0,
            "equal": 0,
            "worse": 0,
            "rank_correlation": None,
            "statuses": [],
        }
    first, second = (keyed(one, shared, metric, is_less_better(metric, study.objectives)) for one in (study, other))
    both = first.join(second, how="inner", lsuffix="_first", rsuffix="_second")
    done = both[(both["status_first"] == "done") & (both["status_second"] == "done")].dropna()
    before, after = done["value_first"].to_numpy(dtype=float), done["value_second"].to_numpy(dtype=float)
    ratio = after[before != 0] / before[before != 0]
    less = is_less_better(metric, study.objectives)
    statuses = both.groupby(["status_first", "status_second"]).size() if len(both) else pd.Series(dtype=int)
    correlation = done["value_first"].rank().corr(done["value_second"].rank()) if len(done) > 1 else float("nan")
    return {
        "parameters": shared,
        "trials": len(both),
        "done": len(done),
        "ratio": {
            "mean": plain(np.exp(np.log(ratio).mean())) if (ratio > 0).all() else None,
            "least": plain(ratio.min()),
            "median": plain(np.median(ratio)),
            "most": plain(ratio.max()),
        }
        if len(ratio)
        else None,
        "better": int((after < before if less else after > before).sum()),
        "equal": int((after == before).sum()),
        "worse": int((after > before if less else after < before).sum()),
        "rank_correlation": plain(float(correlation)),
        "statuses": [{"first": one[0], "second": one[1], "trials": int(count)} for one, count in statuses.items()],
    }


def keyed(study, parameters, metric, less):
    """Returns a table with a row for each combination of values: its status and its objective."""
    trials = study.trials
    table = study.texts[parameters].assign(
        status=trials["status"].astype(str), value=trials[metric] if metric in trials else float("nan")
    )
    table["done"] = table["status"] != "done"
    table = table.sort_values(["done", "value"], ascending=[True, less], kind="stable").drop_duplicates(parameters)
    return table.set_index(parameters)[["status", "value"]]


def funnel(studies):
    """Returns [{"reason", "counts"}] of all studies."""
    counts = [dict(zip(study.funnel["reason"], study.funnel["count"])) for study in studies]
    return [
        {"reason": reason, "counts": [int(one.get(reason, 0)) for one in counts]}
        for reason in dict.fromkeys(reason for one in counts for reason in one)
    ]


def sentence(studies, metric, unit, best, which, match):
    """Says how the best of a study differs from that of the first one, and what became of the trials that both have."""
    names = names_of(studies)
    if best[0] is None or best[which] is None:
        return f"{names[which if best[which] is None else 0]} has no trial that is done."
    if best[0] == best[which]:
        whole = f"{names[which]} reaches the same {title(metric)} as {names[0]}, {written(best[0], unit)}"
    elif unit == "1" and "/" in title(metric) and best[0]:  # as in tokens/s
        change = f"{abs(best[which] / best[0] - 1) * 100:.1f} % {'less' if best[which] < best[0] else 'more'}"
        whole = f"{names[which]} reaches {written(best[which], unit)} {title(metric)}, {change} than {names[0]} ({written(best[0], unit)})"
    else:
        change = (
            f", {abs(best[which] / best[0] - 1) * 100:.1f} % {'less' if best[which] < best[0] else 'more'}"
            if best[0]
            else ""
        )
        whole = f"{names[which]} reaches a {title(metric)} of {written(best[which], unit)}{change} than {names[0]} ({written(best[0], unit)})"
        whole = (
            whole
            if change
            else f"{names[which]} reaches {written(best[which], unit)}, {names[0]} {written(best[0], unit)}"
        )
    if not match["done"]:
        return f"{whole}. No trial with the same parameters is done in both."
    return f"{whole}. Of {match['done']:,} trials that are done in both, {match['better']:,} are better and {match['worse']:,} worse."
