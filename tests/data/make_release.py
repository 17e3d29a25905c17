#!/usr/bin/python3
"""Makes the data by which later versions are held to read what this version writes: tests/data/v<version>/ with results.h5.gz, run.yaml and
run.chk, a checkpoint of an interrupted run of run.yaml.

    tests/data/make_release.py build/release/bin/orrery

Run it once for each release, after the version has changed and before it is tagged. It replaces the folder of this version only.
"""
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CONFIGURATION = """\
# A step of a tiny transformer on two NPUs, whose results and checkpoint are kept for later versions.
system:
  network:
    dimensions:
      - {shape: Ring, size: 2, bandwidth: 50 GB/s, latency: 500 ns}
  compute: {roofline: true, peak: 100 TFLOPS, local-memory: {bandwidth: 1000 GB/s}}
workload:
  model: {layers: 1, hidden: 1024, heads: 8, sequence: 512}
  parallel: {tp: 2}
  iterations: 2000000
"""


def run(program, folder, *arguments, expected=0):
    """Runs the program in a folder and raises an error if it ends in another way than expected."""
    done = subprocess.run(
        [program, "run", "run.yaml", "--quiet", "--record-iterations=0", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode != expected:
        raise SystemExit(f"exit code {done.returncode}; expected {expected}:\n{done.stderr}")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    program = pathlib.Path(sys.argv[1]).resolve()
    version = re.match(
        r"orrery (\S+)", subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    )[1]
    place = pathlib.Path(__file__).resolve().parent / f"v{version}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "run.yaml").write_text(CONFIGURATION)
        run(program, folder, "--iterations=2", "--output=results.h5")
        run(program, folder, "--output=stopped.h5", "--checkpoint=run.chk", "--max-walltime=0.5", expected=75)
        with open(place / "results.h5.gz", "wb") as packed, gzip.GzipFile(
            filename="", fileobj=packed, mode="wb", mtime=0
        ) as file:
            file.write((folder / "results.h5").read_bytes())
        shutil.copy(folder / "run.chk", place)
        shutil.copy(folder / "run.yaml", place)
    for path in sorted(place.iterdir()):
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
