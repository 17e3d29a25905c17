#!/usr/bin/python3
"""Progress is one line that fits a terminal and renews itself, and plain lines elsewhere. It counts the NPUs of all ranks.

The systems: a training step of 64 NPUs that is repeated for ever, and two NPUs of which one has much more to do.
"""
import fcntl
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import chakra  # noqa: E402
import harness  # noqa: E402

CONFIG = harness.SOURCE / "configs/llama3-8b-64.yaml"
FIGURES = r"(\d+\.\d) %  .+ left  [\d.]+( [kMG])? events/s  \d+/64 NPUs"


class Progress(harness.Folder):
    def on_terminal(self, columns, renewals, *arguments):
        """Runs the program with standard error on a terminal until it has renewed its line so often. Stops it, and returns what the
        terminal got."""
        terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = harness.launch(
            ["run", CONFIG, harness.FOR_EVER, f"--output={self.folder / 'results.h5'}", *arguments]
        )
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=end)
        self.addCleanup(process.kill)
        os.close(end)
        got, asked = b"", False
        with open(terminal, "rb", buffering=0) as screen:
            try:
                while piece := screen.read(4096):
                    got += piece
                    if not asked and got.count(b"\r[") >= renewals:
                        asked = True
                        process.send_signal(signal.SIGTERM)
            except OSError:  # the other end is closed
                pass
        self.assertEqual(process.wait(harness.PATIENCE), 75, got)
        return got.decode()

    def test_a_terminal_gets_one_line_that_renews_itself(self):
        """On 80 columns the line has a bar and all figures, takes 79 columns at most, and is gone before the error message."""
        text = self.on_terminal(80, 3)
        lines = re.findall(r"\r([^\r\x1b]+)\x1b\[K", text)
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r"^\[#*-+\] +" + FIGURES + "$")
            self.assertLess(len(line), 80)
        self.assertRegex(text, r"\x1b\[K\r\x1b\[Korrery: error: stopped by SIGTERM")

    def test_a_narrow_terminal_gets_fewer_figures(self):
        """On 40 columns each line takes 39 columns at most."""
        lines = re.findall(r"\r([^\r\x1b]+)\x1b\[K", self.on_terminal(40, 2))
        for line in lines:
            self.assertRegex(line, r"^\[#*-+\] +\d+\.\d %  .* left$")
            self.assertLess(len(line), 40)

    def test_a_pipe_gets_plain_lines(self):
        """Without a terminal each line stands alone, without control characters, and names the NPUs of all ranks."""
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                run = harness.Background(
                    self,
                    harness.launch(
                        [
                            "run",
                            CONFIG,
                            harness.FOR_EVER,
                            f"--output={self.folder / 'results.h5'}",
                            "--force",
                            "--progress-interval=0.1",
                        ],
                        ranks,
                    ),
                )
                run.wait_until_simulating()
                run.signal("SIGTERM")
                text = run.end().err
                self.assertNotRegex(text, r"[\r\x1b]")
                lines = [line for line in text.splitlines() if " of nodes, " in line]
                for line in lines:
                    self.assertRegex(
                        line,
                        r"^orrery: \d+\.\d % of nodes, \d+ of 64 NPUs done, [\d.]+( [kMG])? events/s, .+ left, simulated .+ in .+$",
                    )

    def test_reading_is_shown(self):
        """Rank 0 tells how many of its traces it has read: half of them on two ranks, folded or not. `quiet` and `none` silence it."""
        nodes = [chakra.Node(i + 1, chakra.COMP, duration=1) for i in range(2000)]
        flags = harness.System(counts=(8,)).write(self.folder)
        workload = harness.write_workload(self.folder, [nodes] * 8)
        arguments = [
            "run",
            workload,
            *flags,
            f"--output={self.folder / 'results.h5'}",
            "--force",
            "--progress-interval=0.000001",
        ]
        for ranks, own, more in ((0, 8, []), (2, 4, []), (2, 4, ["--fold"])):
            with self.subTest(ranks=ranks, more=more):
                text = harness.orrery(*arguments, *more, ranks=ranks).err
                lines = re.findall(
                    rf"^orrery: reading: the traces of (\d+) of {own} NPUs of rank 0 in \d+ s$", text, re.MULTILINE
                )
                self.assertEqual(lines[-own + 1 :], [str(number) for number in range(1, own)])
        for silent in ("--quiet", "--progress=none"):
            self.assertNotIn("reading", harness.orrery(*arguments, silent).err)

    def test_the_part_of_a_large_file_is_shown(self):
        """Of a trace of 20 MB rank 0 tells which part of it has been read, from few per cent to 100 %."""
        flags = harness.System(counts=(1,)).write(self.folder)
        workload = harness.write_workload(
            self.folder, [[chakra.Node(i + 1, chakra.COMP, name=f"{i:100000}", duration=1) for i in range(200)]]
        )
        text = harness.orrery(
            "run", workload, *flags, f"--output={self.folder / 'results.h5'}", "--progress-interval=0.000001"
        ).err
        parts = [
            int(part)
            for part in re.findall(
                r"^orrery: reading: the traces of 0 of 1 NPUs of rank 0 and (\d+) % of the next file in \d+ s$",
                text,
                re.MULTILINE,
            )
        ]
        self.assertGreater(len(parts), 10)
        self.assertEqual(parts, sorted(parts))
        self.assertLess(parts[0], 10)
        self.assertEqual(parts[-1], 100)

    def test_rank_0_tells_of_other_ranks(self):
        """NPU 0 has one node, NPU 1 on the other rank 1000. When rank 0 is done it goes on to tell: 1 of 2 NPUs, and less than all nodes."""
        nodes = [chakra.Node(i + 1, chakra.COMP, duration=1) for i in range(1000)]
        flags = harness.System(counts=(2,)).write(self.folder)
        workload = harness.write_workload(self.folder, [nodes[:1], nodes])
        run = harness.Background(
            self,
            harness.launch(
                [
                    "run",
                    workload,
                    *flags,
                    "--iterations=100000",
                    f"--output={self.folder / 'results.h5'}",
                    *harness.PROGRESS,
                ],
                2,
            ),
        )
        run.wait_until(lambda: run.text().count(" 1 of 2 NPUs done") > 1, "telling that rank 0 is done")
        run.signal("SIGTERM")
        text = run.end().err
        self.assertNotIn("2 of 2 NPUs", text)
        self.assertNotIn("100.0 %", text)


if __name__ == "__main__":
    harness.main()
