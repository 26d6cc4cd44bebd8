// The sizes of modules that the tests without LibTorch compute, in floats and in bytes.
#pragma once

#include <cstdint>
#include <ostream>

#include "kernels/inverted_residual/inverted_residual_problem.h"

namespace saccade::kernels {

struct InvertedResidualTestConfig {
  int64_t batch = 1;
  int64_t height = 7;
  int64_t width = 7;
  InvertedResidualLayers layers;
  bool skips = false;

  int64_t positions() const { return batch * height * width; }
  int64_t out_height() const { return (height - 1) / layers.stride + 1; }
  int64_t out_width() const { return (width - 1) / layers.stride + 1; }
  int64_t out_positions() const { return batch * out_height() * out_width(); }
};

inline std::ostream& operator<<(std::ostream& out, const InvertedResidualTestConfig& c) {
  return out << c.batch << "x" << c.height << "x" << c.width << " inputs=" << c.layers.inputs
             << " expanded=" << c.layers.expanded << " kept=" << c.layers.kept
             << " beside=" << c.layers.beside << " outputs=" << c.layers.outputs
             << " stride=" << c.layers.stride << " skips=" << c.skips;
}

}  // namespace saccade::kernels
