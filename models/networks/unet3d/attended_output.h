// The end of a U-Net, siamese attention and the convolution to one channel, without the map between them.
//
// Attention sees the whole map, which at full resolution is the largest of all. But what it adds at a
// position is, for each head, one score of the position times what is the same everywhere, and all that
// follows is linear: so of each position a few numbers are kept until the sums over all of them are known.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "models/layers/convolution.h"
#include "models/networks/unet3d/siamese.h"
#include "models/networks/unet3d/tiles.h"
#include "models/weights/weights.h"

namespace saccade::models {

// Immutable; calls may run at once on several threads.
class AttendedOutput {
 public:
  // The tensors of `attention`, if it is not empty, and `output`.
  AttendedOutput(const TensorMap& tensors, const std::string& attention, const std::string& output,
                 const UnetOptions& options);

  // One map's answer, part by part.
  class Pass {
   public:
    Pass(const AttendedOutput& output, const Sides& sides);

    // `core` of the map; x holds its features at `within`, and lies channels-last.
    void Add(const at::Tensor& x, const Part& within, const Part& core);
    // When every position was added: the answer [D, H, W], float32.
    at::Tensor Finish();

   private:
    const AttendedOutput& output_;
    int64_t positions_;
    at::Tensor kept_;  // [1 or 1 + heads, D, H, W]: the answer without attention, and the queries' scores
    at::Tensor sums_;  // float64 [1 + heads, C] on the CPU: of features, and of features times keys' scores
  };

 private:
  int64_t heads() const { return attention_ ? attention_->heads : 0; }

  std::optional<SiameseWeights> attention_;
  at::Tensor weight_;                // of the output, float64 [C]
  std::optional<Convolution> rows_;  // to the answer, and to the queries' and the keys' scores
  Target target_;
};

}  // namespace saccade::models
