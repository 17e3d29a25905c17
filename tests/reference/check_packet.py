#!/usr/bin/env python3
"""Runs every JSON file of a folder that describes flows over a packet network, on 1 and 2 ranks, and compares the times
with what the file expects, within its tolerance. On one rank it also compares in the order of scheduling, and reports
how many flows then agree to the picosecond.

usage: check_packet.py [FOLDER] [--case TEXT ...] [--ranks 1,2] [--exact-only] [--seeds N]

FOLDER is by default the folder reference/packet/golden of shared/, in which a relative FOLDER may be too. The exit code is 1 if a case differs, 2 if a case
cannot be run, 77 if there is no folder. Cases of rules that Orrery does not have are named and skipped.

Cases of the form `{id, kind, inputs, expected, tolerance}` have a module of their own for each kind (FORMS)."""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import flit_cases  # noqa: E402
import reduction_cases  # noqa: E402
import tcp_cases  # noqa: E402

# Functions check(case, ranks) of the kinds of cases that have `inputs`. They print a line for the case, and return
# whether it agrees.
FORMS = {
    "flit-ring": flit_cases.check_ring,
    "flit-traffic": flit_cases.check_traffic,
    "reduction": reduction_cases.check,
    "tcp": tcp_cases.check,
}
CONTROLS = {1: "dcqcn", 3: "hpcc", 7: "timely", 8: "dctcp", 12: "none"}
UEC_CONTROLS = {"NSCC": "nscc", "RCCC": "rccc"}
LONG = 500  # hosts; a case of more is run only if it is named


def is_uec(case):
    return "mtu_bytes" in case["packet"] and case["congestion_control"]["name"] in UEC_CONTROLS


def mode_of(case):
    """Returns the number of the congestion control; that of none if the case has none."""
    return int(case["congestion_control"]["parameters"].get("cc_mode", 12))


def unsupported(case):
    """Returns why a case cannot be run; None if it can."""
    if is_uec(case):
        return None
    if "pfc_alpha_shift" not in case["switch"] or case["packet"].get("data_header_bytes") is None:
        return "rules of another simulator"
    if mode_of(case) not in CONTROLS:
        return f"the congestion control {case['congestion_control']['name']}, which Orrery does not have"
    kinds = [node["kind"] for node in case["topology"]["nodes"]]
    if [node["id"] for node in case["topology"]["nodes"]] != list(range(len(kinds))) or kinds != sorted(kinds):
        return "nodes that are not hosts first and then switches"
    return None


def rate(bits):
    return f"{int(bits)} b/s"


def links_of(case):
    rows = [[a, b, rate(bits), f"{delay} ps"] for a, b, bits, delay in case["topology"]["links"]["rows"]]
    if "-failed" in case["congestion_control"].get("arguments", []):
        slow_down(rows, sum(node["kind"] == "host" for node in case["topology"]["nodes"]))
    return rows


def slow_down(rows, num_hosts):
    """Gives the first link to the core, on its way down, a quarter of its rate. This is what htsim does in a fat tree of
    three tiers with -failed 1 (fat_tree_topology.cpp: queues_nc_nup)."""
    leaves = {b for a, b, *_ in rows if a < num_hosts}
    row = next(row for row in rows if row[0] >= num_hosts and row[0] not in leaves)
    bits = int(row[2].split()[0])
    row[2] = [row[2], rate(bits // 4)]


def scenario(case, seed):
    """Returns the case as a FLOWS.yaml, which is JSON here."""
    topology, packet, switch = case["topology"], case["packet"], case["switch"]
    control = case["congestion_control"]["parameters"]
    packets = {
        "payload": f"{packet['payload_bytes']} B",
        "header": f"{packet['data_header_bytes']} B",
        "acknowledgement": f"{packet['ack_bytes']} B",
        "pause-frame": f"{packet['pfc_frame_bytes']} B",
        "time-unit": "ns" if case["time_quantum_ps"] == 1000 else "ps",
        "pauses": bool(switch["pfc"]),
        "share-shift": switch["pfc_alpha_shift"],
        "reserve": f"{switch['pfc_reserve_bytes_per_port']} B",
        "resume-offset": f"{switch['pfc_resume_offset_bytes']} B",
        "window-follows-rate": bool(case["congestion_control"]["window_scales_with_rate"]),
        "completion": "acknowledged" if "acknowledged" in case["flows"]["text"] else "last-byte",
        "control": CONTROLS[mode_of(case)],
        "seed": seed,
    }
    if not isinstance(switch["headroom_bytes_per_port"], str):
        packets["headroom"] = f"{switch['headroom_bytes_per_port']} B"
    if switch["ecn"]:
        packets["marks"] = [
            [rate(bits), f"{marks['kmin_bytes']} B", f"{marks['kmax_bytes']} B", marks["pmax"]]
            for bits, marks in switch["ecn_thresholds"].items()
        ]
    buffers = {node["buffer_bytes"] for node in topology["nodes"] if node["kind"] == "switch"}
    if buffers:
        (buffer,) = buffers
        packets["buffer"] = f"{buffer} B"
    for key, name, text in (
        ("min_rate", "least-rate", rate),
        ("rate_ai", "additive-increase", rate),
        ("dctcp_rate_ai", "additive-increase", rate),
        ("rate_hai", "fast-increase", rate),
        ("ewma_gain", "gain", float),
        ("alpha_resume_interval", "alpha-interval", lambda us: f"{us} us"),
        ("rate_decrease_interval", "decrease-interval", lambda us: f"{us} us"),
        ("rp_timer", "increase-interval", lambda us: f"{us} us"),
        ("fast_recovery_times", "fast-recovery-steps", int),
        ("clamp_target_rate", "clamps-target", bool),
        ("u_target", "target-utilisation", float),
        ("mi_thresh", "increase-stages", int),
        ("int_multi", "telemetry-unit", int),
    ):
        if key in control:
            packets[name] = text(control[key])
    failures = [[a, b, "0 ps"] for a, b in topology.get("links_down_from_the_start", [])]
    failures += [[down["a"], down["b"], f"{down['t_ps']} ps"] for down in topology.get("links_down", [])]
    hosts = sum(node["kind"] == "host" for node in topology["nodes"])
    graph = {
        "routes": "shortest",
        "hosts": hosts,
        "switches": len(topology["nodes"]) - hosts,
        "links": links_of(case),
    }
    if failures:
        graph["failures"] = failures
    flows, number = [], {}
    for row in case["flows"]["rows"]:
        flow = dict(zip(case["flows"]["columns"], row))
        number[flow["id"]] = len(flows)
        entry = {
            "from": flow["src"],
            "to": flow["dst"],
            "size": f"{flow['bytes']} B",
            "start": f"{flow['start_ps']} ps",
            "port": flow["sport"],
            "window": f"{flow['window_bytes']} B" if flow["window_bytes"] else "none",
            "round-trip": f"{flow['base_rtt_ns']} ns",
        }
        if flow["after"]:
            entry["after"] = [number[before] for before in flow["after"]]
        flows.append(entry)
    return {"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}}


def uec_scenario(case, seed):
    """Returns a case of htsim's UEC as a FLOWS.yaml."""
    packet, arguments = case["packet"], case["congestion_control"]["arguments"]
    hosts = sum(node["kind"] == "host" for node in case["topology"]["nodes"])
    packets = {
        "preset": "uec",
        "payload": f"{packet['payload_bytes']} B",
        "header": f"{packet['header_bytes']} B",
        "acknowledgement": f"{packet['ack_bytes']} B",
        "control": UEC_CONTROLS[case["congestion_control"]["name"]],
        "trimming": "-disable_trim" not in arguments,
        "completion": "acknowledged",
        "seed": seed,
    }
    if "-load_balancing_algo" in arguments:
        packets["spraying"] = arguments[arguments.index("-load_balancing_algo") + 1]
    if "-paths" in arguments and arguments[arguments.index("-paths") + 1] == "1":
        packets["spraying"] = "none"
    flows, number = [], {}
    for row in case["flows"]["rows"]:
        flow = dict(zip(case["flows"]["columns"], row))
        number[flow["id"]] = len(flows)
        entry = {
            "from": flow["src"],
            "to": flow["dst"],
            "size": f"{flow['bytes']} B",
            "start": f"{flow['start_us'] or 0} us",
        }
        if flow["after"] is not None:
            before = flow["after"] if isinstance(flow["after"], list) else [flow["after"]]
            entry["after"] = [number[one] for one in before]
        flows.append(entry)
    graph = {
        "routes": "shortest",
        "hosts": hosts,
        "switches": len(case["topology"]["nodes"]) - hosts,
        "links": links_of(case),
    }
    return {"system": {"network": {"graph": graph, "packets": packets}}, "workload": {"flows": flows}}


def simulate(case, seed, ranks, *options):
    """Returns the results of a case. Raises RuntimeError if the program refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = pathlib.Path(folder, "flows.yaml"), pathlib.Path(folder, "flows.json")
        source.write_text(json.dumps(uec_scenario(case, seed) if is_uec(case) else scenario(case, seed)))
        outcome = harness.orrery("flows", source, f"--json={result}", *options, ranks=ranks, timeout=900)
        if outcome.code not in (0, 4):  # 4: some flows never end
            raise RuntimeError(outcome.err.strip() or f"exit code {outcome.code}")
        return json.loads(result.read_text())


def figures(results, end="received_ps"):
    """Returns when the last byte came, or the last acknowledgement, and the mean time of a flow, in ps."""
    flows = [flow for flow in results["flows"] if flow[end] >= 0]
    durations = [flow[end] - flow["start_ps"] for flow in flows]
    return max(flow[end] for flow in flows), sum(durations) / len(durations)


def compare_ranks(case, ranks, results, texts):
    """Says in `texts` whether further numbers of ranks give the results of the first one. Returns whether they do."""
    same = True
    for number in ranks[1:]:
        other = simulate(case, 0, number)
        equal = all(other[part] == results[part] for part in ("flows", "ports"))
        texts.append(f"{number} ranks {'equal' if equal else 'DIFFER'}")
        same = same and equal
    return same


def check_uec(case, ranks, least_seeds):
    """Prints a line for a case of UEC, whose times are those of acknowledgements. Returns whether it agrees."""
    runs = case["expected"]["runs"]
    seeds = range(max(len(runs), least_seeds) if case["kind"] == "statistical" else 1)
    results = [simulate(case, seed, ranks[0]) for seed in seeds]
    mine = [sum(values) / len(values) for values in zip(*(figures(result, "acknowledged_ps") for result in results))]
    names = ("completion_ack_ps", "mean_fct_ack_ps")
    errors = [value / case["expected"][name]["mean"] - 1 for value, name in zip(mine, names)]
    limits = case["tolerance"]["completion"], case["tolerance"].get("mean_fct", case["tolerance"].get("per_flow"))
    unfinished = sum(flow["acknowledged_ps"] < 0 for result in results for flow in result["flows"])
    agrees = unfinished == 0 and all(abs(error) <= limit for error, limit in zip(errors, limits))
    trims = sum(port["trims"] for result in results for port in result["ports"]) / len(results)
    texts = [f"completion {errors[0]:+.5f} ({limits[0]}), mean {errors[1]:+.5f} ({limits[1]})", f"{trims:.1f} trims"]
    agrees = compare_ranks(case, ranks, results[0], texts) and agrees
    print(f"{case['name']:36} {'ok  ' if agrees else 'FAIL'} {'; '.join(texts)}", flush=True)
    return agrees


def exact_flows(results, run):
    """Returns how many flows have all times of the reference, to the picosecond."""
    rows = run["flows"]["rows"]
    return sum(
        [flow["start_ps"], flow["received_ps"], flow["acknowledged_ps"]] == row[1:4]
        for flow, row in zip(results["flows"], rows)
    ), len(rows)


def check(case, ranks, exact_only, least_seeds):
    """Prints a line for the case. Returns whether it agrees."""
    runs = case["expected"]["runs"]
    statistical = case["kind"] == "statistical"
    texts, agrees = [], True
    if not statistical:
        results = simulate(case, 0, 0, "--scheduling-order")
        same, count = exact_flows(results, runs[0])
        pauses = sum(port["pauses"] for port in results["ports"])
        marks = sum(port["marks"] for port in results["ports"])
        texts.append(
            f"exact {same}/{count}, pauses {pauses}/{runs[0]['pfc_pauses_received']}, "
            f"marks {marks}/{runs[0]['ecn_marks']}"
        )
        if exact_only:
            agrees = same == count
    if not exact_only:
        seeds = range(max(len(runs), least_seeds) if statistical else 1)
        results = [simulate(case, seed, ranks[0]) for seed in seeds]
        expected = runs if statistical else runs[:1]
        errors = [
            sum(mine) / len(mine) / (sum(run[name] for run in expected) / len(expected)) - 1
            for mine, name in zip(zip(*map(figures, results)), ("completion_rx_ps", "mean_fct_rx_ps"))
        ]
        limits = case["tolerance"]["completion"], case["tolerance"]["mean_fct"]
        agrees = all(limit is None or abs(error) <= limit for error, limit in zip(errors, limits))
        texts.append(f"completion {errors[0]:+.5f} ({limits[0]}), mean {errors[1]:+.5f} ({limits[1]})")
        agrees = compare_ranks(case, ranks, results[0], texts) and agrees
    print(f"{case['name']:36} {'ok  ' if agrees else 'FAIL'} {'; '.join(texts)}", flush=True)
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = harness.SHARED / "reference/packet/golden"
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=default)
    parser.add_argument("--case", nargs="*", default=[""], help="only files whose names contain one of these texts")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks; the first is compared with the file")
    parser.add_argument("--exact-only", action="store_true", help="compare in the order of scheduling alone")
    parser.add_argument("--seeds", type=int, default=20, help="least number of runs of a case with random marks")
    parser.add_argument(
        "--uec-seeds", type=int, default=1, help="least number of runs of a case of UEC; at least the peer's number"
    )
    arguments = parser.parse_args()
    ranks = [int(text) for text in arguments.ranks.split(",")]
    if not arguments.folder.is_dir() and not arguments.folder.is_absolute():
        arguments.folder = harness.SHARED / arguments.folder
    if not arguments.folder.is_dir():
        print(f"{arguments.folder} is not there")
        return harness.SKIPPED
    files = sorted(
        file for file in arguments.folder.glob("*.json") if any(text in file.name for text in arguments.case)
    )
    if not files:
        print(f"{arguments.folder}: no JSON files of these names", file=sys.stderr)
        return 2
    failed, broken, skipped = [], [], 0
    for file in files:
        try:
            case = json.loads(file.read_text())
            if "inputs" in case:
                form = FORMS.get(case["kind"])
                if form is None:
                    print(f"{case['id']:36} skipped: the kind {case['kind']}, which has no row in FORMS")
                    skipped += 1
                elif not form(case, ranks):
                    failed.append(case["id"])
                continue
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            is_case = isinstance(error, RuntimeError)
            print(f"{file.name:36} {'' if is_case else 'is no case: '}{type(error).__name__}: {error}")
            broken.append(file.name)
            continue
        try:
            reason, hosts = unsupported(case), sum(node["kind"] == "host" for node in case["topology"]["nodes"])
            name = case["name"]
        except (ValueError, KeyError, TypeError) as error:  # no JSON, or no case
            print(f"{file.name:36} is no case: {type(error).__name__}: {error}")
            broken.append(file.name)
            continue
        if reason:
            print(f"{name:36} skipped: {reason}")
            skipped += 1
            continue
        if arguments.exact_only and case["kind"] == "statistical":
            continue
        if is_uec(case) and hosts > LONG and arguments.case == [""]:
            print(f"{case['name']:36} skipped: {hosts} hosts take long; name it to run it")
            skipped += 1
            continue
        if is_uec(case) and arguments.exact_only:
            continue
        try:
            if is_uec(case):
                agrees = check_uec(case, ranks, arguments.uec_seeds)
            else:
                agrees = check(case, ranks, arguments.exact_only, arguments.seeds)
            if not agrees:
                failed.append(case["name"])
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            print(f"{case['name']:36} {type(error).__name__}: {error}")
            broken.append(case["name"])
    print(f"{len(files) - skipped} cases run, {len(failed)} differ, {len(broken)} could not be run, {skipped} skipped")
    return 2 if broken else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
