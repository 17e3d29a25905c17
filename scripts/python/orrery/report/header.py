"""What was simulated, in the words of its users: model, parallelism, batch, GPU, network, stack, memory."""
import os
import re

from .. import configuration
from ..errors import MissingPackage
from ..packages import load
from ..places import AXES
from ..units import readable

np = load("numpy")

# Settings of the parallelism that are told where they differ from this value.
USUAL = [
    ("sp", "False", "sp"),
    ("zero", "0", "ZeRO {}"),
    ("interleaving", "1", "interleaving {}"),
    ("schedule", "1f1b", "schedule {}"),
    ("recompute", "none", "recomputation {}"),
    ("precision", "bf16", "{}"),
    ("offload", "()", "offload {}"),
]


def of(run):
    """Returns [(name, text)] of what the run simulated; what is not known is left out."""
    settings, given = run.settings, given_of(run)
    lines = [
        ("Model", model(settings, given)),
        ("Parallelism", parallelism(settings)),
        ("Batch", batch(run)),
        ("GPU", processor(settings)),
        ("Network", network(run, given)),
        ("Stack", named(given.get("stack"))),
    ]
    return [(name, text) for name, text in lines if text]


def given_of(run):
    """Returns the CONFIG.yaml of the run as it was written; {} if there is none, or it is no mapping."""
    try:
        tree = configuration.parsed(run.inputs.get("configuration.yaml", "{}"))
    except MissingPackage:
        raise
    except Exception:  # of the YAML reader: the file was read by another one, which is stricter
        return {}
    return tree if isinstance(tree, dict) else {}


def named(value):
    """Returns the name of a preset: a text, or the `base` of a mapping, without folders and ending."""
    value = value.get("base") if isinstance(value, dict) else value
    return re.sub(r"\.(ya?ml|json)$", "", os.path.basename(str(value))) if isinstance(value, str) else ""


def below(tree, *keys):
    """Returns what is below some keys of nested mappings; None if there is nothing."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def model(settings, given):
    """Returns for instance "llama3-70b: 80 layers of 8,192, 64 heads, sequence 8,192"."""
    name = named(below(given, "workload", "model"))
    number = (
        lambda key: f"{int(value):,}"
        if str(value := settings.get(f"workload.model.{key}", "")).isdigit() and int(value)
        else ""
    )  # noqa: E731
    parts = [
        f"{number('layers')} layers" + (f" of {number('hidden')}" if number("hidden") else "")
        if number("layers")
        else "",
        f"{number('experts')} experts" if number("experts") else "",
        f"sequence {number('sequence')}" if number("sequence") else "",
    ]
    told = ", ".join(part for part in parts if part)
    traces = settings.get("workload.traces")
    return ": ".join(part for part in (name, told) if part) or (f"traces {traces}" if traces else "")


def parallelism(settings):
    """Returns for instance "tp 8 · dp 4 · pp 2 · sp · ZeRO 1"."""
    parts = [
        f"{axis} {settings[key]}"
        for axis in AXES
        if (key := f"workload.parallel.{axis}") in settings and str(settings[key]) != "1"
    ]
    for key, usual, text in USUAL:
        value = settings.get(f"workload.parallel.{key}")
        if value is not None and str(value) not in (usual, usual.lower()):
            parts.append(text.format(", ".join(map(str, value)) if isinstance(value, tuple) else value))
    return " · ".join(parts)


def batch(run):
    """Returns for instance "64 sequences, 524,288 tokens: 16 micro-batches of 1 in each replica"."""
    found, settings = dict(run.metrics["value"]), run.settings
    if "samples_per_second" not in found:
        return ""
    seconds = found.get("request_time") or found["step_time"] / 1e12
    amounts = [f"{round(found['samples_per_second'] * seconds):,} samples"]
    if "tokens_per_second" in found:
        amounts.append(f"{round(found['tokens_per_second'] * seconds):,} tokens")
    many, each = settings.get("workload.parallel.micro-batches"), settings.get("workload.parallel.micro-batch")
    return ", ".join(amounts) + (
        f": {many} micro-batches of {each} in each replica" if many is not None and each is not None else ""
    )


def processor(settings):
    """Returns for instance "h100: 989 TFLOPS in bf16, 85.5 GB at 3350 GB/s"."""
    precision = settings.get("workload.parallel.precision", "bf16")
    peak = settings.get(f"system.compute.peak.{precision}") or settings.get("system.compute.peak")
    size = re.fullmatch(r"(\d+) B", str(settings.get("system.compute.local-memory.size", "")))
    rate = settings.get("system.compute.local-memory.bandwidth")
    memory = " at ".join(
        text for text in (readable(int(size[1]), "byte") if size else "", str(rate) if rate else "") if text
    )
    told = ", ".join(
        text
        for text in (
            f"{peak}" + (f" in {precision}" if f"system.compute.peak.{precision}" in settings else "") if peak else "",
            f"memory {memory}" if memory else "",
        )
        if text
    )
    return ": ".join(text for text in (str(settings.get("system.compute.processor") or ""), told) if text)


def network(run, given):
    """Returns for instance "dgx-h100-superpod: Switch of 8 at 450 GB/s × Switch of 8 at 50 GB/s, congestion-unaware"."""
    parts = [
        " ".join(
            text
            for text in (
                f"{row['shape']} of {row['size']}" if "shape" in row else f"{row['size']} NPUs",
                f"at {row['bandwidth']}" if "bandwidth" in row else "",
            )
            if text
        )
        for _, row in run.dimensions.iterrows()
        if row["size"] > 1
    ]
    told = ", ".join(text for text in (" × ".join(parts), str(run.settings.get("system.network.model", ""))) if text)
    return ": ".join(text for text in (named(given.get("system")), told) if text)


def memory(run):
    """Returns [{"name", "bytes"}]: how the memory of the NPU with the largest peak is divided; [] if that is not known.

    What is there at time 0 are the tensors that no node makes: parameters, gradients and the state of the optimizer.
    """
    peaks = run.npus["peak_local_memory"]
    peak, npu = int(peaks.max()), int(peaks.idxmax())
    if not peak or run.local_memory is None or not run.local_memory.rows_of(npu):
        return []
    rows = run.local_memory.read(npus=npu, columns=["time", "usage"], limit=None)
    state = min(int(rows["usage"].iloc[0]) if int(rows["time"].iloc[0]) == 0 else 0, peak)
    found = [
        {"name": "parameters, gradients, optimizer", "bytes": state},
        {"name": "activations and buffers at the peak", "bytes": peak - state},
    ]
    if run.room and run.room >= peak:
        reserved = re.fullmatch(r"(\d+) B", str(run.settings.get("system.compute.local-memory.reserved", "")))
        held = int(reserved[1]) if reserved else 0
        found += [{"name": "reserved", "bytes": held}, {"name": "free", "bytes": max(int(run.room) - peak - held, 0)}]
    return [one for one in found if one["bytes"] > 0]
