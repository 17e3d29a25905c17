#!/usr/bin/python3
"""A run that is killed goes on from its checkpoint to the same bits, on any number of ranks.

Each case is simulated once without checkpoints. Then it is started on some ranks with checkpoints as often as they can be written, and
all of its processes are killed at a random moment. From the newest checkpoint it goes on, on other numbers of ranks and with other
partitions, and the results must be those of the first run. With ORRERY_CHECKPOINT_KILLS=50 each case is killed 50 times, and goes on
on 1, 2, 3 and 8 ranks each time."""
import os
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import checkpoints  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
import test_congestion  # noqa: E402
import test_one_answer  # noqa: E402

CONFIGS = harness.SOURCE / "configs"
SMALL = [CONFIGS / "llama3-8b-64.yaml", "--set=workload.model.layers=8"]
NOISE = "--noise=0.05"
FROM_PREVIOUS = "The run goes on from"  # the warning that the newest checkpoint cannot be read
LONG = "--iterations=50"  # some seconds, so that a signal comes before the end


APART = """
system:
  network:
    dimensions:
      - {shape: FullyConnected, size: 8, bandwidth: 450 GB/s, latency: 500 ns}
      - {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}
  compute: {roofline: true, peak: 989 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}
jobs:
  - {name: long, npus: 8, workload: {model: {layers: 1, hidden: 65536, heads: 128, sequence: 8192}, parallel: {tp: 8, sp: true}, iterations: FIRST}}
  - {name: short, npus: 8, workload: {model: {layers: 8, hidden: 4096, heads: 32, sequence: 2048}, parallel: {tp: 8, sp: true}, iterations: SECOND}}
"""


def apart(folder, first, second):
    """Writes the configuration of two jobs that share nothing, with these iterations, and returns its path."""
    path = folder / "apart.yaml"
    path.write_text(APART.replace("FIRST", str(first)).replace("SECOND", str(second)))
    return path


class Checkpoint(checkpoints.KilledRuns):
    # ---- kinds of runs ----

    @harness.long
    def test_random_workloads(self):
        """Random workloads with timelines."""
        for seed in (9005,) if checkpoints.KILLS == 1 else range(9005, 9010):
            with self.subTest(seed=seed):
                workload = random_workload.Workload(seed, max_npus=64, operations=(40, 200))
                self.check(self.workload(workload, "--iterations=150"), workload.num_npus)
                self.clear_folder()

    def test_noise(self):
        """A step in which no two NPUs compute for the same time, several times, and where senders wait for receivers."""
        self.check([*SMALL, NOISE, "--iterations=4", "--set=system.communication.rendezvous=true"], 64)

    @harness.long
    def test_many_npus(self):
        """A step of 1,024 NPUs with noise; tests/bench/checkpoint_scale.py takes as many as one likes."""
        self.check(
            [CONFIGS / "scale/gpt3-175b-1024.yaml", "--set=workload.model.layers=8", NOISE, "--iterations=2"], 1024
        )

    def test_tensors(self):
        """The same with tensors in the local memory, a timeline and the memory of each moment."""
        self.check([*SMALL, NOISE, "--timeline", "--iterations=3", "--record-iterations=2"], 64)

    @harness.long
    def test_folded(self):
        """A folded run of which some NPUs are slow, so that it is folded again and has divergences."""
        slow = "--set=perturbation.slow-npus=[{npus: 5, compute: 0.8}]"
        self.check([*SMALL, "--fold", slow, "--iterations=60"], 64)

    @harness.long
    def test_links(self):
        """Random workloads and steps with slow links on the congestion-aware network, with messages, packets of them and parts of
        collectives under way, and with switches that combine and copy."""
        workload = random_workload.Workload(9005, max_npus=32, operations=(40, 120))
        self.check(self.workload(workload, *test_congestion.AWARE, "--iterations=10"), workload.num_npus)
        lists = (
            ", all-reduce: [binomialTree, binomialTree, inSwitch], reduce-scatter: [ring, direct, inSwitch],"
            " all-gather: [ring, direct, inSwitch], broadcast: [binomialTree, ring, inSwitch]"
        )
        cases = [
            ("true", lists, []),
            ("false", lists, test_congestion.CUT),
            ("false", "", []),
            ("true", "", test_congestion.CUT),
        ]
        for rendezvous, algorithms, more in cases[:2] if checkpoints.KILLS == 1 else cases:
            with self.subTest(rendezvous=rendezvous, lists=algorithms, more=more):
                text = test_congestion.SKEWED.replace("RENDEZVOUS", rendezvous).replace("LISTS", algorithms)
                for word, value in zip(("DIMENSIONS", "LINKS"), test_congestion.SHAPES["ring"]):
                    text = text.replace(word, value)
                path = self.folder / "skewed.yaml"
                path.write_text(text)
                self.check([path, "--timeline", *more], 64)

    @harness.long
    def test_remote_memories(self):
        """Random workloads whose NPUs share remote memories of each kind."""
        for kind in test_one_answer.MEMORIES:
            with self.subTest(kind):
                seed = next(s for s in range(1, 1000) if test_one_answer.MemoryWorkload(s, kind).num_npus >= 8)
                workload = test_one_answer.MemoryWorkload(seed, kind)
                self.check(self.workload(workload, "--iterations=200"), workload.num_npus)
                self.clear_folder()

    @harness.long
    def test_jobs_that_share_nothing(self):
        """Two jobs that share nothing. Each has ranks of its own, or both are on one rank. The first job takes longer and has fewer events, so
        it is far ahead of the second one at any checkpoint."""
        self.check([apart(self.folder, 100, 1500), NOISE], 16)

    # ---- ends ----

    def test_a_stopped_run_goes_on(self):
        """SIGUSR1 and the limit of wall time write a checkpoint and end the run with exit code 75. A message says how it goes on, and it
        does."""
        arguments = [*SMALL, NOISE, LONG]
        whole = self.run_once(arguments, "whole.h5")
        run = harness.Background(
            self,
            harness.launch(
                [
                    "run",
                    *arguments,
                    f"--checkpoint={self.file}",
                    f"--output={self.folder}/stopped.h5",
                    *harness.PROGRESS,
                ]
            ),
        )
        run.wait_until(lambda: " of nodes, " in run.text(), "simulating")
        run.signal("SIGUSR1")
        outcome = run.end()
        self.assertEqual(outcome.code, 75, outcome.err)
        self.assertIn(f"with --restart={self.file} goes on from there", outcome.err)
        after = self.run_once([*arguments, f"--restart={self.file}"], "stopped.h5", ranks=2)
        self.assertEqual(harness.difference(whole, after), "")
        self.file.unlink()
        outcome = harness.orrery(
            "run",
            *SMALL,
            harness.FOR_EVER,
            "--max-walltime=2",
            f"--checkpoint={self.file}",
            f"--output={self.folder}/limited.h5",
            "--quiet",
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        self.assertTrue(self.file.exists())

    @harness.long
    def test_a_rank_that_is_done_waits_for_another_job(self):
        """One of two jobs that share nothing is done soon, and the other never. Its rank waits for longer than the watchdog allows a rank that
        hears of nothing. Both ranks stop at the limit of wall time."""
        outcome = harness.orrery(
            "run",
            apart(self.folder, 10, 100_000_000),
            "--set=run.watchdog=4 s",
            "--max-walltime=8",
            f"--checkpoint={self.file}",
            f"--output={self.folder}/stopped.h5",
            "--quiet",
            ranks=2,
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        self.assertIn("stopped by the wall-time limit at simulated", outcome.err)
        self.assertTrue(self.file.exists())

    def test_checkpoints_can_be_chained(self):
        """A run goes on from a checkpoint, writes others to the same file, is killed again, and goes on from those."""
        arguments = [*SMALL, NOISE, LONG]
        whole = self.run_once(arguments, "whole.h5")
        self.assertTrue(self.kill(arguments, 2))
        run = self.start(arguments, 3, f"--restart={self.file}")
        run.wait_until(lambda: "checkpoint at simulated" in run.text(), "writing checkpoints")
        run.kill()
        after = self.run_once([*arguments, f"--restart={self.file}"], "after.h5")
        self.assertEqual(harness.difference(whole, after), "")


class Refusals(harness.Folder):
    """Two generations of one checkpoint, and what does not fit it."""

    def setUp(self):
        super().setUp()
        self.file = self.folder / "run.chk"
        self.arguments = [*SMALL, "--set=workload.iterations=20000"]
        for more in ([], [f"--restart={self.file}"]):
            outcome = harness.orrery(
                "run",
                *self.arguments,
                "--max-walltime=1",
                f"--checkpoint={self.file}",
                f"--output={self.folder}/first.h5",
                "--quiet",
                *more,
            )
            self.assertEqual(outcome.code, 75, outcome.err)

    def refusal(self, *more, arguments=None, code=3):
        """Returns the error of a run that is refused before it simulates and leaves no results."""
        output = self.folder / "refused.h5"
        outcome = harness.orrery(
            "run", *(arguments or self.arguments), f"--restart={self.file}", f"--output={output}", *more
        )
        self.assertEqual(outcome.code, code, outcome.err)
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        self.assertFalse(output.exists())
        return outcome.err

    def goes_on(self, *more):
        """Returns what a run that goes on prints. It stops itself in the simulation."""
        outcome = harness.orrery(
            "run", *self.arguments, f"--restart={self.file}", f"--output={self.folder}/on.h5", "--max-walltime=1", *more
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        return outcome.err

    def test_another_run_is_refused_with_the_difference(self):
        """Another model, noise, number of iterations or timeline is refused, and the message says what differs. Other outputs, progress and
        limits are not."""
        self.assertIn("'layers: 8'", self.refusal("--set=workload.model.layers=9"))
        self.assertIn("noise: 0.1", self.refusal("--noise=0.1"))
        self.assertIn("iterations: 3", self.refusal("--iterations=3"))
        self.assertIn("run.timeline: true", self.refusal("--timeline"))
        self.goes_on("--progress=plain", "--progress-interval=0.2", "--print-npus", "--quiet")

    def test_names_of_traces_may_be_relative(self):
        """A run that named its configuration, and so its traces, by an absolute path goes on from a folder where the name is relative, and the
        other way round."""
        workload = random_workload.Workload(9005, max_npus=16)
        traces = harness.write_workload(self.folder, workload.traces)
        system = workload.system.write(self.folder)
        relative = [argument.replace(f"{self.folder}/", "") for argument in (traces, *system)]
        self.assertNotEqual(relative[0], traces)
        for first, second in (((traces, *system), relative), (relative, (traces, *system))):
            self.file = self.folder / "names.chk"
            more = [
                "--iterations=100000000",
                "--max-walltime=1",
                f"--output={self.folder}/first.h5",
                "--quiet",
                "--force",
            ]
            for arguments, how in ((first, f"--checkpoint={self.file}"), (second, f"--restart={self.file}")):
                outcome = harness.orrery("run", *arguments, *more, how, cwd=self.folder)
                self.assertEqual(outcome.code, 75, outcome.err)

    def test_other_traces_are_refused(self):
        """A trace with other contents is refused, and the message names it."""
        workload = random_workload.Workload(9005, max_npus=16)
        self.arguments = [
            harness.write_workload(self.folder, workload.traces),
            *workload.system.write(self.folder),
            "--iterations=100000000",
        ]
        self.file = self.folder / "other.chk"
        outcome = harness.orrery(
            "run",
            *self.arguments,
            "--max-walltime=1",
            f"--checkpoint={self.file}",
            f"--output={self.folder}/first.h5",
            "--quiet",
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        workload.traces[1][0].duration += 1
        workload.traces[1][0].name += "?"
        harness.write_workload(self.folder, workload.traces)
        self.assertIn("workload.1.et' has other contents now", self.refusal())

    def test_a_damaged_checkpoint_gives_way_to_the_one_before(self):
        """A checkpoint with a wrong byte anywhere, or cut off, is found, and the run goes on from the generation before. If that is damaged
        too, the run is refused."""
        whole = self.file.read_bytes()
        previous = pathlib.Path(f"{self.file}.previous")
        draw = random.Random(3)
        for _ in range(3):
            damaged = bytearray(whole)
            damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
            self.file.write_bytes(damaged)
            self.assertIn(FROM_PREVIOUS, self.goes_on())
        for size in (0, 10, 30, len(whole) // 2, len(whole) - 1):
            self.file.write_bytes(whole[:size])
            kept = previous.read_bytes()
            previous.write_bytes(kept[: min(size, len(kept) - 1)])
            self.refusal()
            previous.write_bytes(kept)
        self.file.unlink()
        self.assertIn(FROM_PREVIOUS, self.goes_on(), "the newest one is missing")
        previous.unlink()
        self.refusal()

    def test_nothing_else_is_replaced(self):
        """A file that is no checkpoint, the file of the results and a checkpoint from which the run does not go on stay as they are: exit
        code 5. --force replaces a checkpoint, and nothing else."""
        other = self.folder / "other"
        for file, contents, more, said in (
            (other, b"precious", [], "exists already and is no checkpoint"),
            (other, b"precious", ["--force"], "exists already and is no checkpoint"),
            (pathlib.Path(f"{other}.previous"), b"precious", [], "exists already and is no checkpoint"),
            (self.folder / "refused.h5", None, [], "is the file of the results, too"),
            (self.file, self.file.read_bytes(), [], "--force replaces it"),
        ):
            with self.subTest(file=file.name, more=more):
                if contents is not None:
                    file.write_bytes(contents)
                outcome = harness.orrery(
                    "run",
                    *self.arguments,
                    f"--checkpoint={str(file).removesuffix('.previous')}",
                    f"--output={self.folder}/refused.h5",
                    "--max-walltime=1",
                    *more,
                )
                self.assertEqual(outcome.code, 5, outcome.err)
                self.assertIn(said, outcome.err)
                self.assertEqual(file.read_bytes() if file.exists() else None, contents)
                if file != self.file:
                    file.unlink(missing_ok=True)
        before = self.file.read_bytes()
        outcome = harness.orrery(
            "run",
            *self.arguments,
            f"--checkpoint={self.file}",
            f"--output={self.folder}/new.h5",
            "--max-walltime=1",
            "--force",
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        self.assertNotEqual(self.file.read_bytes(), before)

    def test_a_damaged_checkpoint_is_not_kept(self):
        """A run goes on from the generation before, because the newest one is damaged. When it writes its first checkpoint, the damaged one
        goes, and the generation before stays."""
        previous = pathlib.Path(f"{self.file}.previous").read_bytes()
        self.file.write_bytes(self.file.read_bytes()[:-1])
        self.assertIn(FROM_PREVIOUS, self.goes_on(f"--checkpoint={self.file}"))
        self.assertEqual(pathlib.Path(f"{self.file}.previous").read_bytes(), previous)
        newest = self.file.read_bytes()
        self.assertNotIn(FROM_PREVIOUS, self.goes_on(f"--checkpoint={self.folder}/./{self.file.name}"))
        self.assertEqual(
            pathlib.Path(f"{self.file}.previous").read_bytes(),
            newest,
            "a whole one is kept, whatever its name looks like",
        )

    def test_a_link_stays(self):
        """A symbolic link leads to both generations, and stays."""
        (self.folder / "scratch").mkdir()
        link = self.folder / "link.chk"
        link.symlink_to("scratch/run.chk")
        outcome = harness.orrery(
            "run",
            *self.arguments,
            f"--checkpoint={link}",
            checkpoints.OFTEN,
            f"--output={self.folder}/new.h5",
            "--max-walltime=2",
            "--quiet",
        )
        self.assertEqual(outcome.code, 75, outcome.err)
        self.assertTrue(link.is_symlink())
        self.assertEqual({path.name for path in (self.folder / "scratch").iterdir()}, {"run.chk", "run.chk.previous"})
        self.file = link
        self.goes_on()

    def test_a_pipe_is_refused(self):
        """A pipe is no checkpoint, and cannot become one or the generation before. It is not waited for."""
        other = self.folder / "other.chk"
        for pipe in (self.folder / "pipe", pathlib.Path(f"{other}.previous")):
            os.mkfifo(pipe)
        self.assertIn("it is a FIFO", self.refusal(f"--checkpoint={other}", code=5))
        self.file = self.folder / "pipe"
        self.assertIn("it is no regular file", self.refusal())

    def test_a_failed_write_loses_nothing(self):
        """A folder that no longer takes files costs a warning: the run goes on, and the checkpoint before is kept."""
        folder = self.folder / "taken"
        folder.mkdir()
        file = folder / "run.chk"
        run = harness.Background(
            self,
            harness.launch(
                [
                    "run",
                    *SMALL,
                    NOISE,
                    harness.FOR_EVER,
                    f"--checkpoint={file}",
                    checkpoints.OFTEN,
                    f"--output={self.folder}/full.h5",
                    "--progress=none",
                ]
            ),
        )
        run.wait_until(lambda: run.text().count("checkpoint at simulated") > 1, "writing checkpoints")
        folder.rename(self.folder / "moved")
        run.wait_until(lambda: "no checkpoint could be written" in run.text(), "failing to write")
        kept = (self.folder / "moved/run.chk").read_bytes()
        (self.folder / "moved").rename(folder)
        seen = run.text().count("checkpoint at simulated")
        run.wait_until(lambda: run.text().count("checkpoint at simulated") > seen, "writing again")
        run.signal("SIGUSR1")
        self.assertEqual(run.end().code, 75)
        self.assertTrue(kept)

    def test_check_tells_the_size(self):
        """`orrery check` says about how large a checkpoint is. It is right within a factor of 3."""
        outcome = harness.orrery("check", *SMALL, f"--checkpoint={self.file}")
        self.assertEqual(outcome.code, 0, outcome.err)
        number, prefix = re.search(r"a checkpoint takes about ([\d.]+) ([kMG]?)B", outcome.out).groups()
        told = float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[prefix]
        size = self.file.stat().st_size
        self.assertTrue(size / 3 < told < size * 3, f"{told} bytes are told, {size} are taken")
        self.assertNotIn("packets", outcome.out)

    def test_check_tells_of_packets(self):
        """The size that `orrery check` tells leaves out the packets under way, and says so."""
        outcome = harness.orrery("check", *SMALL, "--network=packet", f"--checkpoint={self.file}")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertRegex(outcome.out, r"a checkpoint takes about [\d.]+ [kM]?B, and what the packets under way take")


if __name__ == "__main__":
    harness.main()
