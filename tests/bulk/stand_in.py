"""A stand-in for the daemon that answers as a test tells it to, and counts."""

import collections
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from saccade.v1 import vision_pb2 as pb
from saccade.v1 import vision_pb2_grpc


_CODES = {code.value[0]: code for code in grpc.StatusCode}


def overloaded(seconds=0.01):
    """The daemon's answer to a request for which there is no room."""
    hint = any_pb2.Any()
    hint.Pack(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=int(seconds * 1e9))))
    return status_pb2.Status(code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], message="no room", details=[hint])


def failed(code, message="as told"):
    return status_pb2.Status(code=code.value[0], message=message)


class StandIn(vision_pb2_grpc.VisionServicer):
    """A classifier whose class is the number of bytes. `plan(content, attempt)` returns None, or a status to fail with;
    `fill(answer, content)` sets another result. An answer takes `seconds`; more requests than `room` at once are rejected."""

    def __init__(self, address="127.0.0.1:0"):
        self.plan = lambda content, attempt: None
        self.fill = lambda answer, content: answer.classification.classes.add(
            index=len(content), label="size", probability=1.0)
        self.task = "classification"
        self.state, self.reason = pb.Model.READY, ""
        # The code and the text with which questions for the model fail.
        self.no_model = None
        self.seconds = 0.0
        self.room = 1000
        # How many questions for the model have come.
        self.questions = 0
        self.answered = collections.Counter()
        self.attempts = collections.Counter()
        self.most_at_once = 0
        self.at_once = 0
        self._lock = threading.Lock()
        self._server = None
        self.start(address)

    def start(self, address):
        self._server = grpc.server(futures.ThreadPoolExecutor(64))
        vision_pb2_grpc.add_VisionServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(address)}"
        self._server.start()

    def stop(self):
        self._server.stop(0).wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def GetModel(self, request, context):
        with self._lock:
            self.questions += 1
        if self.no_model is not None:
            context.abort(*self.no_model)
        return pb.Model(name=request.model, version=1, state=self.state, reason=self.reason, task=self.task)

    def Predict(self, request, context):
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            attempt = self.attempts[request.encoded]
            self.attempts[request.encoded] += 1
            is_full = self.at_once > self.room
        try:
            status = overloaded(0.002) if is_full else self.plan(request.encoded, attempt)
            if status is not None:
                context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
                context.abort(_CODES[status.code], status.message)
            time.sleep(self.seconds)
            with self._lock:
                self.answered[request.encoded] += 1
            answer = pb.PredictResponse(model=request.model, version=1)
            self.fill(answer, request.encoded)
            return answer
        finally:
            with self._lock:
                self.at_once -= 1
