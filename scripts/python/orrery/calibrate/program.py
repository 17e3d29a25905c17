"""Asks the program for predictions."""
import json
import pathlib
import re
import subprocess
import tempfile

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}


class Unusable(Exception):
    """An input that cannot be used, with what was found and expected."""


class Failed(Exception):
    """The program failed: its exit code and what it said."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


def seconds_of(text, what):
    """Returns the seconds of a text such as "1.42 s" or "830ms"."""
    found = re.fullmatch(r"\s*([\d.]+(?:e-?\d+)?)\s*(s|ms|us|µs|ns)\s*", text or "")
    if not found or not float(found[1]) > 0:
        raise Unusable(f"{what}: found '{text}'; expected a time with its unit, such as 1.42 s.")
    return float(found[1]) * SECONDS[found[2]]


def asked(program, *arguments):
    """Runs the program and returns what it prints."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.returncode, done.stderr)
    return done.stdout


def range_of(program, key):
    """Returns the text that says which values a key of CONFIG.yaml may have."""
    for known in json.loads(asked(program, "show", "keys", key, "--json")):
        if known["path"] == key:
            return known["range"]
    raise Unusable(f"--key: found '{key}'; expected a key of CONFIG.yaml (orrery show keys).")


def step_seconds(program, config, *settings):
    """Returns the seconds of a step of a configuration with these settings."""
    with tempfile.TemporaryDirectory() as folder:
        out = asked(
            program,
            "run",
            config,
            "--verbose",
            *(f"--set={setting}" for setting in settings),
            "--fold",
            "--record-iterations=0",
            f"--output={pathlib.Path(folder) / 'results.h5'}",
            "--progress=none",
            "--memory=report",
        )
    found = re.search(r"^step time ([\d.]+) (\w+)", out, re.MULTILINE)
    if not found:
        raise Unusable(f"{config}: found no step time in what the run prints; expected a generated workload or traces.")
    return float(found[1]) * SECONDS[found[2]]


def collective_seconds(program, config, kind, size):
    """Returns the seconds of a collective."""
    figures = json.loads(asked(program, "show", "collective", config, f"--kind={kind}", f"--bytes={size} B", "--json"))
    return figures["last_done_ps"] * 1e-12
