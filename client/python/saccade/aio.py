"""The client for asyncio: client.py's methods, awaited. Files are read and pictures converted on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent import futures
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


class AsyncClient:
    """As Client, for one event loop: the one that it is made in. A cancelled task cancels its call."""

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
        self._connection = connection = Connection(address, tls, token, max_message_bytes)
        self._timeout = timeout
        self._retry = retry
        self._metadata = connection.metadata()
        self._channel = connection.aio_channel()
        # The generated class serves both kinds of channels.
        self._vision: Any = vision_pb2_grpc.VisionStub(self._channel)  # type: ignore[no-untyped-call]
        # Of volumes, once there is one. grpc.aio loses the status of a call that ends while it still sends, and tells
        # INTERNAL instead; gRPC's other API does not, so volumes go through that one, each on a thread.
        self._volumes_channel: grpc.Channel | None = None
        self._threads = futures.ThreadPoolExecutor(32, "saccade-restore")

    async def close(self) -> None:
        """Cancels what is running."""
        await self._channel.close(None)
        if self._volumes_channel is not None:
            self._volumes_channel.close()
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def classify(
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
        head = Head(model, version, priority, request_id)
        request = await asyncio.to_thread(requests.classify, head, picture, top_k)
        return answers.classification(await self._predict(request, timeout))

    async def detect(
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
        head = Head(model, version, priority, request_id)
        request = await asyncio.to_thread(
            requests.detect, head, picture, score_threshold, top_k, classes, masks, mask_threshold, mask_form
        )
        return answers.detections(await self._predict(request, timeout))

    async def segment(
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
        head = Head(model, version, priority, request_id)
        request = await asyncio.to_thread(requests.segment, head, picture, label_map)
        return answers.segmentation(await self._predict(request, timeout))

    async def stereo(
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
        head = Head(model, version, priority, request_id)
        request = await asyncio.to_thread(requests.stereo, head, left, right)
        return answers.disparity(await self._predict(request, timeout))

    async def actions(
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
        head = Head(model, version, priority, request_id)
        request = await asyncio.to_thread(
            requests.actions, head, clip, frames_per_second, score_threshold, top_k, classes
        )
        return answers.actions(await self._predict(request, timeout))

    async def restore(
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
        """`progress` is called on the event loop's thread."""
        head = Head(model, version, priority, request_id)
        loop = asyncio.get_running_loop()
        if self._volumes_channel is None:
            self._volumes_channel = self._connection.channel()
        vision: Any = vision_pb2_grpc.VisionStub(self._volumes_channel)  # type: ignore[no-untyped-call]

        async def attempt(left: float | None) -> types.Restoration:
            upload = await asyncio.to_thread(volumes.Upload, head, volume, voxel_type)
            download = volumes.Download(progress)
            call = vision.Restore(upload.messages(), timeout=left, metadata=self._metadata)
            try:
                while (message := await loop.run_in_executor(self._threads, next, call, None)) is not None:
                    download.take(message)
            except grpc.RpcError:
                if upload.failure is not None:
                    raise upload.failure from None
                raise
            finally:
                call.cancel()
            return download.result()

        return await self._attempts(attempt, timeout)

    async def models(self, *, timeout: float | None = None) -> list[types.Model]:
        listed = await self._unary(self._vision.ListModels, pb.ListModelsRequest(), timeout)
        return [answers.model(one) for one in listed.models]

    async def model(self, name: str, version: int = 0, *, timeout: float | None = None) -> types.Model:
        return answers.model(await self._unary(self._vision.GetModel, requests.model(name, version), timeout))

    async def _predict(self, request: pb.PredictRequest, timeout: float | None) -> pb.PredictResponse:
        answer: pb.PredictResponse = await self._unary(self._vision.Predict, request, timeout)
        return answer

    async def _unary(self, method: Callable[..., Any], request: object, timeout: float | None) -> Any:
        async def attempt(left: float | None) -> Any:
            return await method(request, timeout=left, metadata=self._metadata)

        return await self._attempts(attempt, self._timeout if timeout is None else timeout)

    async def _attempts(self, attempt: Callable[[float | None], Awaitable[T]], timeout: float | None) -> T:
        attempts = Attempts(self._retry, timeout)
        while True:
            try:
                return await attempt(attempts.time_left())
            except grpc.RpcError as failure:
                error = error_of(failure)
                error.__cause__ = failure
                await asyncio.sleep(attempts.pause(error))
