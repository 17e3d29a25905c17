#!/usr/bin/python3
"""import orrery: the tables hold what the file holds, with units and joins; large tables are read in parts; errors say what to do.

System: the small runs of examples.py. Expectation: every table agrees with what h5py reads from the same file, and figures that
can be computed by hand from the file are what the tables say.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import examples
import h5py
import harness
import numpy as np
import orrery
import pandas as pd

PACKAGE = harness.SOURCE / "scripts/python"


class Runs(unittest.TestCase):
    """Tests that share the runs, which nobody changes."""

    longMessage = True

    @classmethod
    def setUpClass(cls):
        if not hasattr(Runs, "paths"):  # once for all classes
            Runs.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
            unittest.addModuleCleanup(shutil.rmtree, Runs.folder)
            Runs.paths = examples.all_of(Runs.folder)

    def open(self, name):
        run = orrery.open(self.paths[name], times="ps")
        self.addCleanup(run.close)
        return run

    def file(self, name):
        file = h5py.File(self.paths[name])
        self.addCleanup(file.close)
        return file


class Tables(Runs):
    def test_columns_are_those_of_the_file_with_their_units(self):
        """For every group: each dataset is a column with the same values, and attrs has its units and description."""
        places = {
            "npus": "npus",
            "kernel": "kernel",
            "links": "network/links",
            "switches": "network/switches",
            "memory_stages": "memory",
            "collective_totals": "metrics/collectives",
            "dimensions": "network",
            "collectives": "collectives",
            "repetitions": "repetitions",
            "jobs": "jobs",
        }
        seen = set()
        for name in self.paths:
            run, file = self.open(name), self.file(name)
            for table_name, group in places.items():
                table = getattr(run, table_name)
                if group not in file:
                    self.assertIsNone(table, f"{name} has no {group}")
                    continue
                seen.add(table_name)
                for column, dataset in file[group].items():
                    if not isinstance(dataset, h5py.Dataset) or h5py.h5ds.is_scale(dataset.id):
                        continue
                    values = (dataset.asstr()[:] if h5py.check_string_dtype(dataset.dtype) else dataset[:]).tolist()
                    if "values" in dataset.attrs:
                        values = [dataset.attrs["values"][index] for index in values]
                    np.testing.assert_equal(
                        table[column].tolist(), values, f"{name}: {group}/{column}"
                    )  # NaN is equal to NaN
                    self.assertEqual(table.attrs["units"][column], dataset.attrs["units"], f"{name}: {group}/{column}")
                    self.assertTrue(table.attrs["descriptions"][column], f"{name}: {group}/{column} is described")
        self.assertEqual(seen, set(places))

    def test_attrs_survive_a_selection(self):
        """Rows and columns of a table are selected. The selection still knows the units."""
        npus = self.open("transformer").npus
        self.assertEqual(npus[npus.index < 3][["finish_time", "idle_time"]].attrs["units"]["finish_time"], "ps")

    def test_npus_add_up(self):
        """The five parts of each NPU's time add up to its finish time, and the index is called npu."""
        npus = self.open("transformer").npus
        parts = npus[
            ["compute_time", "cpu_time", "exposed_communication_time", "exposed_memory_time", "idle_time"]
        ].sum(axis=1)
        self.assertTrue((parts == npus["finish_time"]).all())
        self.assertEqual(npus.index.name, "npu")

    def test_repetitions(self):
        """The statistics of repetitions are attributes of their table."""
        run = self.open("repeated")
        statistics = run.repetitions.attrs["statistics"]
        self.assertEqual(list(run.repetitions["seed"]), [1, 2, 3])
        self.assertEqual(statistics["confidence"], 0.95)
        self.assertAlmostEqual(statistics["mean"], run.repetitions["simulated_time"].mean())
        self.assertAlmostEqual(statistics["standard_deviation"], run.repetitions["simulated_time"].std())
        self.assertLess(statistics["confidence_low"], statistics["minimum"])

    def test_metrics(self):
        """Single figures with their units; whole numbers stay whole."""
        run, file = self.open("transformer"), self.file("transformer")
        self.assertEqual(run.metrics["value"]["step_time"], int(file["metrics/step_time"][()]))
        self.assertIsInstance(run.metrics["value"]["step_time"], int)
        self.assertEqual(run.metrics["units"]["step_time"], "ps")
        self.assertEqual(
            run.metrics["value"]["model_flops_utilisation"], float(file["metrics/model_flops_utilisation"][()])
        )
        self.assertEqual(list(run.dimensions["bytes_per_step"]), list(file["metrics/bytes_per_step"][:]))

    def test_dimensions_say_what_the_configuration_says(self):
        """The table of dimensions has the shapes, bandwidths and sizes of the configuration."""
        dimensions = self.open("transformer").dimensions
        self.assertEqual(list(dimensions["shape"]), ["Ring", "Switch"])
        self.assertEqual(list(dimensions["bandwidth"]), ["50 GB/s", "25 GB/s"])
        self.assertEqual(list(dimensions["size"]), [2, 4])

    def test_groups_and_their_members(self):
        """The tables of groups and members list the names, sizes and members that the file has, and the world has a name."""
        run, file = self.open("transformer"), self.file("transformer")
        offsets, members = file["groups/offsets"][:], file["groups/members"][:]
        self.assertEqual(list(run.groups["name"]), [name or "world" for name in file["groups/names"].asstr()[:]])
        for group in run.groups.index:
            expected = list(members[offsets[group] : offsets[group + 1]])
            rows = run.members[run.members["group"] == group]
            self.assertEqual(list(rows["npu"]), expected)
            self.assertEqual(list(rows["position"]), list(range(len(expected))))
            self.assertEqual(run.groups["size"][group], len(expected))
            self.assertEqual(run.groups["npus"][group], ", ".join(map(str, expected)))

    def test_collectives_have_the_names_and_members_of_their_groups(self):
        """Each collective has the name, NPUs and size of its group, and its durations follow from its times. A run without records has none."""
        run = self.open("transformer")
        collectives = run.collectives
        self.assertGreater(len(collectives), 0)
        for _, row in collectives.iterrows():
            self.assertEqual(row["group_name"], run.groups["name"][row["group"]])
            self.assertEqual(row["npus"], run.groups["npus"][row["group"]])
            self.assertEqual(row["members"], run.groups["size"][row["group"]])
        self.assertTrue((collectives["duration"] == collectives["finish"] - collectives["last_arrival"]).all())
        self.assertTrue(
            (collectives["arrival_spread"] == collectives["last_arrival"] - collectives["first_arrival"]).all()
        )
        by_member = collectives.drop(columns="npus").merge(run.members, on="group")
        self.assertEqual(len(by_member), collectives["members"].sum())
        self.assertEqual(len(self.open("without_records").collectives), 0)

    def test_links_have_the_names_of_their_ends(self):
        """Each link has the names of the NPU or switch at its ends, and its utilisation and mean wait follow from the file."""
        run, file = self.open("with_links"), self.file("with_links")
        switches = file["network/switches/name"].asstr()[:]

        def name(end):
            return f"NPU {end}" if end >= 0 else switches[-1 - end]

        for _, row in run.links.iterrows():
            self.assertEqual((row["from_name"], row["to_name"]), (name(row["from"]), name(row["to"])))
        simulated = file.attrs["simulated_time"]
        self.assertTrue(np.allclose(run.links["utilisation"], file["network/links/busy_time"][:] / simulated))
        self.assertTrue(
            np.allclose(
                run.links["mean_wait"], file["network/links/queueing_time"][:] / file["network/links/messages"][:]
            )
        )

    def test_configuration_and_inputs(self):
        """A run on two ranks gives its configuration as a tree and as settings, its input files, and a row for each rank."""
        run = self.open("on_two_ranks")
        self.assertEqual(run.configuration["system"]["network"]["dimensions"][1]["shape"], "Switch")
        self.assertEqual(run.settings["system.network.dimensions.1.bandwidth"], "25 GB/s")
        self.assertIn((self.folder / "two.yaml").read_text(), run.inputs.values())
        self.assertEqual(list(run.kernel["host"]), [socket.gethostname()] * 2)
        self.assertEqual(len(run.kernel), 2)

    def test_any_group_as_it_stands(self):
        """`table` reads a group that has no property of its own, with the columns of the file."""
        table = self.open("with_links").table("network/switches")
        self.assertEqual(list(table.columns), ["dimension", "name"])

    def test_units_can_be_changed(self):
        """Times, sizes and rates are changed to other units. The values and units follow, the old table stays, and unknown or repeated units are refused."""
        npus = self.open("transformer").npus
        changed = orrery.in_units(npus, "ms", "KiB")
        self.assertTrue(np.allclose(changed["finish_time"] * 10**9, npus["finish_time"]))
        self.assertTrue(np.allclose(changed["bytes_sent"] * 1024, npus["bytes_sent"]))
        self.assertEqual((changed.attrs["units"]["finish_time"], changed.attrs["units"]["bytes_sent"]), ("ms", "KiB"))
        self.assertEqual(npus.attrs["units"]["finish_time"], "ps")
        self.assertTrue((changed["nodes_completed"] == npus["nodes_completed"]).all())
        rates = orrery.in_units(self.open("transformer").collectives, "Gb/s")
        self.assertTrue(
            np.allclose(
                rates["bus_bandwidth"] * 1e9 / 8, self.open("transformer").collectives["bus_bandwidth"], equal_nan=True
            )
        )
        for wrong in (("hours",), ("ms", "us")):
            with self.assertRaisesRegex(ValueError, wrong[0]):
                orrery.in_units(npus, *wrong)

    def test_summary(self):
        """print and Jupyter show the step time, the shares and the tables."""
        run = self.open("with_links")
        step = orrery.readable(run.metrics["value"]["step_time"], "ps")
        for text in (str(run), run._repr_html_()):
            for word in (
                "links.h5",
                step,
                "compute",
                "exposed communication",
                "MFU",
                "FatTree of 4",
                "timeline",
                f"{len(run.timeline):,}",
            ):
                self.assertIn(word, text)
        self.assertIn("8 NPUs", repr(run))
        self.assertIn("rows of 8 NPUs", run.timeline._repr_html_())

    def test_a_run_that_was_interrupted(self):
        """A run of 100,000 iterations is stopped after 50 ms. It has no metrics; all that it has can be read, and its summary says so."""
        results = self.folder / "interrupted.h5"
        outcome = harness.orrery(
            "run",
            self.folder / "transformer.yaml",
            "--iterations=100000",
            "--max-walltime=0.05",
            "--timeline",
            "--quiet",
            "--force",
            f"--output={results}",
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        with orrery.open(results, times="ps") as run:
            self.assertEqual(run.status, "interrupted")
            self.assertEqual(len(run.metrics), 0)
            self.assertIsNone(run.collective_totals)
            self.assertIn("interrupted", str(run))
            self.assertEqual(len(run.npus), 8)
            self.assertEqual(len(run.timeline.read()), len(run.timeline))
            self.assertEqual(
                orrery.compare([results, self.paths["transformer"]])["status"].tolist(), ["interrupted", "complete"]
            )

    def test_tables_stay_after_the_file_is_closed(self):
        """A table that was read stays when the file is closed. A table that was not read is refused with a message."""
        with orrery.open(self.paths["transformer"], times="ps") as run:
            npus = run.npus
        self.assertEqual(len(npus), 8)
        self.assertIs(run.npus, npus)
        with self.assertRaisesRegex(orrery.ResultsError, "was closed"):
            run.kernel


class Parts(Runs):
    def test_operations_are_those_of_the_collectives(self):
        """Each collective node of a timeline has the kind that the table of collectives gives to that collective of its group."""
        sequence = examples.transformer(
            self.folder, "sequence", "--set", "workload.parallel.sp=true", "--set", "workload.parallel.zero=1"
        )
        for name in ("sequence", "with_links"):
            run = orrery.open(sequence, times="ps") if name == "sequence" else self.open(name)
            with h5py.File(run.path) as file:
                words, codes = file["timeline/operation"].attrs["values"], file["timeline/operation"][:]
                self.assertEqual({words[code] for code in codes if code >= 0}, set(run.collectives["kind"].astype(str)))
            table = run.timeline.read()
            table = table[table["kind"] == "collective"]
            table = table.assign(ordinal=table.groupby(["npu", "group"]).cumcount())
            both = table.merge(
                run.collectives[["group", "ordinal", "kind"]], on=["group", "ordinal"], suffixes=("_of_node", "")
            )
            self.assertEqual(len(both), len(table))
            self.assertGreater(both["kind"].nunique(), 1 if name == "sequence" else 0)
            self.assertEqual(both["operation"].astype(str).tolist(), both["kind"].astype(str).tolist(), name)

    """The timeline and the local memory are read for some NPUs, a span of time, or piece by piece."""

    def setUp(self):
        self.run_, self.file_ = self.open("transformer"), self.file("transformer")
        self.timeline, self.memory = self.run_.timeline, self.run_.local_memory
        file = self.file_["timeline"]
        kinds, names = file["kind"].attrs["values"], file["names"].asstr()[:]
        groups = [name or "world" for name in self.file_["groups/names"].asstr()[:]]
        operations = file["operation"].attrs["values"]
        self.rows = [
            (
                npu,
                node,
                start,
                finish,
                finish - start,
                kinds[kind],
                names[name],
                group,
                groups[group] if group >= 0 else None,
                size,
                peer,
                tag,
                operations[operation] if operation >= 0 else None,
            )
            for npu, node, start, finish, kind, name, group, size, peer, tag, operation in zip(
                *(
                    file[key][:]
                    for key in (
                        "npu",
                        "node",
                        "start",
                        "finish",
                        "kind",
                        "name",
                        "group",
                        "bytes",
                        "peer",
                        "tag",
                        "operation",
                    )
                )
            )
        ]

    def listed(self, table):
        table = table.astype(object).where(table.notna(), None)
        return list(table.itertuples(index=False, name=None))

    def test_the_whole_timeline(self):
        """The timeline is read whole. It has the rows of the file with durations and names, and `head` gives the first of them."""
        whole = self.timeline.read()
        self.assertEqual(
            list(whole.columns),
            [
                "npu",
                "node",
                "start",
                "finish",
                "duration",
                "kind",
                "name",
                "group",
                "group_name",
                "bytes",
                "peer",
                "tag",
                "operation",
            ],
        )
        self.assertEqual(self.listed(whole), self.rows)
        self.assertEqual(len(self.timeline), len(self.rows))
        self.assertEqual(whole.attrs["units"]["duration"], "ps")
        self.assertEqual(self.listed(self.timeline.head(3)), self.rows[:3])

    def test_some_npus(self):
        """The timeline is read for one NPU, a list, a range or none. It has the rows of these NPUs."""
        for npus in (3, [5], [7, 0, 1], range(2, 6), []):
            wanted = {npus} if isinstance(npus, int) else set(npus)
            self.assertEqual(
                self.listed(self.timeline.read(npus=npus)), [row for row in self.rows if row[0] in wanted], npus
            )

    def test_a_span_of_time(self):
        """Rows that overlap with the span, whether the times are picoseconds or texts."""
        end = self.run_.simulated_time
        for begin, stop in ((0, end + 1), (end // 3, end // 2), (end // 2, end // 2 + 1), (-5, 0)):
            expected = [row for row in self.rows if row[2] < stop and row[3] > begin]
            self.assertEqual(self.listed(self.timeline.read(time=(begin, stop))), expected, (begin, stop))
        self.assertEqual(
            self.listed(self.timeline.read(time=("0.1 ms", "0.2 ms"))),
            [row for row in self.rows if row[2] < 2 * 10**8 and row[3] > 10**8],
        )
        with self.assertRaisesRegex(ValueError, "tomorrow"):
            self.timeline.read(time=("tomorrow", "1 ms"))

    def test_some_columns(self):
        """Two columns are read for one NPU. Only they are there, and an unknown column is refused by name."""
        table = self.timeline.read(npus=1, columns=["kind", "duration"])
        self.assertEqual(self.listed(table), [(row[5], row[4]) for row in self.rows if row[0] == 1])
        with self.assertRaisesRegex(ValueError, "colour"):
            self.timeline.read(columns=["colour"])

    def test_pieces_are_the_whole(self):
        """Whatever the size of the pieces, also with a selection."""
        for rows in (1, 7, 1000, 10**6):
            for table in (self.timeline, self.memory):
                pieces = list(table.chunks(rows=rows))
                self.assertLessEqual(max(map(len, pieces)), rows)
                self.assertTrue(
                    pd.concat(pieces, ignore_index=True).astype(object).equals(table.read().astype(object)), rows
                )
        some = pd.concat(
            self.timeline.chunks(rows=5, npus=[1, 2, 6], time=(0, self.run_.simulated_time // 2)), ignore_index=True
        )
        self.assertTrue(
            some.astype(object).equals(
                self.timeline.read(npus=[1, 2, 6], time=(0, self.run_.simulated_time // 2)).astype(object)
            )
        )

    def test_too_many_rows_are_refused(self):
        """More rows than the limit are refused with a message that says how to lift it. As many as the limit are read."""
        with self.assertRaisesRegex(orrery.ResultsError, "more than 10 rows.*limit=None"):
            self.timeline.read(limit=10)
        self.assertEqual(len(self.timeline.read(npus=0, limit=self.timeline.rows_of(0))), self.timeline.rows_of(0))

    def test_npus_that_are_not_there(self):
        """NPUs that the run does not have are refused with a message that gives the range."""
        for npus in (8, [0, 8], -1):
            with self.assertRaisesRegex(orrery.ResultsError, "NPUs 0 to 7"):
                self.timeline.read(npus=npus)

    def test_local_memory(self):
        """Each usage lasts until the next change of the same NPU; a span of time begins with the usage that holds then."""
        file = self.file_["local_memory"]
        offsets, times, usage = (file[key][:].tolist() for key in ("offsets", "time", "usage"))
        expected = []
        for npu in range(8):
            mine = range(offsets[npu], offsets[npu + 1])
            expected += [(npu, times[row], times[min(row + 1, mine[-1])], usage[row]) for row in mine]
        self.assertEqual(self.listed(self.memory.read()), expected)
        at = int(times[offsets[2] + 3]) + 1
        self.assertEqual(list(self.memory.read(npus=2, time=(at, at + 1))["usage"]), [usage[offsets[2] + 3]])


class Several(Runs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sweep = cls.folder / "sweep"
        cls.sweep.mkdir()
        for bandwidth in (25, 50, 100):
            examples.transformer(
                cls.sweep,
                f"at-{bandwidth}",
                "--set",
                f"system.network.dimensions.1.bandwidth={bandwidth} GB/s",
                "--set",
                "system.collectives.chunks=2",
            )

    def test_one_table_with_what_differs(self):
        """Three runs that differ in one bandwidth: this key is a column, beside the metrics, and no other key."""
        table = orrery.compare(str(self.sweep / "at-*.h5"), times="ps")
        key = "system.network.dimensions.1.bandwidth"
        self.assertEqual(list(table.index), ["at-25", "at-50", "at-100"])
        self.assertEqual(list(table[key]), ["25 GB/s", "50 GB/s", "100 GB/s"])
        self.assertEqual([column for column in table if "." in column], [key])
        self.assertEqual(table.attrs["units"]["step_time"], "ps")
        for name in table.index:
            with orrery.open(self.sweep / f"{name}.h5", times="ps") as run:
                self.assertEqual(table["step_time"][name], run.metrics["value"]["step_time"])
        self.assertGreater(table["step_time"]["at-25"], table["step_time"]["at-100"])

    def test_runs_of_different_kinds(self):
        """A key that one run does not have is None there, and so is a metric."""
        table = orrery.open_many([self.paths["transformer"], self.paths["with_pool"]], times="ps").table
        self.assertEqual(table["system.remote-memory.groups"]["pool"], 4)
        self.assertTrue(pd.isna(table["system.remote-memory.groups"]["transformer"]))
        self.assertTrue(pd.isna(table["pipeline_bubble"]["pool"]))

    def test_tables_of_all_runs(self):
        """A table of three runs is one table with the run in its index. Tables that not all runs have, or that are read in parts, are refused."""
        with orrery.open_many(self.sweep, times="ps") as runs:
            npus = runs.concat("npus")
            self.assertEqual(npus.index.names, ["run", "npu"])
            self.assertEqual(len(npus), 24)
            self.assertEqual(npus.loc["at-25", "finish_time"].tolist(), runs["at-25"].npus["finish_time"].tolist())
            self.assertEqual(npus.attrs["units"]["finish_time"], "ps")
            self.assertIn("at-25", str(runs))
            self.assertIn("at-25", runs._repr_html_())
            with self.assertRaisesRegex(orrery.ResultsError, "links"):
                runs.concat("links")
            with self.assertRaisesRegex(ValueError, "timeline"):
                runs.concat("timeline")
            with self.assertRaisesRegex(KeyError, "at-7"):
                runs["at-7"]

    def test_names(self):
        """Equal names of files are told apart by their folders; a dictionary names runs as one likes."""
        other = self.folder / "other"
        other.mkdir()
        shutil.copy(self.sweep / "at-25.h5", other)
        self.assertEqual(
            list(orrery.open_many([self.sweep / "at-25.h5", other / "at-25.h5"])), ["sweep/at-25", "other/at-25"]
        )
        self.assertEqual(list(orrery.open_many({"slow": self.sweep / "at-25.h5"}).table.index), ["slow"])
        for wrong, word in (
            (self.folder / "no-*.h5", "found no results file"),
            ([self.sweep / "at-25.h5"] * 2, "twice"),
        ):
            with self.assertRaisesRegex(orrery.ResultsError, word):
                orrery.open_many(wrong)


class Errors(Runs):
    def check_refused(self, path, *words):
        with self.assertRaises(orrery.ResultsError) as caught:
            orrery.open(path)
        for word in (str(path), *words):
            self.assertIn(word, str(caught.exception))

    def test_what_is_no_results_file(self):
        """A missing file, a folder, a text, another HDF5 file and a newer format are opened. Each error names the file and what it is."""
        text, other, newer = (self.folder / name for name in ("text.h5", "other.h5", "newer.h5"))
        text.write_text("no results")
        with h5py.File(other, "w") as file:
            file["x"] = 1
        shutil.copy(self.paths["transformer"], newer)
        with h5py.File(newer, "a") as file:
            file.attrs["format_version"] = 2
        self.check_refused(self.folder / "missing.h5", "no such file", "orrery run")
        self.check_refused(self.folder, "folder", "open_many")
        self.check_refused(text, "HDF5 cannot open")
        self.check_refused(other, "Orrery did not write")
        self.check_refused(newer, "version 2", "version 1", "0.2.0")

    def python(self, code, missing):
        """Runs code in a Python in which the package `missing` cannot be imported."""
        blocked = self.folder / f"without-{missing}"
        blocked.mkdir(exist_ok=True)
        (blocked / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name={missing!r})\n")
        return subprocess.run(
            [sys.executable, *code],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": f"{blocked}:{PACKAGE}"},
        )

    def test_a_missing_package_is_named_with_how_to_install_it(self):
        """A package that Orrery needs cannot be imported. The message says how to install it, and plots alone need matplotlib."""
        for package, debian in (("pandas", "python3-pandas"), ("h5py", "python3-h5py"), ("numpy", "python3-numpy")):
            done = self.python(["-c", "import orrery"], package)
            self.assertIn(f"apt-get install {debian}", done.stderr, package)
            self.assertIn(f"pip install {package}", done.stderr, package)
        done = self.python(
            ["-c", f"import orrery; orrery.open({str(self.paths['transformer'])!r}).configuration"], "yaml"
        )
        self.assertIn("apt-get install python3-yaml", done.stderr)
        self.assertIn("pip install PyYAML", done.stderr)
        done = self.python(["-c", "import orrery; print('tables only')\nimport orrery.plots"], "matplotlib")
        self.assertIn("tables only", done.stdout)
        self.assertIn("apt-get install python3-matplotlib", done.stderr)

    @harness.long
    def test_scripts_end_with_a_message_where_a_package_is_missing(self):
        """Each plot script and each study that is asked for a picture; one line and no traceback, and a study before it simulates."""
        scripts = [[f"{name}.py", self.paths["with_links"]] for name in ("plot_results", "plot_links", "plot_kernel")]
        scripts += [
            [f"studies/{name}", "--plot", self.folder / "never.png"]
            for name in ("in_switch", "memory", "pool", "scale", "themis", "wafer")
        ]
        scripts += [
            [
                "slurm/scaling.py",
                "submit",
                "strong",
                self.folder / "study",
                "--ranks",
                "1",
                "--local",
                "--",
                self.folder / "transformer.yaml",
            ]
        ]
        for script, *arguments in scripts:
            done = self.python([str(harness.SOURCE / "scripts" / script), *map(str, arguments)], "matplotlib")
            self.assertNotEqual(done.returncode, 0, script)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith(pathlib.Path(script).name), done.stderr)
            self.assertIn("apt-get install python3-matplotlib", done.stderr)
            self.assertEqual(done.stdout, "", script)
        self.assertFalse((self.folder / "study").exists())


if __name__ == "__main__":
    harness.main()
