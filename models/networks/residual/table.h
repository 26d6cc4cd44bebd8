// The residual classifiers' blocks: ResNets whose 3x3 convolutions are joined by explicitly modelled
// attention, after "Explicitly Modeled Attention Maps for Image Classification", or replaced by global
// self-attention, after "Global Self-Attention Networks for Image Recognition". Names are torchvision's. No
// LibTorch here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/window.h"
#include "models/networks/ledger.h"
#include "models/networks/residual/options.h"

namespace saccade::models {

// What stands where a ResNet has a 3x3 convolution and its batch norm.
struct SpatialLayer {
  std::string name;  // "layer2.0.conv2"
  std::string norm;  // "layer2.0.bn2"
  Spatial kind = Spatial::kConvolution;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t stride = 1;  // of attention: it is pooled by as much
  int64_t side = 1;    // of its input, in positions
  // Of ExpAtt: how many of the outputs are attention's.
  int64_t attended = 0;

  // GSA's embeddings have a row for each offset.
  int64_t offsets() const { return 2 * side - 1; }
  // The same for all: convolutions and ExpAtt's pooling are 3x3 and padded by 1, GSA's is 2x2 and keeps a
  // rest.
  int64_t side_after() const { return (side - 1) / stride + 1; }
};

// 1x1, spatial, 1x1; or two spatial layers, of which `first` is then none.
struct ResidualBlock {
  std::string name;  // "layer2.0"
  bool basic = false;
  int64_t inputs = 0;
  int64_t middle = 0;
  int64_t outputs = 0;
  bool projected = false;
  int64_t stride = 1;
  std::vector<SpatialLayer> spatial;  // one, or of a basic block two
};

struct ResidualPlan {
  ResidualOptions options;
  int64_t stem = 0;
  std::vector<ResidualBlock> blocks;
  int64_t features = 0;  // that the classifier sees
};

ResidualPlan MakeResidualPlan(const ResidualOptions& options);

Window ResidualStemWindow(const ResidualOptions& options);
inline constexpr Window kResidualPool{.kernel = 3, .stride = 2, .padding = 1};

// ExpAtt's multiply-adds are those of convolutions and transforms: its map costs nothing there, as the paper
// counts it. GSA's are 2 N Ck C / heads for the content and 4 N L C for the axes, of N positions on a side of
// L.
Ledger RecordResidual(const ResidualPlan& plan);

}  // namespace saccade::models
