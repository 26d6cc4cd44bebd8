"""mmdetection's Mask R-CNN with a feature pyramid, from version 2 on, to torchvision's names and order of classes."""

import torch

from models.reference.convert.converted import Converted, Rule, State, by_rules

_RULES: list[Rule] = [
    (r"backbone\.((?:conv1|bn1|layer\d)\..*)", r"backbone.body.\1"),
    (r"neck\.lateral_convs\.(\d)\.conv\.(weight|bias)", r"backbone.fpn.inner_blocks.\1.0.\2"),
    (r"neck\.fpn_convs\.(\d)\.conv\.(weight|bias)", r"backbone.fpn.layer_blocks.\1.0.\2"),
    (r"rpn_head\.rpn_conv\.(weight|bias)", r"rpn.head.conv.0.0.\1"),
    (r"rpn_head\.rpn_cls\.(weight|bias)", r"rpn.head.cls_logits.\1"),
    (r"rpn_head\.rpn_reg\.(weight|bias)", r"rpn.head.bbox_pred.\1"),
    (r"roi_head\.bbox_head\.shared_fcs\.0\.(weight|bias)", r"roi_heads.box_head.fc6.\1"),
    (r"roi_head\.bbox_head\.shared_fcs\.1\.(weight|bias)", r"roi_heads.box_head.fc7.\1"),
    (r"roi_head\.bbox_head\.fc_cls\.(weight|bias)", r"roi_heads.box_predictor.cls_score.\1"),
    (r"roi_head\.bbox_head\.fc_reg\.(weight|bias)", r"roi_heads.box_predictor.bbox_pred.\1"),
    (r"roi_head\.mask_head\.convs\.(\d)\.conv\.(weight|bias)", r"roi_heads.mask_head.\1.0.\2"),
    (r"roi_head\.mask_head\.upsample\.(weight|bias)", r"roi_heads.mask_predictor.conv5_mask.\1"),
    (r"roi_head\.mask_head\.conv_logits\.(weight|bias)", r"roi_heads.mask_predictor.mask_fcn_logits.\1"),
]

_NOTES = [
    "the regions are cut out as torchvision does (not aligned by half a pixel, 2 x 2 samples in each bin); mmdetection's "
    "RoIAlign is aligned and samples as densely as the region: the figures will be lower than there, unless the model was "
    "trained with aligned=False and sampling_ratio=2",
    "torchvision rounds the anchors' sides to whole pixels; mmdetection does not",
    "the backbone's stride must be on the 3x3 convolutions (style='pytorch'), and the pictures RGB in the daemon's "
    "mean and std; a model of style='caffe' has the same names and gives wrong answers",
]


def mmdetection(source: State) -> Converted:
    found = by_rules(source, _RULES, "mmdetection's Mask R-CNN")
    if any(name.startswith("bbox_head.") for name in source):
        for name in found.left:
            if name.startswith(("bbox_head.", "mask_head.")):
                found.left[name] = ("is a name of mmdetection 1, which codes boxes otherwise; upgrade the file with "
                                    "mmdetection's tools/model_converters/upgrade_model_version.py")
        return found
    for name in found.left:
        if name.startswith("roi_head.bbox_head.0."):
            found.left[name] = "is a stage of a cascade; Mask R-CNN has one"
    _reorder(found)
    # Attention and the paper's pyramid are the defaults of ea_mask_rcnn_*; mmdetection's network has torchvision's pyramid alone.
    # torchvision's published weights were frozen without an epsilon; mmdetection's batch norms have 1e-5.
    found.options |= {"attention": "none", "fpn": "torchvision", "batch_norm_epsilon": "1e-5"}
    found.notes += _NOTES
    return found


def _reorder(found: Converted) -> None:
    """mmdetection has the background as its last class, and neither boxes nor masks for it; torchvision has it first."""
    scores, boxes = "roi_heads.box_predictor.cls_score", "roi_heads.box_predictor.bbox_pred"
    masks = "roi_heads.mask_predictor.mask_fcn_logits"
    if f"{scores}.bias" not in found.state:
        return
    classes = len(found.state[f"{scores}.bias"])
    found.options["classes"] = str(classes)
    for kind in ("weight", "bias"):
        _replace(found, f"{scores}.{kind}", classes, lambda rows: torch.cat([rows[-1:], rows[:-1]]))
        _replace(found, f"{boxes}.{kind}", 4 * (classes - 1), lambda rows: _after_zeros(rows, 4))
        _replace(found, f"{masks}.{kind}", classes - 1, lambda rows: _after_zeros(rows, 1))


def _after_zeros(rows: torch.Tensor, count: int) -> torch.Tensor:
    return torch.cat([torch.zeros(count, *rows.shape[1:], dtype=rows.dtype), rows])


def _replace(found: Converted, name: str, rows: int, change) -> None:
    tensor = found.state.get(name)
    if tensor is None:
        return
    if len(tensor) == rows:
        found.state[name] = change(tensor)
        return
    del found.state[name]
    found.left[name] = (f"has {len(tensor)} rows; expected {rows}, one set for each class: boxes and masks that all classes "
                        "share are another network")
