"""Writes the same models for Triton's Python backend. Their tensors come and go by DLPack: with numpy 2, pb.Tensor's own conversions
lose all values but the first."""

import pathlib

import torch
from safetensors.torch import load_file

from models.reference import build

ROOT = pathlib.Path(__file__).resolve().parents[2]

IDENTITY = '''
import triton_python_backend_utils as pb
from torch.utils.dlpack import from_dlpack, to_dlpack


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            values = from_dlpack(pb.get_input_tensor_by_name(request, "image").to_dlpack())[:, 0]
            answers.append(pb.InferenceResponse([pb.Tensor.from_dlpack("restored", to_dlpack(values))]))
        return answers
'''

# The requests of a batch run through the network together, as in Triton's own backends.
NETWORK = '''
import pathlib

import torch
import triton_python_backend_utils as pb
from torch.utils.dlpack import from_dlpack, to_dlpack


class TritonPythonModel:
    def initialize(self, args):
        torch.set_num_threads(THREADS)
        self.network = torch.jit.load(str(pathlib.Path(__file__).parent / "network.pt")).eval()

    def execute(self, requests):
        tensors = [from_dlpack(pb.get_input_tensor_by_name(request, "image").to_dlpack()) for request in requests]
        with torch.inference_mode():
            logits = self.network(torch.cat(tensors))
        answers, begin = [], 0
        for tensor in tensors:
            own = logits[begin : begin + len(tensor)]
            begin += len(tensor)
            answers.append(pb.InferenceResponse([pb.Tensor.from_dlpack("logits", to_dlpack(own))]))
        return answers
'''


# Files of one size of picture in, logits out.
JPEG = '''
import pathlib
import sys

import torch
import torchvision
import triton_python_backend_utils as pb
from torch.utils.dlpack import from_dlpack, to_dlpack

sys.path.insert(0, "ROOT")

from models.reference.training.classification import prepare


class TritonPythonModel:
    def initialize(self, args):
        torch.set_num_threads(THREADS)
        self.network = torch.jit.load(str(pathlib.Path(__file__).parent / "network.pt")).eval()

    def execute(self, requests):
        files = [from_dlpack(pb.get_input_tensor_by_name(request, "file").to_dlpack())[0] for request in requests]
        decoded = torch.stack([torchvision.io.decode_jpeg(file) for file in files])
        with torch.inference_mode():
            logits = self.network(prepare(decoded))
        rows = [to_dlpack(logits[i : i + 1]) for i in range(len(requests))]
        return [pb.InferenceResponse([pb.Tensor.from_dlpack("logits", row)]) for row in rows]
'''


def write(root, name, source, dims, output, output_dims, max_batch_size=8, given='name: "image" data_type: TYPE_FP32', instances=1):
    folder = pathlib.Path(root) / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(source)
    (folder.parent / "config.pbtxt").write_text(
        f'backend: "python"\nmax_batch_size: {max_batch_size}\ndynamic_batching {{ }}\n'
        f'input {{ {given} dims: {dims} }}\n'
        f'output {{ name: "{output}" data_type: TYPE_FP32 dims: {output_dims} }}\n'
        f"instance_group {{ kind: KIND_CPU count: {instances} }}\n")
    return folder


def write_identity(root):
    write(root, "identity", IDENTITY, [1, -1, -1, -1], "restored", [-1, -1, -1])


def write_network(root, name, architecture, options, weights, shape, threads):
    """Writes the network as TorchScript, frozen and optimised."""
    network = build(architecture, **options).eval()
    network.load_state_dict(load_file(weights))
    with torch.inference_mode():
        traced = torch.jit.freeze(torch.jit.trace(network, torch.zeros(1, *shape)))
    folder = write(root, name, NETWORK.replace("THREADS", str(threads)), list(shape), "logits", [-1])
    traced.save(folder / "network.pt")


def write_jpeg(root, name, traced, threads, instances):
    """A model that takes the bytes of one JPEG in each request, and computes those of a batch together."""
    source = JPEG.replace("ROOT", str(ROOT)).replace("THREADS", str(threads))
    given = 'name: "file" data_type: TYPE_UINT8 allow_ragged_batch: true'
    folder = write(root, name, source, [-1], "logits", [-1], given=given, instances=instances)
    torch.jit.freeze(traced).save(folder / "network.pt")
