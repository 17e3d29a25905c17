#!/usr/bin/python3
"""`orrery campaign` and `orrery cluster`: one answer on any number of ranks, sums to the nanosecond, and refusals."""
import csv
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402

STATES = ["useful", "lost", "stall", "detect", "wait", "select", "restart", "slow", "pause"]


def campaign(**changes):
    """Returns a job of 16 hosts for 20 days with failures of many kinds; `changes` replace keys of the section."""
    section = {
        "duration": "20 d",
        "step": {"time": "5 s", "tokens": 1000000},
        "hosts": {"active": 16, "npus": 8, "standby": 2, "pool": 2, "group": 4},
        "checkpoint": [
            {"interval": "20 steps", "stall": "1 s", "survives": ["host"]},
            {"interval": "400 steps", "stall": "2 s", "durable": "60 s", "read": "40 s", "keep": 16},
        ],
        "restart": {"start": "3 min", "select": "2 min", "swap": "30 s"},
        "failures": [
            {"name": "gpu", "per": "npu", "rate": "3 per 1000 days", "detect": "10 s"},
            {
                "name": "hang",
                "per": "job",
                "rate": "0.5 per day",
                "symptom": "hang",
                "detect": "10 min",
                "repair": False,
            },
            {"name": "silent", "per": "host", "mtbf": "100 d", "symptom": "silent", "detect": {"exponential": "1 h"}},
            {
                "name": "slow",
                "per": "host",
                "rate": "2 per 100 days",
                "symptom": "slow",
                "speed": 0.7,
                "detect": "30 min",
            },
            {"name": "rack", "per": "group", "mtbf": "50 d"},
            {"name": "young", "per": "host", "mtbf": "40 d", "distribution": {"weibull": 0.7}},
            {
                "name": "maintenance",
                "per": "job",
                "rate": "0 per day",
                "symptom": "pause",
                "notice": True,
                "length": "2 h",
                "at": ["7 d", "14 d"],
            },
        ],
        "bad": {"fraction": 0.1, "factor": 4},
        "repair": {
            "auto": {"exponential": "2 h"},
            "manual": {"exponential": "1 d"},
            "escalate": 0.5,
            "auto-fails": 0.2,
        },
        "replications": 24,
    }
    return {"campaign": {key: value for key, value in (section | changes).items() if value is not None}}


def cluster(**changes):
    """Returns a cluster of 64 NPUs with two classes of jobs."""
    section = {
        "npus": 64,
        "leaf": 16,
        "placement": "packed",
        "admission": "easy",
        "jobs": 800,
        "replications": 5,
        "warm-up": 50,
        "classes": [
            {
                "name": "small",
                "rate": "600 per day",
                "npus": [1, 2, 8],
                "length": {"exponential": "12 min"},
                "overestimate": 2,
            },
            {
                "name": "large",
                "rate": "40 per day",
                "npus": 32,
                "length": {"lognormal": {"mean": "20 min", "median": "10 min"}},
            },
        ],
    }
    return {"cluster": {key: value for key, value in (section | changes).items() if value is not None}}


class Campaigns(harness.Folder):
    def run_file(self, command, configuration, *arguments, ranks=0, name="results.h5"):
        (self.folder / "config.yaml").write_text(json.dumps(configuration))
        done = harness.orrery(
            command, self.folder / "config.yaml", "--output", self.folder / name, "--force", *arguments, ranks=ranks
        )
        return done, self.folder / name

    def tables(self, path, group):
        found = {}
        with h5py.File(path) as file:
            file[group].visititems(
                lambda name, item: found.update({name: item[()].tolist()}) if isinstance(item, h5py.Dataset) else None
            )
        return found

    def check_ranks(self, command, configuration):
        done, path = self.run_file(command, configuration)
        self.assertEqual(done.code, 0, done.err)
        self.assertLessEqual(len(done.out.splitlines()), 20)
        self.assertTrue(all(len(line) <= 80 for line in done.out.splitlines()[:-1]), done.out)
        alone = self.tables(path, command)
        for ranks in harness.cases((3,), (1, 2, 3, 8), (1, 2, 3, 5, 8)):
            done, other = self.run_file(command, configuration, ranks=ranks, name="others.h5")
            self.assertEqual(done.code, 0, done.err)
            self.assertEqual(self.tables(other, command), alone, f"{ranks} ranks")
        return alone

    def refused(self, command, configuration, text, *arguments):
        done, _ = self.run_file(command, configuration, *arguments)
        self.assertEqual(done.code, 3, done.err)
        self.assertIn(text, done.err)

    def test_campaign_has_one_answer(self):
        """A campaign with failures of all symptoms gives the same tables on any number of ranks, and the times of each replication add up to
        its wall time, which is its duration."""
        found = self.check_ranks("campaign", campaign())
        for i, time in enumerate(found["replications/time"]):
            self.assertEqual(sum(found[f"replications/{state}"][i] for state in STATES), time)
            self.assertEqual(time, 20 * 86400 * 10**9)
        for state in ("lost", "stall", "detect", "select", "restart", "slow", "pause"):
            self.assertGreater(sum(found[f"replications/{state}"]), 0, state)
        self.assertEqual(found["timeline/end"][-1], 20 * 86400 * 10**9)
        self.assertEqual(found["timeline/begin"][1:], found["timeline/end"][:-1])

    def test_rows_do_not_depend_on_their_number(self):
        """The first rows of 24 replications are those of 7."""
        many = self.tables(self.run_file("campaign", campaign())[1], "campaign/replications")
        few = self.tables(self.run_file("campaign", campaign(replications=7))[1], "campaign/replications")
        self.assertEqual({name: values[:7] for name, values in many.items()}, few)

    def test_optimise_lists_what_is_as_good(self):
        """--optimise tries intervals and standbys, of which one is the best, and compares the others with it."""
        done, path = self.run_file("campaign", campaign(replications=10), "--optimise", "interval,standby")
        self.assertEqual(done.code, 0, done.err)
        found = self.tables(path, "campaign/optimum")
        for what in (b"interval", b"standby"):
            rows = [i for i, varied in enumerate(found["varied"]) if varied == what]
            self.assertEqual(sum(found["best"][i] for i in rows), 1)
            self.assertTrue(all(found["difference"][i] <= 0 for i in rows))
        self.assertRegex(done.out, r"best interval \d+ steps: ETTR 0\.\d+")
        self.assertRegex(done.out, r"best standby \d+: goodput 0\.\d+")

    def test_accuracy_adds_replications(self):
        """With an accuracy, batches of 64 replications are added until the interval of the ETTR is that narrow."""
        _, path = self.run_file("campaign", campaign(accuracy="0.5 %"))
        summary = self.tables(path, "campaign/summary")
        at = summary["metric"].index(b"ettr")
        self.assertLessEqual(summary["half_width"][at], 0.005)
        self.assertEqual(len(self.tables(path, "campaign/replications")["time"]) % 64, 0)

    def test_recorded_failures(self):
        """A file of failures takes the place of draws: the one of a host in the pool is unseen."""
        (self.folder / "failures.csv").write_text(
            "# recorded\ntime, host, process\n9000 s, 0, gpu\n3 h, 19, gpu\n4 h, job, hang\n"
        )
        done, path = self.run_file(
            "campaign",
            campaign(
                recorded="failures.csv",
                replications=1,
                failures=[
                    {"name": "gpu", "rate": "0 per day"},
                    {"name": "hang", "per": "job", "rate": "0 per day", "symptom": "hang", "repair": False},
                ],
            ),
        )
        self.assertEqual(done.code, 0, done.err)
        found = self.tables(path, "campaign/replications")
        self.assertEqual((found["failures"], found["unseen"]), ([2], [1]))

    def test_times_are_kept(self):
        """The step of a workload is simulated once; --times takes it from the file, and refuses the file of another workload."""
        system = {
            "system": {
                "network": {"dimensions": [{"shape": "Ring", "size": 4, "bandwidth": "100 GB/s", "latency": "1 us"}]},
                "compute": {"model": "roofline", "peak": "300 TFLOPS", "local-memory": {"bandwidth": "2 TB/s"}},
            },
            "workload": {
                "model": {"layers": 2, "hidden": 512, "heads": 8, "sequence": 512, "vocabulary": 32000},
                "parallel": {"dp": 4},
            },
        }
        section = campaign(
            step={},
            hosts={"npus": 2},
            replications=2,
            failures=[
                {"name": "x", "rate": "1 per day"},
                {"name": "slow", "rate": "1 per day", "symptom": "slow", "compute": 0.5, "detect": "1 h"},
            ],
            checkpoint=[{"kind": "peer", "interval": "1 h"}],
        )
        done, path = self.run_file("campaign", system | section)
        self.assertEqual(done.code, 0, done.err)
        self.assertTrue(done.out.startswith("2 hosts of 2 NPUs"), done.out)
        self.assertEqual(
            harness.orrery("run", self.folder / "config.yaml", "--output", self.folder / "run.h5", "--quiet").code, 0
        )
        with h5py.File(self.folder / "run.h5") as run:
            step = run["/metrics/step_time"][()] * 1e-12
        found = self.tables(path, "campaign/times")
        self.assertAlmostEqual(dict(zip(found["time"], found["seconds"]))[b"step"], step, places=8)
        kept = self.folder / "results.times.yaml"
        again, other = self.run_file("campaign", system | section, "--times", kept, name="again.h5")
        self.assertEqual(again.code, 0, again.err)
        self.assertEqual(self.tables(other, "campaign"), self.tables(path, "campaign"))
        large = section["campaign"] | {"hosts": {"npus": 2, "active": 3}}
        self.refused("campaign", system | {"campaign": large}, "the job needs 3 hosts of 2 NPUs, but system has 2")
        system["workload"]["model"]["layers"] = 3
        self.refused(
            "campaign", system | section, "it has no time of 'straggler.1' for this configuration", "--times", kept
        )

    def test_stragglers_of_a_study(self):
        """A campaign whose straggler has a simulated step, on a system that has slow NPUs itself: the straggler's NPUs are slower than they are
        there, as if the run said so, and a study finds the ETTR that the campaign finds."""
        one_host = "perturbation.slow-npus=[{npus: 0-1, compute: %s}]"
        system = {
            "system": {
                "network": {"dimensions": [{"shape": "Ring", "size": 4, "bandwidth": "100 GB/s", "latency": "1 us"}]},
                "compute": {"model": "roofline", "peak": "300 TFLOPS", "local-memory": {"bandwidth": "2 TB/s"}},
            },
            "workload": {
                "model": {"layers": 2, "hidden": 512, "heads": 8, "sequence": 512, "vocabulary": 32000},
                "parallel": {"dp": 4},
            },
            "perturbation": {"slow-npus": [{"npus": "0-1", "compute": 0.8}]},
        }
        section = campaign(
            step={},
            hosts={"npus": 2},
            replications=5,
            checkpoint=[{"interval": "1 h", "stall": "1 s", "read": "10 s"}],
            failures=[{"name": "slow", "rate": "1 per day", "symptom": "slow", "compute": 0.5, "detect": "1 h"}],
        )
        done, path = self.run_file("campaign", system | section)
        self.assertEqual(done.code, 0, done.err)
        kept = re.findall(r": (\S+)  # (\S+)", (self.folder / "results.times.yaml").read_text())
        seconds = {name: float(time) for time, name in kept}
        steps = []
        for speed in (0.8, 0.4):
            run = self.folder / "run.h5"
            self.assertEqual(
                harness.orrery(
                    "run", self.folder / "config.yaml", "--set", one_host % speed, "--output", run, "--force", "--quiet"
                ).code,
                0,
            )
            with h5py.File(run) as file:
                steps.append(file["/metrics/step_time"][()] * 1e-12)
        self.assertLess(steps[0], steps[1])
        self.assertEqual(set(seconds), {"step", "straggler.0"})
        self.assertAlmostEqual(seconds["step"], steps[0], places=12)
        self.assertAlmostEqual(seconds["straggler.0"], steps[1], places=12)
        summary = self.tables(path, "campaign/summary")
        (self.folder / "study.yaml").write_text(
            json.dumps(
                {
                    "study": {
                        "base": "config.yaml",
                        "parameters": {"interval": {"key": "campaign.checkpoint.0.interval", "values": ["1 h"]}},
                        "objectives": [{"maximise": "ettr"}],
                    }
                }
            )
        )
        rows = self.folder / "study.csv"
        done = harness.orrery(
            "explore", self.folder / "study.yaml", "--output", self.folder / "study.h5", "--csv", rows
        )
        self.assertEqual(done.code, 0, done.out + done.err)
        with open(rows, newline="") as file:
            row = next(csv.DictReader(file))
        self.assertAlmostEqual(float(row["ettr [1]"]), summary["mean"][summary["metric"].index(b"ettr")], places=9)

    def test_interval_in_tokens(self):
        """An interval of tokens is the interval of the steps that have these tokens."""
        found = [
            self.tables(
                self.run_file(
                    "campaign", campaign(checkpoint=[{"interval": interval, "stall": "1 s"}], replications=3)
                )[1],
                "campaign",
            )
            for interval in ("20 steps", "20 M tokens")
        ]
        self.assertEqual(found[0], found[1])

    def test_campaign_refusals(self):
        """What cannot be simulated is refused with exit code 3 and names its key."""
        tier = {"interval": "20 steps", "stall": "1 s"}
        for changes, text in (
            ({"failures": None}, "campaign.failures': the key is missing"),
            ({"duration": None}, "neither duration nor work is given"),
            (
                {"checkpoint": [tier, tier | {"interval": "50 steps"}]},
                "50 steps is no multiple of 20 steps, the interval of tier 0",
            ),
            ({"checkpoint": [tier | {"durable": "61 min"}]}, "one is due every 101 s; use at least 732 steps"),
            ({"checkpoint": [{"interval": "20 steps"}]}, "campaign.checkpoint.0.stall': the key is missing"),
            ({"failures": [{"rate": "1 per day", "mtbf": "1 d"}]}, "rate and mtbf exclude each other"),
            ({"failures": [{"mtbf": "1 d", "distribution": {"weibull": 20}}]}, "shape must be from 0.1 to 10"),
            ({"failures": [{"rate": "1 per fortnight"}]}, "a rate such as"),
            ({"failures": [{"rate": "1 per day", "per": "job", "distribution": {"weibull": 2}}]}, "which have no age"),
            ({"failures": [{"rate": "1 per day", "symptom": "slow"}]}, "without a speed below 1"),
            ({"failures": [{"rate": "1 per day", "symptom": "slow", "speed": 2}]}, "more than 0, 1 at the most"),
            (
                {"failures": [{"rate": "1 per day", "symptom": "slow", "speed": 0.5, "compute": 0.5}]},
                "failures.speed is given too",
            ),
            ({"hosts": {"active": 16, "group": ["0-15", "16-31"]}}, "found host 16"),
            ({"hosts": {"active": 16, "group": ["0-9", "8-15"]}}, "host 8 is in two groups"),
            ({"repair": None, "retire": {"failures": 3}}, "repair or retire has other keys"),
            ({"elastic": {"hosts-per-replica": 4, "speeds": {"3": 0.8}}}, "no speed of 1 replicas is given"),
            (
                {"failures": [{"rate": "1e9 per day"}], "bad": None},
                "24 replications would have about 8e+12 failures",
            ),  # 16 hosts, 20 days
            (
                {"failures": [{"rate": "1e9 per day"}]},
                "24 replications would have about 1e+13 failures",
            ),  # 1.3 times as many: a tenth have 4
            ({"step": {}}, "campaign.step.time': the key is missing"),
            ({"elastic": {"hosts-per-replica": 4}}, "campaign.elastic.speeds': the key is missing"),
            ({"work": "2 T tokens", "step": {"time": "5 s"}}, "found tokens"),
        ):
            with self.subTest(text):
                self.refused("campaign", campaign(**changes), text)
        done, _ = self.run_file("campaign", campaign(checkpoint=[tier | {"survives": ["host"]}]))
        self.assertIn("no checkpoint survives a failure of a group", done.err)
        done, _ = self.run_file("campaign", campaign(retire={"failures": 1}, duration="200 d"))
        self.assertRegex(done.err, "of 24 replications were depleted")

    def test_presets(self):
        """Each preset runs. Llama 3 has 419 interruptions in 54 days within 4 standard errors of the mean, less those of time without exposure,
        and more than 90 % of the time is effective."""
        section = campaign(
            failures=None,
            repair=None,
            bad=None,
            restart=None,
            base="llama3-2024",
            duration="54 d",
            hosts={"active": 2048, "group": 16},
            checkpoint=[{"interval": "40 steps", "stall": "1 s", "keep": 32}],
            replications=100,
        )
        done, path = self.run_file("campaign", section)
        self.assertEqual(done.code, 0, done.err)
        summary = self.tables(path, "campaign/summary")
        mean = dict(zip(summary["metric"], summary["mean"]))
        deviation = dict(zip(summary["metric"], summary["deviation"]))
        self.assertGreater(mean[b"ettr"], 0.9)
        self.assertLess(abs(mean[b"failures"] - 419), 4 * deviation[b"failures"] / 10 + 0.01 * 419)
        for preset in ("meta-rsc1-2024", "airesim-2026"):
            section = {
                "campaign": {
                    "base": preset,
                    "step": {"time": "5 s"},
                    "work": "10 d",
                    "hosts": {"active": 256},
                    "replications": 3,
                    "checkpoint": [{"interval": "100 steps", "stall": "1 s"}],
                }
            }
            self.assertEqual(self.run_file("campaign", section)[0].code, 0)

    def test_cluster_has_one_answer(self):
        """A mix of jobs gives the same tables on any number of ranks, under each admission policy."""
        for admission in harness.cases(
            ("easy",), ("fifo", "easy", "sjf", "priority"), ("fifo", "easy", "sjf", "priority")
        ):
            with self.subTest(admission):
                found = self.check_ranks("cluster", cluster(admission=admission))
                self.assertEqual(len(found["replications/wait"]), 5)
                self.assertTrue(all(busy + free == 64 for busy, free in zip(found["usage/busy"], found["usage/free"])))

    def test_cluster_refusals(self):
        """What cannot be simulated is refused with exit code 3 and names its key."""
        for changes, text in (
            ({"classes": None, "jobs": None}, "neither classes, jobs nor a trace is given"),
            ({"npus": None}, "cluster.npus': the key is missing"),
            ({"npus": 16}, "a job of 32 NPUs can never run on 16"),
            ({"preemption": True}, "preemption needs admission: priority"),
            (
                {
                    "torus": [4, 4, 4],
                    "placement": "torus",
                    "classes": None,
                    "jobs": [{"shape": [5, 4, 4], "length": "1 s"}],
                },
                "shape 5x4x4 does not fit into 4x4x4",
            ),
            ({"classes": [{"rate": "600 per day", "npus": 8, "length": "10 h"}]}, "the load is 31.25"),
            ({"placement": "none", "sharing": "formula"}, "placement: first, contiguous, packed or random"),
            ({"placement": "none", "npus-per-host": 8}, "whole hosts need places"),
            ({"torus": [4, 4, 4], "placement": "torus"}, "the job has no shape"),
            ({"classes": [{"rate": "1 per day"}]}, "neither a length nor steps"),
            ({"jobs": [{"length": "1 s"}]}, "exclude each other"),
            ({"duration": "1 d"}, "cluster.jobs is given too"),
            ({"classes": None, "jobs": [{"length": "0 s"}]}, "more than 0 s"),
            ({"share": 5}, "0 to 1"),
            ({"sharing": "simulate"}, "the system on which steps are simulated"),
        ):
            with self.subTest(text):
                self.refused("cluster", cluster(**changes), text)
        self.assertEqual(
            self.run_file(
                "cluster", cluster(classes=[{"rate": "600 per day", "npus": 8, "length": "10 h"}]), "--overload"
            )[0].code,
            0,
        )

    def test_traces(self):
        """A trace is read by the names of its columns, and its faults name the line."""
        trace = self.folder / "acme.csv"
        trace.write_text("job_id,type,gpu_num,submit_time,duration\na,x,8,0,60\nb,y,0,5,5\nc,x,64,10,100\n")
        done, path = self.run_file(
            "cluster", cluster(classes=None, jobs=None, trace={"file": "acme.csv"}, replications=1, **{"warm-up": 0})
        )
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("1 row of 0 NPUs or without a length left out", done.err)
        self.assertEqual(self.tables(path, "cluster/jobs")["start"], [0, 60 * 10**9])
        trace.write_text("job_id,type,gpu_num,submit_time,duration\na,x,8,0,60\nb,y,8,5,-5\n")
        self.refused(
            "cluster", cluster(classes=None, jobs=None, trace={"file": "acme.csv"}), "acme.csv:3: end before start"
        )

    def test_runs_check_a_campaign_and_do_not_use_it(self):
        """`orrery check` reads the section of a campaign: a fault in it is found."""
        config = self.folder / "run.yaml"
        base = (harness.SOURCE / "configs/llama3-8b-64.yaml").read_text()
        config.write_text(base + "campaign: {duration: 90 d, failures: [{rate: 1 per day}]}\n")
        self.assertEqual(harness.orrery("check", config).code, 0)
        config.write_text(base + "campaign: {duration: 90 days, failures: [{rate: 1 per day}]}\n")
        self.assertEqual(harness.orrery("check", config).code, 3)


if __name__ == "__main__":
    harness.main()
