"""Builds networks from where they are named: torchvision:NAME, timm:NAME, transformers:FOLDER."""

from __future__ import annotations

import importlib

from saccade.imports.failures import ImportFailure
from saccade.imports.folder import Record
from saccade.imports.network import Network

KINDS = ("torchvision", "timm", "transformers")


def build(record: Record) -> Network:
    """Builds the network anew. Raises ImportFailure if the source or its library is missing."""
    kind, separator, name = record.source.partition(":")
    if not separator or kind not in KINDS or not name:
        raise ImportFailure(
            f"'{record.source}' is no source; expected torchvision:NAME, timm:NAME, transformers:FOLDER, or a file .pt, .pt2 or .onnx"
        )
    try:
        module = importlib.import_module(f"saccade.imports.{kind}_networks")
    except ModuleNotFoundError as error:
        raise ImportFailure(
            f"{record.source} needs the package '{error.name}', which is not installed; run: pip install 'saccade[import]'"
        ) from None
    found: Network = module.build(name, record.weights, record.seed)
    return found
