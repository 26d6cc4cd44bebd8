// Schema, argument checks, result shapes, and the two operators that are composed of the third.
#include "kernels/nms/nms.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/masked_select.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cmath>

#include "kernels/common/check.h"
#include "kernels/nms/nms_impl.h"

namespace saccade::kernels {
namespace {

template <typename Signature>
auto Find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

at::Tensor WithoutPadding(const at::Tensor& padded) { return padded.masked_select(padded >= 0); }

at::Tensor NmsComposite(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold) {
  return WithoutPadding(std::get<0>(nms_padded(boxes, scores, iou_threshold)));
}

at::Tensor BatchedNmsComposite(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& labels,
                               double iou_threshold, int64_t max_output) {
  return WithoutPadding(std::get<0>(nms_padded(boxes, scores, iou_threshold, labels, max_output)));
}

// Indices have no derivative, so autograd has nothing to record.
std::tuple<at::Tensor, at::Tensor> NmsPaddedAutograd(const at::Tensor& boxes, const at::Tensor& scores,
                                                     double iou_threshold, const OptionalTensor& labels,
                                                     int64_t max_output) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return nms_padded(boxes, scores, iou_threshold, labels, max_output);
}

std::tuple<at::Tensor, at::Tensor> NmsPaddedMeta(const at::Tensor& boxes, const at::Tensor& scores,
                                                 double iou_threshold, const OptionalTensor& labels,
                                                 int64_t max_output) {
  CheckNms(boxes, scores, iou_threshold, labels);
  return NmsResults(boxes, max_output);
}

}  // namespace

void CheckNms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold,
              const OptionalTensor& labels) {
  constexpr auto kOp = "nms";
  CheckDtype(kOp, "boxes", boxes, {at::kFloat, at::kDouble});
  const c10::SymInt count = boxes.dim() > 0 ? boxes.sym_size(0) : c10::SymInt(0);
  CheckShape(kOp, "boxes", boxes, {count, c10::SymInt(4)});
  CheckDevice(kOp, "scores", scores, boxes.device());
  CheckDtype(kOp, "scores", scores, {boxes.scalar_type()});
  CheckShape(kOp, "scores", scores, {count});
  TORCH_CHECK(!std::isnan(iou_threshold), kOp, ": argument 'iou_threshold' should be a number, got NaN");
  if (!labels.has_value()) return;
  CheckDevice(kOp, "labels", *labels, boxes.device());
  CheckDtype(kOp, "labels", *labels, {at::kLong});
  CheckShape(kOp, "labels", *labels, {count});
}

std::tuple<at::Tensor, at::Tensor> NmsResults(const at::Tensor& boxes, int64_t max_output) {
  const auto options = boxes.options().dtype(at::kLong);
  const c10::SymInt count = boxes.sym_size(0);
  return {at::empty_symint({max_output < 0 ? count : count.min(max_output)}, options),
          at::empty({}, options)};
}

NmsBound BindNms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold,
                 const OptionalTensor& labels, int64_t max_output) {
  CheckNms(boxes, scores, iou_threshold, labels);
  NmsBound bound;
  bound.boxes = boxes.contiguous();
  bound.scores = scores.contiguous();
  if (labels.has_value()) bound.labels = labels->contiguous();
  std::tie(bound.out, bound.out_count) = NmsResults(boxes, max_output);
  bound.problem = {.count = boxes.size(0),
                   .boxes = bound.boxes.const_data_ptr(),
                   .scores = bound.scores.const_data_ptr(),
                   .labels = labels.has_value() ? bound.labels.const_data_ptr<int64_t>() : nullptr,
                   .iou_threshold = iou_threshold,
                   .out = bound.out.mutable_data_ptr<int64_t>(),
                   .out_size = bound.out.size(0),
                   .out_count = bound.out_count.mutable_data_ptr<int64_t>()};
  return bound;
}

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double iou_threshold) {
  static const auto op = Find<decltype(nms)>("saccade::nms");
  return op.call(boxes, scores, iou_threshold);
}

at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& labels,
                       double iou_threshold, int64_t max_output) {
  static const auto op = Find<decltype(batched_nms)>("saccade::batched_nms");
  return op.call(boxes, scores, labels, iou_threshold, max_output);
}

std::tuple<at::Tensor, at::Tensor> nms_padded(const at::Tensor& boxes, const at::Tensor& scores,
                                              double iou_threshold, const OptionalTensor& labels,
                                              int64_t max_output) {
  static const auto op = Find<decltype(nms_padded)>("saccade::nms_padded");
  return op.call(boxes, scores, iou_threshold, labels, max_output);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def("nms(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor");
  m.def(
      "batched_nms(Tensor boxes, Tensor scores, Tensor labels, float iou_threshold, int max_output=-1) "
      "-> Tensor");
  m.def(
      "nms_padded(Tensor boxes, Tensor scores, float iou_threshold, Tensor? labels=None, int max_output=-1) "
      "-> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(saccade, CompositeImplicitAutograd, m) {
  m.impl("nms", NmsComposite);
  m.impl("batched_nms", BatchedNmsComposite);
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) { m.impl("nms_padded", NmsPaddedAutograd); }

TORCH_LIBRARY_IMPL(saccade, Meta, m) { m.impl("nms_padded", NmsPaddedMeta); }

}  // namespace saccade::kernels
