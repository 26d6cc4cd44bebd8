"""Writes the same models for Triton's Python backend."""

import pathlib

import torch
from safetensors.torch import load_file

from models.reference import build

IDENTITY = '''
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            values = pb.get_input_tensor_by_name(request, "image").as_numpy()[:, 0]
            answers.append(pb.InferenceResponse([pb.Tensor("restored", values)]))
        return answers
'''

# The requests of a batch run through the network together, as in Triton's own backends.
NETWORK = '''
import pathlib

import numpy
import torch
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        torch.set_num_threads(THREADS)
        self.network = torch.jit.load(str(pathlib.Path(__file__).parent / "network.pt")).eval()

    def execute(self, requests):
        tensors = [pb.get_input_tensor_by_name(request, "image").as_numpy() for request in requests]
        with torch.inference_mode():
            logits = self.network(torch.from_numpy(numpy.concatenate(tensors))).numpy()
        answers, begin = [], 0
        for tensor in tensors:
            own = logits[begin : begin + len(tensor)]
            begin += len(tensor)
            answers.append(pb.InferenceResponse([pb.Tensor("logits", own)]))
        return answers
'''


def write(root, name, source, dims, output, output_dims, max_batch_size=8):
    folder = pathlib.Path(root) / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(source)
    (folder.parent / "config.pbtxt").write_text(
        f'backend: "python"\nmax_batch_size: {max_batch_size}\ndynamic_batching {{ }}\n'
        f'input {{ name: "image" data_type: TYPE_FP32 dims: {dims} }}\n'
        f'output {{ name: "{output}" data_type: TYPE_FP32 dims: {output_dims} }}\n'
        "instance_group { kind: KIND_CPU count: 1 }\n")
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
