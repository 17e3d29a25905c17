#!/usr/bin/env python3
"""A scaling study of Orrery: the same work on more and more ranks (strong), or work that grows with them (weak), as Slurm jobs.

    scripts/slurm/scaling.py submit strong study --ranks 1,2,4,8 --repeat 3 --account A --partition P --time 10 -- configs/llm-64.yaml
    scripts/slurm/scaling.py submit weak   study --ranks 1,2,4,8 --generate '--tp 4 --pp 4 --dp {4*ranks}' -- \\
        configs/llm-64.yaml --set 'system.network.dimensions.2.size={4*ranks}'
    scripts/slurm/scaling.py gather study

What stands after -- goes to `orrery run`, with {ranks} and {N*ranks} replaced by numbers. Nothing in the folder of a study is replaced;
both kinds may share one. `gather` reads the results that are there and writes scaling.csv, scaling.md and scaling.png beside them.
docs/cluster.md says more.
"""
import argparse
import csv
import fcntl
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("strong", "weak")


def fail(message, code=2):
    print(f"scaling.py: {message}", file=sys.stderr)
    sys.exit(code)


def filled(text, ranks):
    """{ranks} and {N*ranks} as numbers."""
    return re.sub(r"\{(?:(\d+)\*)?ranks\}", lambda found: str(int(found[1] or 1) * ranks), text)


def counts(text):
    values = [int(part) for part in text.split(",")]
    if not values or min(values) < 1 or len(set(values)) != len(values):
        raise ValueError
    return values


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


# ---- a study's folder ----


class Study:
    """study.json lists the runs; one process at a time changes it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.path = self.folder / "study.json"

    def runs(self):
        try:
            return json.loads(self.path.read_text())["runs"]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError) as error:
            fail(f"{self.path}: {error}", 3)

    def add(self, run):
        with open(self.folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            partial = self.path.with_suffix(".part")
            partial.write_text(json.dumps({"runs": self.runs() + [run]}, indent=1) + "\n")
            partial.replace(self.path)


# ---- submit ----


def find_program(asked):
    for name in (asked, os.environ.get("ORRERY"), shutil.which("orrery"), HERE.parents[1] / "build/release/bin/orrery"):
        if name:
            if not os.access(name, os.X_OK):
                break
            return str(pathlib.Path(name).resolve())
    fail(f"{name} is no program: name it with --orrery")


def placement(args, ranks):
    """sbatch options for this number of ranks."""
    options = [f"--ntasks={ranks}"]
    if args.ranks_per_node:
        options += [
            f"--nodes={-(-ranks // args.ranks_per_node)}",
            f"--ntasks-per-node={min(args.ranks_per_node, ranks)}",
        ]
    elif args.nodes:
        options.append(f"--nodes={min(args.nodes, ranks)}")
    for name in ("account", "partition", "time"):
        if getattr(args, name):
            options.append(f"--{name}={getattr(args, name)}")
    return options + args.sbatch


def submit(args):
    study = Study(args.folder)
    study.folder.mkdir(parents=True, exist_ok=True)
    program = find_program(args.orrery)
    plan = []
    for ranks in args.ranks:
        for repeat in range(1, args.repeat + 1):
            name = f"{args.kind}-{ranks}-{repeat}"
            if (study.folder / f"{name}.h5").exists() or any(run["name"] == name for run in study.runs()):
                fail(f"{study.folder} has a run {name} already: take another folder", 5)
            plan.append((name, ranks, repeat))
    more = {ranks: generated(args, study, program, ranks) for ranks in args.ranks} if args.generate else {}

    environment = {**os.environ, "ORRERY": program, "ORRERY_LAUNCHER": args.launcher}
    jobs, failed = [], 0
    for name, ranks, repeat in plan:
        results, log = study.folder / f"{name}.h5", study.folder / f"{name}.log"
        arguments = (
            [filled(argument, ranks) for argument in args.arguments] + more.get(ranks, []) + [f"--output={results}"]
        )
        run = {
            "name": name,
            "kind": args.kind,
            "ranks": ranks,
            "repeat": repeat,
            "results": results.name,
            "arguments": arguments,
        }
        if args.local:
            with open(log, "w") as text:
                code = subprocess.run(
                    [str(HERE.parent / "mpirun.sh"), str(ranks), program, "run", *arguments],
                    stdout=text,
                    stderr=text,
                    stdin=subprocess.DEVNULL,
                ).returncode
            failed = failed or code
            print(f"{name}: {'done' if code == 0 else f'exit code {code}, see {log}'}", flush=True)
        else:
            command = ["sbatch", "--parsable", f"--job-name=orrery-{name}", f"--output={log}", *placement(args, ranks)]
            if args.one_at_a_time and jobs:
                command.append(f"--dependency=afterany:{jobs[-1]}")
            try:
                sent = subprocess.run(
                    [*command, str(HERE / "batch.sh"), *arguments], capture_output=True, text=True, env=environment
                )
            except FileNotFoundError:
                fail("no sbatch here: submit on a cluster's login node, or run on this machine with --local")
            if sent.returncode != 0:
                fail(f"sbatch: {sent.stderr.strip()}", sent.returncode)
            run["job"] = sent.stdout.split(";")[0].strip()
            jobs.append(run["job"])
            print(f"{name}: job {run['job']}", flush=True)
        study.add(run)
    if args.wait and jobs:
        wait(jobs)
    if args.wait or args.local:
        sys.exit(gather(args) or failed)


def generated(args, study, program, ranks):
    """Writes the traces for this number of ranks; the options that name them."""
    options = filled(args.generate, ranks)
    key = re.sub(r"[^0-9a-z]+", "-", options.lower()).strip("-")
    folder = study.folder / f"traces-{key}"
    if not folder.exists():
        partial = study.folder / f".traces-{os.getpid()}"
        partial.mkdir()
        done = subprocess.run(
            [program, "generate", *shlex.split(options), f"--output={partial}/workload"], capture_output=True, text=True
        )
        if done.returncode != 0:
            shutil.rmtree(partial)
            fail(f"orrery generate {options}: {done.stderr.strip()}", done.returncode)
        partial.rename(folder)
    return [
        "--set",
        f"workload.traces={folder.resolve()}/workload",
        "--set",
        f"workload.groups={folder.resolve()}/workload.json",
    ]


def wait(jobs):
    """Until none of the jobs is queued or runs. squeue is asked rarely: on a cluster it loads the controller of all users."""
    pause = 1
    while True:
        seen = subprocess.run(["squeue", "--me", "--noheader", "--format=%A"], capture_output=True, text=True)
        if seen.returncode == 0 and not set(jobs) & set(seen.stdout.split()):
            return
        time.sleep(pause)
        pause = min(pause * 1.3, 30)


# ---- gather ----


def read(path):
    """Figures of one run, or None and why not."""
    import h5py

    try:
        with h5py.File(path, "r") as results:
            status = results.attrs["status"]
            if status != "complete":
                return None, f"status is {status}"
            kernel = {
                name: results["kernel/" + name][:]
                for name in (
                    "events",
                    "data_messages",
                    "null_messages",
                    "blocked_time",
                    "busy_time",
                    "peak_memory",
                    "critical_path",
                )
            }
            return {
                "npus": len(results["npus/finish_time"]),
                "ranks": int(results.attrs["num_ranks"]),
                "hosts": len(set(results["kernel/host"].asstr())),
                "simulated": int(results.attrs["simulated_time"]),
                "wall": float(results.attrs["wall_time"]),
                **kernel,
            }, ""
    except (OSError, KeyError) as error:
        return None, "no results" if not path.exists() else str(error)


def point(kind, ranks, runs, base):
    """One row of the table; `base` is the row of the fewest ranks."""
    wall = statistics.median(run["wall"] for run in runs)
    typical = min(runs, key=lambda run: abs(run["wall"] - wall))
    events = int(typical["events"].sum())
    data, null = int(typical["data_messages"].sum()), int(typical["null_messages"].sum())
    row = {
        "kind": kind,
        "ranks": ranks,
        "hosts": typical["hosts"],
        "npus": typical["npus"],
        "runs": len(runs),
        "wall_s": wall,
        "wall_min_s": min(run["wall"] for run in runs),
        "wall_max_s": max(run["wall"] for run in runs),
        "events": events,
        "events_per_s": events / wall if wall else 0.0,
    }
    base = base or row
    # Strong: how many times sooner the same work is done. Weak: how many times more events in a second.
    row["speedup"] = base["wall_s"] / wall if kind == "strong" else row["events_per_s"] / base["events_per_s"]
    row["efficiency"] = row["speedup"] * base["ranks"] / ranks
    seconds = float((typical["busy_time"] + typical["blocked_time"]).sum())
    row["blocked_share"] = float(typical["blocked_time"].sum()) / seconds if seconds else 0.0
    row["imbalance"] = float(typical["events"].max() / typical["events"].mean()) if events else 1.0
    row["events_per_critical_path"] = events / max(int(typical["critical_path"].max()), 1)
    row["data_messages"], row["null_messages"] = data, null
    row["peak_memory_bytes"] = int(typical["peak_memory"].max())
    return row


def table(runs):
    """Rows, and what has to be said beside them."""
    rows, notes = [], []
    for kind in KINDS:
        found = {}
        for run in (run for run in runs if run["kind"] == kind):
            figures, why = read(run["path"])
            if figures is None:
                notes.append(f"{run['name']} is left out: {why}")
            elif figures["ranks"] != run["ranks"]:
                notes.append(f"{run['name']} is left out: it ran on {figures['ranks']} ranks")
            else:
                found.setdefault(run["ranks"], []).append(figures)
        base = None
        for ranks in sorted(found):
            rows.append(point(kind, ranks, found[ranks], base))
            base = base or rows[-1]
        answers = {figures["simulated"] for some in found.values() for figures in some}
        if kind == "strong" and len(answers) > 1:
            notes.append(
                f"the strong runs are not of the same work: they end at {', '.join(map(str, sorted(answers)))} ps"
            )
    return rows, notes


def markdown(rows, notes):
    heads = [
        "",
        "ranks",
        "hosts",
        "NPUs",
        "runs",
        "wall s (median)",
        "events",
        "M events/s",
        "speed-up",
        "efficiency",
        "blocked",
        "imbalance",
        "events / critical path",
        "data messages",
        "null messages",
        "MiB, largest rank",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [
            row["kind"],
            row["ranks"],
            row["hosts"],
            f"{row['npus']:,}",
            row["runs"],
            f"{row['wall_s']:.4g}",
            f"{row['events']:,}",
            f"{row['events_per_s'] / 1e6:.3g}",
            f"{row['speedup']:.2f}",
            f"{100 * row['efficiency']:.0f} %",
            f"{100 * row['blocked_share']:.0f} %",
            f"{row['imbalance']:.2f}",
            f"{row['events_per_critical_path']:.1f}",
            f"{row['data_messages']:,}",
            f"{row['null_messages']:,}",
            f"{row['peak_memory_bytes'] / 2**20:.0f}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines + [""] * bool(notes) + [f"- {note}" for note in notes]) + "\n"


def picture_style():
    """Returns orrery.plots.style; ends the program with a message if a Python package is missing."""
    places = [HERE.parent / "python", *(folder / "lib/python3/dist-packages" for folder in HERE.parents)]
    sys.path[:0] = [str(place) for place in places if (place / "orrery").is_dir()][:1]
    try:
        from orrery.plots import style
    except ImportError as error:
        fail(error)
    return style


def draw(style, rows, path):
    """Draws speed-up and efficiency over the number of ranks."""
    colours, marks = {"strong": style.BLUE, "weak": style.VERMILION}, {"strong": "o", "weak": "s"}
    all_ranks = sorted({row["ranks"] for row in rows})
    with style.look():
        first = f"{all_ranks[0]} rank{'s' if all_ranks[0] > 1 else ''}"
        figure, _, body = style.picture(
            3.8, "Scaling study", f"speed-up over {first}; bars reach from the slowest to the fastest run"
        )
        left, right = body.subplots(1, 2)
        left.plot(
            all_ranks,
            [ranks / all_ranks[0] for ranks in all_ranks],
            color=style.GREY,
            linestyle="--",
            linewidth=1,
            label="ideal",
        )
        right.axhline(100, color=style.GREY, linestyle="--", linewidth=1)
        for kind in KINDS:
            mine = [row for row in rows if row["kind"] == kind]
            if not mine:
                continue
            ranks, speedup = [row["ranks"] for row in mine], [row["speedup"] for row in mine]
            reach = (
                [
                    [row["speedup"] * (1 - row["wall_s"] / row["wall_max_s"]) for row in mine],
                    [row["speedup"] * (row["wall_s"] / row["wall_min_s"] - 1) for row in mine],
                ]
                if all(row["wall_min_s"] for row in mine)
                else None
            )
            label = {"strong": "strong: the same work", "weak": "weak: work grows with ranks"}[kind]
            left.errorbar(
                ranks,
                speedup,
                yerr=reach,
                color=colours[kind],
                marker=marks[kind],
                markersize=5,
                capsize=3,
                label=label,
            )
            right.plot(
                ranks, [100 * row["efficiency"] for row in mine], color=colours[kind], marker=marks[kind], markersize=5
            )
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_xticks(all_ranks, [str(ranks) for ranks in all_ranks])
            axes.minorticks_off()
            axes.set_xlabel("MPI ranks")
            axes.grid(axis="y")
        left.set_yscale("log", base=2)
        left.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        left.set_title("Speed-up")
        left.legend()
        right.set_ylim(0, max(105.0, *(105 * row["efficiency"] for row in rows)))
        right.set_title("Efficiency (%)")
        style.save(figure, path)


def gather(args):
    style = picture_style()
    study = Study(args.folder)
    runs = [{**run, "path": study.folder / run["results"]} for run in study.runs()]
    if not runs:
        fail(f"{study.folder} is no study: there is no {study.path.name}", 3)
    rows, notes = table(runs)
    if not rows:
        fail("; ".join(notes), 3)
    with open(study.folder / "scaling.csv", "w", newline="") as text:
        writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (study.folder / "scaling.md").write_text(markdown(rows, notes))
    draw(style, rows, study.folder / "scaling.png")
    print(markdown(rows, notes), end="")
    print(f"wrote {study.folder}/scaling.csv, scaling.md, scaling.png")
    return 1 if notes else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    sub = commands.add_parser(
        "submit",
        help="submit the runs of a study",
        usage="scaling.py submit strong|weak FOLDER --ranks 1,2,4 [OPTIONS] -- CONFIG.yaml [OPTIONS OF orrery run]",
    )
    sub.add_argument("kind", choices=KINDS)
    sub.add_argument("folder", help="for results, logs, table and plot")
    sub.add_argument("--ranks", type=counts, required=True, help="numbers of ranks, as 1,2,4,8")
    sub.add_argument(
        "--repeat", type=positive, default=1, metavar="N", help="runs for each (default: 1); the table has the median"
    )
    sub.add_argument(
        "--generate", metavar="OPTIONS", help="write traces with `orrery generate OPTIONS` first and run those"
    )
    sub.add_argument("--account", help="of sbatch")
    sub.add_argument("--partition", help="of sbatch")
    sub.add_argument("--time", help="of sbatch: the limit of each run")
    sub.add_argument("--nodes", type=positive, help="nodes over which the ranks are spread, at most one for each rank")
    sub.add_argument("--ranks-per-node", type=positive, metavar="N", help="instead of --nodes: fill nodes with N ranks")
    sub.add_argument(
        "--sbatch",
        action="append",
        default=[],
        metavar="OPTION",
        help="more for sbatch, as --sbatch=--exclusive; repeatable",
    )
    sub.add_argument(
        "--launcher",
        choices=("srun", "mpirun"),
        default=os.environ.get("ORRERY_LAUNCHER", "srun"),
        help="(default: srun --mpi=pmix)",
    )
    sub.add_argument(
        "--one-at-a-time", action="store_true", help="each run after the one before, where they would share nodes"
    )
    sub.add_argument("--local", action="store_true", help="without Slurm: on this machine, one after the other")
    sub.add_argument("--wait", action="store_true", help="wait for the runs, then gather")
    sub.add_argument("--orrery", metavar="PROGRAM", help="(default: $ORRERY, orrery in PATH, build/release/bin/orrery)")
    collect = commands.add_parser("gather", help="table and plot of the results that are there")
    collect.add_argument("folder")
    words, rest = sys.argv[1:], []
    if "--" in words:
        words, rest = words[: words.index("--")], words[words.index("--") + 1 :]
    args = parser.parse_args(words)
    args.arguments = rest
    if args.command == "gather":
        sys.exit(gather(args))
    if not rest:
        sub.error("what shall run? -- CONFIG.yaml [OPTIONS OF orrery run]")
    if args.nodes and args.ranks_per_node:
        sub.error("--nodes or --ranks-per-node, not both")
    if args.wait or args.local:
        picture_style()  # a package that gather will need is missing now, not after the runs
    submit(args)


if __name__ == "__main__":
    main()
