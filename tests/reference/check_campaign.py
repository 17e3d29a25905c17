#!/usr/bin/env python3
"""Runs every case of a folder of JSON files about campaigns and clusters over time with `orrery campaign` and `orrery cluster`, and compares
what they find with what the case expects, within its tolerance.

usage: check_campaign.py [FOLDER] [--case TEXT ...] [--ranks N]
       check_campaign.py --random N [--seed S] [--case TEXT ...]

FOLDER is by default the folder reference/campaign of shared/. A case has the form {id, kind, inputs, expected, tolerance, source}; README.md
there says what its kind means. The script prints one line for each case and then "N passed, M failed". The exit code is 1 if a case fails,
77 if there is no folder.

With --random it draws N cases of each kind (campaign_drawing.py) and compares each replication's means with those of the reference programs,
whose draws are the same. A case is left out where the reference program ends with an error, lasts long, or breaks a rule of its own page."""

import argparse
import functools
import json
import math
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import campaign_drawing  # noqa: E402
import chakra  # noqa: E402
import harness  # noqa: E402

try:
    import h5py
except ImportError:
    sys.exit("check_campaign.py: h5py is missing. Install python3-h5py, and run the script with /usr/bin/python3.")

STATES = ["useful", "lost", "stall", "detect", "wait", "select", "restart", "slow", "pause"]
COUNTS = ["failures", "selections", "spares", "retired", "restarts", "depleted"]


class Failed(Exception):
    """The program cannot run a case."""


# ---- values of CONFIG.yaml ----


def ns(seconds):
    return round(seconds * 1e9)


def time(seconds):
    return f"{ns(seconds)} ns"


def spread(value, unit=time):
    """Returns a number or a distribution of a case as CONFIG.yaml has it."""
    if not isinstance(value, dict):
        return unit(value)
    kind = value["kind"]
    if kind == "fixed":
        return unit(value["mean"])
    if kind == "exponential":
        return {"exponential": unit(value["mean"])}
    if kind == "uniform":
        return {"uniform": [unit(value["least"]), unit(value["most"])]}
    if kind == "weibull":
        return {"weibull": {"mean": unit(value["mean"]), "shape": value["shape"]}}
    if kind == "lognormal":
        return {"lognormal": {"mean": unit(value["mean"]), "median": unit(value["median"])}}
    if kind == "mixture":
        return {"mixture": [[share, unit(mean)] for share, mean in value["parts"]]}
    if kind == "values":
        return {"values": [unit(v) for v in value["values"]]}
    raise Failed(f"the distribution {kind} is not known")


# ---- campaigns ----


def process_of(process):
    result = {
        "name": process["name"],
        "per": process.get("per", "host"),
        "rate": f"{process['rate'] * process.get('units', 1)!r} per day",
    }
    for key in ("symptom", "while", "repair", "bad", "speed", "notice"):
        if key in process:
            result[key] = process[key]
    for key in ("detect", "length"):
        if key in process:
            result[key] = spread(process[key])
    if process.get("distribution") == "weibull":
        result["distribution"] = {"weibull": process["shape"]}
    return result


def tier_of(tier, step, keep):
    result = {
        "interval": f"{ns(tier['interval']) // step} steps",
        "stall": time(tier["stall"]),
        "durable": time(tier.get("durable", 0.0)),
        "read": time(tier.get("read", 0.0)),
        "keep": keep,
    }
    if "survives" in tier:
        result["survives"] = tier["survives"]
    return result


def repair_of(repair):
    result = {"auto": spread(repair["auto"])}
    if "manual" in repair:
        result["manual"] = spread(repair["manual"])
    return result | {key: repair[key] for key in ("escalate", "auto-fails", "manual-fails") if key in repair}


def campaign_of(inputs, folder):
    """Returns the section `campaign` for the inputs of a case."""
    tiers = inputs.get("checkpoint", [])
    step = functools.reduce(math.gcd, (ns(tier["interval"]) for tier in tiers), 0) or ns(1)
    section = {
        "step": {"time": f"{step} ns"},
        "hosts": {"active": inputs["hosts"], "npus": 1},
        "checkpoint": [tier_of(tier, step, inputs.get("keep", 8)) for tier in tiers],
        "failures": [process_of(process) for process in inputs.get("processes", [])],
        "replications": inputs.get("replications", 1),
        "seed": inputs.get("seed", 1),
    }
    for key in ("standby", "pool", "spare", "group"):
        if key in inputs:
            section["hosts"][key] = inputs[key]
    for key in ("work", "duration"):
        if key in inputs:
            section[key] = time(inputs[key])
    restart = {
        name: time(inputs[key])
        for key, name in (
            ("start", "begin"),
            ("select", "select"),
            ("swap", "swap"),
            ("spare-preemption", "spare-preemption"),
        )
        if key in inputs
    }
    section["restart"] = restart | ({"start": spread(inputs["restart"])} if "restart" in inputs else {})
    for key in ("bad", "diagnosis", "selection", "wait-for", "final-checkpoint"):
        if key in inputs:
            section[key] = inputs[key]
    if inputs.get("repair"):
        section["repair"] = repair_of(inputs["repair"])
    if inputs.get("retire"):
        section["retire"] = {"failures": inputs["retire"]["failures"]}
        if "window" in inputs["retire"]:
            section["retire"]["within"] = time(inputs["retire"]["window"])
    if inputs.get("elastic"):
        elastic = inputs["elastic"]
        section["elastic"] = {
            "hosts-per-replica": elastic["hosts-per-replica"],
            "least": elastic["least"],
            "speeds": {int(replicas): speed for replicas, speed in elastic["speed"].items()},
        }
    if inputs.get("failures"):
        file = folder / "failures.csv"
        file.write_text(
            "".join(
                f"{ns(at)} ns, {'job' if host is None else host}, {process}\n"
                for at, host, process in inputs["failures"]
            )
        )
        section["recorded"] = str(file)
    return section


class Runner:
    """Runs the program in a folder of its own."""

    def __init__(self, folder, ranks):
        self.folder, self.ranks = folder, ranks

    def run(self, command, configuration):
        """Runs `orrery COMMAND` and returns the open file of its results."""
        (self.folder / "config.yaml").write_text(json.dumps(configuration))
        results = self.folder / "results.h5"
        done = harness.orrery(command, self.folder / "config.yaml", "--output", results, "--force", ranks=self.ranks)
        if done.code != 0:
            raise Failed(f"orrery {command} ended with {done.code}: {done.err.strip().splitlines()[-1:]}")
        return h5py.File(results, "r")

    def campaign(self, section):
        return self.run("campaign", {"campaign": section})


def table(file, path):
    """Returns the columns of a table as lists."""

    def plain(column):
        values = column[()]
        return [v.decode() for v in values] if values.dtype.kind in "OS" else values.tolist()

    return {name: plain(column) for name, column in file[path].items()}


def named(file, path, name, value):
    columns = table(file, path)
    return dict(zip(columns[name], columns[value]))


def mean_and_error(values):
    mean = math.fsum(values) / len(values)
    squares = math.fsum((v - mean) ** 2 for v in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values)) if len(values) > 1 else 0.0


def campaign_values(file):
    """Returns {name: (mean, standard error)} as the reference program names the numbers of a replication."""
    rows = table(file, "/campaign/replications")
    numbers = {"time": [t * 1e-9 for t in rows["time"]], "ettr": rows["ettr"]}
    numbers |= {count: rows[count] for count in COUNTS}
    numbers |= {f"t-{state}": [t * 1e-9 for t in rows[state]] for state in STATES}
    numbers["between"] = [u * 1e-9 / n if n else math.inf for u, n in zip(rows["useful"], rows["failures"])]
    found = {name: mean_and_error(values) for name, values in numbers.items()}
    lost = table(file, "/campaign/lost")
    for i, process in enumerate(lost["process"]):
        found[f"n-{process}"] = (lost["failures"][i], 0.0)
        found[f"lost-{process}"] = (math.fsum(lost[state][i] for state in STATES[1:]), 0.0)
    return found


def replications(runner, inputs):
    with runner.campaign(campaign_of(inputs, runner.folder)) as file:
        return campaign_values(file)


def formula_section(mtbf=None, nodes=1, rate=None, interval=1.0, stall=0.0, restart=0.0, work=None):
    """Returns a campaign of crashes alone, for its closed forms."""
    process = {"name": "x", "per": "host", "repair": False}
    process |= {"rate": f"{rate!r} per day"} if mtbf is None else {"rate": f"{86400.0 / mtbf!r} per day"}
    return {
        "step": {"time": time(interval)},
        "hosts": {"active": nodes, "npus": 1},
        "work": time(work or interval),
        "failures": [process],
        "checkpoint": [{"interval": "1 steps", "stall": time(stall)}],
        "restart": {"start": time(restart)},
        "replications": 1,
    }


def campaign_formula(runner, inputs):
    kind = inputs["formula"]
    if kind == "first-failure":
        section = {
            "step": {"time": "1 s"},
            "hosts": {"active": inputs["hosts"], "npus": 1},
            "work": "1 s",
            "replications": 1,
            "checkpoint": [],
            "failures": [
                {
                    "name": "x",
                    "per": "host",
                    "rate": f"{86400.0 / inputs['mean']!r} per day",
                    "repair": False,
                    "distribution": {"weibull": inputs["shape"]},
                }
            ],
        }
        names = {"seconds": "first_failure"}
    elif kind == "optimum":
        section = formula_section(inputs["mtbf"], stall=inputs["stall"])
        names = {"young": "young", "daly-first": "daly_first", "daly-higher": "daly", "exact": "optimum"}
    elif kind == "daly-time":
        section = formula_section(
            inputs["mtbf"],
            interval=inputs["interval"],
            stall=inputs["stall"],
            restart=inputs["restart"],
            work=inputs["work"],
        )
        names = {"time": "exact_time", "ettr": "exact_ettr"}
    elif kind in ("mttf", "ettr"):
        section = formula_section(
            None,
            inputs["nodes"],
            inputs["rate"],
            inputs.get("interval", 1.0),
            inputs.get("stall", 0.0),
            inputs.get("restart", 0.0),
        )
        names = {"approximate": "approximate_ettr", "exact": "exact_ettr", "hours": "mtbf"}
    else:
        raise Failed(f"the formula {kind} is not known")
    with runner.campaign(section) as file:
        values = named(file, "/campaign/closed_forms", "name", "value")
    values["mtbf"] /= 3600 if kind == "mttf" else 1
    return {key: (values[name], 0.0) for key, name in names.items()}


def checkpoint_size(runner, inputs):
    """Returns the size of a checkpoint of a model that the program generates."""
    model = {
        "layers": inputs["layers"],
        "hidden": inputs["hidden"],
        "heads": inputs["heads"],
        "kv-heads": inputs["kv-heads"],
        "vocabulary": inputs["vocabulary"],
        "ffn": inputs["ffn"],
        "gated": True,
        "sequence": 1024,
    }
    configuration = {
        "system": {
            "network": {"dimensions": [{"shape": "Ring", "size": 2, "bandwidth": "1 GB/s", "latency": "1 us"}]},
            "compute": {"roofline": True, "peak": "1 PFLOPS", "local-memory": {"bandwidth": "1 TB/s"}},
        },
        "workload": {"model": model, "parallel": {"dp": 2}},
        "campaign": {
            "work": "1 d",
            "step": {"time": "1 s"},
            "hosts": {"npus": 1},
            "replications": 1,
            "checkpoint": [
                {
                    "interval": "100 steps",
                    "stall": "1 s",
                    "durable": "1 s",
                    "read": "1 s",
                    "bytes-per-parameter": inputs["bytes-per-parameter"],
                }
            ],
            "failures": [{"name": "x", "per": "host", "rate": "0 per day"}],
        },
    }
    with runner.run("campaign", configuration) as file:
        return {"GiB": (named(file, "/campaign/closed_forms", "name", "value")["checkpoint.0.bytes"] / 2**30, 0.0)}


# ---- clusters over time ----


def length(seconds):
    return time(max(seconds, 1e-9))


def listed_job(job):
    result = {
        "arrival": time(job["arrival"]),
        "length": length(job["run"]),
        "priority": job.get("class", 0),
        "class": f"class-{job.get('class', 0)}",
    }
    result |= {key: job[key] for key in ("name", "npus", "shape", "share") if key in job}
    return result | ({"estimate": time(job["estimate"])} if "estimate" in job else {})


def drawn_class(number, job_class):
    priority = job_class.get("class", number)
    result = {
        "name": f"class-{priority}",
        "priority": priority,
        "rate": f"{job_class['rate']!r} per second",
        "length": spread(job_class["run"]),
    }
    result |= {"npus": job_class.get("npus", 1)}
    return result | ({"overestimate": job_class["overestimate"]} if "overestimate" in job_class else {})


def cluster_of(inputs):
    """Returns the section `cluster` for the inputs of a case."""
    section = {
        key: inputs[key]
        for key in (
            "leaf",
            "admission",
            "preemption",
            "queue-limit",
            "warm-up",
            "seed",
            "replications",
            "rotate",
            "wrap",
            "npus-per-host",
        )
        if key in inputs
    }
    if "torus" in inputs:
        section |= {"torus": inputs["torus"], "placement": "torus"}
    else:
        section |= {"npus": inputs["npus"], "placement": inputs.get("placement", "none")}
    for key in ("restart", "checkpoint-interval", "protected"):
        if key in inputs:
            section[key] = time(inputs[key])
    if inputs.get("sharing"):
        section |= {
            "sharing": "formula",
            "shared-links": inputs["sharing"]["kind"],
            "share": inputs["sharing"]["share"],
        }
    if "jobs" in inputs:
        return section | {"jobs": [listed_job(job) for job in inputs["jobs"]]}
    generate = inputs["generate"]
    return section | {
        "jobs": generate["jobs"],
        "classes": [drawn_class(k, c) for k, c in enumerate(generate["classes"])],
    }


def cluster_values(file):
    """Returns {name: (mean, standard error)} as the reference program names the numbers of a run, and lists of the jobs of the first one."""
    rows = table(file, "/cluster/replications")
    names = {"jct-p95": "jct_p95", "wait-p95": "wait_p95", "bounded-slowdown": "bounded_slowdown"}
    names |= {name: name for name in rows if "_" not in name}
    found = {name: mean_and_error(rows[column]) for name, column in names.items()}
    found["little"] = (0.0, 0.0)  # the program itself checks it, to the nanosecond
    classes = table(file, "/cluster/classes")
    for name in set(classes["class"]):
        found[f"jct-{name}"] = mean_and_error(
            [jct for other, jct in zip(classes["class"], classes["jct"]) if other == name]
        )
    jobs = table(file, "/cluster/jobs")
    ran = [i for i, start in enumerate(jobs["start"]) if start >= 0]
    places = table(file, "/cluster/places")
    of_job = {}
    for job, npu in zip(places["job"], places["npu"]):
        of_job.setdefault(job, []).append(npu)
    found["starts"] = ([jobs["start"][i] * 1e-9 for i in ran], 0.0)
    found["ends"] = ([jobs["end"][i] * 1e-9 for i in ran], 0.0)
    found["places"] = ([of_job.get(i, []) for i in ran], 0.0)
    return found


def cluster_run(runner, inputs):
    with runner.run("cluster", {"cluster": cluster_of(inputs)}) as file:
        return cluster_values(file)


def cluster_formula(runner, inputs):
    if inputs["formula"] != "erlang":
        raise Failed(f"the formula {inputs['formula']} is not known")
    section = {
        "npus": inputs["servers"],
        "jobs": 1,
        "classes": [{"rate": f"{inputs['load']!r} per second", "length": {"exponential": "1 s"}}],
    }
    with runner.run("cluster", {"cluster": section}) as file:
        values = named(file, "/cluster/closed_forms", "name", "value")
    return {
        key: (values[name], 0.0)
        for key, name in {"b": "erlang_b", "c": "erlang_c", "wait": "wait"}.items()
        if name in values
    }


def stride_of(phase):
    words = phase.split()
    if words[:2] != ["ring", "stride"] or len(words) != 3:
        raise Failed(f"the phase {phase} is not known")
    return int(words[2])


def step_of_phases(runner, inputs, phases, network):
    """Returns the seconds of collectives one after the other, each in the configuration of its phase."""
    if inputs["collective"] != "all-reduce" or inputs["algorithm"] != "ring":
        raise Failed(f"{inputs['collective']} by {inputs['algorithm']} is not known")
    npus = inputs["npus"]
    nodes = [
        chakra.Node(
            i,
            chakra.COLL,
            f"phase_{i}",
            [i - 1] if i else [],
            comm_type=chakra.ALL_REDUCE,
            comm_size=round(inputs["bytes"]),
            pg_name=f"phase{i}",
        )
        for i in range(len(phases))
    ]
    traces = runner.folder / f"phases-{npus}"
    for npu in range(npus):
        chakra.write(f"{traces}.{npu}.et", nodes)
    (runner.folder / "phases.json").write_text(
        json.dumps({f"phase{i}": [p * stride_of(phase) % npus for p in range(npus)] for i, phase in enumerate(phases)})
    )
    names = list(dict.fromkeys(phases))
    circuits = {
        "switching-time": f"{inputs['switching'] * 1e9!r} ns",
        "configurations": [{"name": name, "stride": stride_of(name)} for name in names],
        "groups": {f"phase{i}": phase for i, phase in enumerate(phases)},
    }
    dimension = {
        "shape": "Ring",
        "size": npus,
        "bandwidth": f"{inputs['bandwidth']!r} B/s",
        "latency": f"{inputs['latency'] * 1e9!r} ns",
    }
    configuration = {
        "system": {
            "network": {"model": network, "dimensions": [dimension], "circuits": circuits},
            "collectives": {"all-reduce": ["oneRing"], "chunks": 1, "endpoint-delay": "0 ns"},
        },
        "workload": {"traces": str(traces), "groups": str(runner.folder / "phases.json")},
    }
    with runner.run("run", configuration) as file:
        return max(file["/npus/finish_time"][()].tolist()) * 1e-12


def reconfiguration(runner, inputs):
    """Returns the times in the congestion-unaware network. Those in the congestion-aware one must be the same."""
    steps = [
        step_of_phases(runner, inputs, inputs["phases"], network)
        for network in ("congestion-unaware", "congestion-aware")
    ]
    if abs(steps[0] - steps[1]) > 1e-9 * steps[0]:
        raise Failed(f"the step takes {steps[0]} s without and {steps[1]} s with links")
    phases = [step_of_phases(runner, inputs, [phase], "congestion-unaware") for phase in inputs["phases"]]
    return {"phase": (phases[0], 0.0), "step": (steps[0], 0.0), "without-switching": (math.fsum(phases), 0.0)}


KINDS = {
    "campaign-formula": campaign_formula,
    "campaign-timeline": replications,
    "campaign-replications": replications,
    "campaign-checkpoint-size": checkpoint_size,
    "cluster-formula": cluster_formula,
    "cluster-schedule": cluster_run,
    "cluster-replications": cluster_run,
    "cluster-reconfiguration": reconfiguration,
}
# The clock of a cluster counts whole nanoseconds, so that a time may differ by one from a time in fractions of them.
CLOCK = 1e-9
TIMES_OF_CLOCK = {"starts", "ends", "wait", "jct", "makespan"}
DATA = {"cluster-trace-summary"}


# ---- comparison ----


def is_good(value, error, expected, tolerance, key, clock=0.0):
    if isinstance(expected, list):
        return len(value) == len(expected) and all(
            is_good(v, 0, e, tolerance, key, clock) for v, e in zip(value, expected)
        )
    if tolerance.get("at-least"):
        return value >= expected
    room = tolerance.get("absolute", 0.0) + tolerance.get("relative", 0.0) * abs(expected) + clock
    if "sigma" in tolerance:
        room += tolerance["sigma"] * math.hypot(error, tolerance.get("reference-se", {}).get(key, 0.0))
    return abs(value - expected) <= room + 1e-300


def check(case, runner):
    """Returns what is wrong with a case: empty if it passes, None if it only holds data."""
    if case["kind"] in DATA:
        return None
    if case["kind"] not in KINDS:
        raise Failed(f"{case['kind']}: Orrery does not have it (docs/cluster-time.md, Limits)")
    found = KINDS[case["kind"]](runner, case["inputs"])
    times = TIMES_OF_CLOCK if case["kind"] == "cluster-schedule" else set()
    faults = []
    for key, expected in case["expected"].items():
        value, error = found.get(key, (None, 0.0))
        if value is None or not is_good(value, error, expected, case["tolerance"], key, CLOCK if key in times else 0.0):
            faults.append(f"{key} {value} +- {error} expected {expected}")
    return "; ".join(faults)


# ---- random cases ----

REFERENCE_SECONDS = 5.0  # of processor time, after which the reference program is given up
UNLIKE = {
    "between",
    "retired",
}  # ratios of small counts; hosts whose repair ends after the reference program's last look at them


class TookLong(Exception):
    """The reference program lasts too long."""


def reference_values(case):
    """Returns {name: value} of the reference programs; None where they fail."""
    sys.path.insert(0, str(harness.SHARED / "reference/campaign"))
    import check as reference

    def give_up(*_):
        raise TookLong

    signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, REFERENCE_SECONDS)
    try:
        found = reference.got(case)
    except (TookLong, TypeError, IndexError, KeyError, ValueError, SystemExit):
        return None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return {key: value for key, (value, _) in found.items()}


def differs_for_a_reason(inputs, expected, found):
    """Returns whether the reference program breaks a rule of its own page."""
    if expected.get("ettr", 0.0) > 1.0 or any(value < -1e-6 for key, value in expected.items() if key.startswith("t-")):
        return True  # it went forward to a checkpoint of work that had been lost
    processes = inputs.get("processes", [])
    if any(process.get("symptom") == "silent" for process in processes):
        if expected.get("depleted", 0.0) > 0:
            return True  # it goes on without hosts when a silent corruption is found
        if any(process.get("symptom") == "pause" and not process.get("notice") for process in processes):
            return True  # a pause loses work as a crash does, but leaves a corruption of what was lost
    return (
        "duration" in inputs and expected["time"] > found["time"][0] + 1e-6
    )  # it lets the last phase end after the duration


def is_near(value, expected):
    if isinstance(expected, list):
        return len(value) == len(expected) and all(is_near(v, e) for v, e in zip(value, expected))
    return value == expected or abs(value - expected) <= 1e-6 + 1e-7 * abs(expected)


def random_check(case, runner):
    """Returns as `check`, for a drawn case."""
    expected = reference_values(case)
    if expected is None:
        return None
    found = KINDS[case["kind"]](runner, case["inputs"])
    if differs_for_a_reason(case["inputs"], expected, found):
        return None
    expected = {key: value for key, value in expected.items() if key not in UNLIKE and (key in found or value != 0)}
    return "; ".join(
        f"{key} {found.get(key, ('missing',))[0]} expected {value}"
        for key, value in expected.items()
        if key not in found or not is_near(found[key][0], value)
    )


def run_random(arguments, runner):
    counts = {"passed": 0, "failed": 0, "left out": 0}
    for kind in campaign_drawing.KINDS:
        if arguments.case and not any(text in kind for text in arguments.case):
            continue
        for seed in range(arguments.seed, arguments.seed + arguments.random):
            case = campaign_drawing.case(kind, seed)
            try:
                fault = random_check(case, runner)
            except Failed as reason:
                fault = str(reason)
            counts["left out" if fault is None else "failed" if fault else "passed"] += 1
            if fault:
                print(f"BAD {case['id']}: {fault}\n{json.dumps(case['inputs'])}", flush=True)
    print(f"{counts['left out']} left out")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=harness.SHARED / "reference/campaign")
    parser.add_argument("--case", nargs="+", help="run only cases whose file, kind or id has one of these texts")
    parser.add_argument("--ranks", type=int, default=0, help="MPI ranks; 0: without mpirun")
    parser.add_argument("--random", type=int, default=0, help="cases of each kind that are drawn, in place of FOLDER")
    parser.add_argument("--seed", type=int, default=1, help="of the first case that is drawn")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        print(
            f"check_campaign.py: {arguments.folder}: no such folder. The cases are in reference/campaign of the folder shared/ (ORRERY_SHARED)."
        )
        return harness.SKIPPED
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(pathlib.Path(folder), arguments.ranks)
        if arguments.random:
            return run_random(arguments, runner)
        for path in sorted(arguments.folder.glob("*.json")):
            for case in json.loads(path.read_text()):
                name = f"{path.stem}/{case['id']}"
                if arguments.case and not any(
                    text in part for text in arguments.case for part in (path.name, case["kind"], case["id"])
                ):
                    continue
                try:
                    fault = check(case, runner)
                except (Failed, KeyError) as reason:
                    fault = f"{type(reason).__name__}: {reason}"
                if fault is None:
                    print(f"data {name}: {case['kind']} has nothing to run", flush=True)
                    continue
                passed += not fault
                failed += bool(fault)
                print(f"{'BAD' if fault else 'ok '} {name}{': ' if fault else ''}{fault}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
