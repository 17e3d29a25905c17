#!/usr/bin/python3
"""Damaged results end every command that reads them in order: with exit code 0 or 3 and a message that names the file, never with a crash,
a hang, a traceback or "a fault of Orrery".

usage: test_damaged_results.py [--seed N] [--count N]

The file: results of 4 NPUs with a timeline. Half of the files get random bytes; in the others a dataset or attribute is removed, or gets
random values, another size or another type."""
import argparse
import os
import pathlib
import random
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import test_fuzz  # noqa: E402
import test_lost_writes  # noqa: E402

OPTIONS = argparse.Namespace(seed=1, count=60)
EXTREMES = (0, -1, 1, 2, 7, 127, 255, 1 << 31, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40)


def datasets(results):
    """Returns the names of all datasets of an open file."""
    import h5py

    names = []
    results.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


def other_values(draw, values):
    """Returns the values with some replaced by extreme ones."""
    import numpy

    values = numpy.atleast_1d(values).copy()
    if values.dtype == object:
        values[draw.randrange(len(values))] = draw.choice(
            ("", "\x1b[31m", "x" * 70000, "\udc00".encode("utf-8", "surrogatepass").decode("latin-1"))
        )
        return values
    for _ in range(draw.choice((1, 2, len(values)))):
        extreme = draw.choice(EXTREMES)
        values[draw.randrange(len(values))] = (
            numpy.array(extreme, dtype=object).astype(float)
            if values.dtype.kind == "f"
            else numpy.array([extreme % (1 << 64)], dtype=numpy.uint64).astype(values.dtype)[0]
        )
    return values


def spoil_dataset(draw, results):
    """Changes one dataset: its values, size or type; or removes it."""
    name = draw.choice(datasets(results))
    values, attributes = results[name][()], dict(results[name].attrs)
    kind = draw.randrange(5)
    if results[name].size and kind < 3:
        changed = other_values(draw, values)
        results[name][...] = changed if results[name].ndim else changed[0]
        return f"{name}: other values"
    del results[name]
    if kind == 3:
        return f"{name}: removed"
    if getattr(values, "ndim", 0) and len(values):
        results[name] = draw.choice(
            (
                values[:-1],
                values[:0],
                list(values) * 2,
                [float(i) for i in range(len(values))],
                [b"text"] * len(values),
                values[0],
            )
        )
    else:
        results[name] = draw.choice((b"text", 3.5, [1, 2], -1))
    for key, value in attributes.items():
        if key in ("units", "long_name", "description", "values"):
            results[name].attrs[key] = value
    return f"{name}: another shape or type"


def spoil_attribute(draw, results):
    """Changes or removes one attribute of a group or dataset."""
    owners = [results]
    results.visititems(lambda name, item: owners.append(item))
    owner = draw.choice([owner for owner in owners if len(owner.attrs)] + [results] * len(owners))
    key = draw.choice([key for key in owner.attrs if key not in ("DIMENSION_LIST", "REFERENCE_LIST")] or ["units"])
    if key in owner.attrs:
        del owner.attrs[key]
    if draw.random() < 0.6:
        owner.attrs[key] = draw.choice((-1, 0, 1 << 62, 2.5, b"\xff\xfe", "", "x" * 1000, [1, 2], ["a", "b"]))
    return f"attribute {key} of {owner.name}"


def spoil(draw, path):
    """Damages the file. Returns what was done."""
    import h5py

    if draw.random() < 0.5:
        path.write_bytes(test_fuzz.spoil_bytes(draw, path.read_bytes()))
        return "bytes"
    with h5py.File(path, "r+") as results:
        return draw.choice((spoil_dataset, spoil_dataset, spoil_attribute))(draw, results)


class DamagedResults(harness.Folder):
    def setUp(self):
        super().setUp()
        config = self.folder / "config.yaml"
        config.write_text(test_lost_writes.CONFIG)
        self.good = self.run_once([config, "--timeline", "--record-load"], name="good.h5")

    def commands(self, path):
        """Returns the commands that read the file, the cheap ones first."""
        return (
            ["show", "kernel", path],
            ["show", "timeline", path, "--chrome", self.folder / "timeline.json", "--force"],
            ["show", "scaling", path, "--event-time=200ns"],
            ["show", "results", path],
            ["compare", self.good, path],
            ["report", path, f"--output={self.folder / 'page.html'}", "--force"],
        )

    def check(self, command, path):
        """Runs a command on a damaged file and says what is wrong with its end; nothing if it is in order."""
        try:
            outcome = harness.orrery(*command, timeout=60)
        except harness.TookTooLong:
            return "not done after 60 s"
        if outcome.code == 0:
            return "quotes a control character" if "\x1b" in outcome.out + outcome.err else None
        if outcome.code != 3:
            return f"exit code {outcome.code}: {outcome.err[-1500:]}"
        if (
            len(harness.errors(outcome)) != 1
            or path.name not in outcome.err
            or "Traceback" in outcome.err
            or "fault of Orrery" in outcome.err
        ):
            return f"no clear message: {outcome.err[-1500:]}"
        return None

    def test_any_byte_that_has_changed_is_found(self):
        """A byte that has changed, wherever it is, is found by the checksum of the file. All commands say so."""
        contents = self.good.read_bytes()
        path = self.folder / "damaged.h5"
        for number in range(12):
            place = random.Random(number).randrange(len(contents) - 24)
            path.write_bytes(contents[:place] + bytes([contents[place] ^ 0x10]) + contents[place + 1 :])
            outcome = harness.orrery(*self.commands(path)[number % 6])
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn("checksum", outcome.err)

    def test_an_end_that_has_changed_is_found(self):
        """The end of the file is zeros, as a power failure leaves it, or has more bytes than it had. The checksum is at this end."""
        contents = self.good.read_bytes()
        path = self.folder / "damaged.h5"
        ends = [contents[:-size] + bytes(size) for size in (8, 17, 24, 100, 2048, 3000)] + [
            contents + bytes(size) for size in (1, 24, 5000)
        ]
        for number, end in enumerate(ends):
            path.write_bytes(end)
            for command in (self.commands(path)[0], self.commands(path)[number % 6]):
                outcome = harness.orrery(*command)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn("checksum", outcome.err)

    def test_a_pipe_in_place_of_a_file(self):
        """Nobody writes to a named pipe, and a device has no end: every command that reads results refuses both at once. So do tables of
        kernels and checkpoints."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for path in (pipe, pathlib.Path("/dev/zero")):
            for command in self.commands(path) + (["compare", path, path],):
                outcome = harness.orrery(*command, timeout=30)
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn(f"{path}: this is not a regular file", outcome.err)
        table = ["--set=system.compute.model=table", f"--set=system.compute.table={pipe}"]
        for more in (table, [f"--restart={pipe}"]):
            outcome = harness.orrery(
                "run", self.folder / "config.yaml", f"--output={self.folder / 'new.h5'}", *more, timeout=30
            )
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn("regular file", outcome.err)

    def test_every_command_ends_in_order(self):
        """Each damaged file is read by three commands without Python and, of each four files, by one in Python."""
        count = OPTIONS.count // 4 if harness.FEWER_CASES else OPTIONS.count
        refused = 0
        for number in range(count):
            draw = random.Random(OPTIONS.seed * 1_000_003 + number)
            path = self.folder / "damaged.h5"
            shutil.copy(self.good, path)
            damage = spoil(draw, path)
            commands = self.commands(path)
            for command in commands[:3] + ((commands[3 + number // 4 % 3],) if number % 4 == 0 else ()):
                with self.subTest(number=number, damage=damage, command=" ".join(map(str, command[:2]))):
                    wrong = self.check(command, path)
                    self.assertIsNone(wrong)
            refused += harness.orrery("show", "kernel", path).code == 3
        self.assertGreater(refused, count // 20, "some files are damaged where a command reads")
        self.assertLess(refused, count, "some files are damaged elsewhere")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=OPTIONS.seed)
    parser.add_argument("--count", type=int, default=OPTIONS.count)
    OPTIONS, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    harness.main()
