"""Prices and power of a cluster of H100, from public lists."""
from explore_cases import steps
from explore_cases.outcome import has, judged, unmade

STEP = "workload: {model: {kind: layers, layers: [{name: a, parameters: 1000, flops: 1000000, activations: 1}]}, parallel: {dp: %d}}\n"


def metric(case, text, name, expected, tolerance):
    return judged(case, float(steps.metrics_of(text, (name,))[0]), expected, tolerance, name)


def nodes_of_h100(case):
    """The price of servers of 8, with the prices of the case, and of the switches of two tiers: a leaf switch leads 32 of its ports down."""
    prices = case["config"]
    nodes, switch = prices["nodes"], prices["switch_usd"]
    text = (
        f"system: {{base: dgx-h100-superpod, network: {{dimensions: [{{shape: Switch, size: 8, bandwidth: 450 GB/s, latency: 468 ns}}, "
        "{shape: Switch, size: 32, bandwidth: 400 Gb/s, latency: 1 us}, "
        f"{{shape: Switch, size: {nodes // 32}, bandwidth: 400 Gb/s, latency: 1 us}}]}}}}\ncost:\n  base: h100-2024-08\n"
        f"  host: {{npus: 8, price: {prices['node_usd']}, cables: {prices['cables_usd_per_node']}, facility: {prices['facility_usd_per_node']}, power: 4600}}\n"
        f"  network: [{{name: node}}, {{name: leaf, switch-price: {switch}, switch-ports: 32}}, {{name: spine, switch-price: {switch}, switch-ports: 64}}]\n"
        + STEP % (8 * nodes)
    )
    return metric(case, text, "capex", case["expected"]["total_usd"], case["tolerance"])


def power(case):
    """NPUs that draw as much when idle make the power that of the servers at most."""
    at = case["config"]
    text = (
        "system: {base: dgx-h100-superpod}\n"
        f"cost: {{base: h100-2024-08, npu: {{busy-power: {at['gpu_w']}, idle-power: {at['gpu_w']}}}, "
        f"host: {{npus: 8, power: {at['server_max_w'] - 8 * at['gpu_w']}}}, operation: {{pue: {at['pue']}}}}}\n"
        + STEP % (8 * at["servers"])
    )
    return metric(case, text, "power", 1000 * case["expected"]["facility_kw"], case["tolerance"])


def check_of(case):
    if has(case, "config", "node_usd") or has(case, "config", "switch_usd"):
        return nodes_of_h100
    return power if has(case, "config", "gpu_w") or has(case, "expected", "facility_kw") else None


def is_own(case):
    return check_of(case) is not None


def check(cases, _):
    for case in cases:
        try:
            yield check_of(case)(case)
        except (ValueError, KeyError, TypeError) as error:
            yield unmade(case, error)
