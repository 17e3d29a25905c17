#!/usr/bin/python3
"""Several jobs on one system: what they do to each other by hand, what they do not, where they run and when, and what is refused.

In times by hand 1,000 B take 100 ns on a link of 10 GB/s, and a hop takes 100 ns."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import numpy  # noqa: E402

import chakra  # noqa: E402
import checkpoints  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

NS, MS = 1000, 10**9  # ps
AWARE, PACKETS = "--network=congestion-aware", "--network=packet"
RING = {"shape": "Ring", "bandwidth": "10 GB/s", "latency": "100 ns"}
MODEL = {"layers": 2, "hidden": 512, "heads": 8, "sequence": 128}
STEP = {"model": MODEL, "parallel": {"tp": 2, "sp": True, "dp": 2, "pp": 2, "micro-batches": 2}}
SMALL = {"model": MODEL, "parallel": {"tp": 2, "dp": 2}}
COMPUTE = {"roofline": True, "peak": "989 TFLOPS", "local-memory": {"bandwidth": "3350 GB/s"}}
SERVERS = [
    {"shape": "FullyConnected", "size": 4, "bandwidth": "150 GB/s", "latency": "500 ns"},
    {"shape": "Ring", "size": 4, "bandwidth": "50 GB/s", "latency": "1 us"},
]
IDLE = -1


def message(source, to, size, kind):
    return [Node(1, kind, comm_src=source, comm_dst=to, comm_tag=0, comm_size=size)]


def tables(path, leave_out=("kernel", "config")):
    """Returns {name: values} of all datasets outside some groups."""
    found = {}
    with h5py.File(path) as results:
        results.visititems(
            lambda name, item: found.update({name: numpy.asarray(item[()]).tolist()})
            if isinstance(item, h5py.Dataset)
            else None
        )
    return {name: values for name, values in found.items() if name.split("/")[0] not in leave_out}


class JobFolder(harness.Folder):
    """A folder for configurations with jobs and for their traces."""

    def config(self, jobs, dimensions, name="config.yaml", **system):
        path = self.folder / name
        system = {"network": {"dimensions": dimensions}, "compute": COMPUTE, **system}
        path.write_text(json.dumps({"system": system, **({"jobs": jobs} if isinstance(jobs, list) else jobs)}))
        return path

    def traces(self, name, nodes):
        """Writes nodes[i] as the trace of NPU i of a job and returns the prefix."""
        for npu, of_npu in enumerate(nodes):
            chakra.write(self.folder / f"{name}.{npu}.et", of_npu)
        return str(self.folder / name)

    def pair(self, name, size=1000):
        """Returns a workload in which NPU 0 sends to NPU 1."""
        return {"traces": self.traces(name, [message(0, 1, size, chakra.SEND), message(0, 1, size, chakra.RECV)])}

    def jobs_of(self, path):
        """Returns {column: values} of /jobs, and the job of each NPU."""
        with h5py.File(path) as results:
            columns = {name: column[()].tolist() for name, column in results["jobs"].items() if name != "job"}
            return columns, results["npus/job"][()].tolist()

    def refused(self, jobs, dimensions, *parts, arguments=(), **system):
        outcome = harness.orrery(
            "run", self.config(jobs, dimensions, **system), *arguments, f"--output={self.folder / 'refused.h5'}"
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertFalse((self.folder / "refused.h5").exists())
        for part in parts:
            self.assertIn(part, outcome.err)


class Jobs(JobFolder):
    # ---- what jobs do to each other ----

    def test_shared_link(self):
        """A ring of eight. Job a sends from NPU 0 to 2, job b from NPU 1 to 3 from 150 ns on: both over the link from 1 to 2, which a message
        holds for 100 ns. With cut-through the head of a's message is at NPU 1 at 100 ns and holds that link up to 200 ns; so b is 50 ns
        late. With store-and-forward a's message has come to NPU 1 at 200 ns, and b holds the link up to 250 ns; so a is 50 ns late.
        """
        jobs = [
            {"name": "a", "allocation": [0, 2], "workload": self.pair("a")},
            {"name": "b", "allocation": [1, 3], "start": "150 ns", "workload": self.pair("b")},
        ]
        config = self.config(jobs, [{**RING, "size": 8}])
        for switching, alone, together in (("cut-through", 300, [300, 350]), ("store-and-forward", 400, [450, 400])):
            path = self.run_once([config, AWARE, "--jobs-alone", f"--set=system.network.switching={switching}"])
            columns, _ = self.jobs_of(path)
            self.assertEqual(columns["alone_time"], [alone * NS, alone * NS])
            self.assertEqual(columns["run_time"], [time * NS for time in together])
            self.assertEqual(columns["finish_time"], [together[0] * NS, (150 + together[1]) * NS])
            self.assertEqual(columns["slowdown"], [time / alone for time in together])
            self.assertEqual(columns["bytes_sent"], [1000, 1000])
        by_default, _ = self.jobs_of(self.run_once([config, AWARE, "--jobs-alone"]))
        self.assertEqual(by_default["run_time"], [300 * NS, 350 * NS])

    def test_shared_link_of_packets(self):
        """Two pairs of hosts at two switches with one link between them. Alone, 10 packets of 1,036 B take 10,360 ps each on three links of
        100 GB/s one after the other. Together 20 packets pass the middle link, and the last ones of the jobs pass it 19th and 20th.
        """
        graph = {
            "hosts": 4,
            "switches": 2,
            "links": [[h, 4 + h // 2, "100 GB/s", "1 us"] for h in range(4)] + [[4, 5, "100 GB/s", "1 us"]],
        }
        system = {"network": {"dimensions": [{"shape": "Switch", "size": 4}], "graph": graph}}
        jobs = [
            {"name": "a", "allocation": [0, 2], "workload": self.pair("a", 10_000)},
            {"name": "b", "allocation": [1, 3], "workload": self.pair("b", 10_000)},
        ]
        path = self.run_once(
            [self.config(jobs, [], **system), PACKETS, "--jobs-alone", "--set=system.network.packets.window=none"]
        )
        packet, delays = 10_360, 3_000_000
        times = {npu: time for npu, time in enumerate(harness.finish_times(path))}
        self.assertEqual(sorted([times[2], times[3]]), [21 * packet + delays + 1, 22 * packet + delays + 1])
        columns, _ = self.jobs_of(path)
        back = 3 * (480 + 1_000_000)
        self.assertEqual(columns["alone_time"], [12 * packet + delays + back + 1] * 2)
        self.assertGreater(min(columns["slowdown"]), 1)

    def test_shared_memory(self):
        """Two jobs of one NPU load 5,000 B of one memory pool, which takes 1 us and 500 ns at 10 GB/s: the second one waits for the first."""
        jobs = [
            {
                "npus": 1,
                "workload": {
                    "traces": {"all": self.traces(name, [[Node(1, chakra.MEM_LOAD, tensor_size=5000)]]) + ".0.et"}
                },
            }
            for name in "ab"
        ]
        config = self.config(
            jobs,
            [{**RING, "size": 2}],
            **{"remote-memory": {"kind": "pool", "bandwidth": "10 GB/s", "latency": "1 us"}},
        )
        columns, _ = self.jobs_of(self.run_once([config, "--jobs-alone"]))
        self.assertEqual((columns["run_time"], columns["slowdown"]), ([1500 * NS, 3000 * NS], [1, 2]))

    def test_delay_model_has_no_interference(self):
        """In the congestion-unaware network jobs take exactly as long as alone, wherever they are, also if a job has several collectives in a
        dimension at a time, which share its bandwidth."""
        gathers = [[Node(n, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000) for n in (1, 2, 3)]] * 4
        jobs = [
            {"name": "step", "allocation": "random", "workload": STEP},
            {"name": "small", "allocation": "scattered", "workload": SMALL},
            {"name": "gathers", "allocation": "scattered", "workload": {"traces": self.traces("g", gathers)}},
        ]
        drawn = "--set=perturbation.distributions=[{per: collective, kind: uniform, least: 1, most: 1.5}]"
        for more in ([], ["--set=system.communication.streams=3"], ["--set=system.rules=astra-sim"], [drawn]):
            columns, _ = self.jobs_of(self.run_once([self.config(jobs, SERVERS), "--jobs-alone", *more]))
            self.assertEqual(columns["slowdown"], [1, 1, 1], more)
            self.assertEqual(columns["run_time"], columns["alone_time"])

    def test_disjoint_links(self):
        """Jobs in servers of their own take as long as alone in every network, and as on a system that has nothing but their servers."""
        jobs = [{"allocation": [f"{4 * server}-{4 * server + 3}"], "workload": SMALL} for server in (2, 0)]
        for network in ("congestion-unaware", "congestion-aware", "packet"):
            path = self.run_once([self.config(jobs, SERVERS), f"--network={network}", "--jobs-alone"])
            columns, job_of = self.jobs_of(path)
            self.assertEqual(job_of, [1] * 4 + [IDLE] * 4 + [0] * 4 + [IDLE] * 4)
            self.assertEqual(columns["slowdown"], [1, 1])
            times = harness.finish_times(path)
            own = harness.finish_times(
                self.run_once([self.config({"workload": SMALL}, [*SERVERS[:1]]), f"--network={network}"])
            )
            self.assertEqual((times[:4], times[8:12]), (own, own), network)
            self.assertEqual(times[4:8] + times[12:], [0] * 8)

    # ---- what is as without jobs ----

    def test_one_job_is_a_workload(self):
        """A job that has all NPUs gives the results of the same workload without jobs, but for what is said of jobs."""
        gathers = [
            [
                Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=4000, pg_name="g"),
                Node(2, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=4000),
            ]
            for _ in range(8)
        ]
        (self.folder / "groups.json").write_text(json.dumps({"g": list(range(8))}))
        traced = {"traces": self.traces("t", gathers), "groups": str(self.folder / "groups.json"), "iterations": 2}
        for workload, dimensions in (
            (STEP, [{**RING, "size": 8}]),
            (traced, [{**RING, "size": 4}, {**RING, "size": 2}]),
        ):
            for more in ([], [AWARE], [PACKETS], ["--set=system.rules=astra-sim"]):
                plain = tables(
                    self.run_once([self.config({"workload": workload}, dimensions), "--timeline", *more], "plain.h5")
                )
                jobs = tables(
                    self.run_once([self.config([{"workload": workload}], dimensions), "--timeline", *more], "jobs.h5")
                )
                of_jobs = {name for name in jobs if name.startswith("jobs/")} | {"npus/job"}
                self.assertGreater(len(of_jobs), 10)
                self.assertEqual({name: values for name, values in jobs.items() if name not in of_jobs}, plain, more)
                self.assertEqual(jobs["jobs/finish_time"], [max(plain["npus/finish_time"])])

    def test_draws_of_a_job_are_its_own(self):
        """What is drawn for the collectives, messages and steps of a job does not depend on whether there is another job on other NPUs, which it
        does not meet, nor on the order in which they are listed."""
        nodes = [
            [
                Node(1, chakra.COMP, num_ops=1_000_000),
                Node(2, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=4000, pg_name="g"),
                Node(3, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=4000),
            ]
            for _ in range(4)
        ]
        (self.folder / "groups.json").write_text(json.dumps({"g": [0, 1, 2, 3]}))
        one = {
            "name": "a",
            "allocation": [0, 1, 2, 3],
            "workload": {
                "traces": self.traces("a", nodes),
                "groups": str(self.folder / "groups.json"),
                "iterations": 3,
            },
        }
        other = {"name": "b", "allocation": [4, 5, 6, 7], "workload": one["workload"]}
        drawn = {
            "perturbation": {
                "noise-seed": 3,
                "distributions": [
                    {"per": per, "kind": "exponential", "excess": 0.5} for per in ("collective", "step", "node", "npu")
                ],
            }
        }
        finish = []
        for jobs in ([one], [one, other], [other, one]):
            path = self.config({"jobs": jobs} | drawn, [{**RING, "size": 4}, {**RING, "size": 2}])
            finish.append(harness.finish_times(self.run_once([path]))[:4])
        self.assertEqual(finish[0], finish[1])
        self.assertEqual(finish[0], finish[2])

    def test_start(self):
        """A job that starts later ends so much later, and its NPUs are idle before."""
        for network in ("congestion-unaware", "congestion-aware", "packet"):
            plain, late = (
                {
                    name: values
                    for name, values in tables(
                        self.run_once(
                            [
                                self.config([{"start": start, "workload": STEP}], [{**RING, "size": 8}]),
                                f"--network={network}",
                            ]
                        )
                    ).items()
                }
                for start in ("0 s", "5 ms")
            )
            for npu in range(8):
                self.assertEqual(late["npus/finish_time"][npu], plain["npus/finish_time"][npu] + 5 * MS)
                self.assertEqual(late["npus/idle_time"][npu], plain["npus/idle_time"][npu] + 5 * MS)
                self.assertEqual(
                    late["npus/exposed_communication_time"][npu], plain["npus/exposed_communication_time"][npu]
                )
            self.assertEqual(late["jobs/run_time"], plain["jobs/run_time"])
            self.assertEqual(late["jobs/idle_time"], plain["jobs/idle_time"])

    def test_traces_without_nodes(self):
        """NPU 2 of a job that starts at 1 us has nothing to do, and neither has another job."""
        nodes = [message(0, 1, 1000, chakra.SEND), message(0, 1, 1000, chakra.RECV), []]
        jobs = [
            {"start": "1 us", "workload": {"traces": self.traces("a", nodes)}},
            {"start": "2 us", "workload": {"traces": self.traces("b", [[], []])}},
        ]
        for network in ("congestion-unaware", "congestion-aware"):
            path = self.run_once([self.config(jobs, [{**RING, "size": 8}]), f"--network={network}", "--jobs-alone"])
            self.assertEqual(harness.finish_times(path)[2:], [0] * 6)
            columns, _ = self.jobs_of(path)
            self.assertEqual(columns["run_time"][1], 0)
            self.assertEqual(columns["slowdown"], [1, 1])

    def test_iterations(self):
        """Each job executes its traces as often as it says."""
        jobs = [
            {"allocation": [0, 1], "workload": {**self.pair("a"), "iterations": 3}},
            {"allocation": [4, 5], "workload": self.pair("b")},
        ]
        path = self.run_once([self.config(jobs, [{**RING, "size": 8}]), AWARE])
        found = tables(path)
        self.assertEqual(found["npus/nodes_completed"], [3, 3, 0, 0, 1, 1, 0, 0])
        self.assertEqual(found["jobs/iterations"], [3, 1])
        self.assertEqual(found["jobs/step_time"][0], round(found["jobs/run_time"][0] / 3))

    def test_one_answer(self):
        """Three jobs of different kinds, starts, numbers of steps and allocations, and NPUs without a job: one answer on 1 to 8 ranks, and over
        packets, whose ranks wait for each other at each link, on 2 and 3."""
        gathers = [
            [
                Node(1, chakra.COMP, num_ops=10**9, tensor_size=1000),
                Node(2, chakra.COLL, data_deps=[1], comm_type=chakra.ALL_REDUCE, comm_size=9000),
                Node(3, chakra.MEM_LOAD, tensor_size=5000),
            ]
            for _ in range(3)
        ]
        jobs = [
            {"name": "step", "allocation": "random", "seed": 3, "workload": {**STEP, "iterations": 2}},
            {
                "name": "late",
                "allocation": [15, "3-4"],
                "start": "20 us",
                "workload": {"traces": self.traces("late", gathers)},
            },
            {
                "name": "pair",
                "allocation": "scattered",
                "start": "1 us",
                "workload": {**self.pair("p"), "iterations": 5},
            },
        ]
        memory = {"remote-memory": {"kind": "pool", "bandwidth": "100 GB/s", "latency": "1 us"}}
        config = self.config(jobs, SERVERS, **memory)
        for more in ([], [AWARE, "--noise=0.05"]):
            self.check_one_answer([config, "--jobs-alone", "--timeline", *more], 16, ranks=(1, 2, 3, 4, 8))
        self.check_one_answer([config, AWARE, "--set=system.rules=astra-sim", "--timeline"], 16, ranks=(2,))
        jobs[0]["workload"] = {"model": {**MODEL, "layers": 1}, "parallel": {"tp": 2, "dp": 2, "pp": 1}}
        self.check_one_answer(
            [self.config(jobs, SERVERS, **memory), "--jobs-alone", "--timeline", PACKETS], 16, ranks=(2,)
        )

    # ---- where jobs are ----

    def test_allocations(self):
        """Lists go first, then each job takes what it finds free."""
        (self.folder / "npus.txt").write_text("# of job 2\n9\n\n6-7\n")
        jobs = [
            {"npus": 2, "workload": self.pair("a")},
            {"allocation": [1, 0], "workload": self.pair("b")},
            {
                "allocation": {"file": "npus.txt"},
                "workload": {"traces": {"all": self.traces("c", [[Node(1, chakra.COMP, duration=1)]]) + ".0.et"}},
            },
            {"npus": 2, "allocation": "scattered", "workload": self.pair("d")},
        ]
        config = self.config(jobs, [{**RING, "size": 10}])
        _, job_of = self.jobs_of(self.run_once([config]))
        self.assertEqual(job_of, [1, 1, 0, 0, 3, 3, 2, 2, IDLE, 2])
        draws = set()
        for seed in range(8):
            jobs[3].update(allocation="random", seed=seed)
            _, job_of = self.jobs_of(self.run_once([self.config(jobs, [{**RING, "size": 10}])]))
            self.assertEqual((job_of[:4], job_of.count(3)), ([1, 1, 0, 0], 2))
            draws.add(tuple(job_of))
        self.assertGreater(len(draws), 1)

    def test_own_numbers(self):
        """Peers, groups of a file, groups without a list and dimensions count within the job: a job on NPUs 4 to 7 of two servers does what it
        does on a system of its own. Dimension 0 is that of the servers."""
        nodes = [
            [
                Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=8000, pg_name=f"half {npu // 2}"),
                Node(
                    2,
                    chakra.COLL,
                    data_deps=[1],
                    comm_type=chakra.ALL_GATHER,
                    comm_size=8000,
                    pg_name="listed" if npu in (0, 3) else "",
                ),
                Node(
                    3,
                    chakra.COLL,
                    data_deps=[2],
                    comm_type=chakra.ALL_GATHER,
                    comm_size=3000,
                    involved_dim=[True, False],
                ),
            ]
            for npu in range(4)
        ]
        for npu in (1, 2):
            nodes[npu] = [
                nodes[npu][0],
                Node(
                    3,
                    chakra.COLL,
                    data_deps=[1],
                    comm_type=chakra.ALL_GATHER,
                    comm_size=3000,
                    involved_dim=[True, False],
                ),
            ]
        (self.folder / "groups.json").write_text(json.dumps({"half 0": [0, 1], "half 1": [2, 3], "listed": [0, 3]}))
        workload = {"traces": self.traces("own", nodes), "groups": str(self.folder / "groups.json")}
        for network in ("congestion-unaware", "congestion-aware"):
            own = harness.finish_times(
                self.run_once(
                    [
                        self.config({"workload": workload}, SERVERS[:1] + [{**SERVERS[1], "size": 1}]),
                        f"--network={network}",
                    ]
                )
            )
            path = self.run_once(
                [self.config([{"allocation": ["4-7"], "workload": workload}], SERVERS), f"--network={network}"]
            )
            self.assertEqual(harness.finish_times(path)[4:8], own, network)
            names = [name.decode() for name in tables(path)["groups/names"]]
            self.assertIn("half 0", names)

    def test_dimensions_of_a_part(self):
        """A job on two servers of four NPUs: a collective along dimension 1 is between the two NPUs of the job in each row."""
        nodes = [
            [Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=1000, involved_dim=[False, True])]
            for _ in range(8)
        ]
        jobs = [{"allocation": ["0-3", "8-11"], "workload": {"traces": self.traces("rows", nodes)}}]
        found = tables(self.run_once([self.config(jobs, SERVERS)]))
        self.assertEqual(found["metrics/collectives/members"], [2])

    # ---- results ----

    def test_shown(self):
        """The summary and `orrery show results` have a line for each job, and the Python package a table."""
        jobs = [{"name": "first", "workload": SMALL}, {"name": "second", "start": "1 ms", "workload": SMALL}]
        path = self.folder / "shown.h5"
        outcome = harness.orrery("run", self.config(jobs, SERVERS), "--jobs-alone", f"--output={path}", "--verbose")
        self.assertEqual(outcome.code, 0, outcome.err)
        lines = [line.split() for line in outcome.out.splitlines()]
        self.assertIn(
            ["job", "NPUs", "start", "finish", "run", "time", "compute", "exposed", "alone", "slowdown"], lines
        )
        self.assertEqual([line[-1] for line in lines if line and line[0] in ("first", "second")], ["1.0000", "1.0000"])
        shown = harness.orrery("show", "results", path).out.splitlines()
        self.assertEqual(
            [line.split()[-1] for line in shown if line.split()[:2] in (["first", "4"], ["second", "4"])],
            ["1.0000", "1.0000"],
        )
        sys.path.insert(0, str(harness.SOURCE / "scripts/python"))
        import orrery

        with orrery.open(path, times="ps") as run:
            self.assertEqual(list(run.jobs["name"]), ["first", "second"])
            self.assertEqual(list(run.jobs["start_time"]), [0, MS])
            self.assertEqual(list(run.npus["job"]), [0] * 4 + [1] * 4 + [IDLE] * 8)

    def test_resolved(self):
        """The resolved configuration in the results is read as the same jobs."""
        jobs = [
            {"name": "a b", "allocation": "random", "workload": STEP},
            {"allocation": "scattered", "start": "2 us", "workload": self.pair("p")},
        ]
        first = self.run_once([self.config(jobs, SERVERS)], "first.h5")
        with h5py.File(first) as results:
            resolved = results["config/resolved"][()].decode()
        (self.folder / "resolved.yaml").write_text(resolved)
        again = self.run_once([self.folder / "resolved.yaml"], "again.h5")
        self.assertEqual(tables(first), tables(again))
        with h5py.File(again) as results:
            self.assertEqual(results["config/resolved"][()].decode(), resolved)

    def test_models_from_files(self):
        """Models of jobs may be presets, and a stack is below the workload of each job. Lists of layers are resolved too."""
        layers = {
            "model": {
                "kind": "layers",
                "layers": [
                    {"flops": 10**9, "parameters": 1000, "activations": 10, "repeat": 2},
                    {"flops": 10**8, "parameters": 10, "activations": 10},
                ],
            },
            "parallel": {"dp": 2},
        }
        jobs = [
            {"workload": {"model": "llama3-8b", "parallel": {"tp": 2}}},
            {"workload": {"model": {"base": "llama3-8b", "layers": 4}, "parallel": {"dp": 2}}},
        ]
        network = {"dimensions": [{**RING, "size": 8}]}
        peaks = {name: value for name, value in COMPUTE.items() if name != "roofline"}
        for name, more in (
            ("models", {"system": {"network": network, "compute": peaks}, "stack": "h100-megatron", "jobs": jobs}),
            ("layers", {"system": {"network": network, "compute": COMPUTE}, "jobs": [{"workload": layers}]}),
        ):
            config = self.folder / f"{name}.yaml"
            config.write_text(json.dumps(more))
            path = self.run_once([config, "--set=jobs.0.start=1 us"])
            self.assertEqual(tables(path)["jobs/start_time"][0], 1000 * NS)
            with h5py.File(path) as results:
                resolved = results["config/resolved"][()].decode()
            self.assertEqual(resolved.count("tp-overlap: 0.8"), 2 if name == "models" else 0)
            config.write_text(resolved)
            self.assertEqual(tables(self.run_once([config], "again.h5")), tables(path))

    def test_other_commands(self):
        """Jobs are checked and partitioned like one workload, also along the lines of their communication. Studies and `generate` take one
        workload only."""
        config = self.config(
            [{"name": "a", "allocation": "random", "workload": STEP}, {"workload": SMALL}, {"workload": SMALL}], SERVERS
        )
        self.assertEqual(harness.orrery("run", config, "--quiet").code, 3)  # the last one finds no room in one piece
        config = self.config(
            [{"name": "a", "allocation": "random", "workload": STEP}, {"allocation": "scattered", "workload": SMALL}],
            SERVERS,
        )
        outcome = harness.orrery("check", config)
        self.assertEqual((outcome.code, "16 NPUs" in outcome.out), (0, True), outcome.err)
        outcome = harness.orrery(
            "partition", config, "--ranks=2", "--strategy=metis", f"--output={self.folder / 'map'}"
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        first = self.run_once([config])
        for partition in ("metis", self.folder / "map"):
            self.assertEqual(
                harness.difference(first, self.run_once([config, f"--partition={partition}"], "two.h5", ranks=2)),
                "",
                partition,
            )
        study = self.folder / "study.yaml"
        study.write_text(
            json.dumps(
                {
                    "study": {
                        "base": str(config),
                        "parameters": {"n": {"key": "system.collectives.chunks", "values": [1, 2]}},
                        "objectives": [{"minimise": "step_time"}],
                    }
                }
            )
        )
        for arguments in (
            ["explore", study, f"--output={self.folder / 'explore.h5'}"],
            ["generate", config, f"--output={self.folder / 'g'}"],
        ):
            outcome = harness.orrery(*arguments)
            self.assertEqual((outcome.code, "found jobs" in outcome.err), (3, True), outcome.err)

    # ---- what is refused ----

    def test_refusals(self):
        """A ring of eight NPUs: jobs that overlap, do not fit, contradict their workloads or themselves are refused before anything is written."""
        pair, ring = self.pair("a"), [{**RING, "size": 8}]
        two = [{"allocation": [0, 1], "workload": pair}, {"allocation": [1, 2], "workload": pair}]
        self.refused(two, ring, "jobs.1", "NPU 1 is that of job 'job-0' already")
        self.refused([{"allocation": [7, 8], "workload": pair}], ring, "jobs.0.allocation", "found '8'")
        self.refused([{"allocation": [3, 3], "workload": pair}], ring, "NPU 3 is listed twice")
        self.refused(
            [{"allocation": [0, 1, 2], "npus": 2, "workload": pair}], ring, "the allocation has 3 NPUs; expected 2"
        )
        self.refused(
            [{"npus": 3, "workload": pair}],
            ring,
            "job 'job-0'",
            "traces for 2 NPUs, but the job has 3",
            "or the job's npus",
        )
        self.refused(
            [{"npus": 1, "workload": pair}],
            ring,
            "job 'job-0'",
            "for 1 NPU more than the 1 of the job",
            "Change the job's npus",
        )
        self.refused([{"npus": 4, "workload": STEP}], ring, "tp * cp * ep * dp * pp is 8 NPUs; expected 4")
        self.refused(
            [{"workload": STEP}, {"workload": pair}], ring, "jobs.1", "the job needs 2 NPUs, but only 0 are free"
        )
        self.refused(
            [
                {
                    "allocation": [1],
                    "npus": 1,
                    "workload": {"traces": {"all": self.traces("x", [[Node(1, chakra.COMP)]]) + ".0.et"}},
                },
                {"allocation": [4], "npus": 1, "workload": {"traces": {"all": str(self.folder / "x.0.et")}}},
                {"workload": SMALL},
            ],
            ring,
            "follow one another",
            "at most 3 do",
            "scattered",
        )
        self.refused(
            [{"name": "a", "workload": pair}, {"name": "a", "workload": pair}], ring, "'a' is the name of job 0 too"
        )
        self.refused(
            [{"workload": {"traces": {"all": str(self.folder / "x.0.et")}}}], ring, "jobs.0.npus", "the key is missing"
        )
        self.refused([{"workload": {"traces": str(self.folder / "none")}}], ring, "none.0.et", "there is no such file")
        self.refused([{"workload": {**pair, "iteration": 2}}], ring, "jobs.0.workload.iteration", "'iterations'")
        self.refused({"jobs": [{"workload": pair}], "workload": pair}, ring, "jobs are given too")
        self.refused([{"workload": pair}], ring, "--iterations", "beside jobs", arguments=["--iterations=2"])
        self.refused([{"workload": pair}], ring, "--fold", "jobs", arguments=["--fold"])
        self.refused(
            {"workload": pair}, [{**RING, "size": 2}], "--jobs-alone", "without jobs", arguments=["--jobs-alone"]
        )
        outside = self.traces("out", [message(0, 2, 10, chakra.SEND), message(0, 1, 10, chakra.RECV)])
        self.refused([{"name": "far", "workload": {"traces": outside}}], ring, "job 'far'", "2")
        self.refused([], ring, "jobs")

    def test_precisions(self):
        """Jobs compute in one precision where the compute rates depend on it: another one is refused in the second job, of a model and of traces,
        with a peak for each precision and, in fp8, with one peak for products. Traces in fp8 run beside traces in fp8, in half the time of
        bf16."""
        ring, peaks = [{**RING, "size": 8}], {**COMPUTE, "peak": {"bf16": "100 TFLOPS", "fp8": "200 TFLOPS"}}
        products = {**COMPUTE, "model": "products", "processor": "h100"}
        del products["roofline"]
        low = {**SMALL, "parallel": {**SMALL["parallel"], "precision": "fp8"}}
        computing = {"traces": self.traces("c", [[Node(1, chakra.COMP, num_ops=10**12, tensor_size=1)]] * 4)}
        low_traces = {**computing, "precision": "fp8"}
        for first, second, compute in (
            (SMALL, low, peaks),
            (SMALL, low, products),
            (SMALL, low_traces, peaks),
            (computing, low_traces, peaks),
        ):
            jobs = [{"workload": first}, {"workload": second}]
            self.refused(jobs, ring, "jobs.1.workload", "found fp8; expected bf16, as in the first", compute=compute)
        self.refused(
            [{"workload": low_traces}, {"workload": computing}],
            ring,
            "jobs.1.workload",
            "found bf16; expected fp8, as in the first",
            compute=peaks,
        )
        times = [
            harness.finish_times(self.run_once([self.config([{"workload": one}] * 2, ring, compute=peaks)]))
            for one in (computing, low_traces)
        ]
        self.assertEqual(times, [[10 * MS] * 8, [5 * MS] * 8])


class JobCheckpoints(checkpoints.KilledRuns, JobFolder):
    others = (0, 2, 3)

    def test_restart(self):
        """A step that is repeated, and a job that starts in its middle or has not started when the run is killed: a checkpoint holds both."""
        jobs = [
            {"name": "step", "workload": {**STEP, "iterations": 400}},
            {"name": "late", "allocation": "random", "start": "20 ms", "workload": {**SMALL, "iterations": 100}},
        ]
        for network in ("congestion-unaware", "congestion-aware"):
            self.check([self.config(jobs, SERVERS), f"--network={network}"], 16)


if __name__ == "__main__":
    harness.main()
