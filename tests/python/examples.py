"""Results files for the tests of the Python package: small runs that together have every group of results.h5."""
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS.parent / "scripts/python")]

import chakra  # noqa: E402
import harness  # noqa: E402

TRANSFORMER = """
workload:
  model: {kind: transformer, layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 1024}
  parallel: {tp: 2, pp: 2, dp: 2, micro-batches: 2}
"""
COMPUTE = "  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1000 GB/s, size: 16 GB}}\n"
RING = "  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 50 GB/s, latency: 500 ns}, {shape: Switch, size: 4, bandwidth: 25 GB/s, latency: 1 us}]}\n"
LINKS = """  network:
    model: congestion-aware
    dimensions:
      - {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 500 ns, oversubscription: 2}
      - {shape: FatTree, ports: 4, size: 4, bandwidth: 25 GB/s, latency: 1 us}
"""
POOL = """  remote-memory: {kind: hierarchical-pool, groups: 4, bandwidth: 100 GB/s, latency: 1 us, switches: 2, link-bandwidth: 100 GB/s,
                  link-latency: 500 ns, npus-per-node: 2, fabric-bandwidth: 100 GB/s, fabric-latency: 200 ns, chunk-size: 1 MiB}
"""
OFFLOAD = TRANSFORMER.replace(
    "tp: 2, pp: 2, dp: 2, micro-batches: 2", "dp: 8, zero: 3, offload: [parameters, gradients, optimizer]"
)


def run(folder, name, config, *more):
    """Runs the configuration `config` (text) in a folder and returns the path of the results, NAME.h5 there."""
    path, results = pathlib.Path(folder) / f"{name}.yaml", pathlib.Path(folder) / f"{name}.h5"
    path.write_text(config)
    outcome = harness.orrery("run", path, "--quiet", "--force", f"--output={results}", *more, timeout=300)
    if outcome.code != 0:
        raise AssertionError(f"{name}: exit code {outcome.code}: {outcome.err}")
    return results


def transformer(folder, name="transformer", *more):
    """A step of a small transformer on 8 NPUs: 2 tensor x 2 pipeline x 2 data parallel, with a timeline."""
    return run(folder, name, "system:\n" + RING + COMPUTE + TRANSFORMER, "--timeline", *more)


def with_links(folder):
    """The same on the congestion-aware network, with an oversubscribed switch and a fat tree."""
    return run(folder, "links", "system:\n" + LINKS + COMPUTE + TRANSFORMER, "--timeline")


def with_pool(folder):
    """A step whose parameters are in a hierarchical memory pool; without a timeline."""
    return run(folder, "pool", "system:\n" + RING + POOL + COMPUTE + OFFLOAD)


def with_thread_blocks(folder):
    """An all-reduce and an all-gather between two GPUs, whose thread blocks carry out plans."""
    custom = []
    for kind, plan in (("all-reduce", "two-shot"), ("all-gather", "all-gather-put")):
        subprocess.run(
            [
                sys.executable,
                TESTS.parent / "scripts/make_plan.py",
                plan,
                "--gpus=2",
                "--blocks=2",
                f"--output={folder / plan}.json",
            ],
            check=True,
        )
        custom.append(f"{kind}: {plan}.json")
    for npu in range(2):
        chakra.write(
            folder / f"gpu.{npu}.et",
            [
                chakra.Node(0, chakra.COLL, comm_type=chakra.ALL_REDUCE, comm_size=1 << 18),
                chakra.Node(1, chakra.COLL, data_deps=[0], comm_type=chakra.ALL_GATHER, comm_size=1 << 16),
            ],
        )
    return run(
        folder,
        "blocks",
        f"""system:
  network: {{model: congestion-aware, switching: cut-through, dimensions: [{{shape: Switch, size: 2, bandwidth: 450 GB/s, latency: 150 ns}}]}}
  gpu: {{profile: h100}}
  collectives: {{custom: {{{", ".join(custom)}}}}}
workload: {{traces: "gpu.{{npu}}.et"}}
""",
    )


def without_records(folder):
    """A run that recorded none of its collectives: their table has no row."""
    return transformer(folder, "none", "--record-iterations=0")


def on_two_ranks(folder):
    """A run on two ranks with a rank map and traces from files: the results hold these inputs."""
    prefix, ranks, results = folder / "step", folder / "ranks", folder / "two.h5"
    outcome = harness.orrery(
        "generate", "--tp", "2", "--pp", "1", "--dp", "4", "--layers", "2", "--hidden", "512", "--output", prefix
    )
    if outcome.code != 0:
        raise AssertionError(outcome.err)
    ranks.write_text("".join(f"{npu % 2}\n" for npu in range(8)))
    (folder / "two.yaml").write_text(f"system:\n{RING}{COMPUTE}workload: {{traces: step, groups: step.json}}\n")
    outcome = harness.orrery(
        "run", folder / "two.yaml", "--quiet", f"--partition={ranks}", f"--output={results}", ranks=2
    )
    if outcome.code != 0:
        raise AssertionError(outcome.err)
    return results


def repeated(folder):
    """Three repetitions of a step with noise."""
    return run(folder, "repeated", "system:\n" + RING + COMPUTE + TRANSFORMER, "--noise=0.1", "--repetitions=3")


def with_jobs(folder):
    """Two jobs of a step on half of the NPUs each, together and alone."""
    step = "{model: {kind: transformer, layers: 4, hidden: 512, heads: 8, sequence: 256}, parallel: {tp: 2, pp: 2, micro-batches: 2}}"
    jobs = f"jobs:\n- {{name: even, allocation: [0, 2, 4, 6], workload: {step}}}\n- {{allocation: scattered, workload: {step}}}\n"
    return run(folder, "jobs", "system:\n" + LINKS + COMPUTE + jobs, "--jobs-alone")


def all_of(folder):
    """{name: results} of all these runs."""
    makers = (transformer, with_links, with_pool, without_records, on_two_ranks, repeated, with_jobs)
    return {maker.__name__: maker(folder) for maker in makers}
