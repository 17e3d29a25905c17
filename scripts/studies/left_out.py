"""Predicts rows that nothing was fitted to: the numbers of all stacks are fitted without a report, or to two rows of a series.

Each number of a stack is that of all stacks together plus a deviation of its own, both normal in the logarithm; each report has a factor of
its own that no number explains. Rows are linear in these unknowns near the shipped numbers. So what is known of a stack that has no row is
what all others say, and the deviation of a prediction is that of the unknowns it depends on.
"""
import collections
import concurrent.futures
import hashlib
import json
import math
import pathlib
import statistics

import numpy as np

from orrery.calibrate import joint, rows as measured, steps as runs

# Values before any fit, and the deviation of the value of all stacks from them.
BEFORE = {
    "system.compute.efficiency": (0.85, 0.15),
    "system.compute.attention-factor": (1.0, 0.1),
    "system.compute.attention": (0.4, 0.4),
    "system.compute.elementwise": (0.5, 0.4),
    "system.compute.fp8": (0.89, 0.03),
    "system.compute.nvfp4": (0.8, 0.1),
    "system.compute.kernel": (4e-6, 0.3),
    "system.collectives.compute-share": (0.1, 0.7),
    "workload.parallel.exposed-share": (0.3, 0.7),
    "workload.parallel.between-steps": (1e-3, 2.0),
    "workload.parallel.layer-time": (5e-4, 1.5),
    "workload.parallel.call-time-per-member": (5e-6, 1.5),
}
SHIPPED = 0.02  # what a stack leaves to a report when its numbers are fitted for good
ERROR = 0.07  # deviation of a row besides what its report has in common


def effects_of(program, steps, folder, jobs, cache):
    """{id: (miss, {key: effect})} of rows with the shipped numbers of their stacks."""
    known = json.loads(cache.read_text()) if cache and cache.exists() else {}
    tasks = []
    for row in steps:
        stack = measured.stack_of(row, folder)
        values = runs.numbers_of(stack, folder)
        text = measured.configuration(row, stack)
        tasks.append((row["id"], text, {}))
        for key, value in values.items():
            tasks.append((row["id"], text, {key: joint.nudged(key, value)[0]}))

    def mark(task):
        stack = next(line for line in task[1].splitlines() if line.startswith("stack: "))[7:]
        return hashlib.sha256((task[1] + runs.file_of(stack, folder).read_text() + str(task[2])).encode()).hexdigest()[
            :24
        ]

    def seconds(task):
        name = mark(task)
        if name not in known:
            known[name] = runs.run(program, task[1], runs.settings(task[2]))[0]
        return known[name]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(seconds, tasks))
    if cache:
        cache.write_text(json.dumps(known))
    plain = {task[0]: each for task, each in zip(tasks, found) if not task[2]}
    effects = collections.defaultdict(dict)
    for (name, _, changed), each in zip(tasks, found):
        for key, value in changed.items():
            own = next(row for row in steps if row["id"] == name)
            shipped = runs.numbers_of(measured.stack_of(own, folder), folder)[key]
            effects[name][key] = math.log(each / plain[name]) / math.log(value / shipped)
    return {row["id"]: (math.log(float(row["step_or_us"]) / plain[row["id"]]), effects[row["id"]]) for row in steps}


class Model:
    """The unknowns of all stacks and reports, and what rows say of them."""

    def __init__(self, steps, effects, folder):
        self.steps = steps
        self.stacks = {row["id"]: measured.stack_of(row, folder) for row in steps}
        shipped = {stack: runs.numbers_of(stack, folder) for stack in set(self.stacks.values())}
        names = [("all", key) for key in BEFORE] + [
            (stack, key) for stack, values in sorted(shipped.items()) for key in values
        ]
        names += [("report", report) for report in sorted({measured.report_of(row) for row in steps})]
        self.at = {name: i for i, name in enumerate(names)}
        self.deviations = np.array(
            [
                BEFORE[name[1]][1]
                if name[0] == "all"
                else joint.UNKNOWN
                if name[0] == "report"
                else joint.NUMBERS[name[1]][0]
                for name in names
            ]
        )
        self.lines, self.misses = [], []
        for row in steps:
            miss, of_keys = effects[row["id"]]
            stack, line = self.stacks[row["id"]], np.zeros(len(names))
            for key, effect in of_keys.items():
                line[self.at["all", key]] += effect
                line[self.at[stack, key]] += effect
                miss -= effect * math.log(BEFORE[key][0] / shipped[stack][key])
            line[self.at["report", measured.report_of(row)]] = 1
            self.lines.append(line)
            self.misses.append(miss)
        self.lines, self.misses = np.array(self.lines), np.array(self.misses)

    def left(self, kept, asked):
        """[(logarithm of measured over predicted, deviation)] of the rows `asked` after a fit to those `kept`."""
        found = joint.fit(self.lines[kept], self.misses[kept], self.deviations, noise=ERROR)
        return [
            (float(self.misses[i]) - found.shift(self.lines[i]), math.hypot(found.spread(self.lines[i]), ERROR))
            for i in asked
        ]

    def deviations_after(self):
        """The deviation of each row's prediction for a report that is not known, after a fit to all rows."""
        found, told = self.fitted(), []
        for row, line in zip(self.steps, self.lines):
            line = line.copy()
            line[self.at["report", measured.report_of(row)]] = 0
            told.append(math.sqrt(found.spread(line) ** 2 + joint.UNKNOWN**2 + ERROR**2))
        return told

    def fitted(self):
        return joint.fit(self.lines, self.misses, self.deviations, noise=ERROR)

    def values(self, stack, keys):
        """{key: (value, deviation)} of a stack after a fit to all rows. A stack has no factor for a report: its numbers take it."""
        of_report = np.array([name[0] == "report" for name in self.at])
        found = joint.fit(self.lines, self.misses, np.where(of_report, SHIPPED, self.deviations), noise=ERROR)
        told = {}
        for key in keys:
            line = np.zeros(len(self.at))
            line[self.at["all", key]] = line[self.at[stack, key]] = 1
            told[key] = (joint.limited(key, BEFORE[key][0] * math.exp(found.shift(line))), found.spread(line))
        return told


def summary(left):
    errors = sorted(abs(math.expm1(-miss)) for miss, _ in left)
    return {
        "rows": len(errors),
        "mean": statistics.mean(errors),
        "p90": errors[min(len(errors) - 1, math.ceil(0.9 * len(errors)) - 1)],
        "covered_80": statistics.mean(float(abs(m) <= joint.NORMAL_80 * d) for m, d in left),
        "covered_95": statistics.mean(float(abs(m) <= joint.NORMAL_95 * d) for m, d in left),
        "factor": math.exp(joint.NORMAL_80 * statistics.median(d for _, d in left)),
    }


def study(program, steps, folder, jobs, beside=(), cache=None):
    """Prints the errors of rows that are left out, and returns them. Rows of `beside` are fitted, and not asked."""
    asked = {row["id"] for row in steps}
    everything = list(steps) + [row for row in beside if row["id"] not in asked]
    model = Model(everything, effects_of(program, everything, folder, jobs, cache), folder)
    number = range(len(everything))
    reports, groups = collections.defaultdict(list), collections.defaultdict(list)
    for i in number:
        if everything[i]["id"] in asked:
            reports[measured.report_of(everything[i])].append(i)
            groups[everything[i]["group"]].append(i)
    known, unknown, of_report = [], [], {}
    for report, members in reports.items():
        kept = [i for i in number if i not in members]
        left = model.left(kept, members)
        of_report[report] = summary(left)
        softwares = {model.stacks[everything[i]["id"]] for i in kept}
        for i, each in zip(members, left):
            (known if model.stacks[everything[i]["id"]] in softwares else unknown).append(each)
    two = []
    for members in groups.values():
        if len(members) > 2:
            shown = (members[0], members[-1])
            rest = [i for i in members if i not in shown]
            two += model.left([i for i in number if i not in rest], rest)
    found = {}
    print(
        f"\n{'rows that were left out':<52} {'rows':>4} {'mean':>7} {'p90':>7} {'in 80 %':>8} {'in 95 %':>8} {'factor':>7}"
    )
    for name, left in (
        ("one report at a time", known + unknown),
        ("  of these, another report of the stack is known", known),
        ("  of these, no row of the stack is known", unknown),
        ("all rows of a group but two", two),
    ):
        if left:
            found[name.strip()] = s = summary(left)
            print(
                f"{name:<52} {s['rows']:>4} {100 * s['mean']:>6.1f}% {100 * s['p90']:>6.1f}% {100 * s['covered_80']:>7.0f}% {100 * s['covered_95']:>7.0f}% "
                f"{s['factor']:>7.2f}"
            )
    for report, s in of_report.items():
        print(f"  {report[:72]:<72} {s['rows']:>4} {100 * s['mean']:>6.1f}%")
    return dict(found, reports=of_report)
