"""vTrain's measured iterations of Megatron-DeepSpeed: does the simulation rank plans as the machines do?"""
import statistics

from explore_cases import steps
from explore_cases.outcome import Outcome, has, rules_of, unmade
from explore_cases.sc21 import TABLE_1

NIC = "100 Gb/s"  # 4 x 200 Gb/s a server
COMPUTE = {"kernel": "50 us"}  # what PyTorch of 2023 needs to launch a small operator, as docs/validation.md has it


def texts_of(case):
    c = case["config"]
    for tp, dp, pp, micro_batch in c["rows_tp_dp_pp_microbatch"]:
        # DeepSpeed sums gradients of fp16 in fp16, and its pipelines send shares between stages (PipelineEngine, is_pipe_partitioned).
        parallel = {
            "tp": tp,
            "dp": dp,
            "pp": pp,
            "micro-batch": micro_batch,
            "micro-batches": c["global_batch"] // (dp * micro_batch),
            "recompute": "full",
            "zero": 0,
            "overlap": False,
            "gradients": "bf16",
            "scattered-messages": True,
        }
        yield steps.config(
            c["gpus"], steps.gpt(c["layers"], c["hidden"], c["heads"], c["sequence"], 50304), parallel, COMPUTE, NIC
        )


class Group:
    """A group of measured plans, and what they take in simulation."""

    def __init__(self, case):
        self.config, self.plans = case["config"], case["config"]["rows_tp_dp_pp_microbatch"]
        self.simulated, self.measured = steps.seconds(list(texts_of(case))), [
            ms / 1000 for ms in case["expected"]["measured_ms"]
        ]

    def figures(self):
        return {
            "spearman": steps.spearman(self.simulated, self.measured),
            "regret_1": steps.regret(self.simulated, self.measured),
            "regret_3": steps.regret(self.simulated, self.measured, 3),
            "mape": statistics.mean(abs(s / m - 1) for s, m in zip(self.simulated, self.measured)),
        }

    def gain(self):
        """By how much the plan that is simulated as the best one was measured faster than the one of SC21's table 1; None if that was not measured."""
        for _, hidden, _, _, tp, pp, gpus, batch, micro_batch in TABLE_1:
            plan = [tp, gpus // (tp * pp), pp, micro_batch]
            if (hidden, gpus, batch) == tuple(
                self.config[key] for key in ("hidden", "gpus", "global_batch")
            ) and plan in self.plans:
                best = min(range(len(self.plans)), key=self.simulated.__getitem__)
                return self.measured[self.plans.index(plan)] / self.measured[best] - 1
        return None


def described(figures):
    return f"Spearman {figures['spearman']:.2f}, regret {100 * figures['regret_1']:.1f} % (of 3: {100 * figures['regret_3']:.1f} %), mean error {100 * figures['mape']:.1f} %"


def cross_check(case, groups):
    """Plans that are picked by simulation beat those that were picked by hand, where both were measured."""
    gains = {group.config["gpus"]: gain for group in groups if (gain := group.gain()) is not None}
    if not gains:
        return Outcome(case["id"], None, "no group of measured plans has one that was picked by hand")
    said = ", ".join(f"{gpus} GPUs {100 * gain:+.1f} %" for gpus, gain in sorted(gains.items()))
    return Outcome(
        case["id"],
        all(gain > 0 for gain in gains.values()),
        f"by how much the plan of SC21 was measured slower than the one picked here: {said}",
    )


def is_own(case):
    return (
        has(case, "config", "rows_tp_dp_pp_microbatch") or has(case, "expected", "measured_ms") or is_cross_check(case)
    )


def is_cross_check(case):
    return "picked by simulation" in rules_of(case)


def check(cases, quick):
    several = [case for case in cases if has(case, "tolerance", "spearman_min")]
    single = [case for case in cases if has(case, "tolerance", "median_spearman_over_groups_min")]
    groups = []
    for case in several:
        try:
            limits, group = case["tolerance"], Group(case)
            groups.append(group)
            figures = group.figures()
        except (ValueError, KeyError, TypeError) as error:
            yield unmade(case, error)
            continue
        yield Outcome(
            case["id"],
            figures["spearman"] >= limits["spearman_min"]
            and figures["regret_1"] <= limits["regret_1_max"]
            and figures["regret_3"] <= limits["regret_3_max"]
            and figures["mape"] <= limits["mape_max"],
            described(figures),
        )
    if single:
        some = single[:: 8 if quick else 1]
        all_figures = [Group(case).figures() for case in some]
        medians = {name: statistics.median(figures[name] for figures in all_figures) for name in all_figures[0]}
        limits = single[0]["tolerance"]
        held = (
            medians["spearman"] >= limits["median_spearman_over_groups_min"]
            and medians["regret_1"] <= limits["median_regret_1_max"]
            and medians["mape"] <= limits["median_mape_max"]
        )
        for case, figures in zip(some, all_figures):
            yield Outcome(
                case["id"],
                held,
                described(figures) + f"; held or missed by the medians of {len(some)} groups: {described(medians)}",
            )
    for case in cases:
        if case not in several and case not in single:
            yield cross_check(case, groups) if is_cross_check(case) else Outcome(
                case["id"], None, "its tolerance has no spearman_min"
            )
