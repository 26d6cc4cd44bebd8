"""What a processor of transformers does with a picture, as saccade.json says it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import functional

from saccade.imports.failures import ImportFailure

_SIDES = ("height", "width", "shortest_edge", "longest_edge")
_FILTERS = {2: "bilinear", 3: "bicubic"}
# Switches of processors that do what saccade.json cannot say.
_REFUSED = ("do_thumbnail", "do_align_long_axis", "do_color_quantize", "do_split_image", "rescale_offset")
# ConvNext's processor does not crop at this size and above.
_UNCROPPED_SIDE = 384
# YOLOS' processor rounds both sides down to multiples of this, if it scales to a shortest edge.
_YOLOS_MULTIPLE = 16
# Height and width of the pictures on which a description is compared with its processor. Some lie and some stand, and some are
# larger than most networks' inputs.
_TRIALS = ((230, 330), (330, 230), (900, 1210), (1210, 900))
# Largest difference of an input's values that is taken for rounding: processors round differently, but by less.
_TRIAL_TOLERANCE = 0.02


class _Reader:
    """Reads one processor's attributes. Every error names the attribute and its value."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor
        self.name = type(processor).__name__

    def get(self, key: str, default: Any = None) -> Any:
        found = getattr(self.processor, key, None)
        return default if found is None else found

    def refuse(self, key: str, expected: str) -> ImportFailure:
        value = self.get(key)
        shown = {side: _side(value, side) for side in _SIDES if _side(value, side)} or value
        return ImportFailure(
            f"{self.name}: {key} is {shown}; expected {expected}, or write a saccade.json and import the network's file "
            "with --description"
        )

    def size(self, key: str) -> dict[str, int]:
        given = self.get(key)
        if given is None:
            raise self.refuse(key, "a height and a width")
        found = {side: int(_side(given, side)) for side in _SIDES if _side(given, side)}
        if not ({"height", "width"} <= found.keys()) ^ ("shortest_edge" in found):
            raise self.refuse(key, "a height and a width, or a shortest_edge")
        return found


def _side(size: Any, name: str) -> Any:
    return size.get(name) if isinstance(size, dict) else getattr(size, name, None)


def _crop_of_share(reader: _Reader) -> dict[str, Any]:
    """ConvNext: below 384 the centre is `crop_pct` of the shorter side; from there on nothing is cropped."""
    side = reader.size("size").get("shortest_edge")
    if side is None:
        raise reader.refuse("size", "a shortest_edge with crop_pct")
    if side >= _UNCROPPED_SIDE:
        return {"resize": "exact", "size": [side, side]}
    return {"resize": "shorter", "size": int(side / reader.get("crop_pct")), "crop": [side, side]}


def _multiple(reader: _Reader) -> dict[str, Any]:
    """DPT: the size is rounded to multiples. With keep_aspect_ratio, that is done for each picture."""
    size, multiple = reader.size("size"), reader.get("ensure_multiple_of")
    sides = [size.get("height", 0), size.get("width", 0)]
    if not all(sides):
        raise reader.refuse("size", "a height and a width with ensure_multiple_of")
    if reader.get("keep_aspect_ratio"):
        if multiple > min(sides):
            raise reader.refuse("ensure_multiple_of", f"at most the size {sides}")
        return {"resize": "either", "size": sides, "multiple": multiple}
    rounded = [round(side / multiple) * multiple for side in sides]
    # The processor computes the side in floating-point numbers, so a half may go either way.
    if any(side % multiple * 2 == multiple for side in sides) or not all(rounded):
        raise reader.refuse("ensure_multiple_of", f"a number that divides the size {sides}")
    return {"resize": "exact", "size": [int(side) for side in rounded]}


def _resize(reader: _Reader) -> dict[str, Any]:
    if not reader.get("do_resize"):
        raise reader.refuse("do_resize", "a processor that resizes pictures")
    if reader.get("crop_pct") is not None and reader.name.startswith("ConvNext"):
        return _crop_of_share(reader)
    if reader.get("keep_aspect_ratio") and not reader.name.startswith("DPT"):
        raise reader.refuse("keep_aspect_ratio", "false with this processor")
    if reader.get("ensure_multiple_of", 1) != 1 or reader.get("keep_aspect_ratio"):
        return _multiple(reader)
    size = reader.size("size")
    if reader.get("do_center_crop"):
        crop = reader.size("crop_size")
        sides = [crop.get("height"), crop.get("width")]
        least = [size.get("height", size.get("shortest_edge")), size.get("width", size.get("shortest_edge"))]
        if "longest_edge" in size or None in sides or any(side > most for side, most in zip(sides, least)):
            raise reader.refuse("crop_size", f"a height and a width within the size {size}, which has no longest_edge")
        if "height" not in size:
            return {"resize": "shorter", "size": size["shortest_edge"], "crop": sides}
        return {"resize": "exact", "size": least} | ({} if sides == least else {"crop": sides})
    if "height" in size:
        return {"resize": "exact", "size": [size["height"], size["width"]]}
    taken = {"resize": "shorter", "size": size["shortest_edge"]}
    if "longest_edge" in size:
        taken["max_size"] = max(size["longest_edge"], size["shortest_edge"])
    if reader.name.startswith("Yolos"):
        if size["shortest_edge"] < _YOLOS_MULTIPLE:
            raise reader.refuse("size", f"a shortest_edge of at least {_YOLOS_MULTIPLE}, of which both sides are multiples")
        taken["multiple"] = _YOLOS_MULTIPLE
    return taken


def _size_of(described: dict[str, Any], height: int, width: int) -> list[int]:
    """Returns the size to which the daemon scales a picture."""
    size, multiple = described["size"], described.get("multiple", 1)
    if described["resize"] == "exact":
        return list(size)
    if described["resize"] == "either":
        factor = min((size[0] / height, size[1] / width), key=lambda one: abs(1 - one))
        return [max(1, round(factor * side / multiple)) * multiple for side in (height, width)]
    shorter, longer = min(height, width), max(height, width)
    side = min(float(size), described.get("max_size", float("inf")) * shorter / longer)
    pair = [max(one - one % multiple, multiple) for one in (round(side), int(side * longer / shorter + 1e-6))]
    return pair if height <= width else pair[::-1]


def _resized(picture: Tensor, described: dict[str, Any]) -> Tensor:
    mode = getattr(functional.InterpolationMode, described["filter"].upper())
    return functional.resize(picture, _size_of(described, *picture.shape[1:]), interpolation=mode, antialias=True)


def _described(picture: Tensor, described: dict[str, Any]) -> Tensor:
    """What the daemon makes of a picture from 0 to 1, apart from rounding."""
    made = _resized(picture, described)
    if "crop" in described:
        height, width = described["crop"]
        top, left = ((whole - part) / 2 for whole, part in zip(made.shape[1:], (height, width)))
        nearest = int if described.get("rounding") == "down" else round
        made = functional.crop(made, nearest(top), nearest(left), height, width)
    made = made * (255 * described["scale"])
    if described.get("colour") == "bgr":
        made = made.flip(0)
    if "mean" in described:
        made = functional.normalize(made, described["mean"], described["std"])
    return made


def _trial(height: int, width: int) -> Tensor:
    """A picture whose channels differ and rise slowly, so that the filter's kind and an odd pixel make little difference."""
    rows = torch.linspace(0, 1, height)[:, None].expand(height, width)
    columns = torch.linspace(0, 1, width)[None].expand(height, width)
    return 0.25 + 0.5 * torch.stack([rows, columns, (rows + columns) / 2])


def _crop_rounding(reader: _Reader, described: dict[str, Any]) -> str:
    """Returns how the processor rounds half a pixel beside the centre. That makes a difference for one of four widths."""
    height, width = _TRIALS[0]
    for more in range(16):
        picture = _trial(height, width + more)
        even, down = (_described(picture, {**described, "rounding": rounding}) for rounding in ("even", "down"))
        if not torch.equal(even, down):
            theirs = reader.processor(images=picture * 255, return_tensors="pt")["pixel_values"][0]
            return "down" if (theirs - down).abs().max() <= (theirs - even).abs().max() else "even"
    return "down"


def _compare(reader: _Reader, described: dict[str, Any]) -> None:
    """Raises ImportFailure if the processor does something that its description does not say."""
    keys = "size, crop_size, resample, rescale_factor, image_mean and image_std"
    for height, width in _TRIALS:
        picture = _trial(height, width)
        theirs = reader.processor(images=picture * 255, return_tensors="pt")["pixel_values"][0]
        ours = _described(picture, described)
        if theirs.shape != ours.shape:
            raise ImportFailure(
                f"{reader.name} makes {list(theirs.shape)} of a picture of {height} x {width} pixels, but its {keys} say "
                f"{list(ours.shape)}; write a saccade.json and import the network's file with --description"
            )
        difference = float((theirs - ours).abs().max() / max(1e-9, float(ours.max() - ours.min())))
        if not difference <= _TRIAL_TOLERANCE:
            raise ImportFailure(
                f"{reader.name} prepares pictures otherwise than its {keys} say (numbers differ by {difference:.0%} of their "
                "range); write a saccade.json and import the network's file with --description"
            )


def prepares(processor: Any) -> tuple[dict[str, Any], tuple[int, int]]:
    """Returns what the processor does, as saccade.json says it, and the size of an example. Raises ImportFailure if it cannot be
    said, or if the processor does something else with a picture."""
    reader = _Reader(processor)
    for key in _REFUSED:
        if reader.get(key):
            raise reader.refuse(key, "false")
    for key in ("pad_size", "size_divisor"):
        if reader.get("do_pad") and reader.get(key) is not None:
            raise reader.refuse(key, "none with do_pad")
    described = _resize(reader)
    resample = int(reader.get("resample", 2))
    if resample not in _FILTERS:
        raise reader.refuse("resample", "2 (bilinear) or 3 (bicubic)")
    described["filter"] = _FILTERS[resample]
    described["scale"] = float(reader.get("rescale_factor", 1 / 255)) if reader.get("do_rescale") else 1.0
    if reader.get("do_normalize"):
        described["mean"] = [float(one) for one in reader.get("image_mean")]
        described["std"] = [float(one) for one in reader.get("image_std")]
    if reader.get("do_flip_channel_order"):
        described["colour"] = "bgr"
    _compare(reader, described)
    if "crop" in described:
        described["rounding"] = _crop_rounding(reader, described)
    if "crop" in described:
        height, width = described["crop"]
    elif isinstance(described["size"], list):
        height, width = _size_of(described, *described["size"])
    else:
        height, width = _size_of(described, 4 * described["size"], 5 * described["size"])
    return described, (height, width)
