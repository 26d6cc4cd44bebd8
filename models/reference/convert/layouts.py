"""The layouts that are recognised, each by names that it alone has."""

import dataclasses
import re
from collections.abc import Callable

import torch

from models.reference.convert.converted import Converted, Rule, State, by_rules
from models.reference.convert.mmdetection import mmdetection

_NORM = r"(weight|bias|running_mean|running_var)"


@dataclasses.dataclass(frozen=True)
class Layout:
    name: str
    # A name that this layout has, as a pattern.
    mark: str
    convert: Callable[[State], Converted]


# The units of a block in one of DeepLabV2's ports, and the convolutions and batch norms that they are here.
_UNITS = {
    "reduce": ("conv1", "bn1"), "conv3x3": ("conv2", "bn2"), "increase": ("conv3", "bn3"),
    "shortcut": ("downsample.0", "downsample.1"), "proj": ("downsample.0", "downsample.1"),
}


def _unit(match: re.Match[str]) -> str:
    """The layers and blocks of the port count from 1, ours from 0 and 1: its layer1 is the stem."""
    stage, block, unit, kind, field = match.groups()
    return f"layer{int(stage) - 1}.{int(block) - 1}.{_UNITS[unit][kind == 'bn']}.{field}"


_DEEPLAB_UNITS: list[Rule] = [
    (r"(?:base\.)?layer1\.conv1\.conv\.weight", "conv1.weight"),
    (rf"(?:base\.)?layer1\.conv1\.bn\.{_NORM}", r"bn1.\1"),
    (rf"(?:base\.)?layer([2-5])\.block(\d+)\.({'|'.join(_UNITS)})\.(conv|bn)\.{_NORM}", _unit),
    (r"(?:base\.)?aspp\.(?:stages\.)?c(\d)\.(weight|bias)", r"layer5.conv2d_list.\1.\2"),
]


def _with_deeplab_s_options(found: Converted) -> Converted:
    if "layer5.conv2d_list.0.bias" in found.state:
        found.options |= {"head": "aspp", "classes": str(len(found.state["layer5.conv2d_list.0.bias"]))}
    return found


def deeplab_units(source: State) -> Converted:
    """The port whose blocks consist of units."""
    return _with_deeplab_s_options(by_rules(source, _DEEPLAB_UNITS, "DeepLabV2 with units (reduce, conv3x3, increase)"))


def deeplab_scale(source: State) -> Converted:
    """The port whose network stands in a module of several scales."""
    rules = [(r"Scale\.((?:conv1|bn1|layer[1-4]\..*|layer5\.conv2d_list\.\d)\.(?:weight|bias|running_mean|running_var))",
              r"\1")]
    found = _with_deeplab_s_options(by_rules(source, rules, "DeepLabV2 with the prefix Scale"))
    found.notes.append("that port takes the maximum over three scales; the daemon computes one")
    return found


def rc3d(source: State) -> Converted:
    """R-C3D's usual port to PyTorch, with its 3-D ResNet."""
    rules: list[Rule] = [(r"RCNN_base\.0\.weight", "conv1.weight"), (rf"RCNN_base\.1\.{_NORM}", r"bn1.\1"),
                         (r"RCNN_top\.0\.(.*)", r"layer4.\1"), (r"RCNN_cls_score\.(weight|bias)", r"head.cls_score.\1"),
                         (r"RCNN_twin_pred\.(weight|bias)", r"head.segment_pred.\1"),
                         *((rf"RCNN_base\.{place}\.(.*)", rf"layer{place - 3}.\1") for place in (4, 5, 6)),
                         (r"(attention\..*)", r"\1")]
    found = by_rules({name: tensor for name, tensor in source.items() if not name.startswith("RCNN_rpn.")}, rules,
                     "R-C3D's port with a 3-D ResNet")
    for name in source:
        if name.startswith("RCNN_rpn.") and not name.endswith(".num_batches_tracked"):
            found.left[name] = ("belongs to the port's proposals: two convolutions with a stride and two numbers for each "
                                "anchor; the served network has one convolution without a stride, as R-C3D's paper: train "
                                "tpn.* anew")
    if "head.cls_score.bias" in found.state:
        found.options["classes"] = str(len(found.state["head.cls_score.bias"]))
    if not any(name.startswith("attention.") for name in found.state):
        found.options["attention"] = "none"
    return found


def psmnet(source: State) -> Converted:
    """The authors' names, which the served network has as well."""
    found = by_rules(source, [(r"((?:feature_extraction|dres\d|classif\d|attention)\..*)", r"\1")], "PSMNet's authors' network")
    if not any(name.startswith("attention.") for name in found.state):
        found.options["attention"] = "none"
    found.notes.append("the authors' code leaves align_corners unset: true before PyTorch 0.4, false since; set the option to "
                       "what the weights were trained with (true is the default, and what the authors advise)")
    return found


def as_it_is(source: State) -> Converted:
    return by_rules(source, [(r"(.*)", r"\1")], "the served networks")


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("mmdetection", r"(roi_head\.)?bbox_head\..*|neck\.lateral_convs\..*", mmdetection),
        Layout("rc3d", r"RCNN_base\..*", rc3d),
        Layout("psmnet", r"feature_extraction\.firstconv\..*", psmnet),
        Layout("deeplab-scale", r"Scale\..*", deeplab_scale),
        Layout("deeplab-units", r"(base\.)?layer2\.block1\..*", deeplab_units),
        Layout("as-it-is", r".*", as_it_is),
    )
}

_WRAPPERS = ("module.", "model.", "_orig_mod.")  # as the daemon removes them
# The module that the authors of Efficient Attention published, and its names here.
_ATTENTION = {"keys": "key", "queries": "query", "values": "value", "reprojection": "out"}


def _without_wrappers(source: State) -> State:
    for wrapper in _WRAPPERS:
        if source and all(name.startswith(wrapper) for name in source):
            return _without_wrappers({name.removeprefix(wrapper): tensor for name, tensor in source.items()})
    return source


def _attention_renamed(name: str) -> str:
    match = re.fullmatch(r"(.*\.|)(keys|queries|values|reprojection)\.(weight|bias)", name)
    return f"{match[1]}{_ATTENTION[match[2]]}.{match[3]}" if match else name


def recognised(source: State) -> str:
    return next(layout.name for layout in LAYOUTS.values() if any(re.fullmatch(layout.mark, name) for name in source))


def convert(source: State, layout: str | None = None, prefixes: dict[str, str] | None = None) -> Converted:
    """Renames the tensors of a state dict. `prefixes` are replaced first; then the attention's names are those here, whatever
    the layout, since the authors of Efficient Attention published their module alone."""
    state = _without_wrappers(source)
    for before, after in (prefixes or {}).items():
        state = {after + name.removeprefix(before) if name.startswith(before) else name: tensor
                 for name, tensor in state.items()}
    state = {_attention_renamed(name): tensor for name, tensor in state.items() if isinstance(tensor, torch.Tensor)}
    return LAYOUTS[layout or recognised(state)].convert(state)
