#!/usr/bin/python3
"""Writes what fuzzing starts from: for each target a folder SEEDS/TARGET with files, and a dictionary SEEDS/TARGET.dict with the words of
its parsers' sources. Files are those of tests/fuzz/seeds/TARGET.zip, others of the repository, and texts of its documents and tests.
Those of the folder shared/ beside the repository, which are others' work, are in SEEDS/shared/TARGET.

usage: make_seeds.py SEEDS [TARGET ...]
       make_seeds.py --keep TARGET FOLDER      writes tests/fuzz/seeds/TARGET.zip anew from the files of a folder"""
import gzip
import hashlib
import os
import pathlib
import re
import shlex
import sys
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("ORRERY_SHARED", SOURCE.parent / "shared"))
HERE = SOURCE / "tests/fuzz/seeds"
sys.path[:0] = [str(SOURCE / "tests/support"), str(SOURCE / "tests/fuzz")]

import kineto  # noqa: E402
from targets import TARGETS  # noqa: E402

LARGEST, MOST = 64 * 1024, 200  # bytes of a seed, seeds of a pattern
# A literal of C++ that is one word of an input.
WORD = re.compile(r'(?<![\w\\])"([A-Za-z_][\w .:/-]{0,40})"')


def keep(folder, data):
    """Writes a seed once, under the digest of its bytes."""
    if len(data) <= LARGEST:
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def parser_sources(target):
    """Yields the sources of a target's parsers: (path, first text, last text); empty texts stand for the whole file."""
    for entry in TARGETS[target][2]:
        pattern, first, last = entry if isinstance(entry, tuple) else (entry, "", "")
        for path in sorted(SOURCE.glob(pattern)):
            yield path, first, last


def write_dictionary(path, target):
    """Writes the words of a target's parsers, as libFuzzer takes them."""
    words = {word for source, _, _ in parser_sources(target) for word in WORD.findall(source.read_text())}
    path.write_text("".join(f'"{word}"\n' for word in sorted(words)))


def write_expressions(folder):
    """Takes the expressions of the unit tests and of the studies, each with values for names."""
    texts = re.findall(
        r'(?:evaluate|message_of|parse)\("((?:\\.|[^"\\])*)"',
        (SOURCE / "tests/unit/explore/expression_test.cpp").read_text(),
    )
    for study in sorted(SOURCE.glob("configs/studies/*.yaml")):
        texts += re.findall(r"^\s*(?:- |when: |value: )(.+)$", study.read_text(), re.MULTILINE)
    for text in texts:
        for values in ("8\n2.5 us\ntrue\nword\n", "80 GB\nbyte/s\n50 GB/s\n2 us\n", "1/USD\nW\n312 TFLOPS\n5 %\n"):
            keep(folder, (text.replace('\\"', '"') + "\n" + values).encode())


def recordings(folder):
    """Returns small recordings as PyTorch's profiler writes them."""
    result = []
    for number, group in enumerate(({}, {"ranks": [0, 1]}, {"ranks": [0, 1], "wait": 500})):
        path = kineto.write(folder / "recording", kineto.step(0, 300 * number, **group), 0, 2)
        result.append(path.read_bytes())
        path.unlink()
    return result


def write_recordings(folder):
    for recording in recordings(folder):
        keep(folder, recording)


def write_packed(folder):
    for recording in recordings(folder):
        keep(folder, gzip.compress(recording, mtime=0))


def write_commands(folder):
    """Takes the commands of the documents, one argument a line."""
    for document in [SOURCE / "README.md", *sorted(SOURCE.glob("docs/*.md"))]:
        for command in re.findall(r"^(?:.*/)?orrery ([^#\n|>]*[^#\n|>\\])", document.read_text(), re.MULTILINE):
            try:
                keep(folder, "\n".join(shlex.split(command)).encode())
            except ValueError:
                pass


def write_configurations(folder):
    """Takes the blocks of YAML in the documents."""
    for document in sorted(SOURCE.glob("docs/*.md")):
        for block in re.findall(r"^```ya?ml\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL):
            keep(folder, block.encode())


MAKERS = {
    "expression": write_expressions,
    "kineto": write_recordings,
    "gzip": write_packed,
    "command_line": write_commands,
    "configuration": write_configurations,
    "study": write_configurations,
    "flows": write_configurations,
}


def write_files(folder, root, patterns):
    """Takes small files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in patterns:
        files = [path for path in sorted(root.glob(pattern)) if path.is_file() and path.stat().st_size <= LARGEST]
        for path in files[:MOST]:
            keep(folder, path.read_bytes())


def write(seeds, target):
    """Writes the seeds and the dictionary of a target. Returns the number of seeds without those of shared/."""
    own, shared, _ = TARGETS[target]
    folder = seeds / target
    write_files(folder, SOURCE, own)
    write_files(seeds / "shared" / target, SHARED / "inputs", shared)
    if (packed := HERE / f"{target}.zip").exists():
        with zipfile.ZipFile(packed) as archive:
            for name in archive.namelist():
                keep(folder, archive.read(name))
    if target in MAKERS:
        MAKERS[target](folder)
    write_dictionary(seeds / f"{target}.dict", target)
    return len(list(folder.iterdir()))


def keep_seeds(target, folder):
    """Writes tests/fuzz/seeds/TARGET.zip with the files of a folder; the same files give the same bytes."""
    files = {
        hashlib.sha1(path.read_bytes()).hexdigest(): path.read_bytes()
        for path in pathlib.Path(folder).iterdir()
        if path.is_file()
    }
    with zipfile.ZipFile(HERE / f"{target}.zip", "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=9)


def main():
    if sys.argv[1] == "--keep":
        return keep_seeds(*sys.argv[2:4])
    for target in sys.argv[2:] or TARGETS:
        write(pathlib.Path(sys.argv[1]), target)
    return None


if __name__ == "__main__":
    main()
