"""Descriptions of InfraGraph of older schemas: their counts, a collective on the three networks, and a picture. Devices that are no networks of
their own, a NIC for example, are parts of networks here."""
import json
import pathlib
import tempfile

import chakra
import harness
from chakra import Node

NETWORKS = ("congestion-unaware", "congestion-aware", "packet")
RATES = {"bandwidth": "100 GB/s", "latency": "500 ns"}
CLOS = "two-tier-clos-fabric-"
# A file, the files of its devices, and what it expands to: machines, nodes, edges, components, and NPUs, switches and links of its network.
# The counts are those of the fields `count` and of the largest indices of connections, summed up by hand.
COUNTS = (
    ("cx5.yaml", [], 1, 3, 2, {"custom": 2, "cpu": 1}, None),
    (
        "dgxa100.yaml",
        ["cx5.yaml"],
        1,
        22 + 8 * 3,
        77 + 8 * 2 + 8,
        {"custom": 16, "cpu": 2 + 8, "xpu": 8, "switch": 4 + 8},
        (8, 8, 64),
    ),
    ("hierarchical-device.yaml", [], 1, 8, 6, {"custom": 2, "cpu": 2, "xpu": 2, "nic": 2}, (2, 0, 0)),
    ("scaleup-scaleout.yaml", [], 9, 8 * 5 + 9, 8 * 4 + 8 + 8, {"custom": 1, "xpu": 8, "nic": 8 * 4 + 8}, (8, 1, 8)),
    ("symmetric-device.yaml", [], 1, 28, 0, {"custom": 4 + 6, "cpu": 2, "xpu": 8, "nic": 8}, (8, 0, 0)),
    (
        f"{CLOS}infrastructure.yaml",
        [f"{CLOS}server.yaml", f"{CLOS}switch.yaml"],
        11,
        4 * 9 + 7 * 17,
        4 * 8 + 7 * 16 + 28,
        {"custom": 7, "xpu": 16, "nic": 16 + 7 * 16, "switch": 4},
        (16, 4 + 7, 16 + 28),
    ),
    (f"{CLOS}server.yaml", [], 1, 9, 8, {"xpu": 4, "nic": 4, "switch": 1}, (4, 1, 4)),
    (f"{CLOS}switch.yaml", [], 1, 17, 16, {"custom": 1, "nic": 16}, None),
)


def around(device, nics, hosts=2):
    """Returns an infrastructure that joins the NICs of hosts of a device by a switch."""
    ends = [(host, nic) for host in range(hosts) for nic in range(len(nics))]
    return {
        "links": [{"name": "rail", "bandwidth": {"gigabits_per_second": 400}}],
        "instances": [{"name": "host", "device": device}, {"name": "leaf", "device": "generic-switch"}],
        "connections": [f"host.{host}.{nics[nic]}.rail.leaf.0.port.{port}" for port, (host, nic) in enumerate(ends)],
    }


# A name, the file or the infrastructure around files, the files of its devices, and dimensions of the network.
RUNS = (
    ("dgxa100.yaml", None, ["cx5.yaml"], [("Switch", 8)]),
    ("scaleup-scaleout.yaml", None, [], [("Switch", 8)]),
    (f"{CLOS}infrastructure.yaml", None, [f"{CLOS}server.yaml", f"{CLOS}switch.yaml"], [("Switch", 4), ("Switch", 4)]),
    (f"{CLOS}server.yaml", None, [], [("Switch", 4)]),
    (
        "hierarchical-device.yaml at a switch",
        around("gh200-nvl2", ["cx7.0", "cx7.1"]),
        ["hierarchical-device.yaml", f"{CLOS}switch.yaml"],
        [("Switch", 4)],
    ),
    (
        "symmetric-device.yaml at a switch",
        around("dgx-a100", [f"nic.{n}" for n in range(8)]),
        ["symmetric-device.yaml", f"{CLOS}switch.yaml"],
        [("Switch", 16)],
    ),
)
UNJOINED = ("hierarchical-device.yaml", "symmetric-device.yaml")


def counted(folder, file, devices):
    done = harness.orrery(
        "show", "graph", folder / file, *(f"--devices={folder / other}" for other in devices), "--json"
    )
    if done.code != 0:
        return done.err.strip()
    shown = json.loads(done.out)
    network = shown.get("network")
    return (
        shown["machines"],
        shown["nodes"],
        shown["edges"],
        shown["components"],
        network and tuple(network[key] for key in ("npus", "switches", "links")),
    )


def write_run(work, file, devices, dimensions):
    """Writes a configuration and traces of an all-reduce, and returns its name."""
    npus = 1
    for _, size in dimensions:
        npus *= size
    harness.write_workload(
        work, [[Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=20_000)] for _ in range(npus)]
    )
    graph = {"file": str(file), "devices": [str(other) for other in devices], "defaults": RATES}
    if not devices:
        del graph["devices"]
    config = work / "run.yaml"
    config.write_text(
        json.dumps(
            {
                "system": {
                    "network": {
                        "graph": graph,
                        "dimensions": [{"shape": shape, "size": size} for shape, size in dimensions],
                        "packets": {"payload": "4096 B"},
                    }
                },
                "workload": {"traces": str(work / "workload")},
            }
        )
    )
    return config


def difference_of_run(work, config, network):
    """Runs the collective on 1 and 2 ranks, and draws it. Returns what is wrong."""
    results = []
    for ranks in (1, 2):
        results.append(work / f"{network}-{ranks}.h5")
        done = harness.orrery(
            "run", config, f"--network={network}", f"--output={results[-1]}", "--quiet", "--force", ranks=ranks
        )
        if done.code != 0:
            return f"{ranks} ranks: exit code {done.code}: {done.err.strip()}"
    if min(harness.finish_times(results[0])) <= 0:
        return "an NPU takes no time"
    if network != "congestion-unaware":  # which knows no links
        done = harness.run_script("scripts/plot_links.py", results[0], "--output", work / "graph.png")
        if done.code != 0 or (work / "graph.png").stat().st_size < 1000:
            return f"not drawn: {done.err.strip()}"
    return harness.difference(*results)


def check(folder, facts):
    del facts
    for file, devices, *expected in COUNTS:
        found = counted(folder, file, devices)
        yield f"{file}, counts", "" if found == tuple(expected) else f"expected {tuple(expected)}, found {found}"
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        for what, whole, devices, dimensions in RUNS:
            file = folder / what
            if whole is not None:
                file = work / "around.json"
                file.write_text(json.dumps(whole))
            config = write_run(work, file, [folder / other for other in devices], dimensions)
            for network in NETWORKS:
                yield f"{what}, {network}", difference_of_run(work, config, network)
        for file in UNJOINED:
            done = harness.orrery(
                "run", write_run(work, folder / file, [], [("Switch", 2)]), f"--output={work / 'none.h5'}"
            )
            agrees = done.code == 3 and file in done.err and "joins none of its" in done.err
            yield f"{file}, alone", "" if agrees else f"exit code {done.code}: {done.err.strip()}"
    for path in sorted(folder.rglob("*.yaml")):
        done = harness.orrery("convert", path, f"--output={path.name}.none")
        agrees = done.code == 3 and "a description of InfraGraph" in done.err and "system.network.graph" in done.err
        yield f"{path.name}, as a trace", "" if agrees else f"exit code {done.code}: {done.err.strip()}"
