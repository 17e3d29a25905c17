#!/usr/bin/python3
"""The breakdown of time, the critical path and the hints, in the results and in the summary."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

PARTS = [
    "compute",
    "cpu",
    "tensor",
    "sequence",
    "context",
    "expert",
    "data",
    "pipeline",
    "bubble",
    "stragglers",
    "other",
    "memory",
    "idle",
]

# Two stages of one layer each, two replicas. A layer takes 1 ms forward, 2 ms backward and 3 ms of the optimizer, and its 4 MB of gradients
# are summed in 4 ms (halving-doubling of two NPUs at 1 GB/s). Messages between stages are of 1 B.
SUMS = """system:
  network:
    dimensions: [{shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 0 ns}, {shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 0 ns}]
workload:
  model: {kind: layers, layers: [{repeat: 2, parameters: 2000000, forward: 1 ms, backward: 2 ms, update: 3 ms, activations: 1}]}
  parallel: {dp: 2, pp: 2, micro-batches: 2}
"""

# A transformer with every kind of parallelism but experts, on 16 NPUs.
TRANSFORMER = """system:
  network:
    dimensions: [{shape: Ring, size: 2, bandwidth: 100 GB/s, latency: 500 ns}, {shape: Switch, size: 8, bandwidth: 50 GB/s, latency: 1 us}]
  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1 TB/s}}
workload:
  model: {layers: 4, hidden: 256, heads: 8, sequence: 128}
  parallel: {tp: 2, sp: true, cp: 2, dp: 2, pp: 2, micro-batches: 4}
"""


def breakdown(path):
    """Returns {part: [num_npus] ms} and the simulated time in ps."""
    import h5py

    with h5py.File(path) as results:
        return {part: [round(float(time) / 1e9, 3) for time in results["breakdown"][part]] for part in PARTS}, int(
            results.attrs["simulated_time"]
        )


class Breakdown(harness.Folder):
    def write(self, text):
        path = self.folder / "config.yaml"
        path.write_text(text)
        return path

    def test_a_pipeline_by_hand(self):
        """Two stages, two replicas:

        ms:    0  1  2     4     6  7     9       11      13  14     16
        stage 0   F0 F1 wait  B0    w  B1    sum             update
        stage 1   w  F0 B0    F1 B1       sum        update     idle

        Stage 0 waits 3 ms until stage 1 sends, stage 1 waits 1 ms and is idle for 2 ms at the end. Sums take 4 ms. The results are the
        same on 1 to 3 ranks, folded and in the congestion-aware network."""
        config = self.write(SUMS)
        paths = [
            self.check_one_answer([config], 4, ranks=(2, 3)),
            self.run_once([config, "--fold"], "folded.h5"),
            self.run_once(
                [config, "--network=congestion-aware", "--set=system.network.switching=cut-through"], "links.h5"
            ),
        ]
        for path in paths:
            parts, simulated = breakdown(path)
            self.assertEqual(round(simulated / 1e9, 3), 16)
            self.assertEqual(parts["compute"], [9] * 4, path)
            self.assertEqual(parts["data"], [4] * 4, path)
            self.assertEqual(parts["bubble"], [3, 3, 1, 1], path)
            self.assertEqual(parts["idle"], [0, 0, 2, 2], path)
            self.assertEqual([sum(parts[part]) for part in ("tensor", "stragglers", "other", "memory")], [0] * 4, path)

    def test_parts_add_up_to_the_simulated_time(self):
        """With noise, in both networks, with rendezvous and with several iterations, the parts of each NPU add up to the simulated time
        exactly, and those between compute and memory to the exposed communication."""
        import h5py

        config = self.write(TRANSFORMER)
        for more in (
            [],
            ["--network=congestion-aware"],
            ["--set=system.communication.rendezvous=true"],
            ["--iterations=3"],
        ):
            with self.subTest(more=more):
                path = self.check_one_answer([config, "--noise=0.2"] + more, 16, ranks=(2, 4))
                with h5py.File(path) as results:
                    parts = {part: results["breakdown"][part][:].astype(object) for part in PARTS}
                    self.assertEqual(set(sum(parts.values())), {int(results.attrs["simulated_time"])})
                    self.assertEqual(
                        list(sum(parts[part] for part in PARTS[2:-2])), list(results["npus/exposed_communication_time"])
                    )
                    for part in ("compute", "sequence", "context", "data", "pipeline", "bubble", "stragglers"):
                        self.assertGreater(sum(parts[part]), 0, part)
                    shares = results["metrics/breakdown"][:]
                    self.assertEqual(list(results["metrics/breakdown_names"].asstr()), PARTS)
                    self.assertAlmostEqual(sum(shares), 1)
                    self.assertAlmostEqual(shares[8], sum(parts["bubble"]) / 16 / int(results.attrs["simulated_time"]))

    def test_one_slow_npu_is_a_straggler(self):
        """Of four replicas NPU 2 computes at half speed: the others wait for it for its compute time, and a hint names it."""
        config = self.write(
            """system:
  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 1 GB/s, latency: 0 ns}]}
workload:
  model: {kind: layers, layers: [{parameters: 1000, forward: 1 ms, backward: 2 ms, activations: 1}]}
  parallel: {dp: 4}
perturbation: {slow-npus: [{npus: 2, compute: 0.5}]}
"""
        )
        outcome = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}", "--verbose")
        self.assertEqual(outcome.code, 0, outcome.err)
        parts, _ = breakdown(self.folder / "r.h5")
        self.assertEqual(parts["stragglers"], [3, 3, 0, 3])
        self.assertRegex(
            outcome.out,
            r"hint: NPU 2 is late: it computes for 6 ms, 3 ms in the mean of the others\. 37 % of the NPUs' time is waiting for members that join",
        )

    def test_the_critical_path_has_no_gaps_and_no_bubble(self):
        """The path of the pipeline by hand goes from time 0 to the end. It computes 11 ms and sums gradients for 4 ms on stage 0 at its end,
        and it never waits for another NPU, as it goes on there. The summary shows its segments."""
        import h5py

        config = self.write(SUMS)
        whole = self.check_one_answer([config, "--timeline"], 4, ranks=(2, 3))
        self.assertEqual(harness.difference(whole, self.run_once([config, "--timeline", "--fold"], "folded.h5")), "")
        outcome = harness.orrery("run", config, "--timeline", f"--output={self.folder / 'r.h5'}", "--verbose")
        with h5py.File(self.folder / "r.h5") as results:
            path = results["critical_path"]
            self.assertEqual(path["start"][0], 0)
            self.assertEqual(path["finish"][-1], results.attrs["simulated_time"])
            self.assertEqual(list(path["finish"][:-1]), list(path["start"][1:]))
            names = list(path["cause"].attrs["values"])
            self.assertEqual(names, PARTS)
            times = {part: 0 for part in PARTS}
            for start, finish, part in zip(path["start"], path["finish"], path["cause"]):
                times[PARTS[part]] += round(float(finish - start) / 1e9, 3)
        self.assertEqual((times["compute"], times["data"], times["bubble"], times["idle"]), (12, 4, 0, 0))
        self.assertRegex(
            outcome.out, r"critical path: compute 7[45]\.\d\d %, data 2[45]\.\d\d %.*; its longest segments:\n +\d"
        )

    def test_one_micro_batch_for_four_stages_gets_a_hint(self):
        """A pipeline of four stages with one micro-batch is told to have 16, in the summary and in the file; with 16 it is not."""
        import h5py

        text = SUMS.replace(
            "size: 2, bandwidth: 1 GB/s, latency: 0 ns}]", "size: 4, bandwidth: 1 GB/s, latency: 0 ns}]"
        ).replace("repeat: 2", "repeat: 4")
        for count in (1, 16):
            config = self.write(text.replace("pp: 2, micro-batches: 2", f"pp: 4, micro-batches: {count}"))
            outcome = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}", "--force", "--verbose")
            self.assertEqual(outcome.code, 0, outcome.err)
            with h5py.File(self.folder / "r.h5") as results:
                hints = list(results["metrics/hints"].asstr()) if "hints" in results["metrics"] else []
            self.assertEqual(
                [hint for hint in outcome.out.splitlines() if hint.startswith("hint: ")],
                ["hint: " + hint for hint in hints],
            )
            self.assertEqual("try workload.parallel.micro-batches: 16" in " ".join(hints), count == 1)


if __name__ == "__main__":
    harness.main()
