#!/usr/bin/python3
"""The summary of a run: the answer first, in few lines; hints whose gains are simulated; what the step depends on."""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

MOST_LINES, MOST_CHARACTERS = 20, 80
LLAMA = harness.SOURCE / "configs/llama3-8b-64.yaml"
LARGE = (
    ("configs/jobs-two.yaml",),
    ("configs/dlrm-dcnv2-16.yaml", "--fold"),
    ("configs/llama3-70b-1024.yaml", "--fold"),
    ("configs/graph-16.yaml",),
    ("configs/moe-1t-256.yaml", "--fold"),
)
SLOW = """system:
  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 0 ns}]}
workload:
  model: {kind: layers, layers: [{parameters: 1000, forward: 1 ms, backward: 2 ms, activations: 1}]}
  parallel: {dp: 4}
perturbation: {slow-npus: [{npus: 2, compute: 0.5}]}
"""
UNEVEN = """system:
  base: dgx-h100-superpod
  npus: 32
stack: h100-nemo
workload:
  model: {layers: 16, hidden: 4096, heads: 32, sequence: 4096, vocabulary: 512000, gated: true, ffn: 14336}
  parallel: {tp: 8, pp: 4, sp: true, micro-batches: 16}
"""


class Summary(harness.Folder):
    def run_it(self, config, *arguments, code=0, **more):
        outcome = harness.orrery(
            "run", config, "--force", f"--output={self.folder / 'r.h5'}", "--progress=none", *arguments, **more
        )
        self.assertEqual(outcome.code, code, outcome.out + outcome.err)
        return outcome.out

    def seconds(self, text):
        value, unit = re.fullmatch(r"([\d.]+) (\w+)", text).groups()
        return float(value) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[unit]

    def step_time(self, printed):
        return self.seconds(re.search(r"^step time ([\d.]+ \w+)", printed, re.MULTILINE)[1])

    def test_the_answer_stands_first(self):
        """A step of Llama 3 8B. Expectation: model, NPUs, parallelism, step time, MFU, tokens per second and memory stand in the first sentence; the
        rows of causes add up to 100 %; files and the next command end the summary."""
        lines = self.run_it(LLAMA).splitlines()
        rows = [re.match(r"  (\w+) +([\d.]+) %  (\||#+)", line) for line in lines]
        first = " ".join(line.strip() for line in lines[: next(i for i, row in enumerate(rows) if row)])
        self.assertRegex(
            first,
            r"^step time [\d.]+ ms: llama3-8b on 64 NPUs \(tp 4, dp 4, pp 4\), MFU [\d.]+ %, [\d.]+ k tokens/s, [\d.]+ GB of memory 80 % interval ",
        )
        shares = [float(row[2]) for row in rows if row]
        self.assertAlmostEqual(sum(shares), 100, delta=0.5)
        for row in filter(None, rows):
            self.assertAlmostEqual(row[3].count("#"), float(row[2]) / 5, delta=0.6)
        self.assertRegex(" ".join(lines[-2:]), r"results in .*; next: orrery show +results ")
        self.assertNotIn("\033", "".join(lines))

    def test_summaries_are_short(self):
        """Examples of all kinds. Expectation: at most 20 lines of at most 80 characters, but for names of files; nothing takes 0 ps."""
        for name, *options in LARGE:
            lines = self.run_it(harness.SOURCE / name, "--memory=report", *options).splitlines()
            self.assertLessEqual(len(lines), MOST_LINES, name)
            self.assertLessEqual(max(len(line) for line in lines if "/" not in line), MOST_CHARACTERS, lines)
            self.assertNotRegex("\n".join(lines), r"\b0 ps")

    def test_everything_is_behind_verbose(self):
        """The same run with --verbose and with run.verbose. Expectation: all tables that the short summary leaves out."""
        for printed in (self.run_it(LLAMA, "--verbose"), self.run_it(LLAMA, "--set=run.verbose=true")):
            for part in (
                "workload: 8.03 G parameters",
                "training: ",
                "time          all NPUs",
                "sent in a step: ",
                "bus bandwidth: ",
                " events in ",
            ):
                self.assertIn(part, printed)

    def test_colours(self):
        """Output that goes to a file has no colours unless they are asked for, and has none with NO_COLOR or --color=never on a terminal."""
        self.assertIn("\033[1m", self.run_it(LLAMA, "--color=always"))
        self.assertNotIn("\033", self.run_it(LLAMA, "--color=auto"))
        for variables, options, has_colours in (
            ({}, [], True),
            ({"NO_COLOR": "1"}, [], False),
            ({}, ["--color=never"], False),
        ):
            command = harness.launch(
                ["run", LLAMA, "--force", "--progress=none", f"--output={self.folder / 'r.h5'}", *options]
            )
            environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            self.assertEqual(
                "\033[1m" in on_terminal(command, {**environment, **variables}), has_colours, (variables, options)
            )

    def test_gains_are_simulated(self):
        """Each remedy of a dense step is tried by hand. Expectation: the step takes what the hint says, and remedies stand in the order of gains."""
        printed = " ".join(line.strip() for line in self.run_it(LLAMA).splitlines())
        hints = re.findall(r"hint: with (\d+) GB/s in dimension (\d): ([\d.]+ \w+) \(([-+][\d.]+) %\)", printed)
        self.assertTrue(hints, printed)
        before = self.step_time(printed)
        for rate, dimension, time, gain in hints:
            after = self.step_time(
                self.run_it(LLAMA, f"--set=system.network.dimensions.{dimension}.bandwidth={rate} GB/s")
            )
            self.assertAlmostEqual(self.seconds(time) / after, 1, delta=1e-5)
            self.assertAlmostEqual(float(gain), 100 * (after / before - 1), delta=0.06)
        gains = [float(gain) for gain in re.findall(r"hint: with .*? \(([-+][\d.]+) %", printed)]
        self.assertEqual(gains, sorted(gains))
        self.assertLessEqual(len(gains), 3)

    def test_one_answer_on_ranks(self):
        """The summary on two ranks is that on one."""
        self.assertEqual(self.run_it(LLAMA, ranks=2), self.run_it(LLAMA))

    def test_a_straggler_is_named(self):
        """One NPU at half speed. Expectation: it is named, and the gain of a full speed is what the step takes then: half."""
        config = self.folder / "slow.yaml"
        config.write_text(SLOW)
        printed = " ".join(line.strip() for line in self.run_it(config).splitlines())
        self.assertRegex(printed, r"NPU 2 is late: it computes for 6 ms, 3 ms in the mean of the others")
        self.assertRegex(printed, r"with all NPUs at full speed: 3\.\d+ ms \(-(49|50)\.\d %\)")

    def test_an_uneven_last_stage_is_named(self):
        """A pipeline whose last stage has a large output layer. Expectation: a remedy moves a layer from it, and does what it says."""
        config = self.folder / "uneven.yaml"
        config.write_text(UNEVEN)
        printed = " ".join(line.strip() for line in self.run_it(config).splitlines())
        found = re.search(r"with stage-layers: \[([\d, ]+)\]: ([\d.]+ \w+) ", printed)
        self.assertTrue(found, printed)
        again = self.run_it(config, f"--set=workload.parallel.stage-layers=[{found[1]}]")
        self.assertAlmostEqual(self.seconds(found[2]) / self.step_time(again), 1, delta=1e-5)
        self.assertLess(self.step_time(again), self.step_time(printed))

    def test_impossible_utilisation_is_told(self):
        """A step without a stack reaches more than training does. Expectation: a warning that names a stack, and none with one."""
        config = self.folder / "roofline.yaml"
        config.write_text(
            "system: {base: dgx-h100, npus: 8}\nworkload: {model: llama3-8b, parallel: {dp: 8, micro-batches: 4, zero: 1}}\n"
        )
        self.assertRegex(
            self.run_it(config, "--memory=report").replace("\n    ", " "),
            r"warning: MFU \d+\.\d % is more than training reaches: name a stack",
        )
        config.write_text("stack: h100-nemo\n" + config.read_text())
        self.assertNotIn("warning: MFU", self.run_it(config, "--memory=report"))

    def test_sensitivity(self):
        """What the step of Llama 3 8B depends on. Expectation: at most five inputs, the strongest first; the peak of compute is the strongest, and its
        numbers are those of runs with 10 % less and more."""
        printed = self.run_it(LLAMA, "--sensitivity")
        rows = re.findall(r"^  ([a-z][\w ]+?) +([-+][\d.]+) % +([-+][\d.]+) %$", printed, re.MULTILINE)
        self.assertEqual(rows[0][0], "peak of compute")
        self.assertLessEqual(len(rows), 5)
        spans = [abs(float(less) - float(more)) for _, less, more in rows]
        self.assertEqual(spans, sorted(spans, reverse=True))
        before = self.step_time(printed)
        after = self.step_time(self.run_it(LLAMA, f"--set=system.compute.peak={0.9 * 989} TFLOPS"))
        self.assertAlmostEqual(float(rows[0][1]), 100 * (after / before - 1), delta=0.01)
        self.assertRegex(harness.orrery("run", "--sensitivity", "--workload-configuration=x").err, ".")

    @unittest.skipUnless((harness.SHARED / "inputs/kineto/megatron-tp8-a100").is_dir(), "needs shared/inputs")
    def test_a_late_host_is_named(self):
        """A recorded step of Megatron whose host is late on NPU 0. Expectation: the hint names the NPU and its host, and not its computation."""
        config = self.folder / "kineto.yaml"
        config.write_text(
            f"""system:
  network: {{dimensions: [{{shape: Switch, size: 8, bandwidth: 300 GB/s, latency: 500 ns}}]}}
  collectives: {{library: {{name: nccl-a100}}}}
  compute: {{local-memory: {{bandwidth: 2039 GB/s}}}}
workload:
  traces: [{{npus: 0-7, file: "{harness.SHARED}/inputs/kineto/megatron-tp8-a100/kineto_{{npu}}.json.gz"}}]
"""
        )
        printed = " ".join(line.strip() for line in self.run_it(config).splitlines())
        self.assertRegex(
            printed, r"hint: NPU 0 is late: its host \(cpu\) works for 255\.\d ms, .* 57 % of the NPUs' time"
        )


def on_terminal(command, environment):
    """Runs a command on a terminal of its own and returns what it prints there."""
    import pty

    printed = b""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, environment)
    while True:
        try:
            block = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        printed += block
    os.waitpid(child, 0)
    os.close(terminal)
    return printed.decode(errors="replace")


if __name__ == "__main__":
    harness.main()
