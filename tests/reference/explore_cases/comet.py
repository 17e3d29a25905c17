"""COMET (arXiv 2211.16648): the price of its cluster, a product, collectives, one layer, and the published run of 18 layers and 10 passes.

COMET's workload files are text workloads of ASTRA-sim 1.0 with more columns (docs/inputs.md). The checks write such files from the figures of a
case and let Orrery read them. ASTRA-sim 1.0 spends a cycle of 1 ns in each change of state, which Orrery does not; the checks that repeat a run
to the nanosecond put these cycles into the recorded durations."""
import math
import pathlib
import re
import sys
import tempfile

import chakra
import h5py
import harness
from explore_cases import steps
from explore_cases.outcome import Outcome, has, judged, unmade

sys.path.insert(0, str(harness.SOURCE / "scripts/studies"))
import comet_clusters as study  # noqa: E402

# The base cluster: 16 x 64 NPUs behind switches, 6 links of 25 and one of 12.5 GiB/s; model parallelism of 128 NPUs takes 8 of the 64.
DIMENSIONS = [
    {"shape": "Switch", "size": 16, "links": 6, "bandwidth": "25 GiB/s per link", "cost_class": "Package"},
    {"shape": "Switch", "size": 64, "links": 1, "bandwidth": "12.5 GiB/s per link", "cost_class": "Pod"},
]
MODEL, SAMPLE = (
    128,
    "workload: {model: {kind: layers, layers: [{name: a, parameters: 1000, flops: 1000000, activations: 1}]}, parallel: {dp: %d}}\n",
)
PASSES, UPDATE_NS = 10, 10
BYTES = {"MiB": 2**20, "GiB": 2**30}


def amount(text):
    return float(re.match(r"[\d.]+", str(text))[0])


def collectives(num_dimensions):
    """The key collectives of COMET's input."""
    algorithms = ", ".join(["halvingDoubling"] * num_dimensions)
    kinds = "".join(f"{kind}: [{algorithms}], " for kind in ("all-reduce", "all-gather", "reduce-scatter"))
    return f"  collectives: {{{kinds}optimization: localBWAware, chunks: 64, active-chunks: 1, endpoint-delay: 1 ns}}\n"


def network(sizes, dimensions=DIMENSIONS):
    """The key network. sizes: (dimension, NPUs of it)."""
    links = {
        "Switch": lambda d, size: d["links"],
        "Ring": lambda d, size: d["links"] / 2,
        "FullyConnected": lambda d, size: d["links"] / (size - 1),
    }
    rows = [
        f"      - {{shape: {d['shape']}, size: {size}, bandwidth: {amount(d['bandwidth']) * links[d['shape']](d, size)} GiB/s, latency: 1 ns}}\n"
        for d, size in ((dimensions[i], size) for i, size in sizes)
    ]
    return "  network:\n    dimensions:\n" + "".join(rows)


def price(case):
    """The price of the cluster, with the preset comet-2021."""
    dimensions = case["config"].get("dimensions") or case["file"].get("system", {}).get("dimensions") or DIMENSIONS
    tiers = ", ".join(d["cost_class"].lower() for d in dimensions)
    npus = math.prod(d["size"] for d in dimensions)
    text = (
        "system:\n"
        + network([(i, d["size"]) for i, d in enumerate(dimensions)], dimensions)
        + "  compute: {model: roofline, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}\n"
        f"cost: {{base: comet-2021, tiers: [{tiers}]}}\n" + SAMPLE % npus
    )
    return judged(
        case, float(steps.metrics_of(text, ("capex",))[0]), case["expected"]["total_usd"], case["tolerance"], "capex"
    )


def product(case):
    """A product at the peak takes 2 m k n / peak. It is the forward pass of a layer, whose step takes three times that."""
    size = case["config"]
    flops = 2 * size["M"] * size["K"] * size["N"]
    text = (
        "system:\n  network: {dimensions: [{shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 1 ns}]}\n"
        f"  compute: {{model: roofline, peak: {size['peak']}, local-memory: {{bandwidth: 1000 TB/s}}}}\nworkload:\n"
        f"  model: {{kind: layers, layers: [{{name: a, parameters: 0, flops: {flops}, activations: 1}}]}}\n  parallel: {{dp: 2}}\n"
    )
    return judged(case, steps.seconds([text])[0] / 3 * 1e6, case["expected"]["us"], case["tolerance"], "microseconds")


def sizes_of(group):
    """[(dimension, NPUs of it)] of "128 NPUs = dimension 0 (16) x 8 of dimension 1", or "8 NPUs = 8 of dimension 1"."""
    npus = int(re.search(r"\d+", group)[0])
    if npus > 16:
        return [(0, 16), (1, npus // 16)]
    return [(0 if re.search(r"dimension 0|inner|package", group) else 1, npus)]


def collective(case):
    """A collective on the NPUs of a group."""
    config = case["config"]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "comet.yaml"
        file.write_text(
            "system:\n  rules: astra-sim\n" + network(sizes := sizes_of(config["group"])) + collectives(len(sizes))
        )
        done = harness.orrery(
            "show", "collective", file, f"--kind={config['collective']}", f"--bytes={config['bytes']} B"
        )
    found = re.search(r"^last_done_ps: (\d+)", done.out, re.M)
    if done.code or not found:
        return Outcome(case["id"], False, done.err.strip()[:200])
    return judged(case, int(found[1]) / 1e6, case["expected"]["us"], case["tolerance"], "microseconds")


class Workload:
    """Layers, each (name, [forward, input gradient, weight gradient]) with a pass as (ns, kind, bytes); checkpoints {layer: where it begins}."""

    def __init__(self, layers, again=None, update_ns=UPDATE_NS):
        self.layers, self.again, self.update_ns = layers, again or {}, update_ns

    def text(self, model_parallel=MODEL):
        again = sorted(self.again)
        lines = [
            f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {model_parallel} checkpoints: {len(again)} {' '.join(str(self.again[i]) for i in again)} "
            f"checkpoint_initiates: {len(again)} {' '.join(map(str, again))}",
            str(len(self.layers)),
        ]
        for name, passes in self.layers:
            columns = " ".join(f"0 0 {ns} {kind} {size}" for ns, kind, size in passes)
            lines.append(f"{name} -1 {columns} {self.update_ns}")
        return "\n".join(lines) + "\n"

    def simulated(self, folder, iterations, recorded=None):
        """The finish time in ns of so many passes. recorded: {name of a collective: ns}; then collectives take these times, and changes of
        state 1 ns each."""
        (folder / "comet.txt").write_text(self.text())
        head = "system:\n" + network([(0, 16), (1, 8), (1, 8)]) + collectives(3)
        config = folder / "comet.yaml"
        config.write_text(head + "workload: {traces: comet.txt, streams: dimension}\n")
        options = [
            "--fold",
            "--progress=none",
            "--record-iterations=0",
            f"--iterations={iterations}",
            f"--output={folder / 'comet.h5'}",
            "--force",
        ]
        if recorded is not None:
            chakra.write(folder / "recorded.et", self.nodes(folder, recorded))
            config.write_text(head + "workload: {traces: {all: recorded.et}, streams: dimension}\n")
            options.append("--communication-durations=recorded")
        done = harness.orrery("run", config, *options)
        if done.code:
            raise ValueError(done.err.strip()[:300])
        with h5py.File(folder / "comet.h5") as file:
            return int(max(file["/npus/finish_time"])) / 1000

    def nodes(self, folder, recorded):
        """The nodes of an NPU, with recorded durations of collectives, and with the changes of state in those of compute nodes."""
        prefix = folder / "converted"
        (folder / "small.txt").write_text(self.text(2))
        done = harness.orrery("convert", folder / "small.txt", "--npus=4", f"--output={prefix}", "--force")
        if done.code:
            raise ValueError(done.err.strip()[:300])
        nodes, initiators = chakra.read(f"{prefix}.0.et"), {f"{self.layers[i][0]} forward" for i in self.again.values()}
        forward_of = {}
        for node in nodes:
            if node.type == chakra.COLL:
                is_data_parallel = " weight-gradient " in node.name
                node.attributes.pop("pg_name", None)
                node.attributes["involved_dim"] = [not is_data_parallel, not is_data_parallel, is_data_parallel]
                if node.name in recorded:
                    node.attributes["duration_ps"] = recorded[node.name] * 1000
            elif not node.attributes.get("is_cpu_op"):
                forward_of[node.name] = forward_of.get(node.name, 0) + 1
                starts_again = node.name in initiators and forward_of[node.name] == 2
                node.attributes["duration_ps"] = chakra_number(
                    node.attributes.get("duration_ps", node.duration * 10**6)
                ) + 1000 * (2 if starts_again else 1)
        return nodes


def chakra_number(value):
    return getattr(value, "value", value)


NAMES = ("Q", "K", "V", "QK", "softmax", "Concat", "XW1", "XW2", "layer norm")
KINDS = {"all-reduce": "ALLREDUCE", "all-gather": "ALLGATHER"}


def named(text):
    return re.findall(r"\b(?:" + "|".join(sorted(NAMES, key=len, reverse=True)) + r")\b", text)


def collectives_of(text):
    """{layer: (kind, bytes)} of a text such as "all-reduce 9 MiB for Q, K; 36 MiB for XW1"."""
    found, kind = {}, None
    parts = re.split(r"(?:(all-reduce|all-gather) )?(\d+) (MiB|GiB)", text)
    for i in range(1, len(parts), 4):
        kind = parts[i] or kind
        for name in named(parts[i + 3]):
            found[name] = (KINDS[kind], int(parts[i + 1]) * BYTES[parts[i + 2]])
    return found


def published_run(case):
    """The run of all layers: with simulated collectives, and with the published times of collectives, to the nanosecond."""
    config, expected = case["config"], case["expected"]
    count, passes = int(re.search(r"(\d+) layers", config["workload"])[1]), config["passes"]
    checkpoints, initiators = (
        [int(n) for n in re.findall(r"\d+", part)]
        for part in re.search(r"checkpoints (.*?), recomputation started at (.*)", config["workload"]).groups()
    )
    again = {i: max(c for c in checkpoints if c <= i) for i in initiators}
    repeated = {i for end, begin in again.items() for i in range(begin, end)}
    # The times are sums over passes, divided by two forward passes each. A layer that is not repeated has one, so its time is twice that: that
    # of the layer norm is then the one of its product in COMET's input, 2 x 262144 x 24576 x 24576 / 7680 TFLOPS (in single precision).
    times = {
        name: ns
        for names, ns in config["compute_ns_per_layer_and_pass"].items()
        for name in named(names.split(" (")[0])
    }
    by_pass = [
        collectives_of(config["collectives_per_pass"][key]) for key in ("forward", "input gradient", "weight gradient")
    ]
    layers = []
    for i in range(count):
        name = NAMES[i % len(NAMES)]
        ns = times[name] * (1 if i in repeated else 2)
        layers.append(
            (f"{name.replace(' ', '')}{i // len(NAMES) + 1}", [(ns, *of.get(name, ("NONE", 0))) for of in by_pass])
        )
    workload = Workload(layers, again)
    reduce, gather = (
        expected["forward_all_reduce_ns_each"] - UPDATE_NS,
        expected["input_gradient_all_gather_ns_each"] - UPDATE_NS,
    )
    recorded = {
        f"{name} {which} {passes_of[i][1]}": {"ALLREDUCE": reduce, "ALLGATHER": gather}[passes_of[i][1]]
        for name, passes_of in layers
        for i, which in enumerate(("forward", "input-gradient"))
        if passes_of[i][1] != "NONE"
    }
    with tempfile.TemporaryDirectory(prefix="orrery-explore-") as name:
        simulated = workload.simulated(pathlib.Path(name), passes)
        repeating = workload.simulated(pathlib.Path(name), passes, recorded)
    error = simulated / expected["finish_ns"] - 1
    return Outcome(
        case["id"],
        repeating == expected["finish_ns"] and abs(error) <= case["tolerance"],
        f"{repeating:.0f} ns with recorded durations, {simulated:.0f} ns with simulated collectives ({100 * error:+.3f} %), "
        f"expected {expected['finish_ns']}",
    )


def one_layer(case):
    """The validation layer: one product, whose input gradient travels while the weight gradient is computed."""
    config, expected = case["config"], case["expected"]
    m, k, n = (config.get(key, value) for key, value in (("M", 131072), ("K", 24576), ("N", 192)))
    ns = int(2 * m * k * n / (amount(config.get("peak", "125 TFLOPS")) * 1000))
    layer = ("Q1", [(ns, "NONE", 0), (ns, "ALLREDUCE", 6 * 2**30), (ns, "ALLREDUCE", 9 * 2**20)])
    with tempfile.TemporaryDirectory(prefix="orrery-explore-") as name:
        finish = Workload([layer], update_ns=1).simulated(pathlib.Path(name), 1)
    found = {True: finish - 3 * ns, False: finish}
    outcomes = []
    for key, value in expected.items():
        if isinstance(value, (int, float)):
            scale = 1 if key.endswith("ns") else 1e-3 if key.endswith("us") or value < 10**6 else 1
            outcomes.append(judged(case, found["exposed" in key] * scale, value, case["tolerance"] or 0.01, key))
    if not outcomes:
        return Outcome(case["id"], None, "nothing is expected of the layer")
    return Outcome(
        case["id"], all(outcome.held for outcome in outcomes), "; ".join(outcome.text for outcome in outcomes)
    )


def claims(case):
    """Do public clusters, and memory beside the local one, differ as much as is claimed? Which clusters COMET compared is not known, so a claim
    is held if what is found on public machines reaches it: the slowest against the fastest of them, and the largest gain of a plan that needs
    more than the local memory over the best one that does not."""
    expected, limits = case["expected"], {}
    with tempfile.TemporaryDirectory(prefix="orrery-explore-") as name:
        explorer = study.Explorer(harness.BINARY, pathlib.Path(name))
        free = [
            explorer.best(None, settings, study.plans(base))["step_time"]
            for base, settings in (study.cluster(explorer, cluster, free=True) for cluster in study.EXTREMES)
        ]
        limits["cluster_configurations_differ_by_up_to"] = max(free) / min(free)
        without, beside = (
            explorer.best(None, {}, study.plans(study.BASE, more))
            for more in (None, study.beside(max(study.BANDWIDTHS)))
        )
        limits["memory_expansion_gains_up_to"] = without["step_time"] / beside["step_time"]
    return Outcome(
        case["id"],
        all(limits[key] >= value for key, value in expected.items()),
        "; ".join(f"{key} {value}, here {limits[key]:.2f}" for key, value in expected.items()),
    )


def check_of(case):
    """What computes a case, by what it gives and expects."""
    config = case["config"]
    if has(case, "expected", "cluster_configurations_differ_by_up_to") or has(
        case, "expected", "memory_expansion_gains_up_to"
    ):
        return claims
    if "cost_classes_usd_per_GBps" in config or "comet" in str(config.get("from", "")):
        return price
    if "collective" in config and "bytes" in config:
        return collective
    if "compute_ns_per_layer_and_pass" in config:
        return published_run
    if "layer" in " ".join(map(str, (*config, *config.values(), case["id"]))).lower() and "collective" not in config:
        return one_layer if "M" not in config or any("exposed" in key for key in case["expected"]) else product
    return product if has(case, "config", "M", "K", "N") else None


def is_own(case):
    if has(case, "config", "layers", "hidden") or has(case, "config", "model") or has(case, "expected", "optimal_bw"):
        return False
    return check_of(case) is not None


def check(cases, quick):
    for case in cases:
        test = check_of(case)
        if quick and test is claims:
            continue
        try:
            yield test(case)
        except (ValueError, KeyError, TypeError, StopIteration) as error:
            yield unmade(case, error)
