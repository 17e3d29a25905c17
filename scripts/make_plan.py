#!/usr/bin/python3
"""Writes execution plans of MSCCL++ for collectives on GPUs that reach each other directly (docs/gpu.md, Plans to start from).

    scripts/make_plan.py two-shot-packets --gpus 8 --blocks 8 --output two-shot.json

Each plan divides the data into parts of equal size, one for each GPU and thread block. Block b of a GPU works on the b-th part of each
share, with words and packets of its own."""
import argparse
import json
import pathlib
import sys


def local(buffer, index, size=1):
    """Returns chunks of a buffer of the GPU itself: "i", "o" or "s"."""
    return {"type": buffer, "index": index, "size": size}


class Block:
    """The operations of a thread block. Peers are numbers of GPUs."""

    def __init__(self, plan, gpu, number):
        self.plan, self.gpu, self.number = plan, gpu, number
        self.peers = [(gpu + k) % plan.gpus for k in range(1, plan.gpus)]
        self.ops = []

    def remote(self, peer, buffer, index, size=1):
        """Returns chunks of a buffer of a peer."""
        return {
            "buffer_id": self.plan.buffers.index(buffer) * len(self.peers) + self.peers.index(peer),
            "index": index,
            "size": size,
        }

    def add(self, name, sources=(), destinations=(), **more):
        operation = {"name": name}
        if sources:
            operation["src_buff"] = list(sources)
        if destinations:
            operation["dst_buff"] = list(destinations)
            operation["channel_type"] = "memory"
        self.ops.append(operation | more)

    def nop(self):
        self.add("nop")

    def words(self, name, peers=None):
        """Sends words to peers, or waits for theirs; without `peers` to or from all of them."""
        peers = self.peers if peers is None else peers
        self.add(name, channel_ids=[self.peers.index(peer) for peer in peers], channel_type="memory")

    def tell(self, to=None, of=None, relaxed=False):
        """Lets peers know that what this block did is over, and waits until theirs is."""
        self.nop()
        self.words("rlxsignal" if relaxed else "signal", to)
        self.words("rlxwait" if relaxed else "wait", of)
        self.nop()

    def json(self):
        first = self.number * len(self.peers)
        return {
            "id": self.number,
            "ops": self.ops,
            "channels": [{"channel_type": "memory", "channel_ids": list(range(first, first + len(self.peers)))}],
            "remote_buffer_refs": [
                {
                    "access_channel_type": "memory",
                    "remote_buffer_ids": list(range(len(self.plan.buffers) * len(self.peers))),
                }
            ],
        }


class Plan:
    """A plan for one collective. `parts`: chunks of a share of the data; `scratch`: chunks of scratch of a GPU; `buffers`: those that
    peers use, of "i", "o" and "s"."""

    def __init__(self, name, collective, shape, scratch=0, buffers="", packets=False, in_place=False):
        self.name, self.collective, self.packets, self.in_place = name, collective, packets, in_place
        self.gpus, self.parts, self.threads = shape.gpus, shape.blocks, shape.threads
        self.scratch, self.buffers = scratch, buffers
        whole = self.gpus * self.parts
        self.input = self.parts if collective == "allgather" else whole
        self.output = self.parts if collective == "reducescatter" else whole
        self.blocks = [[Block(self, gpu, number) for number in range(shape.blocks)] for gpu in range(self.gpus)]

    def __iter__(self):
        """Goes over the thread blocks of all GPUs."""
        return (block for blocks in self.blocks for block in blocks)

    def json(self):
        gpus = []
        for gpu, blocks in enumerate(self.blocks):
            peers = blocks[0].peers
            gpus.append(
                {
                    "id": gpu,
                    "input_chunks": self.input,
                    "output_chunks": self.output,
                    "scratch_chunks": self.scratch,
                    "channels": [{"channel_type": "memory", "connected_to": peers * len(blocks)}],
                    "remote_buffers": [
                        {"rank": peer, "type": buffer, "access_channel_types": ["memory"]}
                        for buffer in self.buffers
                        for peer in peers
                    ],
                    "semaphores": [],
                    "threadblocks": [block.json() for block in blocks],
                }
            )
        return {
            "name": self.name,
            "collective": self.collective,
            "protocol": "LL" if self.packets else "Simple",
            "inplace": self.in_place,
            "reuse_resources": False,
            "num_threads_per_block": self.threads,
            "use_double_scratch_buffer": self.packets,
            "buffer_alignment": 16,
            "gpus": gpus,
        }


# --- all pairs ---


def all_gather_put(shape):
    plan = Plan("all_gather_put", "allgather", shape, buffers="o")
    for block in plan:
        own, place = local("i", block.number), block.gpu * plan.parts + block.number
        block.add("put", [own] * len(block.peers), [block.remote(peer, "o", place) for peer in block.peers])
        block.add("copy", [own], [local("o", place)])
        block.tell()
    return plan


def all_gather_get(shape):
    plan = Plan("all_gather_get", "allgather", shape, buffers="i")
    for block in plan:
        block.tell(relaxed=True)
        block.add(
            "get",
            [block.remote(peer, "i", block.number) for peer in block.peers],
            [local("o", peer * plan.parts + block.number) for peer in block.peers],
        )
        block.add("copy", [local("i", block.number)], [local("o", block.gpu * plan.parts + block.number)])
    return plan


def reduce_scatter_put(shape):
    plan = Plan("reduce_scatter_put", "reducescatter", shape, scratch=shape.gpus * shape.blocks, buffers="s")
    for block in plan:
        slot = block.gpu * plan.parts + block.number
        block.add(
            "put",
            [local("i", peer * plan.parts + block.number) for peer in block.peers],
            [block.remote(peer, "s", slot) for peer in block.peers],
        )
        block.tell()
        block.add(
            "re",
            [local("i", slot)] + [local("s", peer * plan.parts + block.number) for peer in block.peers],
            [local("o", block.number)],
        )
    return plan


def reduce_scatter_get(shape):
    plan = Plan("reduce_scatter_get", "reducescatter", shape, buffers="i")
    for block in plan:
        own = block.gpu * plan.parts + block.number
        block.tell(relaxed=True)
        block.add(
            "rre",
            [local("i", own)] + [block.remote(peer, "i", own) for peer in block.peers],
            [local("o", block.number)],
        )
    return plan


def all_to_all_put(shape):
    plan = Plan("all_to_all_put", "alltoall", shape, buffers="o")
    for block in plan:
        own = block.gpu * plan.parts + block.number
        block.add(
            "put",
            [local("i", peer * plan.parts + block.number) for peer in block.peers],
            [block.remote(peer, "o", own) for peer in block.peers],
        )
        block.add("copy", [local("i", own)], [local("o", own)])
        block.tell()
    return plan


def all_to_all_get(shape):
    plan = Plan("all_to_all_get", "alltoall", shape, buffers="i")
    for block in plan:
        own = block.gpu * plan.parts + block.number
        block.tell(relaxed=True)
        block.add(
            "get",
            [block.remote(peer, "i", own) for peer in block.peers],
            [local("o", peer * plan.parts + block.number) for peer in block.peers],
        )
        block.add("copy", [local("i", own)], [local("o", own)])
    return plan


# --- all-reduces ---


def one_shot(shape):
    """Each GPU sends all its data to all others as packets, and adds up what comes."""
    whole = shape.gpus * shape.blocks
    plan = Plan("one_shot", "allreduce", shape, scratch=shape.gpus * whole, buffers="s", packets=True)
    for block in plan:
        part, width = block.number * plan.gpus, plan.gpus
        block.add(
            "ppkt",
            [local("i", part, width)] * len(block.peers),
            [block.remote(peer, "s", block.gpu * whole + part, width) for peer in block.peers],
        )
        block.add(
            "repkt",
            [local("i", part, width)] + [local("s", peer * whole + part, width) for peer in block.peers],
            [local("o", part, width)],
            reduce_op="sum",
        )
    return plan


def two_shot_packets(shape):
    """Each GPU adds up its share, which the others send as packets, and sends the sum to all others."""
    whole = shape.gpus * shape.blocks
    plan = Plan("two_shot_packets", "allreduce", shape, scratch=2 * whole, buffers="s", packets=True, in_place=True)
    for block in plan:
        slot = block.gpu * plan.parts + block.number
        slots = [peer * plan.parts + block.number for peer in block.peers]
        block.add(
            "ppkt", [local("i", place) for place in slots], [block.remote(peer, "s", slot) for peer in block.peers]
        )
        block.add(
            "respkt",
            [local("i", slot)] + [local("s", place) for place in slots],
            [local("i", slot)] + [block.remote(peer, "s", whole + slot) for peer in block.peers],
            reduce_op="sum",
        )
        block.nop()
        for place in slots:
            block.add("upkt", [local("s", whole + place)], [local("i", place)])
    return plan


def two_shot(shape):
    """Each GPU loads its share from all others, adds it up, and stores the sum at all others."""
    plan = Plan("two_shot", "allreduce", shape, buffers="i", in_place=True)
    for block in plan:
        own = block.gpu * plan.parts + block.number
        block.tell(relaxed=True)
        block.add(
            "rres",
            [local("i", own)] + [block.remote(peer, "i", own) for peer in block.peers],
            [local("i", own)] + [block.remote(peer, "i", own) for peer in block.peers],
            reduce_op="sum",
        )
        block.tell()
    return plan


def ring(shape):
    """A reduce-scatter and an all-gather around a ring. What comes stands in scratch until the next step."""
    gpus = shape.gpus
    plan = Plan("ring", "allreduce", shape, scratch=2 * (gpus - 1) * shape.blocks, buffers="s", in_place=True)
    for block in plan:
        after, before = (block.gpu + 1) % gpus, (block.gpu - 1) % gpus
        part = lambda share: share % gpus * plan.parts + block.number
        slot = lambda step: step * plan.parts + block.number
        block.add("put", [local("i", part(block.gpu))], [block.remote(after, "s", slot(0))])
        block.tell([after], [before])
        for step in range(2 * (gpus - 1)):
            own, come = local("i", part(block.gpu - step - 1)), local("s", slot(step))
            is_last = step == 2 * (gpus - 1) - 1
            sends = [] if is_last else [block.remote(after, "s", slot(step + 1))]
            if step < gpus - 1:
                block.add("res" if sends else "re", [own, come], [own] + sends, reduce_op="sum")
            else:
                block.add("copy", [come], [own])
                if sends:
                    block.add("put", [come], sends)
            if not is_last:
                block.tell([after], [before])
    return plan


def ring_packets(shape):
    """The same ring with packets in place of words."""
    gpus = shape.gpus
    plan = Plan(
        "ring_packets",
        "allreduce",
        shape,
        scratch=2 * (gpus - 1) * shape.blocks,
        buffers="s",
        packets=True,
        in_place=True,
    )
    for block in plan:
        after = (block.gpu + 1) % gpus
        part = lambda share: share % gpus * plan.parts + block.number
        slot = lambda step: step * plan.parts + block.number
        block.add("ppkt", [local("i", part(block.gpu))], [block.remote(after, "s", slot(0))])
        for step in range(2 * (gpus - 1)):
            own, come = local("i", part(block.gpu - step - 1)), local("s", slot(step))
            sends = [] if step == 2 * (gpus - 1) - 1 else [block.remote(after, "s", slot(step + 1))]
            if step < gpus - 1:
                block.add("respkt" if sends else "repkt", [own, come], [own] + sends, reduce_op="sum")
            else:
                if sends:
                    block.add("rppkt", [come], sends)
                block.nop()
                block.add("upkt", [come], [own])
    return plan


PLANS = {
    make.__name__.replace("_", "-"): make
    for make in (
        all_gather_put,
        all_gather_get,
        reduce_scatter_put,
        reduce_scatter_get,
        all_to_all_put,
        all_to_all_get,
        one_shot,
        two_shot,
        two_shot_packets,
        ring,
        ring_packets,
    )
}


class Shape:
    """How many GPUs, thread blocks of a GPU, and threads of a block there are."""

    def __init__(self, gpus=8, blocks=8, threads=1024):
        self.gpus, self.blocks, self.threads = gpus, blocks, threads


def make(name, **shape):
    """Returns the plan of this name as the text of its file."""
    return json.dumps(PLANS[name](Shape(**shape)).json())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("plan", choices=PLANS)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=8, help="thread blocks of a GPU (default: 8)")
    parser.add_argument("--threads", type=int, default=1024, help="threads of a block (default: 1024)")
    parser.add_argument("--output", type=pathlib.Path, help="the file to write (default: standard output)")
    given = parser.parse_args()
    if given.gpus < 2 or given.blocks < 1:
        parser.error("a plan needs two GPUs or more, and one thread block or more")
    text = make(given.plan, gpus=given.gpus, blocks=given.blocks, threads=given.threads) + "\n"
    if given.output is None:
        sys.stdout.write(text)
    else:
        given.output.write_text(text)


if __name__ == "__main__":
    main()
