"""How much each parameter matters: for trials that are there, without further simulations."""
from ...packages import load

np = load("numpy")

MOST_VALUES = 64  # of a parameter; one with more has no values with several trials each, as a rule


def main_effects(study):
    """Returns {parameter: share of the variance of the first objective that the means for its values explain}, the largest first.

    That is the first-order effect (the correlation ratio) over the trials that are done. It is exact for a full grid; where constraints
    cut combinations, or a search left trials out, it also has what those parameters explain that go with this one.
    Values: 0 to 1. Cost: a pass over the trials for each parameter.
    """
    metric, table = study.objectives[0][0], study.done
    if metric not in table:
        return {}
    values = table[metric].to_numpy(dtype=float)
    known = np.isfinite(values)
    values = values[known]
    total = values.var() if len(values) else 0
    if total <= 0:
        return {}
    found = {}
    for name in study.varied:
        texts, codes = np.unique(study.texts.loc[table.index, name].to_numpy(dtype=str)[known], return_inverse=True)
        if len(texts) > MOST_VALUES:
            continue
        counts = np.bincount(codes)
        means = np.bincount(codes, values) / counts
        found[name] = float((counts * (means - values.mean()) ** 2).sum() / len(values) / total)
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def around_best(study):
    """Returns {parameter: [(text, value of the first objective)]}: trials that differ from the best one in this parameter alone.

    What follows from the parameters may differ too. The best trial is among them. Parameters without another such trial are left out.
    """
    metric, table = study.objectives[0][0], study.done
    if metric not in table or not study.top:
        return {}
    texts = study.texts.loc[table.index]
    best = study.top[0]
    same = (
        np.column_stack([texts[name].to_numpy() == texts.loc[best, name] for name in study.varied])
        if study.varied
        else np.zeros((len(table), 0), bool)
    )
    differing = same.shape[1] - same.sum(axis=1)
    found = {}
    for at, name in enumerate(study.varied):
        rows = np.flatnonzero((differing == 0) | ((differing == 1) & ~same[:, at]))
        points = {}
        for row in rows:
            points.setdefault(texts[name].iloc[row], float(table[metric].iloc[row]))
        if len(points) > 1:
            found[name] = list(points.items())
    return found
