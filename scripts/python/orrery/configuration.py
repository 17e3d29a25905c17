"""Reads the resolved configuration of a run and says in which keys several runs differ."""
import re

from .packages import load


def parsed(text):
    """Returns the resolved configuration (YAML) as dictionaries, lists, texts and numbers. Quantities with units stay texts."""
    yaml = load("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, Loader=loader)


def flattened(tree, prefix=""):
    """Returns {key: value} with keys as --set takes them, such as "system.network.dimensions.0.bandwidth".

    Lists of plain values, such as one algorithm for each dimension, stay one value.
    """
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list) and any(isinstance(one, (dict, list)) for one in tree):
        items = enumerate(tree)
    else:
        return {prefix: tuple(tree) if isinstance(tree, list) else tree}
    flat = {}
    for key, value in items:
        flat.update(flattened(value, f"{prefix}.{key}" if prefix else str(key)))
    return flat


def differing(configurations):
    """Returns {key: [value in each configuration]} of the keys that are not the same in all; None where one does not have the key.

    configurations: a list of flattened configurations.
    """
    keys = dict.fromkeys(key for one in configurations for key in one)
    found = {key: [one.get(key) for one in configurations] for key in keys}
    return {key: values for key, values in found.items() if any(value != values[0] for value in values)}


def room(tree):
    """Returns how many bytes of tensors an NPU has room for, or None if the configuration gives no size. tree: as `parsed` returns it."""
    memory = tree["system"]["compute"].get("local-memory", {})
    size = re.fullmatch(r"(\d+) B", str(memory.get("size", "")))
    if not size:
        return None
    elsewhere = tree["system"].get("remote-memory", {}).get("expanded-memory", {}).get("share", 0)
    return int(size[1]) / (1 - float(elsewhere))
