// The interface between a model and the server: tensors of pictures in, task results out.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/description.h"
#include "models/placement.h"
#include "models/tasks/result.h"

namespace saccade::models {

// Pictures, clips or volumes of one bucket.
struct Batch {
  // float32 [B, channels, bucket height, bucket width] with B >= 1, or [B, channels, depth, bucket height,
  // bucket width] of clips and volumes, normalised as the description says and zero beyond each item's own
  // extent, in any memory format.
  at::Tensor pixels;
  // One per picture, all with the bucket of `pixels`.
  std::vector<Placement> placements;
  // Called now and then, on the thread of Run, by models whose pass takes long: `done` of the item, from 0 to
  // 1, are behind it. False says that nobody wants this item any more: its result may then be a Failure.
  std::function<bool(size_t item, double done)> progress = nullptr;
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual const Description& description() const = 0;

  // One result per picture, in order, in the coordinates of the picture as it was sent. The batch is not
  // kept. Blocks until done, computing on the calling thread's ATen thread pool; may be called from any
  // number of threads at once. A picture's result does not depend on the others in its batch, bit for bit.
  // Where the calling thread has an AttentionProbe, layers that are asked for hand it their maps.
  // Throws c10::Error if the batch has another shape, type or device than the description and the placements
  // say.
  virtual std::vector<TaskResult> Run(const Batch& batch) const = 0;
};

}  // namespace saccade::models
