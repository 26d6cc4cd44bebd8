// Shared by the files of this operator: a common form of its three calls, argument checks, and the reference.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/common/binding.h"

namespace saccade::kernels {

// The arguments of any of the three calls.
struct RoiAlignArguments {
  const char* op;
  const char* map_name;
  const char* roi_name;
  std::vector<at::Tensor> levels;
  std::vector<double> scales;
  at::Tensor rois;
  std::vector<int64_t> pooled;  // one per spatial dimension
  int64_t sampling_ratio;
  bool aligned;
  int64_t canonical_scale = 224;
  int64_t canonical_level = 4;
  OptionalTensor valid;  // [B, dims], or [levels, B, dims] for a pyramid
  bool pyramid = false;

  bool temporal() const { return pooled.size() == 3; }
  // Returns one level's part of `valid`.
  OptionalTensor ValidOf(size_t level) const;
};

// Convert each call's arguments, which the dispatcher gives one by one as in the call's schema.
RoiAlignArguments RoiAlignCall(const at::Tensor& features, const at::Tensor& rois, double spatial_scale,
                               int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio,
                               bool aligned, const OptionalTensor& valid);
RoiAlignArguments RoiAlignPyramidCall(at::TensorList levels, const at::Tensor& boxes,
                                      at::ArrayRef<double> spatial_scales, int64_t pooled_height,
                                      int64_t pooled_width, int64_t sampling_ratio, bool aligned,
                                      int64_t canonical_scale, int64_t canonical_level,
                                      const OptionalTensor& valid);
RoiAlignArguments RoiAlign3dCall(const at::Tensor& features, const at::Tensor& rois, double temporal_scale,
                                 int64_t pooled_length, int64_t pooled_height, int64_t pooled_width,
                                 int64_t sampling_ratio, bool aligned, const OptionalTensor& valid);

// The signature of a call's schema, taken from the function above that converts its arguments.
template <auto kConvert>
struct RoiAlignSignature;
template <typename... Arguments, RoiAlignArguments (*kConvert)(Arguments...)>
struct RoiAlignSignature<kConvert> {
  using Schema = at::Tensor(Arguments...);

  // A function of that signature which runs kRun, to be registered for a dispatch key.
  template <at::Tensor (*kRun)(const RoiAlignArguments&)>
  static at::Tensor Run(Arguments... arguments) {
    return kRun(kConvert(arguments...));
  }
};
using RoiAlignAs = RoiAlignSignature<RoiAlignCall>;
using RoiAlignPyramidAs = RoiAlignSignature<RoiAlignPyramidCall>;
using RoiAlign3dAs = RoiAlignSignature<RoiAlign3dCall>;

// Throws c10::Error unless the arguments fit each other. Does not read tensor values.
void CheckRoiAlign(const RoiAlignArguments& call);

// Returns the result tensor, uninitialised.
at::Tensor RoiAlignResult(const RoiAlignArguments& call);

// Returns the level of each region of a pyramid, int64 [K]. Uses ATen operators in torchvision's order, so
// that the last bit of the logarithm is the same.
at::Tensor RoiLevels(const RoiAlignArguments& call);

// Composition of ATen operators: differentiable in the features, and the tests' oracle.
at::Tensor RoiAlignReference(const RoiAlignArguments& call);

}  // namespace saccade::kernels
