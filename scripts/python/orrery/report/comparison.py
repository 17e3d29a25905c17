"""What several runs do not have in common: keys of the configuration, figures, and the time of each cause."""
from .. import configuration
from ..states import COMMUNICATION
from ..units import readable

FIGURES = [
    ("step_time", "step time", "ps"),
    ("model_flops_utilisation", "MFU", "share"),
    ("hardware_flops_utilisation", "HFU", "share"),
    ("tokens_per_second", "tokens per second", "1"),
    ("samples_per_second", "samples per second", "1"),
    ("pipeline_bubble", "pipeline bubble", "share"),
]
WHOLE = "exposed communication"


def of(runs):
    """Returns {"runs", "keys", "figures", "causes", "said"} of a list of facts. The first run is what the others are compared with."""
    keys = configuration.differing([run["settings"] for run in runs])
    times = times_of(runs)
    names = list(dict.fromkeys(name for time in times for name in time))
    figures = [{"name": "NPUs", "unit": "1", "values": [run["num_npus"] for run in runs]}]
    for key, name, unit in FIGURES:
        values = [run["step_time"] if key == "step_time" else run["metrics"].get(key) for run in runs]
        if any(value is not None for value in values):
            figures.append({"name": name, "unit": unit, "values": values})
    causes = [{"cause": name, "times": [time.get(name, 0.0) for time in times]} for name in names]
    return {
        "runs": names_of(runs),
        "keys": [{"key": key, "values": values} for key, values in keys.items()],
        "figures": figures,
        "causes": causes,
        "said": [sentence(runs, causes, which) for which in range(1, len(runs))],
    }


def times_of(runs):
    """Returns {cause: time} of each run. If one of them knows exposed communication only as a whole, it is taken as a whole in all."""
    whole = any(cause["cause"] == WHOLE for run in runs for cause in run["causes"])
    found = []
    for run in runs:
        times = {}
        for cause in run["causes"]:
            name = WHOLE if whole and cause["cause"] in COMMUNICATION else cause["cause"]
            times[name] = times.get(name, 0.0) + cause["time"]
        found.append(times)
    return found


def names_of(runs):
    """Returns the names of the runs; where two are the same, the paths instead."""
    names = [run["name"] for run in runs]
    return names if len(set(names)) == len(names) else [run["path"] for run in runs]


def sentence(runs, causes, which):
    """Says how the step of a run differs from that of the first, and by which causes most of it."""
    names, base, time = names_of(runs), runs[0]["step_time"], runs[which]["step_time"]
    if base == time:
        whole = f"{names[which]} takes as long as {names[0]}, {readable(base, 'ps')}"
    else:
        change = f" ({abs(time - base) / base * 100:.1f} %)" if base else ""
        whole = (
            f"{names[which]} takes {readable(time, 'ps')}, {readable(abs(time - base), 'ps')}{change} "
            f"{'less' if time < base else 'more'} than {names[0]}"
        )
    changes = sorted(
        ((one["times"][which] - one["times"][0], one["cause"]) for one in causes), key=lambda one: -abs(one[0])
    )
    told = [f"{cause} {signed(change)}" for change, cause in changes[:3] if abs(change) >= 0.001 * max(base, 1)]
    return f"{whole}: {', '.join(told)}." if told else f"{whole}."


def signed(time):
    """Returns a difference of times as a text with its sign."""
    time = round(time)
    return ("+" if time > 0 else "−" if time < 0 else "±") + readable(abs(time), "ps")
