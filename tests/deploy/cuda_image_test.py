"""What the image for GPUs gets: collect-runtime.sh --cuda on a small build with small wheels, and the list of the real ones.
The image itself has been built nowhere: it needs a container engine."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from image_size import ROOT, output

CONTAINER = ROOT / "deploy/container"
REQUIREMENTS = ROOT / "tools/setup/requirements"
# A version that no machine has.
SOLVER = "libcusolver.so.99"
# What LibTorch and cuDNN open by name, beside what the plugin loads.
OPENED_LATER = {"libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so", "libcudnn_ops.so.9", "libnvrtc-builtins.so.13.0"}
OF_CUDA = {"libtorch_cuda.so", "libcudnn.so.9", SOLVER, "libnvrtc.so.13", *OPENED_LATER}
OF_THE_CPU = {"libsaccade_kernels.so", "libsaccade_torch_stand_in.so", "libtorch_cpu.so", "libc10.so"}


class Tree:
    """A build folder and wheels whose programs and libraries are empty, but need each other as the real ones do."""

    def __init__(self, root):
        self.site, self.build = root / "site-packages", root / "build"
        self.plugin = self.build / "lib/libsaccade_cuda.so"

    def make(self):
        torch, cudnn, cu13 = (self.site / path for path in ("torch/lib", "nvidia/cudnn/lib", "nvidia/cu13/lib"))
        # The driver's library is no longer there when the programs run.
        driver = self.library(self.build.parent / "driver/libcuda.so.1")
        c10 = self.library(torch / "libc10.so")
        cpu = self.library(torch / "libtorch_cpu.so", c10)
        self.library(cudnn / "libcudnn_ops.so.9")
        solver, nvrtc = self.library(cu13 / SOLVER), self.library(cu13 / "libnvrtc.so.13")
        self.library(cu13 / "libnvrtc-builtins.so.13.0")
        cuda = self.library(torch / "libtorch_cuda.so", cpu, self.library(cudnn / "libcudnn.so.9"))
        self.library(torch / "libtorch_cuda_linalg.so", cuda, solver)
        self.library(torch / "libcaffe2_nvrtc.so", nvrtc, driver)
        driver.unlink()
        kernels = self.library(self.build / "lib/libsaccade_kernels.so", cpu)
        self.library(self.plugin, cuda, kernels)
        self.library(self.build / "lib/libsaccade_torch_stand_in.so")
        for name in ("saccaded", "saccade-decode-worker"):
            self.compile(self.build / "bin" / name, "int main(void) { return 0; }", "-pie", kernels)
        for wheel, folder, version in (("torch", "torch", "2.11.0"), ("nvidia-cudnn-cu13", "nvidia/cudnn", "9.19.0.56"),
                                       ("nvidia-cu13", "nvidia/cu13", "13.0")):
            of_it = self.site / f"{wheel.replace('-', '_')}-{version}.dist-info"
            of_it.mkdir()
            (of_it / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {wheel}\nVersion: {version}\n")
            files = [file.relative_to(self.site) for file in (self.site / folder).rglob("*.so*")]
            (of_it / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))

    def library(self, path, *needed):
        self.compile(path, "", "-shared", f"-Wl,-soname,{path.name}", *needed)
        return path

    def compile(self, path, text, *options):
        path.parent.mkdir(parents=True, exist_ok=True)
        # As in torch's wheel: looked for beside the library, then in the other wheels.
        folders = [self.build / "lib", *(self.site / wheel / "lib" for wheel in ("torch", "nvidia/cudnn", "nvidia/cu13"))]
        found = ":".join(["$ORIGIN", *(f"$ORIGIN/{os.path.relpath(folder, path.parent)}" for folder in folders)])
        subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", path, f"-Wl,-rpath,{found}", "-Wl,--no-as-needed",
                        "-Wl,--disable-new-dtags,--allow-shlib-undefined", *options], input=text, text=True, check=True)


@pytest.fixture(name="made", scope="module")
def made_tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    Tree(root).make()
    return root


@pytest.fixture(name="tree")
def copied_tree(made, tmp_path):
    shutil.copytree(made, tmp_path / "tree")
    return Tree(tmp_path / "tree")


def collect(tree, target, *options):
    return subprocess.run([CONTAINER / "collect-runtime.sh", *options, tree.build, target], capture_output=True, text=True)


def names(folder):
    return {file.name for file in folder.iterdir()}


def test_the_plugin_and_all_it_loads_are_collected(tree, tmp_path):
    target = tmp_path / "runtime"
    done = collect(tree, target, "--cuda")
    assert done.returncode == 0, done.stderr
    assert names(target / "lib") == OF_THE_CPU | OF_CUDA | {"libsaccade_cuda.so"}
    assert (target / "wheels").read_text().splitlines() == ["nvidia-cu13 13.0", "nvidia-cudnn-cu13 9.19.0.56", "torch 2.11.0"]
    # The libraries of the wheels are elsewhere now, and nobody looks for them where they were.
    tree.site.rename(tmp_path / "away")
    for file in (target / "lib/libsaccade_cuda.so", target / "bin/saccaded", *(target / "lib" / name for name in OPENED_LATER)):
        found = output("ldd", file)
        assert not [line for line in found.splitlines() if "not found" in line and "libcuda.so.1" not in line], found
        assert not [path for path in re.findall(r"=> (/\S+)", found)
                    if not path.startswith((str(target), "/lib", "/usr/lib"))], found


def test_the_image_for_processors_gets_none_of_it(tree, tmp_path):
    done = collect(tree, tmp_path / "runtime")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "runtime/lib") == OF_THE_CPU
    assert (tmp_path / "runtime/wheels").read_text().splitlines() == ["torch 2.11.0"]


def test_a_build_without_the_plugin_is_refused(tree, tmp_path):
    tree.plugin.unlink()
    done = collect(tree, tmp_path / "runtime", "--cuda")
    assert done.returncode == 1 and "expected a build with nvcc" in done.stderr and not (tmp_path / "runtime").exists()


@pytest.mark.parametrize("lost, named", [
    (f"nvidia/cu13/lib/{SOLVER}", SOLVER), ("torch/lib/libcaffe2_nvrtc.so", "libcaffe2_nvrtc.so"),
    ("nvidia/cudnn/lib/libcudnn_ops.so.9", "libcudnn_*.so.*"),
    ("nvidia/cu13/lib/libnvrtc-builtins.so.13.0", "libnvrtc-builtins.so.*")])
def test_a_library_that_is_missing_is_named(tree, tmp_path, lost, named):
    (tree.site / lost).unlink()
    done = collect(tree, tmp_path / "runtime", "--cuda")
    assert done.returncode == 1 and named in done.stderr, done


def pins(name):
    return dict(re.findall(r"^([a-z0-9-]+)==([0-9.]+)", (REQUIREMENTS / name).read_text(), re.MULTILINE))


def test_the_list_of_cuda_is_what_torch_asks_for():
    """The tests' list has been resolved from torch itself."""
    ours, of_torch, base = pins("cuda.txt"), pins("tests.txt"), pins("torch.txt")
    compiler = {"nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl"}
    assert compiler < set(ours)
    assert {name: version for name, version in ours.items() if name not in compiler} == {
        name: version for name, version in of_torch.items()
        if name.startswith("nvidia-") and name not in base and name != "nvidia-nvtx"}
    # The plugin is linked with that version's runtime.
    minor = base["nvidia-cuda-runtime"].rpartition(".")[0]
    assert {version.rpartition(".")[0] for name, version in ours.items() if name in compiler} == {minor}


BUILD = pathlib.Path(os.environ["SACCADE_BUILD_DIR"])


def test_the_real_libraries_are_whole(tmp_path):
    """Links in place of copies: the libraries take gigabytes."""
    plugin = BUILD / "lib/libsaccade_cuda.so"
    if not plugin.exists():
        pytest.skip("built without nvcc, so there is no plugin")
    done = subprocess.run([CONTAINER / "list-libraries.sh", BUILD / "bin/saccaded", plugin], capture_output=True, text=True)
    if "libraries not found" in done.stderr:
        pytest.skip("CUDA's libraries are not installed here")
    assert done.returncode == 0, done.stderr
    paths = [pathlib.Path(line) for line in done.stdout.splitlines()]
    assert {"libtorch_cuda.so", "libcudnn.so.9", "libcublas.so.13", "libsaccade_kernels.so", *OPENED_LATER} <= {
        path.name for path in paths}
    assert len({path.name for path in paths}) == len(paths)
    (said,) = re.findall(r"from the build come to ([0-9.]+) GB", (ROOT / "docs/deploying.md").read_text())
    assert sum(path.stat().st_size for path in (*paths, plugin)) / 1e9 == pytest.approx(float(said), rel=0.05)
    for path in (*paths, plugin):
        (tmp_path / path.name).symlink_to(path)
    # Our own libraries find the others by what collect-runtime.sh writes into them.
    for name in ("libtorch_cuda.so", "libcudnn.so.9", *OPENED_LATER):
        found = output("ldd", tmp_path / name)
        missing = [line for line in found.splitlines() if "not found" in line]
        assert not [line for line in missing if not re.search(r"lib(cuda|nvidia-ml)\.so\.1 ", line)], found
