#include "models/testing/eager_mobile.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d.h>

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

at::Tensor Siamese(const MobileOptions& options, const TensorMap& tensors, const std::string& layer,
                   const at::Tensor& x, const at::Tensor& value) {
  const auto w = tensors.find(layer + ".w");
  const at::Tensor weighted = w == tensors.end() ? x : x.mul(w->second.view({-1, 1, 1}));
  const at::Tensor score = weighted.reshape(value.sizes()).sum(2, /*keepdim=*/true);
  const at::Tensor response = value.sum(3, /*keepdim=*/true).mul(score);
  return options.global_term ? response.add(value.mul(score).sum(3, /*keepdim=*/true)) : response;
}

// Returns the means of the columns, then of the rows; x is [B, heads, c, H, W].
at::Tensor Averages(const at::Tensor& x) { return at::cat({x.mean(3), x.mean(4)}, 3); }

at::Tensor Attend(const TensorMap& tensors, const std::string& layer, const at::Tensor& query,
                  const at::Tensor& key, const at::Tensor& value) {
  const auto get = [&](const char* part) { return tensors.at(layer + ".coefficients." + part); };
  const at::Tensor coefficients =
      at::batch_norm(key.transpose(2, 3).matmul(query), get("weight"), get("bias"), get("running_mean"),
                     get("running_var"), false, 0.1, 1e-5, false);
  return value.matmul(coefficients.softmax(2));
}

at::Tensor SqueezeExcite(const TensorMap& tensors, const std::string& layer, const at::Tensor& x) {
  const at::Tensor squeezed = x.mean({2, 3}).matmul(tensors.at(layer + ".squeeze.weight").t()).relu();
  const at::Tensor gates = squeezed.matmul(tensors.at(layer + ".excite.weight").t()).sigmoid();
  return x.mul(gates.unsqueeze(2).unsqueeze(3));
}

at::Tensor Attention(const Block& block, const MobileOptions& options, const TensorMap& tensors,
                     const at::Tensor& x) {
  const std::string layer = block.name + ".attention";
  if (options.attention == MobileAttention::kSqueeze) return SqueezeExcite(tensors, layer, x);
  const int64_t height = x.size(2);
  const int64_t width = x.size(3);
  const at::Tensor heads = x.unflatten(1, {options.heads, -1});  // [B, heads, c, H, W]
  const at::Tensor values = at::matmul(tensors.at(layer + ".value.weight"), x.flatten(2)).view_as(heads);
  const at::Tensor q = heads.flatten(3);
  const at::Tensor v = values.flatten(3);
  at::Tensor y;
  switch (options.attention) {
    case MobileAttention::kNone:
    case MobileAttention::kSqueeze:
      break;
    case MobileAttention::kSiamese:
      y = BatchNorm(tensors, layer, Siamese(options, tensors, layer, x, v).reshape(x.sizes()));
      break;
    case MobileAttention::kOverN:
      y = v.matmul(q.transpose(2, 3)).matmul(q).div(height * width).reshape(x.sizes());
      y = BatchNorm(tensors, layer, y);
      break;
    case MobileAttention::kSoftmax:
      y = Attend(tensors, layer, q, q, v).reshape(x.sizes());
      break;
    case MobileAttention::kPool: {
      // The maxima are transformed, and not the other way round.
      const at::Tensor pooled = at::max_pool2d(x, 2, 2, 0, 1, /*ceil_mode=*/true).flatten(2);
      const at::Tensor of_pooled = at::matmul(tensors.at(layer + ".value.weight"), pooled);
      const std::vector<int64_t> split = {options.heads, -1};
      y = Attend(tensors, layer, q, pooled.unflatten(1, split), of_pooled.unflatten(1, split))
              .reshape(x.sizes());
      break;
    }
    case MobileAttention::kKroneckerKv:
      y = Attend(tensors, layer, q, Averages(heads), Averages(values)).reshape(x.sizes());
      break;
    case MobileAttention::kKroneckerQkv: {
      const at::Tensor both = Attend(tensors, layer, Averages(heads), Averages(heads), Averages(values));
      const at::Tensor sum =
          both.narrow(3, 0, width).unsqueeze(3).add(both.narrow(3, width, height).unsqueeze(4));
      y = sum.reshape(x.sizes());
      break;
    }
  }
  if (block.stride == 1) return options.attention_skip ? x.add(y) : y;
  return at::avg_pool2d(y, block.stride, block.stride, 0, /*ceil_mode=*/true, /*count_include_pad=*/false);
}

}  // namespace

at::Tensor EagerModule(const Block& block, const MobileOptions& options, const TensorMap& tensors,
                       const at::Tensor& x) {
  at::Tensor y = block.expansion > 1 ? ConvBn(tensors, block.name + ".expand", x).clamp(0, 6) : x;
  if (block.module == Module::kBase && block.expansion > 1) y = at::cat({y, x}, 1);
  y = ConvBn(tensors, block.name + ".depthwise", y, block.stride).clamp(0, 6);
  if (block.module == Module::kAttention) y = at::cat({y, Attention(block, options, tensors, x)}, 1);
  y = ConvBn(tensors, block.name + ".project", y);
  return block.skip() ? x.add(y) : y;
}

}  // namespace saccade::models::testing
