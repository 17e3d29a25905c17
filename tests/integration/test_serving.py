#!/usr/bin/python3
"""Serving: one answer on any number of ranks, and what is refused with a message."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import harness  # noqa: E402

LINEAR = {"model": "linear", "linear": {"base": "5 ms", "token": "20 us", "sequence": "10 us", "context": "20 ns"}}
DRAWN = {
    "arrivals": "poisson",
    "rate": 40,
    "count": 300,
    "prompt": {"distribution": "log-normal", "median": 200, "most": 800},
    "output": {"distribution": "uniform", "least": 1, "most": 60},
    "shared-prefix": {"tokens": 64, "groups": 3},
}


class Serving(harness.Folder):
    def config(self, **serving):
        """Returns the file of a configuration with linear costs and one instance, unless `serving` says otherwise."""
        path = self.folder / "serving.yaml"
        path.write_text(
            json.dumps({"serving": {"requests": DRAWN, "step": LINEAR, "instances": [{"kv-blocks": 100}], **serving}})
        )
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
        self.check_ranks(
            requests={**DRAWN, "count": 100},
            instances=[
                {"role": "prefill", "count": 2, "kv-blocks": 200},
                {"role": "decode", "count": 3, "kv-blocks": 80},
            ],
            transfer={"bandwidth": "1 GB/s", "latency": "5 us"},
            **{"kv-bytes-per-token": 131072},
        )

    def test_a_closed_loop_takes_what_its_steps_take(self):
        """Eight users in four rounds of five tokens, 1 ms + 0.1 ms for each request: 36 ms."""
        config = self.config(
            requests={"arrivals": "closed", "users": 8, "count": 32, "prompt": 10, "output": 5},
            router={"dispatch": "0 ns", "report": "0 ns"},
            scheduler={"ahead": False},
            step={"model": "linear", "linear": {"base": "1 ms", "sequence": "100 us"}},
        )
        path = self.folder / "closed.h5"
        self.assertEqual(harness.orrery("run", config, f"--output={path}", "--quiet").code, 0)
        with h5py.File(path) as results:
            self.assertEqual(int(results.attrs["simulated_time"]), 36 * 10**9)

    def run_steps(self, **serving):
        """Returns the tables of a run that records its steps."""
        return self.run_serving(self.config(record={"steps": True}, **serving), 0)

    def check_conserved(self, found, prompts, outputs, options):
        """Tokens and blocks are conserved, and no step has more than it may."""
        requests = {key[1]: values for key, values in found.items() if key[0] == "requests"}
        computed, at = [0] * len(prompts), 0
        gave_way = found["steps", "preempted"]
        for step, items in enumerate(found["steps", "items"]):
            tokens = found["steps_items", "tokens"][at : at + items]
            for request, count in zip(found["steps_items", "request"][at : at + items], tokens):
                computed[request] += count
            self.assertLessEqual(items, options["max-seqs"])
            self.assertLessEqual(sum(tokens), options["max-tokens"])
            self.assertLessEqual(found["steps", "used_blocks"][step], options["blocks"])
            at += items
        for k, (prompt, output) in enumerate(zip(prompts, outputs)):
            twice = prompt if requests["decode_instance"][k] >= 0 else 0
            have = computed[k] + requests["prefix_hit"][k] + requests["transferred"][k] - requests["lost"][k]
            # A request that gave way while its last token was under way has computed nothing at its end.
            self.assertIn(
                have,
                (prompt + output - 1 + twice, twice) if requests["preemptions"][k] else (prompt + output - 1 + twice,),
                f"request {k}",
            )
        self.assertEqual(sum(found["instances", "blocks_in_use_at_end"]), 0)
        self.assertEqual(sum(found["instances", "output_tokens"]), sum(outputs))
        return sum(gave_way)

    def test_tokens_and_blocks_are_conserved(self):
        """With preemptions, prefix hits and transfers, what is computed, found and sent, less what is lost, is all of the context."""
        options = {"max-seqs": 16, "max-tokens": 256, "blocks": 70}
        scheduler = {"max-seqs": 16, "max-tokens": 256, "reserve-full": False}
        both = self.run_steps(scheduler=scheduler, instances=[{"count": 2, "kv-blocks": 70}])
        prompts, outputs = both["requests", "prompt"], both["requests", "output"]
        self.assertGreater(self.check_conserved(both, prompts, outputs, options), 0)
        self.assertGreater(sum(both["requests", "prefix_hit"]), 0)
        split = self.run_steps(
            scheduler=scheduler,
            instances=[{"role": "prefill", "count": 2, "kv-blocks": 70}, {"role": "decode", "kv-blocks": 70}],
            **{"kv-bytes-per-token": 1000},
        )
        self.check_conserved(split, prompts, outputs, options)
        self.assertEqual(int(split["metrics"]["transferred_bytes"]), 1000 * sum(split["requests", "transferred"]))

    def test_limits_that_change_nothing(self):
        """Without anything to share the prefix cache changes nothing, and with enough blocks nor does reserving all of a prompt; and D/D/1 has no queue."""
        apart = {name: value for name, value in DRAWN.items() if name != "shared-prefix"}
        wide = [{"count": 2, "kv-blocks": 20000}]
        usual = self.run_steps(requests=apart, instances=wide)
        for change in ({"prefix-cache": False}, {"reserve-full": False}):
            other = self.run_steps(requests=apart, instances=wide, scheduler=change)
            for key in (("requests", "first"), ("requests", "last"), ("steps", "end")):
                self.assertEqual(other[key], usual[key], change)
        paced = self.run_steps(
            requests={"arrivals": "constant", "rate": 50, "count": 100, "prompt": 8, "output": 1},
            router={"dispatch": "0 ns", "report": "0 ns"},
            scheduler={"max-seqs": 1, "ahead": False},
            step={"model": "linear", "linear": {"base": "20 ms"}},
        )
        self.assertEqual(paced["requests", "scheduled"], paced["requests", "arrival"])

    def test_gaps_count_in_the_window(self):
        """ITL is of the requests that arrive in the window: those before it, which share no step with others, have gaps of 5 ms, and those in it of 10 ms."""
        rows = ["arrival,prompt,output"] + [f"{k} s,8,11" for k in range(5)] + ["100 s,8,11"] * 2
        (self.folder / "rows.csv").write_text("\n".join(rows) + "\n")
        step = {"model": "linear", "linear": {"sequence": "5 ms"}}
        for router in ("round-robin", "least-requests"):
            for roles in (["both"], ["prefill", "decode"]):
                instances = [{"role": role, "kv-blocks": 100} for role in roles]
                run = lambda **more: self.run_steps(
                    requests={"file": str(self.folder / "rows.csv")},
                    step=step,
                    scheduler={"ahead": False},
                    instances=instances,  # noqa: E731
                    router={"policy": router},
                    **{"kv-bytes-per-token": 1},
                    **more,
                )["metrics"]
                self.assertAlmostEqual(float(run(measure={"from": "50 s"})["itl_p50"]) / 1e9, 10, delta=0.1)
                self.assertAlmostEqual(
                    float(run(measure={"to": "50 s"})["itl_p99"]) / 1e9, 5, delta=0.2
                )  # the first gap of a decode instance is longer
                self.assertAlmostEqual(float(run(measure={"from": "50 s"})["itl_mean"]) / 1e9, 10, delta=0.3)

    def test_experts_in_memory_and_by_file(self):
        """Expert parallelism divides the weights of experts, and a file of loads makes the busiest rank count."""
        model = {
            "layers": 4,
            "hidden": 1024,
            "heads": 8,
            "sequence": 1024,
            "experts": 16,
            "top-k": 2,
            "ffn": 4096,
            "vocabulary": 1000,
        }
        blocks = {}
        for ep in (1, 4):
            found = self.run_steps(
                model=model,
                memory="8 GB",
                instances=[{"parallel": {"dp": 4, "ep": ep}}],
                requests={**DRAWN, "count": 5},
            )
            blocks[ep] = found["instances", "blocks"][0]
        freed = 0.75 * 4 * 16 * 2 * 1024 * 4096 * 2  # bytes of an NPU: three quarters of the experts
        self.assertAlmostEqual((blocks[4] - blocks[1]) * 16 * 2 * 4 * 1024 * 2, freed, delta=0.02 * freed)
        for name, text in {
            "dense": "layer,tokens,time_us\nembedding,1,0\nfinal_layernorm,1,0\n",
            "per_sequence": "layer,sequences,time_us\nlm_head,1,0\nsampler,1,0\n",
            "attention": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,1,0\n16,0,0,0,0\n16,0,1,1,0\n",
            "moe": "tokens,activated_experts,time_us\n1,1,100\n1000,1,100000\n",
        }.items():
            (self.folder / f"{name}.csv").write_text(text)
        loads = self.folder / "loads.csv"
        profile = {"model": "profile", "tables": str(self.folder), "ring": {"bandwidth": "1 TB/s", "latency": "0 ns"}}
        requests = {"arrivals": "constant", "rate": 1e6, "count": 64, "prompt": 16, "output": 2}
        run = lambda **experts: self.run_steps(
            model=model,
            step=profile,
            requests=requests,
            scheduler={"ahead": False, "max-seqs": 16},  # noqa: E731
            instances=[{"kv-blocks": 100, "parallel": {"dp": 4, "ep": 4}}],
            experts=experts,
        )["requests", "last"][-1]
        even = run()
        loads.write_text((",".join(["1"] * 16) + "\n") * 4)
        self.assertEqual(run(load="file", file=str(loads)), even)
        loads.write_text(
            (",".join(["1"] * 16) + "\n") * 2 + (",".join(["3"] * 4 + ["1"] * 12) + "\n") * 2
        )  # half of the layers: 2 times the mean
        self.assertAlmostEqual(run(load="file", file=str(loads)) / even, 1.5, delta=0.05)
        loads.write_text("1,2\n" * 4)
        self.refuse(
            "there are 2 shares",
            "16 shares: one for each expert",
            model=model,
            step=profile,
            instances=[{"kv-blocks": 100, "parallel": {"dp": 4, "ep": 4}}],
            experts={"load": "file", "file": str(loads)},
        )

    def test_warnings_of_tables_are_those_of_all_ranks(self):
        """Two of three instances get long prompts, on other ranks: the warning names the largest size of all, on any number of ranks."""
        (self.folder / "batches.csv").write_text("prompt,batch,prompt_ms,token_ms\n100,1,10,5\n200,1,20,6\n")
        rows = ["arrival,prompt,output"] + ["0 s,150,3", "0 s,450,3", "0 s,600,3"]
        (self.folder / "rows.csv").write_text("\n".join(rows) + "\n")
        config = self.config(
            requests={"file": str(self.folder / "rows.csv")},
            step={"model": "batches", "tables": str(self.folder)},
            instances=[{"count": 3, "kv-blocks": 100}],
        )
        told = []
        for ranks in (0, 2, 3):
            outcome = harness.orrery(
                "run", config, f"--output={self.folder / 'w.h5'}", "--quiet", "--force", ranks=ranks
            )
            self.assertEqual(outcome.code, 0, outcome.err)
            told.append([line for line in outcome.err.splitlines() if "batches.csv ends at 200" in line])
        self.assertTrue(any("prompts have sizes of 600" in line for line in told[0]), told[0])
        self.assertEqual(told[1:], told[:1] * 2)

    def refuse(self, *parts, arguments=(), **serving):
        outcome = harness.orrery("run", self.config(**serving), f"--output={self.folder / 'none.h5'}", *arguments)
        self.assertEqual(outcome.code, 3, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)

    def batches(self):
        """Returns a folder with two measured batches."""
        folder = self.folder / "tables"
        folder.mkdir(exist_ok=True)
        (folder / "batches.csv").write_text("prompt,batch,prompt_ms,token_ms\n100,1,10,5\n200,1,20,6\n")
        return folder

    def test_batches_take_what_they_took(self):
        """One request of a measured size, one between two of them, and two requests, whose time is that of one in proportion."""
        folder = self.batches()
        with open(folder / "batches.csv", "a") as file:
            file.write("100,2,25,7\n")
        for prompt, count, ttft, tpot in ((100, 1, 10, 5), (150, 1, 15, 5.5), (100, 2, 25, 7), (200, 2, 50, 8.4)):
            (self.folder / "rows.csv").write_text("arrival,prompt,output\n" + f"0 s,{prompt},3\n" * count)
            found = self.run_steps(
                requests={"file": str(self.folder / "rows.csv")},
                scheduler={"ahead": False, "max-tokens": 1000},
                router={"dispatch": "0 us", "report": "0 us"},
                step={"model": "batches", "tables": str(folder)},
                instances=[{"kv-blocks": 100}],
            )
            self.assertAlmostEqual(float(found["metrics"]["tpot_mean"]) / 1e9, tpot, delta=0.01 * tpot)
            self.assertAlmostEqual(float(found["metrics"]["ttft_mean"]) / 1e9, ttft, delta=0.001 * ttft)

    def test_a_slow_host_launches_layer_by_layer(self):
        """Eight layers, the embedding and the output layer of 1 ms of the host make steps of 10 ms, where the NPUs need less; with 1 ns
        they change nothing."""
        system = [
            "--set=system.network.dimensions=[{shape: Switch, size: 1, bandwidth: 1 GB/s, latency: 1 us}]",
            "--set=system.compute.model=roofline",
            "--set=system.compute.peak=989 TFLOPS",
            "--set=system.compute.local-memory.bandwidth=3350 GB/s",
        ]
        tpot = {}
        for layer in ("0 us", "1 ns", "1 ms"):
            config = self.config(
                model={"layers": 8, "hidden": 1024, "heads": 8, "sequence": 1024, "vocabulary": 1000},
                step={"model": "system"},
                host={"layer": layer},
                requests={"count": 1, "prompt": 10, "output": 5},
            )
            path = self.folder / "host.h5"
            outcome = harness.orrery("run", config, *system, f"--output={path}", "--quiet", "--force")
            self.assertEqual(outcome.code, 0, outcome.err)
            with h5py.File(path) as results:
                tpot[layer] = int(results["serving"].attrs["tpot_mean"])
        self.assertEqual(tpot["1 ms"], 10 * 10**9)
        self.assertEqual(tpot["1 ns"], tpot["0 us"])
        self.assertLess(tpot["0 us"], 10**9)

    def test_refusals(self):
        """Each contradiction ends with exit code 3 and a message that says what was found."""
        two = [{"count": 2, "kv-blocks": 100}]
        self.refuse(
            "serving.router.dispatch",
            "looks at several instances",
            instances=two,
            router={"policy": "least-tokens", "dispatch": "0 ns"},
        )
        self.refuse("none with the role decode", instances=[{"role": "prefill", "kv-blocks": 100}])
        self.refuse("needs", "KV blocks, instance instance.0 has 3", instances=[{"kv-blocks": 3}])
        self.refuse("exceed max-length 50", scheduler={"max-length": 50})
        self.refuse("neither ttft nor tpot", slo={"share": 0.5})
        self.refuse("serving.measure.from", "the last request arrives", measure={"from": "900 s"})
        self.refuse("a run without folding", arguments=["--fold"])
        self.refuse("it is missing, and step.model is profile", step={"model": "profile"})
        self.refuse(
            "leave no KV blocks", memory="10 GB", weights=20 * 10**9, instances=[{}], **{"kv-bytes-per-token": 1000}
        )
        self.refuse(
            "the 64 heads",
            model={"layers": 2, "hidden": 512, "heads": 64, "sequence": 1},
            instances=[{"parallel": {"tp": 7}}],
        )
        self.refuse(
            "the model is dense",
            model={"layers": 2, "hidden": 512, "heads": 8, "sequence": 1},
            instances=[{"kv-blocks": 100, "parallel": {"ep": 2}}],
        )
        self.refuse(
            "a divisor of the 2 NPUs",
            model={"layers": 2, "hidden": 512, "heads": 8, "sequence": 1, "experts": 8, "top-k": 2},
            instances=[{"kv-blocks": 100, "parallel": {"tp": 2, "ep": 4}}],
        )
        self.refuse("it is no file", requests={"file": "nowhere.csv"})
        self.refuse(
            "blocks of 16 and of 32 tokens",
            instances=[
                {"role": "prefill", "kv-blocks": 100},
                {"role": "decode", "kv-blocks": 100, "scheduler": {"block": 32}},
            ],
        )
        self.refuse("a run without checkpoints", arguments=[f"--checkpoint={self.folder / 'c'}"])
        self.refuse(
            "one run",
            arguments=[
                "--set=perturbation.repetitions=3",
                "--set=system.network.dimensions=[{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]",
            ],
        )
        self.refuse(
            "a divisor of the 8 experts",
            model={"layers": 2, "hidden": 512, "heads": 6, "sequence": 1, "experts": 8, "top-k": 2},
            instances=[{"kv-blocks": 100, "parallel": {"dp": 3, "ep": 3}}],
        )
        self.refuse("there is neither batches.csv", step={"model": "batches", "tables": str(self.folder)})
        self.refuse(
            "a size of 100000, and its table ends at 200",
            requests={"count": 1, "prompt": 100000, "output": 2},
            instances=[{"kv-blocks": 10000}],
            scheduler={"max-tokens": 200000},
            step={"model": "batches", "tables": str(self.batches())},
        )
        (self.folder / "zero.csv").write_text("arrival,prompt,output\n0 s,5,0\n")
        self.refuse("zero.csv:2", "an output of 0", requests={"file": str(self.folder / "zero.csv")})

    def test_keys_without_effect_are_named(self):
        """Keys that the step model, the arrivals or the instances do not use give one warning for each reason."""
        config = self.config(
            step={**LINEAR, "skew": 0.1},
            host={"step": "1 ms"},
            transfer={"latency": "1 ms"},
            requests={**DRAWN, "count": 5, "users": 3},
            instances=[{"kv-blocks": 100, "reserve": "1 GiB"}],
        )
        outcome = harness.orrery("run", config, f"--output={self.folder / 'idle.h5'}", "--quiet")
        self.assertEqual(outcome.code, 0, outcome.err)
        for text in (
            "serving.step.skew has no effect without serving.step.model: profile",
            "serving.host.step has no effect without serving.step.model: system, profile, operators or batches",
            "serving.transfer.latency has no effect without serving.instances.role: decode",
            "serving.requests.users has no effect without serving.requests.arrivals: closed",
            "serving.instances.0.reserve has no effect with serving.instances.kv-blocks",
        ):
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
