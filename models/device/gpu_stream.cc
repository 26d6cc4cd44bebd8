#include "models/device/gpu_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <exception>
#include <string>

#include "kernels/common/cuda_plugin.h"
#include "models/api/error.h"

namespace saccade::models {
namespace {

LockedStream NewStream(int gpu) {
  const kernels::CudaPlugin& plugin = kernels::LoadCudaPlugin();
  if (!plugin.loaded) {
    throw LoadError("the model needs GPU " + std::to_string(gpu) +
                    ", which cannot be used: " + plugin.reason);
  }
  if (gpu >= plugin.devices) {
    throw LoadError("the model needs GPU " + std::to_string(gpu) + ", but there are " +
                    std::to_string(plugin.devices) + " GPUs, numbered from 0");
  }
  const c10::impl::VirtualGuardImpl gpus(c10::kCUDA);
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  return TakeStream([&] { return gpus.getStreamFromGlobalPool(device); });
}

}  // namespace

GpuStream::GpuStream(int gpu) : locked_(NewStream(gpu)) {}

GpuStream::~GpuStream() { Wait(); }

void GpuStream::Wait() const {
  // Waiting would end another model's recording on this stream.
  const StreamPass pass(lock());
  try {
    stream().synchronize();
  } catch (const std::exception& error) {
    TORCH_WARN("CUDA error while unloading a model: ", error.what());
  }
}

}  // namespace saccade::models
