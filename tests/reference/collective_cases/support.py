"""What modules of cases share: runs of `orrery show collective`, and comparisons."""
import copy
import json

import harness


class Missed(ValueError):
    """What the program said is not what a case expects."""


def expect(condition, said):
    if not condition:
        raise Missed(said)


def expect_known(expected, *names):
    """Raises Missed if a case expects what nobody compares."""
    unknown = sorted(set(expected) - set(names))
    expect(not unknown, f"nothing compares {', '.join(unknown)}; expected some of {', '.join(names)}")


def is_near(value, expected, tolerance):
    return abs(value - expected) <= tolerance * abs(expected)


def show_collective(folder, configuration, kind, num_bytes, *arguments):
    """Returns what the program says of a collective of all NPUs of a configuration (a mapping), as JSON."""
    file = folder / "system.yaml"
    file.write_text(json.dumps(configuration))
    size = [] if kind == "barrier" else ["--bytes", f"{num_bytes} B"]
    ran = harness.orrery("show", "collective", file, "--kind", kind, *size, "--json", *arguments)
    if ran.code != 0:
        raise Missed(f"exit code {ran.code}: {ran.err.strip()[:300]}")
    return json.loads(ran.out)


def with_value(inputs, path, value):
    """Returns a copy of the inputs in which the value at a path such as dimensions.1.size is another one."""
    changed = copy.deepcopy(inputs)
    *heads, last = path.split(".")
    at = changed
    for head in heads:
        at = at[int(head)] if isinstance(at, list) else at[head]
    at[int(last) if isinstance(at, list) else last] = value
    return changed
