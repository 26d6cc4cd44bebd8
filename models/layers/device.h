// Tensors to where a network computes, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/target.h"

namespace saccade::models {

// Of maps with two sides or three.
at::MemoryFormat ChannelsLast(int64_t sides);

at::Device DeviceOf(const Target& target);
// What activations and convolutions' weights are held in.
at::ScalarType TypeOf(const Target& target);

// A float32 copy there, contiguous: small weights that operators take at full precision whatever the maps
// are. (A copy, because the file's weights are only mapped, and must not stay.)
at::Tensor Owned(const at::Tensor& weight, const Target& target);

// A batch's pictures or clips, or a map, as the network takes it: channels-last, of the target's type.
at::Tensor Sent(const at::Tensor& x, const Target& target);
// What the CPU goes on with: float32. Waits for a GPU.
at::Tensor Fetched(const at::Tensor& x);

}  // namespace saccade::models
