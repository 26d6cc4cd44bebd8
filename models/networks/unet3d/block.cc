#include "models/networks/unet3d/block.h"

namespace saccade::models {

ConvolutionBlock::ConvolutionBlock(const EncoderDecoder& network, const UnetBlock& block,
                                   const TensorMap& tensors)
    : outputs_(block.channels.back()) {
  const std::string name = network.prefix + block.name;
  for (size_t i = 1; i < block.channels.size(); ++i) {
    const std::string number = std::to_string(i);
    convolutions_.push_back(NormedConvolution(tensors, name + ".conv" + number, name + ".bn" + number,
                                              {.activation = Activation::kRelu}));
    work_ += static_cast<double>(tensors.at(name + ".conv" + number + ".weight").numel());
  }
}

at::Tensor ConvolutionBlock::operator()(at::Tensor x) const {
  for (const Convolution& convolution : convolutions_) x = convolution(x);
  return x;
}

std::vector<ConvolutionBlock> MakeBlocks(const EncoderDecoder& network, const TensorMap& tensors) {
  std::vector<ConvolutionBlock> blocks;
  for (const UnetBlock& block : network.blocks) blocks.emplace_back(network, block, tensors);
  return blocks;
}

}  // namespace saccade::models
