"""Checks how ./dev soak judges growth: by the medians of the minutes, which looks that fall into a load hardly change."""

import pytest

from tools.soak.growth import MAX_GROWTH, faults_of, grown
from tools.soak.measure import Look, by_minute

MINUTES = 20
LOOKS_A_MINUTE = 12


def looks(resident, allocated=lambda minute: 100.0):
    """Looks whose memory is told by the minute and the number of the look in it."""
    return [
        Look(60 * minute + 5 * number, resident(minute, number), allocated(minute), 20, 30)
        for minute in range(MINUTES) for number in range(LOOKS_A_MINUTE)
    ]


def faults(made):
    growth = {name: grown(made, name) for name in ("resident_mib", "allocated_mib", "threads", "descriptors")}
    return faults_of({"faults": [], "exit_code": 0, "reloads": 1, "growth": growth})


def test_the_median_of_each_minute_stands_in_its_middle():
    assert by_minute([1, 2, 59, 61, 119], [5, 900, 6, 7, 9]) == ([30, 90], [6, 8])


def test_memory_that_stays_is_no_fault():
    assert not faults(looks(lambda minute, number: 300))


def test_looks_that_fall_into_loads_are_no_growth():
    # Two versions of a model are there in five of the twelve looks of each later minute.
    made = looks(lambda minute, number: 400 if number < 5 and minute >= MINUTES / 2 else 300)
    assert not faults(made)


@pytest.mark.parametrize("leaks", ["resident", "allocated"])
def test_a_leak_is_a_fault(leaks):
    grows = lambda minute: 300 * (1 + 1.5 * MAX_GROWTH * minute / MINUTES)
    made = looks(lambda minute, number: grows(minute) if leaks == "resident" else 300,
                 grows if leaks == "allocated" else lambda minute: 300)
    found = faults(made)
    assert len(found) == 1 and found[0].startswith(f"{leaks} memory grew by"), found
