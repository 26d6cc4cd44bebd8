"""Serves networks on a GPU with the daemon itself: compares its answers with those of the same networks on the CPU, reads its
GPU metrics, measures how many pictures a second it answers, and passes tensors in memory that another process has on the GPU.

usage: python -m tools.gpu_serving --build DIR [--model classifier] [--model detector] [--seconds S] [--device cuda|cpu]
                                   [--json FILE] [--markdown FILE]

--build is a build folder, or what tools.gpu_stage packed. Needs torch, torchvision, safetensors and Pillow. The weights are
random; requests are JPEGs over HTTP, sent by processes of this program, which take part of the machine too. Each part
prints a line as soon as it is known; one that fails is reported, and the next one runs. --device cpu rehearses all this with
narrow networks and no GPU.
"""

import argparse
import base64
import collections
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import http.client
import io
import json
import math
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import torch
from PIL import Image

from models.bench.gpu_compare import beside_twin, compared
from models.bench.twins import CASES, Case
from models.reference.served import save, smooth_pictures

CONCURRENCIES = (1, 8, 32)
# Clients of one process, so that Python's lock is not what is measured.
CLIENTS_OF_A_PROCESS = 4
START_SECONDS, STOP_SECONDS = 180, 60
COMPARED = 4
KINDS = {"classifier": "gsa_resnet50", "detector": "ea_mask_rcnn_r50"}
# The narrow networks of a rehearsal take a few percent of the work.
NARROW = {"classifier": {"width": "0.25", "blocks": "1,2,1,1", "classes": "10", "input_size": "64"},
          "detector": {"width": "0.25", "blocks": "1,2,2,1", "classes": "9", "short_side": "128", "long_side": "256"}}


@dataclasses.dataclass(frozen=True)
class Served:
    name: str
    kind: str  # of KINDS
    precision: str
    on_gpu: bool
    # Only its answers are compared; it gets no load.
    compared_only: bool = False


def models_of(kinds: list[str], device: str) -> list[Served]:
    on_gpu = device == "cuda"
    models = []
    for kind in kinds:
        models.append(Served(f"{kind}_cpu", kind, "fp32", False, compared_only=True))
        if kind == "detector":
            # An untrained detector finds other boxes in bf16 wherever it runs, so that bf16 is compared with the CPU's.
            models.append(Served(f"{kind}_cpu_bf16", kind, "bf16", False, compared_only=True))
        models += [Served(f"{kind}_fp32", kind, "fp32", on_gpu), Served(f"{kind}_bf16", kind, "bf16", on_gpu)]
    return models


def write_repository(folder: pathlib.Path, models: list[Served], narrow: bool):
    """Writes each kind's weights once, and links to them."""
    for kind in dict.fromkeys(model.kind for model in models):
        [case] = [case for case in CASES if case.name == KINDS[kind]]
        options = NARROW[kind] if narrow else case.options(case.sizes[0])
        sides = (64, 64) if narrow and kind == "classifier" else (96, 128) if narrow else case.sizes[0]
        sized = Case(case.name, case.architecture, (sides,), dict(options) if narrow else case.fixed)
        with torch.no_grad():
            network, _ = sized.build(sides)
        weights = save(network, folder / f"{kind}.safetensors")
        for model in models:
            if model.kind != kind:
                continue
            (folder / "repository" / model.name / "1").mkdir(parents=True)
            os.link(weights, folder / "repository" / model.name / "1" / "weights.safetensors")
            parameters = {"architecture": case.architecture, **options, "precision": model.precision}
            where = "KIND_GPU gpus: [ 0 ]" if model.on_gpu else "KIND_CPU"
            (folder / "repository" / model.name / "config.pbtxt").write_text("".join([
                f'name: "{model.name}"\nbackend: "saccade"\nmax_batch_size: {32 if kind == "classifier" else 8}\n',
                f"instance_group {{ kind: {where} }}\n",
                *(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in parameters.items())]))


def jpegs(count: int) -> list[bytes]:
    pictures = smooth_pictures(count, 480, 640, torch.Generator().manual_seed(4))
    encoded = []
    for picture in ((pictures * 50 + 128).clamp(0, 255).byte().permute(0, 2, 3, 1).contiguous().numpy()):
        out = io.BytesIO()
        Image.fromarray(picture).save(out, "JPEG", quality=90)
        encoded.append(out.getvalue())
    return encoded


class Daemon:
    """A running saccaded on free ports."""

    def __init__(self, build: pathlib.Path, folder: pathlib.Path):
        self.log = folder / "log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [build / "bin" / "saccaded", "--model-repository", folder / "repository", "--host", "127.0.0.1",
                 "--allow-shared-memory", *(f"--{port}-port=0" for port in ("grpc", "http", "metrics"))],
                stdout=subprocess.PIPE, stderr=log, text=True, env={"SACCADE_PYTHON": sys.executable, **os.environ, "XDG_STATE_HOME": str(folder)})
        ports = dict(re.findall(r"(\w+)=127\.0\.0\.1:(\d+)", self.process.stdout.readline()))
        if not ports:
            raise RuntimeError(f"the daemon did not start: {self.said()}")
        self.http, self.metrics_port = int(ports["http"]), int(ports["metrics"])

    def said(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-12:])

    def await_ready(self) -> float:
        start = time.monotonic()
        while time.monotonic() - start < START_SECONDS:
            if self.process.poll() is not None:
                raise RuntimeError(f"the daemon ended with {self.process.returncode}: {self.said()}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if get(self.http, "/v2/health/ready")[0] == 200:
                    return time.monotonic() - start
            time.sleep(0.2)
        raise RuntimeError(f"not ready after {START_SECONDS} s: {self.said()}")

    def gpu_metrics(self) -> dict[str, float]:
        text = get(self.metrics_port, "/metrics")[1].decode()
        return {name: float(value) for name, value in re.findall(r"^(nv_gpu_\w+)\{[^}]*\} (\S+)$", text, re.MULTILINE)}

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"still running {STOP_SECONDS} s after SIGTERM: {self.said()}") from None
        if self.process.returncode:
            raise RuntimeError(f"ended with {self.process.returncode}: {self.said()}")


def get(port: int, path: str) -> tuple[int, bytes]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def predict(connection: http.client.HTTPConnection, model: str, picture: bytes, query: str = "") -> tuple[int, bytes]:
    connection.request("POST", f"/v1/predict/{model}{query}", picture, {"Content-Type": "image/jpeg"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def answers(port: int, model: Served, pictures: list[bytes]) -> dict[str, torch.Tensor]:
    """Returns the answers in the form that models/bench/gpu_compare.py compares."""
    found: dict[str, torch.Tensor] = {}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        for index, picture in enumerate(pictures):
            query = "?top_k=100000" if model.kind == "classifier" else "?masks=NONE"
            status, body = predict(connection, model.name, picture, query)
            if status != 200:
                raise RuntimeError(f"{model.name} answered {status}: {body[:300].decode(errors='replace')}")
            answer = json.loads(body)
            if model.kind == "classifier":
                classes = sorted(answer["classification"]["classes"], key=lambda one: int(one["index"]))
                found[f"{index}.logits"] = torch.tensor([one["logit"] for one in classes])
                continue
            detections = answer["detections"]["detections"]
            boxes = [[one["box"][side] for side in ("x_min", "y_min", "x_max", "y_max")] for one in detections]
            found[f"{index}.boxes"] = torch.tensor(boxes).reshape(-1, 4)
            found[f"{index}.scores"] = torch.tensor([one["score"] for one in detections])
            found[f"{index}.labels"] = torch.tensor([float(one["class_index"]) for one in detections])
    return found


def keep_asking(port: int, model: str, pictures: list[bytes], clients: int, seconds: float) -> tuple[list[float], dict]:
    """Runs in a process of its own: returns the milliseconds of each answered request, and failures by reason."""
    took, failed = [], collections.Counter()
    end = time.monotonic() + seconds

    def client(number: int):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < end:
            start = time.perf_counter()
            try:
                status, _ = predict(connection, model, pictures[number % len(pictures)])
            except (OSError, http.client.HTTPException) as error:
                failed[type(error).__name__] += 1
                connection.close()
                continue
            if status == 200:
                took.append(1000 * (time.perf_counter() - start))
            else:
                failed[str(status)] += 1
            number += 1
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took, dict(failed)


def throughput(daemon: Daemon, model: Served, pictures: list[bytes], concurrency: int, seconds: float) -> dict:
    processes = -(-concurrency // CLIENTS_OF_A_PROCESS)
    shares = [concurrency // processes + (number < concurrency % processes) for number in range(processes)]
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        start = time.monotonic()
        parts = [pool.submit(keep_asking, daemon.http, model.name, pictures, share, seconds) for share in shares]
        time.sleep(seconds * 0.7)
        gpu = daemon.gpu_metrics()
        took, failed = [], collections.Counter()
        for part in parts:
            some, refused = part.result()
            took += some
            failed.update(refused)
        # The last answers come after the time in which requests are sent.
        elapsed = time.monotonic() - start
    if not took:
        raise RuntimeError(f"no request was answered; failures: {dict(failed)}")
    took.sort()
    return {"concurrency": concurrency, "requests_per_second": len(took) / elapsed, "median_ms": statistics.median(took),
            "p99_ms": took[min(len(took) - 1, int(0.99 * len(took)))], "failed": dict(failed), "gpu": gpu}


def ask(port: int, method: str, path: str, body: dict | None = None, expected: int = 200):
    """Returns the JSON of the answer."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    if answer.status != expected:
        raise RuntimeError(f"{method} {path} answered {answer.status}, expected {expected}: {text[:300]}")
    return json.loads(text) if text else None


def register_on_gpu(port: int, handle: bytes, size: int, expected: int = 200):
    return ask(port, "POST", "/v2/cudasharedmemory/region/gpu/register",
               {"raw_handle": {"b64": base64.b64encode(handle).decode()}, "device_id": 0, "byte_size": size}, expected)


def ipc_handle(memory: torch.Tensor) -> bytes:
    """The CUDA IPC handle of the allocation that begins with the tensor."""
    driver, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(memory.data_ptr())
    base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.create_string_buffer(64)
    if error := driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), address):
        raise RuntimeError(f"cuMemGetAddressRange returned {error}")
    if base.value != address.value:
        raise RuntimeError(f"the tensor is at byte {address.value - base.value} of its allocation, expected its begin")
    if error := driver.cuIpcGetMemHandle(handle, address):
        raise RuntimeError(f"cuIpcGetMemHandle returned {error}")
    return handle.raw


def ask_through_gpu(port: int, model: str) -> dict:
    """Runs in a process of its own, as a client: the daemon reads the input from this process's memory on GPU 0 and writes its
    output there, which has to be the output for the same input in the request."""
    metadata = ask(port, "GET", f"/v2/models/{model}")
    [given] = [one for one in metadata["inputs"] if one["datatype"] == "FP32"]
    shape = [1, *given["shape"][1:]]
    picture = torch.randn(shape, generator=torch.Generator().manual_seed(5))
    infer = f"/v2/models/{model}/infer"
    sent = {"name": given["name"], "shape": shape, "datatype": "FP32"}
    [plain] = ask(port, "POST", infer, {"inputs": [{**sent, "data": picture.flatten().tolist()}], "outputs": [{"name": "logits"}]})["outputs"]
    expected = torch.tensor(plain["data"])

    # LibTorch allocates so many bytes alone, so that the tensor is at the begin of its allocation.
    memory = torch.zeros(32 << 20, dtype=torch.uint8, device="cuda:0")
    begin = 4096  # of the input
    input_bytes, output_bytes = 4 * math.prod(shape), 4 * expected.numel()
    memory[begin:begin + input_bytes] = picture.flatten().view(torch.uint8).cuda()
    torch.cuda.synchronize()
    handle = ipc_handle(memory)
    too_large = register_on_gpu(port, handle, 1 << 40, expected=400)["error"]
    register_on_gpu(port, bytes(64), 64, expected=400)
    register_on_gpu(port, handle, memory.numel())
    place = begin + -(-input_bytes // 256) * 256
    request = {"inputs": [{**sent, "parameters": {"shared_memory_region": "gpu", "shared_memory_offset": begin,
                                                  "shared_memory_byte_size": input_bytes}}],
               "outputs": [{"name": "logits", "parameters": {"shared_memory_region": "gpu", "shared_memory_offset": place,
                                                             "shared_memory_byte_size": output_bytes}}]}
    took = []
    for _ in range(20):
        start = time.perf_counter()
        ask(port, "POST", infer, request)
        took.append(1000 * (time.perf_counter() - start))
    found = memory[place:place + output_bytes].cpu().view(torch.float32)
    torch.testing.assert_close(found, expected.flatten(), rtol=1e-3, atol=1e-3)
    untouched = memory[place + output_bytes:place + output_bytes + 4096]
    if untouched.any():
        raise RuntimeError("bytes behind the output were written")
    ask(port, "POST", "/v2/cudasharedmemory/region/gpu/unregister", {})
    if left := ask(port, "GET", "/v2/cudasharedmemory/status"):
        raise RuntimeError(f"regions are left: {left}")
    return {"median_ms": statistics.median(took), "too_large": too_large}


def cuda_shared_memory(daemon: Daemon, models: list[Served], device: str) -> str:
    if device == "cpu":
        return "refused without a GPU: " + register_on_gpu(daemon.http, bytes(64), 64, expected=501)["error"]
    [model] = [model for model in models if model.on_gpu and model.kind == "classifier" and model.precision == "fp32"]
    # A forked process could not use the GPU, and this one must not before it forks others.
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(ask_through_gpu, daemon.http, model.name).result()
    return f"as in messages, median {found['median_ms']:.1f} ms; too large is refused: {found['too_large']}"


class Report:
    """Prints each part as soon as it is known, and keeps all for the files."""

    def __init__(self, arguments):
        self.arguments, self.parts, self.failures = arguments, [], []

    def attempt(self, name: str, action, text, keep: bool = True):
        """Adds what `action` returns (as text alone without `keep`), or why it failed; the next parts run in any case."""
        try:
            found = action()
            self.parts.append({"part": name, "found": found if keep else None, "text": text(found)})
        except Exception as error:  # collected
            self.failures.append(name)
            self.parts.append({"part": name, "failed": f"{type(error).__name__}: {error}",
                               "text": f"FAILED {type(error).__name__}: {error}"})
            found = None
        print(f"{name}: {self.parts[-1]['text']}", flush=True)
        if self.arguments.json:
            self.arguments.json.write_text(json.dumps(self.parts, indent=1) + "\n")
        if self.arguments.markdown:
            rows = ["| part | |", "|---|---|"]
            for part in self.parts:
                one_line = part["text"].replace("\n", "<br>").replace("|", "\\|")
                rows.append(f"| {part['part']} | {one_line} |")
            self.arguments.markdown.write_text("\n".join(rows) + "\n")
        return found


def require_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], precision: str,
                 cpu_bf16: dict[str, torch.Tensor] | None = None) -> dict:
    """Compares with the CPU's answers in float32. Findings in bf16 are judged by what the CPU finds again in bf16, if that is known."""
    comparison = compared(found, expected, COMPARED, precision)
    if precision == "bf16" and comparison.finds and cpu_bf16 is not None:
        comparison = beside_twin(comparison, cpu_bf16, expected, COMPARED, "the CPU")
    if not comparison.passed:
        raise RuntimeError(f"{comparison.text}, expected {comparison.bound}")
    return dataclasses.asdict(comparison)


def gpu_text(gpu: dict[str, float]) -> str:
    if not gpu:
        return "no GPU metrics"
    return (f"GPU {100 * gpu.get('nv_gpu_utilization', float('nan')):.0f} %, "
            f"{gpu.get('nv_gpu_memory_used_bytes', float('nan')) / 2**30:.1f} GiB")


def require_gpu_metrics(daemon: Daemon) -> dict[str, float]:
    gpu = daemon.gpu_metrics()
    missing = {"nv_gpu_utilization", "nv_gpu_memory_used_bytes", "nv_gpu_memory_total_bytes"} - gpu.keys()
    if missing:
        raise RuntimeError(f"/metrics has no {', '.join(sorted(missing))}; expected NVIDIA's libnvidia-ml.so.1 on this machine")
    return gpu


def serve(report: Report, models: list[Served], arguments, folder: pathlib.Path):
    pictures = jpegs(8)
    if report.attempt("repository", lambda: write_repository(folder, models, arguments.device == "cpu") or True,
                      lambda _: ", ".join(model.name for model in models)) is None:
        return
    daemon = report.attempt("start", lambda: Daemon(arguments.build, folder), lambda daemon: f"HTTP on port {daemon.http}",
                            keep=False)
    if daemon is None:
        return
    try:
        if report.attempt("ready", daemon.await_ready, lambda seconds: f"after {seconds:.1f} s") is None:
            return
        if arguments.device == "cuda":
            report.attempt("GPU metrics", lambda: require_gpu_metrics(daemon), gpu_text)
        expected: dict[str, dict] = {}
        cpu_bf16: dict[str, dict] = {}
        for model in models:
            found = report.attempt(f"{model.name} answers", lambda: answers(daemon.http, model, pictures[:COMPARED]),
                                   lambda _: f"{COMPARED} pictures", keep=False)
            if found is None:
                continue
            if model.compared_only:
                (expected if model.precision == "fp32" else cpu_bf16)[model.kind] = found
            elif model.kind in expected:
                report.attempt(f"{model.name} beside the CPU",
                               lambda: require_same(found, expected[model.kind], model.precision, cpu_bf16.get(model.kind)),
                               lambda comparison: comparison["text"])
        for model in models:
            for concurrency in CONCURRENCIES if not model.compared_only else ():
                report.attempt(f"{model.name}, {concurrency} at once", lambda: throughput(
                    daemon, model, pictures, concurrency, arguments.seconds), lambda load: (
                    f"{load['requests_per_second']:.1f}/s, median {load['median_ms']:.1f} ms, p99 {load['p99_ms']:.1f} ms, "
                    f"failed {load['failed'] or 0}, {gpu_text(load['gpu'])}"))
        if arguments.device == "cpu" or any(model.kind == "classifier" for model in models):
            report.attempt("CUDA shared memory", lambda: cuda_shared_memory(daemon, models, arguments.device), str)
    finally:
        report.attempt("stop", lambda: daemon.stop() or True, lambda _: "drained, exit code 0")


def main() -> int | str:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--model", action="append", choices=KINDS, help="both without this flag")
    parser.add_argument("--seconds", type=float, default=3, help="of load at each of the concurrencies "
                        + ", ".join(map(str, CONCURRENCIES)))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    arguments = parser.parse_args()
    report = Report(arguments)
    with tempfile.TemporaryDirectory() as folder:
        serve(report, models_of(arguments.model or list(KINDS), arguments.device), arguments, pathlib.Path(folder))
    return f"failed: {', '.join(report.failures)}" if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
