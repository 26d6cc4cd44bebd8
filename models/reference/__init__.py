"""The networks in plain PyTorch: the reference for the parity tests, and for training."""

from models.reference.registry import ARCHITECTURES, build

__all__ = ["ARCHITECTURES", "build"]
