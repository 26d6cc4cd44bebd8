// Moves tensors to the device where a network computes, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/api/target.h"

namespace saccade::models {

// The channels-last format of maps with `sides` (2 or 3) spatial sides.
at::MemoryFormat ChannelsLast(int64_t sides);

at::Device DeviceOf(const Target& target);
// The type of activations and of convolutions' weights.
at::ScalarType TypeOf(const Target& target);

// Throws a LoadError if the weight is quantized: for layers that would take its numbers without their scales.
void RefuseQuantized(const at::Tensor& weight);

// A contiguous float32 copy on the target's device: for small weights that operators take at full precision
// whatever the maps' type. A copy, because the file's weights are given back after a load. Refuses
// quantized ones.
at::Tensor Owned(const at::Tensor& weight, const Target& target);

// Moves a batch's pictures or clips, or a map, to the target's device, with their type. If they are pinned
// (EmptyPinned()), does not wait for the copy, which runs beside the GPU's passes (CopyStream).
at::Tensor SentAsIs(const at::Tensor& x, const Target& target);
// The same, followed by AsMap().
at::Tensor Sent(const at::Tensor& x, const Target& target);
// Returns a tensor on the target's device as a map: channels-last, of the target's type.
at::Tensor AsMap(const at::Tensor& x, const Target& target);
// Moves a result to the CPU as float32. Blocks until a GPU has computed it.
at::Tensor Fetched(const at::Tensor& x);

}  // namespace saccade::models
