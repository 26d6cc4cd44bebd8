"""Keeps a daemon busy, so that further requests have to wait."""

from harness import eventually
from messages import Inference, infer_request

LABELS = {"model": "slow", "version": "1"}
# A batch whose forward pass takes longer than everything a test does meanwhile.
HEAVY = 64


class Busy:
    """A daemon whose only instance computes a large batch."""

    def __init__(self, daemon, network, channel):
        self.daemon = daemon
        self.inference = Inference(channel)
        heavy = network.random_batch(HEAVY, seed=0)
        light = network.random_batch(1, seed=1)
        self.light = infer_request("slow", light.shape, light.tobytes())
        self.heavy = self.inference.model_infer.future(infer_request("slow", heavy.shape, heavy.tobytes()))
        eventually(self.computing, "the heavy request is being computed")

    def computing(self):
        metrics = self.daemon.metrics()
        return metrics.total("saccade_inflight_requests") == 1 and self.waiting() == 0

    def waiting(self):
        return self.daemon.metrics().total("nv_inference_pending_request_count")

    def passes(self):
        return self.daemon.metrics().total("nv_inference_exec_count", **LABELS)

    def failures(self, reason):
        return self.daemon.metrics().total("nv_inference_request_failure", reason=reason, **LABELS)
