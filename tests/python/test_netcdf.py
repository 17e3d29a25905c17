#!/usr/bin/python3
"""Five programs open results.h5: h5py, netCDF4-python, xarray (with its engines netcdf4 and h5netcdf) and pandas.

System: five small runs that together have every group that a results file can have. Expectation: each program opens every group
of every file, and finds the values that h5py finds. A program that is not installed is skipped.
"""
import importlib
import pathlib
import shutil
import tempfile
import unittest
import warnings

import examples  # noqa: F401, sets the path
import h5py
import harness
import numpy as np

PACKAGES = {
    "netCDF4": "python3-netcdf4",
    "xarray": "python3-xarray",
    "h5netcdf": "python3-h5netcdf",
    "pandas": "python3-pandas",
}


def groups_of(path):
    """{name of the group: {name of the dataset: its values}}"""
    found = {"/": {}}

    def visit(name, node):
        if isinstance(node, h5py.Group):
            found["/" + name] = {}
        else:
            group, _, own = ("/" + name).rpartition("/")
            text = h5py.check_string_dtype(node.dtype) is not None
            found[group or "/"][own] = node.asstr()[()] if text else node[()]

    with h5py.File(path) as results:
        results.visititems(visit)
    return found


class Readers(unittest.TestCase):
    longMessage = True

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.files = {name: (path, groups_of(path)) for name, path in examples.all_of(cls.folder).items()}

    def package(self, name):
        try:
            return importlib.import_module(name)
        except ImportError:
            self.skipTest(f"the Python package {name} is not installed: apt-get install {PACKAGES[name]}")

    def check_values(self, expected, found, place):
        """The same names, and the same values of each."""
        self.assertEqual(sorted(expected), sorted(found), place)
        for name, values in expected.items():
            self.assertTrue(
                np.array_equal(
                    np.asarray(values), np.asarray(found[name]), equal_nan=np.asarray(values).dtype.kind == "f"
                ),
                f"{place}/{name}",
            )

    def test_the_files_have_every_group(self):
        """Otherwise the other tests would not look at a group that users have."""
        known = {group for _, groups in self.files.values() for group in groups}
        for group in (
            "/npus",
            "/groups",
            "/collectives",
            "/network",
            "/network/links",
            "/network/switches",
            "/memory",
            "/metrics",
            "/timeline",
            "/metrics/collectives",
            "/local_memory",
            "/repetitions",
            "/jobs",
            "/kernel",
            "/kernel/inputs",
            "/config/inputs",
        ):
            self.assertIn(group, known)
        self.assertEqual(len(self.files["without_records"][1]["/collectives"]["kind"]), 0)

    def test_scales_are_in_the_group_of_their_datasets_or_above(self):
        """netCDF-4 looks for the dimension of a variable in the group of the variable and in those above it, nowhere else."""
        for name, (path, _) in self.files.items():
            with h5py.File(path) as results:

                def visit(place, node):
                    if isinstance(node, h5py.Dataset) and node.ndim == 1 and not h5py.h5ds.is_scale(node.id):
                        self.assertEqual(len(node.dims[0]), 1, f"{name}: /{place} has one scale")
                        above = node.dims[0][0].name.rpartition("/")[0]
                        self.assertTrue(
                            ("/" + place).startswith(above + "/"),
                            f"{name}: /{place} has the scale {node.dims[0][0].name}",
                        )

                results.visititems(visit)

    def test_netcdf4_opens_every_group(self):
        """netCDF4-python opens every group of every example, and reads the names and values that h5py reads."""
        netcdf = self.package("netCDF4")
        for name, (path, groups) in self.files.items():
            with netcdf.Dataset(path) as results:
                for group, expected in groups.items():
                    opened = results if group == "/" else results[group]
                    self.check_values(
                        expected, {key: variable[...] for key, variable in opened.variables.items()}, f"{name}: {group}"
                    )

    def check_xarray(self, engine):
        xarray = self.package("xarray")
        for name, (path, groups) in self.files.items():
            for group, expected in groups.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    with xarray.open_dataset(path, engine=engine, group=group) as opened:
                        self.check_values(
                            expected,
                            {key: opened[key].values for key in opened.variables},
                            f"{name}: {group} by {engine}",
                        )

    def test_xarray_opens_every_group_with_netcdf4(self):
        """xarray opens every group by its engine netcdf4 without a warning, and reads what h5py reads."""
        self.package("netCDF4")
        self.check_xarray("netcdf4")

    def test_xarray_opens_every_group_with_h5netcdf(self):
        """xarray opens every group by its engine h5netcdf without a warning, and reads what h5py reads."""
        self.package("h5netcdf")
        self.check_xarray("h5netcdf")

    def test_pandas_takes_every_group(self):
        """The columns of a group that have the same dimension scale make one table."""
        pandas = self.package("pandas")
        for name, (path, groups) in self.files.items():
            with h5py.File(path) as results:
                for group, expected in groups.items():
                    by_scale = {}
                    for key, values in expected.items():
                        dataset = results[group][key]
                        if dataset.ndim == 1 and not h5py.h5ds.is_scale(dataset.id):
                            by_scale.setdefault(dataset.dims[0][0].name, {})[key] = values
                    for scale, columns in by_scale.items():
                        table = pandas.DataFrame(columns, index=pandas.Index(results[scale][()], name=scale))
                        self.assertEqual(list(table.index), list(range(len(results[scale]))), f"{name}: {group}")
                        self.check_values(columns, {key: table[key].to_numpy() for key in table}, f"{name}: {group}")


if __name__ == "__main__":
    harness.main()
