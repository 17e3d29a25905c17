"""Calculon: measured steps of its validation (Korthikanti et al.), and the plans that it ranks best on A100."""
from explore_cases import steps
from explore_cases.outcome import Outcome, has, judged, unmade

MODELS = {  # layers, hidden, heads; tp, pp, interleaving and micro-batch of the measured steps
    "megatron-22B": ((48, 6144, 64), (8, 1, 1, 4)),
    "gpt3-175B": ((96, 12288, 96), (8, 8, 3, 1)),
    "turing-530B": ((105, 20480, 128), (8, 35, 3, 1)),
    "megatron-1T": ((128, 25600, 160), (8, 64, 1, 1)),
}
RECOMPUTATION = {"full": "full", "attn_only": "selective", "none": "none"}


def step(config, tp, pp, interleaving, micro_batch, recompute, sp, zero=0):
    layers, hidden, heads = MODELS[config["model"]][0]
    dp = config["gpus"] // (tp * pp)
    parallel = {
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "interleaving": interleaving,
        "micro-batch": micro_batch,
        "zero": zero,
        "micro-batches": config["global_batch"] // (dp * micro_batch),
        "recompute": recompute,
        "sp": sp,
    }
    return steps.config(config["gpus"], steps.gpt(layers, hidden, heads), parallel)


def measured(case):
    c = case["config"]
    full = c["recompute"] == "full"
    text = step(c, *MODELS[c["model"]][1], "full" if full else "selective", not full)
    return judged(case, steps.seconds([text])[0], case["expected"]["measured_s"], case["tolerance"], "seconds")


def ranking(case):
    """Simulates the listed plans. How are they ranked, and what does Calculon say of the best one? Calculon interleaves stages for any number
    of micro-batches; as in Megatron, it must be a multiple of the stages here."""
    c, limits = case["config"], case["tolerance"]
    listed = case["expected"]["top"] + case["expected"]["every_tenth"]
    plans = [
        p for p in listed if p["interleaving"] == 1 or c["global_batch"] // (p["dp"] * p["micro_batch"]) % p["pp"] == 0
    ]
    texts = [
        step(
            c,
            p["tp"],
            p["pp"],
            p["interleaving"],
            p["micro_batch"],
            RECOMPUTATION[p["recompute"]],
            p["tp"] > 1 and p["tp_comm"] == "rs_ag",
            int(p["optimizer_sharding"] and p["dp"] > 1),
        )
        for p in plans
    ]
    simulated, theirs = steps.seconds(texts), [p["step_s"] for p in plans]
    correlation, above = steps.spearman(simulated, theirs), steps.regret(simulated, theirs)
    return Outcome(
        case["id"],
        correlation >= limits["spearman_min"] and above <= limits["top1_within_calculon_best"],
        f"Spearman {correlation:.2f} of {len(plans)} plans of {len(listed)}; Calculon puts the best one {100 * above:.1f} % above its own",
    )


def is_own(case):
    return has(case, "config", "model", "gpus", "global_batch") or has(case, "expected", "top", "every_tenth")


def check(cases, _):
    for case in cases:
        try:
            yield ranking(case) if "top" in case["expected"] else measured(case)
        except (ValueError, KeyError, TypeError) as error:
            yield unmade(case, error)
