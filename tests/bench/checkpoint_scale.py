#!/usr/bin/python3
"""Kills a large run at half of its simulated time, lets it go on on another number of ranks, and compares the results with those of a run
that was never stopped. Prints wall times, memory, and the size of the checkpoints and the time to write one.

usage: checkpoint_scale.py [--orrery BIN] [--ranks N] [--others N] [--interval SECONDS] CONFIG.yaml [OPTION ...]

OPTIONs go to `orrery run`. The default runs on 2 ranks and goes on on 1. Exits with 1 if the results differ."""
import argparse
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import harness  # noqa: E402

UNITS = {"ps": 1e-12, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}
WRITTEN = re.compile(r"checkpoint at simulated ([\d.]+) ([a-z]+): .*, (\d+) bytes? in ([\d.]+) s")


def command(options, ranks, arguments):
    prefix = [str(SOURCE / "scripts/mpirun.sh"), str(ranks)] if ranks > 1 else []
    return [*prefix, options.orrery, "run", options.config, *options.more, "--progress=none", "--force", *arguments]


def run(what, arguments):
    """Runs a command to its end. Returns what it printed."""
    start = time.monotonic()
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{what}: exit code {done.returncode}\n{done.stderr}")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{what}: {time.monotonic() - start:.1f} s, at most {memory:.0f} MiB in one process so far", flush=True)
    return done.stdout + done.stderr


def kill_at(seconds, arguments):
    """Starts a run, and kills all of its processes when it has written a checkpoint at this simulated time or later. Returns the lines about
    checkpoints."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    written = []
    for line in process.stdout:
        found = WRITTEN.search(line)
        if not found:
            continue
        written.append((float(found[1]) * UNITS[found[2]], int(found[3]), float(found[4])))
        if written[-1][0] >= seconds:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return written
    sys.exit(
        f"the run ended (exit code {process.wait()}) before half of its time and a checkpoint: choose a shorter --interval"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=os.environ.get("ORRERY_BINARY", str(SOURCE / "build/release/bin/orrery")))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--others", type=int, default=1)
    parser.add_argument("--interval", type=float, default=1)
    parser.add_argument("config")
    options, options.more = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="orrery-checkpoint-") as name:
        folder = pathlib.Path(name)
        checkpoint, whole, after = folder / "run.chk", folder / "whole.h5", folder / "after.h5"
        run(f"never stopped, {options.ranks} ranks", command(options, options.ranks, ["--quiet", f"--output={whole}"]))
        start = time.monotonic()
        written = kill_at(
            max(harness.finish_times(whole)) * 0.5e-12,
            command(
                options,
                options.ranks,
                [
                    f"--checkpoint={checkpoint}",
                    f"--checkpoint-interval={options.interval}",
                    f"--output={folder}/killed.h5",
                ],
            ),
        )
        print(
            f"killed after {time.monotonic() - start:.1f} s and {len(written)} checkpoints: {written[-1][1] / 1e6:.1f} MB each at last, "
            f"{min(seconds for *_, seconds in written):.2f} to {max(seconds for *_, seconds in written):.2f} s to write one"
        )
        run(
            f"goes on, {options.others} ranks",
            command(options, options.others, ["--quiet", f"--restart={checkpoint}", f"--output={after}"]),
        )
        difference = harness.difference(whole, after)
        print(difference or "the results are the same")
        return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
