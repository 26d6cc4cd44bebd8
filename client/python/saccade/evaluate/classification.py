"""ImageNet and CIFAR-100: the share of pictures whose class is among the most probable ones."""

from __future__ import annotations

import abc
import pathlib
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from saccade import requests, types
from saccade.evaluate import files, metrics
from saccade.evaluate.dataset import Dataset, Figure, Options, Record, Sample, check_classes, class_numbers
from saccade.evaluate.failures import EvaluateError


class _Classification(Dataset):
    task = "classification"
    definition = "Top-1 and top-5: share of pictures whose class is the most probable one, or among the five most probable."

    @abc.abstractmethod
    def picture(self, sample: Sample) -> Any: ...

    def request(self, sample: Sample, model: types.Model) -> requests.Request[Any]:
        options = self.options.of_request(model.version)
        return requests.Classify(model.name, self.picture(sample), top_k=5, **options)

    def record(self, sample: Sample, answer: types.Classification) -> Record:
        return [one.index for one in answer.classes]

    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        answered = [sample for sample in samples if sample.key in records]
        truths, guesses = [sample.truth for sample in answered], [records[sample.key] for sample in answered]
        return [Figure(f"top-{k}", 100 * metrics.top_k(truths, guesses, k), "%") for k in (1, 5)]


_PICTURES = (".jpeg", ".jpg", ".png")


class ImageNet(_Classification):
    """ImageNet's validation pictures in one of two layouts: a folder for each synset (`val/n01440764/*.JPEG`), or the
    archive of the Kaggle challenge (`ILSVRC/Data/CLS-LOC/val`, `LOC_val_solution.csv`, `LOC_synset_mapping.txt`). The
    classes are the synsets' numbers in their order, as usual."""

    name = "imagenet"

    def samples(self, model: types.Model) -> list[Sample]:
        solution = self.folder / "LOC_val_solution.csv"
        found, classes = self._kaggle(solution) if solution.is_file() else self._folders()
        check_classes(self, model, classes)
        return found

    def _folders(self) -> tuple[list[Sample], int]:
        split = self.options.split or "val"
        root = files.part(self.folder, self.options.split, "val", "a folder for each synset, such as n01440764")
        synsets = sorted(one for one in root.iterdir() if one.is_dir() and one.name[:1] == "n" and one.name[1:].isdigit())
        if not synsets:
            raise EvaluateError(
                f"{root} has no folders of synsets, such as n01440764; expected {split}/SYNSET/*.JPEG, or "
                "LOC_val_solution.csv as in the Kaggle challenge's archive: sort flat pictures into folders by synset first"
            )
        found = [
            Sample(f"{synset.name}/{picture.name}", (picture,), number)
            for number, synset in enumerate(synsets)
            for picture in sorted(synset.iterdir())
            if picture.suffix.lower() in _PICTURES
        ]
        if not found:
            raise EvaluateError(f"the folders of {root} have no pictures; expected {split}/SYNSET/*.JPEG")
        return found, len(synsets)

    def _kaggle(self, solution: pathlib.Path) -> tuple[list[Sample], int]:
        mapping = self.folder / "LOC_synset_mapping.txt"
        synsets = sorted(line.split()[0] for line in files.lines(mapping, "a synset and its name on each line"))
        numbers = {synset: number for number, synset in enumerate(synsets)}
        root = files.folder(self.folder / "ILSVRC" / "Data" / "CLS-LOC" / "val", "the validation pictures")
        found = []
        for number, line in enumerate(files.lines(solution, "ImageId,PredictionString")[1:], 2):
            image, _, prediction = line.partition(",")
            synset = (prediction.split() or [""])[0]
            if synset not in numbers:
                raise EvaluateError(f"{solution}:{number} names the synset {synset!r}, which {mapping.name} lacks")
            picture = files.file(root / f"{image}.JPEG", f"the picture that {solution.name}:{number} names")
            found.append(Sample(image, (picture,), numbers[synset]))
        return found, len(synsets)

    def picture(self, sample: Sample) -> Any:
        return sample.files[0]


class _Arrays(pickle.Unpickler):
    """Reads pickles of NumPy arrays, lists and texts; anything else in one would run code."""

    _ALLOWED = {
        ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"), ("numpy", "ndarray"),
        ("numpy", "dtype"), ("_codecs", "encode"),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module, name)


class Cifar100(_Classification):
    """CIFAR-100's test pictures, in the Python version (`cifar-100-python/test`, `meta`) or the binary one
    (`cifar-100-binary/test.bin`, `fine_label_names.txt`). The classes are the fine labels."""

    name = "cifar100"
    _SIDE = 32
    _BYTES = 3 * _SIDE * _SIDE

    def __init__(self, folder: pathlib.Path, options: Options) -> None:
        super().__init__(folder, options)
        self._pixels = numpy.zeros((0, self._BYTES), numpy.uint8)

    def samples(self, model: types.Model) -> list[Sample]:
        split = self.options.split or "test"
        binary = [place for place in (self.folder, self.folder / "cifar-100-binary") if (place / f"{split}.bin").is_file()]
        if binary:
            labels, names = self._binary(binary[0], split)
        else:
            python = [self.folder / "cifar-100-python", self.folder]
            labels, names = self._python(files.first_folder(python, f"{split} and meta, or {split}.bin"), split)
        classes = class_numbers(model, names, 0)
        places = {place: number for number, place in classes.items()}
        source = "bin" if binary else "python"
        return [Sample(f"{split}/{source}/{at:05}", (), places[label]) for at, label in enumerate(labels)]

    def _binary(self, folder: pathlib.Path, split: str) -> tuple[list[int], list[str]]:
        path = folder / f"{split}.bin"
        content = numpy.fromfile(path, numpy.uint8)
        if content.size == 0 or content.size % (2 + self._BYTES):
            raise EvaluateError(f"{path} has {content.size} bytes; expected a multiple of {2 + self._BYTES}: two labels "
                                "and 32 x 32 x 3 pixels")
        rows = content.reshape(-1, 2 + self._BYTES)
        self._pixels = rows[:, 2:]
        names = files.lines(folder / "fine_label_names.txt", "the names of the fine labels")
        return self._checked(path, rows[:, 1].tolist(), names)

    def _python(self, folder: pathlib.Path, split: str) -> tuple[list[int], list[str]]:
        path = folder / split
        content, meta = self._unpickled(path), self._unpickled(folder / "meta")
        pixels, labels, names = content.get("data"), content.get("fine_labels"), meta.get("fine_label_names")
        if (not isinstance(pixels, numpy.ndarray) or pixels.dtype != numpy.uint8 or not isinstance(labels, list)
                or pixels.shape != (len(labels), self._BYTES) or not isinstance(names, list)):
            raise EvaluateError(f"{path} is not CIFAR-100's; expected a dict with `data`, uint8 [n, 3072], and as many "
                                "`fine_labels`, and `fine_label_names` in meta")
        self._pixels = pixels
        return self._checked(path, labels, names)

    def _checked(self, path: pathlib.Path, labels: list[int], names: list[str]) -> tuple[list[int], list[str]]:
        wrong = [label for label in labels if not isinstance(label, int) or not 0 <= label < len(names)]
        if wrong or not labels:
            raise EvaluateError(f"{path} has the label {wrong[:1]}; expected numbers below {len(names)}")
        return labels, names

    def _unpickled(self, path: pathlib.Path) -> dict[str, Any]:
        try:
            with open(files.file(path, "CIFAR-100's Python version"), "rb") as file:
                found = _Arrays(file, encoding="latin1").load()
        except EvaluateError:
            raise
        except Exception as error:  # a damaged pickle raises almost anything
            raise EvaluateError(f"{path} cannot be read: {error}; expected a pickle of CIFAR-100's Python version") from None
        return found if isinstance(found, dict) else {}

    def picture(self, sample: Sample) -> Any:
        planes = self._pixels[int(sample.key.rpartition("/")[2])].reshape(3, self._SIDE, self._SIDE)
        return numpy.ascontiguousarray(planes.transpose(1, 2, 0))
