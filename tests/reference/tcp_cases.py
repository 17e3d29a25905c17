"""Cases of kind `tcp` for check_packet.py: messages on connections of TCP over a graph with a queue for each direction
of each link. Times are exact in the order of scheduling, and in Orrery's own order where no equal times matter
(`order_free`); elsewhere the last and the mean time keep the bounds of `any_order`."""

import collections

import flow_lists

CONTROLS = {"NewReno": "newreno", "Cubic": "cubic", "Dctcp": "dctcp"}


def next_nodes(inputs):
    """Returns the next node for each [node, host]: that of the first link on a shortest path, or as `routes` says."""
    hosts, switches = inputs["nodes"]
    neighbours = [[] for _ in range(hosts + switches)]
    for a, b, *_ in inputs["links"]:
        neighbours[a].append(b)
        neighbours[b].append(a)
    following = {}
    for host in range(hosts):
        distance, todo = {host: 0}, collections.deque([host])
        while todo:
            node = todo.popleft()
            for other in neighbours[node]:
                if other not in distance:
                    distance[other] = distance[node] + 1
                    todo.append(other)
        for node, far in distance.items():
            if node != host:
                following[node, host] = next(n for n in neighbours[node] if distance.get(n) == far - 1)
    following.update({(node, host): other for node, host, other in inputs.get("routes") or []})
    return following


def queue(size):
    return f"{size} B" if size else "none"


def graph_of(inputs):
    hosts, switches = inputs["nodes"]
    links = [
        [a, b, f"{rate} b/s", f"{delay} ps", [queue(there), queue(back)]]
        for a, b, rate, delay, there, back in inputs["links"]
    ]
    table = [[node, host, other] for (node, host), other in sorted(next_nodes(inputs).items())]
    return {"hosts": hosts, "switches": switches, "links": links, "routes": {"table": table}, "forwarding": True}


def packets_of(inputs):
    tcp = inputs["tcp"]
    packets = {
        "transport": "tcp",
        "control": CONTROLS[tcp["control"]],
        "tcp": {
            "mss": f"{tcp['mss']} B",
            "header": f"{tcp['header']} B",
            "initial-window": tcp["initial_window"],
            "delayed-ack": {
                "segments": tcp["delayed_ack"],
                "timeout": f"{tcp['delayed_ack_timeout_ns']} ns",
            },
            "min-rto": f"{tcp['min_rto_ns']} ns",
            "granularity": f"{tcp['clock_granularity_ns']} ns",
            "receive-buffer": f"{tcp['receive_buffer']} B",
        },
    }
    if tcp["mark_bytes"]:
        packets["discipline"] = "red"
        packets["marks"] = [["any", f"{tcp['mark_bytes']} B", f"{tcp['mark_bytes']} B", 1]]
    return packets


def scenario(inputs):
    """Returns the case as a FLOWS.yaml, which is JSON here."""
    ends = {number: (source, destination) for number, source, destination in inputs["connections"]}
    place = {message[0]: i for i, message in enumerate(inputs["messages"])}
    flows = []
    for _, connection, size, start, *after in inputs["messages"]:
        source, destination = ends[connection]
        flow = {"from": source, "to": destination, "size": f"{size} B", "start": f"{start} ps"}
        flow["connection"] = connection
        if after:
            flow["after"] = [place[number] for number in after]
        flows.append(flow)
    return {
        "system": {"network": {"graph": graph_of(inputs), "packets": packets_of(inputs)}},
        "workload": {"flows": flows},
    }


def times_of(inputs, results):
    """Returns [number, begun, there] of each message, ascending."""
    flows = zip(inputs["messages"], results["flows"])
    return sorted([message[0], flow["start_ps"], flow["received_ps"]] for message, flow in flows)


def counts_of(results):
    """Returns how many segments were sent again, and how many packets were dropped and marked."""
    ports = results["ports"]
    return {
        "retransmitted": sum(connection["repeated"] for connection in results["connections"]),
        "drops": sum(port["drops"] for port in ports),
        "marks": sum(port["marks"] for port in ports),
    }


def figures(times):
    """Returns when the last message was there, and how long one took in the mean, in us."""
    return {
        "last": max(there for _, _, there in times) / 1e6,
        "mean": sum(there - begun for _, begun, there in times) / len(times) / 1e6,
    }


def difference(times, expected):
    """Returns the greatest difference of two lists of times in ps."""
    return max(abs(mine[i] - other[i]) for mine, other in zip(times, expected) for i in (1, 2))


def check_exact(name, times, results, expected, limit, texts):
    """Compares all times and counts. Returns whether they agree."""
    worst = difference(times, expected["messages"])
    counts = counts_of(results)
    wrong = [key for key, value in counts.items() if key in expected and value != expected[key]]
    texts.append(f"{name} within {worst} ps" + "".join(f", {key} {counts[key]}/{expected[key]}" for key in wrong))
    return worst <= limit and not wrong


def check_bounds(times, expected, bounds, texts):
    """Compares the last and the mean time, where equal times have another order. Returns whether they agree."""
    mine, other, agrees = figures(times), figures(expected["messages"]), True
    for key, limit in bounds.items():
        error = mine[key] / other[key] - 1
        agrees = agrees and abs(error) <= limit + 1e-12
        texts.append(f"{key} {error:+.5f} ({limit})")
    return agrees


def is_exact_in_any_order(expected):
    """Returns whether no order of equal times changes a time. In some cases only the last time is free of it."""
    means = expected.get("other_orders", {}).get("mean_us", [])
    return expected.get("order_free", False) and all(abs(mean - expected["mean_us"]) < 1e-3 for mean in means)


def check(case, ranks):
    """Prints a line for the case. Returns whether it agrees."""
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    texts = []
    results = flow_lists.simulate(scenario(inputs), 0, "--scheduling-order")
    limit = tolerance["scheduling_order_ps"]
    agrees = check_exact("exact", times_of(inputs, results), results, expected, limit, texts)
    first = flow_lists.simulate(scenario(inputs), ranks[0])
    times = times_of(inputs, first)
    if is_exact_in_any_order(expected):
        agrees = check_exact("own order", times, first, expected, limit, texts) and agrees
    else:
        agrees = check_bounds(times, expected, tolerance["any_order"], texts) and agrees
    for number in ranks[1:]:
        other = flow_lists.simulate(scenario(inputs), number)
        equal = all(other[part] == first[part] for part in ("flows", "ports", "connections"))
        texts.append(f"{number} ranks {'equal' if equal else 'DIFFER'}")
        agrees = agrees and equal
    print(f"{case['id']:36} {'ok  ' if agrees else 'FAIL'} {'; '.join(texts)}", flush=True)
    return agrees
