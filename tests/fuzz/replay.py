#!/usr/bin/python3
"""A fuzz target without libFuzzer accepts or refuses its seeds, and inputs that are made of them, always the same ones.

usage: replay.py PROGRAM [--runs N]

In the gate (ORRERY_GATE) the inputs are a tenth of the usual ones, the first tenth."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import make_seeds

RUNS, FEWER = 2000, {"mscclpp": 50}  # its inputs took longest
PART = 10 if os.environ.get("ORRERY_GATE") else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--runs", type=int)
    options = parser.parse_args()
    target = options.program.name.removeprefix("fuzz_")
    runs = options.runs or FEWER.get(target, RUNS) // PART
    kept = pathlib.Path(os.environ.get("ORRERY_SCRATCH", tempfile.gettempdir()))
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="orrery-fuzz-") as folder:
        seeds = pathlib.Path(folder) / "seeds"
        number = make_seeds.write(seeds, target)
        if number == 0:
            sys.exit(f"{target} has no seeds")
        environment = {**os.environ, "TMPDIR": folder}
        command = [
            options.program,
            f"-runs={runs}",
            f"-artifact_prefix={kept}/fuzz_{target}-",
            f"-dict={seeds}/{target}.dict",
            seeds / target,
        ]
        ended = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
    sys.exit(
        0 if ended.returncode == 0 else f"{target}: the target ended with {ended.returncode}; the message is above"
    )


if __name__ == "__main__":
    main()
