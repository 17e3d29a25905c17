#!/usr/bin/python3
"""What must follow for one run from another: random workloads whose systems, NPUs or neighbours change with a known effect."""
import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from random_workload import Workload  # noqa: E402

SEEDS = range(3 if harness.FEWER_CASES else 8)
MEMORY_KINDS = {
    "NO_MEMORY_EXPANSION": "none",
    "PER_NPU_MEMORY_EXPANSION": "per-npu",
    "PER_NODE_MEMORY_EXPANSION": "per-node",
    "MEMORY_POOL": "pool",
}
QUANTITIES = (*harness.QUANTITIES, "peak_memory")


def rows(path):
    """Returns the values of each NPU in /npus as a tuple."""
    import h5py

    with h5py.File(path) as results:
        return list(zip(*(map(int, results["npus/" + name][:]) for name in QUANTITIES)))


class Halves(Workload):
    """A workload in which every time is an even number of ps under `physical` rules, and twice that of a system twice as fast."""

    def draw_memory(self):
        memory = super().draw_memory()
        if "remote-mem-bw" in memory:
            memory["remote-mem-bw"] = self.random.choice([25, 50])
        return memory

    def draw_system(self):
        system = super().draw_system()
        self.roofline = False
        system.bandwidth = [self.random.choice([25, 50, 100, 125]) for _ in system.counts]
        system.latency = [self.random.choice([2, 100, 500, 738]) for _ in system.counts]
        system.system["local-mem-bw"] = self.random.choice([50, 100])
        system.system["endpoint-delay"] = self.random.choice([2, 10, 26])
        for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):  # groups are grids of any size
            names = system.system[kind + "-implementation"]
            system.system[kind + "-implementation"] = [
                {"halvingDoubling": "ring", "oneHalvingDoubling": "oneRing"}.get(name, name) for name in names
            ]
        return system

    def shuffle_ids(self):
        super().shuffle_ids()
        for node in sum(self.traces, []):
            if node.type == chakra.COMP:
                node.duration = 2 * node.duration + 2

    def write(self, folder, speed):
        """Writes the system `speed` times as fast as drawn in Orrery's own form. Returns the configuration file."""
        traces = copy.deepcopy(self.traces)
        for node in sum(traces, []):
            node.duration //= speed
        harness.write_workload(folder, traces)
        self.system.write(folder)
        system, memory = self.system.system, self.memory
        lines = ["system:", "  rules: physical", "  network:", "    dimensions:"]
        for shape, size, bandwidth, latency in zip(
            self.system.topology, self.system.counts, self.system.bandwidth, self.system.latency
        ):
            lines.append(
                f"      - {{shape: {shape}, size: {size}, bandwidth: {bandwidth * speed} GB/s, latency: {latency / speed} ns}}"
            )
        lines.append("  collectives:")
        for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
            lines.append(f"    {kind}: [{', '.join(system[kind + '-implementation'])}]")
        lines += [
            f"    optimization: {system['collective-optimization']}",
            f"    chunks: {system['preferred-dataset-splits']}",
            f"    active-chunks: {system['active-chunks-per-dimension']}",
            f"    queues: {self.queues}",
            f"    endpoint-delay: {system['endpoint-delay'] / speed} ns",
            f"  compute: {{local-memory: {{bandwidth: {system['local-mem-bw'] * speed} GB/s}}}}",
            f"  communication: {{rendezvous: {str(self.rendezvous).lower()}}}",
            f"  remote-memory:\n    kind: {MEMORY_KINDS[memory['memory-type']]}",
        ]
        if "remote-mem-bw" in memory:
            lines += [
                f"    bandwidth: {memory['remote-mem-bw'] * speed} GB/s",
                f"    latency: {memory['remote-mem-latency'] / speed} ns",
            ]
        if "num-npus-per-node" in memory:
            lines.append(f"    npus-per-node: {memory['num-npus-per-node']}")
        lines += ["workload:", "  traces: workload"] + (["  groups: comm_group.json"] if self.groups else [])
        path = folder / f"at_{speed}.yaml"
        path.write_text("\n".join(lines) + "\n")
        return path


class Symmetric(Workload):
    """A workload on one dimension in which `permutation`, of the NPUs' ids, changes nothing but names."""

    def draw_memory(self):
        return self.random.choice(
            [
                {"memory-type": "NO_MEMORY_EXPANSION"},
                {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 250, "remote-mem-bw": 33},
            ]
        )

    def draw_system(self):
        r, n = self.random, self.random.randint(3, 12)
        shape = r.choice(["Ring", "FullyConnected", "Switch"])
        if shape == "Ring":  # turned
            turn = r.randrange(1, n)
            self.permutation = [(i + turn) % n for i in range(n)]
        else:
            self.permutation = r.sample(range(n), n)
        system = super().draw_system().system
        for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
            system[kind + "-implementation"] = [r.choice(["ring", "direct"]) if shape == "Ring" else "direct"]
        flags = [f"--num-queues-per-dim={self.queues}"] + (["--rendezvous-protocol=true"] if self.rendezvous else [])
        return harness.System(
            [shape], [n], r.choice([25.0, 33.3, 100.0]), r.choice([1.0, 500.0]), system, self.memory, flags=flags
        )

    def permuted(self):
        """Returns the traces and groups of the same workload with the NPUs renamed."""
        traces = [None] * self.num_npus
        for npu, nodes in enumerate(copy.deepcopy(self.traces)):
            traces[self.permutation[npu]] = nodes
            for node in nodes:
                for end in ("comm_src", "comm_dst"):
                    if end in node.attributes:
                        node.attributes[end] = self.permutation[node.attributes[end]]
        return traces, {name: [self.permutation[npu] for npu in members] for name, members in self.groups.items()}


class Tenant(Workload):
    """A workload on some NPUs of a system; the others run free. `beside` is the tenant that has the others."""

    def __init__(self, seed, beside=None):
        self.beside = beside
        super().__init__(seed, operations=(20, 60))

    def draw_memory(self):
        return {"memory-type": "NO_MEMORY_EXPANSION"}

    def draw_system(self):
        if self.beside:
            self.rendezvous, self.chained, self.roofline = (
                self.beside.rendezvous,
                self.beside.chained,
                self.beside.roofline,
            )
            return self.beside.system
        while (system := super().draw_system()).num_npus < 4:
            pass
        return system

    def draw_tied(self):
        npus = range(self.num_npus)
        if self.beside:
            return [npu for npu in npus if npu not in self.beside.tied]
        return sorted(self.random.sample(npus, self.random.randint(2, self.num_npus - 2)))

    def draw_groups(self):
        groups = super().draw_groups()
        return {"tenant " + name: members for name, members in groups.items()} if self.beside else groups


class Metamorphic(harness.Folder):
    def test_twice_as_fast_takes_half_the_time(self):
        """With twice the bandwidths and half the latencies and durations, every NPU of a random workload finishes in exactly half the
        time."""
        for seed in SEEDS:
            with self.subTest(f"seed {seed}"):
                workload = Halves(70_000 + seed)
                slow = harness.finish_times(self.run_once([workload.write(self.folder, 1)]))
                fast = harness.finish_times(self.run_once([workload.write(self.folder, 2)]))
                self.assertEqual([2 * time for time in fast], slow)

    def test_names_of_npus_do_not_matter(self):
        """With its NPUs renamed by a symmetry of the network, a random workload gives each NPU the results of its former name."""
        for seed in SEEDS:
            with self.subTest(f"seed {seed}"):
                workload = Symmetric(80_000 + seed)
                before = rows(
                    self.run_once(
                        [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
                    )
                )
                traces, groups = workload.permuted()
                workload.system.groups = groups or None
                after = rows(
                    self.run_once([harness.write_workload(self.folder, traces)] + workload.system.write(self.folder))
                )
                self.assertEqual([after[npu] for npu in workload.permutation], before)
                self.clear_folder()

    def test_another_tenant_changes_nothing(self):
        """A random workload on some NPUs gives the same results whether the others are idle or run another workload, on 1 to 3 ranks."""
        for seed in SEEDS:
            with self.subTest(f"seed {seed}"):
                one = Tenant(90_000 + seed)
                other = Tenant(95_000 + seed, one)
                one.system.groups = {**one.groups, **other.groups} or None
                files = one.system.write(self.folder)
                alone = rows(self.run_once([harness.write_workload(self.folder, one.traces)] + files))
                traces = [one.traces[npu] if npu in one.tied else other.traces[npu] for npu in range(one.num_npus)]
                together = rows(self.run_once([harness.write_workload(self.folder, traces)] + files, ranks=seed % 4))
                self.assertEqual([together[npu] for npu in one.tied], [alone[npu] for npu in one.tied])
                self.assertNotEqual(together, alone, "the other tenant does something")
                self.clear_folder()


if __name__ == "__main__":
    harness.main()
