"""Shared by the tests with Triton's gRPC client."""

import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException


def tensor_input(array):
    made = triton.InferInput("image", array.shape, "FP32")
    made.set_data_from_numpy(array)
    return made


def refusal(call, *arguments, **named):
    """(code, message) of a call that must fail."""
    with pytest.raises(InferenceServerException) as error:
        call(*arguments, **named)
    return error.value.status().removeprefix("StatusCode."), error.value.message()
