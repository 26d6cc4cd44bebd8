"""Figures by which held-out predictions are measured."""

import contextlib
import dataclasses
import io

import numpy
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


@dataclasses.dataclass
class Truth:
    boxes: numpy.ndarray  # [n, 4], x_min, y_min, x_max, y_max
    classes: numpy.ndarray  # [n]
    masks: numpy.ndarray  # bool [n, h, w]


@dataclasses.dataclass
class Found:
    boxes: numpy.ndarray
    scores: numpy.ndarray
    classes: numpy.ndarray
    masks: numpy.ndarray  # bool [n, h, w], over the whole picture


def _annotations(pictures: list, classes_of) -> list[dict]:
    rows = []
    for number, one in enumerate(pictures, start=1):
        for index in range(len(one.classes)):
            x_min, y_min, x_max, y_max = (float(side) for side in one.boxes[index])
            segment = coco_mask.encode(numpy.asfortranarray(one.masks[index].astype(numpy.uint8)))
            rows.append({"id": len(rows) + 1, "image_id": number, "category_id": int(one.classes[index]),
                         "bbox": [x_min, y_min, x_max - x_min, y_max - y_min], "segmentation": segment,
                         **classes_of(one, index, segment)})
    return rows


def average_precision(truths: list[Truth], found: list[Found], kind: str) -> tuple[float, float]:
    """Returns COCO's AP (the mean over overlaps of 0.50 to 0.95) and AP50 for "bbox" or "segm", by COCO's own code."""
    classes = sorted({int(index) for truth in truths for index in truth.classes})
    with contextlib.redirect_stdout(io.StringIO()):  # silences its progress output
        expected = COCO()
        expected.dataset = {
            "images": [{"id": number, "height": truth.masks.shape[1], "width": truth.masks.shape[2]}
                       for number, truth in enumerate(truths, start=1)],
            "categories": [{"id": index} for index in classes],
            "annotations": _annotations(truths, lambda truth, index, segment: {
                "area": float(truth.masks[index].sum()), "iscrowd": 0}),
        }
        expected.createIndex()
        got = COCO()
        got.dataset = {**expected.dataset, "annotations": _annotations(found, lambda one, index, segment: {
            "area": float(coco_mask.area(segment)), "iscrowd": 0, "score": float(one.scores[index])})}
        got.createIndex()
        evaluation = COCOeval(expected, got, kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0]), float(evaluation.stats[1])


def decoded(height: int, width: int, counts: str) -> numpy.ndarray:
    """Decodes a mask in COCO's compressed run lengths to booleans [height, width]."""
    return coco_mask.decode({"size": [height, width], "counts": counts.encode()}).astype(bool)


def confusion(expected: numpy.ndarray, got: numpy.ndarray, classes: int) -> numpy.ndarray:
    """Returns counts of pixels by expected class (row) and predicted class (column)."""
    pairs = expected.astype(numpy.int64) * classes + got
    return numpy.bincount(pairs.ravel(), minlength=classes * classes).reshape(classes, classes)


def mean_iou(counts: numpy.ndarray) -> float:
    """Mean over the classes that are expected or predicted anywhere."""
    union = counts.sum(axis=0) + counts.sum(axis=1) - counts.diagonal()
    return float((counts.diagonal()[union > 0] / union[union > 0]).mean())


def pixel_accuracy(counts: numpy.ndarray) -> float:
    return float(counts.diagonal().sum() / counts.sum())


def end_point_error(expected: numpy.ndarray, got: numpy.ndarray) -> float:
    return float(numpy.abs(expected.astype(numpy.float64) - got).mean())


def three_pixel_error(expected: numpy.ndarray, got: numpy.ndarray) -> float:
    """KITTI's measure: the part of pixels that are off by more than 3 pixels and by more than a twentieth."""
    off = numpy.abs(expected.astype(numpy.float64) - got)
    return float(((off > 3) & (off > 0.05 * numpy.abs(expected))).mean())


def psnr(clean: numpy.ndarray, got: numpy.ndarray) -> float:
    """PSNR in dB, relative to the clean volume's range."""
    clean = clean.astype(numpy.float64)
    error = ((clean - got) ** 2).mean()
    return float(20 * numpy.log10(numpy.ptp(clean)) - 10 * numpy.log10(error))
