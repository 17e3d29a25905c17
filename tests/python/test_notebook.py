#!/usr/bin/python3
"""docs/notebooks/first-look.ipynb runs from the first to the last cell.

System: a folder with the repository's configs and scripts, the program in PATH. Expectation: every code cell runs without an error,
in this Python and, if nbconvert and ipykernel are installed, in Jupyter; what cells show are tables and pictures; the notebook in
the repository was executed in order and names no folder of one machine. --rewrite executes it and stores what the cells show.
"""
import ast
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import examples  # noqa: F401, sets the path
import harness

NOTEBOOK = harness.SOURCE / "docs/notebooks/first-look.ipynb"


class Checkout:
    """A folder that looks like a checkout, as the current folder; the program and this Python come first in PATH."""

    def __enter__(self):
        self.before, self.path = os.getcwd(), os.environ["PATH"]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
        for name in ("configs", "scripts"):
            (self.folder / name).symlink_to(harness.SOURCE / name)
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "orrery").symlink_to(harness.BINARY)
        os.environ["PATH"] = f"{programs}:{self.path}"
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # else Jupyter warns of the debugger, which nobody uses here
        for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
            os.environ[variable] = str(self.folder / "jupyter")
        os.chdir(self.folder)
        return self.folder

    def __exit__(self, *_):
        os.chdir(self.before)
        os.environ["PATH"] = self.path
        shutil.rmtree(self.folder)


def executed(folder):
    """The notebook after nbconvert has executed it; it keeps no times."""
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    ExecutePreprocessor(timeout=300, kernel_name="python3", record_timing=False).preprocess(
        notebook, {"metadata": {"path": str(folder)}}
    )
    return notebook


def shown_by(cell, names):
    """Runs the code of a cell as Jupyter does; returns the value of its last line."""
    tree = ast.parse(cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


class Notebook(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]

    def test_cells_run_in_this_python(self):
        """What a cell shows is a table or a picture: it has one of the methods that Jupyter asks for."""
        names, shown = {}, 0
        with Checkout():
            for cell in self.cells:
                value = shown_by("".join(cell["source"]), names)
                if value is not None:
                    shown += 1
                    picture = getattr(value, "_repr_png_", None)
                    self.assertTrue(picture()[:4] == b"\x89PNG" if picture else value._repr_html_(), cell["source"])
        self.assertGreater(shown, 5)

    @harness.long
    def test_jupyter_executes_it(self):
        """nbconvert executes the notebook in a checkout. Its cells show tables and pictures."""
        try:
            import ipykernel  # noqa: F401
            import nbconvert  # noqa: F401
        except ImportError as error:
            self.skipTest(
                f"the Python package {error.name} is not installed: apt-get install python3-nbconvert python3-ipykernel"
            )
        with Checkout() as folder:
            notebook = executed(folder)
        kinds = {
            kind
            for cell in notebook.cells
            if cell.cell_type == "code"
            for output in cell.outputs
            for kind in output.get("data", {})
        }
        self.assertLessEqual({"text/html", "image/png"}, kinds)

    def test_it_is_stored_as_it_was_executed(self):
        """Readers on the web see what the cells show: each was executed, in order, without an error."""
        self.assertEqual([cell["execution_count"] for cell in self.cells], list(range(1, len(self.cells) + 1)))
        for cell in self.cells:
            self.assertNotIn("error", [output["output_type"] for output in cell["outputs"]])
        self.assertIsNone(re.search(r"/(home|root|Users|work|scratch|tmp)/\w", NOTEBOOK.read_text()))


def rewrite():
    import nbformat

    with Checkout() as folder:
        notebook = executed(folder)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    rewrite() if "--rewrite" in sys.argv else harness.main()
