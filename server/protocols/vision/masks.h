// A detection's mask in the requested form.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "models/tasks/mask.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// `region` is the mask's position in a picture of size `whole`. `form` is not NONE. Errors are those of the
// encoder, and INVALID_ARGUMENT for RLE of a picture with more than 2^32 - 1 pixels.
absl::Status SetMask(const models::MaskRegion& region, models::Size whole, v1::DetectionOptions::Masks form,
                     float threshold, v1::Detection* message);

}  // namespace saccade::server
