"""The benchmark of networks: that its short form runs every kind of candidate, and what its tables say."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from models.bench import bench_models
from models.bench.bench_models import (COARSE, INT8, MIN_ROUNDS, OURS, PEERS, Row, environment, kept, medians_of_turns, rate_table,
                                       reasons, rounds_of_spinning, spinning_text, table)
from models.bench.twins import CASES, QUICK
from models.reference.served import multiplies_bfloat16, multiplies_int8

BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])
ROW = Row("net", "4x8x8", 5, 2.0, 1.0, 0.5,
          {"eager": 6.0, "openvino": "TypeError: no", "openvino bf16": 1.5, "openvino int8": 0.75}, 0.25, 1.5,
          {OURS: 1000.0, "openvino": 1250.0, INT8: 80.0, "openvino int8": "ModuleNotFoundError: No module"})


def test_the_short_form_runs_every_candidate(tmp_path: pathlib.Path):
    results, page = tmp_path / "rows.json", tmp_path / "page.md"
    ran = subprocess.run([sys.executable, "-m", "models.bench.bench_models", "--build", BUILD, "--quick", "--filter", "/4x",
                          "--threads", "1", "--json", results, "--markdown", page],
                         capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    [row] = json.loads(results.read_text())
    assert (row["case"], row["shape"]) == (QUICK[0].name, "4x64x64") and row["rounds"] >= MIN_ROUNDS and row["ours"] > 0
    precisions = [("", True), (" bf16", multiplies_bfloat16()), (" int8", multiplies_int8())]
    for suffix, measured in precisions:
        # NNCF comes with ./dev bench models alone.
        lacking = suffix == " int8" and importlib.util.find_spec("nncf") is None
        for values in (row["peers"], row["rates"]):
            value = values.get(f"openvino{suffix}")
            if lacking and measured and values is row["peers"]:
                assert "nncf" in value
            elif lacking or not measured:
                assert value is None
            else:
                assert value > 0
        assert (row["rates"].get(f"{OURS}{suffix}", 0) > 0) == measured
    assert row["peers"]["eager"] > 0 and (row["coarse"] is not None) == multiplies_bfloat16()
    text = page.read_text()
    assert "| network | batch | saccade | eager | openvino |" in text and "Items per second" in text
    assert ran.stdout.splitlines()[0] in text and len(ran.stdout.splitlines()) == 1


@pytest.fixture
def build(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """Returns a function that makes a build whose daemon runs these lines of a shell."""
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)

    def make(lines: str) -> pathlib.Path:
        (tmp_path / "bin").mkdir()
        daemon = tmp_path / "bin" / "saccaded"
        daemon.write_text(f"#!/bin/sh\n{lines}\n")
        daemon.chmod(0o755)
        return tmp_path

    yield make
    rounds_of_spinning.cache_clear()


# Nobody writes to the FIFO.
STAYS = 'mkfifo "$0.fifo"; exec cat "$0.fifo"'


def test_threads_spin_as_in_the_daemon(build):
    assert environment(build(f"echo 'threads of a pass spin before they sleep rounds=1234' >&2; {STAYS}"))["GOMP_SPINCOUNT"] == "1234"


def test_a_wait_policy_is_left_to_openmp(build, monkeypatch: pytest.MonkeyPatch):
    """The daemon does not log any rounds then."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    folder = build(STAYS)
    assert "GOMP_SPINCOUNT" not in environment(folder)
    assert spinning_text(rounds_of_spinning(folder)) == "as OMP_WAIT_POLICY=active has them do"


@pytest.mark.parametrize("lines, limit", [("exit 1", 60), (STAYS, 0.2)], ids=["exits", "stays"])
def test_a_daemon_that_does_not_say_it_ends_the_benchmark(build, monkeypatch: pytest.MonkeyPatch, lines: str, limit: float):
    monkeypatch.setattr(bench_models, "MAX_START_SECONDS", limit)
    with pytest.raises(RuntimeError, match="did not log for how many rounds(?s:.*)no such library"):
        rounds_of_spinning(build(f"echo 'no such library' >&2; {lines}"))


def test_every_network_is_timed_at_three_batches():
    assert {case.batches for case in CASES} == {(1, 4, 16)}


def test_a_row_compares_candidates_of_one_precision():
    assert table([ROW], [name for name in PEERS if name in ROW.peers]).splitlines() == [
        "| network | batch | saccade | eager | openvino | saccade bf16 | openvino bf16 | saccade int8 | openvino int8 | load | "
        "peak / weights |",
        "|" + "---|" * 11,
        "| net | 4x8x8 | 2.0 ms | 6.0 ms, 3.00x | cannot | 1.0 ms, 0.50 of fp32 | 1.5 ms, 1.50x | 0.5 ms, 0.25 of fp32 | "
        "0.8 ms, 1.50x | 0.2 s | 1.50 |",
    ]


def test_throughputs_have_a_table_of_their_own():
    assert rate_table([ROW]).splitlines()[-3:] == [
        "| network | batch | saccade | openvino | saccade int8 | openvino int8 |",
        "|" + "---|" * 6,
        "| net | 4x8x8 | 1000/s | 1250/s, 1.25x | 80.0/s | cannot |",
    ]
    assert COARSE not in rate_table([ROW])
    assert reasons([ROW]) == "\n- net, 4x8x8: TypeError: no\n- net, 4x8x8: ModuleNotFoundError: No module"


def test_without_throughputs_there_is_no_such_table():
    row = Row("net", "1x8x8", 3, 2.0, None, None, {"eager": 6.0}, 0.25, 1.5)
    assert rate_table([row]) == "" and "int8" not in table([row], ["eager"])


def test_rows_of_an_earlier_form_are_kept(tmp_path: pathlib.Path):
    path = tmp_path / "rows.json"
    old = {"case": "net", "shape": "1x8x8", "rounds": 3, "ours": 2.0, "coarse": None, "peers": {}, "load_seconds": 0.1,
           "peak_ratio": 1.0}
    path.write_text(json.dumps([old]))
    [row] = kept(path, [])
    assert (row.ours, row.int8, row.rates) == (2.0, None, {})


@pytest.mark.parametrize("rounds", [1, 3])
def test_candidates_take_turns(rounds: int):
    order = []
    values = {"a": iter([3, 1, 2]), "b": iter([30, 10, 20])}
    medians, done = medians_of_turns({name: name for name in values}, lambda name: (order.append(name), next(values[name]))[1],
                                     lambda so_far: so_far < rounds)
    assert done == rounds and order == ["a", "b"] * rounds
    assert medians == ({"a": 3, "b": 30} if rounds == 1 else {"a": 2, "b": 20})
