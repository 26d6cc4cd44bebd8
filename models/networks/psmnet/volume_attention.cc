#include "models/networks/psmnet/volume_attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include "kernels/efficient_attention/efficient_attention.h"
#include "models/layers/device.h"

namespace saccade::models {

VolumeAttention::Projection VolumeAttention::Load(const TensorMap& tensors, const std::string& name) {
  const auto own = [&](const char* part) { return Owned(tensors.at(name + part), tensors.target); };
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

at::Tensor VolumeAttention::operator()(const at::Tensor& x, const Extents& picture) const {
  std::optional<at::Tensor> extent;
  if (picture.kept_on_device() || picture[0] != Size{x.size(3), x.size(4)}) {
    const at::Tensor valid = picture.AsValid(x.device()).narrow(0, 0, 1);
    extent = at::cat({at::full({1, 1}, x.size(2), valid.options()), valid}, 1);
  }
  return kernels::efficient_attention_module(x, key_.weight, query_.weight, value_.weight, key_.bias,
                                             query_.bias, value_.bias, out_weight_, out_bias_, heads_,
                                             normalization_, /*residual=*/true, extent);
}

}  // namespace saccade::models
