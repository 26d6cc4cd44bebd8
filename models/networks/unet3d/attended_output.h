// The end of a U-Net: siamese attention and the convolution to one channel, without the map between them.
//
// Attention needs the whole map, which at full resolution is the largest of all. But at each position it
// adds, for each head, one score of the position times a vector that is the same everywhere, and the steps
// after it are linear. So only a few numbers per position are kept until the sums over all positions are
// known.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "models/layers/convolution.h"
#include "models/networks/unet3d/siamese.h"
#include "models/networks/unet3d/tiles.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable and thread-safe.
class AttendedOutput {
 public:
  // Loads the tensors of `attention`, unless it is empty, and of `output`.
  AttendedOutput(const TensorMap& tensors, const std::string& attention, const std::string& output,
                 const UnetOptions& options);

  // Computes the result of one map, part by part.
  class Pass {
   public:
    Pass(const AttendedOutput& output, const VolumeSides& sides);

    // Adds the part `core` of the map. x holds its features at `within`, channels-last.
    void Add(const at::Tensor& x, const Part& within, const Part& core);
    // Returns the result [D, H, W], float32. REQUIRES: every position was added.
    at::Tensor Finish();

   private:
    const AttendedOutput& output_;
    int64_t positions_;
    at::Tensor kept_;  // [1 or 1 + heads, D, H, W]: the result without attention, and the queries' scores
    at::Tensor sums_;  // float64 [1 + heads, C] on the CPU: of features, and of features times keys' scores
  };

 private:
  int64_t heads() const { return attention_ ? attention_->heads : 0; }

  std::optional<SiameseWeights> attention_;
  at::Tensor weight_;                // of the output convolution, float64 [C]
  std::optional<Convolution> rows_;  // to the result without attention, queries' and keys' scores
  Target target_;
};

}  // namespace saccade::models
