"""Encodes arrays of numbers as texts of JSON: little-endian, in base64."""
import base64

from ..packages import load

np = load("numpy")


def array(values, kind):
    """Returns {"kind", "data"} of an array; kind: a numpy type that JavaScript has, such as "float32" or "uint8"."""
    values = np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<"))
    return {"kind": kind, "data": base64.b64encode(values.tobytes()).decode("ascii")}


def shares(values):
    """Returns shares of 0 to 1 as bytes."""
    return array(np.round(255 * np.clip(values, 0, 1)), "uint8")
