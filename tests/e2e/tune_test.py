"""Tests `saccade tune` against a live daemon: what the daemon tells, and that the daemon and the chart take what the
command writes."""

import json
import re
import subprocess
import textwrap
import time

import helm_python as helm
import pytest
import yaml

import pictures
from harness import ROOT, binary, eventually
from messages import message, predict_request
from tiny_models import TinyModel, write_model

CHART = ROOT / "deploy" / "helm" / "saccade"
# No wish that a busy machine could miss: the times themselves are measured in docs/benchmarks/tune.md.
WISH = ("--p99", "20s", "--rate", "2")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    write_model(folder, "tiny", TinyModel(classes=5, seed=3), max_batch_size=4)
    return folder


def tune(daemon, *arguments, model="tiny"):
    line = [binary("saccade"), "tune", model, "--url", daemon.grpc_address, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def get_model(daemon):
    with daemon.vision() as vision:
        return vision.get_model(message("saccade.v1.GetModelRequest")(model="tiny"))


def test_the_daemon_tells_what_it_has_learned(repository, start):
    daemon = start(repository).await_ready()
    timing = get_model(daemon).timing
    (bucket,) = timing.buckets
    assert bucket.name == "56x56" and bucket.items == 0
    assert len(bucket.seconds) == 4 and list(bucket.seconds) == sorted(bucket.seconds) and bucket.seconds[0] > 0
    assert (bucket.smallest, bucket.largest) == (1, 4)
    assert timing.instances == 1 and timing.threads >= 1 and timing.cores >= timing.threads
    assert timing.max_queue_size == 256 and 0 < timing.model_bytes < timing.resident_bytes
    with daemon.vision() as vision:
        for _ in range(3):
            vision.predict(predict_request(model="tiny", encoded=pictures.encoded(pictures.pixels(0))))
        (listed,) = vision.list_models(message("saccade.v1.ListModelsRequest")()).models
    # A pass answers its calls before the scheduler counts it.
    eventually(lambda: get_model(daemon).timing.buckets[0].items == 3, "all three items are counted")
    assert not listed.HasField("timing")


def test_what_it_writes_is_served_and_rendered(repository, start, tmp_path):
    daemon = start(repository).await_ready()
    ran = tune(daemon, *WISH, "--json", "-o", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["estimate"]["p99_ms"] <= 20_000 and told["breaks"]["holds_rate"] >= 2
    chosen = told["configuration"]
    assert chosen["replicas"] == 1

    config = repository / "tiny" / "config.pbtxt"
    ours = re.sub(r"(max_batch_size|instance_group).*\n", "", config.read_text())
    written = tmp_path / "again"
    write_model(written, "tiny", TinyModel(classes=5, seed=3), max_batch_size=4)
    (written / "tiny" / "config.pbtxt").write_text(ours + (tmp_path / "out" / "config.pbtxt").read_text())
    timing = get_model(start(written).await_ready()).timing
    assert timing.instances == chosen["instances"] and timing.threads == chosen["threads"]
    assert len(timing.buckets[0].seconds) == chosen["max_batch_size"]

    values = yaml.safe_load((tmp_path / "out" / "values.yaml").read_text())
    with helm.Chart.load(CHART) as chart:
        def rendered(values):
            files = chart.render({"insecure": True, **values}, name="tuned", namespace="vision")
            return [one for name, text in files.items() if name.endswith(".yaml")
                    for one in yaml.safe_load_all(text) if isinstance(one, dict)]

        resources = rendered(values)
        values["autoscaling"]["keda"].update(enabled=True, serverAddress="http://prometheus:9090")
        (scaled,) = [one for one in rendered(values) if one.get("kind") == "ScaledObject"]
    thresholds = {float(trigger["metadata"]["threshold"]) for trigger in scaled["spec"]["triggers"]}
    assert thresholds == {told["resources"]["demand_target"] / 1000}
    (scaler,) = [one for one in resources if one.get("kind") == "HorizontalPodAutoscaler"]
    assert scaler["spec"]["minReplicas"] == 1 and len(scaler["spec"]["metrics"]) == 2
    (deployment,) = [one for one in resources if one.get("kind") == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["cpu"] == str(told["resources"]["cpu"])


def test_a_recording_of_its_buckets(repository, start, tmp_path):
    daemon = start(repository).await_ready()
    recording = tmp_path / "recording"
    recording.write_text("".join(f"{second} 56x56\n" for second in range(50)))
    told = json.loads(tune(daemon, "--p99", "20s", "--traffic", recording, "--json").stdout)
    assert told["rate"] == pytest.approx(1)
    recording.write_text("0 56x56\n1 57x57\n")
    ran = tune(daemon, "--p99", "20s", "--traffic", recording)
    assert ran.returncode == 2 and "line 2 is '1 57x57'; expected a bucket that the daemon has measured: 56x56" in ran.stderr


def of_the_page(begin):
    """The block of docs/tuning.md that begins with `begin`, as one typed it."""
    block = re.search(rf"^    {re.escape(begin)}.*\n(?:    .*\n)*", (ROOT / "docs" / "tuning.md").read_text(), re.M)[0]
    return textwrap.dedent(block).replace('"detector"', '"tiny"')


def test_the_access_log_becomes_a_recording_as_the_page_says(repository, start, tmp_path):
    (command,) = of_the_page("saccaded --host").splitlines()
    flags = re.search(r"--access-log .*(?= 2> calls.log)", command)[0].split()
    daemon = start(repository, *flags).await_ready()
    sent = []
    with daemon.vision() as vision:
        for _ in range(5):
            sent.append(time.time())
            vision.predict(predict_request(model="tiny", encoded=pictures.encoded(pictures.pixels(0))))
    sent.append(time.time())
    eventually(lambda: sum('"message":"call"' in line for line in daemon.log_lines()) == 5, "every call has a line")
    (tmp_path / "calls.log").write_text("\n".join(daemon.log_lines()) + "\n")
    subprocess.run(["bash", "-c", of_the_page("python3 -c '")], cwd=tmp_path, check=True)
    came = [float(line) for line in (tmp_path / "recording.txt").read_text().splitlines()]
    assert came[0] == 0 and came == sorted(came)
    # A call came after it was sent, and before the next one was; times are rounded to milliseconds.
    assert len(came) == len(sent) - 1
    for number in range(1, len(came)):
        assert sent[number] - sent[1] - 0.01 < came[number] < sent[number + 1] - sent[0] + 0.01
    told = json.loads(tune(daemon, "--p99", "20s", "--traffic", tmp_path / "recording.txt", "--json").stdout)
    assert told["rate"] == pytest.approx(4 / came[-1], rel=0.05)


def test_refusals_say_why(repository, start):
    daemon = start(repository).await_ready()
    ran = tune(daemon, "--p99", "1us", "--rate", "1")
    assert ran.returncode == 1 and "no configuration answers within 0.001 ms" in ran.stderr
    ran = tune(daemon, *WISH, model="nonesuch")
    assert ran.returncode == 69 and "nonesuch" in ran.stderr
