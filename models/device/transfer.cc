#include "models/device/transfer.h"

#include "models/api/error.h"
#include "models/device/copy_stream.h"
#include "models/device/fetching.h"
#include "models/device/pinned.h"

namespace saccade::models {

at::MemoryFormat ChannelsLast(int64_t sides) {
  return sides == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

at::Device DeviceOf(const Target& target) {
  return target.on_gpu() ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(target.gpu))
                         : at::Device(at::kCPU);
}

at::ScalarType TypeOf(const Target& target) {
  if (target.precision == Precision::kBFloat16) return at::kBFloat16;
  if (target.precision == Precision::kInt8) return CpuMultipliesBFloat16() ? at::kBFloat16 : at::kFloat;
  if (target.precision == Precision::kFloat16) return at::kHalf;
  return at::kFloat;
}

void RefuseQuantized(const at::Tensor& weight) {
  if (weight.scalar_type() == at::kChar)
    throw LoadError(
        "a weight is quantized to int8 that is not of a convolution which can use it; quantize the weights "
        "again");
}

at::Tensor Owned(const at::Tensor& weight, const Target& target) {
  RefuseQuantized(weight);
  return weight.to(at::kFloat).clone(at::MemoryFormat::Contiguous).to(DeviceOf(target));
}

at::Tensor SentAsIs(const at::Tensor& x, const Target& target) {
  const at::Device device = DeviceOf(target);
  const bool pinned = IsPinned(x);
  const auto copy = [&] { return x.to(device, x.scalar_type(), /*non_blocking=*/pinned); };
  return target.on_gpu() && pinned ? CopyStream::Of(device).Run(copy) : copy();
}

at::Tensor Sent(const at::Tensor& x, const Target& target) {
  // Transfers before casting: a cast on the CPU would take longer than sending float32.
  return AsMap(SentAsIs(x, target), target);
}

at::Tensor AsMap(const at::Tensor& x, const Target& target) {
  return x.to(TypeOf(target)).contiguous(ChannelsLast(x.dim() - 2));
}

// Widens 16 bits on the CPU: half as many bytes are copied, and the numbers are the same.
at::Tensor Fetched(const at::Tensor& x) { return Fetching(x).Wait().to(at::kFloat); }

}  // namespace saccade::models
