"""Checks the Debian package of the built daemon, without installing it; `./dev package` installs it, and tries the wheels."""

import configparser
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from drain_time import beside_the_flags
from image_size import ROOT, output


def unit():
    lines = configparser.ConfigParser(strict=False, interpolation=None)
    lines.optionxform = str
    lines.read(ROOT / "deploy/systemd/saccade.service")
    return lines


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package, and its files in a folder."""
    folder = tmp_path_factory.mktemp("package")
    made = pathlib.Path(output(ROOT / "tools/package/deb", os.environ["SACCADE_BUILD_DIR"], folder).strip())
    output("dpkg-deb", "--extract", made, folder / "root")
    return made, folder / "root"


def field(package, name):
    return output("dpkg-deb", "--field", package[0], name).strip()


def test_it_is_of_this_version_and_needs_what_the_daemon_loads(package):
    version = re.search(r"project\(saccade VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert field(package, "Version") == version
    needed = {name.split()[0] for name in field(package, "Depends").split(", ")}
    assert {"adduser", "libc6", "libstdc++6", "ca-certificates"} < needed and any("grpc++" in name for name in needed)
    assert not [name for name in needed if re.search("python|cuda|torch", name)]


def test_its_programs_find_their_libraries_wherever_it_lies(package):
    for name in ("saccaded", "saccade"):
        program = package[1] / "usr/bin" / name
        done = subprocess.run([program, "--version"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
        assert done.returncode == 0 and field(package, "Version") in done.stdout, done
        loaded = re.findall(r"=> (/\S+)", output("ldd", program))
        assert not [path for path in loaded if str(ROOT) in path or "site-packages" in path]


def test_the_program_that_decodes_lies_beside_the_daemon(package):
    daemon = (package[1] / "usr/bin/saccaded").resolve()
    done = subprocess.run([daemon.with_name("saccade-decode-worker")], capture_output=True, text=True)
    assert done.returncode == 2 and "saccaded starts this program" in done.stderr, done


def test_its_programs_work_from_its_files(package):
    assert "the package's files work" in output(ROOT / "tools/package/try_files", package[0])


def test_ci_makes_the_packages_if_what_they_are_made_of_has_changed():
    (listed,) = re.findall(r"^cmd_package\(\) \{.*?read=\(([^)]*)\)", (ROOT / "dev").read_text(), re.MULTILINE | re.DOTALL)
    paths = listed.split()
    assert [path for path in paths if not (ROOT / path).exists()] == []
    packaged = r"add_(?:executable|library)\((?:saccaded|saccade_cli|saccade-\S+|saccade_kernels|saccade_torch_stand_in|saccade_openvino) (?!SHARED IMPORTED)"
    made = {str(file.relative_to(ROOT)) for room in ("server", "client", "kernels", "models")
            for file in (ROOT / room).rglob("CMakeLists.txt") if re.search(packaged, file.read_text())}
    assert made and made <= set(paths)
    assert "'package --if-changed'" in (ROOT / ".ci/run").read_text()


def test_nothing_of_the_machine_that_built_it_is_in_it(package):
    for file in (package[1] / "usr/lib/saccade").rglob("*"):
        if file.is_file() and file.name.startswith(("saccade", "libsaccade")):
            searched = " ".join(re.findall(r"R(?:UN)?PATH.*\[(.*)\]", output("readelf", "-d", file)))
            assert searched in ("$ORIGIN", "$ORIGIN/../lib"), f"{file.name} looks for libraries in {searched}"


def test_its_configuration_is_one_and_listens_on_this_machine_alone(package, tmp_path):
    config = package[1] / "etc/saccade/saccaded.conf"
    assert output("dpkg-deb", "--info", package[0], "conffiles").split() == ["/etc/saccade/saccaded.conf"]
    assert "host=127.0.0.1" in config.read_text().splitlines()
    mine = tmp_path / "saccaded.conf"
    demo = package[1] / "usr/share/saccade/demo"
    mine.write_text(re.sub("model-repository=.*", f"model-repository={demo}", config.read_text()))
    output(package[1] / "usr/bin/saccaded", f"--config={mine}", "--check-config")


def test_the_unit_gives_a_drain_its_time_and_takes_every_right_that_is_not_used(package):
    service = unit()["Service"]
    program, flag = service["ExecStart"].split()
    assert os.path.lexists(package[1] / program.lstrip("/")) and (package[1] / flag.removeprefix("--config=/")).exists()
    shown = output(package[1] / "usr/bin/saccaded", "--help")
    drain = sum(int(re.search(rf"--{name}\S* S=(\d+)", shown)[1]) for name in ("lame-duck-seconds", "drain-timeout-seconds"))
    assert int(service["TimeoutStopSec"]) > drain + beside_the_flags()
    assert service["User"] == "saccade" and service["CapabilityBoundingSet"] == "" and service["NoNewPrivileges"] == "yes"
    assert (package[1] / "lib/systemd/system/saccade.service").read_text() == (ROOT / "deploy/systemd/saccade.service").read_text()


def test_the_unit_hides_no_file_of_proc_that_is_read():
    """ProcSubset=pid would: most models do not load without /proc/cpuinfo, which LibTorch reads, and metrics would be missing."""
    read = {name for file in (ROOT / "server").rglob("*.cc") for name in re.findall(r'"/proc/(stat|meminfo)"', file.read_text())}
    assert read == {"stat", "meminfo"}
    assert unit()["Service"].get("ProcSubset", "all") == "all"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd; ./dev package checks the unit where there is one")
def test_the_unit_is_within_the_exposure_that_dev_package_allows(tmp_path):
    inside = (ROOT / "tools/package/inside.sh").read_text()
    (bound,) = re.findall(r"^max_exposure=(\d+)$", inside, re.MULTILINE)
    assert '--threshold="$max_exposure"' in inside
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={bound}"]
    assert subprocess.run([*command, ROOT / "deploy/systemd/saccade.service"], capture_output=True).returncode == 0
    # The comparison is one: without what protects the system, the unit exceeds the bound.
    bare = re.sub(r"^(Protect|Private|Restrict|SystemCall).*\n", "", (ROOT / "deploy/systemd/saccade.service").read_text(), flags=re.MULTILINE)
    (tmp_path / "saccade.service").write_text(bare)
    assert subprocess.run([*command, tmp_path / "saccade.service"], capture_output=True).returncode != 0
