#!/usr/bin/python3
"""Bounds of trials: no simulated time or peak is below its bound, and a bounded search finds what the whole grid has. Random studies.

By hand as long as one likes: test_bounds.py STUDIES SEED."""
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402
import random_study  # noqa: E402

STUDIES = 6 if harness.SANITIZED else 30
SEED = 20


class Bounds(harness.Folder):
    def explore(self, study, name, ranks=0):
        """Returns the columns of a study's trials; none if no configuration is left."""
        output = self.folder / name
        done = harness.orrery("explore", study, f"--output={output}", "--force", ranks=ranks)
        self.assertIn(done.code, (0, 3), done.err)
        if not output.exists():
            return {}
        with h5py.File(output) as file:
            columns = {key: list(column.asstr()[:] if column.dtype.kind == "O" else column[:]) for key, column in file["trials"].items()}
            return columns | {"best": list(file["best"][:]), "extra": list(file["kernel/extra"][:])}

    def test_no_trial_is_below_its_bounds(self):
        """Of random studies all trials are simulated, because they may keep all. The program compares each with its bounds; so does this test.
        Bounds are tight: most are above 0.8 of the time, and a bound that is 2 % too high would be found."""
        draw, ratios, unbounded = random.Random(SEED), [], 0
        for _ in range(STUDIES):
            trials = self.explore(random_study.write(draw, self.folder), "all.h5")
            self.assertNotIn("ruled-out", trials.get("status", []))
            for status, time, bound in zip(*(trials.get(key, []) for key in ("status", "step_time", "lower_bound"))):
                if status == "done":
                    self.assertFalse(time < bound, (time, bound))
                    unbounded += bound != bound
                    ratios += [bound / time] if bound == bound else []
        self.assertGreater(len(ratios), 5 * STUDIES)
        self.assertLess(unbounded, len(ratios) / 3)
        self.assertGreater(sorted(ratios)[len(ratios) // 2], 0.8)
        self.assertGreater(max(ratios), 1 / 1.02)

    def test_a_bounded_search_finds_the_best_of_the_grid(self):
        """The top and the front of random studies are those of the grid, with the same metrics; the rows and the best do not depend on the
        number of ranks. What is ruled out was better in no trial of the grid than the last one of the top."""
        draw, ruled_out = random.Random(SEED + 1), 0
        kinds = [("{minimise: step_time}", ""), ("{maximise: tokens_per_s}", ""), ("{minimise: step_time}, {minimise: peak_memory}", ""),
                 ("{minimise: step_time}", ', "peak_memory <= 100 MB"')]
        for number in range(STUDIES // 2):
            objectives, limit = kinds[number % len(kinds)]
            study = random_study.write(draw, self.folder, keep=3, objectives=objectives, limit=limit)
            bounded = self.explore(study, "bounded.h5", ranks=draw.choice([0, 2, 3]))
            study.write_text(study.read_text().replace("kind: bounded", "kind: grid"))
            grid = self.explore(study, "grid.h5")
            self.assertEqual(bounded.get("best"), grid.get("best"))
            for row, status in enumerate(bounded.get("status", [])):
                ruled_out += status == "ruled-out"
                if status == "done":
                    self.assertEqual([bounded[key][row] for key in ("status", "step_time", "peak_memory")], [grid[key][row] for key in ("status", "step_time", "peak_memory")])
                elif status == "ruled-out" and limit == "" and objectives == "{minimise: step_time}" and grid["status"][row] == "done":
                    self.assertGreater(grid["step_time"][row], grid["step_time"][grid["best"][-1]])
        self.assertGreater(ruled_out, STUDIES)

    def test_one_answer(self):
        """A bounded study has the same file on 1, 2 and 3 ranks, but for /kernel."""
        study = random_study.write(random.Random(SEED + 2), self.folder, keep=2)
        self.explore(study, "one.h5")
        for ranks in (1, 2, 3):
            self.explore(study, f"{ranks}.h5", ranks=ranks)
            self.assertEqual(harness.difference(self.folder / "one.h5", self.folder / f"{ranks}.h5"), "")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        STUDIES, SEED = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    unittest.main()
