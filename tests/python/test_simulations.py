#!/usr/bin/python3
"""orrery.run, sweep, best and check run the program: results equal those of the command line, and errors are exceptions.

System: a small transformer on 8 NPUs. Expectation: times that Python returns are those of the file in picoseconds, on one rank and on two;
a sweep has a row for each combination with the step time of a run of its own; what the program says is in the exception.
"""
import gc
import io
import os
import pathlib
import subprocess
import sys
import types
import unittest
import unittest.mock
import warnings

import examples
import h5py
import harness
import orrery
import pandas as pd
import yaml
from orrery import program

os.environ["ORRERY_PROGRAM"] = harness.BINARY
CONFIG = "system:\n" + examples.RING + examples.COMPUTE + examples.TRANSFORMER
TREE = yaml.safe_load(CONFIG)
MICRO_BATCHES, BANDWIDTH, PRECISION = (
    "workload.parallel.micro-batches",
    "system.network.dimensions.0.bandwidth",
    "workload.parallel.sp",
)


class Simulations(harness.Folder):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config.yaml"
        self.config.write_text(CONFIG)
        warnings.simplefilter("error", orrery.ProgramWarning)

    def picoseconds(self, *settings):
        """The step time that the program writes for these settings."""
        results = self.folder / "by-hand.h5"
        outcome = harness.orrery(
            "run", self.config, *(f"--set={one}" for one in settings), "--quiet", "--force", f"--output={results}"
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(results) as file:
            return int(file["metrics/step_time"][()])

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())


class Run(Simulations):
    def test_a_run_is_that_of_the_command_line(self):
        """The step time of a path and of a dictionary, with settings by keyword and by mapping, on one rank and on two."""
        expected = self.picoseconds(f"{MICRO_BATCHES}=4", f"{BANDWIDTH}=10 GB/s")
        self.assertNotEqual(expected, self.picoseconds())
        for config, ranks in ((self.config, 1), (str(self.config), 2), (TREE, 1)):
            run = orrery.run(config, {BANDWIDTH: "10 GB/s"}, ranks=ranks, progress=False, **{MICRO_BATCHES: 4})
            self.assertEqual(run.picoseconds.metrics.value["step_time"], expected)
            self.assertEqual(run.metrics.value["step_time"], expected / 10**12)
            self.assertEqual(len(run.kernel), ranks)
            self.assertEqual(run.settings[MICRO_BATCHES], 4)

    def test_options_are_those_of_the_program(self):
        """timeline=True keeps a timeline, a value follows its option, False leaves it out, and an unknown option is refused by the program."""
        run = orrery.run(self.config, timeline=True, iterations=2, fold=False)
        self.assertEqual(set(run.timeline.head().columns) >= {"start", "duration"}, True)
        self.assertEqual(run.settings["workload.iterations"], 2)
        with self.assertRaisesRegex(
            orrery.InputError, "unknown option '--timelines'. Did you mean '--timeline'"
        ) as caught:
            orrery.run(self.config, timelines=True)
        self.assertEqual(caught.exception.code, 2)
        for wrong in (0, -1, "2", True):
            with self.assertRaisesRegex(ValueError, "expected a whole number of at least 1"):
                orrery.run(self.config, ranks=wrong)

    def test_results_are_kept_where_asked_and_else_go_with_the_object(self):
        """output= names a file that stays and is replaced. Without it nothing is left behind once the Results are gone."""
        kept = self.folder / "new" / "kept.h5"
        for _ in range(2):
            orrery.run(TREE, output=kept).close()
        self.assertTrue(kept.is_file())
        run = orrery.run(self.config)
        path = pathlib.Path(run.path)
        self.assertTrue(path.is_file())
        del run
        gc.collect()
        self.assertFalse(path.parent.exists())

    def test_files_in_a_dictionary_start_in_the_current_folder(self):
        """The model of a dictionary is a file beside the script. No file of the configuration stays."""
        (self.folder / "model.yaml").write_text(yaml.safe_dump(TREE["workload"]["model"]))
        tree = {**TREE, "workload": {**TREE["workload"], "model": "model.yaml"}}
        before, here = self.files(), os.getcwd()
        os.chdir(self.folder)
        try:
            run = orrery.run(tree)
        finally:
            os.chdir(here)
        self.assertEqual(run.picoseconds.metrics.value["step_time"], self.picoseconds())
        self.assertEqual(self.files(), sorted([*before, "by-hand.h5"]))

    def test_warnings_are_pythons(self):
        """A key without effect warns, and the warning points to the caller."""
        with self.assertWarnsRegex(orrery.ProgramWarning, "no effect") as caught:
            orrery.run(self.config, **{"workload.parallel.cp-exchange": "ring"})
        self.assertEqual(pathlib.Path(caught.filename).name, pathlib.Path(__file__).name)

    def test_a_stuck_system(self):
        """Two NPUs that both receive before they send: StuckError with the program's report."""
        import chakra

        warnings.simplefilter("ignore", orrery.ProgramWarning)
        for npu in (0, 1):
            chakra.write(
                self.folder / f"t.{npu}.et",
                [
                    chakra.Node(0, chakra.RECV, comm_src=1 - npu, comm_size=8, comm_tag=npu),
                    chakra.Node(1, chakra.SEND, data_deps=[0], comm_dst=1 - npu, comm_size=8, comm_tag=1 - npu),
                ],
            )
        tree = yaml.safe_load(
            "system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n"
            + examples.COMPUTE
        )
        with self.assertRaisesRegex(orrery.StuckError, "stuck: 2 of 2 NPUs") as caught:
            orrery.run({**tree, "workload": {"traces": str(self.folder / "t.{npu}.et")}})
        self.assertEqual(caught.exception.code, 4)


class Times(Simulations):
    def test_times_are_seconds_timedeltas_or_picoseconds(self):
        """Each column of a time has the unit that was asked for, and the picoseconds are those of the file."""
        path = self.folder / "r.h5"
        orrery.run(self.config, output=path, timeline=True).close()
        with h5py.File(path) as file:
            finish, starts = file["npus/finish_time"][:], file["timeline/start"][:]
        for times, expected in (
            ("s", finish / 1e12),
            ("ms", finish / 1e9),
            ("ps", finish),
            ("timedelta", pd.to_timedelta(finish // 1000, unit="ns")),
        ):
            with orrery.open(path, times=times) as run:
                found = run.npus["finish_time"]
                if times == "timedelta":
                    self.assertLessEqual(
                        abs(pd.Series(expected) - found.reset_index(drop=True)).max(), pd.Timedelta(1, unit="ns")
                    )
                else:
                    self.assertEqual(found.tolist(), expected.tolist())
                self.assertEqual(run.npus.attrs["units"]["finish_time"], times)
                self.assertEqual(run.metrics.units["step_time"], times)
                self.assertEqual(run.timeline.units["start"], times)
                self.assertEqual(run.timeline.read().attrs["units"]["start"], times)
                self.assertEqual(run.picoseconds.timeline.read()["start"].tolist(), starts.tolist())
                self.assertEqual(run.picoseconds.npus["finish_time"].tolist(), finish.tolist())
                self.assertEqual(
                    orrery.compare([path], times=times)["step_time"].iloc[0], run.metrics.value["step_time"]
                )
        with self.assertRaisesRegex(ValueError, "'min'"):
            orrery.open(path, times="min")

    def test_a_span_of_time_in_any_unit(self):
        """The same rows of the timeline by seconds, by text and by Timedelta."""
        run = orrery.run(self.config, timeline=True)
        half = run.simulated_time / 2
        rows = [
            len(run.timeline.read(time=span))
            for span in ((0, half), ("0 ps", f"{half * 1e6} us"), (pd.Timedelta(0), pd.Timedelta(half, unit="s")))
        ]
        self.assertTrue(0 < rows[0] < len(run.timeline))
        self.assertEqual(len(set(rows)), 1, rows)


class Sweep(Simulations):
    def test_each_row_is_a_run(self):
        """Two keys with two values: four rows whose step times are those of runs; quantities are numbers in SI units."""
        table = orrery.sweep(self.config, {MICRO_BATCHES: [2, 4], BANDWIDTH: ["10 GB/s", "50 GB/s"]}, progress=False)
        self.assertEqual(table[MICRO_BATCHES].tolist(), [2, 2, 4, 4])
        self.assertEqual(table[BANDWIDTH].tolist(), [10e9, 50e9] * 2)
        self.assertEqual((table.attrs["units"][BANDWIDTH], table.attrs["units"]["step_time"]), ("byte/s", "s"))
        for _, row in table.iterrows():
            expected = self.picoseconds(
                f"{MICRO_BATCHES}={row[MICRO_BATCHES]}", f"{BANDWIDTH}={row[BANDWIDTH] / 1e9} GB/s"
            )
            self.assertAlmostEqual(row["step_time"], expected / 1e12, 11)
        self.assertFalse(table.isna().all().any())

    def test_a_sweep_is_drawn(self):
        """Two keys: one line for each value of the key with fewer values, through the points of the table. Unknown names are refused."""
        import orrery.plots

        table = orrery.sweep(self.config, {BANDWIDTH: ["10 GB/s", "50 GB/s"], MICRO_BATCHES: [2, 4, 8]})
        axes = orrery.plots.sweep(table, "step_time").subfigs[1].axes[0]
        self.assertEqual([line.get_label() for line in axes.lines], ["bandwidth 10 GB/s", "bandwidth 50 GB/s"])
        self.assertEqual(list(axes.lines[0].get_xdata()), [2, 4, 8])
        self.assertEqual(
            [f"{y:.6g}" for y in axes.lines[1].get_ydata()],
            [f"{1e3 * y:.6g}" for y in table.loc[table[BANDWIDTH] == 50e9, "step_time"]],
        )
        self.assertIn("micro-batches", axes.get_xlabel())
        for wrong in ({"metric": "speed"}, {"over": "tp"}):
            with self.assertRaisesRegex(ValueError, "the table has"):
                orrery.plots.sweep(table, **wrong)

    def test_derived_keys_and_constraints(self):
        """dp follows from tp, a constraint leaves one of three out, and logical values stay logical; a dictionary on two ranks."""
        table = orrery.sweep(
            TREE,
            {"workload.parallel.tp": [1, 2, 4], PRECISION: [False]},
            ranks=2,
            derived={"workload.parallel.dp": "4 / tp"},
            constraints=["tp < 4"],
        )
        self.assertEqual(table["workload.parallel.dp"].tolist(), [4, 2])
        self.assertEqual(table[PRECISION].tolist(), [False, False])

    def test_what_fails_is_a_row(self):
        """One value, and then all, fit no NPUs. Their rows say why, and the rest is simulated."""
        table = orrery.sweep(self.config, {"workload.parallel.tp": [2, 3]})
        self.assertEqual([status == "done" for status in table["status"]], [True, False])
        self.assertIn("3", table["error"].iloc[1])
        self.assertEqual(len(orrery.sweep(self.config, {"workload.parallel.tp": [3, 5]})), 2)

    def test_mistakes(self):
        """No key, a value that is no list, a key that does not exist."""
        for wrong, word in (
            ({}, "no key to vary"),
            ({MICRO_BATCHES: 4}, r"such as \[4\]"),
            ({MICRO_BATCHES: "4"}, "list of values"),
            ({"workload.paralel.tp": [1]}, "paralel"),
        ):
            with self.assertRaisesRegex(ValueError, word):
                orrery.sweep(self.config, wrong)


class Best(Simulations):
    def test_the_best_can_be_run(self):
        """The configuration of the best trial takes as long as the study says. Another trial's is made by the program."""
        warnings.simplefilter("ignore", orrery.ProgramWarning)
        model, system = self.folder / "model.yaml", self.folder / "system.yaml"
        model.write_text(yaml.safe_dump(TREE["workload"]["model"]))
        system.write_text(yaml.safe_dump(TREE["system"]))
        study = orrery.best(model, on=system, npus=8, batch=8, output=self.folder / "best.h5")
        for number in (study.top[0], study.done.index[-1]):
            run = orrery.run(study.configuration_of(number))
            self.assertAlmostEqual(run.metrics.value["step_time"], study.trials.loc[number, "step_time"], 11)
        with self.assertRaisesRegex(orrery.InputError, "no-such-model"):
            orrery.best("no-such-model", on=system, npus=8)


class Check(Simulations):
    def test_every_fault_is_in_the_exception(self):
        """A configuration that is right says so; of two faults both are listed, of a file by its name and of a dictionary as config."""
        self.assertIn("nothing wrong was found", orrery.check(self.config))
        self.config.write_text(CONFIG.replace("layers", "lairs").replace("bandwidth: 50", "bandwith: 50"))
        with self.assertRaises(orrery.InputError) as caught:
            orrery.check(self.config)
        self.assertGreaterEqual(len(caught.exception.faults), 2)
        self.assertIn("config.yaml", caught.exception.faults[0])
        for function in (orrery.check, orrery.run):
            with self.assertRaisesRegex(orrery.InputError, "^config: key 'sistem'") as caught:
                function({**TREE, "sistem": 1})
            self.assertEqual(caught.exception.code, 3)


class Program(Simulations):
    def test_it_is_found(self):
        """An argument, a variable, the place in a wheel, PATH; without any the message says what to do."""
        with unittest.mock.patch.dict(
            os.environ, {"ORRERY_PROGRAM": "", "ORRERY_BINARY": "", "PATH": str(pathlib.Path(harness.BINARY).parent)}
        ), unittest.mock.patch.object(program, "PLACES", ()):
            self.assertEqual(program.find(), harness.BINARY)
            with unittest.mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
                with self.assertRaisesRegex(orrery.ProgramError, "ORRERY_PROGRAM"):
                    program.find()
                with self.assertRaisesRegex(orrery.ProgramError, "no mpirun"):
                    orrery.run(self.config, ranks=2, program=harness.BINARY)
                with self.assertRaisesRegex(orrery.ProgramError, "nothing-here"):
                    orrery.run(self.config, program="nothing-here")
        with unittest.mock.patch.object(program, "PLACES", (pathlib.Path(harness.BINARY),)), unittest.mock.patch.dict(
            os.environ, {"ORRERY_PROGRAM": "", "ORRERY_BINARY": ""}
        ):
            self.assertEqual(program.find(), harness.BINARY)

    def test_an_interrupt_ends_the_program(self):
        """The caller is interrupted while the program runs. The program ends too."""
        started = []
        popen = subprocess.Popen

        def recorded(*arguments, **more):
            started.append(popen(*arguments, **more))
            return started[-1]

        with unittest.mock.patch.object(program.subprocess, "Popen", recorded), unittest.mock.patch.object(
            program.Messages, "take", side_effect=KeyboardInterrupt
        ):
            with self.assertRaises(KeyboardInterrupt):
                orrery.run(self.config, iterations=10**6, progress=True)
        self.assertIsNotNone(started[0].poll())

    def test_progress(self):
        """A notebook gets one output that is updated, a log gets lines, and nothing is shown where nobody asked."""
        shown = []
        handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

        def display(data, raw, display_id):
            shown.append(data["text/plain"])
            return handle

        shell = types.SimpleNamespace(kernel=object())
        modules = {
            "IPython": types.SimpleNamespace(get_ipython=lambda: shell),
            "IPython.display": types.SimpleNamespace(display=display),
        }
        with unittest.mock.patch.dict(sys.modules, modules):
            notebook = program.Shown()
            messages = program.Messages(notebook)
            for line in (
                "orrery: 10.0 % of nodes",
                "orrery: 20.0 % of nodes",
                "orrery: warning: w",
                "orrery: error: several faults",
                "  a",
                "  b",
            ):
                messages.take(line)
            notebook.end()
        self.assertEqual(shown, ["10.0 % of nodes", "20.0 % of nodes", ""])
        self.assertEqual((messages.faults(), messages.warnings), (["a", "b"], [["w"]]))
        ended = types.SimpleNamespace(wait=lambda seconds: len(ticks) > 1)
        ticks = []
        program.tick(
            "orrery explore", types.SimpleNamespace(wanted=True, update=ticks.append), program.Messages(None), ended
        )
        self.assertEqual(ticks, ["orrery explore: 1 s", "orrery explore: 2 s"])
        with unittest.mock.patch.object(sys, "stderr", io.StringIO()) as log:
            for wanted in (True, False, None):
                program.Shown(wanted).update(f"line {wanted}")
            self.assertEqual(log.getvalue(), "line True\n")


if __name__ == "__main__":
    harness.main()
