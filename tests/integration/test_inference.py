#!/usr/bin/python3
"""Steps of inference: what they compute, move and keep, one answer on any number of ranks, and what is refused."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

SYSTEM = (
    "system:\n  network: {dimensions: [{shape: Switch, size: %d, bandwidth: 100 GB/s, latency: 1 us}]}\n"
    "  compute: {model: roofline, peak: {bf16: 100 TFLOPS}, local-memory: {bandwidth: 1000 GB/s}}\n"
)
DENSE = "{kind: transformer, layers: 2, hidden: 1024, heads: 8, ffn: 4096, vocabulary: 8192, sequence: 512%s}"
LATENT = (
    "{kind: transformer, layers: 2, hidden: 1024, heads: 8, head-size: 64, latent: {key-value: 128, query: 256, rotary: 32}, ffn: 512, "
    "vocabulary: 8192, sequence: 512, gated: true, experts: 16, top-k: 2, shared-experts: 1}"
)


class Inference(harness.Folder):
    def config(self, model, parallel, npus=1, name="config.yaml"):
        path = self.folder / name
        path.write_text(SYSTEM % npus + f"workload: {{model: {model}, parallel: {{{parallel}}}}}\n")
        return path

    def metric(self, config, name, *arguments):
        import h5py

        with h5py.File(self.run_once([config, *arguments], "metric.h5")) as results:
            return float(results[f"metrics/{name}"][()])

    def dry_run(self, config):
        shown = harness.orrery("generate", config, "--dry-run")
        self.assertEqual(shown.code, 0, shown.err)
        return shown.out

    def test_decoding_by_hand(self):
        """One NPU of 1,000 GB/s decodes 4 sequences of 512 tokens with two layers of width 1024, which memory limits everywhere. Each
        layer moves weights of 2 x (4 x 1024^2 + 2 x 1024 x 4096) bytes, the operands and results of its products, its keys and values
        of 2 x 2 x 4 x 512 x 1024 bytes, and what norms, activations and residuals move; the output layer 2 x 1024 x 8192 and its
        operands; the embedding its sums. The sum of all is the time per output token."""
        h, f, b, s, v = 1024, 4096, 4, 512, 8192
        products = sum(
            m + w + n
            for m, w, n in [
                (b * h, 3 * h * h, 3 * b * h),
                (b * h, h * h, b * h),
                (b * h, h * f, b * f),
                (b * f, h * f, b * h),
            ]
        )
        core = 2 * b * s * h + 2 * b * h
        other = b * h * (2 + 3 + 2 + 3) + 2 * b * f
        layer = 2 * (products + core) + 2 * (b * h * (2 + 3 + 2 + 3) / 1 + 2 * b * f) if other else 0
        output = 2 * (b * h + h * v + b * v) + 2 * 2 * b * h
        embedding = 2 * 2 * b * h
        expected = (2 * layer + output + embedding) / 1000e9
        found = self.metric(self.config(DENSE % "", "phase: decode, micro-batch: 4"), "time_per_output_token")
        self.assertAlmostEqual(found / expected, 1, delta=2e-3)

    def test_memory_and_flops(self):
        """A prefill has a third of the FLOPs of training, but for the output layer, which has one token of each sequence. Decoding has
        those of one token, and keeps the keys and values of all: 2 layers x 4 sequences x 512 tokens x 2 x 1024 values. Latent
        attention keeps 160 values of a token in place of them."""

        def flops(phase, model=DENSE % ""):
            text = self.dry_run(self.config(model, f"phase: {phase}, micro-batch: 4"))
            number, prefix = re.search(r"tokens, ([\d.]+) ([kMGTP])FLOPs of the model", text).groups()
            return float(number) * {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[prefix], text

        training, prefill, (decode, text) = flops("training")[0], flops("prefill")[0], flops("decode")
        logits = 2 * 1024 * 8192
        self.assertAlmostEqual((prefill - 4 * logits) / (training / 3 - 4 * 512 * logits), 1, delta=2e-3)
        masked = (
            2 * 4 * 2 * 512 * 1024
        )  # a token attends to all 512 before it, and those of a prefill to half of them on the mean
        self.assertAlmostEqual(decode / (prefill / 512 + 4 * logits * (1 - 1 / 512) + masked), 1, delta=2e-3)
        self.assertIn("cache 16.78 MB", text)
        self.assertNotIn("optimizer", text)
        self.assertIn("cache 1.31 MB", flops("decode", LATENT)[1])

    def test_one_answer(self):
        """Decoding and prefill on 8 NPUs, dense with two stages, and with latent attention and experts: every NPU ends at the same time on
        1, 2 and 3 ranks, and folded. Twice the sequences do not take twice the time, because weights are read once."""
        for model, parallel in (
            (DENSE % ", kv-heads: 2", "tp: 2, pp: 2, dp: 2, micro-batches: 2"),
            (LATENT, "tp: 2, ep: 4"),
        ):
            for phase in ("prefill", "decode"):
                with self.subTest(parallel=parallel, phase=phase):
                    config = self.config(model, f"{parallel}, phase: {phase}, micro-batch: 2", 8)
                    one = self.check_one_answer([config], 8, ranks=(2, 3))
                    self.assertEqual(
                        harness.finish_times(self.run_once([config, "--fold"], "folded.h5")), harness.finish_times(one)
                    )
        few = self.metric(self.config(DENSE % "", "phase: decode, micro-batch: 4"), "time_per_output_token")
        more = self.metric(self.config(DENSE % "", "phase: decode, micro-batch: 8"), "time_per_output_token")
        self.assertTrue(few < more < 1.5 * few, (few, more))

    def test_a_step_reads_the_experts_that_tokens_pick(self):
        """Eight tokens pick two of 64 experts each: 64 (1 - (62/64)^8), or 14, are read on the mean. Of 32 experts they pick 13. The
        steps differ by the weights of one expert in each of two layers, and by the router's weights and results for 32 experts.
        """
        h, w, b, layers = 1024, 1024, 8, 2

        def step(experts):
            sizes = f"kind: transformer, layers: {layers}, hidden: {h}, heads: 8, ffn: {w}, gated: true, sequence: 512"
            model = f"{{{sizes}, vocabulary: 8192, experts: {experts}, top-k: 2}}"
            config = self.config(model, f"phase: decode, micro-batch: {b}, detail: operator")
            return self.metric(config, "time_per_output_token")

        expected = layers * 2 * (3 * h * w + 32 * (h + b)) / 1000e9
        self.assertAlmostEqual(step(64) - step(32), expected, delta=1e-11)

    def request(self, model, parallel, npus=1, arguments=(), **generation):
        """Returns the metrics of a request in seconds, and the step time."""
        import h5py

        keys = {"output-tokens": 9, **{name.replace("_", "-"): value for name, value in generation.items()}}
        text = ", ".join(f"{key}: {value}" for key, value in keys.items())
        config = self.config(model, f"{parallel}{', ' if parallel else ''}phase: request, {text}", npus)
        names = (
            "time_to_first_token",
            "time_per_output_token",
            "first_output_token_time",
            "last_output_token_time",
            "request_time",
            "tokens_per_second",
        )
        with h5py.File(self.run_once([config, *arguments], "request.h5")) as results:
            found = {name: float(results[f"metrics/{name}"][()]) for name in names if f"metrics/{name}" in results}
            return found, float(results["metrics/step_time"][()]) * 1e-12

    def test_a_request_is_its_steps(self):
        """Without a pipeline, a request of 9 tokens after 512 takes the time of a prefill and of the steps of decoding after 512 to 519
        tokens, each as long as the step alone; dense, and latent with experts on 8 NPUs."""
        for model, parallel, npus in ((DENSE, "micro-batch: 4", 1), (LATENT + "%s", "tp: 2, ep: 4, micro-batch: 2", 8)):
            with self.subTest(parallel=parallel):
                found, step = self.request(model % "", parallel, npus)
                first = self.metric(self.config(model % "", f"{parallel}, phase: prefill", npus), "time_to_first_token")
                decoded = [
                    self.metric(
                        self.config(
                            (model % "").replace("sequence: 512", f"sequence: {512 + i}"),
                            f"{parallel}, phase: decode",
                            npus,
                        ),
                        "time_per_output_token",
                    )
                    for i in range(8)
                ]
                self.assertAlmostEqual(found["time_to_first_token"], first, delta=2e-12)
                self.assertAlmostEqual(found["first_output_token_time"], decoded[0], delta=2e-12)
                self.assertAlmostEqual(found["last_output_token_time"], decoded[-1], delta=2e-12)
                self.assertAlmostEqual(found["time_per_output_token"], sum(decoded) / 8, delta=2e-12)
                self.assertAlmostEqual(found["request_time"], step, delta=2e-12)
                self.assertAlmostEqual(step, first + sum(decoded), delta=2e-11)
                sequences = {1: 4, 8: 2 * 4}[npus]
                self.assertAlmostEqual(found["tokens_per_second"] / (9 * sequences / step), 1, delta=1e-9)

    def test_samples_of_a_request(self):
        """Three of 32 decoded tokens give the time of all to a thousandth, and a run of four steps; samples of all tokens are all."""
        every, step = self.request(DENSE % "", "micro-batch: 4", output_tokens=33)
        few, short = self.request(DENSE % "", "micro-batch: 4", output_tokens=33, decode_samples=3)
        self.assertLess(short, step / 2)
        for name in every:
            self.assertAlmostEqual(few[name] / every[name], 1, delta=1e-3)
        self.assertEqual(self.request(DENSE % "", "micro-batch: 4", output_tokens=33, decode_samples=32), (every, step))

    def test_one_answer_of_a_request(self):
        """Requests through two stages with two micro-batches, and with experts: one answer on 1, 2, 3, 4 and 8 ranks and folded, with the same
        metrics. Two micro-batches keep both stages busy: they take less than twice the time of one."""
        for model, parallel in (
            (DENSE % ", kv-heads: 2", "tp: 2, pp: 2, dp: 2, micro-batches: 2"),
            (LATENT, "tp: 2, ep: 4"),
        ):
            config = self.config(model, f"{parallel}, phase: request, output-tokens: 5, micro-batch: 2", 8)
            one = self.check_one_answer([config], 8, ranks=(2, 3, 4, 8))
            self.assertEqual(
                harness.finish_times(self.run_once([config, "--fold"], "folded.h5")), harness.finish_times(one)
            )
        pipeline = "tp: 2, pp: 2, dp: 2, micro-batch: 2"
        alone, _ = self.request(DENSE % "", pipeline, 8)
        both, _ = self.request(DENSE % "", f"{pipeline}, micro-batches: 2", 8)
        folded, _ = self.request(DENSE % "", f"{pipeline}, micro-batches: 2", 8, ["--fold"])
        self.assertEqual(folded, both)
        self.assertLess(both["time_per_output_token"], 1.9 * alone["time_per_output_token"])
        self.assertGreater(both["tokens_per_second"], 1.05 * alone["tokens_per_second"])

    def test_traces_of_a_request(self):
        """The written traces of a request through two stages take the same times as the request itself."""
        config = self.config(DENSE % "", "tp: 2, pp: 2, dp: 2, micro-batches: 2, phase: request, output-tokens: 4", 8)
        direct = harness.finish_times(self.run_once([config], "direct.h5"))
        prefix = self.folder / "request"
        made = harness.orrery("generate", config, "--output", prefix)
        self.assertEqual(made.code, 0, made.err)
        replay = self.folder / "replay.yaml"
        replay.write_text(SYSTEM % 8 + f"workload: {{traces: {prefix}, groups: {prefix}.json}}\n")
        self.assertEqual(harness.finish_times(self.run_once([replay], "replay.h5")), direct)

    def test_memory_of_a_request(self):
        """The cache is that of the prompt and all tokens but the last one: 2 layers x 4 sequences x (512 + 8) tokens x 2 x 1024 values."""
        config = self.config(DENSE % "", "phase: request, output-tokens: 9, micro-batch: 4")
        self.assertIn("cache 17.04 MB", self.dry_run(config))
        import h5py

        with h5py.File(self.run_once([config], "memory.h5")) as results:
            peak = int(results["npus/peak_local_memory"][0])
        parameters = 2 * (2 * (12 * 1024**2 + 2 * 1024) + 2 * 1024 * 8192 + 1024)
        self.assertEqual(peak, parameters + 2 * 2 * 4 * 520 * 2 * 1024)

    def test_figures_of_a_run(self):
        """A prefill says when the first tokens are there, decoding how long a token takes; training says neither."""
        for phase, line, metric in (
            ("prefill", "inference: first token after", "time_to_first_token"),
            ("decode", "ms per token; ", "time_per_output_token"),
        ):
            config = self.config(DENSE % "", f"phase: {phase}, micro-batch: 4")
            ran = harness.orrery("run", config, f"--output={self.folder / phase}.h5", "--progress=none", "--verbose")
            self.assertEqual(ran.code, 0, ran.err)
            self.assertIn(line, ran.out)
            self.assertGreater(self.metric(config, metric), 0)
        self.assertIn(
            "training: ",
            harness.orrery(
                "run",
                self.config(DENSE % "", "dp: 1"),
                f"--output={self.folder / 't'}.h5",
                "--progress=none",
                "--verbose",
            ).out,
        )

    def test_refusals(self):
        """What a step of inference does not have is refused by its key."""
        for parallel, key, model in (
            ("zero: 1", "zero", DENSE % ""),
            ("recompute: full", "recompute", DENSE % ""),
            ("schedule: gpipe", "schedule", DENSE % ""),
            ("tp: 2, sp: true", "sp", DENSE % ""),
            ("cp: 2", "cp", DENSE % ""),
            ("decode-samples: 1, phase: request", "decode-samples", DENSE % ""),
            ("phase: request, cp: 2", "cp", DENSE % ""),
            ("dp: 1", "phase", "{kind: layers, layers: [{parameters: 8, flops: 8, activations: 1}]}"),
        ):
            with self.subTest(key):
                refused = harness.orrery(
                    "generate",
                    self.config(model, parallel if "phase" in parallel else f"{parallel}, phase: decode"),
                    "--dry-run",
                )
                self.assertEqual(refused.code, 3, refused.err)
                self.assertIn(f"workload.parallel.{key}", refused.err)


if __name__ == "__main__":
    harness.main()
