// Converts a detection's small mask to the picture's pixels. Does not include LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

// The part of the picture that a mask covers: probabilities, row by row. They are zero outside.
struct MaskRegion {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
  std::vector<float> values;
};

// Scales a mask to its box and clips it to the picture, in torchvision's arithmetic (paste_masks_in_image). A
// mask with a frame is pasted as PasteFrame() does.
// Returns an empty region if the detection has no mask, or if it lies outside the picture. Memory is bounded
// by the picture.
MaskRegion PasteMask(const Detection& detection, int64_t mask_side, int64_t height, int64_t width);

// Returns run lengths in COCO's format: down the columns, zeros first, with ones where the probability is at
// least `threshold`. They sum to height * width. An empty region is all zeros.
std::vector<uint32_t> EncodeRle(const MaskRegion& region, int64_t height, int64_t width, float threshold);

// Returns COCO's compressed text of the run lengths, as pycocotools writes it.
std::string CocoText(const std::vector<uint32_t>& counts);

// Returns the number of pixels in a mask from its run lengths: the sum of every second run.
int64_t AreaOf(const std::vector<uint32_t>& counts);

}  // namespace saccade::models
