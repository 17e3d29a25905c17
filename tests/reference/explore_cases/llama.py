"""Llama 3 70B on 1,024 H100: the space, its steps, and the ten best of 18,400, as an earlier revision of Orrery found them by simulating all.

The simulated times changed since: collectives of several kinds no longer have fixed halves of a dimension, so steps take up to half the time
less; and with ZeRO 2 and 3 passes wait for a free buffer, so steps take up to 5 % more. So a step is held to what `orrery explore` stores, exactly, and to that range of the earlier time; its memory to the
earlier peak within 12 %. Steps that do not fit are not compared with a study, which leaves them out. Of the earlier ten best each must be as
fast as the ten best now, within 5 %."""
import pathlib
import re
import tempfile

import h5py
import harness
from explore_cases.outcome import Outcome, has, judged, unmade

STUDY = harness.SOURCE / "configs/studies/llama3-70b-1024.yaml"
PARALLEL, BATCH = "workload.parallel", 1024
NAMES = {
    "tp": "tp",
    "cp": "cp",
    "pp": "pp",
    "dp": "dp",
    "mb": "micro-batch",
    "m": "micro-batches",
    "v": "interleaving",
    "rc": "recompute",
    "z": "zero",
    "sp": "sp",
}
FASTER, SLOWER, LARGER, CLOSE = 0.5, 0.05, 0.12, 0.05


def setting(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def run(folder, settings):
    """Seconds and peak bytes of a step with these settings of workload.parallel, as `orrery run` stores them."""
    out = folder / "results.h5"
    done = harness.orrery(
        "run",
        harness.SOURCE / "configs/llama3-70b-1024.yaml",
        "--fold",
        "--record-iterations=0",
        "--memory=report",
        "--force",
        "--progress=none",
        f"--output={out}",
        *(f"--set={key}={setting(value)}" for key, value in settings.items()),
    )
    if done.code:
        raise ValueError(done.err.strip()[:300])
    with h5py.File(out) as file:
        return round(int(file["/metrics/step_time"][()]) * 1e-12, 12), int(max(file["/npus/peak_local_memory"]))


def explored(folder, settings):
    """The same of a study of this one configuration; None if it does not fit."""
    (folder / "study.yaml").write_text(
        f"study:\n  base: {harness.SOURCE}/configs/llama3-70b-1024.yaml\n  parameters:\n"
        + "".join(
            f"    p{i}: {{key: {key}, values: [{setting(value)}]}}\n" for i, (key, value) in enumerate(settings.items())
        )
        + "  objectives: [{minimise: step_time}]\n"
    )
    done = harness.orrery("explore", folder / "study.yaml", f"--output={folder / 'explore.h5'}", "--force")
    if "no configuration of 1 is left" in done.err:
        return None
    if done.code:
        raise ValueError(done.err.strip()[:300])
    with h5py.File(folder / "explore.h5") as file:
        return round(float(file["/trials/step_time"][0]), 12), int(file["/trials/peak_memory"][0])


def step(case, folder):
    settings = {f"{PARALLEL}.{NAMES[name]}": value for name, value in case["config"].items()}
    ran, found, expected = run(folder, settings), explored(folder, settings), case["expected"]
    drift, memory = ran[0] / expected["step_s"] - 1, ran[1] / expected["peak_local_memory"] - 1
    held = found in (None, ran) and -FASTER <= drift <= SLOWER and abs(memory) <= LARGER
    return Outcome(
        case["id"],
        held,
        f"{ran[0]:.6f} s and {ran[1]} B; explore: {found and ('the same' if found == ran else found)}; "
        f"the earlier revision differs by {100 * drift:+.2f} % and {100 * memory:+.2f} %",
    )


def searched(folder):
    """What `orrery explore` finds in the whole space. It is searched once."""
    output = folder / "best.h5"
    if not output.exists():
        done = harness.orrery("explore", STUDY, f"--output={output}")
        if done.code:
            raise ValueError(done.err.strip()[:300])
    return output


def best(case, folder):
    """Finds the best ones by `orrery explore`, and runs the earlier best ones."""
    with h5py.File(searched(folder)) as file:
        numbers = list(file["/trials/number"])
        now = [float(file["/trials/step_time"][numbers.index(number)]) for number in file["/best"]]
    plans = [dict(text.split("=", 1) for text in plan["overrides"]) for plan in case["expected"]]
    for plan in plans:
        plan[f"{PARALLEL}.micro-batches"] = BATCH // (
            int(plan[f"{PARALLEL}.dp"]) * int(plan[f"{PARALLEL}.micro-batch"])
        )
    earlier = [run(folder, plan)[0] for plan in plans]
    return Outcome(
        case["id"],
        now[0] <= min(earlier) * (1 + 1e-9) and max(earlier) <= max(now) * (1 + CLOSE),
        f"the best now {now[0]:.6f} to {now[-1]:.6f} s, the earlier ten now {min(earlier):.6f} to {max(earlier):.6f} s",
    )


def within_memory(case, folder):
    """How many configurations the bound of memory leaves. Another sound bound may leave fewer, but never fewer than what fits."""
    with h5py.File(searched(folder)) as file:
        funnel = {reason.decode(): int(count) for reason, count in zip(file["/funnel/reason"], file["/funnel/count"])}
    left = funnel["legal"] - sum(
        count for reason, count in funnel.items() if "peak_memory" in reason or "does-not-fit" in reason
    )
    return judged(case, left, case["expected"]["pass"], case["tolerance"], "configurations within the memory's bound")


def space(case):
    """Counts what --list prints, without a limit of memory."""
    listed = harness.orrery("explore", STUDY, "--list").out.splitlines()
    header = listed[0].split()
    rows = [
        dict(zip(header, line.split()))
        for line in listed[1:]
        if re.match(r" *\d+ ", line) and len(line.split()) == len(header)
    ]
    if "group by" in case["config"]:
        by = case["config"]["group by"]
        counts = {key: sum(row[by] == key for row in rows) for key in case["expected"]}
        return Outcome(case["id"], counts == case["expected"], f"by {by}: {counts}")
    return Outcome(case["id"], len(rows) == case["expected"]["configurations"], f"{len(rows)} configurations")


def is_run(case):
    return has(case, "expected", "step_s", "peak_local_memory")


def is_best(case):
    return isinstance(case["expected"], list) and all(
        isinstance(plan, dict) and "overrides" in plan for plan in case["expected"]
    )


def is_own(case):
    return (
        is_run(case)
        or is_best(case)
        or has(case, "expected", "configurations")
        or has(case, "config", "group by")
        or has(case, "config", "rule")
        and has(case, "expected", "pass")
    )


def check(cases, quick):
    runs = [case for case in cases if is_run(case)]
    with tempfile.TemporaryDirectory(prefix="orrery-explore-") as name:
        for case in cases:
            needs_search = is_best(case) or "rule" in case["config"]
            if quick and (case in runs[4:] or needs_search):
                continue
            test = (
                within_memory if "rule" in case["config"] else best if needs_search else step if case in runs else None
            )
            try:
                yield test(case, pathlib.Path(name)) if test else space(case)
            except (ValueError, KeyError, TypeError) as error:
                yield unmade(case, error)
