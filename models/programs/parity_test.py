"""Programs saved by PyTorch must give the same results on the C++ side as in PyTorch."""

import os
import pathlib
import re
import subprocess
import zipfile

import pytest
import torch
import torchvision

PROGRAM = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "tests" / "saccade_run_program"


class Net(torch.nn.Module):
    """Uses various features: convolutions, norms, a loop that scripting keeps, two inputs, three outputs."""

    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU())
        self.qkv = torch.nn.Linear(16, 48)
        self.head = torch.nn.Linear(16, 5)

    def forward(self, picture, scale):
        x = self.features(picture).flatten(2).transpose(1, 2)
        query, key, value = self.qkv(x).chunk(3, 2)
        x = x + torch.nn.functional.scaled_dot_product_attention(query, key, value)
        for _ in range(2):
            x = torch.nn.functional.gelu(x)
        logits = self.head(x.mean(1)) * scale
        return logits, logits.argmax(1, keepdim=True), (picture > 0).flatten(1).sum(1).to(torch.int32)


SIGNATURE = {
    "inputs": ["INPUT__0:FP32:3,-1,-1", "INPUT__1:FP32:1"],
    "outputs": ["OUTPUT__0:FP32:5", "OUTPUT__1:INT64:1", "OUTPUT__2:INT32:"],
}


def net() -> torch.nn.Module:
    torch.manual_seed(1)
    module = Net()
    module.features[1].running_mean.uniform_(-1, 1)
    return module.eval()


def inputs(rows: int = 3, side: int = 12) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(rows, 3, side, side, generator=generator), torch.rand(rows, 1, generator=generator)]


def run(folder, program, tensors, signature=SIGNATURE, batched=True, one_by_one=False, environment=None):
    torch.save(tensors, folder / "inputs")
    options = [text for kind in ("input", "output") for one in signature[kind + "s"] for text in ("--" + kind, one)]
    options += ["--batched"] * batched + ["--one-by-one"] * one_by_one
    command = [PROGRAM, program, folder / "inputs", folder / "outputs", *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return torch.load(folder / "outputs", weights_only=False)


@pytest.mark.parametrize("make", [torch.jit.script, lambda module: torch.jit.trace(module, tuple(inputs()))])
def test_torch_script_gives_the_same_bits(tmp_path, make):
    module = net()
    make(module).save(tmp_path / "model.pt")
    with torch.inference_mode():
        expected = module(*inputs())
    got = run(tmp_path, tmp_path / "model.pt", inputs())
    assert [one.dtype for one in got] == [torch.float32, torch.int64, torch.int32]
    assert all(torch.equal(one, other) for one, other in zip(got, expected))


def test_a_network_of_torchvisions_gives_the_same_bits(tmp_path):
    torch.manual_seed(3)
    module = torchvision.models.resnet18().eval()
    torch.jit.trace(module, torch.zeros(1, 3, 64, 64)).save(tmp_path / "model.pt")
    pictures = torch.randn(2, 3, 64, 64)
    signature = {"inputs": ["INPUT__0:FP32:3,64,64"], "outputs": ["OUTPUT__0:FP32:1000"]}
    with torch.inference_mode():
        expected = module(pictures)
    assert torch.equal(run(tmp_path, tmp_path / "model.pt", [pictures], signature)[0], expected)


class Suppress(torch.nn.Module):
    def forward(self, boxes, scores):
        return torch.ops.torchvision.nms(boxes, scores, 0.5)


class Pool(torch.nn.Module):
    def forward(self, features, regions):
        return torch.ops.torchvision.roi_align(features, regions, 0.5, 3, 4, 2, False)


class PositionSensitivePool(torch.nn.Module):
    def forward(self, features, offset):
        return torch.ops.torchvision.ps_roi_align(features, offset, 1.0, 1, 1, 2)[0]


def test_the_operators_of_torchvisions_detectors_give_its_numbers(tmp_path):
    chance = torch.Generator().manual_seed(4)
    corners = 60 * torch.rand(200, 2, generator=chance)
    boxes = torch.cat((corners, corners + 1 + 40 * torch.rand(200, 2, generator=chance)), 1)
    scores = torch.rand(200, generator=chance)
    torch.jit.script(Suppress()).save(tmp_path / "nms.pt")
    signature = {"inputs": ["INPUT__0:FP32:-1,4", "INPUT__1:FP32:-1"], "outputs": ["OUTPUT__0:INT64:-1"]}
    kept = run(tmp_path, tmp_path / "nms.pt", [boxes, scores], signature, batched=False)[0]
    assert torch.equal(kept, Suppress()(boxes, scores)) and 5 < len(kept) < 195
    features = torch.randn(2, 5, 50, 60, generator=chance)
    regions = torch.cat((torch.randint(2, (200, 1), generator=chance).float(), boxes), 1)
    torch.jit.script(Pool()).save(tmp_path / "pool.pt")
    signature = {"inputs": ["INPUT__0:FP32:-1,-1,-1,-1", "INPUT__1:FP32:-1,5"], "outputs": ["OUTPUT__0:FP32:-1,-1,-1,-1"]}
    pooled = run(tmp_path, tmp_path / "pool.pt", [features, regions], signature, batched=False)[0]
    torch.testing.assert_close(pooled, Pool()(features, regions), rtol=1e-5, atol=1e-5)


def test_operators_of_other_libraries_are_told(tmp_path):
    torch.jit.script(PositionSensitivePool()).save(tmp_path / "model.pt")
    signature = {"inputs": ["INPUT__0:FP32:-1,1,1,1", "INPUT__1:FP32:-1,5"], "outputs": ["OUTPUT__0:FP32:-1,1,1,1"]}
    with pytest.raises(RuntimeError, match="(?s)torchvision::ps_roi_align.*The daemon has PyTorch's own operators"):
        run(tmp_path, tmp_path / "model.pt", [torch.zeros(1, 1, 1, 1), torch.zeros(1, 5)], signature, batched=False)


def rewritten(archive: pathlib.Path, target: pathlib.Path, change) -> pathlib.Path:
    """Copies an archive; change(name, data) returns the data of an entry. Fails if it changes none."""
    changed = False
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            written = change(entry.filename, data)
            changed |= written != data
            new.writestr(entry.filename, written)
    assert changed, [entry.filename for entry in old.infolist()]
    return target


# The daemon's, as the tests' environment has the wheel that it is built with.
VERSION = re.escape(torch.__version__.split("+")[0])


def test_torch_script_of_a_newer_format_is_told_with_the_versions_that_fit(tmp_path):
    torch.jit.script(net()).save(tmp_path / "model.pt")
    newer = rewritten(tmp_path / "model.pt", tmp_path / "newer.pt",
                      lambda name, data: b"99\n" if name.endswith("/version") else data)
    with pytest.raises(RuntimeError, match=rf"(?s)version 99.*LibTorch {VERSION}; save the program with this version of torch or an"):
        run(tmp_path, newer, inputs())


def test_weights_alone_are_told_from_a_program(tmp_path):
    torch.save(net().state_dict(), tmp_path / "model.pt")
    with pytest.raises(RuntimeError, match="written by torch.jit.save, not weights alone"):
        run(tmp_path, tmp_path / "model.pt", inputs())


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> pathlib.Path:
    """Net compiled by AOTInductor for dynamic batches and sides, with PyTorch's defaults."""
    rows, height, width = (torch.export.Dim(name, min=1, max=64) for name in ("rows", "height", "width"))
    exported = torch.export.export(
        net(), tuple(inputs()), dynamic_shapes={"picture": {0: rows, 2: height, 3: width}, "scale": {0: rows}})
    path = tmp_path_factory.mktemp("package") / "model.pt2"
    # Skips tests of the compiler's features, which take half the time, and headers precompiled for later use.
    with torch._inductor.config.patch({"cpp.vec_isa_ok": False, "cpp_cache_precompile_headers": False}):
        torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
    return path


def check_package(tmp_path, package, rows, side, **options):
    with torch.inference_mode():
        expected = net()(*inputs(rows, side))
    got = run(tmp_path, package, inputs(rows, side), environment={"AOTI_RUNTIME_CHECK_INPUTS": "1"}, **options)
    torch.testing.assert_close(got[0], expected[0], rtol=1e-5, atol=1e-5)
    assert torch.equal(got[1], expected[1]) and torch.equal(got[2], expected[2])


@pytest.mark.parametrize("rows, side", [(3, 12), (1, 12), (5, 7)])
def test_a_package_gives_the_same(tmp_path, package, rows, side):
    check_package(tmp_path, package, rows, side)


def test_rows_of_a_package_are_computed_one_by_one_too(tmp_path, package):
    check_package(tmp_path, package, 3, 12, one_by_one=True)


def test_a_package_checks_what_it_gets(tmp_path, package):
    with pytest.raises(RuntimeError, match="(?s)the package failed, or was not compiled.*dim value is too large"):
        run(tmp_path, package, inputs(65), environment={"AOTI_RUNTIME_CHECK_INPUTS": "1"})


def test_a_single_row_that_a_package_refuses_is_told_with_both_errors(tmp_path, package):
    """The first is about the row that was sent, the second about the row twice."""
    with pytest.raises(RuntimeError, match="(?s)dim value is too small.*With the row twice: .*dim value is too large"):
        run(tmp_path, package, inputs(1, 65), environment={"AOTI_RUNTIME_CHECK_INPUTS": "1"})


def test_a_package_and_a_configuration_that_do_not_meet_are_told(tmp_path, package):
    one = {**SIGNATURE, "inputs": SIGNATURE["inputs"][:1]}
    with pytest.raises(RuntimeError, match="the package takes 2 tensors, but the configuration describes 1 inputs"):
        run(tmp_path, package, inputs()[:1], one)
    four = {**SIGNATURE, "outputs": ["OUTPUT__3:FP32:5"]}
    with pytest.raises(RuntimeError, match="output 'OUTPUT__3' is number 3"):
        run(tmp_path, package, inputs(), four)
    texts = {**SIGNATURE, "outputs": ["OUTPUT__0:BYTES:5"]}
    with pytest.raises(RuntimeError, match="AOTInductor packages support only numeric tensors"):
        run(tmp_path, package, inputs(), texts)


def test_an_exported_program_is_told_from_a_package(tmp_path):
    torch.export.save(torch.export.export(net(), tuple(inputs())), tmp_path / "model.pt2")
    with pytest.raises(RuntimeError, match="must be compiled first"):
        run(tmp_path, tmp_path / "model.pt2", inputs())


def test_a_package_for_other_processors_is_told(tmp_path, package):
    def compiled_for_others(name, data):
        if not name.endswith("_metadata.json"):
            return data
        return re.sub(rb'"AOTI_CPU_ISA": "[^"]*"', b'"AOTI_CPU_ISA": "AVX512 AMX_TILE"', data)

    other = rewritten(package, tmp_path / "other.pt2", compiled_for_others)
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    if "amx_tile" in flags and "avx512f" in flags:
        pytest.skip("this processor has everything that a package may ask for")
    with pytest.raises(RuntimeError, match="compiled for processors with AVX512 AMX_TILE; this one lacks"):
        run(tmp_path, other, inputs())


def test_a_package_of_another_layout_is_told_with_the_version_that_fits(tmp_path, package):
    other = rewritten(package, tmp_path / "other.pt2",
                      lambda name, data: b"7" if name.endswith("/archive_version") else data)
    with pytest.raises(RuntimeError, match=f"archive has the version 7; expected 0. The daemon has LibTorch {VERSION}; compile the package with"):
        run(tmp_path, other, inputs())


def test_a_package_that_calls_what_only_a_newer_torch_has_is_told_with_the_version_that_fits(tmp_path, package):
    known = b"\0aoti_torch_delete_tensor_object\0"
    newer = b"\0aoti_torch_of_a_newer_version".ljust(len(known) - 1, b"_") + b"\0"
    other = rewritten(package, tmp_path / "other.pt2",
                      lambda name, data: data.replace(known, newer) if name.endswith(".so") else data)
    with pytest.raises(RuntimeError, match=rf"(?s)undefined symbol: aoti_torch_of_a_newer_version.*LibTorch {VERSION}; compile the package"):
        run(tmp_path, other, inputs())
