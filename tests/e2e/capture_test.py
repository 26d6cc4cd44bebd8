"""Calls that the daemon captures: by which protocols, which of them, how much of them, and what it costs if the disk or the
sink does not keep up."""

import concurrent.futures
import contextlib
import hashlib
import http.server
import json
import os
import re
import stat
import threading

import grpc
import numpy
import pytest

import captures
import pictures
from captures import PICTURE, UNIQUE, calls_of, post
from harness import DEADLINE_SECONDS, eventually, run_to_end, write_secret
from messages import predict_request

SECRET, USER = "admin-s3cret-0123456789", "user-s3cret-0123456789"


def counted(daemon, name, **labels):
    return daemon.metrics().value(f"saccade_{name}", **labels)


def stop(daemon):
    """Ends the daemon, which writes what is queued."""
    daemon.terminate()
    assert daemon.exit_code() == 0, daemon.log()


def predict(daemon, model="detector", metadata=(), **fields):
    with daemon.vision() as vision:
        request = predict_request(model=model, encoded=PICTURE, **fields)
        return vision.predict(request, timeout=DEADLINE_SECONDS, metadata=metadata)


def raw_bytes(folder):
    """Everything in the folder, decompressed where it is compressed."""
    from saccade.replay import segments, zstd

    everything = b""
    for path in sorted(folder.glob("*.saccade")):
        data = path.read_bytes()
        everything += data
        at = len(segments.MAGIC)
        while at < len(data):
            length = int.from_bytes(data[at : at + 4], "little")
            everything += zstd.decompress(data[at + 8 : at + 8 + length], 1 << 30)
            at += 8 + length
    return everything


def noise(side):
    """A PNG of about 3 * side * side bytes, which cannot be compressed."""
    return pictures.encoded(numpy.random.default_rng(0).integers(0, 256, (side, side, 3), dtype="uint8"))


@pytest.fixture
def capturing(start, tasks_repository, tmp_path):
    def start_capturing(*flags, **options):
        return start(tasks_repository, f"--capture={tmp_path / 'calls'}", "--lame-duck-seconds=0", "--warm-up-seconds=0", *flags, **options).await_ready()

    return start_capturing


def test_every_protocol_is_captured(capturing, saccade, tmp_path):
    daemon = capturing()
    with daemon.vision() as vision:
        identity = vision.get_model(captures.message("saccade.v1.GetModelRequest")(model="detector"), timeout=DEADLINE_SECONDS)
    assert re.fullmatch("[0-9a-f]{64}", identity.weights_sha256) and identity.instruction_set and identity.precision
    sent = captures.call_by_grpc(daemon) + captures.call_by_streams(daemon) + captures.call_by_http(daemon)
    eventually(lambda: counted(daemon, "captured_calls_total") == sent, "all calls are written")
    assert counted(daemon, "capture_bytes") > len(PICTURE)
    stop(daemon)
    folder = tmp_path / "calls"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    calls = calls_of(saccade, folder)
    targets = [call.target for call in calls]
    assert sorted(set(targets)) == [
        "/v1/predict", "/v1/predict/detector?top_k=3", "/v2/models/segmenter/infer",
        "inference.GRPCInferenceService/ModelInfer", "inference.GRPCInferenceService/ModelStreamInfer",
        "saccade.v1.Vision/Predict", "saccade.v1.Vision/PredictStream",
    ]
    for call in calls:
        assert call.status == "OK" and call.version == 1 and call.request and call.answer
        assert call.weights_sha256 and call.instruction_set == identity.instruction_set and call.precision == identity.precision
        assert call.timings_us["total"] >= call.timings_us["infer"] > 0
        if call.model == "detector":
            assert call.weights_sha256 == identity.weights_sha256
    assert next(call for call in calls if call.id).id == "boxes"
    assert next(call for call in calls if call.target.startswith("/v1/predict/")).request == PICTURE


def test_the_rate_is_changed_while_it_runs_and_faults_are_always_captured(capturing, saccade, tmp_path):
    tokens = write_secret(tmp_path / "tokens", f"{SECRET} admin\n{USER} predict\n")
    daemon = capturing("--capture-paused", f"--token-file={tokens}")
    admin, user = ({"Authorization": f"Bearer {token}"} for token in (SECRET, USER))
    predict(daemon, metadata=[("authorization", f"Bearer {USER}")])
    assert post(daemon, "/v1/capture", b'{"enabled": true}', user)[0] == 403
    assert post(daemon, "/v1/capture", b'{"enabled": true}')[0] == 401
    status, body = post(daemon, "/v1/capture", b'{"rate": 2}', admin)
    assert status == 400 and b"expected a share from 0 to 1" in body
    status, body = post(daemon, "/v1/capture", b'{"enabled": true, "rate": 0, "models": {"segmenter": 1}}', admin)
    assert status == 200 and json.loads(body)["models"] == {"segmenter": 1}
    headers = [("authorization", f"Bearer {USER}"), ("x-api-key", USER)]
    predict(daemon, metadata=headers)
    predict(daemon, "segmenter", metadata=headers)
    with pytest.raises(grpc.RpcError):
        predict(daemon, "nothing", metadata=headers)
    path = f"/v1/predict/detector?token={USER}"
    assert post(daemon, path, PICTURE, {"Content-Type": "image/png", "Cookie": USER, **user})[0] == 400
    stop(daemon)
    calls = calls_of(saccade, tmp_path / "calls")
    assert sorted((call.model, call.status) for call in calls) == [
        ("detector", "INVALID_ARGUMENT"), ("nothing", "NOT_FOUND"), ("segmenter", "OK")
    ]
    everything = raw_bytes(tmp_path / "calls")
    assert b"s3cret" not in everything and b"token=REMOVED" in everything
    assert b"authorization" not in everything.lower()


@pytest.mark.parametrize("pixels", ["hash", "none"])
def test_without_pixels_no_byte_of_them_is_written(capturing, saccade, tmp_path, pixels):
    daemon = capturing(f"--capture-pixels={pixels}")
    sent = captures.call_by_grpc(daemon) + captures.call_by_http(daemon)
    stop(daemon)
    everything = raw_bytes(tmp_path / "calls")
    assert UNIQUE in PICTURE and UNIQUE not in everything
    assert captures.base64.b64encode(PICTURE)[60:90] not in everything
    calls = calls_of(saccade, tmp_path / "calls")
    assert len(calls) == sent
    for call in calls:
        assert call.request_bytes > 0 and call.answer_bytes > 0 and not call.request and not call.answer
        assert ("request_sha256" in call.facts) == (pixels == "hash")
    if pixels == "hash":
        assert hashlib.sha256(PICTURE).hexdigest() in [call.request_sha256 for call in calls]


def test_without_the_flag_nothing_can_be_switched_on(start, tasks_repository):
    daemon = start(tasks_repository, "--warm-up-seconds=0").await_ready()
    status, body = post(daemon, "/v1/capture", b'{"enabled": true}')
    assert status == 501 and b"--capture DIR" in body
    assert "saccade_captured_calls_total" not in daemon.get("/metrics", daemon.metrics_port)[2]


@pytest.mark.parametrize("flags, said", [
    (("--capture=/proc/nothing",), "cannot be created"),
    (("--capture=/dev/null",), "expected a folder"),
    (("--capture-sink=ftp://somewhere",), "expected an address that begins with http"),
])  # fmt: skip
def test_what_cannot_be_written_ends_the_start(tasks_repository, flags, said):
    ended = run_to_end(f"--model-repository={tasks_repository}", "--host=127.0.0.1", "--grpc-port=0", "--http-port=0",
                       "--metrics-port=0", *flags)
    assert ended.returncode == 1 and said in ended.stderr


def test_a_folder_that_the_user_may_not_write_ends_the_start(tasks_repository, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    ended = run_to_end(f"--model-repository={tasks_repository}", f"--capture={tmp_path}", "--host=127.0.0.1")
    assert ended.returncode == 1 and "cannot be written" in ended.stderr


def test_a_full_disk_loses_captures_and_no_call(capturing, saccade, tmp_path):
    # The limit of a file's size ends a write as a full disk does.
    daemon = capturing("--decode=thread", under=["prlimit", "--fsize=60000"])
    predict(daemon)
    with daemon.vision() as vision:
        vision.predict(predict_request(model="detector", encoded=noise(300)), timeout=DEADLINE_SECONDS)
    eventually(lambda: counted(daemon, "capture_dropped_calls_total", reason="write_failed") > 0, "a write has failed")
    daemon.await_log("captured calls were dropped", "File too large")
    predict(daemon)
    stop(daemon)
    # What was written before is whole; the last call may have come while the file system was left alone.
    assert 1 <= len(calls_of(saccade, tmp_path / "calls")) <= 2


def size_of(folder):
    """At most the bytes that the folder had at one time: the oldest file, which is deleted first, is looked at last."""
    size = 0
    for path in sorted(folder.glob("*.saccade"), reverse=True):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def test_old_segments_make_room_under_load(capturing, saccade, tmp_path):
    most = 2 << 20
    daemon = capturing(f"--capture-max-bytes={most}")
    large = noise(300)
    folder = tmp_path / "calls"

    def send(_):
        with daemon.vision() as vision:
            vision.predict(predict_request(model="detector", encoded=large), timeout=DEADLINE_SECONDS)
        return size_of(folder)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        sizes = list(pool.map(send, range(40)))
    eventually(lambda: counted(daemon, "captured_calls_total") == 40, "all calls are written")
    assert max(sizes) <= most and counted(daemon, "captured_bytes_total") > 2 * most
    assert counted(daemon, "capture_bytes") <= most
    stop(daemon)
    assert 0 < len(calls_of(saccade, folder)) < 40


def test_a_queue_without_room_drops_and_answers(capturing):
    daemon = capturing("--capture-queue-bytes=65536", "--capture-pixels=full")
    large = noise(300)
    with daemon.vision() as vision:
        for _ in range(5):
            vision.predict(predict_request(model="detector", encoded=large), timeout=DEADLINE_SECONDS)
    eventually(lambda: counted(daemon, "capture_dropped_calls_total", reason="queue_full") == 5, "all are dropped")
    assert counted(daemon, "captured_calls_total") == 0


class Sink:
    """Keeps the events that were posted; does not respond while `open` is cleared."""

    def __init__(self):
        self.events, self.open = [], threading.Event()
        self.open.set()
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.open.wait()
                sink.events.append((dict(self.headers), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self.open.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def sink():
    made = Sink()
    yield made
    made.close()


def test_the_sink_gets_cloud_events(start, tasks_repository, sink):
    daemon = start(tasks_repository, "--warm-up-seconds=0", f"--capture-sink={sink.url}", "--id=eyes",
                   environment={"POD_NAMESPACE": "shop"}).await_ready()
    assert post(daemon, "/v1/predict/detector?top_k=3", PICTURE, {"Content-Type": "image/png"})[0] == 200
    eventually(lambda: len(sink.events) == 2, "both events have arrived")
    (asked, request), (told, answer) = sink.events
    assert request == PICTURE and json.loads(answer)["model"] == "detector"
    for headers, kind in ((asked, "request"), (told, "response")):
        named = {name.lower(): value for name, value in headers.items()}
        assert named["ce-specversion"] == "1.0" and named["ce-type"] == f"org.kubeflow.serving.inference.{kind}"
        assert named["ce-source"] == "saccaded/eyes" and named["ce-namespace"] == "shop"
        assert named["ce-inferenceservicename"] == "detector" and named["ce-component"] == "predictor"
    assert asked["ce-id"] == told["ce-id"] and asked["content-type"] == "image/png"
    eventually(lambda: counted(daemon, "capture_events_total") == 2, "both are counted")


def test_a_sink_that_hangs_or_is_down_costs_no_call(start, tasks_repository, sink):
    sink.open.clear()
    flags = ("--warm-up-seconds=0", f"--capture-sink={sink.url}", "--capture-queue-bytes=65536")
    daemon = start(tasks_repository, *flags).await_ready()
    raw = {"segmentation": {"format": captures.RAW}}
    for _ in range(30):
        predict(daemon, "segmenter", **raw)
    eventually(lambda: counted(daemon, "capture_dropped_events_total", reason="queue_full") > 0, "events are dropped")
    sink.close()
    eventually(lambda: counted(daemon, "capture_dropped_events_total", reason="send_failed") > 0, "the sink is down")
    predict(daemon)
    daemon.await_log("events of captured calls were dropped")
