#!/usr/bin/python3
"""Draws the times of two H100 that exchange buffers of 1 KiB to 1 GiB, with the measured points: docs/pictures/gpu-two-h100.png.

    plot_gpu.py OUTPUT.png [--kernels PROGRAM]

PROGRAM is tests/reference/gpu_kernel.cpp, built. Measured points: MSCCL++ (github:microsoft/mscclpp at 1f5f065d), docs/tutorials, 03 and 04.
"""
import argparse
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot  # noqa: E402

import check_gpu  # noqa: E402

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
MEASURED = {  # us, at 1 KiB, 1 MiB and 128 MiB
    "put": (6.508, 9.261, 389.24),
    "get": (4.376, 7.686, 417.45),
    "packets": (4.071, 10.49, 1018.8),
    "copy-engine": (20.4875, 25.032, 365.497),
}
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#555555")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--kernels", default=str(pathlib.Path(check_gpu.harness.BINARY).parent.parent / "tests/reference/gpu_kernel"))
    arguments = parser.parse_args()
    ask = check_gpu.Kernels(arguments.kernels)
    sizes = [KiB << k for k in range(21)]
    figure, axes = pyplot.subplots(figsize=(7.5, 4.6))
    for (kernel, points), colour in zip(MEASURED.items(), COLOURS):
        axes.plot(sizes, [ask.us(kernel, "h100", size) for size in sizes], color=colour, label=kernel)
        axes.plot((KiB, MiB, 128 * MiB), points, "o", color=colour, markeredgecolor="white", markersize=7)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([KiB, 32 * KiB, MiB, 32 * MiB, GiB], ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"])
    axes.set_xlabel("bytes that each GPU sends")
    axes.set_ylabel("time of the kernel (us)")
    axes.set_title("Two H100 exchange a buffer: simulated (lines), measured (points)")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
