"""Tests that every query of the project's dashboard, and of Triton's, has a result on the daemon's metrics.

promtool plays the metrics page as series that grow, so a query for a label or metric that does not exist has no result.
"""

import json
import re
import subprocess
import sys

import pytest

from manifests import check, parse, parse_all
from monitoring import PROMTOOL, ROOT, metrics_of, names_of_the_daemon, page_of_the_daemon

DASHBOARD = ROOT / "deploy" / "monitoring" / "dashboard.json"
PROVISIONING = ROOT / "deploy" / "monitoring" / "grafana-provisioning.yaml"
# Copied from deploy/k8s-onprem/dashboard.json of triton-inference-server/server.
TRITONS = [
    "count(count(nv_inference_count) by (instance))",
    "sum by (pod) (rate(nv_inference_count[1m])) / ignoring(pod) group_left sum (rate(nv_inference_count[1m]))",
    "sum(nv_inference_request_success) by (pod)",
    "sum(nv_inference_request_failure) by (pod)",
    "sum(rate(nv_inference_compute_infer_duration_us[30s])) by (model) / 1000",
    "avg(rate(nv_inference_queue_duration_us[30s])/(1+rate(nv_inference_request_success[30s]))) by (pod)",
]
# The values that Grafana inserts for its variables if everything is selected.
VARIABLES = {"$namespace": ".*", "$job": ".*", "$model": ".*", "$__rate_interval": "1m"}
OF_THE_SCRAPE = {"namespace": "vision", "job": "saccade", "instance": "10.0.0.1:8002", "pod": "saccade-0"}


def dashboard():
    return json.loads(DASHBOARD.read_text())


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def written_out(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, f"a variable that the dashboard has not: {expression}"
    return expression


def queries():
    """Expression of each query, by title."""
    found = {f"{panel['title']} {target['refId']}": target["expr"] for panel in panels() for target in panel["targets"]}
    found.update((annotation["name"], annotation["expr"]) for annotation in dashboard()["annotations"]["list"])
    return {title: written_out(expression) for title, expression in found.items()}


def labels_in(labels):
    return "{" + ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items())) + "}"


@pytest.fixture(scope="module")
def series(page_of_the_daemon, names_of_the_daemon):
    """All series of the page, and those that only exist after faults or with GPUs and caches."""
    found = [(name, dict(labels)) for name, labels in page_of_the_daemon]
    model = {"model": "detector", "version": "1"}
    found.append(("saccade_requests_total", {**model, "task": "detection", "protocol": "grpc", "code": "INTERNAL"}))
    for name in names_of_the_daemon:
        if name.startswith(("nv_gpu_", "nv_energy_", "saccade_gpu_")):
            found.append((name, {"gpu_uuid": "GPU-1"}))
        elif name.startswith("nv_cache_"):
            found.append((name, model))
    return [{"series": name + labels_in({**labels, **OF_THE_SCRAPE}), "values": "1+1x60"} for name, labels in found]


def unanswered(series, expressions, folder):
    """promtool's messages about the expressions without a result."""
    asked = [{"expr": f"count({expression}) > bool 0", "eval_time": "10m",
              "exp_samples": [{"labels": "{}", "value": 1}]} for expression in expressions]
    file = folder / "tests.yaml"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "15s",
                                "tests": [{"interval": "15s", "input_series": series, "promql_expr_test": asked}]}))
    done = subprocess.run([PROMTOOL, "test", "rules", file], capture_output=True, text=True, timeout=250)
    assert (done.returncode == 0) == ("FAILED" not in done.stdout + done.stderr), done.stdout + done.stderr
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_panel_finds_something(series, tmp_path):
    assert len(queries()) > 20
    said = unanswered(series, queries().values(), tmp_path)
    assert not said, said


def test_without_a_fault_the_share_of_faults_is_0(series, tmp_path):
    """A code has no series before the first request that ends with it."""
    quiet = [one for one in series if not re.search('code="(INTERNAL|UNKNOWN|DATA_LOSS|UNAVAILABLE)"', one["series"])]
    assert len(quiet) < len(series)
    said = unanswered(quiet, [*queries().values(), f"({queries()['Faults A']}) == 0"], tmp_path)
    assert not said, said


def test_without_requests_no_share_is_nan(series, tmp_path):
    """A stat panel would show a division of 0 by 0 as NaN. Only NaN differs from itself."""
    shares = [expression for expression in queries().values() if " / " in expression]
    assert len(shares) > 5
    idle = [{**one, "values": "1x60"} for one in series]
    said = unanswered(idle, [f"absent(({share}) != ({share}))" for share in shares], tmp_path)
    assert not said, said


def test_tritons_dashboard_finds_something(series, tmp_path):
    said = unanswered(series, TRITONS, tmp_path)
    assert not said, said


def test_a_query_for_what_is_not_there_finds_nothing(series, tmp_path):
    for wrong in ("saccade_request_total", "rate(saccade_requests_total{modell=~'.+'}[1m])"):
        assert "FAILED" in unanswered(series, [wrong], tmp_path)


def test_every_metric_is_one_of_the_daemons(names_of_the_daemon):
    for title, expression in queries().items():
        asked = metrics_of(expression)
        assert asked and asked <= names_of_the_daemon, f"{title} asks for {asked - names_of_the_daemon}"


def test_every_panel_is_whole():
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, f"'{panel['title']}' lies on another panel"
        assert max(x for x, _ in cells) < 24
        taken |= cells
    for panel in panels():
        assert panel["title"] and panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_percentiles_show_exemplars():
    """Only one histogram has exemplars."""
    showing = [target["expr"] for panel in panels() for target in panel["targets"] if target.get("exemplar")]
    assert showing and all("saccade_request_duration_seconds_bucket" in expr for expr in showing)


def test_variables_ask_for_labels_that_are_there(series):
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] != "query":
            continue
        metric, label = re.fullmatch(r"label_values\((\w+).*, (\w+)\)", variable["query"]["query"]).groups()
        assert any(one["series"].startswith(metric + "{") and f"{label}=" in one["series"] for one in series), variable["name"]


def test_it_is_provisioned():
    built = subprocess.run([ROOT.joinpath(sys.prefix, "bin", "kubectl"), "kustomize", DASHBOARD.parent],
                           capture_output=True, text=True)
    assert built.returncode == 0 and not built.stderr, built.stderr
    resources = {resource["kind"]: resource for resource in parse_all(built.stdout)}
    assert set(resources) == {"ConfigMap", "PrometheusRule"}
    check(resources["PrometheusRule"])
    config = resources["ConfigMap"]
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(config["data"]["saccade.json"]) == dashboard()
    # An API server's limit for one object.
    assert len(json.dumps(config)) < 1 << 20
    (provider,) = parse(PROVISIONING.read_text())["providers"]
    assert provider["type"] == "file" and provider["options"]["path"].startswith("/")
