#include "models/layers/quantized_map.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/quantized/Quantizer.h>

namespace saccade::models {

at::Tensor Quantized(const at::Tensor& x, const Grid& grid) {
  return at::quantize_per_tensor(x.to(at::kFloat), grid.scale, grid.zero, at::kQUInt8);
}

at::Tensor Floats(const at::Tensor& x, at::ScalarType type) {
  return x.is_quantized() ? x.dequantize().to(type) : x.to(type);
}

at::Tensor CopyOf(const at::Tensor& map) {
  if (!map.is_quantized()) return map.clone(at::MemoryFormat::ChannelsLast);
  return OnGrid(BytesOf(map).clone(at::MemoryFormat::ChannelsLast), {map.q_scale(), map.q_zero_point()});
}

at::Tensor BytesOf(const at::Tensor& quantized) {
  return at::from_blob(
      quantized.data_ptr(), quantized.sizes(), quantized.strides(), [quantized](void*) {},
      at::TensorOptions(at::kByte));
}

at::Tensor OnGrid(const at::Tensor& bytes, const Grid& grid) {
  return at::from_blob_quantized_per_tensor_affine(
      bytes.data_ptr(), bytes.sizes(), bytes.strides(), [bytes](void*) {}, static_cast<float>(grid.scale),
      grid.zero, at::TensorOptions(at::kQUInt8));
}

}  // namespace saccade::models
