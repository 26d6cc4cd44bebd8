"""Puts every synchronisation fault into the operators whose emulated tests take a second. ./dev faults does so for all."""

import os
import pathlib

import pytest

from kernels.emulator import faults

TESTS = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "tests"
QUICK = ("sao", "roi_align", "kao", "nms")
# Their own files, and those that they share. The sums of several ranges (attend_merge.cuh) are larger than their tests.
FILES = (*(f"kernels/{name}/" for name in QUICK), "kernels/common/", "kernels/device/attend_block", "kernels/device/attend_kernels",
         "kernels/device/operand_tile")


def test_every_fault_is_noticed(capsys: pytest.CaptureFixture):
    missed = faults.main(["--build", str(TESTS.parent), "--tests", ",".join(QUICK), *FILES])
    said = capsys.readouterr().out
    assert not missed, said
    assert int(said.splitlines()[-1].split()[0]) >= 20 and "(barrier, gather, shuffle)" in said


def test_one_of_a_kind_is_one_place_of_each_kind_in_each_file():
    places = ["wait kernels/a.cuh:9:1", "barrier kernels/a.cuh:3:1", "barrier kernels/a.cuh:2:1", "barrier kernels/b.cuh:3:1"]
    assert faults.one_of_a_kind(places) == ["barrier kernels/a.cuh:2:1", "barrier kernels/b.cuh:3:1", "wait kernels/a.cuh:9:1"]


def test_a_word_that_no_test_has_is_told(capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit):
        faults.main(["--build", str(TESTS.parent), "--tests", "nonesuch"])
    assert "has no such emulated tests" in capsys.readouterr().err
