#!/usr/bin/env python3
"""Spoils real inputs of others at random places: the program accepts each or refuses it with a clear message.

    mutate_inputs.py [DIR [FOLDER...]]

DIR (by default the folder inputs of shared/) is as for check_inputs.py. ORRERY_MUTATIONS says how many spoilt files of
each folder the program gets (by default 12). Each must end with exit code 0, or with 3 and a message that names the
file, quotes at most 200 characters of it and does not blame Orrery. Prints one line for each file that does not, and a
table of all folders; the bytes of a file that fails stay in the folder that the line names. Returns 1 if any failed,
and 77 if there is no DIR.
"""

import gzip
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "support"), str(here.parent / "integration")]

import check_inputs  # noqa: E402
import harness  # noqa: E402
import test_fuzz  # noqa: E402
from inputs import astra_configs, mscclpp  # noqa: E402

MOST_BYTES = 300_000  # of a file that is spoilt: larger ones take too long, 200 times
MOST_WORDS = 100_000  # of a text whose words are replaced; of longer ones bytes are changed
MOST_QUOTED = 200
NO_INPUTS = ("facts.txt", "README.md")
TRACES = ("chakra-et", "chakra-json", "goal", "kineto", "text")


def spoilt(draw, data):
    """Returns the bytes of a file with changes at random places; what was packed is packed again."""
    if data.startswith(b"\x1f\x8b") and draw.random() < 0.8:
        return gzip.compress(spoilt(draw, gzip.decompress(data)), compresslevel=1)
    is_text = len(data) < MOST_WORDS and not re.search(rb"[^\t\n\r\x20-\x7e]", data[:1000])
    return test_fuzz.spoil_text(draw, data.decode("latin-1")) if is_text else test_fuzz.spoil_bytes(draw, data)


def topology(system, network):
    return harness.orrery(
        "show", "topology", f"--system-configuration={system}", f"--network-configuration={network}", timeout=60
    )


def of_configurations(folder):
    """Yields each configuration of ASTRA-sim with what runs it: the other file of its pair stays as it is."""
    for each in [folder] + [path for path in sorted(folder.rglob("*")) if path.is_dir()]:
        for system, network in astra_configs.pairs_of(each):
            yield system, lambda path, network=network: topology(path, network)
            yield network, lambda path, system=system: topology(system, path)


def of_algorithms(folder):
    """Yields each algorithm that the facts name with what runs it: a collective of as many NPUs as it is for."""
    for fact in check_inputs.read_facts(folder):
        kind, ranks = mscclpp.KEYS.get(fact.get("collective", fact.get("coll")), "all-reduce"), fact["gpus"]
        for path in sorted(folder.rglob(fact["file"])):
            yield path, lambda path, kind=kind, ranks=ranks: mscclpp.time_of(path, kind, ranks)


def of_others(folder):
    """Yields each other file with what runs it: traces are shown or converted, systems are converted."""

    def convert(path, *more):
        return harness.orrery("convert", path, *more, f"--output={path.parent / 'converted'}", "--force", timeout=60)

    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name in NO_INPUTS or path.suffix == ".py" or not 0 < path.stat().st_size <= MOST_BYTES:
            continue
        if folder.name in TRACES:
            yield path, lambda path: harness.orrery("show", "trace", path, timeout=60)
            if path.stat().st_size < MOST_BYTES // 10:
                yield path, lambda path: convert(path, "--npus=4")
        else:
            yield path, convert


def runs_of(folder):
    if folder.name in ("msccl", "mscclpp"):
        return list(of_algorithms(folder))
    return list(of_configurations(folder) if folder.name == "astra-configs" else of_others(folder))


def fault(outcome, path, source):
    """Returns what is wrong with the end of the program for a spoilt file, beside whose source others may lie; empty if nothing is."""
    errors = harness.errors(outcome)
    if outcome.code not in (0, 3):
        return f"exit code {outcome.code}: {outcome.err.strip()[-600:]}"
    if "fault of Orrery" in outcome.err:
        return outcome.err.strip()[:600]
    if outcome.code == 3 and str(path.parent) not in outcome.err and str(source.parent) not in outcome.err:
        return f"the message does not name the file: {outcome.err.strip()[:600]}"
    long = [line for line in errors if re.search(r"'[^']{%d,}'" % (MOST_QUOTED + 10), line.replace(str(path), ""))]
    return f"a quote is too long: {long[0][:600]}" if long else ""


def mutate(folder, count):
    """Runs spoilt files of a folder. Prints a line of the table and returns the number of those that do not end as they should."""
    runs = runs_of(folder)
    num_bad = num_accepted = 0
    for number in range(count if runs else 0):
        draw = random.Random(f"{folder.name} {number}")
        source, run = draw.choice(runs)
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="orrery-mutation-"))
        path = scratch / source.name
        path.write_bytes(spoilt(draw, source.read_bytes()))
        try:
            outcome = run(path)
            num_accepted += outcome.code == 0
            wrong = fault(outcome, path, source)
        except harness.TookTooLong as late:
            wrong = str(late)[:300]
        if wrong:
            print(f"  {folder.name} {number} ({path}): {wrong}")
            num_bad += 1
        else:
            shutil.rmtree(scratch)
    num = count if runs else 0
    print(f"{folder.name:<14} {num - num_bad} of {num} end in order, {num_accepted} of them accepted", flush=True)
    return num_bad


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else harness.SHARED / "inputs"
    if not root.is_dir():
        print(f"{root} is not there: skipped")
        return harness.SKIPPED
    count = int(os.environ.get("ORRERY_MUTATIONS", "12"))
    folders = [root / name for name in arguments[1:]] or sorted(path for path in root.iterdir() if path.is_dir())
    total = 0
    for folder in folders:
        total += mutate(folder, count)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
