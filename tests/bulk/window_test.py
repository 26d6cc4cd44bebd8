"""The places of a sender's window, on an event loop without a daemon."""

import asyncio

import pytest

from saccade.bulk.window import Window


def on_loop(test):
    """Runs the test on a loop of its own. A test that waits for a place that nobody gives fails."""
    def run():
        asyncio.run(asyncio.wait_for(test(), 60))

    return run


async def settled():
    """Lets the tasks that can go on do so: none of them takes more rounds of the loop."""
    for _ in range(5):
        await asyncio.sleep(0)


@on_loop
async def test_a_free_place_wakes_the_one_that_has_waited_longest():
    window, entered = Window(1), []

    async def enter(name):
        await window.enter()
        entered.append(name)

    tasks = [asyncio.ensure_future(enter(name)) for name in range(100)]
    await settled()
    for number in range(1, 101):
        assert entered == list(range(number))
        window.leave()
        await settled()
    await asyncio.gather(*tasks)


@on_loop
async def test_those_who_no_longer_wait_get_no_place():
    window = Window(1)
    await window.enter()
    waiting = [asyncio.ensure_future(window.enter()) for _ in range(3)]
    await settled()
    waiting[0].cancel()
    waiting[1].cancel()
    await settled()
    window.leave()
    assert await waiting[2] == 1


@on_loop
async def test_a_place_given_to_one_that_is_cancelled_in_the_same_round_goes_to_the_next():
    window = Window(1)
    await window.enter()
    first, second = (asyncio.ensure_future(window.enter()) for _ in range(2))
    await settled()
    window.leave()
    first.cancel()
    await settled()
    with pytest.raises(asyncio.CancelledError):
        await first
    # The number of the one that left is not used again.
    assert await second == 2


@on_loop
async def test_a_window_that_has_shrunk_gives_no_place_until_as_many_have_left():
    window = Window(8, first=8)
    numbers = [await window.enter() for _ in range(8)]
    window.rejected(numbers[0])
    assert window.limit == 5
    # Sent before the window shrank.
    window.rejected(numbers[7])
    assert window.limit == 5
    next_one = asyncio.ensure_future(window.enter())
    for _ in range(3):
        window.leave()
        await settled()
        assert not next_one.done()
    window.leave()
    assert await next_one == 8


@on_loop
async def test_a_window_grows_to_its_maximum_and_lets_the_waiting_in():
    window = Window(6, first=2)
    waiting = [asyncio.ensure_future(window.enter()) for _ in range(6)]
    await settled()
    assert sum(one.done() for one in waiting) == 2
    for _ in range(100):
        window.answered()
    assert window.limit == 6
    window.leave()
    await settled()
    assert all(one.done() for one in waiting)


@on_loop
async def test_a_place_that_was_given_before_the_window_shrank_does_not_shrink_it_again():
    window = Window(8, first=2)
    first = await window.enter()
    given = asyncio.ensure_future(window.enter())
    await asyncio.sleep(0)
    # The place is given, and its task has not gone on yet.
    window.rejected(first)
    assert window.limit == 1
    window.answered()
    assert window.limit == 2
    window.rejected(await given)
    assert window.limit == 2


@on_loop
async def test_a_rejected_request_gives_its_place_to_nobody():
    window = Window(6, first=6)
    numbers = [await window.enter() for _ in range(6)]
    waiting = [asyncio.ensure_future(window.enter()) for _ in range(2)]
    await settled()
    window.rejected(numbers[0])
    window.leave()
    await settled()
    assert not any(one.done() for one in waiting)
    for one in waiting:
        one.cancel()


@on_loop
async def test_a_free_place_wakes_nobody_else():
    window, woken = Window(1), []
    await window.enter()

    class Watched(asyncio.Future):
        def set_result(self, result):
            woken.append(result)
            super().set_result(result)

    loop = asyncio.get_running_loop()
    loop.create_future = lambda: Watched(loop=loop)
    waiting = [asyncio.ensure_future(window.enter()) for _ in range(100)]
    await settled()
    window.leave()
    await settled()
    assert woken == [1]
    for one in waiting:
        one.cancel()


@on_loop
async def test_a_request_that_is_to_be_alone_is_alone_and_comes_next():
    window, entered = Window(2), []

    async def enter(name, alone=False):
        await window.enter(alone)
        entered.append(name)

    await enter("a")
    await enter("b")
    tasks = [asyncio.ensure_future(enter(*given)) for given in (("c",), ("d",), ("first", True), ("second", True))]
    await settled()
    window.leave()
    await settled()
    # One is in flight still.
    assert entered == ["a", "b"]
    for expected in (["first"], ["first", "second"], ["first", "second", "c", "d"]):
        window.leave()
        await settled()
        assert entered == ["a", "b", *expected]
    await asyncio.gather(*tasks)


@on_loop
async def test_one_that_no_longer_waits_to_be_alone_holds_nobody_back():
    window = Window(2)
    await window.enter()
    alone = asyncio.ensure_future(window.enter(alone=True))
    await settled()
    other = asyncio.ensure_future(window.enter())
    await settled()
    assert not other.done()
    alone.cancel()
    assert await other == 1


@on_loop
async def test_a_lonely_place_given_to_one_that_is_cancelled_in_the_same_round_is_free_again():
    window = Window(2)
    await window.enter()
    alone = asyncio.ensure_future(window.enter(alone=True))
    others = [asyncio.ensure_future(window.enter()) for _ in range(2)]
    await settled()
    window.leave()
    alone.cancel()
    assert await asyncio.gather(*others) == [2, 3]
