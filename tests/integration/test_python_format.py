#!/usr/bin/python3
"""Python is formatted by black, Debian's package of that name, as pyproject.toml says: black has nothing to change."""
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402


def python_files():
    """Returns the Python files that git tracks: those with the ending .py, and scripts whose first line names Python."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={harness.SOURCE}", "ls-files", "-z"], cwd=harness.SOURCE, capture_output=True
    )
    if listed.returncode:
        raise unittest.SkipTest("git cannot list the files")
    found = []
    for name in listed.stdout.decode().split("\0"):
        path = harness.SOURCE / name
        if path.suffix == ".py":
            found.append(path)
        elif name.startswith(("scripts/", "tests/")) and not path.suffix and path.is_file():
            with open(path, "rb") as file:
                if b"python" in file.readline(40) and path.stat().st_mode & 0o100:
                    found.append(path)
    return [path for path in found if path.exists()]


@unittest.skipUnless(shutil.which("black"), "it needs Debian's black, which scripts/setup.sh installs")
class Format(unittest.TestCase):
    def test_black_has_nothing_to_change(self):
        """`black --check` accepts every Python file. To format them: black $(tests/integration/test_python_format.py --list)"""
        done = subprocess.run(
            ["black", "--check", "--quiet", *map(str, python_files())],
            cwd=harness.SOURCE,
            capture_output=True,
            text=True,
        )
        self.assertEqual(
            done.returncode, 0, "run: black $(tests/integration/test_python_format.py --list)\n" + done.stderr
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(str(path.relative_to(harness.SOURCE)) for path in python_files()))
    else:
        harness.main()
