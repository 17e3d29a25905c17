#!/usr/bin/env python3
"""Seconds per iteration of the Megatron papers' models on A100 clusters: published, and as Orrery simulates the generated workloads.
What the first stage needs of the 80 GB of local memory is printed too, also without recomputation.

usage: megatron_a100.py [--efficiency E] [--models 22b,175b,530b,1t] [--orrery PROGRAM] [--ranks R]

Published: Korthikanti et al., "Reducing activation recomputation in large transformer models", arXiv 2205.05198, tables 3 and 5: full
recomputation, and sequence parallelism with selective recomputation. The only thing that is not taken from data sheets or from the
paper is the efficiency of matrix products: the share of the peak of 312 TFLOPS that they reach. It is one number for all cases.
Exit code 1 if the mean error is above 10 %.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEAK_TFLOPS = 312
LARGEST_MEAN_ERROR = 0.10
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}

# Pipeline stages, virtual stages of each, samples of a micro-batch, micro-batches; seconds with full and with selective recomputation.
# Tensor parallelism is 8 in all of them, data parallelism 1.
CASES = {
    "22b": (1, 1, 4, 1, 1.42, 1.10),
    "175b": (8, 3, 1, 64, 18.13, 13.75),
    "530b": (35, 3, 1, 280, 49.05, 37.83),
    "1t": (64, 1, 1, 512, 94.42, 71.49),
}

CONFIG = """system:
  base: {root}/configs/systems/dgx-a100-superpod.yaml
  network:
    dimensions:
      - {{shape: Switch, size: 8, bandwidth: 300 GB/s, latency: 500 ns}}
      - {{shape: Switch, size: {pp}, bandwidth: 200 Gb/s, latency: 1 us}}
  compute: {{peak: {peak} TFLOPS}}
workload:
  model: {root}/configs/models/megatron-{name}.yaml
  parallel: {{tp: 8, pp: {pp}, interleaving: {chunks}, micro-batch: {samples}, micro-batches: {batches}, gradients: fp32, detail: operator, {variant}}}
"""
VARIANTS = {"full": "recompute: full", "selective": "recompute: selective, sp: true"}  # that were measured
UNMEASURED = {"none": "recompute: none"}  # it does not fit


def step(program, config, folder, *more):
    """Seconds, and the peak of the local memory as a text."""
    done = subprocess.run(
        [
            *program,
            "run",
            config,
            "--verbose",
            "--fold",
            "--record-iterations=0",
            f"--output={folder / 'results.h5'}",
            "--force",
            *more,
        ],
        capture_output=True,
        text=True,
    )
    found = re.search(r"^step time ([\d.]+) (\w+)", done.stdout, re.MULTILINE)
    memory = re.search(r"^local memory: NPU \d+ needs most, ([\d.]+ \w+) at", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not found or not memory:
        sys.exit(f"megatron_a100.py: {config}: {done.stderr.strip()}")
    return float(found[1]) * SECONDS[found[2]], memory[1]


def main():
    parser = argparse.ArgumentParser(description="Seconds per iteration on A100 clusters against the published ones.")
    parser.add_argument(
        "--efficiency", type=float, default=0.70, help="share of the peak that matrix products reach (default: 0.70)"
    )
    parser.add_argument("--models", default=",".join(CASES), help="default: all four")
    parser.add_argument("--orrery", default=str(ROOT / "build/release/bin/orrery"), help="the program")
    parser.add_argument("--ranks", type=int, default=0, help="MPI ranks; 0: without mpirun")
    args = parser.parse_args()
    program = ([str(ROOT / "scripts/mpirun.sh"), str(args.ranks)] if args.ranks else []) + [args.orrery]
    print(f"efficiency of matrix products: {args.efficiency:.2f} of {PEAK_TFLOPS} TFLOPS\n")
    print(
        f"{'model':<6} {'NPUs':>5} {'recompute':<10} {'local memory':>12} {'published':>10} {'Orrery':>9} {'error':>8}"
    )
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in args.models.split(","):
            if name not in CASES:
                parser.error(f"--models: found '{name}', expected some of {', '.join(CASES)}")
            pp, chunks, samples, batches, *published = CASES[name]
            for (variant, keys), seconds in zip((VARIANTS | UNMEASURED).items(), [*published, None]):
                config = folder / "config.yaml"
                config.write_text(
                    CONFIG.format(
                        root=ROOT,
                        name=name,
                        pp=pp,
                        chunks=chunks,
                        samples=samples,
                        batches=batches,
                        variant=keys,
                        peak=f"{PEAK_TFLOPS * args.efficiency:.4f}",
                    )
                )
                found, memory = step(program, config, folder, *(["--memory=report"] if seconds is None else []))
                row = f"{name:<6} {8 * pp:>5} {variant:<10} {memory:>12}"
                if seconds is None:
                    print(f"{row} {'-':>10} {found:>7.2f} s", flush=True)
                    continue
                errors.append(abs(found / seconds - 1))
                print(f"{row} {seconds:>8.2f} s {found:>7.2f} s {100 * (found / seconds - 1):>+6.1f} %", flush=True)
    mean = sum(errors) / len(errors)
    print(f"\nmean error {100 * mean:.1f} %, largest {100 * max(errors):.1f} %")
    return 0 if mean <= LARGEST_MEAN_ERROR else 1


if __name__ == "__main__":
    sys.exit(main())
