"""What a page and a terminal say of one serving run. Times are in seconds."""
import pathlib

from ...packages import load
from ...source import Source

np = load("numpy")

PS = 1e-12
TIMES = ("ttft", "tpot", "itl", "latency")
QUANTILES = ("mean", "p50", "p90", "p95", "p99")
BINS = 80  # of what is shown over time


def is_serving(path):
    """Says whether a results file is of a serving run."""
    try:
        source = Source(path)
    except Exception:  # the reader of runs says what is wrong with the file
        return False
    try:
        return source.attributes.get("kind") == "serving"
    finally:
        source.close()


class Run:
    """A serving run as arrays. Requests are in the order of their ids."""

    def __init__(self, path):
        source = Source(path)
        try:
            self.path, self.name = str(path), pathlib.Path(path).stem
            self.version = source.attributes.get("orrery_version", "?")
            self.metrics = source.attributes_of("serving")
            self.front_end = self.metrics.get("front_end", 0) * PS
            self.slo = {
                key: self.metrics[f"slo_{key}"] * PS for key in ("ttft", "tpot") if f"slo_{key}" in self.metrics
            }
            self.requests = self._read(
                source,
                "requests",
                ("arrival", "prompt", "output", "instance", "decode_instance", "scheduled", "first", "last"),
            )
            self.instances = self._read(source, "instances", ("blocks", "steps", "busy_time", "preemptions"))
            self.steps = self._read(source, "steps", ("instance", "end", "used_blocks"))
        finally:
            source.close()

    @staticmethod
    def _read(source, group, columns):
        """Returns {column: array}, with times in seconds; None if the file has no such table."""
        if not source.has(group):
            return None
        times = {"arrival", "scheduled", "first", "last", "busy_time", "end"}
        return {
            name: source.read(f"{group}/{name}") * (PS if name in times else 1)
            for name in columns
            if source.has(f"{group}/{name}")
        }

    @property
    def end(self):
        return float(self.requests["last"].max()) if self.requests and len(self.requests["last"]) else 0.0

    @property
    def rate(self):
        """Requests that arrive in a second."""
        arrival = self.requests["arrival"]
        span = float(arrival.max() - arrival.min())
        return (len(arrival) - 1) / span if span > 0 else float("nan")

    def times(self, name):
        """Returns the times of one kind of all requests that have one: ttft, tpot or latency."""
        r = self.requests
        if name == "ttft":
            return r["first"] - r["arrival"] + self.front_end
        if name == "latency":
            return r["last"] - r["arrival"] + self.front_end
        several = r["output"] > 1
        return (r["last"] - r["first"])[several] / (r["output"][several] - 1)

    def arrivals(self):
        """Returns (middles of intervals, requests that arrive in a second)."""
        counts, edges = np.histogram(self.requests["arrival"], bins=BINS, range=(0, max(self.end, 1e-12)))
        return (edges[1:] + edges[:-1]) / 2, counts / (edges[1] - edges[0])

    def load(self):
        """Returns (times, requests that wait for their first token, requests that generate) at points in time."""
        at = np.linspace(0, self.end, 2 * BINS)
        began, first, left = (np.sort(self.requests[name]) for name in ("arrival", "first", "last"))
        count = lambda times: np.searchsorted(times, at, side="right")
        return at, count(began) - count(first), count(first) - count(left)

    def kv_use(self):
        """Returns [(instance, times, share of its blocks)] from the steps; None if steps were not recorded."""
        if not self.steps:
            return None
        used = []
        for number, blocks in enumerate(self.instances["blocks"]):
            mine = self.steps["instance"] == number
            times, values = self.steps["end"][mine], self.steps["used_blocks"][mine] / max(1, blocks)
            if len(times) > 4 * BINS:  # the mean of each interval
                edges = np.linspace(0, self.end, 2 * BINS + 1)
                where = np.clip(np.searchsorted(edges, times) - 1, 0, 2 * BINS - 1)
                counts = np.bincount(where, minlength=2 * BINS)
                kept = counts > 0
                values = np.bincount(where, values, minlength=2 * BINS)[kept] / counts[kept]
                times = ((edges[1:] + edges[:-1]) / 2)[kept]
            used.append((number, times, values))
        return used

    def window(self, most=48):
        """Returns the rows of the requests that arrive next to each other when most requests are in the system."""
        at, waiting, running = self.load()
        order = np.argsort(self.requests["arrival"], kind="stable")
        busiest = at[int(np.argmax(waiting + running))]
        last = int(np.searchsorted(self.requests["arrival"][order], busiest, side="right"))
        first = max(0, min(last - most // 2, len(order) - most))
        return order[first : first + most]
