"""Topologies and configurations of ns-3 and htsim: refused by name, with what to use instead. Files of ASTRA-sim's other backends stand
beside them."""
import harness

WORDS = {"topology.txt": "a topology of ns-3", "physical_network.txt": "a topology of ns-3", "logical": "a logical topology for ns-3",
         "nc-topology": "a topology of ns-3", ".topo": "a topology of htsim", "ns3_config": "a configuration of ns-3",
         "network_config.txt": "a configuration of ns-3", "astra_system": "a system of ASTRA-sim", "memory": "a remote memory of ASTRA-sim"}


def check(folder, facts):
    for path in sorted(folder.rglob("*.*")):
        word = next((word for part, word in WORDS.items() if part in path.name), None)
        if word is None:
            continue
        done = harness.orrery("convert", path, "--output=/dev/null", "--force")
        agrees = done.code == 3 and f"the file is {word}" in done.err
        yield str(path.relative_to(folder)), "" if agrees else f"exit code {done.code}: {done.err.strip()}"
