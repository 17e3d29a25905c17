"""Runs of `orrery flows` for kinds of cases of check_packet.py that are lists of flows."""

import json
import pathlib
import tempfile

import harness


def simulate(scenario, ranks, *options):
    """Returns the results of a list, also if a flow or an operation never ends. Raises RuntimeError if the program refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = pathlib.Path(folder, "flows.yaml"), pathlib.Path(folder, "flows.json")
        source.write_text(json.dumps(scenario))
        outcome = harness.orrery("flows", source, f"--json={result}", *options, ranks=ranks, timeout=900)
        if outcome.code not in (0, 4):  # 4: something never ends
            raise RuntimeError(outcome.err.strip() or f"exit code {outcome.code}")
        return json.loads(result.read_text())
