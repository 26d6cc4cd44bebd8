"""CARE's test volumes (Weigert et al. 2018): restoration of fluorescence microscopy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy

from saccade import requests, types
from saccade.evaluate import files, metrics
from saccade.evaluate.dataset import Dataset, Figure, Record, Sample
from saccade.evaluate.failures import EvaluateError


class Care(Dataset):
    """One of CARE's sets, such as Denoising_Planaria: `test_data/GT/*.tif`, and files of the same names in a folder for each
    condition, such as `test_data/condition_1` (--variant chooses one)."""

    name = "care"
    task = "restoration"
    definition = (
        "The truth's percentiles 0.1 and 99.9 become 0 and 1, and the answer is scaled and shifted such that its mean "
        "squared error is least (CARE). PSNR: for a range of 1. NRMSE: root of the mean squared error over that range. SSIM: "
        "Wang et al. 2004, a Gaussian window of 11 x 11, in each plane. Each is the mean of the volumes."
    )

    def samples(self, model: types.Model) -> list[Sample]:
        root = files.part(self.folder, self.options.split, "test_data", "CARE's test data")
        truths = files.listed(root / "GT", "*.tif", "CARE's ground truth")
        names = [one.name for one in sorted(root.iterdir()) if one.is_dir() and one.name != "GT"]
        conditions = [self.options.variant] if self.options.variant else names
        found = []
        for condition in conditions:
            place = files.folder(root / condition, "the volumes of a condition")
            for truth in truths:
                noisy = files.file(place / truth.name, f"the volume of which GT/{truth.name} is the truth")
                found.append(Sample(f"{condition}/{truth.stem}", (noisy, truth), condition))
        if not found:
            raise EvaluateError(f"{root} has only GT; expected a folder for each condition, such as condition_1")
        return found

    def request(self, sample: Sample, model: types.Model) -> requests.Restore:
        return requests.Restore(model.name, sample.files[0], "float32", model.version, self.options.priority)

    def record(self, sample: Sample, answer: types.Restoration) -> Record:
        truth = files.volume(sample.files[1], "the ground truth")
        if answer.volume.shape != truth.shape:
            raise EvaluateError(f"{sample.files[1]} has the shape {truth.shape}; the answer has {answer.volume.shape}")
        if not numpy.isfinite(answer.volume).all():
            raise EvaluateError(f"{sample.key}: the answer has voxels that are no numbers")
        expected, got = metrics.care_normalized(truth, answer.volume)
        try:
            likeness = metrics.ssim(expected, got)
        except ValueError as error:
            raise EvaluateError(f"{sample.files[1]}: {error}") from None
        # JSON has no infinity, which an answer without any error has.
        return {"PSNR": min(metrics.psnr(expected, got), 1000.0), "SSIM": likeness, "NRMSE": metrics.nrmse(expected, got)}

    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        by_condition: dict[str, list[Record]] = {}
        for sample in samples:
            if sample.key in records:
                by_condition.setdefault(sample.truth, []).append(records[sample.key])
        units = {"PSNR": "dB", "SSIM": "", "NRMSE": ""}
        every = [record for of_condition in by_condition.values() for record in of_condition]
        figures = [Figure(name, float(numpy.mean([one[name] for one in every])), unit) for name, unit in units.items()]
        for condition, some in by_condition.items() if len(by_condition) > 1 else ():
            figures += [Figure(f"{name}, {condition}", float(numpy.mean([one[name] for one in some])), unit)
                        for name, unit in units.items()]
        return figures
