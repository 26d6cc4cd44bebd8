#include "models/device/on_gpu.h"

#include <ATen/Context.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "models/api/error.h"
#include "models/device/gpu_stream.h"

namespace saccade::models {
namespace {

// Sets LibTorch's process-wide TF32 flags for the first model that computes in fp32 or tf32. They never
// change afterwards, as passes may be running. Throws LoadError if a later model needs the other setting.
void AgreeOnFloat32(Precision precision) {
  if (precision != Precision::kFloat32 && precision != Precision::kTf32) return;
  static std::mutex mutex;
  static std::optional<bool> agreed;
  const std::lock_guard lock(mutex);
  const bool tf32 = precision == Precision::kTf32;
  if (agreed && *agreed != tf32) {
    throw LoadError(std::string("precision is ") + PrecisionName(precision) +
                    ", but another model on a GPU has " + (tf32 ? "fp32" : "tf32") +
                    ", and a process supports only one of the two; use the same, or bf16 or fp16");
  }
  if (!agreed) {
    at::globalContext().setAllowTF32CuBLAS(tf32);
    at::globalContext().setAllowTF32CuDNN(tf32);
    agreed = tf32;
  }
}

class OnGpu : public Model {
 public:
  OnGpu(std::unique_ptr<Model> model, std::unique_ptr<GpuStream> stream)
      : stream_(std::move(stream)), model_(std::move(model)) {}

  ~OnGpu() override {
    stream_->Wait();
    // The model's recordings and memory must not go during another model's recording on this stream.
    const StreamPass pass(stream_->lock());
    model_.reset();
  }

  const Description& description() const override { return model_->description(); }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const OnStream on(*stream_);
    return model_->Run(batch);
  }

 private:
  const std::unique_ptr<GpuStream> stream_;
  std::unique_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Model> LoadOnGpu(const Target& target, const std::function<std::unique_ptr<Model>()>& load) {
  auto stream = std::make_unique<GpuStream>(target.gpu);
  AgreeOnFloat32(target.precision);
  const OnStream on(*stream);
  return std::make_unique<OnGpu>(load(), std::move(stream));
}

}  // namespace saccade::models
