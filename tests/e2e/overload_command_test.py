"""Tests the report of `./dev overload`: every call is counted, and a missed bound is reported. The daemon's performance
is measured by the command itself, which takes longer."""

import dataclasses

import pytest

from tools.overload.looks import Look
from tools.overload.play import CLIENTS, Counters, Played, Step, counted, play
from tools.overload.report import Found

LATENCIES = {"p50": 1.0, "p90": 1.0, "p99": 2.0, "mean": 1.0}


def test_every_call_is_accounted_for(tmp_path):
    # A deadline that holds on a machine on which other programs compute, too, where a pass takes many times as long as alone.
    found = Found(play(minutes=0.05, step_seconds=0.5, look_seconds=0.5, folder=tmp_path, deadline_ms=2000))
    print(found.report(), found.missed())
    assert not found.unaccounted()
    calls = found.calls
    assert calls["refused"] > calls["in_time"] > 0
    assert set(calls["refused_by_reason"]) <= {"PREDICTED_LATE", "DEADLINE", "QUEUE_FULL"}
    found.plot(tmp_path / "overload.svg")
    assert (tmp_path / "overload.svg").read_text().count("<polyline") == 4


class Working:
    """A daemon that still works on a call at the first two looks."""

    looks = 0

    def metrics(self):
        self.looks += 1
        return self

    def total(self, name, **_):
        return float(self.looks < 3) if name == "saccade_inflight_requests" else float(self.looks)


def test_calls_that_have_not_ended_are_awaited_before_they_are_counted():
    assert counted(Working()).ended >= 3


@pytest.fixture
def played():
    """A minute in which everything went well: 50 of 500 requests per second in time."""
    best = Step(60, 50.0)
    calls = {
        "elapsed_s": 60.0, "sent": 30_000, "in_time": 2_990, "late": 10, "refused": 27_000, "failed": 0,
        "refused_by_reason": {"PREDICTED_LATE": 27_000}, "failed_by_code": {}, "in_time_by_client": [374, 373] * 4,
        "seconds": [[50, 0, 450, 0]] * 60, "answers_ms": LATENCIES, "refusals_ms": LATENCIES, "behind_ms": LATENCIES,
        "processor_s": 1.0,
    }
    return Played(
        minutes=1, deadline_ms=400, closed=40.0, steps=[best], before=best, after=best, rate=500.0, calls=calls,
        counters=Counters(ended=30_000 + CLIENTS, items=3_000, passes=750, waited=300.0, waits=3_000), exit_code=0,
        looks=[Look(float(second), 300.0, float(second), 0.0, 0.1 * second) for second in range(0, 61, 2)],
    )


def test_a_good_run_has_no_faults(played):
    assert Found(played).faults() == []
    assert "**99.7%** of the peak of 50.0" in Found(played).report()


def of_calls(**changed):
    return lambda played: dataclasses.replace(played, calls={**played.calls, **changed})


@pytest.mark.parametrize("change, told", [
    (of_calls(in_time=2_800, refused=27_190), "goodput was 93.3% of the peak, expected at least 95%"),
    (of_calls(in_time=2_950, late=50), "1.67% of the answers were late"),
    (of_calls(sent=30_001), "30001 calls were sent, and 30000 accounted for"),
    (of_calls(refused=26_999, failed=1, failed_by_code={"INTERNAL": [1, "broken"]}), "calls failed: {'INTERNAL'"),
    (of_calls(in_time_by_client=[700, 100] * 4), "fairness among clients was 0.640"),
    (of_calls(behind_ms={**LATENCIES, "p99": 200.0}), "the load generator was behind by 50%"),
    (lambda played: dataclasses.replace(played, exit_code=1), "the daemon ended with 1"),
    (lambda played: dataclasses.replace(played, counters=dataclasses.replace(played.counters, ended=29_990)),
     "the daemon counted 29990"),
    (lambda played: dataclasses.replace(played, looks=[
        dataclasses.replace(one, resident_mib=300 + one.seconds) for one in played.looks]),
     "resident memory grew by 14.3%"),
])
def test_what_is_not_as_it_has_to_be_is_told(played, change, told):
    faults = Found(change(played)).faults()
    assert len(faults) == 1 and told in faults[0], faults
