#!/usr/bin/python3
"""Intervals of predictions, what they rest on, and the calibration of stacks with a few steps."""
import csv
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402

MODEL = {
    "kind": "transformer",
    "layers": 4,
    "hidden": 2048,
    "heads": 16,
    "kv-heads": 8,
    "ffn": 8192,
    "vocabulary": 32000,
    "sequence": 2048,
    "gated": True,
}
CONFIG = """%(stack)s
system:
  base: systems/dgx-h100-superpod.yaml
  network: {dimensions: [{shape: Switch, size: 8, bandwidth: 450 GB/s, latency: 468 ns}]}
workload:
  model: {kind: transformer, layers: 4, hidden: 2048, heads: 16, kv-heads: 8, ffn: 8192, vocabulary: 32000, sequence: 2048, gated: true}
  parallel: {dp: 8, micro-batches: 2, zero: 1}
"""
STACK = """system:
  compute: {model: products, processor: h100, efficiency: 0.8, elementwise: 0.5}
provenance:
  basis: "of a test"
  deviation: 0.1
  ranges:
    - {key: workload.parallel.micro-batch, least: 1, most: 4}
  numbers:
    - {key: system.compute.efficiency, deviation: 0.06, kind: fitted, source: "two steps"}
  steps:
    - {name: "Small on 8", npus: 8, parameters: 4e8, sequence: 2048}
    - {name: "Large on 1024", npus: 1024, parameters: 4e11, sequence: 8192}
"""


def seconds(text):
    value, unit = re.fullmatch(r"([\d.]+) (\w+)", text).groups()
    return float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}[unit]


class Calibration(harness.Folder):
    def config(self, stack="", name="config.yaml"):
        path = self.folder / name
        path.write_text(CONFIG % {"stack": f"stack: {stack}" if stack else ""})
        return path

    def stack(self, text=STACK, name="own-stack.yaml"):
        (self.folder / name).write_text(text)
        return name

    def ran(self, *arguments, name="results.h5"):
        done = harness.orrery(
            "run", *arguments, f"--output={self.folder / name}", "--force", "--progress=none", "--verbose"
        )
        self.assertEqual(done.code, 0, done.err)
        return done

    @staticmethod
    def values(group):
        """Returns all numbers below a group, by name."""
        found = {}
        group.visititems(
            lambda name, item: found.update({name: repr(item[()])}) if isinstance(item, h5py.Dataset) else None
        )
        return found

    def rows(self, times, groups="H100 NeMo", name="steps.csv", precision="bf16"):
        file = self.folder / name
        with open(file, "w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow("id,kind,group,hardware,gpus,config,precision,step_or_us,source".split(","))
            for number, time in enumerate(times):
                model = dict(MODEL, sequence=2048 << number)
                config = {"model": model, "parallel": {"dp": 8, "micro-batches": 2, "zero": 1}}
                writer.writerow(
                    [f"row{number}", "training step", groups, "h100", 8, json.dumps(config), precision, time, "own"]
                )
        return file

    def test_interval(self):
        """The deviation of a stack, 0.1 and 0.2, gives the interval that is printed and stored: factors of exp(1.2816 deviation). The basis
        names the nearest step. Traces of a run have no interval."""
        for deviation in (0.1, 0.2):
            config = self.config(self.stack(STACK.replace("deviation: 0.1\n", f"deviation: {deviation}\n")))
            out = self.ran(config).out
            step = seconds(re.search(r"^step time ([\d.]+ \w+)", out, re.M)[1])
            low, high, basis = re.search(r"^80 % interval ([\d.]+ \w+) to ([\d.]+ \w+) \((.*)\)$", out, re.M).groups()
            factor = math.exp(1.2815515655 * deviation)
            self.assertAlmostEqual(seconds(low) * factor / step, 1, places=3)
            self.assertAlmostEqual(seconds(high) / factor / step, 1, places=3)
            self.assertEqual(basis, "of a test; nearest: Small on 8")
            with h5py.File(self.folder / "results.h5") as file:
                metrics = file["metrics"]
                self.assertAlmostEqual(metrics["prediction_deviation"][()], deviation)
                self.assertAlmostEqual(
                    metrics["step_time_high"][()] / metrics["step_time_low"][()], factor**2, places=6
                )
                rate = metrics["tokens_per_second"][()]
                self.assertAlmostEqual(metrics["tokens_per_second_low"][()] * factor / rate, 1, places=6)
                self.assertEqual(metrics.attrs["basis"], basis)

    def test_a_resolved_configuration_keeps_the_interval(self):
        """The configuration in the results of a run with a stack, with one that says nothing, with one whose basis is plain text with commas and
        with a provenance of its own: run again, it has the metrics of the run and names its basis. An unknown part of a provenance is refused,
        and so is a wrong number of a stack, with its line."""
        own = CONFIG % {
            "stack": 'provenance: {basis: "own steps: six", deviation: 0.07, steps: [{name: Mine, npus: 8, parameters: 4e8}]}'
        }
        (self.folder / "own.yaml").write_text(own)
        for config in (
            self.config(self.stack()),
            self.config(self.stack(STACK[: STACK.index("provenance")], "silent.yaml"), "b.yaml"),
            self.config(self.stack(STACK.replace('"of a test"', "six steps, on [2, 3]"), "plain.yaml"), "c.yaml"),
            self.folder / "own.yaml",
        ):
            first = self.ran(config).out
            with h5py.File(self.folder / "results.h5") as file:
                metrics = self.values(file["metrics"])
                (self.folder / "resolved.yaml").write_text(file["config/resolved"][()].decode())
            again = self.ran(self.folder / "resolved.yaml", name="again.h5").out
            interval = re.search(r"^80 % interval .*$", first, re.M)[0]
            self.assertIn(interval, again)
            with h5py.File(self.folder / "again.h5") as file:
                self.assertEqual(self.values(file["metrics"]), metrics)
        self.assertIn("own steps: six; nearest: Mine", interval)
        (self.folder / "own.yaml").write_text(own.replace("deviation", "deviance"))
        refused = harness.orrery("run", self.folder / "own.yaml", f"--output={self.folder / 'x.h5'}")
        self.assertEqual(refused.code, 3)
        self.assertIn("provenance.deviance", refused.err)
        wrong = self.config(self.stack(STACK.replace("least: 1,", "least: few,"), "wrong.yaml"), "d.yaml")
        refused = harness.orrery("run", wrong, f"--output={self.folder / 'x.h5'}")
        self.assertEqual(refused.code, 3)
        self.assertRegex(refused.err, r"wrong\.yaml:7: key 'provenance\.least': found 'few'")

    def test_without_a_stack(self):
        """A roofline is less certain than figures of kernels, and both say that no stack is given."""
        factors = []
        for more in ((), ("--set=system.compute.model=products",)):
            out = self.ran(self.config(), *more).out
            low, high, basis = re.search(r"^80 % interval ([\d.]+ \w+) to ([\d.]+ \w+) \((.*)\)$", out, re.M).groups()
            self.assertIn("no stack", basis)
            factors.append(seconds(high) / seconds(low))
        self.assertGreater(factors[0], 1.2 * factors[1])

    def test_warning_outside_of_a_range(self):
        """A micro-batch of 8 lies outside of the 1 to 4 to which the stack was fitted: a warning names the key. One of 4 does not."""
        config = self.config(self.stack())
        self.assertNotIn("in which the stack was fitted", self.ran(config, "--set=workload.parallel.micro-batch=4").err)
        warned = self.ran(config, "--set=workload.parallel.micro-batch=8").err
        self.assertIn(
            "workload.parallel.micro-batch: found 8, outside of 1 to 4, in which the stack was fitted", warned
        )

    def test_provenance(self):
        """The numbers of a stack are listed with what it says of them and with what a step depends on them, of a CONFIG.yaml as of its
        results. A file that is not there is refused."""
        config = self.config(self.stack())
        self.ran(config)
        for file in (config, self.folder / "results.h5"):
            shown = harness.orrery("show", "provenance", file)
            self.assertEqual(shown.code, 0, shown.err)
            self.assertIn("rests on: of a test", shown.out)
            line = re.search(
                r"^system.compute.efficiency\s+0\.8\s+6\.0 %\s+([+-][\d.]+) %\s+([\d.]+) %\s+fitted, two steps$",
                shown.out,
                re.M,
            )
            self.assertIsNotNone(line, shown.out)
            self.assertTrue(-1 < float(line[1]) < -0.1)
            self.assertAlmostEqual(float(line[2]), 6 * abs(float(line[1])), delta=0.2)
            self.assertIn("h100", re.search(r"^system.compute.processor .*$", shown.out, re.M)[0])
        self.assertEqual(harness.orrery("show", "provenance", self.folder / "no.yaml").code, 3)

    def calibrated(self, rows, *more):
        stack = self.folder / "calibrated.yaml"
        stack.unlink(missing_ok=True)
        done = harness.orrery("calibrate", "steps", rows, f"--output={stack}", *more)
        self.assertEqual(done.code, 0, done.err)
        return done.out, stack

    def predicted(self, stack):
        """Seconds of the rows' steps with a stack."""
        out = self.folder / "errors.json"
        file = self.folder / "with-stack.csv"
        with open(self.rows([1, 1, 1], name="plain.csv"), newline="") as stream:
            lines = list(csv.reader(stream))
        with open(file, "w", newline="") as stream:
            csv.writer(stream).writerows([lines[0] + ["stack"]] + [line + [str(stack)] for line in lines[1:]])
        done = harness.run_script(
            "scripts/studies/validation", f"--rows={file}", f"--json={out}", f"--orrery={harness.BINARY}"
        )
        self.assertEqual(done.code, 0, done.err)
        return [row["predicted"] for row in json.loads(out.read_text())["rows"]]

    def test_calibrate_steps(self):
        """Steps that a machine at 0.8 of the shipped speed would take are fitted: the errors that are left are a fraction of the shipped
        ones, the new stack predicts the steps, and its numbers carry deviations. Nearer steps move the numbers less."""
        plain = self.predicted("h100-nemo")
        for slower in (1.25, 1.05):
            out, stack = self.calibrated(self.rows([slower * time for time in plain]))
            errors = [abs(found / (slower * time) - 1) for found, time in zip(self.predicted(stack), plain)]
            self.assertLess(max(errors), 0.4 * (slower - 1) / slower, out)
            text = stack.read_text()
            self.assertRegex(text, r"key: system\.compute\.efficiency, deviation: 0\.\d+, kind: fitted")
            self.assertRegex(text, r"basis: \"h100-nemo, fitted to 3 steps of steps\.csv\"")
            self.assertIn("mean error of a row that was left out", out)

    def test_one_row_validates_nothing(self):
        """A single row is fitted, and the program says that nothing is validated and prints no error of rows that were left out. A stack is
        not written over, and rows without a training step are refused."""
        out, stack = self.calibrated(self.rows([1.1 * self.predicted("h100-nemo")[0]]))
        self.assertIn("nothing is validated", out)
        self.assertNotIn("mean error", out)
        again = harness.orrery("calibrate", "steps", self.folder / "steps.csv", f"--output={stack}")
        self.assertEqual(again.code, 3)
        self.assertIn("found a file of this name", again.err)
        empty = self.folder / "empty.csv"
        empty.write_text("id,kind,group,hardware,gpus,config,precision,step_or_us\n")
        refused = harness.orrery("calibrate", "steps", empty, f"--output={self.folder / 'new.yaml'}")
        self.assertEqual(refused.code, 3)
        self.assertIn("no row of kind 'training step'", refused.err)

    def test_physics(self):
        """Power caps, attention kernels, NVFP4, rows of matrices that are not aligned, broadcasts by owners and separate kernels of loss and
        gradients change the step in the direction that they do on machines, and by amounts that follow from their formulas.
        """
        config = self.config("h100-nemo")
        base = ["--set=system.compute.model=products", "--set=workload.model.sequence=16384"]

        def step(*settings):
            return seconds(
                re.search(
                    r"^step time ([\d.]+ \w+)", self.ran(config, *base, *(f"--set={s}" for s in settings)).out, re.M
                )[1]
            )

        plain = step()
        capped = [step(f"system.compute.power-cap={watts}") for watts in (700, 500, 300)]
        self.assertEqual(capped[0], plain)
        clock = math.sqrt((500 - 110) / (700 - 110))
        self.assertTrue(1 < capped[1] / plain < 1 / clock)
        self.assertGreater(capped[2], capped[1])
        kernels = [step(f"system.compute.attention-kernel=flash-attention-{version}") for version in (3, 2, 1)]
        self.assertEqual(kernels, sorted(kernels))
        self.assertGreater(kernels[1], 1.05 * kernels[0])
        peaks = [
            "system.compute.peak={bf16: 2250 TFLOPS, fp8: 4500 TFLOPS, nvfp4: 9000 TFLOPS}",
            "system.compute.processor=b200",
        ]
        low = [
            step(*peaks, f"workload.parallel.precision={precision}") for precision in ("bf16", "mxfp8", "fp8", "nvfp4")
        ]
        self.assertEqual(low, sorted(low, reverse=True))
        self.assertGreater(low[0], 1.1 * low[3])
        self.assertGreater(step("workload.model.ffn=8191"), 1.05 * step("workload.model.ffn=8192"))
        self.assertGreater(
            step("workload.parallel.owners-broadcast=true", "workload.parallel.gather-before-forward=false"),
            step("workload.parallel.gather-before-forward=false"),
        )
        vocabularies = [
            (
                step(f"workload.model.vocabulary={words}", "workload.parallel.fused-loss=false")
                - step(f"workload.model.vocabulary={words}")
            )
            for words in (32000, 256000)
        ]
        self.assertAlmostEqual(vocabularies[1] / vocabularies[0], 8, delta=0.2)
        self.assertGreater(step("workload.parallel.fused-gradients=false"), plain)
        passes = 2 * 2 * 6  # forward and backward, of two micro-batches and six layers with embedding and output
        self.assertAlmostEqual((step("workload.parallel.layer-time=1 ms") - plain) / 1e-3, passes, delta=1)


if __name__ == "__main__":
    harness.main()
