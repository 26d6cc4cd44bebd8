"""Tests the chart, rendered with Helm's own library. Its defaults must yield the same resources as
deploy/kustomize/base, once they are said to be open."""

import copy
import functools
import json
import re
import shlex
import tarfile

import helm_python as helm
import pytest

from deploy_test import (
    KUBERNETES_VERSIONS,
    KUSTOMIZE,
    ROOT,
    flags,
    known_flags,
    kustomize,
    let_out,
    load_deadline,
    of_kind,
    only,
    state_folder,
    traces_variables,
)
from drain_time import beside_the_flags
from manifests import check, parse, parse_all

CHART = ROOT / "deploy" / "helm" / "saccade"
MONITORING = ROOT / "deploy" / "monitoring"

FROM = [{"namespaceSelector": {"matchLabels": {"team": "vision"}}}]
# Values that users may set, one at a time and all together.
VARIANTS = {
    "nothing": {},
    "demo": {"models": {"demo": True}},
    "a fixed number": {"autoscaling": {"enabled": False}, "replicaCount": 3},
    "without guards": {"pdb": {"enabled": False}, "topologySpread": {"enabled": False}},
    "TLS": {"tls": {"secretName": "here-tls"}},
    "TLS and tokens": {"tls": {"secretName": "here-tls"}, "tokens": {"secretName": "callers"}},
    "certificates of clients": {"tls": {"secretName": "here-tls", "clientCASecretName": "their-ca"}},
    "signed models": {"models": {"signingKey": {"configMapName": "publisher"}}},
    "traces": {"traces": {"endpoint": "http://collector.observability:4318"}},
    "KEDA": {"autoscaling": {"keda": {"enabled": True, "serverAddress": "http://prometheus:9090", "triggers": [
        {"type": "prometheus", "metadata": {"serverAddress": "http://prometheus:9090", "query": "vector(1)", "threshold": "5"}}]}}},
    "state that outlives the pods": {"state": {"claim": "saccade-state"}},
    "captured calls": {"capture": {"enabled": True, "claim": "calls", "sink": {"url": "http://dumper.default.svc", "port": 8080}}},
    "an account of its own": {"serviceAccount": {"create": False, "name": "vision"}},
    "everything": {
        "fullnameOverride": "eyes", "image": {"repository": "registry.example/saccade", "tag": "9.9.9"},
        "imagePullSecrets": [{"name": "registry"}], "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"},
        "config": {"max-queue-size": 1 << 33, "page": False, "stall-seconds": 0.5},
        "service": {"headless": False, "grpcPort": 9000}, "nodeSelector": {"gpu": "yes"},
        "resources": {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 1}},
        "tolerations": [{"key": "gpu", "operator": "Exists"}], "priorityClassName": "high",
        "affinity": {"nodeAffinity": {}}, "serviceAccount": {"annotations": {"e": "f"}},
        "autoscaling": {"targetCPUUtilizationPercentage": 0, "metrics": [
            {"type": "Pods", "pods": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "50m"}}}]},
        "networkPolicy": {"enabled": True, "from": FROM, "metricsFrom": FROM},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "tls": {"secretName": "here-tls", "clientCASecretName": "here-tls"}, "tokens": {"secretName": "callers"},
        "traces": {"endpoint": "https://collector.example", "settings": {"OTEL_TRACES_SAMPLER_ARG": 0.1}, "to": FROM},
        "prometheusRule": {"enabled": True, "runbookBase": "https://git.example/", "labels": {"release": "prometheus"}},
        "grafanaDashboards": {"enabled": True}, "state": {"hostPath": "/var/lib/eyes"},
        "capture": {"enabled": True, "sizeLimit": "1Gi", "sink": {"url": "https://sink.example/calls", "to": FROM}},
        "extraEnv": [{"name": "SACCADED_LOG_LEVEL", "value": "debug"},
                     {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    },
}


def render_files(values=None, name="saccade", insecure=True):
    """The text of each file of the chart."""
    with helm.Chart.load(CHART) as chart:
        return chart.render({"insecure": insecure, **(values or {})}, name=name, namespace="vision")


@functools.cache
def remembered(values, name, insecure):
    return render_files(json.loads(values), name, insecure)


def render(values=None, name="saccade", insecure=True):
    return [resource for file, text in remembered(json.dumps(values), name, insecure).items() if file.endswith(".yaml")
            for resource in parse_all(text)]


def notes(values=None):
    return remembered(json.dumps(values), "saccade", True)["saccade/templates/NOTES.txt"]


def config(resources):
    (text,) = [one["data"]["saccaded.conf"] for one in of_kind(resources, "ConfigMap") if "saccaded.conf" in one["data"]]
    return dict(line.split("=", 1) for line in text.splitlines() if line)


def pod(resources):
    return only(resources, "Deployment")["spec"]["template"]["spec"]


def container(resources):
    (found,) = pod(resources)["containers"]
    return found


def test_helm_has_nothing_against_it():
    report = helm.lint(CHART)
    assert not report["errors"]
    # The icon is optional.
    assert [one["error"] for one in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_resource_fits_its_schema(variant, version):
    for resource in render(VARIANTS[variant]):
        check(resource, version)


@pytest.mark.parametrize("variant", VARIANTS)
def test_selectors_match_labels(variant):
    resources = render(VARIANTS[variant])
    labels = only(resources, "Deployment")["spec"]["template"]["metadata"]["labels"]
    service = only(resources, "Service")
    selectors = [only(resources, "Deployment")["spec"]["selector"]["matchLabels"], service["spec"]["selector"]]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(resources, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(resources, "NetworkPolicy")]
    selectors += [one["labelSelector"]["matchLabels"] for one in pod(resources).get("topologySpreadConstraints", [])]
    for selector in selectors:
        assert selector and selector.items() <= labels.items()
    for monitor in of_kind(resources, "ServiceMonitor"):
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def without_labels(resource):
    """The resource without labels, which differ between the tools; everything else must be the same."""
    bare = copy.deepcopy(resource)
    spec = bare.get("spec", {})
    bare["metadata"].pop("labels")
    template = spec.get("template", {})
    template.pop("metadata", None)
    for volume in template.get("spec", {}).get("volumes", []):
        # The name of Kustomize's ConfigMap contains a hash; the chart has the hash in an annotation instead.
        volume.pop("configMap", None)
    return bare


def test_the_defaults_are_the_base():
    chart = render({"serviceMonitor": {"enabled": True}})
    base = kustomize(KUSTOMIZE / "base")
    assert config(chart) == {"insecure": "true", **flags(base)}
    by_kind = lambda resources: {one["kind"]: without_labels(one) for one in resources if one["kind"] != "ConfigMap"}
    ours, theirs = by_kind(chart), by_kind(base)
    assert set(ours) == set(theirs)
    for kind in ours:
        assert ours[kind] == theirs[kind], kind


@pytest.mark.parametrize("overlay, name", [("cpu", "saccade"), ("gpu", "saccade-gpu")])
def test_the_overlays_are_the_chart_with_tls_and_tokens(overlay, name):
    more = parse((ROOT / "deploy/helm/values/gpu.yaml").read_text()) if overlay == "gpu" else {}
    guards = {"tls": {"secretName": "saccade-tls"}, "tokens": {"secretName": "saccade-tokens"}}
    chart = render({**more, **guards, "serviceMonitor": {"enabled": True}}, name=name, insecure=False)
    built = kustomize(KUSTOMIZE / "overlays" / overlay)
    assert config(chart) == flags(built)

    def by_kind(resources):
        found = {one["kind"]: without_labels(one) for one in resources if one["kind"] != "ConfigMap"}
        spec = found["Deployment"]["spec"]["template"]["spec"]
        spec["volumes"].sort(key=lambda volume: volume["name"])
        spec["containers"][0]["volumeMounts"].sort(key=lambda mount: mount["name"])
        return found

    # As in the base, the two differ in what they call an instance.
    ours, theirs = by_kind(chart), by_kind(built)
    assert set(ours) == set(theirs)
    for kind in ours:
        assert ours[kind] == theirs[kind], kind


def test_two_releases_do_not_select_each_others_pods():
    one, other = render(name="one"), render(name="other")
    selector = only(one, "Service")["spec"]["selector"]
    assert not selector.items() <= only(other, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    names = lambda resources: {(resource["kind"], resource["metadata"]["name"]) for resource in resources}
    assert not names(one) & names(other)


def test_labels_and_image_have_the_projects_version():
    version = re.search(r"project\(saccade VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    resources = render()
    for resource in resources:
        assert resource["metadata"]["labels"]["app.kubernetes.io/version"] == version
    assert container(resources)["image"] == f"saccade:{version}"


def test_flags_reach_the_daemon_as_they_were_written():
    written = config(render(VARIANTS["everything"]))
    assert (written["max-queue-size"], written["page"], written["stall-seconds"]) == ("8589934592", "false", "0.5")
    assert set(written) <= known_flags()


def test_a_changed_flag_rolls_the_pods():
    annotations = lambda resources: only(resources, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert render_files() == render_files()
    assert annotations(render()) != annotations(render({"config": {"page": False}}))


SECRETS = {"tls": {"secretName": "here-tls"}, "tokens": {"secretName": "callers"}}
MUTUAL = {"tls": {"secretName": "here-tls", "clientCASecretName": "their-ca"}}
# The Secret of each volume and the keys used from it; None stands for all keys.
VOLUMES = {"tls": ("here-tls", None), "client-ca": ("their-ca", ["ca.crt"]), "tokens": ("callers", None)}


@pytest.mark.parametrize("set_ones", [[], ["tls"], ["tokens"], ["tls", "tokens"], ["tls", "client-ca"],
                                      ["tls", "client-ca", "tokens"]], ids=" and ".join)
def test_what_is_open_is_said_to_be(set_ones):
    values = {name: SECRETS[name] for name in set_ones if name in SECRETS} | (MUTUAL if "client-ca" in set_ones else {})
    resources = render(values)
    written = config(resources)
    assert set(written) <= known_flags()
    assert ("insecure" in written) == (len(set_ones) < 2) == ("has full access" in notes(values))
    assert ("plain-metrics" in written) == bool(set_ones)
    flags_of = {"tls": ("tls-cert", "tls-key"), "client-ca": ("tls-client-ca",), "tokens": ("token-file",)}
    mounts = {mount["name"]: mount for mount in container(resources)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(resources)["volumes"]}
    for name, (secret, keys) in VOLUMES.items():
        assert (name in mounts) == (name in volumes) == (name in set_ones)
        for flag in flags_of[name]:
            assert (flag in written) == (name in set_ones)
            if flag not in written:
                continue
            folder, _, file = written[flag].rpartition("/")
            assert mounts[name]["mountPath"] == folder and mounts[name]["readOnly"]
            assert volumes[name]["secret"]["secretName"] == secret
            assert [item["key"] for item in volumes[name]["secret"].get("items", [])] == (keys or [])
            assert keys is None or file in keys


@pytest.mark.parametrize("of", ["configMapName", "secretName"])
@pytest.mark.parametrize("required", [True, False])
def test_the_public_key_of_the_models_is_mounted(of, required):
    resources = render({"models": {"signingKey": {of: "publisher", "key": "models.pem", "required": required}}})
    written = config(resources)
    assert set(written) <= known_flags() and written.get("require-signed") == ("true" if required else None)
    folder, _, file = written["signing-key"].rpartition("/")
    (mount,) = [one for one in container(resources)["volumeMounts"] if one["mountPath"] == folder]
    assert mount["readOnly"]
    (volume,) = [one for one in pod(resources)["volumes"] if one["name"] == mount["name"]]
    items = [{"key": "models.pem", "path": file}]
    assert volume == {"name": mount["name"], **(
        {"configMap": {"name": "publisher", "items": items}} if of == "configMapName" else
        {"secret": {"secretName": "publisher", "items": items}})}


def test_without_a_public_key_nothing_is_asked_of_the_models():
    resources = render()
    assert not {"signing-key", "require-signed"} & set(config(resources))
    assert "signing-key" not in {volume["name"] for volume in pod(resources)["volumes"]}


@pytest.mark.parametrize("values", [{}, {"tls": SECRETS["tls"]}, {"tokens": SECRETS["tokens"]}], ids=str)
def test_the_chart_asks_who_may_call(values):
    with pytest.raises(helm.HelmError, match="insecure: is false, but nothing identifies callers"):
        render(values, insecure=False)
    for guarded in (SECRETS, MUTUAL):
        assert "insecure" not in config(render(guarded, insecure=False))


def test_probes_of_a_daemon_that_wants_certificates_go_where_it_wants_none():
    """The kubelet has no client certificate. exposure_test.py tests the probes with a daemon."""
    resources = render(MUTUAL)
    asked = [container(resources)[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")]
    assert [one["path"] for one in asked] == ["/v2/health/ready", "/v2/health/ready", "/v2/health/live"]
    assert {(one["port"], one["scheme"]) for one in asked} == {("metrics", "HTTP")}
    assert config(resources)["plain-metrics"] == "true"
    assert "--cert" in notes(MUTUAL)


def test_probes_speak_what_the_daemon_does():
    probes = lambda resources: [container(resources)[f"{name}Probe"] for name in ("startup", "readiness", "liveness")]
    assert [probe["grpc"].get("service") for probe in probes(render())] == [None, None, "liveness"]
    asked = [probe["httpGet"] for probe in probes(render({"tls": SECRETS["tls"]}))]
    assert [one["path"] for one in asked] == ["/v2/health/ready", "/v2/health/ready", "/v2/health/live"]
    assert {(one["port"], one["scheme"]) for one in asked} == {("metrics", "HTTP")}
    protocols = {port["name"]: port["appProtocol"] for port in only(render({"tls": SECRETS["tls"]}), "Service")["spec"]["ports"]}
    assert protocols == {"grpc": "https", "http": "https", "metrics": "http"}


def test_the_notes_name_what_the_chart_makes():
    assert "rollout status deployment/saccade\n" in notes()
    progressive = notes({"progressive": {"enabled": True}})
    assert "deployment/" not in progressive and "kubectl argo rollouts -n vision status saccade\n" in progressive
    # kubectl takes a headless Service's port for the pod's.
    ports = {"httpPort": 80, "grpcPort": 81}
    headless, proxied = notes({"service": ports}), notes({"service": {**ports, "headless": False}})
    assert "port-forward service/saccade 8000:8000 8001:8001\n" in headless
    assert "port-forward service/saccade 8000:80 8001:81\n" in proxied
    # So do clients, which connect to the pods' addresses.
    assert "connect to dns:///saccade.vision.svc:8001 with" in headless
    assert "connect to dns:///saccade.vision.svc:81 with" in proxied


def pod_name(deployment):
    """The longest name that Kubernetes makes for a pod of the Deployment: it cuts what stands before the last part at 58."""
    return f"{deployment}-{'5' * 10}-"[:58] + "x2x4z"


@pytest.mark.parametrize("values, name", [
    ({}, "a" * 53), ({"nameOverride": "b" * 60}, "vision"), ({"fullnameOverride": "c" * 63}, "vision"), ({"fullnameOverride": "d" * 46}, "vision"),
], ids=["release", "name", "full name", "as long as may be"])
def test_pods_have_the_whole_name_and_the_whole_hash_of_their_deployment(values, name):
    keda = {"autoscaling": {"keda": {"enabled": True, "serverAddress": "http://prometheus:9090"}}}
    resources = render({**values, **keda}, name=name)
    deployment = only(resources, "Deployment")["metadata"]["name"]
    assert re.fullmatch(rf"{deployment}-5{{10}}-x2x4z", pod_name(deployment))
    scaled = only(resources, "ScaledObject")["spec"]
    assert scaled["scaleTargetRef"]["name"] == deployment
    for trigger in scaled["triggers"]:
        (pods,) = re.findall(r'pod=~"([^"]+)"', trigger["metadata"]["query"])
        assert re.fullmatch(pods, pod_name(deployment))
        assert not any(re.fullmatch(pods, pod_name(other)) for other in ("other", f"{deployment}-gpu", deployment[:-1]))
        # Those of a StatefulSet.
        assert not re.fullmatch(pods, f"{deployment}-store-0")
    for resource in resources:
        assert len(resource["metadata"]["name"]) <= 63


COMMAND = re.compile(r"helm install vision deploy/helm/saccade +([^\n]*)")
WRITTEN = [(file.name, found) for folder, kind in (("docs", "md"), ("deploy/helm/values", "yaml"))
           for file in sorted((ROOT / folder).glob(f"*.{kind}"))
           # A command may go on in the next line, in a file of values behind another #.
           for found in COMMAND.findall(re.sub(r"\\\n[# ]+", "", file.read_text()))]


def values_of(command):
    """What -f, --set and --set-file make of the chart's values."""
    values, words = {}, iter(shlex.split(command, comments=True))

    def merge(into, more):
        for key, value in more.items():
            if isinstance(value, dict) and isinstance(into.get(key), dict):
                merge(into[key], value)
            else:
                into[key] = value

    def assign(path, value):
        for key in reversed(path.split(".")):
            value = {key: value}
        merge(values, value)

    for word in words:
        given = next(words)
        if word == "-f":
            merge(values, parse((ROOT / given).read_text()))
        elif word == "--set":
            for one in given.split(","):
                path, _, value = one.partition("=")
                assign(path, parse(value))
        else:
            assert word == "--set-file" and given == "models.fetch.checksums=SHA256SUMS"
            assign("models.fetch.checksums", "0" * 64 + "  ./shapes/config.pbtxt\n")
    return values


@pytest.mark.parametrize("file, command", WRITTEN)
def test_the_commands_that_are_written_down_install_something(file, command):
    assert only(render(values_of(command), name="vision", insecure=False), "Deployment"), file


PAGE = (ROOT / "docs/deploying.md").read_text()
CREATE = re.compile(r"kubectl create (?:secret (?:tls|generic)|(configmap)) ([\w-]+)")


def created_in(text):
    """(kind, name) of the Secrets and ConfigMaps that commands of the text create."""
    return {("ConfigMap" if kind else "Secret", name) for kind, name in CREATE.findall(text)}


def asked_for(spec):
    """(kind, name) of what a pod needs before it starts."""
    found = set()
    for volume in spec["volumes"]:
        for field, kind, key in (("secret", "Secret", "secretName"), ("configMap", "ConfigMap", "name"),
                                 ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName")):
            if field in volume:
                found.add((kind, volume[field][key]))
    for one in spec["containers"] + spec.get("initContainers", []):
        found |= {("Secret", source["secretRef"]["name"]) for source in one.get("envFrom", [])}
    return found


@pytest.mark.parametrize("file, command", WRITTEN)
def test_what_a_written_command_needs_is_made_or_named_before_it(file, command):
    made = render(values_of(command), name="vision", insecure=False)
    missing = asked_for(pod(made)) - {(one["kind"], one["metadata"]["name"]) for one in made}
    (text,) = [path.read_text() for folder in ("docs", "deploy/helm/values") for path in (ROOT / folder).glob(file)]
    before, _, _ = re.sub(r"\\\n[# ]+", "", text).partition("helm install vision deploy/helm/saccade " + command)
    for kind, name in missing:
        if kind == "PersistentVolumeClaim":
            assert f"{kind} `{name}`" in PAGE
        else:
            # In the page's own section. A file of values may leave a Secret to the page.
            assert (kind, name) in created_in(before.rpartition("\n## ")[2]) or (
                "docs/deploying.md says how to make" in text and (kind, name) in created_in(PAGE)), (kind, name)
    for kind, needed in (("Rollout", "Argo Rollouts"), ("ServiceMonitor", "Prometheus operator")):
        assert not of_kind(made, kind) or needed in " ".join(text.split()), kind


def test_the_commands_that_are_written_down_are_found():
    assert {file for file, _ in WRITTEN} >= {"deploying.md", "capture.md", "fleet.yaml", "models-fetch.yaml", "models-s3.yaml"}
    ((_, fleet),) = [one for one in WRITTEN if "fleet.yaml" in one[1] and one[0] == "deploying.md"]
    asked = asked_for(pod(render(values_of(fleet), name="vision", insecure=False)))
    assert asked == {("Secret", "saccade-tls"), ("Secret", "saccade-tokens"), ("ConfigMap", "vision-saccade-config"),
                     ("PersistentVolumeClaim", "saccade-models")}
    # The chart looks for these keys.
    for files in ("saccade-tls --cert=tls.crt --key=tls.key\n", "saccade-tokens --from-file=tokens\n"):
        assert files in PAGE


@pytest.mark.parametrize("capture, volume, path", [
    ({"sizeLimit": "1Gi"}, {"emptyDir": {"sizeLimit": "1Gi"}}, None),
    ({"claim": "calls"}, {"persistentVolumeClaim": {"claimName": "calls"}}, "$(POD_NAME)"),
], ids=str)
def test_captured_calls_have_a_volume_and_each_pod_a_folder(capture, volume, path):
    resources = render({"capture": {"enabled": True, **capture}, "config": {"capture-rate": 0.01}})
    written = config(resources)
    assert set(written) <= known_flags() and written["capture-rate"] == "0.01" and "capture-sink" not in written
    (mount,) = [one for one in container(resources)["volumeMounts"] if one["name"] == "capture"]
    # The daemon makes the last folder, which others may not read.
    assert written["capture"].rpartition("/")[0] == mount["mountPath"] and mount.get("subPathExpr") == path
    (made,) = [one for one in pod(resources)["volumes"] if one["name"] == "capture"]
    assert made == {"name": "capture", **volume}
    names = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container(resources).get("env", [])}
    assert names == ({"POD_NAME": "metadata.name"} if path else {})
    assert not let_out(only(resources, "NetworkPolicy")["spec"])


@pytest.mark.parametrize("sink, port", [
    ({"url": "http://dumper.default.svc"}, 80), ({"url": "http://dumper.default.svc", "port": 8080, "to": FROM}, 8080),
    ({"url": "https://sink.example:9443/calls"}, 9443),
], ids=str)
def test_captured_calls_are_let_out_to_their_sink(sink, port):
    resources = render({"capture": {"sink": sink}})
    written = config(resources)
    assert set(written) <= known_flags() and written["capture-sink"] == sink["url"] and "capture" not in written
    out = let_out(only(resources, "NetworkPolicy")["spec"])
    assert set(out) == {(port, "TCP"), (53, "UDP"), (53, "TCP")} and out[(port, "TCP")] == sink.get("to")
    assert container(resources)["env"] == [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
    assert "capture" not in {volume["name"] for volume in pod(resources)["volumes"]}
    both = render({"capture": {"sink": sink}, "traces": {"endpoint": "http://collector:4318"}})
    assert set(let_out(only(both, "NetworkPolicy")["spec"])) == {*out, (4318, "TCP")}


def test_further_variables_reach_the_daemon():
    more = VARIANTS["everything"]["extraEnv"]
    assert container(render({"extraEnv": more}))["env"] == more
    assert container(render(VARIANTS["everything"]))["env"][-2:] == more
    assert "env" not in container(render())


def test_the_grace_period_follows_the_drain():
    slow = pod(render({"config": {"drain-timeout-seconds": 100}, "preStopSeconds": 20}))
    assert 20 + 5 + 100 + beside_the_flags() < slow["terminationGracePeriodSeconds"] == 135


def test_a_pod_that_may_still_load_is_not_ended():
    slow = {"config": {"load-deadline-seconds": 900}}
    with pytest.raises(helm.HelmError, match="allows 300 s, but the models may take 900 s to load"):
        render(slow)
    with pytest.raises(helm.HelmError, match=f"may take {load_deadline({})} s to load"):
        render({"startupProbe": {"failureThreshold": 50}})
    allowed = {**slow, "startupProbe": {"failureThreshold": 186}}
    assert container(render(allowed))["startupProbe"]["failureThreshold"] == 186
    rollout = only(render({**allowed, "progressive": {"enabled": True}}), "Rollout")["spec"]
    # Ten minutes more, as with the defaults.
    assert rollout["progressDeadlineSeconds"] == 186 * 5 + 600
    assert only(render({"progressive": {"enabled": True}}), "Rollout")["spec"]["progressDeadlineSeconds"] == 900


def test_the_demo_needs_no_claim():
    resources = render({"models": {"demo": True}})
    assert {volume["name"] for volume in pod(resources)["volumes"]} == {"config", "state", "temporary"}
    repository = config(resources)["model-repository"]
    assert f"COPY models/demo/repository {repository}\n" in (ROOT / "deploy/container/Dockerfile").read_text()
    assert "claim" not in notes({"models": {"demo": True}}) and "claim saccade-models" in notes()


@pytest.mark.parametrize("values, source", [
    ({}, {"emptyDir": {"sizeLimit": "64Mi"}}),
    ({"claim": "kept"}, {"persistentVolumeClaim": {"claimName": "kept"}}),
    ({"hostPath": "/srv/state"}, {"hostPath": {"path": "/srv/state", "type": "Directory"}}),
], ids=str)
def test_the_state_is_kept_where_the_image_writes_it(values, source):
    resources = render({"state": values})
    (volume,) = [one for one in pod(resources)["volumes"] if one["name"] == "state"]
    assert volume == {"name": "state", **source}
    (mount,) = [one for one in container(resources)["volumeMounts"] if one["name"] == "state"]
    assert mount == {"name": "state", "mountPath": state_folder()}


def test_only_those_who_may_come_in():
    (asking, scraping) = only(render(VARIANTS["everything"]), "NetworkPolicy")["spec"]["ingress"]
    assert [port["port"] for port in asking["ports"]] == ["grpc", "http"] and asking["from"] == FROM
    assert [port["port"] for port in scraping["ports"]] == ["metrics"] and scraping["from"] == FROM
    (asking, scraping) = only(render(), "NetworkPolicy")["spec"]["ingress"]
    assert asking["from"] == [{"podSelector": {}}], "the release's namespace"
    assert scraping["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    (scraping,) = only(render({"networkPolicy": {"from": []}}), "NetworkPolicy")["spec"]["ingress"]
    assert [port["port"] for port in scraping["ports"]] == ["metrics"]
    nobody = only(render({"networkPolicy": {"from": [], "metricsFrom": []}}), "NetworkPolicy")["spec"]
    assert "Ingress" in nobody["policyTypes"] and "ingress" not in nobody
    assert not of_kind(render({"networkPolicy": {"enabled": False}}), "NetworkPolicy")


@pytest.mark.parametrize("endpoint, port", [
    ("http://collector.observability:4318", 4318), ("https://collector.example/otlp", 443), ("http://collector", 80),
    ("http://[fd00::7]:9", 9),
])
def test_traces_are_let_out_to_where_they_are_sent(endpoint, port):
    resources = render({"traces": {"endpoint": endpoint, "settings": {"OTEL_TRACES_SAMPLER_ARG": 0.1}, "to": FROM}})
    variables = {entry["name"]: entry.get("value") for entry in container(resources).get("env", [])}
    assert variables["OTEL_EXPORTER_OTLP_ENDPOINT"] == endpoint and variables["OTEL_TRACES_SAMPLER_ARG"] == "0.1"
    assert {name for name in variables if name.startswith("OTEL_")} <= traces_variables()
    out = let_out(only(resources, "NetworkPolicy")["spec"])
    assert set(out) == {(port, "TCP"), (53, "UDP"), (53, "TCP")} and out[(port, "TCP")] == FROM
    assert out[(53, "UDP")] == out[(53, "TCP")] == parse((CHART / "values.yaml").read_text())["networkPolicy"]["dns"]


def test_large_numbers_are_passed_without_an_exponent():
    large, written = 268435456, "268435456"
    fetch = {"image": "r.example/rclone:1", "uri": "s3://models/7", "checksums": "0" * 64 + "  ./shapes/config.pbtxt\n",
             "settings": {"RCLONE_BUFFER_SIZE": large, "RCLONE_BWLIMIT": 0.5, "RCLONE_S3_NO_CHECK_BUCKET": True,
                          "RCLONE_S3_SSE_KMS_KEY_ID": "key"}}
    traces = {"endpoint": "http://collector:4318", "settings": {"OTEL_BSP_MAX_QUEUE_SIZE": large}}
    resources = render({"models": {"fetch": fetch}, "traces": traces, "config": {"max-message-bytes": large}})
    (first,) = pod(resources)["initContainers"]
    assert {one["name"]: one["value"] for one in first["env"]} == {
        "RCLONE_BUFFER_SIZE": written, "RCLONE_BWLIMIT": "0.5", "RCLONE_S3_NO_CHECK_BUCKET": "true", "RCLONE_S3_SSE_KMS_KEY_ID": "key"}
    assert {one["name"]: one["value"] for one in container(resources)["env"]}["OTEL_BSP_MAX_QUEUE_SIZE"] == written
    assert config(resources)["max-message-bytes"] == written


def test_without_traces_nothing_is_let_out():
    resources = render()
    assert "Egress" in only(resources, "NetworkPolicy")["spec"]["policyTypes"]
    assert not let_out(only(resources, "NetworkPolicy")["spec"])
    assert not [entry for entry in container(resources).get("env", []) if entry["name"].startswith("OTEL_")]
    anywhere = render({"traces": {"endpoint": "http://collector:4318"}, "networkPolicy": {"dns": []}})
    assert set(let_out(only(anywhere, "NetworkPolicy")["spec"]).values()) == {None}


def test_rules_and_dashboard_are_those_of_monitoring():
    resources = render(VARIANTS["everything"])
    rules = parse((MONITORING / "rules.yaml").read_text().replace("runbook_url: ", "runbook_url: https://git.example/"))
    assert only(resources, "PrometheusRule")["spec"] == rules
    (text,) = [one["data"]["saccade.json"] for one in of_kind(resources, "ConfigMap") if "saccade.json" in one["data"]]
    assert json.loads(text) == json.loads((MONITORING / "dashboard.json").read_text())


def test_a_package_has_files_where_the_checkout_has_links(tmp_path):
    with tarfile.open(helm.package(CHART, destination=tmp_path)) as package:
        for name in ("rules.yaml", "dashboard.json"):
            packed = package.extractfile(f"saccade/files/{name}").read()
            assert packed == (MONITORING / name).read_bytes()


@pytest.mark.parametrize("values", [
    {"replicas": 3},
    {"image": {"tag": "latest"}},
    {"image": {"repository": ""}},
    {"service": {"grpcPort": 70000}},
    {"resources": {"limits": {"memory": None}}},
    {"models": {"path": "models"}},
    {"models": {"signingKey": {"key": "../public.pem"}}},
    {"config": {"grpc_port": 1}},
    {"config": {"page": [True]}},
    {"tls": {"secret": "here-tls"}},
    {"tls": {"clientCASecretName": "their-ca"}},
    {"tls": {"clientCASecretName": "their-ca"}, "tokens": {"secretName": "callers"}},
    {"traces": {"endpoint": "collector:4318"}},
    {"traces": {"settings": {"OTEL_TRACES_SAMPLER": "always_on"}}},
    {"traces": {"to": FROM}},
    {"traces": {"endpoint": "http://collector", "settings": {"PATH": "/tmp"}}},
    {"traces": {"endpoint": "http://collector", "settings": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other"}}},
    {"prometheusRule": {"runbookBase": "git.example"}},
    {"topologySpread": {"whenUnsatisfiable": "Never"}},
    {"autoscaling": {"keda": {"enabled": True, "serverAddress": "prometheus:9090"}}},
    {"autoscaling": {"keda": {"threshold": 0}}},
    {"state": {"hostPath": "state"}},
    {"capture": {"sink": {"url": "dumper.default.svc"}}},
    {"capture": {"sink": {"port": 8080}}},
    {"capture": {"sink": {"to": FROM}}},
    {"capture": {"folder": "/calls"}},
    {"extraEnv": {"A": "b"}},
    {"extraEnv": [{"value": "b"}]},
    {"extraEnv": [{"name": "A", "value": 1}]},
    {"extraEnv": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
    *({"models": {"fetch": {"settings": {name: "secret"}}}} for name in (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "RCLONE_S3_ACCESS_KEY_ID", "RCLONE_S3_SECRET_ACCESS_KEY",
        "RCLONE_S3_SESSION_TOKEN", "RCLONE_S3_SSE_CUSTOMER_KEY", "RCLONE_S3_SSE_CUSTOMER_KEY_BASE64", "RCLONE_RC_PASS",
        "RCLONE_PASSWORD")),
], ids=str)
def test_wrong_values_are_refused(values):
    with pytest.raises(helm.HelmError):
        render(values)


@pytest.mark.parametrize("values, said", [
    ({"config": {"grpc-port": 9001}}, "config.grpc-port: is set by the chart"),
    ({"config": {"insecure": False}}, "config.insecure: is set by the chart"),
    ({"config": {"model-store": "/models"}}, "config.model-store: is set by the chart"),
    ({"config": {"exit-timeout-secs": 100}}, "config.exit-timeout-secs: is another name of drain-timeout-seconds"),
    ({"config": {"capture": "/tmp/calls"}}, "config.capture: is set by the chart"),
    ({"config": {"capture-sink": "http://sink"}}, "config.capture-sink: is set by the chart"),
    ({"config": {"require-signed": True}}, "config.require-signed: is set by the chart"),
    ({"models": {"claim": ""}}, "models.claim"),
    ({"state": {"claim": "here", "hostPath": "/there"}}, "state: claim and hostPath are both set"),
    ({"models": {"fetch": {"uri": "s3://models/7"}}}, "models.fetch.uri: is set, but models.fetch.image is empty"),
    ({"models": {"signingKey": {"configMapName": "one", "secretName": "other"}}}, "configMapName and secretName are both set"),
    ({"autoscaling": {"keda": {"enabled": True}}}, "autoscaling.keda.serverAddress: is empty"),
    ({"autoscaling": {"targetCPUUtilizationPercentage": 0}}, "neither targetCPUUtilizationPercentage nor metrics"),
], ids=str)
def test_what_cannot_be_is_told(values, said):
    with pytest.raises(helm.HelmError, match=re.escape(said)):
        render(values)


def test_every_value_has_a_place_in_the_schema():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = parse((CHART / "values.yaml").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    for name, section in values.items():
        properties = schema["properties"][name].get("properties")
        assert properties is None or set(section) <= set(properties), name
