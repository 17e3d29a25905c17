#!/usr/bin/python3
"""Predictions by measured figures: compute models that estimate operations, libraries of collectives, stacks, overlap and calibration."""
import csv
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, str(harness.SOURCE / "scripts/studies"))

import trends  # noqa: E402

PRESETS = harness.SOURCE / "configs"
MODEL = "{kind: transformer, layers: 4, hidden: 2048, heads: 16, kv-heads: 8, ffn: 8192, vocabulary: 32000, sequence: 2048, gated: true, rotary: true}"
CONFIG = (
    """stack: %(stack)s
system:
  base: systems/dgx-h100-superpod.yaml
  network: {dimensions: [{shape: Switch, size: 8, bandwidth: 450 GB/s, latency: 468 ns}, {shape: Switch, size: 2, bandwidth: 400 Gb/s, latency: 1 us}]}
workload:
  model: """
    + MODEL
    + """
  parallel: {%(parallel)s}
"""
)
NCCL_TESTS = """# nThread 1 nGpus 1 minBytes 1024 maxBytes 67108864
#  Rank  0 Group  0 Pid   11 on  node1 device  0 [0x00] NVIDIA H100
#  Rank  1 Group  0 Pid   12 on  node1 device  1 [0x00] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
        1024           256     float     sum      -1    50.00    0.02    0.02       0    49.00    0.02    0.02       0
    16777216       4194304     float     sum      -1   200.00   83.89   83.89       0   199.00   84.31   84.31       0
    67108864      16777216     float     sum      -1   500.00  134.22  134.22       0   499.00  134.49  134.49       0
"""


def step_ps(outcome):
    """Returns the step time that a run printed."""
    value, unit = re.search(r"^step time ([\d.]+) (\w+)", outcome.out, re.MULTILINE).groups()
    return float(value) * {"s": 1e12, "ms": 1e9, "µs": 1e6, "ns": 1e3, "ps": 1}[unit]


class Predictions(harness.Folder):
    def config(
        self, parallel="tp: 4, sp: true, dp: 4, micro-batches: 2, zero: 1", stack="h100-nemo", name="config.yaml"
    ):
        path = self.folder / name
        path.write_text(CONFIG % {"stack": stack, "parallel": parallel})
        return path

    def step(self, *arguments, name="results.h5"):
        ran = harness.orrery("run", *arguments, f"--output={self.folder / name}", "--force", "--progress=none")
        self.assertEqual(ran.code, 0, ran.err)
        return step_ps(ran)

    def refused(self, *arguments):
        ran = harness.orrery("run", *arguments, f"--output={self.folder / 'refused.h5'}", "--progress=none")
        self.assertEqual(ran.code, 3, ran.err)
        return ran.err

    def test_one_answer(self):
        """16 NPUs in two nodes with a stack: every NPU finishes at the same time on 1 to 4 ranks, in any partition and folded. So do they
        with a pipeline, context parallelism as a ring, split tensor-parallel collectives, with ZeRO 3 whose collectives are half exposed,
        and with noise and sums that run beside gathers."""
        for parallel in [
            "tp: 4, sp: true, dp: 4, micro-batches: 2, zero: 1, tp-overlap: 0.7, between-steps: 1 ms",
            "tp: 2, sp: true, cp: 2, pp: 2, dp: 2, micro-batches: 4, zero: 1, cp-exchange: ring",
            "dp: 16, zero: 3, exposed-share: 0.5, micro-batch: 1",
            "tp: 2, sp: true, dp: 8, replicas: 2, zero: 3, exposed-share: 0.3, micro-batches: 2",
        ]:
            with self.subTest(parallel=parallel):
                run = [self.config(parallel)] + (["--set=perturbation.noise=0.1"] if "replicas" in parallel else [])
                self.check_one_answer(run, 16)
                plain, folded = self.run_once(run, "plain.h5"), self.run_once([*run, "--fold"], "folded.h5")
                self.assertEqual(list(harness.finish_times(plain)), list(harness.finish_times(folded)))

    def test_stack_stands_between_file_and_preset(self):
        """A stack takes the place of what the system's preset says, and CONFIG.yaml that of what the stack says. --set stack chooses one as
        the file would, and an unknown one is refused with the places where Orrery searched."""
        config = self.config()
        with_stack = self.step(config)
        other = self.step(self.config(stack="h100-fsdp", name="other.yaml"))
        self.assertNotEqual(with_stack, other)
        self.assertEqual(self.step(config, "--set=stack=h100-fsdp"), other)
        slower = self.step(config, "--set=system.compute.efficiency=0.4")
        self.assertGreater(slower, 1.15 * with_stack)
        own = self.folder / "own.yaml"
        own.write_text(config.read_text().replace("  base:", "  compute: {efficiency: 0.4}\n  base:"))
        self.assertEqual(self.step(own), slower)
        self.assertIn("no-such-stack", self.refused(self.config(stack="no-such-stack", name="wrong.yaml")))

    def test_overlap_never_makes_a_step_longer(self):
        """The step with more of the communication beside compute is never longer: split tensor-parallel collectives, keys and values in a
        ring (of long sequences: the ring moves them once more), parameters gathered before the forward pass, and less exposed ZeRO 3 (of
        large layers: each part pays a latency). Collectives take no compute units here."""
        for parallel, key, values, more in [
            ("tp: 8, sp: true, dp: 2, micro-batches: 2", "tp-overlap", (0, 0.3, 0.6, 0.9), []),
            ("cp: 4, dp: 4", "cp-exchange", ("gather", "ring"), ["--set=workload.model.sequence=65536"]),
            ("dp: 16, zero: 1", "gather-before-forward", ("false", "true"), []),
            ("dp: 16, zero: 3", "exposed-share", (0.9, 0.6, 0.3, 0), ["--set=workload.model.hidden=8192"]),
        ]:
            with self.subTest(key=key):
                more = [*more, "--set=system.collectives.compute-share=0"]
                times = [self.step(self.config(f"{parallel}, {key}: {value}"), *more) for value in values]
                self.assertEqual(times, sorted(times, reverse=True))
                self.assertGreater(times[0], times[-1])

    def test_overlapped_gradient_sums_never_make_a_step_longer(self):
        """Sixteen random ways to train on one or two dimensions: gradients that are summed during the backward pass never make the step
        longer than sums after it."""
        draw = random.Random(1611)
        for case in range(16):
            tp, dp, pp, cp = draw.choice([1, 2, 4]), draw.choice([2, 4]), draw.choice([1, 2]), draw.choice([1, 1, 2])
            zero = case % 4
            npus = tp * dp * pp * cp
            dimension = (
                "{shape: Switch, size: %d, bandwidth: " + draw.choice(["25", "100", "400"]) + " GB/s, latency: 500 ns}"
            )
            sizes = [npus // 2, 2] if npus >= 4 and draw.random() < 0.5 else [npus]
            config = self.folder / "overlap.yaml"
            config.write_text(
                "system:\n  base: systems/dgx-h100-superpod.yaml\n  network: {dimensions: ["
                f"{', '.join(dimension % size for size in sizes)}]}}\nworkload:\n  model: {MODEL}\n  parallel: "
                f"{{tp: {tp}, dp: {dp}, pp: {pp}, cp: {cp}, sp: {'true' if tp > 1 else 'false'}, zero: {zero}, "
                f"micro-batches: {draw.choice([1, 2, 4])}, bucket: {draw.choice([0, 50, 500])} MB}}\n"
            )
            with self.subTest(case=case):
                after = self.step(config, "--set=workload.parallel.overlap=false")
                self.assertLessEqual(self.step(config), after)

    def test_library_decides_collectives(self):
        """All NPUs complete a collective of NCCL together. The table of nccl-tests corrects it: at measured sizes it takes what was measured
        in groups of the measured kind, and other kinds stay as they are."""
        table = self.folder / "all-reduce.txt"
        table.write_text(NCCL_TESTS)
        config = self.folder / "library.yaml"

        def times(kind, correction=""):
            config.write_text(
                "system:\n  network: {dimensions: [{shape: Switch, size: 2, bandwidth: 450 GB/s, latency: 500 ns}]}\n"
                f"  collectives: {{library: {{name: nccl-h100{correction}}}}}\n"
            )
            shown = harness.orrery("show", "collective", config, f"--kind={kind}", "--bytes=16777216 B", "--json")
            self.assertEqual(shown.code, 0, shown.err)
            figures = json.loads(shown.out)
            return figures["first_done_ps"], figures["last_done_ps"]

        first, last = times("all-reduce")
        self.assertEqual(first, last)
        measured = times("all-reduce", f", all-reduce: {table}")
        self.assertEqual(measured[0], measured[1])
        self.assertAlmostEqual(measured[1], 200e6, delta=2)
        self.assertEqual(times("all-to-all"), times("all-to-all", f", all-reduce: {table}"))

    def test_refusals(self):
        """A library, a table and keys without their model are refused with the key and what to do."""
        config = self.config()
        plain = self.folder / "plain.yaml"
        plain.write_text(config.read_text().split("\n", 1)[1])
        self.assertIn("system.compute.model: products", self.refused(plain, "--set=system.compute.attention=0.5"))
        self.assertIn(
            "system.collectives.library.name", self.refused(plain, "--set=system.collectives.library.fabric=efa")
        )
        table = self.folder / "kernels.csv"
        table.write_text("operator,m,k,n,microseconds\nproduct,1,2,x,4\n")
        self.assertIn(
            "kernels.csv:2: key 'n': found 'x'",
            self.refused(plain, "--set=system.compute.model=table", f"--set=system.compute.table={table}"),
        )
        table.write_text("operator,m,k,n,microseconds\nproduct,1024,1024,1024,4\n")
        config.write_text(plain.read_text())
        self.assertIn(
            "no kernel for the operator",
            self.refused(config, "--set=system.compute.model=table", f"--set=system.compute.table={table}"),
        )

    def test_table_gives_what_it_holds(self):
        """A table whose kernels take 1 us for each 2^30 multiplications or 10^6 bytes: the step of one NPU takes the sum of its operations.
        A warning names an operator whose sizes lie outside of the table."""
        table = self.folder / "kernels.csv"

        def kernels(bytes_per_microsecond):
            lines = ["operator,pass,m,k,n,bytes,microseconds"]
            for m, k, n in [(512, 512, 512), (8192, 8192, 32768)]:
                lines += [f"product,,{m},{k},{n},,{m * k * n / 2**30}"]
            lines += [
                f"attention,{p},{m},128,2048,,{m * 128 * 2048 / 2**30}" for p in ("", "backward") for m in (1024, 65536)
            ]
            return lines + [
                f"elementwise,{p},,,,{b},{b / bytes_per_microsecond}" for p in ("", "backward") for b in (1000, 10**9)
            ]

        config = self.config("dp: 16")
        config.write_text(config.read_text().split("\n", 1)[1])
        arguments = [config, "--set=system.compute.model=table", f"--set=system.compute.table={table}"]
        times = {}
        for rate in (1e7, 1e6):
            lines = kernels(rate)
            table.write_text("\n".join(lines) + "\n")
            ran = harness.orrery(
                "run",
                *arguments,
                f"--output={self.folder / 'results.h5'}",
                "--force",
                "--progress=none",
                "--set=workload.model.layers=1",
                "--set=workload.model.vocabulary=0",
            )
            self.assertEqual(ran.code, 0, ran.err)
            with h5py.File(self.folder / "results.h5") as results:
                times[rate] = int(results["/npus/compute_time"][0])
        multiplications = 2048 * 2048 * (2048 + 2 * 1024) + 2048 * 2048 * 2048 + 3 * 2048 * 2048 * 8192
        attention = 16 * 2048 * 128 * 2048
        products = (3 * multiplications + 2 * attention) / 2**30 * 1e6
        self.assertGreater(times[1e7], products)
        self.assertAlmostEqual((times[1e6] - products) / (times[1e7] - products), 10, delta=0.001)
        rows = [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]
        columns = self.folder / "kernels.h5"
        with h5py.File(columns, "w") as file:
            for name in rows[0]:
                numbers = name in ("m", "k", "n", "bytes", "microseconds")
                values = [float(row[name] or "nan") if numbers else row[name] for row in rows]
                file[name] = values if numbers or name == "pass" else np.array(values, dtype="S16")
        self.assertEqual(self.step(*arguments), self.step(*arguments[:-1], f"--set=system.compute.table={columns}"))
        with h5py.File(columns, "a") as file:
            del file["m"]
            file["m"] = [1.0, 2.0]
        self.assertRegex(
            self.refused(*arguments[:-1], f"--set=system.compute.table={columns}"),
            r"kernels\.h5: key '\w+': it has \d+ rows, and",
        )
        table.write_text(table.read_text() + "attenton.qkv,,64,64,64,,1\n")
        warned = harness.orrery(
            "run", *arguments, f"--output={self.folder / 'results.h5'}", "--force", "--progress=none"
        )
        self.assertIn("kernels of 'attenton.qkv' are those of no operator of the workload", warned.err)
        table.write_text(table.read_text().replace("512,512,512,,0.125", "4096,4096,4096,,64"))
        warned = harness.orrery(
            "run", *arguments, f"--output={self.folder / 'results.h5'}", "--force", "--progress=none"
        )
        self.assertRegex(warned.err, r"attention\.qkv: m 2048 lies outside of the 4096 to 8192 that were measured")

    def test_calibration_finds_the_number_again(self):
        """The step of a configuration with efficiency 0.5, given as the measured one, gives 0.5 back. A time that no efficiency gives is
        refused with the range. Collectives that take compute units would let two efficiencies give one step."""
        config = self.config(stack="h100-megatron")
        measured = self.step(config, "--set=system.compute.efficiency=0.5") / 1e12
        fitted = harness.orrery("calibrate", "step", config, "--measured", f"{measured:.6f}s")
        self.assertEqual(fitted.code, 0, fitted.err)
        self.assertAlmostEqual(
            float(re.match(r"system\.compute\.efficiency: ([\d.]+)", fitted.out)[1]), 0.5, delta=0.001
        )
        self.assertRegex(fitted.out, r"1 % more of it makes the step 0\.\d+ % shorter")
        config = self.config(
            "tp: 8, sp: true, dp: 2, micro-batches: 2"
        )  # a share from 0 to below 1, and one that makes steps longer
        for key, value in (("workload.parallel.tp-overlap", 0.4), ("system.collectives.compute-share", 0.3)):
            measured = self.step(config, f"--set={key}={value}") / 1e12
            fitted = harness.orrery("calibrate", "step", config, "--measured", f"{measured:.9f}s", f"--key={key}")
            self.assertEqual(fitted.code, 0, fitted.err)
            again = float(re.match(rf"{re.escape(key)}: ([\d.]+)", fitted.out)[1])
            self.assertAlmostEqual(self.step(config, f"--set={key}={again}") / 1e12 / measured, 1, delta=1e-3)
        for key, code, words in (
            ("workload.parallel.micro-batches", 3, "expected a share"),
            ("system.no-such", 2, "no-such"),
        ):
            refused = harness.orrery("calibrate", "step", config, "--measured", "1s", f"--key={key}")
            self.assertEqual(refused.code, code)
            self.assertIn(words, refused.err)
        config = self.config(stack="h100-megatron")
        refused = harness.orrery("calibrate", "step", config, "--measured", "1us")
        self.assertEqual(refused.code, 3)
        self.assertIn("expected the measured 1e-06 s between them", refused.err)
        self.assertEqual(harness.orrery("calibrate", "step", config).code, 2)

    def test_calibration_of_collectives(self):
        """nccl-tests' output, as it is: the errors with and without correction, and the keys to use it."""
        table = self.folder / "all-reduce.txt"
        table.write_text(NCCL_TESTS)
        done = harness.orrery("calibrate", "collectives", table, "--library=nccl-h100")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("all-reduce among 2 ranks on 1 node, 3 sizes", done.out)
        self.assertRegex(done.out, r"67108864 +500\.0 µs +[+-][\d.]+ % +[+-]0\.0 %")
        self.assertIn(f'all-reduce: ["{table}"]', done.out)
        for words, kind in (("redop", "all-gather"), ("'scan'; expected one of all-reduce", "scan")):
            refused = harness.orrery("calibrate", "collectives", table, "--library=nccl-h100", f"--kind={kind}")
            self.assertEqual(refused.code, 3)
            self.assertIn(words, refused.err)
        table.write_text("# Collective test starting: all_gather_perf\n" + NCCL_TESTS)
        self.assertIn(
            "found the output of all_gather_perf",
            harness.orrery("calibrate", "collectives", table, "--library=nccl-h100").err,
        )
        table.write_text(NCCL_TESTS)
        refused = harness.orrery("calibrate", "collectives", table, "--library=no-such")
        self.assertEqual(refused.code, 3)
        self.assertNotIn("config.yaml", refused.err)
        self.assertIn(f"the library for {table}", refused.err)
        table.write_text("nothing\n")
        self.assertEqual(harness.orrery("calibrate", "collectives", table, "--library=nccl-h100").code, 3)

    def test_one_number_fitted_to_two_rows(self):
        """Three steps whose times are predicted with the stack h100-nemo at an efficiency of 0.6. The study that fits it to the first two
        finds 0.6, and is right about the third; without the rates of the stack it is not."""
        file, out = self.folder / "rows.csv", self.folder / "out.json"
        model = {"kind": "transformer", "layers": 4, "hidden": 4096, "heads": 32, "sequence": 4096, "vocabulary": 32000}
        layouts = (
            {"tp": 8, "sp": True},
            {"tp": 4, "sp": True, "dp": 2},
            {"tp": 2, "sp": True, "dp": 4, "micro-batch": 2},
        )

        def study(name, times, *options):
            with open(file, "w", newline="") as rows:
                writer = csv.writer(rows)
                writer.writerow("id,kind,group,hardware,gpus,config,precision,step_or_us".split(","))
                for number, (layout, time) in enumerate(zip(layouts, times)):
                    config = json.dumps({"model": model, "parallel": layout | {"micro-batches": 2}})
                    writer.writerow([number, "training step", "H100 NeMo", "h100", 8, config, "bf16", time])
            done = harness.run_script(
                f"scripts/studies/{name}", f"--rows={file}", f"--json={out}", f"--orrery={harness.BINARY}", *options
            )
            self.assertEqual(done.code, 0, done.err)
            return json.loads(out.read_text())

        times = [
            row["predicted"] for row in study("validation", [1, 1, 1], "--set=system.compute.efficiency=0.6")["rows"]
        ]
        found = study("validation_two_rows", times, "--keep", "attention", "elementwise", "compute-share", "fp8")
        self.assertEqual(found["stacks"]["h100-nemo"]["rows"], ["0", "2"])
        self.assertAlmostEqual(found["stacks"]["h100-nemo"]["efficiency"], 0.6, delta=0.01)
        self.assertEqual(found["groups"]["all"]["rows"], 1)
        self.assertLess(found["groups"]["all"]["mean"], 0.01)
        self.assertGreater(study("validation_two_rows", times)["groups"]["all"]["mean"], 0.01)

    def test_rows_that_cannot_be_read(self):
        """Of five rows of a file two are training steps that can be predicted. The study names the others with the column and what it found,
        counts those of another kind, and ends with 1. A file without a column, or without a training step, is refused.
        """
        file, out = self.folder / "rows.csv", self.folder / "out.json"
        columns = "id,kind,group,hardware,gpus,config,precision,step_or_us".split(",")
        config = json.dumps(
            {
                "model": {
                    "kind": "transformer",
                    "layers": 2,
                    "hidden": 1024,
                    "heads": 8,
                    "sequence": 1024,
                    "vocabulary": 32000,
                },
                "parallel": {"tp": 8, "sp": True},
                "tp_overlap": True,
            }
        )
        good = ["training step", "H100 NeMo", "h100", 8, config, "bf16", 0.01]
        rows = [
            ["good", *good],
            ["empty", *good[:-1], ""],
            ["json", *good[:4], "{", *good[5:]],
            ["card", *good[:2], "h900", *good[3:]],
            ["again", *good],
            ["other", "collective", *good[1:]],
        ]

        def study(lines, names=columns):
            with open(file, "w", newline="") as stream:
                csv.writer(stream).writerows([names, *lines])
            return harness.run_script(
                "scripts/studies/validation", f"--rows={file}", f"--json={out}", f"--orrery={harness.BINARY}"
            )

        done = study(rows)
        self.assertEqual(done.code, 1)
        self.assertEqual([row["id"] for row in json.loads(out.read_text())["rows"]], ["good", "again"])
        for words in (
            "row 2 ('empty'): column step_or_us: found nothing; expected seconds",
            "row 3 ('json'): column config: found '{'",
            "row 4 ('card'): column hardware: found 'h900'",
            "1 rows of kind 'collective' are left out: scripts/studies/collectives",
        ):
            self.assertIn(words, done.err)
        self.assertEqual(study(rows[:1]).code, 0)
        done = study(rows[5:])
        self.assertEqual(done.code, 1)
        self.assertIn("no training step", done.err)
        self.assertEqual(done.out, "")
        self.assertIn("no column kind", study([row[:1] + row[2:] for row in rows], columns[:1] + columns[2:]).err)

    def test_tp_overlap_is_that_of_the_stack(self):
        """The stack h100-nemo overlaps tensor-parallel collectives with products, so that a step with `tp-overlap: 0` takes longer."""
        config = self.config(parallel="tp: 8, sp: true, dp: 2, micro-batches: 2")
        times = [
            self.step(config, *more)
            for more in ((), ("--set=workload.parallel.tp-overlap=0.8",), ("--set=workload.parallel.tp-overlap=0",))
        ]
        self.assertEqual(times[0], times[1])
        self.assertLess(times[0], 0.99 * times[2])

    @harness.long
    def test_steps_on_tpu_v5p(self):
        """The sixteen published steps of MaxText on slices of TPU v5p: 7 % on the mean, nine of ten within 15 %."""
        out = self.folder / "errors.json"
        rows = harness.SOURCE / "scripts/studies/measured/tpu_v5p_maxtext.csv"
        done = harness.run_script(
            "scripts/studies/validation", f"--rows={rows}", f"--json={out}", f"--orrery={harness.BINARY}"
        )
        self.assertEqual(done.code, 0, done.err)
        found = json.loads(out.read_text())["groups"]["TPU v5p MaxText"]
        self.assertEqual(found["rows"], 16)
        self.assertLess(found["mean"], 0.07)
        self.assertLess(found["p90"], 0.15)

    def test_training_memory(self):
        """Nine published figures of the memory of Megatron's models, 22 to 1,008 billion parameters on A100: 8 % on the mean, 12 % at worst."""
        file = self.folder / "memory.json"
        done = harness.run_script("scripts/studies/training_memory", f"--json={file}", f"--orrery={harness.BINARY}")
        self.assertEqual(done.code, 0, done.err)
        found = json.loads(file.read_text())
        self.assertEqual(len(found["rows"]), 9)
        self.assertLess(found["mean"], 0.08)
        self.assertLess(max(abs(row["error"]) for row in found["rows"]), 0.12)

    def test_trends(self):
        """Steps of four rows: a longer sequence halves the rate, twice the NPUs at the same batch take a tenth of it, FP8 adds a half. The
        predictions take other shares, and one has the wrong sign."""

        def row(gpus, micro_batches, measured, predicted, sequence=2048, precision="bf16"):
            config = {
                "model": {"sequence": sequence},
                "parallel": {"dp": gpus, "micro-batches": micro_batches, "precision": precision},
            }
            entry = {"config": json.dumps(config), "gpus": str(gpus), "precision": precision, "hardware": "h100"}
            return {
                "stack": "s",
                "settings": trends.settings_of(entry),
                "flops": 100 / gpus * sequence / 2048,
                "measured": measured,
                "predicted": predicted,
            }

        found = trends.trends(
            [
                row(1, 4, 1.0, 1.0),
                row(2, 2, 0.5 / 0.9, 0.5 / 0.95),
                row(1, 4, 4.0, 3.2, sequence=4096),
                row(1, 4, 1 / 1.5, 1 / 0.9, precision="fp8"),
            ]
        )
        self.assertEqual(sorted(found), ["FP8 against BF16", "sequence", "strong scaling"])
        for name, error, signs in (("strong scaling", 0.05, 1), ("sequence", 0.125, 1), ("FP8 against BF16", 0.6, 0)):
            self.assertAlmostEqual(found[name]["mean"], error)
            self.assertEqual((found[name]["pairs"], found[name]["signs"]), (1, signs))


if __name__ == "__main__":
    harness.main()
