"""Tests ensembles with Triton's client."""

import threading

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import pictures
from harness import DEADLINE_SECONDS, Daemon, eventually
from messages import get_model_request, predict_request
from tiny_models import Identity, TinyModel, assert_close, tiny_segmenter, write_model

# Longer than what a busy machine needs for everything else in a test.
HANG_SECONDS = 3
SIDE = 56


def tensor(name, dims, data_type="TYPE_FP32"):
    return f'{{ name: "{name}" data_type: {data_type} dims: {dims} }}'


def step(model, inputs, outputs):
    maps = [f'input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items()]
    maps += [f'output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items()]
    return f'{{ model_name: "{model}" model_version: -1 {" ".join(maps)} }}'


def write_ensemble(root, name, inputs, outputs, steps, max_batch_size=4, more=""):
    (root / name).mkdir()
    (root / name / "config.pbtxt").write_text(
        f'platform: "ensemble"\nmax_batch_size: {max_batch_size}\n'
        f'input [ {", ".join(inputs)} ]\noutput [ {", ".join(outputs)} ]\n'
        f'ensemble_scheduling {{ step [ {", ".join(steps)} ] }}\n{more}'
    )


VOLUME = tensor("volume", [1, 3, SIDE, SIDE])
LOGITS = tensor("logits", [5])


def through(model, then="tiny"):
    """Steps that use the volumes of `model` as pictures of the classifier."""
    return [step(then, {"image": "middle"}, {"logits": "logits"}), step(model, {"image": "volume"}, {"restored": "middle"})]


def write_repository(root, tiny):
    write_model(root, "identity", Identity(), max_batch_size=4)
    # A pass of one core each, so that two of them run at once.
    one_core = {"threads": "1"}
    write_model(root, "tiny", tiny, max_batch_size=8, parameters=one_core)
    for name in ("drills", "more_drills"):
        drills = Identity(fail_at="13", hang_at="99", hang_seconds=str(HANG_SECONDS))
        write_model(root, name, drills, max_batch_size=4, parameters=one_core)
    write_ensemble(root, "chain", [VOLUME], [LOGITS], through("identity"))
    write_ensemble(root, "drilled", [VOLUME], [LOGITS], through("drills"))
    write_ensemble(root, "outer", [VOLUME], [LOGITS], [step("chain", {"volume": "volume"}, {"logits": "logits"})])
    write_ensemble(
        root,
        "pictures",
        [tensor("file", [1], "TYPE_STRING")],
        [tensor("scores", [-1])],
        [step("tiny", {"image": "file"}, {"logits": "scores"})],
    )
    write_ensemble(
        root,
        "fork",
        [VOLUME],
        [tensor("left", [3, SIDE, SIDE]), tensor("right", [-1, -1, -1]), LOGITS],
        [
            step("drills", {"image": "volume"}, {"restored": "left"}),
            step("more_drills", {"image": "volume"}, {"restored": "right"}),
            step("tiny", {"image": "left"}, {"logits": "logits"}),
        ],
    )
    write_model(root, "segmenter", tiny_segmenter(), max_batch_size=4)
    write_ensemble(
        root,
        "parts",
        [tensor("file", [1], "TYPE_STRING")],
        [tensor("map", [-1, -1], "TYPE_UINT8"), tensor("areas", [5], "TYPE_INT64")],
        [step("segmenter", {"image": "file"}, {"label_map": "map", "areas": "areas"})],
    )
    small = lambda name: tensor(name, [1, 3, 8, 8])
    write_ensemble(
        root,
        "twins",
        [small("volume")],
        [tensor("left", [3, 8, 8]), tensor("right", [3, 8, 8])],
        [
            step("drills", {"image": "volume"}, {"restored": "left"}),
            step("more_drills", {"image": "volume"}, {"restored": "right"}),
        ],
    )


@pytest.fixture(scope="module")
def daemon(tiny, tmp_path_factory):
    root = tmp_path_factory.mktemp("ensembles")
    write_repository(root, tiny)
    # Only one request at a time: the steps of an ensemble count as part of it.
    flags = ["--max-inflight-requests=1", "--allow-drills"]
    with Daemon(root, *flags, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture(scope="module")
def client(daemon):
    with triton.InferenceServerClient(daemon.grpc_address) as made:
        yield made


def volumes(tiny, count, seed=1, first=None):
    batch = tiny.random_batch(count, seed=seed)
    if first is not None:
        batch.reshape(-1)[0] = first
    return batch


def sent(batch, name="volume"):
    made = triton.InferInput(name, [batch.shape[0], 1, *batch.shape[1:]], "FP32")
    made.set_data_from_numpy(batch[:, None])
    return [made]


def computed(daemon, model):
    return daemon.metrics().value("nv_inference_count", model=model, version="1")


def described(tensors):
    return [(one.name, one.datatype, list(one.shape)) for one in tensors]


def test_it_looks_like_a_model(daemon, client):
    assert client.is_model_ready("chain")
    assert client.is_model_ready("chain", "1")
    assert not client.is_model_ready("chain", "2")
    metadata = client.get_model_metadata("chain")
    assert (metadata.platform, list(metadata.versions)) == ("ensemble", ["1"])
    assert described(metadata.inputs) == [("volume", "FP32", [-1, 1, 3, SIDE, SIDE])]
    assert described(metadata.outputs) == [("logits", "FP32", [-1, 5])]
    with daemon.vision() as vision:
        model = vision.get_model(get_model_request("chain"))
    assert (model.architecture, model.max_batch_size, model.task) == ("ensemble", 4, "")
    assert daemon.metrics().value("saccade_model_ready", model="chain", version="1") == 1


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("model", ["chain", "outer", "drilled"])
def test_tensors_go_from_step_to_step(client, tiny, model, count):
    batch = volumes(tiny, count, seed=count)
    answer = client.infer(model, sent(batch), request_id="7")
    assert answer.get_response().id == "7"
    assert answer.get_response().model_name == model
    assert_close(answer.as_numpy("logits"), tiny.logits(batch))


def test_pictures_as_bytes(client, tiny):
    shown = [pictures.pixels(seed, tiny.resize, tiny.resize) for seed in (10, 11)]
    file = triton.InferInput("file", [2, 1], "BYTES")
    encoded = [pictures.encoded(picture) for picture in shown]
    file.set_data_from_numpy(numpy.array(encoded, dtype=numpy.object_).reshape(2, 1))
    answer = client.infer("pictures", [file])
    assert_close(answer.as_numpy("scores"), tiny.logits(tiny.prepared(shown)))


def test_classification_has_the_labels_of_the_model_that_makes_it(client, tiny):
    batch = volumes(tiny, 2)
    wanted = [triton.InferRequestedOutput("logits", class_count=1)]
    texts = client.infer("outer", sent(batch), outputs=wanted).as_numpy("logits")
    best = tiny.logits(batch).argmax(axis=1)
    assert [text.decode().split(":")[1:] for text in texts[:, 0]] == [[str(i), tiny.labels[i]] for i in best]


def test_only_outputs_by_class_have_labels(client):
    file = triton.InferInput("file", [1, 1], "BYTES")
    file.set_data_from_numpy(numpy.array([[pictures.encoded(pictures.pixels(1, 96, 64))]], dtype=numpy.object_))
    wanted = [triton.InferRequestedOutput(name, class_count=1) for name in ("map", "areas")]
    answer = client.infer("parts", [file], outputs=wanted)
    label, _ = answer.as_numpy("map")[0, 0].decode().split(":")
    assert 0 <= int(label) < 5
    _, index, name = answer.as_numpy("areas")[0, 0].decode().split(":")
    assert name == tiny_segmenter().labels[int(index)]


def test_independent_steps_run_together(daemon, client, tiny):
    before = daemon.metrics()
    batch = volumes(tiny, 1, first=99)
    answer = client.infer("fork", sent(batch))
    assert (answer.as_numpy("left") == batch).all()
    assert (answer.as_numpy("right") == batch).all()
    assert_close(answer.as_numpy("logits"), tiny.logits(batch))
    after = daemon.metrics()
    took = lambda what: after.total(what, model="fork") - before.total(what, model="fork")
    assert took("nv_inference_compute_infer_duration_us") >= 2 * HANG_SECONDS * 1e6
    assert took("nv_inference_request_duration_us") < took("nv_inference_compute_infer_duration_us")


def expected_seconds(daemon, model, bucket):
    with daemon.vision() as vision:
        timing = vision.get_model(get_model_request(model)).timing
    return next((known.seconds[0] for known in timing.buckets if known.name == bucket), float("inf"))


def test_independent_steps_of_short_passes_run_together(daemon, client):
    batch = numpy.ones((1, 3, 8, 8), numpy.float32)
    # A thread computes a step itself if its pass is known to take less than 120 us. On a busy machine passes may never
    # be so short; the steps run together there too.
    for _ in range(100):
        client.infer("twins", sent(batch))
        if all(expected_seconds(daemon, model, "3x8x8") < 60e-6 for model in ("drills", "more_drills")):
            break
    before = daemon.metrics()
    batch[0, 0, 0, 0] = 99
    answer = client.infer("twins", sent(batch))
    assert (answer.as_numpy("left") == batch).all()
    assert (answer.as_numpy("right") == batch).all()
    after = daemon.metrics()
    took = lambda what: after.total(what, model="twins") - before.total(what, model="twins")
    assert took("nv_inference_compute_infer_duration_us") >= 2 * HANG_SECONDS * 1e6
    assert took("nv_inference_request_duration_us") < took("nv_inference_compute_infer_duration_us")


def test_what_nobody_wants_is_not_computed(daemon, client, tiny):
    before = [computed(daemon, model) for model in ("drills", "more_drills", "tiny")]
    client.infer("fork", sent(volumes(tiny, 1)), outputs=[triton.InferRequestedOutput("right")])
    after = [computed(daemon, model) for model in ("drills", "more_drills", "tiny")]
    assert [new - old for new, old in zip(after, before)] == [0, 1, 0]


def test_it_is_counted_like_a_model(daemon, client, tiny):
    of = dict(model="chain", version="1")
    before = daemon.metrics()
    client.infer("chain", sent(volumes(tiny, 3)))
    after = daemon.metrics()
    grown = lambda name, **labels: after.total(name, **of, **labels) - before.total(name, **of, **labels)
    assert grown("nv_inference_request_success") == 1
    assert grown("nv_inference_count") == 3
    assert grown("nv_inference_exec_count") == 1
    assert grown("saccade_requests_total", task="ensemble", protocol="oip", code="OK") == 1
    assert grown("nv_inference_request_duration_us") >= grown("nv_inference_compute_infer_duration_us") > 0
    for model in ("identity", "tiny"):
        assert after.total("nv_inference_count", model=model) - before.total("nv_inference_count", model=model) == 3


def refused(client, model, inputs, **options):
    with pytest.raises(InferenceServerException) as error:
        client.infer(model, inputs, **options)
    return error.value.status().removeprefix("StatusCode."), error.value.message()


def test_a_failing_step_is_named(daemon, client, tiny):
    before = daemon.metrics()
    status, message = refused(client, "drilled", sent(volumes(tiny, 1, first=13)))
    assert status == "INTERNAL"
    assert message.startswith("step of model 'drills' that makes 'middle': ")
    failures = dict(model="drilled", version="1", reason="BACKEND")
    name = "nv_inference_request_failure"
    assert daemon.metrics().value(name, **failures) - before.value(name, **failures) == 1


def test_what_does_not_fit_is_told(client, tiny):
    assert refused(client, "chain", sent(volumes(tiny, 1), name="image")) == (
        "INVALID_ARGUMENT",
        "inputs: no input is named 'image'; the ensemble's are 'volume'",
    )
    assert refused(client, "chain", sent(volumes(tiny, 5)))[0] == "INVALID_ARGUMENT"
    status, message = refused(client, "chain", sent(volumes(tiny, 1)), model_version="3")
    assert (status, message) == ("NOT_FOUND", "model 'chain' has no version 3 here; it serves version 1")


@pytest.mark.parametrize("how", ["DEADLINE_EXCEEDED", "CANCELLED"])
def test_who_waits_no_longer_costs_no_further_step(daemon, client, tiny, how):
    def ended():
        # To the server, gRPC reports a client's deadline and its cancellation in the same way.
        metrics = daemon.metrics()
        codes = ("CANCELLED", "DEADLINE_EXCEEDED")
        return sum(metrics.total("saccade_requests_total", model="drilled", code=code) for code in codes)

    def shed():
        return daemon.metrics().value("saccade_shed_total", reason="cancelled")

    before, ended_before, shed_before = computed(daemon, "tiny"), ended(), shed()
    inputs = sent(volumes(tiny, 1, first=99))
    if how == "CANCELLED":
        over = threading.Event()
        call = client.async_infer("drilled", inputs, lambda result, error: over.set())
        eventually(lambda: daemon.metrics().value("saccade_inflight_requests") == 1, "the request came in")
        call.cancel()
        assert over.wait(DEADLINE_SECONDS)
        eventually(lambda: ended() == ended_before + 1, "the ensemble ended")
        assert shed() == shed_before + 1, "a request is shed once, not once for each step"
    else:
        assert refused(client, "drilled", inputs, client_timeout=HANG_SECONDS / 3)[0] == how
    eventually(lambda: ended() == ended_before + 1, f"it ended {how}")
    assert computed(daemon, "tiny") == before
    assert daemon.metrics().value("saccade_inflight_requests") == 0


def test_what_cannot_be_run_is_unavailable_and_says_why(start, tiny, tmp_path):
    root = tmp_path / "repository"
    root.mkdir()
    write_repository(root, tiny)
    write_ensemble(root, "nobody", [VOLUME], [LOGITS], through("nobodys_model"))
    write_ensemble(root, "above", [VOLUME], [LOGITS], [step("nobody", {"volume": "volume"}, {"logits": "logits"})])
    write_ensemble(root, "wrong", [tensor("volume", [3])], [LOGITS], through("identity"))
    write_ensemble(root, "wide", [VOLUME], [LOGITS], through("identity"), max_batch_size=5)
    daemon = start(root, "--exit-on-error=false", "--strict-readiness=false", "--allow-drills").await_ready()
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        batch = volumes(tiny, 1)
        assert_close(client.infer("chain", sent(batch)).as_numpy("logits"), tiny.logits(batch))
        reasons = {
            "nobody": "the model repository holds no folder 'nobodys_model'",
            "above": "model 'nobody' needs another model: the model repository holds no folder 'nobodys_model'",
            "wrong": "ensemble 'wrong' cannot be run: step of model 'identity' that makes 'middle': input 'image' takes",
            "wide": "the model's max_batch_size is 4, lower than the ensemble's 5",
        }

        def says_why(model, reason):
            status, message = refused(client, model, sent(batch))
            assert status == "UNAVAILABLE"
            with daemon.vision() as vision:
                return reason in message and reason in vision.get_model(get_model_request(model)).reason

        for model, reason in reasons.items():
            assert not client.is_model_ready(model)
            # The daemon tries to load it again now and then, and is loading it meanwhile.
            eventually(lambda model=model, reason=reason: says_why(model, reason), f"{model} says why it is not served")
            assert daemon.metrics().total("saccade_model_ready", model=model) == 0


def test_the_typed_api_says_where_to_go(daemon):
    with daemon.vision() as vision, pytest.raises(Exception, match="is an ensemble, which takes tensors only"):
        vision.predict(predict_request(model="chain", encoded=pictures.encoded(pictures.pixels(1))))
