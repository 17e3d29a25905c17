"""Draws tensors that nodes list, and computes what they take of the local memory by docs/memory.md, Capacity."""
import collections


def pairs(values):
    """Returns the tensors of an attribute "inputs" or "outputs" as [(name, bytes)]. An entry without bytes is no tensor."""
    return [(name, int(float(size))) for name, size in zip(values[::2], values[1::2]) if float(size) > 0]


def ancestors(nodes):
    """Returns for each id a number whose bit i tells whether the node depends on node i of `nodes`, near or far."""
    number = {node.id: i for i, node in enumerate(nodes)}
    after = collections.defaultdict(list)
    missing, found = {}, {node.id: 0 for node in nodes}
    for node in nodes:
        before = {d for d in (*node.data_deps, *node.ctrl_deps) if d in number}
        missing[node.id] = len(before)
        for d in before:
            after[d].append(node.id)
    ready = [id for id, count in missing.items() if count == 0]
    while ready:
        id = ready.pop()
        for successor in after[id]:
            found[successor] |= found[id] | 1 << number[id]
            missing[successor] -= 1
            if missing[successor] == 0:
                ready.append(successor)
    assert not any(missing.values()), "the trace has a cycle"
    return found


def list_tensors(nodes, rng, prefix=""):
    """Gives the nodes of a trace inputs and outputs. Of the nodes that list a tensor either all depend on the one that makes it, or
    none makes it."""
    before = ancestors(nodes)
    number = {node.id: i for i, node in enumerate(nodes)}
    lists = {node.id: ([], []) for node in nodes}

    def behind(chosen):
        return [node.id for node in nodes if all(before[node.id] >> number[c] & 1 for c in chosen)]

    for i in range(rng.randint(0, 2 * len(nodes))):
        tensor = [f"{prefix}t{i}", str(rng.choice([0, 1, 7, 100, 1000, 2**20, rng.randint(1, 10**12)]))]
        makers = [rng.choice(nodes).id] if rng.random() < 0.7 else []
        possible = behind(makers)
        readers = rng.sample(possible, min(len(possible), rng.choice([0, 1, 1, 2, 3] if makers else [1, 2, 3])))
        updaters = behind(makers + readers)
        updaters = [rng.choice(updaters)] if updaters and rng.random() < 0.3 else []
        later = behind(makers + readers + updaters) if updaters and rng.random() < 0.5 else []
        for id in readers + updaters + later[:2]:
            lists[id][0].extend(tensor)
        for id in makers + updaters:
            lists[id][1].extend(tensor)
    for node in nodes:
        inputs, outputs = lists[node.id]
        if inputs or rng.random() < 0.2:
            node.attributes["inputs"] = inputs
        if outputs or rng.random() < 0.2:
            node.attributes["outputs"] = outputs


def usage(nodes, spans, end):
    """Returns the usage of one iteration from 0 to `end` as [(time, bytes)], one pair for each time at which it changes; spans: {id:
    (start, finish)}."""
    before = ancestors(nodes)
    number = {node.id: i for i, node in enumerate(nodes)}
    sizes, uses = {}, collections.defaultdict(dict)
    for node in nodes:
        for key, which in (("inputs", 0), ("outputs", 1)):
            for name, size in pairs(node.attributes.get(key, [])):
                assert sizes.setdefault(name, size) == size
                uses[name].setdefault(node.id, [False, False])[which] = True
    change = collections.Counter({0: 0})
    for name, users in uses.items():
        last = [id for id in users if not any(before[other] >> number[id] & 1 for other in users)]
        assert len({users[id][1] for id in last}) == 1, f"{name}: which of {last} is the last is open"
        is_made = any(makes and not needs for needs, makes in users.values())
        change[min(spans[id][0] for id in users) if is_made else 0] += sizes[name]
        change[end if users[last[0]][1] else max(spans[id][1] for id in users)] -= sizes[name]
    steps, now = [], 0
    for time in sorted(change):
        now += change[time]
        if time < end and (not steps or steps[-1][1] != now):
            steps.append((time, now))
    return steps + ([(end, 0)] if not steps or steps[-1][1] != 0 else [])


def peak(steps):
    """Returns (bytes, the first time of so many) of a usage, whose last pair ends the run."""
    most = max([size for _, size in steps[:-1]], default=0)
    return (most, next(time for time, size in steps if size == most)) if most else (0, 0)
