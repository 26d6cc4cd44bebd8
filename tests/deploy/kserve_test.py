"""Checks KServe's resources against KServe's fields, Kubernetes' schema for the pod, and the daemon's flags."""

import copy

import jsonschema
import pytest

from deploy_test import KUBERNETES_VERSIONS, KUSTOMIZE, ROOT, bytes_of, known_flags, kustomize, least_memory, only
from drain_time import beside_the_flags
from manifests import check, parse, parse_all

FOLDER = ROOT / "deploy" / "kserve"

# Kubernetes has no schema for custom resources: these are the parts of KServe's that are used.
NAMED = {"type": "object", "required": ["name"]}
RUNTIME = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "serving.kserve.io/v1alpha1"},
        "kind": {"const": "ClusterServingRuntime"},
        "metadata": NAMED,
        "spec": {
            "type": "object",
            "required": ["containers", "supportedModelFormats", "protocolVersions"],
            "additionalProperties": False,
            "properties": {
                "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                "supportedModelFormats": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string"},
                            "version": {"type": "string"},
                            "autoSelect": {"type": "boolean"},
                            "priority": {"type": "integer", "minimum": 1},
                        },
                    },
                },
                "protocolVersions": {"type": "array", "items": {"enum": ["v1", "v2", "grpc-v1", "grpc-v2"]}},
                "containers": {"type": "array", "minItems": 1, "items": NAMED},
                "volumes": {"type": "array", "items": NAMED},
            },
        },
    },
}
SERVICE = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "serving.kserve.io/v1beta1"},
        "kind": {"const": "InferenceService"},
        "metadata": NAMED,
        "spec": {
            "type": "object",
            "required": ["predictor"],
            "additionalProperties": False,
            "properties": {
                "predictor": {
                    "type": "object",
                    "required": ["model"],
                    "additionalProperties": False,
                    "properties": {
                        "minReplicas": {"type": "integer", "minimum": 0},
                        "maxReplicas": {"type": "integer", "minimum": 1},
                        "scaleMetric": {"enum": ["concurrency", "rps", "cpu", "memory"]},
                        "scaleTarget": {"type": "integer", "minimum": 1},
                        "serviceAccountName": {"type": "string"},
                        "terminationGracePeriodSeconds": {"type": "integer", "minimum": 0},
                        "model": {
                            "type": "object",
                            "required": ["modelFormat", "storageUri"],
                            "additionalProperties": False,
                            "properties": {
                                "modelFormat": {**NAMED, "additionalProperties": False,
                                                "properties": {"name": {"type": "string"}, "version": {"type": "string"}}},
                                "runtime": {"type": "string"},
                                "protocolVersion": {"enum": ["v1", "v2", "grpc-v1", "grpc-v2"]},
                                "storageUri": {"type": "string", "pattern": "^(pvc|s3|gs|hf|https?)://"},
                                "env": {"type": "array"},
                                "ports": {"type": "array"},
                            },
                        },
                    },
                },
            },
        },
    },
}


def runtime():
    return parse((FOLDER / "clusterservingruntime.yaml").read_text())


def services():
    return parse_all((FOLDER / "inferenceservice.yaml").read_text())


def container():
    (found,) = runtime()["spec"]["containers"]
    return found


def flags():
    assert all(argument.startswith("--") for argument in container()["args"])
    return dict(argument.removeprefix("--").split("=", 1) for argument in container()["args"])


def serverless():
    """(the runtime, the service) of scale-to-zero.yaml."""
    return tuple(parse_all((FOLDER / "scale-to-zero.yaml").read_text()))


def object_store():
    """The resources of object-store.yaml, by their kinds."""
    return {one["kind"]: one for one in parse_all((FOLDER / "object-store.yaml").read_text())}


def runtimes_and_services():
    return [(runtime(), service) for service in (*services(), object_store()["InferenceService"])] + [serverless()]


def pod_of(service, runtime_of_service=None):
    """The pod that KServe makes: the runtime's container, merged with the service's settings, beside KServe's own
    volumes."""
    predictor = copy.deepcopy(service["spec"]["predictor"])
    chosen = (runtime_of_service or runtime())["spec"]
    merged = {**chosen["containers"][0], **{name: predictor["model"][name] for name in ("env", "ports") if name in predictor["model"]}}
    spec = {"containers": [merged], "volumes": chosen["volumes"]}
    for name in ("terminationGracePeriodSeconds", "serviceAccountName"):
        if name in predictor:
            spec[name] = predictor[name]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": service["metadata"]["name"]}, "spec": spec}


def test_kserve_knows_every_field():
    jsonschema.validate(runtime(), RUNTIME)
    for service in services():
        jsonschema.validate(service, SERVICE)


def test_a_misspelt_field_is_found():
    wrong = runtime()
    wrong["spec"]["protocolVersion"] = wrong["spec"].pop("protocolVersions")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, RUNTIME)


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
@pytest.mark.parametrize("number", range(2))
def test_kubernetes_takes_the_pod(number, version):
    check(pod_of(services()[number]), version)


def test_each_service_says_itself_that_it_is_open():
    assert "insecure" not in flags()
    for service in services():
        assert service["spec"]["predictor"]["model"]["env"] == [{"name": "SACCADED_INSECURE", "value": "true"}]


def test_the_runtime_serves_what_the_services_ask_for():
    spec = runtime()["spec"]
    formats = {(one["name"], one["version"]): one["autoSelect"] for one in spec["supportedModelFormats"]}
    assert len(services()) == len(spec["protocolVersions"])
    for service in services():
        model = service["spec"]["predictor"]["model"]
        assert formats[(model["modelFormat"]["name"], model["modelFormat"]["version"])]
        assert model["protocolVersion"] in spec["protocolVersions"]
        if model["protocolVersion"].startswith("grpc"):
            assert model["ports"] == [{"name": "h2c", "containerPort": int(flags()["grpc-port"]), "protocol": "TCP"}]


def test_ports_are_kserves_and_agree():
    assert (flags()["grpc-port"], flags()["http-port"]) == ("9000", "8080")
    assert runtime()["spec"]["annotations"]["prometheus.kserve.io/port"] == flags()["metrics-port"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container()[probe]["grpc"]["port"] == int(flags()["metrics-port"])
    assert flags()["model-repository"] == "/mnt/models"


def test_it_is_the_bases_container():
    base = only(kustomize(KUSTOMIZE / "base"), "Deployment")["spec"]["template"]["spec"]
    (theirs,) = base["containers"]
    ours = container()
    for same in ("image", "imagePullPolicy", "lifecycle", "resources"):
        assert ours[same] == theirs[same], same
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        without_port = lambda one: {**one, "grpc": {**one["grpc"], "port": None}}
        assert without_port(ours[probe]) == without_port(theirs[probe]), probe
    # A runtime cannot set the pod's security context.
    assert ours["securityContext"] == theirs["securityContext"] | base["securityContext"]
    assert "env" not in ours and "env" not in theirs
    # KServe mounts the models itself.
    written = lambda one: [mount for mount in one["volumeMounts"] if not mount.get("readOnly")]
    assert written(ours) == written(theirs)
    volumes_of = {volume["name"]: volume for volume in base["volumes"]}
    for volume in runtime()["spec"]["volumes"] + serverless()[0]["spec"]["volumes"]:
        assert volume == volumes_of[volume["name"]]
    for service in services():
        assert service["spec"]["predictor"]["terminationGracePeriodSeconds"] == base["terminationGracePeriodSeconds"]


def test_there_is_time_to_drain():
    needed = int(container()["lifecycle"]["preStop"]["exec"]["command"][1]) + sum(
        int(flags()[name]) for name in ("lame-duck-seconds", "drain-timeout-seconds")) + beside_the_flags()
    for service in services():
        assert service["spec"]["predictor"]["terminationGracePeriodSeconds"] > needed


def test_memory_is_enough_for_what_may_be_in_flight():
    # scale-to-zero.yaml has the same flags and limits.
    assert bytes_of(container()["resources"]["limits"]["memory"]) > least_memory(flags())


def test_every_flag_is_known_to_the_daemon():
    assert set(flags()) <= known_flags()


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_scale_to_zero_is_what_kserve_and_kubernetes_take(version):
    of_runtime, service = serverless()
    jsonschema.validate(of_runtime, RUNTIME)
    jsonschema.validate(service, SERVICE)
    check(pod_of(service, of_runtime), version)
    assert service["spec"]["predictor"]["minReplicas"] == 0
    assert service["metadata"]["annotations"]["serving.kserve.io/deploymentMode"] == "Serverless"
    assert service["spec"]["predictor"]["model"]["runtime"] == of_runtime["metadata"]["name"]
    (container_of_runtime,) = of_runtime["spec"]["containers"]
    asked = {container_of_runtime[f"{name}Probe"]["httpGet"]["port"] for name in ("readiness", "liveness")}
    assert asked == {8080}, "docs/operations.md and docs/deploying.md say that these probes ask the port of requests"


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_models_from_a_bucket_are_what_kserve_and_kubernetes_take(version):
    made = object_store()
    jsonschema.validate(made["InferenceService"], SERVICE)
    for resource in (made["Secret"], made["ServiceAccount"], pod_of(made["InferenceService"])):
        check(resource, version)


def test_models_from_a_bucket_are_those_of_the_example_but_for_the_bucket():
    made = object_store()
    ours, theirs = (copy.deepcopy(one["spec"]["predictor"]) for one in (made["InferenceService"], services()[0]))
    assert ours.pop("serviceAccountName") == made["ServiceAccount"]["metadata"]["name"]
    assert made["ServiceAccount"]["secrets"] == [{"name": made["Secret"]["metadata"]["name"]}]
    assert ours["model"].pop("storageUri").startswith("s3://") and theirs["model"].pop("storageUri").startswith("pvc://")
    assert ours == theirs


def test_the_secret_of_a_bucket_has_the_keys_that_kserve_reads():
    """KServe's page on S3: https://kserve.github.io/website/docs/model-serving/storage/providers/s3"""
    secret = object_store()["Secret"]
    assert set(secret["stringData"]) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    known = {f"serving.kserve.io/s3-{name}" for name in ("endpoint", "usehttps", "region", "useanoncredential")}
    assert set(secret["metadata"]["annotations"]) <= known


def test_scale_to_zero_has_nothing_that_knative_forbids():
    """Knative's validation rejects a pod with these fields, and a container with more than one port."""
    of_runtime, service = serverless()
    pod = pod_of(service, of_runtime)["spec"]
    assert not {"terminationGracePeriodSeconds", "initContainers", "automountServiceAccountToken"} & set(pod)
    (one,) = pod["containers"]
    assert "lifecycle" not in one and len(one["ports"]) == 1
    # Older releases know neither startup nor gRPC probes.
    assert "startupProbe" not in one and all("httpGet" in one[probe] for probe in ("readinessProbe", "livenessProbe"))
    assert {probe["httpGet"]["port"] for probe in (one["readinessProbe"], one["livenessProbe"])} == {one["ports"][0]["containerPort"]}


def test_scale_to_zero_is_the_other_runtime_but_for_the_drain_and_the_start():
    of_runtime, _ = serverless()
    theirs, ours = container(), of_runtime["spec"]["containers"][0]
    differ = lambda argument: argument.startswith(("--lame-duck-seconds", "--warm-up-seconds"))
    assert [one for one in ours["args"] if not differ(one)] == [one for one in theirs["args"] if not differ(one)]
    for same in ("image", "resources", "securityContext", "volumeMounts"):
        assert ours[same] == theirs[same], same
    assert {one.removeprefix("--").split("=")[0] for one in ours["args"]} <= known_flags()
