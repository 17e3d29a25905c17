#!/usr/bin/python3
"""A user's own model and cluster: config.json of Hugging Face, `system.npus`, lists of presets, `orrery init`."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"],
    "attention_bias": False,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "model_type": "qwen3",
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "rope_scaling": None,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
MOST_CHARACTERS = 80
PRESETS = harness.SOURCE / "configs"


class OwnModel(harness.Folder):
    def orrery(self, *arguments, code=0):
        outcome = harness.orrery(*arguments, cwd=self.folder)
        self.assertEqual(outcome.code, code, outcome.out + outcome.err)
        return outcome

    def step_time(self, *arguments):
        printed = self.orrery("run", *arguments, "--force", f"--output={self.folder / 'r.h5'}")
        return re.search(r"^step time ([\d.]+ \w+)", printed.out, re.MULTILINE)[1]

    def config(self, model, system="dgx-h100-superpod", more="", npus=16, parallel="tp: 2, dp: 8, sp: true"):
        path = self.folder / "run.yaml"
        path.write_text(
            f"stack: h100-nemo\nsystem: {{base: {system}, npus: {npus}}}\nworkload: {{model: {model}, parallel: {{{parallel}}}}}\n{more}"
        )
        return path

    def write_model(self, **changes):
        (self.folder / "config.json").write_text(json.dumps({**QWEN3_8B, **changes}, indent=2))

    def test_a_config_json_is_a_model(self):
        """The config.json of Qwen3 8B with the sequence of its preset. Expectation: the step of the preset, and a note on the length of sequences that
        the file does not say; a file with gaps, and one of a type that is not known, get one message each; a run of the file itself is told where it belongs.
        """
        self.write_model()
        config = self.config("{base: config.json, sequence: 4096}")
        self.assertEqual(self.step_time(config), self.step_time(self.config("{base: qwen3-8b, sequence: 4096}")))
        self.assertIn(
            "how long the sequences of a step are: 8192 tokens are taken",
            self.orrery("check", self.config("config.json")).err,
        )
        self.write_model(hidden_size=None, vocab_size=None)
        refused = self.orrery("check", self.config("config.json"), code=3).err
        self.assertRegex(refused, r"config\.json.*the model of type qwen3 has no hidden_size, vocab_size")
        self.assertEqual(
            len(harness.errors(self.orrery("run", self.config("config.json"), "--output=x.h5", code=3))), 1
        )
        self.write_model(model_type="mamba")
        self.assertRegex(
            self.orrery("check", self.config("config.json"), code=3).err,
            "found the type 'mamba'.*expected one of llama",
        )
        self.assertRegex(
            self.orrery("run", "config.json", code=3).err,
            "a model of Hugging Face Transformers: name it as workload.model",
        )

    def test_best_takes_a_config_json(self):
        """`orrery best` of a small config.json. Expectation: a plan is found."""
        self.write_model(num_hidden_layers=4)
        printed = self.orrery(
            "best", "config.json", "--on=dgx-h100", "--npus=16", "--batch=16", "--stack=h100-nemo"
        ).out
        self.assertRegex(printed, r"The best[\s\S]*\n +\d+ ")

    def test_arguments_of_other_tools_are_named(self):
        """Arguments of torchtitan and Megatron as a model, to `best` and to `run`. Expectation: the tool is named, with where to go."""
        for text, tool in (
            ('[model]\nname = "llama3"\nflavor = "8B"\n[parallelism]\ntensor_parallel_degree = 8\n', "torchtitan"),
            ('GPT_ARGS="\n  --num-layers 32\n  --hidden-size 4096\n"\n', "Megatron-LM"),
        ):
            (self.folder / "arguments.txt").write_text(text)
            for arguments in (
                ["best", "arguments.txt", "--on=dgx-h100", "--npus=16"],
                ["run", "arguments.txt"],
                ["check", self.config("arguments.txt")],
            ):
                refused = self.orrery(*arguments, code=3).err
                self.assertIn(tool, refused)
                self.assertIn("docs/workloads.md", refused)

    def test_npus_fill_servers_first(self):
        """Presets with other numbers of NPUs, by key, option and setting. Expectation: the first dimensions stay whole; a number that leaves a server or
        a leaf partly empty is refused with its neighbours; a graph, which has its own hosts, is refused."""
        config = self.folder / "system.yaml"
        config.write_text("system: {base: dgx-h100, npus: 128}\n")
        for arguments, sizes in (
            ((), [8, 16, 1]),
            (("--npus=512",), [8, 32, 2]),
            (("--npus", "4"), [4, 1, 1]),
            (("--npus", "2048"), [8, 32, 8]),
        ):
            shown = json.loads(self.orrery("show", "topology", config, *arguments, "--json").out)
            self.assertEqual([dimension["size"] for dimension in shown["dimensions"]], sizes)
        config = self.config("llama3-8b", npus=128, parallel="tp: 8, dp: 16")
        self.assertIn(
            "found 12; expected whole groups of 8 NPUs, as dimension 0 of the system has them. 8 or 16 would do",
            self.orrery("check", config, "--npus=12", code=3).err,
        )
        self.assertIn(
            "found 264; expected whole groups of 256 NPUs",
            self.orrery("check", config, "--set=system.npus=264", code=3).err,
        )
        self.assertIn(
            "found a graph beside system.npus", self.orrery("check", PRESETS / "graph-16.yaml", "--npus=8", code=3).err
        )
        self.assertIn(
            "--npus goes with CONFIG.yaml",
            self.orrery(
                "check",
                "--npus=8",
                *(
                    f"--{name}=x"
                    for name in (
                        "workload-configuration",
                        "system-configuration",
                        "network-configuration",
                        "remote-memory-configuration",
                    )
                ),
                code=2,
            ).err,
        )

    def test_lists_of_presets(self):
        """All four lists. Expectation: each preset of the folder has a line that fits a terminal; JSON has the same names and plain numbers."""
        for kind in ("models", "systems", "stacks", "prices"):
            names = [path.stem for path in sorted((PRESETS / kind).glob("*.yaml"))]
            lines = self.orrery("show", kind).out.splitlines()
            self.assertEqual([line.split()[0] for line in lines[1 : 1 + len(names)]], names)
            self.assertLessEqual(max(map(len, lines)), MOST_CHARACTERS)
            self.assertEqual([entry["name"] for entry in json.loads(self.orrery("show", kind, "--json").out)], names)
        models = {entry["name"]: entry for entry in json.loads(self.orrery("show", "models", "--json").out)}
        self.assertAlmostEqual(models["deepseek-v3"]["parameters"] / 671e9, 1, delta=0.001)
        systems = {entry["name"]: entry for entry in json.loads(self.orrery("show", "systems", "--json").out)}
        self.assertEqual(
            (systems["dgx-h100-superpod"]["npus"], systems["dgx-h100-superpod"]["bf16_peak"]), (1024, 989e12)
        )

    def test_init_writes_what_runs(self):
        """Configurations of dense models and one with experts, on three systems. Expectation: each passes its check and runs with what it says; an
        existing file stays; arguments that name nothing are named."""
        for model, system, npus, stack in (
            ("qwen3-32b", "dgx-h100", 128, "h100-nemo"),
            ("mixtral-8x7b", "dgx-a100", 64, "a100-megatron"),
            ("llama3-8b", "gb200", 72, "gb200-nemo"),
        ):
            path = self.folder / f"{model}.yaml"
            batch = 9 * 64 if npus == 72 else npus
            self.orrery(
                "init", "--model", model, "--system", system, "--npus", npus, "--batch", batch, "--output", path
            )
            text = path.read_text()
            self.assertRegex(text, rf"\nstack: stacks/{stack} +# ")
            for warning in self.orrery("check", path).err.splitlines():  # a stack was fitted to steps of other sizes
                self.assertIn("in which the stack was fitted", warning)
            degrees = {
                key: int(value)
                for key, value in re.findall(r"^    (tp|pp|dp|ep|micro-batches): (\d+)", text, re.MULTILINE)
            }
            product = degrees["tp"] * degrees["pp"] * degrees["dp"] * degrees.get("ep", 1)
            self.assertEqual(product, npus)
            self.assertEqual(degrees["dp"] * degrees.get("ep", 1) * degrees["micro-batches"], batch)
            self.orrery("run", path, "--fold", "--output", self.folder / f"{model}.h5")
        self.assertIn(
            "exists already",
            self.orrery("init", "--model=llama3-8b", "--system=dgx-h100", "--npus=8", "--output", path, code=5).err,
        )
        self.assertRegex(
            self.orrery("init", "--model=llama3-8b", "--system=dgx-h100", "--npus=12", code=3).err,
            "whole groups of 8 NPUs",
        )
        self.assertRegex(
            self.orrery("init", "--model=llama3-8b", "--system=dgx", "--npus=8", code=3).err,  # is short for several
            "--system and --npus: found 'dgx', but there is no such file",
        )
        self.assertRegex(
            self.orrery("init", "--model=llama3-8b", "--system=dgx-h100", "--npus=8", "--stack=h100-nimo", code=3).err,
            "--stack: .*Did you mean the preset 'h100-nemo'",
        )
        self.assertFalse((self.folder / "CONFIG.yaml").exists())

    def test_the_schema_of_editors(self):
        """The schema of CONFIG.yaml. Expectation: the file of the build is what the program prints; it takes all examples, and refuses an unknown
        key and an unknown word; what `init` writes names it first."""
        text = self.orrery("show", "keys", "--schema").out
        schema = pathlib.Path(harness.BINARY).resolve().parents[1] / "made/schema.json"
        self.assertEqual(schema.read_text(), text)
        self.orrery("init", "--model=llama3-8b", "--system=dgx-h100", "--npus=8", "--output=first.yaml")
        self.assertEqual(
            (self.folder / "first.yaml").read_text().splitlines()[0], f"# yaml-language-server: $schema={schema}"
        )
        try:
            import jsonschema
            import yaml
        except ImportError:
            self.skipTest("needs Python's jsonschema and yaml")
        validator = jsonschema.Draft7Validator(json.loads(text))
        examples = [
            path
            for folder in (".", "scale", "serving", "stacks", "libra")
            for path in (PRESETS / folder).glob("*.yaml")
            if path.name not in ("prices.yaml", "chat.yaml", "study.yaml")
        ]  # the last two are no CONFIG.yaml
        self.assertGreater(len(examples), 30)
        for path in examples:
            content = yaml.safe_load(path.read_text())
            content.pop("provenance", None)  # which stacks have beside the keys of CONFIG.yaml
            self.assertEqual([error.message for error in validator.iter_errors(content)], [], path)
        for wrong in (
            {"system": {"npuz": 8}},
            {"system": {"network": {"model": "congested"}}},
            {"workload": {"parallel": {"zero": [1]}}},
            {"sytem": {}},
        ):
            self.assertFalse(validator.is_valid(wrong), wrong)


if __name__ == "__main__":
    harness.main()
