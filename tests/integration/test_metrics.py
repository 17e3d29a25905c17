#!/usr/bin/env python3
"""The metrics of training in the results and in the summary: against theory, by hand, and against the other values of the file."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

# Four stages of one layer each. A layer takes 1 ms forward and 2 ms backward for a micro-batch (1e9 FLOPs at 1 TFLOPS), and hands on 1 B
# in 1 ns: nothing to speak of. There are no parameters, hence no gradients to sum.
PIPELINE = """system:
  network:
    dimensions: [{shape: Switch, size: %d, bandwidth: 1 GB/s, latency: 0 ns}]
  compute: {roofline: true, peak: 1 TFLOPS, local-memory: {bandwidth: 1000 TB/s}}
  communication: {streams: 2}
workload:
  model:
    kind: layers
    layers:
%s  parallel: {pp: %d, dp: %d, micro-batches: %d, schedule: %s}
"""
LAYER = "      - {name: l%d, parameters: 0, flops: 1000000000, activations: 1}\n"

# Two stages of one layer each, two replicas. A layer takes 1 ms forward, 2 ms backward and 3 ms of the optimizer, and its 4 MB of gradients
# are summed in 4 ms (halving-doubling of two NPUs at 1 GB/s).
SUMS = """system:
  network:
    dimensions: [{shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 0 ns}, {shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 0 ns}]
  communication: {streams: 2}
workload:
  model: {kind: layers, layers: [{repeat: 2, parameters: 2000000, forward: 1 ms, backward: 2 ms, update: 3 ms, activations: 1}]}
  parallel: {dp: 2, pp: 2, micro-batches: 2}
"""

TRANSFORMER = """system:
  network:
    dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}, {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}]
  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1 TB/s}}
  communication: {streams: 2}
workload:
  model: {layers: 4, hidden: 256, heads: 8, sequence: 128}
  parallel: {tp: 4, dp: 2, micro-batches: 2, recompute: %s}
"""


def metrics(path):
    """Returns the scalar metrics by their names."""
    import h5py

    with h5py.File(path) as results:
        return {name: item[()] for name, item in results["metrics"].items() if hasattr(item, "dtype")}


# nccl-tests, doc/PERFORMANCE.md, src/gather.cu and src/scatter.cu: bytes of the bus for each of comm_size, with n members.
ON_THE_BUS = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: n - 1,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1,
    "reduce": lambda n: 1,
    "gather": lambda n: n - 1,
    "scatter": lambda n: (n - 1) / n,
}


def bus_bandwidths(path):
    """Returns {(kind, members): (count, time in ps, bytes/s)} of /metrics/collectives."""
    import h5py

    with h5py.File(path) as results:
        rows = results["metrics/collectives"]
        names = [name if isinstance(name, str) else name.decode() for name in rows["kind"].attrs["values"]]
        return {
            (names[kind], int(members)): (int(count), int(time), float(rate))
            for kind, members, count, time, rate in zip(
                *(rows[name][:] for name in ("kind", "members", "count", "time", "bus_bandwidth"))
            )
        }


class Metrics(harness.Folder):
    def write(self, text):
        path = self.folder / "config.yaml"
        path.write_text(text)
        return path

    def test_the_bubble_of_a_pipeline_is_that_of_theory(self):
        """Pipelines of P stages with m micro-batches of 3 ms each take P - 1 times more for filling and draining: the bubble is (P - 1)
        / (m + P - 1), and utilisations follow from it."""
        for stages, batches, schedule, replicas in (
            (4, 6, "1f1b", 1),
            (4, 6, "gpipe", 2),
            (2, 1, "1f1b", 1),
            (1, 4, "1f1b", 2),
        ):
            with self.subTest(stages=stages, batches=batches, schedule=schedule):
                layers = "".join(LAYER % i for i in range(stages))
                config = self.write(PIPELINE % (stages * replicas, layers, stages, replicas, batches, schedule))
                found = metrics(self.run_once([config, "--iterations=2"]))
                seconds = (batches + stages - 1) * 3e-3
                flops = batches * stages * 3e9 * replicas  # of a step
                self.assertAlmostEqual(found["step_time"] * 1e-12 / seconds, 1, places=4)
                self.assertAlmostEqual(found["samples_per_second"] * seconds / (batches * replicas), 1, places=4)
                utilisation = flops / (seconds * stages * replicas * 1e12)
                self.assertAlmostEqual(found["model_flops_utilisation"], utilisation, places=4)
                self.assertAlmostEqual(found["hardware_flops_utilisation"], utilisation, places=4)
                self.assertAlmostEqual(found["compute_share"], utilisation, places=4)
                self.assertNotIn("tokens_per_second", found)
                if stages == 1:
                    self.assertNotIn("pipeline_bubble", found)
                    continue
                self.assertAlmostEqual(found["ideal_pipeline_bubble"], (stages - 1) / (batches + stages - 1))
                self.assertAlmostEqual(found["pipeline_bubble"], found["ideal_pipeline_bubble"], places=4)

    def test_the_bubble_leaves_gradient_sums_out(self):
        """Two stages, two replicas:

        ms:    0  1  2     4     6  7     9       11      13  14     16
        stage 0   F0 F1 wait  B0    w  B1    sum             update
        stage 1   w  F0 B0    F1 B1       sum        update     idle

        Each waits 3 ms of 16; the passes alone take 9 ms, of which 3 are the ideal bubble."""
        config = self.write(SUMS)
        for ranks in (0, 2):
            path = self.run_once([config], ranks=ranks)
            found = metrics(path)
            self.assertAlmostEqual(found["step_time"] * 1e-12 / 16e-3, 1, places=4)
            self.assertAlmostEqual(found["compute_share"], 9 / 16, places=4)
            self.assertAlmostEqual(found["pipeline_bubble"], 3 / 16, places=4)
            self.assertAlmostEqual(found["ideal_pipeline_bubble"], 3 / 9)
            self.assertEqual([round(time / 1e9, 3) for time in harness.finish_times(path)], [16, 16, 14, 14])
        outcome = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}", "--force", "--verbose")
        self.assertIn(
            "pipeline: NPUs receive or stand idle for 18.75 % of the step; the ideal bubble is 33.33 % of the passes alone",
            outcome.out,
        )

    def test_utilisation_is_that_of_the_peak_of_the_precision(self):
        """With twice the peak for fp8, products that memory does not bound take half the time, and utilisation refers to the peak of
        the precision."""
        text = TRANSFORMER.replace(
            "peak: 100 TFLOPS, local-memory: {bandwidth: 1 TB/s}",
            "peak: {bf16: 1 TFLOPS, fp8: 2 TFLOPS}, local-memory: {bandwidth: 1000 TB/s}",
        )
        config = self.write(text % "none")
        found = {
            precision: metrics(
                self.run_once([config, f"--set=workload.parallel.precision={precision}"], f"{precision}.h5")
            )
            for precision in ("bf16", "fp8")
        }
        one = metrics(
            self.run_once([config, "--set=system.compute.peak=2 TFLOPS", "--set=workload.parallel.precision=fp8"])
        )
        self.assertEqual(
            [one[name] for name in ("step_time", "model_flops_utilisation")],
            [found["fp8"][name] for name in ("step_time", "model_flops_utilisation")],
        )
        busy = {precision: found[precision]["compute_share"] * found[precision]["step_time"] for precision in found}
        self.assertAlmostEqual(busy["bf16"] / busy["fp8"], 2, places=3)
        for precision in found:
            self.assertAlmostEqual(
                found[precision]["hardware_flops_utilisation"] / found[precision]["compute_share"], 1, places=3
            )

    def test_metrics_agree_with_the_rest_of_the_file(self):
        """A transformer step of 8 NPUs, three iterations: shares, bytes, bandwidths, tokens per second and FLOPs follow from the NPUs,
        collectives and formulas."""
        import h5py

        for recompute in ("none", "full"):
            path = self.run_once([self.write(TRANSFORMER % recompute), "--iterations=3", "--record-iterations=3"])
            found = metrics(path)
            with h5py.File(path) as results:
                npus = {name: item[:].astype(object) for name, item in results["npus"].items()}
                whole = 8 * max(npus["finish_time"])
                self.assertAlmostEqual(
                    float(found["exposed_communication_share"]), npus["exposed_communication_time"].sum() / whole
                )
                shares = ("compute", "cpu", "exposed_communication", "exposed_memory", "idle")
                self.assertAlmostEqual(sum(found[f"{name}_share"] for name in shares), 1)
                self.assertEqual([3 * n for n in found["bytes_per_step"]], list(results["network/bytes"][:]))
                for name, item in results["metrics"].items():
                    if hasattr(item, "dtype"):
                        self.assertTrue(
                            item.attrs["units"] and item.attrs["description"] and item.attrs["long_name"], name
                        )
                rows, all_of_them = results["metrics/collectives"], results["collectives"]
                for kind, members, count, bandwidth in zip(
                    rows["kind"], rows["members"], rows["count"], rows["bus_bandwidth"]
                ):
                    those = [
                        i
                        for i in range(len(all_of_them["kind"]))
                        if (all_of_them["kind"][i], all_of_them["members"][i]) == (kind, members)
                    ]
                    self.assertEqual(len(those), count)
                    times = [float(all_of_them["finish"][i] - all_of_them["last_arrival"][i]) for i in those]
                    self.assertAlmostEqual(
                        sum(t * all_of_them["bus_bandwidth"][i] for t, i in zip(times, those)) / sum(times) / bandwidth,
                        1,
                    )
            step = found["step_time"] * 1e-12
            self.assertAlmostEqual(found["tokens_per_second"] * step / (2 * 2 * 128), 1, places=6)
            self.assertAlmostEqual(found["tokens_per_second_per_npu"] * 8, found["tokens_per_second"])
            B, s, l, h = 2 * 2, 128, 4, 256
            model = (
                72 * B * s * l * h * h * (1 + s / (12 * h))
            )  # Narayanan et al., without masked scores and a vocabulary
            self.assertAlmostEqual(found["model_flops_utilisation"] * step * 8 * 100e12 / model, 1, places=6)
            # The fused core computes scores again, 2.5 times instead of twice; full recomputation a forward pass more; and the optimizer.
            more = found["hardware_flops_utilisation"] / found["model_flops_utilisation"]
            attention = 2 * B * s * s * l * h
            executed = (
                model + 0.5 * attention + (model / 3 if recompute == "full" else 0) + 12 * 8 * l * (12 * h * h / 4)
            )
            self.assertAlmostEqual(more * model / executed, 1, delta=0.02)

    def test_metrics_are_the_same_on_any_number_of_ranks(self):
        """A transformer step of 8 NPUs has the same metrics on 1, 2 and 3 ranks."""
        self.check_one_answer([self.write(TRANSFORMER % "none"), "--iterations=2"], 8, ranks=(2, 3))

    def collectives_of_all_kinds(self, **system):
        """Writes eight NPUs, late each by its own, that join collectives of every kind and two sizes: of all, of pairs, and of the
        first six. Returns the arguments."""
        kinds = (
            chakra.ALL_REDUCE,
            chakra.ALL_GATHER,
            chakra.REDUCE_SCATTER,
            chakra.ALL_TO_ALL,
            chakra.BROADCAST,
            chakra.REDUCE,
            chakra.GATHER,
            chakra.SCATTER,
            chakra.BARRIER,
        )
        traces = []
        for npu in range(8):
            nodes = [chakra.Node(0, chakra.COMP, "late", duration=npu * 3 % 5)]
            for kind in kinds:
                for size in (64000, 8000):
                    for group in ["", f"pair{npu // 2}"] + ["six"] * (npu < 6):
                        nodes.append(
                            chakra.Node(
                                len(nodes),
                                chakra.COLL,
                                "collective",
                                [len(nodes) - 1],
                                comm_type=kind,
                                comm_size=size,
                                **({"pg_name": group} if group else {}),
                            )
                        )
            traces.append(nodes)
        groups = {f"pair{i}": [2 * i, 2 * i + 1] for i in range(4)} | {"six": list(range(6))}
        return [harness.write_workload(self.folder, traces)] + harness.System(
            counts=(8,), groups=groups, system=system
        ).write(self.folder)

    def test_bus_bandwidths_follow_the_formulas_of_nccl_tests(self):
        """Collectives of every kind, of 2, 6 and 8 members: bus bandwidths follow from bytes and times of all of them, recorded or not,
        and are the same on 1 to 8 ranks."""
        import h5py

        arguments = self.collectives_of_all_kinds() + ["--iterations=2"]
        recorded = self.run_once(arguments + ["--record-iterations=2"], "recorded.h5")
        found = bus_bandwidths(recorded)
        self.assertEqual({kind for kind, _ in found}, set(ON_THE_BUS))
        self.assertEqual({members for _, members in found}, {2, 6, 8})
        with h5py.File(recorded) as results:
            rows = {name: item[:] for name, item in results["collectives"].items()}
            names = results["collectives/kind"].attrs["values"]
        for (kind, members), (count, time, rate) in found.items():
            those = [
                i for i in range(len(rows["kind"])) if (names[rows["kind"][i]], rows["members"][i]) == (kind, members)
            ]
            self.assertEqual(
                (len(those), sum(int(rows["finish"][i] - rows["last_arrival"][i]) for i in those)), (count, time)
            )
            self.assertAlmostEqual(
                rate * time * 1e-12 / sum(int(rows["bytes"][i]) * ON_THE_BUS[kind](members) for i in those), 1, msg=kind
            )
            for i in those:
                each = (
                    ON_THE_BUS[kind](members)
                    * int(rows["bytes"][i])
                    / (float(rows["finish"][i] - rows["last_arrival"][i]) * 1e-12)
                )
                self.assertAlmostEqual(rows["bus_bandwidth"][i] / each, 1, msg=kind)
        for ranks in (0, 3) if harness.FEWER_CASES else (0, 1, 2, 3, 4, 8):
            for more in (
                [],
                [f"--partition={harness.scattered_partition(self.folder / 'partition', 8, max(ranks, 1))}"],
            ):
                self.assertEqual(
                    bus_bandwidths(
                        self.run_once(arguments + ["--record-iterations=0"] + more, "other.h5", ranks=ranks)
                    ),
                    found,
                    f"{ranks} ranks {more}",
                )

    def test_bus_bandwidths_are_the_same_folded(self):
        """A transformer step of 8 NPUs has the same bus bandwidths folded and not."""
        arguments = [self.write(TRANSFORMER % "none"), "--iterations=2"]
        found = bus_bandwidths(self.run_once(arguments))
        self.assertEqual(set(found), {("all-reduce", 4), ("all-reduce", 2)})
        for ranks in (0, 2, 3):
            self.assertEqual(
                bus_bandwidths(
                    self.run_once(arguments + ["--fold", "--record-iterations=0"], "folded.h5", ranks=ranks)
                ),
                found,
                f"{ranks} ranks",
            )

    def test_the_summary_shows_bus_bandwidths(self):
        """The summary shows the same bus bandwidths with records and without. A replay has no collectives and says so."""
        lines = []
        for system, more in (({}, []), ({}, ["--record-iterations=0"]), ({"replay-only": 1}, [])):
            outcome = harness.orrery(
                "run",
                *self.collectives_of_all_kinds(**system),
                f"--output={self.folder / 'r.h5'}",
                "--force",
                "--verbose",
                *more,
            )
            self.assertEqual(outcome.code, 0, outcome.err)
            lines.append(re.search(r"^bus bandwidth: (.*)$", outcome.out, re.MULTILINE)[1])
        self.assertEqual(lines[0], lines[1])
        self.assertRegex(lines[0], r"^[a-z-]+ of \d NPUs [\d.]+ .B/s, ")
        self.assertEqual(lines[2], "not known, as a replay takes the nodes of collectives one by one")

    def test_the_summary_shows_the_metrics(self):
        """The summary of a transformer step shows the metrics that the file has, for one iteration and for the mean of four."""
        config = self.write(TRANSFORMER % "full")
        outcome = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}", "--progress=none", "--verbose")
        self.assertEqual(outcome.code, 0, outcome.err)
        found = metrics(self.folder / "r.h5")
        line = re.search(
            r"^training: ([\d.]+) (\w?) ?tokens/s, .* tokens/s/NPU; MFU ([\d.]+) %, HFU ([\d.]+) % \(masked scores of attention do not count\)$",
            outcome.out,
            re.MULTILINE,
        )
        self.assertTrue(line, outcome.out)
        self.assertAlmostEqual(float(line[3]), 100 * found["model_flops_utilisation"], places=1)
        self.assertAlmostEqual(float(line[4]), 100 * found["hardware_flops_utilisation"], places=1)
        for text in (
            "step time ",
            "time          all NPUs ",
            "  compute ",
            "  data ",
            "sent in a step: dimension 0 ",
            "bus bandwidth: all-reduce of ",
        ):
            self.assertIn(text, outcome.out)
        again = harness.orrery(
            "run", config, "--iterations=4", f"--output={self.folder / 's.h5'}", "--progress=none", "--verbose"
        )
        self.assertRegex(again.out, r"step time [\d.]+ \w+ \(8 NPUs; the mean of 4 iterations in [\d.]+ \w+\)")


if __name__ == "__main__":
    harness.main()
