"""Runs that are killed and go on from their checkpoints, for tests.

With ORRERY_CHECKPOINT_KILLS=50 each case is killed 50 times, and goes on on 1, 2, 3 and 8 ranks each time. ORRERY_CHECKPOINT_SEED draws
other moments."""
import os
import random

import harness

KILLS = int(os.environ.get("ORRERY_CHECKPOINT_KILLS", "1"))
SEED = int(os.environ.get("ORRERY_CHECKPOINT_SEED", "20"))
CHECKPOINT = "checkpoint at simulated"  # what a run says of each
OFTEN = "--checkpoint-interval=0.02"


class KilledRuns(harness.Folder):
    """A folder for runs that write checkpoints to self.file and are killed."""

    often = OFTEN
    others = (0, 2, 3) if harness.GATE else (0, 2, 3, 8)  # numbers of ranks on which runs go on
    most = 3  # checkpoints after which a run is killed

    def setUp(self):
        super().setUp()
        self.file = self.folder / "run.chk"
        self.random = random.Random(SEED)

    def previous(self):
        """Returns the path of the generation before the newest checkpoint."""
        return self.file.with_name(f"{self.file.name}.previous")

    def start(self, arguments, ranks, *more):
        """Starts a run that writes checkpoints."""
        return harness.Background(
            self,
            harness.launch(
                [
                    "run",
                    *arguments,
                    f"--checkpoint={self.file}",
                    self.often,
                    f"--output={self.folder}/killed.h5",
                    "--force",
                    "--progress=none",
                    *more,
                ],
                ranks,
            ),
        )

    def cells(self):
        """Returns the option for a random size of cells."""
        return f"--cell-size={self.random.choice([0, 1, 2, 3, 4, 8])}"

    def kill(self, arguments, ranks):
        """Kills a run after a random number of checkpoints, perhaps while it writes one. Returns whether it was killed with a checkpoint and
        before it had written its results."""
        results = self.folder / "killed.h5"
        for path in (*self.folder.glob("run.chk*"), results):
            path.unlink(missing_ok=True)
        number = self.random.randint(1, self.most)
        run = self.start(arguments, ranks, self.cells())
        run.wait_until(
            lambda: run.text().count(CHECKPOINT) >= number or run.process.poll() is not None,
            "writing checkpoints",
            step=0.001,
        )
        run.kill()
        return (self.file.exists() or self.previous().exists()) and not results.exists()

    def check(self, arguments, num_npus, kills=KILLS):
        """Checks that runs which are killed go on to the results of one that is not."""
        whole = self.run_once(arguments, "whole.h5")
        if KILLS > 1:  # at any moment of the run, and not only near its beginning
            self.most = max(1, self.start(arguments, 0).end().err.count(CHECKPOINT))
        partition = harness.scattered_partition(self.folder / "scattered", num_npus, 3)
        num_killed = num_missed = 0
        while num_killed < kills:
            ranks = self.random.choice([0, 2, 3])
            if not self.kill(arguments, ranks):
                num_missed += 1
                self.assertLess(num_missed, 10 * kills, "runs end before they are killed")
                continue
            num_killed += 1
            variants = [*((number, []) for number in self.others), (3, [f"--partition={partition}"])]
            for others, more in variants if KILLS > 1 else self.random.sample(variants, 2):
                if more and "--fold" in arguments:
                    more = []
                name = f"killed on {ranks}, goes on on {others} {more}"
                after = self.run_once(
                    [*arguments, *more, self.cells(), f"--restart={self.file}"], "after.h5", ranks=others
                )
                self.assertEqual(harness.difference(whole, after), "", name)

    def workload(self, workload, *more):
        """Returns the arguments that run a random workload."""
        return [
            harness.write_workload(self.folder, workload.traces),
            *workload.system.write(self.folder),
            "--timeline",
            *more,
        ]
