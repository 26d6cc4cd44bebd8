"""Reads an answer that was saved, in whichever form, with its attestation and the digest of its canonical form."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import pathlib
from typing import Any

import numpy
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from saccade.prove.failures import ProveError
from saccade.replay import tensors
from saccade.v1 import vision_pb2 as pb

_MAX_FILE = 2**31 - 1
_PREFIX = "attestation"


@dataclasses.dataclass(frozen=True)
class Attestation:
    statement: bytes
    signature: bytes
    public_key: bytes


@dataclasses.dataclass(frozen=True)
class Saved:
    """Of an answer without a statement, `attestation` is None."""

    model: str
    version: int
    attestation: Attestation | None
    answer_sha256: str


def vision(message: pb.PredictResponse) -> Saved:
    """Empties the message of what its digest does not cover."""
    signed = message.attestation
    attestation = None
    if message.HasField("attestation"):
        attestation = Attestation(signed.statement.encode(), signed.signature, signed.public_key)
    model, version = message.model, message.version
    for field in ("model", "version", "request_id", "timings", "batch_size", "attestation"):
        message.ClearField(field)
    canonical = message.SerializeToString(deterministic=True)
    return Saved(model, version, attestation, hashlib.sha256(canonical).hexdigest())


def _named(model: str, version: int, outputs: tuple[tensors.Tensor, ...], parameters: dict[str, str]) -> Saved:
    attestation = None
    if _PREFIX in parameters:
        try:
            signature, public_key = (
                base64.b64decode(parameters.get(f"{_PREFIX}_{part}", ""), validate=True) for part in ("signature", "public_key")
            )
        except ValueError:
            raise ValueError("its signature or its public key is not base64") from None
        attestation = Attestation(parameters[_PREFIX].encode(), signature, public_key)
    described = [
        {"name": one.name, "datatype": one.datatype, "shape": list(one.shape), "sha256": hashlib.sha256(one.data).hexdigest()}
        for one in outputs
    ]
    text = json.dumps(described, separators=(",", ":"))
    return Saved(model, version, attestation, hashlib.sha256(text.encode()).hexdigest())


def _with_texts(tensor: tensors.Tensor) -> tensors.Tensor:
    """BYTES that came as JSON, in the form in which they are digested: each after its length."""
    if tensor.datatype != "BYTES":
        return tensor
    texts = (str(text).encode() for text in numpy.ravel(numpy.array(json.loads(tensor.data), object)))
    return dataclasses.replace(tensor, data=b"".join(len(text).to_bytes(4, "little") + text for text in texts))


def _number(text: str) -> int | float:
    # json reads this as an integer, which has no sign.
    return -0.0 if text == "-0" else int(text)


def _from_json(content: bytes) -> Saved:
    text = content.decode("utf-8", "surrogateescape")
    read, end = json.JSONDecoder(parse_int=_number).raw_decode(text)
    if not isinstance(read, dict):
        raise ValueError("its JSON is no object")
    if "outputs" not in read:
        return vision(json_format.ParseDict(read, pb.PredictResponse()))
    length = len(text[:end].encode("utf-8", "surrogateescape"))
    answer = tensors.from_json(content, length)
    binary = {one["name"] for one in read["outputs"] if "binary_data_size" in one.get("parameters", {})}
    outputs = tuple(one if one.name in binary else _with_texts(one) for one in answer.tensors)
    parameters = {name: value for name, value in read.get("parameters", {}).items() if isinstance(value, str)}
    return _named(read["model_name"], answer.version, outputs, parameters)


def _text_parameters(answer: bytes) -> tuple[str, dict[str, str]]:
    """The model's name and the text parameters of an inference.ModelInferResponse."""
    model, parameters = "", {}
    for number, value in tensors.fields(answer):
        if number == 1:
            model = bytes(value).decode()  # type: ignore[arg-type]
        elif number == 4:
            entry = dict(tensors.fields(bytes(value)))  # type: ignore[arg-type]
            text = dict(tensors.fields(bytes(entry.get(2, b"")))).get(3)  # type: ignore[arg-type]
            if isinstance(text, bytes):
                parameters[bytes(entry.get(1, b"")).decode()] = text.decode()  # type: ignore[arg-type]
    return model, parameters


def _from_message(content: bytes) -> Saved:
    try:
        message = pb.PredictResponse.FromString(content)
        if message.HasField("attestation") or message.WhichOneof("result"):
            return vision(message)
    except DecodeError:
        pass
    answer = tensors.from_message(content)
    model, parameters = _text_parameters(content)
    return _named(model, answer.version, answer.tensors, parameters)


def parse(content: bytes) -> Saved:
    """Raises ValueError if it is no answer."""
    try:
        return _from_json(content) if content.lstrip()[:1] == b"{" else _from_message(content)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, DecodeError, json_format.ParseError) as error:
        raise ValueError(f"cannot be read: {error}") from None


def read(path: pathlib.Path) -> Saved:
    """Raises ProveError if the file is no answer with a statement."""
    expected = (
        "expected the body of a REST answer, a message PredictResponse or ModelInferResponse, or what `saccade detect -o` "
        "wrote as .attested"
    )
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_FILE)
    except OSError as error:
        raise ProveError(f"{path} cannot be read: {error.strerror}; {expected}") from None
    try:
        saved = parse(content)
    except ValueError as error:
        raise ProveError(f"{path} {error}; {expected}") from None
    if saved.attestation is None:
        raise ProveError(
            f"{path} carries no statement; ask a model whose configuration has the parameter attest, of a daemon with --attest-key"
        )
    return saved


@dataclasses.dataclass(frozen=True)
class Statement:
    facts: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]


_REQUIRED: dict[str, type] = {
    "key_sha256": str, "time": str, "model": str, "version": int, "weights_sha256": str, "configuration_sha256": str, "build": str,
    "instruction_set": str, "precision": str, "protocol": str, "answer_sha256": str,
}


def statement_of(attestation: Attestation) -> Statement:
    try:
        facts = json.loads(attestation.statement)
    except (ValueError, RecursionError):
        raise ProveError("the statement is not JSON; the answer was damaged") from None
    if not isinstance(facts, dict) or facts.get("saccade_attestation") != 1:
        raise ProveError("the statement is of a format that this version does not know; expected saccade_attestation 1")
    for name, kind in _REQUIRED.items():
        if not isinstance(facts.get(name), kind) or isinstance(facts[name], bool):
            raise ProveError(f"the statement has no {name}; the answer was damaged")
    return Statement(facts)
