"""The rows of "Siamese Attention Networks"."""

from __future__ import annotations

from saccade.evaluate.published.row import Options, Row

_PAPER = "Siamese Attention Networks"
# "We use multiple heads with 4 heads in SAOs", the appendix says of SANet.
_SAO = {"attention": "sao", "similarity": "learned", "global_term": "true", "heads": "4"}
# The parameters of table 4 imply that squeeze-and-excite halves the channels, and the MAdds of AttnNet 1/N one head.
_SE = {"attention": "se", "reduction": "2"}
_ATTN = {"attention": "on", "heads": "1"}


def _imagenet(table: int, name: str, architecture: str, top1: float, options: Options) -> Row:
    return Row(f"{_PAPER}, table {table}", name, "imagenet", architecture, {**options, "input_size": "224"}, {"top-1": top1})


_CLASSIFICATION = [
    _imagenet(4, "SENet", "sanet", 72.4, _SE),
    _imagenet(4, "AttnNet", "attnnet", 73.0, _ATTN),
    _imagenet(4, "AttnNet+Pool", "attnnet_pool", 72.9, _ATTN),
    _imagenet(4, "AttnNet 1/N", "attnnet_1n", 73.0, _ATTN),
    _imagenet(4, "SANet", "sanet", 73.0, _SAO),
    _imagenet(6, "SANet w/o SAO", "sanet", 72.1, {"attention": "none"}),
    _imagenet(6, "SANet w/o global term", "sanet", 72.8, {**_SAO, "global_term": "false"}),
    _imagenet(6, "MobileNetV2+SAO", "mobilenetv2_sao", 72.7, _SAO),
    _imagenet(6, "MobileNetV2", "mobilenetv2", 72.0, {}),
    _imagenet(8, "SANet w/o params", "sanet", 72.8, {**_SAO, "similarity": "ones"}),
]

# The paper does not give its U-Nets' number of heads, nor whether the input is added to their output. Both are our choice.
_NETWORKS = {
    "U-Net": {"attention": "none", "residual": "true"},
    "U-Net+Attn": {"attention": "attn", "heads": "1", "residual": "true"},
    "U-Net+SAO": {**_SAO, "heads": "1", "residual": "true"},
}
# Table 7, with its columns in the order above.
_TABLE_7 = {
    ("Planaria", "denoise"): {
        "PSNR": (31.571, 31.951, 31.929), "SSIM": (0.7707, 0.7919, 0.7898), "NRMSE": (0.0268, 0.0257, 0.0257)},
    ("Tribolium", "denoise"): {
        "PSNR": (32.433, 32.571, 32.549), "SSIM": (0.9171, 0.9201, 0.9196), "NRMSE": (0.0241, 0.0236, 0.0239)},
    ("Flywing", "project"): {
        "PSNR": (21.958, 22.361, 22.329), "SSIM": (0.5592, 0.5903, 0.5916), "NRMSE": (0.0798, 0.0763, 0.0767)},
}

_RESTORATION = [
    Row(f"{_PAPER}, table 7", f"{name}, {organism}", "care", f"unet3d_sao_{kind}", options,
        {figure: values[column] for figure, values in figures.items()}, organism.lower())
    for (organism, kind), figures in _TABLE_7.items()
    for column, (name, options) in enumerate(_NETWORKS.items())
]

ROWS = [*_CLASSIFICATION, *_RESTORATION]
