// The interface between a model and the server: tensors of pictures in, task results out.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/description.h"
#include "models/tasks/result.h"

namespace saccade::models {

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual const Description& description() const = 0;

  // One result per picture, in order. `batch` is float32 [B, 3, height, width] with B >= 1, normalised as
  // the description says, in any memory format; it is not kept. Blocks until done, computing on the calling
  // thread's ATen thread pool; may be called from any number of threads at once. A picture's result does not
  // depend on the others in its batch. Throws c10::Error if the batch has another shape, type or device.
  virtual std::vector<TaskResult> Run(const at::Tensor& batch) const = 0;
};

}  // namespace saccade::models
