// Non-maximum suppression: visits boxes by descending score and keeps each one unless it overlaps a kept box
// too much.
//
// boxes [N, 4] as (x1, y1, x2, y2) and scores [N] are both float32 or both float64, on the same device, with
// any strides. Two boxes overlap too much if their intersection over union, rounded like torchvision's CPU
// code, is greater than `iou_threshold`; CPU and CUDA give the same bits. Equal scores are ordered by index.
// On the CPU, boxes or scores that are not finite are errors.
//
// All calls are thread-safe and throw c10::Error with the argument, what was expected and what was given.
// They are also torch.ops.saccade.nms, batched_nms and nms_padded. None has a derivative.
//
// The number of indices that nms and batched_nms return depends on the data, so on CUDA they synchronise
// once, at the end. They are compositions of nms_padded and ATen's masked_select: under fake tensors, export
// and torch.compile the number of results is an unbacked symbol by masked_select's own rule, without a
// registration in Python. nms_padded has a fixed shape: it never synchronises, and can be captured in a CUDA
// graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace saccade::kernels {

// Returns the indices of the kept boxes, int64, by descending score.
at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold);

// Same, but boxes with different labels (int64 [N]) do not suppress each other; their coordinates are not
// shifted to separate the classes. Returns the best `max_output` indices at most, or all if max_output is
// negative.
at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& labels,
                       double iou_threshold, int64_t max_output = -1);

// Same as int64 [min(N, max_output)], or [N] if max_output is negative, with -1 after the last index; and the
// number of indices, int64 [].
std::tuple<at::Tensor, at::Tensor> nms_padded(const at::Tensor& boxes, const at::Tensor& scores,
                                              double iou_threshold,
                                              const std::optional<at::Tensor>& labels = std::nullopt,
                                              int64_t max_output = -1);

}  // namespace saccade::kernels
