"""Messages and stubs of the project's own protocols, made from proto/ at run time: no generated Python is kept.

They use a descriptor pool of their own, because other clients in this process register their version of the same
messages.
"""

import functools
import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
FILES = (
    "saccade/v1/vision.proto",
    "inference/grpc_service.proto",
    "google/rpc/status.proto",
    "google/rpc/error_details.proto",
    "xds/data/orca/v3/orca_load_report.proto",
)


@functools.cache
def pool():
    with tempfile.NamedTemporaryFile() as out:
        command = ["protoc", f"--proto_path={PROTO}", "--include_imports", f"--descriptor_set_out={out.name}", *FILES]
        subprocess.run(command, check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read()).file
    made = descriptor_pool.DescriptorPool()
    for file in files:
        made.Add(file)
    return made


@functools.cache
def message(name):
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


def stub(channel, service, method, pool_of_types=None):
    """The callable of a unary method, made from its descriptor."""
    types = pool_of_types or pool()
    found = types.FindServiceByName(service).methods_by_name[method]
    answer = message_factory.GetMessageClass(found.output_type)
    return channel.unary_unary(
        f"/{service}/{method}",
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=answer.FromString,
    )


def stream(channel, service, method):
    """The callable of a bidirectional streaming method."""
    answer = message_factory.GetMessageClass(pool().FindServiceByName(service).methods_by_name[method].output_type)
    return channel.stream_stream(
        f"/{service}/{method}",
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=answer.FromString,
    )


class Vision:
    """saccade.v1.Vision."""

    def __init__(self, channel):
        self.predict = stub(channel, "saccade.v1.Vision", "Predict")
        self.predict_stream = stream(channel, "saccade.v1.Vision", "PredictStream")
        self.restore = stream(channel, "saccade.v1.Vision", "Restore")
        self.list_models = stub(channel, "saccade.v1.Vision", "ListModels")
        self.get_model = stub(channel, "saccade.v1.Vision", "GetModel")


class Inference:
    """inference.GRPCInferenceService, for requests that client libraries would not send."""

    def __init__(self, channel):
        self.model_infer = stub(channel, "inference.GRPCInferenceService", "ModelInfer")
        self.model_ready = stub(channel, "inference.GRPCInferenceService", "ModelReady")
        self.model_metadata = stub(channel, "inference.GRPCInferenceService", "ModelMetadata")
        self.server_ready = stub(channel, "inference.GRPCInferenceService", "ServerReady")


def predict_request(**fields):
    return message("saccade.v1.PredictRequest")(**fields)


def get_model_request(model, version=0):
    return message("saccade.v1.GetModelRequest")(model=model, version=version)


def infer_request(model, shape, raw, datatype="FP32", name="image", output=None, version=""):
    request = message("inference.ModelInferRequest")(model_name=model, model_version=version)
    request.inputs.add(name=name, datatype=datatype, shape=shape)
    if raw is not None:
        request.raw_input_contents.append(raw)
    if output:
        request.outputs.add(name=output)
    return request
