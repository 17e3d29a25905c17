"""Exchanges of tokens with experts, and computation beside them: kinds copies, expert-exchange and overlap."""
import json

import chakra
import harness

from .support import Missed, expect, is_near, show_collective

DISPATCH = 32  # the number of expert-dispatch in traces
LINK, NIC = 450, 50  # GB/s, of cases that give none


def token_bytes(hidden, precision):
    """Returns the bytes of a token: FP8 has a scale of 4 bytes for 128 values."""
    return hidden * (1 + 4 / 128) if precision == "fp8" else hidden * (4 if precision == "fp32" else 2)


def system(inputs, kernels):
    ranks, servers = inputs["ranks"], inputs["servers"]
    dimensions = [
        {
            "shape": "Switch",
            "size": ranks // servers,
            "bandwidth": f"{inputs.get('link_GBps', LINK)!r} GB/s",
            "latency": "468 ns",
        },
        {"shape": "Switch", "size": servers, "bandwidth": f"{inputs.get('nic_GBps', NIC)!r} GB/s", "latency": "1 us"},
    ]
    experts = {"kernels": kernels, "top-k": inputs["top_k"], "servers": inputs.get("server_limit", 0)}
    return {"system": {"network": {"dimensions": dimensions}, "collectives": {"experts": experts}}}


def exchange(inputs, folder, kernels, num_bytes):
    said = show_collective(folder, system(inputs, kernels), "expert-dispatch", num_bytes)
    found = {**said["experts"], "seconds": said["last_done_ps"] * 1e-12}
    return {
        "seconds": found["seconds"],
        "nic": found["bytes_over_nics"],
        "nvl": found["bytes_over_links"],
        "servers": found["servers"],
        "remote_servers": found["servers"] * (inputs["servers"] - 1) / inputs["servers"],
        "npus": found["npus"],
    }


def compare(case, found):
    text = ", ".join(f"{name} {found[name]:.10g} (expected {value:.10g})" for name, value in case["expected"].items())
    expect(all(is_near(found[name], value, case["tolerance"]) for name, value in case["expected"].items()), text)
    return text


def check_copies(case, folder):
    return compare(case, exchange(case["inputs"], folder, "deepep-v1", 1 << 20))


def check_exchange(case, folder):
    inputs = case["inputs"]
    size = round(inputs["tokens"] * token_bytes(inputs["hidden"], inputs["precision"]))
    return compare(case, exchange(inputs, folder, inputs["software"], size))


def check_overlap(case, folder):
    """Two NPUs compute beside an exchange that holds a share of their compute units. The part of the exchange that cannot overlap comes
    first. Times are scaled so that the computation takes 10 s, a whole number of the trace's units."""
    inputs = case["inputs"]
    compute, communication = inputs["compute"], inputs["communication"]
    beside = communication * inputs.get("fraction", 1)
    scale = 10 / (compute or communication)
    latency, rate = (
        26e-6,
        0.67 * 450e9,
    )  # of deepep-low-latency within a server: each of two NPUs gets half of the copies

    def size_of(seconds):
        return round((seconds * scale - latency) * 2 * rate)

    nodes, last = [], []
    for number, seconds in enumerate((communication - beside, beside)):
        if seconds * scale > latency:
            nodes.append(
                chakra.Node(number, chakra.COLL, data_deps=last, comm_type=DISPATCH, comm_size=size_of(seconds))
            )
            last = [number] if number == 0 else last
    if compute > 0:
        nodes.append(chakra.Node(2, chakra.COMP, data_deps=last, duration=round(compute * scale * 1e6)))
    for npu in range(2):
        chakra.write(folder / f"overlap.{npu}.et", nodes)
    config = {
        "system": {
            "network": {"dimensions": [{"shape": "Switch", "size": 2, "bandwidth": "450 GB/s", "latency": "468 ns"}]},
            "compute": {"roofline": False},
            "collectives": {"experts": {"kernels": "deepep-low-latency", "top-k": 1, "sm-share": inputs["sm_share"]}},
        },
        "workload": {"traces": str(folder / "overlap")},
    }
    file, results = folder / "overlap.yaml", folder / "overlap.h5"
    file.write_text(json.dumps(config))
    ran = harness.orrery("run", file, "--output", results)
    if ran.code != 0:
        raise Missed(f"exit code {ran.code}: {ran.err.strip()[:300]}")
    return compare(case, {"seconds": max(harness.finish_times(results)) * 1e-12 / scale})


KINDS = {"copies": check_copies, "expert-exchange": check_exchange, "overlap": check_overlap}
