#!/usr/bin/python3
"""Slow NPUs, slow and failed links, and noise: times by hand, results on any number of ranks, and what is refused.

The system of tests by hand: 4 NPUs on a ring with 10 GB/s and 100 ns."""
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
ONE_WAY = SYSTEM + "  collectives: {directions: one}\n"
US = 10**6  # ps

# 64 NPUs, three dimensions, every way to be asymmetric: faster NPUs too.
SKEWED = """system:
  network:
    dimensions:
      - {shape: FullyConnected, size: 4, bandwidth: 150 GB/s, latency: 500 ns}
      - {shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 1 us}
      - {shape: Switch, size: 4, bandwidth: 400 Gb/s, latency: 1 us}
  collectives: {chunks: 4}
  communication: {streams: %d, rendezvous: %s}
  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
workload:
  model: {layers: 8, hidden: 2048, heads: 32, sequence: 1024}
  parallel: {tp: 4, sp: true, dp: 4, pp: 4, micro-batches: 4}
  iterations: 2
perturbation:
  noise: 0.05
  slow-npus: [{npus: "3,17,40-43", compute: 0.8}, {npus: "5,18", compute: 4}]
  links:
    - {dimension: 0, npus: "0,1", failed: true}
    - {dimension: 0, npus: "20-23,33", bandwidth: 0.5}
    - {dimension: 1, npus: "0-7", bandwidth: 0.5, latency: 2.0}
    - {dimension: 1, npus: "16,28", failed: true}
    - {dimension: 2, npus: "9,25,63", bandwidth: 0.1, latency: 0.25}
    - {dimension: 2, npus: "26-30", bandwidth: 2, latency: 0.25}
"""

LARGE = """system:
  base: {root}/configs/systems/dgx-h100-superpod.yaml
  network:
    dimensions:
      - {{shape: Switch, size: 8, bandwidth: 450 GB/s, latency: 468 ns}}
      - {{shape: Switch, size: 32, bandwidth: 400 Gb/s, latency: 1 us}}
      - {{shape: Switch, size: 16, bandwidth: 400 Gb/s, latency: 1 us}}
  compute: {{noise: 0.03, noise-seed: 7}}
workload:
  model: {{base: {root}/configs/models/gpt3-175b.yaml, layers: 8}}
  parallel: {{tp: 8, sp: true, dp: 64, pp: 8, micro-batches: 2}}
perturbation:
  slow-npus: [{{npus: "3,17,64-71,4095", compute: 0.8}}]
  compute-speed: {speeds}
  links:
    - {{dimension: 1, npus: "0-7,2000", bandwidth: 0.5, latency: 2.0}}
    - {{dimension: 0, npus: "100,3333", bandwidth: 0.25}}
"""


class Perturbation(harness.Folder):
    def config(self, text, name="config.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def traced(self, nodes, perturbation, system=SYSTEM):
        """Returns the finish times in ps of four NPUs, NPU i with the nodes nodes(i)."""
        for npu in range(4):
            chakra.write(self.folder / f"w.{npu}.et", nodes(npu))
        config = self.config(f"{system}workload: {{traces: w}}\nperturbation: {perturbation}\n")
        return harness.finish_times(self.run_once([config]))

    def test_slow_npus_compute_longer(self):
        """An NPU of speed s computes for 10 us / s and then uses the CPU, which is not slowed, for 3 us. Speeds come from the configuration
        or from a file."""
        nodes = lambda npu: [
            Node(1, chakra.COMP, duration=10, is_cpu_op=False),
            Node(2, chakra.COMP, data_deps=[1], duration=3, is_cpu_op=True),
        ]  # noqa: E731
        self.assertEqual(
            self.traced(nodes, '{slow-npus: [{npus: 2, compute: 0.8}, {npus: "1-2", compute: 0.5}]}'),
            [13 * US, 23 * US, 28 * US, 13 * US],
        )
        speeds = self.folder / "speeds.txt"
        speeds.write_text("0.5\n2\n1\n4\n")
        self.assertEqual(
            self.traced(nodes, "{compute-speed: speeds.txt}"), [23 * US, 8 * US, 13 * US, 3 * US + 2_500_000]
        )

    def test_slow_and_failed_links_delay_a_message(self):
        """NPU 0 sends 10,000 B to NPU 1 in 100 ns and 1 us; slow links at either end take longer, a failed one is avoided."""

        def nodes(npu):
            if npu == 0:
                return [Node(1, chakra.SEND, comm_src=0, comm_dst=1, comm_tag=0, comm_size=10_000)]
            if npu == 1:
                return [Node(1, chakra.RECV, comm_src=0, comm_dst=1, comm_tag=0, comm_size=10_000)]
            return [Node(1, chakra.COMP, duration=1)]

        self.assertEqual(self.traced(nodes, "{}")[1], 1_100_000)
        self.assertEqual(self.traced(nodes, "{links: [{dimension: 0, npus: 2, bandwidth: 0.1}]}")[1], 1_100_000)
        self.assertEqual(
            self.traced(nodes, "{links: [{dimension: 0, npus: 1, bandwidth: 0.5, latency: 3}]}")[1], 2_300_000
        )
        self.assertEqual(self.traced(nodes, '{links: [{dimension: 0, npus: "0,1", failed: true}]}')[1], 1_300_000)
        self.assertEqual(
            self.traced(
                nodes, '{links: [{dimension: 0, npus: "0,1", failed: true}, {dimension: 0, npus: 0, bandwidth: 0.5}]}'
            )[1],
            2_300_000,
        )

    def test_a_slow_link_delays_a_collective(self):
        """A ring all-reduce of 4 NPUs with the default endpoint delay of 10 ns. In both directions each NPU sends 1,500 B of a reduce-scatter
        and of an all-gather each way, in two steps: 4 messages of 750 B take 175 ns each, or 250 where NPU 1 sends or receives. In one
        direction 6 messages of 1,000 B take 200 ns each, or 300. A member finishes after the longest row of them that ends at it.
        """
        nodes = lambda npu: [Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=4000)]  # noqa: E731
        slow = "{links: [{dimension: 0, npus: 1, bandwidth: 0.5}]}"
        self.assertEqual(
            self.traced(nodes, slow), [50_000 + 1000 * longest for longest in (1000, 1000, 1000, 3 * 250 + 175)]
        )
        self.assertEqual(
            self.traced(nodes, slow, ONE_WAY), [70_000 + 1000 * longest for longest in (1400, 1500, 1600, 1500)]
        )

    def test_results_are_the_same_on_any_number_of_ranks(self):
        """A step of 64 NPUs with every kind of perturbation gives the same results on 1 to 8 ranks, eager and with rendezvous, and
        other results than without."""
        for streams, rendezvous in ((2, "false"), (2, "true")):
            with self.subTest(streams=streams, rendezvous=rendezvous):
                config = self.config(SKEWED % (streams, rendezvous))
                first = self.check_one_answer(
                    [config], 64, ranks=(1, 2, 3, 4) if harness.FEWER_CASES else (1, 2, 3, 4, 8)
                )
                plain = self.config((SKEWED % (streams, rendezvous)).split("perturbation:")[0], "plain.yaml")
                self.assertNotEqual(
                    harness.finish_times(first), harness.finish_times(self.run_once([plain], "plain.h5"))
                )

    def folded(self, arguments, ranks=0):
        """Checks that a folded run gives the results of the run that is not folded. Returns the number of classes."""
        import h5py

        plain = self.run_once(arguments, "plain.h5")
        folded = self.run_once([*arguments, "--fold"], "folded.h5", ranks=ranks)
        self.assertEqual(harness.difference(plain, folded), "")
        with h5py.File(folded) as results:
            return int(results.attrs["num_classes"])

    def test_perturbed_npus_are_folded_with_their_equals(self):
        """NPUs that differ in speed or links are not folded into one class; those that differ alike are. Twelve random perturbations
        give the same results folded and not."""
        scale = [harness.SOURCE / "configs/scale/gpt3-175b-1024.yaml", "--set", "workload.parallel.micro-batches=4"]
        stage = ["--set", 'perturbation.slow-npus=[{npus: "128-255", compute: 0.5}]']
        self.assertEqual(self.folded([*scale, *stage], ranks=2), 8)
        alike = ["--set", 'perturbation.links=[{dimension: 0, npus: "0-1023", bandwidth: 0.5}]']
        self.assertEqual(self.folded([*scale, *stage, *alike]), 8)
        one = ["--set", "perturbation.slow-npus=[{npus: 130, compute: 0.5}]"]
        self.assertGreater(self.folded([*scale, *one]), 8)
        port = ["--set", "perturbation.links=[{dimension: 1, npus: 130, bandwidth: 0.5}]"]
        self.assertGreater(self.folded([*scale, *port]), 8)
        rng = random.Random(11)
        quiet = (SKEWED % (2, "true")).split("perturbation:")[0].replace("noise: 0.05, ", "")
        for case in range(3 if harness.FEWER_CASES else 12):
            npus = lambda count: ",".join(map(str, sorted(rng.sample(range(64), count))))  # noqa: E731
            line = rng.choice([0, 4, 20, 60])
            entries = [
                f'{{dimension: {rng.randrange(3)}, npus: "{npus(rng.choice([1, 3, 16]))}", bandwidth: {rng.choice([0.5, 2])}, latency: {rng.choice([1, 3])}}}'
                for _ in range(rng.randrange(3))
            ]
            entries += [f'{{dimension: 0, npus: "{line},{line + 2}", failed: true}}'] * rng.randrange(2)
            text = quiet + "perturbation:\n" + (f"  links: [{', '.join(entries)}]\n" if entries else "")
            text += f'  slow-npus: [{{npus: "{npus(rng.choice([1, 8, 63]))}", compute: {rng.choice([0.5, 1.5])}}}]\n'
            with self.subTest(case=case, text=text.split("perturbation:")[1]):
                self.folded([self.config(text)], ranks=rng.choice([0, 2]))

    def test_the_resolved_configuration_gives_the_same_results(self):
        """The resolved configuration of a perturbed run gives the same values for every NPU, and resolves to itself."""
        import h5py

        first = self.run_once([self.config(SKEWED % (2, "false"))])
        with h5py.File(first) as results:
            again = self.config(results["config/resolved"][()].decode(), "again.yaml")
        with h5py.File(first) as results, h5py.File(self.run_once([again], "again.h5")) as repeated:
            self.assertEqual(results["config/resolved"][()], repeated["config/resolved"][()])
            for name, column in results["npus"].items():
                self.assertEqual(column[:].tolist(), repeated["npus"][name][:].tolist(), name)

    def test_noise_is_the_same_wherever_it_is_given(self):
        """Noise from `perturbation`, from `system.compute`, from flags and from the resolved configuration gives the same times."""
        import h5py

        text = SYSTEM.replace(
            "  network", "  compute: {roofline: true, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}%s}\n  network"
        )
        text += "workload: {model: {layers: 4, hidden: 64, heads: 4, sequence: 32}, parallel: {dp: 4}}\n"
        first = self.run_once([self.config(text % "" + "perturbation: {noise: 0.1, noise-seed: 7}\n")])
        with h5py.File(first) as results:
            resolved = self.config(results["config/resolved"][()].decode(), "again.yaml")
        plain = self.config(text % "", "plain.yaml")
        times = harness.finish_times(first)
        self.assertEqual(len(set(times)), 4)  # the optimizer's times vary too
        self.assertNotEqual(times, harness.finish_times(self.run_once([plain], "plain.h5")))
        for other in (
            [self.config(text % ", noise: 0.1, noise-seed: 7", "old.yaml")],
            [resolved],
            [plain, "--noise=0.1", "--noise-seed=7"],
            [self.config(text % ", noise-seed: 7" + "perturbation: {noise: 0.1}\n", "each.yaml")],
            [plain, "--set=perturbation={noise: 0.1, noise-seed: 7}"],
        ):
            self.assertEqual(harness.finish_times(self.run_once(other, "other.h5")), times, other)

    def test_another_seed_draws_other_times(self):
        """Four seeds give four sets of compute times, not the same ones for other NPUs."""
        import h5py

        config = self.config(SKEWED % (2, "false"))
        drawn = set()
        for seed in range(1, 5):
            with h5py.File(self.run_once([config, f"--noise-seed={seed}", "--noise=0.1"], f"{seed}.h5")) as results:
                drawn.add(tuple(sorted(results["npus/compute_time"][:])))
        self.assertEqual(len(drawn), 4)

    def test_4096_npus_are_the_same_on_any_number_of_ranks(self):
        """A step of 4,096 perturbed NPUs gives the same results on 1, 2, 3, 4 and 8 ranks, and many different finish times."""
        speeds = self.folder / "speeds.txt"
        speeds.write_text("".join(f"{1 + (npu * 37 % 11 - 5) / 100:.2f}\n" for npu in range(4096)))
        config = self.config(LARGE.format(root=harness.SOURCE, speeds=speeds))
        first = self.run_once([config], "first.h5")
        times = harness.finish_times(first)
        self.assertEqual(len(times), 4096)
        self.assertGreater(len(set(times)), 100)
        for ranks in (2, 3) if harness.FEWER_CASES else (1, 2, 3, 4, 8):
            other = self.run_once([config], "other.h5", ranks=ranks)
            self.assertEqual(harness.difference(first, other), "", f"{ranks} ranks")

    def test_slow_links_with_direct_under_astra_sims_rules(self):
        """All-reduces that slide over two and three dimensions whose groups differ: one slow NPU makes the step no shorter than none and no
        longer than all, and the answer is one on any number of ranks."""
        model = "model: {kind: layers, layers: [{name: g, parameters: 100000}]}"
        for dimensions, lists, npus in (
            ((("FullyConnected", 2), ("FullyConnected", 4)), "[direct, direct2]", "3"),
            ((("Ring", 3), ("Switch", 2), ("FullyConnected", 2)), "[direct1, ring, direct]", "5,6"),
        ):
            count = 1
            for _, size in dimensions:
                count *= size
            listed = ", ".join(
                f"{{shape: {shape}, size: {size}, bandwidth: 25 GB/s, latency: 500 ns}}" for shape, size in dimensions
            )
            for slow_dimension in range(len(dimensions)):
                steps = []
                for slow in (None, npus, f"0-{count - 1}"):
                    links = (
                        f'perturbation:\n  links: [{{dimension: {slow_dimension}, npus: "{slow}", bandwidth: 0.3}}]\n'
                        if slow
                        else ""
                    )
                    config = self.config(
                        f"system:\n  rules: astra-sim\n  network: {{dimensions: [{listed}]}}\n  collectives: {{all-reduce: {lists}}}\n"
                        f"workload:\n  {model}\n  parallel: {{dp: {count}}}\n{links}"
                    )
                    self.assertEqual(harness.orrery("check", config).code, 0)
                    steps.append(max(harness.finish_times(self.check_one_answer([config], count, ranks=(2,)))))
                self.assertLessEqual(steps[0], steps[1])
                self.assertLessEqual(steps[1], steps[2])
                self.assertLess(steps[0], steps[2])

    def test_wrong_perturbations_are_refused(self):
        """NPUs out of range, links that cut a ring in two, wrong factors and unknown keys are refused by `run` and `check` with a
        message that names the key."""
        text = (
            SYSTEM
            + "workload: {model: {layers: 4, hidden: 64, heads: 4, sequence: 32}, parallel: {dp: 4}}\nperturbation: %s\n"
        )
        cases = {
            '{slow-npus: [{npus: "2-4", compute: 0.5}]}': [
                "config.yaml:5",
                "perturbation.slow-npus.0.npus",
                "found '2-4'",
                "below the number of NPUs, 4",
            ],
            '{links: [{dimension: 0, npus: "0,1", failed: true}, {dimension: 0, npus: "1,2", failed: true}]}': [
                "perturbation.links.1.npus",
                "cut the Ring of NPU 1 in two",
            ],
            "{compute-speed: [1, 2]}": ["perturbation.compute-speed", "found 2 factors", "4 NPUs"],
            "{compute-speed: missing.txt}": ["perturbation.compute-speed", "missing.txt"],
            "{noise: 1}": ["config.yaml:5", "perturbation.noise", "found '1'", "below 1"],
            "{link: []}": ["perturbation.link", "unknown key", "links"],
        }
        for perturbation, words in cases.items():
            with self.subTest(perturbation):
                for command in ("run", "check"):
                    outcome = harness.orrery(
                        command,
                        self.config(text % perturbation),
                        *([f"--output={self.folder / 'r.h5'}"] if command == "run" else []),
                    )
                    self.assertEqual(outcome.code, 3, outcome.err)
                    for word in words:
                        self.assertIn(word, outcome.err)
        both = self.config(
            SYSTEM + "  compute: {noise: 0.1, noise-seed: 2}\n" + text[len(SYSTEM) :] % "{noise: 0.1, noise-seed: 2}"
        )
        outcome = harness.orrery("check", both)
        self.assertEqual(outcome.code, 3)
        for key in ("noise", "noise-seed"):
            self.assertRegex(
                outcome.err,
                rf"config.yaml:6: key 'perturbation\.{key}': system\.compute\.{key} is given too; expected one of them",
            )
        several = self.config(
            text % "{slow-npus: [{npus: 9, compute: 0}], links: [{dimension: 3, npus: 0, latency: 2}]}"
        )
        outcome = harness.orrery("check", several)
        for word in ("slow-npus.0.npus", "slow-npus.0.compute", "links.0.dimension"):
            self.assertIn(word, outcome.err)
        self.assertFalse((self.folder / "r.h5").exists())

    def test_show_collective_knows_slow_links(self):
        """`show collective` on a ring with a slow link gives the time of the run by hand."""
        for system, last in ((SYSTEM, 1_050_000), (ONE_WAY, 1_670_000)):
            config = self.config(system + "perturbation: {links: [{dimension: 0, npus: 1, bandwidth: 0.5}]}\n")
            outcome = harness.orrery("show", "collective", config, "--kind=all-reduce", "--bytes=4000 B")
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertIn(f"last_done_ps: {last}\n", outcome.out)


if __name__ == "__main__":
    harness.main()
