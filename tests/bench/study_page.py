#!/usr/bin/python3
"""Makes the page of a study and measures it in headless Chromium; docs/measurements.md, *Exploring*, has the figures.

usage: study_page.py [--orrery BIN] [--repeat N] EXPLORE.h5

Prints the size of the page, how long it takes to load, and how long it takes from a brush over one metric until all charts and tables are
drawn again: median and maximum of N brushes with other ranges each."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/python"))
import browser  # noqa: E402

BRUSH = """const done = arguments[arguments.length - 1], start = performance.now();
const left = window.orrery.brush(arguments[0] ? {[arguments[0]]: [arguments[1], arguments[2]]} : undefined);
requestAnimationFrame(() => requestAnimationFrame(() => done([performance.now() - start, left])));"""


def brushes(page, metric, values, repeat):
    """Returns the milliseconds that brushes over a metric take, and how many trials they leave."""
    found = []
    for i in range(repeat):
        low, high = sorted((values[i * 37 % len(values)], values[i * 101 % len(values)]))
        found.append(page.browser.execute_async_script(BRUSH, metric, low, high))
        page.browser.execute_async_script(BRUSH, None, 0, 0)
    return [milliseconds for milliseconds, _ in found], [left for _, left in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orrery", default=os.environ.get("ORRERY_BINARY", str(SOURCE / "build/release/bin/orrery")))
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    if not browser.HAS_BROWSER:
        raise SystemExit(
            "found no Chromium; expected the Debian packages chromium, chromium-driver and python3-selenium"
        )
    import h5py

    with h5py.File(options.file) as file:
        values = sorted(
            {
                float(value)
                for value in file["trials/lower_bound" if "lower_bound" in file["trials"] else "trials/step_time"]
                if value == value
            }
        )
        metric, count = "lower_bound" if "lower_bound" in file["trials"] else "step_time", len(file["trials/number"])
    with tempfile.TemporaryDirectory(prefix="orrery-page-") as name:
        path = pathlib.Path(name) / "study.html"
        subprocess.run(
            [options.orrery, "report", options.file, f"--output={path}"], check=True, stdout=subprocess.DEVNULL
        )

        class Page(browser.Browser):
            folder = pathlib.Path(name)

            def runTest(self):
                self.open_page(path)
                self.loaded = self.do(
                    "const [one] = performance.getEntriesByType('navigation'); return one.loadEventEnd - one.startTime"
                )
                self.times, self.left = brushes(self, metric, values, options.repeat)

        page = Page()
        result = unittest.TestSuite([page]).run(unittest.TestResult())
        if result.errors or result.failures:
            raise SystemExit((result.errors + result.failures)[0][1])
        print(
            f"{count} trials: {path.stat().st_size / 1e6:.2f} MB, loaded in {page.loaded:.0f} ms; {options.repeat} brushes over {metric} that leave "
            f"{min(page.left)} to {max(page.left)} trials: median {statistics.median(page.times):.0f} ms, at most {max(page.times):.0f} ms"
        )


if __name__ == "__main__":
    main()
