"""Tests the response cache through Triton's statistics and metrics."""

import shutil

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException

from harness import eventually, run_to_end
from messages import infer_request
from tiny_models import Identity, assert_close, write_cached, write_model


@pytest.fixture
def root(tiny, tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    write_cached(folder, "cached", tiny, max_batch_size=8)
    # Smaller than a single response.
    write_cached(folder, "bounded", tiny, max_batch_size=8, parameters={"max_cache_bytes": "100"})
    write_model(folder, "computed", tiny, max_batch_size=8)
    return folder


def infer(daemon, model, batch, **options):
    made = triton.InferInput("image", batch.shape, "FP32")
    made.set_data_from_numpy(batch)
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        return client.infer(model, [made], **options)


def counts(daemon, model):
    metrics = daemon.metrics()
    names = ("nv_cache_num_hits_per_model", "nv_cache_num_misses_per_model", "nv_inference_request_success")
    return [metrics.total(name, model=model) for name in (*names, "nv_inference_count", "nv_inference_exec_count")]


def cache_statistics(daemon, model):
    """Hits and misses, which must be the same over both protocols."""
    with triton.InferenceServerClient(daemon.grpc_address) as client:
        over_grpc = client.get_inference_statistics(model).model_stats[0].inference_stats
    with triton_http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}") as client:
        over_http = client.get_inference_statistics(model)["model_stats"][0]["inference_stats"]
    for name in ("cache_hit", "cache_miss"):
        spent = getattr(over_grpc, name)
        assert over_http[name] == {"count": spent.count, "ns": spent.ns}
        assert (spent.ns > 0) == (spent.count > 0)
    return [over_grpc.cache_hit.count, over_grpc.cache_miss.count]


def test_an_equal_request_is_answered_with_what_was_kept(start, tiny, root):
    daemon = start(root, "--cache-config=local,size=1048576").await_ready()
    batch = tiny.random_batch(2, seed=1)
    first = infer(daemon, "cached", batch, request_id="1")
    assert counts(daemon, "cached") == [0, 1, 1, 2, 1]
    second = infer(daemon, "cached", batch, request_id="2", model_version="1")
    assert counts(daemon, "cached") == [1, 1, 2, 2, 1]
    assert second.get_response().id == "2"
    assert second.get_response().model_name == "cached"
    assert (first.as_numpy("logits") == second.as_numpy("logits")).all()
    assert_close(second.as_numpy("logits"), tiny.logits(batch))
    assert cache_statistics(daemon, "cached") == [1, 1]
    metrics = daemon.metrics()
    assert metrics.total("nv_cache_hit_duration_per_model", model="cached") > 0
    assert metrics.total("nv_cache_miss_duration_per_model", model="cached") > 0
    assert metrics.value("saccade_response_cache_answers") == 1
    assert 0 < metrics.value("saccade_response_cache_bytes") < 1 << 20


def test_what_differs_is_computed(start, tiny, root):
    daemon = start(root, "--response-cache-byte-size=1048576").await_ready()
    batch = tiny.random_batch(1, seed=1)
    infer(daemon, "cached", batch)
    other = batch.copy()
    other[0, 0, 0, 0] = numpy.nextafter(other[0, 0, 0, 0], numpy.float32(9))
    assert_close(infer(daemon, "cached", other).as_numpy("logits"), tiny.logits(other))
    # Other forms of the same outputs are cut from the entry.
    wanted = [triton.InferRequestedOutput("logits", class_count=1)]
    assert infer(daemon, "cached", batch, outputs=wanted).as_numpy("logits").shape == (1, 1)
    assert counts(daemon, "cached")[:2] == [1, 2]
    # Each model has its own entries, and models without a cache are not affected.
    infer(daemon, "computed", batch)
    infer(daemon, "computed", batch)
    assert counts(daemon, "computed") == [0, 0, 2, 2, 2]
    infer(daemon, "bounded", batch)
    infer(daemon, "bounded", batch)
    assert counts(daemon, "bounded") == [0, 2, 2, 2, 2]


def test_failures_are_not_kept(start, tiny, root):
    daemon = start(root, "--cache-config=local,size=1048576").await_ready()
    for _ in range(2):
        with pytest.raises(InferenceServerException, match="the shape is"):
            infer(daemon, "cached", numpy.zeros((1, 3, 5, 5), numpy.float32))
    # Requests that are wrong are not looked for.
    assert counts(daemon, "cached") == [0, 0, 0, 0, 0]


def volume(first, values=4):
    made = numpy.zeros((1, 1, 1, 1, values), numpy.float32)
    made.reshape(-1)[0] = first
    return made


def request(first, values=4):
    sent = volume(first, values)
    return infer_request("slow", sent.shape, sent.tobytes())


@pytest.fixture
def hang(tmp_path_factory):
    file = tmp_path_factory.mktemp("hang") / "file"
    file.touch()
    return file


@pytest.fixture
def slow(start, tmp_path, hang):
    """Starts a daemon with a model that makes one pass at a time. That of `hang_at` ends when the file is gone."""

    def serve(flags=(), **drills):
        write_cached(tmp_path, "slow", Identity(hang_file=str(hang), **drills), max_batch_size=1)
        # One thread that hashes large inputs: they are looked for in the order in which they came.
        cache = ("--cache-config=local,size=10485760", "--allow-drills", "--decode-threads=1")
        return start(tmp_path, *cache, *flags).await_ready()

    return serve


def await_in_flight(daemon, count):
    eventually(lambda: daemon.metrics().value("saccade_inflight_requests") == count, f"{count} were in flight")


# A small input is hashed on the network's thread, a large one on the decode pool.
@pytest.mark.parametrize("values", [4, 60000])
def test_equal_requests_in_flight_are_computed_once(slow, hang, values):
    daemon = slow(hang_at="5")
    with daemon.inference() as inference:
        calls = [inference.model_infer.future(request(5, values)) for _ in range(20)]
        # A request that joins no other one. It waits for the instance, so those before it have been looked for.
        last = inference.model_infer.future(request(6, values))
        eventually(lambda: daemon.metrics().total("nv_inference_pending_request_count") == 1, "the last one waits")
        await_in_flight(daemon, 21)
        hang.unlink()
        for call in calls:
            assert call.result().raw_output_contents[0] == volume(5, values).tobytes()
        assert last.result().raw_output_contents[0] == volume(6, values).tobytes()
    # Hits, misses, successes, items and passes.
    assert counts(daemon, "slow") == [19, 2, 21, 2, 2]
    assert daemon.metrics().total("saccade_response_cache_joined_total", model="slow") == 19


def test_a_leader_that_is_cancelled_takes_no_other_with_it(slow, hang):
    daemon = slow(hang_at="1")
    with daemon.inference() as inference:
        blocking = inference.model_infer.future(request(1))
        await_in_flight(daemon, 1)
        leader = inference.model_infer.future(request(2))
        await_in_flight(daemon, 2)
        waiting = [inference.model_infer.future(request(2)) for _ in range(3)]
        await_in_flight(daemon, 5)
        waiting.pop().cancel()
        leader.cancel()
        await_in_flight(daemon, 3)
        hang.unlink()
        for call in waiting:
            assert call.result().raw_output_contents[0] == volume(2).tobytes()
        blocking.result()
    await_in_flight(daemon, 0)
    # One was computed in the leader's place, and the other was answered with that.
    assert counts(daemon, "slow")[2:] == [3, 2, 2]
    assert daemon.metrics().value("saccade_shed_total", reason="cancelled") == 2


def test_another_version_that_becomes_ready_meanwhile_computes_nothing_for_this_one_s_cache(slow, hang, tmp_path):
    daemon = slow(hang_at="1", flags=["--model-control-mode=explicit", "--load-model=slow"])
    with daemon.inference() as inference:
        blocking = inference.model_infer.future(request(1))
        await_in_flight(daemon, 1)
        leader = inference.model_infer.future(request(2))
        await_in_flight(daemon, 2)
        # The first version's cache has it wait for the leader.
        waiting = inference.model_infer.future(request(2))
        await_in_flight(daemon, 3)
        folder = tmp_path / "slow"
        shutil.copytree(folder / "1", folder / "2")
        config = folder / "config.pbtxt"
        config.write_text(config.read_text() + "version_policy { all { } }\n")
        with triton.InferenceServerClient(daemon.grpc_address) as client:
            client.load_model("slow")
        leader.cancel()
        await_in_flight(daemon, 2)
        hang.unlink()
        assert waiting.result().model_version == "1"
        blocking.result()
        sent = volume(2)
        answers = [inference.model_infer(infer_request("slow", sent.shape, sent.tobytes(), version=version)) for version in ("1", "2", "")]
    assert [answer.model_version for answer in answers] == ["1", "2", "2"]


def test_a_leader_that_fails_gives_its_error_to_no_other(slow):
    daemon = slow(fail_at="13")
    with daemon.inference() as inference:
        calls = [inference.model_infer.future(request(13)) for _ in range(3)]
        for call in calls:
            assert call.code() == grpc.StatusCode.INTERNAL
    assert counts(daemon, "slow") == [0, 3, 0, 0, 0]
    assert daemon.metrics().total("nv_inference_request_failure", reason="BACKEND") == 3


def test_without_a_cache_the_daemon_says_so(start, tiny, root):
    daemon = start(root).await_ready()
    daemon.await_log("response_cache is ignored")
    batch = tiny.random_batch(1, seed=1)
    infer(daemon, "cached", batch)
    infer(daemon, "cached", batch)
    assert counts(daemon, "cached") == [0, 0, 2, 2, 2]
    assert cache_statistics(daemon, "cached") == [0, 0]
    assert not any("cache" in name for name in daemon.metrics().names())


@pytest.mark.parametrize(
    "flags",
    [
        ["--cache-config=redis,host=there"],
        ["--cache-config=local,size=0"],
        ["--cache-config=local,size=much"],
        ["--cache-config=local,size=9", "--response-cache-byte-size=9"],
    ],
)
def test_flags_that_make_no_sense_are_refused(root, flags):
    ended = run_to_end(f"--model-repository={root}", *flags)
    assert ended.returncode == 2
    assert "cache" in ended.stderr
