#!/usr/bin/python3
"""`orrery show scaling` predicts a run on more ranks from the load that one run has recorded.

What can be counted is compared with runs on 2, 3 and 8 ranks: events of the busiest rank and events from rank to rank exactly. A rank
may also tell a host of a communicator that its first member has joined, which depends on the timing of messages; so the posts of a run
are at least those of the prediction, and at most twice as many. Times depend on the machine, so only what must hold of them is tested.
"""
import csv
import io
import itertools
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import random_workload  # noqa: E402

RANKS = (2, 3) if harness.FEWER_CASES else (2, 3, 8)


def kernel(path):
    """Returns the columns of /kernel that have one number for each rank."""
    import h5py

    with h5py.File(path) as results:
        return {
            name: column[:]
            for name, column in results["kernel"].items()
            if isinstance(column, h5py.Dataset) and column.dtype.kind in "iuf"
        }


class Scaling(harness.Folder):
    def show(self, *arguments):
        return harness.orrery("show", "scaling", *arguments)

    def rows(self, path, *arguments):
        """Returns the rows of --json by their numbers of ranks."""
        outcome = self.show(path, "--json", *arguments)
        self.assertEqual(outcome.code, 0, outcome.err)
        return {row["ranks"]: row for row in json.loads(outcome.out)["rows"]}

    def check_counts(self, arguments, least_sent, all_ranks=RANKS):
        import h5py

        recorded = self.run_once([*arguments, "--record-load"], "recorded.h5")
        predicted = self.rows(recorded, "--ranks=" + ",".join(map(str, all_ranks)))
        for ranks in all_ranks:
            with self.subTest(ranks=ranks):
                # In contiguous blocks, as the prediction has them; by itself `block` keeps short links within ranks.
                with h5py.File(recorded) as results:
                    num_npus = len(results["npus/finish_time"])
                blocks = self.folder / "blocks"
                blocks.write_text("".join(f"{npu * ranks // num_npus}\n" for npu in range(num_npus)))
                run = self.run_once([*arguments, f"--partition={blocks}"], f"on{ranks}.h5", ranks=ranks)
                measured = kernel(run)
                row = predicted[ranks]
                self.assertEqual(row["most_events"], measured["events"].max())
                self.assertAlmostEqual(row["mean_events"] * ranks, int(measured["events"].sum()), places=3)
                self.assertEqual(row["events_sent"], measured["events_sent"].sum())
                posts = int(measured["posts_sent"].sum())
                self.assertLessEqual(row["posts_sent"], posts)
                self.assertLessEqual(posts, 2 * row["posts_sent"])
                self.assertGreaterEqual(row["events_sent"] + row["posts_sent"], least_sent)
                self.assertLessEqual(row["messages"], row["events_sent"] + row["posts_sent"])

    def test_counts_of_a_step_with_noise(self):
        """A step of 64 NPUs with messages between stages and collectives. The prediction has the counts of runs on 2, 3 and 8 ranks."""
        self.check_counts(
            [harness.SOURCE / "configs/llama3-8b-64.yaml", "--noise=0.05", "--set=workload.model.layers=8"], 10
        )

    def test_counts_of_links(self):
        """Random workloads of 8 to 32 NPUs over links, whose events are those of links. The counts are those of runs on 2, 3 and 8 ranks."""
        for workload in self.workloads(1, harness.cases(1, 1, 20)):
            self.check_counts(self.written(workload, "--network=congestion-aware"), 10)

    def test_counts_of_more_npus_than_blocks(self):
        """An all-reduce of 4,096 NPUs, of which four are a block. The counts are those of runs on 2 and 8 ranks."""
        self.check_counts(
            [harness.SOURCE / "configs/scale/all-reduce-4096.yaml"], 1, (2,) if harness.FEWER_CASES else (2, 8)
        )

    def test_counts_of_random_workloads(self):
        """Random workloads of 8 to 32 NPUs with memory servers, messages and collectives. The counts are those of runs."""
        for workload in self.workloads(501, harness.cases(1, 2, 20)):
            self.check_counts(self.written(workload), 1)

    def workloads(self, first_seed, count):
        """Returns random workloads of at least as many NPUs as the tests have ranks."""
        drawn = (
            random_workload.Workload(seed, max_npus=32, operations=(60, 120)) for seed in itertools.count(first_seed)
        )
        return itertools.islice((workload for workload in drawn if workload.num_npus >= max(RANKS)), count)

    def written(self, workload, *more):
        """Writes a workload and returns the arguments that name it."""
        return [harness.write_workload(self.folder, workload.traces), *workload.system.write(self.folder), *more]

    def test_the_record_is_the_same_on_any_ranks(self):
        """The load that 3 ranks record is the one that one rank records, in every dataset and attribute."""
        arguments = [harness.SOURCE / "configs/llama3-8b-64.yaml", "--noise=0.02", "--record-load"]
        one, other = self.run_once(arguments, "one.h5"), self.run_once(arguments, "other.h5", ranks=3)
        found = subprocess.run(["h5diff", str(one), str(other), "/load"], capture_output=True, text=True)
        self.assertEqual((found.returncode, found.stdout), (0, ""), found.stderr)
        self.assertEqual(harness.difference(one, other), "")

    def test_recording_changes_nothing_else(self):
        """A run with a record has the results of one without it."""
        import h5py

        arguments = self.written(next(self.workloads(9105, 1)))
        with_record, without = self.run_once([*arguments, "--record-load"], "with.h5"), self.run_once(
            arguments, "without.h5"
        )
        with h5py.File(with_record, "a") as results:
            del results["load"]
            for name in ("resolved",):
                del results["config"][name]
        with h5py.File(without, "a") as results:
            del results["config"]["resolved"]
        self.assertEqual(harness.difference(with_record, without), "")

    def test_times_follow_from_speeds(self):
        """One rank takes the time of all events. Messages that take longer never make a run shorter, and no run is shorter than the events
        of its busiest rank. Twice the event time and twice the latency give twice the time."""
        path = self.run_once([harness.SOURCE / "configs/llama3-8b-64.yaml", "--noise=0.02", "--record-load"])
        everything = "--ranks=1,2,3,8,64"
        fast = self.rows(path, everything, "--event-time=200ns", "--latency=0ns", "--message-time=0ns")
        slow = self.rows(path, everything, "--event-time=200ns", "--latency=2us", "--message-time=1us")
        twice = self.rows(path, everything, "--event-time=400ns", "--latency=4us", "--message-time=2us")
        self.assertAlmostEqual(slow[1]["time_s"], slow[1]["most_events"] * 200e-9, places=9)
        for ranks, row in fast.items():
            self.assertGreaterEqual(row["time_ahead_s"], row["most_events"] * 200e-9 * (1 - 1e-12))
            self.assertGreaterEqual(row["time_s"], row["time_ahead_s"])
            self.assertGreaterEqual(slow[ranks]["time_s"], row["time_s"])
            self.assertAlmostEqual(twice[ranks]["time_s"] / slow[ranks]["time_s"], 2, places=9)
            self.assertAlmostEqual(row["speedup"] / ranks, row["efficiency"], places=12)
        self.assertGreater(slow[64]["time_s"], fast[64]["time_s"])
        self.assertGreater(fast[8]["speedup"], fast[2]["speedup"])

    def test_forms(self):
        """--csv has the values of --json, the text has a row for each number of ranks, and powers of two are the default."""
        path = self.run_once([harness.SOURCE / "configs/llama3-8b-64.yaml", "--record-load"])
        rows = self.rows(path)
        self.assertEqual(list(rows), [2, 4, 8, 16, 32, 64])
        table = list(csv.DictReader(io.StringIO(self.show(path, "--csv").out)))
        for values in table:
            row = rows[int(values["ranks"])]
            self.assertEqual(list(values), list(row))
            for name, value in row.items():
                self.assertEqual(values[name] if isinstance(value, str) else json.loads(values[name]), value)
        lines = self.show(path).out.splitlines()
        self.assertEqual([line.split()[0] for line in lines[-6:]], ["2", "4", "8", "16", "32", "64"])

    def test_the_plot_is_drawn(self):
        """plot_scaling.py draws what --json prints, and refuses a file that is something else with one message."""
        table, picture = self.folder / "table.json", self.folder / "picture.png"
        table.write_text(
            self.show(self.run_once([harness.SOURCE / "configs/llama3-8b-64.yaml", "--record-load"]), "--json").out
        )
        outcome = harness.run_script("scripts/plot_scaling.py", table, "--output", picture)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(picture.stat().st_size, 10_000)
        table.write_text("{}")
        outcome = harness.run_script("scripts/plot_scaling.py", table, "--output", picture)
        self.assertEqual((outcome.code, len(outcome.err.splitlines())), (1, 1), outcome.err)
        self.assertIn("table.json", outcome.err)

    def test_what_cannot_be_predicted_is_refused(self):
        """Results without a load, a missing file, more ranks than blocks, and options without sense end with one message each."""
        import h5py

        path = self.run_once([harness.SOURCE / "configs/llama3-8b-64.yaml", "--record-load"])
        without = self.run_once([harness.SOURCE / "configs/llama3-8b-64.yaml"], "without.h5")
        broken = self.folder / "broken.h5"
        broken.write_bytes(path.read_bytes())
        with h5py.File(broken, "a") as results:
            results["load/events/block"][0] = 4_000_000
        for arguments, code, word in (
            ((without,), 3, "--record-load"),
            ((self.folder / "missing.h5",), 3, "no such file"),
            ((broken,), 3, "/load"),
            ((path, "--ranks=65"), 2, "64 blocks"),
            ((path, "--ranks=2,x"), 2, "--ranks"),
            ((path, "--latency=2"), 2, "--latency"),
            ((path, "--event-time=0ns"), 2, "--event-time"),
            ((path, "--json", "--csv"), 2, "Give one of them"),
            ((), 2, "no file"),
        ):
            outcome = self.show(*arguments)
            self.assertEqual(outcome.code, code, (arguments, outcome.err))
            self.assertEqual(len(outcome.err.strip().splitlines()), 1, outcome.err)
            self.assertIn(word, outcome.err)
            self.assertEqual(outcome.out, "")

    def test_runs_that_have_no_load_are_refused(self):
        """A folded run and one with checkpoints do not record a load, and end before they begin."""
        for option in ("--fold", f"--checkpoint={self.folder / 'state.chk'}"):
            output = self.folder / "refused.h5"
            outcome = harness.orrery(
                "run", harness.SOURCE / "configs/llama3-8b-64.yaml", "--record-load", option, f"--output={output}"
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn("--record-load", outcome.err)
            self.assertFalse(output.exists())


if __name__ == "__main__":
    harness.main()
