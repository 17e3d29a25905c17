#!/usr/bin/python3
"""`orrery explore`: one answer on any number of ranks, trials that are those of `orrery run`, and what is refused."""
import csv
import os
import pathlib
import signal
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402
import studies  # noqa: E402

STUDY = """study:
  base: base.yaml
  parameters:
    tp: {key: workload.parallel.tp, range: {from: 1, to: 8, factor: 2}}
    pp: {key: workload.parallel.pp, values: [1, 2, 3]}
    zero: {key: workload.parallel.zero, values: [0, 1], when: tp * pp < npus, else: 0}
    bandwidth: {key: system.network.dimensions.1.bandwidth, range: {from: 25 GB/s, to: 100 GB/s, steps: 2}}
  derived:
    dp: {key: workload.parallel.dp, value: npus / (tp * pp)}
    micro_batches: {key: workload.parallel.micro-batches, value: 16 / dp}
  constraints: [npus %% (tp * pp) == 0%s]
  objectives: [%s]
  keep: 3
"""


class Explore(harness.Folder):
    def study(self, constraints="", objectives="{minimise: step_time}", memory="", text=STUDY):
        (self.folder / "base.yaml").write_text(studies.base(memory))
        path = self.folder / "study.yaml"
        path.write_text(text % (constraints, objectives))
        return path

    def explore(self, study, *arguments, code=0, ranks=0):
        done = harness.orrery("explore", study, *arguments, ranks=ranks)
        self.assertEqual(done.code, code, done.out + done.err)
        return done

    def rows(self, name="trials.csv"):
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def output(self, name="explore.h5", table="trials.csv"):
        return f"--output={self.folder / name}", f"--csv={self.folder / table}"

    def test_one_answer_and_the_best(self):
        """24 of 48 combinations are legal, and all are done. Outside /kernel the file is the same on 1 to 3 ranks. The best is the trial with
        the least step time, and `orrery run` gives the same time for the configuration that --trial prints."""
        study = self.study()
        printed = self.explore(study, *self.output()).out
        rows = self.rows()
        self.assertRegex(
            printed,
            r"\b48  combinations\n +20  cut by npus % \(tp \* pp\) == 0\n +4  alike: a parameter does not apply\n +24  legal\n +24  done\n",
        )
        self.assertEqual([row["status"] for row in rows], ["done"] * 24)
        for ranks in (1, 2, 3):
            self.explore(study, *self.output(f"{ranks}.h5", f"{ranks}.csv"), ranks=ranks)
            self.assertEqual(self.rows(f"{ranks}.csv"), rows)
            self.assertEqual(harness.difference(self.folder / "explore.h5", self.folder / f"{ranks}.h5"), "")
        with h5py.File(self.folder / "explore.h5") as file:
            best = list(file["top"][:])
            self.assertEqual(list(file["best"][:]), best)
            for name in ("tp", "bandwidth"):  # numbers in SI units, and the texts of the configuration
                numbers, settings = file["parameters"][name], file["settings"][name]
                texts = settings["text"].asstr()[:][settings["row"][:]]
                self.assertEqual(numbers.attrs["units"], "byte/s" if name == "bandwidth" else "1")
                self.assertEqual(
                    list(numbers[:]), [float(text.split()[0]) * (1e9 if name == "bandwidth" else 1) for text in texts]
                )
            self.assertEqual(
                [list(file[f"study/objectives/{name}"].asstr()[:]) for name in ("metric", "direction")],
                [["step_time"], ["minimise"]],
            )
            self.assertEqual(list(file["study/constraints"].asstr()[:]), ["npus % (tp * pp) == 0"])
            self.check_sensitivity(file, rows, best[0])
        times = [float(row["step_time [s]"]) for row in rows]
        self.assertEqual(best, sorted(range(24), key=lambda row: (times[row], row))[:3])
        config = self.folder / "trial.yaml"
        config.write_text(self.explore(study, f"--trial={best[0]}").out)
        results = self.run_once([config, "--fold"])
        self.assertAlmostEqual(max(harness.finish_times(results)) * 1e-12, times[best[0]], delta=1e-12)

    def check_sensitivity(self, file, rows, best):
        """The main effect of a parameter is the variance of the means at each of its values over the variance of the step time. A bar has the
        trials that differ from the best one in one parameter and in what follows from it."""
        times = [float(row["step_time [s]"]) for row in rows]
        names = ("tp", "pp", "zero", "bandwidth")
        effects = dict(
            zip(file["sensitivity/main_effect/parameter"].asstr()[:], file["sensitivity/main_effect/effect"][:])
        )
        self.assertEqual(set(effects), set(names))
        for name, effect in effects.items():
            means = {}
            for row, time in zip(rows, times):
                means.setdefault(row[name], []).append(time)
            mean = statistics.fmean(times)
            between = sum(len(group) * (statistics.fmean(group) - mean) ** 2 for group in means.values())
            self.assertAlmostEqual(effect, between / sum((time - mean) ** 2 for time in times), places=9)
        tornado = {
            key: list(column.asstr()[:] if column.dtype.kind == "O" else column[:])
            for key, column in file["sensitivity/tornado"].items()
        }
        self.assertIn("bandwidth", tornado["parameter"])
        for number, name in enumerate(tornado["parameter"]):
            for end in ("low", "high"):
                value = tornado[f"{end}_value"][number]
                wanted = {other: rows[best][other] for other in names} | {
                    name: str(int(value.split()[0]) * 10**9) if name == "bandwidth" else value
                }
                if int(wanted["tp"]) * int(wanted["pp"]) == 8:
                    wanted["zero"] = "0"
                found = [time for row, time in zip(rows, times) if all(row[other] == wanted[other] for other in names)]
                self.assertEqual(found, [tornado[end][number]], (name, end))

    def test_front_and_limits(self):
        """Two objectives have a front: no row of it is better than another in both. Trials that need too much memory and those that a
        constraint on a metric excludes are counted, --limit takes the first ones, and --list simulates none."""
        study = self.study(
            objectives="{minimise: step_time}, {minimise: peak_memory}",
            memory="size: 2 GB",
            constraints=", step_time < 10 ms",
        )
        printed = self.explore(study, *self.output()).out
        rows = self.rows()
        states = {row["status"] for row in rows}
        self.assertEqual(states, {"done", "excluded", "does-not-fit"})
        for row in rows:
            fits = float(row["peak_memory [byte]"]) <= 2e9
            self.assertEqual(
                row["status"],
                "does-not-fit" if not fits else "done" if float(row["step_time [s]"]) < 0.01 else "excluded",
            )
        self.assertRegex(printed, r"\d+  excluded by step_time < 10 ms\n")
        with h5py.File(self.folder / "explore.h5") as file:
            front = [
                (float(rows[number]["step_time [s]"]), float(rows[number]["peak_memory [byte]"]))
                for number in file["front"][:]
            ]
        self.assertEqual(front, sorted(front))
        with h5py.File(self.folder / "explore.h5") as file:
            numbers = list(file["front"][:])
        self.assertIn(f"\nbest step time: trial {numbers[0]}; best peak memory: trial {numbers[-1]}\n", printed)
        self.assertEqual([memory for _, memory in front], sorted((memory for _, memory in front), reverse=True))
        self.explore(study, *self.output("few.h5", "few.csv"), "--limit=7")
        self.assertEqual(self.rows("few.csv"), rows[:7])
        self.assertIn("24 of 48 combinations are legal", self.explore(study, "--list").out)

    def test_a_job_that_ends_early_goes_on(self):
        """Jobs on one and two ranks are killed again and again, or end at their limit of wall time with exit code 75. They leave journals,
        torn lines included, from which the same command goes on to the same file. Then the journals are gone. A changed study is refused
        and named."""
        study = self.study(text=STUDY.replace("steps: 2", f"steps: {15 if harness.SANITIZED else 100}"))
        self.explore(study, *self.output())
        rows, journals = self.rows(), lambda: sorted(self.folder.glob("again.h5.journal.*"))
        command = ["explore", study, *self.output("again.h5", "again.csv")]

        def lines():
            return sum(journal.read_bytes().count(b"\n") for journal in journals())

        for ranks in (1, 2, 1, 2):
            before = lines()
            job = harness.Background(self, harness.launch(command, ranks))
            job.wait_until(lambda: lines() > before + 5, "some trials were done")  # noqa: B023
            for rank in job.ranks():
                os.kill(rank, signal.SIGKILL)
            self.assertNotEqual(job.end().code, 0)
        self.assertFalse((self.folder / "again.h5").exists())
        with open(journals()[0], "a") as journal:
            journal.write('0000000000000000 {"number":')
        self.assertIn("goes on from there", self.explore(study, *command[2:], "--max-walltime=1 ms", code=75).err)
        study.write_text(study.read_text().replace("keep: 3", "keep: 4"))
        self.assertRegex(
            self.explore(study, *command[2:], code=3).err,
            r"again\.h5\.journal\.0: a journal of another study: study\.yaml differs",
        )
        study.write_text(study.read_text().replace("keep: 4", "keep: 3"))
        self.explore(study, *command[2:], ranks=2)
        self.assertEqual(self.rows("again.csv"), rows)
        self.assertEqual(harness.difference(self.folder / "explore.h5", self.folder / "again.h5"), "")
        self.assertEqual(journals(), [])

    def test_best(self):
        """The program writes a study of a small model on 16 NPUs of a system of 1,024, and explores it. The best trial is that of `explore` with
        the same study. Models without parallelism to choose are refused, and so are NPUs that do not fill a dimension.
        """
        model = self.folder / "model.yaml"
        model.write_text("kind: transformer\nlayers: 4\nhidden: 512\nheads: 8\nvocabulary: 32000\nsequence: 512\n")
        question = ["best", model, "--on=dgx-h100-superpod", "--npus=16", "--batch=32", "--cost=h100-2024-08"]
        found = harness.orrery(*question, *self.output("best.h5", "best.csv"))
        self.assertEqual(found.code, 0, found.err)
        self.assertRegex(
            found.out, r"\n +\d+  done\n(.*\n)*\nThe best(.*\n)+of all of these: .*system price [0-9,.]+ (M )?USD"
        )
        with h5py.File(self.folder / "best.h5") as file:
            top, times = list(file["top"][:]), dict(zip(file["trials/number"][:], file["trials/step_time"][:]))
        self.assertEqual(
            sorted(path.name for path in self.folder.glob("best.trial-*.yaml")),
            sorted(f"best.trial-{number}.yaml" for number in top),
        )
        self.assertEqual(len(top), 10)
        results = self.run_once([self.folder / f"best.trial-{top[9]}.yaml", "--fold"])
        self.assertAlmostEqual(max(harness.finish_times(results)) * 1e-12, times[top[9]], delta=1e-12)
        self.explore(self.folder / "best.study.yaml", *self.output())
        self.assertEqual(harness.difference(self.folder / "explore.h5", self.folder / "best.h5"), "")
        self.assertEqual({row["dp"] for row in self.rows()} & {"1", "2", "4", "8", "16"}, {"1", "2", "4", "8", "16"})
        study = self.folder / "best.study.yaml"
        study.write_text(study.read_text().replace("keep: 10", "keep: 5"))
        (self.folder / "best.h5").unlink()
        refused = harness.orrery(*question, *self.output("best.h5", "more.csv"))
        self.assertEqual(refused.code, 5, refused.err)
        self.assertIn("keep: 5", study.read_text())
        refused = harness.orrery("best", "dlrm-dcnv2", *question[2:], *self.output("other.h5", "other.csv"))
        self.assertEqual(refused.code, 3, refused.err)
        self.assertIn("no transformer", refused.err)
        refused = harness.orrery(
            "best", model, "--on=dgx-h100-superpod", "--npus=12", *self.output("other.h5", "other.csv")
        )
        self.assertEqual(refused.code, 3, refused.err)
        self.assertIn("found 12; expected whole groups of 8 NPUs", refused.err)

    def test_what_is_refused(self):
        """Faults of a study name their line. A faulty trial is counted with its reason, and a study without any configuration that can be used
        ends with exit code 3. Files that exist stay without --force."""
        self.assertRegex(self.explore(self.study(constraints=", ep > 1"), code=3).err, r"study\.yaml:11: .*names 'ep'")
        self.assertRegex(
            self.explore(self.study(objectives="{minimise: step_tme}"), code=3).err,
            r"study\.yaml:12: .*Did you mean 'step_time'",
        )
        self.assertRegex(
            self.explore(self.study(text=STUDY.replace("keep", "kep")), code=3).err,
            r"study\.yaml:13: .*unknown key.*keep",
        )
        self.assertRegex(
            self.explore(self.study(text=STUDY.replace("16 / dp", "15 / dp")), code=3).err,
            "15 / dp' with dp = 8: 15 / 8 leaves a remainder",
        )
        sizes = STUDY.replace(
            "  derived:", "    size: {key: system.network.dimensions.1.size, values: [2, 4]}\n  derived:"
        )
        self.assertIn("changes the number of NPUs", self.explore(self.study(text=sizes), code=3).err)
        self.assertIn("the study has 24 legal configurations", self.explore(self.study(), "--trial=24", code=2).err)
        heads = self.study(text=STUDY.replace("range: {from: 1, to: 8, factor: 2}", "values: [2, 4]"))
        (self.folder / "base.yaml").write_text((self.folder / "base.yaml").read_text().replace("heads: 8", "heads: 1"))
        refused = self.explore(heads, *self.output(), code=3)
        self.assertRegex(refused.out, r"14  refused\n")
        self.assertIn("no configuration of 14 is left", refused.err)
        self.assertTrue(all("workload.parallel.tp" in row["error"] for row in self.rows()))
        before = (self.folder / "explore.h5").read_bytes()
        self.explore(self.study(), *self.output(), code=5)
        self.assertEqual((self.folder / "explore.h5").read_bytes(), before)


if __name__ == "__main__":
    harness.main()
