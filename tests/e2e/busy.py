"""Keeps a daemon busy, so that further requests have to wait."""

import numpy

from harness import eventually
from messages import Inference, infer_request
from tiny_models import Identity, write_model

HANG = 99
LABELS = {"model": "slow", "version": "1"}
# A batch whose forward pass takes longer than everything a test does meanwhile.
HEAVY = 64


class Occupied:
    """A daemon whose only instance is computing `heavy`; `light` is a small request for the same model."""

    def __init__(self, daemon, channel, heavy, light):
        self.daemon, self.light = daemon, light
        self.inference = Inference(channel)
        self.heavy = self.inference.model_infer.future(heavy)
        eventually(self.computing, "the heavy request is being computed")

    def computing(self):
        return self.inflight() == 1 and self.waiting() == 0

    def inflight(self):
        return self.daemon.metrics().total("saccade_inflight_requests")

    def waiting(self):
        return self.daemon.metrics().total("nv_inference_pending_request_count")

    def passes(self):
        return self.daemon.metrics().total("nv_inference_exec_count", **LABELS)

    def failures(self, reason):
        return self.daemon.metrics().total("nv_inference_request_failure", reason=reason, **LABELS)


class Busy(Occupied):
    """Computes a large batch, which takes a network's own time."""

    def __init__(self, daemon, network, channel):
        heavy, light = (network.random_batch(rows, seed=seed) for seed, rows in enumerate((HEAVY, 1)))
        super().__init__(daemon, channel, *(infer_request("slow", one.shape, one.tobytes()) for one in (heavy, light)))


# One thread that prepares requests, so that none overtakes the one that occupies the instance.
HOLDING = ("--allow-drills", "--decode-threads=1")


def write_holding(root, hang, max_batch_size=1, delay_ms=0, **config):
    """Writes the model 'slow', a pass of which lasts for as long as the file `hang` exists; every pass takes `delay_ms`. It needs
    the flags HOLDING. A pass is one request by default, because others that have just come might share the one that lasts."""
    hang.touch()
    drill = Identity(hang_at=str(HANG), hang_file=str(hang), hang_seconds="3600", delay_ms=str(delay_ms))
    write_model(root, "slow", drill, max_batch_size=max_batch_size, **config)


def request_of(value):
    """A request for the model of write_holding(). Its pass is held if the value is HANG."""
    sent = numpy.full((1, 1, 1, 1, 4), value, numpy.float32)
    return infer_request("slow", sent.shape, sent.tobytes())


class Held(Occupied):
    """Is in a pass that ends when let_go() is called, however fast or busy the machine is."""

    def __init__(self, daemon, channel, hang):
        self._hang = hang
        super().__init__(daemon, channel, request_of(HANG), request_of(1))

    def let_go(self):
        self._hang.unlink()
