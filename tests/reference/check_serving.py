#!/usr/bin/python3
"""Runs the cases of a folder for serving with orrery: check_serving.py FOLDER [--kind KIND] [--ranks 1,2].

Every cases.json or cases.json.gz below the folder is a list of cases {"id", "kind", "inputs", "expected", "tolerance"}.
Each case becomes a CONFIG.yaml, and its results are those of `orrery run`. Prints one line for each case, and then
"N passed, M failed".
"""
import argparse
import csv
import glob
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

import h5py

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PS_MS, PS_US = 10**9, 10**6
VLLM_GRAPHS = [1, 2, 4] + list(range(8, 257, 8)) + list(range(272, 513, 16))


class Failure(Exception):
    """A run of orrery that failed."""


class Runner:
    """Runs configurations in a folder of its own."""

    def __init__(self, program, ranks):
        self.program, self.ranks = program, ranks
        self.folder = tempfile.mkdtemp(prefix="serving-")
        self.base = self.top = ""  # folders of the cases at hand, and of all of them
        self.batches = None  # public ones, once they have been read

    def path(self, name):
        """Returns the name of a file beside the cases."""
        return os.path.join(self.base, name)

    def tables(self, system):
        """Returns the folder of AIConfigurator's tables of a system; none if there is none."""
        for folder in (os.path.join(self.base, "tables"), os.path.join(self.top, "silicon", "tables")):
            name = os.path.join(folder, f"{system}-vllm-{TABLES_OF}")
            if os.path.isdir(name):
                return name
        return None

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def run(self, serving, ranks=1, system=None):
        """Returns the open results of a configuration, mappings of what stands below `serving` and `system`."""
        config = self.write("config.yaml", json.dumps({"serving": serving, **({"system": system} if system else {})}))
        output = os.path.join(self.folder, "results.h5")
        command = [self.program, "run", config, "--output", output, "--force", "--quiet"]
        if ranks > 1:
            command = [os.path.join(ROOT, "scripts", "mpirun.sh"), str(ranks)] + command
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
        if done.returncode != 0:
            raise Failure(f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        return h5py.File(output, "r")


def times(ps):
    """Returns a time as a configuration has it."""
    return f"{int(ps)} ps" if ps % 1000 else f"{int(ps) // 1000} ns"


# ------------------------------------------------------------------------------------------------ step by step
def rows_of(requests):
    """Returns the requests as rows of a CSV in the order of arrival, and the ids that the rows stand for."""
    order, placed = [], set()
    waiting = sorted((r for r in requests if r.get("after") is None), key=lambda r: r["arrival_ps"])
    left = [r for r in requests if r.get("after") is not None]
    for r in waiting:
        order.append(r)
        placed.add(r["id"])
    while left:
        ready = [r for r in left if r["after"] in placed]
        if not ready:
            raise Failure("requests wait for each other in a circle")
        order += ready
        placed |= {r["id"] for r in ready}
        left = [r for r in left if r["id"] not in placed]
    row_of = {r["id"]: i for i, r in enumerate(order)}
    lines = ["arrival,prompt,output,session,after,think,hashes"]
    for r in order:
        after = "" if r.get("after") is None else row_of[r["after"]]
        think = "" if after == "" else f"{r.get('think_ps', 0)} ps"
        arrival = f"{r['arrival_ps']} ps" if after == "" else ""
        session = r.get("session")
        hashes = " ".join(str(x) for x in r.get("hash_ids", []))
        lines.append(
            f"{arrival},{r['prompt']},{r['output']},{'' if session is None else session},{after},{think},{hashes}"
        )
    return "\n".join(lines) + "\n", [r["id"] for r in order]


def scheduler_options(instance):
    """Returns `scheduler` of an instance of the cases, whose defaults differ from those of a configuration."""
    return {
        "max-seqs": instance.get("max_num_seqs", 128),
        "max-tokens": instance.get("max_num_batched_tokens", 2048),
        "block": instance.get("block", 16),
        "prefix-cache": instance.get("prefix_cache", False),
        "ahead": instance.get("schedule_ahead", False),
        "reserve-full": instance.get("reserve_full", True),
        "long-prefill": instance.get("long_prefill_threshold", 0),
        "watermark": instance.get("watermark_blocks", 0),
        "max-length": instance.get("max_model_len", 0),
    }


def scheduler_config(runner, inputs):
    text, ids = rows_of(inputs["requests"])
    instance, roles = inputs.get("instance", {}), inputs.get("roles", ["both"])
    blocks = instance["blocks"]
    if inputs.get("lockstep"):
        instances = [{"parallel": {"dp": len(roles)}, "kv-blocks": blocks, "role": roles[0]}]
    else:
        instances = [{"name": f"i{n}", "role": role, "kv-blocks": blocks} for n, role in enumerate(roles)]
    cost = inputs["cost"]
    serving = {
        "requests": {"file": runner.write("requests.csv", text), "format": "orrery"},
        "router": {
            "policy": inputs.get("router") or "round-robin",
            "dispatch": times(inputs.get("dispatch_ps", 0)),
            "report": times(inputs.get("report_ps", 0)),
        },
        "scheduler": scheduler_options(instance),
        "instances": instances,
        "step": {
            "model": "linear",
            "linear": {k: times(cost.get(f"{k}_ps", 0)) for k in ("base", "token", "sequence", "context")},
        },
        "record": {"steps": True},
    }
    if "network" in inputs:
        serving["transfer"] = {
            "bandwidth": f"{inputs['network']['bandwidth']} B/s",
            "latency": times(inputs["network"]["latency_ps"]),
        }
    if inputs.get("stages"):  # of random lists
        serving["model"] = {"layers": inputs["layers"], "hidden": inputs["hidden"], "heads": 1, "sequence": 1024}
        serving["step"]["ring"] = {"bandwidth": f"{inputs['stage_bandwidth']} B/s", "latency": "3 us"}
        for each in instances:
            each["parallel"] = {"pp": inputs["stages"]}
        if inputs.get("by_layer"):
            serving["transfer"]["send"] = "layers"
    if inputs.get("kv_bytes_per_token"):
        serving["kv-bytes-per-token"] = inputs["kv_bytes_per_token"]
    return serving, ids


def steps_of(results, ids):
    steps = {
        k: results["steps"][k][:].tolist()
        for k in ("instance", "number", "scheduled", "start", "end", "used_blocks", "items", "preempted")
    }
    items = list(zip(*(results["steps_items"][k][:].tolist() for k in ("request", "tokens", "context"))))
    preempted = results["steps_preempted/request"][:].tolist()
    out, at, gone = [], 0, 0
    for i in range(len(steps["instance"])):
        many, lost = steps["items"][i], steps["preempted"][i]
        out.append(
            {
                "instance": steps["instance"][i],
                "step": steps["number"][i],
                "scheduled_us": steps["scheduled"][i] / PS_US,
                "start_us": steps["start"][i] / PS_US,
                "end_us": steps["end"][i] / PS_US,
                "items": [[ids[r], n, c] for r, n, c in items[at : at + many]],
                "preempted": [ids[r] for r in preempted[gone : gone + lost]],
                "used_blocks": steps["used_blocks"][i],
            }
        )
        at, gone = at + many, gone + lost
    return out


def requests_of(results, ids):
    table = {
        k: results["requests"][k][:].tolist()
        for k in (
            "instance",
            "decode_instance",
            "scheduled",
            "first",
            "last",
            "prefix_hit",
            "preemptions",
            "lost",
            "transferred",
        )
    }
    out = {}
    for i, name in enumerate(ids):
        decode = table["decode_instance"][i]
        out[name] = {
            "id": name,
            "instance": table["instance"][i],
            "decode_instance": None if decode < 0 else decode,
            "scheduled_us": table["scheduled"][i] / PS_US,
            "first_us": table["first"][i] / PS_US,
            "last_us": table["last"][i] / PS_US,
            "prefix_hit": table["prefix_hit"][i],
            "preemptions": table["preemptions"][i],
            "lost": table["lost"][i],
            "transferred": table["transferred"][i],
        }
    return out


def difference(found, expected, tolerance):
    """Returns the first place in which two nests differ, or none; numbers may differ by the tolerance."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            if key not in found:
                return f"{key} is missing"
            inner = difference(found[key], value, tolerance if key.endswith("_us") else 0)
            if inner:
                return f"{key}: {inner}"
        return None
    if isinstance(expected, list):
        if len(found) != len(expected):
            return f"{len(found)} entries instead of {len(expected)}"
        for i, (a, b) in enumerate(zip(found, expected)):
            inner = difference(a, b, tolerance)
            if inner:
                return f"{i}: {inner}"
        return None
    if isinstance(expected, (int, float)) and not isinstance(expected, bool) and found is not None:
        return None if abs(found - expected) <= tolerance else f"{found} instead of {expected}"
    return None if found == expected else f"{found} instead of {expected}"


def compare_schedule(results, ids, expected, tolerance):
    by_step = lambda s: (s["instance"], s["step"])
    requests = requests_of(results, ids)
    found = {
        "steps": sorted(steps_of(results, ids), key=by_step),
        "requests": [requests[r["id"]] for r in expected["requests"]],
        "blocks_in_use_at_end": int(sum(results["instances/blocks_in_use_at_end"][:])),
        "output_tokens": int(results["serving"].attrs["output_tokens"]),
    }
    wanted = dict(expected, steps=sorted(expected["steps"], key=by_step))
    return difference(found, wanted, tolerance)


def scheduler(runner, case):
    serving, ids = scheduler_config(runner, case["inputs"])
    tolerance = case.get("tolerance") or {}
    for ranks in runner.ranks:
        with runner.run(serving, ranks) as results:
            wrong = compare_schedule(
                results, ids, case["expected"], tolerance.get("us", 0) if isinstance(tolerance, dict) else 0
            )
        if wrong:
            return False, f"{ranks} ranks: {wrong}"
    return True, f"{len(case['expected']['steps'])} steps"


# ------------------------------------------------------------------------------------------------ numbers
def within(found, expected, tolerance):
    """Says whether a number is within a tolerance, which is 0, a number, or {'relative' or 'absolute' or ...}."""
    if not isinstance(tolerance, dict):
        return abs(found - expected) <= (tolerance or 0)
    allowed = 0
    for kind, value in tolerance.items():
        if value is not None:
            allowed = max(allowed, value * abs(expected) if kind == "relative" else value)
    return abs(found - expected) <= allowed


def one_request(**more):
    """Returns the smallest configuration: one request, linear steps."""
    serving = {
        "requests": {"arrivals": "constant", "count": 1, "prompt": 16, "output": 1},
        "step": {"model": "linear", "linear": {"base": "1 ms"}},
        "instances": [{"kv-blocks": 1000}],
    }
    serving.update(more)
    return serving


def kv_bytes_per_token(runner, case):
    i = case["inputs"]
    formats = {2: "bf16", 1: "fp8", 0.5625: "fp4"}
    model = {
        "layers": i["layers"],
        "hidden": i.get("kv_heads", 128) * i.get("head_dim", 128),
        "heads": i.get("kv_heads", 128),
        "head-size": i.get("head_dim", 128),
        "sequence": 1024,
    }
    if "latent" in i:
        model["latent"] = {"key-value": i["latent"], "rotary": i["rotary"]}
    if i["width"] not in formats:
        return None, f"width {i['width']}"
    with runner.run(one_request(model=model, precision={"kv": formats[i["width"]]})) as results:
        found = int(results["serving"].attrs["kv_bytes_per_token"])
    return within(found, case["expected"]["bytes"], case.get("tolerance")), f"{found} bytes"


def kv_capacity(runner, case):
    i = case["inputs"]
    instance = {"parallel": {"tp": i["gpus"]}, "memory-share": i["utilisation"], "reserve": "0 B"}
    serving = one_request(
        instances=[instance], memory=f"{int(i['memory'])} B", weights=int(i["weights"]), scheduler={"block": i["block"]}
    )
    serving["kv-bytes-per-token"] = int(i["kv_bytes_per_token"])
    with runner.run(serving) as results:
        found = int(results["instances/blocks"][0]) * i["block"]
    return (
        within(found, case["expected"]["tokens"], case["tolerance"]),
        f"{found} tokens of {case['expected']['tokens']}",
    )


def request_format(runner, case):
    i, expected = case["inputs"], case["expected"]
    block = i.get("block", 16)
    serving = one_request(
        requests={"file": runner.path(i["file"]), "format": i["format"]},
        scheduler={"block": block, "max-tokens": 1 << 20, "max-seqs": 4096},
        instances=[{"kv-blocks": 1 << 22}],
    )
    with runner.run(serving) as results:
        attrs = dict(results["serving"].attrs)
        table = {
            k: results["requests"][k][:].tolist() for k in ("arrival", "prompt", "output", "session", "prefix_hit")
        }
    found = {
        "requests": int(attrs["requests"]),
        "input_tokens": int(attrs["input_tokens"]),
        "output_tokens": int(attrs["output_tokens"]),
        "last_arrival_ps": int(attrs["last_arrival"]),
        "last_arrival_ns": attrs["last_arrival"] / 1000,
        "last_arrival_ms": attrs["last_arrival"] / PS_MS,
        "last_arrival_us": attrs["last_arrival"] / PS_US,
        "last_arrival_s": attrs["last_arrival"] / 1e12,
        "prefix_hit_tokens_unlimited": int(attrs["prefix_hit_unlimited"]),
        "sessions": len({s for s in table["session"] if s >= 0}),
    }
    wrong = [
        f"{key} is {found.get(key)} instead of {value}"
        for key, value in expected.items()
        if key not in found or not within(found[key], value, case.get("tolerance"))
    ]
    return not wrong, ", ".join(wrong) or f"{found['requests']} requests"


def queue(runner, case):
    i, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    if not i:  # Little's law, in a run with a queue
        serving = one_request(
            requests={"arrivals": "poisson", "rate": 80, "count": 20000, "prompt": 8, "output": 3},
            scheduler={"max-seqs": 2, "ahead": False},
            router={"dispatch": "0 ns", "report": "0 ns"},
        )
        serving["step"]["linear"]["base"] = "4 ms"
        with runner.run(serving) as results:
            table = {k: results["requests"][k][:] for k in ("arrival", "scheduled", "last")}
            end = int(results.attrs["simulated_time"])
            waiting, running = (results[f"instances/{k}_mean"][0] for k in ("waiting", "running"))
        in_queue = float(sum(int(x) for x in table["scheduled"] - table["arrival"])) / end
        in_run = float(sum(int(x) for x in table["last"] - table["scheduled"])) / end
        worst = max(abs(waiting / in_queue - 1), abs(running / in_run - 1))
        return worst <= tolerance["relative"], f"difference {worst:.1e}"
    if "users" in i:
        serving = one_request(
            requests={
                "arrivals": "closed",
                "users": i["users"],
                "count": i["users"] * i["rounds"],
                "prompt": i["prompt"],
                "output": i["output"],
            },
            scheduler={"ahead": i.get("schedule_ahead", False), "max-seqs": 1024, "max-tokens": 10**6},
            router={"dispatch": "0 ns", "report": "0 ns"},
            instances=[{"kv-blocks": 100000}],
        )
        serving["step"] = {
            "model": "linear",
            "linear": {"base": f"{i['base_us']} us", "sequence": f"{i['sequence_us']} us"},
        }
        with runner.run(serving) as results:
            found = int(results.attrs["simulated_time"]) / PS_US
            count = int(results["serving"].attrs["requests"])
        return (
            abs(found - expected["makespan_us"]) <= tolerance["us"] and count == expected.get("requests", count),
            f"{found} us",
        )
    drawn = isinstance(i["step_ms"], str)
    step = float(i["step_ms"].split()[-1]) if drawn else i["step_ms"]
    serving = one_request(
        requests={
            "arrivals": i["arrivals"],
            "rate": i["rate_per_s"],
            "count": i["requests"],
            "prompt": 8,
            "output": i.get("output", 1),
        },
        scheduler={"max-seqs": i.get("max_num_seqs", 1), "ahead": False},
        router={"dispatch": "0 ns", "report": "0 ns"},
    )
    serving["step"] = {"model": "linear", "linear": {"base": f"{step} ms", "exponential": drawn}}
    with runner.run(serving) as results:
        sojourn = results["serving"].attrs["latency_mean"] / PS_MS
        wait = float((results["requests/scheduled"][:] - results["requests/arrival"][:]).mean()) / PS_MS
    if "mean_wait_ms" in expected:
        return within(wait, expected["mean_wait_ms"], tolerance), f"mean wait {wait:.4f} ms"
    return within(sojourn, expected["mean_sojourn_ms"], tolerance), f"mean sojourn {sojourn:.4f} ms"


def linear_step(runner, case):
    """One step with these prompts and these requests that generate."""
    i, expected = case["inputs"], case["expected"]
    k = i["coefficients_ms"]
    decode, prefill = i["decode"], i["prefill"]
    # The requests that generate are prefilled in step 0 and generate in step 1, which the prompts join.
    lines = ["arrival,prompt,output"] + [f"0 ps,{n},2" for n in decode]
    lines += [f"{1 if decode else 0} ps,{n},1" for n in prefill]
    serving = one_request(
        requests={"file": runner.write("requests.csv", "\n".join(lines) + "\n")},
        router={"dispatch": "0 ns", "report": "0 ns"},
        record={"steps": True},
        scheduler={"ahead": False, "prefix-cache": False, "max-seqs": 100000, "max-tokens": 1 << 30},
        instances=[{"kv-blocks": 1 << 24}],
    )
    serving["step"] = {
        "model": "fitted",
        "fitted": {
            "prefill": k["prefill"],
            "decode": k["decoding_smallbs"],
            "large-decode": k["decoding_largebs"],
            "threshold": k["decoding_large_small_bs_threshold"],
        },
    }
    with runner.run(serving) as results:
        last = 1 if decode else 0
        found = int(results["steps/end"][last] - results["steps/start"][last]) / PS_MS
    return within(found, expected["ms"], case["tolerance"]), f"{found} ms of {expected['ms']}"


def pd_split(runner, case):
    """The busy time of a prefill node and of a decode node with their tokens of one second."""
    i, expected = case["inputs"], case["expected"]
    # One request stands for all tokens; a node takes 1 / rate for each.
    prompts, outputs = i["input_tokens_per_day"] / 86400 / i["nodes"], i["output_tokens_per_day"] / 86400 / i["nodes"]
    shares = []
    for tokens, rate in ((prompts, i["prefill_tokens_per_node_s"]), (outputs, i["decode_tokens_per_node_s"])):
        count = max(1, round(tokens))
        serving = one_request(
            requests={"arrivals": "constant", "rate": 1, "count": 1, "prompt": count, "output": 1},
            scheduler={"max-tokens": count, "ahead": False, "prefix-cache": False},
            instances=[{"kv-blocks": count // 16 + 1}],
        )
        serving["step"] = {"model": "linear", "linear": {"token": f"{1e9 / rate:.6f} ns"}}
        with runner.run(serving) as results:
            shares.append(int(results["instances/busy_time"][0]) / 1e12)
    found = {"prefill_share": shares[0], "decode_share": shares[1]}
    wrong = [
        f"{k} is {found[k]} instead of {v}" for k, v in expected.items() if not within(found[k], v, case["tolerance"])
    ]
    return not wrong, ", ".join(wrong) or f"{shares[0]:.4f} {shares[1]:.4f}"


# ------------------------------------------------------------------------------------------------ measured runs
def model_of(m):
    """Returns a model of the cases as `serving.model` has it."""
    out = {
        "layers": m["layers"],
        "hidden": m["hidden"],
        "heads": m.get("heads", 1),
        "kv-heads": m.get("kv_heads", 0),
        "head-size": m.get("head_dim", 0),
        "ffn": m.get("expert_inter") or m.get("inter", 0),
        "vocabulary": m.get("vocabulary", 0),
        "sequence": 131072,
    }
    if m.get("experts"):
        out.update({"experts": m["experts"], "top-k": m["top"]})
    return out


def serving_run(runner, case):
    i = case["inputs"]
    engine, dp, tp = i["engine"], i.get("dp") or 1, i.get("tp") or 1
    name = runner.path(i["requests"])
    if not os.path.exists(name):
        name += ".gz"
    with gzip.open(name, "rt") if name.endswith(".gz") else open(name) as file:
        rows = list(csv.DictReader(file))
    rows.sort(key=lambda r: int(r["arrival_ns"]))
    lines = ["arrival,prompt,output,hashes"]
    lines += [f"{r['arrival_ns']} ns,{r['prompt']},{r['output']},{r.get('hash_ids') or ''}" for r in rows]
    serving = {
        "model": model_of(i["model"]),
        "requests": {"file": runner.write("requests.csv", "\n".join(lines) + "\n"), "format": "orrery"},
        "router": {"policy": i.get("router") or "round-robin", "dispatch": "0 ns", "report": "0 ns"},
        "scheduler": dict(scheduler_options(engine), block=i.get("block", 16)),
        "instances": [{"kv-blocks": engine["kv_blocks"], "parallel": {"tp": tp, "dp": dp, "ep": i.get("ep") or 1}}],
        "step": {
            "model": "profile",
            "tables": runner.path(i["profile"]),
            "skew": i.get("attention_skew", 0),
            "graph-sizes": i.get("graph_sizes") or "none",
        },
        "host": {"step": f"{i.get('host_us', 0)} us"},
    }
    if "network" in i:
        serving["step"]["ring"] = {
            "bandwidth": f"{i['network']['bandwidth']} B/s",
            "latency": f"{i['network']['latency_us']} us",
        }
    with runner.run(serving) as results:
        found = {f"{k}_ms": results["serving"].attrs[f"{k}_mean"] / PS_MS for k in ("ttft", "tpot", "latency")}
        wall = float(results.attrs["wall_time"])
    tolerance = case["tolerance"]
    text, good = [], True
    for key in ("ttft_ms", "tpot_ms", "latency_ms"):
        if key not in case["expected"]:
            continue
        error = found[key] / case["expected"][key]["mean"] - 1
        good = good and abs(error) <= tolerance[key]
        rival = case["expected"][key].get("rival_mean")
        text.append(
            f"{key[:-3]} {100 * error:+.2f} %"
            + (f" (rival {100 * (rival / case['expected'][key]['mean'] - 1):+.2f} %)" if rival else "")
        )
    return good, ", ".join(text) + f", {wall:.2f} s"


def sizes(hidden, layers, heads, kv_heads, vocabulary, inner, experts=0, top=0):
    """Returns a model with 128 values per head, whose MLPs, or experts, have `inner` values inside."""
    inside = {"experts": experts, "top": top, "expert_inter": inner} if experts else {"inter": inner}
    return dict(
        hidden=hidden, layers=layers, heads=heads, kv_heads=kv_heads, head_dim=128, vocabulary=vocabulary, **inside
    )


MODELS = {
    "Llama-3.1-70B": sizes(8192, 80, 64, 8, 128256, 28672),
    "Llama-3.1-70B-Instruct": sizes(8192, 80, 64, 8, 128256, 28672),
    "Llama-3.1-8B-Instruct": sizes(4096, 32, 32, 8, 128256, 14336),
    "Qwen3-32B": sizes(5120, 64, 64, 8, 151936, 25600),
    "Qwen3-14B": sizes(5120, 40, 40, 8, 151936, 17408),
    "Mistral-Nemo-Instruct-2407": sizes(5120, 40, 32, 8, 131072, 14336),
    "Qwen2.5-7B-Instruct": sizes(3584, 28, 28, 4, 152064, 18944),
    "Yi-34B": sizes(7168, 60, 56, 8, 64000, 20480),
    "CodeLlama-34b-Instruct-hf": sizes(8192, 48, 64, 8, 32000, 22016),
    "Llama-2-7b-hf": sizes(4096, 32, 32, 32, 32000, 11008),
    "Llama-2-70b-hf": sizes(8192, 80, 64, 8, 32000, 28672),
    "MiniMax-M2.5": sizes(3072, 62, 48, 8, 200064, 1536, experts=256, top=8),
    "Mixtral-8x7B-v0.1": sizes(4096, 32, 32, 8, 32000, 14336, experts=8, top=2),
    "Mixtral-8x22B-Instruct-v0.1": sizes(6144, 56, 48, 8, 32768, 16384, experts=8, top=2),
}
# The largest median errors of TPOT, by processors.
LIMITS_OF_SYSTEMS = {
    "h100_sxm": ("H100 and H200", 0.09),
    "h200_sxm": ("H100 and H200", 0.09),
    "b200_sxm": ("B200", 0.12),
}
TABLES_OF = "0.19.0"  # the version of vLLM whose operators the tables hold
HOST_OF_VLLM = {"step": "100 us"}  # section 11 of the specification: chosen on two runs of LLMServingSim
BANDWIDTHS = {"h100_sxm": 3.35e12, "h200_sxm": 4.8e12, "b200_sxm": 7.7e12, "b300_sxm": 7.7e12}
MEMORIES = {"h100_sxm": 80 * 2**30, "h200_sxm": 141e9, "b200_sxm": 180 * 2**30, "b300_sxm": 268 * 2**30}


def parameters(m):
    inner = m["inter"] if "inter" in m else m["expert_inter"] * m["experts"]
    return (
        m["layers"] * (m["hidden"] * (2 * m["heads"] + 2 * m["kv_heads"]) * m["head_dim"] + 3 * m["hidden"] * inner)
        + 2 * m["vocabulary"] * m["hidden"]
    )


def expert_parameters(m):
    return m["layers"] * 3 * m["hidden"] * m["expert_inter"] * m["experts"] if m.get("experts") else 0


def operators_of(runner, system, gemm, graphs):
    """Returns `step` for AIConfigurator's tables of a system."""
    return {
        "model": "operators",
        "tables": runner.tables(system),
        "products": gemm,
        "graph-sizes": graphs,
        "memory-bandwidth": f"{BANDWIDTHS[system]:.0f} B/s",
    }


def blocks_of(m, system, tp, weights, share=0.9):
    """Returns the KV blocks that weights of so many bytes and 2 GB of each NPU leave."""
    return int(
        (share * MEMORIES[system] * tp - weights - 2e9 * tp) // (16 * 4 * m["layers"] * m["kv_heads"] * m["head_dim"])
    )


def attributes_of(runner, serving):
    """Returns the metrics of a run, or none and why its tables or its memory do not allow it."""
    try:
        with runner.run(serving) as results:
            return dict(results["serving"].attrs), ""
    except Failure as failure:
        if not any(
            words in str(failure) for words in ("the tables have", "have no ", "KV blocks", "its table ends at")
        ):
            raise
        return None, str(failure)[-160:]


def closed_loop(runner, case):
    i = case["inputs"]
    system, m = i["system"], MODELS.get(i["model_path"].split("/")[-1])
    if i["backend"] != "vllm" or i["mode"] != "agg" or m is None or runner.tables(system) is None:
        return None, "neither tables of this system and software, nor a model of it"
    if i.get("backend_version", TABLES_OF) != TABLES_OF:
        return None, f"tables of vLLM {TABLES_OF} are not those of {i['backend_version']}"
    if i.get("precision") not in ("fp8", "fp4"):
        return None, "the precision is not stated, or has 16 bits"
    gemm = "nvfp4" if i["precision"] == "fp4" else "fp8_block" if m.get("experts") else "fp8"
    tp, pp, dp = int(i["tp_size"]), int(i.get("pp_size") or 1), int(i.get("attention_dp_size") or 1)
    users = i.get("concurrency", i["batch_size"] * dp)
    # The data-parallel ranks divide the experts.
    weights = parameters(m) - (1 - 1 / dp) * expert_parameters(m)
    blocks = blocks_of(m, system, tp * pp, weights * (0.56 if gemm == "nvfp4" else 1))
    serving = {
        "model": model_of(m),
        "requests": {"arrivals": "closed", "users": users, "count": 3 * users, "prompt": i["isl"], "output": i["osl"]},
        "router": {"policy": "vllm-dp" if dp > 1 else "round-robin", "dispatch": "0 ns", "report": "0 ns"},
        "scheduler": {"max-seqs": 1024, "max-tokens": 8192, "prefix-cache": False},
        "instances": [
            {
                "kv-blocks": blocks,
                "parallel": {
                    "tp": tp,
                    "pp": pp,
                    "dp": dp,
                    "ep": int(i.get("moe_ep_size", 1)) if m.get("experts") else 1,
                },
            }
        ],
        "step": operators_of(runner, system, gemm, [1, 2, 4] + list(range(8, 513, 8))),
        "host": HOST_OF_VLLM,
    }
    attrs, reason = attributes_of(runner, serving)
    if attrs is None:
        return None, reason
    found = attrs["tpot_mean"] / PS_MS
    error = found / case["expected"]["tpot_ms"] - 1
    return (
        Sampled(*LIMITS_OF_SYSTEMS.get(system, (system, None)), error, case["tolerance"]["tpot_ms_median_of_all"]),
        f"TPOT {found:.2f} ms of {case['expected']['tpot_ms']}, {100 * error:+.1f} %",
    )


# BLIS's repositories (github.com/inference-sim) publish the profile of inference-perf with which its runs of "general" were made: load of
# type constant at 8 requests/s, prompts of shared_prefix with 9 system prompts of 100 tokens and 447 more tokens, outputs of 248.
LIMIT_OF_BLIS = (
    0.16  # what is asked for; the tolerance of the cases is the error of BLIS, which knows the real requests
)
PROFILE_OF_BLIS = {"arrivals": "constant", "shared-prefix": {"tokens": 100, "groups": 9}}


def poisson_means(runner, case):
    """Runs with the stated rate and lengths. The specification fits the times of the host and of the front end."""
    i, expected = case["inputs"], case["expected"]
    m = MODELS.get(i["model"].split("/")[-1])
    system = "h100_sxm"
    if m is None or i["hardware"] != "H100" or runner.tables(system) is None:
        return None, "neither a model nor tables"
    if "rate_per_s" not in i:
        return None, "the rate is not stated"
    if i["precision"] not in ("FP16", "BF16", "FP8"):
        return None, i["precision"]
    fp8, tp = i["precision"] == "FP8", i["tp"]
    blocks = blocks_of(m, system, tp, parameters(m) * (1 if fp8 else 2), i.get("gpu_memory_utilisation", 0.9))
    serving = {
        "model": model_of(m),
        "requests": {
            "rate": i["rate_per_s"],
            "count": i["requests"],
            "prompt": i["prompt"],
            "output": i["output"],
            **PROFILE_OF_BLIS,
        },
        "router": {"dispatch": "0 ns", "report": "0 ns"},
        "scheduler": {"max-seqs": i["max_num_seqs"], "max-tokens": i["max_num_batched_tokens"]},
        "instances": [{"kv-blocks": blocks, "parallel": {"tp": tp}}],
        "host": {"step": "1 ms"},
        "front-end": "8 ms",
        "step": operators_of(runner, system, "fp8" if fp8 else "bfloat16", "vllm"),
    }
    attrs, reason = attributes_of(runner, serving)
    if attrs is None:
        return None, reason
    e2e = attrs["latency_mean"] / PS_MS / expected["e2e_mean"] - 1
    ttft = attrs["ttft_mean"] / PS_MS / expected["ttft_mean"] - 1
    return (
        Sampled("e2e", None, e2e, max(LIMIT_OF_BLIS, case["tolerance"]["mape_e2e_of_all"]), mean=True),
        f"e2e {100 * e2e:+.1f} %, TTFT {100 * ttft:+.1f} %",
    )


BLOOM = dict(hidden=14336, layers=70, heads=112, kv_heads=112, head_dim=128, inter=57344, vocabulary=250880)
BATCH_MODELS = {"llama2-70b": MODELS["Llama-2-70b-hf"], "bloom-176b": BLOOM}
PROCESSORS = {"a100-80gb": ("a100", 312, 2039, 300), "h100-80gb": ("h100", 989, 3350, 450)}


def sum_of_parts(case):
    """Returns what a measured batch takes by its own times of a prompt and of a token, in ms."""
    expected = case["expected"]
    return expected["prompt_ms"] + (case["inputs"]["output"] - 1) * expected["token_ms"]


def is_consistent(case):
    """Says whether the end-to-end time of a measured batch is the sum of its parts. It is shorter where answers ended
    before `output` tokens, and longer where the batch did not fit into the memory at once."""
    return abs(case["expected"]["e2e_ms"] / sum_of_parts(case) - 1) <= case["tolerance"]["relative"]


def public_batches(runner):
    """Returns the measured batches of the shared folder, which the specification lets everybody fit to."""
    if runner.batches is None:
        shared = os.environ.get("ORRERY_SHARED", os.path.join(ROOT, "..", "shared"))
        name = os.path.join(shared, "reference", "serving", "splitwise", "cases.json.gz")
        runner.batches = load(name) if os.path.exists(name) else []
    return runner.batches


def measured_batches(runner, case):
    """Writes the public batches of the model, the processor and the number of GPUs of a case, but not those of its own
    size. Returns the folder, or none if there are too few. Batches that did not fit into the memory are left out."""
    i, rows = case["inputs"], []
    for other in public_batches(runner):
        o = other["inputs"]
        if any(o[k] != i[k] for k in ("model", "hardware", "tp")) or other["expected"]["e2e_ms"] > 1.15 * sum_of_parts(
            other
        ):
            continue
        if (o["prompt"], o["batch"], o["output"]) != (i["prompt"], i["batch"], i["output"]):
            rows.append(f"{o['prompt']},{o['batch']},{other['expected']['prompt_ms']},{other['expected']['token_ms']}")
    if len(rows) < 3:
        return None
    folder = os.path.join(runner.folder, "batches")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "batches.csv"), "w") as file:
        file.write("prompt,batch,prompt_ms,token_ms\n" + "\n".join(rows) + "\n")
    return folder


def host_of_layer(runner, hardware):
    """Returns the time of the host for a layer, in which GPUs wait if they are fast. Single requests on 8 GPUs show it:
    there a token takes as long as on 4."""
    least = [
        c["expected"]["token_ms"] / BATCH_MODELS[c["inputs"]["model"]]["layers"]
        for c in public_batches(runner)
        if c["inputs"]["hardware"] == hardware
        and c["inputs"]["tp"] == 8
        and c["inputs"]["batch"] == 1
        and c["inputs"]["model"] in BATCH_MODELS
    ]
    return f"{1e6 * statistics.median(least):.0f} ns" if least else "0 ns"


def static_batch(runner, case):
    """One batch that is prefilled in one step, and then generates. Its steps take what the other public batches of its
    model and processor took, or what Orrery's own models say, where there are none. The end-to-end time is compared only if
    it is the sum of the measured parts."""
    i, expected = case["inputs"], case["expected"]
    m, hardware, tp = BATCH_MODELS.get(i["model"]), PROCESSORS.get(i["hardware"]), i["tp"]
    folder = measured_batches(runner, case)
    if folder is None and (m is None or hardware is None):
        return None, "neither public batches nor a model and a processor"
    consistent = "e2e_ms" not in expected or is_consistent(case)
    if not consistent and expected["e2e_ms"] > sum_of_parts(case):
        return (
            None,
            f"it did not fit at once: {expected['e2e_ms']:.0f} ms, and its parts take {sum_of_parts(case):.0f} ms",
        )
    lines = ["arrival,prompt,output"] + [f"0 ns,{i['prompt']},{i['output']}"] * i["batch"]
    serving = {
        "requests": {"file": runner.write("requests.csv", "\n".join(lines) + "\n")},
        "router": {"dispatch": "0 ns", "report": "0 ns"},
        "scheduler": {"ahead": False, "prefix-cache": False, "max-tokens": 1 << 24, "max-seqs": 1 << 16},
        "instances": [{"kv-blocks": 1 << 20, "parallel": {"tp": tp}}],
        "step": {"model": "batches", "tables": folder},
    }
    system = None
    if folder is None:
        serving["host"] = {"layer": host_of_layer(runner, i["hardware"])}
        name, peak, memory, link = hardware
        serving["model"] = dict(
            model_of(m), **({"gated": True, "rotary": True} if i["model"].startswith("llama") else {})
        )
        serving["step"] = {"model": "system", "ring": {"bandwidth": f"{link} GB/s", "latency": "2 us"}}
        system = {
            "network": {"dimensions": [{"shape": "Switch", "size": 8, "bandwidth": f"{link} GB/s", "latency": "1 us"}]},
            "compute": {
                "model": "products",
                "processor": name,
                "peak": f"{peak} TFLOPS",
                "local-memory": {"bandwidth": f"{memory} GB/s", "size": "80 GiB"},
            },
        }
    with runner.run(serving, system=system) as results:
        attrs = results["serving"].attrs
        found = {
            "prompt_ms": attrs["ttft_mean"] / PS_MS,
            "token_ms": attrs["tpot_mean"] / PS_MS,
            "e2e_ms": attrs["latency_mean"] / PS_MS,
        }
    compared = [
        k for k in expected if k in found and expected[k] and found[k] == found[k] and (consistent or k != "e2e_ms")
    ]
    errors = {k: found[k] / expected[k] - 1 for k in compared}
    good = bool(errors) and all(abs(e) <= case["tolerance"]["relative"] for e in errors.values())
    texts = [f"{k[:-3]} {found[k]:.1f} ms of {expected[k]:.1f}, {100 * e:+.1f} %" for k, e in errors.items()]
    return good, ", ".join(texts) + ("" if consistent else ", answers ended early")


class Sampled:
    """An error that is judged together with all others of its part of a kind, by their median or mean. `limit`: largest one allowed; if it is
    none, the tolerance of the case."""

    def __init__(self, part, limit, error, tolerance, mean=False):
        self.part, self.error, self.mean = part, error, mean
        self.allowed = tolerance if limit is None else limit


def ep_bound(runner, case):
    """A step of data-parallel ranks whose operators take no time: what is left is the exchange of the experts."""
    i, expected = case["inputs"], case["expected"]
    folder = os.path.join(runner.folder, "nothing")
    os.makedirs(folder, exist_ok=True)
    for name, text in {
        "dense.csv": "layer,tokens,time_us\nembedding,1,0\nfinal_layernorm,1,0\n",
        "per_sequence.csv": "layer,sequences,time_us\nlm_head,1,0\nsampler,1,0\n",
        "attention.csv": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,1,0\n16,0,0,0,0\n16,0,1,1,0\n",
        "moe.csv": "tokens,activated_experts,time_us\n1,1,0\n",
    }.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    tokens, ranks = i["tokens"], 2
    lines = ["arrival,prompt,output"] + ["0 ns,16,2"] * (tokens * ranks)
    serving = {
        "model": {
            "layers": i["layers"],
            "hidden": i["hidden"],
            "heads": 128,
            "head-size": 128,
            "sequence": 4096,
            "experts": 2 * i["experts"],
            "top-k": i["experts"],
            "ffn": 2048,
        },
        "requests": {"file": runner.write("requests.csv", "\n".join(lines) + "\n")},
        "router": {"dispatch": "0 ns", "report": "0 ns"},
        "record": {"steps": True},
        "scheduler": {"ahead": False, "prefix-cache": False, "max-tokens": 16 * tokens, "max-seqs": tokens},
        "instances": [{"kv-blocks": 4 * tokens, "parallel": {"dp": ranks, "ep": ranks}}],
        "step": {
            "model": "profile",
            "tables": folder,
            "ring": {"bandwidth": f"{i['bandwidth']:.0f} B/s", "latency": "0 ns"},
        },
        "experts": {
            "exchange": "each-expert",
            "dispatch-bytes": i["dispatch_bytes"],
            "combine-bytes": i["combine_bytes"],
        },
    }
    with runner.run(serving) as results:
        last = len(results["steps/end"]) - 1
        step = int(results["steps/end"][last] - results["steps/start"][last]) / PS_US
    found = {"layer_us": step / i["layers"], "token_ms": step * i["micro_batches"] / 1000}
    wrong = [
        f"{k} is {found[k]} instead of {v}" for k, v in expected.items() if not within(found[k], v, case["tolerance"])
    ]
    return not wrong, ", ".join(wrong) or f"{found['layer_us']:.3f} us"


KINDS = {
    f.__name__: f
    for f in (
        scheduler,
        kv_bytes_per_token,
        kv_capacity,
        request_format,
        queue,
        linear_step,
        pd_split,
        serving_run,
        closed_loop,
        poisson_means,
        ep_bound,
        static_batch,
    )
}


# ------------------------------------------------------------------------------------------------ random lists
def random_case(seed):
    """Returns the inputs of a random case: preemptions, shared beginnings, disaggregation, users who wait."""
    rnd = random.Random(seed)
    roles = rnd.choice(
        [
            ["both"],
            ["both"],
            ["both", "both"],
            ["both"] * 4,
            ["prefill", "decode"],
            ["prefill", "decode", "decode"],
            ["prefill", "prefill", "decode", "decode"],
        ]
    )
    blocks, block = rnd.choice([24, 40, 64, 200]), rnd.choice([16, 16, 8])
    instance = {
        "blocks": blocks,
        "block": block,
        "max_num_seqs": rnd.choice([1, 2, 4, 8, 64]),
        "max_num_batched_tokens": rnd.choice([32, 64, 128, 512]),
        "prefix_cache": rnd.random() < 0.6,
        "schedule_ahead": rnd.random() < 0.5,
        "reserve_full": rnd.random() < 0.5,
        "long_prefill_threshold": rnd.choice([0, 0, 0, 20, 50]),
        "watermark_blocks": rnd.choice([0, 0, 0, 2]),
    }
    inputs = {
        "cost": {
            "base_ps": rnd.choice([5_000_000_000, 1_000_000, 1]),
            "token_ps": 20_000_000,
            "sequence_ps": 10_000_000,
            "context_ps": 20_000,
        },
        "instance": instance,
        "roles": roles,
        "router": rnd.choice(["round-robin", "least-requests", "least-tokens", "vllm-dp", "prefix", "session"]),
    }
    if len(roles) > 1:
        inputs.update({"dispatch_ps": rnd.choice([1, 50_000_000]), "report_ps": rnd.choice([1, 30_000_000])})
    if "decode" in roles:
        inputs.update(
            {
                "network": {"bandwidth": rnd.choice([10**9, 10**10]), "latency_ps": 5_000_000},
                "kv_bytes_per_token": 131072,
            }
        )
    elif len(roles) > 1 and rnd.random() < 0.2:
        inputs["lockstep"] = True
    if inputs.get("lockstep"):
        inputs.update({"dispatch_ps": rnd.choice([0, 1000]), "report_ps": rnd.choice([0, 1000])})
    most = blocks * block - block
    requests, now, begin = [], 0, [[rnd.randrange(3) for _ in range(blocks)] for _ in range(2)]
    for k in range(rnd.randrange(3, 40)):
        prompt = rnd.randrange(1, max(2, most * 2 // 3))
        output = rnd.randrange(1, max(2, min(60, most - prompt)))
        now += rnd.choice([0, 0, rnd.randrange(20_000_000_000)])
        request = {"id": k, "arrival_ps": now, "prompt": prompt, "output": output, "session": rnd.randrange(5)}
        if rnd.random() < 0.7:
            group, own = rnd.choice(begin), rnd.randrange(blocks)
            text = [group[j] if j < own else 1000 + k for j in range(prompt // block)]
            request["hash_ids"] = [".".join(map(str, text[: j + 1])) for j in range(len(text))]
        if k > 2 and rnd.random() < 0.1:
            request.update({"after": rnd.randrange(k), "think_ps": rnd.choice([0, 1_000_000_000])})
        requests.append(request)
    inputs["requests"] = requests
    return inputs


def extended_case(seed):
    """Returns a random case with a pipeline, and perhaps with transfers by layers. No prompt fills its blocks, because the reference program
    does not know a transfer by layers of nothing."""
    rnd, inputs = random.Random(-seed), random_case(seed)
    inputs.pop("lockstep", None)
    inputs.update(
        {
            "stages": rnd.choice([1, 2, 2, 3, 4]),
            "layers": rnd.choice([4, 7, 12]),
            "hidden": rnd.choice([64, 4096]),
            "stage_bandwidth": rnd.choice([10**9, 10**11]),
            "by_layer": "decode" in inputs["roles"] and rnd.random() < 0.7,
        }
    )
    if len(inputs["roles"]) > 1:
        inputs["dispatch_ps"], inputs["report_ps"] = max(1, inputs["dispatch_ps"]), max(1, inputs["report_ps"])
    block = inputs["instance"]["block"]
    for request in inputs["requests"] if inputs["by_layer"] else []:
        if request["prompt"] % block == 0:
            request["prompt"] += 1
    return inputs


def extended_answer(inputs):
    """Returns the steps and requests of a case by the reference program with pipelines and transfers by layers."""
    from scheduler_cases import build
    from serving_extensions import activations, extend, whole_requests

    cluster, requests, instances = build(inputs)
    hop = activations(inputs["hidden"], 3 * PS_US, inputs["stage_bandwidth"])
    extend(cluster, inputs["stages"], hop, inputs["layers"] if inputs["by_layer"] else 0).run()
    whole_requests(requests)
    assert all(len(r.times) == r.output for r in requests) and all(i.pool.used() == 0 for i in instances)
    names = ("instance", "step", "scheduled_us", "start_us", "end_us", "items", "preempted", "used_blocks")
    return {
        "steps": [{k: step[k] for k in names} for step in cluster.log],
        "requests": [
            {
                "id": r.id,
                "instance": r.instance,
                "decode_instance": r.decode_instance,
                "first_us": r.first / PS_US,
                "last_us": r.last / PS_US,
                "prefix_hit": r.hit,
                "preemptions": r.preemptions,
                "lost": r.lost,
                "transferred": r.transferred,
            }
            for r in requests
        ],
        "blocks_in_use_at_end": 0,
        "output_tokens": sum(r.output for r in requests),
    }


def check_random(runner, folder, count, seed, extended):
    """Compares random lists with the reference program of a folder. Returns how many agree, and how many do not."""
    sys.path.insert(0, os.path.abspath(folder))
    from scheduler_cases import answer

    make, answer = (extended_case, extended_answer) if extended else (random_case, answer)
    counts = [0, 0]
    for number in range(seed, seed + count):
        inputs = make(number)
        try:
            expected = json.loads(json.dumps(answer(json.loads(json.dumps(inputs)))))
        except (AssertionError, ValueError, StopIteration, RecursionError) as error:
            print(f"skip random {number}: the reference program says {type(error).__name__}")
            continue
        try:
            good, text = scheduler(runner, {"inputs": inputs, "expected": expected, "tolerance": 0})
        except Failure as failure:
            good, text = False, str(failure)
        counts[0 if good else 1] += 1
        if not good:
            print(f"FAIL random {number}: {text}", flush=True)
    print(f"{count} random lists")
    return counts


def load(path):
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder",
        nargs="?",
        default=os.path.join(
            os.environ.get("ORRERY_SHARED", os.path.join(ROOT, "..", "shared")), "reference", "serving"
        ),
    )
    parser.add_argument("--kind", action="append", help="cases of this kind only")
    parser.add_argument("--id", action="append", help="cases whose ids contain this text")
    parser.add_argument("--ranks", default="1", help="numbers of ranks for the scheduler cases, such as 1,2,3,4,8")
    parser.add_argument(
        "--program", default=os.environ.get("ORRERY_BINARY", os.path.join(ROOT, "build", "release", "bin", "orrery"))
    )
    parser.add_argument(
        "--random",
        type=int,
        default=0,
        metavar="N",
        help="compare N random lists with the reference program of the folder instead",
    )
    parser.add_argument("--extended", action="store_true", help="random lists have pipelines, and transfers by layers")
    parser.add_argument("--seed", type=int, default=1, help="number of the first random list")
    options = parser.parse_args()
    if not os.path.isdir(options.folder):
        print(f"there is no folder {options.folder}")
        return 77
    runner = Runner(os.path.abspath(options.program), [int(r) for r in options.ranks.split(",")])
    runner.top = os.path.abspath(options.folder)
    if options.random:
        counts = check_random(runner, options.folder, options.random, options.seed, options.extended)
        print(f"{counts[0]} passed, {counts[1]} failed")
        return 0 if counts[0] and not counts[1] else 1
    counts, groups, skipped = [0, 0], {}, 0
    for path in sorted(glob.glob(os.path.join(options.folder, "**", "cases.json*"), recursive=True)):
        runner.base = os.path.dirname(os.path.abspath(path))
        for case in load(path):
            if options.kind and case["kind"] not in options.kind:
                continue
            if options.id and not any(i in case["id"] for i in options.id):
                continue
            run = KINDS.get(case["kind"])
            if run is None:
                good, text = None, "this kind is not known"
            else:
                try:
                    good, text = run(runner, case)
                except (Failure, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as error:
                    good, text = False, f"{type(error).__name__}: {error}"
            word = "skip" if good is None else "ok  " if good else "FAIL"
            if isinstance(good, Sampled):
                groups.setdefault((case["kind"], good.part), []).append(good)
                word = "...."
            elif good is None:
                skipped += 1
            else:
                counts[0 if good else 1] += 1
            print(f"{word} {case['kind']} {case['id']}: {text}", flush=True)
    judge(groups, counts)
    if not (sum(counts) or skipped):
        print("no case is found")
        return 1
    if skipped:
        print(f"{skipped} cases are skipped, for which there is no rule, table or model")
    print(f"{counts[0]} passed, {counts[1]} failed")
    return 1 if counts[1] else 0


def judge(groups, counts):
    """Judges the errors of each part of a kind, whose cases pass or fail together."""
    for (kind, part), all_of in sorted(groups.items()):
        word, center = ("mean", statistics.mean) if all_of[0].mean else ("median", statistics.median)
        figure = lambda cases: center([abs(each.error) for each in cases])
        good = figure(all_of) <= all_of[0].allowed
        counts[0 if good else 1] += len(all_of)
        print(
            f"{'ok  ' if good else 'FAIL'} {kind}: {len(all_of)} cases of {part}, {word} error"
            f" {100 * figure(all_of):.1f} %, at most {100 * all_of[0].allowed:.1f} %"
        )


if __name__ == "__main__":
    sys.exit(main())
