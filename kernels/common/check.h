// Argument checks of all operators, with one wording: operator, argument, expected, got.
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
// Expects [B, C, *spatial] with one to three spatial dimensions, and C a positive multiple of `heads`.
void CheckFeatureMap(const char* op, const char* argument, const at::Tensor& tensor, int64_t heads);

// Returns the dtype in which sums are accumulated: float64 for float64, float32 for narrower types.
at::ScalarType AccumulateType(at::ScalarType stored);

// Returns true if a reverse-mode or forward-mode derivative of any of the tensors may be needed.
bool NeedsDerivative(std::initializer_list<at::Tensor> tensors);

}  // namespace saccade::kernels
