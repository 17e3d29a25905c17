#!/usr/bin/python3
"""The tools that the tests themselves use: exit codes of test scripts, traces that are written and read, and reference cases."""
import os
import pathlib
import re
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import case_worker  # noqa: E402
import chakra  # noqa: E402
import harness  # noqa: E402
import reference_case  # noqa: E402
from chakra import Node, Typed  # noqa: E402


class ExitCodes(harness.Folder):
    """Scripts of two tests each, of which some pass, fail or are skipped."""

    def exit_code(self, first, second, set_up="pass"):
        """Returns the exit code of a script whose two tests and whose setUpClass have these bodies."""
        script = self.folder / "test.py"
        script.write_text(
            textwrap.dedent(
                f"""
            import sys
            sys.path.insert(0, {str(harness.SOURCE / "tests/support")!r})
            import harness
            class Tests(harness.Folder):
                @classmethod
                def setUpClass(cls): {set_up}
                def test_first(self): {first}
                def test_second(self): {second}
            harness.main()
            """
            )
        )
        return subprocess.run([sys.executable, script], capture_output=True, timeout=harness.PATIENCE).returncode

    def test_a_script_is_skipped_only_if_all_its_tests_are(self):
        """Tests that pass beside one that is skipped end with 0; if all are skipped, one by one or together, the script ends with 77."""
        skip = "harness.shared('no such file')"
        self.assertEqual(self.exit_code("pass", "pass"), 0)
        self.assertEqual(self.exit_code("pass", skip), 0)
        self.assertEqual(self.exit_code(skip, skip), harness.SKIPPED)
        self.assertEqual(self.exit_code("pass", "pass", set_up=skip), harness.SKIPPED)

    def test_a_failure_beside_skipped_tests_is_a_failure(self):
        """A test that fails or raises ends the script with 1, whatever the other one does."""
        skip, fail = "harness.shared('no such file')", "self.fail()"
        self.assertEqual(self.exit_code(fail, "pass"), 1)
        self.assertEqual(self.exit_code(skip, fail), 1)
        self.assertEqual(self.exit_code("pass", "raise OSError"), 1)


class Waiting(harness.Folder):
    """Commands that run while the test goes on."""

    def test_a_command_that_ends_too_soon_is_a_failure(self):
        """The command ends before the condition that the test waits for: the test fails and shows what the command printed."""
        command = harness.Background(self, ["sh", "-c", "echo too soon; exit 3"])
        with self.assertRaisesRegex(AssertionError, "(?s)ended with 3 before never.*too soon"):
            command.wait_until(lambda: False, "never")

    def test_a_command_still_running_is_killed(self):
        """A command that sleeps is killed with its children when the test ends."""
        command = harness.Background(self, ["sh", "-c", "echo begun; sleep 1000; true"])
        command.wait_until(lambda: "begun" in command.text(), "begun")
        command.kill()
        self.assertEqual(command.end().code, -9)


FAKE = """\
import json, os, signal, sys, time
RANKS, folder = int(sys.argv[1]), sys.argv[2]
for rank in range(RANKS):
    if os.fork() == 0:
        break
else:
    print("the worker's own words", flush=True)
    while True:
        pid, status = os.wait()
        if status != 0:
            os.killpg(0, signal.SIGKILL)
        RANKS -= 1
        if RANKS == 0:
            sys.exit(0)
with open(f"{folder}/answers.{rank}", "w", buffering=1) as answers, open(f"{folder}/jobs.{rank}") as jobs:
    for line in jobs:
        job = json.loads(line)
        word = job["command"][1] if "command" in job else "digest"
        answer = {"id": job["id"], "code": 0, "out": f"{rank} of {job.get('ranks')}\\n", "err": ""}
        if word == "digest":
            answer = {"id": job["id"], "digests": {"/time": open(job["digest"]).read()}}
        elif word == "fail" and rank > 0:
            answer |= {"code": 10 + rank, "err": f"error of {rank}\\n"}
        elif word == "long":
            answer["out"] = "x" * int(job["command"][2])
        elif word == "ends" and rank != 1:
            time.sleep(1000)
        elif word == "ends":
            answer |= {"code": 134, "err": "thrown", "ends": True}
        elif word == "refuse":
            answer = {"id": None, "error": "no such job"}
        elif word == "hang" and rank == 1:
            time.sleep(1000)
        elif word == "die" and rank == 1:
            sys.exit(9)
        elif word == "garbage":
            answers.write("{what?\\n")
            continue
        elif word == "other":
            answer["id"] += 1
        answers.write(json.dumps(answer) + "\\n")
        if answer.get("ends"):
            sys.exit(1)
"""


class Protocol(harness.Folder):
    """The harness's side of the worker, with a program of three ranks in its place that answers, fails, dies or hangs as it is told."""

    def setUp(self):
        super().setUp()
        (self.folder / "fake.py").write_text(FAKE)

    def start(self, ranks=3):
        worker = case_worker.Worker([sys.executable, self.folder / "fake.py", ranks], ranks)
        self.addCleanup(worker.close)
        return worker

    def run_job(self, worker, *words, ranks=3, patience=harness.PATIENCE):
        return worker.run(list(words), ranks, self.folder, patience)[0]

    def test_answers_of_all_ranks_are_one_outcome(self):
        """The outputs stand in the order of ranks, the first code that is not 0 is the code, ranks without a job get none, an answer may be
        long, and the worker ends with 0."""
        worker = self.start()
        self.assertEqual(self.run_job(worker, "echo"), (0, "0 of 3\n1 of 3\n2 of 3\n", ""))
        self.assertEqual(self.run_job(worker, "fail"), (11, "0 of 3\n1 of 3\n2 of 3\n", "error of 1\nerror of 2\n"))
        self.assertEqual(self.run_job(worker, "fail", ranks=0), (0, "0 of 0\n", ""))
        self.assertEqual(len(self.run_job(worker, "long", "1000000", ranks=2).out), 2000000)
        self.assertEqual(self.run_job(worker, "echo", "x" * 100000, ranks=2).out, "0 of 2\n1 of 2\n")
        (self.folder / "file").write_text("5")
        self.assertEqual(worker.digests(self.folder / "file", harness.PATIENCE), {"/time": "5"})
        self.assertEqual(worker.end(harness.PATIENCE), "")

    def test_a_rank_that_fails_alone_ends_the_worker(self):
        """Its answer is the outcome, though the other ranks never answer, and the worker is gone."""
        worker = self.start()
        self.assertEqual(self.run_job(worker, "ends"), (134, "1 of 3\n", "thrown"))
        self.assertFalse(worker.is_alive())

    def test_a_refused_job_is_an_error(self):
        """A job that the worker cannot read is an error with the job and the worker's reason; the next job runs."""
        worker = self.start()
        with self.assertRaisesRegex(case_worker.RefusedJob, "refuse.*no such job"):
            self.run_job(worker, "refuse")
        self.assertEqual(self.run_job(worker, "echo", ranks=1).out, "0 of 1\n")

    def test_a_worker_that_dies_is_an_error(self):
        """A rank that dies, an answer that is no JSON and one to another job are errors with the job and the output of the worker."""
        for word, what in (
            ("die", "ended with -9"),
            ("garbage", "has answered b'{what"),
            ("other", "has answered another job"),
        ):
            worker = self.start()
            with self.subTest(word), self.assertRaisesRegex(
                case_worker.WorkerFailed, rf"(?s){what}.*'{word}'.*the worker's own words"
            ):
                self.run_job(worker, word)
            self.assertFalse(worker.is_alive())

    def test_a_job_that_hangs_is_killed(self):
        """After its time the worker and its ranks are killed."""
        worker = self.start()
        ranks = case_worker.children(worker.process.pid)
        with self.assertRaisesRegex(case_worker.TookTooLong, "hang"):
            self.run_job(worker, "hang", patience=1)
        self.assertEqual([rank for rank in ranks if case_worker.is_alive(rank)], [])

    def workers(self, fresh):
        """Returns workers of which those of one rank are the program of this test."""
        found = case_worker.Workers(None, [], lambda arguments, ranks, timeout, cwd: fresh, harness.PATIENCE)
        found.workers[1] = self.start(1)
        return found

    def test_a_different_answer_of_a_fresh_process_is_noted(self):
        """A process of its own with the worker's answer leaves nothing; one with another code or output is noted, and so is none."""
        for fresh, number in (((0, "0 of 0\n", ""), 0), ((1, "0 of 0\n", ""), 1), ((0, "1 of 0\n", "error"), 2)):
            workers = self.workers(harness.Outcome(*fresh))
            workers.run(["echo"], 0, harness.PATIENCE, self.folder)
            self.assertEqual((len(workers.compared), len(workers.differences)), (1, number), workers.differences)

    def test_files_are_compared_by_their_digests(self):
        """Equal files do not differ, others do by the names of their datasets, and a file that is written anew is read anew."""
        workers = self.workers(None)
        one, other = self.folder / "one", self.folder / "other"
        one.write_text("1")
        other.write_text("2")
        self.assertEqual(workers.different_datasets(one, other), ["/time"])
        other.unlink()
        other.write_text("1")
        self.assertEqual(workers.different_datasets(one, other), [])
        self.assertEqual(workers.end(), [])
        self.assertIsNone(workers.different_datasets(one, self.folder / "fake.py"))

    def test_a_script_with_a_different_answer_fails(self):
        """A script without unittest, and one with it, end with 1 if the program in a process of its own prints something else than the worker,
        and with 0 if it prints what the worker answers."""
        runner, program, script = self.folder / "runner", self.folder / "program", self.folder / "script.py"
        runner.write_text(f"#!/bin/sh\nexec {sys.executable} {self.folder / 'fake.py'} 1 $1\n")
        runner.chmod(0o755)
        head = f"import sys\nsys.path.insert(0, {str(harness.SOURCE / 'tests/support')!r})\nimport harness\n"
        job = "assert harness.orrery('run', 'x.yaml').out == '0 of 0\\n'"
        environment = dict(os.environ, ORRERY_BINARY=str(program), ORRERY_CASE_RUNNER=str(runner), ORRERY_FRESH="")
        for text in (job, f"class Tests(harness.Folder):\n    def test_job(self): {job}\nharness.main()"):
            script.write_text(head + text)
            for printed, code in (("0 of 0", 0), ("0 of 1", 1)):
                program.write_text(f"#!/bin/sh\necho {printed}\n")
                program.chmod(0o755)
                done = subprocess.run(
                    [sys.executable, script], capture_output=True, text=True, timeout=harness.PATIENCE, env=environment
                )
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stderr.count("out of run x.yaml on 0 ranks: '0 of 0") > 0, code == 1, done.stderr)

    def test_what_can_be_repeated(self):
        """What prints, and what writes results or replaces files, is compared with a second run; what goes on from a checkpoint is not, and no
        command that would find its own file in the way."""
        for words, can in (
            ("show topology c.yaml --json", True),
            ("run c.yaml --output=r.h5", True),
            ("flows f.yaml --json=r.json --force", True),
            ("flows f.yaml --json=r.json", False),
            ("show timeline r.h5 --chrome t.json", False),
            ("run c.yaml --output=r.h5 --restart=c", False),
        ):
            self.assertEqual(case_worker.can_repeat(words.split()), can, words)

    def test_what_runs_in_a_worker(self):
        """Runs and checks do; help, Python, many ranks, limits of time and a changed environment do not."""
        workers = self.workers(None)
        workers.program = "case_runner"
        for arguments, ranks, can in (
            (["run", "c.yaml"], 8, True),
            (["show", "topology"], 0, True),
            (["run", "c.yaml"], 16, False),
            (["run", "--help"], 0, False),
            (["run", "--max-walltime=1"], 0, False),
            (["show", "results", "r.h5"], 0, False),
            (["report", "r.h5"], 0, False),
            ([], 0, False),
        ):
            self.assertEqual(workers.can_run(arguments, ranks), can, arguments)
        workers.environment["ORRERY_OTHER"] = "1"
        self.assertFalse(workers.can_run(["run", "c.yaml"], 0))


class Sets(harness.Folder):
    """A script of one short and one long test."""

    def test_the_gate_leaves_out_long_tests(self):
        """Both tests run without ORRERY_GATE, and only the short one with it."""
        script = self.folder / "test.py"
        script.write_text(
            textwrap.dedent(
                f"""
            import sys
            sys.path.insert(0, {str(harness.SOURCE / "tests/support")!r})
            import harness
            class Tests(harness.Folder):
                def test_short(self): pass
                @harness.long
                def test_long(self): pass
            @harness.long
            class Others(harness.Folder):
                def test_other(self): pass
            harness.main()
            """
            )
        )
        for gate, expected in (("", {"short", "long", "other"}), ("1", {"short"})):
            done = subprocess.run(
                [sys.executable, script],
                capture_output=True,
                text=True,
                timeout=harness.PATIENCE,
                env=dict(os.environ, ORRERY_GATE=gate),
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(set(re.findall(r"^test_(\w+) .*ok$", done.stderr, re.M)), expected)


class SlowestTests(harness.Folder):
    """Two tests of ctest, of which one computes for a second."""

    def run_tests(self, limit):
        compute = "import time\nwhile time.process_time() < 1: pass"
        (self.folder / "compute.py").write_text(compute)
        (self.folder / "CTestTestfile.cmake").write_text(
            f'add_test(long {sys.executable} "{self.folder}/compute.py")\nadd_test(short true)\n'
        )
        return harness.run_script(
            "tests/support/run_tests.py", f"--limit={limit}", self.folder / "x.xml", "--test-dir", self.folder
        )

    def test_a_test_over_the_limit_fails(self):
        """Over a limit of 0.1 s it is named and the exit code is 1, however many other programs run; within a limit of an hour it is 0. The
        slowest test comes first in the list."""
        long = self.run_tests(0.1)
        self.assertEqual(long.code, 1, long.out + long.err)
        self.assertEqual(re.findall(r"^(\w+) takes \d+ s", long.out, re.M), ["long"])
        self.assertEqual(self.run_tests(3600).code, 0)
        self.assertEqual(re.findall(r"s  (\w+)", (self.folder / "x.txt").read_text()), ["long", "short"])


class Traces(harness.Folder):
    def test_what_is_written_is_read(self):
        """A trace with attributes of every type that is read, plain and compressed, has the same nodes when it is read."""
        nodes = [
            Node(7, chakra.COMP, "compute", duration=5, is_cpu_op=True, num_ops=1 << 40),
            Node(
                3,
                chakra.COLL,
                "sum",
                [7],
                [1],
                comm_type=chakra.ALL_REDUCE,
                involved_dim=[True, False],
                pg_name="tp",
                inputs=["x", "16"],
            ),
            Node(1, chakra.SEND, "to", comm_dst=2, comm_tag=Typed("uint32", 9)),
        ]
        for compressed in (False, True):
            path = self.folder / "trace.et"
            chakra.write(path, nodes, compressed=compressed)
            found = chakra.read(path)
            for written, read in zip(nodes, found, strict=True):
                for name in ("id", "type", "name", "data_deps", "ctrl_deps", "duration"):
                    self.assertEqual(getattr(read, name), getattr(written, name))
                plain = {name: getattr(value, "value", value) for name, value in read.attributes.items()}
                self.assertEqual(
                    plain, {name: getattr(value, "value", value) for name, value in written.attributes.items()}
                )


class ReferenceCases(harness.Folder):
    CASE = '{"class": "exact", "flags": [], "npus": 4, "expected": {"unaware": {"status": "ok", "finish_ns": [%d, %d, %d, %d]}}}'

    def write_case(self, name, finish_ns):
        """Writes a case of 4 NPUs that compute for 5 us each, which are to finish at this time."""
        folder = self.folder / name
        folder.mkdir()
        harness.write_workload(folder, [[Node(1, chakra.COMP, duration=5)]] * 4)
        harness.System().write(folder)
        (folder / "expected.json").write_text(self.CASE % ((finish_ns,) * 4))

    def check(self, *arguments):
        return harness.run_script("tests/reference/check_cases.py", f"--cases={self.folder}", *arguments)

    def test_any_folder_of_cases_is_checked(self):
        """Two cases, one of which expects a wrong time: a line for each, `1 passed, 1 failed`, exit code 1; the right one alone passes."""
        self.write_case("right", 5000)
        self.write_case("wrong", 5001)
        self.assertEqual([case.name for case in reference_case.all_cases(self.folder)], ["right", "wrong"])
        both = self.check()
        lines = both.out.splitlines()
        self.assertEqual((both.code, len(lines), lines[-1]), (1, 3, "1 passed, 1 failed"), both.out)
        self.assertEqual(lines[0], "ok   exact  right: exact")
        self.assertRegex(lines[1], "^FAIL exact  wrong: NPU 0 finishes at 5000000 ps, expected 5001000 ps")
        right = self.check("--ranks=2", "right")
        self.assertEqual((right.code, right.out.splitlines()[-1]), (0, "1 passed, 0 failed"), right.out)

    def test_an_unknown_case_is_an_error(self):
        """A name that no case has ends with exit code 1 and a message that gives the name."""
        self.write_case("right", 5000)
        unknown = self.check("left")
        self.assertEqual(unknown.code, 1)
        self.assertIn("'left'", unknown.err)


if __name__ == "__main__":
    harness.main()
