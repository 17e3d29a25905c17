#!/usr/bin/python3
"""Generated workloads: they give the same results as their traces, their presets are what was published, and they run."""
import collections
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

SYSTEM = """system:
  network:
    dimensions: [%s]
  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1 TB/s}, noise: %s}
  communication: {streams: 2}
  collectives: {chunks: 2}
"""


MEMORIES = {
    "per-npu": "bandwidth: 20 GB/s, latency: 1 us",
    "per-node": "bandwidth: 40 GB/s, latency: 500 ns, npus-per-node: %d",
    "hierarchical-pool": "bandwidth: 20 GB/s, latency: 200 ns, npus-per-node: %d, groups: 4, switches: 2, link-bandwidth: 20 GB/s, "
    "fabric-bandwidth: 50 GB/s, chunk-size: 64 KiB",
}


def remote_memory(kind, npus):
    """Returns the line of `system` that gives it this remote memory, shared by two halves of the NPUs if it is shared and their number
    is even."""
    keys = MEMORIES[kind]
    return f"  remote-memory: {{kind: {kind}, {keys % (npus // 2 if npus % 2 == 0 else 1) if '%' in keys else keys}}}\n"


def random_workload(rng):
    """Draws a parallelisation of at most 64 NPUs and a small model that fits it. Returns the text of `workload` and the number of NPUs."""
    experts = rng.random() < 0.3
    sizes = {
        "tp": rng.choice([1, 2, 4]),
        "cp": rng.choice([1, 1, 2]),
        "ep": rng.choice([1, 2]) if experts else 1,
        "dp": rng.choice([1, 2, 3]),
        "pp": rng.choice([1, 2, 4]),
    }
    placement = list(sizes)
    rng.shuffle(placement)
    batches = rng.choice([1, 4, 8])
    interleaved = sizes["pp"] > 1 and batches % sizes["pp"] == 0 and rng.random() < 0.5
    parallel = dict(
        sizes,
        placement=f"[{', '.join(placement)}]",
        sp=rng.choice(["true", "false"]),
        zero=rng.randrange(4),
        **{
            "micro-batches": batches,
            "micro-batch": rng.choice([1, 2]),
            "interleaving": 2 if interleaved else 1,
            "schedule": "1f1b" if interleaved else rng.choice(["1f1b", "gpipe"]),
            "recompute": rng.choice(["none", "selective", "full"]),
            "bucket": rng.choice(["0 B", "1 MB", "auto"]),
            "precision": rng.choice(["bf16", "fp8", "fp32"]),
            "detail": rng.choice(["block", "operator"]),
        },
    )
    offload = rng.choice([[], [], ["parameters"], ["gradients", "optimizer"], ["parameters", "gradients", "optimizer"]])
    on_path = "gradients" in offload and rng.random() < 0.5
    parallel |= {
        "prefetch": rng.randrange(3),
        "offload": f"[{', '.join(offload)}]",
        "offload-collectives": "path" if on_path else "network",
    }
    model = {
        "layers": 8,
        "hidden": 256,
        "heads": 8,
        "kv-heads": rng.choice([2, 8]),
        "vocabulary": rng.choice([0, 1024]),
        "sequence": 128,
        "gated": rng.choice(["true", "false"]),
        "fused-attention": rng.choice(["true", "false"]),
        "tied-embeddings": rng.choice(["true", "false"]),
        "experts": 4 if experts else 0,
        "top-k": 2 if experts else 0,
    }
    npus = 1
    for size in sizes.values():
        npus *= size
    text = [f"{{{', '.join(f'{key}: {value}' for key, value in section.items())}}}" for section in (model, parallel)]
    return f"workload:\n  model: {text[0]}\n  parallel: {text[1]}\n", npus


def quantities(path):
    """Returns everything that a run says of the simulated system, by the names of the datasets."""
    import h5py

    found = {}
    with h5py.File(path) as results:
        for group in {"npus", "collectives", "groups", "network", "memory"} & set(results):
            results[group].visititems(
                lambda name, item, group=group: found.update({f"{group}/{name}": item[()].tolist()})
                if hasattr(item, "dtype")
                else None
            )
    return found


# The configurations of shared/traces that the STAGE generator wrote: the model and parallelisation, an NPU, and where the numbers of
# collectives differ, by kind and size of the group: (STAGE's, ours). docs/workloads.md has the reasons.
KINDS = {
    chakra.ALL_REDUCE: "all-reduce",
    chakra.ALL_GATHER: "all-gather",
    chakra.REDUCE_SCATTER: "reduce-scatter",
    chakra.ALL_TO_ALL: "all-to-all",
}
STAGE = {
    "stage-gpt_64_tp8sp2dp4_sp": (
        "{layers: 8, hidden: 4096, heads: 32, sequence: 2048}",
        "{tp: 8, cp: 2, dp: 4, sp: true, micro-batch: 32}",
        (0, 63),
        {("all-reduce", 2): (10, 0), ("all-reduce", 4): (10, 0), ("all-reduce", 8): (2, 8)},
    ),
    "stage-llama-s_64_dp4tp4pp4": (
        "{layers: 32, hidden: 4096, heads: 32, sequence: 4096, gated: true, ffn: 11008}",
        "{tp: 4, dp: 4, pp: 4, sp: true, micro-batches: 16}",
        (16, 47),
        {("all-reduce", 4): (128, 8)},
    ),
    "stage-moe_64_dp4tp2pp2ep4": (
        "{layers: 8, hidden: 4096, heads: 32, sequence: 4096, gated: true, experts: 8, top-k: 2}",
        "{tp: 2, ep: 4, dp: 4, pp: 2, sp: true}",
        (0, 63),
        {
            ("all-gather", 2): (36, 24),
            ("reduce-scatter", 2): (24, 16),
            ("all-gather", 4): (12, 0),
            ("all-reduce", 2): (1, 0),
            ("all-reduce", 4): (5, 4),
            ("all-reduce", 16): (0, 4),
        },
    ),
}


def communication(prefix, groups, npu, bytes_of_element=1):
    """Counts the collectives of a trace by kind and size of the group, and its messages. Returns the counts and the set of the sizes
    that occur, in bytes."""
    counts, sizes = collections.Counter(), set()
    for node in chakra.read(f"{prefix}.{npu}.et"):
        attributes = {name: getattr(value, "value", value) for name, value in node.attributes.items()}
        if node.type == chakra.COLL:
            key = KINDS[attributes["comm_type"]], len(groups[attributes["pg_name"]])
            counts[key] += 1
            sizes.add((*key, attributes["comm_size"] * bytes_of_element))
        elif node.type in (chakra.SEND, chakra.RECV):
            counts["send" if node.type == chakra.SEND else "receive"] += 1
            sizes.add(("message", attributes["comm_size"] * bytes_of_element))
    return counts, sizes


class Generated(harness.Folder):
    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_a_generated_workload_equals_its_traces(self):
        """16 random parallelisations of a small model, on a random network and remote memory: simulated as they are and from the traces
        that `generate` writes, they give the same results on 1 and 3 ranks, and `check` finds nothing wrong with either. (It may warn of one micro-batch and of
        rings.)"""
        rng = random.Random(5)
        for case in range(4 if harness.FEWER_CASES else 16):
            workload, npus = random_workload(rng)
            shape = rng.choice(["Ring", "Switch", "FullyConnected"])
            system = SYSTEM % (
                f"{{shape: {shape}, size: {npus}, bandwidth: 100 GB/s, latency: 500 ns}}",
                rng.choice([0, 0.1]),
            )
            if "offload: []" not in workload:
                system += remote_memory(
                    "hierarchical-pool" if "collectives: path" in workload else rng.choice(list(MEMORIES)), npus
                )
            with self.subTest(case=case, workload=workload):
                direct = self.write("direct.yaml", system + workload)
                prefix = self.folder / f"traces{case}" / "w"
                made = harness.orrery("generate", direct, f"--output={prefix}")
                self.assertEqual(made.code, 0, made.err)
                traces = self.write("traces.yaml", system + f"workload:\n  traces: {prefix}\n  groups: {prefix}.json\n")
                for config in (direct, traces):
                    checked = harness.orrery("check", config)
                    self.assertEqual((checked.code, harness.errors(checked)), (0, []))
                    self.assertIn("nothing wrong was found", checked.out)
                one = self.run_once([traces], "one.h5")
                self.assertEqual(len(harness.finish_times(one)), npus)
                for ranks in (0, 3):
                    other = self.run_once([direct], "other.h5", ranks=ranks)
                    self.assertEqual(quantities(one), quantities(other), f"{ranks} ranks")

    def test_traces_keep_their_precision(self):
        """Traces of a workload in fp32 and fp8 on processors with a peak for each precision. Expectation: they name their
        precision; with workload.precision they take the time of the generated workload, without it they are refused, and traces that name none run
        in any; the key has no effect where there is one peak, and is refused beside a model."""
        system = (
            "system:\n  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 50 GB/s, latency: 500 ns}]}\n"
            "  compute: {roofline: true, peak: PEAK, local-memory: {bandwidth: 3350 GB/s}}\n"
        )
        peaks = system.replace("PEAK", "{bf16: 100 TFLOPS, fp8: 200 TFLOPS, fp32: 50 TFLOPS}")
        workload = "workload:\n  model: {layers: 2, hidden: 2048, heads: 16, sequence: 1024}\n  parallel: {dp: 2, tp: 2, precision: %s}\n"
        times = {}
        for precision in ("fp32", "fp8", "bf16"):
            with self.subTest(precision=precision):
                direct = self.write("direct.yaml", peaks + workload % precision)
                made = harness.orrery("generate", direct, f"--output={self.folder / precision}", "--force")
                self.assertEqual("workload.precision: " + precision in made.out, precision != "bf16")
                times[precision] = harness.finish_times(self.run_once([direct], "one.h5"))
                from_traces = f"workload: {{traces: {precision}, groups: {precision}.json%s}}\n"
                named = self.write("named.yaml", peaks + from_traces % f", precision: {precision}")
                self.assertEqual(harness.finish_times(self.run_once([named], "one.h5")), times[precision])
                if precision == "bf16":
                    other = self.write("other.yaml", peaks + from_traces % ", precision: fp8")
                    self.assertLess(max(harness.finish_times(self.run_once([other], "one.h5"))), max(times["bf16"]))
                    continue
                for wrong in ("", ", precision: bf16"):
                    refused = harness.orrery(
                        "run", self.write("wrong.yaml", peaks + from_traces % wrong), f"--output={self.folder}/x.h5"
                    )
                    self.assertEqual(refused.code, 3)
                    self.assertIn(
                        f"the trace computes in {precision}, but the run in bf16; expected workload.precision: {precision}",
                        refused.err,
                    )
                one_peak = self.write(
                    "one.yaml", system.replace("PEAK", "100 TFLOPS") + from_traces % f", precision: {precision}"
                )
                self.assertIn(
                    "workload.precision has no effect",
                    harness.orrery("run", one_peak, f"--output={self.folder}/one.h5", "--force").err,
                )
        self.assertEqual(len({max(all_times) for all_times in times.values()}), 3)
        for made in ("copied", "learned", "again"):
            with self.subTest(made=made):
                traces = (f"{self.folder}/fp8.{{npu}}.et", f"--groups={self.folder}/fp8.json")
                source = {
                    "copied": ("convert", *traces),
                    "learned": ("synthesize", *traces, f"--model-out={self.folder}/model.json"),
                    "again": ("synthesize", f"--model={self.folder}/model.json"),
                }[made]
                written = harness.orrery(*source, f"--output={self.folder / made}")
                self.assertEqual(written.code, 0, written.err)
                config = self.write("made.yaml", peaks + f"workload: {{traces: {made}, groups: {made}.json}}\n")
                self.assertIn(
                    "the trace computes in fp8, but the run in bf16",
                    harness.orrery("run", config, f"--output={self.folder}/x.h5").err,
                )
        both = self.write("both.yaml", peaks + workload.replace("workload:\n", "workload:\n  precision: fp8\n") % "fp8")
        self.assertIn(
            "expected workload.parallel.precision", harness.orrery("run", both, f"--output={self.folder}/x.h5").err
        )

    def test_a_signal_leaves_no_partial_files(self):
        """orrery generate is asked to stop while it writes the traces of 4,096 NPUs: it ends with exit code 75, and its
        folder holds neither traces nor partial files. What a killed process leaves is removed by the next one."""
        config, folder = self.folder / "c.yaml", self.folder / "traces"
        config.write_text(
            "workload: {model: {layers: 24, hidden: 1024, heads: 16, sequence: 1024}, parallel: {tp: 8, dp: 64, pp: 8, micro-batches: 8}}\n"
        )
        command = [harness.BINARY, "generate", config, "--output", folder / "w"]
        for name, code in (("SIGINT", 75), ("SIGTERM", 75), ("SIGHUP", 75), ("SIGKILL", -9)):
            folder.mkdir(exist_ok=True)
            job = harness.Background(self, command)
            job.wait_until(lambda: len(list(folder.iterdir())) > 10, "writing traces")
            job.signal(name)
            ended = job.end()
            self.assertEqual(ended.code, code, ended.err)
            if code == 75:
                self.assertIn(f"stopped by {name} before all traces were written", ended.err)
                self.assertEqual(list(folder.iterdir()), [], name)
        job = harness.Background(self, command)
        self.assertEqual(job.end().code, 0)
        self.assertEqual([path for path in folder.iterdir() if ".partial." in path.name], [])

    def test_traces_follow_the_settings_of_the_system(self):
        """ZeRO 3 sums gradients beside its gathers where NPUs have a stream for each dimension, and compute models may estimate operations:
        `generate` writes the workload that `run` simulates, in each network."""
        small = "workload:\n  model: {layers: 4, hidden: 64, heads: 2, sequence: 64}\n  parallel: {dp: 4, pp: 2, micro-batches: 4, zero: 3}\n"
        mixed = (
            "workload:\n  model: {layers: 4, hidden: 256, heads: 4, sequence: 128, experts: 4, top-k: 2}\n"
            "  parallel: {tp: 2, sp: true, ep: 2, dp: 2, micro-batches: 2, zero: 3, detail: operator}\n"
        )
        networks = [
            f"  network: {{model: {model}, dimensions: [{{shape: Switch, size: 8, bandwidth: 10 GB/s, latency: 500 ns}}]}}\n"
            for model in ("congestion-unaware", "congestion-aware", "packet")
        ]
        roofline = "  compute: {model: roofline, peak: 10 TFLOPS, local-memory: {bandwidth: 3350 GB/s}}\n"
        products = (
            "  compute: {model: products, processor: a100, peak: 312 TFLOPS, local-memory: {bandwidth: 2039 GB/s}}\n"
        )
        systolic = "  compute: {model: systolic, peak: 50 TFLOPS, local-memory: {bandwidth: 1 TB/s}, array: {rows: 128, columns: 128, cycle: 1 ns}}\n"
        cases = [
            (networks[0], roofline, small),
            (networks[1], roofline, small),
            (networks[2], roofline, small),
            (networks[0], products, mixed),
            (networks[0], systolic, mixed),
            (networks[0], roofline + "  communication: {streams: 2}\n", mixed),
            (networks[0], roofline + "  communication: {order: fifo}\n", small),
            ("  rules: astra-sim\n" + networks[0], roofline, mixed),
            (networks[0], roofline, small + "  streams: dimension\n"),
            (networks[0], roofline, small + "  streams: counted\n"),
        ]
        for number, (network, compute, workload) in enumerate(cases):
            with self.subTest(network=network, compute=compute, workload=workload):
                system = f"system:\n{network}{compute}"
                direct = self.write("direct.yaml", system + workload)
                prefix = self.folder / f"settings{number}" / "w"
                made = harness.orrery("generate", direct, f"--output={prefix}")
                self.assertEqual(made.code, 0, made.err)
                streams = "".join(line for line in workload.splitlines(keepends=True) if "streams:" in line)
                traces = self.write(
                    "traces.yaml", system + f"workload:\n  traces: {prefix}\n  groups: {prefix}.json\n{streams}"
                )
                self.assertEqual(
                    quantities(self.run_once([traces], "one.h5")), quantities(self.run_once([direct], "other.h5"))
                )
                names = set(json.loads(pathlib.Path(f"{prefix}.json").read_text()))
                self.assertEqual(
                    any("dp_sums" in name for name in names),
                    "rules" not in network
                    and "streams: 2" not in compute
                    and "order" not in compute
                    and "counted" not in workload,
                    names,
                )

    def test_presets_have_the_published_parameters(self):
        """Each model in configs/models has as many parameters as published, to four digits; of Grok-1 and of the text model of Llama 4 Scout
        they are counted. One NPU alone holds them all."""
        published = {
            "gpt3-175b": "174.6 G",
            "llama3-8b": "8.03 G",
            "llama3-70b": "70.55 G",
            "llama3-405b": "405.9 G",
            "mixtral-8x7b": "46.7 G",
            "megatron-22b": "22.07 G",
            "megatron-175b": "174.6 G",
            "megatron-530b": "529.6 G",
            "megatron-1t": "1.008 T",
            "dlrm-mlperf": "24.04 G",
            "moe-1t": "1.009 T",
            "deepseek-v3": "671 G",
            "llama4-scout": "107.8 G",
            "llama4-maverick": "400.7 G",
            "grok-1": "315.7 G",
            "qwen3-8b": "8.191 G",
            "qwen3-32b": "32.76 G",
            "qwen3-30b-a3b": "30.53 G",
            "qwen3-235b-a22b": "235.1 G",
            "mpt-7b": "6.649 G",
            "mpt-30b": "29.96 G",
            "mixtral-8x22b": "140.6 G",
            "dlrm-dcnv2": "26.15 G",
        }
        active = {
            "mixtral-8x7b": "12.88 G",
            "deepseek-v3": "37.55 G",
            "llama4-scout": "17.17 G",
            "llama4-maverick": "17.18 G",
            "qwen3-30b-a3b": "3.353 G",
            "qwen3-235b-a22b": "22.19 G",
            "mixtral-8x22b": "39.15 G",
            "grok-1": "83.76 G",
        }
        models = sorted((harness.SOURCE / "configs/models").glob("*.yaml"))
        self.assertEqual([model.stem for model in models], sorted(published))
        for model in models:
            with self.subTest(model.stem):
                config = self.write("config.yaml", f"workload: {{model: {model}}}\n")
                shown = harness.orrery("generate", config, "--dry-run")
                self.assertEqual(shown.code, 0, shown.err)
                self.assertIn(f"workload: {published[model.stem]} parameters", shown.out)
                self.assertIn(
                    f"({active.get(model.stem, '')} active)" if model.stem in active else "parameters", shown.out
                )
                size, unit = re.search(r"parameters ([\d.]+) (MB|GB|TB),", shown.out).groups()
                number, prefix = published[model.stem].split()
                self.assertAlmostEqual(
                    float(size)
                    * {"MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]
                    / (2 * float(number) * {"G": 1e9, "T": 1e12}[prefix]),
                    1,
                    delta=2e-3,
                )

    def test_experts_and_latent_attention_run_alike_everywhere(self):
        """A small DeepSeek-V3 (a dense layer, shared experts that compute while tokens travel, latent attention, a second token) on 16 NPUs,
        with a stack: every NPU ends at the same time on 1, 2 and 3 ranks, and folded. Without the overlap the step is longer.
        """
        model = (
            "{kind: transformer, layers: 4, hidden: 1024, heads: 16, head-size: 64, latent: {query: 384, key-value: 128, rotary: 32, value: 64}, "
            "ffn: 512, vocabulary: 32000, sequence: 2048, gated: true, rotary: true, experts: 16, top-k: 4, shared-experts: 2, dense-layers: 1, "
            "dense-ffn: 4096, router-bias: true, head-norms: true, further-tokens: 1}"
        )
        parallel = (
            "{tp: 2, sp: true, ep: 4, pp: 2, micro-batches: 4, zero: 1, expert-overlap: %s, expert-capacity: 1.25}"
        )
        text = (
            "stack: h100-nemo\nsystem:\n  base: systems/dgx-h100-superpod\n  network: {dimensions: [{shape: Switch, size: 8, bandwidth: 450 GB/s, "
            "latency: 468 ns}, {shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}]}\n"
            f"workload: {{model: {model}, parallel: {parallel}}}\n"
        )
        config = self.write("config.yaml", text % "true")
        one = self.check_one_answer([config], 16, ranks=(2, 3))
        times = harness.finish_times(one)
        self.assertEqual(harness.finish_times(self.run_once([config, "--fold"], "folded.h5")), times)
        alone = harness.finish_times(self.run_once([self.write("other.yaml", text % "false")], "other.h5"))
        self.assertGreater(max(alone), max(times))

    def test_replicas_run_alike_everywhere(self):
        """ZeRO 3 among 4 NPUs of a switch, and two replicas behind a slow link: every NPU ends at the same time on 1, 2 and 3 ranks, and
        folded. Gathers stay in the switch, so that the step is shorter than with states divided among all 8."""
        text = (
            "system: {network: {dimensions: [{shape: Switch, size: 4, bandwidth: 300 GB/s, latency: 500 ns}, "
            "{shape: Switch, size: 2, bandwidth: 10 GB/s, latency: 5 us}]}, compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1 TB/s}}}\n"
            "workload: {model: {kind: transformer, layers: 4, hidden: 1024, heads: 16, sequence: 1024}, "
            "parallel: {dp: 8, zero: 3, replicas: %d}}\n"
        )
        config = self.write("config.yaml", text % 2)
        times = harness.finish_times(self.check_one_answer([config], 8, ranks=(2, 3)))
        self.assertEqual(harness.finish_times(self.run_once([config, "--fold"], "folded.h5")), times)
        divided = harness.finish_times(self.run_once([self.write("other.yaml", text % 1)], "other.h5"))
        self.assertLess(max(times), max(divided))

    def test_collectives_agree_with_those_of_stage(self):
        """Kinds, numbers, group sizes and bytes of collectives and messages of three models agree with STAGE's traces, but for the
        differences listed in this file. Needs shared/."""
        for archive, (model, parallel, npus, different) in STAGE.items():
            with self.subTest(archive):
                theirs = next(harness.unpacked(archive).rglob("workload.json")).with_suffix("")
                ours = self.folder / archive / "w"
                made = harness.orrery(
                    "generate",
                    self.write("config.yaml", f"workload: {{model: {model}, parallel: {parallel}}}\n"),
                    f"--output={ours}",
                )
                self.assertEqual(made.code, 0, made.err)
                groups = [json.loads(pathlib.Path(f"{prefix}.json").read_text()) for prefix in (theirs, ours)]
                for npu in npus:
                    there, there_sizes = communication(theirs, groups[0], npu, bytes_of_element=2)
                    here, here_sizes = communication(ours, groups[1], npu)
                    found = {key: (there[key], here[key]) for key in {*there, *here} if there[key] != here[key]}
                    self.assertEqual(found, different, f"NPU {npu}")
                    agreed = [key for key in here if key not in different]
                    self.assertGreaterEqual(len(agreed), 3)
                    if "moe" not in archive:  # where STAGE's tokens are counted otherwise
                        same = lambda sizes: {size for size in sizes if size[0] != "all-reduce"}  # noqa: E731
                        self.assertEqual(same(there_sizes), same(here_sizes), f"NPU {npu}")

    @harness.long
    def test_steps_on_a100_agree_with_measurements(self):
        """The Megatron study predicts measured iterations on A100 with one efficiency for all, with a mean error of at most 10 %. With
        a wrong efficiency its exit code is 1."""
        study, models = "scripts/studies/megatron_a100.py", "22b,175b" if harness.FEWER_CASES else "22b,175b,530b,1t"
        done = harness.run_script(study, f"--models={models}", f"--orrery={harness.BINARY}")
        self.assertEqual(done.code, 0, done.out + done.err)
        errors = [
            abs(float(error))
            for error in re.findall(r"^(?:22b|175b|530b|1t) .* ([+-][\d.]+) %$", done.out, re.MULTILINE)
        ]
        self.assertEqual(len(errors), 2 * len(models.split(",")), done.out)
        self.assertLessEqual(sum(errors) / len(errors), 10, done.out)
        wrong = harness.run_script(study, "--models=22b", "--efficiency=0.5", f"--orrery={harness.BINARY}")
        self.assertEqual(wrong.code, 1, wrong.out + wrong.err)

    def test_every_system_preset_runs(self):
        """Every system in configs/systems runs a model that is divided over all of its NPUs."""
        model = harness.SOURCE / "configs/models/dlrm-mlperf.yaml"
        for system in sorted((harness.SOURCE / "configs/systems").glob("*.yaml")):
            with self.subTest(system.stem):
                shown = harness.orrery("show", "topology", self.write("topology.yaml", f"system: {system}\n"), "--json")
                self.assertEqual(shown.code, 0, shown.err)
                npus = json.loads(shown.out)["npus"]
                config = self.write(
                    "config.yaml",
                    f"system: {system}\nworkload:\n  model: {model}\n  parallel: {{dp: {npus}, micro-batch: 32}}\n",
                )
                self.run_once([config])

    def test_the_scale_configurations_are_sound(self):
        """`generate --dry-run` accepts each configuration in configs/scale; `check` finds 8 distinct structures in the smallest."""
        for config in sorted((harness.SOURCE / "configs/scale").glob("*.yaml")):
            shown = harness.orrery("generate", config, "--dry-run")
            self.assertEqual(shown.code, 0, shown.err)
        checked = harness.orrery("check", harness.SOURCE / "configs/scale/gpt3-175b-1024.yaml")
        self.assertEqual(checked.code, 0, checked.err)
        self.assertIn("8 distinct structures", checked.out)

    def test_scale_configurations_finish_as_in_astra_sim(self):
        """All-reduces, a training step and a skewed ring on up to 16,384 NPUs: first and last finish times are those of ASTRA-sim 2 for
        what the configurations describe."""
        expected = {
            "all-reduce-1024": (1317064, 1317064),
            "all-reduce-4096": (1317064, 1317064),
            "all-reduce-16384": (1317064, 1317064),
            "transformer-step-1024": (24639584, 24639584),
            "ring-1024-skewed": (7738490, 7816760),
        }
        runs = {name: (name, [], times) for name, times in expected.items()}
        for npus, ns in ((1024, 2641092), (4096, 2659160)):
            runs[f"switch of {npus}"] = (
                "all-reduce-1024",
                [
                    f"system.network.dimensions=[{{shape: Switch, size: {npus}, bandwidth: 50 GiB/s, latency: 500 ns}}]",
                    "system.collectives.all-reduce=[halvingDoubling]",
                    f"workload.parallel.dp={npus}",
                ],
                (ns, ns),
            )
        runs["ring"] = ("ring-1024-skewed", ["workload.model.late=null"], (6792760, 6792760))
        runs["step of 256"] = (
            "transformer-step-1024",
            ["workload.parallel.dp=256", "system.network.dimensions.2.size=16"],
            (24639584, 24639584),
        )
        for name, (config, settings, times) in runs.items():
            with self.subTest(name):
                finishes = harness.finish_times(
                    self.run_once(
                        [harness.SOURCE / f"configs/scale/{config}.yaml", *(f"--set={setting}" for setting in settings)]
                    )
                )
                self.assertEqual((min(finishes), max(finishes)), tuple(1000 * ns for ns in times))

    def test_layers_given_by_times_equal_their_traces(self):
        """Models whose layers are given by times give the same results as their traces and as their resolved configuration. NPUs that
        are late have traces of their own."""
        import h5py

        fewer = {
            "transformer-step-1024": ["--set=workload.parallel.dp=32", "--set=system.network.dimensions.2.size=2"],
            "ring-1024-skewed": ["--set=workload.parallel.dp=12", "--set=system.network.dimensions.0.size=12"],
        }
        for name, settings in fewer.items():
            with self.subTest(name):
                config, prefix = harness.SOURCE / f"configs/scale/{name}.yaml", self.folder / name
                one = self.run_once([config, *settings], "one.h5")
                made = harness.orrery("generate", config, f"--output={prefix}", *settings)
                self.assertEqual(made.code, 0, made.err)
                system = re.split("(?m)^workload:", config.read_text())[0]
                traces = self.write("traces.yaml", system + f"workload:\n  traces: {prefix}\n  groups: {prefix}.json\n")
                other = self.run_once([traces, *settings[1:]], "other.h5")
                self.assertEqual(quantities(one), quantities(other))
                with h5py.File(one) as results:
                    resolved = self.write("resolved.yaml", results["config/resolved"][()].decode())
                self.assertEqual(quantities(one), quantities(self.run_once([resolved], "again.h5")))

    def times_of_offload(self, memory, layer, parallel):
        """Returns the finish times in ns of three such layers of 100,000 parameters on two replicas, whose NPUs are 500 ns and 100 GB/s
        apart."""
        config = self.write(
            "config.yaml",
            "system:\n  network: {dimensions: [{shape: Ring, size: 2, bandwidth: 100 GB/s, latency: 500 ns}]}\n"
            f"  communication: {{streams: 4}}\n  collectives: {{endpoint-delay: 0 ns}}\n  remote-memory: {{{memory}}}\n"
            f"workload:\n  model: {{kind: layers, layers: [{{parameters: 100000, update: 5 us, repeat: 3{layer}}}]}}\n"
            f"  parallel: {{dp: 2, {parallel}}}\n",
        )
        return [time / 1000 for time in harness.finish_times(self.check_one_answer([config], 2, ranks=(2,)))]

    def test_times_of_offloaded_parameters_by_hand(self):
        """A share of 100 kB takes 11 us from or to the memory, a gather or sum 1.5 us.

        Without prefetching each pass waits for its load and its gather; the update's stores follow one another after the first layer. With a
        layer loaded ahead all loads but the first are hidden behind computing, except 1, 1.5 and 1 us of the next three passes.
        """
        memory, passes = "kind: per-npu, bandwidth: 10 GB/s, latency: 1 us", ", forward: 10 us, backward: 20 us"
        update = 1500 + 5000 + 3 * 11000
        for prefetch, time in (
            (0, 3 * (12500 + 10000) + 3 * (12500 + 20000)),
            (1, 12500 + 10000 + 1000 + 10000 + 1500 + 10000 + 1000 + 3 * 20000),
        ):
            self.assertEqual(
                self.times_of_offload(memory, passes, f"zero: 3, offload: [parameters], prefetch: {prefetch}"),
                [time + update] * 2,
            )

    def test_times_of_an_offloaded_update_by_hand(self):
        """Three sums take 1.5 us each; then 600 kB of state of each layer take 61 us there and 61 us back, one after the other. Without
        prefetching the memory waits for the optimizer; with a layer loaded ahead it is never idle."""
        memory = "kind: per-npu, bandwidth: 10 GB/s, latency: 1 us"
        for prefetch, time in ((0, 4500 + 3 * (61000 + 5000 + 61000)), (1, 4500 + 6 * 61000)):
            self.assertEqual(
                self.times_of_offload(memory, "", f"zero: 1, offload: [optimizer], prefetch: {prefetch}"), [time] * 2
            )

    def test_times_of_collectives_on_the_path_by_hand(self):
        """200 kB pass groups, link and fabrics in 20 rounds of 100, 200 and 400 ns each, which is 1 us of latency and 8.3 us.

        Loads and stores of a group take turns. Both NPUs alone move 100 kB in 5.6 us; loads and stores together take 10.2 us.
        """
        memory = (
            "kind: hierarchical-pool, npus-per-node: 2, groups: 1, bandwidth: 100 GB/s, latency: 1 us, switches: 1, link-bandwidth: 50 GB/s, "
            "fabric-bandwidth: 25 GB/s, chunk-size: 20000 B"
        )
        passes = 3 * (9300 + 10000) + (9300 + 20000) + 2 * (9300 + 9300 + 20000) + 9300
        update = 5600 + 5000 + 2 * (10200 + 5000) + 5600
        parallel = "zero: 3, offload: [parameters, gradients], offload-collectives: path, prefetch: 0"
        self.assertEqual(
            self.times_of_offload(memory, ", forward: 10 us, backward: 20 us", parallel), [passes + update] * 2
        )

    def peaks(self, parallel, npus, memory=""):
        """Returns the peaks of the local memory for 4 layers with 64 hidden values and 1,024 tokens, whose compute times are long."""
        config = self.write(
            "config.yaml",
            f"system:\n  network: {{dimensions: [{{shape: Ring, size: {npus}, bandwidth: 100 GB/s, latency: 500 ns}}]}}\n"
            "  compute: {roofline: true, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}\n  communication: {streams: 4}\n"
            f"{memory}workload:\n  model: {{layers: 4, hidden: 64, heads: 4, sequence: 1024}}\n  parallel: {{{parallel}}}\n",
        )
        import h5py

        with h5py.File(self.run_once([config])) as results:
            return results["npus/peak_local_memory"][()].tolist()

    def test_peaks_of_the_local_memory_by_hand(self):
        """Peaks follow docs/workloads.md, Memory: 16 bytes for each parameter, 16 e T h of activations for each layer, and what comes
        and goes with each kind of parallelism, sharding, recomputation and offload."""
        tokens, hidden = 1024, 64
        parameters, activations, message = (
            4 * (12 * hidden**2 + 2 * hidden),
            16 * 2 * tokens * hidden,
            2 * tokens * hidden,
        )
        layer = 2 * parameters // 4  # of one layer, in bytes
        plain = 16 * parameters + 4 * activations
        self.assertEqual(self.peaks("dp: 2, micro-batches: 2", 2), [plain] * 2)
        self.assertEqual(self.peaks("dp: 2, zero: 1", 2), [10 * parameters + 4 * activations] * 2)
        # Divided by tp, but for the norms' parameters.
        self.assertEqual(
            self.peaks("tp: 2, sp: true", 2), [16 * (parameters + 4 * 2 * hidden) // 2 + 2 * activations] * 2
        )
        # Kept: the inputs of four layers; during the pass of the last all that it has computed again.
        self.assertEqual(self.peaks("dp: 2, recompute: full", 2), [16 * parameters + 3 * message + activations] * 2)
        # The first stage has two micro-batches of its two layers while it sends and waits for what it receives; the last has one.
        self.assertEqual(
            self.peaks("pp: 2, micro-batches: 4", 2), [plain // 2 + 2 * activations + 2 * message, plain // 2]
        )
        # In the first backward pass: its gradients, its parameters, and those of the next ones.
        for prefetch in range(3):
            self.assertEqual(
                self.peaks(f"dp: 2, zero: 3, prefetch: {prefetch}", 2),
                [8 * parameters + 4 * activations + (prefetch + 2) * layer] * 2,
            )
        # The share is there too while it is gathered; nothing else.
        memory = remote_memory("per-npu", 2)
        offload = "dp: 2, zero: 3, offload: [parameters, gradients, optimizer]"
        self.assertEqual(self.peaks(offload, 2, memory), [4 * activations + 3 * layer + layer // 2] * 2)
        # On the path there is no share.
        self.assertEqual(
            self.peaks(offload + ", offload-collectives: path", 2, remote_memory("hierarchical-pool", 2)),
            [4 * activations + 3 * layer] * 2,
        )

    def test_a_model_in_flops_needs_roofline(self):
        """A model in FLOPs on a system without roofline would take no time. `check` and `run` refuse it."""
        config = self.write(
            "config.yaml",
            "system: {network: {dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}]}}\n"
            "workload: {model: {layers: 4, hidden: 64, heads: 4, sequence: 32}, parallel: {dp: 4}}\n",
        )
        for command in (["check", config], ["run", config, f"--output={self.folder / 'r.h5'}"]):
            refused = harness.orrery(*command)
            self.assertEqual(refused.code, 3, refused.err)
            self.assertIn(
                "key 'system.compute.roofline': found false, but the workload is generated from a model in FLOPs",
                refused.err,
            )

    def test_wrong_layers_given_by_times_are_refused(self):
        """Layers with times and FLOPs, times without units, or without what they need are refused with a message that names the key.
        `generate` refuses times that traces cannot hold."""
        system = "system: {network: {dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}]}%s}\n"
        roofline = ", compute: {roofline: true, peak: 1 TFLOPS, local-memory: {bandwidth: 1 TB/s}}"
        cases = [
            (
                "",
                "{parameters: 8, forward: 1 us, flops: 5, activations: 1}",
                "dp: 4",
                ["workload.model.layers.0.forward", "layers.flops is given too"],
            ),
            ("", "{parameters: 8, forward: 1}", "dp: 4", ["workload.model.layers.0.forward", "without a unit"]),
            ("", "{parameters: 8, flops: 0, activations: 1}", "dp: 4", ["workload.model.layers.0.flops", "found 0"]),
            (
                "",
                "{parameters: 8, forward: 1 us}, {parameters: 8}",
                "dp: 2, pp: 2",
                ["workload.model.layers.0.activations", "1 or more"],
            ),
            (roofline, "{parameters: 8, forward: 1 us}", "dp: 4", ["workload.model", "roofline"]),
        ]
        for more, layers, parallel, parts in cases:
            with self.subTest(layers):
                config = self.write(
                    "config.yaml",
                    system % more
                    + f"workload: {{model: {{kind: layers, layers: [{layers}]}}, parallel: {{{parallel}}}}}\n",
                )
                refused = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}")
                self.assertEqual(refused.code, 3, refused.err)
                for part in parts:
                    self.assertIn(part, refused.err)

    def test_traces_hold_picoseconds(self):
        """A layer that computes for 1,500 ns on 4 NPUs: its traces take as long as the step that is simulated directly."""
        system = "system: {network: {dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}]}}\n"
        config = self.write(
            "config.yaml",
            system
            + "workload: {model: {kind: layers, layers: [{parameters: 8, forward: 1500 ns}]}, parallel: {dp: 4}}\n",
        )
        written = harness.orrery("generate", config, f"--output={self.folder / 'w'}")
        self.assertEqual(written.code, 0, written.err)
        traces = self.write("traces.yaml", system + "workload: {traces: w, groups: w.json}\n")
        times = [harness.finish_times(self.run_once([path], f"{path.name}.h5")) for path in (config, traces)]
        self.assertEqual(*times)
        self.assertEqual(times[0][0] % 1_000_000 != 0, True, times[0])

    def test_metis_partitions_a_generated_workload(self):
        """METIS cuts a generated workload of 64 NPUs, and a run on 4 ranks with its map gives the results of one rank."""
        config, rank_map = harness.SOURCE / "configs/scale/gpt3-175b-1024.yaml", self.folder / "map.4"
        smaller = [
            "--set",
            "workload.parallel.dp=1",
            "--set",
            "system.network.dimensions.1.size=8",
            "--set",
            "system.network.dimensions.2.size=1",
            "--set",
            "workload.parallel.micro-batches=2",
        ]
        cut = harness.orrery("partition", config, "--ranks=4", "--strategy=metis", f"--output={rank_map}", *smaller)
        self.assertEqual(cut.code, 0, cut.err)
        self.assertIn("cut: ", cut.out)
        one = self.run_once([config, *smaller], "one.h5")
        four = self.run_once([config, *smaller, f"--partition={rank_map}"], "four.h5", ranks=4)
        self.assertEqual(quantities(one), quantities(four))

    def test_bases_and_settings_override_in_order(self):
        """A system with a base that has a base, a model with a base, and --set: the last word wins, the results keep all files, and the
        resolved configuration gives the same results. A base that stands on itself is refused."""
        system = self.write(
            "system.yaml",
            (SYSTEM % ("{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}", 0))
            .replace("system:\n", "")
            .replace("\n  ", "\n")
            .lstrip(),
        )
        model = self.write("model.yaml", "{layers: 4, hidden: 64, heads: 4, sequence: 32}\n")
        slower = self.write(
            "slower.yaml", "base: system.yaml\ncollectives: {chunks: 2}\ncompute: {local-memory: {latency: 7 ns}}\n"
        )
        text = "system: {base: slower.yaml, compute: {peak: 1 TFLOPS}}\nworkload: {model: {base: model.yaml, layers: 8}, parallel: {dp: 4}}\n"
        config = self.write("config.yaml", text)
        path = self.run_once([config, "--set", "workload.model.hidden=128", "--set", "system.collectives.chunks=3"])
        import h5py

        with h5py.File(path) as results:
            resolved = results["config/resolved"][()].decode()
            self.assertEqual(results["config/inputs/model.yaml"][()].decode(), model.read_text())
            self.assertEqual(results["config/inputs/system.yaml"][()].decode(), slower.read_text())
            self.assertEqual(results["config/inputs/base.system.yaml"][()].decode(), system.read_text())
        for line in ("latency: 7 ns", "layers: 8", "hidden: 128", "peak: 1 TFLOPS", "roofline: true", "chunks: 3"):
            self.assertIn(line, resolved)
        again = self.run_once([self.write("resolved.yaml", resolved)], "again.h5")
        self.assertEqual(quantities(path), quantities(again))
        system.write_text("base: slower.yaml\n")
        refused = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}")
        self.assertEqual(refused.code, 3, refused.err)
        self.assertIn("key 'system.base'", refused.err)
        self.assertIn("which stands on this file", refused.err)

    def test_wrong_workloads_are_refused(self):
        """Each wrong key or value of `workload` ends with exit code 3 and a message that names the key, what was found and what was
        expected."""
        system = SYSTEM % ("{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}", 0)
        model = "{layers: 4, hidden: 64, heads: 4, sequence: 32}"
        cases = {
            f"workload: {{model: {model}, parallel: {{dp: 8}}}}": [
                "workload.parallel",
                "tp * cp * ep * dp * pp is 8",
                "4",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4}}, traces: x}}": [
                "workload.traces",
                "workload.model is given too",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4}}, replay-only: true}}": [
                "workload.replay-only",
                "no recorded durations",
            ],
            **{
                f"workload: {{model: {model}, parallel: {{dp: 4}}, {key}: {value}}}": [
                    f"workload.{key}",
                    "nothing was recorded",
                    "workload.traces",
                ]
                for key, value in (("step", 5), ("replicate", 2), ("execution-traces", "x.json"))
            },
            "workload: {model: {kind: dlrm, bottom: [8], tables: [100], top: [8, 1]}, parallel: {dp: 4, recompute: full}}": [
                "workload.parallel.recompute",
                "no meaning for a DLRM",
            ],
            "workload: {model: {kind: layers, layers: [{parameters: 8, flops: 8, activations: 8}]}, parallel: {dp: 4, sp: true}}": [
                "workload.parallel.sp",
                "no sequence",
            ],
            f"workload: {{model: {model}, paralel: {{dp: 4}}}}": ["workload.paralel", "unknown key", "parallel"],
            f"workload: {{model: {model}, parallel: {{tpp: 4}}}}": ["workload.parallel.tpp", "unknown key", "tp"],
            "workload: {model: no.yaml, parallel: {dp: 4}}": ["workload.model", "no.yaml", "no such file"],
            "workload: {model: {layers: 4}, parallel: {dp: 4}}": ["workload.model.hidden", "missing"],
            f"workload: {{model: {model}, parallel: {{pp: 2, dp: 2, interleaving: 2}}}}": [
                "workload.parallel.micro-batches"
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, global-batch: 6}}}}": [
                "workload.parallel.global-batch",
                "multiple",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, placement: [tp, pp]}}}}": [
                "workload.parallel.placement",
                "dp is 4 and has no place",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, placement: [dp, tp, dp]}}}}": [
                "workload.parallel.placement",
                "each once",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, zero: 5}}}}": ["workload.parallel.zero", "0 to 3"],
            f"workload: {{model: {model}, parallel: {{dp: 4, offload: [gradient]}}}}": [
                "config.yaml:7",
                "workload.parallel.offload",
                "'gradient'",
                "gradients",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, offload: parameters}}}}": [
                "workload.parallel.offload",
                "'parameters'",
                "a list",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, offload: [optimizer, optimizer]}}}}": [
                "workload.parallel.offload",
                "twice",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, offload-collectives: pool}}}}": [
                "workload.parallel.offload-collectives",
                "'pool'",
                "network or path",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, offload-collectives: path}}}}": [
                "workload.parallel.offload-collectives",
                "nothing is offloaded",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, zero: 2, offload: [parameters], offload-collectives: path}}}}": [
                "workload.parallel.offload-collectives",
                "without a collective",
                "zero: 3",
            ],
            f"workload: {{model: {model}, parallel: {{dp: 4, offload: [optimizer]}}}}": [
                "workload.parallel.offload",
                "the system has none",
            ],
            "workload: {parallel: {dp: 4}}": ["workload.model", "missing"],
            **{
                f"workload: {{model: {{kind: layers, layers: [{{parameters: 1, flops: 1, activations: 1, repeat: {repeat}}}]}}, parallel: {{dp: 4}}}}": [
                    "workload.model.layers.0.repeat",
                    str(repeat),
                    "1",
                ]
                for repeat in (0, 2000000)
            },
        }
        for text, parts in cases.items():
            with self.subTest(text):
                config = self.write("config.yaml", system + text + "\n")
                if not any(
                    part.startswith(
                        ("tp *", "workload.model is given", "no recorded", "nothing was recorded", "the system")
                    )
                    for part in parts
                ):  # of the system, and of what runs
                    self.assertEqual(harness.orrery("generate", config, "--dry-run").code, 3)
                refused = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}")
                self.assertEqual(refused.code, 3, refused.err)
                for part in parts:
                    self.assertIn(part, refused.err)
        config = self.write(
            "config.yaml",
            system + remote_memory("per-node", 4) + f"workload: {{model: {model}, parallel: "
            "{dp: 4, offload: [gradients], offload-collectives: path}}\n",
        )
        refused = harness.orrery("check", config)
        self.assertEqual(refused.code, 3, refused.err)
        self.assertIn(
            "key 'workload.parallel.offload-collectives': found path, but the remote memory has no switches",
            refused.err,
        )


if __name__ == "__main__":
    harness.main()
