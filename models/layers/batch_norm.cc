#include "models/layers/batch_norm.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "models/api/error.h"

namespace saccade::models {

Affine IdentityAffine(int64_t channels) {
  return {at::ones({channels}, at::kDouble), at::zeros({channels}, at::kDouble)};
}

Affine FoldBatchNorm(const TensorMap& tensors, const std::string& prefix, double epsilon) {
  const auto get = [&](const char* name) { return tensors.at(prefix + name).to(at::kDouble); };
  const at::Tensor scale = get("weight").div(get("running_var").add(epsilon).sqrt());
  const at::Tensor shift = get("bias").sub(get("running_mean").mul(scale));
  if (!at::isfinite(scale).all().item<bool>() || !at::isfinite(shift).all().item<bool>()) {
    throw LoadError("the batch norm " + prefix.substr(0, prefix.size() - 1) +
                    " has a negative variance or a value that is not finite; the training may have diverged");
  }
  return {scale, shift};
}

at::Tensor ScaledWeight(const at::Tensor& weight, const at::Tensor& scale) {
  std::vector<int64_t> per_channel(static_cast<size_t>(weight.dim()), 1);
  per_channel[0] = -1;
  return weight.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true)
      .mul_(scale.view(per_channel))
      .to(at::kFloat);
}

}  // namespace saccade::models
