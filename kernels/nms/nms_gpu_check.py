"""Checks the CUDA side of non-maximum suppression on a machine with a GPU, then times it beside torchvision.

Every result is compared with the CPU's, index by index, before anything is timed. Any failure, including a missing GPU,
gives a non-zero exit status. Times are medians; candidates take turns in one process.
"""

import pathlib
import statistics
import sys
import time

import torch
import torchvision

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import gpu_check  # noqa: E402


def boxes_and_scores(count, size=1000.0, steps=None, dtype=torch.float32):
    middle = torch.rand(count, 2, dtype=dtype) * size
    extent = torch.rand(count, 2, dtype=dtype) * 180 + 16
    boxes = torch.cat([middle - extent / 2, middle + extent / 2], 1)
    scores = torch.rand(count, dtype=dtype) - 0.3
    return ((boxes / 8).round() * 8, (scores * steps).round() / steps) if steps else (boxes, scores)


def check(ops, count, dtype, steps):
    boxes, scores = boxes_and_scores(count, steps=steps, dtype=dtype)
    labels = torch.randint(20, (count,))
    on_gpu = boxes.cuda(), scores.cuda()
    for threshold in (0.0, 1 / 3, 0.5, 0.7):
        expected = ops.nms(boxes, scores, threshold)
        got = ops.nms(*on_gpu, threshold).cpu()
        gpu_check.expect(torch.equal(got, expected), f"nms of {count} {dtype} at {threshold}: not the CPU's indices")
        for most in (-1, 100):
            expected = ops.batched_nms(boxes, scores, labels, threshold, most)
            got = ops.batched_nms(*on_gpu, labels.cuda(), threshold, most).cpu()
            gpu_check.expect(torch.equal(got, expected), f"batched_nms of {count} {dtype} at {threshold}: not the CPU's indices")
    print(f"  ok {count} {dtype} steps={steps}")


def check_capture(ops):
    boxes, scores = (t.cuda() for t in boxes_and_scores(3000))
    replay, (indices, count) = gpu_check.captured_result(lambda: ops.nms_padded(boxes, scores, 0.5))
    for _ in range(2):
        new_boxes, new_scores = boxes_and_scores(3000)
        boxes.copy_(new_boxes)
        scores.copy_(new_scores)
        replay()
        expected = ops.nms(new_boxes, new_scores, 0.5)
        gpu_check.expect(count.item() == len(expected), "a captured call counts wrong")
        gpu_check.expect(torch.equal(indices[:len(expected)].cpu(), expected), "a captured call keeps others")
        gpu_check.expect((indices[len(expected):] == -1).all(), "a captured call does not pad with -1")
    print("  ok in a graph")


def medians_us(candidates, rounds=50):
    """Returns wall-clock medians, because torchvision's reduction runs on the host."""
    times = {name: [] for name in candidates}
    for i in range(rounds + 5):
        for name, run in candidates.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            run()
            torch.cuda.synchronize()
            if i >= 5:
                times[name].append((time.perf_counter() - begin) * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def time_one(ops, count):
    boxes, scores = (t.cuda() for t in boxes_and_scores(count))
    medians = medians_us({
        "saccade": lambda: ops.nms(boxes, scores, 0.5),
        "saccade, padded": lambda: ops.nms_padded(boxes, scores, 0.5),
        "torchvision": lambda: torchvision.ops.nms(boxes, scores, 0.5),
    })
    gpu_check.print_medians(f"nms of {count} boxes", medians)


def check_all(ops, quick):
    print(f"torchvision {torchvision.__version__}")
    for dtype in (torch.float32, torch.float64):
        for steps in (None, 16):
            for count in (0, 1, 65, 1000) if quick else (0, 1, 64, 65, 1000, 5000):
                check(ops, count, dtype, steps)
    if gpu_check.can_capture():
        check_capture(ops)


def time_all(ops):
    for count in (1000, 5000, 20000):
        time_one(ops, count)


if __name__ == "__main__":
    gpu_check.run(__doc__, check_all, time_all)
