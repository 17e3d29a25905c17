"""Collectives over rings, rows and tori without a library: kind torus."""
from .support import expect, is_near, show_collective


def system(inputs):
    """Returns the configuration of a case. An axis of two NPUs has a link and the one that closes the ring: two links side by side."""
    wraps, both = inputs.get("wrap", True), inputs.get("bidirectional", True)
    bandwidth = inputs["bandwidth_GBps"] * inputs.get("efficiency", 1)
    dimensions = [
        {
            "shape": "Ring" if wraps else "Mesh",
            "size": size,
            "bandwidth": f"{bandwidth!r} GB/s",
            "latency": f"{inputs.get('latency_us', 0)!r} us",
            "links": 2 if size == 2 and wraps and both else 1,
        }
        for size in inputs["axes"]
    ]
    collectives = {
        "endpoint-delay": "0 ns",
        "directions": "both" if both else "one",
        "dimension-order": "all-axes" if inputs.get("all_axes", True) else "ascending",
    }
    return {"system": {"network": {"dimensions": dimensions}, "collectives": collectives}}


def check_torus(case, folder):
    inputs, expected = case["inputs"], case["expected"]["seconds"]
    size = inputs["bytes"]
    if inputs["collective"] in ("all-gather", "gather"):
        for members in inputs["axes"]:
            size //= members  # what a member brings
    seconds = show_collective(folder, system(inputs), inputs["collective"], size)["last_done_ps"] * 1e-12
    text = f"{seconds:.6g} s"
    expect(is_near(seconds, expected, case["tolerance"]), f"{text}; expected {expected:.6g} s")
    return text


KINDS = {"torus": check_torus}
