"""The commands of the Python package, given what they cannot use: each says so and ends, without a traceback."""

import os
import pathlib
import subprocess

import pytest

from harness import module_command

COMMANDS = {
    "bulk": ["in", "-o", "out", "--model", "any"],
    "evaluate": ["folder", "--dataset", "coco", "--model", "any"],
    "prove": ["answer"],
    "replay": ["folder"],
    "verify": ["model", "--pictures", "folder"],
}
WITH_TLS = [name for name in COMMANDS if name != "verify"]


@pytest.fixture
def command(saccade, tmp_path):
    """command(NAME, ...): runs the command in the test's folder. Returns its exit code and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(saccade.__file__).parents[1])}

    def run(name, *more):
        line = module_command("saccade", name, *COMMANDS[name], *more)
        ended = subprocess.run(line, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment)
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended.returncode, ended.stderr

    return run


@pytest.mark.parametrize("url", ["http://127.0.0.1:8001", "https://far", "127.0.0.1", "far:", ":8001", "8001", "far:80a", "far:0",
                                 "far:65536", "far:8001/", "ipv4:10.0.0.1:8001,10.0.0.2"])
def test_an_address_is_a_host_and_a_port(command, url):
    code, said = command("bulk", "--url", url)
    assert code == 2
    assert f"argument --url: is {url}; expected HOST:PORT, such as 127.0.0.1:8001, without http:// or https://; --tls connects" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_where_tls_is_asked_for(command, name):
    code, said = command(name, "--url", "https://far:8001")
    assert code == 2 and "argument --url: is https://far:8001; expected HOST:PORT" in said
    assert ("; --tls connects with TLS" in said) == (name in WITH_TLS)


@pytest.mark.parametrize("name", ["prove", "replay"])
def test_an_address_for_http_is_a_host_and_a_port(command, name):
    code, said = command(name, "--http-url", "http://far:8000")
    assert code == 2 and "argument --http-url: is http://far:8000; expected HOST:PORT" in said


@pytest.mark.parametrize("url", ["127.0.0.1:8001", "[::1]:8001", "dns:///saccade:8001", "ipv4:10.0.0.1:8001,10.0.0.2:8001", "unix:/run/saccade",
                                 "unix:///run/saccade.sock"])
def test_forms_of_grpc_are_addresses(saccade, url):
    from saccade.console import address

    assert address()(url) == url


def test_a_token_file_that_cannot_be_read_is_named(command):
    code, said = command("replay", "--token-file", "/nothing")
    assert code == 1 and "saccade replay: --token-file /nothing cannot be read: " in said


def test_a_token_is_not_sent_in_clear_text(command, tmp_path):
    (tmp_path / "token").write_text("secret")
    (tmp_path / "folder").mkdir()
    code, said = command("replay", "--url", "far:8001", "--token-file", "token")
    assert code == 1 and "would be sent in clear text" in said
