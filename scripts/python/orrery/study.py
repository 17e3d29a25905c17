"""One file of `orrery explore` as pandas tables."""
import functools
import os
import re
import shlex

from . import configuration, program as programs, tables
from .metric_table import METRICS
from .packages import load
from .source import STUDY, OpenFile

np, pd = load("numpy"), load("pandas")

# Metrics in the order in which people want to see them; others follow.
ORDER = [metric.name for metric in METRICS if metric.place]
FAULTS = ("refused", "failed", "stuck", "timed-out")  # statuses of trials whose errors say what is wrong
KEEP = 20  # trials of the top, where neither the file nor the study says how many
DECIMAL, BINARY = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}, {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
# {unit of the configuration: (SI unit, how many of it)}
SI = {
    "": ("1", 1),
    "%": ("1", 0.01),
    **{f"{name}s": ("s", size) for name, size in {**{"p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3}, "": 1}.items()},
    **{f"{prefix}B{per}": ("byte" + per, size) for prefix, size in {**DECIMAL, **BINARY}.items() for per in ("", "/s")},
    **{f"{prefix}b/s": ("byte/s", size / 8) for prefix, size in DECIMAL.items()},
    **{f"{prefix}FLOPS": ("FLOPS", size) for prefix, size in DECIMAL.items()},
}


def si(text):
    """Returns (number, unit) of a text such as "80 GB" in bytes, seconds, bytes a second or FLOPs; (NaN, "") if it is no quantity."""
    found = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z/%]*)\s*", text)
    if not found or found[2] not in SI:
        return float("nan"), ""
    unit, size = SI[found[2]]
    return float(found[1]) * size, unit


class Study(OpenFile):
    """What a study found. Each table is read when it is first used, and kept. All quantities are in SI units: s, byte, USD, W, J."""

    def __init__(self, path):
        """Opens the file. Raises ResultsError if it cannot be read; orrery.read_study does the same."""
        super().__init__(path, STUDY)
        self.name = os.path.splitext(os.path.basename(self.path))[0]

    # ---- what was asked ----

    @functools.cached_property
    def inputs(self):
        """{name: text} of what the study was made from: "study.yaml", "configuration.yaml"."""
        return self._source.texts("study")

    @functools.cached_property
    def settings(self):
        """STUDY.yaml below the key `study`, as dictionaries and lists; {} if the file does not hold it."""
        tree = configuration.parsed(self.inputs.get("study.yaml", "{}"))
        found = tree.get("study") if isinstance(tree, dict) else None
        return found if isinstance(found, dict) else {}

    @functools.cached_property
    def objectives(self):
        """[(metric, "minimise" or "maximise")], the most important one first."""
        if self._source.has("study/objectives/metric"):
            return list(
                zip(
                    map(str, self._source.read("study/objectives/metric")),
                    map(str, self._source.read("study/objectives/direction")),
                )
            )
        asked = self.settings.get("objectives")
        found = (
            [
                (str(metric), str(direction))
                for one in asked
                if isinstance(one, dict)
                for direction, metric in one.items()
                if direction in ("minimise", "maximise")
            ]
            if isinstance(asked, list)
            else []
        )
        return found or [("step_time", "minimise")]

    @functools.cached_property
    def parameters(self):
        """Names of what the study varies and of what follows from it, in the order of the study."""
        found = self._source.columns("parameters") if self._source.has("parameters") else []
        order = {
            name: at
            for at, name in enumerate([*(self.settings.get("parameters") or {}), *(self.settings.get("derived") or {})])
        }
        return sorted(found, key=lambda name: order.get(name, len(order)))

    @functools.cached_property
    def derived(self):
        """The names among `parameters` that follow from others."""
        return [name for name in self.parameters if name in (self.settings.get("derived") or {})]

    @functools.cached_property
    def varied(self):
        """The names among `parameters` that the study chooses and that have more than one value among the trials."""
        return [name for name in self.parameters if name not in self.derived and self.texts[name].nunique() > 1]

    @property
    def strategy(self):
        """How trials were chosen: "grid", "bounded" or another one of docs/exploration.md."""
        told = self._source.attribute("study", "strategy") if self._source.has("study") else None
        if told is not None:
            return str(told)
        asked = self.settings.get("strategy")
        return str(asked.get("kind", "grid")) if isinstance(asked, dict) else "grid"

    # ---- what was found ----

    @functools.cached_property
    def texts(self):
        """One row per trial: the value of each parameter as the configuration has it."""
        columns = {name: self._texts_of(name) for name in self.parameters}
        return pd.DataFrame(
            {
                name: [str(value) for value in values]
                if values.dtype == object
                else [f"{value:.15g}" for value in values]
                for name, values in columns.items()
            },
            index=self.numbers,
        )

    def _texts_of(self, parameter):
        """Returns the column of a parameter: of /settings, which holds different texts once, or as a whole; of older files of /parameters."""
        path = f"settings/{parameter}"
        if self._source.has(f"{path}/row"):
            return self._source.read(f"{path}/text")[self._source.read(f"{path}/row")]
        return self._source.read(path if self._source.has(path) else f"parameters/{parameter}")

    @functools.cached_property
    def numbers(self):
        """The numbers of the trials, by which `orrery explore STUDY.yaml --trial` knows them; the index of `trials`."""
        return pd.Index(self._source.read("trials/number").astype(np.int64), name="trial")

    @functools.cached_property
    def metrics(self):
        """Names of the columns of `trials` that are figures of a trial."""
        found = [
            name
            for name in self._source.columns("trials")
            if name != "number" and self._source.is_number(f"trials/{name}")
        ]
        first = [metric for metric, _ in self.objectives]
        return sorted(
            found, key=lambda name: (first + ORDER).index(name) if name in first + ORDER else len(first + ORDER)
        )

    @functools.cached_property
    def trials(self):
        """One row per legal configuration: status, parameters, metrics (NaN where one is not known), and why it is not done."""
        every = self._source.columns("trials")
        words = [name for name in every if name not in self.metrics and name not in ("number", "status", "error")]
        columns = {"status": pd.Categorical(self._source.read("trials/status"))}
        units, told = {"status": ""}, {"status": "how the trial ended"}
        for name in self.parameters:
            values, units[name] = self.quantities(name)
            columns[name] = self.texts[name].to_numpy(dtype=object) if np.isnan(values).any() else whole(values)
            told[name] = "value as the configuration has it"
        for name in self.metrics + words + ["error"]:
            if name in every:
                label, columns[name] = self._source.label(f"trials/{name}"), self._source.read(f"trials/{name}")
                units[name], told[name] = label.get("units", ""), label.get("description", "")
        table = pd.DataFrame(columns, index=self.numbers)
        return tables.described(table, "legal configurations of a study", units, told)

    def quantities(self, parameter):
        """Returns (array, unit): a parameter of each trial as numbers in SI units; NaN where its text is no quantity."""
        if self._source.is_number(f"parameters/{parameter}"):
            return self._source.read(f"parameters/{parameter}").astype(float), self._source.label(
                f"parameters/{parameter}"
            ).get("units", "1")
        texts, codes = np.unique(self.texts[parameter].to_numpy(dtype=str), return_inverse=True)
        found = [si(text) for text in texts]
        units = {unit for value, unit in found if not np.isnan(value)}
        values = np.array([value if len(units) == 1 else np.nan for value, _ in found], dtype=float)
        return (values[codes] if len(texts) else np.zeros(0)), (units.pop() if len(units) == 1 else "")

    @functools.cached_property
    def done(self):
        """The rows of `trials` that were simulated and keep all constraints, the best one first. Among those that are equal in the first
        objective the next one decides."""
        return self._by(self.trials[self.trials["status"] == "done"], self.objectives)

    def _by(self, table, objectives):
        """Returns the rows of a table in the order of these objectives, the best one first."""
        known = [(metric, direction == "minimise") for metric, direction in objectives if metric in table]
        if not known:
            return table
        names, less = zip(*known)
        return table.sort_values(list(names), ascending=list(less), kind="stable")

    @functools.cached_property
    def top(self):
        """Numbers of the best trials, the best one first: those with the best values of one objective, or the front of several."""
        if len(self.objectives) > 1:
            return self.front
        for name in ("top", "best"):
            if self._source.has(name):
                return [int(number) for number in self._source.read(name)]
        keep = self.settings.get("keep", KEEP)
        return [int(number) for number in self.done.index[: keep if isinstance(keep, int) else KEEP]]

    @functools.cached_property
    def front(self):
        """Numbers of the trials than which no other one is better in every objective, the one that is best in the first objective first; of
        one objective, of those with its best value."""
        for name in ("front", "best"):
            if self._source.has(name) and (name == "front" or len(self.objectives) > 1):
                return [int(number) for number in self._source.read(name)]
        if any(metric not in self.done for metric, _ in self.objectives):
            return []
        table = self.done.dropna(subset=[metric for metric, _ in self.objectives])
        costs = np.column_stack(
            [
                table[metric].to_numpy(dtype=float) * (1 if direction == "minimise" else -1)
                for metric, direction in self.objectives
            ]
        )
        kept = []
        for at, row in enumerate(costs):  # sorted: only one that stands before can dominate
            others = costs[kept]
            if not ((others <= row).all(axis=1) & (others < row).any(axis=1)).any():
                kept.append(at)
        return [int(number) for number in table.index[kept]]

    @functools.cached_property
    def extremes(self):
        """{metric: number of the trial of the front that is best in it} of each objective."""
        rows = self.trials.loc[[number for number in self.front if number in self.trials.index]]
        return {
            metric: int(
                self._by(rows, [(metric, direction), *(one for one in self.objectives if one[0] != metric)]).index[0]
            )
            for metric, direction in self.objectives
            if metric in rows and len(rows)
        }

    @functools.cached_property
    def errors(self):
        """One row for each error of trials that were refused, failed, were stuck or timed out, the most frequent one first.

        `status`, `count`, and `trial` and `error`: the number and the text of the first of these trials. Texts that differ in numbers alone are one.
        """
        table = (
            self.trials[self.trials["status"].astype(str).isin(FAULTS)]
            if "error" in self.trials
            else self.trials.iloc[:0]
        )
        found = {}
        for number, status, text in zip(table.index, table["status"], table["error"] if len(table) else ()):
            found.setdefault((str(status), re.sub(r"\d[\d.,]*", "#", str(text))), [0, int(number), str(text)])[0] += 1
        rows = sorted(((status, *one) for (status, _), one in found.items()), key=lambda row: (-row[1], row[2]))
        return pd.DataFrame(rows, columns=["status", "count", "trial", "error"])

    @functools.cached_property
    def funnel(self):
        """One row per reason, in order: how many configurations there were, and how many fell to what."""
        if not self._source.has("funnel"):
            return pd.DataFrame({"reason": [], "count": []})
        return pd.DataFrame(
            {
                "reason": [str(one) for one in self._source.read("funnel/reason")],
                "count": self._source.read("funnel/count").astype(np.int64),
            }
        )

    @functools.cached_property
    def main_effects(self):
        """{parameter: share of the variance of the first objective that its mean for each value explains}; None if the file has none."""
        group = "sensitivity/main_effect"
        if not self._source.has(f"{group}/parameter"):
            return None
        return dict(
            zip(map(str, self._source.read(f"{group}/parameter")), map(float, self._source.read(f"{group}/effect")))
        )

    @functools.cached_property
    def tornado(self):
        """One row per parameter, changed alone from the best trial: low_value, high_value and the objective there; None if there is none."""
        group = "sensitivity/tornado"
        if not self._source.has(f"{group}/parameter"):
            return None
        names = [
            name
            for name in ("parameter", "low_value", "high_value", "low", "high")
            if self._source.has(f"{group}/{name}")
        ]
        table = pd.DataFrame({name: self._source.read(f"{group}/{name}") for name in names})
        return table if set(names) >= {"parameter", "low", "high"} else None

    # ---- how to run a trial again ----

    @functools.cached_property
    def command_line(self):
        """The command that made the file."""
        found = self._source.attribute("kernel", "command_line") if self._source.has("kernel") else None
        return found if isinstance(found, str) else ""

    def command(self, number):
        """Returns the shell commands that write the CONFIG.yaml of a trial and run it. A trial of a round of `refine` follows from results, and
        the job has written its CONFIG.yaml if it is one of the best."""
        strategy = self.settings.get("strategy")
        if self.settings.get("refine") and isinstance(strategy, dict) and number >= int(strategy.get("samples", 0)):
            return f"orrery run {shlex.quote(f'{os.path.splitext(self._output)[0]}.trial-{number}.yaml')} --output trial-{number}.h5"
        return (
            f"orrery explore {self._study_words} --trial {number} > trial-{number}.yaml && "
            f"orrery run trial-{number}.yaml --output trial-{number}.h5"
        )

    def configuration_of(self, number, program=None):
        """Returns the configuration of a trial as dictionaries and lists; orrery.run takes it. Its `base` is the path of the configuration
        from which the trial differs.

        It is in the file that the job wrote beside the output, if the trial is one of the best. Otherwise the program `orrery` makes it from
        the study, which has to be where it was. Raises ProgramError if it cannot.
        """
        written = f"{os.path.splitext(self.path)[0]}.trial-{number}.yaml"
        if os.path.exists(written):
            with open(written, encoding="utf-8") as file:
                result = configuration.parsed(file.read())
            if isinstance(result.get("base"), str):
                result["base"] = os.path.join(os.path.dirname(os.path.abspath(written)), result["base"])
            return result
        return configuration.parsed(
            programs.call("explore", *shlex.split(self._study_words), "--trial", str(number), program=program)
        )

    @functools.cached_property
    def _words(self):
        """The words of the command line."""
        try:
            return shlex.split(self.command_line)
        except ValueError:
            return []

    @functools.cached_property
    def overrides(self):
        """["KEY=VALUE"]: what the command line changed in the base of the study."""
        words = self._words
        return [
            words[at + 1] if word == "--set" else word.removeprefix("--set=")
            for at, word in enumerate(words)
            if (word == "--set" and at + 1 < len(words)) or word.startswith("--set=")
        ]

    @property
    def _output(self):
        """The file that the job wrote."""
        words = self._words
        outputs = [word.removeprefix("--output=") for word in words if word.startswith("--output=")]
        outputs += [value for option, value in zip(words, words[1:]) if option == "--output"]
        return outputs[-1] if outputs else ("best.h5" if words[1:2] == ["best"] else "explore.h5")

    @functools.cached_property
    def _study_words(self):
        """STUDY.yaml and what changes its base, as words of a shell."""
        words = self._words
        studies = [word for word in words[2:] if word.endswith((".yaml", ".yml")) and "=" not in word]
        if words[1:2] == ["best"]:  # has written its study beside the output
            studies = [os.path.splitext(self._output)[0] + ".study.yaml"]
        return shlex.join(
            [studies[0] if studies else "STUDY.yaml", *(word for one in self.overrides for word in ("--set", one))]
        )

    def __repr__(self):
        return f"<orrery.Study of {self.shown_name}: {len(self.numbers):,} trials>"

    def __str__(self):
        from .report.studies import text  # prints what `orrery show results` prints

        return text.shown_study(self).rstrip("\n")

    def _repr_html_(self):
        return self.trials.loc[self.top]._repr_html_()


def whole(values):
    """Returns numbers as int64 if all of them are whole."""
    return (
        values.astype(np.int64)
        if len(values) and np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53)
        else values
    )


def read_study(path):
    """Returns the Study of one file; `path` is the file that orrery explore or orrery best wrote.

    Raises ResultsError if there is no such file, if it holds no study, or if it has another version of the format. Reads no table yet:
    cost and memory are those of the tables that are used.
    """
    return Study(path)
