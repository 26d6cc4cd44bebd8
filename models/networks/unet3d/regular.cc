#include "models/networks/unet3d/regular.h"

#include "models/device/transfer.h"
#include "models/layers/batch_norm.h"

namespace saccade::models {

RegularModule::RegularModule(const TensorMap& tensors, const std::string& name, const UnetOptions& options)
    : heads_(options.heads) {
  const auto own = [&](const char* part) { return Owned(tensors.at(name + part), tensors.target); };
  const Affine norm = FoldBatchNorm(tensors, name + ".bn.");
  weights_.query_weight = own(".query.weight");
  weights_.key_weight = own(".key.weight");
  weights_.value_weight = own(".value.weight");
  weights_.scale = Owned(norm.scale, tensors.target);
  weights_.shift = Owned(norm.shift, tensors.target);
}

at::Tensor RegularModule::operator()(const at::Tensor& x) const {
  return kernels::attention_module(x, "softmax", weights_, heads_, 1.0, /*residual=*/true);
}

}  // namespace saccade::models
