// The plan as a flat list of layers that hold parameters: what counting, loading and checking go by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/counts.h"
#include "models/networks/sanet/table.h"

namespace saccade::models {

struct LayerSpec {
  enum class Kind { kConvolution, kAttention, kClassifier };
  std::string name;
  Kind kind = Kind::kConvolution;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t groups = 1;
  int64_t size = 1;      // of its output, in pixels a side
  bool learned = false;  // kAttention: whether it has w
};

// In the order of execution.
std::vector<LayerSpec> SanetLayers(const SanetPlan& plan);

// The paper's counting: multiply-adds of convolutions, value transforms and classifier as usual, and 4 N c
// for the operator (its table 2). The whole comes to 289.9 M where the paper prints 288 M; where the
// difference lies is not known.
Counts CountSanet(const SanetPlan& plan);

}  // namespace saccade::models
