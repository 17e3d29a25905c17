"""Collectives of libraries on a described network: kinds collective, sweep, measured-series and correction."""
import math
import statistics

from .support import expect, expect_known, is_near, show_collective, with_value

US = 1e-6


def dimension(described, members):
    """Returns a dimension of a configuration that has only the members of the group, whose links are those of the described one."""
    made = {
        "shape": described.get("shape", "Switch"),
        "size": members,
        "bandwidth": f"{described['bandwidth_GBps']!r} GB/s",
        "latency": f"{described.get('latency_us', 1)!r} us",
    }
    for key in ("links", "oversubscription"):
        if described.get(key, 1) != 1:
            made[key] = described[key]
    if described.get("port") is not None:
        made["port"] = described["port"]
    return made


def system(inputs, **library):
    """Returns the configuration of a case. Its network is the part of the described one that the group spans."""
    group, inside = inputs["group"], inputs.get("node_dimensions", 1)
    described = inputs["dimensions"]
    library = {
        "name": inputs["library"],
        "fabric": inputs.get("fabric", "infiniband"),
        "node-dimensions": inside,
        **library,
    }
    if inputs.get("launch_us"):
        library["launch"] = f"{inputs['launch_us']!r} us"
    if inputs.get("collnet"):
        library["collnet"] = True
    if inputs.get("nics_per_npu", 1) != 1:
        library["nics-per-node"] = inputs["nics_per_npu"] * math.prod(group[:inside])
    collectives = {"library": library}
    if any(entry.get("bidirectional") is False for entry in described):
        collectives["directions"] = "one"
    made = {
        "system": {
            "network": {"dimensions": [dimension(d, g) for d, g in zip(described, group)]},
            "collectives": collectives,
        }
    }
    slow = [
        {"dimension": d, "npus": 0, "bandwidth": entry["slowest_port"]}
        for d, entry in enumerate(described[: len(group)])
        if entry.get("slowest_port", 1) != 1
    ]
    if slow:
        made["perturbation"] = {"links": slow}
    return made


def answer(inputs, folder, num_bytes=None, **library):
    """Returns what the program says, with the seconds."""
    kind, size = inputs["collective"], int(num_bytes if num_bytes is not None else inputs["bytes"])
    members = math.prod(inputs["group"])
    if kind in ("all-gather", "gather"):
        size = max(size // members, 1)  # what a member brings
    at_once = ["--at-once", inputs["sharers"]] if inputs.get("sharers", 1) != 1 else []
    said = show_collective(folder, system(inputs, **library), kind, size, *at_once)
    said["seconds"] = said["last_done_ps"] * 1e-12
    if members == 1:  # of which the program says nothing but the time
        said["library"] = {"algorithm": "none", "bound": "none", "range": "inside"}
    return said


def check_collective(case, folder):
    said, expected = answer(case["inputs"], folder), case["expected"]
    expect_known(expected, "seconds", "at_least_seconds", "at_most_seconds", "algorithm", "bound", "range")
    library, seconds = said["library"], said["seconds"]
    text = f"{seconds:.6g} s, {library['algorithm']}, bound by {library['bound']}, {library['range']}"
    if "seconds" in expected:
        expect(
            is_near(seconds, expected["seconds"], case["tolerance"]), f"{text}; expected {expected['seconds']:.6g} s"
        )
    if "at_least_seconds" in expected:
        expect(
            seconds >= expected["at_least_seconds"] * (1 - 1e-9),
            f"{text}; expected at least {expected['at_least_seconds']:.6g} s",
        )
    if "at_most_seconds" in expected:
        expect(
            seconds <= expected["at_most_seconds"] * (1 + 1e-9),
            f"{text}; expected at most {expected['at_most_seconds']:.6g} s",
        )
    for key in ("algorithm", "bound", "range"):
        if key in expected:
            expect(library[key] == expected[key], f"{text}; expected {key} {expected[key]}")
    return text


def check_sweep(case, folder):
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    expect_known(expected, "order", "ratios_to_first", "at_least_seconds", "differences_to_first_us")
    times = [answer(with_value(inputs, inputs["vary"], value), folder)["seconds"] for value in inputs["values"]]
    text = ", ".join(f"{time:.6g}" for time in times) + " s"
    rises = [b >= a * (1 - 1e-9) for a, b in zip(times, times[1:])]
    falls = [a >= b * (1 - 1e-9) for a, b in zip(times, times[1:])]
    orders = {
        "increasing": all(rises) and times[-1] > times[0],
        "decreasing": all(falls) and times[-1] < times[0],
        "equal": all(is_near(time, times[0], max(tolerance, 1e-9)) for time in times),
    }
    if "order" in expected:
        expect(orders[expected["order"]], f"{text}; expected {expected['order']}")
    for time, ratio in zip(times, expected.get("ratios_to_first", [])):
        expect(is_near(time / times[0], ratio, tolerance), f"{text}; expected ratios {expected['ratios_to_first']}")
    for time, least in zip(times, expected.get("at_least_seconds", [])):
        expect(time >= least * (1 - 1e-9), f"{text}; expected at least {expected['at_least_seconds']}")
    for time, more in zip(times, expected.get("differences_to_first_us", [])):
        expect(
            abs((time - times[0]) / US - more) <= tolerance * max(abs(more), 1),
            f"{text}; expected differences {expected['differences_to_first_us']} us",
        )
    return text


def check_series(case, folder):
    errors = [
        abs(answer(case["inputs"], folder, size)["seconds"] / (us * US) - 1) for size, us in case["inputs"]["points"]
    ]
    mean, worst, expected = statistics.mean(errors), max(errors), case["expected"]
    expect_known(expected, "mean_error_at_most", "worst_error_at_most")
    text = f"mean error {mean:.4f} of {len(errors)} sizes, worst {worst:.3f}"
    expect(mean <= expected["mean_error_at_most"], f"{text}; expected at most {expected['mean_error_at_most']}")
    expect(
        worst <= expected.get("worst_error_at_most", math.inf),
        f"{text}; expected a worst one of at most {expected.get('worst_error_at_most')}",
    )
    return text


def printed_series(series):
    """Returns the text that nccl-tests print for a series."""
    of_node = series["ranks"] // series["nodes"]
    lines = [
        f"#  Rank {rank:2} Group  0 Pid {100 + rank} on host{rank // of_node} device {rank % of_node}"
        for rank in range(series["ranks"])
    ]
    lines += [f"{size:12} {size // 4:12} float sum -1 {us!r} 0 0 0" for size, us in series["points"]]
    return "\n".join(lines) + "\n"


def check_correction(case, folder):
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    expect_known(expected, "applies", "seconds", "equals_uncorrected")
    series = inputs["series"]
    file = folder / "measured.txt"
    file.write_text(printed_series(series))
    measured = [{"file": str(file), "node": series["ranks"] // series["nodes"]}]
    said = answer(inputs, folder, **{series["kind"]: measured})
    applies = said["library"].get("corrected", "no")
    text = f"{said['seconds']:.6g} s, corrected: {applies}"
    expect(applies == expected.get("applies", applies), f"{text}; expected {expected.get('applies')}")
    if "seconds" in expected:  # times are whole picoseconds
        expect(
            abs(said["seconds"] - expected["seconds"]) <= tolerance * expected["seconds"] + 1e-12,
            f"{text}; expected {expected['seconds']} s",
        )
    if expected.get("equals_uncorrected"):
        bare = answer(inputs, folder)["seconds"]
        expect(abs(said["seconds"] - bare) <= tolerance * bare + 1e-12, f"{text}; expected {bare} s")
    return text


KINDS = {
    "collective": check_collective,
    "sweep": check_sweep,
    "measured-series": check_series,
    "correction": check_correction,
}
