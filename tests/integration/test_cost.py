#!/usr/bin/python3
"""`cost`: what a system and a step cost, in the summary, in /metrics and in studies."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402

CONFIG = """system:
  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 300 GB/s, latency: 500 ns}, {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}]}
  compute: {model: roofline, peak: 300 TFLOPS, local-memory: {bandwidth: 2000 GB/s, size: 100 GB}}
workload:
  model: {layers: 4, hidden: 1024, heads: 8, sequence: 1024, vocabulary: 32000}
  parallel: {dp: 2, tp: 4}
"""
PRICES = """source: a test
date: 2026-01
npu: {price: 1000, memory: 2, busy-power: 100, idle-power: 40}
network: [{name: a, link: 1}, {name: b, link: 2, nic: 3}]
operation: {lifetime: 2, electricity: 0.1}
"""
CAPEX = 8 * (1000 + 200) + 8 * 300 * 1 + 8 * 50 * (2 + 3)


class Cost(harness.Folder):
    def config(self, cost="cost: prices.yaml\n"):
        (self.folder / "prices.yaml").write_text(PRICES)
        path = self.folder / "config.yaml"
        path.write_text(CONFIG + cost)
        return path

    def run_one(self, config, *arguments, ranks=0):
        output = self.folder / "results.h5"
        done = harness.orrery("run", config, f"--output={output}", "--force", "--verbose", *arguments, ranks=ranks)
        self.assertEqual(done.code, 0, done.err)
        with h5py.File(output) as file:
            return done.out, {
                name: value[()]
                for name, value in file["/metrics"].items()
                if not isinstance(value, h5py.Group) and not value.shape
            }

    def test_costs_of_a_run(self):
        """The price of the system is the sum of its parts, and power, energy and price of the step follow from the time and the share of
        compute that the results have; the same on two ranks and folded. Without prices there are none of these figures.
        """
        printed, found = self.run_one(self.config())
        self.assertEqual(found["capex"], CAPEX)
        self.assertRegex(
            printed, rf"price: {CAPEX} USD \(NPUs 8000, local memory 1600, a links 2400, b links 800, b NICs 1200\)"
        )
        busy, seconds = found["compute_share"], found["step_time"] * 1e-12
        self.assertAlmostEqual(found["power"], 8 * (100 * busy + 40 * (1 - busy)))
        self.assertAlmostEqual(found["energy_per_step"], found["power"] * seconds)
        price = CAPEX / (2 * 8760 * 3600) * seconds + found["energy_per_step"] / 3.6e6 * 0.1
        self.assertAlmostEqual(found["usd_per_step"] / price, 1, places=12)
        self.assertAlmostEqual(found["tokens_per_usd"] * price / (2 * 1024), 1, places=9)
        for others in ({"ranks": 2}, {}):
            again = self.run_one(self.config(), *([] if others else ["--fold"]), **others)[1]
            self.assertEqual(again, found)
        printed, without = self.run_one(self.config(cost=""))
        self.assertNotRegex(printed, "price|cost of a step")
        self.assertEqual(
            set(found) - set(without),
            {"capex", "power", "energy_per_step", "usd_per_step", "tokens_per_usd", "tokens_per_joule"},
        )

    def test_presets(self):
        """Each preset of configs/prices prices a network of three dimensions, or says the rent of an NPU, and the resolved configuration that
        the results keep gives the same costs."""
        for preset in sorted(path.stem for path in (harness.SOURCE / "configs/prices").glob("*.yaml")):
            config = self.folder / "preset.yaml"
            config.write_text(
                f"system: dgx-h100-superpod\nstack: h100-nemo\ncost: {preset}\n"
                "workload: {model: llama3-8b, parallel: {tp: 8, dp: 128}}\n"
            )
            printed, found = self.run_one(config, "--fold")
            if "-rent-" in preset:  # a few USD an hour for each of 1,024 NPUs
                hours = found["step_time"] * 1e-12 / 3600
                self.assertTrue(1 < found["usd_per_step"] / (1024 * hours) < 10)
                self.assertNotIn("capex", found)
                continue
            self.assertGreater(found["capex"], 1e6)
            with h5py.File(self.folder / "results.h5") as file:
                config.write_bytes(file["/config/resolved"][()])
            self.assertEqual(self.run_one(config, "--fold")[1]["capex"], found["capex"])

    def test_studies_minimise_prices(self):
        """A study takes prices from the file beside it. The cheapest step, the limit on the price of the system and the bounds of `bounded` give
        what the metrics of all trials of `grid` say. Without prices the study is refused, and the file of the last one stays.
        """
        self.config(cost="")
        text = (
            "study:\n  base: config.yaml\n  parameters:\n"
            "    bandwidth: {key: system.network.dimensions.1.bandwidth, values: [25 GB/s, 50 GB/s, 100 GB/s, 200 GB/s, 400 GB/s]}\n"
            "    tp: {key: workload.parallel.tp, values: [1, 2, 4, 8]}\n  derived:\n"
            "    dp: {key: workload.parallel.dp, value: 8 / tp}\n    m: {key: workload.parallel.micro-batches, value: tp}\n"
            "  constraints: [capex <= 20000]\n  objectives: [{%s}]\n  keep: 3\n  strategy: {kind: %s}\n%s"
        )
        study, output = self.folder / "study.yaml", self.folder / "explore.h5"
        for objective in (
            "minimise: usd_per_step",
            "maximise: tokens_per_j",
            "minimise: energy_per_step",
            "minimise: power",
        ):
            best = {}
            for kind in ("grid", "bounded"):
                study.write_text(text % (objective, kind, "cost: prices.yaml\n"))
                done = harness.orrery("explore", study, f"--output={output}", "--force")
                self.assertEqual(done.code, 0, done.err)
                with h5py.File(output) as file:
                    best[kind] = list(file["/best"])
                    trials = {name: file["/trials"][name][()] for name in ("capex", "status", objective.split()[1])}
                if kind == "grid":
                    fits = trials["capex"] <= 20000
                    self.assertEqual(sum(trials["status"] == b"done"), sum(fits))
                    self.assertEqual((sum(fits), len(fits)), (16, 20))
                    values = trials[objective.split()[1]] * (-1 if "maximise" in objective else 1)
                    ranked = sorted((value, number) for number, value in enumerate(values) if fits[number])
                    self.assertEqual(best["grid"], [number for _, number in ranked[:3]])
            self.assertEqual(best["grid"], best["bounded"], objective)
        study.write_text(text % ("minimise: usd_per_step", "grid", ""))
        before = output.read_bytes()
        done = harness.orrery("explore", study, f"--output={output}", "--force")
        self.assertEqual(done.code, 3)
        self.assertRegex(
            done.err, r"study\.yaml:9: .*found 'capex', which follows from prices, and no configuration has `cost`"
        )
        self.assertRegex(done.err, r"study\.yaml:10: .*found 'usd_per_step'")
        self.assertEqual(output.read_bytes(), before)

    def test_wrong_prices_are_refused(self):
        """Prices below 0, a tier that is not there, too few tiers, prices without a source, and an unknown key: each is named with its place."""
        cases = [
            ("cost: {source: a, date: b, npu: {price: -1}}\n", "cost.npu.price"),
            ("cost: {base: prices.yaml, tiers: [a, c]}\n", "expected a tier of cost.network: a, b"),
            ("cost: {source: a, date: b, network: [{name: a}]}\n", "one for each of the 2 dimensions"),
            ("cost: {date: b}\n", "cost.source"),
            ("cost: {base: prices.yaml, operation: {utilisation: 0}}\n", "more than 0, and 1 or less"),
            ("cost: {base: prices.yaml, npus: {price: 3}}\n", "npu"),
            ("cost: no-such-prices\n", "configs/prices/no-such-prices"),
        ]
        for cost, words in cases:
            done = harness.orrery("run", self.config(cost), f"--output={self.folder / 'r.h5'}")
            self.assertEqual(done.code, 3, cost)
            self.assertIn(words, done.err)
            self.assertFalse((self.folder / "r.h5").exists())


if __name__ == "__main__":
    harness.main()
