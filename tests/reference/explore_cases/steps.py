"""Steps of Megatron's GPT models on servers of 8 A100, as papers measured them, and how well simulated ones rank them."""
import concurrent.futures
import json
import pathlib
import tempfile

import h5py
import harness

SYSTEM = "dgx-a100-superpod"
STACK = "stack: a100-megatron\n"


def network(gpus, nic="200 Gb/s"):
    """Servers of 8 with a NIC for each GPU, or one smaller server."""
    dimensions = [{"shape": "Switch", "size": min(8, gpus), "bandwidth": "300 GB/s", "latency": "500 ns"}]
    if gpus > 8:
        dimensions.append({"shape": "Switch", "size": gpus // 8, "bandwidth": nic, "latency": "1 us"})
    return {"base": SYSTEM, "network": {"dimensions": dimensions}}


def gpt(layers, hidden, heads, sequence=2048, vocabulary=51200):
    """A GPT model of Megatron-LM. JSON is YAML too."""
    return {
        "kind": "transformer",
        "biases": True,
        "dropout": True,
        "learned-positions": True,
        "tied-embeddings": True,
        "fused-attention": False,
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "sequence": sequence,
        "vocabulary": vocabulary,
    }


def config(gpus, model, parallel, compute=None, nic="200 Gb/s"):
    """CONFIG.yaml with the stack a100-megatron, and these keys of system.compute."""
    workload = {"model": model, "parallel": {"gradients": "fp32", **parallel}}
    system = {**network(gpus, nic), **({"compute": compute} if compute else {})}
    return f"{STACK}system: {json.dumps(system)}\nworkload: {json.dumps(workload)}\n"


def metrics_of(text, names=("step_time",), *arguments):
    """These metrics of a configuration, in the units of /metrics. Throws ValueError with the message where the program refuses it."""
    with tempfile.TemporaryDirectory(prefix="orrery-explore-") as name:
        folder = pathlib.Path(name)
        (folder / "config.yaml").write_text(text)
        done = harness.orrery(
            "run",
            folder / "config.yaml",
            "--fold",
            "--record-iterations=0",
            "--memory=report",
            "--progress=none",
            f"--output={folder / 'results.h5'}",
            *arguments,
        )
        if done.code:
            raise ValueError(done.err.strip()[:300])
        with h5py.File(folder / "results.h5") as results:
            return [results["/metrics"][metric][()] for metric in names]


def seconds(texts):
    """The step times of configurations in seconds."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [float(found[0]) * 1e-12 for found in pool.map(metrics_of, texts)]


def ranks(values):
    """The rank of each value; equal ones have the mean of theirs."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def spearman(left, right):
    """The correlation of the ranks; 0 where one side has only one rank."""
    left, right = ranks(left), ranks(right)
    middle = (len(left) - 1) / 2
    product = sum((a - middle) * (b - middle) for a, b in zip(left, right))
    size = (sum((a - middle) ** 2 for a in left) * sum((b - middle) ** 2 for b in right)) ** 0.5
    return product / size if size else 0.0


def regret(simulated, measured, k=1):
    """By how much the best of the k that are best in simulation is measured above the best of all."""
    picks = sorted(range(len(simulated)), key=simulated.__getitem__)[:k]
    return min(measured[i] for i in picks) / min(measured) - 1
