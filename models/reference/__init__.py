"""The networks in plain PyTorch: the oracle of the parity tests, and what people train with."""

from models.reference.registry import ARCHITECTURES, build

__all__ = ["ARCHITECTURES", "build"]
