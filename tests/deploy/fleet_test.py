"""Checks the files of values for fleets (deploy/helm/values): what they make fits the schemas and does what their comments
say. policies_test.py checks their pods."""

import re

import jsonschema
import pytest

import helm_python as helm
from deploy_test import KUBERNETES_VERSIONS, KUSTOMIZE, ROOT, known_flags, let_out, load_deadline, of_kind, only, with_component
from helm_test import config, container, pod, render
from manifests import check, parse

VALUES = {file.stem: parse(file.read_text()) for file in sorted((ROOT / "deploy/helm/values").glob("*.yaml"))}


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
@pytest.mark.parametrize("values", VALUES)
def test_every_resource_fits_its_schema(values, version):
    if values == "models-image" and version == KUBERNETES_VERSIONS[0]:
        pytest.skip("that release has no image volumes")
    for resource in render(VALUES[values]):
        check(resource, version)


@pytest.mark.parametrize("kind, values", [("Rollout", "canary"), ("AnalysisTemplate", "canary"), ("GRPCRoute", "gateway"),
                                          ("HTTPRoute", "gateway")])
def test_a_misspelt_field_of_a_custom_resource_is_found(kind, values):
    resource = only(render(VALUES[values]), kind)
    field = next(iter(resource["spec"]))
    resource["spec"][field + "s"] = resource["spec"].pop(field)
    with pytest.raises(jsonschema.ValidationError):
        check(resource)


@pytest.mark.parametrize("values", VALUES)
def test_every_flag_is_known_to_the_daemon(values):
    assert set(config(render(VALUES[values]))) <= known_flags()


@pytest.mark.parametrize("values", VALUES)
def test_the_startup_probe_allows_the_models_their_time(values):
    made = render(VALUES[values])
    probe = container(made)["startupProbe"]
    assert 0 < load_deadline(config(made)) + 30 <= probe["periodSeconds"] * probe["failureThreshold"]


@pytest.mark.parametrize("values", VALUES)
def test_the_daemon_chooses_the_threads_of_a_pass(values):
    """A number that is set switches off the trial at load, which finds the threads and the instances."""
    assert not {"threads-per-instance", "cores"} & set(config(render(VALUES[values])))


def test_the_component_of_kustomize_is_the_fleet_of_the_chart(tmp_path_factory):
    built, made = with_component("fleet", tmp_path_factory), render(VALUES["fleet"])
    for kind in ("Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler"):
        ours, theirs = only(built, kind)["spec"], only(made, kind)["spec"]
        same = {"Deployment": ["strategy"], "PodDisruptionBudget": ["maxUnavailable"],
                "HorizontalPodAutoscaler": ["minReplicas", "maxReplicas", "behavior"]}[kind]
        assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
    plain = lambda spread: {name: value for name, value in spread.items() if name != "labelSelector"}
    by_key = lambda spec: {one["topologyKey"]: plain(one) for one in spec["topologySpreadConstraints"]}
    assert by_key(only(built, "Deployment")["spec"]["template"]["spec"]) == by_key(pod(made))
    # A component does not set flags; the page names the one that is left to the user.
    ((flag, value),) = VALUES["fleet"]["config"].items()
    assert f"but for `{flag}={value}`" in " ".join((ROOT / "docs/deploying.md").read_text().split())


def test_demand_is_what_the_component_asks_the_adapter_for():
    rules = (KUSTOMIZE / "components/demand-autoscaling/kustomization.yaml").read_text()
    known = set(re.findall(r"name: {as: (\w+)}", rules))
    for values in ("fleet", "gpu", "mig"):
        metrics = only(render(VALUES[values]), "HorizontalPodAutoscaler")["spec"]["metrics"]
        assert {metric["pods"]["metric"]["name"] for metric in metrics} <= known


@pytest.mark.parametrize("values", VALUES)
def test_cores_are_whole_so_that_the_kubelet_can_give_them(values):
    resources = container(render(VALUES[values]))["resources"]
    assert resources["requests"] == resources["limits"] and re.fullmatch(r"\d+", str(resources["limits"]["cpu"]))


def test_a_gpu_and_an_instance_of_mig_are_asked_for():
    limits = lambda values: container(render(VALUES[values]))["resources"]["limits"]
    assert limits("gpu")["nvidia.com/gpu"] == 1 and limits("mig")["nvidia.com/mig-1g.10gb"] == 1
    assert pod(render(VALUES["gpu"]))["runtimeClassName"] == "nvidia"


def test_models_of_an_image_are_mounted_read_only():
    made = render({"models": {"image": {"reference": "r.example/m:7", "subPath": "repository"}}})
    volumes = {volume["name"]: volume for volume in pod(made)["volumes"]}
    assert volumes["models"]["image"] == {"reference": "r.example/m:7", "pullPolicy": "IfNotPresent"}
    mounts = {mount["name"]: mount for mount in container(made)["volumeMounts"]}
    assert mounts["models"] == {"name": "models", "mountPath": "/models", "readOnly": True, "subPath": "repository"}


def test_fetched_models_are_checked_before_the_daemon_starts():
    made = render(VALUES["models-fetch"])
    (first,) = pod(made)["initContainers"]
    writable = {mount["name"]: mount["mountPath"] for mount in first["volumeMounts"] if not mount.get("readOnly")}
    # Not over the image's own folder, which holds what is copied.
    assert writable == {"models": "/target", "temporary": "/tmp"} and first["command"][2] == "/models"
    (given,) = [one["data"] for one in of_kind(made, "ConfigMap") if "SHA256SUMS" in one["data"]]
    assert given["SHA256SUMS"].strip() == VALUES["models-fetch"]["models"]["fetch"]["checksums"].strip()
    assert given["fetch-models.sh"].strip() == (ROOT / "deploy/helm/saccade/files/fetch-models.sh").read_text().strip()
    mounts = {mount["name"]: mount for mount in container(made)["volumeMounts"]}
    assert mounts["models"]["readOnly"]


def test_models_of_a_bucket_are_downloaded_with_the_secret_and_let_out():
    store = [{"podSelector": {"matchLabels": {"app": "minio"}}}]
    values = {"models": {"fetch": {**VALUES["models-s3"]["models"]["fetch"], "port": 9000, "to": store}}}
    made = render(values)
    (first,) = pod(made)["initContainers"]
    assert first["command"][2] == "s3://vision-models/release-7" and first["envFrom"] == [{"secretRef": {"name": "models-reader"}}]
    assert {one["name"]: one["value"] for one in first["env"]} == values["models"]["fetch"]["settings"]
    # The daemon gets neither the credentials nor the variables.
    assert not {"env", "envFrom"} & set(container(made))
    out = let_out(only(made, "NetworkPolicy")["spec"])
    assert set(out) == {(9000, "TCP"), (53, "UDP"), (53, "TCP")} and out[(9000, "TCP")] == store
    both = render({**values, "traces": {"endpoint": "http://collector:4318"}})
    assert set(let_out(only(both, "NetworkPolicy")["spec"])) == {*out, (4318, "TCP")}
    assert not let_out(only(render(VALUES["models-fetch"]), "NetworkPolicy")["spec"])


def test_the_client_of_the_image_is_the_one_that_is_tested():
    image = VALUES["models-s3"]["models"]["fetch"]["image"]
    pinned = (ROOT / "tools/setup/requirements/tests.in").read_text()
    assert f"\nrclone-bin=={image.removeprefix('rclone/rclone:')}\n" in pinned


def annotations(made):
    return only(made, "Deployment")["spec"]["template"]["metadata"]


def test_other_models_roll_the_pods():
    fetch = VALUES["models-fetch"]["models"]["fetch"]
    other = {"models": {"fetch": {**fetch, "checksums": "0" * 64 + "  ./shapes/config.pbtxt\n"}}}
    assert annotations(render(VALUES["models-fetch"])) != annotations(render(other))
    assert annotations(render({"models": {"version": "7"}}))["labels"]["saccade/models-version"] == "7"


@pytest.mark.parametrize("strategy", ["canary", "blue-green"])
def test_a_rollout_runs_the_deployments_pods(strategy):
    made = render(VALUES[strategy])
    rollout, deployment = only(made, "Rollout"), only(made, "Deployment")
    # Argo scales the Deployment up while the first revision starts, unless scaleDown is never.
    assert rollout["spec"]["workloadRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"],
                                              "scaleDown": "never"}
    assert deployment["spec"]["replicas"] == 0
    target = only(made, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Rollout", rollout["metadata"]["name"])
    # Argo gives its pods a label of its own.
    for spread in pod(made)["topologySpreadConstraints"]:
        assert spread["matchLabelKeys"] == ["rollouts-pod-template-hash"]
    startup = container(made)["startupProbe"]
    assert rollout["spec"]["progressDeadlineSeconds"] > startup["periodSeconds"] * startup["failureThreshold"]
    templates = {one["metadata"]["name"] for one in of_kind(made, "AnalysisTemplate")}
    asked = set(re.findall(r"'templateName': '([\w-]+)'", str(rollout)))
    assert asked == templates
    services = {service["metadata"]["name"] for service in of_kind(made, "Service")}
    assert set(re.findall(r"'(?:active|preview)Service': '([\w-]+)'", str(rollout))) == (
        services if strategy == "blue-green" else set())


@pytest.mark.parametrize("strategy, services", [("canary", 1), ("blue-green", 2)])
def test_a_pod_is_scraped_once_though_two_services_have_it(strategy, services):
    made = render(VALUES[strategy])
    monitor = only(made, "ServiceMonitor")["spec"]
    check(only(made, "ServiceMonitor"))
    chosen = [one for one in of_kind(made, "Service") if monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()]
    assert len(chosen) == services
    (endpoint,) = monitor["endpoints"]
    # The labels that the operator takes from the Service's name.
    named = {one["targetLabel"]: one["replacement"] for one in endpoint.get("relabelings", [])}
    targets = {tuple(named.get(label, one["metadata"]["name"]) for label in ("job", "service")) for one in chosen}
    assert targets == {("saccade", "saccade")}


def test_replicas_behind_a_gateway_report_their_load():
    assert config(render(VALUES["gateway"]))["orca-load-reports"] == "true"


def test_routes_lead_to_the_service_and_publish_the_api_alone():
    made = render({**VALUES["gateway"], "service": {"grpcPort": 9001, "httpPort": 9000}})
    service = only(made, "Service")
    for kind, port in (("GRPCRoute", 9001), ("HTTPRoute", 9000)):
        (rule,) = only(made, kind)["spec"]["rules"]
        assert rule["backendRefs"] == [{"name": service["metadata"]["name"], "port": port}]
        assert only(made, kind)["spec"]["parentRefs"] == VALUES["gateway"]["gateway"]["parentRefs"]
    served = {match["method"]["service"] for match in only(made, "GRPCRoute")["spec"]["rules"][0]["matches"]}
    own = "".join(file.read_text() for file in (ROOT / "proto").rglob("*.proto"))
    for name in served - {"grpc.health.v1.Health"}:
        package, _, plain = name.rpartition(".")
        assert f"package {package};" in own and f"service {plain} {{" in own
    paths = {match["path"]["value"] for match in only(made, "HTTPRoute")["spec"]["rules"][0]["matches"]}
    assert paths == {"/v1", "/v2"}


def test_a_gateway_takes_both_routes():
    """The Gateway API lets a gateway accept only one of a GRPCRoute and an HTTPRoute whose names overlap."""
    names = {kind: set(only(render(VALUES["gateway"]), kind)["spec"]["hostnames"]) for kind in ("GRPCRoute", "HTTPRoute")}
    assert all(names.values()) and not names["GRPCRoute"] & names["HTTPRoute"]


def with_names(rest, grpc):
    return {"gateway": {**VALUES["gateway"]["gateway"], "hostnames": rest, "grpcHostnames": grpc}}


@pytest.mark.parametrize("rest, grpc, made", [(["a.example"], [], ["HTTPRoute"]), ([], ["a.example"], ["GRPCRoute"]),
                                              (["*.example"], ["example"], ["GRPCRoute", "HTTPRoute"])], ids=str)
def test_there_is_a_route_for_what_has_names(rest, grpc, made):
    resources = render(with_names(rest, grpc))
    assert [one["kind"] for kind in ("GRPCRoute", "HTTPRoute") for one in of_kind(resources, kind)] == made
    for kind in made:
        check(only(resources, kind))


@pytest.mark.parametrize("rest, grpc, said", [
    ([], [], "both empty"), (["a.example"], ["b.example", "a.example"], "overlap"), (["*.example"], ["a.example"], "overlap"),
    (["a.b.example"], ["*.example"], "overlap"), (["*.example"], ["*.b.example"], "overlap"),
], ids=str)
def test_routes_that_a_gateway_would_not_take_are_refused(rest, grpc, said):
    with pytest.raises(helm.HelmError, match=said):
        render(with_names(rest, grpc))


@pytest.mark.parametrize("values", [
    {"models": {"image": {"reference": "r.example/m"}}},
    {"models": {"image": {"reference": "r.example/m:latest"}}},
    {"models": {"fetch": {"image": "r.example/m:7"}}},
    {"models": {"fetch": {"image": "r.example/m:7", "checksums": "abc  ./config.pbtxt"}}},
    {"models": {"fetch": {"image": "r.example/m:7", "checksums": "0" * 64 + "  /etc/passwd"}}},
    {"models": {"fetch": {**VALUES["models-s3"]["models"]["fetch"], "uri": "gs://vision-models/7"}}},
    {"models": {"fetch": {**VALUES["models-s3"]["models"]["fetch"], "settings": {"PATH": "/tmp"}}}},
    {"models": {"version": "no version"}},
    {"progressive": {"strategy": "sometimes"}},
    {"progressive": {"analysis": {"maxFaults": 2}}},
    {"gateway": {"enabled": True}},
    {"topologySpread": {"zones": "Never"}},
], ids=str)
def test_wrong_values_are_refused(values):
    with pytest.raises(helm.HelmError):
        render(values)


def test_two_sources_of_models_are_refused():
    fetch = VALUES["models-fetch"]["models"]["fetch"]
    with pytest.raises(helm.HelmError, match="image.reference and fetch.image are both set"):
        render({"models": {"image": {"reference": "r.example/m:7"}, "fetch": fetch}})
