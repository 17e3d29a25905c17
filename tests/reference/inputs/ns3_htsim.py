"""Files of ASTRA-sim's ns-3 network and of htsim: each topology of the facts, and each other file of these simulators, is refused by its name,
with what to give in its place."""
import harness

PLACES = {
    "a topology of ASTRA-sim's ns-3 network": "system.network.graph",
    "a topology of htsim": "system.network.dimensions",
    "a logical topology of ASTRA-sim's ns-3 network": "--logical-topology-configuration",
    "a configuration of ASTRA-sim's ns-3 network": "--network-configuration",
}
KINDS = {
    "topology.txt": "a topology of ASTRA-sim's ns-3 network",
    "nc-topology-file.txt": "a topology of ASTRA-sim's ns-3 network",
    "physical_network.txt": "a topology of ASTRA-sim's ns-3 network",
    "logical_topo.json": "a logical topology of ASTRA-sim's ns-3 network",
    "logical.json": "a logical topology of ASTRA-sim's ns-3 network",
    "ns3_config.txt": "a configuration of ASTRA-sim's ns-3 network",
    "network_config.txt": "a configuration of ASTRA-sim's ns-3 network",
}


def check(folder, facts):
    topologies = {fact["file"].split("/")[-1] for fact in facts}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        kind = "a topology of htsim" if path.suffix == ".topo" else KINDS.get(path.name)
        if kind is None and path.name in topologies:
            kind = "a topology of ASTRA-sim's ns-3 network"
        if kind is None:
            continue
        done = harness.orrery("show", "trace", path)
        agrees = done.code == 3 and f"the file is {kind}" in done.err and PLACES[kind] in done.err
        yield str(
            path.relative_to(folder)
        ), "" if agrees else f"exit code {done.code}, not refused as {kind}: {done.err.strip()}"
