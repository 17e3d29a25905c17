#!/usr/bin/python3
"""Jobs of `orrery cluster` whose steps are simulated (docs/cluster-time.md), hosts that fail, and reports of campaigns and clusters."""
import json
import pathlib
import sys

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

SYSTEM = {
    "network": {
        "model": "congestion-aware",
        "dimensions": [
            {"shape": "FullyConnected", "size": 4, "bandwidth": "450 GB/s", "latency": "500 ns"},
            {"shape": "Switch", "size": 4, "bandwidth": "50 GB/s", "latency": "1 us"},
        ],
    },
    "collectives": {"chunks": 2},
    "compute": {"roofline": True, "peak": "989 TFLOPS", "local-memory": {"bandwidth": "3350 GB/s"}},
}
MODEL = {"layers": 1, "hidden": 1024, "heads": 8, "sequence": 512}
STEP = {"model": MODEL, "parallel": {"dp": 8}}


def shared(**changes):
    """Returns 16 NPUs in hosts of 4 with jobs of 8 NPUs that the placement spreads."""
    section = {
        "leaf": 4,
        "placement": "random",
        "sharing": "simulate",
        "sharing-steps": 3,
        "classes": [{"name": "train", "workload": STEP, "rate": "600 per day", "steps": {"exponential": 300000}}],
        "jobs": 6,
    }
    return {
        "system": SYSTEM,
        "cluster": {key: value for key, value in (section | changes).items() if value is not None},
    }


class Steps(harness.Folder):
    def run_file(self, command, configuration, *arguments, ranks=0, name="found.h5"):
        (self.folder / "config.yaml").write_text(json.dumps(configuration))
        done = harness.orrery(
            command, self.folder / "config.yaml", "--output", self.folder / name, "--force", *arguments, ranks=ranks
        )
        return done, self.folder / name

    def tables(self, configuration, *arguments, **named):
        done, path = self.run_file("cluster", configuration, *arguments, **named)
        self.assertEqual(done.code, 0, done.err)
        found = {}
        with h5py.File(path) as file:
            file["cluster"].visititems(
                lambda name, item: found.update({name: item[()].tolist()}) if isinstance(item, h5py.Dataset) else None
            )
        return found

    def step_of(self, workload, npus):
        """Returns the ps of a step of a job on these NPUs of the system."""
        job = {"name": "a", "allocation": npus, "workload": workload}
        done, path = self.run_file("run", {"system": SYSTEM, "jobs": [job]}, "--quiet", name="run.h5")
        self.assertEqual(done.code, 0, done.err)
        with h5py.File(path) as file:
            return int(file["jobs/run_time"][0])

    def test_a_step_is_that_of_a_run(self):
        """One job at time 0 with one step, packed, ends when a run of its workload does, rounded up to a nanosecond. So do 40 steps, each 40
        times as late. Other sizes of the class have other replicas."""
        for steps, npus in ((1, 8), (40, 8), (1, 4)):
            found = self.tables(
                shared(
                    sharing="none",
                    placement="packed",
                    jobs=1,
                    classes=[{"name": "train", "workload": STEP, "rate": "1 per day", "steps": steps, "npus": npus}],
                )
            )
            step = self.step_of({"model": MODEL, "parallel": {"dp": npus}}, list(range(npus)))
            self.assertEqual(found["jobs/end"][0] - found["jobs/start"][0], steps * -(-step // 1000))

    def test_sharing_is_simulated(self):
        """Two jobs on drawn NPUs of all hosts share the core of an oversubscribed switch, and take longer than alone. On hosts of their own,
        whose switch is not oversubscribed, they take as long as alone. The tables are the same on any number of ranks.
        """
        jobs = [
            {"name": "a", "npus": 8, "length": "100 s", "class": "train"},
            {"name": "b", "npus": 8, "length": "100 s", "class": "train"},
        ]
        classes = [{"name": "train", "workload": STEP}]
        apart = self.tables(shared(jobs=jobs, classes=classes, placement="packed"))
        self.assertEqual(apart["jobs/end"], [100 * 10**9] * 2)
        self.assertEqual(apart["sharing/factor"], [])
        narrow = json.loads(json.dumps(SYSTEM))
        narrow["network"]["dimensions"][1]["oversubscription"] = 2
        found = self.tables(shared(jobs=jobs, classes=classes, seed=3) | {"system": narrow})
        self.assertEqual(len(found["sharing/factor"]), 2)
        self.assertTrue(all(factor >= 1 for factor in found["sharing/factor"]), found["sharing/factor"])
        self.assertGreater(max(found["sharing/factor"]), 1.001)
        mix = shared() | {"system": narrow}
        alone = self.tables(mix)
        for ranks in harness.cases((2,), (2, 3), (2, 3, 8)):
            self.assertEqual(self.tables(mix, ranks=ranks, name=f"on{ranks}.h5"), alone, f"{ranks} ranks")

    def test_hosts_fail(self):
        """Hosts that fail stop jobs, which all end. Free, busy and failed NPUs are never more than there are; results are the same on 3 ranks."""
        section = {
            "npus": 64,
            "leaf": 16,
            "npus-per-host": 8,
            "placement": "packed",
            "admission": "easy",
            "jobs": 300,
            "checkpoint-interval": "10 min",
            "restart": "1 min",
            "hosts": {"mtbf": {"exponential": "2 d"}, "repair": {"exponential": "2 h"}},
            "replications": 3,
            "classes": [{"name": "a", "rate": "100 per day", "npus": [4, 8, 16], "length": {"exponential": "1 h"}}],
        }
        found = self.tables({"cluster": section})
        self.assertGreater(min(found["replications/host_failures"]), 0)
        self.assertGreater(sum(found["replications/stops"]), 0)
        self.assertTrue(all(busy + free <= 64 for busy, free in zip(found["usage/busy"], found["usage/free"])))
        self.assertLess(
            min(found["usage/free"][i] + found["usage/busy"][i] for i in range(len(found["usage/free"]))), 64
        )
        self.assertEqual(self.tables({"cluster": section}, ranks=3, name="on3.h5"), found)

    def test_refusals(self):
        """Clusters whose steps cannot be simulated, and hosts and ramps without what they need, are refused with exit code 3."""
        with_workload = [{"name": "train", "workload": STEP, "rate": "1 per day", "steps": 10}]
        for configuration, text in (
            (shared(classes=[{"rate": "1 per day", "length": "1 h"}]), "has no workload"),
            (shared(classes=with_workload, placement="none"), "simulate needs NPUs for each job"),
            (
                shared(
                    classes=[
                        with_workload[0] | {"npus": 3, "workload": {"model": MODEL, "parallel": {"tp": 2, "dp": 4}}}
                    ]
                ),
                "cluster.classes.0.npus",
            ),
            (
                shared(classes=[with_workload[0] | {"workload": {"model": "no-such-model"}}]),
                "cluster.classes.0.workload",
            ),
            (shared(classes=with_workload, npus=8), "the system has 16"),
            ({"cluster": shared(classes=with_workload)["cluster"]}, "system"),
            (
                shared(classes=with_workload, placement="none", sharing="none", hosts={"mtbf": "1 d", "repair": "1 h"}),
                "cluster.hosts",
            ),
            (
                shared(classes=with_workload, site={"ramp": 5, "running": 100, "idle": 100}),
                "site.running above site.idle",
            ),
        ):
            with self.subTest(text):
                done, _ = self.run_file("cluster", configuration)
                self.assertEqual(done.code, 3, done.err)
                self.assertIn(text, done.err)
        unaware = shared(classes=with_workload)
        unaware["system"] = SYSTEM | {"network": SYSTEM["network"] | {"model": "congestion-unaware"}}
        done, _ = self.run_file("cluster", unaware)
        self.assertEqual(done.code, 3, done.err)
        self.assertIn("in congestion-unaware jobs never slow each other", done.err)

    def test_elastic_speeds_are_simulated(self):
        """A job that loses a replica goes on at the speed that a step with fewer replicas has: with the batch in more micro-batches about 3/4 of
        it. Hosts that do not have the NPUs of the workload are refused."""
        job = {"system": SYSTEM, "workload": {"model": MODEL, "parallel": {"dp": 16, "micro-batches": 3}}}
        campaign = {
            "duration": "20 d",
            "hosts": {"npus": 4},
            "checkpoint": [{"interval": "1 h", "stall": "1 s", "durable": "1 s", "read": "1 s"}],
            "elastic": {"hosts-per-replica": 1},
            "failures": [{"per": "host", "rate": "0.2 per day"}],
            "repair": {"auto": "12 h"},
            "replications": 4,
        }
        done, _ = self.run_file("campaign", job | {"campaign": campaign})
        self.assertEqual(done.code, 3, done.err)
        self.assertIn("a replica of 1 hosts has 4 NPUs, but the workload has 16 replicas of 1", done.err)
        job["workload"]["parallel"] = {"tp": 4, "dp": 4, "micro-batches": 3}
        job["system"] = SYSTEM | {
            "collectives": {"all-reduce": ["direct", "ring"]}
        }  # which three replicas can use, too
        slow = {}
        for batch in ("constant", "scaled"):
            done, path = self.run_file(
                "campaign",
                job | {"campaign": campaign | {"elastic": {"hosts-per-replica": 1, "least": 3, "batch": batch}}},
            )
            self.assertEqual(done.code, 0, done.err)
            with h5py.File(path) as file:
                slow[batch] = sum(file["campaign/replications/slow"][()].tolist())
        self.assertGreater(slow["constant"], 0)
        self.assertGreater(slow["scaled"], 0)
        self.assertNotEqual(slow["constant"], slow["scaled"])
        done, _ = self.run_file(
            "campaign", job | {"campaign": campaign | {"hosts": {"npus": 4, "active": 3}, "elastic": {}}}
        )
        self.assertEqual(done.code, 3, done.err)
        self.assertIn("3 hosts of 4 NPUs have 12, but the workload has 16", done.err)

    def test_reports(self):
        """`orrery report` draws campaigns and clusters, and refuses them beside runs."""
        self.tables(shared(sharing="none", placement="packed", seed=2))
        page = self.folder / "page.html"
        done = harness.run_fresh(["report", self.folder / "found.h5", "--output", page])
        if done.code == 69:
            self.skipTest(done.err)
        self.assertEqual(done.code, 0, done.err)
        text = page.read_text()
        for part in ("Summary of found.h5", "Use and queue", "Jobs on leaves", "Slow-down", "data:image/png;base64,"):
            self.assertIn(part, text)
        campaign = {
            "campaign": {
                "duration": "20 d",
                "step": {"time": "5 s"},
                "hosts": {"active": 4},
                "checkpoint": [{"interval": "100 steps", "stall": "1 s"}],
                "failures": [{"per": "host", "rate": "0.2 per day"}],
                "replications": 4,
            }
        }
        done, path = self.run_file("campaign", campaign, "--optimise", "interval", name="weeks.h5")
        self.assertEqual(done.code, 0, done.err)
        done = harness.run_fresh(["report", path, "--output", page, "--force"])
        self.assertEqual(done.code, 0, done.err)
        for part in ("Wall time", "Costs by cause", "Timeline", "Best interval"):
            self.assertIn(part, page.read_text())
        self.step_of(STEP, list(range(8)))
        done = harness.run_fresh(["report", path, self.folder / "run.h5", "--output", page, "--force"])
        self.assertEqual(done.code, 3, done.err)
        self.assertIn("found no campaign or cluster beside", done.err)


if __name__ == "__main__":
    harness.main()
