"""gpu_serving.py where there is no GPU: which models it serves, and how their answers are judged."""

import argparse
import base64
import pathlib

import pytest
import torch

from tools import gpu_serving
from tools.gpu_serving import Report, models_of, require_same

BOXES = 20


def first(count: int) -> dict[str, torch.Tensor]:
    """Answers with the first boxes of each of the compared pictures."""
    places = torch.tensor([[20.0 * i, 0, 20.0 * i + 10, 10] for i in range(BOXES)])
    parts = {"boxes": places, "labels": torch.ones(BOXES), "scores": 0.9 - 0.01 * torch.arange(BOXES)}
    return {f"{item}.{part}": values[:count] for item in range(gpu_serving.COMPARED) for part, values in parts.items()}


def test_bf16_of_a_detector_is_judged_by_the_cpus_bf16():
    """Of the better half of the boxes, two are a fifth."""
    with pytest.raises(RuntimeError, match="20 % of boxes found again, expected at least 40 %"):
        require_same(first(2), first(BOXES), "bf16")
    same = require_same(first(2), first(BOXES), "bf16", cpu_bf16=first(4))
    assert same["passed"] and same["text"] == "20 % of boxes found again, 40 % by the CPU"
    with pytest.raises(RuntimeError, match="20 % of boxes found again, 50 % by the CPU, expected at least 25 %"):
        require_same(first(2), first(BOXES), "bf16", cpu_bf16=first(5))


def test_float32_is_judged_by_the_cpus_float32_alone():
    with pytest.raises(RuntimeError, match="20 % of boxes found again, expected at least 90 %"):
        require_same(first(2), first(BOXES), "fp32", cpu_bf16=first(2))


class NoDaemon:
    http = 1

    def __init__(self, *_):
        pass

    def await_ready(self) -> float:
        return 1.0

    def stop(self):
        pass


def test_memory_of_a_gpu_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(gpu_serving, "ask", lambda port, *call: asked.append(call) or {"error": "no GPU"})
    assert gpu_serving.cuda_shared_memory(NoDaemon(), [], "cpu") == "refused without a GPU: no GPU"
    [(method, path, body, expected)] = asked
    assert (method, path, expected) == ("POST", "/v2/cudasharedmemory/region/gpu/register", 501)
    assert body["byte_size"] == 64 and len(base64.b64decode(body["raw_handle"]["b64"])) == 64


@pytest.mark.parametrize("on_gpu, failures", [(2, []), (1, ["detector_bf16 beside the CPU"])])
def test_the_detector_on_the_gpu_is_compared_with_both_on_the_cpu(on_gpu: int, failures: list, tmp_path: pathlib.Path,
                                                                  monkeypatch: pytest.MonkeyPatch):
    found = {"detector_cpu": first(BOXES), "detector_cpu_bf16": first(3), "detector_fp32": first(BOXES), "detector_bf16": first(on_gpu)}
    loaded = []
    monkeypatch.setattr(gpu_serving, "Daemon", NoDaemon)
    monkeypatch.setattr(gpu_serving, "write_repository", lambda *_: None)
    monkeypatch.setattr(gpu_serving, "require_gpu_metrics", lambda *_: {})
    monkeypatch.setattr(gpu_serving, "answers", lambda port, model, pictures: found[model.name])
    monkeypatch.setattr(gpu_serving, "throughput", lambda daemon, model, *_: loaded.append(model.name) or {
        "requests_per_second": 1, "median_ms": 1, "p99_ms": 1, "failed": {}, "gpu": {}})
    arguments = argparse.Namespace(build=tmp_path, device="cuda", seconds=0, json=None, markdown=None)
    report = Report(arguments)
    models = models_of(["detector"], "cuda")
    assert {model.name: (model.precision, model.on_gpu) for model in models} == {
        "detector_cpu": ("fp32", False), "detector_cpu_bf16": ("bf16", False), "detector_fp32": ("fp32", True),
        "detector_bf16": ("bf16", True)}
    gpu_serving.serve(report, models, arguments, tmp_path)
    assert report.failures == failures
    texts = {part["part"]: part["text"] for part in report.parts}
    assert texts["detector_fp32 beside the CPU"] == "100 % of boxes found again"
    assert f"{10 * on_gpu} % of boxes found again, 30 % by the CPU" in texts["detector_bf16 beside the CPU"]
    assert set(loaded) == {"detector_fp32", "detector_bf16"}
