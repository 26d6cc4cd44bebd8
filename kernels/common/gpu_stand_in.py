"""A stand-in for a GPU, with which the GPU checks are rehearsed on a machine without one: tensors stay on the CPU. It shows that the checks run to their end, nothing about kernels or times."""

import time

import torch
from torch.overrides import TorchFunctionMode

installed = False


class OnCpu(TorchFunctionMode):
    """Makes tensors on the CPU that are asked for on a GPU."""

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = dict(keywords or {})
        if str(keywords.get("device", "")).startswith("cuda"):
            keywords["device"] = "cpu"
        return function(*arguments, **keywords)


class Event:
    def __init__(self, enable_timing=True):
        self.at = None

    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


def install():
    global installed
    installed = True
    torch.Tensor.cuda = lambda tensor: tensor
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_name = lambda: "a stand-in on the CPU"
    torch.cuda.synchronize = lambda: None
    torch.cuda.Event = Event
    OnCpu().__enter__()
