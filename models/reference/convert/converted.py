"""What a conversion gives."""

import dataclasses
import re
from collections.abc import Callable, Sequence

import torch

State = dict[str, torch.Tensor]
# A pattern of a whole name, and what replaces it, as re.sub takes it.
Rule = tuple[str, str | Callable[[re.Match[str]], str]]


@dataclasses.dataclass
class Converted:
    """`left`: tensors of the file that the network has no place for, with the reason. `options`: what the tensors say about
    the network. `notes`: what differs although the tensors fit."""

    state: State = dataclasses.field(default_factory=dict)
    left: dict[str, str] = dataclasses.field(default_factory=dict)
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)


def renamed(name: str, rules: Sequence[Rule]) -> str | None:
    """The name by the first rule that matches all of it; None if none does."""
    for pattern, replacement in rules:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, replacement, name)
    return None


def by_rules(source: State, rules: Sequence[Rule], layout: str) -> Converted:
    """Renames every tensor. Counters of batch norms are dropped: they matter in training alone."""
    found = Converted()
    for name, tensor in source.items():
        new = renamed(name, rules)
        if name.endswith(".num_batches_tracked"):
            continue
        if new is None:
            found.left[name] = f"is not a name of {layout}"
        elif new in found.state:
            found.left[name] = f"would be {new}, which another tensor is already"
        else:
            found.state[new] = tensor
    return found
