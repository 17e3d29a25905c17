#!/usr/bin/python3
"""Spoilt input of any kind ends in order: with a documented exit code and a message that names the file, never with a crash, a hang or
"a fault of Orrery".

usage: test_fuzz.py [--seed N] [--count N]

The system: the small job of test_refusals.py, changed at random places. Bytes of traces are flipped, cut out, repeated or swapped; words
of the configuration are replaced by others of any kind. `orrery check` reads each job, `orrery run` some."""
import argparse
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import kineto  # noqa: E402
import test_refusals  # noqa: E402

OPTIONS = argparse.Namespace(seed=1, count=120)
CHECKED, RUN = (0, 3), (0, 3, 4)  # documented exit codes; a workload with a wrong value may be a good one, or get stuck
WORDS = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "4",
    "5",
    "18446744073709551616",
    "1e400",
    "0.5",
    "NaN",
    ".inf",
    "null",
    "~",
    "true",
    "[]",
    "{}",
    "[0]",
    '""',
    "''",
    '"x"',
    "Ring",
    "Switch",
    "ring",
    "direct0",
    "halvingDoubling",
    "&a [*a]",
    "*a",
    "!!binary x",
    "---",
    "...",
    "\t",
    "\n",
    ":",
    ",",
    "[",
    "]",
    "{",
    "}",
    '"',
    "#",
    "\0",
    "\xff",
    "999999999",
    "4294967296",
    "1 B/s",
    "1e300 GB/s",
    "1e-300 ns",
    "0 GB/s",
    "5 GB",
    "{npu}",
]


def spoil_bytes(random, data):
    """Returns the data with one to five changes at random places."""
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        at = random.randrange(len(data) + 1)
        length = random.choice((1, 1, 2, 8, 40))
        piece = data[at : at + length]
        kind = random.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = piece * random.choice((1, 1, 3))
        elif kind == 4:
            data[at:at] = bytes(random.randrange(256) for _ in range(length))
        else:
            other = random.randrange(len(data) + 1)
            data[other : other + len(piece)] = piece
    return bytes(data)


def spoil_text(random, text):
    """Returns the text with words replaced, taken out or repeated, now and then with bytes changed."""
    if random.random() < 0.2:
        return spoil_bytes(random, text.encode())
    pieces = re.findall(r"[\w.+-]+|\s+|[^\w\s]", text)
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(pieces))
        kind = random.randrange(4)
        if kind == 0:
            pieces[at] = random.choice(WORDS)
        elif kind == 1:
            pieces[at] = random.choice(pieces)
        elif kind == 2:
            del pieces[at : at + random.choice((1, 1, 4))]
        else:
            pieces[at:at] = pieces[at : at + random.choice((1, 4, 12))]
        pieces = pieces or [""]
    return "".join(pieces).encode("utf-8", "surrogateescape")


def spoil_list(random, texts):
    """Takes out, adds or replaces an entry of a list."""
    at = random.randrange(len(texts) + 1)
    kind = random.randrange(3)
    if kind == 0:
        del texts[at : at + 1]
    else:
        texts[at : at + (kind == 1)] = [
            random.choice(WORDS + ["x", "weights", "16.0", "-5.0", "1e19", "9223372036854775807"])
        ]


def spoil_nodes(random, traces):
    """Changes up to three values of nodes, so that the traces stay well-formed."""
    for _ in range(random.choice((1, 1, 2, 3))):
        nodes = random.choice(traces)
        node = random.choice(nodes)
        kind = random.randrange(5)
        number = random.choice((0, 1, 2, 3, 7, 20, 50, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -1, -(1 << 63)))
        if kind == 0:
            node.id = abs(number)
        elif kind == 1:
            node.type = random.randrange(12)
        elif kind == 2:
            random.choice((node.data_deps, node.ctrl_deps)).append(random.choice((number, random.choice(nodes).id)))
        elif kind == 3 and node.attributes:
            name = random.choice(list(node.attributes))
            if isinstance(node.attributes[name], list) and random.random() < 0.7:
                spoil_list(random, node.attributes[name])
                continue
            kinds = ("double", "float", "int32", "int64", "uint64", "sint64", "fixed64", "bool", "string", "bytes")
            which = random.choice(kinds)
            value = (
                str(number)
                if which in ("string", "bytes")
                else abs(number)
                if which == "uint64"
                else number % 2
                if which == "bool"
                else number
            )
            node.attributes[name] = chakra.Typed(which, value if which != "fixed64" else abs(number))
        else:
            nodes.remove(node)
            if not nodes:
                nodes.append(node)


class Fuzz(harness.Folder):
    def spoilt(self, random):
        """Writes a job with one spoilt part. Returns which part that is, and the arguments."""
        job = test_refusals.Job(self.folder)
        own = random.random() < 0.4
        if own:
            test_refusals.own_configuration(job, test_refusals.OWN + "run: {progress: none, watchdog: 20 s}\n")
        part = random.choice(("nodes", "trace", "trace", "configuration", "configuration", "groups"))
        if part == "nodes":
            spoil_nodes(random, job.traces)
        arguments = job.write()
        configurations = ["job.yaml"] if own else ["network.yml", "system.json", "remote_memory.json"]
        if part == "trace":
            path = job.file(random.randrange(4))
            path.write_bytes(spoil_bytes(random, path.read_bytes()))
        elif part != "nodes":
            path = self.folder / ("comm_group.json" if part == "groups" else random.choice(configurations))
            path.write_bytes(spoil_text(random, path.read_text()))
        return part, arguments

    def hold(self, outcome, codes, what):
        """Checks that an outcome has one of these exit codes, does not blame Orrery, and if the input was refused names a file."""
        text = f"{what}: exit code {outcome.code}\n{outcome.err}"
        self.assertIn(outcome.code, codes, text)
        self.assertNotIn("fault of Orrery", outcome.err, text)
        if outcome.code != 3:
            return
        self.assertTrue(harness.errors(outcome), text)
        self.assertIn(f"{self.folder}/", outcome.err, text)

    def test_spoilt_input_ends_in_order(self):
        """120 spoilt jobs: `check` accepts or refuses each; `run` completes, refuses or is stuck, and refuses whatever `check` refuses."""
        for number in range(OPTIONS.count):
            seed = OPTIONS.seed * 1_000_003 + number
            draw = random.Random(seed)
            with self.subTest(seed=seed):
                part, arguments = self.spoilt(draw)
                what = f"seed {seed}, spoilt {part}"
                try:
                    checked = harness.orrery("check", *arguments)
                    self.hold(checked, CHECKED, f"check, {what}")
                    if number % 4 > 0 and checked.code != 0:
                        continue
                    ran = harness.orrery(
                        "run", *arguments, f"--output={self.folder / 'results.h5'}", "--force", "--progress=none"
                    )
                    self.hold(ran, RUN, f"run, {what}")
                    if checked.code == 3:
                        self.assertEqual(ran.code, 3, f"{what}: check refuses it, run does not\n{checked.err}")
                except harness.TookTooLong as late:
                    self.fail(f"{what}: {late}")

    def test_spoilt_recordings_end_in_order(self):
        """60 jobs of two recordings of PyTorch's profiler, one of them spoilt: `check` and `run` accept or refuse each."""
        configuration = self.folder / "recorded.yaml"
        configuration.write_text(
            """system: {network: {dimensions: [{shape: Switch, size: 2, bandwidth: 10 GB/s, latency: 1 us}]}, compute: {roofline: false}}
workload: {traces: [{npus: 0, file: "%(at)s/0.json"}, {npus: 1, file: "%(at)s/1.json"}]}
run: {progress: none, watchdog: 20 s}
"""
            % {"at": self.folder}
        )
        for number in range(OPTIONS.count // 2):
            seed = OPTIONS.seed * 1_000_003 + number
            draw = random.Random(seed)
            with self.subTest(seed=seed):
                for rank in range(2):
                    path = kineto.write(
                        self.folder / f"{rank}.json", kineto.step(0, 1000 * rank, ranks=[0, 1]), rank, 2
                    )
                path.write_bytes(spoil_text(draw, path.read_text()))
                try:
                    self.hold(harness.orrery("check", configuration), CHECKED, f"check, seed {seed}")
                    ran = harness.orrery(
                        "run",
                        configuration,
                        "--communication-durations=recorded",
                        f"--output={self.folder / 'results.h5'}",
                        "--force",
                    )
                    self.hold(ran, RUN, f"run, seed {seed}")
                except harness.TookTooLong as late:
                    self.fail(f"seed {seed}: {late}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=OPTIONS.seed)
    parser.add_argument("--count", type=int, default=OPTIONS.count)
    OPTIONS, rest = parser.parse_known_args()
    harness.main(sys.argv[:1] + rest)
