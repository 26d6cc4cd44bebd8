// Schema, argument checks, and the choice between kernel and differentiable reference.
#include "kernels/expatt/expatt.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <cmath>
#include <string>
#include <utility>

#include "kernels/common/check.h"
#include "kernels/expatt/expatt_impl.h"

namespace saccade::kernels {
namespace {

constexpr std::pair<std::string_view, ExpattKind> kKinds[] = {
    {"constant", ExpattKind::kConstant},
    {"linear", ExpattKind::kLinear},
    {"cosine", ExpattKind::kCosine},
    {"gaussian", ExpattKind::kGaussian},
    {"exponential_euclidean", ExpattKind::kExponentialEuclidean},
    {"exponential_manhattan", ExpattKind::kExponentialManhattan}};

ExpattKind KindOf(const char* op, std::string_view name) {
  std::string known;
  for (const auto& [each, kind] : kKinds) {
    if (each == name) return kind;
    known.append(known.empty() ? "" : ", ").append(each);
  }
  TORCH_CHECK(false, op, ": argument 'kind' should be one of ", known, ", got '", name, "'");
}

auto ExpattOp() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("saccade::expatt", "").typed<decltype(expatt)>();
  return op;
}

auto ExpattModuleOp() {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("saccade::expatt_module", "")
                             .typed<decltype(expatt_module)>();
  return op;
}

at::Tensor ExpattAutograd(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                          const OptionalTensor& valid) {
  if (NeedsDerivative({v, sigma})) return ExpattReference(v, kind, sigma, valid);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return ExpattOp().call(v, kind, sigma, valid);
}

at::Tensor ExpattModuleAutograd(const at::Tensor& x, const at::Tensor& value_weight,
                                const OptionalTensor& value_bias, const OptionalTensor& out_weight,
                                const OptionalTensor& out_bias, std::string_view kind, double sigma,
                                const OptionalTensor& valid) {
  if (NeedsDerivative(
          {x, value_weight, TensorOrNone(value_bias), TensorOrNone(out_weight), TensorOrNone(out_bias)})) {
    return ExpattModuleReference(x, {value_weight, value_bias, out_weight, out_bias}, kind, sigma, valid);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return ExpattModuleOp().call(x, value_weight, value_bias, out_weight, out_bias, kind, sigma, valid);
}

// Result shapes without data, for torch.compile, fake tensors and export.
at::Tensor ExpattMeta(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                      const OptionalTensor& valid) {
  CheckExpatt(v, kind, sigma, valid);
  return ResultLike(v, v.sym_size(1));
}

at::Tensor ExpattModuleMeta(const at::Tensor& x, const at::Tensor& value_weight,
                            const OptionalTensor& value_bias, const OptionalTensor& out_weight,
                            const OptionalTensor& out_bias, std::string_view kind, double sigma,
                            const OptionalTensor& valid) {
  const ExpattWeights weights{value_weight, value_bias, out_weight, out_bias};
  CheckExpattModule(x, weights, kind, sigma, valid);
  return ResultLike(x, weights.out_channels());
}

}  // namespace

ExpattKind CheckExpatt(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                       const OptionalTensor& valid) {
  constexpr auto kOp = "expatt";
  CheckPicture(kOp, "v", v, 1);
  CheckValid(kOp, valid, v);
  CheckDevice(kOp, "sigma", sigma, v.device());
  if (v.scalar_type() == at::kFloat) {
    CheckDtype(kOp, "sigma", sigma, {at::kFloat});
  } else {
    CheckDtype(kOp, "sigma", sigma, {at::kFloat, v.scalar_type()});
  }
  CheckShape(kOp, "sigma", sigma, {});
  return KindOf(kOp, kind);
}

ExpattKind CheckExpattModule(const at::Tensor& x, const ExpattWeights& weights, std::string_view kind,
                             double sigma, const OptionalTensor& valid) {
  constexpr auto kOp = "expatt_module";
  CheckPicture(kOp, "x", x, 1);
  CheckValid(kOp, valid, x);
  TORCH_CHECK(weights.value.dim() >= 2, kOp, ": argument 'value_weight' should be [dv, C], got ",
              weights.value.sym_sizes());
  const c10::SymInt map_channels = weights.value.sym_size(0);
  CheckMatrix(kOp, "value_weight", weights.value, x, map_channels, x.sym_size(1));
  if (weights.value_bias.has_value()) {
    CheckVector(kOp, "value_bias", *weights.value_bias, x, map_channels);
  }
  if (weights.out.has_value()) {
    TORCH_CHECK(weights.out->dim() >= 2, kOp, ": argument 'out_weight' should be [Cout, dv], got ",
                weights.out->sym_sizes());
    CheckMatrix(kOp, "out_weight", *weights.out, x, weights.out->sym_size(0), map_channels);
  }
  if (weights.out_bias.has_value())
    CheckVector(kOp, "out_bias", *weights.out_bias, x, weights.out_channels());
  TORCH_CHECK(weights.out_channels() >= 1 && map_channels >= 1, kOp,
              ": arguments 'value_weight' and 'out_weight' should have at least one row each, got a "
              "value_weight of shape ",
              weights.value.sym_sizes());
  const ExpattKind known = KindOf(kOp, kind);
  CheckSigma(kOp, known, sigma);
  return known;
}

void CheckSigma(const char* op, ExpattKind kind, double sigma) {
  if (kind == ExpattKind::kGaussian) {
    // The formula squares it, and training does not keep it from crossing zero.
    TORCH_CHECK(std::isfinite(sigma) && sigma != 0, op,
                ": argument 'sigma' should be finite and not zero, got ", sigma);
    return;
  }
  const bool looked_at = IsSeparable(kind) || kind == ExpattKind::kExponentialEuclidean;
  TORCH_CHECK(!looked_at || (std::isfinite(sigma) && sigma > 0), op,
              ": argument 'sigma' should be finite and positive, got ", sigma);
}

at::Tensor expatt(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                  const OptionalTensor& valid) {
  return ExpattOp().call(v, kind, sigma, valid);
}

at::Tensor expatt_module(const at::Tensor& x, const at::Tensor& value_weight,
                         const OptionalTensor& value_bias, const OptionalTensor& out_weight,
                         const OptionalTensor& out_bias, std::string_view kind, double sigma,
                         const OptionalTensor& valid) {
  return ExpattModuleOp().call(x, value_weight, value_bias, out_weight, out_bias, kind, sigma, valid);
}

TORCH_LIBRARY_FRAGMENT(saccade, m) {
  m.def("expatt(Tensor v, str kind, Tensor sigma, Tensor? valid=None) -> Tensor");
  m.def(
      "expatt_module(Tensor x, Tensor value_weight, Tensor? value_bias, Tensor? out_weight, Tensor? "
      "out_bias, "
      "str kind, float sigma=0.75, Tensor? valid=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(saccade, Autograd, m) {
  m.impl("expatt", ExpattAutograd);
  m.impl("expatt_module", ExpattModuleAutograd);
}

TORCH_LIBRARY_IMPL(saccade, Meta, m) {
  m.impl("expatt", ExpattMeta);
  m.impl("expatt_module", ExpattModuleMeta);
}

}  // namespace saccade::kernels
