"""Writes the page of serving runs: one file that needs neither a network nor JavaScript."""
from . import charts
from .charts import COLOURS, Plot
from .facts import PS, QUANTILES, TIMES, Run, np
from .. import page
from ..studies.sections import esc, section, soft, table, tag
from ...units import readable

STYLE = """figure { margin: .6rem 0 1rem; } figcaption { font-size: .875rem; color: var(--soft); } .key { margin-left: .8rem; white-space: nowrap; }
svg.plot { width: 100%; max-width: 46rem; display: block; } svg.plot text { font-size: 11px; fill: var(--soft); }
svg.plot .grid { stroke: var(--line); } svg.plot .mark { stroke: var(--worse); stroke-dasharray: 4 3; } svg.plot text.marked { fill: var(--worse); }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em; }"""
PARTS = {"/*STYLE*/": ["web/report.css"], "/*SCRIPT*/": []}
MOST_LINES = 8  # instances whose caches get a line of their own


def text(paths):
    """Returns the page of these files as HTML."""
    runs = [Run(path) for path in paths]
    parts = [figures(runs)]
    for run in runs:
        of = f" of {run.name}" if len(runs) > 1 else ""
        if not run.requests or not len(run.requests["arrival"]):
            parts.append(
                section(
                    f"none-{run.name}", f"Requests{of}", soft("The run kept no row for each request (record.requests).")
                )
            )
            continue
        parts += [
            section(f"load-{run.name}", f"Arrivals and load{of}", arrivals(run), load(run)),
            section(
                f"times-{run.name}", f"Times of requests{of}", *(distribution(run, name) for name in ("ttft", "tpot"))
            ),
            section(f"cache-{run.name}", f"KV caches{of}", caches(run)),
            section(f"requests-{run.name}", f"Requests at the busiest time{of}", gantt(run)),
        ]
    parts.append(section("slo", "SLO", slo_curve(runs)))
    main = tag("style", STYLE) + "".join(parts)
    heading = runs[0].name if len(runs) == 1 else f"{len(runs)} serving runs"
    told = "; ".join(
        f"{run.name}: {run.metrics['requests']:,} requests on {run.metrics['npus']:,} NPUs" for run in runs
    )
    links = "".join(tag("a", esc(name), href=f"#{at}") for at, name in [("figures", "Figures"), ("slo", "SLO")])
    return page.filled(
        PARTS,
        title=" · ".join(run.name for run in runs[:4]),
        about="The charts are SVG.",
        licence="",
        shown={},
        static={
            "HEADING": esc(heading),
            "SUBTITLE": esc(told),
            "SECTIONS": links,
            "MAIN": main,
            "NOSCRIPT": "",
            "MADE": esc(
                "Made from " + ", ".join(f"{run.path}, which Orrery {run.version} wrote" for run in runs) + "."
            ),
        },
    )


def figures(runs):
    """Returns the figures of all runs as tables."""
    rows = [
        [
            esc(run.name) if len(runs) > 1 else "",
            esc(name.upper() if name != "latency" else name),
            *(esc(readable(run.metrics[f"{name}_{which}"] * PS, "s")) for which in QUANTILES),
        ]
        for run in runs
        for name in TIMES
    ]
    rates = [
        [
            esc(run.name),
            f"{run.metrics['requests_per_s']:.4g}",
            f"{run.metrics['output_tokens_per_s']:.5g}",
            f"{run.metrics['output_tokens_per_s_per_npu']:.4g}",
            f"{100 * run.metrics['slo_attainment']:.1f} %",
            f"{run.metrics['goodput']:.4g}",
            f"{100 * run.metrics['kv_use_mean']:.1f} %",
            f"{run.metrics['preemptions']:,}",
            f"{100 * run.metrics['prefix_hit_share']:.1f} %",
        ]
        for run in runs
    ]
    heads = [
        "run",
        "requests/s",
        "output tokens/s",
        "per NPU",
        "meet the SLO",
        "goodput",
        "KV in use",
        "preemptions",
        "prefix hits",
    ]
    return section(
        "figures",
        "Figures",
        table(["", "", *QUANTILES], rows, range(2, 7), "times"),
        table(heads, rates, range(1, 9), "rates"),
    )


def arrivals(run):
    at, rate = run.arrivals()
    plot = Plot("arrivals in a second", (0, run.end), (0, float(rate.max()) * 1.05), "s", "1")
    plot.line(at, rate, "arrivals", COLOURS[0])
    return plot.html()


def load(run):
    at, waiting, running = run.load()
    plot = Plot("requests in the system", (0, run.end), (0, float(max(waiting.max(), running.max())) * 1.05), "s", "1")
    plot.line(at, waiting, "wait for their first token", COLOURS[1])
    plot.line(at, running, "generate", COLOURS[2])
    return plot.html()


def distribution(run, name):
    """Returns the share of requests whose time is no longer, over the time."""
    values = np.sort(run.times(name))
    if not len(values):
        return soft(f"No request has a {name.upper()}.")
    bound = run.slo.get(name)
    high = float(np.quantile(values, 0.995)) * 1.1
    high = max(high, 1.1 * bound) if bound and bound < 4 * high else high
    share = np.arange(1, len(values) + 1) / len(values)
    chosen = np.unique(np.linspace(0, len(values) - 1, 400).astype(int))
    plot = Plot(f"share of requests with no longer a {name.upper()}", (0, high), (0, 1), "s", "share")
    kept = [at for at in chosen if values[at] <= high]
    plot.line(values[kept], share[kept], "", COLOURS[0])
    if bound:
        plot.upright(bound, f"SLO {readable(bound, 's')}: {100 * float((values <= bound).mean()):.1f} %")
    return plot.html()


def caches(run):
    used = run.kv_use()
    if used is None:
        return soft("Steps were not recorded. With serving.record.steps: true this shows how full each cache is.")
    plot = Plot("share of blocks in use", (0, run.end), (0, 1), "s", "share")
    for number, times, values in used[:MOST_LINES]:
        plot.line(times, values, f"instance {number}", COLOURS[number % len(COLOURS)])
    more = f" {len(used) - MOST_LINES} more instances are left out." if len(used) > MOST_LINES else ""
    return plot.html() + (soft(more.strip()) if more else "")


def gantt(run):
    """Returns what becomes of some requests that arrive one after the other, a row for each."""
    rows, r = run.window(), run.requests
    begin, end = float(r["arrival"][rows].min()), float(r["last"][rows].max())
    plot = Plot(
        f"{len(rows)} requests, in the order of their arrival",
        (begin, end),
        (0, 1),
        "s",
        None,
        height=60 + 9 * len(rows),
    )
    for label, colour in zip(("waits", "prompt", "output"), (COLOURS[4], COLOURS[1], COLOURS[2])):
        plot.note(label, colour)
    for at, row in enumerate(rows):
        told = f"request {row}: {r['prompt'][row]} + {r['output'][row]} tokens, instance {r['instance'][row]}"
        times = [float(r[name][row]) for name in ("arrival", "scheduled", "first", "last")]
        for k, colour in enumerate((COLOURS[4], COLOURS[1], COLOURS[2])):
            plot.bar(times[k], times[k + 1], at, len(rows), colour, told)
    return plot.html()


def slo_curve(runs):
    """Returns the share of requests that meet the SLO over the rate, of several runs."""
    known = sorted(
        (run.rate, run.metrics["slo_attainment"], run.name)
        for run in runs
        if run.slo and run.requests and np.isfinite(run.rate)
    )
    if not known:
        return soft("No run has an SLO (serving.slo).")
    plot = Plot(
        "share of requests that meet the SLO, over requests/s",
        (0, 1.1 * max(rate for rate, _, _ in known)),
        (0, 1),
        "1",
        "share",
    )
    if len(known) > 1:
        plot.line([one[0] for one in known], [one[1] for one in known], "", COLOURS[0])
    plot.dots([one[0] for one in known], [one[1] for one in known], COLOURS[0])
    target = runs[0].metrics.get("slo_share")
    if target:
        plot.level(target, f"target {100 * target:.4g} %")
    rows = [[esc(name), f"{rate:.4g}", f"{100 * share:.1f} %"] for rate, share, name in known]
    note = soft("Runs at other rates, given together, make a curve.") if len(known) == 1 else ""
    return plot.html() + table(["run", "requests/s", "meet the SLO"], rows, (1, 2), "slo-curve") + note


def write(paths, output):
    """Writes the page of these files into the file `output`, as `orrery.report.page.write` does."""
    return page.write_text(text(paths), output)
