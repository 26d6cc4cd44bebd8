// The options of the residual classifiers.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/api/options.h"
#include "models/api/placement.h"

namespace saccade::models {

// The layer used as a block's 3x3 convolution.
enum class Spatial { kConvolution, kExpAtt, kGsa };

struct ResidualOptions {
  // Set by the architecture.
  bool basic = false;  // blocks of two 3x3 convolutions instead of a bottleneck: ResNet-34

  Spatial attention = Spatial::kConvolution;  // attention=expatt|none, or gsa|none
  int64_t first_group = 1;                    // groups=1-4|2-4|3-4|4: first residual group with attention
  std::string map = "gaussian";               // map=..., only ExpAtt: see kernels/expatt
  // plus_one=true|false, only ExpAtt: whether equation 5 adds 1 to G, so that far positions count more.
  bool plus_one = true;
  // shared_map=true|false, only ExpAtt: whether the heads share one map, or each has its own radius.
  bool shared_map = true;
  std::string content = "global";  // content=global|axial|none, only GSA
  std::string axes = "both";       // axes=both|column|row|none, only GSA: positional attention
  // transform_norms=true|false, only GSA: batch norms behind the transforms of queries, keys and values. "All
  // 1x1 convolutions and GSA modules are followed by batch normalization" may mean these too.
  bool transform_norms = false;
  // expansion=4|2, only GSA: a bottleneck's outputs are this many times its inner channels. With 2 and
  // width=1.125 the network is on M-ResNet-50, "which halves the number of input and output channels".
  int64_t expansion = 4;
  bool cifar = false;  // form=imagenet|cifar: cifar has a stem of stride 1 and no pooling after it
  int64_t heads = 8;   // heads=1|2|4|8, only GSA
  std::array<int64_t, 4> blocks = {3, 4, 6, 3};  // blocks=a,b,c,d
  int64_t classes = 1000;                        // classes=1..100000
  double width = 1;                              // width=0.1..4: multiplies all channels
  // Side of the network's input: input_size=32..1024, or crop_size for torchvision's names.
  int64_t input_size = 224;
  ImageInput pictures = {};  // see models/networks/picture_options.h
};

// Whether the positional attention along columns, or along rows, is there.
inline bool AttendsColumns(const ResidualOptions& options) {
  return options.axes == "both" || options.axes == "column";
}
inline bool AttendsRows(const ResidualOptions& options) {
  return options.axes == "both" || options.axes == "row";
}

// Parses the options of expatt_resnet34, 50, 101 and 152, of gsa_resnet38, 50 and 101, and of torchvision's
// resnet18, 34, 50, 101 and 152, which have no attention and no options for it. Throws a LoadError
// that lists the legal names or values.
ResidualOptions ParseResidualOptions(const std::string& architecture, const Options& options);

// Returns all options of the architecture with their values, as text.
Options AsText(const std::string& architecture, const ResidualOptions& options);

}  // namespace saccade::models
