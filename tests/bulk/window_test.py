"""The places of a sender's window, on an event loop without a daemon."""

import asyncio

import pytest

from saccade.bulk.window import Window


def on_loop(test):
    """Runs the test on a loop of its own."""
    def run():
        asyncio.run(test())

    return run


async def settled():
    """Waits until every task of the loop that can go on has gone on."""
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
    assert await second == 1


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
