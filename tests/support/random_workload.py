"""Random systems and workloads that cannot deadlock, from a seed.

Operations are drawn in one global order and appended to the traces of the NPUs that take part. A node depends on earlier nodes of its own
trace only. The collectives of an NPU form a chain, so that all members meet them in the same order, and come after the sends that were
drawn before them, for which others may wait before they join. Some NPUs may run free: they take part in no collective and no message.
Where the sender waits for the receiver (rendezvous), sends and receives are in that chain too: then the first operation of the global
order that is not done can always proceed. Ids are a random permutation, so that neither the order of ids nor that of the file is
topological."""
import random

import chakra
from harness import System

KINDS = {
    chakra.ALL_REDUCE: "all-reduce",
    chakra.ALL_GATHER: "all-gather",
    chakra.ALL_TO_ALL: "all-to-all",
    chakra.REDUCE_SCATTER: "reduce-scatter",
}


def power_of_two(n):
    return n & (n - 1) == 0


class Workload:
    """A `System` and the traces of its NPUs."""

    def __init__(self, seed, max_npus=24, operations=(5, 60), all_algorithms=False, one_dimension=False):
        """`all_algorithms`: with windows, double binary trees and lists of one entry, and with fractions in the figures of the memory; in
        every third workload durations and sizes are few, so that many events come at one time. `one_dimension`: the network has one.
        """
        self.random = random.Random(seed)
        self.all_algorithms, self.one_dimension = all_algorithms, one_dimension
        self.ties = all_algorithms and seed % 3 == 0
        self.seed, self.max_npus = seed, max_npus
        self.rendezvous = self.random.random() < 0.25
        self.queues = self.random.choice([1, 1, 1, 2, 3, 4])
        self.roofline = self.random.random() < 0.4
        self.chained = self.rendezvous or self.random.random() < 0.4
        self.memory = self.draw_memory()
        self.system = self.draw_system()
        self.num_npus = self.system.num_npus
        self.tied = self.draw_tied()
        self.groups = self.draw_groups()
        self.system.groups = self.groups or None
        self.traces = [[] for _ in range(self.num_npus)]
        self.last = [None] * self.num_npus  # end of the chain of an NPU
        self.sends = [set() for _ in range(self.num_npus)]  # since then
        for i in range(self.random.randint(*operations)):
            self.draw_operation(i)
        self.shuffle_ids()

    # ---- the system ----

    def draw_memory(self):
        kind = self.random.choice(
            [
                "NO_MEMORY_EXPANSION",
                "NO_MEMORY_EXPANSION",
                "PER_NPU_MEMORY_EXPANSION",
                "PER_NODE_MEMORY_EXPANSION",
                "MEMORY_POOL",
            ]
        )
        memory = {"memory-type": kind}
        if kind != "NO_MEMORY_EXPANSION":
            # In the congestion-aware network an access to a shared memory takes a tick at least, which the oracle does not know.
            least = 1 if self.one_dimension and kind != "PER_NPU_MEMORY_EXPANSION" else 0
            memory.update(
                {
                    "remote-mem-latency": self.random.choice([least, 250, 1000]),
                    "remote-mem-bw": self.random.choice([16, 33, 64]),
                }
            )
            if self.all_algorithms:
                memory = {
                    name: value + 0.7 if name.startswith("remote-mem-") else value for name, value in memory.items()
                }
        return memory

    def draw_system(self):
        r = self.random
        while True:
            counts = [
                r.choice([1, 2, 2, 3, 4, 4, 5, 8])
                for _ in range(1 if self.one_dimension else r.choice([1, 1, 2, 2, 3]))
            ]
            topology = [r.choice(["Ring", "FullyConnected", "Switch"]) for _ in counts]
            system = System(topology, counts)
            if 2 <= system.num_npus <= self.max_npus:
                break
        if self.memory["memory-type"] == "PER_NODE_MEMORY_EXPANSION":
            per_node = r.choice([n for n in range(1, system.num_npus + 1) if system.num_npus % n == 0])
            self.memory.update({"num-nodes": system.num_npus // per_node, "num-npus-per-node": per_node})
        algorithms = {}
        for kind in KINDS.values():
            one = r.random() < 0.1
            algorithms[kind + "-implementation"] = self.draw_algorithms(kind, counts, one, system.num_npus)
        system = System(
            topology,
            counts,
            [r.choice([25.0, 50.0, 100.0, 33.3]) for _ in counts],
            [r.choice([1.0, 100.0, 500.0, 737.5]) for _ in counts],
            {
                "endpoint-delay": r.choice([1, 10, 25]),
                "active-chunks-per-dimension": r.choice([1, 1, 2, 4]),
                "preferred-dataset-splits": r.choice([1, 2, 3, 4, 8, 16]),
                "collective-optimization": r.choice(["localBWAware", "baseline"]),
                "local-mem-bw": r.choice([50, 1600]),
                "roofline-enabled": int(self.roofline),
                "peak-perf": r.choice([10, 900]),
                **algorithms,
            },
            self.memory,
            flags=[f"--num-queues-per-dim={self.queues}"] + (["--rendezvous-protocol=true"] if self.rendezvous else []),
        )
        if (
            len(counts) > 1 and system.system["collective-optimization"] == "localBWAware"
        ):  # splits all-reduces, which trees do not allow
            trees = system.system["all-reduce-implementation"]
            trees[:] = ["ring" if name == "doubleBinaryTree" else name for name in trees]
        return system

    def draw_algorithms(self, kind, counts, one, num_npus):
        """Returns an algorithm for each dimension. `one`: the same algorithm for the whole system as one line."""

        def possible(n):
            names = ["ring", "direct"] + (["halvingDoubling"] if power_of_two(n) and kind != "all-to-all" else [])
            if self.all_algorithms:
                names += [f"direct{self.random.randint(1, 6)}"] + (
                    ["doubleBinaryTree"] if kind == "all-reduce" and not one else []
                )
            return names

        if one:
            name = self.random.choice(possible(num_npus))
            return ["one" + name[0].upper() + name[1:]] * (
                1 if self.all_algorithms and self.random.random() < 0.5 else len(counts)
            )
        return [self.random.choice(possible(n)) for n in counts]

    def shared_memory(self):
        return self.memory["memory-type"] in ("PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL")

    def draw_tied(self):
        """Returns the NPUs that do not run free, at least two."""
        npus = range(self.num_npus)
        return (
            sorted(self.random.sample(npus, self.random.randint(2, self.num_npus)))
            if self.random.random() < 0.3
            else list(npus)
        )

    def draw_groups(self):
        groups = {}
        for name in ("1", "2", "7", "33")[: self.random.randint(0, 4)]:
            # A collective of one member takes no time. With a shared memory that would make the order of two requests of one
            # moment a matter of which was handled first.
            size = self.random.randint(2 if self.shared_memory() and not self.all_algorithms else 1, len(self.tied))
            members = self.random.sample(self.tied, size)
            if (
                size >= 2 and self.random.random() < 0.4
            ):  # from end to end: on several ranks wherever the blocks are cut
                members[:2] = [npu for npu in (self.tied[0], self.tied[-1]) if npu not in members[2:]] or members[:2]
                members = list(dict.fromkeys(members))
            groups[name] = sorted(members) if size == self.num_npus or self.random.random() < 0.5 else members
        return groups

    def dimensions_of(self, kind):
        """Returns a value for `involved_dim` that names some but not all of the dimensions of more than one NPU, and perhaps others; or
        None."""
        wide = [d for d, count in enumerate(self.system.counts) if count > 1]
        whole = any(name.startswith("one") for name in self.system.system[KINDS[kind] + "-implementation"])
        if whole or len(wide) < 2 or self.random.random() < 0.5:
            return None
        chosen = self.random.sample(wide, self.random.randint(1, len(wide) - 1))
        return [d in chosen or (d not in wide and self.random.random() < 0.5) for d in range(len(self.system.counts))]

    def sub_network(self, npu, involved):
        """Returns the NPUs that differ from `npu` in the involved dimensions alone."""
        members, stride = [npu], 1
        for count, takes_part in zip(self.system.counts, involved):
            if takes_part:
                members = [m + (c - m // stride % count) * stride for m in members for c in range(count)]
            stride *= count
        return sorted(members)

    # ---- the traces ----

    def draw_operation(self, number):
        kinds = ["compute"] * 4 + ["cpu"] * 2 + ["collective"] * 3 + ["message"] * 3
        if self.memory["memory-type"] != "NO_MEMORY_EXPANSION":
            kinds += ["memory"] * 3
        kind = self.random.choice(kinds)
        if kind == "collective":
            self.collective()
        elif kind == "message":
            self.message(number)
        else:
            # One operation on many NPUs makes them alike and their times equal; on few it makes them skewed.
            npus = (
                range(self.num_npus)
                if self.random.random() < 0.4
                else self.random.sample(range(self.num_npus), self.random.randint(1, self.num_npus))
            )
            draw = {"compute": self.compute, "cpu": self.cpu, "memory": self.remote}[kind]
            alike = self.random.random() < 0.5
            if kind == "memory" and self.random.random() < 0.3:  # all in the same moment
                npus, alike, draw = range(self.num_npus), True, self.remote_at_once
            state = self.random.getstate()
            for npu in npus:
                if alike:
                    self.random.setstate(state)
                draw(npu)

    def add(self, npu, type, name, chained=False, avoid=(), alone=False, **attributes):
        earlier = [node for node in self.traces[npu] if node.type not in avoid and not alone]
        recent = earlier[-6:]
        chosen = self.random.sample(recent, min(len(recent), self.random.choice([0, 1, 1, 2])))
        dependencies = {node.id for node in chosen}
        if chained and self.last[npu] is not None:
            dependencies.add(self.last[npu])
        if "comm_type" in attributes:
            dependencies |= self.sends[npu]
            self.sends[npu] = set()
        data = [d for d in sorted(dependencies) if self.random.random() < 0.6]
        node = chakra.Node(
            len(self.traces[npu]),
            type,
            name,
            data,
            sorted(dependencies - set(data)),
            attributes.pop("duration", 0),
            **attributes,
        )
        self.traces[npu].append(node)
        if chained:
            self.last[npu] = node.id
        elif type == chakra.SEND:
            self.sends[npu].add(node.id)

    def compute(self, npu):
        attributes = {"duration": self.random.choice([5, 10]) if self.ties else self.random.randint(0, 300)}
        if self.roofline and self.ties:
            attributes.update(num_ops=10**9, tensor_size=10**6)
        elif self.roofline:
            attributes.update(
                num_ops=self.random.randint(10**6, 10**10), tensor_size=self.random.randint(10**5, 10**8)
            )
        self.add(npu, chakra.COMP, "compute", **attributes)

    def cpu(self, npu):
        duration = self.random.choice([5, 10]) if self.ties else self.random.randint(0, 200)
        self.add(npu, chakra.COMP, "host", duration=duration, is_cpu_op=True)

    def remote(self, npu):
        # Requests of one moment are served in the order of NPUs. What follows a receive that takes no time could come in the
        # same moment but later, so accesses to a shared memory do not follow receives, unless the oracle knows the order.
        avoid = (chakra.RECV,) if self.shared_memory() and not self.all_algorithms else ()
        size = (
            10**5
            if self.ties
            else self.random.randint(1, self.random.choice([10**6, 10**6, 15]) if self.all_algorithms else 10**6)
        )
        self.add(npu, self.random.choice([chakra.MEM_LOAD, chakra.MEM_STORE]), "remote", avoid=avoid, tensor_size=size)

    def remote_at_once(self, npu):
        self.add(
            npu,
            self.random.choice([chakra.MEM_LOAD, chakra.MEM_STORE]),
            "at_once",
            alone=True,
            tensor_size=self.random.randint(1, 10**5),
        )

    def size(self):
        if self.ties:
            return 1 << 20
        return self.random.choice(
            [self.random.randint(1, 31), self.random.randint(32, 4096), self.random.randint(32, 1 << 22), 1 << 20]
        )

    def collective(self):
        name = self.random.choice(["", *self.groups])
        kind = self.random.choice(list(KINDS))
        size = self.size()
        if kind == chakra.ALL_GATHER:  # the oracle has no rule for a chunk of no byte
            size = max(size, self.system.system["preferred-dataset-splits"])
        attributes = {"comm_type": kind, "comm_size": size}
        involved = None if name else self.dimensions_of(kind)
        members = self.groups[name] if name else range(self.num_npus)
        if involved:
            attributes["involved_dim"] = involved
            if self.random.random() < 0.5:
                members = self.sub_network(self.random.randrange(self.num_npus), involved)
        elif name or self.random.random() < 0.3:
            attributes["pg_name"] = name
        elif self.random.random() < 0.5:
            attributes["involved_dim"] = [True] * len(self.system.counts)
        if not set(members) <= set(self.tied):
            return
        for npu in members:
            self.add(npu, chakra.COLL, KINDS[kind], chained=True, **attributes)

    def message(self, number):
        source, destination = self.random.sample(self.tied, 2)
        # Messages of one tag must be sent and received in the same order: only where they are in the chain.
        tag = self.random.randint(0, 1) if self.chained else number
        size = self.size()
        self.add(
            source,
            chakra.SEND,
            f"to {destination}",
            chained=self.chained,
            comm_src=source,
            comm_dst=destination,
            comm_tag=tag,
            comm_size=size,
        )
        self.add(
            destination,
            chakra.RECV,
            f"from {source}",
            chained=self.chained,
            comm_src=source,
            comm_dst=destination,
            comm_tag=tag,
            comm_size=size,
        )

    def shuffle_ids(self):
        for npu, nodes in enumerate(self.traces):
            if not nodes:
                self.traces[npu] = [chakra.Node(0, chakra.COMP, "alone", duration=1, is_cpu_op=True)]
                continue
            ids = self.random.sample(range(3 * len(nodes)), len(nodes))
            if self.random.random() < 0.5:
                ids.sort()
            for node in nodes:
                node.data_deps = [ids[d] for d in node.data_deps]
                node.ctrl_deps = [ids[d] for d in node.ctrl_deps]
                node.id = ids[node.id]
            self.random.shuffle(nodes)
