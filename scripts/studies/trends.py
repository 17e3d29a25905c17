"""Trends in measured steps: what a change of one thing does to the rate of a machine, measured and predicted."""
import collections
import json
import statistics

NOISE = 0.04  # a smaller change says nothing about its sign: two versions of the same software differ as much

# Of each trend: the keys that may change (with its first one among them), and whether the samples of a step stay the same.
Trend = collections.namedtuple("Trend", "name keys same_samples")
TRENDS = [
    Trend("micro-batch", ["parallel.micro-batch", "parallel.micro-batches"], False),
    Trend("sequence", ["model.sequence", "parallel.micro-batch", "parallel.micro-batches"], False),
    Trend("TP overlap", ["tp_overlap"], True),
    Trend("FP8 against BF16", ["precision", "parallel.precision"], True),
    Trend("recomputation", ["parallel.recompute", "parallel.sp"], True),
    Trend("strong scaling", ["gpus", "parallel.dp", "parallel.micro-batches"], True),
    Trend("weak scaling", ["gpus", "parallel.dp"], False),
]


def flat(values, prefix=""):
    """The leaves of nested tables by their paths."""
    leaves = {}
    for key, value in values.items():
        leaves.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: json.dumps(value)})
    return leaves


def settings_of(row):
    """All that a row sets, by path. The number of layers that stand in for a deeper model is none of it."""
    return dict(flat(json.loads(row["config"])), gpus=row["gpus"], precision=row["precision"], hardware=row["hardware"])


def samples_of(settings):
    return (
        json.loads(settings["gpus"])
        // product(settings, "tp", "pp", "cp")
        * product(settings, "micro-batch", "micro-batches")
    )


def product(settings, *names):
    whole = 1
    for name in names:
        whole *= json.loads(settings.get(f"parallel.{name}", "1"))
    return whole


def order_of(text):
    """Numbers in their order, words in that of the alphabet."""
    value = json.loads(text) if text[:1].isdigit() else text
    return (isinstance(value, str), value)


def pairs_of(trend, rows):
    """Pairs of rows that differ in the trend's keys only. Each family of such rows is compared with its first one."""
    families = collections.defaultdict(list)
    for row in rows:
        settings = row["settings"]
        same = tuple(sorted((key, value) for key, value in settings.items() if key not in trend.keys))
        families[(row["stack"], same, samples_of(settings) if trend.same_samples else None)].append(row)
    for family in families.values():
        family.sort(key=lambda row: [order_of(row["settings"].get(key, "false")) for key in trend.keys])
        for row in family[1:]:
            if row["settings"].get(trend.keys[0]) != family[0]["settings"].get(trend.keys[0]):
                yield family[0], row


def change(first, second, which):
    """By which share the rate of FLOPs of an NPU changes."""
    return second["flops"] / second[which] / (first["flops"] / first[which]) - 1


def trends(rows):
    """Of each trend with pairs: their number, how many changes above the noise have the right sign, and the errors in shares of the rate.

    A row has `stack`, `settings`, `flops` (of an NPU), `measured` and `predicted` seconds.
    """
    found = {}
    for trend in TRENDS:
        changes = [(change(*pair, "measured"), change(*pair, "predicted")) for pair in pairs_of(trend, rows)]
        if not changes:
            continue
        clear = [(m, p) for m, p in changes if abs(m) > NOISE]
        errors = [abs(p - m) for m, p in changes]
        found[trend.name] = {
            "pairs": len(changes),
            "clear": len(clear),
            "signs": sum((m > 0) == (p > 0) for m, p in clear),
            "mean": statistics.mean(errors),
            "worst": max(errors),
            "changes": changes,
        }
    return found
