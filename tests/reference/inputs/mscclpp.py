"""Plans of MSCCL++: accepted for as many NPUs as the facts say, in one switch that carries out operations."""
import pathlib
import tempfile

import harness

KEYS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
}
UNKNOWN = {"glre"}  # to the executor of MSCCL++ as well


def time_of(path, kind, ranks):
    """Asks the program for the time of a collective that this file spells out."""
    with tempfile.TemporaryDirectory(prefix="orrery-inputs-") as folder:
        config = pathlib.Path(folder) / "system.yaml"
        network = f"{{dimensions: [{{shape: Switch, size: {ranks}, bandwidth: 100 GB/s, latency: 500 ns, in-switch-operations: 64}}]}}"
        config.write_text(f"system:\n  network: {network}\n  collectives: {{custom: {{{kind}: '{path.resolve()}'}}}}\n")
        return harness.orrery("show", "collective", str(config), f"--kind={kind}", "--bytes=1 MiB")


def check(folder, facts):
    for fact in facts:
        done = time_of(folder / fact["file"], KEYS[fact["collective"]], fact["gpus"])
        if UNKNOWN & set(fact["ops"]):
            agrees = done.code == 3 and "MSCCL++'s own executor does not know it" in done.err
        else:
            agrees = done.code == 0
        yield fact["file"], "" if agrees else f"exit code {done.code}: {done.err.strip()}"
