"""Tests what KEDA's triggers ask Prometheus for, in the manifests and in the chart."""

import pytest

from alerts_test import play, series
from deploy_test import KUSTOMIZE, of_kind, only
from helm_test import render
from manifests import check, parse
from monitoring import metrics_of, names_of_the_daemon, page_of_the_daemon  # noqa: F401

POD = 'namespace="vision", pod="saccade-5d9c8b7f6f-{pod}"'
# Of another program, and of another Deployment of this one.
OTHERS = ['namespace="vision", pod="other-5d9c8b7f6f-x2x4z"', 'namespace="vision", pod="saccade-gpu-5d9c8b7f6f-x2x4z"']
CHART = {"autoscaling": {"keda": {"enabled": True, "serverAddress": "http://prometheus:9090", "threshold": 0.5}}}


def manifest():
    return parse((KUSTOMIZE / "components/keda/scaledobject.yaml").read_text())


def triggers(scaled):
    return [trigger["metadata"] for trigger in scaled["spec"]["triggers"]]


@pytest.fixture(params=["manifest", "chart"])
def scaled(request):
    return manifest() if request.param == "manifest" else only(render(CHART), "ScaledObject")


def test_the_chart_makes_one_autoscaler():
    built = render(CHART)
    assert not of_kind(built, "HorizontalPodAutoscaler")
    assert {trigger["threshold"] for trigger in triggers(only(built, "ScaledObject"))} == {"0.5"}
    assert not of_kind(render(), "ScaledObject")


def test_a_rollout_is_scaled_in_place_of_its_deployment():
    made = render({**CHART, "progressive": {"enabled": True}})
    target = only(made, "ScaledObject")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Rollout", only(made, "Rollout")["metadata"]["name"])
    check(only(made, "ScaledObject"))


def test_the_daemon_has_what_is_asked_for(scaled, names_of_the_daemon):  # noqa: F811
    for trigger in triggers(scaled):
        assert metrics_of(trigger["query"]) <= names_of_the_daemon, trigger["query"]


# Otherwise a demand of 0 would end all pods but the least number.
def test_a_demand_that_prometheus_does_not_know_is_an_error(scaled):
    demand, _ = triggers(scaled)
    assert "saccade_demand_seconds_total" in demand["query"] and demand["ignoreNullValues"] == "false"


# Two pods. Of the first, half as much again is asked for as its cores can do; of the second, a quarter.
def test_the_queries_add_up_what_is_asked_of_all_pods(scaled, tmp_path):
    a, b = POD.format(pod="x2x4a"), POD.format(pod="x2x4b")
    given = {
        f'saccade_demand_seconds_total{{{a}, devices="cores"}}': "0+90x10",
        f'saccade_demand_seconds_total{{{a}, devices="gpus"}}': "0+6x10",
        f'saccade_demand_seconds_total{{{b}, devices="cores"}}': "0+15x10",
        **{f'saccade_demand_seconds_total{{{other}, devices="cores"}}': "0+600x10" for other in OTHERS},
        # Two instances of each model. The busy one of the first pod needs 3, of the second 1.
        f'saccade_model_demand_seconds_total{{{a}, model="m", version="1"}}': "0+180x10",
        f'saccade_model_demand_seconds_total{{{a}, model="n", version="1"}}': "0+6x10",
        f'saccade_model_demand_seconds_total{{{b}, model="m", version="1"}}': "0+60x10",
        f'saccade_model_instances{{{a}, model="m", version="1"}}': "2x10",
        f'saccade_model_instances{{{a}, model="n", version="1"}}': "2x10",
        f'saccade_model_instances{{{b}, model="m", version="1"}}': "2x10",
    }
    expected = zip(triggers(scaled), (1.75, 2), strict=True)
    # Two samples within the minute, as with a scrape every 30 seconds.
    cases = [{"expr": trigger["query"].replace("[1m]", "[2m]"), "eval_time": "5m",
              "exp_samples": [{"labels": "{}", "value": value}]} for trigger, value in expected]
    assert not play(tmp_path, {"input_series": series(given), "promql_expr_test": cases})
