"""What the Dockerfile names exists, and the image gets every library that the programs load.

No container engine is needed: the runtime stage is checked against the built daemon on this machine.
"""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "container" / "Dockerfile"
# The operators, and LibTorch from its wheel; everything else comes from Debian.
COLLECTED = {
    "libsaccade_kernels.so",
    "libtorch_cpu.so",
    "libc10.so",
    "libgomp.so.1",
    "libcupti.so.13",
    "libcudart.so.13",
}
# Opened when a package of AOTInductor is loaded, not before.
OPENED_LATER = {"libsaccade_torch_stand_in.so"}


# Package names differ between releases; the image is Debian 12, whatever the tests run on.
debian_12 = pytest.mark.skipif(
    platform.freedesktop_os_release().get("VERSION_CODENAME") != "bookworm",
    reason="the image's packages are Debian 12's",
)


def instructions():
    """(instruction, arguments) of the Dockerfile, its continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    text = re.sub(r"\\\n\s*", " ", text)
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def runtime_packages():
    (run,) = [args for name, args in instructions() if name == "RUN" and "apt-get install" in args]
    arguments = re.search(r"apt-get install (.*?)(&&|$)", run)[1]
    return [word for word in arguments.split() if not word.startswith("-")]


def output(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """What collect-runtime.sh gathers from the built daemon."""
    target = tmp_path_factory.mktemp("runtime")
    output(ROOT / "deploy/container/collect-runtime.sh", os.environ["SACCADE_BUILD_DIR"], target)
    return target


def programs(runtime):
    return [runtime / "bin" / name for name in ("saccaded", "saccade")]


@pytest.fixture(scope="module")
def loaded(runtime):
    """Name -> path of every library that the collected programs load, with the collected ones found first."""
    listing = output("ldd", *programs(runtime), env={**os.environ, "LD_LIBRARY_PATH": str(runtime / "lib")})
    assert "not found" not in listing, listing
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", listing, re.MULTILINE))


def test_hadolint_is_content():
    hadolint = pathlib.Path(sys.executable).parent / "hadolint"
    checked = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_command_that_runs_it_has_the_same_places_as_a_pod():
    run = re.search(r"^#   docker run (.*)$", DOCKERFILE.read_text(), re.MULTILINE)[1].split()
    assert "--read-only" in run
    # Docker's own default is noexec, and half of the machine's memory.
    assert run[run.index("--tmpfs") + 1] == "/tmp:exec,size=1g"


def test_copied_paths_exist_and_are_not_ignored():
    ignored = [
        line.strip()
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    copied = [args.split()[:-1] for name, args in instructions() if name == "COPY" and "--from" not in args]
    assert len(copied) == 4
    for source in sum(copied, []):
        assert (ROOT / source).exists(), f"COPY names {source}, which is not there"
        assert source.split("/")[0] not in ignored
    for needed in ("dev", "CMakeLists.txt", "kernels", "models", "proto", "server", "client", "deploy", "tests"):
        assert needed not in ignored


@debian_12
def test_runtime_packages_exist():
    for package in runtime_packages():
        known = subprocess.run(["apt-cache", "show", package], capture_output=True, text=True)
        assert known.returncode == 0, f"no Debian package {package}"


def test_nothing_but_these_libraries_is_collected(runtime):
    assert {path.name for path in (runtime / "lib").iterdir()} == COLLECTED | OPENED_LATER


def test_the_collected_programs_are_whole(runtime, loaded):
    for name in COLLECTED:
        assert pathlib.Path(loaded[name]).parent == runtime / "lib", f"{name} comes from {loaded[name]}"
    elsewhere = [path for path in loaded.values() if not re.match(rf"/(usr/)?lib/|{re.escape(str(runtime))}/", path)]
    assert not elsewhere


def version():
    return re.search(r"project\(saccade VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


@pytest.fixture(scope="module")
def bill(runtime):
    """The bill of materials, as the image's would be if it had this machine's packages."""
    return json.loads(output("bash", ROOT / "deploy/container/sbom.sh", version(), runtime / "wheels"))


def test_the_bill_of_materials_has_all_packages_and_wheels(bill, runtime):
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"] == {"type": "application", "name": "saccade", "version": version()}
    known = {part["name"]: part for part in bill["components"]}
    installed = output("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n").splitlines()
    for status, name, its_version in (line.split() for line in installed):
        if status == "installed":
            assert known[name]["version"] == its_version and known[name]["purl"].startswith("pkg:deb/")
    # Of the wheels it names those that libraries are taken from, as they are pinned.
    pinned = dict(re.findall(r"([a-z-]+)==([0-9.]+)", re.search(r"torch_packages=\((.*)\)", (ROOT / "dev").read_text())[1]))
    wheels = {part["name"]: part["version"] for part in bill["components"] if part["purl"].startswith("pkg:pypi/")}
    assert {name: of.split("+")[0] for name, of in wheels.items()} == pinned


def test_the_image_s_bill_is_of_this_version():
    (run,) = [args for name, args in instructions() if name == "RUN" and "sbom.sh" in args]
    assert f"sbom.sh {version()} " in run


def test_the_bill_is_of_what_was_collected(tmp_path):
    refused = subprocess.run(["bash", ROOT / "deploy/container/sbom.sh", "1.0", tmp_path / "none"], capture_output=True, text=True)
    assert refused.returncode == 2 and "usage" in refused.stderr


def test_packages_of_aot_inductor_find_their_libtorch(runtime):
    stand_in = runtime / "lib" / "libsaccade_torch_stand_in.so"
    dynamic = output("readelf", "-d", stand_in)
    assert "soname: [libtorch.so]" in dynamic and "cuda" not in dynamic


def owner(path):
    """The Debian package of a library; the archive knows it under /lib or under /usr/lib."""
    names = {path, os.path.realpath(path)}
    names |= {name.removeprefix("/usr") for name in names} | {f"/usr{name}" for name in names}
    for name in sorted(names):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise AssertionError(f"{path} belongs to no package")


@debian_12
def test_every_library_has_its_package_in_the_image(runtime, loaded):
    direct = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", *programs(runtime)))
    packages = {owner(loaded[name]) for name in direct if name in loaded and name not in COLLECTED}
    # What every image has, or what comes with any C++ library.
    packages -= {"libc6", "libstdc++6", "libgcc-s1"}
    assert packages == set(runtime_packages())
