#include "models/layers/explicit_attention.h"

#include <cmath>
#include <utility>

#include "kernels/expatt/expatt.h"
#include "models/api/error.h"
#include "models/device/transfer.h"
#include "models/layers/attention_maps.h"
#include "models/layers/explicit_maps.h"

namespace saccade::models {

double ExplicitRadius(const at::Tensor& value, const std::string& name, const std::string& map) {
  const auto sigma = value.to(at::kDouble).item<double>();
  // The Gaussian map squares its radius, so that training may turn the sign.
  const bool squared = map == "gaussian";
  if (std::isfinite(sigma) && (squared ? sigma != 0 : sigma > 0)) return sigma;
  throw LoadError(name + " is " + std::to_string(sigma) + ", expected a " +
                  (squared ? "radius other than zero" : "positive radius") +
                  "; the training may have diverged");
}

ExplicitAttention::ExplicitAttention(const TensorMap& tensors, const std::string& name, const Affine& affine,
                                     std::string map)
    : name_(name), map_(std::move(map)) {
  if (HasRadius(map_)) sigma_ = ExplicitRadius(tensors.at(name + ".sigma"), name + ".sigma", map_);
  // The map's rows sum to one, so the affine map behind it can be folded into the output weights.
  RefuseQuantized(tensors.at(name + ".out.weight"));
  const at::Tensor out = tensors.at(name + ".out.weight").flatten(1).to(at::kDouble);
  value_weight_ = Owned(tensors.at(name + ".value.weight").flatten(1), tensors.target);
  out_weight_ = Owned(out.mul(affine.scale.unsqueeze(1)), tensors.target);
  shift_ = Owned(affine.shift, tensors.target);
}

at::Tensor ExplicitAttention::operator()(const at::Tensor& x) const {
  ProbeExplicit(name_, x, map_, sigma_);
  return kernels::expatt_module(x, value_weight_, std::nullopt, out_weight_, shift_, map_, sigma_);
}

Affine PartOf(const Affine& affine, int64_t first, int64_t count) {
  return {affine.scale.narrow(0, first, count), affine.shift.narrow(0, first, count)};
}

}  // namespace saccade::models
