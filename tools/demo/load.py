"""A load of many concurrent clients over HTTP, with pictures of various sizes."""

import base64
import http.client
import io
import json
import random
import threading
import time

from PIL import Image

CLIENTS = 16
# Lengths of the shorter side, and ratios of the longer side to it.
SIDES, RATIOS = (96, 128, 160, 224, 320), (1, 1.33, 1.78)
OPTIONS = {
    "classification": {"classification": {"top_k": 1}},
    "detection": {"detection": {"masks": "NONE"}},
    "segmentation": {"segmentation": {"format": "NONE"}},
}


def bodies(model, task, samples, chance):
    """Requests for one model, one for every size."""
    made = []
    for side in SIDES:
        for ratio in RATIOS:
            with Image.open(chance.choice(samples)) as opened:
                picture = opened.convert("RGB").resize((round(side * ratio), side))
            encoded = io.BytesIO()
            picture.save(encoded, "JPEG", quality=90)
            request = {"model": model, "encoded": base64.b64encode(encoded.getvalue()).decode(), **OPTIONS[task]}
            made.append(json.dumps(request))
    return made


class Load:
    """Runs the load in the constructor; `latencies` and `refused` are its results."""

    def __init__(self, address, requests, seconds):
        self._address, self._requests = address, requests
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self.latencies, self.refused = [], 0
        clients = [threading.Thread(target=self._client, args=(seed,)) for seed in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _client(self, seed):
        chance = random.Random(seed)
        connection = http.client.HTTPConnection(self._address, timeout=60)
        latencies, refused = [], 0
        while time.monotonic() < self._end:
            started = time.monotonic()
            connection.request("POST", "/v1/predict", chance.choice(self._requests), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                latencies.append(time.monotonic() - started)
            else:
                refused += 1
        connection.close()
        with self._lock:
            self.latencies += latencies
            self.refused += refused


def batches(before, after):
    """{model: (requests, forward passes, largest batch)} between two responses of /v1/load."""
    earlier = {one["name"]: one for one in before["models"]}
    found = {}
    for one in after["models"]:
        old = earlier.get(one["name"], {"answered": 0, "passes": 0, "passes_by_batch_size": {}})
        sizes = [int(size) for size, count in one["passes_by_batch_size"].items()
                 if count > old["passes_by_batch_size"].get(size, 0)]
        if one["passes"] > old["passes"]:
            found[one["name"]] = (one["answered"] - old["answered"], one["passes"] - old["passes"], max(sizes))
    return found
