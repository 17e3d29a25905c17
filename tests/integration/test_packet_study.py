#!/usr/bin/python3
"""The studies of the packet network. scripts/studies/packet_rules.py: its figures are near those of a simulator that was written from the rules
of ns-3 alone. scripts/studies/flow_slowdown.py: it says of HPCC what its authors say."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/studies"))

import flow_slowdown  # noqa: E402
import harness  # noqa: E402
import packet_rules  # noqa: E402


class PacketStudy(harness.Folder):
    def test_agreement(self):
        """Each change agrees within 1.5 % of the completion, as far as the other simulator has a figure (in whole percent, mostly)."""
        _, changes = packet_rules.measure(os.environ.get("ORRERY_BINARY", harness.BINARY))
        compared = 0
        for rule, values in changes.items():
            for value, expected in zip(values, packet_rules.EXPECTED[rule]):
                if expected is not None:
                    self.assertLessEqual(abs(value - expected), 1.5, rule)
                    compared += 1
        self.assertEqual(compared, 32)


class FlowSlowdown(harness.Folder):
    def slowdowns(self, control, flows):
        return flow_slowdown.slowdowns(os.environ.get("ORRERY_BINARY", harness.BINARY), 1, control, flows)

    def test_flows_alone(self):
        """Flows that meet no other one, below one leaf, in one pod and across pods, have no slowdown above 1 %."""
        for control in flow_slowdown.CONTROLS:
            if control != "HPCC":  # its longer headers are a slowdown
                with self.subTest(control=control):
                    found = self.slowdowns(
                        control, [(0, 5, 6, 1000), (0.001, 17, 40, 2_000_000), (0.002, 0, 319, 1_000_000)]
                    )
                    self.assertLess(max(value for _, value in found), 1.01)

    def test_short_flows(self):
        """With HPCC, the slowest of the flows below 200 kB are faster than with DCQCN."""
        flows = flow_slowdown.make_flows(flow_slowdown.SIZES["web-search"], 0.5, 0.0005, 1)
        slowest = {}
        for control in ("HPCC", "DCQCN with a window"):
            short = sorted(value for size, value in self.slowdowns(control, flows) if size <= 200_000)
            self.assertGreater(len(short), 300)
            slowest[control] = [short[len(short) * percent // 100] for percent in (95, 99)]
        for hpcc, dcqcn in zip(*slowest.values()):
            self.assertLess(hpcc, 0.95 * dcqcn)


class CheckPacket(harness.Folder):
    def test_files_that_are_no_cases(self):
        """tests/reference/check_packet.py names files that are no cases, goes on with the others, and ends with 2."""
        (self.folder / "a.json").write_text("{")
        (self.folder / "b.json").write_text('{"name": "b"}')
        done = harness.run_script("tests/reference/check_packet.py", self.folder)
        self.assertEqual(done.code, 2, done.err)
        for name in ("a.json", "b.json"):
            self.assertRegex(done.out, rf"(?m)^{name} +is no case: ")
        self.assertIn("2 could not be run", done.out)


if __name__ == "__main__":
    harness.main()
