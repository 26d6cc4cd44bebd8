"""Small models generated at run time: random weights of the PyTorch reference, in a model repository."""

import numpy
import safetensors.torch
import torch
from torch.nn import BatchNorm2d

from models.reference import build
from models.reference.served import settle, smooth_pictures

# Leaves the cores to the daemon under test.
torch.set_num_threads(1)

MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32)[:, None, None]
STD = numpy.array([0.229, 0.224, 0.225], numpy.float32)[:, None, None]


class TinyModel:
    """A quarter-width network with random weights, and its results in PyTorch."""

    architecture = "sanet"

    def __init__(self, classes, seed, width="0.25", size=56):
        self.height = self.width = size
        # The training ratio: 224 of 256.
        self.resize = size * 8 // 7
        self.classes = classes
        self.labels = [f"class {index}" for index in range(classes)]
        self.options = {"classes": str(classes), "width": width, "input_size": str(self.height)}
        torch.manual_seed(seed)
        self.network = build("sanet", **self.options)
        self._settle()

    def _settle(self):
        """Sets the statistics of the batch norms from data, as after training. Fresh batch norms are the identity,
        which would hide errors in them, and let the attention's sums over all positions grow until fp32 exceeds the
        tests' tolerance. For the same reason, batch norms in the attention get smaller weights."""
        norms = {name: module for name, module in self.network.named_modules() if isinstance(module, BatchNorm2d)}
        with torch.no_grad():
            for name, norm in norms.items():
                norm.weight.uniform_(0.5, 1.5).mul_(0.2 if "attention" in name else 1)
                norm.bias.uniform_(-0.5, 0.5)
                norm.momentum = None
            self.network.train()(torch.randn(8, 3, self.height, self.width))
            self.network.eval()

    def state(self):
        return {name: tensor.contiguous() for name, tensor in self.network.state_dict().items()}

    def random_batch(self, count, seed):
        values = numpy.random.default_rng(seed).standard_normal((count, 3, self.height, self.width))
        return values.astype(numpy.float32)

    def prepared(self, pictures):
        """The input tensor of pictures whose shorter side is `resize`, so that only cropping is left."""
        batch = []
        for picture in pictures:
            top, left = ((size - kept) // 2 for size, kept in zip(picture.shape, (self.height, self.width)))
            cropped = picture[top : top + self.height, left : left + self.width].transpose(2, 0, 1)
            batch.append((cropped.astype(numpy.float32) / 255 - MEAN) / STD)
        return numpy.stack(batch)

    def logits(self, batch):
        with torch.inference_mode():
            return self.network(torch.from_numpy(batch)).numpy()


class TinyTask:
    """A narrow network of another task than classification: random weights, and batch norms set from noise, so that
    results differ between pictures and positions. The parity tests check the results themselves."""

    def __init__(self, architecture, labels, seed, channels=3, settled_part=lambda network: network, batch=None,
                 **options):
        self.architecture = architecture
        self.labels = labels
        self.options = {**({"classes": str(len(labels))} if labels else {}), **options}
        torch.manual_seed(seed)
        self.network = build(architecture, **self.options)
        if batch is None:
            batch = smooth_pictures(4, 64, 96, torch.Generator().manual_seed(seed), channels=channels)
        settle(self.network, [batch], run=settled_part(self.network))

    def state(self):
        return {name: tensor.contiguous().clone() for name, tensor in self.network.state_dict().items()}


def tiny_detector(**options):
    """At most ten detections of four classes, in pictures scaled to at most 64 x 128 pixels."""
    labels = ["background", "cat", "dog", "bird", "cow"]
    sizes = {"width": "0.125", "blocks": "1,1,1,1", "short_side": "64", "long_side": "128"}
    amounts = {"detections": "10", "proposals": "50", "score_threshold": "0.05"}
    # Its heads have no batch norms, and need the ground truth in training mode.
    return TinyTask("ea_mask_rcnn_r50", labels, seed=3, settled_part=lambda network: network.backbone,
                    **{**sizes, **amounts, **options})


def tiny_segmenter():
    labels = ["background", "car", "bus", "road", "sky"]
    return TinyTask("deeplabv2_kao_kv", labels, seed=4, width="0.125", blocks="1,1,1,1", head_channels="16",
                    long_side="128")


def tiny_stereo():
    return TinyTask("ea_psmnet", [], seed=5, channels=6, width="0.25", max_disparity="16", long_side="128")


def smooth_volumes(count, channels, depth, height, width, seed):
    """Smooth three-dimensional noise of magnitude one."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, channels, depth // 4 + 2, height // 8 + 2, width // 8 + 2, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(depth, height, width), mode="trilinear")
    return smooth + 0.2 * torch.randn(count, channels, depth, height, width, generator=generator)


def tiny_actions():
    """Actions of three classes in clips of at most 48 frames of 32 pixels, at ten frames per second."""
    sizes = {"width": "0.25", "blocks": "1,1,1,1", "size": "32", "frames": "48", "anchors": "1,2,4"}
    amounts = {"frames_per_second": "10", "score_threshold": "0.05", "detections": "8", "proposals": "50"}
    clips = smooth_volumes(2, 3, 48, 32, 32, seed=6)
    made = TinyTask("ea_rc3d", ["background", "dive", "throw", "vault"], seed=9, batch=clips,
                    settled_part=lambda network: lambda batch: network(batch, [48] * len(batch)), **sizes, **amounts)
    with torch.no_grad():
        for name, parameter in made.network.named_parameters():
            if name.endswith(("cls_logits.weight", "cls_score.weight")):
                parameter.normal_(0, 0.08)
    return made


def tiny_restorer(architecture="unet3d_sao_denoise", **options):
    volumes = 400 + 120 * smooth_volumes(2, 1, 12, 24, 24, seed=7)
    made = TinyTask(architecture, [], seed=7, batch=volumes, width="0.25", **options)
    with torch.no_grad():
        for name, parameter in made.network.named_parameters():
            # At full strength, untrained attention grows from block to block.
            if name.endswith("attention.bn.weight"):
                parameter.fill_(0.1)
    return made


class Identity:
    """No network: it returns the volumes that it receives, and behaves as its options say."""

    architecture = "identity"
    labels = ()

    def __init__(self, **options):
        self.options = options

    def state(self):
        return {}


def write_cached(root, name, model, **config):
    """Like write_model(), with a response cache."""
    weights = write_model(root, name, model, **config)
    with open(root / name / "config.pbtxt", "a") as file:
        file.write("response_cache { enable: true }\n")
    return weights


def assert_close(found, expected):
    """Checks that the values agree within 1e-4 of the largest expected value, which the project guarantees for fp32."""
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    assert found.shape == expected.shape
    worst = numpy.abs(found - expected).max() / numpy.abs(expected).max()
    assert worst <= 1e-4, f"off by {worst:.2e} of the largest value"


def write_config(folder, model, max_batch_size=8, instances=1, parameters=None, **batching):
    """`batching` are fields of dynamic_batching: numbers, or messages in braces."""
    parameters = {"architecture": model.architecture, **model.options, **(parameters or {})}
    lines = ['backend: "saccade"', f"max_batch_size: {max_batch_size}", f"instance_group {{ count: {instances} }}"]
    fields = [f"{name}{' ' if str(value).startswith('{') else ': '}{value}" for name, value in batching.items()]
    if fields:
        lines.append(f"dynamic_batching {{ {' '.join(fields)} }}")
    for key, value in parameters.items():
        lines.append(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}')
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")


def write_model(root, name, model, **config):
    """Writes the model to ROOT/NAME; returns the path of its weights."""
    folder = root / name
    (folder / "1").mkdir(parents=True)
    write_config(folder, model, **config)
    if model.labels:
        (folder / "labels.txt").write_text("\n".join(model.labels) + "\n")
    weights = folder / "1" / "weights.safetensors"
    safetensors.torch.save_file(model.state(), weights)
    return weights
