"""Tests of non-maximum suppression from Python: against torchvision, and torch.library.opcheck."""

import pytest
import torch
import torchvision

from kernels.common.opcheck import OPS


def boxes_and_scores(count, size=400.0, seed=0, dtype=torch.float32, steps=None):
    random = torch.Generator().manual_seed(seed)
    middle = torch.rand(count, 2, generator=random, dtype=dtype) * size
    extent = torch.rand(count, 2, generator=random, dtype=dtype) * 60 + 1
    boxes = torch.cat([middle - extent / 2, middle + extent / 2], 1)
    scores = torch.rand(count, generator=random, dtype=dtype) - 0.3
    # On a grid, overlaps often equal the threshold exactly, and many scores are equal.
    return ((boxes / 8).round() * 8, (scores * steps).round() / steps) if steps else (boxes, scores)


def class_by_class(boxes, scores, labels, threshold):
    """Returns torchvision's nms of each class, merged by score and then index."""
    kept = torch.zeros(len(boxes), dtype=torch.bool)
    for label in labels.unique():
        of_class = (labels == label).nonzero().flatten()
        kept[of_class[torchvision.ops.nms(boxes[of_class], scores[of_class], threshold)]] = True
    indices = kept.nonzero().flatten()
    return indices[scores[indices].argsort(descending=True, stable=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("steps", [None, 16])
def test_is_torchvisions(dtype, steps):
    for count in (1, 2, 15, 16, 17, 100, 513, 3000):
        boxes, scores = boxes_and_scores(count, seed=count, dtype=dtype, steps=steps)
        for threshold in (0.0, 0.25, 1 / 3, 0.5, 0.7, 1.0):
            got = OPS.nms(boxes, scores, threshold)
            assert torch.equal(got, torchvision.ops.nms(boxes, scores, threshold)), (count, threshold)


def test_strange_boxes_are_torchvisions():
    """Boxes without area, with swapped corners, huge and tiny, and unusual thresholds."""
    boxes, scores = boxes_and_scores(300)
    boxes[::7, 2:] = boxes[::7, :2]
    boxes[1::7] = boxes[1::7][:, [2, 3, 0, 1]]
    boxes[2::7] *= 1e20
    boxes[3::7] *= 1e-22
    boxes[4::7] *= 1e-38
    # One pair of ends swapped: the area is negative.
    boxes[5::7] = boxes[5::7][:, [2, 1, 0, 3]]
    for threshold in (-1.0, -1e-3, 0.0, 1e-42, 1e-20, 0.3, 2.0, float("inf")):
        assert torch.equal(OPS.nms(boxes, scores, threshold), torchvision.ops.nms(boxes, scores, threshold)), threshold


@pytest.mark.parametrize("classes", [1, 3, 80, 5000])
def test_batched_is_torchvisions_class_by_class(classes):
    for count, steps in ((1, None), (200, 16), (4000, None)):
        boxes, scores = boxes_and_scores(count, seed=classes, steps=steps)
        labels = torch.randint(-classes, classes, (count,)) // 2 * 2**40
        expected = class_by_class(boxes, scores, labels, 0.4)
        assert torch.equal(OPS.batched_nms(boxes, scores, labels, 0.4), expected)
        for most in (0, 1, 7, 100, 10**6):
            assert torch.equal(OPS.batched_nms(boxes, scores, labels, 0.4, most), expected[:most])
        indices, kept = OPS.nms_padded(boxes, scores, 0.4, labels)
        assert kept == len(expected) and torch.equal(indices[:kept], expected) and (indices[kept:] == -1).all()


def test_large_classes_do_not_depend_on_the_threads():
    boxes, scores = boxes_and_scores(9000, size=2000.0)
    labels = (torch.arange(9000) % 5).clamp_max(1)
    expected = class_by_class(boxes, scores, labels, 0.5), torchvision.ops.nms(boxes, scores, 0.5)
    threads = torch.get_num_threads()
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        assert torch.equal(OPS.batched_nms(boxes, scores, labels, 0.5), expected[0])
        assert torch.equal(OPS.nms(boxes, scores, 0.5), expected[1])
    torch.set_num_threads(threads)


def test_both_zeros_are_one_score():
    boxes = torch.tensor([[0.0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]])
    assert OPS.nms(boxes, torch.tensor([-0.0, 0.0, -0.0]), 0.5).tolist() == [0, 1, 2]


def test_strided_boxes():
    boxes, scores = boxes_and_scores(100)
    wide = torch.stack([boxes, boxes + 1], 2).flatten(1)
    twice = scores.repeat_interleave(2)
    assert torch.equal(OPS.nms(wide[:, ::2], twice[::2], 0.5), torchvision.ops.nms(boxes, scores, 0.5))


def test_nothing_gives_nothing():
    none = torch.zeros(0, 4), torch.zeros(0)
    assert OPS.nms(*none, 0.5).shape == (0,)
    assert OPS.batched_nms(*none, torch.zeros(0, dtype=torch.long), 0.5).dtype == torch.long
    assert OPS.nms_padded(*none, 0.5)[1] == 0


@pytest.mark.parametrize("grad", [False, True])
def test_opcheck(grad):
    boxes, scores = boxes_and_scores(50)
    boxes.requires_grad_(grad)
    labels = torch.arange(50) % 3
    torch.library.opcheck(OPS.nms_padded.default, (boxes, scores, 0.5))
    torch.library.opcheck(OPS.nms_padded.default, (boxes, scores, 0.5, labels, 10))
    torch.library.opcheck(OPS.nms.default, (boxes, scores, 0.5))
    torch.library.opcheck(OPS.batched_nms.default, (boxes, scores, labels, 0.5, 10))


def test_exports_with_a_number_of_results_that_depends_on_the_data():
    class Best(torch.nn.Module):
        def forward(self, boxes, scores):
            return boxes[torch.ops.saccade.nms(boxes, scores, 0.5)] * 2

    example, other = boxes_and_scores(40), boxes_and_scores(40, size=100.0, seed=1)
    program = torch.export.export(Best(), example).module()
    for inputs in (example, other):
        torch.testing.assert_close(program(*inputs), Best()(*inputs))


def test_errors_name_the_argument():
    boxes, scores = boxes_and_scores(5)
    bad = boxes.clone()
    bad[2, 1] = float("nan")
    for arguments, words in (
            ((bad, scores, 0.5), "argument 'boxes' should be finite"),
            ((boxes, scores / 0, 0.5), "argument 'scores' should be finite"),
            ((boxes[:, :3], scores, 0.5), r"argument 'boxes' should have shape \[5, 4\], got \[5, 3\]"),
            ((boxes, scores[:4], 0.5), r"argument 'scores' should have shape \[5\], got \[4\]"),
            ((boxes, scores.double(), 0.5), "argument 'scores' should be float32, got float64"),
            ((boxes.half(), scores.half(), 0.5), "argument 'boxes' should be float32 or float64, got float16"),
            ((boxes, scores, float("nan")), "argument 'iou_threshold' should be a number")):
        with pytest.raises(RuntimeError, match=words):
            OPS.nms(*arguments)
    with pytest.raises(RuntimeError, match="argument 'labels' should be int64, got float32"):
        OPS.batched_nms(boxes, scores, scores, 0.5)
