"""KITTI's stereo sets and Scene Flow: errors of disparities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from saccade import requests, types
from saccade.evaluate import files, metrics
from saccade.evaluate.dataset import Dataset, Figure, Record, Sample
from saccade.evaluate.failures import EvaluateError

_Real = NDArray[numpy.float64]


class _Stereo(Dataset):
    task = "stereo"

    def request(self, sample: Sample, model: types.Model) -> requests.Request[Any]:
        left, right = sample.files[:2]
        return requests.Stereo(model.name, left, right, **self.options.of_request(model.version))

    def errors(self, sample: Sample, answer: types.Disparity, expected: _Real, counted: NDArray[numpy.bool_]) -> Record:
        if answer.disparity.shape != expected.shape:
            raise EvaluateError(
                f"{sample.key}: the disparities are a map of {expected.shape}; the pair's answer has "
                f"{answer.disparity.shape}"
            )
        return metrics.disparity_errors(expected, answer.disparity.astype(numpy.float64), counted)


def _sums(records: Sequence[Record]) -> tuple[float, float, float, float, float]:
    pixels, missing, errors, far, outliers = numpy.sum(numpy.asarray(records, numpy.float64), axis=0)
    return pixels, missing, errors, far, outliers


class Kitti(_Stereo):
    """KITTI 2015's `training` folder (`image_2`, `image_3`, `disp_occ_0`, `disp_noc_0`, `obj_map`), or KITTI 2012's
    (`colored_0` and `colored_1`, or `image_0` and `image_1`; `disp_occ`, `disp_noc`)."""

    name = "kitti"
    definition = (
        "Over all pixels of all pictures that have a measurement. 3-px: share of errors of more than 3 pixels (KITTI 2012). "
        "D1: of more than 3 pixels and of more than 5 % of the disparity (KITTI 2015); bg and fg are the pixels outside and "
        "inside of obj_map's vehicles. noc leaves out pixels that only the left camera sees. EPE: mean absolute error."
    )
    _LAYOUTS = (("image_2", "image_3", "disp_occ_0", "disp_noc_0"), ("colored_0", "colored_1", "disp_occ", "disp_noc"),
                ("image_0", "image_1", "disp_occ", "disp_noc"))

    def samples(self, model: types.Model) -> list[Sample]:
        root = files.part(self.folder, self.options.split, "training", "KITTI's folder of training pairs")
        layout = next((one for one in self._LAYOUTS if all((root / name).is_dir() for name in one[:3])), None)
        if layout is None:
            expected = "; ".join(", ".join(one[:3]) for one in self._LAYOUTS)
            raise EvaluateError(f"{root} has none of KITTI's layouts; expected the folders {expected}")
        left, right, occluded, visible = layout
        found = []
        for truth in files.listed(root / occluded, "*_10.png", "disparities of the pairs, such as 000000_10.png"):
            pair = tuple(files.file(root / side / truth.name, f"a picture of the pair {truth.stem}")
                         for side in (left, right))
            others = {"noc": root / visible / truth.name, "objects": root / "obj_map" / truth.name}
            there = {name: path for name, path in others.items() if path.is_file()}
            found.append(Sample(truth.stem, (*pair, truth), there))
        return found

    def record(self, sample: Sample, answer: types.Disparity) -> Record:
        expected = files.kitti_disparity(sample.files[2])
        every = numpy.ones(expected.shape, bool)
        found = {"all": self.errors(sample, answer, expected, every)}
        if "noc" in sample.truth:
            visible = files.kitti_disparity(sample.truth["noc"])
            found["noc"] = self.errors(sample, answer, visible, every)
        if "objects" in sample.truth:
            objects = files.numbers(sample.truth["objects"], "the number of the vehicle at each pixel, 0 for none") > 0
            if objects.shape != expected.shape:
                raise EvaluateError(f"{sample.truth['objects']} has the shape {objects.shape}; expected {expected.shape}")
            found["bg"] = self.errors(sample, answer, expected, ~objects)
            found["fg"] = self.errors(sample, answer, expected, objects)
        return found

    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        figures = []
        for name in ("all", "noc", "bg", "fg"):
            there = [record[name] for record in records.values() if name in record]
            pixels, missing, errors, far, outliers = _sums(there) if there else (0, 0, 0, 0, 0)
            if pixels == 0:
                continue
            figures.append(Figure(f"D1-{name}", 100 * outliers / pixels, "%"))
            if name in ("all", "noc"):
                figures.append(Figure(f"3-px, {name}", 100 * far / pixels, "%"))
                if pixels > missing:
                    figures.append(Figure(f"EPE, {name}", errors / (pixels - missing), "px"))
                figures.append(Figure(f"density, {name}", 100 * (1 - missing / pixels), "%"))
        if not figures:
            raise EvaluateError(f"no pixel of {self.folder} has a measured disparity")
        return figures


class SceneFlow(_Stereo):
    """Scene Flow's FlyingThings3D: `frames_finalpass` or `frames_cleanpass` (--variant finalpass or cleanpass), and
    `disparity`, in TEST/A/0000/left/0006.png and so on. As PSMNet does, pixels whose disparity is not below the
    model's max_disparity do not count."""

    name = "sceneflow"
    definition = (
        "EPE: mean absolute error over all pixels of all pictures whose true disparity is below the model's "
        "max_disparity. EPE, mean of pictures: the mean of each picture's EPE. 3-px: share of errors of more than 3 pixels."
    )

    def samples(self, model: types.Model) -> list[Sample]:
        variants = [self.options.variant] if self.options.variant else ["finalpass", "cleanpass"]
        split = self.options.split or "TEST"
        places = [self.folder / f"frames_{variant}" / split for variant in variants]
        root = files.first_folder(places, "the rendered pairs of FlyingThings3D")
        try:
            limit = float(model.options.get("max_disparity", "192"))
        except ValueError:
            limit = 192.0
        found = []
        for left in files.listed(root, "*/*/left/*.png", "pictures such as A/0000/left/0006.png"):
            inner = left.relative_to(root)
            right = files.file(left.parent.parent / "right" / left.name, f"the right picture of {inner}")
            truth = self.folder / "disparity" / split / inner.with_suffix(".pfm")
            key = f"{root.parent.name}/{inner.with_suffix('')}"
            found.append(Sample(key, (left, right, files.file(truth, f"the disparities of {inner}")), limit))
        return found

    def record(self, sample: Sample, answer: types.Disparity) -> Record:
        expected = files.pfm(sample.files[2])
        return self.errors(sample, answer, expected, expected < sample.truth)

    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        pixels, missing, errors, far, _ = _sums(list(records.values()))
        if pixels == missing:
            raise EvaluateError(f"no pixel of {self.folder} has a disparity below the model's max_disparity and an answer")
        means = [record[2] / (record[0] - record[1]) for record in records.values() if record[0] > record[1]]
        return [Figure("EPE", errors / (pixels - missing), "px"),
                Figure("EPE, mean of pictures", float(numpy.mean(means)), "px"),
                Figure("3-px", 100 * far / pixels, "%")]
