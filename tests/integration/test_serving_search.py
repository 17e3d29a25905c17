#!/usr/bin/python3
"""Searches over serving: `orrery explore` with metrics of requests, and `orrery best --serve`; and the page and the table of serving runs."""
import csv
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402

import harness  # noqa: E402

SERVING = {
    "requests": {"arrivals": "constant", "rate": 50, "count": 400, "prompt": 100, "output": 10},
    "router": {"policy": "least-requests"},
    "instances": [{"count": 2, "kv-blocks": 2000}],
    "step": {"model": "linear", "linear": {"base": "4 ms", "token": "50 us"}},
    "slo": {"ttft": "100 ms", "tpot": "20 ms"},
}


class Search(harness.Folder):
    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def explore(self, study, *options, code=0, ranks=0):
        self.write("base.yaml", {"serving": SERVING})
        path = self.write("study.yaml", {"study": {"base": "base.yaml", **study}})
        outcome = harness.orrery(
            "explore",
            path,
            f"--output={self.folder / 'study.h5'}",
            f"--csv={self.folder / 'study.csv'}",
            "--force",
            *options,
            ranks=ranks,
        )
        self.assertEqual(outcome.code, code, outcome.err)
        return outcome

    def test_explore_knows_the_metrics_of_requests(self):
        """Of one to three instances the fewest that keep the constraint are best, and the values are those of runs."""
        study = {
            "parameters": {
                "count": {"key": "serving.instances.0.count", "values": [1, 2, 3]},
                "rate": {"key": "serving.requests.rate", "values": [50, 300]},
            },
            "constraints": ["ttft_p99 <= 50 ms", "slo_attainment >= 0.9"],
            "objectives": [{"minimise": "latency_mean"}],
        }
        for ranks in (0, 2):
            self.explore(study, ranks=ranks)
            with open(self.folder / "study.csv") as file:
                rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))]
            self.assertEqual(len(rows), 6)
            done = [row for row in rows if row["status"] == "done"]
            self.assertTrue(0 < len(done) < 6, [row["status"] for row in rows])
            for row in done:
                results = self.folder / "one.h5"
                settings = [
                    f"--set=serving.instances.0.count={row['count']}",
                    f"--set=serving.requests.rate={row['rate']}",
                ]
                self.assertEqual(
                    harness.orrery(
                        "run", self.folder / "base.yaml", *settings, f"--output={results}", "--quiet", "--force"
                    ).code,
                    0,
                )
                with h5py.File(results) as file:
                    attributes = file["serving"].attrs
                    self.assertAlmostEqual(
                        float(row[next(k for k in row if k.startswith("ttft_p99"))]),
                        attributes["ttft_p99"] * 1e-12,
                        delta=1e-9,
                    )
                    self.assertLessEqual(attributes["ttft_p99"], 50e9)

    def test_the_highest_rate(self):
        """Steps of one request take 9 ms and 4.05 ms: one instance that takes one request at a time serves 1 / (9 + 9 * 4.05) ms = 22 in a second."""
        study = {
            "parameters": {"count": {"key": "serving.instances.0.count", "values": [1, 2]}},
            "objectives": [{"maximise": "max_rate"}],
        }
        self.explore(
            study,
            "--set=serving.scheduler.max-seqs=1",
            "--set=serving.scheduler.ahead=false",
            "--set=serving.requests.count=2000",
        )
        with open(self.folder / "study.csv") as file:
            rows = {row["count"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))}
        rate = {
            count: float(row[next(k for k in row if k.startswith("max_rate") and "npu" not in k)])
            for count, row in rows.items()
        }
        self.assertAlmostEqual(rate["1"], 22, delta=1.2)
        self.assertAlmostEqual(rate["2"], 44, delta=2.4)

    def test_what_a_study_of_requests_cannot_be(self):
        """Bounds and prices are of steps."""
        parameters = {"count": {"key": "serving.instances.0.count", "values": [1, 2]}}
        self.assertIn(
            "found bounded",
            self.explore(
                {
                    "parameters": parameters,
                    "objectives": [{"minimise": "latency_mean"}],
                    "strategy": {"kind": "bounded"},
                },
                code=3,
            ).err,
        )
        self.assertIn(
            "which is of steps of a workload",
            self.explore({"parameters": parameters, "objectives": [{"minimise": "capex"}]}, code=3).err,
        )
        broken = {"count": {"key": "serving.instances.0.cuont", "values": [1, 2]}}
        self.assertIn(
            "cuont", self.explore({"parameters": broken, "objectives": [{"minimise": "latency_mean"}]}, code=3).err
        )

    def best(self, *options, code=0, ranks=0):
        requests = self.write(
            "requests.yaml", {"arrivals": "poisson", "rate": 5, "count": 60, "prompt": 300, "output": 20}
        )
        outcome = harness.orrery(
            "best",
            "llama3-8b",
            "--on=dgx-h100-superpod",
            "--npus=4",
            f"--serve={requests}",
            "--slo=ttft=500ms,tpot=50ms",
            f"--output={self.folder / 'best.h5'}",
            "--force",
            *options,
            ranks=ranks,
            timeout=300,
        )
        self.assertEqual(outcome.code, code, outcome.err)
        return outcome

    def test_best_finds_a_way_to_serve(self):
        """The table is ranked by the highest rate, says what is left out, is one on two ranks, and the configuration that is written runs and meets
        the SLO."""
        alone = self.best()
        rows = [line.split() for line in alone.out.splitlines() if re.match(r" *\d+ +\d+ ", line)]
        rates = [
            float(re.search(r"(?:both|decode) +\d+ +\d+ +(\S+)", line)[1])
            for line in alone.out.splitlines()
            if re.match(r" *\d+ +\d+ ", line)
        ]
        self.assertTrue(rows)
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertIn("left out", alone.out)
        excess = int(
            re.search(r"the best rate may be up to (\d+) % above", alone.out)[1]
        )  # 500 ms over the time of 60 requests
        self.assertAlmostEqual(excess, 100 * 0.5 * rates[0] / 60, delta=0.6)
        self.assertIn("not tried: pipelines", alone.out)
        self.assertEqual(self.best(ranks=2).out, alone.out)
        results = self.folder / "run.h5"
        outcome = harness.orrery("run", self.folder / "best.yaml", f"--output={results}", "--quiet", "--force")
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(results) as file:
            self.assertGreaterEqual(file["serving"].attrs["slo_attainment"], 0.9)

    def test_best_knows_the_software(self):
        """The configuration that is written names the stack of an engine, with which tokens take longer than the data sheet says."""
        self.best("--stack=h100-vllm")
        text = (self.folder / "best.yaml").read_text()
        stack = 'stack: "h100-vllm"\n'
        self.assertIn(stack, text)
        (self.folder / "plain.yaml").write_text(text.replace(stack, ""))
        tpot = []
        for name in ("best", "plain"):
            results = self.folder / f"{name}-run.h5"
            outcome = harness.orrery("run", self.folder / f"{name}.yaml", f"--output={results}", "--quiet", "--force")
            self.assertEqual(outcome.code, 0, outcome.err)
            with h5py.File(results) as file:
                tpot.append(file["serving"].attrs["tpot_mean"])
        self.assertGreater(tpot[0], 1.2 * tpot[1])
        outcome = self.best("--stack=h100-nothing", code=3)
        self.assertIn("h100-nothing", outcome.err)

    def test_best_refuses_what_does_not_belong_together(self):
        """--serve needs --slo and the other way round, neither goes with options of training, and a bound has a known name."""
        for options, said in (
            (["--serve=x.csv"], "--serve needs the bounds"),
            (["--slo=ttft=1s"], "--slo is of requests"),
            (["--serve=x.csv", "--slo=ttft=1s", "--batch=8"], "are of training"),
        ):
            outcome = harness.orrery(
                "best", "llama3-8b", "--on=dgx-h100-superpod", "--npus=8", f"--output={self.folder / 'no.h5'}", *options
            )
            self.assertEqual(outcome.code, 2, outcome.err)
            self.assertIn(said, outcome.err)
        outcome = harness.orrery(
            "best",
            "llama3-8b",
            "--on=dgx-h100-superpod",
            "--npus=8",
            f"--output={self.folder / 'no.h5'}",
            "--serve=x.csv",
            "--slo=tfft=1s",
        )
        self.assertNotEqual(outcome.code, 0)
        self.assertIn("found 'tfft=1s'", outcome.err)

    def test_the_page_and_the_table_of_runs(self):
        """Two runs at two rates make a page with all sections and a curve of two points, and a table of their figures."""
        base = self.write("base.yaml", {"serving": {**SERVING, "record": {"steps": True}}})
        files = []
        for rate in (50, 200):
            files.append(self.folder / f"rate-{rate}.h5")
            self.assertEqual(
                harness.orrery(
                    "run", base, f"--set=serving.requests.rate={rate}", f"--output={files[-1]}", "--quiet", "--force"
                ).code,
                0,
            )
        page = self.folder / "page.html"
        outcome = harness.orrery("report", *files, f"--output={page}", "--force")
        self.assertEqual(outcome.code, 0, outcome.err)
        text = page.read_text()
        for part in (
            "arrivals in a second",
            "requests in the system",
            "no longer a TTFT",
            "no longer a TPOT",
            "share of blocks in use",
            "in the order of their arrival",
            "SLO 100 ms",
            "target 90 %",
        ):
            self.assertIn(part, text)
        self.assertEqual(text.count("<circle"), 2)
        for rate, file in zip((50, 200), files):
            with h5py.File(file) as results:
                attained = results["serving"].attrs["slo_attainment"]
            self.assertRegex(
                text, rf"rate-{rate}</td><td class=\"number\">{rate}</td><td class=\"number\">{100 * attained:.1f} %"
            )
        shown = harness.orrery("show", "results", files[0])
        self.assertEqual(shown.code, 0, shown.err)
        self.assertRegex(shown.out, r"ttft p99 +\d")
        compared = harness.orrery("compare", *files, "--format=json")
        self.assertEqual(len(json.loads(compared.out)), 2)


if __name__ == "__main__":
    harness.main()
