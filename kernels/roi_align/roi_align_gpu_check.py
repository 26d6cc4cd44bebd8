"""Checks the CUDA side of RoIAlign on a machine with a GPU, then times it beside torchvision.

Every result is compared with float64 on the CPU. Any failure, including a missing GPU, gives a non-zero exit status.
With --times, the operator is timed instead: medians of CUDA graphs; candidates take turns in one process.
"""

import pathlib
import sys

import torch
import torchvision

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402


def regions(count, batch, size):
    middle = torch.rand(count, 2) * size * 1.2 - 0.1 * size
    extent = torch.rand(count, 2) ** 2 * size * 0.6 + 1
    sample = torch.randint(batch, (count, 1)).float()
    # Rounded so that positions are the same in float32 and float64.
    return torch.cat([sample, ((middle - extent / 2) * 16).round() / 16, ((middle + extent / 2) * 16).round() / 16], 1)


def check(name, run, expected, dtype):
    got = run()
    error = gpu_check.check_error(f"{name} {dtype}", got, expected)
    gpu_check.expect(torch.equal(got, run()), f"{name} {dtype}: the result changes from run to run")
    print(f"  ok {name} {dtype} error {error:.1e}")
    return got


def check_pictures(ops, dtype, memory_format, quick):
    small = ((2, 33, 13, 17), (7, 7)), ((2, 5, 7, 7), (1, 20))
    large = ((1, 256, 50, 68), (7, 7)), ((3, 40, 31, 100), (14, 14))
    for shape, bins in small if quick else small + large:
        x = torch.randn(shape).to(dtype).contiguous(memory_format=memory_format)
        rois = regions(100, shape[0], 4.0 * max(shape[2:]))
        for ratio in (-1, 2):
            for aligned in (False, True):
                # Positions are rounded to float32 on both sides.
                expected = ops.roi_align(x.float(), rois, 0.25, *bins, ratio, aligned).double()
                got = check(f"roi_align {shape} {ratio} {aligned}",
                            lambda: ops.roi_align(x.cuda(), rois.cuda(), 0.25, *bins, ratio, aligned), expected, dtype)
                theirs = torchvision.ops.roi_align(x.cuda().float(), rois.cuda(), bins, 0.25, ratio, aligned)
                error = gpu_check.relative_error(theirs, expected)
                gpu_check.expect(error <= 1e-3, f"torchvision's result differs: {shape}")
                gpu_check.expect(got.is_contiguous(memory_format=memory_format), f"the layout is not that of the map: {shape}")


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
    wide, valid = gpu_check.padded(x)
    rois = regions(60, 2, 62.0).cuda()
    got = ops.roi_align(wide, rois, 0.5, 7, 7, -1, False, valid)
    gpu_check.expect(torch.equal(got, ops.roi_align(x, rois, 0.5, 7, 7)), f"padding changes the result: {dtype}")
    if gpu_check.options.stand_in:
        return  # On a CPU, regions that cannot be pooled are errors.
    rois[5, 0], rois[6, 2] = 2, float("inf")
    bad = ops.roi_align(x, rois, 0.5, 7, 7).isnan().flatten(1)
    gpu_check.expect(bad[[5, 6]].all() and bad.any(1).sum() == 2, "regions that cannot be pooled should be NaN, and no others")


def time_one(ops, count, bins, dtype, batch):
    x = torch.randn(batch, 256, 200, 272, device="cuda").to(dtype)
    middle = torch.rand(count, 2, device="cuda") * torch.tensor([1088.0, 800.0], device="cuda")
    extent = torch.rand(count, 2, device="cuda") * 56 + 56
    sample = torch.arange(count, device="cuda")[:, None] % batch
    rois = torch.cat([sample, middle - extent / 2, middle + extent / 2], 1)
    narrow = rois.to(dtype)
    candidates = {
        "saccade": lambda x: ops.roi_align(x, rois, 0.25, bins, bins, 2),
        "torchvision": lambda x: torchvision.ops.roi_align(x, narrow, (bins, bins), 0.25, 2),
    }
    gpu_check.time_layouts(f"roi_align of {count} regions of {batch} maps, {bins}x{bins}, {dtype}", candidates, (x,),
                           count * 256 * bins**2 * dtype.itemsize)


def check_all(ops, quick):
    print(f"torchvision {torchvision.__version__}")
    for dtype in gpu_check.BOUNDS:
        for memory_format in (torch.contiguous_format, torch.channels_last):
            check_pictures(ops, dtype, memory_format, quick)
        check_pyramid(ops, dtype)
        check_segments(ops, dtype)
        check_padding(ops, dtype)


def time_all(ops):
    for dtype in (torch.float32, torch.float16):
        for batch in (1, 8, 32):
            time_one(ops, 1000 * batch, 7, dtype, batch)
            time_one(ops, 100 * batch, 14, dtype, batch)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)
