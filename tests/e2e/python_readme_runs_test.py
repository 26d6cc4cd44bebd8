"""Runs the examples of the Python client's README against a daemon, as they are printed there: only the daemon's address and its
token are replaced. python_readme_test.py checks their types."""

import asyncio
import contextlib
import inspect
import io
import pathlib
import re
import shutil
import textwrap

import grpc
import pytest
from PIL import Image
from explain_positions_test import gsa
from python_readme_test import README, SNIPPETS

import pictures
from certificates import Authority
from harness import DEMO_REPOSITORY, ROOT, Daemon
from tiny_models import write_model

ADDRESS = "saccade:8001"
SCENES = ROOT / "models" / "demo" / "scenes"
# Methods that take no options of a call.
PLAIN = {"models", "model", "stream"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Models by the names that the examples have."""
    root = tmp_path_factory.mktemp("models")
    for name, of_demo in (("rcnn", "detector"), ("sanet", "sanet_shapes")):
        shutil.copytree(DEMO_REPOSITORY / of_demo, root / name)
        config = root / name / "config.pbtxt"
        config.write_text(config.read_text().replace(f'name: "{of_demo}"', f'name: "{name}"'))
    write_model(root, "gsa", gsa("axial"), max_batch_size=4)
    return root


@pytest.fixture(scope="module")
def daemon(repository, tmp_path_factory):
    with Daemon(repository, log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


@pytest.fixture
def folder(tmp_path):
    shutil.copy(SCENES / "1.png", tmp_path / "street.jpg")
    (tmp_path / "cat.jpg").write_bytes(pictures.encoded(pictures.pixels(1, 90, 70), "JPEG"))
    return tmp_path


@pytest.fixture
def paths(folder):
    for number in (1, 2, 3):
        shutil.copy(SCENES / f"{number}.png", folder / f"scene {number}.png")
    return sorted(folder.glob("scene *.png"))


def example(words):
    """The one example that has these words."""
    (text,) = (text for text in SNIPPETS if words in text)
    return text


def run(text, folder, **names):
    """Runs an example as the body of a function, in the folder; returns its variables."""
    body = textwrap.indent(f"{text}\nreturn locals()\n", "    ")
    scope = dict(names)
    exec(compile(f"async def example():\n{body}", "README.md", "exec"), scope)
    with contextlib.chdir(folder):
        return asyncio.run(scope["example"]())


def test_every_example_is_run_here():
    """Each of the tests below takes one."""
    words = ["with saccade.Client(", "explain=", "client.stream(", "async with saccade.AsyncClient(", "client = saccade.Client("]
    assert sorted(example(one) for one in words) == sorted(SNIPPETS)


def test_the_first_example_prints_what_is_found(saccade, daemon, folder, capsys):
    made = run(example("with saccade.Client(").replace(ADDRESS, daemon.grpc_address), folder, saccade=saccade)
    found = made["answer"].detections
    assert len(found) >= 2
    expected = [line for one in found for line in (f"{one.label} {one.score} {one.box}", str(one.mask.pixels.sum()))]
    assert capsys.readouterr().out.splitlines() == expected
    assert all(one.score >= 0.5 and one.mask.pixels.sum() > 0 for one in found)


def test_the_maps_of_attention_are_pictures(saccade, daemon, folder):
    with saccade.Client(daemon.grpc_address) as client:
        answer = run(example("explain="), folder, saccade=saccade, client=client, pathlib=pathlib)["answer"]
    names = [f"{one.name}.png" for one in answer.explanation.maps]
    assert names and sorted(path.name for path in folder.glob("*.png")) == sorted(names)
    for name in names:
        picture = Image.open(io.BytesIO((folder / name).read_bytes()))
        assert picture.mode == "L" and max(picture.size) > 1  # a column or a row each


def test_a_stream_prints_answers_and_errors_in_order(saccade, daemon, folder, paths, capsys):
    broken = folder / "broken.png"
    broken.write_bytes(b"no picture")
    missing = folder / "missing.png"
    with saccade.Client(daemon.grpc_address) as client:
        run(example("client.stream("), folder, saccade=saccade, client=client,
            paths=[paths[0], broken, paths[1], missing, paths[2]])
    printed = capsys.readouterr().out.splitlines()
    for line, path in zip((printed[0], printed[2], printed[4]), paths, strict=True):
        assert re.fullmatch(rf"{re.escape(str(path))} [1-9]\d*", line), printed
    assert printed[1].startswith(f"{broken} ") and "encoded" in printed[1], printed
    assert printed[3].startswith(f"{missing} ") and "No such file" in printed[3], printed


def test_asyncio_gathers_the_same_answers(saccade, daemon, folder, paths):
    made = run(example("async with").replace(ADDRESS, daemon.grpc_address), folder, saccade=saccade, asyncio=asyncio, paths=paths)
    with saccade.Client(daemon.grpc_address) as client:
        expected = [client.classify("sanet", path).classes for path in paths]
    assert [answer.classes for answer in made["answers"]] == expected


def test_every_option_connects(saccade, repository, folder, tmp_path_factory):
    """Client certificates and a token, to a daemon that asks for both."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    server, me = authority.issue("server"), authority.issue("me")
    for name, file in (("ca.pem", authority.root), ("me.pem", me.certificate), ("me.key", me.key)):
        shutil.copy(file, folder / name)
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    token = "a" * 40
    tokens.write_text(f"{token} predict\n")
    tokens.chmod(0o600)
    flags = [f"--tls-cert={server.certificate}", f"--tls-key={server.key}", f"--tls-client-ca={authority.root}", "--plain-metrics",
             f"--token-file={tokens}"]
    credentials = grpc.ssl_channel_credentials(authority.root.read_bytes(), me.key.read_bytes(), me.certificate.read_bytes())
    with Daemon(repository, *flags, log_folder=folder, credentials=credentials) as running:
        running.await_ready()
        text = example("client = saccade.Client(").replace(ADDRESS, f"localhost:{running.grpc_port}")
        assert '"..."' in text
        with run(text.replace('"..."', repr(token)), folder, saccade=saccade)["client"] as client:
            assert client.detect("rcnn", folder / "street.jpg").detections
        with run(text.replace('"..."', repr("b" * 40)), folder, saccade=saccade)["client"] as client:
            with pytest.raises(saccade.Unauthenticated):
                client.detect("rcnn", folder / "street.jpg")
        without = re.sub(r"client_certificate=\S+ client_key=[^)]*", "", text)
        with run(without.replace('"..."', repr(token)), folder, saccade=saccade)["client"] as client:
            with pytest.raises(saccade.Unavailable):
                client.detect("rcnn", folder / "street.jpg", timeout=5)


def rows():
    """The methods of the README's table, with what they take."""
    found = re.findall(r"^\| `(.*?)`(?:, `(.*?)`)? \|", README, re.MULTILINE)
    calls = [call for row in found for call in row if call]
    return [(name, [one.strip() for one in given.split(",") if one.strip()])
            for name, given in (re.fullmatch(r"(\w+)\((.*)\)", call).groups() for call in calls)]


@pytest.mark.parametrize("name, given", rows(), ids=lambda value: value if isinstance(value, str) else "")
def test_the_table_has_the_methods_as_they_are(saccade, name, given):
    for kind in (saccade.Client, saccade.AsyncClient):
        taken = list(inspect.signature(getattr(kind, name)).parameters)[1:]
        of_call = set() if name in PLAIN else {"version", "version_label", "priority", "request_id", "timeout", "explain", "region", "tiles"}
        assert {one.removesuffix("=") for one in given} <= set(taken), taken
        shown = {one.removesuffix("=") for one in given} | of_call
        assert set(taken) <= shown | {"timeout"}, f"the README does not tell of {set(taken) - shown}"
        if name not in PLAIN:
            assert {"version", "priority", "request_id", "timeout"} <= set(taken)


def test_the_table_has_every_method(saccade):
    methods = {name for name, one in inspect.getmembers(saccade.Client, inspect.isfunction) if not name.startswith("_")}
    assert methods - {"close", "ask"} == {name for name, _ in rows()}
