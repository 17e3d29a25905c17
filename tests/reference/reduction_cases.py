"""Cases of kind `reduction` for check_packet.py: operations over trees of switches. Each operation is over at the time
that the file expects, to within its tolerance, on any number of ranks and in both orders of simultaneous events."""

import json
import pathlib
import tempfile

import harness


def scenario(inputs):
    """Returns the case as a FLOWS.yaml, which is JSON here."""
    hosts, switches = inputs["nodes"]
    rules, operations = inputs["reduction"], inputs["operations"]
    most_trees = rules.get("most_trees", len(inputs["trees"]))
    packets = {
        "payload": f"{rules['payload']} B",
        "header": f"{rules['header']} B",
        "reduction": {
            "slots": rules["slots"],
            "delay": f"{rules['delay_ps']} ps",
            "most-trees": most_trees,
            "operations": rules.get("operations", len(operations)),
        },
    }
    if "buffer" in rules:
        packets["buffer"] = f"{rules['buffer']} B"
    links = [[a, b, f"{rate} b/s", f"{delay} ps"] for a, b, rate, delay in inputs["links"]]
    return {
        "system": {"network": {"graph": {"hosts": hosts, "switches": switches, "links": links}, "packets": packets}},
        "workload": {
            "trees": inputs["trees"],
            "reductions": [
                {
                    "tree": operation["tree"],
                    "size": f"{operation['bytes']} B",
                    "start": f"{operation['start']} ps",
                    "hosts": operation["hosts"],
                    **late(operation),
                }
                for operation in operations
            ],
        },
    }


def late(operation):
    rows = [[int(host), f"{time} ps"] for host, time in operation.get("late", {}).items()]
    return {"late": rows} if rows else {}


def simulate(inputs, ranks, *options):
    """Returns the results of a case. Raises RuntimeError if the program refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = pathlib.Path(folder, "flows.yaml"), pathlib.Path(folder, "flows.json")
        source.write_text(json.dumps(scenario(inputs)))
        outcome = harness.orrery("flows", source, f"--json={result}", *options, ranks=ranks, timeout=900)
        if outcome.code not in (0, 4):  # 4: an operation never ends
            raise RuntimeError(outcome.err.strip() or f"exit code {outcome.code}")
        return json.loads(result.read_text())


def ends(results):
    return [reduction["end_ps"] for reduction in results["reductions"]]


def check(case, ranks):
    """Prints a line for a case. Returns whether it agrees."""
    inputs, expected = case["inputs"], dict(map(tuple, case["expected"]["operations"]))
    times = [expected[operation["id"]] for operation in inputs["operations"]]
    allowed, share = case["tolerance"].get("scheduling_order_ps", 0), case["tolerance"].get("last", 0)
    texts, agrees = [], True
    for name, number, *options in [("as ns-3", 0, "--scheduling-order"), *((f"{n} ranks", n) for n in ranks)]:
        mine = ends(simulate(inputs, number, *options))
        worst = max(abs(a - b) for a, b in zip(mine, times))
        last = max(mine) / max(times) - 1
        agrees = agrees and worst <= max(allowed, share * max(times)) and abs(last) <= share
        texts.append(f"{name}: worst {worst} ps")
    print(f"{case['id']:36} {'ok  ' if agrees else 'FAIL'} {'; '.join(texts)}", flush=True)
    return agrees
