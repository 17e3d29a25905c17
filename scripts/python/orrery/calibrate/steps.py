"""Fits the numbers of a stack to measured steps, with the numbers of shipped stacks as what is known before."""
import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile

from orrery.calibrate import joint, rows
from orrery.calibrate.program import SECONDS, Failed, Unusable, asked

ROUNDS = 3  # of fits, each of which simulates the rows with the numbers of the one before


def run(program, text, settings=()):
    """(seconds of a step, FLOPs executed, {key: value} of the resolved configuration) of a configuration."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "config.yaml"
        file.write_text(text)
        line = [
            program,
            "run",
            file,
            "--verbose",
            "--fold",
            "--record-iterations=0",
            f"--output={folder}/results.h5",
            "--memory=report",
            "--progress=none",
            *(f"--set={setting}" for setting in settings),
        ]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, timeout=600, check=False)
    found = re.search(r"^step time ([\d.]+) (\w+)", done.stdout, re.M)
    if done.returncode or not found:
        raise Failed(done.returncode or 3, done.stderr or done.stdout)
    flops = re.search(r"([\d.]+) ([kMGTPEZY]?)FLOPs executed", done.stdout)
    return (
        float(found[1]) * SECONDS[found[2]],
        float(flops[1]) * 1000.0 ** " kMGTPEZY".index(flops[2] or " ") if flops else 0.0,
    )


def leaves(text, path=()):
    """{path: text} of the leaves of a stack's file, of which flow mappings may hold some. Comments are left out."""
    found, stack = {}, []
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line)
        if not line.strip() or line.lstrip().startswith("- "):
            continue
        indent, (key, _, rest) = len(line) - len(line.lstrip()), line.strip().partition(":")
        while stack and stack[-1][0] >= indent:
            stack.pop()
        here = [name for _, name in stack] + [key.strip()]
        rest = rest.strip()
        if not rest:
            stack.append((indent, key.strip()))
        elif rest.startswith("{"):
            found.update(flow(rest, here))
        else:
            found[".".join(here)] = rest
    return found


def flow(text, path):
    """{path: text} of the leaves of a mapping in flow style."""
    found, depth, start = {}, 0, 1
    for i, letter in enumerate(text):
        depth += letter in "{[" or -(letter in "}]")
        if (letter == "," and depth == 1) or (letter == "}" and depth == 0):
            key, _, rest = text[start:i].partition(":")
            rest, start = rest.strip(), i + 1
            if rest.startswith("{"):
                found.update(flow(rest, path + [key.strip()]))
            elif key.strip():
                found[".".join(path + [key.strip()])] = rest
            if depth == 0:
                break
    return found


def file_of(stack, folder):
    """The file of a stack, which is a name of a shipped one or a path."""
    return pathlib.Path(stack) if os.sep in stack or stack.endswith(".yaml") else folder / f"{stack}.yaml"


def numbers_of(stack, folder):
    """{key: value} of the numbers of a stack that can be fitted, with those that it leaves at their defaults."""
    file = file_of(stack, folder)
    try:
        told = leaves(file.read_text())
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror}; expected a stack") from error
    defaults = {"system.compute.efficiency": 1.0, "system.compute.elementwise": 0.8, "system.compute.kernel": 4e-6}
    if "system.compute.attention-kernel" in told:
        defaults["system.compute.attention-factor"] = 1.0
    found = {key: joint.number_of(told.get(key, default)) for key, default in defaults.items()}
    for key, value in told.items():
        if key in joint.NUMBERS and joint.number_of(value):
            found[key] = joint.number_of(value)
    return {key: value for key, value in found.items() if value}


def deviations_of(stack, folder):
    """{key: deviation} that a stack gives for its numbers (`provenance.numbers`)."""
    file = file_of(stack, folder)
    found = {}
    for line in file.read_text().splitlines():
        told = re.search(r"\{\s*key:\s*([\w.-]+).*?\bdeviation:\s*([\d.]+)", line)
        if told:
            found[told[1]] = float(told[2])
    return found


def settings(values):
    return [f"{key}={joint.text_of(key, value)}" for key, value in values.items()]


class Problem:
    """Rows, the texts of their configurations, and the numbers that are fitted."""

    def __init__(self, program, steps, stack, jobs):
        self.program, self.steps, self.jobs = program, steps, jobs
        self.texts = [rows.configuration(row, stack) for row in steps]
        self.measured = [float(row["step_or_us"]) for row in steps]

    def seconds(self, texts_and_values):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda each: run(self.program, each[0], settings(each[1]))[0], texts_and_values))

    def effects(self, values):
        """(misses of the rows, [rows][numbers] effects) with these numbers."""
        keys, tasks = list(values), [(text, values) for text in self.texts]
        changes = {key: joint.nudged(key, values[key]) for key in keys}
        for key in keys:
            tasks += [(text, dict(values, **{key: changes[key][0]})) for text in self.texts]
        found = self.seconds(tasks)
        count = len(self.texts)
        plain = found[:count]
        effects = [
            [math.log(found[(k + 1) * count + i] / plain[i]) / changes[key][1] for k, key in enumerate(keys)]
            for i in range(count)
        ]
        return [math.log(m / p) for m, p in zip(self.measured, plain)], effects, plain


def calibrate(program, files, stack, output, jobs):
    """Fits, prints what was found, and writes a stack."""
    if len(files) != 1:
        raise Unusable(f"orrery calibrate steps: found {len(files)} files; expected one CSV of measured steps.")
    try:
        folder = rows.stacks_folder(program)
        steps, messages, others = rows.read(files[0])
        if messages:
            raise Unusable(f"{files[0]}: {messages[0]}")
        if not steps:
            raise Unusable(
                f"{files[0]}: found no row of kind 'training step'"
                + (f" but {dict(others)}" if others else "")
                + "; expected one or more."
            )
        stacks = sorted({stack or rows.stack_of(row, folder) for row in steps})
    except rows.Wrong as error:
        raise Unusable(str(error)) from error
    if len(stacks) > 1:
        raise Unusable(f"{files[0]}: found rows of the stacks {', '.join(stacks)}; expected those of one, or --stack.")
    stack, output = stacks[0], pathlib.Path(output)
    if output.exists():
        raise Unusable(f"{output}: found a file of this name; expected none, or another --output.")
    values = numbers_of(stack, folder)
    prior, told = dict(values), deviations_of(stack, folder)
    deviations = [max(told.get(key, joint.NUMBERS[key][0]), 0.01) for key in values]
    problem = Problem(program, steps, stack, jobs)
    first = None
    for _ in range(ROUNDS):
        misses, effects, _ = problem.effects(values)
        first = misses if first is None else first
        start = [math.log(prior[key] / values[key]) for key in values]
        found = joint.fit(effects, misses, deviations, start)
        change = {key: found.mean[k] for k, key in enumerate(values)}
        values = {key: joint.limited(key, value * math.exp(change[key])) for key, value in values.items()}
        if max(abs(each) for each in change.values()) < 0.01:
            break
    misses, effects, predicted = problem.effects(values)
    spread = {key: math.sqrt(found.covariance[k][k]) for k, key in enumerate(values)}
    moved = [key for k, key in enumerate(values) if spread[key] < 0.97 * deviations[k]]
    print(f"{stack}, fitted to {len(steps)} {'step' if len(steps) == 1 else 'steps'} of {files[0]}:")
    for key, value in values.items():
        told = f"{joint.text_of(key, value)}, before {joint.text_of(key, prior[key])}; uncertain by {100 * math.expm1(spread[key]):.0f} %"
        print(
            f"  {key}: "
            + (told if key in moved else f"{joint.text_of(key, prior[key])}: these steps say nothing of it")
        )
    start = [math.log(prior[key] / values[key]) for key in values]
    left = leave_one_out(effects, misses, deviations, start)
    print(f"  {'row':<36} {'measured':>10} {'as shipped':>10} {'fitted':>8} {'left out':>9}")
    for row, seconds, before, after, out in zip(steps, problem.measured, first, misses, left):
        print(
            f"  {row['id'][:36]:<36} {seconds:>8.4g} s {100 * math.expm1(-before):>+9.1f}% {100 * math.expm1(-after):>+7.1f}% {100 * math.expm1(-out[0]):>+8.1f}%"
        )
    deviation = (
        math.hypot(joint.UNKNOWN if len(steps) == 1 else 0.0, *[math.sqrt(sum(o[0] ** 2 for o in left) / len(left))])
        if len(steps) > 1
        else math.hypot(joint.UNKNOWN, joint.NOISE)
    )
    deviation = max(deviation, 0.05)
    if len(steps) == 1:
        print(
            "  One row is fitted, and nothing is validated: no row is left to compare with. Measure a second step, of another size."
        )
    else:
        mean = sum(abs(math.expm1(-out[0])) for out in left) / len(left)
        print(
            f"  mean error of a row that was left out: {100 * mean:.1f} % ({100 * sum(abs(math.expm1(-b)) for b in first) / len(first):.1f} % as shipped)"
        )
    output.write_text(stack_text(stack, folder, values, spread, moved, steps, files[0], deviation))
    print(f"  wrote {output}: put `stack: {output}` into CONFIG.yaml")


def leave_one_out(effects, misses, deviations, start):
    found = []
    for i in range(len(misses)):
        others = [k for k in range(len(misses)) if k != i]
        if not others:
            return [(misses[i], joint.UNKNOWN)]
        fitted = joint.fit([effects[k] for k in others], [misses[k] for k in others], deviations, start)
        own = effects[i]
        found.append((misses[i] - sum(e * m for e, m in zip(own, fitted.mean)), joint.NOISE))
    return found


def stack_text(stack, folder, values, spread, moved, steps, source, deviation):
    """The text of the stack's file."""
    file = file_of(stack, folder)
    told = {key: value for key, value in leaves(file.read_text()).items() if not key.startswith("provenance.")}
    told.update({key: joint.text_of(key, value) for key, value in values.items() if key in moved or key in told})
    tree = {}
    for key, value in told.items():
        at = tree
        *above, last = key.split(".")
        for name in above:
            at = at.setdefault(name, {})
        at[last] = value
    lines = [f"# {stack}, with numbers fitted to {len(steps)} measured steps of {source} by `orrery calibrate steps`."]

    def put(mapping, indent):
        for key, value in mapping.items():
            lines.append("  " * indent + f"{key}:" + ("" if isinstance(value, dict) else f" {value}"))
            if isinstance(value, dict):
                put(value, indent + 1)

    put(tree, 0)
    quoted = json.dumps(
        f"{pathlib.Path(stack).stem}, fitted to {len(steps)} {'step' if len(steps) == 1 else 'steps'} of {pathlib.Path(source).name}"
    )
    lines += ["provenance:", f"  basis: {quoted}", f"  deviation: {deviation:.3f}", "  numbers:"]
    for key in told:
        if key in values:
            kind = "fitted" if key in moved else "borrowed"
            lines.append(
                f"    - {{key: {key}, deviation: {spread[key]:.3f}, kind: {kind}, source: {json.dumps(pathlib.Path(source).name if key in moved else stack)}}}"
            )
    return "\n".join(lines) + "\n"
