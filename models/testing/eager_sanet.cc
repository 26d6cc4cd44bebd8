#include "models/testing/eager_sanet.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/matmul.h>

namespace saccade::models::testing {
namespace {

at::Tensor BatchNorm(const TensorMap& tensors, const std::string& layer, const at::Tensor& x) {
  const auto get = [&](const char* part) { return tensors.at(layer + ".bn." + part); };
  return at::batch_norm(x, get("weight"), get("bias"), get("running_mean"), get("running_var"), false, 0.1,
                        1e-5, false);
}

at::Tensor ConvBn(const TensorMap& tensors, const std::string& layer, const at::Tensor& x,
                  int64_t stride = 1) {
  const at::Tensor& weight = tensors.at(layer + ".conv.weight");
  const int64_t groups = x.size(1) / weight.size(1);
  return BatchNorm(tensors, layer, at::conv2d(x, weight, {}, stride, weight.size(2) / 2, 1, groups));
}

at::Tensor Attention(const Block& block, bool global_term, const TensorMap& tensors, const at::Tensor& x) {
  const std::string layer = block.name + ".attention";
  const std::vector<int64_t> groups = {x.size(0), kSanetHeads, -1, x.size(2) * x.size(3)};
  const at::Tensor value = at::matmul(tensors.at(layer + ".value.weight"), x.flatten(2)).reshape(groups);
  const auto w = tensors.find(layer + ".w");
  const at::Tensor weighted = w == tensors.end() ? x : x.mul(w->second.view({-1, 1, 1}));
  const at::Tensor score = weighted.reshape(groups).sum(2, /*keepdim=*/true);
  at::Tensor response = value.sum(3, /*keepdim=*/true).mul(score);
  if (global_term) response = response.add(value.mul(score).sum(3, /*keepdim=*/true));
  const at::Tensor y = BatchNorm(tensors, layer, response.reshape(x.sizes()));
  if (block.stride == 1) return x.add(y);
  return at::avg_pool2d(y, block.stride, block.stride, 0, /*ceil_mode=*/true, /*count_include_pad=*/false);
}

}  // namespace

at::Tensor EagerModule(const Block& block, bool global_term, const TensorMap& tensors, const at::Tensor& x) {
  at::Tensor y = block.expansion > 1 ? ConvBn(tensors, block.name + ".expand", x).clamp(0, 6) : x;
  if (block.module == Module::kBase && block.expansion > 1) y = at::cat({y, x}, 1);
  y = ConvBn(tensors, block.name + ".depthwise", y, block.stride).clamp(0, 6);
  if (block.module == Module::kAttention) y = at::cat({y, Attention(block, global_term, tensors, x)}, 1);
  y = ConvBn(tensors, block.name + ".project", y);
  return block.skip() ? x.add(y) : y;
}

}  // namespace saccade::models::testing
