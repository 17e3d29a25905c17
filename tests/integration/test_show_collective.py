#!/usr/bin/python3
"""`orrery show collective`: its figures and the lines of its table are those that a run of the single collective has in /collectives,
for several algorithms, shapes, kinds and groups, in both networks. The table has the sizes and columns of nccl-tests, as text, CSV and
JSON."""
import csv
import json
import pathlib
import sys

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402

LINK = "bandwidth: 50 GB/s, latency: 500 ns"
KINDS = {
    "all-reduce": chakra.ALL_REDUCE,
    "all-gather": chakra.ALL_GATHER,
    "reduce-scatter": chakra.REDUCE_SCATTER,
    "all-to-all": chakra.ALL_TO_ALL,
    "broadcast": chakra.BROADCAST,
    "reduce": chakra.REDUCE,
    "gather": chakra.GATHER,
    "scatter": chakra.SCATTER,
}
SIZES = [2**k for k in range(10, 35)]
COMPARED = (2**10, 2**20, 2**34)  # of them in a run
UNAWARE, AWARE = "congestion-unaware", "congestion-aware"
SLOW = "{links: [{dimension: 0, npus: 1, bandwidth: 0.5}]}"

# Dimensions, further keys of system.collectives, kind, number of members (None: all), networks, perturbation.
CASES = [
    (f"{{shape: Ring, size: 8, {LINK}}}", "chunks: 4", "all-reduce", None, (UNAWARE, AWARE), "{}"),
    (f"{{shape: Ring, size: 6, {LINK}}}", "all-to-all: [ring]", "all-to-all", 4, (UNAWARE, AWARE), "{}"),
    (f"{{shape: Mesh, size: 4, {LINK}}}", "chunks: 2", "all-gather", None, (UNAWARE, AWARE), "{}"),
    (
        f"{{shape: Switch, size: 8, {LINK}}}",
        "reduce-scatter: [halvingDoubling]",
        "reduce-scatter",
        None,
        (UNAWARE, AWARE),
        "{}",
    ),
    (
        f"{{shape: Switch, size: 8, {LINK}}}",
        "all-reduce: [doubleBinaryTree], chunks: 2",
        "all-reduce",
        None,
        (UNAWARE, AWARE),
        "{}",
    ),
    (f"{{shape: Switch, size: 8, {LINK}}}", "broadcast: [binomialTree]", "broadcast", None, (UNAWARE, AWARE), "{}"),
    (
        f"{{shape: Switch, size: 8, {LINK}, in-switch-operations: 8}}",
        "all-reduce: [inSwitch]",
        "reduce",
        None,
        (UNAWARE, AWARE),
        "{}",
    ),
    (
        f"{{shape: FullyConnected, size: 5, {LINK}}}",
        "all-reduce: [direct2]",
        "all-reduce",
        None,
        (UNAWARE, AWARE),
        "{}",
    ),
    (
        f"{{shape: FullyConnected, size: 4, {LINK}}}, {{shape: Ring, size: 4, {LINK}}}",
        "chunks: 4",
        "all-reduce",
        None,
        (UNAWARE, AWARE),
        SLOW,
    ),
    (
        f"{{shape: FullyConnected, size: 4, {LINK}}}, {{shape: Ring, size: 4, {LINK}}}",
        "chunks: 1",
        "gather",
        8,
        (UNAWARE, AWARE),
        "{}",
    ),
    (
        f"{{shape: FullyConnected, size: 4, {LINK}}}, {{shape: Switch, size: 2, {LINK}}}",
        "chunks: 1",
        "scatter",
        6,
        (UNAWARE, AWARE),
        "{}",
    ),
    (
        f"{{shape: FatTree, ports: 4, size: 8, {LINK}, oversubscription: 2}}",
        "chunks: 1",
        "all-to-all",
        None,
        (AWARE,),
        "{}",
    ),
    (f"{{shape: Dragonfly, npus-per-router: 1, size: 6, {LINK}}}", "chunks: 1", "all-reduce", None, (AWARE,), "{}"),
]


class ShowCollective(harness.Folder):
    def show(self, config, kind, *more):
        outcome = harness.orrery("show", "collective", config, f"--kind={kind}", *more)
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome.out

    def config(self, dimensions, collectives, perturbation="{}", workload=""):
        """Writes a configuration and returns its path."""
        path = self.folder / "config.yaml"
        path.write_text(
            f"system:\n  network: {{dimensions: [{dimensions}]}}\n  collectives: {{{collectives}}}\n"
            f"perturbation: {perturbation}\n{workload}"
        )
        return path

    def run_alone(self, config, kind, size, members, num_npus, network):
        """Runs one collective of the first NPUs, and returns its time in ps, its algorithm bandwidth and its bus bandwidth."""
        attributes = {"pg_name": "some"} if members else {}
        chakra.write(
            self.folder / "member.et", [Node(1, chakra.COLL, comm_type=KINDS[kind], comm_size=size, **attributes)]
        )
        chakra.write(self.folder / "other.et", [Node(1, chakra.COMP)])
        (self.folder / "groups.json").write_text(json.dumps({"some": list(range(members or num_npus))}))
        traces = "{all: member.et}"
        if members:
            traces = f"[{{npus: 0-{members - 1}, file: member.et}}, {{npus: {members}-{num_npus - 1}, file: other.et}}]"
        config.write_text(config.read_text() + f"workload: {{traces: {traces}, groups: groups.json}}\n")
        results = self.folder / "results.h5"
        outcome = harness.orrery("run", config, f"--network={network}", f"--output={results}", "--force")
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(results) as file:
            table = file["collectives"]
            self.assertEqual(len(table["finish"]), 1)
            return (
                int(table["finish"][0] - table["last_arrival"][0]),
                float(table["algorithm_bandwidth"][0]),
                float(table["bus_bandwidth"][0]),
            )

    def test_times_are_those_of_runs(self):
        """Several systems, algorithms, kinds, groups and networks, and three sizes of the table: time and bandwidths are those that
        /collectives has after a run of the collective alone. The figures for one size are the same."""
        for dimensions, collectives, kind, members, networks, perturbation in CASES:
            for network in networks:
                with self.subTest(dimensions=dimensions, collectives=collectives, kind=kind, network=network):
                    self.clear_folder()
                    config = self.config(dimensions, collectives, perturbation)
                    more = [f"--network={network}", "--json"] + ([f"--npus={members}"] if members else [])
                    table = json.loads(self.show(config, kind, "--table", *more))
                    num_npus = json.loads(
                        harness.orrery("show", "topology", config, f"--network={network}", "--json").out
                    )["npus"]
                    self.assertEqual(table["members"], members or num_npus)
                    self.assertEqual(table["network"], network)
                    self.assertEqual([row["size"] for row in table["rows"]], SIZES)
                    text = config.read_text()
                    for row in table["rows"]:
                        if row["size"] not in COMPARED:
                            continue
                        config.write_text(text)
                        share = row["size"] // table["members"]
                        self.assertEqual(row["bytes"], share if kind in ("all-gather", "gather") else row["size"])
                        self.assertEqual(
                            row["count"], (row["size"] if kind in ("all-reduce", "broadcast", "reduce") else share) // 4
                        )
                        alone = self.run_alone(config, kind, row["bytes"], members, num_npus, network)
                        shown = (
                            row["time_ps"],
                            row["algorithm_bandwidth_bytes_per_s"],
                            row["bus_bandwidth_bytes_per_s"],
                        )
                        one = json.loads(self.show(config, kind, f"--bytes={row['bytes']} B", *more))
                        single = (
                            one["last_done_ps"],
                            one["algorithm_bandwidth_bytes_per_s"],
                            one["bus_bandwidth_bytes_per_s"],
                        )
                        for found in (shown, single):
                            self.assertEqual(found[0], alone[0])
                            for bandwidth, of_run in zip(found[1:], alone[1:]):
                                self.assertAlmostEqual(bandwidth / of_run, 1, places=12)

    def test_forms_of_the_table_agree(self):
        """A ring of 8 with its table as text, CSV and JSON: all have the same 25 sizes, counts and times, to the digits that they
        print, and the columns of nccl-tests."""
        config = self.config(f"{{shape: Ring, size: 8, {LINK}}}", "chunks: 4")
        rows = json.loads(self.show(config, "reduce-scatter", "--table", "--json"))["rows"]
        text = self.show(config, "reduce-scatter", "--table").splitlines()
        table = list(csv.DictReader(self.show(config, "reduce-scatter", "--table", "--csv").splitlines()))
        self.assertEqual(
            text[:2],
            [
                "# reduce-scatter among 8 NPUs in the congestion-unaware network",
                "# dimension 0: ring (reduce-scatter among 8 in 4 steps)",
            ],
        )
        self.assertEqual(text[2].split(), ["#", "size", "count", "type", "time", "algbw", "busbw"])
        self.assertEqual(
            list(table[0]), ["size (B)", "count (elements)", "type", "time (us)", "algbw (GB/s)", "busbw (GB/s)"]
        )
        self.assertEqual(len(text) - 4, len(rows))
        self.assertEqual(len(table), len(rows))
        for line, entry, row in zip(text[4:], table, rows):
            size, count, kind, time, algbw, busbw = line.split()
            self.assertEqual((int(size), int(count), kind), (row["size"], row["size"] // 32, "float"))
            self.assertEqual([entry["size (B)"], entry["count (elements)"], entry["type"]], [size, count, kind])
            self.assertEqual(round(float(entry["time (us)"]) * 1e6), row["time_ps"])
            self.assertAlmostEqual(float(time), row["time_ps"] / 1e6, delta=0.0051)
            for found, column in ((algbw, "algorithm_bandwidth_bytes_per_s"), (busbw, "bus_bandwidth_bytes_per_s")):
                self.assertAlmostEqual(float(found), row[column] / 1e9, delta=0.0051)

    def test_steps_are_those_of_the_document(self):
        """Groups of 8 with each algorithm: the steps are those of the table in docs/collectives.md."""
        of_ring = {"all-reduce": 14, "all-gather": 7, "reduce-scatter": 7, "all-to-all": 28}
        cases = [("ring", kind, steps) for kind, steps in of_ring.items()]
        cases += [
            ("direct", "all-reduce", 2),
            ("direct", "all-gather", 1),
            ("direct2", "all-gather", 4),
            ("halvingDoubling", "all-reduce", 6),
            ("halvingDoubling", "reduce-scatter", 3),
            ("doubleBinaryTree", "all-reduce", 6),
            ("binomialTree", "all-reduce", 6),
            ("inSwitch", "all-reduce", 2),
        ]
        for algorithm, kind, steps in cases:
            with self.subTest(algorithm=algorithm, kind=kind):
                config = self.config(
                    f"{{shape: Switch, size: 8, {LINK}, in-switch-operations: 8}}", f"{kind}: [{algorithm}]"
                )
                figures = json.loads(self.show(config, kind, "--bytes=1 MiB", "--json"))
                self.assertEqual(figures["steps_of_a_chunk"], steps)
                self.assertEqual([phase["algorithm"] for phase in figures["phases"]], [algorithm])

    def test_options_that_do_not_go_together_are_refused(self):
        """--table with --bytes or with a barrier, --csv without --table, --csv with --json: usage errors that name the options."""
        config = self.config(f"{{shape: Ring, size: 8, {LINK}}}", "chunks: 4")
        for options, words in [
            (["--kind=all-reduce", "--table", "--bytes=1 MiB"], ("--table", "--bytes")),
            (["--kind=barrier", "--table"], ("--table", "barrier")),
            (["--kind=all-reduce", "--bytes=1 MiB", "--csv"], ("--csv", "--table")),
            (["--kind=all-reduce", "--table", "--csv", "--json"], ("--csv", "--json")),
            (["--kind=all-reduce"], ("--bytes", "--table")),
        ]:
            outcome = harness.orrery("show", "collective", config, *options)
            self.assertEqual(outcome.code, 2, outcome.err)
            for word in words:
                self.assertIn(word, outcome.err)


if __name__ == "__main__":
    harness.main()
