"""Small models made on the fly: random weights from the PyTorch reference, in a model repository."""

import numpy
import safetensors.torch
import torch
from torch.nn import BatchNorm2d

from models.reference import build

# The daemon under test needs the cores more than its oracle does.
torch.set_num_threads(1)

MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32)[:, None, None]
STD = numpy.array([0.229, 0.224, 0.225], numpy.float32)[:, None, None]


class TinyModel:
    """A network of quarter width, its weights by seed, and what it answers according to PyTorch."""

    def __init__(self, classes, seed, width="0.25", size=56):
        self.height = self.width = size
        # 224 of 256 is what networks are trained with.
        self.resize = size * 8 // 7
        self.classes = classes
        self.labels = [f"class {index}" for index in range(classes)]
        self.options = {"classes": str(classes), "width": width, "input_size": str(self.height)}
        torch.manual_seed(seed)
        self.network = build("sanet", **self.options)
        self._settle()

    def _settle(self):
        """Batch norms get the statistics of what passes through them, as after training. Fresh ones are the
        identity, which would hide a wrong one, and let the attention's sums over all positions grow until fp32
        itself is off by more than the tests allow; those also weigh less here for that reason."""
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
        """The input tensor of pictures whose shorter side is `resize` already, so that only cropping is left."""
        batch = []
        for picture in pictures:
            top, left = ((size - kept) // 2 for size, kept in zip(picture.shape, (self.height, self.width)))
            cropped = picture[top : top + self.height, left : left + self.width].transpose(2, 0, 1)
            batch.append((cropped.astype(numpy.float32) / 255 - MEAN) / STD)
        return numpy.stack(batch)

    def logits(self, batch):
        with torch.inference_mode():
            return self.network(torch.from_numpy(batch)).numpy()


def assert_close(found, expected):
    """Within 1e-4 of the largest expected value: what the project promises of fp32."""
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    assert found.shape == expected.shape
    worst = numpy.abs(found - expected).max() / numpy.abs(expected).max()
    assert worst <= 1e-4, f"off by {worst:.2e} of the largest value"


def write_config(folder, model, max_batch_size=8, **batching):
    """`batching` are fields of dynamic_batching: numbers, or messages in braces."""
    parameters = {"architecture": "sanet", **model.options}
    lines = ['backend: "saccade"', f"max_batch_size: {max_batch_size}"]
    fields = [f"{name}{' ' if str(value).startswith('{') else ': '}{value}" for name, value in batching.items()]
    if fields:
        lines.append(f"dynamic_batching {{ {' '.join(fields)} }}")
    for key, value in parameters.items():
        lines.append(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}')
    (folder / "config.pbtxt").write_text("\n".join(lines) + "\n")


def write_model(root, name, model, **config):
    """Makes ROOT/NAME; returns the path of its weights."""
    folder = root / name
    (folder / "1").mkdir(parents=True)
    write_config(folder, model, **config)
    (folder / "labels.txt").write_text("\n".join(model.labels) + "\n")
    weights = folder / "1" / "weights.safetensors"
    safetensors.torch.save_file(model.state(), weights)
    return weights
