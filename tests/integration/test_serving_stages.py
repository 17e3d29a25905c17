#!/usr/bin/python3
"""Serving with pipelines, with transfers by layers, and with steps whose collectives are messages of the simulated network."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import harness  # noqa: E402

MS = 10**9
US = 10**6
MODEL = {"layers": 8, "hidden": 4096, "heads": 32, "kv-heads": 8, "ffn": 14336, "vocabulary": 32000, "sequence": 4096}
GB_PER_S = 100
NETWORK = {
    "model": "congestion-aware",
    "dimensions": [{"shape": "Switch", "size": 8, "bandwidth": f"{GB_PER_S} GB/s", "latency": "1 us"}],
}
GPU = {"model": "products", "processor": "h100", "peak": "989 TFLOPS"}
TABLES = ("requests", "instances", "steps")


class ServingStages(harness.Folder):
    def config(self, system=None, jobs=None, **serving):
        all_of = {
            "serving": {
                "requests": {"arrivals": "constant", "rate": 1000, "count": 1, "prompt": 256, "output": 11},
                "router": {"dispatch": "1 us", "report": "1 us"},
                "instances": [{"kv-blocks": 4000}],
                "step": {"model": "linear", "linear": {"base": "12 ms"}},
                "record": {"steps": True},
                **serving,
            },
        }
        if system:
            all_of["system"] = system
        if jobs:
            all_of["jobs"] = jobs
        path = self.folder / "serving.yaml"
        path.write_text(json.dumps(all_of))
        return path

    def run_serving(self, config, ranks=0):
        path = self.folder / f"on{ranks}.h5"
        outcome = harness.orrery("run", config, f"--output={path}", "--quiet", "--force", ranks=ranks)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.warnings = outcome.err
        with h5py.File(path) as results:
            return {name: values[:].tolist() for group in TABLES for name, values in results[group].items()}

    def instances(self, pp, **more):
        return [{"kv-blocks": 4000, "parallel": {"pp": pp}, **more}]

    def test_one_request_passes_all_stages(self):
        """A request alone has no other step to overlap with: its tokens come every 12 ms, whatever the number of stages."""
        for pp in (1, 2, 3):
            found = self.run_serving(self.config(instances=self.instances(pp)))
            self.assertEqual(found["last"][0] - found["first"][0], 10 * 12 * MS, pp)

    def test_requests_in_several_steps_overlap(self):
        """Four requests, of which a step prefills one, keep four stages busy: each has its tokens every 12 ms, and four steps overlap."""
        requests = {"arrivals": "constant", "rate": 1e6, "count": 4, "prompt": 256, "output": 41}
        scheduler = {"max-tokens": 256, "ahead": False, "prefix-cache": False}
        found = self.run_serving(self.config(requests=requests, instances=self.instances(4, scheduler=scheduler)))
        for i in range(4):
            self.assertEqual(found["last"][i] - found["first"][i], 40 * 12 * MS, i)
        self.assertEqual(sorted(found["first"]), [(12 + 3 * i) * MS + min(found["start"]) for i in range(4)])
        self.assertEqual(found["busy_time"][0], max(found["end"]) - min(found["start"]))

    def test_activations_pass_between_stages(self):
        """With a model each of two hops of a decode takes a latency and one row of 4096 values of two bytes, padded to graphs of 8 rows."""
        for sizes, rows in (("none", 1), ([8], 8)):
            step = {"model": "linear", "linear": {"base": "12 ms"}, "graph-sizes": sizes}
            step["ring"] = {"bandwidth": "1 GB/s", "latency": "3 us"}
            found = self.run_serving(self.config(model=MODEL, step=step, instances=self.instances(3)))
            hop = 3 * US + rows * 4096 * 2 * 1000
            self.assertEqual(found["last"][0] - found["first"][0], 10 * (12 * MS + 2 * hop))

    def test_a_stage_has_its_layers_in_memory(self):
        """Four stages of two layers leave room for about four times as many blocks of the memory that weights do not take."""
        blocks = []
        for pp in (1, 4):
            found = self.run_serving(
                self.config(model=MODEL, memory="80 GiB", weights=1, instances=[{"parallel": {"pp": pp}}])
            )
            blocks.append(found["blocks"][0])
        self.assertAlmostEqual(blocks[1] / blocks[0], 4, delta=0.01)

    def disaggregated(self, **more):
        transfer = {"bandwidth": "1 GB/s", "latency": "5 us", "send": "layers", **more}
        return {
            "model": MODEL,
            "kv-bytes-per-token": 131072,
            "transfer": transfer,
            "scheduler": {"max-tokens": 8192},
            "instances": [
                {"name": "p", "role": "prefill", "kv-blocks": 4000},
                {"name": "d", "role": "decode", "kv-blocks": 4000},
            ],
            "requests": {"arrivals": "constant", "rate": 1000, "count": 1, "prompt": 250, "output": 11},
        }

    def test_layers_leave_while_the_prefill_computes(self):
        """Seven of eight layers, 4.096 ms each, are sent while the prefill takes 80 ms, so that only the last one is awaited."""
        step = {"model": "linear", "linear": {"base": "80 ms"}}
        layer, latency = 250 * 131072 * 1000 // 8, 5 * US
        found = self.run_serving(self.config(step=step, **self.disaggregated()))
        second = found["scheduled"][0]
        steps = [(s, e) for s, e, i in zip(found["start"], found["end"], found["instance"][-len(found["start"]) :])]
        self.assertEqual(found["transferred"], [250])
        decode_begins = sorted(s for s, _ in steps)[1]
        self.assertEqual(decode_begins, found["first"][0] + layer + latency)
        whole = self.run_serving(self.config(step=step, **self.disaggregated(send="whole")))
        self.assertEqual(
            sorted(whole["start"])[1], whole["first"][0] + 2 * US + 8 * layer + latency, "after the report and dispatch"
        )
        self.assertGreater(second, 0)

    def test_layers_that_the_network_holds_up(self):
        """If a layer takes longer than the prefill computes it, they follow each other: the ports are busy from the first layer on."""
        step = {"model": "linear", "linear": {"base": "8 ms"}}
        layer, latency = 250 * 131072 * 1000 // 8, 5 * US
        found = self.run_serving(self.config(step=step, **self.disaggregated()))
        begin = sorted(found["start"])
        self.assertEqual(begin[1], begin[0] + MS + 8 * layer + latency)

    def test_one_answer(self):
        """Pipelines, transfers by layers in each network, and steps over links have one answer on any number of ranks."""
        requests = {
            "rate": 300,
            "count": 12,
            "prompt": {"distribution": "uniform", "least": 100, "most": 900},
            "output": 6,
        }
        parallel = {"parallel": {"tp": 1, "pp": 2}}
        instances = [
            {"name": "p", "count": 2, "role": "prefill", "kv-blocks": 4000, **parallel},
            {"name": "d", "count": 2, "role": "decode", "kv-blocks": 4000, **parallel},
        ]
        common = {"model": MODEL, "requests": requests, "instances": instances}
        for network in ("congestion-unaware", "congestion-aware", "packet"):
            system = {"network": {**NETWORK, "model": network}}
            for how in ("transfer", "ports", "step"):
                if how == "step" and network == "congestion-unaware":
                    continue
                more = {"transfer": {"send": "layers", "network": "ports" if how == "ports" else "simulated"}}
                if how == "step":
                    more = {
                        "step": {"model": "linear", "linear": {"base": "2 ms", "token": "5 us"}, "network": "simulated"}
                    }
                config = self.config(system, **common, **more)
                alone = self.run_serving(config)
                self.assertEqual(sum(alone["transferred"]), sum(alone["prompt"]))
                self.assertEqual(sum(alone["blocks_in_use_at_end"]), 0)
                for ranks in (2, 3):
                    self.assertEqual(self.run_serving(config, ranks), alone, f"{network}, {how}, {ranks} ranks")

    def on_links(self, network, parallel, **more):
        instances = [{"kv-blocks": 4000, "parallel": parallel}]
        step = {"model": "system", "network": network, **more.pop("step", {})}
        system = {"network": NETWORK, "compute": {**GPU, "local-memory": {"bandwidth": "3350 GB/s", "size": "80 GiB"}}}
        return self.config(system, model=MODEL, instances=instances, step=step, **more)

    def test_steps_alone_take_as_long_as_in_closed_form(self):
        """Collectives that meet no other traffic take over links what the collective engine says, as do activations."""
        for parallel in ({"tp": 4}, {"tp": 2, "pp": 2}, {"pp": 3}):
            closed = self.run_serving(self.on_links("closed", parallel))
            links = self.run_serving(self.on_links("simulated", parallel))
            for name in ("first", "last", "steps"):
                self.assertAlmostEqual(links[name][0] / closed[name][0], 1, delta=0.01, msg=f"{parallel} {name}")

    def test_steps_meet_other_traffic(self):
        """A job that sends over the links of an instance makes its steps longer, and is made longer by them."""
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "python"))
        from orrery import traces

        job = traces.Workload(2)
        job.npus[0].send("gradients", 1, 10**9)
        job.npus[1].receive("gradients", 0, 10**9)
        job.write(self.folder / "training")
        ring = {"shape": "Ring", "size": 8, "bandwidth": "10 GB/s", "latency": "1 us"}
        system = {
            "network": {**NETWORK, "dimensions": [ring]},
            "compute": {**GPU, "local-memory": {"bandwidth": "3350 GB/s"}},
        }
        common = {
            "model": MODEL,
            "instances": [{"kv-blocks": 4000, "parallel": {"tp": 4}, "allocation": [0, 2, 4, 6]}],
            "step": {"model": "system", "network": "simulated"},
        }
        jobs = [{"name": "training", "allocation": [1, 3], "workload": {"traces": str(self.folder / "training")}}]
        alone = self.run_serving(self.config(system, **common))
        shared = self.run_serving(self.config(system, jobs, **common))
        self.assertGreater(shared["last"][0], 1.05 * alone["last"][0])

    def refuse(self, *parts, **more):
        outcome = harness.orrery("run", self.config(**more), f"--output={self.folder / 'none.h5'}")
        self.assertEqual(outcome.code, 3, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)

    def test_refusals(self):
        """What cannot be simulated is refused with the key of its entry."""
        two = [{"kv-blocks": 400}, {"kv-blocks": 400, "parallel": {"pp": 9}}]
        self.refuse("serving.instances.1.parallel.pp", "found 9", "at most the 8 layers", model=MODEL, instances=two)
        two[1]["parallel"] = {"tp": 3}
        self.refuse(
            "serving.instances.1.parallel.tp", "found 3", "a divisor of the 32 heads", model=MODEL, instances=two
        )
        self.refuse(
            "serving.transfer.send",
            "found layers, and no serving.model",
            **{k: v for k, v in self.disaggregated().items() if k != "model"},
        )
        over = {"model": "linear", "linear": {"base": "1 ms"}, "network": "simulated"}
        self.refuse("serving.step.network", "found simulated, and no system", step=over)
        unaware = {"network": {"dimensions": NETWORK["dimensions"]}}
        self.refuse(
            "serving.step.network", "found simulated in the network congestion-unaware", system=unaware, step=over
        )
        self.refuse(
            "serving.router.dispatch",
            "found 0",
            "the steps are in the simulated network",
            system={"network": NETWORK},
            step=over,
            router={"dispatch": "0 ps"},
        )


if __name__ == "__main__":
    harness.main()
