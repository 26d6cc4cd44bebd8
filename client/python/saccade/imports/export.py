"""Turns a program into TorchScript, and compares it with the module that it was made from."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from saccade.imports.failures import ImportFailure
from saccade.imports.network import Network

# Allowed difference, as a share of the largest value: scripted and eager code add in the same order but may be fused
# differently.
_TOLERANCE = 1e-4


def _first(example: tuple[torch.Tensor, ...], rows: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.cat([one, one])[:rows] for one in example)


def _flat(outputs: Any) -> list[torch.Tensor]:
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    if isinstance(outputs, dict):
        return list(outputs.values())
    return list(outputs)


def _compile(network: Network) -> torch.jit.ScriptModule:
    with warnings.catch_warnings():
        # Tracing warns of every Python number; what matters is checked below.
        warnings.simplefilter("ignore")
        if network.scripted:
            try:
                return torch.jit.script(network.program)
            except (RuntimeError, torch.jit.frontend.NotSupportedError) as error:
                if len(network.example) > 1:
                    raise ImportFailure(f"{network.source} cannot be scripted, as detectors have to be: {error}") from None
        try:
            # Traced with two pictures, so that the number of them is not taken for a constant 1.
            return torch.jit.trace(network.program, network.example, check_trace=False, strict=False)
        except Exception as error:
            raise ImportFailure(f"{network.source} can neither be scripted nor traced: {error}") from None


def _check_rows(network: Network, script: torch.jit.ScriptModule) -> None:
    """Compares the rows of batches of 1, 2 and 3 with those that the module itself gives."""
    for rows in (1, 2, 3):
        inputs = _first(network.example, rows)
        try:
            found = _flat(script(*inputs))
        except RuntimeError as error:
            raise ImportFailure(f"{network.source}: the exported program fails with a batch of {rows}: {error}") from None
        if len(inputs) > 1:
            # A detector's module alone returns no losses, and so cannot be run; its rows are compared with each other.
            expected = [torch.cat([one, one])[:rows] for one in _flat(script(*_first(network.example, 2)))]
        else:
            expected = _flat(network.program(*inputs))
        for one, other in zip(found, expected):
            limit = _TOLERANCE * max(1e-3, float(other.abs().max())) if other.numel() else 0.0
            if one.shape != other.shape or float((one - other).abs().max()) > limit:
                raise ImportFailure(
                    f"{network.source}: the exported program gives other numbers than the network with a batch of {rows}; "
                    "it may have turned the batch's size into a constant, so it cannot be imported"
                )


def export(network: Network) -> torch.jit.ScriptModule:
    """Returns the program as TorchScript. Raises ImportFailure if it cannot be exported or does not give the same."""
    with torch.inference_mode():
        script = _compile(network)
        _check_rows(network, script)
    return script
