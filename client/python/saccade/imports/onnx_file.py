"""Looks through an ONNX file: where its weights lie, and whether it was exported for a batch of one size, at its inputs or inside."""

from __future__ import annotations

import dataclasses
import mmap
import pathlib
import struct
from collections.abc import Iterator

from saccade.imports.failures import ImportFailure

# Bounds of the daemon's own reader: protobuf's size of a message, graphs inside of graphs, and tensors with external data.
_MAX_BYTES = 2 << 30
_MAX_DEPTH = 32
_MAX_TENSORS = 1 << 20
# ONNX's number of the type, and the most sizes of a shape that are read.
_INT64, _MAX_RANK = 7, 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# By message: its fields that hold messages which lead to tensors. The numbers are those of ONNX's own schema.
_INNER = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}


@dataclasses.dataclass
class OnnxFile:
    # The files that hold tensors, by their names relative to the graph's folder, each with the name of its first tensor.
    locations: dict[str, str] = dataclasses.field(default_factory=dict)
    # The inputs that a request gives, with the first size of each; None if it is open or not told.
    batches: dict[str, int | None] = dataclasses.field(default_factory=dict)
    # Where a batch of 1 is a constant inside of the graph, as a remark; empty if that is found nowhere.
    constant: str = ""

    @property
    def batch(self) -> int | None:
        """The size of a batch that all inputs have; None if one is open, or there is none."""
        sizes = set(self.batches.values())
        return sizes.pop() if len(sizes) == 1 else None


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The numbers of a message's fields with their values: numbers, or bytes; fixed numbers are skipped."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while shift < 64:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & (1 << 64) - 1
            shift += 7
        raise ValueError("a number has more than ten bytes")

    while at < len(message):
        tag = varint()
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            yield number, varint()
        elif wire in (_BYTES, _FIXED64, _FIXED32):
            size = varint() if wire == _BYTES else 8 if wire == _FIXED64 else 4
            if size > len(message) - at:
                raise ValueError(f"{size} bytes should follow, but there are {len(message) - at}")
            at += size
            if wire == _BYTES:
                yield number, message[at - size : at]
        else:
            raise ValueError("a field is of an unknown kind")


def _bytes_of(message: memoryview, number: int) -> memoryview:
    """The last field of this number that holds bytes; empty if there is none."""
    found = memoryview(b"")
    for one, value in _fields(message):
        if one == number and isinstance(value, memoryview):
            found = value
    return found


def _text(value: memoryview) -> str:
    return bytes(value).decode("utf-8", errors="surrogateescape")


class _Look:
    def __init__(self) -> None:
        self.found = OnnxFile()
        self._tensors = 0

    def message(self, kind: str, content: memoryview, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ValueError(f"graphs are inside of graphs more than {_MAX_DEPTH} deep")
        inner = _INNER[kind]
        for number, value in _fields(content):
            if number not in inner or not isinstance(value, memoryview):
                continue
            if inner[number] == "tensor":
                self._tensor(value)
            else:
                self.message(inner[number], value, depth + (inner[number] == "graph"))

    def inputs(self, graph: memoryview) -> None:
        """Old exporters list initializers among the inputs."""
        initializers = {_text(_bytes_of(value, 8)) for number, value in _fields(graph) if number == 5 and isinstance(value, memoryview)}
        for number, value in _fields(graph):
            if number == 11 and isinstance(value, memoryview) and (name := _text(_bytes_of(value, 1))) not in initializers:
                self.found.batches[name] = _first_size(_bytes_of(_bytes_of(_bytes_of(value, 2), 1), 2))

    def _tensor(self, content: memoryview) -> None:
        entries = [value for number, value in _fields(content) if number == 13 and isinstance(value, memoryview)]
        if not entries:
            return
        self._tensors += 1
        if self._tensors > _MAX_TENSORS:
            raise ValueError(f"more than {_MAX_TENSORS} tensors have external data")
        name = _text(_bytes_of(content, 8))
        locations = [_text(_bytes_of(entry, 2)) for entry in entries if bytes(_bytes_of(entry, 1)) == b"location"]
        if len(locations) != 1:
            raise ValueError(f"the external data of tensor '{name}' has {len(locations)} locations; expected one")
        self.found.locations.setdefault(locations[0], name)


def _first_size(shape: memoryview) -> int | None:
    for number, value in _fields(shape):
        if number == 1 and isinstance(value, memoryview):
            size = dict(_fields(value)).get(1, 0)
            return size if isinstance(size, int) and 0 < size < 1 << 63 else None
    return None


# Operators whose outputs hold sizes, not what the pictures hold.
_OF_SIZES = ("Shape", "Size")


def _varints(packed: memoryview) -> list[int]:
    """The numbers of a packed field."""
    found, at = [], 0
    while at < len(packed):
        value = shift = 0
        while packed[at] >= 0x80:
            value, shift, at = value | (packed[at] & 0x7F) << shift, shift + 7, at + 1
        found.append((value | packed[at] << shift) & (1 << 64) - 1)
        at += 1
    return found


def _numbers(message: memoryview, number: int) -> list[int]:
    """The values of a repeated field of integers."""
    found: list[int] = []
    for one, value in _fields(message):
        if one == number:
            found += _varints(value) if isinstance(value, memoryview) else [value]
    return [value - (1 << 64) if value >> 63 else value for value in found]


def _integers(tensor: memoryview) -> list[int]:
    """The values of a small tensor of INT64; empty if it is another one."""
    raw = bytes(_bytes_of(tensor, 9)[: 8 * _MAX_RANK])
    if _numbers(tensor, 2)[-1:] != [_INT64]:
        return []
    return list(struct.unpack(f"<{len(raw) // 8}q", raw[: len(raw) // 8 * 8])) if raw else _numbers(tensor, 7)


class _Node:
    def __init__(self, content: memoryview) -> None:
        self.inputs, self.outputs = ([_text(value) for one, value in _fields(content) if one == number and isinstance(value, memoryview)]
                                     for number in (1, 2))  # fmt: skip
        self.operator, self.name = _text(_bytes_of(content, 4)), _text(_bytes_of(content, 3))
        self._attributes = [value for one, value in _fields(content) if one == 5 and isinstance(value, memoryview)]

    def attribute(self, name: str) -> memoryview:
        return next((one for one in self._attributes if _text(_bytes_of(one, 1)) == name), memoryview(b""))


def _keeps_one(node: _Node, constants: dict[str, memoryview], dependent: set[str]) -> str:
    """Returns how the node makes a batch of 1 of any batch, or takes no other; empty if it does not. A -1 before the last size may be the
    batch, where it is not the first size."""
    if node.operator == "Reshape" and len(node.inputs) == 2 and node.inputs[0] in dependent and node.inputs[1] in constants:
        shape = _integers(constants[node.inputs[1]])
        if len(shape) > 1 and shape[0] == 1 and -1 not in shape[:-1]:
            return f"gives it the shape {shape}"
    if node.operator == "Concat" and _numbers(node.attribute("axis"), 3)[-1:] not in ([], [0]) and dependent.intersection(node.inputs):
        shapes = [_numbers(constants[name], 1) for name in node.inputs if name in constants]
        if any(len(shape) > 1 and shape[0] == 1 for shape in shapes):
            return "joins it to a constant"
    return ""


def _constant_batch(graph: memoryview, pictures: set[str]) -> str:
    """Returns a remark on the first node that fixes the batch of the inputs `pictures` to 1; empty if none is seen to."""
    dependent, constants = set(pictures), {}
    for number, value in _fields(graph):
        if number == 5 and isinstance(value, memoryview):
            constants[_text(_bytes_of(value, 8))] = value
    # A node comes after those whose outputs it reads.
    for number, value in _fields(graph):
        if number != 1 or not isinstance(value, memoryview):
            continue
        node = _Node(value)
        if node.operator == "Constant" and node.outputs:
            constants[node.outputs[0]] = _bytes_of(node.attribute("value"), 5)
        how = _keeps_one(node, constants, dependent)
        if how:
            return f"its node {node.name or node.outputs[0]} ({node.operator}) {how}"
        if node.operator not in _OF_SIZES and dependent.intersection(node.inputs):
            dependent.update(node.outputs)
    return ""


def look(path: pathlib.Path) -> OnnxFile:
    """Raises ImportFailure if the file is no ONNX model, or is cut short."""
    size = path.stat().st_size
    if not 0 < size <= _MAX_BYTES:
        raise ImportFailure(f"{path} has {size} bytes; expected an ONNX model of 1 to {_MAX_BYTES}, with the rest as external data")
    found = _Look()
    try:
        with path.open("rb") as file:
            # Unmapped when the last view of it is gone.
            _look_through(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), found)
    except (ValueError, IndexError) as error:
        why = "it ends within a number" if isinstance(error, IndexError) else str(error)
        raise ImportFailure(f"{path} is no ONNX model, or is cut short: {why}; copy or export it again") from None
    return found.found


def _look_through(whole: memoryview, found: _Look) -> None:
    graph = _bytes_of(whole, 7)
    if not graph:
        raise ValueError("it has no graph")
    found.message("model", whole, 0)
    found.inputs(graph)
    found.found.constant = _constant_batch(graph, set(found.found.batches))
