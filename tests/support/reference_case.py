"""A reference case: a small system and workload with the finish times that ASTRA-sim 2 gives (tests/reference/README.md)."""
import json

import harness

FOLDER = harness.SOURCE / "tests/reference/cases"


class Case:
    def __init__(self, folder):
        description = json.loads((folder / "expected.json").read_text())
        self.folder, self.name = folder, folder.name
        self.kind, self.flags, self.num_npus = description["class"], description["flags"], description["npus"]
        self.expected = description["expected"]

    def arguments(self):
        return [f"--workload-configuration={self.folder / 'workload'}"] + harness.files_in(self.folder) + self.flags

    def finish_ns(self, network="unaware"):
        """What ASTRA-sim gave, or None if it gave nothing."""
        reference = self.expected.get(network)
        return reference["finish_ns"] if reference and reference["status"] == "ok" else None


def all_cases():
    return [Case(folder) for folder in sorted(FOLDER.iterdir()) if (folder / "expected.json").exists()]
