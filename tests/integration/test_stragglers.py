#!/usr/bin/python3
"""Distributions of compute and network times: times by hand, results on any number of ranks, folded or not, and repetitions.

The system of tests by hand: 4 NPUs on a ring with 10 GB/s and 100 ns."""
import json
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

SYSTEM = """system:
  network:
    dimensions: [{shape: Ring, size: 4, bandwidth: 10 GB/s, latency: 100 ns}]
"""
US = 10**6  # ps

STEP = """system:
  network:
    dimensions:
      - {shape: FullyConnected, size: 4, bandwidth: 150 GB/s, latency: 500 ns}
      - {shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}
      - {shape: Switch, size: 4, bandwidth: 400 Gb/s, latency: 1 us}
  collectives: {chunks: 4}
  communication: {streams: 2, rendezvous: %s}
  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
workload:
  model: {layers: 4, hidden: 2048, heads: 32, sequence: 1024}
  parallel: %s
  iterations: 2
"""
PIPELINED = "{tp: 4, sp: true, dp: 4, pp: 4, micro-batches: 4}"

EVERYTHING = """perturbation:
  noise: 0.05
  distributions:
    - {per: machine, machine-size: 4, kind: tail, probability: 0.2, factor: 1.3}
    - {per: npu, kind: normal, deviation: 0.02}
    - {per: step, kind: exponential, probability: 0.3, excess: 0.2}
    - {per: node, kind: lognormal, deviation: 0.1, least: 0.8}
    - {per: collective, kind: exponential, excess: 0.5, most: 5}
    - {per: message, kind: values, values: [1, 1, 1, 3]}
"""


CASES = 3 if harness.FEWER_CASES else 8


class Stragglers(harness.Folder):
    def config(self, text, name="config.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def traced(self, nodes, distributions, more=()):
        """Returns the finish times in ps of four NPUs, NPU i with the nodes nodes(i)."""
        for npu in range(4):
            chakra.write(self.folder / f"w.{npu}.et", nodes(npu))
        config = self.config(f"{SYSTEM}workload: {{traces: w}}\nperturbation: {{distributions: {distributions}}}\n")
        return harness.finish_times(self.run_once([config, *more]))

    def test_certain_factors_by_hand(self):
        """Factors that are drawn with certainty: those of machines and NPUs lengthen 10 us of compute and not 3 us of the CPU; those of
        steps and nodes lengthen both."""
        nodes = lambda npu: [
            Node(1, chakra.COMP, duration=10, is_cpu_op=False),
            Node(2, chakra.COMP, data_deps=[1], duration=3, is_cpu_op=True),
        ]  # noqa: E731
        for per, expected in (("machine", 23), ("npu", 23), ("step", 26), ("node", 26)):
            self.assertEqual(self.traced(nodes, f"[{{per: {per}, kind: tail, factor: 2}}]"), [expected * US] * 4, per)
        self.assertEqual(
            self.traced(
                nodes,
                "[{per: npu, kind: tail, factor: 2}, {per: step, kind: values, values: [0.5]}, {per: node, kind: tail, factor: 3}]",
            ),
            [(2 * 10 + 3) * US * 3 // 2] * 4,
        )
        self.assertEqual(
            self.traced(nodes, "[{per: step, kind: tail, factor: 2}]", ["--iterations=3"]), [3 * 26 * US] * 4
        )

    def test_machines_are_slow_together(self):
        """NPUs of one machine have one compute time, and each NPU its own where it is drawn per NPU."""
        nodes = lambda npu: [Node(1, chakra.COMP, duration=10, is_cpu_op=False)]  # noqa: E731
        first, second, third, fourth = self.traced(
            nodes, "[{per: machine, machine-size: 2, kind: uniform, least: 0.5, most: 2}]"
        )
        self.assertEqual((first, third), (second, fourth))
        self.assertNotEqual(first, third)
        self.assertEqual(len(set(self.traced(nodes, "[{per: npu, kind: uniform, least: 0.5, most: 2}]"))), 4)

    def test_collectives_and_messages_by_hand(self):
        """A factor of 3 for a message of 10,000 B, which takes 1.1 us, and of 2 for an all-reduce of 6 messages of 210 ns each, whose last
        member comes after 5 us of compute. Twice as long counts from then on."""

        def message(npu):
            if npu > 1:
                return [Node(1, chakra.COMP, duration=1)]
            return [
                Node(1, chakra.SEND if npu == 0 else chakra.RECV, comm_src=0, comm_dst=1, comm_tag=0, comm_size=10_000)
            ]

        self.assertEqual(self.traced(message, "[{per: message, kind: tail, factor: 3}]")[1], 3_300_000)
        self.assertEqual(self.traced(message, "[{per: collective, kind: tail, factor: 3}]")[1], 1_100_000)

        def collective(npu):
            late = [Node(1, chakra.COMP, duration=5)] if npu == 2 else []
            return late + [
                Node(2, chakra.COLL, data_deps=[1] if late else [], comm_type=chakra.ALL_REDUCE, comm_size=4000)
            ]

        plain = self.traced(collective, "[{per: message, kind: tail, factor: 2}]")
        self.assertGreater(min(plain), 5 * US)
        self.assertEqual(
            self.traced(collective, "[{per: collective, kind: tail, factor: 2}]"), [2 * time - 5 * US for time in plain]
        )

    def test_results_are_the_same_on_any_number_of_ranks(self):
        """A step of 64 NPUs with every kind of draw gives the same results on 1 to 8 ranks and with a scattered partition, eager and with
        rendezvous, and other results than without draws."""
        for rendezvous in ("false", "true"):
            with self.subTest(rendezvous=rendezvous):
                text = STEP % (rendezvous, PIPELINED)
                config = self.config(text + EVERYTHING)
                first = self.check_one_answer(
                    [config, "--timeline"], 64, ranks=(1, 2, 3) if harness.FEWER_CASES else (1, 2, 3, 4, 8)
                )
                plain = self.run_once([self.config(text, "plain.yaml"), "--timeline"], "plain.h5")
                self.assertNotEqual(harness.finish_times(first), harness.finish_times(plain))

    def test_folded_runs_give_the_same_results(self):
        """What is drawn keeps NPUs apart where it differs, and folds those for which the same is drawn. Folded and not, on several ranks,
        the results are the same."""
        import h5py

        cases = [
            (PIPELINED, "[{per: machine, machine-size: 16, kind: tail, probability: 0.3, factor: 1.3}]", 4),
            (PIPELINED, "[{per: step, kind: tail, probability: 0.05, factor: 1.5}]", 64),
            ("{dp: 64}", "[{per: collective, kind: exponential, excess: 0.5}]", 1),
            (PIPELINED, "[{per: collective, kind: exponential, excess: 0.5}]", 64),
            ("{dp: 64}", "[{per: message, kind: tail, factor: 2}]", 1),
            (PIPELINED, "[{per: message, kind: exponential, excess: 0.5}]", 64),
            (
                "{tp: 32, dp: 2}",
                "[{per: npu, kind: tail, probability: 0.05, factor: 0.5}, {per: collective, kind: tail, probability: 0.5, factor: 4}]",
                64,
            ),
        ]
        for parallel, distributions, most in cases:
            with self.subTest(parallel=parallel, distributions=distributions):
                config = self.config(STEP % ("false", parallel) + f"perturbation: {{distributions: {distributions}}}\n")
                plain = self.run_once([config], "plain.h5")
                for ranks in (0, 2):
                    folded = self.run_once([config, "--fold"], "folded.h5", ranks=ranks)
                    self.assertEqual(harness.difference(plain, folded), "")
                with h5py.File(folded) as results:
                    self.assertLessEqual(int(results.attrs["num_classes"]), most)

    def test_random_distributions_have_one_answer(self):
        """Random lists of distributions, with factors far below 1, of random steps: on random numbers of ranks and with random partitions,
        folded and not, the results are the same."""
        rng = random.Random(5)
        for case in range(CASES):
            entries = []
            for _ in range(rng.randint(1, 4)):
                per = rng.choice(["machine", "npu", "step", "node", "collective", "message"])
                least = 1 if per in ("collective", "message") else rng.choice([0.01, 0.5, 1])
                spread = rng.choice(
                    [
                        f"kind: uniform, least: {least}, most: {rng.choice([1, 1.5, 4])}",
                        f"kind: normal, deviation: {rng.choice([0.05, 1])}, least: {least}",
                        f"kind: lognormal, deviation: {rng.choice([0.1, 1])}, least: {least}",
                        f"kind: tail, probability: {rng.choice([0.02, 0.5])}, factor: {max(least, 3)}",
                        f"kind: exponential, probability: {rng.choice([0.1, 1])}, excess: {rng.choice([0.1, 2])}",
                        f"kind: values, values: [{least}, 1, 2]",
                    ]
                )
                size = f", machine-size: {rng.choice([3, 8, 16])}" if per == "machine" else ""
                entries.append(f"{{per: {per}{size}, {spread}}}")
            parallel = rng.choice([PIPELINED, "{tp: 32, dp: 2}", "{dp: 64}", "{tp: 2, pp: 4, dp: 8, micro-batches: 4}"])
            text = (
                STEP % (rng.choice(["true", "false"]), parallel)
                + f"perturbation: {{noise-seed: {case}, distributions: [{', '.join(entries)}]}}\n"
            )
            config, ranks = self.config(text), rng.choice([2, 3, 4])
            with self.subTest(case=case, text=text):
                plain = self.run_once([config], "plain.h5")
                for more in (["--fold"], [f"--partition={rng.choice(['round-robin', 'metis', 'dimension:0'])}"]):
                    self.assertEqual(
                        harness.difference(plain, self.run_once([config, *more], "other.h5", ranks=ranks)),
                        "",
                        f"{ranks} ranks {more}",
                    )

    def test_the_resolved_configuration_gives_the_same_results(self):
        """The resolved configuration holds measured factors and all bounds: it gives the same times and resolves to itself."""
        import h5py

        (self.folder / "factors.txt").write_text("# slow, then fast\n1.3\n0.9\n1\n")
        more = "    - {per: node, kind: values, values: factors.txt}\n"
        first = self.run_once([self.config(STEP % ("false", PIPELINED) + EVERYTHING + more)])
        with h5py.File(first) as results:
            again = self.config(results["config/resolved"][()].decode(), "again.yaml")
            self.assertIn("values: [0.9, 1, 1.3]", again.read_text())
            self.assertIn(b"slow, then fast", results["config/inputs/factors.txt"][()])
        repeated = self.run_once([again], "again.h5")
        self.assertEqual(harness.finish_times(first), harness.finish_times(repeated))
        with h5py.File(first) as results, h5py.File(repeated) as other:
            self.assertEqual(results["config/resolved"][()], other["config/resolved"][()])

    def test_repetitions(self):
        """Five repetitions, folded or not, on any number of ranks: each has the time of a run with its seed, the statistics are those of
        Python, and the results of NPUs are those of the first."""
        import h5py
        import numpy

        text = STEP % ("false", "{tp: 32, dp: 2}")
        for distributions in (
            "[{per: npu, kind: tail, probability: 0.02, factor: 1.5}]",
            "[{per: node, kind: normal, deviation: 0.1}, {per: collective, kind: tail, probability: 0.5, factor: 2}]",
        ):
            config = self.config(text + f"perturbation: {{noise-seed: 7, distributions: {distributions}}}\n")
            path = self.check_one_answer([config, "--repetitions=5"], 64, ranks=(2, 3))
            folded = self.run_once([config, "--repetitions=5", "--fold"], "folded.h5", ranks=2)
            self.assertEqual(harness.difference(path, folded), "")
            single = [self.run_once([config, f"--noise-seed={seed}"], f"seed{seed}.h5") for seed in range(7, 12)]
            with h5py.File(path) as results, h5py.File(single[0]) as first:
                group = results["repetitions"]
                self.assertEqual(group["seed"][:].tolist(), [7, 8, 9, 10, 11])
                times = group["simulated_time"][:]
                self.assertEqual(times.tolist(), [max(harness.finish_times(path)) for path in single])
                self.assertEqual(results["npus/finish_time"][:].tolist(), first["npus/finish_time"][:].tolist())
                self.assertNotIn("repetitions", first)
                half = 2.7764451 * numpy.std(times, ddof=1) / math.sqrt(5)
                for name, expected in (
                    ("mean", times.mean()),
                    ("standard_deviation", numpy.std(times, ddof=1)),
                    ("minimum", times.min()),
                    ("maximum", times.max()),
                    ("confidence_low", times.mean() - half),
                    ("confidence_high", times.mean() + half),
                ):
                    self.assertTrue(
                        math.isclose(group.attrs[name], expected, rel_tol=1e-7, abs_tol=1),
                        (name, group.attrs[name], expected),
                    )
                self.assertGreater(group.attrs["standard_deviation"], 0)
        outcome = harness.orrery("run", config, "--repetitions=5", f"--output={self.folder / 'r.h5'}", "--verbose")
        self.assertRegex(
            outcome.out,
            r"step time of 5 repetitions \(seeds 7 to 11\): mean .* 95 % confidence interval .*standard deviation",
        )

    def test_repetitions_of_nothing_drawn_warn(self):
        """Where nothing is drawn all repetitions are equal, and a warning says so; none of them is refused."""
        config = self.config(STEP % ("false", "{dp: 64}"))
        outcome = harness.orrery("run", config, "--repetitions=3", f"--output={self.folder / 'r.h5'}", "--verbose")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("nothing is drawn", outcome.err)
        self.assertIn("standard deviation 0", outcome.out)
        outcome = harness.orrery("check", config, "--repetitions=0")
        self.assertEqual(outcome.code, 2)
        self.assertIn("--repetitions", outcome.err)

    def test_a_stop_keeps_the_repetitions_that_ended(self):
        """A run of very many repetitions is stopped by its wall-time limit: status interrupted, with the repetitions that ended."""
        import h5py

        config = self.config(STEP % ("false", "{dp: 64}") + "perturbation: {noise: 0.1}\n")
        outcome = harness.orrery(
            "run", config, "--repetitions=1000000", "--max-walltime=2", f"--output={self.folder / 'r.h5'}"
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        with h5py.File(self.folder / "r.h5") as results:
            self.assertEqual(results.attrs["status"], "interrupted")
            self.assertGreater(len(results["repetitions/seed"]), 1)

    def test_repetitions_of_few_events_can_be_stopped(self):
        """A run of very many repetitions, each of which has a few events only, is stopped by its wall-time limit on one and two ranks,
        and resumes from its checkpoint with the repetitions that it had."""
        import h5py

        config = self.config(
            "system: {network: {dimensions: [{shape: Ring, size: 2, bandwidth: 50 GB/s, latency: 500 ns}]}, compute: {roofline: true, peak: 100 TFLOPS, "
            "local-memory: {bandwidth: 1000 GB/s}}}\nworkload: {model: {layers: 1, hidden: 64, heads: 1, sequence: 64}, parallel: {dp: 2}}\n"
            "perturbation: {noise: 0.1}\n"
        )
        results, checkpoint = self.folder / "r.h5", self.folder / "checkpoint"
        command = [
            "run",
            config,
            "--repetitions=100000000",
            "--max-walltime=1",
            f"--output={results}",
            f"--checkpoint={checkpoint}",
        ]
        numbers = []
        for ranks, more in ((0, []), (2, [f"--restart={checkpoint}"])):
            outcome = harness.orrery(*command, *more, ranks=ranks)
            self.assertEqual(outcome.code, 75, outcome.err)
            with h5py.File(results) as file:
                numbers.append(len(file["repetitions/seed"]))
        self.assertGreater(numbers[0], 1)
        self.assertGreater(numbers[1], numbers[0])

    def test_presets_run(self):
        """Each preset of configs/perturbations runs by its name, also with keys of one's own, and draws factors."""
        presets = sorted(path.stem for path in (harness.SOURCE / "configs/perturbations").glob("*.yaml"))
        self.assertGreaterEqual(len(presets), 2)
        text = STEP % ("false", "{dp: 64}")
        for preset in presets:
            named = self.run_once([self.config(text + f"perturbation: {preset}\n")])
            based = self.run_once(
                [self.config(text + f"perturbation: {{base: {preset}, noise-seed: 1, repetitions: 2}}\n")], "based.h5"
            )
            self.assertEqual(harness.finish_times(named), harness.finish_times(based))
        outcome = harness.orrery("check", self.config(text + "perturbation: megascal\n"))
        self.assertEqual(outcome.code, 3)
        self.assertIn("Did you mean the preset 'megascale'?", outcome.err)

    def test_the_study_compares_rows_at_a_fixed_batch(self):
        """The study of stragglers with two made-up rows and a file of one's own in which every machine is twice as slow: all runs are equal,
        so the interval is a point."""
        model = '{""kind"": ""transformer"", ""layers"": 4, ""hidden"": 1024, ""heads"": 16, ""sequence"": 512, ""vocabulary"": 1024}'
        rows = ["id,kind,group,hardware,gpus,config,precision,step_or_us"]
        for gpus, batches in ((16, 8), (32, 4)):
            parallel = f'{{""tp"": 4, ""pp"": 2, ""dp"": {gpus // 8}, ""micro-batches"": {batches}}}'
            rows.append(
                f'row-{gpus},training step,A MegaScale row,a100,{gpus},"{{""model"": {model}, ""parallel"": {parallel}}}",bf16,0.1'
            )
        (self.folder / "rows.csv").write_text("\n".join(rows) + "\n")
        (self.folder / "all.yaml").write_text("distributions: [{per: machine, kind: tail, factor: 2}]\n")
        done = harness.run_script(
            "scripts/studies/stragglers",
            f"--rows={self.folder / 'rows.csv'}",
            f"--perturbation={self.folder / 'all.yaml'}",
            "--repetitions=2",
            f"--json={self.folder / 'out.json'}",
            f"--orrery={harness.BINARY}",
        )
        self.assertEqual(done.code, 0, done.err)
        found = json.loads((self.folder / "out.json").read_text())
        self.assertEqual([row["gpus"] for row in found["rows"]], [16, 32])
        for row in found["rows"]:
            self.assertEqual(row["batch"], 16)
            self.assertGreater(row["slow"]["mean"], row["plain"])
            self.assertLess(row["slow"]["mean"], 2 * row["plain"])
            self.assertEqual(row["slow"]["confidence_low"], row["slow"]["confidence_high"])
        self.assertIn("batch 16, 2 times the GPUs: measured 50.0 %", done.out)
        refused = harness.run_script(
            "scripts/studies/stragglers",
            f"--rows={self.folder / 'rows.csv'}",
            "--select=nobody",
            f"--orrery={harness.BINARY}",
        )
        self.assertEqual(refused.code, 1)
        self.assertIn("found no training step whose group holds 'nobody'", refused.err)

    def test_a_replay_warns(self):
        """A replay takes what was recorded, and says that distributions have no effect."""
        nodes = lambda npu: [Node(1, chakra.COMP, duration=10, is_cpu_op=False)]  # noqa: E731
        self.assertEqual(
            self.traced(nodes, "[{per: node, kind: tail, factor: 2}]", ["--set=workload.replay-only=true"]),
            [10 * US] * 4,
        )
        outcome = harness.orrery("check", self.folder / "config.yaml", "--set=workload.replay-only=true")
        self.assertIn("perturbation has no effect", outcome.err)


if __name__ == "__main__":
    harness.main()
