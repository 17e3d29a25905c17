#!/usr/bin/python3
"""The examples of the documents run as they are written and print what the documents say.

System: for each document a copy of the repository with the program in build/release/bin, in which the blocks of the document run
in their order; as the user who runs the test and, if that is root, also as the user `nobody`. What is expected of a block depends on
its language and on a comment in the line before it (the run as `nobody` is not in the gate):

    sh       ends with exit code 0, or N with <!-- exit code: N -->; <!-- not run: REASON --> leaves it out
    python   runs in one Python with the other Python blocks of the document; if it prints, a `text` block follows
    text     if it follows a block that ran: what that block prints. `...` in a line stands for any text, a line of `...` for any
             lines. <!-- not compared: REASON --> leaves it out
    yaml     passes `orrery check`; with <!-- file: NAME --> it is in that file from then on. <!-- fragment --> leaves it out
    diff     is not run

A command outside such a block, or another language, is an error. `test_documents.py [DOCUMENT ...]` tests these documents, or all;
--rewrite writes what the examples print into the documents where it differs. `test_documents.py --marking` tests what looks for such errors.
"""
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import harness

ORDINARY = "nobody"
MPI = " ".join(f"{name}={value}" for name, value in harness.MPI.items())
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^(?P<fence>```+)(?P<language>.*)\n(?P<code>(?:.*\n)*?)^(?P=fence)$", re.MULTILINE
)
MARKS = {
    "sh": r"exit code: \d+|not run: .+",
    "python": r"not run: .+",
    "text": r"not compared: .+",
    "yaml": r"file: [\w./-]+|fragment",
    "diff": "",
}
COMMAND = re.compile(
    r"(orrery|mpirun|srun|sbatch|salloc|cmake|ctest|export|apt-get|python3|git|import|for|perf|valgrind|clang-\w+|h5\w+|"
    r"\S*(/bin/|scripts/|tests/)\S+)( (?!=)|$)"
)


def documents():
    """Returns the paths of all documents of the repository, relative to its root."""
    found = [*harness.SOURCE.glob("*.md")]
    for folder in ("docs", "configs", "partitions", "scripts", "tests"):
        found += harness.SOURCE.glob(f"{folder}/**/*.md")
    return sorted(str(path.relative_to(harness.SOURCE)) for path in found)


def unmarked(text):
    """Returns what is wrong with the marking of a document: [(line number, what)]."""
    found = []
    for block in BLOCK.finditer(text):
        language, mark, line = block["language"], block["mark"], text.count("\n", 0, block.start("fence")) + 1
        if language not in MARKS:
            found.append((line, f"a block of the language '{language}'; expected one of {', '.join(MARKS)}"))
        elif mark is not None and not mark.startswith(("keys", "end of")) and not re.fullmatch(MARKS[language], mark):
            found.append((line, f"a {language} block with the comment '{mark}'; expected '{MARKS[language]}'"))
    outside = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for number, line in enumerate(outside.splitlines(), 1):
        if line.strip().startswith("```"):
            found.append(
                (number, "a fence that is indented or has no end; a block begins and ends in the first column")
            )
        if line.startswith("    ") and COMMAND.match(line.strip()):
            found.append((number, f"the command '{line.strip()}' in no block; put it between ```sh and ```"))
    return found


class Example:
    """Runs the blocks of a document in the current folder, a copy of the repository."""

    def __init__(self, name, text, scratch="."):
        self.name, self.text, self.names = name, text, {"__name__": "document"}
        self.state = (
            pathlib.Path(tempfile.mkdtemp(dir=scratch)).resolve() / "environment"
        )  # what one block exports and the next one sees
        program = "" if "export PATH=" in text else f"{os.getcwd()}/build/release/bin:"
        self.state.write_text(f"export PATH={program}/usr/local/bin:/usr/bin:/bin HOME={self.state.parent} {MPI}\n")
        self.faults, self.printed = (
            [],
            {},
        )  # what is wrong; what the blocks print, by the place of the text that says it

    def shell(self, code, expected=0):
        """Runs commands and returns what they print."""
        script = f"source {self.state}\ntrap 'export -p > {self.state}' EXIT\n{code}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=harness.PATIENCE,
        )
        if done.returncode != expected:
            raise AssertionError(f"exit code {done.returncode}; expected {expected}:\n{done.stdout}")
        return done.stdout

    def python(self, code):
        """Runs Python and returns what it prints."""
        if "PYTHONPATH" in self.state.read_text():  # as a Python that starts now would see it
            sys.path[:0] = self.shell('printf %s "$PYTHONPATH"').split(":")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, self.name, "exec"), self.names)
        return printed.getvalue()

    def yaml(self, code, mark):
        """Checks a configuration, in a file of its own or in one that later blocks use."""
        path = pathlib.Path(mark.removeprefix("file: ")) if mark else self.state.with_name("example.yaml")
        path.write_text(code)
        self.shell(f"PATH={os.getcwd()}/build/release/bin:$PATH; orrery check {path}")

    def run_block(self, language, mark, code):
        """Returns what a block prints; None for one that prints nothing that a text could show."""
        if language == "sh" and not mark.startswith("not run"):
            return self.shell(code, int(mark.removeprefix("exit code: ") or 0))
        if language == "python" and not mark:
            return self.python(code)
        if language == "yaml" and mark != "fragment":
            self.yaml(code, mark)
        return None

    def run(self):
        """Runs all blocks and notes what is wrong."""
        before = None  # the block that a text would belong to: (its line, its language, what it prints)
        for block in BLOCK.finditer(self.text):
            line, language, mark = (
                self.text.count("\n", 0, block.start("fence")) + 1,
                block["language"],
                block["mark"] or "",
            )
            if language == "text":
                if before and not mark.startswith("not compared"):
                    self.compare(before, block)
                before = None
                continue
            self.refuse_silence(before)
            try:
                printed = self.run_block(language, mark, block["code"])
                before = (
                    None
                    if printed is None
                    else (line, language, "".join(row.rstrip() + "\n" for row in printed.splitlines()))
                )
            except BaseException as error:  # an example may do anything, exit included
                before = None
                self.faults.append(f"{self.name}:{line}:\n{block['code']}{error or traceback.format_exc()}")
        self.refuse_silence(before)

    def compare(self, before, block):
        """Compares what a block printed with the text after it."""
        line, _, printed = before
        if not re.fullmatch(pattern(block["code"]), printed):
            self.printed[block.start("code")] = printed
            self.faults.append(
                f"{self.name}:{line}: the text after this block is\n{block['code']}but it prints\n{printed}"
                "(tests/documents/test_documents.py --rewrite writes what it prints)"
            )

    def refuse_silence(self, before):
        """Python that prints has its output in the document."""
        if before and before[1] == "python" and before[2]:
            self.faults.append(
                f"{self.name}:{before[0]}: this block prints, but no text block follows. It prints\n{before[2]}"
            )

    def rewritten(self):
        """Returns the document with what its examples print."""

        def replaced(block):
            if block.start("code") not in self.printed:
                return block[0]
            return self.text[block.start() : block.start("code")] + self.printed[block.start("code")] + block["fence"]

        return BLOCK.sub(replaced, self.text)


def pattern(text):
    """Returns the regular expression of a text in which `...` stands for what varies."""
    lines = []
    for line in text.splitlines():
        lines.append(r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n")
    return "".join(lines)


def link(source, target):
    """Makes a hard link, or a copy where the file system cannot."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@contextlib.contextmanager
def clone(document, place=link):
    """Makes what a clone holds, with the program where a build puts it, in a folder that goes at the end. `place(source, target)` puts each
    file there except the document, which is a copy, because its examples may rewrite it."""
    harness.SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="orrery-", dir=harness.SCRATCH if place is link else None) as folder:
        copy = pathlib.Path(folder) / "orrery"
        copy.mkdir()
        for path in harness.SOURCE.iterdir():
            if path.is_dir() and path.name != "build" and not path.name.startswith("."):
                shutil.copytree(
                    path,
                    copy / path.name,
                    symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__"),
                    copy_function=place,
                )
            elif path.is_file():
                place(path, copy / path.name)
        (copy / document).unlink()
        shutil.copy(harness.SOURCE / document, copy / document)
        (copy / "build/release/bin").mkdir(parents=True)
        place(harness.BINARY, copy / "build/release/bin/orrery")
        yield copy


def states(folder):
    """Returns when each file in a copy of the repository was changed last."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def outcome(document, user=None, rewrite=False):
    """Runs the examples of a document in a copy, as another user if one is named. Returns the exit code and what is wrong."""
    with clone(document, shutil.copy2 if user else link) as copy:
        prefix = []
        if user:
            subprocess.run(["chown", "-R", user, copy.parent], check=True)
            prefix = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups"]
        before = states(copy)
        script = copy / pathlib.Path(__file__).resolve().relative_to(harness.SOURCE)
        done = subprocess.run(
            [*prefix, sys.executable, "-B", str(script), "--here", document],
            cwd=copy,
            stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(copy.parent), "MPLBACKEND": "Agg"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if rewrite:
            shutil.copyfile(copy / document, harness.SOURCE / document)
        after = states(copy)
        changed = [
            str(path.relative_to(copy))
            for path in before
            if path in after and before[path] != after[path] and path != copy / document
        ]
        if changed:  # it may be a hard link to the file of the repository
            return (
                1,
                f"{document}: its examples write into {', '.join(changed)}, which the repository holds; write elsewhere",
            )
        return done.returncode, done.stdout


class Documents(unittest.TestCase):
    names = documents()

    def test_marking(self):
        """Every command of a document is in a block that the other tests know."""
        for name in self.names:
            for line, what in unmarked((harness.SOURCE / name).read_text()):
                self.fail(f"{name}:{line}: found {what}")

    def test_examples(self):
        """The examples do what the document says, for the user who runs this test."""
        for name in self.names:
            code, what = outcome(name)
            self.assertEqual(code, 0, what)

    @harness.long
    def test_as_ordinary_user(self):
        """The examples do the same for an ordinary user."""
        if os.getuid() != 0:
            self.skipTest("the other test runs as an ordinary user")
        for name in self.names:
            code, what = outcome(name, ORDINARY)
            self.assertEqual(code, 0, what)


class Marking(unittest.TestCase):
    """A document with faults of each kind: the tests find them."""

    def test_unmarked(self):
        """Commands outside blocks, unknown languages and unknown comments are found; formulas are not commands."""
        self.assertEqual(len(unmarked("Text\n\n    orrery run x.yaml\n\n    scripts/a.sh 1\n")), 2)
        self.assertEqual(len(unmarked("```\norrery\n```\n")), 1)
        self.assertGreater(len(unmarked("- a\n\n  ```sh\n  orrery\n  ```\n")), 0)
        self.assertEqual(len(unmarked("<!-- exit code: five -->\n```sh\norrery\n```\n")), 1)
        self.assertEqual(
            unmarked("    service = a + b\n\n<!-- not run: it needs a cluster -->\n```sh\nsrun orrery\n```\n"), []
        )

    def test_pattern(self):
        """`...` stands for a part of a line or for lines, and everything else for itself."""
        self.assertIsNotNone(re.fullmatch(pattern("took ... s\n...\nend\n"), "took 1.5 s\na\nb\nend\n"))
        self.assertIsNone(re.fullmatch(pattern("took 1 s\n"), "took 2 s\n"))

    def test_faults(self):
        """A wrong exit code, a wrong output and an output that is missing are faults; what is exported stays."""
        text = (
            "```sh\nexport A=3\nfalse\n```\n<!-- exit code: 5 -->\n```sh\nexit 5\n```\n```sh\necho $A\n```\n```text\n3\n```\n"
            "```sh\necho 4\n```\n```text\n5\n```\n```python\nprint(1)\n```\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            example = Example("example", text, folder)
            example.run()
        self.assertEqual([fault.split(":")[1] for fault in example.faults], ["1", "15", "21"])
        self.assertIn("```text\n4\n```", example.rewritten())


def here(name):
    """Runs the examples of a document in the current folder; with faults, also writes the document as it should be."""
    example = Example(name, pathlib.Path(name).read_text())
    example.run()
    print("\n".join(example.faults))
    pathlib.Path(name).write_text(example.rewritten())
    return 1 if example.faults else 0


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if "--here" in sys.argv:
        sys.exit(here(arguments[0]))
    Documents.names = arguments or Documents.names
    if "--rewrite" in sys.argv:
        for document in Documents.names:
            print(document, *outcome(document, rewrite=True))
    else:
        harness.main([sys.argv[0], "Marking" if "--marking" in sys.argv else "Documents"])
