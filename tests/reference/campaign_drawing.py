"""Draws cases of campaigns and clusters over time, as shared/reference/campaign has them, from a seed (check_campaign.py --random).

Times are whole numbers of coarse units, so that ties are frequent and both programs count them alike."""
import random


def some(rng, chance):
    return rng.random() < chance


def duration(rng, mean):
    """Draws a duration in seconds, or a distribution of durations."""
    kind = rng.choice(["number", "number", "exponential", "uniform", "weibull", "fixed"])
    if kind == "number":
        return float(mean)
    if kind == "uniform":
        return {"kind": "uniform", "least": 0.5 * mean, "most": 1.5 * mean}
    if kind == "weibull":
        return {"kind": "weibull", "mean": float(mean), "shape": rng.choice([0.6, 1.0, 1.8])}
    return {"kind": kind, "mean": float(mean)}


# ---- campaigns ----


def process(rng, name, inputs, is_recorded):
    """Draws a failure process. Recorded failures come in place of drawn ones."""
    per = rng.choice(["host", "host", "host", "job"] + (["group"] if "group" in inputs else []))
    symptom = rng.choice(["crash", "crash", "crash", "hang", "silent", "slow", "pause"])
    if symptom in ("silent", "slow") and per != "host":
        per = "host"
    if symptom == "pause":
        per = "job"
    if is_recorded:
        rate = 0.0
    else:
        rate = rng.choice([0.5, 1.0, 3.0]) / (1 if per == "job" else inputs["hosts"] if per == "host" else 2)
    result = {"name": name, "per": per, "rate": rate}
    if symptom != "crash":
        result["symptom"] = symptom
    if symptom != "pause" and some(rng, 0.7 if symptom in ("silent", "slow", "hang") else 0.4):
        result["detect"] = duration(rng, rng.choice([30, 300, 1800, 5400]))
    if symptom == "slow":
        result["speed"] = rng.choice([0.25, 0.5, 0.75])
    if symptom == "pause":
        result["length"] = duration(rng, rng.choice([600, 7200]))
        result["notice"] = some(rng, 0.5)
    if some(rng, 0.4) or per == "job":
        result["repair"] = False
    if some(rng, 0.25):
        result["while"] = rng.choice(["running", "allocated"])
    if not is_recorded and per == "host" and symptom == "crash" and some(rng, 0.25):
        result |= {"distribution": "weibull", "shape": rng.choice([0.7, 1.5])}
    if (
        inputs.get("bad") and "distribution" not in result and some(rng, 0.3)
    ):  # the reference program lets bad hosts fail more often even so
        result["bad"] = False
    return result


def tiers(rng):
    interval = rng.choice([600.0, 900.0, 1800.0, 3600.0])
    found = []
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
        tier = {"interval": interval, "stall": rng.choice([0.0, 1.0, 5.0, 30.0, 60.0])}
        if some(rng, 0.5):
            tier["durable"] = rng.choice([2.0, 60.0, 300.0])
        if some(rng, 0.5):
            tier["read"] = rng.choice([5.0, 60.0, 300.0])
        if some(rng, 0.3):
            tier["survives"] = rng.choice([["host"], ["host", "group"], ["group"]])
        found.append(tier)
        interval *= rng.choice([2, 3, 5])
    return found


def campaign(rng, is_recorded):
    """Draws the inputs of a timeline, or of replications."""
    hosts = rng.choice([1, 2, 4, 6, 8, 12])
    inputs = {"hosts": hosts, "checkpoint": tiers(rng), "restart": rng.choice([0.0, 60.0, 100.0, 600.0])}
    if not is_recorded and some(rng, 0.3):
        inputs["restart"] = duration(rng, 200)
    for key, chance, values in (
        ("standby", 0.5, [1, 2, 4]),
        ("pool", 0.5, [1, 2, 6]),
        ("spare", 0.3, [1, 3]),
        ("group", 0.5, [2, 3, 4]),
        ("select", 0.6, [20.0, 50.0]),
        ("swap", 0.5, [5.0, 10.0]),
        ("start", 0.3, [30.0, 90.0]),
        ("spare-preemption", 0.3, [100.0, 1200.0]),
        ("keep", 0.4, [1, 2, 3, 8]),
        ("selection", 0.3, ["fewest-failures"]),
        ("wait-for", 0.2, ["standbys"]),
        ("final-checkpoint", 0.15, [True]),
    ):
        if some(rng, chance):
            inputs[key] = rng.choice(values)
    if some(rng, 0.7):
        inputs["work"] = float(rng.choice([14400, 36000, 100000, 300000]))
    if "work" not in inputs and is_recorded:
        inputs["work"] = 50000.0
    if "work" not in inputs or (not is_recorded and some(rng, 0.3)):
        inputs["duration"] = float(rng.choice([30000, 200000, 600000]))
    if not is_recorded and some(rng, 0.3):
        inputs["bad"] = {"fraction": rng.choice([0.1, 0.3]), "factor": rng.choice([3.0, 6.0])}
    if some(rng, 0.6):
        inputs["repair"] = {"auto": duration(rng, rng.choice([600, 7200, 20000]))}
        if some(rng, 0.4):
            inputs["repair"] |= {"manual": duration(rng, 40000), "escalate": rng.choice([0.2, 0.8])}
        for key in ("auto-fails", "manual-fails"):
            if some(rng, 0.3):
                inputs["repair"][key] = 0.3
        if some(rng, 0.25):
            inputs["retire"] = {"failures": rng.choice([2, 3])} | ({"window": 50000.0} if some(rng, 0.5) else {})
    if some(rng, 0.2) and hosts > 1:
        inputs["diagnosis"] = {"found": rng.choice([0.5, 1.0]), "wrong": rng.choice([0.0, 0.4])}
    if some(rng, 0.35) and hosts % 2 == 0 and hosts > 2:
        of_replica = rng.choice([1, 2])
        replicas = hosts // of_replica
        inputs["elastic"] = {
            "hosts-per-replica": of_replica,
            "least": rng.choice([1, 2]),
            "speed": {str(r): rng.choice([0.5, 0.625, 0.75]) for r in range(1, replicas)},
        }
    inputs["processes"] = [process(rng, f"p{i}", inputs, is_recorded) for i in range(rng.choice([1, 1, 2, 3]))]
    if is_recorded:
        total = sum(inputs.get(key, 0) for key in ("hosts", "standby", "pool", "spare"))
        failures = []
        for _ in range(rng.randint(1, 12)):
            of = rng.choice(inputs["processes"])
            at = float(rng.randint(1, 8000) * 5)
            failures.append([at, None if of["per"] == "job" else rng.randrange(total), of["name"]])
        inputs["failures"] = sorted(failures, key=lambda failure: failure[0])
        return inputs
    return inputs | {"replications": 6, "seed": rng.randint(1, 1000)}


# ---- clusters ----


def policies(rng, inputs):
    inputs["admission"] = rng.choice(["fifo", "easy", "easy", "sjf", "priority"])
    if inputs["admission"] == "priority" and some(rng, 0.6):
        inputs["preemption"] = True
        if some(rng, 0.6):
            inputs["checkpoint-interval"] = rng.choice([1.0, 4.0])
        if some(rng, 0.6):
            inputs["restart"] = rng.choice([0.5, 1.0, 3.0])
    if some(rng, 0.15):
        inputs["queue-limit"] = rng.choice([0, 1, 4])
    return inputs


def places(rng):
    if some(rng, 0.3):
        torus = [rng.choice([2, 3, 4, 6]) for _ in range(3)]
        return (
            {"torus": torus} | ({"rotate": True} if some(rng, 0.5) else {}) | ({"wrap": True} if some(rng, 0.5) else {})
        )
    inputs = {
        "npus": rng.choice([8, 10, 16, 24, 40]),
        "placement": rng.choice(["none", "first", "contiguous", "packed", "random"]),
    }
    if inputs["placement"] != "none":
        inputs["leaf"] = rng.choice([2, 4, 8])
        inputs["seed"] = rng.randint(1, 100)
    if some(rng, 0.35):
        links = "one-link" if inputs["placement"] == "none" else rng.choice(["uplinks", "uplinks", "one-link"])
        inputs["sharing"] = {"kind": links, "share": rng.choice([0.25, 0.5, 1.0])}
    return inputs


def listed(rng):
    """Draws the inputs of one run of listed jobs."""
    inputs = policies(rng, places(rng))
    jobs, at = [], 0.0
    for _ in range(rng.randint(2, 30)):
        at += rng.choice([0.0, 0.0, 0.5, 1.0, 2.0, 5.0])
        job = {"arrival": at, "run": rng.choice([1.0, 2.0, 2.5, 5.0, 8.0, 20.0])}
        if "torus" in inputs:
            job["shape"] = [rng.randint(1, side) for side in inputs["torus"]]
        else:
            job["npus"] = rng.choice([1, 1, 2, 3, 4, 6, inputs["npus"] // 2, inputs["npus"]])
        if some(rng, 0.3):
            job["estimate"] = job["run"] * rng.choice([0.5, 1.5, 2.0])
        if inputs["admission"] == "priority":
            job["class"] = rng.randint(0, 2)
        if "sharing" in inputs and some(rng, 0.3):
            job["share"] = rng.choice([0.25, 0.75])
        jobs.append(job)
    return inputs | {"jobs": jobs}


def generated(rng):
    """Draws the inputs of runs of generated jobs."""
    inputs = policies(rng, {key: value for key, value in places(rng).items() if key not in ("rotate", "wrap")})
    if "torus" in inputs:
        inputs = {key: value for key, value in inputs.items() if key != "torus"} | {
            "npus": 16,
            "placement": "packed",
            "leaf": 4,
        }
    classes, npus = [], inputs["npus"]
    num_classes = rng.choice([1, 1, 2, 3])
    for _ in range(num_classes):
        mean = rng.choice([1.0, 2.0, 5.0])
        sizes = rng.choice([1, 2, [1, 2, 4], [1, 1, npus // 2]])
        run = rng.choice(
            [
                mean,
                {"kind": "exponential", "mean": mean},
                {"kind": "uniform", "least": 0.0, "most": 2 * mean},
                {"kind": "mixture", "parts": [[0.75, 0.5 * mean], [0.25, 2.5 * mean]]},
                {"kind": "values", "values": [mean / 2, mean, mean * 1.5]},
            ]
        )
        size = sum(sizes) / len(sizes) if isinstance(sizes, list) else sizes
        load = rng.choice([0.3, 0.6, 0.85]) / num_classes
        job_class = {"rate": load * npus / (size * mean), "run": run, "npus": sizes}
        if some(rng, 0.3):
            job_class["overestimate"] = rng.choice([1.5, 3.0])
        classes.append(job_class)
    if "sharing" in inputs:
        for job_class in classes:
            job_class["rate"] /= 4
    return inputs | {
        "warm-up": rng.choice([0, 10]),
        "replications": 3,
        "seed": rng.randint(1, 1000),
        "generate": {"jobs": rng.choice([50, 200]), "classes": classes},
    }


def reconfiguration(rng):
    npus = rng.choice([4, 5, 6, 8, 12, 16])
    strides = [s for s in range(1, npus) if all(s % p or npus % p for p in range(2, npus + 1))]
    bandwidth = rng.choice([5e9, 1e10, 1.25e10, 5e10])
    return {
        "npus": npus,
        "bytes": float(npus * rng.choice([1_000_000, 8_000_000, 125_000_000])),
        "bandwidth": bandwidth,
        "latency": rng.choice([5e-7, 1e-6, 2e-6]),
        "switching": rng.choice([0.0, 1e-5, 1e-3, 2.5e-2]),
        "phases": [f"ring stride {rng.choice(strides)}" for _ in range(2)],
        "collective": "all-reduce",
        "algorithm": "ring",
    }


KINDS = {
    "campaign-timeline": lambda rng: campaign(rng, True),
    "campaign-replications": lambda rng: campaign(rng, False),
    "cluster-schedule": listed,
    "cluster-replications": generated,
    "cluster-reconfiguration": reconfiguration,
}


def case(kind, seed):
    """Returns the case of a kind and a seed, without what is expected of it."""
    return {"id": f"{kind}-{seed}", "kind": kind, "inputs": KINDS[kind](random.Random(f"{kind} {seed}"))}
