"""Writes and reads Chakra execution traces without the protobuf library.

A trace is a list of Node. The current layout (versions "0.0.4" and "1.0.0") and the layouts 0.0.1 and 0.0.3 can be written; the current
one can be read. A message comes after its length as a varint; the first message is the metadata, which layout 0.0.1 does not have."""
import gzip
import struct

INVALID, METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLL = range(8)
(
    ALL_REDUCE,
    REDUCE,
    ALL_GATHER,
    GATHER,
    SCATTER,
    BROADCAST,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    BARRIER,
) = range(10)


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field, value):
    return varint(field << 3) + varint(value)


def chunk(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, values):
    return chunk(field, b"".join(map(varint, values))) if values else b""


def framed(message):
    return varint(len(message)) + message


class Typed:
    """A value of an attribute with the field of the current schema that holds it, as Typed("int32", 5)."""

    FIELDS = {
        "double": 3,
        "float": 5,
        "int32": 7,
        "int64": 9,
        "uint32": 11,
        "uint64": 13,
        "sint32": 15,
        "sint64": 17,
        "fixed32": 19,
        "fixed64": 21,
        "sfixed32": 23,
        "sfixed64": 25,
        "bool": 27,
        "bool_list": 28,
        "string": 29,
        "string_list": 30,
        "bytes": 31,
    }

    def __init__(self, kind, value):
        self.kind, self.value = kind, value

    def encoded(self):
        field, value = self.FIELDS[self.kind], self.value
        if self.kind == "double":
            return varint(field << 3 | 1) + struct.pack("<d", value)
        if self.kind == "float":
            return varint(field << 3 | 5) + struct.pack("<f", value)
        if self.kind in ("fixed64", "sfixed64"):
            return varint(field << 3 | 1) + struct.pack("<q" if self.kind[0] == "s" else "<Q", value)
        if self.kind in ("fixed32", "sfixed32"):
            return varint(field << 3 | 5) + struct.pack("<i" if self.kind[0] == "s" else "<I", value)
        if self.kind in ("sint32", "sint64"):
            return integer(field, value << 1 ^ value >> 63)
        if self.kind == "bool_list":
            return chunk(field, packed(1, [int(v) for v in value]))
        if self.kind == "string_list":
            return chunk(field, b"".join(chunk(1, str(v)) for v in value)) if value else b""
        if self.kind in ("string", "bytes"):
            return chunk(field, value)
        return integer(field, int(value))


def typed(value):
    if isinstance(value, Typed):
        return value
    if isinstance(value, bool):
        return Typed("bool", value)
    if isinstance(value, str):
        return Typed("string", value)
    if isinstance(value, float):
        return Typed("double", value)
    if isinstance(value, (list, tuple)):
        return Typed("string_list" if not value or any(isinstance(v, str) for v in value) else "bool_list", value)
    return Typed("int64", value)


class Node:
    """A node. `duration` is in microseconds; attributes have their Chakra names, e.g. comm_size=1024, inputs=["x", 16, "w", "5.0"]."""

    def __init__(self, id, type, name="", data_deps=(), ctrl_deps=(), duration=0, **attributes):
        self.id, self.type, self.name = id, type, name or f"n{id}"
        self.data_deps, self.ctrl_deps, self.duration = list(data_deps), list(ctrl_deps), duration
        self.attributes = attributes

    def encoded(self):
        """Returns the message of the node in the current layout."""
        message = integer(1, self.id) + chunk(2, self.name) + integer(3, self.type)
        message += packed(4, self.ctrl_deps) + packed(5, self.data_deps)
        if self.duration:
            message += integer(7, self.duration)
        for name, value in self.attributes.items():
            message += chunk(10, chunk(1, name) + typed(value).encoded())
        return message

    def encoded_001(self):
        """Returns the message in layout 0.0.1: numbers in fields of their own, other node and collective types."""
        types = {INVALID: 0, MEM_LOAD: 1, MEM_STORE: 2, COMP: 3, SEND: 4, RECV: 5, COLL: 6}
        collectives = {ALL_REDUCE: 1, ALL_TO_ALL: 2, ALL_GATHER: 3, REDUCE_SCATTER: 4}
        fields = {"tensor_size": 6, "num_ops": 12, "comm_src": 16, "comm_dst": 17, "comm_size": 18, "comm_tag": 19}
        message = integer(1, self.id) + chunk(2, self.name) + integer(3, types[self.type])
        for dependency in self.data_deps + self.ctrl_deps:
            message += integer(4, dependency)
        if self.duration:
            message += integer(7, self.duration)
        for name, value in self.attributes.items():
            if name == "comm_type":
                message += integer(13, collectives[value])
            elif name == "involved_dim":
                for part in value:
                    message += integer(14, int(part))
            elif name in fields:
                message += integer(fields[name], value)
        return message

    def encoded_003(self):
        """Returns the message in layout 0.0.3: attributes in field 11, with a type in field 2 and an int64 in field 6."""
        collectives = {ALL_REDUCE: 0, ALL_TO_ALL: 1, ALL_GATHER: 2, REDUCE_SCATTER: 3, BROADCAST: 4}
        message = integer(1, self.id) + chunk(2, self.name) + integer(3, self.type)
        for dependency in self.data_deps + self.ctrl_deps:
            message += integer(4, dependency)
        attributes = dict(self.attributes)
        if self.duration:
            attributes["runtime"] = self.duration
        for name, value in attributes.items():
            value = collectives[value] if name == "comm_type" else value
            message += chunk(11, chunk(1, name) + integer(2, 3) + integer(6, value))
        return message


def encode(nodes, version="0.0.4"):
    """Returns the bytes of a trace. Without a version there is no metadata."""
    if version == "0.0.1":
        return b"".join(framed(node.encoded_001()) for node in nodes)
    if version == "0.0.3":
        return framed(chunk(1, version)) + b"".join(framed(node.encoded_003()) for node in nodes)
    head = framed(chunk(1, version)) if version is not None else b""
    return head + b"".join(framed(node.encoded()) for node in nodes)


def write(path, nodes, version="0.0.4", compressed=False):
    """Writes a trace, with `compressed` as gzip."""
    data = encode(nodes, version)
    with open(path, "wb") as file:
        file.write(gzip.compress(data) if compressed else data)


# ---- reading the current layout ----


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        elif key & 7 == 2:
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if key & 7 == 1 else 4
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def numbers(value):
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        out.append(number)
    return out


def read(path):
    """Returns the nodes of a trace in the current layout with metadata. Keeps attributes that are whole numbers, booleans, strings and
    lists of booleans or strings, and leaves others out."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    size, at = read_varint(data, 0)
    at += size
    nodes = []
    while at < len(data):
        size, at = read_varint(data, at)
        nodes.append(decoded(data[at : at + size]))
        at += size
    return nodes


def decoded(message):
    """Returns the node of a message in the current layout."""
    kinds = {field: kind for kind, field in Typed.FIELDS.items()}
    node = Node(0, INVALID)
    for field, value in fields(message):
        if field == 1:
            node.id = value
        elif field == 2:
            node.name = value.decode()
        elif field == 3:
            node.type = value
        elif field == 4:
            node.ctrl_deps += numbers(value)
        elif field == 5:
            node.data_deps += numbers(value)
        elif field == 7:
            node.duration = value
        elif field == 10:
            parts = dict(fields(value))
            name = parts[1].decode()
            kind = next((kinds[f] for f in parts if f in kinds), None)
            if kind in ("int32", "int64", "uint32", "uint64"):
                node.attributes[name] = Typed(kind, parts[Typed.FIELDS[kind]])
            elif kind == "bool":
                node.attributes[name] = bool(parts[27])
            elif kind == "bool_list":
                node.attributes[name] = [bool(number) for _, listed in fields(parts[28]) for number in numbers(listed)]
            elif kind == "string":
                node.attributes[name] = parts[29].decode()
            elif kind == "string_list" or name in ("inputs", "outputs"):
                node.attributes[name] = [text.decode() for _, text in fields(parts.get(30, b""))]
    return node
