"""Clients of every protocol with one request at a time: most responses are compared with the known result, some
requests are cancelled, and some are invalid and must be rejected."""

import collections
import http.client
import itertools
import json
import random
import threading

import grpc

from messages import Inference, Vision, infer_request, message, predict_request
from tools.soak import samples

TIMEOUT_SECONDS = 60
REFUSALS = {"bad picture": grpc.StatusCode.INVALID_ARGUMENT, "no such model": grpc.StatusCode.NOT_FOUND,
            "bad tensor": grpc.StatusCode.INVALID_ARGUMENT}


class Wrong(Exception):
    """A response differs from the expected one."""


class Client:
    """The kinds of requests, over connections of its own."""

    def __init__(self, daemon, known):
        self._known = known
        self.channel = daemon.channel()
        self._vision, self._inference = Vision(self.channel), Inference(self.channel)
        self._address = f"127.0.0.1:{daemon.http_port}"
        self._http = http.client.HTTPConnection(self._address, timeout=TIMEOUT_SECONDS)
        self.ways = {
            "typed": self.typed, "stream": self.stream, "rest": self.rest, "tensors": self.tensors,
            "cancelled": self.cancelled, "refused": self.refused, "refused, rest": self.refused_rest,
        }

    def close(self):
        self.channel.close()
        self._http.close()

    def compare(self, way, sample, answer):
        """Compares the answer with the first one for this way and sample."""
        if self._known.setdefault((way, sample.name), answer) != answer:
            raise Wrong(f"{way}: the answer for {sample.name} differs from the first one")

    def typed(self, chance, sample):
        self.compare("typed", sample, samples.of_typed(self._vision.predict(sample.typed, timeout=TIMEOUT_SECONDS)))

    def stream(self, chance, sample):
        item = message("saccade.v1.PredictStreamRequest")(request=sample.typed)
        bad = message("saccade.v1.PredictStreamRequest")(request=predict_request(model=sample.model, encoded=b"none"))
        answers = list(self._vision.predict_stream(iter([item, bad, item]), timeout=TIMEOUT_SECONDS))
        if [one.WhichOneof("outcome") for one in answers] != ["answer", "error", "answer"]:
            raise Wrong(f"stream: wrong order of the answers for {sample.name}")
        for one in (answers[0], answers[2]):
            self.compare("typed", sample, samples.of_typed(one.answer))

    def rest(self, chance, sample):
        status, body = self._post("/v1/predict", sample.json)
        if status != 200:
            raise Wrong(f"rest: {status} for {sample.name}: {body[:200]}")
        self.compare("rest", sample, samples.of_json(body))

    def tensors(self, chance, sample):
        answer = self._inference.model_infer(sample.tensors, timeout=TIMEOUT_SECONDS)
        self.compare("tensors", sample, samples.of_tensors(answer))

    def cancelled(self, chance, sample):
        call = self._vision.predict.future(sample.typed, timeout=TIMEOUT_SECONDS)
        threading.Event().wait(chance.uniform(0, 0.02))
        if not call.cancel() and call.code() != grpc.StatusCode.OK:
            raise Wrong(f"cancelled: {call.code()} for {sample.name}")

    def refused(self, chance, sample):
        what = chance.choice(sorted(REFUSALS))
        try:
            if what == "bad picture":
                self._vision.predict(predict_request(model="detector", encoded=b"none"), timeout=TIMEOUT_SECONDS)
            elif what == "no such model":
                self._vision.predict(predict_request(model="nobody", encoded=b"none"), timeout=TIMEOUT_SECONDS)
            else:
                self._inference.model_infer(infer_request("detector", [1, 3, 5, 5], b"short"), timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            if error.code() == REFUSALS[what]:
                return
            raise Wrong(f"{what}: {error.code()}: {error.details()}") from error
        raise Wrong(f"{what}: it was not rejected")

    def refused_rest(self, chance, sample):
        body = chance.choice([b"{", b'{"model": "detector"}', b"\xff" * 100, json.dumps(
            {"model": "detector", "encoded": samples.BAD_PICTURE}).encode()])
        status, answer = self._post("/v1/predict", body)
        if status != 400:
            raise Wrong(f"refused, rest: {status} for {body[:40]!r}: {answer[:200]}")

    def _post(self, path, body):
        try:
            return self._post_once(path, body)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # The daemon closes a connection after a request that it could not read.
            self._http.close()
            return self._post_once(path, body)

    def _post_once(self, path, body):
        self._http.request("POST", path, body, {"Content-Type": "application/json"})
        answer = self._http.getresponse()
        return answer.status, answer.read()


class Load:
    """Runs a number of clients until the end of the block."""

    WEIGHTS = {"typed": 6, "stream": 3, "rest": 5, "tensors": 5, "cancelled": 3, "refused": 2, "refused, rest": 1}

    def __init__(self, daemon, clients):
        self._daemon, self._samples, self._known = daemon, samples.samples(), {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.asked, self.faults = collections.Counter(), []
        self._threads = [threading.Thread(target=self._run, args=(seed,)) for seed in range(clients)]

    def __enter__(self):
        # Sends every sample once without load, to learn the expected results.
        client = Client(self._daemon, self._known)
        for sample, way in itertools.product(self._samples, (client.typed, client.rest, client.tensors)):
            way(None, sample)
        client.close()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, seed):
        chance, client = random.Random(seed), Client(self._daemon, self._known)
        names, weights = list(self.WEIGHTS), list(self.WEIGHTS.values())
        while not self._stop.is_set():
            # Clients reconnect from time to time.
            if chance.random() < 0.01:
                client.close()
                client = Client(self._daemon, self._known)
            way = chance.choices(names, weights)[0]
            fault = None
            try:
                client.ways[way](chance, chance.choice(self._samples))
            except Wrong as wrong:
                fault = str(wrong)
            except grpc.RpcError as error:
                fault = f"{way}: {error.code().name}: {error.details()}"
            except (OSError, http.client.HTTPException) as error:
                fault = f"{way}: {error!r}"
            with self._lock:
                self.asked[way] += 1
                if fault is not None:
                    self.faults.append(fault)
        client.close()
