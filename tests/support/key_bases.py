"""Small configurations for tests that change one key at a time: each network, compute model, kind of workload and of input.

A base is a function of a folder, into which it writes the files that it names, and returns the mapping of its CONFIG.yaml. Each runs in
milliseconds and leaves as few keys idle as it can."""
import json
import pathlib

import chakra
import kineto
from chakra import Node

ROOFLINE = {"model": "roofline", "peak": "10 TFLOPS", "local-memory": {"bandwidth": "1000 GB/s", "latency": "80 ns"}}
MODEL = {"layers": 4, "hidden": 256, "heads": 8, "sequence": 64, "vocabulary": 1000}
PARALLEL = {"tp": 2, "dp": 2, "pp": 2, "micro-batches": 2, "zero": 1}
COLLECTIVES = {"chunks": 2, "active-chunks": 1}


def dimension(shape, size, **more):
    return {"shape": shape, "size": size, "bandwidth": "50 GB/s", "latency": "500 ns", **more}


def flits(shape, **more):
    """Returns a dimension of four NPUs that is simulated flit by flit, with buffers that fill."""
    return {"shape": shape, "size": [2, 2], "bandwidth": "50 GB/s", "flits": {"flit": "500 B", "buffer": 2, **more}}


def joined(mapping, more):
    """Returns a mapping with what `more` has beside it or in place of it, at all depths; None in `more` removes a key."""
    result = dict(mapping)
    for key, value in more.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = joined(result[key], value)
        else:
            result[key] = value
    return result


def step(network=None, system=None, model=None, parallel=None, **more):
    """Returns a training step of a transformer on 2 x 2 x 2 NPUs, with these keys beside or in place of its own."""
    config = {
        "system": {
            "network": {"dimensions": [dimension("FullyConnected", 2), dimension("Ring", 4)]},
            "collectives": COLLECTIVES,
            "compute": ROOFLINE,
        },
        "workload": {"model": MODEL, "parallel": PARALLEL},
    }
    return joined(
        config,
        {
            "system": {"network": network or {}, **(system or {})},
            "workload": {"model": model or {}, "parallel": parallel or {}},
            **more,
        },
    )


# Four hosts behind two leaves and two spines, whose links are slower than those of the hosts: flows share them and may choose.
LEAVES = {
    "hosts": 4,
    "switches": 4,
    "links": [
        [0, 4, "100 Gb/s", "1 us"],
        [1, 4, "100 Gb/s", "1 us"],
        [2, 5, "100 Gb/s", "1 us"],
        [3, 5, "100 Gb/s", "1 us"],
        [4, 6, "40 Gb/s", "1 us"],
        [4, 7, "40 Gb/s", "1 us"],
        [5, 6, "40 Gb/s", "1 us"],
        [5, 7, "40 Gb/s", "1 us"],
    ],
}


def all_pairs(folder, size=40_000, npus=4):
    """Writes traces in which each NPU sends a message to each other one at once."""

    def message(source, destination):
        """Returns the attributes of a message. Each NPU receives messages of one size, which grows with its number."""
        return {
            "comm_src": source,
            "comm_dst": destination,
            "comm_size": size * (1 + destination),
            "comm_tag": source * npus + destination,
        }

    for npu in range(npus):
        others = [other for other in range(npus) if other != npu]
        sends = [Node(10 + other, chakra.SEND, **message(npu, other)) for other in others]
        receives = [Node(20 + other, chakra.RECV, **message(other, npu)) for other in others]
        chakra.write(folder / f"pairs.{npu}.et", [Node(1, chakra.COMP, duration=1)] + sends + receives)
    return {"traces": "pairs"}


def packets(**rules):
    """Returns the base of a packet network: all hosts of LEAVES send to each other, and queues fill."""

    def base(folder):
        network = {
            "model": "packet",
            "graph": LEAVES,
            "dimensions": [{"shape": "Switch", "size": 4}],
            "packets": {"buffer": "60 kB", "payload": "1000 B", **rules},
        }
        return {"system": {"network": network, "communication": {"streams": 8}}, "workload": all_pairs(folder)}

    return base


def reductions(folder):
    """Two all-reduces at a time in the switches of LEAVES, in two chunks."""
    for npu in range(4):
        nodes = [Node(1, chakra.COMP, duration=1 + npu)]
        nodes += [
            Node(2 + copy, chakra.COLL, data_deps=[1], comm_type=chakra.ALL_REDUCE, comm_size=80_000 * (1 + copy))
            for copy in range(2)
        ]
        chakra.write(folder / f"reductions.{npu}.et", nodes)
    network = {
        "model": "packet",
        "graph": LEAVES,
        "dimensions": [{"shape": "Switch", "size": 4, "in-switch-operations": 4}],
        "packets": {"payload": "1000 B", "reduction": {"trees": 2, "most-trees": 4, "slots": 32}},
    }
    system = {
        "network": network,
        "collectives": {"all-reduce": ["inSwitch"], "chunks": 2, "active-chunks": 2},
        "communication": {"streams": 2},
    }
    return {"system": system, "workload": {"traces": "reductions"}}


MARKS = [["100 Gb/s", "4 kB", "20 kB", 0.5]]


def packets_of_shapes(folder):
    """A packet network on the links of shapes."""
    network = {
        "model": "packet",
        "dimensions": [dimension("FatTree", 8, ports=4, bandwidth="10 GB/s")],
        "packets": {"buffer": "60 kB"},
    }
    return {"system": {"network": network, "communication": {"streams": 8}}, "workload": all_pairs(folder, 20_000, 8)}


def collectives(folder, npus=8):
    """Writes traces with each kind of collective, two at a time, and with reads of remote memory."""
    kinds = ("ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "ALL_TO_ALL", "BROADCAST", "REDUCE")
    for npu in range(npus):
        nodes = [Node(1, chakra.COMP, num_ops=1_000_000 * (1 + npu), tensor_size=4096)]
        for number, kind in enumerate(kinds):
            root = {"root": 0} if kind in ("BROADCAST", "REDUCE") else {}
            nodes += [
                Node(
                    10 + 2 * number + copy,
                    chakra.COLL,
                    data_deps=[1] if number == 0 else [10 + 2 * number - 2],
                    comm_type=getattr(chakra, kind),
                    comm_size=65536 * (1 + copy),
                    **root,
                )
                for copy in range(2)
            ]
        nodes += [
            Node(50, chakra.MEM_LOAD, tensor_size=100_000),
            Node(51, chakra.MEM_STORE, tensor_size=50_000, data_deps=[50]),
        ]
        nodes += [Node(60, chakra.COMP, num_ops=2_000_000, tensor_size=100_000, data_deps=[51])]
        chakra.write(folder / f"kinds.{npu}.et", nodes)
    return {"traces": "kinds"}


def traces(network=None, **system):
    """Returns the base of traces with all kinds of nodes."""

    def base(folder):
        parts = {
            "network": {"dimensions": [dimension("FullyConnected", 2), dimension("Ring", 4)], **(network or {})},
            "collectives": COLLECTIVES,
            "compute": ROOFLINE,
            "communication": {"streams": 2},
            "remote-memory": {"kind": "per-npu", "bandwidth": "10 GB/s", "latency": "1 us"},
        }
        return {"system": joined(parts, system), "workload": collectives(folder)}

    return base


def recorded(folder):
    """Recordings of PyTorch's profiler."""
    for rank in range(2):
        kineto.write(
            folder / f"trace.{rank}.json",
            kineto.step(1000, 300 * rank) + kineto.step(20000, 100 * rank, number=8),
            rank,
            2,
        )
    return {"system": {"network": {"dimensions": [dimension("Ring", 2)]}}, "workload": {"traces": "trace.{npu}.json"}}


def layers(folder):
    return {
        "system": {"network": {"dimensions": [dimension("Ring", 4)]}},
        "workload": {
            "model": {
                "kind": "layers",
                "layers": [
                    {
                        "name": "a",
                        "forward": "1 ms",
                        "backward": "2 ms",
                        "update": "1 us",
                        "repeat": 2,
                        "parameters": 1_000_000,
                    },
                    {"name": "b", "forward": "1 ms", "backward": "2 ms", "parameters": 1_000_000, "activations": 1000},
                ],
                "late": {"first": "1 us", "step": "1 us", "stride": 3},
            },
            "parallel": {"dp": 4},
        },
    }


def layers_with_work(folder):
    layer = {"parameters": 1_000_000, "flops": 100_000_000, "activations": 100_000}
    return {
        "system": {"network": {"dimensions": [dimension("Ring", 4)]}, "compute": ROOFLINE},
        "workload": {"model": {"kind": "layers", "layers": [layer, layer]}, "parallel": {"dp": 4, "micro-batches": 2}},
    }


def dlrm(folder):
    model = {
        "kind": "dlrm",
        "bottom": [64, 32],
        "tables": [10000, {"rows": 4000, "pooling": 20, "sharding": "row", "width": 64}, 500, 300, 200],
        "poolings": [3, 2, 1, 2, 6],
        "cross-layers": 2,
        "cross-rank": 16,
        "top": [64, 1],
        "dense-features": 13,
    }
    return {
        "system": {"network": {"dimensions": [dimension("Switch", 4)]}, "compute": ROOFLINE},
        "workload": {
            "model": model,
            "parallel": {"dp": 4, "micro-batch": 64, "table-sharding": "column", "table-balance": "lookups"},
        },
    }


EXPERTS = {
    "experts": 4,
    "top-k": 2,
    "shared-experts": 1,
    "dense-layers": 1,
    "dense-ffn": 512,
    "ffn": 256,
    "gated": True,
}
LATENT = {"latent": {"query": 64, "key-value": 32, "rotary": 16, "value": 32}, "head-size": 32, "rotary": True}


def stack(name):
    return str(pathlib.Path(__file__).resolve().parents[2] / "configs/stacks" / f"{name}.yaml")


def jobs(folder):
    workload = {"model": MODEL, "parallel": {"tp": 2, "dp": 2}}
    return {
        "system": {
            "network": {"model": "congestion-aware", "dimensions": [dimension("Ring", 8)]},
            "compute": ROOFLINE,
            "collectives": COLLECTIVES,
        },
        "jobs": [
            {"name": "a", "npus": 4, "allocation": "random", "workload": workload},
            {
                "name": "b",
                "allocation": [0, 2, 4, 6],
                "start": "10 us",
                "workload": joined(workload, {"parallel": {"dp": 4, "tp": 1}}),
            },
        ],
        "run": {"jobs-alone": True},
    }


def distribution(**what):
    return {"perturbation": {"distributions": [what]}}


COST = {
    "source": "a list",
    "date": "2024-08",
    "npu": {"price": 30000, "memory": 12, "busy-power": 700, "idle-power": 100, "rent": 2},
    "host": {"npus": 4, "price": 1000, "cables": 10, "facility": 10, "power": 400},
    "network": [
        {
            "name": "node",
            "link": 4,
            "switch": 13,
            "nic": 3,
            "switch-price": 400,
            "switch-ports": 4,
            "switch-power": 100,
            "nic-power": 5,
        },
        {"name": "pod", "link": 7, "switch": 20, "nic": 40},
    ],
    "tiers": ["node", "pod"],
    "operation": {"pue": 1.2, "electricity": 0.1, "lifetime": 4, "utilisation": 0.9},
}

PRODUCTS = {"model": "products", "processor": "h100"}
SYSTOLIC = {
    "model": "systolic",
    "array": {
        "rows": 16,
        "columns": 16,
        "cycle": "1 ns",
        "input-buffer": "64 KiB",
        "filter-buffer": "64 KiB",
        "output-buffer": "64 KiB",
        "bandwidth": "1 GB/s",
        "value": "2 B",
    },
}


def gpu(network, **more):
    """Returns the base of GPUs that execute a plan of MSCCL++: an all-reduce in which two of them put and add."""

    def base(folder):
        (folder / "plan.json").write_text(json.dumps(PLAN))
        for npu in range(2):
            chakra.write(
                folder / f"w.{npu}.et",
                [
                    Node(1, chakra.COMP, duration=1 + npu),
                    Node(2, chakra.COLL, data_deps=[1], comm_type=chakra.ALL_REDUCE, comm_size=65536),
                    Node(3, chakra.COMP, duration=20),
                ],
            )
        return {
            "system": {
                "network": {**network, "dimensions": [dimension("Switch", 2)]},
                "gpu": {"profile": "h100", **more},
                "communication": {"streams": 2},
                "collectives": {"custom": {"all-reduce": "plan.json"}},
            },
            "workload": {"traces": "w.{npu}.et"},
        }

    return base


PLAN = {}  # set by the test, which asks scripts/make_plan.py for it

AWARE = {"model": "congestion-aware"}
SWITCHES = [dimension("Switch", 4, **{"in-switch-operations": 4}), dimension("Switch", 2, oversubscription=2)]


def plain(*arguments, **more):
    config = step(*arguments, **more)
    return lambda folder: config


BASES = {
    "step": plain(),
    "step, congestion-aware": plain(AWARE),
    "step, packet": plain({"model": "packet"}, model={"layers": 2, "sequence": 32}),
    "step, switches": plain({"dimensions": SWITCHES}, {"collectives": {"all-reduce": ["inSwitch", "ring"]}}),
    "step, switches, congestion-aware": plain({**AWARE, "dimensions": SWITCHES}),
    "step, fat tree": plain({**AWARE, "dimensions": [dimension("FatTree", 8, ports=4)]}),
    "step, dragonfly": plain(
        {**AWARE, "dimensions": [dimension("Dragonfly", 8, **{"npus-per-router": 2, "routers": 2, "global-links": 1})]}
    ),
    "step, astra-sim's rules": plain(None, {"rules": "astra-sim"}),
    "graph": plain(
        {
            "model": "congestion-aware",
            "graph": {"hosts": 8, "switches": 1, "links": [[h, 8, "50 GB/s", "1 us"] for h in range(8)]},
            "dimensions": [{"shape": "Switch", "size": 8}],
        }
    ),
    "packets": packets(),
    "packets of shapes": packets_of_shapes,
    "packets, dcqcn": packets(
        control="dcqcn",
        marks=MARKS,
        **{
            "alpha-interval": "1 us",
            "decrease-interval": "2 us",
            "increase-interval": "3 us",
            "retransmission-timeout": "100 us",
        },
    ),
    "packets, dctcp": packets(control="dctcp", marks=MARKS),
    "packets, hpcc": packets(control="hpcc"),
    "packets, timely": packets(control="timely"),
    "packets, swift": packets(control="swift"),
    "packets, adaptive": packets(routing="adaptive", loss="selective"),
    "packets, credits": packets(**{"flow-control": "credits", "credits": "20 kB", "virtual-channels": 2}),
    "packets, drops": packets(
        **{"flow-control": "none", "loss": "selective", "buffer": "20 kB", "retransmission-timeout": "50 us"}
    ),
    "packets, uec": packets(preset="uec", payload=None, buffer="200 kB"),
    "packets, uec, rccc": packets(preset="uec", payload=None, buffer="200 kB", control="rccc"),
    "packets, tcp": packets(
        preset="tcp-linux", payload=None, buffer=None, queue="20 kB", tcp={"min-rto": "1 ms", "initial-window": 20}
    ),
    "packets, tcp, dctcp": packets(
        preset="tcp-datacenter", payload=None, buffer=None, queue="30 kB", marks=[["any", "5 kB", "15 kB", 0.5]]
    ),
    "packets, reduction": reductions,
    "packets, simai-ns3": packets(preset="simai-ns3", control="dcqcn"),
    "library": plain(
        {"dimensions": [dimension("Switch", 2), dimension("Switch", 4)]},
        {"collectives": {"library": {"name": "nccl-h100"}}},
    ),
    "stack h100-megatron": plain(
        {"dimensions": [dimension("Switch", 4), dimension("Switch", 2)]},
        {"compute": {"model": None}, "collectives": None},
        stack=stack("h100-megatron"),
    ),
    "stack a100-fsdp": plain(
        {"dimensions": [dimension("Switch", 4), dimension("Switch", 2)]},
        {"compute": {"model": None}, "collectives": None},
        parallel={"pp": 1, "dp": 8, "tp": 1, "zero": 3},
        stack=stack("a100-fsdp"),
    ),
    "stack tpu-v5p-maxtext": plain(None, {"compute": {"model": None}}, stack=stack("tpu-v5p-maxtext")),
    "gpu": gpu({}),
    "gpu, congestion-aware": gpu({"model": "congestion-aware", "switching": "cut-through"}),
    "traces": traces(),
    "traces, congestion-aware": traces(AWARE),
    "traces, packet": traces({"model": "packet"}),
    "traces, switches": traces({"dimensions": SWITCHES}),
    "traces, flits": traces({"dimensions": [flits("Mesh2D"), dimension("Ring", 2)]}),
    "traces, adaptive flits": traces({"dimensions": [flits("Mesh2D", routing="adaptive-xy-yx"), dimension("Ring", 2)]}),
    "memory per node": traces(**{"remote-memory": {"kind": "per-node", "npus-per-node": 4}}),
    "memory pool": traces(**{"remote-memory": {"kind": "pool"}}),
    "memory hierarchical": traces(
        **{
            "remote-memory": {
                "kind": "hierarchical-pool",
                "npus-per-node": 4,
                "groups": 2,
                "switches": 2,
                "link-bandwidth": "50 GB/s",
                "link-latency": "200 ns",
                "fabric-bandwidth": "256 GB/s",
                "fabric-latency": "5 ns",
                "chunk-size": "4 KiB",
            }
        }
    ),
    "traces, cache": traces(compute={"cache": {"size": "50 KiB", "bandwidth": "2 TB/s", "latency": "5 ns"}}),
    "traces, expanded memory": traces(
        compute={"expanded-memory": {"share": 0.25, "bandwidth": "64 GB/s", "latency": "1 us"}}
    ),
    "traces, recorded": traces(compute={"model": "recorded", "peak": None, "local-memory": None}),
    "recordings": recorded,
    "step, offload": plain(
        None,
        {"remote-memory": {"kind": "per-npu", "bandwidth": "10 GB/s", "latency": "1 us"}},
        parallel={"pp": 1, "dp": 4, "zero": 3, "offload": ["parameters", "gradients", "optimizer"]},
    ),
    "step, zero 3": plain(parallel={"pp": 1, "dp": 4, "zero": 3}),
    "step, ddp": plain(parallel={"pp": 1, "dp": 4, "zero": 0, "bucket": "1 MB"}),
    "products": plain(None, {"compute": PRODUCTS}),
    "products, operators": plain(None, {"compute": PRODUCTS}, parallel={"detail": "operator"}),
    "systolic": plain(None, {"compute": SYSTOLIC}),
    "systolic, outputs": plain(None, {"compute": joined(SYSTOLIC, {"array": {"dataflow": "output-stationary"}})}),
    "experts": plain(model={**EXPERTS}, parallel={"pp": 1, "ep": 2, "tp": 2, "expert-capacity": 1.25}),
    "experts, unequal": plain(
        model={**EXPERTS}, parallel={"pp": 1, "ep": 2, "tp": 2, "expert-imbalance": 0.3, "expert-tp": 1, "sp": True}
    ),
    "experts, stack": plain(
        {"dimensions": [dimension("Switch", 4), dimension("Switch", 2)]},
        {"compute": {"model": None}, "collectives": None},
        model={**EXPERTS},
        parallel={"pp": 1, "ep": 2},
        stack=stack("h100-megatron"),
    ),
    "experts, kernels, stack": plain(
        {"dimensions": [dimension("Switch", 4), dimension("Switch", 2)]},
        {"compute": {"model": None, "peak": {"bf16": "10 TFLOPS", "fp8": "20 TFLOPS"}}, "collectives": None},
        model={**EXPERTS, "experts": 8, "top-k": 2, "expert-servers": 1, "shared-experts": 1, "sequence": 1024},
        parallel={
            "pp": 1,
            "tp": 1,
            "dp": 1,
            "ep": 8,
            "micro-batches": 4,
            "expert-overlap": "batches",
            "precision": "fp8",
        },
        stack=stack("h100-megatron"),
    ),
    "latent attention": plain(model={**LATENT}),
    "all of a transformer": plain(
        model={
            "gated": True,
            "biases": True,
            "dropout": True,
            "learned-positions": True,
            "tied-embeddings": True,
            "kv-heads": 2,
            "head-norms": True,
            "rotary": True,
            "further-tokens": 1,
        },
        parallel={"sp": True, "pp": 1, "dp": 4},
    ),
    "contexts": plain(parallel={"cp": 2, "pp": 1, "cp-exchange": "ring"}),
    "dlrm": dlrm,
    "layers": layers,
    "layers with work": layers_with_work,
    "gpipe": plain(parallel={"schedule": "gpipe"}),
    "interleaving": plain(parallel={"interleaving": 2, "micro-batches": 4}),
    "zb-h1": plain(parallel={"schedule": "zb-h1"}),
    "zb-v": plain(parallel={"schedule": "zb-v", "micro-batches": 4}),
    "dualpipe": plain(parallel={"schedule": "dualpipe", "micro-batches": 4}, model={**EXPERTS}),
    "recompute": plain(parallel={"recompute": "full", "recompute-layers": 1}),
    "prefill": plain(parallel={"phase": "prefill", "zero": None}),
    "decode": plain(parallel={"phase": "decode", "zero": None, "output-tokens": 8}),
    "request": plain(parallel={"phase": "request", "zero": None, "output-tokens": 8, "decode-samples": 2}),
    "jobs": jobs,
    "noise": plain(perturbation={"noise": 0.1, "repetitions": 2}),
    "slow NPUs": plain(
        AWARE,
        perturbation={
            "slow-npus": [{"npus": "1", "compute": 0.8}],
            "links": [{"dimension": 1, "npus": "0-3", "bandwidth": 0.5, "latency": 2}],
        },
    ),
    "slow NPUs, delays": plain(
        perturbation={
            "slow-npus": [{"npus": "1", "compute": 0.8}],
            "links": [{"dimension": 1, "npus": "0-3", "bandwidth": 0.5, "latency": 2}],
        }
    ),
    "uniform": plain(**distribution(per="npu", kind="uniform", least=0.9, most=1.2)),
    "normal": plain(**distribution(per="node", kind="normal", mean=1.1, deviation=0.1, least=0.9, most=1.3)),
    "lognormal": plain(**distribution(per="step", kind="lognormal", median=1.1, deviation=0.1, least=0.9, most=1.3)),
    "tail": plain(**distribution(per="machine", kind="tail", probability=0.5, factor=1.5, **{"machine-size": 2})),
    "exponential": plain(**distribution(per="collective", kind="exponential", probability=0.5, excess=0.1, most=1.5)),
    "values": plain(**distribution(per="message", kind="values", values=[1, 1.2, 2])),
    "cost": plain(cost=COST),
    "cost of a graph": plain(
        {
            "model": "congestion-aware",
            "graph": {"hosts": 8, "switches": 1, "links": [[h, 8, "50 GB/s", "1 us"] for h in range(8)]},
            "dimensions": [{"shape": "Switch", "size": 8}],
        },
        cost={**COST, "tiers": ["node"]},
    ),
}
