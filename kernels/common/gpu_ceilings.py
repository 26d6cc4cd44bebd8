"""Measures what a GPU does at most: how fast it copies, and how fast it multiplies matrices.

usage: gpu_ceilings.py [--stand-in]
"""

import sys

import gpu_stand_in
import torch


def seconds_of(run, times=10):
    for _ in range(3):
        run()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times / 1e3


def main():
    numbers, side = 1 << 30, 8192
    if "--stand-in" in sys.argv[1:]:
        gpu_stand_in.install()
        numbers, side = 1 << 20, 256
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False; expected a machine with an NVIDIA GPU and driver")
    print(f"{torch.cuda.get_device_name()} with CUDA {torch.version.cuda} and torch {torch.__version__}")
    x = torch.randn(numbers, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    print(f"copy: {2 * x.nbytes / seconds_of(lambda: y.copy_(x)) / 1e9:.0f} GB/s, read and written")
    a, b = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    print(f"bf16 product of {side} x {side}: {2 * side**3 / seconds_of(lambda: a @ b) / 1e12:.0f} TFLOP/s")


if __name__ == "__main__":
    main()
