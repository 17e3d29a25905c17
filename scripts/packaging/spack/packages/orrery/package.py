"""Orrery for Spack. From the root of a clone, which is the source:

    spack repo add scripts/packaging/spack
    spack dev-build orrery@0.2.0
"""
from spack.package import *


class Orrery(CMakePackage):
    """Orrery predicts how long a training step of a machine-learning model takes on a cluster, and where each accelerator's time
    goes. It runs alone or on many ranks of MPI."""

    license("MIT")
    version("0.2.0")

    variant("python", default=True, description="Install what the Python package and the plot scripts need")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("cxxopts", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("mpi")
    depends_on("hdf5")
    depends_on("metis@5:")
    depends_on("protobuf@3.21:")
    depends_on("zlib-api")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10:+fmt_external")
    depends_on("simdjson")
    depends_on("tinyxml2")
    depends_on("yaml-cpp@0.7:")
    with when("+python"):
        extends("python")
        for package in ("h5py", "numpy", "pandas", "pyyaml", "matplotlib"):
            depends_on(f"py-{package}", type="run")

    generator("ninja")

    def cmake_args(self):
        args = [self.define("ORRERY_TESTS", False), self.define("ORRERY_BENCH", False)]
        if self.spec.satisfies("+python"):
            args.append(self.define("ORRERY_PYTHON_DIR", python_purelib))
        return args
