#include "models/layers/convolution_ways.h"

#include <ATen/ops/_convolution.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>

#include <cstdint>
#include <vector>

#include "models/device/transfer.h"

namespace saccade::models {

at::Tensor Convolved(ConvolutionWay way, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias, const PackedWeight::Geometry& geometry) {
  const std::vector<int64_t> none(geometry.padding.size(), 0);
  if (way == ConvolutionWay::kColumns) {
    return at::_convolution(x, weight, bias, geometry.stride, geometry.padding, geometry.dilation,
                            /*transposed=*/false, none, geometry.groups, /*benchmark=*/false,
                            /*deterministic=*/false, /*cudnn_enabled=*/false, /*allow_tf32=*/false)
        .contiguous(ChannelsLast(x.dim() - 2));
  }
  const auto whole = [&](const at::Tensor& items) {
    return at::convolution(items, weight, bias, geometry.stride, geometry.padding, geometry.dilation,
                           /*transposed=*/false, none, geometry.groups);
  };
  if (way == ConvolutionWay::kWhole || x.size(0) < 2) return whole(x);
  std::vector<at::Tensor> items;
  for (int64_t i = 0; i < x.size(0); ++i) items.push_back(whole(x.narrow(0, i, 1)));
  return at::cat(items).contiguous(ChannelsLast(x.dim() - 2));
}

}  // namespace saccade::models
