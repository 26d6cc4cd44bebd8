"""What image and manifests tell the daemon is enough for it to start, though it then listens beyond its machine. Without
secrets the chart's flags are those of kustomize (helm_test.py)."""

import json
import os
import pathlib
import re
import subprocess

import helm_python as helm
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SECRETS = {"tls": {"secretName": "here-tls"}, "tokens": {"secretName": "callers"}}


def conf_of_chart(values):
    with helm.Chart.load(DEPLOY / "helm" / "saccade") as chart:
        files = chart.render(values, name="saccade", namespace="vision")
    return yaml.safe_load(files["saccade/templates/configmap.yaml"])["data"]["saccaded.conf"]


@pytest.fixture
def secrets(tmp_path):
    """What the two Secrets hold, where the chart mounts them."""
    for folder in ("saccade-tls", "saccade-tokens"):
        (tmp_path / folder).mkdir()
    (tmp_path / "saccade-tokens" / "tokens").write_text("0123456789abcdef predict\n")
    made = [tmp_path / "saccade-tls" / name for name in ("tls.key", "tls.crt")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=here", "-keyout", made[0],
                    "-out", made[1]], check=True, capture_output=True)
    return tmp_path


def command_of(name, folder):
    """The daemon's arguments, with files where this machine has them."""
    if name == "image":
        return json.loads(re.search(r"^CMD (\[.*\])$", (DEPLOY / "container/Dockerfile").read_text(), re.M)[1])
    if name == "KServe":
        runtime = yaml.safe_load((DEPLOY / "kserve/clusterservingruntime.yaml").read_text())
        return runtime["spec"]["containers"][0]["args"]
    conf = folder / "saccaded.conf"
    if name == "kustomize":
        conf.write_text((DEPLOY / "kustomize/base/saccaded.conf").read_text())
    else:
        conf.write_text(conf_of_chart(SECRETS).replace("/etc/", f"{folder}/"))
    return [f"--config={conf}"]


@pytest.mark.parametrize("name", ["image", "KServe", "kustomize", "chart with secrets"])
def test_it_starts(name, secrets):
    ours = [f"--{port}-port=0" for port in ("grpc", "http", "metrics")]
    ours.append(f"--model-repository={ROOT / 'models/demo/repository'}")
    replaced = {flag.partition("=")[0] for flag in ours}
    theirs = [flag for flag in command_of(name, secrets) if flag.partition("=")[0] not in replaced]
    daemon = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin" / "saccaded"
    with subprocess.Popen([daemon, *theirs, *ours], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            line = running.stdout.readline()
        finally:
            running.kill()
        _, said = running.communicate(timeout=50)
    assert line.startswith("listening grpc=0.0.0.0:"), said
    assert ("may do everything" in said) == (name != "chart with secrets")
