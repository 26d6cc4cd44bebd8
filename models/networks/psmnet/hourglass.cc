#include "models/networks/psmnet/hourglass.h"

namespace saccade::models {
namespace {

Convolution Normed(const TensorMap& tensors, const std::string& name, int64_t stride) {
  return NormedConvolution(tensors, name + ".0", name + ".1",
                           {.stride = stride, .activation = Activation::kRelu});
}

TransposedConvolution Doubling(const TensorMap& tensors, const std::string& name) {
  return {tensors.at(name + ".0.weight"), FoldBatchNorm(tensors, name + ".1."), tensors.target};
}

}  // namespace

Hourglass::Hourglass(const TensorMap& tensors, const std::string& name)
    : conv1_(Normed(tensors, name + ".conv1.0", 2)),
      conv2_(Normed(tensors, name + ".conv2", 1)),
      conv3_(Normed(tensors, name + ".conv3.0", 2)),
      conv4_(Normed(tensors, name + ".conv4.0", 1)),
      conv5_(Doubling(tensors, name + ".conv5")),
      conv6_(Doubling(tensors, name + ".conv6")) {}

Hourglass::Maps Hourglass::operator()(at::Tensor volume, const at::Tensor& presqueeze,
                                      const at::Tensor& postsqueeze) const {
  Maps maps;
  at::Tensor x = conv1_(volume);
  volume.reset();
  maps.presqueeze = postsqueeze.defined() ? conv2_.WithSum(x, postsqueeze) : conv2_(x);
  x = conv4_(conv3_(maps.presqueeze));
  maps.postsqueeze = conv5_(x).add_(presqueeze.defined() ? presqueeze : maps.presqueeze).relu_();
  maps.output = conv6_(maps.postsqueeze);
  return maps;
}

CostHead::CostHead(const TensorMap& tensors, const std::string& name)
    : conv_(Normed(tensors, name + ".0", 1)), cost_(BiasedConvolution(tensors, name + ".2", {})) {}

at::Tensor CostHead::operator()(const at::Tensor& volume) const {
  return cost_(conv_(volume)).squeeze(1).squeeze(0).contiguous();
}

}  // namespace saccade::models
