#!/usr/bin/env python3
"""Writes well-known collective algorithms as MSCCL XML, and MSCCL XML as Chakra execution traces.

usage: spell_out.py ALGORITHM RANKS FILE.xml
       spell_out.py --traces FILE.xml PREFIX [--bytes N]

The first form writes an algorithm, such as all-pairs-all-reduce, for a number of ranks. The second writes PREFIX.0.et, PREFIX.1.et and
so on; with --bytes their messages have sizes in bytes.

An algorithm is a list of steps for each rank, which thread blocks carry out. Each connection (peer and direction) has a block of its own
unless the algorithm says otherwise, and a step waits for the steps that last wrote what it uses."""
import argparse
import xml.etree.ElementTree as xml
from pathlib import Path

import chakra


class Program:
    """The steps of all ranks. A step is written with the (block, step) pairs of its rank that it waits for; for more than one, steps
    that do nothing come before it."""

    def __init__(self, name, kind, ranks, chunks, in_place=True, scratch=0):
        self.ranks, self.chunks, self.kind = ranks, chunks, kind
        self.head = {
            "name": name,
            "proto": "Simple",
            "nchannels": "1",
            "nchunksperloop": str(chunks),
            "ngpus": str(ranks),
            "coll": kind,
            "inplace": str(int(in_place)),
        }
        share = chunks // ranks
        self.sizes = {
            "i_chunks": share if kind == "allgather" else chunks,
            "o_chunks": share if kind == "reduce_scatter" else chunks,
            "s_chunks": scratch,
        }
        self.blocks = [{} for _ in range(ranks)]  # by key: (attributes, steps)

    def block(self, rank, key, send=-1, recv=-1, channel=0):
        """Returns the block of a rank with this key; makes it if there is none."""
        blocks = self.blocks[rank]
        if key not in blocks:
            blocks[key] = ({"id": len(blocks), "send": send, "recv": recv, "chan": channel}, [])
        return blocks[key]

    def step(self, rank, block, kind, source=None, target=None, count=1, after=()):
        """Adds a step of a rank to a block; `source` and `target` are (buffer, offset). Returns the pair that later steps wait for."""
        attributes, steps = block
        waits = [w for w in after if w is not None and w[0] != attributes["id"]]
        for wait in waits[:-1]:
            steps.append({"type": "nop", "source": None, "target": None, "count": 0, "after": wait})
        steps.append(
            {
                "type": kind,
                "source": source or target,
                "target": target or source,
                "count": count,
                "after": waits[-1] if waits else None,
            }
        )
        return attributes["id"], len(steps) - 1

    def write(self, path):
        """Writes the algorithm as MSCCL XML and returns the path."""
        waited_for = [
            {step["after"] for _, steps in blocks.values() for step in steps if step["after"]} for blocks in self.blocks
        ]
        algo = xml.Element("algo", self.head)
        for rank, blocks in enumerate(self.blocks):
            gpu = xml.SubElement(algo, "gpu", {"id": str(rank), **{k: str(v) for k, v in self.sizes.items()}})
            for attributes, steps in blocks.values():
                tb = xml.SubElement(gpu, "tb", {k: str(v) for k, v in attributes.items()})
                for number, step in enumerate(steps):
                    source, target, after = (
                        step["source"] or ("i", -1),
                        step["target"] or ("o", -1),
                        step["after"] or (-1, -1),
                    )
                    xml.SubElement(
                        tb,
                        "step",
                        {
                            "s": str(number),
                            "type": step["type"],
                            "srcbuf": source[0],
                            "srcoff": str(source[1]),
                            "dstbuf": target[0],
                            "dstoff": str(target[1]),
                            "cnt": str(step["count"]),
                            "depid": str(after[0]),
                            "deps": str(after[1]),
                            "hasdep": str(int((attributes["id"], number) in waited_for[rank])),
                        },
                    )
        xml.indent(algo)
        xml.ElementTree(algo).write(path)
        return path


def all_pairs_all_reduce(n, chunks_per_rank=1):
    """Returns an algorithm in which every rank reduces its share of the data, which all others send to it, and sends the sums to all
    others."""
    c = chunks_per_rank
    program = Program(f"all-pairs all-reduce of {n}", "allreduce", n, n * c)
    sums = {}
    for rank in range(n):
        last = None
        for d in range(1, n):
            to, source = (rank + d) % n, (rank - d) % n
            program.step(rank, program.block(rank, ("send", to), send=to), "s", ("i", to * c), count=c)
            last = program.step(
                rank, program.block(rank, ("recv", source), recv=source), "rrc", ("i", rank * c), count=c, after=[last]
            )
        sums[rank] = last
    for rank in range(n):
        for d in range(1, n):
            to, source = (rank + d) % n, (rank - d) % n
            program.step(
                rank, program.block(rank, ("send", to), send=to), "s", ("i", rank * c), count=c, after=[sums[rank]]
            )
            program.step(rank, program.block(rank, ("recv", source), recv=source), "r", ("i", source * c), count=c)
    return program


def ring_all_reduce(n, chunks_per_rank=1):
    c = chunks_per_rank
    program = Program(f"ring all-reduce of {n}", "allreduce", n, n * c)
    for rank in range(n):
        block = program.block(rank, "ring", send=(rank + 1) % n, recv=(rank - 1) % n)
        program.step(rank, block, "s", ("i", rank * c), count=c)
        for k in range(1, n):  # what comes in step k began k places back
            program.step(rank, block, "rrc", ("i", (rank - k) % n * c), count=c)
            program.step(rank, block, "s", ("i", (rank - k) % n * c), count=c)
        for k in range(n - 1):
            program.step(rank, block, "r", ("i", (rank - k) % n * c), count=c)
            if k < n - 2:
                program.step(rank, block, "s", ("i", (rank - k) % n * c), count=c)
    return program


def ring_all_reduce_fused(n):
    """Returns a ring all-reduce with one step for each chunk that arrives and goes on."""
    program = Program(f"fused ring all-reduce of {n}", "allreduce", n, n)
    for rank in range(n):
        block = program.block(rank, "ring", send=(rank + 1) % n, recv=(rank - 1) % n)
        program.step(rank, block, "s", ("i", rank))
        for k in range(1, n):
            program.step(rank, block, "rrcs" if k == n - 1 else "rrs", ("i", (rank - k) % n))
        for k in range(n - 1):
            program.step(rank, block, "r" if k == n - 2 else "rcs", ("i", (rank - k) % n))
    return program


def ring_all_gather(n, in_place=False):
    program = Program(f"ring all-gather of {n}", "allgather", n, n, in_place)
    for rank in range(n):
        block = program.block(rank, "ring", send=(rank + 1) % n, recv=(rank - 1) % n)
        if not in_place:
            program.step(rank, program.block(rank, "own"), "cpy", ("i", 0), ("o", rank))
        program.step(rank, block, "s", ("i", 0))
        for k in range(1, n):
            program.step(rank, block, "r" if k == n - 1 else "rcs", ("o", (rank - k) % n))
    return program


def ring_reduce_scatter(n):
    program = Program(f"ring reduce-scatter of {n}", "reduce_scatter", n, n, in_place=True)
    for rank in range(n):
        block = program.block(rank, "ring", send=(rank + 1) % n, recv=(rank - 1) % n)
        program.step(rank, block, "s", ("i", (rank - 1) % n))
        for k in range(2, n):
            program.step(rank, block, "rrs", ("i", (rank - k) % n))
        program.step(rank, block, "rrc", ("i", rank))
    return program


def halving_doubling_all_reduce(n):
    """Returns a reduce-scatter by halves that are exchanged at distances 1, 2, 4, ..., and an all-gather back."""
    program = Program(f"halving-doubling all-reduce of {n}", "allreduce", n, n)
    levels = n.bit_length() - 1
    first, count, last = [0] * n, [n] * n, [None] * n
    for level in range(levels):
        for rank in range(n):
            partner, half = rank ^ 1 << level, count[rank] // 2
            keeps_upper = rank >> level & 1
            block = program.block(rank, partner, send=partner, recv=partner)
            gives = first[rank] + (0 if keeps_upper else half)
            keeps = first[rank] + (half if keeps_upper else 0)
            program.step(rank, block, "s", ("i", gives), count=half, after=[last[rank]])
            last[rank] = program.step(rank, block, "rrc", ("i", keeps), count=half)
            first[rank], count[rank] = keeps, half
    for level in reversed(range(levels)):
        for rank in range(n):
            partner, size = rank ^ 1 << level, count[rank]
            block = program.block(rank, partner, send=partner, recv=partner)
            program.step(rank, block, "s", ("i", first[rank]), count=size, after=[last[rank]])
            gets = first[rank] - size if rank >> level & 1 else first[rank] + size
            last[rank] = program.step(rank, block, "r", ("i", gets), count=size)
            first[rank], count[rank] = min(first[rank], gets), 2 * size
    return program


def direct_all_to_all(n):
    program = Program(f"direct all-to-all of {n}", "alltoall", n, n, in_place=False)
    for rank in range(n):
        program.step(rank, program.block(rank, "own"), "cpy", ("i", rank), ("o", rank))
        for d in range(1, n):
            to, source = (rank + d) % n, (rank - d) % n
            program.step(rank, program.block(rank, ("send", to), send=to), "s", ("i", to))
            program.step(rank, program.block(rank, ("recv", source), recv=source), "r", ("o", source))
    return program


def binomial_broadcast(n):
    program = Program(f"binomial broadcast of {n}", "broadcast", n, 1)
    for rank in range(n):
        got = None
        if rank > 0:
            parent = rank & rank - 1
            got = program.step(rank, program.block(rank, ("recv", parent), recv=parent), "r", ("i", 0))
        lowest = rank & -rank if rank > 0 else 1 << n.bit_length()
        bit = lowest >> 1
        while bit > 0:
            if rank + bit < n:
                program.step(
                    rank, program.block(rank, ("send", rank + bit), send=rank + bit), "s", ("i", 0), after=[got]
                )
            bit >>= 1
    return program


ALGORITHMS = {
    "all-pairs-all-reduce": all_pairs_all_reduce,
    "ring-all-reduce": ring_all_reduce,
    "fused-ring-all-reduce": ring_all_reduce_fused,
    "ring-all-gather": ring_all_gather,
    "ring-reduce-scatter": ring_reduce_scatter,
    "halving-doubling": halving_doubling_all_reduce,
    "all-to-all": direct_all_to_all,
    "binomial-broadcast": binomial_broadcast,
}


def traces(path, prefix, num_bytes=None):
    """Writes an MSCCL XML of s, r, rrc and nop steps as one Chakra trace for each rank and returns the files. Messages have sizes as
    shares of the whole, or with `num_bytes` in all, in bytes."""
    algo = xml.parse(path).getroot()
    chunks, files = int(algo.get("nchunksperloop")), []
    for gpu in algo.findall("gpu"):
        nodes, last = [], {}  # by (tb, step): the nodes that are over when the step is
        for tb in gpu.findall("tb"):
            for step in tb.findall("step"):
                key = int(tb.get("id")), int(step.get("s"))
                if step.get("type") == "nop":
                    nodes.append((chakra.Node(len(nodes), chakra.METADATA), key))
                    last[key] = nodes[-1][0]
                    continue
                if step.get("type") not in ("s", "r", "rrc"):
                    raise SystemExit(f"spell_out: no trace has a step of type {step.get('type')}")
                sends, count, first = step.get("type") == "s", int(step.get("cnt")), int(step.get("srcoff"))
                size = (
                    {"comm_size": chunk_start(first + count, num_bytes, chunks) - chunk_start(first, num_bytes, chunks)}
                    if num_bytes is not None
                    else {"msg_chunk_cnt": count, "msg_chunk_idx": first, "total_chunk_cnt": chunks}
                )
                peer = {"comm_dst": int(tb.get("send"))} if sends else {"comm_src": int(tb.get("recv"))}
                nodes.append(
                    (
                        chakra.Node(
                            len(nodes),
                            chakra.SEND if sends else chakra.RECV,
                            comm_tag=int(tb.get("chan")),
                            **peer,
                            **size,
                        ),
                        key,
                    )
                )
                last[key] = nodes[-1][0]
                if step.get("type") == "rrc":
                    nodes.append((chakra.Node(len(nodes), chakra.COMP, data_deps=[last[key].id]), None))
                    last[key] = nodes[-1][0]
        steps = {
            (int(tb.get("id")), int(step.get("s"))): step for tb in gpu.findall("tb") for step in tb.findall("step")
        }
        for node, key in nodes:
            if key is None:
                continue
            if key[1] > 0:
                node.data_deps.append(last[key[0], key[1] - 1].id)
            if int(steps[key].get("depid")) >= 0:
                node.data_deps.append(last[int(steps[key].get("depid")), int(steps[key].get("deps"))].id)
        files.append(Path(f"{prefix}.{gpu.get('id')}.et"))
        chakra.write(files[-1], [node for node, _ in nodes])
    return files


def chunk_start(chunk, num_bytes, chunks):
    return num_bytes * chunk // chunks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=sorted(ALGORITHMS))
    parser.add_argument("ranks", nargs="?", type=int)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--traces", nargs=2, metavar=("FILE.xml", "PREFIX"))
    parser.add_argument("--bytes", type=int)
    arguments = parser.parse_args()
    if arguments.traces:
        for file in traces(*arguments.traces, arguments.bytes):
            print(file)
    elif arguments.file:
        print(ALGORITHMS[arguments.what](arguments.ranks).write(arguments.file))
    else:
        parser.error("expected an algorithm, a number of ranks and a file, or --traces")


if __name__ == "__main__":
    main()
