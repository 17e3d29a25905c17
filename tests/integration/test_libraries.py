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
        ran = harness.orrery("run", config, f"--output={out}", "--force", "--progress=none", *arguments)
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
        study.write_text("study:\n  base: config.yaml\n  parameters:\n    link: {key: system.network.dimensions.0.bandwidth, values: [45 GB/s, 900 GB/s, 200 GB/s]}\n"
                         "  objectives: [{minimise: step_time}]\n")
        ran = harness.orrery("explore", study, f"--output={self.folder / 'study'}")
        self.assertEqual(ran.code, 0, ran.err)
        places = [ran.out.index(rate) for rate in ("900 GB/s", "200 GB/s", "45 GB/s")]
        self.assertEqual(places, sorted(places), ran.out)

    @harness.long
    def test_one_answer_where_links_are_simulated(self):
        """Collectives of a library are flows over links: every NPU finishes at the same time on 1 to 8 ranks."""
        for model in ("model: congestion-aware\n    switching: cut-through", "model: packet"):
            with self.subTest(model=model):
                self.check_one_answer([self.config(model=model)], 16, ranks=harness.cases((2, 3), (1, 2, 3, 4, 8), (1, 2, 3, 4, 8)))

    def test_alone_all_networks_agree(self):
        """Nothing else is under way: within 2 % where links are simulated, and within 5 % with packets."""
        for kind, size, members in [("all-reduce", "64 MiB", 16), ("all-gather", "4 MiB", 16), ("all-to-all", "64 MiB", 16), ("all-reduce", "64 MiB", 8)]:
            alone = [self.shown(self.config(model=model), kind, size, f"--npus={members}")["last_done_ps"]
                     for model in ("model: congestion-unaware", "model: congestion-aware\n    switching: cut-through", "model: packet")]
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
        for wrong, said in [("{node: 2}", "all-reduce.file': the key is missing"), ("{file: measured.txt, hosts: 2}", "hosts"),
                            ("{file: measured.txt, node: 0}", "found '0'")]:
            ran = harness.orrery("check", self.config(library=f", all-reduce: {wrong}"))
            self.assertEqual(ran.code, 3)
            self.assertIn(said, ran.err)

    def test_shares_are_shares(self):
        """Shares above 1 and below 0, a launch that is no time and a fabric that is not known are refused with their key."""
        for key, value in [("shares", "{ring: 1.5}"), ("shares", "{nvls: -1}"), ("launch", "soon"), ("fabric", "ethernet")]:
            ran = harness.orrery("check", self.config(library=f", {key}: {value}"))
            self.assertEqual(ran.code, 3, f"{key}: {value}")
            self.assertIn(f"system.collectives.library.{key}", ran.err)


if __name__ == "__main__":
    harness.main()
