#!/usr/bin/python3
"""`orrery explore` in several jobs: ranks that are killed at any moment, shards that are put together, 1 to 8 ranks. What is found is the same.

ORRERY_KILLS is how often a job is killed (4)."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import h5py  # noqa: E402
import harness  # noqa: E402
import studies  # noqa: E402

KILLS = int(os.environ.get("ORRERY_KILLS", 2 if harness.SANITIZED else 4))
STUDY = """study:
  base: base.yaml
  parameters:
    tp: {key: workload.parallel.tp, values: [1, 2, 4, 8]}
    pp: {key: workload.parallel.pp, values: [1, 2, 3]}
    zero: {key: workload.parallel.zero, values: [0, 1, 7]}
    bandwidth: {key: system.network.dimensions.1.bandwidth, range: {from: 25 GB/s, to: 100 GB/s%s}}
  derived:
    dp: {key: workload.parallel.dp, value: npus / (tp * pp)}
    micro_batches: {key: workload.parallel.micro-batches, value: 16 / dp}
  constraints: [npus %% (tp * pp) == 0, step_time < 20 ms]
  objectives: [{minimise: step_time}, {minimise: peak_memory}]
  strategy: {kind: %s}%s
"""
KINDS = {
    "grid": (", steps: 2", "grid", ""),
    "bounded": (", steps: 2", "bounded", ""),
    "sobol": ("", "sobol, samples: 16, seed: 5", "\n  refine: {rounds: 1, factor: 3}"),
}


class Jobs(harness.Folder):
    def study(self, kind):
        (self.folder / "base.yaml").write_text(studies.base("size: 1 GB"))
        path = self.folder / f"{kind}.yaml"
        path.write_text(STUDY % KINDS[kind])
        return path

    def explore(self, study, name, *arguments, code=0, ranks=0):
        done = harness.orrery("explore", study, f"--output={self.folder / name}", *arguments, ranks=ranks)
        self.assertEqual(done.code, code, done.out + done.err)
        return done

    def assert_same(self, one, other):
        self.assertEqual(harness.difference(self.folder / one, self.folder / other), "")

    def test_any_number_of_ranks(self):
        """The file of a grid, of a bounded search and of samples with a round of refinement is the same on 1, 2, 3 and 8 ranks. From four ranks on rank 0 only
        hands trials out. Some trials are faulty, and some are excluded."""
        for kind in KINDS:
            study = self.study(kind)
            self.explore(study, f"{kind}.h5")
            with h5py.File(self.folder / f"{kind}.h5") as file:
                statuses = {"done", "excluded", "refused", "does-not-fit"} | (
                    {"ruled-out"} if kind == "bounded" else set()
                )
                self.assertEqual(set(file["trials/status"].asstr()[:]), statuses)
                self.assertTrue(
                    all(
                        "zero" in text
                        for text, status in zip(file["trials/error"].asstr()[:], file["trials/status"].asstr()[:])
                        if status == "refused"
                    )
                )
            for ranks in (1, 2, 3, 8):
                self.explore(study, f"{kind}{ranks}.h5", ranks=ranks)
                self.assert_same(f"{kind}.h5", f"{kind}{ranks}.h5")

    def test_shards(self):
        """The files of three shards, each of a job of its own, make the file of the whole study. A shard that is missing, given twice, or of
        another study is refused and named; so is a whole study."""
        for kind in KINDS:
            study = self.study(kind)
            self.explore(study, f"{kind}.h5")
            parts = [self.folder / f"{kind}-{i}.h5" for i in range(3)]
            for i, part in enumerate(parts):
                self.explore(study, part, f"--shard={i}/3")
                with h5py.File(part) as file:
                    self.assertTrue(all(number % 3 == i for number in file["trials/number"]))
            self.explore(study, f"{kind}-all.h5", "--merge", *reversed(parts))
            self.assert_same(f"{kind}.h5", f"{kind}-all.h5")
            self.explore(study, f"{kind}-all2.h5", "--merge", *parts, ranks=2)
            self.assert_same(f"{kind}.h5", f"{kind}-all2.h5")
        self.assertRegex(
            self.explore(study, "no.h5", "--merge", parts[0], parts[2], code=3).err,
            "one of 3 shards, and the files of others are missing: 1",
        )
        self.assertRegex(
            self.explore(study, "no.h5", "--merge", *parts, parts[1], code=3).err, "is shard 1, and so is .*sobol-1.h5"
        )
        self.assertRegex(
            self.explore(study, "no.h5", "--merge", self.folder / "sobol.h5", code=3).err, "holds a whole study"
        )
        self.assertRegex(
            self.explore(study, "no.h5", "--merge", *parts[:2], self.folder / "grid-2.h5", code=3).err,
            "is of another study: sobol.yaml, grid.yaml differ",
        )
        self.explore(study, "few.h5", "--shard=1/3", "--limit=4")
        self.assertRegex(
            self.explore(study, "no.h5", "--merge", parts[0], self.folder / "few.h5", parts[2], code=3).err,
            "few.h5: lacks trial 4",
        )
        self.assertEqual(harness.orrery("explore", study, "--shard=3/3").code, 2)
        self.assertFalse((self.folder / "no.h5").exists())

    @harness.long
    def test_killed_at_any_moment(self):
        """Jobs on changing numbers of ranks are killed at random moments. The last one ends, and its file is that of a job that nobody killed."""
        draw = random.Random(20)
        for kind in KINDS:
            study = self.study(kind)
            start = time.monotonic()
            self.explore(study, f"{kind}.h5")
            whole = time.monotonic() - start
            for _ in range(KILLS):
                job = harness.Background(
                    self,
                    harness.launch(["explore", study, f"--output={self.folder / 'again.h5'}"], draw.choice([0, 2, 3])),
                )
                time.sleep(draw.random() * whole)
                os.killpg(job.process.pid, signal.SIGKILL)
                job.process.wait()
                self.wait_for_ranks()
                (self.folder / "again.h5").unlink(missing_ok=True)  # it had ended before
            self.explore(study, "again.h5", "--force", ranks=draw.choice([0, 2, 3]))
            self.assert_same(f"{kind}.h5", "again.h5")
            self.assertEqual(list(self.folder.glob("again.h5.journal.*")), [])
            (self.folder / "again.h5").unlink()

    def test_a_large_journal(self):
        """The journal of a job that ended early has 70 MB more, of torn lines, as large as that of 200,000 trials. The same command reads it,
        and gives the file of a job that nobody stopped."""
        study = self.study("grid")
        self.explore(study, "grid.h5")
        self.explore(study, "again.h5", "--max-walltime=1 ms", code=75)
        with open(self.folder / "again.h5.journal.0", "ab") as journal:
            journal.write((b"x" * 999 + b"\n") * 70_000)
        self.explore(study, "again.h5")
        self.assert_same("grid.h5", "again.h5")

    def wait_for_ranks(self):
        """Waits until no rank of a killed job is there any more: those of mpirun end when they miss it, perhaps after they have begun a
        journal."""
        deadline = time.monotonic() + harness.PATIENCE
        while subprocess.run(["pgrep", "-f", str(self.folder / "again.h5")], capture_output=True).returncode == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_two_jobs_at_once(self):
        """A job whose output another one works on is refused, and the other one goes on."""
        study = self.study("grid")
        study.write_text(study.read_text().replace("steps: 2", "steps: 200"))
        job = harness.Background(self, harness.launch(["explore", study, f"--output={self.folder / 'grid.h5'}"]))
        job.wait_until(lambda: list(self.folder.glob("grid.h5.journal.*")), "a journal was there")
        job.wait_until(lambda: (self.folder / "grid.h5.journal.0").read_bytes().count(b"\n") > 1, "a trial was done")
        self.assertRegex(self.explore(study, "grid.h5", code=5).err, "another job that still runs writes to it")


if __name__ == "__main__":
    harness.main()
