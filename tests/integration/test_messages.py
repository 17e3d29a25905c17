#!/usr/bin/python3
"""Mistakes that people make: each message names the place, what was found, and what to write or to run instead."""
import fcntl
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

H100 = "system: {base: dgx-h100, npus: 64}\nworkload:\n  model: llama3-8b\n  parallel: {%s}\n"
NETWORK = "system:\n  network:\n    dimensions:\n      - {shape: Ring, size: 8, bandwidth: %s, latency: 500 ns}\nworkload: {model: llama3-8b, parallel: {dp: 8}}\n"


class Messages(harness.Folder):
    def refused(self, *arguments, code=3, **more):
        outcome = harness.orrery(*arguments, cwd=self.folder, **more)
        self.assertEqual(outcome.code, code, outcome.out + outcome.err)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        return outcome.err

    def write(self, text, name="run.yaml"):
        (self.folder / name).write_text(text)
        return name

    def test_products_of_degrees(self):
        """Degrees whose product is not the number of NPUs, in the file and by a setting. Expectation: the user's own key is named, with the degree that fits."""
        config = self.write(H100 % "tp: 8, dp: 100")
        said = self.refused("check", config)
        self.assertIn(
            "run.yaml:4: key 'workload.parallel.dp': tp * cp * ep * dp * pp is 800; expected the number of NPUs of the network, 64: dp 8 would fit",
            said,
        )
        said = self.refused("check", self.write(H100 % "tp: 8, dp: 8"), "--set=workload.parallel.pp=2")
        self.assertRegex(
            said,
            r"--set workload\.parallel\.pp=2: key 'workload\.parallel\.pp': .* is 128; expected .*, 64: pp 1 would fit",
        )

    def test_degrees_that_do_not_divide(self):
        """tp 7 for 32 heads, cp 3 for 8,192 tokens. Expectation: the degree's own place, and the degrees that do."""
        said = self.refused("check", self.write(H100 % "tp: 7, dp: 8"))
        self.assertIn(
            "run.yaml:4: key 'workload.parallel.tp': tp 7 does not divide 32 heads; expected a divisor: 1, 2, 4, 8, 16, 32",
            said,
        )
        self.assertIn(
            "cp 3 does not divide 8192 tokens of a sequence", self.refused("check", self.write(H100 % "cp: 3, dp: 8"))
        )

    def test_models_that_do_not_fit(self):
        """Llama 3 8B on one H100 each, and 405B on 64. Expectation: plans that fit with what they take, or the command that finds some."""
        said = self.refused("run", self.write(H100 % "dp: 64"), "--fold", "--output=x.h5")
        self.assertRegex(
            said, r"It would fit with another workload\.parallel: zero: 1 takes [\d.]+ GB.*`orrery best` finds"
        )
        said = self.refused("run", self.write((H100 % "dp: 64").replace("8b", "405b")), "--fold", "--output=x.h5")
        self.assertIn("`orrery best` finds a parallelism that fits", said)

    def test_units(self):
        """Other spellings of units, and none. Expectation: the unit that is meant, and both units of bandwidths."""
        for written, meant in (
            ("400 Gbps", "400 Gb/s"),
            ("400 Gbit/s", "400 Gb/s"),
            ("50 GBps", "50 GB/s"),
            ("1.6 Tbits/s", "1.6 Tb/s"),
            ("50 GByte/s", "50 GB/s"),
        ):
            self.assertIn(f"Did you mean '{meant}'?", self.refused("check", self.write(NETWORK % written)))
        self.assertIn(
            "Write the unit: '400 GB/s', or '400 Gb/s', the unit of network cards, if that is meant.",
            self.refused("check", self.write(NETWORK % "400")),
        )
        fast = "network: {dimensions: [{shape: Switch, size: 8, bandwidth: 450 GB/s, latency: 1 us}, {shape: Switch, size: 8, bandwidth: 400 GB/s, latency: 1 us, port: nic}]}"
        said = harness.orrery("check", self.write((H100 % "dp: 64").replace("npus: 64", fast)), cwd=self.folder).err
        self.assertIn("is 400 GB/s outside the server, 3200 Gb/s: network cards have less. Is it meant in Gb/s?", said)

    def test_files_of_other_kinds(self):
        """Files given to the wrong command. Expectation: what the file is, and the command that takes it, in one message."""
        config = self.write(H100 % "dp: 64, zero: 1")
        study = self.write(
            "study:\n  base: run.yaml\n  parameters: {tp: {key: workload.parallel.tp, values: [1]}}\n  objectives: [{minimise: step_time}]\n",
            "study.yaml",
        )
        picture = self.folder / "a.png"
        picture.write_bytes((harness.SOURCE / "docs/scale.png").read_bytes())
        harness.orrery("run", config, "--fold", "--quiet", "--output=r.h5", cwd=self.folder)
        self.write('[model]\nname = "llama3"\nflavor = "8B"\n', "train.toml")
        self.write(json.dumps({"model_type": "llama", "hidden_size": 8}), "config.json")
        for arguments, said in (
            (["run", study], "a study: 'orrery explore FILE' takes it"),
            (["explore", config], "'orrery run FILE' takes a configuration"),
            (["run", "r.h5"], "'orrery show results' prints"),
            (["explore", "r.h5"], "'orrery show results' prints"),
            (["run", picture], "a picture (PNG)"),
            (["run", "train.toml"], "a configuration of torchtitan (TOML)"),
            (["check", "config.json"], "a model of Hugging Face Transformers"),
            (["run", harness.SOURCE / "configs/models/llama3-8b.yaml"], "a model: name it as workload.model"),
            (["run", harness.SOURCE / "configs/systems/dgx-h100-superpod.yaml"], "a system: name it as system.base"),
            (["run", harness.SOURCE / "configs/prices/h100-2024-08.yaml"], "prices: name them as cost"),
        ):
            self.assertIn(said, self.refused(*arguments))

    def test_brackets(self):
        """A brace and a bracket that nothing closes, among quotes and comments. Expectation: the line in which they stand."""
        self.assertIn(
            "run.yaml:4: not well-formed YAML: the '{' in this line is not closed; expected a '}' after its last entry",
            self.refused("check", self.write((NETWORK % "1 GB/s").replace("500 ns}", "500 ns"))),
        )
        said = self.refused(
            "check", self.write('# {[\nsystem: {base: "a}"}\nworkload:\n  parallel: {placement: [tp, dp, cp}\n')
        )
        self.assertRegex(said, r"run\.yaml:4: ")
        self.assertIn(
            "run.yaml:2: not well-formed YAML: the '[' in this line",
            self.refused("check", self.write("run: {}\nworkload: [a, 'b]'\n")),
        )

    def test_results_that_are_being_written(self):
        """Results that another process holds for writing. Expectation: they are not called damaged."""
        harness.orrery(
            "run", self.write(H100 % "dp: 64, zero: 1"), "--fold", "--quiet", "--output=r.h5", cwd=self.folder
        )
        with open(self.folder / "r.h5", "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertIn("is another program writing it?", self.refused("show", "kernel", "r.h5", fresh=True))
        self.assertEqual(harness.orrery("show", "kernel", "r.h5", cwd=self.folder).code, 0)

    def test_commands_for_one_rank(self):
        """`show`, `compare` and `report` below mpirun. Expectation: one message."""
        for command in (["show", "kernel", "none.h5"], ["compare", "none.h5", "no.h5"], ["show", "keys", "nothing"]):
            outcome = harness.orrery(*command, ranks=2, cwd=self.folder, fresh=True)
            self.assertNotEqual(outcome.code, 0)
            self.assertEqual(
                len([line for line in outcome.err.splitlines() if line.startswith("orrery: error:")]), 1, outcome.err
            )

    def test_help_of_a_command(self):
        """`orrery help run` and `orrery help show trace`. Expectation: the help of the command."""
        for words in (["run"], ["show", "trace"], ["init"]):
            self.assertEqual(harness.orrery("help", *words).out, harness.orrery(*words, "--help").out)
        self.assertEqual(harness.orrery("help", "rum").code, 2)


if __name__ == "__main__":
    harness.main()
