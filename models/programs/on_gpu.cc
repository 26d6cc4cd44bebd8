#include "models/programs/on_gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <string>
#include <utility>

#include "models/device/float32_use.h"
#include "models/device/gpu_stream.h"

namespace saccade::models {
namespace {

class OnGpu : public TensorProgram {
 public:
  OnGpu(std::unique_ptr<TensorProgram> program, std::unique_ptr<GpuStream> stream,
        std::unique_ptr<Float32Use> float32)
      : stream_(std::move(stream)), float32_(std::move(float32)), program_(std::move(program)) {}

  ~OnGpu() override {
    stream_->Wait();
    // The program's memory must not go during a recording of a model that shares the stream.
    const StreamPass pass(stream_->lock());
    program_.reset();
  }

  const Signature& signature() const override { return program_->signature(); }
  const std::vector<std::string>& notes() const override { return program_->notes(); }
  std::string remark() const override { return program_->remark(); }

  std::vector<Value> Run(std::vector<Value> inputs) const override {
    const at::NoGradGuard no_gradients;
    const OnStream on(*stream_);
    for (Value& input : inputs) {
      if (input.isTensor()) input = input.toTensor().to(stream_->stream().device());
    }
    std::vector<Value> outputs = program_->Run(std::move(inputs));
    for (Value& output : outputs) {
      if (output.isTensor()) output = output.toTensor().to(c10::kCPU);
    }
    return outputs;
  }

 private:
  const std::unique_ptr<GpuStream> stream_;
  const std::unique_ptr<Float32Use> float32_;
  std::unique_ptr<TensorProgram> program_;
};

}  // namespace

std::unique_ptr<TensorProgram> LoadProgramOnGpu(int gpu, bool tf32,
                                                const std::function<std::unique_ptr<TensorProgram>()>& load) {
  auto stream = std::make_unique<GpuStream>(gpu);
  auto float32 = std::make_unique<Float32Use>(
      tf32, std::string("parameter ALLOW_TF32 is ") + (tf32 ? "true" : "not true"));
  const OnStream on(*stream);
  return std::make_unique<OnGpu>(load(), std::move(stream), std::move(float32));
}

}  // namespace saccade::models
