#!/usr/bin/python3
"""Measures how fast the packet network is, and prints a Markdown table.

usage: packet_speed.py [--orrery BIN] [--ranks 1,2] [--repeat N] [--fast-forward] [CASE ...]

Every packet is simulated, unless --fast-forward lets the program skip what long transfers repeat.

CASE selects the cases whose names contain it. A packet that passes three links counts three times. Speeds are packets times links for each
CPU second of the simulation, of all ranks together, and the median of the repetitions is printed. The results of the NPUs are compared
between the numbers of ranks. Exits with 1 if they differ."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def all_reduce(dimensions, npus, algorithm, mib, **packets):
    """Returns the configuration of one all-reduce: the gradients of a layer that takes no time."""
    return {
        "system": {
            "network": {"model": "packet", "dimensions": dimensions, "packets": packets},
            "collectives": {"all-reduce": [algorithm]},
        },
        "workload": {
            "model": {"kind": "layers", "layers": [{"name": "gradients", "parameters": mib << 19}]},
            "parallel": {"dp": npus},
        },
    }


def switch(size, **more):
    return [{"shape": "Switch", "size": size, "bandwidth": "100 Gb/s", "latency": "1 us", **more}]


def tree(size, ports):
    return [{"shape": "FatTree", "ports": ports, "size": size, "bandwidth": "100 Gb/s", "latency": "1 us"}]


# A step of Llama 3 8B: servers of 8 GPUs, and a NIC of 400 Gb/s for each GPU.
LLAMA = {
    "system": {
        "network": {
            "model": "packet",
            "packets": {"payload": "4096 B"},
            "dimensions": [
                {"shape": "Switch", "size": 8, "bandwidth": "450 GB/s", "latency": "500 ns"},
                {"shape": "Switch", "size": 8, "bandwidth": "400 Gb/s", "latency": "1 us"},
            ],
        },
        "compute": {"roofline": True, "peak": "989 TFLOPS", "local-memory": {"bandwidth": "3350 GB/s"}},
    },
    "workload": {
        "model": str(SOURCE / "configs/models/llama3-8b.yaml"),
        "parallel": {"tp": 8, "sp": True, "dp": 8, "micro-batches": 1},
    },
}
CASES = {
    "all-reduce of 64 MiB, ring, 16 hosts on a switch": all_reduce(switch(16), 16, "ring", 64),
    "all-reduce of 1 GiB, ring, 16 hosts on a switch": all_reduce(switch(16), 16, "ring", 1024),
    "all-reduce of 64 MiB, in the switch, 16 hosts": all_reduce(
        switch(16, **{"in-switch-operations": 1}), 16, "inSwitch", 64
    ),
    "all-reduce of 16 MiB, direct, 128 hosts on a fat tree": all_reduce(tree(128, 8), 128, "direct", 16),
    "all-reduce of 64 MiB, ring, 128 hosts on a fat tree": all_reduce(tree(128, 8), 128, "ring", 64),
    "all-reduce of 64 MiB, ring, 1,024 hosts on a fat tree, payload 4,096 B": all_reduce(
        tree(1024, 16), 1024, "ring", 64, payload="4096 B"
    ),
    "a step of Llama 3 8B, 64 GPUs, payload 4,096 B": LLAMA,
}


def simulate(orrery, config, ranks, output, fast_forward):
    """Runs once. Returns the finish times, packets times links, and figures of /kernel."""
    switch = f"--set=system.network.packets.fast-forward={'true' if fast_forward else 'false'}"
    command = [orrery, "run", config, "--output", output, "--force", "--quiet", switch]
    if ranks > 1:
        command = [SOURCE / "scripts/mpirun.sh", str(ranks), *command]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, timeout=3600)
    with h5py.File(output) as file:
        kernel = {
            name: file["kernel"][name][...]
            for name in ("events", "data_messages", "null_messages", "busy_time", "blocked_time", "peak_memory")
        }
        return file["npus/finish_time"][...], int(file["network/links/messages"][...].sum()), kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=SOURCE / "build/release/bin/orrery")
    parser.add_argument("--ranks", default="1,2", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--fast-forward", action="store_true")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    print(
        "| work | ranks | packets x links | events | s | M packets x links per CPU second | MiB of a rank | data messages | null messages per data message |"
    )
    print("|---" * 9 + "|")
    with tempfile.TemporaryDirectory() as folder:
        config, output = pathlib.Path(folder, "config.yaml"), pathlib.Path(folder, "results.h5")
        for name, case in CASES.items():
            if arguments.cases and not any(part in name for part in arguments.cases):
                continue
            config.write_text(json.dumps(case))
            first = None
            for ranks in arguments.ranks:
                runs = [
                    simulate(arguments.orrery, config, ranks, output, arguments.fast_forward)
                    for _ in range(arguments.repeat)
                ]
                finish, passed, kernel = runs[0]
                first = finish if first is None else first
                if not numpy.array_equal(finish, first):
                    sys.exit(
                        f"{name}: the NPUs' finish times on {ranks} ranks differ from those on {arguments.ranks[0]}"
                    )
                busy = statistics.median(run[2]["busy_time"].sum() for run in runs)
                wall = statistics.median(max(run[2]["busy_time"] + run[2]["blocked_time"]) for run in runs)
                data, null = int(kernel["data_messages"].sum()), int(kernel["null_messages"].sum())
                print(
                    f"| {name} | {ranks} | {passed:,} | {int(kernel['events'].sum()):,} | {wall:.2f} | {passed / busy / 1e6:.1f} | "
                    f"{kernel['peak_memory'].max() / 2**20:.0f} | {data:,} | {null / max(data, 1):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
