"""The networks that ./dev verify-zoo imports, and folders of transformers' for some of them: small ones with random weights."""

import pathlib

# Those of the small form come first: one of each library and of each kind of head.
SMALL = [
    "torchvision:resnet18",
    "torchvision:lraspp_mobilenet_v3_large",
    "torchvision:fasterrcnn_mobilenet_v3_large_320_fpn",
    "timm:vit_tiny_patch16_224",
    "transformers:yolos",
]
OTHERS = [
    "torchvision:convnext_tiny",
    "torchvision:efficientnet_b0",
    "torchvision:densenet121",
    "torchvision:mobilenet_v3_small",
    "torchvision:regnet_y_400mf",
    "torchvision:swin_t",
    "torchvision:vit_b_16",
    "torchvision:deeplabv3_mobilenet_v3_large",
    "torchvision:fcn_resnet50",
    "torchvision:retinanet_resnet50_fpn",
    "torchvision:maskrcnn_resnet50_fpn",
    "timm:convnext_atto",
    "timm:mobilenetv4_conv_small",
    "timm:resnet26d",
    "timm:tf_efficientnetv2_b0",
    "transformers:vit",
    "transformers:convnext",
    "transformers:convnext384",
    "transformers:mobilevit",
    "transformers:segformer",
    "transformers:deit",
    "transformers:dinov2",
    "transformers:dpt",
    "transformers:yolos_shortest",
    "lucid:n",
]
_MEAN, _STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def _labels(count: int) -> dict[str, dict]:
    names = {index: f"class {index}" for index in range(count)}
    return {"id2label": names, "label2id": {name: index for index, name in names.items()}}


def write_transformers(root: pathlib.Path, name: str) -> pathlib.Path:
    """Writes config.json and preprocessor_config.json as save_pretrained does. Returns the folder."""
    import transformers as hf

    even = {"do_rescale": True, "do_normalize": True, "image_mean": _MEAN, "image_std": _STD}
    square = {"size": {"height": 224, "width": 224}, **even}
    crop = {"size": {"height": 256, "width": 256}, "crop_size": {"height": 224, "width": 224}}
    vit = dict(hidden_size=96, num_hidden_layers=3, num_attention_heads=3, intermediate_size=192)
    made = {
        "vit": lambda: (hf.ViTConfig(**vit, **_labels(20)), "ViTForImageClassification", hf.ViTImageProcessor(**square)),
        "convnext": lambda: (
            hf.ConvNextConfig(hidden_sizes=[24, 48, 72, 96], depths=[1, 1, 2, 1], **_labels(20)), "ConvNextForImageClassification",
            hf.ConvNextImageProcessor(size={"shortest_edge": 224}, crop_pct=0.9, **even),
        ),
        "convnext384": lambda: (
            hf.ConvNextConfig(hidden_sizes=[24, 48, 72, 96], depths=[1, 1, 2, 1], **_labels(20)), "ConvNextForImageClassification",
            hf.ConvNextImageProcessor(size={"shortest_edge": 384}, **even),
        ),
        "mobilevit": lambda: (
            hf.MobileViTConfig(hidden_sizes=[32, 48, 64], neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 96], **_labels(20)),
            "MobileViTForImageClassification",
            hf.MobileViTImageProcessor(size={"shortest_edge": 288}, crop_size={"height": 256, "width": 256}),
        ),
        "segformer": lambda: (
            hf.SegformerConfig(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], decoder_hidden_size=64, **_labels(9)),
            "SegformerForSemanticSegmentation", hf.SegformerImageProcessor(size={"height": 256, "width": 256}, **even),
        ),
        "yolos": lambda: (
            hf.YolosConfig(**vit, image_size=[224, 288], num_detection_tokens=40, **_labels(12)), "YolosForObjectDetection",
            hf.YolosImageProcessor(size={"height": 224, "width": 288}, do_pad=False, **even),
        ),
        "yolos_shortest": lambda: (
            hf.YolosConfig(**vit, image_size=[224, 288], num_detection_tokens=40, **_labels(12)), "YolosForObjectDetection",
            hf.YolosImageProcessor(size={"shortest_edge": 224, "longest_edge": 300}, **even),
        ),
        "deit": lambda: (
            hf.DeiTConfig(**vit, **_labels(20)), "DeiTForImageClassification", hf.DeiTImageProcessor(**crop, resample=3, **even)),
        "dinov2": lambda: (hf.Dinov2Config(**vit, image_size=224), "Dinov2Model", hf.ViTImageProcessor(**square)),
        "dpt": lambda: (
            hf.DPTConfig(**vit, image_size=224, backbone_out_indices=[0, 1, 2], neck_hidden_sizes=[24, 48, 96], fusion_hidden_size=48,
                         reassemble_factors=[2, 1, 0.5], is_hybrid=False),
            "DPTForDepthEstimation", hf.DPTImageProcessor(size={"height": 230, "width": 230}, ensure_multiple_of=32, resample=3, **even),
        ),
    }  # fmt: skip
    config, architecture, processor = made[name]()
    config.architectures = [architecture]
    folder = root / name
    config.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
