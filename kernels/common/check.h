// What every operator asks of its arguments, in one wording: operator, argument, expected, got.
// Sizes are compared as SymInt, so the same checks hold for real, meta and fake tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

namespace saccade::kernels {

// Each throws c10::Error, e.g. "sao: argument 'w' should have shape [256], got [128]".
void CheckShape(const char* op, const char* argument, const at::Tensor& tensor, c10::SymIntArrayRef expected);
void CheckDevice(const char* op, const char* argument, const at::Tensor& tensor, c10::Device expected);
void CheckDtype(const char* op, const char* argument, const at::Tensor& tensor,
                std::initializer_list<at::ScalarType> expected);
// [B, C, *spatial] with one to three spatial dimensions and at least one channel, in groups of `heads`.
void CheckFeatureMap(const char* op, const char* argument, const at::Tensor& tensor, int64_t heads);

// The type that sums are kept in: float64 for float64, float32 for everything narrower.
at::ScalarType AccumulateType(at::ScalarType stored);

// Whether a derivative of any of these may be asked for, in reverse or in forward mode.
bool NeedsDerivative(std::initializer_list<at::Tensor> tensors);

}  // namespace saccade::kernels
