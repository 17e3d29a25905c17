"""vTrain's measured iterations of Megatron-DeepSpeed: does the simulation rank plans as the machines do?"""
import statistics

from explore_cases import steps
from explore_cases.outcome import Outcome

PREFIXES = ("vtrain-",)
NIC = "100 Gb/s"  # 4 x 200 Gb/s a server
COMPUTE = {"kernel": "50 us"}  # what PyTorch of 2023 needs to launch a small operator, as docs/validation.md has it


def texts_of(case):
    c = case["config"]
    for tp, dp, pp, micro_batch in c["rows_tp_dp_pp_microbatch"]:
        parallel = {"tp": tp, "dp": dp, "pp": pp, "micro-batch": micro_batch, "micro-batches": c["global_batch"] // (dp * micro_batch),
                    "recompute": "full", "zero": 0, "overlap": False}
        yield steps.config(c["gpus"], steps.gpt(c["layers"], c["hidden"], c["heads"], c["sequence"], 50304), parallel, COMPUTE, NIC)


def figures_of(case):
    simulated, measured = steps.seconds(list(texts_of(case))), [ms / 1000 for ms in case["expected"]["measured_ms"]]
    return {"spearman": steps.spearman(simulated, measured), "regret_1": steps.regret(simulated, measured), "regret_3": steps.regret(simulated, measured, 3),
            "mape": statistics.mean(abs(s / m - 1) for s, m in zip(simulated, measured))}


def described(figures):
    return f"Spearman {figures['spearman']:.2f}, regret {100 * figures['regret_1']:.1f} % (of 3: {100 * figures['regret_3']:.1f} %), mean error {100 * figures['mape']:.1f} %"


def check(cases, quick):
    several = [case for case in cases if "spearman_min" in (case["tolerance"] or {})]
    single = [case for case in cases if "median_spearman_over_groups_min" in (case["tolerance"] or {})]
    for case in several:
        limits, figures = case["tolerance"], figures_of(case)
        yield Outcome(case["id"], figures["spearman"] >= limits["spearman_min"] and figures["regret_1"] <= limits["regret_1_max"]
                      and figures["regret_3"] <= limits["regret_3_max"] and figures["mape"] <= limits["mape_max"], described(figures))
    if single:
        groups = single[:: 8 if quick else 1]
        all_figures = [figures_of(case) for case in groups]
        medians = {name: statistics.median(figures[name] for figures in all_figures) for name in all_figures[0]}
        limits = single[0]["tolerance"]
        held = (medians["spearman"] >= limits["median_spearman_over_groups_min"] and medians["regret_1"] <= limits["median_regret_1_max"]
                and medians["mape"] <= limits["median_mape_max"])
        for case, figures in zip(groups, all_figures):
            yield Outcome(case["id"], held, described(figures) + f"; held or missed by the medians of {len(groups)} groups: {described(medians)}")
    for case in cases:
        if case not in several and case not in single:
            yield Outcome(case["id"], None, "a claim without inputs, or no check for this id")
