// oneDNN's fused operations, which LibTorch has as operators without C++ functions.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace saccade::models {

// Returns the operator, e.g. "mkldnn::_convolution_pointwise". Throws c10::Error if this LibTorch lacks it or
// has another signature. Slow: keep the result.
template <typename Signature>
c10::TypedOperatorHandle<Signature> OneDnnOperator(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

}  // namespace saccade::models
