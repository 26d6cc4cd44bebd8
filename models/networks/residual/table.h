// The residual classifiers, layer by layer: ResNets whose 3x3 convolutions are combined with explicitly
// modelled attention, after "Explicitly Modeled Attention Maps for Image Classification", or replaced by
// global self-attention, after "Global Self-Attention Networks for Image Recognition". Names are
// torchvision's. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/window.h"
#include "models/networks/ledger.h"
#include "models/networks/residual/options.h"

namespace saccade::models {

// A 3x3 convolution of a ResNet or its replacement, with the batch norm.
struct SpatialLayer {
  std::string name;  // "layer2.0.conv2"
  std::string norm;  // "layer2.0.bn2"
  Spatial kind = Spatial::kConvolution;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t stride = 1;  // attention's result is pooled by it
  int64_t side = 1;    // side of its input in positions
  // ExpAtt: number of outputs computed by attention.
  int64_t attended = 0;

  // Rows of GSA's embeddings: one for each relative offset.
  int64_t offsets() const { return 2 * side - 1; }
  // Side of its output. It is the same for all kinds: convolutions and ExpAtt's pooling are 3x3 and padded by
  // 1, GSA's is 2x2 and counts incomplete windows.
  int64_t side_after() const { return (side - 1) / stride + 1; }
};

// A bottleneck: 1x1, spatial, 1x1; or a basic block: two spatial layers.
struct ResidualBlock {
  std::string name;  // "layer2.0"
  bool basic = false;
  int64_t inputs = 0;
  int64_t middle = 0;
  int64_t outputs = 0;
  bool projected = false;
  int64_t stride = 1;
  std::vector<SpatialLayer> spatial;  // one; two in a basic block
};

struct ResidualPlan {
  ResidualOptions options;
  int64_t stem = 0;
  std::vector<ResidualBlock> blocks;
  int64_t features = 0;  // inputs of the classifier
};

ResidualPlan MakeResidualPlan(const ResidualOptions& options);

// Name of the radius of ExpAtt's map.
inline std::string RadiusName(const SpatialLayer& layer) { return layer.name + ".sigma"; }

Window ResidualStemWindow(const ResidualOptions& options);
inline constexpr Window kResidualPool{.kernel = 3, .stride = 2, .padding = 1};

// Heads of ExpAtt that have a map each, if they do not share one: "fixed to 8 in ResNets".
inline constexpr int64_t kExpAttHeads = 8;
inline int64_t MapsOf(const ResidualOptions& options) { return options.shared_map ? 1 : kExpAttHeads; }

// Records all layers. ExpAtt's multiply-adds are those of convolutions and transforms; its map costs nothing,
// as in the paper's counts. GSA's are 2 N Ck C / heads for the content and 2 N L C for each axis, for N
// positions on a map of side L.
Ledger RecordResidual(const ResidualPlan& plan);

}  // namespace saccade::models
