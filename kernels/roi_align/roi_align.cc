// Schema, argument checks, result shapes, and the choice between kernel and differentiable reference.
#include "kernels/roi_align/roi_align.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cmath>

#include "kernels/common/check.h"
#include "kernels/roi_align/roi_align_impl.h"
#include "kernels/roi_align/roi_align_problem.h"

namespace saccade::kernels {
namespace {

template <typename Signature>
auto Find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

auto RoiAlignOp() {
  static const auto op = Find<RoiAlignAs::Schema>("saccade::roi_align");
  return op;
}

auto RoiAlignPyramidOp() {
  static const auto op = Find<RoiAlignPyramidAs::Schema>("saccade::roi_align_pyramid");
  return op;
}

auto RoiAlign3dOp() {
  static const auto op = Find<RoiAlign3dAs::Schema>("saccade::roi_align_3d");
  return op;
}

bool AnyNeedsDerivative(const std::vector<at::Tensor>& levels) {
  for (const at::Tensor& level : levels) {
    if (NeedsDerivative({level})) return true;
  }
  return false;
}

// Runs the reference if a derivative may be needed, otherwise the operator that kOp returns.
template <auto kConvert, auto kOp>
struct Autograd;
template <typename... Arguments, RoiAlignArguments (*kConvert)(Arguments...), auto kOp>
struct Autograd<kConvert, kOp> {
  static at::Tensor Run(Arguments... arguments) {
    if (const RoiAlignArguments call = kConvert(arguments...); AnyNeedsDerivative(call.levels)) {
      return RoiAlignReference(call);
    }
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return kOp().call(arguments...);
  }
};

at::Tensor Meta(const RoiAlignArguments& call) {
  CheckRoiAlign(call);
  return RoiAlignResult(call);
}

void CheckLevels(const RoiAlignArguments& call) {
  TORCH_CHECK(!call.levels.empty() && call.levels.size() <= kMaxRoiLevels, call.op,
              ": argument 'levels' should be 1 to ", kMaxRoiLevels, " maps, got ", call.levels.size());
  TORCH_CHECK(call.scales.size() == call.levels.size(), call.op,
              ": argument 'spatial_scales' should have one scale for each of ", call.levels.size(),
              " levels, got ", call.scales.size());
  const at::Tensor& first = call.levels[0];
  for (size_t l = 0; l < call.levels.size(); ++l) {
    const at::Tensor& level = call.levels[l];
    CheckInputMap(call.op, call.map_name, level, 1);
    TORCH_CHECK(level.dim() == static_cast<int64_t>(call.pooled.size()) + 2, call.op, ": argument '",
                call.map_name, "' should have ", call.pooled.size() + 2, " dimensions, got ",
                level.sym_sizes());
    CheckDevice(call.op, call.map_name, level, first.device());
    CheckDtype(call.op, call.map_name, level, {first.scalar_type()});
    TORCH_CHECK(
        level.sym_size(0) == first.sym_size(0) && level.sym_size(1) == first.sym_size(1), call.op,
        ": argument 'levels' should have the same batch size and number of channels at every level, got ",
        first.sym_sizes(), " and ", level.sym_sizes());
    TORCH_CHECK(std::isfinite(call.scales[l]) && call.scales[l] > 0, call.op,
                call.pyramid ? ": argument 'spatial_scales' should be" : ": the scale argument should be",
                " positive, got ", call.scales[l]);
    TORCH_CHECK(l == 0 || call.scales[l] * 2 == call.scales[l - 1], call.op,
                ": argument 'spatial_scales' should halve from each level to the next, got ",
                at::ArrayRef<double>(call.scales));
  }
}

}  // namespace

OptionalTensor RoiAlignArguments::ValidOf(size_t level) const {
  return pyramid && valid.has_value() ? OptionalTensor(valid->select(0, static_cast<int64_t>(level))) : valid;
}

RoiAlignArguments RoiAlignCall(const at::Tensor& features, const at::Tensor& rois, double spatial_scale,
                               int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio,
                               bool aligned, const OptionalTensor& valid) {
  return {.op = "roi_align",
          .map_name = "features",
          .roi_name = "rois",
          .levels = {features},
          .scales = {spatial_scale},
          .rois = rois,
          .pooled = {pooled_height, pooled_width},
          .sampling_ratio = sampling_ratio,
          .aligned = aligned,
          .valid = valid};
}

RoiAlignArguments RoiAlignPyramidCall(at::TensorList levels, const at::Tensor& boxes,
                                      at::ArrayRef<double> spatial_scales, int64_t pooled_height,
                                      int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                                      int64_t canonical_scale, int64_t canonical_level,
                                      const OptionalTensor& valid) {
  return {.op = "roi_align_pyramid",
          .map_name = "levels",
          .roi_name = "boxes",
          .levels = levels.vec(),
          .scales = spatial_scales.vec(),
          .rois = boxes,
          .pooled = {pooled_height, pooled_width},
          .sampling_ratio = sampling_ratio,
          .aligned = aligned,
          .canonical_scale = canonical_scale,
          .canonical_level = canonical_level,
          .valid = valid,
          .pyramid = true};
}

RoiAlignArguments RoiAlign3dCall(const at::Tensor& features, const at::Tensor& rois, double temporal_scale,
                                 int64_t pooled_length, int64_t pooled_height, int64_t pooled_width,
                                 int64_t sampling_ratio, bool aligned, const OptionalTensor& valid) {
  return {.op = "roi_align_3d",
          .map_name = "features",
          .roi_name = "rois",
          .levels = {features},
          .scales = {temporal_scale},
          .rois = rois,
          .pooled = {pooled_length, pooled_height, pooled_width},
          .sampling_ratio = sampling_ratio,
          .aligned = aligned,
          .valid = valid};
}

void CheckRoiAlign(const RoiAlignArguments& call) {
  CheckLevels(call);
  const at::Tensor& first = call.levels[0];
  CheckWeights(
      call.op, call.roi_name, call.rois, first,
      {{call.rois.dim() > 0 ? call.rois.sym_size(0) : c10::SymInt(0), c10::SymInt(call.temporal() ? 3 : 5)}});
  for (const int64_t bins : call.pooled) {
    TORCH_CHECK(bins >= 1 && bins <= 1024, call.op,
                ": the pooled size should be 1 to 1024 along each axis, got ", at::IntArrayRef(call.pooled));
  }
  TORCH_CHECK(call.sampling_ratio <= 65536, call.op,
              ": argument 'sampling_ratio' should be at most 65536, got ", call.sampling_ratio);
  TORCH_CHECK(call.canonical_scale >= 1, call.op, ": argument 'canonical_scale' should be at least 1, got ",
              call.canonical_scale);
  if (!call.valid.has_value()) return;
  if (call.pyramid) {
    CheckShape(call.op, "valid", *call.valid,
               {c10::SymInt(static_cast<int64_t>(call.levels.size())), first.sym_size(0), c10::SymInt(2)});
  }
  for (size_t l = 0; l < call.levels.size(); ++l) CheckValid(call.op, call.ValidOf(l), call.levels[l]);
}

at::Tensor RoiAlignResult(const RoiAlignArguments& call) {
  const at::Tensor& first = call.levels[0];
  std::vector<c10::SymInt> shape = {call.rois.sym_size(0), first.sym_size(1)};
  for (const int64_t bins : call.pooled) shape.emplace_back(bins);
  return at::empty_symint(shape, first.options().memory_format(first.suggest_memory_format()));
}

at::Tensor roi_align(const at::Tensor& features, const at::Tensor& rois, double spatial_scale,
                     int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                     const OptionalTensor& valid) {
  return RoiAlignOp().call(features, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio,
                           aligned, valid);
}

at::Tensor roi_align_pyramid(const RoiAlignPyramid& pyramid, const at::Tensor& boxes, int64_t pooled_height,
                             int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                             const OptionalTensor& valid) {
  return RoiAlignPyramidOp().call(pyramid.levels, boxes, pyramid.spatial_scales, pooled_height, pooled_width,
                                  sampling_ratio, aligned, pyramid.canonical_scale, pyramid.canonical_level,
                                  valid);
}

at::Tensor roi_align_3d(const at::Tensor& features, const at::Tensor& rois, double temporal_scale,
                        int64_t pooled_length, int64_t pooled_height, int64_t pooled_width,
                        int64_t sampling_ratio, bool aligned, const OptionalTensor& valid) {
  return RoiAlign3dOp().call(features, rois, temporal_scale, pooled_length, pooled_height, pooled_width,
                             sampling_ratio, aligned, valid);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def(
      "roi_align(Tensor features, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
      "int sampling_ratio=-1, bool aligned=False, Tensor? valid=None) -> Tensor");
  m.def(
      "roi_align_pyramid(Tensor[] levels, Tensor boxes, float[] spatial_scales, int pooled_height, "
      "int pooled_width, int sampling_ratio=-1, bool aligned=False, int canonical_scale=224, "
      "int canonical_level=4, Tensor? valid=None) -> Tensor");
  m.def(
      "roi_align_3d(Tensor features, Tensor rois, float temporal_scale, int pooled_length, int "
      "pooled_height, "
      "int pooled_width, int sampling_ratio=-1, bool aligned=False, Tensor? valid=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("roi_align", Autograd<RoiAlignCall, RoiAlignOp>::Run);
  m.impl("roi_align_pyramid", Autograd<RoiAlignPyramidCall, RoiAlignPyramidOp>::Run);
  m.impl("roi_align_3d", Autograd<RoiAlign3dCall, RoiAlign3dOp>::Run);
}

TORCH_LIBRARY_IMPL(saccade, Meta, m) {
  m.impl("roi_align", RoiAlignAs::Run<Meta>);
  m.impl("roi_align_pyramid", RoiAlignPyramidAs::Run<Meta>);
  m.impl("roi_align_3d", RoiAlign3dAs::Run<Meta>);
}

}  // namespace saccade::kernels
