// Non-maximum suppression: boxes by descending score, each one kept unless it overlaps a kept one too much.
//
// boxes [N, 4] as (x1, y1, x2, y2) and scores [N] are both float32 or both float64, on one device, in any
// strides. Two boxes overlap too much if their intersection over union, rounded as torchvision's CPU code
// rounds it, is greater than `iou_threshold`; CPU and CUDA agree on every bit. Equal scores are taken in the
// order of their indices. Boxes or scores that are not finite are errors on the CPU.
//
// All calls may be made from any thread at once and throw c10::Error naming the argument, what was expected
// and what came. They are also torch.ops.saccade.nms, batched_nms and nms_padded. Nothing here has a
// derivative.
//
// nms and batched_nms return as many indices as there are, so on CUDA they wait for the device once, at the
// end. They are compositions of nms_padded and ATen's masked_select: under fake tensors, export and
// torch.compile the number of results is an unbacked symbol by masked_select's own rule, with no registration
// in Python. nms_padded has a fixed shape: it never waits, and can be captured in a CUDA graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace saccade::kernels {

// The indices kept, int64, by descending score.
at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold);

// Boxes of different labels, int64 [N], do not suppress each other; coordinates are compared as they are,
// class by class. At most `max_output` indices, the best ones; all if that is negative.
at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& labels,
                       double iou_threshold, int64_t max_output = -1);

// The same as int64 [min(N, max_output)], or [N] if that is negative, with -1 after the last index; and how
// many indices there are, int64 [].
std::tuple<at::Tensor, at::Tensor> nms_padded(const at::Tensor& boxes, const at::Tensor& scores,
                                              double iou_threshold,
                                              const std::optional<at::Tensor>& labels = std::nullopt,
                                              int64_t max_output = -1);

}  // namespace saccade::kernels
