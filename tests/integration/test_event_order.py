#!/usr/bin/python3
"""Orrery agrees with the oracles of tests/reference on the smallest workloads in which the order of events of one time once differed
(docs/model.md, 2 and 11), on 1, 2 and 3 ranks.

The systems: 2 to 8 NPUs in one dimension, with a memory pool or none. test_oracle.py found each of them in a random workload."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import chakra  # noqa: E402
import harness  # noqa: E402
import test_oracle  # noqa: E402

KINDS = {
    "all-reduce": chakra.ALL_REDUCE,
    "all-gather": chakra.ALL_GATHER,
    "all-to-all": chakra.ALL_TO_ALL,
    "reduce-scatter": chakra.REDUCE_SCATTER,
}


class Small:
    """A workload that is written down here. Nodes begin as resources become free, in the order of their ids. `access`: ns of latency of
    the memory pool."""

    def __init__(
        self,
        traces,
        shape="FullyConnected",
        latency=100.0,
        queues=1,
        rendezvous=False,
        pool=False,
        groups=None,
        bandwidth=50.0,
        counts=None,
        access=250,
        **system,
    ):
        self.traces, self.seed, self.queues, self.rendezvous, self.groups = (
            traces,
            None,
            queues,
            rendezvous,
            groups or {},
        )
        flags = [f"--num-queues-per-dim={queues}"] + (["--rendezvous-protocol=true"] if rendezvous else [])
        counts = counts or [len(traces)]
        self.system = harness.System(
            [shape] * len(counts),
            counts,
            bandwidth,
            latency,
            groups=groups,
            flags=flags,
            system={
                "endpoint-delay": 10,
                "preferred-dataset-splits": 1,
                "collective-optimization": "baseline",
                **{name.replace("_", "-"): value for name, value in system.items()},
            },
        )
        self.system.memory = (
            {"memory-type": "MEMORY_POOL", "remote-mem-latency": access, "remote-mem-bw": 16}
            if pool
            else {"memory-type": "NO_MEMORY_EXPANSION"}
        )
        self.pool = pool

    def shared_memory(self):
        return self.pool


def collective(kind, id=0, size=1, group=None):
    named = {"pg_name": group} if group else {}
    return chakra.Node(id, chakra.COLL, kind, comm_type=KINDS[kind], comm_size=size, **named)


def load(id, after=(), size=1):
    return chakra.Node(id, chakra.MEM_LOAD, "load", ctrl_deps=list(after), tensor_size=size)


def message(source, destination, size, id=0, after=()):
    """Returns the send and the receive, which comes after other nodes."""
    attributes = {"comm_src": source, "comm_dst": destination, "comm_tag": 1, "comm_size": size}
    return chakra.Node(id, chakra.SEND, "send", **attributes), chakra.Node(
        id, chakra.RECV, "receive", ctrl_deps=list(after), **attributes
    )


def compute(id, duration, after=(), **attributes):
    return chakra.Node(id, chakra.COMP, "compute", ctrl_deps=list(after), duration=duration, **attributes)


def alone_then_load():
    """NPU 1 ends a collective of its own at the time at which it asks for memory, before NPU 0 does."""
    return Small(
        [
            [collective("all-gather"), load(1)],
            [collective("all-gather"), collective("all-gather", 1, group="1"), load(2)],
        ],
        pool=True,
        groups={"1": [1]},
    )


def late_all_reduce(pool):
    """NPU 0 comes late, which lets others end earlier than if it did not."""
    send, receive = message(0, 2, 1)
    last = [load(1)] if pool else []
    return Small(
        [
            [send, collective("all-reduce", 1)],
            [collective("all-reduce")] + last,
            [receive, collective("all-reduce", 1)],
            [collective("all-reduce")],
        ],
        pool=pool,
        endpoint_delay=25,
        all_reduce_implementation=["direct2"],
    )


def short_reductions():
    """Reductions that take no time come after all else that an NPU has pending for that time."""
    return Small(
        [[collective("all-reduce", size=1552)] for _ in range(8)],
        "Switch",
        latency=1.0,
        bandwidth=25.0,
        endpoint_delay=1,
        local_mem_bw=50,
        preferred_dataset_splits=8,
        active_chunks_per_dimension=2,
        all_reduce_implementation=["halvingDoubling"],
    )


def short_reductions_of_a_ring():
    """The same on a ring with rendezvous."""
    send, receive = message(0, 1, 8192)
    members = [collective("all-reduce", 1, group="1")]
    return Small(
        [[send] + members, [receive], members, members],
        "Switch",
        latency=1.0,
        endpoint_delay=1,
        local_mem_bw=50,
        rendezvous=True,
        preferred_dataset_splits=2,
        active_chunks_per_dimension=2,
        groups={"1": [3, 2, 0]},
    )


def two_ways_round():
    """Two NPUs have had their queues in turn once more than the others, so that they go the other way round."""
    both = [
        collective("all-gather", group="1"),
        chakra.Node(1, chakra.COLL, "all-to-all", ctrl_deps=[0], comm_type=chakra.ALL_TO_ALL, comm_size=1),
    ]
    others = [[collective("all-to-all")] for _ in range(3)]
    return Small([both] + others + [both], queues=2, groups={"1": [4, 0]}, all_to_all_implementation=["direct3"])


def queue_held_by_a_collective():
    """A queue that the end of a collective frees is free when the NPU has begun the next one, which begins with its other queue. Two NPUs
    then ask for memory at one time."""
    both = [collective("all-gather", size=100), collective("all-to-all", 1)]
    return Small(
        [both + [load(2)], both + [load(2)], both],
        queues=2,
        pool=True,
        preferred_dataset_splits=4,
        all_to_all_implementation=["direct2"],
    )


def receive_at_the_time_of_another():
    """The first message lets NPU 1 wait for the second, which is there at the same time. What follows from it at its sender comes first."""
    first, first_receive = message(0, 1, 1000)
    _, second_receive = message(2, 1, 1000, 1, after=[0])
    return Small(
        [[first], [first_receive, second_receive, load(2, after=[1])], [message(2, 1, 1000)[0], load(1)]], pool=True
    )


def no_time_in_store():
    """The ends of collectives of one member are pending for NPU 1, so they come before that of a receive whose message was there."""
    send, receive = message(0, 1, 1, 2, after=[0])
    alone = [
        chakra.Node(id, chakra.COLL, "alone", ctrl_deps=[after], comm_type=chakra.ALL_GATHER, comm_size=1, pg_name="1")
        for id, after in ((1, 0), (3, 1))
    ]
    host = [compute(4, 5, after=[2], is_cpu_op=True), compute(5, 10, after=[3], is_cpu_op=True)]
    return Small(
        [[send], [compute(0, 5), alone[0], receive, alone[1]] + host + [compute(6, 5, after=[5])]], groups={"1": [1]}
    )


def endpoint_delay_of_some_dimensions():
    """The collective over one dimension ends an endpoint delay of 15 ns after its last message is there, at 35 ns. So it ends before a
    receive whose message left at 38 ns."""
    sends, receives = zip(*[message(2, 0, 1, id) for id in range(4)])
    sender = list(sends[:3]) + [compute(4, 0, after=[2]), compute(5, 0, after=[4])]
    sends[3].id, sends[3].ctrl_deps = 6, [5]
    over_one = chakra.Node(
        4, chakra.COLL, "all-gather", comm_type=chakra.ALL_GATHER, comm_size=1, involved_dim=[True, False]
    )
    host = [
        compute(5, 5, after=[4], is_cpu_op=True),
        compute(6, 10, after=[3], is_cpu_op=True),
        compute(7, 20, after=[5]),
    ]
    return Small(
        [[*receives, over_one, *host], [over_one], [*sender, sends[3]], [compute(0, 1)]],
        counts=[2, 2],
        latency=[20.0, 12.0],
        endpoint_delay=15,
    )


def accesses_that_take_no_time():
    """An access ends at once, and the next one of its NPU comes before what another NPU asks for because of its own event."""
    both = [collective("all-gather"), load(1)]
    return Small(
        [both + [load(2), load(3, size=20000)], both + [load(2, size=20000)], [collective("all-gather")]],
        pool=True,
        access=0,
    )


def accesses_behind_one_that_takes_time():
    """The same when both accesses have waited for one that takes time."""
    members = [collective("all-to-all", group="1"), load(1)]
    return Small(
        [members + [load(2), load(3, size=20000)], [load(0, size=20000)], members + [load(2, size=20000)]],
        pool=True,
        access=0,
        groups={"1": [0, 2]},
    )


CASES = [
    ("unaware", alone_then_load()),
    ("aware", alone_then_load()),
    ("unaware", late_all_reduce(True)),
    ("unaware", late_all_reduce(False)),
    ("aware", late_all_reduce(False)),
    ("aware", short_reductions()),
    ("aware", short_reductions_of_a_ring()),
    ("aware", two_ways_round()),
    ("unaware", queue_held_by_a_collective()),
    ("unaware", receive_at_the_time_of_another()),
    ("unaware", no_time_in_store()),
    ("unaware", endpoint_delay_of_some_dimensions()),
    ("unaware", accesses_that_take_no_time()),
    ("unaware", accesses_behind_one_that_takes_time()),
]


def main():
    failed = 0
    for number, (network, workload) in enumerate(CASES):
        for ranks in (0, 2, 3):
            with tempfile.TemporaryDirectory(prefix="orrery-order-") as folder:
                difference = test_oracle.compare_workload(workload, ranks, network, pathlib.Path(folder))
            failed += bool(difference)
            if difference:
                print(f"case {number}, {network}, {ranks} ranks: {difference}")
    print(f"{failed} of {3 * len(CASES)} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
