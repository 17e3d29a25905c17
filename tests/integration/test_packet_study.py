#!/usr/bin/python3
"""The study of what rules of packets matter (scripts/studies/packet_rules.py): its figures are near those of a simulator that was written from
the rules of ns-3 alone."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/studies"))

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


if __name__ == "__main__":
    harness.main()
