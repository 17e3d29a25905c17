#!/usr/bin/python3
"""`orrery show kernel` prints what /kernel of the results holds and what follows from it; scripts/plot_kernel.py draws it.

The system: a random workload of up to 32 NPUs."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import random_workload  # noqa: E402

SCRIPT = "scripts/plot_kernel.py"
COLUMNS = {
    "events": "events",
    "data_messages": "data_messages",
    "null_messages": "null_messages",
    "null_messages_received": "null_messages_received",
    "promise_requests": "promise_requests",
    "events_sent": "events_sent",
    "posts_sent": "posts_sent",
    "waits": "waits",
    "message_bytes": "message_bytes",
    "reductions": "reductions",
    "blocked_time": "blocked_time_s",
    "busy_time": "busy_time_s",
    "peak_pending_events": "peak_pending_events",
    "peak_memory": "peak_memory_bytes",
    "critical_path": "critical_path",
}


class KernelTable(harness.Folder):
    def results(self, ranks, *more):
        """Runs the workload on this many ranks and returns the path of the results."""
        workload = random_workload.Workload(9105, max_npus=32, operations=(60, 120))
        arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
        return self.run_once(arguments + list(more), f"on{ranks}.h5", ranks=ranks)

    def show(self, *arguments):
        return harness.orrery("show", "kernel", *arguments)

    def test_json_is_what_the_file_holds(self):
        """On 1 and 3 ranks, --json prints the values of the file, their totals, and the figures that follow from them."""
        import h5py

        for ranks in (1, 3):
            path = self.results(ranks)
            outcome = self.show(path, "--json")
            self.assertEqual(outcome.code, 0, outcome.err)
            shown = json.loads(outcome.out)
            self.assertEqual((shown["status"], len(shown["ranks"])), ("complete", ranks))
            with h5py.File(path) as results:
                for column, key in COLUMNS.items():
                    self.assertEqual([row[key] for row in shown["ranks"]], list(results["kernel/" + column][:]), column)
            events = [row["events"] for row in shown["ranks"]]
            self.assertEqual(shown["total"]["events"], sum(events))
            self.assertAlmostEqual(shown["efficiency"], sum(events) / ranks / max(events))
            path_length = max(row["critical_path"] for row in shown["ranks"])
            self.assertAlmostEqual(shown["best_possible_speedup"], sum(events) / path_length)
            null, data = shown["total"]["null_messages"], shown["total"]["data_messages"]
            self.assertAlmostEqual(shown["null_messages_per_100_events"], 100 * null / sum(events))
            if data:
                self.assertAlmostEqual(shown["null_messages_per_data_message"], null / data)
            self.assertEqual(shown["limit"] == "one rank", ranks == 1)

    def test_a_rank_without_work_shows_as_imbalance(self):
        """All NPUs are on the first of two ranks: the efficiency is one half, and the limit is imbalance."""
        workload = random_workload.Workload(9105, max_npus=32, operations=(60, 120))
        everything = self.folder / "map"
        everything.write_text("0\n" * workload.num_npus)
        shown = json.loads(self.show(self.results(2, f"--partition={everything}"), "--json").out)
        self.assertEqual(shown["efficiency"], 0.5)
        self.assertEqual(shown["limit"], "imbalance", shown)

    def test_peak_memory_is_that_of_the_run(self):
        """A script that has filled 400 MB starts a run. The results give what the run took, which is less."""
        import h5py

        workload = random_workload.Workload(9105, max_npus=32, operations=(60, 120))
        arguments = [harness.write_workload(self.folder, workload.traces)] + workload.system.write(self.folder)
        path = self.folder / "small.h5"
        script = "import os, sys; filled = b'x' * 400_000_000; os.execv(sys.argv[1], sys.argv[1:])"
        command = [
            sys.executable,
            "-c",
            script,
            harness.BINARY,
            "run",
            *map(str, arguments),
            f"--output={path}",
            "--quiet",
        ]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(path) as results:
            peak = results["kernel/peak_memory"][0]
        self.assertGreater(peak, 5_000_000)
        if not harness.SANITIZED:
            self.assertLess(peak, 200_000_000)

    def test_the_text_has_a_row_for_each_rank(self):
        """On 2 ranks the text has a row for each rank and one for all, every column, and the figures that follow."""
        outcome = self.show(self.results(2))
        self.assertEqual(outcome.code, 0, outcome.err)
        for word in (
            "rank",
            "events",
            "data",
            "null",
            "requests",
            "bytes",
            "reductions",
            "blocked",
            "busy",
            "pending",
            "memory",
            "critical",
            "per data message",
            "per hundred events",
            "efficiency: ",
            "busy: ",
            "best possible speedup: ",
            "limit: ",
        ):
            self.assertIn(word, outcome.out)
        rows = [line.split()[0] for line in outcome.out.splitlines() if line.strip()]
        for row in ("0", "1", "all"):
            self.assertIn(row, rows)

    def test_files_that_cannot_be_read_are_refused(self):
        """A missing file, a text, a file of another program and one without events are refused with one message that names the file and
        the fault."""
        import h5py

        text = self.folder / "text.h5"
        text.write_text("no results")
        other = self.folder / "other.h5"
        with h5py.File(other, "w") as file:
            file["x"] = 1
        broken = self.results(1)
        with h5py.File(broken, "a") as file:
            del file["kernel/events"]
        for path, word in (
            (self.folder / "missing.h5", "no such file"),
            (text, "HDF5"),
            (other, "format"),
            (broken, "/kernel/events"),
        ):
            outcome = self.show(path)
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertEqual(len(outcome.err.strip().splitlines()), 1, outcome.err)
            self.assertIn(path.name, outcome.err)
            self.assertIn(word, outcome.err)

    def test_the_plot_is_drawn(self):
        """plot_kernel.py draws a picture of a run on 3 ranks, and names a missing file."""
        picture = self.folder / "picture.png"
        outcome = harness.run_script(SCRIPT, self.results(3), "--output", picture)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(picture.stat().st_size, 10_000)
        outcome = harness.run_script(SCRIPT, self.folder / "missing.h5")
        self.assertNotEqual(outcome.code, 0)
        self.assertIn("missing.h5", outcome.err)
        self.assertNotIn("Traceback", outcome.err)


if __name__ == "__main__":
    harness.main()
