// The interface between a model and the server: tensors of pictures in, task results out.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "models/api/description.h"
#include "models/api/placement.h"
#include "models/tasks/result.h"

namespace saccade::models {

// The input of one forward pass: pictures, clips or volumes of one bucket.
struct Batch {
  // float32 [B, channels, bucket height, bucket width] with B >= 1, or [B, channels, depth, bucket height,
  // bucket width] for clips and volumes. Normalised as the description says, zero beyond each item's own
  // extent, in any memory format.
  at::Tensor pixels;
  // One per item, all with the bucket of `pixels`.
  std::vector<Placement> placements;
  // Called from time to time, on the thread of Run, by models whose pass takes long. `done` is the completed
  // part of the item, from 0 to 1. Returns false if the item is no longer needed: its result may then be a
  // Failure.
  std::function<bool(size_t item, double done)> progress = nullptr;
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual const Description& description() const = 0;

  // Whether Run() copies the pixels to a GPU: faster, and without waiting, if they are in the memory of
  // models/device/pinned.h.
  virtual bool sends_pixels() const { return false; }

  // Runs one forward pass. Returns one result per item, in order, in the coordinates of the picture as it was
  // sent. Does not keep the batch. Blocks until done, computing on the calling thread's ATen thread pool; may
  // be called from any number of threads at once. An item's result does not depend on the others in its
  // batch, bit for bit. If the calling thread has an AttentionProbe, layers that it asks for hand it their
  // maps. Throws c10::Error if the batch's shape, type or device differs from the description and the
  // placements.
  virtual std::vector<TaskResult> Run(const Batch& batch) const = 0;
};

}  // namespace saccade::models
