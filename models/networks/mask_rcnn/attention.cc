#include "models/networks/mask_rcnn/attention.h"

#include "kernels/efficient_attention/efficient_attention.h"
#include "models/layers/device.h"

namespace saccade::models {

EfficientAttention::EfficientAttention(const TensorMap& tensors, const std::string& name, int64_t heads,
                                       bool softmax)
    : heads_(heads), softmax_(softmax) {
  const auto own = [&](const std::string& tensor) {
    return Owned(tensors.at(name + tensor), tensors.target);
  };
  const auto projection = [&](const std::string& part) {
    return Projection{own("." + part + ".weight"), own("." + part + ".bias")};
  };
  query_ = projection("query");
  key_ = projection("key");
  value_ = projection("value");
  out_ = projection("out");
}

at::Tensor EfficientAttention::operator()(const FeatureMap& x) const {
  return kernels::efficient_attention_module(x.values, key_.weight, query_.weight, value_.weight, key_.bias,
                                             query_.bias, value_.bias, out_.weight, out_.bias, heads_,
                                             softmax_ ? "softmax" : "scaling", /*residual=*/true,
                                             x.extents.AsValid(x.values.device()));
}

}  // namespace saccade::models
