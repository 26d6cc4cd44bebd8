"""Seeds the random numbers, so that a failing test fails again."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20260101)
