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


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    limit = _TOLERANCE * max(1e-3, float(other.abs().max())) if other.numel() else 0.0
    return one.shape == other.shape and (other.numel() == 0 or float((one - other).abs().max()) <= limit)


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
        if not all(_alike(one, other) for one, other in zip(found, expected)):
            raise ImportFailure(
                f"{network.source}: the exported program gives other numbers than the network with a batch of {rows}; "
                "it may have turned the batch's size into a constant, so it cannot be imported"
            )


def _other_size(network: Network) -> tuple[int, int] | None:
    """Returns a size other than the example's that pictures may have; None if all have one size."""
    described = network.description["input"]
    if "crop" in described or described.get("resize", "exact") not in ("shorter", "longer", "either"):
        return None
    height, width = network.example[0].shape[2:]
    return (width, height) if height != width else (height, width + described.get("multiple", 1))


def _check_sizes(network: Network, script: torch.jit.ScriptModule) -> None:
    """Compares the outputs for pictures of another size with the module's own. Tracing may have turned sizes into constants."""
    size = _other_size(network)
    # A detector is scripted, and its module alone cannot be run.
    if size is None or len(network.example) > 1:
        return
    pictures = torch.nn.functional.interpolate(network.example[0], size, mode="bilinear")
    advice = (
        "export it as ONNX with dynamic sizes, and import that file with --description, or describe one size with \"resize\": \"exact\""
    )
    try:
        found, expected = _flat(script(pictures)), _flat(network.program(pictures))
    except RuntimeError as error:
        why = str(error).strip().splitlines()[-1]
        raise ImportFailure(f"{network.source} fails with pictures of {size[0]} x {size[1]} pixels: {why}; {advice}") from None
    if not all(_alike(one, other) for one, other in zip(found, expected)):
        raise ImportFailure(
            f"{network.source}: the exported program gives other numbers than the network for pictures of {size[0]} x {size[1]} "
            f"pixels, because the size of its example became a constant; {advice}"
        )


def export(network: Network) -> torch.jit.ScriptModule:
    """Returns the program as TorchScript. Raises ImportFailure if it cannot be exported or does not give the same."""
    with torch.inference_mode():
        script = _compile(network)
        _check_rows(network, script)
        _check_sizes(network, script)
    return script
