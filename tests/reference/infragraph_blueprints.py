"""Descriptions of InfraGraph 2.4, written for the cases of golden.json: machines and fabrics by their structure.

    infragraph_blueprints.py NAME [FILE]

NAME is a machine (dgx_h100) or a fabric, as "ClosFatTreeFabric(Switch(8), Server(), 2)". The description is written to FILE as YAML or JSON,
by its ending, or printed as JSON. Whatever a fabric says of bandwidths is left out: the cases count.
"""
import argparse
import json
import pathlib
import re


def component(name, choice, count=1):
    entry = {"name": name, "choice": choice, "count": count}
    return entry | ({"custom": {"type": name}} if choice == "custom" else {})


def edge(one, other, scheme="many2many", link="pcie"):
    return {"ep1": {"component": one}, "ep2": {"component": other}, "scheme": scheme, "link": link}


def device(name, components, edges):
    links = sorted({one["link"] for one in edges})
    return {
        "name": name,
        "components": [component(*one) for one in components],
        "links": [{"name": link} for link in links],
        "edges": edges,
    }


def groups(whole, part, size=2, whole_name="{}[{}]"):
    """The i-th of one component joined to the i-th group of another one."""
    return [edge(whole_name.format(whole[0], i), f"{part}[{i * size}:{(i + 1) * size}]") for i in range(whole[1])]


def dgx1():
    edges = [edge("cpu", "cpu", link="qpi")]
    edges += [edge(f"pciesw[{switch}]", f"xpu[{first}:{first + 3}:2]") for switch, first in enumerate((0, 1, 4, 5))]
    edges += [edge("pciesw", "slot", "one2one"), edge("slot", "nic", "one2one")] + groups(("cpu", 2), "pciesw")
    edges += [edge(part, part, link="nvlink") for part in ("xpu[0:4]", "xpu[4:8]")] + [
        edge("xpu[0:4]", "xpu[4:8]", "one2one", "nvlink")
    ]
    return device(
        "dgx1",
        [("cpu", "cpu", 2), ("xpu", "xpu", 8), ("pciesw", "switch", 4), ("slot", "custom", 4), ("nic", "nic", 4)],
        edges,
    )


def dgx_a100():
    edges = [
        edge("cpu", "cpu", link="fabric"),
        edge("nvsw", "xpu", link="nvlink"),
        edge("pciesw[4]", "nvsw"),
        edge("pciesw[4]", "pciesw[3]", "one2one"),
        edge("slot", "nic", "one2one"),
    ]
    edges += groups(("cpu", 2), "pciesw") + groups(("pciesw", 4), "slot") + groups(("pciesw", 4), "xpu")
    return device(
        "dgx_a100",
        [
            ("cpu", "cpu", 2),
            ("xpu", "xpu", 8),
            ("nvsw", "switch", 6),
            ("pciesw", "switch", 5),
            ("slot", "custom", 8),
            ("nic", "nic", 8),
        ],
        edges,
    )


def dgx_h100():
    edges = [
        edge("cpu", "cpu", link="fabric"),
        edge("cpu[0]", "slot[0:3]"),
        edge("cpu[1]", "slot[4:7]"),
        edge("cpu", "pciesw[0:2]", "one2one"),
        edge("slot", "xpu", "one2one"),
        edge("nvsw", "xpu", link="nvlink"),
        edge("nvsw", "pciesw[2]"),
        edge("cpu[0]", "pciesw[2]", "one2one"),
        edge("slot", "nic", "one2one"),
    ]
    return device(
        "dgx_h100",
        [
            ("cpu", "cpu", 2),
            ("xpu", "xpu", 8),
            ("nvsw", "switch", 4),
            ("pciesw", "switch", 3),
            ("slot", "custom", 8),
            ("nic", "nic", 8),
        ],
        edges,
    )


def dgx_gb200():
    edges = [edge("cpu", "cpu", link="c2c"), edge("xpu", "nvsw", link="nvlink"), edge("slot", "nic", "one2one")]
    edges += groups(("cpu", 2), "slot") + groups(("cpu", 2), "xpu")
    return device(
        "dgx_gb200",
        [("cpu", "cpu", 2), ("xpu", "xpu", 4), ("nvsw", "switch", 18), ("slot", "custom", 4), ("nic", "nic", 4)],
        edges,
    )


def mi300x():
    edges = [
        edge("cpu", "cpu", link="fabric"),
        edge("xpu", "xpu", link="xgmi"),
        edge("cpu", "front_nic", "one2one"),
        edge("cpu[0]", "lom"),
        edge("cpu[0]", "bmc"),
    ]
    edges += groups(("cpu", 2), "pciesw")
    for part in ("xpu", "nic", "nvme"):
        edges += groups(("pciesw", 4), part)
    return device(
        "mi300x",
        [
            ("cpu", "cpu", 2),
            ("xpu", "xpu", 8),
            ("pciesw", "switch", 4),
            ("nic", "nic", 8),
            ("front_nic", "custom", 2),
            ("nvme", "custom", 8),
            ("lom", "custom", 1),
            ("bmc", "custom", 1),
        ],
        edges,
    )


def ironwood(side=4):
    edges = [edge("cpu", "nic", "one2one")] + groups(("cpu", side**3 // 2), "xpu")
    for stride in (1, side, side * side):
        for first in range(side**3):
            if first // stride % side == 0:
                line = f"xpu[{first}:{first + (side - 1) * stride + 1}:{stride}]"
                edges.append(edge(line, line, "ring", "ici"))
    return device(
        "ironwood", [("xpu", "xpu", side**3), ("cpu", "cpu", side**3 // 2), ("nic", "nic", side**3 // 2)], edges
    )


def server(cpus=1):
    edges = [
        edge("mgmt", "cpu[0]"),
        edge("cpu", "cpu", link="fabric"),
        edge("xpu", "nvsw", link="nvlink"),
        edge("cpu", "pciesw", "one2one"),
    ]
    for part in ("xpu", "nic"):
        edges += groups(("pciesw", cpus), part)
    return device(
        "server",
        [
            ("cpu", "cpu", cpus),
            ("xpu", "xpu", 2 * cpus),
            ("nvsw", "switch", 1),
            ("pciesw", "switch", cpus),
            ("nic", "nic", 2 * cpus),
            ("mgmt", "custom", 1),
        ],
        edges,
    )


def switch(ports=16):
    return device("switch", [("asic", "custom", 1), ("port", "port", ports)], [edge("asic", "port", link="inside")])


def nics(machine):
    return next(one["count"] for one in machine["components"] if one["choice"] == "nic")


def join(one, other, link):
    (instance, part), (other_instance, other_part) = one, other
    return {
        "ep1": {"instance": instance, "component": part},
        "ep2": {"instance": other_instance, "component": other_part},
        "scheme": "one2one",
        "link": link,
    }


def infrastructure(name, devices, instances, edges):
    links = sorted({one["link"] for one in edges})
    return {
        "infrastructure": {
            "name": name,
            "devices": devices,
            "links": [{"name": link} for link in links],
            "instances": [{"name": one, "device": of, "count": count} for one, of, count in instances],
            "edges": edges,
        }
    }


def clos():
    """Four servers with two NICs at four leaf switches, each of which is joined to three spine switches."""
    edges = [join((f"host[{i}]", "nic"), (f"leaf[{i}]", "port[0:2]"), "leaf") for i in range(4)]
    edges += [
        join((f"leaf[{i}]", f"port[{2 + k}]"), (f"spine[{k}]", f"port[{i}]"), "spine")
        for i in range(4)
        for k in range(3)
    ]
    return infrastructure(
        "clos", [server(), switch()], [("host", "server", 4), ("leaf", "switch", 4), ("spine", "switch", 3)], edges
    )


def fat_tree(ports, host, levels):
    """A fat tree of switches with as many ports, half of them up and half down, with all hosts that it has room for."""
    half, of_host = ports // 2, nics(host)
    num_leaves = 2 * half ** (levels - 1)
    edges = []
    for leaf in range(num_leaves):
        for k in range(half // of_host):
            edges.append(
                join(
                    (f"host[{leaf * half // of_host + k}]", "nic"),
                    (f"tier_0[{leaf}]", f"port[{k * of_host}:{(k + 1) * of_host}]"),
                    "tier_0",
                )
            )
    instances = [("host", host["name"], num_leaves * half // of_host), ("tier_0", "switch", num_leaves)]
    below = 0
    if levels == 3:  # pods, in each of which all leaves are joined to all switches above them
        instances.append(("tier_1", "switch", num_leaves))
        for up in range(num_leaves):
            pod = up // half * half
            edges.append(
                join(
                    (f"tier_1[{up}]", f"port[0:{half}]"),
                    (f"tier_0[{pod}:{pod + half}]", f"port[{half + up - pod}]"),
                    "tier_1",
                )
            )
        below = 1
    num_top = half ** (levels - 1)
    instances.append((f"tier_{levels - 1}", "switch", num_top))
    for top in range(num_top):
        plane = top // (num_top // half)  # the upper port of switches below at which it is
        if levels == 2:
            edges.append(join((f"tier_1[{top}]", "port"), ("tier_0", f"port[{half + top}]"), "tier_1"))
            continue
        # Each top switch is joined to one switch of each pod.
        edges.append(
            join(
                (f"tier_2[{top}]", "port"),
                (f"tier_{below}[{plane}:{num_leaves}:{half}]", f"port[{half + top % half}]"),
                "tier_2",
            )
        )
    return infrastructure("fat-tree", [host, switch(ports)], instances, edges)


def single_tier(host, hosts):
    ports = nics(host) * hosts
    return infrastructure(
        "single-tier",
        [host, switch(ports)],
        [("host", host["name"], hosts), ("switch", "switch", 1)],
        [join(("host", "nic"), ("switch", "port"), "rail")],
    )


MACHINES = {
    "dgx1": dgx1,
    "dgx_a100": dgx_a100,
    "dgx_h100": dgx_h100,
    "dgx_gb200": dgx_gb200,
    "mi300x": mi300x,
    "ironwood": ironwood,
    "server": server,
}


def machine(text):
    if text.startswith("Server"):
        return server(*(int(number) for number in re.findall(r"\d+", text)))
    return dgx_h100() if text.startswith("NvidiaDGX") else MACHINES[text]()


def blueprint(name):
    """The description of a machine or fabric; None if the name is of none."""
    if name in MACHINES:
        return MACHINES[name]()
    if name == "ClosFabric()":
        return clos()
    if name == "two dgx_h100, one switch":
        return single_tier(dgx_h100(), 2)
    if match := re.fullmatch(r"SingleTierFabric\((\w+\(\d*\)), (\d+)\)", name):
        return single_tier(machine(match[1]), int(match[2]))
    if match := re.fullmatch(r"ClosFatTreeFabric\(Switch\((\d+)\), (\w+\(\d*\)), (\d)(?:, .*)?\)", name):
        return fat_tree(int(match[1]), machine(match[2]), int(match[3]))
    return None


def split_devices(path, folder):
    """Writes an infrastructure and each of its devices into files of their own. Returns their paths, the infrastructure first."""
    import yaml

    whole = yaml.safe_load(path.read_text())["infrastructure"]
    texts = {
        "infrastructure": {"infrastructure": {key: value for key, value in whole.items() if key != "devices"}},
        **{device["name"]: {"infrastructure": {"devices": [device]}} for device in whole["devices"]},
    }
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(text))
    return paths


def write(name, file):
    file = pathlib.Path(file)
    text = json.dumps(blueprint(name), indent=1)  # JSON is YAML, too
    file.write_text("# made by infragraph_blueprints.py\n---\n" + text if file.suffix in (".yaml", ".yml") else text)
    return file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name")
    parser.add_argument("file", nargs="?")
    arguments = parser.parse_args()
    if arguments.file:
        write(arguments.name, arguments.file)
    else:
        print(json.dumps(blueprint(arguments.name), indent=1))
