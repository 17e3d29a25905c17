#!/usr/bin/python3
"""Simulates the messages of a training step one by one, in the order of one queue of events, as an independent check of Orrery.

Where oracle.py computes when collectives end, this program sends every message of every member, in the congestion-aware network over
every link. Events of one nanosecond come in the order in which they were scheduled, from time 0 on, as in ASTRA-sim. So it also knows
what happens when several events come at one time. It covers what oracle.py covers, except double binary trees; the congestion-aware
network of one dimension; and it gets stuck where ASTRA-sim does: if chunks of members that arrive at different times wait for each other.

usage: event_oracle.py [--cases DIR] [--network aware] [CASE ...]

Compares itself with the finish times of reference cases and exits with 1 if an exact case differs.
"""
import argparse
import collections
import heapq
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import oracle  # noqa: E402
import reference_case  # noqa: E402


class Link:
    """A directed link of the congestion-aware network: serves one message after the other."""

    def __init__(self, sim, bandwidth, latency):
        self.sim, self.rate, self.latency = sim, bandwidth * oracle.GIGABYTE / 1e9, latency
        self.busy, self.waiting = False, collections.deque()

    def send(self, size, there):
        if self.busy:
            self.waiting.append((size, there))
        else:
            self.serve(size, there)

    def serve(self, size, there):
        self.busy = True
        self.sim.schedule(int(self.latency + size / self.rate), there)
        self.sim.schedule(int(size / self.rate), self.end)

    def end(self):
        self.busy = False
        if self.waiting:
            self.serve(*self.waiting.popleft())


class Links:
    """The links of a network of one dimension, and the routes over them."""

    def __init__(self, sim, network):
        if len(network.dimensions) != 1:
            raise NotImplementedError("links of several dimensions")
        self.dimension, self.all = network.dimensions[0], {}
        self.sim = sim

    def route(self, source, destination):
        n, shape = self.dimension.size, self.dimension.shape
        if shape == "FullyConnected":
            return [source, destination]
        if shape == "Switch":
            return [source, "switch", destination]
        forward = (destination - source) % n
        step = 1 if forward <= n - forward else -1
        return [(source + step * k) % n for k in range(min(forward, n - forward) + 1)]

    def send(self, source, destination, size, there):
        self.forward(self.route(source, destination), size, there)

    def forward(self, route, size, there):
        if len(route) == 1:
            there()
            return
        ends = route[0], route[1]
        if ends not in self.all:
            self.all[ends] = Link(self.sim, self.dimension.bandwidth, self.dimension.latency)
        self.all[ends].send(size, lambda: self.forward(route[1:], size, there))


class Delays:
    """The congestion-unaware network: every message takes its delay."""

    def __init__(self, sim, network):
        self.sim, self.network = sim, network

    def send(self, source, destination, size, there):
        self.sim.schedule(self.network.delay(source, destination, size), there)


class Phase:
    """One member's part in one phase of a chunk: it sends its messages in order and takes one for each."""

    def __init__(self, sim, npu, key, placement, phase, group, end):
        self.sim, self.npu, self.key, self.end, self.endpoint = sim, npu, key, end, placement.endpoint_delay
        self.members = [placement.members[i] for i in group]
        self.position, n = self.members.index(npu), len(group)
        algorithm, kind = placement.algorithms[phase.dimension], phase.kind
        message = phase.bytes if kind == "all-gather" else phase.bytes // n
        self.window, self.all_at_once = 1, None
        if algorithm == "ring":
            steps = oracle.ring_steps(kind, n, message, lambda size: size)
            self.messages = [(1, -1, size) for size, _ in steps]
            self.reduces = [
                message if step < n and kind in oracle.REDUCING else None for step in range(1, len(self.messages) + 1)
            ]
        elif algorithm.startswith("direct"):
            self.window = min(int(algorithm[6:] or n), n - 1)
            total = (n - 1) * (2 if kind == "all-reduce" else 1)
            self.messages = [(k % (n - 1) + 1, -(k % (n - 1) + 1), message) for k in range(total)]
            self.reduces = [
                message if self.is_reduced(k, kind, n, placement.is_subgroup) else None for k in range(total)
            ]
            self.all_at_once = n - 1 if kind == "all-reduce" else None
        elif algorithm == "halvingDoubling" and kind != "all-to-all" and n & (n - 1) == 0:
            steps = list(oracle.halving_doubling_steps(kind, n, phase.bytes, message, lambda size: size))
            self.messages = [((self.position ^ d) - self.position,) * 2 + (size,) for d, size, _ in steps]
            self.reduces = [reduced or None for _, _, reduced in steps]
        else:
            raise NotImplementedError(f"{algorithm} {kind} of {n} members")
        self.sent = self.received = self.credits = 0

    def is_reduced(self, k, kind, n, is_subgroup):
        block, place = divmod(self.window + k, self.window + (self.window * (n - 1) if is_subgroup else self.window))
        return kind in oracle.REDUCING and place >= self.window and (kind != "all-reduce" or block % 2 == 0)

    def begin(self):
        for _ in range(self.window):
            self.sim.store(self.npu, self.endpoint, self.credit)

    def receive(self):
        reduced = self.reduces[self.received]
        self.received += 1

        def moved():
            if reduced is None:
                self.credit()
            else:
                self.sim.store(self.npu, self.sim.algorithms.reduce_cost(reduced), self.credit)

        self.sim.store(self.npu, self.endpoint, moved)

    def credit(self):
        """Sends the next message, or, in the second half of a direct all-reduce, as many as may be sent."""
        self.credits += 1
        left = len(self.messages) - self.sent
        if self.all_at_once is not None and left <= self.all_at_once:
            if self.received < self.all_at_once:
                return
            for _ in range(self.window):
                self.send_next()
        else:
            self.send_next()
        if self.sent == len(self.messages) and self.credits == self.window:
            self.end()

    def send_next(self):
        if self.sent == len(self.messages) or self.credits == 0:
            return
        to, source, size = self.messages[self.sent]
        self.sent += 1
        self.credits -= 1
        n = len(self.members)
        self.sim.front_send(self.npu, self.members[(self.position + to) % n], self.key, size, lambda: None)
        self.sim.front_receive(self.members[(self.position + source) % n], self.npu, self.key, size, self.receive)


class EventSimulation(oracle.Simulation):
    """One run with one queue of events."""

    def __init__(self, prefix, network, system, memory, groups, num_queues=1, rendezvous=False, aware=False):
        super().__init__(prefix, network, system, memory, groups, num_queues, rendezvous)
        self.now, self.stored = 0, {}
        self.transport = (Links if aware else Delays)(self, network)
        self.messages = collections.defaultdict(
            collections.deque
        )  # by channel: [sent, whether they are there, what follows]
        self.busy_servers, self.waiting = set(), collections.defaultdict(collections.deque)
        self.queues = collections.defaultdict(lambda: [0, collections.deque()])  # by NPU and queue: in service, waiting
        self.ordinals = collections.Counter()

    # ---- events ----

    def schedule(self, delay, action):
        self.sequence += 1
        heapq.heappush(self.events, (self.now + delay, self.sequence, action))

    def store(self, npu, delay, action):
        """Schedules what an NPU has pending for itself. All that it has for one time is one event."""
        key = npu, self.now + delay
        if key in self.stored:
            self.stored[key].append(action)
            return
        self.stored[key] = collections.deque([action])

        def run():
            while self.stored[key]:
                self.stored[key].popleft()()
            del self.stored[key]

        self.schedule(delay, run)

    def run(self):
        for npu in range(self.network.size):
            self.issue(npu, 0)
        while self.events:
            self.now, _, action = heapq.heappop(self.events)
            action()
        return [npu.finish_time if npu.completed == len(npu.nodes) else None for npu in self.npus]

    def end(self, npu, node):
        self.npus[npu].complete(node.id, self.now)
        self.issue(npu, self.now)

    def at(self, time, now, npu, id, since=None, origin=None, channel=None):
        self.store(npu, time - self.now, lambda: self.end(npu, self.npus[npu].nodes[id]))

    # ---- messages ----

    def plain_send(self, source, destination, key, size, sent):
        channel = self.messages[source, destination, key]
        entry = next((e for e in channel if not e["sent"]), None)
        if entry is None:
            entry = {"received": None}
            channel.append(entry)
        entry.update(sent=True, there=False)

        def arrive():
            entry["there"] = True
            sent()
            if entry["received"]:
                channel.remove(entry)
                entry["received"]()

        self.transport.send(source, destination, size, arrive)

    def plain_receive(self, source, destination, key, received):
        channel = self.messages[source, destination, key]
        entry = next((e for e in channel if e["received"] is None), None)
        if entry is None:
            channel.append({"sent": False, "there": False, "received": received})
        elif entry["there"]:
            channel.remove(entry)
            self.schedule(0, received)
        else:
            entry["received"] = received

    def front_send(self, source, destination, key, size, sent):
        if self.rendezvous:
            self.plain_receive(
                destination, source, ("clear", key, size), lambda: self.plain_send(source, destination, key, size, sent)
            )
        else:
            self.plain_send(source, destination, (key, size), size, sent)

    def front_receive(self, source, destination, key, size, received):
        if self.rendezvous:
            self.plain_send(
                destination,
                source,
                ("clear", key, size),
                oracle.CONTROL_BYTES,
                lambda: self.plain_receive(source, destination, key, received),
            )
        else:
            self.plain_receive(source, destination, (key, size), received)

    def send(self, npu, node, now):
        attributes = node.attributes
        self.front_send(
            npu,
            attributes["comm_dst"],
            attributes.get("comm_tag", 0),
            attributes["comm_size"],
            lambda: self.end(npu, node),
        )

    def receive(self, npu, node, now):
        attributes = node.attributes
        self.front_receive(
            attributes["comm_src"],
            npu,
            attributes.get("comm_tag", 0),
            attributes["comm_size"],
            lambda: self.end(npu, node),
        )

    # ---- collectives ----

    def join_collective(self, npu, node, now):
        state, name = self.npus[npu], node.attributes.get("pg_name", "")
        involved, members = self.members_of(npu, node)
        everyone = list(range(self.network.size)) if involved else list(members)
        kind, num_bytes = oracle.KINDS[node.attributes["comm_type"]], node.attributes["comm_size"]
        if len(members) == 1:
            self.at(now, now, npu, node.id)
            return
        placement = oracle.Placement(self.network, self.system, kind, everyone, involved)
        before = state.turns.copy()
        self.algorithms.take_turns(kind, num_bytes, everyone, involved, state.turns)
        chunks = self.algorithms.divide(kind, *self.algorithms.cut(kind, num_bytes), placement, before)
        name = "" if involved or len(members) == self.network.size and name not in self.groups else name
        left = {"count": len(chunks)}
        for phases in chunks:
            key = name, self.ordinals[npu, name]
            self.ordinals[npu, name] += 1
            self.enter(npu, placement, key, collections.deque(phases), left, node, before)

    def enter(self, npu, placement, key, phases, left, node, before):
        """Puts a chunk into the queue of its next phase."""
        phase = phases.popleft()
        position = placement.members.index(npu)
        group = next(group for group in placement.groups[phase.dimension] if position in group)
        group = group[::-1] if phase.back else group
        queue = self.queues[
            npu,
            phase.dimension,
            (phase.queue + self.first_queue(placement, phase, before)) % self.algorithms.num_queues,
        ]

        def end():
            if not phases:
                left["count"] -= 1
                if left["count"] == 0:
                    self.end(npu, node)
            queue[0] -= 1
            self.serve(queue)
            if phases:
                self.enter(npu, placement, key, phases, left, node, before)

        queue[1].append(Phase(self, npu, (key, phase.dimension, len(phases)), placement, phase, group, end))
        self.serve(queue)

    def first_queue(self, placement, phase, before):
        return 0 if self.algorithms.num_queues == 1 else before[phase.dimension]

    def serve(self, queue):
        while queue[1] and queue[0] < self.algorithms.in_service():
            queue[0] += 1
            queue[1].popleft().begin()

    # ---- memory ----

    def access_memory(self, npu, node, now):
        kind = self.memory["memory-type"]
        if kind == "PER_NPU_MEMORY_EXPANSION":
            self.at(now + self.access_time(node), now, npu, node.id)
            return
        server = npu // self.memory.get("num-npus-per-node", 1) if kind == "PER_NODE_MEMORY_EXPANSION" else 0
        self.waiting[server].append((npu, node))
        self.serve_next(server)

    def serve_next(self, server):
        if server in self.busy_servers or not self.waiting[server]:
            return
        self.busy_servers.add(server)
        npu, node = self.waiting[server].popleft()
        time = self.access_time(node)
        self.store(npu, time, lambda: self.end(npu, node))

        def free():
            self.busy_servers.discard(server)
            self.serve_next(server)

        self.store(npu, time, free)


def compare(case, network):
    """Returns "exact", "differs", or why the oracle says nothing about a reference case."""
    options = dict(flag.lstrip("-").split("=") for flag in case.flags)
    if case.kind == "defect" or not case.finish_ns(network) or options.keys() - oracle.FLAGS:
        return "skipped"
    files = [case.folder / name for name in ("network.yml", "system.json", "remote_memory.json", "comm_group.json")]
    try:
        system, memory, groups = map(oracle.read_json, files[1:])
        sim = EventSimulation(
            case.folder / "workload",
            oracle.read_network(files[0]),
            oracle.as_flagged(system, options),
            memory,
            groups,
            int(options.get("num-queues-per-dim", 1)),
            options.get("rendezvous-protocol") == "true",
            network == "aware",
        )
        found = sim.run()
    except NotImplementedError as missing:
        return f"not covered ({missing})"
    return "exact" if found == case.finish_ns(network) else "differs"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=pathlib.Path, default=reference_case.FOLDER)
    parser.add_argument("--network", choices=["unaware", "aware"], default="unaware")
    parser.add_argument("names", nargs="*", metavar="CASE")
    args = parser.parse_args()
    tally, wrong = collections.Counter(), 0
    for case in reference_case.all_cases(args.cases, args.names):
        found = compare(case, args.network)
        tally[found.split(" ")[0]] += 1
        if not found.startswith(("exact", "skipped")):
            print(f"{case.kind:6} {case.name}: {found}")
        wrong += found.startswith("differs") and case.kind == "exact"
    print(", ".join(f"{count} {found}" for found, count in sorted(tally.items())))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
