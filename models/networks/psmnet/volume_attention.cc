#include "models/networks/psmnet/volume_attention.h"

#include <ATen/ops/tensor.h>

#include "kernels/efficient_attention/efficient_attention.h"

namespace saccade::models {

VolumeAttention::Projection VolumeAttention::Load(const TensorMap& tensors, const std::string& name) {
  // Copies: the weights must not keep the whole file mapped.
  const auto own = [&](const char* part) {
    return tensors.at(name + part).to(at::kFloat).clone(at::MemoryFormat::Contiguous);
  };
  return {own(".weight").flatten(1), own(".bias")};
}

VolumeAttention::VolumeAttention(const TensorMap& tensors, const std::string& name,
                                 const PsmnetOptions& options)
    : query_(Load(tensors, name + ".query")),
      key_(Load(tensors, name + ".key")),
      value_(Load(tensors, name + ".value")),
      heads_(options.heads),
      normalization_(options.normalization) {
  if (!options.reprojected()) return;
  const Projection out = Load(tensors, name + ".out");
  out_weight_ = out.weight;
  out_bias_ = out.bias;
}

at::Tensor VolumeAttention::operator()(const at::Tensor& x, Size valid) const {
  std::optional<at::Tensor> extent;
  if (valid != Size{x.size(3), x.size(4)}) {
    extent = at::tensor({x.size(2), valid.height, valid.width}, at::kLong).view({1, 3});
  }
  return kernels::efficient_attention_module(x, key_.weight, query_.weight, value_.weight, key_.bias,
                                             query_.bias, value_.bias, out_weight_, out_bias_, heads_,
                                             normalization_, /*residual=*/true, extent);
}

}  // namespace saccade::models
