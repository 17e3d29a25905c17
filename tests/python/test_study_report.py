#!/usr/bin/python3
"""orrery report, compare and show results say what explore.h5 holds, orrery.read_study reads it, and the page works in a browser.

System: a small study that orrery explore made, and files of studies that made_studies.py makes up, of up to 50,000 trials. Expectation:
numbers are those of the file, what follows from them is what can be worked out by hand, wrong input gets a message and its exit code, and
the page loads in headless Chromium without an error, draws a mark for each trial and reacts to brushes. Without Chromium the last part is
skipped.
"""
import csv
import html
import io
import json
import pathlib
import re
import shutil
import tempfile
import unittest
import xml.etree.ElementTree

import browser
import examples
import h5py
import harness
import made_studies
import numpy as np
import orrery
from orrery.report import encode
from orrery.report.studies import comparison, facts, page, sensitivity, series

MOST_BYTES = 5_000_000  # of a page
STUDY = """study:
  base: base.yaml
  parameters:
    tp: {key: workload.parallel.tp, values: [1, 2, 4]}
    pp: {key: workload.parallel.pp, values: [1, 2]}
    bw: {key: system.network.dimensions.1.bandwidth, values: [25 GB/s, 50 GB/s]}
  derived: {dp: {key: workload.parallel.dp, value: npus / (tp * pp)}}
  objectives: [OBJECTIVES]
  keep: 5
"""


def explored(folder, name="real", objectives="{minimise: step_time}"):
    """Lets the program explore twelve configurations of a small transformer. Returns the path of the results."""
    base = f"system:\n{examples.RING}{examples.COMPUTE}{examples.TRANSFORMER.replace('tp: 2, pp: 2, dp: 2', 'dp: 8')}"
    (folder / "base.yaml").write_text(base)
    (folder / f"{name}.yaml").write_text(STUDY.replace("OBJECTIVES", objectives))
    outcome = harness.orrery("explore", f"{name}.yaml", "--output", f"{name}.h5", "--csv", f"{name}.csv", cwd=folder)
    if outcome.code != 0:
        raise AssertionError(outcome.err)
    return folder / f"{name}.h5"


class Studies(unittest.TestCase):
    longMessage = True

    @classmethod
    def setUpClass(cls):
        if not hasattr(Studies, "real"):  # once for all classes
            folder = Studies.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
            unittest.addModuleCleanup(shutil.rmtree, folder)
            Studies.made = made_studies.write(folder / "made.h5", 600)
            Studies.faster = made_studies.write(folder / "faster.h5", 600, speed=1.25)
            Studies.bounded = made_studies.write(folder / "bounded.h5", 600, seed=3, simulated=0.25)
            Studies.front = explored(folder, "front", "{minimise: step_time}, {minimise: peak_memory}")
            Studies.real = explored(folder)
        super().setUpClass()


class Reader(Studies):
    def test_tables(self):
        """System: a study that the program made. Expectation: its tables are those of --csv, and parameters are numbers where they are."""
        with orrery.read_study(self.real) as study, open(self.folder / "real.csv", newline="") as file:
            rows = list(csv.DictReader(file))
            self.assertEqual(len(study.trials), len(rows))
            self.assertEqual(
                (study.parameters, study.derived, study.varied), (["tp", "pp", "bw", "dp"], ["dp"], ["tp", "pp", "bw"])
            )
            self.assertEqual(study.trials["tp"].dtype, np.int64)
            for row in rows:
                trial = study.trials.loc[int(row["number"])]
                self.assertEqual(
                    [str(trial[name]) for name in ("tp", "pp", "dp")], [row[name] for name in ("tp", "pp", "dp")]
                )
                self.assertEqual(
                    trial["bw"], {"25 GB/s": 25e9, "50 GB/s": 50e9}[study.texts.loc[int(row["number"]), "bw"]]
                )
                self.assertEqual(trial["step_time"], float(row["step_time [s]"]))
            self.assertEqual(study.trials.attrs["units"]["peak_memory"], "byte")
            self.assertEqual(study.objectives, [("step_time", "minimise")])
            self.assertEqual(study.top, list(study.done.index[:5]))
            self.assertIn("step_time", study.inputs["study.yaml"])

    def test_front(self):
        """System: a study of two objectives. Expectation: no trial of the front is beaten by another one, and each other one is."""
        with orrery.read_study(self.front) as study:
            values = study.done[["step_time", "peak_memory"]]
            beaten = {
                row
                for row in values.index
                if ((values <= values.loc[row]).all(axis=1) & (values < values.loc[row]).any(axis=1)).any()
            }
            self.assertEqual(set(study.front), set(values.index) - beaten)
            self.assertEqual(study.top[0], values["step_time"].idxmin())
            self.assertEqual(study.top, study.front)

    def test_front_of_ties(self):
        """System: trials 0 and 1 with the same least time, of which 1 needs less memory. Expectation: trial 0 is named nowhere as one of the
        best, neither by the file's front nor by one that is worked out; the ends of the front are the best of each objective.
        """
        times, memory = np.array([1.0, 1.0, 2.0, 3.0, 2.0]), np.array([9.0, 8.0, 4.0, 2.0, 5.0])
        for given in (True, False):
            path = self.folder / f"ties-{given}.h5"
            made_studies.write_file(
                path,
                {
                    "number": np.arange(5, dtype="u8"),
                    "status": np.array(["done"] * 5, dtype=object),
                    "error": np.array([""] * 5, dtype=object),
                    "step_time": times,
                    "peak_memory": memory,
                },
                {"a": np.array(list("01234"), dtype=object)},
                [1, 2, 3],
                [("legal", 5)],
                "study: {parameters: {a: {values: [0, 1, 2, 3, 4]}}, objectives: [{minimise: step_time}, {minimise: peak_memory}]}\n",
            )
            if not given:
                with h5py.File(path, "r+") as file:
                    del file["best"]
            with orrery.read_study(path) as study:
                self.assertEqual(
                    (study.top, study.front, study.extremes), ([1, 2, 3], [1, 2, 3], {"step_time": 1, "peak_memory": 3})
                )
                self.assertEqual(study.done.index[0], 1)
                found = facts.of(study)
                self.assertEqual(([row["trial"] for row in found["top"]], found["tornado"]["trial"]), ([1, 2, 3], 1))
                with orrery.read_study(path) as same:
                    self.assertEqual(
                        [one["trials"] for one in comparison.of([study, same])["extremes"]], [[1, 1], [3, 3]]
                    )
                self.assertIn("Best peak memory: ", page.text([path]))

    def test_errors(self):
        """System: a study with trials refused for two reasons, one of which has numbers. Expectation: each reason has its count and its first
        trial, and the page and the terminal say so."""
        path = made_studies.write(self.folder / "wrong.h5", 60)
        with h5py.File(path, "r+") as file:
            status, error = file["trials/status"].asstr()[:], file["trials/error"].asstr()[:]
            status[5:25], error[5:25] = "refused", [f"heads: found {i} heads" for i in range(20)]
            status[30:33], error[30:33] = "failed", "no memory <left>"
            file["trials/status"][:], file["trials/error"][:] = status, error
            del file["best"]  # it may name one of these trials
        with orrery.read_study(path) as study:
            rows = study.errors.to_dict("records")
        self.assertEqual(
            rows,
            [
                {"status": "refused", "count": 20, "trial": 5, "error": "heads: found 0 heads"},
                {"status": "failed", "count": 3, "trial": 30, "error": "no memory <left>"},
            ],
        )
        outcome = harness.orrery("show", "results", path)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertRegex(
            outcome.out, r"\n +20  refused  trial 5: heads: found 0 heads\n +3  failed   trial 30: no memory <left>\n"
        )
        self.assertIn("heads: found 0 heads", page.text([path]))
        self.assertIn("no memory &lt;left&gt;", page.text([path]))

    def test_commands(self):
        """System: the command that a study says runs its best trial again. Expectation: it runs, and the step takes as long as in the study."""
        with orrery.read_study(self.real) as study:
            number, time = study.top[0], study.trials.loc[study.top[0], "step_time"]
            first, second = study.command(number).split(" && ")
        words, target = first.removeprefix("orrery ").split(" > ")
        outcome = harness.orrery(*words.split(), cwd=self.folder)
        (self.folder / target).write_text(outcome.out)
        self.assertEqual(harness.orrery(*second.removeprefix("orrery ").split(), "--quiet", cwd=self.folder).code, 0)
        with orrery.open(self.folder / f"trial-{number}.h5", times="ps") as run:
            self.assertEqual(run.metrics["value"]["step_time"] * 1e-12, time)
        with orrery.read_study(self.made) as study:
            self.assertTrue(
                study.command(3).startswith("orrery explore studies/made.yaml --set a.b=3 --trial 3 > trial-3.yaml && ")
            )

    def test_wrong_files(self):
        """System: a study where a run is expected, and the other way round. Expectation: the message says what the file is and who reads it."""
        with self.assertRaisesRegex(
            orrery.ResultsError, "found results of a study; expected results of a run. In Python orrery.read_study"
        ):
            orrery.open(self.made)
        run = examples.transformer(self.folder)
        with self.assertRaisesRegex(
            orrery.ResultsError, "found results of a run; expected results of a study. In Python orrery.open"
        ):
            orrery.read_study(run)

    def test_quantities(self):
        """System: texts of configurations. Expectation: their numbers are in SI units, and other texts have none."""
        from orrery.study import si

        for text, value, unit in (
            ("80 GB", 80e9, "byte"),
            ("400 Gb/s", 50e9, "byte/s"),
            ("2 us", 2e-6, "s"),
            ("312 TFLOPS", 312e12, "FLOPS"),
            ("1.5", 1.5, "1"),
            ("-3", -3, "1"),
            ("2 KiB", 2048, "byte"),
            ("20 %", 0.2, "1"),
        ):
            self.assertAlmostEqual(si(text)[0] / value, 1, 12, text)
            self.assertEqual(si(text)[1], unit)
        for text in ("none", "1 parsec", "1.2.3", "", "."):
            self.assertTrue(np.isnan(si(text)[0]), text)


class Metrics(unittest.TestCase):
    def test_better_direction(self):
        """System: metrics of steps, campaigns, clusters and requests. Expectation: less is better of times and prices, more of rates and shares that
        are useful; an objective of the study decides over that."""
        from orrery.report.studies.quantities import is_less_better

        for metric in ("step_time", "usd_per_step", "lost_npu_hours", "jct", "ttft_p99", "exposed_communication"):
            self.assertTrue(is_less_better(metric, []), metric)
            self.assertFalse(is_less_better(metric, [(metric, "maximise")]), metric)
        for metric in ("mfu", "tokens_per_usd", "ettr", "goodput", "cluster_utilisation", "slo_attainment", "max_rate"):
            self.assertFalse(is_less_better(metric, []), metric)
            self.assertTrue(is_less_better(metric, [(metric, "minimise")]), metric)

    def test_the_table_is_that_of_the_program(self):
        """System: the metrics of the package and those that orrery show metrics prints. Expectation: the same names, titles and directions."""
        printed = {one["name"]: one for one in json.loads(harness.orrery("show", "metrics", "--json").out)}
        from orrery.metric_table import METRICS

        self.assertEqual(
            {one.name: (one.title, one.more_is_better, one.is_share, one.place) for one in METRICS},
            {
                name: (one["title"], one["better"] == "more", one["is_share"], one["place"])
                for name, one in printed.items()
            },
        )


class Sensitivity(Studies):
    def grid(self, name, value):
        """Writes a study of a full grid of a and b, 0 to 3 each, whose step takes value(a, b). Returns it, opened."""
        a, b = (axis.ravel() for axis in np.meshgrid(range(4), range(4), indexing="ij"))
        times = np.array([value(x, y) for x, y in zip(a, b)], dtype=float)
        done = np.isfinite(times)
        status = np.where(done, "done", "refused").astype(object)
        made_studies.write_file(
            self.folder / name,
            {
                "number": np.arange(16, dtype="u8"),
                "status": status,
                "error": np.full(16, "", dtype=object),
                "step_time": times,
            },
            {"a": a.astype(str).astype(object), "b": b.astype(str).astype(object)},
            np.argsort(np.where(done, times, 9e9))[:3],
            [("legal", 16)],
            "study: {parameters: {a: {values: [0, 1, 2, 3]}, b: {values: [0, 1, 2, 3]}}, objectives: [{minimise: step_time}]}\n",
        )
        study = orrery.read_study(self.folder / name)
        self.addCleanup(study.close)
        return study

    def test_main_effects(self):
        """System: times of a + 2 b on a full grid. Expectation: the variance is shared 1 to 4, as the squares of the factors say."""
        found = sensitivity.main_effects(self.grid("sum.h5", lambda a, b: 1 + a + 2 * b))
        self.assertAlmostEqual(found["a"], 0.2)
        self.assertAlmostEqual(found["b"], 0.8)

    def test_around_the_best(self):
        """System: the same, one trial refused. Expectation: rows have the trials that differ from the best in one parameter, without that one."""
        study = self.grid("refused.h5", lambda a, b: float("nan") if (a, b) == (2, 0) else 1 + a + 2 * b)
        self.assertEqual(
            {name: dict(points) for name, points in sensitivity.around_best(study).items()},
            {"a": {"0": 1, "1": 2, "3": 4}, "b": {"0": 1, "1": 3, "2": 5, "3": 7}},
        )
        self.assertEqual([row["parameter"] for row in facts.tornado(study)["rows"]], ["b", "a"])

    def test_those_of_the_file(self):
        """System: a file with main effects and a tornado. Expectation: they are shown in place of those that the package works out."""
        self.grid("told.h5", lambda a, b: 1 + a + 2 * b).close()
        with h5py.File(self.folder / "told.h5", "r+") as file:
            kind = h5py.string_dtype()
            file.create_dataset("sensitivity/main_effect/parameter", data=["a", "b"], dtype=kind)
            file["sensitivity/main_effect/effect"] = [0.25, 0.5]
            for name, values in (("parameter", ["a"]), ("low_value", ["0"]), ("high_value", ["3"])):
                file.create_dataset(f"sensitivity/tornado/{name}", data=values, dtype=kind)
            file["sensitivity/tornado/low"], file["sensitivity/tornado/high"] = [1.0], [9.0]
        with orrery.read_study(self.folder / "told.h5") as study:
            self.assertEqual(
                facts.main_effects(study), [{"parameter": "b", "effect": 0.5}, {"parameter": "a", "effect": 0.25}]
            )
            self.assertEqual(
                facts.tornado(study)["rows"],
                [{"parameter": "a", "points": [{"value": "0", "metric": 1.0}, {"value": "3", "metric": 9.0}]}],
            )

    def test_breakdown(self):
        """System: the best trials of all studies. Expectation: the parts of each add up to 1, and waiting counts once."""
        for path in (self.real, self.made):
            with orrery.read_study(path) as study:
                found = facts.breakdown(study)
                self.assertEqual([one["trial"] for one in found], study.top)
                for one in found:
                    self.assertAlmostEqual(sum(part["share"] for part in one["parts"]), 1, delta=3e-3)


class Comparison(Studies):
    def test_matched(self):
        """System: a study and the same one 1.25 times as fast. Expectation: all ratios are 0.8, the order is the same, nothing else differs."""
        with orrery.read_study(self.made) as first, orrery.read_study(self.faster) as second:
            found = comparison.of([first, second])
            both = min(len(study.done.drop_duplicates(study.parameters)) for study in (first, second))
        one = found["matched"][0]
        self.assertEqual((one["done"], one["better"], one["worse"]), (both, both, 0))
        for name in ("mean", "least", "median", "most"):
            self.assertAlmostEqual(one["ratio"][name], 0.8, 9)
        self.assertAlmostEqual(one["rank_correlation"], 1)
        self.assertEqual(found["settings"], [])
        self.assertEqual({round(value["ratios"][1], 9) for value in found["values"]}, {0.8})
        self.assertRegex(found["said"][0], "20.0 % less than made")

    def test_other_work(self):
        """System: a study and one whose steps train on twice the tokens in the same time. Expectation: it says that the steps do different
        work, and compares tokens/s."""
        shutil.copy(self.made, self.folder / "twice.h5")
        with h5py.File(self.folder / "twice.h5", "r+") as file:
            file["trials/tokens_per_s"][:] = 2 * file["trials/tokens_per_s"][:]
        with orrery.read_study(self.made) as first, orrery.read_study(self.folder / "twice.h5") as second:
            found = comparison.of([first, second])
            same = comparison.of([first, first])
        self.assertEqual(found["objective"], "tokens_per_s")
        self.assertEqual({round(value["ratios"][1], 9) for value in found["values"]}, {2})
        self.assertRegex(
            found["said"][0],
            "The steps do different work: 8,400,000 tokens in made, 16,800,000 tokens in twice. Compare tokens/s",
        )
        self.assertRegex(found["said"][1], "twice reaches [0-9,]+ tokens/s, 100.0 % more than made")
        self.assertEqual(same["objective"], "step_time")
        self.assertNotIn("different work", " ".join(same["said"]))

    def test_fronts(self):
        """System: a study of two objectives and one 1.25 times as fast. Expectation: for each objective the trial of each study that is best in
        it, and all trials of the slower front are dominated."""
        paths = [
            made_studies.write(
                self.folder / f"{name}.h5",
                300,
                objectives=(("step_time", "minimise"), ("peak_memory", "minimise")),
                speed=speed,
            )
            for name, speed in (("slow", 1), ("quick", 1.25))
        ]
        with orrery.read_study(paths[0]) as first, orrery.read_study(paths[1]) as second:
            found = comparison.of([first, second])
            size = len(first.front)
            for one in found["extremes"]:
                self.assertEqual(one["trials"], [first.extremes[one["metric"]], second.extremes[one["metric"]]])
        self.assertEqual(found["fronts"], [{"first": size, "first_beaten": size, "second": size, "second_beaten": 0}])
        with h5py.File(
            paths[0], "r+"
        ) as file:  # a step of the slow one trains on twice the tokens: then it is the faster one
            file["trials/tokens_per_s"][:] = 2 * file["trials/tokens_per_s"][:]
        with orrery.read_study(paths[0]) as first, orrery.read_study(paths[1]) as second:
            found = comparison.of([first, second])
        self.assertEqual(found["fronts"], [{"first": size, "first_beaten": 0, "second": size, "second_beaten": size}])
        made_studies.write(paths[0], 300, objectives=(("step_time", "minimise"), ("peak_memory", "minimise")))
        outcome = harness.orrery("compare", *paths)
        self.assertIn("the trial of each with the best peak memory", outcome.out, outcome.err)
        self.assertIn(f"of the {size} on that of slow, {size} by trials of quick", outcome.out)

    def test_overrides(self):
        """System: two studies of which the program made one with --set. Expectation: its key is what differs, with both values."""
        key = "system.network.dimensions.0.bandwidth"
        outcome = harness.orrery(
            "explore", "real.yaml", "--set", f"{key}=100 GB/s", "--output", "wider.h5", cwd=self.folder
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        with orrery.read_study(self.real) as first, orrery.read_study(self.folder / "wider.h5") as second:
            found = comparison.of([first, second])
            self.assertIn(f"real.yaml --set '{key}=100 GB/s' --trial 0 >", second.command(0))
        self.assertEqual(found["settings"], [{"text": "--set", "key": key, "values": [None, "100 GB/s"]}])
        self.assertEqual(found["matched"][0]["done"], 12)

    def test_texts(self):
        """System: studies of one and of two objectives. Expectation: the key of the objectives is the one that differs."""
        with orrery.read_study(self.real) as first, orrery.read_study(self.front) as second:
            keys = {one["key"].rpartition(".objectives")[1] for one in comparison.settings([first, second])}
        self.assertEqual(keys, {".objectives"})


class Series(Studies):
    def test_three_bytes(self):
        """System: numbers of all sizes in three bytes. Expectation: the relative error is at most 2**-16, and what is not known stays so."""
        import base64

        values = np.concatenate([np.geomspace(1e-12, 1e15, 1000), [0, np.nan, -2.5]])
        data = np.frombuffer(base64.b64decode(encode.array(values, "float24")["data"]), dtype=np.uint8).reshape(-1, 3)
        found = np.column_stack([np.zeros(len(data), np.uint8), data]).copy().view("<f4").ravel()
        np.testing.assert_allclose(found, values, rtol=2**-16 + 1e-7)

    def test_large(self):
        """System: 50,000 trials with 25 columns, of which each has its own error or numbers. Expectation: the page has at most 5 MB."""
        path = made_studies.write(self.folder / "large.h5", 50_000)
        with h5py.File(path, "r+") as file:
            file["trials/error"][:] = [f"needs {i / 7:.5f} GB of {i % 13} GB" for i in range(50_000)]
        text = page.text([path])
        self.assertLessEqual(len(text.encode()), MOST_BYTES)
        columns = json.loads(
            re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1]
        )["trials"]["columns"]
        self.assertGreaterEqual(len(columns), 20)


class Terminal(Studies):
    def run_program(self, *arguments, code=0):
        outcome = harness.orrery(*arguments, cwd=self.folder)
        self.assertEqual(outcome.code, code, outcome.err)
        return outcome

    def test_show(self):
        """System: studies of all kinds, printed in each format. Expectation: all say the best trial; CSV has the trials of --csv."""
        for path in (self.real, self.front, self.made, self.bounded):
            with orrery.read_study(path) as study:
                best = study.top[0]
            self.assertRegex(self.run_program("show", "results", path).out, rf"(?m)^ +{best}  ")
            self.assertEqual(
                json.loads(self.run_program("show", "results", path, "--format=json").out)["top"][0]["trial"], best
            )
        rows, expected = (
            list(csv.reader(io.StringIO(text)))
            for text in (
                self.run_program("show", "results", self.real, "--format=csv").out,
                (self.folder / "real.csv").read_text(),
            )
        )
        self.assertEqual(
            {
                head: [row[at] for row in rows[1:]]
                for at, head in enumerate(rows[0])
                if head in ("number", "status", "tp", "dp", "error")
            },
            {
                head: [row[at] for row in expected[1:]]
                for at, head in enumerate(expected[0])
                if head in ("number", "status", "tp", "dp", "error")
            },
        )
        self.assertIn("step_time [s]", rows[0])

    def test_width(self):
        """System: studies of one and of two objectives with 22 columns. Expectation: the table of trials has lines of at most 100 characters, and
        says how many columns it leaves out; the objectives and the memory stay."""
        two = made_studies.write(
            self.folder / "two.h5", 300, objectives=(("tokens_per_usd", "maximise"), ("capex", "minimise"))
        )
        for path, name, kept in (
            (self.made, "the best, the first one first", ("step time", "peak memory")),
            (two, "the Pareto front", ("tokens/USD", "system price")),
        ):
            lines = self.run_program("show", "results", path).out.splitlines()
            begin = next(at for at, line in enumerate(lines) if line.startswith(name))
            table = lines[begin : lines.index("", begin)]
            self.assertLessEqual(max(map(len, table)), 100)
            for head in kept:
                self.assertIn(head, table[1])
            self.assertRegex(table[-1], r"\(\d more columns: --format csv has them\)")
        with orrery.read_study(two) as study:
            self.assertIn(
                f"  best tokens/USD: trial {study.extremes['tokens_per_usd']}; best system price: trial {study.extremes['capex']}",
                lines,
            )

    def test_compare(self):
        """System: two studies, compared in each format. Expectation: all say the ratio of the best."""
        for form in ("text", "json", "csv"):
            out = self.run_program("compare", self.made, self.faster, "--format", form).out
            self.assertRegex(out, r"0\.8\d*|0\.79999", form)
            self.assertIn("excluded by peak_memory <= 80 GB", out)
        self.assertLessEqual(max(map(len, self.run_program("compare", self.made, self.faster).out.splitlines())), 160)

    def test_refusals(self):
        """System: wrong files. Expectation: one line that says what to do, and exit code 3, before anything is written."""
        run = examples.transformer(self.folder, "run")
        (self.folder / "damaged.h5").write_bytes(self.made.read_bytes()[:3000])
        shutil.copy(self.made, self.folder / "part.h5")
        with h5py.File(self.folder / "part.h5", "r+") as file:
            del file["trials/number"]
        for arguments, said in (
            (["report", self.made, run, "--output=a.html"], "files of one kind"),
            (["compare", run, self.made], "files of one kind"),
            (["report", "damaged.h5", "--output=a.html"], "damaged.h5"),
            (["show", "results", "part.h5"], "damaged or missing data"),
        ):
            outcome = self.run_program(*arguments, code=3)
            self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
            self.assertIn(said, outcome.err)
        self.assertFalse((self.folder / "a.html").exists())

    def test_nothing_done(self):
        """System: a study of which no trial is done. Expectation: it can be shown, compared and reported."""
        path = made_studies.write(self.folder / "none.h5", 40)
        with h5py.File(path, "r+") as file:
            file["trials/status"][:] = "refused"
            del file["best"]
            file["best"] = np.zeros(0, dtype="u8")
        self.assertIn("no trial is done", self.run_program("show", "results", path).out)
        self.assertIn("has no trial that is done", self.run_program("compare", self.made, path).out)
        self.run_program("report", path, "--output=none.html")


class Page(Studies):
    def test_without_javascript(self):
        """System: the page without its scripts. Expectation: tables list the best trials with their commands, the funnel, and all else is there."""
        text = page.text([self.made])
        text = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
        with orrery.read_study(self.made) as study:
            for number in study.top:
                self.assertIn(html.escape(study.command(number)), text)
            for reason, count in study.funnel.itertuples(index=False):
                self.assertIn(html.escape(reason), text)
                self.assertIn(f"{count:,}", text)
        for name in ("overview", "funnel", "trials", "sensitivity", "breakdown", "bounds", "study"):
            self.assertIn(f'<section id="{name}">', text)

    def test_self_contained(self):
        """System: pages of one and of two studies. Expectation: they load nothing from elsewhere, and hold the licence of the library."""
        for paths in ([self.real], [self.made, self.bounded]):
            text = page.text(paths)
            self.assertEqual(
                re.findall(r"(?:src|href)=[\"'](?!#|data:)[^\"']*", text.split('<script id="data"')[0]), []
            )
            self.assertIn("Mike Bostock", text)
            self.assertIn("Permission to use, copy, modify", text)

    def test_texts_stay_texts(self):
        """System: a study whose texts look like HTML and like marks of the template. Expectation: the page shows them as they are."""
        shutil.copy(self.made, self.folder / "odd.h5")
        with h5py.File(self.folder / "odd.h5", "r+") as file:
            file["funnel/reason"][0] = "</script><b>/*DATA*/"
            file["trials/error"][0] = "</script><script>alert(1)</script>"
        text = page.text([self.folder / "odd.h5"])
        self.assertIn("&lt;/script&gt;&lt;b&gt;/*DATA*/", text)
        self.assertNotIn("<script>alert", re.sub(r'<script id="data".*?</script>', "", text, flags=re.DOTALL))
        self.assertNotIn("</script><script>alert", text)


@browser.needs_browser
class Browser(Studies, browser.Browser):
    def load(self, *paths, width=1280):
        output = self.folder / f"{'-'.join(path.stem for path in paths)}.html"
        if not output.exists():
            outcome = harness.orrery("report", *paths, "--output", output)
            self.assertEqual(outcome.code, 0, outcome.err)
        self.open_page(output, width)

    def test_one_parameter(self):
        """System: a study that varies one parameter, and one that varies more. Expectation: the first has a chart of the metric over it, with a point for
        each trial; the second has none."""
        one, several = self.folder / "one.h5", self.made
        study = self.folder / "one.yaml"
        study.write_text(
            "study:\n  base: small.yaml\n  parameters: {micro_batches: {key: workload.parallel.micro-batches, values: [1, 2, 4]}}\n  objectives: [{minimise: step_time}]\n"
        )
        (self.folder / "small.yaml").write_text("system:\n" + examples.RING + examples.COMPUTE + examples.TRANSFORMER)
        outcome = harness.orrery("explore", study, "--force", f"--output={one}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.load(one)
        self.assertEqual(self.do("return charts.curve.rows(0).map((point) => point.x)"), [1, 2, 4])
        steps = self.do("return charts.curve.rows(0).map((point) => point.y)")
        with h5py.File(one) as file:
            np.testing.assert_allclose(steps, file["trials/step_time"][:], rtol=1e-6)
        self.do(
            "window.saved = []; saveFile = (name, text) => saved.push([name, text]); for (const button of document.querySelectorAll('button.save')) button.click();"
        )
        for name, text in self.do("return saved"):
            self.assertTrue(text.startswith("<svg") if name.endswith(".svg") else text.count("\n") > 1, name)
            if name.endswith(".svg"):
                xml.etree.ElementTree.fromstring(text)
        self.load(several)
        self.assertIsNone(self.do("return document.getElementById('curve')"))
        self.no_errors()

    def test_contrast(self):
        """System: pages of studies in a light and a dark look. Expectation: the contrast of each text with what is behind it is at least 4.5."""
        for path in (self.real, self.bounded):
            self.load(path)
            for _ in range(2):
                self.assertEqual(self.poor_contrasts(), [], path.name)
                self.do("document.getElementById('theme').click()")

    def test_selection_in_the_address(self):
        """System: a page in which trials were selected. Expectation: its address selects the same trials again."""
        self.load(self.made)
        count = self.do(
            "const column = AXES.find((one) => one.role === 'parameter' && one.isWord); return orrery.brush({[column.name]: [column.words[0]]})"
        )
        address = self.do("return location.hash")
        self.browser.get("about:blank")
        self.browser.get((self.folder / f"{self.made.stem}.html").as_uri() + address)
        self.assertEqual(self.do("return orrery.selected()"), count)
        self.no_errors()

    def trials(self):
        """Returns the numbers of the trials in the table."""
        head = self.do(
            "return [...document.querySelectorAll('[data-table=trials] th')].map((one) => one.textContent)"
        ).index("trial")
        return [int(text.replace(",", "")) for text in self.column("trials", head)]

    def test_every_study(self):
        """System: the pages of all studies, wide and narrow. Expectation: no error, no sideways scrolling, and a mark for each trial."""
        for paths in ([self.real], [self.front], [self.bounded], [self.made, self.faster]):
            studies = [orrery.read_study(path) for path in paths]
            known = sum(
                int((study.trials[["step_time", "peak_memory"]].notna().all(axis=1)).sum()) for study in studies
            )
            total, best = sum(len(study.trials) for study in studies), {
                number for study in studies for number in study.top
            }
            for width in (1280, 400):
                self.load(*paths, width=width)
                marks = self.do("return window.orrery.marks()")
                self.assertEqual((marks["scatter"], marks["parallel"]), (known, total), paths)
                self.assertEqual(set(self.trials()), best)
                self.assertLessEqual(self.do("return document.documentElement.scrollWidth"), width)
                self.no_errors()
            for study in studies:
                study.close()

    def test_labels_do_not_overlap(self):
        """System: the page with each metric on both axes of the scatter, and with all axes of the parallel coordinates. Expectation: no text of
        a chart lies over another one or out of the chart, and no tile is too narrow for its number."""
        overlaps = """return [...document.querySelectorAll(arguments[0])].flatMap((svg) => {
            const outer = svg.getBoundingClientRect(), boxes = [...svg.querySelectorAll("text")].filter((one) => one.textContent).map((one) => ({text: one.textContent, box: one.getBoundingClientRect()}));
            const found = boxes.filter(({box}) => box.left < outer.left - 1 || box.right > outer.right + 1).map((one) => `${one.text} is cut off`);
            boxes.forEach((a, at) => boxes.slice(at + 1).forEach((b) => {
                const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left), high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
                if (wide > 0 && high > 2) found.push(`${a.text} over ${b.text}`);
            }));
            return found;
        })"""
        for width in (1280, 400):
            self.load(self.made, width=width)
            for metric in self.do(
                "return [...document.querySelector('#scatter select[aria-label=y]').options].map((one) => one.value)"
            ):
                for side in "xy":
                    self.do(
                        f"const field = document.querySelector('#scatter select[aria-label={side}]'); field.value = '{metric}'; field.dispatchEvent(new Event('change'))"
                    )
                self.assertEqual(self.do(overlaps, "#scatter svg"), [], (metric, width))
            self.assertEqual(self.do(overlaps, "#parallel svg"), [], width)
            self.do(
                "for (const one of document.querySelectorAll('#parallel details input')) if (!one.checked) one.click()"
            )
            self.assertEqual(self.do(overlaps, "#parallel svg"), [], width)
            for metric in ("step_time", "capex", "tokens_per_usd"):
                self.do(
                    "for (const [label, name] of [['across', 'pp'], ['up', 'bw'], ['best', arguments[0]]]) { const field = document.querySelector("
                    "`#heat select[aria-label=${label}]`); field.value = name; field.dispatchEvent(new Event('change')); }",
                    metric,
                )
                self.assertEqual(self.do(overlaps, "#heat svg"), [], (metric, width))
            self.assertEqual(
                self.do(
                    "return [...document.querySelectorAll('.tile')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"
                ),
                [],
                width,
            )

    def test_brush_by_script(self):
        """System: window.orrery.brush with words and with a range. Expectation: the table has the trials that pandas selects, best first."""
        self.load(self.made)
        self.do("document.querySelector('[data-list=all]').click()")
        with orrery.read_study(self.made) as study:
            wanted = study.trials[
                study.trials["tp"].isin([2, 4]) & study.trials["step_time"].between(7, 9)
            ].sort_values("step_time", kind="stable")
        count = self.do("return window.orrery.brush({tp: ['2', '4'], step_time: [7, 9]})")
        self.assertEqual(count, len(wanted))
        self.assertGreater(count, 25)
        self.assertEqual(self.trials(), list(wanted.index[:25]))
        self.assertEqual(self.do("return window.orrery.brush()"), 600)
        self.no_errors()

    def test_brush_by_pointer(self):
        """System: drags over the scatter and along an axis. Expectation: they select fewer trials, together fewer still, and a click selects all."""
        from selenium.webdriver import ActionChains

        self.load(self.made)
        selected = "return window.orrery.selected()"
        counts = [self.do(selected)]
        for chart, (x, y), (dx, dy) in (
            ("#scatter .overlay", (-200, -100), (250, 120)),
            ("#parallel .brush .overlay", (0, -60), (0, 90)),
        ):
            target = self.browser.find_element("css selector", chart)
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)
            ActionChains(self.browser).move_to_element_with_offset(target, x, y).click_and_hold().move_by_offset(
                dx, dy
            ).release().perform()
            counts.append(self.do(selected))
        self.assertTrue(0 < counts[2] < counts[1] < counts[0], counts)
        self.assertEqual(self.do("return document.querySelectorAll('.chips .chip').length"), 3)
        self.do(
            "[...document.querySelectorAll('.chips button')].find((one) => one.textContent === 'Select all trials').click()"
        )
        self.assertEqual(self.do(selected), 600)
        self.no_errors()

    def test_table(self):
        """System: the table. Expectation: clicks sort it, a text filters it, a click on a row shows the trial with its command."""
        self.load(self.made)
        with orrery.read_study(self.made) as study:
            by_memory, excluded = study.trials["peak_memory"].sort_values(kind="stable"), int(
                (study.trials["status"] == "excluded").sum()
            )
        self.do(
            "document.querySelector('[data-list=all]').click(); [...document.querySelectorAll('[data-table=trials] th button')].find((one) => one.textContent === 'peak memory').click()"
        )
        self.assertEqual(self.trials(), list(by_memory.index[:25]))
        self.do(
            "const field = document.querySelector('[data-table=trials] input'); field.value = 'excluded'; field.dispatchEvent(new Event('input'))"
        )
        self.assertEqual(self.do("return window.orrery.rows().length"), excluded)
        first = self.trials()[0]
        self.do("document.querySelector('[data-table=trials] tbody tr').click()")
        self.assertIn(f"--trial {first} >", self.do("return document.getElementById('pinned').textContent"))
        self.no_errors()

    def test_axes_zoom_and_heat_map(self):
        """System: other axes, zoom, other parameters of the map. Expectation: pictures change, and cells are the pairs of values that are done."""
        self.load(self.made)
        picture = "return document.querySelector('#scatter canvas').toDataURL()"
        seen = [self.do(picture)]
        for action in (
            "const field = document.querySelector('#scatter select[aria-label=y]'); field.value = 'mfu'; field.dispatchEvent(new Event('change'))",
            "document.querySelector('#scatter button[title=\"Zoom in\"]').click()",
            "const field = document.querySelector('#scatter select[aria-label=colour]'); field.value = 'tp'; field.dispatchEvent(new Event('change'))",
        ):
            self.do(action)
            seen.append(self.do(picture))
        self.assertEqual(len(set(seen)), 4)
        self.do(
            "for (const [label, name] of [['across', 'tp'], ['up', 'zero']]) { const field = document.querySelector(`#heat select[aria-label=${label}]`);"
            "field.value = name; field.dispatchEvent(new Event('change')); }"
        )
        with orrery.read_study(self.made) as study:
            best = study.done.groupby(["tp", "zero"])["step_time"].min()
        texts = self.do("return [...document.querySelectorAll('#heat .cell text')].map((one) => one.textContent)")
        self.assertEqual(sorted(texts), sorted(orrery.readable(value, "s") for value in best))
        self.no_errors()

    def test_theme(self):
        """System: the button for light and dark. Expectation: a click changes the colours of the page and of the charts."""
        self.load(self.made)
        seen = []
        for _ in range(2):
            seen.append(
                self.do(
                    "return getComputedStyle(document.body).backgroundColor + document.querySelector('#scatter canvas').toDataURL()"
                )
            )
            self.do("document.getElementById('theme').click()")
        self.assertNotEqual(*seen)
        self.no_errors()


if __name__ == "__main__":
    harness.main()
