#!/usr/bin/python3
"""`orrery show timeline` writes what Perfetto and about:tracing open, and its durations are those of /npus.

The system of most tests: a generated step of 16 NPUs in two dimensions, with noise."""
import collections
import gzip
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import random_workload  # noqa: E402

CONFIG = """system:
  network:
    dimensions: [{shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 500 ns}, {shape: Switch, size: 4, bandwidth: 50 GB/s, latency: 1 us}]
  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1 TB/s}, noise: 0.1}
  communication: {streams: 2}
workload:
  model: {layers: 4, hidden: 256, heads: 8, sequence: 128}
  parallel: {tp: 2, dp: 4, pp: 2, micro-batches: 4}
"""
COMMUNICATION = {"collective", "send", "receive"}


def picoseconds(number):
    """Returns the ps of a text that gives microseconds."""
    whole, _, fraction = number.partition(".")
    return int(whole) * 10**6 + int(fraction.ljust(6, "0") or 0)


def union(slices):
    """Returns the time in which at least one of the slices is under way."""
    total = end = 0
    for start, finish in sorted(slices):
        total += max(0, finish - max(start, end))
        end = max(end, finish)
    return total


class Timeline(harness.Folder):
    def results(self, *more):
        config = self.folder / "config.yaml"
        config.write_text(CONFIG)
        return self.run_once([config, *more], "timeline.h5")

    def chrome(self, results, *more, name="timeline.json"):
        path = self.folder / name
        outcome = harness.orrery("show", "timeline", results, f"--chrome={path}", *more)
        self.assertEqual(outcome.code, 0, outcome.err)
        text = gzip.decompress(path.read_bytes()).decode() if name.endswith(".gz") else path.read_text()
        # Times are exact: microseconds with a decimal point become whole picoseconds, whole ones too.
        events = json.loads(text, parse_float=lambda number: ("us", number))["traceEvents"]
        for event in events:
            for key in ("ts", "dur"):
                if key in event:
                    value = event[key]
                    event[key] = picoseconds(value[1]) if isinstance(value, tuple) else value * 10**6
        return events

    def check_against_npus(self, events, results):
        """Checks that the slices of each NPU add up to its times in /npus, and that those of a thread do not overlap. Returns the NPUs."""
        import h5py

        slices = collections.defaultdict(lambda: collections.defaultdict(list))
        threads = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                slices[event["pid"] - 1][event["cat"]].append((event["ts"], event["ts"] + event["dur"]))
                slices[event["pid"] - 1][event["name"]].append((event["ts"], event["ts"] + event["dur"]))
                threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        for thread in threads.values():
            self.assertEqual(
                sum(finish - start for start, finish in thread), union(thread), "slices of a thread follow each other"
            )
        with h5py.File(results) as file:
            npus = {name: item[:].astype(object) for name, item in file["npus"].items()}
            for npu in slices:
                mine = slices[npu]
                communication = [piece for kind in COMMUNICATION for piece in mine[kind]]
                self.assertEqual(union(mine["compute"]), npus["compute_time"][npu])
                self.assertEqual(union(communication), npus["communication_time"][npu])
                self.assertEqual(union(mine["memory"]), npus["memory_time"][npu])
                self.assertEqual(union(mine["exposed communication"]), npus["exposed_communication_time"][npu])
                self.assertEqual(union(mine["exposed memory"]), npus["exposed_memory_time"][npu])
                self.assertEqual(union(mine["idle"]), npus["idle_time"][npu])
                self.assertEqual(
                    union(mine["compute"] + mine["cpu"]), npus["compute_time"][npu] + npus["cpu_time"][npu]
                )
        self.seen = getattr(self, "seen", set()) | {event["cat"] for event in events if event["ph"] == "X"}
        return sorted(slices)

    def test_slices_add_up_to_the_times_of_npus(self):
        """Plain and compressed: the slices of every NPU add up to its times, every recorded node has a slice, and threads and processes
        have their names."""
        import h5py

        results = self.results("--timeline")
        for name in ("timeline.json", "timeline.json.gz"):
            events = self.chrome(results, name=name)
            self.assertEqual(self.check_against_npus(events, results), list(range(16)))
        nodes = sum("node" in event.get("args", {}) for event in events if event["ph"] == "X")
        with h5py.File(results) as file:
            self.assertEqual(nodes, sum(kind != 0 for kind in file["timeline/kind"][:]))
        names = {
            event["args"]["name"]
            for event in events
            if event["ph"] == "M" and event["name"] == "thread_name" and event["pid"] == 1
        }
        for name in ("compute", "send and receive", "communication tp_dp0_pp0", "communication dp_tp0_pp0", "exposed"):
            self.assertTrue(any(found.startswith(name) for found in names), names)
        processes = {
            event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "process_name"
        }
        self.assertEqual(processes, {f"NPU {npu}" for npu in range(16)} | {"all 16 NPUs shown"})
        self.check_counters(events, results)

    def check_counters(self, events, results):
        """Checks that the counter over all NPUs has the compute time of all, and that those of an NPU end with nothing in flight or in
        memory."""
        import h5py

        counters = [event for event in events if event["ph"] == "C"]
        shares = sorted(
            (event["ts"], event["args"]["compute"]) for event in counters if event["name"] == "share of NPUs"
        )
        self.assertEqual(len(shares), 1000)
        with h5py.File(results) as file:
            finish, compute = max(file["npus/finish_time"][:]), file["npus/compute_time"][:].mean()
        edges = [ts for ts, _ in shares] + [int(finish)]
        value = lambda found: float(found[1]) if isinstance(found, tuple) else found  # noqa: E731
        mean = sum(value(share) * (after - before) for (_, share), before, after in zip(shares, edges, edges[1:]))
        self.assertAlmostEqual(mean / compute, 1, places=4)
        mine = [
            event["args"]["nodes"]
            for event in counters
            if event["pid"] == 1 and event["name"] == "communication in flight"
        ]
        self.assertGreater(max(mine), 0)
        self.assertEqual(mine[-1], 0)
        memory = [event["args"]["bytes"] for event in counters if event["pid"] == 1 and event["name"] == "local memory"]
        with h5py.File(results) as file:
            self.assertEqual(max(memory), file["npus/peak_local_memory"][0])
        self.assertEqual(memory[-1], 0)

    def test_slices_of_random_workloads(self):
        """Six random workloads with remote memory and overlap: the slices of every NPU add up to its times, and every kind of slice
        occurs."""
        for seed in range(20, 26):
            workload = random_workload.Workload(seed, max_npus=12, operations=(40, 80))
            arguments = (
                [harness.write_workload(self.folder, workload.traces)]
                + workload.system.write(self.folder)
                + ["--timeline"]
            )
            with self.subTest(seed=seed):
                results = self.run_once(arguments)
                found = self.check_against_npus(self.chrome(results), results)
                self.assertGreater(len(found), 0)
            self.clear_folder()
        self.assertEqual(
            self.seen, {"compute", "cpu", "collective", "send", "receive", "memory", "exposed"} | (self.seen & {"idle"})
        )

    def test_arrows_and_arguments(self):
        """Each send of the 16 NPUs has an arrow to its receive, and each collective one through all members. Both ends have the same bytes.
        Of a selection of NPUs only the arrows between them are drawn."""
        events = self.chrome(self.results("--timeline"))
        slices = {(event["pid"], event["tid"], event["ts"]): event for event in events if event["ph"] == "X"}
        nodes = [event for event in slices.values() if event["cat"] in COMMUNICATION]
        by_kind = collections.Counter(event["cat"] for event in nodes)
        self.assertGreater(by_kind["send"], 0)
        self.assertEqual(by_kind["send"], by_kind["receive"])
        self.check_messages(events, by_kind["send"])
        self.check_members(events, nodes)
        npus = {0, 8}  # of one pipeline
        some = self.chrome(self.folder / "timeline.h5", "--npus=0,8", name="some.json")
        sends = [event for event in some if event.get("cat") == "send" and event["args"]["peer"] in npus]
        self.assertGreater(len(sends), 0)
        self.check_messages(some, len(sends))

    def arrows(self, events, category):
        """Returns {id: [events of the arrow, in the order of time]}."""
        found = collections.defaultdict(list)
        for event in events:
            if event["ph"] in "stf" and event["cat"] == category:
                found[event["id"]].append(event)
        return {
            number: sorted(arrow, key=lambda event: (event["ts"], "stf".index(event["ph"])))
            for number, arrow in found.items()
        }

    def slice_at(self, events, end, categories):
        """Returns the slice of a node that holds the end of an arrow."""
        holding = [
            event
            for event in events
            if event["ph"] == "X"
            and event["cat"] in categories
            and (event["pid"], event["tid"]) == (end["pid"], end["tid"])
            and event["ts"] <= end["ts"] < max(event["ts"] + event["dur"], event["ts"] + 1)
        ]
        self.assertEqual(len(holding), 1, end)
        return holding[0]

    def check_messages(self, events, number):
        """Checks that there are so many arrows from sends to receives, and that both ends agree."""
        arrows = self.arrows(events, "message")
        self.assertEqual(len(arrows), number)
        for arrow in arrows.values():
            self.assertEqual([event["ph"] for event in arrow], ["s", "f"])
            send, receive = (self.slice_at(events, end, {"send", "receive"}) for end in arrow)
            self.assertEqual((send["cat"], receive["cat"]), ("send", "receive"))
            self.assertEqual((send["args"]["peer"], receive["args"]["peer"]), (receive["pid"] - 1, send["pid"] - 1))
            self.assertEqual(
                (send["args"]["bytes"], send["args"]["tag"]), (receive["args"]["bytes"], receive["args"]["tag"])
            )

    def check_members(self, events, nodes):
        """Checks that each collective has one arrow, which passes all members."""
        members = collections.Counter()
        for arrow in self.arrows(events, "members").values():
            self.assertEqual([arrow[0]["ph"], arrow[-1]["ph"]], ["s", "f"])
            passed = [self.slice_at(events, end, {"collective"}) for end in arrow]
            self.assertEqual(len({slice_["pid"] for slice_ in passed}), len(passed))
            self.assertEqual(
                len(
                    {
                        (slice_["args"]["group"], slice_["args"]["operation"], slice_["args"]["bytes"])
                        for slice_ in passed
                    }
                ),
                1,
            )
            members[passed[0]["args"]["group"]] += len(passed)
        self.assertEqual(
            members, collections.Counter(event["args"]["group"] for event in nodes if event["cat"] == "collective")
        )

    def test_npus_can_be_chosen(self):
        """--npus=1,4-6 writes these NPUs and no others."""
        results = self.results("--timeline")
        events = self.chrome(results, "--npus=1,4-6")
        self.assertEqual(self.check_against_npus(events, results), [1, 4, 5, 6])
        self.assertIn("all 4 NPUs shown", {event["args"].get("name") for event in events if event["ph"] == "M"})

    def test_recorded_iterations_are_shown(self):
        """Of three iterations the recorded ones are shown: all three, or the first."""
        results = self.results("--timeline", "--iterations=3", "--record-iterations=3")
        self.check_against_npus(self.chrome(results), results)
        import h5py

        shorter = self.results("--timeline", "--iterations=3")
        with h5py.File(shorter) as file:
            recorded = file["timeline"].attrs["recorded"]
        shown = [
            event for event in self.chrome(shorter, "--force") if event["ph"] == "X" and "node" in event.get("args", {})
        ]
        self.assertLessEqual(len(shown), recorded)
        self.assertGreater(len(shown), recorded // 2)

    def test_the_critical_path_reaches_the_end(self):
        """/critical_path ends with the run, where all iterations are recorded. It is absent where they are not: the end of the run is not
        that of the recorded iterations."""
        import h5py

        config = self.folder / "config.yaml"
        config.write_text(
            "system:\n  network: {dimensions: [{shape: Switch, size: 4, bandwidth: 50 GB/s, latency: 500 ns}]}\nworkload:\n"
            "  model: {kind: layers, layers: [{name: g, parameters: 1000000, forward: 10 us, backward: 20 us}]}\n  parallel: {dp: 4}\n"
        )
        generated = self.folder / "generated.yaml"
        generated.write_text(CONFIG)
        for case in (config, generated):
            for iterations, recorded in ((1, 1), (4, 4), (4, 1), (3, 2)):
                path = self.run_once(
                    [case, "--timeline", f"--iterations={iterations}", f"--record-iterations={recorded}"], "path.h5"
                )
                with h5py.File(path) as results:
                    self.assertEqual("critical_path" in results, iterations == recorded)
                    if iterations == recorded:
                        self.assertEqual(results["critical_path/finish"][-1], results.attrs["simulated_time"])

    def test_npus_that_are_not_there_are_left_out_with_a_word(self):
        """A list of NPUs that goes beyond the run's 16 shows those that are there, and a warning says which."""
        results = self.results("--timeline")
        for given, shown, word in (
            ("0-63", range(16), "0-15 are shown"),
            ("3,14-20,40", (3, 14, 15), "3,14-15 are shown"),
            ("15,16", (15,), "15 is shown"),
        ):
            out = self.folder / f"{given}.json"
            outcome = harness.orrery("show", "timeline", results, f"--chrome={out}", f"--npus={given}")
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertIn(f"--npus: found '{given}', but the run has 16 NPUs: {word}", outcome.err)
            names = {
                event["args"]["name"]
                for event in json.loads(out.read_text())["traceEvents"]
                if event["name"] == "process_name"
            }
            self.assertEqual({name for name in names if name.startswith("NPU ")}, {f"NPU {npu}" for npu in shown})

    def test_wrong_files_and_npus_are_refused(self):
        """Results without a timeline, files that are no results, missing options, NPUs that are not there at all and existing files are
        refused with one message; --force replaces a file."""
        plain, results = self.folder / "plain.h5", self.results("--timeline")
        self.run_once([self.folder / "config.yaml"], "plain.h5")
        text = self.folder / "text.h5"
        text.write_text("no results")
        there = self.folder / "there.json"
        there.write_text("older")
        new = f"--chrome={self.folder / 'new.json'}"
        cases = [
            ([plain, new], 3, ["plain.h5", "holds no timeline", "--timeline"]),
            ([text, new], 3, ["text.h5", "HDF5"]),
            ([self.folder / "missing.h5", new], 3, ["missing.h5", "no such file"]),
            ([results], 2, ["--chrome is missing"]),
            (
                [results, new, "--npus=16,20-30"],
                2,
                ["--npus", "found '16,20-30'", "NPUs of the run, which are below 16"],
            ),
            ([results, new, "--npus=4,3"], 2, ["--npus", "ascending"]),
            ([new], 2, ["no file"]),
            ([results, f"--chrome={there}"], 5, ["there.json", "exists already", "--force"]),
            ([results, f"--chrome={text / 'x.json'}"], 5, ["x.json", "creating the folder", "Not a directory"]),
        ]
        for arguments, code, words in cases:
            with self.subTest(words):
                outcome = harness.orrery("show", "timeline", *arguments)
                self.assertEqual(outcome.code, code, outcome.err)
                self.assertEqual(len(outcome.err.strip().splitlines()), 1, outcome.err)
                for word in words:
                    self.assertIn(word, outcome.err)
        self.assertEqual(there.read_text(), "older")
        self.assertEqual([path.name for path in self.folder.glob("new*")], [])
        self.assertEqual(harness.orrery("show", "timeline", results, f"--chrome={there}", "--force").code, 0)
        self.assertGreater(len(json.loads(there.read_text())["traceEvents"]), 100)


if __name__ == "__main__":
    harness.main()
