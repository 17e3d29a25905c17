#!/usr/bin/python3
"""`orrery show graph`: descriptions of InfraGraph are counted, their networks and dimensions found, and links that lack physics told.

The descriptions: those of configs/infragraph, and those that tests/reference/infragraph_blueprints.py writes."""
import json
import pathlib
import sys
from random import Random

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("support", "reference")]

import harness  # noqa: E402
import infragraph_blueprints  # noqa: E402

DGX = harness.SOURCE / "configs/infragraph/dgx-h100.yaml"
POD = harness.SOURCE / "configs/infragraph/older-pod.yaml"


class ShowGraph(harness.Folder):
    def show(self, *arguments, code=0):
        outcome = harness.orrery("show", "graph", *arguments)
        self.assertEqual(outcome.code, code, outcome.err)
        return outcome

    def shown_of(self, path, *arguments):
        return json.loads(self.show(path, *arguments, "--json").out)

    def shown(self, name, ending="yaml"):
        return self.shown_of(infragraph_blueprints.write(name, self.folder / f"graph.{ending}"))

    def test_fabrics(self):
        """Fat trees and a Clos fabric have the counts of their closed forms: a tree of k ports and L levels has 2 (k/2)^L / p hosts with p
        NICs each, and its network has an NPU for each XPU, the switches of the fabric and two of each server."""
        for ports, levels in ((4, 3), (8, 2), (8, 3)):
            with self.subTest(ports=ports, levels=levels):
                half = ports // 2
                graph = self.shown(f"ClosFatTreeFabric(Switch({ports}), Server(), {levels})")
                hosts, switches = 2 * half**levels // 2, (2 * levels - 1) * half ** (levels - 1)
                self.assertEqual(graph["nodes"], 8 * hosts + (ports + 1) * switches)
                self.assertEqual(graph["network"]["npus"], 2 * hosts)
                self.assertEqual(graph["network"]["switches"], 2 * hosts + switches)
                between = 2 * half**levels * levels  # links of hosts, and of each tier of switches to the next one
                self.assertEqual(graph["network"]["links"], 4 * hosts + between)
        self.assertEqual(self.shown("ClosFabric()", "json")["network"]["npus"], 8)

    def test_formats(self):
        """YAML and JSON of one description say the same."""
        for name in ("dgx1", "ironwood", "two dgx_h100, one switch"):
            self.assertEqual(self.shown(name, "yaml"), self.shown(name, "json"))

    def test_dimensions(self):
        """A torus of 4 x 4 x 4, two racks of servers, and a machine that is none of these."""
        self.assertEqual(self.shown("ironwood")["dimensions"], [{"shape": "Ring", "size": 4}] * 3)
        self.assertEqual(self.shown("mi300x")["dimensions"], [{"shape": "FullyConnected", "size": 8}])
        self.assertEqual(
            self.shown("ClosFatTreeFabric(Switch(8), Server(), 2)")["dimensions"],
            [{"shape": "Switch", "size": size} for size in (2, 2, 8)],
        )
        lone = infragraph_blueprints.dgx1()
        lone["edges"] = [one for one in lone["edges"] if one["ep1"]["component"] != "xpu[4:8]"]
        (self.folder / "part.json").write_text(json.dumps(lone))
        self.assertNotIn("dimensions", json.loads(self.show(self.folder / "part.json", "--json").out))

    def test_links(self):
        """Links without latency are told. They are listed as an error if each link is to be printed, unless options give them."""
        for line in ("network.links_without_latency.0: nvlink", "network.links_without_latency.1: rail"):
            self.assertIn(line, self.show(DGX).out)
        refused = self.show(DGX, "--links", code=3).err
        self.assertIn("links without latency: 'nvlink', 'rail'", refused)
        self.assertIn("dgx-h100.yaml", refused)
        links = json.loads(self.show(DGX, "--links", "--latency=500ns", "--link=nvlink=100GB/s,150ns", "--json").out)[
            "links"
        ]
        self.assertEqual(len(links), 80)
        self.assertEqual(
            {(one["link"], one["bytes_per_ns"], one["latency_ns"]) for one in links},
            {("nvlink", 100.0, 150.0), ("rail", 50.0, 500.0)},
        )
        self.assertIn("there is no link 'nvlnk'", self.show(DGX, "--link=nvlnk=1GB/s", code=3).err)
        self.assertIn("NAME=BANDWIDTH,LATENCY", self.show(DGX, "--link=nvlink", code=2).err)
        self.show(code=2)

    def test_faults(self):
        """Unknown keys bring a warning; what is no description is refused. A device without XPUs is counted, but has no links to print."""
        machine = infragraph_blueprints.server()
        machine["colour"] = "red"
        (self.folder / "more.json").write_text(json.dumps(machine))
        self.assertIn(
            "has the key 'colour', which is not known and is ignored", self.show(self.folder / "more.json").err
        )
        machine["connections"] = machine.pop("edges")
        (self.folder / "mixed.json").write_text(json.dumps(machine))
        refused = self.show(self.folder / "mixed.json", code=3).err
        for part in ("mixed.json", "connections[0] of device", "COMPONENT.INDEX.LINK.COMPONENT.INDEX"):
            self.assertIn(part, refused)
        (self.folder / "card.json").write_text(
            json.dumps({"name": "card", "components": [{"name": "nic", "choice": "nic", "count": 2}]})
        )
        self.assertEqual(
            self.shown_of(self.folder / "card.json"),
            {"name": "card", "machines": 1, "nodes": 2, "edges": 0, "components": {"nic": 2}},
        )
        self.assertIn("no component of choice or type xpu", self.show(self.folder / "card.json", "--links", code=3).err)
        self.assertIn(
            "a description of InfraGraph",
            self.show(harness.SOURCE / "configs/graph-16.yaml", f"--devices={DGX}", code=3).err,
        )
        (self.folder / "none.yaml").write_text("just words\n")
        self.assertIn("is no mapping", self.show(self.folder / "none.yaml", code=3).err)
        self.show(self.folder / "missing.yaml", code=3)

    def test_older_schema(self):
        """configs/infragraph/older-pod.yaml: two servers of 2 + 2 + 1 components and 4 links, a switch of 5 and 4, and 4 links between them.
        Its devices may be in files of their own; without one of these, the device is named."""
        whole = self.shown_of(POD)
        self.assertEqual(
            {key: whole[key] for key in ("name", "machines", "nodes", "edges")},
            {"name": "older-pod", "machines": 3, "nodes": 15, "edges": 16},
        )
        self.assertEqual([whole["network"][key] for key in ("npus", "switches", "links")], [4, 3, 8])
        self.assertEqual(whole["network"]["links_without_latency"], ["eth"])
        self.assertEqual(whole["dimensions"], [{"shape": "Switch", "size": 2}] * 2)
        parts = infragraph_blueprints.split_devices(POD, self.folder)
        more = [f"--devices={path}" for path in parts[1:]]
        self.assertEqual(self.shown_of(parts[0], *more), whole)
        refused = self.show(parts[0], *more[:1], code=3).err
        for part in ("is of device 'switch', which is not there", "--devices", parts[0].name):
            self.assertIn(part, refused)
        links = self.shown_of(POD, "--latency=500ns", "--link=eth=10GB/s", "--links")["links"]
        self.assertEqual(
            {(one["link"], one["bytes_per_ns"], one["latency_ns"]) for one in links},
            {("wide", 200, 150), ("eth", 10, 500)},
        )

    def test_spoilt_files(self):
        """Descriptions in which a piece is missing, doubled or replaced are read or refused with one message that names the file; a name with
        control characters does not reach the terminal."""
        random = Random(7)
        texts = [DGX.read_text(), POD.read_text()]
        for case in range(harness.cases(10, 40, 400)):
            whole = texts[case % 2]
            at = random.randrange(len(whole))
            end = min(at + random.choice((1, 2, 8, 40, 300)), len(whole))
            put = random.choice(
                ("", "0", "-1", "[", "]", "}", ":", "99999999999", "null", whole[at:end] * 2, "xpu[7:1]", "*a", "'")
            )
            (self.folder / "spoilt.yaml").write_text(whole[:at] + put + whole[end:])
            link = ("nvlink", "eth")[case % 2]
            outcome = harness.orrery(
                "show", "graph", self.folder / "spoilt.yaml", "--latency=1us", f"--link={link}=1GB/s"
            )
            self.assertIn(outcome.code, (0, 3), outcome.err)
            if outcome.code == 3:
                self.assertIn("spoilt.yaml", outcome.err)
                self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
        hostile = infragraph_blueprints.server()
        hostile["name"] = hostile["links"][0]["name"] = "a\x1b[31m"
        for edge in hostile["edges"]:
            edge["link"] = "a\x1b[31m"
        (self.folder / "hostile.json").write_text(json.dumps(hostile))
        shown = self.show(self.folder / "hostile.json", "--latency=1us", "--bandwidth=1GB/s", "--links")
        self.assertNotIn("\x1b", shown.out + shown.err)


if __name__ == "__main__":
    sys.exit(harness.main())
