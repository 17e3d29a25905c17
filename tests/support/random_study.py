"""Random studies of small transformers: systems, models, and parallelisms to choose from."""
import math

OVERLAPS = {
    "overlap": ["true", "true", "false"],
    "bucket": ["0 B", "1 MB", "auto"],
    "prefetch": [0, 1, 2],
    "bucket-buffers": [0, 1, 2],
    "calls-of-layer": [1, 1, 3],
    "detail": ["block", "operator"],
    "norm-sums": ["true", "false"],
    "scattered-messages": ["true", "false"],
    "gather-before-forward": ["true", "false"],
}
STUDY = """study:
  base: {base}
  parameters:
    batch: {{values: [{batch}]}}
    tp: {{key: workload.parallel.tp, values: {tp}}}
    cp: {{key: workload.parallel.cp, values: {cp}}}
    ep: {{key: workload.parallel.ep, values: {ep}}}
    pp: {{key: workload.parallel.pp, values: {pp}}}
    micro_batch: {{key: workload.parallel.micro-batch, values: {micro_batch}}}
    interleaving: {{key: workload.parallel.interleaving, values: {interleaving}, when: pp > 1, else: 1}}
    recompute: {{key: workload.parallel.recompute, values: {recompute}}}
    zero: {{key: workload.parallel.zero, values: {zero}}}
    sp: {{key: workload.parallel.sp, values: [false, true], when: tp > 1, else: false}}
  derived:
    dp: {{key: workload.parallel.dp, value: npus / (tp * cp * pp * ep)}}
    micro_batches: {{key: workload.parallel.micro-batches, value: batch / (dp * ep * micro_batch)}}
  constraints: ["divides(tp * cp * pp * ep, npus)", "divides(dp * ep * micro_batch, batch)"{limit}]
  objectives: [{objectives}]
  keep: {keep}
  strategy: {{kind: {strategy}}}
"""


def base_text(draw, sizes, experts):
    """Returns a CONFIG.yaml with a random system of these dimensions and a random model."""
    shapes = [
        f"{{shape: {draw.choice(['Ring', 'Switch', 'FullyConnected'])}, size: {size}, bandwidth: {draw.choice([5, 50, 400])} GB/s, "
        f"latency: {draw.choice([100, 1000, 20000])} ns}}"
        for size in sizes
    ]
    parallel = {key: draw.choice(values) for key, values in OVERLAPS.items()} | {
        "pp": 2,
        "dp": math.prod(sizes) // 2,
        "micro-batches": 4,
    }
    parallel["schedule"] = draw.choice(["1f1b", "1f1b", "gpipe", "zb-h1", "zb-v"])
    if parallel["schedule"] == "1f1b":
        parallel["delayed-weight-gradients"] = draw.choice(["false", "true"])
    return (
        f"system:\n  network: {{dimensions: [{', '.join(shapes)}]}}\n  collectives: {{chunks: {draw.choice([1, 4])}}}\n"
        f"  compute: {{model: {draw.choice(['roofline', 'products'])}, peak: 100 TFLOPS, local-memory: {{bandwidth: {draw.choice([100, 2000])} GB/s}}}}\n"
        f"workload:\n  model: {{layers: {draw.choice([4, 6, 8])}, hidden: {draw.choice([256, 1024])}, heads: 8, "
        f"sequence: {draw.choice([128, 1024])}, vocabulary: {draw.choice([1000, 32000])}, tied-embeddings: {draw.choice(['true', 'false'])}"
        f"{', experts: 4, top-k: 2' if experts else ''}}}\n"
        f"  parallel: {{{', '.join(f'{key}: {value}' for key, value in parallel.items())}}}\n"
    ), parallel["schedule"]


def write(draw, folder, strategy="bounded", keep=1_000_000, objectives="{minimise: step_time}", limit=""):
    """Writes base.yaml and study.yaml into a folder and returns the path of the study."""
    sizes = draw.choice([[8], [4, 2], [2, 4], [16], [4, 4], [8, 2], [2, 2, 4], [12], [4, 3], [6, 4]])
    npus = math.prod(sizes)
    experts = draw.random() < 0.3
    base, schedule = base_text(draw, sizes, experts)
    (folder / "base.yaml").write_text(base)
    few = lambda values, count: sorted(draw.sample(values, count))  # noqa: E731
    path = folder / "study.yaml"
    path.write_text(
        STUDY.format(
            base=folder / "base.yaml",
            batch=npus * draw.choice([2, 4, 6]),
            tp=few([1, 2, 4], 2),
            cp=draw.choice([[1], [1, 2]]),
            ep=[1, 2] if experts else [1],
            pp=few([1, 2, 3, 4], 2),
            micro_batch=draw.choice([[1], [1, 2]]),
            interleaving=draw.choice([[1], [1, 2]]) if schedule == "1f1b" else [1],
            recompute=draw.choice([["none"], ["none", "full"], ["selective"]]),
            zero=few([0, 1, 2, 3], 3),
            limit=limit,
            objectives=objectives,
            keep=keep,
            strategy=strategy,
        )
    )
    return path
