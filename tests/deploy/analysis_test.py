"""Evaluates the queries of the analysis of rollouts with promtool, on pods that are good, bad, and without requests, and
the conditions as Argo does: a verdict of good needs success, one of bad failure, and neither pauses the rollout."""

import re
import subprocess

import pytest
import yaml

from deploy_test import of_kind
from fleet_test import VALUES
from helm_test import render
from monitoring import PROMTOOL, names_of_the_daemon, page_of_the_daemon

NEW, OLD = 'namespace="vision", pod="saccade-6d5-a"', 'namespace="vision", pod="saccade-7c9-b"'
BUCKETS = ("0.05", "0.1", "0.2", "+Inf")


def metrics(values, **more):
    templates = {one["metadata"]["name"]: one for one in of_kind(render({**VALUES[values], **more}), "AnalysisTemplate")}
    return {metric["name"]: metric for metric in templates["saccade"]["spec"]["metrics"]}


def query(metric):
    text = metric["provider"]["prometheus"]["query"]
    for name, value in (("namespace", "vision"), ("new", "6d5"), ("old", "7c9")):
        text = text.replace("{{args." + name + "}}", value)
    assert "{{" not in text
    return text


def requests(labels, ok=600, **others):
    """Requests per minute for ten minutes, by code."""
    by_code = {"OK": ok, **others}
    return {f'saccade_requests_total{{{labels}, model="shapes", code="{code}"}}': f"0+{rate}x10"
            for code, rate in by_code.items()}


def latency(labels, counts):
    total, made = 0, {}
    for bound, count in zip(BUCKETS, counts):
        total += count
        made[f'saccade_request_duration_seconds_bucket{{{labels}, model="shapes", le="{bound}"}}'] = f"0+{total}x10"
    return made


def other(labels):
    """Neither another release's pods nor those of another namespace may count."""
    return {**requests('namespace="vision", pod="saccade-666-c"', ok=0, INTERNAL=600),
            **requests('namespace="other", pod="saccade-6d5-a"', ok=0, INTERNAL=600), **labels}


QUICK, SLOW = (600, 0, 0, 0), (0, 0, 600, 0)
# Series, and the verdict.
CASES = {
    "faults": [
        (requests(NEW), "good"), (requests(NEW, INTERNAL=3), "good"), (requests(NEW, INTERNAL=30), "bad"),
        # A client's own mistakes and rejections are no faults.
        (requests(NEW, INVALID_ARGUMENT=300, RESOURCE_EXHAUSTED=300), "good"),
        (requests(OLD), "none"), (requests(NEW, ok=1), "none")],
    "late": [(requests(NEW, DEADLINE_EXCEEDED=10), "good"), (requests(NEW, DEADLINE_EXCEEDED=100), "bad"),
             (requests(OLD, DEADLINE_EXCEEDED=100), "none")],
    "restarts": [({f"process_start_time_seconds{{{NEW}}}": "100x10"}, "good"),
                 ({f"process_start_time_seconds{{{NEW}}}": "100x5 400x5"}, "bad"),
                 ({f"process_start_time_seconds{{{OLD}}}": "100x5 400x5"}, "none")],
    "models-ready": [
        ({f'saccade_model_ready{{{NEW}, model="shapes"}}': "1x10", f'saccade_model_ready{{{OLD}, model="shapes"}}': "0x10"}, "good"),
        ({f'saccade_model_ready{{{NEW}, model="shapes"}}': "1x10", f'saccade_model_ready{{{NEW}, model="faces"}}': "0x10"}, "bad"),
        ({f'saccade_model_ready{{{NEW}, model="shapes"}}': "1x10", f'saccade_models{{{NEW}, state="not_served"}}': "0x10",
          f'saccade_models{{{NEW}, state="served"}}': "1x10"}, "good"),
        # The second model still loads.
        ({f'saccade_model_ready{{{NEW}, model="shapes"}}': "1x10", f'saccade_models{{{NEW}, state="not_served"}}': "1x10",
          f'saccade_models{{{NEW}, state="served"}}': "1x10"}, "bad"),
        ({f'saccade_models{{{NEW}, state="not_served"}}': "2x10"}, "bad"),
        ({f'saccade_model_ready{{{OLD}, model="shapes"}}': "1x10",
          f'saccade_models{{{OLD}, state="not_served"}}': "0x10"}, "none")],
    "slowdown": [
        ({**requests(NEW), **requests(OLD), **latency(NEW, QUICK), **latency(OLD, QUICK)}, "good"),
        ({**requests(NEW), **requests(OLD), **latency(NEW, SLOW), **latency(OLD, QUICK)}, "bad"),
        # Slow, but no slower than the old ones: the load's fault.
        ({**requests(NEW), **requests(OLD), **latency(NEW, SLOW), **latency(OLD, SLOW)}, "good"),
        ({**requests(NEW), **latency(NEW, SLOW)}, "none"), ({**requests(OLD), **latency(OLD, QUICK)}, "none")],
}


def holds(folder, series, expression):
    """Whether the expression has a value after ten minutes."""
    sample = [{"labels": "{}", "value": 1}]
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "rule_files": [], "tests": [{
        "interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": f"count({expression})", "eval_time": "10m", "exp_samples": sample}]}]}))
    done = subprocess.run([PROMTOOL, "test", "rules", file], capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) or "got:" in done.stdout + done.stderr, done.stdout + done.stderr
    return done.returncode == 0


def verdict(folder, series, metric):
    """Argo's conditions here are `len(result) > 0 && result[0] OPERATOR NUMBER`, which PromQL can say, too."""
    said = {}
    for name in ("successCondition", "failureCondition"):
        operator, number = re.fullmatch(r"len\(result\) > 0 && result\[0\] (==|<=|>|<) ([\d.]+)", metric[name]).groups()
        said[name] = holds(folder, series, f"({query(metric)}) {operator} {number}")
    assert not all(said.values()), "good and bad at once"
    return "good" if said["successCondition"] else "bad" if said["failureCondition"] else "none"


@pytest.mark.parametrize("name, number", [(name, number) for name in CASES for number in range(len(CASES[name]))])
def test_the_verdict(name, number, tmp_path):
    series, expected = CASES[name][number]
    assert verdict(tmp_path, other(series), metrics("canary")[name]) == expected


@pytest.mark.parametrize("explicit", [
    {"config": {"model-control-mode": "explicit", "load-on-demand": True}}, {"config": {"model-control-mode": "EXPLICIT"}},
    {"extraEnv": [{"name": "SACCADED_MODEL_CONTROL_MODE", "value": "explicit"}]}])
def test_models_that_others_load_may_be_missing(explicit, tmp_path):
    metric = metrics("canary", **explicit)["models-ready"]
    missing = {f'saccade_models{{{NEW}, state="not_served"}}': "40x10"}
    assert verdict(tmp_path, other({f'saccade_model_ready{{{NEW}, model="shapes"}}': "1x10", **missing}), metric) == "good"
    assert verdict(tmp_path, other({f'saccade_model_ready{{{NEW}, model="shapes"}}': "0x10", **missing}), metric) == "bad"


def test_the_chart_that_sets_another_mode_asks_for_every_model():
    for mode in ("none", "poll"):
        assert "not_served" in query(metrics("canary", config={"model-control-mode": mode})["models-ready"])


def test_there_is_a_case_for_each_verdict_of_each_metric():
    assert set(metrics("canary")) == set(CASES) >= set(metrics("blue-green"))
    for name, cases in CASES.items():
        assert {expected for _, expected in cases} == {"good", "bad", "none"}, name


def test_every_metric_is_the_daemons(names_of_the_daemon):
    asked = {name for metric in metrics("canary").values() for name in re.findall(r"\b(\w+?)(?:_bucket)?\{", query(metric))}
    assert len(asked) >= 4 and asked <= names_of_the_daemon


def test_one_bad_measurement_is_allowed_and_no_endless_wait():
    for metric in metrics("canary").values():
        assert metric["failureLimit"] == 1 and metric["inconclusiveLimit"] > 0 and metric["consecutiveErrorLimit"] > 0
        assert "count" not in metric, "a canary is watched to its end"
    assert all(metric["count"] == 5 for metric in metrics("blue-green").values()), "a switch needs an end"
