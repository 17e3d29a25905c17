"""Pairs the facts of a folder with the files that they are about."""
import collections


def by_file(folder, facts):
    """Yields (file, facts of its name) for each file below a folder that facts name, and (None, facts) for a name that no file has. Files in
    several folders may share a name: then any of these facts may be theirs."""
    of_name = collections.defaultdict(list)
    for fact in facts:
        of_name[fact["file"]].append(fact)
    for name, known in of_name.items():
        paths = sorted(folder.rglob(name))
        yield from ((path, known) for path in paths)
        if not paths:
            yield None, known


def difference(differ, path, known):
    """Returns how a file differs from its facts: `differ(path, fact)`, empty for one of them, or else that of the first."""
    differences = [differ(path, fact) for fact in known]
    return "" if "" in differences else differences[0]
