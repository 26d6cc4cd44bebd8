"""Plays a rolling update of three replicas behind a proxy and behind gRPC's own balancing, in the kubelet's order: it
must lose no request; a replica that is killed loses only its own requests. `./dev rollout` plays it a hundred times."""

import grpc
import pytest

from harness import binary
from tools.rollout.play import REPLICAS, Stage
from tools.rollout.replicas import Times

RATE = 60
REPLACEMENTS = 2
# Long enough that requests which a busy machine has not answered at its end hardly count.
STEADY_SECONDS = 5


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    # Announcements may come late on a busy machine, and processes may end late.
    times = Times(pre_stop=1, lame_duck=1, unnoticed=0.3, drain=10, grace=20)
    with Stage(binary("saccaded"), tmp_path_factory.mktemp("rollout"), RATE, times) as made:
        assert not made.without_proxy, "HAProxy is not installed; ./dev setup tests brings it"
        print(f"{REPLICAS} replicas {made.network}", made.no_namespaces or "")
        yield made


def heard(tally):
    return f"{tally.way.name}: sent {tally.sent}, answered {tally.answered}, failed {dict(tally.reasons())}"


def test_every_replica_has_its_share(stage):
    for tally in stage.steady(STEADY_SECONDS):
        assert not tally.failed and not tally.wrong, heard(tally)
        assert len(tally.by_replica) == REPLICAS
        assert tally.spread <= 0.1, f"{tally.way.name}: {tally.by_replica}"
    assert 10e-6 < stage.processor_per_call < 20e-3, "a call takes tens of microseconds to some milliseconds"


def test_replacing_replicas_loses_no_request(stage):
    tallies, wrong = stage.replace(REPLACEMENTS)
    assert not wrong
    for tally in tallies:
        assert not tally.failed and not tally.wrong, heard(tally)
        assert len(tally.by_replica) == REPLICAS + REPLACEMENTS, "old and new ones answered"
    assert stage.proxy.sent_again() == 0, "nobody was sent to where nobody listened any more"


def test_a_killed_replica_loses_what_it_held_and_retries_cover_it(stage):
    tallies, killed, holding = stage.kill()
    for tally, held in zip(tallies, holding):
        print(heard(tally), f"open when killed {held}")
        assert not tally.wrong and tally.answered > 0
        if tally.way.retries:
            assert not tally.failed, heard(tally)
        for one in tally.failed:
            assert one.code == grpc.StatusCode.UNAVAILABLE, heard(tally)
            # Sent while the proxy did not know yet that the replica had ended; no later request may fail.
            assert one.sent - killed < 2, f"sent {one.sent - killed:.3f} s after; {heard(tally)}"
