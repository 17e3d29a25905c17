"""Prices of networks and clusters: COMET, LIBRA, a public list; and the parts of COMET's published run that have their inputs in the case."""
import pathlib
import re
import tempfile

import harness
from explore_cases import steps
from explore_cases.outcome import Outcome, judged

PREFIXES = ("comet-", "price-", "power-", "libra-")
STEP = "workload: {model: {kind: layers, layers: [{name: a, parameters: 1000, flops: 1000000, activations: 1}]}, parallel: {dp: %d}}\n"
COMET_NETWORK = ("  network:\n    dimensions:\n      - {shape: Switch, size: 16, bandwidth: 150 GiB/s, latency: 1 ns}\n"
                 "      - {shape: Switch, size: %d, bandwidth: 12.5 GiB/s, latency: 1 ns}\n")


def metric(case, text, name, expected, tolerance):
    return judged(case, float(steps.metrics_of(text, (name,))[0]), expected, tolerance, name)


def comet_price(case):
    text = ("system:\n" + COMET_NETWORK % 64 + "  compute: {model: roofline, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}\n"
            "cost: {base: comet-2021, tiers: [package, pod]}\n" + STEP % 1024)
    return metric(case, text, "capex", case["expected"]["total_usd"], case["tolerance"])


def comet_product(case):
    """A product at the peak takes 2 m k n / peak. It is the forward pass of a layer, whose step takes three times that."""
    size = case["config"]
    flops = 2 * size["M"] * size["K"] * size["N"]
    text = ("system:\n  network: {dimensions: [{shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 1 ns}]}\n"
            f"  compute: {{model: roofline, peak: {size['peak']}, local-memory: {{bandwidth: 1000 TB/s}}}}\nworkload:\n"
            f"  model: {{kind: layers, layers: [{{name: a, parameters: 0, flops: {flops}, activations: 1}}]}}\n  parallel: {{dp: 2}}\n")
    return judged(case, steps.seconds([text])[0] / 3 * 1e6, case["expected"]["us"], case["tolerance"], "microseconds")


def comet_all_reduce(case):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "comet.yaml"
        file.write_text("system:\n  rules: astra-sim\n" + COMET_NETWORK % 8
                        + "  collectives: {all-reduce: [halvingDoubling, halvingDoubling], optimization: localBWAware, chunks: 64, active-chunks: 1, "
                          "endpoint-delay: 1 ns}\n")
        done = harness.orrery("show", "collective", file, "--kind=all-reduce", f"--bytes={case['config']['bytes']} B")
    found = re.search(r"^last_done_ps: (\d+)", done.out, re.M)
    if done.code or not found:
        return Outcome(case["id"], False, done.err.strip()[:200])
    return judged(case, int(found[1]) / 1e6, case["expected"]["us"], case["tolerance"], "microseconds")


def nodes_of_h100(case):
    nodes = case["config"]["nodes"]
    text = (f"system: {{base: dgx-h100-superpod, network: {{dimensions: [{{shape: Switch, size: 8, bandwidth: 450 GB/s, latency: 468 ns}}, "
            "{shape: Switch, size: 32, bandwidth: 400 Gb/s, latency: 1 us}, "
            f"{{shape: Switch, size: {nodes // 32}, bandwidth: 400 Gb/s, latency: 1 us}}]}}}}\ncost: h100-2024-08\n" + STEP % (8 * nodes))
    return metric(case, text, "capex", case["expected"]["total_usd"], case["tolerance"])


def power(case):
    """NPUs that draw as much when idle make the power that of the servers at most."""
    at = case["config"]
    text = ("system: {base: dgx-h100-superpod}\n"
            f"cost: {{base: h100-2024-08, npu: {{busy-power: {at['gpu_w']}, idle-power: {at['gpu_w']}}}, "
            f"host: {{npus: 8, power: {at['server_max_w'] - 8 * at['gpu_w']}}}, operation: {{pue: {at['pue']}}}}}\n" + STEP % (8 * at["servers"]))
    return metric(case, text, "power", 1000 * case["expected"]["facility_kw"], case["tolerance"])


def libra(case):
    """The network's price with equal bandwidths and at the published optimum. The times need LIBRA's workloads, which cases do not have."""
    shapes = [(shape, int(size)) for shape, size in (part.split() for part in case["config"]["network"].split(", "))]
    npus = 1
    for _, size in shapes:
        npus *= size
    equal = [case["config"]["total_bandwidth"] / len(shapes)] * len(shapes)
    errors = []
    for bandwidths, expected in ((equal, "network_cost_equal"), (case["expected"]["optimal_bw"], "network_cost_at_optimum")):
        dimensions = [f"{{shape: {shape}, size: {size}, bandwidth: {bandwidth / {'Ring': 2, 'FullyConnected': size - 1, 'Switch': 1}[shape]} GB/s, latency: 1 ns}}"
                      for (shape, size), bandwidth in zip(shapes, bandwidths)]
        text = (f"system: {{network: {{dimensions: [{', '.join(dimensions)}]}}, "
                "compute: {model: roofline, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}}\ncost: libra-2024\n" + STEP % npus)
        errors.append(float(steps.metrics_of(text, ("capex",))[0]) / case["expected"][expected] - 1)
    return Outcome(case["id"], max(map(abs, errors)) < 1e-3, f"prices differ by {100 * errors[0]:+.4f} and {100 * errors[1]:+.4f} %; "
                   "the time is not checked: it needs LIBRA's workload file")


CHECKS = {"comet-cost": comet_price, "price-comet-network": comet_price, "comet-gemm": comet_product, "comet-allreduce": comet_all_reduce,
          "price-h100-nodes": nodes_of_h100, "power-dgx-h100": power, "libra-": libra}


def check(cases, _):
    for case in cases:
        test = next((test for prefix, test in CHECKS.items() if case["id"].startswith(prefix)), None)
        if test is not None:
            yield test(case)
        elif "workload" in case["config"]:
            yield Outcome(case["id"], None, f"it needs the file {case['config']['workload'].split(':')[0]}, which no case has")
        else:
            yield Outcome(case["id"], None, "a claim without inputs, or no check for this id")
