"""What tools/bench_server reads: h2load's reports, nghttp's, and processor times in /proc."""

import os
import stat
import time

import pytest

from tools.bench_server import h2load, precision
from tools.bench_server.load import LoadFailed, Measurement, take_turns
from tools.processor import TICKS, processor_seconds, spent, with_descendants

REPORT = """starting benchmark...
spawning thread #0: 8 total client(s). Timing-based test with 0s of warm-up time and 1s of main duration for measurements.
Application protocol: h2c

finished in 1.50s, 22642.67 req/s, 7.14MB/s
requests: 33964 total, 33996 started, 33964 done, 33964 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 33964 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 10.71MB (11226163) total, 100.09KB (102492) headers (space savings 96.27%), 9.59MB (10053344) data
                     min         max         mean         sd        +/- sd
time for request:       97us     15.75ms      1.32ms      1.33ms    90.84%
time for connect:      108us       252us       187us        47us    75.00%
time to 1st byte:     3.39ms      3.57ms      3.48ms        61us    62.50%
req/s           :    2716.37     2919.72     2829.42       70.35    62.50%
"""
ANSWER = """[  0.001] recv (stream_id=13) :status: 200
[  0.001] recv DATA frame <length=16384, flags=0x00, stream_id=13>
[  0.001] recv DATA frame <length=6189, flags=0x00, stream_id=13>
[  0.001] recv (stream_id=13) grpc-status: 0
"""


def test_a_report_of_h2load():
    found = h2load.parse(REPORT)
    assert (found.calls, found.received) == (33964, 10053344)
    assert found.seconds == pytest.approx(1.5, rel=1e-4)
    assert found.rate == pytest.approx(22642.67)
    assert found.mean == pytest.approx(1320)


@pytest.mark.parametrize("mean, microseconds", [("     332us", 332), ("    8.09ms", 8090), ("     1.25s", 1.25e6)])
def test_units_of_h2load(mean, microseconds):
    assert h2load.parse(REPORT.replace("    1.32ms", mean)).mean == pytest.approx(microseconds)


@pytest.mark.parametrize("was, now", [
    ("33964 succeeded, 0 failed", "33963 succeeded, 1 failed"),
    ("0 errored", "2 errored"),
    ("0 timeout", "1 timeout"),
    ("status codes: 33964 2xx, 0 3xx, 0 4xx", "status codes: 33960 2xx, 0 3xx, 4 4xx"),
    ("33964 succeeded", "0 succeeded"),
    ("time for request:", "time:"),
])
def test_h2load_with_requests_that_failed(was, now):
    assert was in REPORT
    with pytest.raises(LoadFailed, match="h2load"):
        h2load.parse(REPORT.replace(was, now))


def test_turns_are_added():
    first, second = h2load.parse(REPORT), h2load.parse(REPORT.replace("1.32ms", "2.64ms"))
    first.processor_seconds = second.processor_seconds = 0.33964
    turns = iter([first, second])
    total = take_turns({"h2load": lambda seconds: next(turns)}, 2, 2)["h2load"]
    assert total.calls == 2 * 33964
    assert total.mean == pytest.approx(1980)
    assert total.processor == pytest.approx(10)


def program(folder, name, output):
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}END\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return lambda **outputs: [program(tmp_path, name, output) for name, output in outputs.items()]


def test_the_answer_of_one_call(programs):
    programs(nghttp=ANSWER)
    assert h2load.check_answer("127.0.0.1:1", "request") == 16384 + 6189


@pytest.mark.parametrize("answer", [ANSWER.replace("grpc-status: 0", "grpc-status: 12"), ANSWER.replace("grpc-status", "x"), ""])
def test_one_call_that_failed(programs, answer):
    programs(nghttp=answer)
    with pytest.raises(LoadFailed, match="expected grpc-status 0"):
        h2load.check_answer("127.0.0.1:1", "request")


def test_every_answer_must_have_its_message(programs):
    server = type("Server", (), {"url": "127.0.0.1:1"})
    programs(nghttp=ANSWER.replace("16384", "296").replace("6189", "0"), h2load=REPORT)
    assert h2load.H2load(server, "request", 8, 4)(1).calls == 33964
    programs(h2load=REPORT.replace("10053344", "10053343"))
    with pytest.raises(LoadFailed, match="expected 296 each"):
        h2load.H2load(server, "request", 8, 4)(1)


def line(process, name, parent, user, system):
    return f"{process} ({name}) S {parent} 1 1 0 -1 4194560 1 0 0 0 {user} {system} 7 9 20 0 1 0 100 0 0\n"


def test_processor_time_in_a_line_of_proc():
    assert processor_seconds(line(7, "saccaded", 1, 150, 30)) == pytest.approx(180 / TICKS)
    assert processor_seconds(line(7, "odd) S 9 (name", 1, 150, 30)) == pytest.approx(180 / TICKS)


def test_processor_time_of_a_process_and_its_descendants():
    stats = [line(5, "grandchild", 9, 0, 8), line(7, "tritonserver", 1, 100, 0), line(8, "another", 1, 1000, 0),
             line(9, "python backend (stub)", 7, 10, 5)]
    assert with_descendants(7, stats) == pytest.approx(123 / TICKS)
    assert with_descendants(5, stats) == pytest.approx(8 / TICKS)


def test_processor_time_of_this_process():
    before, begun = spent(os.getpid()), time.process_time()
    while time.process_time() - begun < 0.1:
        pass
    assert spent(os.getpid()) - before >= 0.08


def test_processor_time_for_each_call():
    measured = Measurement([100] * 10, 1, answered=12, processor_seconds=0.0006)
    measured.add(Measurement([100] * 10, 1, answered=12, processor_seconds=0.0006))
    assert measured.processor == pytest.approx(50)
    assert measured.rate == pytest.approx(10)


def told(decode=2.0, infer=24.0, rate=150.0, batch=4.0, answers=300, failures=None):
    """What `saccade bench --json` prints."""
    return {"model": "m", "answers": answers, "answers_per_second": rate, "mean_batch_size": batch, "failures": failures or {},
            "stages_ms": {"decode": {"p50": decode}, "infer": {"p50": infer}}}


def test_a_load_is_counted_for_each_picture():
    found = precision.Told.of(told(), processor_seconds=3)
    assert found == precision.Told(decode=2, infer=6, rate=150, batch=4, processor=10)


@pytest.mark.parametrize("document", [told(answers=0), told(failures={"INTERNAL": {"requests": 1, "first": "no"}})])
def test_a_load_that_failed_is_no_measurement(document):
    with pytest.raises(LoadFailed, match="m: no answer, or requests that failed"):
        precision.Told.of(document, 1)


def test_the_report_says_what_limits_each_precision():
    def both(infer, rate, processor):
        return precision.Told(4, infer, 50, 1, 20), precision.Told(9, infer / 2, rate, 8, processor)

    rows = precision.table_rows("detector", "640 x 480", {"fp32": both(20, 95, 14), "int8": both(6, 240, 7)})
    assert [len(row) for row in rows] == [len(precision.HEAD)] * 2
    # A pass takes 10 ms a picture in a batch, decoding 4 ms; in int8 it is 3 ms, so that decoding is the limit: 250 pictures a second.
    assert rows == [
        ["detector", "640 x 480", "fp32", "4.0", "20.0", "24.0", "95.0", "1.00", "14.0", "8.0", "passes", "0.95"],
        ["detector", "640 x 480", "int8", "4.0", "6.0", "10.0", "240.0", "2.53", "7.0", "8.0", "decoding", "0.96"],
    ]


def test_figures_are_medians_of_the_rounds():
    rounds = [precision.Told(1, 5, 100, 8, 3), precision.Told(2, 4, 90, 7, 5), precision.Told(9, 9, 10, 1, 4)]
    assert precision.median(rounds) == precision.Told(2, 5, 90, 7, 4)


def test_a_model_is_copied_with_its_precision(tmp_path):
    source = tmp_path / "source"
    (source / "1").mkdir(parents=True)
    (source / "config.pbtxt").write_text('name: "source"\nbackend: "saccade"\n')
    folder = precision.add_model(tmp_path, "source_bf16", source, {"precision": "bf16"})
    assert (folder / "config.pbtxt").read_text() == (
        'backend: "saccade"\nparameters { key: "precision" value { string_value: "bf16" } }\n')
    assert (folder / "1").is_dir()
