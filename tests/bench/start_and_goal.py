#!/usr/bin/env python3
"""Measures what a run costs beside the simulation: a tiny run, and the reading of a large GOAL schedule.

usage: start_and_goal.py BIN [BIN...] [--repeat N] [--ranks N]

Runs each program in turn, --repeat times (default 15), and prints the least CPU time of a run and its peak of memory:

    start       orrery --version
    tiny run    2 ranks of a GOAL schedule, one message, with results.h5
    GOAL ring   a ring all-reduce of --ranks ranks (default 512: 523,264 messages, 45 MB), with results.h5

The programs need no MPI launcher. Figures compare only within one call."""
import argparse
import os
import pathlib
import tempfile

TINY = "num_ranks 2\nrank 0 {\na: calc 1500\nb: send 4096b to 1 tag 7\nb requires a\n}\nrank 1 {\na: recv 4096b from 0 tag 7\n}\n"


def ring(num_ranks):
    """Returns a schedule in which each rank passes messages on, one after the other, as schedgen writes it."""
    lines = [f"num_ranks {num_ranks}"]
    for rank in range(num_ranks):
        lines.append(f"\nrank {rank} {{")
        for i in range(2 * (num_ranks - 1)):
            lines.append(f"l{2 * i + 1}: send 2048b to {(rank + 1) % num_ranks} tag {i}")
            if i:
                lines.append(f"l{2 * i + 1} requires l{2 * i}")
            lines.append(f"l{2 * i + 2}: recv 2048b from {(rank - 1) % num_ranks} tag {i}")
        lines.append("}")
    return "\n".join(lines) + "\n"


def prepare(folder, name, schedule, num_ranks):
    """Writes a schedule and a configuration that runs it; returns the arguments of orrery."""
    (folder / f"{name}.goal").write_text(schedule)
    config = folder / f"{name}.yaml"
    dimension = f"{{shape: Ring, size: {num_ranks}, bandwidth: 50 GB/s, latency: 500 ns}}"
    config.write_text(
        f"system: {{network: {{dimensions: [{dimension}]}}}}\nworkload: {{traces: {{all: {name}.goal}}}}\n"
    )
    return ["run", config, f"--output={folder / 'r.h5'}", "--force"]


def measure(command):
    """Returns the CPU time in ms and the peak of memory in MiB of a command. The peak of its parent is no part of it."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, 1, 2)],
        )
        _, status, usage = os.wait4(pid, 0)
        os.write(writer, f"{status} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}".encode())
        os._exit(0)
    os.waitpid(middle, 0)
    os.close(writer)
    status, seconds, kib = os.read(reader, 100).split()
    os.close(reader)
    if int(status):
        raise SystemExit(f"{' '.join(command)} failed")
    return 1000 * float(seconds), float(kib) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="BIN")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--ranks", type=int, default=512)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = {
            "start": ["--version"],
            "tiny run": prepare(folder, "tiny", TINY, 2),
            "GOAL ring": prepare(folder, "ring", ring(arguments.ranks), arguments.ranks),
        }
        print("| work | program | CPU ms | MiB |\n|---|---|---|---|")
        for case, words in cases.items():
            runs = {program: [] for program in arguments.programs}
            for _ in range(arguments.repeat):
                for program, measured in runs.items():
                    measured.append(measure([program, *map(str, words)]))
            for program, measured in runs.items():
                print(f"| {case} | {program} | {min(m[0] for m in measured):.1f} | {max(m[1] for m in measured):.1f} |")


if __name__ == "__main__":
    main()
