#!/usr/bin/python3
"""The pages that list keys: their lists are those of the program."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

PAGE = harness.SOURCE / "docs/configuration.md"
UPDATE = "scripts/update_key_tables.py"


def all_lists():
    """The text of the documents that have lists of keys, the page first."""
    others = (
        "docs/keys-system.md",
        "docs/keys-packets.md",
        "docs/keys-workload.md",
        "docs/keys-run.md",
        "docs/astra-sim.md",
        "docs/exploration.md",
        "docs/user-guide.md",
        "docs/campaign.md",
        "docs/cluster-time.md",
        "docs/serving.md",
    )
    return PAGE.read_text() + "".join((harness.SOURCE / other).read_text() for other in others)


class Lists(harness.Folder):
    def test_documents_are_up_to_date(self):
        """Every list of keys that the program prints is in one document, as the program prints it."""
        outcome = harness.run_script(UPDATE, "--check", "--orrery", harness.BINARY)
        self.assertEqual(outcome.code, 0, outcome.err)

    def test_an_old_list_is_found_and_replaced(self):
        """A list in which a default was changed by hand is a fault with --check, and is as before after the script wrote it."""
        document = self.folder / "page.md"
        text = all_lists()
        changed = text.replace("default: `10 ns`", "default: `11 ns`")
        self.assertNotEqual(changed, text)
        document.write_text(changed)
        outcome = harness.run_script(UPDATE, "--check", "--orrery", harness.BINARY, document)
        self.assertEqual(outcome.code, 1)
        self.assertIn("not up to date", outcome.err)
        self.assertEqual(document.read_text(), changed)
        self.assertEqual(harness.run_script(UPDATE, "--orrery", harness.BINARY, document).code, 0)
        self.assertEqual(document.read_text(), text)

    def test_a_list_that_is_missing_or_unknown_is_a_fault(self):
        """A document without the list of `run`, or with one of a name that no list has, is a fault that names the list."""
        document = self.folder / "page.md"
        text = all_lists()
        document.write_text(text.replace("<!-- keys: run -->", ""))
        self.assertIn(
            "'run' is in 0 places", harness.run_script(UPDATE, "--check", "--orrery", harness.BINARY, document).err
        )
        document.write_text(text.replace("<!-- keys: run -->", "<!-- keys: walk -->"))
        self.assertIn(
            "no list named 'walk'", harness.run_script(UPDATE, "--check", "--orrery", harness.BINARY, document).err
        )


class Presets(harness.Folder):
    """Configurations in a folder far from the repository name a system and a model."""

    def config(self, system="dgx-h100-superpod", model="llama3-8b"):
        path = self.folder / "config.yaml"
        path.write_text(f"system: {system}\nworkload:\n  model: {model}\n  parallel: {{tp: 8, dp: 128}}\n")
        return path

    def figures(self, model):
        """Returns what `orrery generate` says of the model."""
        outcome = harness.orrery("generate", self.config(model=model), "--dry-run")
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome.out

    def test_presets_are_found_from_any_folder(self):
        """A preset may be named alone, with its folder, as a base, and with or without .yaml: all these give the same system or model."""
        names = [
            "llama3-8b",
            "llama3-8b.yaml",
            "models/llama3-8b",
            "models/llama3-8b.yaml",
            "{base: llama3-8b}",
            str(harness.SOURCE / "configs/models/llama3-8b.yaml"),
        ]
        self.assertEqual(len({self.figures(name) for name in names}), 1)
        topologies = set()
        for system in ("dgx-h100-superpod", "systems/dgx-h100-superpod.yaml", "{base: dgx-h100-superpod}"):
            outcome = harness.orrery("show", "topology", self.config(system))
            self.assertEqual(outcome.code, 0, outcome.err)
            topologies.add(outcome.out)
        self.assertEqual(len(topologies), 1)
        outcome = harness.orrery("show", "topology", self.config("{chunks: 3}"), "--set=system=dgx-h100-superpod")
        self.assertEqual((outcome.code, outcome.out), (0, topologies.pop()))

    def test_a_file_beside_the_configuration_comes_first(self):
        """A model beside CONFIG.yaml that has the name of a preset, but 2 layers, hides the preset."""
        preset = self.figures("llama3-8b")
        (self.folder / "llama3-8b.yaml").write_text(
            f"{{base: {harness.SOURCE}/configs/models/llama3-8b.yaml, layers: 2}}\n"
        )
        self.assertNotEqual(self.figures("llama3-8b"), preset)
        self.assertEqual(self.figures("llama3-8b"), self.figures("llama3-8b.yaml"))

    def test_a_missing_preset_is_one_message(self):
        """A model and a system that are not there: exit code 3, one message each with the line, where Orrery searched, and a similar name."""
        outcome = harness.orrery("check", self.config("dgx-h100-superpot", "lama3-8b.yaml"))
        self.assertEqual(outcome.code, 3)
        configs = str(harness.SOURCE.resolve() / "configs")
        for line, key, name, near, kind in (
            (1, "system", "dgx-h100-superpot", "dgx-h100-superpod", "systems"),
            (3, "workload.model", "lama3-8b.yaml", "llama3-8b", "models"),
        ):
            said = [text for text in outcome.err.splitlines() if f"config.yaml:{line}: key '{key}'" in text]
            self.assertEqual(len(said), 1, outcome.err)
            self.assertIn(f"found '{name}', but there is no such file", said[0])
            self.assertIn(f"Did you mean the preset '{near}'?", said[0])
            for place in (f"{self.folder}/{name}", f"{configs}/{name}", f"{configs}/{kind}/{name}"):
                self.assertIn(place, said[0])


class Examples(harness.Folder):
    def setUp(self):
        super().setUp()
        self.text = PAGE.read_text()
        self.first = re.search(r"```yaml\n(.*?)```", self.text, re.DOTALL).group(1)
        (self.folder / "run.yaml").write_text(self.first)

    def test_the_resolved_configuration_repeats_the_run(self):
        """/config/resolved of a run is a configuration whose run has the same finish times and the same resolved configuration."""
        first = self.run_resolved("run.yaml", "first.h5")
        (self.folder / "again.yaml").write_text(first[0])
        self.assertEqual(self.run_resolved("again.yaml", "again.h5"), first)

    def test_a_base_and_what_differs_from_it(self):
        """A file that stands on another one, directly and over a third one, gives what the whole file gives. A base that stands on itself, one
        that is missing and one that is no mapping are refused at the line that names it."""
        deeper = self.folder / "deeper"
        deeper.mkdir()
        (deeper / "top.yaml").write_text("base: ../middle.yaml\nsystem:\n  collectives: {chunks: 3}\n")
        (self.folder / "middle.yaml").write_text(
            "base: run.yaml\nsystem: {collectives: {chunks: 2, active-chunks: 2}}\n"
        )
        (self.folder / "whole.yaml").write_text(self.first)
        whole = harness.orrery(
            "run",
            "whole.yaml",
            "--output=whole.h5",
            "--set=system.collectives.chunks=3",
            "--set=system.collectives.active-chunks=2",
            cwd=self.folder,
        )
        self.assertEqual(whole.code, 0, whole.err)
        self.assertEqual(
            self.run_resolved("deeper/top.yaml", "top.h5")[1],
            [int(time) for time in harness.finish_times(self.folder / "whole.h5")],
        )
        for name, text, said in (
            ("loop.yaml", "base: loop.yaml\n", "which stands on this file"),
            ("gone.yaml", "base: nothing.yaml\n", "nothing.yaml"),
            ("list.yaml", "base: a-list.yaml\n", "the keys of a CONFIG.yaml"),
        ):
            (self.folder / "a-list.yaml").write_text("[1, 2]\n")
            (self.folder / name).write_text(text)
            outcome = harness.orrery("check", name, cwd=self.folder)
            self.assertNotEqual(outcome.code, 0, name)
            self.assertIn(said, outcome.err)

    def run_resolved(self, configuration, output):
        """Runs a configuration; returns its resolved configuration and the finish times of its NPUs."""
        import h5py

        outcome = harness.orrery("run", configuration, "--output", output, cwd=self.folder)
        self.assertEqual(outcome.code, 0, outcome.err)
        with h5py.File(self.folder / output) as results:
            resolved = results["config/resolved"][()]
            return (resolved.decode() if isinstance(resolved, bytes) else resolved), results["npus/finish_time"][
                :
            ].tolist()

    def test_the_error_is_as_the_page_shows_it(self):
        """A bandwidth without a unit in the page's first example gives the message that the page shows."""
        shown = re.search(r" {4}(run\.yaml:\d+: key .*?)\n\n", self.text, re.DOTALL).group(1)
        (self.folder / "run.yaml").write_text(self.first.replace("50 GB/s", "400"))
        outcome = harness.orrery("check", "run.yaml", cwd=self.folder)
        self.assertEqual(outcome.code, 3)
        self.assertIn(" ".join(shown.split()), " ".join(outcome.err.split()))


if __name__ == "__main__":
    harness.main()
