#!/usr/bin/env python3
"""What rules of the packet network matter for collectives (docs/case-studies.md, Rules of packet networks): a Markdown table and a picture.

usage: packet_rules.py [--plot FILE.png] [--orrery PROGRAM]

16 hosts with links of 100 Gb/s and 1 us, on one switch or on a fat tree of switches with 4 ports, send 1 MiB each. `orrery flows` runs each
pattern with the rules of ASTRA-sim's ns-3, and then with one rule changed at a time. The figures beside are those of a simulator that was
written for this comparison from the rules of ns-3 alone, and reproduces its times to the picosecond.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import study_plots

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS, SIZE = 16, 1 << 20
RATE, DELAY = "100 Gb/s", "1 us"
# The receiver of each host. Routes by the hash of ns-3 collide.
PERMUTATION = (5, 13, 3, 10, 8, 9, 1, 2, 6, 4, 12, 14, 0, 15, 7, 11)
KEEPS_WINDOWS = "keeps-windows"  # of packets of 1000 B, although a path holds more bytes of longer packets
RULES = {
    "there with the last acknowledgement": {"completion": "acknowledged"},
    "payload 4096 B": {"payload": "4096 B"},
    "4096 B, windows as before": {"payload": "4096 B", KEEPS_WINDOWS: True},
    "payload 9000 B": {"payload": "9000 B"},
    "9000 B, windows as before": {"payload": "9000 B", KEEPS_WINDOWS: True},
    "whole messages": {"payload": f"{SIZE} B"},
    "no headers": {"header": "1 B"},
    "acknowledgements of 1 B": {"acknowledgement": "1 B"},
    "times in ns": {"time-unit": "ns"},
    "no window": {"window": "none"},
}
# Percent, as the other simulator says; None: it has no figure.
EXPECTED = {
    "there with the last acknowledgement": (25, None, None, None, None),
    "payload 4096 B": (None,) * 5,
    "4096 B, windows as before": (13, 8, -5, -5, -3),
    "payload 9000 B": (None,) * 5,
    "9000 B, windows as before": (30, 23, -6, -5, -3),
    "whole messages": (63, 136, -1, 203, 9),
    "no headers": (-2.6, None, -3.3, -3.7, -3.5),
    "acknowledgements of 1 B": (-1.9, None, -4.1, -2.2, 0),
    "times in ns": (0.2, None, 0.3, 0.2, 0.1),
    "no window": (0, None, 0, -8, 0),
}


def switch(hosts):
    return {"hosts": hosts, "switches": 1, "links": [[host, hosts, RATE, DELAY] for host in range(hosts)]}


def fat_tree():
    """A fat tree of switches with 4 ports: 8 edge switches, 8 above them, and 4 that join the pods."""
    edges, above, core = HOSTS, HOSTS + 8, HOSTS + 16
    links = [[host, edges + host // 2] for host in range(HOSTS)]
    for pod in range(4):
        links += [[edges + 2 * pod + edge, above + 2 * pod + up] for edge in range(2) for up in range(2)]
        links += [[above + 2 * pod + up, core + 2 * up + spine] for up in range(2) for spine in range(2)]
    return {"hosts": HOSTS, "switches": 20, "links": [[*link, RATE, DELAY] for link in links], "routes": "shortest"}


def ring():
    """An all-reduce: each of 30 steps hands a sixteenth to the next host, which goes on with it."""
    flows = []
    for step in range(2 * (HOSTS - 1)):
        for host in range(HOSTS):
            after = {"after": [(step - 1) * HOSTS + (host - 1) % HOSTS]} if step else {}
            flows.append({"from": host, "to": (host + 1) % HOSTS, "size": f"{SIZE // HOSTS} B", **after})
    return flows


def all_to_all():
    return [
        {"from": a, "to": (a + shift) % HOSTS, "size": f"{SIZE // HOSTS} B"}
        for a in range(HOSTS)
        for shift in range(1, HOSTS)
    ]


def patterns():
    return {
        "ring, switch": (switch(HOSTS), ring()),
        "ring, fat tree": (fat_tree(), ring()),
        "all-to-all": (switch(HOSTS), all_to_all()),
        "permutation": (fat_tree(), [{"from": a, "to": b, "size": f"{SIZE} B"} for a, b in enumerate(PERMUTATION)]),
        "incast 8:1": (switch(9), [{"from": host, "to": 8, "size": f"{SIZE} B"} for host in range(8)]),
    }


def window(graph, flow):
    """Returns the bytes of packets of 1000 B that fill the path of a flow there and back: 2 us and 80 ns for each link."""
    leaf = [flow["from"] // 2, flow["to"] // 2]
    links = 2 if graph["switches"] == 1 or leaf[0] == leaf[1] else 4 if leaf[0] // 2 == leaf[1] // 2 else 6
    return f"{links * 26_000} B"


def completion(program, folder, pattern, changes):
    """Returns when the last byte is at its receiver, in us."""
    graph, flows = pattern
    if KEEPS_WINDOWS in changes:
        flows = [{**flow, "window": window(graph, flow)} for flow in flows]
    packets = {key: value for key, value in changes.items() if key != KEEPS_WINDOWS}
    text = json.dumps({"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}})
    with tempfile.TemporaryDirectory(dir=folder) as own:
        source, result = pathlib.Path(own, "flows.yaml"), pathlib.Path(own, "flows.json")
        source.write_text(text)
        done = subprocess.run(
            [program, "flows", str(source), f"--json={result}"], capture_output=True, text=True, timeout=600
        )
        if done.returncode != 0:
            sys.exit(f"packet_rules.py: {done.stderr.strip()}")
        return max(flow["received_ps"] for flow in json.loads(result.read_text())["flows"]) / 1e6


def measure(program):
    """Returns {pattern: us} of the plain rules, and {rule: [percent of each pattern]}."""
    cases = patterns()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = {
            (rule, name): pool.submit(completion, program, folder, case, changes)
            for rule, changes in {"": {}, **RULES}.items()
            for name, case in cases.items()
        }
        times = {key: job.result() for key, job in jobs.items()}
    plain = {name: times["", name] for name in cases}
    return plain, {rule: [100 * (times[rule, name] / plain[name] - 1) for name in cases] for rule in RULES}


def percent(value):
    if value is None:
        return ""
    return f"{value:+.0f} %" if abs(value) >= 10 else f"{value:+.1f} %"


def print_table(plain, changes):
    print("| rule that differs | " + " | ".join(plain) + " |")
    print("|---" * (len(plain) + 1) + "|")
    print("| none | " + " | ".join(f"{time:.1f} us" for time in plain.values()) + " |")
    for rule, values in changes.items():
        cells = [
            percent(value) + (f" ({percent(other)})" if other is not None else "")
            for value, other in zip(values, EXPECTED[rule])
        ]
        print(f"| {rule} | " + " | ".join(cells) + " |")


def draw(style, plain, changes, path):
    """Bars of Orrery for each rule and pattern, with the other simulator's figures as points."""
    colours = (style.BLUE, style.SKY, style.GREEN, style.VERMILION, style.PURPLE)
    with style.look():
        figure, _, body = style.picture(
            4.6,
            "What rules of packets change",
            "completion of 16 hosts with 1 MiB each, against the rules of ASTRA-sim's ns-3",
        )
        axes = body.subplots()
        width = 0.8 / len(plain)
        for number, (name, colour) in enumerate(zip(plain, colours)):
            places = [row - 0.4 + width * (number + 0.5) for row in range(len(changes))]
            axes.barh(places, [values[number] for values in changes.values()], height=width, color=colour, label=name)
            known = [
                (EXPECTED[rule][number], place)
                for rule, place in zip(changes, places)
                if EXPECTED[rule][number] is not None
            ]
            axes.plot(
                [value for value, _ in known],
                [place for _, place in known],
                "|",
                color="black",
                markersize=6,
                label="from the rules of ns-3 alone" if number == 0 else None,
            )
        axes.set_yticks(range(len(changes)), changes)
        axes.set_ylim(len(changes) - 0.5, -0.5)
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xticks([-10, -5, 0, 5, 10, 50, 200], ["−10 %", "−5 %", "0", "+5 %", "+10 %", "+50 %", "+200 %"])
        axes.axvline(0, color="black", linewidth=0.6)
        axes.grid(axis="x")
        style.legend(axes)
        style.save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE.png", help="draw the table into this file")
    parser.add_argument("--orrery", default=str(ROOT / "build/release/bin/orrery"), metavar="PROGRAM")
    arguments = parser.parse_args()
    style = study_plots.style_for(arguments.plot)
    plain, changes = measure(arguments.orrery)
    print_table(plain, changes)
    if style:
        draw(style, plain, changes, arguments.plot)


if __name__ == "__main__":
    main()
