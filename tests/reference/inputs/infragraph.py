"""Descriptions by InfraGraph: refused by name, with what to use instead."""
import harness


def check(folder, facts):
    for path in sorted(folder.glob("*.yaml")):
        done = harness.orrery("convert", path, "--output=/dev/null", "--force")
        agrees = done.code == 3 and "a description by InfraGraph" in done.err
        yield path.name, "" if agrees else f"exit code {done.code}: {done.err.strip()}"
