"""Compares converted tensors with the network that is to have them."""

import dataclasses

import torch

from models.reference.convert.converted import State
from models.reference.registry import build


@dataclasses.dataclass(frozen=True)
class Misfit:
    name: str
    reason: str


def misfits(state: State, architecture: str, options: dict[str, str]) -> list[Misfit]:
    """What the network lacks, has in another shape, or does not have. Raises ValueError for options that it does not take."""
    with torch.device("meta"):
        expected = build(architecture, **options).state_dict()
    found = []
    for name, tensor in expected.items():
        if name.endswith(".num_batches_tracked"):
            continue
        if name not in state:
            found.append(Misfit(name, f"is missing; expected a tensor of shape {tuple(tensor.shape)}"))
        elif state[name].shape != tensor.shape:
            found.append(Misfit(name, f"has the shape {tuple(state[name].shape)}; expected {tuple(tensor.shape)}"))
    found += [Misfit(name, f"is no tensor of {architecture} with these options") for name in state if name not in expected]
    return found
