"""Tests `./dev attacks`: it plays every attack, measures what one costs, limits the daemon's memory where that is possible, and
tells what was not reached. What attacks may cost is tested by front_attacks_test.py, and measured by the command itself, which
takes longer."""

import dataclasses
import inspect
import subprocess
import sys

import pytest

import attacks_by_frames
import attacks_by_heads
import attacks_by_http1
import attacks_by_messages
import front_attackers
from control_groups import NoControlGroup, group_of_memory, into
from front_attack import MIB
from tools.attacks.__main__ import arguments, why_unlimited
from tools.attacks.play import LEAST_CALLS, LIMIT_BYTES, Calls, Played, play, write_repository
from tools.attacks.report import broken, missed, report


def attacks_of(module):
    """The functions of a module that need nothing but an Attack."""
    for _, function in inspect.getmembers(module, inspect.isfunction):
        parameters = inspect.signature(function).parameters.values()
        needed = [one.name for one in parameters if one.default is inspect.Parameter.empty]
        if function.__module__ == module.__name__ and needed == ["attack"]:
            yield function


def test_every_attack_is_played():
    modules = (attacks_by_frames, attacks_by_heads, attacks_by_http1, attacks_by_messages)
    assert {attack for module in modules for attack in attacks_of(module)} == set(front_attackers.ATTACKS)


def test_what_an_attack_costs_is_measured(tmp_path):
    because = why_unlimited()
    played = play("rapid_reset", 0.5, 0.5, write_repository(tmp_path / "models"), tmp_path, limited=because is None)
    assert broken(played) == []
    assert played.sent > 0 and played.seconds >= 0.5
    assert min(played.resident_before, played.resident_peak, played.resident_after) > MIB
    for calls in (played.before, played.during, played.after):
        assert len(calls.seconds) >= LEAST_CALLS and calls.cores is not None
        assert 0 < calls.percentile(0.5) <= calls.percentile(0.99)
    assert "| `rapid_reset` |" in report([played], because)


def limit_of(group):
    (limit,) = [group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()]
    return int(limit.read_text())


def test_a_control_group_limits_memory():
    try:
        with group_of_memory(LIMIT_BYTES) as group:
            assert limit_of(group) == LIMIT_BYTES
            entered = subprocess.run([*into(group), "cat", "/proc/self/cgroup"], check=True, capture_output=True, text=True)
            assert group.name in entered.stdout
    except NoControlGroup as none:
        pytest.skip(str(none))
    assert not group.exists()


@pytest.mark.parametrize("folder, told", [("", "control groups do not limit memory here"),
                                          ("none", "no control group can be made here")])
def test_where_memory_cannot_be_limited_the_report_says_so(tmp_path, folder, told):
    with pytest.raises(NoControlGroup, match=told) as none, group_of_memory(LIMIT_BYTES, root=tmp_path / folder):
        pass
    assert not list(tmp_path.iterdir())
    assert f"**not limited** to 2 GiB: {told}" in report([], str(none.value))
    assert "in a control group of 2 GiB" in report([], None)


def calls(milliseconds, cores=0.1, failures=()):
    return Calls([milliseconds / 1000] * 100, list(failures), cores)


@pytest.fixture
def played():
    """An attacker that sent 5 kB a second, and took 20 MiB and a twentieth of a core."""
    return Played("rapid_reset", sent=50_000, rounds=3, seconds=10.0, before=calls(4), during=calls(6, cores=0.15),
                  after=calls(4), resident_before=200 * MIB, resident_peak=220 * MIB, resident_after=205 * MIB)


def test_a_good_run_has_no_faults(played):
    assert broken(played) == missed(played) == []
    text = report([played], None)
    assert "| `rapid_reset` | 5.0 | 200 | 220 | 205 | 0.10 | 0.15 | 4.0 | 6.0 | 4.0 | 6.0 | 0 |" in text
    assert "What was not reached" not in text


@pytest.mark.parametrize("change, told", [
    ({"exit_code": -9}, "the daemon ended with -9"),
    ({"fault": "not ready"}, "rapid_reset: not ready"),
    ({"rounds": 0}, "the attacker did nothing"),
    ({"during": calls(6, failures=["UNAVAILABLE: gone"])}, "1 of 101 calls failed during the attack: UNAVAILABLE: gone"),
    ({"resident_peak": 328 * MIB}, "memory grew by 128 MiB, expected less than 128"),
    ({"during": calls(9)}, "the median of the calls was 9.0 ms, expected at most 2 times the usual 4.0"),
    ({"during": calls(6, cores=0.3)}, "5.0 kB/s took 0.20 of a core, expected at most 0.10"),
])
def test_what_is_not_as_it_has_to_be_is_told(played, change, told):
    changed = dataclasses.replace(played, **change)
    faults = broken(changed) + missed(changed)
    assert len(faults) == 1 and told in faults[0], faults
    assert f"- {faults[0]}" in report([changed], None)


def test_who_sends_much_may_take_more_of_a_core(played):
    assert missed(dataclasses.replace(played, sent=50_000_000, during=calls(6, cores=1.5))) == []
    dear = dataclasses.replace(played, name="bomb_of_empty_inputs", rounds=10)
    assert missed(dataclasses.replace(dear, during=calls(6, cores=0.24))) == []
    assert len(missed(dataclasses.replace(dear, during=calls(6, cores=0.26)))) == 1


def test_a_daemon_that_ended_early_leaves_gaps_in_the_table():
    ended = Played("rapid_reset", exit_code=-9, resident_before=200 * MIB, before=calls(4))
    assert "| `rapid_reset` | 0.0 | 200 |  |  | 0.10 |  | 4.0 |  | 4.0 |  | 0 |" in report([ended], None)


def test_an_attack_that_does_not_exist_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["attacks", "--only", "nothing"])
    with pytest.raises(SystemExit):
        arguments()
    assert "'rapid_reset'" in capsys.readouterr().err
