"""Conversions of weights. What other implementations compute must be what the converted network computes: of Efficient Attention's
module, of DeepLabV2 in units, of R-C3D's port but for its proposals, and of the last layers of mmdetection's Mask R-CNN, all written
here from their published layouts. Of DeepLabV2 in several scales, PSMNet and the rest of Mask R-CNN, names and shapes alone are compared.
"""

import io
import pathlib
import pickletools
import re
import subprocess
import sys

import pytest
import torch
from safetensors import safe_open
from torch import nn

from models.reference import build
from models.reference.convert import convert, misfits
from models.reference.convert.__main__ import main
from models.reference.efficient_attention import EfficientAttention

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def the_same_numbers_in_every_run():
    torch.manual_seed(0)


def shaken(network: nn.Module, seed: int = 0) -> nn.Module:
    """Random weights and statistics, so that no tensor could be another one."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 1.5, generator=generator)
            elif tensor.is_floating_point():
                tensor.normal_(0, 1 / max(1, tensor[0].numel() if tensor.dim() > 1 else 4) ** 0.5, generator=generator)
    return network.eval()


def loaded(architecture: str, state: dict, **options) -> nn.Module:
    network = build(architecture, **options)
    network.load_state_dict(state, strict=False)
    return network.eval()


def converted_without_rest(state: dict, architecture: str, options: dict, layout: str | None = None):
    found = convert(state, layout)
    assert not found.left
    assert not misfits(found.state, architecture, {**found.options, **options})
    return found


class PublishedAttention(nn.Module):
    """The module that the authors of Efficient Attention published, from its description: four 1x1 convolutions; each head has
    the softmax of its keys over the positions, and of its queries over the head's channels; the heads' results are
    concatenated, reprojected and added to the input."""

    def __init__(self, channels, key_channels, heads, value_channels):
        super().__init__()
        self.heads = heads
        self.keys = nn.Conv2d(channels, key_channels, 1)
        self.queries = nn.Conv2d(channels, key_channels, 1)
        self.values = nn.Conv2d(channels, value_channels, 1)
        self.reprojection = nn.Conv2d(value_channels, channels, 1)

    def forward(self, x):
        found = []
        for key, query, value in zip(*(part(x).chunk(self.heads, dim=1) for part in (self.keys, self.queries, self.values))):
            weights = torch.exp(key) / torch.exp(key).sum(dim=(2, 3), keepdim=True)
            shares = torch.exp(query) / torch.exp(query).sum(dim=1, keepdim=True)
            context = (weights[:, :, None] * value[:, None]).sum(dim=(3, 4))  # [B, keys, values]
            found.append((shares[:, :, None] * context[..., None, None]).sum(dim=1))
        return x + self.reprojection(torch.cat(found, dim=1))


@pytest.mark.parametrize("heads", [1, 4])
def test_the_attention_that_its_authors_published(heads):
    published = shaken(PublishedAttention(12, 8, heads, 16)).double()
    ours = EfficientAttention(12, 8, 16, heads).double()
    ours.load_state_dict(convert(published.state_dict()).state)
    x = torch.randn(2, 12, 5, 7, dtype=torch.float64)
    torch.testing.assert_close(ours(x), published(x), rtol=1e-12, atol=1e-12)


def test_attention_inside_of_another_network():
    state = {f"backbone.ea_{place}.{name}": tensor for place in ("res3", "res4")
             for name, tensor in PublishedAttention(8, 4, 1, 4).state_dict().items()}
    found = convert(state, "as-it-is", {"backbone.ea_": "backbone.attention."})
    assert set(found.state) == {f"backbone.attention.{place}.{part}.{kind}" for place in ("res3", "res4")
                                for part in ("query", "key", "value", "out") for kind in ("weight", "bias")}


class Unit(nn.Sequential):
    def __init__(self, inputs, outputs, kernel, stride=1, dilation=1, relu=True):
        super().__init__()
        self.add_module("conv", nn.Conv2d(inputs, outputs, kernel, stride, dilation * (kernel // 2), dilation, bias=False))
        self.add_module("bn", nn.BatchNorm2d(outputs))
        if relu:
            self.add_module("relu", nn.ReLU())


class UnitBlock(nn.Module):
    def __init__(self, inputs, middle, stride, dilation, projected, shortcut):
        super().__init__()
        self.reduce = Unit(inputs, middle, 1, stride)
        self.conv3x3 = Unit(middle, middle, 3, 1, dilation)
        self.increase = Unit(middle, 4 * middle, 1, relu=False)
        self.name = shortcut if projected else None
        if projected:
            self.add_module(shortcut, Unit(inputs, 4 * middle, 1, stride, relu=False))

    def forward(self, x):
        y = self.increase(self.conv3x3(self.reduce(x)))
        return (y + (x if self.name is None else getattr(self, self.name)(x))).relu()


def deeplab_of_units(classes, shortcut, aspp):
    """DeepLabV2 at a quarter of the width, as one of its ports lays it out."""
    network = nn.Sequential()
    stem = nn.Sequential()
    stem.add_module("conv1", Unit(3, 16, 7, 2))
    stem.add_module("pool", nn.MaxPool2d(3, 2, 1, ceil_mode=True))
    network.add_module("layer1", stem)
    inputs = 16
    for stage, (blocks, stride, dilation) in enumerate(((2, 1, 1), (1, 2, 1), (2, 1, 2), (1, 1, 4))):
        layer, middle = nn.Sequential(), 16 << stage
        for block in range(blocks):
            made = UnitBlock(inputs if block == 0 else 4 * middle, middle, stride if block == 0 else 1, dilation, block == 0,
                             shortcut)
            layer.add_module(f"block{block + 1}", made)
        inputs = 4 * middle
        network.add_module(f"layer{stage + 2}", layer)
    head, outer = nn.Module(), nn.Module()
    for index, dilation in enumerate((6, 12, 18, 24)):
        head.add_module(f"c{index}", nn.Conv2d(inputs, classes, 3, padding=dilation, dilation=dilation))
    if aspp == "stages":
        outer.add_module("stages", head)
    network.add_module("aspp", outer if aspp == "stages" else head)
    network.branches = list(head.children())
    return network


NARROW = {"width": "0.25", "blocks": "2,1,2,1"}


@pytest.mark.parametrize(("prefix", "shortcut", "aspp"), [("base.", "shortcut", "plain"), ("", "proj", "stages")])
def test_deeplabv2_of_units(prefix, shortcut, aspp):
    port = shaken(deeplab_of_units(5, shortcut, aspp)).double()
    state = {prefix + name: tensor for name, tensor in port.state_dict().items()}
    found = converted_without_rest(state, "deeplabv2_kao_kv", NARROW)
    assert found.options == {"head": "aspp", "classes": "5"}
    ours = loaded("deeplabv2_kao_kv", found.state, **found.options, **NARROW).double()
    x = torch.randn(1, 3, 65, 49, dtype=torch.float64)
    features = x
    for name, part in port.named_children():
        features = part(features) if name != "aspp" else sum(branch(features) for branch in port.branches)
    inner = ours.layer5(ours.layer4(ours.layer3(ours.layer2(ours.layer1(ours.pool(ours.bn1(ours.conv1(x)).relu()))))))
    torch.testing.assert_close(inner, features, rtol=1e-9, atol=1e-9)


def test_deeplabv2_in_several_scales():
    network = build("deeplabv2_kao_kv", head="aspp", classes=7, **NARROW)
    state = {f"module.Scale.{name}": tensor for name, tensor in network.state_dict().items()}
    found = converted_without_rest(state, "deeplabv2_kao_kv", NARROW)
    assert found.options == {"head": "aspp", "classes": "7"}
    assert "three scales" in found.notes[0]
    assert found.state["layer5.conv2d_list.3.bias"] is state["module.Scale.layer5.conv2d_list.3.bias"]


def mmdetection_state(classes: int) -> dict[str, torch.Tensor]:
    """Mask R-CNN as mmdetection names it, with a ResNet of one block in each stage. `classes` without the background."""
    generator = torch.Generator().manual_seed(3)
    shapes: dict[str, tuple[int, ...]] = {}

    def convolution(name, outputs, inputs, kernel, bias=True):
        shapes[f"{name}.weight"] = (outputs, inputs, kernel, kernel)
        if bias:
            shapes[f"{name}.bias"] = (outputs,)

    def norm(name, channels):
        shapes.update({f"{name}.{part}": (channels,) for part in ("weight", "bias", "running_mean", "running_var")})
        shapes[f"{name}.num_batches_tracked"] = ()

    convolution("backbone.conv1", 64, 3, 7, bias=False)
    norm("backbone.bn1", 64)
    inputs = 64
    for stage in range(4):
        middle, start = 64 << stage, f"backbone.layer{stage + 1}.0"
        for number, (outputs, ins, kernel) in enumerate(((middle, inputs, 1), (middle, middle, 3), (4 * middle, middle, 1)), 1):
            convolution(f"{start}.conv{number}", outputs, ins, kernel, bias=False)
            norm(f"{start}.bn{number}", outputs)
        convolution(f"{start}.downsample.0", 4 * middle, inputs, 1, bias=False)
        norm(f"{start}.downsample.1", 4 * middle)
        inputs = 4 * middle
        convolution(f"neck.lateral_convs.{stage}.conv", 256, inputs, 1)
        convolution(f"neck.fpn_convs.{stage}.conv", 256, 256, 3)
        convolution(f"roi_head.mask_head.convs.{stage}.conv", 256, 256, 3)
    convolution("rpn_head.rpn_conv", 256, 256, 3)
    convolution("rpn_head.rpn_cls", 3, 256, 1)
    convolution("rpn_head.rpn_reg", 12, 256, 1)
    linear = {"shared_fcs.0": (1024, 256 * 49), "shared_fcs.1": (1024, 1024), "fc_cls": (classes + 1, 1024),
              "fc_reg": (4 * classes, 1024)}
    for name, (outputs, ins) in linear.items():
        shapes[f"roi_head.bbox_head.{name}.weight"] = (outputs, ins)
        shapes[f"roi_head.bbox_head.{name}.bias"] = (outputs,)
    convolution("roi_head.mask_head.upsample", 256, 256, 2)
    convolution("roi_head.mask_head.conv_logits", classes, 256, 1)
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


BLOCKS = {"blocks": "1,1,1,1"}


def test_mmdetection_s_mask_rcnn():
    state = mmdetection_state(6)
    found = converted_without_rest(state, "maskrcnn_resnet50_fpn", BLOCKS)
    assert found.options == {"classes": "7", "batch_norm_epsilon": "1e-5", "attention": "none", "fpn": "torchvision"}
    assert any("RoIAlign is aligned" in note for note in found.notes)
    network = loaded("maskrcnn_resnet50_fpn", found.state, **found.options, **BLOCKS)
    # In float64, so that the order of the sums does not show.
    region = torch.randn(3, 1024, dtype=torch.float64)
    head = "roi_head.bbox_head"
    cls_weight, cls_bias, reg_weight, reg_bias = (
        state[f"{head}.{name}"].double() for name in ("fc_cls.weight", "fc_cls.bias", "fc_reg.weight", "fc_reg.bias"))
    theirs = region @ cls_weight.T + cls_bias
    scores, boxes = network.roi_heads.box_predictor.double()(region)
    # Their background is the last class, ours the first.
    torch.testing.assert_close(scores, torch.cat([theirs[:, 6:], theirs[:, :6]], dim=1))
    theirs = (region @ reg_weight.T + reg_bias).reshape(3, 6, 4)
    torch.testing.assert_close(boxes.reshape(3, 7, 4)[:, 1:], theirs)
    masks = network.roi_heads.mask_predictor.mask_fcn_logits.weight
    torch.testing.assert_close(masks[1:], state["roi_head.mask_head.conv_logits.weight"])
    torch.testing.assert_close(network.backbone.body.layer3[0].conv2.weight, state["backbone.layer3.0.conv2.weight"])


@pytest.mark.parametrize("architecture", ["ea_mask_rcnn_r50", "ea_mask_rcnn_r101"])
def test_mmdetection_s_mask_rcnn_under_the_names_of_efficient_attention_s_networks(architecture):
    """Their defaults are attention and the paper's pyramid, which the file does not have."""
    found = converted_without_rest(mmdetection_state(6), architecture, BLOCKS)
    assert misfits(found.state, architecture, {"classes": "7", **BLOCKS}), "the defaults do not fit"


def test_what_is_not_mask_rcnn_in_mmdetection():
    state = mmdetection_state(6)
    state["roi_head.bbox_head.fc_reg.weight"] = torch.zeros(4, 1024)
    state["roi_head.bbox_head.fc_reg.bias"] = torch.zeros(4)
    state["backbone.layer2.0.conv2_offset.weight"] = torch.zeros(27, 128, 3, 3)
    found = convert(state)
    assert "has 4 rows; expected 24" in found.left["roi_heads.box_predictor.bbox_pred.weight"]
    wrong = {one.name: one.reason for one in misfits(found.state, "maskrcnn_resnet50_fpn", {**found.options, **BLOCKS})}
    assert wrong == {"backbone.body.layer2.0.conv2_offset.weight": "is no tensor of maskrcnn_resnet50_fpn with these options",
                     "roi_heads.box_predictor.bbox_pred.weight": "is missing; expected a tensor of shape (28, 1024)",
                     "roi_heads.box_predictor.bbox_pred.bias": "is missing; expected a tensor of shape (28,)"}
    first = {name.removeprefix("roi_head."): tensor for name, tensor in mmdetection_state(6).items()}
    left = convert(first).left
    assert "upgrade_model_version" in left["bbox_head.fc_cls.weight"] and "mask_head.upsample.bias" in left


class PortBlock(nn.Module):
    """A bottleneck of R-C3D's port: 1x1x1 to the middle's channels, 3x3x3 with the stride, 1x1x1 to four times as many."""

    def __init__(self, inputs, middle, stride):
        super().__init__()
        shapes = (inputs, middle, 1, 1), (middle, middle, 3, stride), (middle, 4 * middle, 1, 1)
        for number, (ins, outs, kernel, step) in enumerate(shapes, 1):
            self.add_module(f"conv{number}", nn.Conv3d(ins, outs, kernel, step, kernel // 2, bias=False))
            self.add_module(f"bn{number}", nn.BatchNorm3d(outs))
        self.projects = stride > 1 or inputs != 4 * middle
        if self.projects:
            self.downsample = nn.Sequential(nn.Conv3d(inputs, 4 * middle, 1, stride, bias=False), nn.BatchNorm3d(4 * middle))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).clamp(min=0)
        y = self.bn2(self.conv2(y)).clamp(min=0)
        return (self.bn3(self.conv3(y)) + (self.downsample(x) if self.projects else x)).clamp(min=0)


class Rc3dPort(nn.Module):
    """R-C3D's port: a 3-D ResNet cut into a base and a top, at an eighth of the width and with few blocks."""

    OPTIONS = {"width": "0.125", "blocks": "2,1,1,2"}

    def __init__(self, classes):
        super().__init__()
        stages, inputs = [], 8
        for stage, blocks in enumerate((2, 1, 1, 2)):
            middle, stride = 8 << stage, 1 if stage == 0 else 2
            stages.append(nn.Sequential(PortBlock(inputs, middle, stride),
                                        *(PortBlock(4 * middle, middle, 1) for _ in range(blocks - 1))))
            inputs = 4 * middle
        stem = nn.Conv3d(3, 8, 7, stride=(1, 2, 2), padding=3, bias=False)
        self.RCNN_base = nn.Sequential(stem, nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(3, 2, 1), *stages[:3])
        self.RCNN_top = nn.Sequential(stages[3])
        self.RCNN_rpn = nn.ModuleDict({"RPN_Conv1": nn.Conv3d(128, 512, 3), "RPN_cls_score": nn.Conv3d(512, 20, 1)})
        self.RCNN_cls_score, self.RCNN_twin_pred = nn.Linear(256, classes), nn.Linear(256, 2 * classes)


def test_rc3d_s_port_fits_but_for_its_proposals():
    port = shaken(Rc3dPort(21)).double()
    found = convert(port.state_dict())
    assert found.options == {"classes": "21", "attention": "none"}
    assert sorted(found.left) == [f"RCNN_rpn.{part}.{kind}" for part in ("RPN_Conv1", "RPN_cls_score")
                                  for kind in ("bias", "weight")]
    assert all("train tpn.* anew" in reason for reason in found.left.values())
    options = {**found.options, **Rc3dPort.OPTIONS}
    assert {re.sub(r"\.\w+$", "", one.name) for one in misfits(found.state, "ea_rc3d", options)} == {
        "tpn.conv", "tpn.cls_logits", "tpn.segment_pred"}
    ours = build("ea_rc3d", **options).double().eval()
    ours.load_state_dict(found.state, strict=False)
    clip = torch.randn(1, 3, 16, 64, 48, dtype=torch.float64)
    theirs = port.RCNN_base(clip)
    assert theirs.std() > 1e-2
    torch.testing.assert_close(ours.features(clip), theirs, rtol=1e-9, atol=1e-9)
    means = port.RCNN_top(theirs).mean(dim=(2, 3, 4))
    scores, offsets = ours.head(ours.layer4(ours.features(clip)))
    torch.testing.assert_close(scores, port.RCNN_cls_score(means), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(offsets.flatten(1), port.RCNN_twin_pred(means), rtol=1e-9, atol=1e-9)


def test_psmnet_s_authors_have_our_names():
    network = shaken(build("ea_psmnet", attention="none", width="0.25"))
    state = {f"module.{name}": tensor for name, tensor in network.state_dict().items()}
    found = converted_without_rest(state, "ea_psmnet", {"width": "0.25"})
    assert found.options == {"attention": "none"} and "align_corners" in found.notes[0]
    assert set(found.state) == {name for name in network.state_dict() if not name.endswith("num_batches_tracked")}


def test_a_shape_that_does_not_fit():
    found = convert(build("sanet", classes=5, width="0.25").state_dict())
    (wrong,) = [one for one in misfits(found.state, "sanet", {"classes": "6", "width": "0.25"}) if one.name.endswith("weight")]
    assert re.fullmatch(r"has the shape \(5, \d+\); expected \(6, \d+\)", wrong.reason)


@pytest.mark.parametrize("prefix", ["module.", "model.", "_orig_mod.", "model._orig_mod.module."])
def test_what_wrappers_put_before_all_names_is_removed(prefix):
    state = build("sanet", width="0.25").state_dict()
    found = converted_without_rest({prefix + name: tensor for name, tensor in state.items()}, "sanet", {"width": "0.25"})
    assert found.state.keys() == {name for name in state if not name.endswith("num_batches_tracked")}
    one, *rest = state
    half = {prefix + one: state[one], **{name: state[name] for name in rest}}
    assert prefix + one in convert(half).state, "not before all names"


def command(*arguments):
    return main([str(one) for one in arguments])


def test_the_file_says_what_network_it_is(tmp_path, capsys):
    torch.save({"epoch": 3, "state_dict": {f"module.{name}": tensor for name, tensor in mmdetection_state(6).items()}},
               tmp_path / "epoch_12.pth")
    code = command(tmp_path / "epoch_12.pth", "--architecture", "maskrcnn_resnet50_fpn", "--option", "blocks=1,1,1,1", "-o",
                   tmp_path / "weights.safetensors")
    said = capsys.readouterr()
    assert code == 0, said.err
    assert "note: the regions are cut out as torchvision does" in said.err
    with safe_open(tmp_path / "weights.safetensors", "pt") as file:
        assert file.metadata() == {"saccade.architecture": "maskrcnn_resnet50_fpn", "saccade.option.classes": "7",
                                   "saccade.option.attention": "none", "saccade.option.fpn": "torchvision",
                                   "saccade.option.batch_norm_epsilon": "1e-5", "saccade.option.blocks": "1,1,1,1"}
        state = {name: file.get_tensor(name) for name in file.keys()}
    assert not misfits(state, "maskrcnn_resnet50_fpn", {"classes": "7", **BLOCKS})


def test_nothing_is_written_unless_all_fits(tmp_path, capsys):
    torch.save(Rc3dPort(21).state_dict(), tmp_path / "port.pth")
    options = [part for name, value in Rc3dPort.OPTIONS.items() for part in ("--option", f"{name}={value}")]
    line = [tmp_path / "port.pth", "--architecture", "ea_rc3d", *options, "-o", tmp_path / "out.safetensors"]
    assert command(*line) == 1 and not (tmp_path / "out.safetensors").exists()
    said = capsys.readouterr().err
    assert "RCNN_rpn.RPN_Conv1.weight" in said and "tpn.conv.weight" in said and "--partial writes what fits" in said
    assert command(*line, "--partial") == 1, "the network lacks tensors"
    with safe_open(tmp_path / "out.safetensors", "pt") as file:
        assert "layer4.0.conv1.weight" in file.keys() and "tpn.conv.weight" not in file.keys()


def as_python_2_pickles(stream: bytes) -> bytes:
    """A file of PyTorch before 1.6 with its texts as byte strings. Five pickles are followed by the storages' bytes."""
    source, found = io.BytesIO(stream), b""
    for _ in range(5):
        operations = list(pickletools.genops(source))
        ends = [position for _, _, position in operations[1:]] + [source.tell()]
        for (operation, argument, start), end in zip(operations, ends, strict=True):
            if operation.name == "BINUNICODE":
                text = argument.encode()
                found += b"U" + bytes([len(text)]) + text
            else:
                found += stream[start:end]
    return found + source.read()


def test_psmnet_as_python_2_and_old_pytorch_saved_it(tmp_path, capsys):
    """In the layout of the authors' files: {"state_dict"} of a DataParallel."""
    state = {f"module.{name}": tensor for name, tensor in
             shaken(build("ea_psmnet", attention="none", width="0.125")).state_dict().items() if "num_batches" not in name}
    stream = io.BytesIO()
    torch.save({"epoch": 10, "state_dict": state}, stream, _use_new_zipfile_serialization=False, pickle_protocol=2)
    old = as_python_2_pickles(stream.getvalue())
    assert b"U\x0astate_dict" in old and b"X\x0a\0\0\0state_dict" not in old
    (tmp_path / "old.tar").write_bytes(old)
    code = command(tmp_path / "old.tar", "--architecture", "ea_psmnet", "--option", "width=0.125", "-o", tmp_path / "weights")
    assert code == 0, capsys.readouterr().err
    with safe_open(tmp_path / "weights", "pt") as file:
        assert set(file.keys()) == {name.removeprefix("module.") for name in state}
        for name in file.keys():
            torch.testing.assert_close(file.get_tensor(name), state[f"module.{name}"], rtol=0, atol=0)


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


@pytest.mark.parametrize(("name", "content", "said"), [
    ("a.pth", b"nothing of torch's", "cannot be read|is not read"),
    ("a.safetensors", b"\0" * 20, "cannot be read"),
    ("nothing.pth", None, "cannot be read"),
    ("empty.pth", {"epoch": 1}, "has no tensors"),
    ("evil.pth", Evil(), "is not read"),
])
def test_files_that_are_no_weights(tmp_path, capsys, name, content, said):
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    elif content is not None:
        torch.save(content, tmp_path / name)
    assert command(tmp_path / name, "--architecture", "sanet", "-o", tmp_path / "out.safetensors") == 1
    assert re.search(said, capsys.readouterr().err) and not (tmp_path / "out.safetensors").exists()


def test_usage(tmp_path):
    line = [sys.executable, "-m", "models.reference.convert", "x.pth", "--architecture", "nothing", "-o", "y"]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 2 and "invalid choice: 'nothing'" in ended.stderr
    torch.save(build("sanet", width="0.25").state_dict(), tmp_path / "a.pth")
    line = [sys.executable, "tests/run_module.py", "models.reference.convert", tmp_path / "a.pth", "--architecture", "sanet",
            "--option", "depth=3", "-o", tmp_path / "y"]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 1 and "cannot be built" in ended.stderr and "Traceback" not in ended.stderr
