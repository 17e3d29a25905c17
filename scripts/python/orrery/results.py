"""One results file as pandas tables."""
import functools

from . import breakdown, configuration, summary, tables
from .packages import load
from .rows import LocalMemory, Timeline
from .source import OpenFile

np, pd = load("numpy"), load("pandas")

# Of each table a dataset with one value for each row.
TABLES = {
    "npus": "npus/finish_time",
    "groups": "groups/names",
    "collectives": "collectives/kind",
    "collective_totals": "metrics/collectives/kind",
    "dimensions": "network/size",
    "links": "network/links/link",
    "flows": "network/flows/source",
    "flow_links": "network/flow_links/flow",
    "flow_classes": "network/flow_classes/kind",
    "queues": "network/queues/link",
    "pauses": "network/pauses/link",
    "switches": "network/switches/name",
    "memory_stages": "memory/name",
    "jobs": "jobs/npus",
    "gpu_kernels": "gpu/kernels/npu",
    "gpu_stalls": "gpu/stalls/launch",
    "gpu_requests": "gpu/requests/npu",
    "repetitions": "repetitions/seed",
    "timeline": "timeline/npu",
    "local_memory": "local_memory/time",
    "kernel": "kernel/events",
}
STATISTICS = (
    "mean",
    "standard_deviation",
    "minimum",
    "maximum",
    "confidence",
    "confidence_low",
    "confidence_high",
)  # of repetitions
WORLD = "world"  # how tables name the group of all NPUs, whose name in the file is empty


class Results(OpenFile):
    """The results of one run as the file has them. Each table is read when it is first used, and kept. orrery.open returns TimedResults.

    Times are whole picoseconds of simulated time and sizes are bytes, unless attrs["units"] of a table says otherwise. Tables that a
    run does not have (such as `links` of a run without the congestion-aware network) are None.
    """

    times = "ps"  # unit of all times

    def __init__(self, path):
        """Opens the file. Raises ResultsError if it cannot be read; orrery.open does the same."""
        super().__init__(path)

    # ---- the run as a whole ----

    @property
    def picoseconds(self):
        """These results with times as the file has them: whole picoseconds."""
        return self

    @property
    def status(self):
        """ "complete", "stuck" or "interrupted"."""
        return self.attributes["status"]

    @property
    def simulated_time(self):
        """The latest finish time of an NPU, in picoseconds."""
        return self.attributes["simulated_time"]

    @functools.cached_property
    def num_npus(self):
        return self._source.rows("npus/finish_time")

    @functools.cached_property
    def resolved(self):
        """The whole configuration with every default, as YAML text. orrery run takes it as a CONFIG."""
        return self._source.read("config/resolved")

    @functools.cached_property
    def configuration(self):
        """The same as dictionaries and lists. Needs the package yaml."""
        return configuration.parsed(self.resolved)

    @functools.cached_property
    def settings(self):
        """The same as {key: value}, with keys as --set takes them: settings["system.network.dimensions.0.bandwidth"]."""
        return configuration.flattened(self.configuration)

    @functools.cached_property
    def room(self):
        """How many bytes of tensors an NPU has room for; None if the configuration gives the local memory no size."""
        return configuration.room(self.configuration)

    @functools.cached_property
    def inputs(self):
        """{name: text} of the text inputs of the run."""
        return self._source.texts("config/inputs")

    @functools.cached_property
    def sizes(self):
        """{name of a table: its number of rows} of the tables that the run has. Reads none of them."""
        return {name: self._source.rows(column) for name, column in TABLES.items() if self._source.has(column)}

    # ---- tables ----

    def table(self, group):
        """Returns any group of the file as a pandas table, as it stands in the file: table("npus"), table("network/links")."""
        return tables.of_group(self._source, group)

    @functools.cached_property
    def npus(self):
        """One row per NPU: where its time went, what it sent, what its memory held."""
        return tables.of_group(self._source, "npus")

    @functools.cached_property
    def breakdown(self):
        """One row per NPU and one column per cause: where its time went. Each row adds up to simulated_time."""
        return breakdown.of(self._source, self.npus, self.simulated_time)

    @functools.cached_property
    def critical_path(self):
        """One row per segment of the chain of nodes that determined the end of the run; None if the file has none."""
        return breakdown.critical_path(self._source)

    @functools.cached_property
    def hints(self):
        """Sentences that say what may be worth a try; [] if there are none."""
        return breakdown.hints(self._source)

    @functools.cached_property
    def metrics(self):
        """One row per figure of a step, with the columns value, units and description. Empty if the run did not complete.

        metrics.value["step_time"] is a number in the unit metrics.units["step_time"].
        """
        names = self._source.scalars("metrics") if self._source.has("metrics") else []
        labels = [self._source.label(f"metrics/{name}") for name in names]
        values = [self._source.read(f"metrics/{name}").item() for name in names]
        table = pd.DataFrame(
            {
                "value": pd.Series(values, index=names, dtype=object),
                "units": [label.get("units", "") for label in labels],
                "description": [label.get("description", "") for label in labels],
            },
            index=pd.Index(names, name="metric"),
        )
        return tables.described(table, "figures of a step of the whole run", {}, {})

    @functools.cached_property
    def _group_offsets(self):
        return self._source.read("groups/offsets").astype(np.int64)

    @functools.cached_property
    def _group_members(self):
        return self._source.read("groups/members")

    @functools.cached_property
    def _group_names(self):
        return [name or WORLD for name in self._source.read("groups/names")]

    @functools.cached_property
    def groups(self):
        """One row per process group: its name, how many members it has and, as a short text, which NPUs these are."""
        offsets, members = self._group_offsets, self._group_members
        texts = [tables.ranges(members[first:last]) for first, last in zip(offsets, offsets[1:])]
        table = pd.DataFrame(
            {"name": self._group_names, "size": np.diff(offsets), "npus": texts},
            index=pd.RangeIndex(len(texts), name="group"),
        )
        return tables.described(
            table,
            "process groups",
            {"name": "1", "size": "1", "npus": "1"},
            {
                "name": f"name of the group; {WORLD}: all NPUs",
                "size": "number of members",
                "npus": "the members, shortened; Results.members has all",
            },
        )

    @functools.cached_property
    def members(self):
        """One row per member of a group: group, position in the group and NPU. collectives.merge(members, on="group") joins them."""
        sizes = np.diff(self._group_offsets)
        table = pd.DataFrame(
            {
                "group": np.repeat(np.arange(len(sizes)), sizes),
                "position": np.arange(sizes.sum()) - np.repeat(self._group_offsets[:-1], sizes),
                "npu": self._group_members,
            }
        )
        return tables.described(
            table,
            "members of process groups",
            {"group": "1", "position": "1", "npu": "1"},
            {"group": "row of Results.groups", "position": "position in the group", "npu": "NPU"},
        )

    @functools.cached_property
    def collectives(self):
        """One row per recorded collective, with the name and the NPUs of its group."""
        table = tables.of_group(self._source, "collectives")
        group = table["group"].to_numpy()
        tables.add(
            table, "group_name", tables.Vocabulary(self._group_names).of(group), "1", "name of the group", after="group"
        )
        tables.add(
            table,
            "npus",
            self.groups["npus"].to_numpy(dtype=object)[group],
            "1",
            "members of the group, shortened",
            after="members",
        )
        tables.add(
            table,
            "arrival_spread",
            table["last_arrival"] - table["first_arrival"],
            "ps",
            "last_arrival - first_arrival",
            after="finish",
        )
        tables.add(
            table, "duration", table["finish"] - table["last_arrival"], "ps", "finish - last_arrival", after="finish"
        )
        return table

    @functools.cached_property
    def collective_totals(self):
        """One row per kind and number of members of all collectives of the run, recorded or not; None if there are none."""
        return self._optional("metrics/collectives")

    @functools.cached_property
    def dimensions(self):
        """One row per dimension of the topology, with what the configuration says of it (shape, bandwidth, latency)."""
        table = tables.of_group(self._source, "network")
        if self._source.has("metrics/bytes_per_step"):
            tables.add(
                table,
                "bytes_per_step",
                self._source.read("metrics/bytes_per_step"),
                **_label(self._source, "metrics/bytes_per_step"),
            )
        told = self.configuration.get("system", {}).get("network", {}).get("dimensions", [])
        for key in ("latency", "bandwidth", "shape"):
            if told and all(key in one for one in told):
                table.insert(0, key, [one[key] for one in told])
                table.attrs["descriptions"][key] = f"system.network.dimensions.{key} of the configuration"
        return table

    @functools.cached_property
    def switches(self):
        """One row per switch of the congestion-aware network; None for the congestion-unaware one."""
        return self._optional("network/switches")

    @functools.cached_property
    def links(self):
        """One row per directed link that carried data, with its ends; None without the congestion-aware network."""
        table = self._optional("network/links")
        if table is None:
            return None
        for end in ("to", "from"):
            tables.add(
                table,
                f"{end}_name",
                self._end_names(table[end].to_numpy()),
                "1",
                "the NPU or switch at this end",
                after="to",
            )
        tables.add(
            table,
            "utilisation",
            table["busy_time"] / max(self.simulated_time, 1),
            "1",
            "busy_time over the simulated time",
        )
        tables.add(
            table,
            "mean_wait",
            table["queueing_time"] / table["messages"].clip(lower=1),
            "ps",
            "queueing_time over messages",
        )
        return table

    def _end_names(self, ends):
        """ "NPU 3" or, for -1 - s, the name of switch s."""
        names = np.empty(len(ends), dtype=object)
        is_switch = ends < 0
        names[~is_switch] = [f"NPU {npu}" for npu in ends[~is_switch]]
        names[is_switch] = self.switches["name"].to_numpy(dtype=object)[-1 - ends[is_switch]]
        return names

    @functools.cached_property
    def flows(self):
        """One row per message of the packet network; None without --record-flows."""
        return self._optional("network/flows")

    @functools.cached_property
    def flow_links(self):
        """One row per message and link that it passed; None without --record-flows."""
        return self._optional("network/flow_links")

    @functools.cached_property
    def flow_classes(self):
        """One row per class of messages: how long they took, and how many times as long as in an empty network. None without them."""
        table = self._optional("network/flow_classes")
        if table is None:
            return None
        names = [
            "" if kind != "group" else self._group_names[group] if group >= 0 else "sends and receives"
            for kind, group in zip(table["kind"], table["group"])
        ]
        tables.add(table, "name", names, "1", "the group of a class of kind group", after="group")
        return table

    @functools.cached_property
    def queues(self):
        """One row per link and interval of time in which something waited there, with the name of the link; None without --queue-bins.
        attrs["interval"] is the length of an interval in ps."""
        table = self._optional("network/queues")
        if table is not None:
            tables.add(table, "name", self._link_names(table["link"]), "1", "the two ends of the link", after="link")
            table.attrs["interval"] = int(self._source.attribute("network/queues", "interval"))
        return table

    @functools.cached_property
    def pauses(self):
        """One row per link that pauses stopped, with its name; the end that it leads to stopped it. None without --queue-bins."""
        table = self._optional("network/pauses")
        if table is not None:
            tables.add(table, "name", self._link_names(table["link"]), "1", "the two ends of the link", after="link")
        return table

    def _link_names(self, numbers):
        """ "NPU 3 to switch 0" for each number of a link."""
        names = {
            link: f"{start} to {end}"
            for link, start, end in zip(self.links["link"], self.links["from_name"], self.links["to_name"])
        }
        return [names[link] for link in numbers]

    @functools.cached_property
    def jobs(self):
        """One row per job, with its name; None of a run without `jobs`. The column `job` of `npus` says whose an NPU is: -1 is nobody's.
        With --jobs-alone there are the columns alone_time and slowdown."""
        return self._optional("jobs")

    @functools.cached_property
    def repetitions(self):
        """One row per repetition: seed and simulated time; None of a run without --repetitions. attrs["statistics"] has mean, standard
        deviation, least and largest time, and the confidence interval of the mean, in ps."""
        table = self._optional("repetitions")
        if table is not None:
            table.attrs["statistics"] = {name: self._source.attribute("repetitions", name) for name in STATISTICS}
        return table

    @functools.cached_property
    def memory_stages(self):
        """One row per stage of a hierarchical memory pool; None without one."""
        return self._optional("memory")

    @functools.cached_property
    def gpu_kernels(self):
        """One row per kernel with which thread blocks carried out the part of an NPU in a collective; None if there are none."""
        return self._optional("gpu/kernels")

    @functools.cached_property
    def gpu_stalls(self):
        """The time of the thread blocks of each kernel by reason, in the rows of gpu_kernels; None if there are none."""
        return self._optional("gpu/stalls")

    @functools.cached_property
    def gpu_requests(self):
        """What thread blocks sent, one row per NPU and peer; None if there are none."""
        return self._optional("gpu/requests")

    @functools.cached_property
    def kernel(self):
        """One row per MPI rank: how the simulation itself went, in wall-clock time."""
        table = tables.of_group(self._source, "kernel")
        if "host" not in table:  # a file of version 0.1.0
            tables.add(
                table, "host", self.attributes.get("hosts", [""] * len(table)), "", "computer on which the rank ran"
            )
        return table

    @functools.cached_property
    def timeline(self):
        """The nodes that ran, to be read for some NPUs or for a span of time; None if the run was without --timeline."""
        return Timeline(self._source, self._group_names) if self._source.has("timeline") else None

    @functools.cached_property
    def local_memory(self):
        """What the tensors in each NPU's local memory took over time; None if that is not known."""
        return LocalMemory(self._source) if self._source.has("local_memory") else None

    def _optional(self, group):
        return tables.of_group(self._source, group) if self._source.has(group) else None

    # ---- what people see ----

    def __str__(self):
        return summary.as_text(self)

    def __repr__(self):
        return f"<orrery.Results of {self.shown_name}: {self.num_npus:,} NPUs, {self.status}>"

    def _repr_html_(self):
        return summary.as_html(self)


def _label(source, name):
    label = source.label(name)
    return {"units": label.get("units", ""), "description": label.get("description", "")}
