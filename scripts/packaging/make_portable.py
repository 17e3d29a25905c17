#!/usr/bin/env python3
"""make_portable.py BUILD [--output FOLDER] [--only tarball|wheel]: packs a build so that it runs without root and without Debian's packages.

    orrery-VERSION-linux-x86_64.tar.gz          unpack it anywhere and run bin/orrery
    orrery-VERSION-py3-none-linux_x86_64.whl    pip install it: the Python package, the command orrery, and the program

Both carry HDF5, METIS, yaml-cpp and all other libraries of the program in lib/orrery, where the program looks first. MPI, the C and
the C++ library are those of the machine: MPI has to fit its network, and a C library cannot be carried. So the machine needs Open MPI 4
and at least the C library of the machine that built. BUILD is a folder such as build/release, built as a whole.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import orrery_backend as backend  # noqa: E402

# Libraries of the machine. Whatever only they need is not carried either.
OF_MACHINE = re.compile(
    r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s|mpi\w*|open-(rte|pal)|orte|opal|pmix|prrte|hwloc|event\w*|fabric|uc[pst]))(?![A-Za-z])"
)
LIBRARIES = "lib/orrery"
DATE = 315532800  # 1980: of all files, so that equal builds make equal archives
LAUNCHER = """#!python
import sys
from orrery.program import main
sys.exit(main())
"""


class Unusable(Exception):
    """A build that cannot be packed, with what was found and what to do."""


def printed(*words):
    """Runs a program to success and returns what it prints."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unusable(f"{words[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def needed(path):
    """Returns the names of the libraries that a program or library names itself."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", printed("readelf", "--dynamic", "--wide", path))


def carried(program):
    """Returns {name: path} of all libraries of a program, direct ones and those behind them, but for those of the machine."""
    places = dict(re.findall(r"^\s*(\S+) => (/\S+)", printed("ldd", program), re.MULTILINE))
    found, waiting = {}, needed(program)
    while waiting:
        name = waiting.pop()
        if name in found or OF_MACHINE.match(name):
            continue
        if name not in places:
            raise Unusable(
                f"{program}: the library {name} is not found on this machine; expected a program that runs here."
            )
        found[name] = pathlib.Path(places[name]).resolve()
        waiting += needed(found[name])
    return found


def copyrights(libraries, folder):
    """Copies the copyright of Debian's package of each library, loaded or linked as an archive, into a folder, as its licence asks for; nothing on other systems."""
    if not shutil.which("dpkg-query"):
        return
    for path in set(libraries.values()):
        for name in {str(path), str(path).removeprefix("/usr")}:
            done = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
            for package in {line.split(":")[0] for line in done.stdout.splitlines()}:
                text = pathlib.Path("/usr/share/doc") / package / "copyright"
                if text.exists():
                    folder.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(text, folder / package)


def stage(build, prefix):
    """Installs a build below a prefix with the libraries that it carries, and strips all of them."""
    if not (build / "CMakeCache.txt").exists():
        raise Unusable(f"{build}: found no build there; expected a folder such as build/release. Run scripts/build.sh.")
    for component in ("Unspecified", "python"):
        printed("cmake", "--install", build, "--prefix", prefix, "--component", component)
    program = prefix / "bin/orrery"
    if f"$ORIGIN/../{LIBRARIES}" not in printed("readelf", "--dynamic", "--wide", program):
        raise Unusable(f"{program}: it does not look for libraries in {LIBRARIES}. Build it again.")
    libraries = carried(build / "bin/orrery")
    (prefix / LIBRARIES).mkdir(parents=True)
    for name, path in libraries.items():
        shutil.copy(path, prefix / LIBRARIES / name)
        (prefix / LIBRARIES / name).chmod(0o755)
    printed("strip", program, *(prefix / LIBRARIES).iterdir())
    archives = {path.name: path for path in map(pathlib.Path, (build / "archives.txt").read_text().split())}
    copyrights(libraries | archives, prefix / "share/doc/orrery/libraries")
    return sorted(libraries)


def plain(info):
    """Takes owner and time away from an entry of an archive."""
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = DATE
    return info


def make_tarball(prefix, output, stem, machine):
    """Writes the archive of an installed prefix; returns its path."""
    path = output / f"{stem}-linux-{machine}.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        for one in sorted(prefix.rglob("*")):
            archive.add(one, f"{stem}/{one.relative_to(prefix)}", recursive=False, filter=plain)
    return path


def make_wheel(prefix, output, machine):
    """Writes the wheel of the Python package with the program of an installed prefix; returns its path."""
    parts = ["bin", LIBRARIES, "share/orrery/configs", "share/orrery/partitions", "share/doc/orrery/libraries"]
    with backend.Wheel(output, f"py3-none-linux_{machine}") as wheel:
        wheel.add_all(backend.package_files())
        for part in parts:
            wheel.add_all(
                (f"orrery/program_files/{one.relative_to(prefix)}", one)
                for one in sorted((prefix / part).rglob("*"))
                if one.is_file()
            )
        wheel.add(f"{wheel.stem}.data/scripts/orrery", LAUNCHER.encode(), 0o755)
    return output / wheel.name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=pathlib.Path, help="the folder of a build")
    parser.add_argument("--output", metavar="FOLDER", type=pathlib.Path, help="where the packages go (default: BUILD)")
    parser.add_argument("--only", choices=["tarball", "wheel"], help="make one of the two")
    arguments = parser.parse_args()
    output, machine = arguments.output or arguments.build, platform.machine()
    described = backend.project()
    try:
        missing = [tool for tool in ("cmake", "ldd", "readelf", "strip") if not shutil.which(tool)]
        if missing:
            raise Unusable(
                f"found no {' and no '.join(missing)}. On Debian run: apt-get install cmake binutils libc-bin"
            )
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="orrery-portable-") as folder:
            prefix = pathlib.Path(folder) / "prefix"
            libraries = stage(arguments.build, prefix)
            made = (
                []
                if arguments.only == "wheel"
                else [make_tarball(prefix, output, f"{described['name']}-{described['version']}", machine)]
            )
            made += [] if arguments.only == "tarball" else [make_wheel(prefix, output, machine)]
    except (OSError, Unusable) as error:
        sys.exit(f"make_portable: {error}")
    for path in made:
        print(f"wrote {path} ({os.path.getsize(path) / 1e6:.1f} MB, {len(libraries)} libraries)")


if __name__ == "__main__":
    main()
