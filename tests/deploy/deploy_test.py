"""Checks that the manifests build, validate, and agree with each other, with the image and with the daemon's flags."""

import functools
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import jsonschema
import kubernetes_validate
import pytest

from drain_time import beside_the_flags
from manifests import check, parse, parse_all

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUSTOMIZE = ROOT / "deploy" / "kustomize"
KUBECTL = pathlib.Path(sys.executable).parent / "kubectl"
# The oldest release that has all features used here, the first with image volumes, and up to the newest that the schemas cover.
KUBERNETES_VERSIONS = ("1.30", "1.35", "1.36", "1.37")
COMPONENTS = ("demand-autoscaling", "fleet", "keda", "traces")
FOLDERS = ("base", "overlays/cpu", "overlays/demo", "overlays/gpu")
TREES = (*FOLDERS, *(f"base with {name}" for name in COMPONENTS))
GPU = "nvidia.com/gpu"


@functools.cache
def text_of(folder):
    made = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert not made.stderr, f"kustomize warns: {made.stderr}"
    return made.stdout


def kustomize(folder):
    return parse_all(text_of(folder))


@pytest.fixture(scope="module", params=TREES)
def resources(request, tmp_path_factory):
    if request.param in FOLDERS:
        return kustomize(KUSTOMIZE / request.param)
    return with_component(request.param.removeprefix("base with "), tmp_path_factory)


def with_component(name, tmp_path_factory, folder="base", more="", beside=""):
    """A user's kustomization of the folder with the component, with more lines, and with the resources `beside` of the user."""
    # Kustomize accepts components only from beside a kustomization, hence a copy of the tree with one more folder.
    tree = tmp_path_factory.mktemp("kustomize")
    for part in ("base", "components", "overlays"):
        (tree / part).symlink_to(KUSTOMIZE / part)
    (tree / "user").mkdir()
    resources = [f"../{folder}"]
    if beside:
        resources.append("beside.yaml")
        (tree / "user" / "beside.yaml").write_text(beside)
    (tree / "user" / "kustomization.yaml").write_text(
        f"resources: [{', '.join(resources)}]\ncomponents: [../components/{name}]\n{more}")
    return kustomize(tree / "user")


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    return with_component("traces", tmp_path_factory)


def test_every_folder_is_built():
    assert {folder.name for folder in (KUSTOMIZE / "components").iterdir()} == set(COMPONENTS)
    # dev has tests of its own below: it has none of what keeps a service up.
    overlays = {f"overlays/{folder.name}" for folder in (KUSTOMIZE / "overlays").iterdir()}
    assert overlays == {*FOLDERS, "overlays/dev"} - {"base"}


def test_demand_autoscaling_follows_the_demand_alone(tmp_path_factory):
    built = with_component("demand-autoscaling", tmp_path_factory)
    metrics = only(built, "HorizontalPodAutoscaler")["spec"]["metrics"]
    rules = (KUSTOMIZE / "components/demand-autoscaling/kustomization.yaml").read_text()
    assert [metric["type"] for metric in metrics] == ["Pods", "Pods"]
    assert [metric["pods"]["metric"]["name"] for metric in metrics] == re.findall(r"name: {as: (\w+)}", rules)


def test_keda_takes_the_autoscalers_place(tmp_path_factory):
    base, built = kustomize(KUSTOMIZE / "base"), with_component("keda", tmp_path_factory)
    assert not of_kind(built, "HorizontalPodAutoscaler")
    before, scaled = only(base, "HorizontalPodAutoscaler")["spec"], only(built, "ScaledObject")["spec"]
    assert scaled["scaleTargetRef"]["name"] == before["scaleTargetRef"]["name"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (before["minReplicas"], before["maxReplicas"])
    assert scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == before["behavior"]


def check_that_keda_scales(built, name):
    """Checks that KEDA scales the one Deployment, which has this name, by its own pods alone."""
    scaled = only(built, "ScaledObject")
    assert scaled["metadata"]["name"] == scaled["spec"]["scaleTargetRef"]["name"] == only(built, "Deployment")["metadata"]["name"] == name
    own, *others = (f"{deployment}-5d9c8b7f6f-x2x4z" for deployment in dict.fromkeys((
        name, "saccade", "saccade-gpu", "saccade-dev", "saccade-demo", "my-saccade-gpu-again", "other")))
    for trigger in scaled["spec"]["triggers"]:
        (pods,) = re.findall(r'pod=~"([^"]+)"', trigger["metadata"]["query"])
        assert [pod for pod in (own, *others) if re.fullmatch(pods, pod)] == [own]
    assert not of_kind(built, "HorizontalPodAutoscaler")


# Names beside the component, with its transformer.
AGAIN = "nameSuffix: -again\nnamePrefix: my-\ntransformers: [../components/keda/names]\n"
# The user's own Deployment, in the same kustomization.
FRONT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: front-scaler}
spec: {scaleTargetRef: {name: front}, triggers: [{type: prometheus, metadata: {query: up}}]}
"""


@pytest.mark.parametrize("folder, more, name", [
    ("base", "", "saccade"), ("overlays/cpu", "", "saccade"), ("overlays/gpu", "", "saccade-gpu"), ("overlays/demo", "", "saccade-demo"),
    ("base", AGAIN, "my-saccade-again"), ("overlays/gpu", AGAIN, "my-saccade-gpu-again"),
])  # fmt: skip
def test_keda_scales_the_deployment_that_is_there(folder, more, name, tmp_path_factory):
    check_that_keda_scales(with_component("keda", tmp_path_factory, folder, more), name)


@pytest.mark.parametrize("more, before, after", [("", "", ""), (AGAIN, "my-", "-again")], ids=["as they are", "renamed"])
def test_keda_leaves_what_else_an_overlay_scales_alone(more, before, after, tmp_path_factory):
    built = with_component("keda", tmp_path_factory, more=more, beside=FRONT)
    (own,) = [one for one in of_kind(built, "ScaledObject") if one["metadata"]["name"] == f"{before}front-scaler{after}"]
    assert own["spec"] == {"scaleTargetRef": {"name": f"{before}front{after}"},
                           "triggers": [{"type": "prometheus", "metadata": {"query": "up"}}]}
    ours = [one for one in built if not one["metadata"]["name"].startswith(f"{before}front")]
    check_that_keda_scales(ours, f"{before}saccade{after}")


@pytest.mark.parametrize("overlay, name", [("cpu", "saccade"), ("gpu", "saccade-gpu"), ("demo", "saccade-demo")])
def test_keda_may_be_named_in_an_overlay_itself(overlay, name, tmp_path):
    tree = shutil.copytree(KUSTOMIZE, tmp_path / "kustomize")
    with (tree / "overlays" / overlay / "kustomization.yaml").open("a") as file:
        file.write("components: [../../components/keda]\n")
    check_that_keda_scales(kustomize(tree / "overlays" / overlay), name)


def of_kind(resources, kind):
    return [resource for resource in resources if resource["kind"] == kind]


def only(resources, kind):
    found = of_kind(resources, kind)
    assert len(found) == 1, f"{len(found)} of kind {kind}"
    return found[0]


def scaler(resources):
    (found,) = of_kind(resources, "HorizontalPodAutoscaler") + of_kind(resources, "ScaledObject")
    return found["spec"]


def pod(resources):
    return only(resources, "Deployment")["spec"]["template"]


def container(resources):
    (found,) = pod(resources)["spec"]["containers"]
    return found


def flags(resources):
    """Parses the daemon's configuration file: name=value lines; '#' begins a comment."""
    lines = only(resources, "ConfigMap")["data"]["saccaded.conf"].splitlines()
    return dict(line.split("=", 1) for line in map(str.strip, lines) if line and not line.startswith("#"))


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_resource_fits_its_schema(resources, version):
    for resource in resources:
        check(resource, version)


def test_a_misspelt_field_is_found(resources):
    broken = {**only(resources, "Service"), "spek": {}}
    with pytest.raises(jsonschema.ValidationError):
        check(broken, KUBERNETES_VERSIONS[0])


def test_the_page_says_which_schemas_the_manifests_were_checked_against():
    covered = kubernetes_validate.latest_version()
    assert covered.startswith(KUBERNETES_VERSIONS[-1] + "."), "the newest release with schemas is checked, too"
    page = " ".join((ROOT / "docs/deploying.md").read_text().split())
    *first, last = KUBERNETES_VERSIONS
    assert f"the schemas of Kubernetes {', '.join(first)} and {last}" in page


def test_everything_that_is_promised_is_there(resources):
    kinds = {resource["kind"] for resource in resources}
    assert kinds >= {
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }
    assert len(kinds & {"HorizontalPodAutoscaler", "ScaledObject"}) == 1


def test_ports_agree_everywhere(resources):
    set_by_flags = {name: int(flags(resources)[f"{name}-port"]) for name in ("grpc", "http", "metrics")}
    opened = {port["name"]: port["containerPort"] for port in container(resources)["ports"]}
    assert opened == set_by_flags
    service = only(resources, "Service")
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == set_by_flags
    for port in service["spec"]["ports"]:
        assert port["targetPort"] == port["name"]
    # On the other ports a flood of requests may use up all connections and bytes, and a pod that cannot answer is ended.
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container(resources)[name]
        asked = probe["grpc"]["port"] if "grpc" in probe else opened[probe["httpGet"]["port"]]
        assert asked == set_by_flags["metrics"], name


def let_out(policy):
    """Maps (port, protocol) to the peers of a NetworkPolicy's egress rules; None stands for every peer."""
    return {(port["port"], port["protocol"]): rule.get("to") for rule in policy.get("egress", []) for port in rule["ports"]}


def test_only_the_ports_are_open_and_nothing_is_let_out_but_traces(resources):
    policy = only(resources, "NetworkPolicy")["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    traces = "OTEL_EXPORTER_OTLP_ENDPOINT" in {entry["name"] for entry in container(resources).get("env", [])}
    assert bool(policy.get("egress")) == traces
    opened = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    assert opened == {port["name"] for port in container(resources)["ports"]}
    assert all(rule["from"] for rule in policy["ingress"]), "nobody is admitted without being named"


def test_only_the_demo_is_open(resources):
    demo = flags(resources)["model-repository"] == "/opt/saccade/demo"
    assert flags(resources).get("insecure") == ("true" if demo else None)


@pytest.mark.parametrize("overlay", ["cpu", "gpu"])
def test_the_secrets_are_where_the_flags_say(overlay):
    built = kustomize(KUSTOMIZE / "overlays" / overlay)
    mounts = {mount["mountPath"]: mount for mount in container(built)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(built)["spec"]["volumes"]}
    for flag, secret in (("tls-cert", "saccade-tls"), ("tls-key", "saccade-tls"), ("token-file", "saccade-tokens")):
        mount = mounts[flags(built)[flag].rpartition("/")[0]]
        assert mount["readOnly"] and volumes[mount["name"]]["secret"] == {"secretName": secret}
    # The probes and Prometheus speak plainly, and only on that port.
    assert flags(built)["plain-metrics"] == "true"
    assert {port["name"]: port["appProtocol"] for port in only(built, "Service")["spec"]["ports"]} == {
        "grpc": "https", "http": "https", "metrics": "http"}


def test_the_developers_overlay_is_one_open_pod_of_a_fresh_image():
    built = kustomize(KUSTOMIZE / "overlays/dev")
    for version in KUBERNETES_VERSIONS:
        for resource in built:
            check(resource, version)
    assert {resource["kind"] for resource in built} == {"ConfigMap", "Deployment", "NetworkPolicy", "Service", "ServiceAccount"}
    deployment = only(built, "Deployment")["spec"]
    assert deployment["replicas"] == 1 and deployment["strategy"] == {"type": "Recreate"}
    assert container(built)["image"] == "saccade:dev"
    command = (KUSTOMIZE / "overlays/dev/kustomization.yaml").read_text()
    assert "docker build -t saccade:dev -f deploy/container/Dockerfile ." in command
    assert set(flags(built)) <= known_flags()
    for test in (test_ports_agree_everywhere, test_only_the_demo_is_open, test_the_model_repository_is_mounted_or_baked_in,
                 test_there_is_time_to_drain, test_pods_are_confined, test_the_only_places_to_write_to_are_bounded,
                 test_memory_is_enough_for_what_may_be_in_flight):
        test(built)


def test_traces_are_let_out_to_where_they_are_sent(traced):
    (endpoint,) = [entry["value"] for entry in container(traced).get("env", []) if entry["name"] == "OTEL_EXPORTER_OTLP_ENDPOINT"]
    url = urllib.parse.urlsplit(endpoint)
    out = let_out(only(traced, "NetworkPolicy")["spec"])
    assert set(out) == {(url.port, "TCP"), (53, "UDP"), (53, "TCP")}
    service, namespace = url.hostname.split(".")
    (peer,) = out[(url.port, "TCP")]
    assert service and peer == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    assert all(out[(53, protocol)] for protocol in ("UDP", "TCP")), "names are asked of the cluster's own server"


def test_pods_are_spread_over_nodes(resources):
    spreads = {one["topologyKey"]: one for one in pod(resources)["spec"]["topologySpreadConstraints"]}
    assert spreads["kubernetes.io/hostname"]["whenUnsatisfiable"] == "ScheduleAnyway"
    if len(spreads) > 1:
        zones = spreads["topology.kubernetes.io/zone"]
        # Otherwise a zone that is lost would count as empty, and its pods could run nowhere.
        assert zones["whenUnsatisfiable"] == "DoNotSchedule" and zones["nodeTaintsPolicy"] == "Honor"


def test_liveness_is_not_the_health_that_a_drain_turns_off(resources):
    def asked(probe):
        return probe["httpGet"]["path"] if "httpGet" in probe else probe["grpc"].get("service")

    probes = [container(resources)[f"{name}Probe"] for name in ("startup", "readiness", "liveness")]
    assert [asked(probe) for probe in probes] in (
        [None, None, "liveness"], ["/v2/health/ready", "/v2/health/ready", "/v2/health/live"])


def test_there_is_time_to_drain(resources):
    command = container(resources)["lifecycle"]["preStop"]["exec"]["command"]
    assert command[0] == "sleep"
    needed = int(command[1]) + sum(
        int(flags(resources)[name]) for name in ("lame-duck-seconds", "drain-timeout-seconds")
    ) + beside_the_flags()
    assert pod(resources)["spec"]["terminationGracePeriodSeconds"] > needed


def load_deadline(given):
    """Seconds after which the daemon is ready without all of its models."""
    (default,) = re.findall(r"^\| `--load-deadline-seconds` \| `S` \| (\d+) \|",
                            (ROOT / "docs/reference/flags.md").read_text(), re.MULTILINE)
    return int(given.get("load-deadline-seconds", default))


def test_the_startup_probe_allows_the_models_their_time(resources):
    probe = container(resources)["startupProbe"]
    assert 0 < load_deadline(flags(resources)) + 30 <= probe["periodSeconds"] * probe["failureThreshold"]


def test_selectors_match_labels(resources):
    labels = pod(resources)["metadata"]["labels"]

    def selects(selector, of=labels):
        assert selector, "an empty selector takes every pod"
        return selector.items() <= of.items()

    assert selects(only(resources, "Deployment")["spec"]["selector"]["matchLabels"])
    assert selects(only(resources, "Service")["spec"]["selector"])
    assert selects(only(resources, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"])
    assert selects(only(resources, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"])
    for spread in pod(resources)["spec"]["topologySpreadConstraints"]:
        assert selects(spread["labelSelector"]["matchLabels"])
    service = only(resources, "Service")
    for monitor in of_kind(resources, "ServiceMonitor"):
        assert selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


def test_two_instances_do_not_select_each_others_pods():
    # The overlay cpu has the base's names: it is the base, guarded.
    trees = [kustomize(KUSTOMIZE / tree) for tree in ("base", "overlays/demo", "overlays/dev", "overlays/gpu")]
    for one, other in itertools.permutations(trees, 2):
        selector = only(one, "Service")["spec"]["selector"]
        assert not selector.items() <= pod(other)["metadata"]["labels"].items()
        names = lambda built: {(resource["kind"], resource["metadata"]["name"]) for resource in built}
        assert not names(one) & names(other)


def test_recommended_labels(resources):
    version = re.search(r"project\(saccade VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    for resource in resources:
        labels = resource["metadata"]["labels"]
        for key in ("name", "instance", "version", "component", "part-of", "managed-by"):
            assert labels.get(f"app.kubernetes.io/{key}"), f"{resource['kind']} has no {key}"
        assert labels["app.kubernetes.io/version"] == version
    image = "saccade-cuda" if GPU in container(resources)["resources"]["limits"] else "saccade"
    assert container(resources)["image"] == f"{image}:{version}"


def test_image_tags_are_fixed(resources):
    images = [entry["image"] for entry in pod(resources)["spec"]["containers"]]
    text = (ROOT / "deploy/container/Dockerfile").read_text()
    # By arguments, so that a build can name digests; container_test.py tests that.
    of_arguments = dict(re.findall(r"^ARG (\w+)=(\S+)", text, re.MULTILINE))
    images += [of_arguments[name] for name in re.findall(r"^FROM \$(\w+)(?: AS \w+)?$", text, re.MULTILINE)]
    assert len(images) == 1 + len(re.findall(r"^FROM ", text, re.MULTILINE))
    for image in images:
        _, colon, tag = image.rpartition(":")
        assert colon and tag and tag != "latest", f"{image} has no fixed tag"


def test_references_resolve(resources):
    deployment = only(resources, "Deployment")
    # KEDA's default kind is a Deployment.
    target = {"apiVersion": "apps/v1", "kind": "Deployment", **scaler(resources)["scaleTargetRef"]}
    assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"]}
    assert "replicas" not in deployment["spec"], "the autoscaler owns the number of replicas"
    spec = pod(resources)["spec"]
    assert spec["serviceAccountName"] == only(resources, "ServiceAccount")["metadata"]["name"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["config"]["configMap"]["name"] == only(resources, "ConfigMap")["metadata"]["name"]
    mounts = {mount["name"]: mount for mount in container(resources)["volumeMounts"]}
    assert set(mounts) == set(volumes)
    assert container(resources)["args"] == [f"--config={mounts['config']['mountPath']}/saccaded.conf"]


def test_the_model_repository_is_mounted_or_baked_in(resources):
    repository = flags(resources)["model-repository"]
    mounts = {mount["mountPath"]: mount for mount in container(resources)["volumeMounts"]}
    if repository in mounts:
        assert mounts[repository]["readOnly"]
    else:
        copied = re.findall(r"^COPY models/demo/repository (\S+)$", dockerfile(), re.MULTILINE)
        assert copied == [repository]


def test_pods_are_confined(resources):
    spec = pod(resources)["spec"]
    assert only(resources, "ServiceAccount")["automountServiceAccountToken"] is False
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert f"USER {spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}\n" in dockerfile()
    confined = container(resources)["securityContext"]
    assert confined["readOnlyRootFilesystem"] is True
    assert confined["allowPrivilegeEscalation"] is False
    assert confined["capabilities"] == {"drop": ["ALL"]}
    resources_of_container = container(resources)["resources"]
    for what in ("requests", "limits"):
        assert set(resources_of_container[what]) - {GPU} == {"cpu", "memory"}


def state_folder():
    """Where the image keeps what was measured. Its root is read-only in a pod, so a volume has to be there."""
    (folder,) = re.findall(r"\bSACCADED_STATE_FOLDER=(\S+)", dockerfile())
    return folder


def test_the_only_places_to_write_to_are_bounded(resources):
    """LibTorch unpacks packages of AOTInductor to /tmp, regardless of TMPDIR."""
    volumes = {volume["name"]: volume for volume in pod(resources)["spec"]["volumes"]}
    writable = {mount["mountPath"]: volumes[mount["name"]].get("emptyDir")
                for mount in container(resources)["volumeMounts"] if not mount.get("readOnly")}
    # The volumes are on the node's disk, where programs may be executed, and not in memory reserved for requests.
    assert writable == {"/tmp": {"sizeLimit": "1Gi"}, state_folder(): {"sizeLimit": "64Mi"}}


def bytes_of(quantity):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()
    return int(number) << {"Mi": 20, "Gi": 30}[unit]


def number_in(file, pattern):
    (found,) = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    return int(found.replace(",", ""))


def health_bytes(given):
    """Memory that calls of health may hold beside --max-inflight-bytes."""
    limits = "docs/reference/limits.md"
    checks = number_in(limits, r"^\| Open checks while .* over gRPC and over REST each \| ([\d,]+) \|")
    each = number_in(limits, r"^\| Memory of these checks, and of open watches, on average \| (\d+) KiB \|") << 10
    default = number_in("docs/reference/flags.md", r"^\| `--max-health-watches` \| `N` \| ([\d,]+) \|")
    return (2 * checks + int(given.get("max-health-watches", default))) * each


def bytes_kept_by_workers():
    """Memory that idle decode workers keep, unless there are very many."""
    return number_in("server/lifecycle/decoder_setup.cc", r"\bkKeptBytes = uint64_t\{(\d+)\} << 20;") << 20


def least_memory(given):
    """A limit that leaves nothing for weights, as docs/deploying.md counts."""
    held = int(given["max-inflight-bytes"]) + int(given["max-decoded-bytes"]) + health_bytes(given)
    return 1.3 * held + bytes_kept_by_workers()


def test_memory_is_enough_for_what_may_be_in_flight(resources):
    assert bytes_of(container(resources)["resources"]["limits"]["memory"]) > least_memory(flags(resources))


def test_the_guide_counts_the_memory_of_the_chart():
    values = parse((ROOT / "deploy" / "helm" / "saccade" / "values.yaml").read_text())
    given = values["config"]
    limit, least = bytes_of(values["resources"]["limits"]["memory"]), least_memory(given)
    held = [given["max-inflight-bytes"], given["max-decoded-bytes"], health_bytes(given)]
    guide = (ROOT / "docs" / "deploying.md").read_text().partition("**Memory.**")[2].partition("**Size.**")[0]
    counted = [*held, 0.3 * sum(held), bytes_kept_by_workers(), limit - least]
    assert re.findall(r"\| (\d+) \|$", guide, re.MULTILINE) == [f"{one / (1 << 20):.0f}" for one in counted]
    said = f"`--max-decoded-bytes` and {held[2] >> 20} MiB, and add {bytes_kept_by_workers() >> 20} MiB"
    assert said in " ".join(guide.split())
    assert f"and {held[2] >> 20} MiB for health calls, with {bytes_kept_by_workers() >> 20} MiB for decode" in (
        ROOT / "deploy" / "helm" / "saccade" / "values.yaml").read_text()


def test_saccade_tune_counts_memory_as_the_guide_does():
    values = parse((ROOT / "deploy" / "helm" / "saccade" / "values.yaml").read_text())["config"]
    advice = "client/cli/tune/advice.cc"
    assert number_in(advice, r"\bkMaxInflightBytes = (\d+);") == values["max-inflight-bytes"]
    assert number_in("client/cli/tune/advice.h", r"\bkMaxDecodedBytes = (\d+);") == values["max-decoded-bytes"]
    assert number_in(advice, r"\bkHealthBytes = (\d+) \* kMebibyte;") << 20 == health_bytes(values)
    assert number_in(advice, r"\bkKeptByWorkers = (\d+) \* kMebibyte;") << 20 == bytes_kept_by_workers()


def test_a_rollout_and_an_eviction_leave_capacity(resources):
    rolling = only(resources, "Deployment")["spec"]["strategy"]["rollingUpdate"]
    evicted = only(resources, "PodDisruptionBudget")["spec"]["maxUnavailable"]
    many = (scaler(resources).get("maxReplicas") or scaler(resources)["maxReplicaCount"]) > 10
    # A tenth at a time for many, one at a time for few.
    assert (rolling, evicted) == ({"maxUnavailable": 0, "maxSurge": "10%" if many else 1}, "10%" if many else 1)
    assert (scaler(resources).get("minReplicas") or scaler(resources)["minReplicaCount"]) >= 2


def test_clients_can_see_every_pod(resources):
    assert only(resources, "Service")["spec"]["clusterIP"] == "None"


@functools.cache
def known_flags():
    daemon = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin" / "saccaded"
    help_text = subprocess.run([daemon, "--help"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"--([a-z][a-z-]+)", help_text))


def test_every_flag_is_known_to_the_daemon(resources):
    assert set(flags(resources)) <= known_flags()


def traces_variables():
    """The variables that docs/observability.md lists for the daemon."""
    table = (ROOT / "docs" / "observability.md").read_text().partition("## Traces")[2]
    return set(re.findall(r"OTEL_[A-Z_]*[A-Z]", table))


def test_every_variable_is_known_to_the_daemon(resources):
    variables = {entry["name"] for entry in container(resources).get("env", [])}
    flags_ = {f"SACCADED_{flag.upper().replace('-', '_')}" for flag in known_flags()}
    assert variables <= flags_ | traces_variables()


def dockerfile():
    return (ROOT / "deploy" / "container" / "Dockerfile").read_text()
