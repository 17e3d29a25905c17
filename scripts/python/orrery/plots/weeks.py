"""Pictures of a campaign (docs/campaign.md) and of a cluster over time (docs/cluster-time.md).

Each function takes an open Source and returns [(name, heading, figure)].
"""
from . import style
from ..packages import load

np = load("numpy")

STATES = ("useful", "lost", "stall", "detect", "wait", "select", "restart", "slow", "pause")
COLOURS = dict(
    zip(
        STATES,
        (
            style.GREEN,
            style.VERMILION,
            style.GREY,
            style.ORANGE,
            style.PURPLE,
            style.BLUE,
            style.SKY,
            "#8C6BB1",
            style.BLACK,
        ),
    )
)
NS, HOUR, DAY = 1e-9, 3600.0, 86400.0
WEEK = 7 * DAY
MOST_CAUSES = 14
MOST_BLOCKS = 6000  # of jobs in the picture of leaves
MOST_POINTS = 20000


def table(source, group):
    """Returns {column: values} of a table."""
    return {name: source.read(f"{group}/{name}") for name in source.columns(group)}


def panel(height, title, subtitle=""):
    with style.look():
        figure, _, body = style.picture(height, title, subtitle)
        return figure, body.subplots()


def shares(rows):
    time, left = rows["time"].sum(), 0.0
    figure, axes = panel(1.6, "Where the wall time goes", f"mean of {len(rows['time']):,} replications")
    for state in STATES:
        share = rows[state].sum() / time
        if share > 0:
            axes.barh(0, share, left=left, color=COLOURS[state], label=f"{state} {100 * share:.2f} %")
        left += share
    axes.set(yticks=[], xlim=(0, 1), xlabel="share of the wall time")
    axes.legend(ncol=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return "shares", "Wall time", figure


def causes(lost, npus):
    cost = sum(lost[state] for state in STATES[1:]) * npus / HOUR
    order = [i for i in np.argsort(cost)[-MOST_CAUSES:] if cost[i] > 0]
    figure, axes = panel(0.8 + 0.28 * max(1, len(order)), "What each kind of failure costs", "mean of the replications")
    left = np.zeros(len(order))
    for state in STATES[1:]:
        width = lost[state][order] * npus / HOUR
        if width.sum() > 0:
            axes.barh([str(lost["process"][i]) for i in order], width, left=left, color=COLOURS[state], label=state)
        left += width
    axes.set(xlabel="NPU-hours of the job" if npus > 1 else "hours of the job")
    axes.legend(loc="lower right")
    return "causes", "Costs by cause", figure


def timeline(periods):
    weeks = max(1, int(np.ceil((periods["end"].max() if len(periods["end"]) else 0) * NS / WEEK)))
    figure, axes = panel(
        0.8 + 0.3 * min(weeks, 40), "Replication 0, week by week", "checkpoints are counted as running time"
    )
    bars = {state: [] for state in STATES}
    for begin, end, state in zip(periods["begin"] * NS, periods["end"] * NS, periods["state"]):
        while begin < end:
            week = int(begin // WEEK)
            until = min(end, (week + 1) * WEEK)
            bars[str(state)].append((week, (begin - week * WEEK) / DAY, (until - begin) / DAY))
            begin = until
    for state, found in bars.items():
        if found:
            week, left, width = zip(*found)
            axes.barh(week, width, left=left, color=COLOURS[state], height=0.8, label=state, linewidth=0)
    axes.invert_yaxis()
    axes.set(xlabel="day of the week", ylabel="week", xlim=(0, 7))
    axes.legend(ncol=9, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return "timeline", "Timeline", figure


def search(tried, forms, what):
    rows = [i for i, varied in enumerate(tried["varied"]) if str(varied) == what]
    x, name = tried[what][rows], "ettr" if what == "interval" else "goodput"
    y, width = tried[name][rows], tried[f"{name}_half_width"][rows]
    figure, axes = panel(3.2, f"The best {what}", "with 95 % intervals; all settings have common draws")
    axes.fill_between(x, y - width, y + width, color=style.BLUE, alpha=0.2, linewidth=0)
    axes.plot(x, y, "o-", markersize=3, color=style.BLUE, label="simulated")
    if what == "interval":
        axes.plot(x, tried["closed_form"][rows], "--", color=style.VERMILION, label="closed form, crashes alone")
        if "young" in forms:
            axes.axvline(forms["young"], color=style.GREY, linewidth=0.8, label="Young's interval")
        axes.set_xscale("log")
    axes.set(xlabel="interval in s" if what == "interval" else "standbys", ylabel=name)
    if what == "standby":
        axes.plot(x, tried["ettr"][rows], "s-", markersize=3, color=style.GREEN, label="ettr")
        axes.lines[0].set_label("goodput")
        axes.set_ylabel("ettr and goodput")
        cost = axes.twinx()
        cost.plot(x, 1 / np.maximum(y, 1e-9), "^--", markersize=3, color=style.VERMILION)
        cost.set_ylabel("host-hours paid for a useful one", color=style.VERMILION)
    axes.legend()
    return what, f"Best {what}", figure


def campaign(source):
    forms = table(source, "campaign/closed_forms")
    named = dict(zip(map(str, forms["name"]), forms["value"]))
    found = [
        shares(table(source, "campaign/replications")),
        causes(table(source, "campaign/lost"), 1),
        timeline(table(source, "campaign/timeline")),
    ]
    if source.has("campaign/optimum"):
        tried = table(source, "campaign/optimum")
        found += [search(tried, named, what) for what in sorted(set(map(str, tried["varied"])))]
    return found


def use(usage):
    figure, axes = panel(3.6, "What is used", "replication 0")
    days, total = usage["time"] * NS / DAY, usage["busy"] + usage["free"]
    axes.step(days, usage["busy"] / total, where="post", linewidth=0.6, color=style.BLUE)
    axes.set(xlabel="day", ylabel="share of NPUs with a job", ylim=(0, 1.02))
    queue = axes.twinx()
    queue.step(days, usage["queue"], where="post", linewidth=0.6, color=style.VERMILION)
    queue.set_ylabel("waiting jobs", color=style.VERMILION)
    return "use", "Use and queue", figure


def room(usage):
    """Draws the free NPUs, and the NPUs of the largest job for which the placement would find room."""
    figure, axes = panel(3.2, "Free NPUs and room", "replication 0, at each change")
    known = usage["largest"] >= 0
    axes.plot(usage["free"][known], usage["largest"][known], ".", markersize=2, color=style.BLUE)
    most = max(1, int(usage["free"].max()) if len(usage["free"]) else 1)
    axes.plot([0, most], [0, most], "--", linewidth=0.8, color=style.GREY, label="all free NPUs")
    axes.set(xlabel="free NPUs", ylabel="NPUs of the largest job with room")
    axes.legend()
    return "room", "Free NPUs and room", figure


def blocks(jobs, places, leaf):
    """Draws each job as blocks of the NPUs of its last place that follow one another, from its first start to its end."""
    order = np.unique(places["job"])
    colours = {name: style.SERIES[i % len(style.SERIES)] for i, name in enumerate(sorted(set(map(str, jobs["class"]))))}
    rows, shown = {name: [] for name in colours}, 0
    cuts = np.searchsorted(places["job"], np.append(order, order[-1] + 1))
    for job, first, last in zip(order, cuts, cuts[1:]):
        npus = np.sort(places["npu"][first:last])
        begins = np.flatnonzero(np.diff(npus, prepend=-2) != 1)
        if shown + len(begins) > MOST_BLOCKS:
            break
        shown += len(begins)
        begin, time = jobs["start"][job] * NS / DAY, (jobs["end"][job] - jobs["start"][job]) * NS / DAY
        rows[str(jobs["class"][job])] += [
            (begin, time, npus[at] / leaf, (until - at) / leaf)
            for at, until in zip(begins, np.append(begins[1:], len(npus)))
        ]
    figure, axes = panel(
        4.2,
        "Jobs on leaves",
        f"{shown:,} blocks of NPUs that follow one another, of the first jobs, on their last places",
    )
    for name, found in rows.items():
        if found:
            left, width, at, height = (np.array(values) for values in zip(*found))
            axes.bar(
                left, height, width, at, align="edge", color=colours[name], label=name, linewidth=0.2, edgecolor="white"
            )
    ends = [begin for found in rows.values() for begin, *_ in found]
    axes.set(
        xlabel="day", ylabel="leaf", ylim=(0, None), xlim=(0, max(ends) * 1.02 if ends and max(ends) > 0 else None)
    )
    axes.legend(ncol=6, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return "blocks", "Jobs on leaves", figure


def distribution(jobs, name, heading, values):
    figure, axes = panel(3.2, heading, "share of the jobs of a class")
    for i, of_class in enumerate(sorted(set(map(str, jobs["class"])))):
        chosen = (jobs["start"] >= 0) & (jobs["class"].astype(str) == of_class)
        x = np.sort(values[chosen])[:: max(1, int(chosen.sum() // MOST_POINTS))]
        axes.step(
            np.maximum(x, 1),
            np.arange(1, len(x) + 1) / max(1, len(x)),
            where="post",
            label=of_class,
            color=style.SERIES[i % len(style.SERIES)],
        )
    axes.set(xscale="log", xlabel=f"{heading} in s (at least 1)", ylabel="share of jobs", ylim=(0, 1.02))
    axes.legend()
    return name, heading, figure


def slowdown(jobs):
    figure, axes = panel(3.2, "Slow-down over size", "time from the first start over that alone")
    for i, of_class in enumerate(sorted(set(map(str, jobs["class"])))):
        chosen = (jobs["start"] >= 0) & (jobs["class"].astype(str) == of_class)
        axes.plot(
            jobs["npus"][chosen],
            (jobs["end"] - jobs["start"])[chosen] / jobs["length"][chosen],
            ".",
            markersize=3,
            label=of_class,
            color=style.SERIES[i % len(style.SERIES)],
        )
    axes.set(xscale="log", xlabel="NPUs", ylabel="slow-down")
    axes.legend()
    return "slowdown", "Slow-down", figure


def cluster(source):
    jobs, places = table(source, "cluster/jobs"), table(source, "cluster/places")
    found = [use(table(source, "cluster/usage"))]
    if len(places["npu"]):
        leaf = int(source.attributes.get("leaf", 0)) or max(1, (int(places["npu"].max()) + 64) // 64)
        found.append(blocks(jobs, places, leaf))
    found += [
        distribution(jobs, "waits", "wait", (jobs["start"] - jobs["arrival"]) * NS),
        distribution(jobs, "jct", "job completion time", (jobs["end"] - jobs["arrival"]) * NS),
        slowdown(jobs),
    ]
    usage = table(source, "cluster/usage")
    return found + ([room(usage)] if "largest" in usage else [])
