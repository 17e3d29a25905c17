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

    def test_cubes(self):
        """Cubes 0 and 2 are free, cube 1 is not: a job of two cubes starts where circuits join them, and `switching-time` later; elsewhere it waits
        for neighbours. A job that fits into a cube pays nothing, and takes only a block of it."""

        def job(arrival, length, shape):
            return {"arrival": f"{arrival} s", "length": f"{length} s", "shape": shape}

        jobs = [
            job(0, 10, [4, 4, 4]),
            job(0, 100, [4, 4, 4]),
            job(20, 30, [8, 4, 4]),
            job(20, 30, [4, 2, 4]),
            job(21, 5, [5, 4, 4]),
        ]
        section = {"torus": [12, 4, 4], "cubes": [4, 4, 4], "placement": "torus", "rotate": True}
        joined = self.tables(
            {"cluster": section | {"circuits": True, "switching-time": "2 s", "jobs": jobs, "admission": "fifo"}}
        )
        seconds = 10**9
        self.assertEqual(joined["jobs/start"], [0, 0, 20 * seconds, 52 * seconds, 82 * seconds])
        self.assertEqual(joined["jobs/end"], [10 * seconds, 100 * seconds, 52 * seconds, 82 * seconds, 89 * seconds])
        of_job = {}
        for number, npu in zip(joined["places/job"], joined["places/npu"]):
            of_job.setdefault(number, []).append(npu)
        self.assertEqual(of_job[2][:8], [0, 1, 2, 3, 8, 9, 10, 11])  # cubes 0 and 2, x first
        self.assertEqual(len(of_job[3]), 32)
        self.assertEqual(len(of_job[4]), 128)  # 80 NPUs of two whole cubes
        apart = self.tables({"cluster": section | {"jobs": jobs, "admission": "fifo"}})
        self.assertEqual(apart["jobs/start"][2], 100 * seconds)
        self.assertEqual(apart["jobs/end"][2], 130 * seconds)

    def test_power_of_classes_and_hours(self):
        """Jobs draw the power of their class; the cap of the hour holds those back that it does not allow. Energy is that of the NPUs."""
        jobs = [
            {"arrival": "0 s", "npus": 8, "length": "1 h", "power": 100},
            {"arrival": "0 s", "npus": 8, "length": "1 h"},
            {"arrival": "60 s", "npus": 4, "length": "1 h", "power": 50},
        ]
        site = {"power-cap": [["0 h", 1050], ["5 h", 2000]], "running": 200, "idle": 10}
        found = self.tables(
            {"cluster": {"npus": 16, "placement": "first", "jobs": jobs, "admission": "easy", "site": site}}
        )
        hours = 3600 * 10**9
        self.assertEqual(found["jobs/start"], [0, 5 * hours, 60 * 10**9])
        self.assertEqual([round(e) for e in found["jobs/energy"]], [800 * 3600, 1600 * 3600, 200 * 3600])
        idle = 10 * (16 * 6 - 8 - 8 - 4) * 3600
        energy = found["summary/mean"][[m.decode() for m in found["summary/metric"]].index("energy")]
        self.assertAlmostEqual(energy, (800 + 1600 + 200) * 3600 + idle, delta=1)
        self.assertEqual(found["sizes/npus"], [4, 8])
        self.assertEqual(found["sizes/jobs"], [1, 2])
        self.assertEqual(found["sizes/jct_p95"], [3600.0, 6 * 3600.0])
        for cap, text in (
            ([["1 h", 5]], "0 h"),
            ([["0 h", 5], ["0 h", 6]], "after the one before"),
            ([], "a list of 0"),
        ):
            done, _ = self.run_file(
                "cluster", {"cluster": {"npus": 16, "jobs": jobs, "site": site | {"power-cap": cap}}}
            )
            self.assertEqual(done.code, 3, done.err)
            self.assertIn(text, done.err)

    def test_steps_that_repeat(self):
        """The factors of two jobs of one class are means over four runs of all their steps, of which few are simulated where they repeat."""
        steps = 40
        narrow = json.loads(json.dumps(SYSTEM))
        narrow["network"]["dimensions"][1]["oversubscription"] = 8
        jobs = [{"npus": 8, "length": "100 s", "class": "train"}] * 2
        section = {"jobs": jobs, "classes": [{"name": "train", "workload": STEP}], "placement": "first"}
        configuration = shared(**section, **{"sharing-steps": steps}) | {"system": narrow}
        found = self.tables(configuration)
        of_job = {}
        for job, npu in zip(found["places/job"], found["places/npu"]):
            of_job.setdefault(job, []).append(npu)
        placed = [of_job[0], of_job[1]]

        def run_times(starts, names=(0, 1)):
            whole = STEP | {"iterations": steps}
            both = [
                {"name": f"j{k}", "workload": whole, "allocation": placed[k], "start": f"{round(starts[k] * 1e9)} ns"}
                for k in names
            ]
            done, path = self.run_file("run", {"system": narrow, "jobs": both}, "--quiet", name="both.h5")
            self.assertEqual(done.code, 0, done.err)
            with h5py.File(path) as file:
                return [int(time) * 1e-12 for time in file["jobs/run_time"][()]]

        alone = [run_times((0, 0), (k,))[0] / steps for k in (0, 1)]
        factors = [[], []]
        for offset in range(4):
            times = run_times((0, offset / 4 * alone[1]))
            for k in (0, 1):
                factors[k].append(times[k] / (steps * alone[k]))
        self.assertEqual(len(found["sharing/factor"]), 2)
        for k in (0, 1):
            self.assertAlmostEqual(found["sharing/factor"][k], max(1, sum(factors[k]) / 4), places=9)

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

    def test_fragmentation_is_named(self):
        """NPUs 0 and 2 are free, but a job of two needs neighbours: a warning says for how much of the time nobody could place it."""
        jobs = [{"arrival": "0 s", "length": f"{length} s"} for length in (1, 100, 1, 100)]
        jobs.append({"arrival": "2 s", "length": "1 s", "npus": 2})
        section = {"npus": 4, "placement": "contiguous", "jobs": jobs}
        done, _ = self.run_file("cluster", {"cluster": section})
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("the first of the queue could never be placed for 97 % of the time: fragmentation", done.err)
        done, _ = self.run_file(
            "cluster", {"cluster": section, "system": SYSTEM, "workload": {"model": MODEL, "parallel": {"dp": 16}}}
        )
        self.assertEqual(done.code, 3, done.err)
        self.assertIn("workload, jobs and cluster exclude each other", done.err)

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
