"""GOAL schedules: ranks, operations, bytes and computed time, and a receive for each send."""
import collections

import chakra
import converted


def found(path):
    """Returns the facts of a schedule as the program reads it. Dependencies on the start of an operation are not among them."""
    ranks = converted.nodes_of([path])
    counts, ends = collections.Counter(), collections.Counter()
    for rank, nodes in ranks.items():
        for node in nodes:
            counts["requires"] += len(node.data_deps)
            if node.type in (chakra.SEND, chakra.RECV):
                sends = node.type == chakra.SEND
                counts["send" if sends else "recv"] += 1
                size, tag = node.attributes["comm_size"], node.attributes["comm_tag"]
                counts["bytes_sent"] += size if sends else 0
                ends[node.attributes["comm_src"], node.attributes["comm_dst"], tag, size] += 1 if sends else -1
            else:
                counts["calc"] += 1
                counts["calc_ns"] += node.attributes.get("duration_ps", node.duration * 10**6) / 1000
    return dict(counts, ranks=len(ranks), matched=not any(ends.values()))


def check(folder, facts):
    for fact in facts:
        try:
            program = found(folder / fact["file"])
        except converted.Refused as refusal:
            yield fact["file"], f"refused: {refusal}"
            continue
        told = set(fact) - {"file", "irequires"} - ({"requires"} if "irequires" in fact else set())
        wrong = {key: (fact[key], program.get(key, 0)) for key in sorted(told) if fact[key] != program.get(key, 0)}
        yield fact["file"], f"(expected, found) {wrong}" if wrong else ""
