"""Every pod of the chart with every file of values, of Kustomize and of KServe keeps to the policies."""

import copy

import pytest
import yaml

from deploy_test import COMPONENTS, KUSTOMIZE, ROOT, kustomize, only, with_component
from helm_test import VARIANTS, render
from kserve_test import pod_of, runtimes_and_services
from policies import violations

VALUES = {file.stem: yaml.safe_load(file.read_text()) for file in sorted((ROOT / "deploy/helm/values").glob("*.yaml"))}


def pod_in(resources):
    return only(resources, "Deployment")["spec"]["template"]["spec"]


@pytest.mark.parametrize("values", VALUES)
def test_pods_of_the_files_of_values(values):
    assert not violations(pod_in(render(VALUES[values])))


# 'everything' tries values that are allowed and not advised.
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "everything"])
def test_pods_of_the_chart(variant):
    assert not violations(pod_in(render(VARIANTS[variant])))


@pytest.mark.parametrize("component", COMPONENTS)
def test_pods_of_kustomize(component, tmp_path_factory):
    assert not violations(pod_in(with_component(component, tmp_path_factory)))
    assert not violations(pod_in(kustomize(KUSTOMIZE / "base")))


@pytest.mark.parametrize("overlay", ["cpu", "gpu"])
def test_pods_of_the_overlays(overlay):
    assert not violations(pod_in(kustomize(KUSTOMIZE / "overlays" / overlay)))


@pytest.mark.parametrize("overlay", ["demo", "dev"])
def test_pods_of_the_demo_models_may_use_idle_cores_and_no_more(overlay):
    """They are to fit on any node, so they are Burstable."""
    assert violations(pod_in(kustomize(KUSTOMIZE / "overlays" / overlay))) == ["saccaded requests less than its limits"]


def test_pods_of_kserve():
    for runtime, service in runtimes_and_services():
        # KServe decides about the token of the service account, and Knative allows no startup probe.
        allowed = {"the pod gets a token of the Kubernetes API"}
        if service["spec"]["predictor"]["minReplicas"] == 0:
            allowed.add("kserve-container has no startupProbe")
        assert set(violations(pod_of(service, runtime)["spec"])) == allowed


BREAKS = {
    "saccaded runs as root": lambda pod, one: pod["securityContext"].update(runAsNonRoot=False),
    "saccaded may gain privileges": lambda pod, one: one["securityContext"].update(allowPrivilegeEscalation=True),
    "saccaded keeps capabilities": lambda pod, one: one["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
    "saccaded writes to its root": lambda pod, one: one["securityContext"].pop("readOnlyRootFilesystem"),
    "saccaded has no seccomp profile": lambda pod, one: pod["securityContext"].pop("seccompProfile"),
    "saccaded has no limits": lambda pod, one: one["resources"].update(limits={"cpu": "1"}, requests={"cpu": "1"}),
    "saccaded requests less than its limits": lambda pod, one: one["resources"]["requests"].update(cpu="1"),
    "saccaded has no startupProbe": lambda pod, one: one.pop("startupProbe"),
    "saccaded has no readinessProbe": lambda pod, one: one.update(readinessProbe={"periodSeconds": 2}),
    "saccaded has no livenessProbe": lambda pod, one: one.pop("livenessProbe"),
    "the pod shares hostNetwork with the node": lambda pod, one: pod.update(hostNetwork=True),
    "the pod gets a token of the Kubernetes API": lambda pod, one: pod.pop("automountServiceAccountToken"),
    "the volume temporary has no limit": lambda pod, one: pod["volumes"][-1].update(emptyDir={}),
    "the volume temporary is a folder of the node":
        lambda pod, one: pod["volumes"].append({"name": "temporary", "hostPath": {"path": "/"}}),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_a_pod_that_breaks_a_policy_is_found(broken):
    pod = copy.deepcopy(pod_in(render()))
    BREAKS[broken](pod, pod["containers"][0])
    assert violations(pod) == [broken]


@pytest.mark.parametrize("image", ["saccade", "saccade:latest", "r.example:5000/saccade", "r.example/saccade:latest", ""])
def test_an_image_without_a_fixed_version_is_found(image):
    pod = copy.deepcopy(pod_in(render()))
    pod["containers"][0]["image"] = image
    assert violations(pod) == ["saccaded has no fixed image"]
