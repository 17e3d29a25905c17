#!/usr/bin/python3
"""`orrery explore` with faults: what is wrong in all trials ends the study, what is wrong in some is told, and a journal is never taken for that
of another job."""
import csv
import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import studies  # noqa: E402

STUDY = """study:
  base: base.yaml
  parameters:
    tp: {key: workload.parallel.tp, values: [1, 2, 4]}
    pp: {key: workload.parallel.pp, values: [1, 2]}
    zero: {key: workload.parallel.zero, values: [0, 7]}
    bandwidth: {key: system.network.dimensions.1.bandwidth, values: [25 GB/s, 50 GB/s]}
  derived:
    dp: {key: workload.parallel.dp, value: npus / (tp * pp)}
  constraints: [npus % (tp * pp) == 0]
  objectives: [{minimise: step_time}]
"""
PRICES = "cost: {source: a list, date: 2024-08-01, npu: {price: 30000, busy-power: 700}}\n"


class Faults(harness.Folder):
    def study(self, *replacements, prices="", name="study.yaml"):
        (self.folder / "base.yaml").write_text(studies.base() + prices)
        text = STUDY
        for old, new in replacements:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.folder / name
        path.write_text(text)
        return path

    def explore(self, study, *arguments, code=0, ranks=0, output="explore.h5"):
        named = [] if {"--list", "--dry-run"} & set(arguments) else [f"--output={self.folder / output}"]
        done = harness.orrery("explore", study, *named, *arguments, ranks=ranks)
        self.assertEqual(done.code, code, done.out + done.err)
        return done

    def journals(self, output="explore.h5"):
        return sorted(self.folder.glob(f"{output}.journal.*"))

    def test_reasons_of_refused_trials(self):
        """Half of the trials have a faulty value. Their reason stands once, with their number and the first of them. Reasons beyond the fifth
        are counted."""
        printed = self.explore(self.study(), ranks=2).out
        self.assertRegex(
            printed,
            r"12  done\n +12  refused\n\nWhy trials are not done:\n +12  refused: .*'workload\.parallel\.zero': found '7'.*\n +such as trial 2 \(tp = 1, pp = 1, zero = 7, bandwidth = 25 GB/s, dp = 8\)\n\nThe best",
        )
        printed = self.explore(self.study(("[0, 7]", "[0, 7, 8, 9, 10, 11, 12, 13]")), "--force").out
        self.assertEqual(printed.count("such as trial"), 5)
        self.assertRegex(printed, r"\n +24  for 2 more reasons, which the results have\n")
        self.assertNotIn("Why trials", self.explore(self.study(("[0, 7]", "[0, 1]")), "--force").out)

    def test_what_is_wrong_in_every_trial(self):
        """A misspelt key, a unit that does not exist and files that are not there end the study before anything is written, at the line of the
        study, also for a shard and for --dry-run. A fault of some values only does not."""
        zeal = self.study(("parallel.zero", "parallel.zeal"))
        unit = r"study\.yaml:7: .*bandwidth': none of (24|7) configurations can be read: .*unknown unit 'GBp?s'"
        for arguments in ((), ("--shard=1/3",), ("--limit=1",), ("--dry-run",)):
            self.assertRegex(
                self.explore(zeal, *arguments, code=3).err,
                r"study\.yaml:6: .*none of 24 configurations can be read: workload\.parallel\.zeal=0: unknown key\. Did you mean 'zero'",
            )
        for kind in ("grid", "bounded", "sobol, samples: 7"):
            study = self.study(
                ("[25 GB/s, 50 GB/s]", "[25 GBs, 50 GBps]"),
                ("  objectives", f"  strategy: {{kind: {kind}}}\n  objectives"),
            )
            self.assertRegex(self.explore(study, code=3).err, unit)
        study = self.study(
            (
                "    zero: {key: workload.parallel.zero, values: [0, 7]}",
                "    net: {file: cost, values: [a.yaml, b.yaml]}",
            )
        )
        self.assertRegex(self.explore(study, code=3).err, r"study\.yaml:6: .*study\.parameters\.net'.*a\.yaml")
        self.assertRegex(
            self.explore(self.study(("base.yaml", "bass.yaml")), code=3).err,
            r"study\.yaml:2: key 'study\.base': .*bass\.yaml: no such file; expected a CONFIG\.yaml",
        )
        study = self.study(("npus / (tp * pp)", "\"'eight'\""))
        self.assertRegex(self.explore(study, code=3).err, r"study\.yaml:9: .*workload\.parallel\.dp=eight")
        self.assertEqual(list(self.folder.glob("explore.h5*")), [])
        self.explore(self.study(("[25 GB/s, 50 GB/s]", "[25 GBs, 50 GB/s]")))

    def test_keys_of_outputs(self):
        """A key that decides what a run writes has no effect on a trial: it is refused as a parameter and as a derived value."""
        for key in ("run.output", "run.force", "run.checkpoint", "run.progress-interval"):
            study = self.study(("workload.parallel.zero", key))
            self.assertRegex(
                self.explore(study, code=3).err, rf"study\.yaml:6: .*found '{key}', which has no effect on a trial"
            )
            study = self.study(
                ("value: npus / (tp * pp)}", f"value: npus / (tp * pp)}}\n    other: {{key: {key}, value: 2 * tp}}")
            )
            self.assertRegex(
                self.explore(study, code=3).err, rf"study\.yaml:10: .*found '{key}', which has no effect on a trial"
            )

    def test_names_and_prices(self):
        """A misspelt metric has the nearest name. A metric whose price no trial has is refused before a simulation, with the key of the price."""
        refused = self.explore(self.study(("== 0", "== 0, peak_memori < 4 GB")), code=3).err
        self.assertRegex(refused, r"study\.yaml:10: .*names 'peak_memori'.*Did you mean 'peak_memory'\?")
        for metric, key in (
            ("energy_per_step", r"cost\.npu\.idle-power"),
            ("tokens_per_usd", r"cost\.npu\.rent or cost\.operation\.lifetime"),
        ):
            study = self.study(("step_time", metric), prices=PRICES)
            self.assertRegex(
                self.explore(study, code=3).err,
                rf"study\.yaml:11: .*found '{metric}', which follows from prices, and no configuration has {key}",
            )
        self.assertRegex(
            self.explore(self.study(("== 0", "== 0, capex < 1e9")), code=3).err,
            r"study\.yaml:10: .*found 'capex'.*no configuration has `cost`",
        )
        self.assertEqual(list(self.folder.glob("explore.h5*")), [])
        self.explore(self.study(("== 0", "== 0, capex < 1e9"), prices=PRICES))
        varied = ("    zero", "    resting: {key: cost.npu.idle-power, values: [0, 100]}\n    zero")
        self.assertRegex(
            self.explore(self.study(varied, ("step_time", "power"), prices=PRICES), "--force").out, r"\n +12  done\n"
        )

    def test_units_of_both_sides(self):
        """Quantities of two kinds are neither compared nor added, and the message names both. What has no unit goes with all."""
        for wrong, words in (
            ("peak_memory <= 20 us", r"'peak_memory <= 20 us': found byte and s as operands of '<='"),
            ("bandwidth * step_time > 3 us", "found byte and s as operands of '>'"),
            ("tokens_per_s > 3 TFLOPS", r"found 1/s and FLOP/s as"),
            ("mfu < 1 kB", r"found 1 \(a plain number\) and byte as"),
            ("bandwidth + 2 us > 0", "found byte/s and s as operands of '\\+'"),
            ("`system.compute.peak` > 3 GB", "found FLOP/s and byte as"),
            ("min(step_time, peak_memory) > 0", "found s and byte as operands of 'min'"),
        ):
            self.assertRegex(
                self.explore(self.study(("== 0]", f'== 0, "{wrong}"]')), "--dry-run", code=3).err,
                r"study\.yaml:10: .*" + words,
            )
        study = self.study(
            (
                "value: npus / (tp * pp)}",
                "value: npus / (tp * pp)}\n    b: {key: system.network.dimensions.0.bandwidth, value: 2 us + 3 ms, unit: GB/s}",
            )
        )
        self.assertRegex(
            self.explore(study, "--dry-run", code=3).err,
            r"study\.yaml:10: .*'2 us \+ 3 ms' is in s, and its unit is GB/s",
        )
        right = [
            "peak_memory <= 80e9",
            "bandwidth * step_time > 3 kB",
            "tokens_per_s / npus > 1",
            "`system.compute.peak` ** 1 > 3 GFLOPS",
            "2 * mfu < 1",
            "peak_memory + 1 < 1 TB",
            "max(2, step_time) < 3 s",
        ]
        self.explore(
            self.study(("== 0]", f"== 0, {', '.join(f'{chr(34)}{one}{chr(34)}' for one in right)}]")), "--limit=1"
        )

    def test_bubble_without_a_pipeline(self):
        """A trial of one stage has no bubble, so a limit of it keeps the trial. Pipelines of one micro-batch wait for half of the time."""
        self.explore(
            self.study(("== 0", "== 0, bubble <= 0.2"), ("[0, 7]", "[0]")), f"--csv={self.folder / 'trials.csv'}"
        )
        with open(self.folder / "trials.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({(row["pp"], row["status"]) for row in rows}, {("1", "done"), ("2", "excluded")})
        self.assertEqual({row["bubble [1]"] for row in rows if row["pp"] == "1"}, {"0"})
        printed = self.explore(
            self.study(("step_time", '"/metrics/pipeline_bubble"'), ("[0, 7]", "[0]")), "--force"
        ).out
        self.assertRegex(printed, r"\n +12  done\n")

    def test_pairs_of_options(self):
        """--list, --trial and --dry-run exclude each other and --csv. A dry run without a trial to simulate ends as the run does. The error
        stands below the table where both go to one file."""
        for arguments, words in (
            (("--list", "--dry-run"), "both --list and --dry-run are given"),
            (("--list", "--csv=x.csv"), "--csv has no meaning with --list"),
            (("--trial=0", "--list"), "both --list and --trial are given"),
            (("--dry-run", "--csv=x.csv"), "--csv has no meaning with --dry-run"),
        ):
            refused = harness.orrery("explore", self.study(), *arguments)
            self.assertEqual((refused.code, words in refused.err), (2, True), refused.err)
        study = self.study(("== 0", "== 0, peak_memory < 1 kB"))
        self.assertRegex(self.explore(study, "--dry-run", code=3).err, r"study\.yaml: no configuration of 24 is left")
        log = self.folder / "log.txt"
        with open(log, "w") as file:
            harness.subprocess.run(
                [harness.BINARY, "explore", study, f"--output={self.folder / 'explore.h5'}"],
                stdout=file,
                stderr=file,
                check=False,
            )
        self.assertRegex(log.read_text(), r"(?s)24  legal.*The nearest miss.*error: .*no configuration of 24 is left")

    def test_one_setter_for_each_key(self):
        """Two parameters, or a parameter and a derived value, that set one key are refused with both names, and so is a value given twice."""
        twin = "    bandwidth: {key: system"
        for replacement, found in (
            (
                (twin, "    again: {key: workload.parallel.tp, values: [2]}\n" + twin),
                "'again' sets the key workload.parallel.tp, which 'tp' sets too",
            ),
            (
                ("    dp: {key", "    other: {key: workload.parallel.pp, value: 1 + 1}\n    dp: {key"),
                "'other' sets the key workload.parallel.pp, which 'pp' sets too",
            ),
            (("values: [1, 2, 4]", "values: [1, 2, 1]"), "'tp' has the value 1 twice"),
        ):
            self.assertIn(found, self.explore(self.study(replacement), code=3).err)
        whens = twin.replace("bandwidth", "again").replace(
            "system", "workload.parallel.zero, values: [1], when: pp == 2}\n" + twin + "x"
        )
        self.assertIn(
            "'again' sets the key workload.parallel.zero, which 'zero' sets too",
            self.explore(self.study((twin, whens.replace("systemx", "system"))), code=3).err,
        )

    def test_files_of_their_own(self):
        """Results, table, study, base and shards are different files, also with --force. Results of trials of another run are kept."""
        study = self.study(("[0, 7]", "[0, 1]"))
        text, base = study.read_text(), (self.folder / "base.yaml").read_text()
        for arguments, said in (
            (["--csv", self.folder / "explore.h5"], "is the results file too"),
            (["--csv", study, "--force"], "is the study too"),
            (["--csv", self.folder / "base.yaml", "--force"], "is the base of the study too"),
        ):
            self.assertIn(said, self.explore(study, *arguments, code=2).err)
        self.assertEqual((study.read_text(), (self.folder / "base.yaml").read_text()), (text, base))
        kept = self.folder / "explore.trial-3.h5"
        kept.write_text("of before")
        self.assertIn("trial-3.h5", self.explore(study, "--keep-results=top", code=5).err)
        self.assertEqual(kept.read_text(), "of before")
        stale = self.folder / "explore.trial-4711.h5"
        stale.write_text("of before")
        self.explore(self.study(name="faulty.yaml"), "--keep-results=top", "--force", "--strict", code=3)
        self.assertEqual(
            (kept.read_text(), stale.read_text()), ("of before", "of before")
        )  # a job that fails loses nothing
        self.explore(study, "--keep-results=top", "--force")
        self.assertFalse(stale.exists())
        self.assertTrue(
            all(path.read_bytes().startswith(b"\x89HDF") for path in self.folder.glob("explore.trial-*.h5"))
        )

    def test_the_command_that_is_printed(self):
        """The printed command gives the configuration that was simulated, whatever --set and the name of the file are. The counts name what
        --limit leaves out."""
        study = self.study(("[0, 7]", "[0, 1]"), name="my study.yaml")
        done = self.explore(study, "--set=system.network.dimensions.0.bandwidth=400 GB/s", "--limit=5")
        self.assertRegex(done.out, r"24  legal\n +19  left out by --limit\n +5  done")
        words = shlex.split(done.out.split("The CONFIG.yaml of a trial: orrery ")[1].splitlines()[0])
        self.assertIn("400 GB/s", harness.orrery(*words).out)

    def test_nothing_is_legal(self):
        """A study whose constraints cut every combination says by which, and leaves the results of before as they are."""
        output = self.folder / "explore.h5"
        output.write_text("of before")
        for more in (("--force",), ("--dry-run",)):
            outcome = self.explore(self.study(("== 0", "== 0, tp > 100")), *more, code=3)
            self.assertRegex(outcome.out, r"\d+  cut by tp > 100\n +0  legal")
            self.assertIn("study.yaml: no combination of the parameters is legal", outcome.err)
        self.assertEqual(output.read_text(), "of before")

    def test_journals_of_other_jobs(self):
        """A job that asks for other trials than the journal's is refused with the option, whole against part and shard against shard. A changed
        base is named as the user calls it. The journal stays as it is, and the same command goes on."""
        study = self.study(
            ("[0, 7]", "[0, 1]"), ("[25 GB/s, 50 GB/s]", f"[{', '.join(f'{i} GB/s' for i in range(20, 60))}]")
        )
        job = harness.Background(self, harness.launch(["explore", study, f"--output={self.folder / 'explore.h5'}"]))
        job.wait_until(lambda: self.journals() and self.journals()[0].read_bytes().count(b"\n") > 3, "trials were done")
        job.process.kill()
        job.end()
        (journal,) = self.journals()
        kept = journal.read_bytes()
        for arguments, words in (
            (("--limit=5",), "of a job with no --limit, and this job has --limit 5"),
            (("--shard=0/2",), "of a job with no --shard, and this job has --shard 0/2"),
        ):
            self.assertIn(words, self.explore(study, *arguments, code=3).err)
        (self.folder / "base.yaml").write_text(studies.base().replace("300 TFLOPS", "301 TFLOPS"))
        self.assertRegex(
            self.explore(study, code=3).err, r"explore\.h5\.journal\.0: a journal of another study: base\.yaml differs"
        )
        (self.folder / "base.yaml").write_text(studies.base())
        self.assertEqual(self.journals(), [journal])
        self.assertEqual(journal.read_bytes(), kept)
        for damaged in (b"", b"\n" + kept, kept.replace(b"orrery-explore-journal", b"orrery-explode-journal", 1)):
            journal.write_bytes(damaged)
            self.assertRegex(
                self.explore(study, code=5).err,
                r"explore\.h5\.journal\.0:1: the first line.*is damaged or missing.*--output",
            )
            self.assertEqual(journal.read_bytes(), damaged)
        journal.write_bytes(kept)
        self.assertIn("configurations are done already", self.explore(study).err)
        self.assertEqual(self.journals(), [])

    def test_failed_jobs_leave_no_journal(self):
        """A study that ends at its first faulty trial, and shards that cannot be put together, leave nothing that stands in the way of the next
        job. A journal without trials is that of no study."""
        for ranks in (0, 2):
            self.assertIn("(--strict)", self.explore(self.study(), "--strict", code=3, ranks=ranks).err)
            self.assertEqual(self.journals(), [])
        study = self.study()
        self.explore(study, "--shard=0/2", output="part.h5")
        self.explore(study, "--merge", self.folder / "part.h5", self.folder / "part.h5", code=3)
        self.assertEqual(self.journals(), [])
        self.explore(study, "--max-walltime=1 ms", code=75)
        lines = self.journals()[0].read_bytes().splitlines(keepends=True)
        self.journals()[0].write_bytes(lines[0])
        self.explore(self.study(("[0, 7]", "[0, 1]")))
        self.assertEqual(self.journals(), [])


if __name__ == "__main__":
    harness.main()
