#include "models/networks/unet3d/siamese.h"

#include "kernels/sao/sao.h"
#include "models/device/transfer.h"
#include "models/networks/unet3d/maps.h"

namespace saccade::models {

SiameseWeights::SiameseWeights(const TensorMap& tensors, const std::string& name, const UnetOptions& options)
    : query(Owned(tensors.at(name + ".query.weight"), tensors.target)),
      key(Owned(tensors.at(name + ".key.weight"), tensors.target)),
      value(Owned(tensors.at(name + ".value.weight"), tensors.target)),
      norm(FoldBatchNorm(tensors, name + ".bn.")),
      heads(options.heads),
      global_term(options.global_term) {
  if (options.learned) w = Owned(tensors.at(name + ".w"), tensors.target);
}

at::Tensor SiameseModule::operator()(const at::Tensor& x) const {
  // The kernel does not divide its sums by the number of positions.
  const auto positions = static_cast<double>(Positions(SidesOf(x)));
  const auto sent = [&](const at::Tensor& values) { return values.to(at::kFloat).to(x.device()); };
  return kernels::sao_module(x,
                             {.value_weight = weights_.value,
                              .w = weights_.w,
                              .scale = sent(weights_.norm.scale.div(positions)),
                              .shift = sent(weights_.norm.shift),
                              .query_weight = weights_.query,
                              .key_weight = weights_.key},
                             weights_.heads, weights_.global_term, /*residual=*/true);
}

}  // namespace saccade::models
