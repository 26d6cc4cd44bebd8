#include "kernels/common/check.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace saccade::kernels {
namespace {

std::string Join(std::initializer_list<at::ScalarType> types) {
  std::ostringstream text;
  for (const auto* type = types.begin(); type != types.end(); ++type) {
    text << (type == types.begin() ? "" : " or ") << c10::getDtypeNames(*type).first;
  }
  return text.str();
}

}  // namespace

void CheckShape(const char* op, const char* argument, const at::Tensor& tensor,
                c10::SymIntArrayRef expected) {
  TORCH_CHECK(tensor.sym_sizes() == expected, op, ": argument '", argument, "' should have shape ", expected,
              ", got ", tensor.sym_sizes());
}

void CheckDevice(const char* op, const char* argument, const at::Tensor& tensor, c10::Device expected) {
  TORCH_CHECK(tensor.device() == expected, op, ": argument '", argument, "' should be on ", expected,
              " like the first argument, got ", tensor.device());
}

void CheckDtype(const char* op, const char* argument, const at::Tensor& tensor,
                std::initializer_list<at::ScalarType> expected) {
  const bool ok = std::find(expected.begin(), expected.end(), tensor.scalar_type()) != expected.end();
  TORCH_CHECK(ok, op, ": argument '", argument, "' should be ", Join(expected), ", got ",
              c10::getDtypeNames(tensor.scalar_type()).first);
}

void CheckFeatureMap(const char* op, const char* argument, const at::Tensor& tensor, int64_t heads) {
  TORCH_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, op, ": argument '", argument,
              "' should be [B, C, *spatial] with 1 to 3 spatial dimensions, got ", tensor.sym_sizes());
  const c10::SymInt channels = tensor.sym_size(1);
  TORCH_CHECK(heads >= 1, op, ": argument 'heads' should be at least 1, got ", heads);
  TORCH_CHECK(channels >= 1 && channels % heads == 0, op, ": argument '", argument,
              "' should have a positive multiple of heads = ", heads, " channels, got ", tensor.sym_sizes());
}

at::ScalarType AccumulateType(at::ScalarType stored) {
  return stored == at::kDouble ? at::kDouble : at::kFloat;
}

bool NeedsDerivative(std::initializer_list<at::Tensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    if (!tensor.defined()) return false;
    return (at::GradMode::is_enabled() && tensor.requires_grad()) || tensor._fw_grad(0).defined();
  });
}

}  // namespace saccade::kernels
