"""Tests every alerting and recording rule with promtool, and that every alert has a runbook and every metric exists."""

import json
import pathlib
import re
import subprocess

import pytest
import yaml

from manifests import parse
from monitoring import PROMTOOL, ROOT, metrics_of, names_of_the_daemon, page_of_the_daemon

MONITORING = ROOT / "deploy" / "monitoring"
RULES = MONITORING / "rules.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
HERE = pathlib.Path(__file__).parent
# Loaded as text: 0x10 is eleven zeros in promtool's notation but 16 in YAML.
CASES = yaml.load((HERE / "alert_cases.yaml").read_text(), yaml.CBaseLoader)
RECORD_CASES = yaml.load((HERE / "record_cases.yaml").read_text(), yaml.CBaseLoader)


GROUPS = parse(RULES.read_text())["groups"]


def rules(kind):
    return {rule[kind]: rule for group in GROUPS for rule in group["rules"] if kind in rule}


ALERTS, RECORDS = rules("alert"), rules("record")


def groups_of(names):
    """The groups with the rules of these names alone: promtool evaluates every rule of a file at every minute."""
    kept = [{**group, "rules": [rule for rule in group["rules"] if rule.get("alert", rule.get("record")) in names]} for group in GROUPS]
    return [group for group in kept if group["rules"]]


def needed_by(alert):
    """The groups with the alert and the records that it asks for, also by way of other records."""
    names, asked = set(), {alert}
    while asked:
        names |= asked
        asked = set().union(*(metrics_of({**ALERTS, **RECORDS}[name]["expr"]) for name in asked)) & set(RECORDS) - names
    return groups_of(names)


def series(values):
    return [{"series": name, "values": numbers} for name, numbers in values.items()]


def play(folder, test, groups=()):
    """Runs promtool on the rules with this test. Returns '' if it passes, else the output, which describes the failures."""
    chosen, file = folder / "rules.yaml", folder / "tests.yaml"
    # JSON is YAML.
    chosen.write_text(json.dumps({"groups": list(groups)}))
    file.write_text(json.dumps({"rule_files": [str(chosen)], "evaluation_interval": "1m",
                                "tests": [{"interval": "1m", **test}]}))
    done = subprocess.run([PROMTOOL, "test", "rules", file], capture_output=True, text=True, timeout=250)
    assert (done.returncode == 0) == ("FAILED" not in done.stdout + done.stderr)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def expanded(text, labels):
    """Expands an annotation's text that contains labels but no value."""
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda match: labels.get(match[1], ""), text)
    assert "{{" not in text, f"write it out in alert_cases.yaml: {text}"
    return text


def test_promtool_takes_the_rules():
    done = subprocess.run([PROMTOOL, "check", "rules", "--lint=all", "--lint-fatal", RULES],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS) + len(RECORDS)} rules found" in done.stdout


def test_there_is_a_case_for_every_alert():
    assert set(CASES) == set(ALERTS)


@pytest.mark.parametrize("alert", CASES)
def test_it_fires_on_what_is_bad(alert, tmp_path):
    case, annotations = CASES[alert], ALERTS[alert]["annotations"]
    fires = {"exp_labels": case["labels"],
             "exp_annotations": {"summary": expanded(annotations["summary"], case["labels"]),
                                 "description": case["description"],
                                 "runbook_url": annotations["runbook_url"]}}
    expected = [{"eval_time": case["at"], "alertname": alert, "exp_alerts": [fires]}]
    # The alert must not fire at once: a short problem pages nobody.
    expected.append({"eval_time": "0m", "alertname": alert, "exp_alerts": []})
    assert not play(tmp_path, {"input_series": series(case["bad"]), "alert_rule_test": expected}, needed_by(alert))


@pytest.mark.parametrize("alert", CASES)
def test_it_is_silent_on_what_is_good(alert, tmp_path):
    case = CASES[alert]
    minutes = int(case["at"].removesuffix("m"))
    # Checked over the whole time, to detect alerts that fire later or fired before.
    never = [{"expr": f'count_over_time(ALERTS{{alertname="{alert}", alertstate="firing"}}[{minutes + 20}m])',
              "eval_time": f"{minutes + 10}m", "exp_samples": []}]
    silent = [{"eval_time": case["at"], "alertname": alert, "exp_alerts": []}]
    assert not play(tmp_path, {"input_series": series(case["good"]), "alert_rule_test": silent,
                               "promql_expr_test": never}, needed_by(alert))


def test_a_case_that_is_wrong_is_found(tmp_path):
    case = CASES["SaccadeDown"]
    silent = [{"eval_time": case["at"], "alertname": "SaccadeDown", "exp_alerts": []}]
    assert "FAILED" in play(tmp_path, {"input_series": series(case["bad"]), "alert_rule_test": silent},
                            needed_by("SaccadeDown"))


def test_the_first_failures_of_a_replica_are_seen(tmp_path):
    """saccade_requests_total has no series for a code before its first request, so rate() misses the first increase."""
    before = {'saccade_requests_total{job="vision", instance="a:8002", model="m", code="OK"}': "0+96x100"}
    failures = {'saccade_requests_total{job="vision", instance="a:8002", model="m", code="INTERNAL"}': "_x70 4+4x30"}
    firing = 'count(ALERTS{alertname="SaccadeFaultsFast", alertstate="firing"})'
    expected = [{"expr": firing, "eval_time": "69m", "exp_samples": []},
                {"expr": firing, "eval_time": "99m", "exp_samples": [{"labels": "{}", "value": 1}]}]
    assert not play(tmp_path, {"input_series": series({**before, **failures}), "promql_expr_test": expected},
                    needed_by("SaccadeFaultsFast"))


def test_every_record_is_what_it_says(tmp_path):
    records = RECORD_CASES["records"]
    assert {name.partition("{")[0] for name in records} == set(RECORDS)
    expected = [{"expr": f"round({name}, 0.000001)", "eval_time": "370m",
                 "exp_samples": [{"labels": labels_of(name), "value": float(value)}]} for name, value in records.items()]
    assert not play(tmp_path, {"input_series": series(RECORD_CASES["series"]), "promql_expr_test": expected},
                    groups_of(RECORDS))


def labels_of(name):
    """Labels of a recorded series, besides those that are queried."""
    level = name.partition(":")[0]
    labels = {"job": '"vision"'} | ({"model": '"m"'} if level == "model" else {})
    labels |= dict(re.findall(r'(\w+)=("[^"]*")', name))
    return "{" + ", ".join(f"{label}={value}" for label, value in labels.items()) + "}"


def test_every_metric_is_one_of_the_daemons(names_of_the_daemon):
    for name, rule in {**ALERTS, **RECORDS}.items():
        asked = metrics_of(rule["expr"]) - set(RECORDS) - {"up"}
        assert asked <= names_of_the_daemon, f"{name} asks for {asked - names_of_the_daemon}"


def test_a_metric_that_nobody_has_is_found(names_of_the_daemon):
    assert metrics_of('sum by (job) (rate(saccade_request_total{model="m"}[5m]))') == {"saccade_request_total"}
    assert "saccade_request_total" not in names_of_the_daemon


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    pages = {page.stem for page in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == set(ALERTS)
    index = (RUNBOOKS / "README.md").read_text()
    for alert, rule in ALERTS.items():
        assert ROOT / rule["annotations"]["runbook_url"] == RUNBOOKS / f"{alert}.md"
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert f"[{alert}]({alert}.md)" in index
        text = (RUNBOOKS / f"{alert}.md").read_text()
        assert text.startswith(f"# {alert}\n")
        for part in ("What it means", "How to look", "What to do"):
            assert f"\n## {part}\n" in text, f"{alert}.md does not say: {part}"


def test_runbooks_ask_for_what_there_is(names_of_the_daemon):
    for page in RUNBOOKS.glob("*.md"):
        asked = set(re.findall(r"\b(?:(?:model|job|instance):)?(?:nv|saccade|process)_[a-z0-9_:]+\b", page.read_text()))
        assert asked <= names_of_the_daemon | set(RECORDS), f"{page.name} names {asked - names_of_the_daemon}"


def test_the_operators_rules_are_the_same():
    resource = parse((MONITORING / "prometheusrule.yaml").read_text())
    assert resource["spec"] == parse(RULES.read_text()), "write it anew: its first lines say how"
