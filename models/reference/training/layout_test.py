"""Training must not use the layout in which oneDNN writes the gradient of some weights out of bounds."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from models.reference.training.layout import overruns, use_channels_last

# x [2, 8, 40, 64] and a weight [16, 8, 1, 1] with stride 2: the smallest case that crashed. In a process of its own, as
# what is overrun differs from run to run.
CASE = """
import torch
from torch import nn
from models.reference.training.layout import use_channels_last

torch.manual_seed(0)
torch.set_num_threads(1)
network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 1, stride=2, bias=False)).float()
exact = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 1, stride=2, bias=False)).double()
exact.load_state_dict(network.state_dict())
use_channels_last(network)
for _ in range(20):
    x = torch.randn(2, 3, 40, 64)
    for each, given in ((network, x), (exact, x.double())):
        each.zero_grad()
        each(given).square().sum().backward()
    torch.testing.assert_close(network[1].weight.grad.double(), exact[1].weight.grad, rtol=1e-4, atol=1e-2)
"""


def test_a_narrow_strided_convolution_trains():
    done = subprocess.run([sys.executable, "-c", CASE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "layer, expected",
    [
        (nn.Conv2d(8, 16, 1, stride=2), True),
        (nn.Conv2d(32, 16, 1, stride=2, groups=4), True),
        (nn.Conv2d(8, 16, 1), False),
        (nn.Conv2d(16, 16, 1, stride=2), False),
        (nn.Conv2d(8, 16, 3, stride=2), False),
    ],
)
def test_what_overruns(layer, expected):
    assert overruns(layer) is expected
    network = nn.Sequential(nn.Conv2d(3, 32, 3), layer)
    assert use_channels_last(network) is not expected
    last = network[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert last is not expected


def test_other_layouts_stay():
    network = nn.Sequential(nn.Conv3d(3, 8, 3), nn.Linear(4, 4))
    assert use_channels_last(network)
    assert all(parameter.is_contiguous() for parameter in network.parameters())
