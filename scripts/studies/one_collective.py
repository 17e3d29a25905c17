"""What the studies of collectives share: systems as the papers give them, and what one collective takes there."""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = {"SW": "Switch", "FC": "FullyConnected", "Ring": "Ring"}

# One dimension: building block, NPUs, GiB/s of an NPU, ns of one step.
Dimension = collections.namedtuple("Dimension", "block size bandwidth latency")
# How chunks go: Options of `collectives` in CONFIG.yaml.
Scheduler = collections.namedtuple("Scheduler", "dimension_order chunk_order")
BASELINE, THEMIS_FIFO, THEMIS_SCF = (
    Scheduler("ascending", "fifo"),
    Scheduler("themis", "fifo"),
    Scheduler("themis", "smallest-chunk-first"),
)


def dimension(number, block, size, bandwidth, latency):
    """As Orrery's file has it. The papers give the bandwidth of an NPU in a dimension: a fully connected link has its share of that, and a
    ring sends with all of it one way round. A message passes two links of a switch, which share the latency of the step. Each dimension
    is a port of its own."""
    per_link = bandwidth * 2**30 / (size - 1 if block == "FC" else 1)
    per_hop = latency / (2 if block == "SW" else 1)
    return f"{{shape: {SHAPES[block]}, size: {size}, bandwidth: {per_link:.0f} B/s, latency: {per_hop} ns, port: d{number}}}"


def system(dimensions, scheduler, chunks=64):
    return (
        f"system:\n  network: {{dimensions: [{', '.join(dimension(number, *one) for number, one in enumerate(dimensions))}]}}\n"
        f"  collectives: {{chunks: {chunks}, dimension-order: {scheduler.dimension_order}, chunk-order: {scheduler.chunk_order}, "
        f"directions: one, overlap-latency: true, endpoint-delay: 0 ns}}\n"
    )


def milliseconds(orrery, config, kind, size):
    """What a collective of `size` bytes takes if all NPUs of the system begin it together."""
    with tempfile.TemporaryDirectory(prefix="orrery-study-") as folder:
        path = pathlib.Path(folder) / "system.yaml"
        path.write_text(config)
        done = subprocess.run(
            [orrery, "show", "collective", str(path), "--kind", kind, "--bytes", f"{size}B", "--json"],
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {done.stderr.strip()}")
    return json.loads(done.stdout)["last_done_ps"] / 1e9
