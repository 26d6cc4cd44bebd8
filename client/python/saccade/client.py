"""The client for ordinary code; see aio.py for asyncio's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import grpc
from typing_extensions import Self

from saccade import answers, inputs, requests, types, volumes
from saccade.connection import TLS, Connection
from saccade.errors import error_of
from saccade.masks import MaskForm
from saccade.requests import Head
from saccade.retry import Attempts, Retry
from saccade.v1 import vision_pb2 as pb
from saccade.v1 import vision_pb2_grpc

T = TypeVar("T")


class Client:
    """A daemon, or all replicas behind one name. Thread-safe. Connects with the first call.

    `timeout` is a call's, in seconds, retries included; a daemon that is overloaded uses it to refuse what it cannot
    finish. None has no limit. Every method raises a SaccadeError if the call fails.
    """

    def __init__(
        self,
        address: str = "127.0.0.1:8001",
        *,
        timeout: float | None = 30.0,
        retry: Retry = Retry(),
        tls: TLS | None = None,
        token: str | None = None,
        max_message_bytes: int = 64 << 20,
    ) -> None:
        connection = Connection(address, tls, token, max_message_bytes)
        self._timeout = timeout
        self._retry = retry
        self._metadata = connection.metadata()
        self._channel = connection.channel()
        self._vision: Any = vision_pb2_grpc.VisionStub(self._channel)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Cancels what is running."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def classify(
        self,
        model: str,
        picture: inputs.Picture,
        *,
        top_k: int = 0,
        version: int = 0,
        priority: int = 0,
        request_id: str = "",
        timeout: float | None = None,
    ) -> types.Classification:
        """The `top_k` likeliest classes; 0 leaves it to the daemon (five)."""
        head = Head(model, version, priority, request_id)
        return answers.classification(self._predict(requests.classify(head, picture, top_k), timeout))

    def detect(
        self,
        model: str,
        picture: inputs.Picture,
        *,
        score_threshold: float | None = None,
        top_k: int = 0,
        classes: Iterable[int] = (),
        masks: bool = True,
        mask_threshold: float | None = None,
        mask_form: MaskForm = MaskForm.RLE,
        version: int = 0,
        priority: int = 0,
        request_id: str = "",
        timeout: float | None = None,
    ) -> types.Detections:
        """At most `top_k` things (0: all that are found) of these classes (none: of all), best first."""
        head = Head(model, version, priority, request_id)
        request = requests.detect(head, picture, score_threshold, top_k, classes, masks, mask_threshold, mask_form)
        return answers.detections(self._predict(request, timeout))

    def segment(
        self,
        model: str,
        picture: inputs.Picture,
        *,
        label_map: bool = True,
        version: int = 0,
        priority: int = 0,
        request_id: str = "",
        timeout: float | None = None,
    ) -> types.Segmentation:
        """A class for each pixel; without `label_map` the areas of the classes alone."""
        head = Head(model, version, priority, request_id)
        return answers.segmentation(self._predict(requests.segment(head, picture, label_map), timeout))

    def stereo(
        self,
        model: str,
        left: inputs.Picture,
        right: inputs.Picture,
        *,
        version: int = 0,
        priority: int = 0,
        request_id: str = "",
        timeout: float | None = None,
    ) -> types.Disparity:
        """Two pictures of one size, rectified: a point lies on the same row of both."""
        head = Head(model, version, priority, request_id)
        return answers.disparity(self._predict(requests.stereo(head, left, right), timeout))

    def actions(
        self,
        model: str,
        clip: inputs.Clip,
        *,
        frames_per_second: float = 0,
        score_threshold: float | None = None,
        top_k: int = 0,
        classes: Iterable[int] = (),
        version: int = 0,
        priority: int = 0,
        request_id: str = "",
        timeout: float | None = None,
    ) -> types.Actions:
        """What happens when in a video, or in frames, of which there are `frames_per_second` (0: as many as the
        model works with)."""
        head = Head(model, version, priority, request_id)
        request = requests.actions(head, clip, frames_per_second, score_threshold, top_k, classes)
        return answers.actions(self._predict(request, timeout))

    def restore(
        self,
        model: str,
        volume: inputs.Volume,
        *,
        voxel_type: str | None = None,
        progress: volumes.Progress | None = None,
        version: int = 0,
        priority: int = 0,
        request_id: str = "",
        timeout: float | None = 1800.0,
    ) -> types.Restoration:
        """A volume of any size, sent in parts. `voxel_type` ("uint8", "uint16", "float32") is the answer's, that of
        what was sent otherwise. `progress` is called with 0 to 1; what it raises gives the call up. `timeout` is this
        method's own, as volumes take minutes; None has no limit."""
        head = Head(model, version, priority, request_id)

        def attempt(left: float | None) -> types.Restoration:
            upload, download = volumes.Upload(head, volume, voxel_type), volumes.Download(progress)
            call = self._vision.Restore(upload.messages(), timeout=left, metadata=self._metadata)
            try:
                for message in call:
                    download.take(message)
            except grpc.RpcError:
                if upload.failure is not None:
                    raise upload.failure from None
                raise
            finally:
                call.cancel()
            return download.result()

        return self._attempts(attempt, timeout)

    def models(self, *, timeout: float | None = None) -> list[types.Model]:
        """Every version that the daemon knows, ready or not."""
        listed = self._unary(self._vision.ListModels, pb.ListModelsRequest(), timeout)
        return [answers.model(one) for one in listed.models]

    def model(self, name: str, version: int = 0, *, timeout: float | None = None) -> types.Model:
        """NotFound if it is unknown. Version 0 is the highest that is ready."""
        return answers.model(self._unary(self._vision.GetModel, requests.model(name, version), timeout))

    def _predict(self, request: pb.PredictRequest, timeout: float | None) -> pb.PredictResponse:
        answer: pb.PredictResponse = self._unary(self._vision.Predict, request, timeout)
        return answer

    def _unary(self, method: Callable[..., Any], request: object, timeout: float | None) -> Any:
        return self._attempts(
            lambda left: method(request, timeout=left, metadata=self._metadata),
            self._timeout if timeout is None else timeout,
        )

    def _attempts(self, attempt: Callable[[float | None], T], timeout: float | None) -> T:
        attempts = Attempts(self._retry, timeout)
        while True:
            try:
                return attempt(attempts.time_left())
            except grpc.RpcError as failure:
                error = error_of(failure)
                error.__cause__ = failure
                time.sleep(attempts.pause(error))
