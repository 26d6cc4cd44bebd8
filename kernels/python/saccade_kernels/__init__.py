"""Saccade's attention operators. Importing this module registers them as torch.ops.saccade, which is also `ops`."""

import pathlib

import torch

# The only minor version of torch that the library works with; pyproject.toml declares the same.
TORCH = "2.11"

if torch.__version__.split(".")[:2] != TORCH.split("."):
    raise ImportError(
        f"saccade-kernels is compiled for torch {TORCH}, and this is torch {torch.__version__}; "
        f"install torch=={TORCH}.*, or the version of saccade-kernels for your torch"
    )

torch.ops.load_library(pathlib.Path(__file__).with_name("libsaccade_kernels.so"))
ops = torch.ops.saccade
