"""Checks tools/release in a clone: the version is written, and the tag has the version's section of CHANGELOG.md."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHANGES = """# Changes

## Unreleased

## 9.8.7

Users get this.

### Operators

- `torch.ops`
# of which a line begins with the sign of comments

## 0.1.0

The first version.
"""


def git(folder, *arguments):
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path):
    """A repository with what tools/release reads and runs, in which ./dev package makes nothing."""
    made = tmp_path / "checkout"
    for name in ("tools/release", "tools/setup/step.sh", "CMakeLists.txt", "deploy/container/Dockerfile"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes((ROOT / name).read_bytes())
        (made / name).chmod((ROOT / name).stat().st_mode)
    (made / "CHANGELOG.md").write_text(CHANGES)
    (made / "dev").write_text('#!/usr/bin/env bash\necho "$*" >../packaged\n')
    (made / "dev").chmod(0o755)
    git(made, "init", "--quiet")
    for key, value in {"user.name": "nobody", "user.email": "nobody@localhost", "tag.gpgSign": "false", "commit.gpgSign": "false"}.items():
        git(made, "config", key, value)
    git(made, "add", ".")
    git(made, "commit", "--quiet", "--message", "first")
    return made


def release(checkout, version):
    return subprocess.run([checkout / "tools" / "release", version], capture_output=True, text=True, check=False)


def test_the_tag_has_the_whole_section(checkout):
    done = release(checkout, "9.8.7")
    assert done.returncode == 0, done.stderr
    assert (checkout.parent / "packaged").read_text() == "package\n"
    section = CHANGES[CHANGES.index("Users get"): CHANGES.index("\n## 0.1.0")]
    message = git(checkout, "for-each-ref", "--format=%(contents)", "refs/tags/v9.8.7")
    assert message.startswith("Saccade 9.8.7\n\n")
    assert message.strip().endswith(section.strip())
    assert "project(saccade VERSION 9.8.7" in git(checkout, "show", "v9.8.7:CMakeLists.txt")
    assert git(checkout, "status", "--porcelain") == ""


def test_the_images_of_a_release_have_their_base_images_by_digest(checkout):
    said = release(checkout, "9.8.7").stderr
    for name in ("BUILD", "RUNTIME"):
        (image,) = re.findall(rf"^ARG {name}_IMAGE=(.+)$", (ROOT / "deploy/container/Dockerfile").read_text(), re.MULTILINE)
        assert f"{name}={image.partition('@')[0]}@$(docker buildx imagetools inspect" in said
        assert said.count(f'--build-arg "{name}_IMAGE=${name}"') == 2
    assert said.count("PINNED=true") == 2 and "-t saccade:9.8.7 ." in said and "CUDA=true -t saccade-cuda:9.8.7 ." in said


def test_base_images_that_are_not_found_are_no_release(checkout):
    dockerfile = checkout / "deploy/container/Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("ARG RUNTIME_IMAGE=", "ARG OTHER="))
    git(checkout, "commit", "--quiet", "--all", "--message", "another name")
    done = release(checkout, "9.8.7")
    assert done.returncode == 1 and "no lines 'ARG BUILD_IMAGE='" in done.stderr and git(checkout, "tag") == ""


@pytest.mark.parametrize("version, said", [("9.8", "expected three numbers"), ("1.2.3", "no section '## 1.2.3'")])
def test_what_is_no_release_is_refused(checkout, version, said):
    done = release(checkout, version)
    assert done.returncode == 1 and said in done.stderr
    assert git(checkout, "tag") == ""


def test_a_version_is_tagged_once(checkout):
    git(checkout, "tag", "v9.8.7")
    assert "the tag v9.8.7 exists" in release(checkout, "9.8.7").stderr


def test_a_checkout_with_changes_is_not_tagged(checkout):
    (checkout / "new").write_text("")
    assert "the checkout has changes" in release(checkout, "9.8.7").stderr
