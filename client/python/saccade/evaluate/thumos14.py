"""THUMOS 2014: actions in untrimmed videos."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from saccade import requests, types
from saccade.evaluate import files, metrics
from saccade.evaluate.dataset import Dataset, Figure, Options, Record, Sample, class_numbers
from saccade.evaluate.failures import EvaluateError

_CLASSES = (
    "BaseballPitch", "BasketballDunk", "Billiards", "CleanAndJerk", "CliffDiving", "CricketBowling", "CricketShot",
    "Diving", "FrisbeeCatch", "GolfSwing", "HammerThrow", "HighJump", "JavelinThrow", "LongJump", "PoleVault", "Shotput",
    "SoccerPenalty", "TennisSwing", "ThrowDiscus", "VolleyballSpiking",
)
_AMBIGUOUS = "Ambiguous"
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_PICTURES = (".jpeg", ".jpg", ".png")

Segments = dict[str, dict[str, list[metrics.Segment]]]


class Thumos14(Dataset):
    """THUMOS 2014's annotations (the folder that holds BaseballPitch_test.txt), and the videos' frames as pictures in
    `frames/VIDEO`, at --frames-per-second. A video is sent in windows as long as the model takes, each of which begins in
    the middle of the one before; of what overlaps in a video, non-maximum suppression keeps the best."""

    name = "thumos14"
    task = "actions"
    definition = (
        "mAP@t: the mean over the 20 classes of the average precision at a temporal overlap above t, as the challenge's "
        "evaluation defines it: the sum of the precisions at the right detections over the number of true segments; "
        "detections that overlap an ambiguous segment do not count."
    )

    def __init__(self, folder: pathlib.Path, options: Options) -> None:
        super().__init__(folder, options)
        self._truth: Segments = {}
        self._classes: dict[int, int] = {}
        self._overlap = 0.4

    def samples(self, model: types.Model) -> list[Sample]:
        split = self.options.split or "test"
        self._classes = class_numbers(model, _CLASSES, 1)
        self._overlap = _number(model.options.get("nms_threshold", ""), 0.4)
        if model.max_frames < 2:
            raise EvaluateError(f"model {model.name} takes clips of {model.max_frames} frames; expected at least 2")
        self._truth = self._annotations(split)
        found = []
        for video in sorted({video for of_class in self._truth.values() for video in of_class}):
            frames = self._frames(video)
            for first in _windows(len(frames), model.max_frames):
                found.append(Sample(f"{video}@{first}", tuple(frames[first : first + model.max_frames])))
        return found

    def _annotations(self, split: str) -> Segments:
        name = f"{_CLASSES[0]}_{split}.txt"
        places = [path.parent for depth in ("", "*/", "*/*/") for path in sorted(self.folder.glob(depth + name))]
        if not places:
            raise EvaluateError(f"{self.folder} has no {name}, nor has a folder in it; expected THUMOS 2014's temporal "
                                "annotations")
        found: Segments = {}
        for action in (*_CLASSES, _AMBIGUOUS):
            path = places[0] / f"{action}_{split}.txt"
            if action == _AMBIGUOUS and not path.exists():
                continue
            of_class = found.setdefault(action, {})
            for number, line in enumerate(files.lines(path, "a video, a start and an end on each line"), 1):
                words = line.split()
                start, end = (_number(word, -1.0) for word in (words[1:3] + ["", ""])[:2])
                if len(words) != 3 or not 0 <= start < end or "/" in words[0]:
                    raise EvaluateError(f"{path}:{number} is {line!r}; expected a video, a start and a later end in seconds")
                of_class.setdefault(words[0], []).append((start, end))
        return found

    def _frames(self, video: str) -> list[pathlib.Path]:
        place = self.folder / "frames" / video
        found = sorted(one for one in place.iterdir() if one.suffix.lower() in _PICTURES) if place.is_dir() else []
        if not found:
            raise EvaluateError(
                f"{place} has no frames; expected pictures at {self.options.frames_per_second:g} per second: ffmpeg -i "
                f"{video}.mp4 -r {self.options.frames_per_second:g} -qscale:v 2 {place}/%06d.jpg"
            )
        return found

    def request(self, sample: Sample, model: types.Model) -> requests.Request[Any]:
        return requests.FindActions(model.name, sample.files, frames_per_second=self.options.frames_per_second,
                                    **self.options.of_request(model.version))

    def record(self, sample: Sample, answer: types.Actions) -> Record:
        shift = int(sample.key.rpartition("@")[2]) / self.options.frames_per_second
        return [[self._classes[one.class_index], shift + one.start_seconds, shift + one.end_seconds, one.score]
                for one in answer.actions if one.class_index in self._classes]

    def figures(self, samples: Sequence[Sample], records: Mapping[str, Record]) -> list[Figure]:
        found: dict[int, dict[str, list[tuple[float, float, float]]]] = collections.defaultdict(dict)
        videos = set()
        for key, record in records.items():
            video = key.rpartition("@")[0]
            videos.add(video)
            for place, start, end, score in record:
                found[place].setdefault(video, []).append((start, end, score))
        truth = {action: {video: segments for video, segments in of_class.items() if video in videos}
                 for action, of_class in self._truth.items()}
        ambiguous = truth.get(_AMBIGUOUS, {})
        figures = []
        for threshold in _THRESHOLDS:
            values = []
            for place, action in enumerate(_CLASSES):
                if not truth[action]:
                    continue
                best = {video: metrics.without_overlaps(detections, self._overlap)
                        for video, detections in found[place].items()}
                values.append(metrics.detection_ap(truth[action], ambiguous, best, threshold))
            if not values:
                raise EvaluateError("no video that was answered has an annotated action")
            figures.append(Figure(f"mAP@{threshold}", 100 * sum(values) / len(values), "%"))
        return figures


def _windows(frames: int, longest: int) -> list[int]:
    """The first frames of windows that cover all frames; each begins in the middle of the one before."""
    if frames <= longest:
        return [0]
    step = longest // 2
    return [*range(0, frames - longest, step), frames - longest]


def _number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise
