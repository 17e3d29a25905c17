"""Lets a study use Orrery's Python package, which needs numpy: with Debian's Python if the one that runs has none."""
import importlib.util
import os
import pathlib
import sys

DEBIAN = "/usr/bin/python3"

if importlib.util.find_spec("numpy") is None and sys.executable != DEBIAN and os.path.exists(DEBIAN):
    os.execv(DEBIAN, [DEBIAN, *sys.argv])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
