#!/usr/bin/python3
"""Draws times of kernels of GPUs beside the measured points, for docs/validation.md.

    plot_gpu.py OUTPUT.png [--picture two-h100 | eight-h100 | h20] [--kernels PROGRAM]

two-h100 (docs/pictures/gpu-two-h100.png): two H100 exchange buffers of 1 KiB to 1 GiB. eight-h100 (gpu-eight-h100.png): all-reduces of 8 H100.
h20 (gpu-h20.png): stores between two H20 by threads and SMs, and copies by size. PROGRAM is tests/reference/gpu_kernel.cpp, built.
Measured points: MSCCL++ (github:microsoft/mscclpp at 1f5f065d), docs/tutorials 03 and 04, test/deploy/perf_ndmv5.jsonl, docs/dsl/figs, and
PR 647; of H20 a public measurement of register copies and copy engines over NVLink.
"""
import argparse
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot  # noqa: E402

import check_gpu  # noqa: E402

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#555555")
TWO_H100 = {  # us, at 1 KiB, 1 MiB and 128 MiB
    "put": (6.508, 9.261, 389.24),
    "get": (4.376, 7.686, 417.45),
    "packets": (4.071, 10.49, 1018.8),
    "copy-engine": (20.4875, 25.032, 365.497),
}
EIGHT_H100 = {  # us by bytes
    "one-shot": {KiB: 4.6, 4 * KiB: 5.12, 8 * KiB: 5.08},
    "two-shot": {24 * KiB: 6.18, 48 * KiB: 6.62},
    "in-switch": {KiB: 6.45, MiB: 10.3, 4 * MiB: 4 * MiB / 190e3, GiB: GiB / 275e3},
}
H20_THREADS = {32: 1.25, 1024: 37.23}  # GB/s of one block
H20_SMS = {1: 37.23, 4: 148.75, 12: 354.57, 64: 370.47}  # GB/s of blocks of 1,024 threads
H20_COPIES = {2 * KiB: 0.82, 64 * KiB: 23.87, 2 * MiB: 267.4, 128 * MiB: 393.4}  # GB/s of a copy engine


def size_axis(axes, sizes):
    axes.set_xscale("log", base=2)
    ticks = [size for size in (KiB, 32 * KiB, MiB, 32 * MiB, GiB) if sizes[0] <= size <= sizes[-1]]
    axes.set_xticks(
        ticks,
        [
            f"{size // GiB} GiB" if size >= GiB else f"{size // MiB} MiB" if size >= MiB else f"{size // KiB} KiB"
            for size in ticks
        ],
    )


def line(axes, xs, values, points, colour, label):
    """Draws simulated values as a line and measured ones, {x: value}, as points."""
    axes.plot(xs, values, color=colour, label=label)
    axes.plot(list(points), list(points.values()), "o", color=colour, markeredgecolor="white", markersize=7)


def two_h100(ask):
    sizes = [KiB << k for k in range(21)]
    figure, axes = pyplot.subplots(figsize=(7.5, 4.6))
    for (kernel, points), colour in zip(TWO_H100.items(), COLOURS):
        line(
            axes,
            sizes,
            [ask.us(kernel, "h100", size) for size in sizes],
            dict(zip((KiB, MiB, 128 * MiB), points)),
            colour,
            kernel,
        )
    axes.set_yscale("log")
    size_axis(axes, sizes)
    axes.set_xlabel("bytes that each GPU sends")
    axes.set_ylabel("time of the kernel (us)")
    axes.set_title("Two H100 exchange a buffer: simulated (lines), measured (points)")
    return figure


def eight_h100(ask):
    sizes = [KiB << k for k in range(21)]
    figure, axes = pyplot.subplots(figsize=(7.5, 4.6))
    for (kernel, points), colour in zip(EIGHT_H100.items(), COLOURS):
        most = GiB if kernel == "in-switch" else 4 * MiB
        drawn = [size for size in sizes if size <= most]
        line(axes, drawn, [ask.us(kernel, "h100", size) for size in drawn], points, colour, kernel)
    axes.set_yscale("log")
    size_axis(axes, sizes)
    axes.set_xlabel("bytes of the all-reduce")
    axes.set_ylabel("time of the kernel (us)")
    axes.set_title("All-reduces of 8 H100: simulated (lines), measured (points)")
    return figure


def h20_rate(ask, blocks, threads, size=64 * MiB):
    """The rate in GB/s of blocks that store to a peer, without the launch, as check_gpu.one_way_rate has it."""
    answer = ask.ask(kernel="copy", profile="h20", bytes=size, gpus=2, blocks=blocks, threads=threads)
    return size / (answer["us"] - answer["fixed_us"] - answer["l2_us"]) / 1e3


def h20(ask):
    figure, (of_threads, of_sms, of_size) = pyplot.subplots(1, 3, figsize=(10, 3.6))
    threads = [32, 64, 128, 256, 512, 1024]
    line(
        of_threads,
        threads,
        [h20_rate(ask, 1, count) for count in threads],
        H20_THREADS,
        COLOURS[0],
        "stores of one block",
    )
    of_threads.set_xscale("log", base=2)
    of_threads.set_xticks(threads, threads)
    of_threads.set_xlabel("threads of one block")
    of_threads.set_ylabel("rate (GB/s)")
    sms = [1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64]
    line(of_sms, sms, [h20_rate(ask, count, 1024) for count in sms], H20_SMS, COLOURS[1], "stores")
    of_sms.set_xlabel("SMs with 1,024 threads each")
    sizes = [KiB << k for k in range(1, 18)]
    line(
        of_size,
        sizes,
        [check_gpu.engine_rate(ask, {"setup": {"profile": "h20", "bytes": size}}) for size in sizes],
        H20_COPIES,
        COLOURS[2],
        "copies",
    )
    size_axis(of_size, sizes)
    of_size.set_xlabel("bytes of a copy by an engine")
    figure.suptitle("Two H20: simulated (lines), measured (points)")
    return figure


PICTURES = {"two-h100": two_h100, "eight-h100": eight_h100, "h20": h20}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--picture", choices=PICTURES, default="two-h100")
    parser.add_argument(
        "--kernels", default=str(pathlib.Path(check_gpu.harness.BINARY).parent.parent / "tests/reference/gpu_kernel")
    )
    arguments = parser.parse_args()
    figure = PICTURES[arguments.picture](check_gpu.Kernels(arguments.kernels))
    for axes in figure.axes:
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        if arguments.picture != "h20":
            axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
