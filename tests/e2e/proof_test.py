"""Tests `./dev proof`: a short run with the real LoadGen; what is invalid, unanswered or wrong is a fault; and the parsing of
LoadGen's files. Figures are measured by the command itself."""

import collections
import dataclasses
import json
import re

import numpy
import pytest

pytest.importorskip("mlperf_loadgen", reason="LoadGen is not installed; ./dev setup tests brings it")

from tools.proof import __main__ as command, campaign, drive, experiment, noise, pictures, plots, report, scenarios, summary, systems

VALID = """================================================
MLPerf Results Summary
================================================
SUT name : PySUT
Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 87.55
Result is : VALID
  Performance constraints satisfied : Yes
  Min duration satisfied : Yes
  Early stopping satisfied: Yes
Early Stopping Result:
 * Run successful.

================================================
Additional Stats
================================================
50.00 percentile latency (ns)   : 3350024
99.00 percentile latency (ns)   : 15062937
"""
INVALID = VALID.replace("Result is : VALID", "Result is : INVALID").replace(
    "constraints satisfied : Yes", "constraints satisfied : NO").replace(
    "Early Stopping Result:", "Recommendations:\n * Reduce target QPS to improve latency.\nEarly Stopping Result:")
QUIET = noise.Noise(0.01, [0.5, 0.6])


def made(text=VALID, failed=(), others=QUIET, system="saccaded", scenario="Server"):
    return drive.Run(system, scenario, 100, summary.parse(text), collections.Counter(failed), others)


def test_a_summary_is_read():
    found = summary.parse(VALID)
    assert (found.scenario, found.valid, found.reasons) == ("Server", True, [])
    assert found.latencies == {"50.00": 3350024, "99.00": 15062937}
    assert made().figure == (87.55, "samples/s")


def test_an_invalid_summary_says_why():
    found = summary.parse(INVALID)
    assert not found.valid
    assert found.reasons == ["Performance constraints satisfied: NO", "Reduce target QPS to improve latency."]


@pytest.mark.parametrize("text", ["", VALID.split("Result is")[0], "Result is : VALID\n"])
def test_a_part_of_a_summary_is_none(text):
    with pytest.raises(summary.NoSummary, match="has no line"):
        summary.parse(text)


def test_answers_of_another_length_are_none():
    log = [{"qsl_idx": 3, "data": numpy.arange(10, dtype=numpy.float32).tobytes().hex()}]
    assert summary.answers(json.dumps(log), 10)[3].tolist() == list(range(10))
    with pytest.raises(summary.NoSummary, match="10 values for picture 3; expected 9"):
        summary.answers(json.dumps(log), 9)


def test_a_run_with_an_unanswered_query_is_invalid():
    run = made(failed={"UNAVAILABLE: gone": 2})
    assert run.summary.valid and not run.valid
    assert run.reasons == ["2 pictures were not answered: UNAVAILABLE: gone"]


def test_the_report_needs_nothing_else_and_escapes_what_it_is_given():
    runs = [made(INVALID, {"<script>alert(1)</script>": 1}, noise.Noise(0.4, [0.9, 1.0]))]
    page = report.page("title", [("commit", "a&b")], "./dev proof", runs, [plots.percentiles({"one": runs[0].summary.latencies})], ["<b>"])
    assert "<th></th>" not in page and "<tr><th>what</th><th>value</th></tr>" in page
    assert not re.search(r"https?://|<script|<link|src=|@import|<b>", page)
    assert '<span class="invalid">INVALID</span>' in page and "a&amp;b" in page and "&lt;b&gt;" in page
    assert report.NOT_VERIFIED in page and "The machine was not quiet: during 1 of 1 runs" in page
    assert page.count("<polyline") == 2


def test_a_quiet_machine_is_called_so():
    assert report.busy([made()]).startswith("The machine was quiet")
    slower = made(others=noise.Noise(0.01, [0.5], pace=0.8))
    assert "its own speed changed by 25% between runs" in report.busy([made(), slower])
    assert noise.busy_seconds("cpu  100 100 100 999 999 100 0 100 7 7\ncpu0 1 1 1 1 1 1 1 1\n") == 500 / noise.TICKS


def test_a_busy_machine_is_noticed():
    with noise.Watch() as watch:
        numpy.linalg.svd(numpy.random.default_rng(1).random((300, 300)))
    assert 0 <= watch.noise.others <= 1.05
    assert watch.noise.pace > 0


class Wrong:
    """A system that gives the same class for every picture, or none for some."""

    def __init__(self, why=""):
        self._why = why

    def ask(self, picture, done, windowed=False):
        if self._why and picture % 2:
            done(None, self._why)
        else:
            done(numpy.eye(systems.CLASSES, dtype=numpy.float32)[0], "")


class Right:
    def __init__(self, labels):
        self._labels = labels

    def ask(self, picture, done, windowed=False):
        done(numpy.eye(systems.CLASSES, dtype=numpy.float32)[self._labels[picture]], "")


@pytest.fixture
def played(tmp_path):
    drawn = pictures.Pictures([b""] * 20, [number % systems.CLASSES for number in range(20)])
    return campaign.Campaign(scenarios.Length(0.2, True), drawn, tmp_path, print)


def test_wrong_answers_are_a_fault(played):
    played.check_accuracy({"right": Right(played.pictures.labels), "wrong": Wrong()})
    assert played.accuracy("right") == 1 and played.accuracy("wrong") == 0.1
    assert played.same("wrong", "right") == 2
    assert [fault.split(":")[0] for fault in played.faults] == ["accuracy", "accuracy"], played.faults


def test_missing_answers_are_a_fault_and_end_the_run(played):
    system = Wrong("UNAVAILABLE: gone")
    played.check_accuracy({"gone": system})
    assert len(played.faults) == 1 and "UNAVAILABLE: gone" in played.faults[0]
    run = played.measure("gone", system, "Server", 400)
    assert run.failed["UNAVAILABLE: gone"] > 0 and run.word == "INVALID"


@pytest.mark.parametrize("capacity", [0.9, 0.3, 0.01])
def test_the_highest_rate_of_server_is_found(played, monkeypatch, capacity):
    def measure(name, system, scenario, pictures, length, folder, rate):
        # Short tries are too kind by two steps.
        bound = 100 * capacity * (1 if length == played.length else 1.15)
        return dataclasses.replace(made(VALID if rate <= bound else INVALID), rate=rate)

    monkeypatch.setattr(campaign.drive, "measure", measure)
    played.results = {("Offline", "one"): [made(VALID.replace("87.55", "100").replace("Completed samples", "Samples"), scenario="Offline")]}
    run = played.server("one", None)
    assert len(played.runs) <= 6 + 6
    if capacity < min(campaign.SHARES):
        assert not run.valid and run.rate == pytest.approx(100 * min(campaign.SHARES))
    else:
        assert run.valid and 0.75 * 100 * capacity < run.rate <= 100 * capacity


def test_rounds_that_differ_are_a_fault_on_a_quiet_machine_only(played):
    fast = VALID.replace("87.55", "107.55")
    played.results = {("Server", "one"): [made(), made(fast)]}
    played.runs = [made(others=noise.Noise(0.5, []))]
    played.check_agreement()
    assert played.faults == []
    played.runs = [made(), made(others=noise.Noise(0.01, [], pace=0.8))]
    played.check_agreement()
    assert played.faults == []
    played.runs = [made()]
    played.check_agreement()
    assert len(played.faults) == 1 and "23% apart on a quiet machine" in played.faults[0]


@pytest.mark.parametrize("took, why, expected", [
    (0.01, "", "in time"), (1, "", "late"), (0.01, "RESOURCE_EXHAUSTED: full", "refused"), (0.01, "UNAVAILABLE: drains", "refused"),
    (0.01, "INTERNAL: oops", "lost"), (9, "DEADLINE_EXCEEDED: ", "lost")])
def test_outcomes(took, why, expected):
    tally = experiment.Tally()
    tally.ended(tally._begun + 2.5, took, why)
    assert {name: counts for name, counts in tally.series().items() if any(counts)} == {expected: [0, 0, 1]}
    assert bool(experiment.judged("restart", tally)) == (expected in ("refused", "lost"))
    assert bool(experiment.judged("overload", tally)) == (expected == "lost")


@pytest.mark.parametrize("flags, complaint", [
    (["--seconds", "0"], "--seconds is 0, expected"), (["--seconds", "nan"], "expected 0.1 to 3600"),
    (["--rounds", "0"], "--rounds is 0, expected"), (["--experiment", "flood"], "invalid choice")])
def test_flags_are_checked(flags, complaint, capsys):
    with pytest.raises(SystemExit):
        command.parsed(flags)
    assert complaint in capsys.readouterr().err


def test_triton_has_to_be_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SACCADE_BENCH_PEERS", str(tmp_path))
    with pytest.raises(SystemExit):
        command.parsed([])
    assert f"Triton cannot be measured: no tritonserver in {tmp_path}" in capsys.readouterr().err
    assert "Triton" not in command.parsed(["--quick"]).system


def test_a_short_run(tmp_path, capsys):
    """Figures depend on what else the machine does, and so does whether LoadGen calls them valid: the exit code must say so."""
    code = command.main(["--quick", "--seconds", "0.5", "--output", str(tmp_path)])
    out, err = capsys.readouterr()
    page = (tmp_path / "report.html").read_text()
    assert code == (1 if err.strip() else 0), out + err
    assert all(": INVALID: " in fault for fault in err.splitlines()), err
    for name in ("saccaded", "PyTorch"):
        assert float(re.search(rf"accuracy +{name} +([\d.]+)", out)[1]) >= 0.9
        for scenario in scenarios.SCENARIOS:
            assert re.search(rf"^{scenario} +{name} ", out, re.MULTILINE), out
    assert "were not answered" not in out
    for part in ("What was run", "Accuracy", "What measuring costs", "Load of the machine", "How to repeat it", report.NOT_VERIFIED):
        assert part in page
    assert not re.search(r"https?://|<script|<link|src=", page)


def test_a_restart_loses_nothing(tmp_path, capsys, monkeypatch):
    # Compilers beside the test may take half of the cores after the capacity was measured.
    monkeypatch.setattr(experiment, "RATE", 0.1)
    code = command.main(["--quick", "--seconds", "3", "--experiment", "restart", "--output", str(tmp_path)])
    out, err = capsys.readouterr()
    assert code == 0, out + err
    assert ", 0 refused, 0 lost" in out and "the old daemon ended with 0" in out
    assert "<polyline" in (tmp_path / "restart.html").read_text()
