// A detection's mask in the requested form.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/api/placement.h"
#include "models/tasks/mask.h"
#include "saccade/v1/vision.pb.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// `region` is the mask's position in a picture of size `whole`. `form` is not NONE. `wanted` is asked while a
// PNG is written. Errors are those of the encoder and of `wanted`, and INVALID_ARGUMENT for RLE of a picture
// with more than 2^32 - 1 pixels.
absl::Status SetMask(const models::MaskRegion& region, models::Size whole, v1::DetectionOptions::Masks form,
                     float threshold, const StillWanted& wanted, v1::Detection* message);

}  // namespace saccade::server
