#!/usr/bin/env python3
"""What routers of flits cost collectives on a wafer (docs/flit-networks.md): a Markdown table and a picture.

usage: wafer_flits.py [--orrery PROGRAM] [--sizes SIZE,...] [--plot FILE.png]

Four wafers of 8 x 8 NPUs behind a switch. The mesh of a wafer is simulated flit by flit, or as links of the congestion-aware network, or by
the closed forms of the congestion-unaware network. All three have the bandwidth of the links and the latency of a hop in common."""
import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BANDWIDTH, FLIT, HOP = "256 GB/s", "64 B", "1.25 ns"  # a hop takes five cycles of 250 ps
SWITCH = "{shape: Switch, size: 4, bandwidth: 50 GB/s, latency: 500 ns}"
MESHES = {
    "flits": f"{{shape: Mesh2D, size: 8x8, bandwidth: {BANDWIDTH}, flits: {{flit: {FLIT}}}}}",
    "congestion-aware": f"{{shape: Mesh2D, size: 8x8, bandwidth: {BANDWIDTH}, latency: {HOP}}}",
    "congestion-unaware": f"{{shape: Mesh2D, size: 8x8, bandwidth: {BANDWIDTH}, latency: {HOP}}}",
}
CASES = (  # collective, NPUs (one wafer, or all), directions of rings
    ("all-reduce", 64, "one"),
    ("all-reduce", 64, "both"),
    ("all-to-all", 64, "one"),
    ("all-reduce", 256, "one"),
)


def time_of(program, mesh, kind, npus, directions, size):
    """Returns the time of a collective in ps."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "wafer.yaml")
        config.write_text(f"system: {{network: {{dimensions: [{MESHES[mesh]}, {SWITCH}]}}}}\n")
        command = [program, "show", "collective", config, "--kind", kind, "--bytes", size, "--npus", npus, "--json"]
        command += ["--set", f"system.collectives.directions={directions}"]
        if mesh != "flits":
            command += ["--network", mesh]
        shown = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
        return json.loads(shown.stdout)["last_done_ps"]


def plot(rows, sizes, file):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(CASES), figsize=(4 * len(CASES), 3.4), sharey=True)
    for axis, case in zip(axes, CASES):
        for mesh in MESHES:
            axis.loglog(range(len(sizes)), [rows[case, size][mesh] / 1e6 for size in sizes], "o-", label=mesh)
        axis.set_xscale("linear")
        axis.set_xticks(range(len(sizes)), sizes)
        axis.set_title("{}, {} NPUs, {}".format(*case))
        axis.set_xlabel("size")
    axes[0].set_ylabel("time (us)")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=ROOT / "build/release/bin/orrery")
    parser.add_argument("--sizes", default="1 KiB,16 KiB,256 KiB,1 MiB")
    parser.add_argument("--plot", type=pathlib.Path)
    arguments = parser.parse_args()
    sizes, rows = arguments.sizes.split(","), {}
    names = ("collective", "NPUs", "directions", "size", *MESHES, "flits / congestion-aware")
    print(f"| {' | '.join(names)} |\n" + "|---" * len(names) + "|")
    for case in CASES:
        for size in sizes:
            times = {mesh: time_of(arguments.orrery, mesh, *case, size) for mesh in MESHES}
            rows[case, size] = times
            shown = [*case, size, *(f"{time / 1e6:.3f} us" for time in times.values())]
            print(f"| {' | '.join(map(str, shown))} | {times['flits'] / times['congestion-aware']:.2f} |", flush=True)
    if arguments.plot:
        plot(rows, sizes, arguments.plot)


if __name__ == "__main__":
    main()
