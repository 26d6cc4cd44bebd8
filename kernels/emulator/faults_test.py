"""Puts synchronisation faults into the operators whose emulated tests take a second, and into the kernels that copy
asynchronously: one of each kind in each file, and in the long form each. ./dev faults does so for all operators."""

import os
import pathlib

import pytest

from kernels.emulator import faults
from tests.long_form import LONG

TESTS = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "tests"
QUICK = ("sao", "roi_align", "kao", "nms")
# Their own files, and those that they share. The sums of several ranges (attend_merge.cuh) are larger than their tests.
FILES = (*(f"kernels/{name}/" for name in QUICK), "kernels/common/", "kernels/device/attend_block", "kernels/device/attend_kernels",
         "kernels/device/operand_tile")
WHICH = () if LONG else ("--one-of-a-kind",)


def test_faults_are_noticed(capsys: pytest.CaptureFixture):
    missed = faults.main(["--build", str(TESTS.parent), "--tests", ",".join(QUICK), *WHICH, *FILES])
    said = capsys.readouterr().out
    assert not missed, said
    assert int(said.splitlines()[-1].split()[0]) >= (20 if LONG else 10) and "(barrier, gather, shuffle)" in said


def test_faults_of_asynchronous_copies_are_noticed(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """The only kernels that copy asynchronously are tiled, and have tests that take a minute. GoogleTest reads from the
    environment which of them run."""
    monkeypatch.setenv("GTEST_FILTER", "*EaTiledEmulatedSmall*:*APaddedSample*")
    places = [f"{kind} kernels/efficient_attention/" for kind in ("commit", "wait")]
    places += [f"barrier kernels/efficient_attention/efficient_attention_{file}" for file in ("apply", "float32", "gather")]
    missed = faults.main(["--build", str(TESTS.parent), "--tests", "efficient_attention_tiled", *WHICH, *places])
    said = capsys.readouterr().out
    assert not missed, said
    assert int(said.splitlines()[-1].split()[0]) >= (18 if LONG else 9) and "(barrier, commit, wait)" in said


def test_faults_of_the_kernels_of_wide_maps_are_noticed(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GTEST_FILTER", "*BlocksOfSeveralRanges*")
    missed = faults.main(["--build", str(TESTS.parent), "--tests", "efficient_attention_wide", *WHICH, "efficient_attention_wide"])
    said = capsys.readouterr().out
    assert not missed, said
    assert int(said.splitlines()[-1].split()[0]) >= (16 if LONG else 6) and "(barrier, commit, wait)" in said


def test_one_of_a_kind_is_one_place_of_each_kind_in_each_file():
    places = ["wait kernels/a.cuh:9:1", "barrier kernels/a.cuh:3:1", "barrier kernels/a.cuh:2:1", "barrier kernels/b.cuh:3:1"]
    assert faults.one_of_a_kind(places) == ["barrier kernels/a.cuh:2:1", "barrier kernels/b.cuh:3:1", "wait kernels/a.cuh:9:1"]


def test_a_word_that_no_test_has_is_told(capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit):
        faults.main(["--build", str(TESTS.parent), "--tests", "nonesuch"])
    assert "has no such emulated tests" in capsys.readouterr().err
