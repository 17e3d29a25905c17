#!/usr/bin/python3
"""Measures what a folded run costs each of several ranks, and prints a Markdown table of memory, CPU time and instructions.

usage: folding_ranks.py [--orrery BIN] [--ranks 1,2,4] [--instructions] [--compare-with BIN] [CONFIG.yaml]

The default is configs/scale/gpt3-175b-65536.yaml, and configs/scale/gpt3-175b-1048576.yaml takes some seconds for each row. It needs GNU
time. With --instructions each rank also runs under callgrind (valgrind), about 50 times slower: the columns are of the rank with most
instructions and of all ranks, without those of MPI, which mostly wait. With --compare-with the table has rows of another program too, and
the results of both are compared. Exits with 1 if the results of the NPUs depend on the number of ranks or on the program."""
import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import h5py
import numpy

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def command_of(program, arguments, ranks, output, wrapper=()):
    words = [
        *wrapper,
        program,
        "run",
        arguments.config,
        "--fold",
        "--record-iterations=0",
        "--quiet",
        "--force",
        "--output",
        output,
    ]
    return [str(word) for word in ([SOURCE / "scripts/mpirun.sh", ranks] if ranks > 1 else []) + words]


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def simulate(program, arguments, ranks, folder):
    """Runs once. Returns the finish times of the NPUs, the MiB of each rank (until its end, with the writing of results, which
    /kernel/peak_memory does not know), and the CPU seconds of all of them."""
    before, sizes = cpu_seconds(), folder / "sizes"
    sizes.unlink(missing_ok=True)
    wrapper = ["/usr/bin/time", "--append", f"--output={sizes}", "--format=%M"]
    subprocess.run(
        command_of(program, arguments, ranks, folder / "results.h5", wrapper),
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=1200,
    )
    memory = numpy.array([int(line) / 1024 for line in sizes.read_text().split()])
    with h5py.File(folder / "results.h5") as file:
        return file["npus/finish_time"][...], memory, cpu_seconds() - before


def instructions_in(path):
    """Returns the instructions in a file of callgrind, without those of MPI, which mostly wait."""
    names, total, is_counted, is_call = {}, 0, True, False
    for line in path.read_text().splitlines():
        if found := re.fullmatch(r"ob=\((\d+)\)(?: (.*))?", line):
            if found[2]:
                names[found[1]] = found[2]
            is_counted = not re.search(r"libmpi|libopen-|libevent|/mca_", names[found[1]])
        elif found := re.fullmatch(r"cob=\((\d+)\) (.*)", line):
            names[found[1]] = found[2]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[+*\d-]\S* \d+$", line):
            if is_counted and not is_call:  # the line after a call has what the callee costs, which stands there too
                total += int(line.split()[1])
            is_call = False
    return total


def instructions(program, arguments, ranks, folder):
    """Returns the instructions of each rank."""
    wrapper = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.%p"]
    subprocess.run(
        command_of(program, arguments, ranks, folder / "callgrind.h5", wrapper),
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=3600,
    )
    counts = []
    for path in folder.glob("callgrind.[0-9]*"):
        counts.append(instructions_in(path))
        path.unlink()
    return counts


def table(arguments, folder):
    counted = " M instructions, largest rank | all ranks |" if arguments.instructions else ""
    print("| program | ranks | largest rank, MiB | all ranks, MiB | CPU s |" + counted)
    print("|---|---|---|---|---|" + ("---|---|" if arguments.instructions else ""))
    first = None
    for ranks in arguments.ranks:
        for program in arguments.programs:
            finish, memory, seconds = simulate(program, arguments, ranks, folder)
            first = finish if first is None else first
            if not numpy.array_equal(finish, first):
                sys.exit(f"the NPUs' finish times on {ranks} ranks with {program} differ from the first ones")
            row = f"| {program.name} | {ranks} | {memory.max():,.0f} | {memory.sum():,.0f} | {seconds:.2f} |"
            if arguments.instructions:
                counts = instructions(program, arguments, ranks, folder)
                row += f" {max(counts) / 1e6:,.0f} | {sum(counts) / 1e6:,.0f} |"
            print(row, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", type=pathlib.Path, default=SOURCE / "configs/scale/gpt3-175b-65536.yaml")
    parser.add_argument("--orrery", type=pathlib.Path, default=SOURCE / "build/release/bin/orrery")
    parser.add_argument("--compare-with", type=pathlib.Path, help="another program, whose rows are printed too")
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--instructions", action="store_true", help="count instructions with callgrind")
    arguments = parser.parse_args()
    arguments.programs = [path for path in (arguments.compare_with, arguments.orrery) if path]
    with tempfile.TemporaryDirectory() as name:
        table(arguments, pathlib.Path(name))


if __name__ == "__main__":
    main()
