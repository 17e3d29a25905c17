#!/usr/bin/python3
"""Writes what fuzzing starts from: for each target a folder SEEDS/TARGET with files of the repository (and of shared/ beside it) and a
dictionary SEEDS/TARGET.dict with the words of its reader's sources.

usage: make_seeds.py SEEDS"""
import hashlib
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("ORRERY_SHARED", SOURCE.parent / "shared"))
sys.path.insert(0, str(SOURCE / "tests/support"))

import kineto  # noqa: E402

LARGEST, MOST = 64 * 1024, 200  # bytes of a seed, seeds of a pattern
# Of each target: files of the repository, files of shared/inputs, and sources whose words the dictionary takes.
TARGETS = {
    "configuration": (["configs/**/*.yaml"], [], ["src/config/keys/*.cpp", "src/config/*.cpp"]),
    "expression": ([], [], ["src/explore/*.cpp"]),
    "chakra": (["tests/reference/cases/*/workload.0.et"], ["chakra-et/**/*.0.et"], ["src/trace/chakra*.cpp", "src/trace/node_attributes.cpp"]),
    "kineto": ([], ["kineto/**/*.json"], ["src/trace/kineto*.cpp"]),
    "text_traces": (["tests/fuzz/seeds/text_traces/*"], ["chakra-json/*.json*", "goal/*.goal", "text/**/*.txt"],
                    ["src/trace/chakra_json*.cpp", "src/trace/goal*.cpp", "src/trace/pytorch*.cpp", "src/trace/text_workload*.cpp"]),
    "msccl": (["configs/collectives/*.xml", "tests/fuzz/seeds/msccl/*"], ["msccl/*/*.xml"], ["src/collective/msccl.cpp"]),
    "mscclpp": (["tests/fuzz/seeds/mscclpp/*"], ["mscclpp/*.json"], ["src/collective/mscclpp*.cpp"]),
    "nccl_topology": (["tests/fuzz/seeds/nccl_topology/*"], ["nccl-topo/*/*.xml"], ["src/app/nccl_topology.cpp"]),
    "infragraph": (["configs/infragraph/*.yaml"], ["infragraph/*.yaml"], ["src/topology/infragraph_document.cpp"]),
    "results": ([], [], []),
}
# A literal of C++ that is one word of an input.
WORD = re.compile(r'(?<![\w\\])"([A-Za-z_][\w .:/-]{0,40})"')


def keep(folder, data):
    """Writes a seed once, under the digest of its bytes."""
    (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def write_dictionary(path, patterns):
    """Writes the words of sources, as libFuzzer takes them."""
    words = {word for pattern in patterns for source in SOURCE.glob(pattern) for word in WORD.findall(source.read_text())}
    path.write_text("".join(f'"{word}"\n' for word in sorted(words)))


def write_expressions(folder):
    """Takes the expressions of the unit tests and of the studies, each with values for names."""
    texts = re.findall(r'(?:evaluate|message_of|parse)\("((?:\\.|[^"\\])*)"', (SOURCE / "tests/unit/explore/expression_test.cpp").read_text())
    for study in sorted(SOURCE.glob("configs/studies/*.yaml")):
        texts += re.findall(r"^\s*(?:- |when: |value: )(.+)$", study.read_text(), re.MULTILINE)
    for text in texts:
        keep(folder, (text.replace('\\"', '"') + "\n8\n2.5 us\ntrue\nword\n").encode())


def write_recordings(folder):
    """Writes small recordings as PyTorch's profiler does."""
    for number, group in enumerate(({}, {"ranks": [0, 1]}, {"ranks": [0, 1], "wait": 500})):
        path = kineto.write(folder / "recording", kineto.step(0, 300 * number, **group), 0, 2)
        keep(folder, path.read_bytes())
        path.unlink()


def main():
    seeds = pathlib.Path(sys.argv[1])
    for target, (own, shared, sources) in TARGETS.items():
        folder = seeds / target
        folder.mkdir(parents=True, exist_ok=True)
        for root, patterns in ((SOURCE, own), (SHARED / "inputs", shared)):
            for pattern in patterns:
                files = [path for path in sorted(root.glob(pattern)) if path.is_file() and path.stat().st_size <= LARGEST]
                for path in files[:MOST]:
                    keep(folder, path.read_bytes())
        write_dictionary(seeds / f"{target}.dict", sources)
    write_expressions(seeds / "expression")
    write_recordings(seeds / "kineto")


if __name__ == "__main__":
    main()
