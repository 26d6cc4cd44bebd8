"""Runs the examples of HAProxy and Envoy (deploy/proxies) in front of two daemons, and kills and drains one under load."""

import collections
import contextlib
import json
import struct
import time
import urllib.request

import grpc
import pytest

from harness import eventually
from messages import Inference, infer_request
from proxied import GRPC, PROXIES, REST, STATUS, Calls, Stage, envoy_command, haproxy_command

RATE = 40
# Bytes of a request: one that fits into every buffer of the examples, and one that fits into none.
SMALL, LARGE = 4096, 2 << 20
# Time in which the proxies notice a killed replica: two failed checks, or three failed requests.
NOTICED_SECONDS = 3


@pytest.fixture(scope="module", params=[haproxy_command, envoy_command], ids=["haproxy", "envoy"])
def stage(request, tmp_path_factory):
    with Stage(request.param, tmp_path_factory.mktemp("proxied")) as made:
        yield made


@contextlib.contextmanager
def ways(stage):
    """Calls over gRPC with small and large requests, and over REST."""
    # Without the client's own repetitions: what the proxy loses is to be seen.
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]

    def over_grpc(inference, size):
        shape, raw = (1, 1, 1, size // 2048, 512), struct.pack("<f", 1) * (size // 4)

        def send(_):
            answer = inference.model_infer(infer_request("served", shape, raw), timeout=20)
            assert answer.raw_output_contents[0] == raw
            return int(answer.model_version)
        return send

    def over_rest(number):
        data = [number, 1, 2, 3]
        body = {"inputs": [{"name": INPUT, "shape": [1, 1, 1, 1, 4], "datatype": "FP32", "data": data}]}
        request = urllib.request.Request(f"http://{stage.address}:{REST}/v2/models/served/infer",
                                         json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as response:
            answer = json.load(response)
        assert answer["outputs"][0]["data"] == data
        return int(answer["model_version"])

    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(grpc.insecure_channel(f"{stage.address}:{GRPC}", options)) for _ in range(2)]
        for channel in channels:
            grpc.channel_ready_future(channel).result(timeout=20)
        yield [stack.enter_context(calls) for calls in (
            Calls("gRPC, small", RATE, over_grpc(Inference(channels[0]), SMALL), time.monotonic),
            Calls("gRPC, large", RATE / 4, over_grpc(Inference(channels[1]), LARGE), time.monotonic),
            Calls("REST, small", RATE, over_rest, time.monotonic))]


INPUT = infer_request("served", (1,), b"").inputs[0].name


def both_answer(stage, calls):
    since = time.monotonic()
    for one in calls:
        try:
            one.await_both(since)
        except AssertionError as error:
            raise AssertionError(f"{error}: {one.failures()[-3:]}\n{stage.proxy_log()[-2000:]}") from error


def forget(calls):
    for one in calls:
        one.ended.clear()


def test_a_killed_replica_costs_what_the_example_says(stage):
    with ways(stage) as calls:
        both_answer(stage, calls)
        forget(calls)
        killed = time.monotonic()
        held = {one.name: one.open for one in calls}
        stage.pods[0].kill()
        after = killed + NOTICED_SECONDS
        eventually(lambda: all(sum(sent > after for sent, _, _ in one.ended) >= 20 for one in calls), "calls go on")
        stage.announce()
        for one in calls:
            print(f"{one.name}: {len(one.ended)} calls, {held[one.name]} open when killed, failed {one.failures()}")
        for one in calls:
            late = [failure for failure in one.failures() if failure[0] > after]
            assert not late, f"{one.name}: failed after the replica was known to have ended: {late}"
            if "small" in one.name:
                assert not one.failures(), f"{one.name}: {one.failures()}"
        stage.replace(0)
        both_answer(stage, calls)


def test_a_replica_that_drains_loses_no_request(stage):
    with ways(stage) as calls:
        both_answer(stage, calls)
        forget(calls)
        stage.pods[1].process.terminate()
        assert stage.pods[1].process.wait(timeout=50) == 0, stage.pods[1].log()
        stage.announce()
        ended = time.monotonic()
        eventually(lambda: all(sum(sent > ended for sent, _, _ in one.ended) >= 10 for one in calls), "calls go on")
        for one in calls:
            assert not one.failures(), f"{one.name}: {one.failures()}"
        stage.replace(1)
        both_answer(stage, calls)


# Calls one after the other, of which Envoy's decisions are looked at.
RECENT = 200


def test_envoy_gives_fewer_calls_to_a_replica_that_reports_more_load(tmp_path):
    """Calls follow one another, so that no replica has an open request when the next one is sent: by their open requests
    the two would get the same number of calls."""
    with Stage(envoy_command, tmp_path, delays_ms=(10, 60)) as stage:
        with grpc.insecure_channel(f"{stage.address}:{GRPC}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
            grpc.channel_ready_future(channel).result(timeout=20)
            inference, request = Inference(channel), infer_request("served", (1, 1, 1, 1, 1), struct.pack("<f", 1))
            answered = collections.deque(maxlen=RECENT)

            def slow_one_has_few():
                answered.append(int(inference.model_infer(request, timeout=20).model_version))
                return len(answered) == RECENT and answered.count(2) / RECENT
            eventually(lambda: 0 < slow_one_has_few() < 0.3, "the slower replica gets few calls")


@pytest.mark.parametrize("stage", [haproxy_command], indirect=True, ids=["haproxy"])
def test_haproxys_status_says_whether_a_replica_is_ready(stage):
    with urllib.request.urlopen(f"http://{stage.address}:{STATUS}/ready", timeout=20) as response:
        assert response.read() == b"ready"
    with urllib.request.urlopen(f"http://{stage.address}:{STATUS}/metrics", timeout=20) as response:
        assert b"haproxy_backend_active_servers" in response.read()


def test_the_folder_has_no_example_that_is_not_run():
    assert {file.name for file in PROXIES.iterdir()} == {"haproxy.cfg", "envoy.yaml"}
