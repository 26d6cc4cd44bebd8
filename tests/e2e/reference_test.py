"""docs/reference must be what the build generates, so every flag, metric and limit is documented as it is."""

import difflib

import pytest

from tools.reference import limits
from tools.reference.flags import parse
from tools.reference.metrics import families, series
from tools.reference.pages import FOLDER, pages


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    return pages(tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize("name", ["flags.md", "metrics.md", "limits.md"])
def test_the_committed_page_is_up_to_date(generated, name):
    committed = (FOLDER / name).read_text()
    difference = difflib.unified_diff(committed.splitlines(), generated[name].splitlines(), "committed", "built",
                                      lineterm="")
    assert committed == generated[name], "run ./dev docs:\n" + "\n".join(difference)


def test_there_are_no_other_pages(generated):
    assert {path.name for path in FOLDER.iterdir()} == set(generated)


def test_flags_of_a_table():
    error = "--port is '-1'; expected a number from 0 to 65535"
    (flag,) = parse(f"--port,--old-port\tPORT:INT\t8001\t--host\t\tWhere to listen\t{error}\n")
    assert flag.names == ["--port", "--old-port"] and flag.value == "PORT"
    assert flag.row() == ["`--port`, `--old-port`", "`PORT`", "8001", "0 to 65,535", "Where to listen. Needs `--host`"]


def test_a_number_without_a_range_fails():
    (flag,) = parse("--seconds\tS\t1\t\t\tHow long\t-1 is accepted\n")
    with pytest.raises(AssertionError, match="--seconds: what is said of -1 states no range: -1 is accepted"):
        flag.row()


def test_the_daemon_alone_knows_which_values_are_numbers():
    number, text = parse("--new\tNEWKIND\t1\t\t\tMany\texpected a number from 1 to 9\n--name\tN\tx\t\t\tIts name\t\n")
    assert number.range() == "1 to 9" and text.range() == ""


def test_series_of_an_exposition():
    text = """# HELP a_seconds A.
# TYPE a_seconds histogram
a_seconds_bucket{model="x",le="1"} 0
a_seconds_bucket{model="x",le="+Inf"} 0
a_seconds_sum{model="x"} 0
a_seconds_count{model="x"} 0
# HELP saccade_shed_total Shed.
# TYPE saccade_shed_total counter
saccade_shed_total{reason="late"} 0
"""
    found = families(text)
    assert found["saccade_shed_total"].row()[-1] == "Shed. `reason` is `late`."
    assert series(found) == {"each version of a model": 4, "the daemon": 1}


@pytest.mark.parametrize("text, value", [("constexpr int64_t kMax = int64_t{64} << 20;", 64 << 20),
                                         ("absl::Duration kMax = absl::Seconds(10);", 10),
                                         ("constexpr int kMax = 10'000;", 10_000)])
def test_values_of_constants(text, value):
    assert limits.value_of("kMax", [text]) == value


@pytest.mark.parametrize("texts", [[], ["int kMax = 1;", "int kMax = 2;"], ["int kMax = Other();"]])
def test_a_constant_that_is_gone_or_not_understood_fails(texts):
    with pytest.raises(AssertionError):
        limits.value_of("kMax", texts)
