"""Helpers for parity tests: pictures, weights that can be compared, and the C++ program that runs them."""

import atexit
import os
import pathlib
import subprocess
import tempfile
from typing import IO

import torch
from safetensors.torch import load_file, save_file
from torch import nn

RUN_MODEL = pathlib.Path(os.environ.get("SACCADE_BUILD_DIR", "build/release")) / "tests" / "saccade_run_model"


def multiplies_bfloat16() -> bool:
    """Whether this machine's processor does so itself, without which the CPU does not serve in bf16."""
    return "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()


def multiplies_int8() -> bool:
    """Whether this machine's processor sums products of bytes itself, without which the CPU does not serve in int8."""
    return "vnni" in pathlib.Path("/proc/cpuinfo").read_text()


def save(network: nn.Module, path: pathlib.Path) -> pathlib.Path:
    """Writes the state_dict as safetensors. Tensors that share memory are written twice."""
    save_file({name: tensor.contiguous().clone() for name, tensor in network.state_dict().items()}, str(path))
    return path


def smooth_noise(count: int, sides: tuple[int, ...], generator: torch.Generator, channels: int = 3, noise: float = 0.2,
                 grain: int = 8) -> torch.Tensor:
    """Returns smooth noise of order one, [count, channels, *sides], for pictures, clips or volumes."""
    coarse = torch.randn(count, channels, *(max(2, side // grain) for side in sides), generator=generator)
    smooth = nn.functional.interpolate(coarse, size=sides, mode={2: "bilinear", 3: "trilinear"}[len(sides)])
    return smooth + noise * torch.randn(count, channels, *sides, generator=generator)


def smooth_pictures(count: int, height: int, width: int, generator: torch.Generator, channels: int = 3,
                    noise: float = 0.2, grain: int = 8) -> torch.Tensor:
    """Returns smooth pictures, as photographs are."""
    return smooth_noise(count, (height, width), generator, channels, noise, grain)


def settle(network: nn.Module, batches, run=None) -> nn.Module:
    """Sets batch norms to the statistics of these batches, as training would, so that each layer's signal is of order
    one. `run` replaces the call of the network if its forward pass in training mode does not run all batch norms."""
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = None  # a plain mean over the batches, without the initial values
            module.reset_running_stats()
    network.train()
    with torch.no_grad():
        for batch in batches:
            (run or network)(batch)
    return network.eval()


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Error relative to the difference between pictures, as parts that they share (mostly biases) are easy to get
    right."""
    assert (expected[0] - expected[1]).norm() > 1e-2 * expected[0].norm()
    return ((got.double() - expected).norm() / (expected - expected.mean(dim=0)).norm()).item()


def grown(buckets: str, height: int, width: int) -> tuple[int, int]:
    """Returns the bucket for a scaled picture, from a grid ("stride:32") or a list ("800x1344,1344x800")."""
    if buckets.startswith("stride:"):
        stride = int(buckets.removeprefix("stride:"))
        return -(-height // stride) * stride, -(-width // stride) * stride
    sizes = [tuple(int(side) for side in size.split("x")) for size in buckets.split(",")]
    return min((size for size in sizes if size[0] >= height and size[1] >= width), key=lambda size: size[0] * size[1])


def place(height: int, width: int, short_side: int = 0, long_side: int = 0, buckets: str = "stride:1") -> list[int]:
    """Returns a row of `placements`, as in models/api/placement.h for Fit::kKeepRatio; with short_side 0 pictures are only
    scaled down to long_side. The arithmetic is that of torchvision's GeneralizedRCNNTransform."""
    to_short = short_side / min(height, width) if short_side else 1.0
    factor = min(to_short, long_side / max(height, width)) if long_side else to_short
    scaled = int(height * factor), int(width * factor)
    return [height, width, *scaled, *grown(buckets, *scaled)]


def padded(pictures: list[torch.Tensor], placements: list[list[int]]) -> torch.Tensor:
    """Returns one batch of scaled pictures [C, h, w], padded with zeros."""
    batch = torch.zeros(len(pictures), pictures[0].shape[0], *placements[0][4:])
    for sample, picture in zip(batch, pictures):
        sample[:, :picture.shape[1], :picture.shape[2]] = picture
    return batch


def whole(pixels: torch.Tensor) -> list[list[int]]:
    """Returns the rows of `placements` of items that are as large as their batch."""
    depths = list(pixels.shape[2:-2]) * 2  # clips and volumes only
    return [[*pixels.shape[-2:]] * 3 + depths] * len(pixels)


def save_batch(path: pathlib.Path, pixels: torch.Tensor, placements):
    """Writes a batch file as the C++ programs read it (models/tools/batch_file.h)."""
    save_file({"pixels": pixels.float().contiguous(), "placements": torch.as_tensor(placements, dtype=torch.float64)},
              str(path))


class Runner:
    """The C++ program, which runs one model after another. A run that ends the process is answered by its exit code, and the
    next run starts another. Its processes have the number of threads that OMP_NUM_THREADS says when they start."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._errors: IO[bytes] | None = None

    def run(self, arguments: list[str]) -> subprocess.CompletedProcess:
        if self._process is None:
            self._start()
        self._errors.seek(0)
        self._errors.truncate()
        self._process.stdin.write("\t".join(arguments) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        code = int(answer) if answer else self._end()
        self._errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, stderr=self._errors.read().decode())

    def _start(self) -> None:
        # The program adds to the end of the file, which each run empties.
        if self._errors is None:
            self._errors = tempfile.TemporaryFile("ab+")
        self._process = subprocess.Popen([RUN_MODEL, "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors, text=True)
        # The program ends when its stdin does.
        atexit.register(self._process.stdin.close)

    def _end(self) -> int:
        code = self._process.wait()
        self._process = None
        return code


# By the number of threads: it takes longer to start a process than to run a small model.
RUNNERS: dict[str | None, Runner] = {}


def run_model(folder: pathlib.Path, architecture: str, weights: pathlib.Path, pixels: torch.Tensor, placements,
              options: dict, flags: tuple[str, ...] = (), output: str = "output") -> subprocess.CompletedProcess:
    """Runs the C++ program (models/tools/run_model.cc); its output file is FOLDER/OUTPUT."""
    save_batch(folder / "input", pixels, placements)
    arguments = [architecture, str(weights), str(folder / "input"), str(folder / output), *flags]
    arguments += [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items()]
    return RUNNERS.setdefault(os.environ.get("OMP_NUM_THREADS"), Runner()).run(arguments)


def served(folder: pathlib.Path, architecture: str, weights: pathlib.Path, pixels: torch.Tensor, placements,
           options: dict, paste: bool = False) -> list[dict[str, torch.Tensor]]:
    """Returns the C++ side's result for each picture: {"logits"}; {"boxes", "scores", "labels", "masks"} and, with
    `paste`, "pasted"; {"label_map", "areas"}; {"disparity"}; {"segments", "scores", "labels"}; or {"restored"}.
    `placements` are [B, 6], rows of `place`; for clips and volumes [B, 8], ending with the depths as sent and as
    taken."""
    ran = run_model(folder, architecture, weights, pixels, placements, options, ("--paste",) if paste else ())
    assert ran.returncode == 0, ran.stderr
    results: list[dict[str, torch.Tensor]] = [{} for _ in range(len(pixels))]
    for name, tensor in load_file(str(folder / "output")).items():
        picture, part = name.split(".")
        results[int(picture)][part] = tensor.long() if part in ("labels", "label_map", "areas") else tensor.clone()
    return results
