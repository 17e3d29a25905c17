#!/usr/bin/python3
"""Serving in the network of the system: transfers of KV caches meet each other and jobs, and the answer is one on any number of ranks."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import harness  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "python"))
from orrery import traces  # noqa: E402

MS = 10**9
KV = 131072
TOKENS = 2000
GB_PER_S = 10
# Four edge switches with four NPUs each, and one link up each, of 10 GB/s like all others.
LEAVES = {
    "shape": "FatTree",
    "ports": 8,
    "size": 16,
    "bandwidth": f"{GB_PER_S} GB/s",
    "latency": "1 us",
    "oversubscription": 4,
}
ALONE = TOKENS * KV / GB_PER_S / 1e6  # ms of a transfer that shares nothing


class ServingNetwork(harness.Folder):
    def config(self, network=None, jobs=None, system=None, **serving):
        """Returns the file of a configuration: two prefill instances on NPUs 0 and 1, below one switch, and two decode instances elsewhere."""
        network = network or {
            "model": "congestion-aware",
            "switching": "cut-through",
            "packet-size": "2 MiB",
            "dimensions": [LEAVES],
        }
        instances = [
            {
                "name": "p",
                "count": 2,
                "role": "prefill",
                "kv-blocks": 4000,
                "allocation": [0, 1],
                "scheduler": {"max-tokens": 8192},
            },
            {"name": "d", "count": 2, "role": "decode", "kv-blocks": 4000, "allocation": [4, 8]},
        ]
        all_of = {
            "system": {"network": network, **(system or {})},
            "serving": {
                "kv-bytes-per-token": KV,
                "requests": {"arrivals": "constant", "rate": 1e6, "count": 2, "prompt": TOKENS, "output": 5},
                "instances": instances,
                "transfer": {"network": "simulated"},
                "step": {"model": "linear", "linear": {"base": "6 ms", "token": "5 us"}},
                "record": {"steps": True},
                **serving,
            },
        }
        if jobs:
            all_of["jobs"] = jobs
        path = self.folder / "serving.yaml"
        path.write_text(json.dumps(all_of))
        return path

    def training(self, size=10**9):
        """Returns a job on NPUs 2 and 12, of which the first one sends one message to the other."""
        job = traces.Workload(2)
        job.npus[0].send("gradients", 1, size)
        job.npus[1].receive("gradients", 0, size)
        job.write(self.folder / "training")
        return [{"name": "training", "allocation": [2, 12], "workload": {"traces": str(self.folder / "training")}}]

    def run_serving(self, config, ranks=0, **more):
        path = self.folder / f"on{ranks}.h5"
        outcome = harness.orrery("run", config, f"--output={path}", "--quiet", "--force", ranks=ranks, **more)
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(path) as results:
            found = {
                name: values[:].tolist()
                for group in ("requests", "instances", "steps")
                for name, values in results[group].items()
            }
            found["jobs"] = {name: int(job.attrs["run_time"]) for name, job in results.get("jobs", {}).items()}
        return found

    def check_times(self, found, times):
        for time in found["transfer_time"]:
            self.assertAlmostEqual(time / MS, times, delta=0.02 * times)

    def test_transfers_share_an_uplink_with_a_training_job(self):
        """One transfer takes the bytes over the link; two take twice as long, and two beside a training job three times, as max-min sharing says.
        The job, which would need 100 ms alone, is slower by what the transfers took."""
        self.check_times(
            self.run_serving(
                self.config(requests={"arrivals": "constant", "rate": 1e6, "count": 1, "prompt": TOKENS, "output": 5})
            ),
            ALONE,
        )
        self.check_times(self.run_serving(self.config()), 2 * ALONE)
        shared = self.run_serving(self.config(jobs=self.training()))
        self.check_times(shared, 3 * ALONE)
        self.assertAlmostEqual(shared["jobs"]["training"] / MS, 100 + 2 * ALONE, delta=1)

    def test_one_answer(self):
        """In each network, with several NPUs for an instance and a job beside them, the answer is the one of a single process."""
        few = {"rate": 40, "count": 12, "prompt": {"distribution": "uniform", "least": 100, "most": 900}, "output": 6}
        instances = [
            {
                "name": "p",
                "count": 2,
                "role": "prefill",
                "kv-blocks": 4000,
                "parallel": {"tp": 2},
                "allocation": [0, 1, 3, 4],
            },
            {
                "name": "d",
                "count": 2,
                "role": "decode",
                "kv-blocks": 4000,
                "parallel": {"tp": 4},
                "allocation": ["5-11", 13],
            },
        ]
        switches = [
            {"shape": "Switch", "size": 8, "bandwidth": "100 GB/s", "latency": "1 us"},
            {"shape": "Switch", "size": 2, "bandwidth": "10 GB/s", "latency": "2 us"},
        ]
        for model, jobs in (
            ("congestion-unaware", None),
            ("congestion-aware", self.training(10**7)),
            ("packet", None),
        ):
            config = self.config(
                {"model": model, "dimensions": switches},
                jobs,
                requests=few,
                instances=instances,
                router={"policy": "least-tokens"},
                **{"kv-bytes-per-token": 4096},
            )
            alone = self.run_serving(config)
            self.assertEqual(sum(alone["transferred"]), sum(alone["prompt"]), model)
            for ranks in (2, 3):
                self.assertEqual(self.run_serving(config, ranks), alone, f"{model}, {ranks} ranks")

    def test_all_pairs_of_npus_send(self):
        """Two senders and four receivers below one switch: each of two ports carries half of the bytes."""
        instances = [
            {"name": "p", "role": "prefill", "kv-blocks": 4000, "parallel": {"tp": 2}},
            {"name": "d", "role": "decode", "kv-blocks": 4000, "parallel": {"tp": 4}},
        ]
        network = {
            "model": "congestion-aware",
            "switching": "cut-through",
            "dimensions": [{"shape": "Switch", "size": 8, "bandwidth": "10 GB/s", "latency": "1 us"}],
        }
        self.check_times(
            self.run_serving(
                self.config(network, instances=instances, requests={"count": 1, "prompt": TOKENS, "output": 5})
            ),
            ALONE / 2,
        )

    def refuse(self, *parts, **more):
        outcome = harness.orrery("run", self.config(**more), f"--output={self.folder / 'none.h5'}")
        self.assertEqual(outcome.code, 3, outcome.err)
        for part in parts:
            self.assertIn(part, outcome.err)

    def test_refusals(self):
        """Jobs beside serving need links that both use, and lists of NPUs have to fit."""
        jobs = self.training()
        unaware = {"dimensions": [{"shape": "Switch", "size": 16, "bandwidth": "10 GB/s", "latency": "1 us"}]}
        self.refuse("jobs beside serving, which share nothing", jobs=jobs, transfer={"network": "ports"})
        self.refuse("jobs beside serving in the network congestion-unaware", jobs=jobs, network=unaware)
        self.refuse(
            "it lists 2 NPUs",
            "3: 3 instances of 1 NPU",
            instances=[
                {"role": "prefill", "count": 3, "kv-blocks": 4000, "allocation": [0, 1]},
                {"role": "decode", "kv-blocks": 4000},
            ],
        )
        # The product of the second case does not fit into 32 bits.
        for count, tp, wanted in ((5, 4, "5 instances of 4 NPUs"), (65536, 65536, "65536 instances of 65536 NPUs")):
            self.refuse(
                f"'serving.instances.0': found {wanted}; expected at most the 16 NPUs of the system",
                instances=[
                    {"role": "prefill", "count": count, "kv-blocks": 4000, "parallel": {"tp": tp}},
                    {"role": "decode", "kv-blocks": 4000},
                ],
            )
        self.refuse(
            "found NPU 99",
            "NPUs below 16",
            instances=[
                {"role": "prefill", "kv-blocks": 4000, "allocation": [99]},
                {"role": "decode", "kv-blocks": 4000},
            ],
        )
        self.refuse(
            "NPU 2",
            jobs=jobs,
            instances=[
                {"role": "prefill", "kv-blocks": 4000, "allocation": [2]},
                {"role": "decode", "kv-blocks": 4000},
            ],
        )


if __name__ == "__main__":
    harness.main()
