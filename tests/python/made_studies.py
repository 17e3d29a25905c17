"""Files of studies for tests, made up: as `orrery explore` writes them, with as many trials as a test wants, and no simulation behind them."""
import h5py
import numpy as np

UNITS = {
    "step_time": "s",
    "tokens_per_s": "1/s",
    "samples_per_s": "1/s",
    "mfu": "1",
    "hfu": "1",
    "compute": "1",
    "exposed_communication": "1",
    "idle": "1",
    "bubble": "1",
    "peak_memory": "byte",
    "capex": "USD",
    "power": "W",
    "energy_per_step": "J",
    "usd_per_step": "USD",
    "tokens_per_usd": "1/USD",
    "tokens_per_j": "1/J",
}
VALUES = {
    "tp": [1, 2, 4, 8],
    "pp": [1, 2, 4, 8, 16, 32],
    "micro_batch": [1, 2, 4, 8],
    "zero": [0, 1, 2, 3],
    "recompute": ["none", "full"],
    "bw": ["50 GB/s", "100 GB/s", "200 GB/s", "400 GB/s"],
    "sp": ["false", "true"],
}
STUDY = """study:
  base: base.yaml
  parameters:
{parameters}
  derived: {{dp: {{key: workload.parallel.dp, value: 1024 / (tp * pp)}}}}
  constraints: [peak_memory <= 80 GB]
  objectives: [{objectives}]
  keep: {keep}
  strategy: {{kind: {strategy}}}
"""


def write(
    path,
    trials,
    seed=1,
    objectives=(("step_time", "minimise"),),
    keep=10,
    speed=1.0,
    simulated=1.0,
    bounds=True,
    drop=(),
):
    """Writes a study of so many trials, which are drawn with a seed. speed: times are divided by it. simulated: share of the trials that were
    simulated; the others are ruled out by their bounds. drop: metrics that no trial has. Returns the path.
    """
    draw = np.random.default_rng(seed)
    names = list(VALUES)
    chosen = {name: draw.integers(0, len(values), trials) for name, values in VALUES.items()}
    if trials >= 8:
        for at, name in enumerate(names):
            chosen[name][:2] = [0, len(VALUES[name]) - 1]  # so that each parameter varies
    texts = {
        name: np.array([str(value) for value in values], dtype=object)[chosen[name]] for name, values in VALUES.items()
    }
    tp, pp, micro, zero = (np.array(VALUES[name])[chosen[name]] for name in ("tp", "pp", "micro_batch", "zero"))
    texts["dp"] = np.array([str(max(1024 // (a * b), 1)) for a, b in zip(tp, pp)], dtype=object)
    bubble = 0.4 * (pp - 1) / (pp + 8)
    compute = 0.75 / (1 + 0.08 * np.log2(tp) + 0.05 * zero)
    step = (
        4.5
        / speed
        / compute
        * (1 + bubble)
        * (1 + 0.25 * chosen["recompute"])
        * (1 + 0.2 / (1 + chosen["bw"]))
        * draw.lognormal(0, 0.03, trials)
    )
    memory = (
        160e9
        / (tp * pp) ** 0.5
        / (1 + 0.4 * zero)
        * micro**0.3
        * (1 - 0.5 * chosen["recompute"])
        * draw.lognormal(0, 0.05, trials)
    )
    exposed = (1 - compute) * 0.5
    metrics = {
        "step_time": step,
        "tokens_per_s": 8.4e6 / step,
        "samples_per_s": 1024 / step,
        "mfu": 2.0 / step / 1.2,
        "hfu": 2.2 / step / 1.2,
        "compute": compute * 0.8,
        "exposed_communication": exposed,
        "idle": 0.02 + 0 * step,
        "bubble": 0.02 + 0.3 * exposed,
        "peak_memory": np.round(memory),
        "capex": np.full(trials, 50429440.0),
        "power": 9e5 + 4e5 * compute,
        "energy_per_step": step * (9e5 + 4e5 * compute),
        "usd_per_step": step * 0.53,
        "tokens_per_usd": 8.4e6 / (step * 0.53),
        "tokens_per_j": 8.4e6 / (step * 1.2e6),
    }
    bound = step * draw.uniform(0.7, 0.999, trials)
    is_known = draw.random(trials) < simulated
    if simulated < 1:
        is_known = bound < np.quantile(bound, simulated)
    status = np.where(is_known, np.where(memory <= 80e9, "done", "excluded"), "ruled-out").astype(object)
    error = np.where(status == "excluded", "peak_memory <= 80 GB", "").astype(object)
    far = (memory > 150e9) & is_known
    status[far] = "does-not-fit"
    error[far] = [f"needs {one / 1e9:.2f} GB of 80.00 GB" for one in memory[far]]
    for name, values in metrics.items():
        values = values.astype(float)
        values[(status == "ruled-out") | (status == "does-not-fit")] = np.nan
        metrics[name] = np.full(trials, np.nan) if name in drop else values
    done = np.flatnonzero(status == "done")
    first, direction = objectives[0]
    order = done[np.argsort(metrics[first][done] * (1 if direction == "minimise" else -1), kind="stable")]
    best = (
        order[:keep]
        if len(objectives) == 1
        else front(order, [metrics[name] * (1 if way == "minimise" else -1) for name, way in objectives])
    )
    reasons = [("combinations", 4 * trials), ("cut by tp * pp <= 1024", 3 * trials), ("legal", trials)]
    reasons += [
        (str(name) if name != "excluded" else "excluded by peak_memory <= 80 GB", int(count))
        for name, count in zip(*np.unique(status.astype(str), return_counts=True))
    ]
    text = STUDY.format(
        parameters="\n".join(
            f"    {name}: {{key: workload.parallel.{name}, values: {values}}}".replace("'", "")
            for name, values in VALUES.items()
        ),
        objectives=", ".join(f"{{{way}: {name}}}" for name, way in objectives),
        keep=keep,
        strategy="bounded" if simulated < 1 else "grid",
    )
    write_file(
        path,
        {
            "number": np.arange(trials, dtype="u8"),
            "status": status,
            "error": error,
            **metrics,
            **({"lower_bound": bound} if bounds else {}),
        },
        texts,
        best,
        reasons,
        text,
    )
    return path


def front(rows, columns):
    """Returns those of the rows than which no other one is at most as large in every column and smaller in one."""
    kept = []
    for row in sorted(rows, key=lambda row: tuple(column[row] for column in columns)):
        if not any(all(column[other] <= column[row] for column in columns) for other in kept):
            kept.append(row)
    return np.array(kept, dtype="u8")


def write_file(path, trials, parameters, best, funnel, text):
    """Writes the datasets of explore.h5. trials, parameters: {name: [trials]}; best: numbers; funnel: [(reason, count)]; text: STUDY.yaml."""
    kind = h5py.string_dtype()
    with h5py.File(path, "w", track_order=True) as file:
        file.attrs.update(format="orrery-explore", format_version=1, orrery_version="1.2.3")
        file.create_group("study").create_dataset("study.yaml", data=text)
        file["study"].create_dataset(
            "configuration.yaml", data="system: {compute: {peak: 989 TFLOPS}}\nworkload: {model: {base: llama3-70b}}\n"
        )
        file.create_group("kernel").attrs[
            "command_line"
        ] = "orrery explore studies/made.yaml --output=explore.h5 --set a.b=3"
        for name, values in trials.items():
            is_text = values.dtype == object
            made = file.create_dataset(f"trials/{name}", data=values, dtype=kind if is_text else None)
            made.attrs["units"] = UNITS.get(name, "s" if name == "lower_bound" else "1")
        for name, values in parameters.items():
            file.create_dataset(f"parameters/{name}", data=values, dtype=kind)
        file["best"] = np.asarray(best, dtype="u8")
        file.create_dataset("funnel/reason", data=[reason for reason, _ in funnel], dtype=kind)
        file["funnel/count"] = np.array([count for _, count in funnel], dtype="u8")
