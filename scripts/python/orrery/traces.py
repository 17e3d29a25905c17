"""Writes execution traces of one's own: what each NPU computes, sends and waits for, as Chakra execution traces.

    from orrery import traces
    workload = traces.Workload(num_npus=2)
    for npu in workload.npus:
        forward = npu.compute("forward", flops=2e12, bytes=3e9)
        npu.collective("gradients", "all-reduce", size=1 << 30, after=[forward])
    workload.write("traces/mine")

docs/inputs.md has an example that runs. It needs the package protobuf (Debian: python3-protobuf).
"""
import json
import os
import pathlib

from .errors import TraceError
from .packages import load

KINDS = {
    "all-reduce": 0,
    "reduce": 1,
    "all-gather": 2,
    "gather": 3,
    "scatter": 4,
    "broadcast": 5,
    "all-to-all": 6,
    "reduce-scatter": 7,
    "barrier": 9,
}
LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = 2, 3, 4, 5, 6, 7  # node types of Chakra's schema
MOST_BYTES = 1 << 62
PS_PER_US = 10**6

_schema = None


def _messages():
    """Returns the classes of the messages GlobalMetadata and Node of Chakra's schema, version 0.0.4, as far as traces need them."""
    global _schema
    if _schema is None:
        load("google.protobuf")
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        types = descriptor_pb2.FieldDescriptorProto
        file = descriptor_pb2.FileDescriptorProto(name="orrery_traces.proto", package="orrery_traces", syntax="proto3")

        def message(name, *fields):
            made = file.message_type.add(name=name)
            for field, number, kind, repeated in fields:
                label = types.LABEL_REPEATED if repeated else types.LABEL_OPTIONAL
                if isinstance(kind, str):
                    made.field.add(
                        name=field,
                        number=number,
                        type=types.TYPE_MESSAGE,
                        type_name=f".orrery_traces.{kind}",
                        label=label,
                    )
                else:
                    made.field.add(name=field, number=number, type=kind, label=label)

        def value(attribute, name, number, kind):
            """Adds a value, of which an attribute has one."""
            field = attribute.field.add(
                name=name,
                number=number,
                label=types.LABEL_OPTIONAL,
                oneof_index=0,
                type=types.TYPE_MESSAGE if isinstance(kind, str) else kind,
            )
            if isinstance(kind, str):
                field.type_name = f".orrery_traces.{kind}"

        message("StringList", ("values", 1, types.TYPE_STRING, True))
        message("Attribute", ("name", 1, types.TYPE_STRING, False))
        attribute = file.message_type[-1]
        attribute.oneof_decl.add(name="value")
        for field in (
            ("int32_val", 7, types.TYPE_INT32),
            ("int64_val", 9, types.TYPE_INT64),
            ("uint32_val", 11, types.TYPE_UINT32),
            ("bool_val", 27, types.TYPE_BOOL),
            ("string_val", 29, types.TYPE_STRING),
            ("string_list", 30, "StringList"),
        ):
            value(attribute, *field)
        message("GlobalMetadata", ("version", 1, types.TYPE_STRING, False))
        message(
            "Node",
            ("id", 1, types.TYPE_UINT64, False),
            ("name", 2, types.TYPE_STRING, False),
            ("type", 3, types.TYPE_INT32, False),
            ("data_deps", 5, types.TYPE_UINT64, True),
            ("duration_micros", 7, types.TYPE_UINT64, False),
            ("attr", 10, "Attribute", True),
        )
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        classes = message_factory.MessageFactory(pool)
        _schema = [
            classes.GetPrototype(pool.FindMessageTypeByName(f"orrery_traces.{name}"))
            for name in ("GlobalMetadata", "Node")
        ]
    return _schema


def _framed(message):
    """Returns a message after its length, as files hold it."""
    body, length = message.SerializeToString(deterministic=True), bytearray()
    size = len(body)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes(length) + bytes([size]) + body


def _whole(what, number, least=0, most=MOST_BYTES):
    """Returns a number as an int. Raises TraceError unless it is a whole one from `least` to `most`."""
    if (
        isinstance(number, bool)
        or not isinstance(number, (int, float))
        or number != number
        or int(number) != number
        or not least <= number <= most
    ):
        raise TraceError(f"{what} is {number!r}; expected a whole number from {least} to {most}")
    return int(number)


class Group:
    """A process group: its name and its members in their order. Workload.group makes it."""

    def __init__(self, name, members):
        self.name, self.members = name, members


class Npu:
    """The trace of one NPU. Each method adds a node and returns it, for the `after` of later nodes. Workload makes it."""

    def __init__(self, workload, number):
        self.workload, self.number, self.nodes = workload, number, []

    def compute(self, name, flops=0, bytes=0, seconds=None, **more):  # noqa: A002, the field's own word
        """Adds a computation: operations and bytes of local memory for the roofline, or its time for `compute.model: recorded`."""
        return self._add(
            name,
            COMPUTE,
            seconds,
            more,
            num_ops=("int64_val", _whole("flops", flops)),
            tensor_size=("int64_val", _whole("bytes", bytes)),
        )

    def host(self, name, seconds, **more):
        """Adds work of the CPU, which takes its time whatever the compute model."""
        return self._add(name, COMPUTE, seconds, more, is_cpu_op=("bool_val", True))

    def collective(self, name, kind, size=0, group=None, seconds=None, priority=0, **more):
        """Adds a collective of a group, by default of all NPUs. `size` is in bytes: the shard of a member for all-gather and gather, else the
        whole buffer of a member; a barrier has none."""
        if kind not in KINDS:
            raise TraceError(f"collective {name!r}: found the kind {kind!r}; expected one of {', '.join(KINDS)}")
        if group is not None and self.workload.groups.get(getattr(group, "name", None)) is not group:
            raise TraceError(
                f"collective {name!r}: the group is none of this workload; expected what Workload.group returned, or None for all NPUs"
            )
        if group is not None and self.number not in group.members:
            raise TraceError(
                f"collective {name!r}: NPU {self.number} is no member of group {group.name!r}, which has {group.members}"
            )
        attributes = {"comm_type": ("int64_val", KINDS[kind])}
        if kind != "barrier":
            attributes["comm_size"] = ("int64_val", _whole(f"size of collective {name!r}", size, least=1))
        if group is not None:
            attributes["pg_name"] = ("string_val", group.name)
        if priority:
            attributes["comm_priority"] = ("int32_val", _whole("priority", priority, -(1 << 31) + 1, (1 << 31) - 1))
        return self._add(name, COLLECTIVE, seconds, more, **attributes)

    def send(self, name, to, size, tag=0, seconds=None, **more):
        """Adds a message to another NPU. It matches the receive there with the same tag, in order."""
        return self._message(name, SEND, self.number, to, size, tag, seconds, more)

    def receive(self, name, source, size, tag=0, seconds=None, **more):
        """Adds the receive of a message from another NPU."""
        return self._message(name, RECEIVE, source, self.number, size, tag, seconds, more)

    def load(self, name, size, **more):
        """Adds a read of `size` bytes of remote memory."""
        return self._add(
            name, LOAD, None, more, tensor_size=("int64_val", _whole(f"size of load {name!r}", size, least=1))
        )

    def store(self, name, size, **more):
        """Adds a write of `size` bytes to remote memory."""
        return self._add(
            name, STORE, None, more, tensor_size=("int64_val", _whole(f"size of store {name!r}", size, least=1))
        )

    def _message(self, name, kind, source, to, size, tag, seconds, more):
        most = self.workload.num_npus - 1
        source, to = _whole(f"source of message {name!r}", source, most=most), _whole(
            f"target of message {name!r}", to, most=most
        )
        if source == to:
            raise TraceError(f"message {name!r}: NPU {to} is its own peer; expected another NPU")
        return self._add(
            name,
            kind,
            seconds,
            more,
            comm_src=("uint32_val", source),
            comm_dst=("uint32_val", to),
            comm_tag=("uint32_val", _whole("tag", tag, most=(1 << 32) - 1)),
            comm_size=("int64_val", _whole(f"size of message {name!r}", size, least=1)),
        )

    def _add(self, name, kind, seconds, more, **attributes):
        """Adds a node. `more`: `after`, a node of this NPU on which it depends, or several; `stream`, the stream that it holds; `inputs` and `outputs`,
        {name: bytes} of tensors in local memory."""
        unknown = set(more) - {"after", "stream", "inputs", "outputs"}
        if unknown:
            raise TraceError(
                f"node {name!r}: unknown {', '.join(sorted(unknown))}; expected after, stream, inputs or outputs"
            )
        after = more.get("after", ())
        after = after if hasattr(after, "__iter__") else [after]
        for node in after:
            if not any(node is known for known in (self.nodes[node.id : node.id + 1] if hasattr(node, "id") else ())):
                raise TraceError(f"node {name!r} of NPU {self.number}: `after` has what is no earlier node of this NPU")
        node = _messages()[1](id=len(self.nodes), name=name, type=kind, data_deps=[earlier.id for earlier in after])
        attributes.setdefault("is_cpu_op", ("bool_val", False))
        if seconds is not None:
            if not 0 <= seconds < 9e6:
                raise TraceError(f"node {name!r}: found {seconds!r} seconds; expected 0 to 9 million")
            ps = round(seconds * 1e12)
            node.duration_micros = ps // PS_PER_US
            if ps % PS_PER_US:
                attributes["duration_ps"] = ("int64_val", ps)
        if more.get("stream") is not None:
            attributes["stream"] = ("uint32_val", _whole("stream", more["stream"], most=(1 << 32) - 1))
        for key, (field, value) in attributes.items():
            setattr(node.attr.add(name=key), field, value)
        if "inputs" in more or "outputs" in more:
            for key in ("inputs", "outputs"):
                listed = node.attr.add(name=key)
                for tensor, size in more.get(key, {}).items():
                    listed.string_list.values.extend([tensor, str(_whole(f"size of tensor {tensor!r}", size, least=1))])
        self.nodes.append(node)
        return node


class Workload:
    """The traces of all NPUs of a system, and their process groups."""

    def __init__(self, num_npus):
        self.num_npus = _whole("num_npus", num_npus, least=1, most=1 << 24)
        self.npus = [Npu(self, number) for number in range(self.num_npus)]
        self.groups = {}

    def group(self, name, members):
        """Returns a new process group with these NPUs as members."""
        members = [_whole(f"member of group {name!r}", member, most=self.num_npus - 1) for member in members]
        if not name or name in self.groups:
            raise TraceError(f"group {name!r}: expected a name that no other group has")
        if not members or len(set(members)) < len(members):
            raise TraceError(f"group {name!r} has the members {members}; expected one or more, each once")
        self.groups[name] = Group(name, members)
        return self.groups[name]

    def write(self, prefix, force=False):
        """Writes PREFIX.<npu>.et for each NPU and the groups to PREFIX.json. Makes the folder if need be. Raises FileExistsError if one of
        the files is there, unless `force`; what was there stays as it was if writing fails."""
        prefix = pathlib.Path(prefix)
        texts = {
            prefix.with_name(f"{prefix.name}.json"): json.dumps(
                {group.name: group.members for group in self.groups.values()}, indent=1
            ).encode()
            + b"\n"
        }
        metadata = _framed(_messages()[0](version="0.0.4"))
        paths = {npu: prefix.with_name(f"{prefix.name}.{npu.number}.et") for npu in self.npus}
        for path in [*texts, *paths.values()]:
            if path.exists() and not force:
                raise FileExistsError(f"{path}: exists already; force=True replaces it")
        prefix.parent.mkdir(parents=True, exist_ok=True)
        partial = {}
        try:
            for path in [*texts, *paths.values()]:
                partial[path] = path.with_name(f"{path.name}.partial.{os.getpid()}")
            for path, text in texts.items():
                partial[path].write_bytes(text)
            for npu, path in paths.items():
                with open(partial[path], "wb") as file:
                    file.write(metadata)
                    file.writelines(_framed(node) for node in npu.nodes)
            for path, made in partial.items():
                os.replace(made, path)
        finally:
            for made in partial.values():
                made.unlink(missing_ok=True)
