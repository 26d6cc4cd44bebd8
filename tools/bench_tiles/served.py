"""The daemon as a candidate: the whole picture is sent, and it cuts it into tiles."""

import time

import numpy

from messages import message, predict_request
from tools.bench_tiles.sheets import TILE, Found
from tools.processor import spent


class Served:
    """The demo's detector in a running daemon; `masks` is RLE or NONE."""

    def __init__(self, daemon, vision, overlap: int, score: float, masks: str) -> None:
        self.daemon, self.vision = daemon, vision
        self.options = {"model": "detector", "tiles": message("saccade.v1.Tiles")(size=TILE, overlap=overlap),
                        "detection": {"masks": masks, "score_threshold": score}}

    def __call__(self, file: bytes) -> Found:
        answer = self.vision.predict(predict_request(encoded=file, **self.options), timeout=600).detections.detections
        boxes = numpy.array([[one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max] for one in answer], numpy.float32)
        return Found(boxes.reshape(-1, 4), numpy.array([one.class_index for one in answer], numpy.int64))

    def processor(self) -> float:
        """Processor seconds so far, of the daemon, its decode workers and this client."""
        return spent(self.daemon.process.pid) + time.process_time()
