#!/usr/bin/python3
"""Measures what the reading of one large Chakra execution trace costs, and prints a Markdown table of speed and memory.

usage: large_trace.py [--orrery BIN] [--megabytes N] [--like pytorch|stage] [--folder DIR]

It writes a file of N MB (default 600), whose nodes resemble those of the PyTorch converter (few names, about 560 bytes a node) or those of
STAGE (every name and tensor differs, about 360 bytes), runs `orrery show trace` and `orrery check` on it, and removes it. Memory is the
largest resident set of the process."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))

import chakra  # noqa: E402

FIRST_ID = 1 << 21  # from here to 2^28 an id takes four bytes, so all nodes of a kind are of one size
TENSORS = "[[723, 724, 0, 6144, 4, 'cuda:0'], [718, 715, 0, 6144, 4, 'cuda:0'], '<Object>', -1]"
CONFIGURATION = """
system:
  network:
    dimensions:
      - {shape: Ring, size: 1, bandwidth: 50 GB/s, latency: 1 us}
  compute: {roofline: false}
workload:
  traces: "large.{npu}.et"
"""


def tail(**attributes):
    """Returns the encoded attributes of a node."""
    node = chakra.Node(0, chakra.COMP, "n", **attributes).encoded()
    return node[len(chakra.Node(0, chakra.COMP, "n").encoded()) :]


def pytorch_nodes():
    """Yields nodes as the PyTorch converter writes them: 300 names, and attributes that repeat."""
    io = (
        chakra.chunk(1, TENSORS)
        + chakra.chunk(2, "[[6144], [6144], [], []]")
        + chakra.chunk(3, "['Tensor(float)', 'Tensor(float)', 'Object', 'Int']")
    )
    common = chakra.integer(3, chakra.COMP) + chakra.integer(7, 12) + chakra.chunk(8, io) + chakra.chunk(9, io)
    common += tail(
        rf_id=1,
        fw_parent=0,
        seq_id=-1,
        scope=7,
        tid=1,
        fw_tid=0,
        op_schema="aten::add.Tensor(Tensor self, Tensor other) -> Tensor",
        is_cpu_op=False,
        stream=7,
        ts=1699999999,
    )
    kinds = [chakra.chunk(2, f"aten::operation_{kind}") + common for kind in range(300)]
    node = before = FIRST_ID
    while True:
        yield chakra.integer(1, node) + kinds[node % 300] + (chakra.packed(5, [before]) if node != before else b"")
        node, before = node + 1, node


def stage_nodes():
    """Yields nodes as STAGE writes them: each has a name of its own and names its tensors."""
    node = before = FIRST_ID
    name = "mb0_transformer_0_mha_q_proj"
    while True:
        earlier, name = name, f"mb{node % 16}_transformer_{node // 16 % 32}_mha_q_proj_{node}"
        values = tail(
            num_ops=2199023255552,
            tensor_size=8388608,
            op_type="matmul",
            is_cpu_op=False,
            inputs=[earlier + "@0Batch,Seq,Dmodel", "8388608.0", name + "_w@0Dmodel,Dmodel", "2097152.0"],
            outputs=[name + "@0Batch,Seq,Dmodel", "8388608.0"],
        )
        yield (
            chakra.integer(1, node)
            + chakra.chunk(2, name)
            + chakra.integer(3, chakra.COMP)
            + chakra.integer(7, 12)
            + (chakra.packed(5, [before]) if node != before else b"")
            + values
        )
        node, before = node + 1, node


def write(path, size, nodes):
    """Writes a trace of at least `size` bytes and returns the number of its nodes."""
    count = 0
    with open(path, "wb", buffering=1 << 22) as file:
        written = file.write(chakra.framed(chakra.chunk(1, "0.0.4")))
        for node in nodes:
            written += file.write(chakra.framed(node))
            count += 1
            if written >= size:
                return count


def measured(command):
    """Runs a command and returns (wall seconds, CPU seconds, bytes of the largest resident set)."""
    with tempfile.TemporaryFile("w+") as errors:
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        if status != 0:
            errors.seek(0)
            sys.exit(
                f"large_trace.py: '{' '.join(map(str, command))}' ended with {os.waitstatus_to_exitcode(status)}:\n{errors.read()}"
            )
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=SOURCE / "build/release/bin/orrery", type=pathlib.Path)
    parser.add_argument("--megabytes", default=600, type=int)
    parser.add_argument("--like", default="pytorch", choices=["pytorch", "stage"])
    parser.add_argument("--folder", help="where the file is written; default: a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        trace, configuration = folder / "large.0.et", folder / "large.yaml"
        count = write(
            trace, arguments.megabytes * 10**6, {"pytorch": pytorch_nodes, "stage": stage_nodes}[arguments.like]()
        )
        configuration.write_text(CONFIGURATION)
        size = trace.stat().st_size
        print(f"like {arguments.like}: {count:,} nodes, {size / 1e6:.0f} MB, {size / count:.0f} bytes a node\n")
        print(
            "| command | wall s | CPU s | MB/s of CPU time | MiB | bytes of memory per byte of the file |\n|---|---|---|---|---|---|"
        )
        for words in (["show", "trace", trace], ["check", configuration]):
            wall, cpu, memory = measured([arguments.orrery, *words])
            print(
                f"| `orrery {' '.join(words[:-1])}` | {wall:.1f} | {cpu:.1f} | {size / 1e6 / cpu:.0f} | {memory / 2**20:.0f} | {memory / size:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
