#!/usr/bin/python3
"""`orrery best`: what it prints, what its errors name, and what a call that fails leaves."""
import csv
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

MODEL = "kind: transformer\nlayers: 4\nhidden: 512\nheads: 8\nvocabulary: 32000\nsequence: 512\n"
ON = ["--on=dgx-h100-superpod", "--npus=16"]
MOST_CHARACTERS = 105  # of a line of the table
RESERVED = 2 * 10**9  # bytes of the memory that drivers and libraries of the system's NPUs take
ROOM = "83.52 GB"  # what they leave of 81,559 MiB


class Best(harness.Folder):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.yaml"
        self.model.write_text(MODEL)

    def best(self, *arguments, code=0, ranks=0):
        outcome = harness.orrery("best", *arguments, cwd=self.folder, ranks=ranks)
        self.assertEqual(outcome.code, code, outcome.out + outcome.err)
        return outcome

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_faults_name_the_argument_and_leave_nothing(self):
        """Calls with a fault in each argument. Expectation: one message names the argument, with the nearest preset where one is near; the
        folder is as before, so that the call without the fault works."""
        before = self.names()
        for arguments, code, said in (
            (["llama3-8x", *ON], 3, r"orrery best: MODEL: found 'llama3-8x'.*Did you mean the preset 'llama3-8b'"),
            (
                [self.model, "--on=dgx-h100-superpot", "--npus=16"],
                3,
                r"orrery best: --on: found 'dgx-h100-superpot'.*Did you mean the preset 'dgx-h100-superpod'",
            ),
            (
                [self.model, *ON, "--stack=h100-nimo"],
                3,
                r"orrery best: --stack: found 'h100-nimo'.*Did you mean the preset 'h100-nemo'",
            ),
            (
                [self.model, *ON, "--cost=h100-2024-07"],
                3,
                r"orrery best: --cost: found 'h100-2024-07'.*Did you mean the preset 'h100-2024-08'",
            ),
            ([self.model, *ON, "--set=a.b=3"], 3, r"--set a\.b=3: key 'a': unknown key"),
            (
                [self.model, "--on=dgx-h100-superpod", "--npus=12"],
                3,
                r"orrery best: --npus: found 12; expected whole groups of 8 NPUs",
            ),
            (
                [self.model, *ON, "--batch=1"],
                3,
                r"orrery best: no parallelism of 16 NPUs divides --batch 1; expected a batch .* such as 16",
            ),
            (["dlrm-dcnv2", *ON], 3, r"orrery best: MODEL: 'dlrm-dcnv2' is no transformer"),
            ([self.model, *ON, "--csv=model.yaml"], 5, r"model\.yaml: exists already"),
        ):
            outcome = self.best(*arguments, "--output=best.h5", code=code)
            self.assertRegex(outcome.err, said)
            self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
            self.assertEqual(self.names(), before, arguments)
        self.best(self.model, *ON, "--batch=32", "--stack=h100-nemo", "--cost=h100-2024-08", "--output=best.h5")
        self.assertLess({"best.base.yaml", "best.study.yaml", "best.h5"}, set(self.names()))

    def test_two_ranks(self):
        """A call with a fault and one without, on two ranks. Expectation: the first leaves nothing, the second finds what one rank finds."""
        before = self.names()
        failed = self.best("llama3-8x", *ON, "--output=best.h5", code=3, ranks=2)
        self.assertEqual(len(harness.errors(failed)), 1, failed.err)
        self.assertEqual(self.names(), before)
        table = self.best(self.model, *ON, "--batch=32", "--output=best.h5", ranks=2).out
        self.assertEqual(table, self.best(self.model, *ON, "--batch=32", "--output=best.h5", "--force").out)

    def test_a_failed_call_with_force_changes_nothing(self):
        """A call with --force that fails after another one that did not. Expectation: all files are those of the first call."""
        self.best(self.model, *ON, "--batch=32", "--output=best.h5")
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        self.best("llama3-8x", *ON, "--output=best.h5", "--force", code=3)
        self.best(self.model, *ON, "--set=workload.model.heads=7", "--output=best.h5", "--force", code=3)
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_a_step_of_inference(self):
        """Plans for decoding and prefill: the first one of the table is the fastest, its CONFIG.yaml repeats it and says only what differs from
        its base. A phase of training is refused, and so is a phase beside --serve."""
        for phase in ("decode", "prefill"):
            printed = self.best(
                self.model, *ON, "--batch=32", f"--phase={phase}", "--output=best.h5", "--csv=best.csv", "--force"
            ).out
            self.assertIn("--serve ranks plans", " ".join(printed.split()))
            with open(self.folder / "best.csv", newline="") as file:
                rows = [row for row in csv.DictReader(file) if row["status"] == "done"]
            least = min(float(row["step_time [s]"]) for row in rows)
            table = printed[printed.index("The best") :].splitlines()
            number = table[2].split()[0]
            config = self.folder / f"best.trial-{number}.yaml"
            self.assertLess(len(config.read_text().splitlines()), 12)
            self.assertTrue(config.read_text().startswith('base: "best.base.yaml"\n'))
            times = harness.finish_times(self.run_once([config, "--fold"], "again.h5"))
            self.assertAlmostEqual(max(times) * 1e-12, least, delta=1e-9)
        for more in (["--phase=training"], ["--phase=decode", "--serve=x", "--slo=ttft=1s"]):
            self.assertIn("--phase", self.best(self.model, *ON, *more, code=2).err)

    def test_table(self):
        """The table of the best, first with the memory of an H100 and then with one that the best trial nearly fills. Expectation: lines fit into a
        terminal, numbers have units, the use of memory stands beside its size, and a mark says where it is tight."""
        printed = self.best(
            self.model, *ON, "--batch=32", "--cost=h100-2024-08", "--output=best.h5", "--csv=best.csv"
        ).out
        table = printed[printed.index("The best") :].splitlines()
        self.assertLessEqual(max(map(len, table)), MOST_CHARACTERS)
        with open(self.folder / "best.csv", newline="") as file:
            rows = {row["number"]: row for row in csv.DictReader(file)}
        lines = [line for line in table if re.match(r" *\d+ ", line)]
        self.assertEqual(len(lines), 10)
        for line in lines:
            row, memory = rows[line.split()[0]], re.search(rf"([0-9.]+)( MB)? of {ROOM}", line)
            scale = 1e6 if memory[2] else 1e9
            self.assertAlmostEqual(float(memory[1]) * scale, float(row["peak_memory [byte]"]), delta=0.0051 * scale)
            time = re.search(r" ([0-9.]+) (µs|ms|s) ", line)
            self.assertAlmostEqual(
                float(time[1]) * {"µs": 1e-6, "ms": 1e-3, "s": 1}[time[2]] / float(row["step_time [s]"]), 1, delta=1e-3
            )
            self.assertRegex(line, rf"{ROOM}(?: +[0-9.]+ %)?$")
        self.assertRegex(printed, r"\nof all of these: .*system price [0-9,.]+ (M )?USD\n")
        self.assertNotIn("!", printed)
        self.assertRegex(printed, r"\nNot tried: .*tensor parallelism over servers")
        self.assertLessEqual({"chunks", "schedule", "modules", "cp"}, set(next(iter(rows.values()))))
        size = int(float(rows[lines[0].split()[0]]["peak_memory [byte]"]) * 1.05) + RESERVED
        printed = self.best(
            self.model, *ON, "--batch=32", f"--set=system.compute.local-memory.size={size} B", "--output=tight.h5"
        ).out
        self.assertRegex(printed, rf"\n +{lines[0].split()[0]} .*!\s")
        self.assertIn("! takes more than 90 % of the memory.", printed)


if __name__ == "__main__":
    harness.main()
