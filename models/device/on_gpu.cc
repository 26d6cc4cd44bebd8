#include "models/device/on_gpu.h"

#include <memory>
#include <string>
#include <utility>

#include "models/device/float32_use.h"
#include "models/device/gpu_stream.h"

namespace saccade::models {
namespace {

// Returns the process-wide float32 mode that the model holds; null for other precisions.
std::unique_ptr<Float32Use> UseOf(Precision precision) {
  if (precision != Precision::kFloat32 && precision != Precision::kTf32) return nullptr;
  return std::make_unique<Float32Use>(precision == Precision::kTf32,
                                      std::string("precision is ") + PrecisionName(precision));
}

class OnGpu : public Model {
 public:
  OnGpu(std::unique_ptr<Model> model, std::unique_ptr<GpuStream> stream, std::unique_ptr<Float32Use> float32)
      : stream_(std::move(stream)), float32_(std::move(float32)), model_(std::move(model)) {}

  ~OnGpu() override {
    stream_->Wait();
    // The model's recordings and memory must not go during another model's recording on this stream.
    const StreamPass pass(stream_->lock());
    model_.reset();
  }

  const Description& description() const override { return model_->description(); }

  bool sends_pixels() const override { return true; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const OnStream on(*stream_);
    return model_->Run(batch);
  }

 private:
  const std::unique_ptr<GpuStream> stream_;
  const std::unique_ptr<Float32Use> float32_;  // null if the model does not compute in float32
  std::unique_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Model> LoadOnGpu(const Target& target, const std::function<std::unique_ptr<Model>()>& load) {
  auto stream = std::make_unique<GpuStream>(target.gpu);
  auto float32 = UseOf(target.precision);
  const OnStream on(*stream);
  return std::make_unique<OnGpu>(load(), std::move(stream), std::move(float32));
}

}  // namespace saccade::models
