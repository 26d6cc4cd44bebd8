"""Pascal VOC 2012 and Cityscapes: the mean intersection over union of their classes."""

from __future__ import annotations

import abc
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy
from numpy.typing import NDArray

from saccade import requests, types
from saccade.evaluate import files, metrics
from saccade.evaluate.dataset import Dataset, Figure, Record, Sample, check_classes
from saccade.evaluate.failures import EvaluateError

_IGNORED = 255


class _Segmentation(Dataset):
    task = "segmentation"
    definition = (
        "IoU of a class: true positives / (true positives + false positives + false negatives), over all pixels of all "
        "pictures; ignored pixels are left out. mIoU: the mean over the classes that occur. Pixel accuracy: share of "
        "right pixels."
    )
    classes: ClassVar[tuple[str, ...]]

    @abc.abstractmethod
    def truth(self, sample: Sample) -> NDArray[Any]:
        """The class of each pixel; 255 is ignored."""

    def request(self, sample: Sample, model: types.Model) -> requests.Request[Any]:
        return requests.Segment(model.name, sample.files[0], **self.options.of_request(model.version))

    def record(self, sample: Sample, answer: types.Segmentation) -> Record:
        expected, got = self.truth(sample), answer.label_map
        if got is None or got.shape != expected.shape:
            shape = None if got is None else got.shape
            raise EvaluateError(f"{sample.files[1]} is a map of {expected.shape}; the picture's answer has {shape}")
        wrong = expected[(expected >= len(self.classes)) & (expected != _IGNORED)]
        if wrong.size or got.max() >= len(self.classes):
            found = wrong[0] if wrong.size else got.max()
            raise EvaluateError(f"{sample.key}: class {found}; expected at most {len(self.classes) - 1}, or 255")
        return metrics.confusion(expected, got, len(self.classes)).ravel().tolist()

    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        side = len(self.classes)
        counts = numpy.zeros((side, side), numpy.int64)
        for record in records.values():
            counts += numpy.asarray(record, numpy.int64).reshape(side, side)
        if counts.sum() == 0:
            raise EvaluateError(f"all pixels of {self.folder} are ignored; expected pictures with labels")
        figures = [Figure("mIoU", 100 * metrics.mean_iou(counts), "%"),
                   Figure("pixel accuracy", 100 * metrics.pixel_accuracy(counts), "%")]
        for name, value in zip(self.classes, metrics.class_iou(counts), strict=True):
            if numpy.isfinite(value):
                figures.append(Figure(f"IoU, {name}", 100 * float(value), "%"))
        return figures


class Voc(_Segmentation):
    """Pascal VOC's folder (`JPEGImages`, `SegmentationClass`, `ImageSets/Segmentation/val.txt`), or the folder `VOCdevkit`
    around `VOC2012`. The labels' PNGs have a palette; their indices are the classes."""

    name = "voc"
    classes = (
        "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
        "dining table", "dog", "horse", "motorbike", "person", "potted plant", "sheep", "sofa", "train", "tv monitor",
    )

    def samples(self, model: types.Model) -> list[Sample]:
        check_classes(self, model, len(self.classes))
        places = [self.folder / inner / "JPEGImages" for inner in (".", "VOC2012", "VOCdevkit/VOC2012")]
        root = files.first_folder(places, "the pictures of VOC 2012").parent
        names = root / "ImageSets" / "Segmentation" / f"{self.options.split or 'val'}.txt"
        found = []
        for line in files.lines(names, "a picture's name on each line"):
            if "/" in line or line.startswith("."):
                raise EvaluateError(f"{names} has the line {line!r}; expected a picture's name, such as 2007_000033")
            picture = files.file(root / "JPEGImages" / f"{line}.jpg", f"the picture that {names.name} names")
            labels = files.file(root / "SegmentationClass" / f"{line}.png", f"the labels of {picture.name}")
            found.append(Sample(line, (picture, labels)))
        return found

    def truth(self, sample: Sample) -> NDArray[Any]:
        labels = files.numbers(sample.files[1], "the class of each pixel, in a palette")
        if labels.ndim != 2:
            raise EvaluateError(f"{sample.files[1]} has the shape {labels.shape}; expected [height, width]")
        return labels


# Cityscapes' own numbers (labelIds) of the 19 classes that are evaluated, in the order of their trainIds.
_EVALUATED = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)


class Cityscapes(_Segmentation):
    """Cityscapes' `leftImg8bit` and `gtFine` (labelIds). The model's classes are the 19 trainIds."""

    name = "cityscapes"
    classes = (
        "road", "sidewalk", "building", "wall", "fence", "pole", "traffic light", "traffic sign", "vegetation", "terrain",
        "sky", "person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle",
    )

    def samples(self, model: types.Model) -> list[Sample]:
        check_classes(self, model, len(self.classes))
        split = self.options.split or "val"
        ending = "_leftImg8bit.png"
        found = []
        for picture in files.listed(self.folder / "leftImg8bit" / split, f"*/*{ending}", "Cityscapes' pictures"):
            name, city = picture.name[: -len(ending)], picture.parent.name
            labels = self.folder / "gtFine" / split / city / f"{name}_gtFine_labelIds.png"
            found.append(Sample(f"{city}/{name}", (picture, files.file(labels, f"the labels of {picture.name}"))))
        return found

    def truth(self, sample: Sample) -> NDArray[Any]:
        path: pathlib.Path = sample.files[1]
        labels = files.numbers(path, "Cityscapes' labelIds")
        if labels.ndim != 2 or labels.max(initial=0) > 255:
            raise EvaluateError(f"{path} has the shape {labels.shape}; expected [height, width] of 8 bits")
        # Everything else is not evaluated: void, and classes that are too rare.
        numbers = numpy.full(256, _IGNORED, numpy.uint8)
        numbers[list(_EVALUATED)] = numpy.arange(len(_EVALUATED))
        mapped: NDArray[Any] = numbers[labels]
        return mapped
