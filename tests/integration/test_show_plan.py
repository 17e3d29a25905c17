#!/usr/bin/python3
"""orrery show plan: plans that scripts/make_plan.py writes and MSCCL algorithms are right, are refused with one operation less, and take
times that grow with the size."""
import csv
import io
import json
import pathlib
import sys
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import harness  # noqa: E402
import make_plan  # noqa: E402
import spell_out  # noqa: E402

PROTOCOLS = ("Simple", "LL", "LL128")


class ShowPlan(harness.Folder):
    def write(self, plan, name="plan.json"):
        """Writes a plan, as text or as what its JSON stands for, and returns the file."""
        file = self.folder / name
        file.write_text(plan if isinstance(plan, str) else json.dumps(plan))
        return file

    def shown(self, file, *arguments):
        outcome = harness.orrery("show", "plan", file, *arguments)
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome.out

    def figures(self, file, *arguments):
        return json.loads(self.shown(file, "--json", *arguments))

    def refused(self, *arguments, code=3):
        outcome = harness.orrery("show", "plan", *arguments)
        self.assertEqual(outcome.code, code, f"{outcome.out}{outcome.err}")
        self.assertEqual(len(harness.errors(outcome)), 1, outcome.err)
        return outcome.err

    def test_plans_of_the_script_are_right(self):
        """Every plan, for 2, 3 and 8 GPUs with 1 and 3 thread blocks: the data are right in two orders, and there are no races."""
        for name in make_plan.PLANS:
            for gpus, blocks in ((2, 3), (3, 1)) if harness.FEWER_CASES else ((2, 3), (3, 1), (8, 2)):
                with self.subTest(plan=name, gpus=gpus, blocks=blocks):
                    figures = self.figures(self.write(make_plan.make(name, gpus=gpus, blocks=blocks)))
                    self.assertEqual((figures["gpus"], figures["blocks_of_a_gpu"], figures["races"]), (gpus, blocks, 0))

    def test_every_operation_matters(self):
        """Without any one operation of GPU 0 but a nop, each plan for 2 GPUs is refused, and the message names a GPU."""
        for name in make_plan.PLANS:
            plan = json.loads(make_plan.make(name, gpus=2, blocks=1))
            operations = plan["gpus"][0]["threadblocks"][0]["ops"]
            for k, operation in enumerate(list(operations)):
                if operation["name"] == "nop":
                    continue
                del operations[k]
                with self.subTest(plan=name, without=operation["name"], number=k):
                    self.assertIn("GPU ", self.refused(self.write(plan)))
                operations.insert(k, operation)

    def test_a_missing_nop_is_a_race(self):
        """A put that no nop separates from its signal: the plan is shown, with a warning for each GPU that may read too soon."""
        plan = json.loads(make_plan.make("reduce-scatter-put", gpus=2, blocks=1))
        for gpu in plan["gpus"]:
            del gpu["threadblocks"][0]["ops"][1]
        figures = self.figures(self.write(plan))
        self.assertEqual(figures["races"], 2)
        self.assertIn("nothing orders the two", figures["warnings"][0])

    def test_times(self):
        """Sizes double, times grow, and the parts of the last thread block add up to the time; text and CSV have the same rows."""
        file = self.write(make_plan.make("two-shot", gpus=4, blocks=4))
        rows = self.figures(file, "--bytes=64KiB..1MiB")["sizes"]
        self.assertEqual([row["bytes"] for row in rows], [1 << k for k in range(16, 21)])
        for smaller, larger in zip(rows, rows[1:]):
            self.assertLess(smaller["time_ps"], larger["time_ps"])
        for row in rows:
            self.assertEqual(sum(row["parts_ps"].values()), row["time_ps"])
            self.assertAlmostEqual(
                row["algorithm_bandwidth_bytes_per_s"], row["bytes"] / row["time_ps"] * 1e12, delta=1e3
            )
            self.assertAlmostEqual(
                row["bus_bandwidth_bytes_per_s"], row["algorithm_bandwidth_bytes_per_s"] * 1.5, delta=1e3
            )
        table = list(csv.reader(io.StringIO(self.shown(file, "--csv", "--bytes=64KiB..1MiB"))))
        self.assertEqual([int(row[0]) for row in table[1:]], [row["bytes"] for row in rows])
        self.assertEqual([round(float(row[1]) * 1e6) for row in table[1:]], [row["time_ps"] for row in rows])
        text = [
            line.split() for line in self.shown(file, "--bytes=64KiB..1MiB").splitlines() if line.lstrip()[:1].isdigit()
        ]
        self.assertEqual([int(line[0]) for line in text], [row["bytes"] for row in rows])

    def test_a_system_in_place_of_a_profile(self):
        """A switch of 4 with the links of h100 takes what the profile takes; slower links, or loads that are less often in flight, take
        longer; a system without GPUs or with fewer NPUs is refused."""
        file = self.write(make_plan.make("all-gather-get", gpus=4, blocks=8))
        config = self.folder / "config.yaml"
        config.write_text(
            "system:\n  gpu: {profile: h100}\n  network:\n    dimensions: [{shape: Switch, size: 4, bandwidth: 450 GB/s, latency: 150 ns}]\n"
        )

        def time(*arguments):
            return self.figures(file, "--bytes=16MiB", *arguments)["sizes"][0]["time_ps"]

        system = f"--system={config}"
        usual = time("--profile=h100")
        self.assertEqual(time(system), usual)
        self.assertGreater(time(system, "--set", "system.network.dimensions.0.bandwidth=100 GB/s"), usual)
        self.assertLess(time(system, "--set", "system.gpu.unroll=4"), usual)
        self.assertIn(
            "the plan is for 4 GPUs, and the system has 2 NPUs",
            self.refused(file, "--bytes=1MiB", system, "--set", "system.network.dimensions.0.size=2"),
        )
        config.write_text(config.read_text().replace("  gpu: {profile: h100}\n", ""))
        self.assertIn("there are no GPUs", self.refused(file, "--bytes=1MiB", system))

    def test_packets_are_faster_when_small_only(self):
        """A ring of packets on 4 GPUs is faster than one of words at 4 KiB, and slower at 64 MiB: packets are half flags."""
        words, packets = (
            self.write(make_plan.make(name, gpus=4, blocks=8), f"{name}.json") for name in ("ring", "ring-packets")
        )
        for size, is_faster in (("4KiB", True), ("64MiB", False)):
            times = [self.figures(file, f"--bytes={size}")["sizes"][0]["time_ps"] for file in (words, packets)]
            self.assertEqual(times[1] < times[0], is_faster, (size, times))

    def test_line_by_line(self):
        """--bursts=0 goes line by line. Bursts of as many lines as there are by default take what that takes, within 0.8 %."""
        file = self.write(make_plan.make("two-shot", gpus=4, blocks=2))
        lines, bursts = (
            self.figures(file, "--bytes=64KiB", *more)["sizes"][0]["time_ps"] for more in (["--bursts=0"], [])
        )
        self.assertAlmostEqual(bursts / lines, 1, delta=0.008)

    def test_operations(self):
        """Each operation of a message of one size is a line of JSON, with its bytes. 1,000 units of 16 bytes are cut among 64 blocks."""
        plan = json.loads(make_plan.make("all-gather-put", gpus=2, blocks=1))
        for gpu in plan["gpus"]:
            parts = [dict(gpu["threadblocks"][0], id=k) for k in range(64)]
            for k, part in enumerate(parts):
                part["ops"] = [dict(operation, tbg_info={"tb_id": k, "tbg_size": 64}) for operation in part["ops"][:2]]
            gpu["threadblocks"] = parts
        lines = [
            json.loads(line) for line in self.shown(self.write(plan), "--operations", "--bytes=32000B").splitlines()
        ]
        put = next(line for line in lines if (line["gpu"], line["block"], line["name"]) == (0, 41, "put"))
        self.assertEqual(put["sources"], [{"gpu": 0, "buffer": "input", "offset": 10480, "bytes": 240}])
        self.assertEqual(put["destinations"], [{"gpu": 1, "buffer": "output", "offset": 10480, "bytes": 240}])
        self.assertEqual(len(lines), 2 * 64 * 2)

    def msccl(self, what, gpus, protocol):
        """Writes an MSCCL algorithm with a protocol and returns the file."""
        tree = xml.parse(spell_out.ALGORITHMS[what](gpus).write(self.folder / "algorithm.xml"))
        tree.getroot().set("proto", protocol)
        tree.write(self.folder / f"{protocol}.xml")
        return self.folder / f"{protocol}.xml"

    def test_msccl_with_protocols(self):
        """MSCCL algorithms for 4 GPUs are right and without races with each protocol, also when slots are used again."""
        for what in spell_out.ALGORITHMS:
            for protocol in PROTOCOLS:
                with self.subTest(algorithm=what, protocol=protocol):
                    figures = self.figures(self.msccl(what, 4, protocol))
                    self.assertEqual(
                        (figures["protocol"], figures["gpus"], figures["races"]),
                        (protocol, 4, 0),
                        figures.get("warnings"),
                    )

    def test_protocols_cross(self):
        """A ring for 4 GPUs: Simple is the slowest at 4 KiB, and LL, whose packets are half flags, is the slowest at 64 MiB."""
        times = {}
        for protocol in PROTOCOLS:
            file = self.msccl("fused-ring-all-reduce", 4, protocol)
            times[protocol] = [
                self.figures(file, f"--bytes={size}")["sizes"][0]["time_ps"] for size in ("4KiB", "64MiB")
            ]
        self.assertEqual(max(times, key=lambda protocol: times[protocol][0]), "Simple", times)
        self.assertEqual(max(times, key=lambda protocol: times[protocol][1]), "LL", times)

    @harness.long
    def test_the_study_of_a_decode_step(self):
        """At 16 KiB a plan with one or two steps saves a fifth of the step that the best ring takes, or more."""
        done = harness.run_script("scripts/studies/decode_all_reduce", "--sizes=16384", f"--orrery={harness.BINARY}")
        self.assertEqual(done.code, 0, done.out + done.err)
        self.assertGreater(int(done.out.splitlines()[-1].split("|")[-2].strip(" %")), 20)

    def test_refusals(self):
        """Bad values of options are usage errors; a file that is no plan, or a size that is out of its range, is told."""
        plan = json.loads(make_plan.make("one-shot", gpus=2, blocks=1)) | {"min_message_size": 1024}
        file = self.write(plan)
        for arguments, message in (
            ((), "no file"),
            ((file, "--profile=z80", "--bytes=1MiB"), "found 'z80'; expected"),
            ((file, "--bytes=1GiB..1KiB"), "FROM..TO"),
            ((file, "--csv"), "without --bytes"),
            ((file, "--operations", "--bytes=1KiB..2KiB"), "without one size"),
            ((file, "--json", "--csv", "--bytes=1KiB"), "both --json and --csv"),
            ((file, "--set", "a=1"), "without --system"),
            ((file, "--bytes=64B"), "is for messages of 1024 to"),
        ):
            with self.subTest(arguments=arguments[1:]):
                self.assertIn(message, self.refused(*arguments, code=2))
        self.assertIn("this is no JSON", self.refused(self.write("{")))
        self.assertIn("there is no collective", self.refused(self.write("{}")))


if __name__ == "__main__":
    harness.main()
