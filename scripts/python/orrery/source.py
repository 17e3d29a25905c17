"""Reads datasets of one results.h5 or explore.h5. No other module of the package calls h5py."""
import functools
import os
import zlib

from .errors import ResultsError
from .packages import load

h5py, np = load("h5py"), load("numpy")

VERSION = 1
RUN, STUDY, CAMPAIGN, CLUSTER = (
    "orrery-results",
    "orrery-explore",
    "orrery-campaign",
    "orrery-cluster",
)  # what a file may hold
KINDS = {
    RUN: ("results of a run", "orrery run CONFIG.yaml --output"),
    STUDY: ("results of a study", "orrery explore STUDY.yaml --output"),
    CAMPAIGN: ("results of a campaign", "orrery campaign CONFIG.yaml --output"),
    CLUSTER: ("results of a cluster", "orrery cluster CONFIG.yaml --output"),
}
READERS = {
    RUN: "In Python orrery.open reads it.",
    STUDY: "In Python orrery.read_study reads it.",
    CAMPAIGN: "orrery report draws it.",
    CLUSTER: "orrery report draws it.",
}
LABELS = ("units", "long_name", "description")


SEAL = b"ORRERYh5"  # begins the last 24 bytes of a file, before the number of bytes before them and their CRC-32


def end_of_contents(begin):
    """Returns where the superblock says that the contents of an HDF5 file end, or None for another kind of superblock."""
    if len(begin) < 52 or not begin.startswith(b"\x89HDF\r\n\x1a\n") or begin[8] > 3:
        return None
    size, end = ((13, 40), (13, 44), (9, 28), (9, 28))[
        begin[8]
    ]  # the places of these two, by the version of the superblock
    return int.from_bytes(begin[end : end + 8], "little") if begin[size] == 8 else None


def has_broken_seal(path):
    """Says whether a file ends with a seal that does not fit the bytes before it, or has something else in its place. Reads the whole file."""
    size = os.path.getsize(path) - 24
    if size < 0:
        return False
    with open(path, "rb") as file:
        file.seek(size)
        seal = file.read()
        file.seek(0)
        if not seal.startswith(SEAL):
            end = end_of_contents(file.read(52))
            return end is not None and end < size + 24
        checksum, left = 0, size
        while left > 0 and (part := file.read(min(left, 1 << 20))):
            checksum = zlib.crc32(part, checksum)
            left -= len(part)
    return seal != SEAL + size.to_bytes(8, "little") + checksum.to_bytes(8, "little")


def format_of(path):
    """Returns the format that a file says it has, RUN or STUDY; None if it is no HDF5 file or says nothing. Reads one attribute."""
    if not os.path.isfile(path):  # a named pipe would wait for somebody who writes
        return None
    try:
        with h5py.File(os.fspath(path), "r") as file:
            return text(file.attrs["format"])
    except (LookupError, OSError, RuntimeError, TypeError, ValueError):
        return None


def text(value):
    """Returns an HDF5 string as str."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def reading(method):
    """Makes a ResultsError that names the file of whatever h5py and numpy raise for damaged data."""

    @functools.wraps(method)
    def guarded(self, *arguments, **named):
        try:
            return method(self, *arguments, **named)
        except (
            AttributeError,
            LookupError,
            MemoryError,
            OSError,
            OverflowError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            what = f" in {arguments[0]}" if arguments and isinstance(arguments[0], str) else ""
            raise ResultsError(
                f"{self.path}: found damaged or missing data{what} ({error}); expected the file as Orrery wrote it. "
                "Take another copy of the file, or run again."
            ) from None

    return guarded


class Source:
    """An open results file. It is read only, and stays open until `close`."""

    def __init__(self, path, kind=RUN):
        """Opens the file `path`, which has to be of the format `kind`.

        Raises ResultsError if it is missing, is of another format or has another version of it.
        """
        self.path, self._kind = os.fspath(path), kind
        what, command = KINDS[kind]
        if not os.path.exists(self.path):
            raise ResultsError(f"{self.path}: found no such file; expected {what}. Run: {command} {self.path}")
        if os.path.isdir(self.path):
            raise ResultsError(
                f"{self.path}: found a folder; expected one results file. Use orrery.open_many to open all files in a folder."
            )
        if not os.path.isfile(self.path):
            raise ResultsError(
                f"{self.path}: this is not a regular file; expected {what}. Give the HDF5 file that {command} wrote."
            )
        if has_broken_seal(self.path):
            raise ResultsError(
                f"{self.path}: found damaged data (the checksum is not that of the contents); expected the file as Orrery "
                "wrote it. Take another copy of the file, or run again."
            )
        try:
            self._file = h5py.File(self.path, "r")
        except OSError as error:
            raise ResultsError(
                f"{self.path}: found a file that HDF5 cannot open ({error}); expected {what}. "
                f"Give the HDF5 file that {command} wrote."
            ) from None
        try:
            self.attributes = self._checked_attributes()
        except ResultsError:
            self.close()
            raise

    @reading
    def _checked_attributes(self):
        attributes = {name: self._plain(value) for name, value in self._file.attrs.items()}
        found, (what, command) = attributes.get("format"), KINDS[self._kind]
        if found in KINDS and found != self._kind:
            raise ResultsError(f"{self.path}: found {KINDS[found][0]}; expected {what}. {READERS[found]}")
        if found != self._kind:
            raise ResultsError(
                f"{self.path}: found an HDF5 file that Orrery did not write (its attribute 'format' is not '{self._kind}'); "
                f"expected {what}. Give the HDF5 file that {command} wrote."
            )
        if attributes.get("format_version") != VERSION:
            raise ResultsError(
                f"{self.path}: found version {attributes.get('format_version')} of the format; this package reads version "
                f"{VERSION}. Use the Python package that belongs to the Orrery that wrote the file "
                f"({attributes.get('orrery_version', 'unknown version')})."
            )
        return attributes

    @staticmethod
    def _plain(value):
        """An attribute as a Python number, text, or list of texts."""
        if isinstance(value, np.ndarray):
            return [text(one) if isinstance(one, (bytes, str)) else one.item() for one in value]
        return value.item() if isinstance(value, np.generic) else text(value)

    def close(self):
        """Closes the file. Tables that were read stay valid."""
        self._file.close()

    @property
    def is_open(self):
        return bool(self._file)

    def _open(self):
        if not self._file:
            raise ResultsError(
                f"{self.path}: the file was closed, by close() or at the end of a with statement. Open it again with orrery.open."
            )
        return self._file

    @reading
    def has(self, name):
        """Tells whether the file has the group or dataset `name`, such as "network/links"."""
        return name in self._open()

    @reading
    def columns(self, group):
        """Returns the names of the datasets of a group that have one dimension, in the order of the file, without dimension scales."""
        return [
            name
            for name, node in self._open()[group].items()
            if isinstance(node, h5py.Dataset) and node.ndim == 1 and not h5py.h5ds.is_scale(node.id)
        ]

    @reading
    def is_number(self, name):
        """Tells whether a dataset holds numbers, and not texts or indices that stand for words."""
        node = self._open()[name]
        return node.dtype.kind in "iuf" and "values" not in node.attrs

    @reading
    def scalars(self, group):
        """Returns the names of the datasets of a group that hold a single value."""
        return [name for name, node in self._open()[group].items() if isinstance(node, h5py.Dataset) and node.ndim == 0]

    @reading
    def scale(self, name):
        """Returns the name of the dimension scale of a dataset without its group, such as "npu"; "row" if it has none."""
        scales = self._open()[name].dims[0]
        return scales[0].name.rpartition("/")[2] if len(scales) else "row"

    @reading
    def rows(self, name):
        """Returns the number of rows of a dataset. Reads none of them."""
        return len(self._open()[name])

    @reading
    def label(self, name):
        """Returns the units, long_name and description of a dataset, as the file has them."""
        attributes = self._open()[name].attrs
        return {key: text(attributes[key]) for key in LABELS if key in attributes}

    @reading
    def values(self, name):
        """Returns the words that a dataset of indices stands for (its attribute `values`), or None if it is no such dataset."""
        words = self._open()[name].attrs.get("values")
        return None if words is None else [text(word) for word in words]

    @reading
    def attribute(self, name, key):
        """Returns the attribute `key` of a group or dataset, or None."""
        value = self._open()[name].attrs.get(key)
        return None if value is None else self._plain(value)

    @reading
    def attributes_of(self, name):
        """Returns {key: value} of the attributes of a group or dataset."""
        return {key: self._plain(value) for key, value in self._open()[name].attrs.items()}

    @reading
    def read(self, name, first=0, last=None):
        """Returns the rows first to last - 1 of a dataset as a numpy array; of a single value, the value. Texts are str."""
        dataset = self._open()[name]
        if dataset.ndim == 0:
            value = dataset[()]
            return text(value) if isinstance(value, (bytes, str)) else value
        if h5py.check_string_dtype(dataset.dtype) is not None:
            return dataset.asstr()[first:last]
        return dataset[first:last]

    @reading
    def texts(self, group):
        """Returns {name: text} of the datasets of a group that are texts; {} if the file has no such group."""
        return {name: self.read(f"{group}/{name}") for name in self.scalars(group)} if self.has(group) else {}


class OpenFile:
    """An object with the contents of one file, `_source`, which stays open until it is closed or its `with` block ends."""

    title = None  # what people see in place of the path of a temporary file

    def __init__(self, path, kind=RUN):
        """Opens the file as Source does."""
        self._source = Source(path, kind)
        self.path = self._source.path
        self.attributes = self._source.attributes

    @classmethod
    def of_source(cls, source):
        """Returns an object with the contents of an open file, which it shares with others."""
        made = cls.__new__(cls)
        made._source, made.path, made.attributes = source, source.path, source.attributes
        return made

    @property
    def shown_name(self):
        """What people see: the title, or the path."""
        return self.title or self.path

    def close(self):
        """Closes the file. Tables that were read stay valid."""
        self._source.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
