"""Converts weights of public implementations to the names of the served networks: `python -m models.reference.convert`."""

from models.reference.convert.layouts import LAYOUTS, Converted, convert
from models.reference.convert.network import Misfit, misfits

__all__ = ["LAYOUTS", "Converted", "Misfit", "convert", "misfits"]
