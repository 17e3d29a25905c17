"""Where each NPU of a generated workload is: in which stage of the pipeline, and at which position of the other kinds of parallelism."""
from .packages import load

np = load("numpy")

AXES = ("tp", "cp", "ep", "dp", "pp")


def spread(num_npus, most):
    """Returns up to `most` of the NPUs 0 to num_npus - 1, evenly spread, in order."""
    return sorted({round(npu) for npu in np.linspace(0, num_npus - 1, min(num_npus, most))})


class Places:
    """The positions of the NPUs of one run. `known` is False for workloads that were not generated, and for runs of several jobs."""

    def __init__(self, settings, num_npus):
        """settings: of the resolved configuration. num_npus: of the run."""
        order = settings.get("workload.parallel.placement") or ()
        try:
            self._axes = [(str(axis), int(settings.get(f"workload.parallel.{axis}", 1))) for axis in order]
        except (TypeError, ValueError):
            self._axes = []
        product = 1
        for _, size in self._axes:
            product *= size
        self.known = bool(self._axes) and product > 0 and num_npus % product == 0
        self._product = product

    def of(self, npu):
        """Returns {axis: position} of an NPU for the axes with more than one position; {} if it is not known."""
        found = {}
        if not self.known:
            return found
        rest = npu
        for axis, size in self._axes:
            if size > 1:
                found[axis] = rest % size
            rest //= size
        if rest and self._product:
            found["replica"] = npu // self._product
        return found

    @property
    def stages(self):
        """The number of stages of the pipeline; 1 if that is not known."""
        return dict(self._axes).get("pp", 1) if self.known else 1

    def stage(self, npu):
        """Returns the stage of an NPU, 0 without a pipeline."""
        return self.of(npu).get("pp", 0)

    def label(self, npu):
        """Returns a text such as "stage 1 · dp 2 · tp 3"; "" if there is nothing to say."""
        place = self.of(npu)
        order = ["pp", "replica", "dp", "ep", "cp", "tp"]
        return " · ".join(f"{'stage' if axis == 'pp' else axis} {place[axis]}" for axis in order if axis in place)
