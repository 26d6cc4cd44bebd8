#include "models/networks/resnet/resnet.h"

#include <ATen/ops/max_pool3d.h>

#include <utility>

#include "models/device/transfer.h"
#include "models/layers/max_pool.h"

namespace saccade::models {

Resnet::Resnet(const ResnetTable& table, const std::string& prefix, TensorMap tensors, bool exact)
    : table_(table),
      exact_(exact),
      stem_(NormedConvolution(tensors, prefix + "conv1", prefix + "bn1",
                              {.stride = 2,
                               .depth_stride = kStemDepthStride,
                               .activation = Activation::kRelu,
                               .stays_int8 = true},
                              table.epsilon)) {
  for (int stage = 0; stage < 4; ++stage) {
    std::vector<Block>& blocks = stages_.emplace_back();
    for (const Bottleneck& block : StageBlocks(table, stage, prefix)) {
      const TensorMap own = Taken(tensors, block.name + ".");
      const auto convolution = [&](const char* part, const char* norm, const ConvolutionOptions& options) {
        return NormedConvolution(own, block.name + part, block.name + norm, options, table.epsilon);
      };
      const Window first = FirstWindow(block);
      const Window second = SecondWindow(block);
      blocks.push_back(
          {.first =
               convolution(".conv1", ".bn1",
                           {.stride = first.stride, .activation = Activation::kRelu, .stays_int8 = true}),
           .second = convolution(".conv2", ".bn2",
                                 {.stride = second.stride,
                                  .groups = block.groups,
                                  .dilation = block.dilation,
                                  .activation = Activation::kRelu,
                                  .stays_int8 = true}),
           .third = convolution(".conv3", ".bn3", {.activation = Activation::kRelu, .stays_int8 = true}),
           .shortcut = std::nullopt,
           .first_window = first,
           .second_window = second});
      if (block.projected) {
        blocks.back().shortcut =
            convolution(".downsample.0", ".downsample.1", {.stride = block.stride, .stays_int8 = true});
      }
    }
  }
}

FeatureMap Resnet::Stem(const FeatureMap& pictures) const {
  const bool clips = pictures.values.dim() == 5;
  FeatureMap x{stem_(pictures.values.contiguous(ChannelsLast(pictures.values.dim() - 2))),
               pictures.extents.After(StemWindow(table_))};
  // Zeroed padding does not affect the max pooling, because its input is never negative.
  if (exact_) x.extents.ZeroBeyond(x.values);
  const Window pool = PoolWindow(table_);
  x.values = clips ? at::max_pool3d(x.values, pool.kernel, pool.stride, pool.padding, 1, pool.ceil)
                   : MaxPool(x.values, pool);
  x.extents = x.extents.After(pool);
  if (exact_) x.extents.ZeroBeyond(x.values);
  return x;
}

FeatureMap Resnet::Run(const Block& block, FeatureMap x) const {
  FeatureMap y{block.first(x.values), x.extents.After(block.first_window)};
  if (exact_) y.extents.ZeroBeyond(y.values);
  y.values = block.second(y.values);
  y.extents = y.extents.After(block.second_window);
  if (exact_) y.extents.ZeroBeyond(y.values);
  // Adds into the shortcut's memory, which is not used afterwards.
  at::Tensor shortcut = block.shortcut ? (*block.shortcut)(x.values) : std::move(x.values);
  y.values = block.third.AddedTo(std::move(shortcut), y.values);
  if (exact_) y.extents.ZeroBeyond(y.values);
  return y;
}

FeatureMap Resnet::Stage(int stage, FeatureMap x) const {
  for (const Block& block : stages_.at(static_cast<size_t>(stage))) x = Run(block, std::move(x));
  return x;
}

}  // namespace saccade::models
