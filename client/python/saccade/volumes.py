"""Sends a volume to the daemon in parts, and assembles the response."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator

import grpc

from saccade import answers, inputs, types
from saccade.requests import Restore
from saccade.v1 import vision_pb2 as pb

# Called with the progress, from 0 to 1. An exception that it raises cancels the call.
Progress = Callable[[float], object]

_PART = 1 << 20


class Upload:
    """The messages of one call. A file is read while it is sent, so it may be larger than the memory."""

    def __init__(self, request: Restore) -> None:
        volume = request.volume
        self._path: pathlib.Path | None = None
        self._bytes = memoryview(b"")
        shape = None
        if isinstance(volume, (str, os.PathLike)):
            self._path = pathlib.Path(volume)
            size = self._path.stat().st_size
        elif inputs.is_file(volume):
            self._bytes = memoryview(volume).cast("B")  # type: ignore[arg-type]
            size = len(self._bytes)
        else:
            shape, self._bytes = inputs.raw_volume(volume)  # type: ignore[arg-type]
            size = len(self._bytes)
        self._header = pb.RestoreHeader(
            model=request.model,
            version=request.version,
            request_id=request.request_id,
            priority=request.priority,
            bytes=size,
            raw=shape,
        )
        if request.voxel_type is not None:
            self._header.restoration.type = inputs.voxel_type(request.voxel_type)
        # The error of reading the file: gRPC would report it as a cancelled call.
        self.failure: OSError | None = None

    def messages(self) -> Iterator[pb.RestoreRequest]:
        yield pb.RestoreRequest(header=self._header)
        if self._path is None:
            for at in range(0, len(self._bytes), _PART):
                yield pb.RestoreRequest(data=bytes(self._bytes[at : at + _PART]))
            return
        try:
            with open(self._path, "rb") as file:
                while part := file.read(_PART):
                    yield pb.RestoreRequest(data=part)
        except OSError as failure:
            self.failure = failure
            raise


    @contextlib.contextmanager
    def ending(self, call: grpc.Call) -> Iterator[None]:
        """Encloses the reading of the response: cancels the rest of the call; raises the error of reading the file."""
        try:
            yield
        except grpc.RpcError:
            if self.failure is not None:
                raise self.failure from None
            raise
        finally:
            call.cancel()


class Download:
    """Assembles the response."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._answer: pb.PredictResponse | None = None
        self._voxels = bytearray()

    def take(self, message: pb.RestoreResponse) -> None:
        part = message.WhichOneof("part")
        if part == "progress" and self._progress is not None:
            self._progress(message.progress.done)
        elif part == "answer":
            self._answer = message.answer
        elif part == "voxels":
            self._voxels += message.voxels

    def result(self) -> types.Restoration:
        if self._answer is None:
            raise RuntimeError("restore: the daemon ended the stream without a response")
        return answers.restoration(self._answer, self._voxels)
