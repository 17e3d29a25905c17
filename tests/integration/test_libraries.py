#!/usr/bin/python3
"""Collective libraries on the described network, in all three networks: what a step and a collective take, and what is said of them."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402

CONFIG = """system:
  base: systems/dgx-h100-superpod.yaml
  network:
    %(model)s
    dimensions: [{shape: Switch, size: 8, bandwidth: %(link)s GB/s, latency: 468 ns}, {shape: Switch, size: 2, bandwidth: 400 Gb/s, latency: 1 us}]
  collectives: {library: {name: nccl-h100%(library)s}}
workload:
  model: {kind: transformer, layers: 4, hidden: 2048, heads: 16, kv-heads: 8, ffn: 8192, vocabulary: 32000, sequence: 2048, gated: true}
  parallel: {tp: 8, sp: true, dp: 2, micro-batches: 2, zero: 1}
"""
MEASURED = """#  Rank  0 Group  0 Pid   11 on  node1 device  0 [0x00] NVIDIA H100
#  Rank  1 Group  0 Pid   12 on  node1 device  1 [0x00] NVIDIA H100
        1024           256     float     sum      -1    50.00    0.02    0.02       0
    67108864      16777216     float     sum      -1   500.00  134.22  134.22       0
"""


class Libraries(harness.Folder):
    def config(self, link=450, library="", model="", name="config.yaml"):
        path = self.folder / name
        path.write_text(CONFIG % {"link": link, "library": library, "model": model})
        return path

    def run_of(self, config, *arguments):
        out = self.folder / "out.h5"
        ran = harness.orrery("run", config, f"--output={out}", "--force", "--progress=none", "--verbose", *arguments)
        self.assertEqual(ran.code, 0, ran.err)
        return ran, out

    def shown(self, config, kind, size, *arguments):
        ran = harness.orrery("show", "collective", config, f"--kind={kind}", f"--bytes={size}", "--json", *arguments)
        self.assertEqual(ran.code, 0, ran.err)
        return json.loads(ran.out)

    def test_a_step_follows_the_links(self):
        """Links within the nodes of 45, 200, 450 and 900 GB/s: each shortens the step, and the results say what binds each collective. No
        member sends more over a resource than it carries in the time of the collective."""
        times = []
        for link in (45, 200, 450, 900):
            _, out = self.run_of(self.config(link))
            with h5py.File(out) as file:
                times.append(int(file["metrics/step_time"][()]))
                table = file["collectives"]
                names = list(table["bound"].attrs["values"])
                if link == 45:
                    inside = table["members"][:] == 8
                    self.assertEqual({names[bound] for bound in table["bound"][:][inside]}, {"links in the node"})
                    self.assertTrue(all(table["extrapolated"][:][inside]))
                took = (table["finish"][:] - table["last_arrival"][:]) * 1e-12
                self.assertTrue(all(table["bound_bytes"][:] <= table["bound_capacity"][:] * took * (1 + 1e-9)))
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertEqual(len(set(times)), 4)

    def test_a_study_ranks_the_links(self):
        """A study of three links within the nodes ranks the step with the fastest one first, and that with the slowest one last."""
        study = self.folder / "study.yaml"
        self.config()
        study.write_text(
            "study:\n  base: config.yaml\n  parameters:\n    link: {key: system.network.dimensions.0.bandwidth, values: [45 GB/s, 900 GB/s, 200 GB/s]}\n"
            "  objectives: [{minimise: step_time}]\n"
        )
        ran = harness.orrery("explore", study, f"--output={self.folder / 'study'}")
        self.assertEqual(ran.code, 0, ran.err)
        places = [ran.out.index(rate) for rate in ("900 GB/s", "200 GB/s", "45 GB/s")]
        self.assertEqual(places, sorted(places), ran.out)

    @harness.long
    def test_one_answer_where_links_are_simulated(self):
        """Collectives of a library are flows over links: every NPU finishes at the same time on 1 to 8 ranks."""
        for model in ("model: congestion-aware\n    switching: cut-through", "model: packet"):
            with self.subTest(model=model):
                self.check_one_answer(
                    [self.config(model=model)], 16, ranks=harness.cases((2, 3), (1, 2, 3, 4, 8), (1, 2, 3, 4, 8))
                )

    def test_alone_all_networks_agree(self):
        """Nothing else is under way: within 2 % where links are simulated, and within 5 % with packets."""
        for kind, size, members in [
            ("all-reduce", "64 MiB", 16),
            ("all-gather", "4 MiB", 16),
            ("all-to-all", "64 MiB", 16),
            ("all-reduce", "64 MiB", 8),
        ]:
            alone = [
                self.shown(self.config(model=model), kind, size, f"--npus={members}")["last_done_ps"]
                for model in (
                    "model: congestion-unaware",
                    "model: congestion-aware\n    switching: cut-through",
                    "model: packet",
                )
            ]
            self.assertAlmostEqual(alone[1] / alone[0], 1, delta=0.02, msg=f"{kind} {size} {members}")
            self.assertAlmostEqual(alone[2] / alone[0], 1, delta=0.05, msg=f"{kind} {size} {members}")

    def test_what_is_far_from_measured_is_said(self):
        """Links of a tenth of those that were measured, and a file of two ranks in a node for a group of eight."""
        (self.folder / "measured.txt").write_text(MEASURED)
        ran, _ = self.run_of(self.config(45))
        self.assertIn("is extrapolated, with an error of about", ran.err)
        self.assertIn("links of 45 GB/s, measured at 450 GB/s", ran.err)
        self.assertNotIn("extrapolated", self.run_of(self.config())[0].err)
        ran, _ = self.run_of(self.config(library=", all-gather: measured.txt"))
        self.assertIn("system.collectives.library.all-gather: no file is of a group like that", ran.err)

    def test_files_say_their_machine(self):
        """A file of two ranks in one node gives its own times there. With the bandwidths of its machine a slower link keeps the correction."""
        (self.folder / "measured.txt").write_text(MEASURED)
        plain = self.shown(self.config(library=", all-reduce: measured.txt"), "all-reduce", "64 MiB", "--npus=2")
        self.assertEqual((plain["last_done_ps"], plain["library"]["corrected"]), (500_000_000, "yes"))
        machine = ", all-reduce: {file: measured.txt, node: 2, bandwidths: [450 GB/s]}"
        slow = self.shown(self.config(225, machine), "all-reduce", "64 MiB", "--npus=2")
        self.assertGreater(slow["last_done_ps"], 800_000_000)
        for wrong, said in [
            ("{node: 2}", "all-reduce.file': the key is missing"),
            ("{file: measured.txt, hosts: 2}", "hosts"),
            ("{file: measured.txt, node: 0}", "found '0'"),
        ]:
            ran = harness.orrery("check", self.config(library=f", all-reduce: {wrong}"))
            self.assertEqual(ran.code, 3)
            self.assertIn(said, ran.err)

    def test_a_step_has_an_error_and_sensitivities(self):
        """The summary and the results say which error the library gives the step, what binds its exposed collectives, and what 10 % more bandwidth
        saves: about as much as a second run with it. The shares of what binds add up to 1. A slow link errs more. One answer on several ranks.
        """
        for link, dimension, rate in ((45, 0, "49.5 GB/s"), (900, 1, "440 Gb/s")):
            config = self.config(link)
            ran, out = self.run_of(config)
            with h5py.File(out) as file:
                step, error, saved = (
                    file["metrics/step_time"][()],
                    file["metrics/step_error"][()],
                    file["metrics/more_bandwidth"][:],
                )
                self.assertAlmostEqual(sum(file["metrics/bound_shares"][:]), 1, delta=1e-9)
            self.assertIn(
                f"library: standard error of the step {100 * error:.2f} %; exposed collectives are bound by ", ran.out
            )
            self.assertIn(f"saves {100 * max(saved):.2f} % in dimension {dimension}", ran.out)
            _, out = self.run_of(config, f"--set=system.network.dimensions.{dimension}.bandwidth={rate}")
            with h5py.File(out) as file:
                self.assertAlmostEqual(
                    1 - file["metrics/step_time"][()] / step, saved[dimension], delta=0.15 * saved[dimension] + 0.001
                )
            if link == 45:
                self.assertGreater(error, 0.1)
        self.check_one_answer([config], 16, ranks=(2, 3))
        ran, out = self.run_of(config, "--set=system.collectives.library.name=nccl-h100", "--record-iterations=0")
        self.assertNotIn("library: ", ran.out)  # no collective is recorded

    def test_ports_apart_carry_their_own(self):
        """Of two dimensions between nodes with a NIC each, an all-to-all puts on each port what goes to members behind it: 8 of 32 behind the first
        and 16 behind the second. One NIC for both carries all of it. Both hold in the congestion-aware network too."""
        times = {}
        for ports in (("near", "far"), ("nic", "nic"), (None, None)):
            dimensions = [{"shape": "Switch", "size": 8, "bandwidth": "450 GB/s", "latency": "468 ns"}]
            dimensions += [
                {
                    "shape": "Switch",
                    "size": 2,
                    "bandwidth": "50 GB/s",
                    "latency": "1 us",
                    **({"port": port} if port else {}),
                }
                for port in ports
            ]
            for network in ("congestion-unaware", "congestion-aware"):
                config = self.folder / "ports.yaml"
                config.write_text(
                    json.dumps(
                        {
                            "system": {
                                "network": {"model": network, "dimensions": dimensions},
                                "collectives": {"library": {"name": "nccl-h100"}},
                            }
                        }
                    )
                )
                times[ports, network] = self.shown(config, "all-to-all", "1 GiB")["last_done_ps"]
        for network in ("congestion-unaware", "congestion-aware"):
            apart, shared = times[("near", "far"), network], times[("nic", "nic"), network]
            self.assertEqual(times[(None, None), network], shared)
            self.assertAlmostEqual(shared / apart, 24 / 16, delta=0.03)

    def test_an_npu_may_lose_some_of_its_links(self):
        """Of four links of 100 GB/s to a switch, an NPU that loses one or two has 300 or 200 GB/s, with a library and without. It keeps one."""

        def config(lost, links, **collectives):
            file = self.folder / "lost.yaml"
            made = {
                "system": {
                    "network": {
                        "dimensions": [
                            {"shape": "Switch", "size": 8, "bandwidth": "100 GB/s", "latency": "468 ns", "links": links}
                        ]
                    },
                    "collectives": collectives,
                }
            }
            if lost:
                made["perturbation"] = {"links": [{"dimension": 0, "npus": npus, "failed": True} for npus in lost]}
            file.write_text(json.dumps(made))
            return file

        for lost, rate in (([], 400e9), ([3], 300e9), (["3", "3"], 200e9), (["3,5", "5"], 200e9)):
            said = self.shown(config(lost, 4, library={"name": "nccl-h100"}), "all-gather", "64 MiB")["library"]
            self.assertAlmostEqual(said["bound_capacity_bytes_per_s"] / rate, 1, delta=1e-9)
        alone = self.shown(config([], 4, **{"all-gather": ["direct"]}), "all-gather", "64 MiB")["last_done_ps"]
        fewer = self.shown(config([3], 4, **{"all-gather": ["direct"]}), "all-gather", "64 MiB")["last_done_ps"]
        self.assertAlmostEqual(fewer / alone, 4 / 3, delta=0.01)
        for lost, links, said in (
            (["3"] * 4, 4, "nothing leads around them"),
            (["2,3"], 1, "each NPU has one link, and nothing leads around it"),
        ):
            ran = harness.orrery("check", config(lost, links))
            self.assertEqual(ran.code, 3)
            self.assertIn(said, ran.err)

    def test_cuts_bind_on_graphs(self):
        """Four leaves of four NPUs and one spine. Uplinks with the bandwidth of all NPUs of a leaf cost nothing; with a quarter of it, an all-to-all
        takes as much longer as what leaves the leaf does, and a ring, which crosses it once, does not."""
        times = {}
        for uplink in (200, 50):
            config = self.folder / "graph.yaml"
            graph = {
                "generate": "leaf-spine",
                "leaves": 4,
                "hosts-per-leaf": 4,
                "spines": 1,
                "bandwidth": "50 GB/s",
                "latency": "500 ns",
                "links": {"uplink": {"bandwidth": f"{uplink} GB/s"}},
            }
            config.write_text(
                json.dumps(
                    {
                        "system": {
                            "network": {
                                "graph": graph,
                                "dimensions": [{"shape": "Switch", "size": 4}, {"shape": "Switch", "size": 4}],
                            },
                            "collectives": {"library": {"name": "nccl-h100", "node-dimensions": 0}},
                        }
                    }
                )
            )
            for kind in ("all-to-all", "all-gather"):
                times[uplink, kind] = self.shown(config, kind, "1 GiB")["library"]
        self.assertEqual(times[200, "all-to-all"]["bound"], "NIC")
        self.assertEqual(times[50, "all-to-all"]["bound"], "dimension 1")
        self.assertAlmostEqual(
            times[50, "all-to-all"]["transfer_s"] / times[200, "all-to-all"]["transfer_s"],
            (12 / 12.5) / (15 / 50),
            delta=1e-6,
        )
        self.assertAlmostEqual(
            times[50, "all-gather"]["transfer_s"] / times[200, "all-gather"]["transfer_s"], 1, delta=1e-6
        )

    def test_cuts_bind_in_fat_trees(self):
        """A FatTree of switches of 8 ports, oversubscribed 4 times, whose edge switches have one link up for 4 NPUs: an all-to-all over all 64 is
        bound by it, and a ring crosses it once."""
        said = {}
        for oversubscription in (1, 4):
            config = self.folder / "tree.yaml"
            config.write_text(
                json.dumps(
                    {
                        "system": {
                            "network": {
                                "model": "congestion-aware",
                                "dimensions": [
                                    {
                                        "shape": "FatTree",
                                        "ports": 8,
                                        "size": 64,
                                        "bandwidth": "50 GB/s",
                                        "latency": "500 ns",
                                        "oversubscription": oversubscription,
                                    }
                                ],
                            },
                            "collectives": {"library": {"name": "nccl-h100", "node-dimensions": 0}},
                        }
                    }
                )
            )
            for kind in ("all-to-all", "all-gather"):
                said[oversubscription, kind] = self.shown(config, kind, "64 MiB")["library"]
        self.assertEqual(said[1, "all-to-all"]["bound"], "NIC")
        self.assertEqual(said[4, "all-to-all"]["bound"], "dimension 0")
        # Four NPUs send 60 of 63 of what they send over one link.
        self.assertAlmostEqual(said[4, "all-to-all"]["bound_capacity_bytes_per_s"], 50e9 / (4 * 60 / 63), delta=1)
        self.assertAlmostEqual(said[4, "all-gather"]["transfer_s"] / said[1, "all-gather"]["transfer_s"], 1, delta=1e-6)

    def test_cuts_have_the_links_of_their_dimension(self):
        """Each NPU of the FatTree above, oversubscribed 4 times, has a link of a second dimension too. Messages within the FatTree do not take these
        links: an all-to-all among its 64 NPUs is bound as without the second dimension."""
        tree = {
            "shape": "FatTree",
            "ports": 8,
            "size": 64,
            "bandwidth": "50 GB/s",
            "latency": "500 ns",
            "oversubscription": 4,
        }
        pair = {"shape": "Ring", "size": 2, "bandwidth": "50 GB/s", "latency": "500 ns"}
        for dimensions in ([tree], [tree, pair]):
            config = self.folder / "trees.yaml"
            config.write_text(
                json.dumps(
                    {
                        "system": {
                            "network": {"model": "congestion-aware", "dimensions": dimensions},
                            "collectives": {"library": {"name": "nccl-h100", "node-dimensions": 0}},
                        }
                    }
                )
            )
            said = self.shown(config, "all-to-all", "64 MiB", "--npus=64")["library"]
            self.assertEqual(said["bound"], "dimension 0")
            self.assertAlmostEqual(said["bound_capacity_bytes_per_s"], 50e9 / (4 * 60 / 63), delta=1)

    def test_a_file_of_another_machine_is_told(self):
        """A file that multiplies a time by more than 3 is of another machine, of which the run warns; one within a factor of 3 is not."""
        for seconds, told in ((500, False), (5000, True)):
            (self.folder / "measured.txt").write_text(MEASURED.replace("500.00", f"{seconds}.00"))
            config = self.config(library=", all-reduce: {file: measured.txt, node: 2}")
            config.write_text(
                config.read_text()
                .replace("tp: 8, sp: true, dp: 2", "tp: 2, dp: 8")
                .replace("size: 8", "size: 2")
                .replace("size: 2, bandwidth: 400", "size: 8, bandwidth: 400")
            )
            ran = harness.orrery("check", config)
            self.assertEqual(ran.code, 0, ran.err)
            self.assertEqual("multiplies the time of the all-reduce" in ran.err + ran.out, told)

    def test_fabrics_have_figures_of_their_own(self):
        """A fabric that was measured stands in the place of a known one: its step and its ramp come with each doubling of the nodes."""
        plain = self.shown(self.config(), "all-reduce", "64 MiB")["library"]
        given = ", fabric-figures: {step: 50 us, ramp: 1 ms, ramp-size: 1 B, nic: 100 Gb/s}"
        own = self.shown(self.config(library=given), "all-reduce", "64 MiB")["library"]
        self.assertAlmostEqual(own["latency_s"] - plain["latency_s"], 2 * 50e-6, delta=1e-9)
        self.assertAlmostEqual(
            own["ramp_s"] - plain["ramp_s"], 1e-3 - 100e-6 * (64 << 20) / ((64 << 20) + 8e6), delta=1e-6
        )
        self.assertGreater(own["error"], plain["error"])
        ran = harness.orrery("check", self.config(library=", fabric-figures: {ramp-size: soon}"))
        self.assertEqual(ran.code, 3)
        self.assertIn("system.collectives.library.fabric-figures.ramp-size", ran.err)

    def test_shares_change_times(self):
        """Each share halves the rate of its algorithm if it is half of that of the library."""
        for share, kind, npus, own in (
            ("ring", "all-gather", 8, 0.811),
            ("nvls", "all-reduce", 8, 0.604),
            ("all-to-all", "all-to-all", 8, 0.752),
            ("nic-ring", "all-gather", 16, 0.955),
            ("nic-all-to-all", "all-to-all", 16, 0.85),
        ):
            plain = self.shown(self.config(), kind, "1 GiB", f"--npus={npus}")["library"]
            half = self.shown(
                self.config(library=f", shares: {{{share}: {own / 2}}}"), kind, "1 GiB", f"--npus={npus}"
            )["library"]
            if share == "nvls":  # a ring is faster than that
                self.assertEqual(half["algorithm"], "ring")
            else:
                self.assertAlmostEqual(half["transfer_s"] / plain["transfer_s"], 2, delta=1e-6)

    def test_shares_are_shares(self):
        """Shares above 1 and below 0, a launch that is no time and a fabric that is not known are refused with their key."""
        for key, value in [
            ("shares", "{ring: 1.5}"),
            ("shares", "{nvls: -1}"),
            ("launch", "soon"),
            ("fabric", "ethernet"),
        ]:
            ran = harness.orrery("check", self.config(library=f", {key}: {value}"))
            self.assertEqual(ran.code, 3, f"{key}: {value}")
            self.assertIn(f"system.collectives.library.{key}", ran.err)


if __name__ == "__main__":
    harness.main()
