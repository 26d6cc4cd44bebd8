"""Runs saccaded on a model repository and calls it over gRPC; message types come from its reflection."""

import contextlib
import pathlib
import re
import subprocess

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

READY_SECONDS = 120


class Daemon:
    def __init__(self, channel: grpc.Channel):
        pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        self._request = message_factory.GetMessageClass(pool.FindMessageTypeByName("saccade.v1.PredictRequest"))
        answer = message_factory.GetMessageClass(pool.FindMessageTypeByName("saccade.v1.PredictResponse"))
        self._predict = channel.unary_unary("/saccade.v1.Vision/Predict",
                                            request_serializer=lambda request: request.SerializeToString(),
                                            response_deserializer=answer.FromString)

    def predict(self, model: str, fields: dict):
        return self._predict(json_format.ParseDict({"model": model, **fields}, self._request()), timeout=READY_SECONDS)


@contextlib.contextmanager
def serving(binary: pathlib.Path, repository: pathlib.Path):
    """Yields a Daemon that is ready, on free local ports; the daemon is terminated after the block."""
    command = [binary, "--model-repository", repository, "--host", "127.0.0.1", "--grpc-port", "0", "--http-port", "0",
               "--metrics-port", "0", "--lame-duck-seconds", "0"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        listening = re.match(r"listening grpc=(\S+)", process.stdout.readline())
        if not listening:
            raise RuntimeError(f"{binary} did not start: {process.stderr.read()}")
        with grpc.insecure_channel(listening[1], options=[("grpc.max_receive_message_length", -1)]) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=READY_SECONDS,
                                                              wait_for_ready=True)
            next(update for update in watch if update.status == health_pb2.HealthCheckResponse.SERVING)
            yield Daemon(channel)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
        process.stderr.close()
