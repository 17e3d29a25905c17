#!/usr/bin/python3
"""Embedding tables that are divided table by table: what `show tables` says of them, one answer on any number of ranks, and what is refused."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

SYSTEM = (
    "system:\n  network: {dimensions: [{shape: Switch, size: 8, bandwidth: 100 GB/s, latency: 1 us}]}\n"
    "  compute: {model: roofline, peak: {bf16: 100 TFLOPS}, local-memory: {bandwidth: 1000 GB/s%s}}\n"
)
TABLES = "[4000000, {rows: 900000, pooling: 20}, {rows: 500000, sharding: row, pooling: 5}, {rows: 80000, sharding: column}, 3000, 200, 10]"
MODEL = f"{{kind: dlrm, bottom: [256, 128], tables: {TABLES}, top: [512, 1]}}"


class Tables(harness.Folder):
    def config(self, parallel, model=MODEL, memory=""):
        path = self.folder / "config.yaml"
        path.write_text(
            SYSTEM % memory + f"workload: {{model: {model}, parallel: {{dp: 8, micro-batch: 512, {parallel}}}}}\n"
        )
        return path

    def shown(self, config, *arguments):
        shown = harness.orrery("show", "tables", config, *arguments)
        self.assertEqual(shown.code, 0, shown.err)
        return shown.out

    def test_what_is_where(self):
        """The first table is whole on NPU 0, the second on NPU 1. The four parts of the fourth are the next largest, and the small ones
        follow; the third is divided among all. In bf16 NPU 0 holds 4,000,000 and 62,500 rows of 256 bytes."""
        npus = json.loads(self.shown(self.config("table-sharding: table"), "--json"))["npus"]
        tables = [[(part["table"], part["columns"]) for part in npu["tables"]] for npu in npus]
        self.assertEqual(
            tables,
            [[(0, 128)], [(1, 128)], [(3, 32)], [(3, 32)], [(3, 32)], [(3, 32)], [(4, 128)], [(5, 128), (6, 128)]],
        )
        self.assertEqual(npus[0]["bytes"], (4_000_000 + 62_500) * 256)
        self.assertEqual(npus[1]["bytes_read"], 512 * (8 * 20 + 5) * 256)
        text = self.shown(self.config("table-sharding: table"))
        self.assertIn("NPU 0 holds most, 1.04 GB", text)
        self.assertIn("NPU 1 looks up most in a micro-batch", text)
        self.assertRegex(text, r"\n +2 .* 3\[32\]\n")
        self.assertIn(
            "1.00 times the mean",
            self.shown(self.config("table-sharding: row"), f"--set=workload.model.tables={[4000, 800]}"),
        )

    def test_memory_is_checked_where_the_tables_are(self):
        """A table of 40 GB on one NPU exceeds its memory of 10 GB, which shares of eight NPUs do not."""
        model = MODEL.replace("4000000", "160000000")
        for sharding, code in (("table", 3), ("row", 0)):
            outcome = harness.orrery("check", self.config(f"table-sharding: {sharding}", model, ", size: 10 GB"))
            self.assertEqual(outcome.code, code, outcome.out + outcome.err)

    def test_one_answer(self):
        """All kinds of division together: one answer on 1, 2, 3, 4 and 8 ranks and folded. A whole table on one NPU is slower than its columns on
        several, which is slower than equal shares."""
        times = {}
        for parallel in (
            "table-sharding: table",
            "table-sharding: column, table-balance: lookups",
            "table-sharding: even",
        ):
            config = self.config(
                f"{parallel}, micro-batches: 2",
                MODEL
                if "even" not in parallel
                else MODEL.replace(", sharding: row", "").replace(", sharding: column", ""),
            )
            one = self.check_one_answer([config], 8, ranks=(2, 3, 4, 8))
            folded = harness.finish_times(self.run_once([config, "--fold"], "folded.h5"))
            self.assertEqual(folded, harness.finish_times(one))
            times[parallel] = max(folded)
        ordered = list(times.values())
        self.assertEqual(ordered, sorted(ordered, reverse=True))
        self.assertGreater(ordered[0], 1.1 * ordered[2])

    def test_the_preset(self):
        """The preset of DLRM-DCNv2 on 16 NPUs runs, and they hold the 204,184,588 rows of 128 values of MLPerf's list. Whole tables are
        placed unevenly: a sample looks up 100 of its 214 rows in a single table."""
        preset = harness.SOURCE / "configs/dlrm-dcnv2-16.yaml"
        self.run_once([preset])
        npus = json.loads(self.shown(preset, "--json"))["npus"]
        self.assertEqual(sum(npu["bytes"] for npu in npus), 204_184_588 * 128 * 2)
        text = self.shown(preset, "--set=workload.parallel.table-sharding=table")
        self.assertIn(f"{100 * 16 / 214:.2f} times the mean", text)

    def test_configuration_is_written_back(self):
        """The resolved configuration of a run has the same tables."""
        config = self.config("table-sharding: table")
        first = self.shown(config, "--json")
        import h5py

        with h5py.File(self.run_once([config])) as results:
            text = results["config/resolved"][()].decode()
        again = self.folder / "again.yaml"
        again.write_text(text)
        self.assertEqual(self.shown(again, "--json"), first)

    def test_refusals(self):
        """A table without rows, one of another width without cross layers, and a model without tables."""
        for model, key in (
            (MODEL.replace("4000000", "0"), "workload.model.tables.0"),
            (MODEL.replace("rows: 900000", "rows: 900000, width: 64"), "workload.model.tables.width"),
            (MODEL.replace("rows: 900000, ", ""), "workload.model.tables.1.rows"),
        ):
            refused = harness.orrery("show", "tables", self.config("table-sharding: table", model))
            self.assertEqual(refused.code, 3, refused.err)
            self.assertIn(key, refused.err)
        refused = harness.orrery("show", "tables", harness.SOURCE / "configs/llama3-8b-64.yaml")
        self.assertEqual(refused.code, 3, refused.err)
        self.assertIn("no embedding tables", refused.err)


if __name__ == "__main__":
    harness.main()
