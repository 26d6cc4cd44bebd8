// EA R-C3Ds for tests.
#pragma once

#include <memory>

#include "models/api/model.h"
#include "models/api/target.h"
#include "models/weights/weights.h"

namespace saccade::models::testing {

// Random weights whose batch norms keep the signal's size, and whose actions differ clearly in score.
TensorMap Rc3dTensors(const Options& options);

// Makes a model with these weights, which are saved to a file and loaded, as when serving.
std::unique_ptr<Model> MakeRc3d(const Options& options, const TensorMap& tensors, const Target& target = {});
inline std::unique_ptr<Model> MakeRc3d(const Options& options) {
  return MakeRc3d(options, Rc3dTensors(options));
}

// Options of a narrow, shallow network for clips of 32 x 32 pixels.
Options NarrowRc3d(const Options& more = {});

// Smooth clips of `frames` frames and their placements. Clip i has sent[i] frames, followed by zero frames.
Batch Clips(const std::vector<int64_t>& sent, int64_t frames, int64_t side);

}  // namespace saccade::models::testing
