#!/usr/bin/python3
"""The examples of docs/python.md run as they stand and print what the document says.

System: a folder with the repository's configs and scripts, the program in PATH. Blocks marked `sh` are run by bash, blocks marked
`python` one after the other in one Python; a block marked `text` that follows is what is printed. --rewrite writes what is printed
into the document.
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
import unittest

import examples  # noqa: F401, sets the path
import harness

DOCUMENT = harness.SOURCE / "docs/python.md"
BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example:
    """Runs the blocks of a document in a folder of their own."""

    def __init__(self, text):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
        for name in ("configs", "scripts"):
            (self.folder / name).symlink_to(harness.SOURCE / name)
        programs = self.folder / "bin"  # the program, and the Python that runs this test
        programs.mkdir()
        (programs / "python3").symlink_to(sys.executable)
        (programs / "orrery").symlink_to(harness.BINARY)
        self.text, self.names = text, {"__name__": "document"}
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def shell(self, code):
        done = subprocess.run(["bash", "-euc", code], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode}: {code}\n{done.stdout}{done.stderr}")
        return done.stdout

    def python(self, code):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(DOCUMENT), "exec"), self.names)
        return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())

    def run(self):
        """[(code, what the document says that it prints, what it prints)]; None where the document says nothing."""
        found, here = [], os.getcwd()
        os.chdir(self.folder)
        try:
            for language, code in BLOCK.findall(self.text):
                if language == "text":
                    found[-1][1] = code
                else:
                    found.append([code, None, self.shell(code) if language == "sh" else self.python(code)])
        finally:
            os.chdir(here)
            shutil.rmtree(self.folder)
        return found


class Document(unittest.TestCase):
    maxDiff = None

    def test_examples(self):
        """Every example that prints has its output in the document, and it is this one."""
        found = Example(DOCUMENT.read_text()).run()
        self.assertGreater(len(found), 15)
        for code, said, printed in found:
            if said is not None or not code.startswith(("mkdir", "for", "scripts", "export")):
                self.assertEqual(said or "", printed, f"docs/python.md:\n{code}\n(tests/python/test_document.py --rewrite writes the new output)")


def rewrite():
    outputs = iter([printed for _, said, printed in Example(DOCUMENT.read_text()).run() if said is not None])
    DOCUMENT.write_text(BLOCK.sub(lambda block: f"```text\n{next(outputs)}```" if block[1] == "text" else block[0], DOCUMENT.read_text()))


if __name__ == "__main__":
    rewrite() if "--rewrite" in sys.argv else harness.main()
