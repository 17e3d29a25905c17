"""Chakra traces as JSON: nodes, types, host work, recorded time and dependencies."""
import json

import harness


def shown(path):
    """Returns what `show trace` prints of a file, or its message."""
    outcome = harness.orrery("show", "trace", path, "--json")
    return json.loads(outcome.out) if outcome.code == 0 else outcome.err.strip()


def absent(figures):
    """Returns how many dependencies on nodes that are not there the program left out."""
    for entry in figures.get("warnings", []):
        text, count = (entry["text"], entry["count"]) if isinstance(entry, dict) else (entry, None)
        if "does not hold" in text:
            return count
    return 0


def check(folder, facts):
    for fact in facts:
        figures = shown(folder / fact["file"])
        if isinstance(figures, str):
            yield fact["file"], f"refused: {figures}"
            continue
        kinds = figures["kinds"]
        pairs = [
            ("nodes", figures["nodes"], fact["nodes"]),
            ("host work", kinds.get("cpu", 0), fact["cpu"]),
            ("others", sum(kinds.values()), fact["nodes"]),
            ("recorded us", figures["recorded_duration_ps"] / 1e6, fact["runtime_us"]),
            ("dependencies", figures["dependencies"], fact["dependencies"] - fact["dangling"]),
        ]
        if absent(figures) is not None:
            pairs.append(("dangling", absent(figures), fact["dangling"]))
        yield fact["file"], "; ".join(
            f"{what}: {found}, expected {expected}" for what, found, expected in pairs if found != expected
        )
