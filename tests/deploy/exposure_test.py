"""Tests what the daemon says to the flags of the image and of the manifests, with which it listens on all interfaces.
Without secrets the chart's flags are those of kustomize (helm_test.py)."""

import contextlib
import json
import os
import pathlib
import re
import ssl
import subprocess
import urllib.error
import urllib.request

import helm_python as helm
import pytest
import yaml

from monitoring import eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SECRETS = {"tls": {"secretName": "here-tls"}, "tokens": {"secretName": "callers"}}
MUTUAL = {"tls": {"secretName": "here-tls", "clientCASecretName": "here-tls"}}
CHART_VALUES = {"chart with secrets": SECRETS, "chart with clients' certificates": MUTUAL}


def conf_of_chart(values):
    with helm.Chart.load(DEPLOY / "helm" / "saccade") as chart:
        files = chart.render(values, name="saccade", namespace="vision")
    return yaml.safe_load(files["saccade/templates/configmap.yaml"])["data"]["saccaded.conf"]


@pytest.fixture
def secrets(tmp_path):
    """The content of the Secrets, in the folders where the chart mounts them."""
    for folder in ("saccade-tls", "saccade-tokens", "saccade-client-ca"):
        (tmp_path / folder).mkdir()
    tokens = tmp_path / "saccade-tokens" / "tokens"
    tokens.write_text("0123456789abcdef predict\n")
    tokens.chmod(0o600)
    made = [tmp_path / "saccade-tls" / name for name in ("tls.key", "tls.crt")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=here", "-keyout", made[0],
                    "-out", made[1], "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    # The certificate is self-signed, so it is also the authority of the only client.
    (tmp_path / "saccade-client-ca" / "ca.crt").write_bytes(made[1].read_bytes())
    return tmp_path


def command_of(name, folder):
    """The daemon's arguments, with paths replaced by files on this machine."""
    if name == "image":
        return json.loads(re.search(r"^CMD (\[.*\])$", (DEPLOY / "container/Dockerfile").read_text(), re.M)[1])
    if name == "KServe":
        runtime = yaml.safe_load((DEPLOY / "kserve/clusterservingruntime.yaml").read_text())
        return runtime["spec"]["containers"][0]["args"]
    conf = folder / "saccaded.conf"
    if name == "kustomize":
        conf.write_text((DEPLOY / "kustomize/base/saccaded.conf").read_text())
    else:
        conf.write_text(conf_of_chart(CHART_VALUES[name]).replace("/etc/", f"{folder}/"))
    return [f"--config={conf}"]


@contextlib.contextmanager
def running(name, secrets, insecure=False):
    """Runs the daemon as configured by `name`, on free ports; `insecure` is what users write to open it. Yields (process, first line of its output)."""
    ours = [f"--{port}-port=0" for port in ("grpc", "http", "metrics")]
    ours.append(f"--model-repository={ROOT / 'models/demo/repository'}")
    ours.append("--warm-up-seconds=0")
    replaced = {flag.partition("=")[0] for flag in ours}
    theirs = [flag for flag in command_of(name, secrets) if flag.partition("=")[0] not in replaced]
    daemon = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin" / "saccaded"
    with subprocess.Popen([daemon, *theirs, *ours], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **({"SACCADED_INSECURE": "true"} if insecure else {})}) as process:
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["image", "KServe", "kustomize", *CHART_VALUES])
def test_it_starts(name, secrets):
    insecure = name not in CHART_VALUES
    with running(name, secrets, insecure) as (process, line):
        process.kill()
        _, said = process.communicate(timeout=50)
    assert line.startswith("listening grpc=0.0.0.0:"), said
    assert ("has full access" in said) == insecure


@pytest.mark.parametrize("name", ["image", "KServe", "kustomize"])
def test_it_does_not_start_before_somebody_says_who_may_call(name, secrets):
    with running(name, secrets) as (process, line):
        _, said = process.communicate(timeout=50)
    assert (line, process.returncode) == ("", 2)
    for way in ("--token-file", "--tls-client-ca", "--insecure"):
        assert way in said


def answers(url, context=None):
    try:
        with urllib.request.urlopen(url, timeout=20, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("name", CHART_VALUES)
def test_a_kubelet_s_probes_are_answered(name, secrets):
    """A kubelet has no certificates and no tokens, and accepts any server certificate."""
    with helm.Chart.load(DEPLOY / "helm" / "saccade") as chart:
        files = chart.render(CHART_VALUES[name], name="saccade", namespace="vision")
    (pod,) = yaml.safe_load(files["saccade/templates/deployment.yaml"])["spec"]["template"]["spec"]["containers"]
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with running(name, secrets) as (_, line):
        ports = dict(re.findall(r"(\w+)=\S+?:(\d+)", line))
        for probe in ("startup", "readiness", "liveness"):
            asked = pod[f"{probe}Probe"]["httpGet"]
            url = f"{asked['scheme'].lower()}://127.0.0.1:{ports[asked['port']]}{asked['path']}"
            # The status is 503 while the models are loading.
            eventually(lambda url=url: answers(url, trusting) != 503, f"{probe} is not answered 503")
            assert answers(url, trusting) == 200, probe
        if name == "chart with clients' certificates":
            with pytest.raises(OSError, match="(?i)certificate|reset|EOF"):
                answers(f"https://127.0.0.1:{ports['http']}/v2/health/live", trusting)
            trusting.load_cert_chain(secrets / "saccade-tls" / "tls.crt", secrets / "saccade-tls" / "tls.key")
            assert answers(f"https://127.0.0.1:{ports['http']}/v2/health/live", trusting) == 200
