"""Compares what nccl-tests printed with the times of a library, and says how to correct the library with it."""
import math
import pathlib
import re
import tempfile

from orrery.calibrate.program import Failed, Unusable, collective_seconds

SMALLEST, MIDDLE = 1024, 16e6  # bytes, of the points that correct a library best
PROGRAMS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "alltoall",
}
RESULT = re.compile(
    r"(?<![^\s:>|\]])\d+\s+\d+\s+[a-zA-Z]\S*\s+[a-zA-Z]\S*\s+-?\d+\s+[\d.]+\s"
)  # size, count, type, redop, root, time
REDUCING = ("all-reduce", "reduce-scatter")  # whose lines name an operation where the others have "none"


def words_of(line):
    """Returns the words of a line without the tag that a launcher put before it, such as "[1,0]<stdout>:" (mpirun --tag-output), "12: "
    (srun --label) or "node7: " (pdsh). Lines that are no results begin with #."""
    if "#" in line:
        return line[line.index("#") :].split()
    found = RESULT.search(line)
    return line[found.start() :].split() if found else line.split()


def read(file):
    """Returns (lines of ranks, number of hosts, [(bytes, seconds, line)]) of an output of nccl-tests."""
    ranks, hosts, points = [], set(), {}
    try:
        lines = pathlib.Path(file).read_text(errors="replace").splitlines()
    except OSError as error:
        raise Unusable(f"{file}: cannot be read: {error.strerror}") from error
    for line in lines:
        words = words_of(line)
        if words[:2] == ["#", "Rank"]:
            ranks.append(line)
            hosts.update(words[words.index("on") + 1 : words.index("on") + 2] if "on" in words else [])
        elif len(words) >= 8 and words[0].isdigit() and words[1].isdigit() and int(words[0]) > 0:
            points.setdefault(int(words[0]), (float(words[5]) * 1e-6, line))
    if len(ranks) < 2 or not points:
        raise Unusable(
            f"{file}: found {len(ranks)} ranks and {len(points)} results; expected what nccl-tests print: a line '#  Rank ...' for "
            "each of two or more ranks, and a line for each size."
        )
    return ranks, max(len(hosts), 1), sorted((size, seconds, line) for size, (seconds, line) in points.items())


LINKS = {"nccl-a100": 300, "nccl-h100": 450, "nccl-b200": 900, "rccl-mi300x": 448}  # GB/s of a GPU


def require_kind(file, kind):
    """Refuses the output of a program for another kind of collective, as far as the output tells."""
    if kind not in PROGRAMS:
        raise Unusable(f"--kind: found '{kind}'; expected one of {', '.join(PROGRAMS)}.")
    text = pathlib.Path(file).read_text(errors="replace")
    started = re.search(r"Collective test starting: (\w+?)_perf", text)
    if started and started[1] != PROGRAMS[kind]:
        raise Unusable(
            f"{file}: found the output of {started[1]}_perf; expected that of {PROGRAMS[kind]}_perf, or another --kind."
        )
    operations = {
        words[3]
        for words in map(words_of, text.splitlines())
        if len(words) >= 8 and words[0].isdigit() and words[1].isdigit()
    }
    if operations and ("none" in operations) == (kind in REDUCING):
        raise Unusable(
            f"{file}: found the operation '{min(operations)}' (redop), which {PROGRAMS[kind]}_perf does not print; expected another --kind."
        )


def configuration(ranks, nodes, library, fabric, nic, correction=""):
    """A system that has such a group, with the links within nodes that the library was measured on."""
    dimensions = [
        f"{{shape: Switch, size: {ranks // nodes}, bandwidth: {LINKS.get(library, 450)} GB/s, latency: 500 ns}}"
    ]
    if nodes > 1:
        dimensions.append(f"{{shape: Switch, size: {nodes}, bandwidth: {nic}, latency: 1 us}}")
    return (
        f"system:\n  network: {{dimensions: [{', '.join(dimensions)}]}}\n"
        f"  collectives: {{library: {{name: {library}, fabric: {fabric}{correction}}}}}\n"
    )


def chosen(points):
    """The three points that correct a library best."""
    first = next((i for i, point in enumerate(points) if point[0] >= SMALLEST), 0)
    middle = min(range(len(points)), key=lambda i: abs(math.log(points[i][0] / MIDDLE)))
    return sorted({first, middle, len(points) - 1})


def errors(program, folder, text, kind, points, ranks):
    config = folder / "config.yaml"
    config.write_text(text)
    share = ranks if kind == "all-gather" else 1  # its size is that of the share of a member
    return [
        collective_seconds(program, config, kind, max(size // share, 1)) / seconds - 1 for size, seconds, _ in points
    ]


def calibrate(program, files, library, kind, fabric, nic):
    """Prints the library's errors with and without correction, and the keys that correct it."""
    if not library:
        raise Unusable(
            "orrery calibrate collectives: found no --library; expected the library to correct, such as nccl-h100."
        )
    for file in files:
        ranks, nodes, points = read(file)
        require_kind(file, kind)
        if len(ranks) % nodes:
            raise Unusable(f"{file}: found {len(ranks)} ranks on {nodes} hosts; expected as many on each.")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            three = folder / "three.txt"
            three.write_text("\n".join([*ranks, *(points[i][2] for i in chosen(points))]) + "\n")
            try:
                bare = errors(
                    program, folder, configuration(len(ranks), nodes, library, fabric, nic), kind, points, len(ranks)
                )
                corrected = errors(
                    program,
                    folder,
                    configuration(len(ranks), nodes, library, fabric, nic, f", {kind}: {three}"),
                    kind,
                    points,
                    len(ranks),
                )
            except Failed as error:
                own = error.message.replace(str(three), file).replace(
                    f"{folder / 'config.yaml'}", f"the library for {file}"
                )
                raise Failed(error.code, own) from error
        others = [error for i, error in enumerate(corrected) if i not in chosen(points)]
        print(
            f"{file}: {kind} among {len(ranks)} ranks on {nodes} {'node' if nodes == 1 else 'nodes'}, {len(points)} sizes"
        )
        print(f"  {'bytes':>12} {'measured':>12} {library:>12} {'3 points':>12}")
        for (size, seconds, _), plain, fitted in zip(points, bare, corrected):
            print(f"  {size:>12} {seconds * 1e6:>9.1f} µs {100 * plain:>+10.1f} % {100 * fitted:>+10.1f} %")
        print(f"  mean error: {library} as it is {100 * sum(map(abs, bare)) / len(bare):.1f} %", end="")
        print(
            f", corrected by three of the points {100 * sum(map(abs, others)) / len(others):.1f} % on the others"
            if others
            else ""
        )
    print("\nTo use all points:\n")
    names = ", ".join(f'"{file}"' for file in files)
    print(f"  system:\n    collectives:\n      library: {{name: {library}, fabric: {fabric}, {kind}: [{names}]}}")
