// The plan as a flat list of layers that hold parameters: what counting, loading and checking go by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/counts.h"
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
  int64_t size = 1;      // of its output, in pixels a side
  int64_t attended = 0;  // of kConvolution: how many of the outputs are explicitly modelled attention's
  // Of kAttention:
  MobileAttention attention = MobileAttention::kNone;
  int64_t heads = 1;
  bool learned = false;  // whether siamese attention has w
};

// Whether the batch norm of an attention is over its coefficients, a channel a head, before their softmax.
// That of the others, which have no softmax, is over what they give.
bool NormsCoefficients(MobileAttention attention);
// Of a layer's batch norm; the classifier has none.
int64_t NormedChannels(const LayerSpec& layer);

// In the order of execution.
std::vector<LayerSpec> MobileLayers(const MobilePlan& plan);

// The papers' counting: multiply-adds of convolutions, value transforms and classifier as usual, and for the
// operators what their tables of operators say: 4 N c for siamese attention, 2 N^2 c for regular attention,
// with pooled keys and values 2 N M c for their M positions (which alone are transformed), 2 N c^2 for
// Attn_1/N, 2 N (h + w) c for KAO_KV and 2 (h + w)^2 c for KAO_QKV. All come out as published but for SANet
// itself: 289.9 M where the paper prints 288 M.
Counts CountMobile(const MobilePlan& plan);

}  // namespace saccade::models
