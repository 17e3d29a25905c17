"""Reads reference cases: small systems and workloads with the finish times that ASTRA-sim 2 gives (tests/reference/README.md)."""
import json
import pathlib

import harness

FOLDER = harness.SOURCE / "tests/reference/cases"


class Case:
    """One case: its class, the flags to pass, the number of NPUs and what ASTRA-sim gave."""

    def __init__(self, folder):
        description = json.loads((folder / "expected.json").read_text())
        self.folder, self.name = folder, folder.name
        self.kind, self.flags, self.num_npus = description["class"], description["flags"], description["npus"]
        self.expected = description["expected"]

    def arguments(self):
        """Returns the flags for the workload, the system and the options of the case."""
        return [f"--workload-configuration={self.folder / 'workload'}"] + harness.files_in(self.folder) + self.flags

    def finish_ns(self, network="unaware"):
        """Returns ASTRA-sim's finish time of every NPU in ns, or None if ASTRA-sim gave no result."""
        reference = self.expected.get(network)
        return reference["finish_ns"] if reference and reference["status"] == "ok" else None


def all_cases(folder=FOLDER, names=()):
    """Returns the cases in a folder: those named, or all in ascending order of their names. Raises KeyError for an unknown name."""
    cases = {path.parent.name: path.parent for path in sorted(pathlib.Path(folder).glob("*/expected.json"))}
    return [Case(cases[name]) for name in names or cases]
