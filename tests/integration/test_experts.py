#!/usr/bin/python3
"""Experts whose NPUs do not share them, experts that are not used alike, and sums of norms before the update: what NPUs compute and exchange,
one answer on any number of ranks, and what is refused."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

SYSTEM = (
    "system:\n  network: {dimensions: [{shape: Switch, size: 8, bandwidth: 100 GB/s, latency: 1 us}]}\n"
    "  compute: {model: roofline, peak: {bf16: 100 TFLOPS}, local-memory: {bandwidth: 1000 GB/s}}\n"
)
MODEL = "{kind: transformer, layers: 3, hidden: 512, heads: 8, ffn: 1024, sequence: 256, experts: 16, top-k: 2}"
TOKENS, HIDDEN, FFN, LAYERS = 256, 512, 1024, 3


class Experts(harness.Folder):
    def config(self, parallel, model=MODEL):
        path = self.folder / "config.yaml"
        path.write_text(SYSTEM + f"workload: {{model: {model}, parallel: {{{parallel}}}}}\n")
        return path

    def traces(self, parallel):
        """Returns what `show trace` prints of the trace of each NPU, and the groups."""
        prefix = self.folder / "w"
        made = harness.orrery("generate", self.config(parallel), "--output", prefix, "--force")
        self.assertEqual(made.code, 0, made.err)
        shown = [json.loads(harness.orrery("show", "trace", f"{prefix}.{npu}.et", "--json").out) for npu in range(8)]
        return shown, json.loads((self.folder / "w.json").read_text())

    def test_npus_with_experts_of_their_own(self):
        """With tp 2 and ep 4 an expert is halved, or each NPU has experts of its own: then groups of eight exchange tokens, without the
        all-gathers and the sums over tp that each of the three layers has for experts: two gathers forward and backward, and two sums.
        """
        shared, groups = self.traces("tp: 2, ep: 4, sp: true")
        own, own_groups = self.traces("tp: 2, ep: 4, sp: true, expert-tp: 1")
        self.assertNotIn(list(range(8)), [groups[name] for name in groups if name.startswith("ep")])
        self.assertEqual([own_groups[name] for name in own_groups if name.startswith("ep")], [list(range(8))])
        for a, b in zip(shared, own):
            self.assertEqual(a["operations"], b["operations"])
            self.assertEqual(a["collectives"]["all-to-all"], b["collectives"]["all-to-all"])
            self.assertEqual(
                a["collectives"]["all-gather"]["count"] - b["collectives"]["all-gather"]["count"], 3 * LAYERS
            )
            self.assertEqual(
                a["collectives"]["reduce-scatter"]["count"] - b["collectives"]["reduce-scatter"]["count"], 2 * LAYERS
            )

    def test_loads_are_drawn(self):
        """Loads leave the sum of what all NPUs compute as it is, up to a row for each layer, and differ between NPUs of ep alone. Exchanges
        grow for all alike. Another seed draws others."""
        even, _ = self.traces("ep: 4, dp: 2")
        uneven, _ = self.traces("ep: 4, dp: 2, expert-imbalance: 0.5")
        other, _ = self.traces("ep: 4, dp: 2, expert-imbalance: 0.5, expert-seed: 2")
        operations = [trace["operations"] for trace in uneven]
        of_a_row = 3 * 2 * 2 * HIDDEN * FFN
        self.assertAlmostEqual(sum(operations), sum(trace["operations"] for trace in even), delta=8 * LAYERS * of_a_row)
        self.assertEqual(operations[:4], operations[4:])
        self.assertEqual(len(set(operations)), 4)
        self.assertNotEqual(operations, [trace["operations"] for trace in other])
        sizes = {trace["collectives"]["all-to-all"]["bytes"] for trace in uneven}
        self.assertEqual(len(sizes), 1)
        self.assertGreater(sizes.pop(), 1.1 * even[0]["collectives"]["all-to-all"]["bytes"])

    def test_norms_are_summed(self):
        """Six norms of 512 values in bf16 over tp, and one number over all NPUs; without sequence parallelism the latter alone."""
        for sp, count, size in (("true", 2, 2 * LAYERS * HIDDEN * 2 + 4), ("false", 1, 4)):
            before, _ = self.traces(f"tp: 2, dp: 4, sp: {sp}")
            after, groups = self.traces(f"tp: 2, dp: 4, sp: {sp}, norm-sums: true")
            sums = [trace["collectives"]["all-reduce"] for trace in (before[0], after[0])]
            self.assertEqual(sums[1]["count"] - sums[0]["count"], count)
            self.assertEqual(sums[1]["bytes"] - sums[0]["bytes"], size)
            self.assertEqual(groups["all"], list(range(8)))

    def test_one_answer(self):
        """All of it together on 1, 2 and 3 ranks and folded; uneven loads make a step longer, because all wait for the NPU that has most."""
        times = []
        for imbalance in (0, 0.5):
            config = self.config(
                f"tp: 2, sp: true, ep: 2, pp: 2, micro-batches: 4, expert-tp: 1, norm-sums: true, expert-imbalance: {imbalance}",
                MODEL.replace("layers: 3", "layers: 4"),
            )
            one = self.check_one_answer([config], 8, ranks=(2, 3))
            folded = harness.finish_times(self.run_once([config, "--fold"], "folded.h5"))
            self.assertEqual(folded, harness.finish_times(one))
            times.append(max(folded))
        self.assertGreater(times[1], 1.02 * times[0])

    def test_refusals(self):
        """What excludes each other is refused by its key."""
        for parallel, key in (
            ("tp: 4, ep: 2, sp: true, expert-tp: 2", "expert-tp"),
            ("tp: 2, ep: 4, expert-tp: 1", "expert-tp"),
            ("ep: 8, expert-imbalance: 0.3, expert-capacity: 1.25", "expert-imbalance"),
            ("ep: 8, expert-imbalance: 5", "expert-imbalance"),
        ):
            with self.subTest(parallel):
                refused = harness.orrery("generate", self.config(parallel), "--dry-run")
                self.assertEqual(refused.code, 3, refused.err)
                self.assertIn(f"workload.parallel.{key}", refused.err)
        refused = harness.orrery(
            "generate",
            self.config("tp: 8, sp: true, expert-tp: 1", MODEL.replace("experts: 16", "experts: 12")),
            "--dry-run",
        )
        self.assertIn("workload.model.experts", refused.err)


if __name__ == "__main__":
    harness.main()
