#!/usr/bin/python3
"""Settings with which a run goes on but is not what its user expects: each has one warning, on one rank and on several, that names the key,
and none where the user asked for just that."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

LINK = "bandwidth: 50 GB/s, latency: 500 ns"
A100_LINK, H100_LINK = (
    "bandwidth: %d GB/s, latency: 500 ns" % rate for rate in (300, 450)
)  # of the machines that libraries were measured on
COMPUTE = "compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}"
MODEL = "model: {layers: 4, hidden: 192, heads: 12, sequence: 64}"
GRID = f"{{shape: FullyConnected, size: 4, {LINK}}}, {{shape: Ring, size: 3, {LINK}}}"
DRAGONFLY = f"{{shape: Dragonfly, npus-per-router: 1, size: 6, {LINK}}}"


OUT_OF_RANGE = "in which the stack was fitted: its interval is too narrow"


class Warnings(harness.Folder):
    def config(self, dimensions, workload, more="", model="congestion-unaware"):
        path = self.folder / "config.yaml"
        path.write_text(
            f"system:\n  network: {{model: {model}, dimensions: [{dimensions}]}}\n  {COMPUTE}\n{more}workload: {{{workload}}}\n"
        )
        return path

    def warnings(self, config, *more, ranks=(0, 3)):
        """Runs the configuration on each number of ranks, which must give the same warnings, and returns them."""
        seen = []
        for number in ranks:
            outcome = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}", "--force", *more, ranks=number)
            self.assertEqual(outcome.code, 0, outcome.err)
            seen.append([line for line in harness.messages(outcome) if "warning:" in line])
        for other in seen[1:]:
            self.assertEqual(other, seen[0])
        return seen[0]

    def one_warning(self, words, *arguments):
        warnings = self.warnings(*arguments)
        self.assertEqual(len(warnings), 1, warnings)
        for word in words:
            self.assertIn(word, warnings[0])

    def test_a_group_that_is_no_grid(self):
        """12 NPUs in 4 x 3 with tp 6, whose groups are no grid: one warning names a group, its members, the key of its algorithm and the
        key of the groups, and counts both groups. None comes with tp 4, and none if the ring is asked for."""
        config = self.config(GRID, f"{MODEL}, parallel: {{tp: 6, dp: 2}}")
        self.one_warning(
            (
                "group 'tp_dp0' (6 members: 0, 1, 2, 3, 4, 5)",
                "system.network.dimensions",
                "system.collectives.all-reduce",
                "workload.parallel",
                "one ring",
                "2 times in all",
            ),
            config,
        )
        self.assertEqual(self.warnings(config, "--set=system.collectives.all-reduce=[oneRing]"), [])
        self.assertEqual(self.warnings(self.config(GRID, f"{MODEL}, parallel: {{tp: 4, dp: 3}}")), [])

    def test_compute_nodes_that_take_another_time_than_one_may_expect(self):
        """Compute nodes with FLOPs and no recorded duration take 1 ns each under `recorded`: a warning counts them. Models that estimate
        operations do not estimate nodes of traces: a warning names the model, and says what the nodes take. None comes with the roofline, with
        recorded durations under `recorded`, or for what is generated."""
        system = f"system:\n  network: {{dimensions: [{{shape: Ring, size: 2, {LINK}}}]}}\n  compute: {{model: %s, peak: 989 TFLOPS, local-memory: {{bandwidth: 3350 GB/s}}%s}}\n"
        array = ", array: {rows: 128, columns: 128, cycle: 1 ns}"
        config = self.folder / "config.yaml"

        def traced(model, more="", **attributes):
            for npu in range(2):
                nodes = [Node(i, chakra.COMP, num_ops=10**12, tensor_size=10**6, **attributes) for i in range(3)]
                chakra.write(self.folder / f"w.{npu}.et", nodes)
            config.write_text(system % (model, more) + "workload: {traces: w}\n")
            return config

        self.one_warning(
            ("no recorded duration", "system.compute.model: roofline", "1 ns", "6 times in all"), traced("recorded")
        )
        self.assertEqual(self.warnings(traced("recorded", duration=7)), [])
        self.assertEqual(self.warnings(traced("roofline")), [])
        for duration in ({}, {"duration": 7}):
            says = "keep recorded durations" if duration else "what its bytes take, whatever its FLOPs"
            self.one_warning(
                ("system.compute.model: systolic has no effect", says, "6 times in all"),
                traced("systolic", array, **duration),
            )
            says = "keep recorded durations" if duration else "what its FLOPs and bytes take in one kernel"
            self.one_warning(
                ("system.compute.model: products has no effect", says, "6 times in all"),
                traced("products", ", processor: h100", **duration),
            )
        config.write_text(system % ("products", ", processor: h100") + f"workload: {{{MODEL}, parallel: {{tp: 2}}}}\n")
        self.assertEqual([line for line in self.warnings(config) if "compute nodes" in line], [])
        config.write_text(
            system % ("recorded", "")
            + "workload: {model: {kind: layers, layers: [{name: g, parameters: 1000, forward: 1 us}]}, parallel: {dp: 2}}\n"
        )
        self.assertEqual(self.warnings(config), [])

    def test_times_below_bytes_over_bandwidth(self):
        """An all-reduce by direct on a Ring of 16 sends 7.5 times as many bytes as the links carry in its time under ASTRA-sim's rules, and
        warns; under physical rules its messages share the links."""
        workload = "model: {kind: layers, layers: [{name: g, parameters: 500000000}]}, parallel: {dp: 16}"
        config = self.config(f"{{shape: Ring, size: 16, {LINK}}}", workload, "  collectives: {all-reduce: [direct]}\n")
        config.write_text(config.read_text().replace(f"  {COMPUTE}\n", ""))
        self.one_warning(
            ("dimension 0 would have to be busy 748 % of the time", "rules: astra-sim", "--network=congestion-aware"),
            config,
            "--set=system.rules=astra-sim",
        )
        self.assertEqual(self.warnings(config), [])
        self.assertEqual(self.warnings(config, "--network=congestion-aware"), [])

    def test_short_links_that_join_ranks(self):
        """4 NPUs in 2 x 2 with links of 0 or 3 ns in one dimension, on two ranks: a warning if ranks host neighbours there, with the
        latency and how many ranks avoid it. None if the dimension stays within ranks, where the default partition keeps it, on one rank,
        or without simulated links. With links of 3 ns in both dimensions no partition helps."""
        zero, three, slow = (
            f"{{shape: Ring, size: 2, bandwidth: 50 GB/s, latency: {latency}}}"
            for latency in ("0 ns", "3 ns", "500 ns")
        )
        workload = f"{MODEL}, parallel: {{tp: 2, dp: 2}}"
        for short, found in ((zero, "has no latency"), (three, "has a latency of only 3 ns")):
            crossing = self.config(f"{slow}, {short}", workload, model="congestion-aware")
            said = self.warnings(crossing, "--partition=dimension:0", ranks=(2,))
            self.assertEqual(len(said), 1, said)
            self.assertIn(f"dimension 1 {found} and joins NPUs of different ranks", said[0])
            self.assertIn("as --partition block does for up to 2 ranks", said[0])
            for dimensions in (f"{slow}, {short}", f"{short}, {slow}"):
                kept = self.config(dimensions, workload, model="congestion-aware")
                self.assertEqual(self.warnings(kept, ranks=(0, 1, 2)), [])
            self.assertEqual(
                self.warnings(self.config(f"{slow}, {short}", workload), "--partition=dimension:0", ranks=(2,)), []
            )
        said = self.warnings(self.config(f"{three}, {three}", workload, model="congestion-aware"), ranks=(2,))
        self.assertEqual(len(said), 1, said)
        self.assertTrue(said[0].endswith("one rank may be faster"), said[0])

    def test_a_group_of_traces_that_is_no_grid(self):
        """12 NPUs in 4 x 3, of which 0, 1 and 4 form a group: the warning names the group and workload.groups. There is none with
        ASTRA-sim's rules, by which every group is a ring."""
        for npu in range(12):
            chakra.write(
                self.folder / f"w.{npu}.et",
                [Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=4096, pg_name="corner")]
                if npu in (0, 1, 4)
                else [Node(1, chakra.COMP)],
            )
        (self.folder / "groups.json").write_text('{"corner": [0, 1, 4]}')
        config = self.config(GRID, "traces: w, groups: groups.json")
        self.one_warning(
            ("group 'corner' (3 members: 0, 1, 4)", "system.collectives.all-gather", "Change workload.groups"), config
        )
        self.assertEqual(self.warnings(config, "--set=system.rules=astra-sim"), [])

    def test_a_dragonfly_with_a_ring(self):
        """A Dragonfly of 6 without a list of algorithms takes ring: one warning names the key, the dimension and the steps. None comes if
        ring or direct is named, nor on a Ring."""
        parallel = f"{MODEL}, parallel: {{tp: 6}}"
        config = self.config(DRAGONFLY, parallel, model="congestion-aware")
        self.one_warning(
            (
                "system.collectives.all-reduce is not given",
                "dimension 0 (Dragonfly of 6) takes ring, in 10 steps",
                "power of two",
            ),
            config,
        )
        for name in ("ring", "direct"):
            self.assertEqual(self.warnings(config, f"--set=system.collectives.all-reduce=[{name}]"), [])
        self.assertEqual(self.warnings(self.config(f"{{shape: Ring, size: 6, {LINK}}}", parallel)), [])

    def test_a_ring_that_a_library_chooses(self):
        """8 NPUs of one switch with a library, which takes a ring for the sums of 8 NPUs: nobody has to name an algorithm, so there is no
        warning of a run, a check or a shown collective."""
        config = self.config(
            f"{{shape: Switch, size: 8, {A100_LINK}}}",
            f"{MODEL}, parallel: {{dp: 8}}",
            "  collectives: {library: {name: nccl-a100}}\n",
        )
        self.assertEqual(self.warnings(config), [])
        for command in (["check", config], ["show", "collective", config, "--kind", "all-reduce", "--bytes", "64 MiB"]):
            outcome = harness.orrery(*command)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(harness.messages(outcome), [])

    def test_products_without_a_processor(self):
        """`products` warns once that it takes H100's figures where nobody says what the NPUs are, and not where the processor is given.
        The presets of systems say it: an A100 system differs from one of H100, and `roofline` is not concerned."""
        config = self.config(f"{{shape: Ring, size: 4, {LINK}}}", f"{MODEL}, parallel: {{dp: 4}}")
        products = "--set=system.compute.model=products"
        config.write_text(config.read_text().replace("roofline: true, ", ""))
        self.one_warning(("system.compute.processor is not given", "h100", "a100"), config, products)
        self.assertEqual(self.warnings(config, products, "--set=system.compute.processor=h100"), [])
        config.write_text(f"system: dgx-a100-superpod\nworkload: {{{MODEL}, parallel: {{tp: 4, dp: 128}}}}\n")
        self.assertEqual(self.warnings(config, "--fold", ranks=(0,)), [])
        seconds = {}
        for processor in ("", "--set=system.compute.processor=a100", "--set=system.compute.processor=h100"):
            outcome = harness.orrery(
                "run",
                config,
                "--fold",
                products,
                *filter(None, [processor]),
                f"--output={self.folder / 'r.h5'}",
                "--force",
                "--verbose",
            )
            self.assertEqual((outcome.code, harness.messages(outcome)), (0, []))
            seconds[processor] = re.search("training: (.*)", outcome.out).group(1)
        self.assertEqual(seconds[""], seconds["--set=system.compute.processor=a100"])
        self.assertNotEqual(seconds[""], seconds["--set=system.compute.processor=h100"])

    def test_keys_without_an_effect(self):
        """Keys that another setting leaves without an effect have one warning for each setting, which names them; those of a job have its
        number, and an option counts as the file. There is none where the setting is given, where a key has its default, or where a stack or
        a system that the file names says more than it needs."""
        config = self.config(f"{{shape: Ring, size: 4, {LINK}}}", f"{MODEL}, parallel: {{dp: 4}}")
        self.one_warning(
            ("workload.parallel.prefetch", "has no effect without workload.parallel.zero: 3"),
            config,
            "--set=workload.parallel.prefetch=2",
        )
        self.assertEqual(
            self.warnings(config, "--set=workload.parallel.prefetch=2", "--set=workload.parallel.zero=3"), []
        )
        self.assertEqual(self.warnings(config, "--set=workload.parallel.prefetch=1"), [])
        self.one_warning(
            ("system.network.packets.gain, system.network.packets.payload have no effect", "model: packet"),
            config,
            "--set=system.network.packets.gain=0.5",
            "--set=system.network.packets.payload=2 kB",
        )
        for key in ("layer-time", "between-steps"):
            text = "\n".join(self.warnings(config, f"--set=workload.parallel.{key}=1 us"))
            self.assertIn(f"workload.parallel.{key} has no effect with system.compute.model: roofline", text)
        self.one_warning(("perturbation.noise-seed",), config, "--noise-seed=7")
        self.assertEqual(self.warnings(config, "--noise-seed=7", "--noise=0.1"), [])
        jobs = ", ".join(
            f"{{npus: 2, workload: {{{MODEL}, parallel: {{dp: 2, zero: {zero}, prefetch: 2}}}}}}" for zero in (3, 1)
        )
        config.write_text(
            f"system:\n  network: {{dimensions: [{{shape: Ring, size: 4, {LINK}}}]}}\n  {COMPUTE}\njobs: [{jobs}]\n"
        )
        self.one_warning(("jobs.1.workload.parallel.prefetch has no effect",), config)
        config.write_text(
            f"stack: h100-megatron\nsystem: {{base: dgx-h100-superpod, network: {{dimensions: [{{shape: Switch, size: 4, {H100_LINK}}}]}}}}\n"
            f"workload: {{{MODEL}, parallel: {{dp: 4}}}}\n"
        )
        # The model is smaller than those to which the stack was fitted, which is said of its own.
        self.assertEqual([line for line in self.warnings(config) if OUT_OF_RANGE not in line], [])

    def test_keys_that_nothing_in_the_traces_depends_on(self):
        """Traces of two NPUs with a collective of no duration: a warning names keys of recordings, recorded durations, and kernels of experts.
        None comes without these keys, with a recorded duration, or with an exchange of tokens."""
        recorded, kernels = "--set=system.communication.durations=recorded", "--set=system.collectives.experts.top-k=4"
        config = self.config(f"{{shape: FullyConnected, size: 2, {LINK}}}", f"traces: {self.folder / 'workload'}")
        for kind, duration, wanted in (
            (
                chakra.ALL_REDUCE,
                0,
                {
                    "--step=3": "workload.step",
                    "--replicate=2": "workload.replicate",
                    recorded: "communication.durations",
                    kernels: "experts.top-k",
                },
            ),
            (32, 0, {kernels: ""}),
            (chakra.ALL_REDUCE, 7, {recorded: ""}),
        ):
            harness.write_workload(
                self.folder, [[Node(1, chakra.COLL, comm_type=kind, comm_size=4096, duration=duration)]] * 2
            )
            self.assertEqual(self.warnings(config), [])
            for option, key in wanted.items():
                if key:
                    self.one_warning((key, "no"), config, option)
                else:
                    self.assertEqual(self.warnings(config, option), [])

    def test_a_stack_of_another_processor(self):
        """A stack of A100 on a system of H100 brings one warning, which names both and the file that says what the NPUs are; a stack of
        H100 brings none. Groups of more nodes than a library was measured on are named apart."""
        config = self.folder / "config.yaml"
        for stack, words in (
            ("a100-fsdp", ("config.yaml:1", "a100-fsdp", "a100", "h100", "dgx-h100-superpod.yaml")),
            ("h100-fsdp", ()),
        ):
            config.write_text(
                f"stack: {stack}\nsystem: dgx-h100-superpod\nworkload: {{{MODEL}, parallel: {{tp: 4, dp: 256}}}}\n"
            )
            outcome = harness.orrery("check", config)
            self.assertEqual(outcome.code, 0, outcome.err)
            said = [
                line
                for line in harness.messages(outcome)
                if "system.collectives.library: the all-reduce" not in line and OUT_OF_RANGE not in line
            ]
            self.assertEqual(len(said), 1 if words else 0, outcome.err)
            for word in words:
                self.assertIn(word, said[0])

    def test_a_pipeline_with_one_micro_batch(self):
        """4 stages and one micro-batch: run, check and generate warn once, with the key, the bubble of 3/4 and a number of micro-batches
        with its bubble, 3/19. There is no warning with 16 micro-batches, nor with one stage."""
        words = (
            "workload.parallel.micro-batches is 1 for 4 stages",
            "ideal pipeline bubble is 75 %",
            "micro-batches: 16 it is 16 %",
        )
        ring = f"{{shape: Ring, size: 4, {LINK}}}"
        config = self.config(ring, f"{MODEL}, parallel: {{pp: 4}}")
        self.one_warning(words, config)
        for command in (["check", config], ["generate", config, "--dry-run"]):
            outcome = harness.orrery(*command)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(len(harness.messages(outcome)), 1, outcome.err)
            for word in words:
                self.assertIn(word, outcome.err)
        self.assertEqual(self.warnings(config, "--set=workload.parallel.micro-batches=16"), [])
        self.assertEqual(self.warnings(self.config(ring, f"{MODEL}, parallel: {{dp: 4}}")), [])


if __name__ == "__main__":
    harness.main()
