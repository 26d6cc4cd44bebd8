#include "models/programs/on_gpu.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>

#include <utility>

#include "models/device/gpu_stream.h"

namespace saccade::models {
namespace {

class OnGpu : public TensorProgram {
 public:
  OnGpu(std::unique_ptr<TensorProgram> program, std::unique_ptr<GpuStream> stream)
      : program_(std::move(program)), stream_(std::move(stream)) {}

  const Signature& signature() const override { return program_->signature(); }
  const std::vector<std::string>& notes() const override { return program_->notes(); }
  std::string remark() const override { return program_->remark(); }

  std::vector<Value> Run(std::vector<Value> inputs) const override {
    const at::NoGradGuard no_gradients;
    const c10::StreamGuard guard(stream_->stream());
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
  const std::unique_ptr<TensorProgram> program_;
  // Declared last, so destroyed first: its destructor waits for the last passes, which use the program's
  // memory.
  const std::unique_ptr<GpuStream> stream_;
};

}  // namespace

std::unique_ptr<TensorProgram> LoadProgramOnGpu(int gpu,
                                                const std::function<std::unique_ptr<TensorProgram>()>& load) {
  auto stream = std::make_unique<GpuStream>(gpu);
  const c10::StreamGuard guard(stream->stream());
  return std::make_unique<OnGpu>(load(), std::move(stream));
}

}  // namespace saccade::models
