#!/usr/bin/python3
"""Random combinations of all keys, networks, jobs, perturbations, folding, cells, checkpoints and ranks.

usage: random_options.py [--seed N] [--cases N] [--seconds S] [--replay SEED] [--keep FOLDER]

Each case is a small system with a small workload, drawn from its seed (drawing.py). It runs once, and a few relations are tried that tell
from its results what those of other runs must be (relations.py). No run may end as a fault of Orrery, crash or hang. A combination that is
refused with a message is no failure.

A case that fails is made smaller: keys are left out one by one while it still fails. What is left stands in a folder of its own, with
the commands that show the failure. --replay draws one case, prints its configuration and tries all relations.

ORRERY_CASE_RUNNER names the program of the worker that runs the cases; a build with sanitizers has one too."""
import argparse
import collections
import copy
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [
    str(pathlib.Path(__file__).resolve().parent),
    str(pathlib.Path(__file__).resolve().parents[2] / "support"),
]

import drawing  # noqa: E402
import harness  # noqa: E402
import json  # noqa: E402
import relations  # noqa: E402
from keys import Keys  # noqa: E402

RELATIONS_OF_A_CASE = 4
MOST_TRIES = 250  # runs that make a failing case smaller


def all_keys():
    return Keys(json.loads(harness.run_fresh(["show", "keys", "--json"]).out))


class Failure:
    """One relation that does not hold for one case."""

    def __init__(self, seed, case, relation, text, commands):
        self.seed, self.case, self.relation, self.text, self.commands = seed, case, relation, text, commands

    def configuration(self):
        """Returns the configuration as a text; empty for a case in ASTRA-sim's files."""
        return drawing.yaml(self.case.config) if self.case.config else ""

    def kind(self):
        """Returns what tells failures apart that have different causes, roughly."""
        for word in (
            "crash",
            "hang",
            "fault of Orrery",
            "please report",
            "Sanitizer",
            "runtime error",
            "datasets differ",
        ):
            if word in self.text:
                return word
        return "other"

    def save(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.case.write(folder)
        (folder / "README.txt").write_text(
            f"seed {self.seed}, relation {self.relation.__name__}: {self.relation.__doc__}\n\n{self.text}\n\n"
            + "\n".join(self.commands)
            + "\n"
        )


class Session:
    def __init__(self, arguments):
        self.arguments = arguments
        self.runner = relations.Runner(harness.case_runner(), arguments.patience, arguments.ranks)
        self.keys = all_keys()
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="orrery-random-options-"))
        self.ends, self.tried, self.refusals = collections.Counter(), collections.Counter(), collections.Counter()
        self.failures = []

    def trial(self, case):
        folder = self.scratch / "case"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return relations.Trial(self.runner, case, folder)

    def try_case(self, seed, share):
        """Draws a case, runs it and tries some relations."""
        case = drawing.Drawing(self.keys, seed).case()
        trial = self.trial(case)
        self.ends[
            "accepted"
            if trial.code == 0
            else "stuck"
            if trial.code == 4
            else "refused"
            if trial.code in (2, 3)
            else "failed"
        ] += 1
        if trial.code in (2, 3, 4):
            lines = trial.err.split("error:")[-1].strip().split("\n")
            self.refusals[
                re.sub(
                    r"config.yaml:\d+: ",
                    "",
                    lines[min(1, len(lines) - 1) if "several faults" in lines[0] else 0].strip(),
                )[:200]
            ] += 1
        choice = random.Random(f"{seed} relations")
        if trial.code == 0:
            chosen = [*relations.ALWAYS, *choice.sample(relations.OF_RESULTS, len(relations.OF_RESULTS))]
            share += len(relations.ALWAYS)
        elif trial.wrong or trial.code == 4:
            chosen = [relations.first_run]
        else:
            chosen = [relations.refused_on_ranks] if choice.random() < 0.1 or share > 9 else []
        for relation in chosen:
            failures = len(self.failures)
            share -= self.try_relation(seed, case, trial, relation)
            if share <= 0 or len(self.failures) > failures:  # other cases have run in the folder
                break

    def try_relation(self, seed, case, trial, relation):
        """Returns whether the relation says something about the case."""
        before = len(trial.commands)
        text = relations.failure(relation, trial, random.Random(f"{seed} {relation.__name__}"))
        if text is None:
            return False
        self.tried[relation.__name__] += 1
        if not text:
            return True
        failure = Failure(seed, case, relation, text, trial.commands[:1] + trial.commands[max(before, 1) :])
        print(f"seed {seed}: {relation.__name__}: {text}", flush=True)
        if not self.arguments.no_shrinking:
            failure = self.smaller(failure)
            print(f"  made smaller: {failure.text}")
        folder = self.arguments.keep / f"{seed}-{relation.__name__}"
        failure.save(folder)
        print(
            f"  {folder}\n"
            + "".join(f"    {line}\n" for line in failure.commands)
            + "".join(f"    | {line}\n" for line in failure.configuration().splitlines()),
            flush=True,
        )
        self.failures.append(failure)
        return True

    # ---- smaller cases ----

    def fails(self, case, like):
        """Returns the failure of a smaller case by the relation of another one; None if it does not fail so."""
        trial = self.trial(case)
        if (
            trial.code != 0
            and like.relation is not relations.first_run
            and like.relation is not relations.refused_on_ranks
        ):
            return None
        text = relations.failure(like.relation, trial, random.Random(f"{like.seed} {like.relation.__name__}"))
        if not text:
            return None
        found = Failure(like.seed, case, like.relation, text, trial.commands)
        return found if found.kind() == like.kind() else None

    def smaller(self, failure):
        tries = 0
        removed = True
        while removed and tries < MOST_TRIES:
            removed = False
            for path in places(failure.case.documents):
                if tries >= MOST_TRIES:
                    break
                case = without(failure.case, path)
                if case is None:
                    continue
                tries += 1
                if found := self.fails(case, failure):
                    failure, removed = found, True
        return failure

    def summary(self, seconds):
        total = self.ends.total()
        if self.arguments.verbose:
            for text, count in self.refusals.most_common(15):
                print(f"  refused {count}: {text}")
            print(
                "  seconds of runs by the number of ranks: "
                + ", ".join(f"{ranks}: {time:.0f}" for ranks, time in sorted(self.runner.seconds.items()))
            )
        relations_text = ", ".join(f"{name} {count}" for name, count in sorted(self.tried.items()))
        print(
            f"{total} cases in {seconds:.0f} s and {self.runner.count} runs: {self.ends['accepted']} accepted ({100 * self.ends['accepted'] / max(total, 1):.0f} %), "
            f"{self.ends['refused']} refused, {self.ends['stuck']} stuck; {len(self.keys.used)} keys; {relations_text}; {len(self.failures)} failures",
            flush=True,
        )


def places(documents):
    """Returns the places in documents that may be left out, the outermost ones first."""
    found, level = [], [((name,), document) for name, document in documents.items()]
    while level:
        following = []
        for path, value in level:
            items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            following += [((*path, name), item) for name, item in items]
        found += [path for path, _ in following]
        level = following
    return found


def without(case, path):
    """Returns a copy of a case without one place of its documents; None if that is gone already."""
    documents = copy.deepcopy(case.documents)
    try:
        place = documents
        for name in path[:-1]:
            place = place[name]
        del place[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    return drawing.Case(documents, case.traces, case.files, case.flags)


def check_keys(keys, count):
    """Draws cases without a run. Returns the keys that none of them has, though nothing says why."""
    for seed in range(count):
        drawing.Drawing(keys, 10**6 + seed).case()
    return keys.never_drawn()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed; default: %(default)s")
    parser.add_argument("--cases", type=int, help="number of cases; default: 100, or any number with --seconds")
    parser.add_argument("--seconds", type=float, help="draw cases for so long")
    parser.add_argument("--replay", type=int, metavar="SEED", help="print the case of a seed and try all relations")
    parser.add_argument(
        "--keep",
        type=pathlib.Path,
        default=pathlib.Path("random-options-failures"),
        help="folder of what fails; default: %(default)s",
    )
    parser.add_argument(
        "--patience", type=float, default=harness.PATIENCE, help="seconds after which a run hangs; default: %(default)s"
    )
    parser.add_argument(
        "--relations",
        type=int,
        default=RELATIONS_OF_A_CASE,
        help="relations that are tried for each case; default: %(default)s",
    )
    parser.add_argument(
        "--ranks",
        type=int,
        default=relations.MOST_RANKS,
        help="most MPI ranks, for a loaded machine; 0: none; default: %(default)s",
    )
    parser.add_argument("--no-shrinking", action="store_true", help="do not make failing cases smaller")
    parser.add_argument(
        "--keys", type=int, metavar="N", help="draw N cases without a run, and fail if a key is never drawn"
    )
    parser.add_argument("--verbose", action="store_true", help="list what is refused")
    arguments = parser.parse_args()
    if harness.case_runner() is None:
        print("skipped: ORRERY_CASE_RUNNER names no program")
        sys.exit(harness.SKIPPED)
    code = 0
    if arguments.keys:
        if missing := check_keys(all_keys(), arguments.keys):
            print("keys that no case has, without a reason in keys.py: " + ", ".join(missing))
            code = 1
    session = Session(arguments)
    begin = time.monotonic()
    try:
        if arguments.replay is not None:
            case = drawing.Drawing(session.keys, arguments.replay).case()
            print(
                drawing.yaml(case.config)
                if case.config
                else json.dumps(case.documents, indent=1) + "\n" + " ".join(case.flags)
            )
            session.try_case(arguments.replay, share=99)
            print(session.refusals.most_common(1))
        else:
            seed = arguments.seed
            last = (
                seed + arguments.cases
                if arguments.cases is not None
                else seed + 100
                if arguments.seconds is None
                else None
            )
            while (last is None or seed < last) and (
                arguments.seconds is None or time.monotonic() - begin < arguments.seconds
            ):
                session.try_case(seed, arguments.relations)
                seed += 1
                if seed % 100 == 0 and arguments.verbose:
                    session.summary(time.monotonic() - begin)
        wrong = session.runner.end()
    finally:
        shutil.rmtree(session.scratch, ignore_errors=True)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    session.summary(time.monotonic() - begin)
    sys.exit(1 if session.failures or wrong else code)


if __name__ == "__main__":
    main()
