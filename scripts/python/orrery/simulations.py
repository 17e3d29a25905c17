"""Runs the program: one simulation, a sweep over keys, the search for the best parallelism, and the checks before a run."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import weakref

from . import program as programs, tables
from .errors import InputError, ProgramError
from .packages import load
from .study import Study
from .timed import TimedResults

np, pd = load("numpy"), load("pandas")

SECONDS_BETWEEN = 1  # two lines of progress


def run(config, settings=None, *, output=None, times="s", ranks=1, progress=None, program=None, **more):
    """Simulates a configuration and returns its Results.

        run = orrery.run("configs/llama3-8b-64.yaml", **{"workload.parallel.tp": 8}, timeline=True)

    config: a CONFIG.yaml, or the same as a dictionary; names of files in a dictionary start in the current folder.
    settings: {key: value} that changes the configuration, as --set does. Keyword arguments with a point in their name are settings too, and
    all others are options of `orrery run`: timeline=True is --timeline, record_iterations=0 is --record-iterations=0.
    output: the file to write, which is replaced if it exists; by default a temporary one that lives as long as the Results.
    times: unit of all times, as in orrery.open. ranks: number of MPI ranks, which do not change the results.
    progress: True or False; by default it is shown in notebooks and on terminals. program: the program to run, by default the one that
    belongs to the package, or the one in PATH.
    Raises InputError, StuckError or ProgramError with the program's message. Takes the time and memory of the simulation.
    """
    changes, options = _sorted_out(settings, more)
    shown = programs.Shown(progress)
    lines = ["--progress=plain", f"--progress-interval={SECONDS_BETWEEN}"] if shown.wanted else ["--progress=none"]
    with _folder_of(output) as folder, _file_of(config) as file:
        path = folder.path("results.h5")
        programs.call(
            "run",
            file,
            *changes,
            *options,
            *lines,
            "--force",
            f"--output={path}",
            ranks=ranks,
            progress=progress,
            program=program,
        )
        return folder.keep(TimedResults(path, times), _title_of(config))


def check(config, settings=None, *, ranks=1, program=None, **more):
    """Finds everything that is wrong with a run before it is started; returns what the program says if nothing is.

    The parameters are those of `run`. Raises InputError, whose `faults` has a text for each fault.
    """
    changes, options = _sorted_out(settings, more)
    with _file_of(config) as file:
        return programs.call("check", file, *changes, *options, ranks=ranks, program=program, progress=False).strip()


def sweep(
    config,
    values,
    settings=None,
    *,
    derived=None,
    constraints=(),
    output=None,
    ranks=1,
    progress=None,
    program=None,
    **more,
):
    """Simulates a configuration with all combinations of some values; returns one pandas table with a row for each.

        table = orrery.sweep("configs/llama3-8b-64.yaml", {"workload.parallel.micro-batches": [4, 8, 16, 32]})
        table.plot(x="workload.parallel.micro-batches", y="tokens_per_s")

    values: {key of CONFIG.yaml: values}; the last key changes fastest. settings: as in `run`, of all combinations.
    derived: {key: expression} of keys that follow from others. An expression names a swept key by its last part, with _ for -, as in
    {"workload.parallel.dp": "npus / (tp * pp)"}; it takes more parts if two keys end alike. constraints: expressions that must hold;
    combinations that break one are left out (docs/exploration.md).
    output: the study's file, which is replaced if it exists, and STUDY.yaml beside it; by default they are temporary.
    The columns are the keys, with quantities as numbers in SI units, then `status`, the metrics (step_time is in seconds) and `error`;
    attrs["units"] has their units. Metrics that no trial has, such as prices, are left out. Trials that fail are rows too, with what is wrong in `error`.
    Raises InputError if no combination is legal, and ProgramError with the program's message.
    """
    changes, options = _sorted_out(settings, more)
    if not values:
        raise ValueError("found no key to vary; expected {key: values}, such as {'workload.parallel.tp': [1, 2, 4, 8]}")
    names = _short_names([*values, *(derived or {})])
    lists = {key: [_plain(value) for value in _list_of(key, some)] for key, some in values.items()}
    study = {
        "parameters": {names[key]: {"key": key, "values": some} for key, some in lists.items()},
        "derived": {names[key]: {"key": key, "value": str(expression)} for key, expression in (derived or {}).items()},
        "constraints": list(constraints),
        "objectives": [{"minimise": "step_time"}],
        "sensitivity": False,
    }
    with _folder_of(output) as folder, _file_of(config) as file:
        path = folder.path("sweep.h5")
        asked = path.with_suffix(".study.yaml")
        asked.write_text(
            _yaml(
                {
                    "study": {
                        "base": str(file.resolve()),
                        **{name: one for name, one in study.items() if one not in ([], {})},
                    }
                }
            )
        )
        path.unlink(missing_ok=True)
        try:
            programs.call(
                "explore",
                asked,
                *changes,
                *options,
                "--force",
                f"--output={path}",
                ranks=ranks,
                progress=progress,
                program=program,
            )
        except InputError:
            if not path.exists():  # else each combination failed, and the file has the reasons
                raise
        with Study(path) as found:
            return _table_of(found, {name: key for key, name in names.items()}, lists)


def best(model, *, on, npus, settings=None, output=None, ranks=1, progress=None, program=None, **more):
    """Finds the fastest ways to train a model on a system, and returns the Study with its trials.

        study = orrery.best("llama3-8b", on="dgx-h100-superpod", npus=64, batch=128, stack="h100-nemo")
        study.done.head(), orrery.run(study.configuration_of(study.top[0]))

    model, on: presets or files. npus: number of NPUs. Other keyword arguments are options of `orrery best`, such as batch, stack and cost,
    or settings as in `run`. output: the file to write, which is replaced if it exists; the study, its base and the best configurations
    are written beside it. By default all are temporary, as in `run`.
    Raises InputError or ProgramError with the program's message.
    """
    changes, options = _sorted_out(settings, more)
    with _folder_of(output) as folder, _file_of(model) as file:
        path = folder.path("best.h5")
        programs.call(
            "best",
            file if isinstance(model, dict) else model,
            f"--on={os.fspath(on)}",
            f"--npus={npus}",
            *changes,
            *options,
            "--force",
            f"--output={path}",
            ranks=ranks,
            progress=progress,
            program=program,
        )
        return folder.keep(Study(path), _title_of(model))


# ---- what the functions share ----


def _sorted_out(settings, more):
    """Returns (--set words, option words) of settings and of keyword arguments, of which those with a point are settings."""
    keys = {**(settings or {}), **{name: value for name, value in more.items() if "." in name}}
    changes = [f"--set={key}={_written(value)}" for key, value in keys.items()]
    options = []
    for name, value in more.items():
        if "." in name or value is None or value is False:
            continue
        option = "--" + name.replace("_", "-")
        options.append(
            option
            if value is True
            else f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else _written(value)}"
        )
    return changes, options


def _plain(value):
    """Returns a value as JSON has it: of numpy a Python number, of a path its text."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def _written(value):
    """Returns a value as --set takes it: a text as it is, and everything else as JSON, which YAML reads."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _yaml(tree):
    """Returns YAML in which quantities stand as people write them, without quotes."""
    return load("yaml").safe_dump(tree, sort_keys=False, allow_unicode=True, width=1000)


def _title_of(config):
    """Returns what stands in place of the name of a temporary file: that of the configuration."""
    return "a run of a dictionary" if isinstance(config, dict) else f"a run of {os.fspath(config)}"


def _list_of(key, some):
    """Returns the values of a key as a list. A text or a number alone is a mistake that would be hard to find."""
    if isinstance(some, (str, bytes, dict)) or not hasattr(some, "__iter__"):
        raise ValueError(f"{key}: found {some!r}; expected a list of values, such as [{some!r}]")
    return list(some)


def _short_names(keys):
    """Returns {key: name of a parameter}: the last parts of the key that tell it from all others."""
    parts = {key: key.replace("-", "_").split(".") for key in keys}
    names = {}
    for key, words in parts.items():
        for length in range(1, len(words) + 1):
            end = words[-length:]
            if sum(other[-length:] == end for other in parts.values()) == 1 and not end[0].isdigit():
                break
        names[key] = "_".join(words[-length:])
    return names


def _table_of(study, keys, lists):
    """Returns the trials of a sweep with the swept keys as columns. lists: {key: its values}, of which logical ones are words in the file."""
    known = [name for name in study.trials.columns if name not in study.metrics or study.trials[name].notna().any()]
    table = study.trials[known].rename(columns=keys)
    for key, some in lists.items():
        if some and all(isinstance(value, bool) for value in some):
            table[key] = table[key].astype(str).str.lower() == "true"
    first = [key for key in keys.values() if key in table]
    table = table[first + [name for name in table.columns if name not in first]]
    told = study.trials.attrs
    return tables.described(
        table,
        "one row per combination",
        {keys.get(name, name): unit for name, unit in told["units"].items()},
        {keys.get(name, name): text for name, text in told["descriptions"].items()},
    )


@contextlib.contextmanager
def _file_of(config):
    """Yields the path of a configuration. Of a dictionary it is a file in the current folder while the block runs, or, where nobody may write,
    in a temporary one; names of files in it start there."""
    if not isinstance(config, dict):
        yield pathlib.Path(config)
        return
    try:
        handle, name = tempfile.mkstemp(prefix=".orrery-", suffix=".yaml", dir=os.getcwd())
    except OSError:
        handle, name = tempfile.mkstemp(prefix="orrery-", suffix=".yaml")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_yaml(_plain(config)))
        yield pathlib.Path(name)
    except ProgramError as error:  # the name of the file says nothing to who gave a dictionary
        pattern = re.escape(name) + r"(:\d+(:\d+)?)?"
        raise type(error)(
            re.sub(pattern, "config", str(error)), error.code, [re.sub(pattern, "config", one) for one in error.faults]
        ) from None
    finally:
        os.unlink(name)


class _folder_of:
    """The folder of what is written: that of `output`, or a temporary one that is removed with the object that `keep` got, or with the block."""

    def __init__(self, output):
        self._output = None if output is None else pathlib.Path(output)
        self._temporary = None

    def __enter__(self):
        if self._output is None:
            self._temporary = tempfile.mkdtemp(prefix="orrery-")
        else:
            self._output.parent.mkdir(parents=True, exist_ok=True)
        return self

    def path(self, name):
        """Returns the path of the file to write; `name` is that in a temporary folder."""
        return self._output if self._temporary is None else pathlib.Path(self._temporary) / name

    def keep(self, opened, title):
        """Lets the temporary folder live as long as the object `opened`, which has this title then, and returns it."""
        if self._temporary is not None:
            opened.title = title
            weakref.finalize(opened, shutil.rmtree, self._temporary, ignore_errors=True)
            self._temporary = None
        return opened

    def __exit__(self, *_):
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
