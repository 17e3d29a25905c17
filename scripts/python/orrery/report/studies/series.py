"""All trials of the studies as columns that the page draws, small enough for a page that is sent by mail.

Texts are a list of words and an index for each trial. Numbers that repeat are stored so too; other numbers have four bytes each, or three
where the page would become larger than MOST_BYTES: which is enough for four decimal digits.
"""
import re

from .quantities import is_less_better, title, unit_of
from .. import encode
from ...packages import load
from ...study import si

np, pd = load("numpy"), load("pandas")

MOST_BYTES = 4_400_000  # of the columns; the rest of the page has less than 0.6 MB
MOST_WORDS = 64  # of a parameter; one with more is a number, if it is one
MOST_ERRORS = 200_000  # characters of the different texts that say why trials are not done
NONE = "–"  # stands for a text that a trial does not have


def of(studies):
    """Returns {"count", "columns", "top", "front"} of the trials of all studies, one study after the other.

    columns: {"name", "title", "role", "unit", "description", "less" (the smaller value is the better one)} and either "values" or "words"
    and "codes". top, front: for each study the rows of these trials.
    """
    tables = [study.trials for study in studies]
    count = sum(map(len, tables))
    columns = (
        [worded("study", "study", np.repeat([study.name for study in studies], [len(table) for table in tables]))]
        if len(studies) > 1
        else []
    )
    columns.append(
        {
            "name": "number",
            "title": "trial",
            "role": "number",
            "unit": "1",
            "values": encode.array(joined([study.numbers for study in studies]), "uint32"),
        }
    )
    columns.append(worded("status", "status", joined([table["status"].astype(str) for table in tables])))
    columns += [parameter(studies, name) for name in union(study.parameters for study in studies)]
    if any("caveat" in table for table in tables):
        columns.append(worded("caveat", "caveat", texts_of(tables, "caveat")))
    columns.append(worded("error", "error", shortened(texts_of(tables, "error"))))
    columns += metrics(studies, MOST_BYTES - sum(size_of(column) for column in columns))
    starts = np.cumsum([0] + [len(table) for table in tables])
    rows = [
        {
            name: [int(start + row) for row in study.numbers.get_indexer(getattr(study, name)) if row >= 0]
            for name in ("top", "front")
        }
        for study, start in zip(studies, starts)
    ]
    return {
        "count": int(count),
        "starts": [int(start) for start in starts[:-1]],
        "columns": columns,
        "top": [one["top"] for one in rows],
        "front": [one["front"] for one in rows],
    }


def union(lists):
    """Returns what is in any of the lists, once, in their order."""
    return list(dict.fromkeys(one for some in lists for one in some))


def joined(columns):
    return np.concatenate([np.asarray(column) for column in columns])


def texts_of(tables, name):
    """Returns a column of texts of all tables; the empty text where a table does not have it."""
    return joined(
        [
            table[name].astype(str).to_numpy(dtype=object) if name in table else np.full(len(table), "", dtype=object)
            for table in tables
        ]
    )


def codes(values, count):
    """Returns indices below `count` in as few bytes as they need."""
    return encode.array(values, "uint8" if count <= 256 else "uint16" if count <= 65536 else "uint32")


def worded(name, role, values, description=""):
    """Returns a column of texts. Words that are quantities come first, the smallest first."""
    found, at = np.unique(np.where(values == "", NONE, values).astype(str), return_inverse=True)
    numbers = [si(word)[0] for word in found]
    order = sorted(range(len(found)), key=lambda i: (np.isnan(numbers[i]), numbers[i], found[i]))
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found))
    return {
        "name": name,
        "title": name.replace("_", " "),
        "role": role,
        "unit": "",
        "description": description,
        "words": [str(found[i]) for i in order],
        "codes": codes(place[at] if len(found) else at, len(found)),
    }


def parameter(studies, name):
    """Returns the column of a parameter: words, or numbers if it has too many values for that."""
    texts = joined(
        [
            study.texts[name].to_numpy(dtype=object)
            if name in study.parameters
            else np.full(len(study.numbers), "", dtype=object)
            for study in studies
        ]
    )
    chosen = any(name in study.varied for study in studies)
    column = worded(name, "parameter" if chosen else "derived", texts)
    if len(column["words"]) <= MOST_WORDS:
        return column
    found = [study.quantities(name) for study in studies if name in study.parameters]
    values = joined(
        [
            study.quantities(name)[0] if name in study.parameters else np.full(len(study.numbers), np.nan)
            for study in studies
        ]
    )
    if np.isnan(values).all():
        return column
    return {key: value for key, value in column.items() if key not in ("words", "codes")} | {
        "unit": found[0][1],
        "values": encode.array(values, "float32"),
    }


def shortened(texts):
    """Returns the texts; if their differences take too much room, with "…" in place of numbers, and if that does not suffice, the most frequent ones."""
    for shorten in (lambda text: text, lambda text: re.sub(r"\d[\d.,]*", "…", text)):
        known = {text: shorten(text) for text in pd.unique(texts)}
        if sum(map(len, set(known.values()))) <= MOST_ERRORS:
            return np.array([known[text] for text in texts], dtype=object)
    counts, room, kept = pd.Series(texts).map(known).value_counts(), MOST_ERRORS, set()
    for text in counts.index:
        room -= len(text)
        if room < 0:
            break
        kept.add(text)
    return np.array(
        [known[text] if known[text] in kept else "another reason (--csv has it)" for text in texts], dtype=object
    )


def metrics(studies, room):
    """Returns the columns of all metrics that a trial has, in `room` bytes if three bytes a number suffice for that."""
    objectives = dict(one for study in reversed(studies) for one in study.objectives)
    attributes, found = {}, []
    for name in union(study.metrics for study in studies):
        values = joined(
            [
                study.trials[name].to_numpy(dtype=float)
                if name in study.trials
                else np.full(len(study.numbers), np.nan)
                for study in studies
            ]
        )
        if name == "lower_bound":
            values[values == 0] = np.nan  # 0 says that there is no bound
        if np.isnan(values).all():
            continue
        attributes = next(study.trials.attrs for study in studies if name in study.trials)
        found.append(
            (
                {
                    "name": name,
                    "title": title(name),
                    "role": "objective" if name in objectives else "metric",
                    "unit": unit_of(name, attributes["units"].get(name, "")),
                    "description": attributes["descriptions"].get(name, ""),
                    "less": is_less_better(name, objectives.items()),
                },
                values,
            )
        )
    for kind in ("float32", "float24"):
        columns = [column | numbers(values, kind) for column, values in found]
        if sum(map(size_of, columns)) <= room:
            break
    return columns


def numbers(values, kind):
    """Returns {"values"}, or {"values", "codes"} if that is smaller: the different numbers, and which of them each trial has."""
    different, at = np.unique(values, return_inverse=True)
    if len(different) <= 256 or (len(different) <= 65536 and 8 * len(different) < len(values)):
        return {"values": encode.array(different, "float64"), "codes": codes(at, len(different))}
    return {"values": encode.array(values, kind)}


def size_of(column):
    """Returns how many bytes a column takes in the page, without its names."""
    return sum(len(column[name]["data"]) for name in ("values", "codes") if name in column) + sum(
        len(word) + 3 for word in column.get("words", [])
    )
