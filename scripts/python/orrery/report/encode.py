"""Encodes arrays of numbers as texts of JSON: little-endian, in base64."""
import base64

from ..packages import load

np = load("numpy")


def array(values, kind):
    """Returns {"kind", "data"} of an array; kind: a numpy type that JavaScript has, such as "float32" or "uint8", or "float24".

    "float24" is float32 without its last 8 binary digits: 3 bytes with a relative error of at most 2**-16.
    """
    if kind == "float24":
        bits = np.ascontiguousarray(values, dtype="<f4").view("<u4").astype(np.uint64) + 0x80
        values, kind = (np.minimum(bits, 0xFFFFFFFF) >> 8).astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3], "uint8"
        return {"kind": "float24", "data": base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")}
    values = np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<"))
    return {"kind": kind, "data": base64.b64encode(values.tobytes()).decode("ascii")}


def shares(values):
    """Returns shares of 0 to 1 as bytes."""
    return array(np.round(255 * np.clip(values, 0, 1)), "uint8")
