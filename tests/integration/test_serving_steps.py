#!/usr/bin/python3
"""Steps of `step.model: system`: the operators of inference, the collectives of the system's network, and formats of numbers."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import harness  # noqa: E402

PROMPT, OUTPUT = 512, 9
DENSE = {"layers": 2, "hidden": 1024, "heads": 8, "kv-heads": 4, "ffn": 4096, "gated": True, "vocabulary": 8192}
MODELS = {
    "dense": DENSE,
    "experts": {**DENSE, "ffn": 512, "experts": 16, "top-k": 2, "shared-experts": 1, "dense-layers": 1},
    "latent": {
        **{key: value for key, value in DENSE.items() if key != "kv-heads"},
        "head-size": 64,
        "latent": {"key-value": 128, "query": 256, "rotary": 32},
    },
}
COMPUTE = {
    "model": "roofline",
    "peak": {"bf16": "100 TFLOPS", "fp8": "200 TFLOPS"},
    "local-memory": {"bandwidth": "1000 GB/s", "size": "80 GB"},
}


class ServingSteps(harness.Folder):
    def system(self, npus, bandwidth=100, **network):
        dimension = {"shape": "Switch", "size": npus, "bandwidth": f"{bandwidth} GB/s", "latency": "1 us"}
        return {"network": {"dimensions": [dimension], **network}, "compute": COMPUTE}

    def save(self, content):
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(content))
        return path

    def served(self, model, tp=1, system=None, requests=1, **serving):
        """Returns the file of requests that arrive together and are served by one instance without any delay of a host."""
        return self.save(
            {
                "system": system or self.system(max(tp, 2)),
                "serving": {
                    "model": {**model, "sequence": 4096},
                    "requests": {
                        "arrivals": "constant",
                        "rate": 1e9,
                        "count": requests,
                        "prompt": PROMPT,
                        "output": OUTPUT,
                    },
                    "router": {"dispatch": "0 s"},
                    "scheduler": {"max-tokens": 8192},
                    "instances": [{"name": "i", "parallel": {"tp": tp}}],
                    **serving,
                },
            }
        )

    def serve(self, config, name="served.h5", ranks=0):
        path = self.folder / name
        outcome = harness.orrery("run", config, f"--output={path}", "--quiet", "--force", ranks=ranks)
        self.assertEqual(outcome.code, 0, outcome.err)
        return path

    def times(self, config):
        """Returns the times to the first and to the last token of the first request, in ps."""
        with h5py.File(self.serve(config)) as results:
            request = {name: int(results[f"requests/{name}"][0]) for name in ("arrival", "first", "last")}
        return request["first"] - request["arrival"], request["last"] - request["arrival"]

    def test_one_request_alone_is_the_request_of_a_workload(self):
        """A request that nothing else meets takes what `phase: request` takes, to the ps: with all kinds of layers, on one NPU and
        on several, in both networks, with rates of products, and with a host that limits some layers."""
        for name, model in MODELS.items():
            for tp, network, host in ((1, {}, 0), (2, {}, 40), (4, {"model": "congestion-aware"}, 0)):
                with self.subTest(model=name, tp=tp):
                    system = self.system(tp, **network)
                    if host > 0:
                        system["compute"] = {**COMPUTE, "model": "products", "processor": "h100"}
                    parallel = {"tp": tp, "phase": "request", "output-tokens": OUTPUT, "detail": "operator"}
                    parallel["layer-time"] = f"{host} us"
                    workload = {"model": {**model, "sequence": PROMPT}, "parallel": parallel}
                    config = self.save({"system": system, "workload": workload})
                    with h5py.File(self.run_once([config], "workload.h5")) as results:
                        expected = (
                            round(float(results["metrics/time_to_first_token"][()]) * 1e12),
                            round(float(results["metrics/request_time"][()]) * 1e12),
                        )
                    served = self.served(model, tp, system, host={"layer": f"{host} us"})
                    self.assertEqual(self.times(served), expected)

    def test_the_network_of_the_system_counts(self):
        """Half of the bandwidth makes the steps of a tensor-parallel instance longer by the time of its bytes, and those of an
        instance of one NPU not at all."""
        fast, slow = (self.times(self.served(DENSE, 2, self.system(2, bandwidth)))[0] for bandwidth in (100, 50))
        # An all-reduce among two in steps of halves: two for each layer, and one of the embedding; then an all-gather.
        sums = (2 * DENSE["layers"] + 1) * 2 * PROMPT * DENSE["hidden"] * 2 / 2
        words = DENSE["vocabulary"] / 2 * 2
        self.assertAlmostEqual((slow - fast) * 1e-12, (sums + words) * (1 / 50e9 - 1 / 100e9), delta=1e-10)
        alone = [self.times(self.served(DENSE, 1, self.system(2, bandwidth))) for bandwidth in (100, 50)]
        self.assertEqual(*alone)

    def test_the_slowest_data_parallel_rank_counts(self):
        """Data-parallel ranks step together, so collectives take the time of the rank whose NPUs are farthest apart, in any place."""
        servers = [
            {"shape": "Switch", "size": 2, "bandwidth": "100 GB/s", "latency": "1 us"},
            {"shape": "Switch", "size": 4, "bandwidth": "10 GB/s", "latency": "5 us"},
        ]
        system = {"network": {"dimensions": servers}, "compute": COMPUTE}

        def first_token(*npus):
            instance = {"name": "i", "parallel": {"tp": 2, "dp": len(npus) // 2}, "allocation": list(npus)}
            return self.times(self.served(DENSE, 2, system, instances=[instance], transfer={"network": "simulated"}))[0]

        near, far = first_token(0, 1), first_token(2, 4)
        self.assertLess(near, far)
        self.assertEqual(first_token(0, 1, 6, 7), near)
        for npus in ((0, 1, 2, 4), (2, 4, 0, 1), (0, 1, 6, 7, 2, 4)):
            with self.subTest(npus=npus):
                self.assertEqual(first_token(*npus), far)

    def test_formats_of_weights(self):
        """Weights of a byte halve the time of decoding, which reading them limits, and products take the peak of their precision if
        the system has one; weights of half a byte are read in it and multiplied in bf16."""
        wide = {**DENSE, "hidden": 4096, "heads": 32, "kv-heads": 8, "ffn": 16384}
        weights = 2 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 16384) + 4096 * 8192

        def of(format_):
            first, last = self.times(self.served(wide, precision={"weights": format_}))
            return first * 1e-12, (last - first) / (OUTPUT - 1) * 1e-12

        bf16, fp8, int4 = of("bf16"), of("fp8"), of("int4")
        self.assertAlmostEqual(bf16[1] - int4[1], weights * (2 - 0.515625) / 1000e9, delta=1e-8)
        self.assertAlmostEqual(bf16[1] - fp8[1], weights / 1000e9, delta=2e-3 * fp8[1])
        self.assertLess(fp8[0], 0.6 * bf16[0])
        # Of a prompt, only the output layer of one token is limited by memory.
        self.assertAlmostEqual(bf16[0] - int4[0], 4096 * 8192 * (2 - 0.515625) / 1000e9, delta=1e-8)

    def test_a_stack_gives_the_time_of_the_host(self):
        """With a stack of an inference engine each layer takes at least its layer-time, and `host.layer` replaces it."""
        (self.folder / "slow.yaml").write_text("workload: {parallel: {layer-time: 3 ms}}\n")
        config = self.served(DENSE)
        plain = json.loads(config.read_text())
        self.save({"stack": "slow.yaml", **plain})
        layers = DENSE["layers"] + 2  # the embedding and the output layer wait too
        self.assertEqual(self.times(config), (layers * 3 * 10**9, OUTPUT * layers * 3 * 10**9))
        plain["serving"]["host"] = {"layer": "4 ms"}
        self.save({"stack": "slow.yaml", **plain})
        self.assertEqual(self.times(config), (layers * 4 * 10**9, OUTPUT * layers * 4 * 10**9))

    def test_refusals(self):
        """More NPUs than the system has, and a format of the cache that `system` has no rule for, end with exit code 3."""
        for text, tp, changes in (
            ("parallel.tp: found 8, and the system has 2 NPUs", 8, {"system": self.system(2)}),
            ("precision.kv: found int4 with step.model: system", 1, {"precision": {"kv": "int4"}}),
        ):
            with self.subTest(text):
                outcome = harness.orrery("run", self.served(DENSE, tp, **changes), "--output", self.folder / "x.h5")
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn(text.split(": ")[-1], outcome.err)

    def test_one_answer(self):
        """Instances on several ranks, each of two NPUs, give one answer."""
        serving = {"instances": [{"name": "i", "count": 4, "parallel": {"tp": 2}}]}
        config = self.served(DENSE, 2, self.system(8), requests=40, **serving)
        alone = self.serve(config, "alone.h5")
        for ranks in (2, 3, 4):
            other = self.serve(config, f"on{ranks}.h5", ranks)
            self.assertEqual(harness.difference(alone, other), "", f"{ranks} ranks")


if __name__ == "__main__":
    harness.main()
