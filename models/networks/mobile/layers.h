// The layers of a plan that have parameters, as a flat list for counting, loading and checking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/api/counts.h"
#include "models/networks/mobile/table.h"

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
  int64_t size = 1;      // side of its output in pixels
  int64_t attended = 0;  // kConvolution: number of outputs computed by explicit attention
  bool radius = false;   // whether that attention's map has one: NAME.sigma
  // Only for kAttention:
  MobileAttention attention = MobileAttention::kNone;
  int64_t heads = 1;
  bool learned = false;  // whether siamese attention has w
  int64_t squeezed = 0;  // kSqueeze: channels between its two matrices
};

// Whether the attention's batch norm normalises the coefficients, one channel per head, before their softmax.
// The kinds without a softmax normalise the result instead; squeeze-and-excite has no batch norm.
bool NormsCoefficients(MobileAttention attention);
// Channels of a layer's batch norm. The classifier and squeeze-and-excite have none: 0.
int64_t NormedChannels(const LayerSpec& layer);

// Returns the layers in order of execution.
std::vector<LayerSpec> MobileLayers(const MobilePlan& plan);

// Counts as the papers do: multiply-adds of convolutions, value transforms and classifier as usual, and of
// the operators as in the papers' tables: 4 N c for siamese attention, 2 N^2 c for regular attention, 2 N M c
// with keys and values pooled to M positions (only these are transformed), 2 N c^2 for Attn_1/N, 2 N (h + w)
// c for KAO_KV and 2 (h + w)^2 c for KAO_QKV; squeeze-and-excite's are 2 N c, and its matrices once. The
// counts match the published ones except SANet's: 289.9 M where the paper prints 288 M.
Counts CountMobile(const MobilePlan& plan);

}  // namespace saccade::models
