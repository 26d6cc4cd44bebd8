// EA R-C3Ds for the tests.
#pragma once

#include <memory>

#include "models/model.h"
#include "models/target.h"
#include "models/weights/weights.h"

namespace saccade::models::testing {

// Random weights whose batch norms keep the signal's size, and whose actions can be told apart.
TensorMap Rc3dTensors(const Options& options);

// With these weights, which go through a file, as they do in service.
std::unique_ptr<Model> MakeRc3d(const Options& options, const TensorMap& tensors, const Target& target = {});
inline std::unique_ptr<Model> MakeRc3d(const Options& options) {
  return MakeRc3d(options, Rc3dTensors(options));
}

// Narrow, shallow, and for clips of 32 x 32 pixels.
Options NarrowRc3d(const Options& more = {});

// Smooth clips that fill their frames and were sent so, but for the padding behind `sent` frames, one number
// a clip.
Batch Clips(const std::vector<int64_t>& sent, int64_t frames, int64_t side);

}  // namespace saccade::models::testing
