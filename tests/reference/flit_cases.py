"""Cases of kinds `flit-traffic` and `flit-ring` for check_packet.py: networks of routers that are simulated flit by
flit. Traffic is that of `orrery show traffic`. A ring all-reduce is a run of sends and receives over a dimension with
`flits`, and takes the cycles of the case exactly."""

import json
import pathlib
import re
import subprocess
import tempfile

import chakra
import harness
from chakra import Node

CYCLE_PS = 125  # 16 B at 128 GB/s
FLIT = 16
LATENCY_PACKETS = 200_000  # packets whose latency is measured


def is_crossbar(inputs):
    return inputs["topology"] == "crossbar"


def num_npus(inputs):
    return inputs["k"] if is_crossbar(inputs) else inputs["k"] ** 2


def dimension(inputs):
    """Returns the entry of system.network.dimensions for the inputs of a case."""
    flits = {
        "flit": f"{FLIT} B",
        "packet": inputs["packet_flits"],
        "virtual-channels": inputs["virtual_channels"],
        "buffer": inputs["buffer_flits"],
        "routing": inputs.get("routing", "dor"),
        "flow-control": inputs.get("flow_control", "wormhole"),
        "route": inputs.get("route", 1),
    }
    if "link" in inputs:
        flits["link"] = inputs["link"]
    shape = {"mesh": "Mesh2D", "torus": "Torus2D", "crossbar": "Crossbar"}[inputs["topology"]]
    size = inputs["k"] if is_crossbar(inputs) else [inputs["k"], inputs["k"]]
    return {"shape": shape, "size": size, "bandwidth": "128 GB/s", "flits": flits}


def traffic(inputs, rate, cycles, seed=1):
    """Returns the figures of `orrery show traffic` at a rate."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "config.yaml")
        source.write_text(json.dumps({"system": {"network": {"dimensions": [dimension(inputs)]}}}))
        outcome = harness.orrery(
            *("show", "traffic", source, "--json", "--pattern", inputs["traffic"]),
            *("--rates", rate, "--cycles", cycles, "--seed", seed),
            timeout=900,
        )
        if outcome.code != 0:
            raise RuntimeError(outcome.err.strip() or f"exit code {outcome.code}")
        return json.loads(outcome.out)["rates"][0]


def measured_cycles(inputs, rate):
    """Returns the cycles in which about LATENCY_PACKETS packets begin."""
    return max(20_000, min(400_000, int(LATENCY_PACKETS * inputs["packet_flits"] / rate / num_npus(inputs))))


def check_traffic(case, ranks):
    """Prints a line for the case. Returns whether it agrees. The traffic does not depend on a number of ranks. Near
    saturation the latency follows the load, and what the peer's sources offered in its run is off the nominal rate by
    a few per cent. So the latency is compared at the load of that run, which its throughput is below saturation."""
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    rate = inputs["injection_rate"]
    texts, agrees = [], True

    def compare(name, mine):
        nonlocal agrees
        error = mine / expected[name] - 1
        agrees = agrees and abs(error) <= tolerance[name]
        texts.append(f"{name} {mine:.6g} ({error:+.5f} of {tolerance[name]})")

    figures = traffic(inputs, rate, measured_cycles(inputs, rate))
    if "latency" in tolerance:
        load = min(rate, expected.get("accepted", rate)) if rate < 1 else rate
        at_load = traffic(inputs, load, measured_cycles(inputs, rate)) if load != rate else figures
        compare("latency", at_load["latency"])
    if "accepted" in tolerance:
        compare("accepted", figures["accepted"])
    print(f"{case['id']:44} {'ok  ' if agrees else 'FAIL'} {'; '.join(texts)}", flush=True)
    return agrees


def ring_trace(inputs, npu):
    """Returns the trace of an NPU: in each step it sends packets to the next NPU and receives as many from the one
    before. A step begins when that many have come as those of all steps before. Each packet is a message, because the
    peer counts packets, and those of two steps may overtake each other."""
    order, packets, size = inputs["order"], inputs["packets_per_step"], inputs["packet_flits"] * FLIT
    at = order.index(npu)
    send = {"comm_src": npu, "comm_dst": order[(at + 1) % len(order)], "comm_tag": 0, "comm_size": size}
    receive = {"comm_src": order[at - 1], "comm_dst": npu, "comm_tag": 0, "comm_size": size}
    nodes = []
    for step in range(inputs["steps"]):
        before = [node.id for node in nodes[-packets:]]  # the receives of the last step
        for kind, ends in ((chakra.SEND, send), (chakra.RECV, receive)):
            for _ in range(packets):
                nodes.append(Node(len(nodes), kind, data_deps=before, **ends))
    return nodes


def last_finish(result):
    """Returns the latest finish time of an NPU in ps. h5dump is there wherever HDF5 is, h5py is not."""
    dump = subprocess.run(
        ["h5dump", "-d", "/npus/finish_time", "-y", "-w", "1", str(result)], check=True, capture_output=True, text=True
    )
    return max(int(number) for number in re.findall(r"^\s*(\d+),?$", dump.stdout, re.MULTILINE))


def ring_cycles(inputs, ranks):
    """Returns the cycles that a ring all-reduce takes in the simulator."""
    with tempfile.TemporaryDirectory() as folder:
        for npu in range(num_npus(inputs)):
            nodes = ring_trace(inputs, npu) if npu in inputs["order"] else []
            chakra.write(pathlib.Path(folder, f"ring.{npu}.et"), nodes)
        source, result = pathlib.Path(folder, "config.yaml"), pathlib.Path(folder, "results.h5")
        configuration = {
            "system": {
                "network": {"dimensions": [dimension(inputs)]},
                "communication": {"streams": inputs["steps"] * inputs["packets_per_step"]},
            },
            "workload": {"traces": str(pathlib.Path(folder, "ring"))},
        }
        source.write_text(json.dumps(configuration))
        outcome = harness.orrery("run", source, f"--output={result}", ranks=ranks, timeout=900)
        if outcome.code != 0:
            raise RuntimeError(outcome.err.strip() or f"exit code {outcome.code}")
        return last_finish(result) / CYCLE_PS


def check_ring(case, ranks):
    """Prints a line for the case. Returns whether it agrees. A group of a dimension with flits lives on one rank."""
    cycles = ring_cycles(case["inputs"], 0)
    error = cycles - case["expected"]["cycles"]
    agrees = abs(error) <= case["tolerance"].get("cycles", 0)
    print(f"{case['id']:44} {'ok  ' if agrees else 'FAIL'} cycles {cycles:g} ({error:+g})", flush=True)
    return agrees
