"""Runs the init container's script, with the values of deploy/helm/values/models-s3.yaml, on a bucket of a local S3 server, and
the daemon on what it downloads."""

import os
import pathlib
import shutil
import subprocess
import sys

import boto3
import pytest
import yaml
from moto.server import ThreadedMotoServer

from helm_test import ROOT, pod, render
from loading import list_files, load, write_model

VALUES = yaml.safe_load((ROOT / "deploy/helm/values/models-s3.yaml").read_text())
SCRIPT = ROOT / "deploy/helm/saccade/files/fetch-models.sh"
BUCKET, _, PATH = VALUES["models"]["fetch"]["uri"].removeprefix("s3://").partition("/")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "secret"}
WEIGHTS = "shapes/1/weights.safetensors"


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


@pytest.fixture
def store(endpoint, tmp_path):
    """A bucket with a model whose folder has a SHA256SUMS, and the release's list of the files in models.sums."""
    keys = {"aws_access_key_id": "reader", "aws_secret_access_key": "secret"}
    bucket = boto3.resource("s3", endpoint_url=endpoint, region_name="eu-central-1", **keys).Bucket(BUCKET)
    bucket.create(CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    source = tmp_path / "source"
    write_model(source / "shapes")
    list_files(source / "shapes")
    for file in source.rglob("*"):
        if file.is_file():
            bucket.upload_file(str(file), f"{PATH}/{file.relative_to(source)}")
    # Another release is not part of this one.
    bucket.put_object(Key="release-8/shapes/config.pbtxt", Body=b"")
    yield bucket
    bucket.objects.delete()
    bucket.delete()


def list_release(bucket, folder):
    """Writes what models.fetch.checksums holds, of the files that are in the bucket now."""
    copy = folder / "listed"
    shutil.rmtree(copy, ignore_errors=True)
    for entry in bucket.objects.filter(Prefix=PATH + "/"):
        file = copy / pathlib.PurePosixPath(entry.key).relative_to(PATH)
        file.parent.mkdir(parents=True, exist_ok=True)
        bucket.download_file(entry.key, str(file))
    sums = folder / "SHA256SUMS"
    sums.write_bytes(subprocess.run("find . -type f -exec sha256sum {} +", shell=True, cwd=copy, check=True, capture_output=True).stdout)
    return sums


def fetch(endpoint, sums, target):
    """Runs the command of the manifest's init container with its variables, on the server of this test."""
    (container,) = pod(render(VALUES))["initContainers"]
    shell, script, source, _, _ = container["command"]
    assert script == "/scripts/fetch-models.sh"
    assert container["envFrom"] == [{"secretRef": {"name": "models-reader"}}]
    programs = os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ["PATH"]))
    assert shutil.which("rclone", path=programs), "rclone is not installed; ./dev setup tests brings it"
    target.mkdir(exist_ok=True)
    return subprocess.run([shell, SCRIPT, source, target, sums], capture_output=True, text=True, env={
        "PATH": programs, "HOME": "/nonexistent", **{one["name"]: one["value"] for one in container["env"]}, **CREDENTIALS,
        # The server of this test has no name of AWS; it takes paths.
        "RCLONE_S3_PROVIDER": "Other", "RCLONE_S3_ENDPOINT": endpoint})


def change_a_byte(bucket):
    bucket.put_object(Key=f"{PATH}/{WEIGHTS}", Body=b"\1")


def test_models_of_a_bucket_are_checked_and_served(endpoint, store, tmp_path):
    target = tmp_path / "target"
    done = fetch(endpoint, list_release(store, tmp_path), target)
    assert done.returncode == 0 and "3 files are as" in done.stdout, done.stderr
    assert (target / "shapes/config.pbtxt").read_bytes() == (tmp_path / "source/shapes/config.pbtxt").read_bytes()
    assert not load(f"--model-repository={target}", state=tmp_path / "state")


def test_a_changed_byte_keeps_the_pod_from_starting(endpoint, store, tmp_path):
    sums = list_release(store, tmp_path)
    change_a_byte(store)
    done = fetch(endpoint, sums, tmp_path / "target")
    assert done.returncode == 1 and f"./{WEIGHTS}: FAILED" in done.stderr, done.stderr


def test_the_daemon_refuses_a_changed_byte_by_the_models_own_list(endpoint, store, tmp_path):
    """As with KServe, whose initializer compares no checksums."""
    change_a_byte(store)
    target = tmp_path / "target"
    done = fetch(endpoint, list_release(store, tmp_path), target)
    assert done.returncode == 0, done.stderr
    assert WEIGHTS in load(f"--model-repository={target}", state=tmp_path / "state")


def test_a_bucket_without_the_release_is_named(endpoint, store, tmp_path):
    sums = list_release(store, tmp_path)
    store.objects.filter(Prefix=PATH + "/").delete()
    done = fetch(endpoint, sums, tmp_path / "target")
    assert done.returncode == 1 and f"{VALUES['models']['fetch']['uri']} holds no file" in done.stderr, done.stderr
