"""Cases of kind `reduction` for check_packet.py: operations over trees of switches. Each operation is over at the time
that the file expects in the order of scheduling. In Orrery's own order packets of several trees that come at one time
may change places."""

import flow_lists

OF_EQUAL_TIMES = 0.01  # share by which simultaneous packets may move the last time


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


def ends(results):
    return [reduction["end_ps"] for reduction in results["reductions"]]


def check(case, ranks):
    """Prints a line for a case. Returns whether it agrees: to the picosecond in the order of scheduling, and on each number
    of ranks with one answer, whose last time is that of the file unless simultaneous packets change places."""
    inputs, expected = case["inputs"], dict(map(tuple, case["expected"]["operations"]))
    times = [expected[operation["id"]] for operation in inputs["operations"]]
    mine = ends(flow_lists.simulate(scenario(inputs), 0, "--scheduling-order"))
    worst = max(abs(a - b) for a, b in zip(mine, times))
    agrees = worst <= case["tolerance"].get("scheduling_order_ps", 0)
    first = flow_lists.simulate(scenario(inputs), ranks[0])
    last = max(ends(first)) / max(times) - 1
    share = case["tolerance"].get("last", 0) if case["expected"].get("order_free") else OF_EQUAL_TIMES
    agrees = agrees and abs(last) <= share
    texts = [f"worst {worst} ps", f"own order: last {last:+.6f}"]
    for number in ranks[1:]:
        other = flow_lists.simulate(scenario(inputs), number)
        equal = all(other[part] == first[part] for part in ("reductions", "switches", "ports"))
        texts.append(f"{number} ranks {'equal' if equal else 'DIFFER'}")
        agrees = agrees and equal
    print(f"{case['id']:36} {'ok  ' if agrees else 'FAIL'} {'; '.join(texts)}", flush=True)
    return agrees
