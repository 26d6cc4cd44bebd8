#include "models/on_gpu.h"

#include <ATen/Context.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "kernels/common/cuda_plugin.h"
#include "models/error.h"
#include "models/layers/device.h"

namespace saccade::models {
namespace {

void RequireGpu(int gpu) {
  const kernels::CudaPlugin& plugin = kernels::LoadCudaPlugin();
  if (!plugin.loaded) {
    throw LoadError("the model is to be computed on GPU " + std::to_string(gpu) + ", but " + plugin.reason);
  }
  if (gpu >= plugin.devices) {
    throw LoadError("the model is to be computed on GPU " + std::to_string(gpu) + ", but there are " +
                    std::to_string(plugin.devices) + ", counted from 0");
  }
}

// What float32 means is set once, by the first model to which it matters, and never changed under a pass.
void AgreeOnFloat32(Precision precision) {
  if (precision != Precision::kFloat32 && precision != Precision::kTf32) return;
  static std::mutex mutex;
  static std::optional<bool> agreed;
  const std::lock_guard lock(mutex);
  const bool tf32 = precision == Precision::kTf32;
  if (agreed && *agreed != tf32) {
    throw LoadError(std::string("precision is ") + PrecisionName(precision) +
                    ", but another model on a GPU has " + (tf32 ? "fp32" : "tf32") +
                    ", and one process knows only one of the two; use the same, or bf16 or fp16");
  }
  if (!agreed) {
    at::globalContext().setAllowTF32CuBLAS(tf32);
    at::globalContext().setAllowTF32CuDNN(tf32);
    agreed = tf32;
  }
}

class OnGpu : public Model {
 public:
  OnGpu(std::unique_ptr<Model> model, c10::Stream stream) : model_(std::move(model)), stream_(stream) {}

  ~OnGpu() override {
    // What its last passes use is still being used until they end.
    try {
      stream_.synchronize();
    } catch (const std::exception& error) {
      TORCH_WARN("a model on a GPU ends while CUDA reports: ", error.what());
    }
  }

  const Description& description() const override { return model_->description(); }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const c10::StreamGuard stream(stream_);
    return model_->Run(batch);
  }

 private:
  std::unique_ptr<Model> model_;
  c10::Stream stream_;
};

}  // namespace

std::unique_ptr<Model> LoadOnGpu(const Target& target, const std::function<std::unique_ptr<Model>()>& load) {
  RequireGpu(target.gpu);
  AgreeOnFloat32(target.precision);
  const c10::impl::VirtualGuardImpl gpus(c10::kCUDA);
  const c10::Stream stream = gpus.getStreamFromGlobalPool(DeviceOf(target));
  const c10::StreamGuard guard(stream);
  return std::make_unique<OnGpu>(load(), stream);
}

}  // namespace saccade::models
