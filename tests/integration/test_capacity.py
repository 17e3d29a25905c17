#!/usr/bin/python3
"""The tensors in the local memory (docs/memory.md, Capacity): usage and peaks, and what happens if they exceed the memory's size.

Expected values are computed by hand or, for larger workloads, from the timeline by tests/support/tensors.py. All of it must be alike on
any number of ranks."""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402
import random_workload  # noqa: E402
import tensors  # noqa: E402
from chakra import Node  # noqa: E402

SEEDS = range(4001, 4001 + harness.cases(3, 12, 30))
GIB = 2**30


def compute(id, microseconds, *after, inputs=(), outputs=()):
    return Node(id, chakra.COMP, data_deps=after, duration=microseconds, inputs=list(inputs), outputs=list(outputs))


def layer(scale=1, name=""):
    """Returns a trace of a forward pass, a backward pass and an update of 1 ms each, which take 11, 16 and 15 GiB times the scale."""

    def t(which, size):
        return [f"{which}{name}", str(size * scale * GIB)]

    weights, activations, gradients = t("weights", 10), t("activations", 1), t("gradients", 5)
    return [
        compute(1, 1000, inputs=weights, outputs=activations),
        compute(2, 1000, 1, inputs=weights + activations, outputs=gradients),
        compute(3, 1000, 2, inputs=weights + gradients, outputs=weights),
    ]


MS = 10**9  # ps
STEPS = [(0, 11 * GIB), (MS, 16 * GIB), (2 * MS, 15 * GIB), (3 * MS, 0)]


class Capacity(harness.Folder):
    def config(self, traces, size=None, run=""):
        """Writes the traces, in place of others, and a configuration of as many NPUs on a ring, with a local memory of this size if one
        is given."""
        for old in self.folder.glob("w.*.et"):
            old.unlink()
        for npu, nodes in enumerate(traces):
            chakra.write(self.folder / f"w.{npu}.et", nodes)
        path = self.folder / "config.yaml"
        memory = f"  compute: {{local-memory: {{size: {size}}}}}\n" if size else ""
        path.write_text(
            "system:\n  network:\n    dimensions: "
            f"[{{shape: Ring, size: {len(traces)}, bandwidth: 50 GB/s, latency: 500 ns}}]\n{memory}workload: {{traces: w}}\n{run}"
        )
        return path

    def read(self, path):
        """Returns the peak (bytes, time) of every NPU and, if they were recorded, the usage of every NPU as a list of (time, bytes)."""
        import h5py

        with h5py.File(path) as results:
            peaks = list(
                zip(results["npus/peak_local_memory"][:].tolist(), results["npus/peak_local_memory_time"][:].tolist())
            )
            if "local_memory" not in results:
                return peaks, None
            memory = results["local_memory"]
            rows = list(zip(memory["time"][:].tolist(), memory["usage"][:].tolist()))
            offsets = memory["offsets"][:].tolist()
            return peaks, [rows[a:b] for a, b in zip(offsets, offsets[1:])]

    def test_usage_and_peak_of_a_layer(self):
        """NPU 0 has a layer, NPU 2 one of twice the size, NPU 1 no tensors. Usage and peaks are as computed by hand; without --timeline
        the peaks are the same and there is no usage."""
        config = self.config([layer(), [compute(1, 1)], layer(2)])
        peaks, usage = self.read(self.check_one_answer([config, "--timeline"], 3, ranks=(2, 3)))
        self.assertEqual(peaks, [(16 * GIB, MS), (0, 0), (32 * GIB, MS)])
        self.assertEqual(usage, [STEPS, [], [(time, 2 * size) for time, size in STEPS]])
        self.assertEqual(self.read(self.run_once([config])), (peaks, None))

    def test_each_iteration_begins_with_an_empty_memory(self):
        """Three iterations of a layer: recorded ones leave rows of usage each; those that are not recorded leave none, but count for
        the peak."""
        config = self.config([layer()])
        for recorded in (1, 2):
            path = self.run_once([config, "--timeline", "--iterations=3", f"--record-iterations={recorded}"])
            steps = [(time + i * 3 * MS, size) for i in range(recorded) for time, size in STEPS[:-1]] + [
                (3 * MS * recorded, 0)
            ]
            self.assertEqual(self.read(path), ([(16 * GIB, MS)], [steps]))
        peaks, usage = self.read(self.run_once([config, "--timeline", "--record-iterations=0"]))
        self.assertEqual((peaks, usage), ([(16 * GIB, MS)], None))

    def test_a_receive_holds_its_tensor_from_its_posting_on(self):
        """NPU 0 sends a tensor to NPU 1. The receive holds it from its posting on; an instant node between takes no time; a result
        stays to the end."""
        size = 50_000  # 1 us on the link, 0.5 us of latency
        message = {"comm_src": 0, "comm_dst": 1, "comm_tag": 0, "comm_size": size}
        sender = [
            compute(1, 4, outputs=["x", "50000"]),
            Node(2, chakra.SEND, data_deps=[1], inputs=["x", "50000"], **message),
            compute(3, 5, 2),
        ]
        receiver = [
            Node(1, chakra.RECV, outputs=["x", "50000"], **message),
            Node(2, chakra.METADATA, data_deps=[1], inputs=["x", "50000"], outputs=["y", "7"]),
            compute(3, 1, 2, outputs=["z", "3"]),
        ]
        peaks, usage = self.read(self.check_one_answer([self.config([sender, receiver]), "--timeline"], 2, ranks=(2,)))
        us = 10**6
        self.assertEqual(usage[0], [(0, size), (5.5 * us, 0)])
        self.assertEqual(usage[1], [(0, size), (5.5 * us, 7 + 3), (6.5 * us, 0)])
        self.assertEqual(peaks, [(size, 0), (size, 0)])

    def test_a_stopped_run_keeps_the_usage_so_far(self):
        """An endless run of 4 NPUs is stopped. Its results have the peaks and the usage of the recorded iterations."""
        import h5py

        config = self.config(
            [[compute(1, 3), compute(2, 2, 1, outputs=["a", "1000"]), compute(3, 1, 2, inputs=["a", "1000"])]] * 4
        )
        path = self.folder / "stopped.h5"
        run = harness.Background(
            self,
            harness.launch(
                [
                    "run",
                    config,
                    harness.FOR_EVER,
                    "--record-iterations=2",
                    "--timeline",
                    f"--output={path}",
                    *harness.PROGRESS,
                ]
            ),
        )
        run.wait_until_simulating()
        run.signal("SIGTERM")
        self.assertEqual(run.end().code, 75)
        with h5py.File(path) as results:
            self.assertEqual(results.attrs["status"], "interrupted")
        peaks, usage = self.read(path)
        us = 10**6
        self.assertEqual(peaks, [(1000, 3 * us)] * 4)
        self.assertEqual(usage, [[(0, 0), (3 * us, 1000), (6 * us, 0), (9 * us, 1000), (12 * us, 0)]] * 4)

    # ---- more than there is room for ----

    def refused(self, config, *arguments, ranks=(0, 2, 3), command="run"):
        """Runs a configuration that must be refused on each number of ranks. Checks that there is one message, the same on all of them,
        and returns it."""
        texts = set()
        output = self.folder / "kept.h5"
        output.write_text("as it was")
        for r in ranks:
            more = [f"--output={output}", "--force", "--quiet"] if command == "run" else []
            outcome = harness.orrery(command, config, *arguments, *more, ranks=r)
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
            texts.add(harness.errors(outcome)[0])
        self.assertEqual(output.read_text(), "as it was")
        self.assertEqual(sorted(p.name for p in self.folder.glob("kept.h5*")), ["kept.h5"])
        self.assertEqual(len(texts), 1, texts)
        return texts.pop()

    def test_the_earliest_excess_is_an_error(self):
        """NPUs 1 and 2 exceed the memory at 1 ms, NPU 3 at 0.5 ms with its second tensor. The message names the earliest moment and the
        lowest NPU. Tensors that just fit are no error."""
        late = [
            compute(1, 500),
            compute(2, 1000, 1, outputs=["a", str(9 * GIB)]),
            Node(3, chakra.COMP, data_deps=[1], duration=1, is_cpu_op=True, outputs=["b", str(7 * GIB)]),
        ]
        small = [compute(1, 1, inputs=["c", "5"])]
        text = self.refused(self.config([small, layer(name=" of 1"), layer(name=" of 2"), late], "15 GiB"))
        self.assertRegex(
            text,
            r"w\.3\.et: NPU 3: at 500 µs the tensors take 16\.0+ GiB \(17179869184 bytes\), but the local memory has room for 15\.0+ GiB "
            r"\(16106127360\): 'a' \(9\.0+ GiB\), 'b' \(7\.0+ GiB\)\. .*--memory=report",
        )
        text = self.refused(self.config([small, layer(name=" of 1"), layer(name=" of 2"), small], "15 GiB"))
        self.assertRegex(
            text,
            r"w\.1\.et: NPU 1: at 1 ms the tensors take 16\.0+ GiB .*: 'weights of 1' .*'gradients of 1' .*'activations of 1' ",
        )
        self.run_once([self.config([layer(), layer()], "16 GiB")])  # just enough

    def test_the_message_names_the_five_largest_tensors(self):
        """12 tensors exceed the memory. The message names the largest five and counts the others."""
        many = [compute(1, 10, outputs=[part for i in range(12) for part in (f"t{i}", str(1000 + i % 7))])]
        text = self.refused(self.config([many], "12000 B"), ranks=(0,))
        self.assertRegex(
            text,
            r"\(12031 bytes\).*: 't6' \([^)]*\), 't5' \([^)]*\), 't4' \([^)]*\), 't11' \([^)]*\), 't3' \([^)]*\), 7 more\.",
        )

    def test_tensors_that_no_node_makes_are_checked_before_the_run(self):
        """The tensors that are there from the start exceed the memory of three NPUs. `run` and `check` name all three before anything
        is simulated; --memory=report accepts them."""
        config = self.config([layer(name=f" of {npu}") for npu in range(3)] + [[compute(1, 1)]], "9 GiB")
        output, told = f"--output={self.folder / 'no.h5'}", set()
        for ranks, arguments in (
            (0, ["run", config, output]),
            (2, ["run", config, output]),
            (3, ["run", config, output, "--fold"]),
            (0, ["check", config]),
        ):
            outcome = harness.orrery(*arguments, ranks=ranks)
            self.assertEqual(outcome.code, 3, outcome.err)
            for npu in range(3):
                self.assertRegex(
                    outcome.err,
                    rf"w\.{npu}\.et: NPU {npu}: the tensors that no node makes, .*take 10\.0+ GiB .*'weights of {npu}' \(10\.0+ GiB\)\.",
                )
            self.assertFalse((self.folder / "no.h5").exists())
            if arguments[0] == "run":
                told.add("\n".join(line for line in harness.messages(outcome) if "the tensors" in line))
        self.assertEqual(len(told), 1, told)
        self.assertEqual(harness.orrery("check", config, "--set=run.memory=report").code, 0)

    def test_report_says_who_exceeds_the_memory(self):
        """With --memory=report the run completes, and its summary names the NPU that needs most and counts those that exceed. The flag
        --memory overrides the configuration."""
        config = self.config([layer(), layer(2), [compute(1, 1)], layer()], "15 GiB")
        for more in (["--memory=report"], ["--set=run.memory=report"]):
            outcome = harness.orrery("run", config, f"--output={self.folder / 'r.h5'}", "--force", "--verbose", *more)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertRegex(
                outcome.out,
                r"local memory: NPU 1 needs most, 32\.0+ GiB at 1 ms of 15\.0+ GiB; 3 of 4 NPUs exceed it\n",
            )
        self.assertEqual(self.read(self.folder / "r.h5")[0], [(16 * GIB, MS), (32 * GIB, MS), (0, 0), (16 * GIB, MS)])
        self.refused(config, "--set=run.memory=report", "--memory=error")

    def test_the_resolved_configuration_repeats_a_report(self):
        """The configuration kept in the results of a run with --memory=report runs again with the same peak."""
        import h5py

        with h5py.File(self.run_once([self.config([layer()], "15 GiB"), "--memory=report"])) as results:
            resolved = results["config/resolved"][()].decode()
        again = self.folder / "resolved.yaml"
        again.write_text(resolved)
        self.assertEqual(self.read(self.run_once([again], "again.h5"))[0], [(16 * GIB, MS)])

    def test_a_flag_gives_the_size(self):
        """--local-memory-size overrides the size in the configuration; a size of 0 is a usage error."""
        self.assertIn(
            "has room for 15.00 GiB",
            self.refused(self.config([layer()], "80 GiB"), "--local-memory-size=15 GiB", ranks=(0,)),
        )
        wrong = harness.orrery("run", self.config([layer()]), "--local-memory-size=0 B")
        self.assertEqual(wrong.code, 2)
        self.assertIn("expected 1 B or more", wrong.err)

    def test_expanded_memory_takes_its_share(self):
        """A tensor of 12 GiB, three quarters of which are in the expanded memory, fits into 3 GiB and not into a byte less."""
        nodes = [Node(1, chakra.COMP, num_ops=10**9, outputs=["a", str(12 * GIB)])]
        for size, fits in ((3 * GIB, True), (3 * GIB - 1, False)):
            config = self.config([nodes], f"{size} B, bandwidth: 1 TB/s")
            config.write_text(
                config.read_text().replace(
                    "compute: {",
                    "compute: {roofline: true, peak: 1 TFLOPS, expanded-memory: {share: 0.75, bandwidth: 64 GB/s}, ",
                )
            )
            if fits:
                self.run_once([config])
            else:
                self.assertIn("has room for 12.88 GB (12884901884)", self.refused(config, ranks=(0,)))

    def test_the_summary_names_the_peak(self):
        """The summary names the NPU with the highest peak, and the size if there is one. It is silent if no NPU lists tensors."""
        for size, text in ((None, r"17\.18 GB at 1 ms\n"), ("80 GiB", r"16\.0+ GiB at 1 ms of 80\.0+ GiB\n")):
            outcome = harness.orrery(
                "run", self.config([layer()], size), f"--output={self.folder / 'r.h5'}", "--force", "--verbose"
            )
            self.assertRegex(outcome.out, "local memory: NPU 0 needs most, " + text)
        outcome = harness.orrery(
            "run", self.config([[compute(1, 1)]]), f"--output={self.folder / 'r.h5'}", "--force", "--verbose"
        )
        self.assertNotIn("local memory", outcome.out + outcome.err)

    def test_a_size_for_traces_without_tensors_is_a_warning(self):
        """Two of three traces list no tensors although the memory has a size. On 1 and 2 ranks one warning says so."""
        config = self.config([[compute(1, 1)], layer(), [compute(1, 1)]], "80 GiB")
        for ranks in (0, 2):
            outcome = harness.orrery(
                "run", config, f"--output={self.folder / 'r.h5'}", "--force", "--quiet", ranks=ranks
            )
            self.assertEqual(outcome.code, 0, outcome.err)
            said = [line for line in harness.messages(outcome) if "lists no tensors" in line]
            self.assertEqual(len(said), 1, outcome.err)
            self.assertIn("(NPU 0 first, 2 times in all)", said[0])

    # ---- against a plain program ----

    def check_against_timeline(self, path, traces):
        """Checks usage and peaks of some NPUs against those that tests/support/tensors.py computes from the timeline. Returns the
        number of rows."""
        import h5py

        peaks, usage = self.read(path)
        with h5py.File(path) as results:
            timeline = results["timeline"]
            offsets, columns = timeline["offsets"][:].tolist(), [
                timeline[name][:].tolist() for name in ("node", "start", "finish")
            ]
            ends = results["npus/finish_time"][:].tolist()
        some = 0
        for npu, nodes in traces.items():
            first, last = offsets[npu], offsets[npu + 1]
            spans = {id: (start, finish) for id, start, finish in zip(*(column[first:last] for column in columns))}
            listed = any(tensors.pairs(node.attributes.get(key, [])) for node in nodes for key in ("inputs", "outputs"))
            expected = tensors.usage(nodes, spans, ends[npu]) if listed else []
            self.assertEqual(usage[npu] if usage else [], expected, f"NPU {npu}")
            self.assertEqual(peaks[npu], tensors.peak(expected), f"NPU {npu}")
            some += len(expected)
        return some

    def test_random_workloads_agree_with_the_timeline(self):
        """30 random workloads with random tensors, with both network models: usage and peaks are those computed from the timeline, and
        the same folded."""
        rows = 0
        for seed in SEEDS:
            workload = random_workload.Workload(seed, operations=(5, 80))
            rng = random.Random(seed)
            for npu, nodes in enumerate(workload.traces):
                tensors.list_tensors(nodes, rng, f"{npu}.")
            arguments = (
                [harness.write_workload(self.folder, workload.traces)]
                + workload.system.write(self.folder)
                + ["--timeline"]
            )
            for more in ([], ["--network=congestion-aware"]):
                with self.subTest(seed=seed, more=more):
                    path = self.run_once(arguments + more, ranks=2 if seed % 5 == 0 else 0)
                    rows += self.check_against_timeline(path, dict(enumerate(workload.traces)))
            self.assertEqual(
                harness.difference(
                    self.run_once(arguments, "plain.h5"), self.run_once(arguments + ["--fold"], "folded.h5")
                ),
                "",
                f"seed {seed}",
            )
            self.clear_folder()
        self.assertGreater(rows, 100 * len(SEEDS))

    def test_folded_runs_give_the_same_usage_and_error(self):
        """8 NPUs that are alike give the same usage folded and not, and the same error, which names the lowest NPU of those that
        exceed."""
        config = self.config([layer(name=f" of {npu // 2}") for npu in range(8)])
        plain = self.run_once([config, "--timeline"], "plain.h5")
        for ranks in (0, 2):
            folded = self.run_once([config, "--timeline", "--fold"], "folded.h5", ranks=ranks)
            self.assertEqual(harness.difference(plain, folded), "")
        small = self.config([[compute(1, 1)] if npu == 0 else layer(name=f" of {npu}") for npu in range(8)], "12 GiB")
        text = self.refused(small, "--fold", ranks=(0, 2))
        self.assertRegex(text, r"NPU 1: at 1 ms .*'weights of 1'")
        self.assertEqual(text, self.refused(small, ranks=(0,)))

    def test_stage_traces(self):
        """STAGE's traces list the tensors of every node; usage and peaks are those computed from the timeline. Needs shared/."""
        for name, npus in zip(harness.STAGE_TRACES, (range(64), range(64), (0, 21, 42, 63))):
            with self.subTest(name):
                path = self.run_once(harness.stage_arguments(name) + ["--timeline"])
                folder = harness.unpacked(f"stage-{name}") / name
                rows = self.check_against_timeline(
                    path, {npu: chakra.read(folder / f"workload.{npu}.et") for npu in npus}
                )
                self.assertGreater(rows, 100 * len(npus))

    def test_megatron_22b_fits_as_published(self):
        """Megatron's 22B model on 8 A100: with selective recomputation and sequence parallelism it fits into 80 GB, as published; with
        neither it does not."""
        config = self.folder / "config.yaml"

        def write(variant):
            config.write_text(
                f"system:\n  base: {harness.SOURCE}/configs/systems/dgx-a100-superpod.yaml\n  network: {{dimensions: [{{shape: Switch, size: 8, "
                f"bandwidth: 300 GB/s, latency: 500 ns}}]}}\nworkload:\n  model: {harness.SOURCE}/configs/models/megatron-22b.yaml\n"
                f"  parallel: {{tp: 8, micro-batch: 4, micro-batches: 1, gradients: fp32, {variant}}}\n"
            )
            return config

        path = self.check_one_answer([write("recompute: selective, sp: true"), "--timeline"], 8, ranks=(2, 3))
        self.assertLess(self.read(path)[0][0][0], 80 * 10**9)
        text = self.refused(write("recompute: none"), ranks=(0, 2))
        self.assertRegex(
            text, r"NPU 0: at .* the tensors take [78]\d\.\d\d GB .*room for 83\.90 GB \(83899345920\): 'optimizer' "
        )

    # ---- what is made of it ----

    def test_the_chrome_trace_has_a_counter_of_the_memory(self):
        """`show timeline --chrome` has a counter with the usage of the NPU that has tensors, and none for the other one."""
        import json

        path = self.run_once([self.config([layer(), [compute(1, 1)]]), "--timeline"])
        chrome = self.folder / "t.json"
        self.assertEqual(harness.orrery("show", "timeline", path, f"--chrome={chrome}").code, 0)
        counters = [event for event in json.loads(chrome.read_text())["traceEvents"] if event["name"] == "local memory"]
        self.assertEqual(
            [(event["pid"], event["ts"] * 10**6, event["args"]["bytes"]) for event in counters],
            [(1, time, size) for time, size in STEPS],
        )


if __name__ == "__main__":
    harness.main()
