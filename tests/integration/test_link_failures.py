#!/usr/bin/python3
"""Links of a graph that fail during a run of the congestion-aware network: times by hand, the same answer on any number of ranks, and what
becomes unreachable.

In times by hand 1,000 B take 100 ns on a fast link and 200 ns on a slow one, and each link adds 100 ns."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import h5py  # noqa: E402
import harness  # noqa: E402
from chakra import Node  # noqa: E402
from graphs import leaves  # noqa: E402

AWARE = ["--network=congestion-aware"]
CUT = "--set=system.network.switching=cut-through"
# Messages from NPU 0 to NPU 1 go over switch 0 (node 2). Those that find it cut off go over switch 1 (node 3), whose links are slow.
FAST, SLOW = ("10 GB/s", "100 ns"), ("5 GB/s", "100 ns")
LINKS = [[0, 2, *FAST], [2, 1, *FAST], [0, 3, *SLOW], [3, 1, *SLOW], [2, 3, *FAST]]


class LinkFailures(harness.Folder):
    def arguments(self, links, failures, *more):
        """Returns the arguments of a run in which NPU 0 sends two messages to NPU 1 at time 0."""
        config = self.folder / "graph.yaml"
        graph = {"hosts": 2, "switches": 2, "links": links, "failures": failures}
        config.write_text(
            json.dumps(
                {
                    "system": {
                        "network": {
                            "switching": "store-and-forward",
                            "graph": graph,
                            "dimensions": [{"shape": "Switch", "size": 2}],
                        }
                    }
                }
            )
        )
        nodes = [
            [Node(tag, kind, comm_src=0, comm_dst=1, comm_tag=tag, comm_size=1000) for tag in (1, 2)]
            for kind in (chakra.SEND, chakra.RECV)
        ]
        harness.write_workload(self.folder, nodes)
        return [
            config,
            f"--set=workload.traces={self.folder / 'workload'}",
            "--set=system.communication.streams=2",
            *AWARE,
            *more,
        ]

    def messages(self, path):
        """Returns how many messages each link has served, by its ends."""
        with h5py.File(path) as file:
            links = file["network/links"]
            return {(int(a), int(b)): int(n) for a, b, n in zip(links["from"][:], links["to"][:], links["messages"][:])}

    def test_times(self):
        """A service that has begun ends as ever. A message that waits leaves the queue when the link fails, and one that comes later takes
        another route; both from where they are."""
        for failures, end, more in (
            ([], 500, ()),
            # The second message waits at NPU 0 and takes the slow links from then on.
            ([[0, 2, "50 ns"]], 50 + 2 * 300, ()),
            ([[0, 2, "100 ns"]], 100 + 2 * 300, ()),  # a service does not begin when the link fails
            ([[0, 2, "101 ns"]], 500, ()),
            # Both pass the first link. The second one comes to switch 0 at 300 ns and goes on to switch 1.
            ([[2, 1, "250 ns"]], 300 + 200 + 300, ()),
            # Both go on to switch 1, the second one behind the first.
            ([[2, 1, "150 ns"]], 200 + 200 + 2 * 200 + 100, ()),
            # The way that is left fails as well, before the service of the second message there.
            ([[0, 2, "50 ns"], [3, 1, "1 ms"]], 650, ()),
            # With cut-through the first byte of the second message is at switch 1 at 150 ns.
            ([], 400, (CUT,)),
            ([[0, 2, "50 ns"]], 50 + 2 * 100 + 200, (CUT,)),
        ):
            with self.subTest(failures=failures, more=more):
                path = self.check_one_answer(self.arguments(LINKS, failures, *more), 2, ranks=(2,))
                self.assertEqual(harness.finish_times(path)[1], end * 1000)
        path = self.run_once(self.arguments(LINKS, [[0, 2, "50 ns"]]))
        self.assertEqual(self.messages(path), {(0, -1): 1, (-1, 1): 1, (0, -2): 1, (-2, 1): 1})
        with h5py.File(path) as file:
            self.assertEqual(int(file["network/links/queueing_time"][0]), 50_000)
            self.assertEqual(int(file["network/links/peak_queue"][0]), 1)

    def test_unreachable(self):
        """Without the link between the switches a message at switch 0 has no way left; without the slow links one at NPU 0 has none."""
        for links, failures, time in ((LINKS[:4], [[2, 1, "250 ns"]], 300_000), (LINKS[:2], [[0, 2, "50 ns"]], 50_000)):
            for ranks in (0, 2):
                outcome = harness.orrery(
                    "run", *self.arguments(links, failures), f"--output={self.folder / 'refused.h5'}", ranks=ranks
                )
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn(
                    f"NPU 0 sends a message to NPU 1, and no working links lead there at {time} ps", outcome.err
                )

    def test_one_answer(self):
        """A training step of 8 NPUs on two leaves and two spines, of which links fail one after the other: the same on 1 to 4 ranks, and other
        times than without failures."""
        config = self.folder / "step.yaml"
        ends = {}
        for failures in ([], [[8, 10, "20 us"], [9, 11, "1 s"]]):
            (self.folder / "leaves.yaml").write_text(json.dumps({**leaves([4, 4]), "failures": failures}))
            config.write_text(
                """system:
  network: {graph: leaves.yaml, dimensions: [{shape: Switch, size: 8}]}
  collectives: {chunks: 2, active-chunks: 2}
  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
workload:
  model: {layers: 2, hidden: 512, heads: 8, sequence: 128}
  parallel: {tp: 2, sp: true, dp: 2, pp: 2, micro-batches: 2}
"""
            )
            for more in (
                (),
                (CUT,),
                ("--set=system.rules=astra-sim",),
                ("--set=system.communication.rendezvous=true",),
            ):
                path = self.check_one_answer([config, *AWARE, "--timeline", *more], 8)
                ends.setdefault(more, []).append(max(harness.finish_times(path)))
        for whole, failing in ends.values():
            self.assertNotEqual(failing, whole)


if __name__ == "__main__":
    harness.main()
