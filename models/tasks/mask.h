// From the small mask of a detection to the picture's pixels. No LibTorch here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/tasks/result.h"

namespace saccade::models {

// The part of the picture that a mask reaches: probabilities, row by row; zero everywhere else.
struct MaskRegion {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
  std::vector<float> values;
};

// Scales a mask to its box and cuts it to the picture, in torchvision's arithmetic (paste_masks_in_image).
// Empty if the detection has no mask, or none of it lies in the picture. Memory is bounded by the picture.
MaskRegion PasteMask(const Detection& detection, int64_t mask_side, int64_t height, int64_t width);

// Run lengths in COCO's form: down the columns, zeros first, of the pixels whose probability is at least
// `threshold`; always height * width in sum. All zeros for an empty region.
std::vector<uint32_t> EncodeRle(const MaskRegion& region, int64_t height, int64_t width, float threshold);

// COCO's compressed text of the run lengths, as pycocotools writes it.
std::string CocoText(const std::vector<uint32_t>& counts);

// The pixels of a mask, from its run lengths: every second run.
int64_t AreaOf(const std::vector<uint32_t>& counts);

}  // namespace saccade::models
