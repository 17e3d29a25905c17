"""Graphs for system.network.graph, as mappings."""


def star(hosts):
    """A switch with a link of 100 GB/s and 1 us to each host."""
    return {"hosts": hosts, "switches": 1, "links": [[h, hosts, "100 GB/s", "1 us"] for h in range(hosts)]}


def leaves(sizes, spines=2):
    """A leaf for each size with so many hosts, and a link of 50 GB/s from each leaf to each spine."""
    hosts = sum(sizes)
    leaf_of = [leaf for leaf, size in enumerate(sizes) for _ in range(size)]
    links = [[h, hosts + leaf, "100 GB/s", "500 ns"] for h, leaf in enumerate(leaf_of)]
    links += [
        [hosts + leaf, hosts + len(sizes) + spine, "50 GB/s", "1 us"]
        for leaf in range(len(sizes))
        for spine in range(spines)
    ]
    return {"hosts": hosts, "switches": len(sizes) + spines, "links": links}
