"""What every pod of the manifests has to keep to. `violations(pod_spec)` names what it does not."""

import re

FIXED = re.compile(r"^[^:@\s]+(:[0-9]+/[^:@\s]+)?(:(?!latest$)[\w][\w.-]*|@sha256:[0-9a-f]{64})$")


def _of_container(container, pod, is_init):
    confined = container.get("securityContext", {})
    wide = {**pod.get("securityContext", {}), **confined}
    resources = container.get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    yield "runs as root", wide.get("runAsNonRoot") is not True or wide.get("runAsUser", 1) == 0
    yield "may gain privileges", confined.get("allowPrivilegeEscalation") is not False or bool(confined.get("privileged"))
    yield "keeps capabilities", confined.get("capabilities", {}).get("drop") != ["ALL"] or "add" in confined["capabilities"]
    yield "writes to its root", confined.get("readOnlyRootFilesystem") is not True
    yield "has no seccomp profile", wide.get("seccompProfile", {}).get("type") != "RuntimeDefault"
    yield "has no limits", not {"cpu", "memory"} <= set(limits)
    # So that the pod is Guaranteed: it is evicted last, and the kubelet may give it cores of its own.
    yield "requests less than its limits", requests != limits
    yield "has no fixed image", not FIXED.match(container.get("image", ""))
    for probe in () if is_init else ("startupProbe", "readinessProbe", "livenessProbe"):
        yield f"has no {probe}", not {"grpc", "httpGet"} & set(container.get(probe, {}))


def violations(pod):
    found = [f"{container['name']} {what}" for kind in ("containers", "initContainers")
             for container in pod.get(kind, []) for what, is_so in _of_container(container, pod, kind == "initContainers")
             if is_so]
    found += [f"the pod shares {name} with the node" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    found += [f"the volume {volume['name']} is a folder of the node" for volume in pod["volumes"] if "hostPath" in volume]
    found += [f"the volume {volume['name']} has no limit" for volume in pod["volumes"]
              if "emptyDir" in volume and not (volume["emptyDir"] or {}).get("sizeLimit")]
    if pod.get("automountServiceAccountToken") is not False:
        found.append("the pod gets a token of the Kubernetes API")
    return found
