"""Topologies of NCCL and RCCL: GPUs, links of a GPU, NVSwitches and NICs, as the comments of the system give them, and a system that runs."""
import pathlib
import re
import tempfile

import harness
import pairs

REFUSED = {"graphs": "this is a graph of NCCL", "topology": "this is XML of hwloc"}


def numbers(text, start):
    """Returns the numbers of the comment that begins so; none if there is no such comment."""
    for line in text.splitlines():
        if line.startswith(f"# {start}: "):
            return [int(number) for number in re.findall(r"\d+", line.split(":", 1)[1])]
    return []


def difference(path, fact):
    with tempfile.TemporaryDirectory(prefix="orrery-inputs-") as folder:
        made = pathlib.Path(folder) / "system.yaml"
        done = harness.orrery("convert", str(path), f"--output={made}")
        if fact["root"] in REFUSED:
            return (
                ""
                if done.code == 3 and REFUSED[fact["root"]] in done.err
                else f"not refused as it should be: {done.err}"
            )
        if done.code != 0:
            return f"refused: {done.err.strip()}"
        text = made.read_text()
        timed = harness.orrery("show", "collective", str(made), "--kind=all-reduce", "--bytes=1 MiB")
        if timed.code != 0:
            return f"the system is refused: {timed.err.strip()}"
    nics = [list(nic) for nic in re.findall(r"^# NIC: (.*) with (\d+) Mbit/s$", text, re.MULTILINE)]
    found = {
        "gpus": numbers(text, "GPUs")[0],
        "links_of_a_gpu": numbers(text, "links of a GPU"),
        "nvswitches": numbers(text, "NVSwitches")[0],
        "nics": nics,
    }
    wrong = {key: (fact[key], value) for key, value in found.items() if fact[key] != value}
    return f"(expected, found) {wrong}" if wrong else ""


def check(folder, facts):
    for path, known in pairs.by_file(folder, facts):
        yield known[0]["file"], pairs.difference(difference, path, known) if path else "not there"
