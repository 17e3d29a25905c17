#!/usr/bin/python3
"""`orrery synthesize`: traces of the same scale are those that were learned from but for names and order; others have the ranks, layers and
micro-batches that were asked for; they pass `orrery check` and run to their end; no text of the input is in them; bad input is refused."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

MODEL = {"layers": 8, "hidden": 1024, "heads": 8, "ffn": 4096, "gated": True, "vocabulary": 32000, "sequence": 1024}
SYSTEM = {
    "network": {
        "dimensions": [
            {"shape": "FullyConnected", "size": 4, "bandwidth": "150 GB/s", "latency": "500 ns"},
            {"shape": "Switch", "size": 4, "bandwidth": "25 GB/s", "latency": "1 us"},
        ]
    },
    "compute": {"roofline": True, "peak": "400 TFLOPS", "local-memory": {"bandwidth": "2000 GB/s"}},
}


class Synthesize(harness.Folder):
    def generate(self, name, parallel, **model):
        config = self.folder / f"{name}.yaml"
        config.write_text(json.dumps({"workload": {"model": MODEL | model, "parallel": parallel}}))
        outcome = harness.orrery("generate", config, "--output", self.folder / name)
        self.assertEqual(outcome.code, 0, outcome.err)

    def synthesize(self, *arguments, code=0):
        outcome = harness.orrery("synthesize", *arguments)
        self.assertEqual(outcome.code, code, outcome.out + outcome.err)
        return outcome

    def learned(self, name, *arguments, code=0):
        """Synthesizes "made" from traces, in place of older ones."""
        for old in self.folder.glob("made.*"):
            old.unlink()
        return self.synthesize(
            self.folder / (name + ".{npu}.et"),
            "--groups",
            self.folder / f"{name}.json",
            "--output",
            self.folder / "made",
            *arguments,
            code=code,
        )

    def config(self, name, npus=16):
        system = json.loads(json.dumps(SYSTEM))
        system["network"]["dimensions"][1]["size"] = npus // 4
        path = self.folder / "run.yaml"
        path.write_text(
            json.dumps(
                {
                    "system": system,
                    "workload": {"traces": str(self.folder / name), "groups": str(self.folder / f"{name}.json")},
                }
            )
        )
        return path

    def step(self, name, npus=16):
        """Checks the traces, runs them, and returns the step time in ps."""
        config = self.config(name, npus)
        checked = harness.orrery("check", config)
        self.assertEqual(checked.code, 0, checked.err)
        outcome = harness.orrery("run", config, "--quiet", "--force", "--output", self.folder / "run.h5")
        self.assertEqual(outcome.code, 0, outcome.err)
        return max(harness.finish_times(self.folder / "run.h5"))

    def count(self, name, npu=0):
        """Returns the number of nodes of an NPU by kind."""
        outcome = harness.orrery("show", "trace", self.folder / f"{name}.{npu}.et", "--json")
        self.assertEqual(outcome.code, 0, outcome.err)
        return json.loads(outcome.out)["kinds"]

    def assert_near(self, a, b, share):
        self.assertLess(abs(a / b - 1), share, f"{a} against {b}")

    PARALLEL = {"tp": 4, "sp": True, "dp": 2, "pp": 2, "micro-batches": 6}

    def test_same_scale(self):
        """Traces of 16 NPUs (tp, dp and pp) at the same scale have the same nodes; the step takes as long without noise, and nearly so with it."""
        self.generate("source", self.PARALLEL)
        outcome = self.learned("source", "--delta", 0)
        self.assertIn("micro-batches: 6, layers: 8\n", outcome.out)
        self.assertNotIn("left out", outcome.out)
        for npu in (0, 15):
            self.assertEqual(self.count("made", npu), self.count("source", npu))
        self.assert_near(self.step("made"), self.step("source"), 0.01)
        self.learned("source")
        self.assert_near(self.step("made"), self.step("source"), 0.05)

    def test_other_scales(self):
        """Traces with other layers, micro-batches and ranks have the nodes that `orrery generate` writes for them, and nearly its step time."""
        self.generate("source", self.PARALLEL)
        for truth, changed, arguments, npus in (
            ("layers", {}, ["--layers", 16], 16),
            ("few-layers", {}, ["--layers", 4], 16),
            ("batches", {"micro-batches": 12}, ["--micro-batches", 12], 16),
            ("few-batches", {"micro-batches": 4}, ["--micro-batches", 4], 16),
            ("ranks", {"dp": 4}, ["--ranks", 32], 32),
            ("fewer", {"dp": 1}, ["--scale", "a1=0.5"], 8),
        ):
            with self.subTest(truth):
                self.generate(truth, self.PARALLEL | changed, **({"layers": arguments[1]} if "layers" in truth else {}))
                self.learned("source", "--delta", 0, *arguments)
                if truth != "fewer":  # one replica has no sums among replicas, which are still there, in groups of one
                    self.assertEqual(self.count("made"), self.count(truth))
                self.assert_near(self.step("made", npus), self.step(truth, npus), 0.10)

    def peaks(self, name):
        """The peaks of the local memory of all NPUs, in bytes."""
        import h5py

        self.step(name)
        with h5py.File(self.folder / "run.h5") as results:
            return results["npus/peak_local_memory"][()].tolist()

    def test_memory(self):
        """Tensors keep the use of local memory: to the byte without noise, and nearly with it, also with twice the layers, from a model, and
        with ZeRO 2, whose gradients come and go."""
        for source, parallel in (
            ("pipeline", self.PARALLEL),
            ("zero", {"tp": 2, "dp": 8, "zero": 2, "micro-batches": 4}),
        ):
            with self.subTest(parallel):
                self.generate(source, parallel)
                expected = self.peaks(source)
                self.assertGreater(min(expected), 10**6)
                self.learned(source, "--delta", 0, "--model-out", self.folder / "model.json")
                self.assertEqual(self.peaks("made"), expected)
                self.synthesize(
                    "--model", self.folder / "model.json", "--output", self.folder / "made", "--delta", 0, "--force"
                )
                self.assertEqual(self.peaks("made"), expected)
                (self.folder / "model.json").unlink()
                self.learned(source)
                for found, peak in zip(self.peaks("made"), expected):
                    self.assertNotEqual(found, peak)
                    self.assert_near(found, peak, 0.15)
                self.learned(source, "--delta", 0, "--layers", 16)
                found = self.peaks("made")
                self.generate(f"{source}-16", parallel, layers=16)
                for peak, truth in zip(found, self.peaks(f"{source}-16")):
                    self.assert_near(peak, truth, 0.2)  # the embedding grows, too

    def test_spread(self):
        """--spread changes ratios of sizes: products and collectives get factors of their own, the same one wherever they are alike."""
        self.generate("source", self.PARALLEL)

        def sizes(name):
            """[(FLOPs, bytes)] of the nodes of NPU 0, by kind."""
            found = {}
            for line in harness.orrery("show", "trace", self.folder / f"{name}.0.et", "--nodes").out.splitlines()[1:]:
                node = json.loads(line)
                values = {
                    entry["name"]: next(int(v) for k, v in entry.items() if k != "name")
                    for entry in node["attr"]
                    if entry["name"] in ("num_ops", "tensor_size", "comm_size")
                }
                for key, value in values.items():
                    found.setdefault((node["type"], key), []).append(value)
            return found

        self.learned("source", "--delta", 0)
        before = sizes("made")
        self.learned("source", "--delta", 0, "--spread", 0.5)
        after = sizes("made")
        self.assertEqual(
            {key: len(values) for key, values in before.items()}, {key: len(values) for key, values in after.items()}
        )
        ratios = {key: sum(after[key]) / sum(before[key]) for key in before if sum(before[key]) > 0}
        self.assertGreater(max(ratios.values()) / min(ratios.values()), 1.2, ratios)
        sends = ("COMM_SEND_NODE", "comm_size")
        self.assertEqual(len(set(before[sends])), 1)
        self.assertEqual(len(set(after[sends])), 1)
        self.step("made")
        self.synthesize(self.folder / "source.{npu}.et", "--output", "x", "--spread", 3, code=2)

    def test_seeds(self):
        """Every seed gives traces that run, and others than the next one; the same one the same."""
        self.generate("source", self.PARALLEL, layers=4)
        seen = set()
        for seed in range(1 if harness.FEWER_CASES else 3):
            self.learned("source", "--seed", seed)
            self.step("made")
            written = (self.folder / "made.0.et").read_bytes()
            self.assertNotIn(written, seen)
            seen.add(written)
        self.learned("source", "--seed", seed)
        self.assertEqual((self.folder / "made.0.et").read_bytes(), written)

    def test_hides_texts_and_sizes(self):
        """No name of a node or group of the input is in the traces, the groups or the model, and hardly a size."""
        self.generate("source", self.PARALLEL)
        outcome = self.learned("source", "--model-out", self.folder / "model.json")
        equal = float(re.search(r"([\d.]+) % of sizes equal one of the input", outcome.out)[1])
        self.assertLess(equal, 5)
        self.assertIn("not differential privacy", outcome.out)
        names = set(
            re.findall(
                rb'"name":"([^"]*)"',
                harness.orrery("show", "trace", self.folder / "source.0.et", "--nodes").out.encode(),
            )
        )
        read = {
            b"is_cpu_op",
            b"num_ops",
            b"tensor_size",
            b"comm_type",
            b"comm_size",
            b"comm_src",
            b"comm_dst",
            b"comm_tag",
            b"pg_name",
            b"stream",
            b"comm_priority",
            b"involved_dim",
            b"duration_ps",
        }
        names = {name for name in names - read if len(name) > 3 and name not in (b"inputs", b"outputs")}
        names |= {name.encode() for name in json.loads((self.folder / "source.json").read_text()) if len(name) > 3}
        self.assertGreater(len(names), 20)
        for file in ("made.0.et", "made.15.et", "made.json", "model.json"):
            held = (self.folder / file).read_bytes()
            self.assertEqual([name for name in names if name in held], [], file)

    def test_model_file(self):
        """What is made from a model is what is made from the traces that it was learned from."""
        self.generate("source", self.PARALLEL)
        self.learned("source", "--delta", 0, "--model-out", self.folder / "model.json")
        self.synthesize("--model", self.folder / "model.json", "--delta", 0, "--output", self.folder / "again")
        for npu in range(16):
            self.assertEqual(
                (self.folder / f"again.{npu}.et").read_bytes(), (self.folder / f"made.{npu}.et").read_bytes()
            )
        model = json.loads((self.folder / "model.json").read_text())
        for what, change in (
            ("version", {"version": 2}),
            ("role_table", {"role_table": [7, 7]}),
            ("families", {"families": []}),
            ("axes", {"axes": 3}),
        ):
            with self.subTest(what):
                (self.folder / "bad.json").write_text(json.dumps(model | change))
                outcome = self.synthesize("--model", self.folder / "bad.json", "--output", self.folder / "bad", code=3)
                self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
                self.assertIn("bad.json", outcome.err)
                self.assertFalse((self.folder / "bad.0.et").exists())

    def test_damaged_models(self):
        """Model files that are cut off, that are no JSON, that lack a part or have one of another type. Expectation: one message of the program
        names the file and the place, without words of a library."""
        self.generate("source", self.PARALLEL)
        self.learned("source", "--model-out", self.folder / "model.json")
        text = (self.folder / "model.json").read_text()
        model = json.loads(text)

        def without(name):
            changed = json.loads(text)
            del changed["roles"][0][name]
            return json.dumps(changed)

        def with_role(name, value):
            changed = json.loads(text)
            changed["roles"][0][name] = value
            return json.dumps(changed)

        for written, said in (
            (text[: len(text) // 2], rf"bad\.json:1: \(byte {len(text) // 2}\): the file ends within a value"),
            ("{\n!" + text[1:], r"bad\.json:2: \(byte 2\): no JSON from here on"),
            (json.dumps(model | {"axes": 3}), r"bad\.json: key '/axes': a value of another type"),
            (json.dumps(model | {"families": [1]}), r"bad\.json: key '/families/0': a value of another type"),
            (without("tokens"), r"bad\.json: key '/roles/0': no 'tokens' in it"),
            (
                json.dumps(model | {"sketches": [[[1.0, 2.0]]]}),
                r"bad\.json: key '/sketches/0/0': a list that is too short",
            ),
            (json.dumps(model | {"layers": -1}), r"bad\.json: layers out of range"),
            (json.dumps(model | {"role_table": [1e300]}), r"bad\.json: role_table out of range"),
            (with_role("npus", 1e300), r"bad\.json: npus out of range"),
            (with_role("edges", [[[7e66, 0, 0, 0, 0, 0, 0]]]), r"bad\.json: edge out of range"),
            ("[]", r"bad\.json: a value of another type"),
            ("", r"bad\.json:1: \(byte 0\): the file ends within a value"),
        ):
            with self.subTest(said):
                (self.folder / "bad.json").write_text(written)
                outcome = self.synthesize("--model", self.folder / "bad.json", "--output", self.folder / "bad", code=3)
                self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
                self.assertRegex(outcome.err, said + ".*; expected a model that orrery synthesize --model-out wrote")
                self.assertNotIn("json.exception", outcome.err)

    def measured(self, out):
        """Returns what was printed of how true traces are, and how often an attack is right."""
        found = {name: float(value) for name, value in re.findall(r"\n  (counts|sizes|depth|degrees) +([0-9.]+)", out)}
        return found, [int(share) for share in re.findall(r"\n  [a-z ,]+ (\d+) %(?=\n)", out)]

    def test_report(self):
        """Traces with sizes as learned, with the usual noise, and with a spread. Expectation: nothing differs from the input without noise, and
        known models are named always; with noise sizes differ within the aim, and with a spread by more, which a star marks. A model knows no
        input to compare with. Nothing is printed with --quiet."""
        self.generate("source", self.PARALLEL)
        model = self.folder / "model.json"
        found, exact = self.measured(self.learned("source", "--delta", 0, "--model-out", model).out)
        self.assertEqual(found, {"counts": 0, "sizes": 0, "depth": 0, "degrees": 0})
        self.assertEqual((exact[0], exact[2]), (100, 100))
        usual = self.learned("source").out
        found, rates = self.measured(usual)
        self.assertTrue(0 < found["sizes"] <= 0.05, found)
        self.assertRegex(usual, r"20 known models \(by chance 5 %\), with --delta 0\.05 and --spread 0:")
        self.assertEqual(rates[0], 100)
        self.assertLess(rates[1], rates[0])
        self.assertIn("recognise it in these traces? yes; by ratios only: yes", usual)
        self.assertEqual(usual, self.learned("source").out)
        spread = self.learned("source", "--spread", 1, "--layers", 12).out
        found, hidden = self.measured(spread)
        self.assertGreater(found["sizes"], 0.05)
        self.assertRegex(spread, r"sizes +[0-9.]+ decades \* +aim 0\.05 decades")
        self.assertLess(hidden[2], rates[2])
        of_model = self.synthesize("--model", model, "--output", self.folder / "again").out
        self.assertIn("The model knows no input", of_model)
        self.assertEqual(self.measured(of_model), ({}, rates))
        self.assertEqual(self.learned("source", "--quiet").out, "")

    def test_reference(self):
        """From traces of two scales it is learned which sizes change with the number of ranks."""
        self.generate("source", {"tp": 2, "dp": 4, "zero": 1, "micro-batches": 4})
        self.generate("double", {"tp": 2, "dp": 8, "zero": 1, "micro-batches": 4})
        self.generate("truth", {"tp": 2, "dp": 16, "zero": 1, "micro-batches": 4})
        self.learned(
            "source",
            "--delta",
            0,
            "--ranks",
            32,
            "--reference",
            self.folder / "double.{npu}.et",
            "--reference-groups",
            self.folder / "double.json",
        )
        self.assert_near(self.step("made", 32), self.step("truth", 32), 0.02)

    def test_refusals(self):
        """An axis that is not there, ranks that do not divide, and fewer layers than stages end with one error that names the option."""
        self.generate("source", self.PARALLEL)
        for words, arguments in (
            (["--scale", "a9"], ["--scale", "a9=2"]),
            (["--ranks", "whole number"], ["--ranks", 7]),
            (["a2", "pipeline of 2"], ["--scale", "a2=2"]),
            (["--layers", "loop"], ["--layers", 1]),
        ):
            with self.subTest(words):
                outcome = self.learned("source", *arguments, code=3)
                self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
                for word in words:
                    self.assertIn(word, outcome.err)
        for arguments in (
            ["--output", "x"],
            ["--model", "m", "t", "--output", "x"],
            ["t"],
            ["t", "--output", "x", "--scale", "dp=2"],
            ["t", "--output", "x", "--delta", "9"],
        ):
            self.synthesize(*arguments, code=2)

    def test_recordings(self):
        """A recording in which hardly a node is repeated: pooled sizes keep their order, so that the step stays, and no size is one of the input."""
        folder = harness.SHARED / "inputs/kineto/megatron-tp8-a100"
        if not folder.exists():
            self.skipTest("there is no shared/inputs")
        source = folder / "kineto_{npu}.json.gz"
        outcome = self.synthesize(source, "--output", self.folder / "made")
        self.assertLess(float(re.search(r"([\d.]+) % of sizes equal one of the input", outcome.out)[1]), 5)
        times = []
        for traces in (
            {"traces": str(source)},
            {"traces": str(self.folder / "made"), "groups": str(self.folder / "made.json")},
        ):
            network = {"dimensions": [{"shape": "Switch", "size": 8, "bandwidth": "235 GB/s", "latency": "500 ns"}]}
            (self.folder / "run.yaml").write_text(
                json.dumps({"system": {"network": network, "compute": {"roofline": False}}, "workload": traces})
            )
            run = harness.orrery(
                "run", self.folder / "run.yaml", "--quiet", "--force", "--output", self.folder / "run.h5"
            )
            self.assertEqual(run.code, 0, run.err)
            times.append(max(harness.finish_times(self.folder / "run.h5")))
        self.assert_near(times[1], times[0], 0.05)

    def test_shared_traces(self):
        """Traces that other tools wrote, at their own scale. In STAGE's Llama dependencies do not fix the order of the collectives of a group:
        members agree on sizes only if those that are alike stay alike."""
        for archive, prefix, npus in (
            ("stage-gpt_64_tp8sp2dp4_sp", "gpt_64_tp8sp2dp4_sp/workload", 64),
            ("dlrm-8gpu", "dlrm", 8),
            ("stage-llama-s_64_dp4tp4pp4", "llama-s_64_dp4tp4pp4/workload", 64),
        ):
            with self.subTest(archive):
                folder = harness.unpacked(archive)
                groups = folder / f"{prefix}.json"
                listed = ["--groups", groups] if groups.exists() else []
                self.synthesize(folder / (prefix + ".{npu}.et"), *listed, "--output", self.folder / archive)
                self.step(archive, npus)


if __name__ == "__main__":
    harness.main()
