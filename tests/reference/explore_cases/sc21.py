"""Megatron-LM at SC21: times of table 1, the plans that its authors chose, and the orders of its figures."""
import json
import pathlib
import re
import tempfile

import h5py
import harness
from explore_cases import steps
from explore_cases.outcome import Outcome, has, judged, rules_of, unmade

# Table 1: billions of parameters, hidden, heads, layers, tp, pp, GPUs, batch, micro-batch.
TABLE_1 = [
    (1.7, 2304, 24, 24, 1, 1, 32, 512, 16),
    (3.6, 3072, 32, 30, 2, 1, 64, 512, 16),
    (7.5, 4096, 32, 36, 4, 1, 128, 512, 16),
    (18.4, 6144, 48, 40, 8, 1, 256, 1024, 4),
    (39.1, 8192, 64, 48, 8, 2, 512, 1536, 4),
    (76.1, 10240, 80, 60, 8, 4, 1024, 1792, 2),
    (145.6, 12288, 96, 80, 8, 8, 1536, 2304, 2),
    (310.1, 16384, 128, 96, 8, 16, 1920, 2160, 1),
    (529.6, 20480, 128, 105, 8, 35, 2520, 2520, 1),
    (1008.0, 25600, 160, 128, 8, 64, 3072, 3072, 1),
]


def step(layers, hidden, heads, tp, pp, dp, batch, micro_batch, interleaving=1):
    """CONFIG.yaml of a step with full recomputation. Megatron-LM of 2021 sums gradients when the backward pass is done (--DDP-impl local), and
    its NPUs send shares between stages (section 4.1)."""
    parallel = {
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "micro-batch": micro_batch,
        "micro-batches": batch // (dp * micro_batch),
        "recompute": "full",
        "overlap": False,
        "scattered-messages": True,
    }
    if interleaving > 1:
        parallel["interleaving"] = interleaving
    return steps.config(tp * pp * dp, steps.gpt(layers, hidden, heads), parallel)


def table_1(case):
    c = case["config"]
    found = steps.seconds(
        [
            step(
                c["layers"],
                c["hidden"],
                c["heads"],
                c["tp"],
                c["pp"],
                c["dp"],
                c["global_batch"],
                c["micro_batch"],
                c["interleaving"],
            )
        ]
    )[0]
    return judged(case, found, case["expected"]["iteration_s"], case["tolerance"], "seconds")


def study(hidden, heads, layers, gpus, batch, tensor, keep):
    """A study of the plans of a model on a number of GPUs. The base is the first plan."""
    plan = {
        "tp": 8,
        "pp": 1,
        "dp": gpus // 8,
        "micro-batches": 1,
        "recompute": "full",
        "overlap": False,
        "scattered-messages": True,
    }
    base = steps.config(gpus, steps.gpt(layers, hidden, heads), plan)
    pipelines = [pp for pp in range(1, layers + 1) if layers % pp == 0 and gpus % pp == 0]
    text = {
        "study": {
            "base": "base.yaml",
            "parameters": {
                "batch": {"values": [batch]},
                "layers": {"values": [layers]},
                "tp": {"key": "workload.parallel.tp", "values": [n for n in tensor if heads % n == 0]},
                "pp": {"key": "workload.parallel.pp", "values": pipelines},
                "micro_batch": {"key": "workload.parallel.micro-batch", "values": [1, 2, 4, 8, 16]},
                "interleaving": {"key": "workload.parallel.interleaving", "values": [1, 2, 3, 4]},
            },
            "derived": {
                "dp": {"key": "workload.parallel.dp", "value": "npus / (tp * pp)"},
                "micro_batches": {"key": "workload.parallel.micro-batches", "value": "batch / (dp * micro_batch)"},
            },
            "constraints": [
                "divides(tp * pp, npus)",
                "divides(dp * micro_batch, batch)",
                "interleaving == 1 or (pp > 1 and micro_batches % pp == 0 and divides(pp * interleaving, layers))",
                "peak_memory <= 80 GB",
            ],
            "objectives": [{"minimise": "step_time"}],
            "keep": keep,
            "strategy": {"kind": "bounded"},
        }
    }
    return base, json.dumps(text)


def best_plans(model, tensor=(1, 2, 4, 8), keep=3):
    """The best plans of a model of table 1: (seconds, tp, pp, micro-batch)."""
    _, hidden, heads, layers, _, _, gpus, batch, _ = model
    with tempfile.TemporaryDirectory(prefix="orrery-explore-") as name:
        folder = pathlib.Path(name)
        base, text = study(hidden, heads, layers, gpus, batch, tensor, keep)
        (folder / "base.yaml").write_text(base)
        (folder / "study.yaml").write_text(text)
        done = harness.orrery("explore", folder / "study.yaml", f"--output={folder / 'explore.h5'}")
        if done.code:
            raise ValueError((done.err + done.out).strip()[:300])
        with h5py.File(folder / "explore.h5") as file:
            numbers, times = list(file["/trials/number"]), file["/trials/step_time"]
            rows = [numbers.index(n) for n in file["/best"]]
            parameters = [file[f"/parameters/{name}"] for name in ("tp", "pp", "micro_batch")]
            return [(float(times[row]), *(int(values[row]) for values in parameters)) for row in rows]


def published_time(model):
    """The least time of a published plan, whose interleaving is free."""
    _, hidden, heads, layers, tp, pp, gpus, batch, micro_batch = model
    dp = gpus // (tp * pp)
    fits = [
        v for v in (1, 2, 3, 4) if v == 1 or pp > 1 and layers % (v * pp) == 0 and batch // dp // micro_batch % pp == 0
    ]
    return min(steps.seconds([step(layers, hidden, heads, tp, pp, dp, batch, micro_batch, v) for v in fits]))


def table_1_search(case, quick):
    models = TABLE_1[:2] if quick else TABLE_1
    above = [published_time(model) / best_plans(model, keep=1)[0][0] - 1 for model in models]
    near = sum(share <= case["tolerance"] for share in above)
    shares = ", ".join(f"{model[0]}B {100 * share:+.1f} %" for model, share in zip(models, above))
    return Outcome(
        case["id"], near >= 0.8 * len(models), f"{near} of {len(models)} published plans are near the best: {shares}"
    )


def claim_of_tensor_parallelism(case, quick):
    models = [model for model in TABLE_1 if model[0] > 18][: 1 if quick else None]
    wide = [f"{model[0]}B" for model in models if any(plan[1] > 8 for plan in best_plans(model, (1, 2, 4, 8, 16)))]
    return Outcome(
        case["id"], not wide, f"tp above 8 among the best three of {', '.join(wide) or 'none'} of {len(models)} models"
    )


def points_of(config):
    """{(batch, point): rate} of a figure, relative rates of FLOPs of a GPU. A point is what the figure's axis shows."""
    axis = next(name for name in ("pp_tp", "pp_dp", "tp_dp", "pp", "micro_batch") if isinstance(config.get(name), list))

    def number(text, values):
        """A number, or one in terms of another, as "3 pp" and "64/pp"."""
        if not isinstance(text, str):
            return text
        first, sign, name = re.fullmatch(r"(\d+) ?(/?) ?(\w+)", text).groups()
        return int(first) // values[name] if sign else int(first) * values[name]

    keys, texts, works = [], [], []
    for batch in config["global_batch"]:
        for point in config[axis]:
            values = {
                "tp": 1,
                "pp": 1,
                "interleaving": 1,
                "micro_batch": 1,
                **{k: v for k, v in config.items() if isinstance(v, (int, float))},
            }
            values.update(zip(axis.split("_"), point) if isinstance(point, list) else [(axis, point)])
            gpus = number(config["gpus"], values)
            dp = (
                number(config["dp"], values)
                if "dp" in config and "dp" not in axis
                else values.get("dp", gpus // (values["tp"] * values["pp"]))
            )
            layers = number(config["layers"], values)
            keys.append((batch, tuple(point) if isinstance(point, list) else point))
            texts.append(
                step(
                    layers,
                    config["hidden"],
                    config["heads"],
                    values["tp"],
                    values["pp"],
                    dp,
                    batch,
                    values["micro_batch"],
                    values["interleaving"],
                )
            )
            works.append(batch * layers / gpus)
    return {key: work / time for key, work, time in zip(keys, works, steps.seconds(texts))}


def of_batch(points, batch):
    return {point: rate for (b, point), rate in points.items() if b == batch}


def fall(rates, first, last):
    return 1 - rates[last] / rates[first]


def pair(text):
    return tuple(map(int, re.findall(r"\d+", text)))


# Rules of figures: a pattern, and what it asks of the points.
RULES = [
    (
        r"batch (\d+): TFLOP/s per GPU falls by less than (\d+) % from pp (\d+) to (\d+)",
        lambda p, b, share, first, last: fall(of_batch(p, int(b)), int(first), int(last)) < int(share) / 100,
    ),
    (
        r"batch (\d+): falls by more than (\d+) %",
        lambda p, b, share: fall(r := of_batch(p, int(b)), min(r), max(r)) > int(share) / 100,
    ),
    (
        r"batch (\d+) above batch (\d+) (?:at every \w+|everywhere)",
        lambda p, high, low: all(of_batch(p, int(high))[x] > rate for x, rate in of_batch(p, int(low)).items()),
    ),
    (r"batch (\d+): best is (\([\d, ]+\))", lambda p, b, best: max(r := of_batch(p, int(b)), key=r.get) == pair(best)),
    (
        r"batch (\d+): (\([\d, ]+\)) is within (\d+) % of the best",
        lambda p, b, x, share: (r := of_batch(p, int(b)))[pair(x)] >= max(r.values()) / (1 + int(share) / 100),
    ),
    (
        r"the fall from (\([\d, ]+\)) to (\([\d, ]+\)) is larger for batch (\d+)",
        lambda p, x, y, b: all(
            fall(of_batch(p, int(b)), pair(x), pair(y)) >= fall(of_batch(p, other), pair(x), pair(y)) for other, _ in p
        ),
    ),
    (
        r"at each batch throughput falls with \w+",
        lambda p: all(list(r.values()) == sorted(r.values(), reverse=True) for r in (of_batch(p, b) for b, _ in p)),
    ),
    (
        r"the published best micro-batch, (\d+), is within (\d+) % of the best found",
        lambda p, x, share: all(
            (r := of_batch(p, b))[int(x)] >= max(r.values()) / (1 + int(share) / 100) for b, _ in p
        ),
    ),
    (r"micro-batch (\d+) at batch (\d+) is the worst", lambda p, x, b: p[int(b), int(x)] == min(p.values())),
]


def figure(case):
    points, wrong, unknown = points_of(case["config"]), [], []
    for rule in case["expected"]["rules"]:
        found = next(
            ((test, match.groups()) for pattern, test in RULES if (match := re.fullmatch(pattern, rule))), None
        )
        if found is None:
            unknown.append(rule)
        elif not found[0](points, *found[1]):
            wrong.append(rule)
    text = (
        "; ".join([f"false: {rule}" for rule in wrong] + [f"no check for the rule: {rule}" for rule in unknown])
        or "all rules hold"
    )
    top = max(points.values())
    rates = ", ".join(f"{batch}/{point}: {100 * rate / top:.0f}" for (batch, point), rate in points.items())
    return Outcome(
        case["id"], False if wrong else None if unknown else True, f"{text} (batch/point: % of the best: {rates})"
    )


def is_own(case):
    is_step = has(case, "config", "layers", "hidden", "tp", "pp") and (
        has(case, "expected", "iteration_s") or has(case, "expected", "tflops_per_gpu")
    )
    return is_step or is_figure(case) or is_search(case) or "tensor parallelism beyond" in rules_of(case)


def is_search(case):
    return "explorer" in str(case["expected"].get("rule", "")) if isinstance(case["expected"], dict) else False


def is_figure(case):
    return has(case, "config", "hidden", "heads", "layers") and bool(rules_of(case))


def check(cases, quick):
    for case in cases:
        try:
            if is_search(case):
                yield table_1_search(case, quick)
            elif is_figure(case):
                yield figure(case)
            elif rules_of(case):
                yield claim_of_tensor_parallelism(case, quick)
            else:
                yield table_1(case)
        except (ValueError, KeyError, StopIteration, AttributeError, TypeError) as error:
            yield unmade(case, error)
