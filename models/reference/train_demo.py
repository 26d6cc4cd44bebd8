"""Trains the demo model, a narrow SANet that tells drawn shapes apart, and writes what the demo serves.

    python -m models.reference.train_demo [--output models/demo] [--steps 1150]

One thread, some minutes. Prints the accuracy on held-out pictures, which the network sees as the daemon would
show them: drawn larger, resized and cropped.
"""

import argparse
import itertools
import pathlib
import time

import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

from models.reference import build
from models.reference.shapes import CROP, LABELS, draw

WIDTH, INPUT_SIZE = 0.25, 64
MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
CONFIG = """name: "sanet_shapes"
backend: "saccade"
max_batch_size: 8
"""
PARAMETERS = {"architecture": "sanet", "classes": len(LABELS), "width": WIDTH, "input_size": INPUT_SIZE,
              "labels": "labels.txt"}


def held_out(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """8-bit pictures, 160 pixels a side, as a client would send them."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % len(LABELS)
    return (draw(labels, 160, generator, extent=1 / CROP) * 255).round().to(torch.uint8), labels


def prepare(pictures: torch.Tensor) -> torch.Tensor:
    resized = torchvision.transforms.functional.resize(pictures, round(INPUT_SIZE / CROP), antialias=True)
    cropped = torchvision.transforms.functional.center_crop(resized, INPUT_SIZE)
    return (cropped.float() / 255 - MEAN) / STD


@torch.inference_mode()
def accuracy(network: nn.Module, pictures: torch.Tensor, labels: torch.Tensor) -> float:
    network.eval()
    guesses = torch.cat([network(prepare(chunk)).argmax(dim=1) for chunk in pictures.split(100)])
    return (guesses == labels).float().mean().item()


def train(steps: int, batch: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    network = build("sanet", classes=len(LABELS), width=WIDTH, input_size=INPUT_SIZE)
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps)
    start = time.monotonic()
    network.train()
    for step in range(steps):
        labels = torch.randint(len(LABELS), (batch,), generator=generator)
        loss = nn.functional.cross_entropy(network((draw(labels, INPUT_SIZE, generator) - MEAN) / STD), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}/{steps}  loss {loss.item():.3f}  {time.monotonic() - start:.0f} s", flush=True)
    return network


def write_model(network: nn.Module, model: pathlib.Path):
    (model / "1").mkdir(parents=True, exist_ok=True)
    state = {name: tensor for name, tensor in network.state_dict().items() if not name.endswith("num_batches_tracked")}
    weights = model / "1" / "weights.safetensors"
    save_file(state, str(weights))
    weights.chmod(0o644)  # the library leaves it to its owner alone
    (model / "labels.txt").write_text("\n".join(LABELS) + "\n")
    parameters = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in PARAMETERS.items())
    (model / "config.pbtxt").write_text(CONFIG + parameters)


def write_pictures(network: nn.Module, folder: pathlib.Path):
    """One JPEG of each label, from the first set that the network knows whole: a demo shows what an answer looks
    like; how often it is right is what the accuracy tells."""
    labels = torch.arange(len(LABELS))
    for seed in itertools.count(2024):
        pictures = (draw(labels, 240, torch.Generator().manual_seed(seed), extent=1 / CROP) * 255).round()
        encoded = [torchvision.io.encode_jpeg(picture, quality=90) for picture in pictures.to(torch.uint8)]
        decoded = torch.stack([torchvision.io.decode_jpeg(jpeg) for jpeg in encoded])
        if accuracy(network, decoded, labels) == 1:
            break
    folder.mkdir(exist_ok=True)
    for name, jpeg in zip(LABELS, encoded):
        torchvision.io.write_file(str(folder / f"{name}.jpg"), jpeg)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("models/demo"))
    parser.add_argument("--steps", type=int, default=1150)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    network = train(options.steps, options.batch, options.seed)
    print(f"accuracy on 2000 held-out pictures: {accuracy(network, *held_out(2000, options.seed + 1)):.4f}")
    write_model(network, options.output / "repository" / "sanet_shapes")
    write_pictures(network, options.output / "pictures")


if __name__ == "__main__":
    main()
