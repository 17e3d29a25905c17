"""Lists what a prediction rests on: each number with its deviation, source and kind, and how much the step depends on it."""
import concurrent.futures
import math
import os
import pathlib
import re
import tempfile

from orrery import configuration
from orrery.calibrate import joint
from orrery.calibrate.program import Unusable, asked, step_seconds
from orrery.calibrate.steps import leaves

# Figures in the program: kind, deviation of the logarithm, source.
PROCESSORS = {
    "a100": ("measured", 0.06, "29,848 products of Vidur, models that were not fitted"),
    "h100": ("measured", 0.09, "29,848 products of Vidur"),
    "b200": ("borrowed", 0.12, "largest rates of products of B200, all else of H100"),
    "tpu-v5p": ("assumed", 0.2, "no product is public"),
    "mi300x": ("assumed", 0.2, "largest rate of products, all else after H100"),
    "mi355x": ("assumed", 0.2, "largest rate of products, all else after H100"),
}
LIBRARIES = {
    "nccl-a100": ("measured", 0.12),
    "nccl-h100": ("measured", 0.12),
    "nccl-b200": ("measured", 0.15),
    "rccl-mi300x": ("borrowed", 0.2),
}
# Keys of a system and of a stack whose values a step may depend on, with the deviation where nothing says another one.
KEYS = {
    "system.compute.efficiency": ("assumed", 0.15),
    "system.compute.attention": ("assumed", 0.3),
    "system.compute.attention-factor": ("assumed", 0.15),
    "system.compute.elementwise": ("assumed", 0.35),
    "system.compute.kernel": ("assumed", 0.5),
    "system.compute.fp8": ("assumed", 0.05),
    "system.compute.nvfp4": ("assumed", 0.12),
    "system.compute.local-memory.bandwidth": ("data sheet", 0.0),
    "system.collectives.compute-share": ("assumed", 0.6),
    "workload.parallel.exposed-share": ("assumed", 0.6),
    "workload.parallel.tp-overlap": ("assumed", 0.1),
    "workload.parallel.layer-time": ("assumed", 0.7),
    "workload.parallel.between-steps": ("assumed", 1.0),
}
CHANGE = 1.05


def told_by(provenance):
    """{key: (deviation, kind, source)} of the numbers in a provenance."""
    return {
        entry["key"]: (float(entry["deviation"]), entry.get("kind", "assumed"), entry.get("source", ""))
        for entry in provenance.get("numbers") or []
        if "deviation" in entry
    }


def configuration_of(file, folder):
    """Returns a CONFIG.yaml, or a copy of the resolved configuration of the results of a run."""
    path = pathlib.Path(file)
    if not path.is_file():
        raise Unusable(f"{file}: there is no such file; expected CONFIG.yaml or the results of a run.")
    with open(path, "rb") as stream:
        is_results = stream.read(8) == b"\x89HDF\r\n\x1a\n"
    if not is_results:
        return path
    config = folder / "config.yaml"
    config.write_text(resolved_in(path))
    return config


def resolved_in(results):
    """The resolved configuration of the results of a run."""
    import h5py

    with h5py.File(results, "r") as content:
        if "config" not in content or "resolved" not in content["config"]:
            raise Unusable(f"{results}: found no configuration in it; expected the results of a run.")

        resolved = content["config/resolved"][()]
        return resolved.decode() if isinstance(resolved, bytes) else str(resolved)


def show(program, files):
    if len(files) != 1:
        raise Unusable(f"orrery show provenance: found {len(files)} files; expected one.")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config = configuration_of(files[0], folder)
        results = folder / "plain.h5"
        asked(
            program,
            "run",
            config,
            "--quiet",
            "--fold",
            "--record-iterations=0",
            f"--output={results}",
            "--progress=none",
            "--memory=report",
        )
        text = resolved_in(results)
        provenance = configuration.parsed(text).get("provenance") or {}
        resolved, told = leaves(text), told_by(provenance)
        plain = step_seconds(program, config)
        keys = [key for key in KEYS if key in resolved and joint.number_of(resolved[key])]
        keys += [key for key in told if key not in keys and key in resolved and joint.number_of(resolved[key])]

        def effect(key):
            value = joint.number_of(resolved[key])
            other = value * CHANGE
            share = (
                key
                in (
                    "system.compute.efficiency",
                    "system.compute.attention",
                    "system.compute.elementwise",
                    "system.compute.fp8",
                    "system.compute.nvfp4",
                )
                or key.startswith("workload.parallel.")
                and value <= 1
                and not resolved[key].strip()[-1:].isalpha()
            )
            if share and other > 0.999:
                other = value / CHANGE
            unit = re.sub(r"^[\d.eE+-]+", "", resolved[key].strip()).strip()
            number = other if not unit else joint.number_of(resolved[key].replace(unit, "")) * other / value
            return math.log(
                step_seconds(program, config, f"{key}={number:.9g}{' ' + unit if unit else ''}") / plain
            ) / math.log(other / value)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            effects = dict(zip(keys, pool.map(effect, keys)))
    print(f"{files[0]}: a step takes {plain:.4g} s")
    print(f"rests on: {provenance.get('basis', 'no stack that says so')}")
    print(f"{'number':<40} {'value':>12} {'deviation':>9} {'step for +1 %':>13} {'of the step':>11}  kind, source")
    lines = []
    for key in keys:
        kind, deviation = KEYS.get(key, ("assumed", 0.2))
        source = ""
        if key in told:
            deviation, kind, source = told[key]
        lines.append(
            (
                abs(effects[key]) * deviation,
                f"{key:<40} {resolved[key]:>12} {100 * deviation:>7.1f} % {effects[key]:>+11.3f} % "
                f"{100 * abs(effects[key]) * deviation:>9.1f} %  {kind}{', ' + source if source else ''}",
            )
        )
    for _, line in sorted(lines, reverse=True):
        print(line)
    for key, table in (("system.compute.processor", PROCESSORS), ("system.collectives.library.name", LIBRARIES)):
        if key in resolved:
            entry = table.get(resolved[key], ("assumed", 0.2))
            print(
                f"{key:<40} {resolved[key]:>12} {100 * entry[1]:>7.1f} % {'':>13} {'':>11}  {entry[0]}{', ' + entry[2] if len(entry) > 2 else ''}"
            )
