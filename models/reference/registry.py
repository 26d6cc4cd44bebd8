"""Networks by the names and options that the daemon knows them by."""

from torch import nn

from models.reference.sanet import SaNet

ARCHITECTURES = {"sanet": SaNet}


def build(architecture: str, **options) -> nn.Module:
    """Makes a network with fresh weights. Options may be text, as they stand in config.pbtxt, or Python values."""
    if architecture not in ARCHITECTURES:
        raise ValueError(f"unknown architecture '{architecture}'; there are: {', '.join(sorted(ARCHITECTURES))}")
    return ARCHITECTURES[architecture](**options)
