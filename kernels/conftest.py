"""Random numbers are the same in every run: a test that fails should fail again."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20260101)
