"""The request of a statement, with its inputs from files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from typing import Any, Iterator

from google.protobuf import descriptor as descriptors
from google.protobuf import json_format
from google.protobuf.message import Message

from saccade.prove.failures import ProveError
from saccade.prove.saved import Statement
from saccade.v1 import vision_pb2 as pb


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclasses.dataclass(frozen=True)
class Request:
    """What is asked again. Either `message` or `tensors` is set."""

    message: pb.PredictRequest | None
    # The request's JSON, and the bytes of its inputs.
    tensors: tuple[dict[str, Any], tuple[bytes, ...]] | None = None


def _as_element(data: bytes) -> bytes:
    """A file as the only element of a BYTES tensor."""
    return len(data).to_bytes(4, "little") + data


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProveError(f"--picture {path} cannot be read: {error.strerror}; name the file that was sent") from None


def match(statement: Statement, paths: list[pathlib.Path]) -> tuple[tuple[bytes, ...] | None, str]:
    """The bytes of each input that was sent, found among the files by their digests; or None, and what differs."""
    sums = statement.facts.get("inputs_sha256")
    if not isinstance(sums, list) or not all(isinstance(one, str) for one in sums):
        return None, "the request has more inputs than a statement names; it cannot be recomputed"
    known: dict[str, bytes] = {}
    for path in paths:
        data = _read(path)
        known[_sum(data)] = data
        known[_sum(_as_element(data))] = _as_element(data)
    missing = [one for one in sums if one not in known]
    if missing:
        given = ", ".join(f"{path} {_sum(_read(path))}" for path in paths) or "none was given"
        return None, f"the input that was sent has the SHA-256 {missing[0]}; {given}"
    used = {_sum(known[one]) for one in sums}
    for path in paths:
        data = _read(path)
        if not {_sum(data), _sum(_as_element(data))} & used:
            return None, f"{path} was not part of the request"
    return tuple(known[one] for one in sums), ""


def _bytes_fields(message: Message) -> Iterator[tuple[Message, str]]:
    """The fields of type bytes that are set, in the order of a statement's digests: by their numbers, depth first."""
    for field in sorted(message.DESCRIPTOR.fields, key=lambda one: one.number):
        # Fields without presence are set as far as one can see; inputs are never empty.
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.type == descriptors.FieldDescriptor.TYPE_BYTES:
            yield message, field.name
        elif field.message_type is not None:
            for one in (value,) if isinstance(value, Message) else value:
                yield from _bytes_fields(one)


def request_of(statement: Statement, inputs: tuple[bytes, ...]) -> Request:
    described = statement.facts.get("request")
    if not isinstance(described, dict):
        raise ProveError("the request's options are too long for a statement, which has only their digest; it cannot be recomputed")
    if statement["protocol"] == "inference":
        if len(described.get("inputs", ())) != len(inputs):
            raise ProveError("the statement names another number of inputs than of their digests; it was made by another program")
        return Request(None, (described, inputs))
    try:
        message = json_format.ParseDict(described, pb.PredictRequest())
    except json_format.ParseError as error:
        raise ProveError(f"the statement's request cannot be read: {error}; use the Python package of the daemon's version") from None
    fields = list(_bytes_fields(message))
    if statement["protocol"] != "saccade.v1" or len(fields) != len(inputs):
        raise ProveError("the statement's request is not one that this version knows; use the Python package of the daemon's version")
    for (holder, name), data in zip(fields, inputs):
        setattr(holder, name, data)
    message.model, message.version = statement["model"], statement["version"]
    return Request(message)


def inference_body(described: dict[str, Any], inputs: tuple[bytes, ...]) -> tuple[bytes, int]:
    """The body of a REST request that has all tensors as binary data, and the length of its JSON."""
    tensors = [dict(one, parameters={"binary_data_size": len(data)}) for one, data in zip(described["inputs"], inputs)]
    head: dict[str, Any] = {"inputs": tensors, "parameters": {"binary_data_output": True}}
    outputs = []
    for one in described.get("outputs", ()):
        parameters: dict[str, Any] = {"binary_data": True}
        if one.get("classes"):
            parameters["classification"] = one["classes"]
        outputs.append({"name": one["name"], "parameters": parameters})
    if outputs:
        head["outputs"] = outputs
    text = json.dumps(head).encode()
    return text + b"".join(inputs), len(text)
