"""Measured steps of a file, one a row, and the configurations that predict them.

The form of a row: id, kind ("training step"), group, hardware, gpus, config (JSON: model and parallel as in CONFIG.yaml; tp_overlap, whether
tensor-parallel collectives overlap with products; system, which may give scale_up, scale_out, latency, node and power_cap of the row's own
machine), precision, step_or_us (seconds) and source. Hardware and group choose the stack, unless a column `stack` names it.
"""
import collections
import csv
import json
import math
import os
import pathlib

# Of each hardware: the system preset, NPUs of a scale-up domain (none: a torus, whose slices are the replicas), bandwidth and latency of its
# links, bandwidth of NICs, changes of the preset's compute, and the hardware whose stacks it takes, the nearest first.
Hardware = collections.namedtuple("Hardware", "preset node scale_up latency scale_out compute stacks")
HARDWARE = {
    "a100": Hardware("dgx-a100-superpod", 8, "300 GB/s", "500 ns", "200 Gb/s", {}, ("a100",)),
    "a100-40": Hardware(
        "dgx-a100-superpod",
        8,
        "300 GB/s",
        "500 ns",
        "200 Gb/s",
        {"local-memory": {"bandwidth": "1555 GB/s", "size": "40960 MiB"}},
        ("a100-40", "a100"),
    ),
    "h100": Hardware("dgx-h100-superpod", 8, "450 GB/s", "468 ns", "400 Gb/s", {}, ("h100",)),
    "h100-tt": Hardware(
        "dgx-h100-superpod",
        8,
        "450 GB/s",
        "468 ns",
        "400 Gb/s",
        {"local-memory": {"bandwidth": "2400 GB/s", "size": "96 GB"}, "power-cap": 500},
        ("h100",),
    ),
    "h800": Hardware("dgx-h100-superpod", 8, "200 GB/s", "468 ns", "400 Gb/s", {}, ("h100",)),
    "h200": Hardware("hgx-h200", 8, "450 GB/s", "468 ns", "400 Gb/s", {}, ("h200", "h100")),
    "b200": Hardware("hgx-b200", 8, "900 GB/s", "400 ns", "400 Gb/s", {}, ("b200", "gb200")),
    "b300": Hardware("hgx-b300", 8, "900 GB/s", "400 ns", "800 Gb/s", {}, ("b300", "b200", "gb200")),
    "gb200": Hardware("gb200-nvl72", 64, "900 GB/s", "400 ns", "400 Gb/s", {}, ("gb200", "b200")),
    "gb300": Hardware("gb300-nvl72", 64, "900 GB/s", "400 ns", "800 Gb/s", {}, ("gb300", "gb200", "b200")),
    "mi300x": Hardware("mi300x-node", 8, "448 GB/s", "700 ns", "400 Gb/s", {}, ("mi300x",)),
    "mi325x": Hardware("mi325x-node", 8, "448 GB/s", "700 ns", "400 Gb/s", {}, ("mi325x", "mi300x")),
    "mi350x": Hardware("mi350x-node", 8, "537 GB/s", "700 ns", "400 Gb/s", {}, ("mi350x", "mi355x")),
    "mi355x": Hardware("mi355x-node", 8, "537 GB/s", "700 ns", "400 Gb/s", {}, ("mi355x",)),
    "tpu-v5e": Hardware("tpu-v5e-torus", None, "50 GB/s", "500 ns", "25 Gb/s", {}, ("tpu-v5e", "tpu-v5p")),
    "tpu-v5p": Hardware("tpu-v5p-torus", None, "100 GB/s", "500 ns", "50 Gb/s", {}, ("tpu-v5p",)),
    "tpu-v6e": Hardware("tpu-v6e-torus", None, "100 GB/s", "500 ns", "50 Gb/s", {}, ("tpu-v6e", "tpu-v5p")),
    "tpu-v7": Hardware("tpu-v7-torus", None, "100 GB/s", "500 ns", "100 Gb/s", {}, ("tpu-v7", "tpu-v5p")),
    "trn2": Hardware("trn2-ultraserver", 16, "320 GB/s", "1 us", "200 Gb/s", {}, ("trn2",)),
}
# Text in the group, and the software of its stack: the first that fits. A stack of another software stands in where the hardware has none.
SOFTWARE = [
    ("llm-foundry", "fsdp"),
    ("fms-fsdp", "fms-fsdp"),
    ("TorchTitan", "torchtitan"),
    ("AutoModel", "automodel"),
    ("MegaScale", "megascale"),
    ("DeepSpeed", "megatron-deepspeed"),
    ("BLOOM", "megatron-deepspeed"),
    ("InternEvo", "internevo"),
    ("HugeCTR", "hugectr"),
    ("DLRM", "hugectr"),
    ("NVFP4", "nemo-nvfp4"),
    ("MLPerf v5.1", "nemo-2025"),
    ("long sequence", "nemo-2025"),
    ("docs 25", "nemo-2025"),
    ("MLPerf 405B", "nemo-2025"),
    ("MoE", "megatron-moe"),
    ("ModelZoo", "megatron-moe"),
    ("Primus", "primus"),
    ("NeMo", "nemo"),
    ("MaxText", "maxtext"),
    ("Pax", "pax"),
    ("JAX", "maxtext"),
    ("MI3", "primus"),
    ("FSDP", "fms-fsdp"),
    ("Megatron", "megatron"),
]
FAMILIES = {
    "nemo-nvfp4": ["nemo-2025", "nemo"],
    "nemo-2025": ["nemo"],
    "megatron-moe": ["megatron", "nemo"],
    "automodel": ["torchtitan", "fms-fsdp"],
    "fms-fsdp": ["torchtitan", "fsdp"],
    "torchtitan": ["fms-fsdp"],
    "pax": ["maxtext"],
    "internevo": ["megatron"],
    "megatron-deepspeed": ["megatron"],
}
ANY_SOFTWARE = ["nemo", "nemo-2025", "primus", "maxtext", "megatron", "fsdp"]
COLUMNS = ("id", "kind", "group", "hardware", "gpus", "config", "step_or_us")
PRECISIONS = {"fp4": "nvfp4", "fp16": "bf16"}
LOW = ("fp8", "mxfp8", "nvfp4")


class Wrong(Exception):
    """A file or a row that cannot be used, with what was found and expected."""


def stacks_folder(program):
    """The folder of the shipped stacks: that which the program finds."""
    for folder in pathlib.Path(os.path.realpath(program)).parents:
        for place in ("share/orrery/configs/stacks", "configs/stacks"):
            if (folder / place).is_dir():
                return folder / place
    raise Wrong(
        f"{program}: found no folder configs/stacks above it; expected that of the installation or of the repository"
    )


def hardware_of(row):
    if row["hardware"] not in HARDWARE:
        raise Wrong(f"row {row['id']}: found the hardware '{row['hardware']}'; expected one of {', '.join(HARDWARE)}")
    return HARDWARE[row["hardware"]]


def softwares_of(row):
    """The software of a row, and those that stand in for it, the nearest first."""
    told = next((name for part, name in SOFTWARE if part.lower() in row["group"].lower()), None)
    return [name for name in ([told] if told else []) + FAMILIES.get(told, []) + ANY_SOFTWARE]


def stack_of(row, folder):
    """The stack of a row: that of its software, otherwise another one of its hardware."""
    if row.get("stack"):
        return row["stack"]
    hardware = hardware_of(row)
    for name in softwares_of(row):
        for machine in hardware.stacks:
            if (folder / f"{machine}-{name}.yaml").exists():
                return f"{machine}-{name}"
    raise Wrong(f"row {row['id']}: no stack for {row['hardware']}")


def text(value):
    """A value in YAML's flow style."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value)


def torus_of(hardware, chips, slices):
    """The rings of a slice, and the network between slices. Tensor parallelism lies on the first ring."""
    axes, rest = [1, 1] if hardware.preset in ("tpu-v5e-torus", "tpu-v6e-torus") else [1, 1, 1], chips // slices
    while rest > 1:  # the largest prime factors first, each to the shortest ring
        factor = next(n for n in range(2, rest + 1) if rest % n == 0)
        axes[axes.index(min(axes))] *= factor
        rest //= factor
    dimensions = [
        {"shape": "Ring", "size": size, "bandwidth": hardware.scale_up, "latency": hardware.latency}
        for size in sorted(axes, reverse=True)
        if size > 1
    ]
    if slices > 1 or not dimensions:
        dimensions.append({"shape": "Switch", "size": slices, "bandwidth": hardware.scale_out, "latency": "10 us"})
    return dimensions


def dimensions_of(hardware, gpus, replicas):
    if hardware.node is None:
        return torus_of(hardware, gpus, replicas)
    node = min(hardware.node, gpus)
    while gpus % node:
        node //= 2
    dimensions = [{"shape": "Switch", "size": node, "bandwidth": hardware.scale_up, "latency": hardware.latency}]
    if gpus > node:
        dimensions.append({"shape": "Switch", "size": gpus // node, "bandwidth": hardware.scale_out, "latency": "1 us"})
    return dimensions


def faults_of(row):
    """What is wrong with a row of a training step, as one text; empty if nothing is."""

    def check(column, read, expected):
        value = row.get(column)
        try:
            if value is not None and read(value):
                return []
        except (ValueError, KeyError, TypeError):
            pass
        return [f"column {column}: found " + (f"'{value[:60]}'" if value else "nothing") + f"; expected {expected}"]

    return "; ".join(
        check("step_or_us", lambda x: 0 < float(x) < math.inf, "seconds of a step")
        + check("gpus", lambda x: int(x) > 0, "a number of GPUs")
        + check("hardware", HARDWARE.get, f"one of {', '.join(HARDWARE)}")
        + check("group", str, "the group of the row")
        + check("config", lambda x: {"model", "parallel"} <= json.loads(x).keys(), "JSON with model and parallel")
    )


def read(file, select=""):
    """(rows that are training steps and whose group or id has this text, messages of rows that cannot be used, numbers of other kinds)."""
    try:
        with open(file, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Wrong(f"{file}: {error}; expected a CSV of measured steps") from error
    missing = [c for c in COLUMNS if c not in (reader.fieldnames or [])]
    if missing:
        raise Wrong(f"{file}: no column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
    steps, messages, others = [], [], collections.Counter()
    for number, row in enumerate(rows, start=1):
        if row["kind"] != "training step":
            others[row["kind"] or "no kind"] += 1
        elif faults := faults_of(row):
            messages.append(f"row {number} ('{row['id']}'): {faults}")
        elif select in row["group"] + " " + row["id"]:
            steps.append(dict(row, precision=row.get("precision") or ""))
    return steps, messages, others


def report_of(row):
    """The report that a row comes from: what is left out together. A source names its repository or site first."""
    source = row.get("source") or ""
    return f"{row['group']} | {source.split('@')[0].split(' ')[0]}" if source else row["group"]


def precision_of(row):
    """The precision of a row as Orrery names it; that of the column before that of the keys."""
    told = json.loads(row["config"])["parallel"].get("precision")
    column = PRECISIONS.get(row["precision"], row["precision"])
    return column if column in LOW and told in (None, *LOW) else told or column


def configuration(row, stack):
    """CONFIG.yaml for a row."""
    config = json.loads(row["config"])
    own = config.get("system") or {}
    hardware, gpus = hardware_of(row), int(row["gpus"])
    hardware = hardware._replace(
        **{key: own[key] for key in ("node", "scale_up", "scale_out", "latency") if key in own}
    )
    parallel = dict(config["parallel"])
    if precision := precision_of(row):
        parallel["precision"] = precision
    model = dict(config["model"])
    if not config.get("tp_overlap"):
        parallel.setdefault("tp-overlap", 0)  # a stack may have another share
    if not model.get("learned-positions") and model.get("gated"):
        model["rotary"] = True
    system = {
        "base": f"systems/{hardware.preset}",
        "network": {"dimensions": dimensions_of(hardware, gpus, parallel.get("replicas", 1))},
    }
    compute = dict(hardware.compute, **({"power-cap": own["power_cap"]} if "power_cap" in own else {}))
    if compute:
        system["compute"] = compute
    return "\n".join(
        ([f"stack: {stack}"] if stack else [])
        + [f"system: {text(system)}", "workload:", f"  model: {text(model)}", f"  parallel: {text(parallel)}", ""]
    )
