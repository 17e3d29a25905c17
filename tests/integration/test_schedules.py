#!/usr/bin/env python3
"""The schedules of pipelines: the time of a step against the published formulas, what stages keep, and what is refused."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

# A stage of the pipeline takes `unit` ms for a forward pass, and twice that for a backward pass, half of it for the gradients of weights.
# It hands on 2 B, which take no time worth telling.
PIPELINE = """system:
  network:
    dimensions: [{{shape: FullyConnected, size: {npus}, bandwidth: 1000 TB/s, latency: 0 ns}}]
  communication: {{streams: 2}}
workload:
  model: {{kind: layers, layers: [{{repeat: {layers}, forward: {unit} us, backward: {twice} us, activations: 1, parameters: {parameters}}}]}}
  parallel: {{pp: {stages}, dp: {replicas}, micro-batches: {batches}, schedule: {schedule}}}
"""


class Schedules(harness.Folder):
    def write(self, stages, batches, schedule, layers=None, unit=1000, replicas=1, parameters=0):
        path = self.folder / "config.yaml"
        path.write_text(
            PIPELINE.format(
                npus=stages * replicas,
                stages=stages,
                batches=batches,
                schedule=schedule,
                layers=layers or stages,
                unit=unit,
                twice=2 * unit,
                replicas=replicas,
                parameters=parameters,
            )
        )
        return path

    def microseconds(self, config, *arguments):
        return max(round(time / 1e6) for time in harness.finish_times(self.run_once([config, *arguments])))

    def test_steps_take_what_the_formulas_say(self):
        """Pipelines of P stages with m micro-batches. With passes F = B = W of 1 ms the step takes m (F + B + W), and besides for 1F1B
        (P - 1) (F + B + W), for ZB-H1 (P - 1) (F + B - W), for DualPipe (P / 2 - 1) (F&B + B - 3 W) with F&B = 3 and a whole backward
        pass of B = 2, and for ZB-V the time until the last stage has its first input, P - 1 passes of half a stage."""
        for stages, batches in ((2, 4), (4, 8), (4, 10), (6, 12)):
            cases = {"1f1b": 3 * (stages - 1), "zb-h1": stages - 1, "dualpipe": stages - 2}
            for schedule, waits in cases.items():
                with self.subTest(stages=stages, batches=batches, schedule=schedule):
                    self.assertEqual(
                        self.microseconds(self.write(stages, batches, schedule)), 1000 * (3 * batches + waits)
                    )
            with self.subTest(stages=stages, batches=batches, schedule="zb-v"):
                config = self.write(stages, batches, "zb-v", layers=2 * stages, unit=500)
                self.assertEqual(self.microseconds(config), 500 * (6 * batches + stages - 1))

    def test_delayed_weight_gradients_shorten_the_drain(self):
        """1F1B on 4 stages with 8 micro-batches. Stages wait for gradients of inputs alone when the pipeline drains: each of 3 stages saves
        the 1 ms of gradients of weights at the end."""
        config = self.write(4, 8, "1f1b")
        whole = self.microseconds(config)
        self.assertEqual(
            self.microseconds(config, "--set=workload.parallel.delayed-weight-gradients=true"), whole - 3000
        )

    def test_stages_have_the_layers_that_were_given(self):
        """Two stages of 1 and 3 layers, one micro-batch: 4 ms forward and 8 ms backward in turn. With 4 micro-batches the larger stage works
        for 36 ms, and it waits for 1 ms before and 2 ms after."""
        layers = "--set=workload.parallel.stage-layers=[1, 3]"
        self.assertEqual(self.microseconds(self.write(2, 1, "1f1b", layers=4), layers), 12000)
        self.assertEqual(self.microseconds(self.write(2, 4, "1f1b", layers=4), layers), 39000)

    def test_only_some_layers_are_computed_again(self):
        """One NPU, 4 layers of 1 ms forward and 2 ms backward: 12 ms, and 1 ms for each layer that is computed again, at most 4."""
        for number, extra in ((0, 0), (3, 3), (9, 4)):
            again = ["--set=workload.parallel.recompute=full", f"--set=workload.parallel.recompute-layers={number}"]
            self.assertEqual(self.microseconds(self.write(1, 1, "1f1b", layers=4), *again), 1000 * (12 + extra))

    def test_scattered_messages(self):
        """Two stages of two NPUs, and two micro-batches of 64 tokens of 256 values: each NPU sends 32768 bytes, or half of that, which an
        all-gather makes whole after each receive. With sequence parallelism messages are halves anyway."""
        config = self.folder / "scattered.yaml"
        config.write_text(
            "system:\n  network: {dimensions: [{shape: Switch, size: 2, bandwidth: 100 GB/s, latency: 1 us}, "
            "{shape: Switch, size: 2, bandwidth: 10 GB/s, latency: 1 us}]}\n"
            "  compute: {model: roofline, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}\n"
            "workload:\n  model: {layers: 2, hidden: 256, heads: 4, sequence: 64}\n  parallel: {tp: 2, pp: 2, micro-batches: 2}\n"
        )
        for settings, share, gathers in (
            ([], 32768, 0),
            (["scattered-messages=true"], 16384, 2),
            (["scattered-messages=true", "sp=true"], 16384, 0),
        ):
            with self.subTest(settings):
                prefix = self.folder / "-".join(["traces", *settings]).replace("=", "")
                arguments = [f"--set=workload.parallel.{setting}" for setting in settings]
                done = harness.orrery("generate", config, f"--output={prefix}", *arguments)
                self.assertEqual(done.code, 0, done.err)
                for npu in range(4):
                    nodes = chakra.read(f"{prefix}.{npu}.et")
                    sizes = [
                        node.attributes["comm_size"].value for node in nodes if node.type in (chakra.SEND, chakra.RECV)
                    ]
                    self.assertEqual(sizes, [share] * 4)
                    made = [node for node in nodes if node.name.startswith("gather.")]
                    self.assertEqual([node.attributes["comm_size"].value for node in made], [share] * gathers)
                self.run_once([config, *arguments])

    def test_ranks_and_folding_do_not_change_results(self):
        """Four stages, two replicas, gradients of 2 MB for each layer, on 1, 2 and 3 ranks and folded: the same results."""
        for schedule in ("zb-h1", "zb-v", "dualpipe"):
            with self.subTest(schedule):
                config = self.write(4, 8, schedule, layers=8, replicas=2, parameters=1000000)
                self.check_one_answer([config], 8, ranks=(1, 2, 3))
                plain = harness.finish_times(self.run_once([config], name="plain.h5"))
                self.assertEqual(
                    list(harness.finish_times(self.run_once([config, "--fold"], name="folded.h5"))), list(plain)
                )

    def test_what_cannot_be_is_refused(self):
        """Each case has one fault; the message names its key, and the exit code is 3."""
        cases = [
            ("pp", "found 3; expected an even number", 3, 8, "dualpipe", []),
            ("pp", "found 1; expected 2 or more", 1, 8, "zb-h1", []),
            ("micro-batches", "found 9; expected an even number", 4, 9, "dualpipe", []),
            ("micro-batches", "found 6; expected 8 or more", 4, 6, "dualpipe", []),
            ("micro-batches", "found 3; expected 4 or more", 4, 3, "zb-h1", []),
            ("micro-batches", "found 7; expected 8 or more", 4, 7, "zb-v", []),
            ("interleaving", "found 2; expected 1", 4, 8, "zb-h1", ["interleaving=2"]),
            ("zero", "found 3; expected 0 or 1", 4, 8, "dualpipe", ["zero=3"]),
            ("gather-before-forward", "expected false", 4, 8, "dualpipe", ["gather-before-forward=true"]),
            ("stage-layers", "found 2 numbers; expected one for each of 4", 4, 8, "1f1b", ["stage-layers=[4, 4]"]),
            ("stage-layers", "found 9 layers in all; expected 8", 4, 8, "1f1b", ["stage-layers=[3, 2, 2, 2]"]),
            ("recompute-layers", "found 2; expected no number", 4, 8, "1f1b", ["recompute-layers=2"]),
            ("stage-layers", "found 0; expected 1 or more", 4, 8, "1f1b", ["stage-layers=[8, 0, 0, 0]"]),
        ]
        for key, words, stages, batches, schedule, settings in cases:
            with self.subTest(key=key, words=words):
                config = self.write(stages, batches, schedule, layers=8)
                more = [f"--set=workload.parallel.{setting}" for setting in settings]
                outcome = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}", *more)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn(f"key 'workload.parallel.{key}'", outcome.err)
                self.assertIn(words, outcome.err)


if __name__ == "__main__":
    harness.main()
