#include "models/layers/efficient_attention.h"

#include <utility>

#include "kernels/efficient_attention/efficient_attention.h"
#include "models/device/transfer.h"
#include "models/layers/attention_maps.h"

namespace saccade::models {

EfficientAttention::Projection EfficientAttention::Load(const TensorMap& tensors, const std::string& name) {
  const auto own = [&](const char* part) { return Owned(tensors.at(name + part), tensors.target); };
  return {own(".weight"), own(".bias")};
}

EfficientAttention::EfficientAttention(const TensorMap& tensors, const std::string& name, int64_t heads,
                                       std::string normalization)
    : name_(name),
      query_(Load(tensors, name + ".query")),
      key_(Load(tensors, name + ".key")),
      value_(Load(tensors, name + ".value")),
      heads_(heads),
      normalization_(std::move(normalization)) {
  if (!tensors.contains(name + ".out.weight")) return;
  const Projection out = Load(tensors, name + ".out");
  out_weight_ = out.weight;
  out_bias_ = out.bias;
}

at::Tensor EfficientAttention::operator()(const at::Tensor& x, const std::optional<at::Tensor>& valid) const {
  ProbeEfficientAttention(name_, x, key_.weight, key_.bias, normalization_, valid);
  const kernels::EaWeights weights{key_.weight, query_.weight, value_.weight, key_.bias,
                                   query_.bias, value_.bias,   out_weight_,   out_bias_};
  return kernels::efficient_attention_module(x, weights, heads_, normalization_, /*residual=*/true, valid);
}

std::string AbsentNote(const std::string& module) {
  return "the weights have no tensors for " + module +
         ", which is the identity without weights: the module is left out";
}

}  // namespace saccade::models
