#!/usr/bin/python3
"""Serving: one answer on any number of ranks, and what is refused with a message."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import harness  # noqa: E402

LINEAR = {"model": "linear", "linear": {"base": "5 ms", "token": "20 us", "sequence": "10 us", "context": "20 ns"}}
DRAWN = {"arrivals": "poisson", "rate": 40, "count": 300, "prompt": {"distribution": "log-normal", "median": 200, "most": 800},
         "output": {"distribution": "uniform", "least": 1, "most": 60}, "shared-prefix": {"tokens": 64, "groups": 3}}


class Serving(harness.Folder):

    def config(self, **serving):
        """Returns the file of a configuration with linear costs and one instance, unless `serving` says otherwise."""
        path = self.folder / "serving.yaml"
        path.write_text(json.dumps({"serving": {"requests": DRAWN, "step": LINEAR, "instances": [{"kv-blocks": 100}], **serving}}))
        return path

    def digest(self, path):
        """Returns all that a run has to say of requests, instances and steps."""
        found = {}
        with h5py.File(path) as results:
            for group in ("requests", "instances", "steps", "steps_items", "steps_preempted"):
                for name, values in results[group].items():
                    found[group, name] = values[:].tolist()
            found["metrics"] = {name: str(value) for name, value in results["serving"].attrs.items()}
        return found

    def run_serving(self, config, ranks):
        path = self.folder / f"on{ranks}.h5"
        outcome = harness.orrery("run", config, f"--output={path}", "--quiet", "--force", ranks=ranks)
        self.assertEqual(outcome.code, 0, outcome.err)
        return self.digest(path)

    def check_ranks(self, numbers=(2, 3, 4, 8), **serving):
        config = self.config(record={"steps": True}, **serving)
        alone = self.run_serving(config, 0)
        self.assertTrue(alone["requests", "last"])
        for ranks in numbers:
            self.assertEqual(self.run_serving(config, ranks), alone, f"{ranks} ranks")

    def test_one_answer_with_a_router(self):
        """Five instances behind a router: every step and every request is equal on 1, 2, 3, 4 and 8 ranks."""
        few = {**DRAWN, "count": 60}
        self.check_ranks(requests=few, router={"policy": "least-requests"}, instances=[{"count": 5, "kv-blocks": 60}])
        for policy in ("vllm-dp", "two-choices", "prefix"):
            self.check_ranks((3,), requests=few, router={"policy": policy}, instances=[{"count": 5, "kv-blocks": 60}])

    def test_one_answer_without_a_router(self):
        """Three instances by turns: the choices are known from the start, and the answer is equal on all numbers of ranks."""
        self.check_ranks(instances=[{"count": 3, "kv-blocks": 60}])

    def test_one_answer_with_transfers(self):
        """Two prefill and three decode instances with slow ports: the answer is equal on all numbers of ranks."""
        self.check_ranks(requests={**DRAWN, "count": 100}, instances=[{"role": "prefill", "count": 2, "kv-blocks": 200}, {"role": "decode", "count": 3, "kv-blocks": 80}],
                         transfer={"bandwidth": "1 GB/s", "latency": "5 us"}, **{"kv-bytes-per-token": 131072})

    def test_a_closed_loop_takes_what_its_steps_take(self):
        """Eight users in four rounds of five tokens, 1 ms + 0.1 ms for each request: 36 ms."""
        config = self.config(requests={"arrivals": "closed", "users": 8, "count": 32, "prompt": 10, "output": 5},
                             router={"dispatch": "0 ns", "report": "0 ns"}, scheduler={"ahead": False},
                             step={"model": "linear", "linear": {"base": "1 ms", "sequence": "100 us"}})
        path = self.folder / "closed.h5"
        self.assertEqual(harness.orrery("run", config, f"--output={path}", "--quiet").code, 0)
        with h5py.File(path) as results:
            self.assertEqual(int(results.attrs["simulated_time"]), 36 * 10**9)

    def refuse(self, *parts, arguments=(), **serving):
        outcome = harness.orrery("run", self.config(**serving), f"--output={self.folder / 'none.h5'}", *arguments)
        self.assertEqual(outcome.code, 3, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)

    def test_refusals(self):
        """Each contradiction ends with exit code 3 and a message that says what was found."""
        two = [{"count": 2, "kv-blocks": 100}]
        self.refuse("serving.router.dispatch", "looks at several instances", instances=two,
                    router={"policy": "least-tokens", "dispatch": "0 ns"})
        self.refuse("none with the role decode", instances=[{"role": "prefill", "kv-blocks": 100}])
        self.refuse("needs", "KV blocks, instance instance.0 has 3", instances=[{"kv-blocks": 3}])
        self.refuse("exceed max-length 50", scheduler={"max-length": 50})
        self.refuse("neither ttft nor tpot", slo={"share": 0.5})
        self.refuse("serving.measure.from", "the last request arrives", measure={"from": "900 s"})
        self.refuse("a run without folding", arguments=["--fold"])
        self.refuse("it is missing, and step.model is profile", step={"model": "profile"})
        self.refuse("leave no KV blocks", memory="10 GB", weights=20 * 10**9, instances=[{}], **{"kv-bytes-per-token": 1000})
        self.refuse("the 64 heads", model={"layers": 2, "hidden": 512, "heads": 64, "sequence": 1}, instances=[{"parallel": {"tp": 7}}])
        self.refuse("the model is dense", model={"layers": 2, "hidden": 512, "heads": 8, "sequence": 1},
                    instances=[{"kv-blocks": 100, "parallel": {"ep": 2}}])
        self.refuse("a divisor of the 2 NPUs", model={"layers": 2, "hidden": 512, "heads": 8, "sequence": 1, "experts": 8, "top-k": 2},
                    instances=[{"kv-blocks": 100, "parallel": {"tp": 2, "ep": 4}}])
        self.refuse("it is no file", requests={"file": "nowhere.csv"})

    def test_keys_without_effect_are_named(self):
        """Keys that the step model, the arrivals or the instances do not use give one warning for each reason."""
        config = self.config(step={**LINEAR, "skew": 0.1}, host={"step": "1 ms"}, transfer={"latency": "1 ms"},
                             requests={**DRAWN, "count": 5, "users": 3}, instances=[{"kv-blocks": 100, "reserve": "1 GiB"}])
        outcome = harness.orrery("run", config, f"--output={self.folder / 'idle.h5'}", "--quiet")
        self.assertEqual(outcome.code, 0, outcome.err)
        for text in ("serving.step.skew has no effect without serving.step.model: profile",
                     "serving.host.step has no effect without serving.step.model: system, profile or operators",
                     "serving.transfer.latency has no effect without serving.instances.role: decode",
                     "serving.requests.users has no effect without serving.requests.arrivals: closed",
                     "serving.instances.0.reserve has no effect with serving.instances.kv-blocks"):
            self.assertIn(text, outcome.err)

    def test_serving_stands_in_place_of_a_workload(self):
        """`workload` beside `serving` is refused, and `orrery check` counts requests and instances."""
        config = self.config()
        outcome = harness.orrery("check", config)
        self.assertEqual((outcome.code, outcome.out), (0, "300 requests, 1 instance: nothing wrong was found\n"))
        text = json.loads(config.read_text())
        config.write_text(json.dumps({**text, "workload": {}}))
        outcome = harness.orrery("run", config)
        self.assertEqual(outcome.code, 3)
        self.assertIn("serving is given too", outcome.err)


if __name__ == "__main__":
    harness.main()
