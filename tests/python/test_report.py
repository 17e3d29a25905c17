#!/usr/bin/python3
"""orrery report, orrery compare and orrery show results say what the results hold, and the page works in a browser.

System: the small runs of examples.py; one of them also with a breakdown, a critical path and a hint by hand. Expectation: the causes of
a step add up to its time, a band that is 61 % busy is drawn as 61 %, wrong input gets a message and its exit code, and the page loads in
headless Chromium without an error, shows the numbers of the file and reacts to clicks. Without Chromium the last part is skipped.
"""
import base64
import csv
import io
import csv
import io
import json
import os
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
import numpy as np
import orrery
from orrery import operators
from orrery.places import Places
from orrery.report import comparison, facts, page, series
from orrery.states import StateReader

CAUSES = ["compute", "tensor", "bubble", "idle"]


def with_causes(path):
    """Copies a results file and replaces what says where the time went by cause."""
    copy = path.with_name("causes.h5")
    shutil.copy(path, copy)
    with h5py.File(copy, "r+") as file:
        whole, npus = int(file.attrs["simulated_time"]), len(file["npus/npu"])
        time = np.tile(np.array([whole // 2, whole // 4, whole // 8, 0]), (npus, 1))
        time[:, 3] = whole - time.sum(axis=1)
        for name, column in file["breakdown"].items():
            if name != "npu":
                column[:] = time[:, CAUSES.index(name)] if name in CAUSES else 0
        del file["critical_path"]
        path_group = file.create_group("critical_path")
        for name, values, kind in (
            ("start", [0, whole // 2], "i8"),
            ("finish", [whole // 2, whole], "i8"),
            ("npu", [0, 5], "u4"),
            ("node", [1, 2], "u8"),
            ("cause", [0, 1], "i1"),
            ("name", [0, 1], "u4"),
        ):
            path_group[name] = np.array(values, dtype=kind)
        path_group["cause"].attrs["values"] = CAUSES
        if "hints" in file["metrics"]:
            del file["metrics/hints"]
        file["metrics"].create_dataset("hints", data=["Try 16 micro-batches & <more>."], dtype=h5py.string_dtype())
    return copy


class Report(unittest.TestCase):
    longMessage = True

    @classmethod
    def setUpClass(cls):
        if not hasattr(Report, "paths"):  # once for all classes
            Report.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
            unittest.addModuleCleanup(shutil.rmtree, Report.folder)
            Report.paths = examples.all_of(Report.folder)
            Report.paths["faster"] = examples.transformer(
                Report.folder, "faster", "--set", "system.network.dimensions.0.bandwidth=100 GB/s"
            )
            Report.paths["blocks"] = examples.with_thread_blocks(Report.folder)
            Report.paths["causes"] = with_causes(Report.paths["transformer"])
        super().setUpClass()


class Facts(Report):
    def test_causes_add_up(self):
        """System: every example run. Expectation: the times of the causes add up to the time of a step, and their shares to 1."""
        for name, path in self.paths.items():
            with orrery.open(path, times="ps") as run:
                found = facts.of(run)
            self.assertAlmostEqual(sum(cause["share"] for cause in found["causes"]), 1, 9, name)
            self.assertAlmostEqual(sum(cause["time"] for cause in found["causes"]) / found["step_time"], 1, 9, name)

    def test_thread_blocks(self):
        """System: collectives by thread blocks of GPUs. Expectation: the times by reason are the sums of the table, longest first, each with
        its meaning; a run without GPUs has none."""
        with orrery.open(self.paths["blocks"], times="ps") as run, orrery.open(
            self.paths["transformer"], times="ps"
        ) as other:
            found, sums = facts.blocks(run), run.gpu_stalls.sum()
            self.assertEqual(facts.blocks(other), [])
        self.assertEqual(
            {one["reason"]: one["time"] for one in found}, {name: int(time) for name, time in sums.items() if time > 0}
        )
        self.assertEqual([one["time"] for one in found], sorted((one["time"] for one in found), reverse=True))
        self.assertAlmostEqual(sum(one["share"] for one in found), 1, 9)
        self.assertTrue(all(one["meaning"] for one in found), found)

    def test_groups_of_causes(self):
        """System: a file with a breakdown, a critical path and a hint. Expectation: the facts are theirs, with their names."""
        with orrery.open(self.paths["causes"], times="ps") as run:
            found = facts.of(run)
            names = run.timeline.read(columns=["name"])["name"].cat.categories
        self.assertEqual([cause["cause"] for cause in found["causes"]], CAUSES)
        self.assertAlmostEqual(found["causes"][1]["share"], 0.25, 6)
        self.assertEqual(found["hints"], ["Try 16 micro-batches & <more>."])
        longest = found["critical_path"]["longest"]
        self.assertEqual(
            [(one["npu"], one["cause"], one["name"]) for one in longest],
            [(0, "compute", names[0]), (5, "tensor", names[1])],
        )

    def test_bins_keep_shares(self):
        """System: a run whose timeline is drawn in bands. Expectation: the mean of the bins is the share of time of /metrics, to a byte."""
        with orrery.open(self.paths["transformer"], times="ps") as run:
            timeline, expected = series.timeline(run, 10), run.metrics["value"]["compute_share"]
        shares = [
            sum(
                np.frombuffer(base64.b64decode(band["states"][state]["data"]), dtype=np.uint8).mean() / 255
                for state in ("forward", "backward", "other compute")
                if state in band["states"]
            )
            for band in timeline["bands"]
        ]
        self.assertAlmostEqual(float(np.mean(shares)), expected, delta=3 / 255)
        self.assertLessEqual(timeline["nodes"]["count"], 10)

    def test_states_are_the_breakdown(self):
        """System: every NPU of runs with timelines. Expectation: its intervals do not overlap, and add up to its row of /breakdown, to a picosecond."""
        parts = {"compute": ("forward", "backward", "other compute", "compute"), "cpu": ("cpu", "CPU alone")}
        for name in ("transformer", "with_links", "faster"):
            with orrery.open(self.paths[name], times="ps") as run:
                reader = StateReader(run.picoseconds)
                for npu in range(run.num_npus):
                    found = reader.intervals(npu)
                    pieces = sorted(
                        (int(begin), int(end)) for starts, ends in found.values() for begin, end in zip(starts, ends)
                    )
                    self.assertTrue(all(before[1] <= after[0] for before, after in zip(pieces, pieces[1:])), name)
                    for cause, time in run.breakdown.loc[npu].drop("idle").items():
                        sums = sum(
                            int((found[state][1] - found[state][0]).sum())
                            for state in parts.get(cause, (cause,))
                            if state in found
                        )
                        self.assertEqual(sums, int(time), f"{name}: NPU {npu}, {cause}")

    def test_places(self):
        """System: 2 tensor x 2 pipeline x 2 data parallel, and another order of placement. Expectation: each NPU has its stage and positions."""
        settings = {
            "workload.parallel.placement": ("tp", "cp", "ep", "dp", "pp"),
            "workload.parallel.tp": 2,
            "workload.parallel.dp": 2,
            "workload.parallel.pp": 2,
        }
        places = Places(settings, 8)
        self.assertEqual(
            [places.label(npu) for npu in (0, 1, 2, 7)],
            ["stage 0 · dp 0 · tp 0", "stage 0 · dp 0 · tp 1", "stage 0 · dp 1 · tp 0", "stage 1 · dp 1 · tp 1"],
        )
        swapped = Places({**settings, "workload.parallel.placement": ("pp", "dp", "tp")}, 8)
        self.assertEqual([swapped.stage(npu) for npu in range(8)], [0, 1] * 4)
        self.assertEqual((Places({}, 8).label(3), Places(settings, 9).label(3)), ("", ""))

    def test_operators(self):
        """System: a timeline. Expectation: counts and times of operators are those of all nodes; exposed time is at most the time, and none of compute."""
        with orrery.open(self.paths["transformer"], times="ps") as run:
            found, table = operators.of(run), run.timeline.read()
        self.assertEqual(found["npus"], 8)
        table = table[table["kind"] != "instant"]
        self.assertAlmostEqual(sum(row["count"] for row in found["rows"]) * 8, len(table))
        self.assertAlmostEqual(sum(row["time"] for row in found["rows"]) * 8, table["duration"].sum(), delta=8)
        mine = table[
            table["name"].astype(str).str.fullmatch(r"forward\.micro_batch_\d+\.layer_\d+\.mlp")
            & (table["kind"] == "compute")
        ]
        [row] = [row for row in found["rows"] if row["operator"] == "forward.layer.mlp" and row["kind"] == "compute"]
        self.assertAlmostEqual(row["time"] * 8, mine["duration"].sum(), delta=8)
        for row in found["rows"]:
            self.assertTrue(
                row["exposed"] is None if row["kind"] == "compute" else 0 <= row["exposed"] <= row["time"] + 1, row
            )

    def test_header(self):
        """System: a small transformer. Expectation: the header says the model, the parallelism, the batch and the division of the memory."""
        with orrery.open(self.paths["transformer"], times="ps") as run:
            found = facts.of(run)
        lines = dict(found["header"])
        self.assertEqual(lines["Model"], "4 layers of 512, sequence 256")
        self.assertTrue(lines["Parallelism"].startswith("tp 2 · dp 2 · pp 2"), lines)
        self.assertEqual(lines["Batch"], "4 samples, 1,024 tokens: 2 micro-batches of 1 in each replica")
        self.assertIn("100 TFLOPS, memory 16 GB at 1 TB/s", lines["GPU"])
        with orrery.open(self.paths["transformer"], times="ps") as run:
            peak = int(run.npus["peak_local_memory"].max())
        amounts = [one["bytes"] for one in found["memory"]]
        self.assertEqual((amounts[0] + amounts[1], sum(amounts)), (peak, 16 * 10**9))

    def test_memory_keeps_peaks(self):
        """System: a usage with a short peak in a wide bin. Expectation: the bin shows the peak, the bins after it what remains."""
        found = series.largest(np.array([0, 5, 6, 40]), np.array([1, 9, 2, 0]), np.array([0.0, 20.0, 40.0, 60.0]))
        np.testing.assert_array_equal(found, [9, 2, 0])

    def test_comparison(self):
        """System: two runs that differ in one bandwidth. Expectation: that key alone differs, and the changes of causes add up to that of the step."""
        runs = []
        for name in ("transformer", "faster"):
            with orrery.open(self.paths[name], times="ps") as run:
                runs.append(facts.of(run))
        found = comparison.of(runs)
        self.assertEqual([one["key"] for one in found["keys"]], ["system.network.dimensions.0.bandwidth"])
        change = sum(one["times"][1] - one["times"][0] for one in found["causes"])
        self.assertAlmostEqual(change / (runs[1]["step_time"] - runs[0]["step_time"]), 1, 6)
        self.assertRegex(found["said"][0], r"^faster takes .* less than transformer: ")

    def test_comparison_with_an_older_file(self):
        """System: a file that knows all causes and one that knows communication as a whole only. Expectation: both have it as a whole."""
        runs = [
            {
                "causes": [
                    {"cause": "compute", "time": 5.0},
                    {"cause": "tensor", "time": 2.0},
                    {"cause": "bubble", "time": 1.0},
                ]
            },
            {"causes": [{"cause": "compute", "time": 4.0}, {"cause": "exposed communication", "time": 6.0}]},
        ]
        self.assertEqual(
            comparison.times_of(runs),
            [{"compute": 5.0, "exposed communication": 3.0}, {"compute": 4.0, "exposed communication": 6.0}],
        )
        self.assertEqual(comparison.times_of(runs[:1]), [{"compute": 5.0, "tensor": 2.0, "bubble": 1.0}])


class Terminal(Report):
    def run_program(self, *arguments, code=0):
        """Runs the program and returns its outcome, whose exit code must be `code`."""
        outcome = harness.orrery(*arguments, cwd=self.folder)
        self.assertEqual(outcome.code, code, outcome.err)
        return outcome

    def test_formats(self):
        """System: one run, printed in each format. Expectation: all say the step time and the causes of the file."""
        with orrery.open(self.paths["causes"], times="ps") as run:
            step = int(run.metrics["value"]["step_time"])
        shown = json.loads(self.run_program("show", "results", self.paths["causes"], "--format", "json").out)
        self.assertEqual(shown["step_time"], step)
        rows = list(
            csv.DictReader(io.StringIO(self.run_program("show", "results", self.paths["causes"], "--format=csv").out))
        )
        self.assertEqual([int(row["value"]) for row in rows if row["name"] == "step_time"], [step])
        self.assertEqual([row["name"] for row in rows if row["what"] == "cause"], CAUSES)
        text = self.run_program("show", "results", self.paths["causes"]).out
        for expected in (orrery.readable(step, "ps"), "25.0 %", "Try 16 micro-batches", "critical path"):
            self.assertIn(expected, text)

    def test_every_run(self):
        """System: every example run. Expectation: it can be shown, and no line is wider than 160 characters."""
        for name, path in self.paths.items():
            text = self.run_program("show", "results", path).out
            self.assertLessEqual(max(map(len, text.splitlines())), 160, f"{name}:\n{text}")

    def test_comparison(self):
        """System: two runs. Expectation: text, JSON and CSV name the key that differs and both values."""
        for form in ("text", "json", "csv"):
            out = self.run_program("compare", self.paths["transformer"], self.paths["faster"], "--format", form).out
            for expected in ("system.network.dimensions.0.bandwidth", "50 GB/s", "100 GB/s"):
                self.assertIn(expected, out, form)

    def test_refusals(self):
        """System: wrong input of each kind. Expectation: one line that says what to do, and the exit code of the guide."""
        good, there = self.paths["transformer"], self.folder / "there.html"
        there.write_text("mine")
        (self.folder / "text.h5").write_text("no results")
        for arguments, code, said in (
            (["report"], 2, "Give the results"),
            (["compare", good], 2, "fewer than two"),
            (["show", "results"], 2, "Give the results"),
            (["show", "results", good, good], 2, "unexpected argument"),
            (["show", "results", good, "--format=xml"], 2, "text, json or csv"),
            (["report", "missing.h5", "--output=a.html"], 3, "no such file"),
            (["compare", good, "text.h5"], 3, "HDF5 cannot open"),
            (["report", good, f"--output={there}"], 5, "--force"),
            (["report", good, "--output=nowhere/a.html"], 5, "no folder"),
        ):
            outcome = self.run_program(*arguments, code=code)
            self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
            self.assertIn(said, outcome.err)
        self.assertEqual(there.read_text(), "mine")

    def test_without_python(self):
        """System: no Python, or one without packages. Expectation: exit code 69 and the Debian package to install."""
        blind = self.folder / "blind"
        blind.write_text(f"#!/bin/sh\nexec {shutil.which('python3', path='/usr/bin')} -S \"$@\"\n")
        blind.chmod(0o755)
        for python, package in (("/nowhere/python3", "python3-h5py"), (str(blind), "python3-numpy")):
            before = os.environ.get("ORRERY_PYTHON")
            os.environ["ORRERY_PYTHON"] = python
            try:
                outcome = self.run_program("show", "results", self.paths["transformer"], code=69)
            finally:
                os.environ.pop("ORRERY_PYTHON") if before is None else os.environ.update(ORRERY_PYTHON=before)
            self.assertIn(package, outcome.err)

    def test_foreign_modules(self):
        """System: a folder with a file json.py that fails. Expectation: the program does not import it."""
        (self.folder / "json.py").write_text("raise SystemExit('the wrong json')\n")
        self.addCleanup((self.folder / "json.py").unlink)
        self.run_program("show", "results", self.paths["transformer"])


class Page(Report):
    def test_self_contained(self):
        """System: the pages of all runs. Expectation: they load nothing from elsewhere, and hold the licence of the library in them."""
        for name, path in self.paths.items():
            text = page.text([path])
            self.assertEqual(
                re.findall(r"(?:src|href)=[\"'](?!#|data:)[^\"']*", text.split('<script id="data"')[0]), [], name
            )
            self.assertIn("Permission is hereby granted", text)

    def test_large_timeline(self):
        """System: a run of which more nodes were recorded than a page may hold. Expectation: it holds those of some NPUs, and bands of all."""
        with orrery.open(self.paths["transformer"], times="ps") as run:
            most = len(run.timeline) // 3
            found = series.timeline(run, most)
        self.assertLessEqual(found["nodes"]["count"], most)
        self.assertLess(len(found["nodes"]["npus"]), run.num_npus)
        self.assertEqual(found["read"], run.num_npus)


@browser.needs_browser
class Browser(Report, browser.Browser):
    def load(self, *names, width=1280):
        """Loads the page of some runs and checks that the console has no error."""
        output = self.folder / f"{'-'.join(names)}.html"
        if not output.exists():
            outcome = harness.orrery("report", *(self.paths[name] for name in names), "--output", output)
            self.assertEqual(outcome.code, 0, outcome.err)
        self.open_page(output, width)

    def test_every_run(self):
        """System: the page of every example run, wide and narrow. Expectation: no error, no sideways scrolling, and the step time in the title."""
        for width in (1280, 390):
            for name, path in self.paths.items():
                self.load(name, width=width)
                with orrery.open(path, times="ps") as run:
                    expected = orrery.readable(run.simulated_time, "ps")
                self.assertIn(expected, self.do("return document.getElementById('title').textContent"), name)
                self.assertLessEqual(self.do("return document.documentElement.scrollWidth"), width, name)

    def test_numbers(self):
        """System: a run with causes. Expectation: the table shows each cause with its share, and the hint as text, not as HTML."""
        self.load("causes")
        rows = self.do(
            "return [...document.querySelectorAll('#causes tr')].map((row) => [row.dataset.cause, row.children[2].textContent])"
        )
        self.assertEqual([cause for cause, _ in rows], CAUSES)
        self.assertEqual(dict(rows)["tensor"], "25.0 %")
        self.assertEqual(
            self.do("return document.querySelector('.hints').textContent"), "Try 16 micro-batches & <more>."
        )

    def test_thread_blocks(self):
        """System: collectives by thread blocks of GPUs. Expectation: a section names each reason and its share; other runs do not have it."""
        self.load("blocks")
        with orrery.open(self.paths["blocks"], times="ps") as run:
            found = facts.blocks(run)
        self.assertEqual(
            self.do("return [...document.querySelectorAll('#blocks .name b')].map((one) => one.textContent)"),
            [one["reason"] for one in found],
        )
        self.assertEqual(
            self.do("return document.querySelector('#blocks .number').textContent"), f"{100 * found[0]['share']:.1f} %"
        )
        self.load("transformer")
        self.assertIsNone(self.do("return document.querySelector('#blocks')"))

    def test_sorting_and_filtering(self):
        """System: the tables of collectives and of keys. Expectation: clicks on a column sort it both ways, and a filter leaves matching rows."""
        self.load("transformer")
        click = "[...document.querySelectorAll('[data-table=collectives] th button')].find((one) => one.textContent === 'size (B)').click()"
        for reverse in (True, False):
            self.do(click)
            sizes = [int(text.replace(",", "")) for text in self.column("collectives", 2)]
            self.assertEqual(sizes, sorted(sizes, reverse=reverse))
        self.assertGreater(len(set(sizes)), 1)
        self.do(
            "const field = document.querySelector('[data-table=configuration] input'); field.value = 'bandwidth';"
            "field.dispatchEvent(new Event('input'));"
        )
        keys = list(zip(self.column("configuration", 0), self.column("configuration", 1)))
        self.assertTrue(keys and all("bandwidth" in key.lower() + value.lower() for key, value in keys), keys)
        self.no_errors()

    def picture(self):
        """The pixels of the timeline, as one text."""
        return self.do("return document.querySelector('#timeline canvas').toDataURL()")

    def test_timeline(self):
        """System: a timeline. Expectation: zooming, hiding a kind and searching change the picture and what stands beside it."""
        self.load("transformer")
        status = "return document.getElementById('timeline-status').textContent"
        whole, first = self.do(status), self.picture()
        self.do("document.querySelector('button[title=\"Zoom in\"]').click()")
        self.assertNotEqual(self.do(status), whole)
        self.assertNotEqual(self.picture(), first)
        self.do("document.querySelector('button[title=\"Show the whole time\"]').click()")
        self.assertEqual((self.do(status), self.picture()), (whole, first))
        self.do("document.querySelector('input[data-kind=compute]').click()")
        self.assertNotEqual(self.picture(), first)
        self.do(
            "document.querySelector('input[data-kind=compute]').click(); const field = document.getElementById('find-nodes');"
            "field.value = 'forward'; field.dispatchEvent(new Event('input'));"
        )
        with orrery.open(self.paths["transformer"], times="ps") as run:
            table = run.timeline.read(npus=[0, 2, 5, 7])  # those that are shown at first: evenly spread
        matching = int(
            (table["name"].astype(str).str.contains("forward", regex=False) & (table["kind"] != "instant")).sum()
        )
        self.assertGreater(matching, 0)
        self.assertIn(f"{matching} nodes match", self.do(status))
        self.no_errors()

    def test_drawn_share(self):
        """System: one lane that is busy for 61 % of each pixel. Expectation: 61 % of its height is drawn, to a pixel."""
        self.load("transformer")
        part = self.do(
            """
            const view = Object.create(TimelineView.prototype), count = 61000;
            Object.assign(view, {begin: 0, end: 1e6, plotLeft: 0, plotWidth: 100});
            const heights = [], context = {fillRect: (x, y, wide, high) => heights.push(high)};
            const start = Float64Array.from({length: count}, (_, i) => i * 1e6 / count), finish = start.map((at) => at + 0.61e6 / count);
            view.drawSlices(context, [...start.keys()], start, finish, 0, () => "red", () => true, null);
            return heights.reduce((sum, high) => sum + high, 0) / 100 / (LANE - 3)"""
        )
        self.assertAlmostEqual(part, 0.61, delta=0.01)

    def test_links(self):
        """System: a run on the congestion-aware network. Expectation: another quantity draws other maps, and the counts are those of the file."""
        self.load("with_links")
        with orrery.open(self.paths["with_links"], times="ps") as run:
            counts = [int(count) for count in run.links["dimension"].value_counts().sort_index()]
        titles = self.do("return [...document.querySelectorAll('#links h3')].map((one) => one.textContent)")
        self.assertEqual([int(re.search(r": ([\d,]+) links", title)[1].replace(",", "")) for title in titles], counts)
        before = self.do("return document.getElementById('links').textContent")
        self.do(
            "const choice = document.getElementById('quantity'); choice.value = 'bytes'; choice.dispatchEvent(new Event('change'));"
        )
        self.assertNotEqual(self.do("return document.getElementById('links').textContent"), before)
        self.no_errors()

    def test_several_runs(self):
        """System: the page of two runs. Expectation: it shows the key that differs, and a click on the other run shows that run's numbers."""
        self.load("transformer", "faster")
        self.assertEqual(
            self.do("return document.querySelector('#compared-keys td').textContent"),
            "system.network.dimensions.0.bandwidth",
        )
        before = self.do("return document.getElementById('causes').textContent")
        self.do("document.querySelectorAll('#runs button')[1].click()")
        self.assertNotEqual(self.do("return document.getElementById('causes').textContent"), before)
        self.assertTrue(self.do("return document.getElementById('subtitle').textContent").startswith("faster"))
        self.no_errors()

    def test_details_search_and_path(self):
        """System: a timeline and its critical path. Expectation: next and previous go through all matches of the run and show the details of each,
        and a click on a node of the critical path shows the same node of the timeline."""
        self.load("transformer")
        with orrery.open(self.paths["transformer"], times="ps") as run:
            table = run.timeline.read()
        matching = int(
            (table["name"].astype(str).str.contains("layer_0.mlp", regex=False) & (table["kind"] != "instant")).sum()
        )
        self.do(
            "const field = document.getElementById('find-nodes'); field.value = 'layer_0.mlp'; field.dispatchEvent(new Event('input'));"
        )
        self.assertIn(
            f"{matching:,} in the whole run", self.do("return document.getElementById('found-nodes').textContent")
        )
        seen, press = (
            [],
            "document.querySelector('button[title=\"{} match\"]').click(); return document.querySelector('#node-details dl').textContent",
        )
        for way in ("Next", "Next", "Previous"):
            seen.append(self.do(press.format(way)))
        self.assertEqual(seen[0], seen[2])
        self.assertNotEqual(seen[0], seen[1])
        self.assertIn("layer_0.mlp", seen[1])
        self.do("document.querySelector('#node-details [title=Close]').click()")
        self.assertEqual(self.do("return document.getElementById('node-details').textContent"), "")
        name = self.do(
            "const link = document.querySelector('[data-table=path] button.link'); link.click(); return link.textContent"
        )
        self.assertIn(name, self.do("return document.querySelector('#node-details dl').textContent"))
        collective = self.do(
            "const view = DATA.runs[0].view, kinds = numbers(view.nodes.kind.codes);"
            "return Object.fromEntries(view.factsOfNode([...kinds.keys()].find((i) => view.nodes.kind.words[kinds[i]] === 'collective' && numbers(view.nodes.bytes)[i] > 0)))"
        )
        self.assertLessEqual({"bytes", "group", "operation", "bus bandwidth", "NPU"}, set(collective))
        self.assertIn("stage", collective["NPU"])
        self.no_errors()

    def test_state_in_the_address(self):
        """System: a page that was zoomed, searched and darkened. Expectation: its address opens the same view again."""
        self.load("transformer")
        self.do(
            "document.querySelector('button[title=\"Zoom in\"]').click(); const field = document.getElementById('find-nodes'); field.value = 'mlp';"
            "field.dispatchEvent(new Event('input')); document.querySelector('#causes tr').click(); document.querySelector('button[title=\"Next match\"]').click();"
            "document.getElementById('theme').click();"
        )
        shown = (
            "return [location.hash, document.getElementById('timeline-status').textContent, document.querySelector('#causes tr').className,"
            "document.querySelector('#node-details dl').textContent, document.documentElement.className]"
        )
        before = self.do(shown)
        self.browser.get("about:blank")
        self.browser.get((self.folder / "transformer.html").as_uri() + before[0])
        self.assertEqual(self.do(shown), before)
        self.assertIn("chosen", before[2])
        self.no_errors()

    def test_files_of_charts(self):
        """System: pages with every kind of chart. Expectation: each SVG is XML with shapes, each CSV has a header and rows of its length."""
        for names in (("transformer",), ("with_links",), ("transformer", "faster")):
            self.load(*names)
            self.do(
                "window.saved = []; saveFile = (name, text, kind) => saved.push([name, text, kind]);"
                "for (const button of document.querySelectorAll('button.save')) button.click();"
            )
            saved = self.do("return saved")
            self.assertGreater(len(saved), 8, names)
            for name, text, kind in saved:
                if name.endswith(".svg"):
                    root = xml.etree.ElementTree.fromstring(text)
                    self.assertGreater(
                        len(list(root.iter("{http://www.w3.org/2000/svg}rect")))
                        + len(list(root.iter("{http://www.w3.org/2000/svg}path"))),
                        1,
                        name,
                    )
                else:
                    rows = list(csv.reader(io.StringIO(text)))
                    self.assertEqual({len(row) for row in rows}, {len(rows[0])}, name)
                    self.assertGreater(len(rows), 1 if name != "links-map.csv" else 0, name)
            self.no_errors()

    def test_contrast(self):
        """System: pages in a light and a dark look. Expectation: the contrast of each text with what is behind it is at least 4.5 (WCAG 2)."""
        self.load("transformer")
        self.do(
            "document.querySelector('main').append(element('p', {style: 'color: #888; background: #fff'}, 'hardly to be read'))"
        )
        self.assertEqual([text for _, _, text, _ in self.poor_contrasts()], ["hardly to be read"])
        for name in ("transformer", "with_links", "causes"):
            self.load(name)
            for _ in range(2):
                self.assertEqual(self.poor_contrasts(), [], name)
                self.do("document.getElementById('theme').click()")
        self.assertTrue(
            self.do(
                "return Object.values(COLOURS).every((hex) => { const [a, b] = [luminance(hex), luminance(ink(hex))].sort((x, y) => y - x);"
                "return (a + 0.05) / (b + 0.05) >= 4.5; })"
            )
        )

    def test_contents_stay_in_view(self):
        """System: a page that is scrolled to its end, wide and narrow. Expectation: the table of contents is in the window and marks the last section."""
        for width in (1280, 390):
            self.load("transformer", width=width)
            self.do("window.scrollTo(0, document.documentElement.scrollHeight)")
            top = self.do("return document.getElementById('sections').getBoundingClientRect().top")
            self.assertTrue(0 <= top < 5, top)
            self.assertNotEqual(
                self.do("return document.querySelector('#sections [aria-current=true]').textContent"),
                "What was simulated",
            )

    def test_shares_differ_by_points(self):
        """System: the page of two runs. Expectation: shares differ by points, times and rates by per cent; both timelines have one axis."""
        self.load("transformer", "faster")
        rows = dict(
            self.do(
                "return [...document.querySelectorAll('#compared-figures tbody tr')].map((row) => [row.children[0].textContent, row.children[2].textContent])"
            )
        )
        self.assertRegex(rows["MFU"], r"[+−][\d.]+ points$|%$")
        self.assertIn("points", rows["MFU"] + rows["pipeline bubble"])
        self.assertRegex(rows["step time"], r"[+−][\d.]+ %$")
        self.assertGreater(self.do("return document.querySelector('#timelines canvas').clientHeight"), 100)

    def test_theme(self):
        """System: the button for light and dark. Expectation: a click changes the colour of the page, and another one changes it back."""
        self.load("transformer")
        colour = "return getComputedStyle(document.body).backgroundColor"
        seen = [self.do(colour)]
        for _ in range(2):
            self.do("document.getElementById('theme').click()")
            seen.append(self.do(colour))
        self.assertEqual(seen[0], seen[2])
        self.assertNotEqual(seen[0], seen[1])
        self.no_errors()


if __name__ == "__main__":
    harness.main()
