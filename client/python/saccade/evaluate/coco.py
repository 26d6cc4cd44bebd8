"""COCO: average precision of boxes and masks, by pycocotools."""

from __future__ import annotations

import contextlib
import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from saccade import requests, types
from saccade.evaluate import files
from saccade.evaluate.dataset import Dataset, Figure, Options, Record, Sample, class_numbers
from saccade.evaluate.failures import EvaluateError

# The places of pycocotools' statistics for boxes and masks.
_STATISTICS = ("AP", "AP50", "AP75", "AP, small", "AP, medium", "AP, large")


class Coco(Dataset):
    """COCO's `annotations/instances_val2017.json` and `val2017`, or any set in this form (--split names it)."""

    name = "coco"
    task = "detection"
    definition = (
        "COCO's average precision, by pycocotools: the mean over overlaps of 0.50 to 0.95 and over classes, of at most 100 "
        "detections a picture. AP50 and AP75: at an overlap of 0.50 and 0.75; small, medium, large: of objects below 32 x 32 "
        "pixels, up to 96 x 96, and above."
    )

    def __init__(self, folder: pathlib.Path, options: Options) -> None:
        super().__init__(folder, options)
        self._truth: Any = None
        # From the model's class to COCO's category.
        self._categories: dict[int, int] = {}

    def samples(self, model: types.Model) -> list[Sample]:
        split = self.options.split or "val2017"
        path = files.file(self.folder / "annotations" / f"instances_{split}.json", "COCO's annotations")
        self._truth = _read(path)
        pictures = files.folder(self.folder / split, "COCO's pictures")
        self._categories = self._numbers(model)
        found = []
        for image in self._truth.loadImgs(sorted(self._truth.getImgIds())):
            name = str(image.get("file_name", ""))
            if not name or "/" in name or name.startswith("."):
                raise EvaluateError(f"{path} names the picture {name!r}; expected a file's name, without folders")
            picture = files.file(pictures / name, f"the picture of image {image['id']}")
            found.append(Sample(str(image["id"]), (picture,), (image.get("height"), image.get("width"))))
        if not found:
            raise EvaluateError(f"{path} has no images; expected COCO's annotations")
        return found

    def _numbers(self, model: types.Model) -> dict[int, int]:
        categories = sorted(self._truth.loadCats(self._truth.getCatIds()), key=lambda one: one["id"])
        highest = categories[-1]["id"]
        names = [str(one["name"]) for one in categories]
        # torchvision's numbers: the classes are COCO's categories, with gaps.
        if model.classes == highest + 1 and not set(names) <= set(model.labels):
            return {one["id"]: one["id"] for one in categories}
        return {number: categories[place]["id"] for number, place in class_numbers(model, names, 1).items()}

    def request(self, sample: Sample, model: types.Model) -> requests.Request[Any]:
        return requests.Detect(model.name, sample.files[0], **self.options.of_request(model.version))

    def record(self, sample: Sample, answer: types.Detections) -> Record:
        if sample.truth != (answer.height, answer.width):
            raise EvaluateError(
                f"{sample.files[0]} is a picture of {(answer.height, answer.width)}; the annotations say {sample.truth}"
            )
        return [
            {"category_id": self._categories[one.class_index], "score": one.score,
             "bbox": [one.box.x_min, one.box.y_min, one.box.x_max - one.box.x_min, one.box.y_max - one.box.y_min],
             **({"segmentation": one.mask.coco} if one.mask is not None else {})}
            for one in answer.detections if one.class_index in self._categories
        ]

    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        found = [{"image_id": int(key), **one} for key, record in records.items() for one in record]
        images = sorted(int(key) for key in records)
        figures = _average_precisions(self._truth, found, images, "bbox", "box")
        if found and all("segmentation" in one for one in found):
            figures += _average_precisions(self._truth, found, images, "segm", "mask")
        return figures


def _pycocotools() -> tuple[Any, Any]:
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        raise EvaluateError("pycocotools is not installed; it comes with: pip install 'saccade[evaluate]'") from None
    return COCO, COCOeval


def _read(path: pathlib.Path) -> Any:
    coco, _ = _pycocotools()
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does
            read = coco(str(path))
        for name in ("images", "annotations", "categories"):
            if not read.dataset.get(name):
                raise KeyError(name)
        return read
    except (OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise EvaluateError(
            f"{path} cannot be read ({error}); expected COCO's annotations with images, annotations and categories"
        ) from None


def _average_precisions(truth: Any, found: list[Any], images: list[int], kind: str, name: str) -> list[Figure]:
    if not found:
        return [Figure(f"{name} {statistic}", 0.0, "%") for statistic in _STATISTICS[:3]]
    _, evaluate = _pycocotools()
    with contextlib.redirect_stdout(io.StringIO()):
        # A copy of each: pycocotools adds to what it is given. It takes a detection's area of its box, if it has one, also
        # where masks are compared; small, medium and large masks are told apart by their own areas.
        unused = {"segm": "bbox", "bbox": "segmentation"}[kind]
        copies = [{name: value for name, value in one.items() if name != unused} for one in found]
        evaluation = evaluate(truth, truth.loadRes(copies), kind)
        evaluation.params.imgIds = images
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    values = evaluation.stats[: len(_STATISTICS)]
    # -1 stands for sizes of which there is no object.
    return [Figure(f"{name} {statistic}", 100 * float(value), "%")
            for statistic, value in zip(_STATISTICS, values, strict=True) if value >= 0]
