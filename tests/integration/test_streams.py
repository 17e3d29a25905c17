#!/usr/bin/python3
"""Streams: with workload.streams: trace, nodes that name a stream take turns with those of that stream, and with no others."""
import collections
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
from chakra import Node  # noqa: E402

US = 10**6  # ps
OF_TRACE = "--streams=trace"
SEEDS = range(8101, 8101 + harness.cases(1, 3, 6))
IN_STREAMS = (chakra.COMP, chakra.COLL, chakra.SEND, chakra.MEM_LOAD, chakra.MEM_STORE)


def traces_of(folder, traces):
    """Writes the traces and returns the key of a configuration that names them."""
    return harness.write_workload(folder, traces).replace("--workload-configuration=", "traces: ")


def timeline(path):
    """Returns {NPU: {node: (start, finish)}} in ps."""
    import h5py

    nodes = collections.defaultdict(dict)
    with h5py.File(path) as results:
        rows = results["timeline"]
        for npu, node, start, finish in zip(rows["npu"], rows["node"], rows["start"], rows["finish"]):
            nodes[int(npu)][int(node)] = (int(start), int(finish))
    return nodes


class Streams(harness.Folder):
    def config(self, traces, more=""):
        path = self.folder / "config.yaml"
        path.write_text(
            "system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n"
            f"  collectives: {{endpoint-delay: 0 ns{more}}}\nworkload: {{{traces}}}\n"
        )
        return path

    def test_streams_by_hand(self):
        """Two NPUs: stream 7 computes for 3 us and 1 us, stream 20 for 2 us; an all-gather of 5 us in one hop of 1 us waits for stream
        7, so that it begins at 4. Nodes without a stream take turns on their own resource, for 4 us and 1 us. By default it is the same,
        with a warning. Counted, all compute nodes take turns."""
        nodes = [
            Node(1, chakra.COMP, duration=3, stream=7),
            Node(2, chakra.COMP, duration=2, stream=20),
            Node(3, chakra.COMP, duration=1, stream=7),
            Node(4, chakra.COMP, duration=4),
            Node(5, chakra.COMP, duration=1),
            Node(6, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000, stream=7),
        ]
        config = self.config(traces_of(self.folder, [nodes] * 2))
        expected = {1: (0, 3), 2: (0, 2), 3: (3, 4), 4: (0, 4), 5: (4, 5), 6: (4, 10)}
        for arguments in ([], [OF_TRACE]):
            trace = timeline(self.check_one_answer([config, "--timeline"] + arguments, 2, ranks=(2,)))
            self.assertEqual(trace[0], {node: (start * US, end * US) for node, (start, end) in expected.items()})
        counted = timeline(self.run_once([config, "--timeline", "--streams=counted"]))
        self.assertEqual([counted[0][node][0] // US for node in range(1, 7)], [0, 3, 5, 6, 10, 0])

    def test_dimensions_do_not_wait_for_each_other(self):
        """Four NPUs in two dimensions of two. Each is in two all-gathers of 6 us along dimension 1 and in one along dimension 0, and NPUs 0
        and 2 send 1,000 bytes in 2 us along dimension 0. The two along dimension 1 take turns at full bandwidth; the other one and the
        message begin at once. Counted, with one stream, all take turns. With communication.streams in the file they are counted.
        """
        gathers = [
            Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000, pg_name="along-1"),
            Node(2, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000, pg_name="along-1"),
            Node(3, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000, pg_name="along-0"),
        ]
        traces, groups = [], {}
        for npu in range(4):
            nodes = [Node(node.id, node.type, **node.attributes) for node in gathers]
            for node in nodes:
                along = node.attributes["pg_name"]
                node.attributes["pg_name"] = f"{along} of {npu % 2 if along == 'along-1' else npu // 2}"
                groups[node.attributes["pg_name"]] = (
                    [npu % 2, npu % 2 + 2] if along == "along-1" else [npu // 2 * 2, npu // 2 * 2 + 1]
                )
            nodes.append(
                Node(4, chakra.RECV, comm_src=npu - 1, comm_size=1000, comm_tag=1)
                if npu % 2
                else Node(4, chakra.SEND, comm_dst=npu + 1, comm_size=1000, comm_tag=1)
            )
            traces.append(nodes)
        (self.folder / "groups.json").write_text(json.dumps(groups))
        keys = traces_of(self.folder, traces) + f", groups: {self.folder / 'groups.json'}"
        path = self.folder / "config.yaml"
        text = (
            "system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}, "
            "{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n  collectives: {endpoint-delay: 0 ns}\n%s"
            f"workload: {{{keys}}}\n"
        )
        path.write_text(text % "")
        side_by_side = {1: (0, 6), 2: (6, 12), 3: (0, 6), 4: (0, 2)}
        in_turn = {1: (0, 6), 2: (6, 12), 3: (12, 18), 4: (18, 20)}
        for arguments, expected in (
            ([], side_by_side),
            (["--streams=dimension"], side_by_side),
            (["--streams=counted"], in_turn),
            (["--set=system.communication.streams=1"], in_turn),
        ):
            with self.subTest(arguments=arguments):
                trace = timeline(self.check_one_answer([path, "--timeline"] + arguments, 4, ranks=(2, 3)))
                for npu in (0, 2):
                    self.assertEqual(
                        trace[npu], {node: (start * US, end * US) for node, (start, end) in expected.items()}
                    )
        path.write_text(text % "  rules: astra-sim\n")
        self.assertGreaterEqual(timeline(self.run_once([path, "--timeline"]))[0][4][0], 18 * US)

    def test_collectives_of_negative_priority_yield(self):
        """Two NPUs. An all-gather of priority -1 takes 11 us alone. Beside it, all-gathers of 6 us from 2 to 8 and of 4 us from 9 to 13 take
        what they take alone: it ends 10 us later, at 21. Another one of priority -1 follows. One that has ended before the others
        begin is not delayed. With equal priorities, counted, and under the rules of ASTRA-sim all take turns."""

        def nodes(priority):
            gather = {"comm_type": chakra.ALL_GATHER}
            return [
                Node(1, chakra.COLL, comm_size=10000, comm_priority=priority, **gather),
                Node(2, chakra.COMP, duration=2),
                Node(3, chakra.COLL, "", [2], comm_size=5000, **gather),
                Node(4, chakra.COMP, "", [3], duration=1),
                Node(5, chakra.COLL, "", [4], comm_size=3000, **gather),
                Node(6, chakra.COLL, comm_size=1000, comm_priority=priority, **gather),
            ]

        (self.folder / "yielding").mkdir()
        (self.folder / "equal").mkdir()
        yielding = self.config(traces_of(self.folder / "yielding", [nodes(-1)] * 2))
        expected = {1: (0, 21), 2: (0, 2), 3: (2, 8), 4: (8, 9), 5: (9, 13), 6: (21, 23)}
        trace = timeline(self.check_one_answer([yielding, "--timeline"], 2, ranks=(2,)))
        for npu in range(2):
            self.assertEqual(trace[npu], {node: (start * US, end * US) for node, (start, end) in expected.items()})
        for arguments in (["--streams=counted"], ["--set=system.rules=astra-sim"]):
            trace = timeline(self.run_once([yielding, "--timeline"] + arguments))
            self.assertGreaterEqual(trace[0][3][0], 11 * US, arguments)
        equal = timeline(self.run_once([self.config(traces_of(self.folder / "equal", [nodes(0)] * 2)), "--timeline"]))
        self.assertEqual(equal[0][3][0], 11 * US)

    def test_yielding_collectives_hold_nobody_up(self):
        """Four NPUs in pairs of two kinds: 0 and 3 begin with the pair whose collective yields, 1 and 2 with the other one. Each other pair
        waits for a member that waits in the first. All end, because what yields holds nobody up."""
        pairs = {"rows 0": [0, 1], "rows 1": [2, 3], "columns 0": [0, 2], "columns 1": [1, 3]}
        traces = []
        for npu in range(4):
            late = npu in (0, 3)
            traces.append(
                [
                    Node(1, chakra.COMP, duration=1 if late else 5),
                    Node(2, chakra.COMP, "", [] if late else [1], duration=5 if late else 1),
                    Node(
                        3,
                        chakra.COLL,
                        "",
                        [1],
                        comm_type=chakra.ALL_REDUCE,
                        comm_size=5000,
                        comm_priority=-1,
                        pg_name=f"columns {npu % 2}",
                    ),
                    Node(
                        4,
                        chakra.COLL,
                        "",
                        [2] if late else [],
                        comm_type=chakra.ALL_REDUCE,
                        comm_size=5000,
                        pg_name=f"rows {npu // 2}",
                    ),
                ]
            )
        (self.folder / "groups.json").write_text(json.dumps(pairs))
        path = self.folder / "config.yaml"
        path.write_text(
            "system:\n  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 1 us}]}\n"
            f"workload: {{{traces_of(self.folder, traces)}, groups: {self.folder / 'groups.json'}}}\n"
        )
        trace = timeline(self.check_one_answer([path, "--timeline"], 4, ranks=(2, 3)))
        self.assertEqual([len(trace[npu]) for npu in range(4)], [4] * 4)

    def test_all_to_all_may_be_uneven(self):
        """Two NPUs give 5,000 and 3,000 bytes for an all-to-all: it takes what one of 5,000 bytes takes. check finds nothing wrong. An
        all-gather of two sizes is refused, and so is the all-to-all under the rules of ASTRA-sim and over links."""

        def config(kind, sizes):
            folder = self.folder / f"{kind}-{sizes[1]}"
            folder.mkdir()
            return self.config(
                traces_of(folder, [[Node(1, chakra.COLL, comm_type=kind, comm_size=size)] for size in sizes])
            )

        even = harness.finish_times(self.run_once([config(chakra.ALL_TO_ALL, (5000, 5000))]))
        uneven = config(chakra.ALL_TO_ALL, (5000, 3000))
        self.assertEqual(harness.finish_times(self.check_one_answer([uneven], 2, ranks=(2,))), even)
        self.assertEqual(harness.orrery("check", uneven).code, 0)
        refused = [
            ["run", uneven, "--set=system.rules=astra-sim"],
            ["run", uneven, "--set=system.network.model=congestion-aware"],
        ]
        for arguments in refused:
            ran = harness.orrery(*arguments, f"--output={self.folder / 'refused.h5'}")
            self.assertEqual(ran.code, 3, arguments)
            self.assertIn("disagree", ran.err)
        gather = harness.orrery(
            "run", config(chakra.ALL_GATHER, (5000, 3000)), f"--output={self.folder / 'refused.h5'}"
        )
        self.assertEqual(gather.code, 3)
        self.assertIn("disagree", gather.err)

    def test_collectives_take_compute_units(self):
        """Two NPUs. An all-gather of 11 us takes a tenth of the compute units. Of three compute nodes of 4 us in a row, all of the first two
        and 3 us of the third run beside it: the third ends 1.1 us later, at 13.1. A fourth runs alone. Nobody takes any by default, and the
        rules of ASTRA-sim and the congestion-aware network refuse it."""
        nodes = [Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=10000)] + [
            Node(id, chakra.COMP, "", [id - 1] if id > 2 else [], duration=4) for id in (2, 3, 4, 5)
        ]
        config = self.config(traces_of(self.folder, [nodes] * 2))
        share = "--set=system.collectives.compute-share=0.1"
        expected = {1: (0, 11), 2: (0, 4), 3: (4, 8), 4: (8, 13.1), 5: (13.1, 17.1)}
        trace = timeline(self.check_one_answer([config, "--timeline", share], 2, ranks=(2,)))
        for npu in range(2):
            self.assertEqual(
                trace[npu], {node: (round(start * US), round(end * US)) for node, (start, end) in expected.items()}
            )
        self.assertEqual(timeline(self.run_once([config, "--timeline"]))[0][5], (12 * US, 16 * US))
        refused = harness.orrery(
            "run", config, share, "--set=system.rules=astra-sim", f"--output={self.folder / 'refused.h5'}"
        )
        self.assertEqual(refused.code, 3, refused.err)
        self.assertIn("system.collectives.compute-share", refused.err)

    def test_collectives_take_compute_units_over_links(self):
        """The same in networks of links and packets: the third node takes a tenth longer of what it runs beside the all-gather, which ends when
        its messages are there. One answer on several ranks."""
        nodes = [Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=10000)] + [
            Node(id, chakra.COMP, "", [id - 1] if id > 2 else [], duration=4) for id in (2, 3, 4, 5)
        ]
        config = self.config(traces_of(self.folder, [nodes] * 2))
        share = "--set=system.collectives.compute-share=0.1"
        for network in ("congestion-aware", "packet"):
            model = f"--set=system.network.model={network}"
            trace = timeline(self.check_one_answer([config, "--timeline", share, model], 2, ranks=(2,)))
            for npu in range(2):
                end = trace[npu][1][1]
                self.assertTrue(8 * US < end < 12.5 * US, end)
                self.assertEqual(trace[npu][4][0], 8 * US)
                self.assertAlmostEqual(trace[npu][4][1], 12 * US + 0.1 * min(end, 12 * US), delta=2)

    def test_collectives_take_the_units_of_their_channels(self):
        """Rings of NCCL run on 24 of the 132 multiprocessors of H100, an all-reduce in the switch on 16. Of one compute node that begins with
        the collective and outlasts it, the collective takes that share of its own time."""
        for kind, channels in ((chakra.ALL_GATHER, 24), (chakra.ALL_REDUCE, 16)):
            nodes = [
                Node(1, chakra.COLL, comm_type=kind, comm_size=1 << 26),
                Node(2, chakra.COMP, "", [], duration=100000),
            ]
            config = self.folder / "channels.yaml"
            config.write_text(
                json.dumps(
                    {
                        "system": {
                            "network": {
                                "dimensions": [
                                    {"shape": "Switch", "size": 8, "bandwidth": "450 GB/s", "latency": "468 ns"}
                                ]
                            },
                            "compute": {"roofline": False, "processor": "h100"},
                            "collectives": {"library": {"name": "nccl-h100"}, "compute-share": "library"},
                        },
                        "workload": {
                            "traces": harness.write_workload(self.folder, [nodes] * 8).removeprefix(
                                "--workload-configuration="
                            )
                        },
                    }
                )
            )
            trace = timeline(self.run_once([config, "--timeline"]))[0]
            beside = trace[1][1] - trace[1][0]
            self.assertAlmostEqual((trace[2][1] - 100000 * US) / beside, channels / 132, delta=1e-6)
        config.write_text(config.read_text().replace('"processor": "h100"', '"peak": "989 TFLOPS"'))
        refused = harness.orrery("check", config)
        self.assertEqual(refused.code, 3, refused.err)
        self.assertIn("system.collectives.compute-share", refused.err)

    def test_dimensions_that_collectives_connect_take_turns(self):
        """Two NPUs in each of two dimensions. An all-gather of all four uses both dimensions, so that one along dimension 0 alone waits for
        it although dimension 0 is free again before."""
        nodes = [
            [
                Node(1, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000),
                Node(2, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=5000, pg_name=f"pair {npu // 2}"),
            ]
            for npu in range(4)
        ]
        (self.folder / "groups.json").write_text(json.dumps({"pair 0": [0, 1], "pair 1": [2, 3]}))
        path = self.folder / "config.yaml"
        path.write_text(
            "system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}, "
            "{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n  collectives: {endpoint-delay: 0 ns}\n"
            f"workload: {{{traces_of(self.folder, nodes)}, groups: {self.folder / 'groups.json'}}}\n"
        )
        trace = timeline(self.check_one_answer([path, "--timeline"], 4, ranks=(2, 3)))
        for npu in range(4):
            self.assertEqual(trace[npu][2][0], trace[npu][1][1])

    def test_one_node_of_a_stream_runs_at_a_time(self):
        """Random workloads with random streams, on both networks: a node begins when it is ready or when another one of its stream is
        over, and results are the same on 1, 2 and 3 ranks."""
        for seed in SEEDS:
            workload = random_workload.Workload(seed, max_npus=24, operations=(20, 80))
            draw = random.Random(seed)
            for nodes in workload.traces:
                for node in nodes:
                    if node.type in IN_STREAMS and draw.random() < 0.8:
                        node.attributes["stream"] = draw.choice((0, 7, 20, 1 << 40))
            arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
            arguments += ["--timeline", OF_TRACE]
            for network in ("congestion-unaware", "congestion-aware"):
                with self.subTest(seed=seed, network=network):
                    path = self.check_one_answer(arguments + [f"--network={network}"], workload.num_npus, ranks=(2, 3))
                    self.check_turns(workload.traces, timeline(path))
            self.clear_folder()

    def test_collectives_of_one_event_keep_their_order(self):
        """The end of an all-gather lets NPU 0 begin an all-reduce and an all-to-all of the same communicator. At NPU 1 a compute node
        comes between. The queue of the all-gather is held meanwhile, and the members still agree on which collective is which.
        """

        def nodes(after):
            return [
                Node(0, chakra.COLL, comm_type=chakra.ALL_GATHER, comm_size=100),
                Node(1, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=100, ctrl_deps=[after]),
                Node(2, chakra.COLL, comm_type=chakra.ALL_TO_ALL, comm_size=200, ctrl_deps=[after]),
                Node(9, chakra.MEM_LOAD, tensor_size=1, ctrl_deps=[1, 2]),
            ]

        late = nodes(3) + [Node(3, chakra.COMP, duration=1, ctrl_deps=[0])]
        path = self.folder / "config.yaml"
        path.write_text(
            "system:\n  rules: astra-sim\n  network: {dimensions: [{shape: FullyConnected, size: 2, bandwidth: 50 GB/s, latency: 100 ns}]}\n"
            "  collectives: {endpoint-delay: 10 ns}\n  remote-memory: {kind: pool, bandwidth: 16 GB/s, latency: 250 ns}\n"
            f"  communication: {{streams: 2}}\nworkload: {{{traces_of(self.folder, [nodes(0), late])}}}\n"
        )
        self.check_one_answer([path], 2, ranks=(2,))

    def check_turns(self, traces, times):
        """Checks for each NPU that the nodes of a stream do not overlap, and start no later than they may."""
        for npu, nodes in enumerate(traces):
            nodes = [node for node in nodes if node.type in IN_STREAMS and not node.attributes.get("is_cpu_op")]
            streams = collections.defaultdict(list)
            for node in nodes:
                start, finish = times[npu][node.id]
                if "stream" in node.attributes and finish > start:
                    streams[node.attributes["stream"]].append((start, finish))
            for turns in streams.values():
                turns.sort()
                for (_, finish), (start, _) in zip(turns, turns[1:]):
                    self.assertLessEqual(finish, start)
            for node in nodes:
                start, _ = times[npu][node.id]
                ready = max((times[npu][other][1] for other in node.data_deps + node.ctrl_deps), default=0)
                if "stream" in node.attributes and start > ready:
                    self.assertIn(start, [finish for _, finish in streams[node.attributes["stream"]]], node.id)

    def test_collectives_side_by_side_share_the_bandwidth(self):
        """All-gathers of 10 us in one hop of 1 us, with two streams: side by side each has half of the bandwidth, and both networks say
        21 us; one after the other each has all of it, 22 us. Those of a row and of a column have a link each, 11 us."""

        def gather(id, after=(), **more):
            return Node(id, chakra.COLL, data_deps=list(after), comm_type=chakra.ALL_GATHER, comm_size=10_000, **more)

        square = {"row": [[0, 1], [2, 3]], "column": [[0, 2], [1, 3]]}
        groups = {f"{kind}{k}": members for kind, both in square.items() for k, members in enumerate(both)}

        def of(npu, kind):
            return next(name for name, members in groups.items() if name.startswith(kind) and npu in members)

        cases = {
            "side by side": (
                [[gather(1, pg_name=of(npu, "row")), gather(2, pg_name=of(npu, "row"))] for npu in range(4)],
                21,
            ),
            "in turn": (
                [[gather(1, pg_name=of(npu, "row")), gather(2, [1], pg_name=of(npu, "row"))] for npu in range(4)],
                22,
            ),
            "crossing": (
                [[gather(1, pg_name=of(npu, "row")), gather(2, pg_name=of(npu, "column"))] for npu in range(4)],
                11,
            ),
        }
        (self.folder / "groups.json").write_text(json.dumps(groups))
        for name, (traces, time) in cases.items():
            config = self.folder / "config.yaml"
            ring = "{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}"
            config.write_text(
                f"system:\n  network: {{dimensions: [{ring}, {ring}]}}\n  collectives: {{endpoint-delay: 0 ns}}\n  communication: {{streams: 2}}\n"
                f"workload: {{groups: groups.json, {traces_of(self.folder, traces)}}}\n"
            )
            for network in ("congestion-unaware", "congestion-aware"):
                with self.subTest(name, network=network):
                    path = self.check_one_answer([config, f"--network={network}"], 4, ranks=(2,))
                    self.assertEqual(harness.finish_times(path), [time * US] * 4)

    def test_no_schedule_beats_the_bandwidth_of_links(self):
        """Random collectives of rows, columns and all of 12 NPUs, some in order: what they put on the links fits the time, and in one
        case fills more than half of it."""
        import h5py

        groups = {f"row{y}": [3 * y, 3 * y + 1, 3 * y + 2] for y in range(4)} | {
            f"column{x}": [x, x + 3, x + 6, x + 9] for x in range(3)
        }
        (self.folder / "groups.json").write_text(json.dumps(groups | {"all": list(range(12))}))
        config = self.folder / "config.yaml"
        fullest = 0
        for seed in SEEDS:
            draw = random.Random(seed)
            plan = [
                (
                    draw.choice(("row", "column", "all")),
                    draw.choice((chakra.ALL_GATHER, chakra.REDUCE_SCATTER, chakra.ALL_REDUCE)),
                    draw.randrange(1, 40) * 100_000,
                    draw.random() < 0.4,
                )
                for _ in range(20)
            ]
            traces = [
                [
                    Node(
                        id,
                        chakra.COLL,
                        data_deps=[id - 1] if id and waits else [],
                        comm_type=kind,
                        comm_size=size,
                        pg_name={"row": f"row{npu // 3}", "column": f"column{npu % 3}", "all": "all"}[who],
                    )
                    for id, (who, kind, size, waits) in enumerate(plan)
                ]
                for npu in range(12)
            ]
            lists = ", ".join(
                f"{kind}: [ring, halvingDoubling]" for kind in ("all-reduce", "all-gather", "reduce-scatter")
            )
            config.write_text(
                "system:\n  network:\n    dimensions:\n      - {shape: Ring, size: 3, bandwidth: 1 GB/s, latency: 1 ns}\n"
                "      - {shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 1 ns}\n"
                f"  communication: {{streams: {draw.randrange(2, 6)}}}\n"
                f"  collectives: {{chunks: {draw.randrange(1, 5)}, active-chunks: {draw.randrange(1, 5)}, {lists}}}\n"
                f"workload: {{groups: groups.json, {traces_of(self.folder, traces)}}}\n"
            )
            with self.subTest(seed):
                path = self.check_one_answer([config], 12, ranks=(2, 3))
                with h5py.File(path) as results:
                    # All messages of a ring go one way round, so that half of its links are in use.
                    ring, switch = results["network/busy_time"][:] / (12 * max(harness.finish_times(path)))
                self.assertLessEqual(ring, 1)
                self.assertLessEqual(switch, 1)
                fullest = max(fullest, ring, switch)
        self.assertGreater(fullest, 0.5)

    def test_streams_that_cannot_be_are_refused(self):
        """A stream that is no number, a misspelt option, and options that streams exclude are refused with a message that names them."""
        nodes = [Node(1, chakra.COLL, "sum", comm_type=chakra.ALL_GATHER, comm_size=5000, stream="main")]
        traces = traces_of(self.folder, [nodes] * 2)
        self.assertEqual(harness.orrery("check", self.config(traces)).code, 0)
        cases = {
            (self.config(traces), OF_TRACE): ["workload.0.et", "node 1 'sum'", "stream is no whole number"],
            (self.config(traces), "--set=workload.streams=traces"): [
                "workload.streams",
                "'traces'",
                "counted or trace",
            ],
            (self.config(traces), OF_TRACE, "--set=system.communication.order=fifo"): [
                "system.communication.order",
                "workload.streams",
            ],
            (self.config(traces), OF_TRACE, "--set=system.collectives.all-gather=[inSwitch]"): [
                "--streams",
                "inSwitch",
            ],
        }
        for arguments, words in cases.items():
            with self.subTest(arguments):
                outcome = harness.orrery("run", *arguments, f"--output={self.folder / 'no.h5'}")
                self.assertEqual(outcome.code, 3, outcome.err)
                for word in words:
                    self.assertIn(word, outcome.err)

    def test_nodes_without_streams_are_a_warning(self):
        """Traces without streams give a warning, and nodes take turns on their resource."""
        nodes = [Node(1, chakra.COMP, duration=3), Node(2, chakra.COMP, duration=3)]
        config = self.config(traces_of(self.folder, [nodes] * 2))
        outcome = harness.orrery("run", config, OF_TRACE, f"--output={self.folder / 'r.h5'}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("nodes name no stream", outcome.err)
        self.assertEqual(harness.finish_times(self.folder / "r.h5"), [6 * US] * 2)


if __name__ == "__main__":
    harness.main()
