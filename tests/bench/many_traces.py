#!/usr/bin/python3
"""Measures what the reading of tens of thousands of different traces costs on several ranks, and prints a Markdown table.

usage: many_traces.py [--orrery BIN] [--config CONFIG.yaml] [--layers N] [--micro-batches N] [--ranks 1,2,4] [--folder DIR]

It writes the traces of one training step (default: GPT-3 175B with 16 layers on 16,384 NPUs, one file per NPU), changes the operations of
every compute node of every file by a random share below 1 %, so that no two files are equal, and runs `orrery run` on each number of ranks.
It prints how long the ranks took until the simulation began, and the memory of all ranks, as the results tell them. With --alike the files
stay as they were generated. It exits with 1 if the results of the NPUs depend on the number of ranks."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import h5py
import numpy
import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# The name of an attribute, the tag of its number, and the number in seven bits a byte. The last two bytes hold the highest bits.
OPERATIONS = re.compile(rb"num_opsH([\x80-\xff]+)[\x80-\xff][\x00-\x7f]", re.DOTALL)


def make_different(paths):
    """Writes random low bits into the operations of each compute node of each file. Returns how many nodes were changed."""
    changed = 0
    for number, path in enumerate(paths):
        data = numpy.frombuffer(path.read_bytes(), numpy.uint8).copy()
        spans = [match.span(1) for match in OPERATIONS.finditer(data.tobytes())]
        places = numpy.concatenate([numpy.arange(*span) for span in spans])
        data[places] = numpy.random.default_rng(number).integers(0x80, 0x100, places.size, numpy.uint8)
        path.write_bytes(data.tobytes())
        changed += len(spans)
    return changed


def launch(arguments, ranks, *words):
    """Runs a command on so many ranks. Returns its wall seconds."""
    command = [arguments.orrery, *words]
    if ranks > 1:
        command = [SOURCE / "scripts/mpirun.sh", ranks, *command]
    begin = time.monotonic()
    outcome = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=3600)
    if outcome.returncode != 0:
        sys.exit(f"many_traces.py: '{' '.join(map(str, command))}' ended with {outcome.returncode}:\n{outcome.stderr}")
    return time.monotonic() - begin


def write_configuration(source, folder):
    """Writes a configuration that reads the traces instead of generating them. Returns its path."""
    configuration = yaml.safe_load(source.read_text())
    system = configuration["system"]
    if "base" in system:
        system["base"] = str((source.parent / system["base"]).resolve())
    configuration["workload"] = {"traces": str(folder / "step"), "groups": str(folder / "step.json")}
    path = folder / "step.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=SOURCE / "build/release/bin/orrery", type=pathlib.Path)
    parser.add_argument("--config", default=SOURCE / "configs/scale/gpt3-175b-16384.yaml", type=pathlib.Path)
    parser.add_argument("--layers", default=16, type=int)
    parser.add_argument("--micro-batches", default=4, type=int)
    parser.add_argument("--ranks", default="1,2,4", help="numbers of ranks, separated by commas")
    parser.add_argument("--alike", action="store_true", help="leave the files as they were generated")
    parser.add_argument("--folder", help="where the files are written; default: a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        launch(
            arguments,
            1,
            "generate",
            arguments.config,
            "--layers",
            arguments.layers,
            "--micro-batches",
            arguments.micro_batches,
            "--output",
            folder / "step",
        )
        paths = sorted(folder.glob("step.*.et"))
        if not arguments.alike:
            print(f"{make_different(paths):,} compute nodes changed")
        print(f"{len(paths):,} files of {sum(path.stat().st_size for path in paths) / 1e6:.0f} MB\n")
        configuration = write_configuration(arguments.config, folder)
        print(
            "| ranks | preparation, s | M nodes/s | whole run, s | MiB of the largest rank | MiB of all ranks | bytes of a node |"
        )
        print("|---|---|---|---|---|---|---|")
        first = None
        for ranks in map(int, arguments.ranks.split(",")):
            wall = launch(
                arguments, ranks, "run", configuration, "--output", folder / "results.h5", "--force", "--quiet"
            )
            with h5py.File(folder / "results.h5") as file:
                finish, nodes = file["npus/finish_time"][...], int(file["npus/nodes_completed"][...].sum())
                memory, seconds = file["kernel/peak_memory"][...], file.attrs["preparation_time"]
            first = finish if first is None else first
            if not numpy.array_equal(finish, first):
                sys.exit(
                    f"many_traces.py: the NPUs' finish times on {ranks} ranks differ from those on the first number of ranks"
                )
            print(
                f"| {ranks} | {seconds:.1f} | {nodes / seconds / 1e6:.2f} | {wall:.1f} | {memory.max() / 2**20:,.0f} | "
                f"{memory.sum() / 2**20:,.0f} | {memory.sum() / nodes:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
