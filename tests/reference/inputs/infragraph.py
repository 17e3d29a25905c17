"""Descriptions of InfraGraph of older schemas: each is refused by this name, with what to give in its place. There are no facts."""
import harness


def check(folder, facts):
    del facts
    for path in sorted(folder.rglob("*.yaml")):
        done = harness.orrery("convert", path, f"--output={path.name}.none")
        agrees = done.code == 3 and "a description of InfraGraph" in done.err and "system.network.dimensions" in done.err
        yield path.name, "" if agrees else f"exit code {done.code}: {done.err.strip()}"
        done = harness.orrery("show", "graph", path)
        agrees = done.code == 3 and path.name in done.err and "InfraGraph 2.4" in done.err
        yield f"{path.name}, show graph", "" if agrees else f"exit code {done.code}: {done.err.strip()}"
