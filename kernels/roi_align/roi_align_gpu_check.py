"""Checks the CUDA side of RoIAlign on a machine with a GPU, then times it beside torchvision.

usage: roi_align_gpu_check.py BUILD_DIR

Every result is compared with float64 on the CPU before anything is timed; any failure, a missing GPU
included, exits non-zero. Times are medians, candidates taking turns, in one process.
"""

import pathlib
import statistics
import sys

import torch
import torchvision

BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def regions(count, batch, size):
    middle = torch.rand(count, 2) * size * 1.2 - 0.1 * size
    extent = torch.rand(count, 2) ** 2 * size * 0.6 + 1
    sample = torch.randint(batch, (count, 1)).float()
    # Such that positions are the same in float32 and float64.
    return torch.cat([sample, ((middle - extent / 2) * 16).round() / 16, ((middle + extent / 2) * 16).round() / 16], 1)


def relative_error(got, expected):
    return ((got.double().cpu() - expected).norm() / expected.norm()).item()


def check(name, run, expected, dtype):
    got = run()
    error = relative_error(got, expected)
    assert error <= BOUNDS[dtype], f"{name} {dtype}: off by {error:.2e}, expected at most {BOUNDS[dtype]:.0e}"
    assert torch.equal(got, run()), f"{name} {dtype}: changes from run to run"
    print(f"  ok {name} {dtype} error {error:.1e}")
    return got


def check_pictures(ops, dtype, memory_format):
    for shape, bins in (((2, 33, 13, 17), (7, 7)), ((1, 256, 50, 68), (7, 7)), ((3, 40, 31, 100), (14, 14)),
                        ((2, 5, 7, 7), (1, 20))):
        x = torch.randn(shape).to(dtype).contiguous(memory_format=memory_format)
        rois = regions(100, shape[0], 4.0 * max(shape[2:]))
        for ratio in (-1, 2):
            for aligned in (False, True):
                # Positions are rounded as float32 on both sides.
                expected = ops.roi_align(x.float(), rois, 0.25, *bins, ratio, aligned).double()
                got = check(f"roi_align {shape} {ratio} {aligned}",
                            lambda: ops.roi_align(x.cuda(), rois.cuda(), 0.25, *bins, ratio, aligned), expected, dtype)
                theirs = torchvision.ops.roi_align(x.cuda().float(), rois.cuda(), bins, 0.25, ratio, aligned)
                assert relative_error(theirs, expected) <= 1e-3, f"torchvision computes something else: {shape}"
                assert got.is_contiguous(memory_format=memory_format)


def check_pyramid(ops, dtype):
    scales = [2.0**-k for k in range(2, 6)]
    maps = [torch.randn(2, 64, round(256 * s), round(320 * s)).to(dtype) for s in scales]
    boxes = regions(300, 2, 256.0)
    expected = ops.roi_align_pyramid([m.float() for m in maps], boxes, scales, 7, 7, 2).double()
    check("roi_align_pyramid", lambda: ops.roi_align_pyramid([m.cuda() for m in maps], boxes.cuda(), scales, 7, 7, 2),
          expected, dtype)


def check_segments(ops, dtype):
    video = torch.randn(2, 24, 48, 6, 8).to(dtype)
    rois = regions(50, 2, 96.0)[:, [0, 1, 3]]
    expected = ops.roi_align_3d(video.float(), rois, 0.5, 8, 2, 4).double()
    check("roi_align_3d", lambda: ops.roi_align_3d(video.cuda(), rois.cuda(), 0.5, 8, 2, 4), expected, dtype)


def check_padding(ops, dtype):
    x = torch.randn(2, 40, 29, 31, device="cuda").to(dtype)
    padded = torch.full((2, 40, 32, 40), float("nan"), dtype=dtype, device="cuda")
    padded[:, :, :29, :31] = x
    valid = torch.tensor([[29, 31], [29, 31]], device="cuda")
    rois = regions(60, 2, 62.0).cuda()
    got = ops.roi_align(padded, rois, 0.5, 7, 7, -1, False, valid)
    assert torch.equal(got, ops.roi_align(x, rois, 0.5, 7, 7)), f"padding shows in {dtype}"
    rois[5, 0], rois[6, 2] = 2, float("inf")
    bad = ops.roi_align(x, rois, 0.5, 7, 7).isnan().flatten(1)
    assert bad[[5, 6]].all() and bad.any(1).sum() == 2, "regions that cannot be pooled should be NaN, and no others"


def captured(run):
    """The call as a CUDA graph; capturing fails if it synchronises or allocates outside the allocator."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def medians_us(candidates, rounds=100):
    times = {name: [] for name in candidates}
    for i in range(rounds + 20):
        for name, run in candidates.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            if i >= 20:
                times[name].append(begin.elapsed_time(end) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def time_one(ops, count, bins, dtype):
    x = torch.randn(1, 256, 200, 272, device="cuda").to(dtype)
    last = x.contiguous(memory_format=torch.channels_last)
    middle = torch.rand(count, 2, device="cuda") * torch.tensor([1088.0, 800.0], device="cuda")
    extent = torch.rand(count, 2, device="cuda") * 56 + 56
    rois = torch.cat([torch.zeros(count, 1, device="cuda"), middle - extent / 2, middle + extent / 2], 1)
    narrow = rois.to(dtype)
    medians = medians_us({
        "saccade, graph": captured(lambda: ops.roi_align(x, rois, 0.25, bins, bins, 2)),
        "saccade, channels-last": captured(lambda: ops.roi_align(last, rois, 0.25, bins, bins, 2)),
        "torchvision, graph": captured(lambda: torchvision.ops.roi_align(x, narrow, (bins, bins), 0.25, 2)),
    })
    print(f"{count} regions, {bins}x{bins}, {dtype}")
    for name, median in medians.items():
        print(f"  {name:24} {median:9.2f} us  {median / medians['saccade, graph']:6.2f}x")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False; expected a machine with an NVIDIA GPU and driver")
    lib = pathlib.Path(sys.argv[1]) / "lib"
    torch.ops.load_library(lib / "libsaccade_kernels.so")
    torch.ops.load_library(lib / "libsaccade_cuda.so")
    ops = torch.ops.saccade
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, torchvision {torchvision.__version__}")
    for dtype in BOUNDS:
        for memory_format in (torch.contiguous_format, torch.channels_last):
            check_pictures(ops, dtype, memory_format)
        check_pyramid(ops, dtype)
        check_segments(ops, dtype)
        check_padding(ops, dtype)
    for dtype in (torch.float32, torch.float16):
        time_one(ops, 1000, 7, dtype)
        time_one(ops, 100, 14, dtype)


if __name__ == "__main__":
    main()
