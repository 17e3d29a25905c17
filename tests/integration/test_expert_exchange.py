#!/usr/bin/python3
"""Kernels that exchange tokens with experts, overlap of micro-batches, modules that are computed again, FP8 in training and inference, and masked
scores: what they send, take and keep, one answer on any number of ranks, and what is refused."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

SYSTEM = (
    "system:\n  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 100 GB/s, latency: 500 ns}, "
    "{shape: Switch, size: %d, bandwidth: 50 GB/s, latency: 1 us}]}\n"
    "  collectives: {library: {name: nccl-h100}%s}\n"
    "  compute: {model: products, processor: h100, peak: {bf16: 989 TFLOPS, fp8: 1979 TFLOPS}, local-memory: {bandwidth: 3350 GB/s%s}}\n"
)
SIZES = "hidden: 1024, heads: 8, ffn: 512, sequence: 4096"
MODEL = (
    "{kind: transformer, layers: 4, %s, gated: true, experts: 16, top-k: 4, shared-experts: 1, expert-servers: 2}"
    % SIZES
)
LATENT = (
    "{kind: transformer, layers: 4, %s, head-size: 128, latent: {key-value: 256, query: 512, rotary: 64}, gated: true, experts: 16, top-k: 4}"
    % SIZES
)
DENSE = "{kind: transformer, layers: 4, %s, vocabulary: 4096}" % SIZES


class ExpertExchange(harness.Folder):
    def config(self, parallel, model=MODEL, nodes=2, collectives="", memory="", name="config.yaml"):
        path = self.folder / name
        path.write_text(
            SYSTEM % (nodes, collectives, memory) + f"workload: {{model: {model}, parallel: {{{parallel}}}}}\n"
        )
        return path

    def metrics(self, config, *names, arguments=()):
        import h5py

        with h5py.File(self.run_once([config, *arguments], "metric.h5")) as results:
            return [float(results[f"metrics/{name}"][()]) for name in names]

    def seconds(self, parallel, **more):
        return self.metrics(self.config(parallel, **more), "step_time", arguments=("--fold",))[0] * 1e-12

    def shown(self, parallel, **more):
        made = harness.orrery(
            "run",
            self.config(parallel, **more),
            "--fold",
            "--force",
            "--verbose",
            f"--output={self.folder / 'shown.h5'}",
            "--progress=none",
        )
        self.assertEqual(made.code, 0, made.err)
        return made.out

    def test_bytes(self):
        """A token of 2,048 bytes with 4 experts on at most 2 of 2 or 4 servers reaches 2 (1 - 1/2^4) = 1.875 servers. In FP8 it has 1,056 bytes.
        A dispatch or combine moves the 4,096 tokens of the NPU, and an all-to-all each token four times."""
        for nodes in (2, 4):
            text = self.shown(f"ep: {4 * nodes}", nodes=nodes)
            self.assertRegex(
                text, r"expert-dispatch ep +8 of +67.11 MB"
            )  # 4 layers, forward and backward, of 8.39 MB each
            self.assertRegex(text, r"expert-combine ep +8 of +67.11 MB")
            text = self.shown(f"ep: {4 * nodes}, precision: fp8", nodes=nodes)
            self.assertRegex(text, r"expert-dispatch ep +8 of +34.6 MB")
            self.assertRegex(text, r"expert-combine ep +8 of +67.11 MB")
            text = self.shown(f"ep: {4 * nodes}, expert-exchange: all-to-all", nodes=nodes)
            self.assertRegex(text, r"all-to-all ep +16 of +536.9 MB")
            text = self.shown(f"ep: {4 * nodes}, expert-exchange: all-to-all, dispatch-precision: fp8", nodes=nodes)
            self.assertRegex(text, r"all-to-all ep +16 of +406.8 MB")
        text = self.shown("ep: 4, dp: 2")  # experts of one node need no servers
        self.assertRegex(text, r"all-to-all ep +16 of")

    def test_time_by_hand(self):
        """A NIC of 10 GB/s bounds an exchange over servers: 4,096 tokens of 2,048 bytes, of whose 1.875 servers n - 1 of n are others, at 0.88 of
        it, and 60 us. V2 reaches 0.91 and takes 30 us; kernels of low latency send 4 copies, of which 4 of 8 leave the server.
        """
        for nodes, kernels, share, latency in (
            (2, "deepep-v1", 0.88, 60e-6),
            (4, "deepep-v1", 0.88, 60e-6),
            (2, "deepep-v2", 0.91, 30e-6),
            (2, "deepep-low-latency", 0.93, 35e-6),
        ):
            word = "low-latency" if kernels.endswith("latency") else "once-per-server"
            config = self.config(
                f"ep: {4 * nodes}, expert-exchange: {word}",
                nodes=nodes,
                collectives=f", experts: {{kernels: {kernels}}}",
                name="show.yaml",
            )
            for kind in ("expert-dispatch", "expert-combine"):
                shown = harness.orrery(
                    "show",
                    "collective",
                    config,
                    "--kind",
                    kind,
                    "--bytes",
                    f"{4096 * 2048} B",
                    "--json",
                    "--set",
                    "system.network.dimensions.1.bandwidth=10 GB/s",
                )
                self.assertEqual(shown.code, 0, shown.err)
                copies = 4 if kernels.endswith("latency") else 1.875
                moved = 4096 * 2048 * copies * (nodes - 1) / nodes
                self.assertAlmostEqual(
                    json.loads(shown.out)["last_done_ps"] * 1e-12 / (latency + moved / (share * 10e9)), 1, delta=1e-9
                )

    def test_nics_and_slow_ports(self):
        """Two NICs or one for the four NPUs of a server, and a port at a quarter of its bandwidth, leave an NPU 25, 12.5 and 12.5 GB/s of 50."""
        slow = "perturbation: {links: [{dimension: 1, npus: 0, bandwidth: 0.25}]}\n"
        for nics, more, rate in ((2, "", 25e9), (1, "", 12.5e9), (4, slow, 12.5e9)):
            config = self.config("ep: 8", collectives=", experts: {kernels: deepep-v1}")
            config.write_text(config.read_text() + more)
            shown = harness.orrery(
                "show",
                "collective",
                config,
                "--kind=expert-dispatch",
                f"--bytes={4096 * 2048} B",
                "--json",
                f"--set=system.collectives.library.nics-per-node={nics}",
            )
            self.assertEqual(shown.code, 0, shown.err)
            moved = 4096 * 2048 * 1.875 / 2
            self.assertAlmostEqual(
                json.loads(shown.out)["last_done_ps"] * 1e-12 / (60e-6 + moved / (0.88 * rate)), 1, delta=1e-6
            )

    def test_ports_and_sharing_without_a_library(self):
        """Without a library a port at a quarter of its bandwidth leaves an NPU 5 GB/s of 20, and two exchanges at a time half each."""
        slow = "perturbation: {links: [{dimension: 1, npus: 3, bandwidth: 0.25}]}\n"
        for more, arguments, rate in (("", (), 20e9), (slow, (), 5e9), ("", ("--at-once=2",), 10e9)):
            config = self.config(
                "ep: 8, expert-exchange: once-per-server", collectives=", experts: {kernels: deepep-v1}"
            )
            config.write_text(config.read_text().replace("library: {name: nccl-h100}, ", "") + more)
            shown = harness.orrery(
                "show",
                "collective",
                config,
                "--kind=expert-combine",
                f"--bytes={4096 * 2048} B",
                "--json",
                "--set=system.network.dimensions.1.bandwidth=20 GB/s",
                *arguments,
            )
            self.assertEqual(shown.code, 0, shown.err)
            moved = 4096 * 2048 * 1.875 / 2
            self.assertAlmostEqual(
                json.loads(shown.out)["last_done_ps"] * 1e-12 / (60e-6 + moved / (0.88 * rate)), 1, delta=1e-6
            )

    def test_overlap_of_batches(self):
        """Exchanges beside another micro-batch shorten the step, by what they take at most; kernels that hold multiprocessors gain less. 1F1B
        with and without a pipeline, interleaved, and DualPipe, whose default it is."""
        wide = MODEL.replace("ffn: 512", "ffn: 4096")  # what computes longer than tokens travel
        for parallel in (
            "ep: 8, micro-batches: 8",
            "ep: 8, pp: 2, micro-batches: 8",
            "ep: 8, pp: 2, interleaving: 2, micro-batches: 8",
        ):
            nodes = 4 if "pp" in parallel else 2
            more = {"nodes": nodes, "model": wide}
            with self.subTest(parallel):
                alone = self.seconds(f"{parallel}, expert-overlap: false", **more)
                shared = self.seconds(f"{parallel}, expert-overlap: true", **more)
                beside = self.seconds(f"{parallel}, expert-overlap: batches", **more)
                free = self.seconds(
                    f"{parallel}, expert-overlap: batches", collectives=", experts: {sm-share: 0}", **more
                )
                self.assertLessEqual(shared, alone)
                self.assertLess(beside, 0.98 * alone)
                self.assertLess(free, beside)
        dual = "ep: 8, pp: 2, schedule: dualpipe, micro-batches: 8"
        self.assertEqual(self.seconds(dual, nodes=4), self.seconds(f"{dual}, expert-overlap: batches", nodes=4))
        self.assertLess(
            self.seconds(dual, nodes=4, model=wide), self.seconds(f"{dual}, expert-overlap: false", nodes=4, model=wide)
        )

    def test_one_answer(self):
        """Exchanges by kernels, micro-batches beside each other and modules computed again: one answer on 1, 2, 3, 4 and 8 ranks, and folded."""
        for model, parallel in (
            (MODEL, "ep: 8, pp: 2, micro-batches: 6, expert-overlap: batches, expert-imbalance: 0.3"),
            (
                LATENT,
                "ep: 8, pp: 2, schedule: dualpipe, micro-batches: 6, precision: fp8, recompute-modules: [norms, swiglu, latent]",
            ),
            (
                LATENT,
                "ep: 16, phase: decode, micro-batch: 4, micro-batches: 2, precision: fp8, expert-exchange: low-latency",
            ),
        ):
            with self.subTest(parallel):
                config = self.config(parallel, model, nodes=4)
                one = self.check_one_answer([config], 16, ranks=(2, 3, 4, 8))
                self.assertEqual(
                    harness.finish_times(self.run_once([config, "--fold"], "folded.h5")), harness.finish_times(one)
                )

    def test_modules_computed_again(self):
        """Norms are kept as 2 or 1 x 2,048 bytes of a token and layer, in FP8 half of it; results of the function between products, as wide
        as the MLPs that a token passes; queries, keys and values of 8 heads of 192, 192 and 128. Each costs time, and all of it less than `full`.
        """
        tokens, layers = 4096, 4

        def kept(parallel, model=MODEL):
            text = self.shown(f"ep: 8{parallel}", model=model)
            number, unit = re.search(r"activations ([\d.]+) (.)B", text).groups()
            return float(number) * {"k": 1e3, "M": 1e6, "G": 1e9}[unit]

        for model, modules, less in (
            (MODEL, "norms", 2048),
            (MODEL, "swiglu", (4 + 1) * 512 * 2),
            (LATENT, "latent", 8 * (192 + 192 + 128) * 2),
            (MODEL, "norms, swiglu", 2048 + 5 * 512 * 2),
            (MODEL, "moe", 4 * 1024 * 2 + (4 + 1) * 3 * 512 * 2),
        ):
            with self.subTest(modules):
                self.assertAlmostEqual(
                    (kept("", model) - kept(f", recompute-modules: [{modules}]", model)) / (tokens * layers * less),
                    1,
                    delta=0.01,
                )
                full, some, none = (
                    self.seconds(f"ep: 8, {recompute}", model=model)
                    for recompute in ("recompute: full", f"recompute-modules: [{modules}]", "recompute: none")
                )
                self.assertLess(none, some)
                self.assertLessEqual(some, full)
        self.assertAlmostEqual(
            (kept(", precision: fp8") - kept(", precision: fp8, recompute-modules: [norms]"))
            / (tokens * layers * 1024),
            1,
            delta=0.01,
        )
        of_model = MODEL.replace("gated", "recompute-modules: [swiglu], gated")
        self.assertEqual(kept("", of_model), kept(", recompute-modules: [swiglu]"))
        self.assertEqual(kept(", recompute-modules: []", of_model), kept(""))

    def test_weights_are_cast_once_a_step(self):
        """The weights of 4 layers, 4 x 1024^2 + 2 x 4 x 1024 x 512 each, and of the output layer are cast once, however many micro-batches there are;
        with ZeRO 3 they come in bf16 for each pass."""
        weights = 4 * (4 * 1024**2 + 2 * 1024 * 512) + 1024 * 4096
        config = self.config("dp: 8, precision: fp8, micro-batches: 3, zero: 1", DENSE)
        shown = harness.orrery("generate", config, "--output", self.folder / "w")
        self.assertEqual(shown.code, 0, shown.err)
        casts = [node for node in chakra.read(self.folder / "w.0.et") if node.name == "weights.cast"]
        self.assertEqual([node.attributes["tensor_size"].value for node in casts], [3 * weights])
        shown = harness.orrery(
            "generate", self.config("dp: 8, precision: fp8, zero: 3", DENSE), "--output", self.folder / "z"
        )
        self.assertEqual([node for node in chakra.read(self.folder / "z.0.et") if node.name == "weights.cast"], [])

    def test_inference_in_fp8(self):
        """Weights and cache of FP8 have half of the bytes, so that a token takes about half of the time; nothing is cast, and overlap of
        training has no part in it."""
        times = {}
        for precision in ("bf16", "fp8"):
            text = self.shown(f"dp: 8, phase: decode, micro-batch: 8, precision: {precision}", model=DENSE)
            times[precision] = re.search(r"parameters ([\d.]+) MB, cache ([\d.]+) MB", text).groups()
        for wide, narrow in zip(times["bf16"], times["fp8"]):
            self.assertAlmostEqual(float(wide) / float(narrow), 2, delta=0.02)
        mixed = self.shown("dp: 8, phase: decode, micro-batch: 8, precision: fp8, cache-precision: bf16", model=DENSE)
        self.assertEqual(re.search(r"cache ([\d.]+) MB", mixed).group(1), times["bf16"][1])
        big = DENSE.replace(
            "layers: 4, hidden: 1024, heads: 8, ffn: 512", "layers: 2, hidden: 8192, heads: 64, ffn: 32768"
        )
        ratio = self.seconds("dp: 8, phase: decode, precision: fp8", model=big) / self.seconds(
            "dp: 8, phase: decode", model=big
        )
        self.assertTrue(0.45 < ratio < 0.65, ratio)
        tp = "tp: 4, dp: 2, phase: decode"
        self.assertEqual(self.seconds(tp, model=big), self.seconds(f"{tp}, tp-overlap: 0.8", model=big))

    def test_masked_scores_do_not_count(self):
        """A fused causal core has half of the FLOPs of one without a mask, in `roofline` and `products`; one that is not fused computes all of
        them, which count as executed. No utilisation is above 1, and the summary says what counts."""
        scores = 2 * 2 * 4096 * 4096 * 1024 * 4  # of 4 layers, forward
        for model in ("products", "roofline"):
            arguments = (f"--set=system.compute.model={model}",)
            found = {}
            for kind in ("causal: true", "causal: false", "causal: true, fused-attention: false"):
                config = self.config("dp: 8", DENSE.replace("vocabulary", kind + ", vocabulary"))
                found[kind] = self.metrics(
                    config, "step_time", "model_flops_utilisation", "hardware_flops_utilisation", arguments=arguments
                )
                self.assertLessEqual(found[kind][2], 1)
            flops = [step * 1e-12 * mfu * 989e12 for step, mfu, _ in found.values()]
            self.assertAlmostEqual((flops[1] - flops[0]) / (3 * scores / 2), 1, delta=1e-3)
            self.assertAlmostEqual(flops[2] / flops[0], 1, delta=1e-6)
            executed = [step * 1e-12 * hfu * 989e12 for step, _, hfu in found.values()]
            self.assertAlmostEqual((executed[1] - executed[0]) / (3.5 * scores / 2), 1, delta=1e-3)
            self.assertGreater(executed[2], flops[2] + 0.99 * 3 * scores / 2)
            self.assertLess(found["causal: true"][0], found["causal: false"][0])
        self.assertIn("(masked scores of attention do not count)", self.shown("dp: 8", model=DENSE))

    def test_refusals(self):
        """What excludes each other is refused by its key."""
        for parallel, more, key in (
            (
                "ep: 8, schedule: gpipe, pp: 2, micro-batches: 4, expert-overlap: batches",
                {"nodes": 4},
                "parallel.expert-overlap",
            ),
            ("ep: 8, zero: 2, expert-overlap: batches", {}, "parallel.expert-overlap"),
            ("ep: 8, recompute-modules: [norms, norms]", {}, "parallel.recompute-modules"),
            ("ep: 8, recompute-modules: [attention]", {}, "parallel.recompute-modules"),
            ("ep: 8, expert-exchange: deepep", {}, "parallel.expert-exchange"),
            ("ep: 8", {"collectives": ", experts: {kernels: deepep-low-latency}"}, "parallel.expert-exchange"),
            ("ep: 8", {"collectives": ", experts: {sm-share: 2}"}, "experts.sm-share"),
        ):
            with self.subTest(parallel):
                refused = harness.orrery("check", self.config(parallel, **more))
                self.assertEqual(refused.code, 3, refused.err)
                self.assertIn(key, refused.err)
        for one in ("989 TFLOPS", "1979 TFLOPS"):  # of which precision it is, nobody knows
            refused = harness.orrery(
                "check", self.config("dp: 8, precision: fp8", DENSE), f"--set=system.compute.peak={one}"
            )
            self.assertEqual(refused.code, 3, refused.err)
            self.assertIn("system.compute.peak", refused.err)


if __name__ == "__main__":
    harness.main()
