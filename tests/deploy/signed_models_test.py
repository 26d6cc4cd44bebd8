"""Runs the daemon with the flags that the chart sets for models.signingKey, on models that are signed and not."""

import subprocess

import pytest

from exposure_test import conf_of_chart
from loading import list_files, load, write_model


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@pytest.fixture
def files(tmp_path):
    """A model, two private keys, and the public key of one of them in the folder where the chart mounts it."""
    write_model(tmp_path / "models" / "shapes")
    (tmp_path / "saccade-signing-key").mkdir()
    for name in ("private.pem", "other.pem"):
        openssl("genpkey", "-algorithm", "ed25519", "-out", tmp_path / name)
    openssl("pkey", "-in", tmp_path / "private.pem", "-pubout", "-out", tmp_path / "saccade-signing-key" / "public.pem")
    return tmp_path


def sign(files, key="private.pem"):
    model = files / "models" / "shapes"
    list_files(model)
    openssl("pkeyutl", "-sign", "-inkey", files / key, "-rawin", "-in", model / "SHA256SUMS", "-out", model / "SHA256SUMS.sig")


def reason(files, **signing_key):
    """Why the daemon does not load the model, with the chart's flags; empty if it does."""
    conf = files / "saccaded.conf"
    values = {"models": {"path": f"{files}/models", "signingKey": {"configMapName": "publisher", **signing_key}}}
    conf.write_text(conf_of_chart({"insecure": True, **values}).replace("/etc/", f"{files}/"))
    return load(f"--config={conf}", state=files / "state")


def test_signed_models_are_loaded_and_others_are_not(files):
    assert "SHA256SUMS: is missing" in reason(files)
    sign(files, "other.pem")
    assert "shapes/SHA256SUMS.sig" in reason(files)
    sign(files)
    assert not reason(files)
    (files / "models/shapes/1/weights.safetensors").write_bytes(b"\0")
    assert "1/weights.safetensors" in reason(files)


def test_models_without_a_signature_are_loaded_if_none_is_required(files):
    assert not reason(files, required=False)
    sign(files, "other.pem")
    assert "shapes/SHA256SUMS.sig" in reason(files, required=False)


def test_links_and_names_with_spaces_are_listed(files):
    model = files / "models" / "shapes"
    (model / "notes of the author.txt").write_text("made in autumn\n")
    (model / "where.txt").symlink_to("notes of the author.txt")
    (model / "shared").mkdir()
    (model / "shared" / "1").symlink_to("../1")
    sign(files)
    assert not reason(files)
    (model / "notes of the author.txt").write_text("made in winter\n")
    assert "notes of the author.txt" in reason(files)
