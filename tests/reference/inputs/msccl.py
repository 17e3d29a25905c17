"""MSCCL XML: what stands in a folder `refused` is refused; all else takes no less than its busiest connection, over links of 50 GB/s
between all pairs."""
import gzip
import json
import pathlib
import tempfile

import harness
import pairs

KEYS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
}


def time_of(path, kind, ranks):
    """Asks the program for the time of a collective of 1 MiB that this file, packed or not, spells out."""
    with tempfile.TemporaryDirectory(prefix="orrery-inputs-") as folder:
        config, plan = pathlib.Path(folder) / "system.yaml", pathlib.Path(folder) / path.name.removesuffix(".gz")
        plan.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        network = f"{{dimensions: [{{shape: FullyConnected, size: {ranks}, bandwidth: 50 GB/s, latency: 0 ns}}]}}"
        config.write_text(
            f"system:\n  network: {network}\n  collectives: {{endpoint-delay: 0 ns, custom: {{{kind}: '{plan}'}}}}\n"
        )
        return harness.orrery("show", "collective", str(config), f"--kind={kind}", "--bytes=1 MiB", "--json")


def differs(path, fact):
    done = time_of(path, KEYS.get(fact["coll"], "all-reduce"), fact["gpus"])
    if path.parent.name == "refused":
        return "" if done.code == 3 else f"exit code {done.code} instead of a refusal"
    if done.code != 0:
        return f"exit code {done.code}: {done.err.strip()}"
    took = json.loads(done.out)["last_done_ps"] / 1e6
    return "" if took >= fact["us_at_least"] - 1e-4 else f"{took} us, but at least {fact['us_at_least']}"


def check(folder, facts):
    for path, known in pairs.by_file(folder, facts):
        yield known[0]["file"], pairs.difference(differs, path, known) if path else "not there"
    told = {fact["file"] for fact in facts}
    for path in sorted(folder.glob("refused/*.xml")):
        if path.name not in told:
            done = time_of(path, "all-reduce", 8)
            yield path.name, "" if done.code == 3 else f"exit code {done.code} instead of a refusal"
