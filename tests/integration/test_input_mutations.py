#!/usr/bin/python3
"""Spoilt files of other tools end in a clear error or in a result.

usage: test_input_mutations.py [--seed N] [--count N] [FOLDER ...]

The inputs: the real files of shared/inputs, by folder, each with a few random changes (test_fuzz.py). The command that takes such files
ends with exit code 0, or with 3 and a message that names the file and quotes no more than 200 characters of it. --count is the number of
spoilt files for each folder."""
import argparse
import gzip
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import test_fuzz  # noqa: E402

OPTIONS = argparse.Namespace(seed=1, count=4, folders=[])
LARGEST = 4 << 20  # bytes of a file that is spoilt
LONGEST_LINE = 1500  # characters of a line of messages, which may have several quotes
SYSTEM = """system:
  network: {dimensions: [{shape: FullyConnected, size: 8, bandwidth: 50 GB/s, latency: 500 ns}]}
  collectives: {custom: {all-reduce: "%s"}}
"""


def show_trace(path, folder):
    return harness.orrery("show", "trace", path)


def convert(path, folder):
    return harness.orrery("convert", path, f"--output={folder / 'system.yaml'}", "--force")


def show_plan(path, folder):
    config = folder / "plan-system.yaml"
    config.write_text(SYSTEM % path)
    return harness.orrery("show", "collective", config, "--kind=all-reduce", "--bytes=1 MiB")


def show_system(path, folder):
    """Takes a file of ASTRA-sim together with good ones: as the network, else as the system; a trace by itself."""
    if path.suffix == ".et":
        return show_trace(path, folder)
    good = harness.shared("inputs/astra-configs")
    files = {"network": good / "hgx_h100_8gpu.yml", "system": good / "hgx_h100_8gpu.json"}
    files["network" if b"npus_count" in path.read_bytes() else "system"] = path
    return harness.orrery("show", "topology", *(f"--{kind}-configuration={file}" for kind, file in files.items()))


COMMANDS = {"kineto": show_trace, "chakra-et": show_trace, "chakra-json": show_trace, "text": show_trace, "goal": show_trace,
            "nccl-topo": convert, "infragraph": convert, "ns3-htsim": convert, "msccl": show_plan, "mscclpp": show_plan,
            "astra-configs": show_system}


def contents_of(path):
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def is_text(data):
    try:
        return 0 < len(data) < 1 << 20 and b"\0" not in data and bool(data.decode())
    except UnicodeDecodeError:
        return False


class InputMutations(harness.Folder):
    def mutate(self, name):
        files = sorted(path for path in (harness.SHARED / "inputs" / name).rglob("*")
                       if path.is_file() and not path.name.startswith(("facts", "replay", "README")) and path.stat().st_size <= LARGEST)
        self.assertTrue(files, name)
        for number in range(OPTIONS.count):
            seed = OPTIONS.seed * 1_000_003 + number
            draw = random.Random(f"{name} {seed}")
            source = draw.choice(files)
            with self.subTest(folder=name, seed=seed, file=source.name):
                data = contents_of(source)
                spoilt = test_fuzz.spoil_text(draw, data.decode()) if is_text(data) else test_fuzz.spoil_bytes(draw, data)
                path = self.folder / source.name.removesuffix(".gz")
                path.write_bytes(spoilt)
                try:
                    outcome = COMMANDS[name](path, self.folder)
                except harness.TookTooLong as late:
                    self.fail(str(late))
                self.assertIn(outcome.code, (0, 3), outcome.err)
                self.assertNotIn("fault of Orrery", outcome.err)
                self.assertLess(max(map(len, outcome.err.splitlines()), default=0), LONGEST_LINE, outcome.err)
                if outcome.code == 3:
                    self.assertIn(path.name[:40], outcome.err)

    def test_spoilt_inputs_end_in_order(self):
        """A few files of each folder of shared/inputs, spoilt: a result, or one error that names the file."""
        harness.shared("inputs")
        for name in OPTIONS.folders or COMMANDS:
            self.mutate(name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=OPTIONS.seed)
    parser.add_argument("--count", type=int, default=OPTIONS.count)
    parser.add_argument("folders", nargs="*", help="of shared/inputs")
    OPTIONS = parser.parse_args()
    harness.main(sys.argv[:1])
