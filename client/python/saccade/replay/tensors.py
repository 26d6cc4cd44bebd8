"""Answers of the Open Inference Protocol as tensors, from its messages and from its JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Iterator

import numpy

_TYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1", "INT16": "<i2",
    "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}


@dataclasses.dataclass(frozen=True)
class Tensor:
    name: str
    datatype: str
    shape: tuple[int, ...]
    # Row-major and little-endian.
    data: bytes

    def values(self) -> numpy.ndarray | None:
        """Null for texts and other types that numpy has not."""
        kind = _TYPES.get(self.datatype)
        if kind is None:
            return None
        return numpy.frombuffer(self.data, kind).reshape(self.shape)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
    raise ValueError("has a number that does not end")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message: numbers, and the bytes of everything else."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError("has a field of an unknown kind")
        if at + length > len(data):
            raise ValueError("is cut")
        yield tag >> 3, data[at : at + length]
        at += length


def _shape(data: int | bytes) -> Iterator[int]:
    if isinstance(data, int):
        yield data
        return
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _tensor(message: bytes) -> Tensor:
    name = datatype = ""
    shape: list[int] = []
    contents = b""
    for number, value in fields(message):
        if number == 1:
            name = bytes(value).decode()  # type: ignore[arg-type]
        elif number == 2:
            datatype = bytes(value).decode()  # type: ignore[arg-type]
        elif number == 3:
            shape.extend(_shape(value))
        elif number == 5:
            contents = bytes(value)  # type: ignore[arg-type]
    return Tensor(name, datatype, tuple(shape), contents)


@dataclasses.dataclass(frozen=True)
class TensorAnswer:
    version: int
    tensors: tuple[Tensor, ...]


def from_message(answer: bytes) -> TensorAnswer:
    """Reads an inference.ModelInferResponse. Raises ValueError if it is none."""
    version, outputs, raws = "", [], []
    try:
        for number, value in fields(answer):
            if number == 2:
                version = bytes(value).decode()  # type: ignore[arg-type]
            elif number == 5:
                outputs.append(_tensor(value))  # type: ignore[arg-type]
            elif number == 6:
                raws.append(value)
    except (IndexError, TypeError, UnicodeDecodeError):
        raise ValueError("is no answer of the Open Inference Protocol") from None
    if raws:
        outputs = [dataclasses.replace(one, data=raw) for one, raw in zip(outputs, raws)]
    return TensorAnswer(int(version) if version.isdigit() else 0, tuple(outputs))


def from_stream_message(answer: bytes) -> tuple[str, TensorAnswer]:
    """Reads an inference.ModelStreamInferResponse: its error, empty if there is none, and its answer."""
    error, inner = "", b""
    for number, value in fields(answer):
        if number == 1:
            error = bytes(value).decode(errors="replace")  # type: ignore[arg-type]
        elif number == 2:
            inner = bytes(value)  # type: ignore[arg-type]
    return error, from_message(inner)


def from_json(body: bytes, json_length: int | None) -> TensorAnswer:
    """Reads the body of a REST answer: JSON, of which `json_length` bytes are followed by binary data."""
    text = body if json_length is None else body[:json_length]
    read = json.loads(text)
    at, tensors = len(text), []
    for one in read["outputs"]:
        datatype, shape = one["datatype"], tuple(one["shape"])
        size = one.get("parameters", {}).get("binary_data_size")
        if size is not None:
            data, at = body[at : at + size], at + size
        elif datatype in _TYPES:
            data = numpy.array(one.get("data", []), _TYPES[datatype]).tobytes()
        else:
            data = json.dumps(one.get("data", [])).encode()
        tensors.append(Tensor(one["name"], datatype, shape, data))
    version = str(read.get("model_version", ""))
    return TensorAnswer(int(version) if version.isdigit() else 0, tuple(tensors))
