#include "models/layers/non_local.h"

#include "models/device/transfer.h"
#include "models/layers/position_maps.h"

namespace saccade::models {

NonLocal::NonLocal(const TensorMap& tensors, const std::string& name, int64_t heads, bool softmax)
    : name_(name), heads_(heads), kind_(softmax ? "softmax" : "1n") {
  const auto own = [&](const char* part) { return Owned(tensors.at(name + part), tensors.target); };
  weights_ = {.query_weight = own(".query.weight"),
              .key_weight = own(".key.weight"),
              .value_weight = own(".value.weight"),
              .query_bias = own(".query.bias"),
              .key_bias = own(".key.bias"),
              .value_bias = own(".value.bias"),
              .out_weight = own(".out.weight"),
              .scale = std::nullopt,
              .shift = own(".out.bias")};
}

at::Tensor NonLocal::operator()(const at::Tensor& x, const std::optional<at::Tensor>& valid) const {
  ProbeDotProducts(name_, x,
                   {.kind = kind_,
                    .query_weight = weights_.query_weight,
                    .query_bias = weights_.query_bias,
                    .key_weight = weights_.key_weight,
                    .key_bias = weights_.key_bias,
                    .heads = heads_},
                   valid);
  return kernels::attention_module(x, kind_, weights_, heads_, 1.0, /*residual=*/true, valid);
}

}  // namespace saccade::models
