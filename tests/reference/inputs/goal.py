"""Schedules in GOAL: the operations that `orrery convert` finds in them, all ranks together."""
import collections
import pathlib
import tempfile

import chakra
import harness


def found_in(path, ranks):
    """Returns the facts of a schedule as the traces say them that it is converted to."""
    counts = collections.Counter()
    sent, received = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        outcome = harness.orrery("convert", path, "--output", pathlib.Path(name) / "t")
        if outcome.code:
            return "; ".join(harness.errors(outcome))
        for rank in range(ranks):
            for node in chakra.read(pathlib.Path(name) / f"t.{rank}.et"):
                values = {name: getattr(value, "value", value) for name, value in node.attributes.items()}
                if node.type == chakra.COMP:
                    counts["calc"] += 1
                    counts["calc_ns"] += values.get("duration_ps", node.duration * 1_000_000) // 1000
                    continue
                sends = node.type == chakra.SEND
                counts["send" if sends else "recv"] += 1
                counts["bytes_sent"] += sends * values["comm_size"]
                ends = (rank, values["comm_dst"]) if sends else (values["comm_src"], rank)
                (sent if sends else received)[(*ends, values.get("comm_tag", 0), values["comm_size"])] += 1
    return {"ranks": ranks, **counts, "matched": sent == received}


def check(folder, facts):
    for one in facts:
        found = found_in(folder / one["file"], one["ranks"])
        expected = {key: value for key, value in one.items() if key not in ("file", "requires", "irequires")}
        if isinstance(found, dict):
            found.setdefault("calc_ns", 0)
        yield one["file"], "" if found == expected else f"found {found}, expected {expected}"
