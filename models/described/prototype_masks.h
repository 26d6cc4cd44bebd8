// Makes masks of prototypes, as YOLACT and YOLO's segmenters do.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/described/picture_program.h"
#include "models/described/to_sent.h"

namespace saccade::models {

// The number of prototypes in one picture's output, [K, h, w] or [h, w, K].
int64_t CountPrototypes(const Head& head, const at::Tensor& prototypes);

// Replaces the coefficients in each detection's mask by the sigmoid of the prototypes' weighted sum, on the
// part of the prototypes' grid that covers its box. The boxes are those in the sent picture already. Returns
// false if a value is not finite. REQUIRES: each detection has CountPrototypes() coefficients.
bool MakeMasks(const Head& head, const at::Tensor& prototypes, const Placement& placement,
               const ToSent& to_sent, std::vector<Detection>& detections);

}  // namespace saccade::models
