"""Arranges the links of the congestion-aware network as maps: matrices in which every link has one cell."""
import collections

from .packages import load

np = load("numpy")

# A quantity: what it is, its unit ("%" of the simulated time), and its values of the table of links.
Quantity = collections.namedtuple("Quantity", "title unit values")
QUANTITIES = {
    "busy": Quantity("share of the time in which links were busy", "%", lambda links: 100 * links["utilisation"]),
    "queueing": Quantity("mean time that messages waited for links", "ps", lambda links: links["mean_wait"]),
    "bytes": Quantity("data that links carried", "byte", lambda links: links["bytes"]),
    "peak": Quantity("most messages that waited for a link at one time", "messages", lambda links: links["peak_queue"]),
}
# A map: its title, a matrix (NaN: no link there, UNUSED: a link that carried nothing), names of rows and columns, what stands below
# columns, and what NaN means to a reader.
Map = collections.namedtuple("Map", "title matrix row column ticks absent", defaults=[None, "no link"])
UNUSED = -1.0
MOST_CELLS = 512  # of a side of a map: more are joined, and the largest of those that are joined is shown


def position(npu, size, stride):
    return npu // stride % size


def group(npu, size, stride):
    """Which group of NPUs an NPU belongs to, of those that a dimension connects."""
    return npu // (stride * size) * stride + npu % stride


def maps_of_ring(shape, size, stride, num_npus, links, values):
    """A map for each direction: a row for each group of the dimension, a column for each NPU in it that a link leaves from."""
    source, target = links["from"].to_numpy(), links["to"].to_numpy()
    is_up = (position(source, size, stride) + 1) % size == position(target, size, stride)
    maps = []
    for title, chosen, gap in (("to the next NPU", is_up, size - 1), ("to the previous NPU", ~is_up, 0)):
        matrix = np.full((num_npus // size, size), UNUSED)
        if shape == "Mesh":
            matrix[:, gap] = np.nan  # a mesh has ends
        matrix[group(source[chosen], size, stride), position(source[chosen], size, stride)] = values[chosen]
        maps.append(Map(title, matrix, "group of NPUs", "position of the NPU in its group"))
    return maps[:1] if size == 2 else maps


def maps_of_all_to_all(size, stride, num_npus, links, values):
    """One map: a row for each group of the dimension, a column for each link of a group, by the positions that it leads from and to."""
    source, target = links["from"].to_numpy(), links["to"].to_numpy()
    start, end = position(source, size, stride), position(target, size, stride)
    matrix = np.full((num_npus // size, size * (size - 1)), UNUSED)
    matrix[group(source, size, stride), start * (size - 1) + end - (end > start)] = values
    ticks = [f"{a}→{b}" for a in range(size) for b in range(size) if a != b]
    return [Map("links of each group", matrix, "group of NPUs", "link, from position → to position", ticks)]


def spelt(kind):
    """The name of a kind of switch, as a reader knows it, for one of them and for several."""
    name = f"{kind} switch" if kind in ("edge", "aggregation", "core") else kind
    return name, name + ("es" if name.endswith("switch") else "s")


def maps_of_switches(links, values):
    """A map for each kind of link: a row for each switch, a column for each of its links of this kind, by the other end."""
    ends = {end: [name.rpartition(" ") for name in links[f"{end}_name"]] for end in ("from", "to")}
    kinds = {end: np.array([kind for kind, _, _ in found], dtype=object) for end, found in ends.items()}
    numbers = {end: np.array([int(number) for _, _, number in found]) for end, found in ends.items()}
    maps = []
    for pair in dict.fromkeys(zip(kinds["from"], kinds["to"])):
        chosen = (kinds["from"] == pair[0]) & (kinds["to"] == pair[1])
        of_row, of_column = ("to", "from") if pair[0] == "NPU" else ("from", "to")
        row, other = numbers[of_row][chosen], numbers[of_column][chosen]
        order = np.lexsort((other, row))
        column = np.empty(len(row), dtype=int)
        column[order] = np.arange(len(row)) - np.searchsorted(row[order], row[order])
        matrix = np.full((row.max() + 1, column.max() + 1), np.nan)
        matrix[row, column] = values[chosen]
        name, end = (pair[1], pair[0]) if of_row == "to" else pair
        title = f"{spelt(pair[0])[0] if pair[1] == 'NPU' else pair[0]} to {spelt(pair[1])[0]}"
        maps.append(
            Map(
                title,
                matrix,
                spelt(name)[0],
                "its NPUs" if end == "NPU" else f"its links {of_column} {spelt(end)[1]}",
                absent="no link that carried data",
            )
        )
    return maps


def maps_of(shape, size, stride, num_npus, links, values):
    """Returns the maps of one dimension.

    shape, size: of the dimension. stride: the product of the sizes of the dimensions before it. links: the rows of Results.links of
    this dimension, and `values` of each.
    """
    if shape in ("Ring", "Mesh"):
        return maps_of_ring(shape, size, stride, num_npus, links, values)
    if shape == "FullyConnected":
        return maps_of_all_to_all(size, stride, num_npus, links, values)
    return maps_of_switches(links, values)


def joined(matrix, most=MOST_CELLS):
    """Returns (matrix, rows, columns that became one): a matrix of more than `most` rows or columns with neighbours joined, the largest of them."""
    joins = [-(-side // most) for side in matrix.shape]
    if joins == [1, 1]:
        return matrix, joins
    padded = np.pad(matrix, [(0, -side % join) for side, join in zip(matrix.shape, joins)], constant_values=np.nan)
    blocks = padded.reshape(padded.shape[0] // joins[0], joins[0], padded.shape[1] // joins[1], joins[1])
    return np.fmax.reduce(np.fmax.reduce(blocks, axis=3), axis=1), joins
