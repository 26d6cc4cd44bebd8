"""Tests the Python client's streams, sync and asyncio: order, errors of single items, the bound, and how they end."""

import itertools
import queue
from concurrent import futures

import grpc
import pytest

import pictures
from harness import DEADLINE_SECONDS, eventually
from messages import message


def picture(seed):
    return pictures.encoded(pictures.pixels(seed, 64, 64))


@pytest.fixture(scope="module")
def client(daemon, connect):
    return connect(daemon.grpc_address, timeout=DEADLINE_SECONDS)


class Outcomes:
    """The outcomes of a stream of either client, one by one."""

    def __init__(self, client, requests, **options):
        self._loop = getattr(client, "_loop", None)
        made = client.__dict__["_client"] if self._loop else client
        self._items = made.stream(requests, **options)

    def __iter__(self):
        return self

    def __next__(self):
        if self._loop is None:
            return next(self._items)
        try:
            return self._loop.run_until_complete(self._items.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self):
        self._items.close() if self._loop is None else self._loop.run_until_complete(self._items.aclose())


def test_order_is_kept_and_errors_are_of_one_item(client, saccade):
    sent = [saccade.Classify("gathering", picture(seed), top_k=5, request_id=str(seed)) for seed in range(12)]
    sent[3] = saccade.Classify("nothing", picture(3), request_id="3")
    sent[5] = saccade.Classify("gathering", b"no picture", request_id="5")
    sent[7] = saccade.Classify("gathering", "no/such.png", request_id="7")
    sent[8] = saccade.Classify("gathering", picture(8), version=1, priority=200, request_id="8")
    items = list(Outcomes(client, sent, in_flight=5))
    assert [item.index for item in items] == list(range(12))
    assert [item.request_id for item in items] == [str(seed) for seed in range(12)]
    failed = {item.index: type(item.error) for item in items if item.error is not None}
    assert failed == {3: saccade.NotFound, 5: saccade.InvalidArgument, 7: FileNotFoundError, 8: saccade.InvalidArgument}
    assert items[8].error.field == "priority"
    with pytest.raises(saccade.NotFound, match="nothing"):
        items[3].result()
    for seed in (0, 4, 11):
        assert items[seed].result().classes == client.classify("gathering", picture(seed), top_k=5).classes


def test_many_tasks_on_one_stream(client, saccade):
    sent = [saccade.Classify("tiny", picture(1)), saccade.Detect("tiny", picture(1)), saccade.Classify("tiny", picture(2))]
    first, second, third = Outcomes(client, iter(sent))
    assert isinstance(first.answer, saccade.Classification) and isinstance(third.answer, saccade.Classification)
    assert isinstance(second.error, saccade.InvalidArgument)
    assert list(Outcomes(client, [])) == []


def test_no_more_is_taken_than_is_in_flight(client, saccade):
    taken = []

    def endless():
        for number in itertools.count():
            taken.append(number)
            yield saccade.Classify("tiny", picture(1))

    items = Outcomes(client, endless(), in_flight=3)
    for yielded in range(1, 6):
        assert next(items).error is None
        # One more request is taken for each outcome returned, whether or not the caller reads the responses.
        eventually(lambda: len(taken) >= yielded + 2, "as many are taken as may be in flight")
        assert len(taken) <= yielded + 3
    items.close()


def test_what_the_iterator_raises_comes_after_the_answers(client, saccade):
    def two_and_no_more():
        yield saccade.Classify("tiny", picture(1))
        yield saccade.Classify("tiny", picture(2))
        raise RuntimeError("the camera is gone")

    items = Outcomes(client, two_and_no_more())
    assert next(items).answer is not None and next(items).answer is not None
    with pytest.raises(RuntimeError, match="the camera is gone"):
        next(items)


def test_an_asynchronous_iterator(daemon, saccade):
    import asyncio

    async def camera():
        for seed in range(5):
            await asyncio.sleep(0)
            yield saccade.Classify("tiny", picture(seed))

    async def run():
        async with saccade.AsyncClient(daemon.grpc_address, timeout=DEADLINE_SECONDS) as client:
            return [item.index async for item in client.stream(camera(), in_flight=2) if item.result()]

    assert asyncio.run(run()) == list(range(5))


def test_a_stream_that_is_closed_gives_up_what_waits(client, saccade, daemon):
    items = Outcomes(client, (saccade.Classify("gathering", picture(1)) for _ in itertools.count()), in_flight=8)
    next(items)
    items.close()
    eventually(lambda: daemon.metrics().total("saccade_inflight_requests") == 0, "nothing is in the daemon any more")


class Streaming(grpc.GenericRpcHandler):
    """A daemon that answers a number of items of a stream and then ends it: with `code`, or as the daemon does, when
    the client has ended its side, or (`early`) before that."""

    def __init__(self, answered, code, early):
        self.answered, self.code, self.early = answered, code, early
        self.received = []
        # The name of the result with which items are answered, in place of an error.
        self.result = None

    def service(self, details):
        request = message("saccade.v1.PredictStreamRequest")
        return grpc.stream_stream_rpc_method_handler(self.answer, request.FromString, lambda sent: sent.SerializeToString())

    def answer(self, requests, context):
        for index in range(self.answered):
            self.received.append(next(requests))
            made = message("saccade.v1.PredictStreamResponse")(index=index)
            if self.result is not None:
                getattr(made.answer, self.result).SetInParent()
            else:
                made.error.code, made.error.message, made.error.reason = 8, "full", "QUEUE_FULL"
                made.error.retry_after.FromMilliseconds(1500)
            yield made
        if self.code is not None:
            context.abort(self.code, "as told")
        if not self.early:
            assert next(requests, None) is None


@pytest.fixture
def streaming():
    servers = []

    def start(answered, code=None, early=False):
        handler = Streaming(answered, code, early)
        server = grpc.server(futures.ThreadPoolExecutor(64), handlers=[handler])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return handler, f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(None).wait()


@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE, None])
def test_the_end_of_the_stream_is_told_although_nothing_more_is_sent(connect, saccade, streaming, code):
    _, address = streaming(0, code, early=True)
    more = queue.Queue()
    more.put(saccade.Classify("m", b"picture"))
    items = Outcomes(connect(address), iter(more.get, None))
    with pytest.raises(saccade.SaccadeError, match="as told" if code else "unanswered") as error:
        # Items may be answered before the error.
        for _ in items:
            pass
    assert error.value.code == (code or grpc.StatusCode.UNAVAILABLE)
    # Ends the iterator on which gRPC's thread is blocked.
    more.put(None)


def test_what_an_item_says(connect, saccade, streaming):
    handler, address = streaming(3)
    sent = [saccade.Classify("m", b"a"), saccade.Classify("m", b"b", timeout=1.5), saccade.Classify("m", b"c")]
    items = list(Outcomes(connect(address, timeout=7), sent))
    assert [one.timeout.ToTimedelta().total_seconds() for one in handler.received] == [7, 1.5, 7]
    assert [one.request.encoded for one in handler.received] == [b"a", b"b", b"c"]
    for item in items:
        error = item.error
        assert isinstance(error, saccade.ResourceExhausted) and str(error) == "full"
        assert error.retry_after == 1.5 and error.reason == "QUEUE_FULL" and error.field is None


def test_the_result_of_another_task_is_an_error_of_its_item(connect, saccade, streaming):
    handler, address = streaming(2)
    handler.result = "embedding"
    wrong, right = Outcomes(connect(address), [saccade.Classify("m", b"a"), saccade.Embed("m", b"b")])
    assert isinstance(wrong.error, saccade.Internal) and "an embedding instead of a classification" in str(wrong.error)
    assert isinstance(right.answer, saccade.Embedding)


def test_what_is_no_request_is_an_error_of_its_item(connect, saccade, streaming):
    handler, address = streaming(2)
    items = list(Outcomes(connect(address), [saccade.Classify("m", b"a"), None, "b.png", saccade.Classify("m", b"c")]))
    assert [(item.index, type(item.error)) for item in items] == [
        (0, saccade.ResourceExhausted), (1, TypeError), (2, TypeError), (3, saccade.ResourceExhausted)]
    assert "has a NoneType; expected requests" in str(items[1].error) and items[1].request_id == ""
    assert [one.request.encoded for one in handler.received] == [b"a", b"c"]


def test_idle_streams_of_an_asynchronous_client_do_not_hold_up_another(saccade, streaming, monkeypatch):
    import asyncio

    from saccade import aio

    _, address = streaming(1)

    async def run():
        more = asyncio.Event()

        async def idle():
            await more.wait()
            yield saccade.Classify("m", b"late")

        async with saccade.AsyncClient(address) as client:
            waiting = [client.stream(idle()) for _ in range(40)]
            tasks = [asyncio.ensure_future(one.__anext__()) for one in waiting]
            await asyncio.sleep(0)
            sent = client.stream([saccade.Classify("m", b"picture")])
            found = [item.index for item in await asyncio.wait_for(_all(sent), DEADLINE_SECONDS)]
            # A stream whose time is over ends, however many are idle.
            with pytest.raises(saccade.DeadlineExceeded):
                await asyncio.wait_for(_all(client.stream(idle(), timeout=0.1)), DEADLINE_SECONDS)
            monkeypatch.setattr(aio, "_MOST_STREAMS", 40)
            with pytest.raises(saccade.ResourceExhausted, match="40 streams and restorations of this client are open"):
                await _all(client.stream([]))
            more.set()
            late = [item.index for item in await asyncio.gather(*tasks)]
            for one in waiting:
                await one.aclose()
            return found, late

    assert asyncio.run(run()) == ([0], [0] * 40)


async def _all(items):
    return [item async for item in items]


def test_no_daemon_there_and_no_room(connect, saccade):
    with pytest.raises(saccade.Unavailable):
        list(Outcomes(connect("127.0.0.1:1"), [saccade.Classify("m", b"picture")]))
    with pytest.raises(ValueError, match="in_flight"):
        list(Outcomes(connect("127.0.0.1:1"), [], in_flight=0))
