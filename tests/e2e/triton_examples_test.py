"""Does what the examples of Triton's client do, each in a few lines, with the same models: 'simple' adds and subtracts
INT32 [16], 'simple_int8' INT8, 'simple_string' texts, 'simple_identity' returns a text; pictures are classified."""

import asyncio
import contextlib
import queue
import threading
import uuid

import grpc
import numpy
import pytest
import torch
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
import tritonclient.utils.shared_memory as shm
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

from ensembles_test import step, write_ensemble
from ensembles_test import tensor as ensemble_tensor
from harness import DEADLINE_SECONDS, Daemon
from pictures import encoded, pixels
from programs_test import ALLOW, AddSub, Identity, tensor, write
from tiny_models import write_model
from triton_cases_test import as_type, text_program

A, B = numpy.arange(16, dtype=numpy.int32).reshape(1, 16), numpy.ones((1, 16), numpy.int32)


class TextIdentity(torch.nn.Module):
    def forward(self, texts: list[str]) -> list[str]:
        return texts


class Mean(torch.nn.Module):
    """A classifier of three classes: the means of the picture's channels."""

    def forward(self, x):
        return x.mean(dim=[2, 3])


def of_simple(data_type):
    names = [("input", "INPUT0"), ("input", "INPUT1"), ("output", "OUTPUT0"), ("output", "OUTPUT1")]
    return "".join(tensor(kind, name, data_type, "[ 16 ]") for kind, name in names)


@pytest.fixture(scope="module")
def daemon(tiny, tmp_path_factory):
    root, sources = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("sources")
    write(root, "simple", AddSub(), of_simple("INT32"))
    write(root, "simple_int8", AddSub(), of_simple("INT8"))
    write(root, "simple_string", text_program(sources, "BYTES", "BYTES", "BYTES", True), of_simple("STRING"))
    write(root, "simple_identity", TextIdentity(), tensor("input", "INPUT0", "STRING", "[ 1 ]")
          + tensor("output", "OUTPUT0", "STRING", "[ 1 ]"))
    write(root, "identity_fp32", Identity(), tensor("input", "INPUT0", "FP32", "[ -1 ]")
          + tensor("output", "OUTPUT0", "FP32", "[ -1 ]"))
    write(root, "means", Mean(), tensor("input", "x", "FP32", "[ 3, 56, 56 ]", "format: FORMAT_NCHW")
          + tensor("output", "y", "FP32", "[ 3 ]", "label_filename: 'labels.txt'"))
    (root / "means" / "labels.txt").write_text("red\ngreen\nblue\n")
    write_model(root, "tiny", tiny)
    write_ensemble(root, "picture_ensemble", [ensemble_tensor("INPUT", [1], "TYPE_STRING")],
                   [ensemble_tensor("OUTPUT", [5])], [step("tiny", {"image": "INPUT"}, {"logits": "OUTPUT"})])
    flags = (ALLOW, "--allow-shared-memory", "--model-control-mode=explicit", "--load-model=*")
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


APIS = {"http": tritonclient.http, "grpc": tritonclient.grpc}
OVER_BOTH = pytest.mark.parametrize("over", APIS)


def address(daemon, over):
    return daemon.grpc_address if over == "grpc" else f"127.0.0.1:{daemon.http_port}"


@contextlib.contextmanager
def client_of(daemon, over, **options):
    with APIS[over].InferenceServerClient(address(daemon, over), **options) as made:
        yield made


def given(api, arrays, data_type="INT32", **options):
    inputs = []
    for number, array in enumerate(arrays):
        inputs.append(api.InferInput(f"INPUT{number}", list(array.shape), data_type))
        inputs[-1].set_data_from_numpy(array, **options)
    return inputs


def both_outputs(api):
    return [api.InferRequestedOutput("OUTPUT0"), api.InferRequestedOutput("OUTPUT1")]


def assert_sums(answer, a=A, b=B):
    assert answer.as_numpy("OUTPUT0").tolist() == (a + b).tolist()
    assert answer.as_numpy("OUTPUT1").tolist() == (a - b).tolist()


@OVER_BOTH
def test_infer(daemon, over):
    with client_of(daemon, over) as client:
        answer = client.infer("simple", given(APIS[over], (A, B)), outputs=both_outputs(APIS[over]), request_id="1",
                              headers={"test": "1"})
        assert_sums(answer)
        assert client.get_inference_statistics("simple")
        with pytest.raises(InferenceServerException, match="no model 'wrong_model_name'"):
            client.get_inference_statistics("wrong_model_name")


@pytest.mark.parametrize("request_algorithm", [None, "gzip", "deflate"])
@pytest.mark.parametrize("response_algorithm", [None, "gzip", "deflate"])
def test_http_compression_and_json(daemon, request_algorithm, response_algorithm):
    with client_of(daemon, "http") as client:
        inputs = given(tritonclient.http, (A,), binary_data=False) + given(tritonclient.http, (A, B))[1:]
        assert_sums(client.infer("simple", inputs, request_compression_algorithm=request_algorithm,
                                 response_compression_algorithm=response_algorithm))


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_grpc_compression(daemon, algorithm):
    with client_of(daemon, "grpc") as client:
        assert_sums(client.infer("simple", given(tritonclient.grpc, (A, B)), compression_algorithm=algorithm))


def test_http_async_infer(daemon):
    with client_of(daemon, "http", concurrency=4) as client:
        running = [client.async_infer("simple", given(tritonclient.http, (A + number, B))) for number in range(8)]
        for number, one in enumerate(running):
            assert_sums(one.get_result(), A + number)


def test_grpc_async_infer(daemon):
    answers = queue.Queue()
    with client_of(daemon, "grpc") as client:
        for number in range(8):
            client.async_infer("simple", given(tritonclient.grpc, (A + number, B)), request_id=str(number),
                               callback=lambda result, error: answers.put((result, error)))
        for _ in range(8):
            result, error = answers.get(timeout=DEADLINE_SECONDS)
            assert error is None
            assert_sums(result, A + int(result.get_response().id))


@OVER_BOTH
def test_aio_infer(daemon, over):
    async def ask():
        async with APIS[over].aio.InferenceServerClient(address(daemon, over)) as client:
            return await asyncio.gather(*(client.infer("simple", given(APIS[over], (A + number, B))) for number in range(4)))

    for number, answer in enumerate(asyncio.run(ask())):
        assert_sums(answer, A + number)


@OVER_BOTH
def test_strings(daemon, over):
    api = APIS[over]
    texts = [as_type(array, "BYTES") for array in (A, B)]
    with client_of(daemon, over) as client:
        answer = client.infer("simple_string", given(api, texts, "BYTES"), outputs=both_outputs(api))
        assert answer.as_numpy("OUTPUT0").tolist() == as_type(A + B, "BYTES").tolist()
        assert answer.as_numpy("OUTPUT1").tolist() == as_type(A - B, "BYTES").tolist()
        for text in ("", "d\u00e9j\u00e0 vu", "\u3042", "x" * 100_000):
            array = numpy.array([[text.encode()]], numpy.object_)
            assert client.infer("simple_identity", given(api, (array,), "BYTES")).as_numpy("OUTPUT0").tolist() == [[text.encode()]]


@OVER_BOTH
@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
def test_shared_memory(daemon, over, texts):
    """Both inputs lie in one region and both outputs in another, as in the examples."""
    api, name = APIS[over], f"saccade_example_{uuid.uuid4().hex}"
    raw = [serialize_byte_tensor(as_type(one, "BYTES")).item() if texts else one.tobytes() for one in (A, B)]
    size = len(raw[0])
    given_region = shm.create_shared_memory_region("input", f"/{name}_in", size + len(raw[1]))
    made_region = shm.create_shared_memory_region("output", f"/{name}_out", 2048)
    try:
        shm.set_shared_memory_region(given_region, [numpy.frombuffer(raw[0] + raw[1], numpy.uint8)])
        with client_of(daemon, over) as client:
            client.unregister_system_shared_memory()
            client.unregister_cuda_shared_memory()
            client.register_system_shared_memory("input", f"/{name}_in", size + len(raw[1]))
            client.register_system_shared_memory("output", f"/{name}_out", 2048)
            inputs = [api.InferInput(f"INPUT{number}", [1, 16], "BYTES" if texts else "INT32") for number in (0, 1)]
            inputs[0].set_shared_memory("input", size)
            inputs[1].set_shared_memory("input", len(raw[1]), offset=size)
            outputs = both_outputs(api)
            outputs[0].set_shared_memory("output", 1024)
            outputs[1].set_shared_memory("output", 1024, offset=1024)
            client.infer("simple_string" if texts else "simple", inputs, outputs=outputs)
            data_type = numpy.object_ if texts else numpy.int32
            for number, expected in enumerate((A + B, A - B)):
                found = shm.get_contents_as_numpy(made_region, data_type, [1, 16], offset=1024 * number).copy()
                assert [[int(one) for one in row] for row in found] == expected.tolist()
            status = client.get_system_shared_memory_status()
            assert len(status if over == "http" else status.regions) == 2
            client.unregister_system_shared_memory()
            status = client.get_system_shared_memory_status()
            assert len(status if over == "http" else status.regions) == 0
    finally:
        for region in (given_region, made_region):
            shm.destroy_shared_memory_region(region)


@OVER_BOTH
def test_cuda_shared_memory_is_refused_where_there_is_none(daemon, over):
    with client_of(daemon, over) as client:
        client.unregister_cuda_shared_memory()
        with pytest.raises(InferenceServerException):
            client.register_cuda_shared_memory("r", b"AAAA", 0, 64)


@OVER_BOTH
def test_health_and_metadata(daemon, over):
    with client_of(daemon, over) as client:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("simple")
        server, model = client.get_server_metadata(), client.get_model_metadata("simple")
        config = client.get_model_config("simple")
        if over == "grpc":
            assert server.name == "saccade" and model.name == config.config.name == "simple"
            assert [one.name for one in model.inputs] == ["INPUT0", "INPUT1"] and list(model.inputs[0].shape) == [-1, 16]
        else:
            assert server["name"] == "saccade" and model["name"] == config["name"] == "simple"
            assert [one["name"] for one in model["inputs"]] == ["INPUT0", "INPUT1"] and model["inputs"][0]["shape"] == [-1, 16]
        with pytest.raises(InferenceServerException, match="no model 'wrong_model_name'"):
            client.get_model_metadata("wrong_model_name")


@OVER_BOTH
def test_model_control(daemon, over):
    with client_of(daemon, over) as client:
        client.unload_model("simple_int8")
        assert not client.is_model_ready("simple_int8")
        client.load_model("simple_int8")
        assert client.is_model_ready("simple_int8")
        # A configuration with the load, and the file's again.
        config = '{"backend": "pytorch", "max_batch_size": 2, "input": [' + ", ".join(
            f'{{"name": "INPUT{number}", "data_type": "TYPE_INT8", "dims": [16]}}' for number in (0, 1)) + '], "output": [' + ", ".join(
            f'{{"name": "OUTPUT{number}", "data_type": "TYPE_INT8", "dims": [16]}}' for number in (0, 1)) + "]}"
        client.load_model("simple_int8", config=config)
        size = lambda: client.get_model_config("simple_int8")
        found = size().config.max_batch_size if over == "grpc" else size()["max_batch_size"]
        assert found == 2
        client.load_model("simple_int8")
        found = size().config.max_batch_size if over == "grpc" else size()["max_batch_size"]
        assert found == 8
        with pytest.raises(InferenceServerException, match="holds no folder 'wrong_model_name'"):
            client.load_model("wrong_model_name")


@OVER_BOTH
def test_sequences_are_refused_in_words(daemon, over):
    """The sequence examples end here with the reason (docs/compatibility.md, Behaviour)."""
    with client_of(daemon, over) as client:
        with pytest.raises(InferenceServerException, match="sequences are not supported"):
            client.infer("simple", given(APIS[over], (A, B)), sequence_id=1000, sequence_start=True)


def test_streams_answer_each_request(daemon):
    answers = queue.Queue()
    with client_of(daemon, "grpc") as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for number in range(8):
            client.async_stream_infer("simple", given(tritonclient.grpc, (A + number, B)), request_id=str(number))
        for number in range(8):
            result, error = answers.get(timeout=DEADLINE_SECONDS)
            assert error is None and result.get_response().id == str(number)
            assert_sums(result, A + number)


def test_aio_streams(daemon):
    async def requests():
        for number in range(4):
            yield {"model_name": "simple", "inputs": given(tritonclient.grpc, (A + number, B)), "request_id": str(number)}

    async def ask():
        async with tritonclient.grpc.aio.InferenceServerClient(daemon.grpc_address) as client:
            return [one async for one in client.stream_infer(requests())]

    for number, (result, error) in enumerate(asyncio.run(ask())):
        assert error is None
        assert_sums(result, A + number)


def test_keepalive_and_custom_arguments(daemon):
    keepalive = tritonclient.grpc.KeepAliveOptions(keepalive_time_ms=1000, keepalive_timeout_ms=20000,
                                                   keepalive_permit_without_calls=False, http2_max_pings_without_data=2)
    arguments = [("grpc.max_send_message_length", 1 << 26), ("grpc.keepalive_time_ms", 1000)]
    for options in ({"keepalive_options": keepalive}, {"channel_args": arguments}):
        with client_of(daemon, "grpc", **options) as client:
            assert_sums(client.infer("simple", given(tritonclient.grpc, (A, B))))


@OVER_BOTH
def test_inputs_and_outputs_are_used_again(daemon, over):
    api = APIS[over]
    inputs, outputs = given(api, (A, B)), both_outputs(api)
    with client_of(daemon, over) as client:
        for number in range(3):
            inputs[0].set_data_from_numpy(A * number)
            assert_sums(client.infer("simple", inputs, outputs=outputs), A * number)


@pytest.fixture
def stub(daemon):
    with daemon.channel() as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def raw_request(model, data_type):
    request = service_pb2.ModelInferRequest(model_name=model, id="my request id")
    for number in (0, 1):
        request.inputs.add(name=f"INPUT{number}", datatype=data_type, shape=[1, 16])
    for number in (0, 1):
        request.outputs.add(name=f"OUTPUT{number}")
    return request


def test_a_client_of_stubs(stub):
    assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
    assert stub.ModelReady(service_pb2.ModelReadyRequest(name="simple")).ready
    request = raw_request("simple", "INT32")
    request.raw_input_contents.extend([A.tobytes(), B.tobytes()])
    answer = stub.ModelInfer(request, timeout=DEADLINE_SECONDS)
    assert answer.id == "my request id"
    sums = [numpy.frombuffer(raw, numpy.int32) for raw in answer.raw_output_contents]
    assert sums[0].tolist() == (A + B)[0].tolist() and sums[1].tolist() == (A - B)[0].tolist()


@pytest.mark.parametrize("model, data_type, field", [("simple", "INT32", "int_contents"), ("simple_int8", "INT8", "int_contents"),
                                                     ("simple_string", "BYTES", "bytes_contents")])
def test_explicit_contents(stub, model, data_type, field):
    request = raw_request(model, data_type)
    for number, array in enumerate((A, B)):
        values = [str(one).encode() for one in array[0]] if data_type == "BYTES" else array[0].tolist()
        getattr(request.inputs[number].contents, field).extend(values)
    answer = stub.ModelInfer(request, timeout=DEADLINE_SECONDS)
    expected = as_type(A + B, data_type)
    raw = serialize_byte_tensor(expected).item() if data_type == "BYTES" else expected.tobytes()
    assert answer.raw_output_contents[0] == raw
    # The two ways of sending contents exclude each other.
    request.raw_input_contents.extend([b"", b""])
    with pytest.raises(grpc.RpcError) as error:
        stub.ModelInfer(request, timeout=DEADLINE_SECONDS)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def prepared(scaling, seed):
    """A picture as the image client prepares it: resized, scaled, channels first."""
    picture = pixels(seed, 56, 56).astype(numpy.float32)
    if scaling == "INCEPTION":
        picture = picture / 127.5 - 1
    if scaling == "VGG":
        picture = picture - numpy.array([123, 117, 104], numpy.float32)
    return picture.transpose(2, 0, 1)


@OVER_BOTH
@pytest.mark.parametrize("scaling", ["NONE", "INCEPTION", "VGG"])
@pytest.mark.parametrize("way", ["sync", "async", "streaming"])
def test_image_client(daemon, over, scaling, way):
    """Reads input and output from the metadata, sends a batch of pictures, and reads the classes."""
    if (over, way) == ("http", "streaming"):
        pytest.skip("HTTP has no streams of inferences")
    api, answers = APIS[over], queue.Queue()
    with client_of(daemon, over) as client:
        metadata, config = client.get_model_metadata("means"), client.get_model_config("means")
        if over == "grpc":
            config = config.config
            name, output, size = metadata.inputs[0].name, metadata.outputs[0].name, config.max_batch_size
            assert config.input[0].format == 2 and list(metadata.inputs[0].shape) == [-1, 3, 56, 56]
        else:
            name, output, size = metadata["inputs"][0]["name"], metadata["outputs"][0]["name"], config["max_batch_size"]
            assert config["input"][0]["format"] == "FORMAT_NCHW" and metadata["inputs"][0]["shape"] == [-1, 3, 56, 56]
        batch = numpy.stack([prepared(scaling, seed) for seed in range(size)])
        sent = api.InferInput(name, list(batch.shape), "FP32")
        sent.set_data_from_numpy(batch)
        wanted = [api.InferRequestedOutput(output, class_count=2)]
        if way == "sync":
            answer = client.infer("means", [sent], outputs=wanted)
        elif over == "http":
            answer = client.async_infer("means", [sent], outputs=wanted).get_result()
        else:
            take = lambda result, error: answers.put((result, error))
            if way == "async":
                client.async_infer("means", [sent], outputs=wanted, callback=take)
            else:
                client.start_stream(take)
                client.async_stream_infer("means", [sent], outputs=wanted)
            answer, error = answers.get(timeout=DEADLINE_SECONDS)
            assert error is None
    means = batch.astype(numpy.float64).mean(axis=(2, 3))
    for row, classes in zip(means, answer.as_numpy(output)):
        indices = [int(one.decode().split(":")[1]) for one in classes]
        assert [one.decode().split(":")[2] for one in classes] == [("red", "green", "blue")[index] for index in indices]
        assert numpy.allclose(row[indices], sorted(row, reverse=True)[:2], rtol=1e-4, atol=1e-3)


@OVER_BOTH
def test_ensemble_image_client(daemon, over, tiny):
    """Sends encoded pictures of several sizes as they are, and gets classes."""
    api = APIS[over]
    files = [encoded(pixels(seed, 64 + 8 * seed, 64)) for seed in range(3)]
    with client_of(daemon, over) as client:
        sent = api.InferInput("INPUT", [3, 1], "BYTES")
        sent.set_data_from_numpy(numpy.array([[file] for file in files], numpy.object_))
        answer = client.infer("picture_ensemble", [sent], outputs=[api.InferRequestedOutput("OUTPUT", class_count=1)])
        logits = client.infer("picture_ensemble", [sent]).as_numpy("OUTPUT")
    for row, classes in zip(logits, answer.as_numpy("OUTPUT")):
        assert classes[0].decode().split(":")[1:] == [str(row.argmax()), tiny.labels[row.argmax()]]


def test_many_requests_take_no_more_memory(daemon):
    """The memory growth test of the examples, with a bound that a leak of each request would exceed."""
    array = numpy.ones((1, 65536), numpy.float32)

    def ask(times):
        with client_of(daemon, "grpc") as client:
            for _ in range(times):
                client.infer("identity_fp32", given(tritonclient.grpc, (array,), "FP32"))

    ask(50)
    before = daemon.resident_bytes()
    threads = [threading.Thread(target=ask, args=(100,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert daemon.resident_bytes() - before < 400 * array.nbytes / 2
