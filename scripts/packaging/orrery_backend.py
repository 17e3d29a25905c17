"""Makes wheels of the Python package as PEP 517 and PEP 660 ask for them. It needs Python's own library alone, so that pip works offline.

    pip install .       the package; it runs the program that is in PATH, in the checkout or named by ORRERY_PROGRAM
    pip install -e .    the same, from the files of the checkout

The version is that of CMakeLists.txt, and everything else that describes the package is in pyproject.toml.
"""
import base64
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

try:
    import tomllib
except ImportError:  # Python before 3.11: pip carries a copy
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "scripts/python"
DATE = (1980, 1, 1, 0, 0, 0)  # of all files, so that equal contents make equal wheels
IN_SOURCES = ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "scripts/packaging/orrery_backend.py")


def project():
    """Returns the table `project` of pyproject.toml, with the version."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        described = tomllib.load(file)["project"]
    described["version"] = re.search(r"project\(orrery VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    return described


def metadata():
    """Returns the text of METADATA."""
    described = project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {described['name']}",
        f"Version: {described['version']}",
        f"Summary: {described['description']}",
        f"Requires-Python: {described['requires-python']}",
        "License: MIT",
    ]
    lines += [f"Requires-Dist: {one}" for one in described["dependencies"]]
    for extra, needed in described["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {one} ; extra == "{extra}"' for one in needed)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (ROOT / described["readme"]).read_text()])


def package_files():
    """Yields (name in the wheel, path) of the files of the package."""
    for path in sorted((PACKAGES / "orrery").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(path.relative_to(PACKAGES)), path


class Wheel:
    """A wheel that is being written. Use it in a `with` block; `name` is its file's."""

    def __init__(self, folder, tag="py3-none-any"):
        described = project()
        self.stem, self.tag = f"{described['name']}-{described['version']}", tag
        self.name = f"{self.stem}-{tag}.whl"
        self._file = zipfile.ZipFile(pathlib.Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)
        self._record = []

    def add(self, name, content, mode=0o644):
        """Adds a file with the given bytes and permissions."""
        info = zipfile.ZipInfo(name, DATE)
        info.external_attr, info.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
        self._file.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(content)}")

    def add_all(self, files):
        """Adds the files of an iterable of (name, path)."""
        for name, path in files:
            self.add(name, path.read_bytes(), path.stat().st_mode & 0o777)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            about = f"{self.stem}.dist-info"
            pure = str(self.tag.endswith("-any")).lower()
            self.add(f"{about}/METADATA", metadata().encode())
            self.add(
                f"{about}/WHEEL",
                f"Wheel-Version: 1.0\nGenerator: orrery_backend\nRoot-Is-Purelib: {pure}\nTag: {self.tag}\n".encode(),
            )
            self.add(f"{about}/LICENSE", (ROOT / "LICENSE").read_bytes())
            self._file.writestr(
                zipfile.ZipInfo(f"{about}/RECORD", DATE), "\n".join([*self._record, f"{about}/RECORD,,", ""])
            )
        self._file.close()


# ---- what pip calls ----


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel of the package; returns the name of its file."""
    with Wheel(wheel_directory) as wheel:
        wheel.add_all(package_files())
    return wheel.name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes a wheel that points to the checkout; returns the name of its file."""
    with Wheel(wheel_directory) as wheel:
        wheel.add("orrery.pth", f"{PACKAGES}\n".encode())
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):
    """Writes an archive of the sources of the package; returns the name of its file."""
    described = project()
    stem = f"{described['name']}-{described['version']}"
    with tarfile.open(pathlib.Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in IN_SOURCES:
            archive.add(ROOT / name, f"{stem}/{name}")
        for name, path in package_files():
            archive.add(path, f"{stem}/scripts/python/{name}")
        info = tarfile.TarInfo(f"{stem}/PKG-INFO")
        text = metadata().encode()
        info.size = len(text)

        archive.addfile(info, io.BytesIO(text))
    return f"{stem}.tar.gz"
