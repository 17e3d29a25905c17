#!/usr/bin/python3
"""Simulates a training step slowly and plainly, as an independent check of Orrery.

The oracle implements the rules of docs/model.md under `astra-sim` arithmetic a second time: one event heap, no ranks, no folding.
Tests compare every NPU's finish time with Orrery's. Times are whole nanoseconds.

It covers Chakra traces of schema 0.0.4, roofline and recorded durations, ring, direct with and without a window, halving-doubling and
double binary trees on any number of dimensions, chunks and queues, members that arrive at different times, process groups,
point-to-point messages (eager or rendezvous) and remote memory. It raises NotImplementedError for other algorithms.

usage: oracle.py [--cases DIR] [CASE ...]
       oracle.py --workload PREFIX --network FILE --system FILE [--memory FILE] [--groups FILE]

The first form compares the oracle with the finish times of the reference cases in DIR and exits with 1 if an exact case differs.
The second form prints the finish time of every NPU in ns as a JSON list.
"""
import argparse
import collections
import heapq
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import reference_case  # noqa: E402

GIGABYTE = 2**30  # ASTRA-sim's
CONTROL_BYTES = 8192  # the size of a rendezvous message
KINDS = {
    chakra.ALL_REDUCE: "all-reduce",
    chakra.ALL_GATHER: "all-gather",
    chakra.ALL_TO_ALL: "all-to-all",
    chakra.REDUCE_SCATTER: "reduce-scatter",
}
REDUCING = ("all-reduce", "reduce-scatter")


# ---- network ----

Dimension = collections.namedtuple("Dimension", "shape size bandwidth latency")  # bandwidth in GB/s, latency in ns


class Network:
    """The congestion-unaware network: the delay of a message depends on its size and its route alone."""

    def __init__(self, shapes, sizes, bandwidths, latencies):
        self.dimensions = [Dimension(*values) for values in zip(shapes, sizes, bandwidths, latencies)]
        self.size = math.prod(sizes)

    def delay(self, source, destination, num_bytes):
        """Returns the ns from sending to arriving. The message uses the first dimension in which the two NPUs differ."""
        for shape, size, bandwidth, latency in self.dimensions:
            distance = (destination - source) % size
            if distance:
                hops = {"Ring": min(distance, size - distance), "FullyConnected": 1, "Switch": 2}[shape]
                return int(hops * latency + num_bytes / (bandwidth * GIGABYTE / 1e9))
            source, destination = source // size, destination // size
        raise NotImplementedError("an NPU sends a message to itself")

    def strides(self):
        """Returns the distance of neighbours in each dimension."""
        return [math.prod(d.size for d in self.dimensions[:k]) for k in range(len(self.dimensions))]

    def sub_network(self, npu, involved):
        """Returns the NPUs that differ from `npu` in the involved dimensions alone, or None if these are all NPUs."""
        members = [npu]
        for stride, dimension, uses in zip(self.strides(), self.dimensions, involved):
            if uses:
                members = [
                    m + (c - m // stride % dimension.size) * stride for m in members for c in range(dimension.size)
                ]
        return sorted(members) if len(members) < self.size else None


# ---- collectives ----


def ring_steps(kind, n, num_bytes, reduce_cost):
    """Yields (bytes, ns of reduction) of each step in which every member sends to the next one."""
    count = {"all-reduce": 2 * (n - 1), "all-to-all": n * (n - 1) // 2}.get(kind, n - 1)
    for step in range(1, count + 1):
        yield num_bytes, reduce_cost(num_bytes) if kind in REDUCING and step < n else 0


def halving_doubling_steps(kind, n, num_bytes, message, reduce_cost):
    """Yields (distance, bytes, ns of reduction) of each step in which members at this distance exchange."""
    levels = n.bit_length() - 1
    if kind != "all-gather":
        for level in range(levels):
            yield 2**level, num_bytes >> (level + 1), reduce_cost(
                num_bytes >> (level + 2)
            ) if level + 1 < levels else 0
    if kind == "all-reduce":
        message = 2 * (
            num_bytes >> (levels + 1)
        )  # the way back begins with half of the last message, in whole bytes, twice
    if kind != "reduce-scatter":
        for level in reversed(range(levels)):
            yield 2**level, message << (levels - 1 - level), 0


class Collectives:
    """Computes when the members of a collective finish.

    A collective is divided into chunks. A chunk goes through phases, one for each dimension (two for an all-reduce that is split into
    reduce-scatter and all-gather), and waits in a queue of the dimension before each phase.
    """

    # back: the groups go round the other way; odd: over the tree of odd chunks; duration: if all members start together
    Phase = collections.namedtuple("Phase", "dimension queue kind bytes back odd duration")

    def __init__(self, network, system, num_queues, rendezvous):
        self.network, self.system, self.num_queues, self.rendezvous = network, system, num_queues, rendezvous
        self.chunks = system["preferred-dataset-splits"]
        self.aware = system.get("collective-optimization") == "localBWAware"

    def reduce_cost(self, num_bytes):
        """Returns the ns of summing two buffers: two reads and one write of the local memory."""
        return 3 * int(num_bytes / (self.system["local-mem-bw"] * 1e9) * 1e9)

    def cut(self, kind, num_bytes):
        """Returns the number and the bytes of the chunks of a collective."""
        chunk_bytes = num_bytes // self.chunks
        if kind != "all-gather" and chunk_bytes < self.network.size:
            chunk_bytes, num_bytes = self.network.size, self.chunks * self.network.size
        return -(-num_bytes // chunk_bytes), chunk_bytes

    def take_turns(self, kind, num_bytes, members, involved, turns):
        """Counts the chunks of a collective that an NPU joins: `turns` has, by dimension, how many have used its queues in turn, and by
        the word tree and the dimension, how many its two trees."""
        if len(members) == 1:
            return
        placement, count = Placement(self.network, self.system, kind, members, involved), self.cut(kind, num_bytes)[0]
        for d in placement.dimensions:
            if kind != "all-reduce" or not self.aware:
                turns[d] += count
            if placement.takes_turns_at_trees:
                turns["tree", d] += count

    def least_turns(self, all_turns):
        """Returns whose turn it is for members that disagree: the least, with the highest dimension first and queues before trees."""
        dimensions = range(len(self.network.dimensions))
        return min(
            all_turns,
            key=lambda turns: [(turns[d] % self.num_queues, turns["tree", d] % 2) for d in reversed(dimensions)],
        )

    def finish_times(self, kind, num_bytes, members, arrivals, involved=None, turns=None):
        """Returns the finish time of every member, given when each arrived. `involved`: a flag for each dimension, or None for all.
        `turns`: what take_turns has counted before."""
        if len(members) == 1:
            return list(arrivals)
        placement = Placement(self.network, self.system, kind, members, involved)
        chunks = self.divide(kind, *self.cut(kind, num_bytes), placement, turns or collections.Counter())
        order, end = self.service_order(chunks)
        if placement.is_regular() and len(set(arrivals)) == 1:
            return [arrival + end for arrival in arrivals]
        done, is_one_phase = {}, len(chunks[0]) == 1
        free = collections.defaultdict(
            lambda: [[arrival] * self.in_service() for arrival in arrivals]
        )  # by queue: when slots of members are
        for chunk, phase, before in order:
            if is_one_phase:  # each member takes its next chunk when one of its own is done
                slots = free[chunks[chunk][0].queue]
                done[chunk, 0] = self.finish_phase(chunks[chunk][0], placement, [heapq.heappop(own) for own in slots])
                for own, time in zip(slots, done[chunk, 0]):
                    heapq.heappush(own, time)
                continue
            starts = [
                max(arrivals[i] if phase == 0 else done[chunk, phase - 1][i], done[before][i] if before else 0)
                for i in range(len(members))
            ]
            done[chunk, phase] = self.finish_phase(chunks[chunk][phase], placement, starts)
        return [max(done[c, len(phases) - 1][i] for c, phases in enumerate(chunks)) for i in range(len(members))]

    def divide(self, kind, num_chunks, chunk_bytes, placement, turns):
        """Returns the phases of each chunk, with the queues that they wait in. Rings and direct in the second half of the queues, and on the
        way back of an all-reduce, go round the other way."""
        first, last, each, chunks = collections.Counter(), collections.Counter(), collections.Counter(), []
        dimensions, queues = placement.dimensions, self.num_queues
        split = kind == "all-reduce" and self.aware
        if split:
            plan = (
                [(d, "reduce-scatter") for d in dimensions[:-1]]
                + [(dimensions[-1], kind)]
                + [(d, "all-gather") for d in dimensions[-2::-1]]
            )
        else:
            plan = [(d, kind) for d in (reversed(dimensions) if kind == "all-gather" else dimensions)]
        for chunk in range(num_chunks):
            phases, size = [], chunk_bytes
            for position, (d, phase_kind) in enumerate(plan):
                n = len(placement.groups[d][0])
                back = position >= len(dimensions)
                if not split:
                    queue = each[d] % queues
                    back = queues > 1 and (turns[d] + each[d]) % queues >= queues // 2
                    each[d] += 1
                elif position < len(dimensions):
                    queue = first[d] % max(queues // 2, 1)
                    first[d] += 1
                else:
                    queue = (queues // 2 + last[d] % max(queues - queues // 2, 1)) % queues
                    last[d] += 1
                is_odd = (turns["tree", d] + chunk) % 2 == 1
                phase = self.Phase(d, queue, phase_kind, size, back and placement.goes_round(d), is_odd, 0)
                duration = max(self.finish_group(placement, phase, placement.groups[d][0], [0] * n))
                phases.append(phase._replace(duration=duration))
                size = {"reduce-scatter": size // n, "all-gather": size * n}.get(phase_kind, size)
            chunks.append(phases)
        return chunks

    def in_service(self):
        """Returns how many chunks a queue serves at a time."""
        return -(-self.system.get("active-chunks-per-dimension", 1) // self.num_queues)

    def service_order(self, chunks):
        """Returns the order in which phases are served if all members arrive together, and the time of the last one's end.

        The order is a list of (chunk, phase, predecessor): the phase starts when its chunk is there and the predecessor, the phase that
        held its place in the queue before, is done. A predecessor of None stands for a free place.
        """
        waiting, free = collections.defaultdict(collections.deque), collections.defaultdict(
            lambda: [None] * self.in_service()
        )
        events, order, end = [], [], 0

        def queue_of(chunk, phase):
            return chunks[chunk][phase][:2]

        def serve(queue, now):
            while waiting[queue] and free[queue]:
                chunk, phase = waiting[queue].popleft()
                order.append((chunk, phase, free[queue].pop(0)))
                heapq.heappush(events, (now + chunks[chunk][phase].duration, len(order), chunk, phase))

        for chunk in range(len(chunks)):
            waiting[queue_of(chunk, 0)].append((chunk, 0))
            serve(queue_of(chunk, 0), 0)
        while events:
            end, _, chunk, phase = heapq.heappop(events)
            free[queue_of(chunk, phase)].append((chunk, phase))
            if phase + 1 < len(chunks[chunk]):
                waiting[queue_of(chunk, phase + 1)].append((chunk, phase + 1))
                serve(queue_of(chunk, phase + 1), end)
            serve(queue_of(chunk, phase), end)
        return order, end

    def finish_phase(self, phase, placement, starts):
        """Returns when each member finishes a phase, given when each starts it."""
        finish = list(starts)
        for group in placement.groups[phase.dimension]:
            group = group[::-1] if phase.back else group
            for i, time in zip(group, self.finish_group(placement, phase, group, [starts[i] for i in group])):
                finish[i] = time
        return finish

    def finish_group(self, placement, phase, group, starts):
        """Returns when each member of one dimension group finishes one phase."""
        kind, num_bytes = phase.kind, phase.bytes
        n, algorithm, endpoint = len(group), placement.algorithms[phase.dimension], placement.endpoint_delay
        message = num_bytes if kind == "all-gather" else num_bytes // n
        now = [start + endpoint for start in starts]

        def delay(i, j, size):
            return self.network.delay(placement.members[group[i]], placement.members[group[j]], size)

        def arrival(i, j, size):
            """Returns when j has what i sends in this step. With rendezvous i waits until j has posted its receive and said so."""
            begin = max(now[i], now[j] + delay(j, i, CONTROL_BYTES)) if self.rendezvous else now[i]
            return begin + delay(i, j, size)

        if algorithm == "ring":
            for size, cost in ring_steps(kind, n, message, self.reduce_cost):
                now = [max(arrival((i - 1) % n, i, size), now[i]) + endpoint + cost for i in range(n)]
        elif algorithm.startswith("direct"):
            now = self.slide(
                kind, min(int(algorithm[6:] or n), n - 1), message, now, endpoint, placement.is_subgroup, delay
            )
        elif algorithm == "halvingDoubling" and kind != "all-to-all" and n & (n - 1) == 0:
            for distance, size, cost in halving_doubling_steps(kind, n, num_bytes, message, self.reduce_cost):
                now = [max(arrival(i ^ distance, i, size), now[i]) + endpoint + cost for i in range(n)]
        elif algorithm == "doubleBinaryTree" and kind == "all-reduce":
            now = self.climb(num_bytes, starts, endpoint, phase.odd, delay)
        else:
            raise NotImplementedError(f"{algorithm} {kind} of {n} members")
        return now

    def climb(self, size, starts, endpoint, is_odd, delay):
        """Returns when each of the positions that start at `starts` finishes a chunk that goes up a binary tree and down again. Node 0 is the
        root and has one child; the lowest bit that is set in any other node is its height. Even chunks take the tree the other way round.
        """
        n = len(starts)

        def position(node):
            return node if is_odd else n - 1 - node if n % 2 == 0 else (node + 1) % n

        def parent(node):
            height = node & -node
            return node - height | 2 * height if node - height | 2 * height < n else node - height

        children = collections.defaultdict(list)
        for node in range(1, n):
            children[position(parent(node))].append(position(node))
        pays = [endpoint + (self.reduce_cost(size) if children[i] else 0) for i in range(n)]
        up, down = {}, {}

        def received(i, j, sent, posted):
            begin = max(sent, posted + delay(j, i, CONTROL_BYTES)) if self.rendezvous else sent
            return max(begin + delay(i, j, size), posted)

        def ascend(i):
            up[i] = max([starts[i]] + [received(c, i, ascend(c), starts[i]) for c in children[i]]) + pays[i]
            return up[i]

        def descend(i):
            for c in children[i]:
                down[c] = received(i, c, down[i], up[c]) + pays[c]
                descend(c)

        root = position(0)
        down[root] = ascend(root)
        descend(root)
        return [down[i] for i in range(n)]

    def slide(self, kind, window, size, starts, endpoint, is_subgroup, delay):
        """Returns when each of the positions that start at `starts` finishes direct. A position sends to distances 1, 2, ..., and takes the
        message of the same distance after it has sent its own. It begins with `window` messages and sends another one whenever it has
        processed one. In the second half of an all-reduce it does so when all messages of the first half are there."""
        n = len(starts)
        total = (n - 1) * (2 if kind == "all-reduce" else 1)
        cycle = window * (n - 1) if is_subgroup else window
        sent, received, credits, finish = [[] for _ in range(n)], [0] * n, [0] * n, [0] * n
        arrival, credit, taking = range(3)  # what comes first at one time; taking: of a message that was there before
        events = [(starts[i], credit, i) for i in range(n) for _ in range(window)]  # (time, what, position)
        heapq.heapify(events)

        def deliver(i, j, k):
            if k < len(sent[i]) and k < len(sent[j]):
                cleared = sent[j][k] + delay(j, i, CONTROL_BYTES) if self.rendezvous else sent[i][k]
                there, posted = max(sent[i][k], cleared) + delay(i, j, size), sent[j][k]
                heapq.heappush(events, (max(there, posted), arrival if there > posted else taking, j))

        def send(i, now):
            k = len(sent[i])
            sent[i].append(now)
            distance = k % (n - 1) + 1
            deliver(i, (i + distance) % n, k)
            deliver((i - distance) % n, i, k)

        def is_reduced(k):
            block, place = divmod(window + k, window + cycle)
            return kind in REDUCING and place >= window and (kind != "all-reduce" or block % 2 == 0)

        while events:
            now, what, i = heapq.heappop(events)
            if what != credit:
                cost = self.reduce_cost(size) if is_reduced(received[i]) else 0
                received[i] += 1
                heapq.heappush(events, (now + endpoint + cost, credit, i))
                continue
            credits[i], left = credits[i] + 1, total - len(sent[i])
            if kind == "all-reduce" and left <= n - 1:
                count = min(credits[i], left) if received[i] >= n - 1 else 0
            else:
                count = min(1, left)
            credits[i] -= count
            for _ in range(count):
                send(i, now)
            finish[i] = now
        return finish


class Placement:
    """Where the members of a collective are in the network: the dimensions that it uses, and for each of them the algorithm and the
    dimension groups. A dimension group is a list of members, by their positions, that exchange data in that dimension.
    """

    def __init__(self, network, system, kind, members, involved):
        self.network, self.members = network, members
        names = system[kind + "-implementation"]
        everyone = len(members) == network.size
        self.whole = everyone and not any(name.startswith("one") for name in names)
        if self.whole:
            self.dimensions = [
                d
                for d, dimension in enumerate(network.dimensions)
                if dimension.size > 1 and (involved is None or involved[d])
            ]
            self.algorithms, self.endpoint_delay = dict(enumerate(names)), system.get("endpoint-delay", 10)
            self.groups = {d: self.groups_along(d) for d in self.dimensions}
        else:
            self.dimensions, self.groups = [0], {0: [list(range(len(members)))]}
            only = names[0][3].lower() + names[0][4:] if names[0].startswith("one") else names[0]
            keeps = (
                everyone or len(names) == 1 and (only.startswith("direct") or self.can_halve(only, kind, len(members)))
            )
            self.algorithms = {0: only if keeps else "ring"}
            self.endpoint_delay = system.get("endpoint-delay", 10) if everyone else 10
        self.is_subgroup = not everyone
        self.takes_turns_at_trees = everyone and any("oubleBinaryTree" in name for name in names)

    @staticmethod
    def can_halve(algorithm, kind, size):
        return algorithm == "halvingDoubling" and kind != "all-to-all" and size & (size - 1) == 0

    def goes_round(self, dimension):
        """Returns whether positions have a next one, so that there are two ways round."""
        return self.algorithms[dimension] == "ring" or self.algorithms[dimension].startswith("direct")

    def groups_along(self, dimension):
        """Returns the dimension groups of all NPUs of the network."""
        stride, size = self.network.strides()[dimension], self.network.dimensions[dimension].size
        firsts = [npu for npu in range(self.network.size) if npu // stride % size == 0]
        return [[first + j * stride for j in range(size)] for first in firsts]

    def is_regular(self):
        """Returns whether members that arrive together stay together, because all of them have equal delays."""
        if "doubleBinaryTree" in self.algorithms.values():
            return False
        return self.whole or all(
            len({self.network.delay(self.members[i - 1], self.members[i], size) for i in range(len(self.members))}) == 1
            for size in (1, 1 << 30)
        )


# ---- execution ----


class Npu:
    """The nodes of one NPU and how far they have got."""

    def __init__(self, path):
        self.nodes = {node.id: node for node in chakra.read(path)}
        self.missing, self.followers = {}, collections.defaultdict(
            list
        )  # by id: unfinished dependencies, nodes that depend on it
        for node in self.nodes.values():
            node.attributes = {name: getattr(value, "value", value) for name, value in node.attributes.items()}
            dependencies = {*node.data_deps, *node.ctrl_deps}
            self.missing[node.id] = len(dependencies)
            for dependency in dependencies:
                self.followers[dependency].append(node.id)
        self.ready = [id for id, count in self.missing.items() if count == 0]
        self.busy = collections.Counter()  # by resource: nodes that hold it
        self.collectives = collections.Counter()  # by process group: collectives issued
        self.turns = collections.Counter()  # Collectives.take_turns
        self.completed, self.finish_time = 0, None

    def complete(self, id, time):
        """Frees the node's resource and makes the nodes ready that waited for it alone."""
        self.busy[resource_of(self.nodes[id])] -= 1
        self.completed, self.finish_time = self.completed + 1, time
        for follower in self.followers[id]:
            self.missing[follower] -= 1
            if self.missing[follower] == 0:
                self.ready.append(follower)


def resource_of(node):
    """Returns the resource of which a node needs one place; None for a receive, which needs none."""
    if node.attributes.get("is_cpu_op", 0):
        return "cpu"
    return {chakra.COMP: "compute", chakra.RECV: None}.get(node.type, "communication")


class Simulation:
    """One run: every NPU issues its ready nodes in ascending order of their ids, as far as resources are free."""

    Event = collections.namedtuple("Event", "npu node since origin channel")

    def __init__(self, prefix, network, system, memory, groups, num_queues=1, rendezvous=False):
        self.network, self.system, self.memory, self.groups, self.rendezvous = (
            network,
            system,
            memory,
            groups or {},
            rendezvous,
        )
        self.npus = [Npu(f"{prefix}.{i}.et") for i in range(network.size)]
        self.algorithms = Collectives(network, system, num_queues, rendezvous)
        self.events, self.sequence = [], 0
        self.instant = collections.deque()  # nodes that the NPU at hand has begun and that take no time
        self.in_store = False  # whether the event at hand has what the NPU at hand has pending for itself
        self.cause = None  # where the event at hand stands among those of this time, and its NPU
        self.members = {}  # of a collective that still waits for members: {NPU: (arrival, node id)}
        # Of messages from, to, tag: arrived ones that nobody has received, receives that wait, sends that wait for a receive, and
        # receives that have told the sender to begin.
        self.arrived, self.receives = collections.Counter(), collections.defaultdict(collections.deque)
        self.held, self.granted = collections.defaultdict(collections.deque), collections.defaultdict(collections.deque)
        self.requests, self.free = [], collections.Counter()  # of memory servers; when each is free

    def run(self):
        """Returns the finish time of every NPU in ns; None for an NPU that is stuck."""
        for npu in range(self.network.size):
            self.cause = 0, npu, 0, npu
            self.issue(npu, 0)
            self.end_instant_nodes(npu, 0)
        self.serve_requests(0)
        while self.events:
            self.handle_time(self.events[0][0])
        return [npu.finish_time if npu.completed == len(npu.nodes) else None for npu in self.npus]

    def handle_time(self, now):
        """Handles the events of one time: each NPU handles its own one after the other, and begins nodes after each."""
        batches = collections.defaultdict(list)
        while self.events and self.events[0][0] == now:
            event = heapq.heappop(self.events)[2]
            if event.node is None:  # a message, which may have come before its receive
                if not self.receives[event.channel]:
                    self.arrived[event.channel] += 1
                    continue
                event = event._replace(node=self.receives[event.channel].popleft())
            batches[event.npu].append(event)
        for npu, batch in batches.items():
            # What an NPU has pending for itself comes together, in the place of what it has known longest.
            first = min((event.since for event in batch if event.channel is None), default=now)

            def place(event):
                return first if event.channel is None else event.since, event.origin, int(event.origin != npu)

            for event in sorted(batch, key=lambda event: (place(event), event.since, event.node)):
                if self.in_store and event.channel is not None:
                    self.end_stored_nodes(npu, now)
                self.in_store = event.channel is None
                self.cause = *place(event), npu
                self.npus[npu].complete(event.node, now)
                self.issue(npu, now)
            self.end_instant_nodes(npu, now)
        self.serve_requests(now)

    def end_instant_nodes(self, npu, now):
        """Ends the nodes that take no time, one after the other, after all else that ends at this time. All but receives are pending: the
        first of them begins an event, which ends those that come while it is under way."""
        self.cause = now, npu, 0, npu
        while self.instant:
            if self.in_store:
                self.end_stored_nodes(npu, now)
            if self.instant:
                id = self.instant.popleft()
                self.in_store = self.is_stored(npu, id)
                self.npus[npu].complete(id, now)
                self.issue(npu, now)
        self.in_store = False

    def end_stored_nodes(self, npu, now):
        """Ends those of these nodes that an NPU has pending, in the event at hand."""
        while (stored := next((id for id in self.instant if self.is_stored(npu, id)), None)) is not None:
            self.instant.remove(stored)
            self.npus[npu].complete(stored, now)
            self.issue(npu, now)

    def is_stored(self, npu, id):
        return self.npus[npu].nodes[id].type != chakra.RECV

    def at(self, time, now, npu, node, since=None, origin=None, channel=None):
        """Adds the end of a node, or a message on a channel. `since`: when it was first known to come then; `origin`: the NPU that made
        it come."""
        if time == now and channel is None:
            self.instant.append(node)
            return
        self.sequence += 1
        origin = npu if origin is None else origin
        heapq.heappush(
            self.events, (time, self.sequence, self.Event(npu, node, now if since is None else since, origin, channel))
        )

    def issue(self, npu, now):
        state = self.npus[npu]
        for id in sorted(state.ready):
            resource = resource_of(state.nodes[id])
            if resource is None or not state.busy[resource]:
                state.ready.remove(id)
                state.busy[resource] += 1
                self.start(npu, state.nodes[id], now)

    def start(self, npu, node, now):
        starters = {
            chakra.COMP: self.start_compute,
            chakra.COLL: self.join_collective,
            chakra.SEND: self.send,
            chakra.RECV: self.receive,
            chakra.MEM_LOAD: self.access_memory,
            chakra.MEM_STORE: self.access_memory,
        }
        if self.system.get("replay-only"):
            self.at(now + recorded_duration(node), now, npu, node.id)
        elif node.type in starters:
            starters[node.type](npu, node, now)
        else:
            self.at(now, now, npu, node.id)

    def start_compute(self, npu, node, now):
        if not self.system.get("roofline-enabled") or node.attributes.get("is_cpu_op", 0):
            duration = recorded_duration(node)
        elif not node.attributes.get("tensor_size"):
            duration = 0
        else:
            operations = node.attributes.get("num_ops", 0)
            intensity = operations / node.attributes["tensor_size"]
            performance = min(self.system["local-mem-bw"] * 1e9 * intensity, self.system["peak-perf"] * 1e12)
            duration = int(operations / performance * 1e9)
        self.at(now + duration, now, npu, node.id)

    def members_of(self, npu, node):
        """Returns the dimensions that a collective names if these are not all, else None; and its members."""
        name, involved = node.attributes.get("pg_name", ""), node.attributes.get("involved_dim")
        if name in self.groups:
            involved = None
        subset = self.network.sub_network(npu, involved) if involved else None
        if subset:
            return involved, subset
        members = self.groups.get(name, range(self.network.size))
        # If they are all NPUs, it does not matter in which order the group lists them.
        return None, sorted(members) if len(members) == self.network.size else members

    def join_collective(self, npu, node, now):
        """Joins a collective. When the last member is there, its algorithm tells when each of them finishes."""
        involved, members = self.members_of(npu, node)
        name, subset = node.attributes.get("pg_name", ""), involved is not None
        if subset:
            wide = tuple(
                bool(uses) and dimension.size > 1 for uses, dimension in zip(involved, self.network.dimensions)
            )
            name = wide, members[0]
        state = self.npus[npu]
        key = name, state.collectives[name]
        state.collectives[name] += 1
        waiting = self.members.setdefault(key, {})
        waiting[npu] = now, node.id, state.turns.copy()
        kind, num_bytes = KINDS[node.attributes["comm_type"]], node.attributes["comm_size"]
        everyone = list(range(self.network.size) if subset else members)
        self.algorithms.take_turns(kind, num_bytes, everyone, involved, state.turns)
        if len(members) == 1:
            del self.members[key]
            self.at(now, now, npu, node.id)
        if len(waiting) < len(members) or len(members) == 1:
            return
        del self.members[key]
        # The other NPUs do the same among themselves. Their arrivals do not matter to these members.
        first = min(arrival for arrival, _, _ in waiting.values())
        arrivals = [waiting[m][0] if m in waiting else first for m in everyone]
        turns = self.algorithms.least_turns(turns for _, _, turns in waiting.values())
        times = self.algorithms.finish_times(kind, num_bytes, everyone, arrivals, involved, turns)
        for member, time in zip(everyone, times):
            if member in waiting:
                # The last step of a collective ends an endpoint delay after its message is there.
                self.at(time, None, member, waiting[member][1], time - self.system.get("endpoint-delay", 10))

    def send(self, npu, node, now):
        key = npu, node.attributes["comm_dst"], node.attributes.get("comm_tag", 0)
        if self.rendezvous and not self.granted[key]:
            self.held[key].append((npu, node, now))
        else:
            self.transfer(npu, node, key, max(now, self.granted[key].popleft()) if self.rendezvous else now)

    def receive(self, npu, node, now):
        key = node.attributes["comm_src"], npu, node.attributes.get("comm_tag", 0)
        if self.rendezvous:
            told = now + self.network.delay(npu, key[0], CONTROL_BYTES)
            if self.held[key]:
                sender, sent, since = self.held[key].popleft()
                self.transfer(sender, sent, key, max(since, told))
            else:
                self.granted[key].append(told)
        if self.arrived[key]:
            self.arrived[key] -= 1
            self.at(now, now, npu, node.id)
        else:
            self.receives[key].append(node.id)

    def transfer(self, npu, node, key, now):
        time = now + self.network.delay(npu, key[1], node.attributes["comm_size"])
        self.at(time, None, npu, node.id, now, channel=key)
        self.at(time, None, key[1], None, now, npu, key)

    def access_memory(self, npu, node, now):
        """Queues an access at the memory server of the NPU. An NPU's own memory serves all of its accesses side by side."""
        if self.memory["memory-type"] == "PER_NPU_MEMORY_EXPANSION":
            self.at(now + self.access_time(node), now, npu, node.id)
        else:
            server = (
                npu // self.memory.get("num-npus-per-node", 1)
                if self.memory["memory-type"] == "PER_NODE_MEMORY_EXPANSION"
                else 0
            )
            self.requests.append((self.cause, server, node))

    def serve_requests(self, now):
        """Queues the requests of one time at their servers, in the order of the events that led to them."""
        requests, self.requests = sorted(self.requests, key=lambda request: request[0]), []
        for cause, server, node in requests:
            since = max(now, self.free[server])
            self.free[server] = since + self.access_time(node)
            self.at(self.free[server], None, cause[-1], node.id, since)

    def access_time(self, node):
        return int(self.memory.get("remote-mem-latency", 0)) + int(
            node.attributes["tensor_size"] / int(self.memory["remote-mem-bw"])
        )


def recorded_duration(node):
    """Returns the ns of the duration in the trace, which is in us; 1 ns for a node without one."""
    return node.duration * 1000 or 1


def simulate(prefix, network, system, memory, groups, num_queues=1, rendezvous=False):
    """Runs the traces PREFIX.<npu>.et and returns the finish time of every NPU in ns; None for an NPU that is stuck.

    `system`, `memory` and `groups` hold what ASTRA-sim's system.json, remote_memory.json and comm_group.json say.
    """
    return Simulation(prefix, network, system, memory, groups, num_queues, rendezvous).run()


# ---- the program ----


def read_network(path):
    """Returns the Network that ASTRA-sim's network.yml describes."""
    text = pathlib.Path(path).read_text()

    def values(key):
        return [value.strip() for value in re.search(rf"{key}:\s*\[(.*?)\]", text)[1].split(",")]

    return Network(
        values("topology"),
        list(map(int, values("npus_count"))),
        list(map(float, values("bandwidth"))),
        list(map(float, values("latency"))),
    )


def read_json(path):
    return json.loads(pathlib.Path(path).read_text()) if path and pathlib.Path(path).exists() else {}


def simulate_files(prefix, network, system, memory=None, groups=None, num_queues=1, rendezvous=False):
    return simulate(
        prefix, read_network(network), read_json(system), read_json(memory), read_json(groups), num_queues, rendezvous
    )


FLAGS = {"num-queues-per-dim", "rendezvous-protocol", "injection-scale"}  # of a case that the oracle knows


def as_flagged(system, options):
    """Returns a system with the endpoint delay that ASTRA-sim's --injection-scale gives it."""
    return {
        **system,
        "endpoint-delay": int(system.get("endpoint-delay", 10) * float(options.get("injection-scale", 1))),
    }


def compare(case):
    """Returns "exact", "differs", or why the oracle says nothing about a reference case."""
    options = dict(flag.lstrip("-").split("=") for flag in case.flags)
    if case.kind == "defect" or not case.finish_ns() or options.keys() - FLAGS:
        return "skipped"
    try:
        files = [case.folder / name for name in ("network.yml", "system.json", "remote_memory.json", "comm_group.json")]
        system, memory, groups = map(read_json, files[1:])
        found = simulate(
            case.folder / "workload",
            read_network(files[0]),
            as_flagged(system, options),
            memory,
            groups,
            int(options.get("num-queues-per-dim", 1)),
            options.get("rendezvous-protocol") == "true",
        )
    except (NotImplementedError, KeyError) as missing:
        return f"not covered ({missing})"
    return "exact" if found == case.finish_ns() else "differs"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("workload", "network", "system", "memory", "groups"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--cases", type=pathlib.Path, default=reference_case.FOLDER)
    parser.add_argument("names", nargs="*", metavar="CASE")
    args = parser.parse_args()
    if args.workload:
        print(json.dumps(simulate_files(args.workload, args.network, args.system, args.memory, args.groups)))
        return
    tally, wrong = collections.Counter(), 0
    for case in reference_case.all_cases(args.cases, args.names):
        found = compare(case)
        tally[found.split(" (")[0]] += 1
        if found not in ("exact", "skipped"):
            print(f"{case.kind:6} {case.name}: {found}")
        wrong += found == "differs" and case.kind == "exact"
    print(", ".join(f"{count} {found}" for found, count in sorted(tally.items())))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
